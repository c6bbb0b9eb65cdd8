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
mem_address(const Warp *w, const Insn *in, uint32_t reg, uint64_t off, uint64_t addr[LANES])
{
  if (in->flags & IF_ADDR64) {
    const uint64_t *base = LANES_OF(uint64_t, w, reg);
    for (int i = 0; i < LANES; i++)
      addr[i] = base[i] + off;
  } else {
    const uint32_t *base = LANES_OF(uint32_t, w, reg);
    for (int i = 0; i < LANES; i++)
      addr[i] = (uint32_t)(base[i] + off);
  }
}

/* ---- statistics ---- */

void
mem_stats_global(Worker *k, uint32_t m, const uint64_t *addr, uint32_t n, bool write)
{
  uint64_t sector[2 * LANES], last = ~0ull;
  uint32_t count = 0;
  FOR_LANES(i, m) {
    *(write ? &k->stats.global_bytes_written : &k->stats.global_bytes_read) += n;
    for (uint64_t s = addr[i] / 32; s <= (addr[i] + n - 1) / 32; s++) {
      bool seen = s == last;
      for (uint32_t j = count; j-- > 0 && !seen;)
        seen = sector[j] == s;
      if (!seen && count < 2 * LANES)
        sector[count++] = s;
      last = s;
    }
  }
  k->stats.global_sectors += count;
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
mem_stats_shared(Worker *k, uint32_t m, const uint64_t *addr, uint32_t n)
{
  uint32_t lanes = n <= 4 ? 32 : n <= 8 ? 16 : 8;
  k->stats.shared_accesses++;
  for (uint32_t i = 0; i < LANES; i += lanes) {
    uint32_t part = m & (lanes == 32 ? FULL : ((1u << lanes) - 1) << i);
    uint32_t waves = part ? wavefronts(part, addr, n) : 1;
    k->stats.shared_bank_conflicts += waves - 1;
  }
}

/* ---- checks ---- */

static const char *
space_name(Space sp)
{
  return sp == SP_SHARED ? "shared" : sp == SP_LOCAL ? "local" : sp == SP_PARAM ? "param" : "global";
}

static int
misaligned(Worker *k, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  char t[48];
  return worker_error(k, w, in, (int)lane, SIM_E_ALIGN, addr,
                      "thread %s %s %u bytes at %s address 0x%llx, which is not a multiple of %u",
                      sim_thread_text(k, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
                      space_name(sp), (unsigned long long)addr, n);
}

static int
outside_window(Worker *k, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, uint64_t size,
               bool write)
{
  char t[48];
  return worker_error(k, w, in, (int)lane, SIM_E_BOUNDS, addr,
                      "thread %s %s %u bytes at %s+0x%llx, outside the %llu bytes of %s memory",
                      sim_thread_text(k, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
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
outside_allocs(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t n, bool write)
{
  char t[48], near[128] = "";
  const Alloc *below = alloc_below(k->launch, addr);
  const Alloc *all = k->launch->allocs, *above = below ? below + 1 : all;
  if (below && addr + n - below->end < 1 << 24)
    snprintf(near, sizeof near, ": it ends %llu bytes after the end of one of %llu bytes",
             (unsigned long long)(addr + n - below->end), (unsigned long long)(below->end - below->base));
  else if (above < all + k->launch->nallocs && above->base - addr < 1 << 24)
    snprintf(near, sizeof near, ": it starts %llu bytes before one of %llu bytes",
             (unsigned long long)(above->base - addr), (unsigned long long)(above->end - above->base));
  return worker_error(k, w, in, (int)lane, SIM_E_BOUNDS, addr,
                      "thread %s %s %u bytes at global address 0x%llx, outside every allocation%s",
                      sim_thread_text(k, w->index * LANES + lane, t, sizeof t), write ? "writes" : "reads", n,
                      (unsigned long long)addr, near);
}

static uint8_t *
window_host(Worker *k, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  const Kernel *kn = k->kernel;
  uint64_t size = sp == SP_SHARED ? k->shared_bytes : sp == SP_LOCAL ? kn->local_bytes : kn->param_bytes;
  if (addr > size || n > size - addr || (sp == SP_PARAM && write)) {
    outside_window(k, w, in, lane, sp, addr, n, size, write);
    return NULL;
  }
  if (sp == SP_SHARED)
    return k->shared + addr;
  if (sp == SP_LOCAL)
    return k->local + (size_t)(w->index * LANES + lane) * kn->local_bytes + addr;
  return k->launch->params + addr;
}

uint8_t *
mem_host(Worker *k, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t n, bool write)
{
  if (sp == SP_GENERIC)
    sp = mem_space_of(&addr);
  if (addr & (n - 1)) {
    misaligned(k, w, in, lane, sp, addr, n, write);
    return NULL;
  }
  if (sp != SP_GLOBAL && sp != SP_CONST)
    return window_host(k, w, in, lane, sp, addr, n, write);
  const Alloc *a = k->hot;
  if (!a || addr < a->base || addr >= a->end || n > a->end - addr) {
    a = alloc_below(k->launch, addr);
    if (!a || addr >= a->end || n > a->end - addr) {
      outside_allocs(k, w, in, lane, addr, n, write);
      return NULL;
    }
    k->hot = a;
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
  bool sign = ptx_type_class[in->type] == TC_SINT;
  uint32_t n = in->esize;
  if (n == 4 && in->dw == 4 && !in->strong) {
    uint32_t *d = LANES_OF(uint32_t, w, slot);
    FOR_LANES(i, m) memcpy(&d[i], ptr[i] + off, 4);
    return;
  }
  FOR_LANES(i, m) {
    uint64_t v = 0;
    copy_in(&v, ptr[i] + off, n, in->strong);
    if (sign && n < 8)
      v = (uint64_t)((int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n));
    memcpy(w->regs + slot + i * in->dw, &v, in->dw);
  }
}

static void
store_element(Warp *w, const Insn *in, uint32_t slot, uint32_t lane, uint8_t *ptr)
{
  memcpy(ptr, w->regs + slot + lane * in->dw, in->esize);
}

static int
load_lanes(Worker *k, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  uint8_t *ptr[LANES];
  uint32_t n = (uint32_t)in->esize * in->vec;
  FOR_LANES(i, m) {
    ptr[i] = mem_host(k, w, in, i, sp, addr[i], n, false);
    if (!ptr[i] || (sp == SP_SHARED && k->check && shadow_read(k, w, in, i, (uint32_t)addr[i], n)))
      return -1;
  }
  if (k->want_stats && sp == SP_SHARED)
    mem_stats_shared(k, m, addr, n);
  if (k->want_stats && (sp == SP_GLOBAL || sp == SP_CONST))
    mem_stats_global(k, m, addr, n, false);
  for (uint32_t v = 0; v < in->vec; v++)
    load_element(w, in, k->kernel->ext[in->ext + v], m, ptr, v * in->esize);
  return 0;
}

static void
gather_store(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint8_t *data)
{
  for (uint32_t v = 0; v < in->vec; v++)
    store_element(w, in, k->kernel->ext[in->ext + v], lane, data + v * in->esize);
}

static int
store_lanes(Worker *k, Warp *w, const Insn *in, uint32_t m, Space sp, const uint64_t *addr)
{
  _Alignas(8) uint8_t data[64];
  uint32_t n = (uint32_t)in->esize * in->vec;
  FOR_LANES(i, m) {
    uint8_t *p = mem_host(k, w, in, i, sp, addr[i], n, true);
    if (!p)
      return -1;
    gather_store(k, w, in, i, data);
    if (sp == SP_SHARED && k->check &&
        shadow_write(k, w, in, i, (uint32_t)addr[i], n, in->strong ? NULL : data, in->strong))
      return -1;
    copy_out(p, data, n, in->strong);
  }
  if (k->want_stats && sp == SP_SHARED)
    mem_stats_shared(k, m, addr, n);
  if (k->want_stats && sp == SP_GLOBAL)
    mem_stats_global(k, m, addr, n, true);
  return 0;
}

/* Lanes of one generic access may be in several spaces: one pass for each. */
static int
by_space(Worker *k, Warp *w, const Insn *in, uint32_t m, uint64_t *addr,
         int (*fn)(Worker *, Warp *, const Insn *, uint32_t, Space, const uint64_t *))
{
  uint32_t lanes[SP_PARAM + 1] = {0};
  FOR_LANES(i, m) lanes[mem_space_of(&addr[i])] |= 1u << i;
  for (int sp = SP_GLOBAL; sp <= SP_PARAM; sp++)
    if (lanes[sp] && fn(k, w, in, lanes[sp], (Space)sp, addr))
      return -1;
  return 0;
}

int
mem_load(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  mem_address(w, in, in->a, in->imm, addr);
  if (in->space == SP_GENERIC)
    return by_space(k, w, in, m, addr, load_lanes);
  return load_lanes(k, w, in, m, (Space)in->space, addr);
}

int
mem_store(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  mem_address(w, in, in->a, in->imm, addr);
  if (in->space == SP_GENERIC)
    return by_space(k, w, in, m, addr, store_lanes);
  return store_lanes(k, w, in, m, (Space)in->space, addr);
}

int
fence_exec(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return 0;
}

int
isspacep_exec(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  const uint64_t *a = LANES_OF(uint64_t, w, in->a);
  uint32_t r = 0;
  for (uint32_t i = 0; i < LANES; i++) {
    uint64_t addr = a[i];
    Space s = mem_space_of(&addr);
    r |= (uint32_t)(s == in->space) << i;
  }
  PRED_OF(w, in->d) = (PRED_OF(w, in->d) & ~m) | (r & m);
  return 0;
}
