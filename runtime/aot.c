/* aot.c - kernels compiled ahead: which form a launch takes, and loading it once for each device (aot.h).
 *
 * What is loaded hangs on the file's own `state`: a list with a node for each device, in front of which nodes are put without a lock. A
 * node knows which forms are for its device; each gets its kernel under the node's lock, and is found without it from then on. */
#include "aot.h"
#include "device.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A form: once there is a kernel, its steps, which take only what the form's facts allow but for those of bits `rest`. steps NULL: they
 * cannot tell. */
typedef struct Slot {
  const TilertAotForm *form;
  TilertModule *module;
  _Atomic(TilertKernel *) kernel;
  PackStep *steps;
  uint64_t rest;
  int direct;                                        /* launch_direct may make launches of it, by these steps */
} Slot;
typedef struct Node {
  struct Node *next;
  TilertDevice *device;
  pthread_mutex_t lock;
  uint32_t n;
  Slot slot[];
} Node;

/* ---- which forms are for a device ---- */

/* The number of "sm_90a", and whether it is for that capability alone. */
static uint32_t
target_number(const char *target, int *exact)
{
  char *end = NULL;
  uint32_t n = !strncmp(target, "sm_", 3) ? (uint32_t)strtoul(target + 3, &end, 10) : 0;
  *exact = end && *end != 0;
  return n;
}

/* How good the form's target is for the device; 0: it does not run there. */
static uint32_t
target_rank(const TilertAotForm *f, const TilertDeviceInfo *info)
{
  int exact;
  uint32_t n = target_number(f->target, &exact), has = info->capability_major * 10 + info->capability_minor;
  return n && (exact ? n == has : n <= has) ? 2 * n + (uint32_t)exact : 0;
}

/* A cubin runs on its capability, and on later minor ones unless it is for one alone. */
static int
takes_cubin(const TilertAotForm *f, const TilertDeviceInfo *info)
{
  int exact;
  uint32_t n = target_number(f->target, &exact);
  return f->cubin.data && !info->is_sim && n / 10 == info->capability_major;
}

static int
no_form(const TilertAotKernel *k, const TilertDeviceInfo *info, TilertError *err)
{
  char all[160] = "";
  size_t n = 0;
  for (uint32_t i = 0; i < k->nforms; i++)
    if ((!i || strcmp(k->forms[i].target, k->forms[i - 1].target) != 0) && n < sizeof all)
      n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", k->forms[i].target);
  return rt_error_set(err, TILERT_E_UNAVAILABLE, "%s runs on none like %s, sm_%" PRIu32 "%" PRIu32 "; it was compiled for %s", k->name,
                      info->name, info->capability_major, info->capability_minor, all);
}

static void
node_destroy(Node *d)
{
  for (uint32_t i = 0; i < d->n; i++) {
    tilert_module_destroy(d->slot[i].module);
    free(d->slot[i].steps);
  }
  pthread_mutex_destroy(&d->lock);
  device_release(d->device);
  free(d);
}

static int
node_new(const TilertAotKernel *k, TilertDevice *dev, Node **out, TilertError *err)
{
  uint32_t best = 0;
  for (uint32_t i = 0; i < k->nforms; i++) {
    uint32_t rank = target_rank(&k->forms[i], &dev->info);
    best = rank > best ? rank : best;
  }
  if (!best)
    return no_form(k, &dev->info, err);
  Node *d = calloc(1, sizeof *d + k->nforms * sizeof(Slot));
  if (!d)
    return error_no_memory(err);
  d->device = device_retain(dev);
  pthread_mutex_init(&d->lock, NULL);
  for (uint32_t i = 0; i < k->nforms; i++)
    if (target_rank(&k->forms[i], &dev->info) == best)
      d->slot[d->n++].form = &k->forms[i];
  *out = d;
  return TILERT_OK;
}

static Node *
node_find(Node *d, const TilertDevice *dev)
{
  while (d && d->device != dev)
    d = d->next;
  return d;
}

static int
node_add(const TilertAotKernel *k, TilertDevice *dev, Node **out, TilertError *err)
{
  _Atomic(void *) *state = (_Atomic(void *) *)k->state;
  void *first = atomic_load_explicit(state, memory_order_acquire);
  Node *made = NULL;
  int status = node_new(k, dev, &made, err);
  if (status)
    return status;
  do {
    if ((*out = node_find(first, dev))) {            /* another thread was faster */
      node_destroy(made);
      return TILERT_OK;
    }
    made->next = first;
  } while (!atomic_compare_exchange_weak_explicit(state, &first, made, memory_order_acq_rel, memory_order_acquire));
  *out = made;
  return TILERT_OK;
}

static inline int
node_for(const TilertAotKernel *k, TilertDevice *dev, Node **out, TilertError *err)
{
  *out = node_find(atomic_load_explicit((_Atomic(void *) *)k->state, memory_order_acquire), dev);
  return *out ? TILERT_OK : node_add(k, dev, out, err);
}

/* ---- loading ---- */

static int
load_code(TilertDevice *dev, const TilertAotForm *f, const TilertAotCode *code, TilertModule **out, TilertError *err)
{
  TilertManifest *m = NULL;
  size_t n = 0;
  unsigned char *image = malloc((size_t)code->size + 1);
  if (!image)
    return error_no_memory(err);
  int status = tilert_aot_unpack(code, image, err);
  image[code->size] = 0;                             /* PTX ends so */
  if (!status && code == &f->cubin) {
    m = calloc(1, sizeof *m);
    status = m ? tilert_manifest_parse(f->manifest, strlen(f->manifest), m, 1, &n, err) : error_no_memory(err);
  }
  if (!status)
    status = tilert_module_load(dev, image, code->size, m, n, out, err);
  free(m);
  free(image);
  return status;
}

/* Whether the step tells what the fact is about. */
static int
step_knows(PackStep *s, const TilertAotFact *f)
{
  const uint64_t v = (uint64_t)f->value;
  switch (f->kind) {
  case TILERT_AOT_EQUAL: return step_only(s, v, 0);
  case TILERT_AOT_DIVISIBLE: return step_multiples(s, v);
  case TILERT_AOT_NULL: return s->given == TILERT_ARG_POINTER && (v ? step_only(s, 0, 0) : step_only(s, 1, UINT64_MAX - 1));
  default: return 0;
  }
}

static void
slot_plan(Slot *s, const TilertKernel *k)
{
  const TilertAotForm *f = s->form;
  s->steps = f->nfacts <= 64 ? malloc((k->nargs + 1) * sizeof *s->steps) : NULL;
  if (!s->steps)
    return;
  memcpy(s->steps, k->plan.step, k->nargs * sizeof *s->steps);
  for (uint32_t i = 0; i < f->nfacts; i++) {
    const TilertAotFact *x = &f->facts[i];
    s->rest |= (uint64_t)!(x->arg < k->nargs && step_knows(&s->steps[x->arg], x)) << i;
  }
  s->direct = k->plan.direct && !s->rest;
}

/* Under the node's lock. A cubin that a driver does not take is no loss where there is PTX. */
static int
slot_load(Node *d, Slot *s, TilertError *err)
{
  const TilertAotForm *f = s->form;
  TilertKernel *kernel;
  int status = TILERT_E_MODULE;
  if (takes_cubin(f, &d->device->info))
    status = load_code(d->device, f, &f->cubin, &s->module, err);
  if (status == TILERT_E_MODULE)
    status = load_code(d->device, f, &f->ptx, &s->module, err);
  if (!status)
    status = tilert_module_kernel(s->module, NULL, &kernel, err);
  if (!status) {
    slot_plan(s, kernel);
    atomic_store_explicit(&s->kernel, kernel, memory_order_release);
  }
  return status;
}

static int
slot_kernel(Node *d, Slot *s, TilertKernel **out, TilertError *err)
{
  int status = TILERT_OK;
  if ((*out = atomic_load_explicit(&s->kernel, memory_order_acquire)))
    return TILERT_OK;
  pthread_mutex_lock(&d->lock);
  if (!(*out = atomic_load_explicit(&s->kernel, memory_order_relaxed))) {
    status = slot_load(d, s, err);
    *out = atomic_load_explicit(&s->kernel, memory_order_relaxed);
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

/* ---- launching ---- */

/* Of an integer its value, of a pointer or tensor its address. */
static uint64_t
value_of(const TilertArg *a)
{
  const TilertTensorArg *t = a->kind == TILERT_ARG_TENSOR ? a->u.tensor : NULL;
  switch (a->kind) {
  case TILERT_ARG_INT: return (uint64_t)a->u.i;
  case TILERT_ARG_POINTER: return a->u.pointer;
  case TILERT_ARG_BUFFER: return tilert_buffer_address(a->u.buffer);
  default: return t ? t->address + (t->buffer ? tilert_buffer_address(t->buffer) : 0) : 0;
  }
}

static int
fact_holds(const TilertAotFact *f, const TilertArg *args)
{
  uint64_t v = value_of(&args[f->arg]);
  switch (f->kind) {
  case TILERT_AOT_EQUAL: return v == (uint64_t)f->value;
  case TILERT_AOT_DIVISIBLE: return args[f->arg].kind == TILERT_ARG_INT ? is_multiple_signed((int64_t)v, (uint64_t)f->value)
                                                                       : is_multiple(v, (uint64_t)f->value);
  case TILERT_AOT_NULL: return (v == 0) == (f->value != 0);
  case TILERT_AOT_SAME: return v == value_of(&args[f->value]);
  }
  return 0;
}

/* The first fact that does not hold; NULL: all do. */
static const TilertAotFact *
fact_broken(const TilertAotForm *f, const TilertArg *args)
{
  for (uint32_t i = 0; i < f->nfacts; i++)
    if (!fact_holds(&f->facts[i], args))
      return &f->facts[i];
  return NULL;
}

/* No form is for these arguments; said of the last one, which asks for the least. */
static int
refuse_fact(const TilertAotKernel *k, const TilertAotFact *f, const TilertArg *args, TilertError *err)
{
  static const char *const words[] = {
    [TILERT_AOT_EQUAL] = "it is %" PRId64 "; compiled ahead was only %" PRId64,
    [TILERT_AOT_DIVISIBLE] = "it is %" PRId64 "; compiled ahead were only multiples of %" PRId64,
  };
  char why[128];
  if (f->kind == TILERT_AOT_NULL)
    snprintf(why, sizeof why, f->value ? "it is not null; compiled ahead was only the kernel without it" : "it is null");
  else if (f->kind == TILERT_AOT_SAME)
    snprintf(why, sizeof why, "it is another address than %s; compiled ahead was only one for both", k->args[f->value]);
  else
    snprintf(why, sizeof why, words[f->kind], (int64_t)value_of(&args[f->arg]), f->value);
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s, argument %u (%s): %s", k->name, f->arg, k->args[f->arg], why);
}

static int
check_call(const TilertAotKernel *k, TilertError *err)
{
  if (k->version > TILERT_AOT_VERSION)
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "%s was made for a newer libtilert: for tables of version %" PRIu32 ", and this is %s, "
                        "which knows version %d", k->name, k->version, tilert_version(), TILERT_AOT_VERSION);
  return TILERT_OK;
}

/* Pack for the form by its steps alone; 0: they do not take these arguments, or have not been made yet. */
static int
pack_steps(const TilertAotKernel *k, Slot *s, TilertLaunch *l, const uint32_t grid[3], const TilertArg *args)
{
  TilertKernel *kernel = atomic_load_explicit(&s->kernel, memory_order_acquire);
  if (!kernel || !s->steps || kernel->nargs != k->nargs)
    return 0;
  for (uint64_t left = s->rest; left; left &= left - 1)
    if (!fact_holds(&s->form->facts[__builtin_ctzll(left)], args))
      return 0;
  return launch_pack_steps(l, kernel, s->steps, grid, args);
}

/* Pack for the first form that takes these arguments. */
static int
pack_first(const TilertAotKernel *k, Node *d, TilertLaunch *l, const uint32_t grid[3], const TilertArg *args, TilertError *err)
{
  int status = TILERT_E_ARGUMENT;
  const TilertAotFact *broken = NULL;
  int packed = 0;
  for (uint32_t i = 0; status == TILERT_E_ARGUMENT && i < d->n; i++) {
    TilertKernel *kernel;
    if (pack_steps(k, &d->slot[i], l, grid, args))
      return TILERT_OK;
    if ((broken = fact_broken(d->slot[i].form, args)))
      continue;
    packed = 1;
    status = slot_kernel(d, &d->slot[i], &kernel, err);
    if (!status)
      status = launch_pack(l, kernel, grid, args, k->nargs, err);
  }
  return status == TILERT_E_ARGUMENT && !packed ? refuse_fact(k, broken, args, err) : status;
}

/* The first form that takes these arguments, without a look at what it cannot be about; 0: not made. As much of a launch as all launches
 * have in common is in few instructions here, for which the rest is a function of its own. */
static inline int
launched_directly(const TilertAotKernel *k, const TilertStream *s, const uint32_t grid[3], const TilertArg *args)
{
  const Node *d = node_find(atomic_load_explicit((_Atomic(void *) *)k->state, memory_order_acquire), s->device);
  for (uint32_t i = 0; d && i < d->n; i++) {
    const TilertKernel *kernel = atomic_load_explicit(&d->slot[i].kernel, memory_order_acquire);
    if (!kernel || !d->slot[i].direct || kernel->nargs != k->nargs)
      return 0;
    if (launch_direct(kernel, d->slot[i].steps, grid, args, s))
      return 1;
  }
  return 0;
}

static __attribute__((noinline)) int
launch_first(const TilertAotKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args, TilertError *err)
{
  if (!s)
    return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the stream is NULL; it says on which device: tilert_stream_wrap(device, NULL, ...) "
                        "makes the default stream", k->name);
  Node *d;
  TilertLaunch l;
  int status = check_call(k, err);
  if (!status)
    status = node_for(k, s->device, &d, err);
  if (!status)
    status = pack_first(k, d, &l, grid, args, err);
  return status ? status : tilert_launch_packed(&l, s, err);
}

int
tilert_aot_launch(const TilertAotKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args, TilertError *err)
{
  NEED(k);
  NEED(args || !k->nargs);
  return s && launched_directly(k, s, grid, args) ? TILERT_OK : launch_first(k, s, grid, args, err);
}

int
tilert_aot_no_grid(const TilertAotKernel *k, TilertError *err)
{
  NEED(k);
  return rt_error_set(err, TILERT_E_ARGUMENT, "%s: the grid is NULL, and the kernel has no grid clause that says one", k->name);
}

int
tilert_aot_load(const TilertAotKernel *k, TilertDevice *dev, TilertError *err)
{
  NEED(k);
  NEED(dev);
  Node *d;
  TilertKernel *kernel;
  int status = check_call(k, err);
  if (!status)
    status = node_for(k, dev, &d, err);
  for (uint32_t i = 0; !status && i < d->n; i++)
    status = slot_kernel(d, &d->slot[i], &kernel, err);
  return status;
}

void
tilert_aot_unload(const TilertAotKernel *k)
{
  if (!k)
    return;
  Node *d = atomic_exchange_explicit((_Atomic(void *) *)k->state, NULL, memory_order_acq_rel);
  for (Node *next; d; d = next) {
    next = d->next;
    node_destroy(d);
  }
}
