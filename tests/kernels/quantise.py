"""The library's quantisation of tiles: every rounding tie, every kind of value, every kind of block. Same form as examples/cases.py."""
from cases import FP8, Case, Run, block_view, fp8_values, finite_max, grid, launch, poisoned, quant_scale, quantised, spread
import numpy as np


def source(dev, text, target=None, **defines):
    return dev.program(text=text, name="case.tile", target=target).kernel(None, **defines)


def ties(dev, rng, dtype, target=None, N=1024):
    """With a scale of 1: all values of the type, the middles between neighbours, what lies a bit to either side of these, beyond the
    largest, and what is no number. sm_80 converts 8-bit floats by integer arithmetic."""
    text = """kernel f(x: *f32, q: *T, y: *f32, const N = 1024, type T = i8) {
      let i = program_id(0) * N + arange(0, N);
      let a = quantise(load(x + i), 1.0, T);
      store(q + i, a);
      store(y + i, dequantise(a, 1.0));
    }"""
    known = fp8_values(np.arange(128), dtype) if dtype in FP8 else np.arange(128, dtype=np.float32)
    known = known[~np.isnan(known)]
    middles = (known[:-1].astype(np.float64) + known[1:]) / 2
    middles = middles.astype(np.float32)
    top = known[-1]
    x = np.concatenate([known, middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(np.inf)),
                        np.float32([top * 1.01, top * 1.1, top * 2, 3e38, 1e-30, 1e-45, 0, np.inf])]).astype(np.float32)
    x = np.concatenate([x, -x, np.float32([np.nan])])
    x = np.resize(x, -(-len(x) // N) * N)
    q, y = poisoned(dev, x.shape, dtype), poisoned(dev, x.shape, "f32")
    call = launch(source(dev, text, target, T=dtype, N=N), len(x) // N, dev.array(x), q, y)
    want = quantised(x, np.float32([1]), dtype)
    value = fp8_values(want, dtype) if dtype in FP8 else want.astype(np.float32)
    return Run(call, [("q", q.numpy(), want, 0), ("back", np.nan_to_num(y.numpy(), nan=1e9), np.nan_to_num(value, nan=1e9), 0)])


def tiles(dev, rng, m, n, bm, bn, dtype, pow2=False, warps=4, target=None):
    """Scales by row, by column and by block of one tile; blocks of zeros, tiny numbers, infinities and nans."""
    text = """kernel f(x: *f32, rows: *T, row_scales: *f32, cols: *T, col_scales: *f32, blocks: *T, block_scales: *f32, back: *f32,
             const M = 8, const N = 64, const BM = 4, const BN = 16, const POW2 = false, type T = i8) {
      let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
      let v = load(x + i);
      let (a, sa) = quantise_along(v, T, axis=1, pow2=POW2);
      store(rows + i, a);
      store(row_scales + arange(0, M)[:, None], sa);
      let (b, sb) = quantise_along(v, T, axis=0, pow2=POW2);
      store(cols + i, b);
      store(col_scales + arange(0, N)[None, :], sb);
      let (c, sc) = quantise_blocks(v, T, BM, BN, pow2=POW2);
      store(blocks + i, c);
      store(block_scales + arange(0, M / BM)[:, None] * (N / BN) + arange(0, N / BN)[None, :], sc);
      store(back + i, dequantise_blocks(c, sc, BM, BN));
    }"""
    x = rng.standard_normal((m, n), np.float32) * np.exp2(rng.integers(-20, 20, (m, 1))).astype(np.float32)
    x[0], x[m // 2] = 0, x[m // 2] * np.float32(2.0**-130)
    x[1, 0], x[1, 1], x[2, 2], x[2, 3] = np.inf, np.nan, -np.inf, -np.nan
    x[3] = np.where(np.arange(n) % 2 == 0, np.inf, 0)
    out = [poisoned(dev, s, t) for s, t in (((m, n), dtype), (m, "f32"), ((m, n), dtype), (n, "f32"), ((m, n), dtype), ((m // bm, n // bn), "f32"), ((m, n), "f32"))]
    k = source(dev, text, target, M=m, N=n, BM=bm, BN=bn, POW2=pow2, T=dtype, warps=warps)
    call = launch(k, 1, dev.array(x), *out)
    checks = []
    for name, q, s, h, w in (("rows", out[0], out[1], 1, n), ("columns", out[2], out[3], m, 1), ("blocks", out[4], out[5], bm, bn)):
        want_s = quant_scale(finite_max(block_view(x, h, w), (1, 3)), dtype, pow2)
        want = quantised(x, spread(want_s, (m, n), h, w), dtype)
        checks += [(name + "' scales", s.numpy().reshape(want_s.shape), want_s, 0), (name, q.numpy(), want, 0)]
    value = (fp8_values(want, dtype) if dtype in FP8 else want.astype(np.float32)) * spread(want_s, (m, n), bm, bn)
    return Run(call, checks + [("back", np.nan_to_num(out[6].numpy(), nan=1e9), np.nan_to_num(value, nan=1e9), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("quantise_ties", ties, grid(dtype=("i8", "f8e4m3", "f8e5m2"), target=(None, "sm_80"))),
    both("quantise_tiles", tiles, grid(m=(8,), n=(64,), bm=(4,), bn=(16,), dtype=("i8", "f8e4m3", "f8e5m2"), pow2=(False, True)) +
         grid(m=(64,), n=(128,), bm=(64, 16), bn=(32, 128), dtype=("f8e4m3",), warps=(1, 8), target=("sm_80", None))),
]
