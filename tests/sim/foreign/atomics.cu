// Atomics, locks, and what warps do about them. All kernels: (const int *in, int *out, int n).
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void
histogram(const int *in, int *out, int n)
{
  __shared__ int h[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    h[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&h[in[i] & 63], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x)
    atomicAdd(&out[i], h[i]);
}

// out: max, min, or, and, xor, sum of floats by compare and swap, count by increments that wrap at 7, exchange
extern "C" __global__ void
all_atomics(const int *in, int *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;
  if (i >= n)
    return;
  atomicMax(&out[0], v);
  atomicMin(&out[1], v);
  atomicOr(&out[2], 1 << (v & 31));
  atomicAnd((unsigned *)&out[3], ~(1u << (v & 15)));
  atomicXor(&out[4], v);
  int old = *(volatile int *)&out[5], was;
  do {
    was = old;
    old = atomicCAS(&out[5], was, __float_as_int(__int_as_float(was) + 0.5f));
  } while (old != was);
  atomicInc((unsigned *)&out[6], 6);
  atomicDec((unsigned *)&out[7], 4);
  atomicAdd((float *)&out[8], 0.25f);
  atomicAdd((unsigned long long *)&out[10], 1ull << 32);
  atomicSub(&out[12], 2);
}

__device__ int mutex;

// out[0] and out[1] change together under a lock, one thread of a block at a time.
extern "C" __global__ void
locked_pairs(const int *in, int *out, int n)
{
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&mutex, 0, 1))
      ;
    __threadfence();
    out[0] += in[blockIdx.x];
    out[1] = out[0] * 2;
    __threadfence();
    atomicExch(&mutex, 0);
  }
}

// Those that take part write their elements one behind the other, one atomic a warp; out[0]: how many.
extern "C" __global__ void
compact_odd(const int *in, int *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] & 1) {
    auto g = cg::coalesced_threads();
    int at = 0;
    if (g.thread_rank() == 0)
      at = atomicAdd(out, (int)g.size());
    at = g.shfl(at, 0) + g.thread_rank();
    out[1 + at] = in[i];
  }
}

__device__ unsigned int arrived;

__device__ void
meet(unsigned turn)
{
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < turn * gridDim.x)
      ;
    __threadfence();
  }
  __syncthreads();
}

// n turns of: everybody writes, all meet, everybody adds what its neighbour wrote.
extern "C" __global__ void
ring(const int *in, int *out, int n)
{
  int me = blockIdx.x, next = (me + 1) % gridDim.x, sum = 0;
  for (int t = 0; t < n; t++) {
    if (threadIdx.x == 0)
      out[me] = in[me] + t;
    meet(2 * t + 1);
    sum += ((volatile int *)out)[next];
    meet(2 * t + 2);
  }
  if (threadIdx.x == 0)
    out[gridDim.x + me] = sum;
}
