/* overlap.c - small kernels side by side: several streams, and graphs that were captured from them.
 *
 *   overlap [cuda|sim]
 *
 * Each kernel has few programs and works for a while, so that one alone leaves most of the device idle. The same kernels are launched into
 * one stream, into several that begin behind one event and are waited for in the end, and as a graph that was captured from these; then the
 * other way round: a chain of very small kernels, of which each costs little more than its launch, one by one and as a graph. Last, kernels
 * that go through an array of their own, of few programs to many: those of one program run beside each other, all of them, and slowly; the
 * more of the device one kernel takes the less there is for others, and the less several streams gain. On the simulator, which runs one
 * launch after another, it shows how it is done.
 */
#include <stdio.h>
#include <string.h>
#include <tilec/args.h>
#include <tilec/jit.h>

static const char source[] =
  "kernel spin(x: *f32, times: i32, const BLOCK: i32 = 256) warps(4) {\n"
  "  let i = program_id(0) * BLOCK + arange(0, BLOCK);\n"
  "  var v = load(x + i);\n"
  "  for k in range(0, times) {\n"
  "    v = v * 0.5 + 1.0;\n"
  "  }\n"
  "  store(x + i, v);\n"
  "}\n"
  "kernel add_one(x: *f32, n: i32, const BLOCK: i32 = 1024) warps(8) {\n"
  "  for at in range(program_id(0) * BLOCK, n, num_programs(0) * BLOCK) {\n"
  "    let i = at + arange(0, BLOCK);\n"
  "    store(x + i, load(x + i, mask=i < n) + 1.0, mask=i < n);\n"
  "  }\n"
  "}\n";

enum { STREAMS = 8, PROGRAMS = 4, BLOCK = 256, N = PROGRAMS * BLOCK };
static const uint32_t grids[] = {1, 4, 16, 64, 256, 1024, 5120};

typedef struct Run {
  TilertDevice *device;
  TilejitProgram *program;
  TilejitKernel *kernel, *add_one;
  TilertStream *stream[STREAMS];
  TilertEvent *from, *to, *fork, *join[STREAMS];
  TilertBuffer *x[STREAMS], *array[STREAMS];
  int kernels, times, chain;         /* side by side in all, loop of each, one behind the other */
  uint32_t elements, programs, added;   /* of an array; of a kernel that goes through one; how often each of them was */
} Run;

#define TRY(call)         \
  do {                    \
    int status_ = (call); \
    if (status_)          \
      return status_;     \
  } while (0)

static int
setup(Run *r, const char *device, TilertError *err)
{
  TRY(tilert_device_open(device, NULL, &r->device, err));
  const int sim = (int)tilert_device_info(r->device)->is_sim;
  r->kernels = sim ? 16 : 64;
  r->times = sim ? 20 : 200000;
  r->chain = sim ? 20 : 1000;
  r->elements = sim ? 3000 : 10 << 20;
  TRY(tilejit_program_create(r->device, "spin.tile", source, strlen(source), NULL, &r->program, err));
  TRY(tilejit_kernel(r->program, "spin", NULL, 0, &r->kernel, err));
  TRY(tilejit_kernel(r->program, "add_one", NULL, 0, &r->add_one, err));
  TRY(tilert_event_create(r->device, &r->from, err));
  TRY(tilert_event_create(r->device, &r->to, err));
  TRY(tilert_event_create_untimed(r->device, &r->fork, err));
  for (int i = 0; i < STREAMS; i++) {
    TRY(tilert_stream_create(r->device, &r->stream[i], err));
    TRY(tilert_event_create_untimed(r->device, &r->join[i], err));
    TRY(tilert_buffer_create(r->device, N * sizeof(float), &r->x[i], err));
    TRY(tilert_buffer_fill(r->x[i], 0, N * sizeof(float), 0, 4, NULL, err));
    TRY(tilert_buffer_create(r->device, r->elements * sizeof(float), &r->array[i], err));
    TRY(tilert_buffer_fill(r->array[i], 0, r->elements * sizeof(float), 0, 4, NULL, err));
  }
  return 0;
}

static int
spin(Run *r, int stream, int buffer, int times, TilertError *err)
{
  return tilejit_launch(r->kernel, r->stream[stream], TILERT_GRID(PROGRAMS), TILERT_ARGS(r->x[buffer], times), err);
}

/* Streams begin behind what is in the first one. */
static int
fork_streams(Run *r, int streams, TilertError *err)
{
  TRY(tilert_event_record(r->fork, r->stream[0], err));
  for (int i = 1; i < streams; i++)
    TRY(tilert_stream_wait(r->stream[i], r->fork, err));
  return 0;
}

/* The first one goes on behind what is in the others. */
static int
join_streams(Run *r, int streams, TilertError *err)
{
  for (int i = 1; i < streams; i++) {
    TRY(tilert_event_record(r->join[i], r->stream[i], err));
    TRY(tilert_stream_wait(r->stream[0], r->join[i], err));
  }
  return 0;
}

/* All kernels, into so many streams. */
static int
side_by_side(Run *r, int streams, TilertError *err)
{
  TRY(fork_streams(r, streams, err));
  for (int i = 0; i < r->kernels; i++)
    TRY(spin(r, i % streams, i % STREAMS, r->times, err));
  return join_streams(r, streams, err);
}

/* A kernel for each array, into so many streams. */
static int
through_arrays(Run *r, int streams, TilertError *err)
{
  TRY(fork_streams(r, streams, err));
  for (int i = 0; i < STREAMS; i++)
    TRY(tilejit_launch(r->add_one, r->stream[i % streams], TILERT_GRID(r->programs), TILERT_ARGS(r->array[i], r->elements), err));
  r->added++;
  return join_streams(r, streams, err);
}

static int
one_by_one(Run *r, int ignored, TilertError *err)
{
  (void)ignored;
  for (int i = 0; i < r->chain; i++)
    TRY(spin(r, 0, 0, 1, err));
  return 0;
}

typedef int (*Work)(Run *r, int streams, TilertError *err);

/* Twice, of which the second time counts, by itself or as a graph: in milliseconds. */
static int
measure(Run *r, Work work, int streams, int as_graph, float *ms, TilertError *err)
{
  TilertGraph *g = NULL;
  TilertGraphExec *x = NULL;
  int status = as_graph ? tilert_stream_capture_begin(r->stream[0], err) : 0;
  if (!status && as_graph) {
    TilertError end = {0};
    status = work(r, streams, err);
    int ended = tilert_stream_capture_end(r->stream[0], &g, status ? &end : err);
    status = status ? status : ended;
  }
  if (!status && as_graph)
    status = tilert_graph_instantiate(g, &x, err);
  for (int i = 0; !status && i < 2; i++) {
    status = tilert_event_record(r->from, r->stream[0], err);
    if (!status)
      status = as_graph ? tilert_graph_launch(x, r->stream[0], err) : work(r, streams, err);
    if (!status)
      status = tilert_event_record(r->to, r->stream[0], err);
    if (!status)
      status = tilert_event_elapsed(r->from, r->to, ms, err);
  }
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  return status;
}

static int
few_programs(Run *r, TilertError *err)
{
  const struct Case { const char *name; Work work; int streams, as_graph, kernels; } cases[] = {
    {"one stream", side_by_side, 1, 0, r->kernels}, {"two streams", side_by_side, 2, 0, r->kernels},
    {"eight streams", side_by_side, STREAMS, 0, r->kernels}, {"a graph of eight streams", side_by_side, STREAMS, 1, r->kernels},
    {"a chain of launches", one_by_one, 1, 0, r->chain}, {"a chain as a graph", one_by_one, 1, 1, r->chain},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct Case *c = &cases[i];
    float ms;
    TRY(measure(r, c->work, c->streams, c->as_graph, &ms, err));
    printf("%-40s %9.3f ms, %8.2f us a kernel\n", c->name, (double)ms, 1e3 * (double)ms / c->kernels);
  }
  return 0;
}

static int
more_programs(Run *r, TilertError *err)
{
  printf("%d kernels, each through %.1f MB:\n", STREAMS, (double)r->elements * sizeof(float) / 1e6);
  const size_t n = sizeof grids / sizeof *grids;
  for (size_t i = 0; i < (tilert_device_info(r->device)->is_sim ? 3 : n); i++) {
    float one, all;
    r->programs = grids[i];
    TRY(measure(r, through_arrays, 1, 0, &one, err));
    TRY(measure(r, through_arrays, STREAMS, 0, &all, err));
    printf("%5u programs: one stream %9.3f ms, eight streams %9.3f ms, %.2f of the time\n", r->programs, (double)one, (double)all,
           (double)(all / one));
  }
  return 0;
}

static int
run(Run *r, TilertError *err)
{
  printf("%s\n", tilert_device_info(r->device)->name);
  TRY(few_programs(r, err));
  return more_programs(r, err);
}

/* One was added to every element so many times: the first and the last ones of each array. */
static int
check_arrays(Run *r, TilertError *err)
{
  float v[2][BLOCK];
  for (int i = 0; i < STREAMS; i++) {
    TRY(tilert_buffer_read(r->array[i], 0, v[0], sizeof v[0], NULL, err));
    TRY(tilert_buffer_read(r->array[i], r->elements * sizeof(float) - sizeof v[1], v[1], sizeof v[1], NULL, err));
    for (int j = 0; j < 2 * BLOCK; j++)
      if (v[j / BLOCK][j % BLOCK] != (float)r->added) {
        snprintf(err->message, sizeof err->message, "an element of array %d is %g, not %u", i, (double)v[j / BLOCK][j % BLOCK], r->added);
        return -1;
      }
  }
  return 0;
}

/* Every element has gone the same way to 2, on which it stays. */
static int
check(Run *r, TilertError *err)
{
  static float v[N];
  for (int i = 0; i < STREAMS; i++) {
    TRY(tilert_buffer_read(r->x[i], 0, v, sizeof v, NULL, err));
    for (int j = 0; j < N; j++)
      if (v[j] < 1.999f || v[j] > 2) {
        snprintf(err->message, sizeof err->message, "element %d of array %d is %g", j, i, (double)v[j]);
        return -1;
      }
  }
  return check_arrays(r, err);
}

static void
finish(Run *r)
{
  for (int i = 0; i < STREAMS; i++) {
    tilert_buffer_destroy(r->x[i]);
    tilert_buffer_destroy(r->array[i]);
    tilert_event_destroy(r->join[i]);
    tilert_stream_destroy(r->stream[i]);
  }
  tilert_event_destroy(r->from);
  tilert_event_destroy(r->to);
  tilert_event_destroy(r->fork);
  tilejit_program_destroy(r->program);
  tilert_device_close(r->device);
}

int
main(int argc, char **argv)
{
  Run r = {0};
  TilertError err = {0};
  int status = setup(&r, argc > 1 ? argv[1] : NULL, &err);
  if (!status)
    status = run(&r, &err);
  if (!status)
    status = check(&r, &err);
  if (status)
    fprintf(stderr, "overlap: %s\n", err.message);
  else
    printf("right\n");
  finish(&r);
  return status != 0;
}
