/* Streams that wait, memory of all kinds, captures and graphs on the simulator: what they do, and what is refused with which words. */
#include "check.h"
#include "kernels.h"
#include "tilert.h"

enum { N = 64 };

static TilertError err;
static const uint32_t two[3] = {2, 1, 1}, none[3] = {0, 1, 1};

typedef struct Setup {
  TilertDevice *d;
  TilertStream *s, *t;
  TilertEvent *e, *back;
  TilertModule *m;
  TilertKernel *k;
  TilertBuffer *x, *y;
} Setup;

static void
fill(Setup *u, TilertBuffer *b, float v)
{
  uint32_t bits;
  memcpy(&bits, &v, 4);
  CHECK_OK(tilert_buffer_fill(b, 0, N * 4, bits, 4, NULL, &err));
}

static float
value(TilertBuffer *b, size_t i)
{
  float v;
  CHECK_OK(tilert_buffer_read(b, 4 * i, &v, 4, NULL, &err));
  return v;
}

static Setup
open_all(void)
{
  Setup u = {0};
  CHECK_OK(tilert_device_open("sim", NULL, &u.d, &err));
  CHECK_OK(tilert_stream_create(u.d, &u.s, &err));
  CHECK_OK(tilert_stream_create_priority(u.d, 0, &u.t, &err));
  CHECK_OK(tilert_event_create(u.d, &u.e, &err));
  CHECK_OK(tilert_event_create_untimed(u.d, &u.back, &err));
  CHECK_OK(tilert_module_load(u.d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &u.m, &err));
  CHECK_OK(tilert_module_kernel(u.m, "axpy", &u.k, &err));
  CHECK_OK(tilert_buffer_create(u.d, N * 4, &u.x, &err));
  CHECK_OK(tilert_buffer_create(u.d, N * 4, &u.y, &err));
  fill(&u, u.x, 1);
  fill(&u, u.y, 0);
  return u;
}

static void
close_all(Setup *u)
{
  tilert_buffer_destroy(u->x);
  tilert_buffer_destroy(u->y);
  tilert_module_destroy(u->m);
  tilert_event_destroy(u->e);
  tilert_event_destroy(u->back);
  tilert_stream_destroy(u->s);
  tilert_stream_destroy(u->t);
  tilert_device_close(u->d);
}

/* y += a x */
static TilertLaunch *
axpy(Setup *u, double a, TilertBuffer *x, TilertBuffer *y)
{
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = a}, {.kind = TILERT_ARG_BUFFER, .u.buffer = x},
                             {.kind = TILERT_ARG_BUFFER, .u.buffer = y}, {.kind = TILERT_ARG_INT, .u.i = N}};
  TilertLaunch *l;
  CHECK_OK(tilert_launch_create(u->k, two, args, 4, &l, &err));
  return l;
}

static void
count_call(void *user)
{
  ++*(int *)user;
}

/* ---- streams ---- */

static void
test_streams(Setup *u)
{
  int calls = 0, done = 0;
  float ms;
  TilertStream *never;
  CHECK_FAILS(tilert_stream_create_priority(u->d, -1, &never, &err), TILERT_E_ARGUMENT, "priority -1: PTX simulator has 0, which comes first, to 0");
  CHECK(!never);
  CHECK_OK(tilert_event_record(u->back, u->s, &err));
  CHECK_OK(tilert_stream_wait(u->t, u->back, &err));
  CHECK_OK(tilert_stream_wait(NULL, u->back, &err));
  CHECK_OK(tilert_stream_host(u->t, count_call, &calls, &err));
  CHECK(calls == 1);
  CHECK_OK(tilert_stream_query(u->s, &done, &err));
  CHECK(done);
  done = 0;
  CHECK_OK(tilert_event_query(u->back, &done, &err));
  CHECK(done);
  CHECK_OK(tilert_event_record(u->e, u->s, &err));
  CHECK_FAILS(tilert_event_elapsed(u->e, u->back, &ms, &err), TILERT_E_ARGUMENT, "an event knows no time");
}

static void
test_windows(Setup *u)
{
  TilertLaunch *l = axpy(u, 1, u->x, u->y);
  TilertWindow w = {.buffer = u->x, .offset = 64, .bytes = 128, .ratio = 0.5f, .hit = TILERT_ACCESS_PERSISTING, .miss = TILERT_ACCESS_STREAMING};
  CHECK_OK(tilert_stream_set_window(u->s, &w, &err));
  CHECK_OK(tilert_launch_set_window(l, &w, &err));
  CHECK_OK(tilert_launch_set_priority(l, 0, &err));
  CHECK_OK(tilert_launch_packed(l, u->s, &err));
  CHECK_OK(tilert_launch_set_window(l, NULL, &err));
  CHECK_OK(tilert_stream_set_window(u->s, NULL, &err));
  w.offset = 256;
  CHECK_FAILS(tilert_launch_set_window(l, &w, &err), TILERT_E_ARGUMENT, "kernel axpy: a window of 128 bytes at offset 256 of a buffer of 256");
  w.offset = 0;
  w.ratio = 1.5f;
  CHECK_FAILS(tilert_stream_set_window(u->s, &w, &err), TILERT_E_ARGUMENT, "the window's ratio is 1.5; it is 0 to 1");
  w.ratio = 1;
  w.miss = TILERT_ACCESS_PERSISTING;
  CHECK_FAILS(tilert_stream_set_window(u->s, &w, &err), TILERT_E_ARGUMENT, "a miss does not persist");
  w.buffer = NULL;
  CHECK_FAILS(tilert_stream_set_window(u->s, &w, &err), TILERT_E_ARGUMENT, "the window's buffer is NULL");
  CHECK_FAILS(tilert_launch_set_priority(l, 3, &err), TILERT_E_ARGUMENT, "kernel axpy: priority 3");
  CHECK_FAILS(tilert_device_set_persisting(u->d, 1, &err), TILERT_E_ARGUMENT, "bytes is 1; PTX simulator keeps at most 0");
  CHECK_OK(tilert_device_set_persisting(u->d, 0, &err));
  CHECK_OK(tilert_device_reset_persisting(u->d, &err));
  tilert_launch_destroy(l);
  fill(u, u->y, 0);
}

/* ---- memory ---- */

static void
test_parts(Setup *u)
{
  TilertBuffer *b, *part, *inner, *other;
  uint8_t bytes[8];
  CHECK_OK(tilert_buffer_create(u->d, 64, &b, &err));
  CHECK_OK(tilert_buffer_fill(b, 0, 64, 1, 1, NULL, &err));
  CHECK_OK(tilert_buffer_part(b, 16, 32, &part, &err));
  CHECK_OK(tilert_buffer_part(part, 8, 8, &inner, &err));
  CHECK(tilert_buffer_address(inner) == tilert_buffer_address(b) + 24 && tilert_buffer_size(inner) == 8 && !tilert_buffer_host(inner));
  CHECK_FAILS(tilert_buffer_part(part, 8, 25, &other, &err), TILERT_E_ARGUMENT, "25 bytes at offset 8 are outside the buffer of 32 bytes");
  tilert_buffer_destroy(b);
  tilert_buffer_destroy(part);             /* of which inner is a part: the memory stays */
  CHECK_OK(tilert_buffer_fill(inner, 0, 8, 2, 1, NULL, &err));
  CHECK_OK(tilert_buffer_read(inner, 0, bytes, 8, NULL, &err));
  CHECK(bytes[0] == 2 && bytes[7] == 2);
  CHECK_FAILS(tilert_buffer_read(inner, 4, bytes, 8, NULL, &err), TILERT_E_ARGUMENT, "read of 8 bytes at offset 4 is outside the buffer of 8");
  tilert_buffer_destroy(inner);
}

/* Memory of the host goes to kernels, and needs no copies. */
static void
test_host(Setup *u)
{
  static _Alignas(16) float mine[N + 4];
  TilertBuffer *h, *p, *w;
  TilertLaunch *l;
  CHECK_OK(tilert_buffer_create_host(u->d, N * 4, TILERT_HOST_WRITE_COMBINED, &h, &err));
  CHECK_OK(tilert_buffer_pin(u->d, mine + 4, N * 4, &p, &err));
  float *x = tilert_buffer_host(h);
  CHECK(tilert_buffer_host(p) == mine + 4);
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    mine[i + 4] = 5;
  }
  l = axpy(u, 2, h, p);
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(mine[3] == 0 && mine[4] == 5 && mine[5] == 7 && mine[N + 3] == 5 + 2 * (N - 1));
  tilert_launch_destroy(l);
  CHECK_FAILS(tilert_buffer_pin(u->d, mine, 17, &w, &err), TILERT_E_ARGUMENT, "tilert_buffer_pin: host: 17 bytes at");
  CHECK_FAILS(tilert_buffer_pin(u->d, mine + 1, 8, &w, &err), TILERT_E_ARGUMENT, "is no multiple of 16");
  CHECK_FAILS(tilert_buffer_pin(u->d, mine, 0, &w, &err), TILERT_E_ARGUMENT, "bytes is 0");
  CHECK_FAILS(tilert_buffer_create_host(u->d, 4, 8, &w, &err), TILERT_E_ARGUMENT, "flags is 0x8");
  CHECK_OK(tilert_buffer_wrap(u->d, tilert_buffer_address(h) + 4, 8, &w, &err));
  CHECK_OK(tilert_buffer_fill(w, 0, 8, 0, 4, NULL, &err));
  CHECK(x[0] == 0 && x[1] == 0 && x[2] == 0 && x[3] == 3);
  tilert_buffer_destroy(w);
  CHECK_FAILS(tilert_buffer_wrap(u->d, tilert_buffer_address(h), N * 4 + 1, &w, &err), TILERT_E_ARGUMENT, "are not in one allocation");
  CHECK_FAILS(tilert_buffer_wrap(u->d, 0, 4, &w, &err), TILERT_E_ARGUMENT, "address is 0");
  tilert_buffer_destroy(p);
  tilert_buffer_destroy(h);
  CHECK_OK(tilert_buffer_pin(u->d, mine, 8, &w, &err));   /* it may be pinned again */
  tilert_buffer_destroy(w);
}

static void
test_rows(Setup *u)
{
  uint8_t host[6][10], back[64];
  TilertBuffer *b;
  memset(back, 9, sizeof back);
  for (int i = 0; i < 60; i++)
    host[i / 10][i % 10] = (uint8_t)i;
  CHECK_OK(tilert_buffer_create(u->d, 64, &b, &err));
  CHECK_OK(tilert_buffer_fill(b, 0, 64, 0, 1, NULL, &err));
  const TilertRows from = {.host = host, .offset = 11, .pitch = 10}, to = {.buffer = b, .offset = 4, .pitch = 16};
  CHECK_OK(tilert_copy_rows(&to, &from, 5, 3, u->s, &err));
  CHECK_OK(tilert_copy_rows(&(TilertRows){.host = back, .pitch = 20}, &to, 5, 3, NULL, &err));
  CHECK(back[0] == 11 && back[4] == 15 && back[5] == 9 && back[20] == 21 && back[44] == 35 && back[45] == 9);
  CHECK_OK(tilert_copy_rows(&(TilertRows){.buffer = b, .offset = 0, .pitch = 1}, &(TilertRows){.buffer = b, .offset = 5, .pitch = 16}, 1, 3, NULL,
                            &err));
  CHECK_OK(tilert_buffer_read(b, 0, back, 8, NULL, &err));
  CHECK(back[0] == 12 && back[1] == 22 && back[2] == 32 && back[3] == 0 && back[4] == 11);
  CHECK_FAILS(tilert_copy_rows(&to, &from, 5, 5, NULL, &err), TILERT_E_ARGUMENT,
              "copy of rows: dst: 5 rows of 5 bytes, 16 apart, at offset 4 are outside the buffer of 64");
  CHECK_FAILS(tilert_copy_rows(&to, &from, 12, 2, NULL, &err), TILERT_E_ARGUMENT, "src has a pitch of 10 bytes for 2 rows of 12 bytes");
  CHECK_FAILS(tilert_copy_rows(&from, &from, 1, 1, NULL, &err), TILERT_E_ARGUMENT, "neither dst nor src is a buffer");
  CHECK_FAILS(tilert_copy_rows(&to, &(TilertRows){.pitch = 4}, 1, 1, NULL, &err), TILERT_E_ARGUMENT, "src has neither a buffer nor a host address");
  CHECK_OK(tilert_copy_rows(&to, &from, 5, 0, NULL, &err));
  tilert_buffer_destroy(b);
  CHECK_OK(tilert_buffer_create(u->d, N * 4, &b, &err));     /* kernels may read what was written by rows, but not before */
  TilertLaunch *l = axpy(u, 0, b, u->y);
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_FAULT, "which nobody has written");
  CHECK_OK(tilert_copy_rows(&(TilertRows){.buffer = b, .pitch = N}, &(TilertRows){.buffer = u->x, .pitch = N}, N, 4, NULL, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  tilert_launch_destroy(l);
  tilert_buffer_destroy(b);
}

static void
test_pools(Setup *u)
{
  TilertPool *p;
  TilertBuffer *a, *b, *part;
  TilertPoolInfo info;
  const TilertPoolOptions o = {.size = sizeof o, .keep = 1024, .limit = 1000};
  const TilertPoolOptions older = {.size = offsetof(TilertPoolOptions, limit), .limit = 1};   /* what is behind the size says nothing */
  struct { TilertPoolOptions o; uint64_t more; } newer = {{.size = sizeof newer}, 1};
  CHECK_OK(tilert_pool_create(u->d, &o, &p, &err));
  CHECK_OK(tilert_buffer_create_in(u->s, p, 600, &a, &err));
  CHECK_FAILS(tilert_buffer_create_in(u->s, p, 401, &b, &err), TILERT_E_MEMORY, "allocation of 401 bytes: the pool may have 1000, of which 600");
  CHECK(!b);
  CHECK_OK(tilert_buffer_create_in(u->t, NULL, 5000, &b, &err));
  CHECK_OK(tilert_buffer_fill(b, 0, 5000, 1, 1, u->t, &err));
  CHECK_OK(tilert_buffer_part(a, 0, 8, &part, &err));
  CHECK_FAILS(tilert_buffer_destroy_in(a, u->s, &err), TILERT_E_ARGUMENT, "parts of b are there");
  tilert_buffer_destroy(part);
  CHECK_OK(tilert_pool_info(p, &info, &err));
  CHECK(info.used == 600 && info.used_most == 600);
  CHECK_OK(tilert_buffer_destroy_in(a, u->t, &err));
  CHECK_OK(tilert_pool_info(p, &info, &err));
  CHECK(info.used == 0 && info.used_most == 600);
  CHECK_FAILS(tilert_buffer_destroy_in(u->x, u->t, &err), TILERT_E_ARGUMENT, "b was not created in a stream");
  CHECK_OK(tilert_pool_trim(p, 0, &err));
  tilert_pool_destroy(p);
  tilert_buffer_destroy(b);
  CHECK_FAILS(tilert_pool_create(u->d, &newer.o, &p, &err), TILERT_E_ARGUMENT, "it is older than the header");
  newer.more = 0;
  CHECK_OK(tilert_pool_create(u->d, &newer.o, &p, &err));
  tilert_pool_destroy(p);
  CHECK_OK(tilert_pool_create(u->d, &older, &p, &err));
  CHECK_OK(tilert_buffer_create_in(u->s, p, 600, &a, &err));
  CHECK_OK(tilert_buffer_destroy_in(a, u->s, &err));
  tilert_pool_destroy(p);
}

static void
test_two_devices(Setup *u)
{
  Setup v = open_all();
  int can = 1;
  TilertGraph *g;
  TilertLaunch *l = axpy(&v, 1, v.x, v.y);
  CHECK_OK(tilert_peer_possible(u->d, v.d, &can, &err));
  CHECK(!can);
  CHECK_OK(tilert_peer_possible(u->d, u->d, &can, &err));
  CHECK(can);
  CHECK_FAILS(tilert_peer_enable(u->d, v.d, &err), TILERT_E_UNAVAILABLE, "kernels on sim cannot reach the memory of sim");
  fill(&v, v.x, 7);
  CHECK_OK(tilert_buffer_copy(u->y, 0, v.x, 0, 8, NULL, &err));
  CHECK(value(u->y, 0) == 7 && value(u->y, 1) == 7 && value(u->y, 2) == 0);
  fill(u, u->y, 0);
  CHECK_OK(tilert_event_record(v.e, v.s, &err));
  CHECK_OK(tilert_stream_wait(u->s, v.e, &err));
  CHECK_OK(tilert_graph_create(u->d, &g, &err));
  CHECK_FAILS(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err), TILERT_E_ARGUMENT, "l is of sim; the graph is of sim, opened another time");
  CHECK_FAILS(tilert_graph_add_fill(g, v.x, 0, 4, 0, 1, NULL, 0, NULL, &err), TILERT_E_ARGUMENT, "b is of sim");
  CHECK_FAILS(tilert_graph_add_copy(g, &(TilertRows){.buffer = v.x}, &(TilertRows){.host = &can}, 4, 1, NULL, 0, NULL, &err), TILERT_E_ARGUMENT,
              "dst is of sim; the graph");
  CHECK(tilert_graph_count(g) == 0);
  tilert_graph_destroy(g);
  tilert_launch_destroy(l);
  close_all(&v);
}

/* ---- graphs by hand ---- */

/* y = 2 x + y twice, of an x that is written and a y that is filled before, read back in the end */
static void
test_by_hand(Setup *u)
{
  float in[N], out[N] = {0};
  int calls = 0;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertNode write, clear, first, second, read, join, all[2], host;
  TilertNodeInfo info;
  TilertLaunch *l = axpy(u, 2, u->x, u->y);
  for (int i = 0; i < N; i++)
    in[i] = (float)i;
  CHECK_OK(tilert_graph_create(u->d, &g, &err));
  CHECK_OK(tilert_graph_add_copy(g, &(TilertRows){.buffer = u->x}, &(TilertRows){.host = in}, N * 4, 1, NULL, 0, &write, &err));
  CHECK_OK(tilert_graph_add_fill(g, u->y, 0, N * 4, 0, 4, NULL, 0, &clear, &err));
  all[0] = write;
  all[1] = clear;
  CHECK_OK(tilert_graph_add_empty(g, all, 2, &join, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, &join, 1, &first, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, &first, 1, &second, &err));
  CHECK_OK(tilert_graph_add_copy(g, &(TilertRows){.host = out}, &(TilertRows){.buffer = u->y}, N * 4, 1, &second, 1, &read, &err));
  CHECK_OK(tilert_graph_add_host(g, count_call, &calls, &read, 1, &host, &err));
  tilert_launch_destroy(l);
  CHECK(tilert_graph_count(g) == 7 && host == 6);
  CHECK_OK(tilert_graph_node(g, join, &info, &err));
  CHECK(info.kind == TILERT_NODE_EMPTY && info.nafter == 2 && info.after[1] == clear && !info.kernel);
  CHECK_OK(tilert_graph_node(g, second, &info, &err));
  CHECK(info.kind == TILERT_NODE_LAUNCH && info.kernel == u->k);
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK(out[3] == 0 && calls == 0);
  CHECK_OK(tilert_graph_launch(x, u->s, &err));
  CHECK(out[3] == 12 && out[N - 1] == 4 * (N - 1) && calls == 1);
  in[3] = 5;
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  CHECK(out[3] == 20 && calls == 2);
  CHECK_OK(tilert_graph_set_arg(x, second, 0, &(TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = 10}, &err));
  CHECK_OK(tilert_graph_set_grid(x, first, (uint32_t[]){1, 1, 1}, &err));
  tilert_graph_destroy(g);
  CHECK_OK(tilert_graph_launch(x, u->s, &err));
  CHECK(out[3] == 60 && out[N - 1] == 10 * (N - 1) && calls == 3);
  CHECK_FAILS(tilert_graph_set_arg(x, read, 0, &(TilertArg){.kind = TILERT_ARG_INT}, &err), TILERT_E_ARGUMENT, "node 5 is no launch");
  CHECK_FAILS(tilert_graph_set_arg(x, 7, 0, &(TilertArg){.kind = TILERT_ARG_INT}, &err), TILERT_E_ARGUMENT, "there is no node 7: the graph has 7");
  CHECK_FAILS(tilert_graph_set_arg(x, first, 3, &(TilertArg){.kind = TILERT_ARG_FLOAT}, &err), TILERT_E_ARGUMENT,
              "node 3: kernel axpy, argument 3 (n: i32): a floating-point number is given");
  CHECK_FAILS(tilert_graph_set_grid(x, first, none, &err), TILERT_E_ARGUMENT, "node 3: kernel axpy: a launch of a graph has a grid without zeros");
  CHECK_OK(tilert_graph_launch(x, u->s, &err));        /* what was refused changed nothing */
  CHECK(out[3] == 60);
  l = axpy(u, -1, u->x, u->y);
  CHECK_OK(tilert_graph_set_launch(x, second, l, &err));
  CHECK_OK(tilert_graph_launch(x, u->s, &err));
  CHECK(out[3] == 5);
  CHECK_OK(tilert_launch_set_priority(l, 0, &err));
  CHECK_FAILS(tilert_graph_set_launch(x, second, l, &err), TILERT_E_ARGUMENT, "node 4: kernel axpy has another priority than the launch that it is for");
  CHECK_FAILS(tilert_graph_set_launch(x, read, l, &err), TILERT_E_ARGUMENT, "node 5 is no launch");
  tilert_launch_destroy(l);
  tilert_graph_exec_destroy(x);
  fill(u, u->x, 1);
  fill(u, u->y, 0);
}

static void
test_wrong_nodes(Setup *u)
{
  TilertGraph *g;
  TilertGraphExec *x;
  TilertNode a;
  TilertNodeInfo info;
  TilertLaunch *l = axpy(u, 1, u->x, u->y);
  CHECK_OK(tilert_graph_create(u->d, &g, &err));
  CHECK_OK(tilert_graph_add_empty(g, NULL, 0, &a, &err));
  CHECK_FAILS(tilert_graph_add_empty(g, (TilertNode[]){a, 1}, 2, NULL, &err), TILERT_E_ARGUMENT, "after[1] is node 1; the graph has 1");
  CHECK_FAILS(tilert_graph_add_empty(g, (TilertNode[]){a, a}, 2, NULL, &err), TILERT_E_ARGUMENT, "after[0] and after[1] are the same node, 0");
  CHECK_FAILS(tilert_graph_node(g, 1, &info, &err), TILERT_E_ARGUMENT, "there is no node 1: the graph has 1");
  CHECK_OK(tilert_launch_set_grid(l, none, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, &a, 1, &a, &err));     /* of no blocks: nothing */
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  CHECK(value(u->y, 0) == 0);
  CHECK_FAILS(tilert_graph_set_grid(x, a, two, &err), TILERT_E_ARGUMENT, "it was added with an empty grid");
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  tilert_launch_destroy(l);
}

/* Buffers may go before the graph; its launch says which, and the memory of others that lie in the same place is not touched. */
static void
test_destroyed(Setup *u)
{
  TilertBuffer *b, *c;
  TilertGraph *g, *h;
  TilertGraphExec *x, *z;
  CHECK_OK(tilert_buffer_create(u->d, N * 4, &b, &err));
  CHECK_OK(tilert_buffer_create(u->d, N * 4, &c, &err));
  fill(u, b, 1);
  TilertLaunch *l = axpy(u, 1, b, u->y);
  CHECK_OK(tilert_graph_create(u->d, &g, &err));
  CHECK_OK(tilert_graph_create(u->d, &h, &err));
  CHECK_OK(tilert_graph_add_empty(g, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_add_fill(h, c, 0, 4, 0, 1, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_instantiate(h, &z, &err));
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  CHECK_OK(tilert_graph_launch(z, NULL, &err));
  tilert_buffer_destroy(b);
  for (int i = 0; i < 2; i++)
    CHECK_FAILS(tilert_graph_launch(x, NULL, &err), TILERT_E_ARGUMENT, "node 1: kernel axpy, argument 1 (x): its buffer has been destroyed");
  CHECK_FAILS(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err), TILERT_E_ARGUMENT, "argument 1 (x): its buffer has been destroyed");
  CHECK_OK(tilert_graph_launch(z, NULL, &err));
  CHECK_OK(tilert_graph_set_arg(x, 1, 1, &(TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = u->x}, &err));
  CHECK_OK(tilert_graph_launch(x, NULL, &err));
  CHECK(value(u->y, 0) == 2);
  tilert_buffer_destroy(c);
  CHECK_FAILS(tilert_graph_launch(z, NULL, &err), TILERT_E_ARGUMENT, "node 0, a fill: the buffer of b has been destroyed");
  tilert_launch_destroy(l);
  tilert_graph_exec_destroy(x);
  tilert_graph_exec_destroy(z);
  tilert_graph_destroy(g);
  tilert_graph_destroy(h);
  fill(u, u->y, 0);
}

/* The same of arguments that are addresses, as those of functions compiled ahead are, of parts and of the host's memory, by hand, captured
 * and updated. Addresses in a buffer's part or behind a wrapped one's are as good as what they lie in. */
static void
test_addresses(Setup *u)
{
  enum { OWN, PART, HOST, WRAPPED, KINDS };
  static const char gone[] = "node 0: kernel axpy, argument 1 (x): its buffer has been destroyed";
  for (int kind = 0; kind < KINDS; kind++) {
    TilertBuffer *b, *in = NULL;
    TilertGraph *g, *h;
    TilertGraphExec *x, *z, *updated;
    TilertLaunch *l;
    if (kind == HOST)
      CHECK_OK(tilert_buffer_create_host(u->d, 2 * N * 4, 0, &b, &err));
    else
      CHECK_OK(tilert_buffer_create(u->d, 2 * N * 4, &b, &err));
    CHECK_OK(tilert_buffer_fill(b, 0, 2 * N * 4, 0, 4, NULL, &err));
    if (kind == PART)
      CHECK_OK(tilert_buffer_part(b, N * 4, N * 4, &in, &err));
    if (kind == WRAPPED)
      CHECK_OK(tilert_buffer_wrap(u->d, tilert_buffer_address(b), N * 4, &in, &err));
    const TilertArg at = {.kind = TILERT_ARG_POINTER, .u.pointer = tilert_buffer_address(in ? in : b)};
    const TilertArg args[] = {{.kind = TILERT_ARG_FLOAT, .u.f = 1}, at, {.kind = TILERT_ARG_BUFFER, .u.buffer = u->y},
                              {.kind = TILERT_ARG_INT, .u.i = N}};
    CHECK_OK(tilert_launch_create(u->k, two, args, 4, &l, &err));
    CHECK_OK(tilert_graph_create(u->d, &g, &err));
    CHECK_OK(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err));
    CHECK_OK(tilert_graph_instantiate(g, &x, &err));
    CHECK_OK(tilert_stream_capture_begin(u->s, &err));
    CHECK_OK(tilert_launch(u->s, u->k, two, args, 4, &err));
    CHECK_OK(tilert_stream_capture_end(u->s, &h, &err));
    CHECK_OK(tilert_graph_instantiate(h, &z, &err));
    CHECK_OK(tilert_graph_instantiate(g, &updated, &err));
    CHECK_OK(tilert_graph_set_arg(updated, 0, 1, &(TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = u->x}, &err));
    TilertGraphExec *all[] = {x, z, updated};
    for (int i = 0; i < 3; i++)
      CHECK_OK(tilert_graph_launch(all[i], u->s, &err));
    if (in) {                                /* a part keeps its memory, a wrapped one has none */
      tilert_buffer_destroy(kind == PART ? b : in);
      b = kind == PART ? in : b;
      CHECK_OK(tilert_graph_launch(x, u->s, &err));
    }
    tilert_buffer_destroy(b);
    CHECK_FAILS(tilert_graph_launch(x, u->s, &err), TILERT_E_ARGUMENT, gone);
    CHECK_FAILS(tilert_graph_launch(z, u->s, &err), TILERT_E_ARGUMENT, gone);
    CHECK_OK(tilert_graph_launch(updated, u->s, &err));
    /* New memory, wherever it lies, is not what the graphs were made for, until they are told so. */
    CHECK_OK(tilert_buffer_create(u->d, 2 * N * 4, &b, &err));
    CHECK_OK(tilert_buffer_fill(b, 0, 2 * N * 4, 0, 4, NULL, &err));
    CHECK_FAILS(tilert_graph_launch(z, u->s, &err), TILERT_E_ARGUMENT, gone);
    const TilertArg there = {.kind = TILERT_ARG_POINTER, .u.pointer = tilert_buffer_address(b) + 16};
    CHECK_OK(tilert_graph_set_arg(z, 0, 1, &there, &err));
    CHECK_OK(tilert_graph_launch(z, u->s, &err));
    tilert_buffer_destroy(b);
    CHECK_FAILS(tilert_graph_launch(z, u->s, &err), TILERT_E_ARGUMENT, gone);
    for (int i = 0; i < 3; i++)
      tilert_graph_exec_destroy(all[i]);
    tilert_graph_destroy(g);
    tilert_graph_destroy(h);
    tilert_launch_destroy(l);
  }
  fill(u, u->y, 0);
}

/* A fault in a node is one of the launch, which says where. */
static void
test_fault(Setup *u)
{
  TilertKernel *wild;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertLaunch *l;
  const TilertArg args[2] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = u->x}, {.kind = TILERT_ARG_INT, .u.i = 400}};
  CHECK_OK(tilert_module_kernel(u->m, "wild", &wild, &err));
  CHECK_OK(tilert_launch_create(wild, (uint32_t[]){1, 1, 1}, args, 2, &l, &err));
  CHECK_OK(tilert_graph_create(u->d, &g, &err));
  CHECK_OK(tilert_graph_add_empty(g, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_add_launch(g, l, NULL, 0, NULL, &err));
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_FAILS(tilert_graph_launch(x, NULL, &err), TILERT_E_FAULT, "node 1: wild.tile:7");
  CHECK(err.line == 7 && !strcmp(err.file, "wild.tile"));
  tilert_launch_destroy(l);
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
}

/* ---- captures ---- */

/* Two streams: s clears y and adds x, t waits for the clearing and writes x; s waits for t. */
static void
test_capture(Setup *u)
{
  float one[N], out = 0;
  int calls = 0;
  TilertGraph *g;
  TilertGraphExec *x;
  TilertNodeInfo info;
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 3}, {.kind = TILERT_ARG_BUFFER, .u.buffer = u->x},
                             {.kind = TILERT_ARG_BUFFER, .u.buffer = u->y}, {.kind = TILERT_ARG_INT, .u.i = N}};
  for (int i = 0; i < N; i++)
    one[i] = 4;
  fill(u, u->y, 9);
  CHECK(!tilert_stream_capturing(u->s));
  CHECK_OK(tilert_stream_capture_begin(u->s, &err));
  CHECK(tilert_stream_capturing(u->s) && !tilert_stream_capturing(u->t) && !tilert_stream_capturing(NULL));
  CHECK_OK(tilert_buffer_fill(u->y, 0, N * 4, 0, 4, u->s, &err));                        /* node 0 */
  CHECK_OK(tilert_event_record(u->e, u->s, &err));
  CHECK_OK(tilert_stream_wait(u->t, u->e, &err));
  CHECK(tilert_stream_capturing(u->t));
  CHECK_OK(tilert_buffer_write(u->x, 0, one, N * 4, u->t, &err));                        /* node 1 */
  CHECK_OK(tilert_event_record(u->back, u->t, &err));
  CHECK_OK(tilert_stream_host(u->s, count_call, &calls, &err));                          /* node 2 */
  CHECK_OK(tilert_stream_wait(u->s, u->back, &err));
  CHECK_OK(tilert_launch(u->s, u->k, two, args, 4, &err));                               /* node 3 */
  CHECK_OK(tilert_launch(u->s, u->k, none, args, 4, &err));                              /* none */
  CHECK_OK(tilert_buffer_read(u->y, 8, &out, 4, u->s, &err));                            /* node 4 */
  CHECK(value(u->y, 2) == 9 && value(u->x, 2) == 1 && calls == 0);                       /* nothing has been done */
  CHECK_OK(tilert_stream_capture_end(u->s, &g, &err));
  CHECK(!tilert_stream_capturing(u->s) && !tilert_stream_capturing(u->t) && tilert_graph_count(g) == 5);
  CHECK_OK(tilert_graph_node(g, 1, &info, &err));
  CHECK(info.kind == TILERT_NODE_COPY && info.nafter == 1 && info.after[0] == 0);
  CHECK_OK(tilert_graph_node(g, 3, &info, &err));
  CHECK(info.nafter == 2 && info.after[0] == 2 && info.after[1] == 1);
  CHECK_OK(tilert_graph_instantiate(g, &x, &err));
  CHECK_OK(tilert_graph_launch(x, u->s, &err));
  CHECK(out == 12 && value(u->x, 2) == 4 && calls == 1);
  CHECK_OK(tilert_graph_set_arg(x, 3, 0, &(TilertArg){.kind = TILERT_ARG_INT, .u.i = -1}, &err));
  CHECK_OK(tilert_graph_launch(x, u->t, &err));
  CHECK(out == -4 && calls == 2);
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  CHECK_OK(tilert_event_record(u->e, u->s, &err));       /* outside: as always */
  CHECK_OK(tilert_event_synchronize(u->e, &err));
  fill(u, u->x, 1);
  fill(u, u->y, 0);
}

static void
test_capture_rules(Setup *u)
{
  TilertGraph *g, *other;
  TilertGraphExec *x;
  TilertBuffer *b;
  int done;
  CHECK_FAILS(tilert_stream_capture_end(u->s, &g, &err), TILERT_E_ARGUMENT, "the stream is not being captured");
  CHECK_OK(tilert_graph_create(u->d, &other, &err));
  CHECK_OK(tilert_graph_instantiate(other, &x, &err));
  CHECK_OK(tilert_event_record(u->back, u->t, &err));
  CHECK_OK(tilert_stream_capture_begin(u->s, &err));
  CHECK_FAILS(tilert_stream_capture_begin(u->s, &err), TILERT_E_ARGUMENT, "the stream is being captured already");
  CHECK_FAILS(tilert_stream_synchronize(u->s, &err), TILERT_E_ARGUMENT, "tilert_stream_synchronize: the stream is being captured");
  CHECK_FAILS(tilert_stream_query(u->s, &done, &err), TILERT_E_ARGUMENT, "tilert_stream_query: the stream is being captured");
  CHECK_FAILS(tilert_device_synchronize(u->d, &err), TILERT_E_ARGUMENT, "a stream of the device is being captured");
  CHECK_FAILS(tilert_graph_launch(x, u->s, &err), TILERT_E_ARGUMENT, "a graph is no node of another one");
  CHECK_FAILS(tilert_buffer_create_in(u->s, NULL, 4, &b, &err), TILERT_E_ARGUMENT, "memory of graphs is allocated before");
  CHECK_FAILS(tilert_stream_wait(u->s, u->back, &err), TILERT_E_ARGUMENT, "the event was not recorded in its capture");
  CHECK_OK(tilert_stream_synchronize(u->t, &err));
  CHECK_OK(tilert_event_record(u->e, u->s, &err));
  CHECK_FAILS(tilert_event_synchronize(u->e, &err), TILERT_E_ARGUMENT, "the event was recorded in a stream that was being captured");
  CHECK_FAILS(tilert_event_query(u->e, &done, &err), TILERT_E_ARGUMENT, "tilert_event_query: the event was recorded");
  CHECK_FAILS(tilert_stream_wait(NULL, u->e, &err), TILERT_E_ARGUMENT, "the default stream cannot join it");
  CHECK_OK(tilert_stream_wait(u->t, u->e, &err));
  CHECK_FAILS(tilert_stream_capture_end(u->t, &g, &err), TILERT_E_ARGUMENT, "the capture was begun in another stream");
  CHECK_OK(tilert_buffer_fill(u->y, 0, 4, 0, 1, u->t, &err));
  CHECK_FAILS(tilert_stream_capture_end(u->s, &g, &err), TILERT_E_ARGUMENT, "the capture has another stream, of which node 0 is the last");
  CHECK(!g && !tilert_stream_capturing(u->s) && !tilert_stream_capturing(u->t));
  CHECK_FAILS(tilert_stream_wait(u->t, u->e, &err), TILERT_E_ARGUMENT, "in a capture, which has ended");
  CHECK_OK(tilert_stream_capture_begin(u->s, &err));
  CHECK_OK(tilert_stream_capture_begin(u->t, &err));
  CHECK_OK(tilert_event_record(u->e, u->s, &err));
  CHECK_FAILS(tilert_stream_wait(u->t, u->e, &err), TILERT_E_ARGUMENT, "the stream belongs to another capture");
  CHECK_OK(tilert_stream_capture_end(u->t, &g, &err));
  tilert_graph_destroy(g);
  CHECK_OK(tilert_stream_capture_end(u->s, &g, &err));
  CHECK(tilert_graph_count(g) == 0);
  tilert_graph_destroy(g);
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(other);
  CHECK_OK(tilert_device_synchronize(u->d, &err));
}

/* ---- what a module has ---- */

static void
test_description(Setup *u)
{
  char text[80];
  TilertArgInfo info;
  CHECK(tilert_module_kernel_at(u->m, 0) == u->k && tilert_module_kernel_at(u->m, 1) && !tilert_module_kernel_at(u->m, 2));
  CHECK(tilert_kernel_arg_count(u->k) == 4 && tilert_kernel_arg_count(NULL) == 0);
  CHECK_OK(tilert_kernel_arg(u->k, 2, &info, &err));
  CHECK(!strcmp(info.name, "y") && !strcmp(info.dtype, "f32") && info.kind == TILERT_PARAM_POINTER && info.divisible == 16);
  CHECK_FAILS(tilert_kernel_arg(u->k, 4, &info, &err), TILERT_E_ARGUMENT, "kernel axpy takes 4 arguments; there is none at 4");
  CHECK(tilert_kernel_signature(u->k, text, sizeof text) == strlen(text));
  CHECK(!strcmp(text, "axpy(a: f32, x: *f32, y: *f32, n: i32)"));
  CHECK(tilert_kernel_signature(u->k, text, 8) == 38 && !strcmp(text, "axpy(a:"));
  CHECK(tilert_kernel_signature(u->k, NULL, 0) == 38 && tilert_kernel_signature(NULL, text, 8) == 0 && !text[0]);
  CHECK_OK(tilert_version_check(TILEC_VERSION_NUMBER, &err));
  CHECK_FAILS(tilert_version_check(20305, &err), TILERT_E_UNAVAILABLE, "headers of version 2.3.5; this library is 0.");
}

int
main(void)
{
  Setup u = open_all();
  test_streams(&u);
  test_windows(&u);
  test_parts(&u);
  test_host(&u);
  test_rows(&u);
  test_pools(&u);
  test_two_devices(&u);
  test_by_hand(&u);
  test_wrong_nodes(&u);
  test_destroyed(&u);
  test_addresses(&u);
  test_fault(&u);
  test_capture(&u);
  test_capture_rules(&u);
  test_description(&u);
  close_all(&u);
  return 0;
}
