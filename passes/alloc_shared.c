/* alloc_shared.c - give offsets to shared buffers, and scratch memory to conversions, cross-warp reductions and atomics
 * that answer. Needs phase sched; keeps it. Sets `offset`, `scratch` and `scratch_bytes` on the ops, shared_bytes on the
 * function, and refuses kernels that need more shared memory than the target has.
 *
 * Buffers lie where their live ranges let them (live_buffers.c). Scratch lies behind the buffers that are live while its op runs.
 *
 * An op's scratch is live only while the op runs, so one offset would do for all; but two ops that follow each
 * other at the same offset need a barrier between them. The offsets therefore go round a ring: as large as the
 * largest need, and at least RING bytes where the target has them, so that most neighbours do not overlap. Teams run at the same time, so
 * each region of a warp_specialize has a ring of its own, behind the one before. */
#include "live_buffers.h"
#include "scratch.h"

enum { RING = 16 * 1024, ALIGN = 16, MATRIX_ALIGN = 128, NOTES = 8 };

typedef struct Need { Op *op; u32 bytes, offset, align, ring; } Need;
/* Rings: of the program's team, and of each region of its warp_specialize. */
typedef struct Alloc { Ctx *c; VEC(Need) needs; LiveBuffers live; u32 largest[1 + TEAMS_MAX], total; } Alloc;

static u32
ring_of(const Op *op)
{
  Team t = block_team(op->block);
  return t.op ? 1 + t.part : 0;
}

static void
collect(Op *op, void *user)
{
  Alloc *a = user;
  u32 bytes = scratch_bytes(a->c, op);
  if (!bytes)
    return;
  u32 align = op->code == OP_CONVERT_LAYOUT || op->code == OP_TENSOR_AT ? MATRIX_ALIGN : ALIGN, ring = ring_of(op);
  vec_push(a->c->scratch, &a->needs, ((Need){op, bytes, 0, align, ring}));
  a->largest[ring] = max_u32(a->largest[ring], bytes);
}

/* ---- scratch ---- */

/* Offsets in program order around a ring of `size` bytes, or as many as one op needs, that begins so many bytes behind the buffers; returns
 * how many behind them it ends. */
static u32
assign_ring(Alloc *a, u32 ring, u32 size, u32 behind)
{
  u32 at = 0, end = behind;
  size = max_u32(size, a->largest[ring]);
  for (u32 i = 0; i < a->needs.len; i++) {
    Need *n = &a->needs.data[i];
    if (n->ring != ring)
      continue;
    at = align_up(at, n->align);
    if (at + n->bytes > size)
      at = 0;
    n->offset = live_buffers_top(&a->live, n->op) + behind + at;
    at += n->bytes;
    end = max_u32(end, behind + at);
    a->total = max_u32(a->total, n->offset + n->bytes);
  }
  return align_up(end, MATRIX_ALIGN);
}

static void
assign_scratch(Alloc *a, const Func *f)
{
  u32 most = a->c->target->shared_max, rest = a->live.bytes < most ? most - a->live.bytes : 0, ring = min_u32(RING, rest), behind = 0;
  const Op *teams = func_teams(f);
  a->total = a->live.bytes;
  assign_ring(a, 0, ring, 0);
  for (u32 r = 0; teams && r < teams->nregions; r++)
    behind = assign_ring(a, 1 + r, ring / teams->nregions, behind);
}

/* What fits instead: of the largest buffer, if all else stays as it is. */
static void
note_what_fits(Ctx *c, Diag *d, const Alloc *a, const LiveRange *l)
{
  const Type *t = op_result(l->op)->type;
  u32 others = a->total - l->bytes, most = c->target->shared_max, room = others < most ? (most - others) & ~127u : 0;
  if (t->count && room >= type_shared_stride(t))
    diag_note(c, d, (Span){0}, "%u buffers of the row's %u would fit", room / type_shared_stride(t), t->count);
  else if (room)
    diag_note(c, d, (Span){0}, "a buffer of %u bytes would fit: %u elements of %s", room, room / dtype_bytes(t->dt),
              dtype_info[t->dt].name);
}

static void
report_shared(Ctx *c, const Func *f, const Alloc *a)
{
  Op *most = NULL;
  const LiveRange *largest = NULL;
  u32 bytes = 0, notes = 0;
  for (u32 i = 0; i < a->live.ranges.len; i++)
    if (a->live.ranges.data[i].bytes > bytes) {
      largest = &a->live.ranges.data[i];
      most = largest->op;
      bytes = largest->bytes;
    }
  for (u32 i = 0; i < a->needs.len; i++)      /* where buffers alone are too much, what else there is does not matter */
    if (a->needs.data[i].bytes > bytes && a->live.bytes <= c->target->shared_max) {
      most = a->needs.data[i].op;
      bytes = a->needs.data[i].bytes;
    }
  Diag *d = diag(c, most->span, E_SHARED_LIMIT, f->name, a->total, c->target->name, c->target->shared_max);
  for (u32 i = 0; i < a->live.ranges.len && notes < NOTES; i++, notes++) {
    const Value *v = op_result(a->live.ranges.data[i].op);
    diag_note(c, d, v->def->span, "%s %s needs %u bytes%s", v->name ? v->name : "a buffer",
              type_str(c, type_shared_cut(c, v->type, 0)), a->live.ranges.data[i].bytes, v->type->cut ? " without its padding" : "");
  }
  for (u32 i = 0; i < a->needs.len && notes < NOTES; i++, notes++) {
    const Need *n = &a->needs.data[i];
    diag_note(c, d, n->op->span, "%s needs %u bytes", op_info(n->op->code)->name, n->bytes);
  }
  if (largest)
    note_what_fits(c, d, a, largest);
}

static void
write_back(const Alloc *a)
{
  for (u32 i = 0; i < a->needs.len; i++) {
    const Need *n = &a->needs.data[i];
    op_set_int(n->op, AT_SCRATCH, n->offset);
    op_set_int(n->op, AT_SCRATCH_BYTES, n->bytes);
  }
  for (u32 i = 0; i < a->live.ranges.len; i++)
    op_set_int(a->live.ranges.data[i].op, AT_OFFSET, a->live.ranges.data[i].offset);
}

static void
alloc_func(Ctx *c, Func *f)
{
  Alloc a = {.c = c, .live = live_buffers(c, f)};
  func_walk(f, collect, &a);
  assign_scratch(&a, f);
  f->shared_bytes = a.total;
  if (a.total > c->target->shared_max)
    report_shared(c, f, &a);
  else
    write_back(&a);
}

void
pass_alloc_shared(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    alloc_func(c, m->funcs.data[i]);
}
