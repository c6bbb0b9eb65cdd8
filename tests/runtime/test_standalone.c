/* Kernels that were compiled ahead into a source of their own (ahead.tile, by tilec --emit=c --standalone), over the driver that only
 * records (fakecuda.c); nothing of tilec is linked. With "none" as its argument: without a driver. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include "alone.h"
#include "check.h"
#include "fakecuda.h"

enum { THREADS = 8 };

static TilertError err;
static FakeCuda *fake;
static void *lib;
static int (*set_current)(void *context);

static int
calls(const char *name)
{
  for (int i = 0; i < fake->ncalls; i++)
    if (!strcmp(fake->calls[i].name, name))
      return fake->calls[i].count;
  return 0;
}

static void *
make_primary_current(void)
{
  void *context = NULL;
  int (*retain)(void **out, int device) = (int (*)(void **, int))(uintptr_t)dlsym(lib, "cuDevicePrimaryCtxRetain");
  set_current = (int (*)(void *))(uintptr_t)dlsym(lib, "cuCtxSetCurrent");
  CHECK(retain && set_current && !retain(&context, 0) && !set_current(context));
  return context;
}

static void
test_no_context(void)
{
  float x[8];
  CHECK_FAILS(scale_BLOCK128(NULL, x, x, 8, 1, &err), TILERT_E_ARGUMENT, "scale_BLOCK128: the stream is the default one, and the thread has no");
  CHECK(scale_BLOCK128(NULL, x, x, 8, 1, NULL) == TILERT_E_ARGUMENT);
  CHECK_FAILS(alone_load(NULL, &err), TILERT_E_ARGUMENT, "alone_load: the stream");
}

/* What the driver gets: the grid, the block, the stream, every parameter. */
static void
test_launch(void)
{
  static _Alignas(64) float x[1000], y[1000];
  struct CUstream_st *const stream = (struct CUstream_st *)(uintptr_t)0x5550;
  const int before = fake->launch.count, modules = fake->modules;
  CHECK_OK(scale_BLOCK128(stream, x, y, 1000, 2.5f, &err));
  const FakeLaunch *l = &fake->launch;
  CHECK(l->count == before + 1 && l->stream == (void *)stream && fake->modules == modules + 1);
  CHECK(l->grid[0] == 8 && l->grid[1] == 1 && l->grid[2] == 1 && l->block[0] == 32 && l->block[1] == 1);
  CHECK(*(uint64_t *)l->params[0] == (uintptr_t)x && *(uint64_t *)l->params[1] == (uintptr_t)y);
  CHECK(*(int32_t *)l->params[2] == 1000 && *(float *)l->params[3] == 2.5f);
  const int asked = fake->total;
  CHECK_OK(scale_BLOCK128(stream, x, y, 1000, 2.5f, &err));
  CHECK(fake->modules == modules + 1 && fake->total - asked == 2);      /* whose stream, and the launch */
  CHECK_OK(scale_BLOCK128(stream, x + 1, y, 999, 1, &err));              /* another form */
  CHECK(fake->modules == modules + 2 && l->grid[0] == 8);
  CHECK_OK(scale_BLOCK64_warps2(NULL, x, y, 65, 1, &err));
  CHECK(l->grid[0] == 2 && l->block[0] == 64 && !l->stream);
  const int launched = l->count;
  CHECK_OK(scale_BLOCK128(stream, NULL, NULL, 0, 1, &err));              /* no programs */
  CHECK(l->count == launched);
  CHECK_FAILS(scale_BLOCK128(stream, x, NULL, 5, 1, &err), TILERT_E_ARGUMENT, "argument 1 (y): it is null");
  CHECK_FAILS(scale_BLOCK128(stream, x, y, -200, 1, &err), TILERT_E_ARGUMENT, "its grid has -1 programs");
  CHECK_FAILS(fill(stream, NULL, NULL, 1, 1, 1, &err), TILERT_E_ARGUMENT, "fill: the grid is NULL");
  CHECK(l->count == launched);
}

/* As many programs as there is room for, at most two a multiprocessor. */
static void
test_persistent(void)
{
  static int32_t x[32];
  CHECK_OK(doubled(NULL, x, 7, &err));
  CHECK(fake->launch.grid[0] == 7);
  CHECK_OK(doubled(NULL, x, 500, &err));
  CHECK(fake->launch.grid[0] == 20 && fake->launch.grid[1] == 1);
  CHECK_OK(shared_out(NULL, x, 7, &err));                /* a grid of the device's multiprocessors */
  CHECK(fake->launch.grid[0] == 7);
  CHECK_OK(shared_out(NULL, x, 500, &err));
  CHECK(fake->launch.grid[0] == 10);
}

static void
test_tensor(void)
{
  static _Alignas(64) float x[24 * 40], y[24 * 40];
  tile_const_tensor_f32_2 a = {x, {24, 40}, {0, 0}};
  tile_tensor_f32_2 b = {y, {40, 24}, {0, 0}};
  fake->map_needs_context = 1;
  CHECK_OK(turn(NULL, a, b, &err));
  CHECK(fake->launch.grid[0] == 2 && fake->launch.grid[1] == 3);
  const int maps = calls("cuTensorMapEncodeTiled");
  CHECK(maps > 0);
  a.extents[1] = b.extents[0] = 37;                    /* rows of 148 bytes: no boxes */
  CHECK_OK(turn(NULL, a, b, &err));
  CHECK(calls("cuTensorMapEncodeTiled") == maps && fake->launch.grid[1] == 3);
}

static void
test_failures(void)
{
  static _Alignas(64) double x[2];
  fake->launch_result = 1;
  CHECK_FAILS(total(NULL, x, x + 1, 1, &err), TILERT_E_DRIVER, "kernel total: cuLaunchKernel: CUDA_ERROR_FAKE (1)");
  fake->launch_result = 700;
  CHECK_FAILS(total(NULL, x, x + 1, 1, &err), TILERT_E_FAULT, "kernel total");
  fake->launch_result = 0;
  CHECK_OK(total(NULL, x, x + 1, 1, &err));
}

static void *context;
static pthread_barrier_t start;

static void *
first_call(void *arg)
{
  static const uint32_t grid[3] = {1, 1, 1};
  TilertError mine;
  int32_t y[32];
  (void)arg;
  pthread_barrier_wait(&start);
  return set_current(context) || fill(NULL, grid, y, 1, 1, 1, &mine) ? &start : NULL;
}

static void
test_threads(void)
{
  pthread_t t[THREADS];
  const int modules = fake->modules;
  CHECK(!pthread_barrier_init(&start, NULL, THREADS));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, first_call, NULL));
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    CHECK(!pthread_join(t[i], &failed) && !failed);
  }
  CHECK(fake->modules == modules + 1);
}

int
main(int argc, char **argv)
{
  if (argc > 1 && !strcmp(argv[1], "none")) {
    CHECK_FAILS(alone_load(NULL, &err), TILERT_E_UNAVAILABLE, "no CUDA driver");
    alone_unload();
    return 0;
  }
  CHECK((lib = dlopen("libcuda.so.1", RTLD_NOW)));
  FakeCuda *(*get)(void) = (FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda");
  CHECK(get);
  fake = get();
  fake->multiprocessors = 10;                            /* each has room for three programs */
  test_no_context();
  context = make_primary_current();
  test_threads();
  for (int again = 0; again < 2; again++) {
    test_launch();
    test_persistent();
    test_tensor();
    test_failures();
    alone_unload();
    CHECK(!fake->modules);
  }
  CHECK_OK(alone_load(NULL, &err));
  alone_unload();
  return 0;
}
