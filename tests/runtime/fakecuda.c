/* fakecuda.c - a libcuda.so.1 for tests: host memory for device memory, a count per call, and the real driver's
 * rule that calls need a current context. "Kernels" do not run; launches are recorded. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/driver.h"
#include "fakecuda.h"

struct CUctx_st { int live; };
struct CUevent_st { int recorded, number; CUgraph graph; };      /* graph: that of the capture it was recorded in */
struct CUstream_st { int number; CUgraph graph; CUgraphNode last; };
struct CUgraphNode_st { int number; CUmemcpy3D copy; CUmemsetParams fill; CUhostParams host; CUkernelParams kernel; char kind; };
struct CUgraph_st { int n; struct CUgraphNode_st node[1024]; };
struct CUgraphExec_st { struct CUgraph_st graph; };
struct CUmemPool_st { uint64_t keep, used, most; };

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

/* Tests of two contexts have two threads: one call at a time. */
static pthread_mutex_t one_call = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int
enter_call(const char *name)
{
  int held = fake.two_contexts;
  if (held)
    pthread_mutex_lock(&one_call);
  count(name);
  fake.total++;
  return held;
}

static void
leave_call(const int *held)
{
  if (*held)
    pthread_mutex_unlock(&one_call);
}

#define EXPORT __attribute__((visibility("default")))
#define COUNTED int held __attribute__((cleanup(leave_call))) = enter_call(__func__)
#define NEED_CONTEXT                                                \
  COUNTED;                                                          \
  if (!current() || (current() != &primary && !fake.two_contexts)) \
    return CUDA_ERROR_INVALID_CONTEXT

static CUcontext
current(void)
{
  return depth ? stack[depth - 1] : NULL;
}

/* ---- two contexts: what is made belongs to the one that is current, and is used where that is ---- */

static struct { const void *what; CUcontext of; } owned[4096];
static int nowned;

static CUcontext
owner(const void *what)
{
  for (int i = nowned - 1; i >= 0; i--)                /* the last that had this address */
    if (owned[i].what == what)
      return owned[i].of;
  return NULL;
}

static void
own(const void *what)
{
  if (fake.two_contexts && nowned < 4096)
    owned[nowned].what = what, owned[nowned++].of = current();
}

static int
belongs(const void *what, CUcontext to)
{
  CUcontext of = fake.two_contexts ? owner(what) : NULL;
  fake.mixed += of && of != to;
  return !of || of == to;
}

/* The real one refuses some of these, and takes others for the wrong thing. */
#define MINE(what)                              \
  if (!belongs((void *)(uintptr_t)(what), current())) \
    return CUDA_ERROR_INVALID_HANDLE

/* Modules and functions are numbers: of either context another one. */
static uintptr_t
numbered(uintptr_t n)
{
  return current() == &foreign ? n + 16 : n;
}

#define MY_NUMBER(what, n)                                              \
  if (fake.two_contexts && (uintptr_t)(what) != numbered(n)) {          \
    fake.mixed++;                                                       \
    return CUDA_ERROR_INVALID_HANDLE;                                   \
  }

/* ---- what the newer calls are given ---- */

static void
say(const char *format, ...)
{
  va_list ap;
  size_t n = strlen(fake.log);
  if (!fake.log_on)
    return;
  va_start(ap, format);
  vsnprintf(fake.log + n, sizeof fake.log - n, format, ap);
  va_end(ap);
}

static CUstream made[64];
static int nmade;

/* One of ours; NULL: the default one, or one that a test made up. */
static CUstream
known(CUstream s)
{
  for (int i = 0; i < nmade; i++)
    if (made[i] == s)
      return s;
  return NULL;
}

static int
number(CUstream s)
{
  return known(s) ? s->number : 0;
}

/* A node behind the last of a stream that is being captured; NULL: it is not. */
static CUgraphNode
captured(CUstream s, char kind)
{
  s = known(s);
  if (!s || !s->graph)
    return NULL;
  CUgraphNode n = &s->graph->node[s->graph->n];
  *n = (struct CUgraphNode_st){.number = s->graph->n++, .kind = kind};
  s->last = n;
  return n;
}

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

/* The primary context, or the other one. */
EXPORT void *
fakecuda_context(int other)
{
  return other ? &foreign : &primary;
}

/* The calling thread's: NULL, or one of these. */
EXPORT void *
fakecuda_current(void)
{
  return current();
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
  case CU_DEVICE_MAX_PERSISTING_L2: *v = 1 << 20; break;
  case CU_DEVICE_MAX_ACCESS_POLICY_WINDOW: *v = 4096; break;
  case CU_DEVICE_MEMORY_POOLS: *v = 1; break;
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
  own((void *)(uintptr_t)*p);
  return *p ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE(cuMemFree_v2, (CUdeviceptr p), MINE(p); free((void *)(uintptr_t)p); fake.allocations--, 0)
FAKE(cuMemcpyHtoDAsync_v2, (CUdeviceptr d, const void *s, size_t n, CUstream st),
     MINE(st); if (!captured(st, 'c')) memcpy((void *)(uintptr_t)d, s, n), 0)
FAKE(cuMemcpyDtoHAsync_v2, (void *d, CUdeviceptr s, size_t n, CUstream st),
     MINE(st); if (!captured(st, 'c')) memcpy(d, (void *)(uintptr_t)s, n), 0)
FAKE(cuMemcpyDtoDAsync_v2, (CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st),
     MINE(st); if (!captured(st, 'c')) memmove((void *)(uintptr_t)d, (void *)(uintptr_t)s, n), 0)
FAKE(cuMemsetD8Async, (CUdeviceptr d, unsigned char v, size_t n, CUstream s),
     MINE(s); MINE(d); if (!captured(s, 'f')) memset((void *)(uintptr_t)d, v, n), 0)

EXPORT CUresult
cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream s)
{
  NEED_CONTEXT;
  MINE(s);
  if (captured(s, 'f'))
    return 0;
  for (size_t i = 0; i < n; i++)
    ((unsigned short *)(uintptr_t)d)[i] = v;
  return 0;
}

EXPORT CUresult
cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream s)
{
  NEED_CONTEXT;
  MINE(s);
  if (!captured(s, 'f') && n < 4096) /* the flush of a benchmark need not be real */
    for (size_t i = 0; i < n; i++)
      ((unsigned *)(uintptr_t)d)[i] = v;
  return 0;
}

static CUresult
make_stream(CUstream *s)
{
  if (!(*s = calloc(1, sizeof **s)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  (*s)->number = ++fake.streams;
  own(*s);
  if (nmade < 64)
    made[nmade++] = *s;
  return 0;
}

static void
drop_stream(CUstream s)
{
  for (int i = 0; i < nmade; i++)
    if (made[i] == s)
      made[i] = made[--nmade];
  free(s);
  fake.streams--;
}

FAKE(cuStreamCreate, (CUstream *s, unsigned flags), , make_stream(s))
FAKE(cuStreamDestroy_v2, (CUstream s), MINE(s); drop_stream(s), 0)
FAKE(cuStreamSynchronize, (CUstream s), MINE(s), fake.sync_result)
FAKE(cuEventCreate, (CUevent *e, unsigned flags), fake.events += (*e = calloc(1, sizeof **e)) != NULL; say("event(%u) ", flags); if (*e) (*e)->number = fake.events; own(*e), *e ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuEventDestroy_v2, (CUevent e), MINE(e); free(e); fake.events--, 0)
FAKE(cuEventRecord, (CUevent e, CUstream s), MINE(e); MINE(s); e->graph = known(s) ? s->graph : NULL; e->recorded = ++fake.clock, 0)
FAKE(cuEventSynchronize, (CUevent e), MINE(e), 0)
FAKE(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), MINE(a); MINE(b); *ms = (float)(b->recorded - a->recorded), 0)

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
  fake.level = 0;
  for (unsigned i = 0; i < n; i++)
    if (options[i] == CU_JIT_OPTIMIZATION_LEVEL)
      fake.level = (int)(uintptr_t)values[i];
  fake.modules += !r;
  fake.cubins += !r && !memcmp(image, "\177ELF", 4);
  return r;
}

EXPORT CUresult
cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options, void **values)
{
  NEED_CONTEXT;
  *m = (CUmodule)numbered(1);
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
  own(*l);
  fake.modules += late != NULL;
  return 0;
}

EXPORT CUresult
cuLibraryGetModule(CUmodule *m, CUlibrary l)
{
  NEED_CONTEXT;
  MINE(l);
  *m = (CUmodule)numbered(1);
  return l->late ? compile(l->late, "later", l->n, l->options, l->values) : 0;
}

FAKE(cuLibraryUnload, (CUlibrary l), MINE(l); (free(l), fake.modules--), 0)
#endif

EXPORT CUresult
cuModuleLoadData(CUmodule *m, const void *image)
{
  return cuModuleLoadDataEx(m, image, 0, NULL, NULL);
}

FAKE_FREE(cuDriverGetVersion, (int *v), *v = fake.driver_version, 0)
FAKE(cuModuleUnload, (CUmodule m), MY_NUMBER(m, 1) fake.modules--, 0)
FAKE(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name),
     MY_NUMBER(m, 1) *f = (CUfunction)numbered(2), strcmp(name, "absent") ? 0 : 500)
FAKE(cuFuncGetAttribute, (int *v, int attribute, CUfunction f),
     MY_NUMBER(f, 2) *v = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? 512
          : attribute >= CU_FUNC_REQUIRED_CLUSTER_WIDTH ? fake.required_cluster
          : attribute == CU_FUNC_LOCAL_SIZE_BYTES && fake.local ? fake.local : 30 + attribute, 0)
FAKE(cuFuncSetAttribute, (CUfunction f, int attribute, int v),
     MY_NUMBER(f, 2) *(attribute == 8 ? &fake.dynamic_shared : &fake.large_clusters) = v, attribute == 8 || attribute == 14 ? 0 : 1)
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

static void
keep_values(void **params)
{
  memset(fake.value, 0, sizeof fake.value);
  for (int i = 0; i < fake.nsizes; i++)
    memcpy(fake.value[i], params[i], (size_t)fake.size[i]);
}

EXPORT CUresult
cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
               unsigned shared, CUstream stream, void **params, void **extra)
{
  NEED_CONTEXT;
  if (fake.two_contexts && f != (CUfunction)numbered(2))   /* launches ask by trying */
    return CUDA_ERROR_INVALID_HANDLE;
  MINE(stream);
  CUgraphNode node = captured(stream, 'k');
  if (node)
    node->kernel = (CUkernelParams){f, {gx, gy, gz}, {bx, by, bz}, shared, params, extra, NULL, NULL};
  fake.launch = (FakeLaunch){{gx, gy, gz}, {bx, by, bz}, shared, stream, params, fake.launch.count + 1, {0}, 0, 0};
  fake.launched_in = current();
  keep_values(params);
  return fake.launch_result;
}

#ifndef OLD_DRIVER
EXPORT CUresult
cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
  NEED_CONTEXT;
  if (fake.two_contexts && f != (CUfunction)numbered(2))
    return CUDA_ERROR_INVALID_HANDLE;
  MINE(c->stream);
  fake.launch = (FakeLaunch){.grid = {c->grid[0], c->grid[1], c->grid[2]}, .block = {c->block[0], c->block[1], c->block[2]}, .shared = c->shared,
                             .stream = c->stream, .params = params, .count = fake.launch.count + 1, .extended = 1};
  fake.launched_in = current();
  keep_values(params);
  for (unsigned i = 0; i < c->nattributes; i++) {
    const CUlaunchAttribute *a = &c->attributes[i];
    if (a->id == CU_LAUNCH_CLUSTER_DIMENSION)
      memcpy(fake.launch.cluster, &a->value.cluster, sizeof fake.launch.cluster);
    else if (a->id == CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)
      fake.launch.pdl = a->value.flag;
    else if (a->id == CU_LAUNCH_PRIORITY)
      say("priority(%d) ", a->value.priority);
    else if (a->id == CU_LAUNCH_ACCESS_POLICY_WINDOW)
      say("window(%zu, %g, %d, %d) ", a->value.window.bytes, (double)a->value.window.ratio, a->value.window.hit, a->value.window.miss);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return fake.launch_result;
}
#endif

/* ---- streams, memory of the host and of pools, other devices ---- */

FAKE(cuStreamCreateWithPriority, (CUstream *s, unsigned flags, int priority), say("priority(%d) ", priority), make_stream(s))
FAKE(cuStreamGetCtx, (CUstream s, CUcontext *c), *c = (uintptr_t)s == FAKE_FOREIGN_STREAM ? &foreign : owner(s) ? owner(s) : &primary, 0)
FAKE(cuStreamQuery, (CUstream s), MINE(s), fake.sync_result)
FAKE(cuEventQuery, (CUevent e), MINE(e), fake.sync_result)
FAKE(cuLaunchHostFunc, (CUstream s, void (*f)(void *), void *user),
     MINE(s); CUgraphNode n = captured(s, 'h'); if (n) (n->host.f = f, n->host.user = user); else f(user), 0)
FAKE(cuCtxGetDevice, (CUdevice *d), *d = 0, 0)
FAKE(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (*least = 0, *greatest = -5), 0)
FAKE(cuCtxSetLimit, (int limit, size_t value), say("limit(%d, %zu) ", limit, value), 0)
FAKE(cuCtxResetPersistingL2Cache, (void), say("reset "), 0)
FAKE(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), , CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
FAKE_FREE(cuDeviceCanAccessPeer, (int *can, CUdevice a, CUdevice b), *can = fake.peer, 0)
FAKE(cuMemHostAlloc, (void **p, size_t n, unsigned flags), say("host(%u) ", flags); fake.host_blocks += (*p = malloc(n)) != NULL; own(*p), *p ? 0 : 2)
FAKE(cuMemFreeHost, (void *p), MINE(p); free(p); fake.host_blocks--, 0)
FAKE(cuMemHostRegister_v2, (void *p, size_t n, unsigned flags), say("pin(%zu, %u) ", n, flags); fake.pinned++, 0)
FAKE(cuMemHostUnregister, (void *p), fake.pinned--, 0)
FAKE(cuMemHostGetDevicePointer_v2, (CUdeviceptr *d, void *p, unsigned flags), *d = (uintptr_t)p, 0)
FAKE(cuMemcpyPeerAsync, (CUdeviceptr d, CUcontext to, CUdeviceptr s, CUcontext from, size_t n, CUstream st),
     if (!belongs((void *)(uintptr_t)d, to) || !belongs((void *)(uintptr_t)s, from)) return CUDA_ERROR_INVALID_VALUE;
     MINE(st); say("peer(%d, %d, %zu) ", to == &primary, from == &primary, n); memmove((void *)(uintptr_t)d, (void *)(uintptr_t)s, n), 0)

EXPORT CUresult
cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
  NEED_CONTEXT;
  MINE(s);                                             /* the event may be of any */
  say("wait(%d, %d) ", number(s), e->number);
  for (int i = 0; i < nmade && known(s); i++)          /* a stream that is not captured joins one that is */
    if (e->graph && made[i]->graph == e->graph && !s->graph)
      s->graph = made[i]->graph, s->last = made[i]->last;
  return 0;
}

EXPORT CUresult
cuStreamSetAttribute(CUstream s, int id, const CUlaunchAttributeValue *v)
{
  NEED_CONTEXT;
  MINE(s);
  say("window(%d, %zu, %g, %d, %d) ", number(s), v->window.bytes, (double)v->window.ratio, v->window.hit, v->window.miss);
  return id == CU_LAUNCH_ACCESS_POLICY_WINDOW ? 0 : 1;
}

EXPORT CUresult
cuPointerGetAttribute(void *out, int attribute, CUdeviceptr p)
{
  NEED_CONTEXT;
  if (p == FAKE_NO_MEMORY)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_CONTEXT)
    *(CUcontext *)out = p == FAKE_FOREIGN_MEMORY ? &foreign : p == FAKE_OTHER_DEVICE ? NULL : owner((void *)(uintptr_t)p) ? owner((void *)(uintptr_t)p) : &primary;
  else
    *(int *)out = p == FAKE_OTHER_DEVICE;
  return attribute == CU_POINTER_CONTEXT || attribute == CU_POINTER_DEVICE_ORDINAL ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static char *
at(int type, void *host, CUdeviceptr device)
{
  return type == CU_MEMORY_HOST ? host : (char *)(uintptr_t)device;
}

EXPORT CUresult
cuMemcpy2DAsync_v2(const CUmemcpy2D *c, CUstream s)
{
  NEED_CONTEXT;
  MINE(s);
  say("rows(%d, %zu x %zu, %zu from %zu) ", number(s), c->height, c->width, c->dst.pitch, c->src.pitch);
  for (size_t i = 0; i < c->height; i++)
    memmove(at(c->dst.type, c->dst.host, c->dst.device) + i * c->dst.pitch, at(c->src.type, c->src.host, c->src.device) + i * c->src.pitch,
            c->width);
  return 0;
}

/* ---- graphs ---- */

static CUresult
add(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, char kind)
{
  *out = &g->node[g->n];
  **out = (struct CUgraphNode_st){.number = g->n++, .kind = kind};
  say("%c%d(", kind, (*out)->number);
  for (size_t i = 0; i < n; i++)
    say("%s%d", i ? " " : "", after[i]->number);
  say(") ");
  return 0;
}

FAKE(cuStreamBeginCapture_v2, (CUstream s, int mode),
     MINE(s); say("capture(%d, %d) ", number(s), mode); s->graph = calloc(1, sizeof *s->graph);
     s->last = NULL; fake.graphs += s->graph != NULL, s->graph ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuGraphCreate, (CUgraph *g, unsigned flags), *g = calloc(1, sizeof **g); fake.graphs += *g != NULL, *g ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuGraphDestroy, (CUgraph g), free(g); fake.graphs--, 0)
FAKE(cuGraphAddMemcpyNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, const CUmemcpy3D *p, CUcontext c),
     CUresult r = add(out, g, after, n, 'c'); (*out)->copy = *p, r)
FAKE(cuGraphAddMemsetNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, const CUmemsetParams *p, CUcontext c),
     CUresult r = add(out, g, after, n, 'f'); (*out)->fill = *p, r)
FAKE(cuGraphAddHostNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, const CUhostParams *p),
     CUresult r = add(out, g, after, n, 'h'); (*out)->host = *p, r)
FAKE(cuGraphAddEmptyNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n), , add(out, g, after, n, 'e'))
FAKE(cuGraphKernelNodeSetAttribute, (CUgraphNode n, int id, const CUlaunchAttributeValue *v), say("attribute(%d, %d) ", n->number, id), 0)
FAKE(cuGraphExecDestroy, (CUgraphExec x), free(x); fake.execs--, 0)

/* What is not joined, or was broken, gives no graph. */
EXPORT CUresult
cuStreamEndCapture(CUstream s, CUgraph *out)
{
  NEED_CONTEXT;
  MINE(s);
  *out = s->graph;
  for (int i = nmade - 1; i >= 0; i--)
    if (made[i]->graph == *out)
      made[i]->graph = NULL;
  if (fake.capture_result) {
    free(*out);
    *out = NULL;
    fake.graphs--;
  }
  return fake.capture_result;
}

/* Kernels are said, the rest is done. */
static void
run(CUgraphNode n)
{
  if (n->kind == 'k')
    say("run(%d, %u, %d) ", n->number, n->kernel.grid[0], *(int *)n->kernel.params[3]);
  if (n->kind == 'h')
    n->host.f(n->host.user);
  for (size_t i = 0; n->kind == 'c' && i < n->copy.height; i++)
    memmove(at(n->copy.dst.type, n->copy.dst.host, n->copy.dst.device) + i * n->copy.dst.pitch,
            at(n->copy.src.type, n->copy.src.host, n->copy.src.device) + i * n->copy.src.pitch, n->copy.width);
  for (size_t i = 0; n->kind == 'f' && i < n->fill.width; i++)
    memcpy((char *)(uintptr_t)n->fill.dst + i * n->fill.element, &n->fill.value, n->fill.element);
}

EXPORT CUresult
cuGraphLaunch(CUgraphExec x, CUstream s)
{
  NEED_CONTEXT;
  MINE(s);
  MINE(x);
  say("launch(%d) ", number(s));
  for (int i = 0; !fake.graph_result && i < x->graph.n; i++)
    run(&x->graph.node[i]);
  return fake.graph_result;
}

#ifndef OLD_DRIVER
EXPORT CUresult
cuStreamGetCaptureInfo_v3(CUstream s, int *state, uint64_t *id, CUgraph *g, const CUgraphNode **after, const CUgraphEdge **edges, size_t *n)
{
  static const CUgraphEdge plain;
  NEED_CONTEXT;
  *state = s->graph != NULL;
  *id = 1;
  *g = s->graph;
  *after = &s->last;
  *edges = &plain;
  *n = s->last != NULL;
  return 0;
}

EXPORT CUresult
cuStreamGetCaptureInfo_v2(CUstream s, int *state, uint64_t *id, CUgraph *g, const CUgraphNode **after, size_t *n)
{
  const CUgraphEdge *edges;
  return cuStreamGetCaptureInfo_v3(s, state, id, g, after, &edges, n);
}

FAKE(cuGraphAddKernelNode_v2, (CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t n, const CUkernelParams *p),
     CUresult r = add(out, g, after, n, 'k'); (*out)->kernel = *p, r)

EXPORT CUresult
cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdge *e, size_t n)
{
  NEED_CONTEXT;
  for (size_t i = 0; i < n; i++)
    say("edge(%d, %d, %d, %d) ", from[i]->number, to[i]->number, e[i].from_port, e[i].type);
  return 0;
}

EXPORT CUresult
cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
  NEED_CONTEXT;
  *out = malloc(sizeof **out);
  if (!*out)
    return CUDA_ERROR_OUT_OF_MEMORY;
  (*out)->graph = *g;
  own(*out);
  fake.execs++;
  return 0;
}

FAKE(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec x, CUgraphNode n, const CUkernelParams *p),
     say("set(%d) ", n->number); x->graph.node[n->number].kernel = *p, 0)

/* ---- pools ---- */

FAKE(cuMemPoolCreate, (CUmemoryPool *p, const CUmemPoolProps *o), say("pool(%d, %d, %zu) ", o->type, o->location.type, o->most);
     *p = calloc(1, sizeof **p); own(*p); fake.pools += *p != NULL, *p ? 0 : CUDA_ERROR_OUT_OF_MEMORY)
FAKE(cuMemPoolDestroy, (CUmemoryPool p), MINE(p); free(p); fake.pools--, 0)
FAKE(cuMemPoolSetAttribute, (CUmemoryPool p, int id, void *v), say("keep(%llu) ", *(unsigned long long *)v), id == CU_POOL_RELEASE_THRESHOLD ? 0 : 1)
FAKE(cuMemPoolGetAttribute, (CUmemoryPool p, int id, void *v), *(uint64_t *)v = (uint64_t)id, 0)
FAKE(cuMemPoolTrimTo, (CUmemoryPool p, size_t keep), say("trim(%zu) ", keep), 0)
FAKE(cuMemFreeAsync, (CUdeviceptr p, CUstream s), MINE(p); MINE(s); say("free(%d) ", number(s)); free((void *)(uintptr_t)p); fake.allocations--, 0)

EXPORT CUresult
cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
  MINE(s);
  MINE(pool);
  say("alloc(%d, %zu, %d) ", number(s), n, pool != NULL);
  return cuMemAlloc_v2(p, n);
}

EXPORT CUresult
cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
  return cuMemAllocFromPoolAsync(p, n, NULL, s);
}
#endif
