/* tensor.c - the boxes that copies move by tensor maps (PTX ISA, "Tensors", tiled and im2col mode).
 *
 * In shared memory a box is packed, innermost dimension first, but rows that are narrower than the swizzle stand at its width, and what is
 * between is left alone; the swizzle then exchanges 16-byte pieces by bits of their addresses in shared memory. Coordinates are signed, and
 * what lies outside of the tensor is filled by a load and left alone by a store.
 *
 * A box begins at a multiple of 16 bytes of its rows: hardware takes any other for an illegal instruction (seen on an H200).
 *
 * In im2col mode the rows of a box are pixels: from the first on they go through the places between two corners, innermost dimension
 * first, by steps, and then to the next image; each is then shifted by offsets that the instruction has. */
#include "fp.h"
#include "tensor.h"
#include <string.h>

enum { PIECE = 16 };

/* ---- boxes ---- */

static bool
take_pixels(Block *b, Warp *w, const Insn *in, uint32_t lane, const Map *m, Box *out)
{
  uint32_t n = m->rank - 2u;
  const uint32_t *list = b->kernel->lists + in->list + m->rank;
  out->im2col = true;
  out->pixels = m->pixels;
  out->size[0] = m->box[0];
  for (uint32_t i = 1; i <= n; i++) {
    out->lower[i] = m->lower[i - 1];
    out->upper[i] = (int32_t)m->extent[i] + m->upper[i - 1];
    out->shift[i] = in->bulk.what == BULK_STORE ? 0 : LANES_OF(uint16_t, w, list[i - 1])[lane];
    if (out->shift[i] >> 16 / n)
      return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "an offset of pixels of %u in dimension %u: 0 to %u are possible", out->shift[i],
                       i, (1u << 16 / n) - 1) == 0;
  }
  return true;
}

static bool
begins_whole(Block *b, Warp *w, const Insn *in, uint32_t lane, const Box *x)
{
  char thread[48];
  int64_t begin = (int64_t)x->at[0] * x->bytes;
  if (begin % PIECE == 0)
    return true;
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  return sim_fault(b, w, in, (int)lane, SIM_E_ALIGN, 0, "thread %s copies a box whose innermost coordinate is %d, at byte %lld of a row:"
                   " a multiple of %d is needed", thread, x->at[0], (long long)begin, PIECE) == 0;
}

bool
box_named(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t map, Box *out)
{
  Map m;
  if (!map_read(b, w, in, lane, map, &m))
    return false;
  if (m.rank != in->bulk.rank)
    return map_fault(b, w, in, lane, map, "has another rank than the instruction");
  if ((m.pixels != 0) != in->bulk.im2col)
    return map_fault(b, w, in, lane, map, m.pixels ? "is of im2col mode, and the instruction is not" : "is not of im2col mode");
  *out = (Box){.base = m.base, .rank = m.rank, .bytes = map_types[m.type].bytes, .type = m.type, .swizzle = m.swizzle, .nan = m.nan};
  for (uint32_t i = 0; i < m.rank; i++) {
    out->extent[i] = m.extent[i];
    out->step[i] = m.step[i];
    out->size[i] = (m.box[i] + m.step[i] - 1u) / m.step[i];
    out->stride[i] = i ? m.stride[i - 1] : out->bytes;
    out->at[i] = LANES_OF(int32_t, w, b->kernel->lists[in->list + i])[lane];
  }
  return begins_whole(b, w, in, lane, out) && (!m.pixels || take_pixels(b, w, in, lane, &m, out));
}

static uint32_t
box_rows(const Box *x)
{
  uint32_t n = 1;
  for (uint32_t i = 1; i < x->rank; i++)
    n *= x->size[i];
  return x->im2col ? x->pixels : n;
}

uint32_t
box_bytes(const Box *x)
{
  return box_rows(x) * x->size[0] * x->bytes;
}

/* From one row to the next in shared memory. */
static uint32_t
box_pitch(const Box *x)
{
  uint32_t span = map_swizzle_span[x->swizzle];
  return span ? span : x->size[0] * x->bytes;
}

uint32_t
box_reach(const Box *x)
{
  return box_rows(x) * box_pitch(x);
}

/* Of a row, the elements inside the tensor: count from `first` on, the first of them at `at`. */
typedef struct Row { uint64_t at; uint32_t first, count; } Row;

/* Along dimension i, where the pixel begins that comes *n steps behind the first; *n becomes the steps of the next dimension. */
static int64_t
pixel_place(const Box *x, uint32_t i, uint32_t *n)
{
  int64_t at = x->at[i], lower = x->lower[i], upper = x->upper[i], step = x->step[i];
  uint64_t first = at > upper ? 1 : (uint64_t)((upper - at) / step) + 1, all = (uint64_t)((upper - lower) / step) + 1, left = *n;
  if (left < first) {
    *n = 0;
    return at + (int64_t)left * step + x->shift[i];
  }
  left -= first;
  *n = (uint32_t)(1 + left / all);
  return lower + (int64_t)(left % all) * step + x->shift[i];
}

/* The coordinate of row *r along dimension i; *r becomes the row of what lies further out. */
static int64_t
row_place(const Box *x, uint32_t i, uint32_t *r)
{
  if (x->im2col)
    return i + 1 < x->rank ? pixel_place(x, i, r) : (int64_t)x->at[i] + *r;
  int64_t c = (int64_t)x->at[i] + (int64_t)(*r % x->size[i]) * x->step[i];
  *r /= x->size[i];
  return c;
}

static Row
row_of(const Box *x, uint32_t r)
{
  Row row = {x->base, 0, 0};
  for (uint32_t i = 1; i < x->rank; i++) {
    int64_t c = row_place(x, i, &r);
    if (c < 0 || c > x->extent[i])
      return row;
    row.at += (uint64_t)c * x->stride[i];
  }
  int64_t from = x->at[0] < 0 ? 0 : x->at[0], to = (int64_t)x->at[0] + x->size[0] - 1;
  to = to > x->extent[0] ? x->extent[0] : to;
  if (from > to)
    return row;
  row.first = (uint32_t)(from - x->at[0]);
  row.count = (uint32_t)(to - from + 1);
  row.at += (uint64_t)from * x->bytes;
  return row;
}

/* What is touched of a row. A store that is no reduction (whole) writes whole pieces up to the end of a row of the tensor: the last one
 * with what the box has behind it. (Seen on an H200.) */
static Row
touched_row(const Box *x, uint32_t r, bool whole)
{
  Row row = row_of(x, r);
  if (!whole || !row.count)
    return row;
  int64_t end = (int64_t)x->at[0] + row.first + row.count;
  uint32_t over = end > (int64_t)x->extent[0] ? (uint32_t)(-end * x->bytes & (PIECE - 1)) / x->bytes : 0;
  uint32_t room = x->size[0] - row.first - row.count;
  row.count += over < room ? over : room;
  return row;
}

int
box_check(Block *b, Warp *w, const Insn *in, uint32_t lane, const Box *x, bool write, Doer by)
{
  for (uint32_t r = 0; r < box_rows(x); r++) {
    Row row = touched_row(x, r, write && !in->bulk.op);
    LaneAccess part = {.space = SP_GLOBAL, .addr = row.at, .lane = lane, .size = row.count * x->bytes, .write = write,
                       .agent = by.agent, .segment = by.segment, .strong = in->bulk.op != 0, .update = in->bulk.op != 0};
    if (!row.count)
      continue;
    if (!mem_bytes(b, w, in, lane, SP_GLOBAL, row.at, part.size, write) || mem_check(b, w, in, &part))
      return -1;
    mem_stats_run(b, row.at, part.size, write);
  }
  return 0;
}

/* ---- moving ---- */

/* What a load makes of the elements: tf32 is rounded to nearest, ties to even, and has one nan. Types that are said to flush do not (seen
 * on an H200). */
static void
convert(const Box *x, uint8_t *p, uint32_t n)
{
  for (uint32_t i = 0; map_types[x->type].round && i < n; i++) {
    uint32_t v;
    memcpy(&v, p + 4 * i, 4);
    if ((v & 0x7fffffffu) > 0x7f800000u)
      v = 0x7fffe000u;
    v = (v + 0xfffu + (v >> 13 & 1)) & ~0x1fffu;
    memcpy(p + 4 * i, &v, 4);
  }
}

/* Words of 16 bits with 0x7ff7 are nans of all types (seen on an H200). */
static void
fill_row(const Box *x, uint8_t *row, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    row[i] = !x->nan ? 0 : i % 2 ? 0x7f : 0xf7;
}

/* Where the 16 bytes of row r are that begin at its byte i. */
static uint32_t
piece_place(const Box *x, uint32_t shared, uint32_t r, uint32_t i)
{
  return swizzled(shared + r * box_pitch(x) + i, map_swizzle_span[x->swizzle]);
}

void
box_load(Block *b, const Box *x, uint32_t shared)
{
  uint8_t row[BOX_MOST * 8];
  uint32_t n = x->size[0] * x->bytes;
  for (uint32_t r = 0; r < box_rows(x); r++) {
    Row in = row_of(x, r);
    if (in.count < x->size[0])
      fill_row(x, row, n);
    if (in.count)
      memcpy(row + in.first * x->bytes, (const uint8_t *)(uintptr_t)in.at, in.count * x->bytes);
    convert(x, row + in.first * x->bytes, in.count);
    for (uint32_t i = 0; i < n; i += PIECE)
      memcpy(b->shared + piece_place(x, shared, r, i), row + i, PIECE);
  }
}

bool
box_reduces(const Box *x, ModId op)
{
  TypeClass c = ptx_type_class[map_types[x->type].type];
  bool words = (c == TC_UINT || c == TC_SINT) && x->bytes >= 4, halves = c == TC_FLOAT && x->bytes == 2;
  switch (op) {
  case M_ADD: return words || c == TC_FLOAT;
  case M_MIN: case M_MAX: return words || halves;
  case M_INC: case M_DEC: return c == TC_UINT && x->bytes == 4;
  default: return words;
  }
}

static void
combine_row(const Box *x, const Row *out, const uint8_t *row, ModId op)
{
  Type t = (Type)map_types[x->type].type;
  for (uint32_t i = 0; i < out->count; i++) {
    uint64_t v = 0;
    memcpy(&v, row + (out->first + i) * x->bytes, x->bytes);
    atom_combine(op, t == T_TF32 ? T_F32 : t, (uint8_t *)(uintptr_t)(out->at + (uint64_t)i * x->bytes), v);
  }
}

void
box_store(Block *b, const Box *x, uint32_t shared, ModId op)
{
  uint8_t row[BOX_MOST * 8];
  uint32_t n = x->size[0] * x->bytes;
  for (uint32_t r = 0; r < box_rows(x); r++) {
    Row out = touched_row(x, r, !op);
    for (uint32_t i = 0; i < n; i += PIECE)
      memcpy(row + i, b->shared + piece_place(x, shared, r, i), PIECE);
    if (op)
      combine_row(x, &out, row, op);
    else if (out.count)
      memcpy((uint8_t *)(uintptr_t)out.at, row + out.first * x->bytes, out.count * x->bytes);
  }
}
