/* widen_factors.c - 8-bit floats become f16 where the target's tensor cores do not multiply them, but f16; or add their products in fewer
 * bits than f32 has, and the dot asks for f32 (promote less than the products of an instruction).
 * Needs phase tile; keeps it.
 *
 * f16 holds every number of either kind, so the products are the same; without tensor cores a dot takes many times as long. It comes
 * before unpacked_dots, which lets factors that were widened stay in registers. */
#include "internal.h"

static bool
is_8bit_float(const Value *v)
{
  return type_is_float(v->type) && type_elem_bits(v->type) == 8;
}

enum { FP8_DEPTH = 32 };           /* products that an instruction adds */

/* Do tensor cores make the dot, as it is? */
static bool
is_made(Ctx *c, const Op *dot)
{
  i64 promote = op_int(dot, AT_PROMOTE, 0);
  bool in_f32 = promote && promote < FP8_DEPTH;
  return mma_for(c->target, OPERAND(dot, DOT, a)->type->dt, OPERAND(dot, DOT, b)->type->dt, op_result(dot)->type->dt) &&
         (!in_f32 || target_has(c->target, F_MMA_FP8_F32));
}

static void
visit(Op *op, void *user)
{
  Ctx *c = user;
  if (op->code != OP_DOT || !is_8bit_float(OPERAND(op, DOT, a)))
    return;
  DType sum = op_result(op)->type->dt;
  if (is_made(c, op) || !mma_for(c->target, DT_F16, DT_F16, sum))
    return;
  Builder b = builder_before(op);
  b.span = op->span;
  for (u32 i = 0; i < 2; i++)
    op_set_operand(op, i, ir_cast(&b, op_operand(op, i), DT_F16));
}

void
pass_widen_factors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_walk(m->funcs.data[i], visit, c);
}
