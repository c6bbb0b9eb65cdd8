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
 * Where another loop follows with the same B, its first iteration is begun beside the B of this one's last (attention: blocks that need a
 * mask behind those that need none). Which loop has the first iteration of all is asked in front:
 *
 *   if lo1 < hi1 or lo2 < hi2 {
 *     a, x1 = lo1 < hi1 ? A1(lo1, x0) : A2(lo2, x0)
 *     for j in lo1 + s1..hi1 step s1 { A1 beside B }       none if lo1 >= hi1
 *     for j in (lo1 < hi1 ? lo2 : lo2 + s2)..hi2 step s2 { A2 beside B }
 *     y'' = B(last, a, y)
 *   }
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

/* Stage 0 of the first iteration, if that is this loop's; what the new loops begin with. */
static void
begin(const LoopStages *s, const Op *first_loop, Builder *b, Value **inits)
{
  Value **map = new_map(s);
  map[loop_counter(s->loop)->id] = OPERAND(s->loop, FOR, lo);
  for (u32 k = 0; k < s->loop->nresults; k++)
    map[loop_arg(s->loop, 0, k)->id] = loop_init(first_loop, k);
  clone_stage(s, b, 0, map);
  for (u32 k = 0; k < s->loop->nresults; k++)
    inits[k] = s->late[k] ? loop_init(first_loop, k) : value_mapped(map, loop_next(s->loop, k));
  for (u32 i = 0; i < s->crossing.len; i++)
    inits[s->loop->nresults + i] = value_mapped(map, s->crossing.data[i]);
}

static Value *
runs(Builder *b, const LoopStages *s)
{
  return ir_cmp(b, "lt", OPERAND(s->loop, FOR, lo), OPERAND(s->loop, FOR, hi));
}

/* The same of the first of n loops that has an iteration; one of them has. */
static void
begin_first(u32 n, LoopStages *const *s, const Op *first_loop, Builder *b, Value **inits)
{
  u32 carried = s[0]->loop->nresults, all = carried + s[0]->crossing.len;
  if (n == 1) {
    begin(s[0], first_loop, b, inits);
    return;
  }
  const Type **types = NEW_ARRAY(s[0]->c->scratch, const Type *, all + 1);
  for (u32 k = 0; k < all; k++)
    types[k] = k < carried ? s[0]->loop->results[k]->type : s[0]->crossing.data[k - carried]->type;
  Op *which = ir_if(b, runs(b, s[0]), all, types);
  for (u32 r = 0; r < 2; r++) {
    Builder in = builder_at_end(s[0]->f, which->regions[r]);
    in.span = s[0]->loop->span;
    begin_first(r ? n - 1 : 1, s + r, first_loop, &in, inits);
    in.span = s[0]->loop->span;
    ir_yield(&in, all, inits);
  }
  memcpy(inits, which->results, all * sizeof *inits);
}

/* Where the new loop begins: in its second iteration, or, behind others of which one has run (before; NULL: there are none), in its first.
 * among: it is one of several, and perhaps has no iteration. */
static Value *
from(const LoopStages *s, Builder *b, Value *before, bool among)
{
  Value *lo = OPERAND(s->loop, FOR, lo), *hi = OPERAND(s->loop, FOR, hi), *goes_on = loop_goes_on(b, s->loop, lo, 1);
  if (among)
    goes_on = ir_binary(b, OP_AND, runs(b, s), goes_on);
  Value *second = ir_select(b, goes_on, ir_binary(b, OP_ADD, lo, OPERAND(s->loop, FOR, step)), hi);
  return before ? ir_select(b, before, lo, second) : second;
}

static Op *
new_loop(const LoopStages *s, Builder *b, Value *from, Value *const *inits)
{
  Op *old = s->loop;
  Op *loop = ir_for(b, from, OPERAND(old, FOR, hi), OPERAND(old, FOR, step), old->nresults + s->crossing.len, inits);
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

/* The loops, one behind the other; what the last of them leaves is in `now`. */
static void
make_loops(u32 n, LoopStages *const *s, Builder *b, Value **now)
{
  Value *before = NULL;
  for (u32 i = 0; i < n; i++) {
    b->span = s[i]->loop->span;
    s[i]->made = new_loop(s[i], b, from(s[i], b, before, n > 1), now);
    fill_loop(s[i], s[i]->made);
    memcpy(now, s[i]->made->results, s[i]->made->nresults * sizeof *now);
    if (i + 1 < n)
      before = before ? ir_binary(b, OP_OR, before, runs(b, s[i])) : runs(b, s[i]);
  }
}

/* What stands between the loops, in front of them all. */
static void
clear_between(u32 n, LoopStages *const *s)
{
  for (u32 i = 1; i < n; i++)
    while (s[i - 1]->loop->next != s[i]->loop)
      op_move_before(s[i - 1]->loop->next, s[0]->loop);
}

Op *
stages_expand(u32 n, LoopStages *const *s)
{
  Op *first = s[0]->loop;
  const Type **types = NEW_ARRAY(s[0]->c->scratch, const Type *, first->nresults + 1);
  Value **now = room(s[0]), **results = room(s[0]);
  for (u32 k = 0; k < first->nresults; k++)
    types[k] = first->results[k]->type;
  clear_between(n, s);
  Builder b = builder_before(first);
  b.span = first->span;
  Value *any = runs(&b, s[0]);
  for (u32 i = 1; i < n; i++)
    any = ir_binary(&b, OP_OR, any, runs(&b, s[i]));
  Op *guard = ir_if(&b, any, first->nresults, types);
  Builder in = builder_at_end(s[0]->f, guard->regions[0]), none = builder_at_end(s[0]->f, guard->regions[1]);
  in.span = none.span = first->span;
  begin_first(n, s, first, &in, now);
  make_loops(n, s, &in, now);
  end(s[n - 1], &in, s[n - 1]->made, results);
  in.span = first->span;
  ir_yield(&in, first->nresults, results);
  for (u32 k = 0; k < first->nresults; k++)
    results[k] = loop_init(first, k);
  ir_yield(&none, first->nresults, results);
  return guard;
}

/* ---- loops that go on ---- */

/* v of a's loop is w of b's. is: what stands for the values of a's body. */
static bool
corresponds(const LoopStages *a, Value *const *is, const Value *v, const Value *w)
{
  if (v == w || !v || !w)
    return v == w;
  if (value_block(v) == a->loop->regions[0])
    return is[v->id] == w;
  bool constants = v->def && w->def && op_has(v->def, T_PURE) && !v->def->noperands && !v->def->nregions;
  return constants && op_heads_equal(v->def, w->def);
}

/* The next op of stage 1 from *i on. */
static Op *
next_late(const LoopStages *s, u32 *i)
{
  while (*i < s->n && !s->stage[s->order[*i]->mark])
    ++*i;
  return *i < s->n ? s->order[(*i)++] : NULL;
}

static bool
same_op(const LoopStages *a, Value **is, const Op *x, const Op *y)
{
  if (!op_heads_equal(x, y) || x->nregions)
    return false;
  for (u32 k = 0; k < x->noperands; k++)
    if (!corresponds(a, is, op_operand(x, k), op_operand(y, k)))
      return false;
  for (u32 k = 0; k < x->nresults; k++)
    is[x->results[k]->id] = y->results[k];
  return true;
}

static bool
same_ends(const LoopStages *a, const LoopStages *b)
{
  Value **is = new_map(a);
  u32 i = 0, j = 0;
  for (u32 k = 0; k < a->loop->nresults; k++)
    is[loop_arg(a->loop, 0, k)->id] = a->late[k] ? loop_arg(b->loop, 0, k) : NULL;
  for (u32 k = 0; k < a->crossing.len; k++)
    is[a->crossing.data[k]->id] = b->crossing.data[k];
  Op *x = next_late(a, &i), *y = next_late(b, &j);
  for (; x && y; x = next_late(a, &i), y = next_late(b, &j))
    if (!same_op(a, is, x, y))
      return false;
  for (u32 k = 0; k < a->loop->nresults; k++)
    if (a->late[k] && !corresponds(a, is, loop_next(a->loop, k), loop_next(b->loop, k)))
      return false;
  return !x && !y;
}

bool
stages_go_on(const LoopStages *a, const LoopStages *b)
{
  const Op *x = a->loop, *y = b->loop;
  if (x->block != y->block || x->nresults != y->nresults || a->crossing.len != b->crossing.len)
    return false;
  for (u32 k = 0; k < x->nresults; k++)
    if (loop_init(y, k) != x->results[k] || value_use_count(x->results[k]) != 1 || a->late[k] != b->late[k])
      return false;
  for (u32 k = 0; k < a->crossing.len; k++)
    if (a->crossing.data[k]->type != b->crossing.data[k]->type)
      return false;
  for (const Op *op = x->next; op != y; op = op->next)
    if (!op || !op_has(op, T_PURE))
      return false;
  return same_ends(a, b);
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
stages_commit(u32 n, LoopStages *const *s, Op *guard)
{
  bool always = false;
  const Op *last = s[n - 1]->loop;
  for (u32 k = 0; k < last->nresults; k++) {
    guard->results[k]->name = last->results[k]->name;
    value_replace_uses(last->results[k], guard->results[k]);
  }
  for (u32 i = n; i-- > 0; s[i]->loop = NULL) {
    always |= known_to_run(s[i]->loop);
    op_remove(s[i]->loop);
  }
  if (always)
    take_out(guard);
}
