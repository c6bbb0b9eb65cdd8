/* layout_kinds.c - constructors: from the names people use to columns.
 *
 * Each dimension is a line of flat bits, lowest first, and a constructor deals them out to registers, lanes
 * and warps (a Dealer). A bit asked for beyond the end of its dimension becomes a zero column: that input
 * bit makes copies. Bits left over at the end go to registers.
 *
 * Tensor-core fragments (PTX ISA, "Matrix Fragments for mma.m16n8k8/k16/k32"). With p = log2(32 /
 * elem_bits), elements packed in one 32-bit register, and k, m, n the coordinates:
 *
 *     C  m16n8    reg0 = n0,         lane = n1 n2   | m0 m1 m2,   reg1 = m3
 *     A  m16      reg0..p-1 = k0..,  lane = kp kp+1 | m0 m1 m2,   then m3, then kp+2
 *     B  n8       reg0..p-1 = k0..,  lane = kp kp+1 | n0 n1 n2,   then kp+2
 *
 * These are the instruction's own registers in PTX order: a thread's first (A: 4, B: 2, C: 4) 32-bit
 * registers. Above them come the repetitions of the instruction over what a warp owns: along K then M for A,
 * along K then N for B, along N then M for C. So with own = registers (elements) of one instruction,
 *
 *     A(m, k) = own * (k + K_reps * m)
 *     B(k, n) = own * (k + K_reps * n)
 *     C(m, n) = own * (n + N_reps * m)
 *
 * Warp w stands at (w / warps[1], w % warps[1]) of the warps[0] x warps[1] grid over M x N, right above the
 * instruction's own rows and columns: 16 * warps[0] rows are covered before the first repetition along M. A
 * does not depend on the warp's column, B not on its row. A tile that is smaller than the grid is held in
 * copies; one that is smaller than the instruction keeps all its registers, with copies. Copies along K are not to be
 * summed: the code of a dot clears what lies beyond K in the instruction's own order, which copies do not change.
 *
 * Sparse instructions (mma.sp; "Matrix fragments for multiply-accumulate operation with sparse matrix A") take A of half the columns, as
 * an instruction of half their K does, and B of all of K, four registers, in the order above. Of their metadata, u16 words for 16 columns
 * of what A was, k and m a word's coordinates, a 32-bit register is for K = 64:
 *
 *     16-bit   m16n8k32   lane = k0 k1 | m0 m1 m2,   reg0 = m3     two instructions, by lanes 0, 1 and 2, 3 of a quad
 *     8-bit    m16n8k64   lane = m3 k1 | m0 m1 m2,   reg0 = k0     one instruction, all lanes
 *
 * with the repetitions along K and M above, as A's. Which lanes of a quad give theirs is the instruction's selector.
 *
 * Dimensions in front of the last two are batches: each matrix is laid out as one alone, warps along a batch above those
 * along M and N, and what is left of the batches in the highest registers.
 */
#include "layout_gf2.h"

typedef struct Dealer {
  Layout l;
  u32 next[MAX_RANK];   /* bits of each dimension dealt so far */
} Dealer;

/* Give `n` bits along dim to input `in`; beyond the extent they are copies. */
static void
deal(Dealer *d, LayoutIn in, int dim, u32 n)
{
  for (u32 i = 0; i < n; i++, d->next[dim]++) {
    bool inside = d->next[dim] < d->l.out_bits[dim];
    layout_push(&d->l, in, inside ? 1u << (layout_dim_shift(&d->l, dim) + d->next[dim]) : 0);
  }
}

static u32
left(const Dealer *d, int dim)
{
  u32 have = d->l.out_bits[dim];
  return d->next[dim] < have ? have - d->next[dim] : 0;
}

static const Layout *
dealt(Ctx *c, Dealer *d)
{
  return layout_intern(c, &d->l);
}

const Layout *
layout_blocked(Ctx *c, int rank, const u32 *shape, const u32 *size_per_thread, const u32 *threads_per_warp,
               const u32 *warps, const int *order)
{
  Dealer d = {.l = layout_blank(c, rank, shape)};
  for (int i = 0; i < rank; i++)
    deal(&d, IN_REG, order[i], min_u32(left(&d, order[i]), log2_u32(size_per_thread[order[i]])));
  for (int i = 0; i < rank; i++) deal(&d, IN_LANE, order[i], log2_u32(threads_per_warp[order[i]]));
  for (int i = 0; i < rank; i++) deal(&d, IN_WARP, order[i], log2_u32(warps[order[i]]));
  for (int i = 0; i < rank; i++) deal(&d, IN_REG, order[i], left(&d, order[i]));
  return dealt(c, &d);
}

/* Deal n bits of `in` along the dimensions in order, each until it is used up; the rest are copies. */
static void
deal_along(Dealer *d, LayoutIn in, int rank, const int *order, u32 n)
{
  for (int i = 0; i < rank; i++) {
    u32 take = min_u32(n, left(d, order[i]));
    deal(d, in, order[i], take);
    n -= take;
  }
  for (; n; n--) layout_push(&d->l, in, 0);
}

const Layout *
layout_default(Ctx *c, int rank, const u32 *shape, u32 warps, u32 vec, const int *order)
{
  Dealer d = {.l = layout_blank(c, rank, shape)};
  deal(&d, IN_REG, order[0], min_u32(log2_u32(vec), left(&d, order[0])));
  deal_along(&d, IN_LANE, rank, order, 5);
  deal_along(&d, IN_WARP, rank, order, log2_u32(warps));
  for (int i = 0; i < rank; i++) deal(&d, IN_REG, order[i], left(&d, order[i]));
  return dealt(c, &d);
}

static void
deal_batches(Dealer *d, int rank, const u32 *warps)
{
  for (int i = rank - 3; i >= 0; i--) deal(d, IN_WARP, i, log2_u32(warps[i]));
}

static void
deal_batches_left(Dealer *d, int rank)
{
  for (int i = rank - 3; i >= 0; i--) deal(d, IN_REG, i, left(d, i));
}

/* grouped: warps along N come behind those along M, each with columns side by side, as warpgroups have them. */
static const Layout *
mma_sum(Ctx *c, int rank, const u32 *shape, const u32 *warps, bool grouped)
{
  int m = rank - 2, n = rank - 1;
  u32 along = log2_u32(warps[n]), last = grouped ? along : 0;
  Dealer d = {.l = layout_blank(c, rank, shape)};
  deal(&d, IN_REG, n, 1);
  deal(&d, IN_LANE, n, 2);
  deal(&d, IN_LANE, m, 3);
  deal(&d, IN_REG, m, 1);
  deal(&d, IN_WARP, n, along - last);
  deal(&d, IN_WARP, m, log2_u32(warps[m]));
  deal_batches(&d, rank, warps);
  deal(&d, IN_REG, n, left(&d, n) - last);
  deal(&d, IN_WARP, n, last);
  deal(&d, IN_REG, m, left(&d, m));
  deal_batches_left(&d, rank);
  return dealt(c, &d);
}

const Layout *
layout_mma(Ctx *c, int rank, const u32 *shape, const u32 *warps)
{
  return mma_sum(c, rank, shape, warps, false);
}

const Layout *
layout_warpgroups(Ctx *c, const u32 *shape, u32 rows, u32 groups)
{
  return mma_sum(c, 2, shape, (u32[]){rows, groups}, true);
}

/* n bits of warps along a dimension of the result; an operand that has not got it has copies there. */
static void
deal_warps(Dealer *d, bool has, int dim, u32 n)
{
  if (has)
    deal(d, IN_WARP, dim, n);
  for (; !has && n; n--)
    layout_push(&d->l, IN_WARP, 0);
}

/* words: of 32 bits along K, of four threads side by side, that an instruction takes. */
static const Layout *
mma_operand(Ctx *c, int which, int rank, const u32 *shape, const u32 *warps, u32 elem_bits, u32 words, bool grouped)
{
  Dealer d = {.l = layout_blank(c, rank, shape)};
  if (elem_bits != 8 && elem_bits != 16 && elem_bits != 32) ctx_panic(c, "mma operand of %u bits", elem_bits);
  int m = rank - 2, n = rank - 1, k = which == 0 ? n : m, outer = which == 0 ? m : n;
  u32 along = log2_u32(warps[n]), last = grouped ? along : 0;
  deal(&d, IN_REG, k, log2_u32(32 / elem_bits));
  deal(&d, IN_LANE, k, 2);
  deal(&d, IN_LANE, outer, 3);
  if (which == 0) deal(&d, IN_REG, outer, 1);
  deal(&d, IN_REG, k, log2_u32(words));
  deal_warps(&d, which == 1, outer, along - last);
  deal_warps(&d, which == 0, outer, log2_u32(warps[m]));
  deal_batches(&d, rank, warps);
  deal(&d, IN_REG, k, left(&d, k));
  deal(&d, IN_REG, outer, left(&d, outer) - (which == 1 ? last : 0));
  deal_warps(&d, which == 1, outer, last);
  deal_batches_left(&d, rank);
  return dealt(c, &d);
}

const Layout *
layout_mma_operand(Ctx *c, int which, int rank, const u32 *shape, const u32 *warps, u32 elem_bits)
{
  return mma_operand(c, which, rank, shape, warps, elem_bits, 2, false);
}

const Layout *
layout_mma_sparse_operand(Ctx *c, int which, int rank, const u32 *shape, const u32 *warps, u32 elem_bits)
{
  return mma_operand(c, which, rank, shape, warps, elem_bits, which ? 4 : 2, false);
}

const Layout *
layout_warpgroups_operand(Ctx *c, int which, const u32 *shape, u32 rows, u32 groups, u32 elem_bits)
{
  return mma_operand(c, which, 2, shape, (u32[]){rows, groups}, elem_bits, 2, true);
}

/* One bit of a dimension, whatever was dealt before. */
static void
deal_bit(Dealer *d, LayoutIn in, int dim, u32 bit)
{
  d->next[dim] = bit;
  deal(d, in, dim, 1);
}

const Layout *
layout_mma_meta(Ctx *c, int rank, const u32 *shape, const u32 *warps, u32 elem_bits)
{
  Dealer d = {.l = layout_blank(c, rank, shape)};
  if (elem_bits != 8 && elem_bits != 16) ctx_panic(c, "metadata of elements of %u bits", elem_bits);
  int m = rank - 2, k = rank - 1;
  bool bytes = elem_bits == 8;
  deal_bit(&d, IN_REG, bytes ? k : m, bytes ? 0 : 3);
  deal_bit(&d, IN_LANE, bytes ? m : k, bytes ? 3 : 0);
  deal_bit(&d, IN_LANE, k, 1);
  for (u32 i = 0; i < 3; i++) deal_bit(&d, IN_LANE, m, i);
  d.next[m] = 4;
  for (u32 i = log2_u32(warps[k]); i; i--) layout_push(&d.l, IN_WARP, 0);
  deal(&d, IN_WARP, m, log2_u32(warps[m]));
  deal_batches(&d, rank, warps);
  deal(&d, IN_REG, k, left(&d, k));
  deal(&d, IN_REG, m, left(&d, m));
  deal_batches_left(&d, rank);
  return dealt(c, &d);
}

/* The part of a column of `result` along dim, moved to dimension dim of `l`. */
static u32
move_along(const Layout *result, const Layout *l, int dim, u32 col)
{
  u32 mask = (1u << result->out_bits[dim]) - 1;
  return (col >> layout_dim_shift(result, dim) & mask) << layout_dim_shift(l, dim);
}

const Layout *
layout_fma_operand(Ctx *c, int which, const u32 *shape, const Layout *result)
{
  int rank = result->rank, k = which == 0 ? rank - 1 : rank - 2;
  Dealer d = {.l = layout_blank(c, rank, shape)};
  for (int dim = 0; dim < rank; dim++)
    if (dim != k && result->out_bits[dim] != d.l.out_bits[dim])
      ctx_panic(c, "operand and result of a dot disagree");
  deal(&d, IN_REG, k, left(&d, k));
  for (u32 in = IN_REG; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < result->in_bits[in]; i++) {
      u32 col = 0;
      for (int dim = 0; dim < rank; dim++)
        if (dim != k)
          col |= move_along(result, &d.l, dim, result->col[in][i]);
      layout_push(&d.l, (LayoutIn)in, col);
    }
  layout_drop_register_copies(&d.l);
  return dealt(c, &d);
}

/* Element (row, col) lies at row * cols + ((col / vec) ^ (row / per_phase % max_phase)) * vec + col % vec. Read as
 * columns: offset bits below a row are column bits; a row's bit also flips the column bit of its phase. */
const Layout *
layout_swizzled(Ctx *c, int rank, const u32 *shape, u32 vec, u32 per_phase, u32 max_phase, const int *order)
{
  Layout l = layout_blank(c, rank, shape);
  u32 v = log2_u32(vec), p = log2_u32(per_phase), phases = log2_u32(max_phase);
  for (int i = 0; i < rank; i++)
    for (u32 b = 0; b < l.out_bits[order[i]]; b++) {
      u32 col = 1u << (layout_dim_shift(&l, order[i]) + b), flip = v + b - p;
      if (i == 1 && b >= p && b < p + phases && flip < l.out_bits[order[0]])
        col ^= 1u << (layout_dim_shift(&l, order[0]) + flip);
      layout_push(&l, IN_OFFSET, col);
    }
  return layout_intern(c, &l);
}
