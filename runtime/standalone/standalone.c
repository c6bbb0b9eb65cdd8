/* standalone.c - the device under kernels that were compiled ahead into one source (`tilec --emit=c --standalone`): the context that the
 * caller's stream is of, or, for the default stream, that is current in the thread. scripts/amalgamate.py makes one text of this and of
 * the files of the runtime that pack and check a launch.
 *
 * Contexts are the caller's own, primary or not. What was loaded in one goes with it: a program that destroys a context and goes on gives
 * up what was loaded before (NAME_unload). */
#include "../aot.h"
#include "../cuda/driver.h"
#include "../device.h"
#include "../spills.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A context as a device; the driver's functions are the same in all. */
typedef struct Context {
  TilertDevice base;
  struct Context *next;
  CudaDriver cu;
  CUcontext context;
} Context;

#define CALL(c, name, args) cuda_check(&(c)->cu, (c)->cu.name args, "cu" #name, err)

/* ---- what the rest of the runtime asks for ---- */

TilertDevice *
device_retain(TilertDevice *d)
{
  atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
  return d;
}

void
device_release(TilertDevice *d)
{
  atomic_fetch_sub_explicit(&d->refs, 1, memory_order_relaxed);   /* it stays in the list */
}

uint64_t
tilert_buffer_address(const TilertBuffer *b)
{
  (void)b;
  return 0;
}

TilertBuffer *
buffer_retain(TilertBuffer *b)
{
  return b;
}

void
buffer_release(TilertBuffer *b)
{
  (void)b;
}

int
work_put(TilertDevice *d, TilertStream *s, const Work *w, TilertError *err)
{
  return d->ops->launch(w->launch, s->native, err);
}

int
launch_pack_raw(const ArgCheck *c, const TilertArg *arg, unsigned char *at)
{
  (void)at;
  return launch_wrong_kind(c, arg);
}

/* ---- the device ---- */

/* *pushed: whether leave() has to pop. */
static int
enter(Context *c, int *pushed, TilertError *err)
{
  CUcontext now = NULL;
  int status = CALL(c, CtxGetCurrent, (&now));
  *pushed = !status && now != c->context;
  return *pushed ? CALL(c, CtxPushCurrent, (c->context)) : status;
}

static void
leave(Context *c, int pushed)
{
  CUcontext ignored;
  if (pushed)
    c->cu.CtxPopCurrent(&ignored);
}

static int
context_load(TilertDevice *d, const void *image, size_t len, int careful, void **out, TilertError *err)
{
  enum { LOG = 1024 };
  Context *c = (Context *)d;
  char log[LOG] = "";
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL}, pushed;
  void *values[] = {log, (void *)(uintptr_t)(LOG - 1), (void *)(uintptr_t)SPILLS_LEVEL};
  (void)len;
  int status = enter(c, &pushed, err);
  if (status)
    return status;
  status = CALL(c, ModuleLoadDataEx, ((CUmodule *)out, image, careful ? 3 : 2, options, values));
  leave(c, pushed);
  if (status == TILERT_E_DRIVER)
    status = error_prefix(err, TILERT_E_MODULE, "%s%sthe driver does not take the code", log, *log ? "; " : "");
  return status;
}

static void
context_unload(TilertDevice *d, void *module)
{
  Context *c = (Context *)d;
  int pushed;
  if (enter(c, &pushed, NULL))
    return;
  c->cu.ModuleUnload(module);
  leave(c, pushed);
}

/* More than 48 KB of shared memory, and clusters of more than 8 blocks, have to be asked for. */
static int
find_kernel(Context *c, TilertKernel *k, TilertError *err)
{
  const TilertManifest *m = &k->manifest;
  CUfunction f = NULL;
  const uint32_t blocks = m->cluster[0] * m->cluster[1] * m->cluster[2];
  int most = 0, local = 0, status = CALL(c, ModuleGetFunction, (&f, k->module->native, m->kernel));
  if (!status && m->shared)
    status = CALL(c, FuncSetAttribute, (f, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)m->shared));
  if (!status && blocks > 8)
    status = CALL(c, FuncSetAttribute, (f, CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  if (!status)
    status = CALL(c, FuncGetAttribute, (&most, CU_FUNC_MAX_THREADS_PER_BLOCK, f));
  if (!status)
    status = CALL(c, FuncGetAttribute, (&local, CU_FUNC_LOCAL_SIZE_BYTES, f));
  if (status)
    return error_prefix(err, status, "kernel %s", m->kernel);
  if ((uint32_t)most < 32 * m->warps)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s wants %u threads; its registers leave room for %d", m->kernel,
                        32 * m->warps, most);
  k->function = f;
  k->local = (uint32_t)local;
  return TILERT_OK;
}

static int
context_kernel(TilertKernel *k, TilertError *err)
{
  Context *c = (Context *)k->device;
  int pushed, status = enter(c, &pushed, err);
  if (status)
    return status;
  status = find_kernel(c, k, err);
  leave(c, pushed);
  return status;
}

/* How many programs of a persistent kernel a multiprocessor has room for. */
static int
context_occupancy(TilertKernel *k, uint32_t *blocks, TilertError *err)
{
  Context *c = (Context *)k->device;
  int pushed, n = 0, status = enter(c, &pushed, err);
  if (status)
    return status;
  status = CALL(c, OccupancyMaxBlocks, (&n, k->function, (int)(32 * k->manifest.warps), k->manifest.shared));
  leave(c, pushed);
  *blocks = (uint32_t)n;
  return status;
}

static int
context_map(TilertDevice *d, const TilertTensor *t, const TilertPixels *p, void *out, TilertError *err)
{
  Context *c = (Context *)d;
  int pushed;
  if (p || !c->cu.TensorMapEncodeTiled)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "libcuda.so.1 has no %s: the driver is too old",
                        p ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled");
  int status = enter(c, &pushed, err);
  if (status)
    return status;
  CUresult r = c->cu.TensorMapEncodeTiled(out, t->type, t->rank, t->address, t->extents, t->strides, t->box, t->steps, t->interleave,
                                          t->swizzle, t->promotion, t->fill);
  leave(c, pushed);
  status = cuda_check(&c->cu, r, "cuTensorMapEncodeTiled", err);
  return status && r == CUDA_ERROR_INVALID_VALUE ? error_prefix(err, TILERT_E_ARGUMENT, "the hardware has no such map") : status;
}

static CUresult
launch_now(const Context *c, const TilertLaunch *l, CUstream stream)
{
  return c->cu.LaunchKernel(l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared, stream,
                            (void **)(uintptr_t)l->params, NULL);
}

/* A function of another context than the current one is refused before anything happens: so what is current is asked only then. */
static int
context_launch(const TilertLaunch *l, void *stream, TilertError *err)
{
  Context *c = (Context *)l->kernel->device;
  int pushed, status;
  CUresult r = launch_now(c, l, stream);
  if (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    if ((status = enter(c, &pushed, err)))
      return status;
    r = launch_now(c, l, stream);
    leave(c, pushed);
  }
  status = cuda_check(&c->cu, r, "cuLaunchKernel", err);
  return status ? error_prefix(err, status, "kernel %s", l->kernel->manifest.kernel) : TILERT_OK;
}

static int
context_launch_direct(const TilertKernel *k, const uint32_t grid[3], void **params, void *stream)
{
  const Context *c = (const Context *)k->device;
  const uint32_t *block = k->plan.block;
  return c->cu.LaunchKernel(k->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], k->plan.shared, stream,
                         params, NULL) == CUDA_SUCCESS;
}

static const DeviceOps context_ops = {
  .module_load = context_load, .module_unload = context_unload, .kernel_load = context_kernel,
  .kernel_occupancy = context_occupancy, .tensor_map = context_map, .launch = context_launch,
  .launch_direct = context_launch_direct,
};

/* ---- contexts ---- */

static int
ask(Context *c, CUdevice device, TilertError *err)
{
  TilertDeviceInfo *info = &c->base.info;
  const struct { int attribute; uint32_t *to; } wanted[] = {
    {CU_DEVICE_COMPUTE_CAPABILITY_MAJOR, &info->capability_major}, {CU_DEVICE_COMPUTE_CAPABILITY_MINOR, &info->capability_minor},
    {CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->shared_max}, {CU_DEVICE_MAX_GRID_DIM_X, &info->grid_max[0]},
    {CU_DEVICE_MAX_GRID_DIM_Y, &info->grid_max[1]}, {CU_DEVICE_MAX_GRID_DIM_Z, &info->grid_max[2]},
    {CU_DEVICE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
  };
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++) {
    int v = 0;
    status = CALL(c, DeviceGetAttribute, (&v, wanted[i].attribute, device));
    *wanted[i].to = (uint32_t)v;
  }
  if (!status)
    status = CALL(c, DeviceGetName, (info->name, (int)sizeof info->name, device));
  snprintf(info->spec, sizeof info->spec, "cuda:%d", device);
  return status;
}

/* The device of c's context, which need not be current. */
static int
context_fill(Context *c, CUcontext context, TilertError *err)
{
  CUdevice device = 0;
  int pushed;
  c->base.ops = &context_ops;
  c->context = context;
  atomic_init(&c->base.refs, 1);
  int status = enter(c, &pushed, err);
  if (status)
    return status;
  status = CALL(c, CtxGetDevice, (&device));
  leave(c, pushed);
  return status ? status : ask(c, device, err);
}

/* All contexts that were met, and the driver's functions, which come with the first. They stay: what was loaded refers to them. */
static struct { pthread_mutex_t lock; CudaDriver cu; int open; _Atomic(Context *) first; } all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Context *
context_find(CUcontext context)
{
  Context *c = atomic_load_explicit(&all.first, memory_order_acquire);
  while (c && c->context != context)
    c = c->next;
  return c;
}

/* Under the lock. */
static int
context_add(CUcontext context, Context **out, TilertError *err)
{
  if ((*out = context_find(context)))
    return TILERT_OK;
  Context *c = calloc(1, sizeof *c);
  if (!c)
    return error_no_memory(err);
  c->cu = all.cu;
  int status = context_fill(c, context, err);
  if (status) {
    free(c);
    return status;
  }
  c->next = atomic_load_explicit(&all.first, memory_order_relaxed);
  atomic_store_explicit(&all.first, c, memory_order_release);
  *out = c;
  return TILERT_OK;
}

static int
driver_ready(TilertError *err)
{
  pthread_mutex_lock(&all.lock);
  int status = all.open ? TILERT_OK : cuda_driver_open(&all.cu, err);
  all.open |= !status;
  pthread_mutex_unlock(&all.lock);
  return status;
}

/* Handles of streams that stand for the default one: the context is the current one. */
static int
is_default(CUstream s)
{
  return (uintptr_t)s <= 2;
}

/* The caller's stream as one of ours, which is filled in; function: for messages. */
static int
standalone_stream(CUstream native, const char *function, TilertStream *s, TilertError *err)
{
  CUcontext context = NULL;
  Context *c;
  int status = atomic_load_explicit(&all.first, memory_order_acquire) ? TILERT_OK : driver_ready(err);
  if (!status)
    status = is_default(native) ? cuda_check(&all.cu, all.cu.CtxGetCurrent(&context), "cuCtxGetCurrent", err)
                                : cuda_check(&all.cu, all.cu.StreamGetCtx(native, &context), "cuStreamGetCtx", err);
  if (status)
    return error_prefix(err, status, "%s", function);
  if (!context)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is the default one, and the thread has no current context: "
                        "cuCtxSetCurrent, or cudaSetDevice and cudaFree(0), gives it one", function);
  if (!(c = context_find(context))) {
    pthread_mutex_lock(&all.lock);
    status = context_add(context, &c, err);
    pthread_mutex_unlock(&all.lock);
  }
  if (!status)
    *s = (TilertStream){.device = &c->base, .native = native};
  return status;
}
