/* launch.c - a grid: checks of the launch, one worker per host thread, blocks handed out in order.
 *
 * When a block fails, no block after it is started and later ones are given up; earlier ones, all started by
 * then, run to their end. So the error that is returned is that of the lowest failing block, however many
 * threads there are. A block may wait for an earlier block (the grid is started in order, x fastest), not
 * for a later one. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Kernel *
find_kernel(const SimModule *mod, const char *name)
{
  for (uint32_t i = 0; i < mod->nkernels; i++)
    if (strcmp(mod->kernels[i]->name, name) == 0)
      return mod->kernels[i];
  return NULL;
}

int
sim_kernel(SimModule *mod, const char *name, SimKernelInfo *out, SimError *err)
{
  const Kernel *k = find_kernel(mod, name);
  if (!k)
    return sim_error_set(err, SIM_E_ARGUMENT, "no kernel '%s'", name);
  *out = (SimKernelInfo){.name = k->name, .nparams = (int)k->nparams, .param_size = k->param_size,
                         .param_align = k->param_align, .static_shared = k->static_shared};
  memcpy(out->reqntid, k->reqntid, sizeof out->reqntid);
  memcpy(out->maxntid, k->maxntid, sizeof out->maxntid);
  return 0;
}

/* ---- a worker ---- */

static uint64_t
special_value(const Worker *k, const SpecialSlot *s, const Warp *w, uint32_t lane)
{
  const Launch *l = k->launch;
  uint32_t t = w->index * LANES + lane, id = s->id;
  switch (id) {
  case S_TID: return t % l->block[0];
  case S_TID + 1: return t / l->block[0] % l->block[1];
  case S_TID + 2: return t / l->block[0] / l->block[1];
  case S_LANEID: return lane;
  case S_WARPID: return w->index;
  case S_NWARPID: return k->nwarps;
  case S_NSMID: case S_ONE: return 1;
  case S_LT: return (1u << lane) - 1;
  case S_LE: return (2u << lane) - 1;
  case S_EQ: return 1u << lane;
  case S_GE: return ~((1u << lane) - 1);
  case S_GT: return ~((2u << lane) - 1);
  case S_DYNSMEM: return l->dynamic_shared;
  case S_TOTSMEM: return l->shared_bytes;
  default: break;
  }
  if (id >= S_NTID && id < S_NTID + 3)
    return l->block[id - S_NTID];
  if (id >= S_NCTAID && id < S_NCTAID + 3)
    return l->grid[id - S_NCTAID];
  return id >= S_CTAID && id < S_CTAID + 3 ? k->block[id - S_CTAID] : 0;
}

static void
fill_specials(Worker *k, Warp *w, bool block_only)
{
  for (uint32_t i = 0; i < k->kernel->nspecials; i++) {
    const SpecialSlot *s = &k->kernel->specials[i];
    if (block_only && !(s->id >= S_CTAID && s->id < S_CTAID + 3))
      continue;
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint64_t v = special_value(k, s, w, lane);
      memcpy(w->regs + s->offset + lane * s->width, &v, s->width);
    }
  }
}

static void
fill_constants(Worker *k, Warp *w)
{
  for (uint32_t i = 0; i < k->kernel->nconsts; i++) {
    const ConstSlot *c = &k->kernel->consts[i];
    if (c->width == 0) {
      PRED_OF(w, c->offset) = c->value ? FULL : 0;
      continue;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
      memcpy(w->regs + c->offset + lane * c->width, &c->value, c->width);
  }
}

static void
worker_free(Worker *k)
{
  for (uint32_t i = 0; i < k->nwarps; i++)
    free(k->warp[i].pending);
  free(k->regs);
  free(k->shared);
  free(k->local);
  shadow_free(k->shadow);
  free(k);
}

static Worker *
worker_new(Launch *l)
{
  Worker *k = calloc(1, sizeof *k);
  if (!k)
    return NULL;
  k->launch = l;
  k->kernel = l->kernel;
  k->nwarps = l->nwarps;
  k->shared_bytes = l->shared_bytes;
  k->budget = l->machine->opt.max_instructions;
  k->check = l->check;
  k->want_stats = l->want_stats;
  size_t file = ((size_t)k->kernel->file_bytes + 63) & ~(size_t)63;
  k->regs = aligned_alloc(64, file * k->nwarps);
  k->shared = aligned_alloc(64, ((size_t)l->shared_bytes + 127) & ~(size_t)63);
  k->local = calloc((size_t)k->nwarps * LANES, k->kernel->local_bytes ? k->kernel->local_bytes : 1);
  if (k->check)
    k->shadow = shadow_new(l->shared_bytes, k->nwarps);
  if (!k->regs || !k->shared || !k->local || (k->check && !k->shadow)) {
    worker_free(k);
    return NULL;
  }
  for (uint32_t i = 0; i < k->nwarps; i++) {
    Warp *w = &k->warp[i];
    w->regs = k->regs + file * i;
    w->index = i;
    fill_constants(k, w);
    fill_specials(k, w, false);
  }
  return k;
}

static void
start_warp(Worker *k, Warp *w)
{
  uint32_t threads = k->launch->nthreads - w->index * LANES;
  memset(w->regs, 0, k->kernel->reg_bytes);
  fill_specials(k, w, true);
  w->live = threads >= LANES ? FULL : (1u << threads) - 1;
  w->split[0] = (Split){0, w->live, 0, SPLIT_RUN};
  w->nsplit = 1;
  w->spin = w->turn = w->demotions = 0;
  w->state = W_RUN;
  w->npending = 0;
  memset(w->group, 0, sizeof w->group);
}

static void
start_block(Worker *k, uint64_t index)
{
  const uint32_t *g = k->launch->grid;
  k->block_index = index;
  k->block[0] = (uint32_t)(index % g[0]);
  k->block[1] = (uint32_t)(index / g[0] % g[1]);
  k->block[2] = (uint32_t)(index / g[0] / g[1]);
  k->nlive = k->nwarps;
  k->executed = 0;
  memset(k->barrier, 0, sizeof k->barrier);
  memset(k->shared, 0xcb, k->shared_bytes);
  for (uint32_t i = 0; i < k->nwarps; i++)
    start_warp(k, &k->warp[i]);
  if (k->check)
    shadow_start(k->shadow, k);
}

/* The next block, or false when there is none to start. */
static bool
take_block(Launch *l, uint64_t *index)
{
  pthread_mutex_lock(&l->lock);
  bool ok = l->next_block < l->nblocks && l->fail_block == UINT64_MAX;
  *index = l->next_block;
  l->next_block += ok;
  pthread_mutex_unlock(&l->lock);
  return ok;
}

static void
finish_block(Launch *l, Worker *k, int rc)
{
  const SimOptions *o = &l->machine->opt;
  pthread_mutex_lock(&l->lock);
  if (rc && k->block_index < l->fail_block) {
    __atomic_store_n(&l->fail_block, k->block_index, __ATOMIC_RELAXED);
    l->err = k->err;
  }
  l->done_blocks++;
  if (o->progress && l->fail_block == UINT64_MAX)
    o->progress(o->progress_user, l->done_blocks, l->nblocks);
  pthread_mutex_unlock(&l->lock);
}

static void
add_stats(SimStats *to, const SimStats *from)
{
  uint64_t *t = (uint64_t *)(void *)to;
  const uint64_t *f = (const uint64_t *)(const void *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
    t[i] += f[i];
}

static void *
worker_main(void *arg)
{
  Launch *l = arg;
  Worker *k = worker_new(l);
  uint64_t index;
  if (!k) {
    pthread_mutex_lock(&l->lock);
    l->fail_block = 0;
    sim_error_set(&l->err, SIM_E_MEMORY, "out of memory for a block's state");
    pthread_mutex_unlock(&l->lock);
    return NULL;
  }
  while (take_block(l, &index)) {
    start_block(k, index);
    int rc = sim_block_run(k);
    k->stats.blocks++;
    k->stats.warp_instructions += k->executed;
    finish_block(l, k, rc);
  }
  pthread_mutex_lock(&l->lock);
  add_stats(&l->stats, &k->stats);
  pthread_mutex_unlock(&l->lock);
  worker_free(k);
  return NULL;
}

/* ---- the launch ---- */

static int
check_block(const Kernel *k, const uint32_t block[3], SimError *err)
{
  uint64_t n = (uint64_t)block[0] * block[1] * block[2];
  if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || n > 1024)
    return sim_error_set(err, SIM_E_ARGUMENT, "a block of %u x %u x %u threads: 1 to 1024 are possible", block[0],
                     block[1], block[2]);
  if (k->reqntid[0] && memcmp(k->reqntid, block, sizeof k->reqntid) != 0)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%s' needs blocks of %u x %u x %u threads, not %u x %u x %u",
                     k->name, k->reqntid[0], k->reqntid[1], k->reqntid[2], block[0], block[1], block[2]);
  if (k->maxntid[0] && n > (uint64_t)k->maxntid[0] * k->maxntid[1] * k->maxntid[2])
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%s' takes at most %u threads a block, not %llu", k->name,
                     k->maxntid[0] * k->maxntid[1] * k->maxntid[2], (unsigned long long)n);
  return 0;
}

static int
check_launch(Launch *l, SimError *err)
{
  const Kernel *k = l->kernel;
  uint32_t align = k->shared_align ? k->shared_align : 1;
  uint64_t start = l->dynamic_shared ? (k->static_shared + (uint64_t)align - 1) & ~((uint64_t)align - 1)
                                     : k->static_shared;
  uint64_t shared = start + l->dynamic_shared;
  const uint32_t *g = l->grid;
  if (!g[0] || !g[1] || !g[2] || g[0] > INT32_MAX || g[1] > 65535 || g[2] > 65535)
    return sim_error_set(err, SIM_E_ARGUMENT, "a grid of %u x %u x %u blocks is outside the limits", l->grid[0],
                     l->grid[1], l->grid[2]);
  if (check_block(k, l->block, err))
    return -1;
  if (shared > l->machine->opt.shared_max)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%s' needs %llu bytes of shared memory where a block "
                     "may have %u", k->name, (unsigned long long)shared, l->machine->opt.shared_max);
  l->shared_bytes = (uint32_t)shared;
  l->nthreads = l->block[0] * l->block[1] * l->block[2];
  l->nwarps = (l->nthreads + LANES - 1) / LANES;
  l->nblocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  return 0;
}

static int
pack_params(Launch *l, const void *const *params, SimError *err)
{
  const Kernel *k = l->kernel;
  l->params = calloc(1, (size_t)k->param_bytes + 64);
  if (!l->params)
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  for (uint32_t i = 0; i < k->nparams; i++) {
    if (!params || !params[i])
      return sim_error_set(err, SIM_E_ARGUMENT, "parameter %u of kernel '%s' is missing", i, k->name);
    memcpy(l->params + k->params[i].offset, params[i], k->params[i].size);
  }
  return 0;
}

static int
snapshot(Launch *l, Alloc **copy, SimError *err)
{
  SimMachine *m = l->machine;
  pthread_mutex_lock(&m->lock);
  *copy = malloc((m->nallocs + 1) * sizeof **copy);
  if (*copy && m->nallocs)
    memcpy(*copy, m->allocs, m->nallocs * sizeof **copy);
  l->nallocs = m->nallocs;
  m->running += *copy != NULL;
  pthread_mutex_unlock(&m->lock);
  l->allocs = *copy;
  return *copy ? 0 : sim_error_set(err, SIM_E_MEMORY, "out of memory");
}

static void
release(SimMachine *m)
{
  pthread_mutex_lock(&m->lock);
  if (--m->running == 0)
    pthread_cond_broadcast(&m->idle);
  pthread_mutex_unlock(&m->lock);
}

static void
run_workers(Launch *l)
{
  enum { MOST = 256 };
  pthread_t thread[MOST];
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int want = l->machine->opt.threads > 0 ? l->machine->opt.threads : cores > 0 ? (int)cores : 1, started = 0;
  if ((uint64_t)want > l->nblocks)
    want = (int)l->nblocks;
  want = want > MOST ? MOST : want;
  while (started < want - 1 && pthread_create(&thread[started], NULL, worker_main, l) == 0)
    started++;
  worker_main(l);
  for (int i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
}

static int
launch_grid(Launch *l, const void *const *params, SimStats *stats, SimError *err)
{
  Alloc *copy = NULL;
  int rc = pack_params(l, params, err);
  if (!rc)
    rc = snapshot(l, &copy, err);
  if (!rc) {
    pthread_mutex_init(&l->lock, NULL);
    run_workers(l);
    pthread_mutex_destroy(&l->lock);
    release(l->machine);
    rc = l->fail_block == UINT64_MAX ? 0 : -1;
    if (rc)
      *err = l->err;
    if (stats)
      *stats = l->stats;
  }
  free(copy);
  free(l->params);
  return rc;
}

int
sim_launch(SimModule *mod, const char *kernel, const uint32_t grid[3], const uint32_t block[3],
           uint32_t dynamic_shared, const void *const *params, SimStats *stats, SimError *err)
{
  Launch l = {.machine = mod->machine, .module = mod, .kernel = find_kernel(mod, kernel),
              .dynamic_shared = dynamic_shared, .fail_block = UINT64_MAX, .want_stats = stats != NULL,
              .check = mod->machine->opt.check_races};
  memset(err, 0, sizeof *err);
  memcpy(l.grid, grid, sizeof l.grid);
  memcpy(l.block, block, sizeof l.block);
  int rc = l.kernel ? check_launch(&l, err) : sim_error_set(err, SIM_E_ARGUMENT, "no kernel '%s'", kernel);
  if (!rc)
    rc = launch_grid(&l, params, stats, err);
  if (rc && !err->kernel[0])
    snprintf(err->kernel, sizeof err->kernel, "%s", kernel);
  return rc;
}
