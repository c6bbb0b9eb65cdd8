/* verify_wgmma.c - check_<ID> of products of warpgroups, and that nobody else takes an accumulator that is under way. */
#include "verify.h"
#include "wgmma.h"

bool
verify_pending(Verifier *v, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++) {
    const char *why = pending_error(op, i);
    if (why)
      return verify_fail(v, op, "operand %u: %s", i, why);
  }
  return true;
}

bool
check_PENDING(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, PENDING, x);
  if (!type_is_tile(t) || t->ptr || out_type(op) != type_pending(v->ctx, t, true))
    return verify_fail(v, op, "a tile of numbers becomes the same tile, pending, not %s %s", spell(v, t), spell(v, out_type(op)));
  return true;
}

static const Type *
meta_type(const Op *op)
{
  const Value *meta = OPERAND(op, WGMMA, meta);
  return meta ? meta->type : NULL;
}

static bool
layouts_fit(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, WGMMA, a), *acc = IN_TYPE(op, WGMMA, acc);
  Team t = block_team(op->block);
  if (acc->layout != wgmma_sum_layout(v->ctx, t, acc))
    return verify_fail(v, op, "the accumulator's rows are not dealt to the team's warps: %s", verify_type_str(v, acc, true));
  if (type_is_tile(a) && a->layout != wgmma_left_layout(v->ctx, t, a))
    return verify_fail(v, op, "operand a is not as the instruction takes it: %s", verify_type_str(v, a, true));
  const Type *meta = meta_type(op);
  if (meta && meta->layout != wgmma_meta_layout(v->ctx, t, a, meta))
    return verify_fail(v, op, "metadata is not as the instruction takes it: %s", verify_type_str(v, meta, true));
  const char *why = wgmma_placed_error(v->ctx, op);
  return !why || verify_fail(v, op, "%s", why);
}

bool
check_WGMMA(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, WGMMA, a), *b = IN_TYPE(op, WGMMA, b), *acc = IN_TYPE(op, WGMMA, acc);
  const char *why = wgmma_error(v->ctx, block_team(op->block), a, meta_type(op), b);
  why = why ? why : wgmma_sum_error(v->ctx, a, b, acc);
  if (why)
    return verify_fail(v, op, "%s", why);
  if (!acc->pending)
    return verify_fail(v, op, "the accumulator is a value: 'pending' makes one of it to which products may add");
  if (!verify_same(v, op, "accumulator and result", acc, out_type(op)))
    return false;
  const Op *spoiler = wgmma_spoiler(op);
  if (spoiler)
    return verify_fail(v, spoiler, "a product that is still under way reads this buffer: wgmma_wait stands behind it");
  return v->phase == PHASE_TILE || layouts_fit(v, op);
}

bool
check_WGMMA_WAIT(Verifier *v, const Op *op)
{
  i64 n = op_int(op, AT_PENDING, 0);
  if (n < 0 || n > PENDING_MOST)
    return verify_fail(v, op, "from 0 to %d products may be under way", PENDING_MOST);
  if (op->nresults != op->noperands)
    return verify_fail(v, op, "it has %u results for %u accumulators", op->nresults, op->noperands);
  for (u32 i = 0; i < op->noperands; i++)
    if (!in_type(op, i)->pending || op->results[i]->type != type_pending(v->ctx, in_type(op, i), false))
      return verify_fail(v, op, "an accumulator that is pending becomes a value, not %s %s", spell(v, in_type(op, i)),
                         spell(v, op->results[i]->type));
  return true;
}
