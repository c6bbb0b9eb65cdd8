/* decode_bulk.c - cp.async.bulk, cp.reduce.async.bulk and their tensor forms (PTX ISA, "cp.async.bulk"); tensor maps that are changed
 * and prefetched (PTX ISA, "tensormap"). */
#include "decode.h"

static uint32_t
address(Decoder *d, const Opnd *o, Space sp, uint8_t bit, BulkOps *b, int32_t *offset)
{
  Address at;
  uint32_t base = opnd_address(d, o, sp, &at);
  *offset = (int32_t)at.offset;
  if ((int64_t)at.offset != *offset)
    decode_fail(d, "an offset of more than 32 bits");
  b->wide |= at.wide ? bit : 0;
  return base;
}

static ModId
take_reduction(Decoder *d)
{
  static const ModId ops[] = {M_ADD, M_MIN, M_MAX, M_INC, M_DEC, M_AND, M_OR, M_XOR};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (opmod_take(d, ops[i]))
      return ops[i];
  return M_NONE;
}

/* map: the operand with the coordinates of a box; NULL: no tensor. offsets: of its pixels, or NULL */
static void
emit(Decoder *d, const BulkOps *o, Type t, const Opnd *map, const Opnd *offsets)
{
  uint32_t slot[2 * MAX_RANK] = {0}, n = map ? o->rank : 0, more = offsets ? o->rank - 2u : 0;
  if (map && map->n != o->rank)
    decode_fail(d, "a box of this tensor has %u coordinates", o->rank);
  if (offsets && (offsets->kind != O_VEC || offsets->n != more))
    decode_fail(d, "pixels of this tensor have %u offsets", more);
  for (uint32_t i = 0; i < n && !d->failed; i++)
    slot[i] = opnd_src(d, &d->elem[map->first + i], T_S32);
  for (uint32_t i = 0; i < more && !d->failed; i++)
    slot[n + i] = opnd_src(d, &d->elem[offsets->first + i], T_U16);
  Insn *in = insn_warp(d, K_WARP, bulk_exec, 5);
  if (!in)
    return;
  in->type = (uint8_t)t;
  in->bulk = *o;
  for (uint32_t i = 0; i < n + more; i++)
    insn_list(d, slot[i]);
}

/* to, from, size or with a map; at an mbarrier, with a mask and a policy where the modifiers say so. */
static void
load(Decoder *d, BulkOps *o, Type t, bool multicast, bool hint)
{
  uint32_t n = o->rank ? 3 : 4, all = n + o->im2col + multicast + hint;
  decode_operands(d, all, all);
  if (d->failed)
    return;
  o->to = address(d, &d->op[0], SP_SHARED, WIDE_TO, o, &o->to_offset);
  o->from = address(d, &d->op[1], SP_GENERIC, WIDE_FROM, o, &o->from_offset);
  o->bytes = o->rank ? 0 : opnd_src(d, &d->op[2], T_U32);
  o->mbar = address(d, &d->op[n - 1], SP_SHARED, WIDE_MBAR, o, &o->mbar_offset);
  o->mask = multicast ? opnd_src(d, &d->op[n + o->im2col], T_U16) : 0;
  emit(d, o, t, o->rank ? &d->op[1] : NULL, o->im2col ? &d->op[n] : NULL);
}

static void
store(Decoder *d, BulkOps *o, Type t, bool hint)
{
  uint32_t n = o->rank ? 2 : 3;
  decode_operands(d, n + hint, n + hint);
  if (d->failed)
    return;
  o->what = BULK_STORE;
  o->to = address(d, &d->op[0], SP_GENERIC, WIDE_TO, o, &o->to_offset);
  o->from = address(d, &d->op[1], SP_SHARED, WIDE_FROM, o, &o->from_offset);
  o->bytes = o->rank ? 0 : opnd_src(d, &d->op[2], T_U32);
  emit(d, o, t, o->rank ? &d->op[0] : NULL, NULL);
}

static void
prefetch_box(Decoder *d, BulkOps *o, bool hint)
{
  uint32_t n = 1u + o->im2col + hint;
  decode_operands(d, n, n);
  if (d->failed)
    return;
  o->what = BULK_PREFETCH;
  o->from = address(d, &d->op[0], SP_GENERIC, WIDE_FROM, o, &o->from_offset);
  emit(d, o, T_NONE, &d->op[0], o->im2col ? &d->op[1] : NULL);
}

static void
groups(Decoder *d, bool wait)
{
  bool reads = wait && opmod_take(d, M_READ);
  decode_operands(d, wait, wait);
  uint32_t pending = wait ? decode_groups(d) : 0;
  Insn *in = insn_warp(d, K_WARP, wait ? bulk_wait : bulk_commit, 0);
  if (in && wait)
    in->bulk_wait = (BulkWaitOps){pending, reads};
}

/* Whether a reduction of the type exists; of tensors the map has the type. */
static bool
reduces(ModId op, Type t)
{
  TypeClass c = ptx_type_class[t];
  uint32_t n = ptx_type_bytes[t];
  switch (op) {
  case M_AND: case M_OR: case M_XOR: return c == TC_BITS && n >= 4 && n <= 8;
  case M_INC: case M_DEC: return t == T_U32;
  case M_ADD: return t == T_F16 || t == T_BF16 || t == T_F32 || t == T_F64 || t == T_U32 || t == T_S32 || t == T_U64;
  default: return t == T_F16 || t == T_BF16 || ((c == TC_UINT || c == TC_SINT) && n >= 4);
  }
}

void
decode_bulk(Decoder *d)
{
  static const ModId ranks[] = {M_D1, M_D2, M_D3, M_D4, M_D5};
  BulkOps o = {.what = BULK_LOAD};
  bool commit = opmod_take(d, M_COMMIT_GROUP), wait = opmod_take(d, M_WAIT_GROUP);
  if (commit || wait) {
    groups(d, wait);
    return;
  }
  bool reduce = opmod_take(d, M_REDUCE), tensor = opmod_take(d, M_TENSOR), prefetch = opmod_take(d, M_PREFETCH);
  for (uint32_t i = 0; i < MAX_RANK; i++)
    o.rank = opmod_take(d, ranks[i]) ? (uint8_t)(i + 1) : o.rank;
  opmod_take(d, M_TILE);
  bool pixels = opmod_take(d, M_IM2COL), plain = opmod_take(d, M_IM2COL_NO_OFFS);
  o.im2col = pixels || plain;
  o.op = reduce ? (uint8_t)take_reduction(d) : 0;
  opmod_take(d, M_NOFTZ);
  bool hint = opmod_take(d, M_CACHE_HINT), multicast = opmod_take(d, M_MULTICAST);
  if (prefetch && opmod_take(d, M_L2)) {
    opmod_space(d);
    if (tensor)
      prefetch_box(d, &o, hint);
    else
      decode_ignore(d, 1);
    return;
  }
  Space first = opmod_space(d), from = opmod_space(d), to = first == SP_CLUSTER ? SP_SHARED : first;
  Type t = reduce && !tensor ? opmod_type(d) : T_NONE;
  bool ends = opmod_take(d, M_COMPLETE_BYTES), group = opmod_take(d, M_BULK_GROUP);
  bool odd = o.im2col && (o.rank < 3 || pixels != ends);
  if (odd || tensor != (o.rank != 0) || (reduce && (!o.op || (!tensor && !reduces((ModId)o.op, t)))))
    decode_unknown(d);
  else if (ends && to == SP_SHARED && (from == SP_GLOBAL ? !reduce : from == SP_SHARED && !tensor)) {
    o.what = from == SP_SHARED ? BULK_SHARED : BULK_LOAD;
    load(d, &o, t, multicast, hint);
  } else if (group && to == SP_GLOBAL && from == SP_SHARED)
    store(d, &o, t, hint);
  else
    decode_unknown(d);
}

/* ---- tensor maps ---- */

static bool
takes_place(ModId field)
{
  return field == M_BOX_DIM || field == M_GLOBAL_DIM || field == M_GLOBAL_STRIDE || field == M_ELEMENT_STRIDE;
}

/* tensormap.replace.tile.field{.ss}.b1024.type [addr] {, ord}, value */
static void
replace_field(Decoder *d)
{
  bool tile = opmod_take(d, M_TILE);
  ModId field = opmod_take_range(d, M_GLOBAL_ADDRESS, M_FILL_MODE);
  Space sp = opmod_space(d);
  bool whole = opmod_take(d, M_B1024);
  Type t = opmod_type(d);
  bool wide = field == M_GLOBAL_ADDRESS || field == M_GLOBAL_STRIDE;
  uint32_t at = takes_place(field);
  decode_operands(d, 2 + at, 2 + at);
  if (!tile || !field || !whole || t != (wide ? T_B64 : T_B32) || field == M_SWIZZLE_ATOMICITY || (at && d->op[1].kind != O_IMM))
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  TensorMapOps o = {.field = (uint16_t)field, .wide = wide};
  o.ord = at ? (uint8_t)(d->op[1].imm < MAX_RANK ? d->op[1].imm : MAX_RANK) : 0;
  o.base = opnd_address(d, &d->op[0], sp, &o.at);
  o.value = opnd_src(d, &d->op[1 + at], t);
  Insn *in = insn_warp(d, K_WARP, tensormap_replace, 2);
  if (in)
    in->tensor_map = o;
}

/* tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [to], [from], 128 */
static void
copy_map(Decoder *d)
{
  Space to = opmod_space(d), from = opmod_space(d);
  bool proxy = opmod_take(d, M_TENSORMAP_GENERIC), together = opmod_take(d, M_SYNC) && opmod_take(d, M_ALIGNED);
  Address at;
  decode_operands(d, 3, 3);
  if (to != SP_GLOBAL || from != SP_SHARED || !proxy || !together || d->order != ORDER_RELEASE || d->op[2].imm != SIM_TENSOR_MAP_BYTES)
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  TensorMapOps o = {.scope = (uint8_t)d->scope};
  o.base = opnd_address(d, &d->op[1], SP_SHARED, &o.at);
  o.value = opnd_address(d, &d->op[0], SP_GLOBAL, &at);
  o.to_offset = (int32_t)at.offset;
  if (!at.wide)
    decode_fail(d, "an address register is too narrow");
  Insn *in = insn_warp(d, K_WAIT, tensormap_copy, 2);
  if (!in)
    return;
  in->tensor_map = o;
  in->whole = in->living = true;
}

void
decode_tensormap(Decoder *d, int arg)
{
  if (opmod_take(d, M_REPLACE))
    replace_field(d);
  else if (opmod_take(d, M_CP_FENCEPROXY))
    copy_map(d);
  else
    decode_unknown(d);
}

static void
map_insn(Decoder *d, WarpFn *fn, Space sp, uint32_t most)
{
  decode_operands(d, 1, most);
  if (d->failed)
    return;
  TensorMapOps o = {.scope = (uint8_t)d->scope};
  o.base = opnd_address(d, &d->op[0], sp, &o.at);
  Insn *in = insn_warp(d, K_WARP, fn, 1);
  if (in)
    in->tensor_map = o;
}

/* fence.proxy.tensormap::generic.acquire.scope [addr], 128, and .release.scope */
void
decode_map_fence(Decoder *d)
{
  opmod_take(d, M_PROXY);
  if (d->order == ORDER_ACQUIRE)
    map_insn(d, tensormap_acquire, SP_GENERIC, 2);
  else {
    decode_operands(d, 0, 0);
    Insn *in = insn_warp(d, K_WARP, tensormap_release, 0);
    if (in)
      in->tensor_map = (TensorMapOps){.scope = (uint8_t)d->scope};
  }
}

/* Of a tensor map; anything else that is prefetched does not matter. */
void
decode_prefetch(Decoder *d, int arg)
{
  Space sp = opmod_space(d);
  if (!opmod_take(d, M_TENSORMAP))
    decode_ignore(d, 1);
  else
    map_insn(d, tensormap_prefetch, sp == SP_PARAM ? SP_PARAM : SP_GENERIC, 1);
}
