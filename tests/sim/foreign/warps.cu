// Warp intrinsics. All kernels: (const int *in, int *out, int n) for one warp or a few.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void
votes(const int *in, int *out, int n)
{
  int t = threadIdx.x, v = in[t];
  unsigned odd = __ballot_sync(~0u, v & 1), same = __match_any_sync(~0u, v % 5);
  int p;
  unsigned all = __match_all_sync(~0u, v >= 0, &p);
  out[t] = __popc(odd & ((1u << t) - 1)) + 100 * __popc(same) + 10000 * (__all_sync(~0u, v < n) + 2 * __any_sync(~0u, v == n) + 4 * p) + (all == ~0u ? 1000000 : 0);
}

extern "C" __global__ void
shuffles(const int *in, int *out, int n)
{
  int t = threadIdx.x, v = in[t];
  out[t] = __shfl_sync(~0u, v, (t * 7) % 32) + 1000 * __shfl_up_sync(~0u, v, 3) + 1000000 * __shfl_down_sync(~0u, v, 5, 8) +
           100000000 * (__shfl_xor_sync(~0u, v, 9) & 7);
}

extern "C" __global__ void
reductions(const int *in, int *out, int n)
{
  int t = threadIdx.x, v = in[t];
  out[t] = __reduce_add_sync(~0u, v);
  out[32 + t] = (int)__reduce_max_sync(~0u, v) * 1000 + __reduce_min_sync(~0u, v);
  out[64 + t] = __reduce_or_sync(~0u, 1u << (v & 31)) ^ __reduce_xor_sync(~0u, (unsigned)v);
}

// Branches of every depth, and lanes that leave early; they meet again.
extern "C" __global__ void
diverge(const int *in, int *out, int n)
{
  int t = threadIdx.x, v = in[t], r = 0;
  for (int i = 0; i < v; i++) {
    if ((i + t) % 3 == 0)
      continue;
    if (i == 7)
      break;
    r += (i & 1) ? i : -t;
  }
  if (t % 4 == 1)
    r += __popc(__activemask());
  else if (t % 4 == 2) {
    unsigned m = __activemask();
    __syncwarp(m);
    r += __popc(m) * 100;
  }
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  r += 10000 * tile.shfl_xor(v, 1) + 1000000 * tile.meta_group_rank();
  out[t] = r + (__activemask() == ~0u ? 0 : 1 << 30);
}
