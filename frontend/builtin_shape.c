/* builtin_shape.c - tiles put together and taken apart.
 *
 * All are made of few things: a choice by coordinate (join), a fold that keeps one coordinate (split), an exchange with
 * the element whose index differs by constant bits (butterfly), and elements by index through a shared buffer (gather). */
#include "sema.h"
#include "access.h"

static const Type *
with_extent(Lower *L, const Type *t, int axis, u32 extent)
{
  u32 shape[MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[axis] = extent;
  return type_tile(L->c, type_elem(L->c, t), t->rank, shape, NULL);
}

/* A tile of one dimension laid along axis, broadcast to t's other extents. */
static Value *
laid_along(Lower *L, Value *line, int axis, const Type *t)
{
  const Type *shape = with_extent(L, t, axis, line->type->shape[0]);
  for (int i = 0; i < t->rank; i++)
    if (i != axis)
      line = ir_expand_dims(&L->b, line, i);
  return value_broadcast(L, line, shape);
}

static Value *
line_const(Lower *L, const Value *line, i64 k)
{
  return ir_const_int(&L->b, line->type, k);
}

/* ---- elements by index ---- */

static Value *
shared_gather(Lower *L, Value *s, Value *index, int axis)
{
  const Type *t = type_with_elem(L->c, index->type, type_scalar(L->c, s->type->dt));
  Op *op = op_create(&L->b, OP_SHARED_GATHER, 2, (Value *[]){s, index}, 1, &t, 0);
  op_set_int(op, AT_AXIS, axis);
  return op_result(op);
}

/* Through a buffer that lives as long as this takes. Truth values travel as bytes, pointers as integers. */
static Value *
tile_gather(Lower *L, Value *x, Value *index, int axis)
{
  const Type *t = x->type, *elem = type_elem(L->c, t);
  bool ptr = type_is_ptr(t), truth = type_is_bool(t);
  if (ptr)
    x = ir_bitcast(&L->b, x, type_scalar(L->c, DT_I64));
  if (truth)
    x = value_cast(L, x, DT_U8);
  Value *s = ir_shared_alloc(&L->b, type_shared(L->c, x->type->dt, 0, t->rank, t->shape, NULL, NULL, 0, 0));
  ir_shared_store(&L->b, s, x);
  Value *r = shared_gather(L, s, index, axis);
  op_create(&L->b, OP_SHARED_FREE, 1, &s, 0, NULL, 0);
  return ptr ? ir_bitcast(&L->b, r, elem) : truth ? value_cast(L, r, DT_I1) : r;
}

/* The elements of x whose indices along axis are those in line. */
static Value *
gather_line(Lower *L, Value *x, Value *line, int axis)
{
  return tile_gather(L, x, laid_along(L, line, axis, x->type), axis);
}

static Val
gather_mismatch(Lower *L, const Call *c, const Type *t, const Type *index)
{
  Diag *d = ERR(L, c->args[1].span, E_SHAPES, c->name, type_str(L->c, t), type_str(L->c, index));
  note_values(L, d, 2, c->args);
  diag_hint(L->c, d, "the indices have x's rank, and its extents or 1 beside the axis");
  return val_poison(c->span);
}

static Val
not_integers(Lower *L, const Call *c, u32 i)
{
  ERR(L, c->args[i].span, E_ARGUMENT, c->name, "a tile of integers", val_str(L, c->args[i]));
  return val_poison(c->span);
}

Val
builtin_gather(Lower *L, Call *c)
{
  int axis;
  bool buffer = c->args[0].kind == V_BUFFER;
  Value *x = buffer ? call_buffer(L, c, 0, false) : call_tile(L, c, 0), *index = x ? call_tile(L, c, 1) : NULL;
  if (!index || !call_axis(L, c, 2, x->type, &axis))
    return val_poison(c->span);
  if (!type_is_int(index->type))
    return not_integers(L, c, 1);
  const Type *t = x->type, *i = index->type;
  if (i->rank != t->rank)
    return gather_mismatch(L, c, t, i);
  for (int d = 0; d < t->rank; d++)
    if (d != axis && i->shape[d] != t->shape[d] && i->shape[d] != 1)
      return gather_mismatch(L, c, t, i);
  L->b.span = c->span;
  index = value_index(L, index, NULL, t->shape[axis]);
  const Type *want = type_tile(L->c, type_scalar(L->c, DT_I32), t->rank, t->shape, NULL);
  index = value_broadcast(L, index, with_extent(L, want, axis, i->shape[axis]));
  return val_ir(buffer ? shared_gather(L, x, index, axis) : tile_gather(L, x, index, axis), c->span);
}

/* An op that takes a buffer, indices, values for them, and a mask. */
static Val
by_index(Lower *L, Call *c, OpCode code, bool adds)
{
  Value *s = call_buffer(L, c, 0, false), *index = s ? call_tile(L, c, 1) : NULL, *mask;
  if (!index || !call_mask(L, c, 3, &mask) || !val_need_data(L, c->args[2], c->name))
    return val_poison(c->span);
  const Type *t = s->type;
  if (adds && (t->rank != 1 || (t->dt != DT_I32 && t->dt != DT_U32 && t->dt != DT_F32)))
    return call_error(L, c, c->args[0].span, "the buffer has one dimension of i32, u32 or f32");
  if (!adds && (t->rank != 1 || !is_pow2(t->shape[0])))
    return call_error(L, c, c->args[0].span, "the buffer has one dimension, of a power of two of elements");
  if (!type_is_int(index->type))
    return not_integers(L, c, 1);
  L->b.span = c->span;
  Value *v[3] = {index, val_as(L, c->args[2], t->dt, index->type), mask};
  if (!v[1] || !values_broadcast(L, c->span, c->name, 3, v, c->args + 1))
    return val_poison(c->span);
  L->b.span = c->span;
  v[0] = value_index(L, v[0], v[2], t->shape[0]);
  op_create(&L->b, code, 4, (Value *[]){s, v[0], v[1], v[2]}, 0, NULL, 0);
  return val_void(c->span);
}

Val builtin_shared_add(Lower *L, Call *c) { return by_index(L, c, OP_SHARED_ADD, true); }
Val builtin_shared_scatter(Lower *L, Call *c) { return by_index(L, c, OP_SHARED_SCATTER, false); }

Val
builtin_shared_count(Lower *L, Call *c)
{
  Value *s = call_buffer(L, c, 0, false), *index = s ? call_tile(L, c, 1) : NULL;
  if (!index)
    return val_poison(c->span);
  const Type *t = s->type, *i = index->type;
  Team team = block_team(L->b.block);
  if (!type_is_int(i))
    return not_integers(L, c, 1);
  const char *why = access_count_obstacle(team, i);
  if (why)
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "%s, not %s for %u warps", why, type_str(L->c, i), team.warps));
  if (t->rank != 2 || t->shape[0] != i->shape[0] || (t->dt != DT_I32 && t->dt != DT_U32))
    return call_error(L, c, c->args[0].span, "the buffer has a row of i32 or u32 for each row of indices");
  L->b.span = c->span;
  index = value_index(L, index, NULL, t->shape[1]);
  const Type *r = type_with_elem(L->c, index->type, type_scalar(L->c, t->dt));
  return val_ir(op_result(op_create(&L->b, OP_SHARED_COUNT, 2, (Value *[]){s, index}, 1, &r, 0)), c->span);
}

/* ---- exchanges ---- */

static Value *
butterfly(Lower *L, Value *x, int axis, u32 mask)
{
  Op *op = op_create(&L->b, OP_BUTTERFLY, 1, &x, 1, &x->type, 0);
  op_set_int(op, AT_AXIS, axis);
  op_set_int(op, AT_MASK, mask);
  return op_result(op);
}

Val
builtin_butterfly(Lower *L, Call *c)
{
  int axis;
  i64 mask;
  Value *x = call_tile(L, c, 0);
  if (!x || !call_axis(L, c, 1, x->type, &axis) || !call_int(L, c, 2, "the mask", &mask))
    return val_poison(c->span);
  u32 n = x->type->shape[axis];
  if (mask < 0 || mask >= (i64)n || n % next_pow2((u32)mask + 1))
    return call_error(L, c, c->args[2].span, arena_printf(L->a, "exclusive-or with %lld leads out of %u elements", (long long)mask, n));
  L->b.span = c->span;
  return val_ir(mask ? butterfly(L, x, axis, (u32)mask) : x, c->span);
}

Val
builtin_flip(Lower *L, Call *c)
{
  int axis = 0;
  Value *x = call_tile(L, c, 0);
  if (!x || (c->given[1] && !call_axis(L, c, 1, x->type, &axis)))
    return val_poison(c->span);
  u32 n = x->type->shape[axis];
  L->b.span = c->span;
  if (n == 1)
    return val_ir(x, c->span);
  if (is_pow2(n))
    return val_ir(butterfly(L, x, axis, n - 1), c->span);
  Value *line = ir_arange(&L->b, 0, n);
  return val_ir(gather_line(L, x, ir_binary(&L->b, OP_SUB, line_const(L, line, n - 1), line), axis), c->span);
}

/* ---- joining ---- */

Val
builtin_along(Lower *L, Call *c)
{
  i64 axis, rank;
  Value *x = call_tile(L, c, 0);
  if (!x || !call_int(L, c, 1, "the axis", &axis) || !call_int(L, c, 2, "the rank", &rank))
    return val_poison(c->span);
  if (x->type->rank != 1 || rank < 1 || rank > MAX_RANK || axis < -rank || axis >= rank)
    return call_error(L, c, c->span, "a tile of one dimension is laid along one of 1 to 5");
  L->b.span = c->span;
  for (i64 i = 0; i < rank; i++)
    if (i != (axis < 0 ? axis + rank : axis))
      x = ir_expand_dims(&L->b, x, (int)i);
  return val_ir(x, c->span);
}

Val
builtin_squeeze(Lower *L, Call *c)
{
  int axis;
  u32 shape[MAX_RANK], n = 0;
  Value *x = call_tile(L, c, 0);
  if (!x || !call_axis(L, c, 1, x->type, &axis))
    return val_poison(c->span);
  const Type *t = x->type;
  if (t->shape[axis] != 1 || t->rank == 1)
    return call_error(L, c, c->args[1].span,
                      arena_printf(L->a, "a dimension of extent 1 beside others goes, not one of %s", type_str(L->c, t)));
  for (int d = 0; d < t->rank; d++)
    if (d != axis)
      shape[n++] = t->shape[d];
  L->b.span = c->span;
  return val_ir(ir_reshape(&L->b, x, (int)n, shape), c->span);
}

/* Arguments 0 and 1 under a common type and shape; false after reporting. */
static bool
two_tiles(Lower *L, Call *c, bool shapes, Value **v)
{
  for (u32 i = 0; i < 2; i++)
    if (!call_tile(L, c, i))
      return false;
  bool pa = val_is_ptr(c->args[0]), pb = val_is_ptr(c->args[1]);
  v[0] = c->args[0].ir;
  v[1] = c->args[1].ir;
  if (pa != pb || (pa && type_elem(L->c, v[0]->type) != type_elem(L->c, v[1]->type))) {
    note_values(L, ERR(L, c->span, E_ARMS, val_str(L, c->args[0]), val_str(L, c->args[1])), 2, c->args);
    return false;
  }
  L->b.span = c->span;
  DType dt = num_dtype(L, num_promote(v[0]->type->dt, v[1]->type->dt), NULL);
  for (u32 i = 0; !pa && i < 2; i++)
    if (!(v[i] = val_as(L, c->args[i], dt, NULL)))
      return false;
  return !shapes || values_broadcast(L, c->span, c->name, 2, v, c->args);
}

/* a and b of one shape, told apart by a new last dimension; NULL after reporting. */
static Value *
join(Lower *L, Call *c, Value *a, Value *b)
{
  u32 shape[MAX_RANK], rank = a->type->rank;
  if (rank == MAX_RANK) {
    call_error(L, c, c->span, "a tile has at most 5 dimensions");
    return NULL;
  }
  memcpy(shape, a->type->shape, sizeof shape);
  shape[rank] = 2;
  if (!shape_check(L, c->span, rank + 1, shape))
    return NULL;
  const Type *t = type_tile(L->c, type_elem(L->c, a->type), (int)rank + 1, shape, NULL);
  Value *line = ir_arange(&L->b, 0, 2), *first = ir_cmp(&L->b, "eq", line, line_const(L, line, 0));
  a = value_broadcast(L, ir_expand_dims(&L->b, a, (int)rank), t);
  b = value_broadcast(L, ir_expand_dims(&L->b, b, (int)rank), t);
  return ir_select(&L->b, laid_along(L, first, (int)rank, t), a, b);
}

Val
builtin_join(Lower *L, Call *c)
{
  Value *v[2], *r = two_tiles(L, c, true, v) ? join(L, c, v[0], v[1]) : NULL;
  return r ? val_ir(r, c->span) : val_poison(c->span);
}

/* x without dimension axis: its elements at coordinate `which` there, an i32 that may be a run-time value. A fold of bits
 * of which all but one element's are zero: nothing at all where the axis lies in registers and `which` is a constant. */
Value *
tile_pick(Lower *L, Value *x, int axis, Value *which)
{
  const Type *t = x->type, *elem = type_elem(L->c, t);
  bool truth = type_is_bool(t);
  static const DType words[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64};
  DType word = type_is_ptr(t) ? DT_I64 : words[(dtype_bits(t->dt) + 7) / 8];
  if (!truth && (type_is_ptr(t) || word != t->dt))
    x = ir_bitcast(&L->b, x, type_scalar(L->c, word));
  Value *line = ir_arange(&L->b, 0, t->shape[axis]), *want = value_broadcast(L, which, line->type);
  Value *here = laid_along(L, ir_cmp(&L->b, "eq", line, want), axis, x->type);
  x = ir_select(&L->b, here, x, ir_const_int(&L->b, x->type, 0));
  x = ir_combine(&L->b, ir_reduce(&L->b, 1, &x, axis), OP_OR);
  return x->type->dt == elem->dt && !type_is_ptr(elem) ? x : ir_bitcast(&L->b, x, elem);
}

static Value *
index_const(Lower *L, i64 k)
{
  return ir_const_int(&L->b, type_scalar(L->c, DT_I32), k);
}

Val
builtin_split(Lower *L, Call *c)
{
  Value *x = call_tile(L, c, 0);
  if (!x)
    return val_poison(c->span);
  if (x->type->shape[x->type->rank - 1] != 2)
    return call_error(L, c, c->args[0].span, arena_printf(L->a, "the last extent is 2, this is %s", type_str(L->c, x->type)));
  L->b.span = c->span;
  Val v = val_list(L, V_TUPLE, 2, c->span);
  for (u32 i = 0; i < 2; i++)
    v.list.v[i] = val_ir(tile_pick(L, x, x->type->rank - 1, index_const(L, i)), c->span);
  return v;
}

/* Elements of a and b one after the other along axis, chosen by `from_a`, each by its line of indices. */
static Value *
merged(Lower *L, Value *const *v, int axis, Value *from_a, Value *at_a, Value *at_b)
{
  Value *a = gather_line(L, v[0], at_a, axis), *b = gather_line(L, v[1], at_b, axis);
  return ir_select(&L->b, laid_along(L, from_a, axis, a->type), a, b);
}

/* a, b of n elements along axis become 2n of one: adjacent, or one after the other. */
static Value *
join_flat(Lower *L, Call *c, Value *const *v, int axis, bool adjacent)
{
  int perm[MAX_RANK], rank = v[0]->type->rank, n = 0;
  Value *x = join(L, c, v[0], v[1]);
  if (!x)
    return NULL;
  for (int d = 0; d < rank; d++) {
    if (d == axis && !adjacent)
      perm[n++] = rank;
    perm[n++] = d;
    if (d == axis && adjacent)
      perm[n++] = rank;
  }
  const Type *t = with_extent(L, v[0]->type, axis, 2 * v[0]->type->shape[axis]);
  return ir_reshape(&L->b, ir_permute(&L->b, x, perm), rank, t->shape);
}

static bool
is_flat_join(Value *const *v, int axis)
{
  const Type *t = v[0]->type;
  return t->rank < MAX_RANK && is_pow2(t->shape[axis]) && t->shape[axis] == v[1]->type->shape[axis];
}

Val
builtin_interleave(Lower *L, Call *c)
{
  Value *v[2];
  if (!two_tiles(L, c, true, v))
    return val_poison(c->span);
  int axis = v[0]->type->rank - 1;
  u32 n = 2 * v[0]->type->shape[axis];
  if (!shape_check(L, c->span, v[0]->type->rank, with_extent(L, v[0]->type, axis, n)->shape))
    return val_poison(c->span);
  if (is_flat_join(v, axis))
    return val_ir(join_flat(L, c, v, axis, true), c->span);
  Value *line = ir_arange(&L->b, 0, n), *one = line_const(L, line, 1), *half = ir_binary(&L->b, OP_SHR, line, one);
  Value *zero = line_const(L, line, 0), *even = ir_cmp(&L->b, "eq", ir_binary(&L->b, OP_AND, line, one), zero);
  return val_ir(merged(L, v, axis, even, half, half), c->span);
}

Val
builtin_cat(Lower *L, Call *c)
{
  Value *v[2];
  int axis = 0;
  if (!two_tiles(L, c, false, v) || (c->given[2] && !call_axis(L, c, 2, v[0]->type, &axis)))
    return val_poison(c->span);
  const Type *a = v[0]->type, *b = v[1]->type;
  bool fits = a->rank == b->rank;
  for (int d = 0; fits && d < a->rank; d++)
    fits = d == axis || a->shape[d] == b->shape[d];
  if (!fits) {
    note_values(L, ERR(L, c->span, E_SHAPES, c->name, type_str(L->c, a), type_str(L->c, b)), 2, c->args);
    return val_poison(c->span);
  }
  u32 n = a->shape[axis], m = b->shape[axis];
  if (!shape_check(L, c->span, a->rank, with_extent(L, a, axis, n + m)->shape))
    return val_poison(c->span);
  if (is_flat_join(v, axis))
    return val_ir(join_flat(L, c, v, axis, false), c->span);
  Value *line = ir_arange(&L->b, 0, n + m), *from_b = ir_binary(&L->b, OP_SUB, line, line_const(L, line, n));
  Value *in_a = ir_binary(&L->b, OP_MIN, line, line_const(L, line, n - 1));
  Value *in_b = ir_binary(&L->b, OP_MAX, from_b, line_const(L, line, 0));
  return val_ir(merged(L, v, axis, ir_cmp(&L->b, "lt", line, line_const(L, line, n)), in_a, in_b), c->span);
}

/* ---- parts ---- */

/* Argument i as where a part of these extents begins in t; false after reporting. */
static bool
call_start(Lower *L, Call *c, u32 i, const Type *t, u32 rank, const u32 *shape, i64 *start)
{
  u32 n;
  const char *why = NULL;
  if (!call_ints(L, c, i, "where the part starts", MAX_RANK, &n, start))
    return false;
  if (n != t->rank || rank != t->rank)
    why = arena_printf(L->a, "its start and extents are %u numbers each", t->rank);
  for (u32 d = 0; !why && d < n; d++)
    if (start[d] < 0 || start[d] > (i64)t->shape[d] || start[d] + (i64)shape[d] > (i64)t->shape[d])
      why = arena_printf(L->a, "it has elements 0 to %u along dimension %u", t->shape[d] - 1, d);
  if (why)
    ERR(L, c->args[i].span, E_VIEW, type_str(L->c, t), why);
  return !why;
}

/* Elements start, start + 1, ... of x along axis. An aligned part of a power of two is one of a row of such parts. */
static Value *
part_along(Lower *L, Value *x, int axis, i64 start, u32 extent)
{
  const Type *t = x->type;
  u32 n = t->shape[axis], shape[MAX_RANK + 1];
  if (extent == n)
    return x;
  if (n % extent || !is_pow2(extent) || start % extent || t->rank == MAX_RANK)
    return gather_line(L, x, ir_arange(&L->b, start, start + extent), axis);
  for (int d = 0; d <= t->rank; d++)
    shape[d] = d < axis ? t->shape[d] : d == axis ? n / extent : d == axis + 1 ? extent : t->shape[d - 1];
  Value *at = index_const(L, start / extent);
  return tile_pick(L, ir_reshape(&L->b, x, t->rank + 1, shape), axis, at);
}

Value *
tile_slice(Lower *L, Value *x, const i64 *start, const u32 *shape)
{
  for (int d = 0; d < x->type->rank; d++)
    x = part_along(L, x, d, start[d], shape[d]);
  return x;
}

/* The part of a tile of these extents. */
Val
tile_part(Lower *L, Call *c)
{
  i64 start[MAX_RANK];
  u32 rank, shape[MAX_RANK];
  Value *x = call_tile(L, c, 0);
  if (!x || !call_shape(L, c, 2, &rank, shape) || !call_start(L, c, 1, x->type, rank, shape, start))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(tile_slice(L, x, start, shape), c->span);
}

/* x with y in place of the part that begins at start. */
Val
builtin_insert(Lower *L, Call *c)
{
  i64 start[MAX_RANK];
  Value *v[2], *inside = NULL;
  if (!two_tiles(L, c, false, v))
    return val_poison(c->span);
  const Type *t = v[0]->type, *part = v[1]->type;
  if (!call_start(L, c, 2, t, part->rank, part->shape, start))
    return val_poison(c->span);
  for (int d = 0; d < t->rank; d++) {
    if (part->shape[d] == t->shape[d])
      continue;
    Value *line = ir_arange(&L->b, -start[d], (i64)t->shape[d] - start[d]), *last = line_const(L, line, part->shape[d] - 1);
    Value *zero = line_const(L, line, 0);
    Value *below = ir_cmp(&L->b, "le", line, last), *in = ir_binary(&L->b, OP_AND, ir_cmp(&L->b, "ge", line, zero), below);
    v[1] = gather_line(L, v[1], ir_binary(&L->b, OP_MIN, ir_binary(&L->b, OP_MAX, line, zero), last), d);
    in = laid_along(L, in, d, t);
    inside = inside ? ir_binary(&L->b, OP_AND, inside, in) : in;
  }
  return val_ir(inside ? ir_select(&L->b, inside, v[1], v[0]) : v[1], c->span);
}
