/* graph.c - what a kernel costs in a chain of 1000 empty ones: launched one by one, as a graph that the driver alone captured and launches,
 * as one that was captured through tilert, and as one that was built by hand. All are launches of the same PTX, interleaved in one process.
 * Prints one line each: name, median microseconds for a kernel, until all are done, and on the host alone.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "timing.h"

enum { ROUNDS = 41, KERNELS = 1000, PATHS = 5 };

typedef int (*BeginFn)(void *, int);
typedef int (*EndFn)(void *, void **);
typedef int (*InstantiateFn)(void **, void *, unsigned long long);
typedef int (*GraphLaunchFn)(void *, void *);

static const char ptx[] =
  ".version 8.0\n.target sm_80\n.address_size 64\n"
  ".visible .entry raw(.param .u64 a,.param .u64 b,.param .u64 c,.param .u32 n).reqntid 128,1,1 {ret;}\n";

typedef struct Driver {
  LaunchFn launch;
  LoadFn load;
  GetFn get;
  BeginFn begin;
  EndFn end;
  InstantiateFn instantiate;
  GraphLaunchFn graph_launch;
} Driver;

typedef struct Run {
  Driver cu;
  void *function, *raw_exec;
  void *native;                      /* stream */
  TilertDevice *dev;
  TilertStream *s;
  TilertBuffer *b;
  TilertModule *m;
  TilertLaunch *l;
  TilertGraphExec *captured, *built;
  unsigned long long ptr;
  int n;
  void *raw[4];
} Run;

static void
driver(int result, const char *call)
{
  if (!result)
    return;
  fprintf(stderr, "bench_graph: %s: %d\n", call, result);
  exit(1);
}

static void
open_driver(Driver *cu)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  const struct { const char *name; void *to; } wanted[] = {
    {"cuLaunchKernel", &cu->launch}, {"cuModuleLoadData", &cu->load}, {"cuModuleGetFunction", &cu->get},
    {"cuStreamBeginCapture_v2", &cu->begin}, {"cuStreamEndCapture", &cu->end}, {"cuGraphInstantiateWithFlags", &cu->instantiate},
    {"cuGraphLaunch", &cu->graph_launch},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *f = lib ? dlsym(lib, wanted[i].name) : NULL;
    driver(!f, lib ? wanted[i].name : "no libcuda.so.1");
    memcpy(wanted[i].to, &f, sizeof f);
  }
}

static int
launch_raw(Run *r)
{
  return r->cu.launch(r->function, 1, 1, 1, 128, 1, 1, 0, r->native, r->raw, NULL);
}

static void
capture_raw(Run *r)
{
  void *module, *graph;
  driver(r->cu.load(&module, ptx), "cuModuleLoadData");
  driver(r->cu.get(&r->function, module, "raw"), "cuModuleGetFunction");
  driver(r->cu.begin(r->native, 2), "cuStreamBeginCapture");
  for (int i = 0; i < KERNELS; i++)
    driver(launch_raw(r), "cuLaunchKernel");
  driver(r->cu.end(r->native, &graph), "cuStreamEndCapture");
  driver(r->cu.instantiate(&r->raw_exec, graph, 0), "cuGraphInstantiateWithFlags");
}

static void
setup(Run *r, TilertError *e)
{
  static TilertManifest manifest;
  size_t n;
  TilertKernel *k;
  TilertGraph *g;
  TilertNode node;
  open_driver(&r->cu);
  check(tilert_device_open("cuda", NULL, &r->dev, e), e);
  check(tilert_stream_create(r->dev, &r->s, e), e);
  check(tilert_buffer_create(r->dev, 4096, &r->b, e), e);
  check(tilert_manifest_derive(ptx, sizeof ptx - 1, &manifest, 1, &n, e), e);
  check(tilert_module_load(r->dev, ptx, sizeof ptx - 1, &manifest, 1, &r->m, e), e);
  check(tilert_module_kernel(r->m, NULL, &k, e), e);
  check(tilert_launch_create(k, TILERT_GRID(1), TILERT_ARGS(r->b, r->b, r->b, 1), &r->l, e), e);
  r->native = tilert_stream_native(r->s);
  r->ptr = tilert_buffer_address(r->b);
  r->n = 1;
  r->raw[0] = r->raw[1] = r->raw[2] = &r->ptr;
  r->raw[3] = &r->n;
  capture_raw(r);
  check(tilert_stream_capture_begin(r->s, e), e);
  for (int i = 0; i < KERNELS; i++)
    check(tilert_launch_packed(r->l, r->s, e), e);
  check(tilert_stream_capture_end(r->s, &g, e), e);
  check(tilert_graph_instantiate(g, &r->captured, e), e);
  tilert_graph_destroy(g);
  check(tilert_graph_create(r->dev, &g, e), e);
  for (int i = 0; i < KERNELS; i++)
    check(tilert_graph_add_launch(g, r->l, &node, i > 0, &node, e), e);
  check(tilert_graph_instantiate(g, &r->built, e), e);
  tilert_graph_destroy(g);
}

static void
one(Run *r, int path, TilertError *e)
{
  switch (path) {
  case 0:
    for (int i = 0; i < KERNELS; i++)
      driver(launch_raw(r), "cuLaunchKernel");
    break;
  case 1:
    for (int i = 0; i < KERNELS; i++)
      check(tilert_launch_packed(r->l, r->s, e), e);
    break;
  case 2: driver(r->cu.graph_launch(r->raw_exec, r->native), "cuGraphLaunch"); break;
  case 3: check(tilert_graph_launch(r->captured, r->s, e), e); break;
  case 4: check(tilert_graph_launch(r->built, r->s, e), e); break;
  }
}

int
main(void)
{
  static double all[PATHS][ROUNDS], host[PATHS][ROUNDS];
  static const char *const names[PATHS] = {"cuLaunchKernel", "tilert_launch_packed", "cuGraphLaunch", "tilert_graph_launch, captured",
                                           "tilert_graph_launch, by hand"};
  static Run r;
  TilertError e;
  setup(&r, &e);
  for (int round = -2; round < ROUNDS; round++)
    for (int path = 0; path < PATHS; path++) {
      check(tilert_stream_synchronize(r.s, &e), &e);
      const double from = now();
      one(&r, path, &e);
      const double given = now();
      check(tilert_stream_synchronize(r.s, &e), &e);
      if (round < 0)
        continue;
      host[path][round] = (given - from) / KERNELS;
      all[path][round] = (now() - from) / KERNELS;
    }
  for (int path = 0; path < PATHS; path++) {
    qsort(all[path], ROUNDS, sizeof all[path][0], by_value);
    qsort(host[path], ROUNDS, sizeof host[path][0], by_value);
    printf("%-30s %8.4f %8.4f\n", names[path], all[path][ROUNDS / 2], host[path][ROUNDS / 2]);
  }
  tilert_graph_exec_destroy(r.captured);
  tilert_graph_exec_destroy(r.built);
  tilert_launch_destroy(r.l);
  tilert_module_destroy(r.m);
  tilert_buffer_destroy(r.b);
  tilert_stream_destroy(r.s);
  tilert_device_close(r.dev);
  return 0;
}
