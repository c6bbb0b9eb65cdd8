/* kernels_test.c - whole kernels, compiled from kernels.cu by NVIDIA's compiler, against the host. */
#include "sim_test.h"
#include <math.h>
#include <stdlib.h>

static uint32_t
noise(uint32_t i)
{
  i = (i ^ 61) ^ i >> 16;
  i *= 9;
  i ^= i >> 4;
  i *= 0x27d4eb2d;
  return i ^ i >> 15;
}

static float
noise_f32(uint32_t i)
{
  return (float)(noise(i) % 20001) / 1000 - 10;
}

static bool
ran(Test *t, Run *r)
{
  int rc = test_run(t, r);
  return CHECK(t, rc == 0, "%s: %s", r->kernel, r->err.message);
}

static void
test_vadd(Test *t, const char *ptx)
{
  int n = 1000, wrong = 0;
  float *a = test_alloc(t, 4000), *b = test_alloc(t, 4000), *c = test_alloc(t, 4000);
  for (int i = 0; i < n; i++)
    a[i] = noise_f32((uint32_t)i), b[i] = noise_f32((uint32_t)i + 7777);
  Run r = {ptx, "vadd", {8}, {128}, 0, {&a, &b, &c, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < n; i++)
    wrong += c[i] != a[i] + b[i];
  CHECK(t, wrong == 0, "vadd: %d wrong", wrong);
  CHECK(t, r.stats.global_bytes_read == 8000 && r.stats.global_sectors == 3 * 125, "vadd: %llu sectors",
        (unsigned long long)r.stats.global_sectors);
  test_free(t, a), test_free(t, b), test_free(t, c);
}

static void
test_reduce(Test *t, const char *ptx)
{
  int n = 5000;
  float *a = test_alloc(t, 20000), *o = test_alloc(t, 4), want = 0;
  for (int i = 0; i < n; i++)
    want += a[i] = (float)(noise((uint32_t)i) % 9);
  Run r = {ptx, "reduce", {1}, {256}, 0, {&a, &o, &n}, {0}, {0}};
  ran(t, &r);
  CHECK(t, *o == want, "reduce: %g, not %g", (double)*o, (double)want);
  test_free(t, a), test_free(t, o);
}

static void
test_transpose(Test *t, const char *ptx)
{
  int n = 128, wrong = 0;
  float *a = test_alloc(t, 65536), *b = test_alloc(t, 65536);
  for (int i = 0; i < n * n; i++)
    a[i] = (float)i;
  Run r = {ptx, "transpose", {4, 4}, {32, 8}, 0, {&a, &b, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < n * n; i++)
    wrong += b[i] != a[i % n * n + i / n];
  CHECK(t, wrong == 0, "transpose: %d wrong", wrong);
  CHECK(t, r.stats.shared_bank_conflicts == 0 && r.stats.shared_accesses == 16 * 8 * 8, "transpose: %llu conflicts",
        (unsigned long long)r.stats.shared_bank_conflicts);
  test_free(t, a), test_free(t, b);
}

static void
test_softmax(Test *t, const char *ptx)
{
  int n = 781, rows = 100;
  double worst = 0;
  float *a = test_alloc(t, 4u * 78100), *b = test_alloc(t, 4u * 78100);
  for (int i = 0; i < n * rows; i++)
    a[i] = noise_f32((uint32_t)i);
  Run r = {ptx, "softmax", {(uint32_t)rows}, {128}, 0, {&a, &b, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int j = 0; j < n; j++)
      sum += exp((double)a[i * n + j] - 10);
    for (int j = 0; j < n; j++)
      worst = fmax(worst, fabs((double)b[i * n + j] - exp((double)a[i * n + j] - 10) / sum));
  }
  CHECK(t, worst < 1e-6, "softmax: off by %g", worst);
  test_free(t, a), test_free(t, b);
}

static long long
host_gcd(long long a, long long b)
{
  return b ? host_gcd(b, a % b) : a;
}

static void
test_gcds(Test *t, const char *ptx)
{
  int n = 57, wrong = 0, *a = test_alloc(t, 256), *b = test_alloc(t, 256);
  long long *o = test_alloc(t, 512);
  for (int i = 0; i < 64; i++)
    a[i] = (int)(noise((uint32_t)i) % 500), b[i] = (int)(noise((uint32_t)i + 99) % 300);
  Run r = {ptx, "gcds", {1}, {64}, 0, {&a, &b, &o, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < n; i++) {
    long long s = 0;
    for (int j = 0; j < 5; j++)
      s = s * 1000 + host_gcd(a[i] + j, b[i] * 3 + j);
    wrong += o[i] != s;
  }
  CHECK(t, wrong == 0, "gcds: %d wrong", wrong);
  test_free(t, a), test_free(t, b), test_free(t, o);
}

static void
test_hist(Test *t, const char *ptx)
{
  int n = 3000, wrong = 0;
  unsigned char *a = test_alloc(t, 3000);
  unsigned *o = test_alloc(t, 1024), want[256] = {0};
  for (int i = 0; i < 256; i++)
    o[i] = 0;
  for (int i = 0; i < n; i++)
    want[a[i] = (unsigned char)noise((uint32_t)i)] += 4;
  Run r = {ptx, "hist", {4}, {256}, 0, {&a, &o, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < 256; i++)
    wrong += o[i] != want[i];
  CHECK(t, wrong == 0, "hist: %d wrong", wrong);
  test_free(t, a), test_free(t, o);
}

static int
host_case(int a, int i)
{
  switch (a) {
  case 0: return 5;
  case 1: return i * i;
  case 2: return i + 77;
  case 3: return i << 3;
  case 4: return ~i;
  case 5: return i % 7;
  case 6: return __builtin_popcount((unsigned)i);
  default: return -1;
  }
}

static void
test_cases(Test *t, const char *ptx)
{
  int wrong = 0, *a = test_alloc(t, 256), *o = test_alloc(t, 256);
  for (int i = 0; i < 64; i++)
    a[i] = (int)(noise((uint32_t)i) % 10) - 1;
  Run r = {ptx, "cases", {1}, {64}, 0, {&a, &o}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < 64; i++)
    wrong += o[i] != host_case(a[i], i) + (a[i] & 15) * i;
  CHECK(t, wrong == 0, "cases: %d wrong", wrong);
  test_free(t, a), test_free(t, o);
}

static void
test_fp8(Test *t, const char *ptx)
{
  static const float in[] = {0, 1, -1.0625f, 1.1875f, 448, 464, 1000, 0x1p-9f, 0x1p-10f, 0x1.8p-10f, 57344, 0x1p-16f, 0.3f};
  static const float e4[] = {0, 1, -1, 1.25f, 448, 448, 448, 0x1p-9f, 0, 0x1p-9f, 448, 0, 0.3125f};
  static const float e5[] = {0, 1, -1, 1.25f, 448, 448, 1024, 0x1p-9f, 0x1p-10f, 0x1.8p-10f, 57344, 0x1p-16f, 0.3125f};
  float *a = test_alloc(t, 128), *o = test_alloc(t, 256);
  for (int i = 0; i < 32; i++)
    a[i] = in[i % 13];
  Run r = {ptx, "fp8", {1}, {32}, 0, {&a, &o}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < 13; i++)
    CHECK(t, o[2 * i] == e4[i] && o[2 * i + 1] == e5[i], "fp8 of %a: %a and %a", (double)a[i], (double)o[2 * i],
          (double)o[2 * i + 1]);
  test_free(t, a), test_free(t, o);
}

static void
test_copies(Test *t, const char *ptx)
{
  int n = 5, wrong = 0;
  float *a = test_alloc(t, 5 * 64 * 16), *o = test_alloc(t, 5 * 64 * 16);
  for (int i = 0; i < 5 * 256; i++)
    a[i] = noise_f32((uint32_t)i);
  Run r = {ptx, "copies", {1}, {64}, 1024, {&a, &o, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < 5 * 256; i++)
    wrong += o[i] != 2 * a[i ^ 4];
  CHECK(t, wrong == 0, "copies: %d wrong", wrong);
  test_free(t, a), test_free(t, o);
}

static int
host_nested(const int *a, int i, int n)
{
  int s = 0;
  for (int x = 0; x < a[i]; x++) {
    for (int y = x; y < n; y++) {
      if ((x * y + i) % 3 == 0)
        continue;
      if (y > a[(i + 1) & 31] + 2)
        break;
      s += x * y;
    }
    if (s > 1000)
      break;
  }
  return s;
}

/* All 32 lanes are together again after the loops. */
static void
test_nested(Test *t, const char *ptx)
{
  int n = 23, wrong = 0, *a = test_alloc(t, 128), *o = test_alloc(t, 128);
  for (int i = 0; i < 32; i++)
    a[i] = (int)(noise((uint32_t)i) % 20);
  Run r = {ptx, "nested", {1}, {32}, 0, {&a, &o, &n}, {0}, {0}};
  ran(t, &r);
  for (int i = 0; i < 32; i++)
    wrong += o[i] != host_nested(a, i, n) * 100 + 32;
  CHECK(t, wrong == 0, "nested: %d wrong", wrong);
  test_free(t, a), test_free(t, o);
}

/* Lanes of a warp wait for each other's lock, and blocks on other host threads too. */
static void
test_locked(Test *t, const char *ptx)
{
  int *o = test_alloc(t, 4);
  Run r = {ptx, "locked", {4}, {64}, 0, {&o}, {0}, {0}};
  ran(t, &r);
  CHECK(t, *o == 7 + 4 * 16 * 10, "locked: %d", *o);
  test_free(t, o);
}

void
test_kernels(Test *t)
{
  char *ptx = test_file(t, "kernels.ptx");
  if (!ptx)
    return;
  test_vadd(t, ptx);
  test_reduce(t, ptx);
  test_transpose(t, ptx);
  test_softmax(t, ptx);
  test_gcds(t, ptx);
  test_hist(t, ptx);
  test_cases(t, ptx);
  test_fp8(t, ptx);
  test_copies(t, ptx);
  test_nested(t, ptx);
  test_locked(t, ptx);
  free(ptx);
}
