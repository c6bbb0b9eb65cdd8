"""The functions of stdlib/math.tile against float64: the greatest error in ulp stays within the bound that is claimed here.
Same form as examples/cases.py. scripts/maths.py makes docs/maths.md of this table and of errors that were measured."""
from cases import Case, Run, launch
import math
import warnings
import numpy as np

warnings.filterwarnings("ignore", "invalid value encountered in cast")      # nans on the way to float64

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)
erf = lambda x: _erf(x).astype(np.float64)
erfc = lambda x: _erfc(x).astype(np.float64)
sigmoid = lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x)))

# name, reference in float64, bound in ulp for f32 and for f16 and bf16 (rounded once from f32: a little more than a half), what it
# is. Functions of two arguments take grids. `fast` ones are approximations of the hardware: bounded on a range, absolutely.
ONE = [
    ("exp", np.exp, 1.25, "e^x"), ("exp2", np.exp2, 1.0, "2^x"), ("exp10", lambda x: np.power(10.0, x), 1.5, "10^x"),
    ("expm1", np.expm1, 1.75, "e^x - 1"),
    ("log", np.log, 1.25, "natural logarithm"), ("log2", np.log2, 1.75, "to base 2"), ("log10", np.log10, 1.5, "to base 10"),
    ("log1p", np.log1p, 1.75, "log(1 + x)"),
    ("sin", np.sin, 1.75, "of any angle"), ("cos", np.cos, 1.75, "of any angle"), ("tan", np.tan, 2.0, "of any angle"),
    ("asin", np.arcsin, 2.0, ""), ("acos", np.arccos, 2.0, ""), ("atan", np.arctan, 1.75, ""),
    ("sinh", np.sinh, 2.0, ""), ("cosh", np.cosh, 2.0, ""), ("tanh", np.tanh, 2.0, ""),
    ("erf", erf, 1.25, "error function"), ("erfc", erfc, 2.0, "1 - erf x"),
    ("cbrt", np.cbrt, 1.25, "cube root"), ("sqrt", np.sqrt, 0.5, "square root"), ("rsqrt", lambda x: 1 / np.sqrt(x), 2.0, "1 / sqrt x, by the hardware"),
    ("sigmoid", sigmoid, 2.0, "1 / (1 + e^-x)"), ("silu", lambda x: np.where(x == -np.inf, -0.0, x * sigmoid(x)), 2.0, "x sigmoid(x)"),
    ("gelu", lambda x: np.where(x == -np.inf, -0.0, x * 0.5 * erfc(-x / math.sqrt(2))), 2.0, "x Phi(x)"),
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
    ("fast_tan", np.tan, -1, 1, 2.0**-18, True), ("fast_tanh", np.tanh, -10, 10, 2.0**-10.9, True),
    ("fast_rcp", lambda x: 1 / x, 1, 100, 2.0**-22, True), ("fast_sigmoid", sigmoid, -10, 10, 2.0**-19, True),
    ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), -3, 30, 2.0**-19, True),
]
FORMATS = {"f32": (24, -126, 127), "f16": (11, -14, 15), "bf16": (8, -126, 127)}       # digits, least and greatest exponent


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


def bf16_value(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def every_16(dtype):
    bits = np.arange(65536, dtype=np.uint16)
    return bits, bits.view(np.float16).astype(np.float64) if dtype == "f16" else bf16_value(bits).astype(np.float64)


def sweep(mantissas, rng):
    """f32 values of every exponent and both signs, with the ends and random mantissas between."""
    m = np.concatenate([[0, 1, 2, (1 << 23) - 2, (1 << 23) - 1], rng.integers(0, 1 << 23, max(mantissas - 5, 1))]).astype(np.uint32)
    b = (np.arange(512, dtype=np.uint32)[:, None] << 23 | m[None, :]).ravel()
    return np.concatenate([b, rng.integers(0, 1 << 32, 4096).astype(np.uint32)]).view(np.float32)


TEXT = """
kernel one(x: *T, y: *T, n: i32, type T = f32, const N = 512) warps(2) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, FN(load(x + i, mask=i < n, other=cast(1.0, T))), mask=i < n);
}
kernel two(x: *T, z: *T, y: *T, n: i32, type T = f32, const N = 512) warps(2) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, FN(load(x + i, mask=i < n, other=cast(1.0, T)), load(z + i, mask=i < n, other=cast(1.0, T))), mask=i < n);
}
"""


def compute(dev, fn, dtype, *args):
    k = dev.program(text=TEXT.replace("FN", fn), name=fn + ".tile").kernel("one" if len(args) == 1 else "two", T=dtype)
    n = len(args[0])
    out = dev.empty(n, dtype)
    call = launch(k, (n + 511) // 512, *[dev.array(a, dtype) for a in args], out, n)
    return call, out.numpy()


def as_real(a, dtype):
    return bf16_value(a.view(np.uint16)) if dtype == "bf16" else a


def grids(rng, n):
    """Pairs of f32: all edges with all edges, all sizes, and near 1 with large exponents."""
    edges = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, 1e-45, -1e-45, 1.2e-38, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 1.5, -2.5, 127, 128, -149,
                      8388607.5, 16777216, 16777215, 1e10, 0.99999994, 1.0000001], np.float32)
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    any_a, any_b = (rng.integers(0, 1 << 32, n).astype(np.uint32).view(np.float32) for _ in range(2))
    mid = (rng.standard_normal((2, n)) * 10).astype(np.float32)
    near = (1 + rng.standard_normal(n) * 10.0**rng.integers(-7, 0, n)).astype(np.float32)
    wide = (rng.standard_normal(n) * 10.0**rng.integers(-1, 8, n)).astype(np.float32)
    sizes = np.exp2(rng.uniform(-126, 127, n)).astype(np.float32)
    small = (rng.standard_normal(n) * 2).astype(np.float32)
    return np.concatenate([a, any_a, mid[0], abs(near), sizes]), np.concatenate([b, any_b, mid[1], wide, small])


def measure(dev, rng, fn, dtype, mantissas):
    """The call, errors in ulp, and for each what was computed: of all values of a 16-bit type, or over all exponents of f32."""
    reference = next(r[1] for r in ONE + TWO if r[0] == fn)
    two = any(r[0] == fn for r in TWO)
    if two:
        args = grids(rng, 80 * mantissas)
        if dtype == "f16":
            with np.errstate(over="ignore"):
                args = [a.astype(np.float16) for a in args]
        real = [a.astype(np.float64) for a in args]
    elif dtype == "f32":
        args = [sweep(mantissas, rng)]
        real = [args[0].astype(np.float64)]
    else:
        bits, values = every_16(dtype)
        args, real = [bits.view(np.float16) if dtype == "f16" else bits], [values]
    call, got = compute(dev, fn, dtype, *args)
    with np.errstate(all="ignore"):
        want = reference(*real)
    return call, ulps(as_real(got, dtype), want, dtype), real, as_real(got, dtype), want


def limit_of(fn, dtype):
    """What is claimed; the 16-bit types are rounded once, from f32."""
    return next(r[2] for r in ONE + TWO if r[0] == fn) if dtype == "f32" else 0.5 + 2.0**-8


def maths(dev, rng, fn, dtype, mantissas=2048):
    call, error, real, got, want = measure(dev, rng, fn, dtype, mantissas)
    worst = int(np.argmax(error))
    note = f"{fn}({', '.join(repr(float(r[worst])) for r in real)}) = {float(got[worst])!r}, not {float(want[worst])!r}"
    return Run(call, [(note, np.array([1 + error[worst]]), np.array([1.0]), limit_of(fn, dtype))])


def fast_maths(dev, rng, fn):
    """The hardware's approximations, where they are good."""
    name, reference, lo, hi, bound, relative = next(r for r in FAST if r[0] == fn)
    x = np.concatenate([rng.uniform(lo, hi, 4096), [lo, hi]]).astype(np.float32)
    call, got = compute(dev, fn, "f32", x)
    want = reference(x.astype(np.float64))
    error = abs(got - want) / (np.maximum(abs(want), 1e-30) if relative else 1)
    return Run(call, [(f"{fn}({x[np.argmax(error)]!r})", np.array([1 + error.max()]), np.array([1.0]), bound)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("maths", maths, [dict(fn=r[0], dtype=t) for r in ONE for t in ("f32", "f16", "bf16")] +
         [dict(fn=r[0], dtype=t) for r in TWO for t in ("f32", "f16")]),
    both("fast_maths", fast_maths, [dict(fn=r[0]) for r in FAST]),
]
