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
/* Made with the thread: the C library ends a process that has no memory for it later. */
#define THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
static THREAD_LOCAL CUcontext stack[8];
static THREAD_LOCAL int depth;
static FakeCuda fake = {.capability = 90};

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

/* FAKE(name, parameters, effect, result): a call that needs a context; FAKE_FREE: one that does not. */
#define FAKE(name, params, effect, result) \
  EXPORT CUresult name params { NEED_CONTEXT; effect; return result; }
#define FAKE_FREE(name, params, effect, result) \
  EXPORT CUresult name params { COUNTED; effect; return result; }

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

FAKE_FREE(cuInit, (unsigned flags), , fake.init_result)
FAKE_FREE(cuGetErrorName, (CUresult r, const char **out), *out = "CUDA_ERROR_FAKE", 0)
FAKE_FREE(cuGetErrorString, (CUresult r, const char **out), *out = "as the test asked", 0)
FAKE_FREE(cuDeviceGetCount, (int *n), *n = 1, 0)
FAKE_FREE(cuDeviceGet, (CUdevice *d, int i), *d = i, 0)
FAKE_FREE(cuDeviceGetName, (char *name, int n, CUdevice d), snprintf(name, (size_t)n, "%s", fake.name[0] ? fake.name : "Fake GPU"), 0)
FAKE_FREE(cuDeviceTotalMem_v2, (size_t *n, CUdevice d), *n = 1u << 30, 0)

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
  case CU_DEVICE_MULTIPROCESSOR_COUNT: *v = fake.multiprocessors ? fake.multiprocessors : 1000 + attribute; break;
  default: *v = 1000 + attribute;
  }
  return 0;
}

FAKE_FREE(cuDevicePrimaryCtxRetain, (CUcontext *c, CUdevice d), primary.live++; *c = &primary, 0)
FAKE_FREE(cuDevicePrimaryCtxRelease_v2, (CUdevice d), primary.live--; fake.retained = primary.live, 0)
FAKE_FREE(cuCtxGetCurrent, (CUcontext *c), *c = depth ? stack[depth - 1] : NULL, 0)
FAKE_FREE(cuCtxSetCurrent, (CUcontext c), depth += !depth; stack[depth - 1] = c, 0)
FAKE_FREE(cuCtxPushCurrent_v2, (CUcontext c), stack[depth++] = c, 0)
FAKE_FREE(cuCtxPopCurrent_v2, (CUcontext *c), *c = stack[--depth], 0)
FAKE(cuCtxSynchronize, (void), , fake.sync_result)

EXPORT CUresult
cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
  NEED_CONTEXT;
  if (fake.alloc_result)
    return fake.alloc_result;
  if (n > (size_t)1 << 29)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *p = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (n + 255) / 256 * 256);
  fake.allocations += *p != 0;
  return *p ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE(cuMemFree_v2, (CUdeviceptr p), free((void *)(uintptr_t)p); fake.allocations--, 0)
FAKE(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void *s, size_t n, CUstream st),
     memcpy((void *)(uintptr_t)d, s, n), 0)
FAKE(cuMemcpyDtoHAsync_v2, (void *d, CUdeviceptr s, size_t n, CUstream st),
     memcpy(d, (void *)(uintptr_t)s, n), 0)
FAKE(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st),
     memmove((void *)(uintptr_t)d, (void *)(uintptr_t)s, n), 0)
FAKE(cuMemsetD8Async, (CUdeviceptr d, unsigned char v, size_t n, CUstream s),
     memset((void *)(uintptr_t)d, v, n), 0)

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

FAKE(cuStreamCreate, (CUstream *s, unsigned flags), fake.streams += (*s = malloc(8)) != NULL, *s ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuStreamDestroy_v2, (CUstream s), free(s); fake.streams--, 0)
FAKE(cuStreamSynchronize, (CUstream s), , fake.sync_result)
FAKE(cuEventCreate, (CUevent *e, unsigned flags), fake.events += (*e = calloc(1, sizeof **e)) != NULL, *e ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuEventDestroy_v2, (CUevent e), free(e); fake.events--, 0)
FAKE(cuEventRecord, (CUevent e, CUstream s), e->recorded = ++fake.clock, 0)
FAKE(cuEventSynchronize, (CUevent e), , 0)
FAKE(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), *ms = (float)(b->recorded - a->recorded), 0)

/* PTX that holds the words is wrong. */
static CUresult
compile(const void *image, const char *words, unsigned n, const int *options, void **values)
{
  if (!strstr(image, words))
    return 0;
  for (unsigned i = 0; i < n; i++)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      strcpy(values[i], "ptxas application ptx input, line 3; error : Parsing error near 'me'");
  return 218;
}

static CUresult
load(const void *image, unsigned n, const int *options, void **values)
{
  CUresult r = compile(image, "reject me", n, options, values);
  fake.modules += !r;
  fake.cubins += !r && !memcmp(image, "\177ELF", 4);
  return r;
}

EXPORT CUresult
cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options, void **values)
{
  NEED_CONTEXT;
  *m = (CUmodule)(uintptr_t)1;
  return load(image, n, options, values);
}

/* What a driver of CUDA 11 has not. */
#ifndef OLD_DRIVER
struct CUlib_st { const void *late; unsigned n; const int *options; void **values; };

/* A library that says "later" is compiled when its module is asked for. */
EXPORT CUresult
cuLibraryLoadData(CUlibrary *l, const void *image, int *options, void **values, unsigned n, int *more, void **more_values, unsigned nmore)
{
  NEED_CONTEXT;
  const void *late = strstr(image, "later");
  CUresult r = late ? 0 : load(image, n, options, values);
  if (r || !(*l = malloc(sizeof **l)))
    return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
  **l = (struct CUlib_st){late, n, options, values};
  fake.modules += late != NULL;
  return 0;
}

EXPORT CUresult
cuLibraryGetModule(CUmodule *m, CUlibrary l)
{
  NEED_CONTEXT;
  *m = (CUmodule)(uintptr_t)1;
  return l->late ? compile(l->late, "later", l->n, l->options, l->values) : 0;
}

FAKE(cuLibraryUnload, (CUlibrary l), (free(l), fake.modules--), 0)
#endif

EXPORT CUresult
cuModuleLoadData(CUmodule *m, const void *image)
{
  return cuModuleLoadDataEx(m, image, 0, NULL, NULL);
}

FAKE_FREE(cuDriverGetVersion, (int *v), *v = fake.driver_version, 0)
FAKE(cuModuleUnload, (CUmodule m), fake.modules--, 0)
FAKE(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name),
     *f = (CUfunction)(uintptr_t)2, strcmp(name, "absent") ? 0 : 500)
FAKE(cuFuncGetAttribute, (int *v, int attribute, CUfunction f),
     *v = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? 512
          : attribute >= CU_FUNC_REQUIRED_CLUSTER_WIDTH ? fake.required_cluster : 30 + attribute, 0)
FAKE(cuFuncSetAttribute, (CUfunction f, int attribute, int v),
     *(attribute == 8 ? &fake.dynamic_shared : &fake.large_clusters) = v, attribute == 8 || attribute == 14 ? 0 : 1)
#ifndef OLD_DRIVER
/* The map is what it was made of, as far as tests ask. */
EXPORT CUresult
cuTensorMapEncodeTiled(void *map, int type, unsigned rank, CUdeviceptr address, const uint64_t *extent, const uint64_t *stride, const unsigned *box,
                       const unsigned *step, int interleave, int swizzle, int promotion, int fill)
{
  const int deep = rank > 2;
  if (fake.map_needs_context) {
    NEED_CONTEXT;
  }
  const uint64_t words[15] = {(uint64_t)type, rank, address, extent[1], stride[0], box[1], step[1], (uint64_t)swizzle, (uint64_t)promotion,
                              (uint64_t)fill, deep ? extent[2] : 0, deep ? stride[1] : 0, deep ? box[2] : 0, extent[0], box[0]};
  memset(map, 0, 128);
  memcpy(map, words, sizeof words);
  return interleave == 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

FAKE_FREE(cuTensorMapEncodeIm2col, (void *map, int type, unsigned rank, CUdeviceptr address, const uint64_t *extent, const uint64_t *stride,
                                    const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *step, int interleave,
                                    int swizzle, int promotion, int fill),
          (memset(map, 0, 128), memcpy(map, (int64_t[]){type, rank, (int64_t)address, (int64_t)extent[2], (int64_t)stride[1], lower[1], upper[1],
                                                        channels, pixels, step[2], swizzle, promotion, fill}, 104)),
          interleave == 3 ? 1 : 0)
#endif

FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *n, CUfunction f, int threads, size_t shared),
     *n = 3, 0)

EXPORT CUresult
cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned shared, CUstream stream, void **params, void **extra)
{
  NEED_CONTEXT;
  fake.launch = (FakeLaunch){{gx, gy, gz}, {bx, by, bz}, shared, stream, params, fake.launch.count + 1, {0}, 0, 0};
  return fake.launch_result;
}

#ifndef OLD_DRIVER
EXPORT CUresult
cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
  NEED_CONTEXT;
  fake.launch = (FakeLaunch){.grid = {c->grid[0], c->grid[1], c->grid[2]}, .block = {c->block[0], c->block[1], c->block[2]}, .shared = c->shared,
                             .stream = c->stream, .params = params, .count = fake.launch.count + 1, .extended = 1};
  for (unsigned i = 0; i < c->nattributes; i++) {
    const CUlaunchAttribute *a = &c->attributes[i];
    if (a->id == CU_LAUNCH_CLUSTER_DIMENSION)
      memcpy(fake.launch.cluster, &a->value.cluster, sizeof fake.launch.cluster);
    else if (a->id == CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)
      fake.launch.pdl = a->value.flag;
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return fake.launch_result;
}
#endif
