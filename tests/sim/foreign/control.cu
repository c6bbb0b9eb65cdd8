// Switches, arrays, pointers to functions, recursion, structs. All kernels: (const int *in, int *out, int n).

struct Pair { long long a; int b; };

__device__ __noinline__ Pair
turned(Pair p, int k)
{
  Pair r = {p.b + k, (int)(p.a * 2)};
  return r;
}

typedef int Binary(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int sub(int a, int b) { return a - b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ Binary *const table[] = {add, sub, mul};

struct Shape { __device__ virtual int area(int k) const { return k; } };
struct Square : Shape { int side; __device__ int area(int k) const override { return side * side + k; } };
struct Rect : Shape { int w, h; __device__ int area(int k) const override { return w * h - k; } };

__device__ __noinline__ int
depth(const int *v, int n)
{
  int own[4] = {n, n + 1, n + 2, n + 3};
  if (n == 0)
    return v[0];
  int below = depth(own, n - 1);
  return below + own[n & 3] + v[n & 1];
}

extern "C" __global__ void
calls(const int *in, int *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = in[i], top[4] = {v, v * 2, v * 3, v * 4};
  Pair p = turned(turned({v, i}, 1), 2);
  Square s;
  Rect r;
  s.side = v, r.w = v, r.h = i;
  const Shape *shape = v & 1 ? (const Shape *)&s : (const Shape *)&r;
  out[i] = (int)p.a + p.b * 10 + table[i % 3](v, 3) * 100 + shape->area(5) * 1000 + depth(top, v % 6) * 100000;
}

extern "C" __global__ void
cases(const int *in, int *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0, local[16];
  if (i >= n)
    return;
  for (int k = 0; k < 16; k++)
    local[k] = k * in[i];
  switch (in[i] % 12) {
  case 0: r = i; break;
  case 1: r = i * i; break;
  case 2: r = -i;
  case 3: r += 7; break;
  case 4: r = i << 2; break;
  case 5: r = local[i & 15]; break;
  case 6: for (int k = 0; k < i; k++) r += k; break;
  case 7: r = __popc(i); break;
  case 8: r = i ^ 0x55; break;
  case 10: goto far;
  default: r = 999; break;
  }
  r += 10000;
far:
  out[i] = r + local[(in[i] + i) & 15];
}
