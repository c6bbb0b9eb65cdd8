/* sim_device.c - the simulator as a device. Device addresses are host addresses, streams are just different, and
 * every operation is complete when it returns. One lock per device: the simulator spreads one launch over all
 * cores, so two at a time would gain nothing. */
#include "device.h"
#include "sim_find.h"
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct SimDevice {
  TilertDevice base;
  const SimCalls *sim;                 /* where the simulator is */
  SimMachine *machine;
  pthread_mutex_t lock;                /* of what follows, and one operation at a time */
  TilertStats stats;
  char fault[sizeof(SimError)];        /* the last, in full */
  void (*progress)(void *user, uint64_t done_blocks, uint64_t total_blocks);
  void *progress_user;
  int (*watch)(void *user, const TilertProgress *p);
  void *watch_user;
  uint64_t told;                       /* blocks that progress knows of */
} SimDevice;

static SimDevice *
sim_of(TilertDevice *d)
{
  return (SimDevice *)d;
}

static int
sim_status(SimErrorKind kind)
{
  switch (kind) {
  case SIM_OK: return TILERT_OK;
  case SIM_E_PARSE: return TILERT_E_MODULE;
  case SIM_E_ARGUMENT: return TILERT_E_ARGUMENT;
  case SIM_E_MEMORY: return TILERT_E_MEMORY;
  case SIM_E_CANCELLED: return TILERT_E_CANCELLED;
  default: return TILERT_E_FAULT;
  }
}

/* "FILE:LINE: what happened", where the machine knows the line, and what goes with it. */
static size_t
fault_text(const SimError *e, char *out, size_t n)
{
  int length;
  if (e->line)
    length = snprintf(out, n, "%.200s:%u: %s%s", e->file, e->line, e->message, e->trace);
  else if (e->ptx_line)
    length = snprintf(out, n, "PTX line %u: %s%s", e->ptx_line, e->message, e->trace);
  else
    length = snprintf(out, n, "%s%s", e->message, e->trace);
  return length > 0 ? (size_t)length : 0;
}

/* Of a text that was cut off, the lines that are whole; its first line stays as it is. */
static void
whole_lines(char *text)
{
  char *last = strrchr(text, '\n');
  if (last)
    *last = 0;
}

static int
sim_fail(const SimError *e, TilertError *err)
{
  char text[sizeof err->message];
  int status = sim_status(e->kind);
  status = status ? status : TILERT_E_DRIVER;
  if (fault_text(e, text, sizeof text) >= sizeof text)
    whole_lines(text);
  rt_error_set(err, status, "%s", text);
  if (!err)
    return status;
  memcpy(err->file, e->file, sizeof err->file);
  memcpy(err->block, e->block, sizeof err->block);
  memcpy(err->thread, e->thread, sizeof err->thread);
  err->line = e->line;
  err->column = e->column;
  return status;
}

/* What comes next overlaps with none of the launches so far. */
static void
settled(TilertDevice *d)
{
  sim_of(d)->sim->settled(sim_of(d)->machine);
}

static void
sim_destroy_device(TilertDevice *d)
{
  sim_of(d)->sim->destroy(sim_of(d)->machine);
  device_fini(d);
  pthread_mutex_destroy(&sim_of(d)->lock);
  free(d);
}

static int
sim_synchronize(TilertDevice *d, TilertError *err)
{
  settled(d);
  return TILERT_OK;
}

static int
sim_stats(TilertDevice *d, TilertStats *out, int reset, TilertError *err)
{
  SimDevice *s = sim_of(d);
  pthread_mutex_lock(&s->lock);
  *out = s->stats;
  if (reset)
    memset(&s->stats, 0, sizeof s->stats);
  pthread_mutex_unlock(&s->lock);
  return TILERT_OK;
}

static int
sim_alloc_memory(TilertDevice *d, size_t bytes, uint64_t *address, TilertError *err)
{
  SimDevice *s = sim_of(d);
  SimError e = {0};
  void *p = NULL;
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->alloc(s->machine, bytes, &p, &e);
  if (!failed)
    s->sim->mark(s->machine, p, bytes, 0);
  pthread_mutex_unlock(&s->lock);
  *address = (uint64_t)(uintptr_t)p;
  return failed ? sim_fail(&e, err) : TILERT_OK;
}

static void
sim_release(TilertDevice *d, uint64_t address)
{
  SimDevice *s = sim_of(d);
  SimError ignored = {0};
  pthread_mutex_lock(&s->lock);
  s->sim->free(s->machine, (void *)(uintptr_t)address, &ignored);
  pthread_mutex_unlock(&s->lock);
}

/* The host has written these bytes. */
static void
written(TilertDevice *d, uint64_t dst, size_t bytes)
{
  settled(d);
  sim_of(d)->sim->mark(sim_of(d)->machine, (const void *)(uintptr_t)dst, bytes, 1);
}

static int
sim_write(TilertDevice *d, uint64_t dst, const void *src, size_t bytes, void *stream, TilertError *err)
{
  memcpy((void *)(uintptr_t)dst, src, bytes);
  written(d, dst, bytes);
  return TILERT_OK;
}

static int
sim_read(TilertDevice *d, void *dst, uint64_t src, size_t bytes, void *stream, TilertError *err)
{
  settled(d);
  memcpy(dst, (const void *)(uintptr_t)src, bytes);
  return TILERT_OK;
}

static int
sim_copy(TilertDevice *d, uint64_t dst, uint64_t src, size_t bytes, void *stream, TilertError *err)
{
  memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
  written(d, dst, bytes);
  return TILERT_OK;
}

static int
sim_fill(TilertDevice *d, uint64_t dst, uint32_t pattern, uint32_t width, size_t count, void *stream,
         TilertError *err)
{
  unsigned char *at = (unsigned char *)(uintptr_t)dst;
  for (size_t i = 0; i < count; i++)
    memcpy(at + i * width, &pattern, width);
  written(d, dst, count * width);
  return TILERT_OK;
}

static int
sim_check_pointer(TilertDevice *d, uint64_t address, TilertError *err)
{
  SimDevice *s = sim_of(d);
  SimError e = {0};
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->check_range(s->machine, (const void *)(uintptr_t)address, 1, &e);
  pthread_mutex_unlock(&s->lock);
  return failed ? sim_fail(&e, err) : TILERT_OK;
}

/* ---- memory of the host ---- */

static int
sim_pin(TilertDevice *d, void *host, size_t bytes, uint64_t *address, TilertError *err)
{
  SimDevice *s = sim_of(d);
  SimError e = {0};
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->adopt(s->machine, host, bytes, &e);
  pthread_mutex_unlock(&s->lock);
  if (failed)
    return error_prefix(err, sim_fail(&e, err), "tilert_buffer_pin: host");
  written(d, (uintptr_t)host, bytes);
  *address = (uintptr_t)host;
  return TILERT_OK;
}

static void
sim_unpin(TilertDevice *d, void *host)
{
  SimDevice *s = sim_of(d);
  pthread_mutex_lock(&s->lock);
  s->sim->forget(s->machine, host);
  pthread_mutex_unlock(&s->lock);
}

/* What the host writes there it does not tell. */
static int
sim_alloc_host(TilertDevice *d, size_t bytes, uint32_t flags, void **host, uint64_t *address, TilertError *err)
{
  int status = sim_alloc_memory(d, bytes, address, err);
  *host = (void *)(uintptr_t)*address;
  if (!status)
    written(d, *address, bytes);
  return status;
}

static void
sim_release_host(TilertDevice *d, void *host)
{
  sim_release(d, (uintptr_t)host);
}

static int
sim_adopt_memory(TilertDevice *d, uint64_t address, size_t bytes, TilertError *err)
{
  SimDevice *s = sim_of(d);
  SimError e = {0};
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->check_range(s->machine, (const void *)(uintptr_t)address, bytes, &e);
  pthread_mutex_unlock(&s->lock);
  return failed ? rt_error_set(err, TILERT_E_ARGUMENT, "%s", e.message) : TILERT_OK;
}

static int
sim_copy_rows(TilertDevice *d, const Copy *c, void *stream, TilertError *err)
{
  settled(d);
  for (size_t i = 0; i < c->height; i++) {
    void *to = (void *)(uintptr_t)(c->dst.address + i * c->dst.pitch);
    memmove(to, (const void *)(uintptr_t)(c->src.address + i * c->src.pitch), c->width);
    if (!c->dst.host)
      written(d, (uintptr_t)to, c->width);
  }
  return TILERT_OK;
}

static int
sim_copy_peer(TilertDevice *d, TilertDevice *to, uint64_t dst, TilertDevice *from, uint64_t src, size_t bytes, void *stream,
              TilertError *err)
{
  return sim_copy(to, dst, src, bytes, NULL, err);
}

/* A machine knows its own memory only. */
static int
sim_peer(TilertDevice *d, TilertDevice *other, int enable, int *can, TilertError *err)
{
  *can = 0;
  return TILERT_OK;
}

static int
sim_reaches(TilertDevice *d, TilertDevice *other)
{
  return 0;
}

static int
sim_persisting(TilertDevice *d, size_t bytes, int reset, TilertError *err)
{
  return TILERT_OK;
}

/* ---- pools: what is given back is gone, so that its use is found; they count, and have limits ---- */

typedef struct SimPool { pthread_mutex_t lock; uint64_t limit; TilertPoolInfo info; } SimPool;

static int
sim_pool_create(TilertDevice *d, const TilertPoolOptions *o, void **out, TilertError *err)
{
  SimPool *p = calloc(1, sizeof *p);
  if (!p)
    return error_no_memory(err);
  pthread_mutex_init(&p->lock, NULL);
  p->limit = o->limit;
  *out = p;
  return TILERT_OK;
}

static void
sim_pool_destroy(TilertDevice *d, void *pool)
{
  pthread_mutex_destroy(&((SimPool *)pool)->lock);
  free(pool);
}

static int
sim_pool_info(TilertDevice *d, void *pool, TilertPoolInfo *out, TilertError *err)
{
  SimPool *p = pool;
  pthread_mutex_lock(&p->lock);
  *out = p->info;
  pthread_mutex_unlock(&p->lock);
  return TILERT_OK;
}

static int
sim_pool_trim(TilertDevice *d, void *pool, uint64_t keep, TilertError *err)
{
  return TILERT_OK;
}

static int
pool_take(SimPool *p, size_t bytes, TilertError *err)
{
  TilertPoolInfo *i = &p->info;
  int status = TILERT_OK;
  pthread_mutex_lock(&p->lock);
  if (p->limit && (bytes > p->limit || i->used > p->limit - bytes))
    status = rt_error_set(err, TILERT_E_MEMORY, "allocation of %zu bytes: the pool may have %llu, of which %llu are in use", bytes,
                          (unsigned long long)p->limit, (unsigned long long)i->used);
  else
    i->reserved = i->used += bytes;
  i->used_most = i->used > i->used_most ? i->used : i->used_most;
  i->reserved_most = i->used_most;
  pthread_mutex_unlock(&p->lock);
  return status;
}

static void
pool_give(SimPool *p, size_t bytes)
{
  pthread_mutex_lock(&p->lock);
  p->info.reserved = p->info.used -= bytes;
  pthread_mutex_unlock(&p->lock);
}

static int
sim_alloc_in(TilertDevice *d, void *pool, size_t bytes, void *stream, uint64_t *address, TilertError *err)
{
  int status = pool ? pool_take(pool, bytes, err) : TILERT_OK;
  if (status)
    return status;
  status = sim_alloc_memory(d, bytes, address, err);
  if (status && pool)
    pool_give(pool, bytes);
  return status;
}

static int
sim_release_in(TilertDevice *d, void *pool, uint64_t address, size_t bytes, void *stream, TilertError *err)
{
  if (pool)
    pool_give(pool, bytes);
  sim_release(d, address);
  return TILERT_OK;
}

/* ---- streams and events: what they are asked for has been done ---- */

static int
sim_stream_create(TilertDevice *d, int priority, void **out, TilertError *err)
{
  *out = malloc(1);
  return *out ? TILERT_OK : error_no_memory(err);
}

static int
sim_stream_adopt(TilertDevice *d, void *stream, TilertError *err)
{
  return TILERT_OK;
}

static void
sim_stream_destroy(TilertDevice *d, void *stream)
{
  free(stream);
}

static int
sim_stream_synchronize(TilertDevice *d, void *stream, TilertError *err)
{
  settled(d);
  return TILERT_OK;
}

static int
sim_query(TilertDevice *d, void *stream_or_event, int *done, TilertError *err)
{
  *done = 1;
  return TILERT_OK;
}

static int
sim_stream_wait(TilertDevice *d, void *stream, void *event, TilertError *err)
{
  settled(d);     /* what comes next has more in front of it than the launch before */
  return TILERT_OK;
}

static int
sim_stream_host(TilertDevice *d, void *stream, void (*f)(void *user), void *user, TilertError *err)
{
  settled(d);
  f(user);
  return TILERT_OK;
}

static int
sim_stream_window(TilertDevice *d, void *stream, const Window *w, TilertError *err)
{
  return TILERT_OK;
}

typedef struct SimEvent { struct timespec at; int timed; } SimEvent;

static int
sim_event_create(TilertDevice *d, int timed, void **out, TilertError *err)
{
  SimEvent *e = calloc(1, sizeof *e);
  *out = e;
  if (!e)
    return error_no_memory(err);
  e->timed = timed;
  return TILERT_OK;
}

static void
sim_event_destroy(TilertDevice *d, void *event)
{
  free(event);
}

static int
sim_event_record(TilertDevice *d, void *event, void *stream, TilertError *err)
{
  clock_gettime(CLOCK_MONOTONIC, &((SimEvent *)event)->at);
  return TILERT_OK;
}

static int
sim_event_synchronize(TilertDevice *d, void *event, TilertError *err)
{
  settled(d);
  return TILERT_OK;
}

static int
sim_event_elapsed(TilertDevice *d, void *from, void *to, float *ms, TilertError *err)
{
  const SimEvent *first = from, *last = to;
  const struct timespec *a = &first->at, *b = &last->at;
  if (!first->timed || !last->timed)
    return rt_error_set(err, TILERT_E_ARGUMENT, "elapsed: an event knows no time (tilert_event_create_untimed)");
  if ((!a->tv_sec && !a->tv_nsec) || (!b->tv_sec && !b->tv_nsec))
    return rt_error_set(err, TILERT_E_ARGUMENT, "elapsed: an event was never recorded");
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return TILERT_OK;
}

static int
sim_module_load(TilertDevice *d, const void *image, size_t len, int careful, void **out, TilertError *err)
{
  (void)careful;
  SimDevice *s = sim_of(d);
  SimError e = {0};
  if (len >= 4 && !memcmp(image, "\177ELF", 4))
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "the simulator runs PTX, not cubins");
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->load(s->machine, image, len, (SimModule **)out, &e);
  pthread_mutex_unlock(&s->lock);
  return failed ? sim_fail(&e, err) : TILERT_OK;
}

static void
sim_module_unload(TilertDevice *d, void *module)
{
  SimDevice *s = sim_of(d);
  pthread_mutex_lock(&s->lock);
  s->sim->unload(module);
  pthread_mutex_unlock(&s->lock);
}

static int
find_kernel(TilertKernel *k, SimKernelInfo *info, TilertError *err)
{
  SimDevice *s = sim_of(k->device);
  SimError e = {0};
  pthread_mutex_lock(&s->lock);
  int failed = s->sim->kernel(k->module->native, k->manifest.kernel, info, &e);
  pthread_mutex_unlock(&s->lock);
  return failed ? sim_fail(&e, err) : TILERT_OK;
}

static int
sim_kernel_load(TilertKernel *k, TilertError *err)
{
  const TilertManifest *m = &k->manifest;
  SimKernelInfo info = {0};
  int status = find_kernel(k, &info, err);
  if (status)
    return status;
  if ((uint32_t)info.nparams != m->nparams)
    return rt_error_set(err, TILERT_E_MODULE, "kernel %s: the manifest has %u parameters, the PTX %d", m->kernel,
                     m->nparams, info.nparams);
  for (uint32_t i = 0; i < m->nparams; i++)
    if (info.param_size[i] != m->params[i].size)
      return rt_error_set(err, TILERT_E_MODULE, "kernel %s, parameter %s: %u bytes in the manifest, %u in the PTX",
                       m->kernel, m->params[i].name, m->params[i].size, info.param_size[i]);
  return TILERT_OK;
}

static int
sim_kernel_info(TilertKernel *k, TilertKernelInfo *out, TilertError *err)
{
  SimKernelInfo info = {0};
  int status = find_kernel(k, &info, err);
  out->static_shared = info.static_shared;
  out->max_threads = 1024;
  return status;
}

static int
sim_kernel_occupancy(TilertKernel *k, uint32_t *blocks, TilertError *err)
{
  SimKernelInfo info = {0};
  int status = find_kernel(k, &info, err);
  if (!status)
    *blocks = sim_of(k->device)->sim->occupancy(&info, 32 * k->manifest.warps, k->manifest.shared);
  return status;
}

static void
sim_cancel_launch(TilertDevice *d)
{
  sim_of(d)->sim->cancel(sim_of(d)->machine);
}

static size_t
sim_fault_text(TilertDevice *d, char *out, size_t n)
{
  SimDevice *s = sim_of(d);
  pthread_mutex_lock(&s->lock);
  size_t length = strlen(s->fault);
  snprintf(out, n, "%s", s->fault);
  pthread_mutex_unlock(&s->lock);
  return length;
}

static void
stats_add(TilertStats *sum, const SimStats *one)
{
  sum->launches++;
#define ADD(field) sum->field += one->field
  ADD(blocks); ADD(warp_instructions); ADD(global_bytes_read); ADD(global_bytes_written); ADD(global_sectors);
  ADD(shared_accesses); ADD(shared_bank_conflicts); ADD(barriers); ADD(atomics); ADD(mma);
#undef ADD
}

static int
sim_launch_grid(const TilertLaunch *l, void *stream, TilertError *err)
{
  const TilertKernel *k = l->kernel;
  SimDevice *s = sim_of(k->device);
  SimError e = {0};
  SimStats stats = {0};
  SimLaunch x = {.kernel = k->manifest.kernel, .dynamic_shared = l->shared, .params = (const void *const *)l->params,
                 .manifest = &k->manifest, .stream = stream, .dependent = l->pdl, .large_clusters = 1};
  memcpy(x.grid, l->grid, sizeof x.grid);
  memcpy(x.block, l->block, sizeof x.block);
  memcpy(x.cluster, l->cluster, sizeof x.cluster);
  pthread_mutex_lock(&s->lock);
  s->told = 0;
  int failed = s->sim->run(k->module->native, &x, &stats, &e);
  if (failed)
    fault_text(&e, s->fault, sizeof s->fault);
  else
    stats_add(&s->stats, &stats);
  pthread_mutex_unlock(&s->lock);
  return failed ? sim_fail(&e, err) : TILERT_OK;
}

static int
sim_encode_map(TilertDevice *d, const TilertTensor *t, const TilertPixels *p, void *out, TilertError *err)
{
  SimError e = {0};
  SimTensor x = {t->type, t->interleave, t->swizzle, t->promotion, t->fill, t->rank, t->address, t->extents, t->strides, t->box, t->steps};
  SimPixels pixels = {p ? p->lower : NULL, p ? p->upper : NULL, p ? p->channels : 0, p ? p->pixels : 0};
  const SimCalls *sim = sim_of(d)->sim;
  return (p ? sim->tensor_map_im2col(&x, &pixels, out, &e) : sim->tensor_map(&x, out, &e)) ? sim_fail(&e, err) : TILERT_OK;
}

static const DeviceOps sim_ops = {
  .destroy = sim_destroy_device, .synchronize = sim_synchronize, .stats = sim_stats, .cancel = sim_cancel_launch,
  .fault = sim_fault_text,
  .alloc = sim_alloc_memory, .release = sim_release, .write = sim_write, .read = sim_read, .copy = sim_copy,
  .fill = sim_fill, .check_pointer = sim_check_pointer, .tensor_map = sim_encode_map,
  .copy_rows = sim_copy_rows, .copy_peer = sim_copy_peer, .peer = sim_peer, .reaches = sim_reaches, .persisting = sim_persisting,
  .alloc_host = sim_alloc_host, .release_host = sim_release_host, .pin = sim_pin, .unpin = sim_unpin, .adopt = sim_adopt_memory,
  .pool_create = sim_pool_create, .pool_destroy = sim_pool_destroy, .pool_info = sim_pool_info, .pool_trim = sim_pool_trim,
  .alloc_in = sim_alloc_in, .release_in = sim_release_in,
  .stream_create = sim_stream_create, .stream_adopt = sim_stream_adopt, .stream_destroy = sim_stream_destroy,
  .stream_synchronize = sim_stream_synchronize, .stream_query = sim_query, .stream_wait = sim_stream_wait,
  .stream_host = sim_stream_host, .stream_window = sim_stream_window, .event_query = sim_query,
  .event_create = sim_event_create, .event_destroy = sim_event_destroy, .event_record = sim_event_record,
  .event_synchronize = sim_event_synchronize, .event_elapsed = sim_event_elapsed,
  .module_load = sim_module_load, .module_unload = sim_module_unload, .kernel_load = sim_kernel_load,
  .kernel_info = sim_kernel_info, .kernel_occupancy = sim_kernel_occupancy, .launch = sim_launch_grid,
};

/* It presents itself as the largest target it runs, an H200. */
static const TilertDeviceInfo sim_info = {
  .name = "PTX simulator", .spec = "sim", .target = "sm_90a", .capability_major = 9, .multiprocessors = 132,
  .shared_max = 232448, .shared_per_multiprocessor = 233472, .registers_per_multiprocessor = 65536,
  .threads_per_multiprocessor = 2048, .grid_max = {0x7fffffff, 65535, 65535}, .is_sim = 1, .pools = 1,
};

/* Where a driver's vprintf goes, too. */
static void
print_stdout(void *user, const char *text, size_t n)
{
  (void)user;
  fwrite(text, 1, n, stdout);
}

static int
watch_launch(void *user, const SimProgress *p)
{
  SimDevice *s = user;
  TilertProgress out = {sizeof out, p->done_blocks, p->total_blocks, p->warp_instructions};
  if (s->progress && p->done_blocks > s->told)
    s->progress(s->progress_user, p->done_blocks, p->total_blocks);
  s->told = p->done_blocks;
  return s->watch ? s->watch(s->watch_user, &out) : 0;
}

static SimOptions
sim_options(SimDevice *s, const TilertOptions *o)
{
  SimOptions so;
  s->sim->options_default(&so);
  so.threads = o->sim_threads;
  so.check_races = o->sim_check_races;
  so.max_instructions = o->sim_max_instructions;
  so.multiprocessors = o->sim_multiprocessors ? o->sim_multiprocessors : so.multiprocessors;
  so.watch = o->progress || o->watch ? watch_launch : NULL;
  so.watch_user = s;
  so.early_copies = o->sim_early_copies;
  so.source = o->source;
  so.source_user = o->source_user;
  so.print = print_stdout;
  s->progress = o->progress;
  s->progress_user = o->progress_user;
  s->watch = o->watch;
  s->watch_user = o->watch_user;
  return so;
}

int
sim_device_open(const TilertOptions *o, TilertDevice **out, TilertError *err)
{
  SimError e = {0};
  const SimCalls *sim;
  int status = sim_find(&sim, err);
  SimDevice *s = status ? NULL : calloc(1, sizeof *s);
  if (!s)
    return status ? status : error_no_memory(err);
  s->sim = sim;
  SimOptions so = sim_options(s, o);
  if (s->sim->create(&so, &s->machine, &e)) {
    free(s);
    return sim_fail(&e, err);
  }
  pthread_mutex_init(&s->lock, NULL);
  device_init(&s->base, &sim_ops);
  s->base.info = sim_info;
  s->base.info.multiprocessors = so.multiprocessors;
  *out = &s->base;
  return TILERT_OK;
}
