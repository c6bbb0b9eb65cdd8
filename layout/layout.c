/* layout.c - the algebra of layouts: making, interning, shape operations, questions.
 *
 * A layout says which element of a tile a hardware index holds. Write the index as bits - register r0 r1 ..,
 * lane l0 .. l4, warp w0 .., block b0 .. - and the element as its flat index. Everything a GPU wants
 * (vectors, fragments, swizzles) is linear over GF(2) in these bits: each input bit has a column, a flat
 * index, and the element held is the exclusive-or of the columns of the bits that are 1.
 *
 *   An 8 x 16 tile has 3 row bits and 4 column bits; the flat index is rrrcccc, so (row 1, column 2) is 0010010.
 *   Let each thread hold 2 neighbours of a row, and let 8 x 4 threads (one warp) cover an 8 x 8 half:
 *       r0 = (0,1)   l0 = (0,2)  l1 = (0,4)  l2 = (1,0)  l3 = (2,0)  l4 = (4,0)   r1 = (0,8)
 *   Register 3 of lane 5 = r0 + r1 + l0 + l2 holds (0,1)+(0,8)+(0,2)+(1,0) = (1,11).
 *
 * Questions about who holds what then are questions of linear algebra on at most 24-bit vectors:
 *   is every element held?             the columns have full rank
 *   does this bit only make copies?    its column is in the span of the columns before it
 *   who holds element e?               solve for the input bits (Gaussian elimination)
 *   can registers load as a vector?    their columns are the low unit vectors, no other column touches these bits
 *   does a thread hold what it needs?  the target's columns are in the span of the source's registers
 *   do two lanes meet in a bank?       the span of the lane columns meets the span of the high offset bits
 * and a change of shape (transpose, slice, broadcast) is a linear map applied to the columns. No kind of layout is
 * special after its constructor returned (layout_kinds.c): it is only columns.
 *
 * layout_convert.c builds conversions on this, layout_text.c prints and reads, layout_gf2.h holds the
 * vocabulary.
 */
#include "layout_gf2.h"

/* ---- vectors and subspaces ---- */

u32
basis_reduce(const Basis *b, u32 v, u64 *made)
{
  for (u32 p = 32; p-- > 0 && v;) {
    if (!(v >> p & 1) || !(b->pivots >> p & 1)) continue;
    v ^= b->vec[p];
    if (made) *made ^= b->made[p];
  }
  return v;
}

bool
basis_add(Basis *b, u32 v, u64 made, u64 *rest)
{
  u32 r = basis_reduce(b, v, &made);
  if (r == 0) {
    if (rest) *rest = made;
    return false;
  }
  u32 p = log2_u32(r);
  b->pivots |= 1u << p;
  b->vec[p] = r;
  b->made[p] = made;
  return true;
}

bool
basis_has(const Basis *b, u32 v)
{
  return basis_reduce(b, v, NULL) == 0;
}

void
basis_add_all(Basis *b, const Vecs *vs)
{
  for (u32 i = 0; i < vs->n; i++) basis_add(b, vs->v[i], 0, NULL);
}

u32
basis_rank(const Basis *b)
{
  return popcount_u32(b->pivots);
}

void
vecs_push(Vecs *vs, u32 v)
{
  if (vs->n < COUNT(vs->v)) vs->v[vs->n++] = v;
}

void
vecs_append(Vecs *to, const Vecs *from)
{
  for (u32 i = 0; i < from->n; i++) vecs_push(to, from->v[i]);
}

void
vecs_extend(Vecs *to, Basis *seen, const Vecs *from, u32 limit)
{
  for (u32 i = 0; i < from->n && to->n < limit; i++)
    if (basis_add(seen, from->v[i], 0, NULL)) vecs_push(to, from->v[i]);
}

/* Each vector of b carries itself as `made`: when a sum of them falls into what a spans, `made` is that sum. */
Vecs
vecs_intersect(const Vecs *a, const Vecs *b)
{
  Vecs out = {0};
  Basis basis = {0}, seen = {0};
  basis_add_all(&basis, a);
  for (u32 i = 0; i < b->n; i++) {
    u64 common = 0;
    if (!basis_add(&basis, b->v[i], b->v[i], &common) && basis_add(&seen, (u32)common, 0, NULL))
      vecs_push(&out, (u32)common);
  }
  return out;
}

Vecs
vecs_units(u32 n)
{
  Vecs out = {0};
  for (u32 i = 0; i < n; i++) vecs_push(&out, 1u << i);
  return out;
}

/* ---- parts of a layout ---- */

u32
layout_out_bits(const Layout *l)
{
  u32 n = 0;
  for (u32 d = 0; d < l->rank; d++) n += l->out_bits[d];
  return n;
}

u32
layout_dim_shift(const Layout *l, int dim)
{
  u32 shift = 0;
  for (u32 d = (u32)dim + 1; d < l->rank; d++) shift += l->out_bits[d];
  return shift;
}

u32
layout_dim_mask(const Layout *l, int dim)
{
  return ((1u << l->out_bits[dim]) - 1) << layout_dim_shift(l, dim);
}

u32
layout_numel(const Layout *l)
{
  return 1u << layout_out_bits(l);
}

Vecs
layout_in_vecs(const Layout *l, LayoutIn in)
{
  Vecs out = {0};
  for (u32 i = 0; i < l->in_bits[in]; i++) vecs_push(&out, l->col[in][i]);
  return out;
}

Basis
layout_solver(const Layout *l, LayoutIn first, LayoutIn last)
{
  Basis b = {0};
  u32 bit = 0;
  for (u32 in = first; in <= (u32)last; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) basis_add(&b, l->col[in][i], (u64)1 << bit++, NULL);
  return b;
}

Layout
layout_blank(Ctx *c, int rank, const u32 *shape)
{
  Layout l = {.rank = (u8)rank};
  if (rank < 1 || rank > MAX_RANK) ctx_panic(c, "a layout of rank %d", rank);
  for (int d = 0; d < rank; d++) {
    if (shape[d] > 1u << LAYOUT_MAX_BITS) ctx_panic(c, "a layout of extent %u", shape[d]);
    l.out_bits[d] = (u8)log2_u32(next_pow2(shape[d]));
  }
  if (layout_out_bits(&l) > LAYOUT_MAX_BITS) ctx_panic(c, "a layout of over 2^%d elements", LAYOUT_MAX_BITS);
  return l;
}

void
layout_push(Layout *l, LayoutIn in, u32 col)
{
  if (l->in_bits[in] < LAYOUT_MAX_BITS) l->col[in][l->in_bits[in]++] = col;
}

void
layout_drop_register_copies(Layout *l)
{
  Basis seen = {0};
  u32 n = 0;
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++)
    if (basis_add(&seen, l->col[IN_REG][i], 0, NULL)) l->col[IN_REG][n++] = l->col[IN_REG][i];
  l->in_bits[IN_REG] = (u8)n;
}

/* ---- interning: an open hash table in the permanent arena ---- */

struct LayoutTable {
  const Layout **slot;
  u32 cap, len;
};

static u32
hash_layout(const Layout *l)
{
  u64 h = 0xcbf29ce484222325u ^ l->rank;
  for (u32 d = 0; d < l->rank; d++) h = (h ^ l->out_bits[d]) * 0x100000001b3u;
  for (u32 in = 0; in < IN_COUNT; in++) {
    h = (h ^ l->in_bits[in]) * 0x100000001b3u;
    for (u32 i = 0; i < l->in_bits[in]; i++) h = (h ^ l->col[in][i]) * 0x100000001b3u;
  }
  return (u32)(h ^ h >> 32);
}

static bool
same_layout(const Layout *a, const Layout *b)
{
  return a->rank == b->rank && !memcmp(a->out_bits, b->out_bits, sizeof a->out_bits)
      && !memcmp(a->in_bits, b->in_bits, sizeof a->in_bits) && !memcmp(a->col, b->col, sizeof a->col);
}

static const Layout **
find_slot(const struct LayoutTable *t, const Layout *l)
{
  u32 i = hash_layout(l) & (t->cap - 1);
  while (t->slot[i] && !same_layout(t->slot[i], l)) i = (i + 1) & (t->cap - 1);
  return &t->slot[i];
}

static void
grow_table(Ctx *c, struct LayoutTable *t)
{
  struct LayoutTable old = *t;
  t->cap = old.cap ? old.cap * 2 : 64;
  t->slot = NEW_ARRAY(c->perm, const Layout *, t->cap);
  for (u32 i = 0; i < old.cap; i++)
    if (old.slot[i]) *find_slot(t, old.slot[i]) = old.slot[i];
}

/* The form in which maps are compared: unused columns are 0, a register layout has all five lane bits. */
static Layout
canonical(const Layout *l)
{
  Layout out;
  memset(&out, 0, sizeof out);
  out.rank = l->rank;
  for (u32 d = 0; d < l->rank; d++) out.out_bits[d] = l->out_bits[d];
  for (u32 in = 0; in < IN_COUNT; in++) {
    out.in_bits[in] = l->in_bits[in];
    for (u32 i = 0; i < l->in_bits[in]; i++) out.col[in][i] = l->col[in][i];
  }
  if (l->in_bits[IN_REG] || l->in_bits[IN_LANE] || l->in_bits[IN_WARP] || l->in_bits[IN_BLOCK])
    out.in_bits[IN_LANE] = 5;
  return out;
}

const Layout *
layout_intern(Ctx *c, const Layout *l)
{
  if (!c->layouts) c->layouts = NEW(c->perm, struct LayoutTable);
  struct LayoutTable *t = c->layouts;
  if (t->len * 2 >= t->cap) grow_table(c, t);
  Layout key = canonical(l);
  const Layout **slot = find_slot(t, &key);
  if (*slot) return *slot;
  Layout *made = NEW(c->perm, Layout);
  *made = key;
  made->id = t->len++;
  return *slot = made;
}

/* ---- shape operations: a linear map on the columns ---- */

/* Bit i of the operand's flat index becomes the flat index to[i] in a tile of rank and out_bits. */
static const Layout *
map_columns(Ctx *c, const Layout *l, u32 rank, const u8 *out_bits, const u32 *to)
{
  Layout out = *l;
  out.rank = (u8)rank;
  memset(out.out_bits, 0, sizeof out.out_bits);
  memcpy(out.out_bits, out_bits, rank);
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) out.col[in][i] = cols_apply(to, LAYOUT_MAX_BITS, l->col[in][i]);
  return layout_intern(c, &out);
}

static const Layout *
with_shape(Ctx *c, const Layout *l, u32 rank, const u8 *out_bits)
{
  u32 same[LAYOUT_MAX_BITS];
  for (u32 i = 0; i < LAYOUT_MAX_BITS; i++) same[i] = 1u << i;
  return map_columns(c, l, rank, out_bits, same);
}

const Layout *
layout_permute(Ctx *c, const Layout *l, const int *perm)
{
  u8 bits[MAX_RANK] = {0};
  u32 to[LAYOUT_MAX_BITS] = {0}, shift = 0;
  for (u32 d = l->rank; d-- > 0;) {
    u32 from = layout_dim_shift(l, perm[d]);
    bits[d] = l->out_bits[perm[d]];
    for (u32 i = 0; i < bits[d]; i++) to[from + i] = 1u << (shift + i);
    shift += bits[d];
  }
  return map_columns(c, l, l->rank, bits, to);
}

const Layout *
layout_expand_dims(Ctx *c, const Layout *l, int axis)
{
  u8 bits[MAX_RANK] = {0};
  if (l->rank >= MAX_RANK || axis < 0 || axis > l->rank)
    ctx_panic(c, "expand_dims of rank %d at %d", l->rank, axis);
  for (u32 d = 0; d < l->rank; d++) bits[d + (d >= (u32)axis)] = l->out_bits[d];
  return with_shape(c, l, l->rank + 1u, bits);
}

const Layout *
layout_squeeze(Ctx *c, const Layout *l, int axis)
{
  u8 bits[MAX_RANK] = {0};
  if (l->rank < 2 || axis < 0 || axis >= l->rank || l->out_bits[axis])
    ctx_panic(c, "squeeze of rank %d at %d", l->rank, axis);
  for (u32 d = 0, n = 0; d < l->rank; d++)
    if (d != (u32)axis) bits[n++] = l->out_bits[d];
  return with_shape(c, l, l->rank - 1u, bits);
}

const Layout *
layout_reshape(Ctx *c, const Layout *l, int rank, const u32 *shape)
{
  Layout to = layout_blank(c, rank, shape);
  if (layout_out_bits(&to) != layout_out_bits(l)) ctx_panic(c, "reshape to another number of elements");
  return with_shape(c, l, (u32)rank, to.out_bits);
}

/* Forget the coordinates along the dimensions in `gone`; keep_rank keeps them as dimensions of extent 1. */
static const Layout *
project(Ctx *c, const Layout *l, u32 gone, bool keep_rank)
{
  u8 bits[MAX_RANK] = {0};
  u32 to[LAYOUT_MAX_BITS] = {0}, shift = 0, rank = 0;
  for (u32 d = l->rank; d-- > 0;) {
    u32 from = layout_dim_shift(l, (int)d);
    for (u32 i = 0; i < l->out_bits[d] && !(gone >> d & 1); i++) to[from + i] = 1u << shift++;
  }
  for (u32 d = 0; d < l->rank; d++) {
    bool dropped = gone >> d & 1;
    if (!dropped || keep_rank) bits[rank++] = dropped ? 0 : l->out_bits[d];
  }
  Layout out = *map_columns(c, l, rank, bits, to);
  layout_drop_register_copies(&out);
  return layout_intern(c, &out);
}

const Layout *
layout_slice(Ctx *c, const Layout *l, int axis)
{
  if (axis < 0 || axis >= l->rank || l->rank < 2) ctx_panic(c, "slice of rank %d at %d", l->rank, axis);
  return project(c, l, 1u << axis, false);
}

const Layout *
layout_unbroadcast(Ctx *c, const Layout *l, const u32 *operand_shape)
{
  u32 gone = 0;
  for (u32 d = 0; d < l->rank; d++)
    if (operand_shape[d] == 1) gone |= 1u << d;
  return project(c, l, gone, true);
}

/* ---- questions ---- */

u32
layout_eval(const Layout *l, u32 reg, u32 lane, u32 warp, u32 block)
{
  return cols_apply(l->col[IN_REG], l->in_bits[IN_REG], reg)
       ^ cols_apply(l->col[IN_LANE], l->in_bits[IN_LANE], lane)
       ^ cols_apply(l->col[IN_WARP], l->in_bits[IN_WARP], warp)
       ^ cols_apply(l->col[IN_BLOCK], l->in_bits[IN_BLOCK], block);
}

u32
layout_offset_eval(const Layout *l, u32 offset)
{
  return cols_apply(l->col[IN_OFFSET], l->in_bits[IN_OFFSET], offset);
}

void
layout_coords(const Layout *l, u32 flat, u32 *coord)
{
  for (u32 d = l->rank; d-- > 0;) {
    coord[d] = flat & ((1u << l->out_bits[d]) - 1);
    flat >>= l->out_bits[d];
  }
}

u32
layout_flat(const Layout *l, const u32 *coord)
{
  u32 flat = 0;
  for (u32 d = 0; d < l->rank; d++) flat = flat << l->out_bits[d] | coord[d];
  return flat;
}

bool
layout_covers(const Layout *l)
{
  Basis b = layout_solver(l, IN_REG, IN_OFFSET);
  return basis_rank(&b) == layout_out_bits(l);
}

u32
layout_regs(const Layout *l)
{
  return 1u << l->in_bits[IN_REG];
}

u32
layout_free_bits(const Layout *l, LayoutIn in)
{
  u32 out = 0;
  Basis b = {0};
  for (u32 k = 0; k <= (u32)in; k++)
    for (u32 i = 0; i < l->in_bits[k]; i++)
      if (!basis_add(&b, l->col[k][i], 0, NULL) && k == (u32)in) out |= 1u << i;
  return out;
}

u32
layout_distinct_regs(const Layout *l)
{
  return layout_regs(l) >> popcount_u32(layout_free_bits(l, IN_REG));
}

u32
layout_first_copy(const Layout *l, u32 reg)
{
  u64 made = 0;
  Basis b = layout_solver(l, IN_REG, IN_REG);
  basis_reduce(&b, cols_apply(l->col[IN_REG], l->in_bits[IN_REG], reg), &made);
  return (u32)made;
}

u32
layout_contiguous_regs(const Layout *l, int dim)
{
  u32 n = 0, shift = layout_dim_shift(l, dim);
  while (n < l->in_bits[IN_REG] && n < l->out_bits[dim] && l->col[IN_REG][n] == 1u << (shift + n)) n++;
  u32 others = 0;
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = in == IN_REG ? n : 0; i < l->in_bits[in]; i++) others |= l->col[in][i];
  for (u32 i = 0; i < n; i++)
    if (others >> (shift + i) & 1) n = i;
  return 1u << n;
}

u32
layout_columns(const Layout *l, u32 *cols, u32 max)
{
  u32 n = 0;
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++, n++)
      if (n < max) cols[n] = l->col[in][i];
  return n;
}
