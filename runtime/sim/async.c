/* async.c - cp.async. A copy reads its source when issued and lands in shared memory when the thread waits
 * for its group: until then the destination is pending (check.c) and keeps its old bytes. */
#include "internal.h"
#include <string.h>

/* ---- issue ---- */

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

/* The bytes that a copy reads, and what it has to find unchanged when it is waited for. */
static int
read_source(Block *b, Warp *w, const Insn *in, Pending *p)
{
  memset(p->data, 0, sizeof p->data);
  if (!p->bytes)
    return 0;
  if (p->src & (p->size - 1u))
    return mem_host(b, w, in, p->lane, SP_GLOBAL, p->src, p->size, false) ? 0 : -1;
  const uint8_t *first = mem_host(b, w, in, p->lane, SP_GLOBAL, p->src, 1, false);
  if (!first || !mem_host(b, w, in, p->lane, SP_GLOBAL, p->src + p->bytes - 1, 1, false) ||
      mem_check(b, w, in, &(LaneAccess){.space = SP_GLOBAL, .addr = p->src, .lane = p->lane, .size = p->bytes}))
    return -1;
  memcpy(p->data, first, p->bytes);
  p->seen = mem_writes(b, p->src, p->bytes).sum;
  return 0;
}

static int
copy_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t dst, uint64_t src)
{
  if (!sim_vec_grow(&w->pending, &w->pending_cap, w->npending + 1, sizeof *w->pending))
    return sim_fault(b, w, in, (int)lane, SIM_E_MEMORY, 0, "out of memory");
  Pending *p = &w->pending[w->npending];
  *p = (Pending){.group = w->group[lane], .dst = (uint32_t)dst, .lane = (uint8_t)lane, .size = in->copy.size, .src = src,
                 .bytes = (uint8_t)copy_bytes(w, &in->copy, lane), .pc = (uint32_t)(in - b->kernel->code), .serial = w->serial};
  LaneAccess target = {.space = SP_SHARED, .addr = dst, .lane = lane, .size = p->size, .write = true, .pending = true};
  if (read_source(b, w, in, p) || !mem_host(b, w, in, lane, SP_SHARED, dst, p->size, true) || mem_check(b, w, in, &target))
    return -1;
  w->npending++;
  w->serial++;
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

/* ---- wait ---- */

/* The copy may have read its source until now: nobody may have written there since it was issued, nor may before others know. */
static int
check_source(Block *b, Warp *w, const Pending *p)
{
  const Insn *in = &b->kernel->code[p->pc];
  if (!b->check || !p->bytes || !mem_host(b, w, in, p->lane, SP_GLOBAL, p->src, 1, false))
    return 0;
  MemWrites now = mem_writes(b, p->src, p->bytes);
  LaneAccess source = {.space = SP_GLOBAL, .addr = p->src, .lane = p->lane, .size = p->bytes};
  if (now.sum != p->seen)
    return mem_overtaken(b, w, in, &source, now.newest);
  return mem_check(b, w, in, &source);
}

/* segment: that it is written in; 0: the warp's */
static int
land(Block *b, Warp *w, const Pending *p, uint32_t segment)
{
  if (check_source(b, w, p))
    return -1;
  memcpy(b->shared + p->dst, p->data, p->size);
  if (b->check)
    cells_land(b, segment ? segment : segment_current(b, w), p->pc, p->lane, p->dst, p->size);
  return 0;
}

/* What lands: copies that an instruction waits for, or (in NULL) those of lanes m with lower serials. */
typedef struct Landing { const Insn *in; uint32_t m, serial; } Landing;

static bool
lands(const Warp *w, const Pending *p, const Landing *l)
{
  uint32_t group = w->group[p->lane];
  if (!(l->m >> p->lane & 1))
    return false;
  if (!l->in)
    return p->serial < l->serial;
  return l->in->wait.all || (p->group < group && group - p->group > l->in->wait.pending);
}

/* segment: as for land. */
static int
land_some(Block *b, Warp *w, const Landing *l, uint32_t segment)
{
  size_t keep = 0;
  int rc = 0;
  for (size_t i = 0; i < w->npending; i++) {
    const Pending *p = &w->pending[i];
    if (!lands(w, p, l))
      w->pending[keep++] = *p;
    else if (!rc)
      rc = land(b, w, p, segment);
  }
  w->npending = keep;
  return rc;
}

/* With `all`, copies not committed are waited for too. What the thread has waited for itself it hands over where they were to arrive. */
int
async_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  return land_some(b, w, &(Landing){.in = in, .m = m}, 0) ? -1 : flights_of_landed(b, w, m);
}

bool
async_pending(const Warp *w, uint32_t lane, uint32_t serial)
{
  for (size_t i = 0; i < w->npending; i++)
    if (w->pending[i].lane == lane && w->pending[i].serial < serial)
      return true;
  return false;
}

int
async_land(Block *b, Warp *w, uint32_t lane, uint32_t serial, uint32_t segment)
{
  return land_some(b, w, &(Landing){.m = 1u << lane, .serial = serial}, segment);
}
