/* fp.h - the small floating-point formats on host floats. The inline functions are branch-free so that
 * loops over lanes become vector code; simfp_encode is the general one for any rounding. */
#ifndef TILERT_SIM_FP_H
#define TILERT_SIM_FP_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t
f32_bits(float f)
{
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static inline float
bits_f32(uint32_t u)
{
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static inline uint64_t
f64_bits(double f)
{
  uint64_t u;
  memcpy(&u, &f, 8);
  return u;
}

static inline double
bits_f64(uint64_t u)
{
  double f;
  memcpy(&f, &u, 8);
  return f;
}

/* PTX's NaN for every f32 result that is a NaN. */
static inline float
f32_canon(float f)
{
  return f != f ? bits_f32(0x7fffffffu) : f;
}

static inline float
f16_to_f32(uint16_t h)
{
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = (uint32_t)(h & 0x7fff) << 13;
  uint32_t scaled = f32_bits(bits_f32(mag) * 0x1p112f);
  uint32_t special = mag | 0x7f800000u;
  return bits_f32(sign | (mag >= 0x0f800000u ? special : scaled));
}

/* Round to nearest even; NaN becomes 0x7fff. Needs the default rounding mode. */
static inline uint16_t
f32_to_f16(float f)
{
  uint32_t x = f32_bits(f), sign = (x >> 16) & 0x8000u, mag = x & 0x7fffffffu;
  uint32_t normal = (mag + 0xfffu + ((mag >> 13) & 1u) - (112u << 23)) >> 13;
  uint32_t tiny = f32_bits(bits_f32(mag) + 0.5f) - 0x3f000000u;
  uint32_t r = mag < 0x38800000u ? tiny : normal;
  r = mag >= 0x477ff000u ? 0x7c00u : r;
  return (uint16_t)(mag > 0x7f800000u ? 0x7fffu : sign | r);
}

static inline float
bf16_to_f32(uint16_t h)
{
  return bits_f32((uint32_t)h << 16);
}

/* Round to nearest even; NaN becomes 0x7fff. */
static inline uint16_t
f32_to_bf16(float f)
{
  uint32_t x = f32_bits(f);
  uint32_t r = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r);
}

typedef struct FpFormat { uint8_t exp_bits, man_bits; bool has_inf; } FpFormat;
extern const FpFormat simfp_f16, simfp_bf16, simfp_tf32, simfp_f32, simfp_e4m3, simfp_e5m2;
typedef enum FpRound { FP_RN, FP_RZ, FP_RM, FP_RP, FP_RNA } FpRound;

/* v rounded once to a format; satfinite: overflow and infinity give the largest finite value. NaN is canonical. */
uint32_t simfp_encode(double v, const FpFormat *f, FpRound r, bool satfinite);
double simfp_decode(uint32_t bits, const FpFormat *f);

/* a*b+c of f16 or bf16 values as a float that rounds to either format as the exact sum would. The sum's
 * error in double is exact (Knuth); a nonzero one is folded into the last bit (rounding to odd), there and
 * again in float, and an odd-rounded value of two more bits survives a second rounding. */
static inline float
fp_fma_odd(double a, double b, double c)
{
  double p = a * b, s = p + c, t = s - p, err = (p - (s - t)) + (c - t);
  uint64_t u = f64_bits(s);
  if (err != 0 && isfinite(err) && !(u & 1))
    s = bits_f64((err > 0) == (s > 0) ? u + 1 : u - 1);
  float f = (float)s;
  if ((double)f != s && s == s) {
    uint32_t v = f32_bits(f);
    f = bits_f32((fabs((double)f) > fabs(s) ? v - 1 : v) | 1);
  }
  return f;
}
#endif
