/* divide.c - tiles of i32 divided by what stays the same while a loop runs, a kernel's argument mostly: what depends on the divisor alone
 * is computed in front of the loop, and a quotient there is one product and one step. (A number has one division, and in loops of products
 * no register to spare.)
 *
 * ptxas writes a division out as a reciprocal of the divisor, by the hardware and a step of Newton's, two products and two steps that
 * correct the quotient, and it leaves all of that where it stands. LLVM moves divisions out of loops only where they are certain to be
 * done.
 *
 *   d = max(|b|, 1);  y = rcp.approx(f32(d)) 2^32, less 4 units of the last place;  s = u32(y);  r = s + hi(s (-s d))
 *   q = hi(|a| r);  left = |a| - q d;  if left >= d, q + 1 and left - d
 *
 * 0 <= 2^32 - r d < 2 d holds for each d from 1 to 2^31 and any approximation that is wrong by no more than a unit of the last place, as
 * the PTX ISA has it: all of them were tried. |a| is at most 2^31, so |a| r / 2^32 is less than the quotient by less than 1. By 0 gives
 * a, as everywhere; the least number by -1 is itself. */
#include "gen.h"

#define B g->b

static Val
high_word(Gen *g, Val a, Val b)
{
  Val ab[2] = {a, b};
  return gen_call(g, "llvm.nvvm.mulhi.ui", 0, NULL, 2, ab);
}

static Val
int_intrinsic(Gen *g, const char *name, Val a, Val b)
{
  Val ab[2] = {a, b};
  return gen_call(g, name, 1, &g->i32, 2, ab);
}

static Val
size_of(Gen *g, Val a)
{
  return int_intrinsic(g, "llvm.abs", a, LLVMConstInt(g->i1, 0, 0));
}

/* A bit less than 2^32 / d. */
static Val
reciprocal(Gen *g, Val d)
{
  Val f = LLVMBuildUIToFP(B, d, g->f32, "");
  Val y = LLVMBuildBitCast(B, gen_call(g, "llvm.nvvm.rcp.approx.ftz.f", 0, NULL, 1, &f), g->i32, "");
  Val less = LLVMBuildAdd(B, y, gen_u32(g, (32u << 23) - 4), "");
  Val s = LLVMBuildFPToUI(B, LLVMBuildBitCast(B, less, g->f32, ""), g->i32, "");
  return LLVMBuildAdd(B, s, high_word(g, s, LLVMBuildNeg(B, LLVMBuildMul(B, s, d, ""), "")), "");
}

static Val
quotient(Gen *g, bool rem, Val a, Val b, Val d, Val r)
{
  Val n = size_of(g, a), q = high_word(g, n, r), left = LLVMBuildSub(B, n, LLVMBuildMul(B, q, d, ""), "");
  Val sign = rem ? a : LLVMBuildXor(B, a, b, "");
  Val size = rem ? int_intrinsic(g, "llvm.umin", left, LLVMBuildSub(B, left, d, ""))
                 : LLVMBuildAdd(B, q, LLVMBuildZExt(B, LLVMBuildICmp(B, LLVMIntUGE, left, d, ""), g->i32, ""), "");
  Val less = LLVMBuildNeg(B, size, ""), below = LLVMBuildICmp(B, LLVMIntSLT, sign, gen_u32(g, 0), "");
  return LLVMBuildSelect(B, below, less, size, "");
}

Val
divide_by_same(Gen *g, const Op *op, Val a)
{
  bool rem = op->code == OP_REM, leaves = !value_within(OPERAND(op, BINARY, a), op_loop_around(op));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMMetadataRef at = LLVMGetCurrentDebugLocation2(B);
  LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(g->before_loop));
  LLVMSetCurrentDebugLocation2(B, at);
  Val b = gen_regs(g, op_divides_by_same(op))[0], d = int_intrinsic(g, "llvm.umax", size_of(g, b), gen_u32(g, 1));
  Val r = reciprocal(g, d), q = leaves ? quotient(g, rem, a, b, d, r) : NULL;
  gen_at(g, here);
  LLVMSetCurrentDebugLocation2(B, at);
  return q ? q : quotient(g, rem, a, b, d, r);
}
