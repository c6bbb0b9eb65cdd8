/* decode_ops.c - modifiers, the dispatch on the opcode, arithmetic and predicates. Moves and conversions are in
 * decode_move.c, memory and control flow in decode_mem.c, what threads do together in decode_sync.c.
 * A decoder takes the modifiers it knows; one that is left over is an error. */
#include "approx.h"
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

/* Words of the memory model, which stand among the hints. */
static void
take_order(Decoder *d, ModId m)
{
  switch (m) {
  case M_VOLATILE: case M_MMIO: d->order = ORDER_RELAXED, d->scope = SCOPE_SYS; break;
  case M_RELAXED: d->order = ORDER_RELAXED; break;
  case M_ACQUIRE: d->order = ORDER_ACQUIRE; break;
  case M_RELEASE: d->order = ORDER_RELEASE; break;
  case M_ACQ_REL: case M_SC: d->order = ORDER_ACQ_REL; break;
  case M_CTA: d->scope = SCOPE_CTA; break;
  case M_CLUSTER: d->scope = SCOPE_CLUSTER; break;
  case M_GPU: case M_GL: d->scope = SCOPE_GPU; break;
  case M_SYS: d->scope = SCOPE_SYS; break;
  default: break;
  }
}

static uint32_t
shape_number(const char **s, const char *end)
{
  uint32_t v = 0;
  while (*s < end && **s >= '0' && **s <= '9' && v < 1000)
    v = v * 10 + (uint32_t)(*(*s)++ - '0');
  return v;
}

/* Shapes of a warpgroup's products are too many for a row each. */
static bool
is_shape(Decoder *d, const char *s, uint32_t n)
{
  const char *end = s + n;
  if (n < 7 || memcmp(s, "m64n", 4) != 0)
    return false;
  s += 4;
  d->shape_n = shape_number(&s, end);
  if (s == end || *s++ != 'k')
    return false;
  d->shape_k = shape_number(&s, end);
  return s == end;
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
  d->order = ORDER_WEAK;
  d->scope = SCOPE_GPU;
  while (n < t->n && !d->failed && !d->unknown) {
    uint32_t b = ++n;
    while (n < t->n && t->s[n] != '.')
      n++;
    int m = is_shape(d, t->s + b, n - b) ? M_WGMMA_SHAPE : mod_find(t->s + b, n - b);
    if (!m || d->nmod == MAX_MODS)
      decode_unknown(d);
    else if (m >= M_COUNT || !mods[m].hint)
      d->mod[d->nmod++] = (uint16_t)m;
    take_order(d, (ModId)m);
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

/* The first modifier between two, taken; M_NONE if there is none. */
ModId
opmod_take_range(Decoder *d, ModId first, ModId last)
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

/* The next type, which must be there. */
Type
decode_type(Decoder *d)
{
  Type t = opmod_type(d);
  if (!t)
    decode_fail(d, "a type is missing");
  return t;
}

Space
opmod_space(Decoder *d)
{
  switch (opmod_take_range(d, M_GLOBAL, M_PARAM_FUNC)) {
  case M_GLOBAL: return SP_GLOBAL;
  case M_SHARED: case M_SHARED_CTA: return SP_SHARED;
  case M_SHARED_CLUSTER: return SP_CLUSTER;
  case M_LOCAL: return SP_LOCAL;
  case M_CONST: return SP_CONST;
  case M_PARAM: case M_PARAM_ENTRY: case M_PARAM_FUNC: return SP_PARAM;
  default: return SP_GENERIC;
  }
}

/* Between min and max operands; those that are absent become O_NONE. */
void
decode_operands(Decoder *d, uint32_t min, uint32_t max)
{
  if (!d->failed && (d->nop < min || d->nop > max))
    decode_fail(d, "'%.*s' has %u operands", (int)d->op_tok->n, d->op_tok->s, d->nop);
  for (uint32_t i = d->nop; i < MAX_OPNDS; i++)
    d->op[i] = (Opnd){.kind = O_NONE};
}

uint32_t
decode_groups(Decoder *d)
{
  if (!d->failed && d->op[0].kind != O_IMM)
    decode_fail(d, "expected a number of groups");
  return d->op[0].imm > UINT32_MAX ? UINT32_MAX : (uint32_t)d->op[0].imm;
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

static bool
has_rest(const Decoder *d)
{
  for (uint32_t m = 0; m < d->nmod; m++)
    if (d->mod[m])
      return true;
  return false;
}

static void
decode_opcode(Decoder *d, const Tok *t)
{
  uint32_t head = split_mods(d, t);
  size_t i = 0, n = sizeof opcodes / sizeof *opcodes;
  while (i < n && (strlen(opcodes[i].text) != head || memcmp(opcodes[i].text, t->s, head) != 0))
    i++;
  if (i == n)
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  if (opcodes[i].fn != decode_call)
    opnd_list(d);
  if (!d->failed)
    opcodes[i].fn(d, opcodes[i].arg);
  if (opcodes[i].fn != decode_call && has_rest(d))
    decode_unknown(d);
}

void
decode_statement(Decoder *d)
{
  const Tok *t = decode_peek(d);
  size_t start = d->pos++;
  d->op_tok = t;
  if (t->kind != TK_IDENT) {
    decode_fail(d, "expected an instruction");
    return;
  }
  decode_opcode(d, t);
  if (!d->unknown)
    return;
  d->unknown = false;
  for (d->pos = start; !decode_accept(d, ';') && decode_peek(d)->kind != TK_END;)
    d->pos++;
}

/* ---- arithmetic ---- */

ModId
opmod_rounding(Decoder *d)
{
  return opmod_take_range(d, M_RN, M_RPI);
}

/* .ftz .sat .relu of an arithmetic instruction, set on the last emitted instruction. */
typedef struct Post { uint8_t bits, rnd; } Post;

static Post
take_post(Decoder *d, Type t)
{
  Post p = {0, 0};
  p.rnd = (uint8_t)opmod_rounding(d);
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
set_post(Insn *in, Post p)
{
  if (!in)
    return;
  in->alu.post = p.bits;
  in->alu.rounding = p.rnd;
}

static int
take_variant(Decoder *d)
{
  int var = opmod_take(d, M_LO) ? V_LO : opmod_take(d, M_HI) ? V_HI : opmod_take(d, M_WIDE) ? V_WIDE : V_NONE;
  if (opmod_take(d, M_APPROX))
    var = V_APPROX;
  return var;
}

/* V_APPROX for an .approx form whose bits are known. */
static int
approx_variant(AluOp op, Type t)
{
  static const struct { AluOp op; ApproxFn fn; bool narrow; } forms[] = {
    {A_rcp, APPROX_RCP, false}, {A_rsqrt, APPROX_RSQRT, false}, {A_sqrt, APPROX_SQRT, false}, {A_ex2, APPROX_EX2, true},
    {A_lg2, APPROX_LG2, false}, {A_sin, APPROX_SIN, false}, {A_cos, APPROX_COS, false}, {A_tanh, APPROX_TANH, true},
    {A_div, APPROX_RCP, false},
  };
  bool narrow = t == T_F16 || t == T_F16X2 || t == T_BF16 || t == T_BF16X2;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].op == op && (t == T_F32 || (narrow && forms[i].narrow)) && approx_known(forms[i].fn))
      return V_APPROX;
  return V_NONE;
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
  Type t = decode_type(d);
  decode_operands(d, 3, 3);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  add_with_carry(d, t, sub, a, b, in, out);
}

static void
carry_mad(Decoder *d, int var, bool in, bool out)
{
  Type t = decode_type(d);
  decode_operands(d, 4, 4);
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

/* A source of type t; where `narrow` is a type, a 16-bit float that becomes f32 (add.f32.f16, fma.f32.bf16). */
static uint32_t
widened_src(Decoder *d, const Opnd *o, Type t, Type narrow)
{
  if (!narrow)
    return opnd_src(d, o, t);
  uint32_t from = opnd_src(d, o, narrow), to = slot_new(d, 4);
  insn_alu(d, narrow == T_F16 ? A_cvt_f16 : A_cvt_bf16, V_NONE, T_F32, 4, to, from, from, from);
  return to;
}

/* The second type of mixed add, sub and fma. */
static Type
narrow_type(Decoder *d, AluOp op, Type t)
{
  Type narrow = t == T_F32 && (op == A_add || op == A_sub || op == A_fma) ? opmod_type(d) : T_NONE;
  if (narrow && narrow != T_F16 && narrow != T_BF16)
    decode_unknown(d);
  return narrow;
}

/* Sums, and the bitwise operations that stand for sums where bits are known to be zero, or round an address. */
static void
flow_alu(Decoder *d, AluOp op, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
  switch (op) {
  case A_add: case A_or: case A_xor: case A_and: flow_is(d, dst, FLOW_SUM, a, b); break;
  case A_sub: flow_is(d, dst, FLOW_DIFFERENCE, a, b); break;
  case A_mad: case A_mad24: flow_is(d, dst, FLOW_COPY, c, 0); break;
  default: break;
  }
}

void
decode_alu(Decoder *d, int nsrc)
{
  AluOp op = alu_named(d->op_tok);
  bool full = opmod_take(d, M_FULL);
  int var = full ? V_APPROX : take_variant(d);
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
  Type t = decode_type(d), narrow = narrow_type(d, op, t);
  decode_operands(d, (uint32_t)nsrc + 1, (uint32_t)nsrc + 1);
  if (t == T_PRED) {
    pred_logic(d);
    return;
  }
  if (op == A_mad && ptx_type_class[t] == TC_FLOAT)
    op = A_fma;
  if (var == V_APPROX)
    var = approx_variant(op, t);
  Post post = take_post(d, t);
  if (post.bits & POST_SAT && t == T_S32) {
    op = op == A_add ? A_addsat : op == A_sub ? A_subsat : A_COUNT;
    post.bits = 0;
  }
  Type dt = dst_type(op, var, t), ct = var == V_WIDE ? dt : t;
  uint32_t a = widened_src(d, &d->op[1], t, narrow);
  uint32_t b = nsrc > 1 ? widened_src(d, &d->op[2], t, nsrc > 2 ? narrow : T_NONE) : a;
  uint32_t c = nsrc > 2 ? opnd_src(d, &d->op[3], ct) : a;
  int w = opnd_width(dt);
  uint32_t dst = opnd_dst(d, &d->op[0], w);
  Insn *in = insn_alu(d, op, var, t, w, dst, a, b, c);
  set_post(in, post);
  flow_alu(d, op, dst, a, b, c);
  if (shift && in)
    in->alu.imm = ptx_type_bytes[t] * 8;
  if (var == V_APPROX && in)
    in->alu.imm = (post.bits & POST_FTZ32 ? APPROX_FTZ : 0) | (full ? APPROX_FULL : 0);
}

static int
minmax_variant(Decoder *d)
{
  bool nan = opmod_take(d, M_NAN), xorsign = opmod_take(d, M_XORSIGN);
  if (xorsign && !opmod_take(d, M_ABS))
    decode_fail(d, "xorsign needs abs");
  return xorsign ? nan ? V_XORSIGN_NAN : V_XORSIGN : nan ? V_NAN : V_NONE;
}

void
decode_minmax(Decoder *d, int nsrc)
{
  AluOp op = alu_named(d->op_tok);
  int var = minmax_variant(d);
  Type t = decode_type(d);
  Post post = take_post(d, t);
  decode_operands(d, 3, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t);
  uint32_t dst = opnd_dst(d, &d->op[0], w), c = d->nop == 4 ? opnd_src(d, &d->op[3], t) : 0;
  set_post(insn_alu(d, op, var, t, w, dst, a, b, b), post);
  if (!c)
    return;
  if (c == dst)
    decode_fail(d, "the third source is the result's register");
  set_post(insn_alu(d, op, var, t, w, dst, dst, c, c), post);
}

void
decode_shift(Decoder *d, int arg)
{
  AluOp op = alu_named(d->op_tok);
  Type t = decode_type(d);
  decode_operands(d, 3, 3);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), n = opnd_src(d, &d->op[2], T_U32);
  insn_alu(d, op, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, n, n);
}

void
decode_bfe(Decoder *d, int arg)
{
  Type t = decode_type(d);
  decode_operands(d, 4, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], T_U32), c = opnd_src(d, &d->op[3], T_U32);
  insn_alu(d, A_bfe, V_NONE, t, w, opnd_dst(d, &d->op[0], w), a, b, c);
}

void
decode_bfi(Decoder *d, int arg)
{
  Type t = decode_type(d);
  decode_operands(d, 5, 5);
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
  Insn *in = insn_alu(d, op, V_NONE, T_U32, 4, opnd_dst(d, &d->op[0], 4), a, b, c);
  if (in)
    in->alu.imm = imm;
}

void
decode_lop3(Decoder *d, int arg)
{
  decode_type(d);
  decode_operands(d, 5, 5);
  three_words(d, A_lop3, need_imm(d, &d->op[4]));
}

void
decode_shf(Decoder *d, int arg)
{
  bool left = opmod_take(d, M_L), wrap = opmod_take(d, M_WRAP);
  if (!left)
    opmod_take(d, M_R);
  opmod_take(d, M_CLAMP);
  decode_type(d);
  decode_operands(d, 4, 4);
  three_words(d, left ? A_shfl_l : A_shfl_r, wrap);
}

void
decode_prmt(Decoder *d, int arg)
{
  decode_type(d);
  ModId m = opmod_take_range(d, M_F4E, M_RC16);
  decode_operands(d, 4, 4);
  three_words(d, A_prmt, m ? (uint64_t)(m - M_F4E + 1) : 0);
}

void
decode_fns(Decoder *d, int arg)
{
  decode_type(d);
  decode_operands(d, 4, 4);
  three_words(d, A_fns, 0);
}

void
decode_dp(Decoder *d, int arg)
{
  bool four = d->op_tok->s[2] == '4', hi = opmod_take(d, M_HI);
  opmod_take(d, M_LO);
  Type a = decode_type(d), b = decode_type(d);
  decode_operands(d, 4, 4);
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
  set_post(insn_alu(d, op, V_NONE, t, 0, dst, a, b, b), post);
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
  Type t = decode_type(d);
  Post post = take_post(d, t);
  decode_operands(d, logic ? 4 : 3, logic ? 4 : 3);
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
  uint32_t a = slot_const(d, w, yes, 0), b = slot_const(d, w, 0, 0);
  insn_alu(d, A_selp, V_NONE, opnd_bits(w), w, dst, a, b, p);
}

void
decode_set(Decoder *d, int arg)
{
  AluOp op = take_compare(d);
  char logic = take_bool(d);
  Type dt = decode_type(d), t = decode_type(d);
  Post post = take_post(d, t);
  decode_operands(d, logic ? 4 : 3, logic ? 4 : 3);
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
  Type t = decode_type(d);
  decode_operands(d, 2, 2);
  uint32_t a = opnd_src(d, &d->op[1], t);
  insn_alu(d, op, V_NONE, t, 0, opnd_dst(d, &d->op[0], 0), a, a, a);
}

void
decode_selp(Decoder *d, int arg)
{
  Type t = decode_type(d);
  decode_operands(d, 4, 4);
  if (t == T_PRED) {
    decode_fail(d, "selp has no predicates as values");
    return;
  }
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t), p = opnd_src(d, &d->op[3], T_PRED);
  uint32_t dst = opnd_dst(d, &d->op[0], w);
  insn_alu(d, A_selp, V_NONE, opnd_bits(w), w, dst, a, b, p);
  flow_is(d, dst, FLOW_CHOICE, a, b);
}

void
decode_slct(Decoder *d, int arg)
{
  Type t = decode_type(d), ct = decode_type(d);
  Post post = take_post(d, ct);
  decode_operands(d, 4, 4);
  int w = opnd_width(t);
  uint32_t a = opnd_src(d, &d->op[1], t), b = opnd_src(d, &d->op[2], t), c = opnd_src(d, &d->op[3], ct);
  (void)post;
  insn_alu(d, ct == T_F32 ? A_slct_f32 : A_slct_s32, V_NONE, opnd_bits(w), w,
           opnd_dst(d, &d->op[0], w), a, b, c);
}
