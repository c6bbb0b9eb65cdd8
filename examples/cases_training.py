"""The examples that training is made of: backward passes, recurrences, convolution, optimiser steps; against float64."""
import cases
from cases import Case, Run, grid, kernel, launch, poisoned
import numpy as np
import tilec


def attention_backward(dev, rng, heads, S, D=64, causal=False, own=64, queries=32, keys=32, deep=2, dtype="f16", **more):
    """dq, dk and dv from do, and from o and the logarithms of the rows' sums as the forward pass gives them; programs own so many rows, and go by
    so many queries or keys."""
    (q, Q), (k, K), (v, V), (do, G) = (cases.given(rng, (heads, S, D), dtype) for _ in range(4))
    Q, K, V, G = (a.astype(np.float64) for a in (Q, K, V, G))
    scale, near, wide = D ** -0.5, 4 * cases.ROUNDING[dtype], cases.WIDE[dtype]
    s = Q @ K.transpose(0, 2, 1) * scale
    if causal:
        s[:, ~np.tri(S, dtype=bool)] = -np.inf
    top = s.max(2, keepdims=True)
    lse = top + np.log(np.exp(s - top).sum(2, keepdims=True))
    p = np.exp(s - lse)
    stored = cases.NARROW[dtype]((p @ V).astype(np.float32))
    o = wide(stored)
    ds = p * (G @ V.transpose(0, 2, 1) - (G * o).sum(2, keepdims=True))
    d = {n: dev.array(a, dtype) for n, a in dict(q=q, k=k, v=v, do=do, o=stored).items()}
    delta, dq, dk, dv = poisoned(dev, (heads, S), "f32"), *(poisoned(dev, (heads, S, D), dtype) for _ in range(3))
    load = lambda name, **m: kernel(dev, "attention_backward.tile", name, T=dtype, D=D, **m)
    launch(load("attention_delta"), (tilec.cdiv(S, 64), heads), d["o"], d["do"], delta, heads, S)
    sides = (d["q"], d["k"], d["v"], d["do"], dev.array(lse[:, :, 0].astype(np.float32)), delta)
    more["CAUSAL"] = str(causal).lower()
    launch(load("attention_dq", BM=own, BN=keys, **more), (tilec.cdiv(S, own), heads), *sides, dq, heads, S, scale)
    call = launch(load("attention_dkdv", BM=queries, BN=own, STAGES=deep, **more), (tilec.cdiv(S, own), heads), *sides, dk, dv, heads, S, scale)
    return Run(call, [("delta", delta.numpy(), (G * o).sum(2), 1e-5), ("dv", wide(dv.numpy()), p.transpose(0, 2, 1) @ G, near),
                      ("dk", wide(dk.numpy()), ds.transpose(0, 2, 1) @ Q * scale, near), ("dq", wide(dq.numpy()), ds @ K * scale, near)], flops=8 * heads * S * S * D, dtype=dtype)


def attention_backward_wgmma(dev, rng, heads, S, D=64, keys=None, group=1, causal=False, dtype="f16", programs=None, **more):
    """The same in one pass; heads are those of k and v, `keys` how many rows these have."""
    keys, scale = keys or S, D ** -0.5
    (q, Q), (do, G) = (cases.given(rng, (heads * group, S, D), dtype) for _ in range(2))
    (k, K), (v, V) = (cases.given(rng, (heads, keys, D), dtype) for _ in range(2))
    Q, G, K, V = (a.astype(np.float64) for a in (Q, G, *(np.repeat(a, group, 0) for a in (K, V))))
    s = Q @ K.transpose(0, 2, 1) * scale
    if causal:
        s[:, ~np.tri(S, keys, dtype=bool)] = -np.inf
    top = s.max(2, keepdims=True)
    lse = top + np.log(np.exp(s - top).sum(2, keepdims=True))
    p = np.exp(s - lse)
    o = cases.NARROW[dtype]((p @ V).astype(np.float32))
    ds = p * (G @ V.transpose(0, 2, 1) - (G * cases.WIDE[dtype](o)).sum(2, keepdims=True))
    BM = 128 if D == 64 else 64
    blocks = tilec.cdiv(S, BM)
    d = {n: dev.array(a, dtype) for n, a in dict(q=q, k=k, v=v, do=do).items()}
    delta, lse2, sums = (poisoned(dev, shape, "f32") for shape in ((len(Q), blocks * BM), (len(Q), blocks * BM), (len(Q) * blocks * BM * D,)))
    dq, dk, dv = (poisoned(dev, shape, dtype) for shape in (Q.shape, (heads, keys, D), (heads, keys, D)))
    load = lambda name, **m: kernel(dev, "attention_backward_wgmma.tile", name, T=dtype, D=D, **m)
    launch(load("attention_rows", BM=BM), (blocks, len(Q)), dev.array(o, dtype), d["do"], dev.array(lse[:, :, 0].astype(np.float32)), delta, lse2, sums, len(Q), S)
    call = launch(load("attention_backward", CAUSAL=str(causal).lower(), **more), programs, d["q"], d["k"], d["v"], d["do"], lse2, delta, sums, dk, dv, scale,
                  free=bool(programs))
    launch(load("attention_dq"), (blocks, len(Q)), sums, dq, len(Q), S, scale)
    per_head = lambda a: a.reshape(heads, group, keys, D).sum(1)
    near, wide = 4 * cases.ROUNDING[dtype], cases.WIDE[dtype]
    return Run(call, [("dv", wide(dv.numpy()), per_head(p.transpose(0, 2, 1) @ G), near), ("dk", wide(dk.numpy()), per_head(ds.transpose(0, 2, 1) @ Q) * scale, near),
                      ("dq", wide(dq.numpy()), ds @ K * scale, near)], flops=10 * heads * group * S * keys * D // (2 if causal else 1), dtype=dtype)


def linear_attention(dev, rng, heads, T, values=64, DK=64, DV=64, delta=False, **more):
    q, k = (rng.standard_normal((heads, T, DK), np.float32) for _ in range(2))
    q, k = ((a / np.linalg.norm(a, axis=2, keepdims=True)).astype(np.float16) for a in (q, k))
    v = rng.standard_normal((heads, T, values), np.float32).astype(np.float16)
    g, beta = -rng.exponential(0.05, (heads, T)).astype(np.float32), rng.random((heads, T), np.float32)
    first = rng.standard_normal((heads, DK, values), np.float32)
    o, state = poisoned(dev, (heads, T, values), "f16"), dev.array(first)
    call = launch(kernel(dev, "linear_attention.tile", "linear_attention", DK=DK, DV=DV, DELTA=str(delta).lower(), **more),
                  (values // DV, heads), dev.array(q), dev.array(k), dev.array(v), dev.array(g), dev.array(beta), o, state, heads, values, T, DK ** -0.5)
    S, want = first.astype(np.float64), np.empty((heads, T, values))
    for t in range(T):
        S = S * np.exp(g[:, t].astype(np.float64))[:, None, None]
        kt = k[:, t, :, None].astype(np.float64)
        new = v[:, t].astype(np.float64)
        if delta:
            new = (new - (kt * S).sum(1)) * beta[:, t, None]
        S = S + kt * new[:, None]
        want[:, t] = (q[:, t, :, None].astype(np.float64) * S).sum(1) * DK ** -0.5
    return Run(call, [("o", o.numpy(), want, 2e-3), ("state", state.numpy(), S, 2e-3)], flops=8 * heads * T * DK * values)


def selective_scan(dev, rng, batch, channels, T, N=16, dtype="f32", **more):
    narrow, wide = cases.NARROW[dtype], cases.WIDE[dtype]
    x, dt, z = (narrow(rng.standard_normal((batch, channels, T), np.float32)) for _ in range(3))
    b, c = (narrow(rng.standard_normal((batch, N, T), np.float32)) for _ in range(2))
    a, skip = -np.exp(rng.standard_normal((channels, N), np.float32)), rng.standard_normal(channels, np.float32)
    first = rng.standard_normal((batch, channels, N), np.float32)
    y, state = poisoned(dev, x.shape, dtype), dev.array(first)
    call = launch(kernel(dev, "selective_scan.tile", "selective_scan", E=dtype, N=N, **more), (channels, batch), *(dev.array(v, dtype) for v in (x, dt, z)),
                  dev.array(a), *(dev.array(v, dtype) for v in (b, c)), dev.array(skip), y, state, batch, channels, T)
    X, dt, Z, b, c = (wide(v).astype(np.float64) for v in (x, dt, z, b, c))
    step, h, want = np.log1p(np.exp(dt)), first.astype(np.float64), np.empty(x.shape)
    for t in range(T):
        h = np.exp(step[:, :, t, None] * a) * h + (step * X)[:, :, t, None] * b[:, None, :, t]
        want[:, :, t] = (h * c[:, None, :, t]).sum(2) + skip * X[:, :, t]
    near = 2e-6 if dtype == "f32" else 2 * cases.ROUNDING[dtype]
    return Run(call, [("y", wide(y.numpy()), want * Z / (1 + np.exp(-Z)), near), ("state", state.numpy(), h, 2e-6)], bytes=4 * x.nbytes)


def mamba2(dev, rng, batch, heads, groups, T, P=64, N=128, C=256, gate=True, dtype="bf16", **more):
    """The five launches of examples/mamba2.tile beside the recurrence, step by step."""
    narrow, wide = cases.NARROW[dtype], cases.WIDE[dtype]
    chunks, BM = tilec.cdiv(T, C), more.get("BM", 128)
    x, z = (narrow(rng.standard_normal((batch, T, heads, P), np.float32)) for _ in range(2))
    b, c = (narrow(rng.standard_normal((batch, T, groups, N), np.float32) / N ** 0.25) for _ in range(2))
    dt, bias = rng.standard_normal((batch, T, heads), np.float32), rng.standard_normal(heads, np.float32) - 3
    a, skip = -np.exp(rng.standard_normal(heads, np.float32)), rng.standard_normal(heads, np.float32)
    first = rng.standard_normal((batch, heads, P, N), np.float32)
    d = {n: dev.array(v, dtype) for n, v in dict(x=x, z=z, b=b, c=c).items()}
    steps, sums = (poisoned(dev, (batch, chunks, heads, C), "f32") for _ in range(2))
    scores, before = poisoned(dev, (batch, chunks, groups, C, C), dtype), poisoned(dev, (batch, chunks, heads, P, N), dtype)
    states, state, y = poisoned(dev, (batch, chunks, heads, P, N), "f32"), dev.array(first), poisoned(dev, x.shape, dtype)
    load = lambda name, **m: kernel(dev, "mamba2.tile", name, C=C, **m, **{n: v for n, v in more.items() if n in ("warps", "STAGES")})
    load16 = lambda name, **m: load(name, E=dtype, **m)
    launch(load("ssd_steps"), (chunks, tilec.cdiv(heads, 16), batch), dev.array(dt), dev.array(bias), dev.array(a), steps, sums, batch, T, heads)
    launch(load16("ssd_scores", N=N, BM=BM), ((C // BM) ** 2, chunks, batch * groups), d["b"], d["c"], scores, batch, T, groups)
    launch(load16("ssd_states", P=P, N=N, BK=min(64, C)), (heads, chunks, batch), d["x"], d["b"], steps, sums, states, batch, T, heads, groups)
    launch(load16("ssd_pass", SIZE=P * N), (tilec.cdiv(P * N, 1024), heads, batch), states, before, sums, state, batch, heads, chunks)
    call = launch(load16("ssd_outputs", P=P, N=N, BM=BM, BK=min(64, C)), (heads * (C // BM), chunks, batch), d["x"], d["c"], d["z"] if gate else None, scores, before,
                  steps, sums, dev.array(skip), y, batch, T, heads, groups)
    X, Z, B, K = (wide(v).astype(np.float64) for v in (x, z, b, c))
    step = np.log1p(np.exp((dt + bias).astype(np.float64)))
    S, want = first.astype(np.float64), np.empty(X.shape)
    B, K = (np.repeat(v, heads // groups, axis=2) for v in (B, K))
    for t in range(T):
        S = S * np.exp(step[:, t] * a)[:, :, None, None] + (step[:, t, :, None] * X[:, t])[..., None] * B[:, t, :, None, :]
        want[:, t] = (S @ K[:, t, :, :, None])[..., 0] + skip[:, None] * X[:, t]
    if gate:
        want *= Z / (1 + np.exp(-Z))
    near = 4 * cases.ROUNDING[dtype]
    return Run(call, [("y", wide(y.numpy()), want, near), ("state", state.numpy(), S, near)], flops=batch * T * heads * P * (2 * N + C), dtype=dtype)


def conv2d(dev, rng, n, h, w, ci, co, R=3, S=3, STRIDE=1, PAD=1, BM=128, BN=64, **more):
    p, q = (h + 2 * PAD - R) // STRIDE + 1, (w + 2 * PAD - S) // STRIDE + 1
    x, f = rng.standard_normal((n, h, w, ci), np.float32).astype(np.float16), rng.standard_normal((co, R, S, ci), np.float32).astype(np.float16)
    y = poisoned(dev, (n, p, q, co), "f16")
    k = kernel(dev, "conv2d.tile", "conv2d", R=R, S=S, STRIDE=STRIDE, PAD=PAD, BM=BM, BN=BN, **more)
    call = launch(k, (tilec.cdiv(n * p * q, BM), tilec.cdiv(co, BN)), dev.array(x), dev.array(f), y, n, h, w, ci, p, q, co)
    wide = np.pad(x.astype(np.float64), ((0, 0), (PAD, PAD), (PAD, PAD), (0, 0)))
    want = sum(wide[:, r:r + (p - 1) * STRIDE + 1:STRIDE, s:s + (q - 1) * STRIDE + 1:STRIDE] @ f[:, r, s].astype(np.float64).T for r in range(R) for s in range(S))
    return Run(call, [("y", y.numpy(), want, 5e-4)], flops=2 * n * p * q * co * R * S * ci)


def conv2d_window(dev, rng, n, h, w, ci, co, R=3, S=3, STRIDE=1, PAD=1, DILATION=1, BM=128, BN=64, between=0, **more):
    x, f = rng.standard_normal((n, h, w, ci), np.float32).astype(np.float16), rng.standard_normal((R * S, co, ci), np.float32).astype(np.float16)
    seen = cases.windows(x.astype(np.float64), R, S, STRIDE, PAD, DILATION).reshape(R * S, -1, ci)
    want = sum(tap @ weights.astype(np.float64).T for tap, weights in zip(seen, f))
    y = cases.rows_apart(dev, want, "f16", between, empty=True)
    k = kernel(dev, "conv2d.tile", "conv2d_window", R=R, S=S, STRIDE=STRIDE, PAD=PAD, DILATION=DILATION, BM=BM, BN=BN, **more)
    call = launch(k, (tilec.cdiv(len(want), BM), tilec.cdiv(co, BN)), cases.rows_apart(dev, x, "f16", between)[0], cases.rows_apart(dev, f, "f16", between)[0], y[0])
    return Run(call, [("y", y[1](), want, 5e-4), cases.untouched(y[1])], flops=2 * want.size * R * S * ci)


def adamw(dev, rng, n, steps=2, dtype="bf16", rate=1e-3, decay=0.01, b1=0.9, b2=0.99, eps=1e-8):
    """Means and squares as in float64. A weight is one of the two neighbours of what it should be, and on average neither above nor below."""
    w, old = cases.given(rng, n, "bf16")
    dw, m, v = dev.array(w, "bf16"), dev.array(np.zeros(n, np.float32)), dev.array(np.zeros(n, np.float32))
    k, mean, square, checks = kernel(dev, "adamw.tile", "adamw", T=dtype), np.zeros(n), np.zeros(n), []
    for t in range(1, steps + 1):
        g, grad = cases.given(rng, n, dtype)
        k.bind(tilec.cdiv(n, 1024), dw, dev.array(g, dtype), m, v, n, rate, decay, b1, b2, eps, 1 - b1 ** t, 1 - b2 ** t, t)()
        mean, square = b1 * mean + (1 - b1) * grad, b2 * square + (1 - b2) * grad ** 2
        want = old - rate * (mean / (1 - b1 ** t) / (np.sqrt(square / (1 - b2 ** t)) + eps) + decay * old)
        got = cases.WIDE["bf16"](dw.numpy())
        last = np.exp2(np.floor(np.log2(np.abs(want))) - 7)      # a bf16's last place
        off = (got - want) / last
        away = np.abs(got - want) > 1.001 * last + np.abs(old) * 2.0 ** -20       # where the step cancels a weight, f32 has few digits left
        checks += [("weights", np.array(np.count_nonzero(away)), np.array(0), 0), ("bias", 1 + np.array([off.mean()]), np.ones(1), 3 / np.sqrt(n))]
        old = got
    checks += [("mean", m.numpy(), mean, 1e-6), ("square", v.numpy(), square, 1e-6)]
    return Run(k.bind(tilec.cdiv(n, 1024), dw, dev.array(g, dtype), m, v, n, rate, decay, b1, b2, eps, 0.5, 0.5, 7), checks, bytes=22 * n)


def mandelbrot(dev, rng, w, h, limit):
    """Points whose orbit passes close to the circle may leave a step earlier or later than in float64."""
    left, top, size = -2.2, -1.2, 2.4 / h
    steps = poisoned(dev, (h, w), "i32")
    call = launch(kernel(dev, "mandelbrot.tile", "mandelbrot"), (tilec.cdiv(w, 64), tilec.cdiv(h, 16)), steps, w, h, left, top, size, limit)
    c = (np.float32(left) + np.arange(w, dtype=np.float32) * np.float32(size)).astype(np.float64) + 1j * (np.float32(top) + np.arange(h, dtype=np.float32)[:, None] * np.float32(size)).astype(np.float64)
    z, near, want = np.zeros(c.shape, complex), np.ones(c.shape, bool), np.zeros(c.shape, np.int32)
    for _ in range(limit):
        z = np.where(near, z * z + c, z)
        near &= np.abs(z) <= 2
        want += near
    return Run(call, [("steps", np.array([1 + np.mean(steps.numpy() != want)]), np.ones(1), 0.01)])


def signed_sums(v):
    """Rows of v times the matrix of signs, by sums and differences of halves."""
    half, n = 1, v.shape[-1]
    while half < n:
        pairs = v.reshape(len(v), -1, 2, half)
        v = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), 2)
        half *= 2
    return v.reshape(-1, n)


def hadamard(dev, rng, rows, N, dtype="f16", ROWS=4, mma=False, large=1, **more):
    """Of values up to `large`; on tensor cores in place, and rounded once on the way."""
    x, v = cases.given(rng, (rows, N), dtype, large)
    source = dev.array(x, dtype)
    y = source if mma else poisoned(dev, (rows, N), dtype)
    k = kernel(dev, "hadamard.tile", "hadamard_mma" if mma else "hadamard", T=dtype, N=N, ROWS=ROWS, **more)
    grid = tilec.cdiv(rows, ROWS * (max(256 // N, 1) if mma else 1))
    call = launch(k, grid, source, y, rows, N ** -0.5)
    if mma:                                 # what is called again reads x
        call = launch(k, grid, dev.array(x, dtype), poisoned(dev, (rows, N), dtype), rows, N ** -0.5)
    want = cases.blockwise(lambda v: signed_sums(v) * N ** -0.5, v)
    return Run(call, [("y", cases.WIDE[dtype](y.numpy()), want, cases.ROUNDING[dtype] * (2 if mma else 1))], bytes=2 * x.nbytes)


def hadamard_quantise(dev, rng, rows, N, dtype="f16", to="f8e4m3", ROWS=4, **more):
    x, v = cases.given(rng, (rows, N), dtype, 3)
    q, s = poisoned(dev, (rows, N), to), poisoned(dev, (rows,), "f32")
    k = kernel(dev, "hadamard.tile", "hadamard_quantise", T=dtype, TO=to, N=N, ROWS=ROWS, **more)
    call = launch(k, tilec.cdiv(rows, ROWS * max(256 // N, 1)), dev.array(x, dtype), q, s, rows, N ** -0.5)
    want = cases.blockwise(lambda v: signed_sums(v) * N ** -0.5, v)
    most = np.abs(want).max(1)
    value = cases.fp8_values(q.numpy(), to) if to in cases.FP8 else q.numpy().astype(np.float64)
    step = {"f8e4m3": 0.0625, "f8e5m2": 0.125, "i8": 0.0}[to]
    near = 0.004 + (0.002 if dtype == "f16" else 0.005)           # half a step of i8, and what is rounded on the way, up to ten standard deviations
    wrong = np.abs(value * s.numpy()[:, None] - want) > np.abs(want) * (step + 0.01) + most[:, None] * near
    return Run(call, [("scales", s.numpy(), most / (cases.FP8[to][2] if to in cases.FP8 else 127), 0.01), ("q", np.array(wrong.sum()), np.array(0), 0)], bytes=x.nbytes * 3 // 2)


CASES = [
    Case("attention_backward", attention_backward, [dict(heads=1, S=100, causal=True)] + grid(heads=(2,), S=(64, 77), causal=(False, True)) +
         [dict(heads=2, S=260, D=128, own=128, queries=64, keys=128, deep=3, causal=True, warps=8), dict(heads=1, S=77, D=64, own=128, queries=64, keys=128, deep=3, warps=8, dtype="bf16")],
         [dict(heads=4, S=2048)] + grid(heads=(3,), S=(1000, 1024), D=(64, 128), causal=(False, True)) +
         grid(heads=(3,), S=(1000, 1023), D=(64, 128), causal=(False, True), own=(128,), queries=(64,), keys=(128,), deep=(3,), warps=(8,))),
    Case("attention_backward_wgmma", attention_backward_wgmma, [dict(heads=1, S=200, causal=True, programs=2), dict(heads=1, S=100, D=128, dtype="bf16", programs=1)],
         grid(heads=(2,), S=(256, 300), D=(64, 128), causal=(False, True), programs=(3,)) +
         [dict(heads=2, S=130, keys=200, D=128, group=2), dict(heads=2, S=520, D=128, group=4, causal=True, dtype="bf16"), dict(heads=4, S=2048, D=128), dict(heads=4, S=2048, causal=True)]),
    Case("linear_attention", linear_attention, grid(heads=(2,), T=(64, 150), delta=(False, True)) + [dict(heads=1, T=70, DK=32, DV=32, C=32, values=64, delta=True, warps=4)],
         grid(heads=(32,), T=(2000,), values=(64, 128), delta=(False, True))),
    Case("selective_scan", selective_scan, [dict(batch=2, channels=3, T=100), dict(batch=1, channels=2, T=64, N=8), dict(batch=1, channels=2, T=1), dict(batch=2, channels=3, T=100, dtype="bf16"), dict(batch=1, channels=2, T=70, dtype="f16", BLOCK=32, warps=1)],
         [dict(batch=2, channels=1024, T=2000), dict(batch=1, channels=3, T=4097, N=8), dict(batch=2, channels=1024, T=2000, dtype="bf16")]),
    Case("mamba2", mamba2, [dict(batch=2, heads=4, groups=2, T=150, P=16, N=32, C=64, BM=32), dict(batch=1, heads=2, groups=1, T=64, P=32, N=16, C=64, BM=64, gate=False, dtype="f16"),
                            dict(batch=1, heads=3, groups=3, T=1, P=16, N=16, C=32, BM=32)],
         [dict(batch=2, heads=24, groups=1, T=2048), dict(batch=1, heads=8, groups=2, T=1000, dtype="f16"), dict(batch=2, heads=8, groups=8, T=777, C=128, gate=False)]),
    Case("conv2d", conv2d, [dict(n=2, h=9, w=7, ci=40, co=24, BM=64, BN=32), dict(n=1, h=10, w=11, ci=32, co=64, R=1, S=1, PAD=0, BM=64), dict(n=3, h=8, w=9, ci=9, co=10, R=5, S=3, STRIDE=2, PAD=2, BM=64, BN=16)],
         [dict(n=32, h=56, w=56, ci=64, co=64), dict(n=3, h=17, w=19, ci=33, co=50, R=5, S=3, STRIDE=2, PAD=2)]),
    Case("conv2d_window", conv2d_window, [dict(n=2, h=9, w=7, ci=40, co=24, BM=64, BN=32), dict(n=2, h=10, w=11, ci=72, co=72, BM=128, BN=64), dict(n=2, h=12, w=13, ci=72, co=136, BM=256, BN=128, WARPS=8), dict(n=1, h=10, w=11, ci=32, co=64, R=1, S=1, PAD=0, BM=64), dict(n=3, h=8, w=9, ci=16, co=8, R=5, S=3, STRIDE=2, PAD=2, BM=64, BN=16), dict(n=2, h=9, w=12, ci=24, co=16, DILATION=2, PAD=2, BM=64, BN=16, BK=32, between=3, STAGES=2), dict(n=1, h=7, w=7, ci=9, co=12, BM=64, BN=16, between=1)],
         [dict(n=32, h=56, w=56, ci=64, co=64), dict(n=32, h=28, w=28, ci=256, co=256, BN=128, WARPS=8, BM=256), dict(n=8, h=57, w=55, ci=136, co=72, STRIDE=2, PAD=3, DILATION=2)]),
    Case("adamw", adamw, [dict(n=5000), dict(n=1000, dtype="f32")], [dict(n=1 << 24), dict(n=100001, dtype="f16")]),
    Case("mandelbrot", mandelbrot, [dict(w=100, h=40, limit=30)], [dict(w=1920, h=1080, limit=200)]),
    Case("hadamard", hadamard, grid(rows=(7,), N=(64, 1024), dtype=("f16", "f32")) + [dict(rows=3, N=2, dtype="bf16")], [dict(rows=8192, N=4096)] + grid(rows=(777,), N=(128, 1024), dtype=("f16", "bf16", "f32"))),
    Case("hadamard_mma", lambda dev, rng, **s: hadamard(dev, rng, mma=True, **s), [dict(rows=7, N=1024)] + grid(rows=(5,), N=(32, 64, 128, 256, 512, 2048), dtype=("f16", "bf16")) +
         [dict(rows=3, N=4096, ROWS=2, warps=2), dict(rows=3, N=32768, ROWS=1, warps=8), dict(rows=3, N=8192, ROWS=1, PIECES=8, STAGES=2, dtype="bf16"), dict(rows=2, N=16384, ROWS=1, warps=4, large=1000)],
         [dict(rows=16384, N=4096, ROWS=2, warps=2)] + grid(rows=(777,), N=(32, 128, 256, 1024), dtype=("f16", "bf16")) +
         grid(rows=(777,), N=(8192, 16384, 32768), ROWS=(1,), warps=(4, 8), STAGES=(1, 2), dtype=("f16", "bf16"), large=(1, 1000))),
    Case("hadamard_quantise", hadamard_quantise, grid(rows=(9,), N=(64, 1024), to=("f8e4m3", "f8e5m2", "i8")) + [dict(rows=2, N=8192, ROWS=1, dtype="bf16")],
         grid(rows=(777,), N=(128, 1024, 4096), to=("f8e4m3", "i8"), dtype=("f16", "bf16")) + grid(rows=(100,), N=(32768,), ROWS=(1,), warps=(8,), dtype=("f16", "bf16"))),
]
