/* alloc_shared.c - give scratch memory to conversions, cross-warp reductions and atomics that answer.
 * Needs phase sched; keeps it. Sets `scratch` and `scratch_bytes` on the ops, shared_bytes on the function,
 * and refuses kernels that need more shared memory or threads than the target has.
 *
 * An op's scratch lives only while the op runs, so one place would do for all; but two ops that follow each
 * other in the same place need a barrier between them. The places therefore go round a ring: as large as the
 * largest need, and at least RING bytes where the target has them, so that most neighbours do not meet. */
#include "internal.h"
#include "scratch.h"

enum { RING = 16 * 1024, ALIGN = 16, MATRIX_ALIGN = 128, NOTES = 8 };

typedef struct Need { Op *op; u32 bytes, offset, align; } Need;
typedef struct Alloc { Ctx *c; VEC(Need) needs; u32 largest, total; } Alloc;

static u32
align_up(u32 n, u32 a)
{
  return (n + a - 1) & ~(a - 1);
}

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

/* Offsets in program order around a ring of `size` bytes; returns the bytes in use. */
static u32
place(Alloc *a, u32 size)
{
  u32 at = 0, used = 0;
  for (u32 i = 0; i < a->needs.len; i++) {
    Need *n = &a->needs.data[i];
    at = align_up(at, n->align);
    if (at + n->bytes > size)
      at = 0;
    n->offset = at;
    at += n->bytes;
    if (at > used)
      used = at;
  }
  return used;
}

static void
report_shared(Ctx *c, const Func *f, const Alloc *a)
{
  const Need *most = &a->needs.data[0];
  for (u32 i = 1; i < a->needs.len; i++)
    if (a->needs.data[i].bytes > most->bytes)
      most = &a->needs.data[i];
  Diag *d = diag(c, most->op->span, E_SHARED_LIMIT, f->name, a->total, c->target->name, c->target->shared_max);
  for (u32 i = 0; i < a->needs.len && i < NOTES; i++) {
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
}

static void
alloc_func(Ctx *c, Func *f)
{
  Alloc a = {.c = c};
  func_walk(f, collect, &a);
  u32 ring = RING < c->target->shared_max ? RING : c->target->shared_max;
  a.total = place(&a, a.largest > ring ? a.largest : ring);
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
