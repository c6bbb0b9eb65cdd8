/* wgmma_sum.c - how a product of a warpgroup adds: the words of an H200 (tests/device, product.*).
 *
 * All products of an instruction and what they are added to are aligned to the largest exponent among them; what lies more than 25 bits
 * below that (of 8-bit floats 13) is cut off of each; they are added as integers, and the sum is cut off to f32, of 8-bit floats to as many
 * bits behind its own first. The exponent of a product is the sum of those of its factors, of which subnormal ones have the least; that
 * zeros have none shows in no fact.
 *
 * Products are exact in float. With the bits of the largest in front they and halves of their sum fit 32 bits, which makes loops over
 * the columns of a block vector code; numbers for which that does not hold are added one by one. */
#include "wgmma.h"
#include "fp.h"
#include <string.h>

/* What is no number is larger than any, and zero smaller; two of them together, too. */
enum { BLOCK = 8, ZERO = -1000, WILD = 4000, TOP_LEAST = -100, TOP_MOST = 120, EXPONENT_ONE = 127 };

static int
exponent_of(float x, int least)
{
  int e = (int)(f32_bits(x) >> 23 & 255) - EXPONENT_ONE;
  return x == 0 ? ZERO : e > EXPONENT_ONE ? WILD : e < least ? least : e;
}

static int
take_exponents(const float *x, uint32_t n, int least, int most, int16_t *out)
{
  for (uint32_t i = 0; i < n; i++) {
    out[i] = (int16_t)exponent_of(x[i], least);
    most = out[i] > most ? out[i] : most;
  }
  return most;
}

void
wgmma_exponents(Type t, uint32_t depth, const float a[][WG_K], const float b[][WG_N], Exponents *e)
{
  int least = t == T_E4M3 ? -6 : t == T_F16 || t == T_E5M2 ? -14 : -126, a_most = ZERO, b_most = ZERO;
  for (uint32_t i = 0; i < WG_ROWS; i++)
    a_most = take_exponents(a[i], depth, least, a_most, e->a[i]);
  for (uint32_t k = 0; k < e->k; k++)
    b_most = take_exponents(b[k], e->n, least, b_most, e->b[k]);
  e->bits = ptx_type_bytes[t] == 1 ? 13 : 25;
  e->wild = a_most + b_most > TOP_MOST;
}

/* The number without what f32 has no bits for, of 8-bit floats without all but the first of them. */
static double
cut(const Exponents *e, double x)
{
  uint32_t rest = 52 - (e->bits < 23 ? e->bits : 23);
  return bits_f64(f64_bits(x) & ~((UINT64_C(1) << rest) - 1));
}

static float
add_slowly(const Exponents *e, int top, const float *a, const float b[][WG_N], uint32_t j, float c)
{
  double sum = c;
  for (uint32_t k = 0; k < e->k; k++)
    sum += (double)a[k] * b[k][j];
  if (!isfinite(sum) || top <= ZERO / 2)
    return (float)sum;
  sum = trunc(ldexp(c, e->bits - top));
  for (uint32_t k = 0; k < e->k; k++)
    sum += trunc(ldexp((double)a[k] * b[k][j], e->bits - top));
  return (float)cut(e, ldexp(sum, top - e->bits));
}

/* (Loops over a block, that a compiler turns into vector code, each of which does not wait for the one before.) */
static void
raise_tops(int16_t a, const int16_t *b, int16_t *top)
{
  int16_t sum[BLOCK], most[BLOCK];
  for (uint32_t j = 0; j < BLOCK; j++)
    sum[j] = (int16_t)(a + b[j]);
  for (uint32_t j = 0; j < BLOCK; j++)
    most[j] = sum[j] > top[j] ? sum[j] : top[j];
  memcpy(top, most, sizeof most);
}

/* Of each column the largest exponent. */
static void
find_tops(const Exponents *e, const int16_t *a, const float *c, int16_t *top)
{
  for (uint32_t j = 0; j < e->n; j++)
    top[j] = (int16_t)exponent_of(c[j], -126);
  for (uint32_t k = 0; k < e->k; k++)
    for (uint32_t j = 0; j < e->n; j += BLOCK)
      raise_tops(a[k], e->b[k] + j, top + j);
}

static void
add_cut(const float *a, const float b[][WG_N], uint32_t from, uint32_t to, uint32_t first, const float *scale, int32_t *sum)
{
  int32_t s[BLOCK] = {0};
  for (uint32_t k = from; k < to; k++)
    for (uint32_t j = 0; j < BLOCK; j++)
      s[j] += (int32_t)(a[k] * b[k][first + j] * scale[j]);
  memcpy(sum, s, sizeof s);
}

static void
add_fast(const Exponents *e, const int16_t *top, const float *a, const float b[][WG_N], uint32_t first, float *c)
{
  float scale[BLOCK];
  int32_t low[BLOCK], high[BLOCK];
  for (uint32_t j = 0; j < BLOCK; j++)
    scale[j] = bits_f32((uint32_t)(EXPONENT_ONE + e->bits - top[j]) << 23);
  add_cut(a, b, 0, e->k / 2, first, scale, low);
  add_cut(a, b, e->k / 2, e->k, first, scale, high);
  for (uint32_t j = 0; j < BLOCK; j++)
    c[j] = (float)cut(e, (double)((int64_t)(int32_t)(c[j] * scale[j]) + low[j] + high[j]) / scale[j]);
}

static void
add_block(const Exponents *e, int16_t *top, const float *a, const float b[][WG_N], uint32_t first, float *c)
{
  float rest[BLOCK];
  uint32_t slow = 0;
  for (uint32_t j = 0; j < BLOCK; j++)
    if (e->wild || top[j] < TOP_LEAST || top[j] > TOP_MOST) {
      rest[j] = add_slowly(e, top[j], a, b, first + j, c[j]);
      slow |= 1u << j;
      top[j] = TOP_MOST;       /* with which no product is too large for add_fast */
      c[j] = 0;
    }
  if (!e->wild)
    add_fast(e, top, a, b, first, c);
  FOR_LANES(j, slow) c[j] = rest[j];
}

void
wgmma_add_row(const Exponents *e, uint32_t i, const float *a, const float b[][WG_N], float *c)
{
  int16_t top[WG_N];
  find_tops(e, e->a[i], c, top);
  for (uint32_t j = 0; j < e->n; j += BLOCK)
    add_block(e, top + j, a, b, j, c + j);
}
