// Tensor cores and asynchronous copies, by inline PTX. (const float *in, float *out, int n): c = a b of 64 x 64, a and b one behind
// the other in `in` as numbers that f16 holds.
#include <cuda_fp16.h>

extern "C" __global__ void
matmul_mma(const float *in, float *out, int n)
{
  __shared__ __align__(16) __half a[64][72], b[64][72];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  for (int i = t; i < 4096; i += 128) {
    a[i / 64][i % 64] = __float2half(in[i]);
    b[i / 64][i % 64] = __float2half(in[4096 + i]);
  }
  __syncthreads();
  for (int col = 0; col < 64; col += 8) {
    float c[4] = {0, 0, 0, 0};
    for (int k = 0; k < 64; k += 16) {
      unsigned x[4], y[2];
      unsigned pa = (unsigned)__cvta_generic_to_shared(&a[warp * 16 + lane % 16][k + lane / 16 * 8]);
      unsigned pb = (unsigned)__cvta_generic_to_shared(&b[k + lane % 16][col]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(pa));
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(pb));
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
    for (int e = 0; e < 4; e++)
      out[(warp * 16 + lane / 4 + e / 2 * 8) * 64 + col + lane % 4 * 2 + e % 2] = c[e];
  }
}

__device__ __forceinline__ void
copy_async(float *to, const float *from)
{
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)));
}

// Two buffers of asynchronous copies: sums of n rows of 256.
extern "C" __global__ void
column_sums(const float *in, float *out, int n)
{
  __shared__ __align__(16) float s[2][256];
  int t = threadIdx.x;
  float4 sum = {0, 0, 0, 0};
  copy_async(&s[0][4 * t], &in[4 * t]);
  asm volatile("cp.async.commit_group;");
  for (int i = 0; i < n; i++) {
    if (i + 1 < n)
      copy_async(&s[(i + 1) & 1][4 * t], &in[(i + 1) * 256 + 4 * t]);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    float4 v = *(float4 *)&s[i & 1][4 * (t ^ 1)];
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    __syncthreads();
  }
  *(float4 *)&out[4 * (t ^ 1)] = sum;
}
