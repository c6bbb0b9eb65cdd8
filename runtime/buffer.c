/* buffer.c - memory of a device, and what else is a buffer: parts, memory of others, memory of the host that the device reaches. */
#include "device.h"
#include <stdlib.h>

/* ---- made and destroyed ---- */

static TilertBuffer *
buffer_new(TilertDevice *dev, BufferKind kind, size_t bytes, TilertError *err)
{
  TilertBuffer *b = calloc(1, sizeof *b);
  if (!b) {
    error_no_memory(err);
    return NULL;
  }
  b->device = dev;
  b->kind = kind;
  b->bytes = bytes;
  atomic_init(&b->uses, 1);
  atomic_init(&b->refs, 1);
  return b;
}

/* ---- which memory is there ---- */

static void
list_enter(TilertBuffer *b)
{
  TilertDevice *d = b->device;
  pthread_mutex_lock(&d->memory);
  b->next = d->buffers;
  b->at = &d->buffers;
  if (b->next)
    b->next->at = &b->next;
  d->buffers = b;
  pthread_mutex_unlock(&d->memory);
}

static void
list_leave(TilertBuffer *b)
{
  pthread_mutex_lock(&b->device->memory);
  if (b->at) {
    *b->at = b->next;
    if (b->next)
      b->next->at = b->at;
    b->at = NULL;
  }
  pthread_mutex_unlock(&b->device->memory);
}

TilertBuffer *
buffer_around(TilertDevice *d, uint64_t address)
{
  pthread_mutex_lock(&d->memory);
  TilertBuffer *b = d->buffers;
  while (b && (address < b->address || address - b->address >= b->bytes))
    b = b->next;
  buffer_retain(b);
  pthread_mutex_unlock(&d->memory);
  return b;
}

/* Of one that was just made: with its memory, or without, as the status says. */
static int
buffer_made(TilertBuffer *b, int status, TilertBuffer **out)
{
  if (status) {
    free(b);
    return status;
  }
  device_retain(b->device);
  if (b->kind != BUFFER_PART && b->kind != BUFFER_WRAPPED)
    list_enter(b);
  *out = b;
  return TILERT_OK;
}

int
tilert_buffer_create(TilertDevice *dev, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  TilertBuffer *b = buffer_new(dev, BUFFER_OWN, bytes, err);
  return b ? buffer_made(b, dev->ops->alloc(dev, bytes ? bytes : 1, &b->address, err), out) : TILERT_E_MEMORY;
}

int
tilert_buffer_create_host(TilertDevice *dev, size_t bytes, uint32_t flags, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  if (flags & ~(uint32_t)TILERT_HOST_WRITE_COMBINED)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: flags is 0x%x; the only one is TILERT_HOST_WRITE_COMBINED", __func__, flags);
  TilertBuffer *b = buffer_new(dev, BUFFER_HOST, bytes, err);
  return b ? buffer_made(b, dev->ops->alloc_host(dev, bytes ? bytes : 1, flags, &b->host, &b->address, err), out) : TILERT_E_MEMORY;
}

int
tilert_buffer_pin(TilertDevice *dev, void *host, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  NEED(host);
  if (!bytes)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: bytes is 0", __func__);
  TilertBuffer *b = buffer_new(dev, BUFFER_PINNED, bytes, err);
  if (!b)
    return TILERT_E_MEMORY;
  b->host = host;
  return buffer_made(b, dev->ops->pin(dev, host, bytes, &b->address, err), out);
}

int
tilert_buffer_wrap(TilertDevice *dev, uint64_t address, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  if (!address)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: address is 0", __func__);
  int status = dev->ops->adopt(dev, address, bytes, err);
  if (status)
    return error_prefix(err, status, "%s: address 0x%llx", __func__, (unsigned long long)address);
  TilertBuffer *b = buffer_new(dev, BUFFER_WRAPPED, bytes, err);
  if (!b)
    return TILERT_E_MEMORY;
  b->address = address;
  return buffer_made(b, TILERT_OK, out);
}

int
tilert_buffer_part(TilertBuffer *of, size_t offset, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(of);
  if (offset > of->bytes || bytes > of->bytes - offset)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: %zu bytes at offset %zu are outside the buffer of %zu bytes", __func__, bytes, offset,
                        of->bytes);
  TilertBuffer *b = buffer_new(of->device, BUFFER_PART, bytes, err);
  if (!b)
    return TILERT_E_MEMORY;
  atomic_fetch_add_explicit(&of->uses, 1, memory_order_relaxed);
  b->whole = of;
  b->address = of->address + offset;
  b->host = of->host ? (char *)of->host + offset : NULL;
  return buffer_made(b, TILERT_OK, out);
}

TilertBuffer *
buffer_retain(TilertBuffer *b)
{
  if (b)
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}

void
buffer_release(TilertBuffer *b)
{
  if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
    return;
  device_release(b->device);
  free(b);
}

static void
give_back(TilertBuffer *b)
{
  TilertDevice *d = b->device;
  switch (b->kind) {
  case BUFFER_OWN: d->ops->release(d, b->address); break;
  case BUFFER_HOST: d->ops->release_host(d, b->host); break;
  case BUFFER_PINNED: d->ops->unpin(d, b->host); break;
  case BUFFER_ORDERED:
    d->ops->release_in(d, b->pool ? b->pool->native : NULL, b->address, b->bytes ? b->bytes : 1, b->stream->native, NULL);
    break;
  case BUFFER_PART: case BUFFER_WRAPPED: break;
  }
}

/* The memory is gone: graphs that look at the count look again. */
static void
buffer_gone(TilertBuffer *b)
{
  TilertBuffer *whole = b->whole;
  TilertPool *pool = b->pool;
  TilertStream *stream = b->stream;
  list_leave(b);
  atomic_store_explicit(&b->gone, 1, memory_order_release);
  atomic_fetch_add_explicit(&b->device->gone, 1, memory_order_release);
  buffer_release(b);
  tilert_buffer_destroy(whole);
  tilert_pool_destroy(pool);
  tilert_stream_destroy(stream);
}

void
tilert_buffer_destroy(TilertBuffer *b)
{
  if (!b || atomic_fetch_sub_explicit(&b->uses, 1, memory_order_acq_rel) != 1)
    return;
  give_back(b);
  buffer_gone(b);
}

uint64_t
tilert_buffer_address(const TilertBuffer *b)
{
  return b ? b->address : 0;
}

size_t
tilert_buffer_size(const TilertBuffer *b)
{
  return b ? b->bytes : 0;
}

void *
tilert_buffer_host(const TilertBuffer *b)
{
  return b ? b->host : NULL;
}

/* ---- in the order of a stream ---- */

static int
has_pools(const TilertDevice *d, TilertError *err)
{
  return d->info.pools ? TILERT_OK : rt_error_set(err, TILERT_E_UNAVAILABLE, "%s, or its driver, has no memory pools", d->info.name);
}

int
tilert_pool_create(TilertDevice *dev, const TilertPoolOptions *o, TilertPool **out, TilertError *err)
{
  TilertPoolOptions all = {.size = sizeof all};
  NEED(out);
  *out = NULL;
  NEED(dev);
  int status = rt_take_options(&all, sizeof all, o, "TilertPoolOptions", err);
  if (!status)
    status = has_pools(dev, err);
  if (status)
    return status;
  TilertPool *p = calloc(1, sizeof *p);
  if (!p)
    return error_no_memory(err);
  status = dev->ops->pool_create(dev, &all, &p->native, err);
  if (status) {
    free(p);
    return status;
  }
  p->device = device_retain(dev);
  atomic_init(&p->refs, 1);
  *out = p;
  return TILERT_OK;
}

void
tilert_pool_destroy(TilertPool *p)
{
  if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
    return;
  p->device->ops->pool_destroy(p->device, p->native);
  device_release(p->device);
  free(p);
}

int
tilert_pool_info(TilertPool *p, TilertPoolInfo *out, TilertError *err)
{
  NEED(p);
  NEED(out);
  *out = (TilertPoolInfo){0, 0, 0, 0};
  return p->device->ops->pool_info(p->device, p->native, out, err);
}

int
tilert_pool_trim(TilertPool *p, uint64_t keep, TilertError *err)
{
  NEED(p);
  return p->device->ops->pool_trim(p->device, p->native, keep, err);
}

static int
not_in_captures(const TilertStream *s, const char *function, TilertError *err)
{
  if (!tilert_stream_capturing(s))
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is being captured; memory of graphs is allocated before", function);
}

int
tilert_buffer_create_in(TilertStream *s, TilertPool *p, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(s);
  TilertDevice *d = s->device;
  if (p && p->device != d)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is of %s, the pool of %s%s", __func__, d->info.spec, p->device->info.spec,
                        device_apart(d, p->device));
  int status = has_pools(d, err);
  if (!status)
    status = not_in_captures(s, __func__, err);
  TilertBuffer *b = status ? NULL : buffer_new(d, BUFFER_ORDERED, bytes, err);
  if (!b)
    return status ? status : TILERT_E_MEMORY;
  status = buffer_made(b, d->ops->alloc_in(d, p ? p->native : NULL, bytes ? bytes : 1, s->native, &b->address, err), out);
  if (status)
    return status;
  b->stream = stream_retain(s);
  b->pool = p;
  if (p)
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return TILERT_OK;
}

int
tilert_buffer_destroy_in(TilertBuffer *b, TilertStream *s, TilertError *err)
{
  NEED(b);
  NEED(s);
  if (b->kind != BUFFER_ORDERED)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: b was not created in a stream (tilert_buffer_create_in)", __func__);
  if (s->device != b->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream and the buffer are of different devices", __func__);
  if (atomic_load(&b->uses) != 1)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: parts of b are there", __func__);
  int status = not_in_captures(s, __func__, err);
  if (!status)
    status = s->device->ops->release_in(s->device, b->pool ? b->pool->native : NULL, b->address, b->bytes ? b->bytes : 1, s->native, err);
  if (!status)
    buffer_gone(b);
  return status;
}

/* ---- copies and fills ---- */

static int
check_range(const TilertBuffer *b, size_t offset, size_t bytes, const char *what, TilertError *err)
{
  if (offset <= b->bytes && bytes <= b->bytes - offset)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s of %zu bytes at offset %zu is outside the buffer of %zu bytes",
                   what, bytes, offset, b->bytes);
}

static int
check_stream(const TilertBuffer *b, const TilertStream *s, TilertError *err)
{
  if (!s || s->device == b->device)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "the stream and the buffer are of different devices");
}

/* All that is in streams of the buffer's device, which do not wait for the default one, nor it for them. Where something is being captured
 * nothing may wait. */
static int
wait_for_streams(const TilertBuffer *b, TilertError *err)
{
  if (!b || capture_allows_wait(b->device, NULL, __func__, NULL))
    return TILERT_OK;
  return b->device->ops->synchronize(b->device, err);
}

/* Without a stream the operation comes behind all that was put into any, and is complete on return. */
static int
put(TilertDevice *d, TilertStream *s, const Work *w, TilertError *err)
{
  int status = s ? TILERT_OK : wait_for_streams(w->src, err);
  if (!status && !s && !(w->src && w->dst && w->src->device == w->dst->device))
    status = wait_for_streams(w->dst, err);
  if (!status)
    status = work_put(d, s, w, err);
  return status || s ? status : d->ops->stream_synchronize(d, NULL, err);
}

int
tilert_buffer_write(TilertBuffer *b, size_t offset, const void *src, size_t bytes, TilertStream *s, TilertError *err)
{
  NEED(b);
  NEED(src || !bytes);
  int status = check_range(b, offset, bytes, "write", err);
  if (!status)
    status = check_stream(b, s, err);
  if (status || !bytes)
    return status;
  const Copy c = {{b->address + offset, 0, 0}, {(uintptr_t)src, 0, 1}, bytes, 1};
  return put(b->device, s, &(Work){.kind = TILERT_NODE_COPY, .dst = b, .copy = c}, err);
}

int
tilert_buffer_read(TilertBuffer *b, size_t offset, void *dst, size_t bytes, TilertStream *s, TilertError *err)
{
  NEED(b);
  NEED(dst || !bytes);
  int status = check_range(b, offset, bytes, "read", err);
  if (!status)
    status = check_stream(b, s, err);
  if (status || !bytes)
    return status;
  const Copy c = {{(uintptr_t)dst, 0, 1}, {b->address + offset, 0, 0}, bytes, 1};
  return put(b->device, s, &(Work){.kind = TILERT_NODE_COPY, .src = b, .copy = c}, err);
}

int
tilert_buffer_copy(TilertBuffer *dst, size_t dst_offset, TilertBuffer *src, size_t src_offset, size_t bytes,
                   TilertStream *s, TilertError *err)
{
  NEED(dst);
  NEED(src);
  TilertDevice *d = s && s->device == src->device ? src->device : dst->device;
  int status = check_range(dst, dst_offset, bytes, "copy", err);
  if (!status)
    status = check_range(src, src_offset, bytes, "copy", err);
  if (!status)
    status = check_stream(d == dst->device ? dst : src, s, err);
  if (!status && dst->device->ops != src->device->ops)
    status = rt_error_set(err, TILERT_E_ARGUMENT,
                          "copy between buffers of different devices: dst is of %s, src of %s, which share no memory",
                          dst->device->info.spec, src->device->info.spec);
  if (status || !bytes)
    return status;
  const Copy c = {{dst->address + dst_offset, 0, 0}, {src->address + src_offset, 0, 0}, bytes, 1};
  return put(d, s, &(Work){.kind = TILERT_NODE_COPY, .dst = dst, .src = src, .copy = c}, err);
}

/* One side of a copy of rows. */
static int
rows_of(const TilertRows *r, const char *name, size_t width, size_t height, Rows *out, TilertError *err)
{
  const size_t most = SIZE_MAX / 4;
  const size_t bytes = !height || !width ? 0 : (height - 1) * r->pitch + width;
  if (!r->buffer == !r->host)
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "copy of rows: %s has %s", name, r->host ? "a buffer and a host address" : "neither a buffer nor"
                        " a host address");
  if (width > most || (height > 1 && r->pitch < width) || (height > 1 && r->pitch > most / height))
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "copy of rows: %s has a pitch of %zu bytes for %zu rows of %zu bytes", name, r->pitch, height,
                        width);
  if (r->buffer && (r->offset > r->buffer->bytes || bytes > r->buffer->bytes - r->offset))
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "copy of rows: %s: %zu rows of %zu bytes, %zu apart, at offset %zu are outside the buffer of %zu"
                        " bytes", name, height, width, r->pitch, r->offset, r->buffer->bytes);
  *out = (Rows){r->buffer ? r->buffer->address + r->offset : (uintptr_t)r->host + r->offset, height > 1 ? r->pitch : width, !r->buffer};
  return TILERT_OK;
}

int
copy_work(const TilertRows *dst, const TilertRows *src, size_t width, size_t height, Work *out, TilertError *err)
{
  Copy c = {.width = width, .height = height};
  int status = rows_of(dst, "dst", width, height, &c.dst, err);
  if (!status)
    status = rows_of(src, "src", width, height, &c.src, err);
  if (!status && !dst->buffer && !src->buffer)
    status = rt_error_set(err, TILERT_E_ARGUMENT, "copy of rows: neither dst nor src is a buffer");
  if (!status && dst->buffer && src->buffer && dst->buffer->device != src->buffer->device)
    status = rt_error_set(err, TILERT_E_ARGUMENT, "copy of rows: dst is of %s, src of %s%s", dst->buffer->device->info.spec,
                          src->buffer->device->info.spec, device_apart(dst->buffer->device, src->buffer->device));
  *out = (Work){.kind = TILERT_NODE_COPY, .dst = dst->buffer, .src = src->buffer, .copy = c};
  return status;
}

int
tilert_copy_rows(const TilertRows *dst, const TilertRows *src, size_t width, size_t height, TilertStream *s, TilertError *err)
{
  NEED(dst);
  NEED(src);
  Work w;
  int status = copy_work(dst, src, width, height, &w, err);
  const TilertBuffer *b = dst->buffer ? dst->buffer : src->buffer;
  if (!status)
    status = check_stream(b, s, err);
  return status || !width || !height ? status : put(b->device, s, &w, err);
}

int
fill_work(TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width, Work *out, TilertError *err)
{
  int status = check_range(b, offset, bytes, "fill", err);
  if (!status && ((width != 1 && width != 2 && width != 4) || offset % width || bytes % width))
    status = rt_error_set(err, TILERT_E_ARGUMENT,
                       "fill: the width is 1, 2 or 4 and divides offset and size; they are %u, %zu and %zu",
                       width, offset, bytes);
  *out = (Work){.kind = TILERT_NODE_FILL, .dst = b, .at = b->address + offset, .pattern = pattern, .width = width,
                .count = width ? bytes / width : 0};
  return status;
}

int
tilert_buffer_fill(TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width, TilertStream *s,
                   TilertError *err)
{
  NEED(b);
  Work w;
  int status = fill_work(b, offset, bytes, pattern, width, &w, err);
  if (!status)
    status = check_stream(b, s, err);
  return status || !bytes ? status : put(b->device, s, &w, err);
}
