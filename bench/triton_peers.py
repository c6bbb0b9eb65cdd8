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
