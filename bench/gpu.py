"""Speed on a GPU with torch and Triton as peers in the same process: scripts/python bench/gpu.py [--budget SECONDS] [PART or SECTION...]

Parts, each meant to fit in ten minutes on an H200: PARTS below; a section can be named by itself. Every time is the median of
triton.testing.do_bench (L2 flushed before each run) on random inputs; every result is checked against torch. Each side takes its best
configuration from a search over the same space; then the two alternate, nine rounds.

Figures go to $OUT/run-PART.jsonl, row by row (bench/data.py says how; `scripts/bench keep` adds the file to the repository), and to standard
output. --as-kept: no search; either side takes the configuration that the newest kept run chose for the case, where one did. For a run of
everything within what a device is lent for; what the search of old would choose now is then not known. --budget: no case is begun after as
many seconds; what is left out is named, and is a failure. DTYPES="bf16" leaves out the f16 rows of norms, losses and rotary embedding.
PEERS="cublas" leaves out the other peers of the part `products` (triton; teams: Triton's kernels with
teams of warps; gluon); without "transformers" in it the section llama has none. --rehearse runs every section on the simulator with small sizes and torch's CPU tensors, to
see that it runs; its figures mean nothing. With TRITON_INTERPRET=1 Triton's kernels run there, too.

Before anything is measured, --jobs processes (all cores but two) compile what the sections will ask for, ours and Triton's, into caches that
live as long as the run, the driver's among them: most of a search's time is compiling. What the part `host` measures of compiling uses
no cache, for which its sections run in a process of their own, with a file of their own.

Each section runs in a process of its own, which has a GPU to itself: where there are several, sections are spread over them, the longest
first. Their rows come together in one file. A section that takes longer than --limit seconds is stopped, and what it was at is said. --cases:
a regular expression, by which sections that take a minute a case (flex, flex_backward) are run in parts.
How: bench/measure.py.
"""
import contextlib
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import measure
import cublaslt
import data
import torch
import triton
import tilec
import triton_peers as peers
from whole_model import llama
from decode_step import decode_step
from prompt_step import prompt_step
from measure import (against, alone, asked_for, best, best_parts, best_hot, case_begins, check, contest, D, Driver, empty_cache, failures, full, graph_of, INTERPRETED,
                     kernel, powers, ran, rate, record, REHEARSE, root, settle, SHARE, sync, times)

PARTS = {
    "rows": ["vector_add", "softmax", "softmax_bwd", "transpose", "rotary", "dropout"],
    "norms": ["layer_norm", "rms_norm"],
    "long": ["long_rows", "long_losses"],
    "backward": ["layer_norm_bwd", "rms_norm_bwd"],
    "losses": ["cross_entropy"],
    "order": ["sort", "topk", "scan", "gather", "histogram"],
    "arrays": ["prefix_sum", "select", "radix_sort", "quantise", "softmax_stages", "async_add", "memcpy", "hadamard"],
    "dots": ["matmul", "attention", "schedule"],
    "attention_backward": ["attention_backward"],
    "attention_fp8": ["attention_fp8"],
    "ragged": ["attention_varlen", "moe"],
    "flex": ["flex", "flex_backward"],
    "products": ["products_f16", "products_f8", "products_scaled", "products_grid", "grouped", "products_in_company", "products_fused"],
    "mixed": ["products_mixed", "reorder_w4"],
    "sparse": ["products_sparse"],
    "chains": ["decode"],
    "decoding": ["decode_attention", "small_m"],
    "recurrences": ["mamba2", "linear_attention", "selective_scan"],
    "drawing": ["sampling"],
    "layers": ["convolutions", "rotary_cache"],
    "llama": ["llama", "decode_step", "prompt_step"],
    "host": ["compile", "tune", "warm_start", "first_call", "launch"],
    "runtime": ["graph", "windows", "streams"],
}


def predicted(work, kernels=1):
    """TB/s to expect of kernels that read and write so many bytes: what softmax and vector_add reach here, and what starting takes."""
    return work / (work / 4.25 + 4.5e6 + 2e6 * (kernels - 1))


def vector_add():
    for lg in full((20, 24, 27, 29), (10,)):
        n = 2**lg
        case_begins("vector_add", f"f32 2^{lg}")
        x, y = torch.randn(n, device=D), torch.randn(n, device=D)
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        space = [(512, 4), (1024, 4), (2048, 8), (4096, 8)]
        ours = {(B, w): (lambda B=B, w=w: kernel("vector_add.tile", "add", BLOCK=B, warps=w).bind(None, x, y, o, n)) for B, w in space}
        theirs = {(B, w): (lambda B=B, w=w: lambda: peers.add[(triton.cdiv(n, B),)](x, y, p, n, B, num_warps=w)) for B, w in space}
        contest("vector_add", f"f32 2^{lg}", 12 * n, ours, theirs, lambda: torch.add(x, y, out=p))
        check(f"vector_add 2^{lg}", o, x + y, 1e-7)
        del x, y, o, p


ROWS = 64 if SHARE else full(8192, 8)         # 64 and 8192 are the same to both compilers
POWERS, ODD = full((1024, 2048, 4096, 8192, 16384), (128,)), full((1000, 5000, 12289), (100,))
DTYPES = os.environ.get("DTYPES", "bf16 f16").split()
# Rows of any length for the forward kernels, which mask; powers of two for those that hold a row in what registers there are.
WIDE = [(N, T) for T in DTYPES for N in sorted(POWERS + ODD)]
SHAPES = [(N, T) for T in DTYPES for N in POWERS if N != 2048]
WARPS = (1, 2, 4, 8, 16, 32)
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
ROUNDING = {"bf16": 4e-3, "f16": 5e-4, "f32": 1e-6}
F = torch.nn.functional
above = triton.next_power_of_2


def random(T, *shape):
    return torch.randn(*shape, device=D, dtype=torch.float32).to(TORCH[T]) if REHEARSE else torch.randn(*shape, device=D, dtype=TORCH[T])


def of_row(N):
    """Warps that hold a row of N, as neither side is asked for more than 128 elements a thread or less than one."""
    return [w for w in WARPS if 1 <= above(N) // (32 * w) <= 128]


def rowwise(section, N, T, passes, ours, theirs, torch_fn, checks, rows=ROWS):
    """A contest of kernels that move `passes` tiles of rows x N; checks: (what, got, reference) to compare behind it."""
    work = passes * TORCH[T].itemsize * rows * N
    contest(section, f"{T} {rows} x {N}", work, ours, theirs, torch_fn, predicted=predicted(work))
    for what, got, ref in checks():
        check(f"{section} {T} {N} {what}", got, ref, ROUNDING[T])


def softmax():
    sizes = [(N, "f32") for N in full((256, 781, 1024, 2048, 4096, 8192, 16384), (100,))]
    for N, T in sizes + WIDE:
        case_begins("softmax", f"{T} {N}")
        x = random(T, ROWS, N)
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        B = above(N)
        ours = {w: (lambda w=w: kernel("softmax.tile", "softmax", T=T, BLOCK=B, warps=w).bind(None, x, o, ROWS, N, N)) for w in of_row(N)}
        theirs = {w: (lambda w=w: lambda: peers.softmax[(ROWS,)](p, x, N, N, N, B, num_warps=w)) for w in of_row(N)}
        rowwise("softmax", N, T, 2, ours, theirs, lambda: torch.softmax(x, -1), lambda: [("out", o, torch.softmax(x.float(), -1)), *peer("out", p, torch.softmax(x.float(), -1))])


def peer(what, got, ref):
    """A check of Triton's result, where it ran."""
    return [("Triton's " + what, got, ref)] if not REHEARSE or INTERPRETED else []


def layer_norm():
    for N, T in WIDE:
        case_begins("layer_norm", f"{T} {N}")
        x, w, b = random(T, ROWS, N), random(T, N), random(T, N)
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        mean, scale = (torch.full((ROWS,), math.nan, device=D) for _ in range(2))
        m2, s2 = torch.empty_like(mean), torch.empty_like(mean)
        B = above(N)
        ours = {k: (lambda k=k: kernel("layer_norm.tile", "layer_norm", T=T, BLOCK=B, warps=k).bind(None, x, w, b, o, mean, scale, ROWS, N, N, 1e-5)) for k in of_row(N)}
        theirs = {k: (lambda k=k: lambda: peers.layernorm[(ROWS,)](p, m2, s2, x, w, b, N, N, 1e-5, B, num_warps=k)) for k in of_row(N)}
        ref = lambda: F.layer_norm(x.float(), (N,), w.float(), b.float())
        rowwise("layer_norm", N, T, 2, ours, theirs, lambda: F.layer_norm(x, (N,), w, b),
                lambda: [("out", o, ref()), ("mean", mean, x.float().mean(1)), ("scale", scale, (x.float().var(1, correction=0) + 1e-5).rsqrt()), *peer("out", p, ref())])


def rms_norm():
    for N, T in WIDE:
        case_begins("rms_norm", f"{T} {N}")
        x, w, r = random(T, ROWS, N), random(T, N), random(T, ROWS, N)
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        scale, s2 = torch.full((ROWS,), math.nan, device=D), torch.empty(ROWS, device=D)
        B = above(N)
        ours = {k: (lambda k=k: kernel("rms_norm.tile", "rms_norm", T=T, BLOCK=B, warps=k).bind(None, x, w, o, scale, ROWS, N, N, 1e-6)) for k in of_row(N)}
        theirs = {k: (lambda k=k: lambda: peers.rmsnorm[(ROWS,)](p, x, w, s2, N, N, 1e-6, B, num_warps=k)) for k in of_row(N)}
        ref = lambda: F.rms_norm(x.float(), (N,), w.float(), 1e-6)
        rowwise("rms_norm", N, T, 2, ours, theirs, lambda: F.rms_norm(x, (N,), w, 1e-6),
                lambda: [("out", o, ref()), ("scale", scale, (x.float().square().mean(1) + 1e-6).rsqrt()), *peer("out", p, ref())])
        # The stream changes from run to run: what it becomes is checked by the tests. Zeros keep it as it is.
        z, r2 = torch.zeros_like(x), r.clone()
        o.fill_(math.nan)
        ours = {k: (lambda k=k: kernel("rms_norm.tile", "add_rms_norm", T=T, BLOCK=B, warps=k).bind(None, z, r, w, o, scale, ROWS, N, N, 1e-6)) for k in of_row(N)}
        theirs = {k: (lambda k=k: lambda: peers.add_rmsnorm[(ROWS,)](p, r2, z, r2, w, s2, N, N, 1e-6, B, num_warps=k)) for k in of_row(N)}
        rowwise("add_rms_norm", N, T, 4, ours, theirs, None, lambda: [("out", o, F.rms_norm(r.float(), (N,), w.float(), 1e-6)), ("residual", r, r2)])


def backward_spaces(N):
    """Configurations of the persistent backward kernels: ours (warps, ROWS, STAGES, programs a multiprocessor), ours for long rows
    (warps, BUFFERS, programs), Triton's (warps, stages, programs). From 8 to 32 elements a thread, as many as registers can hold."""
    if REHEARSE:
        return [(2, 2, 1, 1), (4, 1, 2, 2)], [(4, 2, 1)], [(4, 1, 1), (4, 2, 2)]
    fits = lambda elements, w, per: 8 <= elements // (32 * w) <= 32 and 4096 <= elements * per <= 16384
    ours = [(w, r, s, per) for w in WARPS for r in (1, 2, 4, 8) for s in (1, 2, 3) for per in (1, 2, 4, 8) if fits(N * r, w, per)]
    long = [(w, k, per) for w in WARPS for k in (2, 3) for per in (1, 2, 4) if fits(N, w, per) and 4 * N * k * per <= 200 << 10]
    theirs = [(w, s, per) for w in WARPS for s in (1, 2, 3) for per in (1, 2, 4, 8, 16) if fits(N, w, per)]
    return ours, long, theirs


SUMS = [(32, 32, 4), (64, 32, 8), (128, 16, 8), (128, 32, 8)]   # rows, columns, warps of a column sum's tile


def norm_backward(section, N, T, layer, torch_fn):
    """dx and the sums over rows, in two kernels on both sides; Triton's by sums in registers or by tutorial 05's locks."""
    file = "layer_norm.tile" if layer else "rms_norm.tile"
    name = file[:-5] + "_backward"
    x, dy, w = random(T, ROWS, N), random(T, ROWS, N), random(T, N)
    v = x.float()
    mean = v.mean(1) if layer else torch.zeros(ROWS, device=D)
    scale = ((v - mean[:, None]).square().mean(1) + 1e-5).rsqrt()
    stats = (mean, scale) if layer else (scale,)
    most = max(measure.dev.sms * 16, 256)
    parts, theirs_parts = (torch.empty((1 + layer) * most * N, device=D) for _ in range(2))
    dx, px = torch.full_like(x, math.nan), torch.empty_like(x)
    sums, psums = (torch.full((1 + layer, N), math.nan, device=D, dtype=TORCH[T]) for _ in range(2))
    add = lambda P, c: kernel("column_sums.tile", "column_sums", T=T, ROWS=c[0], COLS=c[1], warps=c[2]).bind(None, parts, sums, 1 + layer, P, N)
    padd = lambda P, c: lambda: peers.colsum[(triton.cdiv(N, c[1]), 1 + layer)](psums, theirs_parts, P, N, c[0], c[1], num_warps=c[2])
    parts.zero_(), theirs_parts.zero_()
    _, c = best((c, (lambda c=c: add(2 * measure.dev.sms, c))) for c in SUMS)
    pc = best((c, (lambda c=c: padd(2 * measure.dev.sms, c))) for c in SUMS)[1] if not REHEARSE else SUMS[0]

    def pair(first, second):
        def both():
            first()
            second()
        return both

    def simple(w_, r, s, per):
        P = min(measure.dev.sms * per, ROWS // r)
        k = kernel(file, name, T=T, BLOCK=N, ROWS=r, STAGES=s, PER=per, warps=w_)
        return pair(k.bind(P, dy, x, w, *stats, dx, parts, ROWS, N, N), add(P, c))

    def long_rows(w_, k, per):
        P = measure.dev.sms * per
        return pair(kernel(file, name + "_long", T=T, BLOCK=N, BUFFERS=k, PER=per, warps=w_).bind(P, dy, x, w, *stats, dx, parts, ROWS, N, N), add(P, c))

    def theirs_simple(w_, s, per):
        P = min(measure.dev.sms * per, ROWS)
        f = peers.layernorm_backward if layer else peers.rmsnorm_backward
        return pair(lambda: f[(P,)](px, theirs_parts, dy, x, w, *stats, N, ROWS, N, N, s, num_warps=w_), padd(P, pc))

    def theirs_locks(w_):
        group = 64 if N > 8192 else 96 if N > 4096 else 128 if N > 1024 else 256
        lock = torch.zeros(2 * group, device=D, dtype=torch.int32)
        first = lambda: peers.layernorm_backward_locks[(ROWS,)](px, theirs_parts, theirs_parts[group * N:], dy, x, w, *stats, lock, N, N, group, N, num_warps=w_)
        return pair(lambda: (lock.zero_(), first()), padd(group, pc))

    a, b, t = backward_spaces(N)
    ours = {("rows",) + k: (lambda k=k: simple(*k)) for k in a} | {("long",) + k: (lambda k=k: long_rows(*k)) for k in b}
    theirs = {("rows",) + k: (lambda k=k: theirs_simple(*k)) for k in t}
    if layer and not REHEARSE:                                # programs that wait for each other: not where they run one after the other
        theirs |= {("locks", k): (lambda k=k: theirs_locks(k)) for k in (4, 8, 16, 32)}
    work = 6.0 * ROWS * N
    sums_of = 2 * 4.0 * (1 + layer) * 2 * measure.dev.sms * N   # written and read, of two programs a multiprocessor
    contest(section, f"{T} {ROWS} x {N}", work, ours, theirs, torch_fn and (lambda: torch_fn(dy, x, w, *stats)), predicted=work / (work + sums_of) * predicted(work + sums_of, 2))
    g, h = dy.float(), (v - mean[:, None]) * scale[:, None]
    wg = g * w.float()
    check(f"{section} {T} {N} dx", dx, scale[:, None] * (wg - h * (h * wg).mean(1, keepdim=True) - (wg.mean(1, keepdim=True) if layer else 0)), ROUNDING[T])
    check(f"{section} {T} {N} dweight", sums[0], (g * h).sum(0), ROUNDING[T])
    for what, got, ref in peer("dx", px, dx.float()) + peer("dweight", psums[0], sums[0].float()):
        check(f"{section} {T} {N} {what}", got, ref, 2 * ROUNDING[T])
    if layer:
        check(f"{section} {T} {N} dbias", sums[1], g.sum(0), ROUNDING[T])


def long_rows():
    """Rows of 65,536 and more: a cluster has one in registers; Triton's programs take it in blocks, twice or three times, or whole where it fits."""
    for N in full((65536, 131072, 262144), (1000,)):
        rows = (1 << 28) // N if not REHEARSE else 2
        for T in ("f32", "bf16"):
            case_begins("long_rows", f"{T} {N}")
            x, w, b = random(T, rows, N), random(T, N), random(T, N)
            o, p = torch.full_like(x, math.nan), torch.empty_like(x)
            # (C, warps, STAGES, programs a multiprocessor; 0: as many as there are rows for). More than run at a time even out what clusters leave: one of
            # eight lies in one GPC, and not all of these have room for as many.
            fits = lambda C, stages: stages == 1 or stages * above(N) // C * x.element_size() <= 220 << 10
            forms = [(C, warps, stages, per) for C in ((2, 4, 8) if N < 262144 else (4, 8, 16)) for warps in (8, 16, 32) if above(N) // C <= 2048 * warps
                     for stages, per in ((1, 0), (2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3)) if fits(C, stages) and per * warps <= 64]
            blocks = [(B, warps) for B in full((4096, 8192, 16384), (256,)) for warps in (8, 16, 32) if B // warps <= 2048]
            for section, args, long_args, blockwise, torch_fn in (
                    ("softmax_cluster", (x, o), (p, x, N, N), peers.softmax_long, lambda: torch.softmax(x, -1)),
                    ("layer_norm_cluster", (x, w, b, o), (p, x, w, b, N, N, 1e-6), peers.layernorm_long, lambda: F.layer_norm(x, (N,), w, b, 1e-6)),
                    ("rms_norm_cluster", (x, w, o), (p, x, w, N, N, 1e-6), peers.rmsnorm_long, lambda: F.rms_norm(x, (N,), w, 1e-6))):
                tail = () if section == "softmax_cluster" else (1e-6,)
                ours = {c: (lambda c=c: kernel("softmax_cluster.tile", section, T=T, C=c[0], warps=c[1], STAGES=c[2], BLOCK=above(N) // c[0]).bind(
                            min(rows, measure.dev.sms * c[3] // c[0] if c[3] else rows) * c[0], *args, rows, N, N, *tail))
                        for c in forms}
                theirs = {c: (lambda c=c: lambda: blockwise[(rows,)](*long_args, c[0], num_warps=c[1])) for c in blocks}
                if section == "softmax_cluster":        # a row of 65536 fits in one program's registers
                    theirs |= {("whole", k): (lambda k=k: lambda: peers.softmax[(rows,)](p, x, N, N, N, above(N), num_warps=k)) for k in (16, 32) if above(N) <= 65536}
                ref = {"softmax_cluster": lambda: torch.softmax(x[:16].float(), -1), "layer_norm_cluster": lambda: F.layer_norm(x[:16].float(), (N,), w.float(), b.float(), 1e-6),
                       "rms_norm_cluster": lambda: F.rms_norm(x[:16].float(), (N,), w.float(), 1e-6)}[section]
                rowwise(section, N, T, 2, ours, theirs, torch_fn, lambda: [("out", o[:16], ref()), *peer("out", p[:16], ref())], rows=rows)
            del x, w, b, o, p
            empty_cache()


def long_losses():
    """Cross-entropy and its derivative in one read of rows that a cluster has in registers, beside ours in blocks and torch's."""
    for rows, N, T in full(((4096, 65536, "bf16"), (2048, 128256, "bf16"), (1024, 262144, "bf16")), ((4, 1024, "bf16"),)):
        case_begins("cross_entropy_cluster", f"{T} {rows} x {N}")
        x, t = random(T, rows, N), torch.randint(0, N, (rows,), device=D)
        loss, dx = torch.full((rows,), math.nan, device=D), torch.full_like(x, math.nan)
        space = [(C, w) for C in (2, 4, 8) for w in (8, 16, 32) if REHEARSE or 16 <= above(tilec.cdiv(N, C)) // (32 * w) <= 64]
        make = {c: (lambda c=c: kernel("softmax_cluster.tile", "cross_entropy_cluster", T=T, BLOCK=above(tilec.cdiv(N, c[0])), C=c[0], warps=c[1])
                    .bind(None, x, t, loss, dx, rows, N, N, -100, 1.0 / rows)) for c in space}
        _, cfg = best(make.items())
        dx.fill_(math.nan)
        make[cfg]()()
        leaf = x.detach().clone().requires_grad_()

        def theirs():
            leaf.grad = None
            F.cross_entropy(leaf, t).backward()
        theirs()
        check(f"cross_entropy_cluster {T} {N} loss", loss, F.cross_entropy(x.float(), t, reduction="none"), 1e-5)
        check(f"cross_entropy_cluster {T} {N} dx", dx, leaf.grad, 1e-2)
        alone("cross_entropy_cluster", f"{T} {rows} x {N}", make[cfg], cfg, 2.0 * x.numel() * x.itemsize, "TB/s", theirs)
        del x, dx, leaf
        empty_cache()


def layer_norm_bwd():
    def torch_fn(dy, x, w, mean, scale):
        return torch.ops.aten.native_layer_norm_backward(dy, x, (x.shape[1],), mean[:, None], scale[:, None], w, w, [True, True, True])
    for N, T in SHAPES:
        case_begins("layer_norm_bwd", f"{T} {N}")
        norm_backward("layer_norm_bwd", N, T, True, torch_fn if not REHEARSE else None)   # which has no bf16 on a CPU
        empty_cache()


def rms_norm_bwd():
    for N, T in SHAPES:
        case_begins("rms_norm_bwd", f"{T} {N}")
        graph = {}

        def torch_fn(dy, x, w, scale):
            if not graph:
                a, b = x.detach().requires_grad_(), w.detach().requires_grad_()
                graph.update(y=F.rms_norm(a, (x.shape[1],), b, 1e-5), of=(a, b))
            return torch.autograd.grad(graph["y"], graph["of"], dy, retain_graph=True)
        norm_backward("rms_norm_bwd", N, T, False, torch_fn)
        graph.clear()
        empty_cache()


def softmax_bwd():
    for N, T in WIDE:
        case_begins("softmax_bwd", f"{T} {N}")
        B = above(N)
        dy, y = random(T, ROWS, N), torch.softmax(torch.randn(ROWS, N, device=D) * 3, 1).to(TORCH[T])
        dx, p = torch.full_like(y, math.nan), torch.empty_like(y)
        ours = {k: (lambda k=k: kernel("softmax.tile", "softmax_backward", T=T, BLOCK=B, warps=k).bind(None, dy, y, dx, ROWS, N, N)) for k in of_row(N)}
        theirs = {k: (lambda k=k: lambda: peers.softmax_backward[(ROWS,)](p, dy, y, N, N, B, num_warps=k)) for k in of_row(N)}
        g, q = dy.float(), y.float()
        rowwise("softmax_bwd", N, T, 3, ours, theirs, lambda: torch._softmax_backward_data(dy, y, -1, TORCH[T]),
                lambda: [("dx", dx, q * (g - (q * g).sum(1, keepdim=True)))])


def cross_entropy():
    """Forward, backward, and both in one kernel; the last shape is a vocabulary."""
    for N, T in WIDE + [(128256, "bf16")] * (not REHEARSE):
        case_begins("cross_entropy", f"{T} {N}")
        B = above(N)
        rows, file = (4096 if N > 16384 else ROWS), "cross_entropy.tile"
        x, t = random(T, rows, N), torch.randint(0, N, (rows,), device=D)
        t[::7] = -100
        loss, lse, p, q = (torch.full((rows,), math.nan, device=D) for _ in range(4))
        blocks = [(w * v, d, w) for w in (1, 2, 4, 8, 16) for v in (256, 512) for d in (1, 2, 4) if w * v * d <= max(N, 1024) and v * d <= 1024]
        ours = {k: (lambda k=k: kernel(file, "cross_entropy", T=T, LANES=k[0], DEEP=k[1], warps=k[2]).bind(None, x, t, loss, lse, rows, N, N, -100)) for k in blocks}
        if N <= 16384:
            ours |= {("row", w): (lambda w=w: kernel(file, "cross_entropy_row", T=T, BLOCK=B, warps=w).bind(None, x, t, loss, lse, rows, N, N, -100)) for w in of_row(N) if B // (32 * w) >= 4 or REHEARSE}
        theirs = {(b, w): (lambda b=b, w=w: lambda: peers.cross_entropy[(rows,)](p, q, x, t, N, N, -100, b, num_warps=w))
                  for b in full((1024, 2048, 4096, 8192, 16384, 32768), (128,)) for w in WARPS if b <= B and (4 <= b // (32 * w) <= 64 or REHEARSE and w == 1)}
        rowwise("cross_entropy", N, T, 1, ours, theirs, lambda: F.cross_entropy(x, t, reduction="none"),
                lambda: [("loss", loss, F.cross_entropy(x.float(), t, reduction="none"))], rows)
        dl = torch.full((rows,), 1 / rows, device=D)
        dx, px = torch.full_like(x, math.nan), torch.empty_like(x)
        blocks = [(b, w) for b in full((1024, 2048, 4096, 8192), (128,)) for w in (2, 4, 8) if b <= B and (8 <= b // (32 * w) <= 32 or REHEARSE and w == 2)]
        ours = {k: (lambda k=k: kernel(file, "cross_entropy_backward", T=T, BLOCK=k[0], warps=k[1]).bind(None, x, t, lse, dl, dx, rows, N, N, -100)) for k in blocks}
        theirs = {k: (lambda k=k: lambda: peers.cross_entropy_backward[(rows, triton.cdiv(N, k[0]))](px, x, t, q, dl, N, N, -100, k[0], num_warps=k[1])) for k in blocks}

        def reference():
            ref = torch.softmax(x.float(), 1)
            ref[torch.arange(rows, device=D), t.clamp(min=0)] -= 1
            return ref * (t >= 0)[:, None] / rows
        rowwise("cross_entropy_bwd", N, T, 2, ours, theirs, None, lambda: [("dx", dx, reference())], rows)
        if N > 16384:
            continue
        dx.fill_(math.nan)
        ours = {w: (lambda w=w: kernel(file, "cross_entropy_fused", T=T, BLOCK=B, warps=w).bind(None, x, t, loss, dx, rows, N, N, -100, 1 / rows)) for w in of_row(N)}
        theirs = {w: (lambda w=w: lambda: peers.cross_entropy_fused[(rows,)](p, px, x, t, N, N, -100, 1 / rows, B, num_warps=w)) for w in of_row(N)}
        rowwise("cross_entropy_fused", N, T, 2, ours, theirs, None, lambda: [("dx", dx, reference()), ("loss", loss, F.cross_entropy(x.float(), t, reduction="none"))], rows)
        del x, dx, px
        empty_cache()


def rotary():
    """Heads of 128, tables for 4096 positions."""
    d, positions = full((128, 4096), (32, 16))
    angle = torch.arange(positions, device=D)[:, None] / 10000 ** (torch.arange(d // 2, device=D) * 2 / d)
    cos, sin = angle.cos(), angle.sin()
    for N, T in SHAPES:
        case_begins("rotary", f"{T} {N}")
        heads = N // d
        x = random(T, ROWS, heads, d)
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        space = [(h, w) for h in (4, 8, 16, 32, 64) for w in WARPS if h <= heads and (8 <= h * d // (32 * w) <= 64 or REHEARSE and w == 1)]
        c, s = (a[torch.arange(ROWS, device=D) % positions][:, None] for a in (cos, sin))
        for name in ("rotary", "rotary_interleaved"):
            inter = name != "rotary"
            ours = {k: (lambda k=k: kernel("rotary.tile", name, T=T, HEADS=k[0], HALF=d // 2, warps=k[1]).bind(None, x, cos, sin, o, ROWS, heads, d, positions)) for k in space}
            theirs = {k: (lambda k=k: lambda: peers.rotary[(ROWS, heads // k[0])](p, x, cos, sin, heads, positions, d, k[0], inter, num_warps=k[1])) for k in space}

            def reference():
                v = x.float()
                a, b = (v[..., 0::2], v[..., 1::2]) if inter else v.chunk(2, -1)
                u, w = a * c - b * s, b * c + a * s
                return torch.stack((u, w), -1).flatten(-2) if inter else torch.cat((u, w), -1)
            rowwise(name, N, T, 2, ours, theirs, None, lambda: [("out", o, reference()), *peer("out", p, reference())])


def dropout():
    """Beside Triton's tutorial 04, a Philox for each element, and one for four elements; p = 0.5, as tutorial 04."""
    for T, n in [(T, n) for T in ("bf16", "f16", "f32") for n in full((2**24, 2**27, 100000003), (2**12,))]:
        case_begins("dropout", f"{T} {n}")
        x = torch.randn(n, device=D).to(TORCH[T])
        o, p = torch.full_like(x, math.nan), torch.empty_like(x)
        for name, ours_name, peer in (("dropout", "drop", "dropout4"), ("dropout_each", "drop_each", "dropout")):
            blocks = [(b, w) for b in (512, 1024, 2048, 4096, 8192) for w in (4, 8) if 4 <= b // (32 * w) <= 32]
            ours = {k: (lambda k=k: kernel("dropout.tile", ours_name, T=T, BLOCK=k[0], warps=k[1]).bind(None, x, o, n, 0.5, 123)) for k in blocks}
            theirs = {k: (lambda k=k: lambda: getattr(peers, peer)[(triton.cdiv(n, k[0]),)](p, x, n, 0.5, 123, k[0], num_warps=k[1])) for k in blocks}
            work = 2.0 * x.element_size() * n
            contest(name, f"{T} {f'2^{n.bit_length() - 1}' if n & n - 1 == 0 else n}", work, ours, theirs, lambda: F.dropout(x, 0.5), predicted=predicted(work))
            kept = o != 0                                    # which ones those are is checked by the tests
            check(f"{name} {T} kept", o[kept], 2 * x[kept], 1e-6)
            if not abs(kept.float().mean().item() - 0.5) < full(1e-3, 0.1):
                failures.append(f"{name} {T}: {kept.float().mean().item()} of the elements are kept")


def transpose():
    for M in full((12800, 8191), (100,)):
        case_begins("transpose", f"f32 {M} x {M}")
        transpose_of(M)


def transpose_of(M):
    x = torch.randn(M, M, device=D)
    o, p = torch.full_like(x, math.nan), torch.empty_like(x)
    space = [(64, 64, 4), (32, 64, 4), (128, 64, 8), (64, 64, 8), (32, 32, 4)]
    ours = {c: (lambda c=c: kernel("transpose.tile", "transpose", BM=c[0], BN=c[1], warps=c[2]).bind(None, x, o, M, M)) for c in space}
    theirs = {c: (lambda c=c: lambda: peers.transpose[(triton.cdiv(M, c[0]), triton.cdiv(M, c[1]))](p, x, M, M, c[0], c[1], num_warps=c[2])) for c in space}
    contest("transpose", f"f32 {M} x {M}", 8 * M * M, ours, theirs, lambda: p.copy_(x.T))
    check("transpose", o, x.T, 1e-9)


# BM, BN, BK, warps, stages, rows of tiles in a group
MATMUL_CONFIGS = [(128, 128, 32, 4, 4, 8), (128, 128, 64, 4, 3, 8), (128, 128, 64, 4, 4, 8), (128, 128, 64, 8, 3, 8), (128, 256, 32, 8, 4, 8),
                  (128, 256, 64, 8, 3, 4), (128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 3, 16), (256, 128, 64, 8, 3, 4), (256, 128, 64, 8, 3, 8),
                  (256, 128, 64, 8, 3, 16), (128, 256, 64, 8, 4, 8), (256, 128, 64, 8, 4, 8), (64, 256, 64, 4, 3, 8)]
BY_HAND = [(k, cluster) for k in ("matmul_cooperative", "matmul_deferred", "matmul_pingpong") for cluster in (1, 2)]


def matmul():
    """Beside cuBLAS; of row-major 16-bit matrices also what is written by hand, with teams of warps (matmul_warpgroups.tile)."""
    torch.backends.cuda.matmul.allow_tf32 = True
    cases = [("f16", n, l) for n in (4096, 8192, 4104) for l in ("nn", "nt")] + [("f16", 4096, l) for l in ("tn", "tt")] + [("bf16", 4096, "nn"), ("f32", 4096, "nt")]
    # f32 cut to tf32; 8-bit floats with sums of 128 products added in f32, and without.
    cases += [("f32", 4096, "nt", "PRECISION", '"tf32_cut"'), ("f8e4m3", 4096, "nt", "PROMOTE", 128), ("f8e4m3", 4096, "nt", "PROMOTE", 0)]
    # Whole numbers, whose sums are exact. cuBLAS has them of rows of a and columns of b; torch turns what lies otherwise.
    cases += [("i8", 4096, l, "TA", "i32", "TO", "i32") for l in ("nt", "nn", "tn", "tt")]
    for name, n, layout, *how in full(cases, [("f16", 100, "nt"), ("f32", 64, "tn"), ("f32", 64, "nt", "PRECISION", '"tf32_cut"'), ("i8", 64, "nn", "TA", "i32", "TO", "i32")]):
        extra, whole = dict(zip(how[::2], how[1::2])), name == "i8"
        small = name == "f8e4m3"
        row = " ".join([name, layout, str(n)] + [f"{k}={v}" for k, v in extra.items() if not whole])
        case_begins("matmul", row)
        dt = torch.int8 if whole else TORCH["f32" if small else name]
        a, b = (torch.randint(-128, 128, (n, n), device=D, dtype=dt) if whole else torch.randn(n, n, device=D, dtype=dt) for _ in "ab")
        c = torch.zeros(n, n, device=D, dtype=torch.int32) if whole else torch.full((n, n), math.nan, device=D, dtype=torch.bfloat16 if small else dt)
        if small:
            a, b, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), torch.ones((), device=D)
        A, B = (a if layout[0] == "n" else a.T), (b if layout[1] == "n" else b.T)
        theirs = lambda: torch.matmul(A, B, out=c)
        if whole:
            theirs = lambda: torch._int_mm(A, B, out=c)
        if small:
            theirs = lambda: torch._scaled_mm(A, B, one, one, out_dtype=torch.bfloat16, use_fast_accum=not extra["PROMOTE"])

        def run(BM, BN, BK, w, s, group):
            BK = BK // 2 if name == "f32" else BK * 2 if small or whole else BK
            k = kernel("matmul.tile", "matmul", **{"T": name, "TO": "bf16" if small else name} | extra, BM=BM, BN=BN, BK=BK, STAGES=s, GROUP=group, warps=w)
            if whole and layout == "nn":     # what wgmma has no form for: the product's transpose
                return k.bind(None, B, A, c, n, n, n, *B.T.stride(), *A.T.stride(), *c.T.stride())
            return k.bind(None, A, B, c, n, n, n, *A.stride(), *B.stride(), *c.stride())
        ours = {cfg: (lambda cfg=cfg: run(*cfg)) for cfg in MATMUL_CONFIGS}
        t, cfg = best_hot(ours.items(), theirs)
        call, kernels = ran(ours[cfg])
        to, tp = settle(lambda: call, lambda: theirs)
        c.fill_(-1 if whole else math.nan)
        call()
        sync()
        exact = whole or name == "f32"
        check(f"matmul {row}", c, A.double() @ B.double() if exact else torch.matmul(A.float(), B.float()), 1e-12 if whole else 2e-3 if c.dtype != torch.bfloat16 and not extra else 8e-3)
        fl = 2.0 * n**3
        i = call.info()
        sides = {"cublas": rate(tp, fl, "TFLOP/s"), "tilec": rate(to, fl, "TFLOP/s", cfg)}
        if name in ("f16", "bf16") and layout == "nn" and not REHEARSE:
            hand = {c: (lambda c=c: kernel("matmul_warpgroups.tile", c[0], T=name, CLUSTER=c[1]).bind(measure.dev.sms, A, B, c_out)) for c in BY_HAND}
            c_out = torch.full_like(c, math.nan)
            _, choice = best(hand.items())
            fn, used = ran(hand[choice])
            sides["by hand"] = rate(times(fn), fl, "TFLOP/s", choice)
            kernels = kernels + used
            check(f"{choice[0]} {name} {n}", c_out, torch.matmul(A.float(), B.float()), 2e-3 if name != "bf16" else 8e-3)
        record("matmul", row, "TFLOP/s", sides, ["cublas"], work=fl, kernels=kernels,
               registers=i["registers"], spilled=i["local_bytes"])


def hadamard():
    """Transforms of rows on tensor cores (examples/hadamard.tile), beside a copy of as many bytes, and the transform to 8 bits with a scale a row."""
    def signed_sums(v):
        half, n = 1, v.shape[1]
        while half < n:
            pairs = v.view(len(v), -1, 2, half)
            v, half = torch.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), 2).view(-1, n), 2 * half
        return v

    for T, lg in [(T, lg) for T in ("f16", "bf16") for lg in full((7, 8, 9, 10, 11, 12, 13, 14, 15), (8, 13))]:
        N = 1 << lg
        rows, scale = full(1 << 27, 1 << 14) >> lg, N ** -0.5
        case_begins("hadamard", f"{T} {N}")
        x = random(T, rows, N)
        y, p = torch.full_like(x, math.nan), torch.empty_like(x)
        q, s = torch.zeros(rows, N, device=D, dtype=torch.float8_e4m3fn), torch.empty(rows, device=D)
        # (ROWS, PIECES, warps, STAGES, programs a multiprocessor; 0: as many as there are tiles)
        if N <= 4096:
            space = [(R, max(N // 256, 1), w, 1, 0) for w in (1, 2, 4, 8) for R in (w, 2 * w, 4 * w) if R * max(N, 256) <= 4096 * w]
        else:
            space = [(1, P, w, stages, per) for P in (8, 16) for w in (4, 8, 16) if w <= N // 256 // P * 2 for stages, per in ((1, 0), (2, 1), (2, 2), (3, 1))]

        def makes(name, *out):
            def make(c):
                R, P, w, stages, per = c
                tiles = tilec.cdiv(rows, R * max(256 // N, 1))
                grid = min(tiles, per * measure.dev.sms) if per else tiles
                return kernel("hadamard.tile", name, T=T, N=N, ROWS=R, PIECES=P, WARPS=max(N // 256, 1) // P, warps=w, STAGES=stages).bind(grid, x, *out, rows, scale)
            return {c: (lambda c=c: make(c)) for c in space}
        ref = signed_sums(x[:64].float()) * scale
        for section, ours, work, other in (("hadamard", makes("hadamard_mma", y), 4 * x.numel(), lambda: p.copy_(x)),
                                           ("hadamard_quantise", makes("hadamard_quantise", q, s), 3 * x.numel(), lambda: q.copy_(x))):
            if section == "hadamard_quantise" and T != "bf16":
                continue
            _, cfg = best(ours.items())
            call, kernels = ran(ours[cfg])
            to, tc = settle(lambda: call, lambda: other)
            call()
            sync()
            if section == "hadamard":
                check(f"hadamard {T} {N}", y[:64], ref, ROUNDING[T])
            else:
                check(f"hadamard_quantise {T} {N}", q[:64].float() * s[:64, None], ref, 0.04)
            record(section, f"{T} rows of {N}", "TB/s", {"copy": rate(tc, work, "TB/s"), "tilec": rate(to, work, "TB/s", str(cfg))}, ["copy"], work=work, kernels=kernels)
        del x, y, p, q, s
        empty_cache()


def softmax_stages():
    """The persistent softmax: rows one by one, and with the next rows already being copied."""
    for rows, n in full(((32768, 256), (32768, 1024), (8192, 4096), (8192, 8192)), ((9, 128),)):
        case_begins("softmax_stages", f"{rows} x {n}")
        x = torch.randn(rows, n, device=D)
        y = torch.full_like(x, math.nan)
        calls = {(s, w, per): (lambda s=s, w=w, per=per: kernel("softmax.tile", "softmax_persistent", BLOCK=n, STAGES=s, warps=w).bind(measure.dev.sms * per, x, y, rows, n, n))
                 for s in (1, 2, 3) for w in (2, 4, 8) for per in (1, 2, 4, 8)}
        work, sides, kernels = 8.0 * x.numel(), {}, []
        for s in (1, 2, 3):
            _, cfg = best((c, make) for c, make in calls.items() if c[0] == s)
            call, used = ran(calls[cfg])
            sides[f"{s} stage" + "s" * (s > 1)] = rate(times(call), work, "TB/s", cfg)
            kernels += used
            check(f"softmax_stages {rows} x {n}", y, torch.softmax(x, 1), 1e-6)
        record("softmax_stages", f"f32 {rows} x {n}", "TB/s", sides, work=work, kernels=kernels)


def attention():
    """Forward, f16, 16,384 tokens, 2,048 hidden; beside torch's FlashAttention-2 and cuDNN, with what is written by hand (attention_wgmma.tile)."""
    from torch.nn.attention import sdpa_kernel, SDPBackend as SB
    attend = F.scaled_dot_product_attention
    space = [(128, 64, 2, 4), (128, 64, 2, 8), (128, 64, 3, 8), (64, 128, 2, 4), (64, 64, 2, 4), (64, 64, 3, 4), (128, 128, 2, 8),
             (128, 128, 3, 8), (128, 128, 4, 8), (128, 64, 4, 8)]
    for HD in full((64, 128), (64,)):
        for S in full((1024, 4096, 16384), (100,)):
            for causal in (False, True):
                case_begins("attention", f"d{HD} s{S} {'causal' if causal else 'full'}")
                B, H = full((16384 // S, 2048 // HD), (1, 2))
                q, k, v = (random("f16", B, H, S, HD) for _ in range(3))
                o = torch.full_like(q, math.nan)
                ours = {c: (lambda c=c: kernel("attention.tile", "attention", D=HD, BM=c[0], BN=c[1], STAGES=c[2], CAUSAL=str(causal).lower(), warps=c[3]).bind(
                    None, q, k, v, o, B * H, S, HD ** -0.5))
                        for c in space if c[1] * c[2] * HD <= 3 * 128 * 128}
                flash, cudnn = (SB.MATH, SB.MATH) if REHEARSE else (SB.FLASH_ATTENTION, SB.CUDNN_ATTENTION)
                work, unit = 4.0 * B * H * S * S * HD * (0.5 if causal else 1), "TFLOP/s"
                with sdpa_kernel(flash):                # ours alternates with this one: the chip is as warm for both
                    _, cfg = best_hot(ours.items(), lambda: attend(q, k, v, is_causal=causal))
                    call, kernels = ran(ours[cfg])
                    o.fill_(math.nan)
                    to, tf = settle(lambda: call, lambda: lambda: attend(q, k, v, is_causal=causal))
                    ref = attend(q, k, v, is_causal=causal)
                with sdpa_kernel(cudnn):
                    tc = times(lambda: attend(q, k, v, is_causal=causal))
                check(f"attention d{HD} s{S} {causal}", o, ref, 3e-3)
                sides = {"flash2": rate(tf, work, unit), "cudnn": rate(tc, work, unit), "tilec": rate(to, work, unit, cfg)}
                if not REHEARSE:
                    flat = [t.reshape(B * H, S, HD) for t in (q, k, v, o)]
                    hand = {c: (lambda c=c: kernel("attention_wgmma.tile", "attention_wgmma", D=HD, CONSUMERS=c, CAUSAL=str(causal).lower()).bind(
                        None, *flat, HD ** -0.5)) for c in ((2, 3) if HD == 64 else (2,))}
                    o.fill_(math.nan)
                    _, choice = best(hand.items())
                    fn, used = ran(hand[choice])
                    sides["by hand"] = rate(times(fn), work, unit, choice)
                    kernels = kernels + used
                    check(f"attention_wgmma d{HD} s{S} {causal}", o, ref, 3e-3)
                record("attention", f"d{HD} s{S} {'causal' if causal else 'full'}", unit, sides, ["flash2", "cudnn"], work=work, kernels=kernels)


def attention_fp8():
    """Forward in 8-bit floats, 16,384 tokens, 2,048 hidden (attention_fp8.tile), with blocks added in f32 and (`cut sums`) by the tensor cores, with v
    turned before (which is not in the time) and in the kernel, beside f16 (attention.tile). predicted: three quarters of what products of such numbers
    reach, where that is not what exponentials take; heads of 256 are two tiles that make the scores each."""
    attend = F.scaled_dot_product_attention
    for HD in full((128, 256), (64,)):
        for S in full((4096, 16384), (100,)):
            for causal in (False, True):
                case = f"d{HD} s{S} {'causal' if causal else 'full'}"
                case_begins("attention_fp8", case)
                B, H = full((16384 // S, 2048 // HD), (1, 2))
                wide, CAUSAL = tilec.cdiv(S, 16) * 16, str(causal).lower()
                half = [random("f16", B * H, S, HD) for _ in range(3)]
                q, k, v = (t.to(torch.float8_e4m3fn) for t in half)
                vt = torch.empty(B * H, HD, wide, device=D, dtype=torch.float8_e4m3fn)
                o, lse, one = torch.full((B * H, S, HD), math.nan, device=D, dtype=torch.bfloat16), torch.empty(B * H, S, device=D), torch.ones(B * H, device=D)
                turn = lambda: kernel("attention_fp8.tile", "transpose_v", D=HD).bind(None, v, vt, B * H, S)
                make = lambda c: kernel("attention_fp8.tile", "attention_fp8", D=HD, BN=c[0], STAGES=c[1], CAUSAL=CAUSAL, PROMOTE=str(c[2]).lower(), TURNED=str(c[3]).lower()).bind(
                    None, q, k, vt if c[3] else v, o, lse, (one, one, one), HD ** -0.5)
                shapes = lambda promote: [(128, 2), (128, 3), (64, 4)] if HD <= 128 else [(64, 2), (64, 3)] if promote else [(64, 2)]
                forms = {"tilec": (True, False), "v turned": (True, True), "cut sums": (False, False)}
                space = {name: {(*c, *f): (lambda c=(*c, *f): make(c)) for c in shapes(f[0])} for name, f in forms.items()}
                o16 = torch.empty_like(half[0])
                plain = {c: (lambda c=c: kernel("attention.tile", "attention", D=HD, BM=c[0], BN=c[1], STAGES=c[2], CAUSAL=CAUSAL, warps=8).bind(
                    None, *half, o16, B * H, S, HD ** -0.5)) for c in ([(128, 128, 2), (128, 128, 3)] if HD <= 128 else [(128, 64, 2), (128, 32, 2)])}
                run, kernels = ran(turn)
                run()
                work, unit, found, names = 4.0 * B * H * S * S * HD * (0.5 if causal else 1), "TFLOP/s", [], []
                for name, side in (("in f16", plain), *space.items()):
                    _, choice = best(side.items())
                    call, used = ran(side[choice])
                    found, names, kernels = found + [call], names + [(name, choice)], kernels + used
                took = settle(*(lambda call=call: call for call in found))
                ref = None if SHARE else attend(*(t.reshape(B, H, S, HD).to(torch.float16) for t in (q, k, v)), is_causal=causal)
                for (name, _), call in zip(names[1:], found[1:]):
                    o.fill_(math.nan)
                    call()
                    sync()
                    check(f"attention_fp8 {case} {name}", o, None if SHARE else ref.reshape(o.shape), 5e-2)
                sides = {name: rate(t, work, unit, choice) for (name, choice), t in zip(names, took)}
                most = 0.75 * min(1340, 4 * HD * 16 * 132 * 1.6e-3)
                record("attention_fp8", case, unit, sides, ["in f16"], work=work, kernels=kernels, predicted=most * (0.9 if causal else 1) * (2 / 3 if HD > 128 else 1),
                       **({} if SHARE else {"share_of_1979": sides["tilec"]["value"] / 1979}))


def by_sequences(q, k, v, lengths, causal):
    """Attention of one sequence after the other, of [tokens, heads, D]."""
    return torch.cat([F.scaled_dot_product_attention(*(x.transpose(0, 1).repeat_interleave(q.shape[1] // x.shape[1], 0)[None] for x in one), is_causal=causal)[0].transpose(0, 1)
                      for one in zip(*(x.split(lengths) for x in (q, k, v)))])


def attention_varlen():
    """Forward, f16, of sequences of many lengths without padding; beside torch's FlashAttention-2 for such. Operations are those of keys that queries see."""
    from torch.nn.attention.varlen import varlen_attn
    HD = full(128, 64)
    space = [(BM, BN, S, BM // 16) for BM, BN in ((128, 64), (128, 128), (64, 64), (128, 32), (64, 128)) for S in (2, 3)]
    for count, least, most, heads, kv_heads, causal in full(
            [(12, 128, 8192, *h, c) for h in ((16, 16), (32, 8)) for c in (False, True)] + [(64, 16, 1024, 32, 8, True)], [(3, 5, 90, 4, 2, c) for c in (False, True)]):
        lengths = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(count)).tolist()
        tokens, longest = sum(lengths), max(lengths)
        case = f"{count} of {least} to {most}, {tokens} tokens, {heads} heads, {kv_heads} of keys, {'causal' if causal else 'full'}"
        case_begins("attention_varlen", case)
        first = torch.tensor([0, *lengths], device=D).cumsum(0).to(torch.int32)
        q, k, v = (random("f16", tokens, h, HD) for h in (heads, kv_heads, kv_heads))
        o, scale = torch.full_like(q, math.nan), HD ** -0.5
        ours = {c: (lambda c=c: kernel("attention_varlen.tile", "attention_varlen", D=HD, BM=c[0], BN=c[1], STAGES=c[2], CAUSAL=str(causal).lower(), warps=c[3]).bind(
            None, q, k, v, o, first, first, scale, count, longest, heads, kv_heads, None)) for c in space}
        flash = {"aten": lambda: torch.ops.aten._flash_attention_forward(q, k, v, first, first, longest, longest, 0.0, causal, False, scale=scale)[0],
                 "varlen_attn": lambda: varlen_attn(q, k, v, first, first, longest, longest, scale=scale, window_size=(-1, 0 if causal else -1))}
        if REHEARSE:
            flash = {"aten": lambda: by_sequences(q, k, v, lengths, causal)}
        kernels, found = against("attention_varlen", case, ours, {"flash2": {name: (lambda fn=fn: fn) for name, fn in flash.items()}})
        if not SHARE:
            o.fill_(math.nan)
            found["tilec"][1]()
            sync()
            want = by_sequences(q.float(), k.float(), v.float(), lengths, causal)
            check(f"attention_varlen {case}", o, want, 3e-3)
            if "flash2" in found:
                check(f"attention_varlen {case}, flash2", found["flash2"][1](), want, 3e-3)
            del want
        work = 4.0 * heads * HD * sum(n * (n + 1) / 2 if causal else n * n for n in lengths)
        record("attention_varlen", case, "TFLOP/s", {name: rate(t, work, "TFLOP/s", label) for name, (label, _, t) in found.items()},
               [name for name in found if name != "tilec"], work=work, kernels=kernels)
        del q, k, v, o
        empty_cache()


def attention_backward():
    """dq, dk and dv, f16, 16,384 tokens, 2,048 hidden, by all kernels that it takes; beside torch's FlashAttention-2 and cuDNN. `tilec` computes scores
    twice and gives the same bits each time (attention_backward.tile), `by hand` adds dq up by atomics (attention_backward_wgmma.tile)."""
    from torch.nn.attention import sdpa_kernel, SDPBackend as SB
    attend = F.scaled_dot_product_attention
    for HD in full((64, 128), (64,)):
        for S in full((1024, 4096, 16384), (100,)):
            for causal in (False, True):
                case = f"d{HD} s{S} {'causal' if causal else 'full'}"
                case_begins("attention_backward", case)
                B, H = full((16384 // S, 2048 // HD), (1, 2))
                heads, scale, CAUSAL = B * H, HD ** -0.5, str(causal).lower()
                q, k, v, do = (random("f16", B, H, S, HD) for _ in range(4))
                flash, cudnn = (SB.MATH, SB.MATH) if REHEARSE else (SB.FLASH_ATTENTION, SB.CUDNN_ATTENTION)
                work, unit = 10.0 * heads * S * S * HD * (0.5 if causal else 1), "TFLOP/s"

                def theirs(backend):
                    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
                    with sdpa_kernel(backend):
                        y = attend(*leaves, is_causal=causal)
                    return y.detach(), lambda: torch.autograd.grad(y, leaves, do, retain_graph=True)

                o, flash_fn = theirs(flash)
                _, cudnn_fn = theirs(cudnn)
                sees = torch.ones(S, S, dtype=torch.bool, device=D).tril() if causal else None
                lse = torch.empty(heads, S, device=D)
                for h, (a, b) in enumerate(zip(q.view(heads, S, HD), k.view(heads, S, HD)) if not SHARE else ()):
                    s = (a.float() @ b.float().T) * scale
                    lse[h] = torch.logsumexp(s if sees is None else s.masked_fill(~sees, -math.inf), 1)
                    del s
                del sees
                grads = [torch.full_like(t, math.nan) for t in (q, k, v)]
                dq, dk, dv = (t.view(heads, S, HD) for t in grads)
                sides = [t.view(heads, S, HD) for t in (q, k, v, do)]
                delta = torch.empty(heads, S, device=D)

                def twice(c):
                    def make():
                        call = lambda name, *args, **m: kernel("attention_backward.tile", name, D=HD, **m).bind(None, *args)
                        own, queries, deep, keys, warps, stay = c
                        how = dict(CAUSAL=CAUSAL, warps=warps, STAY=stay)
                        calls = [call("attention_delta", o, do, delta, heads, S),
                                 call("attention_dkdv", q, k, v, do, lse, delta, dk, dv, heads, S, scale, BM=queries, BN=own, STAGES=deep, **how),
                                 call("attention_dq", q, k, v, do, lse, delta, dq, heads, S, scale, BM=own, BN=keys, **how)]
                        return lambda: [f() for f in calls]
                    return make

                def once(c):
                    def make():
                        stages, early = c
                        BM = 128 if HD == 64 else 64
                        blocks = tilec.cdiv(S, BM)
                        file = "attention_backward_wgmma.tile"
                        rows, lse2, sums = (torch.empty(heads, blocks * BM, *more, device=D) for more in ((), (), (HD,)))
                        calls = [kernel(file, "attention_rows", D=HD, BM=BM).bind(None, o, do, lse, rows, lse2, sums, heads, S),
                                 kernel(file, "attention_backward", D=HD, STAGES=stages, EARLY=early, CAUSAL=CAUSAL).bind(
                                     None, *sides, lse2, rows, sums, dk, dv, scale),
                                 kernel(file, "attention_dq", D=HD).bind(None, sums, dq, heads, S, scale)]
                        return lambda: [f() for f in calls]
                    return make

                space = [(64, 32, 2, 32, 4), (128, 64, 2, 128, 8), (128, 64, 3, 128, 8), *([(128, 128, 3, 128, 8)] if HD == 64 else [])]
                ours = {c: twice(c) for c in [(*c, "false") for c in space] + [(*space[2], "auto")]}
                hand = {(n, early): once((n, early)) for n in full((2, 3), (2,)) for early in ("true", "false")}
                exact = grads if SHARE else cudnn_fn()

                def checked(what, make):
                    for t in grads:
                        t.fill_(math.nan)
                    fn, used = ran(make)
                    fn()
                    for name, t, ref in zip(("dq", "dk", "dv"), grads, exact):
                        check(f"attention_backward {what} {case} {name}", t, ref, 5e-3)
                    return fn, used

                _, choice = best(ours.items())
                fn, kernels = checked("twice", ours[choice])
                found = {"flash2": rate(times(flash_fn), work, unit), "cudnn": None, "tilec": rate(times(fn), work, unit, choice)}
                _, choice = best(hand.items())
                fn, used = checked("once", hand[choice])
                to, tc = settle(lambda: fn, lambda: cudnn_fn)         # in turns: the chip is as warm for both
                found.update(cudnn=rate(tc, work, unit), **{"by hand": rate(to, work, unit, choice)})
                record("attention_backward", case, unit, found, ["flash2", "cudnn"], work=work, kernels=kernels + used)
                empty_cache()


# Flex attention: what our kernels are given for a mask and a score.
FLEX = {
    "causal": ("causal", None),
    "window": ("window(1024)", None),
    "prefix": ("prefix", None),
    "documents": ("documents", None),
    "alibi": ("causal", "alibi({H})"),
    "soft_cap": ("None", "soft_cap(20.0)"),
    "dilated": ("dilated(4)", None),
    "shared_keys": ("causal", None),           # a head of keys and values for four of queries
}


def flex_peer(kind, B, H, S, data):
    """mask_mod and score_mod of torch's flex_attention; None: none."""
    mask = {
        "window": lambda b, h, i, j: (i >= j) & (i - j < 1024),
        "prefix": lambda b, h, i, j: (i >= j) | (j < data[b]),
        "documents": lambda b, h, i, j: (i >= j) & (data[i] == data[j]),
        "dilated": lambda b, h, i, j: (i >= j) & ((i - j) % 4 == 0),
        "soft_cap": None,
    }.get(kind, lambda b, h, i, j: i >= j)
    score = {
        "alibi": lambda s, b, h, i, j: s - (i - j) * torch.exp2((h + 1) * (-8.0 / H)),
        "soft_cap": lambda s, b, h, i, j: 20.0 * torch.tanh(s / 20.0),
    }.get(kind)
    return mask, score


def flex_exact(q, k, v, mask, score):
    """lse and o in f32, a head at a time; the pairs that are seen."""
    B, H, S, HD = q.shape
    i, j = torch.arange(S, device=D)[:, None], torch.arange(S, device=D)[None, :]
    o, lse, pairs = torch.empty_like(q), torch.empty(B, H, S, device=D), 0
    for b in range(B if not SHARE else 0):
        sees = mask(torch.tensor(b, device=D), 0, i, j) if mask else torch.ones(S, S, dtype=torch.bool, device=D)
        pairs += H * int(sees.sum())
        for h in range(H):
            of = h * k.shape[1] // H
            s = q[b, h].float() @ k[b, of].float().T * HD ** -0.5
            s = (score(s, b, torch.tensor(h, device=D), i, j) if score else s).masked_fill(~sees, -math.inf)
            lse[b, h] = torch.logsumexp(s, 1)
            o[b, h] = (torch.softmax(s, 1) @ v[b, of].float()).to(q.dtype)
            del s
    return lse, o, pairs


FLEX_S = full(4096, 100)


def flex_case(kind, HD):
    return f"{kind} d{HD} s{FLEX_S}"


class Flex:
    """A problem: its tensors, what our kernels are given, and torch's call of it (None in a rehearsal)."""

    def __init__(self, section, kind, HD):
        S = FLEX_S
        self.case = flex_case(kind, HD)
        case_begins(section, self.case)
        self.S, self.HD, (self.B, self.H) = S, HD, full((4, 2048 // HD), (1, 2))
        self.planes, self.scale, self.made = self.B * self.H, HD ** -0.5, {}
        self.group = min(4, self.H) if kind == "shared_keys" else 1
        self.q, self.k, self.v = (random("f16", self.B, n, S, HD) for n in (self.H, self.H // self.group, self.H // self.group))
        self.data = {"prefix": lambda: torch.full((self.B,), S // 4, dtype=torch.int32, device=D),
                     "documents": lambda: (torch.arange(S, device=D) // (S // 8)).to(torch.int32)}.get(kind, lambda: None)()
        self.mask, self.score = flex_peer(kind, self.B, self.H, S, self.data)
        allowed, score = FLEX[kind]
        self.given = {"ALLOWED": allowed, "SHARED": str(kind != "prefix").lower()}
        self.scores = {} if score is None else {"SCORE": score.format(H=self.H)}
        self.lse, self.o, self.pairs = flex_exact(self.q, self.k, self.v, self.mask, self.score)

    def lists(self, BM, BN, by_keys=False):
        """Our blocks, made once: as torch's block mask, they are no part of what is measured."""
        if (BM, BN, by_keys) in self.made:
            return self.made[BM, BN, by_keys]
        own, other = (tilec.cdiv(self.S, n) for n in ((BN, BM) if by_keys else (BM, BN)))
        group = self.group if by_keys else 1
        planes = 1 if self.given["SHARED"] == "true" else self.planes // group
        blocks, counts = (torch.zeros(planes, own, n, dtype=torch.int32, device=D) for n in (other * group, 2))
        kernel("flex_attention.tile", "flex_blocks", ALLOWED=self.given["ALLOWED"], GROUP=group, BM=BM, BN=BN, BY_KEYS=str(by_keys).lower()).bind(
            None, blocks, counts, planes, self.S, self.H, self.data)()
        self.made[BM, BN, by_keys] = blocks, counts
        return blocks, counts

    def kernel(self, name, BM, BN, stages, warps):
        return kernel("flex_attention.tile", name, D=self.HD, GROUP=self.group, BM=BM, BN=BN, STAGES=stages, warps=warps, **self.given, **self.scores)

    def theirs(self, *leaves):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        blocks = self.mask and create_block_mask(self.mask, self.B if self.given["SHARED"] == "false" else None, None, self.S, self.S, device=D)
        torch._dynamo.reset()
        fast = torch.compile(flex_attention, dynamic=False, mode=os.environ.get("FLEX_MODE", "max-autotune-no-cudagraphs"))
        return lambda: fast(*leaves, score_mod=self.score, block_mask=blocks, enable_gqa=self.group > 1)


def flex():
    """Forward, f16, 16,384 tokens, 2,048 hidden, masks and scores as functions; beside torch.compile's flex_attention. Work is what is seen."""
    for HD in full((128, 64), (64,)):
        for kind in filter(lambda kind: asked_for(flex_case(kind, HD)), FLEX):
            x = Flex("flex", kind, HD)
            space = [(128, 128, 2, 8), (128, 128, 3, 8), (128, 64, 2, 8), (128, 64, 3, 8), (128, 64, 2, 4), (64, 64, 2, 4), (64, 128, 2, 4)]
            o, lse = torch.full_like(x.q, math.nan), torch.empty_like(x.lse)
            ours = {c: (lambda c=c: x.kernel("flex_attention", *c).bind(None, x.q, x.k, x.v, o, lse, *x.lists(*c[:2]), x.planes, x.S, x.H, x.scale, x.data, None))
                    for c in space}
            fn = None if REHEARSE or SHARE else x.theirs(x.q, x.k, x.v)
            _, choice = best_hot(ours.items(), fn) if fn else best(ours.items())
            call, kernels = ran(ours[choice])
            o.fill_(math.nan)
            to, *tt = settle(lambda: call, *([lambda: fn] if fn else []))
            call()
            check(f"flex {x.case}", o, x.o, 3e-3)
            check(f"flex {x.case} lse", lse, x.lse, 1e-4)
            if fn:
                check(f"flex {x.case} torch", fn(), x.o, 3e-3)
            work, unit = 4.0 * x.HD * x.pairs, "TFLOP/s"
            record("flex", x.case, unit, {**({"torch": rate(tt[0], work, unit)} if fn else {}), "tilec": rate(to, work, unit, choice)}, ["torch"], work=work, kernels=kernels)
            empty_cache()


FLEX_BACKWARD = {        # queries, keys, stages, warps
    "flex_dq": ((128, 128, 2, 8), (128, 128, 3, 8), (128, 64, 3, 8), (128, 64, 3, 4), (64, 64, 2, 4), (64, 64, 3, 4)),
    "flex_dkdv": ((32, 128, 4, 8), (64, 128, 2, 8), (64, 128, 3, 8), (128, 128, 2, 8), (128, 64, 2, 4), (64, 64, 2, 4), (32, 64, 3, 4)),
}


def flex_backward():
    """dq, dk and dv of the same, by all kernels that it takes; scores are computed twice, and nothing is added up by atomics."""
    for HD in full((128, 64), (64,)):
        for kind in filter(lambda kind: asked_for(flex_case(kind, HD)), ("causal", "window", "documents", "alibi", "soft_cap", "shared_keys")):
            x = Flex("flex_backward", kind, HD)
            do, delta = random("f16", *x.q.shape), torch.empty_like(x.lse)
            grads = [torch.full_like(t, math.nan) for t in (x.q, x.k, x.v)]
            leaves = [t.detach().requires_grad_() for t in (x.q, x.k, x.v)]
            fn = None
            if not REHEARSE and not SHARE:
                y = x.theirs(*leaves)()
                fn = lambda: torch.autograd.grad(y, leaves, do, retain_graph=True)

            sides = (x.q, x.k, x.v, do, x.lse, delta)
            first = lambda: kernel("attention_backward.tile", "attention_delta", D=HD).bind(None, x.o, do, delta, x.planes, x.S)

            def by(name, results):
                by_keys = name == "flex_dkdv"
                return {c: lambda c=c: x.kernel(name, *c).bind(None, *sides, *results, *x.lists(*c[:2], by_keys), x.planes, x.S, x.H, x.scale, x.data, None)
                        for c in FLEX_BACKWARD[name]}

            def whole(c):
                def make():
                    calls = first(), parts[1][c[1]](), parts[0][c[0]]()
                    return lambda: [f() for f in calls]
                return make

            first()()                                                       # delta, by which the others are measured
            parts = by("flex_dq", grads[:1]), by("flex_dkdv", grads[1:])
            choice = best_parts(parts, whole)
            call, kernels = ran(whole(choice))
            to, *tt = settle(lambda: call, *([lambda: fn] if fn else []))
            call()
            for name, t, ref in zip(("dq", "dk", "dv"), grads, fn() if fn else flex_grads(x, do, leaves)):
                check(f"flex_backward {x.case} {name}", t, ref, 5e-3)
            work, unit = 10.0 * x.HD * x.pairs, "TFLOP/s"
            record("flex_backward", x.case, unit, {**({"torch": rate(tt[0], work, unit)} if fn else {}), "tilec": rate(to, work, unit, choice)}, ["torch"], work=work, kernels=kernels)
            empty_cache()


def flex_grads(x, do, leaves):
    """dq, dk and dv in f32, of a rehearsal's size."""
    if SHARE:
        return leaves
    wide = [t.detach().float().requires_grad_() for t in leaves]
    i, j = torch.arange(x.S)[:, None], torch.arange(x.S)[None, :]
    keys, values = (t.repeat_interleave(x.group, 1) for t in wide[1:])
    s = wide[0] @ keys.transpose(2, 3) * x.scale
    if x.score:
        s = torch.stack([x.score(s[:, h], 0, torch.tensor(h), i, j) for h in range(x.H)], 1)
    sees = x.mask(torch.tensor(0), 0, i, j) if x.mask else torch.ones(x.S, x.S, dtype=torch.bool)
    y = torch.softmax(s.masked_fill(~sees, -math.inf), 3) @ values
    return torch.autograd.grad(y, wide, do.float())


def async_add():
    """An elementwise add by asynchronous copies, 32768 x 32768 f32, beside the same Gluon kernels and torch."""
    if not REHEARSE:
        import gluon_peers as gp
    n, XB, YB = full(32768, 64), 32, 64
    case_begins("async_add", "all")
    a, b = torch.randn(n, n, device=D), torch.randn(n, n, device=D)
    c, d = torch.full_like(a, math.nan), torch.empty_like(a)
    at = lambda k: k.bind(None, a, b, c, n, n, n)
    ours = {"plain": lambda: at(kernel("add_async.tile", "add_plain", BM=XB, BN=YB))}
    theirs = {"plain": lambda: gp.add_plain[(n // XB,)](a, b, d, n, n, n, XB, YB)}
    for k in (1, 2, 3):
        ours[f"pipe{k}"] = lambda k=k: at(kernel("add_async.tile", "add_pipelined", BM=XB, BN=YB, BUFFERS=k))
        theirs[f"pipe{k}"] = lambda k=k: gp.add_pipelined[(n // XB,)](a, b, d, n, n, n, XB, YB, k)
    work = 12.0 * n * n
    for name in ours:
        call, kernels = ran(ours[name])
        c.fill_(math.nan)
        call()
        check(f"async_add {name}", c, a + b, 1e-7)
        to, tt = settle(lambda: call, lambda: theirs[name] if not REHEARSE else call)
        record("async_add", name, "TB/s", {"gluon": rate(tt, work, "TB/s"), "tilec": rate(to, work, "TB/s")}, ["gluon"], work=work, kernels=kernels)
    # Any blocks: whole rows of 2048 keep more bytes on their way than 32 pieces of 64.
    blocks = {(k, BM, BN, w): (lambda k=k, BM=BM, BN=BN, w=w: kernel("add_async.tile", "add_pipelined", BM=BM, BN=BN, BUFFERS=k, warps=w).bind(None, a, b, c, n, n, n))
              for k in (3, 4) for BM, BN in ((1, 2048), (2, 2048), (4, 1024), (2, 1024)) for w in (4, 8)}
    _, cfg = best(blocks.items())
    call, kernels = ran(blocks[cfg])
    to, tp = settle(lambda: call, lambda: lambda: torch.add(a, b, out=d))
    check("async_add best", c, a + b, 1e-7)
    record("async_add", "best of any blocks", "TB/s", {"torch": rate(tp, work, "TB/s"), "tilec": rate(to, work, "TB/s", f"buffers, BM, BN, warps = {cfg}")}, ["torch"], work=work,
           kernels=kernels)


def memcpy():
    """f32, 1 GiB there and as much back, by asynchronous copies and by tensor copies, beside torch's copy and Gluon's."""
    n = full(2**28, 2**13)
    x = torch.randn(n, device=D)
    y = torch.full_like(x, math.nan)
    work, theirs = 8.0 * n, {"torch": {"copy_": lambda: lambda: y.copy_(x)}}
    if not REHEARSE:
        import gluon_peers as gp
        theirs["gluon"] = {(B, w): (lambda B=B, w=w: lambda: gp.memcpy[(triton.cdiv(n, B),)](x, y, n, B, w, num_warps=w)) for B, w in ((1024, 4), (2048, 4), (4096, 8))}
    line = lambda B: kernel("memcpy_tma.tile", "copy_line", BLOCK=B).bind(None, x, y)
    boxes = lambda m, k: kernel("memcpy_tma.tile", "copy_boxes", T="f32", BM=m, BN=k).bind(None, x.view(-1, 1024), y.view(-1, 1024))
    forms = {
        "asynchronous": {(B, w): (lambda B=B, w=w: kernel("memcpy_async.tile", "memcpy", BLOCK=B, warps=w).bind(None, x, y, n))
                         for B, w in ((1024, 4), (2048, 4), (4096, 8), (4096, 4))},
        "tensor": {**{("line", B): (lambda B=B: line(B)) for B in (1024, 2048, 4096, 8192)}, **{("boxes", m, k): (lambda m=m, k=k: boxes(m, k)) for m, k in ((8, 256), (8, 512), (32, 256))}},
    }
    for form, ours in forms.items():
        case_begins("memcpy", form)
        kernels, found = against("memcpy", form, ours, theirs)
        y.fill_(math.nan)
        found["tilec"][1]()
        sync()
        check(f"memcpy {form}", y, x, 1e-9)
        record("memcpy", f"f32 2^28, {form} copies", "TB/s", {name: rate(t, work, "TB/s", label) for name, (label, _, t) in found.items()}, list(theirs),
               work=work, kernels=kernels)


NUMBERS = full(2**24, 2**12)


def per_row(section, name, file_args, N, T, space, args, peer_args, work, torch_fn, more=None, peer_more=None, peer=None):
    """A kernel of order.tile that does R rows of N in a program, beside the peer of the same form; 2^24 elements."""
    rows = NUMBERS // N
    ours = {(R, w): (lambda R=R, w=w: kernel("order.tile", name, N=N, R=R, warps=w, **file_args).bind(None, *args, rows)) for R, w in space}
    for b in more or ():
        ours.update({(R, w, b): (lambda R=R, w=w, b=b: kernel("order.tile", name, N=N, R=R, warps=w, BLOCKS=b, **file_args).bind(None, *args, rows)) for R, w in space})
    jit = getattr(peers, peer or name)
    theirs = {(R, w): (lambda R=R, w=w: lambda: jit[(rows // R,)](*peer_args, N, R, *(peer_more or ()), num_warps=w)) for R, w in space}
    contest(section, f"{T} rows of {N}", work, ours, theirs, torch_fn)


def row_space(N, most=64):
    """Rows of a program and warps: from 4 to `most` elements a thread."""
    return [(R, w) for R in (1, 2, 4, 8, 16) for w in (1, 2, 4, 8, 16, 32) if 4 <= R * N / (32 * w) <= most and (R == 1 or R * N <= 2048)]


def sort():
    for T, N in [(T, N) for T in ("f32", "i32") for N in full((128, 1024, 2048), (128,))]:
        case_begins("sort", f"{T} rows of {N}")
        x = torch.randn(NUMBERS // N, N, device=D)
        if T == "i32":
            x = torch.randint(-2**31, 2**31 - 1, x.shape, device=D, dtype=torch.int32)
        y, p = torch.full_like(x, -7), torch.empty_like(x)
        per_row("sort", "sort_rows", dict(T=T), N, T, row_space(N), (x, y), (x, p), 8.0 * x.numel(), lambda: torch.sort(x, -1))
        check(f"sort {T} {N}", y, torch.sort(x, -1).values, 1e-9)
    for N in full((1024, 2048), (128,)):                      # places as well: no peer but torch
        case_begins("argsort", f"f32 rows of {N}")
        x = torch.randn(NUMBERS // N, N, device=D)
        at = torch.full((NUMBERS // N, N), -7, device=D, dtype=torch.int32)
        ours = {(R, w): (lambda R=R, w=w: kernel("order.tile", "argsort_rows", N=N, R=R, warps=w).bind(None, x, at, NUMBERS // N)) for R, w in row_space(N)}
        _, cfg = best(ours.items())
        alone("argsort", f"f32 rows of {N}", ours[cfg], cfg, 8.0 * x.numel(), "TB/s", lambda: torch.argsort(x, -1))
        check(f"argsort {N}", torch.gather(x, 1, at.long()), torch.sort(x, -1).values, 1e-9)


def topk():
    for N, K in full(((128, 8), (1024, 8), (1024, 64), (2048, 8)), ((128, 8),)):
        case_begins(f"top{K}", f"f32 rows of {N}")
        x = torch.randn(NUMBERS // N, N, device=D)
        y, p = torch.full((NUMBERS // N, K), math.nan, device=D), torch.empty(NUMBERS // N, K, device=D)
        at = torch.full((NUMBERS // N, K), -7, device=D, dtype=torch.int32)
        work = 4.0 * x.numel() + 4.0 * y.numel()
        per_row(f"top{K}", "top_rows", dict(K=K), N, "f32", row_space(N), (x, y), (x, p), work, lambda: torch.topk(x, K), peer_more=(K,))
        want = torch.topk(x, K)
        check(f"top {N} {K}", y, want.values, 1e-9)
        ours = {(R, w): (lambda R=R, w=w: kernel("order.tile", "topk_rows", N=N, R=R, warps=w, K=K).bind(None, x, y, at, NUMBERS // N)) for R, w in row_space(N)}
        _, cfg = best(ours.items())
        y.fill_(math.nan)
        alone(f"top{K}", f"f32 rows of {N}, with places", ours[cfg], cfg, work, "TB/s")
        check(f"topk {N} {K}", y, want.values, 1e-9)
        check(f"topk places {N} {K}", torch.gather(x, 1, at.long()), want.values, 1e-9)


def scan():
    for N in full((1024, 4096, 16384), (128,)):
        case_begins("cumsum", f"f32 rows of {N}")
        x = torch.randn(NUMBERS // N, N, device=D)
        y, p = torch.full_like(x, math.nan), torch.empty_like(x)
        per_row("cumsum", "cumsum_rows", {}, N, "f32", row_space(N), (x, y), (x, p), 8.0 * x.numel(), lambda: torch.cumsum(x, -1), more=(2,))
        check(f"cumsum {N}", y, torch.cumsum(x.double(), -1), 1e-6)
        a = torch.rand(NUMBERS // N, N, device=D)
        per_row("recurrence", "recurrence_rows", {}, N, "f32", row_space(N), (a, x, y), (a, x, p), 12.0 * x.numel(), None)
        state, want = torch.zeros(NUMBERS // N, device=D, dtype=torch.float64), torch.empty(NUMBERS // N, 64, device=D, dtype=torch.float64)
        for j in range(64):
            state = a[:, j].double() * state + x[:, j].double()
            want[:, j] = state
        check(f"recurrence {N}", y[:, :64], want, 1e-6)
        for what, got, ref in peer("recurrence", p, y):
            check(f"{what} {N}", got, ref, 1e-5)


def prefix_sum():
    """A whole array in one pass by looking back (2^26 numbers), and in three launches, beside torch (CUB); a recurrence has no peer there."""
    n = full(2**26, 2**14)
    states = lambda B, words=1: (torch.zeros(n // B * words, device=D, dtype=torch.int64), torch.zeros(1, device=D, dtype=torch.int64))
    # elements a thread: 8 to 24; programs a multiprocessor by the registers that these take
    shapes = [(B, w, per, W) for B, w, pers in ((4096, 8, (1, 5)), (8192, 16, (2,)), (2048, 4, (1, 8)), (4096, 16, (1, 3)), (2048, 8, (1, 6)), (8192, 8, (1, 3)),
                                                (3072, 4, (1,)), (6144, 8, (1, 3))) for per in pers for W in (64, 128, 32)]
    for T, Y, dt, to in (("i32", "i32", torch.int32, torch.int32), ("f32", "f32", torch.float32, torch.float32), ("i32", "i64", torch.int32, torch.int64),
                         ("f64", "f64", torch.float64, torch.float64), ("bf16", "bf16", torch.bfloat16, torch.bfloat16)):
        case_begins("prefix_sum", f"{T} 2^26" if T == Y else f"{T} to {Y} 2^26")
        x = torch.randint(-4, 5, (n,), device=D).to(dt)
        y = torch.full((n,), -7, device=D, dtype=to)
        want = torch.cumsum(x.float() if T == "bf16" else x, 0, dtype=torch.float32 if T == "bf16" else to)
        work, sides, kernels = float(n * (x.itemsize + y.itemsize)), {}, []

        def once(B, w, per, W):
            more = dict(PER=per) if per > 1 else {}
            return kernel("prefix_sum.tile", "prefix_sum", T=T, Y=Y, BLOCK=B, warps=w, WINDOW=W, **more).bind(None, x, y, n, *states(B // 2, 2))

        def thrice(B, w):
            sums = torch.empty(n // B, device=D, dtype=dt)
            a = kernel("prefix_sum.tile", "sums_of_blocks", T=T, BLOCK=B, warps=w).bind(None, x, sums, n)
            b = kernel("prefix_sum.tile", "prefix_of_sums", T=T).bind(None, sums, n // B)
            c = kernel("prefix_sum.tile", "prefix_sum_with", T=T, BLOCK=B, warps=w).bind(None, x, sums, y, n)
            return lambda: (a(), b(), c())
        spaces = {"once": (once, shapes)}
        if T == Y and T in ("i32", "f32"):
            spaces["thrice"] = (thrice, [(B, w) for B in (2048, 4096, 8192) for w in (4, 8, 16) if B // (32 * w) <= 32])
        for name, (make, shapes_of) in spaces.items():
            space = {c: (lambda c=c, make=make: make(*c)) for c in shapes_of}
            _, cfg = best(space.items())
            y.fill_(-7)
            run, used = ran(space[cfg])
            sides[f"in {'one pass' if name == 'once' else 'three launches'}"] = rate(times(run), work, "TB/s", cfg)
            kernels += used
            check(f"prefix_sum {T} {name}", y, want, 4e-3 if T == "bf16" else 1e-9)
        record("prefix_sum", f"{T} 2^26" if T == Y else f"{T} to {Y} 2^26", "TB/s",
               {"torch": rate(times(lambda: torch.cumsum(x, 0, dtype=to)), work, "TB/s"), **sides}, ["torch"], work=work, kernels=kernels)
        del x, y, want
    case_begins("recurrence of an array", "f32 2^26")
    a, x = torch.rand(n, device=D) - 0.5, torch.randn(n, device=D)
    y = torch.full_like(x, math.nan)
    space = {c: (lambda c=c: kernel("prefix_sum.tile", "recurrence", BLOCK=c[0], warps=c[1], WINDOW=c[3], **(dict(PER=c[2]) if c[2] > 1 else {}))
                 .bind(None, a, x, y, n, *states(c[0], 2))) for c in shapes if c[0] // c[1] <= 512}
    _, cfg = best(space.items())
    y.fill_(math.nan)
    space[cfg]()()
    want, at = torch.empty(64, dtype=torch.float64), 0.0
    for i in range(64):
        want[i] = at = float(a[i]) * at + float(x[i])
    check("recurrence of an array", y[:64].cpu(), want, 1e-5)
    check("recurrence of an array, equation", y[1:], a[1:] * y[:-1] + x[1:], 1e-5)
    alone("recurrence of an array", "f32 2^26", space[cfg], cfg, 12.0 * n, "TB/s")


def select():
    """What is wanted of 2^26 numbers and where it was, beside torch's masked_select and nonzero, two calls; what is new in a sorted array."""
    n = full(2**26, 2**13)
    x, y = torch.randn(n, device=D), torch.full((n,), math.nan, device=D)
    at, which, total = (torch.empty(k, device=D, dtype=torch.int32) for k in (n, n, 1))
    space = [(B, w) for B in (1024, 2048, 4096) for w in (4, 8, 16) if B // (32 * w) <= 16]

    def cleared(name, B, w, *args, **kinds):
        state, ticket = (torch.zeros(k, device=D, dtype=torch.int64) for k in (n // B, 1))
        return kernel("select.tile", name, BLOCK=B, warps=w, **kinds).bind(n // B, *args, n, state, ticket)
    for share in (0.02, 0.5):
        case_begins("select", f"f32 2^26, {share} of them")
        want = torch.rand(n, device=D) < share
        make = {c: (lambda c=c: cleared("select", *c, x, want, y, at, total)) for c in space}
        _, cfg = best(make.items())
        make[cfg]()()
        count, ref = int(total), torch.masked_select(x, want)
        if count != len(ref):
            failures.append(f"select {share}: {count} elements of {len(ref)}")
        check(f"select {share}", y[:len(ref)], ref, 1e-9)
        check(f"select {share} places", at[:len(ref)], want.nonzero()[:, 0], 1e-9)
        alone("select", f"f32 2^26, {share} of them", make[cfg], cfg, None, "ms", lambda: (torch.masked_select(x, want), want.nonzero()), better="less")
    s = torch.randint(0, n // 4, (n,), device=D, dtype=torch.int32).sort()[0]
    v = torch.empty_like(s)
    make = {c: (lambda c=c: cleared("unique", *c, s, v, at, which, total, T="i32")) for c in space}
    _, cfg = best(make.items())
    make[cfg]()()
    ref, inverse = torch.unique_consecutive(s, return_inverse=True)
    if int(total) != len(ref):
        failures.append(f"unique: {int(total)} elements of {len(ref)}")
    check("unique", v[:len(ref)], ref, 1e-9)
    check("unique which", which, inverse, 1e-9)
    alone("select", "unique i32 2^26", make[cfg], cfg, None, "ms", lambda: torch.unique_consecutive(s, return_inverse=True), better="less")


def radix_sort():
    """2^26 numbers with their places, and alone: a launch that counts and one for each digit, beside torch.sort, which gives 64-bit places
    and knows no sort without them. counts, ticket and one state are zeros once; the launches leave them so."""
    n = full(2**26, 2**13)
    for T, x in (("i32", torch.randint(-2**31, 2**31 - 1, (n,), device=D, dtype=torch.int32)), ("f32", torch.randn(n, device=D))):
        keys = [torch.empty(n, device=D, dtype=torch.int32) for _ in range(2)]
        at, to = (torch.empty(n, device=D, dtype=torch.int32) for _ in range(2))
        y = torch.empty_like(x)
        ref, places = torch.sort(x, stable=True)

        def passes(with_places, ROW, WARPS, WINDOW, copies):
            tiles = tilec.cdiv(n, ROW * WARPS)
            counts, ticket = (torch.zeros(k, device=D, dtype=torch.int32) for k in (4 << 8, 1))
            states = [torch.zeros(WINDOW + tiles << 8, device=D, dtype=torch.uint32) for _ in range(2)]
            calls = [kernel("radix_sort.tile", "count_digits", T=T, BLOCK=8192, COPIES=copies).bind(min(tilec.cdiv(n, 8192), measure.dev.sms * 4), x, counts, n)]
            here, goes, along = x, [keys[0], keys[1], keys[0], y], [None, at, to, at, to] if with_places else [None] * 5
            for k in range(4):
                kinds = dict(X="u32" if k else T, Y=T if k == 3 else "u32", SHIFT=8 * k, ROW=ROW, WARPS=WARPS, WINDOW=WINDOW)
                calls.append(kernel("radix_sort.tile", "sort_by_digit", **kinds).bind(None, here, goes[k], counts, *states, ticket, n, along[k], along[k + 1]))
                here = goes[k]
                states.reverse()

            def run():
                for c in calls:
                    c()
            return run
        for name, with_places in ((f"{T} 2^26", True), (f"{T} 2^26, alone", False)):
            case_begins("radix_sort", name)
            shapes = [(512, 8, w, c) for w in (8, 4, 16) for c in (8, 1)] + [(ROW, w, 8, 8) for ROW, w in ((1024, 8), (512, 16), (256, 16), (512, 4))]
            space = {c: (lambda c=c, p=with_places: passes(p, *c)) for c in shapes}
            _, cfg = best(space.items())
            y.zero_()
            to.zero_()
            space[cfg]()()
            sync()
            check(f"radix_sort {name}", y, ref, 1e-9)
            if with_places:
                check(f"radix_sort {name} places", to, places, 1e-9)
            alone("radix_sort", name, space[cfg], cfg, n, "numbers/ns", (lambda: torch.sort(x, stable=True)) if with_places else None)


def kept_by_torch(x, t, k, p):
    """Logits / t without what top_k and then top_p leave out, as libraries do it: by a sort."""
    y = x.float() / t[:, None]
    y = y.masked_fill(y < y.topk(k, -1).values[:, -1:], -math.inf)
    ordered, places = y.sort(-1, descending=True)
    share = ordered.softmax(-1)
    ordered = ordered.masked_fill(share.cumsum(-1) - share >= p[:, None], -math.inf)
    return torch.empty_like(y).scatter_(-1, places, ordered)


def sampling():
    """A token for each row of a vocabulary: of all, and of the 50 best and 0.9 of these; torch's by softmax, sort and multinomial."""
    for rows, n, T in full(((1, 128256, "bf16"), (64, 128256, "bf16"), (256, 128256, "bf16"), (64, 32000, "f32")), ((2, 1000, "bf16"),)):
        x, t, p = random(T, rows, n) * 3, torch.full((rows,), 0.8, device=D), torch.full((rows,), 0.9, device=D)
        k, seeds, out = torch.full((rows,), 50, device=D, dtype=torch.int32), torch.arange(rows, device=D, dtype=torch.int64), torch.full((rows,), -1, device=D, dtype=torch.int32)
        space = [(B, w) for B, w in ((1024, 4), (2048, 8), (4096, 8), (4096, 16), (8192, 16), (8192, 32))]
        for name, kernel_of, theirs in (
                ("of all", lambda B, w: kernel("sampling.tile", "sample_gumbel", T=T, BLOCK=B, warps=w).bind(None, x, t, seeds, out, rows, n),
                 lambda: torch.multinomial((x.float() / t[:, None]).softmax(-1), 1)),
                ("top_k 50, top_p 0.9", lambda B, w: kernel("sampling.tile", "sample_kept", T=T, BLOCK=B, warps=w).bind(None, x, t, seeds, out, rows, n, None, k, p),
                 lambda: torch.multinomial(kept_by_torch(x, t, 50, p).softmax(-1), 1))):
            case = f"{T} {rows} x {n}, {name}"
            case_begins("sampling", case)
            make = {c: (lambda c=c, f=kernel_of: f(*c)) for c in space}
            _, cfg = best(make.items())
            out.fill_(-1)
            make[cfg]()()
            y = kept_by_torch(x, t, 50, p) if "top" in name else x.float()
            sync()
            # Of equal logits torch's sort leaves some out; ours are kept together.
            least = torch.where(torch.isfinite(y), x.float(), math.inf).amin(-1)
            if not bool((x.float().gather(-1, out.long()[:, None])[:, 0] >= least).all()):
                failures.append(f"sampling {case}: a token that is left out")
            alone("sampling", case, make[cfg], cfg, None, "ms", theirs, better="less")


def convolutions():
    """Beside cuDNN (torch, channels last): through windows of tensors, and causal ones by channel."""
    tiles = [(BM, BN, S, w) for BM, BN, w in ((128, 128, 8), (128, 64, 4), (256, 128, 8), (128, 256, 8), (64, 64, 4)) for S in (3, 4)]
    for n, h, ci, co, R, stride in full(((32, 56, 64, 64, 3, 1), (32, 28, 128, 128, 3, 1), (32, 14, 256, 512, 3, 2), (32, 14, 1024, 256, 1, 1)), ((1, 8, 64, 64, 3, 1),)):
        case, pad = f"f16 {n} x {h} x {h} x {ci}, {R} x {R}, {co}" + (f", by {stride}" if stride > 1 else ""), R // 2
        case_begins("conv2d", case)
        x, w = random("f16", n, h, h, ci), random("f16", R * R, co, ci) / 16
        p = (h + 2 * pad - R) // stride + 1
        y = torch.full((n * p * p, co), math.nan, device=D, dtype=torch.float16)
        images, filters = x.permute(0, 3, 1, 2), w.view(R, R, co, ci).permute(2, 3, 0, 1).contiguous(memory_format=torch.channels_last)
        theirs = lambda: F.conv2d(images, filters, stride=stride, padding=pad)
        make = {t: (lambda t=t: kernel("conv2d.tile", "conv2d_window", R=R, S=R, STRIDE=stride, PAD=pad, BM=t[0], BN=t[1], STAGES=t[2], WARPS=t[3])
                    .bind(None, x, w, y)) for t in tiles}
        _, cfg = best(make.items())
        y.fill_(math.nan)
        make[cfg]()()
        check(f"conv2d {case}", y, theirs().permute(0, 2, 3, 1).reshape(len(y), co), 2e-3)
        alone("conv2d", case, make[cfg], cfg, 2.0 * y.numel() * R * R * ci, "TFLOP/s", theirs)
    for n, length, ci, co, R, stride in full(((16, 3000, 384, 384, 3, 2), (16, 1500, 1024, 1024, 5, 1)), ((1, 64, 64, 64, 3, 1),)):
        case, pad = f"f16 {n} x {length} x {ci}, {R}, {co}" + (f", by {stride}" if stride > 1 else ""), R // 2
        case_begins("conv1d", case)
        x, w = random("f16", n, length, ci), random("f16", R, co, ci) / 16
        y = torch.full((n * ((length + 2 * pad - R) // stride + 1), co), math.nan, device=D, dtype=torch.float16)
        rows, filters = x.permute(0, 2, 1).contiguous(), w.permute(1, 2, 0).contiguous()
        theirs = lambda: F.conv1d(rows, filters, stride=stride, padding=pad)
        make = {t: (lambda t=t: kernel("conv1d.tile", "conv1d", R=R, STRIDE=stride, PAD=pad, BM=t[0], BN=t[1], STAGES=t[2], WARPS=t[3])
                    .bind(None, x, w, y)) for t in tiles}
        _, cfg = best(make.items())
        y.fill_(math.nan)
        make[cfg]()()
        check(f"conv1d {case}", y, theirs().permute(0, 2, 1).reshape(len(y), co), 2e-3)
        alone("conv1d", case, make[cfg], cfg, 2.0 * y.numel() * R * ci, "TFLOP/s", theirs)
    n, length, C = full((8, 4096, 5120), (2, 64, 64))
    case_begins("conv1d_causal", f"bf16 {n} x {length} x {C}")
    x, w, b = random("bf16", n * length, C), random("bf16", C, 4), random("bf16", C)
    y, first = torch.full_like(x, math.nan), torch.arange(0, (n + 1) * length, length, device=D, dtype=torch.int32)
    rows = x.view(n, length, C).permute(0, 2, 1).contiguous()
    theirs = lambda: F.silu(F.conv1d(rows, w[:, None], b, padding=3, groups=C)[..., :length])
    make = {t: (lambda t=t: kernel("conv1d.tile", "conv1d_causal", ROWS=t[0], BLOCK=t[1], warps=t[2])
                .bind(None, x, w, y, first, n, length, C, b, None, None)) for t in ((32, 128, 4), (16, 256, 4), (8, 512, 4), (16, 512, 8), (32, 256, 8), (64, 128, 8))}
    _, cfg = best(make.items())
    y.fill_(math.nan)
    make[cfg]()()
    check("conv1d_causal", y.view(n, length, C).permute(0, 2, 1), theirs(), 8e-3)
    alone("conv1d_causal", f"bf16 {n} x {length} x {C}", make[cfg], cfg, 4.0 * x.numel(), "TB/s", theirs)


def rotary_cache():
    """Queries and keys turned, keys and values into a paged cache, in one launch, beside torch's operators."""
    for tokens, heads, kv, d in full(((8192, 32, 8, 128), (64, 32, 8, 128)), ((8, 4, 2, 32),)):
        case = f"bf16 {tokens} x ({heads} + 2 x {kv}) x {d}"
        case_begins("rotary_cache", case)
        qkv, angle = random("bf16", tokens, heads + 2 * kv, d), torch.rand(tokens, d // 2, device=D) * 6
        c, s, positions = angle.cos(), angle.sin(), torch.arange(tokens, device=D, dtype=torch.int32)
        slots = torch.randperm(tokens, device=D)
        q = torch.empty(tokens, heads, d, device=D, dtype=torch.bfloat16)
        keys, values = (torch.zeros(tokens, kv, d, device=D, dtype=torch.bfloat16) for _ in "kv")
        theirs_to = [torch.empty_like(keys), torch.empty_like(values)]

        def theirs():
            turned = qkv[:, :heads + kv].float()
            a, b = turned[..., :d // 2], turned[..., d // 2:]
            turned = torch.cat([a * c[:, None] - b * s[:, None], b * c[:, None] + a * s[:, None]], -1).bfloat16()
            theirs_to[0][slots], theirs_to[1][slots] = turned[:, heads:], qkv[:, heads + kv:]
            return turned[:, :heads]
        make = {t: (lambda t=t: kernel("rotary.tile", "rotary_cache", HEADS=t[0], warps=t[1], HALF=above(d // 2))
                    .bind(None, qkv, positions, slots, c, s, q, keys, values, tokens, heads, kv, d, None)) for t in ((16, 4), (8, 2), (8, 4), (32, 4), (64, 8), (16, 2))}
        _, cfg = best(make.items())
        q.fill_(math.nan)
        make[cfg]()()
        for what, got, ref in (("q", q, theirs()), ("keys", keys, theirs_to[0]), ("values", values, theirs_to[1])):
            check(f"rotary_cache {case} {what}", got, ref, 8e-3)
        alone("rotary_cache", case, make[cfg], cfg, 4.0 * qkv.numel(), "TB/s", theirs)


def gather():
    for N in full((1024, 2048), (128,)):                   # one of 4096 takes Triton 100 to 160 s to compile
        case_begins("gather", f"f32 rows of {N}")
        x = torch.randn(NUMBERS // N, N, device=D)
        index = torch.randint(0, N, x.shape, device=D, dtype=torch.int32)
        y, p, wide = torch.full_like(x, math.nan), torch.empty_like(x), index.long()
        per_row("gather", "gather_rows", {}, N, "f32", row_space(N, 32), (x, index, y), (x, index, p), 12.0 * x.numel(), lambda: torch.gather(x, 1, wide))
        check(f"gather {N}", y, torch.gather(x, 1, wide), 1e-9)


def histogram():
    n = full(2**26, 2**14)
    for name, x in (("even", torch.randint(0, 256, (n,), device=D, dtype=torch.int32)), ("all alike", torch.full((n,), 77, device=D, dtype=torch.int32)),
                    ("normal", (torch.randn(n, device=D) * 20 + 128).clamp(0, 255).int())):
        case_begins("histogram", name)
        h, p = torch.zeros(256, device=D, dtype=torch.int32), torch.zeros(256, device=D, dtype=torch.int32)
        space = [(B, w, per) for B in (2048, 4096, 8192) for w in (4, 8) for per in (2, 4, 8) if B // (32 * w) <= 32]
        ours = {c: (lambda c=c: kernel("order.tile", "count_values", BLOCK=c[0], warps=c[1]).bind(measure.dev.sms * c[2], x, h, n)) for c in space}
        theirs = {c: (lambda c=c: lambda: peers.count_values[(measure.dev.sms * c[2],)](x, p, n, 256, c[0], num_warps=c[1])) for c in space}
        contest("histogram", name, 4.0 * n, ours, theirs, lambda: torch.bincount(x, minlength=256))
        h.zero_()
        ours[space[0]]()()
        check(f"histogram {name}", h, torch.bincount(x, minlength=256), 1e-9)


def quantise():
    """bf16 to f8e4m3, 8192 x 8192; torch: the conversion alone, with one scale known before."""
    n = full(8192, 256)
    x = random("bf16", n, n) * torch.exp2(torch.randint(-8, 9, (n, 1), device=D)).bfloat16()
    work = 3.0 * n * n
    for name, bm, bn, space in (("groups", 1, 128, [dict(ROWS=r, warps=w) for r in (8, 16, 32, 64) for w in (2, 4, 8)]),
                                ("squares", 128, 128, [dict(warps=w) for w in (4, 8, 16)]),
                                ("grid", 256, 256, [dict(SUB_M=m, SUB_N=s, warps=w) for m, s in ((32, 256), (16, 256), (64, 128)) for w in (4, 8, 16)])):
        case_begins(f"quantise_{name}", f"bf16 {n} x {n}")
        q, p = torch.zeros(n, n, device=D, dtype=torch.float8_e4m3fn), torch.zeros(n, n, device=D, dtype=torch.float8_e4m3fn)
        shape = (n // bn, n // bm) if name == "groups" else (n // bm, n // bn)
        s, ps = torch.full(shape, math.nan, device=D), torch.empty(shape, device=D)
        at = lambda c: (tilec.cdiv(n, c["ROWS"]), n // 128) if name == "groups" else shape
        ours = {str(c): (lambda c=c: kernel("quantise.tile", f"quantise_{name}", X="bf16", T="f8e4m3", **c).bind(None, x, q, s, n, n)) for c in space}
        if name == "grid":                      # in one pass, which Triton's language has no words for
            ours |= {str(c): (lambda c=c: kernel("quantise.tile", "quantise_cluster", X="bf16", T="f8e4m3", **c).bind(None, x, q, s, n, n))
                     for c in (dict(C=C, warps=w) for C in (2, 4, 8) for w in (4, 8, 16))}
        def theirs_of(c):
            more = (128, c["ROWS"]) if name == "groups" else (128,) if name == "squares" else (256, c["SUB_M"], c["SUB_N"])
            return lambda: getattr(peers, f"quantise_{name}")[at(c)](x, p, ps, n, n, *more, num_warps=c["warps"])
        theirs = {str(c): (lambda c=c: theirs_of(c)) for c in space}
        contest(f"quantise_{name}", f"bf16 {n} x {n}", work, ours, theirs, lambda: x.to(torch.float8_e4m3fn))
        most = x.float().view(n // bm, bm, n // bn, bn).abs().amax((1, 3))
        want = torch.where(most > 0, most / 448.0, torch.ones_like(most))
        check(f"quantise_{name} scales", s.T if name == "groups" else s, want, 1e-6)
        back = q.float().view(n // bm, bm, n // bn, bn) * want[:, None, :, None]
        check(f"quantise_{name} back", back.view(n, n), x, 0.04)
    M = full(4096, 128)
    case_begins("scaled_matmul", f"f8e4m3 {M}^3")
    a, b = torch.randn(M, M, device=D).to(torch.float8_e4m3fn), torch.randn(M, M, device=D).to(torch.float8_e4m3fn)
    sa, sb = torch.rand(M // 128, M, device=D) + 0.5, torch.rand(M // 128, M // 128, device=D) + 0.5
    c, d = torch.full((M, M), math.nan, device=D, dtype=torch.bfloat16), torch.empty(M, M, device=D, dtype=torch.bfloat16)
    tiles = [(128, 128, 8, 3), (128, 128, 8, 2), (64, 128, 4, 3), (128, 64, 4, 3), (64, 64, 4, 3), (128, 128, 4, 2), (128, 128, 8, 4), (128, 64, 8, 4)]
    ours = {t: (lambda t=t: kernel("quantise.tile", "scaled_matmul", BM=t[0], BN=t[1], warps=t[2], STAGES=t[3]).bind(
        None, a, sa, b, sb, c, M, M, M)) for t in tiles}
    theirs = {t: (lambda t=t: lambda: peers.scaled_matmul[(M // t[0] * (M // t[1]),)](a, sa, b, sb, d, M, M, M, t[0], t[1], 8, num_warps=t[2], num_stages=t[3]))
              for t in tiles}
    contest("scaled_matmul", f"f8e4m3 {M}^3", 2.0 * M**3, ours, theirs, unit="TFLOP/s")   # Triton's is by wgmma
    va = a.float() * sa.T.repeat_interleave(128, 1)
    vb = b.float() * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)
    check("scaled_matmul", c, va.double() @ vb.double().T, 5e-3)


def schedule():
    """Tiles one after the other and shared steps; beside cuBLAS, and Triton's persistent kernel."""
    def run(name, grid, M, N, K, a, b, c, **defines):
        return kernel("matmul_persistent.tile", name, **defines).bind(grid, a, b, c, M, N, K)
    tiles = [(128, 128, 64, 4, 3), (128, 256, 32, 8, 3), (128, 256, 64, 8, 3), (128, 128, 32, 4, 4)]
    for M, N, K in full(((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2304, 4096), (512, 512, 16384)), ((128, 256, 64),)):
        case_begins("schedule", f"f16 {M} x {N} x {K}")
        a, b = random("f16", M, K), random("f16", K, N)
        c, d = torch.full((M, N), math.nan, device=D), torch.empty(M, N, device=D, dtype=torch.float16)
        want, work, unit, figures, kernels = a.float() @ b.float(), 2.0 * M * N * K, "TFLOP/s", {}, []

        def add(label, make, cfg):
            fn, used = ran(make)
            figures[label] = rate(times(fn), work, unit, cfg)
            kernels.extend(used)
        shape = lambda t: dict(BM=t[0], BN=t[1], BK=t[2], warps=t[3], STAGES=t[4])
        count = lambda t: tilec.cdiv(M, t[0]) * tilec.cdiv(N, t[1])
        for order in ("grouped", "hilbert", "grouped_snake", "row_major"):
            makes = {(t, per): (lambda t=t, per=per: run("matmul_persistent", min(count(t), per * measure.dev.sms), M, N, K, a, b, c, ORDER=order, **shape(t))) for t in tiles for per in (1, 2)}
            _, cfg = best(makes.items())
            c.fill_(math.nan)
            add(order, makes[cfg], cfg)
            check(f"matmul_persistent {order} {M} {N} {K}", c, want, 2e-3)
        for name, grids in (("matmul_stream_k", lambda t: measure.dev.sms), ("matmul_split_k", lambda t: (count(t), max(1, measure.dev.sms // count(t))))):
            makes = {t: (lambda t=t: run(name, grids(t), M, N, K, a, b, c, **shape(t))) for t in tiles}
            _, cfg = best(makes.items())                      # sums are added to what is there: clearing is not in the time
            add(name[7:], makes[cfg], cfg)
            c.zero_()
            makes[cfg]()()
            check(f"{name} {M} {N} {K}", c, want, 2e-3)
        theirs = {t: (lambda t=t: lambda: peers.matmul_persistent[(min(count(t), measure.dev.sms),)](a, b, d, M, N, K, t[0], t[1], t[2], 8, num_warps=t[3], num_stages=t[4])) for t in tiles}
        peer_sides = {"cublas": rate(times(lambda: torch.matmul(a, b, out=d)), work, unit)}
        if not REHEARSE:
            _, cfg = best(theirs.items())
            peer_sides["triton"] = rate(times(theirs[cfg]()), work, unit, cfg)
        record("schedule", f"f16 {M} x {N} x {K}", unit, {**peer_sides, **figures}, list(peer_sides), work=work, kernels=kernels)


# ---- products of all shapes, beside cublasLt's best, Triton's and Gluon's kernels of tensor copies ----

# BM, BN, BK, warps, stages, rows of tiles in a group, persistent
WIDE_TILES = [(128, 256, 64, 8, 3, 8, True), (128, 256, 64, 8, 3, 8, False), (256, 128, 64, 8, 3, 8, True), (128, 256, 64, 8, 3, 16, True),
              (256, 128, 64, 8, 3, 8, False), (128, 128, 64, 8, 4, 8, True)]
# Two teams that multiply by turns, each with tiles of its own: what becomes of sums is hidden behind the other's products.
TURNS_TILES = [(128, 192, 64, 4, 5, 8, True), (192, 128, 64, 4, 5, 8, True), (128, 128, 64, 4, 4, 8, True), (64, 256, 64, 4, 4, 8, True)]
SMALL_TILES = [(128, 128, 64, 8, 4, 8, False), (128, 256, 64, 8, 3, 8, True), (64, 128, 64, 4, 4, 8, False), (128, 128, 64, 4, 4, 8, False),
               (128, 256, 64, 8, 3, 8, False), (64, 256, 64, 4, 3, 8, False), (128, 128, 64, 4, 3, 8, 2),
               (64, 128, 64, 4, 8, 8, False), (128, 64, 64, 4, 8, 8, False)]
# 8-bit floats whose sums are added up: of those the threads hold two sets.
PROMOTED_TILES = [(128, 128, 64, 8, 4, 8, True), (128, 128, 64, 8, 4, 8, False), (64, 128, 64, 4, 4, 8, False), (128, 256, 64, 8, 3, 8, True)]
# Kernel, BM, BN, BK, warps, stages; pieces of a tile on its way out, or whether programs stay.
WIDE_BOXES = [("boxes", 128, 256, 64, 8, 3, 2), ("teams", 128, 256, 64, 4, 3, True), ("boxes", 256, 128, 64, 8, 3, 2), ("boxes", 128, 256, 64, 8, 4, 2),
              ("teams", 128, 256, 64, 4, 3, False), ("boxes", 128, 128, 64, 8, 4, 1)]
SMALL_BOXES = [("boxes", 128, 128, 64, 8, 4, 1), ("teams", 128, 128, 64, 4, 4, False), ("boxes", 128, 256, 64, 8, 3, 2), ("boxes", 64, 128, 64, 4, 4, 1),
               ("boxes", 128, 128, 64, 4, 4, 1), ("teams", 128, 256, 64, 4, 3, True), ("boxes", 64, 128, 64, 4, 8, 1), ("boxes", 128, 64, 64, 4, 8, 1)]
# BM, BN, BK, stages, warps
WIDE_GLUON, SMALL_GLUON = [(128, 256, 64, 3, 8), (128, 128, 64, 4, 8)], [(128, 128, 64, 4, 8), (64, 128, 64, 4, 4), (128, 256, 64, 3, 8), (64, 128, 64, 8, 4)]


def few_tiles(M, N):
    """Fewer tiles of 128 x 256 than multiprocessors."""
    return tilec.cdiv(M, 128) * tilec.cdiv(N, 256) <= measure.dev.sms


def by_tilec(A, B, c, how, file="matmul.tile", name="matmul", args=None, **defines):
    """A launch of a product c = A B, of 8-bit numbers with twice the depth a step."""
    (M, K), N = A.shape, B.shape[1]
    BM, BN, BK, warps, stages, group, stay = how
    k = kernel(file, name, BM=BM, BN=BN, BK=BK * 2 // A.element_size(), STAGES=stages, GROUP=group, STAY=str(stay).lower(), warps=warps, **defines)
    return k.bind(None, *(args or (A, B, c, M, N, K, *A.stride(), *B.stride(), *c.stride())))


def by_triton(A, B, c, how, PROMOTE=None):
    """Likewise by Triton; B's columns may lie one behind the other."""
    from triton.tools.tensor_descriptor import TensorDescriptor
    (M, K), N = A.shape, B.shape[1]
    form, BM, BN, BK, warps, stages, more = how
    BK, across = BK * 2 // A.element_size(), B.stride(0) == 1
    b, tiles, of = B.T if across else B, tilec.cdiv(M, BM) * tilec.cdiv(N, BN), dict(num_warps=warps, num_stages=stages)
    if form == "teams":
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device=D, dtype=torch.int8))
        grid = (min(tiles, measure.dev.sms) if more else tiles,)
        return lambda: peers.matmul_teams[grid](A, b, c, M, N, K, BM, BN, BK, 8, across, more, PROMOTE, **of)
    boxes = [TensorDescriptor.from_tensor(x, list(shape)) for x, shape in ((A, (BM, BK)), (b, (BN, BK) if across else (BK, BN)), (c, (BM, BN // more)))]
    return lambda: peers.matmul_boxes[(min(tiles, measure.dev.sms),)](*boxes, M, N, K, BM, BN, BK, 8, across, more, PROMOTE, **of)


def by_gluon(A, B, c, how):
    """Likewise by Gluon, f16."""
    import gluon_peers as gp
    BM, BN, BK, stages, warps = how
    across = B.stride(0) == 1
    boxes = [gp.boxes(x, shape) for x, shape in ((A, (BM, BK)), (B.T if across else B, (BN, BK) if across else (BK, BN)), (c, (BM, BN)))]
    tiles = tilec.cdiv(A.shape[0], BM) * tilec.cdiv(B.shape[1], BN)
    return lambda: gp.matmul[(min(tiles, measure.dev.sms),)](*boxes, stages, 8, across, warps, num_warps=warps)


PEERS = os.environ.get("PEERS", "cublas triton teams gluon").split()
lt = None                                   # cublasLt, once it is asked for; False: it is not to be had


def by_cublas(A, B, c, fast=False):
    """{label: make} of torch's product, and of what cublasLt's heuristics list, first to last."""
    global lt
    one = torch.ones((), device=D)
    small = A.element_size() == 1
    theirs = (lambda: torch._scaled_mm(A, B, one, one, out_dtype=c.dtype, use_fast_accum=fast, out=c)) if small else lambda: torch.matmul(A, B, out=c)
    calls = {"torch": lambda: theirs}
    if REHEARSE or SHARE or lt is False:
        return calls
    try:
        lt = lt or cublaslt.Lt()
        calls |= {f"heuristic {i}": (lambda fn=fn: fn) for i, fn in enumerate(lt.products(A, B, c, fast), 1)}
    except (cublaslt.Unavailable, OSError, AttributeError) as e:
        lt = False
        print(f"note: cublasLt's heuristics are not to be had ({e}): cuBLAS is what torch calls", flush=True)
    return calls


def product_row(section, case, c, work, ours, theirs, want, tol):
    """All sides in turns into c, each result checked (want: of all, or {side: its own}); joules and clocks of ours and of the two first peers."""
    theirs = {name: makes for name, makes in theirs.items() if name in PEERS and (not REHEARSE or name == "cublas" or name == "triton" and INTERPRETED)}
    if "triton" in theirs and "teams" not in PEERS:
        theirs["triton"] = {how: make for how, make in theirs["triton"].items() if how[0] != "teams"}
    kernels, found = against(section, case, ours, theirs, brief=True)
    sides = {name: rate(t, work, "TFLOP/s", label) for name, (label, _, t) in found.items()}
    for name, (label, fn, _) in found.items():
        wanted = want.get(name, want["tilec"]) if isinstance(want, dict) else want
        if wanted is not None:
            c.fill_(math.nan)
            fn()
            sync()
            check(f"{section} {case} {name} {label}", c, wanted, tol)
    more = powers({name: (found[name][1], found[name][2][1]) for name in [*list(theirs)[:2], "tilec"] if name in found}, work)
    record(section, case, "TFLOP/s", sides, [name for name in found if name != "tilec"], work=work, kernels=kernels, **more)


def products_f16():
    """c = a b, and a b' with b given as N x K."""
    shapes = [(n, n, n) for n in (1024, 2048, 4096, 8192)] + [(8192, 8192, K) for K in (512, 1024, 2048, 4096, 16384)] + [(16384, 4096, 1024)]
    for M, N, K in full(shapes, [(128, 256, 128), (200, 272, 192)]):
        case_begins("products_f16", f"{M} x {N} x {K}")
        a, b, c = random("f16", M, K), random("f16", K, N), torch.empty(M, N, device=D, dtype=torch.float16)
        want = None if SHARE else a.float() @ b.float()
        tiles, boxes, gluon = (SMALL_TILES, SMALL_BOXES, SMALL_GLUON) if few_tiles(M, N) else (WIDE_TILES, WIDE_BOXES, WIDE_GLUON)
        tiles = tiles + TURNS_TILES if tiles is WIDE_TILES else tiles
        for layout, B in (("nn", b), ("nt", b.T.contiguous().T)):
            ours = {t: (lambda t=t: by_tilec(a, B, c, t, T="f16", TO="f16")) for t in tiles}
            theirs = {"cublas": by_cublas(a, B, c), "triton": {t: (lambda t=t: by_triton(a, B, c, t)) for t in boxes},
                      "gluon": {t: (lambda t=t: by_gluon(a, B, c, t)) for t in gluon}}
            product_row("products", f"f16 {layout} {M} x {N} x {K}", c, 2.0 * M * N * K, ours, theirs, want, 2e-3)
        del a, b, c, want
        empty_cache()


def products_f8():
    """8-bit floats, b given as N x K: summed as the tensor cores do it, on both sides, and with sums of 128 products added in f32."""
    for n in full((2048, 4096, 8192), (256,)):
        a, bt = (torch.randn(n, n, device=D).to(torch.float8_e4m3fn) for _ in range(2))
        c = torch.empty(n, n, device=D, dtype=torch.bfloat16)
        want = None if SHARE else a.float() @ bt.float().T
        summed = (SMALL_TILES, SMALL_BOXES) if few_tiles(n, n) else (WIDE_TILES, WIDE_BOXES)
        for promote, (tiles, boxes) in ((0, summed), (128, (PROMOTED_TILES, SMALL_BOXES))):
            case_begins("products_f8", f"{n} PROMOTE={promote}")
            ours = {t: (lambda t=t: by_tilec(a, bt.T, c, t, T="f8e4m3", TO="bf16", PROMOTE=promote)) for t in tiles}
            theirs = {"cublas": by_cublas(a, bt.T, c, fast=not promote),
                      "triton": {t: (lambda t=t: by_triton(a, bt.T, c, t, PROMOTE=promote or None)) for t in boxes}}
            product_row("products_f8", f"f8e4m3 nt {n} PROMOTE={promote}", c, 2.0 * n**3, ours, theirs, want, 8e-3)
        del a, bt, c, want
        empty_cache()


def products_scaled():
    """8-bit floats with a scale for 1 x 128 of a and 128 x 128 of b, in DeepGEMM's shapes; cublasLt's product of as many has one scale for each matrix."""
    from triton.tools.tensor_descriptor import TensorDescriptor
    shapes = [(7168, 16384), (24576, 1536), (32768, 512), (4096, 7168), (7168, 2048), (2112, 7168)]
    tiles = [(128, 128, 8, 4), (128, 128, 8, 5), (128, 128, 8, 6), (64, 128, 4, 3), (64, 128, 4, 4)]
    pointers, boxes = [(64, 128, 4, 3), (128, 128, 8, 3), (128, 128, 8, 4)], [(128, 128, 8, 4), (128, 128, 4, 4), (64, 128, 4, 4)]
    for N, K in full(shapes, [(264, 272)]):
        M = full(4096, 136)
        case_begins("products_scaled", f"{M} x {N} x {K}")
        a, b = (torch.randn(n, K, device=D).to(torch.float8_e4m3fn) for n in (M, N))
        groups = tilec.cdiv(K, 128)
        sa, sb = torch.rand(groups, M, device=D) + 0.5, torch.rand(tilec.cdiv(N, 128), groups, device=D) + 0.5
        c = torch.empty(M, N, device=D, dtype=torch.bfloat16)
        count = lambda t: tilec.cdiv(M, t[0]) * tilec.cdiv(N, t[1])
        ours = {t: (lambda t=t: kernel("quantise.tile", "scaled_matmul", TO="bf16", BM=t[0], BN=t[1], warps=t[2], STAGES=t[3]).bind(
            None, a, sa, b, sb, c, M, N, K)) for t in tiles}
        by_pointers = lambda t: lambda: peers.scaled_matmul[(count(t),)](a, sa, b, sb, c, M, N, K, t[0], t[1], 8, num_warps=t[2], num_stages=t[3])

        def by_boxes(t):
            box = [TensorDescriptor.from_tensor(x, list(shape)) for x, shape in ((a, (t[0], 128)), (b, (t[1], 128)), (c, t[:2]))]
            programs = min(count(t), measure.dev.sms)
            return lambda: peers.scaled_matmul_boxes[(programs,)](box[0], sa, box[1], sb, box[2], M, N, K, t[0], t[1], 8, num_warps=t[2], num_stages=t[3])
        triton_s = {("pointers", *t): (lambda t=t: by_pointers(t)) for t in pointers} | {("boxes", *t): (lambda t=t: by_boxes(t)) for t in boxes}
        want = None
        if not SHARE:
            of_b = sb.repeat_interleave(128, 0)[:N].repeat_interleave(128, 1)[:, :K]
            want = {"tilec": (a.float() * sa.T.repeat_interleave(128, 1)[:, :K]) @ (b.float() * of_b).T, "cublas": a.float() @ b.float().T}
            del of_b
        product_row("products_scaled", f"f8e4m3 {M} x {N} x {K}", c, 2.0 * M * N * K, ours, {"triton": triton_s, "cublas": by_cublas(a, b.T, c)}, want, 8e-3)
        del a, b, sa, sb, c, want
        empty_cache()


def products_grid():
    """8-bit floats with a scale for each 256 x 256 of both factors (GridQuant), beside cublasLt's product with one scale for each matrix."""
    tiles = [(128, 128, 8, 4), (128, 128, 8, 5), (128, 128, 8, 6), (128, 256, 8, 3), (64, 128, 4, 4)]
    for N, K in full([(7168, 16384), (4096, 7168), (4096, 4096)], [(256, 512)]):
        M = full(4096, 136)
        case_begins("products_grid", f"{M} x {N} x {K}")
        a, b = (torch.randn(n, K, device=D).to(torch.float8_e4m3fn) for n in (M, N))
        groups, side = tilec.cdiv(K, 256), lambda n: torch.rand(tilec.cdiv(n, 256), tilec.cdiv(K, 256), device=D) + 0.5
        sa, sb = side(M), side(N)
        c = torch.empty(M, N, device=D, dtype=torch.bfloat16)
        ours = {t: (lambda t=t: kernel("quantise.tile", "grid_matmul", TO="bf16", BM=t[0], BN=t[1], warps=t[2], STAGES=t[3]).bind(
            None, a, sa, b, sb, c, M, N, K)) for t in tiles}
        want = None
        if not SHARE:
            wide = lambda x, s, n: x.float() * s.repeat_interleave(256, 0)[:n].repeat_interleave(256, 1)[:, :K]
            want = {"tilec": wide(a, sa, M) @ wide(b, sb, N).T, "cublas": a.float() @ b.float().T}
        product_row("products_grid", f"f8e4m3 {M} x {N} x {K}", c, 2.0 * M * N * K, ours, {"cublas": by_cublas(a, b.T, c)}, want, 8e-3)
        del a, b, sa, sb, c, want
        empty_cache()


def few_bits(N, K, W, zeros, T="f16", GROUP=128):
    """Weights of N x K as words, scales and zero points (or none), both put in order by our kernels for x of type T, and what they stand for, in f32."""
    bits, groups = int(W[1:]), tilec.cdiv(K, GROUP)
    w = torch.randint(-2**31, 2**31, (N, K * bits // 32), device=D, dtype=torch.int64).to(torch.int32)
    s = ((torch.rand(N, groups, device=D) + 0.5) / 64).half()
    z = torch.randint(0, 16, (N, groups), device=D).half() if zeros else None
    p = torch.zeros(tilec.cdiv(N, 64), tilec.cdiv(K, 64) * 4, 32 * bits, device=D, dtype=torch.int32).view(torch.uint32)
    o = torch.zeros(groups, 2 if zeros else 1, N, device=D, dtype=torch.float16)
    kernel("matmul_w4_wgmma.tile", "reorder_w4", W=W, T=T).bind(None, w.view(torch.uint32), p, N, K)()
    kernel("matmul_w4_wgmma.tile", "reorder_scales").bind(None, s, z, o, N, groups, N)()
    q = (w[..., None] >> torch.arange(0, 32, bits, device=D) & (1 << bits) - 1).view(N, K).half()
    q = torch.where(q >= 1 << bits - 1, q - (1 << bits), q) if W[0] == "i" else q
    spread = lambda x: x.repeat_interleave(GROUP, 1)[:, :K]
    return w.view(torch.uint32), s, z, p, o, (q - spread(z) if zeros else q).float() * spread(s).float()


def reorder_w4():
    """Weights of 4 bits put in order for products of warpgroups, of rows of w and as GPTQ, AWQ and GGUF store them; torch: a copy of as many bytes."""
    N = K = full(8192, 256)
    w = torch.randint(-2**31, 2**31, (N * K // 8,), device=D, dtype=torch.int64).to(torch.int32).view(torch.uint32)
    p, q = torch.zeros(N // 64, K // 16, 128, device=D, dtype=torch.int32).view(torch.uint32), torch.empty_like(w)
    for words, name, defines in (("rows", "reorder_w4", {}), ("GPTQ", "reorder_w4", dict(COLUMNS="true")), ("AWQ", "reorder_awq", {})):
        case_begins("reorder_w4", words)
        alone("reorder_w4", f"{words}, {N} x {K}", lambda: kernel("matmul_w4_wgmma.tile", name, **defines).bind(None, w, p, N, K), "", 2.0 * w.nbytes,
              "TB/s", lambda: q.copy_(w))
    for form, each in (("q4_0", 18), ("q4_1", 20)):
        blocks = torch.randint(0, 256, (N * K // 32 * each,), device=D, dtype=torch.uint8)
        case_begins("reorder_w4", form)
        alone("reorder_w4", f"GGUF's {form}, {N} x {K}", lambda: kernel("matmul_w4_wgmma.tile", "reorder_gguf", FORMAT=f'"{form}"').bind(None, blocks, p, N, K), "",
              1.0 * w.nbytes + blocks.nbytes, "TB/s", lambda: q.copy_(w))


def products_mixed():
    """f16 by weights of 4 bits with scales and zero points, and of 8 with scales, through registers into products of warpgroups, beside the kernel that
    keeps to mma.sync, and cuBLAS, which has the weights in f16. Few tokens: in bytes of the weights as they are, with their scales, x and c, up to
    16 by matvec.tile, too. 8-bit floats and integers by weights of 4 bits, too. TOKENS="1 16" are those alone, KINDS="f16xu4" such factors."""
    kinds = [("f16", "u4", True), ("f16", "i8", False), ("f8e4m3", "u4", True), ("f8e4m3", "i4", False), ("i8", "u4", True)]
    tokens, wanted = (os.environ.get(name, "").split() for name in ("TOKENS", "KINDS"))
    for T, W, zeros in (kind for kind in kinds if not wanted or "x".join(kind[:2]) in wanted):
        for M, N, K in full([(M, n, n) for n in (4096, 8192) for M in (1, 16, 64, 4096) if not tokens or str(M) in tokens], [(3, 264, 256), (136, 264, 256)]):
            many, wide, case = M > 64, T == "f16", f"{T} x {W}, {M} x {N} x {K}"
            case_begins("products_mixed", case)
            w, s, z, p, o, values = few_bits(N, K, W, zeros, T)
            x, c = random("f16", M, K), torch.empty(M, N, device=D, dtype=torch.float16)
            x = x if wide else x.to(torch.float8_e4m3fn) if T == "f8e4m3" else (16 * x).clamp(-127, 127).to(torch.int8)
            t = None if wide else torch.full((M,), 1 / 16 if T == "i8" else 1.0, device=D)
            flag = lambda b: "true" if b else "false"

            def bind(name, grid, **more):
                return kernel("matmul_w4_wgmma.tile", name, T=T, W=W, ZEROS=flag(zeros), **more).bind(grid, x, p, o, t, c)
            BM = max(8, 1 << (M - 1).bit_length())
            split = lambda rows, S, BK, n, sums: bind("matmul_w4_split" if rows == 256 else "matmul_w4_pairs", (tilec.cdiv(N, rows) * S, 1), BM=BM, SPLIT=S, BK=BK,
                                                      STAGES=n, SUMS=flag(sums))
            stay = lambda BM, BK, n, pair: bind("matmul_w4_wgmma", measure.dev.sms // pair * pair, BM=BM, BK=BK, STAGES=n, CLUSTER=pair, SUMS=flag(not wide))
            old = lambda BM, BN, BK, warps, n: kernel("matmul_w4.tile", "matmul_w4", W=W, ZEROS=flag(zeros), BM=BM, BN=BN, BK=BK, warps=warps, STAGES=n).bind(
                None, x, w, s, z, c, M, N, K)
            space = [(rows, S, 64, n, sums) for rows in (128, 256) for S in (1, 2, 4, 8) for n in (4, 8)
                     for sums in ([False, True] if wide and BM < 64 else [not wide])]
            space += [] if wide else [(rows, S, 128, n, True) for rows in (128, 256) for S in (1, 2, 4, 8) for n in (3, 4)]
            stays = [(256, 64, 4), (256, 64, 5), (192, 64, 5), (128, 64, 6), (128, 128, 4)] if wide else [(128, 128, 4), (128, 128, 6), (128, 64, 8)]
            stays = [(*h, pair) for pair in (2, 1) for h in stays]
            loop = lambda BM, n: kernel("matmul_w4_wgmma.tile", "matmul_w4_loop", W=W, ZEROS=flag(zeros), BM=BM, STAGES=n).bind(
                None, x, p, o, c)
            few = lambda warps, n, rows, S, held: kernel("matvec.tile", "matvec", T=T, W=W, ZEROS=flag(zeros), BM=1 << (M - 1).bit_length(), warps=warps,
                                                         AT_ONCE=n, ROWS=rows, SPLIT=S, HELD=held).bind(None, x, p, o, t, c, M, N, K, o.shape[2])
            fews = [(warps, n, rows, S, held) for rows, S in ((16, 1), (32, 1), (32, 2), (64, 1), (64, 2)) for warps in (4, 8, 16) for n in (1, 2, 4)
                    for held in (0, K) if rows * n <= 64 and (M > 1 or rows < 64) and 2 * M * held <= 98304 * S]
            ours = {h: (lambda h=h: stay(*h)) for h in stays} if many else {("split", *h): (lambda h=h: split(*h)) for h in space}
            ours |= {("matvec", *h): (lambda h=h: few(*h)) for h in fews} if M <= 16 else {}
            found_by = {"found": {h: (lambda h=h: loop(*h)) for h in ((256, 4), (256, 5), (128, 5))}} if many and wide else {}
            tiles = [(128, 128, 64, 8, 3), (128, 128, 64, 4, 4), (64, 256, 64, 8, 3)] if many else [
                (max(BM, 16), *h) for h in ((64, 128, 4, 4), (128, 128, 4, 4), (64, 64, 4, 4), (32, 128, 4, 4), (128, 128, 8, 3))]
            full_x, full_w = (x, values.half()) if wide else (x.half() / (16 if T == "i8" else 1), values.half())
            theirs = {"cublas": by_cublas(full_x, full_w.T, c)} | ({"mma.sync": {h: (lambda h=h: old(*h)) for h in tiles}} if wide else {}) | found_by
            want = None if SHARE else full_x.float() @ (full_w.float() if wide else values).T
            kernels, found = against("products_mixed", case, ours, theirs, brief=True)
            for name, (label, fn, _) in found.items():
                if want is not None:
                    c.fill_(math.nan)
                    fn()
                    sync()
                    check(f"products_mixed {case} {name} {label}", c, want, 2e-3)
            unit, work = ("TFLOP/s", 2.0 * M * N * K) if many else ("TB/s", float(p.nbytes + o.nbytes + x.nbytes + c.nbytes))
            sides = {name: rate(took, work, unit, str(label)) for name, (label, _, took) in found.items()}
            record("products_mixed", case, unit, sides, [name for name in found if name != "tilec"], work=work, kernels=kernels,
                   **({} if many else dict(predicted=predicted(work))))
            del w, s, z, p, o, values, x, c, want, full_x, full_w
            empty_cache()


# BM, BN, BK, warps, stages, persistent; rows of metadata of 16 bytes are 128 of K, whatever the type
SPARSE_TILES = [(128, 256, 128, 8, 2, True), (128, 256, 128, 8, 2, False), (256, 128, 128, 8, 3, True), (256, 128, 128, 8, 2, True), (128, 128, 128, 8, 4, True),
                (128, 128, 128, 8, 4, False), (128, 128, 128, 4, 4, False), (128, 128, 128, 4, 2, False), (128, 256, 64, 8, 3, False), (256, 128, 64, 8, 4, False)]
SPARSE_BYTES = [(128, 256, 128, 8, 4, True), (128, 256, 256, 8, 2, True), (128, 256, 128, 8, 4, False), (256, 128, 128, 8, 6, True), (256, 128, 256, 8, 3, True),
                (128, 128, 256, 8, 4, True), (128, 128, 128, 4, 4, False)]


def by_cusparselt(A, B, c):
    """{label: make} of cuSPARSELt's product of A, which has two zeros in each four: its own choice, and what it finds by measuring."""
    if REHEARSE or SHARE:
        return {"torch": lambda: lambda: torch.matmul(A.float(), B.float()).to(c.dtype)}
    try:
        packed, more = torch._cslt_compress(A), dict(out_dtype=c.dtype) if A.dtype != c.dtype else {}
    except (RuntimeError, AttributeError) as e:
        print(f"note: cuSPARSELt is not to be had ({str(e).splitlines()[0]})", flush=True)
        return {}

    def searched():
        chosen = torch._cslt_sparse_mm_search(packed, B, **more)
        return lambda: torch._cslt_sparse_mm(packed, B, alg_id=chosen, **more)
    return {"first": lambda: lambda: torch._cslt_sparse_mm(packed, B, **more), "searched": searched}


def products_sparse():
    """A of which two of every four along K are kept, beside cuSPARSELt, and beside our product of all of A; operations are counted as if all were done."""
    for T, across in (("f16", False), ("f16", True), ("f8e4m3", True)):
        for n in full((4096, 8192), (256,)):
            wide, case = T == "f16", f"{T} {'nt' if across else 'nn'} {n}"
            case_begins("products_sparse", case)
            of = torch.float16 if wide else torch.float8_e4m3fn
            x, bt, a = random("f16", n, n).to(of), random("f16", n, n).to(of), torch.empty(n, n, device=D, dtype=of)
            B, c = bt.T if across else bt, torch.empty(n, n, device=D, dtype=torch.float16 if wide else torch.bfloat16)
            kept, meta = torch.empty(n, n // 2, device=D, dtype=of), torch.empty(n, n // 16, device=D, dtype=torch.int16)
            for name, args in (("compress", (x, kept, meta)), ("expand", (kept, meta, a))):
                kernel("matmul_sparse.tile", name, T=T).bind(None, *args, n, n)()
            sync()
            to = dict(T=T, TO="f16" if wide else "bf16")

            more = {} if wide else dict(PROMOTE=0)

            def bind(how):
                BM, BN, BK, warps, stages, stay = how
                return kernel("matmul_sparse.tile", "matmul_sparse", BM=BM, BN=BN, BK=BK, warps=warps, STAGES=stages, STAY=str(stay).lower(), **to, **more).bind(
                    None, kept, meta, B, c, n, n, n // 16, *B.stride(), *c.stride())
            ours = {h: (lambda h=h: bind(h)) for h in (SPARSE_TILES if wide else SPARSE_BYTES)}
            cslt = by_cusparselt(a, B, c)
            theirs = {**({"cusparselt": cslt} if cslt else {}), "dense": {t: (lambda t=t: by_tilec(a, B, c, t, **to, **more)) for t in WIDE_TILES[:4]}}
            kernels, found = against("products_sparse", case, ours, theirs, brief=True)
            want = None if SHARE else a.float() @ B.float()
            for name, (label, fn, _) in found.items():
                if want is not None:
                    c.fill_(math.nan)
                    got = fn()
                    sync()
                    check(f"products_sparse {case} {name} {label}", got if isinstance(got, torch.Tensor) else c, want, 2e-3 if wide else 8e-3)
            work = 2.0 * n**3
            sides = {name: rate(took, work, "TFLOP/s", str(label)) for name, (label, _, took) in found.items()}
            extra = powers({name: (fn, took[1]) for name, (_, fn, took) in found.items()}, work) if not SHARE else {}
            record("products_sparse", case, "TFLOP/s", sides, [name for name in found if name != "tilec"], work=work, kernels=kernels, **extra)
            del x, bt, B, a, c, kept, meta, want
            empty_cache()


def uneven(experts, rows):
    """How many of the rows each expert has: some four times as many as others, none a round number."""
    shares = [1 + i * 7 % 5 * 0.75 for i in range(experts)]
    ends = [int(rows * sum(shares[:i + 1]) / sum(shares)) for i in range(experts)]
    return [end - start for start, end in zip([0, *ends], ends)]


def by_experts(a, b, ends):
    """torch's product of rows by experts; where there is no GPU, one expert after the other."""
    if not REHEARSE:
        return torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
    return torch.cat([x @ y.T for x, y in zip(a.split(torch.diff(ends, prepend=ends.new_zeros(1)).tolist()), b)])


def grouped():
    """Rows by experts, uneven: bf16 beside torch._grouped_mm, and 8-bit floats with block scales beside torch._scaled_grouped_mm, which has a scale
    for a row and a column. What plans the tiles is a launch on either side, and counted."""
    for experts, rows, N, K in full([(E, rows, *nk) for E, rows in ((8, 32768), (64, 16384)) for nk in ((4096, 7168), (7168, 2048))], [(3, 200, 136, 272)]):
        counts = uneven(experts, rows)
        ends = torch.tensor(counts, device=D).cumsum(0).to(torch.int32)
        c = torch.empty(rows, N, device=D, dtype=torch.bfloat16)
        plan, blocks = torch.empty(3 * (rows // 64 + experts + 1), device=D, dtype=torch.int32), torch.empty(1, device=D, dtype=torch.int32)
        work, groups = 2.0 * rows * N * K, tilec.cdiv(K, 128)

        def ours_of(name, BM, BN, args, **defines):
            order = kernel("grouped_rows.tile", "plan_rows", BM=BM).bind(1, ends, plan, blocks, experts)
            product = kernel("grouped_rows.tile", name, BM=BM, BN=BN, **defines).bind((tilec.cdiv(rows, BM) + experts) * tilec.cdiv(N, BN), *args, c, plan, blocks, N)

            def both():
                order()
                product()
            return both

        def row(case, ours, theirs, A, B, tol):
            kernels, found = against("grouped", case, ours, theirs, brief=True)
            if not SHARE:
                c.fill_(math.nan)
                found["tilec"][1]()
                sync()
            for e, count in enumerate(counts if not SHARE else []):
                mine = slice(sum(counts[:e]), sum(counts[:e]) + count)
                check(f"grouped {case} expert {e}", c[mine], A[mine].float() @ B[e].float().T, tol)
            record("grouped", case, "TFLOP/s", {name: rate(t, work, "TFLOP/s", label) for name, (label, _, t) in found.items()},
                   [name for name in found if name != "tilec"], work=work, kernels=kernels)
        case_begins("grouped", f"bf16 {experts} of {rows}")
        a, b = random("bf16", rows, K), torch.randn(experts, N, K, device=D, dtype=torch.bfloat16)
        tiles = [(128, 256, 64, 3), (128, 128, 64, 4), (128, 128, 64, 5)]
        row(f"bf16 {experts} experts, {rows} x {N} x {K}", {t: (lambda t=t: ours_of("grouped_rows", t[0], t[1], (a, b.view(-1, K)), BK=t[2], STAGES=t[3])) for t in tiles},
            {"torch": {"": lambda: lambda: by_experts(a, b, ends)}}, a, b, 8e-3)
        case_begins("grouped", f"f8e4m3 {experts} of {rows}")
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        sa, sb = torch.ones(groups, rows, device=D), torch.ones(experts, tilec.cdiv(N, 128), groups, device=D)      # how fast it is does not depend on them
        by_row, by_column = torch.ones(rows, device=D), torch.ones(experts, N, device=D)
        theirs = lambda: torch._scaled_grouped_mm(a, b.transpose(1, 2), by_row, by_column, offs=ends, out_dtype=torch.bfloat16)
        if REHEARSE:
            theirs = lambda: by_experts(a.float(), b.float(), ends)
        row(f"f8e4m3 {experts} experts, {rows} x {N} x {K}", {t: (lambda t=t: ours_of("grouped_rows_scaled", 128, 128, (a, sa, b.view(-1, K), sb), STAGES=t)) for t in (4, 5, 6)},
            {"torch": {"": lambda: theirs}}, a, b, 8e-3)
        del a, b, c, sa, sb
        empty_cache()


def moe():
    """A layer of experts from the router's scores on, eight launches of examples/moe.tile and grouped_rows.tile: the best experts of each token, rows by
    expert, gated products, products, sums by weight. Beside torch's sort and torch._grouped_mm; both sides are CUDA graphs, as many launches are short."""
    for tokens, experts, TOP, K, inner in full(((4096, 8, 2, 4096, 14336), (4096, 64, 8, 2048, 1408), (512, 64, 8, 2048, 1408)), ((50, 4, 2, 64, 40),)):
        case = f"bf16 {tokens} tokens, {TOP} of {experts} experts, {K} x {inner}"
        case_begins("moe", case)
        pairs, BLOCK = tokens * TOP, 256
        x, logits = random("bf16", tokens, K), torch.randn(tokens, experts, device=D) + torch.randn(experts, device=D) / 2
        gated, down = random("bf16", experts, 2 * inner, K).mul_(K**-0.5), random("bf16", experts, K, inner).mul_(inner**-0.5)
        weights, chosen, counts, row_of, token_of, ends, blocks = (
            torch.empty(n, device=D, dtype=T) for T, n in ((torch.float32, pairs), *((torch.int32, n) for n in (pairs, tilec.cdiv(pairs, BLOCK) * experts, pairs, pairs, experts, 1))))
        plan = torch.empty(3 * (tilec.cdiv(pairs, 64) + experts), device=D, dtype=torch.int32)
        rows, h, y, out = (torch.full((n, of), math.nan, device=D, dtype=torch.bfloat16) for n, of in ((pairs, K), (pairs, inner), (pairs, K), (tokens, K)))

        def ours(BM, BN, STAGES, BN2, STAGES2):
            k, rows_by = lambda name, **of: kernel("moe.tile", name, **of), lambda name, **of: kernel("grouped_rows.tile", name, BM=BM, **of)
            calls = [k("route", EXPERTS=experts, TOP=TOP).bind(None, logits, weights, chosen, tokens),
                     k("count_experts", EXPERTS=experts, BLOCK=BLOCK).bind(None, chosen, counts, pairs),
                     k("place_pairs", EXPERTS=experts, TOP=TOP, BLOCK=BLOCK).bind(None, chosen, counts, row_of, token_of, ends, pairs),
                     rows_by("plan_rows").bind(None, ends, plan, blocks, experts),
                     k("gather_rows").bind(None, x, token_of, rows, pairs, K),
                     rows_by("grouped_rows_gated", BN=BN, STAGES=STAGES).bind(None, rows, gated.view(-1, K), h, plan, blocks, inner),
                     rows_by("grouped_rows", BN=BN2, STAGES=STAGES2).bind(None, h, down.view(-1, inner), y, plan, blocks, K),
                     k("combine", TOP=TOP).bind(None, y, weights, row_of, out, tokens, K)]

            def run():
                for call in calls:
                    call()
            return graph_of(run)

        def by_torch(adding):
            best, expert = logits.topk(TOP)
            of_row, order = expert.flatten().to(torch.uint8).sort()
            share, token = best.softmax(-1).to(torch.bfloat16), order // TOP
            until = torch.searchsorted(of_row, torch.arange(experts, device=D, dtype=torch.uint8), right=True, out_int32=True)
            gate, up = by_experts(x[token], gated, until).chunk(2, 1)
            r = by_experts(F.silu(gate) * up, down, until)
            if adding:
                return torch.zeros_like(x).index_add_(0, token, r * share.flatten()[order, None])
            place = torch.empty_like(order)
            place[order] = torch.arange(pairs, device=D)
            return torch.bmm(share[:, None], r[place].view(tokens, TOP, K))[:, 0]
        forms = {"index_add": lambda: by_torch(True), "bmm": lambda: by_torch(False)}
        theirs = {**{name: (lambda fn=fn: graph_of(fn)) for name, fn in forms.items()}, "bmm, no graph": lambda: forms["bmm"]}
        space = [(128, *first, *second) for first in ((128, 4), (128, 3), (64, 4)) for second in ((256, 3), (128, 4))] + [(64, 128, 4, 128, 4), (64, 128, 4, 256, 4)]
        kernels, found = against("moe", case, {c: (lambda c=c: ours(*c)) for c in space}, {"torch": theirs}, brief=True)
        if not SHARE:
            for a in (rows, h, y, out):
                a.fill_(math.nan)
            found["tilec"][1]()
            sync()
            best, expert = logits.topk(TOP)
            share, want = best.softmax(-1), torch.zeros(tokens, K, device=D)
            for e in range(experts):
                token, place = (expert == e).nonzero(as_tuple=True)
                gate, up = (x[token].float() @ gated[e].float().T).chunk(2, 1)
                want.index_add_(0, token, (F.silu(gate) * up) @ down[e].float().T * share[token, place, None])
            check(f"moe {case}", out, want, 1e-2)
            for name, fn in forms.items():
                check(f"moe {case}, torch's {name}", fn(), want, 2e-2)
        work = 6.0 * pairs * K * inner
        record("moe", case, "TFLOP/s", {name: rate(t, work, "TFLOP/s", label) for name, (label, _, t) in found.items()},
               [name for name in found if name != "tilec"], work=work, kernels=kernels)
        del x, gated, down, rows, h, y, out, found, ours, theirs
        empty_cache()


def products_in_company():
    """With a bias, an activation and a residual, beside the same kernel without them (bench/products.tile), and what torch takes."""
    M, N, K = full((4096, 11008, 4096), (128, 256, 128))
    x, w, bias, residual = (random("f16", *shape) for shape in ((M, K), (K, N), (N,), (M, N)))
    y = torch.empty(M, N, device=D, dtype=torch.float16)
    work, has = 2.0 * M * N * K, {}

    def makes(**company):
        args = (x, w, bias, residual, y, M, N, K)
        return {t: (lambda t=t: by_tilec(x, w, y, t, "products.tile", "linear", args, **company)) for t in WIDE_TILES + [t for t in TURNS_TILES if t[0] <= 128]}
    case_begins("products_in_company", "bare")
    sums = None if SHARE else x.float() @ w.float()
    product_row("products_in_company", f"f16 {M} x {N} x {K}", y, work, makes(), {"cublas": by_cublas(x, w, y), "triton": {
        t: (lambda t=t: by_triton(x, w, y, t)) for t in WIDE_BOXES}}, sums, 2e-3)
    for word, more, of in (("bias", "BIAS", lambda v: v + bias), ("gelu", "GELU", F.gelu), ("residual", "RESIDUAL", lambda v: v + residual)):
        has[more], sums = "true", None if SHARE else of(sums)
        case_begins("products_in_company", word)
        steps = [torch.addmm] + [F.gelu] * ("GELU" in has) + [lambda v: v.add_(residual)] * ("RESIDUAL" in has)

        def torch_fn(steps=steps):
            v = steps[0](bias, x, w)
            for step in steps[1:]:
                v = step(v)
        case = f"f16 {M} x {N} x {K}, " + ", ".join(h.lower() for h in has)
        kernels, found = against("products_in_company", case, makes(**has), {"bare": makes()}, brief=True)
        y.fill_(math.nan)
        found["tilec"][1]()
        sync()
        check(f"products_in_company {case}", y, sums, 2e-3)
        sides = {name: rate(t, work, "TFLOP/s", label) for name, (label, _, t) in found.items()}
        sides["torch"] = rate(times(torch_fn), work, "TFLOP/s")
        record("products_in_company", case, "TFLOP/s", sides, ["bare", "torch"], work=work, kernels=kernels,
               **powers({name: (fn, t[1]) for name, (_, fn, t) in found.items()}, work))


def products_fused():
    """What linear layers do with their sums (examples/matmul_fused.tile), beside torch's kernels one after the other: gates, batches, 8 bits, squares."""
    M, N, K = full((4096, 11008, 4096), (128, 256, 128))
    tiles = [dict(BM=BM, BN=BN, BK=64, STAGES=S, warps=w) for BM, BN, w in ((128, 128, 8), (128, 256, 8), (64, 256, 4), (128, 192, 4)) for S in (3, 4)]
    x, w, up = (random("bf16", *shape) / 8 for shape in ((M, K), (N, K), (N, K)))
    rows = [("gate", 4.0 * M * N * K, "linear_gated", [t for t in tiles if t["BM"] * t["BN"] <= 128 * 128], torch.empty(M, N, device=D, dtype=torch.bfloat16), {},
             lambda y, t: (tilec.cdiv(M, t["BM"]) * tilec.cdiv(N, t["BN"]), x, w, up, y, M, N, K), lambda: F.silu(F.linear(x, w)) * F.linear(x, up))]
    residual, squares = random("bf16", M, K), torch.zeros(M, device=D)
    down, h = random("bf16", K, N) / 16, random("bf16", M, N) / 4
    rows.append(("residual and squares", 2.0 * M * N * K, "linear", tiles, torch.empty(M, K, device=D, dtype=torch.bfloat16), dict(F="(s, e) -> s + residual(e)"),
                 lambda y, t: ((tilec.cdiv(M, t["BM"]) * tilec.cdiv(K, t["BN"]), 1), h, down, y, M, K, N, 1, 0, 0, 0, None, residual, None, squares),
                 lambda: F.linear(h, down) + residual))
    B, S, E = full((64, 1024, 128), (2, 64, 64))
    q, k = random("bf16", B, S, E), random("bf16", B, S, E)
    rows.append((f"{B} batches of {S} x {S} x {E}", 2.0 * B * S * S * E, "linear", tiles, torch.empty(B, S, S, device=D, dtype=torch.bfloat16), {},
                 lambda y, t: ((tilec.cdiv(S, t["BM"]) * tilec.cdiv(S, t["BN"]), B), q, k, y, S, S, E, B, S * E, S * E, S * S, None, None, None, None),
                 lambda: torch.bmm(q, k.transpose(1, 2))))
    for name, work, kernel_name, space, y, more, args, theirs in rows:
        case = f"bf16 {M} x {N} x {K}, {name}" if "batches" not in name else f"bf16 {name}"
        case_begins("products_fused", case)
        make = {str(tuple(t.values())): (lambda t=t: kernel("matmul_fused.tile", kernel_name, T="bf16", **t, **more).bind(*args(y, t))) for t in space}
        _, cfg = best(make.items())
        y.fill_(math.nan)
        squares.zero_()
        make[cfg]()()
        sync()
        check(f"products_fused {case}", y, theirs(), 8e-3)
        if "squares" in name:
            check(f"products_fused {case}, sums", squares, theirs().float().square().sum(1), 1e-2)
        alone("products_fused", case, make[cfg], cfg, work, "TFLOP/s", theirs)


def decode():
    """A chain of four short launches (examples/decode.tile) for layers in turn, whose weights come from memory: as dependents and in order, launched
    and as a CUDA graph; torch's kernels likewise. The product's configuration is searched as a chain of dependents."""
    layers = full(4, 1)
    for M, N, F in full(((1, 4096, 14336), (8, 4096, 14336), (16, 4096, 14336), (8, 2048, 2048)), ((3, 128, 192),)):
        case = f"bf16 {M} x {N} x {F}"
        case_begins("decode", case)
        x, scale = random("bf16", M, N), random("bf16", N)
        weights = [(random("bf16", 2 * F, N) / N**0.5, random("bf16", N, F) / F**0.5) for _ in range(layers)]
        h, g, act, y = (torch.full((M, n), math.nan, device=D, dtype=torch.bfloat16) for n in (N, 2 * F, F, N))

        def chain(pdl, BN, BK, STAGES, warps, layers=layers):
            k = lambda name, **defines: kernel("decode.tile", name, T="bf16", **defines)
            product = k("product", BN=BN, BK=BK, STAGES=STAGES, warps=warps)
            calls = []
            for w1, w2 in weights[:layers]:
                calls += [k("norm", BLOCK=1 << (N - 1).bit_length()).bind(None, x, scale, h, M, N, 1e-6, pdl=pdl),
                          product.bind(None, h, w1, g, M, 2 * F, N, pdl=pdl),
                          k("gated").bind(None, g, act, M, F, pdl=pdl),
                          product.bind(None, act, w2, y, M, N, F, pdl=pdl)]

            def run():
                for call in calls:
                    call()
            return run

        def theirs():
            for w1, w2 in weights:
                hidden = torch.nn.functional.rms_norm(x, (N,), scale, 1e-6)
                gate, up = torch.nn.functional.linear(hidden, w1).chunk(2, dim=-1)
                out = torch.nn.functional.linear(torch.nn.functional.silu(gate) * up, w2)
            return out
        space = [(BN, BK, S, W) for BN in (16, 32, 64) for BK, S in ((64, 8), (128, 4), (128, 6), (256, 3)) for W in (2, 4)]
        _, cfg = best([(c, lambda c=c: chain("auto", *c)) for c in full(space, space[:1])])
        launched, kernels = ran(lambda: chain("auto", *cfg))
        in_order = chain(False, *cfg)
        launched()
        check(f"decode {case}", y, theirs().float(), 2e-2)
        work, unit = 2.0 * layers * 3 * N * F, "TB/s"                # the weights
        sides = {"torch": theirs, "torch, graph": graph_of(theirs), "tilec": launched, "tilec, graph": graph_of(launched),
                 "tilec, in order": in_order, "tilec, in order, graph": graph_of(in_order)}
        figures = {name: rate(t, work, unit, str(cfg) if "tilec" in name else "")
                   for name, t in zip(sides, settle(*[lambda fn=fn: fn for fn in sides.values()]))}
        record("decode", case, unit, figures, ["torch", "torch, graph"], work=work, kernels=kernels)


class Pages:
    """The table of a cache in which the sequences' pages lie anywhere."""

    def __init__(self, lengths, page):
        self.lengths, self.page, self.most = lengths, page, max(tilec.cdiv(n, page) for n in lengths)
        self.count = len(lengths) * self.most
        self.table = torch.randperm(self.count, device=D).to(torch.int32).view(len(lengths), self.most)
        self.of = torch.tensor(lengths, device=D, dtype=torch.int32)

    def rows(self, cache, i):
        """What sequence i has in the cache [pages, page, ...], in order."""
        return cache[self.table[i].long()].flatten(0, 1)[:self.lengths[i]]


def attended(q, k, v, scale):
    """Softmax of q k^T, in f32, times v: q [heads, d], k [n, d], v [n, e]."""
    return torch.softmax(q.float() @ k.float().T * scale, 1) @ v.float()


def uneven_lengths(batch, mean):
    return [max(1, int(mean * 2 * (i * 7 % batch + 1) / (batch + 1))) for i in range(batch)]


def decode_attention():
    """One token of each sequence over a paged cache, in bytes of what is read of it once: grouped queries beside torch's attention over keys and values
    that lie in one piece (of sequences of one length), and latent attention, for which torch has nothing. Splits are searched, too. predicted: by what
    memory gives (predicted()), or where a token has more heads than that, by FlashMLA's published 660 TFLOP/s."""
    HD, page = 128, 64
    for B, S, heads, GROUP, even in full(((64, 4096, 8, 8, True), (8, 32768, 8, 8, True), (1, 131072, 8, 8, True), (128, 1024, 8, 4, True), (64, 4096, 8, 8, False)),
                                         ((2, 150, 2, 4, True), (2, 100, 1, 2, False))):
        case = f"f16 {B} x {S}{'' if even else ' uneven'}, {heads} x {GROUP} heads of {HD}"
        case_begins("decode_attention", case)
        pages = Pages([S] * B if even else uneven_lengths(B, S), page)
        q, keys, values = random("f16", B, heads * GROUP, HD), random("f16", pages.count, page, heads, HD), random("f16", pages.count, page, heads, HD)
        out, scale = torch.full_like(q, math.nan), HD ** -0.5

        def paged(splits, BN, STAGES, warps):
            part, lse = torch.empty(B, heads * GROUP, splits, HD, device=D), torch.empty(B, heads * GROUP, splits, device=D)
            arrived = torch.zeros(B, heads, dtype=torch.int32, device=D)
            return kernel("attention_paged.tile", "attend", GROUP=GROUP, D=HD, PAGE=page, BN=BN, STAGES=STAGES, warps=warps).bind(
                None, q, keys, values, pages.table, pages.of, out, part, lse, arrived, scale, B, splits, heads, pages.most)
        space = [(splits, *c) for splits in split_counts(B * heads, S) for c in ((64, 3, 4), (64, 4, 4), (128, 2, 4), (32, 4, 4), (64, 2, 4), (64, 3, 2))]
        theirs = None
        if even and not (REHEARSE or SHARE):
            k, v = (torch.stack([pages.rows(x, i) for i in range(B)]).transpose(1, 2) for x in (keys, values))
            theirs = lambda: F.scaled_dot_product_attention(q.view(B, heads * GROUP, 1, HD), k, v, enable_gqa=True)
        work = 4.0 * sum(pages.lengths) * heads * HD
        decoded("decode_attention", case, paged, space, work, theirs, predicted(work))
        if not SHARE:
            want = torch.stack([torch.cat([attended(q[i].view(heads, GROUP, HD)[h], *(pages.rows(x, i)[:, h] for x in (keys, values)), scale)
                                           for h in range(heads)]) for i in range(B)])
            check(f"decode_attention {case}", out, want, 2e-3)
        del q, keys, values, out, theirs
        empty_cache()
    C, R = 512, 64
    for B, S, heads in full(((128, 4096, 16), (16, 16384, 16), (128, 4096, 64), (128, 4096, 128)), ((2, 150, 20),)):
        case = f"bf16 {B} x {S}, latent, {heads} heads"
        case_begins("decode_attention", case)
        pages = Pages([S] * B, page)
        q, cache = random("bf16", B, heads, C + R), random("bf16", pages.count, page, C + R)
        out, scale = torch.full((B, heads, C), math.nan, device=D, dtype=TORCH["bf16"]), (C + R) ** -0.5

        def latent(splits, HEADS):
            groups = tilec.cdiv(heads, HEADS)
            part, lse = torch.empty(B, heads, splits, C, device=D), torch.empty(B, heads, splits, device=D)
            arrived = torch.zeros(B, groups, dtype=torch.int32, device=D)
            many = HEADS >= 64
            return kernel("mla_decode.tile", "mla_decode_many" if many else "mla_decode", PAGE=page, HEADS=HEADS, WHOLE="true").bind(
                None, q, cache, pages.table, pages.of, out, part, lse, arrived, scale, B, splits, heads, pages.most)
        space = [(splits, HEADS) for HEADS in MLA_HEADS if HEADS <= heads for splits in split_counts(B * tilec.cdiv(heads, HEADS), S)]
        work, operations = 2.0 * B * S * (C + R), 2.0 * B * S * heads * (2 * C + R)
        decoded("decode_attention", case, latent, space, work, None, min(predicted(work), work / (operations / 660)), {"TFLOP/s": operations / work})
        if not SHARE:
            tokens = [pages.rows(cache, i) for i in range(B)]
            check(f"decode_attention {case}", out, torch.stack([attended(q[i], x, x[:, :C], scale) for i, x in enumerate(tokens)]), 1e-2)
        del q, cache, out
        empty_cache()


MLA_HEADS = (16, 32, 64)


def split_counts(programs, S):
    """In how many parts keys may be worth splitting: such that there are some waves of programs, as far as each has 256 keys."""
    sms = measure.dev.sms
    return sorted({max(1, min(S // 256, n)) for n in (1, 2, 4, 8, tilec.cdiv(sms, programs), tilec.cdiv(2 * sms, programs), 2 * sms // programs, 4 * sms // programs)})


def decoded(section, case, make, space, work, theirs, expected, of=()):
    """A row of the best of a space, in turns with torch's; of: {what: how much of it a byte is}."""
    _, choice = best([(c, lambda c=c: make(*c)) for c in full(space, space[:2])])
    call, kernels = ran(lambda: make(*choice))
    to, *tt = settle(lambda: call, *([lambda: theirs] if theirs else []))
    call()
    sync()
    sides = {**({"torch": rate(tt[0], work, "TB/s")} if theirs else {}), "tilec": rate(to, work, "TB/s", str(choice))}
    more = {} if SHARE else {what: sides["tilec"]["value"] * n for what, n in dict(of).items()}
    record(section, case, "TB/s", sides, ["torch"] if theirs else [], work=work, kernels=kernels, predicted=expected, **more)


def small_m():
    """x w^T of a few tokens for four matrices in turn, which come from memory, as a graph: ours launched as dependents. Bytes are those of the weights.
    8-bit floats are summed in f32 every 128 products, or (fast) as tensor cores do it, on both sides; torch pads one token of them to 16."""
    N = K = full(8192, 256)
    for T, O, fast in (("f16", "f16", False), ("f8e4m3", "bf16", True), ("f8e4m3", "bf16", False)):
        for M in full((1, 16, 64, 128), (3, 20)):
            case = f"{T}{' fast' * fast} {M} x {N} x {K}"
            case_begins("small_m", case)
            eight = T == "f8e4m3"
            made = lambda *shape: torch.randn(*shape, device=D).to(torch.float8_e4m3fn if eight else TORCH[T])
            x, weights = made(M, K), [made(N, K) for _ in range(full(4, 2))]
            ys = [torch.full((M, N), math.nan, device=D, dtype=TORCH[O]) for _ in weights]
            # tokens, rows, programs that share K, bytes of a step along K, bytes of shared memory
            tokens = next(n for n in (8, 16, 64, 128) if n >= M)
            space = [(t, *c) for t in sorted({tokens, max(tokens, 16)})
                     for c in ((64, 1, 128, 221184), (64, 1, 256, 221184), (64, 2, 128, 106496), (64, 2, 256, 106496), (128, 2, 128, 221184), (128, 2, 256, 221184), (64, 4, 128, 106496))
                     if not (eight and not fast and c[2] > 128)]

            def ours(tokens, rows, S, step, room):
                kern = kernel("small_m.tile", "small_m", T=T, O=O, TOKENS=tokens, ROWS=rows, S=S, BK=step // x.element_size(), ROOM=room, FAST=str(fast).lower())
                calls = [kern.bind(None, x, w, y, None, None, pdl="auto") for w, y in zip(weights, ys)]
                return graph_of(lambda: [call() for call in calls])

            wide_x = x if M >= 16 or not eight else torch.cat([x.float(), torch.zeros(16 - M, K, device=D)]).to(x.dtype)
            wide_ys = [torch.empty(wide_x.shape[0], N, device=D, dtype=TORCH[O]) for _ in weights]
            by_weights = [by_cublas(wide_x, w.T, y, fast) for w, y in zip(weights, wide_ys)]

            def cublas(label):
                calls = [of[label]() for of in by_weights]
                return graph_of(lambda: [call() for call in calls])
            theirs = {label: (lambda label=label: cublas(label)) for label in by_weights[0]}
            kernels, found = against("small_m", case, {c: (lambda c=c: ours(*c)) for c in space}, {"cublas": theirs})
            for name, (label, fn, _) in found.items():
                for y in (ys if name == "tilec" else wide_ys) if not SHARE else ():
                    y.fill_(math.nan)
                fn()
                sync()
                for w, y in zip(weights, ys if name == "tilec" else wide_ys) if not SHARE else ():
                    check(f"small_m {case} {name} {label}", y[:M], x.float() @ w.float().T, 8e-3)
            work, unit = float(sum(w.nbytes for w in weights)), "TB/s"
            record("small_m", case, unit, {name: rate(t, work, unit, str(label)) for name, (label, _, t) in found.items()}, ["cublas"], work=work, kernels=kernels,
                   predicted=predicted(work))
            del x, weights, ys, wide_ys, by_weights, theirs, found
            empty_cache()


def mamba2():
    """The five launches of examples/mamba2.tile, beside Triton's five; in bytes of x, z, y, dt, b and c, each once."""
    E = full("bf16", "f16")                                    # Triton's interpreter has no products of bf16
    for batch, T, heads, groups, P, N in full(((8, 4096, 64, 1, 64, 128), (1, 32768, 80, 1, 64, 128), (16, 2048, 24, 1, 64, 128), (2, 8192, 128, 8, 64, 128)), ((1, 100, 2, 1, 32, 32),)):
        C = full(256, 64)
        case = f"{E} {batch} x {T}, {heads} heads of {P}, {groups} x {N} states"
        case_begins("mamba2", case)
        chunks = tilec.cdiv(T, C)
        x, z = (random(E, batch, T, heads, P) for _ in range(2))
        b, c = (random(E, batch, T, groups, N) / N**0.25 for _ in range(2))
        dt, bias, a, skip = torch.randn(batch, T, heads, device=D), torch.randn(heads, device=D) - 4, -torch.randn(heads, device=D).exp(), torch.randn(heads, device=D)
        steps, sums = (torch.full((batch, chunks, heads, C), math.nan, device=D) for _ in range(2))
        scores, before = (torch.full((batch, chunks, *s), math.nan, device=D, dtype=TORCH[E]) for s in ((groups, C, C), (heads, P, N)))
        states, state = torch.full((batch, chunks, heads, P, N), math.nan, device=D), torch.zeros(batch, heads, P, N, device=D)
        y, y2 = (torch.full_like(x, math.nan) for _ in range(2))

        def ours(BM, BK, STAGES, warps):
            k = lambda name, **more: kernel("mamba2.tile", name, C=C, **more)
            calls = [k("ssd_steps", BH=8).bind(None, dt, bias, a, steps, sums, batch, T, heads),
                     k("ssd_scores", E=E, N=N, BM=BM).bind(None, b, c, scores, batch, T, groups),
                     k("ssd_states", E=E, P=P, N=N, BK=BK, STAGES=STAGES, warps=warps).bind(None, x, b, steps, sums, states, batch, T, heads, groups),
                     k("ssd_pass", E=E, SIZE=P * N).bind(None, states, before, sums, state, batch, heads, chunks),
                     k("ssd_outputs", E=E, P=P, N=N, BM=BM, BK=BK, STAGES=STAGES, warps=warps).bind(
                         None, x, c, z, scores, before, steps, sums, skip, y, batch, T, heads, groups)]

            def run():
                state.zero_()
                for call in calls:
                    call()
            return run

        def theirs(BM, BK, STAGES, warps):
            how = dict(num_stages=STAGES, num_warps=warps)

            def run():
                state.zero_()
                peers.ssd_steps[(chunks, tilec.cdiv(heads, 8), batch)](dt, bias, a, steps, sums, T, heads, C, 8)
                peers.ssd_scores[((C // BM)**2, chunks, batch * groups)](b, c, scores, T, groups, N, C, BM, min(64, N))
                peers.ssd_states[(heads, chunks, batch)](x, b, steps, sums, states, T, heads, groups, P, N, C, BK, **how)
                peers.ssd_pass[(tilec.cdiv(P * N, 1024), heads, batch)](states, before, sums, state, chunks, P * N, C, 1024)
                peers.ssd_outputs[(heads * (C // BM), chunks, batch)](x, c, z, scores, before, steps, sums, skip, y2, T, heads, groups, P, N, C, BM, BK, **how)
            return run
        space = [(BM, BK, S, W) for BM in full((64, 128), (32,)) for BK in full((32, 64), (32,)) for S in full((2, 3), (2,)) for W in full((4, 8), (4,))]
        contest("mamba2", case, 2 * (3 * x.numel() + b.numel() + c.numel()) + 4 * dt.numel(), {s: lambda s=s: ours(*s) for s in space}, {s: lambda s=s: theirs(*s) for s in space})
        if not SHARE:
            check(f"mamba2 {case}, beside the recurrence", y, recurrence_of(x, z, b, c, torch.nn.functional.softplus(dt + bias), a, skip), 2e-2)
            if not torch.isnan(y2).any():
                check(f"mamba2 {case}, beside Triton", y, y2.float(), 1e-2)
        del x, z, b, c, dt, steps, sums, scores, before, states, state, y, y2


def linear_attention():
    """Chunks of linear attention with decay, and of the gated delta rule; no peer here has them. First rows are checked against the recurrence."""
    for heads, T, delta in full(((32, 8192, False), (32, 8192, True), (128, 2048, True)), ((2, 128, True),)):
        case = f"f16 {heads} heads, {T} tokens, 64 x 128, " + ("delta rule" if delta else "decay")
        case_begins("linear_attention", case)
        q, k = (F.normalize(torch.randn(heads, T, 64, device=D), dim=-1).half() for _ in "qk")
        v, g, beta = torch.randn(heads, T, 128, device=D).half(), -torch.rand(heads, T, device=D) * 0.1, torch.rand(heads, T, device=D)
        o, state = torch.empty_like(v), torch.zeros(heads, 64, 128, device=D)
        space = [(DV, C, w, S) for DV in (32, 64) for C in (32, 64) for w in (4, 8) for S in (1, 2)]
        make = {c: (lambda c=c: kernel("linear_attention.tile", "linear_attention", DV=c[0], C=c[1], DELTA=str(delta).lower(), STAGES=c[3], warps=c[2])
                    .bind(None, q, k, v, g, beta, o, state, heads, 128, T, 0.125)) for c in space}
        _, cfg = best(make.items())
        state.zero_()
        make[cfg]()()
        S, want = torch.zeros(heads, 64, 128, device=D), []
        for t in range(full(100, 70)):
            S = S * g[:, t].exp()[:, None, None]
            new = v[:, t].float()
            if delta:
                new = (new - (k[:, t, :, None].float() * S).sum(1)) * beta[:, t, None]
            S = S + k[:, t, :, None].float() * new[:, None]
            want.append((q[:, t, :, None].float() * S).sum(1) * 0.125)
        check(f"linear_attention {case}", o[:, :len(want)], torch.stack(want, 1), 3e-3)
        alone("linear_attention", case, make[cfg], cfg, 2.0 * heads * T * (2 * 64 + 2 * 128), "TB/s")


def selective_scan():
    """Mamba's scan, beside Triton's twin; in bytes of x, dt, z, y, b and c, each once."""
    N = full(16, 4)
    for E, batch, channels, T in full((("bf16", 8, 4096, 4096), ("f32", 8, 4096, 2048), ("bf16", 1, 5120, 8192)), (("f32", 1, 3, 70), ("bf16", 2, 2, 40))):
        case = f"{E} {batch} x {channels} channels, {T} steps, {N} states"
        case_begins("selective_scan", case)
        x, dt, z = (random(E, batch, channels, T) for _ in range(3))
        b, c = (random(E, batch, N, T) for _ in range(2))
        a, skip, state = -torch.randn(channels, N, device=D).exp(), torch.randn(channels, device=D), torch.zeros(batch, channels, N, device=D)
        y, y2 = (torch.full_like(x, math.nan) for _ in range(2))

        def ours(BLOCK, warps):
            call = kernel("selective_scan.tile", "selective_scan", E=E, N=N, BLOCK=BLOCK, warps=warps).bind(
                None, x, dt, z, a, b, c, skip, y, state, batch, channels, T)

            def run():
                state.zero_()
                call()
            return run

        def theirs(BLOCK, warps):
            def run():
                state.zero_()
                peers.selective_scan[(channels, batch)](x, dt, z, a, b, c, skip, y2, state, T, N, BLOCK, num_warps=warps)
            return run
        space = full([(32, 1), (64, 1), (64, 2), (128, 1), (128, 2), (128, 4), (256, 2), (256, 4), (512, 4)], [(32, 1), (64, 2)])
        contest("selective_scan", case, x.element_size() * (4 * x.numel() + 2 * b.numel()), {s: lambda s=s: ours(*s) for s in space}, {s: lambda s=s: theirs(*s) for s in space})
        if not SHARE:
            h, want = torch.zeros(batch, channels, N, device=D), torch.empty(x.shape, device=D)
            for t in range(T):
                step, u = F.softplus(dt[:, :, t].float()), x[:, :, t].float()
                h = h * (step[..., None] * a).exp() + (step * u)[..., None] * b[:, None, :, t].float()
                want[:, :, t] = (h * c[:, None, :, t].float()).sum(2) + skip * u
            want *= F.silu(z.float())
            near = 2 * ROUNDING[E] if E != "f32" else 2e-5
            for what, got, ref in [("y", y, want), *peer("y", y2, want), ("state", state, h)]:
                check(f"selective_scan {case} {what}", got, ref, near)
            del want
        del x, dt, z, b, c, y, y2
        empty_cache()


def recurrence_of(x, z, b, c, dt, a, skip):
    """y of a state space model, step by step, in f32."""
    batch, T, heads, P = x.shape
    repeat = heads // b.shape[2]
    state = torch.zeros(batch, heads, P, b.shape[3], device=x.device)
    y = torch.empty(x.shape, device=x.device)
    for t in range(T):
        state *= (dt[:, t] * a).exp()[..., None, None]
        state += (dt[:, t, :, None] * x[:, t].float())[..., None] * b[:, t].float().repeat_interleave(repeat, 1)[:, :, None]
        y[:, t] = (state @ c[:, t].float().repeat_interleave(repeat, 1)[..., None])[..., 0] + skip[:, None] * x[:, t].float()
    return y * torch.nn.functional.silu(z.float())


def host_row(section, case, unit, sides, peers=(), **extra):
    """A row of host time: lists of measurements per side; no kernel's PTX decides whether it is still true."""
    record(section, case, unit, {n: data.of_times(t) for n, t in sides.items()}, peers, better="less", of="host", **extra)


@contextlib.contextmanager
def fresh_triton():
    """Triton's cache is empty."""
    kept = os.environ["TRITON_CACHE_DIR"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ["TRITON_CACHE_DIR"] = kept


def compile():
    """Source to loaded kernel including the first launch, in a warm process."""
    x = torch.randn(128, 1024, device=D)
    o = torch.empty_like(x)
    n = x.numel()
    fresh_kernel = lambda file, name, **defines: measure.dev.program(os.path.join(root, "examples", file)).kernel(name, **defines)
    cases = {
        "vector_add": (lambda: fresh_kernel("vector_add.tile", "add", BLOCK=1024)(tilec.cdiv(n, 1024), x, x, o, n),
                       lambda f: f[(triton.cdiv(n, 1024),)](x, x, o, n, 1024), peers.add),
        "softmax": (lambda: fresh_kernel("softmax.tile", "softmax", BLOCK=1024)(128, x, o, 128, 1024, 1024),
                    lambda f: f[(128,)](o, x, 1024, 1024, 1024, 1024), peers.softmax),
    }
    for name, (ours, theirs, jitted) in cases.items():
        case_begins("compile", name)
        ms = {"triton": [], "tilec": []}
        for r in range(7):
            t = time.perf_counter()
            ours()
            sync()
            ms["tilec"].append((time.perf_counter() - t) * 1e3)
            if REHEARSE:
                continue
            fresh = triton.JITFunction(jitted.fn)
            with fresh_triton():
                t = time.perf_counter()
                theirs(fresh)
                sync()
                ms["triton"].append((time.perf_counter() - t) * 1e3)
        host_row("compile", name, "ms", {k: v for k, v in ms.items() if v}, [k for k in ("triton",) if ms[k]])


def second_process(code, times):
    """What each of so many new processes prints, one after the other, with a driver's cache of their own; None if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "CUDA_CACHE_PATH": folder, "CUDA_CACHE_DISABLE": "0"}
        runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env) for _ in range(times)]
    if any(r.returncode for r in runs):
        failures.append("a second process: " + next(r.stderr for r in runs if r.returncode)[-300:])
        return None
    return [r.stdout for r in runs]


def tune():
    """The search for the fastest matmul among the same configurations, all caches empty, and what a second process takes to know it."""
    case_begins("tune", "all")
    n = full(4096, 64)
    a, b = random("f16", n, n), random("f16", n, n)
    c = torch.empty_like(a)
    grid = lambda s: tilec.cdiv(n, s["BM"]) * tilec.cdiv(n, s["BN"])
    args = (a, b, c, n, n, n, *a.stride(), *b.stride(), *c.stride())
    with tempfile.TemporaryDirectory() as cache, fresh_triton():
        torch.matmul(a.float(), b.float())
        sync()
        if REHEARSE:                                        # tuning takes memory of the device
            args = tuple(measure.dev.array(x.numpy()) if torch.is_tensor(x) else x for x in args)
        t = time.perf_counter()
        prog = measure.dev.program(os.path.join(root, "examples", "matmul.tile"), cache_dir=cache)
        k = prog.tune("matmul", grid, *args, BK=64)
        ours = (time.perf_counter() - t) * 1e3
        tried = [x for x in k.trials if x["why"] != "its condition is false"]
        sides = {"tilec": [ours]}
        if not REHEARSE:
            configs = [dict(kv.split("=") for kv in x["config"].split()) for x in tried]
            tuned = peers.autotuned_matmul([(int(x["BM"]), int(x["BN"]), 64, int(x["warps"]), int(x["STAGES"])) for x in configs])
            t = time.perf_counter()
            tuned[lambda m: (triton.cdiv(n, m["BM"]) * triton.cdiv(n, m["BN"]),)](*args, BK=64, GROUP=8)
            sync()
            sides = {"triton": [(time.perf_counter() - t) * 1e3], **sides}
        host_row("tune", f"{len(tried)} configurations of a matmul, f16 4096^3", "ms", sides, [s for s in ("triton",) if s in sides],
                 chosen=k.config, rejected=sum(x["why"] is not None for x in tried))
        if REHEARSE:
            return
        said = second_process(f"""import os, sys, time; sys.path[:0] = {sys.path[:2]!r}; os.environ["TILEC_CACHE"] = "1"
import torch, tilec
a = torch.empty({n}, {n}, device="cuda", dtype=torch.float16); dev = tilec.Device("cuda")
t = time.perf_counter()
prog = dev.program({os.path.join(root, "examples", "matmul.tile")!r}, cache_dir={cache!r})
k = prog.tune("matmul", lambda s: 1, a, a, a, {n}, {n}, {n}, {n}, 1, {n}, 1, {n}, 1, BK=64)
t = time.perf_counter() - t
assert k.remembered and k.config == {k.config!r}, k.config
print(t * 1e3)""", 5)
        if said:
            host_row("tune", "second process, source to the known choice", "ms", {"tilec": [float(s) for s in said]})


def warm_start():
    """A new process with what it needs in the caches, ours and the driver's: source to loaded kernel, and the driver's part of it."""
    cases = {"vector_add": ("vector_add.tile", "add", "x, x, x, 1024"), "softmax": ("softmax.tile", "softmax", "x, x, 1, 1024, 1024"),
             "matmul": ("matmul.tile", "matmul", "h, h, h, 128, 128, 128, 128, 1, 128, 1, 128, 1")}
    make = "x = dev.empty(1024, 'f32'); h = dev.empty((128, 128), 'f16')"
    for name, (file, kern, args) in cases.items():
        case_begins("warm_start", name)
        with tempfile.TemporaryDirectory() as cache:
            said = second_process(f"""import os, sys, time; sys.path[:0] = {sys.path[:2]!r}; os.environ["TILEC_CACHE"] = "1"
import tilec
dev = tilec.Device({measure.dev.spec!r}); {make}
t = time.perf_counter()
c = dev.program({os.path.join(root, "examples", file)!r}, cache_dir={cache!r}).kernel({kern!r}).bind(1, {args})
t = (time.perf_counter() - t) * 1e3
i = c.info()
print(i["from_cache"], t, i["load_ms"])""", 6)
        if not said:
            continue
        rows = [list(map(float, s.split())) for s in said]
        if rows[0][0] or not all(r[0] for r in rows[1:]):
            failures.append(f"warm_start {name}: the cache was not used")
        host_row("warm_start", name, "ms", {"tilec": [r[1] for r in rows[1:]], "cold": [rows[0][1]], "of it the driver's": [r[2] for r in rows[1:]]})


def program(name):
    """Of bench/."""
    return os.path.join(os.environ.get("TILEC_BIN", os.path.join(root, "build", "bin")), name)


def first_call():
    """The first call of a function that was compiled ahead, in a new process (bench/first.c), beside what the driver needs to load the same code:
    a cubin, PTX that is in the driver's cache, and PTX that is not."""
    sides = ["tilec"] if REHEARSE else ["driver", "tilec"]
    for kern in ("add", "rows", "product"):
        for case, exe, cache in (("cubin", "cubin", "1"), ("PTX, in the driver's cache", "ptx", "0"), ("PTX", "ptx", "1")):
            if not os.path.exists(program(f"bench_first_{exe}")):
                measure.left_out.append(f"first_call {kern}, {case}: there is no bench_first_{exe}, for want of ptxas")
                continue
            case_begins("first_call", f"{kern}, {case}")
            ms = {side: [] for side in sides}
            with tempfile.TemporaryDirectory() as folder:
                env = {**os.environ, "CUDA_CACHE_PATH": folder, "CUDA_CACHE_DISABLE": cache}
                for k in range(1 + full(9, 1)):
                    for side in sides:
                        r = subprocess.run([program(f"bench_first_{exe}"), measure.dev.spec, side, kern], capture_output=True, text=True, env=env)
                        if r.returncode:
                            failures.append(f"first_call: {r.stderr.strip()}")
                            return
                        if k:                               # the first fills the driver's cache
                            ms[side].append(float(r.stdout) / 1e3)
            beyond = {} if REHEARSE else {"beyond_the_driver": data.quantiles(ms["tilec"])[1] - data.quantiles(ms["driver"])[1]}
            host_row("first_call", f"{kern}, {case}", "ms", ms, sides[:-1], **beyond)


def launch():
    """One launch: from Python, bound and not, beside Triton's, and in a loop of C in the same process, stream and kernel; from C, beside the
    driver's own (bench/launch.c)."""
    case_begins("launch", "python")
    x, y, o = (torch.randn(1024, device=D) for _ in range(3))     # as most launches: what is stored is elsewhere than what is loaded
    k = kernel("vector_add.tile", "add", BLOCK=1024).kernel
    call = k.bind(1, x, y, o, 1024)

    def by_triton(times):
        for _ in range(times):
            peers.add[(1,)](x, y, o, 1024, 1024)

    def bound(times):
        for _ in range(times):
            call()

    def not_bound(times):
        for _ in range(times):
            k(1, x, y, o, 1024)
    sides = {"triton": by_triton, "tilec": bound, "tilec, looped in C": call.repeat, "tilec, not bound": not_bound}
    if REHEARSE:
        del sides["triton"]
    us = {name: [] for name in sides}
    for run in sides.values():
        run(1)
    sync()
    for r in range(150):                  # short rounds, each from another side on: what a launch takes drifts
        for i in range(len(sides)):
            name = list(sides)[(r + i) % len(sides)]
            t = time.perf_counter()
            sides[name](100)
            us[name].append((time.perf_counter() - t) * 1e4)
            sync()
    host_row("launch", "python", "us", us, [s for s in ("triton",) if s in us], by=tilec.launches_by)
    # Beside the same launch in a loop of C, which is cuLaunchKernel's (the row "C" says how nearly), as a process without torch is another matter.
    host_row("launch", "python, bound, of C in its process", "times", {"tilec": [t / c for t, c in zip(us["tilec"], us["tilec, looped in C"])]})
    host_row("launch", "python, beyond C in its process", "us", {n: [t - c for t, c in zip(us[n], us["tilec, looped in C"])] for n in ("tilec", "tilec, not bound")})
    if REHEARSE:
        return
    runs = [subprocess.run([program("bench_launch")], capture_output=True, text=True) for _ in range(5)]
    if any(r.returncode for r in runs):
        failures.append("bench_launch: " + runs[0].stderr.strip())
        return
    c = [{l.split()[0]: [float(v) for v in l.split()[1:]] for l in r.stdout.splitlines()} for r in runs]
    host_row("launch", "C", "us", {n: [r[n][0] for r in c] for n in c[0]}, ["cuLaunchKernel"])
    host_row("launch", "C, of cuLaunchKernel", "times", {n: [r[n][1] for r in c] for n in c[0] if n != "cuLaunchKernel"})


def said_by(name, *args, times=5):
    """What a program of bench/ prints when it is run so many times: the lines of each run; None if one failed."""
    runs = [subprocess.run([program(name), *args], capture_output=True, text=True) for _ in range(full(times, 1))]
    if bad := next((r for r in runs if r.returncode), None):
        failures.append(f"{name}: {bad.stderr.strip()}")
        return None
    return [r.stdout.splitlines() for r in runs]


def by_name(runs, pattern):
    """Of lines that the pattern matches, by its group `name`: the numbers of its other groups, each in all runs."""
    found = {}
    for m in (m for lines in runs for m in map(re.compile(pattern).match, lines) if m):
        values = {k: float(v) for k, v in m.groupdict().items() if k != "name"}
        for key, value in values.items():
            found.setdefault(m["name"].strip(), {}).setdefault(key, []).append(value)
    return found


def graph():
    """A kernel in a chain of 1000 empty ones: launched one by one, and as graphs, the driver's own and ours (bench/graph.c)."""
    case_begins("graph", "1000 kernels")
    runs = [] if REHEARSE else said_by("bench_graph")
    found = by_name(runs or [], r"(?P<name>\w+(, [a-z ]+)?) +(?P<all>[\d.]+) +(?P<host>[\d.]+)$")
    for case, key in (("1000 kernels, each", "all"), ("1000 kernels, each, on the host alone", "host")):
        if found:
            host_row("graph", case, "us", {name: v[key] for name, v in found.items()}, ["cuGraphLaunch", "cuLaunchKernel"])
    if raw := found.get("cuGraphLaunch"):
        host_row("graph", "1000 kernels, of the driver's own graph", "times",
                 {name: [a / b for a, b in zip(v["all"], raw["all"])] for name, v in found.items() if name.startswith("tilert_graph_launch")})


def windows():
    """A table that is read while a larger array streams past it: without a window of the L2 cache, with one of which every access persists, and of which as
    many do as fit (examples/embed/windows.c)."""
    case_begins("windows", "all")
    found = by_name(said_by("bench_windows", measure.dev.spec) or [], r" *(?P<name>[\d.]+ MB) +(?P<none>[\d.]+) ms +(?P<all>[\d.]+) ms +(?P<fits>[\d.]+) ms, ratio (?P<ratio>[\d.]+)")
    for name, v in found.items():
        host_row("windows", f"table of {name}", "ms", {"no window": v["none"], "all of it": v["all"], "what fits": v["fits"]}, ["no window"], ratio=v["ratio"][0])


def streams():
    """Kernels of few programs side by side, in one stream and in several, launched and as a graph; a chain of short ones; kernels of few programs to many,
    each through an array (examples/embed/overlap.c)."""
    case_begins("streams", "all")
    said = said_by("bench_overlap", measure.dev.spec) or []
    found = by_name(said, r"(?P<name>[a-z ]+?) +(?P<all>[\d.]+) ms, +(?P<each>[\d.]+) us a kernel$")
    arrays = by_name(said, r" *(?P<name>\d+ programs): one stream +(?P<one>[\d.]+) ms, eight streams +(?P<eight>[\d.]+) ms")
    for case, first, *more in (("64 kernels of 4 programs, each", "one stream", "two streams", "eight streams", "a graph of eight streams"),
                               ("a chain of 1000 kernels, each", "a chain of launches", "a chain as a graph")):
        if found:
            host_row("streams", case, "us", {name: found[name]["each"] for name in (first, *more)}, [first])
    for name, v in arrays.items():
        host_row("streams", f"8 kernels of {name}, all", "ms", {"one stream": v["one"], "eight streams": v["eight"]}, ["one stream"])


# What the summary says beside Triton, cuBLAS and Gluon: sections of rows.
GROUPS = {
    "rows": ("vector_add", "softmax", "layer_norm", "rms_norm", "add_rms_norm", "transpose"),
    "backward": ("softmax_bwd", "layer_norm_bwd", "rms_norm_bwd"),
    "losses": ("cross_entropy", "cross_entropy_bwd", "cross_entropy_fused", "rotary", "rotary_interleaved", "dropout", "dropout_each"),
    "order": ("sort", "top8", "top64", "cumsum", "recurrence", "gather", "histogram"),
    "quantisation": ("quantise_groups", "quantise_squares", "quantise_grid"),
    "products": ("products",),
    "products of 8-bit floats": ("products_f8",),
}
UNPREPARED = ("vector_add", "transpose", "async_add", "memcpy", "llama", *PARTS["host"], *PARTS["runtime"])   # few kernels, and much memory

if __name__ == "__main__":
    Driver(PARTS, globals(), GROUPS, PARTS["host"] + PARTS["runtime"], UNPREPARED).main()
