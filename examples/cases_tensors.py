"""Examples that take tensors: their inputs and what must come out (cases.py)."""
import numpy as np

import tilec
from cases import Case, Run, grid, kernel, launch, poisoned


def halves(rng, *shape):
    return rng.standard_normal(shape, np.float32).astype(np.float16)


def copy_line(dev, rng, n, BLOCK=1024):
    x, y = rng.standard_normal(n, np.float32), poisoned(dev, n, "f32")
    call = launch(kernel(dev, "memcpy_tma.tile", "copy_line", BLOCK=BLOCK), tilec.cdiv(n, BLOCK), dev.array(x), y)
    return Run(call, [("y", y.numpy(), x, 0)], bytes=2 * x.nbytes)


def copy_boxes(dev, rng, m, n, BM=64, BN=128):
    a, b = halves(rng, m, n), poisoned(dev, (m, n), "f16")
    call = launch(kernel(dev, "memcpy_tma.tile", "copy_boxes", BM=BM, BN=BN), (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(a), b)
    return Run(call, [("b", b.numpy(), a, 0)], bytes=2 * a.nbytes)


def transpose(dev, rng, m, n, BLOCK=64):
    a, b = halves(rng, m, n), poisoned(dev, (n, m), "f16")
    call = launch(kernel(dev, "transpose_tma.tile", "transpose_tma", BLOCK=BLOCK), (tilec.cdiv(m, BLOCK), tilec.cdiv(n, BLOCK)), dev.array(a), b)
    return Run(call, [("b", b.numpy(), a.T, 0)], bytes=2 * a.nbytes)


def matmul(dev, rng, m, n, k, BM=128, BN=128, **defines):
    a, b, c = halves(rng, m, k), halves(rng, k, n), poisoned(dev, (m, n), "f32")
    call = launch(kernel(dev, "matmul_tma.tile", "matmul_tma", BM=BM, BN=BN, **defines), (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(a),
                  dev.array(b), c)
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 1e-5)], flops=2 * m * n * k)


CASES = [
    Case("memcpy_tma", copy_line, [dict(n=5000), dict(n=1), dict(n=777, BLOCK=256)], [dict(n=1 << 27), dict(n=12345679), dict(n=1)]),
    Case("memcpy_tma_boxes", copy_boxes, [dict(m=200, n=264), dict(m=1, n=8)] + grid(m=(70,), n=(200,), BM=(32, 128), BN=(32, 64)),
         [dict(m=16384, n=16384), dict(m=1000, n=2008)] + grid(m=(1000,), n=(520,), BM=(32, 128), BN=(32, 64))),
    Case("transpose_tma", transpose, [dict(m=200, n=264), dict(m=8, n=8)] + grid(m=(72,), n=(104,), BLOCK=(32, 128)),
         [dict(m=16384, n=16384), dict(m=1000, n=2008)] + grid(m=(1000,), n=(520,), BLOCK=(32, 128))),
    Case("matmul_tma", matmul, [dict(m=128, n=128, k=128)] + grid(m=(100,), n=(72,), k=(24, 136, 200), BM=(64,), BN=(64,), STAGES=(2, 3), WARPS=(4, 8)),
         grid(m=(4096,), n=(4096,), k=(4096,), STAGES=(3, 4)) + [dict(m=1000, n=520, k=776)]),
]
