/* tma.c - how boxes of tensors lie in buffers, for the instructions that copy them (PTX ISA, cp.async.bulk.tensor, "Tensors").
 *
 * An instruction copies a box of up to 256 elements along each dimension, row by row. What it can do besides is exchange the groups
 * of 16 bytes of a row, by the row's number: then a row is as many bytes as the pattern is wide (the swizzle), and wider tiles lie in
 * panels, one behind the other (layout_panels); these may be any number, as what is behind the last is left out (cut_buffers.c). A buffer
 * can be copied if its layout is one of these: the layout itself is asked. A part of a buffer is a box, too, if it has whole panels of
 * it, or of each the same rows, one behind the other, from a row on at which the pattern begins.
 *
 * Through a window (PTX ISA, "im2col mode") the rows of a box are pixels, which follow one another from row to row of the image and from
 * image to image: as a convolution's product wants them. */
#include "ir.h"

enum { BOX_MOST = 256, PIXELS_MOST = 1024, STEP_MOST = 8, BOX_ALIGN = 128, ROW_UNIT = 16, PANEL_UNIT = 32, PANEL_MOST = 128,
       SWIZZLE_ROWS = 8 };

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

/* Rows of a panel behind which the pattern begins anew, and a copy may begin. */
static u32
period(const TmaForm *f, u32 width)
{
  u32 bytes = f->swizzle ? f->swizzle * SWIZZLE_ROWS : BOX_ALIGN;
  return bytes > width ? bytes / width : 1;
}

/* NULL if part t of a buffer, whose panels f has, is a box: rows of whole panels that follow each other. */
static const char *
take_part(Arena *a, const Type *t, TmaForm *f)
{
  u32 d = 0, rows = 1, per = f->box[f->rank - 1], least = period(f, per * dtype_bytes(t->dt));
  bool whole = true;
  while (d + 1 < t->rank && t->shape[d] == 1)
    d++;
  for (u32 i = d; i + 1 < t->rank; i++) {
    rows *= t->shape[i];
    whole &= i == d || t->shape[i] == t->alloc_shape[i];
  }
  f->panels = t->shape[t->rank - 1] / per;
  if (whole && t->shape[t->rank - 1] % per == 0 && rows % least == 0)
    return NULL;
  return arena_printf(a, "a box is a whole buffer, or a part of one whose rows follow each other, %u or a multiple, and have %u elements "
                      "or a multiple, as panels do", least, per);
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

/* ---- windows ---- */

static u32
copy_ints(const Op *op, AttrId id, i32 *out)
{
  const Attr *a = op_attr(op, id);
  for (u32 i = 0; a && i < a->ints.n && i < WINDOW_DIMS; i++)
    out[i] = (i32)a->ints.v[i];
  return a ? a->ints.n : 0;
}

TmaWindow
tma_window(const Op *op)
{
  TmaWindow w = {.step = {1, 1, 1}};
  w.n = copy_ints(op, AT_LOWER, w.lower);
  copy_ints(op, AT_UPPER, w.upper);
  copy_ints(op, AT_STEPS, w.step);
  return w;
}

bool
tma_same_window(const TmaWindow *a, const TmaWindow *b)
{
  if (a->n != b->n)
    return false;
  for (u32 i = 0; i < a->n; i++)
    if (a->lower[i] != b->lower[i] || a->upper[i] != b->upper[i] || a->step[i] != b->step[i])
      return false;
  return true;
}

const char *
tma_window_error(Arena *a, const TmaWindow *w, u32 rank)
{
  if (rank < 3)
    return arena_printf(a, "a window is over a tensor of 3 to %d dimensions, and this one has %u", MAX_RANK, rank);
  if (w->n != rank - 2)
    return arena_printf(a, "a window over a tensor of %u dimensions has %u, as the first and the last have none; this one has %u", rank,
                        rank - 2, w->n);
  for (u32 i = 0; i < w->n; i++) {
    if (w->lower[i] < -WINDOW_MOST - 1 || w->lower[i] > WINDOW_MOST || w->upper[i] < -WINDOW_MOST - 1 || w->upper[i] > WINDOW_MOST)
      return arena_printf(a, "a window's corners are from %d to %d, not %d and %d", -WINDOW_MOST - 1, WINDOW_MOST, w->lower[i],
                          w->upper[i]);
    if (w->step[i] < 1 || w->step[i] > WINDOW_MOST)
      return arena_printf(a, "a window's steps are from 1 to %d, not %d", WINDOW_MOST, w->step[i]);
  }
  return NULL;
}

void
tma_copy_window(Op *to, const Op *from)
{
  static const AttrId ids[] = {AT_LOWER, AT_UPPER, AT_STEPS};
  for (u32 i = 0; i < COUNT(ids); i++) {
    const Attr *a = op_attr(from, ids[i]);
    if (a)
      op_set_ints(to, ids[i], a->ints.v, a->ints.n);
  }
}

/* What copies ask of one; all corners together have WINDOW_BITS bits. */
static const char *
window_limits(Arena *a, const Type *t, const TmaWindow *w)
{
  i32 most = w->n ? (1 << (WINDOW_BITS / w->n - 1)) - 1 : 0;
  if (t->rank != 2)
    return arena_printf(a, "what is copied through a window has two dimensions, pixels and channels, and this buffer %u", t->rank);
  if (t->shape[0] > PIXELS_MOST)
    return arena_printf(a, "copies through a window have at most %d pixels, and this buffer has %u", PIXELS_MOST, t->shape[0]);
  for (u32 i = 0; i < w->n; i++) {
    if (w->lower[i] < -most - 1 || w->lower[i] > most || w->upper[i] < -most - 1 || w->upper[i] > most)
      return arena_printf(a, "corners of a window of %u dimensions are from %d to %d for copies, not %d and %d", w->n, -most - 1, most,
                          w->lower[i], w->upper[i]);
    if (w->step[i] > STEP_MOST)
      return arena_printf(a, "steps of a window are at most %d for copies, not %d", STEP_MOST, w->step[i]);
  }
  return NULL;
}

/* ---- buffers ---- */

/* Does padding along dimension d lie behind all elements of the buffer? That of panels, and of the rows of a single one. */
static bool
ends_behind(const Type *t, u32 d)
{
  if (t->rank > 1 && d + 1 == t->rank)
    return row_bytes(t) % PANEL_UNIT == 0;
  return t->rank == 2 && t->shape[d] % SWIZZLE_ROWS == 0 && row_bytes(t) <= PANEL_MOST && is_pow2(row_bytes(t));
}

static const char *
extents_error(Arena *a, const Type *t, u32 rank)
{
  if (t->rank > rank)
    return arena_printf(a, "the buffer has %u dimensions, the tensor %u", t->rank, rank);
  for (u32 d = 0; d < t->rank; d++)       /* else who reads the buffer would read padding that no copy writes */
    if (!is_pow2(t->shape[d]) && !ends_behind(t, d))
      return arena_printf(a, "extents of a box are powers of two, or rows multiples of %d bytes, or so many of %d bytes at most that they "
                          "are a multiple of %d, and dimension %u has %u", PANEL_UNIT, PANEL_MOST, SWIZZLE_ROWS, d, t->shape[d]);
  if (row_bytes(t) % ROW_UNIT)
    return arena_printf(a, "rows of a box are multiples of %d bytes, those of this buffer have %u", ROW_UNIT, row_bytes(t));
  return t->pad_every ? "the buffer has padding, which boxes have not" : NULL;
}

const char *
tma_form_error(Ctx *c, const Type *t, u32 rank, const TmaWindow *w, TmaForm *out)
{
  TmaForm f = {.rank = rank, .window = *w};
  const char *wrong = w->n ? tma_window_error(c->scratch, w, rank) : NULL;
  if (!wrong && w->n)
    wrong = window_limits(c->scratch, t, w);
  if (!wrong)
    wrong = extents_error(c->scratch, t, rank);
  if (wrong)
    return wrong;
  const Type *whole = type_shared(c, t->dt, 0, t->rank, t->alloc_shape, NULL, t->layout, 0, 0);
  const Layout *l = t->layout ? t->layout : layout_panels_default(c, t->rank, t->alloc_shape, dtype_bytes(t->dt), t->rank - 1);
  for (u32 d = 0; d < rank; d++)
    f.box[d] = d < rank - t->rank ? 1 : t->shape[d - (rank - t->rank)];
  if (!l || !find_panels(whole, l, &f))
    return "no copy of a box lays a buffer out like this: it does so row by row, or in panels (layout panels)";
  wrong = memcmp(t->shape, t->alloc_shape, sizeof t->shape) ? take_part(c->scratch, t, &f) : NULL;
  if (wrong)
    return wrong;
  if (w->n) {
    f.pixels = t->shape[0];
    f.box[rank - 2] = 1;
    if (f.box[rank - 1] > BOX_MOST)
      return arena_printf(c->scratch, "copies through a window have at most %d channels in a row, and this buffer has %u", BOX_MOST,
                          f.box[rank - 1]);
  }
  wrong = find_chunks(c->scratch, t, &f);
  if (wrong)
    return wrong;
  *out = f;
  return NULL;
}

/* Seen on an H200; through a window it has not been asked. */
const char *
tma_at_error(Arena *a, DType d, i64 at)
{
  i64 begin = at * dtype_bytes(d);
  if (begin % ROW_UNIT == 0)
    return NULL;
  return arena_printf(a, "the box begins at %lld in its rows of %s, which is byte %lld: copies begin at multiples of %d bytes",
                      (long long)at, dtype_info[d].name, (long long)begin, ROW_UNIT);
}

/* PTX ISA, cp.reduce.async.bulk.tensor: what its operations take. */
bool
tma_reduces(const char *rmw, DType d)
{
  bool words = d == DT_U32 || d == DT_I32 || d == DT_U64 || d == DT_I64, halves = d == DT_F16 || d == DT_BF16;
  if (!strcmp(rmw, "add"))
    return words || halves || d == DT_F32 || d == DT_F64;
  return words || (halves && (!strcmp(rmw, "min") || !strcmp(rmw, "max")));
}

/* A view of other dimensions lies as its buffer is placed, which may be along another dimension; one of another type begins where its
 * buffer does, which a swizzle may not allow. */
const char *
tma_view_error(const Value *buffer)
{
  for (const Value *v = buffer; v && v->def && op_is_view(v->def); v = op_buffer(v->def)) {
    bool turned = v->def->code == OP_SHARED_PERMUTE || v->def->code == OP_SHARED_RESHAPE;
    if (v->def->code == OP_SHARED_CAST)
      return "a box is a buffer as it was made, and this is its memory as another";
    if (turned && !buffer->type->layout)
      return "a box is a buffer with the dimensions that it was made with, and this view has others";
  }
  return NULL;
}

/* ---- tensors that are made ---- */

Value *
tensor_pointer(const Value *tensor)
{
  return op_operand(tensor->def, 0);
}

Value *
tensor_number(const Value *tensor, OpCode asked, u32 d)
{
  return op_operand(tensor->def, 1 + d + (asked == OP_TENSOR_STRIDE ? tensor->type->rank : 0));
}

bool
tensor_is_made(const Value *tensor)
{
  return tensor->def && tensor->def->code == OP_TENSOR_AT;
}

Value *
tensor_map_memory(const Value *tensor)
{
  u32 numbers = 2u * tensor->type->rank - 1;
  return tensor_is_made(tensor) && tensor->def->noperands > 1 + numbers ? op_operand(tensor->def, 1 + numbers) : NULL;
}

const Op *
tensor_first_copy(const Value *tensor)
{
  const Op *first = NULL;
  for (const Use *u = tensor_map_memory(tensor) ? tensor->uses : NULL; u; u = u->next)
    if (op_tensor(u->user) == tensor && op_buffer(u->user))
      first = u->user;
  return first;
}
