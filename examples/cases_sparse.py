"""2:4 sparsity (matmul_sparse.tile): what is kept and how it is compressed, bit for bit; products against float64."""
import itertools

import cases
from cases import Case, Run, grid, kernel, launch, poisoned
import numpy as np
import tilec

FILE = "matmul_sparse.tile"
PAIRS = list(itertools.combinations(range(4), 2))
# The ways to keep two of every row and column of 4 x 4, as masks.
TILES = np.array([[[c in p for c in range(4)] for p in rows] for rows in itertools.product(PAIRS, repeat=4)])
TILES = TILES[(TILES.sum(1) == 2).all(1)]


def numbers(rng, shape, dtype):
    """Elements as they lie in memory, and their values; some are equal, many zeros."""
    if dtype in ("i8", "u8"):
        x = rng.integers(-128 if dtype == "i8" else 0, 128, shape).astype(np.int8 if dtype == "i8" else np.uint8)
        return x, x.astype(np.float64)
    v = (rng.standard_normal(shape, np.float32) * (rng.random(shape) < 0.8)).astype(np.float32)
    v.reshape(-1)[::7] = -1
    bits = cases.fp8_bits(v, dtype) if dtype in cases.FP8 else cases.NARROW[dtype](v)
    return bits, cases.fp8_values(bits, dtype).astype(np.float64) if dtype in cases.FP8 else cases.WIDE[dtype](bits)


def kept_two(v):
    """Where the two largest of each four of a row are, the first of equals: a mask."""
    at = np.argsort(-np.abs(v).reshape(v.shape[0], -1, 4), axis=2, kind="stable")[:, :, :2]
    mask = np.zeros((v.shape[0], v.shape[1] // 4, 4), bool)
    np.put_along_axis(mask, at, True, 2)
    return mask.reshape(v.shape)


def compressed(x, mask):
    """What the mask keeps, and metadata."""
    m, k = x.shape
    at = np.nonzero(mask)[1].reshape(m, k // 4, 2) % 4
    nibbles = (at[:, :, 0] | at[:, :, 1] << 2).reshape(m, k // 16, 4)
    return x[mask].reshape(m, k // 2), (nibbles << np.arange(0, 16, 4)).sum(2).astype(np.uint16)


def compress(dev, x, dtype, **defines):
    m, k = x.shape
    kept, meta = poisoned(dev, (m, k // 2), dtype), poisoned(dev, (m, k // 16), "u16")
    kern = kernel(dev, FILE, "compress", T=dtype, **defines)
    d = kern.settings()
    call = launch(kern, (tilec.cdiv(m, int(d["BM"])), tilec.cdiv(k, int(d["BK"]))), dev.array(x, dtype), kept, meta, m, k)
    return call, kept, meta


def sparse_compress(dev, rng, m, k, dtype="f16", **defines):
    """Compressed, and back."""
    x, v = numbers(rng, (m, k), dtype)
    mask = kept_two(v)
    call, kept, meta = compress(dev, x, dtype, **defines)
    want, words = compressed(x, mask)
    back = poisoned(dev, (m, k), dtype)
    kern = kernel(dev, FILE, "expand", T=dtype, **defines)
    d = kern.settings()
    launch(kern, (tilec.cdiv(m, int(d["BM"])), tilec.cdiv(k, int(d["BK"]))), kept, meta, back, m, k)
    return Run(call, [("kept", kept.numpy(), want, 0), ("meta", meta.numpy(), words, 0), ("back", back.numpy(), np.where(mask, x, x.dtype.type(0)), 0)],
               bytes=x.nbytes + want.nbytes + words.nbytes, dtype=dtype)


def sparse_both(dev, rng, m, k, dtype="f16", **defines):
    """Of a matrix and its transpose: a pattern for both, of each 4 x 4 one with the largest sum."""
    x, v = numbers(rng, (m, k), dtype)
    out = [poisoned(dev, shape, t) for shape, t in (((m, k // 2), dtype), ((m, k // 16), "u16"), ((k, m // 2), dtype), ((k, m // 16), "u16"))]
    kern = kernel(dev, FILE, "compress_both", T=dtype, **defines)
    d = kern.settings()
    call = launch(kern, (tilec.cdiv(m, int(d["BM"])), tilec.cdiv(k, int(d["BK"]))), dev.array(x, dtype), *out, m, k)
    kept, meta, kept_t, meta_t = (o.numpy() for o in out)
    places = np.stack([meta >> (4 * i) & 15 for i in range(4)], 2).reshape(m, k // 4).astype(int)
    mask = np.zeros((m, k // 4, 4), bool)
    for p in (places & 3, places >> 2):
        np.put_along_axis(mask, p[:, :, None], True, 2)
    mask = mask.reshape(m, k)
    of_tiles = lambda a: a.reshape(m // 4, 4, k // 4, 4).transpose(0, 2, 1, 3)
    best = np.full((m // 4, k // 4), -1.0)
    for t in TILES:
        best = np.maximum(best, (of_tiles(np.abs(v)) * t).sum((2, 3)))
    checks = [("two", of_tiles(mask).sum(axis), np.full((m // 4, k // 4, 4), 2), 0) for axis in (2, 3)]
    if (mask.sum(1) == k // 2).all() and (mask.sum(0) == m // 2).all():
        want, want_t = compressed(x, mask), compressed(x.T, mask.T)
        checks += [("kept", kept, want[0], 0), ("meta", meta, want[1], 0), ("kept_t", kept_t, want_t[0], 0), ("meta_t", meta_t, want_t[1], 0)]
    return Run(call, checks + [("sums", (of_tiles(np.abs(v)) * of_tiles(mask)).sum((2, 3)), best, 1e-7)], bytes=x.nbytes * 2 + meta.nbytes * 2, dtype=dtype)


def matmul_sparse(dev, rng, m, n, k, dtype="f16", b_t=False, c_t=False, **defines):
    (x, v), (b, w) = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
    whole = dtype in ("i8", "u8")
    _, kept, meta = compress(dev, x, dtype)
    c = poisoned(dev, (n, m) if c_t else (m, n), "i32" if whole else "f32")
    kern = kernel(dev, FILE, "matmul_sparse", T=dtype, TO="i32" if whole else "f32", **dict(dict(S="i32") if whole else {}, **defines))
    d = kern.settings()
    call = launch(kern, tilec.cdiv(m, int(d["BM"])) * tilec.cdiv(n, int(d["BN"])), kept, meta, dev.array(np.ascontiguousarray(b.T) if b_t else b, dtype), c, m, n, k // 16,
                  *((1, k) if b_t else (n, 1)), *((1, m) if c_t else (n, 1)))
    want, got = np.where(kept_two(v), v, 0) @ w, c.numpy().T if c_t else c.numpy()
    # sums of 8-bit floats by warpgroups are cut
    return Run(call, [("c", got, want.astype(np.int32) if whole else want, 0 if whole else 1e-3 if dtype in cases.FP8 else 1e-5)], flops=2 * m * n * k, dtype=dtype)


TYPES = ("f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2")
CASES = [
    Case("sparse_compress", sparse_compress, grid(m=(20,), k=(272,), dtype=TYPES) + [dict(m=1, k=16), dict(m=33, k=128, BM=8, BK=64)],
         [dict(m=8192, k=8192)] + grid(m=(1000,), k=(1296,), dtype=TYPES)),
    Case("sparse_both", sparse_both, grid(m=(48,), k=(80,), dtype=("f16", "bf16", "i8", "f8e4m3")) + [dict(m=16, k=16)],
         [dict(m=4096, k=4096)] + grid(m=(1008,), k=(1296,), dtype=("f16", "bf16", "i8", "f8e4m3"))),
    Case("matmul_sparse", matmul_sparse, [dict(m=256, n=256, k=256)] + grid(m=(100,), n=(72,), k=(176,), dtype=TYPES, b_t=(True,), BM=(64,), BN=(64,), STAGES=(3,)) +
         grid(m=(100,), n=(72,), k=(176,), dtype=("f16", "bf16"), c_t=(False, True), BM=(64,), BN=(64,), STAGES=(1, 3), warps=(4,)) + [dict(m=130, n=40, k=16, BN=32)] +
         # a team that copies, boxes of all three; sums of 8-bit floats whole and in pieces
         [dict(m=200, n=264, k=384, BN=256, STAGES=2), dict(m=200, n=136, k=640, dtype="bf16", BM=256, b_t=True, STAGES=2), dict(m=200, n=144, k=512, dtype="i8", b_t=True),
          dict(m=200, n=272, k=640, dtype="f8e4m3", b_t=True, BN=256), dict(m=200, n=272, k=640, dtype="f8e5m2", b_t=True, BK=256, BN=256, STAGES=2, PROMOTE=0), dict(m=70, n=136, k=384, BM=64, BN=128, STAGES=4, warps=4)],
         [dict(m=4096, n=4096, k=4096)] + grid(m=(1000,), n=(520,), k=(784,), dtype=TYPES, b_t=(True,)) + grid(m=(1000,), n=(520,), k=(784,), dtype=("f16", "bf16"), c_t=(False, True)) +
         grid(m=(1000,), n=(520,), k=(1280,), dtype=TYPES, b_t=(True,), BN=(128, 256), STAGES=(2,)) + grid(m=(1000,), n=(528,), k=(2048,), dtype=("f8e4m3",), b_t=(True,), BN=(256,), STAGES=(2,), PROMOTE=(0, 128))),
]
