/* decode_mbar.c - mbarrier instructions, and cp.async.mbarrier.arrive (PTX ISA, "mbarrier"). */
#include "decode.h"

/* [addr] or one of the operands in front of or behind it. */
static void
barrier_address(Decoder *d, MbarOps *o, Space sp, uint32_t at)
{
  if (d->op[at].kind != O_MEM)
    decode_fail(d, "expected an mbarrier's address in brackets");
  else
    o->base = opnd_address(d, &d->op[at], sp, &o->at);
}

static void
emit(Decoder *d, const MbarOps *o)
{
  bool waits = o->act == MB_TEST || o->act == MB_TRY;
  Insn *in = insn_warp(d, waits ? K_WAIT : K_WARP, waits ? mbar_wait : mbar_exec, 4);
  if (in)
    in->mbar = *o;
}

/* mbarrier.arrive and arrive_drop: state or _, [addr] {, count or bytes} */
static void
decode_arrive(Decoder *d, MbarOps *o, Space sp)
{
  o->act = MB_ARRIVE;
  o->bytes = opmod_take(d, M_EXPECT_TX);
  o->partial = opmod_take(d, M_NO_COMPLETE);
  bool amount = o->bytes || o->partial;
  decode_operands(d, 2 + amount, 3);
  if (d->failed)
    return;
  o->d = d->op[0].kind == O_SINK ? 0 : opnd_dst(d, &d->op[0], 8);
  barrier_address(d, o, sp, 1);
  o->amount = d->nop == 3 ? opnd_src(d, &d->op[2], T_U32) : 0;
  emit(d, o);
}

/* mbarrier.test_wait and try_wait: p, [addr], state or parity {, nanoseconds} */
static void
decode_wait(Decoder *d, MbarOps *o, Space sp)
{
  o->parity = opmod_take(d, M_PARITY);
  decode_operands(d, 3, o->act == MB_TRY ? 4 : 3);
  if (d->failed)
    return;
  o->d = opnd_dst(d, &d->op[0], 0);
  barrier_address(d, o, sp, 1);
  o->from = opnd_src(d, &d->op[2], o->parity ? T_U32 : T_U64);
  emit(d, o);
}

/* mbarrier.init, expect_tx, complete_tx: [addr], amount; inval and cp.async.mbarrier.arrive: [addr] */
static void
decode_plain(Decoder *d, MbarOps *o, Space sp)
{
  bool amount = o->act != MB_INVAL && o->act != MB_COPIES;
  decode_operands(d, 1 + amount, 1 + amount);
  if (d->failed)
    return;
  barrier_address(d, o, sp, 0);
  o->amount = amount ? opnd_src(d, &d->op[1], T_U32) : 0;
  emit(d, o);
}

static void
decode_pending_count(Decoder *d)
{
  decode_operands(d, 2, 2);
  if (d->failed)
    return;
  uint32_t state = opnd_src(d, &d->op[1], T_U64), dst = opnd_dst(d, &d->op[0], 4);
  Insn *in = insn_warp(d, K_WARP, mbar_pending, 2);
  if (in)
    in->pending = (PendingOps){dst, state};
}

/* arg 1: cp.async.mbarrier.arrive */
void
decode_mbarrier(Decoder *d, int copies)
{
  static const struct { uint16_t word; uint8_t act; } acts[] = {
    {M_INIT, MB_INIT}, {M_INVAL, MB_INVAL}, {M_COMPLETE_TX, MB_COMPLETE}, {M_TEST_WAIT, MB_TEST}, {M_TRY_WAIT, MB_TRY}};
  MbarOps o = {.relaxed = d->order == ORDER_RELAXED};
  Space sp = opmod_space(d);
  if (decode_type(d) != T_B64)
    decode_unknown(d);
  o.drop = opmod_take(d, M_ARRIVE_DROP);
  if (copies) {
    o.act = MB_COPIES;
    o.noinc = opmod_take(d, M_NOINC);
    opmod_take(d, M_ARRIVE);
    decode_plain(d, &o, sp);
    return;
  }
  if (o.drop || opmod_take(d, M_ARRIVE)) {
    decode_arrive(d, &o, sp);
    return;
  }
  if (opmod_take(d, M_PENDING_COUNT)) {
    decode_pending_count(d);
    return;
  }
  o.act = MB_EXPECT;
  bool known = opmod_take(d, M_EXPECT_TX);
  for (size_t i = 0; i < sizeof acts / sizeof *acts && !known; i++)
    if ((known = opmod_take(d, (ModId)acts[i].word)))
      o.act = acts[i].act;
  if (!known)
    decode_unknown(d);
  else if (o.act == MB_TEST || o.act == MB_TRY)
    decode_wait(d, &o, sp);
  else
    decode_plain(d, &o, sp);
}
