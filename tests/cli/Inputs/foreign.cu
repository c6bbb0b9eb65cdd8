// Kernels of C++, for tests/cli/foreign.test; foreign.ptx is what nvcc -ptx -arch=sm_80 makes of them, without the lines that name its build.
struct Affine { float scale, offset; int step; };

__global__ void
axpy(float a, const float *x, float *y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

// Every kind of parameter; block (x, y) writes element y * blockDim.x + x.
__global__ void
put(double *out, Affine s, double d, unsigned char c, short h, long long big)
{
  int i = threadIdx.y * blockDim.x + threadIdx.x;
  out[i] = s.scale * i + s.offset + s.step + d + c + h + big;
}

__global__ void __launch_bounds__(64)
reverse(int *x)
{
  extern __shared__ int s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
