/* Two CUDA contexts of one GPU, the primary one and one of the caller's, over a fake driver that knows what was made in which: every call
 * is made in the context of what it is given, from one thread and from two, whatever is current there; what is of the other context is
 * refused with a sentence, or made right.
 * Run with the fake libcuda.so.1 first on LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include <pthread.h>
#include "check.h"
#include "fakecuda.h"
#include "kernels.h"
#include "tilert.h"

static _Thread_local TilertError err;
static FakeCuda *fake;
static void *(*context)(int other), *(*current_context)(void);
static int (*push)(void *), (*pop)(void **);
static const uint32_t three[3] = {3, 1, 1};

/* What a program has in one context. */
typedef struct Side {
  TilertDevice *device;
  void *context;
  TilertStream *stream;
  TilertEvent *begin, *end;
  TilertBuffer *x, *y;
  TilertModule *module;
  TilertKernel *kernel;
  TilertLaunch *launch;
} Side;

static void
find_fake(void)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  FakeCuda *(*get)(void) = (FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda");
  context = (void *(*)(int))(uintptr_t)dlsym(lib, "fakecuda_context");
  current_context = (void *(*)(void))(uintptr_t)dlsym(lib, "fakecuda_current");
  push = (int (*)(void *))(uintptr_t)dlsym(lib, "cuCtxPushCurrent_v2");
  pop = (int (*)(void **))(uintptr_t)dlsym(lib, "cuCtxPopCurrent_v2");
  CHECK(get && context && current_context && push && pop);
  fake = get();
  fake->capability = 90;
  fake->driver_version = 12060;
  fake->two_contexts = 1;
}

static void
fill_args(const Side *s, TilertArg args[4])
{
  args[0] = (TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = 2};
  args[1] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = s->x};
  args[2] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = s->y};
  args[3] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = 16};
}

static Side
side_open(int other)
{
  Side s = {.context = context(other)};
  TilertArg args[4];
  if (other)
    CHECK_OK(tilert_device_wrap(s.context, &s.device, &err));
  else
    CHECK_OK(tilert_device_open("cuda", NULL, &s.device, &err));
  CHECK_OK(tilert_stream_create_priority(s.device, -1, &s.stream, &err));
  CHECK_OK(tilert_event_create(s.device, &s.begin, &err));
  CHECK_OK(tilert_event_create(s.device, &s.end, &err));
  CHECK_OK(tilert_buffer_create(s.device, 64, &s.x, &err));
  CHECK_OK(tilert_buffer_create(s.device, 64, &s.y, &err));
  CHECK_OK(tilert_module_load(s.device, axpy_ptx, strlen(axpy_ptx), NULL, 0, &s.module, &err));
  CHECK_OK(tilert_module_kernel(s.module, "axpy", &s.kernel, &err));
  fill_args(&s, args);
  CHECK_OK(tilert_launch_create(s.kernel, three, args, 4, &s.launch, &err));
  return s;
}

static void
side_close(Side *s)
{
  tilert_launch_destroy(s->launch);
  tilert_module_destroy(s->module);
  tilert_buffer_destroy(s->x);
  tilert_buffer_destroy(s->y);
  tilert_event_destroy(s->begin);
  tilert_event_destroy(s->end);
  tilert_stream_destroy(s->stream);
  tilert_device_close(s->device);
}

/* ---- what each context does by itself ---- */

static void
use_launches(const Side *s)
{
  TilertArg args[4];
  TilertKernelInfo info;
  uint32_t blocks;
  TilertLaunch *by_pairs;
  fill_args(s, args);
  CHECK_OK(tilert_launch_packed(s->launch, s->stream, &err));
  CHECK_OK(tilert_launch_packed(s->launch, NULL, &err));
  CHECK_OK(tilert_launch(s->stream, s->kernel, three, args, 4, &err));
  CHECK_OK(tilert_launch_create(s->kernel, (const uint32_t[]){4, 1, 1}, args, 4, &by_pairs, &err));
  CHECK_OK(tilert_launch_set_cluster(by_pairs, (const uint32_t[]){2, 1, 1}, &err));
  CHECK_OK(tilert_launch_packed(by_pairs, s->stream, &err));
  tilert_launch_destroy(by_pairs);
  CHECK_OK(tilert_kernel_info(s->kernel, &info, &err));
  CHECK_OK(tilert_kernel_occupancy(s->kernel, &blocks, &err));
}

static void
use_memory(const Side *s)
{
  char in[64] = "seen", out[64];
  TilertBuffer *pinned, *ordered;
  TilertPool *pool;
  CHECK_OK(tilert_buffer_write(s->x, 0, in, sizeof in, s->stream, &err));
  CHECK_OK(tilert_buffer_copy(s->y, 0, s->x, 0, sizeof in, s->stream, &err));
  for (uint32_t width = 1; width <= 4; width *= 2)
    CHECK_OK(tilert_buffer_fill(s->y, 32, 32, 7, width, s->stream, &err));
  const TilertRows to = {.host = out, .pitch = 16}, from = {.buffer = s->y, .pitch = 16};
  CHECK_OK(tilert_copy_rows(&to, &from, 8, 2, s->stream, &err));
  CHECK_OK(tilert_buffer_read(s->y, 0, out, sizeof out, NULL, &err));
  CHECK(!strcmp(out, "seen"));
  CHECK_OK(tilert_buffer_create_host(s->device, 64, 0, &pinned, &err));
  tilert_buffer_destroy(pinned);
  CHECK_OK(tilert_pool_create(s->device, NULL, &pool, &err));
  CHECK_OK(tilert_buffer_create_in(s->stream, pool, 64, &ordered, &err));
  CHECK_OK(tilert_buffer_destroy_in(ordered, s->stream, &err));
  tilert_pool_destroy(pool);
}

static void
note(void *user)
{
  ++*(int *)user;
}

static void
use_streams(const Side *s)
{
  TilertStream *own;
  float ms;
  int done, called = 0;
  CHECK_OK(tilert_stream_create(s->device, &own, &err));
  CHECK_OK(tilert_event_record(s->begin, own, &err));
  CHECK_OK(tilert_event_record(s->end, NULL, &err));
  CHECK_OK(tilert_event_elapsed(s->begin, s->end, &ms, &err));
  CHECK_OK(tilert_event_query(s->end, &done, &err));
  CHECK_OK(tilert_stream_wait(own, s->end, &err));
  CHECK_OK(tilert_stream_host(own, note, &called, &err));
  CHECK_OK(tilert_stream_query(own, &done, &err));
  CHECK_OK(tilert_stream_synchronize(own, &err));
  const TilertWindow w = {.buffer = s->x, .bytes = 64, .ratio = 1};
  CHECK_OK(tilert_stream_set_window(own, &w, &err));
  CHECK(called == 1);
  tilert_stream_destroy(own);
  CHECK_OK(tilert_device_synchronize(s->device, &err));
}

static void
use_graphs(const Side *s)
{
  TilertGraph *g;
  TilertGraphExec *x;
  CHECK_OK(tilert_graph_create(s->device, &g, &err));
  CHECK_OK(tilert_graph_add_launch(g, s->launch, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_add_fill(g, s->x, 0, 64, 1, 1, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_launch(x, s->stream, &err));
  CHECK_OK(tilert_graph_set_launch(x, 0, s->launch, &err));
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  CHECK_OK(tilert_stream_capture_begin(s->stream, &err));
  CHECK_OK(tilert_launch_packed(s->launch, s->stream, &err));
  CHECK_OK(tilert_buffer_fill(s->x, 0, 64, 1, 1, s->stream, &err));
  CHECK_OK(tilert_stream_capture_end(s->stream, &g, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_launch(x, s->stream, &err));
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
}

/* The thread's own context, if it has one, is current before and behind it. */
static void
use(const Side *s)
{
  void *before = current_context();
  use_launches(s);
  CHECK(!before || current_context() == before);
  use_memory(s);
  use_streams(s);
  use_graphs(s);
  CHECK(!before || current_context() == before);
}

/* Of both in turns, whichever of them is current. */
static void
use_in_turns(const Side *a, const Side *b)
{
  void *ignored;
  use(a);                                /* what a thread without one is given is that of the first that it uses */
  CHECK(current_context());
  use(b);
  for (int other = 0; other < 2; other++) {
    push(context(other));
    use(a);
    use(b);
    pop(&ignored);
    CHECK(ignored == context(other));
  }
}

static void
test_one_thread(Side *a, Side *b)
{
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? b : a;
    CHECK_OK(tilert_launch_packed(s->launch, s->stream, &err));
    CHECK(fake->launched_in == s->context);
    CHECK_OK(tilert_launch_packed(s->launch, NULL, &err));
    CHECK(fake->launched_in == s->context);
  }
  use_in_turns(a, b);
}

typedef struct Pair { const Side *first, *second; int rounds; pthread_barrier_t *start; } Pair;

static void *
run_pair(void *user)
{
  const Pair *p = user;
  pthread_barrier_wait(p->start);
  for (int i = 0; i < p->rounds; i++)
    use_in_turns(p->first, p->second);
  return NULL;
}

static void
run_threads(Pair *a, Pair *b)
{
  pthread_t t[2];
  pthread_barrier_t start;
  CHECK(!pthread_barrier_init(&start, NULL, 2));
  a->start = b->start = &start;
  CHECK(!pthread_create(&t[0], NULL, run_pair, a) && !pthread_create(&t[1], NULL, run_pair, b));
  pthread_join(t[0], NULL);
  pthread_join(t[1], NULL);
  pthread_barrier_destroy(&start);
}

/* Each thread with objects of its own in both contexts; kernels and devices are shared. */
static void
test_two_threads(void)
{
  Side s[4] = {side_open(0), side_open(1), side_open(0), side_open(1)};
  Pair a = {&s[0], &s[1], 8, NULL}, b = {&s[3], &s[2], 8, NULL};
  run_threads(&a, &b);
  for (int i = 0; i < 4; i++)
    side_close(&s[i]);
}

/* ---- what is refused, and what is made right ---- */

static void
test_launches_refused(const Side *a, const Side *b)
{
  TilertArg args[4];
  TilertLaunch *l;
  TilertDevice *again;
  CHECK_FAILS(tilert_launch_packed(a->launch, b->stream, &err), TILERT_E_ARGUMENT,
              "kernel axpy is loaded on cuda:0; the stream is of cuda:0, opened another time");
  fill_args(a, args);
  args[2].u.buffer = b->y;
  CHECK_FAILS(tilert_launch_create(a->kernel, three, args, 4, &l, &err), TILERT_E_ARGUMENT, "argument 2 (y): the buffer is of another device");
  CHECK_FAILS(tilert_peer_enable(a->device, b->device, &err), TILERT_E_UNAVAILABLE,
              "kernels on cuda:0 cannot reach the memory of cuda:0, opened another time");
  /* The same GPU's memory is reached, of this context: not that of another one. */
  CHECK_OK(tilert_device_wrap(a->context, &again, &err));
  CHECK_OK(tilert_peer_enable(a->device, again, &err));
  CHECK_FAILS(tilert_launch_create(a->kernel, three, args, 4, &l, &err), TILERT_E_ARGUMENT, "argument 2 (y): the buffer is of another device");
  CHECK_FAILS(tilert_launch(a->stream, a->kernel, three, args, 4, &err), TILERT_E_ARGUMENT, "argument 2 (y): the buffer is of another device");
  CHECK_FAILS(tilert_launch_set_arg(a->launch, 2, &args[2], &err), TILERT_E_ARGUMENT, "argument 2 (y): the buffer is of another device");
  tilert_device_close(again);
  const TilertWindow w = {.buffer = b->x, .bytes = 64, .ratio = 1};
  CHECK_FAILS(tilert_launch_set_window(a->launch, &w, &err), TILERT_E_ARGUMENT, "the window's buffer is of another device");
}

static void
test_streams_refused(const Side *a, const Side *b)
{
  TilertStream *s;
  TilertBuffer *m;
  TilertPool *pool;
  float ms;
  CHECK_FAILS(tilert_event_record(a->begin, b->stream, &err), TILERT_E_ARGUMENT, "the event and the stream are of different devices");
  CHECK_FAILS(tilert_event_elapsed(a->begin, b->end, &ms, &err), TILERT_E_ARGUMENT, "the two events are of different devices");
  CHECK_FAILS(tilert_buffer_write(a->x, 0, "x", 1, b->stream, &err), TILERT_E_ARGUMENT, "of");
  CHECK_FAILS(tilert_buffer_fill(a->x, 0, 4, 0, 1, b->stream, &err), TILERT_E_ARGUMENT, "of");
  const TilertRows to = {.buffer = a->x, .pitch = 16}, from = {.buffer = b->y, .pitch = 16};
  CHECK_FAILS(tilert_copy_rows(&to, &from, 8, 2, a->stream, &err), TILERT_E_ARGUMENT, "dst is of cuda:0, src of cuda:0, opened another time");
  CHECK_FAILS(tilert_stream_wrap(a->device, tilert_stream_native(b->stream), &s, &err), TILERT_E_ARGUMENT, "a stream of another context");
  CHECK_FAILS(tilert_buffer_wrap(a->device, tilert_buffer_address(b->x), 64, &m, &err), TILERT_E_ARGUMENT, "memory of another context");
  CHECK_OK(tilert_pool_create(b->device, NULL, &pool, &err));
  CHECK_FAILS(tilert_buffer_create_in(a->stream, pool, 64, &m, &err), TILERT_E_ARGUMENT,
              "the stream is of cuda:0, the pool of cuda:0, opened another time");
  CHECK_OK(tilert_buffer_create_in(b->stream, pool, 64, &m, &err));
  CHECK_FAILS(tilert_buffer_destroy_in(m, a->stream, &err), TILERT_E_ARGUMENT, "the stream and the buffer are of different devices");
  tilert_buffer_destroy(m);
  tilert_pool_destroy(pool);
}

static void
test_graphs_refused(const Side *a, const Side *b)
{
  TilertGraph *g;
  TilertGraphExec *x;
  TilertArg args[4];
  fill_args(b, args);
  CHECK_OK(tilert_graph_create(a->device, &g, &err));
  CHECK_FAILS(tilert_graph_add_launch(g, b->launch, NULL, 0, NULL, &err), TILERT_E_ARGUMENT, "l is of cuda:0; the graph is of cuda:0, opened another time");
  CHECK_FAILS(tilert_graph_add_fill(g, b->x, 0, 64, 1, 1, NULL, 0, NULL, &err), TILERT_E_ARGUMENT, "opened another time");
  CHECK_OK(tilert_graph_add_launch(g, a->launch, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_FAILS(tilert_graph_launch(x, b->stream, &err), TILERT_E_ARGUMENT, "the stream is of cuda:0, opened another time");
  CHECK_FAILS(tilert_graph_set_launch(x, 0, b->launch, &err), TILERT_E_ARGUMENT, "l is of cuda:0; the graph is of cuda:0, opened another time");
  CHECK_FAILS(tilert_graph_set_arg(x, 0, 1, &args[1], &err), TILERT_E_ARGUMENT, "argument 1 (x): the buffer is of another device");
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  /* Work of the other context does not become part of a capture. */
  CHECK_OK(tilert_stream_capture_begin(a->stream, &err));
  CHECK_OK(tilert_event_record(a->begin, a->stream, &err));
  CHECK_FAILS(tilert_stream_wait(b->stream, a->begin, &err), TILERT_E_ARGUMENT, "a stream of another device cannot join it");
  CHECK_OK(tilert_stream_capture_end(a->stream, &g, &err));
  tilert_graph_destroy(g);
}

/* Copies between contexts name both, and streams wait for events of any. */
static void
test_made_right(const Side *a, const Side *b)
{
  char in[8] = "across", out[8] = "";
  CHECK_OK(tilert_buffer_write(a->x, 0, in, 8, NULL, &err));
  CHECK_OK(tilert_buffer_copy(b->x, 8, a->x, 0, 8, NULL, &err));
  CHECK_OK(tilert_buffer_read(b->x, 8, out, 8, NULL, &err));
  CHECK(!strcmp(out, in));
  CHECK_OK(tilert_buffer_copy(a->y, 0, b->x, 8, 8, a->stream, &err));
  CHECK_OK(tilert_event_record(a->end, a->stream, &err));
  CHECK_OK(tilert_stream_wait(b->stream, a->end, &err));
}

int
main(void)
{
  find_fake();
  Side a = side_open(0), b = side_open(1);
  CHECK(a.context != b.context && tilert_device_info(b.device)->multiprocessors == tilert_device_info(a.device)->multiprocessors);
  test_one_thread(&a, &b);
  for (int i = 0; i < 2; i++) {
    const Side *x = i ? &b : &a, *y = i ? &a : &b;
    test_launches_refused(x, y);
    test_streams_refused(x, y);
    test_graphs_refused(x, y);
    test_made_right(x, y);
  }
  test_two_threads();
  CHECK(fake->mixed == 0);
  side_close(&b);
  side_close(&a);
  CHECK(fake->allocations == 0 && fake->streams == 0 && fake->events == 0 && fake->modules == 0 && fake->retained == 0 && fake->pools == 0);
  CHECK(fake->graphs == 0 && fake->execs == 0 && fake->host_blocks == 0);
  return 0;
}
