/* approx_model.c - runtime/approx.c as a model for scripts/approx_sweep.py --check:
 *   cc -O2 -shared -fPIC -Iruntime runtime/approx.c tests/numbers/approx_model.c -o model.so */
#include "approx.h"
#include <string.h>

int approx_model(const char *form, uint32_t first, uint32_t count, uint32_t *out);
int approx_model_steps(const char *form, uint32_t first, uint32_t step, uint32_t count, uint32_t *out);

/* The results of count arguments, first and then every step-th, in out; 0 if the form is one of those with tables. */
int
approx_model_steps(const char *form, uint32_t first, uint32_t step, uint32_t count, uint32_t *out)
{
  bool flushes = strstr(form, ".ftz.");
  if (!strncmp(form, "div.", 4)) {                       /* of a scrambled argument: approx_sweep.py's QUOTIENTS */
    for (uint32_t i = 0, x = first; i < count; i++, x += step)
      out[i] = approx_div(!strncmp(form, "div.full.", 9), flushes, x * 0x9e3779b1u, x);
    return 0;
  }
  static const char *const names[APPROX_FNS] = {"rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh"};
  for (int f = 0; f < APPROX_FNS; f++) {
    size_t length = strlen(names[f]);
    if (strncmp(form, names[f], length) || !approx_known((ApproxFn)f))
      continue;
    bool bf16 = strstr(form, "bf16");
    if (strstr(form, "f16") && f != APPROX_EX2 && f != APPROX_TANH)
      continue;
    if (strstr(form, "f16")) {
      for (uint32_t i = 0; i < count; i++)
        out[i] = approx_16((ApproxFn)f, bf16, (uint16_t)(first + i * step));
      return 0;
    }
    if (strcmp(form + length, flushes ? ".approx.ftz.f32" : ".approx.f32"))
      continue;
    for (uint32_t i = 0; i < count; i++)
      out[i] = approx_f32((ApproxFn)f, flushes, first + i * step);
    return 0;
  }
  return 1;
}

int
approx_model(const char *form, uint32_t first, uint32_t count, uint32_t *out)
{
  return approx_model_steps(form, first, 1, count, out);
}
