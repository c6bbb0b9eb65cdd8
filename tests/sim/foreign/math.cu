// Functions of real numbers, as libdevice has them. (const float *in, float *out, int n); out has a row of n for each function.
#include <math.h>

extern "C" __global__ void
functions(const float *in, float *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i], a = fabsf(x) + 0.5f;
  float r[] = {sinf(x), cosf(x), tanf(x), expf(x), logf(a), powf(a, x), tanhf(x), erff(x), sqrtf(a), rsqrtf(a), x / a, atan2f(x, a), cbrtf(x),
               log2f(a), exp2f(x), floorf(x), rintf(x), fmodf(x, 0.7f), lgammaf(a), sinf(x * 1e6f), asinf(x / 20), expm1f(x), log1pf(a), hypotf(x, a)};
  for (int k = 0; k < sizeof r / sizeof *r; k++)
    out[k * n + i] = r[k];
}

extern "C" __global__ void
doubles(const double *in, double *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double x = in[i], a = fabs(x) + 0.5;
  double r[] = {sin(x), exp(x), log(a), pow(a, x), tanh(x), erf(x), sqrt(a), 1 / a, cbrt(x), fma(x, a, -x * a)};
  for (int k = 0; k < sizeof r / sizeof *r; k++)
    out[k * n + i] = r[k];
}

// Integers: quotients of all widths, bits, 24-bit and high products, saturation. (const int *in, long long *out, int n)
extern "C" __global__ void
integers(const int *in, long long *out, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int x = in[i], y = in[(i + 1) % n] | 1;
  long long w = (long long)x * 1000003 + y;
  unsigned u = (unsigned)x;
  long long r[] = {x / y, x % y, w / y, w % (y * 7ll), (long long)((unsigned long long)w / (unsigned)y), __clz(x), __ffs(x), __popc(u), __brev(u),
                   __mulhi(x, y), (long long)__umul64hi(w, w), __sad(x, y, 5u), min(x, y), abs(x), __byte_perm(x, y, 0x5140), (long long)__funnelshift_l(x, y, 5),
                   __clzll(w), (char)x, (unsigned short)x, x >> 3, (long long)(w >> 5), __dp4a(x, y, 7), __vadd4(x, y), __hadd(x, y)};
  for (int k = 0; k < sizeof r / sizeof *r; k++)
    out[k * n + i] = r[k];
}
