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


def microscaled(dev, rng, m, n, k, dtype, W="f4e2m1", G=32, warps=4, target=None):
    """Groups with a power of two in a byte: a in an 8-bit float, b in packed numbers, both quantised, and their product."""
    text = """kernel f(x: *f32, y: *f32, a: *T, sa: *u8, b: *u32, sb: *u8, c: *f32, all: *u8, powers: *f32,
             const M = 8, const N = 8, const K = 64, const G = 32, const W = f4e2m1, type T = f8e4m3) {
      let (i, j, k, g) = (arange(0, M), arange(0, N), arange(0, K), arange(0, K / G));
      let (u, su) = quantise_mx(load(x + (i[:, None] * K + k[None, :])), T, G);
      let (v, sv) = quantise_mx(load(y + (j[:, None] * K + k[None, :])), W, G);
      let words = pack(v, W, u32);
      store(a + (i[:, None] * K + k[None, :]), u);
      store(sa + (i[:, None] * (K / G) + g[None, :]), su);
      store(b + (j[:, None] * (K / 8) + arange(0, K / 8)[None, :]), words);
      store(sb + (j[:, None] * (K / G) + g[None, :]), sv);
      store(c + (i[:, None] * N + j[None, :]), dot_scaled(u, su, trans(unpack(words, W, bf16)), trans(sv)));
      store(powers + arange(0, 256), e8m0(load(all + arange(0, 256))));
    }"""
    x, y = (rng.standard_normal((r, k), np.float32) * np.exp2(rng.integers(-8, 8, (r, k // G))).astype(np.float32).repeat(G, 1) for r in (m, n))
    x[0, :G], y[0, :G] = 0, 0
    x[1, :G] *= np.float32(2.0**-130)
    x[2, 0], y[2, 1] = np.inf, -np.inf
    def parts(v, top):
        most = finite_max(v.reshape(v.shape[0], k // G, G), (2,)).reshape(v.shape[0], k // G)
        s = np.maximum((most.view(np.int32) >> 23) - top, 0)
        power = np.exp2(127.0 - s).astype(np.float32).repeat(G, 1)
        return s.astype(np.uint8), v * power, 1 / power.astype(np.float64)
    sa, u, pu = parts(x, 8 if dtype == "f8e4m3" else 15)
    sb, v, pv = parts(y, 2)
    qa = quantised(u, np.float32([1]), dtype)
    known = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
    near = np.abs(np.abs(v.astype(np.float64))[..., None].clip(None, 6) - known)
    code = np.lexsort((np.arange(8) % 2 + 0 * near, near), axis=-1)[..., 0]       # the nearest; of two the even one
    field = (code | np.signbit(v) << 3).astype(np.uint32).reshape(n, k // 8, 8)
    words = (field << (4 * np.arange(8, dtype=np.uint32))).sum(2).astype(np.uint32)
    a64, b64 = fp8_values(qa, dtype).astype(np.float64) * pu, np.copysign(known[code], v) * pv
    out = [poisoned(dev, s, t) for s, t in (((m, k), dtype), (sa.shape, "u8"), (words.shape, "u32"), (sb.shape, "u8"), ((m, n), "f32"))]
    powers = poisoned(dev, 256, "f32")
    call = launch(source(dev, text, target, M=m, N=n, K=k, G=G, W=W, T=dtype, warps=warps), 1, dev.array(x), dev.array(y), *out,
                  dev.array(np.arange(256, dtype=np.uint8)), powers)
    want = np.append(np.exp2(np.arange(255) - 127.0), 1e9).astype(np.float32)
    return Run(call, [(name, got.numpy(), w, t) for name, got, w, t in zip(("a", "scales of a", "b", "scales of b", "product"), out, (qa, sa, words, sb, a64 @ b64.T), (0, 0, 0, 0, 1e-5))] +
               [("powers", np.nan_to_num(powers.numpy(), nan=1e9), want, 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("quantise_ties", ties, grid(dtype=("i8", "f8e4m3", "f8e5m2"), target=(None, "sm_80"))),
    both("microscaled", microscaled, grid(m=(24,), n=(40,), k=(96,), dtype=("f8e4m3", "f8e5m2"), target=(None, "sm_80")) + [dict(m=16, n=8, k=64, dtype="f8e4m3", G=16, warps=1)]),
    both("quantise_tiles", tiles, grid(m=(8,), n=(64,), bm=(4,), bn=(16,), dtype=("i8", "f8e4m3", "f8e5m2"), pow2=(False, True)) +
         grid(m=(64,), n=(128,), bm=(64, 16), bn=(32, 128), dtype=("f8e4m3",), warps=(1, 8), target=("sm_80", None))),
]
