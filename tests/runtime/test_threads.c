/* What may be called from any thread, called from many at a time, on the simulator: launches of one kernel with several patterns, tuning,
 * programs opened and closed, errors, one cache directory. A build with TILEC_TSAN finds what is not ordered. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "check.h"
#include "jit.h"

enum { THREADS = 6, ROUNDS = 10, N = 64 };

static const char source[] =
  "kernel k(x: *f32, y: *f32, n: i32, const B: i32 = 64) tune(B=[32, 64], warps=[1, 2]) key(n) {\n"
  "  let i = program_id(0) * B + arange(0, B);\n"
  "  store(y + i, load(x + i, mask=i < n) * 2.0 + 1.0, mask=i < n);\n}\n"
  "kernel wrong(x: *f32) { store(x, y); }\n";

static char dir[] = "/tmp/tilec-threads-XXXXXX";
static TilertDevice *dev;
static TilejitProgram *shared;
static atomic_int turn;
static pthread_barrier_t start;
static TilertGraphExec *all;
static const TilertLaunch *all_launch;

typedef struct Own { TilertError err; TilertBuffer *x, *y; } Own;   /* of one thread */

static void
expect_ok(Own *o, int status, int line)
{
  if (!status)
    return;
  fprintf(stderr, "%s:%d: status %d: %s\n", __FILE__, line, status, o->err.message);
  exit(1);
}
#define OK(call) expect_ok(o, (call), __LINE__)

static TilejitProgram *
open_program(Own *o)
{
  TilejitProgram *p;
  TilejitOptions options = {.size = sizeof options, .cache_dir = dir};
  OK(tilejit_program_create(dev, "k.tile", source, strlen(source), &options, &p, &o->err));
  return p;
}

static void
check_result(Own *o, int n)
{
  float got[N];
  OK(tilert_buffer_read(o->y, 0, got, sizeof got, NULL, &o->err));
  for (int i = 0; i < n; i++)
    CHECK(got[i] == (float)i * 2 + 1);
}

static void
set_args(const Own *o, TilertArg args[3], int n)
{
  args[0] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = o->x};
  args[1] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = o->y};
  args[2] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = n};
}

static void
launch(Own *o, TilejitProgram *p, const char *b, int n)
{
  TilejitKernel *k;
  TilejitCall *c;
  TilejitInfo info;
  TilertArg args[3];
  TilecDefine define = {"B", b};
  uint32_t grid[3] = {N / 32, 1, 1};
  set_args(o, args, n);
  OK(tilejit_kernel(p, "k", &define, 1, &k, &o->err));
  OK(tilejit_launch(k, NULL, grid, args, 3, &o->err));
  check_result(o, n);
  OK(tilejit_call_create(k, grid, NULL, args, 3, &c, &o->err));
  OK(tilejit_call_launch(c, NULL, &o->err));
  OK(tilejit_call_info(c, &info, &o->err));
  CHECK(tilejit_kernel_forms(k) > 0 && strstr(tilejit_call_ptx(c), "kernel=k") && info.threads);
  tilejit_call_destroy(c);
}

/* Each thread captures its own stream; one graph of all is launched, and changed, by whoever comes. */
static void
graphs(Own *o, TilejitProgram *p, int n)
{
  TilejitKernel *k;
  TilejitCall *c;
  TilertStream *s;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertArg args[3];
  TilecDefine define = {"B", "32"};
  uint32_t grid[3] = {N / 32, 1, 1};
  set_args(o, args, n);
  OK(tilejit_kernel(p, "k", &define, 1, &k, &o->err));
  OK(tilejit_call_create(k, grid, NULL, args, 3, &c, &o->err));
  OK(tilert_stream_create(dev, &s, &o->err));
  OK(tilert_stream_capture_begin(s, &o->err));
  OK(tilert_buffer_fill(o->y, 0, N * 4, 0, 4, s, &o->err));
  OK(tilejit_launch(k, s, grid, args, 3, &o->err));
  OK(tilert_stream_capture_end(s, &g, &o->err));
  CHECK(tilert_graph_count(g) == 2);
  OK(tilert_graph_instantiate(g, &x, &o->err));
  OK(tilert_graph_launch(x, s, &o->err));
  check_result(o, n);
  OK(tilert_graph_set_launch(x, 1, tilejit_call_packed(c), &o->err));
  OK(tilert_graph_launch(x, s, &o->err));
  check_result(o, n);
  OK(tilert_graph_launch(all, NULL, &o->err));
  OK(tilert_graph_set_launch(all, 0, all_launch, &o->err));
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  tilert_stream_destroy(s);
  tilejit_call_destroy(c);
}

static int
grid_of(void *user, TilejitKernel *k, uint32_t grid[3])
{
  grid[0] = N / 32;
  grid[1] = grid[2] = 1;
  return 0;
}

static void
tune(Own *o, TilejitProgram *p, int n, int force)
{
  TilejitTuning *t;
  TilertArg args[3];
  TilejitTuneOptions options = {.size = sizeof options, .force = force, .threads = 2};
  set_args(o, args, n);
  OK(tilejit_tune(p, "k", NULL, 0, NULL, grid_of, NULL, args, 3, &options, &t, &o->err));
  CHECK(tilejit_tuning_count(t) == 4 && tilejit_tuning_trial(t, tilejit_tuning_chosen(t)));
  uint32_t grid[3] = {N / 32, 1, 1};
  OK(tilejit_launch(tilejit_tuning_kernel(t), NULL, grid, args, 3, &o->err));
  tilejit_tuning_free(t);
  check_result(o, n);
}

static void
fail(Own *o, TilejitProgram *p)
{
  char said[400];
  TilejitKernel *k;
  TilertArg arg = {.kind = TILERT_ARG_BUFFER, .u.buffer = o->x};
  uint32_t grid[3] = {1, 1, 1};
  OK(tilejit_kernel(p, "wrong", NULL, 0, &k, &o->err));
  CHECK(tilejit_launch(k, NULL, grid, &arg, 1, &o->err) == TILERT_E_COMPILE && strstr(o->err.message, "unknown name 'y'"));
  tilejit_program_diagnostics(p, said, sizeof said);
  tilejit_program_cache_trouble(p, said, sizeof said);
}

/* Each round on a program that is new, so that all of them meet what is done once. */
static void
work(Own *o)
{
  for (int i = 0; i < ROUNDS; i++) {
    int n = (int[]){7, 16, 1, 33}[i % 4];
    if (pthread_barrier_wait(&start) == PTHREAD_BARRIER_SERIAL_THREAD) {
      tilejit_program_destroy(shared);
      shared = open_program(o);
    }
    pthread_barrier_wait(&start);
    tune(o, shared, n, i % 2);
    switch (atomic_fetch_add(&turn, 1) % 3) {
    case 0: fail(o, shared); break;
    case 1: {
      TilejitProgram *p = open_program(o);
      launch(o, p, "32", n);
      tilejit_program_destroy(p);
      break;
    }
    default: tune(o, shared, n + 1, 1); break;
    }
    launch(o, shared, i % 2 ? "32" : "64", n);
    graphs(o, shared, n);
  }
}

static void *
thread_main(void *user)
{
  Own own = {0}, *o = &own;
  float from[N];
  for (int i = 0; i < N; i++)
    from[i] = (float)i;
  OK(tilert_buffer_create(dev, sizeof from, &o->x, &o->err));
  OK(tilert_buffer_create(dev, sizeof from, &o->y, &o->err));
  OK(tilert_buffer_write(o->x, 0, from, sizeof from, NULL, &o->err));
  work(o);
  tilert_buffer_destroy(o->x);
  tilert_buffer_destroy(o->y);
  return NULL;
}

/* A graph of one launch, for all threads. */
static TilejitCall *
make_all(Own *o, TilertBuffer **b, TilejitProgram **p)
{
  TilejitKernel *k;
  TilejitCall *c;
  TilertGraph *g;
  TilecDefine define = {"B", "32"};
  OK(tilert_buffer_create(dev, N * 4, b, &o->err));
  OK(tilert_buffer_fill(*b, 0, N * 4, 0, 4, NULL, &o->err));
  TilertArg args[3] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = *b}, {.kind = TILERT_ARG_BUFFER, .u.buffer = *b}, {.kind = TILERT_ARG_INT, .u.i = N}};
  *p = open_program(o);
  OK(tilejit_kernel(*p, "k", &define, 1, &k, &o->err));
  OK(tilejit_call_create(k, (uint32_t[3]){N / 32, 1, 1}, NULL, args, 3, &c, &o->err));
  all_launch = tilejit_call_packed(c);
  OK(tilert_graph_create(dev, &g, &o->err));
  OK(tilert_graph_add_launch(g, all_launch, NULL, 0, NULL, &o->err));
  OK(tilert_graph_instantiate(g, &all, &o->err));
  tilert_graph_destroy(g);
  return c;
}

int
main(void)
{
  Own own = {0};
  TilertBuffer *b;
  TilejitProgram *p;
  pthread_t threads[THREADS];
  char command[100];
  TilertOptions options;
  tilert_options_default(&options);
  options.sim_threads = 2;
  CHECK(mkdtemp(dir));
  CHECK(!tilert_device_open("sim", &options, &dev, &own.err));
  CHECK(!pthread_barrier_init(&start, NULL, THREADS));
  TilejitCall *c = make_all(&own, &b, &p);
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, thread_main, NULL));
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  tilert_graph_exec_destroy(all);
  tilejit_call_destroy(c);
  tilejit_program_destroy(p);
  tilert_buffer_destroy(b);
  tilejit_program_destroy(shared);
  tilert_device_close(dev);
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command) ? 1 : 0;
}
