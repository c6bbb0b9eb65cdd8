/* decode_mem.c - loads, stores, atomics and control flow. */
#include "decode.h"

enum { MAX_TARGETS = 1 << 22 };

/* ---- memory ---- */

static uint32_t
take_vector(Decoder *d)
{
  return opmod_take(d, M_V2) ? 2 : opmod_take(d, M_V4) ? 4 : opmod_take(d, M_V8) ? 8 : 1;
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
list_all(Decoder *d, const uint32_t *slots, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    insn_list(d, slots[i]);
}

static void
memory_insn(Decoder *d, Space sp, Type t, uint32_t count, const Opnd *data, const Opnd *mem, bool store)
{
  uint32_t slots[8] = {0};
  uint8_t width = 0;
  Address at;
  if (ptx_type_bytes[t] == 0 || ptx_type_bytes[t] > 8)
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  data_operands(d, data, count, t, store, slots, &width);
  uint32_t base = opnd_address(d, mem, sp, &at);
  Insn *in = insn_warp(d, K_WARP, store ? mem_store : mem_load, 1);
  if (!in)
    return;
  in->type = (uint8_t)t;
  in->mem = (MemOps){.base = base, .at = at, .size = ptx_type_bytes[t], .count = (uint8_t)count, .width = width,
                     .order = (uint8_t)d->order, .scope = (uint8_t)d->scope};
  list_all(d, slots, count);
  if (!store && sp == SP_PARAM && mem->var && !mem->has_base && count == 1 && width == 8)
    flow_is(d, slots[0], FLOW_VAR, mem->var, 0);
}

/* .param names a kernel's parameter, or a variable of a call, which is thread-local here. */
static Space
param_space(Space sp, const Opnd *m)
{
  return sp == SP_PARAM && m->kind == O_MEM && !m->has_base && m->space == SP_LOCAL ? SP_LOCAL : sp;
}

static bool
async_reduction_fits(ModId op, Type t)
{
  switch (op) {
  case M_INC: case M_DEC: return t == T_U32;
  case M_MIN: case M_MAX: return t == T_U32 || t == T_S32;
  case M_AND: case M_OR: case M_XOR: return t == T_B32;
  case M_ADD: return t == T_U32 || t == T_S32 || t == T_U64;
  default: return false;
  }
}

/* Behind st.async and red.async: [to], value, [mbarrier]. op: of a reduction, or 0 */
static void
async_store_insn(Decoder *d, ModId op, uint32_t count)
{
  uint32_t slots[8] = {0};
  StoreOps o = {.count = (uint8_t)count, .op = (uint8_t)op};
  Space sp = opmod_space(d);
  Address mbar;
  bool ends = opmod_take(d, M_COMPLETE_BYTES);
  Type t = decode_type(d);
  decode_operands(d, 3, 3);
  if ((sp != SP_CLUSTER && sp != SP_GENERIC) || !ends || ptx_type_bytes[t] < 4 || (op && !async_reduction_fits(op, t)))
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  o.size = ptx_type_bytes[t];
  data_operands(d, &d->op[1], count, t, true, slots, &o.width);
  o.base = opnd_address(d, &d->op[0], SP_CLUSTER, &o.at);
  o.mbar = opnd_address(d, &d->op[2], SP_CLUSTER, &mbar);
  o.mbar_offset = (int32_t)mbar.offset;
  o.mbar_wide = mbar.wide;
  Insn *in = insn_warp(d, K_WARP, async_store, 2);
  if (!in)
    return;
  in->type = (uint8_t)t;
  in->store = o;
  list_all(d, slots, count);
}

/* arg 1: st, else ld */
void
decode_ld(Decoder *d, int store)
{
  if (store && opmod_take(d, M_ASYNC)) {
    async_store_insn(d, M_NONE, take_vector(d));
    return;
  }
  opmod_take(d, M_CA);
  opmod_take(d, M_CG);
  Space sp = opmod_space(d);
  uint32_t count = take_vector(d);
  bool hint = opmod_take(d, M_CACHE_HINT);
  opmod_take_range(d, M_L2_EVICT_LAST, M_L2_EVICT_UNCHANGED);
  Type t = decode_type(d);
  decode_operands(d, hint ? 3 : 2, 3);
  const Opnd *mem = &d->op[store ? 0 : 1];
  memory_insn(d, param_space(sp, mem), t, count, &d->op[store ? 1 : 0], mem, store);
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

typedef struct Atomic { ModId op; Type type; uint32_t count, value[8], result[8], compare; uint8_t width, rwidth; } Atomic;

static void
atomic_insn(Decoder *d, const Atomic *a, const Opnd *mem, Space sp)
{
  Address at;
  uint32_t base = opnd_address(d, mem, sp, &at);
  Insn *in = insn_warp(d, K_WARP, atom_exec, 2);
  if (!in)
    return;
  in->type = (uint8_t)a->type;
  in->mem = (MemOps){.base = base, .compare = a->compare, .at = at, .size = ptx_type_bytes[a->type], .count = (uint8_t)a->count,
                     .width = a->width, .order = (uint8_t)(d->order ? d->order : ORDER_RELAXED), .scope = (uint8_t)d->scope,
                     .op = (uint8_t)a->op, .result = a->rwidth != 0};
  list_all(d, a->value, a->count);
  if (a->rwidth)
    list_all(d, a->result, a->count);
}

/* arg 1: atom, with a result; 0: red */
void
decode_atom(Decoder *d, int arg)
{
  if (!arg && opmod_take(d, M_ASYNC)) {
    async_store_insn(d, opmod_take_range(d, M_AND, M_CAS), 1);
    return;
  }
  Space sp = opmod_space(d);
  Atomic a = {.count = take_vector(d)};
  uint32_t i = arg ? 1u : 0u;
  bool hint = opmod_take(d, M_CACHE_HINT);
  a.op = opmod_take_range(d, M_AND, M_CAS);
  opmod_take(d, M_NOFTZ);
  a.type = decode_type(d);
  bool cas = a.op == M_CAS;
  decode_operands(d, i + 2 + cas, i + 2 + cas + hint);
  if (!atom_type_fits(a.op, a.type) || (cas && a.count > 1) || (!arg && (cas || a.op == M_EXCH)))
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  data_operands(d, &d->op[i + 1 + cas], a.count, a.type, true, a.value, &a.width);
  if (cas)
    a.compare = opnd_src(d, &d->op[i + 1], opnd_bits(opnd_width(a.type)));
  if (arg && d->op[0].kind != O_SINK)
    data_operands(d, &d->op[0], a.count, a.type, false, a.result, &a.rwidth);
  if (a.width != opnd_width(a.type) || (a.rwidth && a.rwidth != a.width))
    decode_fail(d, "a register of an atomic has the wrong size");
  atomic_insn(d, &a, &d->op[i], sp);
}

/* ---- control ---- */

void
decode_bra(Decoder *d, int arg)
{
  opmod_take(d, M_UNI);
  decode_operands(d, 1, 1);
  if (d->op[0].kind != O_NAME && d->op[0].kind != O_ADDR)
    decode_fail(d, "a branch needs a label");
  if (insn_emit(d, K_BRA, 0))
    decode_fixup(d, d->op[0].tok, d->u->ncode - 1, 0);
}

/* The labels of a .branchtargets, from token t on, into the unit's table. */
static uint32_t
table_entries(Decoder *d, const Tok *t)
{
  Unit *u = d->u;
  uint32_t n = 0;
  for (; t->kind == TK_IDENT && !d->failed; t++, n++) {
    if (u->nbrx == MAX_TARGETS)
      decode_fail(d, "too many branch targets");
    else if (!sim_vec_grow(&u->brx, &d->brx_cap, u->nbrx + 1u, sizeof *u->brx))
      decode_no_memory(d);
    if (d->failed)
      return 0;
    u->brx[u->nbrx] = 0;
    decode_fixup(d, t, UINT32_MAX, u->nbrx++);
    if (t[1].kind == TK_PUNCT && t[1].punct == ',')
      t++;
  }
  return n;
}

void
decode_brx(Decoder *d, int arg)
{
  opmod_take(d, M_IDX);
  opmod_take(d, M_UNI);
  decode_operands(d, 2, 2);
  uint32_t index = opnd_src(d, &d->op[0], T_U32);
  const Tok *name = d->op[1].tok;
  const Sym *s = d->op[1].kind == O_NAME ? decode_lookup(d, name->s, name->n) : NULL;
  if (!s || s->kind != SYM_TARGETS) {
    decode_fail(d, "no list of branch targets");
    return;
  }
  uint32_t first = d->u->nbrx, count = table_entries(d, &d->r->tok[s->addr]);
  Insn *in = insn_emit(d, K_BRX, 1);
  if (in)
    in->brx = (TableOps){index, first, count};
}

void
decode_exit(Decoder *d, int arg)
{
  decode_operands(d, 0, 0);
  insn_emit(d, K_EXIT, 0);
}

void
decode_trap(Decoder *d, int arg)
{
  decode_operands(d, 0, 0);
  Insn *in = insn_emit(d, K_TRAP, 0);
  if (in)
    in->text.reason = (uint8_t)arg;
}
