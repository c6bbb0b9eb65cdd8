"""maths_host.py TILEC [--stride=N] [--record] [NAME...]: the greatest error in ulp of each function of real numbers over all 2^32 values of
f32, or every Nth of them, computed by this machine's processor (maths_native.py); of functions of two numbers, over as many pairs
whose sizes are near each other, or for pow such that the result is finite, and pairs of any bits. References are the C library's in
double, or the function's own in f64, which maths_quad.py judges. One line a function: error, where, how many values; exit
status 1 where an error exceeds its claim in tests/kernels/maths_table.py, or with a stride of 1021, which tests take, the error that
docs/maths.txt has for it. About two minutes a function and core without a stride. --record writes docs/maths.txt."""
import ctypes, os, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "tests", "kernels"), os.path.dirname(os.path.abspath(__file__))]
import maths_native
import maths_table as table

# References in C for a double x.
C = dict(exp="exp(x)", exp2="exp2(x)", exp10="pow(10, x)", expm1="expm1(x)", log="log(x)", log2="log2(x)", log10="log10(x)", log1p="log1p(x)",
         sin="sin(x)", cos="cos(x)", tan="tan(x)", asin="asin(x)", acos="acos(x)", atan="atan(x)", sinh="sinh(x)", cosh="cosh(x)",
         tanh="tanh(x)", asinh="asinh(x)", acosh="acosh(x)", atanh="atanh(x)", erf="erf(x)", erfc="erfc(x)", cbrt="cbrt(x)", sqrt="sqrt(x)",
         sigmoid="x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x))",
         silu="x == -INFINITY ? -0.0 : x < 0 ? x * (exp(x) / (1 + exp(x))) : x / (1 + exp(-x))",
         gelu="x == -INFINITY ? -0.0 : x * 0.5 * erfc(-x / 1.4142135623730951)",
         gelu_tanh="gelu_tanh(x)",
         pow="pow(x, z)", atan2="atan2(x, z)", hypot="hypot(x, z)",
         softplus="x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))")

DRIVER = """
#include <math.h>
#include <stdint.h>
#include <string.h>
void one(const float *x, float *y, int32_t i);
void two(const float *x, const float *z, float *y, int32_t i);
static inline double gelu_tanh(double x)
{
  double u = 1.5957691216057308 * x * (1 + 0.044715 * x * x);
  return x == -INFINITY ? -0.0 : u < 0 ? x * (exp(u) / (1 + exp(u))) : x / (1 + exp(-u));
}
static inline double error(double w, double g)
{
  if (isnan(w) || isnan(g))
    return isnan(w) && isnan(g) ? 0 : INFINITY;
  if (w == 0 && g == 0)
    return signbit(w) == signbit(g) ? 0 : INFINITY;
  if (fabs(w) >= 0x1.ffffffp127)
    w = copysign(0x1p128, w);
  if (isinf(g))
    g = copysign(0x1p128, g);
  uint64_t b;
  memcpy(&b, &w, 8);
  int64_t e = (int64_t)(b >> 52 & 2047) - 1023;
  e = e < -126 ? -126 : e > 127 ? 127 : e;
  b = (uint64_t)(1023 + 23 - e) << 52;
  double by;
  memcpy(&by, &b, 8);
  return fabs(w - g) * by;
}
static inline float float_of(uint32_t b)
{
  float x;
  memcpy(&x, &b, 4);
  return x;
}
#ifdef TWO
/* A second argument from 64 random bits and the first. */
static inline float partner(float x, uint64_t r)
{
  uint32_t b, any = (uint32_t)(r >> 32);
  memcpy(&b, &x, 4);
  if (r % 8 == 0)
    return float_of(any);
  if (POW && isfinite(x) && x != 0 && fabsf(x) != 1)
    return (float)((double)any * 0x1p-32 * 300 - 150) / log2f(fabsf(x));
  uint32_t e = (b >> 23 & 255) + (any >> 23) % 32 - 16;
  return float_of((e & 255) << 23 | (any & 0x807fffff));
}
double worst(uint32_t from, uint32_t stride, uint32_t n, float *where)
{
  enum { N = 4096 };
  float x[N], z[N], y[N];
  double most = -1;
  uint64_t r = from + 0x9e3779b97f4a7c15;
  for (uint32_t at = 0; at < n; at += N) {
    for (uint32_t i = 0; i < N; i++) {
      r ^= r << 13, r ^= r >> 7, r ^= r << 17;
      x[i] = float_of(from + (at + i) * stride + (uint32_t)(r >> 20) % stride);
      if (POW && r % 5)
        x[i] = fabsf(x[i]);
      z[i] = partner(x[i], r * 0x2545f4914f6cdd1d);
    }
    for (int i = 0; i < N; i++)
      two(x, z, y, i);
    for (int i = 0; i < N; i++) {
      double e = error(reference(x[i], z[i]), y[i]);
      if (e > most)
        most = e, where[0] = x[i], where[1] = z[i];
    }
  }
  return most;
}
#else
double worst(uint32_t from, uint32_t stride, uint32_t n, float *where)
{
  enum { N = 4096 };
  float x[N], y[N];
  double want[N], err[N];
  double most = -1;
  for (uint32_t at = 0; at < n; at += N) {
    for (uint32_t i = 0; i < N; i++)
      x[i] = float_of(from + (at + i) * stride);
    for (int i = 0; i < N; i++)
      one(x, y, i);
    for (int i = 0; i < N; i++)
      want[i] = reference(x[i]);
    for (int i = 0; i < N; i++)
      err[i] = error(want[i], y[i]);
    for (int i = 0; i < N; i++)
      if (err[i] > most)
        most = err[i], *where = x[i];
  }
  return most;
}
#endif
"""


def native(tilec, fn, folder):
    """The function's driver as a shared library. Without a reference of the C library's the function itself in f64 is it."""
    c, so, wide = (os.path.join(folder, fn + e) for e in (".c", ".so", "_64"))
    pair = fn in table.PAIRS
    sources = [c, maths_native.compile_function(tilec, fn, folder, pair)]
    if fn in C:
        body = f"return {C[fn]};"
    else:
        os.mkdir(wide)
        text = maths_native.compile_function(tilec, fn, wide, pair, "f64")
        sources.append(text)
        ir = open(text).read().replace("@one(", "@wide(")
        open(text, "w").write(ir)
        body = "double y; wide(&x, &y, 0); return y;"
    arguments = "double x, double z" if pair else "double x"
    reference = f"#define POW {int(fn == 'pow')}\nvoid wide(const double *x, double *y, int32_t i);\nstatic double reference({arguments}) {{ {body} }}\n"
    head, tail = DRIVER.split("static inline float float_of", 1)
    open(c, "w").write(("#define TWO\n" if pair else "") + head + reference + "static inline float float_of" + tail)
    maths_native.link(sources, so)
    f = ctypes.CDLL(so).worst
    f.restype = ctypes.c_double
    return f


tilec = sys.argv[1]
stride = next((int(a[9:]) for a in sys.argv if a.startswith("--stride=")), 1)
names = [a for a in sys.argv[2:] if not a.startswith("--")] or [r[0] for r in table.ONE + table.TWO if r[0] != "rsqrt"]
column = "f32-part" if stride == 1021 else "f32-host"
bad = 0
with tempfile.TemporaryDirectory() as folder:
    for fn in names:
        f = native(tilec, fn, folder)
        n, most, at, where = (1 << 32) // stride, -1.0, None, (ctypes.c_float * 2)()
        for part in range(16):                       # n values in turn
            e = f(ctypes.c_uint32(part << 28), ctypes.c_uint32(stride), ctypes.c_uint32(n // 16), where)
            if e > most:
                most, at = e, list(where)[:2 if fn in table.PAIRS else 1]
        claim = table.limit_of(fn, "f32")
        if column == "f32-part" and "--record" not in sys.argv:
            claim = min(claim, table.recorded().get((fn, column), 0.0) + table.STEP)
        bad |= not most <= claim
        print(f"{fn:10} {most:.4f} at {at}{'' if most <= claim else f': claimed {claim}'} ({n} values)", flush=True)
        if "--record" in sys.argv:
            table.record({(fn, column): most})
sys.exit(bad)
