/* ahead.c - a C program whose kernels were compiled when it was built (tilec_add_kernels in CMakeLists.txt, or tilec --emit=c): they are
 * functions of C, nothing is compiled when it runs, and no compiler is needed then.
 *
 *   ahead [cuda|sim]
 */
#include <stdio.h>
#include <tilec/tilert.h>
#include "axpy_kernels.h"

enum { N = 10000 };

typedef struct Work {
  TilertDevice *device;
  TilertStream *stream;
  TilertBuffer *x, *y;
} Work;

static int
setup(Work *w, const char *device, TilertError *err)
{
  int status = tilert_device_open(device, NULL, &w->device, err);
  if (!status)
    status = tilert_stream_create(w->device, &w->stream, err);
  if (!status)
    status = tilert_buffer_create(w->device, N * sizeof(float), &w->x, err);
  return status ? status : tilert_buffer_create(w->device, N * sizeof(float), &w->y, err);
}

/* y = 3 x + y. The kernel is told where the memory is on the device. */
static int
run(Work *w, float *x, float *y, TilertError *err)
{
  const float *in = (const float *)tilert_buffer_address(w->x);
  float *out = (float *)tilert_buffer_address(w->y);
  int status = tilert_buffer_write(w->x, 0, x, N * sizeof *x, NULL, err);
  if (!status)
    status = tilert_buffer_write(w->y, 0, y, N * sizeof *y, NULL, err);
  if (!status)
    status = axpy(w->stream, 3, in, out, N, err);
  if (!status)
    status = tilert_stream_synchronize(w->stream, err);
  return status ? status : tilert_buffer_read(w->y, 0, y, N * sizeof *y, NULL, err);
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

int
main(int argc, char **argv)
{
  static float x[N], y[N];
  Work w = {0};
  TilertError err = {0};
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  int status = setup(&w, argc > 1 ? argv[1] : NULL, &err);
  if (!status)
    status = run(&w, x, y, &err);
  if (status)
    fprintf(stderr, "ahead: %s\n", err.message);
  else if (!(status = check(y)))
    printf("axpy of %d elements on %s, compiled ahead: right\n", N, tilert_device_info(w.device)->name);
  tilert_buffer_destroy(w.x);
  tilert_buffer_destroy(w.y);
  tilert_stream_destroy(w.stream);
  axpy_kernels_unload();
  tilert_device_close(w.device);
  return status != 0;
}
