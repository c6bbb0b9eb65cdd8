"""What a Triton user would write for the same problems."""
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(out, x, out_stride, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    v = tl.load(x + row * x_stride + col, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * out_stride + col, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=inside)


@triton.jit
def layernorm(out, mean_out, rstd_out, x, weight, bias, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    v = tl.load(x + row * stride + col, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(inside, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    w = tl.load(weight + col, mask=inside).to(tl.float32)
    b = tl.load(bias + col, mask=inside).to(tl.float32)
    tl.store(out + row * stride + col, (d * rstd * w + b).to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long(out, x, stride, n, BLOCK: tl.constexpr):
    """Rows in blocks: the largest and the sum on the way, in lanes of their own, then the quotients."""
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, other=-float("inf"), eviction_policy="evict_last").to(tl.float32)
        new = tl.maximum(top, v)
        total = tl.where(new == -float("inf"), 0.0, total * tl.exp(top - new) + tl.exp(v - new))
        top = new
    most = tl.max(top, 0)
    scale = 1 / tl.sum(total * tl.exp(top - most), 0)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, eviction_policy="evict_first").to(tl.float32)
        tl.store(out + row * stride + col, (tl.exp(v - most) * scale).to(out.dtype.element_ty), mask=col < n)


@triton.jit
def layernorm_long(out, x, weight, bias, stride, n, eps, BLOCK: tl.constexpr):
    """Rows in blocks: the mean, the variance, the result."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + col, mask=col < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
    mean = tl.sum(total, 0) / n
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        d = tl.where(col < n, v - mean, 0.0)
        total += d * d
    rstd = 1 / tl.sqrt(tl.sum(total, 0) / n + eps)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(weight + col, mask=col < n).to(tl.float32)
        b = tl.load(bias + col, mask=col < n).to(tl.float32)
        tl.store(out + row * stride + col, ((v - mean) * rstd * w + b).to(out.dtype.element_ty), mask=col < n)


@triton.jit
def rmsnorm_long(out, x, weight, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        total += v * v
    rstd = 1 / tl.sqrt(tl.sum(total, 0) / n + eps)
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + col, mask=col < n, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(weight + col, mask=col < n).to(tl.float32)
        tl.store(out + row * stride + col, (v * rstd * w).to(out.dtype.element_ty), mask=col < n)


@triton.jit
def softmax_backward(dx, dy, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    p = tl.load(y + row * stride + col, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + row * stride + col, mask=inside, other=0.0).to(tl.float32)
    tl.store(dx + row * stride + col, (p * (g - tl.sum(p * g, 0))).to(dx.dtype.element_ty), mask=inside)


@triton.jit
def layernorm_backward(dx, parts, dy, x, weight, mean, rstd, stride, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Persistent programs with their sums in registers, as Liger Kernel does it; colsum adds up parts, f32[2, programs, n]."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    col = tl.arange(0, BLOCK)
    inside = col < n
    w = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(pid, rows, programs, num_stages=STAGES):
        at = tl.cast(row, tl.int64) * stride + col
        g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(rstd + row)
        h = (v - tl.load(mean + row)) * r
        wg = w * g
        a = tl.sum(h * wg, 0) / n
        b = tl.sum(wg, 0) / n
        tl.store(dx + at, ((wg - (h * a + b)) * r).to(dx.dtype.element_ty), mask=inside)
        dw += g * h
        db += g
    tl.store(parts + pid.to(tl.int64) * n + col, dw, mask=inside)
    tl.store(parts + (programs + pid).to(tl.int64) * n + col, db, mask=inside)


@triton.jit
def layernorm_backward_locks(dx, dw, db, dy, x, weight, mean, rstd, lock, stride, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Tutorial 05: a program per row adds to one of GROUP rows of sums under a lock; colsum adds those up."""
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    inside = col < n
    at = row.to(tl.int64) * stride + col
    slot = row % GROUP
    count = lock + GROUP + slot
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    h = (v - tl.load(mean + row)) * r
    wg = w * g
    h = tl.where(inside, h, 0.0)
    a = tl.sum(h * wg, 0) / n
    b = tl.sum(wg, 0) / n
    tl.store(dx + at, ((wg - (h * a + b)) * r).to(dx.dtype.element_ty), mask=inside)
    part_w = g * h
    part_b = g
    while tl.atomic_cas(lock + slot, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw + slot * n + col, mask=inside)
        part_b += tl.load(db + slot * n + col, mask=inside)
    tl.store(dw + slot * n + col, part_w, mask=inside)
    tl.store(db + slot * n + col, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock + slot, 0)


@triton.jit
def colsum(out, x, rows, n, BM: tl.constexpr, BN: tl.constexpr):
    """The rows of f32[parts, rows, n] x added up into [parts, n] out."""
    part = tl.program_id(1)
    col = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for at in range(0, rows, BM):
        row = at + tl.arange(0, BM)
        total += tl.load(x + (part * rows + row).to(tl.int64)[:, None] * n + col[None, :], mask=(row < rows)[:, None] & (col < n)[None, :], other=0.0)
    tl.store(out + part * n + col, tl.sum(total, 0).to(out.dtype.element_ty), mask=col < n)


@triton.jit
def rmsnorm(out, x, weight, rstd, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    v = tl.load(x + row * stride + col, mask=inside, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    tl.store(rstd + row, r)
    w = tl.load(weight + col, mask=inside).to(tl.float32)
    tl.store(out + row * stride + col, (v * r * w).to(out.dtype.element_ty), mask=inside)


@triton.jit
def add_rmsnorm(out, residual_out, x, residual, weight, rstd, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    at = row * stride + col
    s = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)).to(out.dtype.element_ty)
    tl.store(residual_out + at, s, mask=inside)
    v = s.to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    tl.store(rstd + row, r)
    w = tl.load(weight + col, mask=inside).to(tl.float32)
    tl.store(out + at, (v * r * w).to(out.dtype.element_ty), mask=inside)


@triton.jit
def rmsnorm_backward(dx, parts, dy, x, weight, rstd, stride, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    pid = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    inside = col < n
    w = tl.load(weight + col, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(pid, rows, tl.num_programs(0), num_stages=STAGES):
        at = tl.cast(row, tl.int64) * stride + col
        g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(rstd + row)
        h = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * r
        wg = w * g
        a = tl.sum(h * wg, 0) / n
        tl.store(dx + at, ((wg - h * a) * r).to(dx.dtype.element_ty), mask=inside)
        dw += g * h
    tl.store(parts + pid.to(tl.int64) * n + col, dw, mask=inside)


@triton.jit
def cross_entropy(loss, lse, x, target, stride, n, ignore, BLOCK: tl.constexpr):
    """A row block by block, with a running maximum and sum, as Liger Kernel does it; one block if BLOCK covers the row."""
    row = tl.program_id(0)
    base = x + row.to(tl.int64) * stride
    most = -float("inf")
    total = 0.0
    for at in range(0, n, BLOCK):
        col = at + tl.arange(0, BLOCK)
        v = tl.load(base + col, mask=col < n, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(most, tl.max(v, 0))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(v - higher), 0)
        most = higher
    l = most + tl.log(total)
    t = tl.load(target + row)
    hit = tl.load(base + t, mask=t != ignore, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(t == ignore, 0.0, l - hit))
    tl.store(lse + row, l)


@triton.jit
def cross_entropy_backward(dx, x, target, lse, dloss, stride, n, ignore, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row.to(tl.int64) * stride + col
    v = tl.load(x + at, mask=col < n, other=0.0).to(tl.float32)
    t = tl.load(target + row)
    by = tl.where(t == ignore, 0.0, tl.load(dloss + row))
    p = tl.exp(v - tl.load(lse + row))
    tl.store(dx + at, ((p - tl.where(col == t, 1.0, 0.0)) * by).to(dx.dtype.element_ty), mask=col < n)


@triton.jit
def cross_entropy_fused(loss, dx, x, target, stride, n, ignore, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    at = row.to(tl.int64) * stride + col
    v = tl.load(x + at, mask=col < n, other=-float("inf")).to(tl.float32)
    t = tl.load(target + row)
    hit = tl.load(x + row.to(tl.int64) * stride + t, mask=t != ignore, other=0.0).to(tl.float32)
    most = tl.max(v, 0)
    e = tl.exp(v - most)
    total = tl.sum(e, 0)
    tl.store(loss + row, tl.where(t == ignore, 0.0, most + tl.log(total) - hit))
    by = tl.where(t == ignore, 0.0, scale)
    tl.store(dx + at, ((e / total - tl.where(col == t, 1.0, 0.0)) * by).to(dx.dtype.element_ty), mask=col < n)


@triton.jit
def rotary(out, x, cos, sin, heads, positions, d: tl.constexpr, HEADS: tl.constexpr, INTERLEAVED: tl.constexpr):
    """[tokens, heads, d], d a power of two; a program has HEADS heads of a token."""
    HALF: tl.constexpr = d // 2
    token = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    k = tl.arange(0, HALF)
    angle = token % positions * HALF + k
    c = tl.load(cos + angle)[None, :]
    s = tl.load(sin + angle)[None, :]
    base = token.to(tl.int64) * (heads * d) + h[:, None] * d
    inside = h[:, None] < heads
    if INTERLEAVED:
        at = base + tl.arange(0, d)[None, :]
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        a, b = tl.split(tl.reshape(v, (HEADS, HALF, 2)))
        tl.store(out + at, tl.interleave(a * c - b * s, b * c + a * s).to(out.dtype.element_ty), mask=inside)
    else:
        at = base + k[None, :]
        a = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(x + at + HALF, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + at, (a * c - b * s).to(out.dtype.element_ty), mask=inside)
        tl.store(out + at + HALF, (b * c + a * s).to(out.dtype.element_ty), mask=inside)


@triton.jit
def dropout(y, x, n, p, seed, BLOCK: tl.constexpr):
    """Tutorial 04: a Philox for each element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    keep = tl.rand(seed, i) > p
    tl.store(y + i, tl.where(keep, v / (1 - p), 0.0).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def dropout4(y, x, n, p, seed, BLOCK: tl.constexpr):
    """A Philox for four neighbours."""
    at = tl.program_id(0) * BLOCK
    i = at + tl.arange(0, BLOCK)
    a, b, c, d = tl.rand4x(seed, at // 4 + tl.arange(0, BLOCK // 4))
    u = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BLOCK,))
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.where(u > p, v / (1 - p), 0.0).to(y.dtype.element_ty), mask=i < n)


@triton.jit
def transpose(out, x, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    v = tl.load(x + m[:, None].to(tl.int64) * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
    tl.store(out + n[:, None].to(tl.int64) * M + m[None, :], tl.trans(v), mask=(n < N)[:, None] & (m < M)[None, :])


def autotuned_matmul(configs):
    """c = a x b under Triton's autotuner; configs: (BM, BN, BK, warps, stages)."""
    @triton.autotune([triton.Config({"BM": bm, "BN": bn}, num_warps=w, num_stages=s) for bm, bn, _, w, s in configs], key=["M", "N", "K"])
    @triton.jit
    def kernel(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
        pid = tl.program_id(0)
        cols = tl.cdiv(N, BN)
        first = pid // (GROUP * cols) * GROUP
        height = min(tl.cdiv(M, BM) - first, GROUP)
        within = pid % (GROUP * cols)
        m = (first + within % height) * BM + tl.arange(0, BM)
        n = (within // height) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        ap = a + (m % M)[:, None] * sam + k[None, :] * sak
        bp = b + k[:, None] * sbk + (n % N)[None, :] * sbn
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            x = tl.load(ap, mask=k[None, :] < K - step * BK, other=0.0)
            y = tl.load(bp, mask=k[:, None] < K - step * BK, other=0.0)
            acc = tl.dot(x, y, acc)
            ap += BK * sak
            bp += BK * sbk
        tl.store(c + m[:, None] * scm + n[None, :] * scn, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    return kernel


# ---- order, running sums, counts ----

@triton.jit
def rows_of(R: tl.constexpr, N: tl.constexpr):
    return (tl.program_id(0) * R + tl.arange(0, R))[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def sort_rows(x, y, N: tl.constexpr, R: tl.constexpr):
    i = rows_of(R, N)
    tl.store(y + i, tl.sort(tl.load(x + i), 1))


@triton.jit
def top_rows(x, y, N: tl.constexpr, R: tl.constexpr, K: tl.constexpr):
    tl.store(y + rows_of(R, K), tl.topk(tl.load(x + rows_of(R, N)), K, 1))


@triton.jit
def cumsum_rows(x, y, N: tl.constexpr, R: tl.constexpr):
    i = rows_of(R, N)
    tl.store(y + i, tl.cumsum(tl.load(x + i), 1))


@triton.jit
def after(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def recurrence_rows(a, b, y, N: tl.constexpr, R: tl.constexpr):
    i = rows_of(R, N)
    p, q = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 1, after)
    tl.store(y + i, q)


@triton.jit
def gather_rows(x, index, y, N: tl.constexpr, R: tl.constexpr):
    i = rows_of(R, N)
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(index + i), 1))


@triton.jit
def count_values(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    h = tl.zeros((BINS,), tl.int32)
    for at in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        h += tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(counts + tl.arange(0, BINS), h, sem="relaxed")


# ---- quantisation ----

@triton.jit
def quant_scale(most):
    return tl.where(most > 0, tl.maximum(most / 448.0, 1.1754943508222875e-38), 1.0)


@triton.jit
def quantise_groups(x, q, scales, rows, cols, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = i[:, None].to(tl.int64) * cols + j[None, :]
    inside = (i < rows)[:, None] & (j < cols)[None, :]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    s = quant_scale(tl.max(tl.abs(v), 1))
    tl.store(q + at, (v * (1.0 / s)[:, None]).to(q.dtype.element_ty), mask=inside)
    tl.store(scales + tl.program_id(1).to(tl.int64) * rows + i, s, mask=i < rows)


@triton.jit
def quantise_squares(x, q, scales, rows, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = i[:, None].to(tl.int64) * cols + j[None, :]
    inside = (i < rows)[:, None] & (j < cols)[None, :]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    s = quant_scale(tl.max(tl.max(tl.abs(v), 1), 0))
    tl.store(q + at, (v * (1.0 / s)).to(q.dtype.element_ty), mask=inside)
    tl.store(scales + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), s)


@triton.jit
def quantise_grid(x, q, scales, rows, cols, BLOCK: tl.constexpr, SUB_M: tl.constexpr, SUB_N: tl.constexpr):
    most = tl.zeros((SUB_M, SUB_N), tl.float32)
    for t in range((BLOCK // SUB_M) * (BLOCK // SUB_N)):
        i = tl.program_id(0) * BLOCK + t // (BLOCK // SUB_N) * SUB_M + tl.arange(0, SUB_M)
        j = tl.program_id(1) * BLOCK + t % (BLOCK // SUB_N) * SUB_N + tl.arange(0, SUB_N)
        at = i[:, None].to(tl.int64) * cols + j[None, :]
        inside = (i < rows)[:, None] & (j < cols)[None, :]
        most = tl.maximum(most, tl.abs(tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)))
    s = quant_scale(tl.max(tl.max(most, 1), 0))
    for t in range((BLOCK // SUB_M) * (BLOCK // SUB_N)):
        i = tl.program_id(0) * BLOCK + t // (BLOCK // SUB_N) * SUB_M + tl.arange(0, SUB_M)
        j = tl.program_id(1) * BLOCK + t % (BLOCK // SUB_N) * SUB_N + tl.arange(0, SUB_N)
        at = i[:, None].to(tl.int64) * cols + j[None, :]
        inside = (i < rows)[:, None] & (j < cols)[None, :]
        v = tl.load(x + at, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
        tl.store(q + at, (v * (1.0 / s)).to(q.dtype.element_ty), mask=inside)
    tl.store(scales + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), s)


@triton.jit
def scaled_matmul(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.cdiv(N, BN)
    first = pid // (GROUP * cols) * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    within = pid % (GROUP * cols)
    m = (first + within % height) * BM + tl.arange(0, BM)
    n = (within // height) * BN + tl.arange(0, BN)
    k = tl.arange(0, 128)
    ap = a + (m % M)[:, None].to(tl.int64) * K + k[None, :]
    bp = b + (n % N)[None, :].to(tl.int64) * K + k[:, None]
    groups = tl.cdiv(K, 128)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(0, groups):
        x = tl.load(ap, mask=k[None, :] < K - g * 128, other=0.0)
        y = tl.load(bp, mask=k[:, None] < K - g * 128, other=0.0)
        s = tl.load(sa + g * M + m % M) * tl.load(sb + (within // height) * BN // 128 * groups + g)
        acc += tl.dot(x, y) * s[:, None]
        ap += 128
        bp += 128
    tl.store(c + m[:, None].to(tl.int64) * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def scaled_matmul_boxes(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The same by tensor descriptors, as many programs as multiprocessors, whose loads run on over the end of a tile."""
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    groups = tl.cdiv(K, 128)
    for t in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), flatten=True):
        first = t // (GROUP * cols) * GROUP
        height = min(rows - first, GROUP)
        within = t % (GROUP * cols)
        i = (first + within % height) * BM
        j = (within // height) * BN
        m = (i + tl.arange(0, BM)) % M
        acc = tl.zeros((BM, BN), tl.float32)
        for g in range(0, groups):
            s = tl.load(sa + g * M + m) * tl.load(sb + j // 128 * groups + g)
            acc += tl.dot(a.load([i, g * 128]), b.load([j, g * 128]).T) * s[:, None]
        c.store([i, j], acc.to(c.dtype))


# ---- tiles one after the other ----

@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    for t in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), flatten=True):
        first = t // (GROUP * cols) * GROUP
        height = min(rows - first, GROUP)
        within = t % (GROUP * cols)
        m = (first + within % height) * BM + tl.arange(0, BM)
        n = (within // height) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            kk = step * BK + k
            x = tl.load(a + (m % M)[:, None].to(tl.int64) * K + kk[None, :], mask=kk[None, :] < K, other=0.0)
            y = tl.load(b + kk[:, None].to(tl.int64) * N + (n % N)[None, :], mask=kk[:, None] < K, other=0.0)
            acc = tl.dot(x, y, acc)
        tl.store(c + m[:, None].to(tl.int64) * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


# ---- products by boxes ----

@triton.jit
def matmul_boxes(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACROSS: tl.constexpr,
                 PIECES: tl.constexpr, PROMOTE: tl.constexpr):
    """By tensor descriptors, as many programs as multiprocessors, whose loads run on over the end of a tile: b is K x N, or N x K if ACROSS;
    a tile leaves in one piece or in two. PROMOTE: 8-bit floats' sums of so many products are added up in f32."""
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), flatten=True):
        first = t // (GROUP * cols) * GROUP
        height = min(rows - first, GROUP)
        within = t % (GROUP * cols)
        m = (first + within % height) * BM
        n = (within // height) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            x = a.load([m, step * BK])
            y = b.load([n, step * BK]).T if ACROSS else b.load([step * BK, n])
            acc = tl.dot(x, y, acc, max_num_imprecise_acc=PROMOTE)
        if PIECES == 1:
            c.store([m, n], acc.to(c.dtype))
        else:
            left, right = acc.reshape((BM, 2, BN // 2)).permute((0, 2, 1)).split()
            c.store([m, n], left.to(c.dtype))
            c.store([m, n + BN // 2], right.to(c.dtype))


@triton.jit
def matmul_teams(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACROSS: tl.constexpr,
                 STAY: tl.constexpr, PROMOTE: tl.constexpr):
    """The same with a team of warps that copies and two that multiply, a half of the rows each. These need descriptors that the kernel makes."""
    rows = tl.cdiv(M, BM)
    cols = tl.cdiv(N, BN)
    ad = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    if ACROSS:
        bd = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    else:
        bd = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    cd = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    if STAY:
        for t in tl.range(tl.program_id(0), rows * cols, tl.num_programs(0), warp_specialize=True):
            first = t // (GROUP * cols) * GROUP
            height = min(rows - first, GROUP)
            within = t % (GROUP * cols)
            m = (first + within % height) * BM
            n = (within // height) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for step in range(0, tl.cdiv(K, BK)):
                x = ad.load([m, step * BK])
                y = bd.load([n, step * BK]).T if ACROSS else bd.load([step * BK, n])
                acc = tl.dot(x, y, acc, max_num_imprecise_acc=PROMOTE)
            cd.store([m, n], acc.to(c.dtype.element_ty))
    else:
        t = tl.program_id(0)
        first = t // (GROUP * cols) * GROUP
        height = min(rows - first, GROUP)
        within = t % (GROUP * cols)
        m = (first + within % height) * BM
        n = (within // height) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in tl.range(0, tl.cdiv(K, BK), warp_specialize=True):
            x = ad.load([m, step * BK])
            y = bd.load([n, step * BK]).T if ACROSS else bd.load([step * BK, n])
            acc = tl.dot(x, y, acc, max_num_imprecise_acc=PROMOTE)
        cd.store([m, n], acc.to(c.dtype.element_ty))


# ---- Mamba-2, in the five launches of its authors' own Triton kernels ----

@triton.jit
def ssd_steps(dt, bias, a, steps, sums, T, heads, C: tl.constexpr, BH: tl.constexpr):
    chunk, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    l, h = tl.arange(0, C)[:, None], tl.program_id(1) * BH + tl.arange(0, BH)[None, :]
    t, own = chunk * C + l, h < heads
    raw = tl.load(dt + (batch * T + t) * heads + h, mask=(t < T) & own, other=0.0) + tl.load(bias + h, mask=own, other=0.0)
    step = tl.where(t < T, tl.where(raw > 20, raw, tl.log(1 + tl.exp(raw))), 0.0)
    to = ((batch * tl.num_programs(0) + chunk) * heads + h) * C + l
    tl.store(steps + to, step, mask=own)
    tl.store(sums + to, tl.cumsum(step * (tl.load(a + h, mask=own, other=0.0) * 1.4426950408889634), 0), mask=own)


@triton.jit
def ssd_scores(b, c, scores, T, groups, N: tl.constexpr, C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    chunk, batch, g = tl.program_id(1), tl.program_id(2) // groups, tl.program_id(2) % groups
    m0, k0 = tl.program_id(0) // (C // BM) * BM, tl.program_id(0) % (C // BM) * BM
    if k0 <= m0:
        at = (batch.to(tl.int64) * T * groups + g) * N
        m, k, n = m0 + tl.arange(0, BM), k0 + tl.arange(0, BM), tl.arange(0, BN)
        tm, tk = chunk * C + m, chunk * C + k
        s = tl.zeros((BM, BM), tl.float32)
        for n0 in range(0, N, BN):
            cs = tl.load(c + at + tm[:, None] * (groups * N) + n0 + n[None, :], mask=tm[:, None] < T, other=0.0)
            bs = tl.load(b + at + tk[None, :] * (groups * N) + n0 + n[:, None], mask=tk[None, :] < T, other=0.0)
            s = tl.dot(cs, bs, s)
        to = ((batch.to(tl.int64) * tl.num_programs(1) + chunk) * groups + g) * (C * C) + m[:, None] * C + k[None, :]
        tl.store(scores + to, s.to(scores.dtype.element_ty))


@triton.jit
def ssd_states(x, b, steps, sums, states, T, heads, groups, P: tl.constexpr, N: tl.constexpr, C: tl.constexpr, BK: tl.constexpr):
    h, chunk, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    of_chunk = (batch * tl.num_programs(1) + chunk) * heads + h
    p, n, l = tl.arange(0, P), tl.arange(0, N), tl.arange(0, BK)
    last = tl.load(sums + of_chunk * C + C - 1)
    state = tl.zeros((P, N), tl.float32)
    for k0 in range(0, min(C, T - chunk * C), BK):
        t = chunk * C + k0 + l
        xs = tl.load(x + ((batch * T + t[None, :]) * heads + h) * P + p[:, None], mask=t[None, :] < T, other=0.0)
        bs = tl.load(b + ((batch * T + t[:, None]) * groups + h // (heads // groups)) * N + n[None, :], mask=t[:, None] < T, other=0.0)
        weight = tl.exp2(last - tl.load(sums + of_chunk * C + k0 + l)) * tl.load(steps + of_chunk * C + k0 + l)
        state = tl.dot((xs * weight[None, :]).to(xs.dtype), bs, state)
    tl.store(states + of_chunk * (P * N) + p[:, None] * N + n[None, :], state)


@triton.jit
def ssd_pass(states, before, sums, state, chunks, SIZE: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    h, batch, heads = tl.program_id(1), tl.program_id(2).to(tl.int64), tl.num_programs(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    end = state + (batch * heads + h) * SIZE + i
    s = tl.load(end, mask=i < SIZE)
    for chunk in range(0, chunks):
        of_chunk = (batch * chunks + chunk) * heads + h
        tl.store(before + of_chunk * SIZE + i, s.to(before.dtype.element_ty), mask=i < SIZE)
        s = s * tl.exp2(tl.load(sums + of_chunk * C + C - 1)) + tl.load(states + of_chunk * SIZE + i, mask=i < SIZE)
    tl.store(end, s, mask=i < SIZE)


@triton.jit
def ssd_outputs(x, c, z, scores, before, steps, sums, skip, y, T, heads, groups, P: tl.constexpr, N: tl.constexpr, C: tl.constexpr,
                BM: tl.constexpr, BK: tl.constexpr):
    h, chunk, batch = tl.program_id(0) // (C // BM), tl.program_id(1), tl.program_id(2).to(tl.int64)
    m0 = tl.program_id(0) % (C // BM) * BM
    g = h // (heads // groups)
    of_chunk = (batch * tl.num_programs(1) + chunk) * heads + h
    m, p, n, l = m0 + tl.arange(0, BM), tl.arange(0, P), tl.arange(0, N), tl.arange(0, BK)
    t = chunk * C + m
    sum_m = tl.load(sums + of_chunk * C + m)
    state = tl.load(before + of_chunk * (P * N) + p[None, :] * N + n[:, None])
    cs = tl.load(c + ((batch * T + t[:, None]) * groups + g) * N + n[None, :], mask=t[:, None] < T, other=0.0)
    out = tl.dot(cs, state) * tl.exp2(sum_m)[:, None]
    row = scores + ((batch * tl.num_programs(1) + chunk) * groups + g) * (C * C)
    for k0 in range(0, min(m0 + BM, T - chunk * C), BK):
        k = k0 + l
        tk = chunk * C + k
        s = tl.load(row + m[:, None] * C + k[None, :])
        xs = tl.load(x + ((batch * T + tk[:, None]) * heads + h) * P + p[None, :], mask=tk[:, None] < T, other=0.0)
        decay = tl.exp2(sum_m[:, None] - tl.load(sums + of_chunk * C + k)[None, :])
        weight = tl.where(m[:, None] >= k[None, :], s.to(tl.float32) * decay * tl.load(steps + of_chunk * C + k)[None, :], 0.0)
        out = tl.dot(weight.to(xs.dtype), xs, out)
    at = ((batch * T + t[:, None]) * heads + h) * P + p[None, :]
    inside = t[:, None] < T
    out += tl.load(skip + h) * tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(z + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, (out * gate / (1 + tl.exp(-gate))).to(y.dtype.element_ty), mask=inside)


@triton.jit
def selective_scan(x, dt, z, a, b, c, skip, y, state, T, N: tl.constexpr, BLOCK: tl.constexpr):
    d, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = batch * tl.num_programs(0) + d
    n, l = tl.arange(0, N)[:, None], tl.arange(0, BLOCK)[None, :]
    rate = tl.load(a + d * N + n) * 1.4426950408889634
    by = tl.load(skip + d)
    h = tl.load(state + channel * N + n)
    for at in range(0, T, BLOCK):
        t = at + l
        inside = t < T
        u = tl.load(x + channel * T + t, mask=inside, other=0.0).to(tl.float32)
        raw = tl.load(dt + channel * T + t, mask=inside, other=0.0).to(tl.float32)
        step = tl.where(inside, tl.where(raw > 20, raw, tl.log(1 + tl.exp(raw))), 0.0)
        bs = tl.load(b + batch * N * T + n * T + t, mask=inside, other=0.0).to(tl.float32)
        cs = tl.load(c + batch * N * T + n * T + t, mask=inside, other=0.0).to(tl.float32)
        decay, gain = tl.associative_scan((tl.exp2(step * rate), step * u * bs), 1, after)
        hs = decay * h + gain
        out = tl.sum(hs * cs, 0, keep_dims=True) + by * u
        gate = tl.load(z + channel * T + t, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + channel * T + t, (out * gate / (1 + tl.exp(-gate))).to(y.dtype.element_ty), mask=inside)
        h = tl.sum(tl.where(l == BLOCK - 1, hs, 0.0), 1, keep_dims=True)
    tl.store(state + channel * N + n, h)
