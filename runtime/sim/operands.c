/* operands.c - the operands of an instruction, register-file slots for them, and emission. */
#include "decode.h"
#include "fp.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 27 };
#define CONST_BIT (1u << 31)

static const struct { const char *name; uint8_t id, width; bool vector; } specials[] = {
  {"%tid", S_TID, 4, true}, {"%ntid", S_NTID, 4, true}, {"%ctaid", S_CTAID, 4, true},
  {"%nctaid", S_NCTAID, 4, true}, {"%laneid", S_LANEID, 4, false}, {"%warpid", S_WARPID, 4, false},
  {"%nwarpid", S_NWARPID, 4, false}, {"%smid", S_SMID, 4, false}, {"%nsmid", S_NSMID, 4, false},
  {"%gridid", S_GRIDID, 8, false}, {"%lanemask_lt", S_LT, 4, false}, {"%lanemask_le", S_LE, 4, false},
  {"%lanemask_eq", S_EQ, 4, false}, {"%lanemask_ge", S_GE, 4, false}, {"%lanemask_gt", S_GT, 4, false},
  {"%dynamic_smem_size", S_DYNSMEM, 4, false}, {"%total_smem_size", S_TOTSMEM, 4, false},
  {"%clusterid", S_CTAID, 4, true}, {"%nclusterid", S_NCTAID, 4, true},
  {"%cluster_ctarank", S_ZERO, 4, false}, {"%cluster_nctarank", S_ONE, 4, false},
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

static uint32_t
slot_bytes(int width)
{
  return width < 2 ? 64 : (uint32_t)width * LANES;
}

uint32_t
slot_new(Decoder *d, int width)
{
  uint32_t at = d->k->reg_bytes;
  if (at > MAX_FILE)
    decode_fail(d, "too many registers");
  else
    d->k->reg_bytes += slot_bytes(width);
  return at;
}

static uint32_t
const_space(Decoder *d, int width)
{
  uint32_t at = d->const_bytes;
  if (at > MAX_FILE)
    decode_fail(d, "too many constants");
  else
    d->const_bytes += slot_bytes(width);
  return at | CONST_BIT;
}

uint32_t
slot_const(Decoder *d, int width, uint64_t value, bool dynamic)
{
  if (width < 8)
    value &= width == 0 ? 1 : (1ull << 8 * width) - 1;
  uint32_t h = (uint32_t)((value ^ value >> 29) * 2654435761u >> 5) & 255;
  for (uint32_t i = d->const_head[h]; i; i = d->const_next[i - 1]) {
    const ConstSlot *c = &d->consts[i - 1];
    if (c->value == value && c->width == width && c->dynamic == dynamic)
      return c->offset;
  }
  if (!sim_vec_grow(&d->consts, &d->const_cap, d->nconsts + 1, sizeof *d->consts) ||
      !sim_vec_grow(&d->const_next, &d->const_next_cap, d->nconsts + 1, sizeof *d->const_next)) {
    decode_fail(d, "out of memory");
    return 0;
  }
  d->const_next[d->nconsts] = d->const_head[h];
  d->consts[d->nconsts++] = (ConstSlot){const_space(d, width), (uint8_t)width, dynamic, value};
  d->const_head[h] = (uint32_t)d->nconsts;
  return d->consts[d->nconsts - 1].offset;
}

uint32_t
slot_special(Decoder *d, SpecialId id, int width)
{
  for (size_t i = 0; i < d->nspecials; i++)
    if (d->specials[i].id == id && d->specials[i].width == width)
      return d->specials[i].offset;
  if (!sim_vec_grow(&d->specials, &d->special_cap, d->nspecials + 1, sizeof *d->specials)) {
    decode_fail(d, "out of memory");
    return 0;
  }
  SpecialSlot s = {const_space(d, width), (uint8_t)id, (uint8_t)width};
  d->specials[d->nspecials++] = s;
  return s.offset;
}

/* ---- emission ---- */

Insn *
insn_emit(Decoder *d, Kind kind)
{
  if (d->failed)
    return NULL;
  if (!sim_vec_grow(&d->code, &d->code_cap, d->ncode + 1, sizeof *d->code) ||
      !sim_vec_grow(&d->loc, &d->loc_cap, d->ncode + 1, sizeof *d->loc)) {
    decode_fail(d, "out of memory");
    return NULL;
  }
  d->loc[d->ncode] = d->here;
  Insn *in = &d->code[d->ncode++];
  *in = (Insn){.kind = (uint8_t)kind, .guard = d->guard, .guard_not = d->guard_not, .ext = (uint32_t)d->next};
  return in;
}

void
insn_ext(Decoder *d, uint32_t value)
{
  if (d->failed || !sim_vec_grow(&d->ext, &d->ext_cap, d->next + 1, sizeof *d->ext)) {
    decode_fail(d, "out of memory");
    return;
  }
  d->ext[d->next++] = value;
  d->code[d->ncode - 1].next++;
}

void
insn_alu(Decoder *d, AluOp op, int var, Type t, int dw, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
  const AluRow *row = alu_find(op, var, t);
  if (!row) {
    decode_fail(d, "'%.*s' does not take .%s", (int)(d->op_tok ? d->op_tok->n : 0), d->op_tok ? d->op_tok->s : "",
                t ? ptx_type_text[t] : "none");
    return;
  }
  Insn *in = insn_emit(d, (Kind)row->kind);
  if (!in)
    return;
  in->fn.alu = row->fn;
  in->type = (uint8_t)t;
  in->dw = (uint8_t)dw;
  in->d = dst;
  in->a = a;
  in->b = b;
  in->c = c;
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
  Insn *in = insn_emit(d, K_SETP);
  if (!in)
    return;
  in->fn.alu = op == '&' ? pred_and : op == '|' ? pred_or : op == '^' ? pred_xor : op == '~' ? pred_not : pred_mov;
  in->d = dst;
  in->a = a;
  in->b = b;
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
    *o = (Opnd){.kind = O_REG, .type = width == 4 ? T_U32 : T_U64, .width = (uint8_t)width, .tok = t};
    if (id < S_CLOCK) {
      o->slot = slot_special(d, (SpecialId)id, width);
      return true;
    }
    o->slot = slot_new(d, width);
    Insn *in = insn_emit(d, K_WARP);
    if (in) {
      in->fn.warp = clock_exec;
      in->sub = (uint8_t)id;
      in->d = o->slot;
      in->dw = (uint8_t)width;
    }
    return true;
  }
  return false;
}

/* A static shared variable of the module takes room in every kernel that names it. */
static uint64_t
module_shared(Decoder *d, Sym *s)
{
  size_t index = (size_t)(s - d->r->sym);
  Kernel *k = d->k;
  if (s->dynamic) {
    k->shared_align = s->align > k->shared_align ? s->align : k->shared_align;
    return 0;
  }
  if (index >= d->shared_cap) {
    size_t old = d->shared_cap;
    if (!sim_vec_grow(&d->shared_at, &d->shared_cap, d->r->nsym + 1, sizeof *d->shared_at)) {
      decode_fail(d, "out of memory");
      return 0;
    }
    memset(d->shared_at + old, 0, (d->shared_cap - old) * sizeof *d->shared_at);
  }
  if (!d->shared_at[index]) {
    uint32_t at = (k->static_shared + s->align - 1) & ~(s->align - 1);
    if (at + (uint64_t)s->size > 1 << 24)
      decode_fail(d, "too much shared memory");
    k->static_shared = at + s->size;
    d->shared_at[index] = (uint64_t)at + 1;
  }
  return d->shared_at[index] - 1;
}

static void
symbol_operand(Decoder *d, const Tok *t, Opnd *o)
{
  Sym *s = decode_lookup(d, t->s, t->n);
  *o = (Opnd){.kind = O_NAME, .tok = t};
  if (!s || s->kind != SYM_VAR)
    return;
  o->kind = O_ADDR;
  o->space = s->space;
  o->dynamic = s->dynamic;
  bool of_module = s >= d->r->sym && s < d->r->sym + d->r->nsym;
  o->imm = s->space == SP_SHARED && of_module ? module_shared(d, s) : s->addr;
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

/* [base], [base+n], [base+-n], [n]; the base is a register or a variable. */
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
  decode_expect(d, ']');
  *o = (Opnd){.kind = O_MEM, .tok = t, .imm = off, .width = 8};
  if (base.kind == O_REG) {
    o->has_base = true;
    o->slot = base.slot;
    o->width = base.width;
  } else if (base.kind == O_ADDR || base.kind == O_IMM) {
    o->space = base.space;
    o->imm += base.imm;
    o->dynamic = base.dynamic;
  } else
    decode_fail(d, "no variable '%.*s'", (int)t->n, t->s);
}

static void single_operand(Decoder *d, Opnd *o);

static void
vector_operand(Decoder *d, Opnd *o)
{
  *o = (Opnd){.kind = O_VEC, .first = d->nelem, .tok = decode_peek(d)};
  while (!d->failed && !decode_accept(d, '}')) {
    Opnd e = {.kind = O_NONE};
    single_operand(d, &e);
    if (d->nelem == MAX_ELEMS || e.kind == O_VEC)
      decode_fail(d, "malformed vector");
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
  bool neg = decode_accept(d, '!');
  if (decode_peek(d)->kind == TK_IDENT)
    word_operand(d, o);
  else
    number_operand(d, o);
  o->neg = neg;
  if (o->kind == O_ADDR && at_sign(d))
    o->imm += signed_number(d);
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
  uint32_t slot = o->kind == O_IMM ? slot_const(d, 0, o->imm != 0, false) : o->slot;
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
  return t;
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
    return slot_const(d, width, o->fbits ? float_value(o, t) : o->imm, false);
  if (o->kind == O_ADDR && width >= 4)
    return slot_const(d, width, o->imm, o->dynamic);
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
  return o->slot;
}
