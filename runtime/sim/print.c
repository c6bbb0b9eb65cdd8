/* print.c - vprintf: formats as C has them, arguments in memory of the thread, each at a multiple of its size. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

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

int
sim_text(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t param, char *out, size_t n)
{
  uint64_t at;
  if (fetch(b, w, in, lane, SP_LOCAL, frame_of(w, in, lane) + param, &at, 8))
    return -1;
  for (size_t i = 0; i < n; i++) {
    if (fetch(b, w, in, lane, SP_GENERIC, at + i, &out[i], 1))
      return -1;
    if (!out[i] || i + 1 == n) {
      out[i] = 0;
      break;
    }
  }
  return 0;
}

typedef struct Args { Block *b; Warp *w; const Insn *in; uint32_t lane; uint64_t at; } Args;

static int
next_arg(Args *a, uint32_t size, uint64_t *v)
{
  a->at = (a->at + size - 1) & ~(uint64_t)(size - 1);
  *v = 0;
  int rc = fetch(a->b, a->w, a->in, a->lane, SP_GENERIC, a->at, v, size);
  a->at += size;
  return rc;
}

/* One conversion of `length` bytes; what is none the machine knows is copied. -1 with the worker's error. */
static int
convert(Args *a, const char *spec, size_t length, char *out, size_t room)
{
  char form[32], kind = spec[length - 1];
  uint64_t v;
  double f;
  if (length >= sizeof form || strspn(spec + 1, "-+ #0123456789.lh") != length - 2) {
    snprintf(out, room, "%.*s", (int)length, spec);
    return 0;
  }
  memcpy(form, spec, length);
  form[length] = 0;
  bool wide = strstr(form, "ll") != NULL;
  bool is_float = strchr("eEfFgGaA", kind) != NULL;
  if (next_arg(a, wide || is_float || kind == 'p' ? 8 : 4, &v))
    return -1;
  memcpy(&f, &v, sizeof f);
  if (is_float)
    snprintf(out, room, form, f);
  else if (wide)
    snprintf(out, room, form, (long long)v);
  else
    snprintf(out, room, form, (int)v);
  return 0;
}

static int
format(Args *a, const char *text, char *out, size_t room)
{
  size_t used = 0;
  while (*text && used + 1 < room) {
    size_t length = strcspn(text + 1, "diouxXcsSpeEfFgGaAn%") + 2;
    if (*text != '%' || text[1] == '%' || length > strlen(text)) {
      text += *text == '%' && text[1] == '%';
      out[used++] = *text++;
      continue;
    }
    out[used] = 0;
    if (!strchr("diouxXceEfFgGaA", text[length - 1]) || strchr(text, '*'))
      snprintf(out + used, room - used, "%.*s", (int)length, text);
    else if (convert(a, text, length, out + used, room - used))
      return -1;
    used += strlen(out + used);
    text += length;
  }
  out[used] = 0;
  return 0;
}

int
sim_print(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const SimOptions *o = &b->launch->machine->opt;
  FOR_LANES(lane, m) {
    char text[TEXT_MAX], out[TEXT_MAX * 2];
    Args a = {b, w, in, lane, 0};
    if (sim_text(b, w, in, lane, in->text.text, text, sizeof text) ||
        fetch(b, w, in, lane, SP_LOCAL, frame_of(w, in, lane) + in->text.args, &a.at, 8) ||
        format(&a, text, out, sizeof out))
      return -1;
    pthread_mutex_lock(&b->launch->lock);
    if (o->print && !b->launch->quiet)
      o->print(o->print_user, out, strlen(out));
    pthread_mutex_unlock(&b->launch->lock);
  }
  return 0;
}
