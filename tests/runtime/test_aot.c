/* Kernels that were compiled ahead (ahead.tile, by tilec --emit=c), as C functions on the simulator: results, which form is taken, first
 * calls of many threads at a time, and everything that can be wrong with a call. */
#include <pthread.h>
#include <stdint.h>
#include "ahead.h"
#include "check.h"

enum { N = 1000, THREADS = 8 };

static TilertError err;
static TilertDevice *dev;
static TilertStream *stream;

typedef struct Memory { TilertBuffer *buffer; void *at; } Memory;

static Memory
memory(size_t bytes, const void *from)
{
  Memory m;
  CHECK_OK(tilert_buffer_create(dev, bytes, &m.buffer, &err));
  if (from)
    CHECK_OK(tilert_buffer_write(m.buffer, 0, from, bytes, NULL, &err));
  else
    CHECK_OK(tilert_buffer_fill(m.buffer, 0, bytes, 0xff, 1, NULL, &err));
  m.at = (void *)(uintptr_t)tilert_buffer_address(m.buffer);
  return m;
}

static void
read_back(Memory m, void *to, size_t bytes)
{
  CHECK_OK(tilert_buffer_read(m.buffer, 0, to, bytes, NULL, &err));
}

static void
test_scale(void)
{
  static float x[N + 4], y[N + 4];
  for (int i = 0; i < N + 4; i++)
    x[i] = (float)i;
  Memory a = memory(sizeof x, x), b = memory(sizeof y, NULL);
  const float *from = a.at;
  float *to = b.at;
  for (int shift = 0; shift < 2; shift++) {          /* aligned, and not */
    CHECK_OK(scale_BLOCK128(stream, from + shift, to + shift, N, 2.5f, &err));
    read_back(b, y, sizeof y);
    for (int i = shift; i < N + shift; i++)
      CHECK(y[i] == 2.5f * x[i]);
  }
  CHECK_OK(scale_BLOCK64_warps2(stream, from, to, 999, 3, &err));
  read_back(b, y, sizeof y);
  CHECK(y[998] == 3 * x[998] && y[999] == 2.5f * x[999]);
  CHECK_OK(scale_BLOCK128(stream, to, to, N, 2, &err));        /* in place: a form of its own */
  read_back(b, y, sizeof y);
  CHECK(y[997] == 6 * x[997]);
  CHECK_OK(scale_BLOCK128(stream, NULL, NULL, 0, 2, &err));    /* nothing to do */
  tilert_buffer_destroy(a.buffer);
  tilert_buffer_destroy(b.buffer);
}

/* 1.0 and 2.0 as f16. */
static void
test_null_pointer(void)
{
  tile_f16 x[3 * 40], bias[40], y[3 * 40];
  for (int i = 0; i < 3 * 40; i++)
    x[i].bits = 0x3c00;
  for (int i = 0; i < 40; i++)
    bias[i].bits = 0x3c00;
  Memory a = memory(sizeof x, x), b = memory(sizeof bias, bias), c = memory(sizeof y, NULL);
  CHECK_OK(add_bias(stream, a.at, b.at, c.at, 3, 40, &err));
  read_back(c, y, sizeof y);
  CHECK(y[0].bits == 0x4000 && y[3 * 40 - 1].bits == 0x4000);
  CHECK_OK(add_bias(stream, a.at, NULL, c.at, 3, 40, &err));
  read_back(c, y, sizeof y);
  CHECK(y[0].bits == 0x3c00 && y[3 * 40 - 1].bits == 0x3c00);
  CHECK_FAILS(add_bias(stream, NULL, b.at, c.at, 3, 40, &err), TILERT_E_ARGUMENT, "add_bias, argument 0 (x): it is null");
  CHECK_FAILS(add_bias(stream, a.at, b.at, NULL, 3, 40, &err), TILERT_E_ARGUMENT, "argument 2 (y): it is null");
  CHECK_OK(add_bias(stream, NULL, NULL, NULL, 0, 40, &err));
  CHECK_FAILS(add_bias(stream, a.at, b.at, c.at, -1, 40, &err), TILERT_E_ARGUMENT, "its grid has -1 programs");
  tilert_buffer_destroy(a.buffer);
  tilert_buffer_destroy(b.buffer);
  tilert_buffer_destroy(c.buffer);
}

/* What a configuration does not look at may be null, and only that. */
static void
test_ignored_pointer(void)
{
  float x[40], gain[40], scale = 3, y[40];
  for (int i = 0; i < 40; i++)
    x[i] = (float)i, gain[i] = 2;
  Memory a = memory(sizeof x, x), b = memory(sizeof gain, gain), c = memory(sizeof scale, &scale), d = memory(sizeof y, NULL);
  CHECK_OK(gained_GAINfalse(stream, a.at, NULL, NULL, d.at, 40, &err));
  read_back(d, y, sizeof y);
  CHECK(y[39] == 39);
  CHECK_OK(gained_GAINtrue(stream, a.at, b.at, c.at, d.at, 40, &err));
  read_back(d, y, sizeof y);
  CHECK(y[39] == 39 * 6);
  CHECK_FAILS(gained_GAINtrue(stream, a.at, NULL, c.at, d.at, 40, &err), TILERT_E_ARGUMENT, "argument 1 (gain): it is null");
  CHECK_FAILS(gained_GAINfalse(stream, a.at, NULL, NULL, NULL, 40, &err), TILERT_E_ARGUMENT, "argument 3 (y): it is null");
  tilert_buffer_destroy(a.buffer);
  tilert_buffer_destroy(b.buffer);
  tilert_buffer_destroy(c.buffer);
  tilert_buffer_destroy(d.buffer);
}

/* Each of few programs does what several of the grid do. */
static void
test_persistent(void)
{
  enum { ALL = 700 * 32 };
  static int32_t x[ALL];
  for (int i = 0; i < ALL; i++)
    x[i] = i;
  Memory a = memory(sizeof x, x);
  CHECK_OK(doubled(stream, a.at, 700, &err));
  read_back(a, x, sizeof x);
  for (int i = 0; i < ALL; i++)
    CHECK(x[i] == 2 * i);
  tilert_buffer_destroy(a.buffer);
}

/* The grid is of the device's multiprocessors; what is stored says how many programs there were. */
static void
test_multiprocessors(void)
{
  enum { ROWS = 700, ALL = ROWS * 32 };
  static int32_t x[ALL];
  const int32_t all = (int32_t)tilert_device_info(dev)->multiprocessors;
  for (int i = 0; i < ALL; i++)
    x[i] = i;
  Memory a = memory(sizeof x, x);
  CHECK_OK(shared_out(stream, a.at, ROWS, &err));
  CHECK_OK(shared_out(stream, a.at, 7, &err));
  read_back(a, x, sizeof x);
  for (int i = 0; i < ALL; i++)
    CHECK(x[i] == (i < 7 * 32 ? 2 * (2 * i + all) + 7 : 2 * i + all));
  CHECK_OK(shared_out(stream, NULL, 0, &err));
  tilert_buffer_destroy(a.buffer);
}

/* A launch runs what tuning chose for its arguments, and otherwise what it chose for all; the simulator is an sm_90. */
static void
test_chosen(void)
{
  static const struct { int32_t n, bias, block; } launches[] = {
    {100, 0, 32}, {100, 1, 128}, {128, 1, 256}, {128, 0, 128}, {1, 0, 16}, {99, 0, 128},
  };
  static int32_t ones[256], y[256];
  for (int i = 0; i < 256; i++)
    ones[i] = 1;
  Memory a = memory(sizeof y, NULL), b = memory(sizeof ones, ones);
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    const int32_t n = launches[i].n, bias = launches[i].bias;
    CHECK_OK(chosen(stream, a.at, n, bias ? b.at : NULL, &err));
    read_back(a, y, sizeof y);
    for (int k = 0; k < n; k++)
      CHECK(y[k] == launches[i].block + bias);
  }
  tilert_buffer_destroy(a.buffer);
  tilert_buffer_destroy(b.buffer);
}

static void
test_grid(void)
{
  int32_t y[64];
  const uint32_t grid[3] = {2, 1, 1}, large[3] = {1, 70000, 1};
  Memory a = memory(sizeof y, NULL);
  CHECK_OK(fill(stream, grid, a.at, 5, 10, 200, &err));
  read_back(a, y, sizeof y);
  CHECK(y[0] == 200 && y[49] == 249 && y[50] == -1);
  CHECK_FAILS(fill(stream, NULL, a.at, 5, 10, 200, &err), TILERT_E_ARGUMENT, "fill: the grid is NULL");
  CHECK_FAILS(fill(stream, large, a.at, 5, 10, 200, &err), TILERT_E_ARGUMENT, "more than 65535");
  tilert_buffer_destroy(a.buffer);
}

/* Rows of 40 and, misaligned for boxes, of 37 numbers. */
static void
test_tensor(void)
{
  enum { ROWS = 24, PITCH = 40 };
  static float x[ROWS * PITCH], y[PITCH * ROWS];
  for (int i = 0; i < ROWS * PITCH; i++)
    x[i] = (float)i;
  Memory a = memory(sizeof x, x);
  const int columns[] = {PITCH, 37};
  for (int k = 0; k < 2; k++)
    for (int stated = 0; stated < 2; stated++) {
      Memory b = memory(sizeof y, NULL);
      tile_const_tensor_f32_2 from = {a.at, {ROWS, columns[k]}, {0, 0}};
      tile_tensor_f32_2 to = {b.at, {columns[k], ROWS}, {0, 0}};
      if (stated) {
        from.strides[0] = PITCH;
        from.strides[1] = 1;
      }
      CHECK_OK(turn(stream, from, to, &err));
      read_back(b, y, sizeof y);
      const int pitch = stated ? PITCH : columns[k];
      for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < columns[k]; c++)
          CHECK(y[c * ROWS + r] == x[r * pitch + c]);
      tilert_buffer_destroy(b.buffer);
    }
  tile_const_tensor_f32_2 none = {NULL, {ROWS, PITCH}, {0, 0}}, odd = {a.at, {ROWS, PITCH}, {1, 2}};
  tile_tensor_f32_2 to = {a.at, {PITCH, ROWS}, {0, 0}};
  CHECK(turn(stream, none, to, &err) == TILERT_E_ARGUMENT && strstr(err.message, "(a)"));
  CHECK(turn(stream, odd, to, &err) == TILERT_E_ARGUMENT && strstr(err.message, "(a)"));
  tilert_buffer_destroy(a.buffer);
}

/* Calls that a graph is made of: its launch says whose memory is not there any more, of addresses and of tensors. The code is the graph's too. */
static void
test_graph(void)
{
  TilertStream *s;
  TilertGraph *graph;
  TilertGraphExec *exec;
  static float ones[16 * 16];
  Memory x = memory(sizeof ones, ones), y = memory(sizeof ones, ones), z = memory(sizeof ones, ones);
  CHECK_OK(tilert_stream_create(dev, &s, &err));
  CHECK_OK(tilert_stream_capture_begin(s, &err));
  CHECK_OK(scale_BLOCK128(s, x.at, y.at, 16, 2, &err));
  CHECK_OK(turn(s, (tile_const_tensor_f32_2){y.at, {16, 16}, {0, 0}}, (tile_tensor_f32_2){z.at, {16, 16}, {0, 0}}, &err));
  CHECK_OK(tilert_stream_capture_end(s, &graph, &err));
  CHECK_OK(tilert_graph_instantiate(graph, &exec, &err));
  CHECK_OK(tilert_graph_launch(exec, s, &err));
  ahead_unload();
  CHECK_OK(tilert_graph_launch(exec, s, &err));
  tilert_buffer_destroy(z.buffer);
  CHECK_FAILS(tilert_graph_launch(exec, s, &err), TILERT_E_ARGUMENT, "node 1: kernel turn, argument 1 (b): its buffer has been destroyed");
  tilert_buffer_destroy(x.buffer);
  CHECK_FAILS(tilert_graph_launch(exec, s, &err), TILERT_E_ARGUMENT, "node 0: kernel scale, argument 0 (x): its buffer has been destroyed");
  tilert_buffer_destroy(y.buffer);
  tilert_graph_exec_destroy(exec);
  tilert_graph_destroy(graph);
  tilert_stream_destroy(s);
}

static void
test_misuse(void)
{
  TilertDevice *other;
  TilertStream *elsewhere;
  double x[2] = {1, 2};
  Memory a = memory(sizeof x, x), b = memory(8, NULL);
  CHECK_FAILS(total(NULL, a.at, b.at, 2, &err), TILERT_E_ARGUMENT, "total: the stream is NULL");
  CHECK(total(NULL, a.at, b.at, 2, NULL) == TILERT_E_ARGUMENT);
  CHECK_OK(total(stream, a.at, b.at, 2, NULL));
  read_back(b, x, 8);
  CHECK(x[0] == 3);
  CHECK_FAILS(total(stream, (const double *)((const char *)a.at + 4096 * 4096), b.at, 2, &err), TILERT_E_ARGUMENT, "argument 0 (x)");
  CHECK_OK(tilert_device_open("sim", NULL, &other, &err));
  CHECK_OK(tilert_stream_create(other, &elsewhere, &err));
  CHECK_FAILS(total(elsewhere, a.at, b.at, 2, &err), TILERT_E_ARGUMENT, "argument 0 (x)");   /* the memory is another device's */
  tilert_stream_destroy(elsewhere);
  tilert_device_close(other);
  CHECK_FAILS(ahead_load(NULL, &err), TILERT_E_ARGUMENT, "dev is NULL");
  tilert_buffer_destroy(a.buffer);
  tilert_buffer_destroy(b.buffer);
}

/* ---- the calls below the functions ---- */

static void
test_tables(void)
{
  static const unsigned char good[] = {3, 'a', 'b', 'c', 5, 3, 0, 0}, far[] = {1, 'a', 4, 2, 0, 0}, cut[] = {3, 'a'}, many[] = {1, 'a', 200, 1, 1};
  unsigned char out[8];
  TilertAotCode code = {good, sizeof good, 8};
  CHECK_OK(tilert_aot_unpack(&code, out, &err));
  CHECK(!memcmp(out, "abcabcab", 8));
  const TilertAotCode bad[] = {{good, sizeof good, 7}, {good, sizeof good - 4, 8}, {far, sizeof far, 5}, {cut, sizeof cut, 8}, {many, sizeof many, 8}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_FAILS(tilert_aot_unpack(&bad[i], out, &err), TILERT_E_MODULE, "damaged");
  CHECK_FAILS(tilert_aot_unpack(NULL, out, &err), TILERT_E_ARGUMENT, "code is NULL");
  CHECK_FAILS(tilert_aot_unpack(&code, NULL, &err), TILERT_E_ARGUMENT, "out is NULL");

  void *state = NULL;
  TilertAotForm form = {"sm_100a", "", {good, sizeof good, 8}, {NULL, 0, 0}, NULL, 0, 0};
  TilertAotKernel k = {.version = TILERT_AOT_VERSION, .nforms = 1, .name = "k", .forms = &form, .state = &state};
  CHECK_FAILS(tilert_aot_launch(&k, stream, NULL, NULL, &err), TILERT_E_UNAVAILABLE, "k runs on none like");
  CHECK(strstr(err.message, "compiled for sm_100a"));
  form.target = "sm_89a";                   /* for that capability alone, and this device is a later one */
  CHECK_FAILS(tilert_aot_launch(&k, stream, NULL, NULL, &err), TILERT_E_UNAVAILABLE, "k runs on none like");
  k.version = TILERT_AOT_VERSION + 1;
  CHECK_FAILS(tilert_aot_launch(&k, stream, NULL, NULL, &err), TILERT_E_UNAVAILABLE, "k was made for a newer libtilert");
  CHECK_FAILS(tilert_aot_load(&k, dev, &err), TILERT_E_UNAVAILABLE, "newer libtilert");
  CHECK_FAILS(tilert_aot_launch(NULL, stream, NULL, NULL, &err), TILERT_E_ARGUMENT, "k is NULL");
  CHECK_FAILS(tilert_aot_load(NULL, dev, &err), TILERT_E_ARGUMENT, "k is NULL");
  CHECK_FAILS(tilert_aot_no_grid(NULL, &err), TILERT_E_ARGUMENT, "k is NULL");
  tilert_aot_unload(NULL);
  CHECK(!state);
}

/* ---- threads ---- */

static pthread_barrier_t start;

static void *
first_call(void *arg)
{
  static const uint32_t grid[3] = {2, 1, 1};
  int32_t *to = arg;
  TilertError mine;
  pthread_barrier_wait(&start);
  for (int i = 0; i < 4; i++)
    if (fill(stream, grid, to, 8, 8, 7, &mine))
      return mine.message[0] ? arg : NULL;
  return NULL;
}

static void
test_threads(void)
{
  pthread_t t[THREADS];
  int32_t y[64];
  Memory m[THREADS];
  CHECK(!pthread_barrier_init(&start, NULL, THREADS));
  for (int i = 0; i < THREADS; i++) {
    m[i] = memory(sizeof y, NULL);
    CHECK(!pthread_create(&t[i], NULL, first_call, m[i].at));
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    CHECK(!pthread_join(t[i], &failed) && !failed);
    read_back(m[i], y, sizeof y);
    CHECK(y[0] == 7 && y[63] == 70);
    tilert_buffer_destroy(m[i].buffer);
  }
  pthread_barrier_destroy(&start);
}

int
main(void)
{
  CHECK_OK(tilert_device_open("sim", NULL, &dev, &err));
  CHECK_OK(tilert_stream_wrap(dev, NULL, &stream, &err));
  test_threads();
  for (int again = 0; again < 2; again++) {
    test_scale();
    test_null_pointer();
    test_ignored_pointer();
    test_grid();
    test_persistent();
    test_multiprocessors();
    test_chosen();
    test_tensor();
    test_graph();
    test_misuse();
    test_tables();
    ahead_unload();                      /* and all of it is loaded anew */
  }
  CHECK_OK(ahead_load(dev, &err));
  ahead_unload();
  tilert_stream_destroy(stream);
  tilert_device_close(dev);
  return 0;
}
