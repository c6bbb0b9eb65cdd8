#include "device.h"
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

/* The caller may have been built with a shorter or longer struct: take what both know. */
static TilertOptions
options_merge(const TilertOptions *o)
{
  TilertOptions all;
  tilert_options_default(&all);
  if (o && o->size) {
    memcpy(&all, o, o->size < sizeof all ? o->size : sizeof all);
    all.size = sizeof all;
  }
  return all;
}

static int
open_auto(const TilertOptions *o, TilertDevice **out, TilertError *err)
{
  TilertError ignored;
  if (cuda_device_open(0, out, &ignored) == TILERT_OK)
    return TILERT_OK;
  return sim_device_open(o, out, err);
}

static int
open_cuda(const char *spec, TilertDevice **out, TilertError *err)
{
  char *end = NULL;
  long n = 0;
  if (spec[4] == ':')
    n = spec[5] >= '0' && spec[5] <= '9' ? strtol(spec + 5, &end, 10) : -1;
  if (n < 0 || n > 1023 || (end && *end))
    return rt_error_set(err, TILERT_E_ARGUMENT, "device \"%s\": expected cuda:N, N being 0 to 1023", spec);
  return cuda_device_open((int)n, out, err);
}

int
tilert_device_open(const char *spec, const TilertOptions *o, TilertDevice **out, TilertError *err)
{
  NEED(out);
  TilertOptions all = options_merge(o);
  *out = NULL;
  if (!spec || !*spec || !strcmp(spec, "auto"))
    return open_auto(&all, out, err);
  if (!strcmp(spec, "sim"))
    return sim_device_open(&all, out, err);
  if (!strncmp(spec, "cuda", 4) && (spec[4] == 0 || spec[4] == ':'))
    return open_cuda(spec, out, err);
  return rt_error_set(err, TILERT_E_ARGUMENT, "unknown device \"%s\": expected cuda, cuda:N, sim or auto", spec);
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
  return dev->ops->synchronize(dev, err);
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
