#include "compare.h"
#include <math.h>
#include <stdio.h>

typedef struct Tolerance { Dtype dtype; double rtol, atol; } Tolerance;

/* A few units in the last place of results near 1; integers are exact. */
static const Tolerance tolerances[] = {
  {DTYPE_F64, 1e-9, 1e-9}, {DTYPE_F32, 1e-5, 1e-5}, {DTYPE_F16, 2e-3, 2e-3}, {DTYPE_BF16, 1.6e-2, 1.6e-2},
  {DTYPE_E4M3, 0.125, 0.02}, {DTYPE_E5M2, 0.25, 0.02},
};

static Tolerance
tolerance_for(Dtype t, double rtol, double atol)
{
  Tolerance r = {t, 0, 0};
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
    if (tolerances[i].dtype == t)
      r = tolerances[i];
  r.rtol = rtol >= 0 ? rtol : r.rtol;
  r.atol = atol >= 0 ? atol : r.atol;
  return r;
}

static int
close_enough(double got, double want, Tolerance t)
{
  if (isnan(want) || isnan(got))
    return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got))
    return got == want;
  return fabs(got - want) <= t.atol + t.rtol * fabs(want);
}

static int
index_text(const Array *a, size_t i, char *out, size_t size)
{
  size_t at[ARRAY_DIMS];
  int n = 0;
  for (int d = a->ndim; d-- > 0; i /= a->shape[d])
    at[d] = i % a->shape[d];
  for (int d = 0; d < a->ndim; d++)
    n += snprintf(out + n, size - (size_t)n, "%s%zu", d ? ", " : "", at[d]);
  return n;
}

int
compare_arrays(const Array *got, const Array *want, double rtol, double atol, char *message, size_t size)
{
  Tolerance t = tolerance_for(want->dtype, rtol, atol);
  double abs_error = 0, rel_error = 0;
  int exact = t.rtol == 0 && t.atol == 0 && got->dtype == want->dtype && rt_dtype_info(t.dtype)->kind != KIND_FLOAT;
  size_t bad = 0, first = 0;
  char where[ARRAY_DIMS * 24] = "";
  if (got->count != want->count) {
    snprintf(message, size, "%zu elements, expected %zu", got->count, want->count);
    return 0;
  }
  for (size_t i = 0; i < got->count; i++) {
    double g = array_get(got, i), w = array_get(want, i), d = fabs(g - w);
    if (isfinite(d)) {
      abs_error = fmax(abs_error, d);
      rel_error = w != 0 ? fmax(rel_error, d / fabs(w)) : rel_error;
    }
    if (exact ? array_bits(got, i) == array_bits(want, i) : close_enough(g, w, t))
      continue;
    first = bad++ ? first : i;
  }
  int n = snprintf(message, size, "max abs error %.4g, max rel error %.4g", abs_error, rel_error);
  if (!bad)
    return 1;
  index_text(got, first, where, sizeof where);
  snprintf(message + n, size - (size_t)n, "; %zu of %zu elements differ, first [%s]: got %.9g, expected %.9g", bad,
           got->count, where, array_get(got, first), array_get(want, first));
  return 0;
}
