/* decode_mem.c - loads, stores, atomics and control flow. */
#include "decode.h"

/* ---- memory ---- */

static uint32_t
take_vector(Decoder *d)
{
  return opmod_take(d, M_V2) ? 2 : opmod_take(d, M_V4) ? 4 : opmod_take(d, M_V8) ? 8 : 1;
}

uint32_t
opnd_address(Decoder *d, const Opnd *m)
{
  if (m->kind != O_MEM)
    decode_fail(d, "expected an address in brackets");
  else if (m->has_base && m->width < 4)
    decode_fail(d, "an address register is too narrow");
  return m->has_base ? m->slot : slot_const(d, 8, m->imm, m->dynamic);
}

void
insn_address(Insn *in, const Opnd *m, uint32_t slot)
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
    slots[i] = store ? opnd_src(d, &e[i], e[i].kind == O_REG ? opnd_bits(w) : t) : opnd_dst(d, &e[i], w);
  if (store && w != opnd_width(t) && !d->failed)
    for (uint32_t i = 0; i < vec; i++)
      if (e[i].kind != O_REG)
        slots[i] = opnd_src(d, &e[i], opnd_bits(w));
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
  uint32_t at = opnd_address(d, mem);
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  insn_address(in, mem, at);
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
  opmod_take_range(d, M_L2_EVICT_LAST, M_L2_EVICT_UNCHANGED);
  Type t = decode_type(d);
  decode_operands(d, hint ? 3 : 2, 3);
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
  opmod_take_range(d, M_L2_EVICT_LAST, M_L2_EVICT_UNCHANGED);
  Type t = decode_type(d);
  decode_operands(d, hint ? 3 : 2, 3);
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
  ModId op = opmod_take_range(d, M_AND, M_CAS);
  opmod_take(d, M_NOFTZ);
  Type t = decode_type(d);
  bool cas = op == M_CAS;
  decode_operands(d, i + 2 + cas, i + 2 + cas + hint);
  if (d->failed || !atom_type_fits(op, t) || (cas && vec > 1) || (!arg && (cas || op == M_EXCH))) {
    decode_fail(d, "'%.*s': the machine does not know this atomic", (int)d->op_tok->n, d->op_tok->s);
    return;
  }
  uint32_t val[8] = {0}, res[8] = {0}, cmp = 0;
  uint8_t width = 0, rwidth = 0;
  data_operands(d, &d->op[i + 1 + cas], vec, t, true, val, &width);
  if (cas)
    cmp = opnd_src(d, &d->op[i + 1], opnd_bits(opnd_width(t)));
  if (arg && d->op[0].kind != O_SINK)
    data_operands(d, &d->op[0], vec, t, false, res, &rwidth);
  uint32_t at = opnd_address(d, &d->op[i]);
  if (!d->failed && (width != opnd_width(t) || (rwidth && rwidth != width)))
    decode_fail(d, "a register of an atomic has the wrong size");
  Insn *in = insn_emit(d, K_WARP);
  if (!in)
    return;
  insn_address(in, &d->op[i], at);
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
  decode_operands(d, 1, 1);
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
  decode_operands(d, 2, 2);
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
  decode_operands(d, 0, 0);
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
  decode_operands(d, 0, 0);
  insn_emit(d, K_EXIT);
}

void
decode_trap(Decoder *d, int arg)
{
  decode_operands(d, 0, 0);
  Insn *in = insn_emit(d, K_TRAP);
  if (in)
    in->sub = (uint8_t)arg;
}
