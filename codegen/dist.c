/* dist.c - which elements a thread holds, as LLVM values.
 *
 * A layout is linear, so the flat index of the element in register r of thread t is part(r) ^ part(t): the first is a
 * constant, the second an exclusive-or of columns selected by the bits of tid. A coordinate is a bit field of the flat
 * index, so the same holds for each coordinate. The thread's parts are computed once per function and layout, in the
 * prologue. Where the constant's bits and the bits that threads can change do not meet, exclusive-or is addition, and
 * addition is what LLVM and PTX addresses understand: gen_xor_const makes that choice, bit by bit.
 */
#include "gen.h"

/* Remainder of v after subtracting what the registers span; *regs collects the registers subtracted. */
static u32
solver_reduce(const Dist *h, u32 v, u32 *regs)
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
solver_fill(Dist *h, u32 *copy_of)
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
fill_regs(Gen *g, Dist *h)
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
fill_threads(Dist *h)
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

static Dist *
dist_new(Gen *g, const Layout *l)
{
  Dist *h = NEW(g->arena, Dist);
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
Dist *
dist_get(Gen *g, const Layout *l)
{
  GenTeam *t = g->team;
  if (l->id >= t->ndists) {
    u32 n = next_pow2(l->id + 8);
    Dist **wider = NEW_ARRAY(g->arena, Dist *, n);
    if (t->ndists)
      memcpy(wider, t->dists, sizeof *wider * t->ndists);
    t->dists = wider;
    t->ndists = n;
  }
  if (!t->dists[l->id])
    t->dists[l->id] = dist_new(g, l);
  return t->dists[l->id];
}

bool
dist_find(const Dist *h, u32 flat, u32 *reg)
{
  *reg = 0;
  return solver_reduce(h, flat, reg) == 0;
}

u32
dist_run_start(const Dist *h, int d, u32 run, u32 reg, u32 *in)
{
  u32 within = min_u32(run, 1u << h->l->out_bits[d]) - 1, first;
  u32 movable = h->flat[reg] & within << h->shift[d] & ~h->thread_mask;
  bool found = movable && dist_find(h, h->flat[reg] ^ movable, &first);
  *in = found ? movable >> h->shift[d] : 0;
  return found ? first : reg;
}

u32
dist_coord(const Dist *h, u32 flat, int dim)
{
  return flat >> h->shift[dim] & ((1u << h->l->out_bits[dim]) - 1);
}

void
dist_share(Gen *g, const Value *v)
{
  if (!type_is_tile(v->type) || v->type->pending)
    return;
  Dist *h = dist_get(g, v->type->layout);
  Val *regs = gen_regs(g, v);
  for (u32 r = 0; r < h->regs; r++)
    if (h->rep[r] != r)
      regs[r] = regs[h->rep[r]];
}

u32
dist_equal_bits(Gen *g, const Value *v, const Dist *h)
{
  const AxisInfo *a = &g->axes[v->id];
  u32 mask = 0;
  for (u32 bit = 0; h && bit < h->reg_bits; bit++) {
    bool inside = true;
    for (int d = 0; d < h->l->rank && inside; d++)
      inside = dist_coord(h, h->l->col[IN_REG][bit], d) < a->constancy[d];
    mask |= (u32)inside << bit;
  }
  return mask;
}

/* ---- coordinates ---- */
static Val
thread_part(Gen *g, Dist *h, int dim)
{
  if (h->part[dim])
    return h->part[dim];
  u32 cols[LAYOUT_MAX_BITS];
  for (u32 i = 0; i < h->thread_bits; i++)
    cols[i] = dist_coord(h, h->thread[i], dim);
  return h->part[dim] = team_linear(g, cols, h->thread_bits);
}

Val
dist_index(Gen *g, Dist *h, u32 reg, int dim)
{
  return gen_xor_const(g, thread_part(g, h, dim), dist_coord(h, h->thread_mask, dim), dist_coord(h, h->flat[reg], dim));
}

Val
dist_inside_dim(Gen *g, Dist *h, const Type *t, u32 reg, int dim)
{
  u32 mine = dist_coord(h, h->flat[reg], dim), others = dist_coord(h, h->thread_mask, dim);
  u32 extent = t->shape[dim];
  if ((mine | others) < extent)
    return NULL;
  if ((mine & ~others) >= extent)
    return LLVMConstInt(g->i1, 0, 0);
  return LLVMBuildICmp(g->b, LLVMIntULT, dist_index(g, h, reg, dim), gen_u32(g, extent), "");
}

Val
dist_inside(Gen *g, Dist *h, const Type *t, u32 reg)
{
  Val in = NULL;
  for (int d = 0; d < t->rank; d++)
    in = gen_and(g, in, dist_inside_dim(g, h, t, reg, d));
  return in;
}

Val
dist_leader(Gen *g, const Dist *h)
{
  return team_bits_zero(g, h ? h->free_threads : next_pow2(team_threads(g->team->range)) - 1);
}
