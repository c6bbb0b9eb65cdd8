/* approx_model.c - runtime/approx.c as a model for scripts/approx_sweep.py --check:
 *   cc -O2 -shared -fPIC -Iruntime runtime/approx.c tests/numbers/approx_model.c -o model.so */
#include "approx.h"
#include <string.h>

int approx_model(const char *form, uint32_t first, uint32_t count, uint32_t *out);

/* The results of count arguments from first on, in out; 0 if the form is one of those with tables. */
int
approx_model(const char *form, uint32_t first, uint32_t count, uint32_t *out)
{
  static const char *const names[APPROX_FNS] = {"rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos"};
  for (int f = 0; f < APPROX_FNS; f++) {
    size_t length = strlen(names[f]);
    if (strncmp(form, names[f], length) || !approx_known((ApproxFn)f))
      continue;
    bool ftz = !strcmp(form + length, ".approx.ftz.f32");
    if (!ftz && strcmp(form + length, ".approx.f32"))
      continue;
    for (uint32_t i = 0; i < count; i++)
      out[i] = approx_f32((ApproxFn)f, ftz, first + i);
    return 0;
  }
  return 1;
}
