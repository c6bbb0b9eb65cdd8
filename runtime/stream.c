#include "device.h"
#include <stdlib.h>

static int
stream_new(TilertDevice *dev, void *native, int owned, TilertStream **out, TilertError *err)
{
  TilertStream *s = malloc(sizeof *s);
  if (!s)
    return error_no_memory(err);
  *s = (TilertStream){.device = device_retain(dev), .native = native, .owned = owned};
  atomic_init(&s->refs, 1);
  atomic_init(&s->capture, NULL);
  *out = s;
  return TILERT_OK;
}

int
tilert_stream_create(TilertDevice *dev, TilertStream **out, TilertError *err)
{
  return tilert_stream_create_priority(dev, 0, out, err);
}

int
tilert_stream_create_priority(TilertDevice *dev, int priority, TilertStream **out, TilertError *err)
{
  void *native = NULL;
  NEED(out);
  *out = NULL;
  NEED(dev);
  int status = priority_fits(dev, priority, err);
  if (!status)
    status = dev->ops->stream_create(dev, priority, &native, err);
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
  int status = dev->ops->stream_adopt(dev, native, err);
  return status ? status : stream_new(dev, native, 0, out, err);
}

TilertStream *
stream_retain(TilertStream *s)
{
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

void
tilert_stream_destroy(TilertStream *s)
{
  if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
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
  int status = capture_allows_wait(s->device, s, __func__, err);
  return status ? status : s->device->ops->stream_synchronize(s->device, s->native, err);
}

int
tilert_stream_query(TilertStream *s, int *done, TilertError *err)
{
  NEED(done);
  *done = 0;
  NEED(s);
  int status = capture_allows_wait(s->device, s, __func__, err);
  return status ? status : s->device->ops->stream_query(s->device, s->native, done, err);
}

int
tilert_stream_wait(TilertStream *s, TilertEvent *e, TilertError *err)
{
  int captured = 0;
  NEED(e);
  if (s && s->device->ops != e->device->ops)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is of %s, the event of %s", __func__, s->device->info.spec,
                        e->device->info.spec);
  int status = capture_wait(s, e, &captured, err);
  if (status || (captured && !e->device->ops->capture_begin))
    return status;
  TilertDevice *d = s ? s->device : e->device;
  return d->ops->stream_wait(d, s ? s->native : NULL, e->native, err);
}

int
tilert_stream_host(TilertStream *s, void (*f)(void *user), void *user, TilertError *err)
{
  NEED(s);
  NEED(f);
  return work_put(s->device, s, &(Work){.kind = TILERT_NODE_HOST, .call = f, .user = user}, err);
}

int
tilert_stream_set_window(TilertStream *s, const TilertWindow *w, TilertError *err)
{
  NEED(s);
  Window window;
  int status = window_of(s->device, w, &window, err);
  return status ? status : s->device->ops->stream_window(s->device, s->native, &window, err);
}

void *
tilert_stream_native(const TilertStream *s)
{
  return s ? s->native : NULL;
}

static int
event_new(TilertDevice *dev, int timed, TilertEvent **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  TilertEvent *e = calloc(1, sizeof *e);
  if (!e)
    return error_no_memory(err);
  int status = dev->ops->event_create(dev, timed, &e->native, err);
  if (status) {
    free(e);
    return status;
  }
  e->device = device_retain(dev);
  *out = e;
  return TILERT_OK;
}

int
tilert_event_create(TilertDevice *dev, TilertEvent **out, TilertError *err)
{
  return event_new(dev, 1, out, err);
}

int
tilert_event_create_untimed(TilertDevice *dev, TilertEvent **out, TilertError *err)
{
  return event_new(dev, 0, out, err);
}

void
tilert_event_destroy(TilertEvent *e)
{
  if (!e)
    return;
  tail_free(e->tail);
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
  int status = capture_event(e, s, err);
  return status ? status : e->device->ops->event_record(e->device, e->native, s ? s->native : NULL, err);
}

int
tilert_event_synchronize(TilertEvent *e, TilertError *err)
{
  NEED(e);
  int status = event_not_captured(e, __func__, err);
  return status ? status : e->device->ops->event_synchronize(e->device, e->native, err);
}

int
tilert_event_query(TilertEvent *e, int *done, TilertError *err)
{
  NEED(done);
  *done = 0;
  NEED(e);
  int status = event_not_captured(e, __func__, err);
  return status ? status : e->device->ops->event_query(e->device, e->native, done, err);
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
