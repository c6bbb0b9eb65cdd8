/* launch_raw.c - PTX of other compilers: manifests from its own headers, blocks of any shape, dynamic shared memory.
 *
 * PTX says of a parameter only its type: .u64 may be a pointer or a number. So parameters that are not marked .ptr are raw: any
 * argument goes that fits their size. */
#include "device.h"
#include "dtype.h"
#include "sim/sim.h"
#include <string.h>

/* ---- manifests ---- */

typedef struct Derive { TilertManifest *out; size_t max, n; TilertError *err; int status; } Derive;

static uint32_t
block_size(const uint32_t d[3])
{
  uint64_t n = (uint64_t)d[0] * d[1] * d[2];
  return n > 1024 ? 1024 : (uint32_t)n;
}

static void
derive_param(const SimParam *p, TilertParam *out)
{
  memcpy(out->name, p->name, sizeof out->name);
  out->kind = p->pointer ? TILERT_PARAM_POINTER : p->tensormap ? TILERT_PARAM_TENSORMAP : TILERT_PARAM_RAW;
  out->size = p->size;
  out->divisible = p->pointer ? 1 : p->align;
  if (!p->pointer)
    memcpy(out->dtype, p->type, sizeof out->dtype);
}

static void
derive_entry(void *user, const SimEntry *e)
{
  Derive *d = user;
  if (d->status || d->n++ >= d->max)
    return;
  TilertManifest *m = &d->out[d->n - 1];
  uint32_t threads = e->reqntid[0] ? block_size(e->reqntid) : e->maxntid[0] ? block_size(e->maxntid) : 32;
  memset(m, 0, sizeof *m);
  memcpy(m->kernel, e->name, sizeof m->kernel);
  m->warps = (threads + 31) / 32;
  m->nparams = e->nparams;
  memcpy(m->block, e->reqntid, sizeof m->block);
  if (e->nparams > TILERT_MAX_PARAMS || e->long_name)
    d->status = rt_error_set(d->err, TILERT_E_UNAVAILABLE, "kernel %s: %d parameters and a name of %d characters are the most", m->kernel,
                             TILERT_MAX_PARAMS, TILERT_NAME_MAX - 1);
  for (uint32_t i = 0; i < e->nparams && !d->status; i++)
    derive_param(&e->params[i], &m->params[i]);
}

int
tilert_manifest_derive(const char *ptx, size_t len, TilertManifest *out, size_t max, size_t *n, TilertError *err)
{
  NEED(ptx || !len);
  NEED(out || !max);
  NEED(n);
  Derive d = {out, max, 0, err, TILERT_OK};
  SimError e = {.kind = SIM_OK};
  *n = 0;
  if (sim_entries(ptx, len, derive_entry, &d, &e))
    return rt_error_set(err, e.kind == SIM_E_MEMORY ? TILERT_E_MEMORY : TILERT_E_MODULE, "PTX line %u: %s", e.ptx_line, e.message);
  *n = d.n;
  return d.status;
}

/* ---- arguments ---- */

static int
does_not_fit(const ArgCheck *c, const char *what)
{
  return rt_error_set(c->err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s, %u bytes): %s does not fit", c->kernel->manifest.kernel,
                      c->index, c->param->name, c->param->size, what);
}

static int
pack_address(const ArgCheck *c, const TilertArg *arg, unsigned char *at)
{
  uint64_t address = arg->u.pointer;
  if (c->param->size != 8)
    return does_not_fit(c, "an address");
  if (arg->kind == TILERT_ARG_BUFFER) {
    if (launch_check_buffer(c, arg->u.buffer))
      return TILERT_E_ARGUMENT;
    address = arg->u.buffer->address;
  }
  memcpy(at, &address, 8);
  return TILERT_OK;
}

static int
pack_float(const ArgCheck *c, double v, unsigned char *at)
{
  const TilertParam *p = c->param;
  Dtype t = rt_dtype_find(p->dtype);
  if (!t)                              /* .b32 may be anything */
    t = p->size == 8 ? DTYPE_F64 : p->size == 4 ? DTYPE_F32 : DTYPE_NONE;
  if (!t || rt_dtype_info(t)->kind != KIND_FLOAT)
    return does_not_fit(c, "a floating-point number");
  uint64_t bits = dtype_encode_float(t, v);
  memcpy(at, &bits, p->size);
  return TILERT_OK;
}

static int
pack_int(const ArgCheck *c, int64_t v, unsigned char *at)
{
  Dtype t = rt_dtype_find(c->param->dtype);
  uint32_t size = c->param->size, bits = 8 * size;
  if (t && rt_dtype_info(t)->kind == KIND_FLOAT)
    return pack_float(c, (double)v, at);
  if (size > 8 || (size < 8 && (v < -(1ll << (bits - 1)) || v >= 1ll << bits)))
    return does_not_fit(c, "an integer");
  memcpy(at, &v, size);
  return TILERT_OK;
}

int
launch_pack_raw(const ArgCheck *c, const TilertArg *arg, unsigned char *at)
{
  switch (arg->kind) {
  case TILERT_ARG_BUFFER: case TILERT_ARG_POINTER: return pack_address(c, arg, at);
  case TILERT_ARG_INT: return pack_int(c, arg->u.i, at);
  case TILERT_ARG_FLOAT: return pack_float(c, arg->u.f, at);
  default: return does_not_fit(c, "an argument of this kind");
  }
}

/* ---- shapes ---- */

int
tilert_launch_set_shape(TilertLaunch *l, const uint32_t block[3], uint32_t dynamic_shared, TilertError *err)
{
  NEED(l);
  NEED(block);
  TilertKernel *k = l->kernel;
  const TilertDeviceInfo *info = &k->device->info;
  uint64_t n = (uint64_t)block[0] * block[1] * block[2];
  if (n == 0 || n > 1024 || block[2] > 64)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: a block of %u x %u x %u threads: 1 to 1024 are possible, and 64 along z",
                        k->manifest.kernel, block[0], block[1], block[2]);
  if (dynamic_shared > info->shared_max)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s: %u bytes of shared memory; %s has %u per block", k->manifest.kernel,
                        dynamic_shared, info->name, info->shared_max);
  int status = dynamic_shared > k->manifest.shared && k->device->ops->allow_shared ? k->device->ops->allow_shared(k, dynamic_shared, err)
                                                                                  : TILERT_OK;
  if (status)
    return status;
  memcpy(l->block, block, sizeof l->block);
  l->shared = dynamic_shared;
  return TILERT_OK;
}

int
tilert_launch_set_cluster(TilertLaunch *l, const uint32_t cluster[3], TilertError *err)
{
  NEED(l);
  NEED(cluster);
  TilertKernel *k = l->kernel;
  const TilertDeviceInfo *info = &k->device->info;
  uint64_t n = (uint64_t)cluster[0] * cluster[1] * cluster[2];
  if (n == 0 || n > CLUSTER_MOST || cluster[0] > CLUSTER_MOST || cluster[1] > CLUSTER_MOST)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: a cluster of %u x %u x %u blocks: 1 to %d are possible", k->manifest.kernel,
                        cluster[0], cluster[1], cluster[2], CLUSTER_MOST);
  if (info->capability_major < 9)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s: %s has no clusters", k->manifest.kernel, info->name);
  const uint32_t *own = k->manifest.cluster;
  if (own[0] && memcmp(own, cluster, sizeof k->manifest.cluster) != 0)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s was compiled for clusters of %u x %u x %u blocks, not %u x %u x %u",
                        k->manifest.kernel, own[0], own[1], own[2], cluster[0], cluster[1], cluster[2]);
  int status = k->device->ops->allow_cluster ? k->device->ops->allow_cluster(k, (uint32_t)n, err) : TILERT_OK;
  if (!status)
    memcpy(l->cluster, cluster, sizeof l->cluster);
  return status;
}

int
tilert_launch_set_pdl(TilertLaunch *l, int on, TilertError *err)
{
  NEED(l);
  TilertKernel *k = l->kernel;
  int status = TILERT_OK;
  if (on == TILERT_PDL_AUTO)
    on = k->manifest.waits && k->device->info.capability_major >= 9 &&
         (!k->device->ops->allow_cluster || !k->device->ops->allow_cluster(k, 1, NULL));
  if (on && k->device->info.capability_major < 9)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "kernel %s: %s has no programmatic dependent launch", k->manifest.kernel,
                        k->device->info.name);
  if (on && k->device->ops->allow_cluster)
    status = k->device->ops->allow_cluster(k, 1, err);
  if (!status)
    l->pdl = on != 0;
  return status;
}

int
tilert_launch_set_priority(TilertLaunch *l, int priority, TilertError *err)
{
  NEED(l);
  TilertKernel *k = l->kernel;
  int status = priority_fits(k->device, priority, err);
  if (!status && k->device->ops->allow_cluster)
    status = k->device->ops->allow_cluster(k, 1, err);
  if (status)
    return error_prefix(err, status, "kernel %s", k->manifest.kernel);
  l->has_priority = 1;
  l->priority = priority;
  return TILERT_OK;
}

int
tilert_launch_set_window(TilertLaunch *l, const TilertWindow *w, TilertError *err)
{
  NEED(l);
  TilertKernel *k = l->kernel;
  Window window;
  int status = window_of(k->device, w, &window, err);
  if (!status && w && k->device->ops->allow_cluster)
    status = k->device->ops->allow_cluster(k, 1, err);
  if (status)
    return error_prefix(err, status, "kernel %s", k->manifest.kernel);
  l->window = window;
  return TILERT_OK;
}

int
tilert_launch_shaped(TilertStream *s, TilertKernel *k, const uint32_t grid[3], const uint32_t block[3], uint32_t dynamic_shared,
                     const TilertArg *args, size_t nargs, TilertError *err)
{
  NEED(k);
  NEED(block);
  NEED(args || !nargs);
  TilertLaunch l;
  int status = launch_pack(&l, k, grid, args, nargs, err);
  if (!status)
    status = tilert_launch_set_shape(&l, block, dynamic_shared, err);
  return status ? status : tilert_launch_packed(&l, s, err);
}
