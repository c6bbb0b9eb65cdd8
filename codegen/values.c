/* values.c - the registers of the IR's values, constants and conditions: what every lowering is made of. */
#include "gen.h"

/* ---- registers ---- */

u32
gen_nregs(const Type *t)
{
  u32 per = t->pending && dtype_bits(t->dt) < 32 ? 32 / dtype_bits(t->dt) : 1;     /* accumulators under way stay machine words */
  return type_is_tile(t) ? layout_regs(t->layout) / per : 1;
}

Val *
gen_regs(Gen *g, const Value *v)
{
  if (!g->vals[v->id])
    ctx_panic(g->c, "codegen: value %%%u is used before it is made", v->id);
  return g->vals[v->id];
}

void
gen_bind(Gen *g, const Value *v, Val *regs)
{
  g->vals[v->id] = regs;
}

Val *
gen_new(Gen *g, const Value *v)
{
  Val *regs = NEW_ARRAY(g->arena, Val, gen_nregs(v->type));
  gen_bind(g, v, regs);
  return regs;
}

void
gen_poison(Gen *g, const Value *v)
{
  Val *regs = gen_new(g, v);
  for (u32 r = 0; r < gen_nregs(v->type); r++)
    regs[r] = LLVMGetPoison(gen_type(g, v->type));
}

/* ---- constants ---- */

Val
gen_const_bits(Gen *g, DType d, bool ptr, u64 bits)
{
  Ty t = gen_elem_type(g, d, ptr);
  if (ptr)
    return LLVMConstIntToPtr(LLVMConstInt(g->i64, bits, 0), t);
  if (!dtype_is_float(d) || dtype_bits(d) == 8)
    return LLVMConstInt(t, bits, 0);
  Ty as_int = LLVMIntTypeInContext(g->lc, dtype_bits(d));
  return LLVMConstBitCast(LLVMConstInt(as_int, bits, 0), t);
}

/* ---- exclusive-or, as addition where it is one ---- */

/* x ^ y, where x has bits only in xmask and y in ymask. */
Val
gen_xor_parts(LLVMBuilderRef b, Val x, u32 xmask, Val y, u32 ymask)
{
  if (xmask & ymask)
    return LLVMBuildXor(b, x, y, "");
  Val v = LLVMBuildOr(b, x, y, "");
  if (LLVMIsAInstruction(v))
    LLVMSetIsDisjoint(v, true);
  return v;
}

Val
gen_xor_const(Gen *g, Val x, u32 mask, u32 k)
{
  if (k & mask)
    x = LLVMBuildXor(g->b, x, gen_u32(g, k & mask), "");
  k &= ~mask;
  return k ? gen_xor_parts(g->b, x, mask, gen_u32(g, k), k) : x;
}

/* ---- conditions ---- */

/* A known condition decides by itself. */
Val
gen_and(Gen *g, Val a, Val b)
{
  if (!a || !b)
    return a ? a : b;
  if (LLVMIsAConstantInt(a))
    return LLVMConstIntGetZExtValue(a) ? b : a;
  if (LLVMIsAConstantInt(b))
    return LLVMConstIntGetZExtValue(b) ? a : b;
  return LLVMBuildAnd(g->b, a, b, "");
}

LLVMBasicBlockRef
gen_if(Gen *g, Val cond)
{
  if (!cond)
    return NULL;
  LLVMBasicBlockRef then = gen_block(g, "only"), after = gen_block(g, "only.done");
  LLVMBuildCondBr(g->b, cond, then, after);
  gen_at(g, then);
  return after;
}

void
gen_end_if(Gen *g, LLVMBasicBlockRef after)
{
  if (!after)
    return;
  LLVMBuildBr(g->b, after);
  gen_at(g, after);
}
