#include "dtype.h"
#include <float.h>
#include <math.h>
#include <string.h>

static const DtypeInfo dtypes[DTYPE_COUNT] = {
  [DTYPE_NONE] = {"?", KIND_UNSIGNED, 0, 0, 0, 0},
#define DTYPE(ID, name, kind, bits, expbits, manbits, finite) \
  [DTYPE_##ID] = {name, KIND_##kind, bits, expbits, manbits, finite},
#include "dtype.def"
#undef DTYPE
};

Dtype
rt_dtype_find(const char *name)
{
  for (int t = 1; t < DTYPE_COUNT; t++)
    if (!strcmp(dtypes[t].name, name))
      return (Dtype)t;
  return DTYPE_NONE;
}

const DtypeInfo *
rt_dtype_info(Dtype t)
{
  return &dtypes[t];
}

uint32_t
dtype_size(Dtype t)
{
  return dtypes[t].bits / 8u;
}

int
dtype_encode_int(Dtype t, int64_t v, uint64_t *bits)
{
  const DtypeInfo *d = &dtypes[t];
  *bits = (uint64_t)v;
  switch (d->kind) {
  case KIND_BOOL: return v == 0 || v == 1;
  case KIND_SIGNED: return d->bits == 64 || (v >= -(INT64_C(1) << (d->bits - 1)) && v < INT64_C(1) << (d->bits - 1));
  case KIND_UNSIGNED: return d->bits == 64 || (v >= 0 && v < INT64_C(1) << d->bits);
  case KIND_FLOAT: *bits = dtype_encode_float(t, (double)v); return 1;
  }
  return 0;
}

static uint64_t
nan_bits(const DtypeInfo *d)
{
  uint64_t exp = ((UINT64_C(1) << d->expbits) - 1) << d->manbits;
  return exp | (d->finite ? (UINT64_C(1) << d->manbits) - 1 : UINT64_C(1) << (d->manbits - 1));
}

/* The largest finite magnitude's bits, plus one: infinity, or NaN for types without it. */
static uint64_t
overflow_bits(const DtypeInfo *d)
{
  return d->finite ? nan_bits(d) : ((UINT64_C(1) << d->expbits) - 1) << d->manbits;
}

/* Magnitudes order as their bits do, so scale to units in the last place, round once, and let the carry
 * run from the mantissa into the exponent. */
static uint64_t
encode_magnitude(const DtypeInfo *d, double a)
{
  int bias = (1 << (d->expbits - 1)) - 1, e;
  if (a == 0)
    return 0;
  frexp(a, &e);
  e = e - 1 < 1 - bias ? 1 - bias : e - 1;
  double units = nearbyint(ldexp(a, d->manbits - e));
  uint64_t bits = (uint64_t)units + ((uint64_t)(e + bias - 1) << d->manbits);
  return e > bias + 1 || bits > overflow_bits(d) ? overflow_bits(d) : bits;
}

uint64_t
dtype_encode_float(Dtype t, double v)
{
  const DtypeInfo *d = &dtypes[t];
  uint64_t sign = signbit(v) ? UINT64_C(1) << (d->bits - 1) : 0, bits;
  if (t == DTYPE_F64) {
    memcpy(&bits, &v, 8);
    return bits;
  }
  if (t == DTYPE_F32 && fabs(v) <= (double)FLT_MAX) {  /* what the processor does itself */
    float f = (float)v;
    uint32_t word;
    memcpy(&word, &f, 4);
    return word;
  }
  if (isnan(v))
    return sign | nan_bits(d);
  return sign | (isinf(v) ? overflow_bits(d) : encode_magnitude(d, fabs(v)));
}

static double
decode_float(const DtypeInfo *d, uint64_t bits)
{
  int bias = (1 << (d->expbits - 1)) - 1;
  uint64_t mask = (UINT64_C(1) << d->manbits) - 1, emax = (UINT64_C(1) << d->expbits) - 1;
  uint64_t man = bits & mask, exp = bits >> d->manbits & emax;
  double sign = bits >> (d->bits - 1) & 1 ? -1.0 : 1.0;
  if (exp == emax && (d->finite ? man == mask : man != 0))
    return sign * (double)NAN;
  if (exp == emax && !d->finite)
    return sign * (double)INFINITY;
  if (exp == 0)
    return sign * ldexp((double)man, 1 - bias - d->manbits);
  return sign * ldexp((double)(man | (mask + 1)), (int)exp - bias - d->manbits);
}

double
dtype_decode(Dtype t, uint64_t bits)
{
  const DtypeInfo *d = &dtypes[t];
  int spare = 64 - d->bits;
  switch (d->kind) {
  case KIND_BOOL: return (double)(bits & 1);
  case KIND_SIGNED: return (double)((int64_t)(bits << spare) >> spare);
  case KIND_UNSIGNED: return (double)(bits << spare >> spare);
  case KIND_FLOAT: return decode_float(d, bits);
  }
  return 0;
}
