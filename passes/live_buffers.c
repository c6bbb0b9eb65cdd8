/* live_buffers.c - offsets of shared buffers in a function's shared memory.
 *
 * A buffer is live from its shared_alloc to its shared_free, or to the end of its block; longer, if a product of warpgroups reads it,
 * until that is waited for; and all the time, if other programs of the cluster reach it, which may be ahead or behind. Buffers whose live
 * ranges do not overlap may share memory: each takes the lowest offset at which it may begin (buffer_align) and that is free for all of its
 * range. Regions of a warp_specialize run at the same time, so buffers of different ones never share. Nor does scratch lie in a region's
 * buffers, live or not, unless it is the only region that has scratch: each region's begins behind all of them, one behind the other. */
#include "live_buffers.h"
#include "scratch.h"
#include "wgmma.h"

/* Positions: op->mark, in program order; a region's ops lie between its op and the next. */
static void
number(Op *op, void *user)
{
  LiveBuffers *a = user;
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

/* Behind op, which product `of` reaches with so many newer ones: the position at which a wait covers it for sure. Where a loop is left,
 * the loop is part of the range. */
static void
extend_to_wait(const LiveBuffers *a, LiveRange *l, const Op *op, u32 newer)
{
  for (const Op *x = op->next; x; x = x->next) {
    if (wgmma_ends_reads(x, newer)) {
      l->to = max_u32(l->to, x->mark);
      return;
    }
    newer += x->code == OP_WGMMA;
  }
  const Op *parent = op->block->parent;
  l->to = max_u32(l->to, end_of(op->block));
  if (!parent || parent->code == OP_WARP_SPECIALIZE)
    return;
  l->from = op_is_loop(parent) ? min_u32(l->from, parent->mark) : l->from;
  extend_to_wait(a, l, parent, newer);
}

/* Products that read the buffer, or a view of it, do so until they are waited for. */
static void
extend_to_waits(const LiveBuffers *a, LiveRange *l, const Value *b)
{
  for (const Use *u = b->uses; u; u = u->next)
    if (u->user->code == OP_WGMMA)
      extend_to_wait(a, l, u->user, 0);
    else if (op_is_view(u->user))
      extend_to_waits(a, l, op_result(u->user));
}

static void
collect_range(Op *op, void *user)
{
  LiveBuffers *a = user;
  if (op->code != OP_SHARED_ALLOC)
    return;
  const Type *t = op_result(op)->type;
  bool opaque = dtype_is_opaque(t->dt);       /* an mbarrier that nobody has ended is no memory for anything else */
  bool reached = cluster_reaches(op_result(op)), lasts = opaque || reached;
  LiveRange l = {.op = op, .from = op->mark, .to = end_of(op->block), .bytes = (u32)type_shared_bytes(t),
                 .team = block_team(op->block),
                 .align = buffer_align(op)};
  l.from = lasts ? 0 : l.from;
  for (const Use *u = op_result(op)->uses; u; u = u->next)
    if (u->user->code == OP_SHARED_FREE && u->user->block == op->block)
      l.to = u->user->mark;
  extend_to_waits(a, &l, op_result(op));
  l.to = reached ? UINT32_MAX : l.to;
  vec_push(a->c->scratch, &a->ranges, l);
}

/* Are there times at which both are live? */
static bool
live_together(const LiveRange *a, const LiveRange *b)
{
  bool apart = a->team.op && b->team.op && a->team.part != b->team.part;
  return apart || (a->from <= b->to && b->from <= a->to);
}

/* First fit, in program order. */
static void
assign_buffers(LiveBuffers *a)
{
  for (u32 i = 0; i < a->ranges.len; i++) {
    LiveRange *l = &a->ranges.data[i];
    for (u32 k = 0; k < i; k++) {
      const LiveRange *o = &a->ranges.data[k];
      if (live_together(l, o) && l->offset < o->offset + o->bytes && o->offset < l->offset + l->bytes) {
        l->offset = align_up(o->offset + o->bytes, l->align);
        k = UINT32_MAX;   /* look at all of them again from the new offset */
      }
    }
    if (l->offset + l->bytes > a->bytes)
      a->bytes = l->offset + l->bytes;
  }
}

LiveBuffers
live_buffers(Ctx *c, Func *f)
{
  LiveBuffers b = {.c = c};
  func_walk(f, number, &b);
  func_walk(f, collect_range, &b);
  assign_buffers(&b);
  return b;
}

static void
asks_scratch(Op *op, void *user)
{
  bool *asks = user;
  *asks |= op->code == OP_CONVERT_LAYOUT || scratch_bytes(op->block->func->module->ctx, op);
}

/* No other region of the warp_specialize has scratch. */
static bool
scratch_alone(Team t)
{
  bool others = false;
  for (u32 r = 0; t.op && r < t.op->nregions && !others; r++)
    if (r != t.part)
      block_walk(t.op->regions[r], asks_scratch, &others);
  return t.op && !others;
}

static u32
last_of(const Op *op)
{
  return op->nregions ? end_of(op->regions[op->nregions - 1]) : op->mark;
}

/* Is it live while op runs, or in its team (alone: of that, while op itself does) while the teams run? */
static bool
live_beside(const LiveRange *l, const Op *op, Team t, bool alone)
{
  const Op *at = t.op && !(alone && l->team.op && l->team.part == t.part) ? t.op : op;
  return l->from <= last_of(at) && at->mark <= l->to;
}

static u32
top_beside(const LiveBuffers *b, const Op *op, Team t, bool alone)
{
  u32 top = 0;
  for (u32 i = 0; i < b->ranges.len; i++) {
    const LiveRange *l = &b->ranges.data[i];
    if (live_beside(l, op, t, alone))
      top = max_u32(top, l->offset + l->bytes);
  }
  return top;
}

u32
live_buffers_top(const LiveBuffers *b, const Op *op)
{
  Team t = block_team(op->block);
  return top_beside(b, op, t, scratch_alone(t));
}

u32
live_buffers_room(const LiveBuffers *b, const Op *op)
{
  Team t = block_team(op->block);
  u32 all = top_beside(b, op, t, false), top = live_buffers_top(b, op), most = b->c->target->shared_max;
  u32 room = all < most ? most - all : 0;
  return t.op ? (top < all ? min_u32(all, most) - min_u32(top, most) : 0) + room / t.op->nregions / SHARED_ALIGN * SHARED_ALIGN : room;
}
