"""Persistent kernels through the JIT: fewer programs than tiles, on a simulator of few multiprocessors, and more."""
import os
from cases import Case, Run, few, fp8_bits, launch, poisoned
import numpy as np
import tilec

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def rows(dev, rng, x, y, z, n, stay):
    """A grid of three dimensions, programs that return early, sums across warps."""
    text = """kernel f(x: *f32, y: *f32, n: i32, const STAY = true) warps(4) persistent(STAY) {
      let at = (program_id(2) * num_programs(1) + program_id(1)) * num_programs(0) + program_id(0);
      if at % 3 == 1 { return; }
      let i = arange(0, 256);
      let v = load(x + at * n + i, mask=i < n);
      store(y + at * n + i, v - sum(v) + f32(program_id(0) + 10 * program_id(1) + 100 * program_id(2)), mask=i < n);
    }"""
    dev, all = few(dev), x * y * z
    a, out = rng.integers(-8, 9, (all, n)).astype(np.float32), dev.array(np.full((all, n), -1, np.float32))
    call = launch(dev.program(text=text, name="case.tile").kernel("f", STAY=stay), (x, y, z), dev.array(a), out, n)
    want = a - a.sum(1, keepdims=True)
    want += np.array([i + 10 * j + 100 * k for k in range(z) for j in range(y) for i in range(x)], np.float32)[:, None]
    want[np.arange(all) % 3 == 1] = -1
    return Run(call, [("y", out.numpy(), want, 0)])


def product(dev, rng, m, n, k, stay, stages, warps=8, bn=256):
    """examples/matmul.tile with the clause: a team copies, and is ahead over the ends of tiles."""
    dev = few(dev)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = poisoned(dev, (m, n), "f16")
    kernel = dev.program(os.path.join(EXAMPLES, "matmul.tile")).kernel("matmul", STAY=stay, BM=128, BN=bn, BK=64, STAGES=stages, warps=warps)
    call = launch(kernel, tilec.cdiv(m, 128) * tilec.cdiv(n, bn), dev.array(a), dev.array(b), c, m, n, k, k, 1, n, 1, n, 1)
    want = a.astype(np.float32) @ b.astype(np.float32)
    return Run(call, [("c", c.numpy(), want.astype(np.float16), 4e-3)])


def promoted(dev, rng, m, n, k, bm, bn, stay, stages, promote=128):
    """Products of 8-bit floats with more sums than a thread can make beside as many others; whole numbers, so all ways of adding agree."""
    dev = few(dev)
    (a, va), (b, vb) = ((fp8_bits(v.astype(np.float32), "f8e4m3"), v) for v in (rng.integers(-2, 3, s) for s in ((m, k), (n, k))))
    c = poisoned(dev, (m, n), "f32")
    kernel = dev.program(os.path.join(EXAMPLES, "matmul.tile")).kernel("matmul", T="f8e4m3", TO="f32", STAY=stay, BM=bm, BN=bn, BK=128, STAGES=stages,
                                                                        PROMOTE=promote, warps=8)
    call = launch(kernel, tilec.cdiv(m, bm) * tilec.cdiv(n, bn), dev.array(a, "f8e4m3"), dev.array(b, "f8e4m3"), c, m, n, k, k, 1, 1, k, n, 1)
    return Run(call, [("c", c.numpy(), (va @ vb.T).astype(np.float32), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("persistent rows", rows, [dict(x=x, y=y, z=z, n=n, stay=s) for x, y, z in ((70, 1, 1), (7, 5, 3), (1, 1, 1), (1, 300, 1))
                                   for n, s in ((200, "true"), (256, "1"))] + [dict(x=7, y=5, z=3, n=100, stay="false")]),
    both("persistent product", product, [dict(m=500, n=760, k=192, stay="true", stages=3), dict(m=300, n=520, k=40, stay="1", stages=4),
                                         dict(m=500, n=300, k=136, stay="true", stages=3, warps=4, bn=128),
                                         dict(m=130, n=264, k=8, stay="2", stages=2), dict(m=200, n=333, k=77, stay="true", stages=3, bn=128)]),    both("persistent promoted", promoted, [dict(m=300, n=520, k=400, bm=128, bn=256, stay="true", stages=4), dict(m=300, n=520, k=400, bm=256, bn=128, stay="true", stages=4),
                                           dict(m=128, n=256, k=640, bm=128, bn=256, stay="false", stages=4),
                                           dict(m=200, n=256, k=272, bm=128, bn=256, stay="true", stages=3, promote=64)]),
]
