/* args.h in C++. */
#include "args_check.h"

#define TILERT_TENSOR_OF_NONE TilertTensorArg()
#define NOTHING nullptr

static const char kinds[1] = {0};

static bool
true_of(int calls)
{
  return calls >= 0;
}

int
main()
{
  TilertBuffer *b = (TilertBuffer *)(void *)(uintptr_t)kinds;
  TilertTensorArg t = TILERT_TENSOR_OF_NONE;
  const TilertTensorArg *ct = &t;
  const double d = -3;
  const unsigned u = 4000000000u;
  unsigned short h = 65535;
  int calls = 0;
  check_args(b, ct, TILERT_ARGS(b, ct, (void *)&t, NOTHING, 2.5f, d, -7 + 0 * calls++, true_of(1), u, 'x', INT64_MIN,
                                tilert_arg_address(0x1000), tilert_arg_bytes(b), h));
  CHECK(calls == 1);                   /* each value is computed once */
  check_grid(TILERT_GRID(5), 5, 1, 1);
  check_grid(TILERT_GRID(5, u - u + 6), 5, 6, 1);
  check_grid(TILERT_GRID(5, 6, 7), 5, 6, 7);
  return 0;
}
