"""unpack and pack for every format: every word width that comes out whole, every type of numbers."""
import re
from fractions import Fraction

import numpy as np

import edges
import exact
from exact import FLOATS, INTS, decode, encode, width

FORMATS = ["u1"] + [f"{s}{w}" for w in range(2, 9) for s in "iu"] + ["f3e1m1", "f4e2m1", "f5e2m2", "f5e3m1", "f6e2m3", "f6e3m2", "f6e4m1", "f7e2m4", "f7e3m3", "f7e4m2", "f7e5m1"]
ROWS = 32


def bits_of(f):
    return int(re.match(r"[iuf](\d)", f)[1])


def value(f, bits):
    """The number that a pattern is, as a Fraction, and whether it is negative."""
    w = bits_of(f)
    bits &= (1 << w) - 1
    if f[0] != "f":
        return Fraction(bits - (1 << w) if f[0] == "i" and bits >> (w - 1) else bits), False
    e, m = (int(x) for x in re.search(r"e(\d)m(\d)", f).groups())
    field, frac = bits >> m & ((1 << e) - 1), Fraction(bits & ((1 << m) - 1), 1 << m)
    bias = (1 << (e - 1)) - 1
    v = (frac + 1) * Fraction(2) ** (field - bias) if field else frac * Fraction(2) ** (1 - bias)
    negative = bool(bits >> (w - 1))
    return -v if negative else v, negative


def nearest(f, t, bits):
    """The pattern nearest to a float; of two, the even one."""
    v, half = decode(t, bits), 1 << (bits_of(f) - 1)
    if v != v:
        return half - 1
    sign = half if bits & exact.parts(t)[0] else 0
    size = Fraction(abs(v)) if abs(v) != float("inf") else Fraction(10) ** 400
    return sign | min(range(half), key=lambda p: (abs(value(f, p)[0] - size), p & 1))


def numbers(f):
    return ["f16", "bf16", "f32", "f64"] + ([] if f[0] == "f" else ["i8", "u8", "i16", "i32", "u32", "i64"])


def element(f, t, bits):
    v, negative = value(f, bits)
    return encode(t, v, negative=negative) if t in FLOATS else exact.wrap(t, int(v))


def string(words, w):
    """Rows of words as rows of bits, least significant first."""
    return (words[..., None] >> np.arange(w, dtype=words.dtype) & 1).reshape(words.shape[0], -1).astype(np.uint8)


class Job:
    def run(self, dev, target, tool, limit):
        source = self.source()
        want = edges.interpreted(source, self.arrays, self.outs, tool)
        got = edges.launched(source, self.arrays, self.outs, 1, dev, target)
        lines = []
        for k, (t, _) in enumerate(self.outs):
            wrong = 0
            for i, (w, g, e) in enumerate(zip(want[k].tolist(), got[k].tolist(), self.expected(k))):
                if edges.same(t, w, g) and edges.same(t, w, e):
                    continue
                wrong += 1
                if wrong <= limit:
                    lines.append(f"{self.name}: {t} element {i}: interpreter {edges.show(t, w)}, device {edges.show(t, g)}, exact {edges.show(t, e)}")
        return lines

    def results(self):
        return sum(n for _, n in self.outs)

    def kernel(self, outs, body):
        head = ["// grid 1 1 1"] + [f"// given {t} {len(a)}" for t, a in self.arrays] + [f"// buffer {t} {n}" for t, n in self.outs]
        params = [f"p: *{self.arrays[0][0]}"] + outs
        return "\n".join(head + [f"kernel k({', '.join(params)}) warps({self.warps}) {{", f"  let i = arange(0, {ROWS})[:, None];"] + body + ["}", ""])


class Unpack(Job):
    def __init__(self, f, word, n, warps):
        self.name, self.f, self.word, self.n, self.warps = f"unpack {f} from {n} x {word}", f, word, n, warps
        w, b = width(word), bits_of(f)
        rng = np.random.default_rng(w * b + n)
        words = rng.integers(0, 1 << w, (ROWS, n), dtype=np.uint64).astype(edges.words(word))
        self.count = n * w // b
        self.patterns = (string(words, w).reshape(ROWS * self.count, b).astype(np.int64) << np.arange(b)).sum(axis=1).tolist()
        self.arrays = [(word, words.reshape(-1))]
        self.types = numbers(f)
        self.outs = [(t, ROWS * self.count) for t in self.types] + [(word, ROWS * n)]

    def source(self):
        body = [f"  let w = load(p + i * {self.n} + arange(0, {self.n})[None, :]);", f"  let at = i * {self.count} + arange(0, {self.count})[None, :];"]
        body += [f"  store(o_{t} + at, unpack(w, {self.f}, {t}));" for t in self.types]
        body += [f"  store(again + i * {self.n} + arange(0, {self.n})[None, :], pack(unpack(w, {self.f}), {self.f}, {self.word}));"]
        return self.kernel([f"o_{t}: *{t}" for t in self.types] + [f"again: *{self.word}"], body)

    def expected(self, k):
        if k == len(self.types):
            return self.arrays[0][1].tolist()
        table = [element(self.f, self.types[k], b) for b in range(1 << bits_of(self.f))]
        return [table[b] for b in self.patterns]


class Pack(Job):
    """Of numbers beyond the format: clamped, wrapped, rounded."""

    def __init__(self, f, t, word, warps):
        self.name, self.f, self.t, self.word, self.warps = f"pack {f} from {t} to {word}", f, t, word, warps
        few = edges.float_edges(t) if t in FLOATS else edges.int_edges(t)
        if f[0] == "f":
            points = [value(f, b)[0] for b in range(1 << (bits_of(f) - 1))]
            points = points + [(a + b) / 2 for a, b in zip(points, points[1:])]
            few = list(dict.fromkeys(encode(t, s * v, how) for v in points for how in ("rz", "rp") for s in (1, -1))) + few
        w, b = width(word), bits_of(f)
        self.count = next(n for n in range(1, 65) if n * b % w == 0 and n * b // w * w == n * b and n >= 4)
        total = ROWS * self.count
        self.values = (few * (total // len(few) + 1))[:total]
        self.arrays = [(t, np.array(self.values, edges.words(t)))]
        self.n = self.count * b // w
        self.outs = [(word, ROWS * self.n)] * (1 if f[0] == "f" else 2)

    def source(self):
        body = [f"  let x = load(p + i * {self.count} + arange(0, {self.count})[None, :]);", f"  let at = i * {self.n} + arange(0, {self.n})[None, :];"]
        body += [f"  store(o{k} + at, pack(x, {self.f}, {self.word}{', sat=true' if k else ''}));" for k in range(len(self.outs))]
        return self.kernel([f"o{k}: *{self.word}" for k in range(len(self.outs))], body)

    def expected(self, k):
        b, out = bits_of(self.f), []
        for x in self.values:
            if self.f[0] == "f":
                out.append(nearest(self.f, self.t, x))
                continue
            v, least = exact.integer(self.t, x), -(1 << (b - 1)) if self.f[0] == "i" else 0
            out.append((min(max(v, least), least + (1 << b) - 1) if k else v) & ((1 << b) - 1))
        rows = np.array(out, np.int64).reshape(ROWS, -1)
        whole = string(rows, b).reshape(ROWS * self.n, width(self.word))
        return [int("".join(map(str, r[::-1])), 2) for r in whole.tolist()]


def jobs():
    turn = 0        # words, warps and types take turns
    for k, f in enumerate(FORMATS):
        b = bits_of(f)
        for word in ("u8", ("u16", "u32", "i64", "u32")[k % 4]):
            w = width(word)
            counts = [n for n in ((3, 4, 1, 6) if w % b == 0 else (3, 5, 6, 7, 14)) if n * w % b == 0 and n * w // b <= 96]
            for n in counts[turn % 2:][:1] or counts[:1]:
                turn += 1
                yield Unpack(f, word, n, 1 + turn % 3 // 2 * 3)
        types = ["f16", "bf16", "f32"] if f[0] == "f" else ["i8", "u16", "i32", "u64"]
        yield Pack(f, types[k % len(types)], "u8" if k % 2 else "u32", 4)
