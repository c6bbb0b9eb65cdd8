/* cut_test.c - how far tiles reach into shared layouts, element by element; and no interleaving of coordinates reaches less far than
 * layout_compact's. */
#include "../../layout/layout.h"
#include "check.h"

enum { LAYOUTS = 3000, COMPACT = 400, MAX_BITS = 10 };

static u32
rnd(u32 *seed, u32 n)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % n;
}

/* Random extents of at most MAX_BITS bits together. */
static int
random_shape(u32 *seed, u32 *shape)
{
  int rank = 1 + (int)rnd(seed, 4);
  u32 left = MAX_BITS;
  for (int d = 0; d < rank; d++) {
    u32 bits = rnd(seed, min_u32(left, 7) + 1);
    left -= bits;
    shape[d] = bits ? (1u << (bits - 1)) + 1 + rnd(seed, 1u << (bits - 1)) : 1;
  }
  return rank;
}

/* A layout of any n independent columns. */
static const Layout *
random_shared(Ctx *c, u32 *seed, int rank, const u32 *shape)
{
  Layout l = {.rank = (u8)rank};
  for (int d = 0; d < rank; d++)
    l.in_bits[IN_OFFSET] = (u8)(l.in_bits[IN_OFFSET] + (l.out_bits[d] = (u8)log2_u32(next_pow2(shape[d]))));
  u32 n = l.in_bits[IN_OFFSET];
  for (u32 i = 0; i < n; i++)
    l.col[IN_OFFSET][i] = 1u << i;
  for (u32 k = 0; n > 1 && k < 5 * n; k++) {
    u32 i = rnd(seed, n), j = rnd(seed, n), t = l.col[IN_OFFSET][i];
    if (i == j)
      continue;
    l.col[IN_OFFSET][i] = rnd(seed, 2) ? t ^ l.col[IN_OFFSET][j] : l.col[IN_OFFSET][j];
    if (l.col[IN_OFFSET][i] == l.col[IN_OFFSET][j])
      l.col[IN_OFFSET][j] = t;
  }
  return layout_intern(c, &l);
}

/* The next element of the tile; false behind the last. */
static bool
next_element(int rank, const u32 *shape, u32 *coord)
{
  for (int d = rank - 1; d >= 0; d--) {
    if (++coord[d] < shape[d])
      return true;
    coord[d] = 0;
  }
  return false;
}

static u32
reach_by_elements(const Layout *l, const u32 *shape)
{
  u32 coord[MAX_RANK] = {0}, most = 0;
  do
    most = max_u32(most, layout_shared_offset(l, layout_flat(l, coord)));
  while (next_element(l->rank, shape, coord));
  return most + 1;
}

static void
test_reach(Ctx *c)
{
  u32 seed = 7;
  for (u32 k = 0; k < LAYOUTS; k++) {
    u32 shape[MAX_RANK] = {0};
    int rank = random_shape(&seed, shape);
    const Layout *l = random_shared(c, &seed, rank, shape);
    u32 reach = layout_reach(l, shape), want = reach_by_elements(l, shape);
    CHECK(reach == want, "layout %u: %u, not %u", k, reach, want);
  }
}

/* ---- compact ---- */

/* The least reach of all interleavings of the bits left, above `low` bits of one dimension; bits are given out from the highest. */
static u32
least_reach(int rank, const u32 *last, u32 *left, const u32 *end, u32 so_far)
{
  u32 best = UINT32_MAX;
  bool any = false;
  for (int d = 0; d < rank; d++) {
    if (left[d] == end[d])
      continue;
    any = true;
    left[d]--;
    best = min_u32(best, least_reach(rank, last, left, end, so_far << 1 | (last[d] >> left[d] & 1)));
    left[d]++;
  }
  return any ? best : so_far;
}

static void
test_compact(Ctx *c)
{
  u32 seed = 11;
  for (u32 k = 0; k < COMPACT; k++) {
    u32 shape[MAX_RANK] = {0}, last[MAX_RANK], left[MAX_RANK], end[MAX_RANK] = {0};
    int rank = random_shape(&seed, shape), fast = (int)rnd(&seed, (u32)rank);
    for (int d = 0; d < rank; d++) {
      last[d] = shape[d] - 1;
      left[d] = log2_u32(next_pow2(shape[d]));
    }
    end[fast] = rnd(&seed, left[fast] + 1);
    LayoutSwizzle plain = {1, 1, 1, 1}, swizzle = {16, 1u << rnd(&seed, 3), 1u << rnd(&seed, 3), 1u << rnd(&seed, 4)};
    const Layout *l = layout_compact(c, rank, shape, fast, 1u << end[fast], &plain);
    u32 run = 1u << end[fast], want = least_reach(rank, last, left, end, 0) * run + (last[fast] & (run - 1)) + 1;
    CHECK(layout_covers(l), "compact %u", k);
    CHECK(layout_reach(l, shape) == want, "compact %u: %u, not %u", k, layout_reach(l, shape), want);
    for (u32 i = 0; i < end[fast]; i++)
      CHECK(l->col[IN_OFFSET][i] == 1u << (layout_dim_shift(l, fast) + i), "compact %u: run", k);
    const Layout *s = layout_compact(c, rank, shape, fast, run, &swizzle);
    u32 lines = (layout_reach(s, shape) + 15) / 16;
    CHECK(layout_covers(s) && lines == (layout_reach(l, shape) + 15) / 16, "compact %u: %u lines of 16", k, lines);
  }
}

/* What is said where the layouts are described. */
static void
test_examples(Ctx *c)
{
  LayoutSwizzle lines = {64, 8, 1, 8};
  const u32 deep[] = {64, 576}, ragged[] = {100, 257}, odd[] = {33, 33};
  const Layout *rows = layout_swizzled(c, 2, deep, 8, 1, 8, (int[]){1, 0}), *split = layout_compact(c, 2, deep, 1, 64, &lines);
  CHECK(layout_reach(rows, deep) == 63 * 1024 + 576, "%u", layout_reach(rows, deep));
  CHECK(layout_reach(split, deep) == 64 * 576, "%u", layout_reach(split, deep));
  CHECK(layout_reach(layout_compact(c, 2, ragged, 1, 1, &(LayoutSwizzle){1, 1, 1, 1}), ragged) == (1 << 15) + 100, "100 x 257");
  CHECK(layout_reach(layout_compact(c, 2, odd, 1, 1, &(LayoutSwizzle){1, 1, 1, 1}), odd) == (1 << 11) + 33, "33 x 33");
}

int
main(void)
{
  Ctx *c = ctx_new();
  test_reach(c);
  test_compact(c);
  test_examples(c);
  ctx_free(c);
  return failures != 0;
}
