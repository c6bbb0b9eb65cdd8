#include "device.h"
#include <stdlib.h>

int
tilert_buffer_create(TilertDevice *dev, size_t bytes, TilertBuffer **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  TilertBuffer *b = malloc(sizeof *b);
  if (!b)
    return error_no_memory(err);
  int status = dev->ops->alloc(dev, bytes ? bytes : 1, &b->address, err);
  if (status) {
    free(b);
    return status;
  }
  b->device = device_retain(dev);
  b->bytes = bytes;
  *out = b;
  return TILERT_OK;
}

void
tilert_buffer_destroy(TilertBuffer *b)
{
  if (!b)
    return;
  b->device->ops->release(b->device, b->address);
  device_release(b->device);
  free(b);
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

/* Without a stream the operation was put on the default one and must be complete on return. */
static int
finish(int status, TilertDevice *d, const TilertStream *s, TilertError *err)
{
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
  status = b->device->ops->write(b->device, b->address + offset, src, bytes, s ? s->native : NULL, err);
  return finish(status, b->device, s, err);
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
  status = b->device->ops->read(b->device, dst, b->address + offset, bytes, s ? s->native : NULL, err);
  return finish(status, b->device, s, err);
}

int
tilert_buffer_copy(TilertBuffer *dst, size_t dst_offset, TilertBuffer *src, size_t src_offset, size_t bytes,
                   TilertStream *s, TilertError *err)
{
  NEED(dst);
  NEED(src);
  int status = check_range(dst, dst_offset, bytes, "copy", err);
  if (!status)
    status = check_range(src, src_offset, bytes, "copy", err);
  if (!status)
    status = check_stream(dst, s, err);
  if (!status && dst->device != src->device)
    status = rt_error_set(err, TILERT_E_ARGUMENT, "copy between buffers of different devices");
  if (status || !bytes)
    return status;
  TilertDevice *d = dst->device;
  status = d->ops->copy(d, dst->address + dst_offset, src->address + src_offset, bytes, s ? s->native : NULL, err);
  return finish(status, d, s, err);
}

int
tilert_buffer_fill(TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width, TilertStream *s,
                   TilertError *err)
{
  NEED(b);
  int status = check_range(b, offset, bytes, "fill", err);
  if (!status)
    status = check_stream(b, s, err);
  if (!status && ((width != 1 && width != 2 && width != 4) || offset % width || bytes % width))
    status = rt_error_set(err, TILERT_E_ARGUMENT,
                       "fill: the width is 1, 2 or 4 and divides offset and size; they are %u, %zu and %zu",
                       width, offset, bytes);
  if (status || !bytes)
    return status;
  TilertDevice *d = b->device;
  status = d->ops->fill(d, b->address + offset, pattern, width, bytes / width, s ? s->native : NULL, err);
  return finish(status, d, s, err);
}
