/* kernels.cu - CUDA kernels whose PTX is kernels.ptx: nvcc -ptx -arch=sm_90 -lineinfo kernels.cu */
#include <cuda_fp8.h>
#include <cuda_pipeline.h>

extern "C" __global__ void
vadd(const float *a, const float *b, float *c, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}

extern "C" __global__ void
reduce(const float *a, float *out, int n)
{
  __shared__ float s[256];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    v += a[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) {
    if (threadIdx.x < o)
      s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[0] = s[0];
}

extern "C" __global__ void
transpose(const float *a, float *b, int n)
{
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    t[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    b[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void
softmax(const float *a, float *b, int n)
{
  __shared__ float s[32];
  const float *r = a + (size_t)blockIdx.x * n;
  float *w = b + (size_t)blockIdx.x * n, m = -INFINITY, t = 0;
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    m = fmaxf(m, r[i]);
  for (int o = 16; o; o >>= 1)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0)
    s[warp] = m;
  __syncthreads();
  for (int i = 0; i < warps; i++)
    m = fmaxf(m, s[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    t += __expf(r[i] - m);
  for (int o = 16; o; o >>= 1)
    t += __shfl_xor_sync(~0u, t, o);
  if (threadIdx.x % 32 == 0)
    s[warp] = t;
  __syncthreads();
  t = 0;
  for (int i = 0; i < warps; i++)
    t += s[i];
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    w[i] = __expf(r[i] - m) / t;
}

__device__ __noinline__ int
gcd(int a, int b)
{
  while (b) {
    int t = a % b;
    a = b;
    b = t;
  }
  return a;
}

extern "C" __global__ void
gcds(const int *a, const int *b, long long *o, int n)
{
  int i = threadIdx.x;
  long long s = 0;
  if (i >= n)
    return;
  for (int j = 0; j < 5; j++)
    s = s * 1000 + gcd(a[i] + j, b[i] * 3 + j);
  o[i] = s;
}

extern "C" __global__ void
hist(const unsigned char *a, unsigned *o, int n)
{
  __shared__ unsigned h[256];
  h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256)
    atomicAdd(&h[a[i]], 1u);
  __syncthreads();
  atomicAdd(&o[threadIdx.x], h[threadIdx.x]);
}

extern "C" __global__ void
cases(const int *a, int *o)
{
  int i = threadIdx.x, r, loc[16];
  switch (a[i]) {
  case 0: r = 5; break;
  case 1: r = i * i; break;
  case 2: r = i + 77; break;
  case 3: r = i << 3; break;
  case 4: r = ~i; break;
  case 5: r = i % 7; break;
  case 6: r = __popc(i); break;
  default: r = -1;
  }
  for (int j = 0; j < 16; j++)
    loc[j] = j * i;
  o[i] = r + loc[a[i] & 15];
}

extern "C" __global__ void
fp8(const float *a, float *o)
{
  int i = threadIdx.x;
  __nv_fp8_e4m3 x(a[i]);
  __nv_fp8_e5m2 y(a[i]);
  o[2 * i] = float(x);
  o[2 * i + 1] = float(y);
}

extern "C" __global__ void
copies(const float *a, float *o, int n)
{
  extern __shared__ float s[];
  for (int k = 0; k < n; k++) {
    __pipeline_memcpy_async(&s[threadIdx.x * 4], &a[(k * blockDim.x + threadIdx.x) * 4], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int j = 0; j < 4; j++)
      o[(k * blockDim.x + threadIdx.x) * 4 + j] = 2 * s[(threadIdx.x ^ 1) * 4 + j];
    __syncthreads();
  }
}

extern "C" __global__ void
nested(const int *a, int *o, int n)
{
  int i = threadIdx.x, s = 0;
  for (int x = 0; x < a[i]; x++) {
    for (int y = x; y < n; y++) {
      if ((x * y + i) % 3 == 0)
        continue;
      if (y > a[(i + 1) & 31] + 2)
        break;
      s += x * y;
    }
    if (s > 1000)
      break;
  }
  o[i] = s * 100 + __popc(__activemask());
}

__device__ int lock_word;
__device__ int total = 7;
__constant__ int table[4] = {1, 2, 3, 4};

extern "C" __global__ void
locked(int *o)
{
  bool done = false;
  while (!done)
    if (atomicCAS(&lock_word, 0, 1) == 0) {
      __threadfence();
      total += table[threadIdx.x & 3];
      __threadfence();
      o[0] = total;
      __threadfence();
      atomicExch(&lock_word, 0);
      done = true;
    }
}
