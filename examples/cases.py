"""The examples' runs: what sizes, what arguments, what the right answer is. scripts/demo.py and tests/kernels/run.py read it.

A case is a function of (dev, rng, **size) that runs one example and returns a Run: arrays got and wanted, the relative
error allowed (Frobenius norm; 0: bit for bit), and the bytes or operations of the problem. CASES lists them with the sizes
to use on the simulator and on a GPU.
"""
import importlib
import math
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
    dtype: str = "f16"                 # of the products' operands, where there are flops
    found: dict = field(default_factory=dict)   # by argument: an array, and what every launch must find in it (0: zeros)


def kernel(dev, file, name, **defines):
    return dev.program(os.path.join(here, file)).kernel(name, **defines)


def bound(k, grid, *args, free=False, **named):
    """A launch, by the kernel's grid clause if it has one, which has to say the same grid; free: by this grid, as programs share out the work,
    however many there are."""
    call = k.bind(grid, *args, **named)
    if free or not call.says_grid:
        return call
    own = k.bind(None, *args, **named)
    assert own.grid == call.grid, f"{k.name}: its clause says {own.grid}, not {call.grid}"
    return own


def launch(k, grid, *args, free=False):
    call = bound(k, grid, *args, free=free)
    call()
    return call


def poisoned(dev, shape, dtype):
    """Output memory that shows whether every element was written."""
    a = dev.empty(shape, dtype)
    a.fill_bytes(0xFF)
    return a


def bf16_bits(a):
    return tilec.to_bits(a, "bf16")


def bf16_values(bits):
    return tilec.from_bits(bits, "bf16")


FP8 = {"f8e4m3": (4, 3, 448.0), "f8e5m2": (5, 2, 57344.0)}


def fp8_values(bits, dtype):
    """What bytes mean as 8-bit floats: f32."""
    return tilec.from_bits(np.asarray(bits, np.uint8), dtype)


def fp8_bits(x, dtype):
    """Bytes of the nearest 8-bit floats, ties to even, clamped to the finite range; the nan that the hardware gives."""
    return np.where(np.isnan(x), np.uint8(0x7F), tilec.to_bits(x, dtype, saturate=True))


def quant_scale(most, dtype, pow2=False):
    """The scale of numbers whose largest is most, in f32 as stdlib/quant.tile computes it."""
    top = np.float32(FP8[dtype][2] if dtype in FP8 else 127)
    most = np.asarray(most, np.float32)
    s = np.maximum(most / top, np.float32(2.0**-126))
    if pow2:
        s = ((s.view(np.uint32) + np.uint32(0x7FFFFF)) & np.uint32(0x7F800000)).view(np.float32)
    return np.where(most > 0, s, np.float32(1)).astype(np.float32)


def quantised(x, scale, dtype):
    """x / scale as bytes of the type: the product with the scale's reciprocal, rounded to f32, then to the type."""
    with np.errstate(invalid="ignore", over="ignore"):
        y = x.astype(np.float32) * (np.float32(1) / scale.astype(np.float32))
    if dtype in FP8:
        return fp8_bits(y, dtype)
    return np.where(np.isnan(y), 0, np.clip(np.rint(y), -127, 127)).astype(np.int8)


def finite_max(x, axis=None):
    a = np.abs(x.astype(np.float32))
    return np.where(a < np.inf, a, 0).max(axis=axis)


def block_view(x, bm, bn):
    """x filled up with zeros to whole blocks: [row of blocks, row, column of blocks, column]."""
    m, n = x.shape
    full = np.zeros((tilec.cdiv(m, bm) * bm, tilec.cdiv(n, bn) * bn), x.dtype)
    full[:m, :n] = x
    return full.reshape(tilec.cdiv(m, bm), bm, tilec.cdiv(n, bn), bn)


def spread(s, shape, bm, bn):
    return np.repeat(np.repeat(s, bm, 0), bn, 1)[:shape[0], :shape[1]]


def within_bound(back, x, s, dtype):
    """Of how many finite elements the error of q * scale is larger than quantisation explains. Integers: half a step; floats: half a unit
    in the last place, or half the least subnormal step. The products' roundings add a few 2^-24."""
    ok = np.isfinite(x)
    x, s, back = x.astype(np.float64), s.astype(np.float64), back.astype(np.float64)
    if dtype in FP8:
        exp, man, _ = FP8[dtype]
        bound = np.maximum(np.abs(x) * 2.0**-(man + 1), s * 2.0**(1 - ((1 << (exp - 1)) - 1) - man - 1))
    else:
        bound = s / 2
    return np.count_nonzero(np.abs(back - x)[ok] > (bound * (1 + 2.0**-20) + np.abs(x) * 2.0**-22)[ok])


def edged(rng, m, n, dtype):
    """Numbers of very different sizes by row and column, with rows of zeros, tiny numbers, infinities and nans."""
    x = rng.standard_normal((m, n), np.float32) * np.exp2(rng.integers(-8, 9, (m, 1))).astype(np.float32)
    x[m // 3] = 0
    x[m // 2, :] *= np.float32(2.0**-120) if dtype == "f32" else np.float32(1)
    if m > 4:
        x[1, rng.integers(0, n)], x[2, rng.integers(0, n)], x[3, rng.integers(0, n)] = np.inf, -np.inf, np.nan
    return bf16_bits(x) if dtype == "bf16" else x


def quantise(dev, rng, kind, m, n, dtype="f8e4m3", source="f32", pow2=False, edges=True, **defines):
    """Quantise bit for bit as the reference, then back within the error of the type. kind: tensor, rows, groups, squares, grid, cluster."""
    x = edged(rng, m, n, source) if edges else (lambda v: bf16_bits(v) if source == "bf16" else v)(rng.standard_normal((m, n), np.float32))
    v = bf16_values(x) if source == "bf16" else x
    bm, bn = dict(tensor=(m, n), rows=(1, n), groups=(1, 128), squares=(128, 128), grid=(256, 256), cluster=(256, 256))[kind]
    dx, q = dev.array(x, source), poisoned(dev, (m, n), dtype)
    shape = (tilec.cdiv(m, bm), tilec.cdiv(n, bn))
    s = poisoned(dev, shape[::-1] if kind == "groups" else shape, "f32")
    if pow2:
        defines["POW2"] = True
    k = kernel(dev, "quantise.tile", f"quantise_{kind}", X=source, T=dtype, **({} if kind != "rows" else dict(BLOCK=1 << (n - 1).bit_length())), **defines)
    if kind == "tensor":
        most = dev.array(np.zeros(1, np.uint32))
        launch(kernel(dev, "quantise.tile", "largest", X=source), None, dx, most, m * n)
        call = launch(k, tilec.cdiv(m * n, 2048), dx, most, q, s, m * n)
    elif kind == "rows":
        call = launch(k, m, dx, q, s, m, n)
    else:
        grid = dict(groups=(tilec.cdiv(m, 16), shape[1]), cluster=(shape[0] * defines.get("C", 4), shape[1])).get(kind, shape)
        call = launch(k, grid, dx, q, s, m, n)
    want_s = quant_scale(finite_max(block_view(v, bm, bn), (1, 3)), dtype, pow2)
    each = spread(want_s, (m, n), bm, bn)
    back = poisoned(dev, (m, n), "f32")
    launch(kernel(dev, "quantise.tile", "dequantise_matrix", T=dtype, BM=bm if kind != "tensor" else 1 << 30, BN=bn if kind not in ("tensor", "rows") else 1 << 30),
           (tilec.cdiv(m, 16), tilec.cdiv(n, 128)), q, s, back, m, n, *((1, m) if kind == "groups" else (shape[1], 1)))
    got_s = s.numpy().T if kind == "groups" else s.numpy()
    return Run(call, [("scales", got_s, want_s, 0), ("q", q.numpy(), quantised(v, each, dtype), 0),
                      ("back", np.array(within_bound(back.numpy(), v, each, dtype)), np.array(0), 0)], bytes=m * n * (5 if source == "f32" else 3))


def scaled_matmul(dev, rng, m, n, k, dtype="f8e4m3", TO="f32", BM=128, BN=128, STAGES=3, **defines):
    """Quantised operands, one scale for 128 columns of a row of a, for 128 x 128 of b."""
    dev = few(dev)
    a = rng.standard_normal((m, k), np.float32) * np.exp2(rng.integers(-4, 5, (m, 1))).astype(np.float32)
    b = rng.standard_normal((n, k), np.float32) * np.exp2(rng.integers(-4, 5, (n, 1))).astype(np.float32)
    groups = tilec.cdiv(k, 128)
    qa, sa, qb, sb = poisoned(dev, (m, k), dtype), poisoned(dev, (groups, m), "f32"), poisoned(dev, (n, k), dtype), poisoned(dev, (tilec.cdiv(n, 128), groups), "f32")
    launch(kernel(dev, "quantise.tile", "quantise_groups", T=dtype), (tilec.cdiv(m, 16), groups), dev.array(a), qa, sa, m, k)
    launch(kernel(dev, "quantise.tile", "quantise_squares", T=dtype), (tilec.cdiv(n, 128), groups), dev.array(b), qb, sb, n, k)
    c = poisoned(dev, (m, n), TO)
    kern = kernel(dev, "quantise.tile", "scaled_matmul", T=dtype, TO=TO, BM=BM, BN=BN, STAGES=STAGES, **defines)
    call = launch(kern, tilec.cdiv(m, BM) * tilec.cdiv(n, BN), qa, sa, qb, sb, c, m, n, k)
    value = lambda q: fp8_values(q.numpy(), dtype) if dtype in FP8 else q.numpy()
    va = value(qa).astype(np.float64) * spread(sa.numpy().T, (m, k), 1, 128)
    vb = value(qb).astype(np.float64) * spread(sb.numpy(), (n, k), 128, 128)
    got = bf16_values(c.numpy()) if TO == "bf16" else c.numpy()
    near = {"f32": 2e-4, "bf16": 4e-3}[TO]                  # tensor cores may keep 13 bits of a sum of 128 products
    return Run(call, [("c", got, va @ vb.T, near), ("without quantisation", got, a.astype(np.float64) @ b.T.astype(np.float64), 0.06 if dtype == "f8e4m3" else 0.12)], flops=2 * m * n * k, dtype=dtype)


def grid_matmul(dev, rng, m, n, k, dtype="f8e4m3", TO="bf16", BLOCK=256, BM=128, BN=128, **defines):
    """Both factors quantised in blocks of BLOCK x BLOCK, a scale each."""
    dev, blocks = few(dev), tilec.cdiv(k, BLOCK)
    a, b, sides = rng.standard_normal((m, k), np.float32), rng.standard_normal((n, k), np.float32), []
    for x, rows in ((a, m), (b, n)):
        q, s = poisoned(dev, (rows, k), dtype), poisoned(dev, (tilec.cdiv(rows, BLOCK), blocks), "f32")
        launch(kernel(dev, "quantise.tile", "quantise_grid", X="f32", T=dtype, BLOCK=BLOCK), (tilec.cdiv(rows, BLOCK), blocks), dev.array(x), q, s, rows, k)
        sides.append((q, s, fp8_values(q.numpy(), dtype).astype(np.float64) * spread(s.numpy(), (rows, k), BLOCK, BLOCK)))
    (qa, sa, va), (qb, sb, vb) = sides
    c = poisoned(dev, (m, n), TO)
    kern = kernel(dev, "quantise.tile", "grid_matmul", T=dtype, TO=TO, BLOCK=BLOCK, BM=BM, BN=BN, **defines)
    call = launch(kern, tilec.cdiv(m, BM) * tilec.cdiv(n, BN), qa, sa, qb, sb, c, m, n, k)
    got = bf16_values(c.numpy()) if TO == "bf16" else c.numpy()
    return Run(call, [("c", got, va @ vb.T, {"f32": 2e-4, "bf16": 4e-3}[TO]), ("without quantisation", got, a.astype(np.float64) @ b.T.astype(np.float64), 0.06)],
               flops=2 * m * n * k, dtype=dtype)


def matmul_persistent(dev, rng, m, n, k, name="matmul_persistent", programs=None, parts=None, BM=128, BN=128, **defines):
    a, b = rng.standard_normal((m, k), np.float32).astype(np.float16), rng.standard_normal((k, n), np.float32).astype(np.float16)
    c = poisoned(dev, (m, n), "f32") if name == "matmul_persistent" else dev.array(np.zeros((m, n), np.float32))
    tiles = tilec.cdiv(m, BM) * tilec.cdiv(n, BN)
    kern = kernel(dev, "matmul_persistent.tile", name, BM=BM, BN=BN, **defines)
    # One launch: a second one would add to what is there.
    call = kern.bind((tiles, parts) if name == "matmul_split_k" and parts else programs, dev.array(a), dev.array(b), c, m, n, k)
    call()
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 1e-5)], flops=2 * m * n * k)


def vector_add(dev, rng, n, BLOCK=1024):
    x, y = rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)
    out = poisoned(dev, n, "f32")
    call = launch(kernel(dev, "vector_add.tile", "add", BLOCK=BLOCK), tilec.cdiv(n, BLOCK), dev.array(x), dev.array(y), out, n)
    return Run(call, [("out", out.numpy(), x + y, 0)], bytes=12 * n)


# What f16, bf16 and f32 are in NumPy, as stored and in float64; the error of rounding once, with some room.
NARROW = {"f16": lambda v: np.asarray(v, np.float16), "bf16": bf16_bits, "f32": lambda v: np.asarray(v, np.float32)}
WIDE = {"f16": lambda v: v.astype(np.float64), "bf16": lambda v: bf16_values(v).astype(np.float64), "f32": lambda v: v.astype(np.float64)}
ROUNDING = {"f16": 5e-4, "bf16": 4e-3, "f32": 2e-6}


def pow2_above(n):
    return 1 << (n - 1).bit_length()


def given(rng, shape, dtype, scale=1.0, offset=0.0):
    """Random numbers as stored, and what they are worth."""
    stored = NARROW[dtype](rng.standard_normal(shape, np.float32) * np.float32(scale) + np.float32(offset))
    return stored, WIDE[dtype](stored)


def factor(rng, shape, dtype):
    """Of a product, of 8-bit floats as well: random numbers as stored, and what they are worth."""
    if dtype not in FP8:
        return given(rng, shape, dtype)
    bits = fp8_bits(rng.standard_normal(shape, np.float32), dtype)
    return bits, fp8_values(bits, dtype).astype(np.float64)


def few(dev):
    """A device that several tiles go to one program of, if programs stay."""
    return tilec.Device("sim:2") if dev.is_sim else dev


def blockwise(f, *arrays, most=1 << 21):
    """f of rows, one block of them at a time, put together again: references of large arrays without large intermediate results. Every
    array is cut along its first dimension; what f gives is, too (one array, or a tuple of them)."""
    rows = len(arrays[0])
    step = max(1, most // max(1, arrays[0].size // max(rows, 1)))
    if rows <= step:
        return f(*arrays)
    out = None
    for i in range(0, rows, step):
        part = f(*(a[i:i + step] for a in arrays))
        parts = part if isinstance(part, tuple) else (part,)
        out = out or [np.empty((rows, *p.shape[1:]), p.dtype) for p in parts]
        for o, p in zip(out, parts):
            o[i:i + step] = p
    return tuple(out) if isinstance(part, tuple) else out[0]


def softmax_reference(x):
    def block(x):
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
    return blockwise(block, x)


def softmax(dev, rng, rows, n, name="softmax", warps=4, dtype="f32", per=None, **more):
    x, value = given(rng, (rows, n), dtype, 3)
    out = poisoned(dev, (rows, n), dtype)
    if name != "softmax_blocks":
        more["BLOCK"] = pow2_above(n)
    k = kernel(dev, "softmax.tile", name, T=dtype, warps=warps, **more)
    grid = rows if name != "softmax_persistent" else min(rows, dev.sms * per) if per else None
    call = launch(k, grid, dev.array(x, dtype), out, rows, n, n, free=bool(per))
    return Run(call, [("out", WIDE[dtype](out.numpy()), softmax_reference(value), {**ROUNDING, "f32": 1e-6}[dtype])], bytes=2 * x.nbytes)


def rows_in_clusters(dev, rng, rows, n, kind="softmax", C=4, BLOCK=8192, dtype="f32", clusters=None, **more):
    """C programs a row; BLOCK * C is at least n. kind: softmax, layer_norm, rms_norm. clusters: so few of them take all rows."""
    (x, value), eps = given(rng, (rows, n), dtype, 3), 1e-5
    parameters = [given(rng, n, dtype) for _ in range({"softmax": 0, "layer_norm": 2, "rms_norm": 1}[kind])]
    out = poisoned(dev, (rows, n), dtype)
    k = kernel(dev, "softmax_cluster.tile", f"{kind}_cluster", T=dtype, BLOCK=BLOCK, C=C, **more)
    given_arrays = [dev.array(p, dtype) for p, _ in parameters]
    call = k.bind(min(clusters or rows, rows) * C, dev.array(x, dtype), *given_arrays, out, rows, n, n, *([eps] if parameters else []))
    call()
    want = normalised(value, eps, mean=kind == "layer_norm")[0] if parameters else softmax_reference(value)
    for (_, p), how in zip(parameters, (np.multiply, np.add)):
        want = how(want, p)
    return Run(call, [("out", WIDE[dtype](out.numpy()), want, {**ROUNDING, "f32": 2e-6}[dtype])], bytes=2 * x.nbytes)


def softmax_backward(dev, rng, rows, n, dtype="f32", warps=4, blocks=False, **more):
    y = NARROW[dtype](softmax_reference(rng.standard_normal((rows, n)) * 3))
    p, (dy, g) = WIDE[dtype](y), given(rng, (rows, n), dtype)
    dx = poisoned(dev, (rows, n), dtype)
    if not blocks:
        more["BLOCK"] = pow2_above(n)
    k = kernel(dev, "softmax.tile", "softmax_backward_blocks" if blocks else "softmax_backward", T=dtype, warps=warps, **more)
    call = launch(k, rows, dev.array(dy, dtype), dev.array(y, dtype), dx, rows, n, n)
    return Run(call, [("dx", WIDE[dtype](dx.numpy()), p * (g - (p * g).sum(1, keepdims=True)), ROUNDING[dtype])], bytes=3 * y.nbytes)


def normalised(v, eps, mean=True):
    """Rows brought to mean 0 (unless mean is False) and mean of squares 1; what was subtracted and multiplied."""
    def block(v):
        m = v.mean(1, keepdims=True) * mean
        s = 1 / np.sqrt(((v - m) ** 2).mean(1, keepdims=True) + eps)
        return (v - m) * s, m, s
    return blockwise(block, v)


def layer_norm(dev, rng, rows, n, name="layer_norm", dtype="f16", warps=4, offset=1.0, **more):
    (x, v), (w, wv), (b, bv) = given(rng, (rows, n), dtype, 2, offset), given(rng, n, dtype), given(rng, n, dtype)
    out, mean, scale = poisoned(dev, (rows, n), dtype), poisoned(dev, rows, "f32"), poisoned(dev, rows, "f32")
    if name == "layer_norm":
        more["BLOCK"] = pow2_above(n)
    k = kernel(dev, "layer_norm.tile", name, T=dtype, warps=warps, **more)
    call = launch(k, rows, dev.array(x, dtype), dev.array(w, dtype), dev.array(b, dtype), out, mean, scale, rows, n, n, 1e-5)
    h, m, s = normalised(v, 1e-5)
    h *= wv
    h += bv
    return Run(call, [("out", WIDE[dtype](out.numpy()), h, max(ROUNDING[dtype], 1e-6 * offset)), ("mean", mean.numpy(), m[:, 0], 1e-6), ("scale", scale.numpy(), s[:, 0], 2e-6)],
               bytes=2 * x.nbytes)


def column_sums(dev, x, out, dtype, parts, rows, n, COLS=32, **defines):
    """The rows of f32[parts, rows, n] x added up into [parts, n] out: a launch."""
    return bound(kernel(dev, "column_sums.tile", "column_sums", T=dtype, COLS=COLS, **defines), (tilec.cdiv(n, COLS), parts), x, out, parts, rows, n)


def column_sums_alone(dev, rng, parts, rows, n, dtype="f32", **more):
    x, out = rng.standard_normal((parts, rows, n), np.float32), poisoned(dev, (parts, n), dtype)
    call = column_sums(dev, dev.array(x), out, dtype, parts, rows, n, **more)
    if dev.is_sim:
        dev.stats(reset=True)
    call()
    checks = [("out", WIDE[dtype](out.numpy()), x.astype(np.float64).sum(1), ROUNDING[dtype])]
    if dev.is_sim:
        checks.append(("bank conflicts", np.array([dev.stats()["shared_bank_conflicts"]]), np.zeros(1), 0))
    return Run(call, checks, bytes=x.nbytes)


def norm_backward(dev, rng, rows, n, norm="layer_norm", long=False, blocks=False, dtype="f16", programs=None, warps=4, **more):
    """dx, dweight and, of layer norm, dbias; in two kernels."""
    layer = norm == "layer_norm"
    programs, free = min(programs or dev.sms * 2, rows), bool(programs)
    (x, v), (dy, g), (w, wv) = given(rng, (rows, n), dtype, 2, 0.5), given(rng, (rows, n), dtype), given(rng, n, dtype)
    h, m, s = normalised(v, 1e-5, layer)
    dx, parts = poisoned(dev, (rows, n), dtype), poisoned(dev, (1 + layer, programs, n), "f32")
    if not blocks:
        more["BLOCK"] = pow2_above(n)
    k = kernel(dev, f"{norm}.tile", f"{norm}_backward" + ("_long" if long else "_blocks" if blocks else ""), T=dtype, warps=warps, **more)
    stats = [dev.array(np.ascontiguousarray(a[:, 0], np.float32)) for a in ((m, s) if layer else (s,))]
    both = dev.array(dy, dtype), dev.array(x, dtype)
    if blocks:
        launch(kernel(dev, f"{norm}.tile", f"{norm}_backward_weights", T=dtype), (tilec.cdiv(n, 256), programs), *both, *stats, parts, rows, n, n, free=free)
        call = launch(k, rows, *both, dev.array(w, dtype), *stats, dx, rows, n, n)
    else:
        call = launch(k, programs, *both, dev.array(w, dtype), *stats, dx, parts, rows, n, n, free=free)
    out = poisoned(dev, (1 + layer, n), dtype)
    column_sums(dev, parts, out, dtype, 1 + layer, programs, n)()
    wg = g * wv
    checks = [("dx", WIDE[dtype](dx.numpy()), s * (wg - h * (h * wg).mean(1, keepdims=True) - layer * wg.mean(1, keepdims=True)), ROUNDING[dtype])]
    checks += [(what, got, want, ROUNDING[dtype]) for what, got, want in zip(("dweight", "dbias"), WIDE[dtype](out.numpy()), ((g * h).sum(0), g.sum(0)))]
    return Run(call, checks, bytes=3 * x.nbytes)


def rms_norm(dev, rng, rows, n, dtype="bf16", add=False, blocks=False, warps=4, **more):
    (x, v), (r, rv), (w, wv) = given(rng, (rows, n), dtype, 2), given(rng, (rows, n), dtype), given(rng, n, dtype)
    out, scale, residual = poisoned(dev, (rows, n), dtype), poisoned(dev, rows, "f32"), dev.array(r, dtype)
    if not blocks:
        more["BLOCK"] = pow2_above(n)
    k = kernel(dev, "rms_norm.tile", "add_rms_norm" if add else "rms_norm_blocks" if blocks else "rms_norm", T=dtype, warps=warps, **more)
    checks = []
    if add:
        call = bound(k, rows, dev.array(x, dtype), residual, dev.array(w, dtype), out, scale, rows, n, n, 1e-6)   # once: it changes residual
        call()
        rv = WIDE[dtype](NARROW[dtype]((v + rv).astype(np.float32)))
        checks, v = [("residual", WIDE[dtype](residual.numpy()), rv, 1e-6)], rv
    else:
        call = launch(k, rows, dev.array(x, dtype), dev.array(w, dtype), out, scale, rows, n, n, 1e-6)
    h, _, s = normalised(v, 1e-6, False)
    return Run(call, checks + [("out", WIDE[dtype](out.numpy()), h * wv, ROUNDING[dtype]), ("scale", scale.numpy(), s[:, 0], 1e-6)], bytes=(4 if add else 2) * x.nbytes)


def decode(dev, rng, m, d, f, dtype="bf16", pdl="auto", again=0, **more):
    """A norm, a product, silu and a product of m tokens, each launched as a dependent of the one in front; again: rounds more, whose launches
    overwrite what those of the round before read. The call that is timed is the larger product."""
    k = lambda name, **defines: kernel(dev, "decode.tile", name, T=dtype, **defines)
    (x, xv), (scale, sv) = given(rng, (m, d), dtype, 2), given(rng, d, dtype)
    (w1, w1v), (w2, w2v) = given(rng, (2 * f, d), dtype, d**-0.5), given(rng, (d, f), dtype, f**-0.5)
    h, g, a, y = (poisoned(dev, (m, n), dtype) for n in (d, 2 * f, f, d))
    product = k("product", **more)
    bn = more.get("BN", 32)
    calls = [bound(k("norm", BLOCK=pow2_above(d)), m, dev.array(x, dtype), dev.array(scale, dtype), h, m, d, 1e-6, pdl=pdl),
             bound(product, tilec.cdiv(2 * f, bn), h, dev.array(w1, dtype), g, m, 2 * f, d, pdl=pdl),
             bound(k("gated"), (tilec.cdiv(f, 1024), m), g, a, m, f, pdl=pdl),
             bound(product, tilec.cdiv(d, bn), a, dev.array(w2, dtype), y, m, d, f, pdl=pdl)]
    for call in calls * (1 + again):
        call()
    wide, narrow = WIDE[dtype], lambda v: WIDE[dtype](NARROW[dtype](v.astype(np.float32)))
    hv, _, _ = normalised(xv, 1e-6, False)
    hv = narrow(hv * sv)
    gv = narrow(hv @ w1v.T)
    av = narrow(gv[:, :f] / (1 + np.exp(-gv[:, :f])) * gv[:, f:])
    rough = ROUNDING[dtype]
    return Run(calls[1], [("h", wide(h.numpy()), hv, rough), ("g", wide(g.numpy()), gv, rough), ("a", wide(a.numpy()), av, 2 * rough), ("y", wide(y.numpy()), av @ w2v.T, 2 * rough)],
               bytes=w1.nbytes + (m * d + m * 2 * f) * 2)


def cross_entropy(dev, rng, rows, n, dtype="bf16", smoothing=0.0, fused=False, row=False, ignore=-100, warps=4, BLOCK=4096, clusters=None, **more):
    """Loss and derivative; every fourth target is ignored. clusters: as many, each of which takes rows by turns, 0: one for each row."""
    (x, v), target, scale = given(rng, (rows, n), dtype, 3), rng.integers(0, n, rows), 1 / 7
    target[rng.random(rows) < 0.25] = ignore
    use = target != ignore
    dx_, loss, lse = poisoned(dev, (rows, n), dtype), poisoned(dev, rows, "f32"), poisoned(dev, rows, "f32")
    dx, dt = dev.array(x, dtype), dev.array(target)
    if clusters is not None:
        k = kernel(dev, "softmax_cluster.tile", "cross_entropy_cluster", T=dtype, SMOOTHING=smoothing, BLOCK=BLOCK, warps=warps, **more)
        call = k.bind((clusters or rows) * more["C"], dx, dt, loss, dx_, rows, n, n, ignore, scale)      # fewer than the clause says, too
        call()
    elif fused:
        k = kernel(dev, "cross_entropy.tile", "cross_entropy_fused", T=dtype, SMOOTHING=smoothing, BLOCK=pow2_above(n), warps=warps)
        call = launch(k, rows, dx, dt, loss, dx_, rows, n, n, ignore, scale)
    else:
        name, shape = ("cross_entropy_row", dict(BLOCK=pow2_above(n))) if row else ("cross_entropy", more)
        call = launch(kernel(dev, "cross_entropy.tile", name, T=dtype, SMOOTHING=smoothing, warps=warps, **shape), rows, dx, dt, loss, lse, rows, n, n, ignore)
        launch(kernel(dev, "cross_entropy.tile", "cross_entropy_backward", T=dtype, SMOOTHING=smoothing, BLOCK=BLOCK, warps=warps), (rows, tilec.cdiv(n, BLOCK)),
               dx, dt, lse, dev.array(np.full(rows, scale, np.float32)), dx_, rows, n, n, ignore)

    def reference(v, target, use):
        p = softmax_reference(v)
        aim = np.full(p.shape, smoothing / n)
        aim[np.arange(len(p)), np.where(use, target, 0)] += 1 - smoothing
        return -np.where(use, (np.log(p) * aim).sum(1), 0), np.where(use[:, None], (p - aim) * scale, 0)
    want, dwant = blockwise(reference, v, target, use)
    return Run(call, [("loss", loss.numpy(), want, 1e-6), ("dx", WIDE[dtype](dx_.numpy()), dwant, ROUNDING[dtype])], bytes=(2 if fused else 1) * x.nbytes)


def rotary(dev, rng, tokens, heads, d, interleaved=False, dtype="bf16", positions=None, warps=4, HEADS=16):
    positions = positions or tokens
    angle = np.arange(positions)[:, None] / 10000 ** (np.arange(d // 2) * 2 / d)
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    x, v = given(rng, (tokens, heads, d), dtype)
    name = "rotary_interleaved" if interleaved else "rotary"
    want = []
    cc, ss = (np.resize(a, (tokens, 1, d // 2)) for a in (c, s))
    pick = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, d // 2), slice(d // 2, d))
    for sign, back in ((1, "false"), (-1, "true")):
        out = poisoned(dev, (tokens, heads, d), dtype)
        k = kernel(dev, "rotary.tile", name, T=dtype, HEADS=HEADS, HALF=pow2_above(d // 2), BACK=back, warps=warps)
        call = launch(k, (tokens, tilec.cdiv(heads, HEADS)), dev.array(x, dtype), dev.array(c), dev.array(s), out, tokens, heads, d, positions)
        turned = np.empty_like(v)
        a, b = v[..., pick[0]], v[..., pick[1]]
        turned[..., pick[0]], turned[..., pick[1]] = a * cc - sign * b * ss, b * cc + sign * a * ss
        want.append(("back" if sign < 0 else "out", WIDE[dtype](out.numpy()), turned, ROUNDING[dtype]))
    return Run(call, want, bytes=2 * x.nbytes)


def rotary_cache(dev, rng, tokens, heads, kv_heads, d, dtype="bf16", to=None, HEADS=16):
    """Queries and keys turned by their positions, keys and values at random places of a cache; one token in three has none."""
    to, positions, slots = to or dtype, rng.integers(0, 100, tokens).astype(np.int32), rng.permutation(2 * tokens)[:tokens].astype(np.int64)
    slots[::3] = -1
    angle = np.arange(100)[:, None] / 10000 ** (np.arange(d // 2) * 2 / d)
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    x, v = given(rng, (tokens, heads + 2 * kv_heads, d), dtype)
    q, keys, values = poisoned(dev, (tokens, heads, d), dtype), *(poisoned(dev, (2 * tokens, kv_heads, d), to) for _ in "kv")
    scale = np.array([0.5, 2], np.float32)
    kern = kernel(dev, "rotary.tile", "rotary_cache", T=dtype, K=to, HEADS=HEADS, HALF=pow2_above(d // 2))
    call = launch(kern, (tokens, tilec.cdiv(heads + 2 * kv_heads, HEADS)), dev.array(x, dtype), dev.array(positions), dev.array(slots), dev.array(c), dev.array(s),
                  q, keys, values, tokens, heads, kv_heads, d, dev.array(scale) if to in FP8 else None)
    cc, ss = c[positions][:, None], s[positions][:, None]
    turned = np.concatenate([v[..., :d // 2] * cc - v[..., d // 2:] * ss, v[..., d // 2:] * cc + v[..., :d // 2] * ss], -1)
    there = slots >= 0
    kept = lambda a: (fp8_values(a.numpy(), to).astype(np.float64) if to in FP8 else WIDE[to](a.numpy()))[slots[there]]
    by, near = scale if to in FP8 else (1, 1), 0.05 if to in FP8 else ROUNDING[dtype]
    untouched = np.setdiff1d(np.arange(2 * tokens), slots)
    left = sum(np.count_nonzero(a.numpy().view(np.uint8).reshape(2 * tokens, -1)[untouched] != 0xFF) for a in (keys, values))
    return Run(call, [("q", WIDE[dtype](q.numpy()), turned[:, :heads], ROUNDING[dtype]), ("keys", kept(keys), turned[there, heads:heads + kv_heads] / by[0], near),
                      ("values", kept(values), v[there, heads + kv_heads:] / by[1], near), ("left alone", np.array([left]), np.zeros(1), 0)], bytes=2 * x.nbytes)


def philox(counter, key):
    """The four words of each counter (u64) under a key: Philox 4x32 with 10 rounds."""
    low, word = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [counter & low, counter >> word, np.zeros_like(counter), np.zeros_like(counter)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> word) ^ c[1] ^ np.uint64(k0), b & low, (a >> word) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def keep_each(offsets, p, seed):
    """Which elements dropout keeps that has a Philox of its own for each of them."""
    return (philox(offsets.astype(np.uint64), seed)[0] >> np.uint64(8)) * 2.0**-24 >= np.float32(p)


def keep_rows(offsets, p, seed):
    """Which elements dropout keeps that are numbered: word i % 4 of counter i / 4."""
    o = offsets.astype(np.uint64)
    words = np.stack(philox(o >> np.uint64(2), seed))
    return (words[(o & np.uint64(3)).astype(np.int64), np.arange(len(o))] >> np.uint64(8)) * 2.0**-24 >= np.float32(p)


def dropout(dev, rng, n, p=0.3, seed=42, each=False, dtype="f16", BLOCK=2048, warps=4):
    x, v = given(rng, n, dtype)
    y = poisoned(dev, n, dtype)
    k = kernel(dev, "dropout.tile", "drop_each" if each else "drop", T=dtype, BLOCK=BLOCK, warps=warps)
    call = launch(k, tilec.cdiv(n, BLOCK), dev.array(x, dtype), y, n, p, seed)
    keep = blockwise(lambda i: (keep_each if each else keep_rows)(i, p, seed), np.arange(n))
    got = WIDE[dtype](y.numpy())
    return Run(call, [("out", got, np.where(keep, v / (1 - p), 0), ROUNDING[dtype]), ("dropped", got[~keep], np.zeros(n - keep.sum()), 0)], bytes=2 * x.nbytes)


def transpose(dev, rng, m, n, BM=64, BN=64):
    x = rng.standard_normal((m, n), np.float32)
    out = poisoned(dev, (n, m), "f32")
    call = launch(kernel(dev, "transpose.tile", "transpose", BM=BM, BN=BN), (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(x), out, m, n)
    return Run(call, [("out", out.numpy(), x.T, 0)], bytes=8 * m * n)


def matmul(dev, rng, m, n, k, dtype="f16", a_t=False, b_t=False, swap=False, BM=128, BN=128, BK=32, STAGES=3, **defines):
    """swap: the transpose of c is made, by the same kernel."""
    if dtype == "i8":
        a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (k, n)).astype(np.int8)
    else:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    narrow = {"f16": lambda v: v.astype(np.float16), "bf16": bf16_bits}.get(dtype, lambda v: v)
    a, b = narrow(a), narrow(b)
    value = lambda v: (bf16_values(v) if dtype == "bf16" else v).astype(np.float64)
    da, db = dev.array(a.T if a_t else a, dtype), dev.array(b.T if b_t else b, dtype)
    out = "i32" if dtype == "i8" else "f32"
    c = poisoned(dev, (m, n), out)
    kern = kernel(dev, "matmul.tile", "matmul", T=dtype, TO=out, TA=out, BM=BM, BN=BN, BK=BK, STAGES=STAGES, **defines)
    sa, sb, sc = (1, m) if a_t else (k, 1), (1, k) if b_t else (n, 1), (n, 1)
    if swap:
        da, db, m, n, sa, sb, sc = db, da, n, m, sb[::-1], sa[::-1], sc[::-1]
    call = launch(kern, tilec.cdiv(m, BM) * tilec.cdiv(n, BN), da, db, c, m, n, k, *sa, *sb, *sc)
    bound = 0 if dtype == "i8" else 2e-3 if "PRECISION" in defines else 1e-3 if dtype == "f32" else 1e-5
    return Run(call, [("c", c.numpy(), value(a) @ value(b), bound)], flops=2 * m * n * k, dtype=dtype)


def attention(dev, rng, heads, S, D=64, causal=False, BM=128, BN=64, growth=1, **more):
    """growth: so much larger the last keys are than the first, for every third query, so that its largest score is exceeded again and again."""
    q, k, v = (rng.standard_normal((heads, S, D), np.float32) for _ in range(3))
    q[:, np.arange(S) % 3 > 0] /= growth
    k *= np.linspace(1, growth, S, dtype=np.float32)[:, None]
    q, k, v = (x.astype(np.float16) for x in (q, k, v))
    dev = few(dev) if "STAY" in more else dev
    o = poisoned(dev, (heads, S, D), "f16")
    kern = kernel(dev, "attention.tile", "attention", D=D, BM=BM, BN=BN, CAUSAL=str(causal).lower(), **more)
    call = launch(kern, (tilec.cdiv(S, BM), heads), dev.array(q), dev.array(k), dev.array(v), o, heads, S, D ** -0.5)
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


FOLDS = {"scan_add": np.add, "scan_max": np.maximum, "scan_mul": np.multiply}


def prefix_sum(dev, rng, n, dtype="i32", to=None, fold="scan_add", exclusive=False, BLOCK=2048, **more):
    """In one pass, by looking back, three launches with one state; whole numbers, so that floats come out exactly, too."""
    to = to or dtype
    dt, wide = (np.dtype(tilec.DTYPES[t]) for t in (dtype, to))
    x = rng.integers(-4, 5, n).astype(dt)
    if fold == "scan_mul":
        x = np.where(rng.random(n) < 0.5, -1, 1).astype(dt)
    none = {"scan_add": 0, "scan_max": -9, "scan_mul": 1}[fold]
    want = FOLDS[fold].accumulate(x.astype(np.float32 if wide == np.float16 else wide)).astype(wide)
    if exclusive:
        want = np.append(np.array([none], wide), want[:-1])
    y, dx = poisoned(dev, n, to), dev.array(x)
    state, ticket = dev.array(np.zeros(tilec.cdiv(n, BLOCK) * max(wide.itemsize // 4, 1), np.uint64)), dev.array(np.zeros(1, np.uint64))
    more.update({} if fold == "scan_add" else dict(F=fold, NONE=none), EXCLUSIVE=str(exclusive).lower())
    k = kernel(dev, "prefix_sum.tile", "prefix_sum", T=dtype, Y=to, BLOCK=BLOCK, **more)
    for m in (n, tilec.cdiv(n, 2), n):
        call = launch(k, tilec.cdiv(m, BLOCK), dx, y, m, state, ticket)
    return Run(call, [("y", y.numpy(), want, 0), ("ticket", ticket.numpy(), np.array([3 << 32], np.uint64), 0)], bytes=n * (dt.itemsize + wide.itemsize))


def recurrence(dev, rng, n, **more):
    """y[i] = a[i] y[i - 1] + x[i] over a whole array."""
    a, x = rng.uniform(-1, 1, n).astype(np.float32), rng.standard_normal(n, np.float32)
    want, at = np.empty(n), 0.0
    for i in range(n):
        want[i] = at = a[i] * at + x[i]
    blocks = tilec.cdiv(n, more.get("BLOCK", 2048))
    y, state, ticket = poisoned(dev, n, "f32"), dev.array(np.zeros(2 * blocks, np.uint64)), dev.array(np.zeros(1, np.uint64))
    call = launch(kernel(dev, "prefix_sum.tile", "recurrence", **more), blocks, dev.array(a), dev.array(x), y, n, state, ticket)
    return Run(call, [("y", y.numpy(), want, 1e-6)], bytes=12 * n)


def prefix_sum_thrice(dev, rng, n, dtype="f32", exclusive=False, BLOCK=2048):
    dt = dict(i32=np.int32, f32=np.float32)[dtype]
    x = (rng.random(n, np.float32) - np.float32(0.25)) if dtype == "f32" else rng.integers(-9, 10, n).astype(dt)
    blocks = tilec.cdiv(n, BLOCK)
    dx, y, sums = dev.array(x), poisoned(dev, n, dtype), poisoned(dev, blocks, dtype)
    k = lambda name, **more: kernel(dev, "prefix_sum.tile", name, T=dtype, BLOCK=BLOCK, **more)
    launch(k("sums_of_blocks"), blocks, dx, sums, n)
    launch(k("prefix_of_sums"), 1, sums, blocks)
    call = launch(k("prefix_sum_with", EXCLUSIVE=exclusive), blocks, dx, sums, y, n)
    want = np.cumsum(x.astype(np.float64 if dtype == "f32" else np.int32), dtype=np.float64 if dtype == "f32" else np.int32)
    want = np.concatenate([[0], want[:-1]]).astype(want.dtype) if exclusive else want
    return Run(call, [("y", y.numpy(), want, 1e-5 if dtype == "f32" else 0)], bytes=8 * n)


def numbers(rng, n, dtype, distinct):
    """n numbers of a type, of at most so many values, with nans among floats."""
    t = np.dtype(tilec.DTYPES[dtype])
    if t.kind != "f":
        some = rng.integers(np.iinfo(t).min, np.iinfo(t).max, distinct, t, endpoint=True)
    else:
        some = rng.standard_normal(distinct).astype(t)
        some[0] = np.nan
    return some[rng.integers(0, distinct, n)]


def select(dev, rng, n, dtype="f32", share=0.4, name="select", BLOCK=2048, warps=8):
    """What is wanted, or what is new in a sorted array: as many elements as numpy finds, then nothing."""
    x = numbers(rng, n, dtype, max(n // 3, 1))
    x = np.nan_to_num(x) if name == "select" else np.sort(x[~np.isnan(x)] if dtype == "f32" else x)
    n, want = len(x), rng.random(len(x)) < share
    if name == "unique":
        want = np.append(True, x[1:] != x[:-1])[:n]
    blocks, count = max(tilec.cdiv(n, BLOCK), 1), np.count_nonzero(want)
    y, at, which, total = poisoned(dev, n, dtype), poisoned(dev, n, "i32"), poisoned(dev, n, "i32"), poisoned(dev, 1, "i32")
    k = kernel(dev, "select.tile", name, T=dtype, BLOCK=BLOCK, warps=warps)
    args = (dev.array(x), dev.array(want), y, at) if name == "select" else (dev.array(x), y, at, which)
    state, ticket = dev.array(np.zeros(blocks, np.uint64)), dev.array(np.zeros(1, np.uint64))
    call = launch(k, blocks, *args, total, n, state, ticket)
    behind = lambda a: np.count_nonzero(a.numpy().view(np.uint8)[count * a.numpy().itemsize:] != 0xFF)
    checks = [("total", total.numpy(), np.array([count], np.int32), 0), ("y", y.numpy()[:count], x[want], 0),
              ("at", at.numpy()[:count], np.flatnonzero(want).astype(np.int32), 0), ("behind", np.array([behind(y), behind(at)]), np.zeros(2), 0)]
    if name == "unique":
        checks.append(("which", which.numpy(), (np.cumsum(want) - 1).astype(np.int32), 0))
    return Run(call, checks, bytes=n * (2 * x.itemsize + 5))


def rising_bits(x):
    """Unsigned integers in the order of x: of floats that of the bits, nans last, those without a sign before the others."""
    if x.dtype.kind != "f":
        return x
    b, top, nans = x.view(f"u{x.itemsize}"), 1 << 8 * x.itemsize - 1, {2: 0x3FF, 4: 0x7FFFFF, 8: (1 << 52) - 1}[x.itemsize]
    return np.where(b < top, b + b.dtype.type(top), ~b) - b.dtype.type(nans)


def radix_sort(dev, rng, n, dtype="u32", distinct=1 << 10, BITS=8, ROW=512, WINDOW=8, COPIES=1, WARPS=8, values="i32", places=True):
    """A launch that counts and one for each digit, of elements alone (values None), with their places, or with values that are given. Two sorts by
    the same counts, states and ticket."""
    x = numbers(rng, n, dtype, distinct)
    if x.dtype.kind == "f":
        x[rng.random(n) < 0.01] = np.copysign(x.dtype.type(np.nan), -1)
    digits, key, tiles = tilec.cdiv(8 * x.itemsize, BITS), "u64" if x.itemsize == 8 else "u32", tilec.cdiv(n, ROW * WARPS)
    carried = np.arange(n) if places else rng.integers(0, 100, n)
    carried = carried.astype(np.dtype(tilec.DTYPES[values or "i32"]))
    counts, ticket = (dev.array(np.zeros(k, np.int32)) for k in (digits << BITS, 1))
    states = [dev.array(np.zeros(WINDOW + tiles << BITS, np.uint32)) for _ in range(2)]
    at, checks = np.argsort(rising_bits(x), kind="stable"), []
    for turn in ("first", "second"):
        launch(kernel(dev, "radix_sort.tile", "count_digits", T=dtype, BITS=BITS, COPIES=COPIES), None, dev.array(x), counts, n)
        counted = counts.numpy()
        here = dev.array(x), None if places else dev.array(carried)
        for k in range(digits):
            kinds = dict(X=key if k else dtype, Y=dtype if k == digits - 1 else key, V=values or "i32", SHIFT=k * BITS, BITS=BITS, ROW=ROW, WINDOW=WINDOW, WARPS=WARPS)
            there = poisoned(dev, n, kinds["Y"]), poisoned(dev, n, values) if values else None
            call = launch(kernel(dev, "radix_sort.tile", "sort_by_digit", **kinds), tiles, here[0], there[0], counts, *states, ticket, n, here[1] if values else None, there[1])
            here = there
            states.reverse()
        bits = f"u{x.itemsize}"
        checks.append((f"sorted, {turn}", here[0].numpy().view(bits), x[at].view(bits), 0))
        if values:
            checks.append((f"values, {turn}", here[1].numpy(), carried[at], 0))
        left = [np.count_nonzero(a.numpy()) for a in (counts, ticket, states[0])]
        checks.append((f"left, {turn}", np.array(left), np.zeros(3), 0))
    return Run(call, checks, bytes=n * (2 * x.itemsize + (2 * carried.itemsize if values else 0)), found=dict(counts=(counts, counted), state=(states[1], 0)))


def order(dev, rng, name, rows, n, R=1, K=8, dtype="f32", warps=4, **defines):
    """The kernels of order.tile against numpy."""
    dt = dict(f32=np.float32, i32=np.int32)[dtype]
    x = rng.standard_normal((rows, n), np.float32) if dtype == "f32" else rng.integers(-1000, 1000, (rows, n), dtype=np.int32)
    few = name in ("top_rows", "topk_rows")
    k = kernel(dev, "order.tile", name, N=n, R=R, warps=warps, **(dict(K=K) if few else {}), **({} if name == "recurrence_rows" else dict(T=dtype)), **defines)
    y, at = poisoned(dev, (rows, K if few else n), dtype), poisoned(dev, (rows, K if few else n), "i32")
    rising, falling = np.argsort(x, 1, kind="stable"), np.argsort(-x, 1, kind="stable")[:, :K]
    if name == "sort_rows":
        args, checks = (y,), [("y", y, np.sort(x, 1), 0)]
    elif name == "argsort_rows":
        args, checks = (at,), [("at", at, rising.astype(np.int32), 0)]
    elif name == "top_rows":
        args, checks = (y,), [("y", y, np.take_along_axis(x, falling, 1), 0)]
    elif name == "topk_rows":
        args, checks = (y, at), [("y", y, np.take_along_axis(x, falling, 1), 0), ("at", at, falling.astype(np.int32), 0)]
    elif name == "cumsum_rows":
        sums = np.cumsum(x.astype(np.float64 if dtype == "f32" else np.int32), 1, dtype=np.float64 if dtype == "f32" else np.int32)
        args, checks = (y,), [("y", y, sums, 1e-6 if dtype == "f32" else 0)]
    elif name == "gather_rows":
        index = rng.integers(0, n, (rows, n), dtype=np.int32)
        args, checks = (dev.array(index), y), [("y", y, np.take_along_axis(x, index, 1), 0)]
    else:
        a = rng.uniform(-1, 1, (rows, n)).astype(np.float32)
        want, state = np.empty((rows, n)), np.zeros(rows)
        for j in range(n):
            state = a[:, j].astype(np.float64) * state + x[:, j]
            want[:, j] = state
        call = launch(k, rows // R, dev.array(a), dev.array(x), y, rows)
        return Run(call, [("y", y.numpy(), want, 1e-6)], bytes=12 * rows * n)
    call = launch(k, rows // R, dev.array(x), *args, rows)
    return Run(call, [(w, g.numpy(), v, tol) for w, g, v, tol in checks], bytes=8 * rows * n)


def count_values(dev, rng, n, BINS=256, programs=None, BLOCK=4096):
    x = rng.integers(-2, BINS + 2, n, dtype=np.int32)
    counts = dev.array(np.zeros(BINS, np.int32))
    call = kernel(dev, "order.tile", "count_values", BINS=BINS, BLOCK=BLOCK).bind(programs, dev.array(x), counts, n)
    call()
    return Run(call, [("counts", counts.numpy(), np.bincount(x[(x >= 0) & (x < BINS)], minlength=BINS).astype(np.int32), 0)], bytes=4 * n)


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


def matmul_shared(dev, rng, m, n, k, name="matmul_shared", file="matmul_shared.tile", BM=128, BN=128, **defines):
    a, b = rng.standard_normal((m, k), np.float32).astype(np.float16), rng.standard_normal((k, n), np.float32).astype(np.float16)
    c = poisoned(dev, (m, n), "f32")
    kern = kernel(dev, file, name, BM=BM, BN=BN, **defines)
    call = launch(kern, (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), dev.array(a), dev.array(b), c, m, n, k)
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ b.astype(np.float64), 1e-5)], flops=2 * m * n * k)


def rows_apart(dev, a, dtype, between, empty=False):
    """a on the device as a tensor, its rows on multiples of 16 bytes with so many elements between them and more where that is needed: the
    tensor, and a function that gives what it holds, or what stands between the rows. empty: of a only the shape is used."""
    *outer, n = a.shape
    per = 16 // np.dtype(tilec.DTYPES[dtype]).itemsize
    pitch = tilec.cdiv(n + between, per) * per
    held = poisoned(dev, (*outer, pitch), dtype)
    if not empty:
        full = held.numpy()
        full[..., :n] = a
        held.write(full)
    strides = [int(np.prod([*outer[i + 1:], pitch])) for i in range(len(outer))] + [1]
    view = tilec.View(held if isinstance(held, tilec.Array) else tilec.Pointer(held), a.shape, strides)
    return view, lambda between=False: held.numpy()[..., n:].view(np.uint8) if between else held.numpy()[..., :n]


def untouched(between):
    return ("between rows", between(True), np.full_like(between(True), 0xFF), 0)


def memcpy_tma(dev, rng, n, BLOCK=1024):
    x = rng.standard_normal(n, np.float32)
    out = poisoned(dev, n, "f32")
    call = launch(kernel(dev, "memcpy_tma.tile", "copy_line", BLOCK=BLOCK), tilec.cdiv(n, BLOCK), dev.array(x), out)
    return Run(call, [("out", out.numpy(), x, 0)], bytes=8 * n)


def elements(rng, shape, dtype):
    """What a kernel that only moves it is given: numbers of the types that numpy has, else any bits."""
    if dtype in NARROW or dtype == "f64":
        return NARROW.get(dtype, np.asarray)(rng.standard_normal(shape, np.float32 if dtype != "f64" else np.float64))
    kind = np.dtype(tilec.DTYPES[dtype])
    return rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0]


def copy_boxes(dev, rng, m, n, dtype="f16", between=0, BM=64, BN=128):
    x = elements(rng, (m, n), dtype)
    a, b = rows_apart(dev, x, dtype, between), rows_apart(dev, x, dtype, 2 * between, empty=True)
    k = kernel(dev, "memcpy_tma.tile", "copy_boxes", T=dtype, BM=BM, BN=BN)
    call = launch(k, (tilec.cdiv(m, BM), tilec.cdiv(n, BN)), a[0], b[0])
    return Run(call, [("b", b[1](), x, 0), untouched(b[1])], bytes=2 * x.nbytes)


def transpose_tma(dev, rng, m, n, dtype="f16", between=0, BLOCK=64):
    x = elements(rng, (m, n), dtype)
    a, b = rows_apart(dev, x, dtype, between), rows_apart(dev, x.T, dtype, between, empty=True)
    call = launch(kernel(dev, "transpose_tma.tile", None, T=dtype, BLOCK=BLOCK), (tilec.cdiv(m, BLOCK), tilec.cdiv(n, BLOCK)), a[0], b[0])
    return Run(call, [("b", b[1](), x.T, 0), untouched(b[1])], bytes=2 * x.nbytes)


def windows(x, R, S, STRIDE, PAD, DILATION):
    """What each tap of a filter sees of images: [R * S, n, p, q, c]."""
    wide = np.pad(x, ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)))
    p, q = ((e + 2 * PAD - (f - 1) * DILATION - 1) // STRIDE + 1 for e, f in zip(x.shape[1:3], (R, S)))
    place = lambda k, out: slice(k * DILATION, k * DILATION + (out - 1) * STRIDE + 1, STRIDE)
    return np.stack([wide[:, place(r, p), place(s, q)] for r in range(R) for s in range(S)])


def im2col(dev, rng, n, h, w, c, dtype="f16", R=3, S=3, STRIDE=1, PAD=1, DILATION=1, BP=64, BC=64, between=0, name="im2col", **more):
    x = NARROW[dtype](rng.standard_normal((n, h, w, c), np.float32))
    want = windows(x, R, S, STRIDE, PAD, DILATION).reshape(R * S, -1, c)
    given, y = rows_apart(dev, x, dtype, between), rows_apart(dev, want, dtype, between, empty=True)
    k = kernel(dev, "im2col.tile", name, T=dtype, R=R, S=S, STRIDE=STRIDE, PAD=PAD, DILATION=DILATION, BP=BP, BC=BC, **more)
    places, channels = tilec.cdiv(want.shape[1], BP), tilec.cdiv(c, BC)
    call = launch(k, (places, R * S, channels) if name == "im2col" else (places, channels), given[0], y[0])
    return Run(call, [("y", y[1](), want, 0), untouched(y[1])], bytes=x.nbytes + want.nbytes)


def matmul_tma(dev, rng, m, n, k, dtype="f16", between=0, BM=128, BN=128, file="matmul_tma.tile", name=None, cluster=1, **defines):
    a, b = (NARROW[dtype](rng.standard_normal(shape, np.float32)) for shape in ((m, k), (k, n)))
    c = poisoned(dev, (m, n), "f32")
    kern = kernel(dev, file, name, T=dtype, BM=BM, BN=BN, **defines)
    rows = tilec.cdiv(m, BM * cluster) * cluster
    call = launch(kern, (rows, tilec.cdiv(n, BN)), rows_apart(dev, a, dtype, between)[0], rows_apart(dev, b, dtype, between)[0], c)
    return Run(call, [("c", c.numpy(), WIDE[dtype](a) @ WIDE[dtype](b), 1e-5)], flops=2 * m * n * k, dtype=dtype)


def matmul_warpgroups(dev, rng, m, n, k, dtype="f16", between=0, programs=None, name="matmul_cooperative", **defines):
    a, b = (NARROW[dtype](rng.standard_normal(shape, np.float32)) for shape in ((m, k), (k, n)))
    c = rows_apart(dev, np.empty((m, n), np.dtype(tilec.DTYPES[dtype])), dtype, between, empty=True)
    kern = kernel(dev, "matmul_warpgroups.tile", name, T=dtype, **defines)
    call = launch(kern, programs, rows_apart(dev, a, dtype, between)[0], rows_apart(dev, b, dtype, between)[0], c[0], free=bool(programs))
    want = WIDE[dtype](a) @ WIDE[dtype](b)
    return Run(call, [("c", WIDE[dtype](c[1]()), want, ROUNDING[dtype]), untouched(c[1])], flops=2 * m * n * k, dtype=dtype)


PACKED = {"i4": np.arange(16) - 16 * (np.arange(16) > 7), "u4": np.arange(16), "i2": np.array([0, 1, -2, -1]), "i8": np.arange(256).astype(np.int8),
          "f4e2m1": np.array([0, .5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -.5, -1, -1.5, -2, -3, -4, -6])}


def unpacked(words, format):
    """The numbers in rows of u32 words, as float64."""
    bits = len(PACKED[format]).bit_length() - 1
    fields = words[..., None] >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    return PACKED[format][fields.reshape(words.shape[0], -1)].astype(np.float64)


def matmul_w4(dev, rng, m, n, k, W="i4", GROUP=128, zeros=False, **defines):
    per = 32 // (len(PACKED[W]).bit_length() - 1)
    a = rng.standard_normal((m, k), np.float32).astype(np.float16)
    w = rng.integers(0, 1 << 32, (n, k // per), dtype=np.uint32)
    s = (rng.random((n, k // GROUP)) / 8).astype(np.float16)
    c = poisoned(dev, (m, n), "f32")
    z = rng.integers(0, 16, s.shape).astype(np.float16) if zeros else np.zeros_like(s)
    kern = kernel(dev, "matmul_w4.tile", "matmul_w4", TO="f32", W=W, GROUP=GROUP, ZEROS=str(zeros).lower(), **defines)
    d = kern.settings()
    call = launch(kern, tilec.cdiv(m, int(d["BM"])) * tilec.cdiv(n, int(d["BN"])), dev.array(a), dev.array(w), dev.array(s), dev.array(z) if zeros else None, c, m, n, k)
    wide = lambda x: np.repeat(x, GROUP, axis=1).astype(np.float64)
    values = ((unpacked(w, W) - wide(z)) * wide(s)).astype(np.float16)               # one product of f16 numbers
    return Run(call, [("c", c.numpy(), a.astype(np.float64) @ values.T.astype(np.float64), 1e-5)], bytes=4 * w.size + 2 * m * k + 4 * m * n, flops=2 * m * n * k)


def attention_reference(q, k, v, sees, scale, cap=0.0):
    """softmax(q k^T scale) v of one head, in float64; sees: which keys each query does. A query that sees none gives 0."""
    s = q.astype(np.float64) @ k.astype(np.float64).T * scale
    s = np.where(sees, cap * np.tanh(s / cap) if cap else s, -np.inf)
    e = np.exp(s - np.maximum(s.max(1, keepdims=True, initial=-1e30), -1e30))
    return e / np.maximum(e.sum(1, keepdims=True), 1e-300) @ v.astype(np.float64)


def attention_sums(q, k, sees, scale, cap=0.0):
    """Logarithms of the sums of exponentials; -inf of a query that sees nothing."""
    s = q.astype(np.float64) @ k.astype(np.float64).T * scale
    s = np.where(sees, cap * np.tanh(s / cap) if cap else s, -np.inf)
    most = np.maximum(s.max(1, initial=-1e30), -1e30)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(s - most[:, None]).sum(1)) + most


def attention_wgmma(dev, rng, heads, S, D=64, causal=False, dtype="f16", programs=None, **defines):
    (q, qv), (k, kv), (v, vv) = (given(rng, (heads, S, D), dtype) for _ in range(3))
    o = poisoned(dev, q.shape, dtype)
    kern = kernel(dev, "attention_wgmma.tile", "attention_wgmma", T=dtype, D=D, CAUSAL=str(causal).lower(), **defines)
    call = launch(kern, programs, *(dev.array(x, dtype) for x in (q, k, v)), o, D**-0.5, free=bool(programs))
    sees = np.tri(S, dtype=bool) if causal else True
    want = np.stack([attention_reference(*x, sees, D**-0.5) for x in zip(qv, kv, vv)])
    return Run(call, [("o", WIDE[dtype](o.numpy()), want, 4 * ROUNDING[dtype])], flops=4 * heads * S * S * D // (2 if causal else 1), dtype=dtype)


def attention_varlen(dev, rng, queries, keys, heads=4, kv_heads=2, D=64, DV=None, CAUSAL=True, WINDOW=0, CAP=0.0, dtype="f16", BM=64, lse=False, **defines):
    """Also with queries that see nothing. lse: with the logarithms of the sums."""
    DV = DV or D
    (q, qv), (k, kv), (v, vv) = (given(rng, (sum(s), h, d), dtype, z) for s, h, d, z in ((queries, heads, D, 2), (keys, kv_heads, D, 1), (keys, kv_heads, DV, 1)))
    fq, fk = (np.concatenate([[0], np.cumsum(s)]).astype(np.int32) for s in (queries, keys))
    out, sums = poisoned(dev, (sum(queries), heads, DV), dtype), poisoned(dev, (sum(queries), heads), "f32")
    kern = kernel(dev, "attention_varlen.tile", "attention_varlen", T=dtype, D=D, DV=DV, BM=BM, CAUSAL=str(CAUSAL).lower(), WINDOW=WINDOW, CAP=CAP, **defines)
    call = launch(kern, (tilec.cdiv(max(queries), BM), heads, len(queries)), *(dev.array(x, dtype) for x in (q, k, v)), out, dev.array(fq), dev.array(fk),
                  D**-0.5, len(queries), max(queries), heads, kv_heads, sums if lse else None)
    want, want_sums, seen = np.empty(out.shape), np.empty(sums.shape), 0
    for i, (m, n) in enumerate(zip(queries, keys)):
        behind = np.arange(m)[:, None] + n - m - np.arange(n)
        sees = (behind >= 0 if CAUSAL else True) & (behind < WINDOW if WINDOW else True) & np.ones((m, n), bool)
        seen += int(sees.sum())
        for h in range(heads):
            one = qv[fq[i]:fq[i + 1], h], kv[fk[i]:fk[i + 1], h * kv_heads // heads], vv[fk[i]:fk[i + 1], h * kv_heads // heads]
            want[fq[i]:fq[i + 1], h] = attention_reference(*one, sees, D**-0.5, CAP)
            want_sums[fq[i]:fq[i + 1], h] = attention_sums(*one[:2], sees, D**-0.5, CAP)
    some, got = np.isfinite(want_sums), sums.numpy()
    checks = [("lse", got[some], want_sums[some], 1e-5), ("lse of nothing", np.isneginf(got[~some]), np.ones((~some).sum(), bool), 0)] if lse else []
    return Run(call, [("out", WIDE[dtype](out.numpy()), want, 4 * ROUNDING[dtype])] + checks, flops=2 * heads * (D + DV) * seen, dtype=dtype)


def moe(dev, rng, tokens, N, K, EXPERTS=8, TOP=2, BM=16, dtype="bf16", **defines):
    """Both products of a layer of experts, with what is between them left out."""
    logits = rng.permuted(np.tile(np.linspace(-2, 2, EXPERTS, dtype=np.float32), (tokens, 1)), axis=1)
    logits[:, 0] += 3                                                # a favourite, and one that nobody takes
    logits[:, 1] = -9
    weights, chosen = poisoned(dev, (tokens, TOP), "f32"), poisoned(dev, (tokens, TOP), "i32")
    launch(kernel(dev, "moe.tile", "route", EXPERTS=EXPERTS, TOP=TOP), tilec.cdiv(tokens, 4), dev.array(logits), weights, chosen, tokens)
    pairs, most = tokens * TOP, tilec.cdiv(tokens * TOP, BM) + EXPERTS
    order, expert_of, blocks = poisoned(dev, most * BM, "i32"), poisoned(dev, most, "i32"), poisoned(dev, 1, "i32")
    launch(kernel(dev, "moe.tile", "sort_by_expert", EXPERTS=EXPERTS, BM=BM), 1, chosen, order, expert_of, blocks, pairs)
    a, b, d = (NARROW[dtype](rng.standard_normal(shape, np.float32)) for shape in ((tokens, K), (EXPERTS, N, K), (EXPERTS, K, N)))
    c, e = poisoned(dev, (pairs, N), dtype), poisoned(dev, (pairs, K), dtype)
    first = kernel(dev, "moe.tile", "experts", T=dtype, SHARED=TOP, BM=BM, **defines)
    second = kernel(dev, "moe.tile", "experts", T=dtype, WEIGH="true", BM=BM, **defines)
    table = (weights, order, expert_of, blocks, EXPERTS, pairs)
    width = int(first.settings()["BN"])
    call = launch(first, most * tilec.cdiv(N, width), dev.array(a, dtype), dev.array(b, dtype), c, *table, N, K)
    launch(second, most * tilec.cdiv(K, width), c, dev.array(d, dtype), e, *table, K, N)
    want = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
    share = softmax_reference(np.take_along_axis(logits, want, 1))
    ran = order.numpy()[: int(blocks.numpy()[0]) * BM]
    got = WIDE[dtype](c.numpy())

    def products(x, w):
        """Row i of x times the matrix of its expert, one expert at a time."""
        out = np.empty((pairs, w.shape[1]))
        for expert in range(EXPERTS):
            mine = want.ravel() == expert
            out[mine] = x[mine] @ WIDE[dtype](w[expert]).T
        return out
    return Run(call, [("chosen", chosen.numpy(), want.astype(np.int32), 0), ("weights", weights.numpy(), share, 1e-6),
                      ("order", np.sort(ran[ran < pairs]), np.arange(pairs, dtype=np.int32), 0),
                      ("c", got, products(np.repeat(WIDE[dtype](a), TOP, 0), b), 2 * ROUNDING[dtype]),
                      ("e", WIDE[dtype](e.numpy()), products(got, d) * share.reshape(pairs, 1), 2 * ROUNDING[dtype])], flops=2 * pairs * N * K, dtype=dtype)


def moe_layer(dev, rng, tokens, K, inner, EXPERTS=8, TOP=2, BM=128, dtype="bf16", BLOCK=256, **defines):
    """A layer of experts from the scores on, with the products of grouped_rows.tile."""
    logits = rng.standard_normal((tokens, EXPERTS), np.float32)
    logits[:, 0] += 3
    logits[:, 1] = -9
    pairs, dev = tokens * TOP, few(dev)
    x, gate, down = (NARROW[dtype](rng.standard_normal(s, np.float32) / s[-1]**0.5) for s in ((tokens, K), (EXPERTS, 2 * inner, K), (EXPERTS, K, inner)))
    X, G, W = (WIDE[dtype](v).astype(np.float64) for v in (x, gate, down))
    i32 = lambda *s: poisoned(dev, s, "i32")
    weights, chosen, counts = poisoned(dev, (tokens, TOP), "f32"), i32(tokens, TOP), i32(tilec.cdiv(pairs, BLOCK), EXPERTS)
    row_of, token_of, ends, plan, blocks = i32(pairs), i32(pairs), i32(EXPERTS), i32(tilec.cdiv(pairs, BM) + EXPERTS, 3), i32(1)
    rows, h, y, out = (poisoned(dev, s, dtype) for s in ((pairs, K), (pairs, inner), (pairs, K), (tokens, K)))
    of, part, grid = dict(EXPERTS=EXPERTS, TOP=TOP), dict(EXPERTS=EXPERTS, BLOCK=BLOCK), tilec.cdiv(pairs, BM) + EXPERTS
    load = lambda name, file="moe.tile", **m: kernel(dev, file, name, **m)
    launch(load("route", **of), tilec.cdiv(tokens, 4), dev.array(logits), weights, chosen, tokens)
    launch(load("count_experts", **part), tilec.cdiv(pairs, BLOCK), chosen, counts, pairs)
    launch(load("place_pairs", TOP=TOP, **part), tilec.cdiv(pairs, BLOCK), chosen, counts, row_of, token_of, ends, pairs)
    launch(load("plan_rows", "grouped_rows.tile", BM=BM), 1, ends, plan, blocks, EXPERTS)
    launch(load("gather_rows", T=dtype), tilec.cdiv(pairs, 4), dev.array(x, dtype), token_of, rows, pairs, K)
    first = load("grouped_rows_gated", "grouped_rows.tile", T=dtype, BM=BM, **defines)
    call = launch(first, grid * tilec.cdiv(inner, int(first.settings()["BN"])), rows, dev.array(gate.reshape(-1, K), dtype), h, plan, blocks, inner)
    second = load("grouped_rows", "grouped_rows.tile", T=dtype, BM=BM, **defines)
    launch(second, grid * tilec.cdiv(K, int(second.settings()["BN"])), h, dev.array(down.reshape(-1, inner), dtype), y, plan, blocks, K)
    launch(load("combine", T=dtype, TOP=TOP), (tokens, tilec.cdiv(K, 1024)), y, weights, row_of, out, tokens, K)
    want_chosen = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
    share, want, middle = softmax_reference(np.take_along_axis(logits, want_chosen, 1)), np.zeros((tokens, K)), np.empty((pairs, inner))
    order = np.argsort(want_chosen.ravel(), kind="stable")
    for row, pair in enumerate(order):
        expert, token = want_chosen.ravel()[pair], pair // TOP
        g, up = np.split(G[expert] @ X[token], 2)
        middle[row] = g / (1 + np.exp(-g)) * up
        want[token] += share.ravel()[pair] * (W[expert] @ middle[row])
    place = np.empty(pairs, np.int32)
    place[order] = np.arange(pairs)
    return Run(call, [("row_of", row_of.numpy(), place, 0), ("token_of", token_of.numpy(), (order // TOP).astype(np.int32), 0),
                      ("ends", ends.numpy(), np.cumsum(np.bincount(want_chosen.ravel(), minlength=EXPERTS)).astype(np.int32), 0),
                      ("h", WIDE[dtype](h.numpy()), middle, 2 * ROUNDING[dtype]), ("out", WIDE[dtype](out.numpy()), want, 4 * ROUNDING[dtype])],
               flops=4 * pairs * inner * K, dtype=dtype)


def matmul_grouped(dev, rng, sizes, programs=None, name="matmul_grouped", **defines):
    a, b = [given(rng, (m, k), "f16") for m, n, k in sizes], [given(rng, (k, n), "f16") for m, n, k in sizes]
    buffers = [(dev.array(x[0]), dev.array(y[0]), poisoned(dev, s[:2], "f16")) for x, y, s in zip(a, b, sizes)]
    addresses = dev.array(np.array([x.data_ptr() for three in buffers for x in three], np.int64))
    kern = kernel(dev, "matmul_grouped.tile", name, **defines)
    maps = [poisoned(dev, 384 * (programs or dev.sms), "u8")] if name == "grouped_boxes" else []
    call = launch(kern, programs, addresses, dev.array(np.array(sizes, np.int32)), *maps, len(sizes), free=bool(programs))
    call.keep = buffers                              # the kernel knows their addresses alone
    return Run(call, [(f"c{i}", c.numpy().astype(np.float64), x[1] @ y[1], ROUNDING["f16"]) for i, ((_, _, c), x, y) in enumerate(zip(buffers, a, b))],
               flops=2 * sum(m * n * k for m, n, k in sizes))


def grouped_rows(dev, rng, counts, N, K, dtype="bf16", scaled=False, TO="bf16", BM=128, BN=128, **defines):
    """Experts with so many rows each; scaled: quantised, one scale for 128 columns of a row, for 128 x 128 of an expert's matrix."""
    rows, experts, groups = sum(counts), len(counts), tilec.cdiv(K, 128)
    dev, wide = few(dev), lambda v: fp8_values(v, dtype) if scaled else WIDE[dtype](v)
    a, b = (fp8_bits(v, dtype) if scaled else NARROW[dtype](v) for v in (rng.standard_normal(s, np.float32) for s in ((rows, K), (experts, N, K))))
    A, B = wide(a).astype(np.float64), wide(b).astype(np.float64)
    ends, plan, blocks = dev.array(np.cumsum(counts, dtype=np.int32)), poisoned(dev, 3 * (tilec.cdiv(rows, BM) + experts), "i32"), poisoned(dev, 1, "i32")
    launch(kernel(dev, "grouped_rows.tile", "plan_rows", BM=BM), 1, ends, plan, blocks, experts)
    c = poisoned(dev, (rows, N), TO if scaled else dtype)
    grid = (tilec.cdiv(rows, BM) + experts) * tilec.cdiv(N, BN)
    matrices = dev.array(a, dtype), dev.array(b.reshape(experts * N, K), dtype)
    if scaled:
        sa, sb = (rng.uniform(0.5, 2, s).astype(np.float32) for s in ((groups, rows), (experts, tilec.cdiv(N, 128), groups)))
        kern = kernel(dev, "grouped_rows.tile", "grouped_rows_scaled", T=dtype, TO=TO, BM=BM, BN=BN, **defines)
        call = launch(kern, grid, matrices[0], dev.array(sa), matrices[1], dev.array(sb), c, plan, blocks, N)
        A, B = A * spread(sa.T, (rows, K), 1, 128), B * np.repeat(np.repeat(sb, 128, 1)[:, :N], 128, 2)[:, :, :K]
    else:
        call = launch(kernel(dev, "grouped_rows.tile", "grouped_rows", T=dtype, BM=BM, BN=BN, **defines), grid, *matrices, c, plan, blocks, N)
    want = np.concatenate([A[sum(counts[:e]):sum(counts[:e + 1])] @ B[e].T for e in range(experts)])
    return Run(call, [("c", WIDE[TO if scaled else dtype](c.numpy()), want, 4e-3 if scaled else 2 * ROUNDING[dtype])], flops=2 * rows * N * K, dtype=dtype)


def sample_gumbel(dev, rng, rows, n, dtype="f32", **defines):
    """The tokens that the same random numbers give in float64; rows of temperature 0 take the largest."""
    x, v = given(rng, (rows, n), dtype, 3)
    t, seeds, out = rng.choice([0.0, 0.5, 1.0, 2.0], rows).astype(np.float32), rng.integers(0, 1 << 62, rows), poisoned(dev, rows, "i32")
    call = launch(kernel(dev, "sampling.tile", "sample_gumbel", T=dtype, **defines), rows, dev.array(x, dtype), dev.array(t), dev.array(seeds), out, rows, n)
    i, token = np.arange(n, dtype=np.uint64), np.empty(rows, np.int32)
    for r in range(rows):
        u = (np.stack(philox(i >> np.uint64(2), int(seeds[r])))[(i & np.uint64(3)).astype(np.int64), np.arange(n)] >> np.uint64(8)) * 2.0**-24 + 2.0**-25
        token[r] = np.argmax(v[r] / t[r] - np.log(-np.log1p(-u)) if t[r] else v[r])
    return Run(call, [("tokens", out.numpy(), token, 0)], bytes=x.nbytes)


def uniform_words(n, seed):
    """What rand_row gives for elements 0 to n - 1, in the middle of its 2^-24."""
    i = np.arange(n, dtype=np.uint64)
    return (np.stack(philox(i >> np.uint64(2), int(seed)))[(i & np.uint64(3)).astype(np.int64), np.arange(n)] >> np.uint64(8)) * 2.0**-24 + 2.0**-25


def sample_kept(dev, rng, rows, n, dtype="f32", least=True, k=True, p=True, distinct=None, **defines):
    """Temperature, min_p, top_k and top_p by row, equal logits together; what is kept is drawn from by the same random numbers."""
    x, v = given(rng, (rows, n), dtype, 3)
    if distinct:
        x = x[:, rng.integers(0, distinct, n)]
        v = WIDE[dtype](x)
    t = rng.choice([0.0, 0.5, 1.0, 2.0], rows).astype(np.float32)
    min_p, top_p = rng.uniform(0, 0.02, rows).astype(np.float32), rng.choice([0.3, 0.9, 0.99, 1.0], rows).astype(np.float32)
    top_k, seeds, out = rng.choice([0, 1, 7, 50, n // 2, n], rows).astype(np.int32), rng.integers(0, 1 << 62, rows), poisoned(dev, rows, "i32")
    kern = kernel(dev, "sampling.tile", "sample_kept", T=dtype, **defines)
    given_or_none = [dev.array(a) if there else None for a, there in ((min_p, least), (top_k, k), (top_p, p))]
    call = launch(kern, rows, dev.array(x, dtype), dev.array(t), dev.array(seeds), out, rows, n, *given_or_none)
    token = np.empty(rows, np.int32)
    for r in range(rows):
        y = (v[r].astype(np.float32) * (np.float32(1) / t[r] if t[r] else np.float32(1))).astype(np.float64)
        share = softmax_reference(y[None])[0]
        kept = y.max() - y < 64
        if least:
            kept &= y - y.max() >= np.log(np.float64(min_p[r]))
        if k and 0 < top_k[r] < n:
            last = np.sort(np.where(kept, y, -np.inf))[::-1][top_k[r] - 1]
            kept &= y >= last
        if p and top_p[r] < 1:
            there = np.where(kept, share, 0)
            order = np.argsort(-y, kind="stable")
            upto = np.cumsum(there[order])
            kept &= y >= y[order][np.argmax(upto >= np.float64(top_p[r]) * there.sum())]
        token[r] = np.argmax(np.where(kept, y - np.log(-np.log1p(-uniform_words(n, seeds[r]))), -np.inf) if t[r] else v[r])
    return Run(call, [("tokens", out.numpy(), token, 0)], bytes=x.nbytes)


def sample_top(dev, rng, rows, n, K=16, dtype="f32", **defines):
    x, v = given(rng, (rows, n), dtype, 2)
    t, p, seeds, out = rng.uniform(0.3, 2, rows).astype(np.float32), rng.uniform(0.05, 1, rows).astype(np.float32), rng.integers(0, 1 << 62, rows), poisoned(dev, rows, "i32")
    kern = kernel(dev, "sampling.tile", "sample_top", T=dtype, N=pow2_above(max(n, K)), K=K, **defines)
    call = launch(kern, rows, dev.array(x, dtype), dev.array(t), dev.array(p), dev.array(seeds), out, rows, n)
    best = np.argsort(-v, axis=1, kind="stable")[:, :K]
    share = softmax_reference(np.take_along_axis(v, best, 1) / t[:, None])
    kept = np.where(np.cumsum(share, 1) - share < p[:, None], share, 0)
    u = np.array([(int(philox(np.zeros(1, np.uint64), int(s))[0][0]) >> 8) * 2.0**-24 for s in seeds])
    place = np.minimum((np.cumsum(kept, 1) <= (u * kept.sum(1))[:, None]).sum(1), (kept > 0).sum(1) - 1)
    return Run(call, [("tokens", out.numpy(), best[np.arange(rows), place].astype(np.int32), 0)], bytes=x.nbytes)


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


ORDERS = ("sort_rows", "argsort_rows", "top_rows", "topk_rows", "cumsum_rows", "gather_rows", "recurrence_rows")
CASES = [
    Case("vector_add", vector_add, [dict(n=98432), dict(n=1), dict(n=1000)], [dict(n=1 << 27), dict(n=98432), dict(n=1)]),
    Case("softmax", softmax, [dict(rows=1823, n=781), dict(rows=3, n=1), dict(rows=5, n=256, warps=1), dict(rows=4, n=4096, warps=8)] + grid(rows=(5,), n=(100, 1024), dtype=("f16", "bf16")),
         [dict(rows=8192, n=4096, warps=8), dict(rows=1823, n=781)] + grid(rows=(8192,), n=(256, 781, 1024, 2048, 4096, 8192, 16384), warps=(4, 8)) + grid(rows=(1000,), n=(100, 1024, 16384), dtype=("f16", "bf16"))),
    Case("softmax_cluster", rows_in_clusters, [dict(rows=3, n=3000, BLOCK=1024), dict(rows=2, n=1, C=2, BLOCK=128), dict(rows=5, n=700, C=1, BLOCK=1024)] +
         grid(rows=(2,), n=(1000,), C=(3, 8), BLOCK=(512,), dtype=("f16", "bf16")) + grid(rows=(7,), n=(900, 2048), C=(2,), BLOCK=(1024,), dtype=("f32", "f16"), clusters=(2,), STAGES=(1, 2)),
         grid(rows=(1000,), n=(30000, 65536), C=(4, 8), BLOCK=(16384,), dtype=("f32", "f16")) + grid(rows=(1000,), n=(65536,), C=(8,), BLOCK=(8192,), dtype=("f32", "f16"), clusters=(16, 32), STAGES=(1, 2))),
    Case("cross_entropy_cluster", cross_entropy, [dict(rows=9, n=3000, BLOCK=1024, C=4, clusters=0), dict(rows=7, n=500, BLOCK=512, C=2, clusters=2, smoothing=0.1, dtype="f32"),
                                                 dict(rows=3, n=600, BLOCK=1024, C=1, clusters=0, dtype="f16")],
         [dict(rows=512, n=128256, BLOCK=16384, C=8, warps=16, clusters=0), dict(rows=300, n=65000, BLOCK=16384, C=4, warps=16, clusters=33), dict(rows=64, n=262144, BLOCK=32768, C=8, warps=32, clusters=0, smoothing=0.1)]),
    Case("norm_cluster", rows_in_clusters, [dict(kind=kind, rows=3, n=3000, BLOCK=1024) for kind in ("layer_norm", "rms_norm")] +
         grid(kind=("layer_norm", "rms_norm"), rows=(2,), n=(1000,), C=(2, 8), BLOCK=(512,), dtype=("f16",)) +
         grid(kind=("layer_norm", "rms_norm"), rows=(5,), n=(1500,), C=(4,), BLOCK=(512,), dtype=("bf16",), clusters=(2,), STAGES=(1, 2)) +
         grid(kind=("layer_norm", "rms_norm", "softmax"), rows=(3,), n=(30000,), C=(2,), BLOCK=(16384,), dtype=("bf16",), clusters=(1,), STAGES=(2,), warps=(8,)),
         grid(kind=("layer_norm", "rms_norm"), rows=(1000,), n=(30000,), C=(4, 8), dtype=("f32", "f16"), clusters=(None, 16), STAGES=(1, 2))),
    Case("softmax_persistent", lambda dev, rng, stages=1, **s: softmax(dev, rng, name="softmax_persistent", STAGES=stages, **s),
         [dict(rows=300, n=781), dict(rows=1823, n=128), dict(rows=300, n=781, stages=3), dict(rows=1823, n=128, stages=2)],
         [dict(rows=8192, n=4096, stages=2), dict(rows=1823, n=781)] + grid(rows=(8192,), n=(256, 4096, 16384))),
    Case("softmax_blocks", lambda dev, rng, **s: softmax(dev, rng, name="softmax_blocks", **s),
         grid(rows=(3,), n=(5000, 1, 1000), LANES=(512,), DEEP=(2,), dtype=("f32", "bf16")), grid(rows=(500,), n=(128256, 1000, 1), dtype=("f32", "f16", "bf16"))),
    Case("softmax_backward", softmax_backward, grid(rows=(7,), n=(781, 128), dtype=("f32", "f16", "bf16")), [dict(rows=8192, n=4096, dtype="bf16", warps=8)] + grid(rows=(1000,), n=(781, 4096), dtype=("f32", "f16", "bf16"))),
    Case("softmax_backward_blocks", lambda dev, rng, **s: softmax_backward(dev, rng, blocks=True, **s),
         grid(rows=(3,), n=(5000, 1, 1000), LANES=(512,), DEEP=(2,), dtype=("f32", "bf16")), grid(rows=(500,), n=(128256, 1000, 1), dtype=("f32", "f16", "bf16"))),
    Case("norm_backward_blocks", lambda dev, rng, **s: norm_backward(dev, rng, blocks=True, **s),
         grid(norm=("layer_norm", "rms_norm"), rows=(5,), n=(3000, 1000), LANES=(256,), DEEP=(2,), dtype=("f16", "f32"), programs=(1, 2)),
         grid(norm=("layer_norm", "rms_norm"), rows=(500,), n=(100000, 1000), dtype=("f16", "bf16", "f32"), programs=(8,))),
    Case("layer_norm", layer_norm, [dict(rows=512, n=1024), dict(rows=7, n=781), dict(rows=3, n=4096, warps=8)] + grid(rows=(3,), n=(100,), dtype=("bf16", "f32"), offset=(1.0, 100.0)),
         grid(rows=(8192,), n=(1024, 4096, 8192, 16384, 781), warps=(8, 4)) + grid(rows=(1000,), n=(100, 2048), dtype=("bf16", "f32"))),
    Case("layer_norm_blocks", lambda dev, rng, **s: layer_norm(dev, rng, name="layer_norm_blocks", **s),
         grid(rows=(3,), n=(3000, 1, 1000), LANES=(256,), DEEP=(2,), dtype=("f16", "f32")) + [dict(rows=3, n=3000, dtype="f32", offset=100.0)], grid(rows=(500,), n=(100000, 1000, 1), dtype=("f16", "bf16", "f32"))),
    Case("layer_norm_backward", norm_backward, grid(rows=(37,), n=(100, 128), dtype=("f16", "bf16", "f32"), programs=(3,), ROWS=(1, 4)) + grid(rows=(9,), n=(512,), programs=(2,), STAGES=(2, 3)),
         [dict(rows=8192, n=4096, warps=8)] + grid(rows=(1000,), n=(100, 781, 1024), dtype=("f16", "bf16", "f32"), ROWS=(1, 4)) + grid(rows=(1000,), n=(4096,), STAGES=(2, 3), warps=(8,))),
    Case("layer_norm_backward_long", lambda dev, rng, **s: norm_backward(dev, rng, long=True, **s),
         grid(rows=(7,), n=(1000, 1024), dtype=("f16", "bf16", "f32"), programs=(2,), BUFFERS=(2, 3)), grid(rows=(1000,), n=(16384, 8192), dtype=("f16", "bf16"), warps=(16,)) + [dict(rows=1000, n=2000, dtype="f32", BUFFERS=3)]),
    Case("column_sums", column_sums_alone, grid(parts=(2,), rows=(100,), n=(1000,), ROWS=(16, 64), COLS=(16, 32, 64), warps=(2, 8)) + [dict(parts=1, rows=3, n=5, dtype="bf16")],
         [dict(parts=2, rows=264, n=4096)] + grid(parts=(2,), rows=(100,), n=(1000,), ROWS=(16, 64), COLS=(16, 64), warps=(2, 8), dtype=("f32", "f16"))),
    Case("rms_norm", rms_norm, grid(rows=(5,), n=(100, 1024), dtype=("bf16", "f16", "f32"), add=(False, True)) + grid(rows=(3,), n=(1, 3000), LANES=(256,), DEEP=(2,), dtype=("bf16", "f32"), blocks=(True,)), [dict(rows=8192, n=4096, warps=8)] + grid(rows=(1000,), n=(781, 8192), dtype=("bf16", "f16", "f32"), add=(False, True)) + [dict(rows=500, n=100000, blocks=True)]),
    Case("decode", decode, [dict(m=3, d=256, f=320, again=1), dict(m=16, d=136, f=200, BK=64, STAGES=3), dict(m=1, d=64, f=64, STAGES=2, dtype="f16")],
         [dict(m=8, d=4096, f=14336), dict(m=1, d=4096, f=4096, pdl=False)] + grid(m=(1, 5, 16), d=(4096,), f=(4096,), dtype=("f16", "bf16"), again=(3,))),
    Case("rms_norm_backward", lambda dev, rng, **s: norm_backward(dev, rng, norm="rms_norm", **s),
         grid(rows=(37,), n=(100, 128), dtype=("f16", "bf16", "f32"), programs=(3,), ROWS=(1, 4)) + grid(rows=(9,), n=(512,), programs=(2,), STAGES=(2, 3)) +
         grid(rows=(7,), n=(1000,), dtype=("bf16", "f32"), programs=(2,), BUFFERS=(2, 3), long=(True,)),
         [dict(rows=8192, n=4096, warps=8)] + grid(rows=(1000,), n=(100, 781, 1024), dtype=("f16", "bf16", "f32"), ROWS=(1, 4)) + grid(rows=(1000,), n=(8192, 16384), dtype=("f16", "bf16"), warps=(16,), long=(True,))),
    Case("cross_entropy", cross_entropy, grid(rows=(9,), n=(1000, 10, 5000), dtype=("bf16", "f16", "f32"), smoothing=(0.0, 0.1), LANES=(512,), DEEP=(2,)) + [dict(rows=9, n=100, ignore=3), dict(rows=9, n=1001, fused=True)] +
         grid(rows=(9,), n=(512,), smoothing=(0.0, 0.2), fused=(True,), dtype=("bf16", "f32")) + grid(rows=(9,), n=(100, 1001), smoothing=(0.0, 0.1), row=(True,), dtype=("bf16", "f32")),
         [dict(rows=8192, n=16384, warps=8)] + grid(rows=(1000,), n=(1001, 16384), row=(True,), warps=(8,)) + grid(rows=(1000,), n=(1000, 128256), dtype=("bf16", "f16", "f32"), smoothing=(0.0, 0.1)) + grid(rows=(1000,), n=(1001, 16384), dtype=("bf16", "f16"), smoothing=(0.0, 0.1), fused=(True,), warps=(16,))),
    Case("rotary", rotary, grid(tokens=(5,), heads=(3, 16), d=(64, 96), interleaved=(False, True), dtype=("bf16", "f16", "f32"), positions=(3,)),
         [dict(tokens=8192, heads=32, d=128)] + grid(tokens=(1000,), heads=(3, 32), d=(128, 96), interleaved=(False, True), dtype=("bf16", "f16", "f32"), positions=(256,))),
    Case("dropout", dropout, grid(n=(10000, 8), dtype=("f16", "bf16", "f32"), each=(False, True)) + [dict(n=3000, p=1e-9), dict(n=3001, p=0.9, seed=1 << 40)],
         [dict(n=1 << 26)] + grid(n=(100001,), dtype=("f16", "bf16", "f32"), each=(False, True))),
    Case("transpose", transpose, [dict(m=1280, n=640), dict(m=77, n=130), dict(m=64, n=64, BM=32, BN=32)], [dict(m=12800, n=12800), dict(m=77, n=12801)]),
    Case("matmul", matmul, [dict(m=256, n=256, k=256)] + grid(m=(100,), n=(72,), k=(50,), dtype=("f16", "bf16", "f32"), a_t=(False, True), b_t=(False, True), BM=(64,), BN=(64,)) +
         [dict(m=100, n=72, k=64, dtype="f32", b_t=True, BM=64, BN=64, PRECISION='"tf32_cut"')] +
         grid(m=(64,), n=(256,), k=(136,), dtype=("f16", "bf16", "f32"), b_t=(False, True), BM=(64,), BN=(128,), warps=(8, 16)) +
         [dict(m=130, n=130, k=72, BM=128, BN=64, warps=16)] +
         grid(m=(144,), n=(112,), k=(208,), dtype=("i8",), a_t=(False, True), b_t=(False, True), swap=(False, True), BM=(64,), BN=(64,), BK=(64,), warps=(4,)) +
         [dict(m=70, n=50, k=77, dtype="i8", BM=64, BN=64)],
         [dict(m=4096, n=4096, k=4096)] + grid(m=(1000,), n=(520,), k=(777,), dtype=("f16", "bf16", "f32"), a_t=(False, True), b_t=(False, True)) +
         [dict(m=1000, n=520, k=784, dtype="f32", b_t=True, PRECISION='"tf32_cut"'), dict(m=1000, n=520, k=777, dtype="i8")] +
         grid(m=(1008,), n=(528,), k=(1040,), dtype=("i8",), a_t=(False, True), b_t=(False, True), swap=(False, True), BN=(256,), BK=(128,))),
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
    Case("matmul_teams", lambda dev, rng, **s: matmul_shared(dev, rng, name="matmul_teams", file="matmul_teams.tile", **s),
         [dict(m=128, n=128, k=128), dict(m=100, n=72, k=0, BM=64, BN=64)] + grid(m=(100,), n=(72,), k=(24, 136, 200), BM=(64,), BN=(64,), STAGES=(2, 3), WARPS=(4, 8)),
         grid(m=(4096,), n=(4096,), k=(4096,), STAGES=(3, 4, 5)) + [dict(m=1000, n=520, k=776)]),
    Case("memcpy_tma", memcpy_tma, [dict(n=9844), dict(n=4), dict(n=1000, BLOCK=256)], [dict(n=1 << 27), dict(n=98432), dict(n=4)]),
    Case("copy_boxes", copy_boxes, [dict(m=200, n=264)] + grid(m=(37,), n=(136,), dtype=("f16", "bf16", "f32"), between=(0, 5), BM=(16,), BN=(64,)) + [dict(m=70, n=400, BN=192), dict(m=20, n=100, dtype="f32", BM=8, BN=24)] + grid(m=(37,), n=(144,), dtype=("f8e4m3", "f8e5m2", "i8", "u16", "i32", "i64", "f64"), between=(16,), BM=(16,), BN=(64,)),
         [dict(m=16384, n=16384)] + grid(m=(1000,), n=(2024,), dtype=("f16", "bf16", "f32"), between=(0, 5))),
    Case("transpose_tma", transpose_tma, [dict(m=200, n=264)] + grid(m=(40, 64), n=(133,), dtype=("f16", "f32"), between=(0, 5), BLOCK=(32,)) + grid(m=(48,), n=(67,), dtype=("f8e4m3", "u8", "bf16", "i32", "i64", "f64"), BLOCK=(32,)),
         [dict(m=12800, n=12800)] + grid(m=(1000,), n=(2021,), dtype=("f16", "f32"), between=(0, 5))),
    Case("im2col", im2col, [dict(n=2, h=9, w=7, c=72)] + grid(n=(3,), h=(8,), w=(9,), c=(40,), STRIDE=(1, 2), PAD=(0, 2), DILATION=(1, 2), BP=(32,), BC=(32,)) +
         [dict(n=2, h=5, w=1, c=16, R=1, S=1, PAD=0, BP=16, BC=8), dict(n=1, h=11, w=6, c=24, dtype="f32", R=5, S=2, STRIDE=3, PAD=2, BP=16, BC=64, between=1), dict(n=1, h=3, w=3, c=20, dtype="bf16", between=5)],
         [dict(n=32, h=56, w=56, c=64), dict(n=8, h=57, w=55, c=136, STRIDE=2, PAD=3, DILATION=2, between=8)]),
    Case("im2col_copies", lambda dev, rng, **s: im2col(dev, rng, name="im2col_copies", **s), [dict(n=2, h=9, w=7, c=72)] + grid(n=(3,), h=(8,), w=(9,), c=(40,), STRIDE=(1, 2), PAD=(0, 2), DILATION=(1, 2), BP=(32,), BC=(32,), SLOTS=(2, 4)),
         [dict(n=32, h=56, w=56, c=64), dict(n=8, h=57, w=55, c=136, STRIDE=2, PAD=3, DILATION=2, SLOTS=4)]),
    Case("matmul_tma", matmul_tma, [dict(m=128, n=128, k=128)] + grid(m=(100,), n=(72,), k=(24, 136, 200), between=(0, 3), BM=(64,), BN=(64,), STAGES=(2, 3), WARPS=(4,)),
         grid(m=(4096,), n=(4096,), k=(4096,), STAGES=(3, 4, 5)) + [dict(m=1000, n=520, k=776), dict(m=1000, n=519, k=777, between=3, dtype="bf16")]),
    Case("matmul_wgmma", lambda dev, rng, BN=256, **s: matmul_shared(dev, rng, name="matmul_wgmma", file="matmul_wgmma.tile", BN=BN, **s),
         [dict(m=128, n=128, k=128, BN=128), dict(m=100, n=72, k=0, BN=64)] + grid(m=(200,), n=(72,), k=(24, 136, 200), BN=(64,), STAGES=(3, 5)),
         grid(m=(4096,), n=(4096,), k=(4096,), BN=(128, 256), STAGES=(3, 4)) + [dict(m=1000, n=520, k=776)]),
    Case("matmul_wgmma_tma", lambda dev, rng, BN=256, **s: matmul_tma(dev, rng, file="matmul_wgmma.tile", name="matmul_wgmma_tma", BN=BN, **s),
         [dict(m=128, n=128, k=128, BN=128)] + grid(m=(200,), n=(72,), k=(24, 136, 200), between=(0, 3), BN=(64,), STAGES=(2, 3)),
         grid(m=(4096,), n=(4096,), k=(4096,), BN=(128, 256), STAGES=(3, 4)) + [dict(m=1000, n=520, k=776), dict(m=1000, n=519, k=777, between=3, dtype="bf16")]),
    Case("matmul_cluster", lambda dev, rng, BN=256, **s: matmul_tma(dev, rng, file="matmul_cluster.tile", BN=BN, cluster=2, **s),
         [dict(m=128, n=128, k=128, BN=128)] + grid(m=(200,), n=(72,), k=(24, 200), between=(0, 3), BN=(64,), STAGES=(2, 3)),
         grid(m=(4096, 8192), n=(4096, 8192), k=(4096, 8192), BN=(256,), STAGES=(3, 4)) + [dict(m=1000, n=520, k=776), dict(m=1000, n=519, k=777, between=3, dtype="bf16")]),
    Case("matmul_cooperative", matmul_warpgroups, [dict(m=300, n=320, k=200, programs=2), dict(m=700, n=320, k=200, BN=128, CLUSTER=2, programs=4)] +
         grid(m=(200,), n=(200,), k=(24, 264), between=(0, 3), BN=(64,), STAGES=(2, 3), programs=(3,)) + [dict(m=200, n=136, k=72, BN=128, dtype="bf16", CONSUMERS=consumers, programs=1) for consumers in (1, 3)],
         grid(m=(4096,), n=(4096,), k=(4096,), CONSUMERS=(1, 2), CLUSTER=(1, 2)) + [dict(m=1000, n=520, k=776, between=3, dtype="bf16"), dict(m=1000, n=520, k=776, CONSUMERS=3, BN=128)]),
    Case("matmul_deferred", lambda dev, rng, **s: matmul_warpgroups(dev, rng, name="matmul_deferred", **s), [dict(m=300, n=320, k=200, programs=2), dict(m=300, n=320, k=300, CLUSTER=2, programs=4)] +
         [dict(m=200, n=320, k=200, BEHIND=behind, programs=1) for behind in (1, 3, 4)] +
         grid(m=(200,), n=(200,), k=(24, 264), between=(0, 3), BN=(128,), programs=(1, 3)), [dict(m=4096, n=4096, k=4096), dict(m=1000, n=520, k=776, between=3, dtype="bf16")]),
    Case("matmul_stolen", lambda dev, rng, **s: matmul_warpgroups(dev, rng, name="matmul_stolen", **s), [dict(m=300, n=320, k=200, programs=2)] +
         grid(m=(200,), n=(200,), k=(24, 264), between=(0, 3), BN=(64,), programs=(1, 3)) + [dict(m=200, n=400, k=100, BN=192, STAGES=5, programs=1)],
         [dict(m=4096, n=4096, k=4096), dict(m=1000, n=520, k=776, between=3, dtype="bf16")]),
    Case("matmul_pingpong", lambda dev, rng, **s: matmul_warpgroups(dev, rng, name="matmul_pingpong", **s), [dict(m=300, n=320, k=200, programs=2), dict(m=300, n=320, k=200, CLUSTER=2, programs=2), dict(m=600, n=400, k=200, ROWS=128, BN=128, CLUSTER=2, programs=4)] +
         grid(m=(200,), n=(200,), k=(24, 264), between=(0, 3), BN=(64,), STAGES=(2, 3), programs=(1, 3)) + [dict(m=300, n=200, k=72, ROWS=128, BN=128, programs=1), dict(m=300, n=400, k=200, ROWS=128, BN=192, programs=1)],
         grid(m=(4096,), n=(4096,), k=(4096,), ROWS=(64, 128), BN=(128, 192), STAGES=(4,)) + [dict(m=4096, n=4096, k=1024, ROWS=128, BN=192, STAGES=5, OUT=1)] + [dict(m=1000, n=520, k=776, between=3, dtype="bf16")]),
    Case("matmul_w4", matmul_w4, [dict(m=64, n=256, k=256), dict(m=5, n=72, k=256, BM=8, BN=64), dict(m=5, n=72, k=128, GROUP=64, BM=8, BN=64, W="u4", zeros=True)] + grid(m=(40,), n=(72,), k=(192,), W=("i4", "u4", "i2", "i8", "f4e2m1"), GROUP=(64,), BM=(32,), BN=(64,), BK=(64,)) +
         grid(m=(16,), n=(64,), k=(128,), BM=(16,), BN=(64,), BK=(128,), STAGES=(1, 2)), [dict(m=4096, n=4096, k=4096), dict(m=16, n=4096, k=4096, BM=16, BN=128, BK=128)] +
         grid(m=(1000,), n=(520,), k=(768,), W=("i4", "u4", "i2", "i8", "f4e2m1"), GROUP=(128,))),
    Case("attention_varlen", attention_varlen, [dict(queries=(100, 1, 37), keys=(100, 70, 37))] +
         [dict(queries=(50, 70), keys=(50, 90), WINDOW=20, CAP=5.0), dict(queries=(9, 20), keys=(40, 5), CAUSAL=False, D=128, dtype="bf16"), dict(queries=(20,), keys=(5,), BM=16),
          dict(queries=(70, 20), keys=(70, 5), D=96, lse=True), dict(queries=(70, 9), keys=(100, 40), D=192, DV=128, lse=True, dtype="bf16"), dict(queries=(33,), keys=(99,), heads=2, kv_heads=1, D=256, WINDOW=20, CAP=5.0, lse=True),
          dict(queries=(130, 20), keys=(150, 70), heads=2, D=192, DV=128, BM=128, BN=64, STAGES=3, warps=8, CAUSAL=False), dict(queries=(40,), keys=(70,), heads=1, kv_heads=1, D=256, CAUSAL=False, lse=True)],
         [dict(queries=(4096, 1000, 2333), keys=(4096, 3000, 2333), heads=32, kv_heads=8, D=128), dict(queries=(500, 70), keys=(500, 90), WINDOW=20, CAP=5.0), dict(queries=(9, 20), keys=(40, 5), CAUSAL=False)] +
         [dict(queries=(1000, 77, 300), keys=(1500, 77, 200), D=D, DV=DV, lse=True, **more) for D, DV in ((96, 96), (192, 128), (256, 256)) for more in ({}, dict(CAUSAL=False), dict(WINDOW=200, CAP=20.0))]),
    Case("moe", moe, [dict(tokens=33, N=96, K=64), dict(tokens=5, N=40, K=72, TOP=1, dtype="f16"), dict(tokens=40, N=64, K=64, TOP=4, BM=32)],
         [dict(tokens=2048, N=1536, K=2048, EXPERTS=64, TOP=8, BM=64), dict(tokens=33, N=96, K=64)]),
    Case("moe_layer", moe_layer, [dict(tokens=33, K=72, inner=40), dict(tokens=150, K=64, inner=136, EXPERTS=16, TOP=4, BM=64, BN=64, STAGES=2, dtype="f16")],
         [dict(tokens=1000, K=1024, inner=512, EXPERTS=64, TOP=8), dict(tokens=33, K=72, inner=40)]),
    Case("matmul_grouped", matmul_grouped, [dict(sizes=((70, 64, 40), (1, 200, 8), (0, 64, 64), (130, 8, 72)), programs=3), dict(sizes=((16, 16, 16),), programs=2)],
         [dict(sizes=((4096, 4096, 1024), (1000, 2048, 512), (8, 1024, 4096), (777, 1000, 1000))), dict(sizes=((70, 64, 40), (1, 200, 8), (130, 8, 72)), programs=3)]),
    Case("grouped_boxes", lambda dev, rng, **s: matmul_grouped(dev, rng, name="grouped_boxes", **s), [dict(sizes=((70, 64, 40), (1, 200, 8), (0, 64, 64), (130, 8, 72), (20, 72, 0)), programs=3), dict(sizes=((16, 16, 16),), programs=2), dict(sizes=((200, 136, 264), (64, 64, 64)), BM=128, BN=64, programs=1)],
         [dict(sizes=((4096, 4096, 1024), (1000, 2048, 512), (8, 1024, 4096), (777, 1000, 1000))), dict(sizes=((70, 64, 40), (1, 200, 8), (130, 8, 72)), programs=3)]),
    Case("rotary_cache", rotary_cache, [dict(tokens=20, heads=8, kv_heads=2, d=64), dict(tokens=7, heads=5, kv_heads=5, d=40, dtype="f16", HEADS=4), dict(tokens=9, heads=4, kv_heads=1, d=32, to="f8e4m3")],
         [dict(tokens=4096, heads=32, kv_heads=8, d=128), dict(tokens=1000, heads=24, kv_heads=8, d=96, to="f8e4m3")]),
    Case("sample_gumbel", sample_gumbel, [dict(rows=5, n=3000), dict(rows=3, n=100, dtype="bf16")], [dict(rows=256, n=128256), dict(rows=50, n=1000, dtype="f16")]),
    Case("sample_kept", sample_kept, [dict(rows=12, n=3000, BLOCK=1024), dict(rows=8, n=5000, dtype="bf16", BLOCK=2048, warps=4), dict(rows=6, n=1000, distinct=5), dict(rows=4, n=1)] +
         grid(rows=(4,), n=(700,), least=(False, True), k=(False, True), p=(False, True), BLOCK=(512,), warps=(4,)),
         [dict(rows=64, n=128256), dict(rows=256, n=32000, dtype="bf16"), dict(rows=100, n=151936, dtype="f16", least=False), dict(rows=8, n=1000, distinct=3)]),
    Case("sample_top", sample_top, [dict(rows=6, n=500), dict(rows=3, n=64, K=64), dict(rows=4, n=10, dtype="f16")], [dict(rows=256, n=8192, K=64), dict(rows=64, n=500)]),
    Case("attention", attention, [dict(heads=2, S=256)] + grid(heads=(1,), S=(200, 64), D=(64, 128), causal=(False, True), BM=(64,), BN=(32,)) +
         # two warpgroups with a team that copies: one block, a part of one, several, some more than the ring has slots
         grid(heads=(1,), S=(64, 128, 200, 520), D=(128,), causal=(False, True), BN=(128,), warps=(8,)) +
         [dict(heads=2, S=300, D=64, BN=128, STAGES=4, warps=8, causal=True), dict(heads=1, S=400, D=128, STAGES=4, warps=8), dict(heads=1, S=300, D=128, BN=128, STAGES=3, warps=8)] +
         # programs that stay, o as boxes
         grid(heads=(3,), S=(300,), D=(128,), causal=(False, True), BN=(128,), warps=(8,), STAY=("true",), BOXES=("false", "true")) + [dict(heads=1, S=200, BOXES="true")] +
         # rows of the grid in pairs, the last one alone; some programs with a tile at the end, or with two
         [dict(heads=3, S=640, D=64, BN=128, STAGES=4, warps=8, causal=True, STAY="auto"), dict(heads=5, S=128, D=128, BN=128, warps=8, causal=True, STAY="auto"),
          dict(heads=2, S=384, D=128, BN=128, warps=8, causal=True, STAY="auto")] +
         # sums that are scaled in most blocks, in some, by some warps
         [dict(heads=1, S=400, growth=10, causal=True), dict(heads=1, S=400, growth=100, BM=64, BN=32), dict(heads=1, S=520, D=128, BN=128, warps=8, growth=30)],
         [dict(heads=32, S=4096), dict(heads=2, S=1000, D=128, BN=128, warps=8, growth=30), dict(heads=300, S=1024, D=128, BN=128, warps=8, STAY="true", BOXES="true"),
          dict(heads=101, S=1100, D=128, BN=128, warps=8, causal=True), dict(heads=40, S=2000, D=64, BN=128, STAGES=4, warps=8, causal=True)] + grid(heads=(3,), S=(1000, 1024), D=(64, 128), causal=(False, True)) +
         grid(heads=(3,), S=(1000, 1024), D=(128,), causal=(False, True), BN=(128,), warps=(8,))),
    Case("attention_wgmma", attention_wgmma, [dict(heads=2, S=256, programs=3)] + grid(heads=(3,), S=(300, 64), D=(64, 128), causal=(False, True), BN=(64,), GROUP=(2,), programs=(2,)) +
         [dict(heads=1, S=500, CONSUMERS=3, programs=1), dict(heads=3, S=400, causal=True, dtype="bf16", CONSUMERS=3, STAGES=3, programs=2)],
         [dict(heads=32, S=4096, D=128)] + grid(heads=(3,), S=(1000, 1024), D=(64, 128), causal=(False, True)) + grid(heads=(3,), S=(1000,), causal=(False, True), CONSUMERS=(3,))),
    Case("quantise", quantise, grid(kind=("tensor", "rows", "groups", "squares"), m=(40,), n=(300,), dtype=("i8", "f8e4m3", "f8e5m2")) +
         grid(kind=("groups", "squares"), m=(140,), n=(256,), source=("f32", "bf16"), pow2=(False, True)) +
         [dict(kind="grid", m=300, n=260, source="bf16"), dict(kind="grid", m=70, n=500, dtype="i8", SUB_M=16, SUB_N=64), dict(kind="rows", m=1, n=1), dict(kind="tensor", m=9, n=1)] +
         [dict(kind="cluster", m=300, n=260, source="bf16"), dict(kind="cluster", m=70, n=500, dtype="i8", C=2, pow2=True)],
         [dict(kind="groups", m=4096, n=8192, source="bf16")] + grid(kind=("tensor", "rows", "groups", "squares", "grid", "cluster"), m=(1024,), n=(1536,), dtype=("f8e4m3", "i8", "f8e5m2"), source=("bf16", "f32")) +
         grid(kind=("groups", "squares", "grid", "cluster"), m=(1000,), n=(1300,), pow2=(False, True))),
    Case("grid_matmul", grid_matmul, [dict(m=270, n=264, k=656), dict(m=16, n=136, k=272, BM=16, BN=64, TO="f32", warps=4)],
         [dict(m=4096, n=4096, k=4096)] + grid(m=(1000, 128), n=(1032,), k=(784,)) + [dict(m=16, n=8192, k=8192, BM=16, BN=64, warps=4)]),
    Case("grouped_rows", grouped_rows, [dict(counts=(70, 0, 200, 1, 129), N=136, K=200), dict(counts=(0, 300), N=264, K=72, dtype="f16", BN=256, STAGES=3),
                                        dict(counts=(70, 0, 200, 1, 129), N=136, K=400, dtype="f8e4m3", scaled=True), dict(counts=(5,), N=128, K=16, dtype="f8e4m3", scaled=True)],
         grid(counts=((1000, 0, 3000, 77, 4019), (128,) * 16), N=(2056,), K=(1048,), dtype=("f16", "bf16"), BN=(128, 256), STAGES=(3,)) +
         grid(counts=((1000, 0, 3000, 77, 4019), (128,) * 16), N=(2056,), K=(1040,), dtype=("f8e4m3",), scaled=(True,), STAGES=(4, 6)) + [dict(counts=(1024,) * 8, N=4096, K=7168)]),
    Case("scaled_matmul", scaled_matmul, [dict(m=128, n=128, k=256)] + grid(m=(100,), n=(72,), k=(144,), dtype=("f8e4m3", "f8e5m2"), BM=(64,), BN=(64,), STAGES=(1, 3)) +
         [dict(m=270, n=264, k=656, TO="bf16", STAGES=4)],            # a team of its own copies
         [dict(m=4096, n=4096, k=4096), dict(m=4096, n=7168, k=2048, TO="bf16", STAGES=6), dict(m=4096, n=2112, k=7168, TO="bf16", STAGES=5),
          dict(m=4096, n=1536, k=512, TO="bf16", STAGES=4)] + grid(m=(1000,), n=(520,), k=(784,), TO=("f32", "bf16"), dtype=("f8e4m3", "f8e5m2"))),
    Case("matmul_persistent", matmul_persistent, [dict(m=256, n=256, k=128)] + grid(m=(200,), n=(136,), k=(72,), programs=(1, 5), BM=(64,), BN=(32,), ORDER=("grouped", "hilbert", "snake")),
         [dict(m=4096, n=4096, k=4096)] + grid(m=(4000,), n=(1016,), k=(776,), ORDER=("grouped", "hilbert", "snake", "diagonal", "row_major"))),
    Case("matmul_split_k", lambda dev, rng, **s: matmul_persistent(dev, rng, name="matmul_split_k", **s), grid(m=(100,), n=(72,), k=(200,), parts=(None, 3), BM=(64,), BN=(64,)),
         [dict(m=256, n=256, k=16384, parts=16), dict(m=300, n=264, k=1000, parts=7)]),
    Case("matmul_stream_k", lambda dev, rng, **s: matmul_persistent(dev, rng, name="matmul_stream_k", **s), grid(m=(100,), n=(136,), k=(136,), programs=(1, 4, 7), BM=(64,), BN=(64,)),
         [dict(m=2048, n=2304, k=2048), dict(m=1000, n=520, k=776, programs=61)]),
    Case("prefix_sum", prefix_sum, [dict(n=20000, BLOCK=256)] + grid(n=(1, 5000), dtype=("i32", "f32"), BLOCK=(64,), WINDOW=(32, 64), warps=(1, 4)) + [dict(n=70000)] +
         grid(n=(9000,), dtype=("f32",), BLOCK=(512,), fold=tuple(FOLDS), exclusive=(False, True), COMMUTES=("true", "false")) +
         [dict(n=9000, dtype=t, to=y, BLOCK=256) for t, y in (("f16", "f16"), ("i8", "i32"), ("i32", "i64"), ("f64", "f64"), ("u8", "u64"), ("f32", "f64"))],
         grid(n=(1 << 26, 1, 12345679), dtype=("i32", "f32"), BLOCK=(1024, 4096), PER=(1, 5), WINDOW=(32, 128)) +
         grid(n=(12345679,), dtype=("i64", "f64"), BLOCK=(2048,), fold=("scan_add", "scan_max"), exclusive=(False, True), COMMUTES=("true", "false"))),
    Case("recurrence", recurrence, [dict(n=9000), dict(n=3000, BLOCK=64, warps=1), dict(n=1)], [dict(n=1000003), dict(n=1 << 20, BLOCK=1024)]),
    Case("select", select, grid(n=(5000, 1), dtype=("f32", "u8", "f64"), BLOCK=(256,), warps=(1, 4)) + grid(n=(3000,), share=(0.0, 1.0), BLOCK=(512,)) + [dict(n=70000)],
         grid(n=(1 << 24, 12345679), dtype=("f32", "u8"), share=(0.02, 0.5))),
    Case("unique", lambda *a, **size: select(*a, name="unique", **size), grid(n=(5000, 1), dtype=("i32", "f32", "i64"), BLOCK=(256,), warps=(1, 4)) + [dict(n=70000, dtype="u8")],
         grid(n=(1 << 24, 12345679), dtype=("i32", "u8"))),
    Case("radix_sort", radix_sort, grid(n=(5000, 1), dtype=("u32", "i32", "f32", "f16", "i8"), ROW=(128,), WARPS=(4,)) +
         grid(n=(3000,), dtype=("u64", "f64"), BITS=(6, 8), ROW=(64,), WARPS=(2,)) +
         [dict(n=9000, distinct=3, BITS=4, ROW=64), dict(n=9000, values=None), dict(n=9000, dtype="f32", values=None, ROW=1024, WARPS=4, WINDOW=2, COPIES=8),
          dict(n=5000, values="f32", places=False, ROW=256), dict(n=5000, dtype="i64", values="i64", places=False, ROW=32, WINDOW=4)],
         grid(n=(1 << 24, 12345679), dtype=("u32", "f32", "i64")) + [dict(n=1 << 24, distinct=3), dict(n=1 << 26, values=None, ROW=1024, COPIES=8)]),
    Case("prefix_sum_thrice", prefix_sum_thrice, grid(n=(5000, 1), dtype=("i32", "f32"), exclusive=(False, True), BLOCK=(64,)), grid(n=(1 << 24, 12345679), dtype=("i32", "f32"), exclusive=(False, True))),
    Case("order", order, grid(name=ORDERS, rows=(8,), n=(128,), R=(1, 4), warps=(1, 4)) + grid(name=ORDERS[:-1], rows=(2,), n=(1024,), dtype=("f32", "i32")),
         [dict(name="sort_rows", rows=8192, n=1024)] + grid(name=ORDERS, rows=(4096,), n=(128,), R=(1, 8), warps=(1, 4)) + grid(name=ORDERS[:-1], rows=(2048,), n=(1024, 2048), dtype=("f32", "i32"), warps=(1, 2, 8)) +
         grid(name=("cumsum_rows",), rows=(512,), n=(4096, 16384), warps=(8, 16))),
    Case("count_values", count_values, [dict(n=20000), dict(n=1000, BINS=10, programs=3, BLOCK=64)], [dict(n=1 << 24), dict(n=12345, BINS=77)]),
    Case("reduce_sum", reduce_sum, [dict(n=98432), dict(n=1000)], [dict(n=1 << 27), dict(n=12345)]),
]


def error(got, want, tol):
    """Relative error by norms (nan never passes); with tolerance 0 the count of differing elements."""
    if got.shape != want.shape:
        return float("inf")
    if tol == 0:
        return float(np.count_nonzero(got != want))
    off = size = 0.0
    got, want = got.reshape(-1), want.reshape(-1)
    for i in range(0, len(want), 1 << 22):                   # in blocks: outputs are as large as the device's memory allows
        g, w = got[i:i + (1 << 22)].astype(np.float64), want[i:i + (1 << 22)].astype(np.float64)
        off, size = math.hypot(off, np.linalg.norm(g - w)), math.hypot(size, np.linalg.norm(w))
    e = off / max(size, 1e-30)
    return float("inf") if np.isnan(e) else float(e)


def passed(checks):
    return all(error(g, w, t) <= t for _, g, w, t in checks)

# What they take from here is there by now.
for _part in ("cases_attention",
              "cases_conv",
              "cases_decode",
              "cases_flex",
              "cases_linear",
              "cases_mixed",
              "cases_sparse",
              "cases_training"):
    CASES += importlib.import_module(_part).CASES
