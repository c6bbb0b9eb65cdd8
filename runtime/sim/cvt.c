/* cvt.c - conversions in full: every pair of types, rounding, saturation. The frequent ones are rows of
 * alu.def; here a value goes through an exact intermediate (a 64-bit integer or a double), one rounding. */
#include "fp.h"
#include "internal.h"
#include <fenv.h>
#include <string.h>

typedef struct Wide { bool real, is_unsigned; uint64_t i; double f; } Wide;

static Wide
read_value(Type t, uint64_t bits)
{
  Wide v = {0};
  unsigned n = ptx_type_bytes[t] * 8u;
  if (ptx_type_class[t] == TC_SINT)
    v.i = n < 64 ? (uint64_t)((int64_t)(bits << (64 - n)) >> (64 - n)) : bits;
  else {
    v.i = n < 64 ? bits & ((1ull << n) - 1) : bits;
    v.is_unsigned = true;
  }
  v.real = ptx_type_class[t] == TC_FLOAT;
  switch (t) {
  case T_F16: v.f = (double)f16_to_f32((uint16_t)bits); break;
  case T_BF16: v.f = (double)bf16_to_f32((uint16_t)bits); break;
  case T_F32: case T_TF32: v.f = (double)bits_f32((uint32_t)bits); break;
  case T_F64: v.f = bits_f64(bits); break;
  case T_E4M3: v.f = simfp_decode((uint32_t)v.i, &simfp_e4m3); break;
  case T_E5M2: v.f = simfp_decode((uint32_t)v.i, &simfp_e5m2); break;
  default: break;
  }
  return v;
}

static FpRound
rounding(ModId m)
{
  switch (m) {
  case M_RZ: case M_RZI: return FP_RZ;
  case M_RM: case M_RMI: return FP_RM;
  case M_RP: case M_RPI: return FP_RP;
  case M_RNA: return FP_RNA;
  default: return FP_RN;
  }
}

static double
to_whole(double v, FpRound r)
{
  switch (r) {
  case FP_RZ: return trunc(v);
  case FP_RM: return floor(v);
  case FP_RP: return ceil(v);
  case FP_RNA: return round(v);
  default: return nearbyint(v);
  }
}

static uint64_t
real_to_int(const Insn *in, double v)
{
  Type t = (Type)in->type, from = (Type)in->cvt.from;
  unsigned n = ptx_type_bytes[t] * 8u;
  bool sign = ptx_type_class[t] == TC_SINT;
  if (v != v)
    return from != T_F64 && n < 64 ? 0 : 1ull << (n - 1);
  v = to_whole(v, rounding((ModId)in->cvt.rounding));
  double top = ldexp(1.0, (int)(sign ? n - 1 : n));
  if (v >= top)
    return sign ? (1ull << (n - 1)) - 1 : n < 64 ? (1ull << n) - 1 : ~0ull;
  if (sign && v < -top)
    return 0 - (1ull << (n - 1));
  if (!sign && v <= 0)
    return 0;
  return sign ? (uint64_t)(int64_t)v : (uint64_t)v;
}

static uint64_t
int_to_int(const Insn *in, Wide v)
{
  Type t = (Type)in->type;
  unsigned n = ptx_type_bytes[t] * 8u;
  bool sign = ptx_type_class[t] == TC_SINT, negative = !v.is_unsigned && (int64_t)v.i < 0;
  if (!(in->cvt.post & POST_SAT))
    return v.i;
  uint64_t top = sign ? (1ull << (n - 1)) - 1 : n < 64 ? (1ull << n) - 1 : ~0ull;
  if (!negative)
    return v.i > top ? top : v.i;
  if (!sign)
    return 0;
  return (int64_t)v.i < -(int64_t)top - 1 ? 0 - top - 1 : v.i;
}

static const FpFormat *
format_of(Type t)
{
  switch (t) {
  case T_F16: return &simfp_f16;
  case T_BF16: return &simfp_bf16;
  case T_TF32: return &simfp_tf32;
  case T_E4M3: return &simfp_e4m3;
  case T_E5M2: return &simfp_e5m2;
  default: return &simfp_f32;
  }
}

static double
int_to_double(Wide v, FpRound r)
{
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
  int old = fegetround();
  volatile double d;
  fesetround(modes[r]);
  if (v.is_unsigned)
    d = (double)v.i;
  else
    d = (double)(int64_t)v.i;
  fesetround(old);
  return d;
}

/* A 64-bit integer may not fit a double: keep what is lost as a sticky last bit, which rounds the same in
 * every narrower format. */
static double
int_to_sticky(Wide v)
{
  bool negative = !v.is_unsigned && (int64_t)v.i < 0;
  uint64_t mag = negative ? 0 - v.i : v.i;
  if (mag >> 53)
    mag = (mag & ~0xfffull) | ((mag & 0xfff) != 0) << 12;
  double d = (double)mag;
  return negative ? -d : d;
}

static double
to_integral(const Insn *in, double v)
{
  return in->cvt.rounding >= M_RNI && in->cvt.rounding <= M_RPI ? to_whole(v, rounding((ModId)in->cvt.rounding)) : v;
}

static double
flush(const Insn *in, Type t, double v)
{
  bool tiny = (t == T_F32 && fabs(v) < 0x1p-126) || (t == T_F16 && fabs(v) < 0x1p-14);
  return (in->cvt.post & POST_FTZ32) && t == T_F32 && tiny ? copysign(0, v) : v;
}

static uint64_t
write_real(const Insn *in, Type t, Wide v)
{
  FpRound r = rounding((ModId)in->cvt.rounding);
  double f = v.real ? to_integral(in, v.f) : t == T_F64 ? int_to_double(v, r) : int_to_sticky(v);
  if (in->cvt.post & POST_SAT)
    f = f > 1 ? 1 : f > 0 ? f : 0;
  if ((in->cvt.post & POST_RELU) && f < 0)
    f = 0;
  if (t == T_F64)
    return f64_bits(f);
  uint32_t u = simfp_encode(f, format_of(t), r, in->cvt.satfinite);
  if (t == T_TF32)
    return f != f ? 0x7fffffffu : u << 13;
  if (t == T_F32 && (in->cvt.post & POST_FTZ32) && !(u & 0x7f800000u))
    u &= 0x80000000u;
  return u;
}

static uint64_t
convert(const Insn *in, Type to, Type from, uint64_t bits)
{
  Wide v = read_value(from, bits);
  TypeClass c = ptx_type_class[to];
  if (v.real)
    v.f = flush(in, from, v.f);
  if (c == TC_FLOAT)
    return write_real(in, to, v);
  return v.real ? real_to_int(in, v.f) : int_to_int(in, v);
}

static Type
part_of(Type t)
{
  switch (t) {
  case T_F16X2: return T_F16;
  case T_BF16X2: return T_BF16;
  case T_E4M3X2: return T_E4M3;
  case T_E5M2X2: return T_E5M2;
  default: return t;
  }
}

/* Two values into one register: from two registers (the first goes on top) or from the halves of one. */
static uint64_t
convert_pair(const Insn *in, uint64_t x, uint64_t y)
{
  Type to = part_of((Type)in->type), from = part_of((Type)in->cvt.from);
  unsigned half = ptx_type_bytes[in->type] * 4u, src = ptx_type_bytes[from] * 8u;
  uint64_t hi = in->cvt.pair ? x : x >> src, lo = in->cvt.pair ? y : x;
  return convert(in, to, from, hi) << half | (convert(in, to, from, lo) & ((1ull << half) - 1));
}

static uint64_t
extend(Type t, uint64_t v)
{
  unsigned n = ptx_type_bytes[t] * 8u;
  if (n >= 64)
    return v;
  return ptx_type_class[t] == TC_SINT ? (uint64_t)((int64_t)(v << (64 - n)) >> (64 - n)) : v & ((1ull << n) - 1);
}

int
cvt_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m) {
    uint64_t x = 0, y = 0, r;
    memcpy(&x, w->regs + in->cvt.a + i * in->cvt.src_width, in->cvt.src_width);
    memcpy(&y, w->regs + in->cvt.b + i * in->cvt.src_width, in->cvt.src_width);
    if (part_of((Type)in->type) != (Type)in->type)
      r = convert_pair(in, x, y);
    else
      r = extend((Type)in->type, convert(in, (Type)in->type, (Type)in->cvt.from, x));
    memcpy(w->regs + in->cvt.d + i * in->cvt.width, &r, in->cvt.width);
  }
  return 0;
}
