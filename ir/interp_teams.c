/* interp_teams.c - the teams of a program: what each knows of the others.
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
 * A region of a warp_specialize is an actor, which takes turns with the others (interp_turns.c). Teams are counted through all programs
 * of a cluster: each has one of all its warps, and behind it those of its regions. */
#include "interp_run.h"

/* ---- clocks ---- */

/* Those of an mbarrier in each program's shared memory stand behind those of teams. */
void
interp_count_clocks(Interp *in)
{
  u32 mbars = 0;
  for (const Op *op = in->func->body->first; op; op = op->next)
    if (op->code == OP_SHARED_ALLOC && op_result(op)->type->dt == DT_MBAR)
      mbars += max_u32(1, op_result(op)->type->count);
  in->nclocks = in->nteams + in->nprograms * mbars;
}

Clocks
interp_clocks(Interp *in)
{
  u64 *all = NEW_ARRAY(in->arena, u64, 3 * in->nclocks);
  return (Clocks){all, all + in->nclocks, all + 2 * in->nclocks};
}

void
interp_learn(const Interp *in, Clocks *c, const Clocks *from)
{
  for (u32 i = 0; i < 3 * in->nclocks; i++)
    c->known[i] = max_u64(c->known[i], from->known[i]);
}

static void
know_team(const Interp *in, Clocks *c, u32 team)
{
  c->known[team] = c->over[team] = in->now;
}

void
interp_know_program(const Interp *in, Actor *a)
{
  for (u32 i = 0; i < in->nparts; i++)
    know_team(in, &a->clocks, a->program->rank * in->nparts + i);
  for (u32 i = 0; i < in->mbars.len; i++) {
    const Mbar *m = in->mbars.data[i];
    if (interp_rank_of(in, m->team) == a->program->rank)
      a->clocks.known[m->index] = m->phase;
  }
}

void
interp_leave(const Interp *in, Clocks *left)
{
  const Actor *a = in->actor;
  interp_learn(in, left, &a->clocks);
  know_team(in, left, a->team);
  left->seen[a->team] = max_u64(left->seen[a->team], a->fenced);
}

void
interp_leave_over(const Interp *in, Clocks *left)
{
  const Actor *a = in->actor;
  const Clocks *c = &a->clocks;
  for (u32 t = 0; t < in->nclocks; t++) {
    left->over[t] = max_u64(left->over[t], t == a->team ? in->now : max_u64(c->over[t], c->known[t]));
    left->seen[t] = max_u64(left->seen[t], t == a->team ? a->fenced : c->seen[t]);
  }
}

void
interp_meet(Interp *in)
{
  Actor *a = in->actor;
  know_team(in, &a->clocks, a->team);
  a->clocks.seen[a->team] = a->fenced;
}

/* What the team initialised before is shown to the cluster. */
static void
show_mbars(Interp *in)
{
  for (u32 i = 0; i < in->mbars.len; i++) {
    Mbar *m = in->mbars.data[i];
    if (m->team == in->actor->team && !m->shown)
      m->shown = in->now;
  }
}

Flow
interp_fence(Interp *in, const Op *op)
{
  Actor *a = in->actor;
  if (strcmp(op_str(op, AT_KIND, ""), "async") != 0) {
    show_mbars(in);
    return FLOW_NEXT;
  }
  a->fenced = in->now;
  for (u32 t = 0; t < in->nteams; t++)
    a->clocks.seen[t] = t == a->team ? a->clocks.seen[t] : max_u64(a->clocks.seen[t], a->clocks.known[t]);
  return FLOW_NEXT;
}

bool
interp_seen(const Interp *in, u32 team, u64 when)
{
  return when <= in->actor->clocks.seen[team];
}

bool
interp_ordered(const Interp *in, u32 team, u64 when)
{
  const Actor *a = in->actor;
  return when <= a->clocks.known[team] || (team == a->team && !in->opt->barriers);
}

bool
interp_over(const Interp *in, u32 team, u64 when)
{
  bool other = team >= in->nteams || interp_rank_of(in, team) != in->program->rank;
  return (other && when <= in->actor->clocks.over[team]) || interp_ordered(in, team, when);
}

/* Who did it, as the actor sees that, and what would order the two. */
static const char *
who_did(const Interp *in, u32 team, const char **between)
{
  const Actor *a = in->actor;
  bool other = interp_rank_of(in, team) != a->program->rank, own = team == a->team;
  *between = other ? "barrier of the cluster, or mbarrier," : own || team % in->nparts == 0 ? "barrier" : "mbarrier";
  return other ? "another program of the cluster" : own ? "other threads" : "another team";
}

bool
interp_clash(Interp *in, const Op *op, const Op *other, u32 team, const char *access, const char *memory, const char *did)
{
  const char *between = "";
  if (team >= in->nteams) {
    interp_fault(in, op, "%s %s that a copy %s: this team has not waited for the phase of its mbarrier", access, memory, did);
    in->err->other = other->span;
    return false;
  }
  const char *who = who_did(in, team, &between);
  interp_fault(in, op, "%s %s that %s %s with no %s between", access, memory, who, did, between);
  in->err->other = other->span;
  return false;
}

/* ---- mbarriers ---- */

static Mbar *
mbar_at(const Interp *in, u32 rank, u64 at)
{
  for (u32 i = 0; i < in->mbars.len; i++)
    if (in->mbars.data[i]->at == at && interp_rank_of(in, in->mbars.data[i]->team) == rank)
      return in->mbars.data[i];
  return NULL;
}

Flow
interp_mbarrier_init(Interp *in, const Op *op)
{
  u64 at;
  const Actor *a = in->actor;
  if (!interp_shared_mbar_of(in, op, OPERAND(op, MBARRIER_INIT, b), true, &at))
    return FLOW_FAULT;
  const Mbar *before = mbar_at(in, a->program->rank, at);
  if (before) {
    interp_fault(in, op, "an mbarrier that was initialised before");
    in->err->other = before->init->span;
    return FLOW_FAULT;
  }
  Mbar *m = NEW(in->arena, Mbar);
  *m = (Mbar){.at = at, .init = op, .index = in->nteams + in->mbars.len, .count = (u32)op_int(op, AT_ARRIVALS, 1), .team = a->team,
              .made = in->now, .left = interp_clocks(in), .ended = interp_clocks(in)};
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
  m->left.known[m->index] = ++m->phase;
  interp_learn(in, &m->ended, &m->left);
  struct InterpShared *here = in->shared;
  in->shared = in->programs[interp_rank_of(in, m->team)].shared;
  for (u32 i = 0; i < m->landing.len; i++)
    interp_shared_land(in, &m->landing.data[i], m->phase, m->index);
  in->shared = here;
  m->landing.len = 0;
}

/* Does the actor's team know, of an mbarrier of another program, that it is initialised? proxy: and its copies. */
static bool
is_shown(const Interp *in, const Mbar *m, bool proxy)
{
  const Clocks *c = &in->actor->clocks;
  bool fenced = m->shown && m->shown <= c->over[m->team], plain = m->made <= c->known[m->team];
  plain &= !proxy || m->made <= c->seen[m->team];
  return fenced || plain || !in->opt->barriers;
}

/* The mbarrier b in the shared memory of the program of that rank, which is reached. NULL after a fault. */
static Mbar *
mbar_there(Interp *in, const Op *op, const Value *b, u32 rank)
{
  u64 at;
  Mbar *m = interp_shared_mbar_of(in, op, b, false, &at) ? mbar_at(in, rank, at) : NULL;
  if (!m || rank == in->program->rank || is_shown(in, m, op->code == OP_TMA_LOAD))
    return m;
  interp_fault(in, op, "an mbarrier of another program, of which this one does not know that it is initialised");
  in->err->other = m->init->span;
  return NULL;
}

Mbar *
interp_mbar(Interp *in, const Op *op, const Value *b, u32 rank)
{
  Mbar *m = interp_reach(in, op, rank) ? mbar_there(in, op, b, rank) : NULL;
  interp_reached(in);
  return m;
}

bool
interp_mbar_expected(Interp *in, const Value *b, u32 rank)
{
  return !in->opt->barriers && rank != in->program->rank && !mbar_at(in, rank, interp_shared_at(in, b));
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

/* At another program's mbarrier an arrival that hands over no memory only tells that what came before it is over. */
static void
leave_at(Interp *in, const Op *op, Mbar *m)
{
  bool other = interp_rank_of(in, m->team) != in->program->rank;
  if (!other || op_attr(op, AT_SCOPE) || !in->opt->barriers)
    interp_leave(in, &m->left);
  else
    interp_leave_over(in, &m->left);
}

Flow
interp_mbarrier_arrive(Interp *in, const Op *op)
{
  const Value *b = OPERAND(op, MBARRIER_ARRIVE, b);
  u32 rank = interp_program_of(in, b)->rank;
  if (interp_mbar_expected(in, b, rank))
    return FLOW_WAIT;
  Mbar *m = interp_mbar(in, op, b, rank);
  if (!m)
    return FLOW_FAULT;
  leave_at(in, op, m);
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
  u64 known = in->actor->clocks.known[m->index];
  return (i64)known - (i64)((known ^ parity) & 1);
}

static Flow
wait_at(Interp *in, const Op *op, const Mbar *m, u64 parity)
{
  i64 meant = phase_meant(in, m, parity), behind = (i64)m->phase - meant;
  if (behind >= 2 && meant >= (i64)in->actor->clocks.known[m->index])
    return interp_fault(in, op, "a wait for the end of phase %lld of an mbarrier in phase %llu: it is %lld phases behind, and the parity "
                        "means another", (long long)meant, (unsigned long long)m->phase, (long long)behind);
  if ((m->phase & 1) == parity)
    return FLOW_WAIT;
  interp_learn(in, &in->actor->clocks, &m->ended);
  return FLOW_NEXT;
}

Flow
interp_mbarrier_wait(Interp *in, const Op *op)
{
  u64 parity = *interp_get(in, OPERAND(op, MBARRIER_WAIT, parity));
  Mbar *m = interp_mbar(in, op, OPERAND(op, MBARRIER_WAIT, b), in->program->rank);
  if (!m)
    return FLOW_FAULT;
  if (parity > 1)
    return interp_fault(in, op, "a wait for parity %lld: 0 and 1 are possible", (long long)scalar_int(DT_I32, parity));
  return wait_at(in, op, m, parity);
}

void
interp_put_wait(Buf *b, Interp *in, const Op *wait)
{
  const Mbar *m = interp_mbar(in, wait, OPERAND(wait, MBARRIER_WAIT, b), in->program->rank);
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

/* ---- parting and meeting ---- */

/* What the warps of the program did before they part is known where they have met since, or nobody asks. */
static void
make_region(Interp *in, const Op *op, u32 r, Actor *a)
{
  Actor *all = in->actor;
  *a = (Actor){.program = in->program, .team = all->team + 1 + r, .region = 1 + r, .clocks = interp_clocks(in)};
  interp_know_program(in, a);
  a->clocks.known[all->team] = in->opt->barriers ? all->clocks.known[all->team] : in->now;
  interp_learn(in, &a->clocks, &all->clocks);
  in->actor = a;
  interp_enter(in, op->regions[r]);
  in->actor = all;
}

/* The regions take turns in place of all warps. */
static Flow
part(Interp *in, const Op *op)
{
  Actor *all = in->actor;
  if (all->copies.len)
    return interp_fault(in, op, "the program's warps part while copies of theirs are still under way");
  in->program->regions = NEW_ARRAY(in->arena, Actor, op->nregions);
  interp_drop_turn(in, all);
  for (u32 r = 0; r < op->nregions; r++) {
    make_region(in, op, r, &in->program->regions[r]);
    vec_push(in->arena, &in->turns, &in->program->regions[r]);
  }
  in->next = 0;
  return FLOW_WAIT;
}

Flow
interp_warp_specialize(Interp *in, const Op *op)
{
  Actor *all = in->actor, *regions = in->program->regions;
  if (!regions)
    return part(in, op);
  for (u32 r = 0; r < op->nregions; r++) {
    interp_learn(in, &all->clocks, &regions[r].clocks);
    all->clocks.seen[regions[r].team] = max_u64(all->clocks.seen[regions[r].team], regions[r].fenced);
  }
  interp_know_program(in, all);
  in->program->regions = NULL;
  return FLOW_NEXT;
}

/* The last one to end brings all warps back. */
Flow
interp_region_ended(Interp *in)
{
  const Actor *a = in->actor;
  Program *p = in->program;
  if (a->copies.len)
    return interp_fault(in, a->copies.data[0].op, "the region ends while this copy is still under way");
  if (interp_tma_end(in) == FLOW_FAULT)
    return FLOW_FAULT;
  for (u32 r = 0; r + 1 < in->nparts; r++)
    if (!p->regions[r].ended)
      return FLOW_NEXT;
  p->all->stuck = false;
  vec_push(in->arena, &in->turns, p->all);
  return FLOW_NEXT;
}
