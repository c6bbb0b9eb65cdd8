"""Random kernels: well-typed, without undefined behaviour, and with results that do not depend on any order of evaluation.

generate(seed) gives a Kernel: a tree of statements and expressions (gen_tree.py), whose text() is a .tile file with the comments that
tests/diff/check_kernel reads. The tree is what the shrinker (shrink.py) works on.

Types direct everything: expr(dtype, shape, depth) picks among the ways there are to make such a value. Integers wrap, so any
operation on them is exact; divisors are never 0. Floats carry what is known of them, Float(lsb, most): every value is a multiple
of 2^lsb and at most `most` in size. An operation is used only where its result fits the format's mantissa, so that nothing is
ever rounded and sums and products are the same in any order; where it would not fit, the operands are tamed first (rounded
to integers, clamped). Correctly rounded operations (division, sqrt, narrowing) may end in something inexact; its lsb is None,
and it can only be compared, chosen, stored or tamed. So can wild floats, any bits at all, infinities and nans among them: `most` is infinite.
Extents are named constants of the kernel, so they can shrink later, and sizes of buffers are expressions over them.

What ways there are: gen_memory.py (buffers, loads), gen_values.py (element by element, functions), gen_tiles.py (shapes, folds, products, the
library), gen_flow.py (statements). python gen_kernel.py SEED prints a kernel."""
import random
import sys

from gen_flow import Flow
from gen_memory import Memory
from gen_tiles import Tiles
from gen_tree import FLOATS, INTS, Kernel, Param
from gen_values import Values

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 16, 16, 20, 24, 32, 32, 32, 33, 48, 64, 64]


class Generator(Memory, Values, Tiles, Flow):
    whiles = staged = 0          # of the loops around: how many are `while`, how many may not be left
    trips = 1                    # how often the statement at hand happens

    def __init__(self, seed):
        self.r = r = random.Random(seed)
        ragged = r.random() < 0.4
        pool = [e for e in EXTENTS if ragged or e & (e - 1) == 0]
        dims = {f"D{i}": r.choice(pool) for i in range(r.choice([1, 2, 2, 3, 3]))}
        if r.random() < 0.1:
            dims["D0"] = r.choice([100, 128, 256, 300, 1000, 1024] if ragged else [128, 256, 1024, 2048])
        if r.random() < 0.4:      # extents that tensor cores like
            dims = {d: r.choice([16, 32, 32, 64, 64, 128]) for d in dims}
        self.k = Kernel(seed, dims, r.choice([1, 2, 4, 4, 4, 8]), r.choice([1, 1, 2, 3]))
        for name, top in (("n", 40), ("m", 40), ("t", 5)):
            v = r.randint(0 if name == "t" else 1, top)
            self.k.params.append(Param(name, "i32", value=v, promise=r.choice([0, 0, 8, 16]) if v % 16 == 0 and v else 0))
        self.vars, self.loops, self.fresh = [], [], 0
        self.dtypes = r.sample(["f32", "f16", "bf16", "f32", "f16", "bf16", "f64"], r.choice([1, 2, 3])) + r.sample(list(INTS), r.choice([1, 2, 3])) + ["i32", "i1"]

    def dtype(self):
        return self.r.choice(self.dtypes)

    def load_way(self, dt, shape, depth):
        return self.load(dt, shape, depth)

    def leafy(self, dt, shape, depth):
        return self.leaf(dt, shape)

    def expr(self, dt, shape, depth):
        if depth <= 0:
            return self.leaf(dt, shape)
        ways = [self.leafy, self.select, self.minmax, self.cast, self.rebits, self.op, self.op, self.op, self.op, self.op, self.helped, self.applied]
        if shape:
            ways += [self.load_way, self.load_way, self.broadcast, self.reduce_tile, self.permute, self.reshape, self.along, self.along, self.pieces,
                     self.pieces, self.pieces, self.library, self.by_ptx, self.mapped]
            ways += [self.packed] if dt != "i1" else []
        else:
            ways += [self.reduce_all, self.reduce_all, self.library]
        if len(shape) > 1 and dt in ("f32", "i32", "f16", "f64"):
            ways += [self.dot, self.dot]
        if dt in FLOATS:
            ways += [self.rounded, self.widened] if shape else [self.rounded]
        for _ in range(4):
            e = self.r.choice(ways)(dt, shape, depth)
            if e:
                return e
        return self.leaf(dt, shape)

    def kernel(self):
        for _ in range(self.r.choice([2, 3, 4, 5, 6])):
            self.k.body += self.statement(2)
        for v in reversed(self.vars[-6:]):
            self.k.body += self.store_of(v.read()) or []
        return self.k


def generate(seed):
    return Generator(seed).kernel()


if __name__ == "__main__":
    print(generate(int(sys.argv[1])).text(), end="")
