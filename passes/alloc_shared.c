/* alloc_shared.c - give offsets to shared buffers, and scratch memory to conversions, cross-warp reductions and atomics
 * that answer. Needs phase sched; keeps it. Sets `offset`, `scratch` and `scratch_bytes` on the ops, shared_bytes on the
 * function, and refuses kernels that need more shared memory than the target has.
 *
 * A buffer is live from its shared_alloc to its shared_free, or to the end of its block. Buffers whose live ranges do not overlap may
 * share memory: each takes the lowest offset that is free for all of its range. Scratch lies behind the buffers that are live
 * while its op runs.
 *
 * An op's scratch is live only while the op runs, so one offset would do for all; but two ops that follow each
 * other at the same offset need a barrier between them. The offsets therefore go round a ring: as large as the
 * largest need, and at least RING bytes where the target has them, so that most neighbours do not overlap. */
#include "internal.h"
#include "scratch.h"

enum { RING = 16 * 1024, ALIGN = 16, MATRIX_ALIGN = 128, NOTES = 8 };

typedef struct Need { Op *op; u32 bytes, offset, align; } Need;
typedef struct LiveRange { Op *op; u32 from, to, bytes, offset; } LiveRange;   /* of a buffer, in positions of ops */
typedef struct Alloc { Ctx *c; VEC(Need) needs; VEC(LiveRange) ranges; u32 largest, buffers, total, position; } Alloc;

static void
collect(Op *op, void *user)
{
  Alloc *a = user;
  u32 bytes = scratch_bytes(a->c, op);
  if (!bytes)
    return;
  u32 align = op->code == OP_CONVERT_LAYOUT ? MATRIX_ALIGN : ALIGN;
  vec_push(a->c->scratch, &a->needs, ((Need){op, bytes, 0, align}));
  if (bytes > a->largest)
    a->largest = bytes;
}

/* ---- buffers ---- */

/* Positions: op->mark, in program order; a region's ops lie between its op and the next. */
static void
number(Op *op, void *user)
{
  Alloc *a = user;
  op->mark = a->position++;
}

/* The position of the last op of b, with everything inside. */
static u32
end_of(const Block *b)
{
  const Op *op = b->last;
  while (op && op->nregions && op->regions[op->nregions - 1]->last)
    op = op->regions[op->nregions - 1]->last;
  return op ? op->mark : 0;
}

static void
collect_range(Op *op, void *user)
{
  Alloc *a = user;
  if (op->code != OP_SHARED_ALLOC)
    return;
  const Type *t = op_result(op)->type;
  LiveRange l = {op, op->mark, end_of(op->block), type_shared_stride(t) * (t->count ? t->count : 1), 0};
  for (const Use *u = op_result(op)->uses; u; u = u->next)
    if (u->user->code == OP_SHARED_FREE && u->user->block == op->block)
      l.to = u->user->mark;
  vec_push(a->c->scratch, &a->ranges, l);
}

/* First fit, in program order. */
static void
assign_buffers(Alloc *a)
{
  for (u32 i = 0; i < a->ranges.len; i++) {
    LiveRange *l = &a->ranges.data[i];
    for (u32 k = 0; k < i; k++) {
      const LiveRange *o = &a->ranges.data[k];
      bool overlap = l->from <= o->to && o->from <= l->to;
      if (overlap && l->offset < o->offset + o->bytes && o->offset < l->offset + l->bytes) {
        l->offset = o->offset + o->bytes;
        k = UINT32_MAX;   /* look at all of them again from the new offset */
      }
    }
    if (l->offset + l->bytes > a->buffers)
      a->buffers = l->offset + l->bytes;
  }
}

/* ---- scratch ---- */

/* Where the buffers end that are live while op runs. */
static u32
above_buffers(const Alloc *a, const Op *op)
{
  u32 top = 0, last = op->nregions ? end_of(op->regions[op->nregions - 1]) : op->mark;
  for (u32 i = 0; i < a->ranges.len; i++) {
    const LiveRange *l = &a->ranges.data[i];
    if (l->from <= last && op->mark <= l->to && l->offset + l->bytes > top)
      top = l->offset + l->bytes;
  }
  return top;
}

/* Offsets in program order around a ring of `size` bytes; returns the bytes in use, with the buffers. */
static u32
assign_scratch(Alloc *a, u32 size)
{
  u32 at = 0, used = a->buffers;
  for (u32 i = 0; i < a->needs.len; i++) {
    Need *n = &a->needs.data[i];
    at = align_up(at, n->align);
    if (at + n->bytes > size)
      at = 0;
    n->offset = above_buffers(a, n->op) + at;
    at += n->bytes;
    if (n->offset + n->bytes > used)
      used = n->offset + n->bytes;
  }
  return used;
}

static void
report_shared(Ctx *c, const Func *f, const Alloc *a)
{
  Op *most = NULL;
  u32 bytes = 0, notes = 0;
  for (u32 i = 0; i < a->needs.len; i++)
    if (a->needs.data[i].bytes > bytes) {
      most = a->needs.data[i].op;
      bytes = a->needs.data[i].bytes;
    }
  for (u32 i = 0; i < a->ranges.len; i++)
    if (a->ranges.data[i].bytes > bytes) {
      most = a->ranges.data[i].op;
      bytes = a->ranges.data[i].bytes;
    }
  Diag *d = diag(c, most->span, E_SHARED_LIMIT, f->name, a->total, c->target->name, c->target->shared_max);
  for (u32 i = 0; i < a->ranges.len && notes < NOTES; i++, notes++) {
    const Value *v = op_result(a->ranges.data[i].op);
    diag_note(c, d, v->def->span, "%s %s needs %u bytes", v->name ? v->name : "a buffer", type_str(c, v->type), a->ranges.data[i].bytes);
  }
  for (u32 i = 0; i < a->needs.len && notes < NOTES; i++, notes++) {
    const Need *n = &a->needs.data[i];
    diag_note(c, d, n->op->span, "%s needs %u bytes", op_info(n->op->code)->name, n->bytes);
  }
}

static void
write_back(const Alloc *a)
{
  for (u32 i = 0; i < a->needs.len; i++) {
    const Need *n = &a->needs.data[i];
    op_set_int(n->op, AT_SCRATCH, n->offset);
    op_set_int(n->op, AT_SCRATCH_BYTES, n->bytes);
  }
  for (u32 i = 0; i < a->ranges.len; i++)
    op_set_int(a->ranges.data[i].op, AT_OFFSET, a->ranges.data[i].offset);
}

static void
alloc_func(Ctx *c, Func *f)
{
  Alloc a = {.c = c};
  func_walk(f, number, &a);
  func_walk(f, collect_range, &a);
  assign_buffers(&a);
  func_walk(f, collect, &a);
  u32 rest = a.buffers < c->target->shared_max ? c->target->shared_max - a.buffers : 0, ring = RING < rest ? RING : rest;
  a.total = assign_scratch(&a, a.largest > ring ? a.largest : ring);
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
