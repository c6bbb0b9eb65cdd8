/* graph.c - launches that are described once and repeated as one: y = a x + y, several times, captured from a stream; then the graph runs
 * again and again, with another a each time.
 *
 *   graph [cuda|sim]
 *
 * Its kernels were compiled when it was built, as those of ahead.c.
 */
#include <stdio.h>
#include <tilec/tilert.h>
#include "axpy_kernels.h"

enum { N = 10000, STEPS = 3, RUNS = 4 };

typedef struct Work {
  TilertDevice *device;
  TilertStream *stream;
  TilertBuffer *x, *y;
  TilertGraph *graph;
  TilertGraphExec *ready;
} Work;

static int
setup(Work *w, const char *device, const float *x, const float *y, TilertError *err)
{
  int status = tilert_device_open(device, NULL, &w->device, err);
  if (!status)
    status = axpy_kernels_load(w->device, err);            /* what is captured is not to load anything */
  if (!status)
    status = tilert_stream_create(w->device, &w->stream, err);
  if (!status)
    status = tilert_buffer_create(w->device, N * sizeof *x, &w->x, err);
  if (!status)
    status = tilert_buffer_create(w->device, N * sizeof *y, &w->y, err);
  if (!status)
    status = tilert_buffer_write(w->x, 0, x, N * sizeof *x, NULL, err);
  return status ? status : tilert_buffer_write(w->y, 0, y, N * sizeof *y, NULL, err);
}

/* What is put into the stream becomes the nodes of a graph: 0, 1, 2. */
static int
capture(Work *w, TilertError *err)
{
  const float *x = (const float *)tilert_buffer_address(w->x);
  float *y = (float *)tilert_buffer_address(w->y);
  int status = tilert_stream_capture_begin(w->stream, err);
  for (int i = 0; i < STEPS && !status; i++)
    status = axpy(w->stream, 1, x, y, N, err);
  if (!status)
    status = tilert_stream_capture_end(w->stream, &w->graph, err);
  return status ? status : tilert_graph_instantiate(w->graph, &w->ready, err);
}

/* Each run adds (1 + run) x, and 1 x twice. */
static int
run(Work *w, float *y, TilertError *err)
{
  int status = 0;
  for (int i = 0; i < RUNS && !status; i++) {
    TilertArg a = {.kind = TILERT_ARG_FLOAT, .u.f = 1 + i};
    status = tilert_graph_set_arg(w->ready, 0, 0, &a, err);
    if (!status)
      status = tilert_graph_launch(w->ready, w->stream, err);
  }
  if (!status)
    status = tilert_stream_synchronize(w->stream, err);
  return status ? status : tilert_buffer_read(w->y, 0, y, N * sizeof *y, NULL, err);
}

static int
check(const float *y)
{
  const int total = RUNS * (STEPS - 1) + RUNS * (RUNS + 1) / 2;
  for (int i = 0; i < N; i++)
    if (y[i] != (float)(total * i + 1)) {
      printf("y[%d] is %g, expected %d\n", i, (double)y[i], total * i + 1);
      return 1;
    }
  return 0;
}

static void
finish(Work *w)
{
  tilert_graph_exec_destroy(w->ready);
  tilert_graph_destroy(w->graph);
  tilert_buffer_destroy(w->x);
  tilert_buffer_destroy(w->y);
  tilert_stream_destroy(w->stream);
  axpy_kernels_unload();
  tilert_device_close(w->device);
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
  int status = setup(&w, argc > 1 ? argv[1] : NULL, x, y, &err);
  if (!status)
    status = capture(&w, &err);
  if (!status)
    status = run(&w, y, &err);
  if (status)
    fprintf(stderr, "graph: %s\n", err.message);
  else if (!(status = check(y)))
    printf("a graph of %d launches, %d times on %s: right\n", STEPS, RUNS, tilert_device_info(w.device)->name);
  finish(&w);
  return status != 0;
}
