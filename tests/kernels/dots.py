"""Matrix products of any extents, in batches, and of every input precision, against float64."""
import numpy as np
from cases import Case, Run, fp8_values, poisoned, launch, grid
import cases
import tilec


# Sums of 8-bit floats by warpgroups, against the largest sum: seen on an H200 are 2^-13 where sums of at most 128 products are added in f32.
FP8_SUMS = 2.0**-11
FLOATS8 = ("f8e4m3", "f8e5m2")


def source(dev, text, name=None, target=None, **defines):
    return dev.program(text=text, name="case.tile", target=target).kernel(name, **defines)


def tf32(x):
    """f32 rounded to the nearest number of 11 bits, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0xfff) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xffffe000)).view(np.float32).astype(np.float64)


def tf32_cut(x):
    """f32 without the bits that tf32 has not."""
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xffffe000)).view(np.float32).astype(np.float64)


ROUNDED = {"tf32": tf32, "tf32_cut": tf32_cut}


def operand(rng, shape, dtype):
    """Random elements as they lie in memory, and what they mean."""
    if dtype in ("i8", "u8"):
        x = rng.integers(*((-128, 128) if dtype == "i8" else (0, 256)), shape).astype(np.int8 if dtype == "i8" else np.uint8)
        return x, x.astype(int)
    if dtype in ("f8e4m3", "f8e5m2"):
        lo, hi = (40, 72) if dtype == "f8e4m3" else (52, 68)      # magnitudes around 1
        x = (rng.integers(lo, hi, shape) | rng.integers(0, 2, shape) << 7).astype(np.uint8)
        return x, fp8_values(x, dtype).astype(np.float64)
    x = rng.standard_normal(shape, np.float32)
    if dtype == "f16":
        return x.astype(np.float16), x.astype(np.float16).astype(np.float64)
    if dtype == "bf16":
        return cases.bf16_bits(x), cases.bf16_values(cases.bf16_bits(x)).astype(np.float64)
    return (x.astype(np.float64),) * 2 if dtype == "f64" else (x, x.astype(np.float64))


def accumulator(dtype):
    return "i32" if dtype in ("i8", "u8") else "f64" if dtype == "f64" else "f32"


def mixed(dev, rng, a, b, acc, m, n, k, stages, warps, target=None):
    """Factors of two types, or sums in f16, in a pipelined loop: small whole numbers, whose sums every type of sum holds exactly."""
    text = """kernel f(a: *A, b: *B, c: *S, K: i32, type A = f8e4m3, type B = f8e5m2, type S = f32, const M = 16, const N = 8, const STAGES = 1) {
      let i = arange(0, M)[:, None];
      let j = arange(0, N)[None, :];
      let k = arange(0, 64);
      var acc = full([M, N], S(1));
      for at in range(0, K, 64, stages=STAGES) {
        let x = load(a + i * K + (at + k)[None, :], mask=(at + k < K)[None, :], other=A(0));
        let y = load(b + (at + k)[:, None] * N + j, mask=(at + k < K)[:, None], other=B(0));
        acc = dot(x, y, acc);
      }
      store(c + i * N + j, acc);
    }"""
    def whole(dtype, shape):
        lo, hi = (0, 4) if dtype == "u8" else (-2, 3)
        v = rng.integers(lo, hi, shape)
        return (v.astype(np.uint8 if dtype == "u8" else np.int8) if dtype in ("i8", "u8") else cases.fp8_bits(v.astype(np.float32), dtype)
                if dtype in cases.FP8 else v.astype(np.float16)), v
    (x, vx), (y, vy) = whole(a, (m, k)), whole(b, (k, n))
    c = poisoned(dev, (m, n), acc)
    call = launch(source(dev, text, target=target, A=a, B=b, S=acc, M=m, N=n, STAGES=stages, warps=warps), 1, dev.array(x, a), dev.array(y, b), c, k)
    return Run(call, [("c", c.numpy(), (vx @ vy + 1).astype(c.numpy().dtype), 0)])


def promoted(dev, rng, a, b, k, bk, promote, warps, n=48, target=None, scaled=False, tall=1):
    """Sums of 8-bit floats that are added in f32 every so many products: whole numbers, which any way of adding sums exactly, and any."""
    text = """kernel f(a: *A multiple_of(16), b: *B multiple_of(16), c: *f32, K: i32 multiple_of(16), type A = f8e4m3, type B = f8e5m2, const M = 64,
             const N = 48, const BK = 64, const PROMOTE = 128, const SCALED = false) {
      let i = arange(0, M)[:, None];
      let j = arange(0, N)[None, :];
      let k = arange(0, BK);
      var acc = full([M, N], 1.0);
      for at in range(0, K, BK, stages=3) {
        let x = load(a + i * K + (at + k)[None, :], mask=(at + k < K)[None, :]);
        let y = load(b + j * K + (at + k)[:, None], mask=(at + k < K)[:, None]);
        if SCALED { acc += dot(x, y, promote=PROMOTE) * 2.0; }
        else { acc = dot(x, y, acc, promote=PROMOTE); }
      }
      store(c + i * N + j, acc);
    }"""
    m, checks = 16 * warps * tall, []
    f = source(dev, text, target=target, A=a, B=b, M=m, N=n, BK=bk, PROMOTE=promote, SCALED=str(scaled).lower(), warps=warps)
    for what in ("whole", "any"):
        if what == "whole":
            vx, vy = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (n, k))
            x, y = cases.fp8_bits(vx.astype(np.float32), a), cases.fp8_bits(vy.astype(np.float32), b)
        else:
            (x, vx), (y, vy) = operand(rng, (m, k), a), operand(rng, (n, k), b)
        c = poisoned(dev, (m, n), "f32")
        call = launch(f, 1, dev.array(x, a), dev.array(y, b), c, k)
        checks.append((what, c.numpy(), 1.0 + (2.0 if scaled else 1.0) * (vx @ vy.T), 0 if what == "whole" else FP8_SUMS))
    return Run(call, checks)


def half_sums(dev, rng, a, b, k, target=None):
    """Sums in f16 of any numbers: each step may round to f16, so the error grows with their number."""
    text = """kernel f(a: *A, b: *B, c: *f16, type A = f16, type B = f16, const K = 64) {
      let k = arange(0, K);
      let x = load(a + arange(0, 32)[:, None] * K + k[None, :]);
      let y = load(b + k[:, None] * 16 + arange(0, 16)[None, :]);
      store(c + arange(0, 32)[:, None] * 16 + arange(0, 16)[None, :], dot(x, y, zeros([32, 16], f16)));
    }"""
    (x, vx), (y, vy) = operand(rng, (32, k), a), operand(rng, (k, 16), b)
    c = poisoned(dev, (32, 16), "f16")
    call = launch(source(dev, text, target=target, A=a, B=b, K=k, warps=2), 1, dev.array(x, a), dev.array(y, b), c)
    return Run(call, [("c", c.numpy().astype(np.float64), vx @ vy, 2.0**-11 * (1 + k / 16))])


# Beyond K in registers there are nans (integers: 77): nothing of it may count.
RAGGED = """kernel f(a: *T, b: *T, c: *TA, edge: i32, type T = f16, type TA = f32, const M = 16, const N = 8, const K = 16) {
  let i = arange(0, M)[:, None];
  let j = arange(0, N)[None, :];
  let k = arange(0, K);
  let bad = is_float(T) ? T(nan) : T(77);
  let x = where((k < edge)[None, :], load(a + i * K + k[None, :]), bad);
  let y = where((k < edge)[:, None], load(b + k[:, None] * N + j), bad);
  store(c + i * N + j, dot(x, y, acc=TA(i + j)));
}"""


def ragged(dev, rng, m, n, k, dtype, warps):
    """One dot of any extents."""
    (a, va), (b, vb) = operand(rng, (m, k), dtype), operand(rng, (k, n), dtype)
    acc = accumulator(dtype)
    c = poisoned(dev, (m, n), acc)
    call = launch(source(dev, RAGGED, T=dtype, TA=acc, M=m, N=n, K=k, warps=warps), 1, dev.array(a, dtype), dev.array(b, dtype), c, k)
    want = (tf32(va) @ tf32(vb) if dtype == "f32" else va @ vb) + np.arange(m)[:, None] + np.arange(n)
    return Run(call, [("c", c.numpy(), want.astype(np.int32) if acc == "i32" else want, 0 if acc == "i32" else 1e-12 if acc == "f64" else 3e-6)])


def batched(dev, rng, b, m, n, k, dtype, warps, trans, precision="tf32"):
    """Several products at once; the second operand as it is, or transposed."""
    text = """kernel f(a: *T, b: *T, c: *TA, type T = f16, type TA = f32, const B = 2, const M = 16, const N = 8, const K = 16, const TRANS = false) {
      let h = arange(0, B)[:, None, None];
      let i = arange(0, M)[None, :, None];
      let j = arange(0, N)[None, None, :];
      let x = load(a + h * (M * K) + i * K + arange(0, K)[None, None, :]);
      let k = arange(0, K)[None, :, None];
      var y = zeros([B, K, N], T);
      if TRANS { y = trans(load(b + h * (N * K) + arange(0, N)[None, :, None] * K + arange(0, K)[None, None, :])); }
      else { y = load(b + h * (N * K) + k * N + j); }
      let d = dot(x, y, precision="%s");
      store(c + h * (M * N) + i * N + j, dot(x, y, d, precision="%s"));
    }""" % (precision, precision)
    (x, vx), (y, vy) = operand(rng, (b, m, k), dtype), operand(rng, (b, k, n), dtype)
    acc = accumulator(dtype)
    c = poisoned(dev, (b, m, n), acc)
    stored = np.ascontiguousarray(y.transpose(0, 2, 1)) if trans else y
    call = launch(source(dev, text, T=dtype, TA=acc, B=b, M=m, N=n, K=k, warps=warps, TRANS=str(trans).lower()), 1,
                  dev.array(x, dtype), dev.array(stored, dtype), c)
    short = ROUNDED.get(precision, lambda x: x) if dtype == "f32" else lambda x: x
    want = 2 * (short(vx) @ short(vy))
    return Run(call, [("c", c.numpy(), want.astype(np.int32) if acc == "i32" else want, 0 if acc == "i32" else 3e-6 if precision != "bf16x3" else 2e-5)])


def many_batches(dev, rng, batches, warps):
    """Batches of two and three dimensions; none of the extents is a power of two."""
    import ragged
    m, n, k = 5, 12, 20
    a, b, c = (*batches, m, k), (*batches, k, n), (*batches, m, n)
    text = f"""kernel f(a: *f16, b: *f16, c: *f32) {{
      store({ragged.flat(c, "c")}, dot(load({ragged.flat(a, "a")}), load({ragged.flat(b, "b")})));
    }}"""
    (x, vx), (y, vy) = operand(rng, a, "f16"), operand(rng, b, "f16")
    out = poisoned(dev, c, "f32")
    call = launch(source(dev, text, warps=warps), 1, dev.array(x), dev.array(y), out)
    return Run(call, [("c", out.numpy(), vx @ vy, 2e-6)])


def decode(dev, rng, rows, s, d, warps):
    """Attention of a few queries: products of one to three rows, one behind the other, in a pipelined loop."""
    text = """kernel f(q: *f16, k: *f16, v: *f16, o: *f32, S: i32, const R = 1, const D = 64, const N = 48) {
      let r = arange(0, R)[:, None];
      let d = arange(0, D);
      let x = load(q + r * D + d[None, :]);
      var acc = zeros([R, D], f32);
      var total = zeros([R], f32);
      for at in range(0, S, N, stages=3) {
        let key = at + arange(0, N);
        let y = load(k + key[None, :] * D + d[:, None], mask=(key < S)[None, :]);
        let z = load(v + key[:, None] * D + d[None, :], mask=(key < S)[:, None]);
        let p = where((key < S)[None, :], exp2(dot(x, y) * 0.1), 0.0);
        total += sum(p, axis=1);
        acc = dot(f16(p), z, acc);
      }
      store(o + r * D + d[None, :], acc / total[:, None]);
    }"""
    (q, vq), (k, vk), (v, vv) = operand(rng, (rows, d), "f16"), operand(rng, (s, d), "f16"), operand(rng, (s, d), "f16")
    o = poisoned(dev, (rows, d), "f32")
    call = launch(source(dev, text, R=rows, D=d, warps=warps), 1, dev.array(q), dev.array(k), dev.array(v), o, s)
    p = np.exp2(vq @ vk.T * 0.1)
    return Run(call, [("o", o.numpy(), p @ vv / p.sum(1, keepdims=True), 1e-3)])


def written_layouts(dev, rng, b, m, n, k, warps):
    """A batched product whose layouts the program writes down."""
    text = """const R = mma(warps=%s);
    kernel f(a: *f16, b: *f16, c: *f32, const B = 2, const M = 16, const N = 8, const K = 16) {
      let h = arange(0, B)[:, None, None];
      let x = load(a + h * (M * K) + arange(0, M)[None, :, None] * K + arange(0, K)[None, None, :]);
      let y = load(b + h * (N * K) + arange(0, K)[None, :, None] * N + arange(0, N)[None, None, :]);
      let d = dot(convert_layout(x, operand(0, R)), convert_layout(y, operand(1, R)), zeros([B, M, N], f32, layout=R));
      store(c + h * (M * N) + arange(0, M)[None, :, None] * N + arange(0, N)[None, None, :], d);
    }""" % list(warps)
    (x, vx), (y, vy) = operand(rng, (b, m, k), "f16"), operand(rng, (b, k, n), "f16")
    c = poisoned(dev, (b, m, n), "f32")
    call = launch(source(dev, text, B=b, M=m, N=n, K=k, warps=int(np.prod(warps))), 1, dev.array(x), dev.array(y), c)
    return Run(call, [("c", c.numpy(), vx @ vy, 2e-6)])


# The error of a product, relative to the sum of the products' magnitudes, beside that of adding up in f32.
BOUNDS = {"tf32": 2.0**-10, "tf32_cut": 2.0**-9, "tf32x3": 2.0**-20, "bf16x3": 2.0**-14, "bf16x6": 2.0**-22, "ieee": 2.0**-24}


def precisions(dev, rng, m, n, k, precision, warps):
    """Errors of all ways to multiply f32, against float64; factors of all magnitudes."""
    text = """kernel f(a: *f32, b: *f32, c: *f32, const M = 16, const N = 8, const K = 16, const P = "tf32") {
      let i = arange(0, M)[:, None];
      let j = arange(0, N)[None, :];
      let x = load(a + i * K + arange(0, K)[None, :]);
      store(c + i * N + j, dot(x, load(b + arange(0, K)[:, None] * N + j), precision="%s"));
    }""" % precision
    a = (rng.standard_normal((m, k)) * 2.0 ** rng.integers(-30, 30, (m, 1))).astype(np.float32)
    b = (rng.standard_normal((k, n)) * 2.0 ** rng.integers(-30, 30, (1, n))).astype(np.float32)
    c = poisoned(dev, (m, n), "f32")
    call = launch(source(dev, text, M=m, N=n, K=k, warps=warps), 1, dev.array(a), dev.array(b), c)
    exact, size = a.astype(float) @ b.astype(float), abs(a).astype(float) @ abs(b).astype(float)
    worse = ~(abs(c.numpy() - exact) / size <= BOUNDS[precision] + (k + 1) * 2.0**-23)
    return Run(call, [("worse than the bound", worse, np.zeros((m, n), bool), 0)])


def specials(dev, rng, precision):
    """Infinities, nans and the largest numbers behave as in a product of whole numbers, whatever the split."""
    text = """kernel f(a: *f32, b: *f32, c: *f32) {
      let i = arange(0, 16)[:, None];
      let j = arange(0, 16)[None, :];
      store(c + i * 16 + j, dot(load(a + i * 16 + j), load(b + i * 16 + j), precision="%s"));
    }""" % precision
    values = np.array([np.inf, -np.inf, np.nan, 1.0, 1 / 3, -2.5, 2.0**100, 2.0**-100], np.float32)
    a, b = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    a[:, 5], b[5, :] = np.tile(values, 2), np.tile(values, 2)      # every pair once alone
    a[8:, 9], b[9, :] = 1, 3                                       # and once beside another product
    with np.errstate(all="ignore"):
        want = (a[:, 5:6].astype(float) * b[5].astype(float) + a[:, 9:10].astype(float) * b[9]).astype(np.float32)
    c = poisoned(dev, (16, 16), "f32")
    call = launch(source(dev, text), 1, dev.array(a), dev.array(b), c)
    got = c.numpy()
    with np.errstate(all="ignore"):
        same = np.where(np.isfinite(want), abs(got - want) <= abs(want) * 2 * BOUNDS[precision], (got == want) | np.isnan(got) & np.isnan(want))
    return Run(call, [("as expected", same, np.ones((16, 16), bool), 0)])


def looped(dev, rng, m, n, k, bk, stages, dtype, precision=None):
    """Pipelined loops over K in steps of any size, K masked: the buffers hold what lies beyond."""
    text = """kernel f(a: *T, b: *T, c: *TA, K: i32, type T = f16, type TA = f32, const M = 16, const N = 8, const BK = 16, const STAGES = 3) {
      let i = arange(0, M)[:, None];
      let j = arange(0, N)[None, :];
      let k = arange(0, BK);
      var acc = zeros([M, N], TA);
      for step in range(0, K, BK, stages=STAGES) {
        let x = load(a + i * K + (step + k)[None, :], mask=(step + k < K)[None, :]);
        let y = load(b + (step + k)[:, None] * N + j, mask=(step + k < K)[:, None]);
        acc = dot(x, y, acc%s);
      }
      store(c + i * N + j, acc);
    }""" % (f', precision="{precision}"' if precision else "")
    (a, va), (b, vb) = operand(rng, (m, k), dtype), operand(rng, (k, n), dtype)
    acc = accumulator(dtype)
    c = poisoned(dev, (m, n), acc)
    call = launch(source(dev, text, T=dtype, TA=acc, M=m, N=n, BK=bk, STAGES=stages), 1, dev.array(a, dtype), dev.array(b, dtype), c, k)
    want = tf32(va) @ tf32(vb) if dtype == "f32" and not precision else va @ vb
    return Run(call, [("c", c.numpy(), want.astype(np.int32) if acc == "i32" else want, 0 if acc == "i32" else 5e-6 if precision != "bf16x3" else 2e-5)])


def cut(dev, rng, k, bk, first, warps, rows_of_k=False, n=48, precision="tf32_cut", target=None):
    """Factors cut to tf32, or rounded by the copies: the first loaded, computed or from outside the loop, the second along K in memory or across it."""
    text = """kernel f(a: *f32 multiple_of(16), b: *f32 multiple_of(16), c: *f32, K: i32 multiple_of(16), const M = 64, const N = 48, const BK = 32,
             const FIRST = "loaded", const ROWS = false) {
      let i = arange(0, M)[:, None];
      let j = arange(0, N)[None, :];
      let k = arange(0, BK);
      let still = load(a + i * K + k[None, :]);
      var acc = zeros([M, N], f32);
      for at in range(0, K, BK, stages=3) {
        var x = still;
        if FIRST != "outside" { x = load(a + i * K + (at + k)[None, :], mask=(at + k < K)[None, :]); }
        if FIRST == "computed" { x = x * 2.0; }
        var y = zeros([BK, N], f32);
        if ROWS { y = load(b + (at + k)[:, None] * N + j, mask=(at + k < K)[:, None]); }
        else { y = load(b + j * K + (at + k)[:, None], mask=(at + k < K)[:, None]); }
        acc = dot(x, y, acc, precision="%s");
      }
      store(c + i * N + j, acc);
    }""" % precision
    m = 16 * warps
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((n, k), np.float32)
    c = poisoned(dev, (m, n), "f32")
    f = source(dev, text, target=target, M=m, N=n, BK=bk, FIRST=f'"{first}"', ROWS=str(rows_of_k).lower(), warps=warps)
    call = launch(f, 1, dev.array(a), dev.array(np.ascontiguousarray(b.T) if rows_of_k else b), c, k)
    short = ROUNDED[precision]
    x = short(np.tile(a[:, :bk], k // bk) if first == "outside" else a * np.float32(2) if first == "computed" else a)
    return Run(call, [("c", c.numpy(), x @ short(b).T, 5e-6)])


def nearest(dev, rng, n, k, d, bn, bk, stages, warps, box=True):
    """The nearest of k points: a product whose second factor is summed, too, so that threads round it, and the first is made in front of the loop.
    Points have a bit or two more than tf32, so many of them are ties."""
    text = """kernel f(x: *f32%s, c: *f32%s, least: *f32, which: *i32, n: i32, k: i32, const D = 64, const BN = 64, const BK = 64, const STAGES = 2) {
      let (i, d) = (program_id(0) * BN + arange(0, BN), arange(0, D));
      let v = load(x + i[:, None] * D + d[None, :], mask=i[:, None] < n);
      var best = full(BN, inf, f32);
      var at = zeros(BN, i32);
      for k0 in range(0, k, BK, stages=STAGES) {
        let j = k0 + arange(0, BK);
        let w = load(c + j[:, None] * D + d[None, :], mask=j[:, None] < k);
        let far = sum(abs(w), axis=1)[None, :] - dot(v, trans(w));
        let (m, a) = min_at(where(j[None, :] < k, far, inf), axis=1);
        at = where(m < best, k0 + a, at);
        best = min(best, m);
      }
      store(least + i, best, mask=i < n);
      store(which + i, at, mask=i < n);
    }""" % ((" multiple_of(16)",) * 2 if box else ("", " multiple_of(8)"))
    points = lambda rows: (rng.integers(-4, 5, (rows, d)) * (1 + rng.integers(0, 4, (rows, d)) * 2.0**-11)).astype(np.float32)
    x, c = points(n), points(k)
    least, which = poisoned(dev, n, "f32"), poisoned(dev, n, "i32")
    f = source(dev, text, D=d, BN=bn, BK=bk, STAGES=stages, warps=warps)
    call = launch(f, -(-n // bn), dev.array(x), dev.array(c), least, which, n, k)
    far = np.abs(c).astype(float).sum(1) - tf32(x) @ tf32(c).T
    chosen = which.numpy()                      # of several that are as near as f32 can tell, any
    return Run(call, [("least", least.numpy(), far.min(1), 5e-6), ("there", np.array([np.all((0 <= chosen) & (chosen < k))]), np.array([True]), 0),
                      ("which", far[np.arange(n), chosen % k], far.min(1), 5e-6)])


def stored(dev, rng, a, b, m, n, k, warps, a_t=False, b_t=False, how="plain", promote=128, target=None):
    """Dots outside of loops with stages: plain, of factors that are computed, in a loop that changes one factor or none of them."""
    text = """kernel f(a: *A multiple_of(16), b: *B multiple_of(16), c: *S, times: i32, type A = f16, type B = f16, type S = f32, const M = 64,
             const N = 64, const K = 64, const AT = false, const BT = false, const HOW = "plain", const PROMOTE = 128) {
      let (i, j, k) = (arange(0, M), arange(0, N), arange(0, K));
      let ap = a + (AT ? k[None, :] * M + i[:, None] : i[:, None] * K + k[None, :]);
      let bp = b + (BT ? j[None, :] * K + k[:, None] : k[:, None] * N + j[None, :]);
      let x = load(ap);
      let y = load(bp);
      var acc = full([M, N], S(1));
      if HOW == "plain" { acc = dot(x, y, acc, precision="tf32_cut", promote=PROMOTE); }
      else if HOW == "computed" { acc = dot(A(f32(x) * 2.0), B(f32(y) * 2.0), acc, precision="tf32_cut", promote=PROMOTE); }
      else {
        for t in range(0, times) {
          var z = y;
          if HOW == "changes" { z = load(bp + t * (K * N)); }
          acc = dot(x, z, acc, precision="tf32_cut", promote=PROMOTE);
        }
      }
      store(c + i[:, None] * N + j[None, :], acc);
    }"""
    (x, vx), (y, vy) = operand(rng, (m, k), a), operand(rng, (2, k, n), b)
    flip = lambda v, t: np.ascontiguousarray(np.swapaxes(v, -1, -2)) if t else v
    c = poisoned(dev, (m, n), accumulator(a))
    f = source(dev, text, target=target, A=a, B=b, S=accumulator(a), M=m, N=n, K=k, AT=str(a_t).lower(), BT=str(b_t).lower(), HOW=f'"{how}"', PROMOTE=promote, warps=warps)
    call = launch(f, 1, dev.array(flip(x, a_t), a), dev.array(flip(y, b_t), b), c, 2)
    if a == "f32":
        vx, vy = tf32_cut(vx), tf32_cut(vy)
    factor, second = {"plain": (1, 0), "computed": (4, 0), "same": (2, 0), "changes": (1, 1)}[how]
    want = 1 + factor * (vx @ vy[0]) + second * (vx @ vy[1])
    small = a in FLOATS8 and promote != 1
    return Run(call, [("c", c.numpy(), want.astype(np.int32) if a in ("i8", "u8") else want, 0 if a in ("i8", "u8") else FP8_SUMS if small else 5e-6)])


def heads(dev, rng, b, m, n, d, warps, stages):
    """Attention of a few heads at once in one program: chained batched dots, in a pipelined loop."""
    text = """kernel f(q: *f16, k: *f16, v: *f16, o: *f32, S: i32, const B = 3, const M = 16, const N = 32, const D = 64, const STAGES = 2) {
      let h = arange(0, B)[:, None, None];
      let i = arange(0, M)[None, :, None];
      let dl = arange(0, D)[None, None, :];
      let x = load(q + h * (M * D) + i * D + dl);
      var acc = zeros([B, M, D], f32);
      for at in range(0, S, N, stages=STAGES) {
        let key = at + arange(0, N)[None, :, None];
        let y = load(k + i64(h) * S * D + key * D + dl, mask=key < S);
        let z = load(v + i64(h) * S * D + key * D + dl, mask=key < S);
        acc = dot(f16(dot(x, trans(y)) * 0.125), z, acc);
      }
      store(o + h * (M * D) + i * D + dl, acc);
    }"""
    s = 3 * n - 5
    (q, vq), (k, vk), (v, vv) = (operand(rng, shape, "f16") for shape in ((b, m, d), (b, s, d), (b, s, d)))
    o = poisoned(dev, (b, m, d), "f32")
    call = launch(source(dev, text, B=b, M=m, N=n, D=d, STAGES=stages, warps=warps), 1, dev.array(q), dev.array(k), dev.array(v), o, s)
    p = (vq @ vk.transpose(0, 2, 1) * 0.125).astype(np.float16).astype(float)
    return Run(call, [("o", o.numpy(), p @ vv, 1e-3)])


def widened(dev, rng, m, dtype, steps=2, BK=64, stages=3, of_rows=True):
    """Weights of 8 bits made f16 on their way into the dot; side by side along K (of_rows) or along N."""
    text = """kernel f(a: *f16, w: *W, c: *f32, steps: i32, const M = 16, const N = 32, const BK = 64, const STAGES = 3, const ROWS = true, type W = i8) warps(4) {
      let (i, j, k) = (arange(0, M), arange(0, N), arange(0, BK));
      var acc = zeros([M, N], f32);
      for s in range(0, steps, stages=STAGES) {
        let x = load(a + ((i * steps + s) * BK)[:, None] + k[None, :]);
        let n = steps * BK;
        let y = ROWS ? trans(load(w + (j * n + s * BK)[:, None] + k[None, :])) : load(w + ((s * BK + k) * N)[:, None] + j[None, :]);
        acc = dot(x, f16(y) * 0.5, acc);
      }
      store(c + i[:, None] * N + j[None, :], acc);
    }"""
    k, n = steps * BK, 32
    (a, av), (w, wv) = operand(rng, (m, k), "f16"), operand(rng, (n, k) if of_rows else (k, n), dtype)
    c = poisoned(dev, (m, n), "f32")
    call = launch(source(dev, text, M=m, BK=BK, STAGES=stages, ROWS=str(of_rows).lower(), W=dtype), 1, dev.array(a), dev.array(w, dtype), c, steps)
    return Run(call, [("c", c.numpy(), av @ (wv.T if of_rows else wv) / 2, 1e-5)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
ALL = ("f16", "bf16", "f32", "i8", "u8", "f8e4m3", "f8e5m2")
MIXED = ([dict(a=a, b=b, acc="f32") for a, b in (FLOATS8, FLOATS8[::-1])] + [dict(a=a, b=b, acc="i32") for a, b in (("i8", "u8"), ("u8", "i8"))] +
         [dict(a=a, b=b, acc="f16") for a in FLOATS8 for b in FLOATS8] + [dict(a="f16", b="f16", acc="f16")])
HALVES = [dict(a=a, b=b, k=k) for a, b in (("f16", "f16"), FLOATS8, ("f8e5m2", "f8e5m2")) for k in (16, 40, 256)]


def on_targets(sizes):
    """The simulator is of any target: one without instructions for 8-bit floats, and one that adds their products in f16, too."""
    return [{**size, **target} for size in sizes for target in ({}, {"target": "sm_80"}, {"target": "sm_120a"})]


def of_types(sizes):
    return [{**types, **size} for types in MIXED for size in sizes]


CASES = [
    Case("dots_mixed", mixed, on_targets(of_types(grid(m=(40,), n=(24,), k=(160, 20), stages=(3,), warps=(4,)) + grid(m=(64,), n=(64,), k=(160,), stages=(3,), warps=(8,)))),
         of_types(grid(m=(16, 40), n=(24,), k=(160, 20), stages=(1, 3), warps=(1, 4)))),
    both("dots_promoted", promoted, grid(a=FLOATS8, b=FLOATS8, k=(160,), bk=(64, 128), promote=(128,), warps=(4,)) +
         grid(a=FLOATS8[:1], b=FLOATS8[:1], k=(16, 208), bk=(96, 256), promote=(0, 1, 31, 32, 48, 64), warps=(4, 8)) +
         grid(a=FLOATS8[:1], b=FLOATS8[1:], k=(160,), bk=(64, 128), promote=(64,), warps=(8,), scaled=(True,)) +
         grid(a=FLOATS8[:1], b=FLOATS8[1:], k=(208,), bk=(64, 128), promote=(64,), warps=(4,), n=(192, 256)) +
         grid(a=FLOATS8[:1], b=FLOATS8[1:], k=(208,), bk=(128,), promote=(64, 128), warps=(4,), n=(128,), tall=(2,))),
    Case("dots_half_sums", half_sums, on_targets(HALVES), HALVES),
    both("dots_nearest", nearest, grid(n=(100,), k=(40, 150), d=(32, 64), bn=(64, 128), bk=(32, 64), stages=(2, 3), warps=(4,)) +
         grid(n=(300,), k=(150,), d=(64,), bn=(128,), bk=(64,), stages=(3,), warps=(8,), box=(True, False))),
    both("dots_ragged", ragged, grid(m=(1, 3, 16), n=(1, 7), k=(1, 4, 20), dtype=ALL, warps=(1,)) +
         grid(m=(8, 100), n=(4, 24), k=(5, 100), dtype=ALL, warps=(4,)) + grid(m=(5, 17), n=(9,), k=(3, 31, 781), dtype=ALL, warps=(2,)) +
         grid(m=(3, 17), n=(5,), k=(7, 20), dtype=("f64",), warps=(1, 2))),
    both("dots_batched", batched, grid(b=(1, 3, 4), m=(16, 5), n=(8, 20), k=(32, 20), dtype=("f16",), warps=(1, 4), trans=(False, True)) +
         grid(b=(3, 5), m=(16, 33), n=(12,), k=(32, 9), dtype=ALL + ("f64",), warps=(2, 8), trans=(False,)) +
         grid(b=(3,), m=(5, 32), n=(12,), k=(20,), dtype=("f32",), warps=(2,), trans=(False, True), precision=tuple(BOUNDS)[1:])),
    both("dots_many_batches", many_batches, grid(batches=((3, 2), (2, 1, 3)), warps=(1, 4))),
    both("dots_decode", decode, grid(rows=(1, 3), s=(100, 300), d=(64, 80), warps=(1, 4))),
    both("dots_written_layouts", written_layouts, grid(b=(2, 3), m=(16, 20), n=(24,), k=(32, 20), warps=((2, 2, 1), (1, 2, 2), (4, 1, 1)))),
    both("dot_precision", precisions, grid(m=(16, 40), n=(24,), k=(8, 20, 32, 200), precision=tuple(BOUNDS), warps=(1, 4))),
    both("dot_specials", specials, grid(precision=tuple(BOUNDS))),
    both("dots_stored", stored, grid(a=("f16",), b=("f16",), m=(64, 128), n=(64,), k=(64, 32), warps=(4,), a_t=(False, True), b_t=(False, True),
                                     how=("plain", "computed", "same", "changes")) +
         grid(a=("bf16",), b=("bf16",), m=(128,), n=(40, 128), k=(48,), warps=(8,), how=("plain", "changes"), b_t=(False, True)) +
         grid(a=("f32",), b=("f32",), m=(64,), n=(64,), k=(32,), warps=(4,), how=("plain", "changes"), a_t=(False, True), b_t=(False, True)) +
         grid(a=("i8",), b=("i8", "u8"), m=(64,), n=(64,), k=(128,), warps=(4,), how=("plain", "changes"), a_t=(False, True), b_t=(False, True)) +
         grid(a=FLOATS8, b=FLOATS8, m=(64,), n=(64,), k=(128,), warps=(4,), how=("plain", "changes", "computed"), b_t=(True,), promote=(0, 1, 64, 128))),
    both("dots_cut", cut, grid(k=(96,), bk=(32,), first=("loaded", "computed", "outside"), warps=(4, 8), rows_of_k=(False, True)) +
         grid(k=(80,), bk=(32, 64), first=("loaded", "computed"), warps=(1, 4))),
    Case("dots_rounded_by_copies", cut, grid(k=(96,), bk=(32,), first=("loaded", "computed", "outside"), warps=(4, 8), rows_of_k=(False, True), precision=("tf32",),
                                             target=("sm_90a",)) +
         grid(k=(80,), bk=(32, 64), first=("loaded",), warps=(4,), precision=("tf32",), target=("sm_90a",)), []),
    both("dots_looped", looped, grid(m=(100,), n=(40,), k=(7, 96, 200), bk=(48, 20), stages=(1, 3), dtype=ALL) +
         grid(m=(100,), n=(40,), k=(7, 96, 200), bk=(96,), stages=(1, 3), dtype=("f16", "bf16", "i8", "f8e4m3")) +
         grid(m=(16,), n=(8,), k=(100,), bk=(24, 32), stages=(1, 3), dtype=("f32",), precision=("tf32x3", "bf16x3", "bf16x6", "ieee"))),
    both("dots_widened", widened, grid(m=(5, 16, 40), dtype=("i8", "f8e4m3"), BK=(32, 64), stages=(1, 3), of_rows=(True, False))),
    both("dots_heads", heads, grid(b=(3, 2), m=(16, 5), n=(32, 24), d=(64,), warps=(1, 4), stages=(1, 3))),
]
