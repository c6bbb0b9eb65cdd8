"""What a Gluon user would write: an elementwise add, plain and with N buffers, and a copy, by asynchronous copies; a product of matrices by
tensor copies and warpgroups."""
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_init, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


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


@gluon.jit
def memcpy(src, dst, n, BLOCK: gl.constexpr, warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [warps], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    inside = i < n
    s = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=1, order=[0]))
    cp.async_copy_global_to_shared(s, src + i, inside)
    cp.commit_group()
    cp.wait_group(0)
    gl.store(dst + i, s.load(layout), mask=inside)


# ---- a product, persistent: copies run on from one tile to the next ----

@gluon.jit
def place(t, rows, cols, GROUP: gl.constexpr):
    """Row and column of tile t: columns of groups of GROUP rows."""
    first = t // (GROUP * cols) * GROUP
    height = min(rows - first, GROUP)
    within = t % (GROUP * cols)
    return first + within % height, within // height


@gluon.jit
def copy_step(put, t, k, tiles, rows, cols, a, b, sa, sb, landed, STAGES: gl.constexpr, GROUP: gl.constexpr, ACROSS: gl.constexpr):
    """Starts the copies of the step at k of tile t, the put-th of this program; what comes behind it."""
    i, j = place(gl.minimum(t, tiles - 1), rows, cols, GROUP)
    slot = put % STAGES
    m = i * a.block_type.shape[0]
    n = j * b.block_type.shape[0 if ACROSS else 1]
    mbarrier.expect(landed.index(slot), a.block_type.nbytes + b.block_type.nbytes, t < tiles)
    tma.async_copy_global_to_shared(a, [m, k], landed.index(slot), sa.index(slot), t < tiles)
    tma.async_copy_global_to_shared(b, [n, k] if ACROSS else [k, n], landed.index(slot), sb.index(slot), t < tiles)
    next = k + a.block_type.shape[1]
    over = next >= a.shape[1]
    return put + 1, gl.to_tensor(t + over.to(gl.int32) * gl.num_programs(0)), gl.where(over, 0, next)


@gluon.jit
def matmul(a, b, c, STAGES: gl.constexpr, GROUP: gl.constexpr, ACROSS: gl.constexpr, warps: gl.constexpr):
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    BK: gl.constexpr = a.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[warps, 1], instr_shape=[16, BN, 16])
    sa = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_type.shape, a.layout)
    sb = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    landed = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(landed.index(s), count=1)
    rows = gl.cdiv(c.shape[0], BM)
    cols = gl.cdiv(c.shape[1], BN)
    tiles = rows * cols
    put = gl.to_tensor(0)
    got = gl.to_tensor(0)
    ahead = gl.program_id(0)
    k = gl.to_tensor(0)
    for _ in gl.static_range(STAGES - 2):
        put, ahead, k = copy_step(put, ahead, k, tiles, rows, cols, a, b, sa, sb, landed, STAGES, GROUP, ACROSS)
    for t in range(gl.program_id(0), tiles, gl.num_programs(0)):
        acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, layout))
        for step in range(0, a.shape[1], BK):
            put, ahead, k = copy_step(put, ahead, k, tiles, rows, cols, a, b, sa, sb, landed, STAGES, GROUP, ACROSS)
            mbarrier.wait(landed.index(got % STAGES), got // STAGES & 1)
            sums = warpgroup_mma_wait(0, (acc, ))
            y = sb.index(got % STAGES)
            acc = warpgroup_mma(sa.index(got % STAGES), y.permute((1, 0)) if ACROSS else y, sums, is_async=True, use_acc=step > 0)
            got += 1
        sums = warpgroup_mma_wait(0, (acc, ))
        tma.store_wait(0)
        out.store(sums.to(c.dtype))
        fence_async_shared()
        i, j = place(t, rows, cols, GROUP)
        tma.async_copy_shared_to_global(c, [i * BM, j * BN], out)
    tma.store_wait(0)


def boxes(x, shape):
    """The descriptor of a tensor of f16, in boxes of this shape."""
    return TensorDescriptor.from_tensor(x, list(shape), gl.NVMMASharedLayout.get_default_for(list(shape), gl.float16))
