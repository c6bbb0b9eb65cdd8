/* machine.c - a device's memory: allocations in one sorted table, with poisoned guards around each. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 256, GUARD = 4096, POISON = 0xcb };

void
sim_options_default(SimOptions *o)
{
  *o = (SimOptions){.check_races = 1, .shared_max = 232448};
}

int
sim_create(const SimOptions *o, SimMachine **out, SimError *err)
{
  SimMachine *m = calloc(1, sizeof *m);
  if (!m)
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  if (o)
    m->opt = *o;
  else
    sim_options_default(&m->opt);
  if (!m->opt.shared_max)
    m->opt.shared_max = 232448;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->idle, NULL);
  *out = m;
  return 0;
}

void
sim_destroy(SimMachine *m)
{
  if (!m)
    return;
  for (size_t i = 0; i < m->nallocs; i++)
    free(m->allocs[i].block);
  free(m->allocs);
  pthread_cond_destroy(&m->idle);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

/* The first allocation whose base is above an address. */
static size_t
alloc_above(const SimMachine *m, uintptr_t addr)
{
  size_t lo = 0, hi = m->nallocs;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (m->allocs[mid].base <= addr)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

static int
alloc_insert(SimMachine *m, Alloc a)
{
  if (!sim_vec_grow(&m->allocs, &m->cap, m->nallocs + 1, sizeof *m->allocs))
    return -1;
  size_t at = alloc_above(m, a.base);
  memmove(m->allocs + at + 1, m->allocs + at, (m->nallocs - at) * sizeof *m->allocs);
  m->allocs[at] = a;
  m->nallocs++;
  return 0;
}

int
sim_machine_alloc(SimMachine *m, size_t bytes, void **out, SimError *err)
{
  if (bytes > SIZE_MAX / 2)
    return sim_error_set(err, SIM_E_MEMORY, "an allocation of %zu bytes is too large", bytes);
  size_t total = (GUARD + bytes + GUARD + ALIGN - 1) / ALIGN * ALIGN;
  uint8_t *block = aligned_alloc(ALIGN, total);
  if (!block)
    return sim_error_set(err, SIM_E_MEMORY, "out of memory for %zu bytes", bytes);
  memset(block, POISON, total);
  uintptr_t base = (uintptr_t)block + GUARD;
  pthread_mutex_lock(&m->lock);
  int rc = alloc_insert(m, (Alloc){base, base + bytes, block, total});
  pthread_mutex_unlock(&m->lock);
  if (rc) {
    free(block);
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  }
  *out = block + GUARD;
  return 0;
}

int
sim_alloc(SimMachine *m, size_t bytes, void **ptr, SimError *err)
{
  return sim_machine_alloc(m, bytes, ptr, err);
}

/* Waits for launches in flight, as a device does. */
int
sim_machine_release(SimMachine *m, void *ptr, SimError *err)
{
  pthread_mutex_lock(&m->lock);
  while (m->running)
    pthread_cond_wait(&m->idle, &m->lock);
  size_t at = alloc_above(m, (uintptr_t)ptr);
  void *block = NULL;
  if (at && m->allocs[at - 1].base == (uintptr_t)ptr) {
    block = m->allocs[at - 1].block;
    memmove(m->allocs + at - 1, m->allocs + at, (m->nallocs - at) * sizeof *m->allocs);
    m->nallocs--;
  }
  pthread_mutex_unlock(&m->lock);
  free(block);
  return block ? 0 : sim_error_set(err, SIM_E_BOUNDS, "%p is not the start of an allocation", ptr);
}

int
sim_free(SimMachine *m, void *ptr, SimError *err)
{
  return ptr ? sim_machine_release(m, ptr, err) : 0;
}

int
sim_check_range(SimMachine *m, const void *ptr, size_t bytes, SimError *err)
{
  uintptr_t p = (uintptr_t)ptr;
  pthread_mutex_lock(&m->lock);
  size_t at = alloc_above(m, p);
  const Alloc *a = at ? &m->allocs[at - 1] : NULL;
  bool ok = a && p <= a->end && bytes <= a->end - p;
  pthread_mutex_unlock(&m->lock);
  if (ok)
    return 0;
  sim_error_set(err, SIM_E_BOUNDS, "%zu bytes at %p are not in one allocation", bytes, ptr);
  err->address = p;
  return -1;
}

/* ---- modules ---- */

int
sim_load(SimMachine *m, const char *ptx, size_t len, SimModule **out, SimError *err)
{
  SimModule *mod = calloc(1, sizeof *mod);
  memset(err, 0, sizeof *err);
  if (!mod)
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  mod->machine = m;
  if (ptx_module_read(mod, ptx, len, err)) {
    sim_unload(mod);
    return -1;
  }
  *out = mod;
  return 0;
}

void
sim_unload(SimModule *mod)
{
  SimError ignored;
  if (!mod)
    return;
  for (uint32_t i = 0; i < mod->nkernels; i++)
    ptx_kernel_free(mod->kernels[i]);
  for (uint32_t i = 0; i < mod->nfiles; i++)
    free(mod->files[i]);
  for (uint32_t i = 0; i < mod->nglobals; i++)
    sim_machine_release(mod->machine, mod->globals[i], &ignored);
  free(mod->kernels);
  free(mod->files);
  free(mod->globals);
  free(mod);
}
