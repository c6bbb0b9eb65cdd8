"""The elementwise add of an asynchronous-copy tutorial as a Gluon user would write it: plain, and with N buffers."""
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp


@gluon.jit
def add_plain(a, b, c, rows, cols, stride, XB: gl.constexpr, YB: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    x = gl.program_id(0) * XB + gl.arange(0, XB, gl.SliceLayout(1, layout))
    for start in range(0, cols, YB):
        y = start + gl.arange(0, YB, gl.SliceLayout(0, layout))
        inside = (x < rows)[:, None] & (y < cols)[None, :]
        at = stride * x[:, None] + y[None, :]
        gl.store(c + at, gl.load(a + at, mask=inside) + gl.load(b + at, mask=inside), mask=inside)


@gluon.jit
def copy_in(i, sa, sb, a, b, xin, cols, y0, YB: gl.constexpr, N: gl.constexpr):
    y = i * YB + y0
    inside = xin & (y < cols)[None, :]
    cp.async_copy_global_to_shared(sa.index(i % N), a + y[None, :], inside)
    cp.async_copy_global_to_shared(sb.index(i % N), b + y[None, :], inside)
    cp.commit_group()
    return i + 1


@gluon.jit
def add_out(i, sa, sb, c, xin, cols, y0, YB: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    total = sa.index(i % N).load(layout) + sb.index(i % N).load(layout)
    y = i * YB + y0
    gl.store(c + y[None, :], total, mask=xin & (y < cols)[None, :])
    return i + 1


@gluon.jit
def add_pipelined(a, b, c, rows, cols, stride, XB: gl.constexpr, YB: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[1, 0])
    x = gl.program_id(0) * XB + gl.arange(0, XB, gl.SliceLayout(1, layout))
    y0 = gl.arange(0, YB, gl.SliceLayout(0, layout))
    base = stride * x[:, None]
    xin = (x < rows)[:, None]
    sa = gl.allocate_shared_memory(gl.float32, [N, XB, YB], layout=shared)
    sb = gl.allocate_shared_memory(gl.float32, [N, XB, YB], layout=shared)
    put = 0
    got = 0
    for _ in gl.static_range(N - 1):
        put = copy_in(put, sa, sb, a + base, b + base, xin, cols, y0, YB, N)
    for _ in range(gl.cdiv(cols, YB) - (N - 1)):
        put = copy_in(put, sa, sb, a + base, b + base, xin, cols, y0, YB, N)
        cp.wait_group(N - 1)
        got = add_out(got, sa, sb, c + base, xin, cols, y0, YB, N, layout)
    for k in gl.static_range(N - 1):
        cp.wait_group(N - 2 - k)
        got = add_out(got, sa, sb, c + base, xin, cols, y0, YB, N, layout)
