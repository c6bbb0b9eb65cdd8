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
    v = tl.load(x + row * x_stride + col, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * out_stride + col, e / tl.sum(e, 0), mask=inside)


@triton.jit
def layernorm(out, x, weight, bias, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n
    v = tl.load(x + row * stride + col, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(inside, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    w = tl.load(weight + col, mask=inside).to(tl.float32)
    b = tl.load(bias + col, mask=inside).to(tl.float32)
    tl.store(out + row * stride + col, (d * rstd * w + b).to(out.dtype.element_ty), mask=inside)


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
