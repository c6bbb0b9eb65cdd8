/* The cuda device over a fake driver: which calls are made, in which context, and what errors become.
 * Run with the fake libcuda.so.1 first on LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include <pthread.h>
#include "check.h"
#include "fakecuda.h"
#include "kernels.h"
#include "tilert.h"

static TilertError err;
static FakeCuda *fake;
static void (*make_foreign_current)(int on);

static void
find_fake(void)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  FakeCuda *(*get)(void) = (FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda");
  make_foreign_current = (void (*)(int))(uintptr_t)dlsym(lib, "fakecuda_make_foreign_current");
  CHECK(get && make_foreign_current);
  fake = get();
  fake->capability = 90;
}

static int
calls(const char *name)
{
  for (int i = 0; i < fake->ncalls; i++)
    if (!strcmp(fake->calls[i].name, name))
      return fake->calls[i].count;
  return 0;
}

static void
test_device(void)
{
  TilertDevice *d;
  CHECK(tilert_cuda_count() == 1);
  CHECK_FAILS(tilert_device_open("cuda:1", NULL, &d, &err), TILERT_E_UNAVAILABLE, "no device cuda:1");
  fake->init_result = 100;
  CHECK_FAILS(tilert_device_open("cuda", NULL, &d, &err), TILERT_E_UNAVAILABLE, "cuInit: CUDA_ERROR_FAKE (100)");
  fake->init_result = 0;
  CHECK_OK(tilert_device_open(NULL, NULL, &d, &err));
  const TilertDeviceInfo *info = tilert_device_info(d);
  CHECK(!info->is_sim && !strcmp(info->spec, "cuda:0") && !strcmp(info->name, "Fake GPU"));
  CHECK(!strcmp(info->target, "sm_90a") && info->multiprocessors == 1016 && info->l2 == 1038);
  tilert_device_close(d);
  CHECK(fake->retained == 0);
}

static void
test_target(int capability, const char *target)
{
  TilertDevice *d;
  fake->capability = capability;
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK(!strcmp(tilert_device_info(d)->target, target));
  tilert_device_close(d);
  fake->capability = 90;
}

static void
test_memory(TilertDevice *d)
{
  TilertBuffer *b;
  TilertStream *s;
  char text[8] = "abcdefg", back[8];
  CHECK_OK(tilert_buffer_create(d, 8, &b, &err));
  CHECK_OK(tilert_stream_create(d, &s, &err));
  int waits = calls("cuStreamSynchronize");
  CHECK_OK(tilert_buffer_write(b, 0, text, 8, s, &err));
  CHECK(calls("cuStreamSynchronize") == waits); /* ordered in the stream: no wait */
  CHECK_OK(tilert_buffer_read(b, 0, back, 8, NULL, &err));
  CHECK(calls("cuStreamSynchronize") == waits + 1 && !strcmp(back, text));
  CHECK_OK(tilert_buffer_fill(b, 0, 4, 'x', 1, NULL, &err));
  CHECK_OK(tilert_buffer_read(b, 0, back, 8, NULL, &err));
  CHECK(!strcmp(back, "xxxxefg"));
  tilert_buffer_destroy(b);
  tilert_stream_destroy(s);
  CHECK_FAILS(tilert_buffer_create(d, (size_t)1 << 30, &b, &err), TILERT_E_MEMORY, "allocation of 1073741824 bytes");
  CHECK(fake->allocations == 0 && fake->streams == 0);
}

static TilertKernel *
load(TilertDevice *d, const char *name, TilertModule **m)
{
  TilertKernel *k;
  CHECK_OK(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, m, &err));
  CHECK_OK(tilert_module_kernel(*m, name, &k, &err));
  return k;
}

static TilertLaunch *
pack(TilertKernel *k, const uint32_t grid[3])
{
  TilertLaunch *l;
  TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 2}, {.kind = TILERT_ARG_POINTER, .u.pointer = 0x1000},
                       {.kind = TILERT_ARG_POINTER, .u.pointer = 0x2000}, {.kind = TILERT_ARG_INT, .u.i = -7}};
  CHECK_OK(tilert_launch_create(k, grid, args, 4, &l, &err));
  return l;
}

/* One driver call per packed launch, with the right arguments. */
static void
test_packed(TilertDevice *d)
{
  TilertModule *m;
  uint32_t grid[3] = {5, 6, 7}, none[3] = {5, 0, 7};
  int wrapped;
  TilertStream *s;
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  CHECK_OK(tilert_stream_wrap(d, &wrapped, &s, &err));
  int before = fake->total;
  for (int i = 0; i < 10; i++)
    CHECK_OK(tilert_launch_packed(l, s, &err));
  CHECK(fake->total - before == 10 && fake->launch.count == 10);
  CHECK(fake->launch.grid[0] == 5 && fake->launch.grid[1] == 6 && fake->launch.grid[2] == 7);
  CHECK(fake->launch.block[0] == 32 && fake->launch.block[1] == 1 && fake->launch.stream == &wrapped);
  CHECK(*(float *)fake->launch.params[0] == 2 && *(uint64_t *)fake->launch.params[2] == 0x2000);
  CHECK(*(int32_t *)fake->launch.params[3] == -7);
  CHECK_OK(tilert_launch_set_grid(l, none, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->total - before == 10);
  tilert_stream_destroy(s);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  CHECK(fake->modules == 0 && fake->streams == 0);
}

/* Blocks of any shape, and more shared memory than the manifest says. */
static void
test_shape(TilertDevice *d)
{
  TilertModule *m;
  uint32_t grid[3] = {5, 6, 7}, block[3] = {8, 4, 2};
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  CHECK_OK(tilert_launch_set_shape(l, block, 60000, &err));
  CHECK(fake->dynamic_shared == 60000);
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.block[0] == 8 && fake->launch.block[1] == 4 && fake->launch.block[2] == 2 && fake->launch.shared == 60000);
  tilert_device_cancel(d);             /* cannot, and does no harm */
  CHECK(tilert_device_fault(d, NULL, 0) == 0);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
}

/* Clusters by launch take the driver's other call; of more than 8 blocks an attribute, too, which a kernel that says so itself has from the
 * start. */
static void
test_clusters(TilertDevice *d)
{
  TilertModule *m;
  uint32_t grid[3] = {6, 6, 8}, odd[3] = {6, 6, 7}, two[3] = {2, 1, 1}, pair[3] = {1, 3, 4}, none[3] = {2, 0, 1}, many[3] = {4, 4, 2};
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  CHECK_OK(tilert_launch_set_cluster(l, two, &err));
  CHECK(fake->large_clusters == 0);
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.cluster[0] == 2 && fake->launch.cluster[2] == 1 && fake->launch.grid[2] == 8 && fake->launch.block[0] == 32);
  CHECK_OK(tilert_launch_set_cluster(l, pair, &err));
  CHECK(fake->large_clusters == 1);
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.cluster[0] == 1 && fake->launch.cluster[1] == 3 && fake->launch.cluster[2] == 4);
  CHECK_FAILS(tilert_launch_set_cluster(l, none, &err), TILERT_E_ARGUMENT, "a cluster of 2 x 0 x 1 blocks: 1 to 16");
  CHECK_FAILS(tilert_launch_set_cluster(l, many, &err), TILERT_E_ARGUMENT, "a cluster of 4 x 4 x 2 blocks");
  CHECK_OK(tilert_launch_set_grid(l, odd, &err));
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_ARGUMENT, "kernel axpy: a grid of 6 x 6 x 7 blocks is no multiple of the cluster's 1 x 3 x 4");
  fake->launch_result = 1;
  CHECK_OK(tilert_launch_set_grid(l, grid, &err));
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_DRIVER, "kernel axpy: cuLaunchKernelEx: ");
  fake->launch_result = fake->large_clusters = 0;
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  for (fake->required_cluster = 2; fake->required_cluster < 4; fake->required_cluster++) {
    load(d, "axpy", &m);
    CHECK(fake->large_clusters == (fake->required_cluster == 3));
    tilert_module_destroy(m);
  }
  fake->required_cluster = fake->large_clusters = 0;
}

/* Programmatic dependent launch is another attribute of the same call, with a cluster or without; a launch without either takes the plain call. */
static void
test_pdl(TilertDevice *d)
{
  TilertModule *m;
  uint32_t grid[3] = {6, 1, 1}, two[3] = {2, 1, 1};
  TilertKernel *again = load(d, "axpy", &m);
  TilertLaunch *l = pack(again, grid);
  CHECK_OK(tilert_launch_set_pdl(l, 1, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.extended && fake->launch.pdl == 1 && fake->launch.cluster[0] == 0 && fake->launch.grid[0] == 6 && fake->launch.block[0] == 32);
  CHECK_OK(tilert_launch_set_cluster(l, two, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.pdl == 1 && fake->launch.cluster[0] == 2 && fake->launch.cluster[1] == 1);
  CHECK_OK(tilert_launch_set_pdl(l, 0, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(!fake->launch.pdl && fake->launch.cluster[0] == 2);
  tilert_launch_destroy(l);
  l = pack(again, grid);
  CHECK_OK(tilert_launch_set_pdl(l, 1, &err));
  CHECK_OK(tilert_launch_set_pdl(l, 0, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(!fake->launch.extended);
  CHECK_OK(tilert_launch_set_pdl(l, TILERT_PDL_AUTO, &err));       /* it does not say that it waits */
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(!fake->launch.extended);
  tilert_launch_destroy(l);
  char waits[4096];
  const char *rest = strstr(axpy_ptx, " target=");
  snprintf(waits, sizeof waits, "%.*s waits=1%s", (int)(rest - axpy_ptx), axpy_ptx, rest);
  TilertModule *other;
  CHECK_OK(tilert_module_load(d, waits, strlen(waits), NULL, 0, &other, &err));
  CHECK_OK(tilert_module_kernel(other, "axpy", &again, &err));
  l = pack(again, grid);
  CHECK_OK(tilert_launch_set_pdl(l, TILERT_PDL_AUTO, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->launch.extended && fake->launch.pdl == 1);
  tilert_launch_destroy(l);
  tilert_module_destroy(other);
  tilert_module_destroy(m);
  TilertDevice *old;
  fake->capability = 80;
  CHECK_OK(tilert_device_open("cuda", NULL, &old, &err));
  fake->capability = 90;
  l = pack(load(old, "axpy", &m), grid);
  CHECK_FAILS(tilert_launch_set_pdl(l, 1, &err), TILERT_E_UNAVAILABLE, "kernel axpy: Fake GPU has no programmatic dependent launch");
  CHECK_OK(tilert_launch_set_pdl(l, 0, &err));
  CHECK_OK(tilert_launch_set_pdl(l, TILERT_PDL_AUTO, &err));
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  tilert_device_close(old);
}

/* A tensor's parts as the driver gets them: a map by its encoder, with everything from the innermost dimension. What is refused late leaves
 * everything as it was. */
static void
test_tensor(TilertDevice *d)
{
  static const char ptx[] = "//@tilec kernel=k warps=1 params=a:tensor:f32:rank=3:map=2x8x16:swizzle=64,a:tensor:f32:rank=3:extent=1,"
                            "a:tensor:f32:rank=3:stride=0:8,a:tensor:f32:rank=3:base:32,n:scalar:i32\n.version 8.0\n";
  static const int64_t extents[] = {3, 40, 72}, strides[] = {4000, 80, 1}, wider[] = {8000, 160, 1};
  static const uint64_t map[] = {7, 3, 4096, 40, 320, 8, 1, 2, 2, 0, 3, 16000, 2, 72, 16};   /* as fakecuda.c writes it */
  const uint32_t grid[3] = {1, 1, 1};
  TilertTensorArg a = {.address = 4096, .rank = 3, .extents = extents, .strides = strides};
  TilertArg args[] = {{.kind = TILERT_ARG_TENSOR, .u.tensor = &a}, {.kind = TILERT_ARG_INT, .u.i = 5}};
  TilertModule *m;
  TilertKernel *k;
  TilertLaunch *l;
  CHECK_OK(tilert_module_load(d, ptx, sizeof ptx - 1, NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK_OK(tilert_launch_create(k, grid, args, 2, &l, &err));
  int before = fake->total;
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK(fake->total - before == 1);
  void *const *params = fake->launch.params;
  CHECK(!memcmp(params[0], map, sizeof map) && (uintptr_t)params[0] % 64 == 0);
  CHECK(*(int32_t *)params[1] == 40 && *(int64_t *)params[2] == 4000 && *(uint64_t *)params[3] == 4096 && *(int32_t *)params[4] == 5);
  a = (TilertTensorArg){.address = 8208, .rank = 3, .extents = extents, .strides = wider};
  CHECK_FAILS(tilert_launch_set_arg(l, 0, args, &err), TILERT_E_ARGUMENT,
              "kernel k, argument 0 (a): address 0x2010 is not a multiple of 32, which the kernel was compiled for");
  CHECK(!memcmp(params[0], map, sizeof map) && *(int64_t *)params[2] == 4000 && *(uint64_t *)params[3] == 4096);
  a.address = 8192;
  CHECK_OK(tilert_launch_set_arg(l, 0, args, &err));
  CHECK(((uint64_t *)params[0])[2] == 8192 && ((uint64_t *)params[0])[4] == 640 && *(int64_t *)params[2] == 8000 && *(uint64_t *)params[3] == 8192);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
}

/* Maps of what a pointer leads to are made of what is given, and again when that changes; what they need is said in terms of arguments. */
static void
test_views(TilertDevice *d)
{
  static const char ptx[] = "//@tilec kernel=k warps=1 params=p:ptr:f32:4,m:scalar:i32,s:scalar:i16:nonneg,"
                            "p:view:f32:rank=3:map=1x8x16:swizzle=64:of=0:extents=2x$1x72:strides=8*$1*$2x$2\n.version 8.0\n";
  static const uint64_t map[] = {7, 3, 4096, 40, 320, 8, 1, 2, 2, 0, 2, 102400, 1, 72, 16}, other[] = {7, 3, 8192, 50, 320, 8, 1, 2, 2, 0, 2, 128000, 1, 72, 16};
  static const uint32_t grid[3] = {1, 1, 1};
  static const struct { uint64_t p; int64_t m, s; const char *says; } rows[] = {
    {0, 40, 80, "kernel k, argument 0 (p): it is copied in boxes, and null"},
    {4100, 40, 80, "kernel k, argument 0 (p): it is copied in boxes, and address 0x1004 is no multiple of 16 bytes"},
    {4096, 0, 80, "kernel k, argument 0 (p): it is copied in boxes, and extent 1 of that, m, is 0: 1 to 2^31 - 1 are possible"},
    {4096, 40, 81, "kernel k, argument 0 (p): it is copied in boxes, and stride 1 of that, s, is 81: multiples of 16 bytes are possible"},
    {4096, 40, 0, "stride 0 of that, 8 * m * s, is 0: 1 element to 2^40 bytes are possible"},
    {4096, 40, -80, "kernel k, argument 2 (s): -80 is negative, which the kernel was not compiled for"},
  };
  TilertArg args[] = {{.kind = TILERT_ARG_POINTER, .u.pointer = 4096}, {.kind = TILERT_ARG_INT, .u.i = 40}, {.kind = TILERT_ARG_INT, .u.i = 80}};
  TilertModule *m;
  TilertKernel *k;
  TilertLaunch *l;
  CHECK_OK(tilert_module_load(d, ptx, sizeof ptx - 1, NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK(tilert_kernel_fits(k, args, 3));
  CHECK_OK(tilert_launch_create(k, grid, args, 3, &l, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  void *const *params = fake->launch.params;
  CHECK(!memcmp(params[3], map, sizeof map) && (uintptr_t)params[3] % 64 == 0 && *(uint64_t *)params[0] == 4096);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const TilertArg bad[] = {{.kind = TILERT_ARG_POINTER, .u.pointer = rows[i].p}, {.kind = TILERT_ARG_INT, .u.i = rows[i].m},
                             {.kind = TILERT_ARG_INT, .u.i = rows[i].s}};
    CHECK(!tilert_kernel_fits(k, bad, 3));
    CHECK_FAILS(tilert_launch(NULL, k, grid, bad, 3, &err), TILERT_E_ARGUMENT, rows[i].says);
    for (size_t a = 0; a < 3; a++)
      if (memcmp(&bad[a].u, &args[a].u, sizeof bad[a].u.i))
        CHECK_FAILS(tilert_launch_set_arg(l, a, &bad[a], &err), TILERT_E_ARGUMENT, "");
    CHECK(!memcmp(params[3], map, sizeof map) && *(uint64_t *)params[0] == 4096 && *(int32_t *)params[1] == 40);
  }
  args[0].u.pointer = 8192;
  args[1].u.i = 50;
  CHECK_OK(tilert_launch_set_arg(l, 0, &args[0], &err));
  CHECK_OK(tilert_launch_set_arg(l, 1, &args[1], &err));
  CHECK(!memcmp(params[3], other, sizeof other));
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
}

/* Strides that are not given: of dense rows, whatever extents of 1 stand in between; and those of dimensions with one index. */
static void
test_strides(TilertDevice *d)
{
  static const char ptx[] = "//@tilec kernel=k warps=1 params=a:tensor:f32:rank=4:stride=0,a:tensor:f32:rank=4:stride=1,a:tensor:f32:rank=4:stride=2,"
                            "a:tensor:f32:rank=4:stride=3\n.version 8.0\n";
  static const struct { int64_t extents[4], given[4], want[4]; } rows[] = {
    {{5, 3, 1, 18}, {0}, {54, 18, 20, 1}},
    {{1, 3, 2, 18}, {0}, {108, 36, 18, 1}},
    {{5, 3, 1, 18}, {200, 50, -7, 1}, {200, 50, 20, 1}},
    {{2, 1, 1, 1}, {9, -1, -1, -1}, {9, 4, 4, 1}},
    {{2, INT32_MAX, INT32_MAX, 0}, {1 << 30, 1, 1, 1}, {1 << 30, 1, 1, 1}},
    {{1, INT32_MAX, INT32_MAX, INT32_MAX}, {1, 1, 1, 1}, {4, 1, 1, 1}},
  };
  const uint32_t grid[3] = {1, 1, 1};
  TilertModule *m;
  TilertKernel *k;
  CHECK_OK(tilert_module_load(d, ptx, sizeof ptx - 1, NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const TilertTensorArg a = {.address = 4096, .rank = 4, .extents = rows[i].extents, .strides = rows[i].given[0] ? rows[i].given : NULL};
    const TilertArg arg = {.kind = TILERT_ARG_TENSOR, .u.tensor = &a};
    TilertLaunch *l;
    CHECK_OK(tilert_launch_create(k, grid, &arg, 1, &l, &err));
    CHECK_OK(tilert_launch_packed(l, NULL, &err));
    for (int n = 0; n < 4; n++)
      CHECK(*(int64_t *)fake->launch.params[n] == rows[i].want[n]);
    tilert_launch_destroy(l);
  }
  static const int64_t large[4] = {2, INT32_MAX, INT32_MAX, INT32_MAX};
  const TilertTensorArg a = {.address = 4096, .rank = 4, .extents = large};
  const TilertArg arg = {.kind = TILERT_ARG_TENSOR, .u.tensor = &a};
  CHECK_FAILS(tilert_launch(NULL, k, grid, &arg, 1, &err), TILERT_E_ARGUMENT, "stride 1 is 4611686014132420609 elements; it has to be less than 2^40 bytes");
  tilert_module_destroy(m);
}

static void *
encode_here(void *user)
{
  static const uint64_t extents[] = {64, 9}, strides[] = {128};
  static const uint32_t box[] = {64, 8}, steps[] = {1, 2};
  static _Alignas(64) uint64_t map[16];
  const TilertTensor t = {.type = 6, .rank = 2, .address = 4096, .extents = extents, .strides = strides, .box = box, .steps = steps};
  CHECK_OK(tilert_tensor_map(user, &t, map, &err));
  CHECK(map[0] == 6 && map[2] == 4096);
  return NULL;
}

/* A thread without a context gets one for a driver that asks for it. */
static void
test_map_context(TilertDevice *d)
{
  pthread_t t;
  fake->map_needs_context = 1;
  CHECK(!pthread_create(&t, NULL, encode_here, d));
  pthread_join(t, NULL);
  encode_here(d);
  fake->map_needs_context = 0;
}

/* The driver's number and the row of 16 elements of each type. */
static void
test_map_types(TilertDevice *d)
{
  static const struct { const char *type; uint64_t number, bytes; } rows[] = {
    {"i1", 0, 1}, {"i8", 0, 1}, {"u8", 0, 1}, {"f8e4m3", 0, 1}, {"f8e5m2", 0, 1}, {"i16", 1, 2}, {"u16", 1, 2}, {"u32", 2, 4}, {"i32", 3, 4},
    {"u64", 4, 8}, {"i64", 5, 8}, {"f16", 6, 2}, {"f32", 7, 4}, {"f64", 8, 8}, {"bf16", 9, 2},
  };
  static const int64_t extents[] = {4, 48};
  const uint32_t grid[3] = {1, 1, 1};
  TilertTensorArg a = {.address = 4096, .rank = 2, .extents = extents};
  const TilertArg arg = {.kind = TILERT_ARG_TENSOR, .u.tensor = &a};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char ptx[200];
    TilertModule *m;
    TilertKernel *k;
    TilertLaunch *l;
    snprintf(ptx, sizeof ptx, "//@tilec kernel=k warps=1 params=a:tensor:%s:rank=2:map=4x16:swizzle=128\n.version 8.0\n", rows[i].type);
    CHECK_OK(tilert_module_load(d, ptx, strlen(ptx), NULL, 0, &m, &err));
    CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
    CHECK_OK(tilert_launch_create(k, grid, &arg, 1, &l, &err));
    CHECK_OK(tilert_launch_packed(l, NULL, &err));
    const uint64_t *map = fake->launch.params[0];
    CHECK(map[0] == rows[i].number && map[4] == 48 * rows[i].bytes && map[7] == 3);
    tilert_launch_destroy(l);
    tilert_module_destroy(m);
  }
}

static void *
launch_twice(void *user)
{
  int before = fake->total;
  CHECK_OK(tilert_launch_packed(user, NULL, &err)); /* refused, context found and set, launched again */
  CHECK(fake->total - before == 4);
  CHECK_OK(tilert_launch_packed(user, NULL, &err));
  CHECK(fake->total - before == 5);
  make_foreign_current(1);
  CHECK_OK(tilert_launch_packed(user, NULL, &err)); /* another library's context: pushed, popped */
  CHECK(fake->total - before == 10);
  CHECK_OK(tilert_launch_packed(user, NULL, &err));
  CHECK(fake->total - before == 15);
  return NULL;
}

/* A thread without a context, or with another's, still launches. */
static void
test_contexts(TilertDevice *d)
{
  TilertModule *m;
  pthread_t t;
  uint32_t grid[3] = {1, 1, 1};
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  CHECK(!pthread_create(&t, NULL, launch_twice, l));
  pthread_join(t, NULL);
  tilert_module_destroy(m);
  tilert_launch_destroy(l);
}

static void
test_tensor_map(TilertDevice *d)
{
  static const uint64_t extents[] = {64, 9}, strides[] = {128};
  static const uint32_t box[] = {64, 8}, steps[] = {1, 2};
  static _Alignas(64) uint64_t map[16];
  TilertTensor t = {.type = 6, .swizzle = 3, .rank = 2, .address = 4096, .extents = extents, .strides = strides, .box = box, .steps = steps};
  CHECK_OK(tilert_tensor_map(d, &t, map, &err));
  CHECK(map[0] == 6 && map[1] == 2 && map[2] == 4096 && map[3] == 9 && map[4] == 128 && map[5] == 8 && map[6] == 2 && map[7] == 3);
  t.interleave = 3;
  CHECK_FAILS(tilert_tensor_map(d, &t, map, &err), TILERT_E_ARGUMENT, "the hardware has no such map");
  static const uint64_t volume[] = {64, 9, 7, 2}, apart[] = {128, 1152, 8064};
  static const uint32_t each[] = {1, 2, 1, 1};
  static const int32_t lower[] = {-1, -2}, upper[] = {-3, -4};
  const TilertPixels pixels = {lower, upper, 32, 100};
  TilertTensor images = {.type = 9, .swizzle = 2, .promotion = 1, .rank = 4, .address = 8192, .extents = volume, .strides = apart, .steps = each};
  const int64_t want[] = {9, 4, 8192, 7, 1152, -2, -4, 32, 100, 1, 2, 1, 0};
  CHECK_OK(tilert_tensor_map_im2col(d, &images, &pixels, map, &err));
  CHECK(!memcmp(map, want, sizeof want));
  images.interleave = 3;
  CHECK_FAILS(tilert_tensor_map_im2col(d, &images, &pixels, map, &err), TILERT_E_ARGUMENT, "the hardware has no such map: cuTensorMapEncodeIm2col");
  images.rank = 2;
  CHECK_FAILS(tilert_tensor_map_im2col(d, &images, &pixels, map, &err), TILERT_E_ARGUMENT, "rank 2: 3 to 5 are possible");
  t.rank = 6;
  CHECK_FAILS(tilert_tensor_map(d, &t, map, &err), TILERT_E_ARGUMENT, "rank 6");
}

static void
test_kernel(TilertDevice *d)
{
  TilertModule *m;
  TilertKernelInfo info;
  uint32_t blocks;
  TilertKernel *k = load(d, "wild", &m);
  CHECK_OK(tilert_kernel_info(k, &info, &err));
  CHECK(info.registers == 34 && info.local_bytes == 33 && info.static_shared == 31 && info.dynamic_shared == 128);
  CHECK_OK(tilert_kernel_occupancy(k, &blocks, &err));
  CHECK(blocks == 3);
  test_tensor_map(d);
  tilert_module_destroy(m);
}

static void
test_module_errors(TilertDevice *d)
{
  TilertModule *m;
#define LOAD(text) tilert_module_load(d, text, strlen(text), NULL, 0, &m, &err)
  CHECK_FAILS(LOAD("//@tilec kernel=k warps=1\nreject me\n"), TILERT_E_MODULE, "line 3; error : Parsing error");
  CHECK_FAILS(LOAD("//@tilec kernel=k warps=1\nlater\n"), TILERT_E_MODULE, "line 3; error : Parsing error");
  CHECK(!calls("cuModuleLoadDataEx"));
  CHECK_FAILS(LOAD("//@tilec kernel=absent warps=1\n"), TILERT_E_DRIVER, "kernel absent: cuModuleGetFunction");
  CHECK_FAILS(LOAD("//@tilec kernel=k warps=32\n"), TILERT_E_UNAVAILABLE, "wants 1024 threads");
  CHECK_OK(LOAD("//@tilec kernel=k warps=4 shared=100000\n"));
  CHECK(fake->dynamic_shared == 100000);
  tilert_module_destroy(m);
  CHECK_FAILS(LOAD("//@tilec kernel=k warps=4 shared=300000\n"), TILERT_E_UNAVAILABLE, "has 232448 per block");
  CHECK(fake->modules == 0);
}

/* What keeps more of its registers in memory than ptxas is trusted with is loaded again, optimised less; what it has arrays there for is not. */
static void
test_spills(TilertDevice *d)
{
  static const struct { const char *text; int local, loads, level; } rows[] = {
    {"//@tilec kernel=k warps=4\n", 2048, 1, 0},
    {"//@tilec kernel=k warps=4\n", 2049, 2, 1},
    {"//@tilec kernel=k warps=4\n.local .b8 depot[4000];\n", 4000, 1, 0},
    {"\177ELF", 4000, 1, 0},
  };
  static const TilertManifest k = {.kernel = "k", .warps = 4};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    TilertModule *m;
    const int before = calls("cuLibraryLoadData");
    const int cubin = rows[i].text[0] == '\177';
    fake->local = rows[i].local;
    CHECK_OK(tilert_module_load(d, rows[i].text, strlen(rows[i].text), cubin ? &k : NULL, (size_t)cubin, &m, &err));
    CHECK(calls("cuLibraryLoadData") - before == rows[i].loads && fake->level == rows[i].level && fake->modules == 1);
    tilert_module_destroy(m);
  }
  fake->local = 0;
  CHECK(fake->modules == 0);
}

static void
test_launch_errors(TilertDevice *d)
{
  TilertModule *m;
  uint32_t grid[3] = {1, 1, 1};
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  fake->launch_result = 701;
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_DRIVER, "kernel axpy: cuLaunchKernel: CUDA_ERROR_FAKE (701)");
  fake->launch_result = 0;
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
}

/* ---- a lost device: each on a device of its own, as it stays lost ---- */

typedef struct Loss { TilertDevice *d; TilertModule *m; TilertStream *s, *other; TilertLaunch *axpy, *wild; } Loss;

static void
loss_open(Loss *l)
{
  uint32_t grid[3] = {5, 6, 7};
  TilertKernel *k;
  TilertArg args[2] = {{.kind = TILERT_ARG_POINTER}, {.kind = TILERT_ARG_INT, .u.i = 4}};
  CHECK_OK(tilert_device_open("cuda", NULL, &l->d, &err));
  CHECK_OK(tilert_stream_create(l->d, &l->s, &err));
  CHECK_OK(tilert_stream_create(l->d, &l->other, &err));
  l->axpy = pack(load(l->d, "axpy", &l->m), grid);
  CHECK_OK(tilert_module_kernel(l->m, "wild", &k, &err));
  CHECK_OK(tilert_launch_create(k, grid, args, 2, &l->wild, &err));
  fake->sync_result = fake->alloc_result = fake->launch_result = 0;
}

static void
loss_close(Loss *l)
{
  fake->sync_result = fake->alloc_result = fake->launch_result = 0;
  tilert_launch_destroy(l->axpy);
  tilert_launch_destroy(l->wild);
  tilert_stream_destroy(l->s);
  tilert_stream_destroy(l->other);
  tilert_module_destroy(l->m);
  tilert_device_close(l->d);
}

#define LOST "the device was lost by a fault in "

static void
test_one_suspect(void)
{
  Loss l;
  TilertBuffer *b;
  loss_open(&l);
  CHECK_OK(tilert_launch_packed(l.wild, l.s, &err));
  CHECK_OK(tilert_stream_synchronize(l.s, &err));              /* it ended well */
  CHECK_OK(tilert_launch_packed(l.wild, NULL, &err));
  CHECK_OK(tilert_device_synchronize(l.d, &err));              /* so did this one */
  fake->launch_result = 701;
  CHECK_FAILS(tilert_launch_packed(l.wild, NULL, &err), TILERT_E_DRIVER, "(701)");   /* and this was none */
  fake->launch_result = 0;
  CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  fake->sync_result = fake->alloc_result = 700;
  CHECK_FAILS(tilert_stream_synchronize(l.s, &err), TILERT_E_FAULT,
              LOST "kernel axpy (launch 4, grid (5, 6, 7)); run it on the device \"sim\" to find the line: cuStreamSynchronize: CUDA");
  CHECK_FAILS(tilert_buffer_create(l.d, 8, &b, &err), TILERT_E_FAULT, LOST "kernel axpy (launch 4, grid (5, 6, 7)); run it");
  CHECK(!strncmp(err.message, LOST, strlen(LOST)) && strstr(err.message, "cuMemAlloc"));
  fake->launch_result = 719;
  CHECK_FAILS(tilert_launch_packed(l.wild, NULL, &err), TILERT_E_FAULT, LOST "kernel axpy");
  CHECK(!strncmp(err.message, LOST, strlen(LOST)));
  fake->alloc_result = 2;
  CHECK_FAILS(tilert_buffer_create(l.d, 8, &b, &err), TILERT_E_FAULT, LOST "kernel axpy");   /* whatever it is called by now */
  loss_close(&l);
}

static void
test_suspects(void)
{
  Loss l;
  char text[64];
  loss_open(&l);
  CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  CHECK_OK(tilert_launch_packed(l.wild, l.other, &err));
  CHECK_OK(tilert_stream_synchronize(l.s, &err));              /* only one stream was waited for */
  for (int i = 0; i < 100; i++)
    CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  CHECK_OK(tilert_stream_synchronize(l.s, &err));
  CHECK_OK(tilert_launch_packed(l.wild, l.other, &err));
  CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  fake->sync_result = 716;
  CHECK_FAILS(tilert_device_synchronize(l.d, &err), TILERT_E_FAULT,
              LOST "kernel axpy (launch 104, grid (5, 6, 7)) or wild (launch 103, grid (5, 6, 7)); run it");
  loss_close(&l);
  loss_open(&l);
  for (int i = 0; i < 100; i++)
    CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  fake->sync_result = 700;
  snprintf(text, sizeof text, "axpy (launch 98, grid (5, 6, 7)) or one of %d others", 32 - 3);
  CHECK_FAILS(tilert_stream_synchronize(l.s, &err), TILERT_E_FAULT, text);
  loss_close(&l);
}

static void
test_blame(void)
{
  Loss l;
  loss_open(&l);
  fake->sync_result = 700;
  CHECK_FAILS(tilert_device_synchronize(l.d, &err), TILERT_E_FAULT, LOST "a kernel that was not launched here: cuCtxSynchronize");
  loss_close(&l);
  loss_open(&l);
  CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  fake->launch_result = 700;                                   /* the one before, as this one did not run */
  CHECK_FAILS(tilert_launch_packed(l.wild, l.s, &err), TILERT_E_FAULT, LOST "kernel axpy (launch 1, grid (5, 6, 7)); run");
  loss_close(&l);
  loss_open(&l);
  CHECK_OK(tilert_launch_packed(l.axpy, l.s, &err));
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  fake->launch_result = 700;
  CHECK_FAILS(tilert_launch_packed(l.wild, l.s, &err), TILERT_E_FAULT, LOST "kernel wild (launch 2, grid (5, 6, 7)); run");
  unsetenv("CUDA_LAUNCH_BLOCKING");
  loss_close(&l);
}

static void
test_bench(TilertDevice *d)
{
  TilertModule *m;
  TilertBench b;
  uint32_t grid[3] = {1, 1, 1};
  TilertLaunch *l = pack(load(d, "axpy", &m), grid);
  CHECK_OK(tilert_bench_launch(l, NULL, 5, 20, &b, &err));
  CHECK(b.runs == 20 && b.median_ms == 1 && b.min_ms == 1 && b.p80_ms == 1);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  CHECK(fake->events == 0 && fake->allocations == 0 && fake->streams == 0);
}

int
main(void)
{
  TilertDevice *d;
  TilertStats stats;
  find_fake();
  test_device();
  test_target(80, "sm_80");
  test_target(86, "sm_80");
  test_target(89, "sm_89");
  test_target(100, "sm_100a");
  test_target(121, "sm_89");
  test_target(75, "");
  CHECK_OK(tilert_device_open("cuda:0", NULL, &d, &err));
  test_memory(d);
  test_packed(d);
  test_shape(d);
  test_clusters(d);
  test_pdl(d);
  test_tensor(d);
  test_map_types(d);
  test_strides(d);
  test_views(d);
  test_map_context(d);
  test_contexts(d);
  test_kernel(d);
  test_module_errors(d);
  test_spills(d);
  test_launch_errors(d);
  test_bench(d);
  CHECK_FAILS(tilert_device_stats(d, &stats, &err), TILERT_E_UNAVAILABLE, "simulator");
  tilert_device_close(d);
  test_one_suspect();
  test_suspects();
  test_blame();
  CHECK(fake->retained == 0 && fake->modules == 0 && fake->streams == 0);
  return 0;
}
