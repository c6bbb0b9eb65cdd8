#include "device.h"
#include "dtype.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
arg_kind_name(uint32_t kind)
{
  static const char *const names[] = {"a buffer", "a pointer", "an integer", "a floating-point number", "bytes", "a tensor"};
  return kind < sizeof names / sizeof *names ? names[kind] : "an argument of unknown kind";
}

int
launch_blame(const ArgCheck *c, int status)
{
  return error_prefix(c->err, status, "kernel %s, argument %zu (%s)", c->kernel->manifest.kernel, c->index, c->param->name);
}

int
launch_wrong_kind(const ArgCheck *c, const TilertArg *arg)
{
  const TilertParam *p = c->param;
  char type[32];
  if (p->kind == TILERT_PARAM_TENSOR)
    snprintf(type, sizeof type, "tensor<%s, %" PRIu32 ">", p->dtype, p->rank);
  else
    snprintf(type, sizeof type, "%s%s", p->kind == TILERT_PARAM_POINTER ? "*" : "",
             p->kind == TILERT_PARAM_TENSORMAP ? "tensor map" : p->dtype);
  return rt_error_set(c->err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s: %s): %s is given", c->kernel->manifest.kernel, c->index,
                      p->name, type, arg_kind_name(arg->kind));
}

int
launch_check_buffer(const ArgCheck *c, const TilertBuffer *b)
{
  TilertDevice *d = c->kernel->device;
  if (b && (b->device == d || (b->device->ops == d->ops && d->ops->reaches(d, b->device))))
    return TILERT_OK;
  rt_error_set(c->err, TILERT_E_ARGUMENT, "the buffer is %s", b ? "of another device" : "NULL");
  return launch_blame(c, TILERT_E_ARGUMENT);
}

static int
not_divisible(const ArgCheck *c, uint64_t value, int pointer)
{
  return rt_error_set(c->err, TILERT_E_ARGUMENT, pointer ? "kernel %s, argument %zu (%s): address 0x%" PRIx64
                   " is not a multiple of %u, which the kernel was compiled for"
                   : "kernel %s, argument %zu (%s): %" PRId64
                   " is not a multiple of %u, which the kernel was compiled for",
                   c->kernel->manifest.kernel, c->index, c->param->name, value, c->param->divisible);
}

/* What is given is null where the kernel was compiled for a pointer, or the other way round. */
static int
wrong_null(const ArgCheck *c, uint64_t address)
{
  const char *why = address ? "it is not null; the kernel was compiled without it"
                    : c->param->null == TILERT_NULL_NEEDED ? "it is null, and the kernel needs it"
                                                           : "it is null, which the kernel was not compiled for";
  return rt_error_set(c->err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s): %s",
                      c->kernel->manifest.kernel, c->index, c->param->name, why);
}

/* A launch of no programs accesses nothing, and there is nothing of an array without elements. */
static int
may_be_null(const TilertLaunch *l, const TilertArg *arg)
{
  return l->empty || arg->kind == TILERT_ARG_BUFFER || arg->reserved == TILERT_NO_ELEMENTS;
}

static int
pack_pointer(const TilertLaunch *l, const ArgCheck *c, const TilertArg *arg, unsigned char *at)
{
  const TilertKernel *k = c->kernel;
  uint64_t address = arg->u.pointer;
  if (arg->kind == TILERT_ARG_BUFFER) {
    if (launch_check_buffer(c, arg->u.buffer))
      return TILERT_E_ARGUMENT;
    address = arg->u.buffer->address;
  } else if (arg->kind != TILERT_ARG_POINTER) {
    return launch_wrong_kind(c, arg);
  } else if (address && k->device->ops->check_pointer && k->device->ops->check_pointer(k->device, address, c->err)) {
    return launch_blame(c, TILERT_E_ARGUMENT);
  }
  if (c->param->null == (address ? TILERT_NULL_ALWAYS : TILERT_NULL_NEVER))
    return wrong_null(c, address);
  if (!address && c->param->null == TILERT_NULL_NEEDED && !may_be_null(l, arg))
    return wrong_null(c, address);
  if (!is_multiple(address, c->param->divisible))
    return not_divisible(c, address, 1);
  memcpy(at, &address, 8);
  return TILERT_OK;
}

static int
pack_scalar(const ArgCheck *c, const TilertArg *arg, Dtype t, unsigned char *at)
{
  uint64_t bits;
  if (arg->kind == TILERT_ARG_INT) {
    if (!dtype_encode_int(t, arg->u.i, &bits))
      return rt_error_set(c->err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s): %" PRId64 " does not fit %s",
                       c->kernel->manifest.kernel, c->index, c->param->name, arg->u.i, c->param->dtype);
    if (rt_dtype_info(t)->kind != KIND_FLOAT && !is_multiple_signed(arg->u.i, c->param->divisible))
      return not_divisible(c, (uint64_t)arg->u.i, 0);
    if (c->param->nonneg && arg->u.i < 0)
      return rt_error_set(c->err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s): %" PRId64
                          " is negative, which the kernel was not compiled for", c->kernel->manifest.kernel, c->index, c->param->name,
                          arg->u.i);
  } else if (arg->kind == TILERT_ARG_FLOAT && rt_dtype_info(t)->kind == KIND_FLOAT) {
    bits = dtype_encode_float(t, arg->u.f);
  } else {
    return launch_wrong_kind(c, arg);
  }
  memcpy(at, &bits, c->param->size); /* little endian, as every host with a CUDA driver is */
  return TILERT_OK;
}

static TilertBuffer *
buffer_of(const TilertArg *arg)
{
  if (arg->kind == TILERT_ARG_TENSOR)
    return arg->u.tensor ? arg->u.tensor->buffer : NULL;
  return arg->kind == TILERT_ARG_BUFFER ? arg->u.buffer : NULL;
}

static int
pack_arg(TilertLaunch *l, size_t index, const TilertArg *arg, TilertError *err)
{
  const TilertKernel *k = l->kernel;
  const uint32_t first = k->first[index];
  unsigned char *at = l->blob + k->offset[first];
  ArgCheck c = {k, &k->manifest.params[first], index, err};
  l->buffer[index] = buffer_of(arg);
  if (c.param->kind == TILERT_PARAM_TENSOR)
    return launch_pack_tensor(l, &c, arg);
  if (arg->kind == TILERT_ARG_BYTES && arg->u.bytes && c.param->kind != TILERT_PARAM_POINTER) {
    memcpy(at, arg->u.bytes, c.param->size);
    return TILERT_OK;
  }
  switch (c.param->kind) {
  case TILERT_PARAM_POINTER: return pack_pointer(l, &c, arg, at);
  case TILERT_PARAM_SCALAR: return pack_scalar(&c, arg, (Dtype)k->dtype[first], at);
  case TILERT_PARAM_RAW: return launch_pack_raw(&c, arg, at);
  case TILERT_PARAM_TENSORMAP: case TILERT_PARAM_TENSOR: case TILERT_PARAM_VIEW: case TILERT_PARAM_GRID: break;
  }
  return launch_wrong_kind(&c, arg);
}

/* Of a pointer, or of the tensor that a part is of. */
static uint64_t
address_of(const TilertLaunch *l, uint32_t param)
{
  uint64_t address;
  if (l->kernel->manifest.params[param].kind == TILERT_PARAM_TENSOR)
    return l->address[param];
  memcpy(&address, l->blob + l->kernel->offset[param], sizeof address);
  return address;
}

static uint32_t
arg_of(const TilertKernel *k, uint32_t param)
{
  uint32_t i = 0;
  while (k->first[i + 1] <= param)
    i++;
  return i;
}

/* Two arguments are one address where the kernel was compiled for two. Null pointers reach nothing. */
static int
check_apart(const TilertLaunch *l, TilertError *err)
{
  const TilertManifest *m = &l->kernel->manifest;
  for (uint32_t i = 0; i < m->nparams; i++) {
    uint64_t address = m->apart[i] ? address_of(l, i) : 0;
    for (uint64_t left = address ? m->apart[i] : 0; left; left &= left - 1) {
      uint32_t j = (uint32_t)__builtin_ctzll(left);
      if (address_of(l, j) == address)
        return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: arguments %u (%s) and %u (%s) are the same address, 0x%" PRIx64
                            "; the kernel was compiled for different ones", m->kernel, arg_of(l->kernel, i), m->params[i].name,
                            arg_of(l->kernel, j), m->params[j].name, address);
    }
  }
  return TILERT_OK;
}

/* Where in a launch's parameters a persistent kernel is told the grid. */
static uint32_t
told_grid(const TilertKernel *k)
{
  return k->offset[k->manifest.nparams - 3];
}

/* Of a persistent kernel as many programs start as the device has room for, which are told the grid. They number its programs by an i32,
 * beyond which even the number behind the last is not to go. */
static int
start_resident(TilertLaunch *l, const uint32_t grid[3], TilertError *err)
{
  const TilertKernel *k = l->kernel;
  const uint64_t plane = (uint64_t)grid[0] * grid[1], most = (uint64_t)INT32_MAX - k->resident;
  if (plane > most || plane * grid[2] > most)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: grid (%u, %u, %u): a persistent kernel has at most %" PRIu64 " programs",
                        k->manifest.kernel, grid[0], grid[1], grid[2], most);
  const uint64_t all = plane * grid[2];
  memcpy(l->blob + told_grid(k), grid, 3 * sizeof *grid);
  l->grid[0] = all < k->resident ? (uint32_t)all : k->resident;
  l->grid[1] = l->grid[2] = 1;
  return TILERT_OK;
}

static inline int
is_empty(const uint32_t grid[3])
{
  return !grid[0] | !grid[1] | !grid[2];
}

int
tilert_launch_set_grid(TilertLaunch *l, const uint32_t grid[3], TilertError *err)
{
  NEED(l);
  NEED(grid);
  const uint32_t *most = l->kernel->device->info.grid_max;
  for (int i = 0; i < 3; i++) {
    if (grid[i] > most[i])
      return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: grid (%u, %u, %u): component %d is more than %u",
                       l->kernel->manifest.kernel, grid[0], grid[1], grid[2], i, most[i]);
  }
  memcpy(l->grid, grid, sizeof l->grid);
  l->empty = is_empty(grid);
  return l->kernel->manifest.persistent ? start_resident(l, grid, err) : TILERT_OK;
}

static int
wrong_count(const TilertKernel *k, size_t nargs, TilertError *err)
{
  return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s takes %u arguments; %zu are given", k->manifest.kernel, k->nargs, nargs);
}

/* ---- the grid of a kernel that says it ---- */

/* What a grid is computed of: arguments, after check_given. */
typedef struct GridGiven { const TilertDevice *device; const TilertArg *args; } GridGiven;

static int64_t
grid_given(const void *user, const GridTerm *t)
{
  const GridGiven *g = user;
  if (t->op == GRID_MULTIPROCESSORS)
    return g->device->info.multiprocessors;
  const TilertArg *a = &g->args[t->value];
  return t->op == GRID_EXTENT ? a->u.tensor->extents[t->dim] : a->u.i;
}

/* A tensor of the right rank for each extent, an integer for each argument that the grid is of. */
static int
check_given(const TilertKernel *k, const TilertArg *args, TilertError *err)
{
  for (uint32_t i = 0; i < k->grid.end[k->grid.axes - 1]; i++) {
    const GridTerm *t = &k->grid.term[i];
    if (t->op != GRID_ARG && t->op != GRID_EXTENT)
      continue;
    const TilertArg *a = &args[t->value];
    ArgCheck c = {k, &k->manifest.params[k->first[t->value]], (size_t)t->value, err};
    if (a->kind != (t->op == GRID_ARG ? TILERT_ARG_INT : TILERT_ARG_TENSOR))
      return launch_wrong_kind(&c, a);
    if (t->op == GRID_EXTENT && (!a->u.tensor || !a->u.tensor->extents || a->u.tensor->rank != c.param->rank))
      return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s): the grid needs its extents; it is no tensor of rank %u",
                          k->manifest.kernel, c.index, c.param->name, c.param->rank);
  }
  return TILERT_OK;
}

int
tilert_kernel_grid(const TilertKernel *k, const TilertArg *args, size_t nargs, uint32_t grid[3], TilertError *err)
{
  int64_t n[3];
  uint32_t axis;
  NEED(k);
  NEED(grid);
  NEED(args || !nargs);
  if (!k->grid.axes)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: no grid is given, and it has no grid clause that says one", k->manifest.kernel);
  if (nargs != k->nargs)
    return wrong_count(k, nargs, err);
  if (check_given(k, args, err))
    return TILERT_E_ARGUMENT;
  const GridGiven given = {k->device, args};
  const char *wrong = grid_eval(&k->grid, grid_given, &given, n, &axis);
  if (wrong)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: its grid along axis %u: %s", k->manifest.kernel, axis, wrong);
  for (int i = 0; i < 3; i++) {
    if (n[i] < 0 || n[i] > k->device->info.grid_max[i])
      return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: with these arguments its grid has %" PRId64 " programs along axis %d; "
                          "0 to %u are possible", k->manifest.kernel, n[i], i, k->device->info.grid_max[i]);
    grid[i] = (uint32_t)n[i];
  }
  return TILERT_OK;
}

static int
set_grid(TilertLaunch *l, const uint32_t grid[3], const TilertArg *args, size_t nargs, TilertError *err)
{
  uint32_t own[3];
  int status = grid ? TILERT_OK : tilert_kernel_grid(l->kernel, args, nargs, own, err);
  return status ? status : tilert_launch_set_grid(l, grid ? grid : own, err);
}

int
tilert_launch_grid(const TilertLaunch *l, uint32_t grid[3], TilertError *err)
{
  NEED(l);
  NEED(grid);
  const TilertKernel *k = l->kernel;
  memcpy(grid, k->manifest.persistent ? (const void *)(l->blob + told_grid(k)) : l->grid, sizeof l->grid);
  return TILERT_OK;
}

/* ---- packing ---- */

/* What a launch has before its arguments. */
static inline void
launch_begin(TilertLaunch *l, TilertKernel *k)
{
  l->kernel = k;
  l->function = k->function;
  memcpy(l->block, k->plan.block, sizeof l->block);
  l->shared = k->plan.shared;
  memset(l->cluster, 0, sizeof l->cluster);
  l->pdl = l->has_priority = l->holds = l->captured = 0;
  l->window.bytes = 0;
  l->mapless = 0;
  for (uint32_t i = 0; !k->plan.plain && i < k->manifest.nparams; i++)   /* else by arg_step */
    l->params[i] = l->blob + k->offset[i];
}

/* The grid, if the plan has what it takes. */
static inline int
plan_gives(const TilertKernel *k, const uint32_t grid[3], const TilertArg *args, uint32_t out[3])
{
  const LaunchPlan *plan = &k->plan;
  const uint32_t *most = k->device->info.grid_max;
  if (!grid && plan->fixed_grid) {
    for (int i = 0; i < 3; i++)
      out[i] = plan->axis[i].number;
    return 1;
  }
  if (grid ? plan->persistent : !plan->knows_grid)
    return 0;
  for (int i = 0; i < 3; i++) {
    const GridStep *s = &plan->axis[i];
    uint64_t n = grid ? grid[i] : s->number;
    if (!grid && s->is_arg) {
      const TilertArg *a = &args[s->arg];
      if (a->kind != TILERT_ARG_INT || a->u.i < 0 || a->u.i > UINT32_MAX)
        return 0;
      n = ((uint64_t)a->u.i + (UINT64_C(1) << s->shift) - 1) >> s->shift;
    }
    if (n > most[i])
      return 0;
    out[i] = (uint32_t)n;
  }
  return 1;
}

static inline int
grid_step(TilertLaunch *l, const TilertKernel *k, const uint32_t grid[3], const TilertArg *args)
{
  if (!plan_gives(k, grid, args, l->grid))
    return 0;
  l->empty = is_empty(l->grid);
  return 1;
}

static inline int
arg_step(TilertLaunch *l, const PackStep *s, uint32_t i, const TilertArg *a)
{
  uint64_t v;
  memcpy(&v, &a->u, sizeof v);
  l->buffer[i] = NULL;
  if (l->kernel->plan.plain)
    l->params[i] = l->blob + s->offset;
  if (a->kind != s->given) {
    if (a->kind != TILERT_ARG_BUFFER || s->given != TILERT_ARG_POINTER || !a->u.buffer || a->u.buffer->device != l->kernel->device)
      return 0;
    l->buffer[i] = a->u.buffer;
    v = a->u.buffer->address;
  }
  return step_put(s, v, l->blob);
}

/* No two pointers that are to be different are equal; 0: perhaps. */
static inline int
pairs_apart(const TilertLaunch *l)
{
  const LaunchPlan *plan = &l->kernel->plan;
  int apart = plan->all_pairs;
  for (uint32_t i = 0; i < plan->npairs; i++) {
    uint64_t x, y;
    memcpy(&x, l->blob + plan->pair[i][0], sizeof x);
    memcpy(&y, l->blob + plan->pair[i][1], sizeof y);
    apart &= x != y;
  }
  return apart;
}

int
launch_pack(TilertLaunch *l, TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs,
            TilertError *err)
{
  launch_begin(l, k);
  if (nargs != k->nargs)
    return wrong_count(k, nargs, err);
  int status = grid_step(l, k, grid, args) ? TILERT_OK : set_grid(l, grid, args, nargs, err);
  for (uint32_t i = 0; !status && i < nargs; i++)
    if (!arg_step(l, &k->plan.step[i], i, &args[i]))
      status = pack_arg(l, i, &args[i], err);
  if (!status && k->plan.views)
    status = launch_pack_views(l, err);
  return status || pairs_apart(l) ? status : check_apart(l, err);
}

int
launch_pack_steps(TilertLaunch *l, TilertKernel *k, const PackStep *steps, const uint32_t grid[3], const TilertArg *args)
{
  launch_begin(l, k);
  if (!grid_step(l, k, grid, args) && set_grid(l, grid, args, k->nargs, NULL))
    return 0;
  for (uint32_t i = 0; i < k->nargs; i++)
    if (!arg_step(l, &steps[i], i, &args[i]) && !(k->plan.never >> i & 1))
      return 0;
  for (uint64_t left = k->plan.never; left; left &= left - 1) {      /* those that cost more once the others have turned out right */
    uint32_t i = (uint32_t)__builtin_ctzll(left);
    if (pack_arg(l, i, &args[i], NULL))
      return 0;
  }
  return !(k->plan.views && launch_pack_views(l, NULL)) && (pairs_apart(l) || !check_apart(l, NULL));
}

/* Where an argument lies is where the driver reads it: the bytes of a parameter are the first of the integer's, as hosts are little
 * endian. So nothing is copied, and whether a step does not take its argument is asked once for all of them: a branch on each would cost
 * more, as between two launches the driver leaves nothing in the processor's tables. */
int
launch_direct(const TilertKernel *k, const PackStep *steps, const uint32_t grid[3], const TilertArg *args, const TilertStream *s)
{
  const LaunchPlan *plan = &k->plan;
  float real[TILERT_MAX_PARAMS];
  void *params[TILERT_MAX_PARAMS];
  uint32_t own[3];
  int bad = 0;
  if (s && (s->device != k->device || atomic_load_explicit(&s->capture, memory_order_relaxed)))
    return 0;
  if (!plan_gives(k, grid, args, own) || is_empty(own))
    return 0;
  for (uint32_t i = 0; i < k->nargs; i++) {
    const PackStep *step = &steps[i];
    const uint64_t *at = &args[i].u.pointer;
    uint32_t given = args[i].kind;
    if (given == TILERT_ARG_BUFFER && args[i].u.buffer && args[i].u.buffer->device == k->device) {
      at = &args[i].u.buffer->address;
      given = TILERT_ARG_POINTER;
    }
    params[i] = (void *)(uintptr_t)at;
    bad |= (given != step->given) | (*at - step->least > step->span) | ((*at & step->mask) != 0);
    if (step->size == STEP_F32) {
      const int fits = fabs(args[i].u.f) <= (double)FLT_MAX;     /* how others become an f32 is a matter of dtype.c */
      real[i] = fits ? (float)args[i].u.f : 0;
      params[i] = &real[i];
      bad |= !fits;
    }
  }
  for (uint32_t i = 0; i < plan->npairs; i++)
    bad |= *(const uint64_t *)params[plan->between[i][0]] == *(const uint64_t *)params[plan->between[i][1]];
  return !bad && k->device->ops->launch_direct(k, own, params, s ? s->native : NULL);
}

static int
wrong_stream(const TilertKernel *k, const TilertStream *s, TilertError *err)
{
  return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s is loaded on %s; the stream is of %s%s", k->manifest.kernel,
                      k->device->info.spec, s->device->info.spec, device_apart(k->device, s->device));
}

static inline int
check_cluster(const TilertLaunch *l, TilertError *err)
{
  if (!l->cluster[0] && !l->kernel->plan.clustered)
    return TILERT_OK;
  const uint32_t *g = l->grid, *c = l->cluster[0] ? l->cluster : l->kernel->manifest.cluster;
  if (g[0] % c[0] == 0 && g[1] % c[1] == 0 && g[2] % c[2] == 0)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s: a grid of %u x %u x %u blocks is no multiple of the cluster's %u x %u x %u",
                      l->kernel->manifest.kernel, g[0], g[1], g[2], c[0], c[1], c[2]);
}

static int
refuse_mapless(const TilertLaunch *l, TilertError *err)
{
  const TilertKernel *k = l->kernel;
  size_t index = (size_t)__builtin_ctzll(l->mapless);
  ArgCheck c = {k, &k->manifest.params[k->first[index]], index, err};
  rt_error_set(err, TILERT_E_ARGUMENT,
               "it has no element, and the kernel copies boxes of it: there is no map of that; only an empty grid goes");
  return launch_blame(&c, TILERT_E_ARGUMENT);
}

int
launch_ready(const TilertLaunch *l, TilertError *err)
{
  int status = check_cluster(l, err);
  return !status && l->mapless && !l->empty ? refuse_mapless(l, err) : status;
}

int
tilert_launch_packed(const TilertLaunch *l, TilertStream *s, TilertError *err)
{
  NEED(l);
  const TilertDevice *d = l->kernel->device;
  if (s && s->device != d)
    return wrong_stream(l->kernel, s, err);
  if (check_cluster(l, err))
    return TILERT_E_ARGUMENT;
  if (l->empty)
    return TILERT_OK;
  if (l->mapless)
    return refuse_mapless(l, err);
  if (s && atomic_load_explicit(&s->capture, memory_order_relaxed))
    return work_put(s->device, s, &(Work){.kind = TILERT_NODE_LAUNCH, .launch = l}, err);
  return d->ops->launch(l, s ? s->native : NULL, err);
}

int
tilert_launch(TilertStream *s, TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs,
              TilertError *err)
{
  NEED(k);
  NEED(args || !nargs);
  if (k->plan.direct && nargs == k->nargs && launch_direct(k, k->plan.step, grid, args, s))
    return TILERT_OK;
  TilertLaunch l;
  int status = launch_pack(&l, k, grid, args, nargs, err);
  return status ? status : tilert_launch_packed(&l, s, err);
}

static void
launch_hold(TilertLaunch *l)
{
  l->holds = 1;
  module_retain(l->kernel->module);
  for (size_t i = 0; i < l->kernel->nargs; i++)
    buffer_retain(l->buffer[i]);
}

int
tilert_launch_create(TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs, TilertLaunch **out,
                     TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(k);
  NEED(args || !nargs);
  TilertLaunch *l = aligned_alloc(64, sizeof *l);
  if (!l)
    return error_no_memory(err);
  int status = launch_pack(l, k, grid, args, nargs, err);
  if (status) {
    free(l);
    return status;
  }
  launch_hold(l);
  *out = l;
  return TILERT_OK;
}

void
tilert_launch_destroy(TilertLaunch *l)
{
  if (!l)
    return;
  for (size_t i = 0; i < l->kernel->nargs; i++)
    buffer_release(l->buffer[i]);
  tilert_module_destroy(l->kernel->module);
  free(l);
}

TilertLaunch *
launch_copy(const TilertLaunch *l)
{
  TilertLaunch *copy = aligned_alloc(64, sizeof *copy);
  if (!copy)
    return NULL;
  *copy = *l;
  for (uint32_t i = 0; i < l->kernel->manifest.nparams; i++)
    copy->params[i] = copy->blob + l->kernel->offset[i];
  launch_hold(copy);
  return copy;
}

int
launch_check_gone(const TilertLaunch *l, TilertError *err)
{
  const TilertKernel *k = l->kernel;
  for (size_t i = 0; i < k->nargs; i++)
    if (l->buffer[i] && atomic_load_explicit(&l->buffer[i]->gone, memory_order_acquire))
      return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s, argument %zu (%s): its buffer has been destroyed", k->manifest.kernel, i,
                          k->manifest.params[k->first[i]].name);
  return TILERT_OK;
}

/* What an argument has in a launch, to be put back where another one does not go. */
typedef struct Packed { TilertBuffer *buffer; uint64_t mapless, address[TILERT_MAX_PARAMS]; unsigned char bytes[PARAM_BYTES_MAX]; } Packed;

/* Keep or put back the argument's parameters, which lie together. */
static void
packed_move(TilertLaunch *l, size_t index, Packed *p, int back)
{
  const TilertKernel *k = l->kernel;
  const uint32_t first = k->first[index], last = k->first[index + 1] - 1;
  unsigned char *blob = l->blob + k->offset[first];
  uint64_t *address = l->address + first;
  const size_t size = k->offset[last] + k->manifest.params[last].size - k->offset[first], addresses = (last + 1 - first) * sizeof *address;
  memcpy(back ? blob : p->bytes, back ? p->bytes : blob, size);
  memcpy(back ? address : p->address, back ? p->address : address, addresses);
  *(back ? &l->mapless : &p->mapless) = back ? p->mapless : l->mapless;
  *(back ? &l->buffer[index] : &p->buffer) = back ? p->buffer : l->buffer[index];
}

int
tilert_launch_set_arg(TilertLaunch *l, size_t index, const TilertArg *arg, TilertError *err)
{
  NEED(l);
  NEED(arg);
  Packed before;
  const TilertKernel *k = l->kernel;
  if (index >= k->nargs)
    return rt_error_set(err, TILERT_E_ARGUMENT, "kernel %s takes %u arguments; there is none at %zu", k->manifest.kernel, k->nargs, index);
  packed_move(l, index, &before, 0);
  int status = pack_arg(l, index, arg, err);
  if (!status)
    status = launch_pack_views(l, err);
  if (!status && k->manifest.napart)
    status = check_apart(l, err);
  if (status) {
    packed_move(l, index, &before, 1);
    launch_pack_views(l, NULL);
  } else if (l->holds) {
    buffer_retain(l->buffer[index]);
    buffer_release(before.buffer);
  }
  return status;
}

TilertKernel *
tilert_launch_kernel(const TilertLaunch *l)
{
  return l ? l->kernel : NULL;
}
