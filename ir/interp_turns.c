/* interp_turns.c - whose turn it is: of the programs of a cluster, and of the regions of each.
 *
 * An actor goes on until it cannot, or its slice is used up (it may look at global memory again and again until another writes there);
 * or for as long as InterpOptions.seed says, which also chooses the next. What one run does not meet, another may: right is a program
 * that says the same for all seeds. */
#include "interp_run.h"

enum { SLICE = 4096, RANDOM_SLICE = 24 };

/* ---- nobody can go on ---- */

/* Why an actor does not go on, in words. */
static void
put_place(Buf *b, Interp *in, Actor *a)
{
  const u32 *at = a->program->at;
  if (in->nprograms > 1)
    buf_printf(b, " program (%u, %u, %u)%s", at[0], at[1], at[2], a->region ? "," : "");
  if (a->region)
    buf_printf(b, " region %u", a->region - 1);
  else if (in->nprograms == 1)
    buf_puts(b, " the program");
  if (a->ended) {
    buf_puts(b, " has ended");
    return;
  }
  SourceLoc where = source_locate(in->func->module->ctx, a->waits->span.lo);
  buf_printf(b, " waits at line %u", where.line);
  interp_switch(in, a);
  if (a->waits->code == OP_MBARRIER_WAIT)
    interp_put_wait(b, in, a->waits);
}

/* All teams of the cluster, those of a program that runs regions without that of all its warps. */
static Flow
all_stuck(Interp *in)
{
  Buf b = {.arena = in->arena};
  const Op *wait[2] = {NULL, NULL};
  for (u32 p = 0; p < in->nprograms; p++)
    for (u32 r = 0; r < (in->programs[p].regions ? in->nparts - 1 : 1); r++) {
      Actor *a = in->programs[p].regions ? &in->programs[p].regions[r] : in->programs[p].all;
      if (!a->ended)
        wait[wait[0] != NULL] = wait[1] ? wait[1] : a->waits;
      buf_puts(&b, b.len ? ";" : "");
      put_place(&b, in, a);
    }
  interp_fault(in, wait[0], "deadlock: no team can go on:%s", buf_str(&b));
  in->err->other = wait[1] ? wait[1]->span : (Span){0};
  return FLOW_FAULT;
}

/* ---- turns ---- */

/* Up to so many ops of the actor; *moved: it has done something. */
static Flow
take_turn(Interp *in, u64 slice, bool *moved)
{
  Actor *a = in->actor;
  Flow flow = FLOW_NEXT;
  a->waits = NULL;
  *moved = false;
  while (flow == FLOW_NEXT && a->frames.len && slice--) {
    flow = interp_advance(in);
    *moved |= flow != FLOW_WAIT;
  }
  if (flow == FLOW_RETURN)
    a->frames.len = 0;
  return flow;
}

/* Of those who may be able to go on. */
static Actor *
whose_turn(Interp *in)
{
  u32 i = in->next, n = in->turns.len;
  if (in->random && n > 1) {
    in->random = in->random * 6364136223846793005u + 1442695040888963407u;
    i = (u32)(in->random >> 33);
  }
  for (i %= n; in->turns.data[i]->stuck; i = (i + 1) % n)
    ;
  in->next = i + 1;
  return in->turns.data[i];
}

static bool
any_can(const Interp *in)
{
  for (u32 i = 0; i < in->turns.len; i++)
    if (!in->turns.data[i]->stuck)
      return true;
  return false;
}

static void
forget_stuck(Interp *in)
{
  for (u32 i = 0; i < in->turns.len; i++)
    in->turns.data[i]->stuck = false;
}

void
interp_drop_turn(Interp *in, const Actor *a)
{
  u32 i = 0;
  while (in->turns.data[i] != a)
    i++;
  memmove(in->turns.data + i, in->turns.data + i + 1, (in->turns.len - i - 1) * sizeof *in->turns.data);
  in->turns.len--;
}

/* The actor has come to its end. */
static Flow
actor_ended(Interp *in)
{
  Actor *a = in->actor;
  a->ended = true;
  interp_drop_turn(in, a);
  return a->region ? interp_region_ended(in) : interp_program_ended(in);
}

Flow
interp_take_turns(Interp *in)
{
  Flow flow = FLOW_NEXT;
  while (in->turns.len && flow != FLOW_FAULT) {
    bool moved;
    Actor *a = whose_turn(in);
    interp_switch(in, a);
    flow = take_turn(in, in->random ? 1 + (in->random >> 40) % RANDOM_SLICE : SLICE, &moved);
    if (moved)
      forget_stuck(in);
    a->stuck = flow == FLOW_WAIT;
    if (flow != FLOW_FAULT && !a->frames.len)
      flow = actor_ended(in);
    if (flow != FLOW_FAULT && in->turns.len && !any_can(in))
      flow = all_stuck(in);
  }
  return flow == FLOW_FAULT ? FLOW_FAULT : FLOW_NEXT;
}
