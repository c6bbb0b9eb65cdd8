"""The library's functions for neural networks (stdlib/nn.tile) on tiles, against the same in float64."""
import cases
from cases import Case, Run, poisoned, launch, grid
import numpy as np
import tilec

MOVES = """
fn at(const R, const C) { return arange(0, R)[:, None] * C + arange(0, C)[None, :]; }
fn row(const C) { return arange(0, C)[None, :]; }
"""


def source(dev, text, name=None, **defines):
    return dev.program(text=MOVES + text, name="nn.tile").kernel(name, **defines)


def narrow(a, dtype):
    return a if dtype == "f64" else cases.NARROW[dtype](a)


def wide(a, dtype):
    return a if dtype == "f64" else cases.WIDE[dtype](a)


TOLERANCE = {"f16": 5e-4, "bf16": 4e-3, "f32": 1e-6, "f64": 3e-7}


def call_on(dev, text, dtype, arrays, outs, **defines):
    """Run kernel f of arguments arrays then outs ({name: (shape, dtype)}); the outputs by name, in float64."""
    out = {k: poisoned(dev, s, d) for k, (s, d) in outs.items()}
    call = launch(source(dev, text, "f", T=dtype, **defines), 1, *[dev.array(a, dtype) if a.dtype.kind != "i" else dev.array(a) for a in arrays], *out.values())
    return call, {k: wide(v.numpy(), outs[k][1]) for k, v in out.items()}


def lse(x, axis):
    m = x.max(axis, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    with np.errstate(divide="ignore", over="ignore"):
        return m + np.log(np.exp(x - m).sum(axis, keepdims=True))


def softmaxes(dev, rng, rows, cols, n, axis, dtype, warps=4):
    """softmax, log_softmax, logsumexp and derivatives along either axis of a tile, of which the first n count."""
    text = """kernel f(x: *T, g: *T, y: *T, l: *T, s: *T, dx: *T, dl: *T, type T = f32, const R = 1, const C = 1, const A = 0, const N = 1) {
      let i = at(R, C);
      let v = load(x + i);
      let inside = index_along(v, A) < N;
      let p = softmax(v, axis=A, mask=inside);
      let q = log_softmax(v, A, inside);
      store(y + i, p, mask=inside);
      store(l + i, q, mask=inside);
      store(s + (A == 0 ? row(C) : arange(0, R)[:, None]), logsumexp(v, axis=A, mask=inside));
      barrier();                                          // what follows reads y and l, which other threads may have written
      store(dx + i, softmax_grad(load(g + i), load(y + i), axis=A, mask=inside), mask=inside);
      store(dl + i, log_softmax_grad(load(g + i), load(l + i), axis=A, mask=inside), mask=inside);
    }"""
    x, g = narrow(rng.standard_normal((rows, cols)) * 3, dtype), narrow(rng.standard_normal((rows, cols)), dtype)
    once = (1, cols) if axis == 0 else (rows, 1)
    full = ((rows, cols), dtype)
    call, out = call_on(dev, text, dtype, (x, g), dict(y=full, l=full, s=(once, dtype), dx=full, dl=full), R=rows, C=cols, A=axis, N=n, warps=warps)
    count = lambda a: a[:n] if axis == 0 else a[:, :n]
    x, g = count(wide(x, dtype)), count(wide(g, dtype))
    s = lse(x, axis)
    p = count(out["y"])              # as the kernel saw it: rounded
    q = count(out["l"])
    want = dict(y=np.exp(x - s), l=x - s, s=s, dx=p * (g - (p * g).sum(axis, keepdims=True)), dl=g - np.exp(q) * g.sum(axis, keepdims=True))
    # The derivatives are differences: they are as exact as what is subtracted, which may be much larger than what is left.
    sizes = dict(dx=p * (abs(g) + (p * abs(g)).sum(axis, keepdims=True)), dl=abs(g) + np.exp(q) * abs(g).sum(axis, keepdims=True))
    lost = {k: max(1.0, np.linalg.norm(v) / np.linalg.norm(want[k])) for k, v in sizes.items()}
    limit = lambda k: (1e-14 if dtype == "f64" else TOLERANCE[dtype]) * (2 * lost[k] if k in lost else 1)
    return Run(call, [(k, out[k] if k == "s" else count(out[k]), want[k], limit(k)) for k in want])


def edges_of_logsumexp(dev, rng):
    """Rows of -inf, with one inf, with huge and tiny numbers, with a nan; at once and block by block."""
    text = """kernel f(x: *T, a: *T, b: *T, type T = f32) {
      let v = load(x + at(8, 64));
      store(a + arange(0, 8)[:, None], logsumexp(v, axis=1));
      var s = logsum_start([8, 1]);
      for j in range(4) { s = logsum_add(s, load(x + (arange(0, 8)[:, None] * 64 + j * 16 + row(16))), axis=1); }
      store(b + arange(0, 8)[:, None], logsum_value(s));
    }"""
    x = np.zeros((8, 64), np.float32)
    x[0], x[1, 5], x[2], x[3], x[4, 40], x[5, :32], x[6], x[7, 63] = -np.inf, np.inf, 1e38, -1e38, np.nan, -np.inf, np.linspace(-200, 200, 64), 88.5
    call, out = call_on(dev, text, "f32", (x,), dict(a=((8, 1), "f32"), b=((8, 1), "f32")))
    want = lse(x.astype(np.float64), 1)
    want[1] = np.inf
    checks = []
    for k in out:
        odd = ~np.isfinite(want)
        checks += [(k, out[k][~odd], want[~odd], 1e-6), (k + " not finite", np.nan_to_num(out[k][odd], nan=7.0, posinf=8.0, neginf=9.0), np.nan_to_num(want[odd], nan=7.0, posinf=8.0, neginf=9.0), 0)]
    return Run(call, checks)


def norms(dev, rng, rows, cols, n, axis, dtype, offset=1.0, warps=4):
    """Moments, layer norm and RMS norm with derivatives along either axis."""
    text = """kernel f(x: *T, g: *T, w: *T, b: *T, mean: *f32, var_: *f32, y: *T, z: *T, dx: *T, dw: *T, du: *T, dv: *T,
                     type T = f32, const R = 1, const C = 1, const A = 0, const N = 1) {
      let i = at(R, C);
      let v = load(x + i);
      let inside = index_along(v, A) < N;
      let j = A == 0 ? arange(0, R)[:, None] : row(C);
      let k = A == 0 ? row(C) : arange(0, R)[:, None];
      let dy = load(g + i, mask=inside);
      let (m, s) = mean_var(v, axis=A, mask=inside);
      store(mean + k, m);
      store(var_ + k, s);
      store(y + i, layer_norm(v, load(w + j), load(b + j), 1e-5, axis=A, mask=inside), mask=inside);
      store(z + i, rms_norm(v, load(w + j), 1e-6, axis=A, mask=inside, n=f32(N)), mask=inside);
      let (c, r) = layer_stats(f32(v), 1e-5, axis=A, mask=inside, n=f32(N));
      let (d, e) = layer_norm_grad(dy, v, load(w + j), c, r, axis=A, n=f32(N));
      store(dx + i, d, mask=inside);
      store(dw + i, e, mask=inside);
      let (p, q) = rms_norm_grad(dy, v, load(w + j), rms_scale(f32(v), axis=A, mask=inside), axis=A, n=f32(N));
      store(du + i, p, mask=inside);
      store(dv + i, q, mask=inside);
    }"""
    x, g = narrow(rng.standard_normal((rows, cols)) * 2 + offset, dtype), narrow(rng.standard_normal((rows, cols)), dtype)
    w, b = (narrow(rng.standard_normal((1, cols) if axis else (rows, 1)), dtype) for _ in range(2))
    once, full = ((1, cols) if axis == 0 else (rows, 1), "f32"), ((rows, cols), dtype)
    call, out = call_on(dev, text, dtype, (x, g, w, b), dict(mean=once, var=once, y=full, z=full, dx=full, dw=full, du=full, dv=full), R=rows, C=cols, A=axis, N=n, warps=warps)
    count = lambda a: a[:n] if axis == 0 else a[:, :n]
    x, g, w, b = wide(x, dtype), wide(g, dtype), wide(w, dtype), wide(b, dtype)
    x, g = count(x), count(g)
    w, b = (count(w), count(b)) if (axis == 0) == (w.shape[1] == 1) else (w, b)
    avg = lambda a: a.mean(axis, keepdims=True)
    scale, rms = 1 / np.sqrt(x.var(axis, keepdims=True) + 1e-5), 1 / np.sqrt(avg(x * x) + 1e-6)
    h, u = (x - avg(x)) * scale, x * rms
    want = dict(mean=avg(x), var=x.var(axis, keepdims=True), y=h * w + b, z=u * w, dx=scale * (g * w - h * avg(h * g * w) - avg(g * w)), dw=g * h,
                du=rms * (g * w - u * avg(u * g * w)), dv=g * u)
    return Run(call, [(k, out[k] if k in ("mean", "var") else count(out[k]), want[k], max(TOLERANCE[dtype], 1e-6 * abs(offset)) if k not in ("mean", "var") else 1e-6 * max(1, abs(offset) / 10))
                      for k in want])


def welford_blocks(dev, rng, n, offset, lanes):
    """Moments of a row that comes block by block, in one state or one for each lane; and by reduce over tuples."""
    text = """kernel f(x: *T, out: *T, n: i32, type T = f32, const LANES = 1) {
      let i = arange(0, 4)[:, None] * 32 + row(32);
      var s = moments_start([1, 32]);
      var t = Moments(0.0, 0.0, 0.0);
      for j in range(0, n, 128) {
        let v = load(x + (j + i), mask=j + i < n);
        s = moments_add(s, v, axis=0, mask=j + i < n);
        let k = j + arange(0, 128);
        t = moments_add(t, load(x + k, mask=k < n), mask=k < n);
      }
      let a = LANES == 1 ? t : moments_fold(s, axis=1);
      store(out + (LANES == 1 ? 0 : zeros([1, 1], i32)), a.count);
      store(out + (LANES == 1 ? 1 : full([1, 1], 1, i32)), a.mean);
      store(out + (LANES == 1 ? 2 : full([1, 1], 2, i32)), a.m2 / a.count);
    }"""
    x = (rng.standard_normal(n) + offset).astype(np.float32)
    out = poisoned(dev, 3, "f32")
    call = launch(source(dev, text, "f", LANES=lanes), 1, dev.array(x), out, n)
    x = x.astype(np.float64)
    got = out.numpy()
    return Run(call, [("count", got[:1], np.array([n], np.float32), 0), ("mean", 1 + got[1:2], np.array([1 + x.mean()]), 1e-6), ("var", got[2:], np.array([x.var()]), 1e-6 * max(1, offset / 10))])


def losses(dev, rng, rows, cols, smoothing, dtype):
    text = """kernel f(x: *T, t: *i32, loss: *f32, dx: *T, type T = f32, const R = 1, const C = 1, const S = 0.0) {
      let v = f32(load(x + at(R, C)));
      let r = arange(0, R)[:, None];
      let target = load(t + r);
      let (l, e) = cross_entropy(v, target, axis=1, smoothing=S);
      store(loss + r, l);
      store(dx + at(R, C), cross_entropy_grad(R < 8 ? softmax(v, axis=1) : exp(v - e), target, 2.0, f32(C), row(C), S));
    }"""
    x, t = narrow(rng.standard_normal((rows, cols)) * 3, dtype), rng.integers(0, cols, rows).astype(np.int32)
    t[0] = -100
    call, out = call_on(dev, text, dtype, (x, t), dict(loss=(rows, "f32"), dx=((rows, cols), dtype)), R=rows, C=cols, S=smoothing)
    x = wide(x, dtype)
    q = x - lse(x, 1)
    aim = np.full((rows, cols), smoothing / cols)
    aim[np.arange(rows), np.maximum(t, 0)] += 1 - smoothing
    aim[0] = 0
    return Run(call, [("loss", out["loss"], -(q * aim).sum(1), 1e-6), ("dx", out["dx"], 2 * np.where(t[:, None] >= 0, np.exp(q) - aim, 0), TOLERANCE[dtype])])


def odd_targets(dev, rng, cols, n, smoothing, dtype):
    """Targets that are no index of the row, next to it and far off: loss and derivative are 0; the first and last index. Of a row's extent the
    first n are classes."""
    text = """kernel f(x: *T, t: *i32, loss: *T, whole: *T, dx: *T, type T = f32, const R = 1, const C = 1, const N = 1, const S = 0.0) {
      let v = load(x + at(R, C));
      let r = arange(0, R)[:, None];
      let target = load(t + r);
      let inside = row(C) < N;
      let (l, e) = cross_entropy(v, target, axis=1, smoothing=S, mask=inside);
      store(loss + r, l);
      store(whole + r, e);
      store(dx + at(R, C), cross_entropy_grad(softmax(v, axis=1, mask=inside), target, 2.0, cast(N, T), row(C), S), mask=inside);
    }"""
    t = np.array([n, n + 1, -1, -2**31, 2**31 - 1, -100, n - 1, 0, cols, 1 << 30], np.int32)
    rows = len(t)
    x = narrow(rng.standard_normal((rows, cols)) * 3 + 20, dtype)
    once = ((rows, 1), dtype)
    call, out = call_on(dev, text, dtype, (x, t), dict(loss=once, whole=once, dx=((rows, cols), dtype)), R=rows, C=cols, N=n, S=smoothing)
    x = wide(x, dtype)[:, :n]
    q = x - lse(x, 1)
    known = (t >= 0) & (t < n)
    aim = np.full((rows, n), smoothing / n)
    aim[known, t[known]] += 1 - smoothing
    aim[~known] = 0
    grad = 2 * np.where(known[:, None], np.exp(q) - aim, 0)
    tight = 1e-13 if dtype == "f64" else 2e-6
    return Run(call, [("loss of none", out["loss"][~known], np.zeros((int((~known).sum()), 1)), 0), ("loss", out["loss"], -(q * aim).sum(1, keepdims=True), tight),
                      ("logsumexp", out["whole"], lse(x, 1), tight), ("dx of none", abs(out["dx"][~known, :n]), 0 * grad[~known], 0), ("dx", out["dx"][:, :n], grad, tight)])


def turns(dev, rng, rows, d, interleaved, dtype, rank):
    text = """kernel f(x: *T, c: *f32, s: *f32, y: *T, z: *T, type T = f32, const R = 1, const D = 2, const I = false, const RANK = 2) {
      let h = arange(0, D / 2);
      let k = RANK == 2 ? arange(0, R)[:, None] * (D / 2) + h[None, :] : h;
      let i = RANK == 2 ? at(R, D) : arange(0, D);
      let y0 = rotary(load(x + i), load(c + k), load(s + k), I);
      store(y + i, y0);
      store(z + i, rotary(f32(y0), load(c + k), -load(s + k), I));
    }"""
    x, a = narrow(rng.standard_normal((rows, d)), dtype), rng.standard_normal((rows, d // 2)) * 3
    c, s = np.cos(a).astype(np.float32), np.sin(a).astype(np.float32)
    y, z = poisoned(dev, (rows, d), dtype), poisoned(dev, (rows, d), dtype)
    call = launch(source(dev, text, "f", T=dtype, R=rows, D=d, I=str(interleaved).lower(), RANK=rank), 1, dev.array(x, dtype), dev.array(c), dev.array(s), y, z)
    v, want = wide(x, dtype), np.empty((rows, d))
    u, w = (v[:, 0::2], v[:, 1::2]) if interleaved else (v[:, :d // 2], v[:, d // 2:])
    p, q = u * c - w * s, w * c + u * s
    if interleaved:
        want[:, 0::2], want[:, 1::2] = p, q
    else:
        want[:] = np.concatenate([p, q], 1)
    return Run(call, [("y", wide(y.numpy(), dtype), want, TOLERANCE[dtype]), ("back", wide(z.numpy(), dtype), v, 2 * TOLERANCE[dtype])])


def dropouts(dev, rng, p, seed, start, dtype):
    text = """kernel f(x: *T, y: *T, z: *T, p: f32, seed: i64, start: i64, type T = f32) {
      let i = arange(0, 512);
      store(y + i, dropout(load(x + i), p, seed, start + i));
      store(z + i, dropout_row(load(x + i), p, seed, start));
    }"""
    x = narrow(rng.standard_normal(512), dtype)
    y, z = poisoned(dev, 512, dtype), poisoned(dev, 512, dtype)
    call = launch(source(dev, text, "f", T=dtype), 1, dev.array(x, dtype), y, z, p, seed, start)
    at = start + np.arange(512)
    scale = 1 / (1 - p) if p < 1 else 0
    return Run(call, [("each", wide(y.numpy(), dtype), np.where(cases.keep_each(at, p, seed), wide(x, dtype) * scale, 0), TOLERANCE[dtype]),
                      ("row", wide(z.numpy(), dtype), np.where(cases.keep_rows(at, p, seed), wide(x, dtype) * scale, 0), TOLERANCE[dtype])])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
DTYPES = ("f16", "bf16", "f32", "f64")
CASES = [
    both("nn_softmax", softmaxes, grid(rows=(8,), cols=(64,), n=(5, 8), axis=(0,), dtype=DTYPES) + grid(rows=(5,), cols=(100,), n=(77, 2), axis=(1,), dtype=DTYPES, warps=(1, 4))),
    both("nn_logsumexp", edges_of_logsumexp, [{}]),
    both("nn_norms", norms, grid(rows=(8,), cols=(64,), n=(5,), axis=(0,), dtype=DTYPES) + grid(rows=(5,), cols=(100,), n=(100, 77), axis=(1,), dtype=DTYPES) +
         grid(rows=(2,), cols=(512,), n=(500,), axis=(1,), dtype=("f32",), offset=(300.0,))),
    both("nn_welford", welford_blocks, grid(n=(1, 100, 1000), offset=(0.0, 1000.0), lanes=(1, 32))),
    both("nn_cross_entropy", losses, grid(rows=(6, 8), cols=(64, 100), smoothing=(0.0, 0.1), dtype=("f16", "bf16", "f32"))),
    both("nn_odd_targets", odd_targets, grid(cols=(64, 100), n=(64, 33), smoothing=(0.0, 0.1), dtype=("f32", "f64"))),
    both("nn_rotary", turns, grid(rows=(6,), d=(2, 64), interleaved=(False, True), dtype=("f16", "bf16", "f32"), rank=(2,)) + grid(rows=(1,), d=(128,), interleaved=(False, True), dtype=("f32",), rank=(1,))),
    both("nn_dropout", dropouts, grid(p=(0.0, 0.3, 1.0), seed=(7, 1 << 40), start=(0, (1 << 33) + 4), dtype=("f32", "bf16"))),
]
