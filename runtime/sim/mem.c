/* mem.c - loads and stores: addresses, spaces, checks, and the traffic that the statistics count.
 *
 * The lanes of an access are taken in runs: neighbouring lanes at neighbouring addresses, or at one. A run is checked and moved as
 * one stretch of memory. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Space
mem_space_of(uint64_t *addr)
{
  uint64_t window = *addr & ~(WINDOW_SIZE - 1);
  Space s = window == SHARED_WINDOW ? SP_SHARED : window == LOCAL_WINDOW ? SP_LOCAL
            : window == PARAM_WINDOW ? SP_PARAM : SP_GLOBAL;
  if (s != SP_GLOBAL)
    *addr -= window;
  return s;
}

void
mem_address(const Warp *w, uint32_t base, const Address *at, uint64_t addr[LANES])
{
  if (at->wide) {
    const uint64_t *v = LANES_OF(uint64_t, w, base);
    for (int i = 0; i < LANES; i++)
      addr[i] = v[i] + at->offset;
  } else {
    const uint32_t *v = LANES_OF(uint32_t, w, base);
    for (int i = 0; i < LANES; i++)
      addr[i] = (uint32_t)(v[i] + at->offset);
  }
}

/* ---- statistics ---- */

void
mem_stats_global(Block *b, uint32_t m, const uint64_t *addr, uint32_t n, bool write)
{
  uint64_t sector[2 * LANES], last = ~0ull;
  uint32_t count = 0;
  FOR_LANES(i, m) {
    *(write ? &b->worker->stats.global_bytes_written : &b->worker->stats.global_bytes_read) += n;
    for (uint64_t s = addr[i] / 32; s <= (addr[i] + n - 1) / 32; s++) {
      bool seen = s == last;
      for (uint32_t j = count; j-- > 0 && !seen;)
        seen = sector[j] == s;
      if (!seen && count < 2 * LANES)
        sector[count++] = s;
      last = s;
    }
  }
  b->worker->stats.global_sectors += count;
}

void
mem_stats_run(Block *b, uint64_t addr, uint64_t n, bool write)
{
  SimStats *s = &b->worker->stats;
  if (!b->want_stats || !n)
    return;
  *(write ? &s->global_bytes_written : &s->global_bytes_read) += n;
  s->global_sectors += (addr + n - 1) / 32 - addr / 32 + 1;
}

/* Distinct words of the fullest bank among the lanes of m. */
static uint32_t
wavefronts(uint32_t m, const uint64_t *addr, uint32_t n)
{
  uint32_t word[LANES * 4], count = 0, most = 0;
  uint8_t next[LANES * 4], head[32], used[32];
  memset(head, 255, sizeof head);
  memset(used, 0, sizeof used);
  FOR_LANES(i, m) {
    for (uint32_t a = (uint32_t)addr[i] / 4; a <= ((uint32_t)addr[i] + n - 1) / 4 && count < LANES * 4; a++) {
      uint32_t bank = a % 32, j = head[bank];
      while (j != 255 && word[j] != a)
        j = next[j];
      if (j != 255)
        continue;
      word[count] = a;
      next[count] = head[bank];
      head[bank] = (uint8_t)count++;
      most = ++used[bank] > most ? used[bank] : most;
    }
  }
  return most;
}

/* 8-byte accesses go by half warps, 16-byte ones by quarters. */
void
mem_stats_shared(Block *b, uint32_t m, const uint64_t *addr, uint32_t n)
{
  uint32_t lanes = n <= 4 ? 32 : n <= 8 ? 16 : 8;
  b->worker->stats.shared_accesses++;
  for (uint32_t i = 0; i < LANES; i += lanes) {
    uint32_t part = m & (lanes == 32 ? FULL : ((1u << lanes) - 1) << i);
    uint32_t waves = part ? wavefronts(part, addr, n) : 1;
    b->worker->stats.shared_bank_conflicts += waves - 1;
  }
}

/* ---- checks ---- */

/* The variable that the address of an instruction is in, with its place; false where that is not known. */
static bool
variable_of(const Block *b, const Warp *w, const Insn *in, uint32_t lane, Space sp, VarRange *v)
{
  const Address *at = insn_address(in);
  uint32_t var = at ? at->var : 0, kind = var >> VAR_BITS, i = VAR_INDEX(var);
  const Kernel *k = b->kernel;
  if (!var || (kind == VAR_SHARED ? sp != SP_SHARED : kind != VAR_LOCAL || sp != SP_LOCAL))
    return false;
  if (kind == VAR_SHARED) {
    const SharedVar *s = &k->module->shared[i];
    uint64_t from = k->shared_at[i] - 1;
    *v = (VarRange){s->name, from, s->dynamic ? b->shared_bytes : from + s->size};
    return true;
  }
  const Part *p = sim_kernel_part(k, (uint32_t)(in - k->code));
  const Local *l = &p->unit->locals[i];
  uint64_t frame = p->unit->frame ? LANES_OF(uint64_t, w, p->unit->frame + p->file)[lane] : 0;
  *v = (VarRange){l->name, frame + l->offset, frame + l->offset + l->size};
  return true;
}

/* Shared memory of another block of the cluster. */
static uint8_t *
remote_host(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write)
{
  uint64_t off = addr;
  const Block *t = cluster_reach(b, w, in, lane, &off, n, write);
  if (t && off <= t->shared_bytes && n <= t->shared_bytes - off)
    return t->shared + off;
  if (t)
    fault_window(b, w, in, lane, SP_SHARED, addr, n, t->shared_bytes, write);
  return NULL;
}

static uint8_t *
window_host(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  const Kernel *kn = b->kernel;
  if (sp == SP_SHARED && addr >> RANK_SHIFT)
    return remote_host(b, w, in, lane, addr, n, write);
  uint64_t size = sp == SP_SHARED ? b->shared_bytes : sp == SP_LOCAL ? kn->local_bytes : kn->unit->param_bytes;
  VarRange v;
  if (variable_of(b, w, in, lane, sp, &v) && (addr < v.from || addr + n > v.to) && addr + n <= size) {
    fault_variable(b, w, in, lane, sp, addr, n, &v, write);
    return NULL;
  }
  if (addr > size || n > size - addr || (sp == SP_PARAM && write)) {
    fault_window(b, w, in, lane, sp, addr, n, size, write);
    return NULL;
  }
  if (sp == SP_SHARED)
    return b->shared + addr;
  if (sp == SP_LOCAL)
    return b->local + (size_t)(w->index * LANES + lane) * kn->local_bytes + addr;
  return b->launch->params + addr;
}

uint8_t *
mem_host(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  if (sp == SP_GENERIC)
    sp = mem_space_of(&addr);
  sp = mem_space(sp);
  if (addr & (n - 1)) {
    fault_misaligned(b, w, in, lane, sp, addr, n, write);
    return NULL;
  }
  if (sp != SP_GLOBAL && sp != SP_CONST)
    return window_host(b, w, in, lane, sp, addr, n, write);
  const Alloc *a = b->worker->hot;
  if (!a || addr < a->base || addr >= a->end || n > a->end - addr) {
    a = sim_alloc_below(b->launch->allocs, b->launch->nallocs, addr);
    if (!a || addr >= a->end || n > a->end - addr) {
      fault_outside(b, w, in, lane, addr, n, write);
      return NULL;
    }
    b->worker->hot = a;
  }
  return (uint8_t *)(uintptr_t)addr;
}

uint8_t *
mem_bytes(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  if (sp == SP_SHARED && addr <= b->shared_bytes && n <= b->shared_bytes - addr)
    return b->shared + addr;
  if (sp == SP_SHARED && addr >> RANK_SHIFT)
    return remote_host(b, w, in, lane, addr, n, write);
  if (sp == SP_SHARED) {
    fault_window(b, w, in, lane, SP_SHARED, addr, n, b->shared_bytes, write);
    return NULL;
  }
  const Alloc *a = sim_alloc_below(b->launch->allocs, b->launch->nallocs, addr);
  if (!a || addr >= a->end || n > a->end - addr) {
    fault_outside(b, w, in, lane, addr, n, write);
    return NULL;
  }
  b->worker->hot = a;
  return (uint8_t *)(uintptr_t)addr;
}

/* What is known of memory at an address that has been found, which becomes an offset in it; NULL: nothing. */
static Shadow *
shadow_at(Block *b, Space sp, uint64_t *addr)
{
  if (!b->check)
    return NULL;
  if (sp == SP_SHARED)
    return cluster_block(b, addr)->shadow;
  Shadow *s = sp == SP_GLOBAL ? b->worker->hot->shadow : NULL;
  *addr -= s ? (uintptr_t)s->memory : 0;
  return s;
}

int
mem_check(Block *b, Warp *w, const Insn *in, const LaneAccess *l)
{
  uint64_t off = l->addr;
  Space sp = l->space == SP_GENERIC ? mem_space_of(&off) : mem_space(l->space);
  Shadow *s = shadow_at(b, sp, &off);
  if (!s)
    return 0;
  Access a = {.b = b, .w = w, .in = in, .s = s, .off = off, .lane = l->lane, .count = 1,
              .size = l->size, .write = l->write, .strong = l->strong, .update = l->update, .pending = l->pending, .data = l->data,
              .agent = l->agent};
  if (l->agent && !(a.segment = l->segment ? l->segment : agent_segment(b, l->agent)))
    return sim_fault(b, w, in, (int)l->lane, SIM_E_MEMORY, 0, "out of memory for the record of who accessed what");
  return cells_access(&a);
}

MemWrites
mem_writes(const Block *b, uint64_t addr, uint32_t n)
{
  MemWrites r = {0, 0};
  const Shadow *s = b->check ? b->worker->hot->shadow : NULL;
  if (s)
    r.sum = cells_writes(b->launch, s, addr - (uintptr_t)s->memory, n, &r.newest);
  return r;
}

int
mem_overtaken(Block *b, Warp *w, const Insn *in, const LaneAccess *l, uint64_t record)
{
  Shadow *s = b->worker->hot->shadow;
  Access a = {.b = b, .w = w, .in = in, .s = s, .off = l->addr - (uintptr_t)s->memory, .lane = l->lane, .count = 1, .size = l->size};
  return fault_overtaken(&a, record);
}

/* ---- runs of lanes ---- */

/* Lanes lane ... lane + count - 1, n bytes each: one behind the other from addr on, or all the same. */
typedef struct Run { uint32_t lane, count; uint64_t addr; bool same; } Run;

/* The first lanes of m that make a run. */
static Run
first_run(const uint64_t *addr, uint32_t m, uint32_t n)
{
  Run r = {.lane = (uint32_t)__builtin_ctz(m), .count = 1};
  uint32_t i = r.lane + 1;
  r.addr = addr[r.lane];
  r.same = i < LANES && m >> i & 1 && addr[i] == r.addr;
  uint64_t step = r.same ? 0 : n;
  while (i < LANES && m >> i & 1 && addr[i] == addr[i - 1] + step)
    i++;
  r.count = i - r.lane;
  return r;
}

static uint32_t
run_mask(const Run *r)
{
  return (r->count == LANES ? FULL : (1u << r->count) - 1) << r->lane;
}

static uint64_t
run_bytes(const Run *r, uint32_t n)
{
  return r->same ? n : (uint64_t)n * r->count;
}

/* Memory of a run in global or constant memory that is all inside one allocation; else NULL. */
static uint8_t *
global_run(Block *b, const Run *r, uint32_t n)
{
  uint64_t bytes = run_bytes(r, n);
  const Alloc *a = b->worker->hot;
  if (!a || r->addr < a->base || r->addr >= a->end || bytes > a->end - r->addr) {
    a = sim_alloc_below(b->launch->allocs, b->launch->nallocs, r->addr);
    if (!a || r->addr >= a->end || bytes > a->end - r->addr)
      return NULL;
    b->worker->hot = a;
  }
  return (uint8_t *)(uintptr_t)r->addr;
}

/* Whether bytes are in shared memory, and in the variable that the address was made from. */
static bool
inside_shared(const Block *b, const Insn *in, uint64_t addr, uint64_t bytes)
{
  const Kernel *k = b->kernel;
  uint32_t var = in->mem.at.var, i = VAR_INDEX(var);
  if (addr > b->shared_bytes || bytes > b->shared_bytes - addr)
    return false;
  if (var >> VAR_BITS != VAR_SHARED || !var)
    return true;
  uint64_t from = k->shared_at[i] - 1;
  return addr >= from && (k->module->shared[i].dynamic || addr + bytes <= from + k->module->shared[i].size);
}

/* Host memory of a run, checked; NULL with the fault of the first lane whose access is wrong. */
static uint8_t *
run_host(Block *b, Warp *w, const Insn *in, Space sp, const Run *r, uint32_t n, bool write)
{
  uint8_t *p = NULL;
  if (!(r->addr & (n - 1))) {
    if (sp == SP_GLOBAL || sp == SP_CONST)
      p = global_run(b, r, n);
    else if (sp == SP_SHARED && inside_shared(b, in, r->addr, run_bytes(r, n)))
      p = b->shared + r->addr;
  }
  if (p)
    return p;
  for (uint32_t i = 0; i < r->count; i++) {
    uint8_t *one = mem_host(b, w, in, r->lane + i, sp, r->addr + (r->same ? 0 : (uint64_t)i * n), n, write);
    if (!one)
      return NULL;
    p = i ? p : one;
  }
  return p;
}

/* What strong accesses tell and learn; see check.c. */
static void
run_order(Block *b, Warp *w, const Insn *in, Space sp, const Run *r, uint32_t n, bool write)
{
  bool shared = sp == SP_SHARED;
  if (!b->check || (!shared && !b->launch->turns))
    return;
  for (uint32_t i = 0; i < (r->same ? 1 : r->count); i++)
    if (write)
      sync_write(b, w, &in->mem, shared, r->addr + (uint64_t)i * n, false);
    else
      sync_read(b, w, &in->mem, shared, r->addr + (uint64_t)i * n);
}

static int
run_check(Block *b, Warp *w, const Insn *in, Space sp, const Run *r, uint32_t n, const uint8_t *data)
{
  uint64_t off = r->addr;
  Shadow *s = shadow_at(b, sp, &off);
  if (!s)
    return 0;
  Access a = {.b = b, .w = w, .in = in, .s = s, .off = off, .lane = r->lane,
              .count = r->count, .size = n, .same = r->same, .write = data != NULL, .strong = in->mem.order != ORDER_WEAK, .data = data};
  if (a.strong)
    a.data = NULL;
  return cells_access(&a);
}

/* ---- loads ---- */

/* One element of each lane, size bytes at from and every stride behind, into registers of the same size. */
static void
move_in(uint8_t *to, const uint8_t *from, uint32_t count, uint32_t size, uint32_t stride)
{
  if (stride == size)
    memcpy(to, from, (size_t)count * size);
  else if (size == 4)
    for (uint32_t i = 0; i < count; i++)
      memcpy(to + 4 * i, from + (size_t)i * stride, 4);
  else if (size == 8)
    for (uint32_t i = 0; i < count; i++)
      memcpy(to + 8 * i, from + (size_t)i * stride, 8);
  else
    for (uint32_t i = 0; i < count; i++)
      memcpy(to + (size_t)size * i, from + (size_t)i * stride, size);
}

static void
widen_in(uint8_t *to, const uint8_t *from, uint32_t count, const Insn *in, uint32_t stride)
{
  uint32_t size = in->mem.size, width = in->mem.width;
  bool sign = ptx_type_class[in->type] == TC_SINT;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t v = 0;
    memcpy(&v, from + (size_t)i * stride, size);
    if (sign && size < 8)
      v = (uint64_t)((int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size));
    memcpy(to + (size_t)i * width, &v, width);
  }
}

static void
load_run(const Block *b, Warp *w, const Insn *in, const Run *r, const uint8_t *p)
{
  const MemOps *o = &in->mem;
  uint32_t stride = r->same ? 0 : (uint32_t)o->size * o->count;
  for (uint32_t v = 0; v < o->count; v++) {
    uint8_t *to = w->regs + b->kernel->lists[in->list + v] + (size_t)r->lane * o->width;
    if (o->size == o->width)
      move_in(to, p + (size_t)v * o->size, r->count, o->size, stride);
    else
      widen_in(to, p + (size_t)v * o->size, r->count, in, stride);
  }
}

/* Sectors and conflicts: of a single run they are known without a look at each lane. */
static void
count_global(Block *b, uint32_t m, const uint64_t *addr, uint32_t n, const Run *only, bool write)
{
  if (!b->want_stats)
    return;
  if (!only) {
    mem_stats_global(b, m, addr, n, write);
    return;
  }
  SimStats *s = &b->worker->stats;
  *(write ? &s->global_bytes_written : &s->global_bytes_read) += (uint64_t)n * only->count;
  s->global_sectors += (only->addr + run_bytes(only, n) - 1) / 32 - only->addr / 32 + 1;
}

static void
count_shared(Block *b, uint32_t m, const uint64_t *addr, uint32_t n, bool single)
{
  if (!b->want_stats)
    return;
  if (single)
    b->worker->stats.shared_accesses++;
  else
    mem_stats_shared(b, m, addr, n);
}

static void
count_traffic(Block *b, Space sp, uint32_t m, const uint64_t *addr, uint32_t n, const Run *only, bool write)
{
  if (sp == SP_SHARED)
    count_shared(b, m, addr, n, only != NULL);
  else if (sp == SP_GLOBAL || sp == SP_CONST)
    count_global(b, m, addr, n, only, write);
}

/* A sum of what a load by lanes m saw, for poll_note. */
static uint64_t
sum_seen(const Block *b, const Warp *w, const Insn *in, uint32_t m, const uint64_t *addr)
{
  uint64_t sum = m;
  FOR_LANES(i, m) {
    sum = (sum ^ addr[i]) * 0x9e3779b97f4a7c15ull;
    for (uint32_t v = 0; v < in->mem.count; v++) {
      uint64_t x = 0;
      memcpy(&x, w->regs + b->kernel->lists[in->list + v] + i * in->mem.width, in->mem.width);
      sum = (sum ^ x ^ sum >> 31) * 0x9e3779b97f4a7c15ull;
    }
  }
  return sum;
}

static int
load_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  Run r = {0};
  for (uint32_t left = m; left; left &= ~run_mask(&r)) {
    r = first_run(addr, left, n);
    const uint8_t *p = run_host(b, w, in, sp, &r, n, false);
    if (!p || (sp != SP_PARAM && run_check(b, w, in, sp, &r, n, NULL)))
      return -1;
    if (in->mem.order != ORDER_WEAK)
      run_order(b, w, in, sp, &r, n, false);
    load_run(b, w, in, &r, p);
  }
  if (b->launch->turns && in->mem.order != ORDER_WEAK && sp == SP_GLOBAL)
    poll_note(b, w, in, sum_seen(b, w, in, m, addr), false);
  count_traffic(b, sp, m, addr, n, run_mask(&r) == m ? &r : NULL, false);
  return 0;
}

/* ---- stores ---- */

/* The bytes that the lanes of a run store, one lane behind the other; in registers if they lie so there. */
static const uint8_t *
gather(const Block *b, const Warp *w, const Insn *in, const Run *r, uint8_t *out)
{
  const MemOps *o = &in->mem;
  uint32_t n = (uint32_t)o->size * o->count;
  for (uint32_t v = 0; v < o->count; v++) {
    const uint8_t *from = w->regs + b->kernel->lists[in->list + v] + (size_t)r->lane * o->width;
    if (o->count == 1 && o->size == o->width)
      return from;
    for (uint32_t i = 0; i < r->count; i++)
      memcpy(out + (size_t)i * n + (size_t)v * o->size, from + (size_t)i * o->width, o->size);
  }
  return out;
}

static int
store_part(Block *b, Warp *w, const Insn *in, Space sp, const Run *r, uint32_t n, const uint8_t *data)
{
  uint8_t *p = run_host(b, w, in, sp, r, n, true);
  if (!p || run_check(b, w, in, sp, r, n, data))
    return -1;
  if (in->mem.order != ORDER_WEAK)
    run_order(b, w, in, sp, r, n, true);
  memcpy(p, data, run_bytes(r, n));
  return 0;
}

/* Lanes that store to one place are one store if the values agree, else several, one after the other. */
static int
store_run(Block *b, Warp *w, const Insn *in, Space sp, const Run *r, uint32_t n)
{
  _Alignas(8) uint8_t buffer[LANES * 64];
  const uint8_t *data = gather(b, w, in, r, buffer);
  if (!r->same || memcmp(data, data + n, (size_t)n * (r->count - 1)) == 0)
    return store_part(b, w, in, sp, r, n, data);
  for (uint32_t i = 0; i < r->count; i++) {
    Run one = {r->lane + i, 1, r->addr, false};
    if (store_part(b, w, in, sp, &one, n, data + (size_t)i * n))
      return -1;
  }
  return 0;
}

static int
store_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  Run r = {0};
  for (uint32_t left = m; left; left &= ~run_mask(&r)) {
    r = first_run(addr, left, n);
    if (store_run(b, w, in, sp, &r, n))
      return -1;
  }
  if (b->launch->turns && sp == SP_GLOBAL)
    poll_note(b, w, in, 0, true);
  count_traffic(b, sp, m, addr, n, run_mask(&r) == m ? &r : NULL, true);
  return 0;
}

/* ---- local memory: every lane has its own ---- */

static uint8_t *
local_init(const Block *b, const Warp *w, uint32_t lane)
{
  return b->local_init + (size_t)(w->index * LANES + lane) * (b->kernel->local_bytes / 8);
}

void
local_mark(Block *b, const Warp *w, uint32_t lane, uint64_t addr, uint32_t n, bool written)
{
  uint8_t *bits = b->local_init ? local_init(b, w, lane) : NULL;
  if (bits && addr % 8 == 0 && n % 8 == 0) {
    memset(bits + addr / 8, written ? 0xff : 0, n / 8);
    return;
  }
  for (uint64_t i = addr; bits && i < addr + n; i++)
    bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (uint32_t)written << i % 8);
}

void
local_store(Block *b, const Warp *w, uint32_t lane, uint64_t addr, const void *data, uint32_t n)
{
  memcpy(b->local + (size_t)(w->index * LANES + lane) * b->kernel->local_bytes + addr, data, n);
  local_mark(b, w, lane, addr, n, true);
}

/* An access is wrong if nothing of it was ever written: parts of one may be the holes of a struct. */
static bool
local_written(const Block *b, const Warp *w, uint32_t lane, uint64_t addr, uint32_t n)
{
  const uint8_t *bits = b->local_init ? local_init(b, w, lane) : NULL;
  bool any = !bits;
  for (uint64_t i = addr; !any && i < addr + n; i++)
    any = bits[i / 8] >> i % 8 & 1;
  return any;
}

static bool
is_hollow(const Block *b, const Warp *w, const Insn *in, uint32_t v, uint32_t lane)
{
  return w->hollow && w->hollow[b->kernel->lists[in->list + v] / 64] >> lane & 1;
}

/* A load that copies: elements that nobody wrote are noted for their registers. */
static int
note_hollow(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr)
{
  for (uint32_t v = 0; v < in->mem.count; v++) {
    bool hollow = !local_written(b, w, lane, addr + (uint64_t)v * in->mem.size, in->mem.size);
    if (hollow && !w->hollow && !(w->hollow = calloc(b->kernel->file_bytes / 64 + 1, sizeof *w->hollow)))
      return sim_fault(b, w, in, (int)lane, SIM_E_MEMORY, addr, "out of memory");
    if (hollow)
      w->hollow[b->kernel->lists[in->list + v] / 64] |= 1u << lane;
  }
  return 0;
}

static void
forget_hollow(const Block *b, Warp *w, const Insn *in, uint32_t m)
{
  for (uint32_t v = 0; w->hollow && v < in->mem.count; v++)
    w->hollow[b->kernel->lists[in->list + v] / 64] &= ~m;
}

static int
local_load(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr)
{
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  Run one = {lane, 1, addr, false};
  const uint8_t *p = mem_host(b, w, in, lane, SP_LOCAL, addr, n, false);
  if (!p || (in->mem.copies && note_hollow(b, w, in, lane, addr)))
    return -1;
  if (!in->mem.copies && !local_written(b, w, lane, addr, n))
    return fault_local(b, w, in, lane, addr, n);
  load_run(b, w, in, &one, p);
  return 0;
}

static int
local_write(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr)
{
  _Alignas(8) uint8_t buffer[64];
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  Run one = {lane, 1, addr, false};
  if (!mem_host(b, w, in, lane, SP_LOCAL, addr, n, true))
    return -1;
  local_store(b, w, lane, addr, gather(b, w, in, &one, buffer), n);
  for (uint32_t v = 0; v < in->mem.count; v++)
    if (is_hollow(b, w, in, v, lane))
      local_mark(b, w, lane, addr + (uint64_t)v * in->mem.size, in->mem.size, false);
  return 0;
}

static int
local_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, const uint64_t *addr, bool store)
{
  FOR_LANES(i, m)
    if (store ? local_write(b, w, in, i, addr[i]) : local_load(b, w, in, i, addr[i]))
      return -1;
  return 0;
}

/* Memory that others see gets no copies of what nobody wrote. */
static int
check_hollow(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m)
    for (uint32_t v = 0; v < in->mem.count; v++)
      if (is_hollow(b, w, in, v, i))
        return fault_hollow(b, w, in, i);
  return 0;
}

/* ---- spaces ---- */

static int
access_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr, bool store)
{
  if (sp == SP_LOCAL)
    return local_lanes(b, w, in, m, addr, store);
  return store ? store_lanes(b, w, in, m, sp, addr) : load_lanes(b, w, in, m, sp, addr);
}

/* Lanes of one generic access may be in several spaces: one pass for each. */
static int
access_memory(Block *b, Warp *w, const Insn *in, uint32_t m, bool store)
{
  uint64_t addr[LANES];
  uint32_t lanes[SP_COUNT] = {0};
  mem_address(w, in->mem.base, &in->mem.at, addr);
  if (!store && in->mem.copies)
    forget_hollow(b, w, in, m);
  if (in->mem.at.space != SP_GENERIC)
    return access_lanes(b, w, in, m, mem_space((Space)in->mem.at.space), addr, store);
  FOR_LANES(i, m) lanes[mem_space_of(&addr[i])] |= 1u << i;
  if (store && w->hollow && check_hollow(b, w, in, m & ~lanes[SP_LOCAL]))
    return -1;
  for (int sp = SP_GLOBAL; sp < SP_COUNT; sp++)
    if (lanes[sp] && access_lanes(b, w, in, lanes[sp], (Space)sp, addr, store))
      return -1;
  return 0;
}

int
mem_load(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  return access_memory(b, w, in, m, false);
}

int
mem_store(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  return access_memory(b, w, in, m, true);
}

int
fence_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (b->check && in->fence.orders)
    sync_fence(b, w, (Scope)in->fence.scope);
  if (b->check && in->fence.proxy)
    clock_proxy(b, w);
  if (b->check && in->fence.inits)
    clock_inits(b, w);
  return 0;
}

int
isspacep_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const uint64_t *a = LANES_OF(uint64_t, w, in->isspace.a);
  uint32_t r = 0;
  for (uint32_t i = 0; i < LANES; i++) {
    uint64_t addr = a[i];
    Space s = mem_space_of(&addr);
    bool own = s != SP_SHARED || addr >> RANK_SHIFT == 0 || in->isspace.space == SP_CLUSTER;
    r |= (uint32_t)(own && s == mem_space((Space)in->isspace.space)) << i;
  }
  PRED_OF(w, in->isspace.d) = (PRED_OF(w, in->isspace.d) & ~m) | (r & m);
  return 0;
}
