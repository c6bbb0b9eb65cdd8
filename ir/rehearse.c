/* rehearse.c - a kernel run when compiling, as far as its teams, mbarriers and buffers go: who waits for ever, who fills a buffer that
 * another team still reads.
 *
 * Scalars, loops, arrivals, waits and the bytes of boxes are followed as in a run, tiles and global memory are not. In place of integer
 * arguments, extents and the grid stand guesses (rehearse_values.c). Something is found only if it is with all of them, none of which
 * breaks a promise of the program; where something unknown decides who arrives or waits, or the rehearsal takes too long, nothing is.
 *
 * Teams take turns from one op that orders them to the next. In what order does not matter, as arrivals stay and a wait is for a certain
 * phase, unless a team is so far ahead of one that waits that the parity means another phase: then nothing is found either. */
#include "rehearse.h"

enum { STEPS_MOST = 200000 };   /* ops of one rehearsal */

/* ---- control flow ---- */

static Step *
top(const Rehearsed *r)
{
  return &r->actor->steps.data[r->actor->steps.len - 1];
}

static void
enter(Rehearsed *r, const Op *of, const Block *b)
{
  vec_push(r->arena, &r->actor->steps, ((Step){.of = of, .block = b, .at = b->first}));
}

/* Operands from `first` on to as many values, at once. */
static void
assign(Rehearsed *r, const Op *from, u32 first, u32 n, Value *const *to)
{
  for (u32 i = 0; i < n; i++)
    r->spare[i] = rehearsed_value(r, op_operand(from, first + i));
  for (u32 i = 0; i < n; i++)
    r->env[to[i]->id] = r->spare[i];
}

/* One that a guess decides makes all that follows a guess. */
static bool
decides(Rehearsed *r, Known k)
{
  r->guessed |= k.sure == GUESSED;
  return k.sure;
}

typedef struct Has { bool orders; } Has;

static void
look(Op *op, void *user)
{
  ((Has *)user)->orders |= rehearse_orders(op);
}

/* Whether it runs, or how often, is unknown. */
static Went
pass_over(Rehearsed *r, const Op *op)
{
  Has h = {0};
  for (u32 i = 0; i < op->nregions; i++)
    block_walk(op->regions[i], look, &h);
  for (u32 i = 0; i < op->nresults; i++)
    r->env[op->results[i]->id] = (Known){0};
  return h.orders ? rehearsal_lost(r) : WENT_ON;
}

static void
turn(Rehearsed *r, Step *s)
{
  const Value *counter = loop_counter(s->of);
  if (!scalar_cmp(PRED_LT, counter->type->dt, s->i, s->hi)) {
    r->actor->steps.len--;
    return;
  }
  r->env[counter->id] = (Known){s->i, 0, s->sure};
  s->at = s->block->first;
}

static Went
begin_for(Rehearsed *r, const Op *op)
{
  Known lo = rehearsed_value(r, OPERAND(op, FOR, lo)), hi = rehearsed_value(r, OPERAND(op, FOR, hi));
  Known step = rehearsed_value(r, OPERAND(op, FOR, step));
  if (!decides(r, lo) || !decides(r, hi) || !decides(r, step) || !scalar_cmp(PRED_LT, loop_counter(op)->type->dt, 0, step.bits))
    return pass_over(r, op);
  assign(r, op, SLOT(FOR, inits), op->nresults, op->regions[0]->args + loop_first_arg(op));
  assign(r, op, SLOT(FOR, inits), op->nresults, op->results);
  enter(r, op, op->regions[0]);
  Step *s = top(r);
  s->i = lo.bits;
  s->hi = hi.bits;
  s->step = step.bits;
  s->sure = lo.sure < step.sure ? lo.sure : step.sure;
  turn(r, s);
  return WENT_ON;
}

static void
end_for(Rehearsed *r, Step *s)
{
  const Op *op = s->of, *end = block_terminator(s->block);
  DType d = loop_counter(op)->type->dt;
  assign(r, end, SLOT(YIELD, xs), op->nresults, op->results);
  assign(r, end, SLOT(YIELD, xs), op->nresults, op->regions[0]->args + loop_first_arg(op));
  u64 next = scalar_wrap(d, s->i + s->step);
  bool beyond = scalar_cmp(PRED_LT, d, next, s->i);
  s->i = next;
  if (beyond)
    r->actor->steps.len--;
  else
    turn(r, s);
}

static Went
begin_while(Rehearsed *r, const Op *op)
{
  assign(r, op, SLOT(WHILE, inits), op->regions[0]->nargs, op->regions[0]->args);
  enter(r, op, op->regions[0]);
  return WENT_ON;
}

static Went
end_while(Rehearsed *r, Step *s)
{
  const Op *op = s->of, *end = block_terminator(s->block);
  const Block *before = op->regions[0], *body = op->regions[1];
  if (s->block == body) {
    assign(r, end, SLOT(YIELD, xs), before->nargs, before->args);
    s->block = before;
  } else {
    Known c = rehearsed_value(r, OPERAND(end, CONDITION, c));
    assign(r, end, SLOT(CONDITION, xs), c.bits ? body->nargs : op->nresults, c.bits ? body->args : op->results);
    r->actor->steps.len -= !c.bits || !c.sure;
    s->block = body;
    if (!decides(r, c))
      return pass_over(r, op);
  }
  s->at = s->block->first;
  return WENT_ON;
}

static Went
begin_if(Rehearsed *r, const Op *op)
{
  Known c = rehearsed_value(r, OPERAND(op, IF, c));
  if (!decides(r, c))
    return pass_over(r, op);
  enter(r, op, op->regions[c.bits ? 0 : 1]);
  return WENT_ON;
}

static Went
block_ended(Rehearsed *r)
{
  Step *s = top(r);
  const Op *op = s->of;
  if (op && op->code == OP_FOR) {
    end_for(r, s);
  } else if (op && op->code == OP_WHILE) {
    return end_while(r, s);
  } else {
    const Op *end = block_terminator(s->block);
    r->actor->steps.len--;
    if (op)
      assign(r, end, SLOT(YIELD, xs), op->nresults, op->results);
  }
  return WENT_ON;
}

/* ---- teams ---- */

static Went
part(Rehearsed *r, const Op *op)
{
  Actor *all = r->actor, *parts = all + 1;
  bool begun = parts[0].begun, ended = begun;
  for (u32 i = 0; i < op->nregions; i++)
    ended &= parts[i].ended;
  for (u32 i = 0; i < op->nregions && !begun; i++) {
    parts[i].begun = true;
    for (u32 k = 0; k < rehearsed_actors(r); k++)
      parts[i].known[k] = r->now;
    r->actor = &parts[i];
    enter(r, NULL, op->regions[i]);
  }
  r->actor = all;
  return ended ? WENT_ON : WAITS;
}

static Went
run_op(Rehearsed *r, const Op *op)
{
  switch ((u32)op->code) {
  case OP_FOR: return begin_for(r, op);
  case OP_WHILE: return begin_while(r, op);
  case OP_IF: return begin_if(r, op);
  case OP_WARP_SPECIALIZE: return part(r, op);
  case OP_ASSUME: {
    Known c = rehearsed_value(r, OPERAND(op, ASSUME, c));
    return c.sure && !c.bits ? rehearsal_lost(r) : WENT_ON;
  }
  default:
    rehearse_value(r, op);
    return rehearse_sync(r, op);
  }
}

/* The actor's next op, or the end of a block. */
static Went
advance(Rehearsed *r)
{
  Step *s = top(r);
  const Op *op = s->at;
  if (!op || op_has(op, T_TERM))
    return block_ended(r);
  u32 depth = r->actor->steps.len;
  s->at = op->next;
  Went w = run_op(r, op);
  r->actor->waits = w == WAITS ? op : NULL;
  if (w == WAITS)
    r->actor->steps.data[depth - 1].at = op;
  return w;
}

/* Until it waits, or has done what others may wait for; false: it has done nothing. */
static bool
take_turn(Rehearsed *r, Actor *a, Went *w)
{
  u64 began = r->now;
  const Op *last = NULL;
  r->actor = a;
  r->env = r->envs[a->rank];
  for (*w = WENT_ON; *w == WENT_ON && a->steps.len && !(last && rehearse_orders(last)); r->now += *w == WENT_ON) {
    last = top(r)->at;
    *w = r->now < STEPS_MOST ? advance(r) : rehearsal_lost(r);
  }
  a->ended = !a->steps.len;
  return r->now > began;
}

static void
run(Rehearsed *r)
{
  Went w = WENT_ON;
  bool moved = true;
  while (moved && w != STOPS) {
    moved = false;
    for (u32 i = 0; i < rehearsed_actors(r) && w != STOPS; i++)
      if (r->actors[i].begun && !r->actors[i].ended)
        moved |= take_turn(r, &r->actors[i], &w);
  }
  if (w != STOPS)
    rehearse_put_waits(r);
  if (r->out->nwaits)
    r->out->found = REHEARSED_STUCK;
}

/* ---- a kernel ---- */

static void
begin(Rehearsed *r)
{
  u32 n = rehearsed_actors(r);
  r->now = 1;
  rehearse_slots(r);
  r->actors = NEW_ARRAY(r->arena, Actor, n);
  r->envs = NEW_ARRAY(r->arena, Known *, r->nranks);
  r->spare = NEW_ARRAY(r->arena, Known, r->f->nvalues);
  for (u32 i = 0; i < n; i++)
    r->actors[i] = (Actor){.number = i, .rank = i / r->nparts, .part = i % r->nparts, .known = NEW_ARRAY(r->arena, u64, n)};
  for (u32 k = 0; k < r->nranks; k++) {
    r->envs[k] = NEW_ARRAY(r->arena, Known, r->f->nvalues);
    rehearse_params(r, k);
    r->actor = &r->actors[k * r->nparts];
    r->actor->begun = true;
    enter(r, NULL, r->f->body);
  }
}

Rehearsal
func_rehearse(const Func *f)
{
  Rehearsal first = {0};
  const Op *teams = func_teams(f);
  bool all = func_has(f, OP_MBARRIER_WAIT);
  for (u32 guess = 0; all && guess < REHEARSALS; guess++) {
    Rehearsal out = {0};
    Rehearsed r = {.f = f, .arena = arena_new(f->module->ctx), .out = &out, .guess = guess, .nranks = func_cluster(f),
                   .nparts = 1 + (teams ? teams->nregions : 0)};
    begin(&r);
    run(&r);
    arena_free(r.arena);
    all = out.found && !r.lost;
    first = guess ? first : out;
    first.guessed |= r.guessed;
    if (!r.guessed)
      break;
  }
  return all ? first : (Rehearsal){0};
}
