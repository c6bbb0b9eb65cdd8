/* Streams, memory and graphs over the fake driver: which calls are made, in which order, with which arguments. Run with that libcuda.so.1
 * first on LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include "check.h"
#include "fakecuda.h"
#include "kernels.h"
#include "tilert.h"

static TilertError err;
static FakeCuda *fake;
static const uint32_t three[3] = {3, 1, 1};

/* The calls that were said since this was last asked are these. */
#define SAID(wanted)                                                                                              \
  do {                                                                                                            \
    if (strcmp(fake->log, wanted) != 0)                                                                           \
      fprintf(stderr, "%s:%d: said \"%s\", expected \"%s\"\n", __FILE__, __LINE__, fake->log, wanted), exit(1);   \
    fake->log[0] = 0;                                                                                             \
  } while (0)

static TilertLaunch *
axpy(TilertKernel *k, int n)
{
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 2}, {.kind = TILERT_ARG_POINTER, .u.pointer = 0x1000},
                             {.kind = TILERT_ARG_POINTER, .u.pointer = 0x2000}, {.kind = TILERT_ARG_INT, .u.i = n}};
  TilertLaunch *l;
  CHECK_OK(tilert_launch_create(k, three, args, 4, &l, &err));
  return l;
}

static void
count_call(void *user)
{
  ++*(int *)user;
}

static void
test_streams(TilertDevice *d)
{
  TilertStream *s, *t, *w;
  TilertEvent *e;
  int calls = 0, done = 1;
  const TilertDeviceInfo *i = tilert_device_info(d);
  CHECK(i->priority_least == 0 && i->priority_greatest == -5 && i->l2_persisting_max == 1 << 20 && i->l2_window_max == 4096 && i->pools);
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_stream_create_priority(d, -3, &t, &err));
  SAID("priority(-3) ");
  CHECK_FAILS(tilert_stream_create_priority(d, -6, &w, &err), TILERT_E_ARGUMENT, "priority -6: Fake GPU has -5, which comes first, to 0");
  CHECK_OK(tilert_event_create_untimed(d, &e, &err));
  SAID("event(2) ");
  CHECK_OK(tilert_event_record(e, s, &err));
  CHECK_OK(tilert_stream_wait(t, e, &err));
  CHECK_OK(tilert_stream_wait(NULL, e, &err));
  SAID("wait(2, 1) wait(0, 1) ");
  CHECK_OK(tilert_stream_host(s, count_call, &calls, &err));
  CHECK(calls == 1);
  fake->sync_result = 600;
  CHECK_OK(tilert_stream_query(s, &done, &err));
  CHECK(!done);
  fake->sync_result = 0;
  CHECK_OK(tilert_event_query(e, &done, &err));
  CHECK(done);
  CHECK_FAILS(tilert_stream_wrap(d, (void *)FAKE_FOREIGN_STREAM, &w, &err), TILERT_E_ARGUMENT, "native is a stream of another context");
  CHECK_OK(tilert_device_set_persisting(d, 4096, &err));
  CHECK_FAILS(tilert_device_set_persisting(d, 2 << 20, &err), TILERT_E_ARGUMENT, "bytes is 2097152; Fake GPU keeps at most 1048576");
  CHECK_OK(tilert_device_reset_persisting(d, &err));
  SAID("limit(6, 4096) reset ");
  tilert_event_destroy(e);
  tilert_stream_destroy(s);
  tilert_stream_destroy(t);
  CHECK(fake->streams == 0 && fake->events == 0);
}

static void
test_windows(TilertDevice *d, TilertKernel *k)
{
  TilertStream *s;
  TilertBuffer *b;
  TilertLaunch *l = axpy(k, 1);
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_buffer_create(d, 8192, &b, &err));
  TilertWindow w = {.buffer = b, .bytes = 4096, .ratio = 0.75f, .hit = TILERT_ACCESS_PERSISTING, .miss = TILERT_ACCESS_STREAMING};
  CHECK_OK(tilert_stream_set_window(s, &w, &err));
  CHECK_OK(tilert_stream_set_window(s, NULL, &err));
  SAID("window(1, 4096, 0.75, 2, 1) window(1, 0, 0, 0, 0) ");
  CHECK_OK(tilert_launch_set_window(l, &w, &err));
  CHECK_OK(tilert_launch_set_priority(l, -2, &err));
  CHECK_OK(tilert_launch_packed(l, s, &err));
  CHECK(fake->launch.extended);
  SAID("priority(-2) window(4096, 0.75, 2, 1) ");
  w.bytes++;
  CHECK_FAILS(tilert_launch_set_window(l, &w, &err), TILERT_E_ARGUMENT, "kernel axpy: a window of 4097 bytes; Fake GPU has them of 4096");
  tilert_launch_destroy(l);
  tilert_buffer_destroy(b);
  tilert_stream_destroy(s);
}

static void
test_memory(TilertDevice *d)
{
  static char mine[64] = "0123456789abcdef";
  char back[16] = {0};
  TilertBuffer *h, *p, *w;
  CHECK_OK(tilert_buffer_create_host(d, 64, TILERT_HOST_WRITE_COMBINED, &h, &err));
  CHECK_OK(tilert_buffer_create_host(d, 64, 0, &w, &err));
  CHECK_OK(tilert_buffer_pin(d, mine, 64, &p, &err));
  SAID("host(7) host(3) pin(64, 3) ");
  CHECK(tilert_buffer_host(p) == mine && tilert_buffer_address(h) == (uintptr_t)tilert_buffer_host(h) && fake->pinned == 1);
  const TilertRows from = {.buffer = p, .pitch = 8}, to = {.host = back, .pitch = 3};
  CHECK_OK(tilert_copy_rows(&to, &from, 2, 2, NULL, &err));
  SAID("rows(0, 2 x 2, 3 from 8) ");
  CHECK(!memcmp(back, "01\0" "89", 5));
  tilert_buffer_destroy(w);
  tilert_buffer_destroy(h);
  tilert_buffer_destroy(p);
  CHECK(fake->pinned == 0 && fake->host_blocks == 0);
  CHECK_OK(tilert_buffer_wrap(d, 0x1000, 64, &w, &err));
  tilert_buffer_destroy(w);
  CHECK_FAILS(tilert_buffer_wrap(d, FAKE_FOREIGN_MEMORY, 64, &w, &err), TILERT_E_ARGUMENT, "address 0x6000: it is memory of another context");
  CHECK_FAILS(tilert_buffer_wrap(d, FAKE_NO_MEMORY, 64, &w, &err), TILERT_E_ARGUMENT, "the driver knows of no memory there");
  CHECK_FAILS(tilert_buffer_wrap(d, FAKE_OTHER_DEVICE, 64, &w, &err), TILERT_E_ARGUMENT, "it is memory of cuda:1, not of cuda:0");
}

static void
test_pools(TilertDevice *d)
{
  TilertStream *s;
  TilertPool *p;
  TilertPoolInfo info;
  TilertBuffer *a, *b, *c;
  const TilertPoolOptions o = {.size = sizeof o, .keep = 77, .limit = 4096};
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_pool_create(d, &o, &p, &err));
  SAID("pool(1, 1, 4096) keep(77) ");
  CHECK_OK(tilert_buffer_create_in(s, p, 100, &a, &err));
  CHECK_OK(tilert_buffer_create_in(s, NULL, 0, &b, &err));
  CHECK_FAILS(tilert_buffer_create_in(s, NULL, (size_t)1 << 30, &c, &err), TILERT_E_MEMORY, "allocation of 1073741824 bytes");
  SAID("alloc(1, 100, 1) alloc(1, 1, 0) alloc(1, 1073741824, 0) ");
  CHECK_OK(tilert_pool_info(p, &info, &err));
  CHECK(info.reserved == 5 && info.reserved_most == 6 && info.used == 7 && info.used_most == 8);
  CHECK_OK(tilert_pool_trim(p, 9, &err));
  CHECK_OK(tilert_buffer_destroy_in(a, s, &err));
  SAID("trim(9) free(1) ");
  tilert_pool_destroy(p);
  tilert_stream_destroy(s);              /* which b needs, and has */
  tilert_buffer_destroy(b);
  SAID("free(1) ");
  CHECK(fake->pools == 0 && fake->streams == 0 && fake->allocations == 0);
}

/* Two devices of one context: what the driver would refuse of two contexts, it takes. */
static void
test_peers(TilertDevice *d, TilertKernel *k)
{
  TilertDevice *o;
  TilertBuffer *a, *b;
  TilertLaunch *l;
  int can = 0;
  CHECK_OK(tilert_device_open("cuda", NULL, &o, &err));
  CHECK_OK(tilert_buffer_create(d, 64, &a, &err));
  CHECK_OK(tilert_buffer_create(o, 64, &b, &err));
  CHECK_OK(tilert_buffer_copy(a, 8, b, 0, 16, NULL, &err));
  SAID("peer(1, 1, 16) ");
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 2}, {.kind = TILERT_ARG_BUFFER, .u.buffer = a},
                             {.kind = TILERT_ARG_BUFFER, .u.buffer = b}, {.kind = TILERT_ARG_INT, .u.i = 1}};
  CHECK_FAILS(tilert_launch_create(k, three, args, 4, &l, &err), TILERT_E_ARGUMENT, "argument 2 (y): the buffer is of another device");
  CHECK_OK(tilert_peer_possible(d, o, &can, &err));
  CHECK(can);
  CHECK_OK(tilert_peer_enable(d, o, &err));
  CHECK_OK(tilert_launch_create(k, three, args, 4, &l, &err));
  tilert_launch_destroy(l);
  tilert_buffer_destroy(a);
  tilert_buffer_destroy(b);
  tilert_device_close(o);
}

/* ---- graphs ---- */

static void
test_by_hand(TilertDevice *d, TilertKernel *k)
{
  uint16_t in[4] = {1, 2, 3, 4}, out[4] = {0};
  int calls = 0;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertBuffer *b;
  TilertNode n[8];
  TilertStream *s;
  TilertLaunch *l = axpy(k, 5), *early = axpy(k, 6);
  const uint32_t pair[3] = {3, 1, 1}, six[3] = {6, 1, 1}, odd[3] = {4, 1, 1};
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_buffer_create(d, 8, &b, &err));
  CHECK_OK(tilert_launch_set_pdl(early, 1, &err));
  CHECK_OK(tilert_launch_set_cluster(l, pair, &err));
  CHECK_OK(tilert_launch_set_priority(l, -1, &err));
  CHECK_OK(tilert_graph_create(d, &g, &err));
  CHECK_OK(tilert_graph_add_copy(g, &(TilertRows){.buffer = b}, &(TilertRows){.host = in}, 8, 1, NULL, 0, &n[0], &err));
  CHECK_OK(tilert_graph_add_fill(g, b, 2, 4, 0x12345, 2, &n[0], 1, &n[1], &err));
  CHECK_OK(tilert_graph_add_launch(g, l, &n[0], 1, &n[2], &err));
  CHECK_OK(tilert_graph_add_launch(g, early, &n[1], 2, &n[3], &err));          /* after a fill and a kernel */
  CHECK_OK(tilert_graph_add_copy(g, &(TilertRows){.host = out}, &(TilertRows){.buffer = b}, 8, 1, &n[3], 1, &n[4], &err));
  CHECK_OK(tilert_graph_add_host(g, count_call, &calls, &n[4], 1, &n[5], &err));
  CHECK_OK(tilert_graph_add_empty(g, NULL, 0, &n[6], &err));
  SAID("c0() f1(0) k2(0) attribute(2, 4) attribute(2, 8) k3(1) edge(2, 3, 1, 1) c4(3) h5(4) e6() ");
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_launch(x, s, &err));
  SAID("launch(1) run(2, 3, 5) run(3, 3, 6) ");
  CHECK(out[0] == 1 && out[1] == 0x2345 && out[2] == 0x2345 && out[3] == 4 && calls == 1);
  CHECK_OK(tilert_graph_set_arg(x, n[2], 3, &(TilertArg){.kind = TILERT_ARG_INT, .u.i = 50}, &err));
  CHECK_OK(tilert_graph_set_grid(x, n[2], six, &err));
  CHECK_FAILS(tilert_graph_set_grid(x, n[2], odd, &err), TILERT_E_ARGUMENT, "node 2: kernel axpy: a grid of 4 x 1 x 1 blocks is no multiple");
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  SAID("set(2) set(2) launch(0) run(2, 6, 50) run(3, 3, 6) ");
  tilert_graph_destroy(g);
  CHECK(fake->graphs == 0);
  tilert_buffer_destroy(b);
  CHECK_FAILS(tilert_graph_launch(x, NULL, &err), TILERT_E_ARGUMENT, "node 0, a copy: the buffer of dst has been destroyed");
  SAID("");
  tilert_graph_exec_destroy(x);
  tilert_launch_destroy(l);
  tilert_launch_destroy(early);
  tilert_stream_destroy(s);
  CHECK(fake->execs == 0);
}

static void
test_capture(TilertDevice *d, TilertKernel *k)
{
  char in[8] = "abcdefg";
  TilertStream *s, *t, *standard;
  TilertEvent *e, *f;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertBuffer *b;
  TilertNodeInfo info;
  TilertLaunch *l = axpy(k, 5);
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_stream_create(d, &t, &err));
  CHECK_OK(tilert_stream_wrap(d, NULL, &standard, &err));
  CHECK_OK(tilert_event_create_untimed(d, &e, &err));
  CHECK_OK(tilert_event_create_untimed(d, &f, &err));
  CHECK_OK(tilert_buffer_create(d, 8, &b, &err));
  CHECK_FAILS(tilert_stream_capture_begin(standard, &err), TILERT_E_ARGUMENT, "s is the default stream, which cannot be captured");
  fake->log[0] = 0;
  CHECK_OK(tilert_stream_capture_begin(s, &err));
  CHECK_OK(tilert_buffer_write(b, 0, in, 8, s, &err));
  CHECK_OK(tilert_event_record(e, s, &err));
  CHECK_OK(tilert_stream_wait(t, e, &err));
  CHECK_OK(tilert_launch_packed(l, t, &err));
  CHECK_OK(tilert_event_record(f, t, &err));
  CHECK_OK(tilert_stream_wait(s, f, &err));
  SAID("capture(1, 2) wait(2, 1) wait(1, 2) ");
  CHECK_FAILS(tilert_stream_synchronize(s, &err), TILERT_E_ARGUMENT, "the stream is being captured");
  CHECK_OK(tilert_stream_capture_end(s, &g, &err));
  CHECK(tilert_graph_count(g) == 2);
  CHECK_OK(tilert_graph_node(g, 1, &info, &err));
  CHECK(info.kernel == k && info.nafter == 1 && info.after[0] == 0);
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_set_arg(x, 1, 3, &(TilertArg){.kind = TILERT_ARG_INT, .u.i = 9}, &err));
  CHECK_OK(tilert_graph_launch(x, s, &err));
  SAID("set(1) launch(1) run(1, 3, 9) ");
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  fake->capture_result = 901;
  CHECK_OK(tilert_stream_capture_begin(s, &err));
  CHECK_FAILS(tilert_stream_capture_end(s, &g, &err), TILERT_E_ARGUMENT, "the capture was broken: something waited for the stream");
  CHECK(!g && !tilert_stream_capturing(s));
  fake->capture_result = 0;
  tilert_launch_destroy(l);
  tilert_buffer_destroy(b);
  tilert_event_destroy(e);
  tilert_event_destroy(f);
  tilert_stream_destroy(s);
  tilert_stream_destroy(t);
  tilert_stream_destroy(standard);
  CHECK(fake->graphs == 0 && fake->execs == 0);
}

/* A device of the caller's context is left alone when it is closed; one of none is refused. */
static void
test_wrapped(void (*make_foreign_current)(int))
{
  TilertDevice *d;
  TilertBuffer *b;
  int before = fake->retained;
  make_foreign_current(0);
  CHECK_FAILS(tilert_device_wrap(NULL, &d, &err), TILERT_E_ARGUMENT, "context is NULL, and this thread has no current one");
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  TilertDevice *w;
  CHECK_OK(tilert_device_wrap(NULL, &w, &err));          /* the primary one is current now */
  CHECK(!strcmp(tilert_device_info(w)->spec, "cuda:0") && tilert_device_info(w)->priority_greatest == -5);
  CHECK_OK(tilert_buffer_create(w, 8, &b, &err));
  tilert_buffer_destroy(b);
  tilert_device_close(w);
  CHECK(fake->retained == before);
  tilert_device_close(d);
}

/* A graph that loses the device is named, with its kernels. Last: the device is of no more use. */
static void
test_blame(TilertDevice *d, TilertKernel *k)
{
  TilertGraph *g;
  TilertGraphExec *x;
  TilertLaunch *l = axpy(k, 5);
  CHECK_OK(tilert_graph_create(d, &g, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_device_synchronize(d, &err));
  TilertStream *s;
  TilertGraph *other;
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_stream_capture_begin(s, &err));
  CHECK_OK(tilert_launch_packed(l, s, &err));          /* which does not run */
  CHECK_OK(tilert_stream_capture_end(s, &other, &err));
  tilert_graph_destroy(other);
  tilert_stream_destroy(s);
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  fake->sync_result = 700;
  CHECK_FAILS(tilert_device_synchronize(d, &err), TILERT_E_FAULT, "the device was lost by a fault in a kernel of the graph of 1 nodes: axpy (launch ");
  CHECK(!strstr(err.message, " or axpy"));
  fake->sync_result = 0;
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  tilert_launch_destroy(l);
}

int
main(void)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  FakeCuda *(*get)(void) = (FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda");
  void (*make_foreign_current)(int) = (void (*)(int))(uintptr_t)dlsym(lib, "fakecuda_make_foreign_current");
  CHECK(get && make_foreign_current);
  TilertDevice *d;
  TilertModule *m;
  TilertKernel *k;
  fake = get();
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK_OK(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, "axpy", &k, &err));
  fake->log_on = 1;
  test_streams(d);
  test_windows(d, k);
  test_memory(d);
  test_pools(d);
  test_peers(d, k);
  test_by_hand(d, k);
  test_capture(d, k);
  test_wrapped(make_foreign_current);
  test_blame(d, k);
  tilert_module_destroy(m);
  tilert_device_close(d);
  CHECK(fake->retained == 0 && fake->modules == 0);
  return 0;
}
