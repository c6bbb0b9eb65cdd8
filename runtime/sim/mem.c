/* mem.c - loads and stores: addresses, spaces, checks, and the traffic that the statistics count. */
#include "internal.h"
#include <stdio.h>
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

static const char *
space_name(Space sp)
{
  return sp == SP_SHARED ? "shared" : sp == SP_LOCAL ? "local" : sp == SP_PARAM ? "param" : "global";
}

static int
misaligned(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  char t[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_ALIGN, addr,
                      "thread %s %s %u bytes at %s address 0x%llx, which is not a multiple of %u",
                      sim_thread_text(b, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
                      space_name(sp), (unsigned long long)addr, n);
}

static int
outside_window(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, uint64_t size,
               bool write)
{
  char t[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr,
                      "thread %s %s %u bytes at %s+0x%llx, outside the %llu bytes of %s memory",
                      sim_thread_text(b, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
                      space_name(sp), (unsigned long long)addr, (unsigned long long)size, space_name(sp));
}

static const Alloc *
alloc_below(const Launch *l, uint64_t addr)
{
  size_t lo = 0, hi = l->nallocs;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (l->allocs[mid].base <= addr)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo ? &l->allocs[lo - 1] : NULL;
}

static int
outside_allocs(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write)
{
  char t[48], near[128] = "";
  const Alloc *below = alloc_below(b->launch, addr);
  const Alloc *all = b->launch->allocs, *above = below ? below + 1 : all;
  if (below && addr + n - below->end < 1 << 24)
    snprintf(near, sizeof near, ": it ends %llu bytes after the end of one of %llu bytes",
             (unsigned long long)(addr + n - below->end), (unsigned long long)(below->end - below->base));
  else if (above < all + b->launch->nallocs && above->base - addr < 1 << 24)
    snprintf(near, sizeof near, ": it starts %llu bytes before one of %llu bytes",
             (unsigned long long)(above->base - addr), (unsigned long long)(above->end - above->base));
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, addr,
                      "thread %s %s %u bytes at global address 0x%llx, outside every allocation%s",
                      sim_thread_text(b, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
                      (unsigned long long)addr, near);
}

static uint8_t *
window_host(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  const Kernel *kn = b->kernel;
  uint64_t size = sp == SP_SHARED ? b->shared_bytes : sp == SP_LOCAL ? kn->local_bytes : kn->unit->param_bytes;
  if (addr > size || n > size - addr || (sp == SP_PARAM && write)) {
    outside_window(b, w, in, lane, sp, addr, n, size, write);
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
  if (addr & (n - 1)) {
    misaligned(b, w, in, lane, sp, addr, n, write);
    return NULL;
  }
  if (sp != SP_GLOBAL && sp != SP_CONST)
    return window_host(b, w, in, lane, sp, addr, n, write);
  const Alloc *a = b->worker->hot;
  if (!a || addr < a->base || addr >= a->end || n > a->end - addr) {
    a = alloc_below(b->launch, addr);
    if (!a || addr >= a->end || n > a->end - addr) {
      outside_allocs(b, w, in, lane, addr, n, write);
      return NULL;
    }
    b->worker->hot = a;
  }
  return (uint8_t *)(uintptr_t)addr;
}

/* ---- transfer ---- */

/* Strong accesses to global memory meet those of other blocks, on other host threads. */
static void
copy_in(uint64_t *v, const uint8_t *p, uint32_t n, bool strong)
{
  if (strong && n == 4)
    *v = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_ACQUIRE);
  else if (strong && n == 8)
    *v = __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
  else
    memcpy(v, p, n);
}

static void
copy_out(uint8_t *p, const uint8_t *data, uint32_t n, bool strong)
{
  if (strong && n == 4)
    __atomic_store_n((uint32_t *)(void *)p, *(const uint32_t *)(const void *)data, __ATOMIC_RELEASE);
  else if (strong && n == 8)
    __atomic_store_n((uint64_t *)(void *)p, *(const uint64_t *)(const void *)data, __ATOMIC_RELEASE);
  else
    memcpy(p, data, n);
}

static void
load_element(Warp *w, const Insn *in, uint32_t slot, uint32_t m, uint8_t *const *ptr, uint32_t off)
{
  bool sign = ptx_type_class[in->type] == TC_SINT, strong = in->mem.order != ORDER_WEAK;
  uint32_t n = in->mem.size, width = in->mem.width;
  if (n == 4 && width == 4 && !strong) {
    uint32_t *d = LANES_OF(uint32_t, w, slot);
    FOR_LANES(i, m) memcpy(&d[i], ptr[i] + off, 4);
    return;
  }
  FOR_LANES(i, m) {
    uint64_t v = 0;
    copy_in(&v, ptr[i] + off, n, strong);
    if (sign && n < 8)
      v = (uint64_t)((int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n));
    memcpy(w->regs + slot + i * width, &v, width);
  }
}

static void
store_element(Warp *w, const Insn *in, uint32_t slot, uint32_t lane, uint8_t *ptr)
{
  memcpy(ptr, w->regs + slot + lane * in->mem.width, in->mem.size);
}

static int
load_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  uint8_t *ptr[LANES];
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  FOR_LANES(i, m) {
    ptr[i] = mem_host(b, w, in, i, sp, addr[i], n, false);
    if (!ptr[i] || (sp == SP_SHARED && b->check && shadow_read(b, w, in, i, (uint32_t)addr[i], n)))
      return -1;
  }
  if (b->want_stats && sp == SP_SHARED)
    mem_stats_shared(b, m, addr, n);
  if (b->want_stats && (sp == SP_GLOBAL || sp == SP_CONST))
    mem_stats_global(b, m, addr, n, false);
  for (uint32_t v = 0; v < in->mem.count; v++)
    load_element(w, in, b->kernel->lists[in->list + v], m, ptr, v * in->mem.size);
  return 0;
}

static void
gather_store(Block *b, Warp *w, const Insn *in, uint32_t lane, uint8_t *data)
{
  for (uint32_t v = 0; v < in->mem.count; v++)
    store_element(w, in, b->kernel->lists[in->list + v], lane, data + v * in->mem.size);
}

static int
store_lanes(Block *b, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  _Alignas(8) uint8_t data[64];
  bool strong = in->mem.order != ORDER_WEAK;
  uint32_t n = (uint32_t)in->mem.size * in->mem.count;
  FOR_LANES(i, m) {
    uint8_t *p = mem_host(b, w, in, i, sp, addr[i], n, true);
    if (!p)
      return -1;
    gather_store(b, w, in, i, data);
    if (sp == SP_SHARED && b->check &&
        shadow_write(b, w, in, i, (uint32_t)addr[i], n, strong ? NULL : data, strong))
      return -1;
    copy_out(p, data, n, strong);
  }
  if (b->want_stats && sp == SP_SHARED)
    mem_stats_shared(b, m, addr, n);
  if (b->want_stats && sp == SP_GLOBAL)
    mem_stats_global(b, m, addr, n, true);
  return 0;
}

/* Lanes of one generic access may be in several spaces: one pass for each. */
static int
by_space(Block *b, Warp *w, const Insn *in, uint32_t m, uint64_t *addr,
         int (*fn)(Block *, Warp *, const Insn *, uint32_t, Space, const uint64_t *))
{
  uint32_t lanes[SP_PARAM + 1] = {0};
  FOR_LANES(i, m) lanes[mem_space_of(&addr[i])] |= 1u << i;
  for (int sp = SP_GLOBAL; sp <= SP_PARAM; sp++)
    if (lanes[sp] && fn(b, w, in, lanes[sp], (Space)sp, addr))
      return -1;
  return 0;
}

int
mem_load(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  mem_address(w, in->mem.base, &in->mem.at, addr);
  if (in->mem.at.space == SP_GENERIC)
    return by_space(b, w, in, m, addr, load_lanes);
  return load_lanes(b, w, in, m, (Space)in->mem.at.space, addr);
}

int
mem_store(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  mem_address(w, in->mem.base, &in->mem.at, addr);
  if (in->mem.at.space == SP_GENERIC)
    return by_space(b, w, in, m, addr, store_lanes);
  return store_lanes(b, w, in, m, (Space)in->mem.at.space, addr);
}

int
fence_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
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
    r |= (uint32_t)(s == in->isspace.space) << i;
  }
  PRED_OF(w, in->isspace.d) = (PRED_OF(w, in->isspace.d) & ~m) | (r & m);
  return 0;
}
