/* plan_conversions.c - choose how each conversion moves its data, and in how many pieces what goes through shared memory does.
 * Needs phase placed; leaves phase sched. Sets `kind` on every convert_layout from the plan that
 * layout_convert_plan makes for the target, for shared memory also `conflicts` and `scratch_bytes`; a
 * conversion to the layout that is already there goes. Plans are remembered by pair of layouts: a kernel has
 * few pairs and many conversions.
 *
 * What an op needs of shared memory while it runs must fit behind the buffers that are live then. A conversion that does not fit goes
 * by shuffles if a warp holds what it needs, whatever that costs. Other ops, and conversions between warps, go in pieces (attribute
 * `pieces`), as few as fit: a power of two, each with a barrier in front of it and one between its writes and its reads.
 * layout/layout_pieces.c says what a piece is. An op that asks for pieces already keeps at least as many. Where there can be no more
 * pieces, buffers lose their padding (cut_buffers.c), as they do where they do not fit themselves. What does not fit even then is left to
 * alloc_shared, which reports it. */
#include "buffers.h"
#include "live_buffers.h"
#include "remarks.h"
#include "scratch.h"

static const char *const kind_names[] = {
  [CONVERT_NONE] = "none", [CONVERT_REGS] = "regs", [CONVERT_SHUFFLE] = "shuffle", [CONVERT_SHARED] = "shared",
};

typedef struct Known {
  const Layout *from, *to;
  u32 bits, bytes, conflicts;
  ConvertKind kind;
  struct Known *next;
} Known;
enum { SLOTS = 128 };
typedef struct Plans { Ctx *c; Known *slot[SLOTS]; LiveBuffers live; u32 lacks; } Plans;   /* lacks: bytes that scratch would need more */

static const Known *
plan_of(Plans *p, const Op *op)
{
  const Type *from = OPERAND(op, CONVERT_LAYOUT, x)->type, *to = op_result(op)->type;
  u32 bits = type_elem_bits(from);
  Known **slot = &p->slot[(from->layout->id * 31 + to->layout->id) % SLOTS];
  for (const Known *k = *slot; k; k = k->next)
    if (k->from == from->layout && k->to == to->layout && k->bits == bits)
      return k;
  ConvertPlan plan;
  scratch_convert_plan(p->c, op, &plan);
  Known *k = NEW(p->c->scratch, Known);
  *k = (Known){.from = from->layout, .to = to->layout, .bits = bits, .kind = plan.kind, .next = *slot};
  if (plan.kind == CONVERT_SHARED) {
    k->bytes = plan.shared.bytes;
    k->conflicts = plan.shared.store_conflicts + plan.shared.load_conflicts;
  }
  return *slot = k;
}

/* ---- pieces ---- */

/* In 2^bits pieces; gives the bytes. */
static u32
set_pieces(Ctx *c, Op *op, u32 bits)
{
  op_set_int(op, AT_PIECES, (i64)1 << bits);
  op_remove_attr(op, AT_SCRATCH_BYTES);
  return scratch_bytes(c, op);
}

static bool
shuffles_instead(Op *op)
{
  ShufflePlan plan;
  if (op->code != OP_CONVERT_LAYOUT)
    return false;
  if (!layout_shuffle_plan(OPERAND(op, CONVERT_LAYOUT, x)->type->layout, op_result(op)->type->layout, &plan))
    return false;
  op_set_str(op, AT_KIND, kind_names[CONVERT_SHUFFLE]);
  op_remove_attr(op, AT_CONFLICTS);
  op_remove_attr(op, AT_SCRATCH_BYTES);
  return true;
}

/* Pieces are as large as fit, so a multiprocessor has shared memory for one block. Who makes machine code of it should know: it else
 * leaves registers for as many blocks as can be, when a thread needs more than it can have anyway. */
static void
one_block(Func *f)
{
  if (!f->min_blocks && !f->max_registers)
    f->min_blocks = 1;
}

/* What a planned op needs of shared memory becomes what there is room for. */
static void
fit(Plans *p, Op *op)
{
  Ctx *c = p->c;
  u32 room = live_buffers_room(&p->live, op);
  u32 bits = scratch_pieces(op), most = scratch_most_pieces(c, op), bytes = scratch_bytes(c, op);
  op_remove_attr(op, AT_PIECES);
  if (!bytes || (!bits && (bytes <= room || shuffles_instead(op))))
    return;
  if (bits)
    bytes = set_pieces(c, op, bits = min_u32(bits, most));
  bool full = bytes > room;
  while (bytes > room && bits < most)
    bytes = set_pieces(c, op, ++bits);
  if (bytes > room) {
    p->lacks = max_u32(p->lacks, bytes - room);
    bytes = set_pieces(c, op, 0);
  }
  if (!bits || bytes > room)
    op_remove_attr(op, AT_PIECES);
  else if (full)
    one_block(op->block->func);
  if (op->code != OP_CONVERT_LAYOUT)
    return;
  PiecesPlan plan;
  scratch_pieces_plan(c, op, &plan);
  op_set_int(op, AT_CONFLICTS, plan.shared.store_conflicts + plan.shared.load_conflicts);
  op_set_int(op, AT_SCRATCH_BYTES, plan.shared.bytes);
}

static void
plan(Op *op, void *user)
{
  if (op->code != OP_CONVERT_LAYOUT) {
    fit(user, op);
    return;
  }
  if (OPERAND(op, CONVERT_LAYOUT, x)->type == op_result(op)->type) {
    value_replace_uses(op_result(op), OPERAND(op, CONVERT_LAYOUT, x));
    op_remove(op);
    return;
  }
  const Known *k = plan_of(user, op);
  op_set_str(op, AT_KIND, kind_names[k->kind]);
  if (k->kind == CONVERT_SHARED) {
    op_set_int(op, AT_CONFLICTS, k->conflicts);
    op_set_int(op, AT_SCRATCH_BYTES, k->bytes);
  }
  fit(user, op);
}

static void
remark_planned(Op *op, void *user)
{
  if (op->code == OP_CONVERT_LAYOUT)
    remark_convert(((Plans *)user)->c, op);
}

/* Buffers are cut if they do not fit, and again if scratch does not fit behind them. */
static void
plan_func(Plans *p, Func *f)
{
  cut_off_panels(p->c, f);
  cut_buffers(p->c, f, p->c->target->shared_max);
  do {
    p->live = live_buffers(p->c, f);
    p->lacks = 0;
    func_walk(f, plan, p);
  } while (p->lacks && p->lacks < p->live.bytes && cut_buffers(p->c, f, p->live.bytes - p->lacks));
  func_walk(f, remark_planned, p);
}

void
pass_plan_conversions(Ctx *c, Module *m)
{
  Plans *p = NEW(c->scratch, Plans);
  p->c = c;
  for (u32 i = 0; i < m->funcs.len; i++)
    plan_func(p, m->funcs.data[i]);
  m->phase = PHASE_SCHED;
}
