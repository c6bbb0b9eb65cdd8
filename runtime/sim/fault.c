/* fault.c - what is wrong with an access to memory, in words. */
#include "internal.h"
#include <stdio.h>

/* "shared+0x10" or the address. */
static const char *
place_text(const Access *a, uint64_t off, char *buf, size_t n)
{
  if (a->s->shared)
    snprintf(buf, n, "shared+0x%llx", (unsigned long long)off);
  else
    snprintf(buf, n, "global address 0x%llx", (unsigned long long)(uintptr_t)(a->s->memory + off));
  return buf;
}

static uint64_t
lane_off(const Access *a, uint32_t lane)
{
  return a->off + (a->same ? 0 : (uint64_t)(lane - a->lane) * a->size);
}

int
fault_race(const Access *a, uint32_t lane, uint64_t off, uint64_t record, bool wrote)
{
  char me[48], them[48], where[300], at[64], program[64] = "";
  Block *b = a->b;
  const Segment *s = record_segment(b->launch, record);
  const uint32_t *g = b->launch->grid;
  if (s->block != b->index) {
    b->launch->again = true;
    snprintf(program, sizeof program, "program (%u,%u,%u), ", (uint32_t)(s->block % g[0]), (uint32_t)(s->block / g[0] % g[1]),
             (uint32_t)(s->block / g[0] / g[1]));
  }
  return sim_fault(b, a->w, a->in, (int)lane, SIM_E_RACE, lane_off(a, lane),
                   "%s race: thread %s %s %u bytes at %s that %sthread %s %s at %s with no %s between",
                   a->s->shared ? "shared-memory" : "global-memory", sim_thread_text(b, a->w->index * LANES + lane, me, sizeof me),
                   a->write ? "writes" : "reads", a->size, place_text(a, lane_off(a, lane), at, sizeof at), program,
                   sim_thread_text(b, s->warp * LANES + (uint32_t)(record >> PC_BITS & (LANES - 1)), them, sizeof them),
                   wrote ? "wrote" : "read", sim_loc_text(b, (uint32_t)record & PC_MASK, where, sizeof where),
                   s->block != b->index ? "synchronisation" : "barrier");
}

int
fault_pending(const Access *a, uint32_t lane, uint64_t off, uint64_t record)
{
  char me[48], where[300], at[64];
  return sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_ASYNC, lane_off(a, lane),
                   "thread %s %s %u bytes at %s, where an asynchronous copy issued at %s has not been waited for",
                   sim_thread_text(a->b, a->w->index * LANES + lane, me, sizeof me), a->write ? "writes" : "reads", a->size,
                   place_text(a, lane_off(a, lane), at, sizeof at), sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where));
}

int
fault_unwritten(const Access *a, uint32_t lane, uint64_t off)
{
  char me[48], at[64];
  a->b->launch->again |= !a->s->shared;
  return sim_fault(a->b, a->w, a->in, (int)lane, SIM_E_UNINIT, lane_off(a, lane), "thread %s reads %u bytes at %s that %s",
                   sim_thread_text(a->b, a->w->index * LANES + lane, me, sizeof me), a->size, place_text(a, lane_off(a, lane), at, sizeof at),
                   a->s->shared ? "no thread of the block has written" : "nobody has written");
}

int
fault_overtaken(const Access *a, uint64_t record)
{
  char where[300], at[64];
  return sim_fault(a->b, a->w, a->in, (int)a->lane, SIM_E_ASYNC, a->off,
                   "an asynchronous copy of %u bytes at %s was not waited for when they were written at %s", a->size,
                   place_text(a, a->off, at, sizeof at), sim_loc_text(a->b, (uint32_t)record & PC_MASK, where, sizeof where));
}

int
fault_all_wait(Block *const *block, uint32_t n)
{
  Block *b = block[0];
  const Launch *l = b->launch;
  char list[300] = "", at[200];
  size_t used = 0;
  Warp *first = NULL;
  for (uint32_t i = 0; i < n && i < 4 && used < sizeof list; i++) {
    Warp *w = block[i]->warp;
    while (w->state != W_RUN)
      w++;
    first = first ? first : w;
    sim_loc_text(block[i], w->split[0].pc, at, sizeof at);
    used += (size_t)snprintf(list + used, sizeof list - used, "%s program (%u,%u,%u) at %s", i ? "," : "", block[i]->id[0],
                             block[i]->id[1], block[i]->id[2], at);
  }
  if (n > 4 && used < sizeof list)
    used += (size_t)snprintf(list + used, sizeof list - used, " and %u more", n - 4);
  if (l->next_block < l->nblocks && used < sizeof list)
    snprintf(list + used, sizeof list - used, "; %llu programs can start only when others end: %u are resident at a time",
             (unsigned long long)(l->nblocks - l->next_block), n);
  return sim_fault(b, first, &b->kernel->code[first->split[0].pc], __builtin_ctz(first->split[0].mask), SIM_E_DEADLOCK, 0,
                   "deadlock between programs: all wait for others:%s", list);
}
