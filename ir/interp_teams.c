/* interp_teams.c - the teams of a program: whose turn it is, and what each knows of the others.
 *
 * Time is the number of ops that have run. A team has a clock for each team: what that one did up to then has happened before all that
 * this one does from here on. Its clock for itself is the time of its last barrier: what its threads did since, others of its threads may
 * not have seen (where barriers are not checked that does not matter). Teams start with what is known when the warps part, and know all
 * when they have met again.
 *
 * A region of a warp_specialize is an actor. They take turns: each until it cannot go on, or its slice is used up (it may look at
 * global memory again and again until another team writes there); or at random, as InterpOptions.seed says. What one run does not
 * meet, another may: right is a program that says the same for all seeds. */
#include "interp_run.h"
#include <stdio.h>

enum { SLICE = 4096, RANDOM_SLICE = 24 };

/* ---- clocks ---- */

Actor *
interp_actor(Interp *in, u32 team)
{
  Actor *a = NEW(in->arena, Actor);
  a->team = team;
  a->known = NEW_ARRAY(in->arena, u64, in->nteams);
  for (u32 t = 0; t < in->nteams; t++)
    a->known[t] = in->now;
  return a;
}

void
interp_program_begins(Interp *in)
{
  for (u32 t = 0; t < in->nteams; t++)
    in->actor->known[t] = in->now;
}

void
interp_meet(Interp *in)
{
  in->actor->known[in->actor->team] = in->now;
}

bool
interp_ordered(const Interp *in, u32 team, u64 when)
{
  const Actor *a = in->actor;
  return when <= a->known[team] || (team == a->team && !in->opt->barriers);
}

bool
interp_clash(Interp *in, const Op *op, const Op *other, u32 team, const char *access, const char *memory, const char *did)
{
  bool own = team == in->actor->team;
  interp_fault(in, op, "%s %s that %s %s with no %s between", access, memory, own ? "other threads" : "another team", did,
               own || !team ? "barrier" : "mbarrier");
  in->err->other = other->span;
  return false;
}

/* ---- turns ---- */

/* What an actor does not do any more, in words. */
static void
put_place(Buf *b, const Interp *in, const Actor *a)
{
  if (in->nteams > 1 && a->team)
    buf_printf(b, " region %u", a->team - 1);
  else
    buf_puts(b, " the program");
  if (!a->waits) {
    buf_puts(b, " has ended");
    return;
  }
  SourceLoc at = source_locate(in->func->module->ctx, a->waits->span.lo);
  buf_printf(b, " waits at %s:%u", at.file ? at.file : "?", at.line);
}

Flow
interp_stuck(Interp *in, const Actor *actors, u32 n)
{
  Buf b = {.arena = in->arena};
  const Op *first = NULL, *second = NULL;
  for (u32 i = 0; i < n; i++) {
    const Op *waits = actors[i].waits;
    second = first && !second ? waits : second;
    first = first ? first : waits;
    buf_puts(&b, i ? ";" : "");
    put_place(&b, in, &actors[i]);
  }
  interp_fault(in, first, "deadlock: no team can go on:%s", buf_str(&b));
  in->err->other = second ? second->span : (Span){0};
  return FLOW_FAULT;
}

/* Up to so many ops of an actor; *moved: it has done something. */
static Flow
take_turn(Interp *in, Actor *a, u64 slice, bool *moved)
{
  Flow flow = FLOW_NEXT;
  in->actor = a;
  a->waits = NULL;
  *moved = false;
  while (flow == FLOW_NEXT && a->frames.len && slice--) {
    flow = interp_advance(in);
    *moved |= flow != FLOW_WAIT;
  }
  return flow;
}

typedef struct Turns { Actor *actors; u32 n, next; u64 random; u32 live, stuck; } Turns;   /* live, stuck: a bit each */

/* Of those who may be able to go on. */
static u32
whose_turn(Turns *t)
{
  u32 i = t->next;
  if (t->random) {
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    i = (u32)(t->random >> 33);
  }
  for (i %= t->n; !((t->live & ~t->stuck) >> i & 1); i = (i + 1) % t->n)
    ;
  t->next = i + 1;
  return i;
}

static Flow
run_teams(Interp *in, Turns *t)
{
  Flow flow = FLOW_NEXT;
  while (t->live && flow != FLOW_FAULT) {
    bool moved;
    u32 i = whose_turn(t);
    Actor *a = &t->actors[i];
    flow = take_turn(in, a, t->random ? 1 + (t->random >> 40) % RANDOM_SLICE : SLICE, &moved);
    t->stuck = moved ? 0 : t->stuck;
    t->stuck |= flow == FLOW_WAIT ? 1u << i : 0;
    t->live &= a->frames.len ? UINT32_MAX : ~(1u << i);
    if (flow == FLOW_NEXT && !a->frames.len && a->copies.len)
      flow = interp_fault(in, a->copies.data[0].op, "the region ends while this copy is still under way");
    if (t->live && t->stuck == t->live)
      flow = interp_stuck(in, t->actors, t->n);
  }
  return flow == FLOW_FAULT ? FLOW_FAULT : FLOW_NEXT;
}

/* What the warps of the program did before they part is known where they have met since, or nobody asks. */
static Actor
team_of_region(Interp *in, const Op *op, u32 r)
{
  Actor *all = in->actor, a = *interp_actor(in, r + 1);
  a.known[0] = in->opt->barriers ? all->known[0] : in->now;
  in->actor = &a;
  interp_enter(in, op->regions[r]);
  in->actor = all;
  return a;
}

Flow
interp_warp_specialize(Interp *in, const Op *op)
{
  Actor *all = in->actor;
  Turns t = {.actors = NEW_ARRAY(in->arena, Actor, op->nregions), .n = op->nregions, .random = in->opt->seed,
             .live = (u32)((1ull << op->nregions) - 1)};
  if (all->copies.len)
    return interp_fault(in, op, "the program's warps part while copies of theirs are still under way");
  for (u32 r = 0; r < op->nregions; r++)
    t.actors[r] = team_of_region(in, op, r);
  Flow flow = run_teams(in, &t);
  in->actor = all;
  interp_program_begins(in);
  return flow;
}
