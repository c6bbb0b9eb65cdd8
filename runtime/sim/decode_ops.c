/* decode_ops.c - opcodes that compute: modifiers, the dispatch on the opcode, arithmetic, conversions,
 * predicates, memory and control flow. Warp-wide and asynchronous ones are in decode_sync.c.
 * A decoder takes the modifiers it knows; one that is left over is an error. */
#include "decode.h"
#include <stdlib.h>
#include <string.h>

static const struct { const char *text; bool hint; } mods[M_COUNT] = {
#define MOD(id, text) [M_##id] = {text, false},
#define HINT(id, text) [M_##id] = {text, true},
#include "mods.def"
};

static const char *const alu_names[] = {
#define ALU_NAME(id) #id,
#include "alu_names.def"
};

static const struct { const char *text; DecodeFn *fn; int arg; } opcodes[] = {
#define PTX(text, decoder, arg) {text, decode_##decoder, arg},
#include "ptx.def"
};

/* ---- modifiers ---- */

static int
mod_find(const char *s, uint32_t n)
{
  for (int i = 1; i < T_COUNT; i++)
    if (strlen(ptx_type_text[i]) == n && memcmp(ptx_type_text[i], s, n) == 0)
      return M_COUNT + i;
  for (int i = 1; i < M_COUNT; i++)
    if (strlen(mods[i].text) == n && memcmp(mods[i].text, s, n) == 0)
      return i;
  return 0;
}

/* Split op.mod.mod; hints are dropped here. */
static uint32_t
split_mods(Decoder *d, const Tok *t)
{
  uint32_t n = 0, head;
  while (n < t->n && t->s[n] != '.')
    n++;
  head = n;
  d->nmod = 0;
  d->strong = false;
  while (n < t->n && !d->failed) {
    uint32_t b = ++n;
    while (n < t->n && t->s[n] != '.')
      n++;
    int m = mod_find(t->s + b, n - b);
    if (!m || d->nmod == MAX_MODS)
      decode_fail(d, "unknown modifier '.%.*s'", (int)(n - b), t->s + b);
    else if (m >= M_COUNT || !mods[m].hint)
      d->mod[d->nmod++] = (uint16_t)m;
    if (m == M_VOLATILE || m == M_RELAXED || m == M_ACQUIRE || m == M_RELEASE || m == M_ACQ_REL)
      d->strong = true;
  }
  return head;
}

bool
opmod_take(Decoder *d, ModId m)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    if (d->mod[i] == m) {
      d->mod[i] = 0;
      return true;
    }
  return false;
}

static ModId
mod_take_range(Decoder *d, ModId first, ModId last)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    if (d->mod[i] >= first && d->mod[i] <= last) {
      ModId m = (ModId)d->mod[i];
      d->mod[i] = 0;
      return m;
    }
  return M_NONE;
}

/* The next type, left to right; T_NONE when there is none. */
Type
opmod_type(Decoder *d)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    if (d->mod[i] >= M_COUNT) {
      Type t = (Type)(d->mod[i] - M_COUNT);
      d->mod[i] = 0;
      return t;
    }
  return T_NONE;
}

static Type
need_type(Decoder *d)
{
  Type t = opmod_type(d);
  if (!t)
    decode_fail(d, "a type is missing");
  return t;
}

Space
opmod_space(Decoder *d)
{
  switch (mod_take_range(d, M_GLOBAL, M_PARAM_FUNC)) {
  case M_GLOBAL: return SP_GLOBAL;
  case M_SHARED: case M_SHARED_CTA: case M_SHARED_CLUSTER: return SP_SHARED;
  case M_LOCAL: return SP_LOCAL;
  case M_CONST: return SP_CONST;
  case M_PARAM: case M_PARAM_ENTRY: case M_PARAM_FUNC: return SP_PARAM;
  default: return SP_GENERIC;
  }
}

static void
need_operands(Decoder *d, uint32_t min, uint32_t max)
{
  if (!d->failed && (d->nop < min || d->nop > max))
    decode_fail(d, "'%.*s' has %u operands", (int)d->op_tok->n, d->op_tok->s, d->nop);
  for (uint32_t i = d->nop; i < MAX_OPNDS; i++)
    d->op[i] = (Opnd){.kind = O_NONE};
}

static AluOp
alu_named(const Tok *t)
{
  for (int i = 0; i < A_COUNT; i++) {
    size_t n = strlen(alu_names[i]);
    if (t->n >= n && memcmp(t->s, alu_names[i], n) == 0 && (t->n == n || t->s[n] == '.'))
      return (AluOp)i;
  }
  return A_COUNT;
}

void
decode_statement(Decoder *d)
{
  const Tok *t = decode_peek(d);
  d->pos++;
  d->op_tok = t;
  if (t->kind != TK_IDENT) {
    decode_fail(d, "expected an instruction");
    return;
  }
  uint32_t head = split_mods(d, t);
  for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes && !d->failed; i++) {
    if (strlen(opcodes[i].text) != head || memcmp(opcodes[i].text, t->s, head) != 0)
      continue;
    if (opcodes[i].fn != decode_call)
      opnd_list(d);
    if (!d->failed)
      opcodes[i].fn(d, opcodes[i].arg);
    for (uint32_t m = 0; m < d->nmod && !d->failed && opcodes[i].fn != decode_call; m++)
      if (d->mod[m])
        decode_fail(d, "'%.*s': the machine does not know this form", (int)t->n, t->s);
    return;
  }
  decode_fail(d, "unknown instruction '%.*s'", (int)t->n, t->s);
}

/* ---- arithmetic ---- */

static uint8_t
take_rounding(Decoder *d)
{
  ModId m = mod_take_range(d, M_RN, M_RPI);
  return (uint8_t)m;
}

/* .ftz .sat .relu of an arithmetic instruction, set on the last emitted instruction. */
typedef struct Post { uint8_t bits, rnd; } Post;

static Post
take_post(Decoder *d, Type t)
{
  Post p = {0, 0};
  p.rnd = take_rounding(d);
  if (opmod_take(d, M_FTZ))
    p.bits |= t == T_F16 || t == T_F16X2 ? POST_FTZ16 : POST_FTZ32;
  if (opmod_take(d, M_SAT))
    p.bits |= POST_SAT;
  if (opmod_take(d, M_RELU))
    p.bits |= POST_RELU;
  if (p.rnd == M_RN)
    p.rnd = 0;
  return p;
}

static void
set_post(Decoder *d, Post p)
{
  if (d->failed)
    return;
  d->code[d->ncode - 1].post = p.bits;
  d->code[d->ncode - 1].rnd = p.rnd;
}

static int
take_variant(Decoder *d)
{
  int var = opmod_take(d, M_LO) ? V_LO : opmod_take(d, M_HI) ? V_HI : opmod_take(d, M_WIDE) ? V_WIDE : V_NONE;
  opmod_take(d, M_APPROX);
  opmod_take(d, M_FULL);
  return var;
}

static Type
wide_type(Type t)
{
  switch (t) {
  case T_U16: return T_U32;
  case T_S16: return T_S32;
  case T_U32: return T_U64;
  case T_S32: return T_S64;
  default: return t;
  }
}

static void
pred_logic(Decoder *d)
{
  char c = d->op_tok->s[0];
  char op = c == 'a' ? '&' : c == 'o' ? '|' : c == 'x' ? '^' : '~';
  uint32_t a = opnd_src(d, &d->op[1], T_PRED), b = d->nop > 2 ? opnd_src(d, &d->op[2], T_PRED) : a;
  insn_pred(d, op, opnd_dst(d, &d->op[0], 0), a, b);
}

static uint32_t
carry_slot(Decoder *d, Type t, uint32_t src)
{
  if (ptx_type_bytes[t] == 4)
    return src;
  uint32_t wide = slot_new(d, 8);
  insn_alu(d, A_cvt_u32, V_NONE, T_U64, 8, wide, src, src, src);
  return wide;
}

/* add and sub with carry: the carry register is 0 or 1 in every lane. */
static void
add_with_carry(Decoder *d, Type t, bool sub, uint32_t a, uint32_t b, bool in, bool out)
{
  int w = opnd_width(t);
  if (d->failed || w < 4) {
    decode_fail(d, "carry needs 32 or 64 bits");
    return;
  }
  if (!d->carry)
    d->carry = slot_new(d, 4);
  AluOp op = sub ? A_sub : A_add, test = sub ? A_borrow : A_carry;
  uint32_t c1 = slot_new(d, 4), t1 = slot_new(d, w), dst = opnd_dst(d, &d->op[0], w);
  insn_alu(d, test, V_NONE, t, 4, c1, a, b, b);
  insn_alu(d, op, V_NONE, t, w, t1, a, b, b);
  if (in) {
    uint32_t carry = carry_slot(d, t, d->carry), c2 = slot_new(d, 4);
    insn_alu(d, test, V_NONE, t, 4, c2, t1, carry, carry);
    insn_alu(d, op, V_NONE, t, w, t1, t1, carry, carry);
    insn_alu(d, A_or, V_NONE, T_U32, 4, c1, c1, c2, c2);
  }
  if (out)
    insn_alu(d, A_mov, V_NONE, T_U32, 4, d->carry, c1, c1, c1);
  insn_alu(d, A_mov, V_NONE, t, w, dst, t1, t1, t1);
}

static void
carry_op(Decoder *d, bool sub, bool in, bool out)
{
  Type t = need_type(d);
  need_operands(d, 3, 3);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  add_with_carry(d, t, sub, a, b, in, out);
}

static void
carry_mad(Decoder *d, int var, bool in, bool out)
{
  Type t = need_type(d);
  need_operands(d, 4, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t), c = opnd_src(d, &d->op[3], t);
  uint32_t product = slot_new(d, w);
  insn_alu(d, A_mul, var, t, w, product, a, b, b);
  add_with_carry(d, t, false, product, c, in, out);
}

/* arg 0: addc, 1: subc, 2: madc */
void
decode_addc(Decoder *d, int arg)
{
  bool out = opmod_take(d, M_CC);
  if (arg == 2)
    carry_mad(d, take_variant(d), true, out);
  else
    carry_op(d, arg == 1, true, out);
}

static Type
dst_type(AluOp op, int var, Type t)
{
  if (op == A_popc || op == A_clz || op == A_bfind)
    return T_U32;
  return var == V_WIDE ? wide_type(t) : t;
}

void
decode_alu(Decoder *d, int nsrc)
{
  AluOp op = alu_named(d->op_tok);
  int var = take_variant(d);
  if (opmod_take(d, M_CC)) {
    if (op == A_mad)
      carry_mad(d, var, false, true);
    else
      carry_op(d, op == A_sub, false, true);
    return;
  }
  bool shift = opmod_take(d, M_SHIFTAMT);
  opmod_take(d, M_CLAMP);
  opmod_take(d, M_NOFTZ);
  Type t = need_type(d);
  need_operands(d, (uint32_t)nsrc + 1, (uint32_t)nsrc + 1);
  if (t == T_PRED) {
    pred_logic(d);
    return;
  }
  if (op == A_mad && ptx_type_class[t] == TC_FLOAT)
    op = A_fma;
  Post post = take_post(d, t);
  Type dt = dst_type(op, var, t), ct = var == V_WIDE ? dt : t;
  uint32_t a = opnd_src(d, &d->op[1], t), b = nsrc > 1 ? opnd_src(d, &d->op[2], t) : a;
  uint32_t c = nsrc > 2 ? opnd_src(d, &d->op[3], ct) : a;
  int w = opnd_width(dt);
  insn_alu(d, op, var, t, w, opnd_dst(d, &d->op[0], w), a, b, c);
  set_post(d, post);
  if (shift && !d->failed)
    d->code[d->ncode - 1].imm = ptx_type_bytes[t] * 8;
}

void
decode_minmax(Decoder *d, int nsrc)
{
  AluOp op = alu_named(d->op_tok);
  int var = opmod_take(d, M_NAN) ? V_NAN : V_NONE;
  Type t = need_type(d);
  Post post = take_post(d, t);
  need_operands(d, 3, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  uint32_t dst = opnd_dst(d, &d->op[0], w), c = d->nop == 4 ? opnd_src(d, &d->op[3], t) : 0;
  insn_alu(d, op, var, t, w, dst, a, b, b);
  set_post(d, post);
  if (!c)
    return;
  if (c == dst)
    decode_fail(d, "the third source is the result's register");
  insn_alu(d, op, var, t, w, dst, dst, c, c);
  set_post(d, post);
}

void
decode_shift(Decoder *d, int arg)
{
  AluOp op = alu_named(d->op_tok);
  Type t = need_type(d);
  need_operands(d, 3, 3);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), n = opnd_src(d, &d->op[2], T_U32);
  insn_alu(d, op, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, n, n);
}

void
decode_bfe(Decoder *d, int arg)
{
  Type t = need_type(d);
  need_operands(d, 4, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], T_U32), c = opnd_src(d, &d->op[3], T_U32);
  insn_alu(d, A_bfe, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, b, c);
}

void
decode_bfi(Decoder *d, int arg)
{
  Type t = need_type(d);
  need_operands(d, 5, 5);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  uint32_t pos = opnd_src(d, &d->op[3], T_U32), len = opnd_src(d, &d->op[4], T_U32), both = slot_new(d, 4);
  insn_alu(d, A_pair, V_NONE, T_U32, 4, both, pos, len, len);
  insn_alu(d, A_bfi, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, b, both);
}

static uint64_t
need_imm(Decoder *d, const Opnd *o)
{
  if (o->kind != O_IMM)
    decode_fail(d, "expected a number");
  return o->imm;
}

static void
three_words(Decoder *d, AluOp op, uint64_t imm)
{
  uint32_t a = opnd_src(d, &d->op[1], T_B32), b = opnd_src(d, &d->op[2], T_B32), c = opnd_src(d, &d->op[3], T_B32);
  insn_alu(d, op, V_NONE, T_U32, 4, opnd_dst(d, &d->op[0], 4), a, b, c);
  if (!d->failed)
    d->code[d->ncode - 1].imm = imm;
}

void
decode_lop3(Decoder *d, int arg)
{
  need_type(d);
  need_operands(d, 5, 5);
  three_words(d, A_lop3, need_imm(d, &d->op[4]));
}

void
decode_shf(Decoder *d, int arg)
{
  bool left = opmod_take(d, M_L), wrap = opmod_take(d, M_WRAP);
  if (!left)
    opmod_take(d, M_R);
  opmod_take(d, M_CLAMP);
  need_type(d);
  need_operands(d, 4, 4);
  three_words(d, left ? A_shfl_l : A_shfl_r, wrap);
}

void
decode_prmt(Decoder *d, int arg)
{
  need_type(d);
  ModId m = mod_take_range(d, M_F4E, M_RC16);
  need_operands(d, 4, 4);
  three_words(d, A_prmt, m ? (uint64_t)(m - M_F4E + 1) : 0);
}

void
decode_dp(Decoder *d, int arg)
{
  bool four = d->op_tok->s[2] == '4', hi = opmod_take(d, M_HI);
  opmod_take(d, M_LO);
  Type a = need_type(d), b = need_type(d);
  need_operands(d, 4, 4);
  three_words(d, four ? A_dp4a : A_dp2a, (a == T_S32 ? 1u : 0) | (b == T_S32 ? 2u : 0) | (hi ? 4u : 0));
}

/* ---- predicates and choices ---- */

static const struct { uint16_t mod; uint8_t op; } compares[] = {
  {M_EQ, A_eq}, {M_NE, A_ne}, {M_LT, A_lt}, {M_LE, A_le}, {M_GT, A_gt}, {M_GE, A_ge}, {M_LO, A_lt}, {M_LS, A_le},
  {M_HI, A_gt}, {M_HS, A_ge}, {M_EQU, A_equ}, {M_NEU, A_neu}, {M_LTU, A_ltu}, {M_LEU, A_leu}, {M_GTU, A_gtu},
  {M_GEU, A_geu}, {M_NUM, A_num}, {M_ISNAN, A_isnan}, {M_FINITE, A_finite}, {M_INFINITE, A_infinite},
  {M_NUMBER, A_number}, {M_NOTANUMBER, A_notanumber}, {M_NORMAL, A_normal}, {M_SUBNORMAL, A_subnormal},
};

static AluOp
take_compare(Decoder *d)
{
  for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
    if (opmod_take(d, (ModId)compares[i].mod))
      return (AluOp)compares[i].op;
  decode_fail(d, "a comparison is missing");
  return A_COUNT;
}

static char
take_bool(Decoder *d)
{
  return opmod_take(d, M_AND) ? '&' : opmod_take(d, M_OR) ? '|' : opmod_take(d, M_XOR) ? '^' : 0;
}

static void
compare(Decoder *d, AluOp op, Type t, uint32_t dst, uint32_t a, uint32_t b, Post post)
{
  insn_alu(d, op, V_NONE, t, 0, dst, a, b, b);
  set_post(d, post);
}

static void
finish_setp(Decoder *d, uint32_t p, uint32_t q, uint32_t test, char logic, uint32_t c)
{
  if (q) {
    uint32_t not_test = slot_new(d, 0);
    insn_pred(d, '~', not_test, test, test);
    insn_pred(d, logic ? logic : '=', q, not_test, c);
  }
  insn_pred(d, logic ? logic : '=', p, test, c);
}

static Type
half_of(Type t)
{
  return t == T_F16X2 ? T_F16 : t == T_BF16X2 ? T_BF16 : T_NONE;
}

/* One test per half of two packed registers. */
static void
compare_halves(Decoder *d, AluOp op, Type t, const uint32_t dst[2], uint32_t a, uint32_t b, Post post)
{
  for (int h = 0; h < 2; h++) {
    uint32_t x = slot_new(d, 2), y = slot_new(d, 2);
    insn_alu(d, h ? A_hi16 : A_lo16, V_NONE, T_U32, 2, x, a, a, a);
    insn_alu(d, h ? A_hi16 : A_lo16, V_NONE, T_U32, 2, y, b, b, b);
    compare(d, op, half_of(t), dst[h], x, y, post);
  }
}

void
decode_setp(Decoder *d, int arg)
{
  AluOp op = take_compare(d);
  char logic = take_bool(d);
  Type t = need_type(d);
  Post post = take_post(d, t);
  need_operands(d, logic ? 4 : 3, logic ? 4 : 3);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  uint32_t c = logic ? opnd_src(d, &d->op[3], T_PRED) : 0;
  uint32_t p = d->op[0].kind == O_SINK ? slot_new(d, 0) : opnd_dst(d, &d->op[0], 0);
  uint32_t q = d->op[0].pipe ? d->op[0].pipe - 1 : 0;
  if (half_of(t)) {
    uint32_t test[2] = {slot_new(d, 0), slot_new(d, 0)};
    compare_halves(d, op, t, test, a, b, post);
    if (q)
      insn_pred(d, logic ? logic : '=', q, test[1], c);
    insn_pred(d, logic ? logic : '=', p, test[0], c);
    return;
  }
  if (!logic && !q) {
    compare(d, op, t, p, a, b, post);
    return;
  }
  uint32_t test = slot_new(d, 0);
  compare(d, op, t, test, a, b, post);
  finish_setp(d, p, q, test, logic, c);
}

static uint64_t
true_value(Type t)
{
  return t == T_F32 ? 0x3f800000u : t == T_F16 ? 0x3c00u : t == T_BF16 ? 0x3f80u : ~0ull;
}

static void
choose(Decoder *d, int w, uint32_t dst, uint32_t p, uint64_t yes)
{
  uint32_t a = slot_const(d, w, yes, false), b = slot_const(d, w, 0, false);
  insn_alu(d, A_selp, V_NONE, w == 2 ? T_U16 : T_U32, w, dst, a, b, p);
}

void
decode_set(Decoder *d, int arg)
{
  AluOp op = take_compare(d);
  char logic = take_bool(d);
  Type dt = need_type(d), t = need_type(d);
  Post post = take_post(d, t);
  need_operands(d, logic ? 4 : 3, logic ? 4 : 3);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  uint32_t c = logic ? opnd_src(d, &d->op[3], T_PRED) : 0, test[2] = {slot_new(d, 0), slot_new(d, 0)};
  int w = opnd_width(dt);
  uint32_t dst = opnd_dst(d, &d->op[0], w);
  if (!half_of(t)) {
    compare(d, op, t, test[0], a, b, post);
    if (logic)
      insn_pred(d, logic, test[0], test[0], c);
    choose(d, w, dst, test[0], true_value(dt));
    return;
  }
  uint32_t part[2] = {slot_new(d, 2), slot_new(d, 2)};
  compare_halves(d, op, t, test, a, b, post);
  for (int h = 0; h < 2; h++) {
    if (logic)
      insn_pred(d, logic, test[h], test[h], c);
    choose(d, 2, part[h], test[h], half_of(dt) ? true_value(half_of(dt)) : 0xffff);
  }
  insn_alu(d, A_pack16, V_NONE, T_U32, 4, dst, part[0], part[1], part[1]);
}

void
decode_testp(Decoder *d, int arg)
{
  AluOp op = take_compare(d);
  Type t = need_type(d);
  need_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], t);
  insn_alu(d, op, V_NONE, t, 0, opnd_dst(d, &d->op[0], 0), a, a, a);
}

void
decode_selp(Decoder *d, int arg)
{
  Type t = need_type(d);
  need_operands(d, 4, 4);
  if (t == T_PRED) {
    decode_fail(d, "selp has no predicates as values");
    return;
  }
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t), p = opnd_src(d, &d->op[3], T_PRED);
  insn_alu(d, A_selp, V_NONE, w == 2 ? T_U16 : w == 4 ? T_U32 : T_U64, w, opnd_dst(d, &d->op[0], w), a, b, p);
}

void
decode_slct(Decoder *d, int arg)
{
  Type t = need_type(d), ct = need_type(d);
  Post post = take_post(d, ct);
  need_operands(d, 4, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t), c = opnd_src(d, &d->op[3], ct);
  (void)post;
  insn_alu(d, ct == T_F32 ? A_slct_f32 : A_slct_s32, V_NONE, w == 2 ? T_U16 : w == 4 ? T_U32 : T_U64, w,
           opnd_dst(d, &d->op[0], w), a, b, c);
}

/* ---- moves and conversions ---- */

static Type
bits_type(int width)
{
  return width == 2 ? T_B16 : width == 4 ? T_B32 : width == 8 ? T_B64 : T_NONE;
}

static void
pack(Decoder *d, uint32_t dst, int width, const Opnd *e, uint32_t n)
{
  if (n == 1) {
    uint32_t s = opnd_src(d, e, bits_type(width));
    insn_alu(d, A_mov, V_NONE, bits_type(width), width, dst, s, s, s);
    return;
  }
  uint32_t part[2];
  for (uint32_t h = 0; h < 2; h++) {
    const Opnd *x = e + h * n / 2;
    if (n == 2)
      part[h] = opnd_src(d, x, bits_type(width / 2));
    else {
      part[h] = slot_new(d, width / 2);
      pack(d, part[h], width / 2, x, n / 2);
    }
  }
  insn_alu(d, width == 4 ? A_pack16 : A_pack32, V_NONE, width == 4 ? T_U32 : T_U64, width, dst, part[0], part[1],
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
    insn_alu(d, op, V_NONE, width == 4 ? T_U32 : T_U64, width / 2, part, src, src, src);
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
    insn_alu(d, A_mov, V_NONE, bits_type(opnd_width(t)), opnd_width(t), dst, src, src, src);
  else
    insn_alu(d, d->op[1].width == 8 ? A_cvt_u64 : A_cvt_u32, V_NONE,
             opnd_width(t) == 2 ? T_U16 : opnd_width(t) == 4 ? T_U32 : T_U64, opnd_width(t), dst, src, src, src);
}

void
decode_mov(Decoder *d, int arg)
{
  Type t = need_type(d);
  need_operands(d, 2, 2);
  Opnd *to = &d->op[0], *from = &d->op[1];
  int w = opnd_width(t);
  if (t == T_PRED) {
    uint32_t s = opnd_src(d, from, T_PRED);
    insn_pred(d, '=', opnd_dst(d, to, 0), s, s);
  } else if (to->kind == O_VEC || from->kind == O_VEC) {
    Opnd *v = to->kind == O_VEC ? to : from;
    if (!packable(w, v->n))
      decode_fail(d, "a move between these sizes is outside this machine");
    else if (v == to)
      unpack(d, opnd_src(d, from, bits_type(w)), w, &d->elem[v->first], v->n);
    else
      pack(d, opnd_dst(d, to, w), w, &d->elem[v->first], v->n);
  } else if (from->kind == O_REG && from->type != T_PRED && from->tok->s[0] == '%')
    mov_special(d, t);
  else {
    uint32_t s = opnd_src(d, from, t);
    insn_alu(d, A_mov, V_NONE, bits_type(w), w, opnd_dst(d, to, w), s, s, s);
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
  insn_alu(d, op, V_NONE, to, w, opnd_dst(d, &d->op[0], w), x, y, y);
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

void
decode_cvt(Decoder *d, int arg)
{
  uint8_t rnd = take_rounding(d);
  bool ftz = opmod_take(d, M_FTZ), sat = opmod_take(d, M_SAT), fin = opmod_take(d, M_SATFINITE), relu = opmod_take(d, M_RELU);
  Type to = need_type(d), from = need_type(d);
  need_operands(d, 2, 3);
  if (!d->failed && !ftz && !sat && !fin && !relu && cvt_fast(d, to, from, rnd))
    return;
  bool pair = cvt_pair_type(to) && !cvt_pair_type(from);
  if (d->failed || pair != (d->nop == 3) || to == T_PRED || from == T_PRED || (cvt_pair_type(from) && !cvt_pair_type(to))) {
    decode_fail(d, "'%.*s': the machine does not know this conversion", (int)d->op_tok->n, d->op_tok->s);
    return;
  }
  uint8_t width = 0, width2 = 0;
  uint32_t a = cvt_source(d, &d->op[1], from, &width), b = pair ? cvt_source(d, &d->op[2], from, &width2) : a;
  int dw = d->op[0].kind == O_REG && d->op[0].width > opnd_width(to) ? d->op[0].width : opnd_width(to);
  uint32_t dst = opnd_dst(d, &d->op[0], dw);
  if (pair && width != width2)
    decode_fail(d, "sources of different sizes");
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  in->fn.warp = cvt_exec;
  in->d = dst;
  in->dw = (uint8_t)dw;
  in->a = a;
  in->b = b;
  in->src_width = width;
  in->type = (uint8_t)to;
  in->type2 = (uint8_t)from;
  in->rnd = rnd;
  in->sub = pair;
  in->post = (uint8_t)((ftz ? POST_FTZ32 : 0) | (sat ? POST_SAT : 0) | (relu ? POST_RELU : 0));
  in->flags = fin ? IF_ALIGNED : 0;
}

static uint64_t
window_base(Space s)
{
  return s == SP_SHARED ? SHARED_WINDOW : s == SP_LOCAL ? LOCAL_WINDOW : s == SP_PARAM ? PARAM_WINDOW : 0;
}

/* Generic address = offset + base of the window; global and const addresses are generic already. */
void
decode_cvta(Decoder *d, int arg)
{
  bool to = opmod_take(d, M_TO);
  uint64_t base = window_base(opmod_space(d));
  if (need_type(d) != T_U64)
    decode_fail(d, "addresses have 64 bits");
  need_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], T_U64);
  insn_alu(d, A_offset, V_NONE, T_U64, 8, opnd_dst(d, &d->op[0], 8), a, a, a);
  if (!d->failed)
    d->code[d->ncode - 1].imm = to ? 0 - base : base;
}

void
decode_isspacep(Decoder *d, int arg)
{
  Space s = opmod_space(d);
  need_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], T_U64), dst = opnd_dst(d, &d->op[0], 0);
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  in->fn.warp = isspacep_exec;
  in->d = dst;
  in->a = a;
  in->space = (uint8_t)s;
}

/* With clusters of one block every address is already the block's own. */
void
decode_mapa(Decoder *d, int arg)
{
  opmod_space(d);
  Type t = need_type(d);
  need_operands(d, 3, 3);
  uint32_t a = opnd_src(d, &d->op[1], t);
  int w = opnd_width(t);
  insn_alu(d, A_mov, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, a, a);
}

void
decode_createpolicy(Decoder *d, int arg)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    d->mod[i] = 0;
  need_operands(d, 1, 5);
  uint32_t zero = slot_const(d, 8, 0, false);
  insn_alu(d, A_mov, V_NONE, T_U64, 8, opnd_dst(d, &d->op[0], 8), zero, zero, zero);
}

/* arg 1, 2: modifiers do not matter either */
void
decode_ignore(Decoder *d, int arg)
{
  for (uint32_t i = 0; i < d->nmod; i++)
    d->mod[i] = 0;
}

/* ---- memory ---- */

static uint32_t
take_vector(Decoder *d)
{
  return opmod_take(d, M_V2) ? 2 : opmod_take(d, M_V4) ? 4 : opmod_take(d, M_V8) ? 8 : 1;
}

static uint32_t
address_slot(Decoder *d, const Opnd *m)
{
  if (m->kind != O_MEM)
    decode_fail(d, "expected an address in brackets");
  else if (m->has_base && m->width < 4)
    decode_fail(d, "an address register is too narrow");
  return m->has_base ? m->slot : slot_const(d, 8, m->imm, m->dynamic);
}

static void
set_address(Insn *in, const Opnd *m, uint32_t slot)
{
  in->a = slot;
  in->imm = m->has_base ? m->imm : 0;
  if (!m->has_base || m->width == 8)
    in->flags |= IF_ADDR64;
}

static void
data_operands(Decoder *d, const Opnd *o, uint32_t vec, Type t, bool store, uint32_t *slots, uint8_t *width)
{
  const Opnd *e = vec == 1 && o->kind != O_VEC ? o : &d->elem[o->first];
  if ((vec > 1 || o->kind == O_VEC) && (o->kind != O_VEC || o->n != vec)) {
    decode_fail(d, "a vector of %u is expected", vec);
    return;
  }
  int w = 0;
  for (uint32_t i = 0; i < vec; i++)
    if (e[i].kind == O_REG && e[i].width > w)
      w = e[i].width;
  if (w < opnd_width(t))
    w = opnd_width(t);
  *width = (uint8_t)w;
  for (uint32_t i = 0; i < vec; i++)
    slots[i] = store ? opnd_src(d, &e[i], e[i].kind == O_REG ? bits_type(w) : t) : opnd_dst(d, &e[i], w);
  if (store && w != opnd_width(t) && !d->failed)
    for (uint32_t i = 0; i < vec; i++)
      if (e[i].kind != O_REG)
        slots[i] = opnd_src(d, &e[i], bits_type(w));
}

static void
memory_insn(Decoder *d, Space sp, Type t, uint32_t vec, const Opnd *data, const Opnd *mem, bool store)
{
  uint32_t slots[8] = {0};
  uint8_t width = 0;
  if (!d->failed && (ptx_type_bytes[t] == 0 || ptx_type_bytes[t] > 8))
    decode_fail(d, "memory of this type is outside this machine");
  if (d->failed)
    return;
  data_operands(d, data, vec, t, store, slots, &width);
  uint32_t at = address_slot(d, mem);
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  set_address(in, mem, at);
  in->fn.warp = store ? mem_store : mem_load;
  in->space = (uint8_t)sp;
  in->type = (uint8_t)t;
  in->esize = ptx_type_bytes[t];
  in->dw = width;
  in->vec = (uint8_t)vec;
  in->strong = d->strong;
  if (store)
    in->flags |= IF_STORE;
  for (uint32_t i = 0; i < vec; i++)
    insn_ext(d, slots[i]);
}

/* .param names a kernel's parameter, or a variable of a call, which is thread-local here. */
static Space
param_space(Space sp, const Opnd *m)
{
  return sp == SP_PARAM && m->kind == O_MEM && !m->has_base && m->space == SP_LOCAL ? SP_LOCAL : sp;
}

void
decode_ld(Decoder *d, int arg)
{
  opmod_take(d, M_CA);
  opmod_take(d, M_CG);
  Space sp = opmod_space(d);
  uint32_t vec = take_vector(d);
  bool hint = opmod_take(d, M_CACHE_HINT);
  mod_take_range(d, M_L2_EVICT_LAST, M_L2_EVICT_UNCHANGED);
  Type t = need_type(d);
  need_operands(d, hint ? 3 : 2, 3);
  memory_insn(d, param_space(sp, &d->op[1]), t, vec, &d->op[0], &d->op[1], false);
}

void
decode_st(Decoder *d, int arg)
{
  opmod_take(d, M_CA);
  opmod_take(d, M_CG);
  Space sp = opmod_space(d);
  uint32_t vec = take_vector(d);
  bool hint = opmod_take(d, M_CACHE_HINT);
  mod_take_range(d, M_L2_EVICT_LAST, M_L2_EVICT_UNCHANGED);
  Type t = need_type(d);
  need_operands(d, hint ? 3 : 2, 3);
  memory_insn(d, param_space(sp, &d->op[0]), t, vec, &d->op[1], &d->op[0], true);
}

static bool
atom_type_fits(ModId op, Type t)
{
  TypeClass c = ptx_type_class[t];
  int n = ptx_type_bytes[t];
  switch (op) {
  case M_ADD: return n >= 2 && c != TC_BITS && t != T_TF32 && t != T_U16X2 && t != T_S16X2 && t != T_F32X2 &&
                     t != T_U16 && t != T_S16 && t != T_E4M3X2 && t != T_E5M2X2;
  case M_MIN: case M_MAX: return (n == 4 || n == 8 || c == TC_FLOAT || c == TC_PACK) && n >= 2 && c != TC_BITS &&
                                 t != T_F32X2 && t != T_TF32 && t != T_U16X2 && t != T_S16X2;
  case M_INC: case M_DEC: return t == T_U32;
  case M_AND: case M_OR: case M_XOR: return n == 4 || n == 8;
  case M_EXCH: return n == 4 || n == 8;
  case M_CAS: return n == 2 || n == 4 || n == 8;
  default: return false;
  }
}

/* arg 1: atom, with a result; 0: red */
void
decode_atom(Decoder *d, int arg)
{
  Space sp = opmod_space(d);
  uint32_t vec = take_vector(d), i = arg ? 1u : 0u;
  bool hint = opmod_take(d, M_CACHE_HINT);
  ModId op = mod_take_range(d, M_AND, M_CAS);
  opmod_take(d, M_NOFTZ);
  Type t = need_type(d);
  bool cas = op == M_CAS;
  need_operands(d, i + 2 + cas, i + 2 + cas + hint);
  if (d->failed || !atom_type_fits(op, t) || (cas && vec > 1)) {
    decode_fail(d, "'%.*s': the machine does not know this atomic", (int)d->op_tok->n, d->op_tok->s);
    return;
  }
  uint32_t val[8] = {0}, res[8] = {0}, cmp = 0;
  uint8_t width = 0, rwidth = 0;
  data_operands(d, &d->op[i + 1 + cas], vec, t, true, val, &width);
  if (cas)
    cmp = opnd_src(d, &d->op[i + 1], bits_type(opnd_width(t)));
  if (arg && d->op[0].kind != O_SINK)
    data_operands(d, &d->op[0], vec, t, false, res, &rwidth);
  uint32_t at = address_slot(d, &d->op[i]);
  if (!d->failed && (width != opnd_width(t) || (rwidth && rwidth != width)))
    decode_fail(d, "a register of an atomic has the wrong size");
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  set_address(in, &d->op[i], at);
  in->fn.warp = atom_exec;
  in->space = (uint8_t)sp;
  in->type = (uint8_t)t;
  in->esize = ptx_type_bytes[t];
  in->sub = (uint8_t)op;
  in->vec = (uint8_t)vec;
  in->c = cmp;
  in->strong = d->strong || cas || op == M_EXCH;
  in->flags |= IF_STORE | (rwidth ? IF_HAS_D : 0);
  for (uint32_t v = 0; v < vec; v++)
    insn_ext(d, val[v]);
  for (uint32_t v = 0; v < vec && rwidth; v++)
    insn_ext(d, res[v]);
}

/* ---- control ---- */

void
decode_bra(Decoder *d, int arg)
{
  opmod_take(d, M_UNI);
  need_operands(d, 1, 1);
  if (d->op[0].kind != O_NAME && d->op[0].kind != O_ADDR)
    decode_fail(d, "a branch needs a label");
  if (!insn_emit(d, K_BRA))
    return;
  decode_fixup(d, d->op[0].tok, (uint32_t)d->ncode - 1, 0);
}

void
decode_brx(Decoder *d, int arg)
{
  opmod_take(d, M_IDX);
  opmod_take(d, M_UNI);
  need_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[0], T_U32);
  const Tok *name = d->op[1].tok;
  Sym *s = d->op[1].kind == O_NAME ? decode_lookup(d, name->s, name->n) : NULL;
  if (!s || s->kind != SYM_TARGETS) {
    decode_fail(d, "no list of branch targets");
    return;
  }
  Insn *in = insn_emit(d, K_BRX);
  if (!in)
    return;
  in->a = a;
  in->target = (uint32_t)d->nbrx;
  for (const Tok *t = &d->r->tok[s->addr]; t->kind == TK_IDENT && !d->failed; t++) {
    if (!sim_vec_grow(&d->brx, &d->brx_cap, d->nbrx + 1, sizeof *d->brx)) {
      decode_fail(d, "out of memory");
      return;
    }
    d->brx[d->nbrx] = 0;
    decode_fixup(d, t, UINT32_MAX, (uint32_t)d->nbrx++);
    in->count++;
    if (in->count == UINT16_MAX)
      decode_fail(d, "too many branch targets");
    if (t[1].kind == TK_PUNCT && t[1].punct == ',')
      t++;
  }
}

void
decode_ret(Decoder *d, int arg)
{
  static const Tok end = {.kind = TK_IDENT, .s = "", .n = 0};
  opmod_take(d, M_UNI);
  need_operands(d, 0, 0);
  if (d->depth < 2) {
    insn_emit(d, K_EXIT);
    return;
  }
  if (insn_emit(d, K_BRA))
    decode_fixup(d, &end, (uint32_t)d->ncode - 1, 0);
}

void
decode_exit(Decoder *d, int arg)
{
  need_operands(d, 0, 0);
  insn_emit(d, K_EXIT);
}

void
decode_trap(Decoder *d, int arg)
{
  need_operands(d, 0, 0);
  Insn *in = insn_emit(d, K_TRAP);
  if (in)
    in->sub = (uint8_t)arg;
}
