/* machine.c - a device's memory: allocations in one sorted table, with poisoned guards around each. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 256, GUARD = 4096, POISON = 0xcb, WIDEST = 16 };

void
sim_options_default(SimOptions *o)
{
  *o = (SimOptions){.check_races = 1, .shared_max = 232448, .multiprocessors = 132};
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
  if (!m->opt.multiprocessors)
    m->opt.multiprocessors = 132;
  m->next_segment = 1;
  pthread_mutex_init(&m->turn, NULL);
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
  for (size_t i = 0; i < m->nallocs; i++) {
    shadow_free(m->allocs[i].block ? m->allocs[i].shadow : NULL);
    free(m->allocs[i].block);
  }
  free(m->allocs);
  past_drop(&m->past);
  pthread_mutex_destroy(&m->turn);
  pthread_cond_destroy(&m->idle);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

const Alloc *
sim_alloc_below(const Alloc *allocs, size_t n, uint64_t addr)
{
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (allocs[mid].base <= addr)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo ? &allocs[lo - 1] : NULL;
}

/* n neighbours into the table, in order of their addresses. */
static int
alloc_insert(SimMachine *m, const Alloc *a, size_t n)
{
  if (!sim_vec_grow(&m->allocs, &m->cap, m->nallocs + n, sizeof *m->allocs))
    return -1;
  const Alloc *below = sim_alloc_below(m->allocs, m->nallocs, a->base);
  size_t at = below ? (size_t)(below - m->allocs) + 1 : 0;
  memmove(m->allocs + at + n, m->allocs + at, (m->nallocs - at) * sizeof *m->allocs);
  memcpy(m->allocs + at, a, n * sizeof *a);
  m->nallocs += n;
  return 0;
}

/* Where the parts lie in a block of their own, and its size; 0 if that is too much. */
static size_t
lay_out(AllocPart *part, size_t n)
{
  size_t at = GUARD;
  for (size_t i = 0; i < n; i++) {
    size_t align = part[i].align > ALIGN ? part[i].align : ALIGN;
    at = (at + align - 1) / align * align;
    part[i].base = at;
    if (part[i].bytes > SIZE_MAX / 4 || at > SIZE_MAX / 4)
      return 0;
    at += part[i].bytes + ALIGN;
  }
  return (at + GUARD + ALIGN - 1) / ALIGN * ALIGN;
}

int
sim_machine_alloc_parts(SimMachine *m, AllocPart *part, size_t n, void **out, SimError *err)
{
  size_t total = lay_out(part, n), align = ALIGN, asked = 0;
  for (size_t i = 0; i < n; i++) {
    align = part[i].align > align ? part[i].align : align;
    asked = part[i].bytes > SIZE_MAX - asked ? SIZE_MAX : asked + part[i].bytes;
  }
  uint8_t *block = total ? aligned_alloc(align, (total + align - 1) / align * align) : NULL;
  Alloc *a = calloc(n, sizeof *a);
  Shadow *shadow = block && m->opt.check_races ? shadow_new(block, total, NULL) : NULL;
  int rc = block && a && (shadow || !m->opt.check_races) ? 0 : -1;
  for (size_t i = 0; i < n && !rc; i++) {
    part[i].base += (uintptr_t)block;
    a[i] = (Alloc){part[i].base, part[i].base + part[i].bytes, i ? NULL : block, (uint32_t)n, shadow};
  }
  if (!rc) {
    memset(block, POISON, total);
    if (shadow)
      shadow_mark(shadow, 0, total, true);
    pthread_mutex_lock(&m->lock);
    rc = alloc_insert(m, a, n);
    pthread_mutex_unlock(&m->lock);
  }
  *out = rc ? NULL : (void *)part[0].base;
  free(a);
  if (!rc)
    return 0;
  shadow_free(shadow);
  free(block);
  return sim_error_set(err, SIM_E_MEMORY, "out of memory for %zu bytes", asked);
}

int
sim_machine_alloc(SimMachine *m, size_t bytes, void **out, SimError *err)
{
  AllocPart one = {bytes, ALIGN, 0};
  return sim_machine_alloc_parts(m, &one, 1, out, err);
}

int
sim_alloc(SimMachine *m, size_t bytes, void **ptr, SimError *err)
{
  return sim_machine_alloc(m, bytes, ptr, err);
}

int
sim_adopt(SimMachine *m, void *ptr, size_t bytes, SimError *err)
{
  const uint64_t p = (uintptr_t)ptr;
  if (p % WIDEST)                      /* no access lies on two pages of a shadow, which begins where the memory does */
    return sim_error_set(err, SIM_E_ARGUMENT, "%p is no multiple of %d, as memory that kernels reach has to be here", ptr, WIDEST);
  if (bytes > UINTPTR_MAX - p)
    return sim_error_set(err, SIM_E_ARGUMENT, "%zu bytes at %p: there are not so many addresses", bytes, ptr);
  Shadow *shadow = m->opt.check_races ? shadow_new(ptr, bytes, NULL) : NULL;
  const Alloc a = {p, p + bytes, NULL, 1, shadow};
  int rc = shadow || !m->opt.check_races ? 0 : -1;
  bool apart = true;
  pthread_mutex_lock(&m->lock);
  while (m->running)
    pthread_cond_wait(&m->idle, &m->lock);
  const Alloc *below = sim_alloc_below(m->allocs, m->nallocs, a.end - 1);
  apart = bytes && a.end > p && !(below && below->end > p);
  if (!rc && apart)
    rc = alloc_insert(m, &a, 1);
  pthread_mutex_unlock(&m->lock);
  if (!rc && apart)
    return 0;
  shadow_free(shadow);
  return rc ? sim_error_set(err, SIM_E_MEMORY, "out of memory for %zu bytes", bytes)
            : sim_error_set(err, SIM_E_ARGUMENT, "%zu bytes at %p are known already, in part or all of them", bytes, ptr);
}

void
sim_forget(SimMachine *m, void *ptr)
{
  Shadow *shadow = NULL;
  pthread_mutex_lock(&m->lock);
  while (m->running)
    pthread_cond_wait(&m->idle, &m->lock);
  const Alloc *a = sim_alloc_below(m->allocs, m->nallocs, (uintptr_t)ptr);
  if (a && a->base == (uintptr_t)ptr && !a->block) {
    size_t at = (size_t)(a - m->allocs);
    shadow = a->shadow;
    memmove(m->allocs + at, m->allocs + at + 1, (m->nallocs - (at + 1)) * sizeof *m->allocs);
    m->nallocs--;
  }
  pthread_mutex_unlock(&m->lock);
  shadow_free(shadow);
}

/* ptr: the first part. Waits for launches in flight, as a device does. */
int
sim_machine_release(SimMachine *m, void *ptr, SimError *err)
{
  pthread_mutex_lock(&m->lock);
  while (m->running)
    pthread_cond_wait(&m->idle, &m->lock);
  const Alloc *a = sim_alloc_below(m->allocs, m->nallocs, (uintptr_t)ptr);
  void *block = NULL;
  Shadow *shadow = NULL;
  if (a && a->base == (uintptr_t)ptr && a->block) {
    size_t n = a->parts, at = (size_t)(a - m->allocs);
    block = a->block;
    shadow = a->shadow;
    memmove(m->allocs + at, m->allocs + at + n, (m->nallocs - (at + n)) * sizeof *m->allocs);
    m->nallocs -= n;
  }
  pthread_mutex_unlock(&m->lock);
  shadow_free(shadow);
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
  const Alloc *a = sim_alloc_below(m->allocs, m->nallocs, p);
  bool ok = a && p <= a->end && bytes <= a->end - p;
  pthread_mutex_unlock(&m->lock);
  if (ok)
    return 0;
  sim_error_set(err, SIM_E_BOUNDS, "%zu bytes at %p are not in one allocation", bytes, ptr);
  err->address = p;
  return -1;
}

void
sim_mark(SimMachine *m, const void *ptr, size_t bytes, int written)
{
  uintptr_t p = (uintptr_t)ptr;
  pthread_mutex_lock(&m->lock);
  const Alloc *a = sim_alloc_below(m->allocs, m->nallocs, p);
  if (a && a->shadow && p <= a->end && bytes <= a->end - p)
    shadow_mark(a->shadow, p - (uintptr_t)a->shadow->memory, bytes, written);
  pthread_mutex_unlock(&m->lock);
}

/* ---- modules ---- */

int
sim_load(SimMachine *m, const char *ptx, size_t len, SimModule **out, SimError *err)
{
  SimModule *mod = calloc(1, sizeof *mod);
  memset(err, 0, sizeof *err);
  if (mod)
    mod->text = malloc(len + 1);
  if (!mod || !mod->text) {
    free(mod);
    return sim_error_set(err, SIM_E_MEMORY, "out of memory");
  }
  memcpy(mod->text, ptx, len);
  mod->text[len] = 0;
  mod->len = len;
  mod->machine = m;
  if (ptx_module_read(mod, err)) {
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
  sim_settled(mod->machine);
  for (uint32_t i = 0; i < mod->nkernels; i++)
    sim_kernel_free(mod->kernels[i]);
  for (uint32_t i = 0; i < mod->nunits; i++)
    sim_unit_free(mod->units[i]);
  for (uint32_t i = 0; i < mod->nfiles; i++)
    free(mod->files[i]);
  if (mod->globals)
    sim_machine_release(mod->machine, mod->globals, &ignored);
  free(mod->kernels);
  free(mod->units);
  free(mod->taken);
  free(mod->shared);
  free(mod->global);
  free(mod->files);
  free(mod->strings);
  free(mod->text);
  free(mod);
}
