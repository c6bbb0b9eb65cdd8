// Sums in many ways. All kernels: (const float *in, float *out, int n).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void
reduce_tree(const float *in, float *out, int n)
{
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k; k >>= 1) {
    if (t < k)
      s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}

extern "C" __global__ void
reduce_shuffle(const float *in, float *out, int n)
{
  __shared__ float s[32];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    v += in[i];
  for (int k = 16; k; k >>= 1)
    v += __shfl_down_sync(~0u, v, k);
  if (threadIdx.x % 32 == 0)
    s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0;
    for (int k = 16; k; k >>= 1)
      v += __shfl_xor_sync(~0u, v, k);
    if (threadIdx.x == 0)
      out[0] = v;
  }
}

extern "C" __global__ void
reduce_vector(const float4 *in, float *out, int n)
{
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += blockDim.x * gridDim.x) {
    float4 x = in[i];
    v += x.x + x.y + x.z + x.w;
  }
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  v = cg::reduce(tile, v, cg::plus<float>());
  if (tile.thread_rank() == 0)
    atomicAdd(out, v);
}

__device__ unsigned int blocks_done;

// The last block to come adds up what the others left.
extern "C" __global__ void
reduce_last(const float *in, float *out, int n)
{
  __shared__ float s[8];
  __shared__ bool last;
  auto block = cg::this_thread_block();
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    v += in[i];
  for (int k = 16; k; k >>= 1)
    v += __shfl_xor_sync(~0u, v, k);
  if (threadIdx.x % 32 == 0)
    s[threadIdx.x / 32] = v;
  block.sync();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < blockDim.x / 32; i++)
      sum += s[i];
    out[1 + blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  block.sync();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; i++)
      sum += ((volatile float *)out)[1 + i];
    out[0] = sum;
  }
}
