"""Folds, scans and sorts of nans, infinities, zeros of both signs and ties, with known answers: at extents at which a warp begins exactly
at the end, or has a part of its lanes there, and with the result used in every lane. Same form as examples/cases.py."""
from cases import Case, Run, launch, grid, poisoned
import numpy as np

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
NAN, INF = np.nan, np.inf


def patterns(n, dtype):
    """Rows of n numbers: small whole ones, so that sums in any order are exact, and powers of two."""
    i = np.arange(n)
    rng = np.random.default_rng(n)
    small = rng.integers(-3, 4, n).astype(np.float64)
    rows = [np.where(i < n // 2, NAN, 1.0 + i % 3), np.where(i >= (n + 1) // 2, NAN, 2.0 - i % 3), np.where(i % 2 == 0, NAN, -1.0),
            np.where(i % 2 == 1, NAN, -1.0),
            np.full(n, NAN), np.full(n, -5.0), np.where(i == n - 1, 7.0, NAN), np.where(i == 0, -7.0, NAN),
            np.where(i == n // 2, -INF, NAN), np.where(i == n // 3, INF, NAN),
            np.where(i % 16 < 8, NAN, small), np.where(i % 3 == 0, -0.0, 0.0), np.where(i % 3 == 0, 0.0, -0.0), np.full(n, -0.0),
            np.full(n, -INF), np.full(n, INF),
            np.where(i % 5 == 4, INF, small), np.where(i % 7 == 6, -INF, small), np.where(i % 2 == 0, INF, -INF),
            np.where(i == n - 1, NAN, small), small, np.sort(small),
            np.where(i < 16, NAN, np.where(i < 32, 3.0, 3.0))]
    return np.array(rows).astype(DTYPES[dtype])


def plain(a):
    """The bits of floats, any nan as one."""
    if a.dtype.kind != "f":
        return a
    return np.where(np.isnan(a), np.array(np.nan, a.dtype), a).view(f"i{a.dtype.itemsize}")


def source(dev, text, **defines):
    return dev.program(text=text, name="folds.tile").kernel("f", **defines)


def signed_key(v):
    """An order of numbers in which -0 is below 0."""
    return (v, 0 if np.signbit(v) else 1) if v == 0 else (v, 0)


def best(row, sign):
    """Index of the largest (of the smallest, by the other sign): the lowest of equals, nans last."""
    known = [k for k in range(len(row)) if not np.isnan(row[k])]
    return max(known, key=lambda k: (sign * row[k], -k)) if known else 0


def extreme(row, sign):
    known = [v for v in row if not np.isnan(v)]
    return (max if sign > 0 else min)(known, key=signed_key) if known else row.dtype.type(NAN)


PLACES = """
kernel f(x: *T, v: *T, k: *i32, m: *T, type T = f32, const N = 1) {
  let i = arange(0, N);
  let row = program_id(0);
  let a = load(x + row * N + i);
  let (most, at) = max_at(a);
  let (less, to) = min_at(a);
  let by = v + row * N * 2;
  store(by + i, where(i >= 0, most, most));                        // in every lane
  store(by + N + i, where(i >= 0, less, less));
  let p = k + row * N * 4;
  store(p + i, where(i >= 0, at, at));
  store(p + N + i, where(i >= 0, to, to));
  store(p + 2 * N + i, where(i >= 0, argmax(a, 0), at));
  store(p + 3 * N + i, where(i >= 0, argmin(a, 0), at));
  let q = m + row * N * 4;
  let hi = max(a, axis=0);
  let lo = min(a, axis=0);
  let strict = reduce(a, 0, maximum);
  let low = reduce(a, 0, minimum);
  store(q + i, where(i >= 0, hi, hi));
  store(q + N + i, where(i >= 0, lo, lo));
  store(q + 2 * N + i, where(i >= 0, strict, strict));
  store(q + 3 * N + i, where(i >= 0, low, low));
}"""


def best_places(dev, rng, n, warps, dtype="f32"):
    """The largest and smallest of a row with their places: what every thread has of them."""
    x = patterns(n, dtype)
    rows = len(x)
    v, k, m = dev.empty((rows, 2, n), dtype), dev.empty((rows, 4, n), "i32"), dev.empty((rows, 4, n), dtype)
    call = launch(source(dev, PLACES, N=n, T=dtype, warps=warps), rows, dev.array(x), v, k, m)
    spread = lambda per_row: np.repeat(np.array(per_row)[:, :, None], n, 2)
    places = [[best(r, 1), best(r, -1)] * 2 for r in x]
    values = [[extreme(r, 1), extreme(r, -1)] for r in x]
    strict = lambda r, sign: r.dtype.type(NAN) if np.isnan(r).any() else extreme(r, sign)
    folds = [[extreme(r, 1), extreme(r, -1), strict(r, 1), strict(r, -1)] for r in x]
    return Run(call, [("places", k.numpy(), spread(places).astype(np.int32), 0), ("values", plain(v.numpy()), plain(spread(values)), 0),
                      ("extremes", plain(m.numpy()), plain(spread(folds)), 0)])


AXES = """
kernel f(x: *f32, v: *f32, k: *i32, w: *f32, const R = 1, const C = 1, const A = 0) {
  let i = arange(0, R)[:, None] * C + arange(0, C)[None, :];
  let a = load(x + i);
  let (most, at) = max_at(a, A, keep_dims=true);
  let (less, to) = min_at(a, A, keep_dims=true);
  store(v + i, broadcast_to(most, [R, C]));
  store(k + i, broadcast_to(at, [R, C]));
  store(w + i, broadcast_to(less, [R, C]));
  store(k + R * C + i, broadcast_to(to, [R, C]));
}"""


def best_along(dev, rng, n, axis, warps):
    """The same along either axis of a tile."""
    x = patterns(n, "f32")
    a = np.ascontiguousarray(x if axis == 1 else x.T)
    v, k, w = dev.empty(a.shape, "f32"), dev.empty((2, *a.shape), "i32"), dev.empty(a.shape, "f32")
    call = launch(source(dev, AXES, R=a.shape[0], C=a.shape[1], A=axis, warps=warps), 1, dev.array(a), v, k, w)
    at, to = np.array([best(r, 1) for r in x]), np.array([best(r, -1) for r in x])
    most, least = (np.array([extreme(r, sign) for r in x]) for sign in (1, -1))
    wide = lambda r: np.ascontiguousarray(np.broadcast_to(r[:, None] if axis == 1 else r[None, :], a.shape))
    return Run(call, [("places", k.numpy(), np.array([wide(at), wide(to)], np.int32), 0),
                      ("most", plain(v.numpy()), plain(wide(most)), 0),
                      ("least", plain(w.numpy()), plain(wide(least)), 0)])


SCANS = """
kernel f(x: *T, y: *T, s: *T, type T = f32, const N = 1) {
  let i = arange(0, N);
  let row = program_id(0);
  let a = load(x + row * N + i);
  let p = y + row * 16 * N;
  for r in static_range(2) {
    for e in static_range(2) {
      let at = p + (r * 2 + e) * 4 * N + i;
      store(at, cumsum(a, 0, reverse=r == 1, exclusive=e == 1));
      store(at + N, cumprod(a, 0, reverse=r == 1, exclusive=e == 1));
      store(at + 2 * N, cummax(a, 0, reverse=r == 1, exclusive=e == 1));
      store(at + 3 * N, cummin(a, 0, reverse=r == 1, exclusive=e == 1));
    }
  }
  let q = s + row * 2 * N + i;
  store(q, where(i >= 0, prod(a, 0), prod(a, 0)));
  store(q + N, where(i >= 0, sum(a, 0), sum(a, 0)));
}"""


def running(row, fold, first, reverse, exclusive):
    r = row[::-1] if reverse else row
    out, acc = [], None
    for v in r:
        if exclusive:
            out.append(first if acc is None else acc)
        acc = v if acc is None else fold(acc, v)
        if not exclusive:
            out.append(acc)
    out = np.array(out, np.float64)
    return out[::-1] if reverse else out


def above(a, b):
    return b if np.isnan(a) else a if np.isnan(b) else max(a, b, key=signed_key)


def below(a, b):
    return b if np.isnan(a) else a if np.isnan(b) else min(a, b, key=signed_key)


def odd_scans(dev, rng, n, warps, dtype="f32"):
    """Scans and products: from both ends, with and without the element itself."""
    x = patterns(n, dtype)
    x = np.where(np.isfinite(x) & (x != 0), np.sign(x), x).astype(x.dtype)       # products of many are exact
    y, s = dev.empty((len(x), 4, 4, n), dtype), dev.empty((len(x), 2, n), dtype)
    call = launch(source(dev, SCANS, N=n, T=dtype, warps=warps), len(x), dev.array(x), y, s)
    folds = ((lambda a, b: a + b, 0.0), (lambda a, b: a * b, 1.0), (above, -INF), (below, INF))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        ways = [(rev, exc) for rev in (False, True) for exc in (False, True)]
        want = np.array([[[running(r, f, one, *way) for f, one in folds] for way in ways] for r in wide]).astype(x.dtype)
        last = lambda r, f, one: np.full(n, running(r, f, one, False, False)[-1])
        whole = np.array([[last(r, *folds[1]), last(r, *folds[0])] for r in wide]).astype(x.dtype)
    got = y.numpy()
    checks = [(f"{name}{' reverse' * (k > 1)}{' exclusive' * (k % 2)}", plain(np.ascontiguousarray(got[:, k, j])),
               plain(np.ascontiguousarray(want[:, k, j])), 0)
              for k in range(4) for j, name in enumerate(("cumsum", "cumprod", "cummax", "cummin"))]
    return Run(call, checks + [("prod, sum", plain(s.numpy()), plain(whole), 0)])


TRUTHS = """
kernel f(x: *i32, y: *i32, const N = 1) {
  let i = arange(0, N);
  let a = load(x + program_id(0) * N + i);
  let p = y + program_id(0) * 5 * N + i;
  store(p, where(any(a != 0, 0), i * 0 + 1, 0));
  store(p + N, where(all(a != 0, 0), i * 0 + 1, 0));
  store(p + 2 * N, i * 0 + any(a));
  store(p + 3 * N, i * 0 + all(a));
  store(p + 4 * N, i * 0 + xor_sum(a));
}"""


TEAMS = TRUTHS.replace("const N = 1) {", "const N = 1, const W = 1) {\n  specialize {\n  warps(1) { }\n  warps(W) {")[:-1] + "}}}"


def truths(dev, rng, n, warps, team=False):
    """any, all, xor_sum of one odd element in each place, of none, of all."""
    x = np.concatenate([np.eye(n, dtype=np.int32)[:: max(n // 7, 1)] * 6, 1 - np.eye(n, dtype=np.int32)[-1:], np.zeros((1, n), np.int32),
                        np.full((1, n), -1, np.int32)])
    y = dev.empty((len(x), 5, n), "i32")
    call = launch(source(dev, TEAMS, N=n, W=warps) if team else source(dev, TRUTHS, N=n, warps=warps), len(x), dev.array(x), y)
    want = np.stack([(x != 0).any(1), (x != 0).all(1), np.bitwise_or.reduce(x, 1), np.bitwise_and.reduce(x, 1),
                     np.bitwise_xor.reduce(x, 1)], 1)
    return Run(call, [("truths", y.numpy(), np.repeat(want[:, :, None], n, 2).astype(np.int32), 0)])


SORTS = """
kernel f(x: *T, y: *T, at: *i32, best: *T, few: *T, places: *i32, type T = f32, const N = 1, const K = 1, const DOWN = false) {
  let i = arange(0, N);
  let row = program_id(0);
  let a = load(x + row * N + i);
  store(y + row * N + i, sort(a, descending=DOWN));
  store(at + row * N + i, argsort(a, descending=DOWN));
  let k = row * K + arange(0, K);
  let (v, w) = topk(a, K, descending=DOWN);
  store(best + k, v);
  store(places + k, w);
  store(few + k, topk(a, K, descending=DOWN, indices=false));
}"""


def odd_sorts(dev, rng, n, warps, dtype, down):
    """Sorted bits: nans last either way, -0 before 0; places of equal ones, zeros of both signs among them, in rising order."""
    x = patterns(n, dtype)
    k = max(n // 3, 1)
    y, best_, few = dev.empty(x.shape, dtype), dev.empty((len(x), k), dtype), dev.empty((len(x), k), dtype)
    at, places = dev.empty(x.shape, "i32"), dev.empty((len(x), k), "i32")
    call = launch(source(dev, SORTS, N=n, K=k, T=dtype, DOWN=down, warps=warps), len(x), dev.array(x), y, at, best_, few, places)
    whole, order = [], []
    for r in x:
        sign = -1 if down else 1
        whole.append(sorted([v for v in r if not np.isnan(v)], key=signed_key, reverse=down) + [NAN] * int(np.isnan(r).sum()))
        order.append(sorted(range(n), key=lambda j: (np.isnan(r[j]), 0 if np.isnan(r[j]) else sign * r[j], j)))
    whole, order = np.array(whole).astype(x.dtype), np.array(order, np.int32)
    first = np.take_along_axis(x, order[:, :k], 1) + x.dtype.type(0)             # topk gives 0 for -0
    return Run(call, [("sorted", plain(y.numpy()), plain(whole), 0), ("argsort", at.numpy(), order, 0),
                      ("topk", plain(best_.numpy()), plain(first), 0),
                      ("places", places.numpy(), order[:, :k].copy(), 0),
                      ("topk alone", plain(few.numpy()), plain(np.ascontiguousarray(whole[:, :k])), 0)])


LOOK_BACK = """
fn after(p, q) { return (p & 0xffff) * (q & 0xffff) & 0xffff | ((p >> 16) * (q & 0xffff) + (q >> 16)) << 16; }       // x m + c, one behind the other
kernel k(state: *u64, ticket: *u64, out: *u32, mine: u32, const WINDOW = 64) warps(1) {
  let here = next_place(ticket);
  store(out, look_back(state, here, mine, combine=after, identity=1, WINDOW=WINDOW, commutes=false));
}
"""


def look_back_alone(dev, rng, tiles, whole, window):
    """One program behind tiles that have told their own values only, but for one that knows everything up to its end: windows, in their order."""
    line = rng.integers(0, 1 << 15, (tiles, 2), dtype=np.uint32) * 2 + 1
    value = line[:, 0] | line[:, 1] << np.uint32(16)
    state = np.zeros(tiles + 1, np.uint64)
    state[:tiles] = value | np.uint64(1) << np.uint64(32)
    state[whole] = np.uint64(value[whole]) | np.uint64(2) << np.uint64(32)
    m, c = 1, 0
    for a, b in line[whole:].astype(object):
        m, c = m * a & 0xffff, (c * a + b) & 0xffff
    out, words = poisoned(dev, 1, "u32"), dev.array(state)
    call = launch(dev.program(text=LOOK_BACK, name="case.tile").kernel("k", WINDOW=window), 1, words, dev.array(np.array([tiles], np.uint64)), out, 1)
    return Run(call, [("before", out.numpy(), np.array([m | c << 16], np.uint32), 0),
                      ("told", words.numpy()[tiles:], np.array([m | c << 16 | 2 << 32], np.uint64), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
EXTENTS = (1, 3, 32, 48, 64, 96, 127, 128, 192, 1000)
CASES = [
    both("best_places", best_places, grid(n=EXTENTS, warps=(1, 4)) + grid(n=(32, 96, 192), warps=(2, 8)) +
         grid(n=(32, 96), warps=(1, 4), dtype=("f64", "f16"))),
    both("best_along", best_along, grid(n=(32, 96), axis=(0, 1), warps=(1, 4))),
    both("odd_scans", odd_scans, grid(n=(1, 3, 16, 96, 127, 192), warps=(1, 4)) + grid(n=(16, 96), warps=(2, 8), dtype=("f64", "f16"))),
    both("truths", truths, grid(n=EXTENTS, warps=(1, 4, 8)) + grid(n=(1, 48, 192), warps=(1, 4), team=(True,))),
    both("odd_sorts", odd_sorts, grid(n=(1, 3, 33, 96, 128), warps=(1, 4), dtype=("f32",), down=(False, True)) +
         grid(n=(96,), warps=(4,), dtype=("f64", "f16"), down=(False, True))),
    Case("look_back_alone", look_back_alone, *[grid(tiles=(1, 31, 32, 33, 64, 65, 150), whole=(0,), window=(32, 64)) + grid(tiles=(150,), whole=(40, 85, 86), window=(64,))] * 2),
]
