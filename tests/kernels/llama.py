"""Products of many tokens as examples/llama makes them, by weights of every form: widened first, or unpacked on the way (product_pairs). Against float64."""
import cases
from cases import Case, Run, grid, kernel, launch, poisoned
import numpy as np
import tilec

FILE, PAIRS_FILE, LAYERS_FILE = "llama/kernels.tile", "llama/warpgroups.tile", "llama/layers.tile"
PAIRS = {"u4": "u8", "i4": "u8", "i8": "u16"}
flag = lambda b: str(b).lower()


def grouped(rng, n, k, W, GROUP):
    """Words of n rows, factors of their groups, least numbers or None, and the weights: of one rounding, to f16."""
    bits = int(W[1:])
    w = rng.integers(0, 1 << 32, (n, k * bits // 32), dtype=np.uint32)
    s = ((rng.random((n, k // GROUP)) + 0.5) / 16).astype(np.float16)
    z = (rng.standard_normal(s.shape) / 4).astype(np.float16) if W == "u4" else None
    spread = lambda x: np.repeat(x.astype(np.float64), GROUP, axis=1)
    return w, s, z, (cases.unpacked(w, W) * spread(s) + (0 if z is None else spread(z))).astype(np.float16)


def widen(dev, rng, n, k, W="u4", GROUP=32):
    w, s, z, values = grouped(rng, n, k, W, GROUP)
    wide = poisoned(dev, (n, k), "f16")
    call = launch(kernel(dev, FILE, "widen_grouped", W=W, GROUP=GROUP, MIN=flag(z is not None)), None, dev.array(w), dev.array(s),
                  dev.array(s if z is None else z), wide, n, k)
    return Run(call, [("wide", wide.numpy(), values, 0)], bytes=w.nbytes + s.nbytes + 2 * n * k)


def widen_f8(dev, rng, n, k, blocks=False):
    w = cases.fp8_bits(rng.standard_normal((n, k), np.float32), "f8e4m3")
    values, wide = cases.fp8_values(w, "f8e4m3").astype(np.float32), poisoned(dev, (n, k), "f16")
    if blocks:
        s = rng.random((tilec.cdiv(n, 8), tilec.cdiv(k, 128)), np.float32) + np.float32(0.5)
        values *= s.repeat(8, 0)[:n].repeat(128, 1)[:, :k]    # in f32, as the kernel does: that is rounded, and then to f16
        call = launch(kernel(dev, FILE, "widen_blocks"), None, dev.array(w, "f8e4m3"), dev.array(s), wide, n, k)
    else:
        call = launch(kernel(dev, FILE, "widen_dense"), None, dev.array(w, "f8e4m3"), wide, n, k)
    return Run(call, [("wide", wide.numpy(), values.astype(np.float16), 0)], bytes=w.nbytes + 2 * n * k)


def gates(sums):
    up = sums.shape[1] // 2
    return np.clip(sums[:, :up] / (1 + np.exp(-sums[:, :up])) * sums[:, up:], -65504, 65504)


def product(dev, rng, m, n, k, W="u4", GROUP=32, gated=False, add=False, stride=0, **defines):
    """W: f16, u4, i8, i4. gated: n rows of gates and n that they are for. stride: of y, more than n."""
    rows, stride = 2 * n if gated else n, n if gated else stride or n
    h = (rng.standard_normal((m, k)) / np.sqrt(k)).astype(np.float16)
    before = rng.standard_normal((m, stride), np.float32)
    y, a = dev.array(before), poisoned(dev, (m, n), "f16")
    more = dict(ADD=flag(add), GATED=flag(gated), **defines)
    if W == "f16":
        values = rng.standard_normal((rows, k)).astype(np.float16)
        call = launch(kernel(dev, FILE, "product_many", **more), None, dev.array(h), dev.array(values[:n]), dev.array(values[n:]) if gated else None, None,
                      None if gated else y, a if gated else None, m, n, k, stride)
    else:
        w, s, z, values = grouped(rng, rows, k, W, GROUP)
        pairs = w.view(np.dtype(tilec.DTYPES[PAIRS[W]]))
        factors = [x.view(np.uint64) for x in (s, s if z is None else z)]
        more |= dict(W=W, P=PAIRS[W], GROUP=GROUP, MIN=flag(z is not None))
        halves = lambda x: [dev.array(x[:n]), dev.array(x[n:]) if gated else None]
        call = launch(kernel(dev, PAIRS_FILE, "product_pairs", **more), None, dev.array(h), *halves(pairs), *halves(factors[0]), *halves(factors[1]),
                      None if gated else y, a if gated else None, m, n, k // 128, stride)
    sums = h.astype(np.float64) @ values.astype(np.float64).T
    if gated:
        return Run(call, [("a", a.numpy(), gates(sums), 2.0**-10)], flops=2 * m * rows * k)
    want = before.astype(np.float64)
    want[:, :n] = want[:, :n] + sums if add else sums
    # Tensor cores cut what they add to a sum in f32: that is off by as much more as there are terms.
    return Run(call, [("y", y.numpy(), want, 1e-5 * max(1, k / 4096))], flops=2 * m * n * k)


def rounded(x):
    return x.astype(np.float16).astype(np.float64)


def layers_one(dev, rng, layers, D, F, heads, kv_heads, d, start, W="f16", splits=4, PAGE=16, programs=None, **defines):
    """A token through all layers, in one launch. W: f16, f8e4m3, u4 or i8 in groups of 32."""
    rows = (heads + 2 * kv_heads) * d
    pages = start // PAGE + 2
    shapes = {"qkv": (rows, D), "o": (D, heads * d), "gates": (2 * F, D), "down": (D, F)}
    w, s, m, values = {}, {}, {}, {}
    more = dict(HEAD=d, PAGE=PAGE, **defines)
    for name, (n, k) in shapes.items():
        if W in ("u4", "i8"):
            w[name], s[name], z, values[name] = grouped(rng, layers * n, k, W, 32)
            m[name] = None if z is None else dev.array(z)
            values[name] = values[name].astype(np.float64)
            s[name], w[name] = dev.array(s[name]), dev.array(w[name])
            more |= dict(W="u32", Q=W, S="f16", GROUP=32, MIN=flag(z is not None))
        else:
            wide = rng.standard_normal((layers * n, k), np.float32)
            bits = wide.astype(np.float16) if W == "f16" else cases.fp8_bits(wide, W)
            values[name] = (bits if W == "f16" else cases.fp8_values(bits, W)).astype(np.float64)
            w[name], m[name], s[name] = dev.array(bits) if W == "f16" else dev.array(bits, W), None, None
            if W != "f16":
                by = (rng.random(layers * n) + 0.5).astype(np.float32)
                s[name], values[name] = dev.array(by), values[name] * by[:, None]
            more |= dict(W=W)
        values[name] = values[name].reshape(layers, n, k)
    # Norms bring products to the same size, whatever that of the weights is: gains are small.
    sizes = {name: np.sqrt((v**2).mean() * v.shape[2]) for name, v in values.items()}
    gains = [((rng.random((layers, D)) + 0.5) / sizes[of]).astype(np.float32) for of in ("qkv", "gates")]
    x = (rng.standard_normal(D) * 64).astype(np.float32)
    cache = [(rng.standard_normal((layers, pages, PAGE, kv_heads, d))).astype(np.float16) for _ in range(2)]
    angles = rng.random((pages * PAGE, d // 2)) * 6
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    table = rng.permutation(pages).astype(np.int32)
    y, count, caches = dev.array(x), dev.array(np.zeros(1, np.int32)), [dev.array(c) for c in cache]
    ended = dev.array(np.zeros(kv_heads, np.int32))
    by = [dev.array(gain) for gain in gains]
    # Rows of the table: [weights, scales, least numbers] of each matrix, norms, the cache. All layers' are in one piece here.
    all_of = [x for name in shapes for x in (w[name], s[name], m[name])] + by + caches
    lies = lambda x, layer: x.data_ptr() + x.nbytes // layers * layer if x is not None else 0
    places = np.array([[lies(x, layer) for x in all_of] for layer in range(layers)], np.int64)
    call = launch(kernel(dev, LAYERS_FILE, "layers_one", **more), programs, y, poisoned(dev, (rows,), "f32"), poisoned(dev, (heads * d,), "f16"), poisoned(dev, (F,), "f16"),
                  dev.array(places), dev.array(cos), dev.array(sin), dev.array(np.array([start], np.int32)), dev.array(table), poisoned(dev, (heads, splits, d), "f32"),
                  poisoned(dev, (heads, splits), "f32"), ended, count, layers, D, F, heads, kv_heads, d, d**-0.5, 1, d // 2, splits, 1e-5,
                  free=programs is not None)
    call.keep = all_of                                   # the kernel knows their addresses alone
    x = x.astype(np.float64)
    place = table[np.arange(start + 1) // PAGE], np.arange(start + 1) % PAGE
    norm = lambda gain: rounded(x / np.sqrt((x**2).mean() + 1e-5) * gain)
    for layer in range(layers):
        qkv = (values["qkv"][layer] @ norm(gains[0][layer])).reshape(-1, d)
        c, s_ = np.tile(cos[start], 2), np.tile(sin[start], 2)
        turned = qkv * c + np.concatenate([-qkv[:, d // 2:], qkv[:, :d // 2]], axis=1) * s_
        q = rounded(turned[:heads])
        for to, what in zip(cache, (turned[heads:heads + kv_heads], qkv[heads + kv_heads:])):
            to[layer][place[0][-1], place[1][-1]] = what.astype(np.float16)
        keys, vals = (of[layer][place].astype(np.float64) for of in cache)
        score = np.einsum("hd,thd->ht", q, np.repeat(keys, heads // kv_heads, axis=1)) * d**-0.5
        p = np.exp(score - score.max(axis=1, keepdims=True))
        o = rounded(np.einsum("ht,thd->hd", p / p.sum(axis=1, keepdims=True), np.repeat(vals, heads // kv_heads, axis=1)))
        x = x + values["o"][layer] @ o.reshape(-1)
        x = x + values["down"][layer] @ rounded(gates((values["gates"][layer] @ norm(gains[1][layer]))[None])[0])
    return Run(call, [("x", y.numpy(), x, 2e-3), ("count", count.numpy(), np.zeros(1), 0)] +
               [(name, got.numpy().astype(np.float64), want.astype(np.float64), 2e-3) for name, got, want in zip(("keys", "values"), caches, cache)])


FORMS = (dict(W="u4"), dict(W="i8"), dict(W="i8", GROUP=16))
of_forms = lambda *sizes, forms=FORMS: [dict(size, **form) for size in sizes for form in forms]
LARGE = (dict(m=512, n=4096, k=4096, add=True), dict(m=77, n=14336, k=4096, gated=True))
CASES = [
    Case("llama_widen", widen, of_forms(dict(n=5, k=96), dict(n=40, k=256)), of_forms(dict(n=28672, k=4096), dict(n=999, k=4128))),
    Case("llama_widen_f8", widen_f8, grid(n=(5, 24), k=(96, 1040), blocks=(False, True)), grid(n=(4096,), k=(14336,), blocks=(False, True))),
    Case("llama_product_many", product, [dict(m=70, n=136, k=96, W="f16"), dict(m=140, n=40, k=160, W="f16", add=True, stride=48), dict(m=66, n=72, k=64, W="f16", gated=True)],
         of_forms(*LARGE, forms=(dict(W="f16"),))),
    Case("llama_layers_one", layers_one, of_forms(dict(layers=2, D=256, F=512, heads=4, kv_heads=2, d=64, start=37, programs=3), forms=(dict(W="f16"), dict(W="f8e4m3"), dict(W="u4"), dict(W="i8"))) +
         [dict(layers=1, D=256, F=256, heads=4, kv_heads=1, d=64, start=3, W="u4")],                  # a program for each multiprocessor: all wait for all
         of_forms(dict(layers=2, D=2048, F=5632, heads=16, kv_heads=4, d=128, start=521, splits=16), forms=(dict(W="f16"), dict(W="f8e4m3"), dict(W="u4")))),
    Case("llama_product_pairs", product, of_forms(dict(m=70, n=136, k=256), dict(m=140, n=40, k=768, add=True, stride=48), dict(m=66, n=72, k=512, gated=True)) + [dict(m=70, n=72, k=256, W="i4")] +
         of_forms(dict(m=300, n=136, k=512, BM=256), dict(m=70, n=72, k=256, add=True, BM=256), dict(m=70, n=136, k=256, BM=64), dict(m=66, n=72, k=256, gated=True, BM=64)),
         of_forms(*LARGE) + of_forms(dict(m=300, n=4104, k=14336, stride=4112), dict(m=1000, n=4096, k=4096, BM=256))),
]
