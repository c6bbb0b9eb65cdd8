/* interp_teams.c - the teams of a program: whose turn it is, and what each knows of the others.
 *
 * Time is the number of ops that have run. A team has a clock for each team: what that one did up to then has happened before all that
 * this one does from here on. Its clock for itself is the time of its last barrier: what its threads did since, others of its threads may
 * not have seen (where barriers are not checked that does not matter). Teams start with what is known when the warps part, and know all
 * when they have met again.
 *
 * What orders teams is mbarriers. One has a clock, too: the phases that have ended. Who arrives leaves there what it knows, with all that
 * it did itself, by all its warps; who waits for the phase takes it, and so what others had taken before. By a parity a wait means
 * the first phase whose end the team does not know of, or the one before; if two more have ended since, the parity means another.
 *
 * A region of a warp_specialize is an actor. They take turns: each until it cannot go on, or its slice is used up (it may look at
 * global memory again and again until another team writes there); or at random, as InterpOptions.seed says. What one run does not
 * meet, another may: right is a program that says the same for all seeds. */
#include "interp_run.h"
#include <stdio.h>

enum { SLICE = 4096, RANDOM_SLICE = 24 };

/* ---- clocks ---- */

void
interp_count_clocks(Interp *in)
{
  in->nclocks = in->nteams;
  for (const Op *op = in->func->body->first; op; op = op->next)
    if (op->code == OP_SHARED_ALLOC && op_result(op)->type->dt == DT_MBAR)
      in->nclocks += max_u32(1, op_result(op)->type->count);
}

/* All that has been done so far has happened before. */
static void
know_all(const Interp *in, Actor *a)
{
  for (u32 t = 0; t < in->nteams; t++)
    a->known[t] = in->now;
  for (u32 i = 0; i < in->mbars.len; i++)
    a->known[in->nteams + i] = in->mbars.data[i]->phase;
}

static void
merge(const Interp *in, u64 *to, const u64 *from)
{
  for (u32 i = 0; i < in->nclocks; i++)
    to[i] = from[i] > to[i] ? from[i] : to[i];
}

Actor *
interp_actor(Interp *in, u32 team)
{
  Actor *a = NEW(in->arena, Actor);
  a->team = team;
  a->known = NEW_ARRAY(in->arena, u64, in->nclocks);
  a->seen = NEW_ARRAY(in->arena, u64, in->nclocks);
  know_all(in, a);
  return a;
}

void
interp_program_begins(Interp *in)
{
  in->mbars.len = 0;
  know_all(in, in->actor);
}

void
interp_meet(Interp *in)
{
  in->actor->known[in->actor->team] = in->now;
  in->actor->seen[in->actor->team] = in->actor->fenced;
}

Flow
interp_fence(Interp *in, const Op *op)
{
  Actor *a = in->actor;
  if (strcmp(op_str(op, AT_KIND, ""), "async") != 0)
    return FLOW_NEXT;
  a->fenced = in->now;
  for (u32 t = 0; t < in->nteams; t++)
    a->seen[t] = t == a->team ? a->seen[t] : a->known[t];
  return FLOW_NEXT;
}

bool
interp_seen(const Interp *in, u32 team, u64 when)
{
  return when <= in->actor->seen[team];
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
  if (team >= in->nteams) {
    interp_fault(in, op, "%s %s that a copy %s: this team has not waited for the phase of its mbarrier", access, memory, did);
    in->err->other = other->span;
    return false;
  }
  interp_fault(in, op, "%s %s that %s %s with no %s between", access, memory, own ? "other threads" : "another team", did,
               own || !team ? "barrier" : "mbarrier");
  in->err->other = other->span;
  return false;
}

/* ---- mbarriers ---- */

static Mbar *
mbar_at(const Interp *in, u64 at)
{
  for (u32 i = 0; i < in->mbars.len; i++)
    if (in->mbars.data[i]->at == at)
      return in->mbars.data[i];
  return NULL;
}

Flow
interp_mbarrier_init(Interp *in, const Op *op)
{
  u64 at;
  if (!interp_shared_mbar_of(in, op, OPERAND(op, MBARRIER_INIT, b), true, &at))
    return FLOW_FAULT;
  const Mbar *before = mbar_at(in, at);
  if (before) {
    interp_fault(in, op, "an mbarrier that was initialised before");
    in->err->other = before->init->span;
    return FLOW_FAULT;
  }
  Mbar *m = NEW(in->arena, Mbar);
  *m = (Mbar){.at = at, .init = op, .index = in->nteams + in->mbars.len, .count = (u32)op_int(op, AT_ARRIVALS, 1)};
  m->left = NEW_ARRAY(in->arena, u64, in->nclocks);
  m->ended = NEW_ARRAY(in->arena, u64, in->nclocks);
  m->left_seen = NEW_ARRAY(in->arena, u64, in->nclocks);
  m->ended_seen = NEW_ARRAY(in->arena, u64, in->nclocks);
  in->actor->known[m->index] = 0;
  vec_push(in->arena, &in->mbars, m);
  return FLOW_NEXT;
}

/* If all have arrived, and all bytes have come. */
static void
end_phase(Interp *in, Mbar *m)
{
  if (m->arrived < m->count || m->bytes)
    return;
  m->arrived = 0;
  m->left[m->index] = ++m->phase;
  merge(in, m->ended, m->left);
  merge(in, m->ended_seen, m->left_seen);
  for (u32 i = 0; i < m->landing.len; i++)
    interp_shared_land(in, &m->landing.data[i], m->phase, m->index);
  m->landing.len = 0;
}

Mbar *
interp_mbar(Interp *in, const Op *op, const Value *b)
{
  u64 at;
  return interp_shared_mbar_of(in, op, b, false, &at) ? mbar_at(in, at) : NULL;
}

void
interp_mbar_bytes(Interp *in, Mbar *m, const Op *op, i64 n)
{
  m->bytes += n;
  m->last = op;
  end_phase(in, m);
}

/* The team's copies land with the phase. */
static void
hand_over_copies(Interp *in, Mbar *m)
{
  Actor *a = in->actor;
  for (u32 i = 0; i < a->copies.len; i++)
    vec_push(in->arena, &m->landing, a->copies.data[i]);
  a->copies.len = 0;
}

Flow
interp_mbarrier_arrive(Interp *in, const Op *op)
{
  Mbar *m = interp_mbar(in, op, OPERAND(op, MBARRIER_ARRIVE, b));
  const Actor *a = in->actor;
  u32 own = a->team;
  if (!m)
    return FLOW_FAULT;
  merge(in, m->left, a->known);
  merge(in, m->left_seen, a->seen);
  m->left[own] = in->now;
  m->left_seen[own] = max_u64(m->left_seen[own], a->fenced);
  if (op_int(op, AT_COPIES, 0))
    hand_over_copies(in, m);
  m->arrived++;
  interp_mbar_bytes(in, m, op, op_int(op, AT_BYTES, 0));
  return FLOW_NEXT;
}

/* The phase that the actor's team means by the parity; -1: the one before phase 0. */
static i64
phase_meant(const Interp *in, const Mbar *m, u64 parity)
{
  u64 known = in->actor->known[m->index];
  return (i64)known - (i64)((known ^ parity) & 1);
}

static Flow
wait_at(Interp *in, const Op *op, const Mbar *m, u64 parity)
{
  i64 meant = phase_meant(in, m, parity), behind = (i64)m->phase - meant;
  if (behind >= 2 && meant >= (i64)in->actor->known[m->index])
    return interp_fault(in, op, "a wait for the end of phase %lld of an mbarrier in phase %llu: it is %lld phases behind, and the parity "
                        "means another", (long long)meant, (unsigned long long)m->phase, (long long)behind);
  if ((m->phase & 1) == parity)
    return FLOW_WAIT;
  merge(in, in->actor->known, m->ended);
  merge(in, in->actor->seen, m->ended_seen);
  return FLOW_NEXT;
}

Flow
interp_mbarrier_wait(Interp *in, const Op *op)
{
  u64 parity = *interp_get(in, OPERAND(op, MBARRIER_WAIT, parity));
  Mbar *m = interp_mbar(in, op, OPERAND(op, MBARRIER_WAIT, b));
  if (!m)
    return FLOW_FAULT;
  if (parity > 1)
    return interp_fault(in, op, "a wait for parity %lld: 0 and 1 are possible", (long long)scalar_int(DT_I32, parity));
  return wait_at(in, op, m, parity);
}

/* What a wait that cannot go on is for. */
static void
put_wait(Buf *b, Interp *in, const Op *wait)
{
  const Mbar *m = interp_mbar(in, wait, OPERAND(wait, MBARRIER_WAIT, b));
  if (!m)
    return;
  buf_printf(b, " for the end of phase %llu: %u of %u arrivals are missing", (unsigned long long)m->phase, m->count - m->arrived, m->count);
  if (m->bytes)
    buf_printf(b, ", %lld bytes %s", (long long)(m->bytes < 0 ? -m->bytes : m->bytes),
               m->bytes < 0 ? "more than announced have come" : "have not come");
  SourceLoc last = m->last ? source_locate(in->func->module->ctx, m->last->span.lo) : (SourceLoc){0};
  if (m->last)
    buf_printf(b, ", the last was at line %u", last.line);
}

/* ---- turns ---- */

/* Why an actor does not go on, in words. */
static void
put_place(Buf *b, Interp *in, Actor *a)
{
  if (a->team)
    buf_printf(b, " region %u", a->team - 1);
  else
    buf_puts(b, " the program");
  if (!a->waits) {
    buf_puts(b, " has ended");
    return;
  }
  SourceLoc at = source_locate(in->func->module->ctx, a->waits->span.lo);
  buf_printf(b, " waits at line %u", at.line);
  in->actor = a;
  put_wait(b, in, a->waits);
}

Flow
interp_stuck(Interp *in, Actor *actors, u32 n)
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
    if (flow == FLOW_NEXT && !a->frames.len)
      flow = interp_tma_end(in);
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
  a.seen[0] = all->seen[0];
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
  for (u32 r = 0; r < op->nregions; r++) {
    merge(in, all->seen, t.actors[r].seen);
    all->seen[r + 1] = max_u64(all->seen[r + 1], t.actors[r].fenced);
  }
  know_all(in, all);
  return flow;
}
