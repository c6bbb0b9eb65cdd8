"""Orders of tiles, shares of work, scans without the element itself. Same form as examples/cases.py."""
from cases import Case, Run, poisoned, launch, grid
import numpy as np
import tilec


def source(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


ORDERS = """
fn by3(t, rows, cols) { return grouped(t, rows, cols, 3); }
fn snake3(t, rows, cols) { return grouped_snake(t, rows, cols, GROUP=3); }
kernel orders(out: *i32, rows: i32, cols: i32) warps(1) {
  let s = Scheduler(rows, cols, ORDER);
  for t in range(program_id(0), tiles(s), num_programs(0)) {
    let (i, j) = tile_at(s, t);
    store(out + 2 * t, i);
    store(out + 2 * t + 1, j);
  }
}
const ORDER = %s;
"""


def neighbours(path):
    return np.abs(np.diff(path.astype(np.int64), axis=0)).sum(1)


def orders(dev, rng, order, rows, cols, programs=3):
    """An order is a bijection onto the tiles; those that are paths go from neighbour to neighbour."""
    n = rows * cols
    out = dev.array(np.full((n + 1, 2), -7, np.int32))
    call = launch(source(dev, ORDERS % order), programs, out, rows, cols)
    got = out.numpy()
    path = got[:n]
    seen = np.zeros((rows, cols), np.int32)
    ok = ((path >= 0) & (path < [rows, cols])).all(1)
    np.add.at(seen, tuple(path[ok].T), 1)
    checks = [("tiles", seen, np.ones((rows, cols), np.int32), 0), ("behind", got[n], np.array([-7, -7], np.int32), 0)]
    t = np.arange(n)
    known = dict(row_major=(t // cols, t % cols), column_major=(t % rows, t // rows), diagonal=(t % rows, (t // rows + t % rows) % cols))
    if order in known:
        checks.append((order, path, np.stack(known[order], -1).astype(np.int32), 0))
    if order == "snake":
        checks.append(("path", neighbours(path), np.ones(n - 1, np.int64), 0))
    if order == "hilbert":                       # a step aside is needed where extents are odd, never a jump
        checks.append(("path", neighbours(path) <= 2, np.ones(n - 1, bool), 0))
        for k in (4, 16, 64):                    # k tiles in a row lie close together
            ends = [np.ptp(path[i:i + k], axis=0).max() for i in range(0, n - k + 1)] if min(rows, cols) >= 16 else [0]
            checks.append((f"{k} tiles", np.array(max(ends) <= 2.5 * k ** 0.5), np.array(True), 0))
    return Run(call, checks)


# Turns around a ring: forward one by one, back, and several at once; then data through rings that two teams fill, or two read.
TURNS = """
kernel turns(out: *i32, n: i32, const SLOTS) warps(1) {
  let r = ring(SLOTS);
  var t = Turn();
  for i in range(n) {
    let (back, far) = (preceding(r, following(r, t)), ahead(r, t, i));
    store(out + 6 * i, t.slot);
    store(out + 6 * i + 1, t.phase);
    store(out + 6 * i + 2, back.slot);
    store(out + 6 * i + 3, back.phase);
    store(out + 6 * i + 4, far.slot);
    store(out + 6 * i + 5, far.phase);
    t = following(r, t);
  }
}

fn fill(x, r: Ring, s, n, const half) {
  let i = half * 64 + arange(0, 64);
  var t = Turn();
  for k in range(n) {
    acquire(r, t);
    if half == 0 {
      shared_store(view(s[t.slot], [0], [64]), load(x + k * 128 + i));
      commit(r, t);
    } else {
      async_copy(view(s[t.slot], [64], [64]), x + k * 128 + i);
      async_commit();
      commit(r, t, copies=true);
    }
    t = following(r, t);
  }
}

fn drain(y, r: Ring, s, n, const odd) {
  var t = Turn();
  for k in range(n) {
    await(r, t);
    if k % 2 == odd { store(y + k * 128 + arange(0, 128), shared_load(s[t.slot]) + 1.0); }
    release(r, t);
    t = following(r, t);
  }
}

kernel through(x: *f32, y: *f32, n: i32, const SLOTS) {
  let r = ring(SLOTS, readers=2, writers=2);
  let s = shared(f32, [128], count=SLOTS);
  specialize {
    warps(1) { fill(x, r, s, n, 0); }
    warps(2) { fill(x, r, s, n, 1); }
    warps(4) { drain(y, r, s, n, 0); }
    warps(1) { drain(y, r, s, n, 1); }
  }
}
"""


def turns(dev, rng, slots, n=20):
    out = poisoned(dev, (n, 6), "i32")
    call = launch(source(dev, TURNS, "turns", SLOTS=slots), 1, out, n)
    i = np.arange(n)
    place = lambda k: [k % slots, k // slots % 2]
    return Run(call, [("turns", out.numpy(), np.stack(place(i) * 2 + place(2 * i), -1).astype(np.int32), 0)])


def through(dev, rng, slots, n):
    x = rng.standard_normal((n, 128)).astype(np.float32)
    y = poisoned(dev, x.shape, "f32")
    return Run(launch(source(dev, TURNS, "through", SLOTS=slots), 1, dev.array(x), y, n), [("y", y.numpy(), x + np.float32(1), 0)])


DEALS = """
kernel deals(out: *i32, n: i32) warps(1) {
  let (parts, part) = (num_programs(0), program_id(0));
  for i in range(deal(n, parts, part)) { atomic_add(out + dealt(i, parts, part), 1 + part * 1000); }
}
"""


def deals(dev, rng, n, programs):
    """Each thing goes to one program; of things that fall in size by one, an even number for each, sums are the same."""
    out = dev.array(np.zeros(n + 1, np.int32))
    call = launch(source(dev, DEALS), programs, out, n)
    got = out.numpy()
    sums = np.bincount(got[:n] // 1000, weights=n - np.arange(n), minlength=programs)
    even = np.ptp(sums) == 0 or n % (2 * programs) != 0
    return Run(call, [("once", got % 1000, np.append(np.ones(n, np.int32), 0).astype(np.int32), 0), ("evenly", np.array(even), np.array(True), 0)])


SHARES = """
kernel shares(ends: *i32, steps_done: *i32, whole: *i32, tiles: i32, steps: i32) warps(1) {
  let (p, n) = (program_id(0), num_programs(0));
  let (lo, hi) = share(tiles * steps, n, p);
  store(ends + 2 * p, lo);
  store(ends + 2 * p + 1, hi);
  var at = lo;
  while at < hi {
    let w = stream_k(at, hi, steps);
    for k in range(w.lo, w.hi) { atomic_add(steps_done + w.tile * steps + k, 1); }
    if w.whole { atomic_add(whole + w.tile, 1); }
    at = w.next;
  }
}"""


def shares(dev, rng, tiles, steps, programs):
    """Stream-K: every step of every tile is done once, shares differ by at most one step, and whole tiles are known as such."""
    ends, done, whole = poisoned(dev, (programs, 2), "i32"), dev.array(np.zeros((tiles, steps), np.int32)), dev.array(np.zeros(tiles, np.int32))
    call = launch(source(dev, SHARES), programs, ends, done, whole, tiles, steps)
    n = tiles * steps
    each = np.full(programs, n // programs) + (np.arange(programs) < n % programs)
    hi = np.cumsum(each)
    alone = [any(a <= t * steps and (t + 1) * steps <= b for a, b in zip(hi - each, hi)) for t in range(tiles)]
    return Run(call, [("shares", ends.numpy(), np.stack([hi - each, hi], -1).astype(np.int32), 0), ("steps", done.numpy(), np.ones((tiles, steps), np.int32), 0),
                      ("whole", whole.numpy(), np.array(alone, np.int32), 0)])


EXCLUSIVE = """
fn after(a0, b0, a1, b1) { return (a0 * a1, b0 * a1 + b1); }
fn last(a, b) { return b; }
kernel f(x: *T, sums: *T, most: *T, least: *T, products: *i32, p: *i32, q: *i32, before: *T, const R = 4, const C = 16, const AXIS = 1, const REVERSE = false, type T = i32) {
  let i = arange(0, R)[:, None] * C + arange(0, C)[None, :];
  let a = load(x + i);
  store(sums + i, cumsum(a, AXIS, REVERSE, exclusive=true));
  store(most + i, cummax(a, AXIS, reverse=REVERSE, exclusive=true));
  store(least + i, cummin(a, AXIS, reverse=REVERSE, exclusive=true));
  store(products + i, cumprod(i32(a), AXIS, reverse=REVERSE, exclusive=true));
  let (u, v) = scan((i32(a) % 4 - 1, i32(a)), AXIS, after, reverse=REVERSE, exclusive=true, identity=(1, 0));
  store(p + i, u);
  store(q + i, v);
  store(before + i, scan(a, AXIS, last, reverse=REVERSE, exclusive=true));
}"""


def moved(x, axis, reverse, first):
    """x one place further along axis, with `first` in front."""
    y = np.roll(x, -1 if reverse else 1, axis)
    at = [slice(None)] * x.ndim
    at[axis] = -1 if reverse else 0
    y[tuple(at)] = first
    return y


def exclusive_scans(dev, rng, rows, cols, axis, reverse, warps, dtype="i32"):
    """Scans that leave the element itself out are those with it, one place further on."""
    dt = dict(i32=np.int32, f32=np.float32, i64=np.int64)[dtype]
    x = rng.integers(-9, 10, (rows, cols)).astype(dt)
    out = [poisoned(dev, (rows, cols), t) for t in (dtype, dtype, dtype, "i32", "i32", "i32", dtype)]
    k = source(dev, EXCLUSIVE, R=rows, C=cols, AXIS=axis, REVERSE="true" if reverse else "false", T=dtype, warps=warps)
    call = launch(k, 1, dev.array(x), *out)
    turned = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    scan = lambda f, v: turned(f(turned(v), axis))
    lo, hi = (-np.inf, np.inf) if dtype == "f32" else (np.iinfo(dt).min, np.iinfo(dt).max)
    n = x.astype(np.int32)
    with np.errstate(over="ignore"):
        u, v = turned(np.fmod(n, np.int32(4)) - np.int32(1)).copy(), turned(n).copy()
        for t in range(1, u.shape[axis]):
            prev, now = [tuple(slice(None) if d != axis else z for d in range(2)) for z in (t - 1, t)]
            v[now] = v[prev] * u[now] + v[now]
            u[now] = u[prev] * u[now]
        product = scan(lambda a, ax: np.multiply.accumulate(a, ax, dtype=np.int32), n)
    want = [moved(scan(np.cumsum, x).astype(dt), axis, reverse, 0), moved(scan(np.maximum.accumulate, x), axis, reverse, lo),
            moved(scan(np.minimum.accumulate, x), axis, reverse, hi), moved(product, axis, reverse, 1),
            moved(turned(u), axis, reverse, 1), moved(turned(v), axis, reverse, 0), moved(x, axis, reverse, 0)]
    return Run(call, [(w, o.numpy(), v, 0) for w, o, v in zip(("sum", "max", "min", "product", "pair", "recurrence", "before"), out, want)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
ORDER_NAMES = ("row_major", "column_major", "grouped", "by3", "snake", "snake3", "diagonal", "hilbert")
SCANS = (grid(rows=(4, 40), cols=(16, 140), axis=(0, 1), reverse=(False, True), warps=(1, 4)) +
         grid(rows=(1, 13), cols=(1, 1000), axis=(0, 1), reverse=(False, True), warps=(8,), dtype=("f32",)) +
         grid(rows=(5,), cols=(12,), axis=(0, 1), reverse=(False, True), warps=(2,), dtype=("i64",)))
# On a GPU tiles that spill, too: what ptxas made of 22 x 384, 26 x 384, 40 x 140 and 46 x 140 was wrong (runtime/spills.h).
CASES = [
    Case("deals", deals, grid(n=(1, 12, 100), programs=(1, 3, 5, 7)) + [dict(n=120, programs=6)]),
    Case("turns", turns, grid(slots=(1, 2, 3, 5))),
    Case("through", through, grid(slots=(1, 2, 3), n=(1, 7))),
    both("orders", orders, grid(order=ORDER_NAMES, rows=(1, 7), cols=(1, 5)) + grid(order=ORDER_NAMES, rows=(16,), cols=(33,)) +
         grid(order=("hilbert",), rows=(16, 31, 40), cols=(16, 32, 57), programs=(16,)) + grid(order=("hilbert",), rows=(3, 64), cols=(2, 9))),
    both("shares", shares, [dict(tiles=t, steps=k, programs=p) for t, k, p in [(5, 7, 4), (1, 1, 3), (12, 4, 12), (9, 5, 1), (3, 16, 10)]]),
    Case("exclusive_scans", exclusive_scans, SCANS, SCANS + grid(rows=(22, 26, 46), cols=(140, 384), axis=(0,), reverse=(True,), warps=(1,))),
]
