/* tensor_map.c - tensor maps: encoded by the host, read by copies, changed and prefetched by kernels (PTX ISA, "tensormap").
 *
 * A map that was made elsewhere is refused. The checks are those of the driver's encoder.
 *
 * A kernel may change maps in memory (tensormap.replace). Copies read a map by a proxy of its own: they see a change when its writer has
 * released it to that proxy and the thread that starts the copy has acquired it, both by fences; see map_seen. */
#include "tensor.h"
#include <stdio.h>
#include <string.h>

enum { PIECE = 16, STEP_MOST = 8, PIXELS_MOST = 1024, HALF = SIM_TENSOR_MAP_BYTES / 2 };
#define STRIDE_MOST (1ull << 40)

const MapType map_types[] = {
  {T_U8, 1, false},  {T_U16, 2, false}, {T_U32, 4, false}, {T_S32, 4, false}, {T_U64, 8, false}, {T_S64, 8, false}, {T_F16, 2, false},
  {T_F32, 4, false}, {T_F64, 8, false}, {T_BF16, 2, false}, {T_F32, 4, false}, {T_TF32, 4, true}, {T_TF32, 4, true},
};
const uint8_t map_swizzle_span[SWIZZLES] = {0, 32, 64, 128};

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
  if (t->type < 0 || (size_t)t->type >= sizeof map_types / sizeof *map_types)
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
  if (t->fill && ptx_type_class[map_types[t->type].type] != TC_FLOAT)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of whole numbers that fills with NaN");
  for (uint32_t i = 0; i < t->rank; i++)
    if (check_dimension(t, i, err))
      return -1;
  uint32_t inner = t->box[0] * map_types[t->type].bytes;
  if (inner % PIECE)
    return sim_error_set(err, SIM_E_ARGUMENT, "the box of a tensor map has rows of %u bytes: a multiple of 16 is needed", inner);
  if (t->swizzle && inner > map_swizzle_span[t->swizzle])
    return sim_error_set(err, SIM_E_ARGUMENT, "the box of a tensor map has rows of %u bytes, which is more than its swizzle's %u", inner,
                         map_swizzle_span[t->swizzle]);
  return 0;
}

static Map
encoded(const SimTensor *t)
{
  Map m = {.magic = MAP_MAGIC, .base = t->address, .rank = (uint8_t)t->rank, .type = (uint8_t)t->type, .swizzle = (uint8_t)t->swizzle,
           .nan = (uint8_t)t->fill};
  for (uint32_t i = 0; i < t->rank; i++) {
    m.extent[i] = (uint32_t)(t->extent[i] - 1);
    m.box[i] = (uint16_t)t->box[i];
    m.step[i] = i ? (uint8_t)t->step[i] : 1;     /* without interleave that of the innermost counts for nothing */
    if (i)
      m.stride[i - 1] = t->stride[i - 1];
  }
  return m;
}

static void
put_map(void *out, const Map *m)
{
  memset(out, 0, SIM_TENSOR_MAP_BYTES);
  memcpy(out, m, sizeof *m);
}

int
sim_tensor_map(const SimTensor *t, void *out, SimError *err)
{
  memset(err, 0, sizeof *err);
  if (check_tensor(t, err))
    return -1;
  Map m = encoded(t);
  put_map(out, &m);
  return 0;
}

/* Corners have 16 bits together. */
static int
check_corners(const SimTensor *t, const SimPixels *p, SimError *err)
{
  uint32_t n = t->rank - 2, bits = 16 / n;
  int32_t most = (1 << (bits - 1)) - 1;
  for (uint32_t i = 0; i < n; i++) {
    if (p->lower[i] < -most - 1 || p->lower[i] > most || p->upper[i] < -most - 1 || p->upper[i] > most)
      return sim_error_set(err, SIM_E_ARGUMENT, "the corners of a tensor map are %d and %d in dimension %u: %d to %d are possible",
                           p->lower[i], p->upper[i], i + 1, -most - 1, most);
    if (p->lower[i] > (int64_t)t->extent[i + 1] - 1 + p->upper[i])
      return sim_error_set(err, SIM_E_ARGUMENT, "the corners of a tensor map leave no pixel in dimension %u", i + 1);
  }
  return 0;
}

int
sim_tensor_map_im2col(const SimTensor *t, const SimPixels *p, void *out, SimError *err)
{
  uint32_t box[MAX_RANK] = {p->channels, 1, 1, 1, 1};
  SimTensor tiled = *t;
  tiled.box = box;
  memset(err, 0, sizeof *err);
  if (t->rank < 3)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of pixels of rank %u: 3 to 5 are possible", t->rank);
  if (p->pixels < 1 || p->pixels > PIXELS_MOST)
    return sim_error_set(err, SIM_E_ARGUMENT, "a tensor map of %u pixels: 1 to %d are possible", p->pixels, PIXELS_MOST);
  if (check_tensor(&tiled, err) || check_corners(t, p, err))
    return -1;
  Map m = encoded(&tiled);
  m.pixels = (uint16_t)p->pixels;
  for (uint32_t i = 0; i + 2 < t->rank; i++) {
    m.lower[i] = (int16_t)p->lower[i];
    m.upper[i] = (int16_t)p->upper[i];
  }
  put_map(out, &m);
  return 0;
}

/* ---- reading ---- */

bool
map_fault(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, const char *what)
{
  sim_fault(b, w, in, (int)lane, SIM_E_TRAP, at, "the tensor map at 0x%llx %s", (unsigned long long)at, what);
  return false;
}

/* The changes of a map in global memory that a launch has made. */
static MemWrites
map_writes(const Block *b, uint64_t at)
{
  MemWrites low = mem_writes(b, at, HALF), high = mem_writes(b, at + HALF, HALF);
  return (MemWrites){low.sum + 3 * high.sum, low.newest > high.newest ? low.newest : high.newest};
}

static bool
acquired(const Warp *w, uint64_t at, uint64_t sum)
{
  for (uint32_t i = 0; i < MAP_FENCES; i++)
    if (w->map_fence[i].at == at && w->map_fence[i].sum == sum)
      return true;
  return false;
}

/* Whether the writer of a record has a fence behind it; of another cluster that is not known. */
static bool
released(const Block *b, uint64_t record)
{
  const Segment *s = record_segment(b->launch, record);
  if (b->kernel->code[record & PC_MASK].fn.warp == tensormap_copy || s->agent >= b->nwarps)
    return true;
  for (uint32_t i = 0; i < b->cluster->n; i++)
    if (b->cluster->block[i]->index == s->block)
      return s->clock < b->cluster->block[i]->warp[s->agent].maps_released;
  return true;
}

static bool
map_seen(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at)
{
  MemWrites now = b->check ? map_writes(b, at) : (MemWrites){0, 0};
  char where[200], what[320];
  if (!now.sum || (released(b, now.newest) && acquired(w, at, now.sum)))
    return true;
  uint32_t pc = (uint32_t)now.newest & PC_MASK;
  const char *missing = released(b, now.newest) ? "acquire of this thread" : "release of the thread that did so";
  snprintf(what, sizeof what, "was changed at %s, and there is no fence.proxy.tensormap::generic.%s behind that",
           sim_loc_text(b, pc, where, sizeof where), missing);
  map_fault(b, w, in, lane, at, what);
  sim_fault_also(b, pc);
  return false;
}

/* The bytes of a map, with their order if they are in global memory. */
static bool
map_bytes(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, Map *m)
{
  uint64_t addr = at;
  Space sp = mem_space_of(&addr);
  if (sp != SP_PARAM && sp != SP_GLOBAL)
    return map_fault(b, w, in, lane, at, "is neither a parameter nor in global memory");
  if (addr % HALF)
    return map_fault(b, w, in, lane, at, "is not at a multiple of 64");
  for (uint32_t i = 0; i < SIM_TENSOR_MAP_BYTES; i += HALF) {
    const uint8_t *p = mem_host(b, w, in, lane, sp, addr + i, HALF, false);
    LaneAccess half = {.space = sp, .addr = addr + i, .lane = lane, .size = HALF};
    if (!p || (sp == SP_GLOBAL && mem_check(b, w, in, &half)))
      return false;
    if (i < sizeof *m)
      memcpy((uint8_t *)m + i, p, sizeof *m - i < HALF ? sizeof *m - i : HALF);
  }
  return true;
}

static bool
map_foreign(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at)
{
  return map_fault(b, w, in, lane, at, "was not made by this machine (sim_tensor_map)");
}

/* What a kernel has put together is checked as what the host encodes. */
static bool
map_sound(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, const Map *m)
{
  uint64_t extent[MAX_RANK];
  uint32_t box[MAX_RANK], step[MAX_RANK];
  SimTensor t = {.type = m->type, .swizzle = m->swizzle, .fill = m->nan, .rank = m->rank, .address = m->base, .extent = extent,
                 .stride = m->stride, .box = box, .step = step};
  SimError err = {.kind = SIM_OK};
  char what[300];
  for (uint32_t i = 0; i < MAX_RANK; i++) {
    extent[i] = (uint64_t)m->extent[i] + 1;
    box[i] = m->box[i];
    step[i] = i ? m->step[i] : 1;
  }
  if (!m->changed || check_tensor(&t, &err) == 0)
    return true;
  snprintf(what, sizeof what, "was changed by a kernel, and is wrong: %.250s", err.message);
  return map_fault(b, w, in, lane, at, what);
}

bool
map_read(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, Map *m)
{
  uint64_t addr = at;
  if (!map_bytes(b, w, in, lane, at, m) || (mem_space_of(&addr) == SP_GLOBAL && !map_seen(b, w, in, lane, at)))
    return false;
  if (m->magic != MAP_MAGIC)
    return map_foreign(b, w, in, lane, at);
  return map_sound(b, w, in, lane, at, m);
}

/* ---- maps that kernels change ---- */

/* The value of a field, -1 if it cannot have that. What depends on others is checked when the map is used. */
static int
set_field(Map *m, ModId field, uint32_t i, uint64_t v)
{
  static const uint8_t driver_types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};      /* of PTX's numbers */
  switch (field) {
  case M_GLOBAL_ADDRESS: m->base = v; return 0;
  case M_RANK: m->rank = (uint8_t)(v < MAX_RANK ? v + 1 : 0); break;
  case M_BOX_DIM: m->box[i] = (uint16_t)(v > BOX_MOST ? 0 : v); return v && v <= BOX_MOST ? 0 : -1;
  case M_GLOBAL_DIM: m->extent[i] = (uint32_t)v - 1; return v ? 0 : -1;
  case M_GLOBAL_STRIDE: m->stride[i] = v; return i + 1 < MAX_RANK ? 0 : -1;
  case M_ELEMENT_STRIDE: m->step[i] = (uint8_t)v; return v && v <= STEP_MOST ? 0 : -1;
  case M_ELEMTYPE: m->type = v < sizeof driver_types ? driver_types[v] : 0; return v < sizeof driver_types ? 0 : -1;
  case M_INTERLEAVE_LAYOUT: return v ? -1 : 0;
  case M_SWIZZLE_MODE: m->swizzle = (uint8_t)v; return v < SWIZZLES ? 0 : -1;
  default: m->nan = (uint8_t)v; return v < 2 ? 0 : -1;
  }
  return m->rank ? 0 : -1;
}

/* 128 bytes that a lane names, found, and noted as read or written; NULL with the fault. */
static uint8_t *
map_place(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t at, bool write)
{
  uint8_t *low = mem_host(b, w, in, lane, sp, at, HALF, write), *high = low ? mem_host(b, w, in, lane, sp, at + HALF, HALF, write) : NULL;
  for (uint32_t i = 0; high && i < SIM_TENSOR_MAP_BYTES; i += HALF) {
    LaneAccess half = {.space = sp, .addr = at + i, .lane = lane, .size = HALF, .write = write, .update = write && sp != SP_GLOBAL};
    if (mem_check(b, w, in, &half))
      return NULL;
  }
  return high ? low : NULL;
}

/* A map may be begun from zeros. */
int
tensormap_replace(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const TensorMapOps *o = &in->tensor_map;
  uint64_t at[LANES];
  mem_address(w, o->base, &o->at, at);
  FOR_LANES(i, m) {
    Space sp = o->at.space == SP_GENERIC ? mem_space_of(&at[i]) : mem_space((Space)o->at.space);
    uint64_t v = o->wide ? LANES_OF(uint64_t, w, o->value)[i] : LANES_OF(uint32_t, w, o->value)[i];
    uint8_t *p = map_place(b, w, in, i, sp, at[i], true);
    Map map;
    if (!p)
      return -1;
    memcpy(&map, p, sizeof map);
    if (map.magic && map.magic != MAP_MAGIC)
      return map_foreign(b, w, in, i, at[i]) ? 0 : -1;
    if (map.pixels || o->ord >= MAX_RANK || set_field(&map, (ModId)o->field, o->ord, v))
      return sim_fault(b, w, in, (int)i, SIM_E_TRAP, at[i], "tensormap.replace: a tiled tensor map cannot have %llu there",
                       (unsigned long long)v);
    map.magic = MAP_MAGIC;
    map.changed = 1;
    memcpy(p, &map, sizeof map);
  }
  return 0;
}

static void
release_maps(Block *b, Warp *w, Scope scope)
{
  if (!b->check)
    return;
  sync_fence(b, w, scope);
  w->maps_released = w->clock;
}

/* The warp copies one map, and releases it. */
int
tensormap_copy(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const TensorMapOps *o = &in->tensor_map;
  uint64_t from[LANES];
  uint32_t lane = (uint32_t)__builtin_ctz(m);
  mem_address(w, o->base, &o->at, from);
  const uint8_t *p = map_place(b, w, in, lane, SP_SHARED, from[lane], false);
  uint64_t at = LANES_OF(uint64_t, w, o->value)[lane] + (uint64_t)(int64_t)o->to_offset;
  uint8_t *to = p ? map_place(b, w, in, lane, SP_GLOBAL, at, true) : NULL;
  if (!to)
    return -1;
  memcpy(to, p, SIM_TENSOR_MAP_BYTES);
  release_maps(b, w, (Scope)o->scope);
  return 0;
}

int
tensormap_release(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  release_maps(b, w, (Scope)in->tensor_map.scope);
  return 0;
}

/* A map that was acquired before is acquired as it is now; of too many the oldest is forgotten. */
static void
note_acquired(Warp *w, uint64_t at, uint64_t sum)
{
  for (uint32_t i = 0; i < MAP_FENCES; i++)
    if (w->map_fence[i].at == at) {
      w->map_fence[i].sum = sum;
      return;
    }
  w->map_fence[w->map_fences++ % MAP_FENCES] = (MapFence){at, sum};
}

int
tensormap_acquire(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const TensorMapOps *o = &in->tensor_map;
  uint64_t at[LANES];
  Map map;
  mem_address(w, o->base, &o->at, at);
  if (b->check)
    sync_fence(b, w, (Scope)o->scope);
  FOR_LANES(i, m) {
    if (!map_bytes(b, w, in, i, at[i], &map))
      return -1;
    if (b->check && mem_space_of(&(uint64_t){at[i]}) == SP_GLOBAL)
      note_acquired(w, at[i], map_writes(b, at[i]).sum);
  }
  return 0;
}

/* It has to be a map; what it says does not matter yet. */
int
tensormap_prefetch(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const TensorMapOps *o = &in->tensor_map;
  uint64_t at[LANES];
  mem_address(w, o->base, &o->at, at);
  FOR_LANES(i, m) {
    uint64_t addr = o->at.space == SP_PARAM && at[i] < WINDOW_SIZE ? at[i] + PARAM_WINDOW : at[i];
    Map map;
    if (!map_bytes(b, w, in, i, addr, &map))
      return -1;
    if (map.magic != MAP_MAGIC)
      return map_foreign(b, w, in, i, addr) ? 0 : -1;
  }
  return 0;
}
