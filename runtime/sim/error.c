/* error.c - filling SimError, the type tables and the growth of vectors. */
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t ptx_type_bytes[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = bytes,
#include "types.def"
};
const uint8_t ptx_type_class[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = TC_##cls,
#include "types.def"
};
const char *const ptx_type_text[T_COUNT] = {
#define TYPE(id, text, bytes, cls) [T_##id] = text,
#include "types.def"
};

int
sim_error_set(SimError *e, SimErrorKind kind, const char *fmt, ...)
{
  va_list ap;
  e->kind = kind;
  va_start(ap, fmt);
  vsnprintf(e->message, sizeof e->message, fmt, ap);
  va_end(ap);
  return -1;
}

/* The place of an instruction in the source, and its line in PTX; NULL if the source is unknown. */
static const Place *
place_of(const Kernel *k, uint32_t pc, uint32_t *ptx_line)
{
  const Part *p = sim_kernel_part(k, pc);
  const Loc *l = &p->unit->loc[pc - p->pc];
  *ptx_line = l->ptx_line;
  return l->place ? &p->unit->places[l->place - 1] : NULL;
}

static const char *
file_of(const SimModule *m, const Place *p)
{
  return p && p->file < m->nfiles ? m->files[p->file] : NULL;
}

const char *
sim_loc_text(const Block *b, uint32_t pc, char *buf, size_t n)
{
  uint32_t line;
  const Place *p = place_of(b->kernel, pc, &line);
  const char *file = file_of(b->kernel->module, p);
  if (file)
    snprintf(buf, n, "%s:%u", file, p->line);
  else
    snprintf(buf, n, "PTX line %u", line);
  return buf;
}

const char *
sim_thread_text(const Block *b, uint32_t linear, char *buf, size_t n)
{
  const uint32_t *d = b->launch->block;
  snprintf(buf, n, "(%u,%u,%u)", linear % d[0], linear / d[0] % d[1], linear / d[0] / d[1]);
  return buf;
}

static void
error_place(Block *b, Warp *w, const Insn *in, int lane)
{
  SimError *e = &b->worker->err;
  const Kernel *k = b->kernel;
  snprintf(e->kernel, sizeof e->kernel, "%.*s", (int)(k->unit->name.n > 127 ? 127 : k->unit->name.n), k->unit->name.s);
  memcpy(e->block, b->id, sizeof e->block);
  if (w && lane >= 0) {
    uint32_t t = w->index * LANES + (uint32_t)lane;
    const uint32_t *n = b->launch->block;
    e->thread[0] = t % n[0];
    e->thread[1] = t / n[0] % n[1];
    e->thread[2] = t / n[0] / n[1];
  }
  if (!in)
    return;
  const Place *p = place_of(k, (uint32_t)(in - k->code), &e->ptx_line);
  if (!p)
    return;
  e->line = p->line;
  e->column = p->column;
  if (file_of(k->module, p))
    snprintf(e->file, sizeof e->file, "%s", file_of(k->module, p));
}

int
sim_fault(Block *b, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address, const char *fmt, ...)
{
  va_list ap;
  b->worker->err = (SimError){.kind = kind, .address = address};
  va_start(ap, fmt);
  vsnprintf(b->worker->err.message, sizeof b->worker->err.message, fmt, ap);
  va_end(ap);
  error_place(b, w, in, lane);
  return -1;
}

bool
sim_vec_grow(void *vec_ptr, size_t *cap, size_t need, size_t elem)
{
  void *old, *grown;
  if (need <= *cap)
    return true;
  size_t want = *cap ? *cap : 16;
  while (want < need)
    want *= 2;
  memcpy(&old, vec_ptr, sizeof old);
  grown = realloc(old, want * elem);
  if (!grown)
    return false;
  memcpy(vec_ptr, &grown, sizeof grown);
  *cap = want;
  return true;
}
