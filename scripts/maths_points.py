"""Arguments in f64 at which functions of real numbers are measured (maths_quad.py) and tested (tests/kernels/maths_f64.txt): numbers of
all sizes, evenly spread where a function changes, near the places where it is hard, and edges. The same on every machine."""
import os
import sys
import zlib
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "kernels"))
from draw import Draw

PAIRS = ("pow", "atan2", "hypot")
PI_2 = np.longdouble("1.57079632679489661923132169163975144")

# Where a function changes: ranges of which numbers are drawn evenly, and places near which they are drawn at all distances.
RANGES = dict(exp=[(-750, 715), (-1, 1)], exp2=[(-1080, 1030), (-1, 1)], exp10=[(-330, 312), (-1, 1)], expm1=[(-40, 715), (-2, 2)],
              log=[(0, 3)], log2=[(0, 3)], log10=[(0, 3), (0, 1000)], log1p=[(-1, 3)], sin=[(-7, 7), (-1e5, 1e5), (-2e9, 2e9)],
              asin=[(-1, 1)], acos=[(-1, 1)], atan=[(-4, 4)], sinh=[(-715, 715), (-2, 2)], cosh=[(-715, 715), (-2, 2)],
              tanh=[(-25, 25), (-1, 1)],
              asinh=[(-10, 10), (-2, 2)], acosh=[(1, 10), (1, 2)], atanh=[(-1, 1)], erf=[(-7, 7), (-1, 1)], erfc=[(-7, 28), (-1, 2)],
              cbrt=[(-9, 9)], sqrt=[(0, 9)],
              sigmoid=[(-760, 40), (-4, 4)], silu=[(-770, 50), (-4, 4)], gelu=[(-40, 10), (-2, 2)], gelu_tanh=[(-23, 9), (-2, 2)],
              softplus=[(-760, 50), (-2, 2)])
RANGES.update(erfinv=[(-1, 1), (-0.1, 0.1)], erfcinv=[(0, 2), (0, 0.2)], erfcx=[(-27, 3), (-1, 2), (0, 40)], normcdf=[(-39, 9), (-2, 2)],
              normcdfinv=[(0, 1), (0, 0.1)],
              lgamma=[(0, 10), (0.5, 3), (0, 300)], tgamma=[(-10, 10), (0, 3), (-186, 0), (8, 172)], digamma=[(0, 10), (1, 2), (0, 100)],
              sinpi=[(-9, 9), (-1, 1)], cospi=[(-9, 9), (-1, 1)], rcbrt=[(-9, 9)],
              bessel_j0=[(-6, 6), (-100, 100)], bessel_j1=[(-6, 6), (-100, 100)], bessel_y0=[(0, 6), (0, 100)],
              bessel_y1=[(0, 6), (0, 100)],
              bessel_i0=[(-9, 9), (-715, 715)], bessel_i0e=[(-9, 9), (-715, 715)], bessel_i1=[(-9, 9), (-715, 715)],
              bessel_i1e=[(-9, 9), (-715, 715)])
for name in ("cos", "tan"):
    RANGES[name] = RANGES["sin"]
NEAR = dict(log=[1], log2=[1], log10=[1], acosh=[1], asin=[1, 0.5], acos=[1, -1, 0.5], atanh=[1, 0.5], atan=[1], log1p=[-1],
            erfinv=[1, -1], erfcinv=[1, 2], normcdfinv=[0.5, 1], lgamma=[1, 2], digamma=[1.4616321449683622])
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308,
         -1.7976931348623157e308,
         1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 100000.0, 9007199254740992.0, 4503599627370496.5]


def one(fn, draw, n):
    ranges, near = RANGES.get(fn, [(-4, 4)]), NEAR.get(fn, [])
    kinds = [lambda k, r=r: draw.even(k, *r) for r in ranges] + [lambda k, c=c: draw.near(k, c) for c in near]
    kinds += [lambda k: draw.bits(k).view(np.float64), lambda k: draw.sized(k), lambda k: draw.sized(k, -30.0, 12.0)]
    if fn in ("sin", "cos", "tan"):
        # the f64 nearest to multiples of a quarter of a circle, and their neighbours
        whole = lambda k, most: np.exp2(draw.even(k, 0.0, most)).astype(np.longdouble)
        kinds += [lambda k: (np.rint(whole(k, 16.0)) * PI_2).astype(np.float64),
                  lambda k: (np.rint(whole(k, 52.0)) * PI_2).astype(np.float64)]
    each = max((n - len(EDGES)) // len(kinds), 1)
    return np.concatenate([EDGES, *[kind(each) for kind in kinds]])


def two(fn, draw, n):
    edges = EDGES[:6] + EDGES[9:12] + EDGES[13:17]
    a, b = (v.ravel() for v in np.meshgrid(edges, edges))
    each = max((n - len(a)) // 4, 1)
    x = [a, draw.bits(each).view(np.float64), draw.even(each, -4.0, 4.0), abs(draw.near(each, 1.0)) if fn == "pow" else draw.sized(each),
         abs(draw.sized(each))]
    z = [b, draw.bits(each).view(np.float64), draw.even(each, -30.0, 30.0)]
    if fn == "pow":
        with np.errstate(all="ignore"):
            z += [draw.sized(each, -3.0, 60.0), draw.even(each, -1080.0, 1030.0) / np.log2(x[4])]
    else:
        z += [x[3] * draw.sized(each, -20.0, 20.0), x[4] * draw.even(each, 0.1, 10.0)]
    return np.concatenate(x), np.concatenate(z)


def points(fn, n):
    """About n arguments: x and z, of which z counts for functions of two numbers only."""
    draw = Draw(zlib.crc32(fn.encode()))
    with np.errstate(all="ignore"):
        if fn in PAIRS:
            return tuple(np.ascontiguousarray(v) for v in two(fn, draw, n))
        x = np.ascontiguousarray(one(fn, draw, n))
        return x, x
