/* fold.c - elementwise ops on constants, by the interpreter's own arithmetic (interp_num.c): here stands only where that is what the
 * hardware computes, bit for bit. What it approximates (fast_exp2 and its kin, rsqrt) and what gives a nan is left alone. */
#include "internal.h"
#include <math.h>

static bool
folds_int(OpCode code)
{
  switch (code) {
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_REM: case OP_MIN: case OP_MINIMUM: case OP_MAX: case OP_MAXIMUM:
  case OP_AND: case OP_OR: case OP_XOR: case OP_SHL: case OP_SHR: case OP_NEG: case OP_NOT: case OP_ABS: case OP_UMULHI:
    return true;
  default:
    return false;
  }
}

/* Arithmetic that rounds: known where the format's own instructions do, of bf16 they differ between targets. */
static bool
folds_rounding(OpCode code, DType d)
{
  switch (code) {
  case OP_ADD: case OP_SUB: case OP_MUL: return d == DT_F16 || d == DT_F32 || d == DT_F64;
  case OP_DIV: case OP_SQRT: case OP_FMA: return d == DT_F32 || d == DT_F64;
  default: return false;
  }
}

/* The smaller or larger of two zeros of different sign is not the same everywhere. */
static bool
folds_choice(OpCode code, double a, double b)
{
  bool propagates = code == OP_MINIMUM || code == OP_MAXIMUM;
  return (a != b || signbit(a) == signbit(b)) && !(propagates && (isnan(a) || isnan(b)));
}

static bool
folds_float(OpCode code, DType d, const u64 *x)
{
  switch (code) {
  case OP_NEG: case OP_ABS: case OP_FLOOR: case OP_CEIL: case OP_RINT: case OP_TRUNC: case OP_ROUND: return true;
  case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: return folds_choice(code, float_decode(d, x[0]), float_decode(d, x[1]));
  default: return folds_rounding(code, d);
  }
}

static bool
compute(const Op *op, DType d, const u64 *x, u64 *out)
{
  switch (op->noperands) {
  case 1: *out = scalar_unary(op->code, d, x[0]); return true;
  case 2: return scalar_binary(op->code, d, x[0], x[1], out);
  default: *out = scalar_fma(d, x[0], x[1], x[2]); return true;
  }
}

/* Saturation and nan are left to the hardware. */
static bool
fold_cast(const Op *op, DType from, DType to, u64 x, u64 *out)
{
  if (op_attr(op, AT_ROUND) || op_attr(op, AT_SAT))
    return false;
  *out = scalar_cast(from, to, x, cast_rounding(op), false);
  if (!dtype_is_float(from) || to == DT_I1)
    return true;
  double v = float_decode(from, x);
  if (isnan(v))
    return false;
  double top = ldexp(1, (int)dtype_bits(to) - dtype_is_signed(to)), t = trunc(v);
  return dtype_is_float(to) || (t < top && t >= (dtype_is_signed(to) ? -top : 0));
}

bool
fold_elem(const Op *op, const u64 *x, u64 *out)
{
  const Type *t = OPERAND(op, BINARY, a)->type, *r = op_result(op)->type;
  if (op->code == OP_SELECT) {
    *out = x[SLOT(SELECT, c)] ? x[SLOT(SELECT, a)] : x[SLOT(SELECT, b)];
    return true;
  }
  if (type_is_ptr(t) || type_is_ptr(r))
    return false;
  switch (op->code) {
  case OP_CMP: *out = scalar_cmp(pred_find(op_str(op, AT_PRED, NULL)), t->dt, x[0], x[1]); return true;
  case OP_CAST: return fold_cast(op, t->dt, r->dt, x[0], out);
  case OP_BITCAST: *out = x[0]; return true;
  default: break;
  }
  if (!dtype_is_float(t->dt))
    return folds_int(op->code) && compute(op, t->dt, x, out);
  return folds_float(op->code, t->dt, x) && compute(op, t->dt, x, out) && !float_is_nan(r->dt, *out);
}
