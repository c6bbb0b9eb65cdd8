/* number.c - floats as decimal text. The C library's conversions follow the process's locale, which belongs to the
 * program that embeds us: here they run in the "C" locale of the calling thread. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE   /* uselocale */
#endif
#include "ir.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct LocaleScope { locale_t c, before; } LocaleScope;

static LocaleScope
locale_enter(void)
{
  LocaleScope s = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
  if (s.c)
    s.before = uselocale(s.c);
  return s;
}

static void
locale_leave(LocaleScope s)
{
  if (!s.c)
    return;
  uselocale(s.before);
  freelocale(s.c);
}

/* The n bytes at s are one number; s is NUL-terminated somewhere at or after them. */
bool
number_parse(const char *s, size_t n, double *out)
{
  char *end;
  LocaleScope scope = locale_enter();
  *out = strtod(s, &end);
  locale_leave(scope);
  return n && end == s + n;
}

static bool
is_float_text(const char *s)
{
  return strpbrk(s, ".e") != NULL;
}

/* Whole numbers plainly, others by the least of 1..17 digits that read back as bits; "" if none do. */
static void
shortest_decimal(char *out, size_t size, DType d, u64 bits)
{
  double v = float_from_bits(d, bits);
  if (fabs(v) < 1e7 && v == (double)(i64)v) {
    snprintf(out, size, "%.1f", v);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, size, "%.*g", digits, v);
    if (float_to_bits(d, strtod(out, NULL)) == bits)
      return;
  }
  out[0] = 0;
}

/* Shortest decimal that reads back as the same bits; hex bits where there is none. */
void
number_print(Buf *b, DType d, u64 bits)
{
  char text[40] = "";
  double v = float_from_bits(d, bits);
  if (v - v == 0 && (v != 0 || bits == 0)) {
    LocaleScope scope = locale_enter();
    shortest_decimal(text, sizeof text, d, bits);
    locale_leave(scope);
  }
  if (text[0])
    buf_printf(b, "%s%s", text, is_float_text(text) ? "" : ".0");
  else
    buf_printf(b, "0x%0*llx", (int)(dtype_bits(d) / 4), (unsigned long long)bits);
}
