/* tma.c - how boxes of tensors lie in buffers, for the instructions that copy them (PTX ISA, cp.async.bulk.tensor, "Tensors").
 *
 * An instruction copies a box of up to 256 elements along each dimension, row by row. What it can do besides is exchange the groups
 * of 16 bytes of a row, by the row's number: then a row is as many bytes as the pattern is wide (the swizzle), and wider tiles lie in
 * panels, one behind the other (layout_panels); these may be any number, as what is behind the last is left out (cut_buffers.c). A buffer
 * can be copied if its layout is one of these: the layout itself is asked. */
#include "ir.h"

enum { BOX_MOST = 256, ROW_UNIT = 16, PANEL_UNIT = 32, SWIZZLE_ROWS = 8 };

static u32
row_bytes(const Type *t)
{
  return t->shape[t->rank - 1] * dtype_bytes(t->dt);
}

/* Elements lie in row-major order. */
static bool
is_plain(const Type *t, const Layout *l)
{
  u32 n = type_padded_numel(t);
  for (u32 i = 1; i < n; i *= 2)
    if (layout_shared_offset(l, i) != i)
      return false;
  return true;
}

static u32
elements(const TmaForm *f)
{
  u32 n = 1;
  for (u32 d = 0; d < f->rank; d++)
    n *= f->box[d];
  return n;
}

/* Panels of the layout: box[rank - 1] is what a row of one holds. A pattern is whole in each, so that all begin where it begins. */
static bool
find_panels(const Type *t, const Layout *l, TmaForm *f)
{
  PanelForm p = {.width = row_bytes(t), .fast = t->rank - 1, .panels = 1, .panel_bytes = type_padded_numel(t) * dtype_bytes(t->dt)};
  if ((type_padded(t) || !is_plain(t, l)) && !layout_panel_form(l, dtype_bytes(t->dt), &p))
    return false;
  if (p.fast != t->rank - 1 || row_bytes(t) % p.width || (p.swizzle && p.panel_bytes % (p.swizzle * SWIZZLE_ROWS)))
    return false;
  f->swizzle = p.swizzle;
  f->panel_bytes = p.panel_bytes;
  f->panels = row_bytes(t) / p.width;
  f->box[f->rank - 1] = p.width / dtype_bytes(t->dt);
  return true;
}

/* Chunks along the first dimension that has more than one element; NULL, or why there are none. */
static const char *
find_chunks(Arena *a, const Type *t, TmaForm *f)
{
  u32 d = f->rank - t->rank;
  while (d + 1 < f->rank && f->box[d] == 1)
    d++;
  f->along = d;
  f->chunks = 1;
  if (f->box[d] > BOX_MOST) {
    f->chunks = f->box[d] / BOX_MOST;
    f->box[d] = BOX_MOST;
  }
  f->chunk_bytes = elements(f) * dtype_bytes(t->dt);
  for (d = 0; d < f->rank; d++)
    if (f->box[d] > BOX_MOST)
      return arena_printf(a, "a box has at most %d elements along each dimension but the first, and this buffer has %u along one", BOX_MOST,
                          f->box[d]);
  return NULL;
}

static const char *
extents_error(Arena *a, const Type *t, u32 rank)
{
  if (t->rank > rank)
    return arena_printf(a, "the buffer has %u dimensions, the tensor %u", t->rank, rank);
  if (memcmp(t->shape, t->alloc_shape, sizeof t->shape) != 0)
    return "a box is a whole buffer, and this is a part of one";
  for (u32 d = 0; d < t->rank; d++)       /* else who reads the buffer would read padding that no copy writes */
    if (!is_pow2(t->shape[d]) && (d + 1 < t->rank || t->rank == 1 || row_bytes(t) % PANEL_UNIT))
      return arena_printf(a, "extents of a box are powers of two, or rows multiples of %d bytes, and dimension %u has %u", PANEL_UNIT, d,
                          t->shape[d]);
  if (row_bytes(t) % ROW_UNIT)
    return arena_printf(a, "rows of a box are multiples of %d bytes, those of this buffer have %u", ROW_UNIT, row_bytes(t));
  return t->pad_every ? "the buffer has padding, which boxes have not" : NULL;
}

const char *
tma_form_error(Ctx *c, const Type *t, u32 rank, TmaForm *out)
{
  TmaForm f = {.rank = rank};
  const char *wrong = extents_error(c->scratch, t, rank);
  if (wrong)
    return wrong;
  const Layout *l = t->layout ? t->layout : layout_panels_default(c, t->rank, t->shape, dtype_bytes(t->dt), t->rank - 1);
  for (u32 d = 0; d < rank; d++)
    f.box[d] = d < rank - t->rank ? 1 : t->shape[d - (rank - t->rank)];
  if (!l || !find_panels(t, l, &f))
    return "no copy of a box lays a buffer out like this: it does so row by row, or in panels (layout panels)";
  wrong = find_chunks(c->scratch, t, &f);
  if (wrong)
    return wrong;
  *out = f;
  return NULL;
}

/* PTX ISA, cp.reduce.async.bulk.tensor: what .add takes. */
bool
tma_adds(DType d)
{
  switch (d) {
  case DT_F16: case DT_BF16: case DT_F32: case DT_F64: case DT_U32: case DT_I32: case DT_U64: case DT_I64: return true;
  default: return false;
  }
}

/* A view of other dimensions lies as its buffer is placed, which may be along another dimension; one of another type begins where its
 * buffer does, which a swizzle may not allow. */
const char *
tma_view_error(const Value *buffer)
{
  for (const Value *v = buffer; v->def && op_is_view(v->def); v = op_buffer(v->def)) {
    bool turned = v->def->code == OP_SHARED_PERMUTE || v->def->code == OP_SHARED_RESHAPE;
    if (v->def->code == OP_SHARED_CAST)
      return "a box is a buffer as it was made, and this is its memory as another";
    if (turned && !buffer->type->layout)
      return "a box is a buffer with the dimensions that it was made with, and this view has others";
  }
  return NULL;
}
