"""maths_quad.py TILEC [--count=N] [--record] [NAME...]: the greatest error in ulp of each function of real numbers in f64, over N points of
the kinds that maths_points.py makes (a million without the option): the code that tilec makes for the GPU, compiled for this machine's
processor, against quadruple precision. The references need gcc with libquadmath. One line a function: error, where; exit status 1
where an error exceeds its claim in tests/kernels/maths_table.py. --record writes docs/maths.txt."""
import ctypes, os, subprocess, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "tests", "kernels"), os.path.dirname(os.path.abspath(__file__))]
import numpy as np
import maths_native, maths_points
import maths_table as table

# The exact function of doubles x and z (with y, what was computed, for inverse functions), in quadruple precision.
QUAD = dict(exp="expq(x)", exp2="powq(2, x)", exp10="powq(10, x)", expm1="expm1q(x)", log="logq(x)", log2="log2q(x)", log10="log10q(x)",
            log1p="log1pq(x)",
            sin="sinq(x)", cos="cosq(x)", tan="tanq(x)", asin="asinq(x)", acos="acosq(x)", atan="atanq(x)", sinh="sinhq(x)",
            cosh="coshq(x)", tanh="tanhq(x)",
            asinh="asinhq(x)", acosh="acoshq(x)", atanh="atanhq(x)", erf="erfq(x)", erfc="erfcq(x)", cbrt="cbrtq(x)", sqrt="sqrtq(x)",
            rsqrt="1 / sqrtq(x)",
            sigmoid="1 / (1 + expq(-(Q)x))", silu="isinfq(x) && x < 0 ? -0.0Q : x / (1 + expq(-(Q)x))",
            gelu="isinfq(x) && x < 0 ? -0.0Q : (Q)x * (erfcq(-(Q)x * M_SQRT1_2q) / 2)",
            gelu_tanh="gelu_tanh(x)", softplus="x > 0 ? x + log1pq(expq(-(Q)x)) : log1pq(expq(x))",
            pow="powq(x, z)", atan2="atan2q(x, z)", hypot="isinfq(x) || isinfq(z) ? HUGE_VALQ : hypotq(x, z)",
            erfinv="erfinv(x, y)", erfcinv="erfcinv(x, y)", normcdf="erfcq(-(Q)x * M_SQRT1_2q) / 2", normcdfinv="normcdfinv(x, y)",
            erfcx="erfcx(x)", lgamma="lgammaq(x)", tgamma="tgammaq(x)", digamma="digamma(x)", sinpi="sinpi(x, 0)", cospi="sinpi(x, 1)",
            rcbrt="1 / cbrtq(x)",
            bessel_j0="j0q(x)", bessel_j1="copysignq(j1q(x), isinf(x) ? x : (Q)j1q(x))", bessel_y0="x < 0 ? nanq(\"\") : y0q(x)",
            bessel_y1="x < 0 ? nanq(\"\") : y1q(x)",
            bessel_i0="bessel_i(x, 0, 0)", bessel_i0e="bessel_i(x, 0, 1)", bessel_i1="bessel_i(x, 1, 0)", bessel_i1e="bessel_i(x, 1, 1)")

DRIVER = """
#include <quadmath.h>
#include <math.h>
#include <stdint.h>
typedef __float128 Q;

static Q gelu_tanh(Q x)
{
  Q u = 2 * sqrtq(2 / M_PIq) * x * (1 + 0.044715Q * x * x);
  return isinfq(x) && x < 0 ? -0.0Q : x / (1 + expq(-u));
}
/* Inverse functions: a step of Newton's from the y to be judged. */
static Q erfcinv(Q q, Q y)
{
  if (!(q > 0 && q < 2))
    return q == 0 ? HUGE_VALQ : q == 2 ? -HUGE_VALQ : nanq("");
  return y + (erfcq(y) - q) * expq(y * y) * sqrtq(M_PIq) / 2;
}
static Q erfinv(Q x, Q y)
{
  if (!(fabsq(x) < 1))
    return fabsq(x) == 1 ? x * HUGE_VALQ : nanq("");
  if (x == 0)
    return x;
  return copysignq(fabsq(x) < 0.5Q ? fabsq(y - (erfq(y) - x) * expq(y * y) * sqrtq(M_PIq) / 2) : erfcinv(1 - fabsq(x), fabsq(y)), x);
}
static Q normcdfinv(Q p, Q y)
{
  if (!(p > 0 && p < 1))
    return p == 0 ? -HUGE_VALQ : p == 1 ? HUGE_VALQ : nanq("");
  Q w = y - (erfcq(-y * M_SQRT1_2q) / 2 - p) * expq(y * y / 2) * sqrtq(2 * M_PIq);
  return p == 0.5Q ? -0.0Q : w;
}
static Q erfcx(Q x)
{
  if (x < 40)
    return x < -40 ? HUGE_VALQ : expq(x * x) * erfcq(x);
  Q s = 1, t = 1;
  for (int k = 1; k < 40; k++)
    t *= -(2 * k - 1) / (2 * x * x), s += t;
  return s / (x * sqrtq(M_PIq));
}
static Q sinpi(Q x, int ahead)
{
  if (!finiteq(x))
    return nanq("");
  Q y = x - 2 * rintq(x / 2), n = rintq(2 * y);
  int q = ((int)n + ahead) & 3;
  Q t = (y - n / 2) * M_PIq, s = q & 1 ? cosq(t) : sinq(t);
  return s == 0 ? (ahead ? 0 : copysignq(0, x)) : q & 2 ? -s : s;
}
static Q digamma(Q x)
{
  static const Q b[] = {1 / 12.0Q, -1 / 120.0Q, 1 / 252.0Q, -1 / 240.0Q, 1 / 132.0Q, -691 / 32760.0Q, 1 / 12.0Q,
                        -3617 / 8160.0Q, 43867 / 14364.0Q, -174611 / 6600.0Q, 77683 / 276.0Q};
  Q s = 0;
  if (isnanq(x) || x == HUGE_VALQ)
    return x;
  if (x == 0)
    return -copysignq(HUGE_VALQ, x);
  if (x < 0) {
    Q t = x - rintq(x);
    if (!finiteq(x) || t == 0)
      return nanq("");
    s = -M_PIq / tanq(M_PIq * t);
    x = 1 - x;
  }
  while (x < 60)
    s -= 1 / x, x += 1;
  Q w = 1 / (x * x), p = 0;
  for (int k = 10; k >= 0; k--)
    p = p * w + b[k];
  return s + logq(x) - 1 / (2 * x) - p * w;
}
/* I0 and I1; with e times e^-|x|. */
static Q bessel_i(Q x, int n, int e)
{
  if (isnanq(x))
    return x;
  Q a = fabsq(x), s = 0, t = n ? a / 2 : 1;
  if (a == HUGE_VALQ)
    return e ? (n ? copysignq(0, x) : 0) : n ? x : a;
  if (a < 70) {
    for (int k = 1; k < 250; k++)
      s += t, t *= (a / 2) * (a / 2) / k / (k + n);
    s *= e ? expq(-a) : 1;
  } else {
    t = 1;
    for (int k = 1; k < 60; k++)
      s += t, t *= -(Q)(4 * n - (2 * k - 1) * (2 * k - 1)) / (8 * a * k);
    s *= (e ? 1 : expq(a)) / sqrtq(2 * M_PIq * a);
  }
  return n ? copysignq(s, x) : s;
}
/* In ulp of what is exact, or of `least` if that is larger. */
static double error(Q w, double g, double least)
{
  if (isnanq(w) || isnan(g))
    return isnanq(w) && isnan(g) ? 0 : INFINITY;
  if (w == 0 && g == 0)
    return !signbitq(w) == !signbit(g) ? 0 : INFINITY;
  Q v = isinf(g) ? copysignq(0x1p1024Q, g) : g;
  if (fabsq(w) >= 0x1.fffffffffffff8p1023Q)
    w = copysignq(0x1p1024Q, w);
  int e = fabsq(w) < least ? ilogb(least) : w == 0 ? -1022 : ilogbq(w);
  return scalbnq(fabsq(w - v), 52 - (e < -1022 ? -1022 : e > 1023 ? 1023 : e));
}
"""
ONE = "void ref_{0}(const double *xs, const double *zs, const double *ys, const double *least, double *err, int n)\n" \
      "{{\n  for (int i = 0; i < n; i++) {{\n" \
      "    double x = xs[i], z = zs[i], y = ys[i];\n    (void)z, (void)y;\n    err[i] = error({1}, y, least[i]);\n  }}\n}}\n"
LOOP = """
#include <stdint.h>
void one(const double *x, double *y, int32_t i);
void two(const double *x, const double *z, double *y, int32_t i);
void all(const double *x, const double *z, double *y, int n) { for (int i = 0; i < n; i++) CALL; }
"""


def references(folder):
    c, so = os.path.join(folder, "quad.c"), os.path.join(folder, "quad.so")
    open(c, "w").write(DRIVER + "".join(ONE.format(fn, text) for fn, text in QUAD.items()))
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", c, "-o", so, "-lquadmath", "-lm"], check=True)
    return ctypes.CDLL(so)


def native(tilec, fn, folder):
    pair = fn in table.PAIRS
    c, so = os.path.join(folder, fn + ".c"), os.path.join(folder, fn + ".so")
    open(c, "w").write(LOOP.replace("CALL", "two(x, z, y, i)" if pair else "one(x, y, i)"))
    maths_native.link([c, maths_native.compile_function(tilec, fn, folder, pair, "f64")], so)
    return ctypes.CDLL(so).all


def pointer(a):
    return a.ctypes.data_as(ctypes.c_void_p)


def errors(compute, reference, x, z, least):
    y, err = np.empty_like(x), np.empty_like(x)
    compute(pointer(x), pointer(z), pointer(y), len(x))
    reference(pointer(x), pointer(z), pointer(y), pointer(least), pointer(err), len(x))
    return y, err


if __name__ == "__main__":
    tilec = sys.argv[1]
    count = next((int(a[8:]) for a in sys.argv if a.startswith("--count=")), 1000000)
    names = [a for a in sys.argv[2:] if not a.startswith("--")] or list(QUAD)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        refs = references(folder)
        for fn in names:
            compute, reference = native(tilec, fn, folder), getattr(refs, "ref_" + fn)
            x, z = maths_points.points(fn, count)
            y, err = errors(compute, reference, x, z, table.least(fn, x))
            k = int(np.argmax(err))
            claim = table.limit_of(fn, "f64")
            bad |= not err[k] <= claim
            at = (x[k], z[k]) if fn in table.PAIRS else x[k]
            print(f"{fn:10} {err[k]:.4f} at {at!r} = {y[k]!r} {'' if err[k] <= claim else f': claimed {claim}'} ({len(x)} points)",
                  flush=True)
            if "--record" in sys.argv:
                table.record({(fn, "f64-quad"): float(err[k])})
    sys.exit(bad)
