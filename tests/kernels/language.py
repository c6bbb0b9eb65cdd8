"""Statements and functions of the language, one kernel each, against numpy. Same form as examples/cases.py."""
from cases import Case, Run, poisoned, launch, grid
import numpy as np
import tilec
import flow


def source(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


EXITS = """
fn find(p: *i32, n: i32, want: i32) {
  for i in range(n) { if load(p + i) == want { return i; } }
  return -1;
}
fn pair(p: *i32, n: i32) {
  var k = 0;
  while true {
    if k >= n { return (-1, 0.5); }
    for j in range(3, 40, 5) {
      if load(p + j) == k { return (k, j); }
      if j > 30 { break; }
    }
    k += 1;
  }
  return (0, 0);
}
kernel f(p: *i32, out: *i32, tiles: *f32, n: i32) warps(1) {
  let base = p + program_id(0) * 40;
  var sum = 0;
  for i in range(n) {
    let v = load(base + i);
    if v < 3 { sum += 1; continue; }
    if v > 90 { break; }
    if v % 2 == 0 {
      if v % 4 == 0 { continue; }
      sum += 1000;
    }
    sum += v;
  }
  var odd = 0;
  for i in static_range(8) {
    let v = load(base + i);
    if i == 1 { continue; }
    if v > 60 { odd += 7; if v > 80 { break; } odd += 1; }
    if i == 6 { break; }
    odd += v;
  }
  var at = 0;
  var acc = zeros(64, f32);
  while load(base + at) < 80 {
    at += 1;
    if at == 30 { break; }
    if at % 3 == 1 { continue; }
    acc += f32(at) + f32(arange(0, 64));
  }
  let mine = out + program_id(0) * 8;
  store(mine, sum);
  store(mine + 1, odd);
  store(mine + 2, at);
  store(mine + 3, find(base, n, 50));
  let (k, j) = pair(base, n);
  store(mine + 4, k);
  store(mine + 5, i32(j * 2.0));
  store(tiles + program_id(0) * 64 + arange(0, 64), acc);
  for i in range(0, n, 7) {
    if load(base + i) > 70 { return; }
    store(mine + 6, i);
  }
  store(mine + 7, 1);
}"""


def exits_reference(x, n):
    def find(want):
        return next((i for i in range(n) if x[i] == want), -1)

    def pair():
        for k in range(n):
            for j in range(3, 40, 5):
                if x[j] == k:
                    return k, j
                if j > 30:
                    break
        return -1, 0.5
    total = 0
    for v in x[:n]:
        if v < 3:
            total += 1
            continue
        if v > 90:
            break
        if v % 2 == 0:
            if v % 4 == 0:
                continue
            total += 1000
        total += v
    odd = 0
    for i in range(8):
        if i == 1:
            continue
        if x[i] > 60:
            odd += 7
            if x[i] > 80:
                break
            odd += 1
        if i == 6:
            break
        odd += x[i]
    at, acc = 0, np.zeros(64, np.float32)
    while x[at] < 80:
        at += 1
        if at == 30:
            break
        if at % 3 != 1:
            acc += at + np.arange(64, dtype=np.float32)
    out = [total, odd, at, find(50), pair()[0], int(pair()[1] * 2), -7, -7]
    for i in range(0, n, 7):
        if x[i] > 70:
            return out, acc
        out[6] = i
    out[7] = 1
    return out, acc


def exits(dev, rng, programs, n):
    """break, continue and return in every kind of loop, with run-time and compile-time conditions."""
    x = rng.integers(0, 100, (programs, 40), dtype=np.int32)
    out, tiles = dev.array(np.full((programs, 8), -7, np.int32)), poisoned(dev, (programs, 64), "f32")
    call = launch(source(dev, EXITS), programs, dev.array(x), out, tiles, n)
    want = [exits_reference(row, n) for row in x]
    return Run(call, [("out", out.numpy(), np.array([w[0] for w in want], np.int32), 0), ("tiles", tiles.numpy(), np.array([w[1] for w in want]), 0)])


def index_wrap(dev, rng):
    """A loop that may be left, or begins near there, up to the largest index there is."""
    text = """kernel f(out: *i32, lo: i32, hi: i32, step: i32) warps(1) {
      var count = 0;
      for i in range(lo, hi, step) { count += 1; if count == 1000 { break; } }
      for i in range(lo, hi) { count += 1000; if i == lo - 1 { break; } }
      store(out, count);
    }
    kernel near(out: *i64, hi: i32, below: i64) warps(1) {
      var count = 0;
      var sum: i64 = 0;
      for i in range(2147483640, hi, 5) { count += 1; sum += i; }
      for i in range(u32(4294967290), u32(4294967295), u32(2)) { count += 100; sum += i64(i); }
      for i in range(-2147483647 - 1, 2147483647, 1073741824) { count += 10000; sum += i; }
      for i in range(9223372036854775000, below, 400) { count += 1000000; sum += i - 9223372036854775000; }
      store(out, i64(count));
      store(out + 1, sum);
    }
    kernel ahead(x: *f32, out: *f32, lo: i32, hi: i32, step: i32, const STEP = 0) warps(2) {
      let j = arange(0, 64);
      var acc = zeros([64], f32);
      for i in range(lo, hi, STEP > 0 ? STEP : step, stages=4) {
        let by = i64(STEP > 0 ? STEP : step);
        let r = (i64(i) - i64(lo)) / by;
        let astray = (i64(i) - i64(lo)) % by;           // what is no index of the loop reads far away
        acc += load(x + (r * 64 + (astray << 20)) + j) * f32(r + 1);
      }
      store(out + j, acc);
    }
    kernel wide(out: *i32, lo: i32, hi: i32, const STEP = 1) warps(1) {
      var turns = 0;
      var i = lo;
      while i < hi & turns < 20 { i += STEP; turns += 1; }
      var u = u32(lo);
      var passed = 0;
      while u > u32(STEP) { u -= u32(STEP); passed += 1; }
      for k in range(lo, hi, STEP) { passed += 100; }
      for k in range(hi, lo, -STEP) { passed += 10000; }
      store(out, turns);
      store(out + 1, passed);
    }"""
    k, checks = dev.program(text=text, name="case.tile").kernel("f"), []
    x = rng.standard_normal((8, 64)).astype(np.float32)
    for lo, hi, step in ((2**31 - 10, 2**31 - 1, 3), (2**31 - 3, 2**31 - 1, 7), (-2**31, 2**31 - 1, 2**30), (-2**31, 2**31 - 1, 2**31 - 1), (5, 5, 9), (0, 40, 5)):
        for fixed in (0, step):
            out = poisoned(dev, 64, "f32")
            rows = len(range(lo, hi, step))
            launch(dev.program(text=text, name="case.tile").kernel("ahead", STEP=fixed), 1, dev.array(x[:rows] if rows else x[:1]), out, lo, hi, step)
            checks.append((f"ahead {lo}..{hi} {step}", out.numpy(), sum((x[r] * np.float32(r + 1) for r in range(rows)), np.zeros(64, np.float32)), 1e-6))
    for lo in (-2**31, -5, 0, 2**30 + 7):
        for hi in (2**31 - 1, 2**31 - 2**29, 3):
            for step in (2**31 - 1, 2**30 + 1, 2**30, 2**29, 2**27 + 5):
                out = poisoned(dev, 2, "i32")
                launch(dev.program(text=text, name="case.tile").kernel("wide", STEP=step), 1, out, lo, hi)
                turns, i = 0, lo
                while i < hi and turns < 20:
                    i, turns = (i + step + 2**31) % 2**32 - 2**31, turns + 1
                passed = max(-(-(lo % 2**32) // step) - 1, 0) + 100 * len(range(lo, hi, step)) + 10000 * len(range(hi, lo, -step))
                checks.append((f"wide {lo}..{hi} {step}", out.numpy(), np.array([turns, passed], np.int32), 0))
    near = dev.program(text=text, name="case.tile").kernel("near")
    for hi, below in ((2**31 - 1, 2**63 - 1), (2**31 - 6, 2**63 - 500), (0, 0)):
        out = poisoned(dev, 2, "i64")
        launch(near, 1, out, hi, below)
        loops = [range(2**31 - 8, hi, 5), range(2**32 - 6, 2**32 - 1, 2), range(-2**31, 2**31 - 1, 2**30), range(2**63 - 808, below, 400)]
        count = sum(len(r) * 100**n for n, r in enumerate(loops))
        checks.append((f"to {hi}", out.numpy(), np.array([count, sum(sum(r) for r in loops[:3]) + sum(i - loops[3].start for i in loops[3])], np.int64), 0))
    for lo, hi, step, want in ((2**31 - 10, 2**31 - 1, 4, 9003), (2**31 - 4, 2**31 - 1, 2**30, 3001), (5, 5, 1, 0), (5, 3, 7, 0)):
        out = poisoned(dev, 1, "i32")
        call = launch(k, 1, out, lo, hi, step)
        checks.append((f"{lo}..{hi}", out.numpy(), np.array([want], np.int32), 0))
    return Run(call, checks)


SCANS = """
fn recur(a0, b0, a1, b1) { return (a0 * a1, b0 * a1 + b1); }     // x -> a x + b, one after the other: not commutative
fn first(a, b) { if a % 3 == 0 { return a; } return b; }
kernel f(x: *T, sums: *T, most: *T, u: *i32, v: *i32, w: *i32, const R = 4, const C = 8, const AXIS = 1, const REVERSE = false, type T = i32) {
  let i = arange(0, R)[:, None] * C + arange(0, C)[None, :];
  let a = load(x + i);
  store(sums + i, cumsum(a, AXIS, REVERSE));
  store(most + i, cummax(a, AXIS, reverse=REVERSE));
  let k = i32(a);
  let (p, q) = scan((k % 4 - 1, k), AXIS, recur, reverse=REVERSE);
  store(u + i, p);
  store(v + i, q);
  store(w + i, scan(k, AXIS, first, reverse=REVERSE));
}"""


def scanned(fn, xs, axis, reverse):
    """The scan of arrays xs by fn over tuples of lines."""
    xs = [np.flip(np.moveaxis(x, axis, 0), 0) if reverse else np.moveaxis(x, axis, 0) for x in xs]
    out, acc = [[] for _ in xs], None
    for line in zip(*xs):
        acc = line if acc is None else fn(*acc, *line)
        for o, a in zip(out, acc):
            o.append(a)
    out = [np.stack(o) for o in out]
    return [np.moveaxis(np.flip(o, 0) if reverse else o, 0, axis) for o in out]


def scans(dev, rng, rows, cols, axis, reverse, warps, dtype="i32"):
    """Scans by library functions and by functions that do not commute, along either axis, from either end."""
    dt = dict(i32=np.int32, f32=np.float32)[dtype]
    x = rng.integers(-9, 10, (rows, cols)).astype(dt)
    out = [poisoned(dev, (rows, cols), t) for t in (dtype, dtype, "i32", "i32", "i32")]
    k = source(dev, SCANS, R=rows, C=cols, AXIS=axis, REVERSE="true" if reverse else "false", T=dtype, warps=warps)
    call = launch(k, 1, dev.array(x), *out)
    n = x.astype(np.int32)
    with np.errstate(over="ignore"):
        m = np.fmod(n, np.int32(4)) - np.int32(1)
        want = [*scanned(lambda a, b: (a + b,), [x], axis, reverse), *scanned(lambda a, b: (np.maximum(a, b),), [x], axis, reverse),
                *scanned(lambda a0, b0, a1, b1: (a0 * a1, b0 * a1 + b1), [m, n], axis, reverse),
                *scanned(lambda a, b: (np.where(a % 3 == 0, a, b),), [n], axis, reverse)]
    return Run(call, [(w, o.numpy(), v, 0) for w, o, v in zip(("sum", "max", "product", "recurrence", "first"), out, want)])


SHAPES = """
kernel f(x: *T, y: *T, flips: *T, cats: *T, both: *T, parts: *T, puts: *T, halves: *T, picks: *T, pairs: *T, const M = 4, const N = 8, const AXIS = 0, type T = f32) {
  let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
  let a = load(x + i);
  let b = load(y + i);
  store(flips + i, flip(a, AXIS));
  let c = cat(a, view(b, [0, 0], [AXIS == 0 ? 1 : M, AXIS == 1 ? 1 : N]), AXIS);
  store(cats + arange(0, extent(c, 0))[:, None] * extent(c, 1) + arange(0, extent(c, 1))[None, :], c);
  let d = cat(a, b, axis=AXIS);
  store(both + arange(0, extent(d, 0))[:, None] * extent(d, 1) + arange(0, extent(d, 1))[None, :], d);
  let p = view(a, [1, N / 3], [M - 1, N / 2]);
  store(parts + arange(0, M - 1)[:, None] * (N / 2) + arange(0, N / 2)[None, :], p);
  store(puts + i, insert(b, p, [0, N / 4]));
  let (even, odd) = split(join(a, b));
  store(halves + i, even);
  store(halves + M * N + i, odd);
  let turned = gather(a, (index_along(a, AXIS) * 3 + arange(0, N)[None, :]) % extent(a, AXIS), AXIS);
  store(picks + i, turned);
  store(pairs + arange(0, M)[:, None] * (2 * N) + arange(0, 2 * N)[None, :], interleave(a, b));
}"""


def shape_functions(dev, rng, m, n, axis, warps, dtype):
    """Joining, cutting, reversing and indexing tiles of any extents."""
    dt = dict(f32=np.float32, i8=np.int8, i64=np.int64)[dtype]
    x, y = (rng.integers(-100, 100, (m, n)).astype(dt) for _ in range(2))
    grown = (m + 1, n) if axis == 0 else (m, n + 1)
    double = (2 * m, n) if axis == 0 else (m, 2 * n)
    sizes = [(m, n), grown, double, (m - 1, n // 2), (m, n), (2, m, n), (m, n), (m, 2 * n)]
    out = [poisoned(dev, z, dtype) for z in sizes]
    call = launch(source(dev, SHAPES, M=m, N=n, AXIS=axis, T=dtype, warps=warps), 1, dev.array(x), dev.array(y), *out)
    part = x[1:, n // 3:n // 3 + n // 2]
    put = y.copy()
    put[:m - 1, n // 4:n // 4 + n // 2] = part
    index = ((np.arange(m)[:, None] if axis == 0 else np.arange(n)[None, :]) * 3 + np.arange(n)[None, :]) % x.shape[axis]
    index = np.broadcast_to(index, (m, n))
    want = [np.flip(x, axis), np.concatenate([x, y[:1] if axis == 0 else y[:, :1]], axis), np.concatenate([x, y], axis), part, put,
            np.stack([x, y]), np.take_along_axis(x, index, axis), np.stack([x, y], -1).reshape(m, 2 * n)]
    names = ("flip", "cat", "cat2", "view", "insert", "split", "gather", "interleave")
    return Run(call, [(w, o.numpy(), v, 0) for w, o, v in zip(names, out, want)])


INDICES = """
kernel f(x: *T, row: *T, column: *T, one: *T, part: *T, odd: *T, moved: *T, truths: *i32, n: i32, const M = 4, const N = 8, type T = f32) {
  let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
  let a = load(x + i);
  store(row + arange(0, N), a[M - 1, :]);
  store(column + arange(0, M), a[:, n]);
  store(one, a[n % M, n]);
  store(part + arange(0, M)[:, None] * (N / 2) + arange(0, N / 2)[None, :], a[:, N / 2:N / 2 * 2]);
  store(odd + arange(0, M - 1)[:, None] * (N - 1) + arange(0, N - 1)[None, :], a[1:, :N - 1]);
  store(moved, load((x + arange(0, N))[n]));
  store(truths + arange(0, N), i32((a > cast(0, T))[n % M, None, :][0, :]));
  let s = shared(T, [16, 16]);
  shared_store(s, cast(arange(0, 16)[:, None] * 2 + arange(0, 16)[None, :], T));
  store(moved + 1 + arange(0, 8)[:, None] * 16 + arange(0, 16)[None, :], shared_load(s[8:, :]));
}"""


def indices(dev, rng, m, n, at, warps, dtype):
    """Elements and parts of tiles by constant and run-time indices."""
    dt = dict(f32=np.float32, i8=np.int8, i64=np.int64, f16=np.float16)[dtype]
    x = rng.integers(-100, 100, (m, n)).astype(dt)
    want = [x[m - 1], x[:, at], x[at % m, at:at + 1], x[:, n // 2:n // 2 * 2], x[1:, :n - 1],
            np.concatenate([x[0, at:at + 1], (np.arange(8, 16)[:, None] * 2 + np.arange(16)).astype(dt).ravel()]),
            (x[at % m] > 0).astype(np.int32)]
    out = [poisoned(dev, w.shape, "i32" if k == 6 else dtype) for k, w in enumerate(want)]
    call = launch(source(dev, INDICES, M=m, N=n, T=dtype, warps=warps), 1, dev.array(x), *out, at)
    names = ("row", "column", "one", "part", "odd", "pointer", "truth")
    return Run(call, [(w, o.numpy(), v, 0) for w, o, v in zip(names, out, want)])


FLATTENED = """
kernel product(a: *f16, b: *f16, c: *f16, M: i32, N: i32, K: i32, const FLAT = true, const BM = 32, const BN = 32, const BK = 16) warps(2) {
  let rows = cdiv(M, BM);
  let cols = cdiv(N, BN);
  let kk = arange(0, BK);
  for tile in range(program_id(0), rows * cols, num_programs(0), flatten=FLAT) {
    let (pm, pn) = grouped(tile, rows, cols, GROUP=4);
    let m = pm * BM + arange(0, BM);
    let n = pn * BN + arange(0, BN);
    let ap = a + (m % M)[:, None] * K;
    let bp = b + (n % N)[None, :];
    var acc = zeros([BM, BN], f32);
    for step in range(0, cdiv(K, BK), stages=3) {
      let k = step * BK + kk;
      acc = dot(load(ap + k[None, :], mask=(k < K)[None, :]), load(bp + k[:, None] * N, mask=(k < K)[:, None]), acc);
    }
    store(c + m[:, None] * N + n[None, :], f16(acc), mask=(m < M)[:, None] & (n < N)[None, :]);
  }
}
kernel chain(order: *i32, x: *f32, y: *f32, last: *f32, n: i32, m: i32, const FLAT = true) warps(1) {
  let i = arange(0, 64);
  var before = zeros(64, f32);
  var count = 0;
  for t in range(0, n, flatten=FLAT) {
    let row = load(order + t);                  // looked up, once a turn
    let old = atomic_add(order + n, row);
    var p = x + row * m * 64;
    var total = before * 0.5;
    for k in range(m) {
      total += load(p + i) * f32(k + 1 + old);
      p += 64;
    }
    store(y + t * 64 + i, total);
    before = total;
    count += 1;
  }
  store(last + i, before + f32(count));
}"""


def flattened_product(dev, rng, m, n, k, programs):
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, max(k, 1)), (max(k, 1), n)))
    checks = []
    for flat in (True, False):
        c = poisoned(dev, (m, n), "f16")
        call = launch(source(dev, FLATTENED, "product", FLAT=flat), programs, dev.array(a), dev.array(b), c, m, n, k)
        checks.append((f"flat={flat}", c.numpy(), a[:, :k].astype(np.float32) @ b[:k].astype(np.float32), 0))
    return Run(call, checks)


def flattened_chain(dev, rng, n, m):
    """What goes from turn to turn, and what happens once a turn."""
    rows = rng.integers(0, 4, n + 1).astype(np.int32)
    rows[n] = 0
    x = rng.integers(-4, 5, (4, max(m, 1), 64)).astype(np.float32)
    y, last = poisoned(dev, (n + 1, 64), "f32"), poisoned(dev, 64, "f32")
    call = launch(source(dev, FLATTENED, "chain"), 1, dev.array(rows), dev.array(x), y, last, n, m)
    want, before, seen = [], np.zeros(64, np.float32), 0
    for r in rows[:n]:
        before = before * np.float32(0.5) + sum(x[r, k] * np.float32(k + 1 + seen) for k in range(m))
        seen += r
        want.append(before)
    return Run(call, [("turns", y.numpy()[:n], np.array(want, np.float32).reshape(n, 64), 1e-6), ("last", last.numpy(), before + n, 1e-6)])


FOLDS = """
kernel f(x: *T, best: *T, at: *i32, low: *T, low_at: *i32, bits: *i32, flags: *i32, product: *i32, halves: *f16,
         const M = 4, const N = 8, const AXIS = 0, type T = f32) {
  let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
  let a = load(x + i);
  let o = arange(0, AXIS == 0 ? N : M);
  let (v, k) = max_at(a, AXIS);
  store(best + o, v);
  store(at + o, k);
  let (w, l) = min_at(a, AXIS);
  store(low + o, w);
  store(low_at + o, l);
  store(bits + o, xor_sum(i32(a), AXIS));
  store(product + o, prod(i32(a) * 2 + 1, AXIS));
  store(halves + o, prod(where(a > cast(0, T), f16(-1.0), f16(0.75)), AXIS));
  store(flags + o, i32(any(a > cast(90, T), AXIS)) * 2 + i32(all(a > cast(-90, T), AXIS)));
  static_assert(numel(a) == M * N && extent(ravel(zeros_like(a)), 0) == M * N);
}"""


def folds(dev, rng, m, n, axis, warps, dtype):
    """Folds with places, of truth values and of bits."""
    dt = dict(f32=np.float32, i32=np.int32, i8=np.int8)[dtype]
    x = rng.integers(-100, 100, (m, n)).astype(dt)
    size = n if axis == 0 else m
    out = [poisoned(dev, size, t) for t in (dtype, "i32", dtype, "i32", "i32", "i32", "i32", "f16")]
    call = launch(source(dev, FOLDS, M=m, N=n, AXIS=axis, T=dtype, warps=warps), 1, dev.array(x), *out)
    want = [x.max(axis), x.argmax(axis), x.min(axis), x.argmin(axis), np.bitwise_xor.reduce(x.astype(np.int32), axis),
            (x > 90).any(axis) * 2 + (x > -90).all(axis), np.prod(x.astype(np.int32) * np.int32(2) + np.int32(1), axis, dtype=np.int32),
            np.prod(np.where(x > 0, -1, 0.75), axis)]
    return Run(call, [(w, o.numpy(), v, 2e-3 if w == "halves" else 0)
                      for w, o, v in zip(("max", "at", "min", "min_at", "xor", "flags", "product", "halves"), out, want)])


BLOCKS = """
kernel copy(x: *T, y: *T, sums: *f32, m: i32, n: i32, const BM = 16, const BN = 32, type T = f16) {
  let from = Array(x, (m, n), (n, 1), [BM, BN], -1);
  let to = Array(y, (n, m), (m, 1), [BN, BM]);
  let at = (program_id(0) * BM - 3, program_id(1) * BN - 5);
  let block = load_block(from, at);
  store_block(to, (at[1], at[0]), trans(block));
  add_block(Array(sums, [4], [1], [4]), [0], f32(sum(where(block == cast(-1, T), 1, 0))) + zeros(4, f32));
}"""


def array_blocks(dev, rng, m, n, dtype):
    """Blocks that begin outside of the array and end outside of it."""
    x = rng.integers(0, 100, (m, n)).astype(dict(f16=np.float16, f32=np.float32)[dtype])
    y, sums = poisoned(dev, (n, m), dtype), dev.array(np.zeros(4, np.float32))
    grid = ((m + 3 + 15) // 16, (n + 5 + 31) // 32)
    call = launch(source(dev, BLOCKS, T=dtype), grid, dev.array(x), y, sums, m, n)
    outside = grid[0] * 16 * grid[1] * 32 - m * n
    return Run(call, [("transposed", y.numpy(), x.T, 0), ("outside", sums.numpy(), np.full(4, outside, np.float32), 0)])


FAR = """
kernel f(x: *f32, y: *f32, const R = 4, const C = 32) {
  let stride = i64(1) << 33;
  let a = Array(x - 5 * stride, (i64(1) << 40, C), (stride, 1), [1, C]);   // row 5 of rows that lie 2^33 elements apart
  let v = load_block(a, (5, 0));
  store(y + arange(0, C)[None, :], v * 2.0);
}"""


def far_blocks(dev, rng, n):
    """Offsets of more than 32 bits: only one row of the array is there."""
    x = rng.integers(0, 100, n).astype(np.float32)
    y = poisoned(dev, n, "f32")
    return Run(launch(source(dev, FAR, C=n), 1, dev.array(x), y), [("row", y.numpy(), x * 2, 0)])


SORTS = """
kernel f(x: *T, up: *T, down: *T, at: *i32, best: *T, places: *i32, const M = 4, const N = 8, const K = 2, const AXIS = 1, type T = f32) {
  let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
  let a = load(x + i);
  store(up + i, sort(a, AXIS));
  store(down + i, sort(a, AXIS, descending=true));
  store(at + i, argsort(a, AXIS));
  let (v, w) = topk(a, K, AXIS);
  let k = arange(0, extent(v, 0))[:, None] * extent(v, 1) + arange(0, extent(v, 1))[None, :];
  store(best + k, v);
  store(places + k, w);
}"""


def sorts(dev, rng, m, n, axis, k, warps, dtype):
    """sort, argsort and topk with ties; floats with nans and infinities."""
    dt = dict(f32=np.float32, i32=np.int32, u8=np.uint8)[dtype]
    x = rng.integers(0, 50, (m, n)).astype(dt)
    if dtype == "f32":
        x = np.where(rng.random((m, n)) < 0.1, np.nan, np.where(rng.random((m, n)) < 0.1, np.inf, x - 25)).astype(dt)
    few = (k, n) if axis == 0 else (m, k)
    out = [poisoned(dev, z, t) for z, t in (((m, n), dtype), ((m, n), dtype), ((m, n), "i32"), (few, dtype), (few, "i32"))]
    call = launch(source(dev, SORTS, M=m, N=n, K=k, AXIS=axis, T=dtype, warps=warps), 1, dev.array(x), *out)
    falling = np.argsort(np.where(np.isnan(x), np.inf, -x.astype(np.float64)), axis, kind="stable")
    rising = np.argsort(x, axis, kind="stable")
    top = falling[:k] if axis == 0 else falling[:, :k]
    want = [np.take_along_axis(x, rising, axis), np.take_along_axis(x, falling, axis), rising.astype(np.int32),
            np.take_along_axis(x, top, axis), top.astype(np.int32)]
    return Run(call, [(w, np.nan_to_num(o.numpy(), nan=1e30), np.nan_to_num(v, nan=1e30), 0) for w, o, v in zip(("up", "down", "argsort", "top", "places"), out, want)])


def truths(dev, rng, n, warps):
    """Scans of truth values are truth values."""
    text = """kernel f(x: *i1, y: *i1, const N = 64) {
      let i = arange(0, N);
      let v = load(x + i);
      store(y + i, cummax(v));
      store(y + N + i, cummin(v, reverse=true));
      store(y + 2 * N + i, cummax(v, exclusive=true));
      store(y + 3 * N + i, cummin(v, exclusive=true));
    }"""
    x, y = rng.random(n) < 1.5 / n, poisoned(dev, (4, n), "i1")
    x ^= rng.random() < 0.5
    call = launch(source(dev, text, N=n, warps=warps), 1, dev.array(x), y)
    most, least = np.maximum.accumulate(x), np.minimum.accumulate(x)
    want = [most, np.minimum.accumulate(x[::-1])[::-1], np.append(False, most[:-1]), np.append(True, least[:-1])]
    return Run(call, [("scans", y.numpy().astype(np.int32), np.array(want, np.int32), 0)])


def histograms(dev, rng, n, bins, warps, dtype="i32"):
    """Counts in shared memory, with values outside and a mask; and sums by index."""
    text = """kernel f(x: *T, h: *i32, w: *f32, const N = 64, const BINS = 8, type T = i32) {
      let v = load(x + arange(0, N));
      store(h + arange(0, BINS), histogram(v, BINS, mask=arange(0, N) % 3 != 0));
      let s = shared(f32, BINS);
      shared_store(s, 0.5);
      shared_add(s, max(0, min(i32(v), BINS - 1)), f32(v));
      store(w + arange(0, BINS), gather(s, BINS - 1 - arange(0, BINS), 0));
    }"""
    x = rng.integers(-3, bins + 3, n).astype(tilec.DTYPES[dtype])
    h, w = poisoned(dev, bins, "i32"), poisoned(dev, bins, "f32")
    call = launch(source(dev, text, N=n, BINS=bins, T=dtype, warps=warps), 1, dev.array(x), h, w)
    kept = x[(np.arange(n) % 3 != 0) & (x >= 0) & (x < bins)]
    sums = 0.5 + np.bincount(np.clip(x.astype(np.int32), 0, bins - 1), x, bins)
    return Run(call, [("counts", h.numpy(), np.bincount(kept, minlength=bins).astype(np.int32), 0), ("sums", w.numpy(), sums[::-1], 0)])


def ranks(dev, rng, rows, n, bins, warps, dtype="i32"):
    """How often each value came before in its row, counting on from what is there; by that, elements in order of their values."""
    text = """kernel f(x: *i32, y: *T, c: *T, z: *i32, type T = i32, const R = 4, const N = 64, const BINS = 8) {
      let i = arange(0, R)[:, None] * N + arange(0, N)[None, :];
      let v = load(x + i);
      let b = arange(0, R)[:, None] * BINS + arange(0, BINS)[None, :];
      let s = shared(T, [R, BINS]);
      shared_store(s, T(arange(0, BINS)[None, :]));
      store(y + i, shared_count(s, v));
      store(c + b, shared_load(s));
      let begin = shared(i32, [R, BINS]);
      shared_store(begin, 0);
      let rank = shared_count(begin, v);
      let each = shared_load(begin);
      shared_store(begin, cumsum(sum(each, axis=0), exclusive=true)[None, :] + cumsum(each, axis=0, exclusive=true));
      let o = shared(i32, R * N);
      shared_scatter(o, gather(begin, v, 1) + rank, i);
      store(z + arange(0, R * N), shared_load(o));
    }"""
    x = rng.integers(0, bins, (rows, n)).astype(np.int32)
    x[0] = bins - 1
    y, c, z = poisoned(dev, (rows, n), dtype), poisoned(dev, (rows, bins), dtype), poisoned(dev, rows * n, "i32")
    call = launch(source(dev, text, T=dtype, R=rows, N=n, BINS=bins, warps=warps), 1, dev.array(x), y, c, z)
    counts, want = np.tile(np.arange(bins), (rows, 1)), np.zeros((rows, n), np.int64)
    for k in range(n):
        want[:, k] = counts[np.arange(rows), x[:, k]]
        counts[np.arange(rows), x[:, k]] += 1
    t = tilec.DTYPES[dtype]
    return Run(call, [("before", y.numpy(), want.astype(t), 0), ("counts", c.numpy(), counts.astype(t), 0),
                      ("sorted", z.numpy(), np.argsort(x.ravel(), kind="stable").astype(np.int32), 0)])


ATOMICS = """
kernel ints(x: *T, cell: *T, old: *T, n: i32, type T = i32, const SEM = "relaxed", const SCOPE = "gpu") warps(2) {
  let i = program_id(0) * 64 + arange(0, 64);
  let v = load(x + i);
  let on = i < n;
  let at = v & 3;
  atomic_add(cell + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_max(cell + 4 + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_min(cell + 8 + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_and(cell + 12 + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_or(cell + 16 + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_xor(cell + 20 + at, v, mask=on, sem=SEM, scope=SCOPE);
  store(old + i, atomic_xchg(old + i, v, mask=on, sem=SEM, scope=SCOPE) + atomic_cas(x + i, 5, 7, mask=on, sem=SEM, scope=SCOPE));
}
kernel floats(x: *T, cell: *T, old: *T, n: i32, type T = f32, const SEM = "relaxed", const SCOPE = "gpu") warps(2) {
  let i = program_id(0) * 64 + arange(0, 64);
  let v = load(x + i);
  let on = i < n;
  let at = i & 3;
  atomic_add(cell + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_max(cell + 4 + at, v, mask=on, sem=SEM, scope=SCOPE);
  atomic_min(cell + 8 + at, v, mask=on, sem=SEM, scope=SCOPE);
  store(old + i, atomic_xchg(old + i, v, mask=on, sem=SEM, scope=SCOPE) + atomic_cas(x + i, 5, 7, mask=on, sem=SEM, scope=SCOPE));
}"""


def all_atomics(dev, rng, n, dtype, sem, scope):
    """Every atomic on every type, order and scope; masked, over tiles."""
    ints = dict(i32=np.int32, u32=np.uint32, i64=np.int64, u64=np.uint64)
    floats = dict(f16=np.float16, f32=np.float32, f64=np.float64)
    is_int = dtype in ints
    dt = (ints if is_int else floats)[dtype]
    programs = tilec.cdiv(n, 64)
    x = rng.integers(0 if dtype[0] == "u" else -20, 20, programs * 64).astype(dt)
    start, before = np.full(24 if is_int else 12, 3, dt), np.full(programs * 64, 2, dt)
    xs, cell, old = dev.array(x.copy()), dev.array(start.copy()), dev.array(before.copy())
    k = source(dev, ATOMICS, "ints" if is_int else "floats", T=dtype, SEM=f'"{sem}"', SCOPE=f'"{scope}"')
    call = launch(k, programs, xs, cell, old, n)
    on = np.arange(len(x)) < n
    at = (x.astype(np.int64) & 3) if is_int else np.arange(len(x)) & 3
    want = start.copy()
    for j, f in enumerate((np.add, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)[:len(start) // 4]):
        f.at(want, at[on] + 4 * j, x[on])
    return Run(call, [("cells", cell.numpy(), want, 0), ("old", old.numpy(), np.where(on, 2 + x, 0).astype(dt), 0),
                      ("cas", xs.numpy(), np.where(on & (x == 5), 7, x).astype(dt), 0)])


RANDOM = """
kernel f(words: *u32, unit: *f32, normal: *f32, known: *u32, row: *u32, even: *f32, seed: i64, start: i64, const N = 256) {
  let i = start + arange(0, N);
  let (a, b, c, d) = randint4x(seed, i);
  let w = words + arange(0, N) * 4;
  store(w, a);
  store(w + 1, b);
  store(w + 2, c);
  store(w + 3, d);
  store(unit + arange(0, N), rand(seed, i));
  store(row + arange(0, 4 * N), randint_row(seed, 4 * start, 4 * N));      // the same words as a stream
  store(even + arange(0, 4 * N), rand_row(seed, 4 * start, 4 * N));
  let (x, y, z, t) = randn4x(seed, i);
  let m = normal + arange(0, N) * 4;
  store(m, x);
  store(m + 1, y);
  store(m + 2, z);
  store(m + 3, t);
  let ones = ~u32(0);
  let k0 = philox(u32(0), u32(0), u32(0), u32(0), u32(0), u32(0));
  let k1 = philox(ones, full([4], ones), ones, ones, ones, ones);      // one tile makes tiles of all
  let k2 = philox(u32(0x243f6a88), u32(0x85a308d3), u32(0x13198a2e), u32(0x03707344), u32(0xa4093822), u32(0x299f31d0));
  for j in static_range(4) {
    store(known + j, k0[j]);
    store(known + 4 + j, k1[j][3]);
    store(known + 8 + j, k2[j]);
  }
}"""

# From the authors' table of known answers.
PHILOX_KNOWN = [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd,
                0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]


def philox(counter, key):
    mask, (c0, c1, c2, c3), (k0, k1) = np.uint64(0xFFFFFFFF), counter, key
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> np.uint64(32)) ^ c1 ^ k0, b & mask, (a >> np.uint64(32)) ^ c3 ^ k1, a & mask
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & mask, (k1 + np.uint64(0xBB67AE85)) & mask
    return np.stack([c0, c1, c2, c3], -1).astype(np.uint32)


def random_numbers(dev, rng, n, seed, start):
    """Philox bit for bit, also against known answers; the distributions made of it."""
    words, unit, normal, known = poisoned(dev, (n, 4), "u32"), poisoned(dev, n, "f32"), poisoned(dev, (n, 4), "f32"), poisoned(dev, 12, "u32")
    row, even = poisoned(dev, (n, 4), "u32"), poisoned(dev, (n, 4), "f32")
    call = launch(source(dev, RANDOM, N=n), 1, words, unit, normal, known, row, even, seed, start)
    at = np.uint64(start) + np.arange(n, dtype=np.uint64)
    key = (np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF))
    zero = np.zeros(n, np.uint64)
    want = philox((at & np.uint64(0xFFFFFFFF), at >> np.uint64(32), zero, zero), key)
    u = (want >> 8).astype(np.float32) * np.float32(2.0**-24)
    radius = lambda k: np.sqrt(-2 * np.log(u[:, k].astype(np.float64) + 2.0**-24))
    angle = lambda k: 2 * np.pi * u[:, k].astype(np.float64)
    z = np.stack([radius(0) * np.cos(angle(1)), radius(0) * np.sin(angle(1)), radius(2) * np.cos(angle(3)), radius(2) * np.sin(angle(3))], -1)
    return Run(call, [("words", words.numpy(), want, 0), ("unit", unit.numpy(), u[:, 0], 0), ("normal", normal.numpy(), z, 3e-6),
                      ("row", row.numpy(), want, 0), ("even", even.numpy(), u, 0),
                      ("known", known.numpy(), np.array(PHILOX_KNOWN, np.uint32), 0)])


def real_functions(dev, rng, n):
    """sin and cos to their stated error, also of f16; maximum and minimum with nans; the high half of a product."""
    text = """kernel f(x: *f32, y: *f32, s: *f32, c: *f32, h: *f16, up: *f32, low: *f32, m: *u64, const N = 256) {
      let i = arange(0, N);
      let a = load(x + i);
      let b = load(y + i);
      store(s + i, sin(a));
      store(c + i, cos(a));
      store(h + i, sin(f16(a)));
      store(up + i, maximum(a, b));
      store(low + i, minimum(a, b));
      store(m + i, umulhi(bitcast(f64(a), u64), u64(0x9E3779B97F4A7C15)));
    }"""
    x = (rng.standard_normal(n) * np.exp2(rng.integers(-10, 14, n))).astype(np.float32)
    y = np.where(rng.random(n) < 0.2, np.nan, x + rng.standard_normal(n)).astype(np.float32)
    out = [poisoned(dev, n, t) for t in ("f32", "f32", "f16", "f32", "f32", "u64")]
    call = launch(source(dev, text, N=n), 1, dev.array(x), dev.array(y), *out)
    s, c, h, up, low, m = (o.numpy() for o in out)
    x64 = x.astype(np.float64)
    far = lambda got, want: np.abs(got - want) / (2.0**-24 + np.abs(want) * 2.0**-23)
    hi = np.array([int(v) * 0x9E3779B97F4A7C15 >> 64 for v in x64.view(np.uint64)], np.uint64)
    filled = lambda v: np.nan_to_num(v, nan=1e30)
    within = np.ones(n, bool)
    x16 = x.astype(np.float16).astype(np.float32)
    return Run(call, [("sin", far(s, np.sin(x64)) <= 2, within, 0), ("cos", far(c, np.cos(x64)) <= 2, within, 0),
                      ("f16", np.abs(h - np.sin(x16.astype(np.float64))) <= 2.0**-11, within, 0), ("maximum", filled(up), filled(np.maximum(x, y)), 0),
                      ("minimum", filled(low), filled(np.minimum(x, y)), 0), ("umulhi", m, hi, 0)])


def random_flow(dev, rng, seed):
    """Twenty random functions, see flow.py."""
    checks = []
    for k in range(20):
        text, function = flow.make(seed * 20 + k)
        out = poisoned(dev, 12, "i32")
        call = launch(source(dev, text), 12, out)
        checks.append((f"seed {seed * 20 + k}", out.numpy(), np.array([function(n) for n in range(12)], np.int32), 0))
    return Run(call, checks)


def arguments(dev, rng, rows, cols):
    """Tuples and structs of arguments: their parts are arguments of their own."""
    text = """struct Matrix { base: *f32, strides: (i64, i64) }
    fn at(m: Matrix, i, j) { return m.base + i * m.strides[0] + j * m.strides[1]; }
    kernel f(x: Matrix, y: Matrix, shape: (i32, i32), by: (f32,), const N = 32) {
      let (i, j) = (arange(0, N)[:, None], arange(0, N)[None, :]);
      let inside = i < shape[0] && j < shape[1];
      store(at(y, j, i), load(at(x, i, j), mask=inside) * by[0], mask=inside);
    }"""
    x, y = rng.standard_normal((rows, cols), np.float32), poisoned(dev, rows * cols, "f32")
    call = launch(source(dev, text), 1, dict(base=dev.array(x), strides=(cols, 1)), (y, (rows, 1)), (rows, cols), (2.0,))
    return Run(call, [("y", y.numpy().reshape(cols, rows), x.T * 2, 0)])


def anonymous(dev, rng, n, warps):
    """Functions without a name: folded with, given, kept in structs, with what they captured around them."""
    text = """struct Step { f, n }
    fn twice(f, x) { return f(f(x)); }
    fn times(k) { return (x) -> x * k; }
    kernel f(x: *f32, out: *f32, lim: f32, m: i32, const N = 64, const ACT = (x) -> max(x, 0.0)) {
      let i = arange(0, N);
      let v = load(x + i);
      var total = 0.0;
      for j in range(m) {
        let top = lim * f32(j);
        total += reduce(v, 0, (a, b) -> { let most = max(a, b); if most > top { return top; } return most; });
      }
      var s = Step(times(lim), 0);
      for j in range(m) { s = Step(s.f, s.n + j); }
      let w = scan(v, 0, (a, b) -> min(max(a, b), lim));
      store(out + i, ACT(w) + total + twice(s.f, v) * f32(s.n) + twice((a) -> twice((b) -> b + a, 1.0), v));
    }"""
    x, out, lim, m = rng.standard_normal(n, np.float32), poisoned(dev, n, "f32"), np.float32(0.75), 3
    call = launch(source(dev, text, N=n, warps=warps), 1, dev.array(x), out, lim, m)
    total = sum(min(x.max(), lim * np.float32(j)) for j in range(m))
    w = np.minimum(np.maximum.accumulate(x), lim)
    w[0] = x[0]                                    # nothing is folded with the first
    z = np.float32(1) + x + x
    want = np.maximum(w, 0) + total + x * lim * lim * np.float32(3) + (np.float32(1) + z + z)
    return Run(call, [("out", out.numpy(), want, 1e-5)])


def windows(dev, rng, n):
    """Tuples that are built, joined, shifted and compared when compiling."""
    text = """kernel f(x: *f32, y: *f32, n: i32, const W = 4) warps(1) {
      var win = (0.0,) * W;
      for t in range(n) {
        win = win[1:] + (load(x + t),);
        static_assert(count(win) == W && count(()) == 0 && (1, 2) + (3,) == (1, 2, 3) && [1] * 2 != [1, 2] && (1, 2, 3)[-2:] == (2, 3));
        var s = 0.0;
        for k in static_range(W) { s += win[k] * f32(k + 1); }
        store(y + t, s + (win[-1] == win[W - 1] && win == win ? 0.0 : 100.0));
      }
    }"""
    x, y = rng.integers(-9, 9, n).astype(np.float32), poisoned(dev, n, "f32")
    call = launch(source(dev, text), 1, dev.array(x), y, n)
    past = np.concatenate([np.zeros(3, np.float32), x])
    return Run(call, [("y", y.numpy(), sum(past[k:k + n] * (k + 1) for k in range(4)), 0)])


def rounded_up(dev, rng, dtype):
    """cdiv is the quotient rounded up, whatever the numbers: at the ends of a type, below zero, by constants and by numbers of a launch, of tiles."""
    number = tilec.DTYPES[dtype]
    info = np.iinfo(number)
    text = """kernel f(a: *T, b: *T, q: *T, r: *T, s: *T, n: i32, type T, const N = 128, const DOWN = false) {
      let i = arange(0, N);
      store(q + i, cdiv(load(a + i, mask=i < n), load(b + i, mask=i < n, other=1)), mask=i < n);
      for j in range(n) {
        store(r + j, cdiv(load(a + j), 64));
        if DOWN { store(s + j, cdiv(load(a + j), -7)); }
      }
    }"""
    ends = [info.max, info.max - 1, info.max - 63, info.min, info.min + 1, 0, 1, 2, 63, 64, 65, 100] + ([-1, -63, -64, -65] if info.min else [])
    by = [1, 3, 64, info.max] + ([-2, -3, -64, info.min] if info.min else [])
    a, b = (np.array(v, number) for v in zip(*[(x, y) for x in ends for y in by]))
    q, r, s = (poisoned(dev, len(a), dtype) for _ in range(3))
    call = launch(source(dev, text, T=dtype, DOWN=str(info.min < 0).lower()), 1, dev.array(a), dev.array(b), q, r, s, len(a))
    up = lambda x, y: -(-int(x) // int(y))
    found = [("q", q.numpy(), np.array([up(x, y) for x, y in zip(a, b)], number), 0), ("r", r.numpy(), np.array([up(x, 64) for x in a], number), 0)]
    return Run(call, found + [("s", s.numpy(), np.array([up(x, -7) for x in a], number), 0)] * bool(info.min))


RANGES = """kernel f(x: *f32, out: *i64, lo: T, hi: T, up: T, type T, const STEP: i64 = 0, const FORM = "plain", const W = 64) warps(2) {
  var n: i64 = 0;
  var s: i64 = 0;
  var t = zeros(W, f32);
  if STEP == 0 {                                         // a step that the launch gives
    if FORM == "plain" { for i in range(lo, hi, up) { n += 1; s = s * 3 + i64(i); } }
    if FORM == "left" { for i in range(lo, hi, up) { n += 1; s = s * 3 + i64(i); if n == 99 { break; } } }
    if FORM == "stages" { for i in range(lo, hi, up, stages=3) { t += load(x + (i64(i) & 15) * W + arange(0, W)); n += 1; s = s * 3 + i64(i); } }
    if FORM == "rows" { for i in range(lo, hi, up, stages=2) { t += load(x + i64(load(x + 1024 + (i64(i) & 15))) * W + arange(0, W)); n += 1; s = s * 3 + i64(i); } }
    if FORM == "unroll" { for i in range(lo, hi, up, unroll=4) { n += 1; s = s * 3 + i64(i); } }
    if FORM == "flatten" { for k in range(2, flatten=true) { for i in range(lo, hi, up) { n += 1; s = s * 3 + i64(i) + k; } } }
  } else {
    if FORM == "plain" { for i in range(lo, hi, STEP) { n += 1; s = s * 3 + i64(i); } }
    if FORM == "left" { for i in range(lo, hi, STEP) { n += 1; s = s * 3 + i64(i); if n == 99 { break; } } }
    if FORM == "stages" { for i in range(lo, hi, STEP, stages=3) { t += load(x + (i64(i) & 15) * W + arange(0, W)); n += 1; s = s * 3 + i64(i); } }
    if FORM == "rows" { for i in range(lo, hi, STEP, stages=2) { t += load(x + i64(load(x + 1024 + (i64(i) & 15))) * W + arange(0, W)); n += 1; s = s * 3 + i64(i); } }
    if FORM == "unroll" { for i in range(lo, hi, STEP, unroll=4) { n += 1; s = s * 3 + i64(i); } }
    if FORM == "flatten" { for k in range(2, flatten=true) { for i in range(lo, hi, STEP) { n += 1; s = s * 3 + i64(i) + k; } } }
  }
  store(out, n);
  store(out + 1, s);
  store(out + 2, i64(sum(t)));
}"""


def ranges(dev, rng, form, step, T, fixed=True):
    """range takes lo, lo + step, ... as long as they are below hi (down: above)."""
    info = np.iinfo({"i32": np.int32, "u32": np.uint32, "i64": np.int64}[T])
    x = np.concatenate([np.repeat(rng.integers(0, 8, 16), 64), rng.permutation(16)]).astype(np.float32)
    k = source(dev, RANGES, T=T, STEP=step if fixed else 0, FORM=form)
    ends = [(0, 0), (0, 1), (3, 0), (2, 12), (5, 17)]
    got, want, d = [], [], dev.array(x)
    for lo, hi in ends:
        if abs(hi - lo) > 99 * abs(step) and (hi > lo) == (step > 0) or not all(info.min <= v <= info.max for v in (lo, hi)):
            continue
        out = poisoned(dev, 3, "i64")
        call = launch(k, 1, d, out, lo, hi, abs(step))
        got.append(out.numpy())
        n = s = t = 0
        for i in [i + c * (form == "flatten") for c in range(1 + (form == "flatten")) for i in range(lo, hi, step)]:
            n, s = n + 1, s * 3 + i
            t += 64 * x[(i & 15) * 64] if form == "stages" else 64 * x[int(x[1024 + (i & 15)]) * 64] if form == "rows" else 0
        want.append([n, (s + (1 << 63)) % (1 << 64) - (1 << 63), int(t)])
    return Run(call, [("out", np.array(got), np.array(want, np.int64), 0)])


FORMS = ("plain", "left", "stages", "rows", "unroll", "flatten")


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("ranges", ranges, [dict(form=f, step=s, T=t) for f in FORMS for s in (1, 5, -1, -3) for t in ("i32", "u32", "i64")]),
    both("rounded_up", rounded_up, grid(dtype=("i8", "i32", "u32", "i64", "u64"))),
    both("anonymous", anonymous, [dict(n=64, warps=2), dict(n=100, warps=1)]),
    both("windows", windows, [dict(n=11)]),
    both("arguments", arguments, [dict(rows=3, cols=32), dict(rows=32, cols=7)]),
    both("exits", exits, [dict(programs=24, n=n) for n in (0, 1, 33, 40)]),
    both("index_wrap", index_wrap, [dict()]),
    both("scans", scans, grid(rows=(4, 40), cols=(16, 140), axis=(0, 1), reverse=(False, True), warps=(1, 4)) +
         grid(rows=(1, 13), cols=(1, 1000), axis=(0, 1), reverse=(False, True), warps=(8,), dtype=("f32",)) +
         grid(rows=(1, 2), cols=(1500, 8192), axis=(1,), reverse=(False, True), warps=(8, 16, 32))),
    both("shape_functions", shape_functions, grid(m=(4, 16), n=(8, 64), axis=(0, 1), warps=(1, 4), dtype=("f32",)) +
         grid(m=(5, 8), n=(12, 64), axis=(0, 1), warps=(2,), dtype=("i8", "i64"))),
    both("indices", indices, grid(m=(2, 16), n=(8, 64), at=(0, 5), warps=(1, 4), dtype=("f32",)) +
         grid(m=(3, 12), n=(7, 20), at=(6,), warps=(1, 8), dtype=("i8", "f16", "i64"))),
    both("flattened_product", flattened_product, [dict(m=m, n=n, k=k, programs=g) for m, n, k, g in
         [(64, 64, 48, 1), (100, 72, 32, 3), (32, 32, 16, 4), (70, 40, 0, 2), (64, 96, 24, 1), (64, 64, 8, 9)]]),
    both("flattened_chain", flattened_chain, grid(n=(0, 1, 5), m=(0, 1, 4))),
    both("truths", truths, grid(n=(5, 256), warps=(1, 4))),
    both("folds", folds, grid(m=(4, 16), n=(8, 64), axis=(0, 1), warps=(1, 4), dtype=("f32",)) +
         grid(m=(5,), n=(12,), axis=(0, 1), warps=(2,), dtype=("i32", "i8"))),
    both("array_blocks", array_blocks, [dict(m=40, n=70, dtype="f16"), dict(m=16, n=32, dtype="f32")]),
    both("sorts", sorts, grid(m=(2, 7), n=(64, 37), axis=(0, 1), k=(2,), warps=(1, 4), dtype=("f32",)) +
         [dict(m=1, n=1024, axis=1, k=10, warps=8, dtype="i32"), dict(m=1, n=300, axis=1, k=300, warps=4, dtype="u8"), dict(m=3, n=1, axis=1, k=1, warps=1, dtype="f32")]),
    both("histograms", histograms, grid(n=(64, 1000), bins=(8, 37), warps=(1, 4)) +
         [dict(n=1000, bins=256, warps=4, dtype=t) for t in ("u8", "i8")]),
    both("ranks", ranks, grid(rows=(8,), n=(32, 256), bins=(1, 2, 5, 8), warps=(1, 4, 8)) + [dict(rows=4, n=512, bins=256, warps=4, dtype="u32"), dict(rows=32, n=64, bins=300, warps=16)]),
    both("all_atomics", all_atomics, grid(n=(100,), dtype=("i32", "u32", "i64", "u64", "f16", "f32", "f64"), sem=("relaxed", "acq_rel"), scope=("gpu",)) +
         grid(n=(64,), dtype=("i32", "f32"), sem=("acquire", "release"), scope=("cta", "sys"))),
    both("far_blocks", far_blocks, [dict(n=64)]),
    both("random_numbers", random_numbers, [dict(n=256, seed=42, start=0), dict(n=1024, seed=(7 << 32) + 5, start=(3 << 32) - 100)]),
    both("real_functions", real_functions, [dict(n=1024)]),
    both("random_flow", random_flow, grid(seed=(0, 1, 2, 3))),
]
