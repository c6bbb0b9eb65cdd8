/* embed.c - a C program that carries a kernel as text, compiles it when it runs, and launches it on its own data.
 *
 *   embed [cuda|sim]
 *
 * Built against the installed libtilec: see the Makefile beside it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilec/jit.h>

static const char source[] =
  "kernel axpy(a: f32, x: *f32, y: *f32, n: i32, const BLOCK: i32 = 1024) {\n"
  "  let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
  "  let m = i < n;\n"
  "  store(y + i, a * load(x + i, mask=m) + load(y + i, mask=m), mask=m);\n"
  "}\n";

enum { N = 100000, BLOCK = 512 };

typedef struct Axpy {
  TilertDevice *device;
  TilejitProgram *program;
  TilejitKernel *kernel;
  TilertBuffer *x, *y;
} Axpy;

static int
setup(Axpy *t, const char *device, TilertError *err)
{
  TilecDefine block = {"BLOCK", "512"};
  int status = tilert_device_open(device, NULL, &t->device, err);
  if (!status)
    status = tilejit_program_create(t->device, "axpy.tile", source, strlen(source), NULL, &t->program, err);
  if (!status)
    status = tilejit_kernel(t->program, "axpy", &block, 1, &t->kernel, err);
  if (!status)
    status = tilert_buffer_create(t->device, N * sizeof(float), &t->x, err);
  if (!status)
    status = tilert_buffer_create(t->device, N * sizeof(float), &t->y, err);
  return status;
}

/* y = 3 x + y, the arguments given by name. */
static int
launch(Axpy *t, TilertError *err)
{
  const char *names[] = {"a", "x", "y", "n"};
  TilertArg args[4] = {
    {.kind = TILERT_ARG_FLOAT, .u.f = 3}, {.kind = TILERT_ARG_BUFFER, .u.buffer = t->x},
    {.kind = TILERT_ARG_BUFFER, .u.buffer = t->y}, {.kind = TILERT_ARG_INT, .u.i = N},
  };
  uint32_t grid[3] = {(N + BLOCK - 1) / BLOCK, 1, 1};
  return tilejit_launch_named(t->kernel, NULL, grid, names, args, 4, err);
}

static int
run(Axpy *t, float *x, float *y, TilertError *err)
{
  size_t bytes = N * sizeof(float);
  int status = tilert_buffer_write(t->x, 0, x, bytes, NULL, err);
  if (!status)
    status = tilert_buffer_write(t->y, 0, y, bytes, NULL, err);
  if (!status)
    status = launch(t, err);
  return status ? status : tilert_buffer_read(t->y, 0, y, bytes, NULL, err);
}

static int
check(const float *y)
{
  for (int i = 0; i < N; i++)
    if (y[i] != 3 * (float)i + 1) {
      printf("y[%d] is %g, expected %g\n", i, (double)y[i], 3.0 * i + 1);
      return 1;
    }
  return 0;
}

static void
finish(Axpy *t)
{
  tilert_buffer_destroy(t->x);
  tilert_buffer_destroy(t->y);
  tilejit_program_destroy(t->program);
  tilert_device_close(t->device);
}

int
main(int argc, char **argv)
{
  static float x[N], y[N];
  Axpy t = {0};
  TilertError err = {0};
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  int status = setup(&t, argc > 1 ? argv[1] : NULL, &err);
  if (!status)
    status = run(&t, x, y, &err);
  if (status)
    fprintf(stderr, "embed: %s\n", err.message);
  else if (!(status = check(y)))
    printf("axpy of %d elements on %s: right\n", N, tilert_device_info(t.device)->name);
  finish(&t);
  return status != 0;
}
