/* The runtime on the simulator: devices, buffers, streams, events, launches and every refusal. */
#include <pthread.h>
#include "check.h"
#include "kernels.h"
#include "tilert.h"

static _Thread_local TilertError err;

static TilertArg
arg_int(int64_t v)
{
  return (TilertArg){.kind = TILERT_ARG_INT, .u.i = v};
}

static TilertArg
arg_float(double v)
{
  return (TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = v};
}

static TilertArg
arg_buffer(TilertBuffer *b)
{
  return (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = b};
}

static TilertArg
arg_pointer(uint64_t address)
{
  return (TilertArg){.kind = TILERT_ARG_POINTER, .u.pointer = address};
}

static void
test_specs(void)
{
  TilertDevice *d;
  CHECK_FAILS(tilert_device_open("opencl", NULL, &d, &err), TILERT_E_ARGUMENT, "opencl");
  CHECK_FAILS(tilert_device_open("cuda:x", NULL, &d, &err), TILERT_E_ARGUMENT, "cuda:x");
  CHECK_FAILS(tilert_device_open("cuda:-1", NULL, &d, &err), TILERT_E_ARGUMENT, "cuda:-1");
  CHECK_FAILS(tilert_device_open("cuda:1x", NULL, &d, &err), TILERT_E_ARGUMENT, "cuda:1x");
  CHECK(!d);
  CHECK(tilert_device_open("nonsense", NULL, &d, NULL) == TILERT_E_ARGUMENT);
  CHECK_OK(tilert_device_open(NULL, NULL, &d, &err));
  tilert_device_close(d);
  tilert_device_close(NULL);
  CHECK(!strcmp(tilert_status_name(TILERT_E_FAULT), "fault") && !strcmp(tilert_status_name(99), "unknown"));
}

static void
test_buffers(TilertDevice *d)
{
  TilertBuffer *a, *b;
  uint32_t words[4] = {1, 2, 3, 4}, back[4];
  CHECK_OK(tilert_buffer_create(d, 16, &a, &err));
  CHECK_OK(tilert_buffer_create(d, 16, &b, &err));
  CHECK(tilert_buffer_address(a) % 256 == 0 && tilert_buffer_size(a) == 16);
  CHECK_OK(tilert_buffer_write(a, 0, words, 16, NULL, &err));
  CHECK_OK(tilert_buffer_copy(b, 0, a, 0, 16, NULL, &err));
  CHECK_OK(tilert_buffer_fill(b, 4, 8, 0xabcd, 2, NULL, &err));
  CHECK_OK(tilert_buffer_read(b, 0, back, 16, NULL, &err));
  CHECK(back[0] == 1 && back[1] == 0xabcdabcd && back[2] == 0xabcdabcd && back[3] == 4);
  CHECK_FAILS(tilert_buffer_write(a, 8, words, 16, NULL, &err), TILERT_E_ARGUMENT, "outside the buffer of 16");
  CHECK_FAILS(tilert_buffer_read(a, SIZE_MAX, back, 2, NULL, &err), TILERT_E_ARGUMENT, "outside");
  CHECK_FAILS(tilert_buffer_fill(a, 0, 6, 0, 4, NULL, &err), TILERT_E_ARGUMENT, "width");
  CHECK_OK(tilert_buffer_write(a, 16, words, 0, NULL, &err));
  tilert_buffer_destroy(a);
  tilert_buffer_destroy(b);
  CHECK_OK(tilert_buffer_create(d, 0, &a, &err));
  tilert_buffer_destroy(a);
  tilert_buffer_destroy(NULL);
}

static void
test_events(TilertDevice *d)
{
  TilertStream *s;
  TilertEvent *from, *to;
  float ms = -1;
  CHECK_OK(tilert_stream_create(d, &s, &err));
  CHECK_OK(tilert_event_create(d, &from, &err));
  CHECK_OK(tilert_event_create(d, &to, &err));
  CHECK_OK(tilert_event_record(from, s, &err));
  CHECK_FAILS(tilert_event_elapsed(from, to, &ms, &err), TILERT_E_ARGUMENT, "never recorded");
  CHECK_OK(tilert_event_record(to, s, &err));
  CHECK_OK(tilert_event_elapsed(from, to, &ms, &err));
  CHECK(ms >= 0 && ms < 1000);
  CHECK_OK(tilert_stream_synchronize(s, &err));
  CHECK_OK(tilert_device_synchronize(d, &err));
  tilert_event_destroy(from);
  tilert_event_destroy(to);
  tilert_stream_destroy(s);
}

typedef struct Axpy { TilertModule *module; TilertKernel *kernel; TilertBuffer *x, *y; } Axpy;

enum { N = 100 };

static Axpy
axpy_setup(TilertDevice *d)
{
  Axpy t;
  float x[N], y[N];
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  CHECK_OK(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &t.module, &err));
  CHECK_OK(tilert_module_kernel(t.module, "axpy", &t.kernel, &err));
  CHECK_OK(tilert_buffer_create(d, sizeof x, &t.x, &err));
  CHECK_OK(tilert_buffer_create(d, sizeof y, &t.y, &err));
  CHECK_OK(tilert_buffer_write(t.x, 0, x, sizeof x, NULL, &err));
  CHECK_OK(tilert_buffer_write(t.y, 0, y, sizeof y, NULL, &err));
  return t;
}

static void
axpy_expect(const Axpy *t, float a)
{
  float y[N];
  CHECK_OK(tilert_buffer_read(t->y, 0, y, sizeof y, NULL, &err));
  for (int i = 0; i < N; i++)
    CHECK(y[i] == a * (float)i + 1);
}

static void
axpy_finish(Axpy *t)
{
  tilert_buffer_destroy(t->x);
  tilert_buffer_destroy(t->y);
  tilert_module_destroy(t->module);
}

/* Grids that the kernel says, cdiv(n, 32). */
static void
test_own_grid(TilertDevice *d)
{
  Axpy t = axpy_setup(d);
  TilertArg args[4] = {arg_float(0.5), arg_buffer(t.x), arg_pointer(tilert_buffer_address(t.y)), arg_int(N)};
  TilertLaunch *l;
  uint32_t grid[3];
  CHECK_OK(tilert_kernel_grid(t.kernel, args, 4, grid, &err));
  CHECK(grid[0] == (N + 31) / 32 && grid[1] == 1 && grid[2] == 1);
  CHECK_OK(tilert_launch(NULL, t.kernel, NULL, args, 4, &err));
  axpy_expect(&t, 0.5f);
  args[3] = arg_int(33);
  CHECK_OK(tilert_launch_create(t.kernel, NULL, args, 4, &l, &err));
  CHECK_OK(tilert_launch_grid(l, grid, &err));
  CHECK(grid[0] == 2);
  tilert_launch_destroy(l);
  args[3] = arg_int(-33);
  CHECK_FAILS(tilert_launch(NULL, t.kernel, NULL, args, 4, &err), TILERT_E_ARGUMENT, "its grid has -1 programs along axis 0");
  args[3] = arg_float(1);
  CHECK_FAILS(tilert_launch(NULL, t.kernel, NULL, args, 4, &err), TILERT_E_ARGUMENT, "argument 3 (n: i32): a floating-point number");
  axpy_finish(&t);
}

/* Of a grid x, y, z as many blocks run as should, and they are told the grid. */
static void
expect_told(TilertBuffer *p, uint32_t x, uint32_t y, uint32_t z, uint32_t blocks)
{
  uint32_t told[4];
  CHECK_OK(tilert_buffer_read(p, 0, told, sizeof told, NULL, &err));
  CHECK(told[0] == x && told[1] == y && told[2] == z && told[3] == blocks);
}

/* A persistent kernel: two programs a multiprocessor at most, of which this simulator has three. */
static void
test_persistent(void)
{
  TilertDevice *d;
  TilertModule *m;
  TilertKernel *k;
  TilertBuffer *p;
  TilertLaunch *l;
  uint32_t many[3] = {5, 4, 3}, few[3] = {2, 1, 1}, full[3] = {6, 1, 1}, none[3] = {5, 0, 3}, most[3] = {0x7fffffff, 1, 1}, grid[3];
  CHECK_FAILS(tilert_device_open("sim:0", NULL, &d, &err), TILERT_E_ARGUMENT, "sim:0");
  CHECK_FAILS(tilert_device_open("sim:2x", NULL, &d, &err), TILERT_E_ARGUMENT, "sim:2x");
  CHECK_OK(tilert_device_open("sim:3", NULL, &d, &err));
  CHECK(tilert_device_info(d)->multiprocessors == 3);
  CHECK_OK(tilert_module_load(d, told_ptx, sizeof told_ptx - 1, NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK_OK(tilert_buffer_create(d, 16, &p, &err));
  TilertArg arg = arg_buffer(p);
  CHECK_OK(tilert_launch(NULL, k, many, &arg, 1, &err));
  expect_told(p, 5, 4, 3, 6);
  CHECK_OK(tilert_launch(NULL, k, few, &arg, 1, &err));
  expect_told(p, 2, 1, 1, 2);
  CHECK_OK(tilert_launch(NULL, k, none, &arg, 1, &err));
  expect_told(p, 2, 1, 1, 2);
  CHECK_FAILS(tilert_launch(NULL, k, most, &arg, 1, &err), TILERT_E_ARGUMENT, "at most 2147483641 programs");
  CHECK_OK(tilert_launch_create(k, many, &arg, 1, &l, &err));
  CHECK_OK(tilert_launch_grid(l, grid, &err));
  CHECK(!memcmp(grid, many, sizeof grid));
  CHECK_OK(tilert_launch_set_grid(l, full, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  expect_told(p, 6, 1, 1, 6);
  tilert_launch_destroy(l);
  tilert_buffer_destroy(p);
  tilert_module_destroy(m);
  tilert_device_close(d);
}

static void
test_launch(TilertDevice *d)
{
  Axpy t = axpy_setup(d);
  TilertArg args[4] = {arg_float(0.5), arg_buffer(t.x), arg_pointer(tilert_buffer_address(t.y)), arg_int(N)};
  uint32_t grid[3] = {4, 1, 1};
  TilertStats stats;
  TilertKernelInfo info;
  CHECK_OK(tilert_device_stats_reset(d, &err));
  for (int axis = 0; axis < 3; axis++) {
    uint32_t none[3] = {4, 1, 1};
    none[axis] = 0;
    CHECK_OK(tilert_launch(NULL, t.kernel, none, args, 4, &err));
  }
  CHECK_OK(tilert_launch(NULL, t.kernel, grid, args, 4, &err));
  axpy_expect(&t, 0.5f);
  CHECK_OK(tilert_device_stats(d, &stats, &err));
  CHECK(stats.launches == 1 && stats.blocks == 4);
  CHECK_OK(tilert_kernel_info(t.kernel, &info, &err));
  CHECK(info.threads == 32 && info.dynamic_shared == 0);
  axpy_finish(&t);
}

static void
test_packed(TilertDevice *d)
{
  Axpy t = axpy_setup(d);
  TilertArg args[4] = {arg_int(1), arg_buffer(t.x), arg_buffer(t.y), arg_int(N)}, more = arg_int(N + 1);
  uint32_t grid[3] = {1, 1, 1}, full[3] = {4, 1, 1}, bad[3] = {1, 65536, 1};
  TilertLaunch *l;
  TilertBench b;
  CHECK_OK(tilert_launch_create(t.kernel, grid, args, 4, &l, &err));
  CHECK_FAILS(tilert_launch_set_grid(l, bad, &err), TILERT_E_ARGUMENT, "65535");
  CHECK_FAILS(tilert_launch_set_arg(l, 4, &more, &err), TILERT_E_ARGUMENT, "none at 4");
  CHECK_OK(tilert_launch_set_grid(l, full, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  axpy_expect(&t, 1);
  args[0] = arg_float(2.5);
  CHECK_OK(tilert_launch_set_arg(l, 0, &args[0], &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  axpy_expect(&t, 3.5f);
  CHECK_OK(tilert_bench_launch(l, NULL, 0, 1, &b, &err));
  CHECK(b.runs >= 1 && b.min_ms <= b.median_ms && b.median_ms <= b.max_ms);
  axpy_finish(&t);
  tilert_launch_destroy(l); /* it kept its module alive */
}

static void
test_refusals(TilertDevice *d)
{
  Axpy t = axpy_setup(d);
  TilertDevice *other;
  TilertStream *s;
  TilertArg good[4] = {arg_float(0.5), arg_buffer(t.x), arg_buffer(t.y), arg_int(N)}, args[4];
  uint32_t grid[3] = {4, 1, 1}, bad[3] = {1, 1, 70000};
#define WITH(i, arg) (memcpy(args, good, sizeof args), args[i] = (arg), tilert_launch(NULL, t.kernel, grid, args, 4, &err))
  CHECK_FAILS(tilert_launch(NULL, t.kernel, grid, good, 3, &err), TILERT_E_ARGUMENT, "axpy takes 4 arguments; 3");
  CHECK_FAILS(tilert_launch(NULL, t.kernel, bad, good, 4, &err), TILERT_E_ARGUMENT, "component 2 is more than 65535");
  CHECK_FAILS(WITH(3, arg_float(1)), TILERT_E_ARGUMENT, "argument 3 (n: i32): a floating-point number is given");
  CHECK_FAILS(WITH(3, arg_int(INT64_C(1) << 40)), TILERT_E_ARGUMENT, "argument 3 (n): 1099511627776 does not fit i32");
  CHECK_FAILS(WITH(3, arg_buffer(t.x)), TILERT_E_ARGUMENT, "a buffer is given");
  CHECK_FAILS(WITH(1, arg_int(5)), TILERT_E_ARGUMENT, "argument 1 (x: *f32): an integer is given");
  CHECK_FAILS(WITH(1, arg_buffer(NULL)), TILERT_E_ARGUMENT, "the buffer is NULL");
  CHECK_FAILS(WITH(1, arg_pointer(64)), TILERT_E_ARGUMENT, "kernel axpy, argument 1 (x)");
  CHECK_FAILS(WITH(2, arg_pointer(tilert_buffer_address(t.y) + 4)), TILERT_E_ARGUMENT, "not a multiple of 16");
  CHECK_FAILS(WITH(0, ((TilertArg){.kind = 77})), TILERT_E_ARGUMENT, "unknown kind");
  CHECK_OK(tilert_device_open("sim", NULL, &other, &err));
  CHECK_OK(tilert_stream_create(other, &s, &err));
  CHECK_FAILS(tilert_launch(s, t.kernel, grid, good, 4, &err), TILERT_E_ARGUMENT, "the stream is of");
  CHECK_FAILS(tilert_buffer_write(t.x, 0, grid, 4, s, &err), TILERT_E_ARGUMENT, "different devices");
  tilert_device_close(other);
  tilert_stream_destroy(s); /* it kept its device open */
  axpy_finish(&t);
#undef WITH
}

/* What a kernel takes for two pointers must be two. */
static void
test_apart(TilertDevice *d)
{
  static char text[sizeof axpy_ptx + 16];
  const char *end = strstr(axpy_ptx, "\n");
  snprintf(text, sizeof text, "%.*s apart=1:2%s", (int)(end - axpy_ptx), axpy_ptx, end);
  Axpy t = axpy_setup(d);
  TilertModule *mod;
  TilertKernel *k;
  TilertLaunch *l;
  TilertManifest m;
  TilertArg args[4] = {arg_float(0.5), arg_buffer(t.x), arg_buffer(t.y), arg_int(N)}, y = args[2];
  uint32_t grid[3] = {4, 1, 1};
  CHECK_OK(tilert_module_load(d, text, strlen(text), NULL, 0, &mod, &err));
  CHECK_OK(tilert_module_kernel(mod, "axpy", &k, &err));
  CHECK_OK(tilert_launch(NULL, k, grid, args, 4, &err));
  CHECK_OK(tilert_launch_create(k, grid, args, 4, &l, &err));
  args[2] = arg_pointer(tilert_buffer_address(t.x));
  CHECK_FAILS(tilert_launch(NULL, k, grid, args, 4, &err), TILERT_E_ARGUMENT,
              "kernel axpy: arguments 1 (x) and 2 (y) are the same address, 0x");
  CHECK_FAILS(tilert_launch_set_arg(l, 2, &args[2], &err), TILERT_E_ARGUMENT, "the kernel was compiled for different ones");
  CHECK_OK(tilert_buffer_fill(t.x, 0, 4 * N, 0, 4, NULL, &err));
  CHECK_OK(tilert_buffer_fill(t.y, 0, 4 * N, 0, 4, NULL, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));   /* it has kept what it had */
  CHECK_OK(tilert_launch_set_arg(l, 2, &y, &err));
  CHECK_OK(tilert_launch(NULL, t.kernel, grid, args, 4, &err));   /* the same code without the promise */
  args[1] = args[2] = arg_pointer(0);
  args[3] = arg_int(0);
  CHECK_OK(tilert_launch(NULL, k, grid, args, 4, &err));          /* null reaches nothing */
  m = *tilert_kernel_manifest(k);
  tilert_launch_destroy(l);
  tilert_module_destroy(mod);
  m.apart[0] = 2;                                                 /* a is no pointer */
  CHECK_FAILS(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), &m, 1, &mod, &err), TILERT_E_ARGUMENT, "no pointers");
  m.apart[0] = 0;
  m.apart[1] = UINT64_C(1) << 63;
  CHECK_FAILS(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), &m, 1, &mod, &err), TILERT_E_ARGUMENT, "no pointers");
  axpy_finish(&t);
}

static void
test_modules(TilertDevice *d)
{
  static TilertManifest m;
  TilertModule *mod;
  TilertKernel *k;
  static const char bare[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n";
  static const char broken[] = "//@tilec kernel=k warps=1\n.version 7.0\n.target sm_80\n.visible .entry k( {";
  CHECK_FAILS(tilert_module_load(d, bare, strlen(bare), NULL, 0, &mod, &err), TILERT_E_MODULE, "//@tilec");
  CHECK_FAILS(tilert_module_load(d, broken, strlen(broken), NULL, 0, &mod, &err), TILERT_E_MODULE, "PTX line");
  CHECK_FAILS(tilert_module_load(d, "\177ELF    ", 8, NULL, 0, &mod, &err), TILERT_E_ARGUMENT, "cubin");
  strcpy(m.kernel, "k");
  CHECK_FAILS(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err), TILERT_E_ARGUMENT, "malformed");
  m.warps = 4;
  m.shared = 1 << 20;
  CHECK_FAILS(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err), TILERT_E_UNAVAILABLE, "1048576 bytes");
  m.shared = 0;
  CHECK_FAILS(tilert_module_load(d, "\177ELF    ", 8, &m, 1, &mod, &err), TILERT_E_UNAVAILABLE, "simulator");
  CHECK_OK(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err));
  CHECK_OK(tilert_module_kernel(mod, NULL, &k, &err));
  CHECK(tilert_module_kernel_count(mod) == 1 && !strcmp(tilert_kernel_manifest(k)->kernel, "k"));
  CHECK_FAILS(tilert_module_kernel(mod, "q", &k, &err), TILERT_E_ARGUMENT, "no kernel \"q\"");
  tilert_module_destroy(mod);
  strcpy(m.kernel, "absent");
  CHECK(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err) != TILERT_OK && !mod);
  strcpy(m.kernel, "k");
  m.nparams = 1;
  m.params[0] = (TilertParam){.name = "x", .kind = TILERT_PARAM_SCALAR, .dtype = "i32", .size = 4, .divisible = 1};
  CHECK_FAILS(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err), TILERT_E_MODULE, "parameters");
  m.params[0].size = 40;
  CHECK_FAILS(tilert_module_load(d, bare, strlen(bare), &m, 1, &mod, &err), TILERT_E_ARGUMENT, "malformed");
}

/* What a kernel was compiled for is refused if it is not so: y null, x not null. */
static void
test_null(TilertDevice *d)
{
  static char text[sizeof axpy_ptx + 16];
  static const char x_was[] = "x:ptr:f32", y_was[] = "y:ptr:f32:16";
  const char *x = strstr(axpy_ptx, x_was), *y = strstr(axpy_ptx, y_was);
  snprintf(text, sizeof text, "%.*s%s:nonnull,y:ptr:f32:null%s", (int)(x - axpy_ptx), axpy_ptx, x_was, y + strlen(y_was));
  Axpy t = axpy_setup(d);
  TilertModule *mod;
  TilertKernel *k;
  TilertArg args[4] = {arg_float(0.5), arg_buffer(t.x), arg_pointer(0), arg_int(0)};
  uint32_t grid[3] = {1, 1, 1};
  CHECK_OK(tilert_module_load(d, text, strlen(text), NULL, 0, &mod, &err));
  CHECK_OK(tilert_module_kernel(mod, "axpy", &k, &err));
  CHECK_OK(tilert_launch(NULL, k, grid, args, 4, &err));
  args[1] = arg_pointer(0);
  CHECK_FAILS(tilert_launch(NULL, k, grid, args, 4, &err), TILERT_E_ARGUMENT, "argument 1 (x): it is null, which");
  args[1] = arg_buffer(t.x);
  args[2] = arg_buffer(t.y);
  CHECK_FAILS(tilert_launch(NULL, k, grid, args, 4, &err), TILERT_E_ARGUMENT, "argument 2 (y): it is not null; the kernel");
  tilert_module_destroy(mod);
  axpy_finish(&t);
}

static void
test_fault(TilertDevice *d)
{
  Axpy t = axpy_setup(d);
  TilertKernel *k;
  TilertArg args[2] = {arg_buffer(t.x), arg_int(1 << 20)};
  uint32_t grid[3] = {1, 1, 1};
  CHECK_OK(tilert_module_kernel(t.module, "wild", &k, &err));
  CHECK_FAILS(tilert_launch(NULL, k, grid, args, 2, &err), TILERT_E_FAULT, "wild.tile:7");
  CHECK(err.line == 7 && !strcmp(err.file, "wild.tile"));
  args[1] = arg_int(2);
  CHECK_FAILS(tilert_launch(NULL, k, grid, args, 2, &err), TILERT_E_ARGUMENT, "2 is not a multiple of 4");
  args[1] = arg_int(4);
  CHECK_OK(tilert_launch(NULL, k, grid, args, 2, &err)); /* a fault leaves the simulator usable */
  axpy_finish(&t);
}

static void *
thread_main(void *user)
{
  Axpy t = axpy_setup(user);
  TilertArg args[4] = {arg_float(0.25), arg_buffer(t.x), arg_buffer(t.y), arg_int(N)};
  uint32_t grid[3] = {4, 1, 1};
  for (int i = 0; i < 4; i++)
    CHECK_OK(tilert_launch(NULL, t.kernel, grid, args, 4, &err));
  axpy_expect(&t, 1);
  axpy_finish(&t);
  return NULL;
}

static void
test_threads(TilertDevice *d)
{
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&threads[i], NULL, thread_main, d));
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
}

static void
test_tensor_map(TilertDevice *d)
{
  static const uint64_t extents[] = {64, 9}, strides[] = {128}, odd[] = {136};
  static const uint32_t box[] = {64, 8}, steps[] = {1, 1};
  static _Alignas(64) char map[192];
  TilertTensor t = {.type = 6, .swizzle = 3, .rank = 2, .address = 4096, .extents = extents, .strides = strides, .box = box, .steps = steps};
  CHECK_OK(tilert_tensor_map(d, &t, map, &err));
  CHECK_FAILS(tilert_tensor_map(d, &t, map + 8, &err), TILERT_E_ARGUMENT, "aligned to 64");
  t.strides = odd;
  CHECK_FAILS(tilert_tensor_map(d, &t, map, &err), TILERT_E_ARGUMENT, "136 bytes");
  t.strides = NULL;
  CHECK_FAILS(tilert_tensor_map(d, &t, map, &err), TILERT_E_ARGUMENT, "strides");
  t.rank = 0;
  CHECK_FAILS(tilert_tensor_map(d, &t, map, &err), TILERT_E_ARGUMENT, "rank 0");
  t.rank = 1;
  CHECK_OK(tilert_tensor_map(d, &t, map, &err));
  static const uint64_t volume[] = {64, 9, 7}, apart[] = {128, 1152};
  static const uint32_t each[] = {1, 1, 1};
  static const int32_t lower[] = {-1}, upper[] = {-1}, far[] = {1 << 20};
  TilertPixels pixels = {lower, upper, 64, 8};
  t = (TilertTensor){.type = 6, .swizzle = 3, .rank = 3, .address = 4096, .extents = volume, .strides = apart, .steps = each};
  CHECK_OK(tilert_tensor_map_im2col(d, &t, &pixels, map, &err));
  CHECK_FAILS(tilert_tensor_map_im2col(d, &t, &pixels, map + 8, &err), TILERT_E_ARGUMENT, "aligned to 64");
  pixels.lower = far;
  CHECK_FAILS(tilert_tensor_map_im2col(d, &t, &pixels, map, &err), TILERT_E_ARGUMENT, "corners");
  t.rank = 2;
  CHECK_FAILS(tilert_tensor_map_im2col(d, &t, &pixels, map, &err), TILERT_E_ARGUMENT, "rank 2: 3 to 5 are possible");
}

int
main(void)
{
  TilertDevice *d;
  test_specs();
  CHECK_OK(tilert_device_open("sim", NULL, &d, &err));
  CHECK(tilert_device_info(d)->is_sim && tilert_device_info(d)->shared_max > 48 * 1024);
  test_buffers(d);
  test_events(d);
  test_modules(d);
  test_own_grid(d);
  test_persistent();
  test_launch(d);
  test_packed(d);
  test_refusals(d);
  test_null(d);
  test_apart(d);
  test_tensor_map(d);
  test_fault(d);
  test_threads(d);
  tilert_device_close(d);
  return 0;
}
