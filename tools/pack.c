/* pack.c - what runtime/unpack.c undoes: repetitions are found by the four bytes that they begin with, the longest of the latest LOOKS
 * places that have the same ones. PTX becomes a tenth to a sixth of what it was. */
#include "pack.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_BITS = 15, LOOKS = 64, LEAST = 4, LONG_ENOUGH = 512 };

typedef struct Pack {
  const unsigned char *data;
  size_t n, at, plain;                 /* plain: where bytes begin that are not written yet */
  unsigned char *out;
  size_t len;
  int32_t head[1 << HASH_BITS], *before;   /* the latest place of each hash, and for each place the one before it; -1: none */
} Pack;

static void
put_number(Pack *p, size_t v)
{
  for (; v > 127; v >>= 7)
    p->out[p->len++] = (unsigned char)(v | 128);
  p->out[p->len++] = (unsigned char)v;
}

static uint32_t
hash_at(const Pack *p, size_t at)
{
  uint32_t v;
  memcpy(&v, p->data + at, sizeof v);
  return v * UINT32_C(2654435761) >> (32 - HASH_BITS);
}

static void
remember(Pack *p)
{
  if (p->at + LEAST > p->n)
    return;
  uint32_t h = hash_at(p, p->at);
  p->before[p->at] = p->head[h];
  p->head[h] = (int32_t)p->at;
}

static size_t
same_bytes(const Pack *p, size_t from)
{
  size_t n = 0;
  while (p->at + n < p->n && p->data[from + n] == p->data[p->at + n])
    n++;
  return n;
}

/* The longest repetition that begins here, and where it was. */
static size_t
longest(const Pack *p, size_t *from)
{
  size_t best = 0;
  int32_t place = p->at + LEAST <= p->n ? p->head[hash_at(p, p->at)] : -1;
  for (int looks = 0; place >= 0 && looks < LOOKS && best < LONG_ENOUGH; looks++, place = p->before[place]) {
    size_t n = same_bytes(p, (size_t)place);
    if (n > best) {
      best = n;
      *from = (size_t)place;
    }
  }
  return best;
}

/* The bytes so far that are no repetition. */
static void
put_plain(Pack *p)
{
  put_number(p, p->at - p->plain);
  memcpy(p->out + p->len, p->data + p->plain, p->at - p->plain);
  p->len += p->at - p->plain;
}

static void
pack_all(Pack *p)
{
  while (p->at < p->n) {
    size_t from = 0, n = longest(p, &from);
    if (n < LEAST + 1) {
      remember(p);
      p->at++;
      continue;
    }
    put_plain(p);
    put_number(p, n);
    put_number(p, p->at - from);
    for (size_t i = 0; i < n; i++, p->at++)
      remember(p);
    p->plain = p->at;
  }
  put_plain(p);
  put_number(p, 0);
}

unsigned char *
pack_bytes(const unsigned char *data, size_t n, size_t *packed)
{
  Pack *p = calloc(1, sizeof *p);
  unsigned char *out = NULL;
  if (p) {
    p->data = data;
    p->n = n;
    p->out = malloc(n + n / 2 + 64);
    p->before = malloc((n + 1) * sizeof *p->before);
    memset(p->head, 0xff, sizeof p->head);
  }
  if (p && p->out && p->before && n < INT32_MAX) {
    pack_all(p);
    *packed = p->len;
    out = p->out;
  } else if (p) {
    free(p->out);
  }
  if (p)
    free(p->before);
  free(p);
  return out;
}
