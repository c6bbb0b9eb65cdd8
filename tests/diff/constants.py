"""constants.py BUILD: what is computed while compiling is what a program computes. For every type, pairs of edge values under every
operator and comparison: once of constants, once of values that the program reads from memory, asserted to be the same bits in the
interpreter."""
import random, sys
import made

BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
FLOATS = {"f16": "u16", "bf16": "u16", "f32": "u32", "f64": "u64"}
COMPARE = ["==", "!=", "<", "<=", ">", ">="]
EACH = 24           # pairs of values for an operator


def edges(t):
    n = BITS[t]
    lo, hi = (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "i" else (0, (1 << n) - 1)
    return sorted({lo, lo + 1, lo + 3, 0, 1, 2, 3, 7, hi // 2, hi // 2 + 1, hi - 1, hi} | ({-1, -2, -7} if lo else set()))


def exact(op, a, b):
    """The result in all its bits; None where there is none."""
    if op in "/%":
        if not b:
            return None
        q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return q if op == "/" else a - q * b
    return {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]


def same(t, constant, running):
    """An assertion that both are the same; of floats the same bits, or both a nan."""
    if t not in FLOATS:
        return f"assert({constant} == {running}, \"{constant}\");"
    u = FLOATS[t]
    return f"assert(bitcast({constant}, {u}) == bitcast({running}, {u}) || (isnan({constant}) && isnan({running})), \"{constant}\");"


class Program:
    """Statements, and the numbers that they read: constants of the text, written to memory first."""

    def __init__(self, t):
        self.t, self.values, self.lines = t, [], []

    def read(self, text):
        if text not in self.values:
            self.values.append(text)
        return f"v{self.values.index(text)}"

    def text(self):
        writes = [f"store(p + {i}, {v});" for i, v in enumerate(self.values)]
        reads = [f"let v{i} = load(p + {i});" for i in range(len(self.values))]
        body = "\n  ".join(writes + reads + self.lines)
        return f"// grid 1\n// buffer {self.t} {len(self.values)}\nkernel k(p: *{self.t}) {{\n  {body}\n}}\n"


def whole(r, t):
    p, n = Program(t), BITS[t]
    fits = lambda v: v is not None and (t[0] == "u" or -(1 << n - 1) <= v < 1 << n - 1)      # unsigned constants wrap, others are refused
    pairs = [(a, b) for a in edges(t) for b in edges(t)]
    say = lambda v: f"{t}({v})"
    for op in "+-*/%&|^":
        for a, b in r.sample([x for x in pairs if fits(exact(op, *x))], EACH):
            p.lines.append(same(t, f"({say(a)} {op} {say(b)})", f"({p.read(say(a))} {op} {p.read(say(b))})"))
    for op in ("<<", ">>"):
        for a in edges(t):
            for b in (0, 1, n // 2, n - 1):
                p.lines.append(same(t, f"({say(a)} {op} {b})", f"({p.read(say(a))} {op} {p.read(say(b))})"))
    for op in COMPARE:
        for a, b in r.sample(pairs, EACH):
            p.lines.append(same(t, f"({say(a)} {op} {say(b)})", f"({p.read(say(a))} {op} {p.read(say(b))})"))
    for a in edges(t):
        p.lines.append(same(t, f"(~{say(a)})", f"(~{p.read(say(a))})"))
        if fits(-a):
            p.lines.append(same(t, f"(-{say(a)})", f"(-{p.read(say(a))})"))
    return p.text()


def fractions(r, t):
    p = Program(t)
    values = ["0.0", "-0.0", "1.0", "-1.5", "3.0", "0.1", "-7.25", "max_value(T)", "min_value(T)", "inf", "-inf", "nan", "0.00006103515625"]
    say = lambda v: f"{t}({v.replace('T', t)})"
    pairs = [(a, b) for a in values for b in values]
    for op in "+-*/":
        for a, b in r.sample(pairs, EACH):
            p.lines.append(same(t, f"({say(a)} {op} {say(b)})", f"({p.read(say(a))} {op} {p.read(say(b))})"))
    for op in COMPARE:
        for a, b in r.sample(pairs, EACH) + [(v, "nan") for v in values] + [("nan", v) for v in values]:
            p.lines.append(same("i1", f"({say(a)} {op} {say(b)})", f"({p.read(say(a))} {op} {p.read(say(b))})"))
    for a in values:
        p.lines.append(same(t, f"(-{say(a)})", f"(-{p.read(say(a))})"))
    return p.text()


r = random.Random(1)
texts = [whole(r, t) for t in BITS] + [fractions(r, t) for t in FLOATS]
sys.exit(made.check(sys.argv[1], (("tile", text) for text in texts), "--no-sim", "--way=sm_90a"))
