// Blocks of two and three dimensions, shared tiles, dynamic shared memory. All kernels: (const float *in, float *out, int n).

extern "C" __global__ void
transpose_tile(const float *in, float *out, int n)
{
  __shared__ float t[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n)
    t[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n)
    out[y * n + x] = t[threadIdx.x][threadIdx.y];
}

// Mean of the neighbours in a cube of n x n x n, zero outside.
extern "C" __global__ void __launch_bounds__(256)
stencil_cube(const float *in, float *out, int n)
{
  __shared__ float s[6][6][10];
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
  int t = (threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x;
  for (int i = t; i < 360; i += 128) {
    int a = blockIdx.x * 8 + i % 10 - 1, b = blockIdx.y * 4 + i / 10 % 6 - 1, c = blockIdx.z * 4 + i / 60 - 1;
    bool in_cube = a >= 0 && a < n && b >= 0 && b < n && c >= 0 && c < n;
    (&s[0][0][0])[i] = in_cube ? in[(c * n + b) * n + a] : 0;
  }
  __syncthreads();
  int i = threadIdx.x + 1, j = threadIdx.y + 1, k = threadIdx.z + 1;
  if (x < n && y < n && z < n)
    out[(z * n + y) * n + x] = s[k][j][i - 1] + s[k][j][i + 1] + s[k][j - 1][i] + s[k][j + 1][i] + s[k - 1][j][i] + s[k + 1][j][i];
}

// c = a b of n x n, a and b one behind the other.
extern "C" __global__ void
matmul_shared(const float *in, float *out, int n)
{
  extern __shared__ float s[];
  float *a = s, *b = s + 8 * 8, sum = 0;
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, t = threadIdx.y * 8 + threadIdx.x;
  for (int k = 0; k < n; k += 8) {
    a[t] = y < n && k + threadIdx.x < n ? in[y * n + k + threadIdx.x] : 0;
    b[t] = x < n && k + threadIdx.y < n ? in[n * n + (k + threadIdx.y) * n + x] : 0;
    __syncthreads();
    for (int i = 0; i < 8; i++)
      sum += a[threadIdx.y * 8 + i] * b[i * 8 + threadIdx.x];
    __syncthreads();
  }
  if (x < n && y < n)
    out[y * n + x] = sum;
}
