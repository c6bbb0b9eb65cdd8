"""Kernels that only fit because their buffers end behind their last element: the padded ones would take more than a block can have."""
import numpy as np
from cases import Case, Run, poisoned, launch, grid

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "u8": np.uint8}


def source(dev, text, target, **defines):
    return dev.program(text=text, name="case.tile", target=target).kernel(**defines)


def integers(rng, shape, dtype, most=64):
    return rng.integers(0, most, shape).astype(NUMPY[dtype])


def turned(dev, rng, rows, cols, dtype, warps, target, layout=""):
    """A tile goes through a buffer of the program's own and comes back transposed, and once more as it is."""
    text = f"""kernel f(x: *{dtype}, y: *{dtype}, z: *{dtype}) warps({warps}) {{
      let r = arange(0, {rows})[:, None];
      let c = arange(0, {cols})[None, :];
      let s = shared({dtype}, [{rows}, {cols}]{layout});
      shared_store(s, load(x + r * {cols} + c));
      store(z + r * {cols} + c, shared_load(s));
      store(y + trans(c) * {rows} + trans(r), shared_load(trans(s)));
    }}"""
    x, y, z = integers(rng, (rows, cols), dtype), poisoned(dev, (cols, rows), dtype), poisoned(dev, (rows, cols), dtype)
    call = launch(source(dev, text, target), 1, dev.array(x), y, z)
    return Run(call, [("y", y.numpy(), np.ascontiguousarray(x.T), 0), ("z", z.numpy(), x, 0)])


def row(dev, rng, n, rows, cols, count, target):
    """A row of buffers of f64, each filled in its turn and read when it is the oldest."""
    text = f"""kernel f(x: *f64, y: *f64, n: i32) {{
      let r = arange(0, {rows})[:, None];
      let c = arange(0, {cols})[None, :];
      let s = shared(f64, [{rows}, {cols}], count={count});
      for k in range(n + {count - 1}) {{
        if k < n {{ shared_store(s[k % {count}], load(x + k * {rows * cols} + r * {cols} + c)); }}
        if k >= {count - 1} {{
          let j = k - {count - 1};
          store(y + j * {rows * cols} + trans(c) * {rows} + trans(r), shared_load(trans(s[j % {count}])));
        }}
      }}
    }}"""
    x, y = rng.standard_normal((n, rows, cols)), poisoned(dev, (n, cols, rows), "f64")
    call = launch(source(dev, text, target), 1, dev.array(x), y, n)
    return Run(call, [("y", y.numpy(), np.ascontiguousarray(x.transpose(0, 2, 1)), 0)])


def ring(dev, rng, n, rows, cols, count, target, layout=""):
    """Asynchronous copies into a row of buffers, the last tile masked."""
    text = f"""kernel f(x: *f16 multiple_of(16), y: *f16, n: i32, last: i32) {{
      let r = arange(0, {rows})[:, None];
      let c = arange(0, {cols})[None, :];
      let s = shared(f16, [{rows}, {cols}], count={count}{layout});
      for k in static_range({count - 1}) {{
        async_copy(s[k], x + k * {rows * cols} + r * {cols} + c, mask=k < n - 1 || (k == n - 1 && r < last));
        async_commit();
      }}
      for k in range(n) {{
        async_wait({count - 2});
        let next = k + {count - 1};
        async_copy(s[next % {count}], x + next * {rows * cols} + r * {cols} + c, mask=next < n - 1 || (next == n - 1 && r < last));
        async_commit();
        store(y + k * {rows * cols} + r * {cols} + c, shared_load(s[k % {count}]) * 2.0);
      }}
      async_wait_all();
    }}"""
    last = rows // 2
    x, y = integers(rng, (n, rows, cols), "f16"), poisoned(dev, (n, rows, cols), "f16")
    call = launch(source(dev, text, target), 1, dev.array(x), y, n, last)
    want = x * np.float16(2)
    want[-1, last:] = 0
    return Run(call, [("y", y.numpy(), want, 0)])


def scores(dev, rng, n, depth, M, N, stages, target, warps=8):
    """Queries against keys of `depth` numbers each: the depth of a dot is one tile, two tiles of keys are on their way."""
    text = f"""kernel f(q: *f16 multiple_of(16), k: *f16 multiple_of(16), out: *f32, n: i32) warps({warps}) {{
      let d = arange(0, {depth});
      let rows = arange(0, {M});
      let a = load(q + rows[:, None] * {depth} + d[None, :]);
      for j in range(0, n, {N}, stages={stages}) {{
        let cols = j + arange(0, {N});
        let b = load(k + cols[:, None] * {depth} + d[None, :], mask=cols[:, None] < n);
        store(out + rows[:, None] * n + cols[None, :], dot(a, trans(b)), mask=cols[None, :] < n);
      }}
    }}"""
    q, k = integers(rng, (M, depth), "f16", 8), integers(rng, (n, depth), "f16", 8)
    out = poisoned(dev, (M, n), "f32")
    call = launch(source(dev, text, target), 1, dev.array(q), dev.array(k), out, n)
    return Run(call, [("out", out.numpy(), q.astype(np.float32) @ k.astype(np.float32).T, 0)])


def wide(dev, rng, k, M, N, K, stages, target, dtype="f16"):
    """A matmul whose tile of b has a ragged N."""
    text = f"""kernel f(a: *{dtype} multiple_of(16), b: *{dtype} multiple_of(16), out: *f32, k: i32) warps(8) {{
      let m = arange(0, {M});
      let n = arange(0, {N});
      var acc = zeros([{M}, {N}], f32);
      for at in range(0, k, {K}, stages={stages}) {{
        let d = at + arange(0, {K});
        acc = dot(load(a + m[:, None] * k + d[None, :]), load(b + d[:, None] * {N} + n[None, :]), acc);
      }}
      store(out + m[:, None] * {N} + n[None, :], acc);
    }}"""
    a, b = integers(rng, (M, k), dtype, 8), integers(rng, (k, N), dtype, 8)
    out = poisoned(dev, (M, N), "f32")
    call = launch(source(dev, text, target), 1, dev.array(a), dev.array(b), out, k)
    return Run(call, [("out", out.numpy(), a.astype(np.float32) @ b.astype(np.float32), 0)])


def by_index(dev, rng, n, bins, rows, cols, target):
    """Counts in a buffer, and elements of another found by index; some indices of padding lie anywhere."""
    text = f"""kernel f(at: *i32, x: *f32, row: *i32, counts: *i32, y: *f32) warps(16) {{
      let i = arange(0, {n});
      let c = shared(i32, [{bins}]);
      shared_store(c, 0);
      shared_add(c, load(at + i), i % 3);
      store(counts + arange(0, {bins}), shared_load(c));
      free(c);
      let s = shared(f32, [{rows}, {cols}]);
      shared_store(s, load(x + arange(0, {rows})[:, None] * {cols} + arange(0, {cols})[None, :]));
      let k = arange(0, 33)[:, None] * {cols} + arange(0, {cols})[None, :];
      store(y + k, gather(s, load(row + k), 0));
    }}"""
    at, x, k = integers(rng, n, "i32", bins), integers(rng, (rows, cols), "f32", 4096), integers(rng, (33, cols), "i32", rows)
    counts, y = poisoned(dev, bins, "i32"), poisoned(dev, (33, cols), "f32")
    call = launch(source(dev, text, target), 1, dev.array(at), dev.array(x), dev.array(k), counts, y)
    want = np.zeros(bins, np.int32)
    np.add.at(want, at, (np.arange(n) % 3).astype(np.int32))
    return Run(call, [("counts", counts.numpy(), want, 0), ("y", y.numpy(), np.take_along_axis(x, k, 0), 0)])


def parts(dev, rng, rows, cols, part, target):
    """Views of parts of a cut buffer are written and read."""
    text = f"""kernel f(x: *f32, y: *f32) warps(8) {{
      let s = shared(f32, [{rows}, {cols}]);
      let r = arange(0, {part});
      shared_store(s, -1.0);
      for k in static_range({cols // part}) {{
        shared_store(view(s, [{part}, k * {part}], [{part}, {part}]), load(x + r[:, None] * {cols} + k * {part} + r[None, :]));
      }}
      for k in static_range({cols // part}) {{
        let t = shared_load(trans(view(s, [{part}, k * {part}], [{part}, {part}])));
        store(y + k * {part * part} + r[:, None] * {part} + r[None, :], t);
      }}
      store(y + {cols // part * part * part} + arange(0, {rows})[:, None] * {cols} + arange(0, {cols})[None, :], shared_load(s));
    }}"""
    n = cols // part
    x, y = integers(rng, (part, cols), "f32"), poisoned(dev, n * part * part + rows * cols, "f32")
    call = launch(source(dev, text, target), 1, dev.array(x), y)
    whole = np.full((rows, cols), -1, np.float32)
    whole[part:2 * part, :n * part] = x[:, :n * part]
    tiles = x[:, :n * part].reshape(part, n, part).transpose(1, 2, 0)
    return Run(call, [("y", y.numpy(), np.concatenate([tiles.ravel(), whole.ravel()]), 0)])


def reshaped(dev, rng, shape, to, dtype, target):
    text = f"""kernel f(x: *{dtype}, y: *{dtype}) warps(8) {{
      let x = load(x + arange(0, {shape[0]})[:, None] * {shape[1]} + arange(0, {shape[1]})[None, :]);
      store(y + arange(0, {to[0]})[:, None] * {to[1]} + arange(0, {to[1]})[None, :], reshape(x, [{to[0]}, {to[1]}]));
    }}"""
    x, y = integers(rng, shape, dtype), poisoned(dev, to, dtype)
    call = launch(source(dev, text, target), 1, dev.array(x), y)
    return Run(call, [("y", y.numpy(), x.reshape(to), 0)])


def beside(dev, rng, n, target):
    """Buffers that fit with their padding, but not beside what an exchange between warps needs at least."""
    text = """kernel f(x: *f32, y: *f32, z: *f64, n: i32) warps(32) {
      let i = arange(0, 60)[:, None] * 128 + arange(0, 128)[None, :];
      let s = shared(f32, [60, 128], count=5);
      for k in range(5) { shared_store(s[k], load(x + i) * f32(k)); }
      let j = arange(0, 2048);
      store(z + j, butterfly(load(z + j), 0, 2047));
      for k in range(n) { store(y + k * 7680 + i, shared_load(s[k])); }
    }"""
    x, y, z = integers(rng, (60, 128), "f32"), poisoned(dev, (n, 60, 128), "f32"), rng.standard_normal(2048)
    zs = dev.array(z)
    call = launch(source(dev, text, target), 1, dev.array(x), y, zs, n)
    want = x * np.arange(n, dtype=np.float32)[:, None, None]
    return Run(call, [("y", y.numpy(), want, 0), ("z", zs.numpy(), z[::-1].copy(), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
TARGETS = ("sm_80", "sm_90a")
CASES = [
    both("cut_turned", turned, grid(rows=(100,), cols=(257,), dtype=("f32",), warps=(4, 16), target=TARGETS) +
         grid(rows=(260,), cols=(260,), dtype=("u8",), warps=(8,), target=("sm_80",)) +
         grid(rows=(90,), cols=(250,), dtype=("f64",), warps=(16,), target=("sm_90a",)) +
         [dict(rows=100, cols=257, dtype="f32", warps=8, target="sm_90a", layout=", layout=" + l)
          for l in ("swizzled(vec=4, max_phase=8)", "swizzled(order=[0, 1])", "padded(512, 4)", "padded(32, 1, order=[0, 1])")]),
    both("cut_row", row, grid(n=(0, 1, 9), rows=(33,), cols=(33,), count=(8,), target=TARGETS)),
    both("cut_ring", ring, grid(n=(1, 5), rows=(48,), cols=(640,), count=(2,), target=("sm_80",)) +
         grid(n=(1, 2, 7), rows=(48,), cols=(576,), count=(3,), target=("sm_90a",)) +
         [dict(n=4, rows=33, cols=512, count=4, target="sm_90a", layout=", layout=swizzled(vec=8, max_phase=8)")]),
    both("cut_scores", scores, [dict(n=100, depth=576, M=16, N=64, stages=2, target="sm_80"),
                                dict(n=200, depth=576, M=64, N=64, stages=2, target="sm_90a"),
                                dict(n=70, depth=1100, M=16, N=32, stages=2, target="sm_90a")]),
    both("cut_deep", wide, [dict(k=1152, M=16, N=32, K=576, stages=2, target="sm_80"),
                            dict(k=1728, M=16, N=64, K=576, stages=2, target="sm_90a")]),
    both("cut_wide", wide, [dict(k=256, M=16, N=576, K=64, stages=2, target="sm_80"),
                            dict(k=256, M=32, N=576, K=64, stages=2, target="sm_90a"),
                            dict(k=192, M=16, N=320, K=32, stages=4, target="sm_90a", dtype="f32")]),
    both("cut_by_index", by_index, grid(n=(1000,), bins=(33000,), rows=(100,), cols=(257,), target=TARGETS)),
    both("cut_parts", parts, grid(rows=(100,), cols=(257,), part=(32,), target=TARGETS)),
    both("cut_reshaped", reshaped, [dict(shape=(100, 257), to=(257, 100), dtype="f32", target="sm_80"),
                                    dict(shape=(48, 600), to=(600, 48), dtype="f32", target="sm_80"),
                                    dict(shape=(100, 257), to=(257, 100), dtype="f32", target="sm_90a"),
                                    dict(shape=(40, 300), to=(300, 40), dtype="f64", target="sm_80")]),
    both("cut_for_scratch", beside, grid(n=(3,), target=("sm_80",))),
]
