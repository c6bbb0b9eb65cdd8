/* describe.c - what a kernel takes, for programs that find out when they run. */
#include "device.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t
tilert_kernel_arg_count(const TilertKernel *k)
{
  return k ? k->nargs : 0;
}

int
tilert_kernel_arg(const TilertKernel *k, size_t index, TilertArgInfo *out, TilertError *err)
{
  NEED(k);
  NEED(out);
  if (index >= k->nargs)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s takes %u arguments; there is none at %zu", k->manifest.kernel, k->nargs, index);
  const TilertParam *p = &k->manifest.params[k->first[index]];
  *out = (TilertArgInfo){p->name, p->dtype, p->kind, p->rank, p->divisible, p->null, p->nonneg};
  return TILERT_OK;
}

/* A text that goes on where its room ends, uncounted but measured. */
typedef struct Text { char *out; size_t room, length; } Text;

__attribute__((format(printf, 2, 3))) static void
add(Text *t, const char *format, ...)
{
  va_list ap;
  const int fits = t->length < t->room;
  va_start(ap, format);
  int n = vsnprintf(fits ? t->out + t->length : NULL, fits ? t->room - t->length : 0, format, ap);
  va_end(ap);
  t->length += n > 0 ? (size_t)n : 0;
}

static void
add_type(Text *t, const TilertParam *p)
{
  switch (p->kind) {
  case TILERT_PARAM_POINTER: add(t, "*%s", p->dtype); break;
  case TILERT_PARAM_TENSOR: add(t, "tensor<%s, %u>", p->dtype, p->rank); break;
  case TILERT_PARAM_TENSORMAP: add(t, "tensor map"); break;
  case TILERT_PARAM_RAW: p->dtype[0] ? add(t, ".%s", p->dtype) : add(t, ".b8[%u]", p->size); break;
  case TILERT_PARAM_SCALAR: case TILERT_PARAM_VIEW: case TILERT_PARAM_GRID: add(t, "%s", p->dtype); break;
  }
}

size_t
tilert_kernel_signature(const TilertKernel *k, char *out, size_t n)
{
  Text t = {out, out ? n : 0, 0};
  if (t.room)
    *out = 0;
  if (!k)
    return 0;
  add(&t, "%s(", k->manifest.kernel);
  for (uint32_t i = 0; i < k->nargs; i++) {
    const TilertParam *p = &k->manifest.params[k->first[i]];
    add(&t, "%s%s: ", i ? ", " : "", p->name);
    add_type(&t, p);
  }
  add(&t, ")");
  return t.length;
}
