/* widen_factors.c - 8-bit floats become f16 where the target's tensor cores do not multiply them, but f16; or add their products in fewer
 * bits than f32 has, and the dot asks for f32 (promote less than the products of an instruction).
 * Needs phase tile; keeps it.
 *
 * f16 holds every number of either kind, so the products are the same; without tensor cores a dot takes many times as long. It comes
 * before unpacked_dots, which lets factors that were widened stay in registers. */
#include "internal.h"

enum { FP8_DEPTH = 32 };           /* products that an instruction adds */

static bool
is_8bit_float(const Value *v)
{
  return type_is_float(v->type) && type_elem_bits(v->type) == 8;
}

/* Do tensor cores make the dot, as it is? Metadata is the same whatever the elements are. */
static bool
is_made(Ctx *c, const Op *dot)
{
  i64 promote = op_int(dot, AT_PROMOTE, 0);
  bool in_f32 = promote && promote < FP8_DEPTH, sparse = dot->code == OP_DOT_SPARSE;
  return mma_for(c->target, sparse, op_operand(dot, 0)->type->dt, dot_b(dot)->type->dt, op_result(dot)->type->dt) &&
         (!in_f32 || target_has(c->target, F_MMA_FP8_F32));
}

static void
visit(Op *op, void *user)
{
  Ctx *c = user;
  if (!op_is_dot(op) || !is_8bit_float(op_operand(op, 0)))
    return;
  DType sum = op_result(op)->type->dt;
  if (is_made(c, op) || !mma_for(c->target, op->code == OP_DOT_SPARSE, DT_F16, DT_F16, sum))
    return;
  Builder b = builder_before(op);
  b.span = op->span;
  Value *x = ir_cast(&b, op_operand(op, 0), DT_F16), *y = ir_cast(&b, dot_b(op), DT_F16);
  op_set_operand(op, 0, x);
  op_set_operand(op, op->noperands - 2, y);
}

void
pass_widen_factors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], visit, c);
}
