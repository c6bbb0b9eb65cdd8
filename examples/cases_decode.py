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
    launch(kernel(dev, "attention_paged.tile", "write_cache", T=dtype), tokens + 2, *new, *cache, dev.array(np.append(slots, [-1, -1])[order]), kv_heads * D)
    heads = kv_heads * GROUP
    part, lse, out = poisoned(dev, (n, heads, splits, D), "f32"), poisoned(dev, (n, heads, splits), "f32"), poisoned(dev, (n, heads, D), dtype)
    arrived = dev.array(np.zeros((n, kv_heads), np.int32))
    kern = kernel(dev, "attention_paged.tile", "attend", T=dtype, GROUP=GROUP, D=D, PAGE=PAGE, CAP=CAP, **defines)
    call = launch(kern, (n, kv_heads, splits), dev.array(q, dtype), *cache, dev.array(table), dev.array(np.array(lengths, np.int32)), out, part, lse, arrived,
                  D**-0.5, kv_heads, table.shape[1])
    for _ in range(again):
        out.fill_bytes(0xFF)
        call()
    starts = np.concatenate([[0], np.cumsum(lengths)])
    wide = cases.WIDE[dtype]
    want = np.stack([np.concatenate([cases.attention_reference(qv[i, h], wide(k[a:b, h]), wide(v[a:b, h]), True, D**-0.5, CAP) for h in range(kv_heads)])
                     for i, (a, b) in enumerate(zip(starts, starts[1:]))])
    return Run(call, [("out", wide(out.numpy()), want, 4 * cases.ROUNDING[dtype]), ("arrived", arrived.numpy(), np.zeros((n, kv_heads)), 0)], bytes=2 * k.nbytes)


CASES = [
    Case("attention_paged", attention_paged, [dict(lengths=(70, 1, 0, 129), BN=32, LEAST=1)] +
         grid(lengths=((33, 200),), GROUP=(1, 3), D=(128,), PAGE=(8,), splits=(1, 8), CAP=(5.0,), dtype=("bf16",), LEAST=(1,)) + [dict(lengths=(250,), GROUP=16, kv_heads=1, BN=32, splits=3)],
         [dict(lengths=(4096,) * 64, kv_heads=8, GROUP=8, D=128), dict(lengths=(70, 1, 1290)), dict(lengths=(33, 200), GROUP=3, D=128, PAGE=8, CAP=5.0, dtype="bf16"),
          dict(lengths=(100000, 17), kv_heads=8, GROUP=4, D=128, splits=33)]),
]
