/* layout_panels.c - shared layouts in panels, which TMA boxes and the matrix descriptors of wgmma address.
 *
 * A tile's contiguous dimension is cut into panels of `width` bytes. A panel holds that part of every row, one row behind the other; panels
 * follow each other. In panels of 128, 64 and 32 bytes the hardware exclusive-ors the number of 16 bytes within a row with address bits
 * from 7 on (PTX ISA, "Tensor Swizzling modes" and "Shared memory matrix layout"): 3, 2 and 1 of them. These are bits of the address, so a
 * buffer begins at a multiple of 8 rows, the period of that. Panels of 16 bytes have no swizzle: 8 rows of one are a core matrix.
 *
 * As columns: without the swizzle the bits of an offset are the columns of a row's width, the bits of the rows, then the rest of
 * the contiguous dimension. The swizzle changes bits below those that steer it, so it is its own inverse, and the column of the offset bit
 * at address bit 7 + j also has what bit 4 + j stands for. */
#include "layout_gf2.h"

enum { UNIT_LOG2 = 4, STEER_LOG2 = 7, ROWS_OF_PERIOD = 8, WIDEST = 128, NARROWEST = 16 };

static void
row_major(int rank, int fast, int *order)
{
  int n = 0;
  order[n++] = fast;
  for (int d = rank; d-- > 0;)
    if (d != fast) order[n++] = d;
}

/* Push bits first to last - 1 of dimension d. */
static void
push_bits(Layout *l, int d, u32 first, u32 last)
{
  for (u32 b = first; b < last; b++) layout_push(l, IN_OFFSET, 1u << (layout_dim_shift(l, d) + b));
}

/* Rows of `width` bytes without a swizzle; l has extents, and no columns. */
static void
push_panels(Layout *l, u32 elem_bytes, u32 width, const int *order)
{
  u32 within = log2_u32(width / elem_bytes);
  push_bits(l, order[0], 0, min_u32(within, l->out_bits[order[0]]));
  for (int i = 1; i < l->rank; i++) push_bits(l, order[i], 0, l->out_bits[order[i]]);
  push_bits(l, order[0], within, l->out_bits[order[0]]);
}

static void
swizzle(Layout *l, u32 elem_bytes, u32 bytes)
{
  u32 byte = log2_u32(elem_bytes);
  for (u32 j = 0; bytes && UNIT_LOG2 + j < log2_u32(bytes) && STEER_LOG2 + j - byte < l->in_bits[IN_OFFSET]; j++)
    l->col[IN_OFFSET][STEER_LOG2 + j - byte] ^= l->col[IN_OFFSET][UNIT_LOG2 + j - byte];
}

u32
layout_panels_width(const u32 *shape, u32 elem_bytes, int fast)
{
  u32 width = WIDEST;
  while (width >= NARROWEST && shape[fast] * elem_bytes % width) width /= 2;
  return width >= NARROWEST ? width : 0;
}

const Layout *
layout_panels(Ctx *c, int rank, const u32 *shape, u32 elem_bytes, u32 width, const int *order)
{
  Layout l = layout_blank(c, rank, shape);
  if (!width || shape[order[0]] * elem_bytes % width) return NULL;
  push_panels(&l, elem_bytes, width, order);
  swizzle(&l, elem_bytes, width > NARROWEST ? width : 0);
  return layout_intern(c, &l);
}

const Layout *
layout_panels_default(Ctx *c, int rank, const u32 *shape, u32 elem_bytes, int fast)
{
  int order[MAX_RANK];
  u32 rows = 1, width = layout_panels_width(shape, elem_bytes, fast);
  row_major(rank, fast, order);
  for (int d = 0; d < rank; d++) rows *= d == fast ? 1 : next_pow2(shape[d]);
  if (!width) return NULL;
  return rows >= ROWS_OF_PERIOD ? layout_panels(c, rank, shape, elem_bytes, width, order) : layout_swizzled(c, rank, shape, 1, 1, 1, order);
}

/* ---- the question the other way round ---- */

static bool
is_panels(const Layout *smem, u32 elem_bytes, u32 width, u32 swizzled, int fast)
{
  int order[MAX_RANK];
  Layout l = {.rank = smem->rank};
  memcpy(l.out_bits, smem->out_bits, sizeof l.out_bits);
  row_major(smem->rank, fast, order);
  push_panels(&l, elem_bytes, width, order);
  swizzle(&l, elem_bytes, swizzled);
  return l.in_bits[IN_OFFSET] == smem->in_bits[IN_OFFSET] &&
         !memcmp(l.col[IN_OFFSET], smem->col[IN_OFFSET], l.in_bits[IN_OFFSET] * sizeof *l.col[IN_OFFSET]);
}

static bool
take_form(const Layout *smem, u32 elem_bytes, u32 width, u32 swizzled, int fast, PanelForm *out)
{
  u32 row = elem_bytes << smem->out_bits[fast];
  if (width > row || !is_panels(smem, elem_bytes, width, swizzled, fast)) return false;
  *out = (PanelForm){.swizzle = swizzled, .width = width, .fast = fast, .panels = row / width,
                     .panel_bytes = width * (layout_numel(smem) >> smem->out_bits[fast])};
  return true;
}

bool
layout_panel_form(const Layout *smem, u32 elem_bytes, PanelForm *out)
{
  int last = smem->rank - 1, first = smem->rank > 1 ? last - 1 : last;
  if (!layout_is_shared(smem) || smem->in_bits[IN_OFFSET] != layout_out_bits(smem)) return false;
  for (int fast = last; fast >= first; fast--) {
    for (u32 width = WIDEST; width > NARROWEST; width /= 2)
      if (take_form(smem, elem_bytes, width, width, fast, out)) return true;
    for (u32 width = elem_bytes << smem->out_bits[fast]; width >= NARROWEST; width /= 2)
      if (take_form(smem, elem_bytes, width, 0, fast, out)) return true;
  }
  return false;
}

u32
layout_panel_align(const PanelForm *f)
{
  return f->swizzle ? ROWS_OF_PERIOD * f->swizzle : WIDEST;
}
