// printf and assert. (const int *in, int *out, int n)
#include <assert.h>
#include <stdio.h>

extern "C" __global__ void
prints(const int *in, int *out, int n)
{
  if (threadIdx.x == 3)
    out[0] = printf("%d %5.2f %s|%-6s|%c %lld %u%% %x\n", in[3], 1.5, "text", "ab", 'x', 1ll << 40, 7u, 255);
}

extern "C" __global__ void
asserts(const int *in, int *out, int n)
{
  assert(in[threadIdx.x] < n && "too large");
  out[threadIdx.x] = 1;
}
