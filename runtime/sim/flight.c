/* flight.c - what is in flight, and ends at an mbarrier, maybe another block's, or with a bulk group of its thread.
 *
 * It lands as late as is legal: at the wait that looks for it, or, where that is parked, when no warp can go on without it. So a
 * program that relies on a copy's being fast is seen to do so. By SimOptions.early_copies it lands when it is issued. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

/* The thread's copies up to those that arrive with f, as its mbarrier writes them. */
static int
land_copies(Block *b, const Flight *f)
{
  uint32_t segment = b->check ? agent_segment(b, b->mbar[f->mbar]->agent) : 0;
  return async_land(b, &b->warp[f->warp], f->lane, f->serial, segment);
}

/* The same of arrivals in front of f, which are to be seen by who waits for those. */
static int
land_before(Block *b, const Flight *f)
{
  int rc = 0;
  for (size_t i = 0; i < b->nflight && !rc; i++) {
    const Flight *e = &b->flight[i];
    if (e->kind == FLIGHT_COPIES && e->warp == f->warp && e->lane == f->lane && e->serial < f->serial)
      rc = land_copies(b, e);
  }
  return rc;
}

static int
land(Block *b, const Flight *f)
{
  if (b->launch->turns)
    b->launch->changes++;
  if (f->kind != FLIGHT_COPIES) {
    (f->kind == FLIGHT_STORE ? store_move : bulk_move)(b, f);
    return f->mbar == NO_MBAR ? 0 : mbar_completed(b, f, f->bytes);
  }
  return land_before(b, f) || land_copies(b, f) ? -1 : mbar_arrived(b, f);
}

static void
remove_flight(Block *b, size_t i)
{
  memmove(b->flight + i, b->flight + i + 1, (--b->nflight - i) * sizeof *b->flight);
}

int
flight_add(Block *b, Warp *w, const Insn *in, Block *home, const Flight *f)
{
  if (!sim_vec_grow(&home->flight, &home->flight_cap, home->nflight + 1, sizeof *home->flight))
    return sim_fault(b, w, in, (int)f->lane, SIM_E_MEMORY, 0, "out of memory");
  Flight *to = &home->flight[home->nflight++];
  *to = *f;
  to->by = b;
  to->warp = w->index;
  to->pc = (uint32_t)(in - b->kernel->code);
  if (!b->launch->machine->opt.early_copies)
    return 0;
  Flight landing = *to;
  home->nflight--;
  return land(home, &landing);
}

/* What is asked for: all that ends at an mbarrier, or (NO_MBAR) a thread's groups below a number. */
typedef struct Asked { uint32_t mbar, warp, lane, below; } Asked;

static int
land_asked(Block *b, const Asked *a)
{
  for (size_t i = 0; i < b->nflight;) {
    Flight f = b->flight[i];
    bool groups = a->mbar == NO_MBAR;
    if (f.mbar != a->mbar || (groups && (f.warp != a->warp || f.lane != a->lane || f.serial >= a->below))) {
      i++;
      continue;
    }
    remove_flight(b, i);
    if (land(b, &f))
      return -1;
  }
  return 0;
}

int
flights_land(Block *b, uint32_t mbar)
{
  return land_asked(b, &(Asked){.mbar = mbar});
}

int
flights_land_groups(Block *b, const Warp *w, uint32_t lane, uint32_t below)
{
  return land_asked(b, &(Asked){NO_MBAR, w->index, lane, below});
}

int
flights_of_landed(Block *b, const Warp *w, uint32_t m)
{
  for (size_t i = 0; i < b->nflight;) {
    Flight f = b->flight[i];
    if (f.kind != FLIGHT_COPIES || f.warp != w->index || !(m >> f.lane & 1) || async_pending(w, f.lane, f.serial)) {
      i++;
      continue;
    }
    remove_flight(b, i);
    if (mbar_released(b, &f))
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
    if (mbar == NO_MBAR || !awaited(b, b->mbar[mbar]->at)) {
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
  const Flight *f = NULL;
  for (size_t i = 0; i < b->nflight && !f; i++)
    if (b->flight[i].mbar != NO_MBAR)
      f = &b->flight[i];
    else
      bulk_move(b, &b->flight[i]);
  if (!f)
    return 0;
  char program[60] = "the program", whose[48];
  if (f->by != b)
    snprintf(program, sizeof program, "program %s", sim_program_text(b->launch, b->index, whose, sizeof whose));
  return sim_fault(f->by, &f->by->warp[f->warp], &b->kernel->code[f->pc], (int)f->lane, SIM_E_ASYNC, b->mbar[f->mbar]->at,
                   "%s ends, and the copies issued here, which arrive at its mbarrier at shared+0x%x, have not been waited for", program,
                   b->mbar[f->mbar]->at);
}
