"""The functions that lean on the hardware's approximations (stdlib/tiers.tile), with the approximations of sm_90, bit for bit
(runtime/approx.c), and with such as are wrong by as much as the PTX ISA lets them be: close ones stay within the greatest errors that
maths_table.py claims for either, and of what is rounded to 16 bits no more is wrong than it claims. They take no more instructions than it says.

close.py --build BUILD [--report] [NAME...]: the code that is made for the GPU, on this machine's processor (scripts/maths_native.py).
An approximation that is not sm_90's gives the exact result moved by the whole of its documented error, all of one instruction in one
direction, or each result by a part of it; every combination of directions is tried. Needs clang.

close.py --build BUILD --keep=DIR [NAME...]: only makes the libraries. close.py --sweep=DIR [--record] [NAME...]: the greatest errors, with the
approximations of sm_90, over all 2^32 arguments, on all cores, by libraries that lie in DIR; --record writes them to docs/maths.txt."""
import concurrent.futures
import ctypes
import itertools
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(root, p) for p in ("scripts", "tests/kernels")]
import maths_native
import maths_table as table

given = {a.split("=", 1)[0]: a.partition("=")[2] for a in sys.argv[1:] if a.startswith("--")}
tilec = os.path.join(os.path.abspath(sys.argv[sys.argv.index("--build") + 1]), "bin", "tilec") if "--build" in given else None

# The instruction as LLVM names it, and what stands in for it below.
UNITS = {"llvm.nvvm.ex2.approx.ftz.f32": "ex2", "llvm.nvvm.lg2.approx.f": "lg2", "llvm.nvvm.rcp.approx.ftz.f": "rcp",
         "llvm.nvvm.fmin.nan.xorsign.abs.f": "clamp"}
KINDS = ["ex2", "lg2", "rcp"]

# Errors: PTX ISA, ex2, lg2 and rcp .approx.f32.
DRIVER = """
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "%(runtime)s/approx.h"
enum { EX2, LG2, RCP, KINDS };
static int way[KINDS];          /* of each instruction: 0 that of sm_90, 1 up, -1 down, 2 any */
void ways(const int *w) { memcpy(way, w, sizeof way); }
static uint32_t bits(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static double ulp(double y)
{
  int e;
  frexp(y, &e);
  return ldexp(1, (e < -125 ? -125 : e) - 24);
}
/* A float that is no more than `most` away from y. */
static float wrong(int kind, float x, double y, double most)
{
  if (!isfinite(y) || y == 0 || x == 0)
    return (float)y;
  uint32_t h = (bits(x) ^ 0x9e3779b9u * (uint32_t)(kind + 1)) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  double part = way[kind] == 2 ? (double)(h ^ h >> 16) * 0x1p-31 - 1 : way[kind], to = y + part * most;
  float r = (float)to;
  return isinf(r) || fabs(r - y) <= most ? r : nextafterf(r, (float)y);
}
static float real(ApproxFn f, bool ftz, float x)
{
  uint32_t b = approx_f32(f, ftz, bits(x));
  memcpy(&x, &b, sizeof x);
  return x;
}
float approx_ex2(float x)
{
  double y = exp2(flushed(x));
  return way[EX2] ? flushed(wrong(EX2, x, y, 2 * ulp(y))) : real(APPROX_EX2, 1, x);
}
float approx_rcp(float x)
{
  double y = 1 / (double)flushed(x);
  return way[RCP] ? flushed(wrong(RCP, x, y, ulp(y))) : real(APPROX_RCP, 1, x);
}
float approx_lg2(float x)
{
  double y = log2(x);
  if (!way[LG2])
    return real(APPROX_LG2, 0, x);
  return wrong(LG2, x, y, x > 0.5f && x < 2 ? 0x1p-22 : 0x1p-22 * fabs(y));
}
float approx_clamp(float x, float most) { return x != x ? NAN : copysignf(fminf(fabsf(x), fabsf(most)), x * copysignf(1, most)); }
%(pair)s
#ifdef PAIR
void two(const float *x, const float *z, float *y, int32_t i);
void all_pairs(const float *x, const float *z, float *y, int32_t n)
{
  for (int32_t i = 0; i < n; i++)
    two(x, z, y, i);
}
#else
void one(const float *x, float *y, int32_t i);
void all(const float *x, float *y, int32_t n)
{
  for (int32_t i = 0; i < n; i++)
    one(x, y, i);
}
static double exact(double x) { return %(exact)s; }
/* The greatest error of count arguments from first on, and where; those of a size beyond `bound` are left out. */
double worst(uint32_t first, uint32_t count, float bound, uint32_t *at)
{
  double most = -1;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t b = first + i;
    float x, y;
    memcpy(&x, &b, 4);
    if (!(fabsf(x) <= bound))
      continue;
    one(&x, &y, 0);
    double r = exact(x), e;
    if (fabs(r) < 0x1p-115 && fabsf(y) < 0x1p-115f && (!signbit(r) == !signbit(y) || y != 0))
      continue;
    double top = isinf(r) || fabs(r) >= 0x1.ffffffp127 ? copysign(0x1p128, r) : r, g = isinf(y) ? copysign(0x1p128, y) : y;
    e = (isnan(r) && isnan(y)) || top == g ? (r == 0 && signbit(r) != signbit(y) ? INFINITY : 0) : fabs(g - top) / ulp(top);
    if (!(e <= most))
      most = isnan(e) ? INFINITY : e, *at = b;
  }
  return most;
}
#endif
"""
# The same functions in C, in double.
EXACT = dict(exp="exp(x)", expm1="expm1(x)", sigmoid="1 / (1 + exp(-x))", silu="x < -745 ? -0.0 : x / (1 + exp(-x))", tanh="tanh(x)",
             gelu="x < -40 ? -0.0 : 0.5 * x * erfc(x * -0.70710678118654752440)", log="log(x)", log10="log10(x)", log1p="log1p(x)", erf="erf(x)", sin="sin(x)",
             gelu_tanh="x < -30 ? -0.0 : x / (1 + exp(-1.59576912160573071176 * (x + 0.044715 * x * x * x)))",
             softplus="x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))", cos="cos(x)")


def approximated(text):
    for name, unit in UNITS.items():
        text = text.replace(f"@{name}(", f"@approx_{unit}(")
    return text


class Native:
    """A function of the library, of arrays of f32. pair: of two."""

    def __init__(self, fn, folder, pair=False):
        c, so = (os.path.join(folder, fn + e) for e in (".driver.c", ".so"))
        name = fn.rpartition("_")[0]
        driver = DRIVER % dict(runtime=os.path.join(root, "runtime"), exact="0" if pair else EXACT[name],
                               pair="#define PAIR" if pair else "")
        ir = maths_native.compile_function(tilec, fn, folder, pair=pair, change=approximated)
        self.kinds = [k for k in KINDS if f"@approx_{k}(" in open(ir).read()]
        open(c, "w").write(driver)
        maths_native.link([c, ir, os.path.join(root, "runtime", "approx.c")], so)
        self.lib = ctypes.CDLL(so)

    def ways(self):
        """Ways for the instructions to be wrong."""
        yield "sm_90", [0] * len(KINDS)
        for signs in itertools.product((1, -1), repeat=len(self.kinds)):
            text = " ".join(f"{k}{'+' if s > 0 else '-'}" for k, s in zip(self.kinds, signs))
            yield text, [dict(zip(self.kinds, signs)).get(k, 0) for k in KINDS]
        yield "any", [2] * len(KINDS)

    def __call__(self, x, way, z=None):
        self.lib.ways((ctypes.c_int * len(KINDS))(*way))
        y = np.empty_like(x)
        p = lambda a: a.ctypes.data_as(ctypes.c_void_p)
        if z is None:
            self.lib.all(p(x), p(y), ctypes.c_int32(len(x)))
        else:
            self.lib.all_pairs(p(x), p(z), p(y), ctypes.c_int32(len(x)))
        return y


def sample():
    """f32: some of every exponent, and more where functions bend."""
    rng = np.random.default_rng(5)
    some = np.arange(0, 1 << 32, 8191, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754943e-38, 3.4028235e38, -3.4028235e38, 1.0, 2.0, 0.5]
    ranges = [(-100, 100, 200000), (-16, 16, 150000), (-2, 2, 150000), (0.4, 2.6, 100000), (86, 90, 10000), (-90, -86, 10000)]
    return np.concatenate([some, edges, *(rng.uniform(*r) for r in ranges)]).astype(np.float32)


def to_bf16(y):
    """f32 or f64, rounded once; as bits."""
    y = np.asarray(y)
    with np.errstate(all="ignore"):
        f = y.astype(np.float32)
        b = f.view(np.uint32)
        if y.dtype == np.float64:      # to odd first
            toward = np.where(abs(f.astype(np.float64)) > abs(y), b - 1, b)
            b = np.where((f != y) & np.isfinite(y), toward | 1, b).astype(np.uint32)
    r = (b + 0x7FFF + (b >> 16 & 1)) >> 16
    return np.where(np.isnan(y), 0x7FFF, r).astype(np.uint16)


def to_f16(y):
    with np.errstate(all="ignore"):
        b = np.asarray(y).astype(np.float16).view(np.uint16)
    return np.where(np.isnan(y), 0x7FFF, b)


def astray(dtype, got, want):
    """Of results in 16 bits, as bits: how far from the nearest, in numbers of the type; 0 for those that are as near as one in f32 that
    is right says."""
    rounded = to_f16 if dtype == "f16" else to_bf16
    digits, least, _ = table.FORMATS[dtype]
    with np.errstate(all="ignore"):
        slack = 2.0**(np.clip(np.frexp(want)[1] - 1, least, None) - digits + 1) * (table.NEAREST[dtype] - 0.5)
        slack = np.where(np.isfinite(want), slack, 0)
        near = [rounded(want - slack), rounded(want), rounded(want + slack)]
    size = lambda b: (b & 0x7FFF).astype(int)
    small = (size(got) < (127 - 115) << 7) & (size(near[1]) < (127 - 115) << 7) & (dtype == "bf16")
    return np.where(small | (got == near[0]) | (got == near[2]), 0, abs(got.astype(int) - near[1].astype(int)))


def arguments(dtype):
    bits = np.arange(65536, dtype=np.uint32)
    return (bits << 16).view(np.float32) if dtype == "bf16" else bits.astype(np.uint16).view(np.float16).astype(np.float32)


def reference(fn, x):
    ref = next(r[1] for r in table.ONE if r[0] == fn)
    with np.errstate(all="ignore"):
        return np.asarray(ref(x.astype(np.float64)), np.float64)


def judged(good, text):
    """Whether it is bad."""
    if "--report" in sys.argv or not good:
        print(text + ("" if good else ": more than claimed"), flush=True)
    return not good


def close_one(fn, f, x, nearest, worst):
    """Errors of the close form in f32."""
    want, bad = reference(fn, x), False
    for text, way in f.ways():
        got = f(x, way)
        error = np.where(table.both_small(got, want), 0, table.ulps(got, want, "f32"))
        at, limit = int(np.argmax(error)), worst if any(way) else nearest
        bad |= judged(error[at] <= limit, f"{fn}_close {text}: {error[at]:.3f} ulp of {limit} at {x[at]!r}")
    return bad


def pow_close(folder):
    """x^y of x > 0: at random bases and powers, bases near 1 with such powers that the result is some other number, and where it is none."""
    rng, n = np.random.default_rng(7), 400000
    bases = [np.exp2(rng.uniform(-126, 128, n)), np.exp2(rng.uniform(-149, -126, n // 8)),
             1 + rng.uniform(-1, 1, n) * np.exp2(rng.uniform(-23, 0, n)) / 2]
    x = np.concatenate(bases).astype(np.float32)
    x = x[(x > 0) & np.isfinite(x) & (x != 1)]
    z = (rng.uniform(-128, 130, len(x)) / np.log2(x.astype(np.float64))).astype(np.float32)
    z[::7] = rng.uniform(-4, 4, len(z[::7]))
    z[::100] = 3e38
    z[1::100] = -3e38
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), z.astype(np.float64))
    f, bad = Native("pow_close", folder, pair=True), False
    for text, way in f.ways():
        got = f(x, way, z)
        error = np.where(table.both_small(got, want), 0, table.ulps(got, want, "f32"))
        at, limit = int(np.argmax(error)), table.POW[1] if any(way) else table.POW[0]
        bad |= judged(error[at] <= limit, f"pow_close {text}: {error[at]:.3f} ulp of {limit} at {x[at]!r}, {z[at]!r}")
    return bad


def in_16_bits(fn, f, x, dtype):
    """How many results are not the nearest. With approximations that are wrong there may be more, of which each is a neighbour."""
    want, bad = reference(fn, x), False
    for text, way in f.ways():
        got = f(x, way)
        off = astray(dtype, to_f16(got) if dtype == "f16" else to_bf16(got), want)
        wrong, most = np.count_nonzero(off), off.max()
        bad |= judged(most <= 1 and (any(way) or wrong <= 65536 * table.WRONG),
                      f"{fn} in {dtype} {text}: {wrong} wrong, by {most} at {x[off.argmax()]!r}")
    return bad


COUNTED = "kernel one(x: *f32, y: *f32) warps(1) { let i = arange(0, 32); store(y + i, FN(load(x + i))); }\n"
# What the assembler folds into other instructions (a shift into a sum), and what it adds to one: the form of lg2 that knows subnormal numbers.
FREE, MORE = ("mov", "neg", "abs", "selp", "shl"), {"lg2.approx.f32": 3}


def instructions(fn, folder):
    """How many sm_90 takes for an element: of PTX, without the kernel's own, and without limits 0 and 1, which are a mode of others."""
    def counted(what):
        path = os.path.join(folder, "counted.tile")
        with open(path, "w") as f:
            f.write(COUNTED.replace("FN", what))
        ptx = subprocess.run([tilec, path], capture_output=True, text=True, check=True).stdout
        names = [m[1] for m in re.finditer(r"^\s+(?:@%p\d+ )?([a-z][\w.]*)\s", ptx, re.M)]
        modes = len(re.findall(r"min\.f32\s.*0f3F800000", ptx))
        return sum(1 + MORE.get(n, 0) for n in names if not n.startswith(FREE)) - 2 * modes
    return counted(fn) - counted("abs")


def sweep(fn, folder, claimed):
    """The greatest error over all arguments."""
    f = ctypes.CDLL(os.path.join(os.path.abspath(folder), fn + "_close.so")).worst
    f.restype, f.argtypes = ctypes.c_double, [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_float, ctypes.c_void_p]

    def part(k):
        at = ctypes.c_uint32()
        return f(k << 20, 1 << 20, BOUNDED.get(fn, np.inf), ctypes.addressof(at)), at.value
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        error, at = max(pool.map(part, range(4096)))
    print(f"{fn:10} {error:.4f} ulp of {claimed} at {np.uint32(at).view(np.float32)!r}", flush=True)
    if "--record" in given:
        table.record({(fn, "close-all"): float(error)})
    return error > claimed


# Beyond, other ways are taken.
BOUNDED = dict(sin=1e5, cos=1e5)
names = [a for a in sys.argv[1:] if a in [r[0] for r in table.CLOSE]]
if "--sweep" in given:
    sys.exit(max([sweep(fn, given["--sweep"], claimed) for fn, claimed, _ in table.CLOSE if not names or fn in names]))
if "--keep" in given:
    for fn in names or [r[0] for r in table.CLOSE]:
        Native(fn + "_close", given["--keep"])
    sys.exit()
everywhere, bad = sample(), False
with tempfile.TemporaryDirectory() as folder:
    if not names:
        bad |= pow_close(folder)
    for fn, nearest, worst in table.CLOSE:
        if names and fn not in names:
            continue
        cost, most = instructions(fn + "_close", folder), table.COST[fn][0]
        bad |= judged(cost <= most, f"{fn}_close: {cost} instructions of {most}")
        inside = lambda x: x[~(abs(x) > BOUNDED.get(fn, np.inf))]
        f = Native(fn + "_close", folder)
        bad |= close_one(fn, f, inside(everywhere), nearest, worst)
        half = Native(f"{fn}_{table.HALF[fn]}", folder) if fn in table.HALF else f
        bad |= in_16_bits(fn, half, inside(arguments("f16")), "f16")
        bad |= in_16_bits(fn, Native(fn + "_rough", folder), inside(arguments("bf16")), "bf16")
sys.exit(bad)
