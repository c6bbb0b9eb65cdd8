"""Flex attention: masks and scores that are functions; against float64, forward and backward."""
import cases
from cases import Case, Run, kernel, launch, poisoned
import numpy as np
import tilec

# What a kernel is given, and what it means: of batch, head, query and key. W is a window or a stride, lengths and ids what the functions read.
MASKS = {
    "all": (None, lambda b, h, i, j, W, data: i >= 0 * j),
    "causal": ("causal", lambda b, h, i, j, W, data: i >= j),
    "window": ("window({W})", lambda b, h, i, j, W, data: (i >= j) & (i - j < W)),
    "dilated": ("dilated({W})", lambda b, h, i, j, W, data: (i >= j) & ((i - j) % W == 0)),
    "prefix": ("prefix", lambda b, h, i, j, W, data: (i >= j) | (j < data[b])),
    "documents": ("documents", lambda b, h, i, j, W, data: (i >= j) & (data[i] == data[j])),
    "both": ("both(causal, (b, h, i, j) -> (i + j + h) % {W} != 0)", lambda b, h, i, j, W, data: (i >= j) & ((i + j + h) % W != 0)),
    "late": ("(b, h, i, j) -> i >= {W}", lambda b, h, i, j, W, data: i + 0 * j >= W),          # queries that see nothing
}
# The same for scores, with the derivatives: what they mean, and a function where the compiler does not make it.
SCORES = {
    None: (None, None, lambda s, h, H, away, table: (s, 1)),
    "alibi": ("alibi({H})", None, lambda s, h, H, away, table: (s - away * 2.0 ** ((h + 1) * -8 / H), 1)),
    "table": ("(t) -> (s, b, h, i, j) -> s + load(t + (i - j & 7))", None, lambda s, h, H, away, table: (s + table[away & 7], 1)),
    "soft_cap": ("soft_cap(2.0)", None, lambda s, h, H, away, table: (2 * np.tanh(s / 2), 1 - np.tanh(s / 2) ** 2)),
    "given": ("soft_cap(2.0)", "(s, b, h, i, j) -> 1.0 - tanh(s * 0.5) * tanh(s * 0.5)", lambda s, h, H, away, table: (2 * np.tanh(s / 2), 1 - np.tanh(s / 2) ** 2)),
    "bent": ("(s, b, h, i, j) -> h % 2 == 0 ? s * sigmoid(s) : where(i - j > 4, max(s, 0.5 * s), exp(min(s, 1.0)))", None,
             lambda s, h, H, away, table: bent(s, h, away)),
}


def bent(s, h, away):
    """A score of several pieces, and its derivative."""
    g = 1 / (1 + np.exp(-s))
    if h % 2 == 0:
        return s * g, g + s * g * (1 - g)
    low = np.exp(np.minimum(s, 1))
    return np.where(away > 4, np.maximum(s, s / 2), low), np.where(away > 4, np.where(s > 0, 1, 0.5), np.where(s < 1, low, 0))


def mask_data(mask, rng, batch, S):
    if mask == "prefix":
        return rng.integers(0, S, batch).astype(np.int32)
    return np.sort(rng.integers(0, max(2, S // 40), S)).astype(np.int32) if mask == "documents" else None


def flex_attention(dev, rng, batch, heads, S, mask="causal", score=None, backward=False, D=64, W=20, BM=64, BN=64, queries=64, shared=True, dtype="f16", deep=2, group=1, **more):
    """Forward, and with `backward` dq, dk and dv, by programs with the same tiles but for dk and dv, which walk by so many queries, `deep` stages.
    A head of keys is that of `group` heads of queries."""
    planes, scale = batch * heads, D ** -0.5
    (q, Q), (k, K), (v, V), (do, G) = (cases.given(rng, (n, S, D), dtype) for n in (planes, planes // group, planes // group, planes))
    Q, K, V, G = (a.astype(np.float64) for a in (Q, K, V, G))
    data, (allowed, means), (weigh, slope, weighs) = mask_data(mask, rng, batch, S), MASKS[mask], SCORES[score]
    i, j = np.arange(S)[:, None], np.arange(S)[None, :]
    table = rng.standard_normal(8).astype(np.float32) if score == "table" else None
    see = np.stack([means(p // heads, p % heads, i, j, W, data) for p in range(planes)])
    past = [exact(*x, see[p], scale, lambda s, h=p % heads: weighs(s, h, heads, i - j, table)) for p, x in enumerate(zip(Q, K.repeat(group, 0), V.repeat(group, 0), G))]
    lse, o, dq, dk, dv = (np.stack(x) for x in zip(*past))
    dk, dv = (x.reshape(planes // group, group, S, D).sum(1) for x in (dk, dv))

    bound = [dev.array(x) if x is not None else None for x in (data, table)]
    one = dict(ALLOWED=(allowed or "None").format(W=W))
    mine = dict(one, SCORE=(weigh or "None").format(H=heads), SHARED=str(shared).lower(), T=dtype, D=D, GROUP=group, **more)
    load = lambda name, BM=BM, **m: kernel(dev, "flex_attention.tile", name, BM=BM, BN=BN, **m)

    def lists(BM, by_keys):
        own, others = (tilec.cdiv(S, n) for n in ((BN, BM) if by_keys else (BM, BN)))
        heads_of = group if by_keys else 1
        blocks, counts = (poisoned(dev, (1 if shared else planes // heads_of, own, n), "i32") for n in (others * heads_of, 2))
        launch(load("flex_blocks", BM, BY_KEYS=str(by_keys).lower(), GROUP=heads_of, **one), (own, blocks.shape[0]), blocks, counts, blocks.shape[0], S, heads, bound[0])
        return blocks, counts

    sides = [dev.array(a, dtype) for a in (q, k, v, do)]
    found, sums, own = poisoned(dev, q.shape, dtype), poisoned(dev, (planes, S), "f32"), (tilec.cdiv(S, BM), planes)
    by_queries = lists(BM, False)
    call = launch(load("flex_attention", **mine), own, *sides[:3], found, sums, *by_queries, planes, S, heads, scale, *bound)
    near, wide = 4 * cases.ROUNDING[dtype], cases.WIDE[dtype]
    checks = [("counts", by_queries[1].numpy(), counts_of(see[:by_queries[1].shape[0]], BM, BN), 0), ("lse", np.maximum(sums.numpy(), -1e30), lse, 1e-5), ("o", wide(found.numpy()), o, near)]
    if not backward:
        return Run(call, checks, flops=4 * D * int(see.sum()), dtype=dtype)
    delta, got = poisoned(dev, (planes, S), "f32"), [poisoned(dev, x.shape, dtype) for x in (q, k, v)]
    launch(kernel(dev, "attention_backward.tile", "attention_delta", T=dtype, D=D), (tilec.cdiv(S, 64), planes), found, sides[3], delta, planes, S)
    if slope:
        mine["SLOPE"] = slope
    launch(load("flex_dq", **mine), own, *sides, sums, delta, got[0], *by_queries, planes, S, heads, scale, *bound)
    call = launch(load("flex_dkdv", queries, STAGES=deep, **mine), (tilec.cdiv(S, BN), planes // group), *sides, sums, delta, *got[1:], *lists(queries, True), planes, S, heads, scale, *bound)
    checks += [(name, wide(x.numpy()), want, 2 * near) for name, x, want in zip(("dq", "dk", "dv"), got, (dq, dk, dv))]
    return Run(call, checks, flops=8 * D * int(see.sum()), dtype=dtype)


def exact(q, k, v, do, see, scale, weigh):
    """lse, o, dq, dk and dv of one head; weigh: a score and its derivative, of the scaled product."""
    s, slope = weigh(q @ k.T * scale)
    s = np.where(see, s, -np.inf)
    top = np.maximum(s.max(1, keepdims=True), -1e30)
    e = np.exp(s - top)
    total = e.sum(1, keepdims=True)
    p = e / np.maximum(total, 1e-300)
    o = p @ v
    ds = p * (do @ v.T - (do * o).sum(1, keepdims=True)) * slope * scale
    lse = np.where(total > 0, top + np.log(np.maximum(total, 1e-300)), -1e30)[:, 0]
    return lse, o, ds @ k, ds.T @ q, p.T @ do


def counts_of(see, BM, BN):
    """Of each block of queries, how many blocks of keys all of it sees, and how many some of it does."""
    S = see.shape[1]
    out = np.zeros((len(see), tilec.cdiv(S, BM), 2), np.int32)
    for p, m, n in np.ndindex(len(see), tilec.cdiv(S, BM), tilec.cdiv(S, BN)):
        part = see[p, m * BM:(m + 1) * BM, n * BN:(n + 1) * BN]
        whole = part.all() and (n + 1) * BN <= S
        out[p, m] += (whole, part.any() and not whole)
    return out


SEVEN = [dict(mask="causal"), dict(mask="window"), dict(mask="prefix", batch=2, shared=False), dict(mask="documents"), dict(score="alibi"),
         dict(mask="all", score="soft_cap"), dict(mask="dilated", W=3)]
MORE = [dict(mask="both", shared=False), dict(mask="late", W=70), dict(mask="all"), dict(mask="late", score="table"), dict(score="bent"), dict(score="given")]
GROUPS = [dict(mask="window", group=2), dict(mask="both", group=4, shared=False, score="alibi"), dict(mask="prefix", group=2, batch=2, shared=False)]
sizes = lambda some, **given: [dict(given, **one) for one in some]
wide = dict(BM=128, BN=128, warps=8)

CASES = [
    Case("flex_attention", flex_attention, sizes(SEVEN + MORE, batch=1, heads=2, S=200) + sizes(GROUPS, batch=1, heads=4, S=150) +
         [dict(batch=1, heads=1, S=260, D=128, mask="window", W=150, score="alibi", dtype="bf16", **wide)],
         sizes(SEVEN + MORE, batch=2, heads=2, S=1000, W=300) + sizes(SEVEN, batch=1, heads=2, S=1024, D=128, W=300, **wide) +
         sizes(GROUPS, batch=1, heads=8, S=1000, W=300) + sizes(GROUPS, batch=1, heads=8, S=1024, D=128, W=300, **wide) +
         sizes(SEVEN, batch=1, heads=2, S=1500, D=64, W=500, dtype="bf16", **wide)),
    Case("flex_backward", lambda dev, rng, **size: flex_attention(dev, rng, backward=True, **size), sizes(SEVEN + MORE, batch=1, heads=2, S=150) + sizes(GROUPS, batch=1, heads=4, S=150) +
         [dict(batch=1, heads=1, S=260, D=128, mask="window", W=150, score="alibi", dtype="bf16", deep=3, **wide)],
         sizes(SEVEN + MORE, batch=2, heads=2, S=1000, W=300) + sizes(SEVEN, batch=1, heads=2, S=1024, D=128, W=300, queries=32, deep=4, **wide) +
         sizes(GROUPS, batch=1, heads=8, S=1000, W=300) + sizes(GROUPS, batch=1, heads=8, S=1024, D=128, W=300, queries=32, deep=4, **wide)),
]
