/* interp_global.c - who reached which byte of global memory since all threads last met (InterpOptions.barriers).
 *
 * The interpreter is one actor, so what it does is in program order. Compiled, an element belongs to threads: those that its layout
 * gives it to, of which all load it and the leader stores it. For every byte of the buffers the last write and the last reads are
 * kept, by thread. An access is a fault if another thread wrote there since the last barrier, and a write also if another thread read
 * there. One op's own elements are no matter: they happen at a time. Atomic ops that come to the same in any order do not conflict. */
#include "alias.h"
#include "interp_run.h"

/* A thread, or more than one of them. */
enum { SEVERAL = UINT32_MAX };

/* A byte. read, wrote: the number of the access, 0: never. reading, writing: the thread. */
typedef struct Cell { const Op *reader, *writer; u64 read, wrote; u32 reading, writing; } Cell;
/* The leader of each element, by flat index. */
typedef struct Owners { const Layout *layout; u32 *leader; bool copies; } Owners;
typedef struct InterpGlobal {
  Cell **cells;                 /* by buffer; NULL: not reached yet */
  VEC(Owners) owners;
  u64 now, met;                 /* accesses so far; how many of them when all threads last met */
} InterpGlobal;

static InterpGlobal *
global(Interp *in)
{
  if (!in->global) {
    in->global = NEW(in->arena, InterpGlobal);
    in->global->cells = NEW_ARRAY(in->arena, Cell *, in->nbuffers + 1);
  }
  return in->global;
}

void
interp_meet(Interp *in)
{
  if (in->opt->barriers)
    global(in)->met = global(in)->now;
}

void
interp_access(Interp *in, const Op *op)
{
  if (!in->opt->barriers || !op_pointer(op))
    return;
  if (op_releases(op))
    interp_meet(in);
  global(in)->now++;
}

static void
list_leaders(Owners *o)
{
  const Layout *l = o->layout;
  u32 lanes = layout_free_bits(l, IN_LANE), warps = layout_free_bits(l, IN_WARP);
  o->copies = lanes || warps;
  for (u32 w = 0; w < 1u << l->in_bits[IN_WARP]; w++)
    for (u32 lane = 0; lane < 1u << l->in_bits[IN_LANE]; lane++)
      for (u32 r = 0; !(lane & lanes) && !(w & warps) && r < layout_regs(l); r++)
        o->leader[layout_eval(l, r, lane, w, 0)] = w * 32 + lane;
}

static const Owners *
owners_of(Interp *in, const Layout *l)
{
  InterpGlobal *g = global(in);
  for (u32 i = 0; i < g->owners.len; i++)
    if (g->owners.data[i].layout == l)
      return &g->owners.data[i];
  Owners o = {.layout = l, .leader = NEW_ARRAY(in->arena, u32, layout_numel(l))};
  list_leaders(&o);
  vec_push(in->arena, &g->owners, o);
  return &g->owners.data[g->owners.len - 1];
}

/* The thread that op reaches element i by. */
static u32
thread_of(Interp *in, const Op *op, u32 i)
{
  const Type *t = op_pointer(op)->type;
  u32 coord[MAX_RANK];
  bool writes = op_has(op, T_WRITES);
  if (!type_is_tile(t) || !t->layout)
    return writes ? 0 : SEVERAL;
  const Owners *o = owners_of(in, t->layout);
  for (int d = t->rank - 1; d >= 0; d--) {
    coord[d] = i % t->shape[d];
    i /= t->shape[d];
  }
  return o->copies && !writes ? SEVERAL : o->leader[layout_flat(t->layout, coord)];
}

/* Did another thread, or more than one, do it since all met? Not if op itself is at it. */
static bool
is_news(const InterpGlobal *g, u64 when, u32 who, u32 thread)
{
  return when > g->met && when != g->now && (who != thread || who == SEVERAL);
}

static bool
clashes(Interp *in, const Op *op, const Op *other, const char *what)
{
  if (ops_commute(op, other))
    return false;
  interp_fault(in, op, "%s with no barrier between", what);
  in->err->other = other->span;
  return true;
}

static bool
touch_cell(Interp *in, const Op *op, Cell *c, u32 thread)
{
  const InterpGlobal *g = in->global;
  u32 fx = op_global_effects(op);
  bool writes = fx & FX_WRITE;
  const char *what = writes ? "write to global memory that other threads wrote" : "read of global memory that other threads wrote";
  if (is_news(g, c->wrote, c->writing, thread) && clashes(in, op, c->writer, what))
    return false;
  if (writes && is_news(g, c->read, c->reading, thread) && clashes(in, op, c->reader, "write to global memory that other threads read"))
    return false;
  if (fx & FX_READ) {
    bool first = c->read <= g->met || c->reading == thread;
    *c = (Cell){op, c->writer, g->now, c->wrote, first ? thread : SEVERAL, c->writing};
  }
  if (writes) {
    c->writer = op;
    c->wrote = g->now;
    c->writing = thread;
  }
  return true;
}

/* Bytes at `addr`, which is in a buffer; see interp_run.h. */
bool
interp_touch(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i)
{
  if (!in->opt->barriers)
    return true;
  InterpGlobal *g = global(in);
  const InterpBuffer *b = &in->buffers[in->last_buffer];
  Cell **cells = &g->cells[in->last_buffer];
  u64 at = addr - (u64)(uintptr_t)b->data;
  if (!*cells) {
    u64 need = b->bytes * sizeof(Cell);
    if (in->bytes < need)
      return interp_fault(in, op, "who reached the buffers does not fit into the interpreter's memory") == FLOW_NEXT;
    in->bytes -= need;
    *cells = NEW_ARRAY(in->arena, Cell, b->bytes);
  }
  u32 thread = op_global_effects(op) & FX_ASYNC ? SEVERAL : thread_of(in, op, i);
  for (u32 k = 0; k < bytes; k++)
    if (!touch_cell(in, op, &(*cells)[at + k], thread))
      return false;
  return true;
}
