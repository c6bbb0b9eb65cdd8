/* decode_wgmma.c - wgmma.mma_async and the instructions around it, and setmaxnreg (PTX ISA, "wgmma"). A sparse product has metadata and a
 * selector behind its matrices. */
#include "decode.h"

enum { M_ROWS = 64, K_BYTES = 32, MOST_D = 128 };

static bool
fits(Type d, Type a, Type b)
{
  bool f8 = (a == T_E4M3 || a == T_E5M2) && (b == T_E4M3 || b == T_E5M2), whole = (a == T_S8 || a == T_U8) && (b == T_S8 || b == T_U8);
  if (f8 || (a == T_F16 && b == T_F16))
    return d == T_F32 || d == T_F16;
  return whole ? d == T_S32 : a == b && (a == T_BF16 || a == T_TF32) && d == T_F32;
}

/* Of whole numbers, columns go in steps of 16 from 32 on. */
static bool
shape_fits(const Decoder *d, Type t, bool sparse)
{
  uint32_t n = d->shape_n;
  if (d->shape_k * ptx_type_bytes[t] != (uint32_t)K_BYTES << sparse || (sparse && ptx_type_bytes[t] == 4) || !n || n % 8 || n > 256)
    return false;
  return (t != T_S8 && t != T_U8) || n <= 24 || n % 16 == 0;
}

/* An immediate among some values. */
static int64_t
number(Decoder *d, const Opnd *o, int64_t low, int64_t high)
{
  int64_t v = (int64_t)o->imm;
  if (o->kind != O_IMM || (v != low && v != high))
    decode_fail(d, "expected %lld or %lld", (long long)low, (long long)high);
  return v;
}

static void
registers(Decoder *d, const Opnd *o, uint32_t n, bool result, uint32_t *slot)
{
  if (o->kind != O_VEC || o->n != n) {
    decode_fail(d, "a fragment of this matrix has %u registers", n);
    return;
  }
  for (uint32_t i = 0; i < n && !d->failed; i++)
    slot[i] = result ? opnd_dst(d, &d->elem[o->first + i], 4) : opnd_src(d, &d->elem[o->first + i], T_B32);
}

/* Operands 3 and 4: metadata, and which lanes of each four give it: of 16-bit types two of them, of others all. */
static void
sparse_operands(Decoder *d, uint32_t *slot, WgmmaOps *o)
{
  const Opnd *selector = &d->op[4];
  uint32_t most = 64u / o->k;
  if (selector->kind != O_IMM || selector->imm >= most)
    decode_fail(d, "the selector of a sparse product names lanes of each four: less than %u here", most);
  *slot = opnd_src(d, &d->op[3], T_B32);
  o->selector = (uint8_t)selector->imm;
}

static void
product(Decoder *d, bool sparse)
{
  uint32_t slot[MOST_D + 5] = {0}, behind = 3u + 2 * sparse;
  bool shape = opmod_take(d, M_WGMMA_SHAPE);
  opmod_take(d, M_SATFINITE);
  Type dt = opmod_type(d), at = opmod_type(d), bt = opmod_type(d);
  decode_operands(d, behind + 1, behind + 5);
  if (d->failed || !shape || !fits(dt, at, bt) || !shape_fits(d, at, sparse)) {
    decode_unknown(d);
    return;
  }
  WgmmaOps o = {.n = (uint16_t)d->shape_n, .k = (uint8_t)d->shape_k, .a_type = (uint8_t)at, .b_type = (uint8_t)bt,
                .a_regs = d->op[1].kind == O_VEC, .sparse = sparse};
  bool whole = dt == T_S32, halves = at == T_F16 || at == T_BF16;
  uint32_t n = behind + (whole ? 1 : halves ? 5u - o.a_regs : 3);
  decode_operands(d, n, n);
  o.nd = (uint8_t)(d->shape_n / (dt == T_F16 ? 4 : 2));
  registers(d, &d->op[0], o.nd, true, slot);
  if (o.a_regs)
    registers(d, &d->op[1], 4, false, slot + o.nd);
  else
    o.a = opnd_src(d, &d->op[1], T_B64);
  o.b = opnd_src(d, &d->op[2], T_B64);
  if (sparse)
    sparse_operands(d, slot + o.nd + (o.a_regs ? 4u : 0u), &o);
  o.scale = opnd_src(d, &d->op[behind], T_PRED);
  if (!whole) {
    o.neg_a = number(d, &d->op[behind + 1], 1, -1) < 0;
    o.neg_b = number(d, &d->op[behind + 2], 1, -1) < 0;
  }
  if (halves) {
    o.trans_a = !o.a_regs && number(d, &d->op[behind + 3], 0, 1);
    o.trans_b = number(d, &d->op[n - 1], 0, 1);
  }
  Insn *in = insn_warp(d, K_CONV, wgmma_exec, 3);
  if (!in)
    return;
  in->whole = true;
  in->type = (uint8_t)dt;
  in->wgmma = o;
  for (uint32_t i = 0; i < o.nd + (o.a_regs ? 4u : 0u) + sparse; i++)
    insn_list(d, slot[i]);
}

void
decode_wgmma(Decoder *d, int arg)
{
  bool fence = opmod_take(d, M_FENCE), commit = opmod_take(d, M_COMMIT_GROUP), wait = opmod_take(d, M_WAIT_GROUP);
  bool sparse = opmod_take(d, M_SP);
  if (!opmod_take(d, M_SYNC) || !opmod_take(d, M_ALIGNED) || !(opmod_take(d, M_MMA_ASYNC) || fence || commit || wait)) {
    decode_unknown(d);
    return;
  }
  if (!fence && !commit && !wait) {
    product(d, sparse);
    return;
  }
  decode_operands(d, wait, wait);
  uint32_t pending = wait ? decode_groups(d) : 0;
  Insn *in = insn_warp(d, wait ? K_WAIT : K_CONV, fence ? wgmma_fence : commit ? wgmma_commit : wgmma_wait, 0);
  if (!in)
    return;
  in->whole = true;
  if (wait)
    in->wait = (WaitOps){.pending = pending};
}

void
decode_setmaxnreg(Decoder *d, int arg)
{
  bool more = opmod_take(d, M_INC), less = opmod_take(d, M_DEC), sync = opmod_take(d, M_SYNC);
  bool aligned = opmod_take(d, M_ALIGNED);
  Type t = opmod_type(d);
  decode_operands(d, 1, 1);
  uint64_t n = d->op[0].imm;
  if (more == less || !sync || !aligned || t != T_U32)
    decode_unknown(d);
  else if (d->op[0].kind != O_IMM || n < 24 || n > 256 || n % 8)
    decode_fail(d, "a thread has 24 to 256 registers, in steps of 8");
  Insn *in = insn_warp(d, K_WAIT, setmaxnreg_exec, 0);
  if (!in)
    return;
  in->whole = true;
  in->registers = (RegisterOps){(uint16_t)n, more};
}
