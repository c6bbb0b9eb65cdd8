/* plan_conversions.c - choose how each conversion moves its data.
 * Needs phase placed; leaves phase sched. Sets `kind` (and `conflicts` for shared memory) on every convert_layout from the
 * plan that layout_convert_plan makes for the target; a conversion to the layout that is already there goes. */
#include "internal.h"
#include "scratch.h"

static const char *const kind_names[] = {
  [CONVERT_NONE] = "none", [CONVERT_REGS] = "regs", [CONVERT_SHUFFLE] = "shuffle", [CONVERT_SHARED] = "shared",
};

static void
plan(Op *op, void *user)
{
  ConvertPlan p;
  if (op->code != OP_CONVERT_LAYOUT)
    return;
  if (op_operand(op, 0)->type == op_result(op)->type) {
    value_replace_uses(op_result(op), op_operand(op, 0));
    op_remove(op);
    return;
  }
  scratch_convert_plan(user, op, &p);
  op_set_str(op, AT_KIND, kind_names[p.kind]);
  if (p.kind == CONVERT_SHARED)
    op_set_int(op, AT_CONFLICTS, p.shared.store_conflicts + p.shared.load_conflicts);
}

void
pass_plan_conversions(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], plan, c);
  m->phase = PHASE_SCHED;
}
