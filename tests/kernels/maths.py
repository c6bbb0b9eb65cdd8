"""Functions of real numbers (stdlib/math.tile, math64.tile, special.tile): the greatest error in ulp over a fixed sample stays within the bound
that maths_table.py claims, and is no greater than what docs/maths.txt records for that sample. Same form as examples/cases.py."""
import zlib
from cases import Case, Run, launch
from draw import Draw
import numpy as np
from maths_table import CLOSE, FAST, NEAREST, ONE, PAIRS, STEP, TWO, WRONG, both_small, exact_points, least, limit_of, recorded, ulps


def bf16_value(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def every_16(dtype):
    bits = np.arange(65536, dtype=np.uint16)
    return bits, bits.view(np.float16).astype(np.float64) if dtype == "f16" else bf16_value(bits).astype(np.float64)


def sweep(mantissas, draw):
    """f32 values of every exponent and both signs, with the ends and random mantissas between."""
    m = np.concatenate([[0, 1, 2, (1 << 23) - 2, (1 << 23) - 1], draw.bits(mantissas - 5) >> np.uint64(41)]).astype(np.uint32)
    b = (np.arange(512, dtype=np.uint32)[:, None] << 23 | m[None, :]).ravel()
    return np.concatenate([b, words(draw, 4096)]).view(np.float32)


def words(draw, n):
    return (draw.bits(n) >> np.uint64(32)).astype(np.uint32)


TEXT = """
kernel one(x: *T, y: *T, n: i32, type T = f32, const N = 512) warps(2) maths(exact) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, FN(load(x + i, mask=i < n, other=cast(1.0, T))), mask=i < n);
}
kernel two(x: *T, z: *T, y: *T, n: i32, type T = f32, const N = 512) warps(2) maths(exact) {
  let i = program_id(0) * N + arange(0, N);
  store(y + i, FN(load(x + i, mask=i < n, other=cast(1.0, T)), load(z + i, mask=i < n, other=cast(1.0, T))), mask=i < n);
}
"""


CLOSE_TEXT = TEXT.replace("maths(exact)", "")


def compute(dev, fn, dtype, *args, exact=True):
    text = (TEXT if exact else CLOSE_TEXT).replace("FN", fn)
    k = dev.program(text=text, name=fn + ".tile").kernel("one" if len(args) == 1 else "two", T=dtype)
    n = len(args[0])
    out = dev.empty(n, dtype)
    call = launch(k, (n + 511) // 512, *[dev.array(a, dtype) for a in args], out, n)
    return call, out.numpy()


def as_real(a, dtype):
    return bf16_value(a.view(np.uint16)) if dtype == "bf16" else a


def grids(draw, n):
    """Pairs of f32: all edges with all edges, all sizes, and near 1 with large exponents."""
    edges = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, 1e-45, -1e-45, 1.2e-38, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 1.5, -2.5, 127, 128, -149,
                      8388607.5, 16777216, 16777215, 1e10, 0.99999994, 1.0000001], np.float32)
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    any_a, any_b = (words(draw, n).view(np.float32) for _ in range(2))
    mid = [draw.even(n, -25.0, 25.0).astype(np.float32) for _ in range(2)]
    near = (1 + draw.sized(n, -23.0, 1.0)).astype(np.float32)
    wide = draw.sized(n, -4.0, 27.0).astype(np.float32)
    sizes = abs(draw.sized(n, -126.0, 127.0)).astype(np.float32)
    small = draw.even(n, -5.0, 5.0).astype(np.float32)
    return np.concatenate([a, any_a, mid[0], abs(near), sizes]), np.concatenate([b, any_b, mid[1], wide, small])


def measure(dev, fn, dtype, exact=True):
    """The call, errors in ulp, and for each what was computed: of all values of a 16-bit type, or over all exponents of f32. The sample is
    always the same. exact: by functions that are."""
    if dtype == "f64":
        return measure_64(dev, fn)
    reference = next(r[1] for r in ONE + TWO if r[0] == fn)
    draw = Draw(zlib.crc32(f"{fn} {dtype}".encode()))
    mantissas = 2048 if reference else 96
    if fn in PAIRS:
        args = grids(draw, 80 * mantissas)
        if dtype == "f16":
            with np.errstate(over="ignore"):
                args = [a.astype(np.float16) for a in args]
        real = [np.where(np.isnan(a), np.nan, a.astype(np.float64)) for a in args]      # quiet: of a signalling nan, C's pow(nan, 0) is nan
    elif dtype == "f32":
        args = [sweep(mantissas, draw)]
        if not exact:                                      # where exponentials overflow, and their inverses vanish
            ends = np.linspace(86, 90, 8001, dtype=np.float32)
            args = [np.concatenate([args[0], ends, -ends])]
        real = [args[0].astype(np.float64)]
    else:
        bits, values = every_16(dtype)
        args, real = [bits.view(np.float16) if dtype == "f16" else bits], [values]
    call, got = compute(dev, fn, dtype, *args, exact=exact)
    with np.errstate(all="ignore"):
        want = reference(*real) if reference else compute(dev, fn, "f64", *real)[1]
    return call, ulps(as_real(got, dtype), want, dtype), real, as_real(got, dtype), want


def measure_64(dev, fn):
    """The same at the points of maths_f64.txt, of which the exact results are known."""
    x, z, want, rest = exact_points(fn)
    real = [x, z] if fn in PAIRS else [x]
    call, got = compute(dev, fn, "f64", *real)
    with np.errstate(all="ignore"):
        unit = lambda v: np.clip(np.frexp(np.where(v == 0, 5e-324, v))[1] - 1, -1022, 1023) - 52          # the exponent of an ulp
        size = np.maximum(abs(want), least(fn, x))
        same = (np.isnan(got) & np.isnan(want)) | ((got == want) & (np.signbit(got) == np.signbit(want)))
        off = np.where(same, 0.0, np.ldexp(np.ldexp(got, 40) - np.ldexp(want, 40), -40 - unit(size)))      # differences of subnormals are exact
        top = np.where(abs(got) < abs(want), np.ldexp(np.nextafter(want, 0) - got, -unit(size)) + 1, off)     # an infinity is the next number
        off = np.where(np.isinf(want) | np.isinf(got), np.where(same, 0.0, top), np.where(abs(want) > 2.0**980, np.ldexp(got - want, -unit(size)), off))
        error = abs(off - np.ldexp(rest, unit(want) - unit(size)))
    return call, np.where(np.isnan(error), np.inf, error), real, got, want


def maths(dev, rng, fn, dtype):
    call, error, real, got, want = measure(dev, fn, dtype)
    worst = int(np.argmax(error))
    note = f"{fn}({', '.join(repr(float(r[worst])) for r in real)}) = {float(got[worst])!r}, not {float(want[worst])!r}"
    known = recorded().get((fn, f"{dtype}-sim"), 0.0) + STEP if dev.is_sim or fn != "rsqrt" else limit_of(fn, dtype)
    return Run(call, [(note, np.array([1 + error[worst]]), np.array([1.0]), min(limit_of(fn, dtype), known))])


def close_maths(dev, rng, fn, dtype):
    """The functions that are taken for results of a type, unless exact ones are asked for."""
    call, error, real, got, want = measure(dev, fn, dtype, exact=False)
    error = np.where(both_small(got, want), 0, error)
    worst = int(np.argmax(error))
    note = f"{fn}({float(real[0][worst])!r}) = {float(got[worst])!r}, not {float(want[worst])!r}"
    if dtype == "f32":
        near, any_ = next(r[1:] for r in CLOSE if r[0] == fn)
        return Run(call, [(note, np.array([1 + error[worst]]), np.array([1.0]), near if dev.is_sim else any_)])
    wrong = np.count_nonzero(error > NEAREST[dtype])
    return Run(call, [(note, np.array([1 + error[worst]]), np.array([1.0]), 0.55), (f"{wrong} of {len(error)} are not the nearest", np.array([wrong / len(error) + 1]), np.array([1.0]), WRONG)])


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
    both("maths", maths, [dict(fn=r[0], dtype=t) for r in ONE for t in ("f64", "f32", "f16", "bf16")] +
         [dict(fn=r[0], dtype=t) for r in TWO for t in ("f64", "f32", "f16")]),
    both("close_maths", close_maths, [dict(fn=r[0], dtype=t) for r in CLOSE for t in ("f32", "f16", "bf16")]),
    both("fast_maths", fast_maths, [dict(fn=r[0]) for r in FAST]),
]
