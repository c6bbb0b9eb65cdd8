/* print.c - vprintf: formats as C has them, arguments in memory of the thread, each at a multiple of its size.
 *
 * Flags - + space # 0, width and precision (numbers or *), h, l and ll (a long has 64 bits), and the conversions d i u o x X c s p
 * e E f F g G a A. Widths and precisions end at MOST_WIDTH, texts at MOST_TEXT, what a thread prints at once at MOST_OUT. What is
 * none of these is printed as it stands. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

enum { MOST_FORMAT = 4096, MOST_TEXT = 4096, MOST_WIDTH = 1024, MOST_OUT = 16384 };

/* n bytes at a generic address, byte by byte: nothing is known of its alignment. */
static int
fetch(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, void *out, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *p = mem_host(b, w, in, lane, sp, addr + i, 1, false);
    if (!p)
      return -1;
    ((uint8_t *)out)[i] = *p;
  }
  return 0;
}

static uint64_t
frame_of(const Warp *w, const Insn *in, uint32_t lane)
{
  return in->text.frame ? LANES_OF(uint64_t, w, in->text.frame)[lane] : 0;
}

/* The text at a generic address, cut off behind n - 1 bytes. */
static int
fetch_text(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, char *out, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (i + 1 == n)
      out[i] = 0;
    else if (fetch(b, w, in, lane, SP_GENERIC, at + i, &out[i], 1))
      return -1;
    if (!out[i])
      return 0;
  }
  return 0;
}

int
sim_text(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t param, char *out, size_t n)
{
  uint64_t at;
  if (fetch(b, w, in, lane, SP_LOCAL, frame_of(w, in, lane) + param, &at, 8))
    return -1;
  return fetch_text(b, w, in, lane, at, out, n);
}

/* ---- a thread's print ---- */

typedef struct Print {
  Block *b; Warp *w; const Insn *in; uint32_t lane;
  uint64_t args;                       /* where the next argument is */
  int taken;
  char out[MOST_OUT]; size_t used;
} Print;

static void
put(Print *p, const char *text, size_t n)
{
  size_t room = MOST_OUT - p->used;
  n = n < room ? n : room;
  memcpy(p->out + p->used, text, n);
  p->used += n;
}

static void
pad(Print *p, int n)
{
  while (n-- > 0)
    put(p, " ", 1);
}

static int
next_arg(Print *p, uint32_t size, uint64_t *v)
{
  p->args = (p->args + size - 1) & ~(uint64_t)(size - 1);
  *v = 0;
  int rc = fetch(p->b, p->w, p->in, p->lane, SP_GENERIC, p->args, v, size);
  p->args += size;
  p->taken++;
  return rc;
}

/* %[flags][width][.precision][h l ll]conversion. precision -1: none. */
typedef struct Spec { char flags[8]; int width, precision; bool left, wide; char conversion; size_t length; } Spec;

static int
clamp(int64_t v)
{
  return v > MOST_WIDTH ? MOST_WIDTH : v < -MOST_WIDTH ? -MOST_WIDTH : (int)v;
}

/* A number or *; no more than MOST_WIDTH. */
static int
read_count(Print *p, const char **text, int *out)
{
  uint64_t v;
  int64_t n = 0;
  if (**text == '*') {
    ++*text;
    if (next_arg(p, 4, &v))
      return -1;
    *out = clamp((int32_t)v);
    return 0;
  }
  for (; **text >= '0' && **text <= '9'; ++*text)
    n = clamp(n * 10 + (**text - '0'));
  *out = (int)n;
  return 0;
}

static int
read_spec(Print *p, const char *text, Spec *s)
{
  const char *at = text + 1;
  size_t nflags = 0;
  *s = (Spec){.precision = -1};
  for (; *at && strchr("-+ #0", *at); at++)
    if (nflags < sizeof s->flags - 1 && !strchr(s->flags, *at))
      s->flags[nflags++] = *at;
  if (read_count(p, &at, &s->width))
    return -1;
  if (*at == '.' && (at++, read_count(p, &at, &s->precision)))
    return -1;
  s->left = strchr(s->flags, '-') || s->width < 0;
  s->width = s->width < 0 ? -s->width : s->width;
  for (; *at == 'h' || *at == 'l'; at++)
    s->wide |= *at == 'l';
  s->conversion = *at;
  s->length = (size_t)(at - text) + (*at != 0);
  return 0;
}

static void
put_padded(Print *p, const Spec *s, const char *text, size_t n)
{
  int rest = s->width > (int)n ? s->width - (int)n : 0;
  pad(p, s->left ? 0 : rest);
  put(p, text, n);
  pad(p, s->left ? rest : 0);
}

static int
print_text(Print *p, const Spec *s)
{
  char text[MOST_TEXT];
  uint64_t at;
  size_t most = s->precision >= 0 && s->precision < MOST_TEXT ? (size_t)s->precision + 1 : MOST_TEXT;
  if (next_arg(p, 8, &at) || fetch_text(p->b, p->w, p->in, p->lane, at, text, most))
    return -1;
  put_padded(p, s, text, strlen(text));
  return 0;
}

static int
print_char(Print *p, const Spec *s)
{
  uint64_t v;
  if (next_arg(p, 4, &v))
    return -1;
  char c = (char)v;
  put_padded(p, s, &c, 1);
  return 0;
}

static int
print_pointer(Print *p, const Spec *s)
{
  char text[24];
  uint64_t v;
  if (next_arg(p, 8, &v))
    return -1;
  put_padded(p, s, text, (size_t)snprintf(text, sizeof text, "0x%llx", (unsigned long long)v));
  return 0;
}

static int
print_number(Print *p, const Spec *s)
{
  char form[24], text[2 * MOST_WIDTH + 400];
  bool real = strchr("eEfFgGaA", s->conversion) != NULL;
  uint64_t v;
  double f;
  int n;
  if (next_arg(p, real || s->wide ? 8 : 4, &v))
    return -1;
  snprintf(form, sizeof form, "%%%s%s*.*%s%c", s->flags, s->left && !strchr(s->flags, '-') ? "-" : "", real || !s->wide ? "" : "ll",
           s->conversion);
  memcpy(&f, &v, sizeof f);
  if (real)
    n = snprintf(text, sizeof text, form, s->width, s->precision, f);
  else if (s->wide)
    n = snprintf(text, sizeof text, form, s->width, s->precision, (long long)v);
  else
    n = snprintf(text, sizeof text, form, s->width, s->precision, (int)v);
  n = n < 0 ? 0 : n < (int)sizeof text ? n : (int)sizeof text - 1;
  put(p, text, (size_t)n);
  return 0;
}

/* The conversion that text begins with; what is none is printed as it stands. */
static int
print_one(Print *p, const char *text, size_t *length)
{
  Spec s;
  if (read_spec(p, text, &s))
    return -1;
  *length = s.length;
  switch (s.conversion) {
  case '%': put(p, "%", 1); return 0;
  case 'c': return print_char(p, &s);
  case 's': return print_text(p, &s);
  case 'p': return print_pointer(p, &s);
  case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
  case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A': return print_number(p, &s);
  default: put(p, text, s.length); return 0;
  }
}

static int
print_format(Print *p, const char *text)
{
  while (*text) {
    size_t n = strcspn(text, "%");
    put(p, text, n);
    text += n;
    if (*text && print_one(p, text, &n))
      return -1;
    text += *text ? n : 0;
  }
  return 0;
}

/* What the call returns: the arguments that were printed. */
static void
set_result(const Print *p)
{
  const TextOps *o = &p->in->text;
  if (o->result)
    local_store(p->b, p->w, p->lane, frame_of(p->w, p->in, p->lane) + o->result - 1, &p->taken, 4);
}

int
sim_print(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const SimOptions *o = &b->launch->machine->opt;
  Print p = {.b = b, .w = w, .in = in};
  char format[MOST_FORMAT];
  FOR_LANES(lane, m) {
    p.lane = lane;
    p.used = 0;
    p.taken = 0;
    if (sim_text(b, w, in, lane, in->text.text, format, sizeof format) ||
        fetch(b, w, in, lane, SP_LOCAL, frame_of(w, in, lane) + in->text.args, &p.args, 8) || print_format(&p, format))
      return -1;
    pthread_mutex_lock(&b->launch->lock);
    if (o->print && !b->launch->quiet)
      o->print(o->print_user, p.out, p.used);
    pthread_mutex_unlock(&b->launch->lock);
    set_result(&p);
  }
  return 0;
}
