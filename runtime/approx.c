/* approx.c - the multifunction unit of the hardware, and the instructions that the assembler puts around it.
 *
 * The unit interpolates: the upper m bits of a reduced argument pick a row of a table, the lower bits are x, and
 *     T = (C0 << c0) + (C1 x << c1) + (C2 S(x) << c2) + bias
 * in units of 2^place, where S is a square without its low columns. What the format keeps of T is the result. The scheme is that of
 * Oberman and Siu, "A high-performance area-efficient multifunction interpolator", ARITH 2005; tables, widths and what differs from
 * function to function are found from the results of all arguments by scripts/approx_fit.py, and come from approx.def.
 *
 * The unit itself flushes subnormal arguments and results. A form without .ftz is the unit with scaling around it, as ptxas makes it. */
#include "approx.h"
#include "sim/fp.h"

#ifndef APPROX_DEF
#define APPROX_DEF "approx.def"
#endif

enum { INF = 0x7f800000, NAN_BITS = 0x7fffffff, ONE = 0x3f800000 };
typedef enum SquarerKind { SQUARE_exact, SQUARE_rows, SQUARE_folded } SquarerKind;
typedef enum Fixing { FIX_cut, FIX_nearest, FIX_even, FIX_up, FIX_down } Fixing;

typedef struct Squarer { uint8_t kind, cut, shift, centred; int64_t add; } Squarer;

typedef struct Unit {
  bool known, rounded;     /* rounded: T to the places that are kept, else cut */
  uint8_t m, n;            /* bits of a row's number, of the reduced argument */
  Squarer squarer;
  uint8_t c0, c1, c2;
  int64_t bias;
  int8_t place, grid;      /* exponents: of T's unit, of the last place that may be kept */
  uint8_t how, places;     /* how an argument becomes a whole number of 2^-places (ex2; turns: sin, cos) */
  bool ones;               /* what is negative, or read backwards, is by ones' complement (ex2, lg2, sin, cos) */
  bool apart[2];           /* table by table: the argument 0 gives first instead of what T says */
  uint32_t first[2];
  uint8_t binade, binades; /* tanh: of the first number that is not its own result, how many there are until the result is 1 */
  const uint8_t *parts;    /* and into how many rows each is parted, as a power of two */
  const int32_t (*rows[2])[3];
} Unit;

#define ROWS(fn, table, ...) static const int32_t rows_##fn##_##table[][3] = {__VA_ARGS__};
#define PARTS(fn, ...) static const uint8_t parts_##fn[] = {__VA_ARGS__};
#define UNIT(fn, ...)
#include APPROX_DEF
#undef ROWS
#undef PARTS
#undef UNIT
#define ROWS(fn, table, ...)
#define PARTS(fn, ...)
#define UNIT(fn, ...) [APPROX_##fn] = {.known = true, __VA_ARGS__},
static const Unit units[APPROX_FNS + 1] = {
#include APPROX_DEF
  [APPROX_FNS] = {.known = false},
};
#undef ROWS
#undef PARTS
#undef UNIT

bool
approx_known(ApproxFn f)
{
  return units[f].known;
}

/* ---- the interpolator ---- */
static int64_t
square(const Squarer *q, uint32_t bits, int64_t x)
{
  if (q->centred) {
    x -= (int64_t)1 << (bits - 1);
    x = x < 0 ? ~x : x;
  }
  int64_t total = 0;
  if (q->kind == SQUARE_exact)
    total = x * x;
  else if (q->kind == SQUARE_rows)
    for (int64_t left = x; left; left &= left - 1)
      total += x << __builtin_ctzll((uint64_t)left) >> q->cut;
  else
    for (int64_t left = x; left; left &= left - 1) {
      /* Bit j by itself and, a column higher, by those above. */
      int j = __builtin_ctzll((uint64_t)left);
      total += ((x >> (j + 1)) << (2 * j + 2) | (int64_t)1 << 2 * j) >> q->cut;
    }
  return ((total << q->cut) + q->add) >> q->shift;
}

/* T of a reduced argument. */
static int64_t
interpolated(const Unit *u, uint32_t table, uint32_t x)
{
  uint32_t bits = (uint32_t)(u->n - u->m), low = x & ((1u << bits) - 1);
  const int32_t *c = u->rows[table][x >> bits];
  return ((int64_t)c[0] * ((int64_t)1 << u->c0)) + ((int64_t)c[1] * low * ((int64_t)1 << u->c1)) +
         (c[2] * square(&u->squarer, bits, low) * ((int64_t)1 << u->c2)) + u->bias;
}

/* v 2^-k, cut or rounded with ties up. */
static int64_t
dropped(int64_t v, int k, bool rounded)
{
  return k <= 0 ? v : (v + (rounded ? (int64_t)1 << (k - 1) : 0)) >> k;
}

/* The bits of the f32 that keeps 24 bits of v 2^place, v >= 0. */
static uint32_t
packed(int64_t v, int place, bool rounded)
{
  if (v <= 0)
    return 0;
  int top = 63 - __builtin_clzll((uint64_t)v);
  int64_t m = top > 23 ? dropped(v, top - 23, rounded) : v << (23 - top);
  return (uint32_t)(((int64_t)(127 + top + place - 1) << 23) + m);     /* the leading bit adds the 1; a carry goes to the exponent */
}

static uint32_t
result(const Unit *u, uint32_t table, uint32_t x)
{
  if (!x && u->apart[table])
    return u->first[table];
  return packed(dropped(interpolated(u, table, x), u->grid - u->place, u->rounded), u->grid > u->place ? u->grid : u->place, u->rounded);
}

/* ---- arguments and results ---- */
static uint32_t exponent(uint32_t x) { return x >> 23 & 255; }
static uint32_t fraction(uint32_t x) { return x & 0x7fffff; }

/* y with its exponent greater by k; subnormal results are 0. */
static uint32_t
scaled(uint32_t y, int k)
{
  int e = (int)exponent(y) + k;
  return e <= 0 ? 0 : e >= 255 ? INF : (uint32_t)e << 23 | fraction(y);
}

/* m 2^exp as a whole number of 2^-places, modulo 2^63; negative: FIX_down is up for the magnitude. */
static int64_t
fixed(uint32_t m, int exp, int places, Fixing how, bool negative)
{
  int k = -(exp + places);
  if (k <= 0)
    return k <= -63 ? 0 : (int64_t)((uint64_t)m << -k & INT64_MAX);
  k = k > 40 ? 40 : k;
  int64_t v = m >> (k > 31 ? 31 : k), rest = m - (k > 31 ? 0 : v << k), half = (int64_t)1 << (k - 1);
  switch (how) {
  case FIX_nearest: return v + (rest >= half);
  case FIX_even: return v + (rest > half || (rest == half && (v & 1)));
  case FIX_up: return v + (rest > 0);
  case FIX_down: return v + (negative && rest > 0);
  default: return v;
  }
}

static uint32_t
unit_rcp(const Unit *u, uint32_t x)
{
  uint32_t e = exponent(x), s = x & 0x80000000u;
  if (e == 0)
    return s | INF;
  if (e == 255)
    return fraction(x) ? NAN_BITS : s;
  return s | scaled(result(u, 0, fraction(x)), 127 - (int)e);
}

/* rsqrt and sqrt: half the exponent, less or more. */
static uint32_t
unit_root(const Unit *u, uint32_t x, bool inverse)
{
  int e = (int)exponent(x), odd = (e - 127) & 1, half = (e - 127 - odd) / 2;
  uint32_t s = x & 0x80000000u;
  if (e == 0)
    return inverse ? s | INF : s;
  if (s || (e == 255 && fraction(x)))
    return NAN_BITS;
  if (e == 255)
    return inverse ? 0 : INF;
  return scaled(result(u, (uint32_t)odd, fraction(x)), inverse ? -half : half);
}

static uint32_t
unit_ex2(const Unit *u, uint32_t x)
{
  uint32_t e = exponent(x), s = x >> 31;
  if (e == 255 && fraction(x))
    return NAN_BITS;
  if (e >= 134)
    return s ? 0 : INF;
  int64_t q = e ? fixed(fraction(x) | 0x800000, (int)e - 150, 23, (Fixing)u->how, s) : 0;
  int64_t v = !s ? q : u->ones && (q & 0x7fffff) ? ~q : -q;
  return scaled(result(u, 0, (uint32_t)(v & 0x7fffff)), (int)(v >> 23) - 1);
}

static uint32_t
unit_lg2(const Unit *u, uint32_t x)
{
  uint32_t e = exponent(x);
  if (e == 0)
    return 0xff800000u;
  if (x >> 31 || (e == 255 && fraction(x)))
    return NAN_BITS;
  if (e == 255)
    return INF;
  if (x == ONE)
    return 0;
  int64_t t = dropped(interpolated(u, 0, fraction(x)), u->grid - u->place, u->rounded);
  int place = u->grid > u->place ? u->grid : u->place;
  t += ((int64_t)e - 127) * ((int64_t)1 << -place);
  return t < 0 ? 0x80000000u | packed(u->ones ? ~t : -t, place, u->rounded) : packed(t, place, u->rounded);
}

/* x / (2 pi), cut to 24 bits as FMUL.RZ does, then a quarter of the circle from the table. */
static uint32_t
unit_circle(const Unit *u, uint32_t x, bool cosine)
{
  uint32_t e = exponent(x);
  if (e == 255)
    return NAN_BITS;
  uint64_t product = (uint64_t)(fraction(x) | 0x800000) * 0xa2f983;
  int top = product >> 47 ? 24 : 23;
  int64_t q = e ? fixed((uint32_t)(product >> top), (int)e - 176 + top, u->places, (Fixing)u->how, false) : 0;
  q += cosine ? (int64_t)1 << u->n : 0;
  uint32_t quadrant = (uint32_t)(q >> u->n & 3), last = (1u << u->n) - 1, at = (uint32_t)q & last;
  if (quadrant & 1)
    at = u->ones ? last - at : at ? last + 1 - at : last;
  uint32_t s = (cosine ? 0 : x >> 31) ^ quadrant >> 1;
  return s << 31 | result(u, 0, at);
}

/* Small numbers are their own results, large ones give 1; in between each binade has its own number of rows. */
static uint32_t
unit_tanh(const Unit *u, uint32_t x)
{
  uint32_t e = exponent(x), s = x & 0x80000000u, row = 0;
  if (e == 255 && fraction(x))
    return NAN_BITS;
  if (e < u->binade)
    return x;
  if (e >= (uint32_t)u->binade + u->binades)
    return s | ONE;
  for (uint32_t b = u->binade; b < e; b++)
    row += 1u << u->parts[b - u->binade];
  return s | result(u, 0, (row << u->n) + (fraction(x) >> (23 - u->n - u->parts[e - u->binade])));
}

/* The instruction of the unit. */
static uint32_t
unit_f32(ApproxFn f, uint32_t x)
{
  const Unit *u = &units[f];
  switch (f) {
  case APPROX_RCP: return unit_rcp(u, x);
  case APPROX_RSQRT: return unit_root(u, x, true);
  case APPROX_SQRT: return unit_root(u, x, false);
  case APPROX_EX2: return unit_ex2(u, x);
  case APPROX_LG2: return unit_lg2(u, x);
  case APPROX_TANH: return unit_tanh(u, x);
  default: return unit_circle(u, x, f == APPROX_COS);
  }
}

/* ---- forms without .ftz ---- */
static uint32_t
bits(float r)
{
  return f32_bits(f32_canon(r));
}

/* What ptxas scales a divisor by so that it and its reciprocal are normal numbers: 2^24 if it is subnormal, 1/4 if 1/x is. */
static float
rcp_scale(uint32_t x, bool subnormal, bool large)
{
  uint32_t size = x & 0x7fffffff;
  return large && size > 0x7e800000 && size <= INF ? 0.25f : subnormal && size < 0x00800000 ? 0x1p24f : 1;
}

/* 1/x: the result is scaled by the same. */
static uint32_t
whole_rcp(uint32_t x)
{
  float by = rcp_scale(x, true, true);
  return bits(bits_f32(unit_f32(APPROX_RCP, bits(bits_f32(x) * by))) * by);
}

static uint32_t
whole_ex2(uint32_t x)
{
  if (!(bits_f32(x) < -126))
    return unit_f32(APPROX_EX2, x);
  float root = bits_f32(unit_f32(APPROX_EX2, bits(bits_f32(x) * 0.5f)));
  return bits(root * root);
}

uint32_t
approx_f32(ApproxFn f, bool ftz, uint32_t x)
{
  bool tiny = (x & 0x7fffffff) < 0x00800000;
  if (ftz || f == APPROX_SIN || f == APPROX_COS || f == APPROX_TANH)
    return unit_f32(f, x);
  if (f == APPROX_RCP)
    return whole_rcp(x);
  if (f == APPROX_EX2)
    return whole_ex2(x);
  if (!tiny)
    return unit_f32(f, x);
  float y = bits_f32(unit_f32(f, bits(bits_f32(x) * 0x1p24f)));
  return bits(f == APPROX_RSQRT ? y * 0x1p12f : f == APPROX_SQRT ? y * 0x1p-12f : y - 24);
}

/* ---- forms of 16 bits: those of f32, cut ---- */
static uint16_t
cut_f16(uint32_t y)
{
  uint32_t s = y >> 16 & 0x8000, size = y & 0x7fffffff;
  if (size >= 0x47800000)                                   /* 2^16; nans are no larger than infinity here */
    return (uint16_t)(s | 0x7c00);
  if (size >= 0x38800000)                                   /* 2^-14 */
    return (uint16_t)(s | (size - (112u << 23)) >> 13);
  uint32_t drop = 126 - exponent(y);                        /* to whole numbers of 2^-24 */
  return (uint16_t)(s | (drop > 24 ? 0 : (fraction(y) | 0x800000) >> drop));
}

uint16_t
approx_16(ApproxFn f, bool bf16, uint16_t x)
{
  uint32_t y = unit_f32(f, bf16 ? (uint32_t)x << 16 : f32_bits(f16_to_f32(x)));
  if ((y & 0x7fffffff) > INF)
    return 0x7fff;
  return bf16 ? (uint16_t)(y >> 16) : cut_f16(y);
}

/* ---- quotients ---- */

static float
flushed(float x, bool ftz)
{
  return ftz && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* x (1/y) with both scaled. */
uint32_t
approx_div(bool full, bool ftz, uint32_t x, uint32_t y)
{
  float by = rcp_scale(y, !ftz, full), r = bits_f32(unit_f32(APPROX_RCP, bits(bits_f32(y) * by)));
  return bits(flushed(flushed(bits_f32(x) * by, ftz) * r, ftz));
}

/* f brings y between 1/2 and 4, or up to 1 if it is subnormal. What is left of x is nan where y or the quotient is infinite, and 0 has lost
 * its sign: there the product stays. */
uint32_t
approx_near_div(uint32_t x, uint32_t y)
{
  uint32_t e = y & 0x7f800000, f = 0x7e800000 - (e < 0x7e000000 ? e : 0x7e000000);
  float a = bits_f32(x) * bits_f32(f), b = bits_f32(y) * bits_f32(f), r = bits_f32(unit_f32(APPROX_RCP, bits(b)));
  float q = a * r, near = fmaf(fmaf(-q, b, a), r, q);
  return bits(fabsf(near) > 0 ? near : q);
}
