/* cluster.c - barrier.cluster (PTX ISA, "barrier.cluster"): every thread of a cluster arrives, and may do other things before it waits
 * for those that have not. Threads that have ended count as arrived.
 *
 * What the threads of a block know that have arrived is gathered by block, and handed out when the phase ends: clocks of its own block to
 * each, and the others' as what is known of other blocks. */
#include "internal.h"

static bool
all_arrived(const Cluster *c)
{
  bool any = false;
  for (uint32_t j = 0; j < c->n; j++)
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++) {
      const Warp *w = &c->block[j]->warp[i];
      if (w->live & ~w->cluster_now)
        return false;
      any |= w->cluster_now != 0;
    }
  return any;
}

void
cluster_settle(Cluster *c)
{
  if (!c->met || !all_arrived(c))
    return;
  if (c->block[0]->check)
    clock_meet(c);
  c->events++;
  for (uint32_t j = 0; j < c->n; j++) {
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++)
      c->block[j]->warp[i].cluster_now = 0;
    wake_waiters(c->block[j], ON_CLUSTER);
  }
}

void
cluster_clear(Block *b)
{
  know_drop(b->cluster_know);
  know_drop(b->cluster_know_done);
  b->cluster_know = b->cluster_know_done = NULL;
  b->cluster_clocks = b->cluster_done = (Clocks){{{0}}};
}

int
cluster_arrive(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (w->cluster_lanes & m)
    return sim_fault(b, w, in, __builtin_ctz(w->cluster_lanes & m), SIM_E_BARRIER, 0,
                     "lanes 0x%08x of warp %u arrive at the cluster's barrier, and have not waited since they did so before",
                     w->cluster_lanes & m, w->index);
  b->cluster->met = true;
  w->cluster_lanes |= m;
  w->cluster_now |= m;
  b->worker->stats.barriers++;
  if (b->check && !in->cluster.relaxed)
    clock_arrive(b, w, &b->cluster_clocks, &b->cluster_know);
  cluster_settle(b->cluster);
  return 0;
}

int
cluster_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (m & ~w->cluster_lanes)
    return sim_fault(b, w, in, __builtin_ctz(m & ~w->cluster_lanes), SIM_E_BARRIER, 0,
                     "lanes 0x%08x of warp %u wait at the cluster's barrier, and have not arrived", m & ~w->cluster_lanes, w->index);
  if (m & w->cluster_now) {
    w->park_on = ON_CLUSTER;
    return PARK;
  }
  w->cluster_lanes &= ~m;
  if (b->check)
    clock_join(b, w, &b->cluster_done, b->cluster_know_done);
  return 0;
}

void
cluster_wait_text(const Block *b, const Split *s, Text *t)
{
  const Cluster *c = b->cluster;
  char at[200], program[48];
  text_add(t, "at the cluster's barrier (%s)", sim_loc_text(b, s->pc, at, sizeof at));
  for (uint32_t j = 0; j < c->n; j++)
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++)
      if (c->block[j]->warp[i].live & ~c->block[j]->warp[i].cluster_now) {
        text_add(t, " for warp %u", i);
        if (c->n > 1)
          text_add(t, " of program %s", sim_program_text(b->launch, c->block[j]->index, program, sizeof program));
        return;
      }
}
