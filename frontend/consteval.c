/* consteval.c - arithmetic at compile time. Literals are exact in i64 or double and have no type; typed constants keep
 * the range and rounding of their type. Overflow of a signed type or a literal is refused; unsigned types wrap. Reports nothing. */
#include "sema.h"
#include "interp.h"
#include <math.h>
#include <stdio.h>

/* An integer literal. */
Const
const_int(i64 v)
{
  return (Const){.form = CF_INT, .i = v};
}

/* true or false. */
Const
const_bool(bool v)
{
  return (Const){.form = CF_TYPED, .dt = DT_I1, .i = v};
}

/* A constant of type dt: i for integers and i1, f for floats. */
Const
const_typed(DType dt, i64 i, double f)
{
  return (Const){.form = CF_TYPED, .dt = dt, .i = i, .f = f};
}

/* A float, with or without a type. */
bool
const_is_float(Const k)
{
  return k.form == CF_FLOAT || (k.form == CF_TYPED && dtype_is_float(k.dt));
}

/* true or false. */
bool
const_is_bool(Const k)
{
  return k.form == CF_TYPED && k.dt == DT_I1;
}

static bool
is_u64(Const k)
{
  return k.form == CF_TYPED && k.dt == DT_U64;
}

/* Its value as a double. */
double
const_double(Const k)
{
  return const_is_float(k) ? k.f : is_u64(k) ? (double)(u64)k.i : (double)k.i;
}

/* Same form and value; nan equals nan. */
bool
const_equal(Const a, Const b)
{
  if (a.form != b.form || (a.form == CF_TYPED && a.dt != b.dt))
    return false;
  return const_is_float(a) ? !memcmp(&a.f, &b.f, sizeof a.f) : a.i == b.i;
}

static i64
int_least(DType dt)
{
  return !dtype_is_signed(dt) ? 0 : dt == DT_I64 ? INT64_MIN : -((i64)1 << (dtype_bits(dt) - 1));
}

static u64
int_largest(DType dt)
{
  return UINT64_MAX >> (64 - dtype_bits(dt) + dtype_is_signed(dt));
}

static bool
int_fits(i64 v, bool v_u64, DType dt)
{
  if (v_u64 || v >= 0)
    return (u64)v <= int_largest(dt);
  return v >= int_least(dt);
}

/* An integer constant in an integer (or i1) type. */
bool
const_fits(Const k, DType dt)
{
  return int_fits(k.i, is_u64(k), dt);
}

static i64
int_wrap(u64 v, DType dt)
{
  u32 unused = 64 - dtype_bits(dt);
  return dtype_is_signed(dt) ? (i64)(v << unused) >> unused : (i64)(v << unused >> unused);
}

static double
float_round(double v, DType dt)
{
  return dt == DT_F64 ? v : float_from_bits(dt, float_to_bits(dt, v));
}

/* Largest finite value. */
static double
float_largest(DType dt)
{
  switch (dt) {
  case DT_F8E4M3: return 448;
  case DT_F8E5M2: return 57344;
  case DT_F16: return 65504;
  case DT_BF16: return ldexp(255, 120);
  case DT_F32: return ldexp(16777215, 104);
  default: return 1.7976931348623157e308;
  }
}

/* The least or largest finite value of a type. */
Const
const_limit(DType dt, bool largest)
{
  if (dtype_is_float(dt))
    return const_typed(dt, 0, largest ? float_largest(dt) : -float_largest(dt));
  return const_typed(dt, largest ? (i64)int_largest(dt) : int_least(dt), 0);
}

static bool
float_to_int(double v, FloatRound r, bool sat, DType dt, Const *out)
{
  double least = (double)int_least(dt), past = ldexp(1, (int)dtype_bits(dt) - dtype_is_signed(dt));
  v = round_whole(v, r);
  if (!(v >= least && v < past)) {
    if (!sat)
      return false;
    *out = const_typed(dt, isnan(v) ? 0 : v < 0 ? int_least(dt) : (i64)int_largest(dt), 0);
    return true;
  }
  *out = const_typed(dt, dt == DT_U64 ? (i64)(u64)v : (i64)v, 0);
  return true;
}

static double
to_float(Const k, DType dt, FloatRound r, bool sat)
{
  if (const_is_float(k))
    return float_from_bits(dt, float_encode(dt, k.f, r, sat));
  bool negative = k.i < 0 && !is_u64(k);
  return float_from_bits(dt, float_encode_int(dt, negative, negative ? 0 - (u64)k.i : (u64)k.i, r, sat));
}

/* Explicit conversion: integers wrap, floats are rounded as r says; sat clamps to the finite range. False: a float
 * outside the integer type. */
bool
const_cast(Const k, DType dt, FloatRound r, bool sat, Const *out)
{
  if (dt == DT_I1) {
    *out = const_bool(const_is_float(k) ? k.f != 0 : k.i != 0);
    return true;
  }
  if (dtype_is_float(dt)) {
    *out = const_typed(dt, 0, to_float(k, dt, r, sat));
    return true;
  }
  if (const_is_float(k))
    return float_to_int(k.f, r, sat, dt, out);
  if (sat && !int_fits(k.i, is_u64(k), dt))
    *out = const_typed(dt, k.i < 0 && !is_u64(k) ? int_least(dt) : (i64)int_largest(dt), 0);
  else
    *out = const_typed(dt, int_wrap((u64)k.i, dt), 0);
  out->truncated = k.truncated;
  return true;
}

/* The bits of one element of type dt (k is already of it, or a literal that fits). */
u64
const_bits(Const k, DType dt)
{
  u64 mask = UINT64_MAX >> (64 - dtype_bits(dt));
  return dtype_is_float(dt) ? float_to_bits(dt, const_double(k)) : (u64)k.i & mask;
}

/* The constant of type dt with these bits. */
Const
const_from_bits(DType dt, u64 bits)
{
  return dtype_is_float(dt) ? const_typed(dt, 0, float_from_bits(dt, bits)) : const_typed(dt, int_wrap(bits, dt), 0);
}

/* The constant as an op; t scalar or tile. */
Value *
const_value(Lower *L, Const k, const Type *t)
{
  return ir_const_bits(&L->b, t, const_bits(k, t->dt));
}

/* As the language spells it. */
const char *
const_str(Lower *L, Const k)
{
  if (const_is_bool(k))
    return k.i ? "true" : "false";
  if (!const_is_float(k))
    return is_u64(k) ? arena_printf(L->a, "%llu", (unsigned long long)k.i) : arena_printf(L->a, "%lld", (long long)k.i);
  if (isinf(k.f) || isnan(k.f))
    return isnan(k.f) ? "nan" : k.f < 0 ? "-inf" : "inf";
  for (int digits = 6;; digits += 3) {
    const char *s = arena_printf(L->a, "%.*g", digits, k.f);
    double back = 0;
    if (digits >= 17 || (sscanf(s, "%lf", &back) == 1 && back == k.f))
      return strpbrk(s, ".en") ? s : arena_printf(L->a, "%s.0", s);
  }
}

/* ---- operators ---- */

static bool
refused(const char **why, const char *because)
{
  *why = because;
  return false;
}

static bool
mul_fits(i64 a, i64 b, i64 *out)
{
  if (a == 0 || b == 0)
    return *out = 0, true;
  if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN))
    return false;
  i64 r = (i64)((u64)a * (u64)b);
  *out = r;
  return r / b == a;
}

/* Exact in i64, or false. */
static bool
signed_arith(Oper op, i64 a, i64 b, i64 *out)
{
  switch (op) {
  case O_ADD:
    *out = (i64)((u64)a + (u64)b);
    return b >= 0 ? *out >= a : *out < a;
  case O_SUB:
    *out = (i64)((u64)a - (u64)b);
    return b >= 0 ? *out <= a : *out > a;
  case O_MUL:
    return mul_fits(a, b, out);
  case O_DIV:
    *out = b == -1 ? (i64)-(u64)a : a / b;
    return !(b == -1 && a == INT64_MIN);
  default:
    *out = b == -1 ? 0 : a % b;
    return true;
  }
}

static u64
unsigned_arith(Oper op, u64 a, u64 b)
{
  switch (op) {
  case O_ADD: return a + b;
  case O_SUB: return a - b;
  case O_MUL: return a * b;
  case O_DIV: return a / b;
  default: return a % b;
  }
}

static double
float_arith(Oper op, double a, double b)
{
  switch (op) {
  case O_ADD: return a + b;
  case O_SUB: return a - b;
  case O_MUL: return a * b;
  case O_DIV: return a / b;
  default: return fmod(a, b);
  }
}

/* a and b have one form and type, not i1. */
static bool
arith(Arena *arena, Oper op, Const a, Const b, Const *out, const char **why)
{
  *out = a;
  if (const_is_float(a)) {
    double v = float_arith(op, a.f, b.f);
    out->f = a.form == CF_TYPED ? float_round(v, a.dt) : v;
    return true;
  }
  if ((op == O_DIV || op == O_REM) && b.i == 0)
    return refused(why, "division by zero");
  if (a.form == CF_TYPED && !dtype_is_signed(a.dt)) {
    out->i = int_wrap(unsigned_arith(op, (u64)a.i, (u64)b.i), a.dt);
    return true;
  }
  if (!signed_arith(op, a.i, b.i, &out->i) || (a.form == CF_TYPED && !int_fits(out->i, false, a.dt)))
    return refused(why, a.form == CF_TYPED ? arena_printf(arena, "the result does not fit in %s", dtype_info[a.dt].name)
                                           : "the result does not fit in 64 bits");
  return true;
}

static bool
bits_op(Oper op, Const a, Const b, Const *out)
{
  *out = a;
  out->i = op == O_AND || op == O_LAND ? a.i & b.i : op == O_OR || op == O_LOR ? a.i | b.i : a.i ^ b.i;
  return true;
}

static bool
shift(Arena *arena, Oper op, Const a, Const b, Const *out, const char **why)
{
  u32 width = a.form == CF_TYPED ? dtype_bits(a.dt) : 64;
  bool is_signed = a.form != CF_TYPED || dtype_is_signed(a.dt);
  if (b.i < 0 || b.i >= (i64)width || is_u64(b))
    return refused(why, arena_printf(arena, "the shift must be from 0 to %u", width - 1));
  *out = a;
  if (op == O_SHR)
    out->i = is_signed ? a.i >> b.i : (i64)((u64)a.i >> b.i);
  else
    out->i = a.form == CF_TYPED ? int_wrap((u64)a.i << b.i, a.dt) : (i64)((u64)a.i << b.i);
  if (op == O_SHL && a.form != CF_TYPED && out->i >> b.i != a.i)
    return refused(why, "the result does not fit in 64 bits");
  return true;
}

static bool
decide(Oper op, bool less, bool equal, bool ordered)
{
  switch (op) {
  case O_EQ: return equal;
  case O_NE: return !equal;
  case O_LT: return less;
  case O_LE: return less || equal;
  case O_GT: return ordered && !less && !equal;
  default: return ordered && !less;
  }
}

static bool
compare(Oper op, Const a, Const b)
{
  if (const_is_float(a))
    return decide(op, a.f < b.f, a.f == b.f, !isnan(a.f) && !isnan(b.f));
  return decide(op, is_u64(a) ? (u64)a.i < (u64)b.i : a.i < b.i, a.i == b.i, true);
}

/* a and b brought to one form and type by the caller (shifts: any integers). False: overflow or division by zero, *why in words. */
bool
const_binary(Arena *arena, Oper op, Const a, Const b, Const *out, const char **why)
{
  switch (oper_info[op].cls) {
  case OC_ARITH: return arith(arena, op, a, b, out, why);
  case OC_SHIFT: return shift(arena, op, a, b, out, why);
  case OC_CMP: return *out = const_bool(compare(op, a, b)), true;
  default: return bits_op(op, a, b, out);
  }
}

/* NEG of numbers, INV of integers, NOT of i1. */
bool
const_unary(Arena *arena, Oper op, Const x, Const *out, const char **why)
{
  *out = x;
  if (op == O_NEG && const_is_float(x))
    return out->f = -x.f, true;
  if (op == O_NEG) {
    Const zero = x;
    zero.i = 0;
    return arith(arena, O_SUB, zero, x, out, why);
  }
  out->i = const_is_bool(x) ? !x.i : x.form == CF_TYPED ? int_wrap(~(u64)x.i, x.dt) : ~x.i;
  return true;
}

/* ---- SURFACE ops of constants ---- */

static bool
float_math(OpCode op, const Const *x, double *out)
{
  switch (op) {
  case OP_ABS: *out = fabs(x[0].f); return true;
  case OP_FLOOR: *out = floor(x[0].f); return true;
  case OP_CEIL: *out = ceil(x[0].f); return true;
  case OP_RINT: *out = rint(x[0].f); return true;
  case OP_TRUNC: *out = trunc(x[0].f); return true;
  case OP_ROUND: *out = round(x[0].f); return true;
  case OP_COPYSIGN: *out = copysign(x[0].f, x[1].f); return true;
  case OP_FAST_DIV: case OP_FULL_DIV: case OP_NEAR_DIV: *out = x[0].f / x[1].f; return true;
  case OP_SQRT: case OP_FAST_SQRT: *out = sqrt(x[0].f); return true;
  case OP_FAST_EXP2: *out = exp2(x[0].f); return true;
  case OP_FAST_LOG2: *out = log2(x[0].f); return true;
  case OP_FAST_RCP: *out = 1 / x[0].f; return true;
  case OP_FAST_SIN: *out = sin(x[0].f); return true;
  case OP_FAST_COS: *out = cos(x[0].f); return true;
  case OP_FAST_TANH: *out = tanh(x[0].f); return true;
  case OP_RSQRT: *out = 1 / sqrt(x[0].f); return true;
  case OP_FMA: *out = fma(x[0].f, x[1].f, x[2].f); return true;
  case OP_MIN: *out = fmin(x[0].f, x[1].f); return true;
  case OP_MAX: *out = fmax(x[0].f, x[1].f); return true;
  case OP_MINIMUM: *out = isnan(x[0].f) || isnan(x[1].f) ? NAN : fmin(x[0].f, x[1].f); return true;
  case OP_MAXIMUM: *out = isnan(x[0].f) || isnan(x[1].f) ? NAN : fmax(x[0].f, x[1].f); return true;
  default: return false;
  }
}

/* Counts and products of bits: an untyped integer is what it would be at run time. */
static bool
bits_math(OpCode op, u32 n, const Const *x, Const *out)
{
  DType dt = x[0].form == CF_TYPED ? x[0].dt : const_fits(x[0], DT_I32) && const_fits(x[n - 1], DT_I32) ? DT_I32 : DT_I64;
  u64 r;
  switch (op) {
  case OP_POPC: case OP_CLZ: case OP_BREV: r = scalar_unary(op, dt, const_bits(x[0], dt)); break;
  case OP_MULHI: case OP_UMULHI:
    if (!scalar_binary(op, dt, const_bits(x[0], dt), const_bits(x[1], dt), &r) || dtype_bits(dt) < 32)
      return false;
    break;
  default: return false;
  }
  out->i = scalar_int(dt, r);
  out->truncated = (Span){0, 0};
  return true;
}

/* All of one form and type; false: not folded. */
bool
const_math(OpCode op, u32 n, const Const *x, Const *out)
{
  *out = x[0];
  if (const_is_float(x[0])) {
    if (!float_math(op, x, &out->f))
      return false;
    out->f = x[0].form == CF_TYPED ? float_round(out->f, x[0].dt) : out->f;
    return true;
  }
  bool smaller = op == OP_MIN || op == OP_MINIMUM, larger = op == OP_MAX || op == OP_MAXIMUM;
  if (smaller || larger)
    out->i = compare(O_LT, x[1], x[0]) == smaller ? x[1].i : x[0].i;
  else if (op == OP_ABS && x[0].i != INT64_MIN)
    out->i = x[0].i < 0 && !is_u64(x[0]) ? -x[0].i : x[0].i;
  else
    return bits_math(op, n, x, out);
  return true;
}
