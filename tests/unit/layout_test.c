/* layout_test.c - layouts against brute force: every element of every tile is looked at one by one. */
#include "ir/layout.h"
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
matrix_access(Sim *s, const Layout *l, const SharedPlan *p, u32 elem_bits, bool trans, u32 conflicts, bool store)
{
  MatrixAccess m;
  if (!CHECK(layout_matrix_access(l, p->smem, elem_bits, trans, &m))) return;
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
    for (u32 r = 0; r < layout_regs(s->dst); r++) s->dst_reg[w][lane][r] = y[lane][layout_first_copy(s->dst, r)];
}

static void
move_registers(Sim *s, const u32 *map, u32 w)
{
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 r = 0; r < layout_regs(s->dst); r++) s->dst_reg[w][lane][r] = layout_eval(s->src, map[r], lane, w, 0);
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
  s.warps = 1u << (src->in_bits[IN_WARP] > dst->in_bits[IN_WARP] ? src->in_bits[IN_WARP] : dst->in_bits[IN_WARP]);
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

static const char *const kind_names[] = {"none", "regs", "shuffle", "shared"};

static ConvertPlan
convert(Ctx *c, const char *what, const Layout *src, const Layout *dst, u32 elem_bits, bool ldm, bool stm)
{
  ConvertPlan p;
  layout_convert_plan(c, src, dst, elem_bits, ldm, stm, &p);
  simulate(src, dst, elem_bits, &p);
  if (what && getenv("LAYOUT_TEST_VERBOSE")) {
    printf("%-34s %2u bits: %-7s cost %4u", what, elem_bits, kind_names[p.kind], p.cost);
    if (p.kind == CONVERT_SHARED)
      printf("  store %s%ux%u +%u, load %s%ux%u +%u", p.shared.stmatrix ? "stmatrix " : "", p.shared.store_vec,
             elem_bits, p.shared.store_conflicts,
             p.shared.ldmatrix ? p.shared.ldmatrix_trans ? "ldmatrix.trans " : "ldmatrix " : "", p.shared.load_vec,
             elem_bits, p.shared.load_conflicts);
    if (p.kind == CONVERT_SHUFFLE) printf("  %u rounds, %u + %u stages", p.shuffle.rounds, p.shuffle.sends, p.shuffle.receives);
    printf("\n");
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
        const Layout *a = layout_default(c, 2, shape, warps, vec, rows), *b = layout_default(c, 2, shape, warps, vec, cols);
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
    const Layout *a = layout_mma_operand(c, 0, a_shape, warps, bits), *b = layout_mma_operand(c, 1, b_shape, warps, bits);
    expect_shared(c, "128x64 rows -> A", layout_default(c, 2, a_shape, 4, vec, row_major), a, bits, (Want){vec, vec, true, false, false});
    expect_shared(c, "64x128 columns -> B", layout_default(c, 2, b_shape, 4, vec, col_major), b, bits, (Want){vec, vec, true, false, false});
    const Layout *a_cols = layout_default(c, 2, a_shape, 4, vec, col_major);
    const Layout *b_rows = layout_default(c, 2, b_shape, 4, vec, row_major);
    expect_shared(c, "128x64 columns -> A", a_cols, a, bits, (Want){trans ? vec : 1, trans ? vec : 1, trans, trans, false});
    expect_shared(c, "64x128 rows -> B", b_rows, b, bits, (Want){trans ? vec : 1, trans ? vec : 1, trans, trans, false});
  }
  const Layout *acc = layout_mma(c, c_shape, warps);
  expect_shared(c, "acc 128x128 -> rows", acc, layout_default(c, 2, c_shape, 4, 4, row_major), 32, (Want){2, 4, false, false, false});
  expect_shared(c, "acc 128x128 -> rows", acc, layout_default(c, 2, c_shape, 4, 8, row_major), 16, (Want){2, 8, false, false, false});
  expect_shared(c, "acc 128x128 -> rows (stmatrix)", acc, layout_default(c, 2, c_shape, 4, 8, row_major), 16, (Want){8, 8, false, false, true});
  expect_shared(c, "acc 128x128 -> columns", acc, layout_default(c, 2, c_shape, 4, 4, col_major), 32, (Want){1, 1, false, false, false});
  expect_shared(c, "rows -> acc 128x128", layout_default(c, 2, c_shape, 4, 4, row_major), acc, 32, (Want){4, 2, false, false, false});
  const Layout *p = layout_mma_operand(c, 0, c_shape, (u32[]){4, 1}, 16), *q = layout_mma(c, c_shape, (u32[]){4, 1});
  CHECK(convert(c, "acc -> A of the next dot", q, p, 16, true, false).kind == CONVERT_NONE);
}

int
main(void)
{
  Ctx *c = ctx_new();
  test_transposes(c);
  test_dot_operands(c);
  test_random_conversions(c);
  ctx_free(c);
  printf("layout_test: %u checks, %u failures\n", checks, failures);
  return failures != 0;
}
