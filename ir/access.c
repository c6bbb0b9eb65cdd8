/* access.c - see access.h. */
#include "access.h"

const Layout *
access_layout(Ctx *c, const Type *tile, const Type *buffer)
{
  return layout_widen(c, tile->layout, buffer->layout);
}

SharedAccess
access_plan(Ctx *c, const Type *tile, const Type *buffer, bool matrices)
{
  SharedPad pad = {buffer->pad_every, buffer->pad};
  return layout_shared_access(access_layout(c, tile, buffer), buffer->layout, pad, type_elem_bits(tile), matrices);
}

const char *
access_on_demand_obstacle(Ctx *c, const Op *load)
{
  const Value *v = op_result(load);
  const Type *buffer = OPERAND(load, SHARED_LOAD, b)->type;
  const Op *dot = value_use_count(v) == 1 ? v->uses->user : NULL;
  if (!dot || !op_is_dot(dot) || (op_operand(dot, 0) != v && op_operand(dot, dot->noperands - 2) != v))
    return "its one user is a dot, as a factor";
  if (!op_attr(dot, AT_MMA) || type_elem_bits(v->type) > 16)
    return "the dot is done by tensor cores, on elements of at most 16 bits";
  if (buffer_remote(OPERAND(load, SHARED_LOAD, b)))
    return "the buffer is this program's own";
  if (dot->block != load->block)
    return "the dot is in the same block";
  for (const Op *op = load->next; op != dot; op = op->next)
    if (!op || op_is_dot(op) || !op_lets_reads_pass(op))
      return "nothing between it and the dot writes memory, waits, has scratch memory or is a dot";
  if (!v->type->layout || !buffer->layout || !access_plan(c, v->type, buffer, true).matrix ||
      layout_free_bits(access_layout(c, v->type, buffer), IN_REG))
    return "ldmatrix loads all of the tile, each element once";
  return NULL;
}

/* ---- counting in order ---- */

const char *
access_count_obstacle(Team t, const Type *indices)
{
  if (indices->rank != 2 || !is_pow2(indices->shape[0]) || !is_pow2(indices->shape[1]))
    return "the indices have rows, and their extents are powers of two";
  if (indices->shape[0] % t.warps)
    return "each warp has as many of the rows";
  return indices->shape[1] < 32 ? "a row has an element for each of 32 lanes" : NULL;
}

const Layout *
access_count_layout(Ctx *c, Team t, const Type *indices)
{
  return layout_blocked(c, 2, indices->shape, (u32[]){1, 1}, (u32[]){1, 32}, (u32[]){t.warps, 1}, (int[]){1, 0});
}
