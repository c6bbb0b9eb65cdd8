/* operands.c - the operands of an instruction, register-file slots for them, and emission. */
#include "decode.h"
#include "fp.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 27 };

static const struct { const char *name; uint8_t id, width; bool vector; } specials[] = {
  {"%tid", S_TID, 4, true}, {"%ntid", S_NTID, 4, true}, {"%ctaid", S_CTAID, 4, true},
  {"%nctaid", S_NCTAID, 4, true}, {"%laneid", S_LANEID, 4, false}, {"%warpid", S_WARPID, 4, false},
  {"%nwarpid", S_NWARPID, 4, false}, {"%smid", S_SMID, 4, false}, {"%nsmid", S_NSMID, 4, false},
  {"%gridid", S_GRIDID, 8, false}, {"%lanemask_lt", S_LT, 4, false}, {"%lanemask_le", S_LE, 4, false},
  {"%lanemask_eq", S_EQ, 4, false}, {"%lanemask_ge", S_GE, 4, false}, {"%lanemask_gt", S_GT, 4, false},
  {"%dynamic_smem_size", S_DYNSMEM, 4, false}, {"%total_smem_size", S_TOTSMEM, 4, false},
  {"%clusterid", S_CLUSTERID, 4, true}, {"%nclusterid", S_NCLUSTERID, 4, true},
  {"%cluster_ctaid", S_CLUSTER_CTAID, 4, true}, {"%cluster_nctaid", S_CLUSTER_NCTAID, 4, true},
  {"%cluster_ctarank", S_CLUSTER_CTARANK, 4, false}, {"%cluster_nctarank", S_CLUSTER_NCTARANK, 4, false},
  {"%is_explicit_cluster", S_EXPLICIT, 0, false},
  {"%clock", S_CLOCK, 4, false}, {"%clock_hi", S_ZERO, 4, false}, {"%clock64", S_CLOCK64, 8, false},
  {"%globaltimer", S_TIMER, 8, false},
};

int
opnd_width(Type t)
{
  return ptx_type_bytes[t] == 1 ? 2 : ptx_type_bytes[t];
}

Type
opnd_bits(int width)
{
  return width == 2 ? T_B16 : width == 4 ? T_B32 : width == 8 ? T_B64 : T_NONE;
}

uint32_t
slot_new(Decoder *d, int width)
{
  Unit *u = d->u;
  uint32_t at = u->reg_bytes;
  if (at > MAX_FILE) {
    decode_fail(d, "too many registers");
    return at;
  }
  if (!sim_vec_grow(&u->width, &d->width_cap, u->nslots + 1u, sizeof *u->width)) {
    decode_no_memory(d);
    return at;
  }
  u->width[u->nslots++] = (uint8_t)width;
  u->reg_bytes += slot_bytes((uint32_t)width);
  return at;
}

static uint32_t
const_space(Decoder *d, int width)
{
  uint32_t at = d->const_bytes;
  if (at > MAX_FILE)
    decode_fail(d, "too many constants");
  else
    d->const_bytes += slot_bytes((uint32_t)width);
  return at | CONST_BIT;
}

static uint32_t
const_hash(uint64_t value, int width, uint32_t shared)
{
  uint64_t h = (value ^ (uint64_t)shared << 40 ^ (uint64_t)width) * 0x9e3779b97f4a7c15ull;
  return (uint32_t)(h >> 32);
}

static uint32_t
new_const(Decoder *d, int width, uint64_t value, uint32_t shared, uint32_t hash)
{
  Unit *u = d->u;
  if (!sim_vec_grow(&u->consts, &d->const_cap, u->nconsts + 1u, sizeof *u->consts) || !chains_add(&d->const_chains, hash)) {
    decode_no_memory(d);
    return 0;
  }
  u->consts[u->nconsts++] = (ConstSlot){value, const_space(d, width), shared, (uint8_t)width};
  return u->consts[u->nconsts - 1].offset;
}

uint32_t
slot_const(Decoder *d, int width, uint64_t value, uint32_t shared)
{
  if (width < 8)
    value &= width == 0 ? 1 : (1ull << 8 * width) - 1;
  uint32_t h = const_hash(value, width, shared);
  for (uint32_t i = chains_first(&d->const_chains, h); i; i = chains_next(&d->const_chains, i)) {
    const ConstSlot *c = &d->u->consts[i - 1];
    if (c->value == value && c->width == width && c->shared == shared)
      return c->offset;
  }
  return new_const(d, width, value, shared, h);
}

uint32_t
slot_special(Decoder *d, SpecialId id, int width)
{
  Unit *u = d->u;
  for (size_t i = 0; i < u->nspecials; i++)
    if (u->specials[i].id == id && u->specials[i].width == width)
      return u->specials[i].offset;
  if (!sim_vec_grow(&u->specials, &d->special_cap, u->nspecials + 1u, sizeof *u->specials)) {
    decode_no_memory(d);
    return 0;
  }
  SpecialSlot s = {const_space(d, width), (uint8_t)id, (uint8_t)width};
  u->specials[u->nspecials++] = s;
  return s.offset;
}

/* ---- emission ---- */

Insn *
insn_emit(Decoder *d, Kind kind, uint32_t nslot)
{
  Unit *u = d->u;
  if (d->failed || d->unknown)
    return NULL;
  if (!sim_vec_grow(&u->code, &d->code_cap, u->ncode + 1u, sizeof *u->code) ||
      !sim_vec_grow(&u->loc, &d->loc_cap, u->ncode + 1u, sizeof *u->loc)) {
    decode_no_memory(d);
    return NULL;
  }
  u->loc[u->ncode] = d->here;
  Insn *in = &u->code[u->ncode++];
  *in = (Insn){.kind = (uint8_t)kind, .nslot = (uint8_t)nslot, .guard = d->guard, .guard_not = d->guard_not, .list = u->nlists};
  return in;
}

Insn *
insn_warp(Decoder *d, Kind kind, WarpFn *fn, uint32_t nslot)
{
  Insn *in = insn_emit(d, kind, nslot);
  if (in)
    in->fn.warp = fn;
  return in;
}

void
insn_list(Decoder *d, uint32_t slot)
{
  Unit *u = d->u;
  if (d->failed || !sim_vec_grow(&u->lists, &d->list_cap, u->nlists + 1u, sizeof *u->lists)) {
    decode_no_memory(d);
    return;
  }
  u->lists[u->nlists++] = slot;
}

Insn *
insn_alu(Decoder *d, AluOp op, int var, Type t, int width, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
  const AluRow *row = alu_find(op, var, t);
  if (!row) {
    decode_unknown(d);
    return NULL;
  }
  Insn *in = insn_emit(d, (Kind)row->kind, 4);
  if (!in)
    return NULL;
  in->fn.alu = row->fn;
  in->type = (uint8_t)t;
  in->alu = (AluOps){.d = dst, .a = a, .b = b, .c = c, .width = (uint8_t)width};
  return in;
}

#define PRED_FN(name, expr) \
  static void name(void *d_, const void *a_, const void *b_, const void *c_, uint64_t imm) \
  { \
    uint32_t x = *(const uint32_t *)a_, y = *(const uint32_t *)b_; \
    (void)x, (void)y; \
    *(uint32_t *)d_ = (expr); \
  }
PRED_FN(pred_mov, x)
PRED_FN(pred_not, ~x)
PRED_FN(pred_and, x &y)
PRED_FN(pred_or, x | y)
PRED_FN(pred_xor, x ^ y)

void
insn_pred(Decoder *d, char op, uint32_t dst, uint32_t a, uint32_t b)
{
  Insn *in = insn_emit(d, K_SETP, 3);
  if (!in)
    return;
  in->fn.alu = op == '&' ? pred_and : op == '|' ? pred_or : op == '^' ? pred_xor : op == '~' ? pred_not : pred_mov;
  in->alu = (AluOps){.d = dst, .a = a, .b = b};
}

/* ---- reading operands ---- */

static uint32_t
range_slot(Decoder *d, Sym *s, uint64_t i)
{
  if (!s->slots[i])
    s->slots[i] = slot_new(d, opnd_width((Type)s->type));
  return s->slots[i];
}

/* %r12 is register 12 of the range %r<n>; the longest run of digits at the end is its number. */
static bool
range_register(Decoder *d, const Tok *t, Opnd *o)
{
  uint32_t n = t->n;
  uint64_t number = 0;
  while (n > 0 && t->s[n - 1] >= '0' && t->s[n - 1] <= '9')
    n--;
  if (n == t->n || t->n - n > 9)
    return false;
  for (uint32_t i = n; i < t->n; i++)
    number = number * 10 + (uint64_t)(t->s[i] - '0');
  Sym *s = decode_lookup(d, t->s, n);
  if (!s || s->kind != SYM_RANGE || number >= s->count)
    return false;
  *o = (Opnd){.kind = O_REG, .type = s->type, .width = (uint8_t)opnd_width((Type)s->type), .tok = t,
              .slot = range_slot(d, s, number)};
  return true;
}

bool
opnd_register(Decoder *d, const Tok *t, Opnd *o)
{
  Sym *s = decode_lookup(d, t->s, t->n);
  if (!s)
    return range_register(d, t, o);
  if (s->kind != SYM_REG)
    return false;
  if (!s->addr)
    s->addr = slot_new(d, opnd_width((Type)s->type));
  *o = (Opnd){.kind = O_REG, .type = s->type, .width = (uint8_t)opnd_width((Type)s->type), .tok = t,
              .slot = (uint32_t)s->addr};
  return true;
}

static bool
special_register(Decoder *d, const Tok *t, Opnd *o)
{
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    size_t n = strlen(specials[i].name);
    int lane = 0;
    if (t->n < n || memcmp(t->s, specials[i].name, n) != 0)
      continue;
    if (specials[i].vector) {
      if (t->n != n + 2 || t->s[n] != '.' || t->s[n + 1] < 'x' || t->s[n + 1] > 'z')
        continue;
      lane = t->s[n + 1] - 'x';
    } else if (t->n != n)
      continue;
    int id = specials[i].id + lane, width = specials[i].width;
    *o = (Opnd){.kind = O_REG, .type = width == 4 ? T_U32 : width ? T_U64 : T_PRED, .width = (uint8_t)width, .tok = t};
    if (id < S_CLOCK) {
      o->slot = slot_special(d, (SpecialId)id, width);
      return true;
    }
    o->slot = slot_new(d, width);
    Insn *in = insn_warp(d, K_WARP, clock_exec, 1);
    if (in)
      in->clock = (ClockOps){o->slot, (uint8_t)width, (uint8_t)id};
    return true;
  }
  return false;
}

/* A function's address is its window's, with 16 bytes for each. */
static void
function_operand(Decoder *d, const Sym *s, Opnd *o)
{
  SimModule *m = d->r->mod;
  o->kind = O_ADDR;
  o->space = SP_GLOBAL;
  o->imm = FUNCTION_WINDOW + 16ull * s->func->index;
  m->taken[s->func->index] = true;
}

static bool
is_reserved(const Tok *t)
{
  return ptx_tok_is(t, "%reserved_smem_offset_0") || ptx_tok_is(t, "%reserved_smem_offset_1");
}

static void
symbol_operand(Decoder *d, const Tok *t, Opnd *o)
{
  const Sym *s = decode_lookup(d, t->s, t->n);
  if (!s && is_reserved(t))
    s = decode_reserved(d, t);
  *o = (Opnd){.kind = O_NAME, .tok = t};
  if (s && s->kind == SYM_FUNC && !s->func->entry)
    function_operand(d, s, o);
  if (!s || s->kind != SYM_VAR)
    return;
  o->kind = O_ADDR;
  o->space = s->space;
  o->shared = s->shared;
  o->var = s->var;
  o->imm = s->addr;
}

static void
word_operand(Decoder *d, Opnd *o)
{
  const Tok *t = decode_peek(d);
  d->pos++;
  if (t->n == 1 && t->s[0] == '_') {
    *o = (Opnd){.kind = O_SINK, .tok = t};
    return;
  }
  if (opnd_register(d, t, o) || (t->s[0] == '%' && special_register(d, t, o)))
    return;
  if (ptx_tok_is(t, "WARP_SZ")) {
    *o = (Opnd){.kind = O_IMM, .imm = LANES, .tok = t};
    return;
  }
  symbol_operand(d, t, o);
  if (o->kind == O_NAME && t->s[0] == '%')
    decode_fail(d, "no register '%.*s'", (int)t->n, t->s);
}

static uint64_t
signed_number(Decoder *d)
{
  bool minus = false;
  while (decode_peek(d)->kind == TK_PUNCT && (decode_peek(d)->punct == '-' || decode_peek(d)->punct == '+'))
    minus ^= decode_peek(d)->punct == '-', d->pos++;
  const Tok *t = decode_peek(d);
  if (t->kind != TK_INT) {
    decode_fail(d, "expected a number");
    return 0;
  }
  d->pos++;
  return minus ? 0 - t->v : t->v;
}

static void
number_operand(Decoder *d, Opnd *o)
{
  bool minus = decode_accept(d, '-');
  const Tok *t = decode_peek(d);
  if (t->kind == TK_FLOAT) {
    *o = (Opnd){.kind = O_IMM, .imm = t->v, .fbits = t->fbits ? t->fbits : 1, .tok = t};
    if (minus)
      o->imm ^= t->fbits == 32 ? 1ull << 31 : 1ull << 63;
    d->pos++;
    return;
  }
  *o = (Opnd){.kind = O_IMM, .tok = t, .imm = signed_number(d)};
  if (minus)
    o->imm = 0 - o->imm;
}

static bool
at_sign(Decoder *d)
{
  const Tok *t = decode_peek(d);
  return t->kind == TK_PUNCT && (t->punct == '+' || t->punct == '-');
}

static void plain_operand(Decoder *d, Opnd *o);
static void vector_operand(Decoder *d, Opnd *o);

/* [base], [base+n], [base+-n], [n], [base, {coordinates}]; the base is a register or a variable. */
static void
memory_operand(Decoder *d, Opnd *o)
{
  Opnd base = {.kind = O_NONE};
  const Tok *t = decode_peek(d);
  if (t->kind == TK_IDENT)
    word_operand(d, &base);
  else
    number_operand(d, &base);
  uint64_t off = at_sign(d) ? signed_number(d) : 0;
  Opnd at = {.kind = O_NONE};
  if (decode_accept(d, ',')) {
    decode_expect(d, '{');
    vector_operand(d, &at);
  }
  decode_expect(d, ']');
  *o = (Opnd){.kind = O_MEM, .tok = t, .imm = off, .width = 8, .first = at.first, .n = at.n};
  if (base.kind == O_REG) {
    o->has_base = true;
    o->slot = base.slot;
    o->width = base.width;
  } else if (base.kind == O_ADDR || base.kind == O_IMM) {
    o->space = base.space;
    o->imm += base.imm;
    o->shared = base.shared;
    o->var = base.var;
  } else
    decode_fail(d, "no variable '%.*s'", (int)t->n, t->s);
}

static void
vector_operand(Decoder *d, Opnd *o)
{
  *o = (Opnd){.kind = O_VEC, .first = d->nelem, .tok = decode_peek(d)};
  while (!d->failed && !decode_accept(d, '}')) {
    Opnd e = {.kind = O_NONE};
    plain_operand(d, &e);
    if (d->nelem == MAX_ELEMS)
      decode_fail(d, "a vector has more than %d elements", MAX_ELEMS);
    else if (!d->failed)
      d->elem[d->nelem++] = e;
    if (!decode_accept(d, ',') && !(decode_peek(d)->kind == TK_PUNCT && decode_peek(d)->punct == '}'))
      decode_fail(d, "expected ',' or '}'");
  }
  o->n = d->nelem - o->first;
}

static void
pipe_operand(Decoder *d, Opnd *o)
{
  Opnd q = {.kind = O_NONE};
  if (decode_peek(d)->kind == TK_IDENT)
    word_operand(d, &q);
  if (q.kind == O_SINK)
    q.slot = slot_new(d, 0);
  else if (q.kind != O_REG || q.type != T_PRED)
    decode_fail(d, "expected a predicate after '|'");
  o->pipe = q.slot + 1;
}

/* A register, a number or a name. */
static void
plain_operand(Decoder *d, Opnd *o)
{
  bool neg = decode_accept(d, '!');
  if (decode_peek(d)->kind == TK_IDENT)
    word_operand(d, o);
  else
    number_operand(d, o);
  o->neg = neg;
  if (o->kind == O_ADDR && at_sign(d))
    o->imm += signed_number(d);
}

static void
single_operand(Decoder *d, Opnd *o)
{
  if (decode_accept(d, '{')) {
    vector_operand(d, o);
    return;
  }
  if (decode_accept(d, '[')) {
    memory_operand(d, o);
    return;
  }
  plain_operand(d, o);
  if (decode_accept(d, '|'))
    pipe_operand(d, o);
}

void
opnd_list(Decoder *d)
{
  d->nop = d->nelem = 0;
  if (decode_accept(d, ';'))
    return;
  do {
    if (d->nop == MAX_OPNDS) {
      decode_fail(d, "too many operands");
      return;
    }
    d->op[d->nop] = (Opnd){.kind = O_NONE};
    single_operand(d, &d->op[d->nop++]);
  } while (!d->failed && decode_accept(d, ','));
  decode_expect(d, ';');
}

/* ---- operands to slots ---- */

static uint64_t
float_value(const Opnd *o, Type t)
{
  double v = o->fbits == 32 ? (double)bits_f32((uint32_t)o->imm) : bits_f64(o->imm);
  switch (t) {
  case T_F32: case T_B32: return o->fbits == 32 ? o->imm : f32_bits((float)v);
  case T_F64: case T_B64: return o->fbits == 64 ? o->imm : f64_bits(v);
  case T_F16: return simfp_encode(v, &simfp_f16, FP_RN, false);
  case T_BF16: return simfp_encode(v, &simfp_bf16, FP_RN, false);
  default: return o->imm;
  }
}

static uint32_t
pred_source(Decoder *d, const Opnd *o)
{
  uint32_t slot = o->kind == O_IMM ? slot_const(d, 0, o->imm != 0, 0) : o->slot;
  if (o->kind != O_IMM && (o->kind != O_REG || o->type != T_PRED))
    decode_fail(d, "expected a predicate");
  if (!o->neg)
    return slot;
  uint32_t t = slot_new(d, 0);
  insn_pred(d, '~', t, slot, slot);
  return t;
}

static uint32_t
narrowed(Decoder *d, const Opnd *o, int width)
{
  uint32_t t = slot_new(d, width);
  insn_alu(d, o->width == 8 ? A_cvt_u64 : A_cvt_u32, V_NONE, opnd_bits(width), width, t, o->slot, o->slot,
           o->slot);
  flow_define(d, t);
  flow_is(d, t, FLOW_COPY, o->slot, 0);
  return t;
}

/* The address of a variable. A function's own are found from where its frame begins. */
static uint32_t
address_value(Decoder *d, const Opnd *o, int width)
{
  if (o->space != SP_LOCAL || !d->u->frame) {
    uint32_t slot = slot_const(d, width, o->imm, o->shared);
    if (o->var)
      flow_var(d, slot, o->var);
    return slot;
  }
  uint32_t at = slot_new(d, 8);
  if (o->var)
    flow_var(d, at, o->var);
  Insn *in = insn_alu(d, A_offset, V_NONE, T_U64, 8, at, d->u->frame, d->u->frame, d->u->frame);
  if (in)
    in->alu.imm = o->imm;
  if (width == 8)
    return at;
  Opnd wide = {.kind = O_REG, .type = T_U64, .width = 8, .slot = at};
  return narrowed(d, &wide, width);
}

uint32_t
opnd_address(Decoder *d, const Opnd *m, Space space, Address *at)
{
  if (m->kind != O_MEM)
    decode_fail(d, "expected an address in brackets");
  else if (m->has_base && m->width < 4)
    decode_fail(d, "an address register is too narrow");
  *at = (Address){.offset = m->imm, .var = m->var, .wide = !m->has_base || m->width == 8, .space = (uint8_t)space};
  if (m->has_base)
    return m->slot;
  if (m->space == SP_LOCAL && space == SP_LOCAL && d->u->frame)
    return d->u->frame;
  at->offset = 0;
  return slot_const(d, 8, m->imm, m->shared);
}

uint32_t
opnd_src(Decoder *d, const Opnd *o, Type t)
{
  int width = opnd_width(t);
  if (t == T_PRED)
    return pred_source(d, o);
  if (o->neg)
    decode_fail(d, "'!' before a value that is not a predicate");
  if (o->kind == O_IMM)
    return slot_const(d, width, o->fbits ? float_value(o, t) : o->imm, 0);
  if (o->kind == O_ADDR && width >= 4)
    return address_value(d, o, width);
  if (o->kind != O_REG || o->type == T_PRED)
    decode_fail(d, "expected a register or a number");
  else if (o->width < width)
    decode_fail(d, "a register is too narrow for .%s", ptx_type_text[t]);
  else
    return o->width == width ? o->slot : narrowed(d, o, width);
  return 0;
}

uint32_t
opnd_dst(Decoder *d, const Opnd *o, int width)
{
  if (o->kind == O_SINK)
    return slot_new(d, width);
  if (o->kind != O_REG || o->slot & CONST_BIT)
    decode_fail(d, "a result needs a register");
  else if (width == 0 ? o->type != T_PRED : o->width != width || o->type == T_PRED)
    decode_fail(d, "register '%.*s' has the wrong size", (int)o->tok->n, o->tok->s);
  if (width >= 4)
    flow_define(d, o->slot);
  return o->slot;
}
