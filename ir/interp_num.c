/* interp_num.c - the meaning of the elementwise ops, one element at a time. See interp.h for the rules. */
#include "interp.h"
#include "approx.h"
#include <float.h>
#include <math.h>

static float
f32_of(u64 bits)
{
  u32 b = (u32)bits;
  float v;
  memcpy(&v, &b, sizeof v);
  return v;
}

static u64
bits_of_f32(float v)
{
  u32 b;
  memcpy(&b, &v, sizeof b);
  return v != v ? 0x7fffffffu : b;
}

static double
f64_of(u64 bits)
{
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static u64
bits_of_f64(double v)
{
  u64 b;
  memcpy(&b, &v, sizeof b);
  return v != v ? 0x7ff8000000000000ull : b;
}

/* v wrapped to the width of d. */
u64
scalar_wrap(DType d, u64 v)
{
  u32 bits = dtype_bits(d);
  return bits >= 64 ? v : v & ((1ull << bits) - 1);
}

/* The bits as a number: sign-extended for signed types, zero-extended otherwise. */
i64
scalar_int(DType d, u64 bits)
{
  u32 w = dtype_bits(d);
  bits = scalar_wrap(d, bits);
  if (w < 64 && dtype_is_signed(d) && bits >> (w - 1) & 1)
    bits |= ~0ull << w;
  return (i64)bits;
}

/* ---- integers ---- */
static bool
int_less(DType d, u64 a, u64 b)
{
  return dtype_is_signed(d) ? scalar_int(d, a) < scalar_int(d, b) : a < b;
}

static u64
mul_high_64(u64 a, u64 b)
{
  u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
  u64 mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (u32)mid;
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}

static u64
int_div(DType d, u64 a, u64 b)
{
  if (!dtype_is_signed(d))
    return a / b;
  i64 x = scalar_int(d, a), y = scalar_int(d, b);
  return y == -1 ? 0 - (u64)x : (u64)(x / y);
}

static u64
int_rem(DType d, u64 a, u64 b)
{
  if (!dtype_is_signed(d))
    return a % b;
  i64 y = scalar_int(d, b);
  return y == -1 ? 0 : (u64)(scalar_int(d, a) % y);
}

static u64
int_shr(DType d, u64 a, u64 b)
{
  u32 w = dtype_bits(d);
  if (!dtype_is_signed(d))
    return b < w ? a >> b : 0;
  u64 x = (u64)scalar_int(d, a), fill = x >> 63 ? ~0ull : 0;
  if (b >= w)
    return fill;
  return b ? x >> b | fill << (64 - b) : x;
}

/* Upper half of the product as the type's sign has it. */
static u64
int_mulhi(DType d, u64 a, u64 b)
{
  u32 w = dtype_bits(d);
  if (w < 64)
    return dtype_is_signed(d) ? (u64)(scalar_int(d, a) * scalar_int(d, b)) >> w : a * b >> w;
  u64 high = mul_high_64(a, b);
  if (dtype_is_signed(d))
    high -= (a >> 63 ? b : 0) + (b >> 63 ? a : 0);
  return high;
}

static u64
int_binary(OpCode op, DType d, u64 a, u64 b)
{
  switch (op) {
  case OP_ADD: return a + b;
  case OP_SUB: return a - b;
  case OP_MUL: return a * b;
  case OP_DIV: return int_div(d, a, b);
  case OP_REM: return int_rem(d, a, b);
  case OP_MIN: case OP_MINIMUM: return int_less(d, b, a) ? b : a;
  case OP_MAX: case OP_MAXIMUM: return int_less(d, a, b) ? b : a;
  case OP_AND: return a & b;
  case OP_OR:  return a | b;
  case OP_XOR: return a ^ b;
  case OP_SHL: return b < dtype_bits(d) ? a << b : 0;
  case OP_SHR: return int_shr(d, a, b);
  case OP_MULHI: return int_mulhi(d, a, b);
  case OP_UMULHI: return dtype_bits(d) == 64 ? mul_high_64(a, b) : a * b >> dtype_bits(d);
  default: return 0;
  }
}

static u64
reversed(u64 x, u32 width)
{
  u64 r = 0;
  for (u32 i = 0; i < width; i++)
    r |= (x >> i & 1) << (width - 1 - i);
  return r;
}

static u64
int_unary(OpCode op, DType d, u64 x)
{
  switch (op) {
  case OP_POPC: return (u64)__builtin_popcountll(x);
  case OP_CLZ:  return x ? (u64)__builtin_clzll(x) - (64 - dtype_bits(d)) : dtype_bits(d);
  case OP_BREV: return reversed(x, dtype_bits(d));
  case OP_NEG: return 0 - x;
  case OP_NOT: return ~x;
  case OP_ABS: return scalar_int(d, x) < 0 && dtype_is_signed(d) ? 0 - x : x;
  default: return x;
  }
}

/* ---- floats: the same text for f32 and f64, so that each computes in its own precision ---- */
#define FLOAT_OPS(T, name, sfx)                                                           \
  static T name##_min(T a, T b)                                                           \
  {                                                                                       \
    if (a != a || b != b)                                                                 \
      return a != a ? b : a;                                                              \
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;                                 \
  }                                                                                       \
  static T name##_max(T a, T b)                                                           \
  {                                                                                       \
    if (a != a || b != b)                                                                 \
      return a != a ? b : a;                                                              \
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;                                 \
  }                                                                                       \
  static T name##_binary(OpCode op, T a, T b)                                             \
  {                                                                                       \
    switch (op) {                                                                         \
    case OP_ADD: return a + b;                                                            \
    case OP_SUB: return a - b;                                                            \
    case OP_MUL: return a * b;                                                            \
    case OP_DIV: case OP_FAST_DIV: case OP_FULL_DIV: case OP_NEAR_DIV: return a / b;      \
    case OP_REM: return fmod##sfx(a, b);                                                  \
    case OP_COPYSIGN: return copysign##sfx(a, b);                                         \
    case OP_MIN: return name##_min(a, b);                                                 \
    case OP_MAX: return name##_max(a, b);                                                 \
    case OP_MINIMUM: return a != a || b != b ? NAN : name##_min(a, b);                    \
    case OP_MAXIMUM: return a != a || b != b ? NAN : name##_max(a, b);                    \
    default: return 0;                                                                    \
    }                                                                                     \
  }
FLOAT_OPS(float, f32, f)
FLOAT_OPS(double, f64, )
#undef FLOAT_OPS

/* In double; for narrower formats the caller rounds. */
static double
float_unary(OpCode op, double x)
{
  switch (op) {
  case OP_FLOOR: return floor(x);
  case OP_CEIL:  return ceil(x);
  case OP_RINT:  return nearbyint(x);
  case OP_TRUNC: return trunc(x);
  case OP_ROUND: return round(x);
  case OP_ROUND_TF32: return float_round_tf32((float)x, true);
  case OP_SQRT: case OP_FAST_SQRT: return sqrt(x);
  case OP_FAST_EXP2: return exp2(x);
  case OP_FAST_LOG2: return log2(x);
  case OP_RSQRT: return 1 / sqrt(x);
  case OP_FAST_RCP: return 1 / x;
  case OP_FAST_SIN: return sin(x);
  case OP_FAST_COS: return cos(x);
  case OP_FAST_TANH: return tanh(x);
  default: return x;
  }
}

/* a + b rounded to odd: a second rounding to fewer than 52 bits then gives what one rounding of the sum would. */
static double
add_odd(double a, double b)
{
  double s = a + b, bb = s - a, err = (a - (s - bb)) + (b - bb);
  u64 u;
  memcpy(&u, &s, sizeof u);
  if (!isfinite(s) || err == 0 || (u & 1))
    return s;
  u = (err > 0) == (s > 0) ? u + 1 : u - 1;
  memcpy(&s, &u, sizeof s);
  return s;
}

static u64
narrow_binary(OpCode op, DType d, u64 a, u64 b)
{
  double x = float_decode(d, a), y = float_decode(d, b);
  double r = op == OP_ADD ? add_odd(x, y) : op == OP_SUB ? add_odd(x, -y) : f64_binary(op, x, y);
  return float_encode(d, r, ROUND_NEAREST, false);
}

static u64
float_sign(OpCode op, DType d, u64 x)
{
  u64 sign = 1ull << (dtype_bits(d) - 1);
  return op == OP_NEG ? x ^ sign : x & ~sign;
}

/* Quotients by the reciprocal, where its bits are known; narrower ones are made in f32 and rounded. */
static bool
divided_roughly(OpCode op, DType d, u64 a, u64 b, u64 *out)
{
  if ((op != OP_FAST_DIV && op != OP_FULL_DIV && op != OP_NEAR_DIV) || d == DT_F64 || !approx_known(APPROX_RCP))
    return false;
  u32 x = (u32)bits_of_f32((float)float_decode(d, a));
  u32 y = (u32)bits_of_f32((float)float_decode(d, b));
  u32 q = op == OP_NEAR_DIV ? approx_near_div(x, y) : approx_div(op == OP_FULL_DIV, false, x, y);
  *out = d == DT_F32 ? q : float_encode(d, f32_of(q), ROUND_NEAREST, false);
  return true;
}

/* ---- the exported dispatch ---- */
/* One elementwise op of two operands; false on integer division by zero. */
bool
scalar_binary(OpCode op, DType d, u64 a, u64 b, u64 *out)
{
  if (!dtype_is_float(d)) {
    if ((op == OP_DIV || op == OP_REM) && !b)
      return false;
    *out = scalar_wrap(d, int_binary(op, d, a, b));
  } else if (divided_roughly(op, d, a, b, out)) {
    return true;
  } else if (d == DT_F32) {
    *out = bits_of_f32(f32_binary(op, f32_of(a), f32_of(b)));
  } else if (d == DT_F64) {
    *out = bits_of_f64(f64_binary(op, f64_of(a), f64_of(b)));
  } else {
    *out = narrow_binary(op, d, a, b);
  }
  return true;
}

/* The hardware's approximations in f32 know no subnormal numbers. */
static double
flushed(double x)
{
  return fabsf((float)x) < FLT_MIN ? copysign(0.0, x) : x;
}

static double
flushed_unary(OpCode op, double x)
{
  return op == OP_FAST_RCP ? flushed(1 / flushed(x)) : flushed(float_unary(op, x));
}

/* The approximation that a program on the device would use for an op on floats narrower than f64, where its bits are known: of f32, whose
 * result narrower types round (lower_elem.c, real_unary). */
static bool
approximated(OpCode op, DType d, u64 x, u64 *out)
{
  static const struct { OpCode op; ApproxFn f; } fns[] = {
    {OP_FAST_EXP2, APPROX_EX2}, {OP_FAST_LOG2, APPROX_LG2}, {OP_RSQRT, APPROX_RSQRT}, {OP_FAST_RCP, APPROX_RCP},
    {OP_FAST_SQRT, APPROX_SQRT}, {OP_FAST_SIN, APPROX_SIN}, {OP_FAST_COS, APPROX_COS}, {OP_FAST_TANH, APPROX_TANH},
  };
  ApproxFn f = APPROX_FNS;
  for (u32 i = 0; i < COUNT(fns); i++)
    f = fns[i].op == op ? fns[i].f : f;
  if (f == APPROX_FNS || d == DT_F64 || !approx_known(f))
    return false;
  u32 y = approx_f32(f, f == APPROX_EX2 || f == APPROX_RCP, (u32)bits_of_f32((float)float_decode(d, x)));
  *out = d == DT_F32 ? y : float_encode(d, f32_of(y), ROUND_NEAREST, false);
  return true;
}

/* One elementwise op of one operand. */
u64
scalar_unary(OpCode op, DType d, u64 x)
{
  if (!dtype_is_float(d))
    return scalar_wrap(d, int_unary(op, d, x));
  if (op == OP_NEG || op == OP_ABS)
    return float_sign(op, d, x);
  if (d == DT_F32 && op == OP_SQRT)
    return bits_of_f32(sqrtf(f32_of(x)));
  u64 y;
  if (approximated(op, d, x, &y))
    return y;
  if (d != DT_F64 && (op == OP_FAST_EXP2 || op == OP_FAST_RCP))
    return float_encode(d, flushed_unary(op, float_decode(d, x)), ROUND_NEAREST, false);
  return float_encode(d, float_unary(op, float_decode(d, x)), ROUND_NEAREST, false);
}

/* a * b + c rounded once. */
u64
scalar_fma(DType d, u64 a, u64 b, u64 c)
{
  if (d == DT_F32)
    return bits_of_f32(fmaf(f32_of(a), f32_of(b), f32_of(c)));
  if (d == DT_F64)
    return bits_of_f64(fma(f64_of(a), f64_of(b), f64_of(c)));
  double product = float_decode(d, a) * float_decode(d, b);
  return float_encode(d, add_odd(product, float_decode(d, c)), ROUND_NEAREST, false);
}

/* A predicate by its attribute's text. */
Pred
pred_find(const char *name)
{
  static const char names[][3] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (u32 i = 0; name && i < COUNT(names); i++)
    if (!strcmp(name, names[i]))
      return (Pred)i;
  return PRED_BAD;
}

#define COMPARE(p, x, y)          \
  switch (p) {                    \
  case PRED_EQ: return (x) == (y);\
  case PRED_NE: return (x) != (y);\
  case PRED_LT: return (x) < (y); \
  case PRED_LE: return (x) <= (y);\
  case PRED_GT: return (x) > (y); \
  case PRED_GE: return (x) >= (y);\
  default: return false;          \
  }

static bool
float_cmp(Pred p, double x, double y)
{
  COMPARE(p, x, y)
}

/* Comparison; on floats ordered except ne. */
bool
scalar_cmp(Pred p, DType d, u64 a, u64 b)
{
  if (dtype_is_float(d))
    return float_cmp(p, float_decode(d, a), float_decode(d, b));
  if (dtype_is_signed(d))
    COMPARE(p, scalar_int(d, a), scalar_int(d, b))
  COMPARE(p, a, b)
}

/* ---- casts ---- */
static u64
float_to_int(DType to, double v, FloatRound r)
{
  bool sign = dtype_is_signed(to);
  u32 w = dtype_bits(to);
  double limit = ldexp(1, (int)w - (sign ? 1 : 0));
  if (v != v)
    return 0;
  v = round_whole(v, r);
  if (v >= limit)
    return sign ? (1ull << (w - 1)) - 1 : scalar_wrap(to, ~0ull);
  if (v <= (sign ? -limit : 0))
    return sign ? 1ull << (w - 1) : 0;
  return scalar_wrap(to, v < 0 ? (u64)(i64)v : (u64)v);
}

static u64
int_to_int(DType from, DType to, u64 x, bool sat)
{
  i64 v = scalar_int(from, x);
  bool negative = v < 0 && dtype_is_signed(from), sign = dtype_is_signed(to);
  u64 max = sign ? (1ull << (dtype_bits(to) - 1)) - 1 : scalar_wrap(to, ~0ull);
  if (!sat)
    return scalar_wrap(to, (u64)v);
  if (!negative)
    return (u64)v > max ? max : (u64)v;
  if (!sign)
    return 0;
  return scalar_wrap(to, v < -(i64)max - 1 ? ~max : (u64)v);
}

/* Value conversion between number types, i1 included. */
u64
scalar_cast(DType from, DType to, u64 x, FloatRound r, bool sat)
{
  bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
  if (to == DT_I1)
    return from_float ? float_decode(from, x) != 0 : x != 0;
  if (from_float)
    return to_float ? float_encode(to, float_decode(from, x), r, sat) : float_to_int(to, float_decode(from, x), r);
  if (!to_float)
    return int_to_int(from, to, x, sat);
  i64 v = scalar_int(from, x);
  bool negative = v < 0 && dtype_is_signed(from);
  return float_encode_int(to, negative, negative ? 0 - (u64)v : (u64)v, r, sat);
}
