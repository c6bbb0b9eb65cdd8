/* fakecuda.c - a libcuda.so.1 for tests: host memory for device memory, a count per call, and the real driver's
 * rule that calls need a current context. "Kernels" do not run; launches are recorded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/driver.h"
#include "fakecuda.h"

struct CUctx_st { int live; };
struct CUevent_st { int recorded; };

static struct CUctx_st primary, foreign;
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;
static FakeCuda fake;

static int
count(const char *name)
{
  for (int i = 0; i < fake.ncalls; i++)
    if (!strcmp(fake.calls[i].name, name))
      return ++fake.calls[i].count;
  fake.calls[fake.ncalls++] = (FakeCall){name, 1};
  return 1;
}

#define EXPORT __attribute__((visibility("default")))
#define COUNTED (count(__func__), fake.total++)
#define NEED_CONTEXT                                   \
  COUNTED;                                             \
  if (!depth || stack[depth - 1] != &primary)          \
    return CUDA_ERROR_INVALID_CONTEXT

EXPORT FakeCuda *
fakecuda(void)
{
  return &fake;
}

EXPORT void
fakecuda_make_foreign_current(int on)
{
  depth = on;
  stack[0] = &foreign;
}

EXPORT CUresult cuInit(unsigned flags) { COUNTED; return fake.init_result; }
EXPORT CUresult cuGetErrorName(CUresult r, const char **out) { *out = r == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR_FAKE"; return 0; }
EXPORT CUresult cuGetErrorString(CUresult r, const char **out) { *out = "as the test asked"; return 0; }
EXPORT CUresult cuDeviceGetCount(int *n) { COUNTED; *n = 1; return 0; }
EXPORT CUresult cuDeviceGet(CUdevice *d, int i) { COUNTED; *d = i; return 0; }
EXPORT CUresult cuDeviceGetName(char *name, int n, CUdevice d) { COUNTED; snprintf(name, (size_t)n, "Fake GPU"); return 0; }
EXPORT CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { COUNTED; *n = 1u << 30; return 0; }

EXPORT CUresult
cuDeviceGetAttribute(int *v, int attribute, CUdevice d)
{
  COUNTED;
  switch (attribute) {
  case CU_DEVICE_COMPUTE_CAPABILITY_MAJOR: *v = fake.capability / 10; break;
  case CU_DEVICE_COMPUTE_CAPABILITY_MINOR: *v = fake.capability % 10; break;
  case CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 232448; break;
  case CU_DEVICE_MAX_GRID_DIM_X: *v = 0x7fffffff; break;
  case CU_DEVICE_MAX_GRID_DIM_Y: case CU_DEVICE_MAX_GRID_DIM_Z: *v = 65535; break;
  default: *v = 1000 + attribute;
  }
  return 0;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { COUNTED; primary.live++; *c = &primary; return 0; }
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) { COUNTED; primary.live--; fake.retained = primary.live; return 0; }
EXPORT CUresult cuCtxGetCurrent(CUcontext *c) { COUNTED; *c = depth ? stack[depth - 1] : NULL; return 0; }
EXPORT CUresult cuCtxSetCurrent(CUcontext c) { COUNTED; depth += !depth; stack[depth - 1] = c; return 0; }
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c) { COUNTED; stack[depth++] = c; return 0; }
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *c) { COUNTED; *c = stack[--depth]; return 0; }
EXPORT CUresult cuCtxSynchronize(void) { NEED_CONTEXT; return 0; }

EXPORT CUresult
cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
  NEED_CONTEXT;
  if (n > (size_t)1 << 29)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *p = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (n + 255) / 256 * 256);
  fake.allocations++;
  return 0;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p) { NEED_CONTEXT; free((void *)(uintptr_t)p); fake.allocations--; return 0; }
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream st) { NEED_CONTEXT; memcpy((void *)(uintptr_t)d, s, n); return 0; }
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream st) { NEED_CONTEXT; memcpy(d, (void *)(uintptr_t)s, n); return 0; }
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) { NEED_CONTEXT; memmove((void *)(uintptr_t)d, (void *)(uintptr_t)s, n); return 0; }
EXPORT CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream s) { NEED_CONTEXT; memset((void *)(uintptr_t)d, v, n); return 0; }

EXPORT CUresult
cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream s)
{
  NEED_CONTEXT;
  for (size_t i = 0; i < n; i++)
    ((unsigned short *)(uintptr_t)d)[i] = v;
  return 0;
}

EXPORT CUresult
cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream s)
{
  NEED_CONTEXT;
  if (n < 4096) /* the flush of a benchmark need not be real */
    for (size_t i = 0; i < n; i++)
      ((unsigned *)(uintptr_t)d)[i] = v;
  return 0;
}

EXPORT CUresult cuStreamCreate(CUstream *s, unsigned flags) { NEED_CONTEXT; *s = malloc(8); fake.streams++; return 0; }
EXPORT CUresult cuStreamDestroy_v2(CUstream s) { NEED_CONTEXT; free(s); fake.streams--; return 0; }
EXPORT CUresult cuStreamSynchronize(CUstream s) { NEED_CONTEXT; return 0; }
EXPORT CUresult cuEventCreate(CUevent *e, unsigned flags) { NEED_CONTEXT; *e = calloc(1, sizeof **e); fake.events++; return 0; }
EXPORT CUresult cuEventDestroy_v2(CUevent e) { NEED_CONTEXT; free(e); fake.events--; return 0; }
EXPORT CUresult cuEventRecord(CUevent e, CUstream s) { NEED_CONTEXT; e->recorded = ++fake.clock; return 0; }
EXPORT CUresult cuEventSynchronize(CUevent e) { NEED_CONTEXT; return 0; }
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { NEED_CONTEXT; *ms = (float)(b->recorded - a->recorded); return 0; }

EXPORT CUresult
cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options, void **values)
{
  NEED_CONTEXT;
  if (strstr(image, "reject me")) {
    for (unsigned i = 0; i < n; i++)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
        strcpy(values[i], "ptxas application ptx input, line 3; error : Parsing error near 'me'");
    return 218;
  }
  *m = (CUmodule)(uintptr_t)1;
  fake.modules++;
  return 0;
}

EXPORT CUresult cuModuleUnload(CUmodule m) { NEED_CONTEXT; fake.modules--; return 0; }
EXPORT CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) { NEED_CONTEXT; *f = (CUfunction)(uintptr_t)2; return strcmp(name, "absent") ? 0 : 500; }
EXPORT CUresult cuFuncGetAttribute(int *v, int attribute, CUfunction f) { NEED_CONTEXT; *v = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? 512 : 30 + attribute; return 0; }
EXPORT CUresult cuFuncSetAttribute(CUfunction f, int attribute, int v) { NEED_CONTEXT; fake.dynamic_shared = v; return attribute == 8 ? 0 : 1; }
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared) { NEED_CONTEXT; *n = 3; return 0; }

EXPORT CUresult
cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned shared, CUstream stream, void **params, void **extra)
{
  NEED_CONTEXT;
  fake.launch = (FakeLaunch){{gx, gy, gz}, {bx, by, bz}, shared, stream, params, fake.launch.count + 1};
  return fake.launch_result;
}
