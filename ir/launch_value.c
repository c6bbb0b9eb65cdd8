/* launch_value.c - what a launch knows before it begins: products of its integer arguments, of its tensors' extents and strides, and of
 * constants. */
#include "ir.h"

enum { LOOKS = 64 };

static bool
known(const Value *v, LaunchValue *out, u32 *looks);

static bool
multiply(LaunchValue *out, const LaunchValue *by)
{
  if (out->n + by->n > LAUNCH_FACTORS || __builtin_mul_overflow(out->times, by->times, &out->times))
    return false;
  for (u32 i = 0; i < by->n; i++) {
    u32 at = out->n++;
    for (; at && out->param[at - 1] > by->param[i]; at--)
      out->param[at] = out->param[at - 1];
    out->param[at] = by->param[i];
  }
  return true;
}

static bool
known_op(const Op *op, LaunchValue *out, u32 *looks)
{
  const Type *from = op->noperands ? op_operand(op, 0)->type : NULL, *to = op_result(op)->type;
  LaunchValue a, b;
  i64 k;
  switch (op->code) {
  case OP_HINT: case OP_BOUNDED: return known(op_operand(op, 0), out, looks);
  case OP_CAST:
    return type_is_int(from) && dtype_bits(to->dt) >= dtype_bits(from->dt) + (dtype_is_signed(to->dt) && !dtype_is_signed(from->dt)) &&
           dtype_is_signed(to->dt) >= dtype_is_signed(from->dt) && known(op_operand(op, 0), out, looks);
  case OP_TENSOR_EXTENT: case OP_TENSOR_STRIDE:
    *out = (LaunchValue){.times = 1, .n = 1, .param = {launch_asked(op_tensor(op), op->code, (u32)op_int(op, AT_AXIS, 0))}};
    return true;
  case OP_MUL:
    if (!known(OPERAND(op, BINARY, a), &a, looks) || !known(OPERAND(op, BINARY, b), &b, looks) || !multiply(&a, &b))
      return false;
    *out = a;
    return true;
  case OP_SHL:
    if (!value_const_int(OPERAND(op, BINARY, b), &k) || k < 0 || k > 30 || !known(OPERAND(op, BINARY, a), &a, looks))
      return false;
    b = (LaunchValue){.times = INT64_C(1) << k};
    *out = a;
    return multiply(out, &b);
  default: return false;
  }
}

static bool
known(const Value *v, LaunchValue *out, u32 *looks)
{
  i64 k;
  if (type_is_tile(v->type) || !type_is_int(v->type) || v->type->dt == DT_U64 || !*looks)
    return false;
  --*looks;
  if (value_const_int(v, &k)) {
    *out = (LaunchValue){.times = k};
    return true;
  }
  if (v->def)
    return known_op(v->def, out, looks);
  *out = (LaunchValue){.times = 1, .n = 1, .param = {v->index}};
  return !v->block->parent;
}

bool
launch_value(const Value *v, LaunchValue *out)
{
  u32 looks = LOOKS;
  return known(v, out, &looks);
}

bool
launch_value_times(LaunchValue *v, const LaunchValue *by)
{
  LaunchValue product = *v;
  if (!multiply(&product, by))
    return false;
  *v = product;
  return true;
}

bool
launch_value_alike(const LaunchValue *a, const LaunchValue *b)
{
  return a->n == b->n && !memcmp(a->param, b->param, a->n * sizeof *a->param);
}

bool
launch_value_given(const LaunchValue *v)
{
  return !v->n || v->param[v->n - 1] < LAUNCH_ASKED;
}

u64
launch_value_divisible(const Func *f, const LaunchValue *v)
{
  u64 d = (u64)v->times & -(u64)v->times;
  for (u32 i = 0; i < v->n && v->param[i] < LAUNCH_ASKED && d && d < LAUNCH_DIVISIBLE_MOST; i++)
    d *= f->params[v->param[i]].divisible & -f->params[v->param[i]].divisible;
  return d && d < LAUNCH_DIVISIBLE_MOST ? d : LAUNCH_DIVISIBLE_MOST;
}

Value *
launch_value_build(Builder *b, const LaunchValue *v)
{
  const Type *t = type_scalar(b->func->module->ctx, DT_I64);
  Value *x = v->n && v->times == 1 ? NULL : ir_const_int(b, t, v->times);
  for (u32 i = 0; i < v->n; i++) {
    Value *p = ir_cast(b, b->func->body->args[v->param[i]], DT_I64);
    x = x ? ir_binary(b, OP_MUL, x, p) : p;
  }
  return x;
}
