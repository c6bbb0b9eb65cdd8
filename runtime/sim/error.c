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

const char *
sim_loc_text(const Worker *k, uint32_t pc, char *buf, size_t n)
{
  const Kernel *kn = k->kernel;
  const SimModule *m = k->launch->module;
  Loc none = {0}, l = pc < kn->ncode ? kn->loc[pc] : none;
  if (l.line && l.file < m->nfiles && m->files[l.file])
    snprintf(buf, n, "%s:%u", m->files[l.file], l.line);
  else
    snprintf(buf, n, "PTX line %u", l.ptx_line);
  return buf;
}

const char *
sim_thread_text(const Worker *k, uint32_t linear, char *buf, size_t n)
{
  const uint32_t *b = k->launch->block;
  snprintf(buf, n, "(%u,%u,%u)", linear % b[0], linear / b[0] % b[1], linear / b[0] / b[1]);
  return buf;
}

static void
error_place(Worker *k, Warp *w, const Insn *in, int lane)
{
  SimError *e = &k->err;
  const Kernel *kn = k->kernel;
  snprintf(e->kernel, sizeof e->kernel, "%s", kn->name);
  memcpy(e->block, k->block, sizeof e->block);
  if (w && lane >= 0) {
    uint32_t t = w->index * LANES + (uint32_t)lane;
    const uint32_t *b = k->launch->block;
    e->thread[0] = t % b[0];
    e->thread[1] = t / b[0] % b[1];
    e->thread[2] = t / b[0] / b[1];
  }
  if (!in)
    return;
  const SimModule *m = k->launch->module;
  const Loc *l = &kn->loc[in - kn->code];
  e->ptx_line = l->ptx_line;
  e->line = l->line;
  e->column = l->column;
  if (l->line && l->file < m->nfiles && m->files[l->file])
    snprintf(e->file, sizeof e->file, "%s", m->files[l->file]);
}

int
worker_error(Worker *k, Warp *w, const Insn *in, int lane, SimErrorKind kind, uint64_t address,
             const char *fmt, ...)
{
  va_list ap;
  k->err = (SimError){.kind = kind, .address = address};
  va_start(ap, fmt);
  vsnprintf(k->err.message, sizeof k->err.message, fmt, ap);
  va_end(ap);
  error_place(k, w, in, lane);
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
