/* loop_stages.c - see loop_stages.h.
 *
 *   for i in lo..hi step s carrying x, y {          if lo < hi {
 *     a, x' = A(i, x)              stage 0            a, x1 = A(lo, x0)
 *     y' = B(i, a, y)              stage 1            for j in lo + s..hi step s carrying x = x1, y = y0, a {
 *     yield x', y'                           ==>        a', x' = A(j, x)
 *   }                                                   y' = B(j - s, a, y)
 *                                                       yield x', y', a'
 *                                                     }
 *                                                     y'' = B(last, a, y)
 *                                                   }
 *
 * In the new body A and B have nothing to do with each other, so their ops may stand in any order that suits; what crosses from A to B is
 * carried, the counter too if B wants it. A carried value belongs to the stage that makes it for the next iteration. What stage 0 needs it
 * must have made itself, this iteration or the one before: B of the iteration before is yet to come when A begins. */
#include "loop_stages.h"

LoopStages
stages_open(Ctx *c, Func *f, Op *loop)
{
  LoopStages s = {.c = c, .f = f, .loop = loop, .late = NEW_ARRAY(c->scratch, bool, loop->nresults + 1)};
  const Op *end = block_terminator(loop->regions[0]);
  for (Op *op = loop->regions[0]->first; op != end; op = op->next)
    op->mark = s.n++;
  s.order = NEW_ARRAY(c->scratch, Op *, s.n + 1);
  s.stage = NEW_ARRAY(c->scratch, u8, s.n + 1);
  for (Op *op = loop->regions[0]->first; op != end; op = op->next)
    s.order[op->mark] = op;
  return s;
}

u32
stages_of(const LoopStages *s, const Value *v)
{
  u32 k;
  if (v->def)
    return v->def->block == s->loop->regions[0] ? s->stage[v->def->mark] : 0;
  return loop_carries(s->loop, v, &k) && s->late[k];
}

/* ---- what crosses ---- */

static void
find_late(LoopStages *s)
{
  for (bool grew = true; grew;) {
    grew = false;
    for (u32 k = 0; k < s->loop->nresults; k++)
      if (!s->late[k] && stages_of(s, loop_next(s->loop, k)))
        s->late[k] = grew = true;
  }
}

static void
cross(LoopStages *s, Value *v)
{
  for (u32 i = 0; i < s->crossing.len; i++)
    if (s->crossing.data[i] == v)
      return;
  vec_push(s->c->scratch, &s->crossing, v);
}

/* x, op or an op in it, uses what the loop's body makes. */
static const char *
check_uses(LoopStages *s, const Op *op, const Op *x)
{
  const char *why = NULL;
  for (u32 i = 0; i < x->noperands && !why; i++) {
    Value *v = op_operand(x, i);
    if (!v || value_block(v) != s->loop->regions[0])
      continue;
    if (s->stage[op->mark] == 0 && stages_of(s, v))
      why = "what begins an iteration needs what ends the one before";
    else if (s->stage[op->mark] && !stages_of(s, v))
      cross(s, v);
  }
  for (u32 r = 0; r < x->nregions; r++)
    for (const Op *in = x->regions[r]->first; in && !why; in = in->next)
      why = check_uses(s, op, in);
  return why;
}

const char *
stages_check(LoopStages *s)
{
  const char *why = NULL;
  s->crossing.len = 0;
  memset(s->late, 0, s->loop->nresults * sizeof *s->late);
  find_late(s);
  for (u32 i = 0; i < s->n && !why; i++)
    why = check_uses(s, s->order[i], s->order[i]);
  return why;
}

/* ---- expanding ---- */

static Value **
new_map(const LoopStages *s)
{
  return NEW_ARRAY(s->c->scratch, Value *, s->f->nvalues);
}

static void
clone_stage(const LoopStages *s, Builder *b, u32 stage, Value **map)
{
  for (u32 i = 0; i < s->n; i++)
    if (s->stage[s->order[i]->mark] == stage)
      op_clone(b, s->order[i], map);
}

/* Stage 0 of the first iteration; what the new loop begins with. */
static void
begin(const LoopStages *s, Builder *b, Value **inits)
{
  Value **map = new_map(s);
  map[loop_counter(s->loop)->id] = OPERAND(s->loop, FOR, lo);
  for (u32 k = 0; k < s->loop->nresults; k++)
    map[loop_arg(s->loop, 0, k)->id] = loop_init(s->loop, k);
  clone_stage(s, b, 0, map);
  for (u32 k = 0; k < s->loop->nresults; k++)
    inits[k] = s->late[k] ? loop_init(s->loop, k) : value_mapped(map, loop_next(s->loop, k));
  for (u32 i = 0; i < s->crossing.len; i++)
    inits[s->loop->nresults + i] = value_mapped(map, s->crossing.data[i]);
}

static Op *
new_loop(const LoopStages *s, Builder *b, Value *const *inits)
{
  Op *old = s->loop;
  Value *lo = OPERAND(old, FOR, lo), *step = OPERAND(old, FOR, step), *hi = OPERAND(old, FOR, hi);
  Value *from = ir_select(b, loop_goes_on(b, old, lo, 1), ir_binary(b, OP_ADD, lo, step), hi);
  Op *loop = ir_for(b, from, hi, step, old->nresults + s->crossing.len, inits);
  op_copy_attrs(loop, old);
  for (u32 k = 0; k < loop->nresults; k++) {
    const Value *was = k < old->nresults ? loop_arg(old, 0, k) : s->crossing.data[k - old->nresults];
    loop_arg(loop, 0, k)->name = loop->results[k]->name = was->name;
  }
  return loop;
}

static void
fill_loop(const LoopStages *s, Op *loop)
{
  Value **map[2] = {new_map(s), new_map(s)}, **ends = NEW_ARRAY(s->c->scratch, Value *, loop->nresults + 1);
  u32 n = s->loop->nresults;
  map[0][loop_counter(s->loop)->id] = loop_counter(loop);
  for (u32 k = 0; k < n; k++)
    map[s->late[k]][loop_arg(s->loop, 0, k)->id] = loop_arg(loop, 0, k);
  for (u32 i = 0; i < s->crossing.len; i++)
    map[1][s->crossing.data[i]->id] = loop_arg(loop, 0, n + i);
  Builder b = builder_at_end(s->f, loop->regions[0]);
  for (u32 i = 0; i < s->n; i++)
    op_clone(&b, s->order[i], map[s->stage[s->order[i]->mark]]);
  for (u32 k = 0; k < n; k++)
    ends[k] = value_mapped(map[s->late[k]], loop_next(s->loop, k));
  for (u32 i = 0; i < s->crossing.len; i++)
    ends[n + i] = value_mapped(map[0], s->crossing.data[i]);
  b.span = s->loop->span;
  ir_yield(&b, loop->nresults, ends);
}

/* Stage 1 of the last iteration; what the loop that was gives. */
static void
end(const LoopStages *s, Builder *b, const Op *loop, Value **results)
{
  Value **map = new_map(s);
  u32 n = s->loop->nresults;
  for (u32 k = 0; k < n; k++)
    map[loop_arg(s->loop, 0, k)->id] = loop->results[k];
  for (u32 i = 0; i < s->crossing.len; i++)
    map[s->crossing.data[i]->id] = loop->results[n + i];
  clone_stage(s, b, 1, map);
  for (u32 k = 0; k < n; k++)
    results[k] = s->late[k] ? value_mapped(map, loop_next(s->loop, k)) : loop->results[k];
}

static Value **
room(const LoopStages *s)
{
  return NEW_ARRAY(s->c->scratch, Value *, s->loop->nresults + s->crossing.len + 1);
}

Op *
stages_expand(LoopStages *s)
{
  Op *old = s->loop;
  const Type **types = NEW_ARRAY(s->c->scratch, const Type *, old->nresults + 1);
  Value **inits = room(s), **results = room(s);
  for (u32 k = 0; k < old->nresults; k++)
    types[k] = old->results[k]->type;
  Builder b = builder_before(old);
  b.span = old->span;
  Op *guard = ir_if(&b, ir_cmp(&b, "lt", OPERAND(old, FOR, lo), OPERAND(old, FOR, hi)), old->nresults, types);
  Builder in = builder_at_end(s->f, guard->regions[0]), none = builder_at_end(s->f, guard->regions[1]);
  in.span = none.span = old->span;
  begin(s, &in, inits);
  in.span = old->span;
  s->made = new_loop(s, &in, inits);
  fill_loop(s, s->made);
  end(s, &in, s->made, results);
  in.span = old->span;
  ir_yield(&in, old->nresults, results);
  for (u32 k = 0; k < old->nresults; k++)
    results[k] = loop_init(old, k);
  ir_yield(&none, old->nresults, results);
  return guard;
}

/* ---- what becomes of it ---- */

static bool
known_to_run(const Op *loop)
{
  i64 lo, hi;
  return value_const_int(OPERAND(loop, FOR, lo), &lo) && value_const_int(OPERAND(loop, FOR, hi), &hi) && lo < hi;
}

/* What the `if` does always stands in its place. */
static void
take_out(Op *guard)
{
  Op *end = region_end(guard, 0);
  for (u32 k = 0; k < guard->nresults; k++)
    value_replace_uses(guard->results[k], region_yields(guard, 0, k));
  while (guard->regions[0]->first != end)
    op_move_before(guard->regions[0]->first, guard);
  op_remove(guard);
}

void
stages_commit(LoopStages *s, Op *guard)
{
  bool always = known_to_run(s->loop);
  for (u32 k = 0; k < s->loop->nresults; k++) {
    guard->results[k]->name = s->loop->results[k]->name;
    value_replace_uses(s->loop->results[k], guard->results[k]);
  }
  op_remove(s->loop);
  s->loop = NULL;
  if (always)
    take_out(guard);
}
