// 16- and 8-bit floats. (const float *in, float *out, int n); out has a row of n for each operation.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void
halves(const float *in, float *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i], y = in[(i + 1) % n];
  __half a = __float2half(x), b = __float2half(y);
  __nv_bfloat16 c = __float2bfloat16(x), d = __float2bfloat16(y);
  __half2 p = __floats2half2_rn(x, y), q = __halves2half2(b, a);
  __half2 s = __hfma2(p, q, p);
  float r[] = {__half2float(__hadd(a, b)), __half2float(__hmul(a, b)), __half2float(__hfma(a, b, a)), __half2float(__hdiv(a, __hadd(__habs(b), __float2half(1)))),
               __half2float(__hmax(a, b)), __low2float(s), __high2float(s), __bfloat162float(__hadd(c, d)), __bfloat162float(__hmul(c, d)),
               __bfloat162float(__hfma(c, d, c)), __hlt(a, b) ? 1.0f : 0.0f, __half2float(hsqrt(__habs(a))), (float)__half2int_rn(a), float(__nv_fp8_e4m3(x)), float(__nv_fp8_e5m2(x))};
  for (int k = 0; k < sizeof r / sizeof *r; k++)
    out[k * n + i] = r[k];
}
