#include "device.h"
#include <stdlib.h>

static int
stream_new(TilertDevice *dev, void *native, int owned, TilertStream **out, TilertError *err)
{
  TilertStream *s = malloc(sizeof *s);
  if (!s)
    return error_no_memory(err);
  *s = (TilertStream){device_retain(dev), native, owned};
  *out = s;
  return TILERT_OK;
}

int
tilert_stream_create(TilertDevice *dev, TilertStream **out, TilertError *err)
{
  void *native = NULL;
  NEED(out);
  *out = NULL;
  NEED(dev);
  int status = dev->ops->stream_create(dev, &native, err);
  if (status)
    return status;
  status = stream_new(dev, native, 1, out, err);
  if (status)
    dev->ops->stream_destroy(dev, native);
  return status;
}

int
tilert_stream_wrap(TilertDevice *dev, void *native, TilertStream **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  return stream_new(dev, native, 0, out, err);
}

void
tilert_stream_destroy(TilertStream *s)
{
  if (!s)
    return;
  if (s->owned)
    s->device->ops->stream_destroy(s->device, s->native);
  device_release(s->device);
  free(s);
}

int
tilert_stream_synchronize(TilertStream *s, TilertError *err)
{
  NEED(s);
  return s->device->ops->stream_synchronize(s->device, s->native, err);
}

void *
tilert_stream_native(const TilertStream *s)
{
  return s ? s->native : NULL;
}

int
tilert_event_create(TilertDevice *dev, TilertEvent **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  TilertEvent *e = malloc(sizeof *e);
  if (!e)
    return error_no_memory(err);
  int status = dev->ops->event_create(dev, &e->native, err);
  if (status) {
    free(e);
    return status;
  }
  e->device = device_retain(dev);
  *out = e;
  return TILERT_OK;
}

void
tilert_event_destroy(TilertEvent *e)
{
  if (!e)
    return;
  e->device->ops->event_destroy(e->device, e->native);
  device_release(e->device);
  free(e);
}

int
tilert_event_record(TilertEvent *e, TilertStream *s, TilertError *err)
{
  NEED(e);
  if (s && s->device != e->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the event and the stream are of different devices");
  return e->device->ops->event_record(e->device, e->native, s ? s->native : NULL, err);
}

int
tilert_event_synchronize(TilertEvent *e, TilertError *err)
{
  NEED(e);
  return e->device->ops->event_synchronize(e->device, e->native, err);
}

int
tilert_event_elapsed(TilertEvent *from, TilertEvent *to, float *ms, TilertError *err)
{
  NEED(from);
  NEED(to);
  NEED(ms);
  if (from->device != to->device)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the two events are of different devices");
  int status = tilert_event_synchronize(from, err);
  if (!status)
    status = tilert_event_synchronize(to, err);
  return status ? status : from->device->ops->event_elapsed(from->device, from->native, to->native, ms, err);
}
