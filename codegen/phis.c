/* phis.c - the values that loops carry and that ifs give, as phis.
 *
 * A 32-bit register holds two 16-bit elements, or four of 8 bits. As a phi of its own each element would take a register of
 * its own and moves on every round; so the elements that share one (consecutive registers of the layout, none of them a copy)
 * cross a block's edge as one 32-bit word. What arrives is taken apart behind the block's phis, and what leaves is put together
 * at the end of the block it comes from; where the element is only ever used in its word, LLVM drops both.
 */
#include "gen.h"

static bool
is_rep(Gen *g, const Type *t, u32 r)
{
  return !type_is_tile(t) || t->pending || dist_get(g, t->layout)->rep[r] == r;
}

/* Elements that cross together: all words of v are whole, or none is. */
static u32
together(Gen *g, const Type *t)
{
  if (!type_is_tile(t) || t->ptr || t->pending || t->dt == DT_I1 || dtype_bits(t->dt) >= 32)
    return 1;
  u32 per = 32 / dtype_bits(t->dt), n = gen_nregs(t);
  const Dist *h = dist_get(g, t->layout);
  for (u32 r = 0; r < per; r++)
    if (n < per || h->rep[r] != r)
      return 1;
  return per;
}

/* Phis for v, at the builder's place; bind comes when all phis of the block are made. */
static void
phis_make(Gen *g, const Value *v)
{
  u32 per = together(g, v->type), n = gen_nregs(v->type);
  Val *phis = g->phis[v->id] = NEW_ARRAY(g->arena, Val, n);
  Ty t = per > 1 ? g->i32 : gen_type(g, v->type);
  for (u32 r = 0; r < n; r += per)
    if (is_rep(g, v->type, r))
      phis[r] = LLVMBuildPhi(g->b, t, "");
}

static void
phis_bind(Gen *g, const Value *v)
{
  u32 per = together(g, v->type), n = gen_nregs(v->type);
  Val *regs = gen_new(g, v);
  Words w = per > 1 ? words_for(g, v->type->dt, false, per) : (Words){0};
  for (u32 r = 0; r < n; r += per)
    if (per == 1)
      regs[r] = g->phis[v->id][r];
    else if (is_rep(g, v->type, r))
      words_unpack(g, &w, &g->phis[v->id][r], regs + r);
  dist_share(g, v);
}

void
phis_new(Gen *g, u32 n, Value *const *vs)
{
  for (u32 i = 0; i < n; i++)
    phis_make(g, vs[i]);
  for (u32 i = 0; i < n; i++)
    phis_bind(g, vs[i]);
}

/* To the end of a block, before its branch if it has one. */
static void
at_end_of(Gen *g, LLVMBasicBlockRef block)
{
  Val branch = LLVMGetBasicBlockTerminator(block);
  if (branch)
    LLVMPositionBuilderBefore(g->b, branch);
  else
    LLVMPositionBuilderAtEnd(g->b, block);
}

void
phis_add(Gen *g, const Value *v, const Val *incoming, LLVMBasicBlockRef from)
{
  u32 per = together(g, v->type), n = gen_nregs(v->type);
  Words w = per > 1 ? words_for(g, v->type->dt, false, per) : (Words){0};
  LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
  at_end_of(g, from);
  for (u32 r = 0; r < n; r += per) {
    if (!is_rep(g, v->type, r))
      continue;
    Val x = incoming[r];
    if (per > 1)
      words_pack(g, &w, incoming + r, &x);
    LLVMAddIncoming(g->phis[v->id][r], &x, &from, 1);
  }
  LLVMPositionBuilderAtEnd(g->b, here);
}

void
phis_add_operands(Gen *g, u32 n, Value *const *vs, const Op *op, u32 first, LLVMBasicBlockRef from)
{
  for (u32 i = 0; i < n; i++)
    phis_add(g, vs[i], gen_regs(g, op_operand(op, first + i)), from);
}
