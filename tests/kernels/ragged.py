"""Functions that move elements about, at extents that are not powers of two, against numpy."""
import numpy as np
from cases import Case, Run, poisoned, launch, grid
import tilec


def source(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


def flat(shape, x="x"):
    """An expression for pointers to all elements of a row-major array."""
    terms, stride = [], 1
    for d in reversed(range(len(shape))):
        index = ", ".join(":" if i == d else "None" for i in range(len(shape)))
        line = f"arange(0, {shape[d]})" + (f"[{index}]" if len(shape) > 1 else "")
        terms.append(f"{line} * {stride}")
        stride *= shape[d]
    return f"{x} + ({' + '.join(reversed(terms))})"


def sample(rng, shape, dtype):
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype == "f32":
        return rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32) - 7
    return rng.integers(-100, 100, shape).astype({"i8": np.int8, "i32": np.int32, "i64": np.int64, "f16": np.float16}[dtype])


def moved(dev, rng, shape, expr, want, dtype="f32", warps=4, out=None):
    """y = expr of tile x, with a second tile z where it is named; `want` of arrays x and z."""
    x, z = sample(rng, shape, dtype), sample(rng, shape, dtype)
    expected = np.ascontiguousarray(want(x, z))
    out = out or dtype
    text = f"""kernel f(xs: *{dtype}, zs: *{dtype}, ys: *{out}) warps({warps}) {{
      let x = load({flat(shape, "xs")});
      let z = load({flat(shape, "zs")});
      store({flat(expected.shape or (1,), "ys")}, {expr});
    }}"""
    y = poisoned(dev, expected.shape or (1,), out)
    call = launch(source(dev, text), 1, dev.array(x, dtype), dev.array(z, dtype), y)
    got = y.numpy()
    if out == "i1":
        got = got.astype(np.bool_)
    if expected.dtype.kind == "f" and expr.startswith(("sum", "cumsum")):
        return Run(call, [("y", got, expected.astype(np.float64), 1e-6)])
    return Run(call, [("y", got.reshape(expected.shape), expected.astype(got.dtype), 0)])


def reshapes(dev, rng, shape, to, dtype="f32", warps=4):
    return moved(dev, rng, shape, f"reshape(x, {list(to)})", lambda x, z: x.reshape(to), dtype, warps)


def pointers(dev, rng, shape, to):
    """Tiles of pointers and of truth values are reshaped too, in a loop, on a run-time path."""
    text = f"""kernel f(xs: *f32, ys: *f32, n: i32) {{
      var sum = zeros({list(to)}, f32);
      for k in range(n, stages=2) {{
        let p = reshape({flat(shape, "xs")}, {list(to)});
        let inside = reshape(load({flat(shape, "xs")}) > 0.0, {list(to)});
        if k % 2 == 0 {{ sum += load(p, mask=inside); }}
        else {{ sum += reshape(load({flat(shape, "xs")}), {list(to)}); }}
      }}
      store({flat(to, "ys")}, sum);
    }}"""
    x, y = sample(rng, shape, "f32"), poisoned(dev, to, "f32")
    call = launch(source(dev, text), 1, dev.array(x), y, 5)
    return Run(call, [("y", y.numpy(), (np.maximum(x, 0) * 3 + 2 * x).reshape(to), 0)])


def computed(dev, rng, shape, to):
    """Indices and masks reshaped: computed anew, without shared memory."""
    text = f"""kernel f(xs: *f32, ys: *f32, n: i32) {{
      let i = {flat(shape, "0")};
      let p = reshape(xs + (i ^ 1), {list(to)});
      let some = reshape(i % 3 != 0 && i < n, {list(to)});
      store({flat(to, "ys")}, load(p, mask=some, other=0.5) * f32(reshape(i, {list(to)})));
    }}"""
    count = int(np.prod(shape))
    x, y, n = sample(rng, (count + 1,), "f32"), poisoned(dev, to, "f32"), count - 3
    call = launch(source(dev, text), 1, dev.array(x), y, n)
    i = np.arange(count)
    return Run(call, [("y", y.numpy(), (np.where((i % 3 != 0) & (i < n), x[i ^ 1], 0.5) * i).astype(np.float32).reshape(to), 0)])


SHAPES = ((781,), (12, 20), (3,), (1,), (5, 7, 9), (3, 1, 11), (4, 33))
EXPRESSIONS = {      # in the language, and in numpy; d: the last axis
    "flip": ("flip(x, axis=-1)", lambda x, z: np.flip(x, -1)),
    "flip0": ("flip(x, axis=0)", lambda x, z: np.flip(x, 0)),
    "join": ("join(x, z)", lambda x, z: np.stack((x, z), -1)),
    "interleave": ("interleave(x, z)", lambda x, z: np.stack((x, z), -1).reshape(*x.shape[:-1], -1)),
    "cat": ("cat(x, z, axis=-1)", lambda x, z: np.concatenate((x, z), -1)),
    "cat0": ("cat(x, z)", lambda x, z: np.concatenate((x, z), 0)),
    "sort": ("sort(x, axis=-1)", lambda x, z: np.sort(x, -1)),
    "sort0": ("sort(x, axis=0, descending=true)", lambda x, z: np.flip(np.sort(x, 0), 0)),
    "argsort": ("argsort(x, axis=-1)", lambda x, z: np.argsort(x, -1, kind="stable").astype(np.int32)),
    "topk": ("topk(x, 1, axis=-1)[0]", lambda x, z: np.max(x, -1, keepdims=True)),
    "cumsum": ("cumsum(x, axis=-1)", lambda x, z: np.cumsum(x, -1, dtype=np.float64)),
    "cumsum_back": ("cumsum(x, axis=0, reverse=true)", lambda x, z: np.flip(np.cumsum(np.flip(x, 0), 0, dtype=np.float64), 0)),
    "cummax": ("cummax(x, axis=-1)", lambda x, z: np.maximum.accumulate(x, -1)),
    "sum": ("sum(x, axis=-1, keep_dims=true)", lambda x, z: np.sum(x, -1, keepdims=True, dtype=np.float64)),
    "max0": ("max(x, axis=0, keep_dims=true)", lambda x, z: np.max(x, 0, keepdims=True)),
    "argmin": ("argmin(x, axis=-1, keep_dims=true)", lambda x, z: np.argmin(x, -1, keepdims=True).astype(np.int32)),
    "gather": ("gather(x, i32(z) % extent(x, -1) + (i32(z) % extent(x, -1) < 0 ? extent(x, -1) : 0), -1)",
               lambda x, z: np.take_along_axis(x, z.astype(int) % x.shape[-1], -1)),
}


def named(dev, rng, shape, name, dtype="f32", warps=4):
    expr, want = EXPRESSIONS[name]
    return moved(dev, rng, shape, expr, want, dtype, warps, out="i32" if name.startswith("arg") else None)


def turned(dev, rng, shape, perm, warps):
    return moved(dev, rng, shape, f"permute(x, {list(perm)})", lambda x, z: x.transpose(perm), "f32", warps)


def parts(dev, rng, shape, start, part, warps):
    """A part of a tile, and a tile with a part replaced."""
    cut = tuple(slice(s, s + n) for s, n in zip(start, part))
    def inserted(x, z):
        y = x.copy()
        y[cut] = z[cut] * 2
        return y
    a = moved(dev, rng, shape, f"view(x, {list(start)}, {list(part)})", lambda x, z: x[cut], "f32", warps)
    b = moved(dev, rng, shape, f"insert(x, view(z, {list(start)}, {list(part)}) * 2.0, {list(start)})", inserted, "f32", warps)
    return Run(b.call, a.checks + b.checks)


def sorted_nans(dev, rng, n, descending):
    """Nans come last, behind infinities, and padding is none of them."""
    text = f"""kernel f(xs: *f32, ys: *f32, at: *i32) {{
      let i = arange(0, {n});
      let x = load(xs + i);
      store(ys + i, sort(x, descending={str(descending).lower()}));
      store(at + i, argsort(x, descending={str(descending).lower()}));
    }}"""
    x = rng.standard_normal(n, np.float32)
    x[rng.integers(0, n, n // 4)] = np.nan
    x[rng.integers(0, n, n // 4)] = np.inf
    x[rng.integers(0, n, n // 8)] = -np.inf
    y, at = poisoned(dev, n, "f32"), poisoned(dev, n, "i32")
    call = launch(source(dev, text), 1, dev.array(x), y, at)
    order = np.lexsort((np.arange(n), np.nan_to_num(-x if descending else x, nan=0, posinf=1e30, neginf=-1e30), np.isnan(x)))
    same = lambda a, b: (a == b) | np.isnan(a) & np.isnan(b)
    return Run(call, [("sort", same(y.numpy(), x[order]), np.ones(n, bool), 0), ("argsort", at.numpy(), order.astype(np.int32), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
RESHAPES = [((781,), (11, 71)), ((11, 71), (781,)), ((6, 10), (60,)), ((60,), (6, 10)), ((3, 64), (192,)), ((192,), (3, 64)), ((5, 7, 9), (9, 35)),
            ((9, 35), (5, 7, 9)), ((12, 20), (20, 12)), ((3, 60), (3, 6, 10)), ((2, 3, 5, 7), (7, 5, 3, 2)), ((1, 15, 1), (3, 1, 5)),
            ((3, 5, 4), (15, 4)), ((15, 2, 2), (3, 5, 4)), ((40, 3), (3, 40)), ((100,), (100, 1)), ((2, 2, 3, 5, 3), (180,))]
CASES = [
    both("reshapes", reshapes, [dict(shape=a, to=b, warps=w) for a, b in RESHAPES for w in (1, 4)] +
         [dict(shape=a, to=b, dtype=t) for a, b in RESHAPES[:4] for t in ("i8", "f16", "i64")]),
    both("reshaped_pointers", pointers, [dict(shape=a, to=b) for a, b in RESHAPES[:6]]),
    both("reshaped_indices", computed, [dict(shape=a, to=b) for a, b in RESHAPES]),
    both("ragged", named, grid(name=tuple(EXPRESSIONS), shape=SHAPES) +
         grid(name=("flip", "interleave", "cat", "sort", "gather"), shape=((12, 20), (7,)), dtype=("i8", "f16", "i64"), warps=(1, 8))),
    both("ragged_permute", turned, grid(shape=((5, 7, 9), (3, 1, 20)), perm=((2, 1, 0), (1, 2, 0), (0, 2, 1)), warps=(1, 4))),
    both("ragged_parts", parts, [dict(shape=(781,), start=(13,), part=(500,), warps=4), dict(shape=(12, 20), start=(0, 7), part=(12, 13), warps=1),
                                 dict(shape=(12, 20), start=(5, 7), part=(6, 1), warps=4), dict(shape=(5, 7, 9), start=(1, 0, 3), part=(3, 7, 6), warps=2),
                                 dict(shape=(3,), start=(2,), part=(1,), warps=1)]),
    both("sorted_nans", sorted_nans, grid(n=(781, 12, 9, 64), descending=(False, True))),
]
