/* unpack.c - bytes that were packed ahead (tools/pack.c).
 *
 * Packed is a list of pairs: a number n, n bytes as they are, a number m, and, unless m is 0, a number d: the m bytes that begin d bytes
 * before the end of what is there, one after the other, so that d may be less than m. A number is 7 bits to the byte, the low ones first;
 * the high bit says that there are more. */
#include "aot.h"
#include "device.h"
#include <string.h>

typedef struct Unpack { const unsigned char *at, *end; int bad; } Unpack;

static uint32_t
number(Unpack *u)
{
  uint32_t v = 0;
  for (int shift = 0; shift < 32; shift += 7) {
    if (u->at == u->end)
      break;
    unsigned char c = *u->at++;
    v |= (uint32_t)(c & 127) << shift;
    if (c < 128)
      return v;
  }
  u->bad = 1;
  return 0;
}

/* One pair; how many bytes there are then. */
static uint32_t
pair(Unpack *u, unsigned char *out, uint32_t n, uint32_t size)
{
  uint32_t plain = number(u);
  if (u->bad || plain > size - n || plain > (size_t)(u->end - u->at)) {
    u->bad = 1;
    return n;
  }
  memcpy(out + n, u->at, plain);
  u->at += plain;
  n += plain;
  uint32_t again = number(u), back = again ? number(u) : 1;
  if (u->bad || again > size - n || !back || back > n) {
    u->bad |= again != 0;
    return n;
  }
  for (uint32_t i = 0; i < again; i++, n++)
    out[n] = out[n - back];
  return n;
}

int
tilert_aot_unpack(const TilertAotCode *code, unsigned char *out, TilertError *err)
{
  NEED(code);
  NEED(out);
  NEED(code->data || !code->packed);
  Unpack u = {code->data, code->data + code->packed, 0};
  uint32_t n = 0;
  while (!u.bad && u.at < u.end)
    n = pair(&u, out, n, code->size);
  if (u.bad || n != code->size)
    return rt_error_set(err, TILERT_E_MODULE, "the code of a kernel that was compiled ahead is damaged");
  return TILERT_OK;
}
