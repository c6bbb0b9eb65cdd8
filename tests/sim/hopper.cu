/* hopper.cu - products as sm_90a does them, whose PTX is hopper.ptx: nvcc -ptx -arch=sm_90a -std=c++17 -lineinfo hopper.cu
 * Tensor maps are 128 bytes here, so that no header of the driver is needed. */
#include <cuda_fp16.h>
#include <stdint.h>

struct alignas(64) Map { char bytes[128]; };

static __device__ __forceinline__ uint32_t
place(const void *p)
{
  return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void
barrier_init(uint32_t at, uint32_t count)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

static __device__ __forceinline__ void
barrier_expect(uint32_t at, uint32_t bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void
barrier_arrive(uint32_t at)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

static __device__ __forceinline__ void
barrier_wait(uint32_t at, uint32_t parity)
{
  uint32_t over = 0;
  while (!over)
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(over) : "r"(at), "r"(parity) : "memory");
}

static __device__ __forceinline__ void
load_box(uint32_t to, const Map *map, uint32_t barrier, int x, int y)
{
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y) : "memory");
}

static __device__ __forceinline__ void
load_box_for(uint32_t to, const Map *map, uint32_t barrier, int x, int y, uint16_t blocks)
{
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
               ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks) : "memory");
}

static __device__ __forceinline__ void
barrier_arrive_at(uint32_t at, uint32_t rank)
{
  asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}" ::"r"(at), "r"(rank) : "memory");
}

static __device__ __forceinline__ void
store_box(const Map *map, uint32_t from, int x, int y)
{
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(x), "r"(y) : "memory");
}

static __device__ __forceinline__ uint32_t
elected()
{
  uint32_t yes;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(yes));
  return yes;
}

static __device__ __forceinline__ uint64_t
matrix(uint32_t at, uint32_t leading, uint32_t stride)
{
  return (uint64_t)(at >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | 1ull << 62;
}

template <int BY_N> static __device__ __forceinline__ void
product(float (&d)[32], uint64_t a, uint64_t b)
{
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
               "%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, %34;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),
                 "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                 "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
               : "l"(a), "l"(b), "n"(BY_N));
}

enum { STEP = 64, DEPTH = 3, TILE = 64 * STEP * 2 };

/* C, 64 rows a warpgroup and 64 columns a block, f16, of f16 A by rows and B by columns or, BY_N, by rows; k a multiple of 64. One warp
 * loads, two warpgroups compute, with a product in flight across the steps, and store by way of shared memory. PAIR: the two blocks of a
 * cluster have the same columns, and each loads half of B for both; a slot is free when the readers of both say so. */
template <int BY_N, int PAIR> static __device__ __forceinline__ void
matmul(const Map *ma, const Map *mb, const Map *mc, int k)
{
  extern __shared__ __align__(1024) char shared[];
  __shared__ uint64_t barriers[2 * DEPTH];
  uint32_t full = place(barriers), empty = full + 8 * DEPTH, ring = place(shared), warp = threadIdx.x / 32, steps = k / STEP;
  int row = blockIdx.y * 128, column = blockIdx.x * 64;
  uint32_t rank = 0;
  if (PAIR)
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int i = 0; i < DEPTH; i++)
      barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, PAIR ? 4 : 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (PAIR)
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 8 && elected())
      for (uint32_t i = 0, slot = 0, parity = 1; i < steps; i++) {
        uint32_t at = ring + slot * 3 * TILE;
        barrier_wait(empty + 8 * slot, parity);
        barrier_expect(full + 8 * slot, 3 * TILE);
        load_box(at, ma, full + 8 * slot, i * STEP, row);
        load_box(at + TILE, ma, full + 8 * slot, i * STEP, row + 64);
        if (PAIR)
          load_box_for(at + 2 * TILE + rank * TILE / 2, mb, full + 8 * slot, i * STEP, column + 32 * rank, 3);
        else
          load_box(at + 2 * TILE, mb, full + 8 * slot, BY_N ? column : i * STEP, BY_N ? i * STEP : column);
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
        parity ^= slot == 0;
      }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
  float d[32] = {0};
  uint32_t group = warp / 4, lane = threadIdx.x % 32, before = 0;
  for (uint32_t i = 0, slot = 0, parity = 0; i < steps; i++) {
    uint32_t at = ring + slot * 3 * TILE;
    barrier_wait(full + 8 * slot, parity);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int j = 0; j < STEP / 16; j++)
      product<BY_N>(d, matrix(at + group * TILE + 32 * j, 16, 1024), BY_N ? matrix(at + 2 * TILE + 2048 * j, 8192, 1024) : matrix(at + 2 * TILE + 32 * j, 16, 1024));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (PAIR && i && threadIdx.x % 128 < 2)
      barrier_arrive_at(empty + 8 * before, threadIdx.x % 128);
    else if (!PAIR && i && threadIdx.x % 128 == 0)
      barrier_arrive(empty + 8 * before);
    before = slot;
    slot = slot + 1 == DEPTH ? 0 : slot + 1;
    parity ^= slot == 0;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 32; i++)
    asm volatile("" : "+f"(d[i])::"memory");
  __shared__ __align__(128) __half staging[2][64 * 64];
  for (int j = 0; j < 4; j++) {
    uint32_t r[4], to = place(&staging[group][(warp % 4 * 16 + lane % 16) * 64 + j * 16 + lane / 16 * 8]);
    for (int i = 0; i < 4; i++) {
      __half2 h = __floats2half2_rn(d[8 * j + 2 * i], d[8 * j + 2 * i + 1]);
      r[i] = *(uint32_t *)&h;
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (threadIdx.x % 128 == 0) {
    store_box(mc, place(staging[group]), column, row + 64 * group);
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  if (PAIR)
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
matmul_k(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, int k)
{
  matmul<0, 0>(&a, &b, &c, k);
}

extern "C" __global__ void __launch_bounds__(384, 1)
matmul_n(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, int k)
{
  matmul<1, 0>(&a, &b, &c, k);
}

extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(1, 2, 1)
matmul_pair(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, int k)
{
  matmul<0, 1>(&a, &b, &c, k);
}
