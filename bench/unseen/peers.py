"""What a Triton user writes for the kernels of the .tile files beside this, by the same algorithms."""
import triton
import triton.language as tl


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + i, mask=i < n).to(tl.float32)
    u = tl.load(up + i, mask=i < n).to(tl.float32)
    tl.store(out + i, (g * tl.sigmoid(g) * u).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def group_norm_nchw(x, w, b, y, HW, C, G, eps, BLOCK: tl.constexpr):
    g = tl.program_id(0)
    n = tl.program_id(1)
    per = C // G
    size = per * HW
    base = (n * G + g).to(tl.int64) * size
    s = tl.zeros((BLOCK,), tl.float32)
    q = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, size, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + base + i, mask=i < size, other=0.0).to(tl.float32)
        s += v
        q += v * v
    mean = tl.sum(s, 0) / size
    r = tl.rsqrt(tl.sum(q, 0) / size - mean * mean + eps)
    for at in range(0, size, BLOCK):
        i = at + tl.arange(0, BLOCK)
        m = i < size
        c = g * per + i // HW
        v = (tl.load(x + base + i, mask=m, other=0.0).to(tl.float32) - mean) * r
        v = v * tl.load(w + c, mask=m) + tl.load(b + c, mask=m)
        tl.store(y + base + i, (v * tl.sigmoid(v)).to(y.dtype.element_ty), mask=m)


@triton.jit
def group_norm_nhwc(x, w, b, y, HW, C, G, eps, BP: tl.constexpr, BC: tl.constexpr):
    g = tl.program_id(0)
    n = tl.program_id(1)
    per = C // G
    k = tl.arange(0, BC)[None, :]
    base = n.to(tl.int64) * HW * C + g * per
    s = tl.zeros((BP, BC), tl.float32)
    q = tl.zeros((BP, BC), tl.float32)
    for p0 in range(0, HW, BP):
        p = p0 + tl.arange(0, BP)[:, None]
        v = tl.load(x + base + p * C + k, mask=(p < HW) & (k < per), other=0.0).to(tl.float32)
        s += v
        q += v * v
    count = (HW * per).to(tl.float32)
    mean = tl.sum(s) / count
    r = tl.rsqrt(tl.sum(q) / count - mean * mean + eps)
    wk = tl.load(w + g * per + k, mask=k < per)
    bk = tl.load(b + g * per + k, mask=k < per)
    for p0 in range(0, HW, BP):
        p = p0 + tl.arange(0, BP)[:, None]
        m = (p < HW) & (k < per)
        v = (tl.load(x + base + p * C + k, mask=m, other=0.0).to(tl.float32) - mean) * r * wk + bk
        tl.store(y + base + p * C + k, (v * tl.sigmoid(v)).to(y.dtype.element_ty), mask=m)


@triton.jit
def rope_cache(q, k, v, cos, sin, pos, slots, qo, kc, vc, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0)
    half = tl.arange(0, D // 2)[None, :]
    angle = tl.load(pos + t) * (D // 2) + half
    c = tl.load(cos + angle)
    s = tl.load(sin + angle)
    at = t * (HQ * D) + tl.arange(0, HQ)[:, None] * D + half
    a = tl.load(q + at).to(tl.float32)
    b = tl.load(q + at + D // 2).to(tl.float32)
    tl.store(qo + at, (a * c - b * s).to(qo.dtype.element_ty))
    tl.store(qo + at + D // 2, (b * c + a * s).to(qo.dtype.element_ty))
    slot = tl.load(slots + t)
    if slot >= 0:
        i = tl.arange(0, HK)[:, None] * D + half
        src = t * (HK * D) + i
        to = slot * (HK * D) + i
        e = tl.load(k + src).to(tl.float32)
        f = tl.load(k + src + D // 2).to(tl.float32)
        tl.store(kc + to, (e * c - f * s).to(kc.dtype.element_ty))
        tl.store(kc + to + D // 2, (f * c + e * s).to(kc.dtype.element_ty))
        j = tl.arange(0, HK * D)
        tl.store(vc + slot * (HK * D) + j, tl.load(v + t * (HK * D) + j))


@triton.jit
def dropout_add_norm(x, residual, w, b, stream, y, n, eps, p, seed, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < n
    at = tl.program_id(0) * n + c
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    v = tl.load(residual + at, mask=m, other=0.0).to(tl.float32) + tl.where(keep, v / (1 - p), 0.0)
    tl.store(stream + at, v.to(stream.dtype.element_ty), mask=m)
    wv = tl.load(w + c, mask=m).to(tl.float32)
    bv = tl.load(b + c, mask=m).to(tl.float32)
    mean = tl.sum(tl.where(m, v, 0.0), 0) / n
    d = tl.where(m, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(y + at, (d * r * wv + bv).to(y.dtype.element_ty), mask=m)


@triton.jit
def causal_conv(x, w, bias, y, T, dim, B: tl.constexpr, CHUNK: tl.constexpr):
    d = tl.program_id(0) * B + tl.arange(0, B)
    m = d < dim
    t0 = tl.program_id(1) * CHUNK
    base = tl.program_id(2).to(tl.int64) * T * dim
    bv = tl.load(bias + d, mask=m).to(tl.float32)
    w0 = tl.load(w + d * 4, mask=m).to(tl.float32)
    w1 = tl.load(w + d * 4 + 1, mask=m).to(tl.float32)
    w2 = tl.load(w + d * 4 + 2, mask=m).to(tl.float32)
    w3 = tl.load(w + d * 4 + 3, mask=m).to(tl.float32)
    a = tl.load(x + base + (t0 - 3) * dim + d, mask=m & (t0 >= 3), other=0.0).to(tl.float32)
    b = tl.load(x + base + (t0 - 2) * dim + d, mask=m & (t0 >= 2), other=0.0).to(tl.float32)
    c = tl.load(x + base + (t0 - 1) * dim + d, mask=m & (t0 >= 1), other=0.0).to(tl.float32)
    for t in range(t0, min(t0 + CHUNK, T)):
        v = tl.load(x + base + t * dim + d, mask=m, other=0.0).to(tl.float32)
        o = bv + w0 * a + w1 * b + w2 * c + w3 * v
        tl.store(y + base + t * dim + d, (o * tl.sigmoid(o)).to(y.dtype.element_ty), mask=m)
        a = b
        b = c
        c = v


@triton.jit
def rms_quant(x, residual, w, q, scale, D, eps, ub, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    m = i < D
    s = tl.load(x + r * D + i, mask=m, other=0.0).to(tl.float32) + tl.load(residual + r * D + i, mask=m, other=0.0).to(tl.float32)
    tl.store(residual + r * D + i, s.to(residual.dtype.element_ty), mask=m)
    h = s.to(tl.float16).to(tl.float32)
    rs = tl.rsqrt(tl.sum(h * h, 0) / D + eps)
    n = h * rs * (1.0 + tl.load(w + i, mask=m, other=0.0).to(tl.float32))
    sc = tl.minimum(tl.maximum(tl.max(tl.abs(n), 0), 1e-10), ub) / 127.0
    tl.store(scale + r, sc)
    v = tl.clamp(tl.floor(n / sc + 0.5), -127.0, 127.0)
    tl.store(q + r * D + i, v.to(tl.int8), mask=m)


@triton.jit
def bag(table, idx, offsets, out, D: tl.constexpr, BJ: tl.constexpr):
    b = tl.program_id(0)
    d = tl.arange(0, D)
    lo = tl.load(offsets + b)
    hi = tl.load(offsets + b + 1)
    acc = tl.zeros((BJ, D), tl.float32)
    for j0 in range(lo, hi, BJ):
        j = j0 + tl.arange(0, BJ)
        i = tl.load(idx + j, mask=j < hi, other=0)
        acc += tl.load(table + i[:, None] * D + d[None, :], mask=(j < hi)[:, None], other=0.0).to(tl.float32)
    tl.store(out + b * D + d, tl.sum(acc, 0))


@triton.jit
def sum_middle(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    a = tl.program_id(1)
    base = x + a.to(tl.int64) * M * N
    acc = tl.zeros((BM, BN), tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        acc += tl.load(base + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :], other=0.0).to(tl.float32)
    tl.store(out + a * N + n, tl.sum(acc, 0), mask=n < N)


@triton.jit
def cumsum_middle(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    base = tl.program_id(1).to(tl.int64) * M * N
    carry = tl.zeros((BN,), tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        inside = (m < M)[:, None] & (n < N)[None, :]
        v = tl.load(x + base + m[:, None] * N + n[None, :], mask=inside, other=0.0)
        tl.store(y + base + m[:, None] * N + n[None, :], tl.cumsum(v, 0) + carry[None, :], mask=inside)
        carry += tl.sum(v, 0)


@triton.jit
def argmax_rows(x, out, n, BLOCK: tl.constexpr):
    row = x + tl.program_id(0).to(tl.int64) * n
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    at = tl.zeros((BLOCK,), tl.int32)
    for c0 in range(0, n, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(row + c, mask=c < n, other=-float("inf"))
        at = tl.where(v > best, c, at)
        best = tl.maximum(best, v)
    most = tl.max(best, 0)
    tl.store(out + tl.program_id(0), tl.min(tl.where(best == most, at, n), 0))


@triton.jit
def topk_part(x, keys, n, BLOCK: tl.constexpr, K: tl.constexpr):
    """Value and place in one number, for tl.topk gives no indices: of equal values the first place is the largest."""
    c = tl.program_id(0)
    r = tl.program_id(1)
    i = c * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + r.to(tl.int64) * n + i, mask=i < n, other=-float("inf"))
    b = v.to(tl.int32, bitcast=True)
    b = tl.where(b < 0, b ^ 0x7FFFFFFF, b)
    key = (b.to(tl.int64) << 32) | (0x7FFFFFFF - i).to(tl.int64)
    tl.store(keys + (r * tl.num_programs(0) + c) * K + tl.arange(0, K), tl.topk(key, K))


@triton.jit
def topk_merge(keys, vo, ao, C: tl.constexpr, K: tl.constexpr):
    r = tl.program_id(0)
    key = tl.topk(tl.load(keys + r * C + tl.arange(0, C)), K)
    b = (key >> 32).to(tl.int32)
    b = tl.where(b < 0, b ^ 0x7FFFFFFF, b)
    o = r * K + tl.arange(0, K)
    tl.store(vo + o, b.to(tl.float32, bitcast=True))
    tl.store(ao + o, 0x7FFFFFFF - (key & 0x7FFFFFFF).to(tl.int32))


@triton.jit
def bincount(x, w, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.atomic_add(out + tl.load(x + i, mask=m, other=0), tl.load(w + i, mask=m, other=0.0), mask=m, sem="relaxed")


@triton.jit
def stencil(u, v, H, W, a, BM: tl.constexpr, BN: tl.constexpr):
    i = (tl.program_id(1) * BM + tl.arange(0, BM))[:, None]
    j = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :]
    at = i * W + j
    m = (i < H) & (j < W)
    c = tl.load(u + at, mask=m, other=0.0)
    up = tl.load(u + at - W, mask=m & (i > 0), other=0.0)
    down = tl.load(u + at + W, mask=m & (i < H - 1), other=0.0)
    left = tl.load(u + at - 1, mask=m & (j > 0), other=0.0)
    right = tl.load(u + at + 1, mask=m & (j < W - 1), other=0.0)
    tl.store(v + at, c + a * (up + down + left + right - 4.0 * c), mask=m)


@triton.jit
def cast_transpose(x, scale, y, yt, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = (m < M)[:, None] & (n < N)[None, :]
    v = tl.load(x + m[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32) * tl.load(scale)
    v = v.to(y.dtype.element_ty)
    tl.store(y + m[:, None] * N + n[None, :], v, mask=inside)
    tl.store(yt + n[:, None] * M + m[None, :], tl.trans(v), mask=tl.trans(inside))


@triton.jit
def gemv_w8(x, w, s, y, N, K, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        v = tl.load(x + k, mask=k < K, other=0.0).to(tl.float32)
        acc += v[None, :] * tl.load(w + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0).to(tl.float32)
    tl.store(y + n, (tl.sum(acc, 1) * tl.load(s + n, mask=n < N)).to(y.dtype.element_ty), mask=n < N)


@triton.jit
def bmm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    z = tl.program_id(1).to(tl.int64)
    cols = tl.cdiv(N, BN)
    m = (tl.program_id(0) // cols * BM + tl.arange(0, BM))[:, None]
    n = (tl.program_id(0) % cols * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + z * M * K + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + z * K * N + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + z * M * N + m * N + n, acc.to(c.dtype.element_ty), mask=(m < M) & (n < N))


@triton.jit
def linear_gelu(x, w, bias, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.cdiv(N, BN)
    first = pid // (8 * cols) * 8
    height = min(tl.cdiv(M, BM) - first, 8)
    within = pid % (8 * cols)
    m = (first + within % height) * BM + tl.arange(0, BM)
    n = within // height * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    xp = x + (m % M)[:, None] * K + k[None, :]
    wp = w + (n % N)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(xp, mask=k[None, :] < K - k0, other=0.0)
        b = tl.load(wp, mask=k[:, None] < K - k0, other=0.0)
        acc = tl.dot(a, b, acc)
        xp += BK
        wp += BK
    acc += tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(y + m[:, None] * N + n[None, :], acc.to(y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def assign(x, c, which, n, k, D: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    v = tl.load(x + i[:, None] * D + d[None, :], mask=(i < n)[:, None], other=0.0)
    best = tl.full((BN,), float("inf"), tl.float32)
    at = tl.zeros((BN,), tl.int32)
    for k0 in range(0, k, BK):
        j = k0 + tl.arange(0, BK)
        w = tl.load(c + j[:, None] * D + d[None, :], mask=(j < k)[:, None], other=0.0)
        dist = tl.sum(w * w, 1)[None, :] - 2.0 * tl.dot(v, tl.trans(w))
        m, a = tl.min(tl.where((j < k)[None, :], dist, float("inf")), 1, return_indices=True)
        at = tl.where(m < best, k0 + a, at)
        best = tl.minimum(best, m)
    tl.store(which + i, at, mask=i < n)


@triton.jit
def chunk_state(x, b, dt, da, states, seqlen, heads, groups, P, N, chunks, L: tl.constexpr, BP: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    cols = tl.cdiv(N, BN)
    p = tl.program_id(0) // cols * BP + tl.arange(0, BP)
    n = tl.program_id(0) % cols * BN + tl.arange(0, BN)
    z = tl.program_id(1) // chunks
    c = tl.program_id(1) % chunks
    h = tl.program_id(2)
    row = z * seqlen + c * L
    steps = ((z * heads + h) * chunks + c) * L
    last = tl.load(da + steps + L - 1)
    acc = tl.zeros((BP, BN), tl.float32)
    for k0 in range(0, L, BK):
        l = k0 + tl.arange(0, BK)
        xt = tl.load(x + ((row + l)[None, :] * heads + h) * P + p[:, None], mask=(p < P)[:, None], other=0.0)
        bt = tl.load(b + ((row + l)[:, None] * groups + h // (heads // groups)) * N + n[None, :], mask=(n < N)[None, :], other=0.0)
        scale = tl.exp(last - tl.load(da + steps + l)) * tl.load(dt + steps + l)
        acc = tl.dot(xt, (bt.to(tl.float32) * scale[:, None]).to(xt.dtype), acc)
    to = (((z * chunks + c) * heads + h) * P + p[:, None]) * N + n[None, :]
    tl.store(states + to, acc, mask=(p < P)[:, None] & (n < N)[None, :])


@triton.jit
def wkv6(r, k, v, w, u, state, out, T, H, K: tl.constexpr, V: tl.constexpr):
    h = tl.program_id(0)
    b = tl.program_id(1)
    i = tl.arange(0, K)
    j = tl.arange(0, V)
    sp = state + ((b * H + h) * K + i[:, None]) * V + j[None, :]
    s = tl.load(sp)
    un = tl.load(u + h * K + i)
    for t in range(T):
        at = (b * T + t) * H + h
        kv = tl.load(k + at * K + i).to(tl.float32)[:, None] * tl.load(v + at * V + j).to(tl.float32)[None, :]
        rt = tl.load(r + at * K + i).to(tl.float32)
        tl.store(out + at * V + j, tl.sum(rt[:, None] * (s + un[:, None] * kv), 0).to(out.dtype.element_ty))
        s = s * tl.exp(-tl.exp(tl.load(w + at * K + i)))[:, None] + kv
    tl.store(sp, s)


@triton.jit
def blocks(start, at, val, b, c, N, S: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    i = tl.arange(0, S)
    acc = tl.zeros((S, BN), tl.float32)
    for e in range(tl.load(start + r), tl.load(start + r + 1)):
        a = tl.load(val + e * (S * S) + i[:, None] * S + i[None, :])
        k = tl.load(at + e) * S + i
        acc = tl.dot(a, tl.load(b + k[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0), acc)
    tl.store(c + (r * S + i)[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(n < N)[None, :])


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def geglu(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = c < N
    gate = tl.load(x + row * 2 * N + c, mask=m, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * N + N + c, mask=m, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    tl.store(y + row * N + c, 0.5 * gate * (1 + tanh(inner)) * up, mask=m)


@triton.jit
def swiglu_backward(dy, gate, up, dgate, dup, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    d = tl.load(dy + i, mask=m, other=0.0).to(tl.float32)
    g = tl.load(gate + i, mask=m, other=0.0).to(tl.float32)
    u = tl.load(up + i, mask=m, other=0.0).to(tl.float32)
    s = tl.sigmoid(g)
    tl.store(dup + i, d * g * s, mask=m)
    tl.store(dgate + i, d * u * s * (1 + g * (1 - s)), mask=m)


@triton.jit
def gelu_backward(dy, x, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32)
    cdf = 0.5 * (1 + tl.erf(v * 0.7071067811865476))
    pdf = tl.exp(-0.5 * v * v) * 0.3989422804014327
    tl.store(dx + i, tl.load(dy + i, mask=m, other=0.0).to(tl.float32) * (cdf + v * pdf), mask=m)


@triton.jit
def mish(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    softplus = tl.where(v > 20, v, tl.log(1 + tl.exp(v)))
    tl.store(y + i, v * tanh(softplus), mask=i < n)


@triton.jit
def bn_hardswish(x, scale, shift, y, n, C, HW, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    c = i // HW % C
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32) * tl.load(scale + c, mask=m, other=0.0) + tl.load(shift + c, mask=m, other=0.0)
    tl.store(y + i, v * tl.minimum(tl.maximum(v + 3, 0.0), 6.0) / 6, mask=m)


@triton.jit
def bias_dropout_residual(x, bias, residual, y, n, N, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32) + tl.load(bias + i % N, mask=m, other=0.0).to(tl.float32)
    kept = tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0)
    tl.store(y + i, tl.load(residual + i, mask=m, other=0.0).to(tl.float32) + kept, mask=m)


@triton.jit
def timestep_embedding(t, out, half, period, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    angle = tl.load(t + row) * tl.exp(-tl.log(period) * i / half)
    tl.store(out + row * 2 * half + i, tl.cos(angle), mask=i < half)
    tl.store(out + row * 2 * half + half + i, tl.sin(angle), mask=i < half)


@triton.jit
def softcap_mask(x, keep, y, n, scale, cap, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = cap * tanh(tl.load(x + i, mask=m, other=0.0) * scale / cap)
    tl.store(y + i, tl.where(tl.load(keep + i, mask=m, other=0) != 0, v, -float("inf")), mask=m)


@triton.jit
def silu_mul_quant(x, q, scale, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m = c < N
    gate = tl.load(x + row * 2 * N + c, mask=m, other=0.0).to(tl.float32)
    v = gate * tl.sigmoid(gate) * tl.load(x + row * 2 * N + N + c, mask=m, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(v), 0), 1e-10) / 448.0
    tl.store(scale + row, s)
    tl.store(q + row * N + c, (v / s).to(q.dtype.element_ty), mask=m)


@triton.jit
def nearest(x):
    """Halves away from zero."""
    return tl.where(x < 0, tl.ceil(x - 0.5), tl.floor(x + 0.5))


@triton.jit
def group_quant(x, q, scale, groups, G: tl.constexpr, ROWS: tl.constexpr):
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = g.to(tl.int64)[:, None] * G + tl.arange(0, G)[None, :]
    m = g[:, None] < groups
    v = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(v), 1), 1e-8) / 127.0
    tl.store(scale + g, s, mask=g < groups)
    tl.store(q + at, nearest(v / s[:, None]).to(tl.int8), mask=m)


@triton.jit
def dequant_sums(x, rows, cols, bias, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    m = (i[:, None] < M) & (j[None, :] < N)
    v = tl.load(x + i[:, None] * N + j[None, :], mask=m, other=0).to(tl.float32)
    r = tl.load(rows + i, mask=i < M, other=0.0)[:, None]
    c = tl.load(cols + j, mask=j < N, other=0.0)[None, :]
    tl.store(y + i[:, None] * N + j[None, :], v * r * c + tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[None, :], mask=m)


@triton.jit
def dequant_int4(w, scale, zero, y, K, N, G: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    m = (k[:, None] < K) & (n[None, :] < N)
    words = tl.load(w + k[:, None] // 8 * N + n[None, :], mask=m, other=0)
    v = (words >> (k % 8 * 4)[:, None]) & 15
    at = k[:, None] // G * N + n[None, :]
    s = tl.load(scale + at, mask=m, other=0.0)
    z = tl.load(zero + at, mask=m, other=0.0)
    tl.store(y + k[:, None] * N + n[None, :], (v.to(tl.float16) - z) * s, mask=m)


@triton.jit
def dequant_table(q, table, most, y, n, B: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    byte = tl.load(q + i, mask=m, other=0).to(tl.int32)
    s = tl.load(most + i // (B // 2), mask=m, other=0.0)
    high = tl.load(table + (byte >> 4)) * s
    low = tl.load(table + (byte & 15)) * s
    o = 2 * tl.program_id(0) * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(y + o, tl.interleave(high, low), mask=o < 2 * n)


@triton.jit
def lion(p, g, mom, n, lr, b1, b2, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    w = tl.load(p + i, mask=m)
    d = tl.load(g + i, mask=m).to(tl.float32)
    e = tl.load(mom + i, mask=m)
    blend = b1 * e + (1 - b1) * d
    sign = tl.where(blend > 0, 1.0, tl.where(blend < 0, -1.0, 0.0))
    tl.store(p + i, w * (1 - lr * decay) - lr * sign, mask=m)
    tl.store(mom + i, b2 * e + (1 - b2) * d, mask=m)


@triton.jit
def sgd(p, g, mom, n, lr, momentum, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    w = tl.load(p + i, mask=m)
    d = tl.load(g + i, mask=m) + decay * w
    v = momentum * tl.load(mom + i, mask=m) + d
    tl.store(mom + i, v, mask=m)
    tl.store(p + i, w - lr * (d + momentum * v), mask=m)


@triton.jit
def adam_8bit(p, g, q1, s1, q2, s2, n, lr, b1, b2, eps, c1, c2, B: tl.constexpr):
    block = tl.program_id(0)
    i = block * B + tl.arange(0, B)
    m = i < n
    d = tl.load(g + i, mask=m, other=0.0).to(tl.float32)
    root = tl.load(q2 + i, mask=m, other=0).to(tl.float32) * tl.load(s2 + block)
    first = b1 * tl.load(q1 + i, mask=m, other=0).to(tl.float32) * tl.load(s1 + block) + (1 - b1) * d
    second = b2 * root * root + (1 - b2) * d * d
    tl.store(p + i, tl.load(p + i, mask=m) - lr * (first / c1) / (tl.sqrt(second / c2) + eps), mask=m)
    t1 = tl.maximum(tl.max(tl.abs(first), 0), 1e-12) / 127.0
    t2 = tl.maximum(tl.max(tl.sqrt(second), 0), 1e-12) / 255.0
    tl.store(s1 + block, t1)
    tl.store(s2 + block, t2)
    tl.store(q1 + i, nearest(first / t1).to(tl.int8), mask=m)
    tl.store(q2 + i, nearest(tl.sqrt(second) / t2).to(tl.uint8), mask=m)


@triton.jit
def l2_norm(x, y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y + row + c, v * tl.rsqrt(tl.sum(v * v, 0) + eps), mask=c < N)


@triton.jit
def group_norm_backward(dy, x, w, mean, rstd, dx, dw, db, C, HW, G, BC: tl.constexpr, BLOCK: tl.constexpr):
    g = tl.program_id(0)
    n = tl.program_id(1)
    per = C // G
    mu = tl.load(mean + n * G + g)
    r = tl.load(rstd + n * G + g)
    k = tl.arange(0, BC)
    ch = g * per + k
    weight = tl.load(w + ch, mask=k < per, other=0.0)
    base = (n * C + ch).to(tl.int64)[:, None] * HW
    sw = tl.zeros((BC, BLOCK), tl.float32)
    sb = tl.zeros((BC, BLOCK), tl.float32)
    for p0 in range(0, HW, BLOCK):
        p = p0 + tl.arange(0, BLOCK)[None, :]
        m = (k[:, None] < per) & (p < HW)
        d = tl.load(dy + base + p, mask=m, other=0.0).to(tl.float32)
        h = (tl.load(x + base + p, mask=m, other=0.0).to(tl.float32) - mu) * r
        sw += d * h
        sb += d
    tw = tl.sum(sw, 1)
    tb = tl.sum(sb, 1)
    tl.store(dw + n * C + ch, tw, mask=k < per)
    tl.store(db + n * C + ch, tb, mask=k < per)
    count = (per * HW).to(tl.float32)
    c1 = tl.sum(tw * weight, 0) / count
    c2 = tl.sum(tb * weight, 0) / count
    for p0 in range(0, HW, BLOCK):
        p = p0 + tl.arange(0, BLOCK)[None, :]
        m = (k[:, None] < per) & (p < HW)
        d = tl.load(dy + base + p, mask=m, other=0.0).to(tl.float32)
        h = (tl.load(x + base + p, mask=m, other=0.0).to(tl.float32) - mu) * r
        tl.store(dx + base + p, (d * weight[:, None] - h * c1 - c2) * r, mask=m)


@triton.jit
def instance_norm(x, w, b, y, C, HW, eps, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < HW
    at = nc.to(tl.int64) * HW + i
    v = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / HW
    d = tl.where(m, v - mean, 0.0)
    r = tl.rsqrt(tl.sum(d * d, 0) / HW + eps)
    tl.store(y + at, d * r * tl.load(w + nc % C) + tl.load(b + nc % C), mask=m)


@triton.jit
def batch_norm_stats(x, sums, squares, M, C, ROWS: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    first = tl.program_id(1) * ROWS
    s = tl.zeros((BM, BC), tl.float32)
    q = tl.zeros((BM, BC), tl.float32)
    for r0 in range(first, min(first + ROWS, M), BM):
        r = r0 + tl.arange(0, BM)
        v = tl.load(x + r[:, None] * C + c[None, :], mask=(r < M)[:, None] & (c < C)[None, :], other=0.0).to(tl.float32)
        s += v
        q += v * v
    tl.atomic_add(sums + c, tl.sum(s, 0), mask=c < C)
    tl.atomic_add(squares + c, tl.sum(q, 0), mask=c < C)


@triton.jit
def weight_norm(v, g, w, rows, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * N
    s = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        t = tl.load(v + base + c, mask=c < N, other=0.0)
        s += t * t
    norm = tl.sqrt(tl.sum(s, 0))
    tl.store(rows + row, norm)
    scale = tl.load(g + row) / norm
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        tl.store(w + base + c, tl.load(v + base + c, mask=c < N, other=0.0) * scale, mask=c < N)


@triton.jit
def rms_norm_gated(x, z, w, y, N, group, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    g = tl.program_id(1)
    c = tl.arange(0, BLOCK)
    m = c < group
    at = row * N + g * group + c
    gate = tl.load(z + at, mask=m, other=0.0).to(tl.float32)
    v = tl.load(x + at, mask=m, other=0.0).to(tl.float32) * gate * tl.sigmoid(gate)
    r = tl.rsqrt(tl.sum(tl.where(m, v * v, 0.0), 0) / group + eps)
    tl.store(y + at, v * r * tl.load(w + g * group + c, mask=m, other=0.0).to(tl.float32), mask=m)


@triton.jit
def later_best(a, i, b, j):
    better = b >= a
    return tl.where(better, b, a), tl.where(better, j, i)


@triton.jit
def cummax_rows(x, y, at, N, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * N
    most = -float("inf")
    place = 0
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(x + base + c, mask=c < N, other=-float("inf"))
        w, p = tl.associative_scan((v, c), 0, later_best)
        better = w >= most
        tl.store(y + base + c, tl.where(better, w, most), mask=c < N)
        tl.store(at + base + c, tl.where(better, p, place), mask=c < N)
        last = tl.max(w, 0)
        if last >= most:
            place = tl.max(tl.where(v == last, c, -1), 0)
            most = last


@triton.jit
def kl_rows(t, s, loss, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    mt = -float("inf")
    ms = -float("inf")
    zt = 0.0
    zs = 0.0
    dot = 0.0
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        a = tl.load(t + row + c, mask=c < N, other=-float("inf")).to(tl.float32)
        b = tl.load(s + row + c, mask=c < N, other=-float("inf")).to(tl.float32)
        nt = tl.maximum(mt, tl.max(a, 0))
        ns = tl.maximum(ms, tl.max(b, 0))
        e = tl.exp(a - nt)
        old = tl.exp(mt - nt)
        zt = zt * old + tl.sum(e, 0)
        dot = dot * old + tl.sum(tl.where(c < N, e * (a - b), 0.0), 0)
        zs = zs * tl.exp(ms - ns) + tl.sum(tl.exp(b - ns), 0)
        mt = nt
        ms = ns
    tl.store(loss + tl.program_id(0), dot / zt - (mt + tl.log(zt)) + (ms + tl.log(zs)))


@triton.jit
def focal(x, t, loss, dx, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0)
    y = tl.load(t + i, mask=m, other=0.0)
    p = tl.sigmoid(v)
    ce = tl.maximum(v, 0.0) - v * y + tl.log(1 + tl.exp(-tl.abs(v)))
    pt = p * y + (1 - p) * (1 - y)
    a = alpha * y + (1 - alpha) * (1 - y)
    far = 1 - pt
    tl.store(loss + i, a * far * far * ce, mask=m)
    tl.store(dx + i, a * (far * far * (p - y) - 2 * far * pt * (1 - pt) * (2 * y - 1) * ce), mask=m)


@triton.jit
def bce_rows(x, t, positive, loss, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    s = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        m = c < N
        v = tl.load(x + row + c, mask=m, other=0.0).to(tl.float32)
        y = tl.load(t + row + c, mask=m, other=0).to(tl.float32)
        w = (tl.load(positive + c, mask=m, other=1.0) - 1) * y + 1
        s += tl.where(m, (1 - y) * v + w * (tl.log(1 + tl.exp(-tl.abs(v))) + tl.maximum(-v, 0.0)), 0.0)
    tl.store(loss + tl.program_id(0), tl.sum(s, 0) / N)


@triton.jit
def huber(x, t, parts, dx, n, delta, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    d = tl.load(x + i, mask=m, other=0.0).to(tl.float32) - tl.load(t + i, mask=m, other=0.0).to(tl.float32)
    a = tl.abs(d)
    tl.store(parts + tl.program_id(0), tl.sum(tl.where(a < delta, 0.5 * d * d, delta * (a - 0.5 * delta)), 0))
    tl.store(dx + i, tl.minimum(tl.maximum(d, -delta), delta), mask=m)


@triton.jit
def triplet(a, p, q, loss, M, N, margin, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)[None, :]
    m = (r[:, None] < M) & (c < N)
    at = r[:, None] * N + c
    v = tl.load(a + at, mask=m, other=0.0)
    near = v - tl.load(p + at, mask=m, other=0.0) + 1e-6
    far = v - tl.load(q + at, mask=m, other=0.0) + 1e-6
    dp = tl.sqrt(tl.sum(tl.where(m, near * near, 0.0), 1))
    dn = tl.sqrt(tl.sum(tl.where(m, far * far, 0.0), 1))
    tl.store(loss + r, tl.maximum(dp - dn + margin, 0.0), mask=r < M)


@triton.jit
def linear_ce_chunk(logits, target, loss, N, smoothing, by, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    y = tl.load(target + tl.program_id(0))
    most = -float("inf")
    z = 0.0
    total = 0.0
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(logits + row + c, mask=c < N, other=-float("inf")).to(tl.float32)
        w = tl.maximum(most, tl.max(v, 0))
        z = z * tl.exp(most - w) + tl.sum(tl.exp(v - w), 0)
        total += tl.sum(tl.where(c < N, v, 0.0), 0)
        most = w
    lse = most + tl.log(z)
    hit = tl.load(logits + row + y).to(tl.float32)
    tl.store(loss + tl.program_id(0), lse - (1 - smoothing) * hit - smoothing * total / N)
    tl.debug_barrier()
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(logits + row + c, mask=c < N, other=0.0).to(tl.float32)
        d = tl.exp(v - lse) - smoothing / N - tl.where(c == y, 1 - smoothing, 0.0)
        tl.store(logits + row + c, d * by, mask=c < N)


@triton.jit
def embedding_backward(dy, idx, dw, N, pad, BLOCK: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    row = tl.load(idx + t)
    if row != pad:
        c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(dw + row * N + c, tl.load(dy + t * N + c, mask=c < N, other=0.0).to(tl.float32), mask=c < N, sem="relaxed")


@triton.jit
def moe_combine(x, row, weight, y, N, K: tl.constexpr, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        r = tl.load(row + t * K + k)
        acc += tl.load(weight + t * K + k) * tl.load(x + r.to(tl.int64) * N + c, mask=c < N, other=0.0).to(tl.float32)
    tl.store(y + t.to(tl.int64) * N + c, acc, mask=c < N)


@triton.jit
def kv_write(k, v, kc, vc, slots, kscale, vscale, H, D: tl.constexpr, PAGE: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    slot = tl.load(slots + t)
    if slot >= 0:
        i = tl.arange(0, BLOCK)
        m = i < H * D
        h = i // D
        d = i % D
        page = slot // PAGE
        at = slot % PAGE
        key = tl.load(k + t.to(tl.int64) * H * D + i, mask=m, other=0.0).to(tl.float32) / tl.load(kscale)
        value = tl.load(v + t.to(tl.int64) * H * D + i, mask=m, other=0.0).to(tl.float32) / tl.load(vscale)
        tl.store(kc + ((page * H + h) * (D // X) + d // X) * (PAGE * X) + at * X + d % X, key.to(kc.dtype.element_ty), mask=m)
        tl.store(vc + ((page * H + h) * D + d) * PAGE + at, value.to(vc.dtype.element_ty), mask=m)


@triton.jit
def penalties(logits, counts, repetition, frequency, presence, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = row.to(tl.int64) * N + c
    m = c < N
    v = tl.load(logits + at, mask=m, other=0.0)
    n = tl.load(counts + at, mask=m, other=0)
    r = tl.load(repetition + row)
    seen = n > 0
    w = tl.where(seen, tl.where(v > 0, v / r, v * r), v)
    tl.store(logits + at, w - tl.load(frequency + row) * n - tl.where(seen, tl.load(presence + row), 0.0), mask=m)


@triton.jit
def gate_topk(x, weight, expert, M, E: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    e = tl.arange(0, E)
    v = tl.load(x + r[:, None] * E + e[None, :], mask=(r < M)[:, None], other=0.0)
    p = tl.exp(v - tl.max(v, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    total = tl.zeros((ROWS,), tl.float32)
    for k in tl.static_range(K):
        w, at = tl.max(p, 1, return_indices=True)
        tl.store(weight + r * K + k, w, mask=r < M)
        tl.store(expert + r * K + k, at, mask=r < M)
        total += w
        p = tl.where(e[None, :] == at[:, None], -1.0, p)
    tl.debug_barrier()
    for k in tl.static_range(K):
        tl.store(weight + r * K + k, tl.load(weight + r * K + k, mask=r < M) / total, mask=r < M)


@triton.jit
def top_p_mask(x, y, N, P, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * N + c
    v = tl.load(x + at, mask=c < N, other=-float("inf"))
    p = tl.exp(v - tl.max(v, 0))
    p = p / tl.sum(p, 0)
    s = tl.sort(p, descending=True)
    before = tl.cumsum(s, 0) - s
    least = tl.min(tl.where(before < P, s, float("inf")), 0)
    tl.store(y + at, tl.where(p >= least, v, -float("inf")), mask=c < N)


@triton.jit
def merge_welford(na, ma, sa, nb, mb, sb):
    n = na + nb
    share = tl.where(n == 0, 0.0, nb / n)
    d = mb - ma
    return n, ma + d * share, sa + sb + d * d * na * share


@triton.jit
def var_mean(x, mean, variance, N, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * N
    n = tl.zeros((BLOCK,), tl.float32)
    mu = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(x + base + c, mask=c < N, other=0.0).to(tl.float32)
        d = v - mu
        count = n + 1
        after = mu + d / count
        m2 = tl.where(c < N, m2 + d * (v - after), m2)
        mu = tl.where(c < N, after, mu)
        n = tl.where(c < N, count, n)
    total, mm, ss = tl.reduce((n, mu, m2), 0, merge_welford)
    tl.store(mean + tl.program_id(0), mm)
    tl.store(variance + tl.program_id(0), ss / total)


@triton.jit
def row_flags(x, total, count, has_nan, positive, N, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * N
    s = tl.zeros((BLOCK,), tl.float32)
    k = tl.zeros((BLOCK,), tl.int32)
    bad = tl.zeros((BLOCK,), tl.int32)
    low = tl.zeros((BLOCK,), tl.int32)
    for c0 in range(0, N, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        v = tl.load(x + base + c, mask=c < N, other=0.0)
        s += tl.where(v != v, 0.0, v)
        k += (v != 0).to(tl.int32)
        bad |= (v != v).to(tl.int32)
        low |= (v < 0).to(tl.int32)
    row = tl.program_id(0)
    tl.store(total + row, tl.sum(s, 0))
    tl.store(count + row, tl.sum(k, 0))
    tl.store(has_nan + row, tl.max(bad, 0))
    tl.store(positive + row, 1 - tl.max(low, 0))


@triton.jit
def logsumexp_cols(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    most = tl.full((BN,), -float("inf"), tl.float32)
    z = tl.zeros((BN,), tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        v = tl.load(x + m.to(tl.int64)[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :], other=-float("inf"))
        w = tl.maximum(most, tl.max(v, 0))
        z = z * tl.exp(most - w) + tl.sum(tl.exp(v - w[None, :]), 0)
        most = w
    tl.store(y + n, most + tl.log(z), mask=n < N)


@triton.jit
def cdist_l1(a, b, y, M, N, D, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for d in range(D):
        u = tl.load(a + i * D + d, mask=i < M, other=0.0)
        v = tl.load(b + j * D + d, mask=j < N, other=0.0)
        acc += tl.abs(u[:, None] - v[None, :])
    tl.store(y + i[:, None] * N + j[None, :], acc, mask=(i < M)[:, None] & (j < N)[None, :])


@triton.jit
def max_pool2d(x, y, H, W, OH, OW, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane = tl.program_id(1).to(tl.int64)
    i = o // OW * 2 - 1
    j = o % OW * 2 - 1
    most = tl.full((BLOCK,), -float("inf"), x.dtype.element_ty)
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            r = i + a
            c = j + b
            inside = (o < OH * OW) & (r >= 0) & (r < H) & (c >= 0) & (c < W)
            most = tl.maximum(most, tl.load(x + plane * H * W + r * W + c, mask=inside, other=-float("inf")))
    tl.store(y + plane * OH * OW + o, most, mask=o < OH * OW)


@triton.jit
def upsample_bilinear(x, y, H, W, OH, OW, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    plane = tl.program_id(1).to(tl.int64) * H * W
    m = o < OH * OW
    sy = tl.maximum(((o // OW).to(tl.float32) + 0.5) * (H / OH) - 0.5, 0.0)
    sx = tl.maximum(((o % OW).to(tl.float32) + 0.5) * (W / OW) - 0.5, 0.0)
    y0 = sy.to(tl.int32)
    x0 = sx.to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    fy = sy - y0
    fx = sx - x0
    a = tl.load(x + plane + y0 * W + x0, mask=m, other=0.0).to(tl.float32)
    b = tl.load(x + plane + y0 * W + x1, mask=m, other=0.0).to(tl.float32)
    c = tl.load(x + plane + y1 * W + x0, mask=m, other=0.0).to(tl.float32)
    d = tl.load(x + plane + y1 * W + x1, mask=m, other=0.0).to(tl.float32)
    top = a + (b - a) * fx
    bottom = c + (d - c) * fx
    tl.store(y + tl.program_id(1).to(tl.int64) * OH * OW + o, top + (bottom - top) * fy, mask=m)


@triton.jit
def depthwise_conv2d(x, w, bias, y, H, W, C, K: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr):
    c = (tl.program_id(0) * BC + tl.arange(0, BC))[None, :]
    j = (tl.program_id(1) * BW + tl.arange(0, BW))[:, None]
    i = tl.program_id(2) % H
    base = (tl.program_id(2) // H).to(tl.int64) * H * W * C
    acc = tl.zeros((BW, BC), tl.float32)
    for a in tl.static_range(K):
        for b in tl.static_range(K):
            r = i + a - K // 2
            s = j + b - K // 2
            v = tl.load(x + base + (r * W + s) * C + c, mask=(r >= 0) & (r < H) & (s >= 0) & (s < W) & (c < C), other=0.0)
            acc += v.to(tl.float32) * tl.load(w + (a * K + b) * C + c, mask=c < C, other=0.0).to(tl.float32)
    acc += tl.load(bias + c, mask=c < C, other=0.0).to(tl.float32)
    tl.store(y + base + (i * W + j) * C + c, tl.maximum(acc, 0.0), mask=(j < W) & (c < C))


@triton.jit
def rgb_to_yuv(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    r = tl.load(x + 3 * i, mask=m, other=0).to(tl.float32)
    g = tl.load(x + 3 * i + 1, mask=m, other=0).to(tl.float32)
    b = tl.load(x + 3 * i + 2, mask=m, other=0).to(tl.float32)
    luma = 0.299 * r + 0.587 * g + 0.114 * b
    tl.store(y + i, tl.clamp(luma + 0.5, 0.0, 255.0).to(tl.uint8), mask=m)
    tl.store(y + n + i, tl.clamp(0.492 * (b - luma) + 128.5, 0.0, 255.0).to(tl.uint8), mask=m)
    tl.store(y + 2 * n + i, tl.clamp(0.877 * (r - luma) + 128.5, 0.0, 255.0).to(tl.uint8), mask=m)


@triton.jit
def im2col(x, y, H, W, K: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.program_id(1)
    n = tl.program_id(2).to(tl.int64)
    c = k // (K * K)
    r = p // W + k // K % K - K // 2
    s = p % W + k % K - K // 2
    inside = (p < H * W) & (r >= 0) & (r < H) & (s >= 0) & (s < W)
    rows = tl.num_programs(1)
    v = tl.load(x + (n * (rows // (K * K)) + c) * H * W + r * W + s, mask=inside, other=0.0)
    tl.store(y + (n * rows + k) * H * W + p, v, mask=p < H * W)


@triton.jit
def tile_of(pid, rows, cols):
    """In groups of 8 rows, down the columns of a group."""
    first = pid // (8 * cols) * 8
    height = min(rows - first, 8)
    within = pid % (8 * cols)
    return first + within % height, within // height


@triton.jit
def lora(x, a, b, base, y, M, N, K, scale, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    r = tl.arange(0, R)
    acc = tl.zeros((BM, R), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        u = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        v = tl.load(a + r[None, :] * K + k[:, None], mask=(k < K)[:, None], other=0.0)
        acc = tl.dot(u, v, acc)
    h = (acc * scale).to(x.dtype.element_ty)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(b + n[None, :] * R + r[:, None], mask=(n < N)[None, :], other=0.0)
        at = m[:, None] * N + n[None, :]
        inside = (m < M)[:, None] & (n < N)[None, :]
        tl.store(y + at, tl.dot(h, w) + tl.load(base + at, mask=inside, other=0.0).to(tl.float32), mask=inside)


@triton.jit
def linear_relu_residual(x, w, bias, residual, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tile_of(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN))
    m = (pm * BM + tl.arange(0, BM))[:, None]
    n = (pn * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x + m * K + k[None, :], mask=(m < M) & (k < K)[None, :], other=0.0)
        b = tl.load(w + k[:, None] * N + n, mask=(k < K)[:, None] & (n < N), other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.maximum(acc + tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32), 0.0)
    inside = (m < M) & (n < N)
    tl.store(y + m * N + n, acc + tl.load(residual + m * N + n, mask=inside, other=0.0).to(tl.float32), mask=inside)


@triton.jit
def gated_mlp(x, g, u, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tile_of(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN))
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        v = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        at = n[None, :] * K + k[:, None]
        inside = (n < N)[None, :] & (k < K)[:, None]
        gate = tl.dot(v, tl.load(g + at, mask=inside, other=0.0), gate)
        up = tl.dot(v, tl.load(u + at, mask=inside, other=0.0), up)
    tl.store(y + m[:, None] * N + n[None, :], gate * tl.sigmoid(gate) * up, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def int8_matmul(x, w, sx, sw, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tile_of(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN))
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(w + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    s = tl.load(sx + m, mask=m < M, other=0.0)[:, None] * tl.load(sw + n, mask=n < N, other=0.0)[None, :]
    tl.store(y + m[:, None] * N + n[None, :], acc.to(tl.float32) * s, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def conv1x1(x, w, bias, y, C, O, HW, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    o = tl.program_id(0) * BM + tl.arange(0, BM)
    p = tl.program_id(1) * BN + tl.arange(0, BN)
    z = tl.program_id(2).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, C, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(w + o[:, None] * C + k[None, :], mask=(o < O)[:, None] & (k < C)[None, :], other=0.0)
        b = tl.load(x + z * C * HW + k[:, None] * HW + p[None, :], mask=(k < C)[:, None] & (p < HW)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    acc += tl.load(bias + o, mask=o < O, other=0.0)[:, None]
    tl.store(y + z * O * HW + o[:, None] * HW + p[None, :], acc, mask=(o < O)[:, None] & (p < HW)[None, :])


@triton.jit
def window_decode(q, k, v, out, lens, T, H, scale, WINDOW: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(0)
    z = tl.program_id(1)
    length = tl.load(lens + z)
    d = tl.arange(0, D)
    at = ((z * H + h) * G + tl.arange(0, G))[:, None] * D + d[None, :]
    query = tl.load(q + at)
    base = (z.to(tl.int64) * T * H + h) * D
    most = tl.full((G,), -float("inf"), tl.float32)
    total = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for n0 in range(tl.maximum(length - WINDOW, 0), length, BN):
        n = n0 + tl.arange(0, BN)
        keys = tl.load(k + base + n[:, None] * (H * D) + d[None, :], mask=(n < length)[:, None], other=0.0)
        values = tl.load(v + base + n[:, None] * (H * D) + d[None, :], mask=(n < length)[:, None], other=0.0)
        s = tl.where((n < length)[None, :], tl.dot(query, tl.trans(keys)) * scale, -float("inf"))
        after = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - after[:, None])
        old = tl.exp(most - after)
        total = total * old + tl.sum(p, 1)
        acc = tl.dot(p.to(values.dtype), values, acc * old[:, None])
        most = after
    tl.store(out + at, acc / total[:, None])


@triton.jit
def alibi_scores(q, k, slopes, s, T, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    n = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    z = tl.program_id(2)
    d = tl.arange(0, D)
    a = tl.load(q + (z.to(tl.int64) * T + m) * D + d[None, :], mask=m < T, other=0.0)
    b = tl.load(k + (z.to(tl.int64) * T + n) * D + d[:, None], mask=n < T, other=0.0)
    score = tl.dot(a, b) * scale - tl.load(slopes + z % H) * (m - n).to(tl.float32)
    tl.store(s + (z.to(tl.int64) * T + m) * T + n, tl.where(n <= m, score, -float("inf")), mask=(m < T) & (n < T))


@triton.jit
def ema(x, decay, y, T, C, B: tl.constexpr):
    c = tl.program_id(0) * B + tl.arange(0, B)
    m = c < C
    base = tl.program_id(1).to(tl.int64) * T * C
    a = tl.load(decay + c, mask=m, other=0.0)
    s = tl.zeros((B,), tl.float32)
    for t in range(T):
        s = a * s + (1 - a) * tl.load(x + base + t * C + c, mask=m, other=0.0).to(tl.float32)
        tl.store(y + base + t * C + c, s, mask=m)


@triton.jit
def after(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def min_gru(gate, c, y, T, C, BT: tl.constexpr, BC: tl.constexpr):
    j = (tl.program_id(0) * BC + tl.arange(0, BC))[None, :]
    base = tl.program_id(1).to(tl.int64) * T * C
    h = tl.zeros((1, BC), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)[:, None]
        m = (t < T) & (j < C)
        z = tl.sigmoid(tl.load(gate + base + t * C + j, mask=m, other=0.0).to(tl.float32))
        v = z * tl.load(c + base + t * C + j, mask=m, other=0.0).to(tl.float32)
        a, b = tl.associative_scan((1 - z, v), 0, after)
        out = a * h + b
        tl.store(y + base + t * C + j, out, mask=m)
        h = tl.sum(tl.where(tl.arange(0, BT)[:, None] == BT - 1, out, 0.0), 0, keep_dims=True)


@triton.jit
def gated_delta(q, k, v, g, beta, out, T, H, V, scale, K: tl.constexpr, BV: tl.constexpr):
    h = tl.program_id(1)
    z = tl.program_id(2)
    i = tl.arange(0, K)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    s = tl.zeros((K, BV), tl.float32)
    for t in range(T):
        at = (z * T + t) * H + h
        key = tl.load(k + at * K + i).to(tl.float32)
        query = tl.load(q + at * K + i).to(tl.float32) * scale
        s *= tl.exp(tl.load(g + at))
        lack = (tl.load(v + at * V + j).to(tl.float32) - tl.sum(s * key[:, None], 0)) * tl.load(beta + at)
        s += key[:, None] * lack[None, :]
        tl.store(out + at * V + j, tl.sum(s * query[:, None], 0))


@triton.jit
def state_step(state, x, dt, bias, a, b, c, d, z, out, H, groups, P: tl.constexpr, N: tl.constexpr):
    h = tl.program_id(0)
    n = tl.program_id(1)
    i = tl.arange(0, P)
    j = tl.arange(0, N)
    at = (n * H + h).to(tl.int64) * P
    step = tl.load(dt + n * H + h).to(tl.float32) + tl.load(bias + h)
    step = tl.where(step > 20, step, tl.log(1 + tl.exp(step)))
    v = tl.load(x + at + i).to(tl.float32)
    group = (n * groups + h // (H // groups)) * N
    p = state + (at + i)[:, None] * N + j[None, :]
    s = tl.load(p) * tl.exp(tl.load(a + h) * step) + (v * step)[:, None] * tl.load(b + group + j).to(tl.float32)[None, :]
    tl.store(p, s)
    y = tl.sum(s * tl.load(c + group + j).to(tl.float32)[None, :], 1) + v * tl.load(d + h)
    gate = tl.load(z + at + i).to(tl.float32)
    tl.store(out + at + i, y * gate * tl.sigmoid(gate))
