"""Random kernels: well-typed, without undefined behaviour, and with results that do not depend on any order of evaluation.

generate(seed) gives a Kernel: a tree of statements and expressions, whose text() is a .tile file with the comments that
tests/diff/check_kernel reads. The tree is what the shrinker (shrink.py) works on.

Types direct everything: expr(dtype, shape, depth) picks among the ways there are to make such a value. Integers wrap, so any
operation on them is exact; divisors are never 0. Floats carry what is known of them, Float(lsb, most): every value is a multiple
of 2^lsb and at most `most` in size. An operation is used only where its result fits the format's mantissa, so that nothing is
ever rounded and sums and products are the same in any order; where it would not fit, the operands are tamed first (rounded
to integers, clamped). Correctly rounded operations (division, sqrt, narrowing) may end in something inexact; its lsb is None,
and it can only be compared, chosen, stored or tamed. Extents are named constants of the kernel, so they can shrink later, and
sizes of buffers are expressions over them.

python gen_kernel.py SEED prints one."""
import random
import re
import sys

FLOATS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}
INTS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
MOST = {"f32": 2.0 ** 40, "f16": 2.0 ** 15, "bf16": 2.0 ** 40, "f64": 2.0 ** 40}
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 16, 16, 20, 24, 32, 32, 32, 33, 48, 64, 64]
MAX_ELEMENTS = 8192
ACC_LSB, ACC_MOST = -6, 2.0 ** 16


FUNCTIONS = {
    "larger": "fn larger(a, b) { return a > b ? a : b; }",
    "smaller": "fn smaller(a, b) { return min(a, b); }",
    "best": "fn best(a, i, b, j) { let take = b > a || (b == a && j < i); return (take ? b : a, take ? j : i); }",
    "first_best": "fn first_best(pair) { return pair[0]; }",
}


class Float:
    def __init__(self, lsb, most):
        self.lsb, self.most = lsb, most

    def fits(self, dt):
        return self.lsb is not None and self.most <= MOST[dt] and self.most / 2.0 ** self.lsb <= 2.0 ** FLOATS[dt] and self.lsb >= -14


class E:
    """text with {0}, {1} for the kids; tame: of a float, what is known."""

    def __init__(self, dt, shape, text, kids=(), known=None):
        self.dt, self.shape, self.text, self.kids, self.known = dt, shape, text, list(kids), known

    def __str__(self):
        return self.text.format(*map(str, self.kids))


class S:
    """A statement: text with {0}.. for expressions, and blocks of statements, which follow it in braces (`else` between)."""

    def __init__(self, text, kids=(), blocks=None):
        self.text, self.kids, self.blocks = text, list(kids), blocks or []

    def lines(self, indent):
        head = "  " * indent + self.text.format(*map(str, self.kids))
        if not self.blocks:
            return [head]
        out = [head + " {"]
        for i, b in enumerate(self.blocks):
            out += [line for s in b for line in s.lines(indent + 1)]
            out += ["  " * indent + ("} else {" if i + 1 < len(self.blocks) else "}")]
        return out


class Param:
    """A buffer (size: an expression over extents and scalars) or a scalar with its value."""

    def __init__(self, name, dt, size=None, value=None, below=0, promise=0):
        self.name, self.dt, self.sizes, self.value, self.below, self.promise = name, dt, [size] if size else [], value, below, promise
        self.needed = False      # the promise: without it the kernel is wrong

    def declare(self):
        promise = f" multiple_of({self.promise})" if self.promise else ""
        return f"{self.name}: {'*' if self.value is None else ''}{self.dt}{promise}"

    def comment(self, names):
        if self.value is not None:
            return f"// int {self.value}"
        n = max([1] + [eval(s, {}, names) for s in self.sizes])
        return f"// index {self.dt} {n} {self.below}" if self.below else f"// buffer {self.dt} {n}"


class Kernel:
    def __init__(self, seed, dims, warps, grid):
        self.seed, self.dims, self.warps, self.grid = seed, dims, warps, grid
        self.params, self.body = [], []

    def names(self):
        return {**self.dims, **{p.name: p.value for p in self.params if p.value is not None}, "GRID": self.grid}

    def text(self):
        names = self.names()
        consts = "".join(f", const {d} = {v}" for d, v in self.dims.items())
        head = [f"// seed {self.seed}", f"// grid {self.grid}"] + [p.comment(names) for p in self.params]
        head += [f"kernel k({', '.join(p.declare() for p in self.params)}{consts}) warps({self.warps}) {{"]
        body = [line for s in self.body for line in s.lines(1)]
        used = [f for name, f in FUNCTIONS.items() if any(re.search(rf"\b{name}\b", line) for line in body)]
        return "\n".join(head[:-1] + used + head[-1:] + body + ["}", ""])


class Var:
    def __init__(self, name, dt, shape, known, mutable):
        self.name, self.dt, self.shape, self.known, self.mutable = name, dt, shape, known, mutable
        self.used = 0.0          # of an accumulator's room


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        r = self.r
        n = r.choice([1, 2, 2, 3, 3])
        ragged = r.random() < 0.4
        pool = [e for e in EXTENTS if ragged or e & (e - 1) == 0]
        dims = {f"D{i}": r.choice(pool) for i in range(n)}
        if r.random() < 0.1:
            dims["D0"] = r.choice([100, 128, 256, 300, 1000, 1024] if ragged else [128, 256, 1024, 2048])
        if r.random() < 0.4:      # extents that tensor cores like
            dims = {f"D{i}": r.choice([16, 32, 32, 64, 64, 128]) for i in range(n)}
        self.k = Kernel(seed, dims, r.choice([1, 2, 4, 4, 4, 8]), r.choice([1, 1, 2, 3]))
        for name, top in (("n", 40), ("m", 40), ("t", 5)):
            v = r.randint(0 if name == "t" else 1, top)
            self.k.params.append(Param(name, "i32", value=v, promise=r.choice([0, 0, 8, 16]) if v % 16 == 0 and v else 0))
        self.vars, self.trips, self.loops, self.fresh = [], 1, [], 0
        self.dtypes = r.sample(["f32", "f16", "bf16", "f32", "f16", "bf16", "f64"], r.choice([1, 2, 3])) + r.sample(list(INTS), r.choice([1, 2, 3])) + ["i32", "i1"]

    # ---- names, sizes ----
    def name(self, stem):
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def value(self, text):
        return eval(text, {}, self.k.names())

    def numel(self, shape):
        n = 1
        for d in shape:
            n *= self.value(d)
        return n

    def shape(self, rank=None):
        for _ in range(20):
            rk = self.r.choice([1, 1, 2, 2, 2, 3]) if rank is None else rank
            s = tuple(self.r.choice(list(self.k.dims)) for _ in range(rk))
            if self.numel(s) <= MAX_ELEMENTS:
                return s
        return (next(iter(self.k.dims)),) if rank in (None, 1) else ("1",) * rank

    def dtype(self):
        return self.r.choice(self.dtypes)

    def list_of(self, shape):
        return "[" + ", ".join(shape) + "]"

    def index(self, i, rank):
        """[None, :, None]: what makes one dimension of rank."""
        return "" if rank == 1 else "[" + ", ".join(":" if d == i else "None" for d in range(rank)) + "]"

    def positions(self, shape, order=None, pitch=None):
        """Row-major (or permuted) index over shape, and its size."""
        order = order or list(range(len(shape)))
        parts, size = [None] * len(shape), "1"
        for d in reversed(order):
            step = "" if size == "1" else f" * ({size})"
            parts[d] = f"arange(0, {shape[d]}){self.index(d, len(shape))}{step}"
            size = shape[d] if size == "1" else f"{size} * {shape[d]}"
            if pitch and d == order[-1]:
                size = f"({size} + {pitch})"
        return " + ".join(parts) if shape else "0", size

    # ---- memory ----
    def buffer(self, dt, size, below=0, fresh=False):
        same = [p for p in self.k.params if p.value is None and p.dt == dt and p.below == below and p.name[0] == "x"]
        if same and not fresh and (len(self.k.params) > 9 or self.r.random() < 0.6):
            p = self.r.choice(same)
        elif len(self.k.params) > 12:
            return None
        else:
            p = Param(self.name("out" if fresh else "x"), dt, below=below, promise=self.r.choice([0, 16, 16]))
            self.k.params.append(p)
        p.sizes.append(size)
        return p

    def load(self, dt, shape, depth):
        r, known = self.r, Float(-3, 4.0) if dt in FLOATS else None
        if dt in ("f8e4m3",):
            return None
        order = list(range(len(shape)))
        if r.random() < 0.25:
            r.shuffle(order)
        at, size = self.positions(shape, order, r.choice([None, None, None, "3", "8"]) if shape else None)
        if r.random() < 0.15 and shape:
            return self.gather(dt, shape, depth, known)
        offset, reach = [], [size]
        c = r.choice([0, 0, 1, 16])
        if c:
            offset, reach = [str(c)], reach + [str(c)]
        if r.random() < 0.5:
            offset.append(f"program_id(0) * ({size})")
            reach.append(f"(GRID - 1) * ({size})")
        for var, top in self.loops:
            if r.random() < 0.6:
                step = r.choice(["1", "16", f"({size})"])
                offset.append(f"{var} * {step}")
                reach.append(f"max({top} - 1, 0) * {step}")
        whole = " + ".join(reach)
        if shape and r.random() < 0.35:
            return self.masked(dt, shape, at, offset, whole, depth, known)
        p = self.buffer(dt, whole)
        return p and E(dt, shape, f"load({' + '.join([p.name] + offset)} + ({at}))", known=known)

    def masked(self, dt, shape, at, offset, whole, depth, known):
        """Where the mask is off the addresses may be invalid: the buffer ends where the mask does."""
        d = self.r.randrange(len(shape))
        limit = self.r.choice(["n", "m", "5", "16"])
        mask = f"arange(0, {shape[d]}){self.index(d, len(shape))} < {limit}"
        linear = len(shape) == 1 or d == 0
        size = whole
        if linear and "program_id" not in " ".join(offset) and not any(v in " ".join(offset) for v, _ in self.loops):
            size = None if len(shape) > 1 else f"min({limit}, {shape[0]}) + {' + '.join(offset) or '0'}"
        p = self.buffer(dt, size or whole)
        if not p:
            return None
        if self.r.random() < 0.3 and depth > 0:
            other, kids = ", other={0}", [self.expr(dt, shape, depth - 2)]
            if dt in FLOATS:
                known = self.join(known, kids[0].known)
        elif self.r.random() < 0.4:
            lit = self.literal(dt)
            other, kids = f", other={lit.text}", []
            known = self.join(known, lit.known) if dt in FLOATS else None
        else:
            other, kids = "", []
        mask = f"broadcast_to({mask}, {self.list_of(shape)})" if self.r.random() < 0.2 else mask
        return E(dt, shape, f"load({' + '.join([p.name] + offset)} + ({at}), mask={mask}{other})", kids, known)

    def gather(self, dt, shape, depth, known):
        p = self.buffer(dt, "64")
        if not p:
            return None
        if self.r.random() < 0.5:
            at, size = self.positions(shape)
            q = self.buffer("i32", size, below=64)
            if q:
                return E(dt, shape, f"load({p.name} + load({q.name} + ({at})))", known=known)
        i = self.expr("i32", shape, depth - 1)
        return E(dt, shape, f"load({p.name} + ({{0}} & 63))", [i], known)

    # ---- floats ----
    def join(self, a, b):
        if a.lsb is None or b.lsb is None:
            return Float(None, max(a.most, b.most))
        return Float(min(a.lsb, b.lsb), max(a.most, b.most))

    def tame(self, e, most=4, grain=0):
        """Integers (or multiples of 2^grain, where e has them already) of at most `most`."""
        if e.known.lsb is not None and e.known.lsb >= grain and e.known.most <= most:
            return e
        inner = "{0}" if e.known.lsb is not None and e.known.lsb >= grain else "rint({0})"
        return E(e.dt, e.shape, f"min(max({inner}, -{most}.0), {most}.0)", [e], Float(max(0 if "rint" in inner else grain, grain), float(most)))

    def exact(self, dt, shape, depth):
        e = self.expr(dt, shape, depth)
        return e if e.known.lsb is not None else self.tame(e)

    def float_add(self, dt, shape, depth):
        a, b = self.exact(dt, shape, depth), self.operand(dt, shape, depth)
        for _ in range(2):
            known = Float(min(a.known.lsb, b.known.lsb), a.known.most + b.known.most)
            if known.fits(dt):
                return E(dt, shape, f"({{0}} {self.r.choice('+-')} {{1}})", [a, b], known)
            a, b = self.tame(a), self.tame(b)
        return a

    def float_mul(self, dt, shape, depth):
        a, b = self.exact(dt, shape, depth), self.operand(dt, shape, depth)
        for _ in range(2):
            known = Float(a.known.lsb + b.known.lsb, a.known.most * b.known.most)
            if known.fits(dt):
                break
            a, b = self.tame(a), self.tame(b)
        e = E(dt, shape, "({0} * {1})", [a, b], known)
        if self.r.random() < 0.4:
            c = self.tame(self.exact(dt, shape, depth - 1), 4, -3)
            known = Float(min(known.lsb, c.known.lsb), known.most + c.known.most)
            if known.fits(dt):
                return E(dt, shape, self.r.choice(["({0} * {1} + {2})", "fma({0}, {1}, {2})"]) if shape == () or True else "", [a, b, c], known) \
                    if all(k.shape == shape for k in (a, b, c)) else E(dt, shape, "({0} * {1} + {2})", [a, b, c], known)
        return e

    def operand(self, dt, shape, depth):
        """One side of an operator: also something that stretches."""
        r = self.r
        if dt in FLOATS:
            one = lambda s, d: self.exact(dt, s, d)
        else:
            one = lambda s, d: self.expr(dt, s, d)
        if shape and r.random() < 0.15:
            return one((), depth - 1)
        if len(shape) > 1 and r.random() < 0.25:
            d = r.randrange(len(shape))
            return one(shape[:d] + ("1",) + shape[d + 1:], depth - 1)
        return one(shape, depth - 1)

    # ---- expressions ----
    def literal(self, dt):
        r = self.r
        if dt == "i1":
            return E(dt, (), r.choice(["true", "false"]))
        if dt in FLOATS:
            v = r.choice([0, 1, -1, 2, 0.5, -0.25, 3, 4])
            return E(dt, (), f"{dt}({float(v)})", known=Float(-2, 4.0))
        v = r.choice([0, 1, 2, 3, 5, 7, 100, 127] + ([-1, -2, -7, -128] if dt[0] == "i" else [200, 255]))
        return E(dt, (), f"{dt}({v})")

    def leaf(self, dt, shape):
        r = self.r
        here = [v for v in self.vars if v.dt == dt and v.shape == shape]
        if here and r.random() < 0.7:
            v = r.choice(here)
            return E(dt, shape, v.name, known=v.known)
        if not shape:
            if dt == "i32" and r.random() < 0.7:
                return E(dt, (), r.choice(["program_id(0)", "n", "m", "t", "num_programs(0)"] + [v for v, _ in self.loops] * 2))
            if r.random() < 0.3:
                return self.load(dt, shape, 0) or self.literal(dt)
            return self.literal(dt)
        if dt == "i32" and r.random() < 0.5:
            d = r.randrange(len(shape))
            a = E(dt, tuple(s if i == d else "1" for i, s in enumerate(shape)), f"arange({self.r.choice([0, 0, 3])}, {{0}}){self.index(d, len(shape))}")
            lo = self.r.choice(["0", "0", "3", "-5"])
            a.text = f"arange({lo}, {lo} + {shape[d]}){self.index(d, len(shape))}"
            return a if len(shape) == 1 else E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a])
        got = self.load(dt, shape, 0) if r.random() < 0.75 else None
        if got:
            return got
        lit = self.literal(dt)
        return E(dt, shape, f"full({self.list_of(shape)}, {lit.text}, {dt})", known=lit.known)

    def expr(self, dt, shape, depth):
        if depth <= 0:
            return self.leaf(dt, shape)
        ways = [self.leafy, self.select, self.minmax, self.cast, self.op, self.op, self.op, self.op, self.helped]
        if shape:
            ways += [self.load_way, self.load_way, self.broadcast, self.reduce_tile, self.permute, self.reshape, self.along, self.part, self.element, self.merged]
            ways += [self.packed] if dt != "i1" else []
        else:
            ways += [self.reduce_all, self.reduce_all]
        if len(shape) == 2 and dt in ("f32", "i32", "f16", "f64"):
            ways += [self.dot, self.dot]
        if len(shape) == 3 and dt in ("f32", "i32"):
            ways += [self.dot]
        if dt == "i32" and len(shape) == 1:
            ways += [self.histogram]
        if dt in FLOATS:
            ways += [self.rounded]
        for _ in range(4):
            e = self.r.choice(ways)(dt, shape, depth)
            if e:
                return e
        return self.leaf(dt, shape)

    def leafy(self, dt, shape, depth):
        return self.leaf(dt, shape)

    def load_way(self, dt, shape, depth):
        return self.load(dt, shape, depth)

    def op(self, dt, shape, depth):
        return (self.float_op if dt in FLOATS else self.bool_op if dt == "i1" else self.int_op)(dt, shape, depth - 1)

    def float_op(self, dt, shape, depth):
        r = self.r
        pick = r.random()
        if pick < 0.35:
            return self.float_add(dt, shape, depth)
        if pick < 0.6:
            return self.float_mul(dt, shape, depth)
        if pick < 0.8:
            a = self.expr(dt, shape, depth)
            f = r.choice(["-", "abs", "floor", "ceil", "rint"])
            known = a.known if f in ("-", "abs") or a.known.lsb is None else Float(max(0, a.known.lsb), a.known.most + 1)
            if f not in ("-", "abs") and a.known.lsb is None:
                known = Float(0, a.known.most + 1)
                known = known if known.fits(dt) else Float(None, a.known.most)
            return E(dt, shape, f"({f}{{0}})" if f == "-" else f"{f}({{0}})", [a], known)
        a = self.exact(dt, shape, depth)
        if pick < 0.9:
            return E(dt, shape, "sqrt(abs({0}))", [a], Float(None, max(1.0, a.known.most)))
        b = self.tame(self.exact(dt, shape, depth), 4, -3)
        return E(dt, shape, "({0} / max(abs({1}), 1.0))", [a, b], Float(None, a.known.most))

    def int_op(self, dt, shape, depth):
        r = self.r
        a = self.expr(dt, shape, depth)
        pick = r.random()
        if pick < 0.6:
            b = self.operand(dt, shape, depth)
            return E(dt, shape, f"({{0}} {r.choice(['+', '-', '*', '&', '|', '^', '+', '*'])} {{1}})", [a, b])
        if pick < 0.75:
            if r.random() < 0.3:         # by the width or more, too
                return E(dt, shape, f"({{0}} {r.choice(['<<', '>>'])} ({{1}} & 127))", [a, self.operand(dt, shape, depth)])
            return E(dt, shape, f"({{0}} {r.choice(['<<', '>>'])} {r.choice([1, 2, 3, 7])})", [a])
        if pick < 0.87:
            if r.random() < 0.6:
                by = r.choice(["2", "3", "5", "8", "16", "7"] + (["-3", "-1"] if dt[0] == "i" else []))
                return E(dt, shape, f"({{0}} {r.choice(['/', '%'])} {by})", [a])
            return E(dt, shape, f"({{0}} {r.choice(['/', '%'])} ({{1}} & 7 | 1))", [a, self.operand(dt, shape, depth)])
        if pick < 0.92 and dt == "u32":
            return E(dt, shape, "umulhi({0}, {1})", [a, self.expr(dt, shape, depth - 1)])
        return E(dt, shape, r.choice(["(-{0})", "(~{0})", "abs({0})"] if dt[0] == "i" else ["(-{0})", "(~{0})"]), [a])

    def bool_op(self, dt, shape, depth):
        r = self.r
        if r.random() < 0.7:
            t = r.choice([d for d in self.dtypes if d != "i1"])
            a = self.expr(t, shape, depth)
            b = self.operand(t, shape, depth) if t not in FLOATS else self.expr(t, shape, depth - 1)
            return E(dt, shape, f"({{0}} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {{1}})", [a, b])
        if r.random() < 0.3:
            return E(dt, shape, "(!{0})", [self.expr(dt, shape, depth)])
        return E(dt, shape, f"({{0}} {r.choice(['&', '|', '^', '&&', '||'])} {{1}})", [self.expr(dt, shape, depth), self.expr(dt, shape, depth - 1)])

    def select(self, dt, shape, depth):
        c, a, b = self.expr("i1", shape, depth - 2), self.expr(dt, shape, depth - 1), self.expr(dt, shape, depth - 2)
        return E(dt, shape, self.r.choice(["where({0}, {1}, {2})", "({0} ? {1} : {2})"]), [c, a, b], self.join(a.known, b.known) if dt in FLOATS else None)

    def minmax(self, dt, shape, depth):
        if dt == "i1":
            return None
        a, b = self.expr(dt, shape, depth - 1), self.expr(dt, shape, depth - 2)
        return E(dt, shape, f"{self.r.choice(['max', 'min'])}({{0}}, {{1}})", [a, b], self.join(a.known, b.known) if dt in FLOATS else None)

    def helped(self, dt, shape, depth):
        """Promises that are true, and layouts, which change nothing."""
        a = self.expr(dt, shape, depth - 1)
        if shape and self.numel(shape) >= 1 and self.r.random() < 0.6:
            rank = len(shape)
            w = self.k.warps
            order = list(range(rank))
            self.r.shuffle(order)
            threads, warps = [1] * rank, [1] * rank
            threads[self.r.randrange(rank)] *= 4
            threads[self.r.randrange(rank)] *= 8
            warps[self.r.randrange(rank)] = w
            size = [self.r.choice([1, 1, 2, 4]) for _ in range(rank)]
            return E(dt, shape, f"convert_layout({{0}}, blocked(size={size}, threads={threads}, warps={warps}, order={order}))", [a], a.known)
        return a

    def cast(self, dt, shape, depth):
        r = self.r
        src = r.choice([d for d in self.dtypes if d != dt])
        a = self.expr(src, shape, depth - 1)
        if dt == "i1":
            return E(dt, shape, "i1({0})", [a])
        if dt in FLOATS and src in FLOATS:
            known = a.known
            if not known.fits(dt):
                known = Float(None, min(known.most, MOST[dt])) if known.most <= MOST[dt] else None
                if known is None:
                    a = self.tame(a)
                    known = a.known
            return E(dt, shape, f"{dt}({{0}})", [a], known)
        if dt in FLOATS:
            if src == "i1":
                return E(dt, shape, f"{dt}({{0}})", [a], Float(0, 1.0))
            low = E(src, shape, r.choice(["({0} & 7)", "({0} % 5)"]), [a])
            return E(dt, shape, f"{dt}({{0}})", [low], Float(0, 7.0))
        if src in FLOATS:
            a = a if a.known.most < 100 else self.tame(a)
            if dt[0] == "u":
                a = E(src, shape, "abs({0})", [a], a.known)
            return E(dt, shape, f"{dt}({{0}})", [a])
        return E(dt, shape, f"{dt}({{0}})", [a])

    # ---- shapes ----
    def broadcast(self, dt, shape, depth):
        r = self.r
        pick = r.random()
        if pick < 0.3:
            return E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a := self.expr(dt, (), depth - 1)], a.known)
        d = r.randrange(len(shape))
        if pick < 0.6 or len(shape) == 1:
            a = self.expr(dt, shape[:d] + ("1",) + shape[d + 1:], depth - 1)
            return E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a], a.known)
        a = self.expr(dt, shape[:d] + shape[d + 1:], depth - 1)
        at = ", ".join("None" if i == d else ":" for i in range(len(shape)))
        e = E(dt, shape[:d] + ("1",) + shape[d + 1:], f"{{0}}[{at}]" if not a.text.startswith(("-", "(")) else f"({{0}})[{at}]", [a], a.known)
        return E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [e], a.known)

    def permute(self, dt, shape, depth):
        if len(shape) < 2:
            return None
        order = list(range(len(shape)))
        self.r.shuffle(order)
        src = [None] * len(shape)
        for i, o in enumerate(order):
            src[o] = shape[i]
        a = self.expr(dt, tuple(src), depth - 1)
        if order[:-2] == list(range(len(shape) - 2)) and order[-2:] == [len(shape) - 1, len(shape) - 2] and self.r.random() < 0.5:
            return E(dt, shape, "trans({0})", [a], a.known)
        return E(dt, shape, f"permute({{0}}, {order})", [a], a.known)

    def power(self, shape):
        return all((v := self.value(d)) & (v - 1) == 0 for d in shape)

    def part(self, dt, shape, depth):
        """Elements from..to of a larger tile along one dimension."""
        r, d = self.r, self.r.randrange(len(shape))
        before, after = r.choice([(0, 1), (1, 0), (2, 3), (0, None), (None, 0), (1, 1)])
        extent = shape[d]
        larger = f"2 * {extent}" if before is None or after is None else f"{extent} + {before + after}"
        src = shape[:d] + (f"({larger})",) + shape[d + 1:]
        if self.numel(src) > MAX_ELEMENTS:
            return None
        lo = extent if before is None else str(before) if before else r.choice(["", "0"])
        hi = extent if after is None else f"{extent} + {before}" if before is not None else r.choice(["", f"2 * {extent}"])
        at = ", ".join(f"{lo}:{hi}" if i == d else ":" for i in range(len(shape)))
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, f"({{0}})[{at}]", [a], a.known) if a.shape == src and "1" not in map(str, a.shape) else None

    def element(self, dt, shape, depth):
        """One element along a further dimension, found by a constant or at run time."""
        w = self.wider(shape)
        if not w:
            return None
        src, d = w
        i = self.r.choice(["0", f"{src[d]} - 1", f"n % {src[d]}", f"(program_id(0) + t) % {src[d]}"])
        at = ", ".join(i if k == d else ":" for k in range(len(src)))
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, f"(broadcast_to({{0}}, {self.list_of(src)}))[{at}]", [a], a.known)

    def merged(self, dt, shape, depth):
        """Two tiles as one, or a tile with a part of another in it."""
        r, d = self.r, self.r.randrange(len(shape))
        whole = lambda e, s: E(dt, s, f"broadcast_to({{0}}, {self.list_of(s)})", [e], e.known)
        if self.value(shape[d]) % 2 == 0 and r.random() < 0.6:
            half = shape[:d] + (str(self.value(shape[d]) // 2),) + shape[d + 1:]
            a, b = whole(self.expr(dt, half, depth - 1), half), whole(self.expr(dt, half, depth - 2), half)
            text = "interleave({0}, {1})" if d == len(shape) - 1 and r.random() < 0.5 else f"cat({{0}}, {{1}}, axis={d})"
            return E(dt, shape, text, [a, b], self.join(a.known, b.known) if dt in FLOATS else None)
        if self.value(shape[d]) < 2:
            return None
        less = shape[:d] + (str(self.value(shape[d]) - 1),) + shape[d + 1:]
        a, b = whole(self.expr(dt, shape, depth - 1), shape), whole(self.expr(dt, less, depth - 2), less)
        start = ", ".join(r.choice(["0", "1"]) if k == d else "0" for k in range(len(shape)))
        return E(dt, shape, f"insert({{0}}, {{1}}, [{start}])", [a, b], self.join(a.known, b.known) if dt in FLOATS else None)

    def packed(self, dt, shape, depth):
        """Small numbers out of words, and sometimes back into them and out again."""
        r = self.r
        if self.value(shape[-1]) % 8 or dt in ("i8", "u8") and r.random() < 0.5:
            return None
        word, form, bits = r.choice([("u32", "u4", 4), ("u32", "i4", 4), ("u8", "u2", 2), ("u8", "i4", 4), ("u32", "u8", 8), ("u8", "u4", 4)])
        each = (32 if word == "u32" else 8) // bits
        if self.value(shape[-1]) % each or (dt[0] == "u" and form[0] == "i"):
            return None
        src = shape[:-1] + (str(self.value(shape[-1]) // each),)
        a = E(word, src, f"broadcast_to({{0}}, {self.list_of(src)})", [self.expr(word, src, depth - 2)])
        known = Float(0, 255.0) if dt in FLOATS else None
        if known and not known.fits(dt):
            return None
        if bits < 8 and r.random() < 0.3:
            a = E(word, src, f"pack(unpack({{0}}, {form}), {form}, {word})", [a])
        return E(dt, shape, f"{dt}(unpack({{0}}, {form}))", [a], known)

    def rounded(self, dt, shape, depth):
        """Through a narrower type, rounded as asked; 8-bit floats clamp."""
        r = self.r
        a = self.exact(dt, shape, depth - 1)
        if dt in ("f32", "f16", "bf16") and a.known.most < 400 and r.random() < 0.5:
            to, grain = r.choice([("f8e4m3", -9), ("f8e5m2", -16)])
            return E(dt, shape, f"{dt}(f32({to}({{0}})))", [a], Float(grain, 512.0) if Float(grain, 512.0).fits(dt) else Float(None, 512.0))
        if dt in ("f32", "f64"):
            to = r.choice(["f16", "bf16"] + (["f32"] if dt == "f64" else []))
            if a.known.most >= MOST["f16"]:
                return None
            return E(dt, shape, f"{dt}({to}({{0}}, round=\"{r.choice(['rn', 'rz', 'rm', 'rp'])}\"))", [a], Float(None, a.known.most * 2))
        return None

    def histogram(self, dt, shape, depth):
        src = self.shape(1)
        a = E("i32", src, f"broadcast_to({{0}}, {self.list_of(src)})", [self.expr("i32", src, depth - 1)])
        return E(dt, shape, f"histogram({{0}} {self.r.choice(['& 15', '% 7', '& 63'])}, {shape[0]})", [a])

    def reshape(self, dt, shape, depth):
        r = self.r
        if not self.power(shape) and len(shape) < 2:
            return None
        if len(shape) > 1 and (r.random() < 0.5 or not self.power(shape)):
            d = r.randrange(len(shape) - 1)
            src = shape[:d] + (f"{shape[d]} * {shape[d + 1]}",) + shape[d + 2:]
        else:
            d, two = r.randrange(len(shape)), r.choice([2, 4])
            if len(shape) > 2 or self.value(shape[d]) < two:
                return None
            src = shape[:d] + (str(two), f"{shape[d]} / {two}".replace("/", "//")) + shape[d + 1:]
        if any("//" in s for s in src):       # the language writes the quotient with one stroke
            src = tuple(s.replace("//", "/") for s in src)
            if any(self.value(s) != int(self.value(s)) for s in src):
                return None
            src = tuple(s if "/" not in s else str(int(self.value(s))) for s in src)
        a = self.expr(dt, src, depth - 1)
        return E(dt, shape, f"reshape({{0}}, {self.list_of(shape)})", [a], a.known)

    def along(self, dt, shape, depth):
        """What goes along an axis and keeps the shape: scans, gathers, sorting, turning round."""
        r, d = self.r, self.r.randrange(len(shape))
        pick = r.choice(["cumsum", "cumsum", "scan", "gather", "gather", "flip", "sort", "argsort", "butterfly"])
        extent = self.value(shape[d])
        even = extent & (extent - 1) == 0
        if pick in ("cumsum", "scan") and dt != "i1":
            a = self.expr(dt, shape, depth - 1) if dt not in FLOATS else self.exact(dt, shape, depth - 1)
            back = r.choice(["", ", reverse=true"]) + r.choice(["", "", ", exclusive=true"])
            if pick == "scan":
                return E(dt, shape, f"scan({{0}}, {d}, {r.choice(['larger', 'smaller'])}{back})", [a], a.known)
            if dt in FLOATS:
                a = a if dt == "f64" or Float(a.known.lsb, a.known.most * extent).fits("f32") else self.tame(a)
                known = Float(a.known.lsb, a.known.most * extent)
                known = known if known.fits(dt) else Float(None, known.most) if known.most < MOST[dt] else None
                return known and E(dt, shape, f"cumsum({{0}}, axis={d}{back})", [a], known)
            return E(dt, shape, f"cumsum({{0}}, axis={d}{back})", [a]) if INTS[dt] >= 32 else None
        if pick == "gather":
            a, i = self.expr(dt, shape, depth - 1), self.expr("i32", shape, depth - 2)
            inside = f"({{1}} & {shape[d]} - 1)" if even else f"(({{1}} & 1023) % {shape[d]})"
            return E(dt, shape, f"gather({{0}}, {inside}, {d})", [a, i], a.known)
        if pick == "flip":
            a = self.expr(dt, shape, depth - 1)
            return E(dt, shape, f"flip({{0}}, axis={d})", [a], a.known)
        if pick == "butterfly" and even and extent > 1:
            a = self.expr(dt, shape, depth - 1)
            a = E(dt, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [a], a.known)
            return E(dt, shape, f"butterfly({{0}}, {d}, {r.choice([1, extent // 2, extent - 1])})", [a], a.known)
        if pick == "argsort" and dt == "i32" and self.numel(shape) <= 1024:
            t = r.choice([x for x in self.dtypes if x != "i1"])
            a = E(t, shape, f"broadcast_to({{0}}, {self.list_of(shape)})", [self.expr(t, shape, depth - 2)])
            return E(dt, shape, f"argsort({{0}}, axis={d}{r.choice(['', ', descending=true'])})", [a])
        if pick == "sort" and dt != "i1" and self.numel(shape) <= 1024:
            a = self.expr(dt, shape, depth - 1)
            return E(dt, shape, f"sort({{0}}, axis={d}{r.choice(['', ', descending=true'])})", [a], a.known)
        return None

    # ---- reductions, dots ----
    def wider(self, shape):
        """shape with one more dimension, and where."""
        if len(shape) > 2:
            return None
        d, new = self.r.randrange(len(shape) + 1), self.r.choice(list(self.k.dims))
        src = shape[:d] + (new,) + shape[d:]
        return (src, d) if self.numel(src) <= MAX_ELEMENTS else None

    def reduce_tile(self, dt, shape, depth):
        w = self.wider(shape)
        if not w:
            return None
        src, d = w
        e = self.reduce(dt, src, d, depth)
        if e:
            e.shape = shape
        return e

    def reduce_all(self, dt, shape, depth):
        src = self.shape(1)
        e = self.reduce(dt, src, 0, depth)
        if e:
            e.shape = ()
        return e

    def reduce(self, dt, src, d, depth):
        r = self.r
        count = self.value(src[d])
        fn = r.choice(["sum", "sum", "max", "min", "arg", "fold"])
        if fn == "arg":
            t = r.choice([x for x in self.dtypes if x != "i1"])
            if dt != "i32":
                return None
            return E(dt, (), f"{r.choice(['argmax', 'argmin'])}({{0}}, axis={d})", [self.expr(t, src, depth - 1)])
        if dt == "i1" or (fn == "fold" and dt in INTS and r.random() < 0.3):
            f = r.choice(["any", "all"]) if dt == "i1" else "xor_sum"
            return E(dt, (), f"{f}({{0}}, axis={d})", [E(dt, src, f"broadcast_to({{0}}, {self.list_of(src)})", [self.expr(dt, src, depth - 1)])])
        if fn == "sum" and dt in FLOATS:
            a = self.exact(dt, src, depth - 1)
            if not Float(a.known.lsb, a.known.most * count).fits("f32"):
                a = self.tame(a)
            known = Float(a.known.lsb, a.known.most * count)
            if dt == "f64" and known.fits("f64"):
                return E(dt, (), f"sum({{0}}, axis={d})", [a], known)
            return E(dt, (), f"sum({{0}}, axis={d})", [a], known if known.fits(dt) else Float(None, known.most))
        if fn == "sum":
            if INTS[dt] < 32:
                return None
            return E(dt, (), f"sum({{0}}, axis={d})", [self.expr(dt, src, depth - 1)])
        if fn == "fold":
            return self.fold(dt, src, d, depth)
        a = self.expr(dt, src, depth - 1)
        return E(dt, (), f"{fn}({{0}}, axis={d})", [a], a.known)

    def fold(self, dt, src, d, depth):
        """By a function of the kernel's file; half of the time over two tiles at once, the larger by the second."""
        a = self.expr(dt, src, depth - 1)
        if self.r.random() < 0.5:
            return E(dt, (), f"reduce({{0}}, {d}, {self.r.choice(['larger', 'smaller'])})", [a], a.known)
        return E(dt, (), f"first_best(reduce(({{0}}, broadcast_to(arange(0, {src[d]}){self.index(d, len(src))}, {self.list_of(src)})), {d}, best))", [a], a.known)

    def dot(self, dt, shape, depth):
        r = self.r
        inner = r.choice(list(self.k.dims))
        m, n = shape[-2:]
        batch = shape[:-2]
        if batch and self.numel(shape) * self.value(inner) > 2 ** 18:
            return None
        if dt == "i32":
            t = r.choice(["i8", "u8"])
            a, b = self.expr(t, batch + (m, inner), depth - 2), self.expr(t, batch + (inner, n), depth - 2)
            known = None
        else:
            if dt == "f64" and "f64" not in self.dtypes:
                return None
            narrow = [x for x in self.dtypes if x in FLOATS and x != "f64"]
            if dt != "f64" and not narrow:
                return None
            t = "f64" if dt == "f64" else r.choice(narrow)
            a, b = (self.tame(self.exact(t, s, depth - 2), 4, -3) for s in (batch + (m, inner), batch + (inner, n)))
            known = Float(a.known.lsb + b.known.lsb, a.known.most * b.known.most * self.value(inner))
        if r.random() < 0.3 and "(" in str(b):
            b2 = self.expr(t, batch + (n, inner), depth - 2)
            b2 = b2 if t in INTS else self.tame(b2, 4, -3)
            if t in INTS or b2.known.lsb >= b.known.lsb:
                b = E(t, b.shape, "trans({0})", [b2], b2.known)
        if batch:
            a, b = (E(t, e.shape, f"broadcast_to({{0}}, {self.list_of(s)})", [e], e.known) for e, s in ((a, batch + (m, inner)), (b, batch + (inner, n))))
        kids, more = [a, b], ""
        if t == "f32" and r.random() < 0.3:
            more = ', precision="ieee"'
        if dt != "f16" and r.random() < 0.4:
            acc = self.expr(dt, shape, depth - 2)
            if known:
                acc = acc if acc.known.lsb is not None and acc.known.most <= 64 else self.tame(acc)
                known = Float(min(known.lsb, acc.known.lsb), known.most + acc.known.most)
            kids.append(acc)
            more = ", acc={2}" + more
        if known and not known.fits("f32"):
            return None
        if dt == "f16":
            known = known if known.fits("f16") else Float(None, known.most) if known.most < MOST["f16"] else None
            if not known:
                return None
            more += ", out=f16"
        return E(dt, shape, f"dot({{0}}, {{1}}{more})", kids, known)

    # ---- statements ----
    def block(self, depth, count):
        mark, out = len(self.vars), []
        for _ in range(count):
            out += self.statement(depth)
        if self.r.random() < 0.7:          # what nobody sees is dropped: let something out
            new = [v for v in self.vars[mark:]]
            v = self.r.choice(new) if new else None
            out += (self.store_of(E(v.dt, v.shape, v.name, known=v.known), v.shape) if v else self.assign(depth)) or []
        del self.vars[mark:]
        return out

    def statement(self, depth):
        r = self.r
        ways = [self.let, self.let, self.let, self.var, self.assign, self.assign, self.store]
        if depth > 0:
            ways += [self.loop, self.loop, self.branch, self.leave, self.shared, self.atomic]
            if self.trips <= 4:
                ways += [self.loop_while, self.ring, self.walk, self.walk, self.chain]
        return r.choice(ways)(depth) or self.let(depth)

    def let(self, depth):
        dt, shape = self.dtype(), self.shape() if self.r.random() < 0.85 else ()
        e = self.expr(dt, shape, self.r.choice([1, 2, 3, 4]))
        v = Var(self.name("v"), dt, e.shape, e.known, False)
        s = S(f"let {v.name} = {{0}};", [e])
        self.vars.append(v)
        return [s]

    def var(self, depth):
        r = self.r
        dt = r.choice([d for d in self.dtypes if d != "i1"])
        shape = self.shape() if r.random() < 0.85 else ()
        e = self.expr(dt, shape, r.choice([0, 1, 2]))
        known = None
        if dt == "f32":
            e, known = self.tame(e, 4, -3), Float(ACC_LSB, ACC_MOST)
        elif dt in FLOATS:
            e, known = self.tame(e, 4, -3), Float(-3, 4.0)
        v = Var(self.name("a"), dt, shape, known, True)
        v.used = 4.0
        self.vars.append(v)
        return [S(f"var {v.name} = {{0}};", [self.typed(e, shape)])]

    def typed(self, e, shape):
        """e with the shape it was asked for: leaves may stretch."""
        return e

    def assign(self, depth):
        r = self.r
        mine = [v for v in self.vars if v.mutable]
        if not mine:
            return None
        v = r.choice(mine)
        e = self.expr(v.dt, v.shape, r.choice([1, 2, 3]))
        if v.dt == "f32":
            e = e if e.known.fits("f32") and e.known.lsb >= ACC_LSB else self.tame(e)
            if r.random() < 0.7:
                if v.used + e.known.most * self.trips > ACC_MOST:
                    e = self.tame(e)
                if v.used + e.known.most * self.trips > ACC_MOST:
                    return None
                v.used += e.known.most * self.trips
                return [S(f"{v.name} {r.choice(['+=', '-='])} {{0}};", [e])]
            if v.used + e.known.most > ACC_MOST:
                return None
            v.used += e.known.most
        elif v.dt in FLOATS:
            e = self.tame(e, 4, -3)
        elif r.random() < 0.5:
            return [S(f"{v.name} {r.choice(['+=', '-=', '*=', '^=', '|=', '&='])} {{0}};", [e])]
        if r.random() < 0.3:
            c = self.expr("i1", v.shape, 1)
            return [S(f"{v.name} = where({{0}}, {{1}}, {v.name});", [c, e])]
        return [S(f"{v.name} = {{0}};", [e])]

    def store(self, depth):
        r = self.r
        here = [v for v in self.vars]
        dt, shape = self.dtype(), self.shape()
        if here and r.random() < 0.8:
            v = r.choice(here)
            dt, shape, e = v.dt, v.shape, E(v.dt, v.shape, v.name, known=v.known)
        else:
            e = self.expr(dt, shape, 2)
        return self.store_of(e, shape)

    def store_of(self, e, shape):
        """To a buffer of its own: no two elements, programs or turns meet."""
        r = self.r
        order = list(range(len(shape)))
        if r.random() < 0.2:
            r.shuffle(order)
        at, size = self.positions(shape, order)
        turn, turns = "program_id(0)", "GRID"
        for var, top in self.loops:
            turn, turns = f"({turn} * {top} + {var})", f"{turns} * max({top}, 1)"
        if self.whiles:
            return None
        p = self.buffer(e.dt, f"{turns} * ({size})", fresh=True)
        if not p:
            return None
        mask = ""
        if shape and r.random() < 0.3:
            d = r.randrange(len(shape))
            mask = f", mask=arange(0, {shape[d]}){self.index(d, len(shape))} < {r.choice(['n', 'm', '7'])}"
        return [S(f"store({p.name} + {turn} * ({size}) + ({at}), {{0}}{mask});", [e])]

    whiles = 0

    def loop(self, depth):
        r = self.r
        var = self.name("k")
        lo, hi, top = r.choice([("0", "t", "t"), ("0", "t", "t"), ("0", "3", "3"), ("0", "4", "4"), ("0", "1", "1"), ("2", "t", "t"), ("4", "2", "4")])
        most = max(self.value(hi) - int(lo), 0)
        if self.trips * max(most, 1) > 40:
            return None
        stages = r.choice(["", "", ", 1, stages=2", ", 1, stages=3", ", 1, stages=4", ", 1, stages=3"])
        self.loops.append((var, top))
        self.trips *= max(most, 1)
        body = self.block(depth - 1, r.choice([1, 2, 3, 4]))
        self.trips //= max(most, 1)
        self.loops.pop()
        if not stages and r.random() < 0.4:
            self.insert_jump(body, ["break", "continue"])
        return [S(f"for {var} in range({lo}, {hi}{stages})", [], [body])]

    def insert_jump(self, body, words):
        """Out of the loop, or to its next turn; not past the wait for a copy. What it asks for is known before the loop's body."""
        if any("async_" in line for s in body for line in s.lines(0)):
            return
        jump = S("if {0}", [E("i1", (), self.r.choice(["n > 20", "m % 2 == 0", "program_id(0) == 0", "n + program_id(0) > 21"] +
                                                      [f"{v} == 1" for v, _ in self.loops] * 2))], [[S(self.r.choice(words) + ";")]])
        body.insert(self.r.randrange(len(body) + 1), jump)

    def loop_while(self, depth):
        c = self.name("c")
        self.trips *= 3
        self.whiles += 1
        cond = self.expr("i1", (), 1)
        body = self.block(depth - 1, self.r.choice([1, 2, 3]))
        self.whiles -= 1
        self.trips //= 3
        if self.r.random() < 0.4:
            self.insert_jump(body, ["break"])
        more = self.r.choice([True, False])
        return [S(f"var {c} = 0;"), S(f"while {c} < 3 && {{0}}" if more else f"while {c} < 3", [cond] if more else [], [body + [S(f"{c} += 1;")]])]

    def branch(self, depth):
        c = self.expr("i1", (), 2)
        a = self.block(depth - 1, self.r.choice([1, 2]))
        if self.r.random() < 0.5:
            return [S("if {0}", [c], [a])]
        return [S("if {0}", [c], [a, self.block(depth - 1, self.r.choice([1, 2]))])]

    def leave(self, depth):
        """Some programs are done early."""
        if self.loops or self.whiles or depth < 2 or self.r.random() < 0.7:
            return None
        return [S("if {0}", [self.expr("i1", (), 1)], [[S("return;")]])]

    def shared(self, depth):
        """Through a buffer and back, seen otherwise."""
        r = self.r
        dt, shape = self.r.choice([d for d in self.dtypes if d != "i1"]), self.shape()
        e = self.expr(dt, shape, 2)
        s = self.name("s")
        layout = ""
        if len(shape) == 2 and self.power(shape) and self.value(shape[-1]) >= 8 and r.random() < 0.5:
            layout = ", layout=" + r.choice(["swizzled()", "swizzled(vec=2, max_phase=4)", "swizzled(vec=1, per_phase=2, max_phase=4)", "padded(8, 4)"])
        out = [S(f"let {s} = shared({dt}, {self.list_of(shape)}{layout});"), S(f"shared_store({s}, {{0}});", [e])]
        got, kind = shape, f"shared_load({s})"
        if len(shape) > 1 and r.random() < 0.6:
            order = list(range(len(shape)))
            r.shuffle(order)
            got, kind = tuple(shape[o] for o in order), f"shared_load(permute({s}, {order}))"
        elif self.power(shape) and self.value(shape[0]) > 1 and r.random() < 0.6:
            half = str(self.value(shape[0]) // 2)
            start = r.choice(["0", half])
            got = (half,) + shape[1:]
            kind = f"shared_load(view({s}, {self.list_of((start,) + ('0',) * (len(shape) - 1))}, {self.list_of(got)}))"
        v = Var(self.name("v"), dt, got, e.known, False)
        self.vars.append(v)
        out.append(S(f"let {v.name} = {kind};"))
        if r.random() < 0.3:
            out.append(S(f"free({s});"))
        return out

    def ring(self, depth):
        """A row of buffers, and copies that run ahead of their use."""
        r = self.r
        dt = r.choice(["f32", "i32"] + [d for d in ("f16", "bf16") if d in self.dtypes])
        shape = self.shape(r.choice([1, 2]))
        at, size = self.positions(shape)
        rows = r.choice([2, 3, 4])
        promise = 16 if dt in ("f16", "bf16") else 0
        if promise and self.value(shape[-1]) % 8:
            return None
        hi, top = r.choice([("t", "t"), ("3", "3"), ("1", "1"), ("5", "5")])
        p = self.buffer(dt, f"max({top}, 1) * ({size})", fresh=True)
        if not p:
            return None
        p.promise, p.needed = promise or p.promise, promise > 0
        s, k, acc = self.name("s"), self.name("k"), self.name("a")
        full = lambda j: f"broadcast_to({j} < {hi}, {self.list_of(shape)})"
        copy = lambda slot, j: S(f"async_copy({s}[{slot}], {p.name} + ({j}) * ({size}) + ({at}), mask={full(j)});")
        out = [S(f"let {s} = shared({dt}, {self.list_of(shape)}, count={rows});")]
        wide = "f32" if dt in FLOATS else dt
        out.append(S(f"var {acc} = zeros({self.list_of(shape)}, {wide});"))
        for j in range(rows - 1):
            out += [copy(j, str(j)), S("async_commit();")]
        next_ = f"({k} + {rows - 1})"
        body = [S(f"async_wait({rows - 2});"), copy(f"{next_} % {rows}", next_), S("async_commit();"),
                S(f"{acc} += {wide}(shared_load({s}[{k} % {rows}]));")]
        out += [S(f"for {k} in range(0, {hi})", [], [body]), S("async_wait(0);")]
        v = Var(acc, wide, shape, Float(ACC_LSB, ACC_MOST) if wide == "f32" else None, False)
        self.vars.append(v)
        return out

    def walk(self, depth):
        """A pointer that the loop advances, a product that it sums: what pipelining is for."""
        r = self.r
        t = r.choice([d for d in self.dtypes if d in FLOATS] + ["i8", "f16"])
        m, n, k = (r.choice(list(self.k.dims)) for _ in range(3))
        if max(self.numel((m, k)), self.numel((k, n)), self.numel((m, n))) > MAX_ELEMENTS or self.trips * 6 * self.value(k) * 32 * 32 > 2 ** 22:
            return None
        a_at, a_size = self.positions((m, k), r.choice([[0, 1], [0, 1], [1, 0]]))
        b_at, b_size = self.positions((k, n), r.choice([[0, 1], [0, 1], [1, 0]]))
        hi = r.choice(["t", "3", "5"])
        x, y = self.buffer(t, f"max({hi}, 1) * ({a_size})", fresh=True), self.buffer(t, f"max({hi}, 1) * ({b_size})", fresh=True)
        if not x or not y:
            return None
        p, q, acc, j = self.name("p"), self.name("p"), self.name("a"), self.name("k")
        wide = "i32" if t == "i8" else "f64" if t == "f64" else "f32"
        mask = r.choice(["", f", mask=(arange(0, {k}) < n - {j})"])
        am, bm = (mask[:-1] + ")[None, :]", mask[:-1] + ")[:, None]") if mask else ("", "")
        out = [S(f"var {p} = {x.name} + ({a_at});"), S(f"var {q} = {y.name} + ({b_at});"), S(f"var {acc} = zeros([{m}, {n}], {wide});")]
        body = [S(f"{acc} = dot(load({p}{am}), load({q}{bm}), {acc});"), S(f"{p} += {a_size};"), S(f"{q} += {b_size};")]
        if r.random() < 0.5:
            body[0] = S(f"{acc} += dot(load({p}{am}), load({q}{bm}));")
        out.append(S(f"for {j} in range(0, {hi}, 1, stages={r.choice([1, 2, 3, 4])})", [], [body]))
        self.vars.append(Var(acc, wide, (m, n), Float(ACC_LSB, ACC_MOST) if wide != "i32" else None, False))
        return out

    def chain(self, depth):
        """Two products a turn, the second of the first one's result, beside an operand that stays."""
        r = self.r
        t = r.choice([d for d in self.dtypes if d in ("f16", "bf16")] or ["f16"])
        m, n, d = (r.choice(list(self.k.dims)) for _ in range(3))
        if max(self.numel(s) for s in ((m, d), (n, d), (m, n))) > MAX_ELEMENTS or self.trips * self.numel((m, n, d)) > 2 ** 19:
            return None
        hi = r.choice(["t", "3", "4"])
        at = lambda s: self.positions(s)
        (q_at, q_size), (k_at, k_size), (v_at, v_size) = at((m, d)), at((n, d)), at((n, d))
        q = self.buffer(t, q_size, fresh=True)
        k, v = (self.buffer(t, f"max({hi}, 1) * ({size})", fresh=True) for size in (k_size, v_size))
        if not q or not k or not v:
            return None
        acc, low, j, one, two, three = self.name("a"), self.name("a"), self.name("k"), self.name("v"), self.name("v"), self.name("v")
        mask = r.choice(["", f", mask=(arange(0, {n}) < n - {j} * {n})[:, None]"])
        top = r.random() < 0.5
        out = [S(f"let {one} = load({q.name} + ({q_at}));"), S(f"var {acc} = zeros([{m}, {d}], f32);"), S(f"var {low} = full([{m}], 100.0, f32);")]
        body = [S(f"let {two} = dot({one}, trans(load({k.name} + {j} * ({k_size}) + ({k_at}){mask})));"),
                S(f"{low} = min({low}, min({two}, axis=1));") if top else S(f"{low} = min({low}, 50.0);"),
                S(f"let {three} = {t}(min(max(rint({two}), -4.0), 4.0));"),
                S(f"{acc} = dot({three}, load({v.name} + {j} * ({v_size}) + ({v_at}){mask}), {acc});")]
        out.append(S(f"for {j} in range(0, {hi}, 1, stages={r.choice([2, 3, 4])})", [], [body]))
        self.vars.append(Var(acc, "f32", (m, d), Float(ACC_LSB, ACC_MOST), False))
        self.vars.append(Var(low, "f32", (m,), Float(ACC_LSB, ACC_MOST), False))
        return out

    def atomic(self, depth):
        """Orders do not matter: the sum wraps, the old value is not looked at."""
        r = self.r
        dt = r.choice(["i32", "u32", "i64", "u64", "f32"])
        shape = self.shape()
        e = self.expr(dt, shape, 1)
        fn = "add" if dt == "f32" else r.choice(["add", "max", "min", "xor", "or", "and"])
        if dt == "f32":
            if self.trips * self.k.grid * self.numel(shape) * 4 > 2 ** 20:
                return None
            e = self.tame(e)
        p = self.buffer(dt, "8", fresh=True)
        if not p:
            return None
        i = self.expr("i32", shape, 1)
        mask = f", mask={{2}}" if r.random() < 0.4 else ""
        return [S(f"atomic_{fn}({p.name} + ({{1}} & 7), {{0}}{mask});", [e, i] + ([self.expr("i1", shape, 1)] if mask else []))]

    def kernel(self):
        r = self.r
        for _ in range(r.choice([2, 3, 4, 5, 6])):
            self.k.body += self.statement(2)
        stored = 0
        for v in reversed(self.vars[-6:]):
            s = self.store_of(E(v.dt, v.shape, v.name, known=v.known), v.shape)
            if s:
                self.k.body += s
                stored += 1
        return self.k


def generate(seed):
    return Generator(seed).kernel()


if __name__ == "__main__":
    print(generate(int(sys.argv[1])).text(), end="")
