// Prefix sums. All kernels: (const int *in, int *out, int n).

extern "C" __global__ void
scan_steps(const int *in, int *out, int n)
{
  extern __shared__ int s[];
  int t = threadIdx.x, from = 0;
  s[t] = t < n ? in[t] : 0;
  __syncthreads();
  for (int k = 1; k < blockDim.x; k *= 2) {
    int to = blockDim.x - from;
    s[to + t] = s[from + t] + (t >= k ? s[from + t - k] : 0);
    from = to;
    __syncthreads();
  }
  if (t < n)
    out[t] = s[from + t];
}

extern "C" __global__ void
scan_sweeps(const int *in, int *out, int n)
{
  __shared__ int s[256];
  int t = threadIdx.x, step = 1;
  s[2 * t] = in[2 * t];
  s[2 * t + 1] = in[2 * t + 1];
  for (int d = 128; d > 0; d >>= 1, step *= 2) {
    __syncthreads();
    if (t < d)
      s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
  }
  if (t == 0)
    s[255] = 0;
  for (int d = 1; d < 256; d *= 2) {
    step >>= 1;
    __syncthreads();
    if (t < d) {
      int a = step * (2 * t + 1) - 1, b = step * (2 * t + 2) - 1, v = s[a];
      s[a] = s[b];
      s[b] += v;
    }
  }
  __syncthreads();
  out[2 * t] = s[2 * t] + in[2 * t];
  out[2 * t + 1] = s[2 * t + 1] + in[2 * t + 1];
}

__device__ int
warp_scan(int v)
{
  for (int k = 1; k < 32; k *= 2) {
    int up = __shfl_up_sync(~0u, v, k);
    v += threadIdx.x % 32 >= k ? up : 0;
  }
  return v;
}

__device__ volatile unsigned long long states[64];
__device__ unsigned int ticket;

// One pass over many blocks: each looks back along the sums of those before it. State: flag in the upper half, 2 up to the end.
extern "C" __global__ void
scan_look_back(const int *in, int *out, int n)
{
  __shared__ int sums[8], block, before;
  if (threadIdx.x == 0)
    block = atomicAdd(&ticket, 1);
  __syncthreads();
  int i = block * 256 + threadIdx.x, v = warp_scan(i < n ? in[i] : 0);
  if (threadIdx.x % 32 == 31)
    sums[threadIdx.x / 32] = v;
  __syncthreads();
  int all = 0;
  for (int w = 0; w < 8; w++) {
    v += w < threadIdx.x / 32 ? sums[w] : 0;
    all += sums[w];
  }
  if (threadIdx.x == 0) {
    int sum = 0;
    if (block)
      states[block] = 1ull << 32 | (unsigned)all;
    for (int b = block - 1; b >= 0; b--) {
      unsigned long long s;
      do
        s = states[b];
      while (s >> 32 == 0);
      sum += (int)s;
      if (s >> 32 == 2)
        break;
    }
    before = sum;
    states[block] = 2ull << 32 | (unsigned)(sum + all);
  }
  __syncthreads();
  if (i < n)
    out[i] = v + before;
}
