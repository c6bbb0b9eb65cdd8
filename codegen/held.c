/* held.c - which elements a thread holds, as LLVM values.
 *
 * A layout is linear, so the flat index of the element in register r of thread t is part(r) ^ part(t): the first is a
 * constant, the second an exclusive-or of columns selected by the bits of tid. A coordinate is a bit field of the flat
 * index, so the same holds for each coordinate. The thread's parts are computed once per function and layout, in the
 * prologue. Where the constant's bits and the bits that threads can change do not meet, exclusive-or is addition, and
 * addition is what LLVM and PTX addresses understand: gen_xor_const makes that choice, bit by bit.
 *
 * The linear map tid -> part(t) is evaluated by diagonals: all bits i of tid that reach bit i + d of the result do so
 * by one mask and one shift by d. Blocked and mma layouts have few diagonals, and no layout has more than there are bits.
 */
#include "gen.h"

/* Remainder of v after subtracting what the registers span; *regs collects the registers subtracted. */
static u32
solver_reduce(const Held *h, u32 v, u32 *regs)
{
  for (int top = LAYOUT_MAX_BITS - 1; top >= 0; top--)
    if (v >> top & 1 && h->pivot[top]) {
      v ^= h->pivot[top];
      *regs ^= h->pivot_reg[top];
    }
  return v;
}

/* Enter the registers' columns; a dependent register bit copies the registers that make it up. */
static void
solver_fill(Held *h, u32 *copy_of)
{
  for (u32 i = 0; i < h->reg_bits; i++) {
    u32 regs = 0, rest = solver_reduce(h, h->l->col[IN_REG][i], &regs);
    copy_of[i] = rest ? 1u << i : regs;
    if (!rest)
      continue;
    u32 top = log2_u32(rest);
    h->pivot[top] = rest;
    h->pivot_reg[top] = regs ^ 1u << i;
  }
}

static void
fill_regs(Gen *g, Held *h)
{
  u32 copy_of[LAYOUT_MAX_BITS];
  solver_fill(h, copy_of);
  h->rep = NEW_ARRAY(g->arena, u32, h->regs);
  h->flat = NEW_ARRAY(g->arena, u32, h->regs);
  for (u32 r = 1; r < h->regs; r++) {
    u32 top = log2_u32(r), low = r ^ 1u << top;
    h->rep[r] = h->rep[low] ^ copy_of[top];
    h->flat[r] = h->flat[low] ^ h->l->col[IN_REG][top];
  }
}

static void
fill_threads(Held *h)
{
  const Layout *l = h->l;
  h->thread_bits = (u32)l->in_bits[IN_LANE] + l->in_bits[IN_WARP];
  for (u32 i = 0; i < h->thread_bits; i++) {
    u32 lanes = l->in_bits[IN_LANE];
    h->thread[i] = i < lanes ? l->col[IN_LANE][i] : l->col[IN_WARP][i - lanes];
    h->thread_mask |= h->thread[i];
  }
  h->free_threads = layout_free_bits(l, IN_LANE) | layout_free_bits(l, IN_WARP) << l->in_bits[IN_LANE];
}

static Held *
held_new(Gen *g, const Layout *l)
{
  Held *h = NEW(g->arena, Held);
  h->l = l;
  h->regs = layout_regs(l);
  h->reg_bits = l->in_bits[IN_REG];
  u32 at = 0;
  for (int d = l->rank - 1; d >= 0; d--) {
    h->shift[d] = at;
    at += l->out_bits[d];
  }
  fill_regs(g, h);
  fill_threads(h);
  return h;
}

/* What threads hold of l; made on first use. */
Held *
held_get(Gen *g, const Layout *l)
{
  if (l->id >= g->nheld) {
    u32 n = next_pow2(l->id + 8);
    Held **wider = NEW_ARRAY(g->arena, Held *, n);
    if (g->nheld)
      memcpy(wider, g->held, sizeof *wider * g->nheld);
    g->held = wider;
    g->nheld = n;
  }
  if (!g->held[l->id])
    g->held[l->id] = held_new(g, l);
  return g->held[l->id];
}

bool
held_find(const Held *h, u32 flat, u32 *reg)
{
  *reg = 0;
  return solver_reduce(h, flat, reg) == 0;
}

u32
held_coord(const Held *h, u32 flat, int dim)
{
  return flat >> h->shift[dim] & ((1u << h->l->out_bits[dim]) - 1);
}

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

/* ---- linear functions of tid ---- */

/* One diagonal: the bits of tid in mask, moved up by d places. */
static Val
diagonal(Gen *g, u32 mask, int d)
{
  Val x = LLVMBuildAnd(g->pro, g->tid, gen_u32(g, mask), "");
  if (d > 0)
    return LLVMBuildShl(g->pro, x, gen_u32(g, (u32)d), "");
  return d < 0 ? LLVMBuildLShr(g->pro, x, gen_u32(g, (u32)-d), "") : x;
}

static Val
join(LLVMBuilderRef b, Val x, u32 xmask, Val y, u32 ymask)
{
  if (xmask & ymask)
    return LLVMBuildXor(b, x, y, "");
  Val v = LLVMBuildOr(b, x, y, "");
  if (LLVMIsAInstruction(v))
    LLVMSetIsDisjoint(v, true);
  return v;
}

Val
gen_thread_linear(Gen *g, const u32 *cols, u32 nbits)
{
  Val sum = NULL;
  u32 have = 0;
  for (int d = -(int)nbits; d < LAYOUT_MAX_BITS + 8; d++) {
    u32 mask = 0;
    for (int i = 0; i < (int)nbits; i++)
      if (i + d >= 0 && i + d < 32 && cols[i] >> (i + d) & 1)
        mask |= 1u << i;
    if (!mask)
      continue;
    u32 reach = d >= 0 ? mask << d : mask >> -d;
    Val term = diagonal(g, mask, d);
    sum = sum ? join(g->pro, sum, have, term, reach) : term;
    have |= reach;
  }
  return sum ? sum : gen_u32(g, 0);
}

Val
gen_thread_zero(Gen *g, u32 mask)
{
  if (!mask)
    return NULL;
  Val bits = LLVMBuildAnd(g->pro, g->tid, gen_u32(g, mask), "");
  return LLVMBuildICmp(g->pro, LLVMIntEQ, bits, gen_u32(g, 0), "");
}

Val
gen_xor_const(Gen *g, Val x, u32 mask, u32 k)
{
  if (k & mask)
    x = LLVMBuildXor(g->b, x, gen_u32(g, k & mask), "");
  k &= ~mask;
  return k ? join(g->b, x, mask, gen_u32(g, k), k) : x;
}

/* ---- coordinates ---- */
static Val
thread_part(Gen *g, Held *h, int dim)
{
  if (h->part[dim])
    return h->part[dim];
  u32 cols[LAYOUT_MAX_BITS];
  for (u32 i = 0; i < h->thread_bits; i++)
    cols[i] = held_coord(h, h->thread[i], dim);
  return h->part[dim] = gen_thread_linear(g, cols, h->thread_bits);
}

Val
held_index(Gen *g, Held *h, u32 reg, int dim)
{
  return gen_xor_const(g, thread_part(g, h, dim), held_coord(h, h->thread_mask, dim), held_coord(h, h->flat[reg], dim));
}

Val
held_inside_dim(Gen *g, Held *h, const Type *t, u32 reg, int dim)
{
  u32 mine = held_coord(h, h->flat[reg], dim), others = held_coord(h, h->thread_mask, dim);
  u32 extent = t->shape[dim];
  if ((mine | others) < extent)
    return NULL;
  if ((mine & ~others) >= extent)
    return LLVMConstInt(g->i1, 0, 0);
  return LLVMBuildICmp(g->b, LLVMIntULT, held_index(g, h, reg, dim), gen_u32(g, extent), "");
}

Val
held_inside(Gen *g, Held *h, const Type *t, u32 reg)
{
  Val in = NULL;
  for (int d = 0; d < t->rank; d++)
    in = gen_and(g, in, held_inside_dim(g, h, t, reg, d));
  return in;
}

Val
held_owner(Gen *g, const Held *h)
{
  return gen_thread_zero(g, h ? h->free_threads : g->func->warps * LANES - 1);
}
