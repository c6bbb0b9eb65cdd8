/* layout_shared.c - where a tile lies in shared memory, and which accesses reach it.
 *
 * A conversion through shared memory has two sides: the source's registers are stored, the destination's are
 * loaded. The memory layout is ours to choose: n vectors b0 .. b(n-1), the elements at offsets 1, 2, 4 ..
 * (arXiv 2505.23819 has the idea for equal vector widths). What each side wants of them, with V = span(b0 ..
 * b(v-1)) its vector:
 *
 *   width      V lies in the span of its registers, and its thread bits (lanes, warps) have no part in
 *              b0 .. b(v-1): then the same registers are the same vector in every thread, in order, aligned.
 *   conflicts  Memory has 32 banks of 4 bytes, 128 bytes in a row. Accesses of up to 4 bytes are served for
 *              32 lanes at once, of 8 for 16, of 16 for 8: these lanes are the phase, P the span of their
 *              columns. Two lanes of a phase conflict when they ask for different words of one bank, that is
 *              when their difference lies in H, the span of the offset bits above 128 bytes. So: P meets H
 *              (modulo the bits inside a word) only in 0.
 *
 * ldmatrix is such a side too: its vector is the 16-byte row, in a given order, all other columns are thread
 * bits, and its phase are the three columns that count the eight rows of a matrix.
 *
 * Let `big` be the side with the wider vector, `small` the other. The construction, for given widths:
 *   1. b0 .. from the registers both sides have in common (small's vector), then from big's registers alone.
 *   2. The coordinate functions f_j, "the part of b_j in an element", for big's vector: 1 on b_j, 0 on big's
 *      thread bits, and for the part they share 0 on small's thread bits. Where f_j is free it is chosen to
 *      tell small's phase lanes apart, for a lane with a part in b_j lies in another bank. (That is what a
 *      register of big that is a lane of small can do.)
 *   3. Bits up to a whole word, if elements are narrower and there is no vector: lanes both sides have in common.
 *   4. In the quotient by these, H is a common complement of what is left of both phases. Two subspaces of
 *      equal dimension always have one: with N their meet, E and F extensions of N to each, C an extension
 *      of both to everything, it is spanned by C and the sums e_i + f_i - the swizzle.
 *   5. What is left of big's phase counts the banks.
 * Step 4 finds no conflicts whenever the dimensions allow; they do if both vectors are equal, else it
 * depends on step 2. All pairs of widths (at most 5 x 5, plus ldmatrix and stmatrix) are built, checked and
 * counted, and the cheapest is taken: COST_WAVEFRONT per wavefront, COST_ACCESS per instruction, so
 * wavefronts decide and width breaks ties. Registers are 32 bits: where the elements that share one are not the same in the
 * layout and in the access, putting them together costs COST_MOVE for every register an element comes from but one.
 *
 * Example, equal widths: a 32 x 32 f32 tile in one warp comes in rows (registers c0 c1 .., lanes c2 c3 c4 r0
 * r1) and goes out with a row per lane (registers c0 .. c4, lanes r0 .. r4). b0 b1 = c0 c1 is a 16-byte
 * vector of both. The phases are c2 c3 c4 and r0 r1 r2; they have nothing in common, so H = c2+r0, c3+r1, c4+r2,
 * r3, r4: the well-known swizzle,
 *     shared<32x32; off (0,1) (0,2) (0,4) (0,8) (0,16) (1,4) (2,8) (4,16) (8,0) (16,0)>
 * Example, unequal: a 64 x 64 f32 tile in four warps comes in rows (registers c0 c1, r3 r4 r5, lanes c2 ..
 * c5 r0, warps r1 r2) and goes out in columns (registers r0 r1, c3 c4 c5, lanes r2 .. r5 c0, warps c1 c2).
 * No vector is common; the stores take 16 bytes, b0 b1 = c0 c1, and the loads' 32 lanes must reach all
 * banks, also those that differ in b0 and b1 only. c0 does it for b0; r2 cannot for b1, it is a warp of the
 * stores; r3 is one of their registers and can: a column is (8,2).
 */
#include "layout_cost.h"
#include "layout_gf2.h"

enum { ROW_BYTES = 128, WORD_BYTES = 4, BANKS = 32, MAX_ACCESS = 16 };

static u32
elem_bytes(u32 elem_bits)
{
  return elem_bits <= 8 ? 1 : elem_bits / 8;
}

/* ---- offsets ---- */

u32
layout_shared_offset(const Layout *smem, u32 flat)
{
  u64 made = 0;
  Basis b = layout_solver(smem, IN_OFFSET, IN_OFFSET);
  basis_reduce(&b, flat, &made);
  return (u32)made;
}

static bool
offset_cols(const Layout *l, const Layout *smem, u32 cols[IN_COUNT][LAYOUT_MAX_BITS])
{
  Basis b = layout_solver(smem, IN_OFFSET, IN_OFFSET);
  memset(cols, 0, sizeof(u32) * IN_COUNT * LAYOUT_MAX_BITS);
  for (u32 in = IN_REG; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u64 made = 0;
      if (basis_reduce(&b, l->col[in][i], &made)) return false;
      cols[in][i] = (u32)made;
    }
  return true;
}

bool
layout_to_offset(Ctx *c, const Layout *l, const Layout *smem, u32 cols[IN_COUNT][LAYOUT_MAX_BITS])
{
  return offset_cols(l, smem, cols);
}

/* ---- plain accesses ---- */

bool
layout_access_fits(const Layout *l, const Layout *smem, u32 vec)
{
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS];
  Basis regs = layout_solver(l, IN_REG, IN_REG);
  if (!is_pow2(vec) || log2_u32(vec) > smem->in_bits[IN_OFFSET] || !offset_cols(l, smem, cols)) return false;
  for (u32 i = 0; 1u << i < vec; i++)
    if (!basis_has(&regs, smem->col[IN_OFFSET][i])) return false;
  for (u32 in = IN_LANE; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++)
      if (cols[in][i] & (vec - 1)) return false;
  return true;
}

u32
layout_access_vec(const Layout *l, const Layout *smem, u32 elem_bits)
{
  u32 vec = MAX_ACCESS / elem_bytes(elem_bits);
  while (vec > 1 && !layout_access_fits(l, smem, vec)) vec /= 2;
  return vec;
}

/* Access i starts from the sum of the register bits that are independent of the vector, selected by i;
 * position p of the vector differs from it by the registers that make up p less the start's own position. */
u32
layout_access_groups(const Layout *l, const Layout *smem, u32 vec, u32 *regs)
{
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS], within[LAYOUT_MAX_BITS] = {0}, start[LAYOUT_MAX_BITS], starts = 0;
  if (!layout_access_fits(l, smem, vec) || !offset_cols(l, smem, cols)) return 0;
  Basis by_offset = {0}, seen = {0};
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++) basis_add(&by_offset, cols[IN_REG][i], (u64)1 << i, NULL);
  for (u32 i = 0; 1u << i < vec; i++) {
    u64 made = 0;
    basis_reduce(&by_offset, 1u << i, &made);
    within[i] = (u32)made;
    basis_add(&seen, 1u << i, 0, NULL);
  }
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++)
    if (basis_add(&seen, cols[IN_REG][i], 0, NULL)) start[starts++] = 1u << i;
  for (u32 i = 0; i < 1u << starts; i++) {
    u32 first = cols_apply(start, starts, i);
    u32 at = cols_apply(cols[IN_REG], l->in_bits[IN_REG], first) & (vec - 1);
    for (u32 p = 0; p < vec; p++) *regs++ = first ^ cols_apply(within, LAYOUT_MAX_BITS, p ^ at);
  }
  return 1u << starts;
}

/* ---- counting ---- */

/* Wavefronts to serve n distinct-or-equal words: the most different words in one bank. */
static u32
count_wavefronts(const u32 *words, u32 n)
{
  u32 most = 0, in_bank[BANKS] = {0};
  for (u32 i = 0; i < n; i++) {
    bool seen = false;
    for (u32 j = 0; j < i && !seen; j++) seen = words[j] == words[i];
    if (!seen) most = max_u32(most, ++in_bank[words[i] % BANKS]);
  }
  return most;
}

static u32
access_phases(u32 bytes)
{
  return max_u32(1, bytes / WORD_BYTES);
}

static u32
padded(u32 offset, const SharedPad *pad)
{
  return pad->every ? offset + offset / pad->every * pad->pad : offset;
}

static u32
plain_conflicts(const Layout *l, const Layout *smem, const SharedPad *pad, u32 vec, u32 elem_bits)
{
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS], total = 0, bytes = elem_bytes(elem_bits);
  u32 phases = access_phases(vec * bytes);
  u32 lanes = 32 / phases, words = max_u32(1, vec * bytes / WORD_BYTES);
  if (!offset_cols(l, smem, cols)) return 0;
  for (u32 phase = 0; phase < phases; phase++) {
    u32 list[BANKS], n = 0;
    for (u32 i = 0; i < lanes; i++) {
      u32 at = cols_apply(cols[IN_LANE], l->in_bits[IN_LANE], phase * lanes + i) & ~(vec - 1);
      for (u32 w = 0; w < words && n < BANKS; w++) list[n++] = padded(at, pad) * bytes / WORD_BYTES + w;
    }
    total += count_wavefronts(list, n);
  }
  return total - phases;
}

u32
layout_bank_conflicts(const Layout *l, const Layout *smem, u32 vec, u32 elem_bits)
{
  return plain_conflicts(l, smem, &(SharedPad){0, 0}, vec, elem_bits);
}

/* ---- ldmatrix and stmatrix ---- */

/* Columns that make a 16-byte row, in offset order; those that count its 8 rows; the register bits in a word. */
typedef struct Fragment {
  Vecs row, rows;
  u32 word_bits;
} Fragment;

static bool
find_fragment(const Layout *l, u32 elem_bits, bool trans, Fragment *f)
{
  memset(f, 0, sizeof *f);
  if ((elem_bits != 8 && elem_bits != 16 && elem_bits != 32) || (trans && elem_bits != 16)) return false;
  if (l->in_bits[IN_LANE] != 5) return false;
  f->word_bits = log2_u32(32 / elem_bits);
  if (l->in_bits[IN_REG] < f->word_bits) return false;
  Vecs *low = trans ? &f->rows : &f->row, *high = trans ? &f->row : &f->rows;
  for (u32 i = 0; i < f->word_bits; i++) vecs_push(low, l->col[IN_REG][i]);
  for (u32 i = 0; i < 5; i++) vecs_push(i < 2 ? low : high, l->col[IN_LANE][i]);
  Basis words = {0};
  for (u32 i = 0; i < f->word_bits; i++)
    if (!basis_add(&words, l->col[IN_REG][i], 0, NULL)) return false;
  return true;
}

static bool
is_row_bit(const Fragment *f, bool trans, LayoutIn in, u32 bit)
{
  if (in == IN_REG) return !trans && bit < f->word_bits;
  return in == IN_LANE && (trans ? bit >= 2 : bit < 2);
}

/* The row is offsets 0 .. 16 bytes - 1, in order, and nothing else moves inside it. */
static bool
rows_are_aligned(const Layout *l, const Fragment *f, bool trans, u32 cols[IN_COUNT][LAYOUT_MAX_BITS])
{
  u32 expect = 0;
  for (u32 in = IN_REG; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      bool row = is_row_bit(f, trans, (LayoutIn)in, i);
      if (row ? cols[in][i] != 1u << expect++ : (cols[in][i] & ((1u << f->row.n) - 1)) != 0) return false;
    }
  return true;
}

static u32
matrix_conflicts(const MatrixAccess *m, const SharedPad *pad, u32 bytes)
{
  u32 words[BANKS];
  for (u32 i = 0; i < BANKS; i++)
    words[i] = padded(cols_apply(m->addr_lane, 3, i / WORD_BYTES), pad) * bytes / WORD_BYTES + i % WORD_BYTES;
  return m->count * (count_wavefronts(words, BANKS) - 1);
}

/* The dimensions along which v moves, as a mask. */
static u32
dims_of(const Layout *l, u32 v)
{
  u32 coord[MAX_RANK], dims = 0;
  layout_coords(l, v, coord);
  for (u32 d = 0; d < l->rank; d++) dims |= (u32)(coord[d] != 0) << d;
  return dims;
}

/* The four matrices of one instruction: the first register bit outside the word, and the next that moves along another
 * dimension. Of an operand of mma that is what one step along K needs; two steps at once would be twice the registers. */
static void
order_matrices(const Layout *l, MatrixAccess *m, u32 first)
{
  if (m->reg_bits < first + 2) return;
  u32 along = dims_of(l, l->col[IN_REG][log2_u32(m->reg_bit[first])]), pick = first + 1;
  for (u32 i = m->reg_bits - 1; i > first; i--)
    if (dims_of(l, l->col[IN_REG][log2_u32(m->reg_bit[i])]) & ~along) pick = i;
  u32 bit = m->reg_bit[pick], off = m->reg_off[pick];
  for (u32 i = pick; i > first + 1; i--) {
    m->reg_bit[i] = m->reg_bit[i - 1];
    m->reg_off[i] = m->reg_off[i - 1];
  }
  m->reg_bit[first + 1] = bit;
  m->reg_off[first + 1] = off;
}

bool
layout_matrix_access(const Layout *l, const Layout *smem, u32 elem_bits, bool trans, MatrixAccess *m)
{
  Fragment f;
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS], copies = layout_free_bits(l, IN_REG);
  memset(m, 0, sizeof *m);
  if (!find_fragment(l, elem_bits, trans, &f) || !offset_cols(l, smem, cols)) return false;
  if (!rows_are_aligned(l, &f, trans, cols)) return false;
  for (u32 i = 0; i < l->in_bits[IN_REG]; i++)
    if (!(copies >> i & 1)) {
      m->reg_bit[m->reg_bits] = 1u << i;
      m->reg_off[m->reg_bits++] = cols[IN_REG][i];
    }
  order_matrices(l, m, f.word_bits);
  u32 matrix_bits = min_u32(2, m->reg_bits - f.word_bits), n = 0;
  m->trans = trans;
  m->elems = 1u << f.word_bits;
  m->count = 1u << matrix_bits;
  m->groups = 1u << (m->reg_bits - f.word_bits - matrix_bits);
  if (trans) m->addr_lane[n++] = cols[IN_REG][0];
  for (u32 i = 0; i < 5; i++)
    if (!is_row_bit(&f, trans, IN_LANE, i)) m->addr_lane[n++] = cols[IN_LANE][i];
  for (u32 i = 0; i < matrix_bits; i++) m->addr_lane[n++] = m->reg_off[f.word_bits + i];
  memcpy(m->addr_warp, cols[IN_WARP], sizeof m->addr_warp);
  for (u32 i = 0; i < 5; i++) m->addr_bits |= m->addr_lane[i];
  for (u32 i = 0; i < LAYOUT_MAX_BITS; i++) m->addr_bits |= m->addr_warp[i];
  m->conflicts = matrix_conflicts(m, &(SharedPad){0, 0}, elem_bytes(elem_bits));
  return true;
}

u32
layout_matrix_group(const MatrixAccess *m, u32 g, u32 *regs)
{
  u32 per = m->count * m->elems;
  for (u32 i = 0; i < per; i++) regs[i] = cols_apply(m->reg_bit, m->reg_bits, (u64)g * per + i);
  return cols_apply(m->reg_off, m->reg_bits, (u64)g * per);
}

/* ---- one side of the memory ---- */

typedef struct Side {
  const Layout *l;
  bool matrix, trans;
  u32 vec;                  /* log2 of the elements kept together */
  Vecs row;                 /* matrix: the vector, in order */
  Vecs regs, threads, phase;
} Side;

static Side
plain_side(const Layout *l, u32 vec, u32 elem_bits)
{
  Side s = {.l = l, .vec = vec, .regs = layout_in_vecs(l, IN_REG)};
  u32 lanes = 5 - log2_u32(access_phases(elem_bytes(elem_bits) << vec));
  for (u32 in = IN_LANE; in <= IN_BLOCK; in++) {
    Vecs v = layout_in_vecs(l, (LayoutIn)in);
    vecs_append(&s.threads, &v);
  }
  for (u32 i = 0; i < lanes && i < l->in_bits[IN_LANE]; i++) vecs_push(&s.phase, l->col[IN_LANE][i]);
  return s;
}

static bool
matrix_side(const Layout *l, bool trans, u32 elem_bits, Side *s)
{
  Fragment f;
  if (!find_fragment(l, elem_bits, trans, &f)) return false;
  *s = (Side){.l = l, .matrix = true, .trans = trans, .vec = f.row.n,
              .row = f.row, .regs = f.row, .phase = f.rows};
  Basis used = {0};
  for (u32 i = 0; i < f.row.n; i++)
    if (!basis_add(&used, f.row.v[i], 0, NULL)) return false;
  for (u32 in = IN_REG; in <= IN_BLOCK; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++)
      if (!is_row_bit(&f, trans, (LayoutIn)in, i)) vecs_push(&s->threads, l->col[in][i]);
  return true;
}

/* All ways to access shared memory from l, the widest first. */
static u32
list_sides(const Layout *l, u32 elem_bits, bool can_matrix, Side *out)
{
  u32 n = 0, widest = log2_u32(MAX_ACCESS / elem_bytes(elem_bits));
  if (can_matrix && matrix_side(l, false, elem_bits, &out[n])) n++;
  if (can_matrix && matrix_side(l, true, elem_bits, &out[n])) n++;
  for (u32 v = min_u32(widest, l->in_bits[IN_REG]) + 1; v-- > 0;) out[n++] = plain_side(l, v, elem_bits);
  return n;
}

/* ---- the construction ---- */

typedef struct Swizzle {
  const Side *big, *small;
  u32 n;          /* bits of an offset */
  u32 word, row;  /* log2 elements in 4 and in 128 bytes */
  bool lanes_first;
  u32 told;       /* mask of the f_j that may tell small's lanes apart */
  Vecs low;       /* b0, b1, ..: the vector, then up to a word */
  Basis f;        /* evaluates the coordinate functions: made = mask of the j with f_j = 1 */
} Swizzle;

/* Registers of big in the order in which they are asked to be vectors. */
static Vecs
vector_candidates(const Swizzle *s, const Vecs *within)
{
  Vecs out = {0};
  Basis in = {0}, lanes = {0};
  basis_add_all(&in, within);
  basis_add_all(&lanes, &s->small->phase);
  for (u32 pass = s->lanes_first ? 0 : 1; pass < 2; pass++)
    for (u32 i = 0; i < s->big->regs.n; i++) {
      u32 v = s->big->regs.v[i];
      if (basis_has(&in, v) && (pass == 1 || basis_has(&lanes, v))) vecs_push(&out, v);
    }
  vecs_append(&out, within);
  return out;
}

/* Step 1. */
static bool
choose_vector(Swizzle *s)
{
  const Side *big = s->big, *small = s->small;
  if (big->matrix) {
    s->low = big->row;
    return !small->matrix || !memcmp(&big->row, &small->row, sizeof big->row);
  }
  Vecs common = vecs_intersect(&big->regs, &small->regs);
  Vecs first = vector_candidates(s, &common), rest = vector_candidates(s, &big->regs);
  Basis seen = {0};
  basis_add_all(&seen, &big->threads);
  Basis seen_both = seen;
  basis_add_all(&seen_both, &small->threads);
  vecs_extend(&s->low, &seen_both, &first, small->vec);
  if (s->low.n < small->vec) return false;
  basis_add_all(&seen, &s->low);
  vecs_extend(&s->low, &seen, &rest, big->vec);
  return s->low.n == big->vec;
}

static u32
coordinates(const Swizzle *s, u32 v)
{
  u64 made = 0;
  basis_reduce(&s->f, v, &made);
  return (u32)made;
}

static u32
lowest_bit(u32 mask)
{
  return mask & (~mask + 1);
}

/* Step 2. */
static bool
choose_coordinates(Swizzle *s)
{
  u32 wide = max_u32(s->small->vec, s->word);
  Vecs given = s->low, units = vecs_units(s->n);
  Basis covered = {0};
  s->told = wide < s->big->vec ? (1u << s->big->vec) - (1u << wide) : 0;
  for (u32 j = 0; j < s->low.n; j++)
    if (!basis_add(&s->f, s->low.v[j], (u64)1 << j, NULL)) return false;
  basis_add_all(&s->f, &s->big->threads);
  vecs_append(&given, &s->big->threads);
  Vecs fixed = vecs_intersect(&given, &s->small->phase);
  for (u32 i = 0; i < fixed.n; i++) basis_add(&covered, coordinates(s, fixed.v[i]) & s->told, 0, NULL);
  for (u32 i = 0; i < s->small->phase.n; i++) {
    u32 free = lowest_bit(s->told & ~covered.pivots);
    if (basis_add(&s->f, s->small->phase.v[i], free, NULL)) basis_add(&covered, free, 0, NULL);
  }
  basis_add_all(&s->f, &s->small->threads);
  basis_add_all(&s->f, &s->big->regs);
  basis_add_all(&s->f, &units);
  return true;
}

/* v without its part in the vector. */
static u32
outside_vector(const Swizzle *s, u32 v)
{
  return v ^ cols_apply(s->low.v, s->big->vec, coordinates(s, v));
}

/* Step 3. */
static void
fill_word(Swizzle *s)
{
  Vecs from = vecs_intersect(&s->big->phase, &s->small->phase), units = vecs_units(s->n);
  Basis seen = {0};
  vecs_append(&from, &s->small->phase);
  vecs_append(&from, &s->big->phase);
  for (u32 i = 0; i < from.n; i++) from.v[i] = outside_vector(s, from.v[i]);
  for (u32 i = 0; i < units.n; i++) units.v[i] = outside_vector(s, units.v[i]);
  basis_add_all(&seen, &s->low);
  vecs_extend(&s->low, &seen, &from, min_u32(s->word, s->n));
  vecs_extend(&s->low, &seen, &units, min_u32(s->word, s->n));
}

/* Combinations of small's phase lanes that the vector's coordinates do not tell apart. */
static Vecs
untold_lanes(const Swizzle *s)
{
  Vecs out = {0};
  Basis told = {0};
  for (u32 i = 0; i < s->small->phase.n; i++) {
    u64 rest = 0;
    u32 v = s->small->phase.v[i];
    if (!basis_add(&told, coordinates(s, v) & s->told, v, &rest)) vecs_push(&out, (u32)rest);
  }
  return out;
}

/* Representatives modulo q, independent, at most limit. */
static Vecs
modulo(const Basis *q, const Vecs *vs, u32 limit)
{
  Vecs out = {0};
  Basis seen = {0};
  for (u32 i = 0; i < vs->n && out.n < limit; i++) {
    u32 v = basis_reduce(q, vs->v[i], NULL);
    if (basis_add(&seen, v, 0, NULL)) vecs_push(&out, v);
  }
  return out;
}

static void
extend_span(Vecs *vs, const Vecs *from, u32 limit)
{
  Basis seen = {0};
  basis_add_all(&seen, vs);
  vecs_extend(vs, &seen, from, limit);
}

/* Step 4: a complement of both a and b, which have equal dimension, in the span of all. */
static Vecs
common_complement(const Vecs *a, const Vecs *b, const Vecs *all)
{
  Vecs out = {0}, meet = vecs_intersect(a, b), e = meet, f = meet, both = *a;
  extend_span(&e, a, a->n);
  extend_span(&f, b, b->n);
  for (u32 i = meet.n; i < a->n; i++) vecs_push(&out, e.v[i] ^ f.v[i]);
  extend_span(&both, b, 32);
  u32 n = both.n;
  extend_span(&both, all, 32);
  for (u32 i = n; i < both.n; i++) vecs_push(&out, both.v[i]);
  return out;
}

static const Layout *
build_swizzle(Ctx *c, Swizzle *s)
{
  if (!choose_vector(s) || !choose_coordinates(s)) return NULL;
  fill_word(s);
  Basis q = {0};
  basis_add_all(&q, &s->low);
  Vecs units = vecs_units(s->n), untold = untold_lanes(s);
  u32 banks = min_u32(s->row, s->n) - s->low.n;
  Vecs all = modulo(&q, &units, 32), a = modulo(&q, &s->big->phase, banks), b = modulo(&q, &untold, banks);
  extend_span(&a, &b, banks);
  extend_span(&a, &all, banks);
  extend_span(&b, &a, banks);
  Vecs high = common_complement(&a, &b, &all);
  Layout smem = {.rank = s->big->l->rank};
  memcpy(smem.out_bits, s->big->l->out_bits, sizeof smem.out_bits);
  for (u32 i = 0; i < s->low.n; i++) layout_push(&smem, IN_OFFSET, s->low.v[i]);
  for (u32 i = 0; i < a.n; i++) layout_push(&smem, IN_OFFSET, outside_vector(s, a.v[i]));
  for (u32 i = 0; i < high.n; i++) layout_push(&smem, IN_OFFSET, outside_vector(s, high.v[i]));
  return layout_covers(&smem) ? layout_intern(c, &smem) : NULL;
}

/* ---- choosing ---- */

/* Moves that make one 32-bit register of neighbours in l from what plain accesses to smem give, or the other way round. */
static u32
repack_moves(const Layout *l, const Layout *smem, u32 elem_bits)
{
  u32 bits = elem_bits < 32 ? log2_u32(WORD_BYTES / elem_bytes(elem_bits)) : 0, apart = 0, swapped = 0;
  Basis word = {0};
  if (l->in_bits[IN_REG] < bits || smem->in_bits[IN_OFFSET] < bits) return 0;
  for (u32 i = 0; i < bits; i++) basis_add(&word, smem->col[IN_OFFSET][i], 0, NULL);
  for (u32 i = 0; i < bits; i++) {
    swapped |= l->col[IN_REG][i] != smem->col[IN_OFFSET][i];
    apart += basis_add(&word, l->col[IN_REG][i], 0, NULL);
  }
  return apart ? (1u << apart) - 1 : swapped;
}

/* Cost of one side against smem, or of the best that could be with smem NULL; ~0u if it does not fit. */
static u32
side_cost(const Side *s, const Layout *smem, u32 elem_bits, u32 *conflicts)
{
  u32 held = s->l->in_bits[IN_REG] - popcount_u32(layout_free_bits(s->l, IN_REG)), wavefronts, accesses, moves = 0;
  MatrixAccess m;
  *conflicts = 0;
  if (s->matrix) {
    u32 words = 1u << (held - log2_u32(32 / elem_bits));
    wavefronts = min_u32(words, 4);
    accesses = words / wavefronts;
    if (smem && !layout_matrix_access(s->l, smem, elem_bits, s->trans, &m)) return ~0u;
    if (smem) *conflicts = m.conflicts;
  } else {
    wavefronts = access_phases(elem_bytes(elem_bits) << s->vec);
    if (held < s->vec) return ~0u;
    accesses = 1u << (held - s->vec);
    if (smem && !layout_access_fits(s->l, smem, 1u << s->vec)) return ~0u;
    if (smem) *conflicts = layout_bank_conflicts(s->l, smem, 1u << s->vec, elem_bits);
    if (smem) moves = repack_moves(s->l, smem, elem_bits) * max_u32(1, (elem_bytes(elem_bits) << held) / WORD_BYTES);
  }
  return accesses * (COST_WAVEFRONT * (wavefronts + *conflicts) + COST_ACCESS) + moves * COST_MOVE;
}

static void
try_pair(Ctx *c, const Side *store, const Side *load, u32 elem_bits, u32 *best, SharedPlan *out)
{
  u32 unused, least_store = side_cost(store, NULL, elem_bits, &unused);
  u32 least_load = side_cost(load, NULL, elem_bits, &unused);
  if (least_store == ~0u || least_load == ~0u) return;
  for (u32 variant = 0; variant < 2 && least_store + least_load < *best; variant++) {
    bool load_is_big = load->matrix || (!store->matrix && load->vec > store->vec);
    Swizzle s = {.big = load_is_big ? load : store, .small = load_is_big ? store : load};
    s.lanes_first = variant == 1;
    s.n = layout_out_bits(store->l);
    s.word = elem_bits < 32 ? log2_u32(WORD_BYTES / elem_bytes(elem_bits)) : 0;
    s.row = log2_u32(ROW_BYTES / elem_bytes(elem_bits));
    const Layout *smem = build_swizzle(c, &s);
    u32 store_conflicts, load_conflicts;
    u32 a = smem ? side_cost(store, smem, elem_bits, &store_conflicts) : ~0u;
    u32 b = smem ? side_cost(load, smem, elem_bits, &load_conflicts) : ~0u;
    if (a == ~0u || b == ~0u || a + b >= *best) continue;
    *best = a + b;
    *out = (SharedPlan){.smem = smem, .store_vec = 1u << store->vec, .load_vec = 1u << load->vec,
                        .store_conflicts = store_conflicts, .load_conflicts = load_conflicts,
                        .bytes = elem_bytes(elem_bits) << s.n,
                        .ldmatrix = load->matrix, .ldmatrix_trans = load->matrix && load->trans,
                        .stmatrix = store->matrix, .stmatrix_trans = store->matrix && store->trans};
  }
}

u32
layout_shared_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix,
                   bool can_stmatrix, SharedPlan *out)
{
  Side stores[8], loads[8];
  u32 best = ~0u, n = list_sides(src, elem_bits, can_stmatrix, stores);
  u32 m = list_sides(dst, elem_bits, can_ldmatrix, loads);
  for (u32 i = 0; i < n; i++)
    for (u32 j = 0; j < m; j++) try_pair(c, &stores[i], &loads[j], elem_bits, &best, out);
  if (best == ~0u) ctx_panic(c, "no shared layout between two layouts of one tile");
  return best + COST_BARRIER;
}

/* ---- one side, the memory given ---- */

/* log2 of the most elements that lie together wherever a multiple of as many starts. */
static u32
widest_whole(const SharedPad *pad, u32 elem_bits)
{
  u32 v = log2_u32(MAX_ACCESS / elem_bytes(elem_bits));
  while (pad->every && v && ((pad->every | pad->pad) & ((1u << v) - 1))) v--;
  return v;
}

static u32
moves_between(const Layout *l, const Layout *smem, u32 elem_bits)
{
  u32 held = l->in_bits[IN_REG] - popcount_u32(layout_free_bits(l, IN_REG));
  return repack_moves(l, smem, elem_bits) * max_u32(1, (elem_bytes(elem_bits) << held) / WORD_BYTES);
}

static void
consider(SharedAccess *best, SharedAccess x, u32 accesses, u32 wavefronts, u32 moves)
{
  x.cost = accesses * (COST_WAVEFRONT * (wavefronts + x.conflicts) + COST_ACCESS) + moves * COST_MOVE;
  if (!best->vec || x.cost < best->cost) *best = x;
}

SharedAccess
layout_shared_access(const Layout *l, const Layout *smem, SharedPad pad, u32 elem_bits, bool can_matrix)
{
  SharedAccess best = {0};
  u32 bytes = elem_bytes(elem_bits), widest = widest_whole(&pad, elem_bits);
  u32 held = l->in_bits[IN_REG] - popcount_u32(layout_free_bits(l, IN_REG));
  for (u32 v = min_u32(widest, held) + 1; v-- > 0;) {
    if (!layout_access_fits(l, smem, 1u << v)) continue;
    SharedAccess x = {.vec = 1u << v, .conflicts = plain_conflicts(l, smem, &pad, 1u << v, elem_bits)};
    consider(&best, x, 1u << (held - v), access_phases(bytes << v), moves_between(l, smem, elem_bits));
  }
  for (u32 trans = 0; trans < 2 && can_matrix && bytes << widest == MAX_ACCESS; trans++) {
    MatrixAccess m;
    if (!layout_matrix_access(l, smem, elem_bits, trans, &m)) continue;
    SharedAccess x = {.matrix = true, .trans = trans, .vec = 1u << widest, .conflicts = matrix_conflicts(&m, &pad, bytes)};
    consider(&best, x, m.groups, m.count, 0);
  }
  return best;
}

const Layout *
layout_widen(Ctx *c, const Layout *l, const Layout *smem)
{
  Layout wide = *l;
  memcpy(wide.out_bits, smem->out_bits, sizeof wide.out_bits);
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u32 coord[MAX_RANK];
      layout_coords(l, l->col[in][i], coord);
      wide.col[in][i] = layout_flat(smem, coord);
    }
  return layout_intern(c, &wide);
}
