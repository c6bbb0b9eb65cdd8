"""Sorting of every type: keys, places, the first few, in tiles of one and two dimensions. Same form as examples/cases.py."""
from cases import FP8, Case, Run, bf16_bits, bf16_values, fp8_values, grid, launch, poisoned
import numpy as np


def source(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


ROWS = """
kernel rows(x: *T, y: *T, at: *i32, best: *T, places: *i32, few: *T, const M = 4, const N = 8, const K = 2, const AXIS = 1, const DOWN = false, type T = f32) {
  let i = arange(0, M)[:, None] * N + arange(0, N)[None, :];
  let a = load(x + i);
  store(y + i, sort(a, AXIS, descending=DOWN));
  store(at + i, argsort(a, AXIS, descending=DOWN));
  let (v, w) = topk(a, K, AXIS, descending=DOWN);
  let k = arange(0, extent(v, 0))[:, None] * extent(v, 1) + arange(0, extent(v, 1))[None, :];
  store(best + k, v);
  store(places + k, w);
  store(few + k, topk(a, K, AXIS, descending=DOWN, indices=false));
}
kernel line(x: *T, best: *T, places: *i32, few: *T, const N = 8, const K = 2, const DOWN = false, type T = f32) {
  let a = load(x + arange(0, N));
  let (v, w) = topk(a, K, descending=DOWN);
  store(best + arange(0, K), v);
  store(places + arange(0, K), w);
  store(few + arange(0, K), topk(a, K, descending=DOWN, indices=false));
}"""
CUBE = """
kernel cube(x: *T, y: *T, at: *i32, const A = 33, const B = 12, const C = 7, const AXIS = 0, type T = i64) {
  let i = (arange(0, A)[:, None, None] * B + arange(0, B)[None, :, None]) * C + arange(0, C)[None, None, :];
  let a = load(x + i);
  store(y + i, sort(a, AXIS));
  store(at + i, argsort(a, AXIS));
}"""
INTS = {t: np.dtype(t.replace("i", "int").replace("u", "u") if t[0] == "i" else t.replace("u", "uint")).type for t in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")}


def numbers(rng, shape, dtype):
    """Bits as they are stored, and the values they stand for; all values of a type, the ends of its range, zeros of both signs, nans."""
    if dtype in INTS:
        lo, hi = np.iinfo(INTS[dtype]).min, np.iinfo(INTS[dtype]).max
        x = rng.integers(lo, hi, shape, dtype=INTS[dtype], endpoint=True)
        x[rng.random(shape) < 0.2] = lo
        x[rng.random(shape) < 0.2] = hi
        x[rng.random(shape) < 0.2] = 7
        return x, x
    if dtype in FP8:
        b = rng.integers(0, 256, shape).astype(np.uint8)
        b[(b & 0x7F) > (0x7E if dtype == "f8e4m3" else 0x7B)] = 0x7F
        return b, fp8_values(b, dtype).astype(np.float64)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 4, shape)
    for v in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0):
        x[rng.random(shape) < 0.08] = v
    if dtype == "bf16":
        b = bf16_bits(x.astype(np.float32))
        b[np.isnan(x)] = 0x7FFF
        return b, bf16_values(b).astype(np.float64)
    x = x.astype(dict(f16=np.float16, f32=np.float32, f64=np.float64)[dtype])
    return x, x


def ordered(v, axis, down):
    """A stable order with nans last."""
    if v.dtype.kind == "f":
        return np.lexsort((-v if down else v, np.isnan(v)), axis)
    return np.argsort(~v if down else v, axis, kind="stable")


def as_values(bits, dtype):
    """Comparable numbers: zeros of both signs alike, nans as a large number."""
    v = fp8_values(bits, dtype) if dtype in FP8 else bf16_values(bits) if dtype == "bf16" else bits
    return v if v.dtype.kind != "f" else np.nan_to_num(v.astype(np.float64), nan=1e300, posinf=1e299, neginf=-1e299) + 0.0


def sorted_rows(dev, rng, m, n, axis, k, dtype, down=False, warps=4):
    x, v = numbers(rng, (m, n), dtype)
    few = (k, n) if axis == 0 else (m, k)
    out = [poisoned(dev, s, t) for s, t in (((m, n), dtype), ((m, n), "i32"), (few, dtype), (few, "i32"), (few, dtype))]
    call = launch(source(dev, ROWS, "rows", M=m, N=n, K=k, AXIS=axis, DOWN=down, T=dtype, warps=warps), 1, dev.array(x, dtype), *out)
    at = ordered(v, axis, down)
    whole, first = np.take_along_axis(x, at, axis), at[:k] if axis == 0 else at[:, :k]
    want = [whole, at.astype(np.int32), np.take_along_axis(x, first, axis), first.astype(np.int32), np.take_along_axis(x, first, axis)]
    names = ("sorted", "argsort", "top", "places", "values of the top")
    return Run(call, [(w, o.numpy() if o.dtype == "i32" and w in ("argsort", "places") else as_values(o.numpy(), dtype),
                       z if w in ("argsort", "places") else as_values(z, dtype), 0) for w, o, z in zip(names, out, want)])


def top_of_line(dev, rng, n, k, dtype, down=True, warps=4):
    x, v = numbers(rng, n, dtype)
    out = [poisoned(dev, k, t) for t in (dtype, "i32", dtype)]
    call = launch(source(dev, ROWS, "line", N=n, K=k, DOWN=down, T=dtype, warps=warps), 1, dev.array(x, dtype), *out)
    first = ordered(v, 0, down)[:k]
    best = as_values(x[first], dtype)
    return Run(call, [("top", as_values(out[0].numpy(), dtype), best, 0), ("places", out[1].numpy(), first.astype(np.int32), 0), ("values", as_values(out[2].numpy(), dtype), best, 0)])


def sorted_cube(dev, rng, shape, axis, dtype, warps):
    """More keys than registers hold: they wait in shared memory."""
    x, v = numbers(rng, shape, dtype)
    y, places = poisoned(dev, shape, dtype), poisoned(dev, shape, "i32")
    call = launch(source(dev, CUBE, A=shape[0], B=shape[1], C=shape[2], AXIS=axis, T=dtype, warps=warps), 1, dev.array(x, dtype), y, places)
    at = ordered(v, axis % 3, False)
    return Run(call, [("sorted", as_values(y.numpy(), dtype), as_values(np.take_along_axis(x, at, axis), dtype), 0), ("argsort", places.numpy(), at.astype(np.int32), 0)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
ALL = tuple(INTS) + tuple(FP8) + ("f16", "bf16", "f32", "f64")
CASES = [
    both("sorted_rows", sorted_rows, grid(m=(3,), n=(64,), axis=(1,), k=(5,), dtype=ALL, down=(False, True)) +
         grid(m=(20,), n=(8,), axis=(0,), k=(3,), dtype=("f32", "i16", "u64"), down=(False, True), warps=(1, 8)) +
         grid(m=(1,), n=(1000, 2048), axis=(1,), k=(1, 40), dtype=("f32", "bf16"), warps=(1, 8)) +
         grid(m=(5,), n=(1024,), axis=(1,), k=(3,), dtype=("f32", "f64", "u16"), down=(False, True), warps=(1,)) +
         grid(m=(300,), n=(5, 16), axis=(0,), k=(3,), dtype=("f32", "i64"), warps=(1,))),
    both("sorted_cube", sorted_cube, grid(shape=((33, 12, 7),), axis=(0,), dtype=("i64", "f32"), warps=(1,)) +
         grid(shape=((6, 40, 10),), axis=(1, -2), dtype=("u64",), warps=(2,)) + grid(shape=((3, 3, 300),), axis=(2, -1), dtype=("f64", "f16"), warps=(1,)) +
         grid(shape=((1, 1, 5000),), axis=(2,), dtype=("f32", "u64"), warps=(1,)) + grid(shape=((1, 2000, 3),), axis=(1,), dtype=("f64",), warps=(1,)) +
         grid(shape=((16384, 1, 1),), axis=(0,), dtype=("u16",), warps=(2,)) +
         # more than half of the registers of as many warps, and what no buffer holds: groups of rows, ragged ones too, and a row by its groups
         grid(shape=((9, 1000, 3),), axis=(1,), dtype=("f32",), warps=(32,)) + grid(shape=((12, 1, 4096), (3, 13, 1024)), axis=(2,), dtype=("f32",), warps=(16,)) +
         grid(shape=((1, 1, 30000), (1, 1, 65536)), axis=(2,), dtype=("f32",), warps=(16,)) + grid(shape=((2, 16000, 1),), axis=(1,), dtype=("u32",), warps=(8,))),
    both("top_of_line", top_of_line, grid(n=(1, 33, 1024), k=(1,), dtype=("f32", "i8")) + grid(n=(300, 4096), k=(7, 64), dtype=("f32", "f16", "i64"), warps=(4,)) +
         # in pieces, of one buffer and of groups
         grid(n=(12000,), k=(1, 100, 3000), dtype=("f32", "bf16"), down=(False, True), warps=(1, 8)) + grid(n=(32768, 50000), k=(3, 2048), dtype=("f32",), warps=(16,)) +
         grid(n=(65536,), k=(1000,), dtype=("f16", "u8"), warps=(8,))),
]
