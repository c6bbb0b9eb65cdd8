"""Linear layers whose sums leave through a function: biases, residuals, activations, scales, statistics, gates, 8 bits; against float64."""
import math

import cases
from cases import Case, Run, given, grid, kernel, launch, poisoned
import numpy as np
import tilec

_erf = np.vectorize(math.erf)
gelu = lambda v: v * 0.5 * (1 + _erf(v / math.sqrt(2)))
silu = lambda v: v / (1 + np.exp(-v))

# What F is, what the kernel is given beside the factors, and what that comes to.
FUNCTIONS = {
    "none": ("(s, e) -> s", (), lambda v, c: v),
    "bias": ("(s, e) -> s + bias(e)", ("bias",), lambda v, c: v + c["bias"]),
    "gelu": ("(s, e) -> gelu(s + bias(e))", ("bias",), lambda v, c: gelu(v + c["bias"])),
    "residual": ("(s, e) -> silu(s) + residual(e)", ("residual",), lambda v, c: silu(v) + c["residual"]),
    "all": ("(s, e) -> gelu(s * factor(e) + bias(e)) + residual(e)", ("bias", "residual", "factor"),
            lambda v, c: gelu(v * c["factor"] + c["bias"]) + c["residual"]),
    "scaled": ("(s, e) -> s * factor(e)", ("factor",), lambda v, c: v * c["factor"]),
}


def linear(dev, rng, m, n, k, F="none", batches=1, one_w=False, dtype="f16", to=None, squares=False, stay=None, **defines):
    to = to or ("bf16" if dtype in cases.FP8 else dtype)
    text, has, f = FUNCTIONS[F]
    dev = cases.few(dev) if stay else dev
    (x, xv), (w, wv) = cases.factor(rng, (batches, m, k), dtype), cases.factor(rng, (1 if one_w else batches, n, k), dtype)
    company, narrow = {}, to if to not in cases.FP8 else "f32"
    bias, residual = given(rng, n, narrow), given(rng, (batches, m, n), narrow)
    company = dict(bias=bias[1], residual=residual[1], factor=np.float64(np.float32(0.125)))
    part = [dev.array(a, t) if name in has else None for name, a, t in (("bias", bias[0], narrow), ("residual", residual[0], narrow),
                                                                       ("factor", np.array([0.125], np.float32), "f32"))]
    sums = dev.array(np.zeros((batches, m), np.float32)) if squares else None
    y = poisoned(dev, (batches, m, n), to)
    kern = kernel(dev, "matmul_fused.tile", "linear", T=dtype, TO=to, V=narrow, F=text, **({} if stay is None else dict(STAY=stay)), **defines)
    grid_of = (tilec.cdiv(m, defines.get("BM", 128)) * tilec.cdiv(n, defines.get("BN", 128)), batches)
    call = launch(kern, grid_of, dev.array(x, dtype), dev.array(w, dtype), y, m, n, k, batches, m * k, 0 if one_w else n * k, m * n, *part, sums)
    want = f(xv @ wv.transpose(0, 2, 1), company)
    if to in cases.FP8:
        back = cases.fp8_values(y.numpy(), to).astype(np.float64)
        checks = [("y", back, np.clip(want, -cases.FP8[to][2], cases.FP8[to][2]), 0.05)]
    else:
        checks = [("y", cases.WIDE[to](y.numpy()), want, 1e-3 if to == "f32" else 2 * cases.ROUNDING[to] + (1e-3 if dtype in cases.FP8 else 0))]
    if squares:
        checks.append(("squares", sums.numpy(), (want * want).sum(2), 2e-3))
    return Run(call, checks, flops=2 * batches * m * n * k, dtype=dtype, found=dict(squares=(sums, 0)) if squares else {})


def linear_gated(dev, rng, m, n, k, dtype="f16", gate="silu", **defines):
    (x, xv), (w, wv), (up, uv) = (given(rng, shape, dtype, 0.5) for shape in ((m, k), (n, k), (n, k)))
    y = poisoned(dev, (m, n), dtype)
    kern = kernel(dev, "matmul_fused.tile", "linear_gated", T=dtype, GATE=gate, **defines)
    call = launch(kern, tilec.cdiv(m, defines.get("BM", 128)) * tilec.cdiv(n, defines.get("BN", 64)), *(dev.array(a, dtype) for a in (x, w, up)), y, m, n, k)
    want = {"silu": silu, "gelu": gelu}[gate](xv @ wv.T) * (xv @ uv.T)
    return Run(call, [("y", cases.WIDE[dtype](y.numpy()), want, 2 * cases.ROUNDING[dtype])], flops=4 * m * n * k, dtype=dtype)


def linear_quantised(dev, rng, m, n, k, dtype="bf16", to="f8e4m3", bias=True, **defines):
    """Numbers times scales are near the sums, as near as 8 bits can be; scales are those of what was stored."""
    (x, xv), (w, wv), (b, bv) = (given(rng, shape, dtype) for shape in ((m, k), (n, k), (n,)))
    groups = tilec.cdiv(n, 128)
    q, scales = poisoned(dev, (m, n), to), poisoned(dev, (groups, m), "f32")
    kern = kernel(dev, "matmul_fused.tile", "linear_quantised", T=dtype, TO=to, F="(s, e) -> s + bias(e)" if bias else "(s, e) -> s", **defines)
    call = launch(kern, tilec.cdiv(m, defines.get("BM", 128)) * groups, dev.array(x, dtype), dev.array(w, dtype), q, scales, m, n, k, dev.array(b, dtype) if bias else None)
    want = xv @ wv.T + (bv if bias else 0)
    s = scales.numpy().T.astype(np.float64)
    most = np.stack([np.abs(want[:, g * 128:(g + 1) * 128]).max(1) for g in range(groups)], 1)
    numbers = cases.fp8_values(q.numpy(), to).astype(np.float64) if to in cases.FP8 else q.numpy().astype(np.float64)
    back = numbers * np.repeat(s, 128, 1)[:, :n]
    return Run(call, [("scales", s, most / (cases.FP8[to][2] if to in cases.FP8 else 127), 1e-4), ("numbers", back, want, 0.04)], flops=2 * m * n * k, dtype=dtype)


CASES = [
    Case("linear", linear, [dict(m=256, n=256, k=128, F="all")] + grid(m=(100,), n=(72,), k=(56,), F=tuple(FUNCTIONS), BM=(64,), BN=(64,), BK=(32,)) +
         [dict(m=70, n=40, k=72, batches=3, F="all", dtype="bf16", BM=64, BN=32, BK=32), dict(m=70, n=40, k=72, batches=2, one_w=True, F="bias", BM=64, BN=32),
          dict(m=100, n=80, k=64, F="residual", squares=True, BM=64, BN=64), dict(m=130, n=96, k=160, dtype="f8e4m3", F="scaled", BK=64, BM=64, BN=64),
          dict(m=130, n=96, k=64, to="f8e4m3", F="scaled", BM=64, BN=64), dict(m=300, n=280, k=136, F="all", stay=1, STAGES=4), dict(m=50, n=33, k=17, F="gelu", dtype="f32", BM=64, BN=32)],
         [dict(m=4096, n=4096, k=4096, F="all")] + grid(m=(1000,), n=(1016,), k=(520,), F=tuple(FUNCTIONS), dtype=("f16", "bf16")) +
         [dict(m=512, n=384, k=256, batches=12, F="all", dtype="bf16"), dict(m=1000, n=512, k=1024, dtype="f8e4m3", F="scaled", BK=128), dict(m=2048, n=2048, k=1024, F="residual", squares=True, BN=256)]),
    Case("linear_gated", linear_gated, [dict(m=128, n=128, k=128)] + grid(m=(100,), n=(72,), k=(56,), dtype=("f16", "bf16"), gate=("silu", "gelu"), BM=(64,), BN=(64,), BK=(32,)),
         [dict(m=4096, n=4096, k=2048, BN=128, BK=64), dict(m=1000, n=1016, k=520, dtype="bf16", gate="gelu")]),
    Case("linear_quantised", linear_quantised, [dict(m=128, n=256, k=128), dict(m=100, n=200, k=72, BM=64, BK=32, POW2="false", to="i8"), dict(m=40, n=136, k=64, BM=64, bias=False, dtype="f16")],
         [dict(m=4096, n=4096, k=2048), dict(m=1000, n=1016, k=520, dtype="f16", bias=False)]),
]
