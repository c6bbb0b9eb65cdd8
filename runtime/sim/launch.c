/* launch.c - a grid: kernels by name, checks of the launch, its parameters and memory. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SM_THREADS = 2048, SM_BLOCKS = 32, SM_SHARED = 233472, SHARED_RESERVED = 1024, PORTABLE_CLUSTER = 8 };

/* ---- kernels ---- */

static bool
has_name(const Unit *u, const char *name)
{
  return u && u->entry && u->name.n == strlen(name) && memcmp(u->name.s, name, u->name.n) == 0;
}

static Kernel *
add_kernel(SimModule *mod, const Unit *u, SimError *err)
{
  Kernel **grown = realloc(mod->kernels, (mod->nkernels + 1) * sizeof *grown);
  if (!grown) {
    sim_error_set(err, SIM_E_MEMORY, "out of memory");
    return NULL;
  }
  mod->kernels = grown;
  Kernel *k = sim_kernel_link(mod, u, err);
  if (k)
    mod->kernels[mod->nkernels++] = k;
  return k;
}

static Kernel *
find_linked(SimModule *mod, const char *name, SimError *err)
{
  for (uint32_t i = 0; i < mod->nkernels; i++)
    if (has_name(mod->kernels[i]->unit, name))
      return mod->kernels[i];
  for (uint32_t i = 0; i < mod->nunits; i++)
    if (has_name(mod->units[i], name))
      return add_kernel(mod, mod->units[i], err);
  sim_error_set(err, SIM_E_ARGUMENT, "no kernel '%s'", name);
  return NULL;
}

/* A kernel is linked when it is asked for first. */
static Kernel *
find_kernel(SimModule *mod, const char *name, SimError *err)
{
  pthread_mutex_lock(&mod->machine->lock);
  Kernel *k = find_linked(mod, name, err);
  pthread_mutex_unlock(&mod->machine->lock);
  return k;
}

int
sim_kernel(SimModule *mod, const char *name, SimKernelInfo *out, SimError *err)
{
  const Kernel *k = find_kernel(mod, name, err);
  if (!k)
    return -1;
  *out = (SimKernelInfo){.nparams = (int)k->unit->type.nparam, .param_size = k->param_size, .param_align = k->param_align,
                         .static_shared = k->static_shared, .local_bytes = k->local_bytes};
  memcpy(out->reqntid, k->unit->reqntid, sizeof out->reqntid);
  memcpy(out->maxntid, k->unit->maxntid, sizeof out->maxntid);
  return 0;
}

/* ---- checks ---- */

static int
check_block(const Unit *u, const uint32_t block[3], SimError *err)
{
  uint64_t n = (uint64_t)block[0] * block[1] * block[2];
  const uint32_t *want = u->reqntid, *most = u->maxntid;
  if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || n > 1024)
    return sim_error_set(err, SIM_E_ARGUMENT, "a block of %u x %u x %u threads: 1 to 1024 are possible", block[0],
                         block[1], block[2]);
  if (want[0] && memcmp(want, block, 3 * sizeof *want) != 0)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' needs blocks of %u x %u x %u threads, not %u x %u x %u", (int)u->name.n,
                         u->name.s, want[0], want[1], want[2], block[0], block[1], block[2]);
  if (most[0] && n > (uint64_t)most[0] * most[1] * most[2])
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' takes at most %u threads a block, not %llu", (int)u->name.n, u->name.s,
                         most[0] * most[1] * most[2], (unsigned long long)n);
  return 0;
}

/* The cluster that the kernel asks for, or the launch. */
static int
choose_cluster(Launch *l, const SimLaunch *x, SimError *err)
{
  const Unit *u = l->kernel->unit;
  const uint32_t *want = u->reqcluster, *given = x->cluster;
  bool says = given[0] || given[1] || given[2];
  l->explicit_cluster = says || want[0];
  for (uint32_t i = 0; i < 3; i++)
    l->cluster[i] = says ? given[i] : want[0] ? want[i] : 1;
  if (says && want[0] && memcmp(want, given, 3 * sizeof *want) != 0)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' needs clusters of %u x %u x %u blocks, not %u x %u x %u", (int)u->name.n,
                         u->name.s, want[0], want[1], want[2], given[0], given[1], given[2]);
  if (u->explicit_cluster && !l->explicit_cluster)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' has to be launched with a cluster size", (int)u->name.n, u->name.s);
  for (uint32_t i = 0; u->blocks_are_clusters && i < 3; i++)
    l->grid[i] *= l->cluster[i] && l->grid[i] <= INT32_MAX / l->cluster[i] ? l->cluster[i] : 1;
  return 0;
}

static int
check_cluster(Launch *l, bool large, SimError *err)
{
  const Unit *u = l->kernel->unit;
  const uint32_t *c = l->cluster, *g = l->grid;
  uint64_t n = (uint64_t)c[0] * c[1] * c[2], most = large ? MAX_CLUSTER : PORTABLE_CLUSTER;
  if (!n || c[0] > MAX_CLUSTER || c[1] > MAX_CLUSTER || c[2] > MAX_CLUSTER || n > most)
    return sim_error_set(err, SIM_E_ARGUMENT, "a cluster of %u x %u x %u blocks: 1 to %llu are possible%s", c[0], c[1], c[2],
                         (unsigned long long)most,
                         n > most && n <= MAX_CLUSTER ? ", and up to 16 where large ones are asked for" : "");
  if (u->maxcluster && n > u->maxcluster)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' takes clusters of at most %u blocks, not %llu", (int)u->name.n, u->name.s,
                         u->maxcluster, (unsigned long long)n);
  if (g[0] % c[0] || g[1] % c[1] || g[2] % c[2])
    return sim_error_set(err, SIM_E_ARGUMENT, "a grid of %u x %u x %u blocks is no multiple of the cluster's %u x %u x %u", g[0], g[1],
                         g[2], c[0], c[1], c[2]);
  l->ncluster = (uint32_t)n;
  return 0;
}

static int
check_launch(Launch *l, const SimLaunch *x, SimError *err)
{
  const Kernel *k = l->kernel;
  uint32_t align = k->shared_align ? k->shared_align : 1;
  uint64_t start = l->dynamic_shared ? (k->static_shared + (uint64_t)align - 1) & ~((uint64_t)align - 1)
                                     : k->static_shared;
  uint64_t shared = start + l->dynamic_shared;
  const uint32_t *g = l->grid;
  if (choose_cluster(l, x, err))
    return -1;
  if (!g[0] || !g[1] || !g[2] || g[0] > INT32_MAX || g[1] > 65535 || g[2] > 65535)
    return sim_error_set(err, SIM_E_ARGUMENT, "a grid of %u x %u x %u blocks is outside the limits", l->grid[0],
                         l->grid[1], l->grid[2]);
  if (check_block(k->unit, l->block, err) || check_cluster(l, x->large_clusters, err))
    return -1;
  if (shared > l->machine->opt.shared_max)
    return sim_error_set(err, SIM_E_ARGUMENT, "kernel '%.*s' needs %llu bytes of shared memory where a block may have %u",
                         (int)k->unit->name.n, k->unit->name.s, (unsigned long long)shared, l->machine->opt.shared_max);
  l->shared_bytes = (uint32_t)shared;
  l->nthreads = l->block[0] * l->block[1] * l->block[2];
  l->nwarps = (l->nthreads + LANES - 1) / LANES;
  l->nblocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  l->turns = (k->observes && l->nblocks > 1) || l->ncluster > 1;
  l->registers = registers_at_start(k->unit, l->nthreads);
  l->nclocks = l->ncluster > 1 ? PROXIES * MAX_AGENTS : k->agents || l->dependent ? MAX_AGENTS : l->nwarps;
  return 0;
}

static int
pack_params(Launch *l, const void *const *params, SimError *err)
{
  const Unit *u = l->kernel->unit;
  l->params = calloc(1, (size_t)u->param_bytes + 64);
  if (!l->params)
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  for (uint32_t i = 0; i < u->type.nparam; i++) {
    if (!params || !params[i])
      return sim_error_set(err, SIM_E_ARGUMENT, "parameter %u of kernel '%.*s' is missing", i, (int)u->name.n, u->name.s);
    memcpy(l->params + u->type.param[i].offset, params[i], u->type.param[i].size);
  }
  return 0;
}

/* ---- the launch ---- */

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

/* What an H200 holds at a time, by threads and shared memory; registers are not known. */
static uint32_t
occupancy(uint32_t nwarps, uint64_t shared_bytes)
{
  uint64_t by_threads = SM_THREADS / (nwarps * LANES), by_shared = SM_SHARED / (shared_bytes + SHARED_RESERVED);
  uint64_t n = by_threads < by_shared ? by_threads : by_shared;
  return n > SM_BLOCKS ? SM_BLOCKS : n ? (uint32_t)n : 1;
}

uint32_t
sim_occupancy(const SimKernelInfo *k, uint32_t threads, uint32_t dynamic_shared)
{
  uint32_t nwarps = (threads + LANES - 1) / LANES;
  return occupancy(nwarps ? nwarps : 1, (uint64_t)k->static_shared + dynamic_shared);
}

uint64_t
sim_resident(const Launch *l)
{
  uint64_t n = (uint64_t)occupancy(l->nwarps, l->shared_bytes) * l->machine->opt.multiprocessors / l->ncluster;
  return n ? n : 1;
}

void
sim_cancel(SimMachine *m)
{
  __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);
}

/* Segments and readers of a launch; NULL chunks, made when they are needed. */
static int
records_new(Launch *l, SimError *err)
{
  SimMachine *m = l->machine;
  l->know_levels = know_levels(l->nblocks);
  if (m->next_segment > 1u << 30) {
    sim_settled(m);
    for (size_t i = 0; i < l->nallocs; i++)
      if (l->allocs[i].shadow)
        shadow_forget(l->allocs[i].shadow);
    m->next_segment = 1;
  }
  if (past_take(l))
    return 0;
  l->segments.first = l->segments.next = m->next_segment;
  l->segments.chunk = calloc(SEGMENT_CHUNKS, sizeof *l->segments.chunk);
  l->readers.chunk = calloc(READER_CHUNKS, sizeof *l->readers.chunk);
  return l->segments.chunk && l->readers.chunk ? 0 : sim_error_set(err, SIM_E_MEMORY, "out of memory");
}

static void
records_end(Launch *l)
{
  syncs_free(&l->syncs);
  l->machine->next_segment = l->segments.next;
  past_end(l);
}

static int
launch_grid(Launch *l, const void *const *params, SimStats *stats, SimError *err)
{
  Alloc *copy = NULL;
  int rc = pack_params(l, params, err);
  if (!rc)
    rc = snapshot(l, &copy, err);
  if (!rc) {
    rc = records_new(l, err);
    if (!rc)
      workers_run(l);
    records_end(l);
    release(l->machine);
    if (rc)
      l->fail_block = 0, l->err = *err;
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
sim_run(SimModule *mod, const SimLaunch *x, SimStats *stats, SimError *err)
{
  SimMachine *m = mod->machine;
  Launch l = {.machine = m, .module = mod, .dynamic_shared = x->dynamic_shared, .fail_block = UINT64_MAX, .manifest = x->manifest,
              .want_stats = stats != NULL, .check = m->opt.check_races, .stream = x->stream, .dependent = x->dependent};
  memset(err, 0, sizeof *err);
  memcpy(l.grid, x->grid, sizeof l.grid);
  memcpy(l.block, x->block, sizeof l.block);
  l.kernel = find_kernel(mod, x->kernel, err);
  int rc = l.kernel ? check_launch(&l, x, err) : -1;
  pthread_mutex_lock(&m->turn);
  __atomic_store_n(&m->cancel, 0, __ATOMIC_RELAXED);
  if (!rc)
    rc = launch_grid(&l, x->params, stats, err);
  pthread_mutex_unlock(&m->turn);
  if (rc && !err->kernel[0])
    snprintf(err->kernel, sizeof err->kernel, "%s", x->kernel);
  return rc;
}

int
sim_launch(SimModule *mod, const char *kernel, const uint32_t grid[3], const uint32_t block[3],
           uint32_t dynamic_shared, const void *const *params, SimStats *stats, SimError *err)
{
  SimLaunch x = {.kernel = kernel, .grid = {grid[0], grid[1], grid[2]}, .block = {block[0], block[1], block[2]},
                 .dynamic_shared = dynamic_shared, .params = params};
  return sim_run(mod, &x, stats, err);
}
