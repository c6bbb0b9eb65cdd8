/* aggregate_atomics.c - elements of an atomic that are known to go to one address are combined first: one atomic for all of them.
 * Needs phase tile; keeps it.
 *
 * The addresses of a tile are equal along a dimension where the pointer is splat or broadcast there, or counts slower than the
 * elements (`p + i / 32`): the facts call that constancy. Then
 *
 *     atomic_rmw p, value, mask                      p: [.., E, ..], equal in aligned runs of R along the dimension
 *  => atomic_rmw p', reduce(value'), reduce(mask')   p': the first pointer of each run; value', mask': [.., E / R, R, ..]
 *
 * where value' is the operation's identity where the mask is false, and what of the mask is as constant as the addresses is taken like
 * them instead. The reduction folds in the thread, then in the warp, then across warps, and the atomic that is left is done by one
 * leader for each address. Order and scope stay: neighbouring atomics at one address may always be one. If all elements are equal
 * along every dimension, pointer and value become scalars.
 *
 * The operation must be associative: sums of floats are, by what the language says of them. Sums of 16-bit floats are formed in f32
 * and rounded once, as `sum` does. Old values are given where they are exact: an element of a sum of integers finds what the atomic
 * found and the sum of the elements before it, by a scan.
 *
 * The first pointers are computed anew from what p is computed from (`first_of_runs`): splats, broadcasts, ranges and arithmetic.
 * A load is not repeated, nor is a variable of a loop known at other places. */
#include "internal.h"
#include "remarks.h"

enum { FIRST_BUDGET = 200 };   /* values that are computed anew for one pointer */

/* Of every run of `run` elements along a dimension the first. whole: the run is the dimension, which goes. */
typedef struct Runs {
  Ctx *c;
  Builder *b;
  u32 run, budget;
  bool whole;
} Runs;

static Value *first_of_runs(Runs *s, Value *v, u32 axis);

/* The type of what is left of t. */
static const Type *
first_type(const Runs *s, const Type *t, u32 axis)
{
  u32 shape[MAX_RANK], n = 0;
  for (u32 d = 0; d < t->rank; d++)
    if (d != axis)
      shape[n++] = t->shape[d];
    else if (!s->whole)
      shape[n++] = t->shape[d] / s->run;
  const Type *elem = type_elem(s->c, t);
  return n ? type_tile(s->c, elem, (int)n, shape, NULL) : elem;
}

static Value *
first_broadcast(Runs *s, const Op *op, u32 axis)
{
  Value *x = OPERAND(op, BROADCAST, x);
  const Type *t = first_type(s, op_result(op)->type, axis);
  if (s->whole || x->type->shape[axis] != 1)
    x = first_of_runs(s, x, axis);
  return x && type_is_tile(t) ? ir_broadcast(s->b, x, t->shape) : x;
}

static Value *
first_expand(Runs *s, const Op *op, u32 axis)
{
  Value *x = OPERAND(op, EXPAND_DIMS, x);
  u32 at = (u32)op_int(op, AT_AXIS, 0);
  if (at == axis)
    return s->whole ? x : NULL;
  x = first_of_runs(s, x, axis - (at < axis));
  if (!x || type_is_tile(x->type))
    return x ? ir_expand_dims(s->b, x, (int)(at - (s->whole && axis < at))) : NULL;
  return ir_splat(s->b, x, first_type(s, op_result(op)->type, axis));
}

static Value *
first_permute(Runs *s, const Op *op, u32 axis)
{
  const Attr *p = op_attr(op, AT_PERM);
  u32 from = (u32)p->ints.v[axis], n = 0;
  int perm[MAX_RANK];
  Value *x = first_of_runs(s, OPERAND(op, PERMUTE, x), from);
  for (u32 d = 0; d < p->ints.n; d++)
    if (!s->whole || d != axis)
      perm[n++] = (int)(p->ints.v[d] - (s->whole && p->ints.v[d] > (i64)from));
  return x && n > 1 ? ir_permute(s->b, x, perm) : x;
}

static Value *
first_arange(Runs *s, const Op *op)
{
  i64 lo = op_int(op, AT_START, 0);
  const Type *t = op_result(op)->type;
  if (s->whole)
    return ir_const_int(s->b, type_elem(s->c, t), lo);
  Value *i = ir_arange(s->b, 0, t->shape[0] / s->run);
  i = ir_binary(s->b, OP_MUL, i, ir_const_int(s->b, i->type, s->run));
  return ir_binary(s->b, OP_ADD, i, ir_const_int(s->b, i->type, lo));
}

/* The same op on the first elements. */
static Value *
first_elementwise(Runs *s, const Op *op, u32 axis)
{
  Value *x[OPERANDS_NAMED];
  if (op->noperands > OPERANDS_NAMED || op->nresults != 1)
    return NULL;
  for (u32 i = 0; i < op->noperands; i++) {
    x[i] = op_operand(op, i);
    if (x[i] && !(x[i] = first_of_runs(s, x[i], axis)))
      return NULL;
  }
  const Type *t = first_type(s, op_result(op)->type, axis);
  return op_result(op_like(s->b, op, op->noperands, x, &t));
}

static Value *
first_of_op(Runs *s, const Op *op, u32 axis)
{
  Value *v = op_result(op);
  u64 bits;
  if (value_const_bits(v, &bits))
    return ir_const_bits(s->b, first_type(s, v->type, axis), bits);
  switch (op->code) {
  case OP_SPLAT: {
    const Type *t = first_type(s, v->type, axis);
    return type_is_tile(t) ? ir_splat(s->b, OPERAND(op, SPLAT, x), t) : OPERAND(op, SPLAT, x);
  }
  case OP_BROADCAST: return first_broadcast(s, op, axis);
  case OP_EXPAND_DIMS: return first_expand(s, op, axis);
  case OP_PERMUTE: return first_permute(s, op, axis);
  case OP_ARANGE: return first_arange(s, op);
  case OP_HINT: return first_of_runs(s, OPERAND(op, HINT, x), axis);
  default: return op_has(op, T_ELEM | T_PURE) ? first_elementwise(s, op, axis) : NULL;
  }
}

/* The first element of each run of v along axis; NULL: it cannot be computed without the others. */
static Value *
first_of_runs(Runs *s, Value *v, u32 axis)
{
  if (!type_is_tile(v->type))
    return v;
  if (!s->budget)
    return NULL;
  s->budget--;
  Value *first = v->def ? first_of_op(s, v->def, axis) : NULL;
  if (!first && s->whole && v->type->shape[axis] == 1 && v->type->rank > 1) {
    const Type *t = first_type(s, v->type, axis);
    return ir_reshape(s->b, v, t->rank, t->shape);
  }
  return first;
}

/* v with each run along axis as a dimension of its own, behind it. */
static Value *
split_runs(const Runs *s, Value *v, u32 axis)
{
  u32 shape[MAX_RANK], n = 0;
  if (s->whole)
    return v;
  for (u32 d = 0; d < v->type->rank; d++) {
    shape[n++] = d == axis ? v->type->shape[d] / s->run : v->type->shape[d];
    if (d == axis)
      shape[n++] = s->run;
  }
  return ir_reshape(s->b, v, (int)n, shape);
}

/* Each run of v along axis, folded. */
static Value *
fold_runs(const Runs *s, Value *v, u32 axis, OpCode code)
{
  v = split_runs(s, v, axis);
  return ir_combine(s->b, ir_reduce(s->b, 1, &v, (int)(axis + !s->whole)), code);
}

/* Is some element of the run on? Of a conjunction each part is asked for itself: what is equal in a run is taken from its first element,
 * and what only differs along other dimensions than the axis is folded before it is broadcast. */
static Value *
fold_mask(Runs *s, Value *m, u32 axis, const AxisInfo *facts)
{
  const Op *op = m->def;
  Value *first = facts[m->id].constancy[axis] >= s->run ? first_of_runs(s, m, axis) : NULL;
  if (first)
    return first;
  if (op_is(m, OP_AND)) {
    const Value *a = OPERAND(op, AND, a), *b = OPERAND(op, AND, b);
    bool equal_a = facts[a->id].constancy[axis] >= s->run, equal_b = facts[b->id].constancy[axis] >= s->run;
    if (equal_a || equal_b) {
      Value *of_b = fold_mask(s, OPERAND(op, AND, b), axis, facts), *of_a = fold_mask(s, OPERAND(op, AND, a), axis, facts);
      return ir_binary(s->b, OP_AND, of_a, of_b);
    }
  }
  const Type *t = first_type(s, m->type, axis);
  if (op_is(m, OP_BROADCAST) && type_is_tile(t) && OPERAND(op, BROADCAST, x)->type->shape[axis] == m->type->shape[axis])
    return ir_broadcast(s->b, fold_runs(s, OPERAND(op, BROADCAST, x), axis, OP_OR), t->shape);
  return fold_runs(s, m, axis, OP_OR);
}

static bool
is_small_sum(const Value *v, OpCode code)
{
  return code == OP_ADD && type_is_float(v->type) && type_elem_bits(v->type) < 32;
}

/* The value, or what changes nothing where it is masked off. */
static Value *
masked_value(const Runs *s, Value *v, Value *mask, OpCode code)
{
  u64 identity = 0;
  if (!mask || !op_identity(code, v->type->dt, &identity))
    return v;
  return ir_select(s->b, mask, v, ir_const_bits(s->b, v->type, identity));
}

static Value *
fold_values(const Runs *s, Value *v, u32 axis, OpCode code)
{
  if (!is_small_sum(v, code))
    return fold_runs(s, v, axis, code);
  return ir_cast(s->b, fold_runs(s, ir_cast(s->b, v, DT_F32), axis, code), v->type->dt);
}

/* The longest runs of equal pointers along some dimension that are told apart by whole numbers of them; 1: none. */
static u32
longest_run(const Type *t, const AxisInfo *p, u32 *axis)
{
  u32 best = 1;
  for (u32 d = 0; d < t->rank; d++) {
    u32 run = p->constancy[d];
    if (run >= t->shape[d])
      run = t->shape[d];
    while (t->shape[d] % run)
      run /= 2;
    if (run < t->shape[d] && t->rank == MAX_RANK)   /* there is no dimension left for the run */
      continue;
    if (run > best) {
      best = run;
      *axis = d;
    }
  }
  return best;
}

/* What each element of a sum would have found: what its run found, and what the elements of the run before it add. */
static Value *
old_values(const Runs *s, Value *base, Value *v, Value *mask, u32 axis)
{
  const Type *t = v->type;
  u32 at = axis + !s->whole;
  Value *x = split_runs(s, v, axis);
  Value *upto = ir_combine(s->b, ir_scan(s->b, 1, &x, (int)at, false, false), OP_ADD);
  Value *before = ir_binary(s->b, OP_SUB, upto, x);
  base = type_is_tile(base->type) ? ir_broadcast(s->b, ir_expand_dims(s->b, base, (int)at), x->type->shape) : ir_splat(s->b, base, x->type);
  Value *old = ir_binary(s->b, OP_ADD, base, before);
  if (!s->whole)
    old = ir_reshape(s->b, old, t->rank, t->shape);
  return mask ? ir_select(s->b, mask, old, ir_const_bits(s->b, t, 0)) : old;
}

/* Combine the runs along axis. NULL: the pointers cannot be computed for fewer elements. */
static Op *
aggregate(Runs *s, Op *op, u32 axis, const AxisInfo *facts, OpCode code)
{
  Value *mask = OPERAND(op, ATOMIC_RMW, mask), *p = first_of_runs(s, OPERAND(op, ATOMIC_RMW, p), axis);
  if (!p)
    return NULL;
  bool equal = mask && facts[mask->id].constancy[axis] >= s->run;
  Value *few = mask ? fold_mask(s, mask, axis, facts) : NULL, *old = op_result(op);
  Value *v = masked_value(s, OPERAND(op, ATOMIC_RMW, value), equal ? NULL : mask, code), *sum = fold_values(s, v, axis, code);
  const Type *t = sum->type;
  Op *made = op_like(s->b, op, few ? 3 : 2, (Value *[]){p, sum, few}, &t);
  if (!value_unused(old))
    value_replace_uses(old, old_values(s, op_result(made), v, mask, axis));
  op_remove(op);
  return made;
}

/* Why an atomic with equal addresses stays as it is, whatever they are computed from; NULL: it need not. */
static const char *
obstacle(const Op *op, OpCode code)
{
  if (code == OP_COUNT)
    return "which of them is written last is open";
  if (value_unused(op_result(op)) || (code == OP_ADD && type_is_int(op_result(op)->type)))
    return NULL;
  return "every element has an old value of its own, which is looked at";
}

/* One dimension of the atomic. NULL: nothing is left to do. */
static Op *
combine_once(Ctx *c, Op *op, AxisInfo *facts)
{
  const Value *p = OPERAND(op, ATOMIC_RMW, p);
  u32 axis = 0, run = type_is_tile(p->type) ? longest_run(p->type, &facts[p->id], &axis) : 1;
  OpCode code;
  if (run == 1 || !rmw_find(op_str(op, AT_RMW, ""), &code))
    return NULL;
  const char *why = obstacle(op, code);
  Span at = op->span;
  Builder b = builder_before(op);
  b.span = at;
  Runs s = {.c = c, .b = &b, .run = run, .budget = FIRST_BUDGET, .whole = run == p->type->shape[axis]};
  Op *made = why ? NULL : aggregate(&s, op, axis, facts, code);
  if (made)
    remark_aggregated(c, at, run);
  else
    remark_collides(c, at, run, why ? why : "their address comes from a load or a variable of a loop");
  return made;
}

static void
aggregate_func(Ctx *c, Func *f)
{
  OpVec atomics = func_ops(c, f, OP_ATOMIC_RMW);
  AxisInfo *facts = atomics.len ? analyse_axes(f) : NULL;
  for (u32 i = 0; i < atomics.len; i++)
    for (Op *op = combine_once(c, atomics.data[i], facts); op; op = combine_once(c, op, facts))
      facts = analyse_axes(f);
}

void
pass_aggregate_atomics(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    aggregate_func(c, m->funcs.data[i]);
}
