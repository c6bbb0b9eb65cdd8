/* call.c - calls: frames, parameters, and where a pointer to a function leads.
 *
 * A split is in a function by way of its frame, which says where it goes on and where the function's local memory begins.
 * Parameters and results are variables in the frames of both sides, copied at the call and at the return. A function's
 * registers have places of their own in the register file (unit.h); only where a lane enters a function that it is in
 * already are they saved, in the frame. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

Frame *
frame_share(Frame *f)
{
  if (f)
    f->refs++;
  return f;
}

static void
unlink_frame(Frame *f)
{
  Frame **at = f->parent ? &f->parent->child : f->root;
  while (*at != f)
    at = &(*at)->sibling;
  *at = f->sibling;
}

void
frame_drop(Frame *f)
{
  while (f && --f->refs == 0) {
    Frame *up = f->parent;
    unlink_frame(f);
    free(f->saved);
    free(f);
    f = up;
  }
}

uint32_t
frame_base(const Split *s)
{
  return s->frame ? s->frame->base : 0;
}

static const Unit *
unit_of(const Kernel *k, const Split *s)
{
  return k->part[s->frame ? s->frame->part : 0].unit;
}

/* The frame of a call from where s is; one that another split has entered by the same way, if there is one. */
static Frame *
frame_enter(Warp *w, const Split *s, uint32_t part, uint32_t pc)
{
  Frame **list = s->frame ? &s->frame->child : &w->frames;
  for (Frame *f = *list; f; f = f->sibling)
    if (f->part == part && f->pc == pc)
      return frame_share(f);
  Frame *f = calloc(1, sizeof *f);
  if (!f)
    return NULL;
  *f = (Frame){.parent = frame_share(s->frame), .root = &w->frames, .sibling = *list, .part = part, .pc = pc, .refs = 1,
               .depth = s->frame ? s->frame->depth + 1 : 1};
  *list = f;
  return f;
}

/* ---- registers of a function that is entered again ---- */

static bool
active(const Frame *f, uint32_t part)
{
  for (; f; f = f->parent)
    if (f->part == part)
      return true;
  return false;
}

static void
copy_slot(uint8_t *to, const uint8_t *from, uint32_t width, uint32_t m)
{
  uint32_t a, b;
  if (width) {
    FOR_LANES(i, m) memcpy(to + i * width, from + i * width, width);
    return;
  }
  memcpy(&a, to, 4);
  memcpy(&b, from, 4);
  a = (a & ~m) | (b & m);
  memcpy(to, &a, 4);
}

/* Lanes m of all registers of a unit; both sides are laid out as the file is. */
static void
copy_registers(const Unit *u, uint8_t *to, const uint8_t *from, uint32_t m)
{
  uint32_t at = FIRST_SLOT;
  for (uint32_t i = 0; i < u->nslots; i++) {
    copy_slot(to + at, from + at, u->width[i], m);
    at += slot_bytes(u->width[i]);
  }
}

static bool
save_registers(const Kernel *k, const Warp *w, Frame *f, uint32_t m)
{
  const Part *p = &k->part[f->part];
  if (!active(f->parent, f->part))
    return true;
  if (!f->saved)
    f->saved = malloc(p->unit->reg_bytes);
  if (f->saved)
    copy_registers(p->unit, f->saved, w->regs + p->file, m);
  return f->saved != NULL;
}

/* ---- parameters ---- */

static void
copy_params(Block *b, const Warp *w, uint32_t m, const Formal *p, uint32_t n, const uint32_t *at, const uint32_t base[2], bool in)
{
  uint32_t bytes = b->kernel->local_bytes;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t out = base[0] + at[i], inside = base[1] + p[i].offset;
    FOR_LANES(lane, m) {
      const uint8_t *l = b->local + (size_t)(w->index * LANES + lane) * bytes;
      local_store(b, w, lane, in ? inside : out, l + (in ? out : inside), p[i].size);
    }
  }
}

static void
set_frame(Warp *w, const Part *p, uint32_t base, uint32_t m)
{
  uint64_t *slot = LANES_OF(uint64_t, w, p->unit->frame + p->file);
  FOR_LANES(i, m) slot[i] = base;
}

int
call_enter(Block *b, Warp *w, Split *s, const Insn *in, uint32_t part)
{
  const Kernel *k = b->kernel;
  const Part *p = &k->part[part];
  const CallSite *site = k->calls[in->call.site];
  uint32_t pc = (uint32_t)(in - k->code), m = s->mask, base[2] = {frame_base(s), 0};
  base[1] = base[0] + unit_of(k, s)->frame_bytes;
  if (base[1] + p->unit->frame_bytes > k->local_bytes) {
    char t[48];
    return sim_fault(b, w, in, __builtin_ctz(m), SIM_E_LIMIT, 0, "the calls of thread %s are nested %u deep, for which %u bytes "
                       "of local memory are not enough", sim_thread_text(b, w->index * LANES + (uint32_t)__builtin_ctz(m), t, sizeof t),
                       s->frame ? s->frame->depth : 0, k->local_bytes);
  }
  Frame *f = frame_enter(w, s, part, pc);
  if (!f || !save_registers(k, w, f, m))
    return sim_fault(b, w, in, -1, SIM_E_MEMORY, 0, "out of memory");
  f->base = base[1];
  f->rank = k->rank[pc];
  FOR_LANES(i, m) local_mark(b, w, i, f->base, p->unit->frame_bytes, false);
  copy_params(b, w, m, p->unit->type.param, p->unit->type.nparam, site->param, base, true);
  set_frame(w, p, f->base, m);
  frame_drop(s->frame);
  *s = (Split){.frame = f, .pc = p->pc, .mask = m, .rank = k->rank[p->pc], .late = s->late, .state = SPLIT_RUN};
  return 0;
}

bool
call_leave(Block *b, Warp *w, Split *s, uint32_t m)
{
  const Kernel *k = b->kernel;
  Frame *f = s->frame;
  if (!f)
    return false;
  const Part *p = &k->part[f->part];
  const CallSite *site = k->calls[k->code[f->pc].call.site];
  uint32_t base[2] = {f->parent ? f->parent->base : 0, f->base};
  copy_params(b, w, m, p->unit->type.ret, p->unit->type.nret, site->ret, base, false);
  if (f->saved)
    copy_registers(p->unit, w->regs + p->file, f->saved, m);
  *s = (Split){.frame = frame_share(f->parent), .pc = f->pc + 1, .mask = m, .rank = k->code[f->pc].fall_rank, .late = s->late,
               .state = SPLIT_RUN};
  frame_drop(f);
  return true;
}

/* ---- pointers ---- */

static bool
same_formals(const Formal *a, uint32_t na, const Formal *b, uint32_t nb)
{
  bool same = na == nb;
  for (uint32_t i = 0; same && i < na; i++)
    same = a[i].size == b[i].size && a[i].align == b[i].align;
  return same;
}

int
call_target(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t *part)
{
  const Kernel *k = b->kernel;
  const CallSite *site = k->calls[in->call.site];
  char t[48];
  if (!in->call.pointer) {
    *part = k->part_of[site->unit] - 1;
    return 0;
  }
  uint64_t v = LANES_OF(uint64_t, w, in->call.pointer)[lane], i = (v - FUNCTION_WINDOW) / 16;
  sim_thread_text(b, w->index * LANES + lane, t, sizeof t);
  if (v < FUNCTION_WINDOW || v % 16 || i >= k->module->nunits || !k->part_of[i])
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, v, "thread %s calls a function at 0x%llx, where there is none", t,
                       (unsigned long long)v);
  const Unit *u = k->part[k->part_of[i] - 1].unit;
  if (!same_formals(u->type.param, u->type.nparam, site->type.param, site->type.nparam) ||
      !same_formals(u->type.ret, u->type.nret, site->type.ret, site->type.nret))
    return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "thread %s calls '%.*s' through a pointer, with other parameters than it has",
                       t, (int)(u->name.n > 100 ? 100 : u->name.n), u->name.s);
  *part = k->part_of[i] - 1;
  return 0;
}
