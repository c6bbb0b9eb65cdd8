/* canon_elem.c - rules for elementwise ops: constants, splats, broadcasts, identities, casts, fused
 * multiply-add. */
#include "canon.h"
#include "fp.h"
#include <math.h>

/* ---- constants ---- */

static bool
fold_constants(Canon *k, Op *op)
{
  u64 x[3], r;
  for (u32 i = 0; i < op->noperands; i++)
    if (i >= COUNT(x) || !value_const_bits(op_operand(op, i), &x[i]))
      return false;
  return op->noperands && fold_elem(op, x, &r) && canon_replace(k, op, ir_const_bits(&k->b, op_result(op)->type, r));
}

/* ---- splats: arithmetic on equal elements is scalar arithmetic ---- */

static bool
splats_to_scalar(Canon *k, Op *op)
{
  Value *xs[3];
  const Type *t = op_result(op)->type;
  if (!type_is_tile(t) || op->noperands > COUNT(xs))
    return false;
  for (u32 i = 0; i < op->noperands; i++)
    if (!value_is_splat(op_operand(op, i)))
      return false;
  for (u32 i = 0; i < op->noperands; i++)
    xs[i] = value_splat_scalar(k, op_operand(op, i));
  Op *s = clone_with(k, op, op->noperands, xs, type_elem(k->c, t));
  return canon_replace(k, op, splat_like(k, op_result(s), t));
}

/* ---- broadcasts: op(broadcast a, broadcast b) is broadcast op(a, b), with fewer elements to compute ---- */

static bool
liftable(const Op *shape)
{
  return shape && (shape->code == OP_BROADCAST || shape->code == OP_EXPAND_DIMS);
}

static const Op *
common_lift(const Op *op)
{
  const Op *lift = NULL;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    if (value_is_splat(v))
      continue;
    if (!liftable(v->def))
      return NULL;
    if (!lift)
      lift = v->def;
    if (v->def->code != lift->code || op_int(v->def, AT_AXIS, 0) != op_int(lift, AT_AXIS, 0) ||
        !type_same_shape(OPERAND(v->def, UNARY, x)->type, OPERAND(lift, UNARY, x)->type))
      return NULL;
  }
  return lift;
}

static bool
lift_shape(Canon *k, Op *op)
{
  Value *xs[3];
  const Op *lift = op->noperands <= COUNT(xs) ? common_lift(op) : NULL;
  if (!lift)
    return false;
  const Type *small = OPERAND(lift, UNARY, x)->type, *t = op_result(op)->type;
  for (u32 i = 0; i < op->noperands; i++) {
    Value *v = op_operand(op, i);
    xs[i] = value_is_splat(v) ? splat_like(k, value_splat_scalar(k, v), small) : OPERAND(v->def, UNARY, x);
  }
  Value *r = op_result(clone_with(k, op, op->noperands, xs, type_with_elem(k->c, small, type_elem(k->c, t))));
  return canon_replace(k, op, op_result(clone_with(k, lift, 1, &r, t)));
}

/* ---- order: constants right, then splats ---- */

static int
rank(const Value *v)
{
  u64 bits;
  return value_const_bits(v, &bits) ? 2 : value_is_splat(v);
}

static bool
order_operands(Canon *k, Op *op)
{
  if (!op_has(op, T_COMM) || op->noperands != 2)
    return false;
  Value *a = OPERAND(op, BINARY, a), *b = OPERAND(op, BINARY, b);
  if (rank(a) <= rank(b))
    return false;
  op_set_operand(op, SLOT(BINARY, a), b);
  op_set_operand(op, SLOT(BINARY, b), a);
  return canon_changed(k, op);
}

static const char *
mirrored(const char *pred)
{
  static const char *const from[] = {"lt", "le", "gt", "ge"}, *const to[] = {"gt", "ge", "lt", "le"};
  for (u32 i = 0; i < COUNT(from); i++)
    if (!strcmp(pred, from[i]))
      return to[i];
  return pred;
}

static bool
order_cmp(Canon *k, Op *op)
{
  Value *a = OPERAND(op, CMP, a), *b = OPERAND(op, CMP, b);
  if (op->code != OP_CMP || rank(a) <= rank(b))
    return false;
  return canon_replace(k, op, ir_cmp(&k->b, mirrored(op_str(op, AT_PRED, "eq")), b, a));
}

/* (x + c1) + c2, only where the sum of the constants stays in range: an address may be split between them later. */
static bool
merge_constants(Canon *k, Op *op)
{
  i64 c1, c2, sum;
  Value *a = OPERAND(op, ADD, a);
  const Type *t = op_result(op)->type;
  if (op->code != OP_ADD || !op_is(a, OP_ADD) || !type_is_int(t) || !value_const_int(OPERAND(op, ADD, b), &c2) ||
      !value_const_int(OPERAND(a->def, ADD, b), &c1) || __builtin_add_overflow(c1, c2, &sum) ||
      scalar_int(t->dt, (u64)sum) != sum)
    return false;
  return canon_replace(k, op, ir_binary(&k->b, OP_ADD, OPERAND(a->def, ADD, a), ir_const_int(&k->b, t, sum)));
}

/* ---- identities ---- */

static Value *
zero(Canon *k, const Type *t)
{
  return ir_const_bits(&k->b, t, 0);
}

/* x op constant, integers and i1; NULL: no identity. ones: all bits set. */
static Value *
int_with_const(Canon *k, Op *op, Value *x, u64 bits)
{
  const Type *t = x->type;
  bool is0 = bits == 0, is1 = bits == 1, ones = bits == scalar_wrap(t->dt, ~0ull), sign = dtype_is_signed(t->dt);
  switch (op->code) {
  case OP_ADD: case OP_XOR: return is0 ? x : NULL;
  case OP_SUB:
    if (is0)
      return x;
    return sign ? ir_binary(&k->b, OP_ADD, x, ir_const_bits(&k->b, t, scalar_wrap(t->dt, 0 - bits))) : NULL;
  case OP_MUL: return is1 ? x : is0 ? zero(k, t) : NULL;
  case OP_DIV:
    if (is1)
      return x;
    return !sign && is_pow2(bits) ? ir_binary(&k->b, OP_SHR, x, ir_const_int(&k->b, t, __builtin_ctzll(bits))) : NULL;
  case OP_REM:
    if (is1)
      return zero(k, t);
    return !sign && is_pow2(bits) ? ir_binary(&k->b, OP_AND, x, ir_const_bits(&k->b, t, bits - 1)) : NULL;
  case OP_AND: return ones ? x : is0 ? zero(k, t) : NULL;
  case OP_OR: return is0 ? x : ones ? ir_const_bits(&k->b, t, bits) : NULL;
  case OP_SHL: case OP_SHR: return is0 ? x : NULL;
  default: return NULL;
  }
}

static bool
exact_reciprocal(DType d, double v)
{
  int e;
  double r = 1.0 / v;
  return isfinite(v) && isfinite(r) && fabs(frexp(v, &e)) == 0.5 && float_decode(d, float_encode(d, r, ROUND_NEAREST, false)) == r &&
         fabs(r) >= ldexp(1.0, 2 - (1 << (dtype_info[d].exp - 1)));
}

static Value *
float_with_const(Canon *k, Op *op, Value *x, u64 bits)
{
  DType d = x->type->dt;
  double v = float_decode(d, bits);
  switch (op->code) {
  case OP_ADD: return v == 0 && signbit(v) ? x : NULL;
  case OP_SUB: return v == 0 && !signbit(v) ? x : NULL;
  case OP_MUL: return v == 1 ? x : v == -1 ? ir_unary(&k->b, OP_NEG, x) : NULL;
  case OP_DIV:
    if (v == 1)
      return x;
    return exact_reciprocal(d, v) ? ir_binary(&k->b, OP_MUL, x, ir_const_float(&k->b, x->type, 1.0 / v)) : NULL;
  default: return NULL;
  }
}

static bool
holds_when_equal(const char *pred)
{
  return !strcmp(pred, "eq") || !strcmp(pred, "le") || !strcmp(pred, "ge");
}

static Value *
with_itself(Canon *k, Op *op, Value *x)
{
  const Type *t = op_result(op)->type;
  bool flt = type_is_float(x->type);
  switch (op->code) {
  case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: case OP_AND: case OP_OR: return x;
  case OP_SUB: case OP_XOR: return flt ? NULL : zero(k, t);
  case OP_CMP: return flt ? NULL : ir_const_bits(&k->b, t, holds_when_equal(op_str(op, AT_PRED, "eq")));
  default: return NULL;
  }
}

static Value *
binary_identity(Canon *k, Op *op)
{
  u64 bits;
  Value *a = OPERAND(op, BINARY, a), *b = OPERAND(op, BINARY, b);
  if (a == b) {
    Value *v = with_itself(k, op, a);
    if (v)
      return v;
  }
  if (op->code == OP_ADDPTR)
    return value_const_bits(b, &bits) && !bits ? a : NULL;
  if (type_is_ptr(a->type) || !value_const_bits(b, &bits) || op->code == OP_CMP)
    return NULL;
  return type_is_float(a->type) ? float_with_const(k, op, a, bits) : int_with_const(k, op, a, bits);
}

static Value *
unary_identity(Canon *k, Op *op)
{
  Value *x = OPERAND(op, UNARY, x);
  bool twice = op_is(x, op->code);
  switch (op->code) {
  case OP_NEG: case OP_NOT: return twice ? OPERAND(x->def, UNARY, x) : NULL;
  case OP_ABS: case OP_FLOOR: case OP_CEIL: case OP_RINT: return twice ? x : NULL;
  default: return NULL;
  }
}

static Value *
select_identity(Canon *k, Op *op)
{
  u64 cond, a, b;
  Value *c = OPERAND(op, SELECT, c), *x = OPERAND(op, SELECT, a), *y = OPERAND(op, SELECT, b);
  if (x == y)
    return x;
  if (value_const_bits(c, &cond))
    return cond ? x : y;
  if (!type_is_bool(x->type) || !value_const_bits(x, &a) || !value_const_bits(y, &b) || a == b)
    return NULL;
  return a ? c : ir_unary(&k->b, OP_NOT, c);
}

/* Every value of `from` is a value of `to`. */
static bool
cast_keeps_value(DType from, DType to)
{
  const DTypeInfo *a = &dtype_info[from], *b = &dtype_info[to];
  if (from == to)
    return true;
  if (dtype_is_float(from))
    return dtype_is_float(to) && b->bits > a->bits && b->exp >= a->exp && b->man >= a->man;
  if (from == DT_I1)
    return to != DT_I1;
  if (dtype_is_float(to))
    return b->man + 1u >= a->bits && b->exp >= 8;
  return dtype_is_int(to) && b->bits > a->bits && (!dtype_is_signed(from) || dtype_is_signed(to));
}

/* A cast to a float type that does not keep infinities. */
static bool
cast_clamps(const Op *op)
{
  DType to = op_result(op)->type->dt;
  return dtype_is_float(to) && (op_int(op, AT_SAT, 0) || dtype_bits(to) == 8);
}

static Value *
cast_identity(Canon *k, Op *op)
{
  Value *x = OPERAND(op, CAST, x);
  const Type *t = op_result(op)->type;
  if (x->type == t)
    return cast_clamps(op) ? NULL : x;
  if (!op_is(x, OP_CAST) || cast_clamps(x->def))
    return NULL;
  Value *in = OPERAND(x->def, CAST, x);
  if (!cast_keeps_value(in->type->dt, x->type->dt))
    return NULL;
  if (dtype_is_int(in->type->dt) && dtype_is_float(x->type->dt) && dtype_is_int(t->dt) && !cast_keeps_value(in->type->dt, t->dt))
    return NULL;                                       /* from a float it clamps, from an integer it would wrap */
  if (in->type == t)
    return cast_clamps(op) ? NULL : in;
  return op_result(clone_with(k, op, 1, &in, t));
}

static Value *
bitcast_identity(Op *op)
{
  Value *x = OPERAND(op, BITCAST, x);
  if (x->type == op_result(op)->type)
    return x;
  return op_is(x, OP_BITCAST) && OPERAND(x->def, BITCAST, x)->type == op_result(op)->type ? OPERAND(x->def, BITCAST, x) : NULL;
}

/* arange compared with a constant beyond either end. */
static Value *
range_cmp(Canon *k, Op *op)
{
  i64 bound;
  Value *x = OPERAND(op, CMP, a);
  if (op->code != OP_CMP || !op_is(x, OP_ARANGE) || !value_const_int(OPERAND(op, CMP, b), &bound))
    return NULL;
  i64 lo = op_int(x->def, AT_START, 0), hi = op_int(x->def, AT_END, 0) - 1;
  const char *pred = op_str(op, AT_PRED, "eq");
  bool all, none;
  switch (pred[0]) {
  case 'l': all = pred[1] == 'e' ? hi <= bound : hi < bound; none = pred[1] == 'e' ? lo > bound : lo >= bound; break;
  case 'g': all = pred[1] == 'e' ? lo >= bound : lo > bound; none = pred[1] == 'e' ? hi < bound : hi <= bound; break;
  default: all = pred[0] == 'n' && (bound < lo || bound > hi); none = pred[0] == 'e' && (bound < lo || bound > hi);
  }
  return all || none ? ir_const_bits(&k->b, op_result(op)->type, all) : NULL;
}

static Value *
identity(Canon *k, Op *op)
{
  switch (op->code) {
  case OP_SELECT: return select_identity(k, op);
  case OP_CAST: return cast_identity(k, op);
  case OP_BITCAST: return bitcast_identity(op);
  case OP_CMP: {
    Value *v = range_cmp(k, op);
    return v ? v : binary_identity(k, op);
  }
  default: return op->noperands == 2 ? binary_identity(k, op) : op->noperands == 1 ? unary_identity(k, op) : NULL;
  }
}

/* ---- fused multiply-add: where the product has no other use. The IR says fma, so everybody rounds once ---- */

static bool
fusable(const Value *v)
{
  return op_is(v, OP_MUL) && value_use_count(v) == 1;
}

static bool
fuse_fma(Canon *k, Op *op)
{
  if ((op->code != OP_ADD && op->code != OP_SUB) || !type_is_float(op_result(op)->type))
    return false;
  DType d = op_result(op)->type->dt;
  Value *a = OPERAND(op, BINARY, a), *b = OPERAND(op, BINARY, b);
  bool sub = op->code == OP_SUB;
  if (d != DT_F16 && d != DT_F32 && d != DT_F64)
    return false;
  if (fusable(a)) {
    Value *add = sub ? ir_unary(&k->b, OP_NEG, b) : b;
    return canon_replace(k, op, ir_fma(&k->b, OPERAND(a->def, MUL, a), OPERAND(a->def, MUL, b), add));
  }
  if (!fusable(b))
    return false;
  Value *x = OPERAND(b->def, MUL, a), *y = OPERAND(b->def, MUL, b);
  if (sub)
    y = ir_unary(&k->b, OP_NEG, y);
  return canon_replace(k, op, ir_fma(&k->b, x, y, a));
}

/* ---- which of two is better, a number or none ---- */

/* v compares x with itself by pred, which tells numbers from nans: gives x. */
static Value *
compared_with_itself(const Value *v, const char *pred)
{
  bool is = op_is(v, OP_CMP) && !strcmp(op_str(v->def, AT_PRED, ""), pred) && OPERAND(v->def, CMP, a) == OPERAND(v->def, CMP, b);
  return is && type_is_float(OPERAND(v->def, CMP, a)->type) ? OPERAND(v->def, CMP, a) : NULL;
}

/* x < y, or one of them is a number and the other is none: that one is a number, and not x >= y. With > alike. */
static bool
number_wins(Canon *k, Op *op)
{
  for (u32 i = 0; op->code == OP_OR && i < 4; i++) {
    Value *less = op_operand(op, i & 1), *apart = op_operand(op, ~i & 1);
    if (!op_is(less, OP_CMP) || !op_is(apart, OP_AND))
      continue;
    const char *pred = op_str(less->def, AT_PRED, "");
    Value *number = op_operand(apart->def, i >> 1), *none = op_operand(apart->def, !(i >> 1));
    Value *x = OPERAND(less->def, CMP, a), *y = OPERAND(less->def, CMP, b);
    Value *a = compared_with_itself(number, "eq"), *b = compared_with_itself(none, "ne");
    if (!a || !b || !((x == a && y == b) || (x == b && y == a)) || (strcmp(pred, "lt") && strcmp(pred, "gt")))
      continue;
    Value *not_less = ir_cmp(&k->b, pred[0] == 'l' ? "ge" : "le", x, y);
    return canon_replace(k, op, ir_binary(&k->b, OP_AND, number, ir_unary(&k->b, OP_NOT, not_less)));
  }
  return false;
}

/* ---- stated bounds: those that hold, or that a bound of the operand says already, go ---- */

/* Every element of v is from 0 to extent - 1. */
static bool
certainly_below(const Value *v, i64 extent)
{
  i64 x;
  if (op_is(v, OP_ARANGE))
    return op_int(v->def, AT_START, 0) >= 0 && op_int(v->def, AT_END, 0) <= extent;
  return value_const_int(v, &x) && x >= 0 && x < extent;
}

static bool
canon_bounded(Canon *k, Op *op)
{
  Value *x = OPERAND(op, BOUNDED, x), *mask = OPERAND(op, BOUNDED, mask);
  i64 extent = op_int(op, AT_EXTENT, 1);
  u64 on;
  if (mask && value_const_bits(mask, &on)) {
    if (!on)
      return canon_replace(k, op, x);
    op_remove_operand(op, SLOT(BOUNDED, mask));
    return canon_changed(k, op);
  }
  bool said = op_is(x, OP_BOUNDED) && op_int(x->def, AT_EXTENT, 1) <= extent && (!op_mask(x->def) || op_mask(x->def) == mask);
  return (said || certainly_below(x, extent)) && canon_replace(k, op, x);
}

bool
canon_elementwise(Canon *k, Op *op)
{
  if (op->code == OP_HINT)
    return false;
  if (op->code == OP_BOUNDED)
    return canon_bounded(k, op) || splats_to_scalar(k, op) || lift_shape(k, op);
  if (fold_constants(k, op) || splats_to_scalar(k, op) || order_operands(k, op) || order_cmp(k, op))
    return true;
  Value *v = identity(k, op);
  if (v)
    return canon_replace(k, op, v);
  return merge_constants(k, op) || lift_shape(k, op) || fuse_fma(k, op) || number_wins(k, op);
}
