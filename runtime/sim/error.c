/* error.c - filling SimError, texts of bounded length, the type tables and the growth of vectors. */
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t ptx_type_bytes[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = bytes,
#include "types.def"
};
const uint8_t ptx_type_class[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = TC_##cls,
#include "types.def"
};
const char *const ptx_type_text[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = text,
#include "types.def"
};

int
sim_error_set(SimError *e, SimErrorKind kind, const char *fmt, ...)
{
  va_list ap;
  e->kind = kind;
  va_start(ap, fmt);
  vsnprintf(e->message, sizeof e->message, fmt, ap);
  va_end(ap);
  return -1;
}

void
text_add(Text *t, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  int n = t->n < t->room ? vsnprintf(t->at + t->n, t->room - t->n, fmt, ap) : 0;
  va_end(ap);
  t->n += n > 0 ? (size_t)n : 0;
  t->n = t->n < t->room ? t->n : t->room - 1;
}

bool
sim_vec_grow(void *vec_ptr, size_t *cap, size_t need, size_t elem)
{
  void *old, *grown;
  if (need <= *cap)
    return true;
  size_t want = *cap ? *cap : 16;
  while (want < need)
    want *= 2;
  memcpy(&old, vec_ptr, sizeof old);
  grown = realloc(old, want * elem);
  if (!grown)
    return false;
  memcpy(vec_ptr, &grown, sizeof grown);
  *cap = want;
  return true;
}
