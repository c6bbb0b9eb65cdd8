/* interp_wgmma.c - products of warpgroups in the reference semantics.
 *
 * A product is computed when its op runs. What is different from a dot is what it forbids until a wait covers it: its accumulator is no
 * value (the verifier's matter; where a wait makes a value of it, its product has to be done), and the bytes of its operands are
 * busy: to write or free them is a fault, of whatever team. At the wait they count as read once more, so that another team has to
 * be told of the wait, not only of the op. A product's number, counted by its team, stands behind the elements of its accumulator. */
#include "interp_run.h"

static u64
number_of(const Interp *in, const Value *acc)
{
  return interp_get(in, acc)[type_numel(acc->type)];
}

/* x as an accumulator of no product. */
Flow
interp_pending(Interp *in, const Op *op)
{
  const Value *x = OPERAND(op, PENDING, x);
  u32 n = type_numel(x->type);
  u64 *out = interp_make(in, op, op_result(op));
  if (!out)
    return FLOW_FAULT;
  memcpy(out, interp_get(in, x), n * sizeof *out);
  out[n] = 0;
  return FLOW_NEXT;
}

Flow
interp_wgmma(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  Product p = {.op = op, .team = in->actor->team, .number = in->actor->products + 1};
  Flow flow = interp_product(in, op, OPERAND(op, WGMMA, a), OPERAND(op, WGMMA, meta), OPERAND(op, WGMMA, b), OPERAND(op, WGMMA, acc));
  if (flow == FLOW_FAULT)
    return flow;
  if (in->spare_runs.len)
    p.reads = in->spare_runs.data[--in->spare_runs.len];
  for (u32 i = 0; i <= SLOT(WGMMA, b); i++)
    if (type_is_shared(op_operand(op, i)->type) && !interp_hold(in, op_operand(op, i), &p))
      return FLOW_FAULT;
  vec_push(in->arena, &in->flying, p);
  in->elems[r->id][type_numel(r->type)] = ++in->actor->products;
  return FLOW_NEXT;
}

Flow
interp_wgmma_wait(Interp *in, const Op *op)
{
  Actor *a = in->actor;
  u64 pending = (u64)op_int(op, AT_PENDING, 0), done = a->products > pending ? a->products - pending : 0;
  u32 kept = 0;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *x = op_operand(op, i);
    u64 *out = interp_make(in, op, op->results[i]);
    if (!out)
      return FLOW_FAULT;
    if (number_of(in, x) > done)
      return interp_fault(in, op, "the accumulator's product is one of the newest %llu, which may be under way",
                          (unsigned long long)pending);
    memcpy(out, interp_get(in, x), type_numel(x->type) * sizeof *out);
  }
  for (u32 i = 0; i < in->flying.len; i++) {
    Product p = in->flying.data[i];
    if (p.team != a->team || p.number > done)
      in->flying.data[kept++] = p;
    else
      interp_release(in, &p);
  }
  in->flying.len = kept;
  return FLOW_NEXT;
}
