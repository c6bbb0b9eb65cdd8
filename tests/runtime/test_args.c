/* args.h in C, and launches by it, each one statement. */
#include <stdbool.h>
#include "args_check.h"
#include "kernels.h"

#define TILERT_TENSOR_OF_NONE {0}
#define NOTHING NULL

static TilertError err;
static const char kinds[1];

static bool
true_of(int calls)
{
  return calls >= 0;
}

static void
test_makers(void)
{
  TilertBuffer *b = (TilertBuffer *)(void *)kinds;
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
}

static void
test_launch(void)
{
  TilertDevice *d;
  TilertModule *m;
  TilertBuffer *x, *y;
  TilertKernel *k;
  float back[4];
  CHECK_OK(tilert_device_open("sim", NULL, &d, &err));
  CHECK_OK(tilert_buffer_create(d, 64, &x, &err));
  CHECK_OK(tilert_buffer_create(d, 64, &y, &err));
  CHECK_OK(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, "axpy", &k, &err));
  CHECK_OK(tilert_buffer_write(x, 0, (float[]){1, 2, 3, 4}, 16, NULL, &err));
  CHECK_OK(tilert_buffer_write(y, 0, (float[]){1, 1, 1, 1}, 16, NULL, &err));
  CHECK_OK(tilert_launch(NULL, k, TILERT_GRID(1), TILERT_ARGS(2.0f, x, y, 3), &err));
  CHECK_FAILS(tilert_launch(NULL, k, TILERT_GRID(1), TILERT_ARGS(2, x, y), &err), TILERT_E_ARGUMENT, "takes 4 arguments; 3 are given");
  CHECK_OK(tilert_buffer_read(y, 0, back, 16, NULL, &err));
  CHECK(back[0] == 3 && back[2] == 7 && back[3] == 1);
  tilert_buffer_destroy(x);
  tilert_buffer_destroy(y);
  tilert_module_destroy(m);
  tilert_device_close(d);
}

int
main(void)
{
  test_makers();
  test_launch();
  return 0;
}
