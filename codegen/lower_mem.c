/* lower_mem.c - loads and stores.
 *
 * The registers of a tile are taken in groups of `vec`: consecutive registers that hold consecutive elements. A group is
 * one access of up to 16 bytes, moved as machine words into which narrow elements are packed. An access that always
 * happens is an LLVM load or store, so that LLVM may move and merge it; one that depends on a mask, on the tile's
 * extents or on which copy a thread holds, and one with a cache hint, is predicated inline PTX. Where a load is masked
 * off, its registers keep the `other` value they had before.
 */
#include "gen.h"

#define B g->b

/* ---- accesses ---- */

/* What one load or store does: how registers are grouped and when the access happens. */
typedef struct Access {
  const Op *op;
  const Value *ptr, *mask;
  const Type *type;        /* of the pointer */
  Dist *h;                 /* NULL for scalars */
  u32 vec, regs;
  Words w;
  Val leader;               /* stores: only where this holds; NULL: everywhere */
  Val policy;              /* L2 cache policy or NULL */
  const char *cache;
} Access;

static Val
evict_policy(Gen *g, const Op *op)
{
  const char *evict = op_str(op, AT_EVICT, NULL);
  if (!evict || !strcmp(evict, "normal") || g->target->ptx < 74 || op->code == OP_ASYNC_COPY)
    return NULL;
  return ptx_value(g, PTX_POLICY, g->i64, 0, NULL, evict, NULL);
}

static Access
access_new(Gen *g, const Op *op, const Value *ptr, const Value *mask)
{
  Access a = {.op = op, .ptr = ptr, .mask = mask, .type = ptr->type};
  a.h = type_is_tile(a.type) ? dist_get(g, a.type->layout) : NULL;
  a.regs = gen_nregs(a.type);
  a.vec = addr_vector(g, op, a.h);
  a.w = words_for(g, a.type->dt, false, a.vec);
  a.cache = op_int(op, AT_VOLATILE, 0) ? NULL : op_str(op, AT_CACHE, NULL);
  a.policy = evict_policy(g, op);
  return a;
}

/* When the group at register r happens: NULL always; a constant false: never. */
static Val
access_when(Gen *g, const Access *a, u32 r)
{
  Val when = a->mask ? gen_regs(g, a->mask)[r] : NULL;
  if (a->h)
    when = gen_and(g, dist_inside(g, a->h, a->type, r), when);
  when = gen_and(g, when, a->leader);
  if (when && LLVMIsAConstantInt(when) && LLVMConstIntGetZExtValue(when))
    return NULL;
  return when;
}

static bool
is_never(Val when)
{
  return when && LLVMIsAConstantInt(when);
}

static bool
is_plain(const Access *a, Val when)
{
  return !when && !a->cache && !a->policy && !op_int(a->op, AT_VOLATILE, 0);
}

/* "{$3, $4}" or "$3". */
static const char *
operand_list(Gen *g, u32 first, u32 n)
{
  if (n == 1)
    return arena_printf(g->arena, "$%u", first);
  Buf b = {.arena = g->arena};
  for (u32 i = 0; i < n; i++)
    buf_printf(&b, "%s$%u", i ? ", " : "{", first + i);
  buf_putc(&b, '}');
  return buf_str(&b);
}

static const char *
access_suffix(Gen *g, const Access *a)
{
  Buf b = {.arena = g->arena};
  if (a->cache) buf_printf(&b, ".%s", a->cache);
  if (a->policy) buf_puts(&b, ".L2::cache_hint");
  if (a->w.n > 1) buf_printf(&b, ".v%u", a->w.n);
  buf_printf(&b, ".%s", a->w.suffix);
  return buf_str(&b);
}

static const char *
place(Gen *g, u32 operand, u64 off)
{
  return off ? arena_printf(g->arena, "$%u+%llu", operand, (unsigned long long)off) : arena_printf(g->arena, "$%u", operand);
}

/* Inline PTX takes bytes in 16-bit registers. */
static Val
widen_byte(Gen *g, Val v)
{
  return LLVMTypeOf(v) == g->i8 ? LLVMBuildZExt(B, v, g->i16, "") : v;
}

static void
push_in(PtxArgs *p, Val v)
{
  p->in[p->nin++] = v;
}

/* The predicate and the policy of an access; operands come after `outputs` and `before` others. */
static void
push_conditions(Gen *g, const Access *a, Val when, PtxArgs *p, int pred_at, int policy_at)
{
  if (when) {
    p->subst[pred_at] = arena_printf(g->arena, "@$%u", p->nout + p->nin);
    push_in(p, when);
  }
  if (a->policy) {
    p->subst[policy_at] = arena_printf(g->arena, ", $%u", p->nout + p->nin);
    push_in(p, a->policy);
  }
}

/* ---- loads ---- */
static void
load_ptx(Gen *g, const Access *a, Addr at, Val when, Val *words)
{
  bool is_volatile = op_int(a->op, AT_VOLATILE, 0) != 0, byte = a->w.type == g->i8;
  PtxArgs p = {.nout = a->w.n, .ntied = a->w.n};
  for (u32 i = 0; i < a->w.n; i++)
    p.out[i] = byte ? g->i16 : a->w.type;
  p.subst[1] = is_volatile ? ".volatile" : "";
  p.subst[2] = access_suffix(g, a);
  p.subst[3] = operand_list(g, 0, a->w.n);
  p.subst[4] = place(g, a->w.n, at.off);
  push_in(&p, at.base);
  push_conditions(g, a, when, &p, 0, 5);
  for (u32 i = 0; i < a->w.n; i++)
    push_in(&p, widen_byte(g, words[i]));
  ptx_emit(g, is_volatile ? PTX_LD_VOL : PTX_LD, &p, words);
  if (byte)
    words[0] = LLVMBuildTrunc(B, words[0], g->i8, "");
}

static void
load_group(Gen *g, const Access *a, u32 r, const Val *other, Val *out)
{
  Val when = access_when(g, a, r), words[16], zero = LLVMConstNull(a->w.elem);
  Val off[16];
  for (u32 i = 0; i < a->vec; i++)
    off[i] = other ? other[r + i] : a->w.is_i1 ? LLVMConstInt(g->i1, 0, 0) : zero;
  if (is_never(when)) {
    memcpy(out, off, sizeof *out * a->vec);
    return;
  }
  Addr at = addr_element(g, a->ptr, r);
  u32 align = a->vec * a->w.ebits / 8;
  if (is_plain(a, when)) {   /* LLVM's volatile could not be masked: volatile loads are PTX as well */
    words_load(g, &a->w, addr_offset(g, at.base, at.off), align, words);
  } else {
    words_pack(g, &a->w, off, words);
    load_ptx(g, a, at, when, words);
  }
  words_unpack(g, &a->w, words, out);
}

static const Val *
other_of(Gen *g, const Op *op)
{
  return op_operand(op, 2) ? gen_regs(g, op_operand(op, 2)) : NULL;
}

/* The access that fills reg, where the store to shared memory asks for it. */
static void
load_late(Gen *g, const Late *late, u32 reg)
{
  Access a = access_new(g, late->op, op_operand(late->op, 0), op_operand(late->op, 1));
  load_group(g, &a, reg & ~(a.vec - 1), other_of(g, late->op), late->regs + (reg & ~(a.vec - 1)));
}

void
lower_LOAD(Gen *g, const Op *op)
{
  Access a = access_new(g, op, op_operand(op, 0), op_operand(op, 1));
  const Val *other = other_of(g, op);
  Val *out = gen_new(g, op_result(op));
  u32 shared = scratch_bytes(g->c, op);
  u32 equal = a.vec == 1 ? dist_equal_bits(g, op_result(op), a.h) : 0;
  if (!shared && !equal && !op_attr(op, AT_VOLATILE) && late_fits(g, op, a.regs / a.vec * a.w.n)) {
    late_add(g, &(Late){.op = op, .regs = out, .load = load_late});
    return;
  }
  if (shared)
    a.leader = dist_leader(g, a.h);
  for (u32 r = 0; r < a.regs; r += a.vec)
    if (!a.h || a.h->rep[r] == r) {
      if (r & equal)
        out[r] = out[a.h->rep[r & ~equal]];
      else
        load_group(g, &a, r, other, out + r);
    }
  if (shared && addr_scratch(g, op, shared))
    leader_broadcast(g, op, a.h, a.leader, out);
  dist_share(g, op_result(op));
}

/* ---- stores ---- */
static void
store_ptx(Gen *g, const Access *a, Addr at, Val when, const Val *words)
{
  PtxArgs p = {0};
  p.subst[1] = access_suffix(g, a);
  p.subst[2] = place(g, 0, at.off);
  p.subst[3] = operand_list(g, 1, a->w.n);
  push_in(&p, at.base);
  for (u32 i = 0; i < a->w.n; i++)
    push_in(&p, widen_byte(g, words[i]));
  push_conditions(g, a, when, &p, 0, 4);
  ptx_emit(g, PTX_ST, &p, NULL);
}

static void
store_group(Gen *g, const Access *a, u32 r, const Val *values)
{
  Val when = access_when(g, a, r), words[16];
  if (is_never(when))
    return;
  Addr at = addr_element(g, a->ptr, r);
  words_pack(g, &a->w, values + r, words);
  if (is_plain(a, when))
    words_store(g, &a->w, addr_offset(g, at.base, at.off), a->vec * a->w.ebits / 8, words);
  else
    store_ptx(g, a, at, when, words);
}

void
lower_STORE(Gen *g, const Op *op)
{
  Access a = access_new(g, op, op_operand(op, 0), op_operand(op, 2));
  const Val *values = gen_regs(g, op_operand(op, 1));
  a.leader = dist_leader(g, a.h);
  for (u32 r = 0; r < a.regs; r += a.vec)
    if (!a.h || a.h->rep[r] == r)
      store_group(g, &a, r, values);
}

void
lower_store_alone(Gen *g, const Op *op)
{
  Access a = access_new(g, op, op_operand(op, 0), NULL);
  store_group(g, &a, 0, gen_regs(g, op_operand(op, 1)));
}

/* ---- asynchronous copies ---- */

/* One cp.async of a->vec elements; the mask decides how many bytes are read, the rest becomes 0. There is no cache policy: for a copy
 * that has one and whose buffer's address is partly uniform, ptxas 13.0 puts that address where the policy's descriptor has a 0, and
 * the GPU stops at an illegal instruction. */
static void
copy_group(Gen *g, const Access *a, const Buffer *buf, const Dist *h, u32 r)
{
  Val when = access_when(g, a, r), inside;
  u32 bytes = a->vec * buf->bytes;
  Addr at = addr_element(g, a->ptr, r);
  Val to = buffer_address(g, buf, h, r, &inside);
  PtxArgs p = {0};
  if (!to)
    return;
  p.subst[0] = bytes == 16 ? "cg" : "ca";
  p.subst[1] = bytes == 16 && g->target->ptx >= 74 ? ".L2::128B" : "";
  p.subst[2] = place(g, 1, at.off);
  push_in(&p, to);
  push_in(&p, at.base);
  p.subst[3] = arena_printf(g->arena, "%u", bytes);
  if (when) {
    p.subst[3] = arena_printf(g->arena, "%u, $%u", bytes, p.nin);
    push_in(&p, LLVMBuildSelect(B, when, gen_u32(g, bytes), gen_u32(g, 0), ""));
  }
  if (inside) {
    p.subst[4] = arena_printf(g->arena, "@$%u", p.nin);
    push_in(&p, inside);
  }
  ptx_emit(g, PTX_CP_ASYNC, &p, NULL);
}

void
lower_ASYNC_COPY(Gen *g, const Op *op)
{
  Access a = access_new(g, op, op_operand(op, 1), op_operand(op, 2));
  Buffer buf = buffer_of(g, op_operand(op, 0));
  Dist *h = buffer_dist(g, a.type, &buf);
  u32 fits = buffer_copy_vec(g, &buf, h, a.vec);
  a.vec = fits < a.vec ? fits : a.vec;
  if (!target_has(g->target, F_CP_ASYNC) || a.vec * buf.bytes < 4) {
    gen_unsupported(g, op, arena_printf(g->arena, "an asynchronous copy of %u bytes at a time (cp.async copies 4, 8 or 16)",
                                        a.vec * buf.bytes));
    return;
  }
  LLVMBasicBlockRef after = gen_if(g, team_bits_zero(g, h->free_threads));
  for (u32 r = 0; r < a.regs; r += a.vec)
    if (h->rep[r] == r)
      copy_group(g, &a, &buf, h, r);
  gen_end_if(g, after);
}
