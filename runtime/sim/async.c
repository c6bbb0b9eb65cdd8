/* async.c - cp.async. A copy reads its source when issued and lands in shared memory when the thread waits
 * for its group: until then the destination is pending (check.c) and keeps its old bytes. */
#include "internal.h"
#include <string.h>

static int
copy_source(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint64_t src, uint32_t bytes, uint8_t *data)
{
  uint32_t n = in->esize;
  memset(data, 0, 16);
  if (!bytes)
    return 0;
  if (src & (n - 1))
    return mem_host(k, w, in, lane, SP_GLOBAL, src, n, false) ? 0 : -1;
  uint8_t *first = mem_host(k, w, in, lane, SP_GLOBAL, src, 1, false);
  if (!first || !mem_host(k, w, in, lane, SP_GLOBAL, src + bytes - 1, 1, false))
    return -1;
  memcpy(data, first, bytes);
  return 0;
}

static uint32_t
copy_bytes(const Worker *k, const Warp *w, const Insn *in, uint32_t lane)
{
  uint32_t slot = k->kernel->ext[in->ext];
  if (in->sub == 1) {
    uint32_t size = LANES_OF(uint32_t, w, slot)[lane];
    return size < in->esize ? size : in->esize;
  }
  return in->sub == 2 && PRED_OF(w, slot) >> lane & 1 ? 0 : in->esize;
}

static int
copy_lane(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint64_t dst, uint64_t src)
{
  uint32_t n = in->esize;
  if (!sim_vec_grow(&w->pending, &w->pending_cap, w->npending + 1, sizeof *w->pending))
    return worker_error(k, w, in, (int)lane, SIM_E_MEMORY, 0, "out of memory");
  Pending *p = &w->pending[w->npending];
  *p = (Pending){.group = w->group[lane], .dst = (uint32_t)dst, .lane = (uint8_t)lane, .size = (uint8_t)n,
                 .pc = (uint32_t)(in - k->kernel->code)};
  if (copy_source(k, w, in, lane, src, copy_bytes(k, w, in, lane), p->data) ||
      !mem_host(k, w, in, lane, SP_SHARED, dst, n, true))
    return -1;
  if (k->check) {
    if (shadow_write(k, w, in, lane, (uint32_t)dst, n, NULL, false))
      return -1;
    shadow_pend(k, (uint32_t)dst, n, true);
  }
  w->npending++;
  return 0;
}

int
async_copy(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t dst[LANES], src[LANES];
  const uint64_t *base = LANES_OF(uint64_t, w, in->b), *off = LANES_OF(uint64_t, w, in->c);
  mem_address(w, in, in->a, in->imm, dst);
  FOR_LANES(i, m) {
    src[i] = base[i] + off[i];
    uint64_t to = dst[i];
    if ((to & ~(WINDOW_SIZE - 1)) == SHARED_WINDOW)
      dst[i] -= SHARED_WINDOW;
    if (copy_lane(k, w, in, i, dst[i], src[i]))
      return -1;
  }
  if (k->want_stats) {
    mem_stats_shared(k, m, dst, in->esize);
    mem_stats_global(k, m, src, in->esize, false);
  }
  return 0;
}

int
async_commit(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m) w->group[i]++;
  return 0;
}

/* imm: groups that may stay in flight; sub: those not committed are waited for too. */
int
async_wait(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  size_t keep = 0;
  for (size_t i = 0; i < w->npending; i++) {
    const Pending *p = &w->pending[i];
    bool committed = in->sub || p->group < w->group[p->lane];
    if (!(m >> p->lane & 1) || !committed || (!in->sub && w->group[p->lane] - p->group <= in->imm)) {
      w->pending[keep++] = *p;
      continue;
    }
    memcpy(k->shared + p->dst, p->data, p->size);
    if (k->check)
      shadow_landed(k, w, p->pc, p->lane, p->dst, p->size);
  }
  w->npending = keep;
  return 0;
}
