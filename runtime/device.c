#include "device.h"
#include "options.h"
#include <stdlib.h>
#include <string.h>

void
tilert_options_default(TilertOptions *o)
{
  if (!o)
    return;
  memset(o, 0, sizeof *o);
  o->size = sizeof *o;
  o->sim_check_races = 1;
}

int
rt_take_options(void *all, size_t known, const void *o, const char *name, TilertError *err)
{
  size_t size;
  if (!o)
    return TILERT_OK;
  memcpy(&size, o, sizeof size);
  options_take(all, known, o, size);
  if (!options_newer(o, size, known))
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, OPTIONS_NEWER, name, size, tilert_version(), known);
}

static int
open_auto(const TilertOptions *o, TilertDevice **out, TilertError *err)
{
  TilertError no_cuda;
  if (cuda_device_open(0, out, &no_cuda) == TILERT_OK)
    return TILERT_OK;
  int status = sim_device_open(o, out, err);
  return status == TILERT_E_UNAVAILABLE ? error_prefix(err, status, "%.160s", no_cuda.message) : status;
}

enum { NUMBER_MOST = 1023 };

/* The number behind the kind's name and ':'; absent if neither is there, -1 if it is none. */
static long
spec_number(const char *spec, size_t name, long absent)
{
  char *end = NULL;
  long n = absent;
  if (spec[name] == ':')
    n = spec[name + 1] >= '0' && spec[name + 1] <= '9' ? strtol(spec + name + 1, &end, 10) : -1;
  return n > NUMBER_MOST || (end && *end) ? -1 : n;
}

static int
open_cuda(const char *spec, TilertDevice **out, TilertError *err)
{
  long n = spec_number(spec, strlen("cuda"), 0);
  if (n < 0)
    return rt_error_set(err, TILERT_E_ARGUMENT, "device \"%s\": expected cuda:N, N being 0 to %d", spec, NUMBER_MOST);
  return cuda_device_open((int)n, out, err);
}

/* The number is that of its multiprocessors. */
static int
open_sim(const char *spec, TilertOptions *o, TilertDevice **out, TilertError *err)
{
  long n = spec_number(spec, strlen("sim"), o->sim_multiprocessors);
  if (n < 0 || (spec[3] && !n))
    return rt_error_set(err, TILERT_E_ARGUMENT, "device \"%s\": expected sim:N, N being 1 to %d multiprocessors", spec, NUMBER_MOST);
  o->sim_multiprocessors = (uint32_t)n;
  return sim_device_open(o, out, err);
}

static int
is_kind(const char *spec, const char *kind)
{
  size_t n = strlen(kind);
  return !strncmp(spec, kind, n) && (spec[n] == 0 || spec[n] == ':');
}

int
tilert_device_open(const char *spec, const TilertOptions *o, TilertDevice **out, TilertError *err)
{
  NEED(out);
  TilertOptions all;
  *out = NULL;
  tilert_options_default(&all);
  if (rt_take_options(&all, sizeof all, o, "TilertOptions", err))
    return TILERT_E_ARGUMENT;
  if (!spec || !*spec || !strcmp(spec, "auto"))
    return open_auto(&all, out, err);
  if (is_kind(spec, "sim"))
    return open_sim(spec, &all, out, err);
  if (is_kind(spec, "cuda"))
    return open_cuda(spec, out, err);
  return rt_error_set(err, TILERT_E_ARGUMENT, "unknown device \"%s\": expected cuda, cuda:N, sim, sim:N or auto", spec);
}

void
device_init(TilertDevice *d, const DeviceOps *ops)
{
  d->ops = ops;
  atomic_init(&d->refs, 1);
  atomic_init(&d->gone, 0);
  d->nvtx = nvtx_open();
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->memory, NULL);
}

void
device_fini(TilertDevice *d)
{
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->memory);
}

int
tilert_device_wrap(void *context, TilertDevice **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  return cuda_device_wrap(context, out, err);
}

TilertDevice *
tilert_device_retain(TilertDevice *dev)
{
  return dev ? device_retain(dev) : NULL;
}

TilertDevice *
device_retain(TilertDevice *d)
{
  atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
  return d;
}

void
device_release(TilertDevice *d)
{
  if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1)
    d->ops->destroy(d);
}

void
tilert_device_close(TilertDevice *dev)
{
  if (dev)
    device_release(dev);
}

const TilertDeviceInfo *
tilert_device_info(const TilertDevice *dev)
{
  return dev ? &dev->info : NULL;
}

int
tilert_device_synchronize(TilertDevice *dev, TilertError *err)
{
  NEED(dev);
  int status = capture_allows_wait(dev, NULL, __func__, err);
  return status ? status : dev->ops->synchronize(dev, err);
}

int
tilert_device_set_persisting(TilertDevice *dev, size_t bytes, TilertError *err)
{
  NEED(dev);
  if (bytes > dev->info.l2_persisting_max)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: bytes is %zu; %s keeps at most %llu for persisting accesses", __func__, bytes,
                        dev->info.name, (unsigned long long)dev->info.l2_persisting_max);
  return dev->ops->persisting(dev, bytes, 0, err);
}

int
tilert_device_reset_persisting(TilertDevice *dev, TilertError *err)
{
  NEED(dev);
  return dev->ops->persisting(dev, 0, 1, err);
}

int
tilert_peer_possible(TilertDevice *dev, TilertDevice *peer, int *out, TilertError *err)
{
  NEED(out);
  *out = 0;
  NEED(dev);
  NEED(peer);
  if (dev == peer)
    *out = 1;
  return dev == peer || dev->ops != peer->ops ? TILERT_OK : dev->ops->peer(dev, peer, 0, out, err);
}

int
tilert_peer_enable(TilertDevice *dev, TilertDevice *peer, TilertError *err)
{
  int can = 0, status = tilert_peer_possible(dev, peer, &can, err);
  if (status || dev == peer)
    return status;
  if (!can)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernels on %s cannot reach the memory of %s%s", dev->info.spec, peer->info.spec,
                        device_apart(dev, peer));
  return dev->ops->peer(dev, peer, 1, &can, err);
}

int
window_of(const TilertDevice *d, const TilertWindow *w, Window *out, TilertError *err)
{
  *out = (Window){0, 0, 0, 0, 0};
  if (!w)
    return TILERT_OK;
  const TilertBuffer *b = w->buffer;
  if (!b || b->device != d)
    return rt_error_set(err, TILERT_E_ARGUMENT, "the window's buffer is %s", b ? "of another device" : "NULL");
  if (w->offset > b->bytes || w->bytes > b->bytes - w->offset || !w->bytes)
    return rt_error_set(err, TILERT_E_ARGUMENT, "a window of %zu bytes at offset %zu of a buffer of %zu", w->bytes, w->offset, b->bytes);
  if (!d->info.is_sim && w->bytes > d->info.l2_window_max)
    return rt_error_set(err, d->info.l2_window_max ? TILERT_E_ARGUMENT : TILERT_E_UNAVAILABLE, "a window of %zu bytes; %s has them of %llu",
                        w->bytes, d->info.name, (unsigned long long)d->info.l2_window_max);
  if (!(w->ratio >= 0 && w->ratio <= 1))
    return rt_error_set(err, TILERT_E_ARGUMENT, "the window's ratio is %g; it is 0 to 1", (double)w->ratio);
  if (w->hit > TILERT_ACCESS_PERSISTING || w->miss >= TILERT_ACCESS_PERSISTING)
    return rt_error_set(err, TILERT_E_ARGUMENT,
                        "the window's hit is %u and its miss %u; they are TILERT_ACCESS_*, and a miss does not persist",
                        w->hit, w->miss);
  *out = (Window){b->address + w->offset, w->bytes, w->ratio, w->hit, w->miss};
  return TILERT_OK;
}

int
priority_fits(const TilertDevice *d, int priority, TilertError *err)
{
  const TilertDeviceInfo *i = &d->info;
  if (priority <= i->priority_least && priority >= i->priority_greatest)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "priority %d: %s has %d, which comes first, to %d", priority, i->name, i->priority_greatest,
                      i->priority_least);
}

int
tilert_device_stats(TilertDevice *dev, TilertStats *out, TilertError *err)
{
  NEED(dev);
  NEED(out);
  return dev->ops->stats(dev, out, 0, err);
}

int
tilert_device_stats_reset(TilertDevice *dev, TilertError *err)
{
  NEED(dev);
  TilertStats ignored;
  return dev->ops->stats(dev, &ignored, 1, err);
}

void
tilert_device_cancel(TilertDevice *dev)
{
  if (dev && dev->ops->cancel)
    dev->ops->cancel(dev);
}

size_t
tilert_device_fault(TilertDevice *dev, char *out, size_t n)
{
  if (n && out)
    *out = 0;
  return dev && dev->ops->fault ? dev->ops->fault(dev, out, out ? n : 0) : 0;
}
