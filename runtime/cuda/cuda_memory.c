/* cuda_memory.c - memory beyond plain allocations: of the host, of others, of pools, of other devices. */
#include "cuda_device.h"
#include <string.h>

/* ---- copies ---- */

static CUplace2D
place(const Rows *r)
{
  return (CUplace2D){.type = r->host ? CU_MEMORY_HOST : CU_MEMORY_DEVICE, .host = r->host ? (void *)(uintptr_t)r->address : NULL,
                     .device = r->host ? 0 : r->address, .pitch = r->pitch};
}

int
cuda_copy_rows(TilertDevice *d, const Copy *c, void *stream, TilertError *err)
{
  CudaDevice *dev = cuda_of(d);
  const CUmemcpy2D copy = {place(&c->src), place(&c->dst), c->width, c->height};
  WITHIN(dev, TRY(dev, Memcpy2DAsync, (&copy, stream)));
}

int
cuda_copy_peer(TilertDevice *d, TilertDevice *to, uint64_t dst, TilertDevice *from, uint64_t src, size_t bytes, void *stream,
               TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, MemcpyPeerAsync, (dst, cuda_of(to)->context, src, cuda_of(from)->context, bytes, stream)));
}

/* Of a context's memory, not of a GPU's: another context there has addresses of its own. */
int
cuda_reaches(TilertDevice *d, TilertDevice *other)
{
  CudaDevice *c = cuda_of(d);
  const CUcontext wanted = cuda_of(other)->context;
  for (int i = 0; i < PEERS; i++) {
    CUcontext at = atomic_load_explicit(&c->peers[i], memory_order_relaxed);
    if (!at || at == wanted)
      return at != NULL;
  }
  return 0;
}

static int
add_peer(CudaDevice *c, CudaDevice *other, TilertError *err)
{
  for (int i = 0; i < PEERS; i++) {
    CUcontext there = NULL;
    if (atomic_compare_exchange_strong(&c->peers[i], &there, other->context) || there == other->context)
      return TILERT_OK;
  }
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "tilert_peer_enable: %s reaches %d contexts already", c->base.info.spec, PEERS);
}

static int
enable_peer(CudaDevice *c, CudaDevice *other, TilertError *err)
{
  CUresult r = c->cu.CtxEnablePeerAccess(other->context, 0);
  int status = r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? TILERT_OK : cuda_result(c, r, "cuCtxEnablePeerAccess", err);
  return status ? status : add_peer(c, other, err);
}

/* The same GPU, opened another time, is reached if its context is the same, and only then. */
int
cuda_peer(TilertDevice *d, TilertDevice *other, int enable, int *can, TilertError *err)
{
  CudaDevice *c = cuda_of(d), *o = cuda_of(other);
  *can = c->context == o->context;
  if (*can || c->device == o->device)
    return *can && enable ? add_peer(c, o, err) : TILERT_OK;
  if (enable) {
    WITHIN(c, enable_peer(c, o, err));
  }
  return TRY(c, DeviceCanAccessPeer, (can, c->device, o->device));
}

static int
persisting_current(CudaDevice *c, size_t bytes, int reset, TilertError *err)
{
  return reset ? TRY(c, CtxResetPersistingL2Cache, ()) : TRY(c, CtxSetLimit, (CU_LIMIT_PERSISTING_L2, bytes));
}

int
cuda_persisting(TilertDevice *d, size_t bytes, int reset, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, persisting_current(c, bytes, reset, err));
}

/* ---- memory of the host ---- */

static int
alloc_host_current(CudaDevice *c, size_t bytes, uint32_t flags, void **host, uint64_t *address, TilertError *err)
{
  const unsigned combined = flags & TILERT_HOST_WRITE_COMBINED ? CU_HOST_WRITECOMBINED : 0;
  CUdeviceptr p = 0;
  int status = TRY(c, MemHostAlloc, (host, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP | combined));
  if (status)
    return status == TILERT_E_FAULT ? status : error_prefix(err, status, "allocation of %zu bytes of the host", bytes);
  status = TRY(c, MemHostGetDevicePointer, (&p, *host, 0));
  if (status)
    c->cu.MemFreeHost(*host);
  *address = p;
  return status;
}

int
cuda_alloc_host(TilertDevice *d, size_t bytes, uint32_t flags, void **host, uint64_t *address, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, alloc_host_current(c, bytes, flags, host, address, err));
}

void
cuda_release_host(TilertDevice *d, void *host)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.MemFreeHost(host));
}

static int
pin_current(CudaDevice *c, void *host, size_t bytes, uint64_t *address, TilertError *err)
{
  CUdeviceptr p = 0;
  int status = TRY(c, MemHostRegister, (host, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP));
  if (status)
    return status == TILERT_E_FAULT ? status : error_prefix(err, status, "tilert_buffer_pin: %zu bytes at host", bytes);
  status = TRY(c, MemHostGetDevicePointer, (&p, host, 0));
  if (status)
    c->cu.MemHostUnregister(host);
  *address = p;
  return status;
}

int
cuda_pin(TilertDevice *d, void *host, size_t bytes, uint64_t *address, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, pin_current(c, host, bytes, address, err));
}

void
cuda_unpin(TilertDevice *d, void *host)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.MemHostUnregister(host));
}

/* ---- memory of others ---- */

/* Memory of a pool, or that was mapped by hand, has no context, but a device. */
static int
adopt_current(CudaDevice *c, uint64_t address, TilertError *err)
{
  CUcontext of = NULL;
  int ordinal = c->device;
  if (c->cu.PointerGetAttribute(&of, CU_POINTER_CONTEXT, address) == CUDA_SUCCESS && of && of != c->context)
    return rt_error_set(err, TILERT_E_ARGUMENT, "it is memory of another context than the device's");
  if (c->cu.PointerGetAttribute(&ordinal, CU_POINTER_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the driver knows of no memory there");
  if (ordinal >= 0 && ordinal != c->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "it is memory of cuda:%d, not of %s", ordinal, c->base.info.spec);
  return TILERT_OK;
}

int
cuda_adopt(TilertDevice *d, uint64_t address, size_t bytes, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  (void)bytes;
  WITHIN(c, adopt_current(c, address, err));
}

/* ---- pools ---- */

static int
make_pool(CudaDevice *c, const TilertPoolOptions *o, CUmemoryPool *out, TilertError *err)
{
  const CUmemPoolProps props = {.type = CU_POOL_PINNED, .location = {CU_POOL_ON_DEVICE, c->device}, .most = o->limit};
  uint64_t keep = o->keep;
  int status = TRY(c, MemPoolCreate, (out, &props));
  if (status)
    return status;
  status = TRY(c, MemPoolSetAttribute, (*out, CU_POOL_RELEASE_THRESHOLD, &keep));
  if (status)
    c->cu.MemPoolDestroy(*out);
  return status;
}

int
cuda_pool_create(TilertDevice *d, const TilertPoolOptions *o, void **out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, make_pool(c, o, (CUmemoryPool *)out, err));
}

void
cuda_pool_destroy(TilertDevice *d, void *pool)
{
  CudaDevice *c = cuda_of(d);
  WITHIN_QUIETLY(c, c->cu.MemPoolDestroy(pool));
}

static int
info_current(CudaDevice *c, CUmemoryPool pool, TilertPoolInfo *out, TilertError *err)
{
  const struct { int attribute; uint64_t *to; } wanted[] = {
    {CU_POOL_USED_CURRENT, &out->used}, {CU_POOL_USED_HIGH, &out->used_most},
    {CU_POOL_RESERVED_CURRENT, &out->reserved}, {CU_POOL_RESERVED_HIGH, &out->reserved_most},
  };
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
    status = TRY(c, MemPoolGetAttribute, (pool, wanted[i].attribute, wanted[i].to));
  return status;
}

int
cuda_pool_info(TilertDevice *d, void *pool, TilertPoolInfo *out, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, info_current(c, pool, out, err));
}

int
cuda_pool_trim(TilertDevice *d, void *pool, uint64_t keep, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, TRY(c, MemPoolTrimTo, (pool, keep)));
}

static int
alloc_in_current(CudaDevice *c, CUmemoryPool pool, size_t bytes, CUstream stream, uint64_t *address, TilertError *err)
{
  CUdeviceptr p = 0;
  int status = pool ? TRY(c, MemAllocFromPoolAsync, (&p, bytes, pool, stream)) : TRY(c, MemAllocAsync, (&p, bytes, stream));
  *address = p;
  return status && status != TILERT_E_FAULT ? error_prefix(err, status, "allocation of %zu bytes", bytes) : status;
}

int
cuda_alloc_in(TilertDevice *d, void *pool, size_t bytes, void *stream, uint64_t *address, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  WITHIN(c, alloc_in_current(c, pool, bytes, stream, address, err));
}

int
cuda_release_in(TilertDevice *d, void *pool, uint64_t address, size_t bytes, void *stream, TilertError *err)
{
  CudaDevice *c = cuda_of(d);
  (void)pool;
  (void)bytes;
  WITHIN(c, TRY(c, MemFreeAsync, (address, stream)));
}
