"""Attention of one new token over a paged cache, products with few rows: what decoding is made of; against float64."""
import cases
from cases import Case, Run, given, grid, kernel, launch, poisoned
import numpy as np
import tilec


def paged(rng, lengths, page):
    """A table of random pages of a cache, how many pages it has, and the slot of each token, one sequence behind the other."""
    most = max(1, tilec.cdiv(max(lengths), page))
    pages = len(lengths) * most + 3
    table = rng.permutation(pages)[: len(lengths) * most].reshape(len(lengths), most).astype(np.int32)
    slots = [table[i, np.arange(l) // page].astype(np.int64) * page + np.arange(l) % page for i, l in enumerate(lengths)]
    return table, pages, np.concatenate(slots)


def attention_paged(dev, rng, lengths, kv_heads=2, GROUP=4, D=64, PAGE=16, splits=4, CAP=0.0, dtype="f16", again=1, **defines):
    """Keys and values are written to random pages, in random order; the rest of the cache is nan. again: launches more, which find the counters
    as the one before left them."""
    n, (table, pages, slots), tokens = len(lengths), paged(rng, lengths, PAGE), sum(lengths)
    q, qv = given(rng, (n, kv_heads, GROUP, D), dtype, 2)
    k, v = (cases.NARROW[dtype](rng.standard_normal((tokens, kv_heads, D), np.float32)) for _ in "kv")
    order = rng.permutation(tokens + 2)                              # the last two have no place
    cache = [poisoned(dev, (pages, PAGE, kv_heads, D), dtype) for _ in "kv"]
    new = [dev.array(np.concatenate([x, x[:2]])[order], dtype) for x in (k, v)]
    launch(kernel(dev, "attention_paged.tile", "write_cache", T=dtype), tokens + 2, *new, *cache, dev.array(np.append(slots, [-1, -1])[order]), tokens + 2, kv_heads * D)
    heads = kv_heads * GROUP
    part, lse, out = poisoned(dev, (n, heads, splits, D), "f32"), poisoned(dev, (n, heads, splits), "f32"), poisoned(dev, (n, heads, D), dtype)
    arrived = dev.array(np.zeros((n, kv_heads), np.int32))
    kern = kernel(dev, "attention_paged.tile", "attend", T=dtype, GROUP=GROUP, D=D, PAGE=PAGE, CAP=CAP, **defines)
    call = launch(kern, (n, kv_heads, splits), dev.array(q, dtype), *cache, dev.array(table), dev.array(np.array(lengths, np.int32)), out, part, lse, arrived,
                  D**-0.5, n, splits, kv_heads, table.shape[1])
    for _ in range(again):
        out.fill_bytes(0xFF)
        call()
    starts = np.concatenate([[0], np.cumsum(lengths)])
    wide = cases.WIDE[dtype]
    want = np.stack([np.concatenate([cases.attention_reference(qv[i, h], wide(k[a:b, h]), wide(v[a:b, h]), True, D**-0.5, CAP) for h in range(kv_heads)])
                     for i, (a, b) in enumerate(zip(starts, starts[1:]))])
    return Run(call, [("out", wide(out.numpy()), want, 4 * cases.ROUNDING[dtype]), ("arrived", arrived.numpy(), np.zeros((n, kv_heads)), 0)], bytes=2 * k.nbytes)


def mla_decode(dev, rng, lengths, heads=16, HEADS=16, C=512, R=64, PAGE=64, splits=2, dtype="bf16", again=1, many=False, whole=False, **defines):
    """A latent and a rotary part of each token in random pages, the rest of the cache is nan; whole: but for the ends of pages, which are numbers."""
    n, (table, pages, slots), wide = len(lengths), paged(rng, lengths, PAGE), cases.WIDE[dtype]
    q, qv = given(rng, (n, heads, C + R), dtype, 2)
    tokens, scale = cases.NARROW[dtype](rng.standard_normal((sum(lengths), C + R), np.float32)), (C + R) ** -0.5
    cache = cases.NARROW[dtype](np.full((pages * PAGE, C + R), np.nan, np.float32))
    if whole:
        cache.reshape(pages, PAGE, -1)[np.asarray(slots) // PAGE] = cases.NARROW[dtype](np.float32(1000))
    cache[slots] = tokens
    part, lse, out = poisoned(dev, (n, heads, splits, C), "f32"), poisoned(dev, (n, heads, splits), "f32"), poisoned(dev, (n, heads, C), dtype)
    groups = tilec.cdiv(heads, HEADS)
    arrived = dev.array(np.zeros((n, groups), np.int32))
    kern = kernel(dev, "mla_decode.tile", "mla_decode_many" if many else "mla_decode", T=dtype, HEADS=HEADS, C=C, R=R, PAGE=PAGE, WHOLE=str(whole).lower(), **defines)
    call = launch(kern, (groups, n, splits), dev.array(q, dtype), dev.array(cache, dtype), dev.array(table), dev.array(np.array(lengths, np.int32)), out, part, lse,
                  arrived, scale, n, splits, heads, table.shape[1])
    for _ in range(again):
        out.fill_bytes(0xFF)
        call()
    starts = np.concatenate([[0], np.cumsum(lengths)])
    want = np.stack([cases.attention_reference(qv[i], wide(tokens[a:b]), wide(tokens[a:b, :C]), True, scale) for i, (a, b) in enumerate(zip(starts, starts[1:]))])
    return Run(call, [("out", wide(out.numpy()), want, 4 * cases.ROUNDING[dtype]), ("arrived", arrived.numpy(), np.zeros((n, groups)), 0)],
               bytes=tokens.nbytes, flops=2 * heads * (2 * C + R) * sum(lengths), dtype=dtype)


def small_m(dev, rng, m, n, k, dtype="f16", TO="f16", scaled=False, pdl="auto", again=1, **defines):
    """y = x w^T, launched as a dependent of a launch that reads y, and of itself; scaled: a factor for each token and each row of weights."""
    (x, xv), (w, wv) = cases.factor(rng, (m, k), dtype), cases.factor(rng, (n, k), dtype)
    scales = [rng.random(size).astype(np.float32) + 0.5 if scaled else None for size in (m, n)]
    y, z = poisoned(dev, (m, n), TO), poisoned(dev, (m, n), TO)
    kern = kernel(dev, "small_m.tile", "small_m", T=dtype, O=TO, **defines)
    of = [dev.array(v) if v is not None else None for v in scales]
    call = kern.bind(None, dev.array(x, dtype), dev.array(w, dtype), y, *of, pdl=pdl)
    chain = kern.bind(None, dev.array(x, dtype), dev.array(w, dtype), z, *of, pdl=pdl)
    for launch in (chain, call) * (1 + again):
        launch()
    want = xv.astype(np.float64) @ wv.astype(np.float64).T
    for v, axis in zip(scales, (1, 0)):
        want = want * np.expand_dims(v, axis) if v is not None else want
    near = cases.ROUNDING.get(TO, 1e-5) if dtype not in cases.FP8 or defines.get("FAST") != "true" else 2e-3
    return Run(call, [("y", cases.WIDE.get(TO, np.asarray)(y.numpy()), want, near)], bytes=w.nbytes + x.nbytes + y.nbytes, flops=2 * m * n * k, dtype=dtype)


CASES = [
    Case("attention_paged", attention_paged, [dict(lengths=(70, 1, 0, 129), BN=32, LEAST=1)] +
         grid(lengths=((33, 200),), GROUP=(1, 3), D=(128,), PAGE=(8,), splits=(1, 8), CAP=(5.0,), dtype=("bf16",), LEAST=(1,)) + [dict(lengths=(250,), GROUP=16, kv_heads=1, BN=32, splits=3)],
         [dict(lengths=(4096,) * 64, kv_heads=8, GROUP=8, D=128), dict(lengths=(70, 1, 1290)), dict(lengths=(33, 200), GROUP=3, D=128, PAGE=8, CAP=5.0, dtype="bf16"),
          dict(lengths=(100000, 17), kv_heads=8, GROUP=4, D=128, splits=33)]),
    Case("mla_decode", mla_decode, [dict(lengths=(200, 1, 0, 129), C=128, LEAST=1), dict(lengths=(150,), heads=20, HEADS=8, splits=3, LEAST=1, PAGE=16, dtype="f16"),
          dict(lengths=(150, 64), C=128, LEAST=1, whole=True), dict(lengths=(130, 1), heads=70, HEADS=64, C=128, LEAST=1, many=True), dict(lengths=(130,), heads=64, HEADS=64, many=True, whole=True, PAGE=128)],
         [dict(lengths=(4096,) * 32, splits=8), dict(lengths=(70, 1, 1290), heads=128, splits=4), dict(lengths=(33, 200), heads=20, PAGE=16, dtype="f16"), dict(lengths=(20000, 5), HEADS=8, splits=66)] +
         [dict(lengths=(70, 1, 1290), heads=128, HEADS=64, splits=4, many=True, whole=whole) for whole in (False, True)] +
         [dict(lengths=(4096,) * 32, splits=8, whole=True), dict(lengths=(2000, 100), heads=100, HEADS=64, PAGE=16, dtype="f16", many=True)]),
    Case("small_m", small_m, [dict(m=16, n=200, k=520), dict(m=1, n=64, k=64, TOKENS=8, TO="f32"), dict(m=70, n=130, k=1000, TOKENS=64, ROWS=128, S=2, dtype="bf16", TO="bf16")] +
         grid(m=(5,), n=(100,), k=(400,), dtype=("f8e4m3",), TOKENS=(8, 32), S=(1, 4), scaled=(True,)),
         [dict(m=16, n=8192, k=8192), dict(m=16, n=2048, k=4096, dtype="f8e4m3", scaled=True), dict(m=128, n=2048, k=4096, TOKENS=128, ROWS=128, S=2, dtype="f8e4m3"),
          dict(m=200, n=1000, k=1040, TOKENS=64, S=4, dtype="bf16", TO="f32"), dict(m=1, n=2048, k=4096, TOKENS=8, dtype="f8e4m3", FAST="true")]),
]
