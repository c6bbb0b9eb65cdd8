/* lower_convert.c - moving a tile from one register layout to another, the way that plan_conversions chose.
 *
 * All the thinking is in ir/layout_convert.c and ir/layout_shared.c; here its plans are spelled out. Addresses in shared
 * memory are linear: an offset is the thread's part, computed once, exclusive-or a constant per access. Constants that
 * share no bit with what threads can change become immediates; the others cost one exclusive-or each, and equal ones are
 * merged by LLVM.
 */
#include "gen.h"

#define B g->b

typedef struct Convert {
  const Op *op;
  const Value *x, *result;
  Held *from, *to;
  const Val *in;
  Val *out;
  DType d;
  bool ptr;
  u32 bytes;             /* of an element in shared memory */
} Convert;

/* ---- registers ---- */
static void
by_registers(Gen *g, const Convert *k)
{
  u32 *map = NEW_ARRAY(g->arena, u32, k->to->regs);
  if (!layout_reg_map(k->from->l, k->to->l, map))
    ctx_panic(g->c, "convert_layout: the kind says registers, the layouts do not");
  for (u32 r = 0; r < k->to->regs; r++)
    k->out[r] = k->in[map[r]];
}

/* ---- shuffles ---- */

/* Is parity(lane & mask) 1? */
static Val
lane_parity(Gen *g, u32 mask)
{
  u32 cols[LANE_BITS];
  for (u32 i = 0; i < LANE_BITS; i++)
    cols[i] = mask >> i & 1;
  Val bit = gen_thread_linear(g, cols, LANE_BITS);
  return LLVMBuildICmp(g->pro, LLVMIntNE, bit, gen_u32(g, 0), "");
}

/* Registers r and r ^ reg_xor change places where the stage's parity is 1. */
static void
run_stage(Gen *g, const ShuffleStage *s, const Held *h, Val *regs)
{
  Val swap = lane_parity(g, s->lane_mask);
  for (u32 r = 0; r < h->regs; r++) {
    u32 other = h->rep[r ^ s->reg_xor];
    if (h->rep[r] != r || other <= r)
      continue;
    Val a = regs[r], b = regs[other];
    regs[r] = LLVMBuildSelect(B, swap, b, a, "");
    regs[other] = LLVMBuildSelect(B, swap, a, b, "");
  }
}

static void
by_shuffles(Gen *g, const Convert *k)
{
  ShufflePlan p;
  if (!layout_shuffle_plan(k->from->l, k->to->l, &p))
    ctx_panic(g->c, "convert_layout: the kind says shuffles, the layouts do not");
  Val *x = NEW_ARRAY(g->arena, Val, k->from->regs);
  for (u32 r = 0; r < k->from->regs; r++)
    x[r] = k->in[k->from->rep[r]];
  for (u32 i = 0; i < p.sends; i++)
    run_stage(g, &p.send[i], k->from, x);
  u32 lanes = 0;
  for (u32 i = 0; i < LANE_BITS; i++)
    lanes |= p.lane_col[i];
  Val mine = p.local ? NULL : gen_thread_linear(g, p.lane_col, LANE_BITS);
  for (u32 i = 0; i < p.rounds; i++) {
    u32 send, recv, lane_xor;
    layout_shuffle_round(&p, i, &send, &recv, &lane_xor);
    Val v = x[k->from->rep[send]];
    k->out[recv] = p.local ? v : gen_shuffle_from(g, v, gen_xor_const(g, mine, lanes, lane_xor));
  }
  for (u32 i = 0; i < p.receives; i++)
    run_stage(g, &p.receive[i], k->to, k->out);
}

/* ---- shared memory ---- */

/* One side: registers of h against the shared layout. */
typedef struct Side {
  const Held *h;
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS];   /* to offsets, in elements */
  u32 thread[LAYOUT_MAX_BITS], mask;     /* thread columns and their bits, in bytes */
  Val mine;                              /* thread's part, in bytes */
} Side;

static void
side_addresses(Gen *g, const Convert *k, Side *s, const u32 *lane, const u32 *warp)
{
  s->mask = 0;
  for (u32 i = 0; i < s->h->thread_bits; i++) {
    s->thread[i] = (i < LANE_BITS ? lane[i] : warp[i - LANE_BITS]) * k->bytes;
    s->mask |= s->thread[i];
  }
  s->mine = gen_thread_linear(g, s->thread, s->h->thread_bits);
}

static Side
side_new(Gen *g, const Convert *k, const Held *h, const Layout *smem)
{
  Side s = {.h = h};
  if (!layout_to_offset(g->c, h->l, smem, s.cols))
    ctx_panic(g->c, "convert_layout: the shared layout does not hold the tile");
  side_addresses(g, k, &s, s.cols[IN_LANE], s.cols[IN_WARP]);
  return s;
}

/* Address of constant offset `elems` from the thread's part, in scratch memory. */
static Val
side_address(Gen *g, const Convert *k, const Side *s, u32 elems)
{
  u32 bytes = elems * k->bytes, crossing = bytes & s->mask;
  Val off = crossing ? LLVMBuildXor(B, s->mine, gen_u32(g, crossing), "") : s->mine;
  return gen_shared(g, off, (u64)(bytes & ~s->mask) + (u64)op_int(k->op, AT_SCRATCH, 0));
}

static u32
register_offset(const Side *s, u32 reg)
{
  u32 off = 0;
  for (u32 i = 0; i < s->h->reg_bits; i++)
    if (reg >> i & 1)
      off ^= s->cols[IN_REG][i];
  return off;
}

static void
plain_side(Gen *g, const Convert *k, const Layout *smem, u32 vec, bool store)
{
  Side s = side_new(g, k, store ? k->from : k->to, smem);
  u32 *regs = NEW_ARRAY(g->arena, u32, s.h->regs), n = layout_access_groups(s.h->l, smem, vec, regs);
  Words w = words_for(g, k->d, k->ptr, vec);
  for (u32 i = 0; i < n; i++, regs += vec) {
    Val elems[16], words[16], p = side_address(g, k, &s, register_offset(&s, regs[0]));
    for (u32 e = 0; store && e < vec; e++)
      elems[e] = k->in[regs[e]];
    if (store) {
      words_pack(g, &w, elems, words);
      words_store(g, &w, p, vec * k->bytes, words);
      continue;
    }
    words_load(g, &w, p, vec * k->bytes, words);
    words_unpack(g, &w, words, elems);
    for (u32 e = 0; e < vec; e++)
      k->out[k->to->rep[regs[e]]] = elems[e];
  }
}

/* ---- ldmatrix and stmatrix ---- */
static void
matrix_call(Gen *g, const MatrixAccess *m, bool store, Val p, Val *words)
{
  const char *name = arena_printf(g->arena, "llvm.nvvm.%s.sync.aligned.m8n8.x%u%s.b16", store ? "stmatrix" : "ldmatrix",
                                  m->count, m->trans ? ".trans" : "");
  Ty over = LLVMPointerTypeInContext(g->lc, AS_SHARED);
  Val args[5] = {p};
  for (u32 i = 0; store && i < m->count; i++)
    args[1 + i] = words[i];
  Val got = gen_call_convergent(g, name, 1, &over, store ? 1 + m->count : 1, args);
  for (u32 i = 0; !store && i < m->count; i++)
    words[i] = m->count == 1 ? got : LLVMBuildExtractValue(B, got, i, "");
}

static void
matrix_side(Gen *g, const Convert *k, const Layout *smem, bool trans, bool store)
{
  MatrixAccess m;
  Side s = {.h = store ? k->from : k->to};
  if (!layout_matrix_access(s.h->l, smem, k->bytes * 8, trans, &m))
    ctx_panic(g->c, "convert_layout: the plan says ldmatrix, the layouts do not");
  side_addresses(g, k, &s, m.addr_lane, m.addr_warp);
  Words w = words_for(g, k->d, k->ptr, m.elems);
  for (u32 i = 0; i < m.groups; i++) {
    u32 regs[16];
    Val words[4], elems[4];
    Val p = side_address(g, k, &s, layout_matrix_group(&m, i, regs));
    for (u32 q = 0; store && q < m.count; q++) {
      for (u32 e = 0; e < m.elems; e++)
        elems[e] = k->in[regs[q * m.elems + e]];
      words_pack(g, &w, elems, &words[q]);
      words[q] = gen_bitcast(g, words[q], g->i32);
    }
    matrix_call(g, &m, store, p, words);
    for (u32 q = 0; !store && q < m.count; q++) {
      words[q] = gen_bitcast(g, words[q], w.type);
      words_unpack(g, &w, &words[q], elems);
      for (u32 e = 0; e < m.elems; e++)
        k->out[k->to->rep[regs[q * m.elems + e]]] = elems[e];
    }
  }
}

/* Threads that hold copies do not store; stmatrix is the whole warp's, so there only whole warps stay out. */
static void
by_shared(Gen *g, const Convert *k)
{
  ConvertPlan plan;
  scratch_convert_plan(g->c, k->op, &plan);
  const SharedPlan *p = &plan.shared;
  if (plan.kind != CONVERT_SHARED)
    ctx_panic(g->c, "convert_layout: the kind says shared, the plan does not");
  if (!gen_scratch(g, k->op, p->bytes)) {
    gen_poison(g, k->result);
    return;
  }
  u32 copies = k->from->free_threads;
  LLVMBasicBlockRef after = gen_if(g, gen_thread_zero(g, p->stmatrix ? copies & ~(LANES - 1u) : copies));
  if (p->stmatrix)
    matrix_side(g, k, p->smem, p->stmatrix_trans, true);
  else
    plain_side(g, k, p->smem, p->store_vec, true);
  gen_end_if(g, after);
  gen_barrier(g);
  if (p->ldmatrix)
    matrix_side(g, k, p->smem, p->ldmatrix_trans, false);
  else
    plain_side(g, k, p->smem, p->load_vec, false);
}

void
lower_CONVERT_LAYOUT(Gen *g, const Op *op)
{
  Convert k = {.op = op, .x = op_operand(op, 0), .result = op_result(op)};
  k.from = held_get(g, k.x->type->layout);
  k.to = held_get(g, k.result->type->layout);
  k.in = gen_regs(g, k.x);
  k.out = gen_new(g, k.result);
  k.d = k.x->type->dt;
  k.ptr = type_is_ptr(k.x->type);
  k.bytes = type_elem_bytes(k.x->type);
  const char *kind = op_str(op, AT_KIND, "regs");
  if (!strcmp(kind, "shared"))
    by_shared(g, &k);
  else if (!strcmp(kind, "shuffle"))
    by_shuffles(g, &k);
  else
    by_registers(g, &k);
  gen_share(g, k.result);
}
