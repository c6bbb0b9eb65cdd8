"""Attention in 8-bit floats, against float64."""
import cases
from cases import Case, Run, fp8_bits, fp8_values, grid, kernel, launch, poisoned, quant_scale, quantised
import numpy as np
import tilec

FILE, T = "attention_fp8.tile", "f8e4m3"


def with_scales(dev, x, per_head, rotate=None):
    """x[heads, S, D] of f16 as bytes with a scale for each head, or for all, as the kernels make them: two arrays of the device."""
    heads, S, D = x.shape
    n = tilec.cdiv(S, 32 if D > 128 else 64)
    how = dict(X="f16", D=D, PER_HEAD=str(per_head).lower(), ROTATE=str(bool(rotate)).lower())
    most = dev.array(np.zeros(heads if per_head else 1, np.uint32))
    q, scales = poisoned(dev, x.shape, T), poisoned(dev, most.shape, "f32")
    x = dev.array(x)
    launch(kernel(dev, FILE, "largest_of_heads", **how), (n, heads), x, most, heads, S)
    launch(kernel(dev, FILE, "quantise_heads", **how), (n, heads), x, most, q, scales, heads, S)
    return q, scales


def worth(q, scales):
    return fp8_values(q.numpy(), T).astype(np.float64) * scales.numpy().astype(np.float64)[:, None, None]


def hidden(m, n, causal):
    return np.arange(m)[:, None] + n - m >= np.arange(n) if causal else np.ones((m, n), bool)


def reference(q, k, v, sees, scale):
    """One head: its output, and the logarithms of its sums of exponentials, -inf where a query sees nothing."""
    s = np.where(sees, q.astype(np.float64) @ k.astype(np.float64).T * scale, -np.inf)
    most = np.maximum(s.max(1, keepdims=True), -1e30)
    e = np.exp(s - most)
    total = e.sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        return e / np.maximum(total, 1e-300) @ v.astype(np.float64), np.where(total > 0, np.log(total) + most, -np.inf)[:, 0]


def attend(dev, q, k, v, scales, m, n, TO="bf16", programs=None, turned=False, **defines):
    """What the kernel gives for bytes q, k and v: o, lse, and the launch. turned: it is given v as transpose_v leaves it."""
    (heads, _, D), DV = q.shape, v.shape[2]
    if turned:
        rows, v = v, poisoned(dev, (v.shape[0], DV, tilec.cdiv(n, 16) * 16), T)
        launch(kernel(dev, FILE, "transpose_v", D=DV), (tilec.cdiv(n, 128), v.shape[0]), rows, v, v.shape[0], n)
    o, lse = poisoned(dev, (heads, m, DV), TO), poisoned(dev, (heads, m), "f32")
    kern = kernel(dev, FILE, "attention_fp8", D=D, DV=DV, TO=TO, TURNED=str(turned).lower(), **defines)
    call = launch(kern, programs, q, k, v, o, lse, scales, D**-0.5, free=bool(programs))
    return cases.WIDE[TO](o.numpy()), lse.numpy(), call


def attention_fp8(dev, rng, heads, m, n=None, kv_heads=None, D=128, DV=None, causal=False, per_head=True, offset=0.0, **more):
    """m queries and n keys. offset: what is added to v, as what sums lose shows where all add up."""
    n, kv_heads, DV = n or m, kv_heads or heads, DV or D
    narrow = lambda *shape, add=0.0: (rng.standard_normal(shape, np.float32) * rng.uniform(0.5, 2, (shape[0], 1, 1)) + add).astype(np.float16)
    x = narrow(heads, m, D), narrow(kv_heads, n, D), narrow(kv_heads, n, DV, add=offset)
    (q, sq), (k, sk), (v, sv) = (with_scales(dev, t, per_head) for t in x)
    most = [cases.finite_max(t, (1, 2) if per_head else None) for t in x]
    checks = []
    for name, t, bytes_, s, top in zip("qkv", x, (q, k, v), (sq, sk, sv), most):
        want = quant_scale(np.reshape(top, -1), T)
        checks += [(f"scale of {name}", s.numpy(), want, 0), (name, bytes_.numpy(), quantised(t, want[:, None, None], T), 0)]
    got, lse, call = attend(dev, q, k, v, (sq, sk, sv), m, n, CAUSAL=str(causal).lower(), PER_HEAD=str(per_head).lower(), **more)
    each = heads // kv_heads
    qv, kv, vv = worth(q, sq), worth(k, sk), worth(v, sv)
    found = [reference(qv[h], kv[h // each], vv[h // each], hidden(m, n, causal), D**-0.5) for h in range(heads)]
    want, sums = (np.stack(part) for part in zip(*found))
    some = np.isfinite(sums)
    checks += [("o", got, want, 0.035 if offset == 0 else 0.01), ("sums of nothing", np.isneginf(lse[~some]), np.ones((~some).sum(), bool), 0),
               ("lse", lse[some], sums[some], 2e-4)]
    return Run(call, checks, flops=2 * heads * (D + DV) * int(hidden(m, n, causal).sum()), dtype=T)


def attention_fp8_outliers(dev, rng, heads, S, D=64, **more):
    """Queries and keys with a few numbers that are much larger than the others: beside what attention gives before they are quantised the error is
    smaller if they are rotated."""
    spiky = lambda: (rng.standard_normal((heads, S, D)) + 10 * rng.standard_normal((heads, S, D)) * (rng.random((heads, S, D)) < 0.01)).astype(np.float16)
    q, k = spiky(), spiky()
    v = rng.standard_normal((heads, S, D)).astype(np.float16)
    want = np.stack([reference(*x, hidden(S, S, False), D**-0.5)[0] for x in zip(q, k, v)])
    off = {}                                               # by whether they are rotated
    for rotate in (False, True):
        (q8, sq), (k8, sk), (v8, sv) = with_scales(dev, q, False, rotate), with_scales(dev, k, False, rotate), with_scales(dev, v, False)
        got, _, call = attend(dev, q8, k8, v8, (sq, sk, sv), S, S, PER_HEAD="false", **more)
        off[rotate] = np.mean(np.abs(got - want))          # the largest error is one number's chance
    return Run(call, [("rotated", got, want, 0.1), ("smaller", np.array(off[True] < 0.9 * off[False]), np.array(True), 0)], flops=4 * heads * S * S * D, dtype=T)


CASES = [
    Case("attention_fp8", attention_fp8, [dict(heads=2, m=200, D=64), dict(heads=4, kv_heads=2, m=100, n=333, causal=True, programs=3), dict(heads=1, m=300, D=256, causal=True),
                                          dict(heads=2, m=140, n=70, D=64, causal=True, per_head=False), dict(heads=1, m=70, n=300, D=256, TO="f16"), dict(heads=3, m=300, PROMOTE="false", programs=2),
                                          dict(heads=1, m=500, D=64, CONSUMERS=3, PROMOTE="false", turned=True, programs=1), dict(heads=1, m=64, n=2000, D=64, offset=2.0, STAGES=3)] +
         grid(heads=(3,), m=(150,), n=(301,), D=(64, 128), causal=(True,), programs=(2,), turned=(True,)) + [dict(heads=1, m=70, n=100, D=256, turned=True), dict(heads=1, m=100, D=256, PROMOTE="false"), dict(heads=2, m=100, n=130, D=192, DV=128, causal=True),
          dict(heads=2, m=60, n=90, D=96, DV=64, programs=1), dict(heads=1, m=64, n=1000, D=64, DV=256, offset=2.0)],
         [dict(heads=16, m=4096)] + grid(heads=(3,), m=(1000,), n=(1000, 2111), D=(64, 128, 256), causal=(False, True), turned=(False, True)) +
         [dict(heads=4, kv_heads=2, m=1000, causal=True, per_head=False), dict(heads=1, m=128, n=20000, offset=2.0), dict(heads=3, m=1000, D=64, CONSUMERS=3, PROMOTE="false", turned=True),
          dict(heads=2, m=1000, D=256, PROMOTE="false"), dict(heads=3, m=500, n=1100, D=192, DV=128, causal=True), dict(heads=2, m=128, n=9000, D=256, offset=2.0)]),
    Case("attention_fp8_outliers", attention_fp8_outliers, [dict(heads=1, S=256, D=128)], grid(heads=(4,), S=(1000,), D=(64, 128, 256))),
]
