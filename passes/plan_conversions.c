/* plan_conversions.c - choose how each conversion moves its data.
 * Needs phase placed; leaves phase sched. Sets `kind` on every convert_layout from the plan that
 * layout_convert_plan makes for the target, for shared memory also `conflicts` and `scratch_bytes`; a
 * conversion to the layout that is already there goes. Plans are remembered by pair of layouts: a kernel has
 * few pairs and many conversions. */
#include "internal.h"
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
typedef struct Plans { Ctx *c; Known *slot[SLOTS]; } Plans;

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

static void
plan(Op *op, void *user)
{
  if (op->code != OP_CONVERT_LAYOUT)
    return;
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
  remark_convert(((Plans *)user)->c, op);
}

void
pass_plan_conversions(Ctx *c, Module *m)
{
  Plans *p = NEW(c->scratch, Plans);
  p->c = c;
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], plan, p);
  m->phase = PHASE_SCHED;
}
