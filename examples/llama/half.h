/* half.h - numbers of 16 bits as they lie in files. */
#ifndef LLAMA_HALF_H
#define LLAMA_HALF_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t
bits16(const uint8_t *p)
{
  return (uint16_t)(p[0] | p[1] << 8);
}

static inline float
float_of_bits(uint32_t bits)
{
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline float
bf16_value(const uint8_t *p)
{
  return float_of_bits((uint32_t)bits16(p) << 16);
}

static inline float
f16_value(uint16_t h)
{
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
  if (!exponent) {
    float f = (float)mantissa * 0x1p-24f;
    return sign ? -f : f;
  }
  return float_of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13);
}

/* An 8-bit float with 4 bits of exponent (e4m3), which has no infinity. */
static inline float
f8_value(uint8_t b)
{
  int exponent = b >> 3 & 15, mantissa = b & 7;
  float f = (b & 0x7f) == 0x7f ? NAN : exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : (float)mantissa * 0x1p-9f;
  return b & 0x80 ? -f : f;
}

/* To nearest, ties to even. The sum with a power of two leaves the digits that a number of this size has, rounded, in its last places. */
static inline uint16_t
f16_bits(float f)
{
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00;
  if (bits >= 0x477ff000)
    return sign | 0x7c00;
  if (bits < 0x38800000) {
    float shifted = float_of_bits(bits) + 0.5f;           /* 2^-24, the last place of small numbers, is the last place of 0.5 */
    memcpy(&bits, &shifted, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  return (uint16_t)(sign | ((bits + 0xfff + (bits >> 13 & 1)) - 0x38000000) >> 13);
}
#endif
