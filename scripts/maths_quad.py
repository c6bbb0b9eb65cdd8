"""maths_quad.py TILEC [--count=N] [--record] [NAME...]: the greatest error in ulp of each function of stdlib/math64.tile, in f64, over N points
of the kinds that maths_points.py makes (a million without the option): the code that tilec makes for the GPU, compiled for this machine's
processor, against quadruple precision. The references need gcc with libquadmath. One line a function: error, where; exit status 1
where an error exceeds its claim in tests/kernels/maths_table.py. --record writes docs/maths.txt."""
import ctypes, os, subprocess, sys, tempfile

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(root, "tests", "kernels"), os.path.dirname(os.path.abspath(__file__))]
import numpy as np
import maths_native, maths_points
import maths_table as table

# The exact function of doubles x and z (with y, what was computed, for inverse functions), in quadruple precision.
QUAD = dict(exp="expq(x)", exp2="powq(2, x)", exp10="powq(10, x)", expm1="expm1q(x)", log="logq(x)", log2="log2q(x)", log10="log10q(x)", log1p="log1pq(x)",
            sin="sinq(x)", cos="cosq(x)", tan="tanq(x)", asin="asinq(x)", acos="acosq(x)", atan="atanq(x)", sinh="sinhq(x)", cosh="coshq(x)", tanh="tanhq(x)",
            asinh="asinhq(x)", acosh="acoshq(x)", atanh="atanhq(x)", erf="erfq(x)", erfc="erfcq(x)", cbrt="cbrtq(x)", sqrt="sqrtq(x)",
            sigmoid="1 / (1 + expq(-(Q)x))", silu="isinfq(x) && x < 0 ? -0.0Q : x / (1 + expq(-(Q)x))",
            gelu="isinfq(x) && x < 0 ? -0.0Q : (Q)x * (erfcq(-(Q)x * M_SQRT1_2q) / 2)",
            gelu_tanh="gelu_tanh(x)", softplus="x > 0 ? x + log1pq(expq(-(Q)x)) : log1pq(expq(x))",
            pow="powq(x, z)", atan2="atan2q(x, z)", hypot="isinfq(x) || isinfq(z) ? HUGE_VALQ : hypotq(x, z)")

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
static double error(Q w, double g)
{
  if (isnanq(w) || isnan(g))
    return isnanq(w) && isnan(g) ? 0 : INFINITY;
  if (w == 0 && g == 0)
    return !signbitq(w) == !signbit(g) ? 0 : INFINITY;
  Q v = isinf(g) ? copysignq(0x1p1024Q, g) : g;
  if (fabsq(w) >= 0x1.fffffffffffff8p1023Q)
    w = copysignq(0x1p1024Q, w);
  int e = w == 0 ? -1022 : ilogbq(w);
  return scalbnq(fabsq(w - v), 52 - (e < -1022 ? -1022 : e > 1023 ? 1023 : e));
}
"""
ONE = "void ref_{0}(const double *xs, const double *zs, const double *ys, double *err, int n)\n{{\n  for (int i = 0; i < n; i++) {{\n" \
      "    double x = xs[i], z = zs[i], y = ys[i];\n    (void)z, (void)y;\n    err[i] = error({1}, y);\n  }}\n}}\n"
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
    pair = fn in maths_points.PAIRS
    c, so = os.path.join(folder, fn + ".c"), os.path.join(folder, fn + ".so")
    open(c, "w").write(LOOP.replace("CALL", "two(x, z, y, i)" if pair else "one(x, y, i)"))
    maths_native.link([c, maths_native.compile_function(tilec, fn, folder, pair, "f64")], so)
    return ctypes.CDLL(so).all


def pointer(a):
    return a.ctypes.data_as(ctypes.c_void_p)


def errors(compute, reference, x, z):
    y, err = np.empty_like(x), np.empty_like(x)
    compute(pointer(x), pointer(z), pointer(y), len(x))
    reference(pointer(x), pointer(z), pointer(y), pointer(err), len(x))
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
            y, err = errors(compute, reference, x, z)
            k = int(np.argmax(err))
            claim = table.WIDE.get(fn, 2.0)
            bad |= not err[k] <= claim
            at = (x[k], z[k]) if fn in maths_points.PAIRS else x[k]
            print(f"{fn:10} {err[k]:.4f} at {at!r} = {y[k]!r} {'' if err[k] <= claim else f': claimed {claim}'} ({len(x)} points)", flush=True)
            if "--record" in sys.argv:
                table.record({(fn, "f64-quad"): float(err[k])})
    sys.exit(bad)
