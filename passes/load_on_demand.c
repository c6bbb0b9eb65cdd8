/* load_on_demand.c - shared loads that their dot carries out itself, fragment by fragment as it goes.
 * Needs phase sched, after insert_barriers; keeps it. Sets `on_demand` on shared_load.
 *
 * A load in front of a dot on tensor cores could be done where it stands: all fragments are in registers then, and the first
 * instruction waits for the last of them. If the dot loads each fragment a few instructions before the one that takes it, few
 * are held at a time, and the loads overlap with the work. So a load that only one dot takes is left to that dot, unless
 * something between them touches shared memory or waits for other threads (the dot would read too late), or is another dot: that
 * one is there to overlap with the loads, as prefetch_slices arranges it, and they happen where they stand.
 *
 * What an op between them does to shared memory is known when barriers and scratch memory are, so this is the last pass. */
#include "access.h"
#include "internal.h"

static void
mark(Op *op, void *user)
{
  Ctx *c = user;
  if (op->code == OP_SHARED_LOAD && target_has(c->target, F_LDMATRIX) && !access_on_demand_obstacle(c, op))
    op_set_int(op, AT_ON_DEMAND, 1);
}

void
pass_load_on_demand(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], mark, c);
}
