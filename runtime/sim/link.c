/* link.c - a kernel: its entry and the functions that it reaches, each decoded once, put together.
 *
 * Every part gets a stretch of code, of the register file, and of the tables; targets and slots move by where it begins.
 * What calls through pointers reaches every function whose address is taken. A kernel that calls nothing uses the arrays of
 * its entry as they are. Shared variables get their places in the order in which the code names them.
 *
 * Local memory is a stack of frames, as deep as the calls can go; where they can go on for ever (a function that reaches
 * itself), STACK_BYTES. */
#include "internal.h"
#include "decode.h"
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 64 << 10, MAX_LINKED = 1 << PC_BITS, MAX_FILE = 1 << 28, MAX_SHARED = 1 << 24, MAX_LOCAL = 1 << 24 };

/* ---- which functions ---- */

static bool
add_part(Kernel *k, const Unit *u, size_t *cap)
{
  if (k->part_of[u->index])
    return true;
  if (!sim_vec_grow(&k->part, cap, k->nparts + 1u, sizeof *k->part))
    return false;
  k->part[k->nparts++] = (Part){.unit = u};
  k->part_of[u->index] = k->nparts;
  return true;
}

static bool
add_callees(Kernel *k, const Unit *u, size_t *cap)
{
  bool ok = true;
  for (uint32_t i = 0; i < u->ncalls && ok; i++)
    if (u->calls[i].unit != UINT32_MAX)
      ok = add_part(k, k->module->units[u->calls[i].unit], cap);
  return ok;
}

static bool
add_taken(Kernel *k, size_t *cap)
{
  const SimModule *m = k->module;
  bool ok = true;
  for (uint32_t i = 0; i < m->nunits && ok; i++)
    if (m->taken[i] && m->units[i])
      ok = add_part(k, m->units[i], cap);
  return ok;
}

static bool
find_parts(Kernel *k)
{
  size_t cap = 0;
  bool pointers = false;
  k->part_of = calloc(k->module->nunits + 1u, sizeof *k->part_of);
  bool ok = k->part_of && add_part(k, k->unit, &cap);
  for (uint32_t i = 0; ok && i < k->nparts; i++) {
    const Unit *u = k->part[i].unit;
    ok = add_callees(k, u, &cap);
    if (ok && u->calls_pointers && !pointers)
      ok = pointers = add_taken(k, &cap);
  }
  return ok;
}

/* ---- how deep ---- */

typedef struct Depth { uint32_t state; uint64_t bytes; } Depth;
enum { NEW, OPEN, DONE };

typedef struct Walk { uint32_t part, call; } Walk;

/* The next callee of a walk that is to be looked at; UINT32_MAX when there are no more. Pointers may lead anywhere: endless. */
static uint32_t
next_callee(const Kernel *k, Walk *w)
{
  const Unit *u = k->part[w->part].unit;
  while (w->call < u->ncalls) {
    uint32_t to = u->calls[w->call++].unit;
    if (to != UINT32_MAX)
      return k->part_of[to] - 1;
  }
  return UINT32_MAX;
}

/* The most bytes of frames from the entry down; false if there is no most. */
static bool
stack_depth(const Kernel *k, uint64_t *bytes)
{
  Depth *d = calloc(k->nparts, sizeof *d);
  Walk *stack = calloc(k->nparts + 1u, sizeof *stack);
  uint32_t n = 0;
  bool finite = d && stack;
  for (uint32_t i = 0; finite && i < k->nparts; i++)
    finite = !k->part[i].unit->calls_pointers;
  if (finite)
    d[0] = (Depth){OPEN, k->part[0].unit->frame_bytes}, stack[n++] = (Walk){0, 0};
  while (finite && n) {
    Walk *w = &stack[n - 1];
    uint32_t to = next_callee(k, w);
    if (to == UINT32_MAX) {
      d[w->part].state = DONE;
      n--;
      if (n) {
        const Unit *up = k->part[stack[n - 1].part].unit;
        uint64_t deep = d[w->part].bytes + up->frame_bytes;
        Depth *at = &d[stack[n - 1].part];
        at->bytes = deep > at->bytes ? deep : at->bytes;
      }
    } else if (d[to].state == OPEN)
      finite = false;
    else if (d[to].state == NEW)
      d[to] = (Depth){OPEN, k->part[to].unit->frame_bytes}, stack[n++] = (Walk){to, 0};
    else {
      uint64_t deep = d[to].bytes + k->part[w->part].unit->frame_bytes;
      d[w->part].bytes = deep > d[w->part].bytes ? deep : d[w->part].bytes;
    }
  }
  *bytes = finite ? d[0].bytes : 0;
  free(d);
  free(stack);
  return finite;
}

/* ---- putting together ---- */

typedef struct Sizes { uint64_t code, file, lists, brx, calls, consts, specials; } Sizes;

static bool
place_parts(Kernel *k, Sizes *s)
{
  for (uint32_t i = 0; i < k->nparts; i++) {
    Part *p = &k->part[i];
    const Unit *u = p->unit;
    p->pc = (uint32_t)s->code, p->file = (uint32_t)s->file, p->list = (uint32_t)s->lists;
    p->brx = (uint32_t)s->brx, p->call = (uint32_t)s->calls;
    s->code += u->ncode, s->file += align_up(u->file_bytes, 64), s->lists += u->nlists;
    s->brx += u->nbrx, s->calls += u->ncalls;
    s->consts += u->nconsts, s->specials += u->nspecials;
    if (s->code > MAX_LINKED || s->file > MAX_FILE)
      return false;
  }
  return true;
}

static void
move_insn(Insn *in, const Part *p)
{
  for (uint32_t j = 0; j < in->nslot; j++)
    in->slot[j] += in->slot[j] ? p->file : 0;
  in->guard += in->guard ? p->file : 0;
  in->list += p->list;
  if (in->kind == K_BRA)
    in->bra.target += p->pc;
  else if (in->kind == K_BRX)
    in->brx.first += p->brx;
  else if (in->kind == K_CALL)
    in->call.site += p->call;
}

static void
copy_part(Kernel *k, const Part *p)
{
  const Unit *u = p->unit;
  memcpy(k->code + p->pc, u->code, u->ncode * sizeof *u->code);
  memcpy(k->rank + p->pc, u->rank, u->ncode * sizeof *u->rank);
  for (uint32_t i = 0; i < u->ncode; i++)
    move_insn(&k->code[p->pc + i], p);
  for (uint32_t i = 0; i < u->nlists; i++)
    k->lists[p->list + i] = u->lists[i] ? u->lists[i] + p->file : 0;
  for (uint32_t i = 0; i < u->nbrx; i++) {
    k->brx[p->brx + i] = u->brx[i] + p->pc;
    k->brx_rank[p->brx + i] = u->brx_rank[i];
  }
  for (uint32_t i = 0; i < u->ncalls; i++)
    k->calls[p->call + i] = &u->calls[i];
}

static void
borrow(Kernel *k)
{
  const Unit *u = k->unit;
  k->code = u->code;
  k->rank = u->rank;
  k->lists = u->lists;
  k->brx = u->brx;
  k->brx_rank = u->brx_rank;
}

static bool
join_code(Kernel *k, const Sizes *s)
{
  k->linked = true;
  k->code = calloc(s->code + 1, sizeof *k->code);
  k->rank = calloc(s->code + 1, sizeof *k->rank);
  k->lists = calloc(s->lists + 1, sizeof *k->lists);
  k->brx = calloc(s->brx + 1, sizeof *k->brx);
  k->brx_rank = calloc(s->brx + 1, sizeof *k->brx_rank);
  k->calls = calloc(s->calls + 1, sizeof *k->calls);
  if (!k->code || !k->rank || !k->lists || !k->brx || !k->brx_rank || !k->calls)
    return false;
  for (uint32_t i = 0; i < k->nparts; i++)
    copy_part(k, &k->part[i]);
  return true;
}

/* ---- functions that do nothing ---- */

/* Whether a part does nothing but return, and call others that are known to. */
static bool
does_nothing(const Kernel *k, const Part *p, const bool *empty)
{
  for (uint32_t i = p->pc; i < p->pc + p->unit->ncode; i++) {
    const Insn *in = &k->code[i];
    if (in->kind == K_RET || in->kind == K_NOP)
      continue;
    if (in->kind != K_CALL || in->call.pointer || !empty[k->part_of[k->calls[in->call.site]->unit] - 1])
      return false;
  }
  return !p->unit->type.nret;
}

/* Calls of such functions, however deep they go, become nothing. Callees are mostly behind their callers; what one pass back over the
 * parts does not find stays as it is. */
static bool
drop_empty_calls(Kernel *k)
{
  bool *empty = calloc(k->nparts, sizeof *empty);
  if (!empty)
    return false;
  for (uint32_t i = k->nparts; i-- > 1;)
    empty[i] = does_nothing(k, &k->part[i], empty);
  for (uint32_t i = 0; i < k->ncode; i++) {
    Insn *in = &k->code[i];
    if (in->kind == K_CALL && !in->call.pointer && empty[k->part_of[k->calls[in->call.site]->unit] - 1])
      in->kind = K_NOP;
  }
  free(empty);
  return true;
}

/* ---- shared memory, constants, variables ---- */

static bool
place_shared(Kernel *k, uint32_t index)
{
  const SharedVar *v = &k->module->shared[index];
  if (k->shared_at[index])
    return true;
  if (v->dynamic) {
    k->shared_align = v->align > k->shared_align ? v->align : k->shared_align;
    k->shared_at[index] = 1;
    return true;
  }
  uint64_t at = align_up(k->static_shared, v->align);
  if (at + v->size > MAX_SHARED)
    return false;
  k->static_shared = (uint32_t)(at + v->size);
  k->shared_at[index] = at + 1;
  return true;
}

/* The dynamic variables all begin behind the static ones. */
static void
place_dynamic(Kernel *k)
{
  for (size_t i = 0; i < k->module->nshared; i++)
    if (k->module->shared[i].dynamic && k->shared_at[i])
      k->shared_at[i] = (uint64_t)align_up(k->static_shared, k->shared_align ? k->shared_align : 1) + 1;
}

static bool
new_constants(Kernel *k, const Sizes *s)
{
  k->consts = calloc(s->consts + 1, sizeof *k->consts);
  k->specials = calloc(s->specials + 1, sizeof *k->specials);
  return k->consts && k->specials;
}

/* false when shared memory is full. */
static bool
copy_constants(Kernel *k)
{
  for (uint32_t i = 0; i < k->nparts; i++) {
    const Part *p = &k->part[i];
    for (uint32_t j = 0; j < p->unit->nconsts; j++) {
      ConstSlot *c = &k->consts[k->nconsts++];
      *c = p->unit->consts[j];
      c->offset += p->file;
      if (c->shared && !place_shared(k, c->shared - 1))
        return false;
    }
    for (uint32_t j = 0; j < p->unit->nspecials; j++) {
      k->specials[k->nspecials] = p->unit->specials[j];
      k->specials[k->nspecials++].offset += p->file;
    }
  }
  place_dynamic(k);
  for (uint32_t i = 0; i < k->nconsts; i++)
    if (k->consts[i].shared)
      k->consts[i].value += k->shared_at[k->consts[i].shared - 1] - 1;
  return true;
}

static bool
copy_signature(Kernel *k)
{
  const Signature *t = &k->unit->type;
  k->param_size = calloc(t->nparam + 1u, sizeof *k->param_size);
  k->param_align = calloc(t->nparam + 1u, sizeof *k->param_align);
  for (uint32_t i = 0; k->param_size && k->param_align && i < t->nparam; i++) {
    k->param_size[i] = t->param[i].size;
    k->param_align[i] = t->param[i].align;
  }
  return k->param_size && k->param_align;
}

/* Whether an instruction looks at memory that other blocks may change meanwhile, and so may wait for them. */
static bool
observes(const Insn *in)
{
  bool atomic = in->fn.warp == atom_exec && in->mem.result, load = in->fn.warp == mem_load && in->mem.order != ORDER_WEAK;
  return in->kind == K_WARP && (atomic || load) && (in->mem.at.space == SP_GLOBAL || in->mem.at.space == SP_GENERIC);
}

static bool
place_stack(Kernel *k)
{
  uint64_t bytes = 0;
  if (!stack_depth(k, &bytes))
    bytes = (uint64_t)k->unit->frame_bytes + STACK_BYTES;
  k->local_bytes = (uint32_t)bytes;
  return bytes <= MAX_LOCAL;
}

static int
join(Kernel *k, SimError *err)
{
  Sizes s = {0};
  k->shared_at = calloc(k->module->nshared + 1, sizeof *k->shared_at);
  int n = (int)k->unit->name.n;
  bool ok = k->shared_at && find_parts(k) && copy_signature(k);
  if (!ok)
    sim_error_set(err, SIM_E_MEMORY, "out of memory");
  else if (!place_parts(k, &s))
    ok = sim_error_set(err, SIM_E_PARSE, "kernel '%.*s' is too large with all that it calls", n, k->unit->name.s) == 0;
  k->ncode = (uint32_t)s.code;
  k->file_bytes = (uint32_t)s.file;
  if (ok && k->nparts == 1 && !k->unit->ncalls)
    borrow(k);
  else if (ok && (!join_code(k, &s) || !drop_empty_calls(k)))
    ok = sim_error_set(err, SIM_E_MEMORY, "out of memory") == 0;
  if (ok && !new_constants(k, &s))
    ok = sim_error_set(err, SIM_E_MEMORY, "out of memory") == 0;
  if (ok && !copy_constants(k))
    ok = sim_error_set(err, SIM_E_PARSE, "kernel '%.*s' has too much shared memory", n, k->unit->name.s) == 0;
  if (ok && !place_stack(k))
    ok = sim_error_set(err, SIM_E_PARSE, "kernel '%.*s' has too much local memory", n, k->unit->name.s) == 0;
  for (uint32_t i = 0; ok && i < k->ncode; i++) {
    k->observes |= observes(&k->code[i]);
    k->agents |= k->code[i].fn.warp == mbar_exec || k->code[i].fn.warp == bulk_exec || k->code[i].fn.warp == wgmma_exec;
    k->products |= k->code[i].fn.warp == wgmma_exec;
  }
  return ok ? 0 : -1;
}

Kernel *
sim_kernel_link(SimModule *mod, const Unit *entry, SimError *err)
{
  Kernel *k = calloc(1, sizeof *k);
  if (!k) {
    sim_error_set(err, SIM_E_MEMORY, "out of memory");
    return NULL;
  }
  k->module = mod;
  k->unit = entry;
  if (join(k, err) == 0)
    return k;
  sim_kernel_free(k);
  return NULL;
}

void
sim_kernel_free(Kernel *k)
{
  if (!k)
    return;
  if (k->linked) {
    free(k->code);
    free(k->rank);
    free(k->lists);
    free(k->brx);
    free(k->brx_rank);
    free(k->calls);
  }
  free(k->part);
  free(k->part_of);
  free(k->consts);
  free(k->specials);
  free(k->shared_at);
  free(k->param_size);
  free(k->param_align);
  free(k);
}

void
sim_unit_free(Unit *u)
{
  if (!u)
    return;
  for (uint32_t i = 0; i < u->ncalls; i++) {
    free(u->calls[i].param);
    free(u->calls[i].ret);
    signature_free(&u->calls[i].type);
  }
  signature_free(&u->type);
  free(u->width);
  free(u->code);
  free(u->loc);
  free(u->rank);
  free(u->lists);
  free(u->brx);
  free(u->brx_rank);
  free(u->consts);
  free(u->specials);
  free(u->calls);
  free(u->locals);
  free(u->places);
  free(u);
}

const Part *
sim_kernel_part(const Kernel *k, uint32_t pc)
{
  uint32_t lo = 0, hi = k->nparts;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (k->part[mid].pc <= pc)
      lo = mid;
    else
      hi = mid;
  }
  return &k->part[lo];
}
