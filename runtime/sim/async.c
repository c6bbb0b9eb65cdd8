/* async.c - cp.async. A copy reads its source when issued and lands in shared memory when the thread waits
 * for its group: until then the destination is pending (check.c) and keeps its old bytes. */
#include "internal.h"
#include <string.h>

static int
copy_source(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t src, uint32_t bytes, uint8_t *data)
{
  uint32_t n = in->copy.size;
  memset(data, 0, 16);
  if (!bytes)
    return 0;
  if (src & (n - 1))
    return mem_host(b, w, in, lane, SP_GLOBAL, src, n, false) ? 0 : -1;
  uint8_t *first = mem_host(b, w, in, lane, SP_GLOBAL, src, 1, false);
  if (!first || !mem_host(b, w, in, lane, SP_GLOBAL, src + bytes - 1, 1, false))
    return -1;
  memcpy(data, first, bytes);
  return 0;
}

static uint32_t
copy_bytes(const Warp *w, const CopyOps *o, uint32_t lane)
{
  switch ((CopyLimit)o->limited) {
  case COPY_ALL: break;
  case COPY_BYTES: {
    uint32_t size = LANES_OF(uint32_t, w, o->limit)[lane];
    return size < o->size ? size : o->size;
  }
  case COPY_IGNORE: return PRED_OF(w, o->limit) >> lane & 1 ? 0 : o->size;
  }
  return o->size;
}

static int
copy_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t dst, uint64_t src)
{
  uint32_t n = in->copy.size;
  if (!sim_vec_grow(&w->pending, &w->pending_cap, w->npending + 1, sizeof *w->pending))
    return sim_fault(b, w, in, (int)lane, SIM_E_MEMORY, 0, "out of memory");
  Pending *p = &w->pending[w->npending];
  *p = (Pending){.group = w->group[lane], .dst = (uint32_t)dst, .lane = (uint8_t)lane, .size = (uint8_t)n,
                 .pc = (uint32_t)(in - b->kernel->code)};
  if (copy_source(b, w, in, lane, src, copy_bytes(w, &in->copy, lane), p->data) ||
      !mem_host(b, w, in, lane, SP_SHARED, dst, n, true))
    return -1;
  if (b->check) {
    if (shadow_write(b, w, in, lane, (uint32_t)dst, n, NULL, false))
      return -1;
    shadow_pend(b, (uint32_t)dst, n, true);
  }
  w->npending++;
  return 0;
}

int
async_copy(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t dst[LANES], src[LANES];
  const uint64_t *base = LANES_OF(uint64_t, w, in->copy.from);
  mem_address(w, in->copy.to, &in->copy.at, dst);
  FOR_LANES(i, m) {
    src[i] = base[i] + (uint64_t)(int64_t)in->copy.from_offset;
    uint64_t to = dst[i];
    if ((to & ~(WINDOW_SIZE - 1)) == SHARED_WINDOW)
      dst[i] -= SHARED_WINDOW;
    if (copy_lane(b, w, in, i, dst[i], src[i]))
      return -1;
  }
  if (b->want_stats) {
    mem_stats_shared(b, m, dst, in->copy.size);
    mem_stats_global(b, m, src, in->copy.size, false);
  }
  return 0;
}

int
async_commit(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m) w->group[i]++;
  return 0;
}

/* With `all`, copies not committed are waited for too. */
int
async_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  size_t keep = 0;
  for (size_t i = 0; i < w->npending; i++) {
    const Pending *p = &w->pending[i];
    bool committed = in->wait.all || p->group < w->group[p->lane];
    if (!(m >> p->lane & 1) || !committed || (!in->wait.all && w->group[p->lane] - p->group <= in->wait.pending)) {
      w->pending[keep++] = *p;
      continue;
    }
    memcpy(b->shared + p->dst, p->data, p->size);
    if (b->check)
      shadow_landed(b, w, p->pc, p->lane, p->dst, p->size);
  }
  w->npending = keep;
  return 0;
}
