/* if_convert.c - turning an `if` whose arms may both run into selects: they are cheap and have no effect. */
#include "sema.h"

/* Division by zero and promises are only harmless where the program asks for them. */
static bool
is_guarded(const Op *op)
{
  i64 divisor;
  if (op->code == OP_DIV || op->code == OP_REM)
    return type_is_int(op_result(op)->type) && !(value_const_int(op_operand(op, 1), &divisor) && divisor != 0 && divisor != -1);
  return op->code == OP_HINT || op->code == OP_BOUNDED || op_is_dot(op) || op->nregions;
}

/* The arm has only cheap ops without effect: it may run always. */
bool
region_is_speculatable(const Block *b)
{
  for (const Op *op = b->first; op; op = op->next)
    if (!op_has(op, T_TERM) && (!op_has(op, T_PURE) || is_guarded(op)))
      return false;
  return true;
}

/* Move what region `arm` of op holds in front of op. */
void
region_hoist(Op *op, u32 arm)
{
  while (op->regions[arm]->first && !op_has(op->regions[arm]->first, T_TERM))
    op_move_before(op->regions[arm]->first, op);
}

/* Turn the `if`s in a region whose arms are speculatable into selects. */
void
region_if_convert(Block *region)
{
  for (Op *op = region->first, *next; op; op = next) {
    next = op->next;
    if (op->code != OP_IF)
      continue;
    for (u32 i = 0; i < 2; i++)
      region_if_convert(op->regions[i]);
    if (!region_is_speculatable(op->regions[0]) || !region_is_speculatable(op->regions[1]))
      continue;
    Op *ends[2] = {block_terminator(op->regions[0]), block_terminator(op->regions[1])};
    region_hoist(op, 0);
    region_hoist(op, 1);
    Builder b = builder_before(op);
    b.span = op->span;
    for (u32 i = 0; i < op->nresults; i++)
      value_replace_uses(op->results[i], ir_select(&b, op_operand(op, 0), op_operand(ends[0], i), op_operand(ends[1], i)));
    op_remove(op);
  }
}
