"""What is claimed of the functions of stdlib/math.tile, and what was measured (docs/maths.txt). scripts/maths.py makes docs/maths.md
of both; tests/kernels/maths.py and scripts/maths_host.py measure."""
import math
import os
import warnings
import numpy as np

warnings.filterwarnings("ignore", "invalid value encountered in cast")      # nans on the way to float64

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)
erf = lambda x: _erf(x).astype(np.float64)
erfc = lambda x: _erfc(x).astype(np.float64)
GELU_2U = lambda x: 2 * math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)
sigmoid = lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))

# name, reference in float64, bound in ulp for f32 and for f16 and bf16 (rounded once from f32: a little more than a half), what it
# is. Without a reference the same function in f64 is it, which maths_f64.txt holds. Functions of two arguments take grids. `fast`
# ones are approximations of the hardware: bounded on a range, absolutely.
ONE = [
    ("exp", np.exp, 1.25, "e^x"), ("exp2", np.exp2, 1.0, "2^x"), ("exp10", lambda x: np.power(10.0, x), 1.5, "10^x"),
    ("expm1", np.expm1, 1.75, "e^x - 1"),
    ("log", np.log, 1.25, "natural logarithm"), ("log2", np.log2, 1.75, "to base 2"), ("log10", np.log10, 1.75, "to base 10"),
    ("log1p", np.log1p, 1.75, "log(1 + x)"),
    ("sin", np.sin, 1.75, "of any angle"), ("cos", np.cos, 1.75, "of any angle"), ("tan", np.tan, 2.0, "of any angle"),
    ("asin", np.arcsin, 2.0, ""), ("acos", np.arccos, 2.0, ""), ("atan", np.arctan, 1.75, ""),
    ("sinh", np.sinh, 2.0, ""), ("cosh", np.cosh, 2.0, ""), ("tanh", np.tanh, 2.0, ""),
    ("asinh", np.arcsinh, 2.0, ""), ("acosh", np.arccosh, 2.0, ""), ("atanh", np.arctanh, 2.0, ""),
    ("erf", erf, 1.25, "error function"), ("erfc", erfc, 2.0, "1 - erf x"),
    ("cbrt", np.cbrt, 1.25, "cube root"), ("sqrt", np.sqrt, 0.5, "square root"), ("rsqrt", lambda x: 1 / np.sqrt(x), 2.0, "1 / sqrt x, by the hardware"),
    ("sigmoid", sigmoid, 2.0, "1 / (1 + e^-x)"), ("silu", lambda x: np.where(x == -np.inf, -0.0, x * sigmoid(x)), 2.0, "x sigmoid(x)"),
    ("gelu", lambda x: np.where(x == -np.inf, -0.0, x * 0.5 * erfc(-x / math.sqrt(2))), 2.0, "x Phi(x)"),
    ("gelu_tanh", lambda x: np.where(x == -np.inf, -0.0, x * sigmoid(GELU_2U(x))), 2.0, "x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))"),
    ("softplus", lambda x: np.logaddexp(0, x), 2.0, "log(1 + e^x)"),
    ("erfinv", None, 2.5, "inverse of erf"), ("erfcinv", None, 3.0, "inverse of erfc"), ("erfcx", None, 2.5, "e^(x^2) erfc x"),
    ("normcdf", None, 2.0, "Phi(x), the normal distribution"), ("normcdfinv", None, 3.5, "its inverse"),
    ("lgamma", None, 0.51, "log of the size of Gamma(x)"), ("tgamma", None, 0.51, "Gamma(x)"), ("digamma", None, 0.51, "derivative of log Gamma(x)"),
    ("sinpi", None, 1.25, "sin(pi x)"), ("cospi", None, 1.25, "cos(pi x)"), ("rcbrt", None, 1.0, "1 / cbrt x"),
    ("bessel_j0", None, 0.51, "first kind, order 0"), ("bessel_j1", None, 0.51, "order 1"), ("bessel_y0", None, 0.51, "second kind, order 0"), ("bessel_y1", None, 0.51, "order 1"),
    ("bessel_i0", None, 3.5, "modified, first kind, order 0"), ("bessel_i0e", None, 3.25, "e^-abs(x) I0(x)"),
    ("bessel_i1", None, 4.0, "order 1"), ("bessel_i1e", None, 3.25, "e^-abs(x) I1(x)"),
]
TWO = [
    ("pow", np.power, 2.0, "x^y"), ("atan2", np.arctan2, 2.0, "angle of (y, x)"), ("hypot", lambda x, y: np.where(np.isinf(x) | np.isinf(y), np.inf, np.hypot(x, y)), 1.25, "sqrt(x^2 + y^2)"),
]
# name, reference, range, bound, relative?
FAST = [
    ("fast_exp", np.exp, -10, 10, 2.0**-20, True), ("fast_exp2", np.exp2, -20, 20, 2.0**-22, True),
    ("fast_log", np.log, 2.0, 1000, 2.0**-20, True), ("fast_log2", np.log2, 2.0, 1000, 2.0**-21, True),
    ("fast_sin", np.sin, -math.pi, math.pi, 2.0**-20, False), ("fast_cos", np.cos, -math.pi, math.pi, 2.0**-20, False),
    ("fast_tan", np.tan, -1, 1, 2.0**-18, False), ("fast_tanh", np.tanh, -10, 10, 2.0**-10.9, True),
    ("fast_rcp", lambda x: 1 / x, 1, 100, 2.0**-22, True), ("fast_sigmoid", sigmoid, -10, 10, 2.0**-19, True),
    ("fast_log10", np.log10, 2.0, 1000, 2.0**-20, True), ("fast_silu", lambda x: x * sigmoid(x), -10, 10, 2.0**-19, True),
    ("fast_gelu", lambda x: x * sigmoid(GELU_2U(x)), -10, 10, 2.0**-9, False),
]
# What is taken unless a kernel asks for maths(exact): errors in ulp of f32, where the result is not smaller than SMALL, with the
# approximations of sm_90, and with any that the PTX ISA allows. Of results in 16 bits WRONG are farther away than
# NEAREST, with approximations as first: in units of their last place, the nearest number but for what the rounding of an exact result to
# f32 may hide.
CLOSE = [
    ("exp", 2.75, 2.75), ("expm1", 3.5, 5.0), ("sigmoid", 3.75, 7.0), ("silu", 3.75, 7.0), ("tanh", 3.75, 6.25), ("gelu", 8.0, 10.0), ("gelu_tanh", 3.75, 7.0),
    ("log", 4.0, 7.5), ("log10", 3.0, 11.25), ("log1p", 3.75, 5.5), ("softplus", 4.0, 6.5), ("erf", 1.75, 3.0),
    ("sin", 2.5, 3.0), ("cos", 2.5, 3.0),
]
# Instructions for an element of f32, as close.py counts them in PTX, and what they go to.
COST = dict(
    exp=(6, "a clamp, the product with log2 e, two for what that loses (up to 2^-17 of the result), the power, and one to bring it in"),
    expm1=(14, "below 1/2 the power's 2^-22.7 is more than 4 ulp of what is left behind 1: a series of 6 and the choice"),
    sigmoid=(8, "those of `exp` but for the last, and three that add, with what was lost, and invert"),
    silu=(9, "those of `sigmoid` and a product; the clamp is of one side"),
    tanh=(12, "below 0.35 the errors of power and inverse, beside 1, are more than 4 ulp: a series of 5 and the choice"),
    gelu=(23, "more than 4 ulp: quotient, power, the polynomials and four products each round once, all into a small result"),
    gelu_tanh=(18, "the power of up to 127 feels what x^2, the sum and both constants lose, 30 to 100 ulp each: 7 of them"),
    log=(14, "below 1/4 `lg2`'s 2^-22.5 is more than 4 ulp: a series of 8 and the choice; and 3 of `lg2` are for subnormal numbers"),
    log10=(15, "the same, below 1/8"),
    log1p=(16, "the same; 1 + x is rounded, so the series, of a quotient, goes to results of 0.7"),
    softplus=(16, "those of `exp` and a series of 9 from 0 to 1"),
    erf=(17, "near 0 a series of 7, beyond it a power of a series of 6, the choice and the sign"),
    sin=(12, "3 to find the half turn, 3 for pi in three parts, a series of 5, the sign"),
    cos=(14, "the same, and 2 for numbers of half turns that are a half more than whole"),
)
POW = (3.5, 4.5)     # the same two of `pow`, of numbers above 0
SMALL = 2.0**-115
# What is taken for results in f16, where that is not the close one: good for 11 digits; for gelu only where it itself becomes a number of f16.
HALF = dict(exp="rough", expm1="rough", sigmoid="rough", silu="rough", gelu="narrow", gelu_tanh="rough", log="rough", log10="rough", softplus="rough")
WRONG = 1e-4
NEAREST = {"f16": 0.5 + 2.0**-14, "bf16": 0.5 + 2.0**-17}
# Bounds in f64; 1 for those that are not here.
WIDE = dict(exp=0.75, exp2=0.8, exp10=0.75, expm1=1.25, cbrt=0.75, rcbrt=0.75, sqrt=0.5, rsqrt=1.5, atan=1.25, asinh=1.25, erfc=1.25, gelu=1.25, softplus=1.25,
            erfinv=1.75, erfcinv=1.75, erfcx=2.0, normcdf=1.25, normcdfinv=1.5, lgamma=2.5, tgamma=2.25, digamma=3.5, bessel_j0=4.0, bessel_j1=4.5,
            bessel_y0=6.0, bessel_y1=6.0, bessel_i0=3.5, bessel_i0e=3.5, bessel_i1=3.5, bessel_i1e=3.5)
PAIRS = [r[0] for r in TWO]
FORMATS = {"f64": (53, -1022, 1023), "f32": (24, -126, 127), "f16": (11, -14, 15), "bf16": (8, -126, 127)}       # digits, least and greatest exponent


def limit_of(fn, dtype):
    """What is claimed; the 16-bit types are rounded once, from f32."""
    if dtype == "f64":
        return WIDE.get(fn, 1.0)
    return next(r[2] for r in ONE + TWO if r[0] == fn) if dtype == "f32" else 0.5 + 2.0**-8


def close_limit(fn):
    """What is claimed of a close function on sm_90."""
    return next(near for name, near, _ in CLOSE if name == fn)


def least(fn, x):
    """Near zeros that are not at a simple place an error in f64 is judged beside this size: in ulp of it, where the function is smaller."""
    with np.errstate(all="ignore"):
        if fn in ("bessel_j0", "bessel_j1"):
            return np.where(abs(x) > 1, np.sqrt(2 / np.pi / abs(x)), 0.0)
        if fn in ("bessel_y0", "bessel_y1"):
            return np.where(x > 0.1, np.sqrt(2 / np.pi / np.maximum(x, 1.0)), 0.0)
        if fn in ("lgamma", "digamma"):
            return np.where(x < 0, np.log1p(abs(x)) + 1, 0.0)
    return np.zeros_like(x)


def ulps(got, want, dtype):
    """Errors in units of the last place of the wanted value; what overflows counts as the next power of two."""
    digits, least, most = FORMATS[dtype]
    top = 2.0**(most + 1)
    g, w = got.astype(np.float64), want.astype(np.float64)
    both = np.isnan(g) & np.isnan(w)
    limit = top * (1 - 2.0**-(digits + 1))
    w = np.where(abs(w) >= limit, np.copysign(top, w), w)
    g = np.where(np.isinf(g), np.copysign(top, g), g)
    with np.errstate(all="ignore"):
        e = np.floor(np.log2(np.where(w == 0, 1e-320, abs(w))))
        unit = 2.0**(np.clip(e, least, most) - (digits - 1))
        error = abs(g - w) / unit
        sign = (w == 0) & (g == 0) & (np.signbit(w) != np.signbit(g))
    error = np.where(sign, np.inf, error)
    return np.where(both, 0, np.where(np.isnan(error), np.inf, error))


def both_small(got, want):
    """Where both are smaller than SMALL and of one sign, or no zero of the other."""
    return (abs(want) < SMALL) & (abs(got) < SMALL) & ((np.signbit(got) == np.signbit(want)) | (got != 0))


HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "docs", "maths.txt")
STEP = 0.0001                    # of the last digit of a row there


def exact_points(fn):
    """The rows of maths_f64.txt for a function: arguments x and z, the nearest f64 to the exact result, and how far that lies beyond it in ulp."""
    rows, here = [], False
    for line in open(os.path.join(HERE, "maths_f64.txt")):
        if line.startswith("="):
            here = line.split()[1] == fn
        elif here:
            *bits, rest = line.split()
            rows.append([int(b, 16) for b in bits] + [float(rest)])
    bits = np.array([r[:-1] for r in rows], np.uint64).view(np.float64)
    return bits[:, 0].copy(), bits[:, -2].copy(), bits[:, -1].copy(), np.array([r[-1] for r in rows])


def recorded():
    """{(function, column): error}: what was measured and written down."""
    rows = {}
    for line in open(DATA) if os.path.exists(DATA) else []:
        if not line.startswith("#"):
            fn, column, error = line.split()
            rows[fn, column] = float(error)
    return rows


def record(more):
    """Add rows to it, or exchange them."""
    rows = {**recorded(), **more}
    with open(DATA, "w") as f:
        f.write("# Greatest errors in ulp as measured: function, type and where, error. Written by scripts/maths.py --measure (sim, gpu),\n"
                "# scripts/maths_host.py --record (host; part: every 1021st value), scripts/maths_quad.py --record (quad) and\n"
                "# tests/numbers/close.py --sweep --record (close-all). Tests measure sim and part again: a greater error fails.\n")
        for (fn, column), e in sorted(rows.items()):
            f.write(f"{fn} {column} {e:.4f}\n")
