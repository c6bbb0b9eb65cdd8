/* tensor.c - tensor maps, and the boxes that copies move by them (PTX ISA, "Tensors", tiled mode).
 *
 * A map is 128 bytes of a form of our own, with a magic number in front: one that was made elsewhere is refused. The checks are those
 * of the driver's encoder. In shared memory a box is packed, innermost dimension first; a swizzle then exchanges its 16-byte pieces
 * by bits of their addresses in shared memory. Coordinates are signed, and what lies outside of the tensor is filled by a load and
 * left alone by a store. */
#include "fp.h"
#include "internal.h"
#include <string.h>

enum { PIECE = 16, BOX_MOST = 256, STEP_MOST = 8, SWIZZLES = 4 };
#define MAP_MAGIC  0x70616d2d656c6974ull
#define STRIDE_MOST (1ull << 40)

typedef struct Map {
  uint64_t magic, base, stride[MAX_RANK - 1];
  uint32_t extent[MAX_RANK];           /* - 1 */
  uint16_t box[MAX_RANK];
  uint8_t step[MAX_RANK], rank, type, swizzle, nan;
} Map;
_Static_assert(sizeof(Map) <= SIM_TENSOR_MAP_BYTES, "a map fits its 128 bytes");

/* By the driver's numbers. ftz: subnormal numbers become zero in a load; round: the bits below are rounded away. */
static const struct { uint8_t type, bytes; bool ftz, round; } types[] = {
  {T_U8, 1, false, false},  {T_U16, 2, false, false}, {T_U32, 4, false, false},  {T_S32, 4, false, false}, {T_U64, 8, false, false},
  {T_S64, 8, false, false}, {T_F16, 2, false, false}, {T_F32, 4, false, false},  {T_F64, 8, false, false}, {T_BF16, 2, false, false},
  {T_F32, 4, true, false},  {T_TF32, 4, false, true}, {T_TF32, 4, true, true},
};
static const uint8_t swizzle_span[SWIZZLES] = {0, 32, 64, 128};

/* ---- encoding ---- */

static int
check_dimension(const SimTensor *t, uint32_t i, SimError *err)
{
  if (t->extent[i] < 1 || t->extent[i] > 1ull << 32)
    return sim_error_set(err, SIM_E_ARGUMENT, "extent %u of a tensor map is %llu: 1 to 2^32 are possible", i,
                         (unsigned long long)t->extent[i]);
  if (t->box[i] < 1 || t->box[i] > BOX_MOST)
    return sim_error_set(err, SIM_E_ARGUMENT, "the box of a tensor map has %u elements in dimension %u: 1 to %d are possible", t->box[i], i,
                         BOX_MOST);
  if (t->step[i] < 1 || t->step[i] > STEP_MOST)
    return sim_error_set(err, SIM_E_ARGUMENT, "the step of a tensor map in dimension %u is %u: 1 to %d are possible", i, t->step[i],
                         STEP_MOST);
  if (i && (t->stride[i - 1] % PIECE || t->stride[i - 1] >= STRIDE_MOST))
    return sim_error_set(err, SIM_E_ARGUMENT, "the stride of a tensor map in dimension %u is %llu bytes:"
                         " a multiple of 16 below 2^40 is needed",
                         i, (unsigned long long)t->stride[i - 1]);
  return 0;
}

static int
check_tensor(const SimTensor *t, SimError *err)
{
  if (t->type < 0 || (size_t)t->type >= sizeof types / sizeof *types)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of type %d", t->type);
  if (t->rank < 1 || t->rank > MAX_RANK)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of rank %u: 1 to 5 are possible", t->rank);
  if (t->address % PIECE)
    return sim_error_set(err, SIM_E_ARGUMENT, "the tensor of a tensor map begins at 0x%llx: a multiple of 16 is needed",
                         (unsigned long long)t->address);
  if (t->interleave)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map with interleave %d: this machine has none", t->interleave);
  if (t->swizzle < 0 || t->swizzle >= SWIZZLES || t->promotion < 0 || t->promotion > 3 || t->fill < 0 || t->fill > 1)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map with swizzle %d, promotion %d, fill %d", t->swizzle, t->promotion, t->fill);
  if (t->fill && ptx_type_class[types[t->type].type] != TC_FLOAT)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of whole numbers that fills with NaN");
  for (uint32_t i = 0; i < t->rank; i++)
    if (check_dimension(t, i, err))
      return -1;
  uint32_t inner = t->box[0] * types[t->type].bytes;
  if (inner % PIECE)
    return sim_error_set(err, SIM_E_ARGUMENT, "the box of a tensor map has rows of %u bytes: a multiple of 16 is needed", inner);
  if (t->swizzle && inner > swizzle_span[t->swizzle])
    return sim_error_set(err, SIM_E_ARGUMENT, "the box of a tensor map has rows of %u bytes, which is more than its swizzle's %u", inner,
                         swizzle_span[t->swizzle]);
  return 0;
}

int
sim_tensor_map(const SimTensor *t, void *out, SimError *err)
{
  Map m = {.magic = MAP_MAGIC, .base = t->address};
  memset(err, 0, sizeof *err);
  if (check_tensor(t, err))
    return -1;
  m.rank = (uint8_t)t->rank;
  m.type = (uint8_t)t->type;
  m.swizzle = (uint8_t)t->swizzle;
  m.nan = (uint8_t)t->fill;
  for (uint32_t i = 0; i < t->rank; i++) {
    m.extent[i] = (uint32_t)(t->extent[i] - 1);
    m.box[i] = (uint16_t)t->box[i];
    m.step[i] = i ? (uint8_t)t->step[i] : 1;     /* without interleave that of the innermost counts for nothing */
    if (i)
      m.stride[i - 1] = t->stride[i - 1];
  }
  memset(out, 0, SIM_TENSOR_MAP_BYTES);
  memcpy(out, &m, sizeof m);
  return 0;
}

/* ---- boxes ---- */

static bool
map_fault(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, const char *what)
{
  sim_fault(b, w, in, (int)lane, SIM_E_TRAP, at, "the tensor map at 0x%llx %s", (unsigned long long)at, what);
  return false;
}

static bool
read_map(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, Map *m)
{
  uint64_t addr = at;
  Space sp = mem_space_of(&addr);
  if (sp != SP_PARAM && sp != SP_GLOBAL)
    return map_fault(b, w, in, lane, at, "is neither a parameter nor in global memory");
  if (addr % 64)
    return map_fault(b, w, in, lane, at, "is not at a multiple of 64");
  for (uint32_t i = 0; i < SIM_TENSOR_MAP_BYTES; i += 64) {
    const uint8_t *p = mem_host(b, w, in, lane, sp, addr + i, 64, false);
    LaneAccess half = {.space = sp, .addr = addr + i, .lane = lane, .size = 64};
    if (!p || (sp == SP_GLOBAL && mem_check(b, w, in, &half)))
      return false;
    if (i < sizeof *m)
      memcpy((uint8_t *)m + i, p, sizeof *m - i < 64 ? sizeof *m - i : 64);
  }
  if (m->magic == MAP_MAGIC)
    return true;
  return map_fault(b, w, in, lane, at, "was not made by this machine (sim_tensor_map)");
}

bool
box_named(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t map, Box *out)
{
  Map m;
  if (!read_map(b, w, in, lane, map, &m))
    return false;
  if (m.rank != in->bulk.rank)
    return map_fault(b, w, in, lane, map, "has another rank than the instruction");
  *out = (Box){.base = m.base, .rank = m.rank, .bytes = types[m.type].bytes, .type = m.type, .swizzle = m.swizzle, .nan = m.nan};
  for (uint32_t i = 0; i < m.rank; i++) {
    out->extent[i] = m.extent[i];
    out->step[i] = m.step[i];
    out->size[i] = (m.box[i] + m.step[i] - 1u) / m.step[i];
    out->stride[i] = i ? m.stride[i - 1] : out->bytes;
    out->at[i] = LANES_OF(int32_t, w, b->kernel->lists[in->list + i])[lane];
  }
  return true;
}

static uint32_t
box_rows(const Box *x)
{
  uint32_t n = 1;
  for (uint32_t i = 1; i < x->rank; i++)
    n *= x->size[i];
  return n;
}

uint32_t
box_bytes(const Box *x)
{
  return box_rows(x) * x->size[0] * x->bytes;
}

/* Of a row, the elements inside the tensor: count from `first` on, the first of them at `at`. */
typedef struct Row { uint64_t at; uint32_t first, count; } Row;

static Row
row_of(const Box *x, uint32_t r)
{
  Row row = {x->base, 0, 0};
  for (uint32_t i = 1; i < x->rank; i++) {
    int64_t c = (int64_t)x->at[i] + (int64_t)(r % x->size[i]) * x->step[i];
    if (c < 0 || c > x->extent[i])
      return row;
    row.at += (uint64_t)c * x->stride[i];
    r /= x->size[i];
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

int
box_check(Block *b, Warp *w, const Insn *in, uint32_t lane, const Box *x, bool write, Doer by)
{
  for (uint32_t r = 0; r < box_rows(x); r++) {
    Row row = row_of(x, r);
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

/* What a load makes of the elements, and puts where there are none. */
static void
convert(const Box *x, uint8_t *p, uint32_t n)
{
  for (uint32_t i = 0; (types[x->type].ftz || types[x->type].round) && i < n; i++) {
    uint32_t v;
    memcpy(&v, p + 4 * i, 4);
    if (types[x->type].ftz && !(v & 0x7f800000u))
      v &= 0x80000000u;
    if (types[x->type].round && (v & 0x7f800000u) != 0x7f800000u)
      v = (v + 0x1000u) & ~0x1fffu;
    memcpy(p + 4 * i, &v, 4);
  }
}

static void
fill_row(const Box *x, uint8_t *row, uint32_t n)
{
  memset(row, x->nan ? 0xff : 0, n);
  for (uint32_t i = x->bytes - 1; x->nan && i < n; i += x->bytes)
    row[i] = 0x7f;
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
      memcpy(b->shared + swizzled(shared + r * n + i, swizzle_span[x->swizzle]), row + i, PIECE);
  }
}

static void
combine_row(const Box *x, const Row *out, const uint8_t *row, ModId op)
{
  Type t = (Type)types[x->type].type;
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
    Row out = row_of(x, r);
    for (uint32_t i = 0; i < n; i += PIECE)
      memcpy(row + i, b->shared + swizzled(shared + r * n + i, swizzle_span[x->swizzle]), PIECE);
    if (op)
      combine_row(x, &out, row, op);
    else if (out.count)
      memcpy((uint8_t *)(uintptr_t)out.at, row + out.first * x->bytes, out.count * x->bytes);
  }
}
