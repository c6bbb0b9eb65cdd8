/* cluster.c - barrier.cluster in a cluster of one block (PTX ISA, "barrier.cluster"): every thread arrives, and may do other things
 * before it waits for those that have not. Threads that have ended count as arrived. */
#include "internal.h"

static bool
all_arrived(const Block *b)
{
  bool any = false;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    if (b->warp[i].live & ~b->warp[i].cluster_now)
      return false;
    any |= b->warp[i].cluster_now != 0;
  }
  return any;
}

void
cluster_settle(Block *b)
{
  if (!b->clustered || !all_arrived(b))
    return;
  for (uint32_t i = 0; i < b->nwarps; i++)
    b->warp[i].cluster_now = 0;
  if (b->check)
    clock_merge(b, &b->cluster_done, &b->cluster_know_done, &b->cluster_clocks, b->cluster_know);
  b->events++;
  wake_waiters(b, ON_CLUSTER);
}

void
cluster_clear(Block *b)
{
  know_drop(b->cluster_know);
  know_drop(b->cluster_know_done);
  b->cluster_know = b->cluster_know_done = NULL;
  b->cluster_clocks = b->cluster_done = (Clocks){{{0}}};
  b->clustered = false;
}

int
cluster_arrive(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (w->cluster_lanes & m)
    return sim_fault(b, w, in, __builtin_ctz(w->cluster_lanes & m), SIM_E_BARRIER, 0,
                     "lanes 0x%08x of warp %u arrive at the cluster's barrier, and have not waited since they did so before",
                     w->cluster_lanes & m, w->index);
  b->clustered = true;
  w->cluster_lanes |= m;
  w->cluster_now |= m;
  b->worker->stats.barriers++;
  if (b->check && !in->cluster.relaxed)
    clock_arrive(b, w, &b->cluster_clocks, &b->cluster_know);
  cluster_settle(b);
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
  char at[200];
  text_add(t, "at the cluster's barrier (%s)", sim_loc_text(b, s->pc, at, sizeof at));
  for (uint32_t i = 0; i < b->nwarps; i++)
    if (b->warp[i].live & ~b->warp[i].cluster_now) {
      text_add(t, " for warp %u", i);
      return;
    }
}
