/* fp.c - general rounding into small formats. */
#include "fp.h"

const FpFormat simfp_f16 = {5, 10, true}, simfp_bf16 = {8, 7, true}, simfp_tf32 = {8, 10, true};
const FpFormat simfp_f32 = {8, 23, true}, simfp_e4m3 = {4, 3, false}, simfp_e5m2 = {5, 2, true};

static uint32_t
largest_finite(const FpFormat *f)
{
  uint32_t top = ((1u << f->exp_bits) - 1) << f->man_bits;
  return f->has_inf ? top - 1 : top | ((1u << f->man_bits) - 2);
}

static uint32_t
nan_bits(const FpFormat *f)
{
  return (1u << (f->exp_bits + f->man_bits)) - 1;
}

static bool
round_up(FpRound r, bool negative, bool odd, double rest)
{
  switch (r) {
  case FP_RN: return rest > 0.5 || (rest == 0.5 && odd);
  case FP_RNA: return rest >= 0.5;
  case FP_RZ: return false;
  case FP_RM: return negative && rest > 0;
  case FP_RP: return !negative && rest > 0;
  }
  return false;
}

static uint32_t
overflow(const FpFormat *f, FpRound r, bool negative, bool satfinite)
{
  uint32_t inf = ((1u << f->exp_bits) - 1) << f->man_bits;
  bool toward = r == FP_RZ || (r == FP_RM && !negative) || (r == FP_RP && negative);
  if (satfinite || toward)
    return largest_finite(f);
  return f->has_inf ? inf : nan_bits(f);
}

uint32_t
simfp_encode(double v, const FpFormat *f, FpRound r, bool satfinite)
{
  if (v != v)
    return nan_bits(f);
  bool negative = signbit(v) != 0;
  uint32_t sign = negative ? 1u << (f->exp_bits + f->man_bits) : 0;
  double mag = fabs(v);
  if (mag == 0)
    return sign;
  if (isinf(mag))
    return sign | (f->has_inf && !satfinite ? ((1u << f->exp_bits) - 1) << f->man_bits
                                            : overflow(f, FP_RN, negative, satfinite));
  int bias = (1 << (f->exp_bits - 1)) - 1, e;
  frexp(mag, &e);
  e -= 1;
  if (e < 1 - bias)
    e = 1 - bias;
  double scaled = ldexp(mag, f->man_bits - e), whole = floor(scaled);
  uint64_t q = (uint64_t)whole;
  if (round_up(r, negative, q & 1, scaled - whole))
    q++;
  uint64_t bits = q + ((uint64_t)(e + bias - 1) << f->man_bits);
  if (bits > largest_finite(f))
    return sign | overflow(f, r, negative, satfinite);
  return sign | (uint32_t)bits;
}

double
simfp_decode(uint32_t bits, const FpFormat *f)
{
  uint32_t man = bits & ((1u << f->man_bits) - 1), e = (bits >> f->man_bits) & ((1u << f->exp_bits) - 1);
  uint32_t top = (1u << f->exp_bits) - 1;
  int bias = (1 << (f->exp_bits - 1)) - 1;
  double mag;
  if (f->has_inf ? e == top && man : (bits & nan_bits(f)) == nan_bits(f))
    return NAN;
  if (f->has_inf && e == top)
    mag = INFINITY;
  else if (e == 0)
    mag = ldexp(man, 1 - bias - f->man_bits);
  else
    mag = ldexp(man + (double)(1u << f->man_bits), (int)e - bias - f->man_bits);
  return bits >> (f->exp_bits + f->man_bits) & 1 ? -mag : mag;
}
