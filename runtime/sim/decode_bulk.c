/* decode_bulk.c - cp.async.bulk, cp.reduce.async.bulk and their tensor forms (PTX ISA, "cp.async.bulk"). */
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

/* map: the operand with the coordinates of a box; NULL: no tensor */
static void
emit(Decoder *d, const BulkOps *o, Type t, const Opnd *map)
{
  uint32_t slot[MAX_RANK] = {0};
  if (map && map->n != o->rank)
    decode_fail(d, "a box of this tensor has %u coordinates", o->rank);
  for (uint32_t i = 0; map && i < o->rank && !d->failed; i++)
    slot[i] = opnd_src(d, &d->elem[map->first + i], T_S32);
  Insn *in = insn_warp(d, K_WARP, bulk_exec, 5);
  if (!in)
    return;
  in->type = (uint8_t)t;
  in->bulk = *o;
  for (uint32_t i = 0; map && i < o->rank; i++)
    insn_list(d, slot[i]);
}

/* to, from, size or with a map; at an mbarrier, with a mask and a policy where the modifiers say so. */
static void
load(Decoder *d, BulkOps *o, Type t, bool multicast, bool hint)
{
  uint32_t n = o->rank ? 3 : 4;
  decode_operands(d, n + multicast + hint, n + multicast + hint);
  if (d->failed)
    return;
  o->to = address(d, &d->op[0], SP_SHARED, WIDE_TO, o, &o->to_offset);
  o->from = address(d, &d->op[1], SP_GENERIC, WIDE_FROM, o, &o->from_offset);
  o->bytes = o->rank ? 0 : opnd_src(d, &d->op[2], T_U32);
  o->mbar = address(d, &d->op[n - 1], SP_SHARED, WIDE_MBAR, o, &o->mbar_offset);
  o->mask = multicast ? opnd_src(d, &d->op[n], T_U16) : 0;
  emit(d, o, t, o->rank ? &d->op[1] : NULL);
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
  emit(d, o, t, o->rank ? &d->op[0] : NULL);
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
  o.op = reduce ? (uint8_t)take_reduction(d) : 0;
  opmod_take(d, M_NOFTZ);
  bool hint = opmod_take(d, M_CACHE_HINT), multicast = opmod_take(d, M_MULTICAST);
  if (prefetch && opmod_take(d, M_L2)) {
    opmod_space(d);
    decode_ignore(d, 1);
    return;
  }
  Space first = opmod_space(d), from = opmod_space(d), to = first == SP_CLUSTER ? SP_SHARED : first;
  Type t = reduce && !tensor ? opmod_type(d) : T_NONE;
  bool ends = opmod_take(d, M_COMPLETE_BYTES), group = opmod_take(d, M_BULK_GROUP);
  if (tensor != (o.rank != 0) || (reduce && (!o.op || (!tensor && !reduces((ModId)o.op, t)))))
    decode_unknown(d);
  else if (ends && to == SP_SHARED && (from == SP_GLOBAL ? !reduce : from == SP_SHARED && !tensor)) {
    o.what = from == SP_SHARED ? BULK_SHARED : BULK_LOAD;
    load(d, &o, t, multicast, hint);
  } else if (group && to == SP_GLOBAL && from == SP_SHARED)
    store(d, &o, t, hint);
  else
    decode_unknown(d);
}
