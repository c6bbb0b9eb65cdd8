/* layout_pieces.c - a conversion whose tile is larger than the memory there is: it goes in 2^p pieces, one after the other.
 *
 * A tile is a space of n bits; a piece of it is a coset of a subspace S of n - p bits, and its number is given by p linear
 * functions f that are 0 on S. Register r of thread t is in piece f(r) + f(t). Nothing else has to be known about S: any S
 * will do, and what it costs follows from what it holds.
 *
 *   A side whose threads all lie in S moves a fixed part of its registers in each piece.
 *   Where some thread bits do not, threads move other registers than their neighbours: registers fall into classes by f(r),
 *   and class c moves where f(t) = piece + c. If the thread bits are warps, that is a branch of the whole warp and costs
 *   nothing but code; if they are lanes, accesses are made by a part of a warp, and matrices cannot be.
 *   Where the registers of a side are not enough to tell the pieces apart, a thread moves more than its share in one piece:
 *   it holds much of the destination while it still holds much of the source.
 *
 * So S takes in, while there is room: the lanes of both sides; their vectors; warps; sums of a warp of one side and a warp of
 * the other; other registers. All but the lanes only as long as each side's registers still tell 2^p pieces apart. That can
 * always go on to the end: if the registers of each side span a proper subspace of what is left, there is a vector outside
 * both, one of x, y, x + y with x outside the first and y outside the second.
 *
 * Example: a tile of 256 x 256 f32 is transposed by 8 warps in two pieces. It comes with registers c0 c1 r2 .. r7, lanes c2 ..
 * c6, warps c7 r0 r1, and goes with rows and columns exchanged. Lanes and vectors are 14 of the 16 bits; neither c7 (a warp of
 * the source) nor r7 (of the destination) can be in S, for one is the only register left of the other side; c7 + r7 is. The first
 * piece is where c7 = r7: every thread stores and loads half of its registers, and which half depends on its warp.
 *
 * In memory a piece is a tile of n - p bits. Let U be a complement of S, spanned by one vector of each piece number 1, 2, 4, ..:
 * an element's place in its piece is what is left of it modulo U, linear again and the same map for all pieces. So a side of a
 * piece is an ordinary layout, the swizzle is found as for any conversion, and a class adds a constant to its elements' places. */
#include "layout_cost.h"
#include "layout_gf2.h"

/* ---- the subspace ---- */

typedef struct Space {
  Basis s;
  u32 limit;             /* its rank in the end */
  Vecs regs[2];          /* of source and destination */
  u32 apart[2];          /* how many bits of the piece number they must still tell apart */
} Space;

static u32
rank_beside(const Basis *s, const Vecs *vs)
{
  Basis all = *s;
  basis_add_all(&all, vs);
  return basis_rank(&all) - basis_rank(s);
}

/* S takes v in; keep: unless the registers of a side would then no longer tell the pieces apart. */
static void
take(Space *x, u32 v, bool keep)
{
  Basis more = x->s;
  if (basis_rank(&x->s) == x->limit || !basis_add(&more, v, 0, NULL)) return;
  for (u32 i = 0; i < 2 && keep; i++)
    if (rank_beside(&more, &x->regs[i]) < x->apart[i]) return;
  x->s = more;
}

/* Bits `from` to `to` of an input, of both sides in turn. */
static void
take_bits(Space *x, const Layout *const side[2], LayoutIn in, u32 from, u32 to, bool keep)
{
  for (u32 i = from; i < to; i++)
    for (u32 k = 0; k < 2; k++)
      if (i < side[k]->in_bits[in]) take(x, side[k]->col[in][i], keep);
}

static void
take_sums(Space *x, const Vecs *a, const Vecs *b)
{
  for (u32 i = 0; i < a->n; i++)
    for (u32 k = 0; k < b->n; k++) take(x, a->v[i] ^ b->v[k], true);
}

static Basis
choose_space(const Layout *src, const Layout *dst, u32 vector_bits, u32 bits)
{
  const Layout *const side[2] = {src, dst};
  Space x = {.limit = layout_out_bits(src) - bits};
  Vecs units = vecs_units(layout_out_bits(src)), warps[2] = {layout_in_vecs(src, IN_WARP), layout_in_vecs(dst, IN_WARP)};
  take_bits(&x, side, IN_LANE, 0, LAYOUT_MAX_BITS, false);
  for (u32 i = 0; i < 2; i++) {
    x.regs[i] = layout_in_vecs(side[i], IN_REG);
    x.apart[i] = min_u32(bits, rank_beside(&x.s, &x.regs[i]));
  }
  take_bits(&x, side, IN_REG, 0, vector_bits, true);
  take_bits(&x, side, IN_WARP, 0, LAYOUT_MAX_BITS, true);
  take_sums(&x, &warps[0], &warps[1]);
  take_bits(&x, side, IN_REG, vector_bits, LAYOUT_MAX_BITS, true);
  take_sums(&x, &units, &units);
  take_bits(&x, side, IN_WARP, 0, LAYOUT_MAX_BITS, false);
  for (u32 i = 0; i < units.n; i++) take(&x, units.v[i], false);
  return x.s;
}

/* ---- numbers and places ---- */

/* f and the places, by bit of a flat index: from a basis whose `made` is f, and U. */
static PieceMap
map_of(u32 n, const Basis *number, const Basis *u)
{
  PieceMap m = {{0}, {0}};
  for (u32 i = 0; i < n; i++) {
    u64 made = 0;
    basis_reduce(number, 1u << i, &made);
    m.number[i] = (u32)made;
    u32 left = basis_reduce(u, 1u << i, NULL);
    for (u32 k = 0, to = 0; k < n; k++)      /* without the bits that are 0 modulo U */
      if (!(u->pivots >> k & 1)) m.place[i] |= (left >> k & 1) << to++;
  }
  return m;
}

u32
layout_piece_number(const PieceMap *m, u32 flat)
{
  return cols_apply(m->number, LAYOUT_MAX_BITS, flat);
}

u32
layout_piece_place(const PieceMap *m, u32 flat)
{
  return cols_apply(m->place, LAYOUT_MAX_BITS, flat);
}

/* U from registers, where it can be: then the places of a side need no constants. */
static PieceMap
find_pieces(const Layout *src, const Layout *dst, const Basis *s)
{
  Basis number = *s, u = {0};
  Vecs from = vecs_units(layout_out_bits(src));
  for (u32 k = 0; k < 2; k++) {
    Vecs regs = layout_in_vecs(k ? src : dst, IN_REG);
    vecs_append(&from, &regs);
  }
  for (u32 i = from.n, n = 0; i-- > 0;)
    if (basis_add(&number, from.v[i], 1ull << n, NULL)) {
      basis_add(&u, from.v[i], 0, NULL);
      n++;
    }
  return map_of(layout_out_bits(src), &number, &u);
}

u32
layout_register_pieces(const Layout *l, u32 bits, PieceMap *out)
{
  Vecs all = layout_in_vecs(l, IN_LANE), units = vecs_units(layout_out_bits(l)), warps = layout_in_vecs(l, IN_WARP);
  u32 own[LAYOUT_MAX_BITS], n = 0;
  Basis number = {0}, u = {0};
  vecs_append(&all, &warps);
  basis_add_all(&number, &all);
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++)
    if (basis_add(&number, l->col[IN_REG][i], 0, NULL)) own[n++] = l->col[IN_REG][i];
  bits = min_u32(bits, n);
  number = (Basis){0};
  basis_add_all(&number, &all);
  for (u32 i = 0; i < n; i++) {
    bool apart = i + bits >= n;
    basis_add(&number, own[i], apart ? 1ull << (i + bits - n) : 0, NULL);
    if (apart) basis_add(&u, own[i], 0, NULL);
  }
  basis_add_all(&number, &units);
  *out = map_of(layout_out_bits(l), &number, &u);
  return bits;
}

/* ---- sides ---- */

/* Register bits that tell pieces apart, the highest that do, make classes; every other one is combined with them so that it does not. */
static void
split_registers(const Layout *l, const PieceMap *p, PieceSide *out, Vecs *within)
{
  Basis classes = {0};
  u32 copies = layout_free_bits(l, IN_REG);
  for (u32 i = l->in_bits[IN_REG]; i-- > 0;) {
    u64 made = 1ull << i;
    u32 number = layout_piece_number(p, l->col[IN_REG][i]);
    if (copies >> i & 1) continue;
    if (basis_add(&classes, number, made, NULL)) {
      out->class_reg[out->class_bits] = 1u << i;
      out->class_piece[out->class_bits] = number;
      out->class_place[out->class_bits++] = layout_piece_place(p, l->col[IN_REG][i]);
    } else {
      basis_reduce(&classes, number, &made);
      vecs_push(within, (u32)made);
    }
  }
}

static PieceSide
piece_side(Ctx *c, const Layout *l, const PieceMap *p, u32 bits)
{
  PieceSide out = {0};
  Vecs within = {0};
  Layout piece = {.rank = 1, .out_bits = {(u8)(layout_out_bits(l) - bits)}};
  split_registers(l, p, &out, &within);
  for (u32 i = within.n, n = 0; i-- > 0; n++) {
    out.reg[n] = within.v[i];
    layout_push(&piece, IN_REG, layout_piece_place(p, cols_apply(l->col[IN_REG], l->in_bits[IN_REG], within.v[i])));
  }
  for (u32 in = IN_LANE, n = 0; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      layout_push(&piece, (LayoutIn)in, layout_piece_place(p, l->col[in][i]));
      if (in != IN_BLOCK) out.thread_piece[n++] = layout_piece_number(p, l->col[in][i]);
    }
  out.l = layout_intern(c, &piece);
  return out;
}

static bool
lanes_agree(const PieceSide *s)
{
  u32 apart = 0;
  for (u32 i = 0; i < 5; i++) apart |= s->thread_piece[i];
  return !apart;
}

/* The whole as a piece. */
static PieceSide
whole_side(const Layout *l)
{
  PieceSide out = {.l = l};
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++) out.reg[i] = 1u << i;
  return out;
}

/* Classes begin with a register that is the first of a vector: their constants leave the order in a vector alone. False if there is
 * no such register, which can be where the vectors are matrices' rows. */
static bool
align_classes(Ctx *c, PieceSide *s, const Layout *smem, u32 vec)
{
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS];
  Basis by_offset = {0};
  if (!layout_to_offset(c, s->l, smem, cols)) return false;
  for (u32 i = 0; i < s->l->in_bits[IN_REG]; i++) basis_add(&by_offset, cols[IN_REG][i], 1ull << i, NULL);
  for (u32 i = 0; i < s->class_bits; i++) {
    u64 made = 0;
    if (basis_reduce(&by_offset, layout_shared_offset(smem, s->class_place[i]) & (vec - 1), &made)) return false;
    s->class_reg[i] ^= layout_piece_reg(s, (u32)made);
    s->class_place[i] ^= cols_apply(s->l->col[IN_REG], s->l->in_bits[IN_REG], made);
  }
  return true;
}

/* The memory of a piece; matrices only where both classes and lanes allow them. */
static void
plan_memory(Ctx *c, PiecesPlan *p, u32 elem_bits, bool can_ldmatrix, bool can_stmatrix)
{
  u32 cost = layout_shared_plan(c, p->src.l, p->dst.l, elem_bits, can_ldmatrix, can_stmatrix, &p->shared);
  bool stores = align_classes(c, &p->src, p->shared.smem, p->shared.store_vec);
  bool loads = align_classes(c, &p->dst, p->shared.smem, p->shared.load_vec);
  p->cost = (cost + COST_BARRIER) << p->bits;
  if (stores && loads) return;
  if ((!stores && !can_stmatrix) || (!loads && !can_ldmatrix)) ctx_panic(c, "no order of registers for the pieces of a conversion");
  plan_memory(c, p, elem_bits, can_ldmatrix && loads, can_stmatrix && stores);
}

u32
layout_pieces_most(const Layout *l)
{
  return min_u32(layout_out_bits(l), PIECES_MAX_BITS);
}

void
layout_pieces_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix, bool can_stmatrix, u32 bits,
                   PiecesPlan *out)
{
  enum { ACCESS_BYTES = 16 };
  *out = (PiecesPlan){.bits = bits, .src = whole_side(src), .dst = whole_side(dst)};
  if (bits > layout_pieces_most(src)) ctx_panic(c, "more pieces than a tile can have");
  if (bits) {
    u32 vector = log2_u32(ACCESS_BYTES / (elem_bits <= 8 ? 1 : elem_bits / 8));
    Basis s = choose_space(src, dst, vector, bits);
    PieceMap p = find_pieces(src, dst, &s);
    out->src = piece_side(c, src, &p, bits);
    out->dst = piece_side(c, dst, &p, bits);
  }
  plan_memory(c, out, elem_bits, can_ldmatrix && lanes_agree(&out->dst), can_stmatrix && lanes_agree(&out->src));
}

u32
layout_piece_of_class(const PieceSide *s, u32 class, u32 *reg, u32 *place)
{
  *reg = cols_apply(s->class_reg, s->class_bits, class);
  *place = cols_apply(s->class_place, s->class_bits, class);
  return cols_apply(s->class_piece, s->class_bits, class);
}

u32
layout_piece_reg(const PieceSide *s, u32 reg)
{
  return cols_apply(s->reg, LAYOUT_MAX_BITS, reg);
}

bool
layout_piece_threads(const PieceSide *s, u32 number)
{
  Basis b = {0};
  for (u32 i = 0; i < COUNT(s->thread_piece); i++) basis_add(&b, s->thread_piece[i], 0, NULL);
  return basis_has(&b, number);
}
