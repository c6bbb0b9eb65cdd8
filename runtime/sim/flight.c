/* flight.c - what is in flight and ends at an mbarrier.
 *
 * It lands as late as is legal: at the wait that looks for it, or, where that is parked, when no warp can go on without it. So a
 * program that relies on a copy's being fast is seen to do so. */
#include "internal.h"

int
flight_add(Block *b, Warp *w, const Insn *in, const Flight *f)
{
  if (!sim_vec_grow(&b->flight, &b->flight_cap, b->nflight + 1, sizeof *b->flight))
    return sim_fault(b, w, in, (int)f->lane, SIM_E_MEMORY, 0, "out of memory");
  Flight *to = &b->flight[b->nflight++];
  *to = *f;
  to->warp = w->index;
  to->pc = (uint32_t)(in - b->kernel->code);
  return 0;
}

static int
land(Block *b, const Flight *f)
{
  Warp *w = &b->warp[f->warp];
  uint32_t segment = b->check ? agent_segment(b, b->mbar[f->mbar]->agent) : 0;
  if (async_land(b, w, f->lane, f->serial, segment))
    return -1;
  return mbar_arrived(b, f);
}

int
flights_land(Block *b, uint32_t mbar)
{
  for (size_t i = 0; i < b->nflight;) {
    Flight f = b->flight[i];
    if (f.mbar != mbar) {
      i++;
      continue;
    }
    for (size_t j = i; j + 1 < b->nflight; j++)
      b->flight[j] = b->flight[j + 1];
    b->nflight--;
    if (land(b, &f))
      return -1;
  }
  return 0;
}

static bool
awaited(const Block *b, uint32_t at)
{
  for (uint32_t i = 0; i < b->nwarps; i++)
    for (uint32_t j = 0; j < b->warp[i].nsplit; j++) {
      const Split *s = &b->warp[i].split[j];
      if (s->state == SPLIT_WAIT && (s->on == at || s->on == ON_ANY))
        return true;
    }
  return false;
}

int
flights_land_waited(Block *b)
{
  int landed = 0;
  for (size_t i = 0; i < b->nflight;) {
    uint32_t mbar = b->flight[i].mbar;
    if (!awaited(b, b->mbar[mbar]->at)) {
      i++;
      continue;
    }
    if (flights_land(b, mbar))
      return -1;
    landed = 1;
    i = 0;
  }
  return landed;
}

int
flights_ended(Block *b)
{
  if (!b->nflight)
    return 0;
  const Flight *f = &b->flight[0];
  return sim_fault(b, &b->warp[f->warp], &b->kernel->code[f->pc], (int)f->lane, SIM_E_ASYNC, b->mbar[f->mbar]->at,
                   "the program ends, and the copies issued here, which arrive at the mbarrier at shared+0x%x, have not been waited for",
                   b->mbar[f->mbar]->at);
}
