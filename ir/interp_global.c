/* interp_global.c - who reached which byte of global memory since all threads last met (InterpOptions.barriers), and in which team.
 *
 * A team is one actor, so what it does is in program order. Compiled, an element belongs to threads: those that its layout
 * gives it to, of which all load it and the leader stores it. For every byte of the buffers the last write and each team's last reads are
 * kept, by thread. An access is a fault if another thread wrote there since the last barrier, and a write also if another thread read
 * there. Between teams it is one unless mbarriers order the two (interp_teams.c), checked or not. One op's own elements are no
 * matter: they happen at a time. Atomic ops that come to the same in any order do not conflict. */
#include "alias.h"
#include "interp_run.h"

/* A thread, or more than one of them. */
enum { SEVERAL = UINT32_MAX };

/* An access to a byte, or several. when: the number of the op that ran, 0: never. */
typedef struct Access { const Op *op; u64 when; u32 thread, team; } Access;
/* The leader of each element, by flat index. */
typedef struct Owners { const Layout *layout; u32 *leader; bool copies; } Owners;
typedef struct InterpGlobal {
  Access **cells;               /* by buffer, NULL: not reached yet: of each byte the last write, then each team's last reads */
  VEC(Owners) owners;
} InterpGlobal;

static InterpGlobal *
global(Interp *in)
{
  if (!in->global) {
    in->global = NEW(in->arena, InterpGlobal);
    in->global->cells = NEW_ARRAY(in->arena, Access *, in->nbuffers + 1);
  }
  return in->global;
}

/* A releasing op's threads meet before it acts. */
void
interp_access(Interp *in, const Op *op)
{
  if (!op_pointer(op) || !op_releases(op))
    return;
  interp_meet(in);
  in->now++;
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

/* What op does to global memory. */
static u32
effects(const Op *op)
{
  const Value *t = op_tensor(op);
  for (u32 i = 0; t && i < op->noperands; i++)
    if (op_operand(op, i) == t)
      return op_effect(op, i);
  return op_global_effects(op);
}

/* The thread that op reaches element i by. Boxes of tensors are copied by one. */
static u32
thread_of(Interp *in, const Op *op, u32 i)
{
  if (op_tensor(op))
    return 0;
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

/* Did another thread, or more than one, do it, unordered? Not if op itself is at it. */
static bool
is_news(const Interp *in, const Access *a, u32 thread)
{
  bool same = a->team == in->actor->team && a->thread == thread && thread != SEVERAL;
  return a->when != in->now && !same && !interp_ordered(in, a->team, a->when);
}

static bool
clashes(Interp *in, const Op *op, const Access *a, u32 thread, const char *did)
{
  if (!a->op || !is_news(in, a, thread) || ops_commute(op, a->op))
    return false;
  const char *access = effects(op) & FX_WRITE ? "write to" : "read of";
  return !interp_clash(in, op, a->op, a->team, access, "global memory", did);
}

static void
note_read(const Interp *in, const Op *op, Access *a, u32 thread)
{
  bool first = !a->op || interp_ordered(in, a->team, a->when) || a->thread == thread;
  *a = (Access){op, in->now, first ? thread : SEVERAL, in->actor->team};
}

/* cell: of one byte. */
static bool
touch_cell(Interp *in, const Op *op, Access *cell, u32 thread)
{
  u32 fx = effects(op);
  if (clashes(in, op, &cell[0], thread, "wrote"))
    return false;
  for (u32 t = 1; fx & FX_WRITE && t <= in->nteams; t++)
    if (clashes(in, op, &cell[t], thread, "read"))
      return false;
  if (fx & FX_READ)
    note_read(in, op, &cell[1 + in->actor->team], thread);
  if (fx & FX_WRITE)
    cell[0] = (Access){op, in->now, thread, in->actor->team};
  return true;
}

/* Bytes at `addr`, which is in a buffer; see interp_run.h. */
bool
interp_touch(Interp *in, const Op *op, u64 addr, u32 bytes, u32 i)
{
  if (!in->by_team)
    return true;
  InterpGlobal *g = global(in);
  const InterpBuffer *b = &in->buffers[in->last_buffer];
  Access **cells = &g->cells[in->last_buffer];
  u64 at = addr - (u64)(uintptr_t)b->data, each = 1 + in->nteams;
  if (!*cells) {
    u64 need = b->bytes * each * sizeof(Access);
    if (in->bytes < need)
      return interp_fault(in, op, "who reached the buffers does not fit into the interpreter's memory") == FLOW_NEXT;
    in->bytes -= need;
    *cells = NEW_ARRAY(in->arena, Access, b->bytes * each);
  }
  u32 thread = op->code == OP_ASYNC_COPY ? SEVERAL : thread_of(in, op, i);
  for (u32 k = 0; k < bytes; k++)
    if (!touch_cell(in, op, &(*cells)[(at + k) * each], thread))
      return false;
  return true;
}
