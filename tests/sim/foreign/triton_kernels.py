"""Triton kernels, and what Triton makes of them: run this with Triton importable, and the .ptx files beside it are made again. It needs no
GPU. All kernels: (in, out, n); each is compiled for several targets and numbers of warps."""
import os
import re

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

VARIANTS = ((80, 4), (80, 1), (89, 8), (90, 2))


@triton.jit
def total(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def prefix(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.cumsum(tl.load(x + i, mask=i < n, other=0), axis=0), mask=i < n)


@triton.jit
def transpose(x, y, n, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    c = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    v = tl.load(x + r * n + c, mask=(r < n) & (c < n))
    r = tl.program_id(1) * B + tl.arange(0, B)[:, None]
    c = tl.program_id(0) * B + tl.arange(0, B)[None, :]
    tl.store(y + r * n + c, tl.trans(v), mask=(r < n) & (c < n))


@triton.jit
def product(x, y, n, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    c = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, n, B):
        a = tl.load(x + r * n + k + tl.arange(0, B)[None, :]).to(tl.float16)
        b = tl.load(x + n * n + (k + tl.arange(0, B)[:, None]) * n + c).to(tl.float16)
        acc = tl.dot(a, b, acc)
    tl.store(y + r * n + c, acc)


@triton.jit
def counts(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(y + (tl.load(x + i, mask=i < n, other=0) & 63), 1, mask=i < n)


@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def ascending(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def columns(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for r in range(n):
        acc += tl.load(x + r * B + i)
    tl.store(y + i, acc)


@triton.jit
def locked(x, y, n, B: tl.constexpr):
    """y[0] is a lock, y[1] is what it guards. All threads read that, and one of them writes it: hence the barrier."""
    while tl.atomic_cas(y, 0, 1) == 1:
        pass
    v = tl.load(y + 1) + tl.load(x + tl.program_id(0))
    tl.debug_barrier()
    tl.store(y + 1, v)
    tl.atomic_xchg(y, 0)


KERNELS = ((total, "fp32", 256), (prefix, "i32", 256), (transpose, "fp32", 32), (product, "fp32", 32), (counts, "i32", 256), (softmax, "fp32", 128),
           (ascending, "i32", 128), (columns, "fp32", 256), (locked, "i32", 1))

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    for f, t, b in KERNELS:
        for arch, warps in VARIANTS:
            src = ASTSource(f, {"x": "*" + t, "y": "*" + t, "n": "i32"}, {"B": b})
            k = triton.compile(src, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps})
            text = re.sub(r"^\s*//.*\n", "", re.sub(r"\t\.section.*\Z", "", k.asm["ptx"], flags=re.S), flags=re.M).strip()
            name = f"triton_{f.__name__}.sm_{arch}w{warps}.ptx"
            with open(os.path.join(here, name), "w") as out:
                out.write(text + "\n")
            print(name, k.metadata.shared)
