"""Functions of a float's bits (stdlib/numbers.tile) and arithmetic rounded in one direction, against exact fractions: neighbours,
scaling by powers of two, exponents, remainders. Same form as examples/cases.py."""
import math
import os
import sys
from fractions import Fraction
from cases import Case, Run, launch, grid
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "numbers"))
import exact

WORDS = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16, "f8e4m3": np.uint8, "f8e5m2": np.uint8}
SMALL = {"f64": 20, "f32": 20, "f16": 6, "bf16": 5, "f8e4m3": 2, "f8e5m2": 2}


def edges(rng, t, n):
    """Bits of zeros, subnormals, powers of two and their neighbours, the ends, infinities, a nan, small numbers, and any bits."""
    e, m = exact.FLOATS[t]
    sign, inf, nan, most = exact.parts(t)
    one = ((1 << (e - 1)) - 1) << m
    known = [0, 1, 2, (1 << m) - 1, 1 << m, (1 << m) + 1, one - 1, one, one + 1, one + (1 << m), one + (3 << (m - 1)), one - (1 << m),
             most - 1, most, inf or most, nan,
             one + (m << m), one + ((m + 1) << m) + 1]
    small = [exact.encode(t, int(v)) for v in rng.integers(-40, 40, 6)]
    any_ = [int(v) for v in rng.integers(0, 1 << min(exact.width(t), 63), n)]
    near = [one + int(v) for v in rng.integers(-(3 << m), 3 << m, n)]
    bits = [b | s for b in known for s in (0, sign)] + small + any_ + near
    return [b for b in bits if t[:2] != "f8" or not exact.is_nan(t, b) or b == nan]


def array(t, bits):
    return np.array(bits, WORDS[t])


def stored(t, bits):
    """As an array the device takes for this type."""
    a = array(t, bits)
    return a.view(dict(f64=np.float64, f32=np.float32, f16=np.float16).get(t, a.dtype))


def plain(t, a):
    """Bits, every nan as the one."""
    bits = np.ascontiguousarray(a).view(WORDS[t])
    sign, inf, nan, most = exact.parts(t)
    over = (bits & array(t, [sign - 1])[0]) > (inf if inf is not None else most)
    return np.where(over, array(t, [nan])[0], bits)


def run(dev, t, body, arguments, outs, **defines):
    """Kernel f of arguments (dtype, array) and outputs {name: dtype}, each element by itself; the outputs."""
    n = len(arguments[0][1])
    heads = ", ".join([f"a{k}: *{d}" for k, (d, _) in enumerate(arguments)] + [f"{name}: *{d}" for name, d in outs.items()])
    loads = " ".join(f"let v{k} = load(a{k} + i, mask=i < n);" for k in range(len(arguments)))
    text = f"kernel f({heads}, n: i32) warps(2) {{ let i = program_id(0) * 256 + arange(0, 256); {loads} {body} }}"
    out = {name: dev.empty(n, d) for name, d in outs.items()}
    call = launch(dev.program(text=text, name="bits.tile").kernel("f", **defines), (n + 255) // 256,
                  *[dev.array(a, d) for d, a in arguments], *out.values(), n)
    return call, {name: a.numpy() for name, a in out.items()}


def first_wrong(got, want, describe):
    bad = np.flatnonzero(got != want)
    return describe(bad[0]) if len(bad) else ""


def pairs(rng, t, n):
    x = edges(rng, t, n)
    few = edges(rng, t, 6)
    return [a for a in x for _ in few], [b for _ in x for b in few]


def value(t, b):
    return exact.decode(t, b)


def neighbour(t, x, y):
    a, b = value(t, x), value(t, y)
    if math.isnan(a) or math.isnan(b):
        return exact.parts(t)[2]
    if a == b:
        return y if a == 0 else x
    sign = exact.parts(t)[0]
    if a == 0:
        return 1 if b > 0 else sign | 1
    return x + (1 if (a < b) == (a > 0) else -1)


def next_after(dev, rng, dtype):
    x, y = pairs(rng, dtype, 12)
    call, out = run(dev, dtype, "store(r + i, nextafter(v0, v1), mask=i < n);", [(dtype, stored(dtype, x)), (dtype, stored(dtype, y))],
                    dict(r=dtype))
    want = plain(dtype, array(dtype, [neighbour(dtype, a, b) for a, b in zip(x, y)]))
    got = plain(dtype, out["r"])
    return Run(call, [("nextafter" + first_wrong(got, want, lambda k: f"({value(dtype, x[k])}, {value(dtype, y[k])})"), got, want, 0)])


def scaled(t, x, n):
    v = value(t, x)
    if math.isnan(v) or math.isinf(v) or v == 0:
        return x
    return exact.encode(t, Fraction(v) * Fraction(2) ** max(min(n, 5000), -5000))


def powers_of_two(dev, rng, dtype):
    """ldexp, frexp, ilogb, logb."""
    base = edges(rng, dtype, 40)
    e, m = exact.FLOATS[dtype]
    reach = (1 << e) + m
    ns = [0, 1, -1, m, -m, reach // 2, -(reach // 2), reach, -reach, 3 * reach, -3 * reach, 2**31 - 1, -2**31]
    x = [b for b in base for _ in range(len(ns) + 12)]
    n = [int(v) for _ in base for v in ns + list(rng.integers(-reach, reach, 12))]
    body = """store(r + i, ldexp(v0, v1), mask=i < n); let (m, e) = frexp(v0);
              store(fraction + i, m, mask=i < n); store(power + i, e, mask=i < n);
              store(il + i, ilogb(v0), mask=i < n); store(l + i, logb(v0), mask=i < n);"""
    call, out = run(dev, dtype, body, [(dtype, stored(dtype, x)), ("i32", np.array(n, np.int32))],
                    dict(r=dtype, fraction=dtype, power="i32", il="i32", l=dtype))
    bits = lambda v: plain(dtype, array(dtype, v))
    want = bits([scaled(dtype, a, k) for a, k in zip(x, n)])
    got = plain(dtype, out["r"])
    values = [value(dtype, b) for b in x]
    odd = [not math.isfinite(v) or v == 0 for v in values]
    parts = [(v, 0) if o else math.frexp(v) for v, o in zip(values, odd)]
    il = [(2**31 - 1 if math.isinf(v) else -2**31) if o else p[1] - 1 for v, o, p in zip(values, odd, parts)]
    log = [(math.nan if math.isnan(v) else math.inf if v else -math.inf) if o else float(p[1] - 1) for v, o, p in zip(values, odd, parts)]
    return Run(call, [("ldexp" + first_wrong(got, want, lambda k: f"({values[k]}, {n[k]})"), got, want, 0),
                      ("fraction", plain(dtype, out["fraction"]),
                       bits([b if o else exact.encode(dtype, p[0]) for b, o, p in zip(x, odd, parts)]), 0),
                      ("power", out["power"], np.array([p[1] for p in parts], np.int32), 0),
                      ("ilogb", out["il"], np.array(il, np.int32), 0),
                      ("logb", plain(dtype, out["l"]), bits([exact.encode(dtype, v) for v in log]), 0)])


def remains(t, x, y):
    a, b = value(t, x), value(t, y)
    nan, sign = exact.parts(t)[2], exact.parts(t)[0]
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return nan, nan
    if math.isinf(b) or a == 0:
        return x, x
    q = Fraction(a) / Fraction(b)
    near = exact.encode(t, Fraction(a) - round(q) * Fraction(b), negative=bool(x & sign))
    whole = exact.encode(t, Fraction(a) - int(q) * Fraction(b), negative=bool(x & sign))
    return near, whole


def remainders(dev, rng, dtype):
    x, y = pairs(rng, dtype, 12)
    call, out = run(dev, dtype, "store(r + i, remainder(v0, v1), mask=i < n); store(w + i, v0 % v1, mask=i < n);",
                    [(dtype, stored(dtype, x)), (dtype, stored(dtype, y))], dict(r=dtype, w=dtype))
    want = [remains(dtype, a, b) for a, b in zip(x, y)]
    checks = []
    for name, key, which in (("remainder", "r", 0), ("%", "w", 1)):
        w, g = plain(dtype, array(dtype, [v[which] for v in want])), plain(dtype, out[key])
        checks.append((name + first_wrong(g, w, lambda k: f"({value(dtype, x[k])!r}, {value(dtype, y[k])!r})"), g, w, 0))
    return Run(call, checks)


HOW = {"rz": "rz", "ru": "rp", "rd": "rm"}
DIRECTED = "add_rz add_ru add_rd sub_rz sub_ru sub_rd mul_rz mul_ru mul_rd div_rz div_ru div_rd sqrt_rz sqrt_ru sqrt_rd".split()


def directed(t, op, how, x, y):
    """x op y rounded in one direction; as IEEE 754 has it."""
    a, b = value(t, x), value(t, y)
    nan, sign = exact.parts(t)[2], exact.parts(t)[0]
    negative = bool((x ^ y) & sign)
    if math.isnan(a) or math.isnan(b):
        return nan
    if op in ("add", "sub"):
        b = -b if op == "sub" else b
        if math.isinf(a) or math.isinf(b):
            return exact.encode(t, a + b)
        if a == 0 and b == 0:
            both = math.copysign(1, a) + math.copysign(1, b)
            return exact.encode(t, 0, negative=both < 0 or (both == 0 and how == "rm"))
        return exact.encode(t, Fraction(a) + Fraction(b), how, negative=how == "rm")
    if op == "mul":
        if math.isinf(a) or math.isinf(b):
            return exact.encode(t, a * b)
        return exact.encode(t, Fraction(a) * Fraction(b), how, negative=negative)
    if math.isinf(a) or math.isinf(b) or b == 0:
        if (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
            return nan
        return exact.encode(t, math.inf if math.isinf(a) or b == 0 else 0.0) | (sign if negative else 0)
    return exact.encode(t, Fraction(a) / Fraction(b), how, negative=negative)


def root(t, how, x):
    v = value(t, x)
    if math.isnan(v) or v < 0 or v == 0 or math.isinf(v):
        return exact.parts(t)[2] if v < 0 else x
    f = Fraction(v)
    shift = 2 * 1400
    n = math.isqrt(f.numerator * (1 << shift) // f.denominator)           # far more bits than t has
    exactly = Fraction(n, 1 << (shift // 2)) ** 2 == f
    return exact.encode(t, Fraction(2 * n + (not exactly), 2 << (shift // 2)), how)


def directed_rounding(dev, rng, dtype):
    """Sums, products, quotients and roots rounded toward 0, up and down."""
    x, y = pairs(rng, dtype, 30)
    body = " ".join(f"store({name}_ + i, {name}({'v0' if name[:4] == 'sqrt' else 'v0, v1'}), mask=i < n);" for name in DIRECTED)
    call, out = run(dev, dtype, body, [(dtype, stored(dtype, x)), (dtype, stored(dtype, y))], {name + "_": dtype for name in DIRECTED})
    checks = []
    for name in DIRECTED:
        op, how = name.split("_")
        want = [root(dtype, HOW[how], a) if op == "sqrt" else directed(dtype, op, HOW[how], a, b) for a, b in zip(x, y)]
        g, w = plain(dtype, out[name + "_"]), plain(dtype, array(dtype, want))
        checks.append((name + first_wrong(g, w, lambda k: f"({value(dtype, x[k])!r}, {value(dtype, y[k])!r})"), g, w, 0))
    return Run(call, checks)


both = lambda name, case, sizes: Case(name, case, sizes, sizes)
REAL = ("f64", "f32", "f16", "bf16")
CASES = [
    both("next_after", next_after, grid(dtype=REAL + ("f8e4m3", "f8e5m2"))),
    both("powers_of_two", powers_of_two, grid(dtype=REAL)),
    both("remainders", remainders, grid(dtype=REAL)),
    both("directed_rounding", directed_rounding, grid(dtype=REAL)),
]
