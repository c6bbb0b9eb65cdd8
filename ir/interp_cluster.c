/* interp_cluster.c - programs of a cluster: they run at the same time, reach each other's shared memory, and meet.
 *
 * A program without a cluster is one of its own. What two programs of a cluster do to the same byte, shared or global, has to be ordered as
 * what two teams do: by a barrier of the cluster or by mbarriers. A relaxed barrier tells only that what came before it is over.
 *
 * In IR that has all its barriers (InterpOptions.barriers) a program must know, when it ends, that others use its shared memory no more,
 * and an mbarrier of another program has to be known as initialised, by such a barrier, or by a fence in front of a relaxed one. In
 * other IR that is insert_barriers' to see to: shared memory lasts as long as the cluster, and who arrives at an mbarrier that its program
 * has yet to initialise waits for that. */
#include "interp_run.h"

typedef struct Visit { const Op *op; u64 when; } Visit;   /* NULL: there was none */

void
interp_cluster_make(Interp *in)
{
  in->nprograms = func_cluster(in->func);
  in->nparts = 1 + (func_teams(in->func) ? func_teams(in->func)->nregions : 0);
  in->nteams = in->nprograms * in->nparts;
  interp_count_clocks(in);
  in->programs = NEW_ARRAY(in->arena, Program, in->nprograms);
  in->meeting.left = interp_clocks(in);
  in->meeting.ended = interp_clocks(in);
  for (u32 i = 0; i < in->nprograms; i++) {
    Program *p = &in->programs[i];
    p->rank = i;
    p->all = NEW(in->arena, Actor);
    *p->all = (Actor){.program = p, .team = i * in->nparts, .clocks = interp_clocks(in)};
    p->elems = NEW_ARRAY(in->arena, u64 *, in->func->nvalues);
    p->spare = NEW_ARRAY(in->arena, u64 *, in->func->nvalues);
    p->made = NEW_ARRAY(in->arena, u8, in->func->nvalues);
    p->visits = NEW_ARRAY(in->arena, Visit, in->nteams);
    p->shared = interp_shared_new(in);
  }
}

void
interp_switch(Interp *in, Actor *a)
{
  in->actor = a;
  in->program = a->program;
  in->elems = a->program->elems;
  in->spare = a->program->spare;
  in->shared = a->program->shared;
}

/* The program has done nothing, and all that others did before has happened. */
static void
begin_program(Interp *in, Program *p, const u32 first[3])
{
  Actor *a = p->all;
  const u32 *c = in->func->cluster;
  const u32 at[3] = {first[0] + p->rank % c[0], first[1] + p->rank / c[0] % c[1], first[2] + p->rank / c[0] / c[1]};
  memcpy(p->at, at, sizeof at);
  memset(p->visits, 0, in->nteams * sizeof *p->visits);
  memset(p->made, 0, in->func->nvalues);
  p->regions = NULL;
  memset(a->clocks.known, 0, 3 * in->nclocks * sizeof *a->clocks.known);
  for (u32 t = 0; t < in->nteams; t++)
    a->clocks.known[t] = a->clocks.over[t] = in->now;
  a->frames.len = a->copies.len = a->stores.len = 0;
  a->group = a->store_group = a->products = a->fenced = a->meeting = 0;
  a->stuck = a->ended = false;
  interp_switch(in, a);
  interp_shared_reset(in);
  vec_push(in->arena, &in->turns, a);
}

void
interp_cluster_begins(Interp *in, const u32 first[3])
{
  in->mbars.len = in->flying.len = in->turns.len = in->next = 0;
  in->random = in->opt->seed;
  in->began = in->now;
  in->meeting.arrived = 0;
  in->meeting.over = 0;
  memset(in->meeting.left.known, 0, 3 * in->nclocks * sizeof(u64));
  memset(in->meeting.ended.known, 0, 3 * in->nclocks * sizeof(u64));
  for (u32 i = 0; i < in->nprograms; i++)
    begin_program(in, &in->programs[i], first);
}

Flow
interp_cluster_rank(Interp *in, const Op *op)
{
  const Attr *axis = op_attr(op, AT_AXIS);
  u64 *out = interp_make(in, op, op_result(op));
  if (!out)
    return FLOW_FAULT;
  out[0] = axis ? in->program->at[axis->i] % in->func->cluster[axis->i] : in->program->rank;
  return FLOW_NEXT;
}

/* ---- meeting ---- */

static void
end_meeting(Interp *in)
{
  Meeting *m = &in->meeting;
  u32 ended = 0;
  for (u32 i = 0; i < in->nprograms; i++)
    ended += in->programs[i].all->ended;
  if (!m->arrived || m->arrived + ended < in->nprograms)
    return;
  m->arrived = 0;
  m->over++;
  interp_learn(in, &m->ended, &m->left);
  for (u32 i = 0; i < in->turns.len; i++)
    in->turns.data[i]->stuck = false;
}

static void
arrive(Interp *in, bool relaxed)
{
  Actor *a = in->actor;
  Meeting *m = &in->meeting;
  a->meeting = m->over + 1;
  m->arrived++;
  if (!relaxed)
    interp_leave(in, &m->left);
  interp_leave_over(in, &m->left);
  end_meeting(in);
}

Flow
interp_cluster_barrier(Interp *in, const Op *op)
{
  Actor *a = in->actor;
  if (!a->meeting)
    arrive(in, op_int(op, AT_RELAXED, 0));
  if (in->meeting.over < a->meeting)
    return FLOW_WAIT;
  a->meeting = 0;
  interp_learn(in, &a->clocks, &in->meeting.ended);
  return FLOW_NEXT;
}

/* ---- shared memory of others ---- */

Flow
interp_shared_remote(Interp *in, const Op *op)
{
  i64 rank = scalar_int(DT_I32, *interp_get(in, OPERAND(op, SHARED_REMOTE, rank)));
  u64 *view = interp_make(in, op, op_result(op));
  if (!view)
    return FLOW_FAULT;
  if (rank < 0 || rank >= (i64)in->nprograms)
    return interp_fault(in, op, "program %lld of a cluster of %u", (long long)rank, in->nprograms);
  view[0] = *interp_get(in, OPERAND(op, SHARED_REMOTE, b));
  view[1] = (u64)rank + 1;
  return FLOW_NEXT;
}

const Program *
interp_program_of(const Interp *in, const Value *b)
{
  u64 rank = interp_get(in, b)[1];
  return rank ? &in->programs[rank - 1] : in->program;
}

bool
interp_reach(Interp *in, const Op *op, u32 rank)
{
  Program *p = &in->programs[rank];
  if (p == in->program)
    return true;
  if (in->opt->barriers && in->actor->clocks.over[p->all->team] <= in->began)
    return interp_fault(in, op, "shared memory of program (%u, %u, %u), which may not have begun by then: no barrier of the cluster comes "
                        "before", p->at[0], p->at[1], p->at[2]) == FLOW_NEXT;
  if (in->opt->barriers && p->all->ended)
    return interp_fault(in, op, "shared memory of program (%u, %u, %u), which has ended", p->at[0], p->at[1], p->at[2]) == FLOW_NEXT;
  p->visits[in->actor->team] = (Visit){op, in->now};
  in->shared = p->shared;
  return interp_shared_cover(in, op, in->program);
}

void
interp_reached(Interp *in)
{
  in->shared = in->program->shared;
}

/* Others have to be known to use its shared memory no more. */
static Flow
check_visits(Interp *in)
{
  const Program *p = in->program;
  for (u32 t = 0; in->opt->barriers && t < in->nteams; t++)
    if (p->visits[t].op && p->visits[t].when > p->all->clocks.over[t])
      return interp_fault(in, p->visits[t].op, "shared memory of program (%u, %u, %u), which may have ended by then: no barrier of the "
                          "cluster comes behind", p->at[0], p->at[1], p->at[2]);
  return FLOW_NEXT;
}

Flow
interp_program_ended(Interp *in)
{
  if (interp_tma_end(in) == FLOW_FAULT || check_visits(in) == FLOW_FAULT)
    return FLOW_FAULT;
  end_meeting(in);
  return FLOW_NEXT;
}
