/* verify_tma.c - check_<ID> of tensors, and of copies of their boxes. */
#include "verify.h"

static bool
tensor_operand(Verifier *v, const Op *op, u32 i)
{
  return type_is_tensor(in_type(op, i)) || verify_fail(v, op, "operand %u is a tensor, not %s", i, spell(v, in_type(op, i)));
}

bool
check_TENSOR_OF(Verifier *v, const Op *op)
{
  const Value *p = OPERAND(op, TENSOR_OF, p);
  const Type *t = out_type(op);
  LaunchValue x;
  if (p->def || p->block->parent || p->type->kind != TY_PTR)
    return verify_fail(v, op, "operand 0 is a parameter that is a pointer");
  if (!type_is_tensor(t) || t->dt != p->type->dt || dtype_bits(t->dt) < 8)
    return verify_fail(v, op, "the result is a tensor of what %s points to, not %s", spell(v, p->type), spell(v, t));
  if (op->noperands != 2u * t->rank)
    return verify_fail(v, op, "%u extents and strides of a tensor of %u dimensions: it has %u", op->noperands - 1, t->rank,
                       2 * t->rank - 1);
  for (u32 i = 1; i < op->noperands; i++)
    if (!launch_value(op_operand(op, i), &x) || !launch_value_given(&x))
      return verify_fail(v, op, "operand %u is no integer that a launch knows: a parameter, a constant, or a product of such", i);
  return true;
}

bool
check_TENSOR_AT(Verifier *v, const Op *op)
{
  const Type *t = out_type(op), *p = IN_TYPE(op, TENSOR_AT, p);
  u32 n = op->noperands - 1, numbers = 2u * t->rank - 1;
  if (p->kind != TY_PTR)
    return verify_fail(v, op, "operand 0 is a pointer, not %s", spell(v, p));
  if (!type_is_tensor(t) || t->dt != p->dt || dtype_bits(t->dt) < 8)
    return verify_fail(v, op, "the result is a tensor of what %s points to, not %s", spell(v, p), spell(v, t));
  if (n != numbers && n != numbers + 1)
    return verify_fail(v, op, "%u extents and strides of a tensor of %u dimensions: it has %u", n, t->rank, numbers);
  for (u32 i = 0; i < numbers; i++)
    if (in_type(op, 1 + i) != type_scalar(v->ctx, i < t->rank ? DT_I32 : DT_I64))
      return verify_fail(v, op, "extents are i32 and strides i64, not %s", spell(v, in_type(op, 1 + i)));
  return n == numbers || in_type(op, n) == type_ptr(v->ctx, DT_U8) ||
         verify_fail(v, op, "what is behind extents and strides is *u8, not %s", spell(v, in_type(op, n)));
}

/* The result is that; the dimension, where one is named, is the tensor's. */
static bool
check_about(Verifier *v, const Op *op, const Type *want)
{
  if (!tensor_operand(v, op, 0))
    return false;
  if (op_operand(op, 0)->def)
    return verify_fail(v, op, "what %s makes is as its operands say", op_info(op_operand(op, 0)->def->code)->name);
  u32 rank = in_type(op, 0)->rank;
  if (op_int(op, AT_AXIS, 0) >= rank)
    return verify_fail(v, op, "axis %lld of a tensor of %u dimensions", (long long)op_int(op, AT_AXIS, 0), rank);
  return out_type(op) == want || verify_fail(v, op, "the result is %s, not %s", spell(v, want), spell(v, out_type(op)));
}

bool
check_TENSOR_BASE(Verifier *v, const Op *op)
{
  return check_about(v, op, type_ptr(v->ctx, in_type(op, 0)->dt));
}

bool
check_TENSOR_EXTENT(Verifier *v, const Op *op)
{
  return check_about(v, op, type_scalar(v->ctx, DT_I32));
}

bool
check_TENSOR_STRIDE(Verifier *v, const Op *op)
{
  return check_about(v, op, type_scalar(v->ctx, DT_I64));
}

/* Attributes of a window stand together. */
static bool
check_window(Verifier *v, const Op *op, u32 rank)
{
  const Attr *lower = op_attr(op, AT_LOWER), *upper = op_attr(op, AT_UPPER), *steps = op_attr(op, AT_STEPS);
  if (!lower && !upper && !steps)
    return true;
  if (!lower || !upper || lower->ints.n != upper->ints.n || (steps && steps->ints.n != lower->ints.n))
    return verify_fail(v, op, "a window has lower and upper corners, and steps if any, of as many dimensions");
  TmaWindow w = tma_window(op);
  const char *wrong = tma_window_error(v->ctx->scratch, &w, rank);
  return !wrong || verify_fail(v, op, "%s", wrong);
}

static bool
check_rounded(Verifier *v, const Op *op, const Type *tensor)
{
  return !op_attr(op, AT_TF32) || tensor->dt == DT_F32 || verify_fail(v, op, "f32 is rounded to tf32, not %s", dtype_info[tensor->dt].name);
}

/* An i32 for each dimension, from operand `first` on; then, through a window, an offset for each of its. */
static bool
check_coordinates(Verifier *v, const Op *op, u32 first, u32 rank)
{
  u32 n = op->noperands - first, offsets = tma_window(op).n;
  if (!check_window(v, op, rank))
    return false;
  if (n != rank + offsets && offsets)
    return verify_fail(v, op, "%u coordinates and offsets, of %u and %u", n, rank, offsets);
  if (n != rank + offsets)
    return verify_fail(v, op, "%u coordinate%s in a tensor of %u dimensions", n, n == 1 ? "" : "s", rank);
  for (u32 i = first; i < op->noperands; i++)
    if (in_type(op, i) != type_scalar(v->ctx, DT_I32))
      return verify_fail(v, op, "coordinates are i32, not %s", spell(v, in_type(op, i)));
  return true;
}

/* A tile that is a box of operand t, at the coordinates from operand `at` on. */
static bool
check_tile(Verifier *v, const Op *op, const Type *tile, u32 t, u32 at)
{
  if (!tensor_operand(v, op, t))
    return false;
  const Type *tensor = in_type(op, t);
  if (!type_is_tile(tile) || tile->ptr || tile->pending || tile->dt != tensor->dt)
    return verify_fail(v, op, "%s is no tile of %s", spell(v, tile), spell(v, tensor));
  if (tile->rank > tensor->rank)
    return verify_fail(v, op, "the tile has %u dimensions, the tensor %u", tile->rank, tensor->rank);
  if (op_attr(op, AT_LOWER) && tile->rank != 2)
    return verify_fail(v, op, "what is seen through a window has two dimensions, pixels and channels, not %u", tile->rank);
  if (v->phase == PHASE_SCHED)
    return verify_fail(v, op, "lower_tensors leaves none");
  return check_rounded(v, op, tensor) && check_coordinates(v, op, at, tensor->rank);
}

bool
check_TENSOR_LOAD(Verifier *v, const Op *op)
{
  return check_tile(v, op, out_type(op), SLOT(TENSOR_LOAD, t), SLOT(TENSOR_LOAD, at));
}

bool
check_TENSOR_STORE(Verifier *v, const Op *op)
{
  const Type *x = IN_TYPE(op, TENSOR_STORE, x);
  const char *rmw = op_str(op, AT_RMW, NULL);
  return check_tile(v, op, x, SLOT(TENSOR_STORE, t), SLOT(TENSOR_STORE, at)) &&
         (!rmw || atomic_rmw_allowed(rmw, x->dt) || verify_fail(v, op, "there is no atomic '%s' of %s", rmw, dtype_info[x->dt].name));
}

/* Operand b is a buffer that a box of tensor t is copied to or from. */
static bool
check_box(Verifier *v, const Op *op, u32 b, u32 t, u32 at)
{
  const Type *buffer = in_type(op, b);
  if (!type_is_shared(buffer) || buffer->count || dtype_is_opaque(buffer->dt))
    return verify_fail(v, op, "operand %u is one buffer, not %s", b, spell(v, buffer));
  if (!tensor_operand(v, op, t))
    return false;
  const Type *tensor = in_type(op, t);
  if (tensor->dt != buffer->dt)
    return verify_fail(v, op, "%s and %s do not match", spell(v, buffer), spell(v, tensor));
  if (!check_rounded(v, op, tensor) || !check_coordinates(v, op, at, tensor->rank))
    return false;
  TmaForm form;
  TmaWindow w = tma_window(op);
  const char *view = tma_view_error(op_operand(op, b)), *wrong = view ? view : tma_form_error(v->ctx, buffer, tensor->rank, &w, &form);
  return !wrong || verify_fail(v, op, "%s", wrong);
}

static bool
check_multicast(Verifier *v, const Op *op)
{
  const Attr *axes = op_attr(op, AT_MULTICAST);
  u32 seen = 0;
  for (u32 i = 0; axes && i < axes->ints.n; i++) {
    i64 a = axes->ints.v[i];
    if (a < 0 || a > 2 || seen >> a & 1)
      return verify_fail(v, op, "multicast names axes 0, 1 and 2, each at most once");
    seen |= 1u << a;
  }
  return true;
}

bool
check_TMA_LOAD(Verifier *v, const Op *op)
{
  const Type *m = IN_TYPE(op, TMA_LOAD, m);
  if (!type_is_shared(m) || m->dt != DT_MBAR || m->count)
    return verify_fail(v, op, "operand %u is one mbarrier, not %s", SLOT(TMA_LOAD, m), spell(v, m));
  return check_box(v, op, SLOT(TMA_LOAD, b), SLOT(TMA_LOAD, t), SLOT(TMA_LOAD, at)) && check_multicast(v, op);
}

bool
check_TMA_STORE(Verifier *v, const Op *op)
{
  const char *rmw = op_str(op, AT_RMW, NULL);
  DType d = IN_TYPE(op, TMA_STORE, b)->dt;
  return check_box(v, op, SLOT(TMA_STORE, b), SLOT(TMA_STORE, t), SLOT(TMA_STORE, at)) &&
         (!rmw || tma_reduces(rmw, d) || verify_fail(v, op, "tensor copies have no '%s' of %s", rmw, dtype_info[d].name));
}

bool
check_TMA_PREFETCH(Verifier *v, const Op *op)
{
  return check_box(v, op, SLOT(TMA_PREFETCH, b), SLOT(TMA_PREFETCH, t), SLOT(TMA_PREFETCH, at));
}

bool
check_TMA_COMMIT(Verifier *v, const Op *op)
{
  return true;
}

bool
check_TMA_WAIT(Verifier *v, const Op *op)
{
  i64 n = op_int(op, AT_PENDING, 0);
  return (n >= 0 && n <= PENDING_MOST) ||
         verify_fail(v, op, "from 0 to %d groups may be under way, not %lld", PENDING_MOST, (long long)n);
}
