// Variables of the module, constants, structs of odd sizes, volatile and cached loads. (const int *in, int *out, int n)

struct Odd { char c; short s; int i; char t[3]; };
__device__ Odd odds[4] = {{1, 2, 3, {4, 5, 6}}, {7, 8, 9, {10, 11, 12}}};
__constant__ float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__device__ int counter = 40;
__device__ int *const where = &counter;
__device__ const char *const names[] = {"one", "three", "seven"};

extern "C" __global__ void
variables(const int *in, int *out, int n)
{
  int t = threadIdx.x;
  Odd o = odds[t & 1];
  odds[2 + (t & 1)].t[2] = 9;
  int length = 0;
  for (const char *s = names[t % 3]; *s; s++)
    length++;
  if (t == 0)
    *where += 2;
  __syncthreads();
  out[t] = o.c + o.s * 10 + o.i * 100 + o.t[2] * 1000 + length * 100000 + (int)(weights[t & 3] * 2) * 1000000 + __ldg(in + t) * 10000000 +
           *(volatile int *)&counter * 100000000;
}
