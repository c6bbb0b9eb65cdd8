"""Kernels beyond the examples: what the language promises, on a device. Same form as examples/cases.py."""
import cases
from cases import FP8, Case, Run, fp8_values, poisoned, launch, grid
import numpy as np
import tilec
import inline
import language
import nn
import dots as products
import ragged
import maths
import bits
import folds
import order
import quantise
import schedules
import sparse
import cut
import derivatives
import persistent
import llama


def source(dev, text, name=None, **defines):
    return dev.program(text=text, name="case.tile").kernel(name, **defines)


def elementwise(dev, rng, n, extent, warps):
    """Extents that are not powers of two, several warps counts, one tile."""
    text = """kernel f(x: *f32, y: *f32, n: i32, const E = 1) maths(exact) {
      let i = program_id(0) * E + arange(0, E);
      let v = load(x + i, mask=i < n, other=1.0);
      store(y + i, where(v > 0.0, sqrt(v), v * 2.0 - 1.0), mask=i < n);
    }"""
    x, y = rng.standard_normal(n, np.float32), poisoned(dev, n, "f32")
    call = launch(source(dev, text, E=extent, warps=warps), tilec.cdiv(n, extent), dev.array(x), y, n)
    with np.errstate(invalid="ignore"):
        return Run(call, [("y", y.numpy(), np.where(x > 0, np.sqrt(x), x * np.float32(2) - np.float32(1)), 0)])


def shared_divisors(dev, rng, by):
    """Quotients by a number that all elements share, rounded to 16 bits: also by those whose reciprocals are not normal numbers."""
    text = """kernel f(x: *f32, y: *f16, by: f32) warps(1) {
      let i = arange(0, 64);
      store(y + i, load(x + i) / by);
    }"""
    want = np.array([0, -0.0, 1, -1, 0.5, 1.5, 3, 0.3333] * 8, np.float32)
    x, y = want * np.float32(by), poisoned(dev, 64, "f16")
    call = launch(source(dev, text), 1, dev.array(x), y, float(by))
    return Run(call, [("y", y.numpy(), (x.astype(np.float64) / np.float64(np.float32(by))).astype(np.float16), 1e-3)])


def divided_in_loop(dev, rng, by):
    """Integers divided by an argument in a loop, where its reciprocal comes from in front of it: next to multiples of it and to the ends of the type."""
    text = """kernel f(x: *i32, q: *i32, r: *i32, n: i32, by: i32) warps(1) {
      for t in range(0, n) {
        let i = t * 128 + arange(0, 128);
        let v = load(x + i);
        store(q + i, v / by);
        store(r + i, v % by);
      }
    }"""
    at = rng.integers(0, (1 << 31) // abs(by) + 1, 60, dtype=np.int64) * abs(by)
    near = np.concatenate([at - 1, at, at + 1, [0, 1, 2, 1 << 31, (1 << 31) - 1, (1 << 31) - 2], rng.integers(0, 1 << 31, 6)])
    x = np.concatenate([near, -near, np.zeros(128, np.int64)])[:512].astype(np.int32)          # 2^31 becomes the least number
    wide, d = x.astype(np.int64), abs(by)
    quotient = np.abs(wide) // d * np.sign(wide) * (1 if by > 0 else -1)
    q, r = poisoned(dev, 512, "i32"), poisoned(dev, 512, "i32")
    call = launch(source(dev, text), 1, dev.array(x), q, r, 4, by)
    return Run(call, [("quotients", q.numpy(), quotient.astype(np.int32), 0), ("rest", r.numpy(), (wide - quotient * by).astype(np.int32), 0)])


def row_reductions(dev, rng, rows, cols, warps):
    """sum, max and argmin along both axes of a ragged tile in one program."""
    text = """kernel f(x: *f32, s: *f32, m: *f32, a: *i32, const R = 1, const C = 1) {
      let r = arange(0, R);
      let c = arange(0, C);
      let v = load(x + r[:, None] * C + c[None, :]);
      store(s + r, sum(v, axis=1));
      store(m + c, max(v, axis=0));
      store(a + r, argmin(v, axis=1));
    }"""
    x = rng.standard_normal((rows, cols), np.float32)
    s, m, a = poisoned(dev, rows, "f32"), poisoned(dev, cols, "f32"), poisoned(dev, rows, "i32")
    call = launch(source(dev, text, R=rows, C=cols, warps=warps), 1, dev.array(x), s, m, a)
    want = x.astype(np.float64).sum(1)
    off = 1e-6 * np.abs(x).sum(1).max() / np.abs(want).max()            # what is added up may be far more than what is left
    return Run(call, [("sum", s.numpy(), want, off), ("max", m.numpy(), x.max(0), 0), ("argmin", a.numpy(), x.argmin(1).astype(np.int32), 0)])


def atomics(dev, rng, n, bins):
    """Histogram by atomic add, extremes by atomic max and min, and a lock-free maximum by compare and swap."""
    text = """kernel f(x: *i32, hist: *i32, top: *i32, low: *i32, n: i32, bins: i32, const BLOCK = 256) {
      let i = program_id(0) * BLOCK + arange(0, BLOCK);
      let v = load(x + i, mask=i < n, other=0);
      atomic_add(hist + v % bins, 1, mask=i < n);
      atomic_max(top, max(v, axis=0));
      atomic_min(low, min(where(i < n, v, 2147483647), axis=0));
    }"""
    x = rng.integers(0, 1 << 20, n, dtype=np.int32)
    h, top, low = dev.array(np.zeros(bins, np.int32)), dev.array(np.array([-5], np.int32)), dev.array(np.array([1 << 30], np.int32))
    call = launch(source(dev, text), tilec.cdiv(n, 256), dev.array(x), h, top, low, n, bins)
    return Run(call, [("hist", h.numpy(), np.bincount(x % bins, minlength=bins).astype(np.int32), 0),
                      ("max", top.numpy(), np.array([x.max()], np.int32), 0), ("min", low.numpy(), np.array([x.min()], np.int32), 0)])


def control_flow(dev, rng, n):
    """while with a data-dependent count, if with results, nested for, all carried values uniform."""
    text = """kernel collatz(x: *i32, steps: *i32, n: i32) {
      let p = program_id(0);
      var v = load(x + p);
      var count = 0;
      while (v != 1) {
        if (v % 2 == 0) { v = v / 2; } else { v = 3 * v + 1; }
        count += 1;
      }
      var extra = 0;
      for i in range(0, p % 3) { for j in range(i, 3) { extra += j; } }
      store(steps + p, count + extra);
    }"""
    x = rng.integers(1, 1000, n, dtype=np.int32)

    def steps(v):
        c = 0
        while v != 1:
            v, c = (v // 2 if v % 2 == 0 else 3 * v + 1), c + 1
        return c
    want = np.array([steps(int(v)) + sum(j for i in range(p % 3) for j in range(i, 3)) for p, v in enumerate(x)], np.int32)
    out = poisoned(dev, n, "i32")
    call = launch(source(dev, text), n, dev.array(x), out, n)
    return Run(call, [("steps", out.numpy(), want, 0)])


def casts(dev, rng, n):
    """Round trips through the narrow float types, against numpy's f16 and against bit arithmetic for bf16."""
    text = """kernel f(x: *f32, h: *f16, b: *bf16, i: *i32, u: *u8, const N = 256) {
      let k = program_id(0) * N + arange(0, N);
      let v = load(x + k);
      store(h + k, f16(v));
      store(b + k, bf16(v));
      store(i + k, i32(v));
      store(u + k, u8(i32(v)));
    }"""
    x = (rng.standard_normal(n, np.float32) * np.exp2(rng.integers(-20, 14, n)).astype(np.float32)).astype(np.float32)
    h, b, i, u = poisoned(dev, n, "f16"), poisoned(dev, n, "bf16"), poisoned(dev, n, "i32"), poisoned(dev, n, "u8")
    call = launch(source(dev, text), n // 256, dev.array(x), h, b, i, u)
    return Run(call, [("f16", h.numpy().view(np.uint16), x.astype(np.float16).view(np.uint16), 0), ("bf16", b.numpy(), cases.bf16_bits(x), 0),
                      ("i32", i.numpy(), x.astype(np.int32), 0), ("u8", u.numpy(), x.astype(np.int32).astype(np.uint8), 0)])


def shapes(dev, rng, m, n, warps):
    """permute, reshape and broadcasting of one tile through registers, shuffles or shared memory."""
    text = """kernel f(x: *f32, y: *f32, const M = 16, const N = 32) {
      let v = load(x + arange(0, M)[:, None] * N + arange(0, N)[None, :]);
      let t = trans(v) + arange(0, N)[:, None];
      let r = reshape(t, [M * N]);
      store(y + arange(0, M * N), r);
    }"""
    x = rng.standard_normal((m, n), np.float32)
    y = poisoned(dev, m * n, "f32")
    call = launch(source(dev, text, M=m, N=n, warps=warps), 1, dev.array(x), y)
    want = (x.T + np.arange(n, dtype=np.float32)[:, None]).ravel()
    return Run(call, [("y", y.numpy(), want, 0)])


def dots(dev, rng, m, n, k, dtype, warps):
    """One dot of one tile, every instruction family and the fallback without tensor cores."""
    text = """kernel f(a: *T, b: *T, c: *f32, type T = f16, const M = 16, const N = 8, const K = 16) {
      let x = load(a + arange(0, M)[:, None] * K + arange(0, K)[None, :]);
      let y = load(b + arange(0, K)[:, None] * N + arange(0, N)[None, :]);
      store(c + arange(0, M)[:, None] * N + arange(0, N)[None, :], dot(x, y));
    }"""
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    narrow = {"f16": lambda v: v.astype(np.float16), "bf16": cases.bf16_bits, "f32": lambda v: v}[dtype]
    value = {"f16": lambda v: v.astype(np.float64), "bf16": lambda v: cases.bf16_values(v).astype(np.float64), "f32": lambda v: v.astype(np.float64)}[dtype]
    a, b = narrow(a), narrow(b)
    c = poisoned(dev, (m, n), "f32")
    call = launch(source(dev, text, T=dtype, M=m, N=n, K=k, warps=warps), 1, dev.array(a, dtype), dev.array(b, dtype), c)
    return Run(call, [("c", c.numpy(), value(a) @ value(b), 1e-3 if dtype == "f32" else 1e-5)])


def dots_8bit(dev, rng, dtype, stages, transposed, k=160):
    """Products of bytes: exact in i32; 8-bit floats small enough that f32 sums are exact too, but for those by warpgroups."""
    text = """kernel f(a: *T, b: *T, c: *TA, K: i32, sbk: i32, sbn: i32, type T = i8, type TA = i32, const STAGES = 1) warps(4) {
      let m = arange(0, 64);
      let n = arange(0, 32);
      let k = arange(0, 64);
      var acc = zeros([64, 32], TA);
      for step in range(0, cdiv(K, 64), stages=STAGES) {
        let left = K - step * 64;
        let x = load(a + m[:, None] * K + (step * 64 + k)[None, :], mask=(k < left)[None, :], other=T(0));
        let y = load(b + (step * 64 + k)[:, None] * sbk + n[None, :] * sbn, mask=(k < left)[:, None], other=T(0));
        acc = dot(x, y, acc);
      }
      store(c + m[:, None] * 32 + n[None, :], acc);
    }"""
    def bytes_of(shape):
        if dtype in ("i8", "u8"):
            return rng.integers(*((-128, 128) if dtype == "i8" else (0, 256)), shape).astype(np.int8 if dtype == "i8" else np.uint8)
        lo, hi = (40, 72) if dtype == "f8e4m3" else (52, 68)   # magnitudes around 1
        return (rng.integers(lo, hi, shape) | rng.integers(0, 2, shape) << 7).astype(np.uint8)
    a, b = bytes_of((64, k)), bytes_of((k, 32))
    value = lambda v: fp8_values(v, dtype).astype(np.float64) if dtype in FP8 else v.astype(int)
    acc = "i32" if dtype in ("i8", "u8") else "f32"
    c = poisoned(dev, (64, 32), acc)
    stored = np.ascontiguousarray(b.T) if transposed else b
    strides = (1, k) if transposed else (32, 1)
    call = launch(source(dev, text, T=dtype, TA=acc, STAGES=stages), 1, dev.array(a, dtype), dev.array(stored, dtype), c, k, *strides)
    return Run(call, [("c", c.numpy(), value(a) @ value(b), 0 if acc == "i32" else 1e-6 if stages == 1 else products.FP8_SUMS)])


def stages(dev, rng, k, stages, dtype="f16", BK=32):
    """The pipelined matmul with every depth and loops shorter than it, K ragged or not, in steps that are powers of two or not."""
    return cases.matmul(dev, rng, 64, 64, k, dtype, BM=64, BN=64, BK=BK, STAGES=stages)


def row_pipeline(dev, rng, rows, n, stages):
    """Loads that feed no dot, in a loop with stages: softmax over rows, one program for several rows."""
    text = """kernel f(x: *f32, y: *f32, rows: i32, n: i32, const BLOCK = 128, const STAGES = 2) warps(2) {
      let col = arange(0, BLOCK);
      for r in range(program_id(0), rows, num_programs(0), stages=STAGES) {
        let v = load(x + r * n + col, mask=col < n);
        let e = where(col < n, exp(v - max(v, axis=0)), 0.0);
        store(y + r * n + col, e / sum(e, axis=0), mask=col < n);
      }
    }"""
    x, y = rng.standard_normal((rows, n), np.float32), poisoned(dev, (rows, n), "f32")
    call = launch(source(dev, text, BLOCK=1 << (n - 1).bit_length(), STAGES=stages), 3, dev.array(x), y, rows, n)
    return Run(call, [("y", y.numpy(), cases.softmax_reference(x), 1e-6)])


def lookup_stages(dev, rng, n, stages, chain):
    """Loads in a loop with stages that cannot be copied: 2-byte pieces, indices (looked up twice over), a mask with another value;
    beside those that can, among them what the indices point to."""
    text = """kernel f(x: *f32, index: *i32, h: *f16, y: *f32, n: i32, rows: i32, const CHAIN = 1, const STAGES = 2) warps(1) {
      let i = arange(0, 64);
      var total = zeros([64], f32);
      var at = index;
      for k in range(0, n, stages=STAGES) {
        var j = load(at + i, mask=i < 60, other=3);
        for c in static_range(CHAIN) { j = load(index + j * 64 + i); }
        let plain = load(x + k * 64 + i, mask=i < 62, other=1.5);
        total += load(x + j * 64 + i) + f32(load(h + k * 64 + i * 3 % 64)) * plain;
        at += 64;
      }
      store(y + i, total);
    }"""
    rows = max(n, 4)
    x, h = rng.standard_normal((rows, 64), np.float32), rng.standard_normal((rows, 64), np.float32).astype(np.float16)
    index, y = rng.integers(0, rows, (rows, 64), np.int32), poisoned(dev, 64, "f32")
    call = launch(source(dev, text, CHAIN=chain, STAGES=stages), 1, dev.array(x), dev.array(index), dev.array(h), y, n, rows)
    i, want = np.arange(64), np.zeros(64)
    for k in range(n):
        j = np.where(i < 60, index[k], 3)
        for _ in range(chain):
            j = index[j, i]
        want = want + x[j, i] + h[k, i * 3 % 64].astype(float) * np.where(i < 62, x[k], 1.5)
    return Run(call, [("y", y.numpy(), want, 1e-5)])


def nested_stages(dev, rng, n, inner):
    """A pipelined loop inside another, both with carried values; the inner one may not run at all."""
    text = """kernel f(x: *f32, y: *f32, n: i32, inner: i32) warps(1) {
      let i = arange(0, 64);
      var total = zeros([64], f32);
      for a in range(0, n, stages=3) {
        let u = load(x + a * 64 + i);
        var part = u;
        for b in range(0, inner * (a % 2), stages=2) { part += load(x + b * 64 + i) * f32(b + 1); }
        total = total * 0.5 + part;
      }
      store(y + i, total);
    }"""
    x, y = rng.standard_normal((max(n, inner, 1), 64), np.float32), poisoned(dev, 64, "f32")
    call = launch(source(dev, text), 1, dev.array(x), y, n, inner)
    total = np.zeros(64)
    for a in range(n):
        total = total * 0.5 + x[a] + sum(x[b].astype(np.float64) * (b + 1) for b in range(inner * (a % 2)))
    return Run(call, [("y", y.numpy(), total, 1e-5)])


both = lambda name, run, sizes: Case(name, run, sizes, sizes)
CASES = [
    both("elementwise", elementwise, [dict(n=1000, extent=781, warps=4), dict(n=5000, extent=96, warps=1), dict(n=4096, extent=1024, warps=8), dict(n=3, extent=3, warps=2)]),
    both("divided_in_loop", divided_in_loop, [dict(by=v) for v in (-1, 2, 3, -7, 641, 65536, -1000003, 1 << 30, (1 << 31) - 1, 1 - (1 << 31), -(1 << 31))]),
    both("shared_divisors", shared_divisors, [dict(by=v) for v in (3.0, 1.1e38, 1e38, 1.2e-38, 1e-39, -3e-45)]),
    both("row_reductions", row_reductions, grid(rows=(1, 7, 16), cols=(5, 64, 100), warps=(1, 4))),
    both("atomics", atomics, [dict(n=10000, bins=37), dict(n=100, bins=1)]),
    both("control_flow", control_flow, [dict(n=64)]),
    both("casts", casts, [dict(n=4096)]),
    both("shapes", shapes, grid(m=(16, 64), n=(32, 8), warps=(1, 4))),
    both("stages", stages, grid(k=(16, 32, 48, 64, 100, 512), stages=(1, 2, 3, 4)) + grid(k=(64, 100), stages=(3,), dtype=("bf16", "f32")) +
         grid(k=(96, 200), stages=(1, 3), BK=(48, 96))),
    both("row_pipeline", row_pipeline, grid(rows=(1, 2, 10), n=(128, 100), stages=(2, 3))),
    both("lookup_stages", lookup_stages, grid(n=(0, 1, 2, 7), stages=(2, 4), chain=(0, 1, 2))),
    both("nested_stages", nested_stages, grid(n=(0, 1, 5), inner=(0, 1, 4))),
    both("dots_8bit", dots_8bit, grid(dtype=("i8", "u8", "f8e4m3", "f8e5m2"), stages=(1, 3), transposed=(False, True))),
    both("dots", dots, grid(m=(16, 64), n=(16, 32), k=(16, 32), dtype=("f16", "bf16", "f32"), warps=(1, 4)) +
         grid(m=(16, 48), n=(16, 24), k=(48, 96, 112), dtype=("f16", "f32"), warps=(1, 4))),
] + inline.CASES + language.CASES + nn.CASES + products.CASES + sparse.CASES + ragged.CASES + maths.CASES + schedules.CASES + quantise.CASES + order.CASES + bits.CASES + folds.CASES + cut.CASES + derivatives.CASES + persistent.CASES + llama.CASES
