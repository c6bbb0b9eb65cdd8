"""Convolutions along one dimension against float64."""
import cases
from cases import Case, Run, given, grid, kernel, launch, poisoned
import numpy as np
import tilec

silu = lambda v: v / (1 + np.exp(-v))


def conv1d_causal(dev, rng, lengths, C, W=4, dtype="bf16", state=True, bias=True, act="silu", ROWS=32, BLOCK=128, **defines):
    """Sequences of different lengths, twice: what the first launch leaves is where the second goes on."""
    first, tokens, n = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), sum(lengths), len(lengths)
    w, wv = given(rng, (C, W), dtype)
    b, bv = given(rng, C, dtype)
    before, history = given(rng, (n, W - 1, C), dtype)
    if not state:
        before, history = None, np.zeros((n, W - 1, C))
    more = {} if act == "silu" else dict(ACT=act)
    kern = kernel(dev, "conv1d.tile", "conv1d_causal", T=dtype, W=W, ROWS=ROWS, BLOCK=BLOCK, **more, **defines)
    grid_of = (n, max(tilec.cdiv(max(lengths), ROWS), 1), tilec.cdiv(C, BLOCK))
    checks, at = [], dev.array(before, dtype) if state else None
    for turn in range(2):
        x, v = given(rng, (tokens, C), dtype)
        y, after = poisoned(dev, (tokens, C), dtype), poisoned(dev, (n, W - 1, C), dtype)
        call = launch(kern, grid_of, dev.array(x, dtype), dev.array(w, dtype), y, dev.array(first), n, max(lengths), C, dev.array(b, dtype) if bias else None, at, after)
        want = np.empty((tokens, C))
        for s in range(n):
            all_rows = np.concatenate([history[s], v[first[s]:first[s + 1]]])
            rows = len(all_rows) - (W - 1)
            want[first[s]:first[s + 1]] = sum(all_rows[j:j + rows] * wv[:, j] for j in range(W)) + (bv if bias else 0)
            history[s] = all_rows[rows:]
        checks += [(f"y {turn}", cases.WIDE[dtype](y.numpy()), silu(want) if act == "silu" else want, cases.ROUNDING[dtype]),
                   (f"next {turn}", cases.WIDE[dtype](after.numpy()), history.copy(), 0)]
        at = after
    return Run(call, checks, bytes=2 * x.nbytes)


def conv1d(dev, rng, n, length, ci, co, R=3, stride=1, pad=1, dilation=1, dtype="f16", gelu=False, **defines):
    (x, v), (w, wv) = given(rng, (n, length, ci), dtype), given(rng, (R, co, ci), dtype)
    places = (length + 2 * pad - dilation * (R - 1) - 1) // stride + 1
    y = poisoned(dev, (n * places, co), dtype)
    kern = kernel(dev, "conv1d.tile", "conv1d", T=dtype, R=R, STRIDE=stride, PAD=pad, DILATION=dilation, **(dict(ACT="gelu_tanh") if gelu else {}), **defines)
    call = launch(kern, (tilec.cdiv(n * places, defines.get("BM", 128)), tilec.cdiv(co, defines.get("BN", 128))), dev.array(x, dtype), dev.array(w, dtype), y)
    padded = np.pad(v, ((0, 0), (pad, pad), (0, 0)))
    want = sum(padded[:, r * dilation:r * dilation + stride * (places - 1) + 1:stride] @ wv[r].T for r in range(R)).reshape(n * places, co)
    if gelu:
        want = 0.5 * want * (1 + np.tanh(np.sqrt(2 / np.pi) * (want + 0.044715 * want**3)))
    return Run(call, [("y", cases.WIDE[dtype](y.numpy()), want, 2 * cases.ROUNDING[dtype])], flops=2 * n * places * co * ci * R, dtype=dtype)


CASES = [
    Case("conv1d_causal", conv1d_causal, [dict(lengths=(50, 1, 0, 33), C=100)] + grid(lengths=((2, 70),), C=(40,), W=(2, 3, 4), state=(False, True), bias=(False, True), ROWS=(16,), BLOCK=(64,)) +
         [dict(lengths=(1,) * 5, C=64, ROWS=1, BLOCK=64, dtype="f16"), dict(lengths=(20,), C=33, dtype="f32", act="(s) -> s")],
         [dict(lengths=(2048, 1, 1000, 0, 4096), C=5120), dict(lengths=(1,) * 64, C=5120, ROWS=1, BLOCK=512)]),
    Case("conv1d", conv1d, [dict(n=2, length=100, ci=24, co=40, BM=64, BN=32, BK=32, WARPS=4), dict(n=3, length=37, ci=16, co=64, R=5, pad=2, stride=2, BM=64, BN=64, WARPS=4, gelu=True),
                            dict(n=1, length=70, ci=40, co=72, R=3, pad=2, dilation=2, BM=64, BN=64, STAGES=4, dtype="bf16", WARPS=4)],
         [dict(n=8, length=3000, ci=80, co=384, gelu=True), dict(n=8, length=3000, ci=384, co=384, stride=2), dict(n=4, length=1000, ci=512, co=512, R=7, pad=6, dilation=2, dtype="bf16")]),
]
