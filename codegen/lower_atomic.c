/* lower_atomic.c - atomic read-modify-write and compare-and-swap: exactly once for each element.
 *
 * Of the threads that hold copies of an element one is its leader, and the leader acts; a scalar's leader is thread 0. If
 * the old values are used and there are copies, leaders leave them in scratch memory and after a barrier everyone reads.
 * Where a thread's neighbouring registers hold neighbours in memory, sums of floats go as vectors (vec, as for loads and stores).
 * Atomics are inline PTX (LLVM's atomicrmw drops order and scope). What the hardware has no instruction for becomes a
 * compare-and-swap loop around the op's elementwise meaning.
 * Order is the program's, not the thread's: a releasing atomic comes after a barrier, so that what all threads wrote is
 * released, and an acquiring one before a barrier.
 */
#include "gen.h"

#define B g->b
#define M(d) (1u << DT_##d)

typedef struct AtomRow { const char *rmw; u32 dtypes; const char *suffix; int feature; } AtomRow;
static const AtomRow atoms[] = {
  {"add", M(I32) | M(U32), "add.u32", -1},  {"add", M(I64) | M(U64), "add.u64", -1},
  {"add", M(F32), "add.f32", -1},           {"add", M(F64), "add.f64", -1},
  {"add", M(F16), "add.noftz.f16", -1},     {"add", M(BF16), "add.noftz.bf16", F_ATOM_BF16},
  {"min", M(I32), "min.s32", -1},           {"min", M(U32), "min.u32", -1},
  {"min", M(I64), "min.s64", -1},           {"min", M(U64), "min.u64", -1},
  {"max", M(I32), "max.s32", -1},           {"max", M(U32), "max.u32", -1},
  {"max", M(I64), "max.s64", -1},           {"max", M(U64), "max.u64", -1},
  {"and", M(I32) | M(U32), "and.b32", -1},  {"and", M(I64) | M(U64), "and.b64", -1},
  {"or", M(I32) | M(U32), "or.b32", -1},    {"or", M(I64) | M(U64), "or.b64", -1},
  {"xor", M(I32) | M(U32), "xor.b32", -1},  {"xor", M(I64) | M(U64), "xor.b64", -1},
  {"xchg", M(I32) | M(U32), "exch.b32", -1}, {"xchg", M(I64) | M(U64), "exch.b64", -1},
};

typedef struct Atomic {
  const Op *op;
  const Type *type;         /* of the pointers */
  DType d;
  Dist *h;                  /* NULL: scalar */
  Val leader;                /* who acts; NULL: everyone */
  const char *sem, *scope;
  const char *order;        /* "relaxed.gpu" */
  const char *rmw;          /* NULL: compare-and-swap */
  const AtomRow *row;       /* NULL: by a loop */
  Ty bits;                  /* integer of the element's width */
  u32 vec;                  /* elements a time, in `words`: 1, or a red's */
  Words words;
  bool used;
} Atomic;

static const AtomRow *
find_row(Gen *g, const char *rmw, DType d)
{
  for (u32 i = 0; rmw && i < COUNT(atoms); i++)
    if (!strcmp(atoms[i].rmw, rmw) && atoms[i].dtypes >> d & 1)
      return atoms[i].feature < 0 || target_has(g->target, (Feature)atoms[i].feature) ? &atoms[i] : NULL;
  return NULL;
}

static bool
orders(const Atomic *a, const char *which)
{
  return !strcmp(a->sem, which) || !strcmp(a->sem, "acq_rel");
}

/* red knows no acquire, and no exchange. */
static bool
fits_red(const Atomic *a)
{
  return !a->used && a->row && strncmp(a->row->suffix, "exch", 4) != 0 && (!strcmp(a->sem, "relaxed") || !strcmp(a->sem, "release"));
}

static Atomic
atomic_new(Gen *g, const Op *op, const char *rmw)
{
  Atomic a = {.op = op, .type = op_operand(op, 0)->type, .rmw = rmw};
  a.d = a.type->dt;
  a.h = type_is_tile(a.type) ? dist_get(g, a.type->layout) : NULL;
  a.leader = dist_leader(g, a.h);
  a.sem = op_str(op, AT_SEM, "relaxed");
  a.scope = op_str(op, AT_SCOPE, "gpu");
  a.order = arena_printf(g->arena, "%s.%s", a.sem, a.scope);
  a.row = find_row(g, rmw, a.d);
  a.bits = LLVMIntTypeInContext(g->lc, dtype_bytes(a.d) * 8);
  a.used = !value_unused(op_result(op));
  a.vec = fits_red(&a) ? addr_vector(g, op, a.h) : 1;
  a.words = words_for(g, a.d, false, a.vec);
  return a;
}

/* ---- one element, or a vector of them ---- */
static Val
cas_ptx(Gen *g, const Atomic *a, Val p, Val expected, Val desired, Val when)
{
  PtxArgs x = {.nout = 1, .nin = 3, .out = {a->bits}, .in = {p, expected, desired}};
  x.subst[1] = a->order;
  x.subst[2] = arena_printf(g->arena, "b%u", dtype_bits(a->d));
  if (when) {
    x.subst[0] = "@$4";
    x.in[x.nin++] = when;
    x.in[x.nin++] = LLVMConstInt(a->bits, 0, 0);
    x.ntied = 1;
  }
  Val old;
  ptx_emit(g, PTX_CAS, &x, &old);
  return old;
}

static Val
rmw_ptx(Gen *g, const Atomic *a, Val p, Val v, Val when)
{
  bool red = fits_red(a);
  PtxArgs x = {.nout = red ? 0 : 1, .nin = 2, .out = {LLVMTypeOf(v)}, .in = {p, v}};
  x.subst[1] = a->order;
  x.subst[2] = a->row->suffix;
  x.subst[3] = "$1";
  if (when) {
    x.subst[0] = red ? "@$2" : "@$3";
    x.in[x.nin++] = when;
  }
  if (when && !red) {
    x.in[x.nin++] = LLVMConstNull(LLVMTypeOf(v));
    x.ntied = 1;
  }
  Val old = LLVMConstNull(LLVMTypeOf(v));
  ptx_emit(g, red ? PTX_RED : PTX_ATOM, &x, &old);
  return old;
}

/* "{$1, $2}" or "$1". */
static const char *
value_list(Gen *g, u32 n)
{
  Buf b = {.arena = g->arena};
  for (u32 i = 0; i < n; i++)
    buf_printf(&b, "%s$%u", i ? ", " : n > 1 ? "{" : "", 1 + i);
  buf_puts(&b, n > 1 ? "}" : "");
  return buf_str(&b);
}

/* Neighbours in one red: `add.v4.f32`, `add.noftz.v2.f16x2`. */
static void
red_vector(Gen *g, const Atomic *a, Val p, const Val *v, Val when)
{
  const Words *w = &a->words;
  Val words[8];
  words_pack(g, w, v, words);
  PtxArgs x = {.nin = 1, .in = {p}};
  for (u32 i = 0; i < w->n; i++)
    x.in[x.nin++] = words[i];
  const char *many = w->n > 1 ? arena_printf(g->arena, ".v%u", w->n) : "";
  x.subst[1] = a->order;
  x.subst[2] = a->d == DT_F32 ? arena_printf(g->arena, "add%s.f32", many)
                              : arena_printf(g->arena, "add.noftz%s.%sx2", many, dtype_info[a->d].name);
  x.subst[3] = value_list(g, w->n);
  if (when) {
    x.subst[0] = arena_printf(g->arena, "@$%u", x.nin);
    x.in[x.nin++] = when;
  }
  ptx_emit(g, PTX_RED, &x, NULL);
}

static Val
loop_value(Gen *g, const Atomic *a, Val old, Val v)
{
  OpCode code;
  return rmw_find(a->rmw, &code) && code != OP_COUNT ? elem_binary(g, code, a->d, old, v) : v;
}

/* Read, compute, swap if nobody came in between. */
static Val
rmw_loop(Gen *g, const Atomic *a, Val p, Val v, Val when)
{
  Ty t = gen_elem_type(g, a->d, false);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B), after = gen_if(g, when), loop = gen_block(g, "cas");
  LLVMBasicBlockRef done = after ? after : gen_block(g, "cas.done"), from = LLVMGetInsertBlock(B);
  Val first = LLVMBuildLoad2(B, a->bits, p, "");
  LLVMSetVolatile(first, 1);
  LLVMBuildBr(B, loop);
  gen_at(g, loop);
  Val seen = LLVMBuildPhi(B, a->bits, "");
  Val next = loop_value(g, a, gen_bitcast(g, seen, t), v);
  Val got = cas_ptx(g, a, p, seen, gen_bitcast(g, next, a->bits), NULL);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(B);
  LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntEQ, got, seen, ""), done, loop);
  LLVMAddIncoming(seen, &first, &from, 1);
  LLVMAddIncoming(seen, &got, &latch, 1);
  gen_at(g, done);
  if (!after)
    return gen_bitcast(g, got, t);
  Val old = LLVMBuildPhi(B, a->bits, ""), zero = LLVMConstInt(a->bits, 0, 0);
  LLVMAddIncoming(old, &zero, &before, 1);
  LLVMAddIncoming(old, &got, &latch, 1);
  return gen_bitcast(g, old, t);
}

static Val
one_element(Gen *g, const Atomic *a, u32 r, const Val *const *in, Val when)
{
  Addr at = addr_element(g, op_operand(a->op, 0), r);
  Val p = addr_offset(g, at.base, at.off);
  if (a->vec > 1) {
    red_vector(g, a, p, &in[0][r], when);
    return LLVMConstNull(gen_elem_type(g, a->d, false));
  }
  if (!a->rmw) {
    Val value = gen_bitcast(g, in[1][r], a->bits), expected = gen_bitcast(g, in[0][r], a->bits);
    Val old = cas_ptx(g, a, p, expected, value, when);
    return gen_bitcast(g, old, gen_elem_type(g, a->d, false));
  }
  if (a->row)
    return rmw_ptx(g, a, p, in[0][r], when);
  if (!strcmp(a->rmw, "xchg") && dtype_bits(a->d) >= 32) {
    Atomic as_int = *a;
    as_int.row = find_row(g, "xchg", dtype_bits(a->d) == 32 ? DT_U32 : DT_U64);
    Val old = rmw_ptx(g, &as_int, p, gen_bitcast(g, in[0][r], a->bits), when);
    return gen_bitcast(g, old, gen_elem_type(g, a->d, false));
  }
  return rmw_loop(g, a, p, in[0][r], when);
}

static Val
when_at(Gen *g, const Atomic *a, const Value *mask, u32 r)
{
  Val when = a->h ? dist_inside(g, a->h, a->type, r) : NULL;
  if (mask)
    when = gen_and(g, when, gen_regs(g, mask)[r]);
  when = gen_and(g, when, a->leader);
  return when && LLVMIsAConstantInt(when) && LLVMConstIntGetZExtValue(when) ? NULL : when;
}

static void
lower_atomic(Gen *g, const Atomic *a, const Value *mask, const Val *const *in)
{
  Val *old = gen_new(g, op_result(a->op));
  bool share = a->used && a->leader;
  if (dtype_bytes(a->d) < 2) {
    gen_unsupported(g, a->op, "an atomic operation on 8-bit elements");
    gen_poison(g, op_result(a->op));
    return;
  }
  if (orders(a, "release"))
    team_barrier(g);
  for (u32 r = 0; r < gen_nregs(a->type); r += a->vec) {
    if (a->h && a->h->rep[r] != r)
      continue;
    Val when = when_at(g, a, mask, r);
    bool never = when && LLVMIsAConstantInt(when);
    old[r] = never ? LLVMConstNull(gen_type(g, op_result(a->op)->type)) : one_element(g, a, r, in, when);
  }
  if (share && addr_scratch(g, a->op, scratch_bytes(g->c, a->op)))
    leader_broadcast(g, a->op, a->h, a->leader, old);
  else if (orders(a, "acquire"))
    team_barrier(g);
  dist_share(g, op_result(a->op));
}

void
lower_ATOMIC_RMW(Gen *g, const Op *op)
{
  Atomic a = atomic_new(g, op, op_str(op, AT_RMW, "add"));
  const Val *in[1] = {gen_regs(g, op_operand(op, 1))};
  lower_atomic(g, &a, op_operand(op, 2), in);
}

void
lower_ATOMIC_CAS(Gen *g, const Op *op)
{
  Atomic a = atomic_new(g, op, NULL);
  const Val *in[2] = {gen_regs(g, op_operand(op, 1)), gen_regs(g, op_operand(op, 2))};
  lower_atomic(g, &a, op_operand(op, 3), in);
}
