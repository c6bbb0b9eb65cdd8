/* layout_cut.c - how far a tile reaches into shared memory, and layouts in which it reaches less far.
 *
 * A shared layout covers extents that are powers of two; what lies beyond the highest offset of an element of the tile itself is
 * padding, and needs no memory.
 *
 * The highest offset. [0, e) is a union of dyadic blocks, one for each bit set in e: the numbers that agree with e above the bit, have
 * a 0 there and anything below. The tile is the union of the products of its dimensions' blocks. On each of these the offset is a
 * constant exclusive-or a linear function of free bits, so its values are a coset of a subspace: the largest is found from the highest
 * bit down, by adding the echelon basis' vector with that leading bit wherever the bit is not set.
 *
 * Reaching less far. Let the bits of an offset be those of the coordinates, each dimension's in their order, interleaved somehow. Offsets
 * then grow with every coordinate, so the highest is that of the tile's last element: the bits of all e - 1, interleaved likewise. That is
 * least for the least merge of these strings, and a least merge takes the next bit from the string whose rest is least, where the end of a
 * string counts more than a 1. For 64 rows of 576 = 9 x 64 elements the strings are 111111 and 1000111111: the last dimension's 1000 comes
 * first, and nine blocks of 64 x 64 lie one behind the other. The lowest bits are given: a run of one dimension stays together.
 * A swizzle within lines of 128 bytes moves nothing over their ends. */
#include "layout_gf2.h"

/* ---- the highest offset ---- */

typedef struct Reach {
  const u32 *shape;
  const Layout *l;
  u32 unit[LAYOUT_MAX_BITS];      /* offset of bit i of a flat index */
} Reach;

u32
layout_highest(u32 x, const u32 *cols, u32 n)
{
  Basis b = {0};
  for (u32 i = 0; i < n; i++) basis_add(&b, cols[i], 0, NULL);
  for (u32 p = 32; p-- > 0;)
    if (b.pivots >> p & ~(x >> p) & 1) x ^= b.vec[p];
  return x;
}

/* The highest offset, where the dimensions in front of d have given the constant and the free bits. */
static u32
highest(const Reach *r, u32 d, u32 constant, const Vecs *free)
{
  u32 most = 0, shift = d < r->l->rank ? layout_dim_shift(r->l, (int)d) : 0;
  if (d == r->l->rank) return layout_highest(constant, free->v, free->n);
  for (u32 bit = 0; bit <= r->l->out_bits[d]; bit++) {
    if (!(r->shape[d] >> bit & 1)) continue;
    u32 above = r->shape[d] >> bit >> 1 << bit << 1;
    Vecs more = *free;
    for (u32 i = 0; i < bit; i++) vecs_push(&more, r->unit[shift + i]);
    most = max_u32(most, highest(r, d + 1, constant ^ cols_apply(r->unit + shift, r->l->out_bits[d], above), &more));
  }
  return most;
}

u32
layout_reach(const Layout *smem, const u32 *shape)
{
  Reach r = {.shape = shape, .l = smem};
  Basis solver = layout_solver(smem, IN_OFFSET, IN_OFFSET);
  for (u32 i = 0; i < layout_out_bits(smem); i++) {
    u64 made = 0;
    basis_reduce(&solver, 1u << i, &made);
    r.unit[i] = (u32)made;
  }
  return highest(&r, 0, 0, &(Vecs){0}) + 1;
}

/* ---- reaching less far ---- */

/* By dimension: e - 1, and the bits of it from `end` on that are left. */
typedef struct Merge { const Layout *l; u32 last[MAX_RANK], left[MAX_RANK], end[MAX_RANK]; } Merge;

/* Is what is left of dimension a less than what is left of b? The end of a string counts more than a 1. */
static bool
rest_is_less(const Merge *m, u32 a, u32 b)
{
  for (u32 i = 1;; i++) {
    bool a_ends = m->left[a] < m->end[a] + i, b_ends = m->left[b] < m->end[b] + i;
    if (a_ends || b_ends) return b_ends && !a_ends;
    u32 x = m->last[a] >> (m->left[a] - i) & 1, y = m->last[b] >> (m->left[b] - i) & 1;
    if (x != y) return x < y;
  }
}

/* The dimension that the next bit comes from; the rank: none has any left. */
static u32
next_dimension(const Merge *m)
{
  u32 best = m->l->rank;
  for (u32 d = 0; d < m->l->rank; d++)
    if (m->left[d] > m->end[d] && (best == m->l->rank || rest_is_less(m, d, best))) best = d;
  return best;
}

const Layout *
layout_compact(Ctx *c, int rank, const u32 *shape, int fast, u32 run, const LayoutSwizzle *s)
{
  Layout l = layout_blank(c, rank, shape);
  Merge m = {.l = &l};
  u32 order[LAYOUT_MAX_BITS], n = layout_out_bits(&l), at = n;
  for (int d = 0; d < rank; d++) {
    m.last[d] = shape[d] - 1;
    m.left[d] = l.out_bits[d];
  }
  m.end[fast] = min_u32(log2_u32(run), l.out_bits[fast]);
  for (u32 d; (d = next_dimension(&m)) < l.rank;) order[--at] = layout_dim_shift(&l, (int)d) + --m.left[d];
  for (u32 i = 0; i < m.end[fast]; i++) order[i] = layout_dim_shift(&l, fast) + i;
  u32 vec = log2_u32(s->vec), line = log2_u32(s->line), per = log2_u32(s->per), phases = log2_u32(s->phases);
  for (u32 i = 0; i < n; i++) {
    u32 from = i - line - per, to = vec + from;
    bool flips = i >= line + per && from < phases && to < line && to < n;
    layout_push(&l, IN_OFFSET, 1u << order[i] ^ (flips ? 1u << order[to] : 0));
  }
  return layout_intern(c, &l);
}
