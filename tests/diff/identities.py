"""identities.py BUILD: rewriting by a constant, or by operands that are the same, changes no bit. Every operator of every type with
constants at which something may be simplified, chains of casts, comparisons of ranges with their ends, loops whose trips are known,
choices of truth values: the interpreter on the program as it was read and after each pass must say the same of any bits."""
import random, sys
import made

N = 64
INTS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}
FLOATS = ["f16", "bf16", "f32", "f64"]
TYPES = [*INTS, *FLOATS, "i1"]
# The least normal and subnormal numbers' exponents: powers of two whose reciprocals are none of the type, or subnormal.
LEAST = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


class Program:
    """Stores of expressions of v, a tile of any bits of type t, and i, the indices."""

    def __init__(self, t):
        self.t, self.sizes, self.lines, self.params = t, [(t, N)], ["let i = arange(0, 64);", "let v = load(x + i);"], [f"x: *{t}"]

    def store(self, dtype, expr):
        name = f"y{len(self.params)}"
        at = next((k for k, p in enumerate(self.params) if k and p.endswith(f": *{dtype}")), None)
        if at is None:
            self.params.append(f"{name}: *{dtype}")
            self.sizes.append((dtype, 0))
            at = len(self.params) - 1
        count = self.sizes[at][1]
        self.sizes[at] = (dtype, count + N)
        self.lines.append(f"store({self.params[at].split(':')[0]} + {count} + i, {expr});")

    def text(self):
        heads = [f"// {'bits' if k == 0 else 'buffer'} {d} {n}" for k, (d, n) in enumerate(self.sizes)]
        return "\n".join(["// grid 1", *heads]) + f"\nkernel k({', '.join(self.params)}) {{\n  " + "\n  ".join(self.lines) + "\n}\n"


def whole(t):
    p, n = Program(t), INTS[t]
    lo, hi = (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "i" else (0, (1 << n) - 1)
    for c in dict.fromkeys([0, 1, 2, 3, 8, hi, hi - 1, 1 << n - 2, lo] + ([-1, -2, -8] if lo else [])):
        k = f"{t}({c})"
        for op in ["+", "-", "*", "&", "|", "^"] + (["/", "%"] if c else []):
            p.store(t, f"v {op} {k}")
        for op in "+-*&|^":
            p.store(t, f"{k} {op} v")
        for op in "/%":
            if c != lo or not lo:                                                # the least by -1 has no quotient
                p.store(t, f"{k} {op} (v | 1)")
        for op in ("==", "!=", "<", "<=", ">", ">="):
            p.store("i32", f"i32(v {op} {k})")
    for c in (0, 1, n - 1):
        p.store(t, f"v << {c}")
        p.store(t, f"v >> {c}")
    return p


def fractions(t):
    p, e = Program(t), LEAST[t]
    powers = [2.0 ** k for k in (e - MANTISSA[t], e - 1, e, e + 1, -1, 1, -e - 1, -e, -e + 1)]
    for c in ["0.0", "-0.0", "1.0", "-1.0", "3.0", "inf", "-inf", "nan"] + [repr(x) for x in powers] + [repr(-x) for x in powers]:
        for op in "+-*/":
            p.store(t, f"v {op} {t}({c})")
        for op in "+-*":
            p.store(t, f"{t}({c}) {op} v")
        for op in ("==", "!=", "<", "<=", ">", ">="):
            p.store("i32", f"i32(v {op} {t}({c}))")
    return p


def twice(p, t):
    """The same operand on both sides, or the same operator twice."""
    for op in ["+", "-"] + ["&", "|", "^"] * (t in INTS):
        p.store(t, f"v {op} v")
    for f in ("min", "max", "minimum", "maximum"):
        p.store(t, f"{f}(v, v)")
    for op in ("==", "!=", "<", "<=", ">", ">="):
        p.store("i32", f"i32(v {op} v)")
    p.store(t, "-(-v)")
    p.store(t, "abs(abs(v))")
    if t in FLOATS:
        for f in ("floor", "ceil", "rint"):
            p.store(t, f"{f}({f}(v))")
    else:
        p.store(t, "~(~v)")
    return p


def chosen():
    p = Program("i32")
    for a in ("true", "false"):
        for b in ("true", "false"):
            p.store("i32", f"i32(where(v > 3, {a}, {b}))")
            p.store("i32", f"where(where(v > 3, {a}, {b}), v, i)")
    for k in (-1, 0, 1, 2, 3, 62, 63, 64, 65, 66, 67, 68):
        for op in ("==", "!=", "<", "<=", ">", ">="):
            p.store("i32", f"i32(i {op} {k})")
            p.store("i32", f"i32(arange(3, 67) {op} {k})")
    return p


def casts(r):
    """v of each type by way of one or two others, with and without clamping."""
    for t in TYPES:
        p = Program(t)
        for by in TYPES[:-1] if t != "i1" else []:       # there and back
            p.store(t, f"cast(cast(v, {by}), {t})")
            p.store(t, f"cast(cast(v, {by}), {t}, sat=true)")
        for _ in range(40):
            e = "v"
            for to in r.choices(TYPES[:-1], k=r.choice([2, 2, 3])):
                e = f"cast({e}, {to}{', sat=true' if r.random() < 0.3 else ''})"
            p.store(to, e)
        yield p


def trips():
    """How often a loop of known bounds runs, and its last index."""
    p = Program("i64")
    for t in ("i32", "u32", "i64", "u64"):
        n = INTS[t]
        lo, hi = (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "i" else (0, (1 << n) - 1)
        for a, b, s in [(0, 0, 1), (0, 1, 1), (1, 0, 1), (0, 1, 5), (0, 2, 1), (0, 5, 5), (0, 6, 5), (hi - 1, hi, 1), (hi - 2, hi, 1),
                        (hi - 9, hi - 4, 9), (hi, lo, 1), (lo, lo + 1, hi), (lo, lo + 2, 1), (lo, lo + 9, 7), (3, hi // 2 + 2, hi // 2)]:
            if a < b and a + (b - a + s - 1) // s * s > hi:      # the index must not wrap
                continue
            name = f"n{len(p.lines)}"
            p.lines.append(f"var {name} = i64(0); for j in range({t}({a}), {t}({b}), {t}({s})) {{ {name} = {name} * 3 + i64(j) + 1; }}")
            p.store("i64", f"v + {name}")
    return p


r = random.Random(2)
programs = [twice(whole(t), t) for t in INTS] + [twice(fractions(t), t) for t in FLOATS] + [chosen(), trips(), *casts(r)]
sys.exit(made.check(sys.argv[1], (("tile", p.text()) for p in programs), "--passes", "--no-sim", "--way=sm_90a:1"))
