/* place_reshape.c - reshapes that split or join extents that are not powers of two.
 *
 * A layout speaks of the padded tile, so a reshape is free where an element's place among the padded extents stays: of dimensions that
 * hold the same elements on both sides only the outermost of each may be padded ([192] and [3, 64]). Any other reshape goes through shared
 * memory: the tile is stored row by row as it is, with padding between, and each element of the result finds where it lies by its
 * coordinates. Dimensions
 * are split into groups that hold the same elements on both sides ([3, 60] and [3, 6, 10]: 3 and 3, 60 and 6 x 10), so that
 * only those that change cost divisions, by constants.
 *
 * Indices and what is computed from them have no place: they are computed anew for the result, from the coordinates that its
 * elements had (`again`). */
#include "place.h"

/* ---- where an element lies ---- */

/* The coordinates of r along d, as u32 over all of r. */
static Value *
coordinates(Builder *b, const Type *r, int d)
{
  Value *line = ir_cast(b, ir_arange(b, 0, r->shape[d]), DT_U32);
  for (int i = 0; i < r->rank; i++)
    if (i != d)
      line = ir_expand_dims(b, line, i);
  return ir_broadcast(b, line, r->shape);
}

/* x op k; x may be NULL for 0. */
static Value *
with_const(Builder *b, OpCode code, Value *x, u32 k)
{
  if (!x || (k == 1 && (code == OP_MUL || code == OP_DIV)))
    return x;
  return ir_binary(b, code, x, ir_const_int(b, x->type, k));
}

static Value *
sum(Builder *b, Value *x, Value *y)
{
  return x && y ? ir_binary(b, OP_ADD, x, y) : x ? x : y;
}

/* The number of an element within dimensions [from, to) of r, row-major. */
static Value *
number_within(Builder *b, const Type *r, int from, int to)
{
  Value *n = NULL;
  u32 stride = 1;
  for (int d = to - 1; d >= from; d--) {
    if (r->shape[d] > 1)
      n = sum(b, with_const(b, OP_MUL, coordinates(b, r, d), stride), n);
    stride *= r->shape[d];
  }
  return n;
}

/* The coordinates in a's dimensions [from, to) of element n of these; NULL for 0. */
static void
split_number(Builder *b, const Type *a, int from, int to, Value *n, Value **coord)
{
  for (int d = to - 1; d >= from; d--) {
    bool first = true;
    for (int i = from; i < d; i++)
      first = first && a->shape[i] == 1;
    coord[d] = a->shape[d] == 1 ? NULL : first ? n : with_const(b, OP_REM, n, a->shape[d]);
    if (a->shape[d] > 1)
      n = first ? NULL : with_const(b, OP_DIV, n, a->shape[d]);
  }
}

/* For each element of r its coordinates in a, as u32 over all of r. */
static void
coordinates_in(Builder *b, const Type *a, const Type *r, Value **coord)
{
  for (int i = 0, j = 0; i < a->rank || j < r->rank;) {
    int from = i, to = j;
    u32 have = i < a->rank ? a->shape[i++] : 1, want = j < r->rank ? r->shape[j++] : 1;
    while (have != want)
      if (have < want)
        have *= a->shape[i++];
      else
        want *= r->shape[j++];
    split_number(b, a, from, i, number_within(b, r, to, j), coord);
  }
}

/* How many bits of a coordinate along d, from `low` on, lie side by side in an offset; *to: where the first does. */
static u32
bits_together(const Layout *l, int d, u32 low, u32 *to)
{
  u32 shift = layout_dim_shift(l, d), n = 0;
  *to = layout_shared_offset(l, 1u << (shift + low));
  while (low + n < l->out_bits[d] && layout_shared_offset(l, 1u << (shift + low + n)) == *to << n)
    n++;
  return n;
}

/* For each element of r its place in the buffer that holds a: i32. Offsets are the coordinates' bits in some order. */
static Value *
places(Builder *b, const Type *a, const Layout *l, const Type *r)
{
  Value *coord[MAX_RANK] = {0}, *at = NULL;
  coordinates_in(b, a, r, coord);
  for (int d = a->rank - 1; d >= 0; d--)
    for (u32 low = 0, n, to; low < l->out_bits[d]; low += n) {
      n = bits_together(l, d, low, &to);
      Value *part = with_const(b, OP_DIV, coord[d], 1u << low);
      if (low + n < l->out_bits[d])
        part = with_const(b, OP_REM, part, 1u << n);
      at = sum(b, at, with_const(b, OP_MUL, part, to));
    }
  return ir_cast(b, at, DT_I32);
}

/* ---- computed anew ---- */

enum { AGAIN_MOST = 24 };     /* ops */

/* v is made of indices, constants and scalars in no more than *left ops. */
static bool
is_computed(const Value *v, u32 *left)
{
  const Op *op = v->def;
  if (!op || !*left)
    return false;
  --*left;
  if (op->code == OP_CONST || op->code == OP_ARANGE || op->code == OP_SPLAT)
    return true;
  if (!op_has(op, T_ELEM | T_PURE) && op->code != OP_BROADCAST && op->code != OP_EXPAND_DIMS)
    return false;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *x = op_operand(op, i);
    if (x && type_is_tile(x->type) && !is_computed(x, left))
      return false;
  }
  return true;
}

static Value *
index_again(Builder *b, const Op *arange, Value *coord, const Type *t)
{
  Value *first = ir_const_int(b, t, op_int(arange, AT_START, 0));
  return coord ? ir_binary(b, OP_ADD, ir_cast(b, coord, DT_I32), first) : first;
}

/* v's elements at these coordinates, over the extents of `shape`. */
static Value *
again(Ctx *c, Builder *b, const Value *v, Value *const *coord, const Type *shape)
{
  Op *op = v->def;
  const Type *t = type_with_elem(c, shape, type_elem(c, v->type));
  Value *xs[4] = {0}, *inner[MAX_RANK] = {0};
  if (op->code == OP_ARANGE)
    return index_again(b, op, coord[0], t);
  for (int d = 0, at = 0; d < v->type->rank; d++) {
    bool gone = op->code == OP_EXPAND_DIMS ? d == (int)op_int(op, AT_AXIS, 0) :
                op->code == OP_BROADCAST && OPERAND(op, BROADCAST, x)->type->shape[d] == 1;
    if (op->code != OP_EXPAND_DIMS || !gone)
      inner[at++] = gone ? NULL : coord[d];
  }
  for (u32 i = 0; i < op->noperands; i++) {
    xs[i] = op_operand(op, i);
    if (xs[i] && type_is_tile(xs[i]->type))
      xs[i] = again(c, b, xs[i], inner, shape);
  }
  if (op->code == OP_BROADCAST || op->code == OP_EXPAND_DIMS || op->code == OP_HINT)   /* a promise about runs is not kept */
    return xs[0];
  return op_result(op_like(b, op, op->noperands, xs, &t));
}

static Value *
compute_again(Ctx *c, Builder *b, Op *op)
{
  Value *coord[MAX_RANK] = {0};
  const Type *r = op_result(op)->type;
  coordinates_in(b, OPERAND(op, RESHAPE, x)->type, r, coord);
  return again(c, b, OPERAND(op, RESHAPE, x), coord, r);
}

/* ---- the way through shared memory ---- */

static const Layout *
rows_in_order(Ctx *c, int rank, const u32 *shape)
{
  int order[MAX_RANK];
  for (int d = 0; d < rank; d++)
    order[d] = rank - 1 - d;
  return layout_swizzled(c, rank, shape, 1, 1, 1, order);
}

/* Row by row; where that cannot fit, even without what lies behind the last element, as near together as possible. */
static const Type *
buffer_for(Ctx *c, const Type *a)
{
  const Layout *l = rows_in_order(c, a->rank, a->shape);
  if ((u64)layout_reach(l, a->shape) * dtype_bytes(a->dt) > c->target->shared_max)
    l = layout_compact(c, a->rank, a->shape, a->rank - 1, 1, &(LayoutSwizzle){1, 1, 1, 1});
  return type_shared(c, a->dt, 0, a->rank, a->shape, NULL, l, 0, 0);
}

/* All of a buffer up to its last element, by offset. */
static const Type *
as_line(Ctx *c, const Type *buffer)
{
  u32 n = layout_reach(buffer->layout, buffer->shape);
  return type_shared(c, buffer->dt, 0, 1, &n, NULL, rows_in_order(c, 1, &n), 0, 0);
}

static Value *
view_as(Builder *b, Value *buffer, const Type *t)
{
  return op_result(op_create(b, OP_SHARED_CAST, 1, &buffer, 1, &t, 0));
}

static Value *
gather(Ctx *c, Builder *b, Value *line, Value *index)
{
  const Type *t = type_with_elem(c, index->type, type_scalar(c, line->type->dt));
  Op *op = op_create(b, OP_SHARED_GATHER, 2, (Value *[]){line, index}, 1, &t, 0);
  op_set_int(op, AT_AXIS, 0);
  return op_result(op);
}

/* Truth values go as bytes, pointers as integers. */
static Value *
through_shared(Ctx *c, Builder *b, Op *op)
{
  Value *x = OPERAND(op, RESHAPE, x);
  const Type *r = op_result(op)->type, *elem = type_elem(c, r);
  bool ptr = type_is_ptr(r), truth = type_is_bool(r);
  if (ptr)
    x = ir_bitcast(b, x, type_scalar(c, DT_I64));
  if (truth)
    x = ir_cast(b, x, DT_U8);
  const Type *t = buffer_for(c, x->type);
  Value *buffer = ir_shared_alloc(b, t);
  ir_shared_store(b, buffer, x);
  Value *at = places(b, x->type, t->layout, r), *v = gather(c, b, view_as(b, buffer, as_line(c, t)), at);
  op_create(b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  return ptr ? ir_bitcast(b, v, elem) : truth ? ir_cast(b, v, DT_I1) : v;
}

static void
replace(Ctx *c, Op *op)
{
  u32 left = AGAIN_MOST;
  Builder b = builder_before(op);
  b.span = op->span;
  Value *v = is_computed(OPERAND(op, RESHAPE, x), &left) ? compute_again(c, &b, op) : through_shared(c, &b, op);
  v->name = op_result(op)->name;
  value_replace_uses(op_result(op), v);
  op_remove(op);
}

void
place_reshapes(Ctx *c, Func *f)
{
  OpVec ops = func_ops(c, f, OP_RESHAPE);
  for (u32 i = 0; i < ops.len; i++)
    if (!type_reshape_is_linear(OPERAND(ops.data[i], RESHAPE, x)->type, op_result(ops.data[i])->type))
      replace(c, ops.data[i]);
}
