"""maths.py [--check | --measure [--device=D] [NAME...]]: docs/maths.md, of the claims in tests/kernels/maths_table.py and of the measured
errors in docs/maths.txt. --measure measures them and writes its column: on the simulator the sample that tests measure again, on
a GPU (with torch, which computes the references) every one of the 2^32 values of f32; --close: of the close ones only. --check: is docs/maths.md up to date and no error
beyond its claim?"""
import os, sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("TILEC_LIB", os.path.join(root, "build", "lib", "libtilec.so"))
sys.path[:0] = [os.path.join(root, p) for p in ("tools", "examples", "tests/kernels")]
import numpy as np
import maths_table as table

page = os.path.join(root, "docs", "maths.md")


def references(torch):
    """In float64 on the GPU."""
    sigmoid = torch.sigmoid
    inf = float("inf")
    def cbrt(x):
        y = torch.sign(x) * torch.pow(abs(x), 1 / 3)
        return torch.where(torch.isfinite(x) & (x != 0), y - (y * y * y - x) / (3 * y * y), x)
    at_end = lambda x, y: torch.where(x == -inf, torch.full_like(y, -0.0), y)
    return dict(exp=torch.exp, exp2=torch.exp2, exp10=lambda x: torch.pow(10.0, x), expm1=torch.expm1, log=torch.log, log2=torch.log2,
                log10=torch.log10, log1p=torch.log1p, sin=torch.sin, cos=torch.cos, tan=torch.tan, asin=torch.asin, acos=torch.acos,
                atan=torch.atan, sinh=torch.sinh, cosh=torch.cosh, tanh=torch.tanh, asinh=torch.asinh, acosh=torch.acosh, atanh=torch.atanh, erf=torch.erf, erfc=torch.erfc, cbrt=cbrt,
                sqrt=torch.sqrt, rsqrt=lambda x: 1 / torch.sqrt(x), sigmoid=sigmoid, silu=lambda x: at_end(x, x * sigmoid(x)),
                gelu=lambda x: at_end(x, x * 0.5 * torch.erfc(-x / 2**0.5)),
                gelu_tanh=lambda x: at_end(x, x * sigmoid(2 * (2 / torch.pi) ** 0.5 * x * (1 + 0.044715 * x * x))),
                softplus=lambda x: torch.logaddexp(x, torch.zeros_like(x)))


def worst_of_all(dev, torch, text, fn, reference, close=False):
    """The greatest error over every f32, and where. close: but for what is small."""
    n, worst, where = 1 << 26, 0.0, 0.0
    k = dev.program(text=text.replace("FN", fn), name=fn + ".tile").kernel("one")
    if not reference:
        wide = dev.program(text=text.replace("FN", fn), name=fn + ".tile").kernel("one", T="f64")

        def reference(x):
            w = torch.empty_like(x)
            wide(n // 512, x, w, n)
            torch.cuda.synchronize()
            return w
    y = torch.empty(n, dtype=torch.float32, device="cuda")
    for part in range(64):
        x = torch.arange(part * n - (1 << 31), (part + 1) * n - (1 << 31), dtype=torch.int64, device="cuda").to(torch.int32).view(torch.float32)
        k(n // 512, x, y, n)
        torch.cuda.synchronize()
        want, got = reference(x.double()), y.double()
        both = torch.isnan(want) & torch.isnan(got)
        top = 2.0**128
        want = torch.where(abs(want) >= top * (1 - 2.0**-25), torch.copysign(torch.full_like(want, top), want), want)
        got = torch.where(torch.isinf(got), torch.copysign(torch.full_like(got, top), got), got)
        unit = torch.exp2(torch.clamp(torch.frexp(want)[1].double() - 1, -126, 127) - 23)
        error = torch.where(both, 0.0, torch.nan_to_num(abs(got - want) / unit, nan=float("inf")))
        sign = (want == 0) & (got == 0) & (torch.signbit(want) != torch.signbit(got))
        error = torch.where(sign, float("inf"), error)
        if close:
            small = (abs(want) < table.SMALL) & (abs(got) < table.SMALL) & ((torch.signbit(want) == torch.signbit(got)) | (got != 0))
            error = torch.where(small, 0.0, error)
        e = error.max().item()
        if e > worst:
            worst, where = e, x[error.argmax()].item()
    return worst, where


def measure(device):
    import maths, tilec
    dev, rows = tilec.Device(device), {}
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not dev.is_sim:
        import torch
        every = references(torch)
    column = "sim" if dev.is_sim else "gpu"
    for fn, *_ in table.CLOSE:
        if not dev.is_sim and (not names or fn in names):
            e, x = worst_of_all(dev, torch, maths.CLOSE_TEXT, fn, every[fn], close=True)
            rows[fn, "close-gpu"] = float(e)
            print(f"{fn:10} close {e:.4f} at {x}", flush=True)
    if "--close" in sys.argv:
        table.record(rows)
        return
    for fn, *_ in table.ONE + table.TWO:
        for dtype in ("f64", "f32", "f16", "bf16"):
            if (fn in table.PAIRS and dtype == "bf16") or (names and fn not in names):
                continue
            if not dev.is_sim and dtype == "f32" and fn not in table.PAIRS:
                e, x = worst_of_all(dev, torch, maths.TEXT, fn, every.get(fn))
            else:
                _, error, real, *_ = maths.measure(dev, fn, dtype)
                e, x = error.max(), [r[np.argmax(error)] for r in real]
            rows[fn, f"{dtype}-{column}"] = float(e)
            print(f"{fn:10} {dtype:5} {e:.4f} at {x}", flush=True)
    table.record(rows)


HEAD = """# Functions of real numbers

Written by scripts/maths.py from tests/kernels/maths_table.py and docs/maths.txt.

Some functions are written out three times: exactly, closely and roughly. An exact one is taken where a kernel says `maths(exact)`, a rough one
where 8 bits of its result are kept (passes/choose_maths.c), a close one everywhere else; those that there are stand
[below](#close-and-rough-ones). All others are exact. (Quotients and square roots are in numbers.md.) Of the exact ones:

Errors are in units of the last place of the exact result (0.5: correctly rounded), infinities, nans, signed zeros and
subnormals included. *Bound* is what is promised of f32 and what the tests hold it to; f16 and bf16 are computed in f32 and
rounded once: at most 0.504, over all their values. All but `rsqrt` are made of operations that are rounded alike everywhere, so
their results have the same bits on every device. *processor* is the greatest error over at least 2^28 of the 2^32 values, evenly
spread (functions of two numbers: 2^28 pairs; those computed in f64 2^22), computed by the code that is made for the GPU
(scripts/maths_host.py); *simulator* that over the sample that the tests measure, which may not become greater;
*H200* over all 2^32 values (functions of two numbers: grids and random pairs). Integers are taken as f32.

f64 has a bound of its own. Its *processor* is the greatest error over a million arguments and more, those among them at which the function is
hard, against quadruple precision (scripts/maths_quad.py); *tests* that at the arguments of tests/kernels/maths_f64.txt, whose exact results
are known from mpmath. Sines, cosines and tangents are exact to that bound for every angle there is.

| function | | bound | processor | simulator | H200 | f16 | bf16 | f64 bound | processor | tests |
|---|---|---|---|---|---|---|---|---|---|---|
"""
NEAR_ZEROS = """
Errors of Bessel functions of the first and second kind, and of `lgamma` and `digamma` of negative numbers, are in f64 in ulp of the larger of the result
and a size beside which it is near one of its zeros: sqrt(2 / (pi x)) for `bessel_j0`, `bessel_j1` beyond 1; that, or sqrt(2 / pi) below 1, for `bessel_y0`,
`bessel_y1` from 0.1 on; 1 + log(1 + abs(x)) for the other two. In f32 and narrower types their errors are in ulp of the result, as they are
computed in f64; so are `tgamma` and all of `lgamma` and `digamma`. `lgamma` is the logarithm of the size of Gamma(x); `pow`, `atan2`, `hypot` and the
rest have the special cases of C99's Annex F.
"""
CLOSE_ONES = """
## Close and rough ones

By the hardware's approximations and what corrects them. Bounds are in ulp of f32 and hold for results that are not smaller than 2^-115: what is
smaller may be 0. *sm_90*: with its approximations, which the simulator and the interpreter have bit for bit (runtime/approx.c); *H200*: the greatest
error over all 2^32 values there; *any*: the bound with any approximations that the PTX ISA allows (`ex2` wrong by 2 ulp, `rcp` by 1, `lg2` by 2^-22,
absolutely between 1/2 and 2, else relatively), all of one instruction in one direction (tests/numbers/close.py). *all*: the greatest
error over all 2^32 values with the first, by close.py --sweep, where that was measured since on the processor. Rounded to f16 (from the
form that *f16* names: the *narrow* one of `gelu` is taken where the result itself becomes a number of f16 or 8 bits, the close one for products of it) or
bf16 (from the rough one) one in 10,000 results is not the nearest number, counted over all arguments of the type; those that lie in the
middle between two but for what the rounding of the exact result to f32 hides do not count. Sines and cosines of more than 100000 are exact.

| function | sm_90 | all | H200 | any | f16 |
|---|---|---|---|---|---|
"""
POWERS = """
A close power differs from the exact one in the inverse on the way to its logarithm and in the last step: `pow(x, y)` of x above 0 is within {} ulp on
sm_90, {} on any, over the random numbers that close.py takes. There is no rough one.
"""
COSTS = """
What they cost, in instructions of sm_90 for an element of f32 (tests/numbers/close.py counts them), and what they go to:

| function | instructions | |
|---|---|---|
"""


def text():
    rows, out = table.recorded(), [HEAD]
    show = lambda fn, c: f"{rows[fn, c]:.2f}" if (fn, c) in rows else ""
    for fn, _, bound, what in table.ONE + table.TWO:
        f16 = max([rows[fn, c] for c in ("f16-sim", "f16-gpu") if (fn, c) in rows], default=0)
        bf16 = max([rows[fn, c] for c in ("bf16-sim", "bf16-gpu") if (fn, c) in rows], default=None)
        two = fn in table.PAIRS
        out.append(f"| `{fn}({'x, y' if two and fn != 'atan2' else 'y, x' if two else 'x'})` | {what} | {bound} | {show(fn, 'f32-host') or show(fn, 'f32-part')} | {show(fn, 'f32-sim')} | "
                   f"{show(fn, 'f32-gpu')} | {f16:.3f} | {'' if bf16 is None else f'{bf16:.3f}'} | {table.limit_of(fn, 'f64')} | {show(fn, 'f64-quad')} | "
                   f"{show(fn, 'f64-sim')} |\n")
    out.append(NEAR_ZEROS)
    out.append(CLOSE_ONES)
    out += [f"| `{fn}(x)` | {near} | {show(fn, 'close-all')} | {show(fn, 'close-gpu')} | {any_} | {table.HALF.get(fn, 'close')} |\n" for fn, near, any_ in table.CLOSE]
    out.append(POWERS.format(*table.POW))
    out.append(COSTS)
    out += [f"| `{fn}(x)` | {n} | {why} |\n" for fn, (n, why) in table.COST.items()]
    out.append("\n## Fast ones\n\nBy the hardware's approximations, in the ranges for which the bound holds; beyond, and in ulp near zeros, errors are larger.\n\n"
               "| function | from | to | bound |\n|---|---|---|---|\n")
    for fn, _, lo, hi, bound, relative in table.FAST:
        out.append(f"| `{fn}(x)` | {lo:.4g} | {hi:.4g} | {'relative' if relative else 'absolute'} 2^{np.log2(bound):.1f} |\n")
    return "".join(out)


if "--measure" in sys.argv:
    measure(next((a[9:] for a in sys.argv if a.startswith("--device=")), "sim"))
bad = [f"{fn} {c}: {e} ulp, claimed {table.limit_of(fn, c.split('-')[0])}" for (fn, c), e in table.recorded().items()
       if not e <= (table.close_limit(fn) if c in ("close-gpu", "close-all") else table.limit_of(fn, c.split("-")[0]))]
if bad:
    sys.exit("\n".join(bad))
if "--check" in sys.argv:
    if open(page).read() != text():
        sys.exit("docs/maths.md is out of date: run scripts/python scripts/maths.py")
else:
    open(page, "w").write(text())
