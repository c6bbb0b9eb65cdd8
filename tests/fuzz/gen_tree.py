"""What a random kernel is: a tree of statements and expressions over a few parameters and named extents. gen_kernel.py makes them,
shrink.py makes them smaller."""
import os
import random
import re

FLOATS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}
INTS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
F8 = ("f8e4m3", "f8e5m2")
MOST = {"f32": 2.0 ** 40, "f16": 2.0 ** 15, "bf16": 2.0 ** 40, "f64": 2.0 ** 40}
MAX_ELEMENTS = 8192
ACC_LSB, ACC_MOST = -6, 2.0 ** 16      # of sums in f32


def helpers():
    """helpers.tile: {name: text of its declaration}, in order."""
    found = {}
    for part in re.split(r"^(?=fn |struct )", open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers.tile")).read(), flags=re.M)[1:]:
        text = re.sub(r"^//.*\n?", "", part, flags=re.M).strip()
        found[re.match(r"\w+ (\w+)", text).group(1)] = text
    return found


HELPERS = helpers()


def named(text):
    """The helpers that text needs, and those that they need."""
    got = set()
    while more := {n for n in HELPERS if n not in got and re.search(rf"\b{n}\b", text)}:
        got |= more
        text += "\n".join(HELPERS[n] for n in more)
    return [HELPERS[n] for n in HELPERS if n in got]


class Float:
    """Of a float: a multiple of 2^lsb of at most `most`. lsb None: rounded, or if most is infinite any bits at all."""

    def __init__(self, lsb, most):
        self.lsb, self.most = lsb, most

    def fits(self, dt):
        return self.lsb is not None and self.most <= MOST[dt] and self.most / 2.0 ** self.lsb <= 2.0 ** FLOATS[dt] and self.lsb >= -14

    def wild(self):
        return self.most == float("inf")


WILD = Float(None, float("inf"))


class E:
    """text with {0}, {1} for the kids; known: of a float, what is known."""

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
    """A buffer (sizes: expressions over extents and scalars, the largest counts) or a scalar with its value."""

    def __init__(self, name, dt, value=None, below=0, bits=False, promise=0):
        self.name, self.dt, self.sizes, self.value, self.below, self.bits, self.promise = name, dt, [], value, below, bits, promise
        self.needed = False      # the promise: without it the kernel is wrong

    def declare(self):
        promise = f" multiple_of({self.promise})" if self.promise else ""
        return f"{self.name}: {'*' if self.value is None else ''}{self.dt}{promise}"

    def comment(self, names):
        if self.value is not None:
            return f"// int {self.value}"
        n = max([1] + [eval(s, {}, names) for s in self.sizes])
        return f"// index {self.dt} {n} {self.below}" if self.below else f"// {'bits' if self.bits else 'buffer'} {self.dt} {n}"


class Var:
    def __init__(self, name, dt, shape, known, mutable=False):
        self.name, self.dt, self.shape, self.known, self.mutable = name, dt, shape, known, mutable
        self.used = 0.0          # of an accumulator's room

    def read(self):
        return E(self.dt, self.shape, self.name, known=self.known)


class Kernel:
    def __init__(self, seed, dims, warps, grid):
        self.seed, self.dims, self.warps, self.grid = seed, dims, warps, grid
        r = random.Random(f"persistent {seed}")      # one kernel in five is persistent, if it may be
        self.persistent = r.choice(["true", "1", "2"]) if r.random() < 0.2 else None
        if self.persistent:
            self.grid = r.choice([1, 2, 3, 5, 7])
        self.params, self.body = [], []

    def names(self):
        return {**self.dims, **{p.name: p.value for p in self.params if p.value is not None}, "GRID": self.grid}

    def stays(self, body):
        """Its clause, unless it may wait for others. A `for` that is left early is a `while`, too."""
        left = "for " in body and ("return" in body or "break" in body)
        waits = ("while" in body or left) and ("atomic" in body or "volatile" in body)
        return f" persistent({self.persistent})" if self.persistent and not waits and "specialize" not in body else ""

    def text(self, ptx=False):
        """The .tile file. With ptx the instructions are what it does if nothing else is said."""
        names = self.names()
        body = "\n".join(line for s in self.body for line in s.lines(1))
        by_ptx = "PTX" in body
        consts = [f"const {d} = {v}" for d, v in self.dims.items()] + [f"const PTX = {'true' if ptx else 'false'}"] * by_ptx
        head = [f"// seed {self.seed}", f"// grid {self.grid}"] + [p.comment(names) for p in self.params] + ["// compiled PTX true"] * by_ptx
        kernel = f"kernel k({', '.join([p.declare() for p in self.params] + consts)}) warps({self.warps}){self.stays(body)} {{"
        return "\n".join(head + named(body) + [kernel, body, "}", ""])
