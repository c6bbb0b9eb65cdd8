/* fold.c - elementwise ops on constants, bit for bit as the hardware computes them.
 * What the hardware approximates (fast_exp2 and its kin, rsqrt) and what gives a nan is left alone. */
#include "internal.h"
#include "fp.h"
#include <math.h>

u64
fold_mask(DType d)
{
  return dtype_bits(d) >= 64 ? ~(u64)0 : ((u64)1 << dtype_bits(d)) - 1;
}

i64
fold_signed(DType d, u64 bits)
{
  u32 unused = 64 - dtype_bits(d);
  return dtype_is_signed(d) ? (i64)(bits << unused) >> unused : (i64)(bits & fold_mask(d));
}

/* ---- integers and i1 ---- */

static bool
fold_divide(const Op *op, DType d, i64 a, i64 b, u64 *out)
{
  if (!b)
    return false;
  bool rem = op->code == OP_REM;
  if (!dtype_is_signed(d))
    *out = rem ? (u64)a % (u64)b : (u64)a / (u64)b;
  else if (b == -1)   /* the smallest number divided by -1 wraps */
    *out = rem ? 0 : 0 - (u64)a;
  else
    *out = (u64)(rem ? a % b : a / b);
  return true;
}

static u64
fold_shift_right(DType d, i64 a, u64 by)
{
  if (by >= dtype_bits(d))
    return dtype_is_signed(d) && a < 0 ? ~(u64)0 : 0;
  return dtype_is_signed(d) ? (u64)(a >> by) : (u64)a >> by;
}

static u64
upper_product(DType d, u64 a, u64 b)
{
  if (dtype_bits(d) <= 32)
    return a * b >> dtype_bits(d);
  u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
  u64 mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (u32)mid;
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}

static bool
int_less(DType d, i64 a, i64 b)
{
  return dtype_is_signed(d) ? a < b : (u64)a < (u64)b;
}

static bool
fold_int(const Op *op, DType d, const u64 *x, u64 *out)
{
  i64 a = fold_signed(d, x[0]), b = op->noperands > 1 ? fold_signed(d, x[1]) : 0;
  u64 ua = x[0] & fold_mask(d), ub = op->noperands > 1 ? x[1] & fold_mask(d) : 0;
  switch (op->code) {
  case OP_ADD: *out = ua + ub; break;
  case OP_SUB: *out = ua - ub; break;
  case OP_MUL: *out = ua * ub; break;
  case OP_DIV: case OP_REM:
    if (!fold_divide(op, d, a, b, out))
      return false;
    break;
  case OP_MIN: case OP_MINIMUM: *out = int_less(d, b, a) ? ub : ua; break;
  case OP_MAX: case OP_MAXIMUM: *out = int_less(d, a, b) ? ub : ua; break;
  case OP_AND: *out = ua & ub; break;
  case OP_OR: *out = ua | ub; break;
  case OP_XOR: *out = ua ^ ub; break;
  case OP_SHL: *out = ub >= dtype_bits(d) ? 0 : ua << ub; break;
  case OP_SHR: *out = fold_shift_right(d, a, ub); break;
  case OP_NEG: *out = 0 - ua; break;
  case OP_NOT: *out = ~ua; break;
  case OP_ABS: *out = dtype_is_signed(d) && a < 0 ? 0 - ua : ua; break;
  case OP_UMULHI: *out = upper_product(d, ua, ub); break;
  default: return false;
  }
  *out &= fold_mask(d);
  return true;
}

/* ---- floats ---- */

static bool
fold_f32(const Op *op, float a, float b, float *r)
{
  switch (op->code) {
  case OP_ADD: *r = a + b; return true;
  case OP_SUB: *r = a - b; return true;
  case OP_MUL: *r = a * b; return true;
  case OP_DIV: *r = a / b; return true;
  case OP_SQRT: *r = sqrtf(a); return true;
  default: return false;
  }
}

static bool
fold_f64(const Op *op, double a, double b, double *r)
{
  switch (op->code) {
  case OP_ADD: *r = a + b; return true;
  case OP_SUB: *r = a - b; return true;
  case OP_MUL: *r = a * b; return true;
  case OP_DIV: *r = a / b; return true;
  case OP_SQRT: *r = sqrt(a); return true;
  default: return false;
  }
}

/* Results that need no rounding, whatever the format. */
static bool
fold_exact(const Op *op, double a, double b, double *r)
{
  switch (op->code) {
  case OP_NEG: *r = -a; return true;
  case OP_ABS: *r = fabs(a); return true;
  case OP_FLOOR: *r = floor(a); return true;
  case OP_CEIL: *r = ceil(a); return true;
  case OP_RINT: *r = rint(a); return true;
  case OP_TRUNC: *r = trunc(a); return true;
  case OP_ROUND: *r = round(a); return true;
  case OP_MIN: *r = fmin(a, b); return a != b || signbit(a) == signbit(b);
  case OP_MAX: *r = fmax(a, b); return a != b || signbit(a) == signbit(b);
  case OP_MINIMUM: *r = fmin(a, b); return !isnan(a) && !isnan(b) && (a != b || signbit(a) == signbit(b));
  case OP_MAXIMUM: *r = fmax(a, b); return !isnan(a) && !isnan(b) && (a != b || signbit(a) == signbit(b));
  default: return false;
  }
}

/* Half formats: sums and products of two are exact in double, so rounding once more is rounding once. */
static bool
fold_half(const Op *op, double a, double b, double *r)
{
  if (op->code != OP_ADD && op->code != OP_SUB && op->code != OP_MUL)
    return false;
  return fold_f64(op, a, b, r);
}

static bool
fold_float(const Op *op, DType d, const u64 *x, u64 *out)
{
  double a = float_decode(d, x[0]), b = op->noperands > 1 ? float_decode(d, x[1]) : 0, r = 0;
  float rf = 0;
  if (op->code == OP_FMA) {
    double z = float_decode(d, x[2]);
    if (d != DT_F32 && d != DT_F64)
      return false;
    r = d == DT_F32 ? (double)fmaf((float)a, (float)b, (float)z) : fma(a, b, z);
  } else if (fold_exact(op, a, b, &r)) {
  } else if (d == DT_F32 && fold_f32(op, (float)a, (float)b, &rf)) {
    r = (double)rf;
  } else if (!(d == DT_F64 && fold_f64(op, a, b, &r)) && !((d == DT_F16) && fold_half(op, a, b, &r))) {
    return false;
  }
  if (isnan(r))
    return false;
  *out = float_encode(d, r, ROUND_NEAREST, false);
  return true;
}

/* ---- comparison and conversion ---- */

static bool
compare(const char *pred, int order, bool unordered)
{
  if (unordered)
    return !strcmp(pred, "ne");
  bool less = order < 0, equal = order == 0;
  switch (pred[0]) {
  case 'e': return equal;
  case 'n': return !equal;
  case 'l': return less || (pred[1] == 'e' && equal);
  default: return !less && (pred[1] == 'e' || !equal);
  }
}

static bool
fold_cmp(const Op *op, DType d, const u64 *x, u64 *out)
{
  const char *pred = op_str(op, AT_PRED, "eq");
  if (dtype_is_float(d)) {
    double a = float_decode(d, x[0]), b = float_decode(d, x[1]);
    *out = compare(pred, (a > b) - (a < b), isnan(a) || isnan(b));
    return true;
  }
  i64 a = fold_signed(d, x[0]), b = fold_signed(d, x[1]);
  *out = compare(pred, int_less(d, b, a) - int_less(d, a, b), false);
  return true;
}

static bool
float_to_int(DType to, double v, u64 *out)
{
  bool sign = dtype_is_signed(to);
  double top = ldexp(1.0, (int)dtype_bits(to) - (sign ? 1 : 0)), bottom = sign ? -top : 0.0;
  double t = trunc(v);
  if (isnan(v) || t >= top || t < bottom)   /* saturation is left to the hardware */
    return false;
  *out = (t < 0 ? (u64)(i64)t : (u64)t) & fold_mask(to);
  return true;
}

static bool
fold_cast(DType from, DType to, u64 x, u64 *out)
{
  if (dtype_is_float(from)) {
    double v = float_decode(from, x);
    if (to == DT_I1)
      *out = v != 0;
    else if (dtype_is_int(to))
      return float_to_int(to, v, out);
    else if (isnan(v))
      return false;
    else
      *out = float_encode(to, v, ROUND_NEAREST, false);
    return true;
  }
  i64 v = fold_signed(from, x);
  if (to == DT_I1)
    *out = v != 0;
  else if (dtype_is_float(to)) {
    bool negative = dtype_is_signed(from) && v < 0;
    *out = float_encode_int(to, negative, negative ? 0 - (u64)v : (u64)v, ROUND_NEAREST, false);
  } else
    *out = (u64)v & fold_mask(to);
  return true;
}

static bool
plain_cast(const Op *op)
{
  return !op_attr(op, AT_ROUND) && !op_attr(op, AT_SAT);
}

bool
fold_elem(const Op *op, const u64 *x, u64 *out)
{
  const Type *t = OPERAND(op, UNARY, x)->type, *r = op_result(op)->type;
  switch (op->code) {
  case OP_SELECT: *out = x[0] ? x[1] : x[2]; return true;
  case OP_CMP: return !type_is_ptr(t) && fold_cmp(op, t->dt, x, out);
  case OP_CAST: return plain_cast(op) && fold_cast(t->dt, r->dt, x[0], out);
  case OP_BITCAST: *out = x[0]; return !type_is_ptr(t) && !type_is_ptr(r);
  default:
    if (type_is_ptr(t) || type_is_ptr(r))
      return false;
    return dtype_is_float(t->dt) ? fold_float(op, t->dt, x, out) : fold_int(op, t->dt, x, out);
  }
}
