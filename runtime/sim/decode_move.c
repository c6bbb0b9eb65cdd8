/* decode_move.c - moves, packing, conversions and address arithmetic between spaces. */
#include "decode.h"

static void
pack(Decoder *d, uint32_t dst, int width, const Opnd *e, uint32_t n)
{
  if (n == 1) {
    uint32_t s = opnd_src(d, e, opnd_bits(width));
    insn_alu(d, A_mov, V_NONE, opnd_bits(width), width, dst, s, s, s);
    return;
  }
  uint32_t part[2];
  for (uint32_t h = 0; h < 2; h++) {
    const Opnd *x = e + h * n / 2;
    if (n == 2)
      part[h] = opnd_src(d, x, opnd_bits(width / 2));
    else {
      part[h] = slot_new(d, width / 2);
      pack(d, part[h], width / 2, x, n / 2);
    }
  }
  insn_alu(d, width == 4 ? A_pack16 : A_pack32, V_NONE, opnd_bits(width), width, dst, part[0], part[1],
           part[1]);
}

static void
unpack(Decoder *d, uint32_t src, int width, const Opnd *e, uint32_t n)
{
  for (uint32_t h = 0; h < 2; h++) {
    const Opnd *x = e + h * n / 2;
    AluOp op = width == 4 ? (h ? A_hi16 : A_lo16) : (h ? A_hi32 : A_lo32);
    if (n == 2 && x->kind == O_SINK)
      continue;
    uint32_t part = n == 2 ? opnd_dst(d, x, width / 2) : slot_new(d, width / 2);
    insn_alu(d, op, V_NONE, opnd_bits(width), width / 2, part, src, src, src);
    if (n > 2)
      unpack(d, part, width / 2, x, n / 2);
  }
}

static bool
packable(int width, uint32_t n)
{
  return (width == 4 && n == 2) || (width == 8 && (n == 2 || n == 4));
}

static void
mov_special(Decoder *d, Type t)
{
  uint32_t src = d->op[1].slot, dst = opnd_dst(d, &d->op[0], opnd_width(t));
  if (d->op[1].width == opnd_width(t))
    insn_alu(d, A_mov, V_NONE, opnd_bits(opnd_width(t)), opnd_width(t), dst, src, src, src);
  else
    insn_alu(d, d->op[1].width == 8 ? A_cvt_u64 : A_cvt_u32, V_NONE,
             opnd_bits(opnd_width(t)), opnd_width(t), dst, src, src, src);
}

void
decode_mov(Decoder *d, int arg)
{
  Type t = decode_type(d);
  decode_operands(d, 2, 2);
  Opnd *to = &d->op[0], *from = &d->op[1];
  int w = opnd_width(t);
  if (t == T_PRED) {
    uint32_t s = opnd_src(d, from, T_PRED);
    insn_pred(d, '=', opnd_dst(d, to, 0), s, s);
  } else if (to->kind == O_VEC || from->kind == O_VEC) {
    Opnd *v = to->kind == O_VEC ? to : from;
    if (!packable(w, v->n))
      decode_unknown(d);
    else if (v == to)
      unpack(d, opnd_src(d, from, opnd_bits(w)), w, &d->elem[v->first], v->n);
    else
      pack(d, opnd_dst(d, to, w), w, &d->elem[v->first], v->n);
  } else if (from->kind == O_REG && from->type != T_PRED && from->tok->s[0] == '%')
    mov_special(d, t);
  else {
    uint32_t s = opnd_src(d, from, t), dst = opnd_dst(d, to, w);
    insn_alu(d, A_mov, V_NONE, opnd_bits(w), w, dst, s, s, s);
    flow_is(d, dst, FLOW_COPY, s, 0);
  }
}

static AluOp
cvt_from(Type t)
{
  switch (t) {
  case T_U16: return A_cvt_u16;
  case T_S16: return A_cvt_s16;
  case T_U32: return A_cvt_u32;
  case T_S32: return A_cvt_s32;
  case T_U64: case T_S64: return A_cvt_u64;
  case T_F16: return A_cvt_f16;
  case T_BF16: return A_cvt_bf16;
  case T_F32: return A_cvt_f32;
  case T_F64: return A_cvt_f64;
  default: return A_COUNT;
  }
}

/* The rows of alu.def cover the plain conversions between registers of their types' sizes. */
static bool
cvt_fast(Decoder *d, Type to, Type from, uint8_t rnd)
{
  const Opnd *a = &d->op[1], *b = &d->op[2];
  int w = opnd_width(to);
  AluOp op = cvt_from(from);
  bool to_int = ptx_type_class[to] == TC_UINT || ptx_type_class[to] == TC_SINT;
  bool from_int = ptx_type_class[from] == TC_UINT || ptx_type_class[from] == TC_SINT;
  if (op == A_COUNT || ptx_type_bytes[to] < 2 || (rnd && rnd != M_RN && !(rnd == M_RZI && to_int && !from_int)))
    return false;
  if (to_int && !from_int && rnd != M_RZI)
    return false;
  if (!alu_find(op, V_NONE, to) || d->op[0].kind != O_REG || d->op[0].width != w)
    return false;
  uint32_t x = opnd_src(d, a, from), y = d->nop > 2 ? opnd_src(d, b, from) : x;
  bool pair = d->nop > 2;
  if (pair != (to == T_F16X2 || to == T_BF16X2))
    decode_fail(d, "wrong number of operands");
  uint32_t dst = opnd_dst(d, &d->op[0], w);
  insn_alu(d, op, V_NONE, to, w, dst, x, y, y);
  if (to_int && from_int && w >= 4 && opnd_width(from) >= 4)
    flow_is(d, dst, FLOW_COPY, x, 0);
  return true;
}

static bool
cvt_pair_type(Type t)
{
  return t == T_F16X2 || t == T_BF16X2 || t == T_E4M3X2 || t == T_E5M2X2;
}

static uint32_t
cvt_source(Decoder *d, const Opnd *o, Type t, uint8_t *width)
{
  *width = o->kind == O_REG ? o->width : (uint8_t)opnd_width(t);
  if (o->kind == O_REG && o->type != T_PRED && o->width >= ptx_type_bytes[t])
    return o->slot;
  return opnd_src(d, o, t);
}

/* cvt.pack.sat.{s8,u8}.s32.b32 d, a, b, c */
static void
decode_cvt_pack(Decoder *d)
{
  bool sat = opmod_take(d, M_SAT);
  Type to = decode_type(d), from = decode_type(d), rest = decode_type(d);
  decode_operands(d, 4, 4);
  if (!sat || (to != T_S8 && to != T_U8) || from != T_S32 || rest != T_B32) {
    decode_unknown(d);
    return;
  }
  uint32_t a = opnd_src(d, &d->op[1], T_S32), b = opnd_src(d, &d->op[2], T_S32), c = opnd_src(d, &d->op[3], T_B32);
  Insn *in = insn_alu(d, A_cvt_pack, V_NONE, T_U32, 4, opnd_dst(d, &d->op[0], 4), a, b, c);
  if (in)
    in->alu.imm = to == T_S8;
}

void
decode_cvt(Decoder *d, int arg)
{
  if (opmod_take(d, M_PACK)) {
    decode_cvt_pack(d);
    return;
  }
  uint8_t rnd = (uint8_t)opmod_rounding(d);
  bool ftz = opmod_take(d, M_FTZ), sat = opmod_take(d, M_SAT);
  bool fin = opmod_take(d, M_SATFINITE), relu = opmod_take(d, M_RELU);
  Type to = decode_type(d), from = decode_type(d);
  decode_operands(d, 2, 3);
  if (!d->failed && !ftz && !sat && !fin && !relu && cvt_fast(d, to, from, rnd))
    return;
  bool pair = cvt_pair_type(to) && !cvt_pair_type(from);
  if (d->failed || d->unknown)
    return;
  if (pair != (d->nop == 3) || to == T_PRED || from == T_PRED ||
      (cvt_pair_type(from) && !cvt_pair_type(to))) {
    decode_unknown(d);
    return;
  }
  uint8_t width = 0, width2 = 0;
  uint32_t a = cvt_source(d, &d->op[1], from, &width), b = pair ? cvt_source(d, &d->op[2], from, &width2) : a;
  int dw = d->op[0].kind == O_REG && d->op[0].width > opnd_width(to) ? d->op[0].width : opnd_width(to);
  uint32_t dst = opnd_dst(d, &d->op[0], dw);
  if (pair && width != width2)
    decode_fail(d, "sources of different sizes");
  Insn *in = insn_warp(d, K_WARP, cvt_exec, 3);
  if (!in)
    return;
  in->type = (uint8_t)to;
  in->cvt = (CvtOps){.d = dst, .a = a, .b = b, .width = (uint8_t)dw, .src_width = width, .from = (uint8_t)from, .rounding = rnd,
                     .post = (uint8_t)((ftz ? POST_FTZ32 : 0) | (sat ? POST_SAT : 0) | (relu ? POST_RELU : 0)),
                     .pair = pair, .satfinite = fin};
}

static uint64_t
window_base(Space s)
{
  return s == SP_SHARED || s == SP_CLUSTER ? SHARED_WINDOW : s == SP_LOCAL ? LOCAL_WINDOW : s == SP_PARAM ? PARAM_WINDOW : 0;
}

/* Generic address = offset + base of the window; global and const addresses are generic already. */
void
decode_cvta(Decoder *d, int arg)
{
  bool to = opmod_take(d, M_TO);
  uint64_t base = window_base(opmod_space(d));
  if (decode_type(d) != T_U64)
    decode_fail(d, "addresses have 64 bits");
  decode_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], T_U64), dst = opnd_dst(d, &d->op[0], 8);
  Insn *in = insn_alu(d, A_offset, V_NONE, T_U64, 8, dst, a, a, a);
  if (in)
    in->alu.imm = to ? 0 - base : base;
  flow_is(d, dst, FLOW_COPY, a, 0);
}

void
decode_isspacep(Decoder *d, int arg)
{
  Space s = opmod_space(d);
  decode_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], T_U64), dst = opnd_dst(d, &d->op[0], 0);
  Insn *in = insn_warp(d, K_WARP, isspacep_exec, 2);
  if (in)
    in->isspace = (SpaceOps){dst, a, (uint8_t)s, true};
}

void
decode_mapa(Decoder *d, int arg)
{
  bool generic = opmod_space(d) != SP_CLUSTER;
  Type t = decode_type(d);
  decode_operands(d, 3, 3);
  if (t != T_U64 && (t != T_U32 || generic))
    decode_unknown(d);
  uint32_t a = opnd_src(d, &d->op[1], t), rank = opnd_src(d, &d->op[2], T_U32), dst = opnd_dst(d, &d->op[0], opnd_width(t));
  Insn *in = insn_warp(d, K_WARP, mapa_exec, 3);
  if (in)
    in->map = (MapOps){dst, a, rank, t == T_U64, generic};
}

void
decode_getctarank(Decoder *d, int arg)
{
  Space s = opmod_space(d);
  Type t = decode_type(d);
  decode_operands(d, 2, 2);
  if (t != T_U64 && (t != T_U32 || s == SP_GENERIC))
    decode_unknown(d);
  uint32_t a = opnd_src(d, &d->op[1], t), dst = opnd_dst(d, &d->op[0], 4);
  Insn *in = insn_warp(d, K_WARP, ctarank_exec, 2);
  if (in)
    in->isspace = (SpaceOps){dst, a, (uint8_t)s, t == T_U64};
}

void
decode_createpolicy(Decoder *d, int arg)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    d->mod[i] = 0;
  decode_operands(d, 1, 5);
  uint32_t zero = slot_const(d, 8, 0, 0);
  insn_alu(d, A_mov, V_NONE, T_U64, 8, opnd_dst(d, &d->op[0], 8), zero, zero, zero);
}

/* arg 1, 2: modifiers do not matter either */
void
decode_ignore(Decoder *d, int arg)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    d->mod[i] = 0;
}
