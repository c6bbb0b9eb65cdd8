"""Products of weights of a few bits by warpgroups (matmul_w4_wgmma.tile); against float64."""
import cases
from cases import Case, Run, grid, kernel, launch, poisoned
import numpy as np
import tilec

FILE = "matmul_w4_wgmma.tile"


def in_order(dev, w, s, z, n, k, W, bits, dtype, scales):
    """Weights and scales as the products take them, by the kernels that put them in order."""
    p = poisoned(dev, (tilec.cdiv(n, 64), tilec.cdiv(k, 64) * 4, 32 * bits), "u32")
    launch(kernel(dev, FILE, "reorder_w4", W=W, T=dtype), (p.shape[0], p.shape[1] // 4), dev.array(w), p, n, k)
    groups, padded = s.shape[1], tilec.cdiv(n, 8) * 8
    o = poisoned(dev, (groups, 1 if z is None else 2, padded), scales)
    given = [None if a is None else dev.array(a, scales) for a in (s, z)]
    launch(kernel(dev, FILE, "reorder_scales", S=scales), (tilec.cdiv(padded, 128), groups), *given, o, n, groups, padded)
    return p, o


def activations(rng, m, k, dtype):
    """x, and its numbers."""
    if dtype == "i8":
        x = rng.integers(-127, 128, (m, k)).astype(np.int8)
        return x, x.astype(np.float64)
    return cases.factor(rng, (m, k), dtype)


def matmul_w4(dev, rng, m, n, k, W="u4", bytes=None, GROUP=128, zeros=False, dtype="f16", out=None, tokens=False, sums=False, between=0, programs=None,
              split=None, rows=256, loop=False, vector=False, **defines):
    """x of `dtype` by weights of W (bytes: floats of 8 bits); sums: scales put to sums, in f32, not to weights; tokens: with a scale for each row of x.
    rows: of a program that shares K. vector: by the kernel for few tokens (matvec.tile), which does that."""
    bits = len(cases.PACKED[W]).bit_length() - 1 if W in cases.PACKED else 8
    sixteen = dtype in cases.WIDE and dtype != "f32"
    out, scales = out or (dtype if sixteen else "f16"), dtype if sixteen else "f16"
    narrow, wide = cases.NARROW[scales], cases.WIDE[scales]
    x, xs = activations(rng, m, k, dtype)
    w = rng.integers(0, 1 << 32, (n, k * bits // 32), dtype=np.uint32)
    if bytes:                                                      # no nans
        w = cases.fp8_bits(rng.standard_normal((n, k), np.float32), bytes).view(np.uint32)
    s = narrow((rng.random((n, tilec.cdiv(k, GROUP))) / 8).astype(np.float32))
    z = narrow(rng.integers(0, 16, s.shape).astype(np.float32)) if zeros else None
    p, o = in_order(dev, w, s, z, n, k, W, bits, dtype, scales)
    c = cases.rows_apart(dev, np.empty((m, n), np.dtype(tilec.DTYPES[out])), out, between, empty=True)
    t = rng.random(m).astype(np.float32) + 0.5 if tokens else None
    more = dict(dict(BYTES=bytes) if bytes else {}, **dict(SPLIT=split) if split else {})
    more |= {} if loop else dict(S=scales) if vector else dict(S=scales, SUMS=str(sums).lower())
    more |= dict(T=dtype, TO=out, W=W, GROUP=GROUP, ZEROS=str(zeros).lower(), **defines)
    if vector:
        kern = kernel(dev, "matvec.tile", "matvec", **more)
        d = {name: int(v) for name, v in kern.settings().items() if name in ("BM", "ROWS", "SPLIT")}
        call = launch(kern, (tilec.cdiv(n, d["ROWS"]) * d["SPLIT"], tilec.cdiv(m, d["BM"])), dev.array(x, dtype), p, o, None if t is None else dev.array(t),
                      c[0].of, m, n, k, o.shape[2])
    else:
        kern = kernel(dev, FILE, "matmul_w4_loop" if loop else "matmul_w4_wgmma" if not split else "matmul_w4_split" if rows == 256 else "matmul_w4_pairs", **more)
        d = kern.settings()
        tiles = (tilec.cdiv(n, rows) * split, tilec.cdiv(m, int(d["BM"]))) if split else programs
        tiles = tilec.cdiv(m, int(d["BM"])) * tilec.cdiv(n, int(d["BN"])) if loop else tiles
        call = launch(kern, tiles, cases.rows_apart(dev, x, dtype, between)[0], p, o, *([] if loop else [None if t is None else dev.array(t)]), c[0],
                      free=bool(programs))
    spread = lambda a: np.repeat(wide(a), GROUP, axis=1)[:, :k]
    q = cases.fp8_values(w.view(np.uint8), bytes).astype(np.float64) if bytes else cases.unpacked(w, W)
    values = (q - (spread(z) if zeros else 0)) * spread(s)
    values = values if sums or vector else wide(narrow(values))
    want = xs @ values.T * (1 if t is None else t.astype(np.float64)[:, None])
    near = max(cases.ROUNDING[out], 2e-3 if dtype in cases.FP8 else 0)       # of 8-bit floats tensor cores drop bits
    return Run(call, [("c", cases.WIDE[out](c[1]()), want, near), cases.untouched(c[1])], bytes=4 * w.size + x.nbytes + 2 * m * n,
               flops=2 * m * n * k, dtype=dtype)


def reorder(dev, rng, n, k, form, GROUP=128, dtype="f16"):
    """Weights of 4 bits as GPTQ and AWQ store them, in order: the same words as from rows of w; and their scales and zero points."""
    q, zero = (rng.integers(0, 16, shape, dtype=np.uint32) for shape in ((n, k), (tilec.cdiv(k, GROUP), n)))
    s = rng.random(zero.shape).astype(np.float16)
    packed = lambda a, order=range(8): (a.reshape(*a.shape[:-1], -1, 8)[..., list(order)] << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    eight, awq = (0, 2, 4, 6, 1, 3, 5, 7) if form == "awq" else range(8), form == "awq"
    shape, groups, padded = (tilec.cdiv(n, 64), tilec.cdiv(k, 64) * 4, 128), len(zero), tilec.cdiv(n, 8) * 8
    p, want, o = poisoned(dev, shape, "u32"), poisoned(dev, shape, "u32"), poisoned(dev, (groups, 2, padded), "f16")
    tiles = (shape[0], shape[1] // 4)
    launch(kernel(dev, FILE, "reorder_w4", T=dtype), tiles, dev.array(packed(q)), want, n, k)
    w = dev.array(np.ascontiguousarray(packed(q.T, eight) if awq else packed(q).T))
    call = launch(kernel(dev, FILE, "reorder_awq", T=dtype) if awq else kernel(dev, FILE, "reorder_w4", T=dtype, COLUMNS="true"), tiles, w, p, n, k)
    launch(kernel(dev, FILE, "reorder_zeros", AWQ=str(awq).lower(), MORE=0 if awq else 1), (tilec.cdiv(padded, 128), groups), dev.array(s),
           dev.array(packed(zero, eight)), o, n, groups, padded)
    means = np.stack([s, (zero + (not awq)).astype(np.float16)], axis=1)
    return Run(call, [("words", p.numpy(), want.numpy(), 0), ("scales", o.numpy()[:, :, :n], means, 0)], bytes=n * k)


def reorder_gguf(dev, rng, n, k, form, dtype="f16"):
    """GGUF's blocks of 32 numbers in order: the same words as from rows of w; and their scales and zero points."""
    bits, groups, padded = 8 if form == "q8_0" else 4, k // 32, tilec.cdiv(n, 8) * 8
    q = rng.integers(0, 1 << bits, (n, groups, 32), dtype=np.uint8)
    d, m = (rng.standard_normal((n, groups, 1)).astype(np.float16) for _ in range(2))
    d[0, 0] = 0
    numbers = q if bits == 8 else q[:, :, :16] | q[:, :, 16:] << 4
    blocks = np.concatenate([d.view(np.uint8), *([m.view(np.uint8)] if form == "q4_1" else []), numbers], axis=2)
    kinds, shape = 2 if form == "q4_1" else 1, (tilec.cdiv(n, 64), tilec.cdiv(k, 64) * bits, 128)
    p, want, o = poisoned(dev, shape, "u32"), poisoned(dev, shape, "u32"), poisoned(dev, (groups, kinds, padded), "f16")
    rows = (q ^ 8 if form == "q4_0" else q).reshape(n, k)                    # less 8, of 4 bits
    words = np.ascontiguousarray(rows).view(np.uint32) if bits == 8 else (rows.reshape(n, -1, 8).astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    w = dev.array(blocks.reshape(-1))
    launch(kernel(dev, FILE, "reorder_w4", T=dtype, W={"q4_0": "i4", "q4_1": "u4", "q8_0": "i8"}[form]), (shape[0], shape[1] // bits), dev.array(words), want, n, k)
    call = launch(kernel(dev, FILE, "reorder_gguf", FORMAT=f'"{form}"', T=dtype), (shape[0], shape[1] // bits), w, p, n, k)
    launch(kernel(dev, FILE, "reorder_gguf_scales", FORMAT=f'"{form}"'), (tilec.cdiv(padded, 128), groups), dev.array(blocks.reshape(-1).view(np.float16)), o, n, groups, padded)
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(d == 0, np.float16(0), (-m.astype(np.float32) / d.astype(np.float32)).astype(np.float16))
    means = np.concatenate([d, zero][:kinds], axis=2).transpose(1, 2, 0)
    return Run(call, [("words", p.numpy(), want.numpy(), 0), ("scales", o.numpy()[:, :, :n].astype(np.float64), means.astype(np.float64), 0)], bytes=blocks.nbytes + p.nbytes)


small, deep = dict(BM=64, STAGES=3), dict(BM=128, BK=128, sums=True)
# Activations of 8 bits by weights of 4 and 8, and floats of 8 bits by activations of 16.
EIGHT = [dict(dtype="f8e4m3", W="u4", zeros=True), dict(dtype="f8e4m3", W="i4"), dict(dtype="i8", W="u4", zeros=True), dict(dtype="i8", W="i4", tokens=True),
         dict(dtype="i8", W="i8", out="bf16"), dict(dtype="f8e4m3", W="u8", bytes="f8e4m3", tokens=True)]
BYTES = [dict(W="u8", bytes="f8e4m3"), dict(W="u8", bytes="f8e5m2", dtype="bf16", tokens=True)]
sizes = lambda some, **given: [dict(one, **given) for one in some]

CASES = [
    Case("matmul_w4_wgmma", matmul_w4, [dict(m=70, n=200, k=264, programs=2, **small), dict(m=300, n=136, k=128, programs=1), dict(m=5, n=72, k=72, BM=8, between=3, programs=1)] +
         [dict(m=100, n=600, k=264, BM=64, CLUSTER=2, zeros=True, programs=2), dict(m=70, n=200, k=392, BM=32, CLUSTER=2, STAGES=3, programs=4)] +
         grid(m=(40,), n=(136,), k=(192,), W=("u4", "i4", "i2", "i8", "f4e2m1"), GROUP=(64,), BM=(64,), zeros=(True,), programs=(1,)) +
         [dict(m=20, n=64, k=256, GROUP=32, BM=32, BK=128, STAGES=3, zeros=True, programs=1), dict(m=20, n=64, k=256, BM=32, dtype="bf16", zeros=True, programs=1)] +
         [dict(m=40, n=136, k=200, BM=64, sums=True, zeros=True, tokens=True, programs=1)] + sizes(BYTES, m=40, n=136, k=200, BM=64, programs=1) +
         sizes(EIGHT, m=40, n=136, k=272, BM=64, BK=128, sums=True, programs=1),
         [dict(m=4096, n=4096, k=4096), dict(m=4096, n=4096, k=4096, W="i8"), dict(m=4096, n=4096, k=4096, zeros=True, GROUP=64), dict(m=4096, n=4096, k=4096, zeros=True, CLUSTER=2)] +
         grid(m=(1000,), n=(520,), k=(776,), W=("u4", "i4", "i8", "f4e2m1"), between=(3,), dtype=("f16", "bf16")) +
         grid(m=(1000,), n=(520,), k=(784,), W=("i2",), between=(3,), dtype=("f16", "bf16")) +
         sizes(BYTES, m=1000, n=520, k=776) + sizes(EIGHT, m=1000, n=520, k=784, **deep)),
    Case("matmul_w4_split", matmul_w4, [dict(m=5, n=264, k=520, split=2, BK=64, STAGES=4), dict(m=20, n=72, k=1096, split=4, zeros=True), dict(m=3, n=72, k=64, split=1, BM=8, W="i8", between=3)] +
         [dict(m=3, n=264, k=328, split=2, BM=8, sums=True, zeros=True, tokens=True)] + sizes(EIGHT[:3], m=3, n=264, k=528, split=2, BM=8, BK=128, STAGES=3, sums=True),
         [dict(m=m, n=4096, k=4096, split=8, BM=max(8, m), zeros=True, sums=sums) for m, sums in ((1, False), (1, True), (16, False), (16, True), (64, False))] + [dict(m=16, n=520, k=1096, split=4, W="i8", between=3)] +
         sizes(EIGHT, m=16, n=1000, k=4096, split=8, BK=128, STAGES=4, sums=True)),
    Case("matmul_w4_pairs", lambda dev, rng, **s: matmul_w4(dev, rng, rows=128, **s),
         [dict(m=5, n=264, k=520, split=2, STAGES=4), dict(m=40, n=72, k=1096, split=4, BM=64, zeros=True), dict(m=3, n=136, k=328, split=2, BM=8, sums=True, zeros=True, tokens=True)],
         [dict(m=m, n=4096, k=4096, split=4, BM=m, zeros=True) for m in (16, 64)] + sizes(EIGHT[:3], m=16, n=1000, k=4096, split=4, BK=128, STAGES=4, sums=True)),
    Case("matvec", lambda dev, rng, **s: matmul_w4(dev, rng, vector=True, **s),
         [dict(m=1, n=72, k=2048, zeros=True), dict(m=5, n=136, k=264, warps=4, AT_ONCE=1, WHOLE=8), dict(m=8, n=64, k=520, WHOLE=8, GROUP=32, zeros=True, tokens=True)] +
         [dict(m=1, n=40, k=1096, BM=1, WHOLE=8, W="i8", warps=2), dict(m=2, n=40, k=648, BM=2, WHOLE=8, W="i4", dtype="bf16", GROUP=64)] +
         [dict(m=13, n=136, k=1032, BM=16, ROWS=64, SPLIT=2, AT_ONCE=1, WHOLE=8, zeros=True), dict(m=20, n=72, k=512, ROWS=32, SPLIT=4, AT_ONCE=1, W="i8", tokens=True)] +
         sizes(EIGHT + BYTES, m=3, n=40, k=528, BM=4, WHOLE=16) +
         [dict(m=1, n=72, k=2056, BM=1, HELD=4096, zeros=True), dict(m=7, n=40, k=1096, W="i4", HELD=2048, warps=4, SPLIT=2, ROWS=32, AT_ONCE=1),
          dict(m=2, n=40, k=640, BM=2, HELD=1024, GROUP=32, zeros=True, tokens=True), dict(m=1, n=40, k=1096, BM=1, HELD=2048, W="i8", AT_ONCE=1)] +
         sizes(EIGHT + BYTES, m=3, n=40, k=528, BM=4, HELD=1024),
         [dict(m=m, n=n, k=n, BM=m, zeros=True) for m, n in ((1, 4096), (8, 4096), (1, 8192))] +
         [dict(m=m, n=n, k=n, BM=m, HELD=n, zeros=True) for m, n in ((1, 4096), (4, 4096), (1, 8192))] + [dict(m=1, n=8192, k=4096, BM=1, W="i8"), dict(m=16, n=8192, k=8192, BM=16, ROWS=64, SPLIT=2, AT_ONCE=1, zeros=True)] +
         sizes(EIGHT + BYTES, m=3, n=1000, k=4112, BM=4, WHOLE=16)),
    Case("matmul_w4_loop", lambda dev, rng, **s: matmul_w4(dev, rng, loop=True, **s),
         [dict(m=300, n=200, k=264, zeros=True), dict(m=70, n=136, k=72, BM=64, W="i4", between=3), dict(m=70, n=136, k=136, BM=64, W="i8", dtype="bf16", GROUP=64)],
         [dict(m=4096, n=4096, k=4096), dict(m=4096, n=4096, k=4096, zeros=True), dict(m=1000, n=520, k=776, W="i8", dtype="bf16", between=3)]),
    Case("reorder_gguf", reorder_gguf, grid(n=(136,), k=(224, 256), form=("q4_0", "q4_1", "q8_0"), dtype=("f16", "i8")), grid(n=(4096,), k=(4096,), form=("q4_0", "q4_1", "q8_0"))),
    Case("reorder_w4", reorder, grid(n=(136,), k=(200, 256), form=("gptq", "awq"), dtype=("f16", "i8")), grid(n=(4096,), k=(4096,), form=("gptq", "awq"))),
]
