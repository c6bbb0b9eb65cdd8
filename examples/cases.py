"""The examples' runs: what sizes, what arguments, what the right answer is. scripts/demo.py and tests/kernels/run.py read it.

A case is a function of (dev, rng, **size) that runs one example and returns a Run: arrays got and wanted, the relative
error allowed (Frobenius norm; 0: bit for bit), and the bytes or operations of the problem. CASES lists them with the sizes
to use on the simulator and on a GPU.
"""
import os
from dataclasses import dataclass, field

import numpy as np

import tilec

here = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Run:
    call: object                       # the bound launch, for timing and info
    checks: list                       # (what, got, want, tolerance)
    bytes: int = 0
    flops: int = 0


def kernel(dev, file, name, **defines):
    return dev.program(os.path.join(here, file)).kernel(name, **defines)


def launch(k, grid, *args):
    call = k.bind(grid, *args)
    call()
    return call


def poisoned(dev, shape, dtype):
    """Output memory that shows whether every element was written."""
    a = dev.empty(shape, dtype)
    a.fill_bytes(0xFF)
    return a


def bf16_bits(a):
    u = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def vector_add(dev, rng, n, BLOCK=1024):
    x, y = rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)
    out = poisoned(dev, n, "f32")
    call = launch(kernel(dev, "vector_add.tile", "add", BLOCK=BLOCK), tilec.cdiv(n, BLOCK), dev.array(x), dev.array(y), out, n)
    return Run(call, [("out", out.numpy(), x + y, 0)], bytes=12 * n)


def softmax_reference(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax(dev, rng, rows, n, persistent=False, warps=4, stages=1):
    x = rng.standard_normal((rows, n), np.float32) * 3
    out = poisoned(dev, (rows, n), "f32")
    more = {"STAGES": stages} if persistent else {}
    k = kernel(dev, "softmax.tile", "softmax_persistent" if persistent else "softmax", BLOCK=1 << (n - 1).bit_length(), warps=warps, **more)
    grid = min(rows, dev.sms * 8) if persistent else rows
    call = launch(k, grid, dev.array(x), out, rows, n, n)
    return Run(call, [("out", out.numpy(), softmax_reference(x), 1e-6)], bytes=8 * rows * n)


def layer_norm(dev, rng, rows, n, warps=4):
    x = (rng.standard_normal((rows, n), np.float32) * 2 + 1).astype(np.float16)
    w, b = rng.standard_normal(n, np.float32).astype(np.float16), rng.standard_normal(n, np.float32).astype(np.float16)
    out = poisoned(dev, (rows, n), "f16")
    k = kernel(dev, "layer_norm.tile", "layer_norm", BLOCK=1 << (n - 1).bit_length(), warps=warps)
    call = launch(k, rows, dev.array(x), dev.array(w), dev.array(b), out, n, n, 1e-5)
    v = x.astype(np.float64)
    v = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    return Run(call, [("out", out.numpy(), v * w.astype(np.float64) + b, 1e-3)], bytes=4 * rows * n)


def transpose(dev, rng, m, n, BM=64, BN=64):
    x = rng.standard_normal((m, n), np.float32)
    out = poisoned(dev, (n, m), "f32")
    call = launch(kernel(dev, "transpose.tile", "transpose", BM=BM, BN=BN), (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(x), out, m, n)
    return Run(call, [("out", out.numpy(), x.T, 0)], bytes=8 * m * n)


def matmul(dev, rng, m, n, k, dtype="f16", a_t=False, b_t=False, BM=128, BN=128, BK=32, STAGES=3):
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    narrow = {"f16": lambda v: v.astype(np.float16), "bf16": bf16_bits, "f32": lambda v: v}[dtype]
    value = {"f16": lambda v: v.astype(np.float64), "bf16": lambda v: bf16_values(v).astype(np.float64), "f32": lambda v: v.astype(np.float64)}[dtype]
    a, b = narrow(a), narrow(b)
    da, db = dev.array(a.T if a_t else a, dtype), dev.array(b.T if b_t else b, dtype)
    c = poisoned(dev, (m, n), "f32")
    kern = kernel(dev, "matmul.tile", "matmul", T=dtype, TO="f32", BM=BM, BN=BN, BK=BK, STAGES=STAGES)
    call = launch(kern, tilec.cdiv(m, BM) * tilec.cdiv(n, BN), da, db, c, m, n, k,
                  *((1, m) if a_t else (k, 1)), *((1, k) if b_t else (n, 1)), n, 1)
    return Run(call, [("c", c.numpy(), value(a) @ value(b), 1e-3 if dtype == "f32" else 1e-5)], flops=2 * m * n * k)


def attention(dev, rng, heads, S, D=64, causal=False, BM=128, BN=64, STAGES=2, warps=4):
    q, k, v = (rng.standard_normal((heads, S, D), np.float32).astype(np.float16) for _ in range(3))
    o = poisoned(dev, (heads, S, D), "f16")
    kern = kernel(dev, "attention.tile", "attention", D=D, BM=BM, BN=BN, STAGES=STAGES, CAUSAL=str(causal).lower(), warps=warps)
    call = launch(kern, (tilec.cdiv(S, BM), heads), dev.array(q), dev.array(k), dev.array(v), o, S, D ** -0.5)
    want = np.empty((heads, S, D))
    for h in range(heads):
        s = q[h].astype(np.float64) @ k[h].astype(np.float64).T * D ** -0.5
        if causal:
            s[np.triu_indices(S, 1)] = -np.inf
        e = np.exp(s - s.max(1, keepdims=True))
        want[h] = e / e.sum(1, keepdims=True) @ v[h].astype(np.float64)
    return Run(call, [("o", o.numpy(), want, 2e-3)], flops=4 * heads * S * S * D // (2 if causal else 1))


def reduce_sum(dev, rng, n, BLOCK=1024):
    x = rng.standard_normal(n, np.float32)
    total, largest = dev.array(np.zeros(1, np.float32)), dev.array(np.full(1, -np.inf, np.float32))
    call = kernel(dev, "reduce_sum.tile", "reduce_sum", BLOCK=BLOCK).bind(tilec.cdiv(n, BLOCK), dev.array(x), total, n)
    call()
    got = total.numpy()
    return Run(call, [("sum", got, np.array([x.astype(np.float64).sum()]), 1e-3 if abs(got[0]) < 100 else 1e-4)], bytes=4 * n)


def memcpy_async(dev, rng, n, BLOCK=1024):
    x = rng.standard_normal(n, np.float32)
    out = poisoned(dev, n, "f32")
    call = launch(kernel(dev, "memcpy_async.tile", "memcpy", BLOCK=BLOCK), tilec.cdiv(n, BLOCK), dev.array(x), out, n)
    return Run(call, [("out", out.numpy(), x, 0)], bytes=8 * n)


def add_async(dev, rng, rows, cols, name="add_async", BM=32, BN=64, **defines):
    a, b = rng.standard_normal((rows, cols), np.float32), rng.standard_normal((rows, cols), np.float32)
    c = poisoned(dev, (rows, cols), "f32")
    k = kernel(dev, "add_async.tile", name, BM=BM, BN=BN, **defines)
    call = launch(k, tilec.cdiv(rows, BM), dev.array(a), dev.array(b), c, rows, cols, cols)
    return Run(call, [("c", c.numpy(), a + b, 0)], bytes=12 * rows * cols)


def matmul_shared(dev, rng, m, n, k, name="matmul_shared", BM=128, BN=128, **defines):
    a, b = rng.standard_normal((m, k), np.float32).astype(np.float16), rng.standard_normal((k, n), np.float32).astype(np.float16)
    c = poisoned(dev, (m, n), "f32")
    kern = kernel(dev, "matmul_shared.tile", name, BM=BM, BN=BN, **defines)
    call = launch(kern, (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(a), dev.array(b), c, m, n, k)
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 1e-5)], flops=2 * m * n * k)


PACKED = {"i4": np.arange(16) - 16 * (np.arange(16) > 7), "u4": np.arange(16), "i2": np.array([0, 1, -2, -1]), "i8": np.arange(256).astype(np.int8),
          "f4e2m1": np.array([0, .5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -.5, -1, -1.5, -2, -3, -4, -6])}


def unpacked(words, format):
    """The numbers in rows of u32 words, as float64."""
    bits = len(PACKED[format]).bit_length() - 1
    fields = words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    return PACKED[format][fields.reshape(words.shape[0], -1)].astype(np.float64)


def matmul_w4(dev, rng, m, n, k, W="i4", GROUP=128, **defines):
    per = 32 // (len(PACKED[W]).bit_length() - 1)
    a = rng.standard_normal((m, k), np.float32).astype(np.float16)
    w = rng.integers(0, 1 << 32, (n, k // per), dtype=np.uint32)
    s = (rng.random((n, k // GROUP)) / 8).astype(np.float16)
    c = poisoned(dev, (m, n), "f32")
    kern = kernel(dev, "matmul_w4.tile", "matmul_w4", TO="f32", W=W, GROUP=GROUP, **defines)
    d = kern.settings()
    call = launch(kern, tilec.cdiv(m, int(d["BM"])) * tilec.cdiv(n, int(d["BN"])), dev.array(a), dev.array(w), dev.array(s), c, m, n, k)
    values = (unpacked(w, W) * np.repeat(s, GROUP, axis=1).astype(np.float64)).astype(np.float16)   # one product of f16 numbers
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ values.T.astype(np.float64), 1e-5)], bytes=4 * w.size + 2 * m * k + 4 * m * n, flops=2 * m * n * k)


def grid(**axes):
    """All combinations: grid(a=(1, 2), b=(3,)) -> [{a: 1, b: 3}, {a: 2, b: 3}]."""
    out = [{}]
    for name, values in axes.items():
        out = [{**o, name: v} for o in out for v in values]
    return out


@dataclass
class Case:
    name: str
    run: object
    sim: list = field(default_factory=list)   # sizes for the simulator; the first is the demo's
    gpu: list = field(default_factory=list)   # sizes for a GPU; the first is the demo's


CASES = [
    Case("vector_add", vector_add, [dict(n=98432), dict(n=1), dict(n=1000)], [dict(n=1 << 27), dict(n=98432), dict(n=1)]),
    Case("softmax", softmax, [dict(rows=1823, n=781), dict(rows=3, n=1), dict(rows=5, n=256, warps=1), dict(rows=4, n=4096, warps=8)],
         [dict(rows=1823, n=781)] + grid(rows=(8192,), n=(256, 781, 1024, 2048, 4096, 8192, 16384), warps=(4, 8))),
    Case("softmax_persistent", lambda dev, rng, **s: softmax(dev, rng, persistent=True, **s), 
         [dict(rows=300, n=781), dict(rows=1823, n=128), dict(rows=300, n=781, stages=3), dict(rows=1823, n=128, stages=2)],
         [dict(rows=1823, n=781)] + grid(rows=(8192,), n=(256, 4096, 16384))),
    Case("layer_norm", layer_norm, [dict(rows=512, n=1024), dict(rows=7, n=781), dict(rows=3, n=4096, warps=8)],
         grid(rows=(8192,), n=(1024, 4096, 8192, 16384, 781), warps=(8, 4))),
    Case("transpose", transpose, [dict(m=1280, n=640), dict(m=77, n=130), dict(m=64, n=64, BM=32, BN=32)], [dict(m=12800, n=12800), dict(m=77, n=12801)]),
    Case("matmul", matmul, [dict(m=256, n=256, k=256)] + grid(m=(100,), n=(72,), k=(50,), dtype=("f16", "bf16", "f32"), a_t=(False, True), b_t=(False, True), BM=(64,), BN=(64,)),
         [dict(m=4096, n=4096, k=4096)] + grid(m=(1000,), n=(520,), k=(777,), dtype=("f16", "bf16", "f32"), a_t=(False, True), b_t=(False, True))),
    Case("memcpy_async", memcpy_async, [dict(n=98432), dict(n=1), dict(n=1000, BLOCK=256)], [dict(n=1 << 27), dict(n=98432), dict(n=1)]),
    Case("add_plain", lambda dev, rng, **s: add_async(dev, rng, name="add_plain", **s), [dict(rows=100, cols=200)], [dict(rows=16384, cols=16384), dict(rows=1000, cols=2000)]),
    Case("add_async", add_async, [dict(rows=100, cols=200)] + grid(rows=(40,), cols=(200,), S=("swizzled(vec=4, max_phase=8)", "padded(every=64, pad=4)"), L=("blocked(size=[1, 4], threads=[2, 16], warps=[4, 1])",)),
         [dict(rows=16384, cols=16384), dict(rows=1000, cols=2000)]),
    Case("add_pipelined", lambda dev, rng, **s: add_async(dev, rng, name="add_pipelined", **s),
         grid(rows=(100,), cols=(520, 24), BUFFERS=(1, 2, 3)), grid(rows=(16384,), cols=(16384,), BUFFERS=(2, 3, 4)) + grid(rows=(1000, 4000), cols=(2000, 120), BUFFERS=(1, 2, 3))),
    Case("matmul_shared", matmul_shared, [dict(m=128, n=128, k=64)] + grid(m=(100,), n=(72,), k=(56,), BM=(64,), BN=(64,), warps=(4,)), [dict(m=4096, n=4096, k=4096), dict(m=1000, n=520, k=776)]),
    Case("matmul_pipelined", lambda dev, rng, **s: matmul_shared(dev, rng, name="matmul_pipelined", **s),
         [dict(m=128, n=128, k=128)] + grid(m=(100,), n=(72,), k=(24, 136), BM=(64,), BN=(64,), STAGES=(2, 3, 4), warps=(4,)),
         grid(m=(4096,), n=(4096,), k=(4096,), STAGES=(3, 4)) + [dict(m=1000, n=520, k=776)]),
    Case("matmul_w4", matmul_w4, [dict(m=64, n=256, k=256)] + grid(m=(40,), n=(72,), k=(192,), W=("i4", "u4", "i2", "i8", "f4e2m1"), GROUP=(64,), BM=(32,), BN=(64,), BK=(64,)) +
         grid(m=(16,), n=(64,), k=(128,), BM=(16,), BN=(64,), BK=(128,), STAGES=(1, 2)), [dict(m=4096, n=4096, k=4096), dict(m=16, n=4096, k=4096, BM=16, BN=128, BK=128)] +
         grid(m=(1000,), n=(520,), k=(768,), W=("i4", "u4", "i2", "i8", "f4e2m1"), GROUP=(128,))),
    Case("attention", attention, [dict(heads=2, S=256)] + grid(heads=(1,), S=(200, 64), D=(64, 128), causal=(False, True), BM=(64,), BN=(32,)),
         [dict(heads=32, S=4096)] + grid(heads=(3,), S=(1000, 1024), D=(64, 128), causal=(False, True))),
    Case("reduce_sum", reduce_sum, [dict(n=98432), dict(n=1000)], [dict(n=1 << 27), dict(n=12345)]),
]


def error(got, want, tol):
    """Relative error by norms (nan never passes); with tolerance 0 the count of differing elements."""
    if got.shape != want.shape:
        return float("inf")
    if tol == 0:
        return float(np.count_nonzero(got != want))
    g, w = got.astype(np.float64), want.astype(np.float64)
    e = np.linalg.norm((g - w).ravel()) / max(np.linalg.norm(w.ravel()), 1e-30)
    return float("inf") if np.isnan(e) else float(e)


def passed(checks):
    return all(error(g, w, t) <= t for _, g, w, t in checks)
