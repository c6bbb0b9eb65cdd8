"""Products of factors that keep two of four elements along K: every type, extents that fill no instruction, loops, against numbers."""
import numpy as np
from cases import Case, Run, grid, launch, poisoned
from dots import operand, source
import tilec

PLACES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], np.uint16)
TYPES = [dict(a=t, b=t) for t in ("f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2")]
MIXED = [dict(a=a, b=b) for a, b in (("i8", "u8"), ("u8", "i8"), ("f8e4m3", "f8e5m2"), ("f8e5m2", "f8e4m3"))]


def pattern(rng, m, k, zeros=False):
    """Random places, a row of each of its elements of `a` in b, and metadata. zeros: some words of no bits, which mean the first two."""
    places = PLACES[rng.integers(0, len(PLACES), (m, k // 4))]
    words = ((places[..., 0] | places[..., 1] << 2).reshape(m, k // 16, 4) << np.arange(0, 16, 4, dtype=np.uint16)).sum(2).astype(np.uint16)
    if zeros:
        none = rng.integers(0, 3, words.shape) == 0
        words[none] = 0
        places.reshape(m, k // 16, 4, 2)[none] = PLACES[0]
    return words, (places + np.arange(0, k, 4)[:, None]).reshape(m, k // 2).astype(int)


def dense(x, at, k):
    """The matrix that compressed x and the columns of its elements stand for."""
    out = np.zeros((x.shape[0], k), x.dtype)
    np.put_along_axis(out, at, x, 1)
    return out


def product(dev, rng, a, b, m, n, k, warps=4, zeros=False, acc=None, trans=False, target=None):
    """One program, with an accumulator; trans: b lies by columns."""
    text = """kernel f(a: *A, w: *u16, b: *B, c: *C, d: *C, const M = 16, const N = 8, const K = 32, const TRANS = false, type A = f16, type B = f16, type C = f32) {
      let (i, j) = (arange(0, M)[:, None], arange(0, N)[None, :]);
      let x = load(a + i * (K / 2) + arange(0, K / 2)[None, :]);
      let meta = load(w + i * (K / 16) + arange(0, K / 16)[None, :]);
      let y = TRANS ? trans(load(b + arange(0, N)[:, None] * K + arange(0, K)[None, :])) : load(b + arange(0, K)[:, None] * N + j);
      store(d + i * N + j, dot_sparse(x, meta, y, load(c + i * N + j)));
    }"""
    whole = a in ("i8", "u8")
    to = acc or ("i32" if whole else "f32")
    (x, vx), (y, vy), (words, at) = operand(rng, (m, k // 2), a), operand(rng, (k, n), b), pattern(rng, m, k, zeros)
    c = rng.integers(-1000, 1000, (m, n)).astype({"i32": np.int32, "f32": np.float32, "f16": np.float16}[to])
    d = poisoned(dev, (m, n), to)
    run = source(dev, text, target=target, M=m, N=n, K=k, TRANS=str(trans).lower(), A=a, B=b, C=to, warps=warps)
    call = launch(run, 1, dev.array(x, a), dev.array(words), dev.array(np.ascontiguousarray(y.T) if trans else y, b), dev.array(c), d)
    want = c.astype(float) + dense(vx, at, k).astype(float) @ vy
    return Run(call, [("d", d.numpy(), want.astype(np.int32) if whole else want, 0 if whole else 2e-3 if to == "f16" else 1e-5)])


def outside(dev, rng):
    """What is kept stands for itself: infinities and nans of b that no element of a meets do not matter."""
    text = """kernel f(a: *f16, w: *u16, b: *f16, d: *f32) warps(1) {
      let (i, j) = (arange(0, 16)[:, None], arange(0, 8)[None, :]);
      let x = load(a + i * 16 + arange(0, 16)[None, :]);
      store(d + i * 8 + j, dot_sparse(x, load(w + i * 2 + arange(0, 2)[None, :]), load(b + arange(0, 32)[:, None] * 8 + j)));
    }"""
    (x, vx), (y, vy) = operand(rng, (16, 16), "f16"), operand(rng, (32, 8), "f16")
    words, at = np.full((16, 2), 0x9999, np.uint16), np.tile(np.arange(0, 32, 4)[:, None] + [1, 2], (16, 1, 1)).reshape(16, 16)
    y[0::4], y[3::4] = np.inf, np.nan
    vy = np.where(np.isfinite(y), vy, 0)
    d = poisoned(dev, (16, 8), "f32")
    call = launch(source(dev, text), 1, dev.array(x), dev.array(words), dev.array(y), d)
    return Run(call, [("d", d.numpy(), dense(vx, at, 32) @ vy, 1e-5)])


def looped(dev, rng, a, b, m, n, k, bm=64, bn=32, bk=64, stages=3, warps=4, target=None):
    """Blocks of a matrix of any size in a loop with stages: what a mask leaves out is metadata of no bits."""
    text = """kernel f(a: *A, w: *u16, b: *B, c: *C, m: i32, n: i32, k: i32, const BM = 64, const BN = 32, const BK = 64, const STAGES = 3,
             type A = f16, type B = f16, type C = f32) {
      let (r, s) = (program_id(0) * BM, program_id(1) * BN);
      let (i, j) = (r + arange(0, BM)[:, None], s + arange(0, BN)[None, :]);
      var acc = zeros([BM, BN], C);
      for q in range(0, k, BK, stages=STAGES) {
        let (h, g) = (q / 2 + arange(0, BK / 2)[None, :], q / 16 + arange(0, BK / 16)[None, :]);
        let meta = load(w + i * (k / 16) + g, mask=i < m && g < k / 16);
        let x = load(a + i * (k / 2) + h, mask=i < m && h < k / 2);
        let row = q + arange(0, BK)[:, None];
        acc = dot_sparse(x, meta, load(b + row * n + j, mask=row < k && j < n), acc);
      }
      store(c + i * n + j, acc, mask=i < m && j < n);
    }"""
    whole = a in ("i8", "u8")
    to = "i32" if whole else "f32"
    (x, vx), (y, vy), (words, at) = operand(rng, (m, k // 2), a), operand(rng, (k, n), b), pattern(rng, m, k)
    c = poisoned(dev, (m, n), to)
    run = source(dev, text, target=target, BM=bm, BN=bn, BK=bk, STAGES=stages, A=a, B=b, C=to, warps=warps)
    call = launch(run, (tilec.cdiv(m, bm), tilec.cdiv(n, bn)), dev.array(x, a), dev.array(words), dev.array(y, b), c, m, n, k)
    want = dense(vx, at, k) @ vy
    return Run(call, [("c", c.numpy(), want.astype(np.int32) if whole else want, 0 if whole else 1e-5)])


def chosen(dev, rng, dtype, m=8, k=64):
    """What is kept, with equal sizes, infinities and nans, of any type: in place and compressed."""
    text = """kernel f(x: *T, y: *T, kept: *T, meta: *u16, back: *T, const M = 8, const K = 64, type T = f16) warps(2) {
      let at = arange(0, M)[:, None] * K + arange(0, K)[None, :];
      let v = load(x + at);
      store(y + at, sparse_prune(v));
      let (a, w) = sparse_compress(v);
      store(kept + arange(0, M)[:, None] * (K / 2) + arange(0, K / 2)[None, :], a);
      store(meta + arange(0, M)[:, None] * (K / 16) + arange(0, K / 16)[None, :], w);
      store(back + at, sparse_expand(a, w));
    }"""
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 3, *(() if dtype in ("i8", "u8", "i32") else (np.inf, -np.inf, np.nan, -np.nan))], np.float32)
    v = rng.choice(values, (m, k)).astype(np.float64)
    if dtype == "i8":
        v[0, :8] = -128, 127, -127, 5, 127, -128, 128 - 256, 0
    if dtype == "i32":
        v[0, :8] = -2**31, 2**31 - 1, 1 - 2**31, 5, 3, -2**31, 7, 2**31 - 1
    x = v.astype(np.int64).astype(tilec.DTYPES[dtype]) if dtype in ("i8", "u8", "i32") else tilec.to_bits(v.astype(np.float32), dtype) if dtype in ("bf16", "f8e4m3", "f8e5m2") else v.astype(tilec.DTYPES[dtype])
    bits = x.view(f"u{x.dtype.itemsize}")
    size = np.abs(x.astype(np.int64)) if dtype in ("i8", "u8", "i32") else bits & ~bits.dtype.type(1 << (8 * x.dtype.itemsize - 1))
    order = np.argsort(-size.astype(np.float64).reshape(m, k // 4, 4), axis=2, kind="stable")[:, :, :2]
    mask = np.zeros((m, k // 4, 4), bool)
    np.put_along_axis(mask, order, True, 2)
    mask = mask.reshape(m, k)
    y, kept, meta, back = poisoned(dev, (m, k), dtype), poisoned(dev, (m, k // 2), dtype), poisoned(dev, (m, k // 16), "u16"), poisoned(dev, (m, k), dtype)
    call = launch(source(dev, text, M=m, K=k, T=dtype), 1, dev.array(x, dtype), y, kept, meta, back)
    at = np.sort(order, 2)
    words = ((at[:, :, 0] | at[:, :, 1] << 2).reshape(m, k // 16, 4) << np.arange(0, 16, 4)).sum(2).astype(np.uint16)
    want, same = np.where(mask, bits, bits.dtype.type(0)), lambda a: a.numpy().view(bits.dtype)
    return Run(call, [("pruned", same(y), want, 0), ("kept", same(kept), bits[mask].reshape(m, k // 2), 0), ("meta", meta.numpy(), words, 0), ("back", same(back), want, 0)])


def far(dev, rng, worst):
    """keep_tiles where two elements of each 4 x 4 are no finite number: these are kept, two of every row and column. And a word of zeros, which
    stands for the first two of four."""
    text = """kernel f(x: *f32, kept: *i32, back: *f32) warps(1) {
      let at = arange(0, 8)[:, None] * 16 + arange(0, 16)[None, :];
      store(kept + arange(0, 2)[:, None] * 4 + arange(0, 4)[None, :], keep_tiles(load(x + at)));
      store(back + at, sparse_expand(full([8, 8], 3.0, f32), full([8, 1], 0, u16)));
    }"""
    x, marked = rng.standard_normal((8, 16)).astype(np.float32), np.zeros((2, 4), np.int32)
    for r, c in np.ndindex(2, 4):
        for i, j in zip(rng.permutation(4)[:2], rng.permutation(4)[:2]):
            x[4 * r + i, 4 * c + j] = worst
            marked[r, c] |= 1 << (4 * i + j)
    kept, back = poisoned(dev, (2, 4), "i32"), poisoned(dev, (8, 16), "f32")
    call = launch(source(dev, text), 1, dev.array(x), kept, back)
    k = kept.numpy()
    bits = (k[:, :, None] >> np.arange(16) & 1).reshape(2, 4, 4, 4)
    two = np.full((2, 4, 4), 2)
    return Run(call, [("marked", k & marked, marked, 0), ("rows", bits.sum(3), two, 0), ("columns", bits.sum(2), two, 0),
                      ("back", back.numpy(), np.tile(np.float32([3, 3, 0, 0]), (8, 4)), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)


def of_types(types, sizes):
    return [{**t, **size} for t in types for size in sizes]


CASES = [
    both("sparse_products", product, of_types(TYPES, grid(m=(16,), n=(8,), k=(32, 64), warps=(1,)) + grid(m=(64,), n=(32,), k=(128,), warps=(4,), zeros=(True,))) +
         of_types(MIXED, grid(m=(32,), n=(16,), k=(64,), warps=(2,)))),
    both("sparse_ragged", product, of_types(TYPES[:1] + TYPES[2:3] + TYPES[4:5], grid(m=(1, 5, 40), n=(3, 24), k=(16, 48, 80), warps=(1, 4)))),
    both("sparse_halves", product, grid(a=("f16",), b=("f16",), m=(32,), n=(32,), k=(64,), acc=("f16",), trans=(False, True))),
    Case("sparse_targets", product, of_types(TYPES, grid(m=(40,), n=(24,), k=(96,), target=("sm_80", "sm_89", "sm_100a"))), []),
    both("sparse_far", far, grid(worst=(np.inf, -np.inf, np.nan))),
    both("sparse_chosen", chosen, grid(dtype=("f16", "bf16", "f32", "f64", "i8", "u8", "i32", "f8e4m3", "f8e5m2")) + grid(dtype=("f16",), m=(5,), k=(16, 80))),
    both("sparse_outside", outside, [{}]),
    both("sparse_loops", looped, of_types(TYPES[:1] + TYPES[2:3] + TYPES[4:5], grid(m=(64, 100), n=(48,), k=(160,), stages=(1, 3)) +
                                           grid(m=(100,), n=(72,), k=(208,), bm=(128,), bn=(64,), warps=(8,)))),
]
