/* layout_draw.c - the picture of a layout for people.
 *
 * A register layout is a grid of `T<lane>:<register>`, with a map of the warps beside it; a shared layout a
 * grid of `<offset>:<bank>`. A tile of one dimension is wrapped into lines, one of more than two is drawn
 * plane by plane. What is too large is cut, with a note. Where an element is held more than once, the first
 * holder is shown.
 */
#include "layout_gf2.h"
#include <stdio.h>

enum { MOST_ROWS = 64, MOST_COLUMNS = 64, MOST_PLANES = 4, LINE = 16 };

/* The tile as planes of rows x columns; the flat index counts through them. */
typedef struct Picture {
  const Layout *l;
  Basis holder;      /* solves an element for the inputs that hold it */
  u32 elem_bytes;
  u32 planes, rows, columns;
} Picture;

static Picture
picture_of(const Layout *l, u32 elem_bits)
{
  Picture p = {.l = l, .holder = layout_solver(l, IN_REG, IN_OFFSET)};
  u32 all = 1u << layout_out_bits(l), last = 1u << l->out_bits[l->rank - 1];
  p.elem_bytes = elem_bits <= 8 ? 1 : elem_bits / 8;
  p.columns = l->rank == 1 && last > LINE ? LINE : last;
  p.rows = l->rank == 1 ? last / p.columns : 1u << l->out_bits[l->rank - 2];
  p.planes = all / (p.rows * p.columns);
  return p;
}

static u32
holder_of(const Picture *p, u32 flat, LayoutIn in)
{
  u64 made = 0;
  basis_reduce(&p->holder, flat, &made);
  for (u32 i = 0; i < (u32)in; i++) made >>= p->l->in_bits[i];
  return (u32)(made & ((1u << p->l->in_bits[in]) - 1));
}

static void
cell_text(const Picture *p, u32 flat, char *text, size_t size)
{
  u32 off = holder_of(p, flat, IN_OFFSET);
  if (layout_is_shared(p->l)) snprintf(text, size, "%u:%u", off, off * p->elem_bytes / 4 % 32);
  else snprintf(text, size, "T%u:%u", holder_of(p, flat, IN_LANE), holder_of(p, flat, IN_REG));
}

static u32
cell_width(const Picture *p, u32 first)
{
  char text[32];
  size_t most = 0;
  for (u32 r = 0; r < min_u32(p->rows, MOST_ROWS); r++)
    for (u32 c = 0; c < min_u32(p->columns, MOST_COLUMNS); c++) {
      cell_text(p, first + r * p->columns + c, text, sizeof text);
      if (strlen(text) > most) most = strlen(text);
    }
  return (u32)most + 1;
}

static void
draw_plane(Buf *b, const Picture *p, u32 first)
{
  char text[32];
  u32 rows = min_u32(p->rows, MOST_ROWS), columns = min_u32(p->columns, MOST_COLUMNS);
  u32 width = cell_width(p, first);
  buf_printf(b, "%6s", "");
  for (u32 c = 0; c < columns; c++) buf_printf(b, " %*u", (int)width, c);
  buf_putc(b, '\n');
  for (u32 r = 0; r < rows; r++) {
    buf_printf(b, "%6u", p->l->rank == 1 ? r * p->columns : r);
    for (u32 c = 0; c < columns; c++) {
      cell_text(p, first + r * p->columns + c, text, sizeof text);
      buf_printf(b, " %*s", (int)width, text);
    }
    buf_putc(b, '\n');
  }
  if (rows < p->rows || columns < p->columns)
    buf_printf(b, "  (%u of %u rows, %u of %u columns)\n", rows, p->rows, columns, p->columns);
}

/* Length of the aligned runs, from bit `shift` and at most 2^bits long, in which one warp holds everything. */
static u32
warp_run(const Picture *p, u32 shift, u32 bits)
{
  u32 n = 0;
  for (; n < bits; n++)
    if (holder_of(p, 1u << (shift + n), IN_WARP) || holder_of(p, 1u << (shift + n), IN_BLOCK)) break;
  return 1u << n;
}

static void
draw_warps(Buf *b, const Picture *p)
{
  u32 column_bits = log2_u32(p->columns), dc = warp_run(p, 0, column_bits);
  u32 dr = warp_run(p, column_bits, log2_u32(p->rows));
  buf_printf(b, "warps, one cell for %ux%u elements:\n", dr, dc);
  for (u32 r = 0; r < min_u32(p->rows / dr, MOST_ROWS); r++) {
    buf_printf(b, "%6u", p->l->rank == 1 ? r * dr * p->columns : r * dr);
    for (u32 c = 0; c < min_u32(p->columns / dc, MOST_COLUMNS); c++) {
      u32 flat = r * dr * p->columns + c * dc;
      if (p->l->in_bits[IN_BLOCK]) buf_printf(b, " b%u", holder_of(p, flat, IN_BLOCK));
      buf_printf(b, " w%-2u", holder_of(p, flat, IN_WARP));
    }
    buf_putc(b, '\n');
  }
}

static void
draw_title(Buf *b, const Picture *p)
{
  const Layout *l = p->l;
  u32 inputs = 0;
  for (u32 d = 0; d < l->rank; d++) buf_printf(b, d ? "x%u" : "%u", 1u << l->out_bits[d]);
  for (u32 in = 0; in < IN_COUNT; in++) inputs += l->in_bits[in];
  u32 copies = inputs - basis_rank(&p->holder);
  if (layout_is_shared(l)) {
    buf_printf(b, " in shared memory, elements of %u bytes; cells are offset:bank\n", p->elem_bytes);
    return;
  }
  if (l->in_bits[IN_BLOCK]) buf_printf(b, " over %u blocks of", 1u << l->in_bits[IN_BLOCK]);
  else buf_puts(b, " over");
  buf_printf(b, " %u warp(s), %u register(s) per thread; cells are T<lane>:<register>\n",
             1u << l->in_bits[IN_WARP], layout_regs(l));
  if (copies) buf_printf(b, "every element is held %llu times, the first holder is shown\n", 1ull << copies);
}

void
layout_draw(Buf *b, const Layout *l, u32 elem_bits)
{
  Picture p = picture_of(l, elem_bits);
  draw_title(b, &p);
  if (l->in_bits[IN_WARP] || l->in_bits[IN_BLOCK]) draw_warps(b, &p);
  for (u32 i = 0; i < min_u32(p.planes, MOST_PLANES); i++) {
    if (p.planes > 1) buf_printf(b, "plane %u:\n", i);
    draw_plane(b, &p, i * p.rows * p.columns);
  }
  if (p.planes > MOST_PLANES) buf_printf(b, "  (%u of %u planes)\n", (u32)MOST_PLANES, p.planes);
}
