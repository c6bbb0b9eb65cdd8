/* foreign_test.c - PTX of other compilers, run and compared with the host: CUDA kernels as nvcc makes them for two targets and for a
 * debugger (foreign/X.cu, foreign/compile.sh), and Triton's for several targets and numbers of warps (foreign/triton_kernels.py). Each is
 * checked as any is: for races, bounds and what nobody wrote. */
#include "sim_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All kernels: (const in *, out *, int n). Values are held as doubles here. `want` fills out, which begins with `fill`. */
typedef enum Elem { F32, F64, I32, I64 } Elem;
typedef struct Kernel {
  const char *file, *name;
  uint32_t grid[3], block[3], shared;
  Elem in, out;
  uint32_t nin, nout, n;
  double from, step;                   /* in: from, and so much more modulo 1 of the range, in a scattered order */
  double range, fill, tolerance;
  void (*want)(const double *in, double *out, int n);
} Kernel;

static uint32_t
elem_bytes(Elem e)
{
  return e == F32 || e == I32 ? 4 : 8;
}

static void
put(Elem e, void *at, uint32_t i, double v)
{
  switch (e) {
  case F32: ((float *)at)[i] = (float)v; break;
  case F64: ((double *)at)[i] = v; break;
  case I32: ((int32_t *)at)[i] = (int32_t)v; break;
  case I64: ((int64_t *)at)[i] = (int64_t)v; break;
  }
}

static double
get(Elem e, const void *at, uint32_t i)
{
  switch (e) {
  case F32: return (double)((const float *)at)[i];
  case F64: return ((const double *)at)[i];
  case I32: return (double)((const int32_t *)at)[i];
  default: return (double)((const int64_t *)at)[i];
  }
}

/* ---- what the CUDA kernels compute ---- */

static void
sum_blocks(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[i / 256] += in[i];
}

static void
sum_all(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[0] += in[i];
}

static void
sum_last(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[0] += in[i], out[1 + i / 128 % 6] += in[i];
}

static void
prefix(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[i] = in[i] + (i ? out[i - 1] : 0);
}

static void
transposed(const double *in, double *out, int n)
{
  for (int i = 0; i < n * n; i++)
    out[i] = in[i % n * n + i / n];
}

static double
at_cube(const double *in, int n, int x, int y, int z)
{
  return x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= n ? 0 : in[(z * n + y) * n + x];
}

static void
stencil(const double *in, double *out, int n)
{
  for (int z = 0; z < n; z++)
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++)
        out[(z * n + y) * n + x] = at_cube(in, n, x - 1, y, z) + at_cube(in, n, x + 1, y, z) + at_cube(in, n, x, y - 1, z) +
                                   at_cube(in, n, x, y + 1, z) + at_cube(in, n, x, y, z - 1) + at_cube(in, n, x, y, z + 1);
}

static void
product(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        out[i * n + j] += in[i * n + k] * in[n * n + k * n + j];
}

static void
counts(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[(int)in[i] & 63]++;
}

static int32_t
float_bits(float f)
{
  int32_t i;
  memcpy(&i, &f, 4);
  return i;
}

static void
atomics(const double *in, double *out, int n)
{
  int32_t o[13] = {0};
  uint32_t inc = 0, dec = 0;
  for (int i = 0; i < n; i++) {
    int v = (int)in[i];
    o[0] = v > o[0] ? v : o[0];
    o[1] = v < o[1] ? v : o[1];
    o[2] |= (int32_t)(1u << (v & 31));
    o[3] &= ~(1 << (v & 15));
    o[4] ^= v;
    inc = inc >= 6 ? 0 : inc + 1;
    dec = dec == 0 || dec > 4 ? 4 : dec - 1;
  }
  o[5] = float_bits(0.5f * (float)n);
  o[6] = (int32_t)inc, o[7] = (int32_t)dec;
  o[8] = float_bits(0.25f * (float)n);
  o[11] = n;
  o[12] = -2 * n;
  for (int i = 0; i < 13; i++)
    out[i] = o[i];
}

static void
pairs(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[0] += 2 * in[i];
  out[1] = 2 * out[0];
}

/* In any order: compared sorted. */
static void
odd_ones(const double *in, double *out, int n)
{
  int k = 0;
  for (int i = 0; i < n; i++)
    if ((int)in[i] & 1)
      out[1 + k++] = in[i];
  out[0] = k;
}

static void
ring(const double *in, double *out, int n)
{
  for (int b = 0; b < 20; b++) {
    out[b] = in[b] + n - 1;
    out[20 + b] = 0;
    for (int t = 0; t < n; t++)
      out[20 + b] += in[(b + 1) % 20] + t;
  }
}

static void
votes(const double *in, double *out, int n)
{
  int all = 1, any = 0;
  for (int i = 0; i < 32; i++)
    all &= in[i] < n, any |= in[i] == n;
  for (int t = 0; t < 32; t++) {
    int odd = 0, same = 0;
    for (int i = 0; i < 32; i++) {
      odd += i < t && ((int)in[i] & 1);
      same += (int)in[i] % 5 == (int)in[t] % 5;
    }
    out[t] = odd + 100 * same + 10000 * (all + 2 * any + 4) + 1000000;
  }
}

static void
shuffles(const double *in, double *out, int n)
{
  for (int t = 0; t < 32; t++) {
    int up = t >= 3 ? t - 3 : t, down = t % 8 + 5 < 8 ? t + 5 : t;
    out[t] = (int32_t)(uint32_t)(int64_t)(in[t * 7 % 32] + 1000 * in[up] + 1000000 * in[down] + 100000000.0 * ((int)in[t ^ 9] & 7));
  }
}

static void
reductions(const double *in, double *out, int n)
{
  int sum = 0, top = 0, low = 1000, either = 0, x = 0;
  for (int i = 0; i < 32; i++) {
    int v = (int)in[i];
    sum += v, top = v > top ? v : top, low = v < low ? v : low, either |= (int)(1u << (v & 31)), x ^= v;
  }
  for (int i = 0; i < 32; i++)
    out[i] = sum, out[32 + i] = top * 1000 + low, out[64 + i] = either ^ x;
}

static void
diverge(const double *in, double *out, int n)
{
  for (int t = 0; t < 32; t++) {
    int r = 0;
    for (int i = 0; i < (int)in[t]; i++) {
      if ((i + t) % 3 == 0)
        continue;
      if (i == 7)
        break;
      r += i & 1 ? i : -t;
    }
    out[t] = r + (t % 4 == 1 ? 8 : t % 4 == 2 ? 800 : 0) + 10000 * in[t ^ 1] + 1000000 * (t / 8);
  }
}

static void
functions(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    double x = in[i], a = (double)((float)fabs(x) + 0.5f);
    double r[] = {sin(x), cos(x), tan(x), exp(x), log(a), pow(a, x), tanh(x), erf(x), sqrt(a), 1 / sqrt(a), x / a, atan2(x, a), cbrt(x), log2(a), exp2(x), floor(x),
                  rint(x), fmod(x, (double)0.7f), lgamma(a), sin((double)((float)x * 1e6f)), asin((double)((float)x / 20)), expm1(x), log1p(a), hypot(x, a)};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
      out[k * (size_t)n + (size_t)i] = r[k];
  }
}

static void
doubles(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    double x = in[i], a = fabs(x) + 0.5;
    double r[] = {sin(x), exp(x), log(a), pow(a, x), tanh(x), erf(x), sqrt(a), 1 / a, cbrt(x), fma(x, a, -x * a)};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
      out[k * (size_t)n + (size_t)i] = r[k];
  }
}

static uint32_t
reversed(uint32_t v)
{
  uint32_t r = 0;
  for (int i = 0; i < 32; i++)
    r = r << 1 | (v >> i & 1);
  return r;
}

static uint32_t
add_bytes(uint32_t a, uint32_t b)
{
  uint32_t r = 0;
  for (int i = 0; i < 32; i += 8)
    r |= (((a >> i) + (b >> i)) & 255) << i;
  return r;
}

static int32_t
dot_bytes(int32_t a, int32_t b, int32_t c)
{
  for (int i = 0; i < 32; i += 8)
    c += (int8_t)(a >> i) * (int8_t)(b >> i);
  return c;
}

static void
integers(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    int32_t x = (int32_t)in[i], y = (int32_t)in[(i + 1) % n] | 1;
    int64_t w = (int64_t)x * 1000003 + y;
    uint32_t u = (uint32_t)x, v = (uint32_t)y;
    int64_t r[] = {x / y, x % y, w / y, w % (y * 7ll), (int64_t)((uint64_t)w / v), u ? __builtin_clz(u) : 32, __builtin_ffs(x), __builtin_popcount(u), reversed(u),
                   (int64_t)x * y >> 32, (int64_t)((unsigned __int128)(uint64_t)w * (uint64_t)w >> 64), (int64_t)(uint32_t)(abs(x - y) + 5), x < y ? x : y, abs(x),
                   (u & 255) | (v & 255) << 8 | (u >> 8 & 255) << 16 | (v >> 8 & 255) << 24, v << 5 | u >> 27, w ? __builtin_clzll((uint64_t)w) : 64,
                   (int8_t)x, (uint16_t)x, x >> 3, w >> 5, dot_bytes(x, y, 7), add_bytes(u, v), (x & y) + ((x ^ y) >> 1)};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
      out[k * (size_t)n + (size_t)i] = (double)r[k];
  }
}

static int32_t
depth(const int32_t *v, int n)
{
  int32_t own[4] = {n, n + 1, n + 2, n + 3};
  return n == 0 ? v[0] : depth(own, n - 1) + own[n & 3] + v[n & 1];
}

static void
calls(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    int32_t v = (int32_t)in[i], top[4] = {v, v * 2, v * 3, v * 4};
    int64_t a = i + 1, b = v * 2;
    int64_t c = b + 2, d = (int32_t)(a * 2);
    int32_t binary = i % 3 == 0 ? v + 3 : i % 3 == 1 ? v - 3 : v * 3, area = v & 1 ? v * v + 5 : v * i - 5;
    out[i] = (int32_t)c + (int32_t)d * 10 + binary * 100 + area * 1000 + depth(top, v % 6) * 100000;
  }
}

static int
case_of(int v, int i, const int *local)
{
  int r = 0;
  switch (v % 12) {
  case 0: return i;
  case 1: return i * i;
  case 2: return 7 - i;
  case 3: return 7;
  case 4: return i << 2;
  case 5: return local[i & 15];
  case 6:
    for (int k = 0; k < i; k++)
      r += k;
    return r;
  case 7: return __builtin_popcount((uint32_t)i);
  case 8: return i ^ 0x55;
  case 10: return -10000;
  default: return 999;
  }
}

static void
cases(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    int local[16], v = (int)in[i];
    for (int k = 0; k < 16; k++)
      local[k] = k * v;
    out[i] = case_of(v, i, local) + 10000 + local[(v + i) & 15];
  }
}

/* Rounded to so many bits of fraction, no smaller than 2^low; halves to even. */
static double
to_bits(double v, int bits, int low)
{
  if (v == 0)
    return v;
  int e = ilogb(v) < low ? low : ilogb(v);
  double unit = ldexp(1, e - bits);
  return nearbyint(v / unit) * unit;
}

static double
f16(double v)
{
  return to_bits(v, 10, -14);
}

static double
bf16(double v)
{
  return to_bits(v, 7, -126);
}

static void
halves(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++) {
    double x = in[i], y = in[(i + 1) % n], a = f16(x), b = f16(y), c = bf16(x), d = bf16(y), e = f16(fabs(b) + 1);
    double e4 = to_bits(x, 3, -6), e5 = to_bits(x, 2, -14);
    double r[] = {f16(a + b), f16(a * b), f16(a * b + a), f16(a / e), a > b ? a : b, f16(a * b + a), f16(b * a + b), bf16(c + d), bf16(c * d), bf16(c * d + c),
                  a < b, f16(sqrt(fabs(a))), rint(a), e4 > 448 ? 448 : e4 < -448 ? -448 : e4, e5};
    for (size_t k = 0; k < sizeof r / sizeof *r; k++)
      out[k * (size_t)n + (size_t)i] = r[k];
  }
}

static void
columns(const double *in, double *out, int n)
{
  for (int i = 0; i < n * 256; i++)
    out[i % 256] += in[i];
}

static void
variables(const double *in, double *out, int n)
{
  static const int odds[2][4] = {{1, 2, 3, 6}, {7, 8, 9, 12}}, lengths[3] = {3, 5, 5};
  for (int t = 0; t < 32; t++) {
    const int *o = odds[t & 1];
    out[t] = (int32_t)(uint32_t)(int64_t)(o[0] + o[1] * 10 + o[2] * 100 + o[3] * 1000 + lengths[t % 3] * 100000 + ((t & 3) * 2 + 1) * 1000000 + in[t] * 10000000 + 42 * 100000000.0);
  }
}

static int
ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* ---- what the Triton kernels compute, where it is something else ---- */

static void
softmax(const double *in, double *out, int n)
{
  for (int r = 0; r < 8; r++) {
    double top = in[r * n], sum = 0;
    for (int i = 0; i < n; i++)
      top = in[r * n + i] > top ? in[r * n + i] : top;
    for (int i = 0; i < n; i++)
      sum += exp(in[r * n + i] - top);
    for (int i = 0; i < n; i++)
      out[r * n + i] = exp(in[r * n + i] - top) / sum;
  }
}

static void
sorted(const double *in, double *out, int n)
{
  memcpy(out, in, (size_t)n * sizeof *out);
  qsort(out, (size_t)n, sizeof *out, ascending);
}

static void
locked(const double *in, double *out, int n)
{
  for (int i = 0; i < n; i++)
    out[1] += in[i];
}

/* Their blocks are as large as the text says. */
static const Kernel triton[] = {
  {"triton_total", "total", {4}, {0}, 32, F32, F32, 1000, 1, 1000, 0, 1, 9, 0, 0, sum_all},
  {"triton_prefix", "prefix", {1}, {0}, 32, I32, I32, 200, 200, 200, -5, 1, 11, 0, 0, prefix},
  {"triton_transpose", "transpose", {2, 2}, {0}, 4096, F32, F32, 1600, 1600, 40, 0, 1, 1000, 0, 0, transposed},
  {"triton_product", "product", {2, 2}, {0}, 16384, F32, F32, 8192, 4096, 64, -2, 1, 5, 0, 0, product},
  {"triton_counts", "counts", {8}, {0}, 0, I32, I32, 2000, 64, 2000, 0, 1, 100, 0, 0, counts},
  {"triton_softmax", "softmax", {8}, {0}, 16, F32, F32, 800, 800, 100, -4, 0.01, 8, 0, 2e-6, softmax},
  {"triton_ascending", "ascending", {1}, {0}, 512, I32, I32, 128, 128, 128, -500, 1, 1000, 0, 0, sorted},
  {"triton_columns", "columns", {1}, {0}, 0, F32, F32, 2304, 256, 9, -2, 1, 5, 0, 0, columns},
  {"triton_locked", "locked", {12}, {0}, 4, I32, I32, 12, 2, 12, 0, 1, 100, 0, 0, locked},
};

static const Kernel kernels[] = {
  {"reduce", "reduce_tree", {5}, {256}, 0, F32, F32, 1200, 5, 1200, 0, 1, 9, 0, 0, sum_blocks},
  {"reduce", "reduce_shuffle", {1}, {256}, 0, F32, F32, 1000, 1, 1000, 0, 1, 9, 0, 0, sum_all},
  {"reduce", "reduce_vector", {3}, {128}, 0, F32, F32, 1024, 1, 1024, 0, 1, 9, 0, 0, sum_all},
  {"reduce", "reduce_last", {6}, {128}, 0, F32, F32, 2000, 7, 2000, 0, 1, 9, 0, 0, sum_last},
  {"scan", "scan_steps", {1}, {256}, 2048, I32, I32, 200, 200, 200, -5, 1, 11, 0, 0, prefix},
  {"scan", "scan_sweeps", {1}, {128}, 0, I32, I32, 256, 256, 256, -5, 1, 11, 0, 0, prefix},
  {"scan", "scan_look_back", {12}, {256}, 0, I32, I32, 3000, 3000, 3000, -5, 1, 11, 0, 0, prefix},
  {"shapes", "transpose_tile", {3, 3}, {16, 16}, 0, F32, F32, 1600, 1600, 40, 0, 1, 1000, 0, 0, transposed},
  {"shapes", "stencil_cube", {2, 3, 3}, {8, 4, 4}, 0, F32, F32, 1000, 1000, 10, 0, 1, 50, 0, 0, stencil},
  {"shapes", "matmul_shared", {3, 3}, {8, 8}, 512, F32, F32, 800, 400, 20, -3, 1, 7, 0, 0, product},
  {"atomics", "histogram", {4}, {128}, 0, I32, I32, 2000, 64, 2000, 0, 1, 100, 0, 0, counts},
  {"atomics", "all_atomics", {2}, {96}, 0, I32, I32, 150, 13, 150, -40, 1, 100, 0, 0, atomics},
  {"atomics", "locked_pairs", {6}, {64}, 0, I32, I32, 6, 2, 6, 1, 1, 20, 0, 0, pairs},
  {"atomics", "compact_odd", {3}, {128}, 0, I32, I32, 380, 381, 380, 0, 1, 1000, 0, 0, odd_ones},
  {"atomics", "ring", {20}, {64}, 0, I32, I32, 20, 40, 5, 0, 1, 100, 0, 0, ring},
  {"warps", "votes", {1}, {32}, 0, I32, I32, 32, 32, 40, 0, 1, 40, 0, 0, votes},
  {"warps", "shuffles", {1}, {32}, 0, I32, I32, 32, 32, 40, 0, 1, 40, 0, 0, shuffles},
  {"warps", "diverge", {1}, {32}, 0, I32, I32, 32, 32, 40, 0, 1, 15, 0, 0, diverge},
  {"warps", "reductions", {1}, {32}, 0, I32, I32, 32, 96, 40, 0, 1, 40, 0, 0, reductions},
  {"math", "functions", {2}, {64}, 0, F32, F32, 100, 2400, 100, -4, 0.01, 8, 0, 2e-6, functions},
  {"math", "doubles", {2}, {64}, 0, F64, F64, 100, 1000, 100, -4, 0.01, 8, 0, 1e-13, doubles},
  {"math", "integers", {2}, {64}, 0, I32, I64, 100, 2400, 100, -1000000, 1, 2000000, 0, 0, integers},
  {"control", "calls", {2}, {64}, 0, I32, I32, 100, 100, 100, 0, 1, 20, 0, 0, calls},
  {"control", "cases", {2}, {64}, 0, I32, I32, 100, 100, 100, 0, 1, 30, 0, 0, cases},
  {"half", "halves", {2}, {64}, 0, F32, F32, 100, 1500, 100, -3, 0.001, 6, 0, 0, halves},
  {"tensor", "matmul_mma", {1}, {128}, 0, F32, F32, 8192, 4096, 64, -2, 1, 5, 0, 0, product},
  {"tensor", "column_sums", {1}, {64}, 0, F32, F32, 2304, 256, 9, -2, 1, 5, 0, 0, columns},
  {"globals", "variables", {1}, {32}, 0, I32, I32, 32, 32, 32, 0, 1, 10, 0, 0, variables},
};

/* ---- running ---- */

static double
input(const Kernel *k, uint32_t i)
{
  uint32_t steps = (uint32_t)(k->range / k->step);
  return k->from + k->step * (double)((i * 2654435761u >> 7) % steps);
}

/* The worst difference, relative to the size of what is wanted; nothing wanted may be infinite. */
static double
difference(const Kernel *k, const double *in, const void *out)
{
  double *want = calloc(k->nout, sizeof *want), *got = calloc(k->nout, sizeof *got), worst = 0;
  for (uint32_t i = 0; want && got && i < k->nout; i++)
    want[i] = k->fill, got[i] = get(k->out, out, i);
  if (want && got)
    k->want(in, want, (int)k->n);
  if (k->want == odd_ones)
    qsort(got + 1, k->nout - 1, sizeof *got, ascending), qsort(want + 1, k->nout - 1, sizeof *want, ascending);
  for (uint32_t i = 0; want && got && i < k->nout; i++) {
    double size = fabs(want[i]) > 1 && k->tolerance > 0 ? fabs(want[i]) : 1, d = fabs(got[i] - want[i]) / size;
    worst = d > worst || d != d ? d : worst;
  }
  free(want);
  free(got);
  return worst;
}

static void
kernel_case(Test *t, SimModule *mod, const Kernel *k, const char *file)
{
  void *in = test_alloc(t, k->nin * elem_bytes(k->in)), *out = test_alloc(t, k->nout * elem_bytes(k->out));
  double *values = calloc(k->nin, sizeof *values);
  const uint64_t scratch = 0;            /* Triton has two more parameters */
  const void *args[5] = {&in, &out, &k->n, &scratch, &scratch};
  uint32_t grid[3] = {k->grid[0], k->grid[1] ? k->grid[1] : 1, k->grid[2] ? k->grid[2] : 1};
  uint32_t block[3] = {k->block[0], k->block[1] ? k->block[1] : 1, k->block[2] ? k->block[2] : 1};
  SimError err;
  SimKernelInfo info;
  if (!k->block[0] && CHECK(t, sim_kernel(mod, k->name, &info, &err) == 0, "%s", err.message))
    memcpy(block, info.reqntid, sizeof block);
  for (uint32_t i = 0; values && i < k->nin; i++) {
    put(k->in, in, i, input(k, i));
    values[i] = get(k->in, in, i);
  }
  for (uint32_t i = 0; i < k->nout; i++)
    put(k->out, out, i, k->fill);
  int rc = sim_launch(mod, k->name, grid, block, k->shared, args, NULL, &err);
  double worst = rc || !values ? 0 : difference(k, values, out);
  CHECK(t, rc == 0, "%s in %s, line %u: %s%s", k->name, file, err.ptx_line, err.message, err.trace);
  CHECK(t, worst <= k->tolerance, "%s in %s: off by %g", k->name, file, worst);
  free(values);
  test_free(t, in), test_free(t, out);
}

static SimModule *
load(Test *t, const char *file)
{
  char *ptx = test_file(t, file);
  SimModule *mod = NULL;
  SimError err;
  if (ptx)
    CHECK(t, sim_load(t->machine, ptx, strlen(ptx), &mod, &err) == 0, "%s: line %u: %s", file, err.ptx_line, err.message);
  free(ptx);
  return mod;
}

/* Each kernel of each of these kinds. */
static void
kernel_cases(Test *t, const Kernel *k, size_t n, const char *const *kind, size_t nkinds)
{
  for (size_t v = 0; v < nkinds; v++)
    for (size_t i = 0; i < n; i++) {
      char file[100];
      snprintf(file, sizeof file, "foreign/%s.%s.ptx", k[i].file, kind[v]);
      SimModule *mod = load(t, file);
      if (mod)
        kernel_case(t, mod, &k[i], file);
      sim_unload(mod);
    }
}

/* ---- printf and assert ---- */

typedef struct Out { char text[256]; size_t n; } Out;

static void
collect(void *user, const char *text, size_t n)
{
  Out *o = user;
  for (size_t i = 0; i < n && o->n < sizeof o->text - 1; i++)
    o->text[o->n++] = text[i];
}

static void
prints(Test *t, const char *file)
{
  SimOptions o;
  SimError err;
  Out out = {{0}, 0};
  sim_options_default(&o);
  o.print = collect;
  o.print_user = &out;
  SimMachine *saved = test_machine(t, &o);
  int32_t *in = test_alloc(t, 128), *result = test_alloc(t, 128);
  int n = 20;
  uint32_t one[3] = {1, 1, 1}, block[3] = {32, 1, 1};
  const void *args[3] = {&in, &result, &n};
  for (int i = 0; i < 32; i++)
    in[i] = i - 40;
  SimModule *mod = load(t, file);
  if (mod) {
    CHECK(t, sim_launch(mod, "prints", one, block, 0, args, NULL, &err) == 0, "%s", err.message);
    CHECK(t, strcmp(out.text, "-37  1.50 text|ab    |x 1099511627776 7% ff\n") == 0 && *result == 8, "%s: %d: \"%s\"", file, *result, out.text);
    CHECK(t, sim_launch(mod, "asserts", one, block, 0, args, NULL, &err) == 0, "%s", err.message);
    in[5] = 20;
    CHECK(t, sim_launch(mod, "asserts", one, block, 0, args, NULL, &err) == -1 && err.kind == SIM_E_TRAP && err.thread[0] == 5 &&
          strstr(err.message, "assertion failed: in[threadIdx.x] < n && \"too large\""), "%s: %s", file, err.message);
  }
  sim_unload(mod);
  test_machine_back(t, saved);
}

void
test_foreign(Test *t)
{
  static const char *const cuda_kinds[] = {"sm_80", "sm_90", "debug"}, *const triton_kinds[] = {"sm_80w4", "sm_80w1", "sm_89w8", "sm_90w2"};
  kernel_cases(t, kernels, sizeof kernels / sizeof *kernels, cuda_kinds, 3);
  kernel_cases(t, triton, sizeof triton / sizeof *triton, triton_kinds, 4);
  prints(t, "foreign/print.sm_80.ptx");
  prints(t, "foreign/print.sm_90.ptx");
  prints(t, "foreign/print.debug.ptx");
}
