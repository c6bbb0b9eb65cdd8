/* fp.c - one rounding routine for all formats.
 *
 * A number to be encoded is an integer times a power of two, (-1)^neg * m * 2^e. The place of the result's last bit
 * follows from the place of m's first bit (or from the smallest exponent, for subnormals); what lies below it is
 * rounded away once. Adding the rounded significand to the exponent field as one integer lets a carry run from the
 * mantissa into the exponent, so subnormals that round up to normals and significands that round up to the next power
 * of two need no case of their own, and overflow is one comparison with the largest finite pattern.
 */
#include "fp.h"
#include <math.h>

typedef struct Format { int exp, man, bias, emin; u64 max_finite, inf, nan, sign; bool has_inf; } Format;

static Format
format_of(DType d)
{
  const DTypeInfo *t = &dtype_info[d];
  Format f = {.exp = t->exp, .man = t->man, .bias = (1 << (t->exp - 1)) - 1, .has_inf = d != DT_F8E4M3};
  f.emin = 1 - f.bias;
  f.sign = 1ull << (t->bits - 1);
  f.inf = ((1ull << f.exp) - 1) << f.man;
  f.nan = d == DT_F64 ? 0x7ff8000000000000ull : f.sign - 1;
  f.max_finite = f.has_inf ? f.inf - 1 : f.sign - 2;
  return f;
}

static u64
double_bits(double v)
{
  u64 b;
  memcpy(&b, &v, sizeof b);
  return b;
}

static double
bits_double(u64 b)
{
  double v;
  memcpy(&v, &b, sizeof v);
  return v;
}

/* Does r take what is not exact to the larger magnitude? (Nearest is not asked.) */
static bool
rounds_away(FloatRound r, bool neg)
{
  return r == (neg ? ROUND_DOWN : ROUND_UP);
}

/* m / 2^shift, rounded; shift may be any positive number. */
static u64
shift_round(u64 m, int shift, FloatRound r, bool neg)
{
  u64 kept = shift < 64 ? m >> shift : 0;
  u64 rest = shift < 64 ? m & ((1ull << shift) - 1) : m;
  u64 half = shift <= 64 ? 1ull << (shift - 1) : 0;
  if (r != ROUND_NEAREST)
    return kept + (rest && rounds_away(r, neg));
  if (shift > 64)
    return kept;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

/* (-1)^neg * m * 2^e in format f; m is not 0. */
static u64
encode(const Format *f, bool neg, u64 m, int e, FloatRound r, bool sat)
{
  int top = 63;
  while (!(m >> top & 1))
    top--;
  int x = top + e;                                     /* exponent of the first bit */
  int last = (x > f->emin ? x : f->emin) - f->man;     /* exponent of the result's last bit */
  u64 sig = last <= e ? m << (e - last) : shift_round(m, last - e, r, neg);
  u64 bits = sig;
  if (x >= f->emin)
    bits += (u64)(x + f->bias - 1) << f->man;          /* sig's leading bit adds the remaining 1 */
  if (bits > f->max_finite)
    bits = sat || (r != ROUND_NEAREST && !rounds_away(r, neg)) ? f->max_finite : f->has_inf ? f->inf : f->nan;
  return bits | (neg ? f->sign : 0);
}

/* Bits of v in format d, rounded once; see fp.h for nan, infinity and saturation. */
u64
float_encode(DType d, double v, FloatRound r, bool sat)
{
  if (d == DT_F32 && r == ROUND_NEAREST && !sat && v == v) {
    float s = (float)v;
    u32 b;
    memcpy(&b, &s, sizeof b);
    return b;
  }
  Format f = format_of(d);
  u64 b = double_bits(v), m = b & ((1ull << 52) - 1);
  int e = (int)(b >> 52 & 0x7ff);
  bool neg = b >> 63;
  sat |= dtype_bits(d) == 8;
  if (e == 0x7ff)
    return m ? f.nan : (sat ? f.max_finite : f.inf) | (neg ? f.sign : 0);
  if (!e && !m)
    return neg ? f.sign : 0;
  return e ? encode(&f, neg, m | 1ull << 52, e - 1075, r, sat) : encode(&f, neg, m, -1074, r, sat);
}

/* Bits of an integer in format d, rounded once. */
u64
float_encode_int(DType d, bool negative, u64 magnitude, FloatRound r, bool sat)
{
  Format f = format_of(d);
  if (!magnitude)
    return 0;
  return encode(&f, negative, magnitude, 0, r, sat || dtype_bits(d) == 8);
}

static const char *const round_words[] = {"rn", "rz", "rm", "rp"};

FloatRound
round_find(const char *word, DType to)
{
  for (u32 i = 0; word && i < COUNT(round_words); i++)
    if (!strcmp(word, round_words[i]))
      return (FloatRound)i;
  return dtype_is_float(to) ? ROUND_NEAREST : ROUND_ZERO;
}

FloatRound
cast_rounding(const Op *cast)
{
  return round_find(op_str(cast, AT_ROUND, NULL), op_result(cast)->type->dt);
}

double
round_whole(double v, FloatRound r)
{
  switch (r) {
  case ROUND_ZERO: return trunc(v);
  case ROUND_DOWN: return floor(v);
  case ROUND_UP:   return ceil(v);
  default:         return nearbyint(v);
  }
}

/* The value of a bit pattern; exact. */
double
float_decode(DType d, u64 bits)
{
  if (d == DT_F64)
    return bits_double(bits);
  if (d == DT_F32) {
    u32 b = (u32)bits;
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
  }
  Format f = format_of(d);
  u64 field = bits & (f.sign - 1), m = bits & ((1ull << f.man) - 1), sign = bits & f.sign ? 1ull << 63 : 0;
  int e = (int)(field >> f.man);
  if (field > f.max_finite)
    return bits_double(sign | (f.has_inf && field == f.inf ? 0x7ff0000000000000ull : 0x7ff8000000000000ull));
  if (!e) {
    double tiny = bits_double((u64)(f.emin - f.man + 1023) << 52);
    return bits_double(sign | double_bits((double)m * tiny));
  }
  return bits_double(sign | (u64)(e - f.bias + 1023) << 52 | m << (52 - f.man));
}

/* cvt.rna and cvt.rn.tf32.f32; nan and infinity pass. */
float
float_round_tf32(float v, bool to_even)
{
  u32 b;
  memcpy(&b, &v, sizeof b);
  if ((b & 0x7f800000u) == 0x7f800000u)
    return v;
  b = (b + (to_even ? 0xfffu + (b >> 13 & 1) : 0x1000u)) & ~0x1fffu;
  memcpy(&v, &b, sizeof v);
  return v;
}

/* True for every nan pattern of d. */
bool
float_is_nan(DType d, u64 bits)
{
  Format f = format_of(d);
  u64 field = bits & (f.sign - 1);
  return f.has_inf ? field > f.inf : field > f.max_finite;
}

/* The canonical nan of d. */
u64
float_nan(DType d)
{
  return format_of(d).nan;
}

/* The largest finite number of d. */
u64
float_max_finite(DType d)
{
  return format_of(d).max_finite;
}

/* Round to nearest even; the 8-bit formats saturate. */
u64
float_to_bits(DType d, double v)
{
  return float_encode(d, v, ROUND_NEAREST, false);
}

/* The value of a bit pattern; exact. */
double
float_from_bits(DType d, u64 bits)
{
  return float_decode(d, bits);
}
