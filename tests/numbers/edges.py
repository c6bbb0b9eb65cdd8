"""Every elementwise operation and every cast, for every type, on the values where things go wrong.

    edges.py [--device=sim|cuda] [--build DIR] [--target sm_80] [--filter TEXT|TEXT] [--limit N]

For each type there are a few kernels, each with many operations: all pairs of edge values, all casts with all roundings. Three
answers are compared bit for bit, any nan being equal to any other: the reference interpreter's (tests/check_kernel), the
device's (libtilec compiles and launches), and exact.py's, which shares nothing with them. Approximations are compared within
the bounds of APPROXIMATE. packed.py does the same for formats of less than a byte. Prints disagreements and one line of summary; exit status 1 if there were any."""
import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
sys.path[:0] = [here, os.path.join(root, "tools")]
import exact
from exact import FLOATS, INTS, ROUNDS, decode, encode, is_nan, parts, width

ARITH = ["f16", "bf16", "f32", "f64"]
COMPARE = ["==", "!=", "<", "<=", ">", ">="]
FLOAT_BINARY = ["+", "-", "*", "/", "%", "min", "max", "minimum", "maximum", "copysign", "fast_div", "full_div", "near_div"]
FLOAT_UNARY = ["-", "abs", "floor", "ceil", "rint", "trunc", "round", "sqrt", "rsqrt", "fast_exp2", "fast_log2", "fast_rcp", "fast_sqrt", "fast_tanh", "fast_sin", "fast_cos"]
INT_BINARY = ["+", "-", "*", "/", "%", "min", "max", "minimum", "maximum", "&", "|", "^", "<<", ">>", "mulhi"]
INT_UNARY = ["-", "~", "abs", "popc", "clz", "ffs", "ctz", "brev"]
BLOCK = 256


# ---- approximations: what the manual of the instruction promises ----
def ulps(n):
    """Within n units in the last place of f32 (of the type, plus its rounding, where that is narrower); a subnormal may be 0."""
    def close(t, got, want, *_):
        if is_nan(t, got) or is_nan(t, want):
            return is_nan(t, got) and is_nan(t, want)
        g, w = decode(t, got), decode(t, want)
        most = decode(t, parts(t)[3])
        if math.isinf(g) != math.isinf(w) and g * w > 0:      # just below the largest number, or just above
            return min(abs(g), abs(w)) >= most * (1 - n * 2.0 ** -FLOATS[t][1])
        if math.isinf(g) or math.isinf(w) or w == 0:
            return got == want
        least = math.ldexp(1, 2 - (1 << (FLOATS[t][0] - 1)))
        unit = math.ldexp(1, math.frexp(max(abs(w), least))[1] - 1 - FLOATS[t][1])
        return abs(g - w) <= (n if t == "f32" else 1) * unit or (abs(w) < least and g == 0) or (abs(w) <= least and abs(g) <= least)
    return close


def log2_close(t, got, want, x):
    if is_nan(t, want) or math.isinf(decode(t, want)):
        return got == want or (is_nan(t, got) and is_nan(t, want))
    g, w = decode(t, got), decode(t, want)
    return abs(g - w) <= 2.0**-22 + abs(w) * 2.0 ** -(22 if t == "f32" else FLOATS[t][1])


def within(t, got, want, error):
    g, w = decode(t, got), decode(t, want)
    return is_nan(t, got) if is_nan(t, want) else abs(g - w) <= error + abs(w) * 2.0 ** -(FLOATS[t][1] - 1 if t != "f32" else 99)


def tanh_close(t, got, want, x):
    return within(t, got, want, abs(decode(t, want)) * 2.0**-10.9 if not is_nan(t, want) else 0)


def sine_close(t, got, want, x):
    return not abs(decode(t, x)) <= 3.1416 or within(t, got, want, 2.0**-20)


def div_close(t, got, want, x, y):
    return not 2.0**-126 <= abs(decode(t, y)) <= 2.0**126 or ulps(2)(t, got, want)


NEAR = "correctly rounded from 2^-100 on, 2 ulp below"


def near_close(t, got, want, x, y):
    return same(t, got, want) if t in ("f16", "f64") or not 0 < abs(decode(t, want)) < 2.0**-100 else ulps(2)(t, got, want)


def root_close(t, got, want, x):
    return ulps(1)(t, got, want) if t == "f32" else same(t, got, want)


def sign_of_number(t, got, want, x, y):
    """copysign: a nan's sign is not promised."""
    return same(t, got, want) or (is_nan(t, y) and (got ^ want) & ~parts(t)[0] == 0)


# operation -> (comparison, what it promises for f32); f64's are exact
APPROXIMATE = {"fast_exp2": (ulps(2), "2 ulp"), "rsqrt": (ulps(2), "2 ulp"), "fast_rcp": (ulps(1), "1 ulp"),
               "fast_tanh": (tanh_close, "2^-10.9 relative"), "fast_sin": (sine_close, "2^-20 absolute within pi"), "fast_cos": (sine_close, "likewise"),
               "fast_log2": (log2_close, "2^-22 absolute, or relative where that is more"), "fast_div": (div_close, "2 ulp for |b| from 2^-126 to 2^126"),
               "full_div": (ulps(2), "2 ulp"), "near_div": (near_close, NEAR), "/": (near_close, NEAR), "sqrt": (root_close, "1 ulp"),
               "fast_sqrt": (ulps(1), "1 ulp")}


# ---- edge values ----
def float_reals():
    v = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 0.49999997, 0.49999999999999994, 0.75, 4.5, 100.0, 1e5, 126.5, 127.5, 128.5, 254.5, 255.5]
    for t in FLOATS:
        e, m = FLOATS[t]
        tiny, least, most = math.ldexp(1, 2 - (1 << (e - 1)) - m), math.ldexp(1, 2 - (1 << (e - 1))), decode(t, parts(t)[3])
        half = math.ldexp(1, math.frexp(most)[1] - 2 - m)           # of the last place of the largest
        v += [tiny, tiny / 2, tiny * 1.5, tiny / 4, least, least - tiny, least - tiny / 2, most, most + half, math.nextafter(most + half, 0), math.nextafter(most + half, math.inf),
              most - half, 1 + 2.0**-m, 1 + 2.0 ** -(m + 1), 1 + 3 * 2.0 ** -(m + 1), 1 - 2.0 ** -(m + 1), 2.0 ** (m + 1) - 1]
    for k in (7, 8, 15, 16, 31, 32, 63, 64):
        v += [2.0**k, 2.0**k - 0.5, 2.0**k - 1, 2.0**k + 0.5, 2.0**k + 1, math.nextafter(2.0**k, 0), exact.f32(2.0**k * (1 - 2.0**-24)), 2.0**k * (1 + 2.0**-23)]
    return [x for x in v if math.isfinite(x)]


def float_edges(t):
    """Everything, for casts and functions of one value."""
    if width(t) == 8:
        return list(range(256))
    sign, inf, nan, most = parts(t)
    bits = [encode(t, x, how) for x in float_reals() for how in ("rz", "rp")] + [inf, nan]
    bits = [b for b in dict.fromkeys(bits)]
    return bits + [b | sign for b in bits]


def float_few(t):
    """For pairs."""
    sign, inf, nan, most = parts(t)
    e, m = FLOATS[t]
    one, least = encode(t, 1.0), 1 << m
    bits = [0, 1, least - 1, least, one, one + 1, one - 1, encode(t, 0.5), encode(t, 1.5), encode(t, 2.0), encode(t, 3.0), encode(t, 7.0), encode(t, 0.1), encode(t, 100.0),
            encode(t, math.ldexp(1.25, (1 << (e - 2)))), encode(t, math.ldexp(1.5, -(1 << (e - 2)))), most, most - 1, most >> 1, inf if inf else most, nan, inf + 1 if inf else nan]
    return bits + [b | sign for b in bits]


def int_edges(t):
    w, signed = INTS[t]
    if t == "i1":
        return [0, 1]
    v = {0, 1, 2, 3, 5, 7, 100, w - 1, w, w + 1, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 65503, 65504, 65505, 65519, 65520, 65521, 65535}
    for k in (7, 8, 11, 15, 16, 23, 24, 25, 31, 32, 52, 53, 54, 62, 63):
        v |= {(1 << k) - 1, 1 << k, (1 << k) + 1, (3 << k >> 1) + 1}
    v |= {(1 << 54) + (1 << 30) + 1, (1 << 60) + (1 << 36), (1 << 60) + (1 << 36) + 1, (1 << 40) + (1 << 32), (1 << 40) + (1 << 32) - 1, (1 << 62) - (1 << 8)}
    v |= {(1 << 61) + (1 << 53) + (1 << 11), (1 << 61) + (1 << 53) + (1 << 10)}      # just above the middle between two bf16
    return sorted({exact.wrap(t, x) for x in v} | {exact.wrap(t, -x) for x in v})


def int_few(t):
    w, signed = INTS[t]
    v = [0, 1, 2, 3, 7, w - 1, w, w + 1, 2 * w, 100, (1 << (w - 1)) - 1, 1 << (w - 1), (1 << (w - 1)) + 1, (1 << w) - 1, (1 << w) - 2, (1 << w) - 7, 0x5555555555555555, 0xDEADBEEF12345678]
    return list(dict.fromkeys(exact.wrap(t, x) for x in v))


# ---- kernels ----
class Job:
    """One kernel: inputs, and for each result its type, its expression, and what exact.py says of it."""

    def __init__(self, name, inputs, tuples, neighbours=False):
        self.name, self.inputs, self.neighbours = name, inputs, neighbours     # neighbours: a thread has several, and words of them
        n = -(-len(tuples) // BLOCK) * BLOCK
        self.tuples = (tuples * (n // len(tuples) + 1))[:n]
        self.rows = []        # (type, expression in a, b, c, exact function, tolerance or None)

    def add(self, t, text, fn, close=None):
        self.rows.append((t, text, fn, close))

    def outs(self):
        return list(dict.fromkeys(t for t, *_ in self.rows))

    def arrays(self):
        return [(t, np.array([x[i] for x in self.tuples], words(t))) for i, t in enumerate(self.inputs)]

    def source(self):
        outs = self.outs()
        n, names = len(self.tuples), "abc"
        head = [f"// grid {n // BLOCK} 1 1"] + [f"// given {t} {n}" for t in self.inputs]
        aligned, warps = (" multiple_of(16)", " warps(1)") if self.neighbours else ("", "")
        params = [f"p{i}: *{t}{aligned}" for i, t in enumerate(self.inputs)]
        body = ["  let i = program_id(0) * 256 + arange(0, 256);"] + [f"  let {names[i]} = load(p{i} + i);" for i in range(len(self.inputs))]
        for o in outs:
            rows = [r for r in self.rows if r[0] == o]
            head.append(f"// buffer {o} {n * len(rows)}")
            params.append(f"o_{o}: *{o}{aligned}")
            body += [f"  store(o_{o} + {k * n} + i, {r[1]});" for k, r in enumerate(rows)]
        return "\n".join(head + [f"kernel k({', '.join(params)}){warps} {{"] + body + ["}", ""])

    def run(self, dev, target, tool, limit):
        source, arrays, n = self.source(), self.arrays(), len(self.tuples)
        outs = [(t, n * sum(r[0] == t for r in self.rows)) for t in self.outs()]
        return check(self, interpreted(source, arrays, outs, tool), launched(source, arrays, outs, n // BLOCK, dev, target), limit)

    def results(self):
        return len(self.rows) * len(set(self.tuples))


def all_pairs(v, w=None):
    return [(x, y) for x in v for y in (w or v)]


QUESTIONS = {"isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite}


def clamped(t, x, of_nan, most=100.0):
    v = decode(t, x)
    return encode(t, of_nan if math.isnan(v) else min(max(v, -2.0), most))


def unary_text(op):
    return f"{op}a" if op in "-~!" else f"{op}(a)"


def binary_text(op):
    return f"{op}(a, b)" if op[0].isalpha() else f"a {op} b"


INEXACT = [c for c, _ in APPROXIMATE.values()]


def approximate(op, t):
    if op == "copysign":
        return sign_of_number
    return APPROXIMATE[op][0] if op in APPROXIMATE and t != "f64" else None


def jobs():
    for t in ARITH:
        j = Job(f"unary {t}", [t], [(x,) for x in float_edges(t)])
        for op in FLOAT_UNARY:
            if t != "f64" or op in ("rsqrt", "fast_rcp", "fast_sqrt") or not op.startswith("fast_"):
                j.add(t, unary_text(op), lambda x, op=op, t=t: exact.float_unary(op, t, x), approximate(op, t))
        for op, fn in QUESTIONS.items():
            j.add("i1", f"{op}(a)", lambda x, fn=fn, t=t: int(fn(decode(t, x))))
        j.add("i1", "signbit(where(isnan(a), 1.0, a))", lambda x, t=t: int(bool(x & parts(t)[0]) and not is_nan(t, x)))
        j.add(t, "clamp(a, -2, 100)", lambda x, t=t: clamped(t, x, -2.0))
        j.add(t, "clamp(a, -2, 100, propagate_nan=true)", lambda x, t=t: clamped(t, x, math.nan))
        for both in ("minimum(maximum(a, -2), 2)", "maximum(minimum(a, 2), -2)"):
            j.add(t, both, lambda x, t=t: clamped(t, x, math.nan, 2.0))
        yield j
        j = Job(f"binary {t}", [t, t], all_pairs(float_few(t)))
        for op in FLOAT_BINARY:
            j.add(t, binary_text(op), lambda x, y, op=op, t=t: exact.float_binary(op, t, x, y), approximate(op, t))
        for op in COMPARE:
            j.add("i1", binary_text(op), lambda x, y, op=op, t=t: exact.compare(op, t, x, y))
        yield j
        some = float_few(t)[::3] + [parts(t)[1], parts(t)[2]]
        j = Job(f"fma {t}", [t, t, t], [(x, y, z) for x in some for y in some for z in some])
        j.add(t, "fma(a, b, c)", lambda x, y, z, t=t: exact.float_fma(t, x, y, z))
        yield j
    for t in ("f8e4m3", "f8e5m2"):
        j = Job(f"compare {t}", [t, t], all_pairs(list(range(0, 256, 5)) + [0x7F, 0x80, 0x7C, 0xFC]))
        for op in COMPARE:
            j.add("i1", binary_text(op), lambda x, y, op=op, t=t: exact.compare(op, t, x, y))
        yield j
    for t in INTS:
        if t == "i1":
            continue
        j = Job(f"unary {t}", [t], [(x,) for x in int_edges(t)])
        for op in INT_UNARY:
            j.add(t, unary_text(op), lambda x, op=op, t=t: exact.int_unary(op, t, x))
        yield j
        j = Job(f"binary {t}", [t, t], all_pairs(int_few(t)))
        for op in INT_BINARY + (["umulhi"] if width(t) >= 32 else []):
            if op in "/%":     # no quotient by 0
                j.add(t, f"a {op} where(b == 0, 1, b)", lambda x, y, op=op, t=t: exact.int_binary(op, t, x, y or 1))
            else:
                j.add(t, binary_text(op), lambda x, y, op=op, t=t: exact.int_binary(op, t, x, y))
        for op in COMPARE:
            j.add("i1", binary_text(op), lambda x, y, op=op, t=t: exact.compare(op, t, x, y))
        yield j
    for t, n in (("u8", "i32"), ("i8", "i64"), ("i16", "u64"), ("u32", "i64"), ("i64", "i8"), ("u64", "i32")):
        j = Job(f"shift {t} by {n}", [t, n], all_pairs(int_few(t), int_few(n)))
        for op in ("<<", ">>"):     # a count has no sign
            j.add(t, f"a {op} b", lambda x, y, op=op, t=t, n=n: exact.shift(op, t, x, y if width(n) >= width(t) else exact.integer(n, y)))
        yield j
    for a in list(FLOATS) + list(INTS):
        j = Job(f"cast {a}", [a], [(x,) for x in (float_edges(a) if a in FLOATS else int_edges(a))])
        for b in list(FLOATS) + list(INTS):
            for how in (None,) + ROUNDS:
                for sat in (False, True):
                    if (how and (b == "i1" or (a in INTS and b in INTS))) or (sat and b == "i1") or (how and a == b):
                        continue
                    options = (f', round="{how}"' if how else "") + (", sat=true" if sat else "")
                    j.add(b, f"cast(a, {b}{options})", lambda x, a=a, b=b, how=how, sat=sat: exact.cast(a, b, x, how, sat))
        yield j
    for a in ("i8", "u8", "f16", "bf16", "f32", "i32"):
        j = Job(f"cast {a} of neighbours", [a], [(x,) for x in (range(256) if width(a) == 8 else float_edges(a) if a in FLOATS else int_edges(a))], neighbours=True)
        for b in ("f16", "bf16", "f32", "f8e4m3", "i8", "u8", "i16"):
            for sat in (False, True):
                j.add(b, f"cast(a, {b}{', sat=true' if sat else ''})", lambda x, a=a, b=b, sat=sat: exact.cast(a, b, x, None, sat))
        yield j


# ---- running ----
def words(t):
    return np.dtype(f"u{max(width(t), 8) // 8}")


def interpreted(source, arrays, outs, tool):
    """What the reference interpreter leaves in the output buffers. arrays: (type, bits) of each input; outs: (type, elements)."""
    with tempfile.TemporaryDirectory() as folder:
        for i, (t, a) in enumerate(arrays):
            a.tofile(os.path.join(folder, f"given.{i}"))
        path = os.path.join(folder, "k.tile")
        open(path, "w").write(source)
        r = subprocess.run([tool, "--no-sim", "--way=sm_90a:0", f"--given={folder}", f"--save={folder}", path], capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError((r.stdout + r.stderr)[-1500:])
        return [np.fromfile(os.path.join(folder, f"want.{len(arrays) + i}"), words(t)) for i, (t, _) in enumerate(outs)]


def launched(source, arrays, outs, grid, dev, target):
    import tilec
    ins = []
    for t, a in arrays:
        b = dev.empty(len(a), t)
        b.write(a.view(tilec.DTYPES[t]))
        ins.append(b)
    out = [dev.empty(n, t) for t, n in outs]
    dev.program(text=source, name="k.tile", target=target).kernel("k")(grid, *ins, *out)
    return [a.numpy().view(words(t)) for (t, _), a in zip(outs, out)]


def same(t, a, b):
    return a == b or (is_nan(t, a) and is_nan(t, b))


def show(t, bits):
    return f"0x{bits:x}" + (f" ({decode(t, bits)!r})" if t in FLOATS else f" ({exact.integer(t, bits)})")


def check(job, want, got, limit):
    """Lines about disagreements, at most `limit` an operation."""
    want, got = dict(zip(job.outs(), want)), dict(zip(job.outs(), got))
    n, out, at = len(job.tuples), [], dict.fromkeys(want, 0)
    for t, text, fn, close in job.rows:
        mine, dev = want[t][at[t]: at[t] + n].tolist(), got[t][at[t]: at[t] + n].tolist()
        at[t] += n
        seen = set()
        for args, w, g in zip(job.tuples, mine, dev):
            if args in seen:
                continue
            seen.add(args)
            agree = close(t, g, w, *args) if close else same(t, g, w)
            e = None if close in INEXACT else fn(*args)
            if agree and (e is None or (close(t, w, e, *args) if close else same(t, w, e))):
                continue
            out.append(f"{job.name}: {text} of {', '.join(show(a, x) for a, x in zip(job.inputs, args))}: interpreter {show(t, w)}, device {show(t, g)}"
                       + (f", exact {show(t, e)}" if e is not None else ""))
            limit_left = sum(text in o for o in out[-limit:])
            if limit_left >= limit:
                break
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--device", default=os.environ.get("TILEC_DEVICE", "sim"))
    a.add_argument("--build", default=os.path.join(root, "build"))
    a.add_argument("--target", default=None)
    a.add_argument("--filter", default="")
    a.add_argument("--limit", type=int, default=3)
    a = a.parse_args()
    os.environ.setdefault("TILEC_CACHE", "0")
    os.environ.setdefault("TILEC_LIB", os.path.join(a.build, "lib", "libtilec.so"))
    import tilec
    import packed
    dev, ran, results, wrong = tilec.Device(a.device), 0, 0, 0
    for job in itertools.chain(jobs(), packed.jobs()):
        if not any(text in job.name for text in a.filter.split("|")):
            continue
        ran += 1
        results += job.results()
        try:
            lines = job.run(dev, a.target, os.path.join(a.build, "tests", "check_kernel"), a.limit)
        except Exception as e:
            lines = [f"{job.name}: {type(e).__name__}: {e}"]
        wrong += len(lines)
        for line in lines:
            print(line, flush=True)
    print(f"{a.device}: {ran} kernels, {results} results, {wrong} disagreements")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.modules["edges"] = sys.modules["__main__"]     # packed.py uses what is here
    sys.exit(main())
