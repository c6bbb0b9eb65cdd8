/* Both tests of args.h: what the macros make of each type, in a call that is told two arguments. */
#ifndef ARGS_CHECK_H
#define ARGS_CHECK_H
#include <string.h>
#include "args.h"
#include "check.h"

enum { MADE = 14 };

static inline void
check_args(TilertBuffer *b, const TilertTensorArg *t, const TilertArg *a, size_t n)
{
  static const uint32_t kinds[MADE] = {TILERT_ARG_BUFFER, TILERT_ARG_TENSOR, TILERT_ARG_POINTER, TILERT_ARG_POINTER, TILERT_ARG_FLOAT,
                                       TILERT_ARG_FLOAT, TILERT_ARG_INT, TILERT_ARG_INT, TILERT_ARG_INT, TILERT_ARG_INT, TILERT_ARG_INT,
                                       TILERT_ARG_POINTER, TILERT_ARG_BYTES, TILERT_ARG_INT};
  CHECK(n == MADE);
  for (size_t i = 0; i < n; i++)
    CHECK(a[i].kind == kinds[i] && a[i].reserved == 0);
  CHECK(a[0].u.buffer == b && a[1].u.tensor == t && a[2].u.pointer == (uintptr_t)t && a[3].u.pointer == 0);
  CHECK(a[4].u.f == 2.5 && a[5].u.f == -3 && a[6].u.i == -7 && a[7].u.i == 1 && a[8].u.i == 4000000000u && a[9].u.i == 'x');
  CHECK(a[10].u.i == INT64_MIN && a[11].u.pointer == 0x1000 && a[12].u.bytes == b && a[13].u.i == 65535);
}

static inline void
check_grid(const uint32_t g[3], uint32_t x, uint32_t y, uint32_t z)
{
  CHECK(g[0] == x && g[1] == y && g[2] == z);
}
#endif
