"""Kernels that nobody tuned, beside the same in Triton: scripts/python bench/unseen.py [--budget SECONDS] [PART or KERNEL...]

Each was written once, in the natural style of either language, by the same algorithm: unseen/*.tile as a decent user who has read
docs/language.md would, unseen/peers.py as a decent Triton user would. Both sides search the same short list of configurations. What the
compiler does badly stays as it is written here: a kernel is not improved, the compiler is.

Parts are kinds of kernels: PARTS below; a kernel can be named by itself. Options, processes and files are those of bench/gpu.py, but
that four kernels share a process.
A row says, too:

    ptx_ms, load_ms            what our chosen kernel took from source to PTX and from PTX to a loaded module, for the first time
    registers, local_bytes     of our chosen kernel; of a case of several launches the most
    triton_registers, triton_spills
    of_bare                    of products in company: our rate, of that of the same kernel without it

--rehearse runs our side in every configuration on the simulator, with small shapes; with TRITON_INTERPRET=1 Triton's, too.
"""
import dataclasses
import math
import os
import sys
from typing import Callable, Optional

import measure
import torch
from measure import bound, case_begins, check, contest, D, Driver, empty_cache, full, INTERPRETED, kernel, REHEARSE, root, settle, sync
from tilec import cdiv

sys.path.insert(0, os.path.join(root, "bench", "unseen"))
import peers

F = torch.nn.functional
bf16, f16, f32, i8, u8, i32, i64, f8 = (torch.bfloat16, torch.float16, torch.float32, torch.int8, torch.uint8, torch.int32, torch.int64,
                                        torch.float8_e4m3fn)
PARTS, SECTIONS = {}, {}
resets, compiled = [], []           # what puts results back to what they were; Triton's kernels of the last launch


@dataclasses.dataclass
class Case:
    shape: str                      # dtype and shape, for the row
    work: float                     # bytes or operations
    configs: list                   # dicts of consts and warps, the same for both sides
    ours: Callable                  # of a configuration: a launch
    theirs: Callable
    checks: Callable                # of a side (0 ours, 1 Triton's): (what, got, reference, limit of the relative error) of each result
    torch: Optional[Callable] = None
    unit: str = "TB/s"
    bare: Optional[Callable] = None # of a configuration: a launch of the product alone
    interpreted: bool = True        # Triton's interpreter gets it right: not products of bf16, nor rounding to 8 bits


# ---- tensors ----

def randn(*shape, dtype=f32, by=1.0):
    at = dtype if dtype in (f16, bf16) and not REHEARSE else f32
    return (torch.randn(*shape, device=D, dtype=at) * by).to(dtype)


def rand(*shape):
    return torch.rand(*shape, device=D)


def randint(lo, hi, *shape, dtype=i32):
    return torch.randint(lo, hi, shape, device=D, dtype=dtype)


def result(*shape, dtype=f32, fill=None, one=False):
    """Memory for a result, and the same for the other side: a pair, or the same twice."""
    pair = [torch.empty(*shape, device=D, dtype=dtype) for _ in range(2)]
    pair = [pair[0], pair[0]] if one else pair

    def reset():
        for t in pair:
            if fill is not None:
                t.fill_(fill)
            else:
                t.view(torch.uint8).fill_(255)
    resets.append(reset)
    reset()
    return pair


def inout(t):
    """Memory that a kernel changes, for either side."""
    pair = [t.clone(), t.clone()]

    def reset():
        for q in pair:
            q.copy_(t)
    resets.append(reset)
    return pair


# ---- launches ----

def configs(names, *rows, **same):
    names = names.split()
    return [{**dict(zip(names, r)), **same} for r in rows]


def tile(file, name, grid, *args, **defines):
    return kernel(f"unseen/{file}.tile", name, **defines).bind(grid, *args)


def jit(name, grid, *args, warps=4, STAGES=None, **consts):
    """A launch of Triton's side. STAGES, which is a const of ours, is an option there."""
    grid = (grid,) if isinstance(grid, int) else grid
    more = dict(consts, num_warps=warps, **({"num_stages": STAGES} if STAGES else {}))
    return lambda: compiled.append(getattr(peers, name)[grid](*args, **more))


def without(company, file, name, grid, *args, **defines):
    """A launch of a kernel of which passages are left out or exchanged. company: (passage, what stands there instead) pairs."""
    with open(os.path.join(root, "bench", "unseen", file + ".tile")) as f:
        text = f.read()
    for passage, instead in company:
        assert text.count(passage) == 1, f"{file}.tile has {text.count(passage)} times {passage}"
        text = text.replace(passage, instead)
    return measure.dev.program(text=text, name=f"{file}.tile", line_info=False).kernel(name, **defines).bind(grid, *args)


def launches(*steps):
    def run():
        for step in steps:
            step()
    return run


def both(file, name, grid, args, cfgs, shape, work, checks, torch=None, company=None, **more):
    """A case of one kernel, with the same arguments on both sides but for pairs of results; grid may be a function of the configuration."""
    at = grid if callable(grid) else lambda c: grid
    of = lambda side: [a[side] if isinstance(a, list) else a for a in args]
    bare = company and (lambda c: without(company, file, name, at(c), *of(0), **c))
    return Case(shape, work, cfgs, lambda c: tile(file, name, at(c), *of(0), **c), lambda c: jit(name, at(c), *of(1), **c), checks, torch,
                bare=bare, **more)


# ---- measuring ----

def text(c):
    return " ".join(f"{k}={v}" for k, v in c.items())


def verify(name, c, side, label, make):
    """The results of one configuration, from memory that holds none."""
    for reset in resets:
        reset()
    compiled.clear()
    launch = make()
    launch()
    sync()
    for what, got, ref, limit in c.checks(side):
        check(f"{name}, {('tilec', 'Triton')[side]} {label}, {what}", got, ref, limit)


def first_time():
    """What is bound compiled and loaded once more, as by a user who has no cache: (ms to PTX, ms to load)."""
    infos = [measure.dev.program(os.path.join(root, file)).kernel(name, **defines).bind(grid, *args).info()
             for _, (file, name, defines, _), grid, args in list(bound)]
    return tuple(round(sum(i[k] for i in infos), 1) for k in ("compile_ms", "load_ms"))


def contest_of(name, make):
    """A section of one kernel."""
    case_begins("unseen", name)
    torch.manual_seed(sum(name.encode()))
    resets.clear(), compiled.clear()
    c = make()
    ours, theirs = ({text(k): (lambda k=k, side=side: side(k)) for k in c.configs} for side in (c.ours, c.theirs))

    def facts(lo, lt):
        found = [call.info() for call, *_ in bound]
        more = dict(zip(("ptx_ms", "load_ms"), first_time()), **{k: max(i[k] for i in found) for k in ("registers", "local_bytes")})
        for side, makes, chosen in ((0, ours, lo), (1, theirs, lt)):
            for label in [k for k in makes if chosen and (k == chosen or REHEARSE)]:
                if side == 0 or not INTERPRETED or c.interpreted:
                    verify(name, c, side, label, makes[label])
        if lt and not INTERPRETED:
            more.update(triton_registers=max(k.n_regs for k in compiled), triton_spills=max(k.n_spills for k in compiled))
        if c.bare:
            k = next(k for k in c.configs if text(k) == lo)
            (_, mine, _), (_, alone, _) = settle(lambda: c.ours(k), lambda: c.bare(k))
            more["of_bare"] = round(alone / mine, 4)
        return more
    contest("unseen", f"{name}, {c.shape}", c.work, ours, theirs, c.torch, c.unit, facts)
    resets.clear(), compiled.clear()
    empty_cache()


def of(part):
    """A function that makes a Case is a section of this part."""
    def named(make):
        PARTS.setdefault(part, []).append(make.__name__)
        SECTIONS[make.__name__] = lambda: contest_of(make.__name__, make)
        return make
    return named


# ---- the cases ----

@of("fused")
def swiglu():
    M, N = full((8192, 14336), (3, 1111))
    g, u, o = randn(M, N, dtype=bf16), randn(M, N, dtype=bf16), result(M, N, dtype=bf16)
    return both("fused", "swiglu", lambda c: cdiv(M * N, c["BLOCK"]), (g, u, o, M * N),
                configs("BLOCK warps", (1024, 4), (2048, 4), (1024, 2), (2048, 8), (4096, 8)), f"bf16 {M} x {N}", 6.0 * M * N,
                lambda k: [("out", o[k], F.silu(g.float()) * u.float(), 4e-3)], lambda: F.silu(g) * u)


@of("fused")
def group_norm_nchw():
    N, C, HW, G = full((16, 512, 64 * 64, 32), (2, 8, 45, 4))
    x, w, s, y = randn(N, C, HW, dtype=f16), randn(C), randn(C), result(N, C, HW, dtype=f16)
    return both("fused", "group_norm_nchw", (G, N), (x, w, s, y, HW, C, G, 1e-5),
                configs("BLOCK warps", (2048, 4), (2048, 8), (4096, 8), (4096, 16), (8192, 16), (8192, 32)),
                f"f16 {N} x {C} x {HW}, {G} groups",
                4.0 * x.numel(), lambda k: [("out", y[k], F.silu(F.group_norm(x.float(), G, w, s, 1e-5)), 2e-3)],
                lambda: F.silu(F.group_norm(x, G, w.half(), s.half(), 1e-5)))


@of("fused")
def group_norm_nhwc():
    N, C, HW, G = full((16, 512, 64 * 64, 32), (2, 24, 45, 2))
    x, w, s, y = randn(N, HW, C, dtype=f16), randn(C), randn(C), result(N, HW, C, dtype=f16)
    return both("fused", "group_norm_nhwc", (G, N), (x, w, s, y, HW, C, G, 1e-5),
                configs("BP warps", (64, 4), (128, 4), (128, 8), (256, 8), (256, 16), (512, 16), BC=16),
                f"f16 {N} x {HW} x {C}, {G} groups",
                4.0 * x.numel(),
                lambda k: [("out", y[k], F.silu(F.group_norm(x.float().transpose(1, 2), G, w, s, 1e-5)).transpose(1, 2), 2e-3)])


@of("fused")
def rope_cache():
    TOK, HQ, HK, HD, POS = full((8192, 32, 8, 128, 4096), (5, 4, 2, 16, 9))
    q, k, v = randn(TOK, HQ, HD, dtype=bf16), randn(TOK, HK, HD, dtype=bf16), randn(TOK, HK, HD, dtype=bf16)
    cos, sin, pos = rand(POS, HD // 2), rand(POS, HD // 2), randint(0, POS, TOK)
    slots = torch.randperm(2 * TOK, device=D)[:TOK].to(i64)
    slots[3] = -1
    qo, kc, vc = result(TOK, HQ, HD, dtype=bf16), *(result(2 * TOK, HK, HD, dtype=bf16, fill=0.0) for _ in range(2))

    def turned(x):
        lo, hi = x.float().split(HD // 2, -1)
        c, s = cos[pos.long()][:, None], sin[pos.long()][:, None]
        return torch.cat((lo * c - hi * s, hi * c + lo * s), -1)

    def checks(side):
        kr, vr, ok = torch.zeros_like(kc[0], dtype=f32), torch.zeros_like(vc[0], dtype=f32), slots >= 0
        kr[slots[ok]], vr[slots[ok]] = turned(k)[ok], v.float()[ok]
        return [("q", qo[side], turned(q), 4e-3), ("keys", kc[side], kr, 4e-3), ("values", vc[side], vr, 1e-9)]
    return both("fused", "rope_cache", TOK, (q, k, v, cos, sin, pos, slots, qo, kc, vc),
                configs("warps", (1,), (2,), (4,), (8,), HQ=HQ, HK=HK, D=HD),
                f"bf16 {TOK} tokens, {HQ}+{HK} heads of {HD}", TOK * HD * (4.0 * HQ + 8.0 * HK + 4), checks)


@of("fused")
def dropout_add_norm():
    (M, N), p = full((8192, 4096), (3, 200)), 0.1
    x, r, w, s = randn(M, N, dtype=bf16), randn(M, N, dtype=bf16), randn(N, dtype=bf16), randn(N, dtype=bf16)
    h, y = result(M, N, dtype=bf16), result(M, N, dtype=bf16)

    def checks(k):
        kept = h[k].float() != r.float()                     # an x that is lost in r's rounding counts as dropped
        v = torch.where(kept, r.float() + x.float() / (1 - p), r.float())
        share = kept.double().mean(0, keepdim=True).mean().reshape(1)
        return [("stream", h[k], v, 4e-3), ("norm", y[k], F.layer_norm(v, (N,), w.float(), s.float(), 1e-5), 4e-3),
                ("share that is kept", share, torch.full_like(share, 1 - p), full(6e-3, 0.1))]
    return both("fused", "dropout_add_norm", M, (x, r, w, s, h, y, N, 1e-5, p, 1234),
                configs("warps", (4,), (8,), (16,), (32,), BLOCK=full(4096, 256)),
                f"bf16 {M} x {N}", 8.0 * M * N, checks, lambda: F.layer_norm(r + F.dropout(x, p), (N,), w, s))


@of("fused")
def causal_conv():
    N, L, C = full((8, 4096, 4096), (2, 70, 200))
    x, w, s, y = randn(N, L, C, dtype=bf16), randn(C, 4, dtype=bf16, by=0.5), randn(C, dtype=bf16), result(N, L, C, dtype=bf16)
    ref = lambda x, w, s: F.silu(F.conv1d(x.transpose(1, 2), w[:, None], s, padding=3, groups=C)[..., :L]).transpose(1, 2)
    return both("fused", "causal_conv", lambda c: (cdiv(C, c["B"]), cdiv(L, c["CHUNK"]), N), (x, w, s, y, L, C),
                configs("B CHUNK warps", (128, 64, 1), (256, 64, 1), (256, 64, 2), (256, 32, 4), (512, 64, 2), (512, 128, 4), (512, 32, 4)),
                f"bf16 {N} x {L} x {C}, 4 taps", 4.0 * x.numel(), lambda k: [("out", y[k], ref(x.float(), w.float(), s.float()), 4e-3)],
                lambda: ref(x, w, s))


@of("quant")
def rms_quant():
    M, N = full((8192, 4096), (3, 200))
    x, r0, w = randn(M, N, dtype=f16, by=0.01), randn(M, N, dtype=f16), randn(N, dtype=f16)
    r, q, s = inout(r0), result(M, N, dtype=i8, fill=0), result(M)

    def checks(k):
        v = (x.float() + r0.float()).half().float()
        n = v * (v.square().mean(1, keepdim=True) + 1e-6).rsqrt() * (1 + w.float())
        sc = n.abs().amax(1) / 127
        return [("stream", r[k], v, 1e-3), ("scale", s[k], sc, 1e-3), ("q", q[k], (n / sc[:, None]).round(), 6e-3)]
    return both("quant", "rms_quant", M, (x, r, w, q, s, N, 1e-6, 1e30), configs("warps", (4,), (8,), (16,), (32,), B=full(4096, 256)),
                f"f16 {M} x {N} to i8", 7.0 * M * N, checks)


@of("folds")
def bag():
    ROWS, N, BAGS, PER = full((1_000_000, 128, 32768, 50), (100, 32, 6, 7))
    table = randn(ROWS, N, dtype=f16)
    offsets = F.pad(randint(0, 2 * PER, BAGS).cumsum(0), (1, 0)).to(i32)
    idx = randint(0, ROWS, int(offsets[-1]), dtype=i64)
    o = result(BAGS, N)
    ref = lambda t: F.embedding_bag(idx, t, offsets[:-1].long(), mode="sum")
    return both("folds", "bag", BAGS, (table, idx, offsets, o), configs("BJ warps", (4, 1), (8, 1), (8, 2), (16, 2), (16, 4), (32, 4), D=N),
                f"f16 {BAGS} bags of 0 to {2 * PER} of {ROWS} x {N}", 2.0 * idx.numel() * N + 4.0 * BAGS * N + 8 * idx.numel(),
                lambda k: [("out", o[k], ref(table.float()), 1e-4)], lambda: ref(table))


@of("folds")
def sum_middle():
    A, M, N = full((256, 1024, 1024), (3, 50, 40))
    x, o = randn(A, M, N, dtype=f16), result(A, N)
    return both("folds", "sum_middle", lambda c: (cdiv(N, c["BN"]), A), (x, o, M, N),
                configs("BM BN warps", (16, 128, 4), (32, 64, 4), (32, 128, 4), (8, 256, 4), (16, 256, 8), (64, 64, 8)),
                f"f16 {A} x {M} x {N} over 1",
                2.0 * x.numel(), lambda k: [("out", o[k], torch.sum(x, 1, dtype=f32), 1e-4)], lambda: torch.sum(x, 1, dtype=f32))


@of("folds")
def cumsum_middle():
    A, M, N = full((64, 4096, 512), (2, 70, 40))
    x, o = randn(A, M, N), result(A, M, N)
    return both("folds", "cumsum_middle", lambda c: (cdiv(N, c["BN"]), A), (x, o, M, N),
                configs("BM BN warps", (32, 32, 2), (32, 32, 4), (64, 32, 4), (128, 32, 8), (32, 64, 4), (64, 64, 8), (16, 64, 2)),
                f"f32 {A} x {M} x {N} along 1", 8.0 * x.numel(), lambda k: [("out", o[k], x.double().cumsum(1), 1e-5)],
                lambda: torch.cumsum(x, 1))


@of("folds")
def argmax_rows():
    M, N = full((8192, 32000), (4, 3000))
    x, o = randn(M, N), result(M, dtype=i32, fill=0)
    return both("folds", "argmax_rows", M, (x, o, N),
                configs("BLOCK warps", (1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 8), (8192, 16)),
                f"f32 {M} x {N}", 4.0 * x.numel(),
                lambda k: [("values there", x.gather(1, o[k].long().clamp(0, N - 1)[:, None])[:, 0], x.amax(1), 1e-9)],
                lambda: torch.argmax(x, 1))


@of("folds")
def topk_long():
    M, N, K = full((256, 32768, 32), (2, 1000, 8))
    x, C = randn(M, N), lambda c: cdiv(N, c["BLOCK"])
    v, at, keys = torch.empty(M, 2 * N, device=D), torch.empty(M, 2 * N, device=D, dtype=i32), torch.empty(M, 2 * N, device=D, dtype=i64)
    vo, ao = result(M, K), result(M, K, dtype=i32, fill=0)
    ours = lambda c: launches(tile("folds", "topk_part", (C(c), M), x, v, at, N, K=K, **c),
                              tile("folds", "topk_merge", M, v, at, vo[0], ao[0], C=C(c) * K, K=K, warps=4))
    theirs = lambda c: launches(jit("topk_part", (C(c), M), x, keys, N, K=K, **c),
                                jit("topk_merge", M, keys, vo[1], ao[1], C=C(c) * K, K=K, warps=4))
    return Case(f"f32 {K} of {M} x {N}", 4.0 * M * N,
                configs("BLOCK warps", *full(((2048, 4), (2048, 8), (4096, 8), (1024, 4)), ((256, 4), (512, 2)))), ours, theirs,
                lambda k: [("values", vo[k], x.topk(K)[0], 1e-9),
                           ("values there", x.gather(1, ao[k].long().clamp(0, N - 1)), x.topk(K)[0], 1e-9)],
                lambda: torch.topk(x, K))


@of("folds")
def bincount():
    n, BINS = full((2**24, 4096), (3000, 64))
    x, w, o = randint(0, BINS, n), rand(n), result(BINS, fill=0.0, one=True)      # how fast atomics are depends on where the bins lie
    return both("folds", "bincount", lambda c: cdiv(n, c["BLOCK"]), (x, w, o, n),
                configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 4), (2048, 8)),
                f"f32 weights, {n} into {BINS}", 8.0 * n, lambda k: [("out", o[k], torch.bincount(x, w.double(), BINS), 1e-5)],
                lambda: torch.bincount(x, w, BINS))


@of("images")
def stencil():
    H, W = full((8192, 8192), (37, 70))
    x, o, mid = randn(H, W), result(H, W), result(H, W)

    def step(y):
        p = F.pad(y, (1, 1, 1, 1))
        return y + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * y)

    def steps(k, launch):
        one, two, three = launch(x, mid[k]), launch(mid[k], o[k]), launch(o[k], mid[k])
        return launches(one, two, three, two)
    at = lambda c: (cdiv(W, c["BN"]), cdiv(H, c["BM"]))
    return Case(f"f32 {H} x {W}, 4 steps", 4 * 8.0 * H * W,
                configs("BM BN warps", (8, 128, 4), (16, 128, 4), (4, 256, 4), (32, 64, 4), (16, 128, 8), (1, 1024, 4), (2, 512, 4)),
                lambda c: steps(0, lambda u, v: tile("folds", "stencil", at(c), u, v, H, W, 0.1, **c)),
                lambda c: steps(1, lambda u, v: jit("stencil", at(c), u, v, H, W, 0.1, **c)),
                lambda k: [("out", o[k], step(step(step(step(x)))), 1e-5)])


@of("quant")
def cast_transpose():
    M, N = full((8192, 8192), (70, 100))
    x, s, y, yt = randn(M, N, dtype=bf16), torch.full((1,), 30.0, device=D), result(M, N, dtype=f8), result(N, M, dtype=f8)

    def checks(k):
        ref = (x.float() * 30).to(f8).float()
        return [("out", y[k], ref, 1e-3), ("turned", yt[k], ref.T, 1e-3)]
    return both("folds", "cast_transpose", lambda c: (cdiv(N, c["BN"]), cdiv(M, c["BM"])), (x, s, y, yt, M, N),
                configs("BM BN warps", (64, 64, 4), (128, 64, 4), (64, 128, 4), (128, 128, 8), (128, 128, 4), (32, 128, 4)),
                f"bf16 to f8e4m3 {M} x {N}",
                4.0 * M * N, checks, interpreted=False)


@of("dots")
def gemv_w8():
    N, K = full((28672, 8192), (70, 600))
    x, w, s, y = randn(1, K, dtype=bf16), randint(-127, 128, N, K, dtype=i8), rand(N), result(1, N, dtype=bf16)
    return both("dots", "gemv_w8", lambda c: cdiv(N, c["BN"]), (x, w, s, y, N, K),
                configs("BN BK warps", (4, 1024, 4), (8, 512, 4), (16, 256, 4), (8, 1024, 8), (2, 2048, 4), (16, 512, 8), (1, 2048, 4)),
                f"w8a16 1 x {N} x {K}", 1.0 * N * K, lambda k: [("out", y[k], (w.float() @ x.float().T).T * s, 4e-3)])


@of("dots")
def bmm():
    Z, M, N, K = full((4096, 96, 80, 72), (2, 96, 80, 72))
    x, w, y = randn(Z, M, K, dtype=f16), randn(Z, K, N, dtype=f16), result(Z, M, N, dtype=f16)
    return both("dots", "bmm", lambda c: (cdiv(M, c["BM"]) * cdiv(N, c["BN"]), Z), (x, w, y, M, N, K),
                configs("BM BN BK STAGES warps", (32, 32, 32, 3, 2), (32, 16, 128, 1, 2), (32, 128, 32, 3, 4), (32, 128, 128, 1, 4),
                        (128, 128, 32, 2, 4),
                        (128, 128, 128, 1, 8), (128, 16, 128, 1, 4)),
                f"f16 {Z} of {M} x {N} x {K}", 2.0 * Z * M * N * K, lambda k: [("out", y[k], torch.bmm(x.float(), w.float()), 2e-3)],
                lambda: torch.bmm(x, w), unit="TFLOP/s")


@of("dots")
def linear_gelu():
    M, N, K = full((4096, 11008, 4096), (70, 100, 130))
    x, w, s, y = randn(M, K, dtype=f16), randn(N, K, dtype=f16, by=K**-0.5), randn(N, dtype=f16), result(M, N, dtype=f16)
    cfgs = configs("BM BN BK STAGES warps", (128, 128, 64, 4, 4), (128, 128, 64, 3, 8), (128, 128, 32, 4, 4), (64, 128, 64, 4, 4),
                   (128, 256, 64, 3, 8),
                   (128, 256, 64, 4, 8))
    return both("dots", "linear_gelu", lambda c: cdiv(M, c["BM"]) * cdiv(N, c["BN"]), (x, w, s, y, M, N, K), full(cfgs, cfgs[:4]),
                f"f16 {M} x {N} x {K}",
                2.0 * M * N * K, lambda k: [("out", y[k], F.gelu(F.linear(x.float(), w.float(), s.float())), 3e-3)],
                lambda: F.gelu(F.linear(x, w, s)), unit="TFLOP/s", company=[("  acc = gelu(acc + f32(load(bias + n, mask=n < N))[None, :]);\n", "")])


@of("dots")
def assign():
    N, K, W = full((262144, 1024, 64), (130, 70, 16))
    x, c, o = randn(N, W), randn(K, W), result(N, dtype=i32, fill=0)
    far = lambda at: (x - c[at.long().clamp(0, K - 1)]).square().sum(1)
    return both("dots", "assign", lambda g: cdiv(N, g["BN"]), (x, c, o, N, K),
                configs("BN BK STAGES warps", (64, 64, 3, 4), (128, 64, 3, 4), (128, 64, 2, 4), (128, 128, 3, 8), (128, 64, 3, 8),
                        (64, 128, 3, 4), (128, 32, 3, 4),
                        (128, 32, 1, 4), D=W),
                f"tf32 {N} points, {K} centres, {W}", 2.0 * N * K * W,
                lambda k: [("distances", far(o[k]), torch.cdist(x, c).amin(1).square(), 1e-3)],
                lambda: torch.cdist(x, c).argmin(1), unit="TFLOP/s",
                company=[("  var best = full(BN, inf, f32);\n", "  var sums = zeros([BN, BK], f32);\n"),
                         ("    let dist = sum(w * w, axis=1)[None, :] - 2.0 * dot(v, trans(w));\n", "    sums = dot(v, trans(w), sums);\n"),
                         ("    let (m, a) = min_at(where(j[None, :] < k, dist, inf), axis=1);\n", ""),
                         ("    at = where(m < best, k0 + a, at);\n    best = min(best, m);\n", ""),
                         ("store(which + i, at, mask=i < n);", "store(which + i, at + i32(sum(sums, axis=1)), mask=i < n);")])


@of("dots")
def chunk_state():
    Z, L, H, G, P, N, C = full((4, 4096, 64, 1, 64, 128, 256), (1, 128, 2, 1, 32, 16, 64))
    x, w = randn(Z, L, H, P, dtype=bf16), randn(Z, L, G, N, dtype=bf16)
    dt = rand(Z, H, L // C, C)
    da, o = (-0.01 * dt).cumsum(-1), result(Z, L // C, H, P, N)

    def ref():
        scale = torch.exp(da[..., -1:] - da) * dt                                                   # Z H chunks C
        xs = x.float().view(Z, L // C, C, H, P) * scale.permute(0, 2, 3, 1)[..., None]
        return torch.einsum("zclhp,zcln->zchpn", xs, w.float().view(Z, L // C, C, N))
    return both("dots", "chunk_state", lambda c: (cdiv(P, c["BP"]) * cdiv(N, c["BN"]), Z * (L // C), H),
                (x, w, dt, da, o, L, H, G, P, N, L // C),
                configs("BP BN BK STAGES warps", (64, 128, 32, 3, 4), (64, 128, 64, 3, 4), (64, 64, 32, 3, 4), (64, 64, 64, 3, 4),
                        (64, 128, 64, 3, 8),
                        (32, 64, 32, 4, 2), L=C),
                f"bf16 {Z} x {L}, {H} heads of {P}, {N} states", 2.0 * x.numel() + 4.0 * o[0].numel(),
                lambda k: [("states", o[k], ref(), 6e-3)],
                interpreted=False)


@of("recurrent")
def wkv6():
    Z, L, H, K, V = full((8, 512, 32, 64, 64), (2, 9, 2, 16, 16))
    r, k, v = (randn(Z, L, H, n, dtype=bf16, by=0.3) for n in (K, K, V))
    w, u, s0 = randn(Z, L, H, K), randn(H, K), randn(Z, H, K, V)
    s, o = inout(s0), result(Z, L, H, V, dtype=bf16)

    def checks(side):
        t, outs = s0.double(), []
        for i in range(L):
            kv = k[:, i].double()[..., None] * v[:, i].double()[..., None, :]
            outs.append(torch.einsum("zhk,zhkv->zhv", r[:, i].double(), t + u.double()[..., None] * kv))
            t = t * torch.exp(-torch.exp(w[:, i].double()))[..., None] + kv
        return [("out", o[side], torch.stack(outs, 1), 4e-3), ("state", s[side], t, 1e-4)]
    return both("recurrent", "wkv6", (H, Z), (r, k, v, w, u, s, o, L, H), configs("warps", (2,), (4,), (8,), (16,), K=K, V=V),
                f"bf16 {Z} x {L}, {H} heads of {K} x {V}", 2.0 * (r.numel() + k.numel() + v.numel() * 2) + 4.0 * w.numel(), checks)


@of("dots")
def blocks():
    R, N, S = full((64, 4096, 64), (4, 48, 16))
    there = rand(R, R) < 0.25
    start, at = F.pad(there.sum(1).cumsum(0), (1, 0)).to(i32), there.nonzero()[:, 1].to(i32).contiguous()
    val, w, o = randn(at.numel(), S, S, dtype=f16), randn(R * S, N, dtype=f16), result(R * S, N, dtype=f16)

    def ref():
        a = torch.zeros(R, S, R, S, device=D)
        a[there.nonzero()[:, 0], :, there.nonzero()[:, 1]] = val.float()
        return a.view(R * S, R * S) @ w.float()
    args = lambda k: (start, at, val, w, o[k], N)
    grid = lambda c: (R, cdiv(N, c["BN"]))
    return Case(f"f16 {at.numel()} blocks of {S} x {S}, N = {N}", 2.0 * at.numel() * S * S * N,
                configs("BN warps", (64, 4), (128, 4), (256, 4), (128, 8), (256, 8), S=S),
                lambda c: tile("dots", "blocks", grid(c), *args(0), **c),
                lambda c: jit("blocks", grid(c), *args(1), STAGES=3, **c), lambda k: [("out", o[k], ref(), 3e-3)], unit="TFLOP/s",
                bare=lambda c: without([("let k = load(at + e) * S + i;", "let k = (e - load(start + r)) * S + i;")], "dots", "blocks", grid(c),
                                       *args(0), **c))


FLAT = configs("BLOCK warps", (512, 4), (1024, 4), (1024, 2), (2048, 8), (2048, 4))      # of what has one element after the other
flat = lambda n: lambda c: cdiv(n, c["BLOCK"])


@of("elementwise")
def geglu():
    M, N = full((8192, 11008), (3, 1100))
    x, y = randn(M, 2 * N, dtype=bf16), result(M, N, dtype=bf16)

    def ref(x):
        gate, up = x.chunk(2, 1)
        return F.gelu(gate, approximate="tanh") * up
    return both("elementwise", "geglu", lambda c: (M, cdiv(N, c["BLOCK"])), (x, y, N), FLAT, f"bf16 {M} x {N}", 6.0 * M * N,
                lambda k: [("out", y[k], ref(x.float()), 4e-3)], lambda: ref(x))


@of("elementwise")
def swiglu_backward():
    n = full(8192 * 8192, 3333)
    d, g, u, dg, du = *(randn(n, dtype=bf16) for _ in range(3)), *(result(n, dtype=bf16) for _ in range(2))

    def ref():
        s = g.float().sigmoid()
        return d.float() * u.float() * s * (1 + g.float() * (1 - s))
    return both("elementwise", "swiglu_backward", flat(n), (d, g, u, dg, du, n), FLAT, f"bf16 {n}", 10.0 * n,
                lambda k: [("dgate", dg[k], ref(), 4e-3), ("dup", du[k], d.float() * F.silu(g.float()), 4e-3)])


@of("elementwise")
def gelu_backward():
    n = full(100_000_000, 3000)
    d, x, dx = randn(n, dtype=f16), randn(n, dtype=f16), result(n, dtype=f16)
    ref = lambda d, x: torch.ops.aten.gelu_backward(d, x)
    return both("elementwise", "gelu_backward", flat(n), (d, x, dx, n), FLAT, f"f16 {n}", 6.0 * n,
                lambda k: [("dx", dx[k], ref(d.float(), x.float()), 1e-3)],
                lambda: ref(d, x))


@of("elementwise")
def mish():
    n = full(1 << 26, 3000)
    x, y = randn(n, by=3.0), result(n)
    return both("elementwise", "mish", flat(n), (x, y, n), FLAT, f"f32 {n}", 8.0 * n, lambda k: [("out", y[k], F.mish(x.double()), 1e-5)],
                lambda: F.mish(x))


@of("elementwise")
def bn_hardswish():
    N, C, HW = full((64, 240, 56 * 56), (2, 5, 49))
    x, w, s, y, n = randn(N, C, HW, dtype=f16), randn(C), randn(C), result(N, C, HW, dtype=f16), N * C * HW
    ref = lambda x: F.hardswish(x * w[:, None] + s[:, None])
    return both("elementwise", "bn_hardswish", flat(n), (x, w, s, y, n, C, HW), FLAT, f"f16 {N} x {C} x {HW}", 4.0 * n,
                lambda k: [("out", y[k], ref(x.float()), 1e-3)])


@of("elementwise")
def bias_dropout_residual():
    (M, N), p = full((8192, 5120), (5, 300)), 0.2
    x, b, r, y = randn(M, N, dtype=bf16), randn(N, dtype=bf16), randn(M, N, dtype=bf16), result(M, N, dtype=bf16)

    def checks(k):
        kept = y[k] != r                                        # or nothing that r's rounding shows
        share = kept.double().mean().reshape(1)
        return [("out", y[k], torch.where(kept, r.float() + (x.float() + b.float()) / (1 - p), r.float()), 4e-3),
                ("share that is kept", share, torch.full_like(share, 1 - p), full(6e-3, 0.1))]
    return both("elementwise", "bias_dropout_residual", flat(M * N), (x, b, r, y, M * N, N, p, 77), FLAT, f"bf16 {M} x {N}", 6.0 * M * N,
                checks,
                lambda: r + F.dropout(x + b, p))


@of("elementwise")
def timestep_embedding():
    M, half = full((65536, 160), (3, 40))
    t, o = rand(M) * 1000, result(M, 2 * half, dtype=bf16)

    def ref():
        angle = t.double()[:, None] * torch.exp(-math.log(10000.0) * torch.arange(half, device=D, dtype=torch.float64) / half)
        return torch.cat((angle.cos(), angle.sin()), 1)
    return both("elementwise", "timestep_embedding", M, (t, o, half, 10000.0), configs("warps", (1,), (2,), (4,), BLOCK=256),
                f"bf16 {M} x {2 * half}",
                2.0 * o[0].numel(), lambda k: [("out", o[k], ref(), 4e-3)])


@of("elementwise")
def softcap_mask():
    n = full(16 * 2048 * 2048, 3000)
    x, m, y = randn(n, by=20.0), randint(0, 2, n, dtype=u8), result(n)
    ref = lambda: torch.where(m != 0, 50.0 * torch.tanh(x * 0.5 / 50.0), -math.inf)

    def checks(k):
        out = y[k].nan_to_num(nan=math.nan, neginf=-1e3)
        return [("out", out, ref().nan_to_num(neginf=-1e3), 1e-5)]
    return both("elementwise", "softcap_mask", flat(n), (x, m, y, n, 0.5, 50.0), FLAT, f"f32 {n}", 9.0 * n, checks, ref)


@of("quant")
def silu_mul_quant():
    M, N = full((8192, 14336), (3, 200))
    x, q, s = randn(M, 2 * N, dtype=bf16), result(M, N, dtype=f8), result(M)

    def checks(k):
        v = F.silu(x[:, :N].float()) * x[:, N:].float()
        sc = v.abs().amax(1) / 448
        return [("scale", s[k], sc, 1e-5), ("q", q[k], (v / sc[:, None]).to(f8).float(), 2e-3)]
    return both("quant", "silu_mul_quant", M, (x, q, s, N), configs("warps", (4,), (8,), (16,), (32,), BLOCK=full(16384, 256)),
                f"bf16 {M} x {N} to f8e4m3",
                5.0 * M * N, checks, interpreted=False)


@of("quant")
def group_quant():
    M, N = full((8192, 7168), (3, 384))
    x, q, s = randn(M, N, dtype=f16), result(M, N, dtype=i8, fill=0), result(M, N // 128)

    def checks(k):
        v = x.float().view(M, N // 128, 128)
        sc = v.abs().amax(2) / 127
        return [("scale", s[k], sc, 1e-5), ("q", q[k], (v / sc[..., None]).round().view(M, N), 2e-3)]
    return both("quant", "group_quant", lambda c: cdiv(M * N // 128, c["ROWS"]), (x, q, s, M * N // 128),
                configs("ROWS warps", (4, 1), (8, 2), (8, 4), (16, 4), (32, 4), (32, 8), G=128), f"f16 {M} x {N}, groups of 128, to i8",
                3.0 * M * N, checks)


@of("quant")
def dequant_sums():
    M, N = full((8192, 11008), (20, 300))
    x, r, c, b, y = randint(-100000, 100000, M, N), rand(M) * 1e-2, rand(N) * 1e-2, randn(N, dtype=f16), result(M, N, dtype=f16)
    return both("quant", "dequant_sums", lambda g: (cdiv(M, g["BM"]), cdiv(N, g["BN"])), (x, r, c, b, y, M, N),
                configs("BM BN warps", (16, 128, 4), (4, 256, 4), (8, 256, 4), (1, 1024, 4), (32, 64, 4), (16, 256, 8)),
                f"i32 {M} x {N} to f16", 6.0 * M * N,
                lambda k: [("out", y[k], x.float() * r[:, None] * c + b.float(), 1e-3)])


@of("quant")
def dequant_int4():
    K, N, G = full((8192, 28672, 128), (256, 72, 128))
    w = randint(-2**31, 2**31 - 1, K // 8, N)
    s, z, y = randn(K // G, N, dtype=f16), randint(0, 16, K // G, N).to(f16), result(K, N, dtype=f16)

    def ref():
        v = (w[:, None] >> (4 * torch.arange(8, device=D, dtype=i32))[None, :, None]) & 15
        return (v.view(K // G, G, N).to(f16) - z[:, None]).float() * s[:, None].float()
    return both("quant", "dequant_int4", lambda g: (cdiv(K, g["BK"]), cdiv(N, g["BN"])), (w, s, z, y, K, N),
                configs("BK BN warps", (64, 64, 4), (32, 128, 4), (64, 128, 4), (16, 256, 4), (128, 64, 4), (8, 256, 4), G=G),
                f"i4 {K} x {N}, groups of {G}, to f16",
                2.5 * K * N, lambda k: [("out", y[k].view(K // G, G, N), ref(), 1e-3)])


@of("quant")
def dequant_table():
    n = full(4096 * 14336 // 2, 3200)
    q, t, most, y = randint(0, 256, n, dtype=u8), randn(16), rand(n // 32), result(2 * n, dtype=bf16)
    ref = lambda: (t[torch.stack((q >> 4, q & 15), 1).long()].view(-1, 64) * most[:, None]).view(-1)
    return both("quant", "dequant_table", flat(n), (q, t, most, y, n), [dict(c, B=64) for c in FLAT],
                f"4 bits by a table, {2 * n}, to bf16", 5.0 * n,
                lambda k: [("out", y[k], ref(), 4e-3)])


@of("optimisers")
def lion():
    n = full(50_000_000, 3000)
    p0, g, m0 = randn(n), randn(n, dtype=bf16), randn(n)
    p, m = inout(p0), inout(m0)
    lr, b1, b2, decay = 1e-2, 0.9, 0.99, 0.1
    new = lambda: p0 * (1 - lr * decay) - lr * torch.sign(b1 * m0 + (1 - b1) * g.float())
    return both("optimisers", "lion", flat(n), (p, g, m, n, lr, b1, b2, decay), FLAT, f"f32 {n}", 18.0 * n,
                lambda k: [("weights", p[k], new(), 1e-5), ("momentum", m[k], b2 * m0 + (1 - b2) * g.float(), 1e-6)])


@of("optimisers")
def sgd():
    n = full(50_000_000, 3000)
    p0, g, m0 = randn(n), randn(n), randn(n)
    p, m = inout(p0), inout(m0)
    lr, mu, decay = 1e-2, 0.9, 1e-2
    d = lambda: g + decay * p0
    return both("optimisers", "sgd", flat(n), (p, g, m, n, lr, mu, decay), FLAT, f"f32 {n}", 20.0 * n,
                lambda k: [("momentum", m[k], mu * m0 + d(), 1e-6), ("weights", p[k], p0 - lr * (d() + mu * (mu * m0 + d())), 1e-6)])


@of("optimisers")
def adam_8bit():
    n, B = full(50_000_128, 3000), 256
    blocks = cdiv(n, B)
    p0, g = randn(n), randn(n, dtype=bf16)
    q1, s1, q2, s2 = (inout(t) for t in (randint(-127, 128, n).to(i8), rand(blocks) * 1e-3, randint(0, 256, n).to(u8), rand(blocks) * 1e-3))
    before = [t[0].clone() for t in (q1, s1, q2, s2)]
    p, (lr, b1, b2, eps, c1, c2) = inout(p0), (1e-3, 0.9, 0.95, 1e-8, 0.5, 0.3)

    def checks(k):
        scale = lambda s: s.repeat_interleave(B)[:n]
        m = b1 * before[0].float() * scale(before[1]) + (1 - b1) * g.float()
        v = b2 * (before[2].float() * scale(before[3])).square() + (1 - b2) * g.float().square()
        most = lambda x: F.pad(x, (0, blocks * B - n)).view(blocks, B).amax(1)
        return [("weights", p[k], p0 - lr * (m / c1) / ((v / c2).sqrt() + eps), 1e-5), ("first scale", s1[k], most(m.abs()) / 127, 1e-5),
                ("second scale", s2[k], most(v.sqrt()) / 255, 1e-5), ("first", q1[k].float() * scale(s1[k]), m, 1e-2),
                ("second", q2[k].float() * scale(s2[k]), v.sqrt(), 1e-2)]
    return both("optimisers", "adam_8bit", blocks, (p, g, q1, s1, q2, s2, n, lr, b1, b2, eps, c1, c2),
                configs("warps", (1,), (2,), (4,), (8,), B=B),
                f"f32 {n}, blocks of {B}", 14.0 * n, checks)


@of("norms")
def l2_norm():
    M, N = full((65536, 768), (5, 200))
    x, y = randn(M, N, dtype=bf16), result(M, N, dtype=bf16)
    return both("norms", "l2_norm", M, (x, y, N, 1e-6), configs("warps", (1,), (2,), (4,), BLOCK=full(1024, 256)), f"bf16 {M} x {N}",
                4.0 * M * N,
                lambda k: [("out", y[k], x.float() * (x.float().square().sum(1, keepdim=True) + 1e-6).rsqrt(), 4e-3)],
                lambda: F.normalize(x, dim=1))


@of("norms")
def group_norm_backward():
    N, C, HW, G = full((16, 512, 56 * 56, 32), (2, 12, 45, 2))
    x, d, w = randn(N, C, HW, dtype=f16), randn(N, C, HW, dtype=f16), randn(C)
    per = lambda t: t.float().view(N, G, -1)
    mean = per(x).mean(2).contiguous()
    rstd = (per(x).var(2, correction=0) + 1e-5).rsqrt()
    dx, dw, db = result(N, C, HW, dtype=f16), result(N, C), result(N, C)

    def checks(k):
        h = (per(x) - mean[..., None]) * rstd[..., None]
        wd = per(d.float() * w[:, None])
        ref = (wd - h * (wd * h).mean(2, keepdim=True) - wd.mean(2, keepdim=True)) * rstd[..., None]
        return [("dx", dx[k], ref.view(N, C, HW), 2e-3), ("dweight", dw[k], (d.float() * h.view(N, C, HW)).sum(2), 1e-4),
                ("dbias", db[k], d.float().sum(2), 1e-4)]
    return both("norms", "group_norm_backward", (G, N), (d, x, w, mean, rstd, dx, dw, db, C, HW, G),
                configs("BLOCK warps", (128, 4), (256, 4), (256, 8), (512, 8), (512, 16), BC=16), f"f16 {N} x {C} x {HW}, {G} groups",
                6.0 * x.numel(), checks)


@of("norms")
def instance_norm():
    N, C, HW = full((32, 256, 56 * 56), (2, 3, 200))
    x, w, b, y = randn(N, C, HW, dtype=f16), randn(C), randn(C), result(N, C, HW, dtype=f16)
    return both("norms", "instance_norm", N * C, (x, w, b, y, C, HW, 1e-5), configs("warps", (4,), (8,), (16,), BLOCK=full(4096, 256)),
                f"f16 {N} x {C} x {HW}",
                4.0 * x.numel(), lambda k: [("out", y[k], F.instance_norm(x.float(), weight=w, bias=b), 1e-3)],
                lambda: F.instance_norm(x, weight=w.half(), bias=b.half()))


@of("norms")
def batch_norm_stats():
    M, C = full((64 * 56 * 56, 320), (300, 40))
    x, s, q = randn(M, C, dtype=bf16), result(C, fill=0.0), result(C, fill=0.0)
    return both("norms", "batch_norm_stats", lambda c: (cdiv(C, c["BC"]), cdiv(M, c["ROWS"])), (x, s, q, M, C),
                configs("ROWS BM BC warps", (256, 16, 64, 4), (512, 32, 64, 4), (1024, 32, 64, 8), (512, 16, 128, 4), (1024, 64, 64, 8)),
                f"bf16 {M} x {C}",
                2.0 * M * C, lambda k: [("sums", s[k], x.double().sum(0), 1e-3), ("squares", q[k], x.double().square().sum(0), 1e-5)])


@of("norms")
def weight_norm():
    M, N = full((16384, 5000), (4, 2500))
    v, g, w, r = randn(M, N), rand(M), result(M, N), result(M)
    norm = lambda: v.double().norm(dim=1)
    return both("norms", "weight_norm", M, (v, g, w, r, N), configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)),
                f"f32 {M} x {N}",
                8.0 * M * N, lambda k: [("out", w[k], v * (g / norm())[:, None], 1e-5), ("norms", r[k], norm(), 1e-5)])


@of("norms")
def rms_norm_gated():
    M, N, G = full((8192, 6144, 8), (3, 400, 2))
    x, z, w, y = randn(M, N, dtype=bf16), randn(M, N, dtype=bf16), randn(N, dtype=bf16), result(M, N, dtype=bf16)

    def ref():
        v = (x.float() * F.silu(z.float())).view(M, G, N // G)
        return (v * (v.square().mean(2, keepdim=True) + 1e-5).rsqrt()).view(M, N) * w.float()
    return both("norms", "rms_norm_gated", (M, G), (x, z, w, y, N, N // G, 1e-5),
                configs("warps", (1,), (2,), (4,), (8,), BLOCK=full(1024, 256)),
                f"bf16 {M} x {N}, {G} groups", 6.0 * M * N, lambda k: [("out", y[k], ref(), 4e-3)])


@of("folds")
def cummax_rows():
    M, N = full((8192, 5000), (3, 1500))
    x, y, at = randn(M, N), result(M, N), result(M, N, dtype=i32, fill=0)
    return both("norms", "cummax_rows", M, (x, y, at, N), configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 8)),
                f"f32 {M} x {N}", 12.0 * M * N,
                lambda k: [("values", y[k], x.cummax(1)[0], 1e-9), ("places", at[k], x.cummax(1)[1], 1e-9)], lambda: torch.cummax(x, 1))


@of("losses")
def kl_rows():
    M, N = full((4096, 50257), (3, 3000))
    t, s, o = randn(M, N, dtype=bf16, by=2.0), randn(M, N, dtype=bf16, by=2.0), result(M)
    ref = lambda t, s: F.kl_div(F.log_softmax(s, 1), F.log_softmax(t, 1), reduction="none", log_target=True).sum(1)
    return both("losses", "kl_rows", M, (t, s, o, N), configs("BLOCK warps", (1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 16)),
                f"bf16 {M} x {N}", 4.0 * M * N,
                lambda k: [("loss", o[k], ref(t.float(), s.float()), 1e-4)], lambda: ref(t, s))


@of("losses")
def focal():
    n = full(64 * 76725 * 10, 3000)
    x, t, o, dx = randn(n, by=2.0), (rand(n) < 0.1).float(), result(n), result(n)

    def ref():
        v = x.double().requires_grad_()
        y, p = t.double(), v.sigmoid()
        pt = p * y + (1 - p) * (1 - y)
        loss = (0.25 * y + 0.75 * (1 - y)) * (1 - pt) ** 2 * F.binary_cross_entropy_with_logits(v, y, reduction="none")
        return loss.detach(), torch.autograd.grad(loss.sum(), v)[0]

    def checks(k):
        loss, grad = ref()
        return [("loss", o[k], loss, 1e-5), ("dx", dx[k], grad, 1e-5)]
    return both("losses", "focal", flat(n), (x, t, o, dx, n, 0.25), FLAT, f"f32 {n}", 16.0 * n, checks)


@of("losses")
def bce_rows():
    M, N = full((16384, 9605), (3, 2500))
    x, t, w, o = randn(M, N, dtype=bf16), randint(0, 2, M, N, dtype=u8), rand(N) * 5, result(M)
    ref = lambda: F.binary_cross_entropy_with_logits(x.float(), t.float(), pos_weight=w, reduction="none").mean(1)
    return both("losses", "bce_rows", M, (x, t, w, o, N), configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)),
                f"bf16 {M} x {N}", 3.0 * M * N,
                lambda k: [("loss", o[k], ref(), 1e-4)])


@of("losses")
def huber():
    n = full(100_000_000, 3000)
    x, t, parts, dx = randn(n, dtype=f16), randn(n, dtype=f16), result(cdiv(n, 512), fill=0.0), result(n, dtype=f16)
    d = lambda: x.float() - t.float()
    return both("losses", "huber", flat(n), (x, t, parts, dx, n, 1.0), FLAT, f"f16 {n}", 6.0 * n,
                lambda k: [("loss", parts[k].double().sum().reshape(1), F.huber_loss(x.float(), t.float(), reduction="sum").reshape(1),
                            1e-4),
                           ("dx", dx[k], d().clamp(-1, 1), 1e-3)])


@of("losses")
def triplet():
    M, N, B = *full((200_000, 200), (10, 50)), full(256, 64)
    a, p, q, o = randn(M, N), randn(M, N), randn(M, N), result(M)
    ref = lambda: F.triplet_margin_loss(a, p, q, margin=1.0, reduction="none")
    return both("losses", "triplet", lambda c: cdiv(M, c["BM"]), (a, p, q, o, M, N, 1.0),
                configs("BM warps", (1, 1), (2, 2), (4, 4), (4, 2), (8, 4), (16, 8), BN=B),
                f"f32 {M} x {N}", 12.0 * M * N, lambda k: [("loss", o[k], ref(), 1e-4)], ref)


@of("losses")
def linear_ce_chunk():
    (M, N), smoothing = full((2048, 128256), (3, 3000)), 0.1
    x0, t, o = randn(M, N, dtype=bf16, by=2.0), randint(0, N, M, dtype=i64), result(M)
    x = inout(x0)

    def checks(k):
        v = x0.float()
        d = torch.softmax(v, 1) - smoothing / N
        d[torch.arange(M, device=D), t] -= 1 - smoothing
        return [("loss", o[k], F.cross_entropy(v, t, label_smoothing=smoothing, reduction="none"), 1e-4), ("derivative", x[k], d / M, 4e-3)]
    return both("losses", "linear_ce_chunk", M, (x, t, o, N, smoothing, 1 / M),
                configs("BLOCK warps", (2048, 4), (4096, 8), (8192, 8), (8192, 16), (32768, 32)),
                f"bf16 {M} x {N}", 6.0 * M * N, checks)


@of("indexing")
def embedding_backward():
    M, N, V = full((16384, 2560, 32000), (20, 300, 9))
    d, idx, dw = randn(M, N, dtype=bf16), randint(0, V, M, dtype=i64), result(V, N, fill=0.0)

    def ref():
        t = torch.zeros(V, N, device=D).index_add_(0, idx, d.float())
        t[1] = 0
        return t
    return both("indexing", "embedding_backward", lambda c: (M, cdiv(N, c["BLOCK"])), (d, idx, dw, N, 1),
                configs("BLOCK warps", (256, 1), (512, 2), (512, 4), (1024, 4), (1024, 8)), f"bf16 {M} x {N} into {V}", 6.0 * M * N,
                lambda k: [("dweight", dw[k], ref(), 1e-5)], lambda: torch.ops.aten.embedding_dense_backward(d, idx, V, 1, False))


@of("indexing")
def moe_combine():
    M, N, K = full((8192, 2880, 4), (5, 300, 2))
    x, w, y = randn(M * K, N, dtype=bf16), rand(M, K), result(M, N, dtype=bf16)
    row = torch.randperm(M * K, device=D).to(i32).view(M, K)
    ref = lambda: sum(w[:, j, None] * x[row[:, j].long()].float() for j in range(K))
    return both("indexing", "moe_combine", lambda c: (M, cdiv(N, c["BLOCK"])), (x, row, w, y, N),
                configs("BLOCK warps", (256, 1), (512, 2), (512, 4), (1024, 4), (2048, 8), K=K), f"bf16 {M} x {N}, {K} experts",
                2.0 * (K + 1) * M * N,
                lambda k: [("out", y[k], ref(), 4e-3)])


@of("indexing")
def kv_write():
    M, H, W, PAGES = full((8192, 8, 128, 1024), (5, 2, 32, 3))
    key, value = randn(M, H, W, dtype=bf16), randn(M, H, W, dtype=bf16)
    ks, vs = torch.full((1,), 0.25, device=D), torch.full((1,), 0.5, device=D)
    slots = torch.randperm(PAGES * 16, device=D)[:M].to(i64)
    slots[1] = -1
    kc, vc = (result(PAGES * 16 * H * W, dtype=u8, fill=0) for _ in range(2))
    as_f8 = lambda pair: [t.view(f8) for t in pair]

    def checks(k):
        kr, vr, there = torch.zeros(PAGES, H, W // 16, 16, 16, device=D), torch.zeros(PAGES, H, W, 16, device=D), slots >= 0
        page, at = slots[there] // 16, slots[there] % 16
        kr[page, :, :, at] = (key[there].float() / 0.25).to(f8).float().view(-1, H, W // 16, 16)
        vr[page, :, :, at] = (value[there].float() / 0.5).to(f8).float()
        return [("keys", kc[k].view(f8).float(), kr.view(-1), 1e-6), ("values", vc[k].view(f8).float(), vr.view(-1), 1e-6)]
    return both("indexing", "kv_write", M, (key, value, as_f8(kc), as_f8(vc), slots, ks, vs, H),
                configs("warps", (1,), (2,), (4,), (8,), D=W, BLOCK=full(1024, 64), PAGE=16, X=16),
                f"bf16 {M} tokens, {H} heads of {W}, to f8e4m3",
                6.0 * M * H * W, checks, interpreted=False)


@of("indexing")
def penalties():
    M, N = full((256, 151936), (3, 3000))
    x0, n, r, f, p = randn(M, N, by=3.0), randint(0, 3, M, N), 1 + rand(M), rand(M), rand(M)
    x = inout(x0)

    def ref():
        v = torch.where(n > 0, torch.where(x0 > 0, x0 / r[:, None], x0 * r[:, None]), x0)
        return v - f[:, None] * n - torch.where(n > 0, p[:, None], 0.0)
    return both("indexing", "penalties", lambda c: (M, cdiv(N, c["BLOCK"])), (x, n, r, f, p, N), FLAT, f"f32 {M} x {N}", 12.0 * M * N,
                lambda k: [("out", x[k], ref(), 1e-6)])


@of("indexing")
def gate_topk():
    M, E, K = full((32768, 128, 8), (9, 16, 4))
    x, w, at = randn(M, E), result(M, K), result(M, K, dtype=i32, fill=0)

    def checks(k):
        v = torch.softmax(x, 1).topk(K)[0]
        return [("weights", w[k], v / v.sum(1, keepdim=True), 1e-5),
                ("logits there", x.gather(1, at[k].long().clamp(0, E - 1)), x.topk(K)[0], 1e-5)]
    return both("indexing", "gate_topk", lambda c: cdiv(M, c["ROWS"]), (x, w, at, M),
                configs("ROWS warps", (1, 1), (4, 1), (4, 4), (8, 4), (16, 4), (32, 4), E=E, K=K), f"f32 {K} of {M} x {E}",
                4.0 * M * E + 8.0 * M * K, checks)


@of("indexing")
def top_p_mask():
    M, N, P = full((4096, 2000, 0.9), (3, 200, 0.9))
    x, y = randn(M, N, by=3.0), result(M, N)

    def checks(k):
        s, at = torch.softmax(x.double(), 1).sort(1, descending=True)
        kept = torch.zeros(M, N, device=D, dtype=torch.bool).scatter_(1, at, s.cumsum(1) - s < P)
        return [("out", y[k].clamp(min=-100), torch.where(kept, x, -100.0), 1e-2)]
    return both("indexing", "top_p_mask", M, (x, y, N, P), configs("warps", (4,), (8,), (16,), BLOCK=full(2048, 256)), f"f32 {M} x {N}",
                8.0 * M * N, checks)


@of("folds")
def var_mean():
    M, N = full((16384, 5120), (3, 1500))
    x, mean, var = randn(M, N, dtype=bf16), result(M), result(M)
    x += 3
    return both("folds", "var_mean", M, (x, mean, var, N), configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)),
                f"bf16 {M} x {N}", 2.0 * M * N,
                lambda k: [("mean", mean[k], x.float().mean(1), 1e-5), ("variance", var[k], x.float().var(1, correction=0), 1e-4)],
                lambda: torch.var_mean(x, 1))


@of("folds")
def row_flags():
    M, N = full((16384, 7000), (6, 1500))
    x, t, n = torch.relu(randn(M, N)), result(M), result(M, dtype=i32, fill=9)
    bad, pos = (result(M, dtype=i8, fill=9) for _ in range(2))
    x[::2, 7], x[1::3, 9] = math.nan, -1.0
    return both("folds", "row_flags", M, (x, t, n, bad, pos, N),
                configs("BLOCK warps", (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 8)), f"f32 {M} x {N}", 4.0 * M * N,
                lambda k: [("sums", t[k], x.nansum(1), 1e-5), ("counts", n[k], (x != 0).sum(1), 1e-9),
                           ("nans", bad[k], x.isnan().any(1), 1e-9),
                           ("positive", pos[k], ~(x < 0).any(1), 1e-9)])


@of("folds")
def logsumexp_cols():
    M, N = full((8192, 5120), (60, 100))
    x, y = randn(M, N, by=3.0), result(N)
    return both("folds", "logsumexp_cols", lambda c: cdiv(N, c["BN"]), (x, y, M, N),
                configs("BM BN warps", (16, 64, 4), (32, 32, 4), (64, 16, 4), (128, 16, 8), (64, 32, 8), (128, 8, 8)),
                f"f32 {M} x {N} over 0", 4.0 * M * N,
                lambda k: [("out", y[k], x.logsumexp(0), 1e-5)], lambda: torch.logsumexp(x, 0))


@of("folds")
def cdist_l1():
    M, N, W = full((8192, 4096, 100), (70, 50, 9))
    a, b, y = randn(M, W), randn(N, W), result(M, N)
    return both("folds", "cdist_l1", lambda c: (cdiv(M, c["BM"]), cdiv(N, c["BN"])), (a, b, y, M, N, W),
                configs("BM BN warps", (32, 64, 4), (64, 64, 4), (64, 64, 8), (64, 128, 8), (128, 64, 4)), f"f32 {M} x {N} rows of {W}",
                2.0 * M * N * W,
                lambda k: [("out", y[k], torch.cdist(a, b, p=1), 1e-5)], lambda: torch.cdist(a, b, p=1), unit="TFLOP/s")


PIXELS = configs("BLOCK warps", (256, 2), (256, 4), (512, 4), (1024, 4), (1024, 8))


@of("images")
def max_pool2d():
    N, H, W = full((64 * 64, 112, 112), (3, 13, 18))
    OH, OW = (H - 1) // 2 + 1, (W - 1) // 2 + 1
    x, y = randn(N, H, W, dtype=f16), result(N, OH, OW, dtype=f16)
    return both("images", "max_pool2d", lambda c: (cdiv(OH * OW, c["BLOCK"]), N), (x, y, H, W, OH, OW), PIXELS,
                f"f16 {N} planes of {H} x {W}",
                2.0 * x.numel() + 2.0 * y[0].numel(), lambda k: [("out", y[k], F.max_pool2d(x.float(), 3, 2, 1), 1e-9)],
                lambda: F.max_pool2d(x, 3, 2, 1))


@of("images")
def upsample_bilinear():
    N, H, W, OH, OW = full((8 * 256, 68, 120, 136, 240), (3, 9, 11, 20, 30))
    x, y = randn(N, H, W, dtype=f16), result(N, OH, OW, dtype=f16)
    ref = lambda x: F.interpolate(x[None], (OH, OW), mode="bilinear", align_corners=False)[0]
    return both("images", "upsample_bilinear", lambda c: (cdiv(OH * OW, c["BLOCK"]), N), (x, y, H, W, OH, OW), PIXELS,
                f"f16 {N} planes, {H} x {W} to {OH} x {OW}",
                2.0 * x.numel() + 2.0 * y[0].numel(), lambda k: [("out", y[k], ref(x.float()), 1e-3)], lambda: ref(x))


@of("images")
def depthwise_conv2d():
    N, H, W, C, K = full((32, 56, 56, 192, 7), (2, 6, 9, 20, 3))
    x, w, b, y = randn(N, H, W, C, dtype=f16), randn(K * K, C, dtype=f16), randn(C, dtype=f16), result(N, H, W, C, dtype=f16)

    def ref():
        taps = w.float().T.reshape(C, 1, K, K)
        return F.relu(F.conv2d(x.float().permute(0, 3, 1, 2), taps, b.float(), padding=K // 2, groups=C)).permute(0, 2, 3, 1)
    return both("images", "depthwise_conv2d", lambda c: (cdiv(C, c["BC"]), cdiv(W, c["BW"]), N * H), (x, w, b, y, H, W, C),
                configs("BW BC warps", (8, 64, 2), (16, 64, 4), (8, 128, 4), (32, 32, 4), (64, 32, 8), K=K),
                f"f16 {N} x {H} x {W} x {C}, {K} x {K} taps",
                4.0 * x.numel(), lambda k: [("out", y[k], ref(), 1e-3)])


@of("images")
def rgb_to_yuv():
    n = full(16 * 1080 * 1920, 3001)
    x, y = randint(0, 256, n, 3, dtype=u8), result(3, n, dtype=u8, fill=7)

    def ref():
        r, g, b = x.float().unbind(1)
        luma = 0.299 * r + 0.587 * g + 0.114 * b
        return torch.stack((luma + 0.5, 0.492 * (b - luma) + 128.5, 0.877 * (r - luma) + 128.5)).clamp(0, 255).floor()
    return both("images", "rgb_to_yuv", flat(n), (x, y, n), FLAT, f"u8 {n} pixels", 6.0 * n, lambda k: [("out", y[k], ref(), 1e-3)])


@of("images")
def im2col():
    N, C, H, W = full((16, 96, 55, 55), (2, 3, 7, 9))
    x, y = randn(N, C, H, W, dtype=f16), result(N, C * 9, H * W, dtype=f16)
    return both("images", "im2col", lambda c: (cdiv(H * W, c["BLOCK"]), C * 9, N), (x, y, H, W), [dict(c, K=3) for c in PIXELS],
                f"f16 {N} x {C} x {H} x {W}, 3 x 3",
                2.0 * x.numel() + 2.0 * y[0].numel(), lambda k: [("out", y[k], F.unfold(x.float(), 3, padding=1), 1e-9)],
                lambda: F.unfold(x, 3, padding=1))


tiles_of = lambda M, N: lambda c: cdiv(M, c["BM"]) * cdiv(N, c["BN"])


@of("products")
def lora():
    M, N, K, R = full((8192, 4096, 4096, 16), (70, 100, 130, 16))
    x, a, b, base, y = (randn(M, K, dtype=bf16), randn(R, K, dtype=bf16, by=K**-0.5), randn(N, R, dtype=bf16), randn(M, N, dtype=bf16),
                        result(M, N, dtype=bf16))
    ref = lambda: base.float() + (2 * x.float() @ a.float().T).bfloat16().float() @ b.float().T
    return both("products", "lora", lambda c: cdiv(M, c["BM"]), (x, a, b, base, y, M, N, K, 2.0),
                configs("BM BN BK STAGES warps", (64, 128, 64, 3, 4), (32, 128, 128, 3, 4), (16, 256, 128, 4, 4), (64, 64, 64, 4, 4),
                        (32, 256, 64, 3, 8), R=R),
                f"bf16 {M} x {N} x {K}, rank {R}", 2.0 * (M * K + 2 * M * N), lambda k: [("out", y[k], ref(), 6e-3)],
                lambda: base + 2 * (x @ a.T) @ b.T,
                interpreted=False)


@of("products")
def linear_relu_residual():
    M, N, K = full((8192, 5120, 1280), (70, 100, 130))
    x, w, b, r = randn(M, K, dtype=f16), randn(K, N, dtype=f16, by=K**-0.5), randn(N, dtype=f16), randn(M, N, dtype=f16)
    y = result(M, N, dtype=f16)
    ref = lambda t: r.to(t) + F.relu(x.to(t) @ w.to(t) + b.to(t))
    return both("products", "linear_relu_residual", tiles_of(M, N), (x, w, b, r, y, M, N, K),
                configs("BM BN BK STAGES warps", (128, 128, 32, 4, 4), (128, 128, 64, 3, 8), (64, 128, 64, 3, 4), (128, 256, 64, 3, 8),
                        (128, 64, 64, 4, 4)),
                f"f16 {M} x {N} x {K}", 2.0 * M * N * K, lambda k: [("out", y[k], ref(f32), 2e-3)], lambda: ref(f16), unit="TFLOP/s",
                company=[("  acc = max(acc + f32(load(bias + n, mask=n < N)), 0.0);\n", ""),
                         ("acc + f32(load(residual + m * N + n, mask=inside))", "acc")])


@of("products")
def gated_mlp():
    M, N, K = full((4096, 11008, 4096), (70, 100, 130))
    x, g, u, y = randn(M, K, dtype=bf16), randn(N, K, dtype=bf16, by=K**-0.5), randn(N, K, dtype=bf16, by=K**-0.5), result(M, N, dtype=bf16)
    ref = lambda t: F.silu(x.to(t) @ g.to(t).T) * (x.to(t) @ u.to(t).T)
    return both("products", "gated_mlp", tiles_of(M, N), (x, g, u, y, M, N, K),
                configs("BM BN BK STAGES warps", (128, 64, 64, 3, 4), (64, 64, 64, 3, 4), (128, 128, 32, 3, 8), (128, 128, 64, 3, 8),
                        (64, 128, 64, 3, 4)),
                f"bf16 {M} x {N} x {K}", 4.0 * M * N * K, lambda k: [("out", y[k], ref(f32), 6e-3)], lambda: ref(bf16), unit="TFLOP/s",
                interpreted=False, company=[("silu(gate) * up", "gate + up")])


@of("products")
def int8_matmul():
    M, N, K = full((4096, 6144, 4096), (70, 100, 160))
    x, w, y = randint(-127, 128, M, K).to(i8), randint(-127, 128, N, K).to(i8), result(M, N, dtype=f16)
    sx, sw = rand(M) * 1e-3, rand(N) * 1e-1
    ref = lambda: (x.double() @ w.double().T).float() * sx[:, None] * sw
    return both("products", "int8_matmul", tiles_of(M, N), (x, w, sx, sw, y, M, N, K),
                configs("BM BN BK STAGES warps", (128, 128, 64, 3, 4), (128, 128, 128, 3, 8), (128, 256, 64, 3, 8), (64, 128, 128, 3, 4),
                        (128, 64, 128, 4, 4), (128, 128, 128, 2, 8), (128, 256, 128, 3, 8)),
                f"i8 {M} x {N} x {K}", 2.0 * M * N * K, lambda k: [("out", y[k], ref(), 1e-3)], unit="TFLOP/s",
                company=[("  let s = load(sx + m, mask=m < M)[:, None] * load(sw + n, mask=n < N)[None, :];\n", ""), ("f32(acc) * s", "acc")])


@of("products")
def conv1x1():
    Z, C, O, HW = full((64, 256, 512, 28 * 28), (2, 40, 70, 49))
    x, w, b, y = randn(Z, C, HW, dtype=f16), randn(O, C, dtype=f16, by=C**-0.5), randn(O), result(Z, O, HW, dtype=f16)
    return both("products", "conv1x1", lambda c: (cdiv(O, c["BM"]), cdiv(HW, c["BN"]), Z), (x, w, b, y, C, O, HW),
                configs("BM BN BK STAGES warps", (64, 128, 32, 3, 4), (128, 128, 32, 3, 4), (128, 64, 64, 3, 4), (128, 128, 64, 3, 8),
                        (64, 64, 64, 3, 4)),
                f"f16 {Z} x {C} x {HW} to {O}", 2.0 * Z * C * O * HW, lambda k: [("out", y[k], w.float() @ x.float() + b[:, None], 2e-3)],
                lambda: F.conv1d(x, w[..., None], b.half()), unit="TFLOP/s",
                company=[("  acc += load(bias + o, mask=o < O)[:, None];\n", "")])


@of("products")
def window_decode():
    Z, T, H, G, W, WINDOW = full((64, 4096, 8, 16, 128, 1024), (2, 90, 2, 16, 32, 40))
    q, o = randn(Z, H, G, W, dtype=bf16), result(Z, H, G, W, dtype=bf16)
    key, value = randn(Z, T, H, W, dtype=bf16), randn(Z, T, H, W, dtype=bf16)
    lens = randint(T // 8, T + 1, Z)

    def ref():
        t = torch.arange(T, device=D)[None]
        there = (t < lens[:, None]) & (t >= lens[:, None] - WINDOW)
        s = torch.einsum("zhgd,zthd->zhgt", q.float(), key.float()) * W**-0.5
        return torch.einsum("zhgt,zthd->zhgd", torch.softmax(s.masked_fill(~there[:, None, None], -math.inf), -1), value.float())
    read = float(lens.clamp(max=WINDOW).sum()) * H * W * 4
    return both("products", "window_decode", (H, Z), (q, key, value, o, lens, T, H, W**-0.5),
                configs("BN STAGES warps", (64, 2, 4), (64, 3, 4), (128, 2, 4), (32, 4, 2), (128, 2, 8), WINDOW=WINDOW, G=G, D=W),
                f"bf16 {Z} of up to {T}, {H} heads of {W}, {G} queries, window {WINDOW}", read, lambda k: [("out", o[k], ref(), 8e-3)],
                interpreted=False)


@of("products")
def alibi_scores():
    Z, H, T, W = full((4, 16, 2000, 64), (1, 2, 70, 16))
    q, key, s = randn(Z * H, T, W, dtype=f16), randn(Z * H, T, W, dtype=f16), result(Z * H, T, T, dtype=f16)
    slopes = torch.exp2(-8.0 * torch.arange(1, H + 1, device=D) / H)

    def checks(k):
        t = torch.arange(T, device=D)
        v = q.float() @ key.float().transpose(1, 2) * W**-0.5 - slopes.repeat(Z)[:, None, None] * (t[:, None] - t)
        return [("scores", s[k].clamp(min=-6e4), v.masked_fill(t[:, None] < t, -6e4), 1e-3), ("lower half", s[k].tril(), v.tril(), 2e-3)]
    return both("products", "alibi_scores", lambda c: (cdiv(T, c["BM"]), cdiv(T, c["BN"]), Z * H), (q, key, slopes, s, T, H, W**-0.5),
                configs("BM BN warps", (64, 64, 4), (128, 64, 4), (64, 128, 4), (128, 128, 8), D=W),
                f"f16 {Z} x {H} heads, {T} x {T} x {W}", 2.0 * Z * H * T * T, checks,
                company=[(" - load(slopes + z % H) * f32(m - j)", ""), ("where(j <= m, score, -inf)", "score")])


@of("recurrent")
def ema():
    Z, T, C = full((16, 2048, 2048), (2, 30, 100))
    x, a, y = randn(Z, T, C, dtype=bf16), rand(C), result(Z, T, C, dtype=bf16)

    def ref():
        s, out = torch.zeros(Z, C, device=D), torch.empty(Z, T, C, device=D)
        for t in range(T):
            s = a * s + (1 - a) * x[:, t].float()
            out[:, t] = s
        return out
    return both("recurrent", "ema", lambda c: (cdiv(C, c["B"]), Z), (x, a, y, T, C),
                configs("B warps", (32, 1), (64, 1), (128, 1), (128, 2), (256, 4)),
                f"bf16 {Z} x {T} x {C}", 4.0 * x.numel(), lambda k: [("out", y[k], ref(), 4e-3)])


@of("recurrent")
def min_gru():
    Z, T, C = full((8, 4096, 1024), (2, 70, 100))
    g, c, y = randn(Z, T, C, dtype=bf16), randn(Z, T, C, dtype=bf16), result(Z, T, C, dtype=bf16)

    def ref():
        h, out = torch.zeros(Z, C, device=D), torch.empty(Z, T, C, device=D)
        for t in range(T):
            z = g[:, t].float().sigmoid()
            h = (1 - z) * h + z * c[:, t].float()
            out[:, t] = h
        return out
    return both("recurrent", "min_gru", lambda k: (cdiv(C, k["BC"]), Z), (g, c, y, T, C),
                configs("BT BC warps", (32, 32, 2), (64, 32, 4), (32, 64, 4), (128, 32, 4), (64, 64, 8)), f"bf16 {Z} x {T} x {C}",
                6.0 * g.numel(),
                lambda k: [("out", y[k], ref(), 4e-3)])


@of("recurrent")
def gated_delta():
    Z, T, H, K, V = full((4, 1024, 16, 128, 128), (1, 12, 2, 32, 32))
    q, v = randn(Z, T, H, K, dtype=bf16), randn(Z, T, H, V, dtype=bf16)
    key = F.normalize(randn(Z, T, H, K), dim=3).to(bf16)
    g, beta, o = -rand(Z, T, H), rand(Z, T, H), result(Z, T, H, V, dtype=bf16)

    def ref():
        s, out = torch.zeros(Z, H, K, V, device=D, dtype=torch.float64), torch.empty(Z, T, H, V, device=D, dtype=torch.float64)
        for t in range(T):
            s = s * g[:, t, :, None, None].double().exp()
            lack = (v[:, t].double() - torch.einsum("zhkv,zhk->zhv", s, key[:, t].double())) * beta[:, t, :, None]
            s = s + key[:, t].double()[..., None] * lack[..., None, :]
            out[:, t] = torch.einsum("zhkv,zhk->zhv", s, q[:, t].double() * K**-0.5)
        return out
    return both("recurrent", "gated_delta", lambda c: (V // c["BV"], H, Z), (q, key, v, g, beta, o, T, H, V, K**-0.5),
                configs("BV warps", *full(((8, 1), (16, 1), (16, 2), (32, 2), (32, 4), (64, 4)), ((8, 1), (16, 2), (32, 4))), K=K),
                f"bf16 {Z} x {T}, {H} heads of {K} x {V}", 4.0 * (q.numel() + v.numel()), lambda k: [("out", o[k], ref(), 4e-3)])


@of("recurrent")
def state_step():
    Z, H, G, P, N = full((256, 80, 1, 64, 128), (2, 4, 2, 16, 32))
    x, z, o = randn(Z, H, P, dtype=bf16), randn(Z, H, P, dtype=bf16), result(Z, H, P, dtype=bf16)
    dt, bias, a, d = randn(Z, H, dtype=bf16), randn(H), -rand(H) * 4, randn(H)
    b, c, s0 = randn(Z, G, N, dtype=bf16), randn(Z, G, N, dtype=bf16), randn(Z, H, P, N)
    s = inout(s0)

    def checks(k):
        step, heads = F.softplus(dt.float() + bias), lambda t: t.float().repeat_interleave(H // G, 1)[:, :, None]
        new = s0 * torch.exp(a * step)[..., None, None] + (x.float() * step[..., None])[..., None] * heads(b)
        return [("state", s[k], new, 1e-5), ("out", o[k], ((new * heads(c)).sum(3) + x.float() * d[:, None]) * F.silu(z.float()), 4e-3)]
    return both("recurrent", "state_step", (H, Z), (s, x, dt, bias, a, b, c, d, z, o, H, G),
                configs("warps", (1,), (2,), (4,), (8,), P=P, N=N),
                f"f32 {Z} x {H} states of {P} x {N}", 8.0 * s0.numel(), checks)


if __name__ == "__main__":
    Driver(PARTS, SECTIONS, {"unseen": ("unseen",)}, batch=4).main()
