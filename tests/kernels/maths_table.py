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
# is. Functions of two arguments take grids. `fast` ones are approximations of the hardware: bounded on a range, absolutely.
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


def limit_of(fn, dtype):
    """What is claimed; the 16-bit types are rounded once, from f32."""
    return next(r[2] for r in ONE + TWO if r[0] == fn) if dtype == "f32" else 0.5 + 2.0**-8


DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "maths.txt")


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
        f.write("# Greatest errors in ulp as measured: function, type and where, error. Written by scripts/maths.py --measure (sim, gpu)\n"
                "# and scripts/maths_host.py --record (host).\n")
        for (fn, column), e in sorted(rows.items()):
            f.write(f"{fn} {column} {e:.4f}\n")

WIDE = {}


def least(fn, x):
    """Near zeros that are not at a simple place an error is judged beside this size: in ulp of it, where the function is smaller."""
    with np.errstate(all="ignore"):
        if fn in ("bessel_j0", "bessel_j1"):
            return np.where(abs(x) > 1, np.sqrt(2 / np.pi / abs(x)), 0.0)
        if fn in ("bessel_y0", "bessel_y1"):
            return np.where(x > 0.1, np.sqrt(2 / np.pi / np.maximum(x, 1.0)), 0.0)
        if fn in ("lgamma", "digamma"):
            return np.where(x < 0, np.log1p(abs(x)) + 1, 0.0)
    return np.zeros_like(x)
