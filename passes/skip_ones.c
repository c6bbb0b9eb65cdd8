/* skip_ones.c - products of sums with factors that are 1 most of the time: a warp whose factors are all 1 leaves them out.
 * Needs phase sched, behind whatever moves ops; keeps it. Sets `unless_one` on mul.
 *
 *   top = max(m, scores); shrink = exp2(m - top)        softmax of scores that come block by block: what was summed shrinks
 *   acc = dot(p, v, acc * shrink[:, None]); m = top      where a larger score turns up
 *
 * m is carried, and the maximum that follows it is most often the same: then the factor is 1, and x * 1 is x for any x. The warps vote, and
 * branch over the instructions of the product (codegen/lower_elem.c). Factors that pay are known by what they are made of: a difference
 * between a carried value and its next one, which is that value or another (a maximum, a select), and nothing else but constants and
 * scalars. What they multiply is what dots add to: all of a thread's elements are there at a time anyway. (Elsewhere the branch would keep
 * elements from being done one by one.)
 *
 * Not where products of warpgroups are under way: ptxas would wait for these behind each instruction. */
#include "internal.h"

/* What the vote costs besides a comparison for each factor; how many instructions one of these has to save. And values that are looked at
 * for one factor. */
enum { VOTE = 2, GAIN = 4, REACH = 64 };

/* ---- factors ---- */

/* The value whose elements v has in another shape or layout. */
static const Value *
same_elements(const Value *v)
{
  while (op_is(v, OP_BROADCAST) || op_is(v, OP_EXPAND_DIMS) || op_is(v, OP_CONVERT_LAYOUT))
    v = op_operand(v->def, 0);
  return v;
}

/* What v, carried by a loop, is next; NULL: it is not carried. */
static const Value *
next_of(const Value *v)
{
  const Op *loop = v->def ? v->def : v->block->parent;
  u32 k = 0;
  if (!loop || !op_is_loop(loop))
    return NULL;
  if (v->def)
    return loop_next(loop, v->index);
  return loop_carries(loop, v, &k) ? loop_next(loop, k) : NULL;
}

/* next is m or another value. */
static bool
may_keep(const Value *next, const Value *m)
{
  bool picks = op_is(next, OP_MAX) || op_is(next, OP_MAXIMUM) || op_is(next, OP_SELECT);
  for (u32 i = 0; picks && i < next->def->noperands; i++)
    if (same_elements(op_operand(next->def, i)) == m)
      return true;
  return false;
}

/* a is carried, and b is what it is next. */
static bool
follows(const Value *a, const Value *b)
{
  const Value *next = a->def ? NULL : next_of(a);
  return next && same_elements(next) == b && may_keep(b, a);
}

static bool
is_growth(const Op *op)
{
  if (op->code != OP_SUB)
    return false;
  const Value *a = same_elements(OPERAND(op, SUB, a)), *b = same_elements(OPERAND(op, SUB, b));
  return follows(a, b) || follows(b, a);
}

/* v is a function of such a difference alone. */
static bool
of_growth(const Value *v, u32 *reach)
{
  v = same_elements(v);
  if (!*reach)
    return false;
  --*reach;
  const Value *next = !v->def || op_is_loop(v->def) ? next_of(v) : NULL;
  if (next)
    return of_growth(next, reach);
  if (!v->def || !op_has(v->def, T_ELEM))
    return false;
  bool any = is_growth(v->def);
  for (u32 i = 0; !is_growth(v->def) && i < v->def->noperands; i++) {
    const Value *x = op_operand(v->def, i);
    u64 bits;
    if (!type_is_tile(x->type) || op_is(x, OP_SPLAT) || value_const_bits(x, &bits))
      continue;
    if (!of_growth(x, reach))
      return false;
    any = true;
  }
  return any;
}

/* ---- products ---- */

/* All that becomes of v is that dots add to it. */
static bool
is_added_to(const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next) {
    bool sum = op_is_dot(u->user) && u == &u->user->operands[u->user->noperands - 1];
    if (!sum && u->user->code != OP_PENDING)
      return false;
  }
  return v->uses != NULL;
}

/* So many instructions an op on v takes. */
static u32
instructions(const Value *v)
{
  return layout_distinct_regs(v->type->layout);
}

/* Instructions that are left out are GAIN times what finding that out takes. */
static bool
pays(const Op *mul, const Value *factor)
{
  return instructions(op_result(mul)) >= GAIN * (instructions(same_elements(factor)) + VOTE);
}

/* Products of warpgroups are under way at op. */
static bool
is_under_way(const Op *op)
{
  for (const Op *at = op->prev; at; at = at->prev) {
    if (at->code == OP_WGMMA_WAIT && !op_int(at, AT_PENDING, 0))
      return false;
    for (u32 i = 0; i < at->nresults; i++)
      if (at->code != OP_PENDING && at->results[i]->type->pending)
        return true;
  }
  for (u32 i = 0; i < op->block->nargs; i++)
    if (op->block->args[i]->type->pending)
      return true;
  return op->block->parent && is_under_way(op->block->parent);
}

static void
mark(Op *op, void *user)
{
  Ctx *c = user;
  if (op->code != OP_MUL || !type_is_tile(op_result(op)->type) || op_result(op)->type->dt != DT_F32 || !is_added_to(op_result(op)))
    return;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *factor = op_operand(op, i);
    u32 reach = REACH;
    if (!pays(op, factor) || !of_growth(factor, &reach) || is_under_way(op))
      continue;
    op_set_int(op, AT_UNLESS_ONE, i);
    if (c->remarks)
      diag(c, op->span, R_SKIPPED_ONES, instructions(op_result(op)));
    return;
  }
}

void
pass_skip_ones(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], mark, c);
}
