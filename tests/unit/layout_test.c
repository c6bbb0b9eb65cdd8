/* layout_test.c - layouts against brute force: every element of every tile is looked at one by one. */
#include "../../layout/layout.h"
#include <stdio.h>
#include <stdlib.h>

static u32 failures, checks;

#define CHECK(x) check((x), #x, __LINE__)
static bool
check(bool ok, const char *what, int line)
{
  checks++;
  if (!ok && failures++ < 20) printf("layout_test.c:%d: %s\n", line, what);
  return ok;
}

/* ---- random numbers and layouts ---- */

static u32
rnd(u32 *seed, u32 n)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % n;
}

/* n independent random vectors of n bits. */
static void
random_basis(u32 *seed, u32 n, u32 *v)
{
  for (u32 i = 0; i < n; i++) v[i] = 1u << i;
  for (u32 k = 0; n && k < 4 * n; k++) {
    u32 i = rnd(seed, n), j = rnd(seed, n), t = v[i];
    if (i == j) continue;
    if (rnd(seed, 3) == 0) v[i] ^= v[j];
    else { v[i] = v[j]; v[j] = t; }
  }
}

/* Covers a tile of out_bits; some columns are 0 or sums of others. */
static const Layout *
random_layout(Ctx *c, u32 *seed, u32 rank, const u8 *out_bits, u32 warps)
{
  Layout l = {.rank = (u8)rank};
  u32 n = 0, v[24], used = 0;
  for (u32 d = 0; d < rank; d++) n += l.out_bits[d] = out_bits[d];
  random_basis(seed, n, v);
  for (u32 in = IN_LANE; in <= IN_WARP; in++) {
    l.in_bits[in] = (u8)(in == IN_LANE ? 5 : warps);
    for (u32 i = 0; i < l.in_bits[in]; i++) {
      u32 kind = rnd(seed, 8);
      if (kind == 0 || used == n) continue;
      if (kind == 1 && used) l.col[in][i] = v[rnd(seed, used)] ^ v[rnd(seed, used)];
      else l.col[in][i] = v[used++];
    }
  }
  while (used < n || rnd(seed, 4) == 0) {
    u32 col = used < n && rnd(seed, 6) ? v[used++] : n == 0 || rnd(seed, 2) ? 0 : v[rnd(seed, n)];
    if (l.in_bits[IN_REG] < 9 || used < n) l.col[IN_REG][l.in_bits[IN_REG]++] = col;
  }
  return layout_intern(c, &l);
}

/* ---- simulated moves: a register's value is the flat index of its element ---- */

enum { MAX_REGS = 1024, MAX_WARPS = 8, MAX_ELEMS = 1 << 17 };

typedef struct Sim {
  const Layout *src, *dst;
  u32 warps, bytes;
  u32 memory[MAX_ELEMS];
  u32 dst_reg[MAX_WARPS][32][MAX_REGS];
} Sim;

static u32
distinct_words(const u32 *at, u32 n)
{
  u32 most = 0;
  for (u32 bank = 0; bank < 32; bank++) {
    u32 seen[32], k = 0;
    for (u32 i = 0; i < n; i++) {
      bool old = at[i] % 32 != bank;
      for (u32 j = 0; j < k; j++) old |= seen[j] == at[i];
      if (!old) seen[k++] = at[i];
    }
    if (k > most) most = k;
  }
  return most;
}

/* Wavefronts of one access of `size` bytes per lane at byte addresses `at`. */
static u32
wavefronts(const u32 *at, u32 size)
{
  u32 phases = size > 4 ? size / 4 : 1, lanes = 32 / phases, total = 0;
  for (u32 p = 0; p < phases; p++) {
    u32 words[32], n = 0;
    for (u32 i = 0; i < lanes; i++)
      for (u32 w = 0; w < (size + 3) / 4; w++) words[n++] = at[p * lanes + i] / 4 + w;
    total += distinct_words(words, n);
  }
  return total - phases;
}

static void
plain_access(Sim *s, const Layout *l, const SharedPlan *p, u32 vec, u32 conflicts, bool store)
{
  static u32 regs[MAX_REGS];
  u32 n = layout_access_groups(l, p->smem, vec, regs);
  CHECK(n > 0);
  for (u32 w = 0; w < s->warps; w++)
    for (u32 i = 0; i < n; i++) {
      u32 at[32];
      for (u32 lane = 0; lane < 32; lane++) {
        at[lane] = layout_shared_offset(p->smem, layout_eval(l, regs[i * vec], lane, w, 0));
        CHECK(at[lane] % vec == 0);
        for (u32 e = 0; e < vec; e++)
          if (store) s->memory[at[lane] + e] = layout_eval(l, regs[i * vec + e], lane, w, 0);
          else s->dst_reg[w][lane][regs[i * vec + e]] = s->memory[at[lane] + e];
        at[lane] *= s->bytes;
      }
      CHECK(wavefronts(at, vec * s->bytes) == conflicts);
    }
}

static void
matrix_move(Sim *s, const Layout *l, const MatrixAccess *m, const u32 *rows, const u32 *regs, u32 w, bool store)
{
  for (u32 x = 0; x < m->count; x++)
    for (u32 t = 0; t < 32; t++)
      for (u32 e = 0; e < m->elems; e++) {
        u32 row = m->trans ? t % 4 * 2 + e : t / 4, col = m->trans ? t / 4 : t % 4 * m->elems + e;
        u32 reg = regs[x * m->elems + e], at = rows[x * 8 + row] + col;
        if (store) s->memory[at] = layout_eval(l, reg, t, w, 0);
        else s->dst_reg[w][t][reg] = s->memory[at];
      }
}

static void
matrix_access(Sim *s, const Layout *l, const SharedPlan *p, u32 bits, bool trans, u32 conflicts, bool store)
{
  MatrixAccess m;
  if (!CHECK(layout_matrix_access(l, p->smem, bits, trans, &m))) return;
  CHECK(m.conflicts == conflicts);
  for (u32 w = 0; w < s->warps; w++)
    for (u32 g = 0; g < m.groups; g++) {
      u32 regs[16], rows[32], first = layout_matrix_group(&m, g, regs), extra = 0;
      for (u32 lane = 0; lane < 8 * m.count; lane++) {
        rows[lane] = first;
        for (u32 i = 0; i < 5; i++) rows[lane] ^= lane >> i & 1 ? m.addr_lane[i] : 0;
        for (u32 i = 0; i < 5; i++) rows[lane] ^= w >> i & 1 ? m.addr_warp[i] : 0;
        CHECK(rows[lane] * s->bytes % 16 == 0);
      }
      for (u32 x = 0; x < m.count; x++) {
        u32 words[32];
        for (u32 i = 0; i < 32; i++) words[i] = rows[x * 8 + i / 4] * s->bytes / 4 + i % 4;
        extra += distinct_words(words, 32) - 1;
      }
      CHECK(extra == conflicts);
      matrix_move(s, l, &m, rows, regs, w, store);
    }
}

static void
move_shared(Sim *s, const SharedPlan *p, u32 elem_bits)
{
  u32 n = p->smem->in_bits[IN_OFFSET];
  CHECK(p->bytes == s->bytes << n);
  for (u32 i = 0; i < 1u << n; i++) s->memory[i] = ~0u;
  if (p->stmatrix) matrix_access(s, s->src, p, elem_bits, p->stmatrix_trans, p->store_conflicts, true);
  else plain_access(s, s->src, p, p->store_vec, p->store_conflicts, true);
  for (u32 i = 0; i < 1u << n; i++) CHECK(s->memory[i] == layout_offset_eval(p->smem, i));
  if (p->ldmatrix) matrix_access(s, s->dst, p, elem_bits, p->ldmatrix_trans, p->load_conflicts, false);
  else plain_access(s, s->dst, p, p->load_vec, p->load_conflicts, false);
}

static void
run_stages(u32 (*x)[MAX_REGS], const ShuffleStage *stage, u32 n, u32 regs, u32 skip)
{
  for (u32 i = 0; i < n; i++)
    for (u32 lane = 0; lane < 32; lane++) {
      u32 old[MAX_REGS], odd = 0;
      memcpy(old, x[lane], sizeof old);
      for (u32 bits = lane & stage[i].lane_mask; bits; bits &= bits - 1) odd ^= 1;
      CHECK((stage[i].reg_xor & skip) == 0 && stage[i].reg_xor < regs);
      for (u32 r = 0; r < regs && odd; r++) x[lane][r] = old[r ^ stage[i].reg_xor];
    }
}

static void
move_shuffle(Sim *s, const ShufflePlan *p, u32 w)
{
  static u32 x[32][MAX_REGS], y[32][MAX_REGS];
  memset(y, 0xff, sizeof y);
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 r = 0; r < layout_regs(s->src); r++) x[lane][r] = layout_eval(s->src, r, lane, w, 0);
  run_stages(x, p->send, p->sends, layout_regs(s->src), 0);
  for (u32 k = 0; k < p->rounds; k++) {
    u32 send, recv, lane_xor;
    layout_shuffle_round(p, k, &send, &recv, &lane_xor);
    for (u32 lane = 0; lane < 32; lane++) {
      u32 from = lane_xor;
      for (u32 i = 0; i < 5; i++) from ^= lane >> i & 1 ? p->lane_col[i] : 0;
      CHECK(from < 32 && (!p->local || from == lane));
      y[lane][recv] = x[from][send];
    }
  }
  run_stages(y, p->receive, p->receives, layout_regs(s->dst), layout_free_bits(s->dst, IN_REG));
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 r = 0; r < layout_regs(s->dst); r++)
      s->dst_reg[w][lane][r] = y[lane][layout_first_copy(s->dst, r)];
}

static void
move_registers(Sim *s, const u32 *map, u32 w)
{
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 r = 0; r < layout_regs(s->dst); r++)
      s->dst_reg[w][lane][r] = layout_eval(s->src, map[r], lane, w, 0);
}

static void
check_moved(const Sim *s)
{
  for (u32 w = 0; w < s->warps; w++)
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 r = 0; r < layout_regs(s->dst); r++) {
        u32 first = layout_first_copy(s->dst, r);
        if (!CHECK(s->dst_reg[w][lane][first] == layout_eval(s->dst, r, lane, w, 0))) return;
      }
}

static Sim *
sim_new(const Layout *src, const Layout *dst, u32 elem_bits)
{
  static Sim s;
  memset(s.dst_reg, 0xff, sizeof s.dst_reg);
  s.src = src, s.dst = dst;
  u32 a = src->in_bits[IN_WARP], b = dst->in_bits[IN_WARP];
  s.warps = 1u << (a > b ? a : b);
  s.bytes = elem_bits <= 8 ? 1 : elem_bits / 8;
  return &s;
}

static void
simulate(const Layout *src, const Layout *dst, u32 elem_bits, const ConvertPlan *p)
{
  static u32 map[MAX_REGS];
  Sim *s = sim_new(src, dst, elem_bits);
  if (p->kind == CONVERT_SHARED) move_shared(s, &p->shared, elem_bits);
  if (p->kind <= CONVERT_REGS) CHECK(layout_reg_map(src, dst, map));
  for (u32 w = 0; w < s->warps; w++) {
    if (p->kind <= CONVERT_REGS) move_registers(s, map, w);
    if (p->kind == CONVERT_SHUFFLE) move_shuffle(s, &p->shuffle, w);
  }
  check_moved(s);
}

static ConvertPlan
convert(Ctx *c, const char *what, const Layout *src, const Layout *dst, u32 elem_bits, bool ldm, bool stm)
{
  ConvertPlan p;
  layout_convert_plan(c, src, dst, elem_bits, ldm, stm, &p);
  simulate(src, dst, elem_bits, &p);
  if (what && getenv("LAYOUT_TEST_VERBOSE")) {
    Buf b = {.arena = c->scratch};
    layout_convert_print(&b, &p);
    printf("%-34s %2u bits: %s\n", what, elem_bits, buf_str(&b));
  }
  return p;
}

/* Both other ways must work as well, whatever is cheapest. */
static void
convert_every_way(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool ldm, bool stm)
{
  ConvertPlan p = convert(c, NULL, src, dst, elem_bits, ldm, stm);
  p.kind = CONVERT_SHARED;
  layout_shared_plan(c, src, dst, elem_bits, ldm, stm, &p.shared);
  simulate(src, dst, elem_bits, &p);
  p.kind = CONVERT_SHUFFLE;
  bool can = layout_shuffle_plan(src, dst, &p.shuffle), held = true;
  if (can) simulate(src, dst, elem_bits, &p);
  for (u32 r = 0; r < layout_regs(dst); r++)
    for (u32 lane = 0; lane < 32; lane++) {
      u32 reg, from;
      bool one = layout_warp_source(src, dst, r, lane, &reg, &from);
      held &= one;
      if (one) CHECK(layout_eval(src, reg, from, 1, 0) == layout_eval(dst, r, lane, 1, 0));
    }
  CHECK(held == can);
}

static void
test_random_conversions(Ctx *c)
{
  u32 seed = 12345, kinds[4] = {0};
  static const u32 widths[] = {1, 8, 16, 32, 64};
  for (u32 i = 0; i < 600; i++) {
    u8 bits[3] = {(u8)rnd(&seed, 4), (u8)rnd(&seed, 5), (u8)rnd(&seed, 4)};
    u32 warps = rnd(&seed, 3), rank = 1 + rnd(&seed, 3);
    const Layout *a = random_layout(c, &seed, rank, bits, warps);
    const Layout *b = random_layout(c, &seed, rank, bits, warps);
    if (i % 2) {   /* same warps: shuffles become possible */
      Layout l = *b;
      memcpy(l.col[IN_WARP], a->col[IN_WARP], sizeof l.col[IN_WARP]);
      for (u32 k = 0; k < 24 && !layout_covers(&l); k++) l.col[IN_REG][l.in_bits[IN_REG]++] = 1u << k;
      b = layout_intern(c, &l);
    }
    if (b->in_bits[IN_REG] > 10 || a->in_bits[IN_REG] > 10) continue;
    u32 width = widths[rnd(&seed, COUNT(widths))];
    convert_every_way(c, a, b, width, i & 2, i & 4);
    kinds[convert(c, NULL, a, b, width, true, false).kind]++;
  }
  CHECK(kinds[CONVERT_SHUFFLE] > 10 && kinds[CONVERT_SHARED] > 10);
}

/* ---- conversions in pieces ---- */

/* Registers of class k, in the order of the side's layout. */
static void
piece_registers(const PieceSide *s, u32 first, u32 *regs, u32 n)
{
  for (u32 i = 0; i < n; i++) regs[i] = layout_piece_reg(s, regs[i]) ^ first;
}

static bool
in_piece(const PieceSide *s, u32 piece, u32 lane, u32 w)
{
  for (u32 i = 0; i < 5u + s->l->in_bits[IN_WARP]; i++)
    piece ^= (i < 5 ? lane >> i : w >> (i - 5)) & 1 ? s->thread_piece[i] : 0;
  return piece == 0;
}

/* A class of one side in one piece, by plain accesses, of the lanes whose piece it is. A store writes each place of the memory once,
 * or again with the same. */
static void
piece_plain(Sim *s, const PieceSide *side, const PiecesPlan *p, const Layout *whole, u32 first, u32 off, u32 piece, bool store)
{
  static u32 regs[MAX_REGS];
  u32 vec = store ? p->shared.store_vec : p->shared.load_vec, n = layout_access_groups(side->l, p->shared.smem, vec, regs), at[MAX_REGS];
  CHECK(n > 0 && (!p->bits || n * vec == layout_regs(side->l)) && off % vec == 0);
  for (u32 i = 0; i < n; i++) at[i] = regs[i * vec];
  piece_registers(side, first, regs, n * vec);
  for (u32 w = 0; w < s->warps; w++)
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 i = 0; i < n && in_piece(side, piece, lane, w); i++) {
        u32 to = layout_shared_offset(p->shared.smem, layout_eval(side->l, at[i], lane, w, 0)) ^ off;
        CHECK(to % vec == 0 && (to + vec) * s->bytes <= p->shared.bytes);
        for (u32 e = 0; e < vec; e++)
          if (!store) {
            CHECK(s->memory[to + e] != ~0u);
            s->dst_reg[w][lane][regs[i * vec + e]] = s->memory[to + e];
          } else {
            u32 flat = layout_eval(whole, regs[i * vec + e], lane, w, 0);
            CHECK(s->memory[to + e] == ~0u || s->memory[to + e] == flat);
            s->memory[to + e] = flat;
          }
      }
}

static void
piece_matrix(Sim *s, const PieceSide *side, const PiecesPlan *p, const Layout *whole, u32 first, u32 off, u32 piece, bool trans, bool store)
{
  MatrixAccess m;
  if (!CHECK(layout_matrix_access(side->l, p->shared.smem, s->bytes * 8, trans, &m))) return;
  for (u32 w = 0; w < s->warps; w++)
    for (u32 g = 0; g < m.groups; g++) {
      u32 regs[16], rows[32], start = layout_matrix_group(&m, g, regs) ^ off;
      CHECK(in_piece(side, piece, 0, w) == in_piece(side, piece, 31, w));
      if (!in_piece(side, piece, 0, w)) continue;
      piece_registers(side, first, regs, m.count * m.elems);
      for (u32 lane = 0; lane < 8 * m.count; lane++) {
        rows[lane] = start;
        for (u32 i = 0; i < 5; i++) rows[lane] ^= lane >> i & 1 ? m.addr_lane[i] : 0;
        for (u32 i = 0; i < 5; i++) rows[lane] ^= w >> i & 1 ? m.addr_warp[i] : 0;
        CHECK(rows[lane] * s->bytes % 16 == 0);
      }
      matrix_move(s, whole, &m, rows, regs, w, store);
    }
}

static void
piece_side_moves(Sim *s, const PiecesPlan *p, u32 piece, bool store)
{
  const PieceSide *side = store ? &p->src : &p->dst;
  const Layout *whole = store ? s->src : s->dst;
  for (u32 k = 0; k < 1u << side->class_bits; k++) {
    u32 first, place, number = layout_piece_of_class(side, k, &first, &place) ^ piece;
    u32 off = layout_shared_offset(p->shared.smem, place);
    if (!layout_piece_threads(side, number)) continue;
    if (store ? p->shared.stmatrix : p->shared.ldmatrix)
      piece_matrix(s, side, p, whole, first, off, number, store ? p->shared.stmatrix_trans : p->shared.ldmatrix_trans, store);
    else
      piece_plain(s, side, p, whole, first, off, number, store);
  }
}

/* Every element goes through memory once, in its piece, and arrives; the memory is the tile's divided by the pieces. */
static PiecesPlan
convert_in_pieces(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool ldm, bool stm, u32 bits)
{
  PiecesPlan p;
  Sim *s = sim_new(src, dst, elem_bits);
  layout_pieces_plan(c, src, dst, elem_bits, ldm, stm, bits, &p);
  CHECK(p.shared.bytes == (s->bytes * layout_numel(src)) >> bits);
  for (u32 piece = 0; piece < 1u << bits; piece++) {
    u32 n = layout_numel(p.shared.smem), left = 0;
    for (u32 i = 0; i < n; i++) s->memory[i] = ~0u;
    piece_side_moves(s, &p, piece, true);
    for (u32 i = 0; i < n; i++) left += s->memory[i] == ~0u;
    CHECK(left == 0);
    piece_side_moves(s, &p, piece, false);
  }
  check_moved(s);
  return p;
}

static void
test_random_pieces(Ctx *c)
{
  u32 seed = 777, matrices = 0;
  static const u32 widths[] = {8, 16, 32, 64};
  for (u32 i = 0; i < 300; i++) {
    u8 bits[3] = {(u8)rnd(&seed, 4), (u8)rnd(&seed, 5), (u8)rnd(&seed, 4)};
    u32 warps = rnd(&seed, 4), rank = 1 + rnd(&seed, 3), width = widths[rnd(&seed, COUNT(widths))];
    const Layout *a = random_layout(c, &seed, rank, bits, warps), *b = random_layout(c, &seed, rank, bits, warps);
    if (b->in_bits[IN_REG] > 9 || a->in_bits[IN_REG] > 9) continue;
    for (u32 p = 0; p <= layout_pieces_most(a); p++) convert_in_pieces(c, a, b, width, i & 2, i & 4, p);
  }
  u32 shape[2] = {64, 64}, warps[2] = {2, 2}, one[2] = {1, 4}, threads[2] = {2, 16}, across[2] = {4, 1};
  int rows[2] = {1, 0};
  for (u32 width = 8; width <= 32; width *= 2)
    for (u32 p = 0; p <= 5; p++)
      for (u32 which = 0; which < 2; which++) {
        const Layout *operand = layout_mma_operand(c, (int)which, 2, shape, warps, width);
        const Layout *plain = layout_blocked(c, 2, shape, one, threads, across, rows), *mma = layout_mma(c, 2, shape, warps);
        PiecesPlan x = convert_in_pieces(c, plain, operand, width, true, true, p), y = convert_in_pieces(c, mma, plain, width, true, true, p);
        matrices += p && (x.shared.ldmatrix || y.shared.stmatrix);
      }
  CHECK(matrices > 10);
}

/* What the essay says of a transposition: each thread moves half of its registers, by whole warps, in vectors, without conflicts. */
static void
test_wide_transpose(Ctx *c)
{
  u32 shape[2] = {256, 256}, wide[2] = {1, 4}, tall[2] = {4, 1}, lanes[2] = {1, 32}, lanes_down[2] = {32, 1}, warps[2] = {4, 2}, warps_down[2] = {2, 4};
  int rows[2] = {1, 0}, columns[2] = {0, 1};
  const Layout *a = layout_blocked(c, 2, shape, wide, lanes, warps, rows), *b = layout_blocked(c, 2, shape, tall, lanes_down, warps_down, columns);
  for (u32 bits = 1; bits < 4; bits++) {
    PiecesPlan p = convert_in_pieces(c, a, b, 32, true, true, bits);
    CHECK(p.src.class_bits == bits && p.dst.class_bits == bits);
    CHECK(layout_regs(p.src.l) == 256u >> bits && layout_regs(p.dst.l) == 256u >> bits);
    for (u32 i = 0; i < 5; i++) CHECK(!p.src.thread_piece[i] && !p.dst.thread_piece[i]);
    if (bits == 1) CHECK(p.shared.store_vec == 4 && p.shared.load_vec == 4);
    CHECK(p.shared.store_conflicts == 0 && p.shared.load_conflicts == 0);
  }
}

/* ---- conversions that matter ---- */

typedef struct Want { u32 store_vec, load_vec; bool ldm, ldm_trans, stm; } Want;

static ConvertPlan
expect_no_conflicts(Ctx *c, const char *what, const Layout *a, const Layout *b, u32 bits, bool stm)
{
  ConvertPlan p = convert(c, what, a, b, bits, true, stm);
  CHECK(p.kind == CONVERT_SHARED && p.shared.store_conflicts == 0 && p.shared.load_conflicts == 0);
  return p;
}

static void
expect_shared(Ctx *c, const char *what, const Layout *a, const Layout *b, u32 bits, Want w)
{
  ConvertPlan p = expect_no_conflicts(c, what, a, b, bits, w.stm);
  CHECK(p.shared.store_vec >= w.store_vec && p.shared.load_vec >= w.load_vec);
  CHECK(p.shared.ldmatrix == w.ldm && p.shared.ldmatrix_trans == w.ldm_trans && p.shared.stmatrix == w.stm);
}

static void
test_transposes(Ctx *c)
{
  static const int rows[] = {1, 0}, cols[] = {0, 1};
  for (u32 warps = 4; warps <= 8; warps *= 2)
    for (u32 vec = 1; vec <= 4; vec *= 2)
      for (u32 bits = 8; bits <= 64; bits *= 2) {
        u32 shape[] = {64, 64};
        const Layout *a = layout_default(c, 2, shape, warps, vec, rows);
        const Layout *b = layout_default(c, 2, shape, warps, vec, cols);
        expect_no_conflicts(c, "transpose 64x64", a, b, bits, false);
        expect_no_conflicts(c, "transpose 64x64 back", b, a, bits, false);
      }
}

static void
test_dot_operands(Ctx *c)
{
  static const int row_major[] = {1, 0}, col_major[] = {0, 1};
  u32 a_shape[] = {128, 64}, b_shape[] = {64, 128}, c_shape[] = {128, 128}, warps[] = {2, 2};
  for (u32 bits = 8; bits <= 32; bits *= 2) {
    u32 vec = 128 / bits;
    bool trans = bits == 16;
    const Layout *a = layout_mma_operand(c, 0, 2, a_shape, warps, bits);
    const Layout *b = layout_mma_operand(c, 1, 2, b_shape, warps, bits);
    Want straight = {vec, vec, true, false, false};
    Want across = trans ? (Want){vec, vec, true, true, false} : (Want){1, 1, false, false, false};
    expect_shared(c, "128x64 rows -> A", layout_default(c, 2, a_shape, 4, vec, row_major), a, bits, straight);
    expect_shared(c, "128x64 columns -> A", layout_default(c, 2, a_shape, 4, vec, col_major), a, bits, across);
    expect_shared(c, "64x128 rows -> B", layout_default(c, 2, b_shape, 4, vec, row_major), b, bits, across);
    expect_shared(c, "64x128 columns -> B", layout_default(c, 2, b_shape, 4, vec, col_major), b, bits, straight);
  }
  const Layout *acc = layout_mma(c, 2, c_shape, warps), *wide = layout_default(c, 2, c_shape, 4, 8, row_major);
  const Layout *rows = layout_default(c, 2, c_shape, 4, 4, row_major);
  const Layout *columns = layout_default(c, 2, c_shape, 4, 4, col_major);
  expect_shared(c, "acc 128x128 -> rows", acc, rows, 32, (Want){2, 4, false, false, false});
  expect_shared(c, "acc 128x128 -> rows", acc, wide, 16, (Want){2, 8, false, false, false});
  expect_shared(c, "acc 128x128 -> rows, stmatrix", acc, wide, 16, (Want){8, 8, false, false, true});
  expect_shared(c, "acc 128x128 -> columns", acc, columns, 32, (Want){1, 1, false, false, false});
  expect_shared(c, "rows -> acc 128x128", rows, acc, 32, (Want){4, 2, false, false, false});
  u32 tall[] = {4, 1};
  const Layout *p = layout_mma_operand(c, 0, 2, c_shape, tall, 16), *q = layout_mma(c, 2, c_shape, tall);
  CHECK(convert(c, "acc -> A of the next dot", q, p, 16, true, false).kind == CONVERT_NONE);
}

/* ---- constructors ---- */

static u32
at2(const Layout *l, u32 row, u32 col)
{
  return layout_flat(l, (u32[]){row, col});
}

/* Register r of lane t in one instruction, straight from the tables of the PTX ISA. */
static void
accumulator_place(u32 r, u32 t, u32 *row, u32 *col)
{
  *row = t / 4 + (r >= 2 ? 8 : 0);
  *col = t % 4 * 2 + (r & 1);
}

static void
operand_place(u32 which, u32 bits, u32 r, u32 t, u32 *outer, u32 *k)
{
  u32 per = 32 / bits, word = r / per, e = r % per, step = 4 * per;
  *outer = t / 4 + (which == 0 && word & 1 ? 8 : 0);
  *k = t % 4 * per + e + (which == 0 ? word / 2 : word) * step;
}

static void
test_mma(Ctx *c)
{
  for (u32 wm = 1; wm <= 4; wm *= 2)
    for (u32 wn = 1; wn <= 2; wn *= 2)
      for (u32 m = 16; m <= 128; m *= 2)
        for (u32 n = 8; n <= 64; n *= 2) {
          const Layout *l = layout_mma(c, 2, (u32[]){m, n}, (u32[]){wm, wn});
          u32 reps_n = n > 8 * wn ? n / (8 * wn) : 1;
          CHECK(layout_covers(l));
          for (u32 r = 0; r < layout_regs(l); r++)
            for (u32 t = 0; t < 32; t++)
              for (u32 w = 0; w < wm * wn; w++) {
                u32 row, col, rep = r / 4;
                accumulator_place(r % 4, t, &row, &col);
                row += 16 * (w / wn + wm * (rep / reps_n));
                col += 8 * (w % wn + wn * (rep % reps_n));
                CHECK(layout_eval(l, r, t, w, 0) == at2(l, row % m, col % n));
              }
        }
}

static void
test_operand(Ctx *c, u32 which, u32 bits, u32 wm, u32 wn, u32 outer, u32 depth)
{
  u32 shape[] = {which == 0 ? outer : depth, which == 0 ? depth : outer};
  const Layout *l = layout_mma_operand(c, (int)which, 2, shape, (u32[]){wm, wn}, bits);
  u32 own = (which == 0 ? 128 : 64) / bits, reps_k = depth / (256 / bits), grid = which == 0 ? wm : wn;
  CHECK(layout_covers(l));
  for (u32 r = 0; r < layout_regs(l); r++)
    for (u32 t = 0; t < 32; t++)
      for (u32 w = 0; w < wm * wn; w++) {
        u32 o, k, rep = r / own;
        operand_place(which, bits, r % own, t, &o, &k);
        k += 256 / bits * (rep % reps_k);
        o += (which == 0 ? 16 : 8) * ((which == 0 ? w / wn : w % wn) + grid * (rep / reps_k));
        o %= outer;
        CHECK(layout_eval(l, r, t, w, 0) == (which == 0 ? at2(l, o, k) : at2(l, k, o)));
      }
}

/* Metadata as the figures of the PTX ISA have it: of a lane's word, bits of which row and which 16 columns. */
static void
test_meta(Ctx *c, u32 bits, u32 wm, u32 wn, u32 rows, u32 words)
{
  u32 shape[] = {rows, words}, reps_k = words > 4 ? words / 4 : 1;
  const Layout *l = layout_mma_meta(c, 2, shape, (u32[]){wm, wn}, bits);
  CHECK(layout_covers(l));
  for (u32 r = 0; r < layout_regs(l); r++)
    for (u32 t = 0; t < 32; t++)
      for (u32 w = 0; w < wm * wn; w++) {
        u32 half = r % 2, rep = r / 2, row = t / 4 + 16 * (w / wn + wm * (rep / reps_k)), word = 4 * (rep % reps_k);
        row += 8 * (bits == 16 ? half : t % 2);
        word += bits == 16 ? t % 4 : t % 4 / 2 * 2 + half;
        CHECK(layout_eval(l, r, t, w, 0) == at2(l, row % rows, word % words));
      }
}

static void
test_metas(Ctx *c)
{
  for (u32 bits = 8; bits <= 16; bits *= 2)
    for (u32 w = 0; w < 9; w++)
      for (u32 words = 1; words <= 16; words *= 2) {
        test_meta(c, bits, 1u << w % 3, 1u << w / 3, 64, words);
        test_meta(c, bits, 1u << w % 3, 1u << w / 3, 16, words);
        test_meta(c, bits, 1u << w % 3, 1u << w / 3, 8, words);
      }
}

static void
test_operands(Ctx *c)
{
  for (u32 which = 0; which < 2; which++)
    for (u32 bits = 8; bits <= 32; bits *= 2)
      for (u32 w = 0; w < 9; w++)
        for (u32 depth = 256 / bits; depth <= 128; depth *= 2) {
          test_operand(c, which, bits, 1u << w % 3, 1u << w / 3, 64, depth);
          test_operand(c, which, bits, 1u << w % 3, 1u << w / 3, 16, depth);
        }
}

static void
test_blocked(Ctx *c)
{
  u32 shape[] = {32, 50}, size[] = {2, 4}, threads[] = {4, 8}, warps[] = {2, 1};
  const Layout *l = layout_blocked(c, 2, shape, size, threads, warps, (int[]){1, 0});
  CHECK(layout_regs(l) == 2 * 4 * 2 * 2 && layout_covers(l) && l->out_bits[1] == 6);
  for (u32 r = 0; r < 32; r++)
    for (u32 t = 0; t < 32; t++)
      for (u32 w = 0; w < 2; w++) {
        u32 row = r / 4 % 2 + 2 * (t / 8) + 8 * w + 16 * (r / 16), col = r % 4 + 4 * (t % 8) + 32 * (r / 8 % 2);
        CHECK(layout_eval(l, r, t, w, 0) == at2(l, row, col));
      }
  CHECK(layout_contiguous_regs(l, 1) == 4 && layout_contiguous_regs(l, 0) == 1);
  const Layout *line = layout_default(c, 1, (u32[]){1000}, 4, 4, (int[]){0});
  for (u32 r = 0; r < 8; r++)
    for (u32 t = 0; t < 32; t++)
      for (u32 w = 0; w < 4; w++)
        CHECK(layout_eval(line, r, t, w, 0) == r % 4 + 4 * t + 128 * w + 512 * (r / 4));
  const Layout *small = layout_default(c, 1, (u32[]){16}, 4, 4, (int[]){0});
  CHECK(layout_regs(small) == 4 && layout_covers(small));
  CHECK(layout_free_bits(small, IN_LANE) == 0x1c && layout_free_bits(small, IN_WARP) == 3);
}

static void
test_fma_operands(Ctx *c)
{
  u32 shape[] = {32, 64};
  const Layout *l = layout_default(c, 2, shape, 4, 4, (int[]){1, 0});
  const Layout *a = layout_fma_operand(c, 0, (u32[]){32, 16}, l);
  const Layout *b = layout_fma_operand(c, 1, (u32[]){16, 64}, l);
  for (u32 t = 0; t < 128; t++)
    for (u32 r = 0; r < layout_regs(l); r++) {
      u32 at[2], found_a = 0, found_b = 0;
      layout_coords(l, layout_eval(l, r, t % 32, t / 32, 0), at);
      for (u32 x = 0; x < layout_regs(a); x++)
        found_a += layout_eval(a, x, t % 32, t / 32, 0) / 16 == at[0];
      for (u32 x = 0; x < layout_regs(b); x++)
        found_b += layout_eval(b, x, t % 32, t / 32, 0) % 64 == at[1];
      CHECK(found_a == 16 && found_b == 16);
    }
}

static void
test_swizzled(Ctx *c)
{
  for (u32 vec = 1; vec <= 8; vec *= 2)
    for (u32 per = 1; per <= 4; per *= 2)
      for (u32 phases = 1; phases <= 8; phases *= 2) {
        const Layout *l = layout_swizzled(c, 2, (u32[]){32, 64}, vec, per, phases, (int[]){1, 0});
        for (u32 row = 0; row < 32; row++)
          for (u32 col = 0; col < 64; col++) {
            u32 off = row * 64 + (col / vec ^ row / per % phases) * vec + col % vec;
            CHECK(layout_shared_offset(l, at2(l, row, col)) == off);
            CHECK(layout_offset_eval(l, off) == at2(l, row, col));
          }
      }
  const Layout *cols = layout_swizzled(c, 2, (u32[]){32, 64}, 1, 1, 1, (int[]){0, 1});
  CHECK(layout_shared_offset(cols, at2(cols, 3, 5)) == 5 * 32 + 3);
}

/* Where the PTX ISA's figures put an element's byte: panel by panel, row by row, 16 bytes exclusive-ored with address bits 7 and on. */
static u32
panel_byte(const u32 *pad, u32 bytes, u32 width, int fast, const u32 *at)
{
  u32 row = 0, rows = 1, along = at[fast] * bytes;
  for (int d = 0; d < 3; d++) {
    row = d == fast ? row : row * pad[d] + at[d];
    rows *= d == fast ? 1 : pad[d];
  }
  u32 byte = along / width * rows * width + row * width + along % width, steer = byte >> 7;
  return width == 16 ? byte : byte ^ (steer & (width / 16 - 1)) << 4;
}

static void
check_panels(Ctx *c, const u32 *shape, u32 bytes, u32 width, int fast)
{
  int order[3] = {fast, fast == 2 ? 1 : 2, 0};
  u32 pad[3];
  for (int d = 0; d < 3; d++) pad[d] = next_pow2(shape[d]);
  const Layout *l = layout_panels(c, 3, shape, bytes, width, order);
  PanelForm f;
  if (shape[fast] * bytes % width) {
    CHECK(!l);
    return;
  }
  for (u32 flat = 0; flat < layout_numel(l); flat++) {
    u32 at[MAX_RANK];
    layout_coords(l, flat, at);
    CHECK(layout_shared_offset(l, flat) * bytes == panel_byte(pad, bytes, width, fast, at));
  }
  CHECK(layout_panel_form(l, bytes, &f));
  u32 rows = layout_numel(l) / pad[fast];
  if (rows * width <= 128 || (rows == 8 && pad[0] == 1 && pad[1] * pad[2] == 8)) return;   /* these are more than one form */
  CHECK(f.width == width && f.swizzle == (width > 16 ? width : 0) && f.fast == fast);
  CHECK(f.panels == pad[fast] * bytes / width && f.panel_bytes == rows * width && layout_panel_align(&f) == (width > 16 ? 8 * width : 128));
}

static void
test_panels(Ctx *c)
{
  static const u32 shapes[][3] = {{1, 64, 128}, {2, 16, 64}, {1, 8, 256}, {4, 128, 24}, {1, 48, 96}, {3, 16, 32}, {1, 256, 16}};
  PanelForm f;
  for (u32 s = 0; s < COUNT(shapes); s++)
    for (u32 bytes = 1; bytes <= 4; bytes *= 2)
      for (u32 width = 16; width <= 128; width *= 2)
        for (int fast = 1; fast < 3; fast++) check_panels(c, shapes[s], bytes, width, fast);
  const Layout *rows = layout_swizzled(c, 2, (u32[]){32, 128}, 1, 1, 1, (int[]){1, 0});
  CHECK(layout_panel_form(rows, 2, &f) && !f.swizzle && f.width == 256 && f.panels == 1 && f.fast == 1);
  CHECK(!layout_panel_form(layout_swizzled(c, 2, (u32[]){32, 128}, 8, 1, 8, (int[]){1, 0}), 2, &f));   /* rows of 256 bytes */
  CHECK(layout_swizzled(c, 2, (u32[]){32, 64}, 8, 1, 8, (int[]){1, 0}) == layout_panels(c, 2, (u32[]){32, 64}, 2, 128, (int[]){1, 0}));
  CHECK(!layout_panel_form(layout_mma(c, 2, (u32[]){64, 64}, (u32[]){4, 1}), 2, &f));
  CHECK(layout_panels_width((u32[]){32, 96}, 2, 1) == 64 && layout_panels_width((u32[]){32, 20}, 2, 1) == 0);
  CHECK(layout_panels_default(c, 2, (u32[]){4, 128}, 2, 1) == layout_swizzled(c, 2, (u32[]){4, 128}, 1, 1, 1, (int[]){1, 0}));
  CHECK(layout_panels_default(c, 2, (u32[]){64, 32}, 2, 0) == layout_panels(c, 2, (u32[]){64, 32}, 2, 128, (int[]){0, 1}));
  CHECK(!layout_panels_default(c, 2, (u32[]){64, 20}, 2, 1));
}

/* ---- shape operations on random layouts, element by element ---- */

static void
each_element(const Layout *from, const Layout *to, u32 (*map)(const u32 *, const int *), const int *arg)
{
  CHECK(layout_regs(from) == layout_regs(to));
  for (u32 r = 0; r < layout_regs(from); r++)
    for (u32 t = 0; t < 128; t++) {
      u32 at[MAX_RANK] = {0};
      layout_coords(from, layout_eval(from, r, t % 32, t / 32, 0), at);
      CHECK(layout_eval(to, r, t % 32, t / 32, 0) == map(at, arg));
    }
}

/* arg: log2 extents of the result, then where each of its coordinates comes from (-1: it is 0). */
static u32
gather(const u32 *at, const int *arg)
{
  u32 flat = 0;
  for (int i = 0; i < arg[0]; i++) flat = flat << arg[1 + i] | (arg[6 + i] < 0 ? 0 : at[arg[6 + i]]);
  return flat;
}

static u32
elements_of(const Layout *l, u32 thread, u32 *set)
{
  u32 n = 0;
  for (u32 r = 0; r < layout_regs(l); r++) {
    u32 e = layout_eval(l, r, thread % 32, thread / 32, 0), seen = 0;
    for (u32 i = 0; i < n; i++) seen |= set[i] == e;
    if (!seen) set[n++] = e;
  }
  return n;
}

/* Each thread holds exactly the projections of what it held, each once. */
static void
same_sets(const Layout *from, const Layout *to, const int *arg)
{
  static u32 a[MAX_REGS], b[MAX_REGS];
  CHECK(layout_free_bits(to, IN_REG) == 0);
  for (u32 t = 0; t < 128; t++) {
    u32 n = elements_of(from, t, a), m = elements_of(to, t, b);
    for (u32 i = 0; i < n; i++) {
      u32 at[MAX_RANK], found = 0;
      layout_coords(from, a[i], at);
      for (u32 j = 0; j < m; j++) found += b[j] == gather(at, arg);
      CHECK(found == 1);
    }
    CHECK(m == layout_regs(to));
  }
}

static void
test_shape_ops(Ctx *c)
{
  u32 seed = 777;
  for (u32 i = 0; i < 100; i++) {
    u8 bits[3] = {(u8)rnd(&seed, 4), (u8)rnd(&seed, 4), (u8)rnd(&seed, 4)};
    const Layout *l = random_layout(c, &seed, 3, bits, 2);
    if (l->in_bits[IN_REG] > 9) continue;
    CHECK(layout_covers(l));
    each_element(l, layout_permute(c, l, (int[]){2, 0, 1}), gather,
                 (int[]){3, bits[2], bits[0], bits[1], 0, 0, 2, 0, 1});
    each_element(l, layout_expand_dims(c, l, 1), gather,
                 (int[]){4, bits[0], 0, bits[1], bits[2], 0, 0, -1, 1, 2});
    CHECK(layout_squeeze(c, layout_expand_dims(c, l, 2), 2) == l);
    u32 flat_shape[] = {1u << (bits[0] + bits[1] + bits[2])};
    u32 shape[] = {1u << bits[0], 1u << bits[1], 1u << bits[2]};
    const Layout *line = layout_reshape(c, l, 1, flat_shape);
    each_element(l, line, gather, (int[]){3, bits[0], bits[1], bits[2], 0, 0, 0, 1, 2});
    CHECK(layout_reshape(c, line, 3, shape) == l);
    same_sets(l, layout_slice(c, l, 1), (int[]){2, bits[0], bits[2], 0, 0, 0, 0, 2});
    same_sets(l, layout_unbroadcast(c, l, (u32[]){1, shape[1], shape[2]}),
              (int[]){3, 0, bits[1], bits[2], 0, 0, -1, 1, 2});
    if (bits[1] == 0) CHECK(layout_squeeze(c, layout_unbroadcast(c, l, shape), 1) == layout_slice(c, l, 1));
  }
}

static void
test_questions(Ctx *c)
{
  u32 seed = 4242;
  for (u32 i = 0; i < 200; i++) {
    u8 bits[2] = {(u8)rnd(&seed, 5), (u8)rnd(&seed, 5)};
    const Layout *l = random_layout(c, &seed, 2, bits, 2);
    if (l->in_bits[IN_REG] > 9) continue;
    u32 run = layout_contiguous_regs(l, 1), most = 1, cols[64];
    CHECK(layout_columns(l, cols, 64) == (u32)l->in_bits[IN_REG] + 5 + l->in_bits[IN_WARP]);
    for (u32 v = 2; v <= layout_regs(l); v *= 2) {
      bool ok = true;
      for (u32 r = 0; r < layout_regs(l); r++)
        for (u32 t = 0; t < 128; t++) {
          u32 base[2], at[2];
          layout_coords(l, layout_eval(l, r / v * v, t % 32, t / 32, 0), base);
          layout_coords(l, layout_eval(l, r, t % 32, t / 32, 0), at);
          ok &= base[1] % v == 0 && at[1] == base[1] + r % v && at[0] == base[0];
        }
      if (ok) most = v;
    }
    CHECK(run == most);
    for (u32 r = 0; r < layout_regs(l); r++) {
      u32 first = 0;
      while (layout_eval(l, first, 0, 0, 0) != layout_eval(l, r, 0, 0, 0)) first++;
      CHECK(layout_eval(l, layout_first_copy(l, r), 9, 1, 0) == layout_eval(l, r, 9, 1, 0));
      CHECK(layout_first_copy(l, r) == first);
      CHECK((first == r) == !(r & layout_free_bits(l, IN_REG)));
    }
  }
}

/* Explicit memory: swizzled rows of 128 bytes are what ldmatrix wants; without a swizzle all rows meet in one bank. */
static void
test_explicit_memory(Ctx *c)
{
  MatrixAccess m;
  u32 shape[] = {64, 64}, warps[] = {2, 2};
  const Layout *a = layout_mma_operand(c, 0, 2, shape, warps, 16), *b = layout_mma_operand(c, 1, 2, shape, warps, 16);
  const Layout *good = layout_swizzled(c, 2, shape, 8, 1, 8, (int[]){1, 0});
  const Layout *bad = layout_swizzled(c, 2, shape, 8, 1, 1, (int[]){1, 0});
  CHECK(layout_matrix_access(a, good, 16, false, &m) && m.conflicts == 0 && m.count == 4 && m.groups == 8);
  CHECK(layout_matrix_access(a, bad, 16, false, &m) && m.conflicts == 4 * 7);
  CHECK(layout_matrix_access(b, good, 16, true, &m) && m.conflicts == 0);
  CHECK(!layout_matrix_access(b, good, 16, false, &m) && !layout_matrix_access(a, good, 16, true, &m));
  const Layout *rows = layout_default(c, 2, shape, 4, 8, (int[]){1, 0});
  CHECK(layout_access_vec(rows, good, 16) == 8 && layout_bank_conflicts(rows, good, 8, 16) == 0);
  const Layout *cols = layout_default(c, 2, shape, 4, 8, (int[]){0, 1});
  CHECK(layout_access_vec(cols, good, 16) == 1 && layout_access_vec(cols, bad, 16) == 1);
  SharedAccess x = layout_shared_access(a, good, (SharedPad){0, 0}, 16, true);
  CHECK(x.matrix && !x.trans && x.conflicts == 0);
  CHECK(layout_shared_access(b, good, (SharedPad){0, 0}, 16, true).trans);
  x = layout_shared_access(a, bad, (SharedPad){64, 8}, 16, true);
  CHECK(x.matrix && x.conflicts == 0);
  x = layout_shared_access(a, bad, (SharedPad){64, 4}, 16, true);   /* rows of 16 bytes are torn */
  CHECK(!x.matrix && x.vec == 2);
  x = layout_shared_access(rows, good, (SharedPad){0, 0}, 16, true);
  CHECK(!x.matrix && x.vec == 8 && x.cost < layout_shared_access(cols, good, (SharedPad){0, 0}, 16, true).cost);
  CHECK(layout_shared_access(rows, bad, (SharedPad){64, 2}, 16, false).vec == 2);
}

/* Words of an operand hold neighbours along K. Memory in which other elements are neighbours is dearer than it looks. */
static void
test_repacking(Ctx *c)
{
  SharedPlan p;
  u32 shape[] = {64, 64}, warps[] = {2, 2};
  const Layout *rows = layout_default(c, 2, shape, 4, 8, (int[]){1, 0});
  for (u32 which = 0; which < 2; which++)
    for (u32 stm = 0; stm < 2; stm++) {
      const Layout *operand = layout_mma_operand(c, (int)which, 2, shape, warps, 16);
      layout_shared_plan(c, rows, operand, 16, true, stm, &p);
      CHECK(p.ldmatrix || p.smem->col[IN_OFFSET][0] == operand->col[IN_REG][0]);
    }
}

/* ---- text ---- */

static const char *
text_of(Ctx *c, const Layout *l)
{
  Buf b = {.arena = c->scratch};
  layout_print(&b, l);
  return buf_str(&b);
}

static const Layout *
parse(Ctx *c, const char *s, const char **error, size_t *at)
{
  size_t used, n = strlen(s);
  char *copy = malloc(n + !n);   /* exactly as long as the text: reading beyond it is found */
  memcpy(copy, s, n);
  const Layout *l = layout_parse(c, copy, n, &used, error, at);
  CHECK(used <= n && *at <= n && (l == NULL) == (*error != NULL));
  free(copy);
  return l;
}

static void
round_trip(Ctx *c, const Layout *l)
{
  const char *error;
  size_t at;
  CHECK(parse(c, text_of(c, l), &error, &at) == l);
}

static void
test_text(Ctx *c)
{
  const char *error;
  size_t at;
  u32 s[] = {64, 32}, w[] = {2, 2}, seed = 5;
  const Layout *m = layout_mma(c, 2, s, w), *sw = layout_swizzled(c, 2, s, 4, 2, 4, (int[]){1, 0});
  CHECK(parse(c, "mma<64x32; 2x2>", &error, &at) == m);
  CHECK(parse(c, " slice < 1 ; mma<64x32;2x2> > ", &error, &at) == layout_slice(c, m, 1));
  CHECK(parse(c, "operand<1; 64x32; 2x2; 16>", &error, &at) == layout_mma_operand(c, 1, 2, s, w, 16));
  CHECK(parse(c, "swizzled<64x32; 4, 2, 4; 1,0>", &error, &at) == sw);
  const Layout *line = layout_default(c, 1, (u32[]){1000}, 4, 4, (int[]){0});
  CHECK(parse(c, "blocked<1000; 4; 32; 4; 0>", &error, &at) == line);
  CHECK(!strcmp(text_of(c, layout_default(c, 2, (u32[]){8, 16}, 1, 4, (int[]){1, 0})),
                "layout<8x16; reg (0,1) (0,2); lane (0,4) (0,8) (1,0) (2,0) (4,0)>"));
  CHECK(!strcmp(text_of(c, layout_swizzled(c, 2, (u32[]){4, 4}, 1, 1, 4, (int[]){1, 0})),
                "shared<4x4; off (0,1) (0,2) (1,1) (2,2)>"));
  for (u32 i = 0; i < 100; i++) {
    u8 bits[5];
    for (u32 d = 0; d < 5; d++) bits[d] = (u8)rnd(&seed, 3);
    round_trip(c, random_layout(c, &seed, 1 + rnd(&seed, 5), bits, rnd(&seed, 4)));
  }
  round_trip(c, m);
  round_trip(c, sw);
  round_trip(c, layout_default(c, 1, (u32[]){1}, 1, 1, (int[]){0}));
}

static void
test_text_errors(Ctx *c)
{
  static const struct { const char *text, *error; size_t at; } bad[] = {
    {"", "expected layout, shared, blocked, mma, operand, slice, swizzled or panels", 0},
    {"mmax<1>", "expected layout, shared, blocked, mma, operand, slice, swizzled or panels", 0},
    {"mma", "expected '<'", 3},
    {"mma<64>", "expected two dimensions or more", 4},
    {"mma<64x32", "expected ';'", 9},
    {"mma<64x32; 3x1>", "expected powers of two", 11},
    {"mma<64x0; 1x1>", "an extent of 0", 4},
    {"mma<64x99999999999999999; 1x1>", "number too large", 7},
    {"mma<65536x65536; 1x1>", "too many elements", 4},
    {"mma<64x32; 8x8>", "the product is too large", 11},
    {"operand<2; 64x32; 1x1; 16>", "expected operand 0 or 1", 8},
    {"operand<0; 64x32; 1x1; 17>", "expected 8, 16 or 32 bits", 22},
    {"blocked<64x32; 1x1; 4x4; 1x1; 1,0>", "threads must multiply to 32", 20},
    {"blocked<64x32; 1x1; 4x8; 1x1; 1,1>", "expected an order: every dimension once", 30},
    {"blocked<64x32; 1; 4x8; 1x1; 1,0>", "expected one number per dimension", 15},
    {"slice<2; mma<64x32; 1x1>>", "nothing to slice at this axis", 6},
    {"layout<4; reg (4)>", "coordinate outside the tile", 15},
    {"layout<4; reg (1,0)>", "expected one coordinate per dimension", 15},
    {"layout<4; reg (1)>", "some elements are held by nobody", 7},
    {"layout<4; lane (1) (2); reg (0)>", "expected reg, lane, warp, block in this order", 24},
    {"layout<4; lane (1) (2) (0) (0) (0) (0)>", "too many columns", 36},
    {"shared<4; off (1) (2)", "expected '>'", 21},
    {"shared<4; reg (1) (2)>", "expected 'off'", 10},
    {"layout<1x1x1x1x1x1>", "too many dimensions", 18},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    const char *error = NULL;
    size_t at = 0;
    CHECK(!parse(c, bad[i].text, &error, &at));
    if (!CHECK(error && !strcmp(error, bad[i].error) && at == bad[i].at))
      printf("  %s: %s at %zu\n", bad[i].text, error ? error : "no error", at);
  }
}

static void
test_text_mutations(Ctx *c)
{
  static const char *const seeds[] = {
    "blocked<64x32; 1x4; 4x8; 4x1; 1,0>", "mma<64x32; 2x2>", "operand<0; 64x32; 2x2; 16>",
    "slice<1; mma<64x32; 1x1>>", "swizzled<64x32; 8, 1, 8; 1,0>", "panels<64x96; 2, 64; 1,0>",
    "layout<2x4; reg (0,1) (1,0); lane (0,2) (0,0); warp (1,1)>", "shared<4; off (1) (2)>",
  };
  static const char letters[] = "0123456789x,;<>() abmw";
  u32 seed = 99;
  for (u32 i = 0; i < 20000; i++) {
    char text[128] = {0};
    strcpy(text, seeds[rnd(&seed, COUNT(seeds))]);
    for (u32 k = 1 + rnd(&seed, 4); k; k--) {
      u32 at = rnd(&seed, (u32)strlen(text));
      if (rnd(&seed, 4) == 0) memmove(text + at, text + at + 1, strlen(text + at));
      else if (rnd(&seed, 2)) memmove(text + at + 1, text + at, strlen(text + at));
      else text[at] = letters[rnd(&seed, sizeof letters - 1)];
    }
    const char *error;
    size_t at;
    const Layout *l = parse(c, text, &error, &at);
    if (l) round_trip(c, l);
    arena_reset(c->scratch);
  }
}

static void
test_drawing(Ctx *c)
{
  Buf b = {.arena = c->scratch}, all = {.arena = c->scratch};
  layout_draw(&b, layout_mma(c, 2, (u32[]){32, 16}, (u32[]){2, 2}), 32);
  CHECK(strstr(buf_str(&b), "    15  T28:2  T28:3  T29:2  T29:3  T30:2  T30:3  T31:2  T31:3  T28:2"));
  CHECK(strstr(buf_str(&b), "warps, one cell for 16x8 elements:\n     0 w0  w1 \n    16 w2  w3 \n"));
  u32 seed = 31337;
  for (u32 i = 0; i < 40; i++) {
    u8 bits[5];
    for (u32 d = 0; d < 5; d++) bits[d] = (u8)rnd(&seed, 4);
    const Layout *l = random_layout(c, &seed, 1 + rnd(&seed, 5), bits, rnd(&seed, 3));
    layout_draw(&all, l, 16);
  }
  layout_draw(&all, layout_swizzled(c, 2, (u32[]){8, 32}, 4, 1, 8, (int[]){1, 0}), 32);
  CHECK(strstr(buf_str(&all), "     1    36:4    37:5    38:6    39:7    32:0"));
  layout_draw(&all, layout_default(c, 2, (u32[]){256, 128}, 4, 4, (int[]){1, 0}), 1);
  CHECK(strstr(buf_str(&all), "(64 of 256 rows, 64 of 128 columns)"));
}

int
main(void)
{
  Ctx *c = ctx_new();
  test_blocked(c);
  test_mma(c);
  test_operands(c);
  test_metas(c);
  test_fma_operands(c);
  test_swizzled(c);
  test_panels(c);
  test_shape_ops(c);
  test_questions(c);
  test_explicit_memory(c);
  test_repacking(c);
  test_text(c);
  test_text_errors(c);
  test_text_mutations(c);
  test_drawing(c);
  test_transposes(c);
  test_dot_operands(c);
  test_random_conversions(c);
  test_random_pieces(c);
  test_wide_transpose(c);
  ctx_free(c);
  printf("layout_test: %u checks, %u failures\n", checks, failures);
  return failures != 0;
}
