/* Tensor arguments on the simulator: every rule and its words, the packing of each part, boxes by maps of each kind, and launches that
 * fail without an effect. tensors.ptx has the kernels. */
#include "check.h"
#include "tilert.h"
#include <stdint.h>

enum { M = 13, N = 72, PITCH = 80, BOX_ROWS = 8, BOX = 64, ACROSS = 2, DOWN = 2 };

static TilertError err;
static TilertDevice *dev;
static TilertModule *module;

static TilertKernel *
kernel(const char *name)
{
  TilertKernel *k;
  CHECK_OK(tilert_module_kernel(module, name, &k, &err));
  return k;
}

static void
load(void)
{
  FILE *f = fopen(TENSORS_PTX, "r");
  static char text[1 << 14];
  CHECK(f);
  size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  CHECK(n < sizeof text);
  CHECK_OK(tilert_module_load(dev, text, n, NULL, 0, &module, &err));
}

static TilertBuffer *
buffer(size_t bytes, const void *from)
{
  TilertBuffer *b;
  CHECK_OK(tilert_buffer_create(dev, bytes, &b, &err));
  if (from)
    CHECK_OK(tilert_buffer_write(b, 0, from, bytes, NULL, &err));
  return b;
}

static TilertArg
tensor(const TilertTensorArg *t)
{
  return (TilertArg){.kind = TILERT_ARG_TENSOR, .u.tensor = t};
}

static TilertArg
of_buffer(TilertBuffer *b)
{
  return (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = b};
}

/* ---- boxes ---- */

/* Where a byte of a box lies that is swizzled by 128: the 16-byte pieces of a row of 128 are mixed by the row's number among 8. */
static size_t
swizzled(size_t at)
{
  return at ^ (at >> 7 & 7) << 4;
}

/* a is M x N in memory with a pitch, b is dense; a box of 8 x 64 is 1024 bytes. */
static void
check_boxes(const char *name, int is_swizzled)
{
  static uint16_t a[M * PITCH], b[M * N], raw[ACROSS * DOWN * BOX_ROWS * BOX];
  static const int64_t extents[] = {M, N}, strides[] = {PITCH, 1};
  const uint32_t grid[3] = {ACROSS, DOWN, 1};
  for (uint32_t i = 0; i < M * PITCH; i++)
    a[i] = (uint16_t)(i + 1);
  TilertBuffer *at = buffer(sizeof a, a), *bt = buffer(sizeof b, NULL), *rt = buffer(sizeof raw, NULL);
  TilertTensorArg from = {.buffer = at, .rank = 2, .extents = extents, .strides = strides}, to = {.buffer = bt, .rank = 2, .extents = extents};
  const TilertArg args[] = {tensor(&from), tensor(&to), of_buffer(rt)};
  CHECK_OK(tilert_launch(NULL, kernel(name), grid, args, 3, &err));
  CHECK_OK(tilert_buffer_read(bt, 0, b, sizeof b, NULL, &err));
  CHECK_OK(tilert_buffer_read(rt, 0, raw, sizeof raw, NULL, &err));
  for (uint32_t i = 0; i < M * N; i++)
    CHECK(b[i] == a[i / N * PITCH + i % N]);
  for (uint32_t i = 0; i < ACROSS * DOWN * BOX_ROWS * BOX; i++) {
    uint32_t box = i / (BOX_ROWS * BOX), row = box / ACROSS * BOX_ROWS + i / BOX % BOX_ROWS, column = box % ACROSS * BOX + i % BOX;
    size_t inside = i % (BOX_ROWS * BOX) * 2, lies = is_swizzled ? swizzled(inside) : inside;
    CHECK(raw[box * BOX_ROWS * BOX + lies / 2] == (row < M && column < N ? a[row * PITCH + column] : 0));
  }
  tilert_buffer_destroy(at);
  tilert_buffer_destroy(bt);
  tilert_buffer_destroy(rt);
}

/* Rank 1, in the middle of a buffer; y ends in the middle of a box. Its last 16 bytes are written whole: two zeros more. */
static void
test_rank_1(void)
{
  enum { COUNT = 150, BEFORE = 4 };
  static int32_t a[COUNT + BEFORE], y[COUNT + 10];
  static const int64_t extents[] = {COUNT};
  const uint32_t grid[3] = {3, 1, 1};
  for (int i = 0; i < COUNT + BEFORE; i++)
    a[i] = i;
  for (int i = 0; i < COUNT + 10; i++)
    y[i] = -1;
  TilertBuffer *at = buffer(sizeof a, a), *yt = buffer(sizeof y, y);
  TilertTensorArg from = {.buffer = at, .address = BEFORE * 4, .rank = 1, .extents = extents}, to = {.address = tilert_buffer_address(yt), .rank = 1, .extents = extents};
  const TilertArg args[] = {tensor(&from), tensor(&to), {.kind = TILERT_ARG_INT, .u.i = COUNT}};
  CHECK_OK(tilert_launch(NULL, kernel("row"), grid, args, 3, &err));
  CHECK_OK(tilert_buffer_read(yt, 0, y, sizeof y, NULL, &err));
  for (int i = 0; i < COUNT + 10; i++)
    CHECK(y[i] == (i < COUNT ? i + BEFORE : i < COUNT + 2 ? 0 : -1));
  tilert_buffer_destroy(at);
  tilert_buffer_destroy(yt);
}

/* ---- address, extents, strides ---- */

/* Rows with any pitch, also one that no map could have; bound, and then given others. */
static void
test_rows(void)
{
  enum { ROWS = 5, COLUMNS = 37, WIDE = 41 };
  static float a[ROWS * WIDE], y[ROWS * COLUMNS];
  int64_t extents[] = {ROWS, COLUMNS}, strides[] = {WIDE, 1};
  const uint32_t grid[3] = {ROWS, 1, 1};
  for (int i = 0; i < ROWS * WIDE; i++)
    a[i] = (float)i;
  TilertBuffer *at = buffer(sizeof a, a), *yt = buffer(sizeof y, y);
  TilertTensorArg from = {.buffer = at, .rank = 2, .extents = extents, .strides = strides};
  TilertArg args[] = {tensor(&from), of_buffer(yt)};
  TilertLaunch *l;
  CHECK_OK(tilert_launch_create(kernel("rows"), grid, args, 2, &l, &err));
  extents[0] = extents[1] = strides[0] = -7;       /* not kept */
  for (int n = 0; n < 2; n++)
    CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_buffer_read(yt, 0, y, sizeof y, NULL, &err));
  for (int i = 0; i < ROWS * COLUMNS; i++)
    CHECK(y[i] == (float)(i / COLUMNS * WIDE + i % COLUMNS));
  CHECK_FAILS(tilert_launch_set_arg(l, 0, args, &err), TILERT_E_ARGUMENT, "kernel rows, argument 0 (a): extent 0 is -7: 0 to 2^31 - 1 are possible");
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  extents[0] = 2;                                  /* the dense matrix of two rows behind the first one */
  extents[1] = COLUMNS;
  from = (TilertTensorArg){.buffer = at, .address = 4 * WIDE, .rank = 2, .extents = extents};
  CHECK_OK(tilert_launch_set_arg(l, 0, args, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_buffer_read(yt, 0, y, sizeof y, NULL, &err));
  for (int i = 0; i < ROWS * COLUMNS; i++)
    CHECK(y[i] == (float)(i < 2 * COLUMNS ? WIDE + i : i / COLUMNS * WIDE + i % COLUMNS));
  tilert_launch_destroy(l);
  tilert_buffer_destroy(at);
  tilert_buffer_destroy(yt);
}

/* ---- the rules ---- */

static TilertBuffer *big, *out;

/* One tensor of two dimensions in place of a good one. */
static int
try_pair(const char *name, uint64_t address, int64_t rows, int64_t columns, int64_t stride, int64_t last)
{
  const uint32_t grid[3] = {1, 1, 1};
  const int64_t extents[] = {rows, columns}, strides[] = {stride, last}, small[] = {8, 64};
  int is_boxes = strcmp(name, "rows") != 0 && strcmp(name, "aligned") != 0;
  TilertTensorArg a = {.buffer = big, .address = address, .rank = 2, .extents = extents, .strides = stride ? strides : NULL};
  TilertTensorArg b = {.buffer = big, .address = 1 << 19, .rank = 2, .extents = small};
  const TilertArg args[] = {tensor(&a), is_boxes ? tensor(&b) : of_buffer(out), of_buffer(out)};
  TilertLaunch *l = NULL;
  int status = tilert_launch_create(kernel(name), grid, args, is_boxes ? 3 : 2, &l, &err);
  if (!status)
    status = tilert_launch_packed(l, NULL, &err);
  tilert_launch_destroy(l);
  return status;
}

#define REFUSED(kernel_name, address, m, n, stride, last, text) \
  CHECK_FAILS(try_pair(kernel_name, address, m, n, stride, last), TILERT_E_ARGUMENT, "kernel " kernel_name ", argument 0 (a): " text)

static void
test_rules(void)
{
  big = buffer(1 << 20, NULL);
  out = buffer(4096, NULL);
  CHECK_OK(tilert_buffer_fill(big, 0, 1 << 20, 0, 4, NULL, &err));
  CHECK_OK(try_pair("boxes", 0, 8, 64, 64, 1));
  CHECK_OK(try_pair("boxes", 16, 8, 57, 64, 1));
  REFUSED("boxes", 8, 8, 64, 64, 1, "address 0x");
  CHECK(strstr(err.message, "8 is not a multiple of 16 bytes, which copies of boxes need"));
  REFUSED("boxes", 0, 8, 64, 68, 1, "stride 0 is 68 elements, 136 bytes; copies of boxes need a multiple of 16 bytes");
  REFUSED("boxes", 0, 8, 60, 0, 0, "stride 0 is 60 elements, 120 bytes; copies of boxes need a multiple of 16 bytes");
  REFUSED("boxes", 0, 8, 64, 64, 2, "stride 1, the last, is 2 elements; it has to be 1");
  REFUSED("boxes", 0, 8, 64, -64, 1, "stride 0 is -64 elements; it has to be positive");
  REFUSED("boxes", 0, 8, 64, INT64_C(1) << 39, 1, "stride 0 is 549755813888 elements; it has to be less than 2^40 bytes");
  REFUSED("boxes", 0, INT64_C(1) << 31, 64, 64, 1, "extent 0 is 2147483648: 0 to 2^31 - 1 are possible");
  REFUSED("boxes", 0, 8, -1, 64, 1, "extent 1 is -1: 0 to 2^31 - 1 are possible");
  REFUSED("boxes", 0, 8194, 64, 64, 1, "it begins 0 bytes into a buffer of 1048576, and 8193 times stride 0 (64 elements) leads beyond that");
  REFUSED("boxes", 16, 8192, 64, 64, 1, "it begins 16 bytes into a buffer of 1048576, and takes 1048576");
  REFUSED("boxes", 1 << 21, 1, 64, 64, 1, "it begins 2097152 bytes into a buffer of 1048576, and 63 times stride 1 (1 elements) leads beyond that");
  REFUSED("boxes", 1 << 20, 1, 1, 64, 1, "it begins 1048576 bytes into a buffer of 1048576, and takes 2");
  CHECK_OK(try_pair("boxes", 0, 1, 60, 3, 1));             /* of one row the stride does not matter */
  CHECK_OK(try_pair("boxes", 0, 1, 60, 0, 1));
  CHECK_OK(try_pair("boxes", 0, 5, 1, 64, 7));
  CHECK_OK(try_pair("boxes", 0, 8192, 64, 64, 1));
  CHECK_OK(try_pair("rows", 4, 3, 5, 7, 1));               /* without boxes any address and pitch go */
  CHECK_OK(try_pair("aligned", 8, 4, 5, 8, 1));
  REFUSED("aligned", 4, 4, 5, 8, 1, "address 0x");
  CHECK(strstr(err.message, "is not a multiple of 8, which the kernel was compiled for"));
  REFUSED("aligned", 8, 5, 5, 8, 1, "extent 0 is 5, which is not a multiple of 2, which the kernel was compiled for");
  REFUSED("aligned", 8, 4, 5, 6, 1, "stride 0 is 6, which is not a multiple of 4, which the kernel was compiled for");
}

/* What is given instead of a tensor. */
static void
test_kinds(void)
{
  static const int64_t extents[] = {8, 64, 1};
  const uint32_t grid[3] = {1, 1, 1};
  TilertDevice *other;
  TilertBuffer *theirs;
  TilertTensorArg good = {.buffer = big, .rank = 2, .extents = extents}, b = {.buffer = big, .address = 4096, .rank = 2, .extents = extents}, bad = good;
  TilertArg args[] = {tensor(&good), tensor(&b), of_buffer(big)};
#define GIVEN(text) \
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), grid, args, 3, &err), TILERT_E_ARGUMENT, "kernel boxes, argument 0 (a" text)
  CHECK_OK(tilert_launch(NULL, kernel("boxes"), grid, args, 3, &err));
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), grid, args, 2, &err), TILERT_E_ARGUMENT, "kernel boxes takes 3 arguments; 2 are given");
  args[0] = of_buffer(big);
  GIVEN(": tensor<f16, 2>): a buffer is given");
  args[0] = (TilertArg){.kind = TILERT_ARG_BYTES, .u.bytes = extents};
  GIVEN(": tensor<f16, 2>): bytes is given");
  args[0] = tensor(NULL);
  GIVEN("): the tensor is NULL");
  args[0] = tensor(&bad);
  bad.rank = 3;
  GIVEN("): a tensor of rank 3 is given; the kernel takes rank 2");
  bad = (TilertTensorArg){.buffer = big, .rank = 2};
  GIVEN("): its extents are NULL");
  bad = (TilertTensorArg){.rank = 2, .extents = extents};
  GIVEN("): it has elements, and its address is null");
  bad = (TilertTensorArg){.address = 4096, .rank = 2, .extents = extents};
  GIVEN("): ");
  CHECK(strstr(err.message, "0x1000"));
  CHECK_OK(tilert_device_open("sim", NULL, &other, &err));
  CHECK_OK(tilert_buffer_create(other, 1024, &theirs, &err));
  bad = (TilertTensorArg){.buffer = theirs, .rank = 2, .extents = extents};
  GIVEN("): the buffer is of another device");
  tilert_buffer_destroy(theirs);
  tilert_device_close(other);
  args[0] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = big};
  args[2] = tensor(&good);
  args[0] = tensor(&good);
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), grid, args, 3, &err), TILERT_E_ARGUMENT, "argument 2 (raw: *f16): a tensor is given");
  args[1] = tensor(&good);
  args[2] = of_buffer(big);
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), grid, args, 3, &err), TILERT_E_ARGUMENT, "arguments 0 (a) and 1 (b) are the same address");
}

/* Of no elements: an empty grid goes, and any grid where the kernel copies no boxes. */
static void
test_empty(void)
{
  static const int64_t extents[] = {0, 64}, full[] = {8, 64}, thin[] = {4, 0};
  const uint32_t one[3] = {1, 1, 1}, none[3] = {0, 1, 1};
  TilertTensorArg a = {.rank = 2, .extents = extents}, b = {.buffer = big, .rank = 2, .extents = full};
  TilertArg args[] = {tensor(&a), tensor(&b), of_buffer(out)}, rows[] = {tensor(&a), of_buffer(out)};
  TilertLaunch *l;
  static const char says[] = "kernel boxes, argument 0 (a): it has no element, and the kernel copies boxes of it";
  CHECK_OK(tilert_launch(NULL, kernel("boxes"), none, args, 3, &err));
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), one, args, 3, &err), TILERT_E_ARGUMENT, says);
  CHECK_OK(tilert_launch_create(kernel("boxes"), none, args, 3, &l, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_launch_set_grid(l, one, &err));
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_ARGUMENT, says);
  a = (TilertTensorArg){.buffer = big, .address = 8192, .rank = 2, .extents = full};
  CHECK_OK(tilert_launch_set_arg(l, 0, args, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  a.address = 0;
  CHECK_FAILS(tilert_launch_set_arg(l, 0, args, &err), TILERT_E_ARGUMENT, "are the same address");
  CHECK_OK(tilert_launch_packed(l, NULL, &err));           /* with what it had before */
  tilert_launch_destroy(l);
  a = (TilertTensorArg){.rank = 2, .extents = extents};
  CHECK_OK(tilert_launch(NULL, kernel("rows"), one, rows, 2, &err));
  a.extents = thin;
  CHECK_OK(tilert_launch(NULL, kernel("rows"), one, rows, 2, &err));
  tilert_buffer_destroy(big);
  tilert_buffer_destroy(out);
}

/* What the simulator finds in the memory of a map is told by the argument's name. */
static void
test_fault(void)
{
  static const int64_t extents[] = {8, 64};
  const uint32_t one[3] = {1, 1, 1};
  TilertBuffer *at = buffer(4096, NULL), *bt = buffer(4096, NULL);
  TilertTensorArg a = {.buffer = at, .address = 1024, .rank = 2, .extents = extents}, b = {.buffer = bt, .rank = 2, .extents = extents};
  const TilertArg args[] = {tensor(&a), tensor(&b), of_buffer(bt)};
  CHECK_FAILS(tilert_launch(NULL, kernel("boxes"), one, args, 3, &err), TILERT_E_FAULT, " a[0");
  tilert_buffer_destroy(at);
  tilert_buffer_destroy(bt);
}

/* A manifest that is not read from a line is checked as one that is. */
static void
test_manifests(void)
{
  static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 a[128]) { ret; }\n";
  static const TilertManifest good = {.kernel = "k", .target = "sm_90a", .warps = 1, .nparams = 1, .params = {{
    .name = "a", .kind = TILERT_PARAM_TENSOR, .dtype = "f16", .size = 128, .divisible = 1, .part = TILERT_TENSOR_MAP, .rank = 1, .box = {64}}}};
  TilertManifest m = good;
  TilertModule *made = NULL;
  CHECK_OK(tilert_module_load(dev, ptx, sizeof ptx - 1, &m, 1, &made, &err));
  tilert_module_destroy(made);
#define MALFORMED(text) CHECK_FAILS(tilert_module_load(dev, ptx, sizeof ptx - 1, &m, 1, &made, &err), TILERT_E_ARGUMENT, text)
  m.params[0].box[0] = 60;
  MALFORMED("the manifest of kernel k, parameter a: the rows of a box are no multiple of 16 bytes");
  m = good;
  m.params[0].size = 64;
  MALFORMED("kernel k, parameter a: malformed manifest");
  m = good;
  m.params[0].part = (TilertTensorPart)9;
  MALFORMED("unknown part of tensor");
  m = good;
  m.params[1] = m.params[0];
  m.params[1].rank = 2;
  m.params[1].box[1] = 64;
  m.nparams = 2;
  MALFORMED("the manifest of kernel k: the parts of a tensor differ in rank or type");
}

/* Where boxes are stored rows end with a whole piece. */
static void
test_stored(void)
{
  static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 a[128]) { ret; }\n";
  TilertManifest m = {.kernel = "k", .target = "sm_90a", .warps = 1, .nparams = 1, .params = {{
    .name = "a", .kind = TILERT_PARAM_TENSOR, .dtype = "f16", .size = 128, .divisible = 1, .part = TILERT_TENSOR_MAP, .rank = 2, .box = {8, 64}}}};
  const uint32_t grid[3] = {1, 1, 1};
  static const int64_t extents[] = {8, 60}, strides[] = {64, 1};
  TilertBuffer *at = buffer(1 << 10, NULL);
  TilertTensorArg a = {.buffer = at, .rank = 2, .extents = extents, .strides = strides};
  const TilertArg arg = tensor(&a);
  for (m.params[0].stored = 0; m.params[0].stored < 2; m.params[0].stored++) {
    TilertModule *made = NULL;
    TilertKernel *k = NULL;
    CHECK_OK(tilert_module_load(dev, ptx, sizeof ptx - 1, &m, 1, &made, &err));
    CHECK_OK(tilert_module_kernel(made, "k", &k, &err));
    if (!m.params[0].stored)
      CHECK_OK(tilert_launch(NULL, k, grid, &arg, 1, &err));
    else
      CHECK_FAILS(tilert_launch(NULL, k, grid, &arg, 1, &err), TILERT_E_ARGUMENT,
                  "argument 0 (a): extent 1, the last, is 60 elements, 120 bytes; stores of boxes need a multiple of 16 bytes");
    tilert_module_destroy(made);
  }
  tilert_buffer_destroy(at);
}

/* Through a window there has to be a pixel. */
static void
test_window(void)
{
  static const char ptx[] = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 a[128]) { ret; }\n";
  const TilertManifest m = {.kernel = "k", .target = "sm_90a", .warps = 1, .nparams = 1, .params = {{
    .name = "a", .kind = TILERT_PARAM_TENSOR, .dtype = "f16", .size = 128, .divisible = 1, .part = TILERT_TENSOR_MAP, .rank = 4, .box = {1, 1, 1, 64},
    .pixels = 16, .lower = {-1, 0}, .upper = {-3, -4}, .steps = {2, 1}}}};
  const uint32_t grid[3] = {1, 1, 1};
  int64_t extents[] = {2, 2, 5, 8};
  TilertBuffer *at = buffer(1 << 12, NULL);
  TilertTensorArg a = {.buffer = at, .rank = 4, .extents = extents};
  const TilertArg arg = tensor(&a);
  TilertModule *made = NULL;
  TilertKernel *k = NULL;
  CHECK_OK(tilert_module_load(dev, ptx, sizeof ptx - 1, &m, 1, &made, &err));
  CHECK_OK(tilert_module_kernel(made, "k", &k, &err));
  CHECK_FAILS(tilert_launch(NULL, k, grid, &arg, 1, &err), TILERT_E_ARGUMENT,
              "argument 0 (a): extent 1 is 2, and the window along it goes from -1 to -2: it has no pixel");
  CHECK(!tilert_kernel_fits(k, &arg, 1));
  extents[1] = 3;
  CHECK_OK(tilert_launch(NULL, k, grid, &arg, 1, &err));
  CHECK(tilert_kernel_fits(k, &arg, 1));
  extents[2] = 4;
  CHECK_FAILS(tilert_launch(NULL, k, grid, &arg, 1, &err), TILERT_E_ARGUMENT, "extent 2 is 4, and the window along it goes from 0 to -1");
  tilert_module_destroy(made);
  tilert_buffer_destroy(at);
}

/* Launches of the simulator are in order whatever they may. */
static void
test_pdl(void)
{
  static const int64_t extents[] = {2, 4};
  static float y[8];
  const uint32_t grid[3] = {2, 1, 1};
  static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  TilertBuffer *xt = buffer(sizeof x, x), *yt = buffer(sizeof y, NULL);
  TilertTensorArg a = {.buffer = xt, .rank = 2, .extents = extents};
  const TilertArg args[] = {tensor(&a), of_buffer(yt)};
  TilertLaunch *l;
  CHECK_OK(tilert_launch_create(kernel("rows"), grid, args, 2, &l, &err));
  CHECK_OK(tilert_launch_set_pdl(l, 1, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_launch_set_pdl(l, 0, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_buffer_read(yt, 0, y, sizeof y, NULL, &err));
  CHECK(!memcmp(x, y, sizeof x));
  tilert_launch_destroy(l);
  tilert_buffer_destroy(xt);
  tilert_buffer_destroy(yt);
}

int
main(void)
{
  CHECK_OK(tilert_device_open("sim", NULL, &dev, &err));
  load();
  check_boxes("boxes", 1);
  check_boxes("plain", 0);
  test_rank_1();
  test_rows();
  test_rules();
  test_kinds();
  test_empty();
  test_fault();
  test_manifests();
  test_stored();
  test_window();
  test_pdl();
  tilert_module_destroy(module);
  tilert_device_close(dev);
  return 0;
}
