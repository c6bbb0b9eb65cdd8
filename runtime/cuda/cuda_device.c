/* cuda_device.c - an NVIDIA GPU as a device.
 *
 * The current context. Driver calls act on the calling thread's current context, and the thread is not ours.
 * cuda_enter makes the device's primary context current for one operation: nothing to do if it is, left current if
 * there was none (so that it is found next time), pushed and popped if the thread uses another. Launching does
 * not even ask: cuLaunchKernel refuses a function of another context than the current one before it does
 * anything, so the launch is tried, and only after such a refusal repeated between cuda_enter and cuda_leave.
 *
 * A lost device. A fault of a kernel comes to light in whatever call the driver is asked next, and from then on every call fails with
 * it. So each launch is noted before it is made (blame.c), what a stream is known to have passed is crossed out when it has been
 * waited for, and the first call that fails with a fault makes of the rest the sentence that this and all later errors begin with.
 */
#include "cuda_device.h"
#include "../spills.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTABLE_CLUSTER = 8 };           /* blocks that every device with clusters has room for */

int
cuda_result(CudaDevice *c, CUresult r, const char *call, TilertError *err)
{
  int status = cuda_check(&c->cu, r, call, err);
  if (!status)
    return TILERT_OK;
  if (status == TILERT_E_FAULT)
    blame_fault(&c->blame);
  return blame_explain(&c->blame, status, err);
}

int
cuda_lacks(const char *symbol, TilertError *err)
{
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "libcuda.so.1 has no %s: the driver is too old", symbol);
}

int
cuda_enter(CudaDevice *c, int *pushed, TilertError *err)
{
  CUcontext now = NULL;
  *pushed = 0;
  int status = TRY(c, CtxGetCurrent, (&now));
  if (status || now == c->context)
    return status;
  if (!now)
    return TRY(c, CtxSetCurrent, (c->context));
  status = TRY(c, CtxPushCurrent, (c->context));
  *pushed = !status;
  return status;
}

void
cuda_leave(CudaDevice *c, int pushed)
{
  CUcontext ignored;
  if (pushed)
    c->cu.CtxPopCurrent(&ignored);
}

static void
cuda_destroy(TilertDevice *d)
{
  CudaDevice *c = cuda_of(d);
  if (!c->wrapped)
    c->cu.PrimaryCtxRelease(c->device);
  device_fini(d);
  blame_destroy(&c->blame);
  free(c);
}

static int
wait_for_all(CudaDevice *c, TilertError *err)
{
  uint64_t before = blame_now(&c->blame);
  int status = TRY(c, CtxSynchronize, ());
  if (!status)
    blame_pass(&c->blame, before, 1, NULL);
  return status;
}

int
cuda_wait_for(CudaDevice *c, CUstream stream, TilertError *err)
{
  uint64_t before = blame_now(&c->blame);
  int status = TRY(c, StreamSynchronize, (stream));
  if (!status)
    blame_pass(&c->blame, before, 0, stream);
  return status;
}

static int
cuda_synchronize(TilertDevice *d, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, wait_for_all(c, err));
}

static int
cuda_stats(TilertDevice *d, TilertStats *out, int reset, TilertError *err)
{
  memset(out, 0, sizeof *out);
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "only the simulator counts what kernels do");
}

static int
alloc_current(CudaDevice *c, size_t bytes, uint64_t *address, TilertError *err)
{
  CUdeviceptr p = 0;
  int status = TRY(c, MemAlloc, (&p, bytes));
  *address = p;
  return status && status != TILERT_E_FAULT ? error_prefix(err, status, "allocation of %zu bytes", bytes) : status;
}

static int
cuda_alloc(TilertDevice *d, size_t bytes, uint64_t *address, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, alloc_current(c, bytes, address, err));
}

static void
cuda_release(TilertDevice *d, uint64_t address)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.MemFree(address));
}

static int
cuda_write(TilertDevice *d, uint64_t dst, const void *src, size_t bytes, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, MemcpyHtoDAsync, (dst, src, bytes, stream)));
}

static int
cuda_read(TilertDevice *d, void *dst, uint64_t src, size_t bytes, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, MemcpyDtoHAsync, (dst, src, bytes, stream)));
}

static int
cuda_copy(TilertDevice *d, uint64_t dst, uint64_t src, size_t bytes, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, MemcpyDtoDAsync, (dst, src, bytes, stream)));
}

static int
fill_current(CudaDevice *c, uint64_t dst, uint32_t pattern, uint32_t width, size_t count, CUstream stream,
             TilertError *err)
{
  switch (width) {
  case 1: return TRY(c, MemsetD8Async, (dst, (unsigned char)pattern, count, stream));
  case 2: return TRY(c, MemsetD16Async, (dst, (unsigned short)pattern, count, stream));
  default: return TRY(c, MemsetD32Async, (dst, pattern, count, stream));
  }
}

static int
cuda_fill(TilertDevice *d, uint64_t dst, uint32_t pattern, uint32_t width, size_t count, void *stream,
          TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, fill_current(c, dst, pattern, width, count, stream, err));
}

/* The log of the driver's compiler says which PTX line it rejects and why. */
static int
jit_failed(int status, const char *log, TilertError *err)
{
  status = status == TILERT_E_DRIVER ? TILERT_E_MODULE : status;
  if (!status || !err)
    return status;
  err->status = status;
  size_t n = strlen(err->message);
  if (log[0])
    snprintf(err->message + n, sizeof err->message - n, "\n%s", log);
  return status;
}

/* A module is a library where the driver has these: it compiles PTX of several on as many threads, that of modules one after the other. */
static int
has_libraries(const CudaDevice *c)
{
  return c->cu.LibraryLoadData && c->cu.LibraryUnload && c->cu.LibraryGetModule;
}

static int
module_in(CudaDevice *c, void *native, CUmodule *out, TilertError *err)
{
  *out = has_libraries(c) ? NULL : native;
  return *out ? TILERT_OK : TRY(c, LibraryGetModule, (out, native));
}

/* Code is loaded when it is first asked for, and so it is: what is wrong with it is said here. */
static int
load_library(CudaDevice *c, const void *image, int *options, void **values, unsigned n, void **out, TilertError *err)
{
  CUmodule module;
  int status = TRY(c, LibraryLoadData, ((CUlibrary *)out, image, options, values, n, NULL, NULL, 0));
  if (!status && (status = module_in(c, *out, &module, err))) {
    c->cu.LibraryUnload(*out);
    *out = NULL;
  }
  return status;
}

static int
cuda_module_load(TilertDevice *d, const void *image, size_t len, int careful, void **out, TilertError *err)
{
  enum { LOG = 8192 };
  CudaDevice *c = cuda_of(d);
  char *log = calloc(1, LOG);
  int pushed;
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_GENERATE_LINE_INFO, CU_JIT_OPTIMIZATION_LEVEL};
  void *values[] = {log, (void *)(uintptr_t)(LOG - 1), (void *)(uintptr_t)1, (void *)(uintptr_t)SPILLS_LEVEL};
  const unsigned n = careful ? 4 : 3;
  (void)len;
  if (!log)
    return error_no_memory(err);
  int status = cuda_enter(c, &pushed, err);
  if (!status) {
    status = has_libraries(c) ? load_library(c, image, options, values, n, out, err)
                              : TRY(c, ModuleLoadDataEx, ((CUmodule *)out, image, n, options, values));
    status = jit_failed(status, log, err);
    cuda_leave(c, pushed);
  }
  free(log);
  return status;
}

static void
cuda_module_unload(TilertDevice *d, void *module)
{
  CudaDevice *c = cuda_of(d);
  int pushed;
  if (cuda_enter(c, &pushed, NULL))
    return;
  if (has_libraries(c))
    c->cu.LibraryUnload(module);
  else
    c->cu.ModuleUnload(module);
  cuda_leave(c, pushed);
}

static int
ask_large_clusters(CudaDevice *c, CUfunction f, TilertError *err)
{
  return TRY(c, FuncSetAttribute, (f, CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
}

/* Clusters of more than 8 blocks that a kernel says itself are to be asked for. What an old driver does not know it has not. */
static int
allow_compiled_cluster(CudaDevice *c, CUfunction f, TilertError *err)
{
  int n = 1;
  for (int i = 0, one; n && i < 3; i++)
    n *= c->cu.FuncGetAttribute(&one, CU_FUNC_REQUIRED_CLUSTER_WIDTH + i, f) ? 0 : one;
  return n > PORTABLE_CLUSTER ? ask_large_clusters(c, f, err) : TILERT_OK;
}

/* More than 48 KB of shared memory, static and dynamic together, has to be asked for. */
static int
kernel_current(CudaDevice *c, TilertKernel *k, TilertError *err)
{
  const TilertManifest *m = &k->manifest;
  CUfunction f = NULL;
  CUmodule module;
  int most = 0, local = 0, status = module_in(c, k->module->native, &module, err);
  if (!status)
    status = TRY(c, ModuleGetFunction, (&f, module, m->kernel));
  if (!status && m->shared)
    status = TRY(c, FuncSetAttribute, (f, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)m->shared));
  if (!status)
    status = TRY(c, FuncGetAttribute, (&most, CU_FUNC_MAX_THREADS_PER_BLOCK, f));
  if (!status)
    status = TRY(c, FuncGetAttribute, (&local, CU_FUNC_LOCAL_SIZE_BYTES, f));
  if (!status && c->base.info.capability_major >= 9)
    status = allow_compiled_cluster(c, f, err);
  if (!status)
    status = blame_name(&c->blame, m->kernel, &k->label, err);
  if (status)
    return status == TILERT_E_FAULT ? status : error_prefix(err, status, "kernel %s", m->kernel);
  if ((uint32_t)most < 32 * m->warps)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s wants %u threads; its registers leave room for %d",
                     m->kernel, 32 * m->warps, most);
  k->function = f;
  k->local = (uint32_t)local;
  return TILERT_OK;
}

static int
cuda_kernel_load(TilertKernel *k, TilertError *err)
{
  CudaDevice *c = cuda_of(k->device);
  WITHIN(c, kernel_current(c, k, err));
}

static int
cuda_allow_shared(TilertKernel *k, uint32_t bytes, TilertError *err)
{
  CudaDevice *c = cuda_of(k->device);
  WITHIN(c, TRY(c, FuncSetAttribute, (k->function, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes)));
}

static int
info_current(CudaDevice *c, TilertKernel *k, TilertKernelInfo *out, TilertError *err)
{
  const struct { int attribute; uint32_t *to; } wanted[] = {
    {CU_FUNC_NUM_REGS, &out->registers}, {CU_FUNC_LOCAL_SIZE_BYTES, &out->local_bytes},
    {CU_FUNC_SHARED_SIZE_BYTES, &out->static_shared}, {CU_FUNC_MAX_THREADS_PER_BLOCK, &out->max_threads},
  };
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++) {
    int v = 0;
    status = TRY(c, FuncGetAttribute, (&v, wanted[i].attribute, k->function));
    *wanted[i].to = (uint32_t)v;
  }
  return status;
}

static int
cuda_kernel_info(TilertKernel *k, TilertKernelInfo *out, TilertError *err)
{
  CudaDevice *c = cuda_of(k->device);
  WITHIN(c, info_current(c, k, out, err));
}

static int
cuda_kernel_occupancy(TilertKernel *k, uint32_t *blocks, TilertError *err)
{
  CudaDevice *c = cuda_of(k->device);
  int threads = (int)(32 * k->manifest.warps);
  WITHIN(c, TRY(c, OccupancyMaxBlocks, ((int *)blocks, k->function, threads, k->manifest.shared)));
}

/* A size that the kernel was compiled with needs nothing of this, unless not every device has it. */
static int
cuda_allow_cluster(TilertKernel *k, uint32_t blocks, TilertError *err)
{
  CudaDevice *c = cuda_of(k->device);
  if (!c->cu.LaunchKernelEx)
    return cuda_lacks("cuLaunchKernelEx", err);
  if (blocks <= PORTABLE_CLUSTER)
    return TILERT_OK;
  WITHIN(c, ask_large_clusters(c, k->function, err));
}

static int
has_attributes(const TilertLaunch *l)
{
  return l->cluster[0] || l->pdl || l->has_priority || l->window.bytes;
}

CUlaunchAttributeValue
cuda_window(const Window *w)
{
  return (CUlaunchAttributeValue){.window = {(void *)(uintptr_t)w->address, w->bytes, w->ratio, (int)w->hit, (int)w->miss}};
}

unsigned
cuda_attributes(const TilertLaunch *l, int of_node, CUlaunchAttribute out[CUDA_ATTRIBUTES])
{
  unsigned n = 0;
  if (l->cluster[0])
    out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {l->cluster[0], l->cluster[1], l->cluster[2]}};
  if (l->pdl && !of_node)
    out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.flag = 1};
  if (l->has_priority)
    out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_PRIORITY, .value.priority = l->priority};
  if (l->window.bytes)
    out[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ACCESS_POLICY_WINDOW, .value = cuda_window(&l->window)};
  return n;
}

static CUresult
launch_with_attributes(const CudaDevice *c, const TilertLaunch *l, CUstream stream)
{
  CUlaunchAttribute attributes[CUDA_ATTRIBUTES];
  CUlaunchConfig config = {.shared = l->shared, .stream = stream, .attributes = attributes};
  memcpy(config.grid, l->grid, sizeof config.grid);
  memcpy(config.block, l->block, sizeof config.block);
  config.nattributes = cuda_attributes(l, 0, attributes);
  return c->cu.LaunchKernelEx(&config, l->function, (void **)(uintptr_t)l->params, NULL);
}

static inline CUresult
launch_now(const CudaDevice *c, const TilertLaunch *l, CUstream stream)
{
  if (has_attributes(l))
    return launch_with_attributes(c, l, stream);
  return c->cu.LaunchKernel(l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                            l->shared, stream, (void **)(uintptr_t)l->params, NULL);
}

/* It did not run, and if the device is lost, that is not this kernel's doing; unless the driver was told to wait for each launch. */
static int
launch_failed(CudaDevice *c, const TilertLaunch *l, uint64_t number, CUresult r, TilertError *err)
{
  const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && !strcmp(blocking, "1"))
    blame_pass(&c->blame, number - 1, 1, NULL);
  else
    blame_withdraw(&c->blame, number);
  int status = cuda_result(c, r, has_attributes(l) ? "cuLaunchKernelEx" : "cuLaunchKernel", err);
  return blame_is_lost(&c->blame) ? status : error_prefix(err, status, "kernel %s", l->kernel->manifest.kernel);
}

static int
launch_again(CudaDevice *c, const TilertLaunch *l, CUstream stream, uint64_t number, TilertError *err)
{
  int pushed, status = cuda_enter(c, &pushed, err);
  if (status)
    return status;
  CUresult r = launch_now(c, l, stream);
  status = r == CUDA_SUCCESS ? TILERT_OK : launch_failed(c, l, number, r, err);
  if (!status && l->captured)
    blame_withdraw(&c->blame, number);
  cuda_leave(c, pushed);
  return status;
}

static int
cuda_launch(const TilertLaunch *l, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(l->kernel->device);
  uint64_t number = blame_note(&c->blame, l->kernel->label, stream, l->grid);
  CUresult r = launch_now(c, l, stream);
  if (r == CUDA_SUCCESS) {
    if (l->captured)
      blame_withdraw(&c->blame, number);
    return TILERT_OK;
  }
  if (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
    return launch_again(c, l, stream, number, err);
  return launch_failed(c, l, number, r, err);
}

static int
cuda_launch_direct(const TilertKernel *k, const uint32_t grid[3], void **params, void *stream)
{
  CudaDevice *c = cuda_of(k->device);
  const uint32_t *block = k->plan.block;
  const uint64_t number = blame_note(&c->blame, k->label, stream, grid);
  if (c->cu.LaunchKernel(k->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], k->plan.shared, stream,
                         params, NULL) == CUDA_SUCCESS)
    return 1;
  blame_withdraw(&c->blame, number);
  return 0;
}

static CUresult
encode_map(const CudaDriver *cu, const TilertTensor *t, const TilertPixels *p, void *out)
{
  if (p)
    return cu->TensorMapEncodeIm2col(out, t->type, t->rank, t->address, t->extents, t->strides, p->lower, p->upper, p->channels, p->pixels,
                                     t->steps, t->interleave, t->swizzle, t->promotion, t->fill);
  return cu->TensorMapEncodeTiled(out, t->type, t->rank, t->address, t->extents, t->strides, t->box, t->steps, t->interleave, t->swizzle,
                                  t->promotion, t->fill);
}

/* Most drivers need no context for this. */
static int
cuda_tensor_map(TilertDevice *d, const TilertTensor *t, const TilertPixels *p, void *out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  const char *name = p ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
  int pushed, status = TILERT_OK;
  if (p ? !c->cu.TensorMapEncodeIm2col : !c->cu.TensorMapEncodeTiled)
    return cuda_lacks(name, err);
  CUresult r = encode_map(&c->cu, t, p, out);
  if (r == CUDA_ERROR_INVALID_CONTEXT) {
    if ((status = cuda_enter(c, &pushed, err)))
      return status;
    r = encode_map(&c->cu, t, p, out);
    cuda_leave(c, pushed);
  }
  status = cuda_check(&c->cu, r, name, err);
  return status && r == CUDA_ERROR_INVALID_VALUE ? error_prefix(err, TILERT_E_ARGUMENT, "the hardware has no such map") : status;
}

/* No check_pointer: asking the driver about an address costs as much as a launch. */
static const DeviceOps cuda_ops = {
  .destroy = cuda_destroy, .synchronize = cuda_synchronize, .stats = cuda_stats,
  .alloc = cuda_alloc, .release = cuda_release, .write = cuda_write, .read = cuda_read, .copy = cuda_copy,
  .fill = cuda_fill, .tensor_map = cuda_tensor_map,
  .stream_create = cuda_stream_create, .stream_destroy = cuda_stream_destroy,
  .copy_rows = cuda_copy_rows, .copy_peer = cuda_copy_peer, .peer = cuda_peer, .reaches = cuda_reaches, .persisting = cuda_persisting,
  .alloc_host = cuda_alloc_host, .release_host = cuda_release_host, .pin = cuda_pin, .unpin = cuda_unpin, .adopt = cuda_adopt,
  .pool_create = cuda_pool_create, .pool_destroy = cuda_pool_destroy, .pool_info = cuda_pool_info, .pool_trim = cuda_pool_trim,
  .alloc_in = cuda_alloc_in, .release_in = cuda_release_in,
  .stream_synchronize = cuda_stream_synchronize, .stream_adopt = cuda_stream_adopt, .stream_query = cuda_stream_query,
  .stream_wait = cuda_stream_wait, .stream_host = cuda_stream_host, .stream_window = cuda_stream_window,
  .event_create = cuda_event_create, .event_destroy = cuda_event_destroy, .event_record = cuda_event_record,
  .event_synchronize = cuda_event_synchronize, .event_query = cuda_event_query, .event_elapsed = cuda_event_elapsed,
  .module_load = cuda_module_load, .module_unload = cuda_module_unload, .kernel_load = cuda_kernel_load,
  .kernel_info = cuda_kernel_info, .kernel_occupancy = cuda_kernel_occupancy, .allow_shared = cuda_allow_shared,
  .allow_cluster = cuda_allow_cluster, .launch = cuda_launch, .launch_direct = cuda_launch_direct,
  .capture_begin = cuda_capture_begin, .capture_last = cuda_capture_last, .capture_end = cuda_capture_end,
  .graph_create = cuda_graph_create, .graph_destroy = cuda_graph_destroy, .graph_add = cuda_graph_add,
  .exec_create = cuda_exec_create, .exec_destroy = cuda_exec_destroy, .exec_set = cuda_exec_set, .exec_launch = cuda_exec_launch,
  .exec_label = cuda_exec_label,
};

/* What to compile for on each capability. A target with an `a` runs on that capability alone; devices without a
 * row of their own take the newest portable target below them. */
static const char *
target_name(uint32_t major, uint32_t minor)
{
  static const struct { uint32_t least, most; const char *target; } rows[] = {
    {120, 120, "sm_120a"}, {100, 100, "sm_100a"}, {90, 90, "sm_90a"}, {89, 1000, "sm_89"}, {80, 88, "sm_80"},
  };
  uint32_t capability = major * 10 + minor;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (capability >= rows[i].least && capability <= rows[i].most)
      return rows[i].target;
  return "";
}

/* 0 also where the driver does not know of it. */
static uint32_t
attribute_or_0(const CudaDevice *c, int attribute)
{
  int v = 0;
  return c->cu.DeviceGetAttribute(&v, attribute, c->device) == CUDA_SUCCESS && v > 0 ? (uint32_t)v : 0;
}

static int
query(CudaDevice *c, TilertError *err)
{
  TilertDeviceInfo *info = &c->base.info;
  const struct { int attribute; uint32_t *to; } wanted[] = {
    {CU_DEVICE_COMPUTE_CAPABILITY_MAJOR, &info->capability_major},
    {CU_DEVICE_COMPUTE_CAPABILITY_MINOR, &info->capability_minor},
    {CU_DEVICE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
    {CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->shared_max},
    {CU_DEVICE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &info->shared_per_multiprocessor},
    {CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR, &info->registers_per_multiprocessor},
    {CU_DEVICE_MAX_THREADS_PER_MULTIPROCESSOR, &info->threads_per_multiprocessor},
    {CU_DEVICE_CLOCK_RATE, &info->clock_khz},
    {CU_DEVICE_MEMORY_CLOCK_RATE, &info->memory_clock_khz},
    {CU_DEVICE_GLOBAL_MEMORY_BUS_WIDTH, &info->memory_bus_bits},
    {CU_DEVICE_MAX_GRID_DIM_X, &info->grid_max[0]},
    {CU_DEVICE_MAX_GRID_DIM_Y, &info->grid_max[1]},
    {CU_DEVICE_MAX_GRID_DIM_Z, &info->grid_max[2]},
  };
  int v = 0, status = TILERT_OK;
  size_t memory = 0;
  for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++) {
    status = TRY(c, DeviceGetAttribute, (&v, wanted[i].attribute, c->device));
    *wanted[i].to = (uint32_t)v;
  }
  if (!status)
    status = TRY(c, DeviceGetAttribute, (&v, CU_DEVICE_L2_CACHE_SIZE, c->device));
  info->l2 = (uint64_t)v;
  info->l2_persisting_max = attribute_or_0(c, CU_DEVICE_MAX_PERSISTING_L2);
  info->l2_window_max = attribute_or_0(c, CU_DEVICE_MAX_ACCESS_POLICY_WINDOW);
  info->pools = c->cu.MemAllocAsync && c->cu.MemPoolCreate && attribute_or_0(c, CU_DEVICE_MEMORY_POOLS);
  if (!status)
    status = TRY(c, DeviceTotalMem, (&memory, c->device));
  info->memory = memory;
  if (!status)
    status = TRY(c, DriverGetVersion, (&v));
  info->driver = (uint32_t)v;
  if (!status)
    status = TRY(c, DeviceGetName, (info->name, (int)sizeof info->name, c->device));
  snprintf(info->target, sizeof info->target, "%s", target_name(info->capability_major, info->capability_minor));
  return status;
}

static int
priorities(CudaDevice *c, TilertError *err)
{
  int least = 0, greatest = 0, status = TRY(c, CtxGetStreamPriorityRange, (&least, &greatest));
  c->base.info.priority_least = least;
  c->base.info.priority_greatest = greatest;
  return status;
}

static int
enter_once(CudaDevice *c, TilertError *err)
{
  WITHIN(c, priorities(c, err));
}

static int
setup_primary(CudaDevice *c, int ordinal, TilertError *err)
{
  int count = 0, status = TRY(c, DeviceGetCount, (&count));
  if (!status && ordinal >= count)
    status = rt_error_set(err, TILERT_E_UNAVAILABLE, "no device cuda:%d: the driver has %d", ordinal, count);
  if (!status)
    status = TRY(c, DeviceGet, (&c->device, ordinal));
  if (!status)
    status = query(c, err);
  if (!status)
    status = TRY(c, PrimaryCtxRetain, (&c->context, c->device));
  if (status)
    return status;
  status = enter_once(c, err);
  if (status)
    c->cu.PrimaryCtxRelease(c->device);
  return status;
}

static int
device_of_context(CudaDevice *c, TilertError *err)
{
  WITHIN(c, TRY(c, CtxGetDevice, (&c->device)));
}

static int
setup_wrapped(CudaDevice *c, CUcontext context, TilertError *err)
{
  int status = context ? TILERT_OK : TRY(c, CtxGetCurrent, (&context));
  if (!status && !context)
    return rt_error_set(err, TILERT_E_ARGUMENT, "tilert_device_wrap: context is NULL, and this thread has no current one");
  c->context = context;
  c->wrapped = 1;
  if (!status)
    status = device_of_context(c, err);
  if (!status)
    status = query(c, err);
  return status ? status : enter_once(c, err);
}

static int
open_device(int ordinal, CUcontext context, int wrap, TilertDevice **out, TilertError *err)
{
  CudaDevice *c = calloc(1, sizeof *c);
  if (!c)
    return error_no_memory(err);
  blame_init(&c->blame);
  int status = cuda_driver_open(&c->cu, err);
  if (!status)
    status = wrap ? setup_wrapped(c, context, err) : setup_primary(c, ordinal, err);
  if (status) {
    blame_destroy(&c->blame);
    free(c);
    return status;
  }
  device_init(&c->base, &cuda_ops);
  snprintf(c->base.info.spec, sizeof c->base.info.spec, "cuda:%d", wrap ? c->device : ordinal);
  *out = &c->base;
  return TILERT_OK;
}

int
cuda_device_open(int ordinal, TilertDevice **out, TilertError *err)
{
  return open_device(ordinal, NULL, 0, out, err);
}

int
cuda_device_wrap(void *context, TilertDevice **out, TilertError *err)
{
  return open_device(0, context, 1, out, err);
}

int
tilert_cuda_count(void)
{
  CudaDriver cu;
  int n = 0;
  if (cuda_driver_open(&cu, NULL) || cu.DeviceGetCount(&n) != CUDA_SUCCESS)
    return 0;
  return n;
}
