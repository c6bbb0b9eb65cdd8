"""Products of weights of a few bits by warpgroups (matmul_w4_wgmma.tile); against float64."""
import cases
from cases import Case, Run, grid, kernel, launch, poisoned
import numpy as np
import tilec

FILE = "matmul_w4_wgmma.tile"


def in_order(dev, w, s, z, n, k, W, bits, dtype):
    """Weights and scales as the products take them, by the kernels that put them in order."""
    p = poisoned(dev, (tilec.cdiv(n, 64), tilec.cdiv(k, 64) * 4, 32 * bits), "u32")
    launch(kernel(dev, FILE, "reorder_w4", W=W), (p.shape[0], p.shape[1] // 4), dev.array(w), p, n, k)
    groups, padded = s.shape[1], tilec.cdiv(n, 8) * 8
    o = poisoned(dev, (groups, 1 if z is None else 2, padded), dtype)
    given = [None if a is None else dev.array(a, dtype) for a in (s, z)]
    launch(kernel(dev, FILE, "reorder_scales", T=dtype), (tilec.cdiv(padded, 128), groups), *given, o, n, groups, padded)
    return p, o


def matmul_w4(dev, rng, m, n, k, W="u4", GROUP=128, zeros=False, dtype="f16", between=0, programs=None, split=None, **defines):
    bits = len(cases.PACKED[W]).bit_length() - 1
    narrow, wide = cases.NARROW[dtype], cases.WIDE[dtype]
    x = narrow(rng.standard_normal((m, k), np.float32))
    w = rng.integers(0, 1 << 32, (n, k * bits // 32), dtype=np.uint32)
    s = narrow((rng.random((n, tilec.cdiv(k, GROUP))) / 8).astype(np.float32))
    z = narrow(rng.integers(0, 16, s.shape).astype(np.float32)) if zeros else None
    p, o = in_order(dev, w, s, z, n, k, W, bits, dtype)
    c = cases.rows_apart(dev, np.empty((m, n), np.dtype(tilec.DTYPES[dtype])), dtype, between, empty=True)
    name = "matmul_w4_split" if split else "matmul_w4_wgmma"
    more = dict(SPLIT=split) if split else {}
    kern = kernel(dev, FILE, name, T=dtype, TO=dtype, W=W, GROUP=GROUP, ZEROS=str(zeros).lower(), **more, **defines)
    tiles = (tilec.cdiv(n, 256) * split, tilec.cdiv(m, int(kern.settings()["BM"]))) if split else programs or dev.sms
    call = launch(kern, tiles, cases.rows_apart(dev, x, dtype, between)[0], p, o, c[0])
    spread = lambda a: np.repeat(wide(a), GROUP, axis=1)[:, :k]
    values = wide(narrow((cases.unpacked(w, W) - (spread(z) if zeros else 0)) * spread(s)))
    return Run(call, [("c", wide(c[1]()), wide(x) @ values.T, cases.ROUNDING[dtype]), cases.untouched(c[1])], bytes=4 * w.size + 2 * m * k + 2 * m * n,
               flops=2 * m * n * k, dtype=dtype)


small = dict(BM=64, STAGES=3)

CASES = [
    Case("matmul_w4_wgmma", matmul_w4, [dict(m=70, n=200, k=264, programs=2, **small), dict(m=300, n=136, k=128, programs=1), dict(m=5, n=72, k=72, BM=8, between=3, programs=1)] +
         grid(m=(40,), n=(136,), k=(192,), W=("u4", "i4", "i2", "i8", "f4e2m1"), GROUP=(64,), BM=(64,), zeros=(True,), programs=(1,)) +
         [dict(m=20, n=64, k=256, GROUP=32, BM=32, BK=128, STAGES=3, zeros=True, programs=1), dict(m=20, n=64, k=256, BM=32, dtype="bf16", zeros=True, programs=1)],
         [dict(m=4096, n=4096, k=4096), dict(m=4096, n=4096, k=4096, W="i8"), dict(m=4096, n=4096, k=4096, zeros=True, GROUP=64)] +
         grid(m=(1000,), n=(520,), k=(776,), W=("u4", "i4", "i2", "i8", "f4e2m1"), between=(3,), dtype=("f16", "bf16"))),
    Case("matmul_w4_split", matmul_w4, [dict(m=5, n=264, k=520, split=2, BK=64, STAGES=4), dict(m=20, n=72, k=1096, split=4, zeros=True), dict(m=3, n=72, k=64, split=1, BM=8, W="i8", between=3)],
         [dict(m=m, n=4096, k=4096, split=8, BM=max(8, m), zeros=True) for m in (1, 16, 64)] + [dict(m=16, n=520, k=1096, split=4, W="i8", between=3)]),
]
