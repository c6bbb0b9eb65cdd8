/* decode_sync.c - opcodes that a warp or a block does together: barriers, shuffles, votes, matrices, copies. */
#include "decode.h"
#include <string.h>

/* ---- barriers ---- */

static void
warp_barrier(Decoder *d)
{
  opmod_take(d, M_SYNC);
  decode_operands(d, 1, 1);
  uint32_t mask = opnd_src(d, &d->op[0], T_U32);
  Insn *in = insn_warp(d, K_CONV, warpsync_exec, 4);
  if (in)
    in->warp = (WarpOps){.members = mask};
}

static void
cluster_barrier(Decoder *d)
{
  bool wait = opmod_take(d, M_WAIT), arrive = opmod_take(d, M_ARRIVE);
  bool relaxed = d->order == ORDER_RELAXED;
  bool aligned = opmod_take(d, M_ALIGNED);
  decode_operands(d, 0, 0);
  if (wait == arrive)
    decode_unknown(d);
  Insn *in = insn_warp(d, K_WAIT, wait ? cluster_wait : cluster_arrive, 0);
  if (!in)
    return;
  in->cluster = (ClusterOps){relaxed};
  in->whole = in->living = aligned;
}

/* The word behind the opcode's first dot. */
static bool
second_word(const Decoder *d, const char *word)
{
  const Tok *t = d->op_tok;
  const char *dot = memchr(t->s, '.', t->n);
  size_t n = strlen(word);
  return dot && (size_t)(t->s + t->n - dot - 1) >= n && memcmp(dot + 1, word, n) == 0;
}

static BarReduce
take_reduce(Decoder *d)
{
  return opmod_take(d, M_POPC) ? RED_POPC : opmod_take(d, M_AND) ? RED_AND : opmod_take(d, M_OR) ? RED_OR : RED_NONE;
}

/* bar.sync a{, b}; bar.arrive a, b; bar.red.op d, a{, b}, p */
static void
block_barrier(Decoder *d, bool aligned, BarAction action)
{
  BarReduce reduce = action == BAR_RED ? take_reduce(d) : RED_NONE;
  opmod_type(d);
  bool red = action == BAR_RED;
  decode_operands(d, red ? 3 : action == BAR_ARRIVE ? 2 : 1, red ? 4 : 2);
  bool count = d->nop == (red ? 4 : 2);
  if (red && !reduce)
    decode_unknown(d);
  if (d->failed || d->unknown)
    return;
  BarOps o = {.action = (uint8_t)action, .reduce = (uint8_t)reduce};
  o.id = opnd_src(d, &d->op[red], T_U32);
  o.count = count ? opnd_src(d, &d->op[red + 1], T_U32) : 0;
  o.d = red ? opnd_dst(d, &d->op[0], reduce == RED_POPC ? 4 : 0) : 0;
  o.pred = red ? opnd_src(d, &d->op[d->nop - 1], T_PRED) : 0;
  Insn *in = insn_emit(d, K_BAR, 4);
  if (!in)
    return;
  in->bar = o;
  in->whole = aligned;
}

/* arg 1: barrier, aligned only where it says so */
void
decode_bar(Decoder *d, int arg)
{
  if (opmod_take(d, M_WARP)) {
    warp_barrier(d);
    return;
  }
  if (second_word(d, "cluster")) {
    cluster_barrier(d);
    return;
  }
  bool aligned = opmod_take(d, M_ALIGNED) || !arg;
  BarAction action = opmod_take(d, M_ARRIVE) ? BAR_ARRIVE : opmod_take(d, M_RED) ? BAR_RED : BAR_SYNC;
  if (action == BAR_SYNC && !opmod_take(d, M_SYNC))
    decode_unknown(d);
  block_barrier(d, aligned, action);
}

/* membar.cta .gl .sys, fence.acq_rel.gpu and the like. A proxy's fence orders nothing within the generic proxy. */
void
decode_fence(Decoder *d, int arg)
{
  if (opmod_take(d, M_TENSORMAP_GENERIC)) {
    decode_map_fence(d);
    return;
  }
  bool async = opmod_take(d, M_PROXY) && opmod_take(d, M_ASYNC);
  bool inits = second_word(d, "mbarrier_init"), proxy = inits || second_word(d, "proxy");
  Scope scope = d->scope;
  decode_ignore(d, arg);
  Insn *in = insn_warp(d, K_WARP, fence_exec, 0);
  if (in)
    in->fence = (FenceOps){(uint8_t)scope, !proxy, async, inits};
}

void
decode_griddepcontrol(Decoder *d, int arg)
{
  bool waits = opmod_take(d, M_WAIT);
  if (!waits && !opmod_take(d, M_LAUNCH_DEPENDENTS))
    decode_unknown(d);
  Insn *in = insn_warp(d, K_WARP, previous_exec, 0);
  if (in)
    in->previous = (PreviousOps){waits};
}

/* ---- shuffles and votes ---- */

void
decode_shfl(Decoder *d, int arg)
{
  bool sync = opmod_take(d, M_SYNC);
  ModId mode = opmod_take_range(d, M_UP, M_IDX);
  if (!sync || opmod_type(d) != T_B32 || !mode)
    decode_unknown(d);
  decode_operands(d, 5, 5);
  WarpOps o = {.mode = (uint8_t)(mode - M_UP)};
  o.value = opnd_src(d, &d->op[1], T_B32);
  o.lane = opnd_src(d, &d->op[2], T_B32);
  o.clamp = opnd_src(d, &d->op[3], T_B32);
  o.members = opnd_src(d, &d->op[4], T_B32);
  o.d = opnd_dst(d, &d->op[0], 4);
  o.pred = d->op[0].pipe ? d->op[0].pipe - 1 : 0;
  Insn *in = insn_warp(d, K_CONV, shfl_exec, 6);
  if (in)
    in->warp = o;
}

void
decode_vote(Decoder *d, int arg)
{
  bool sync = opmod_take(d, M_SYNC);
  ModId mode = opmod_take_range(d, M_ALL, M_BALLOT);
  opmod_type(d);
  decode_operands(d, 3, 3);
  if (!sync || !mode)
    decode_unknown(d);
  WarpOps o = {.mode = (uint8_t)(mode - M_ALL)};
  o.value = opnd_src(d, &d->op[1], T_PRED);
  o.members = opnd_src(d, &d->op[2], T_B32);
  o.d = opnd_dst(d, &d->op[0], mode == M_BALLOT ? 4 : 0);
  Insn *in = insn_warp(d, K_CONV, vote_exec, 4);
  if (in)
    in->warp = o;
}

void
decode_match(Decoder *d, int arg)
{
  WarpOps o = {.mode = opmod_take(d, M_ALL)};
  if (!o.mode)
    opmod_take(d, M_ANY);
  opmod_take(d, M_SYNC);
  Type t = opmod_type(d);
  decode_operands(d, 3, 3);
  if (t != T_B32 && t != T_B64)
    decode_unknown(d);
  o.size = ptx_type_bytes[t];
  o.value = opnd_src(d, &d->op[1], t);
  o.members = opnd_src(d, &d->op[2], T_B32);
  o.d = opnd_dst(d, &d->op[0], 4);
  o.pred = d->op[0].pipe ? d->op[0].pipe - 1 : 0;
  Insn *in = insn_warp(d, K_CONV, match_exec, 6);
  if (in)
    in->warp = o;
}

void
decode_redux(Decoder *d, int arg)
{
  static const ModId ops[] = {M_ADD, M_MIN, M_MAX, M_AND, M_OR, M_XOR};
  ModId op = M_NONE;
  opmod_take(d, M_SYNC);
  for (int i = 0; i < 6 && !op; i++)
    op = opmod_take(d, ops[i]) ? ops[i] : M_NONE;
  WarpOps o = {.mode = (uint8_t)op, .abs = opmod_take(d, M_ABS), .nan = opmod_take(d, M_NAN)};
  Type t = opmod_type(d);
  decode_operands(d, 3, 3);
  bool word = t == T_U32 || t == T_S32 || t == T_B32, real = t == T_F32 && (op == M_MIN || op == M_MAX);
  if (!op || (!word && !real) || (word && (o.abs || o.nan)))
    decode_unknown(d);
  o.value = opnd_src(d, &d->op[1], T_B32);
  o.members = opnd_src(d, &d->op[2], T_B32);
  o.d = opnd_dst(d, &d->op[0], 4);
  Insn *in = insn_warp(d, K_CONV, redux_exec, 4);
  if (!in)
    return;
  in->type = (uint8_t)t;
  in->warp = o;
}

void
decode_activemask(Decoder *d, int arg)
{
  opmod_type(d);
  decode_operands(d, 1, 1);
  uint32_t dst = opnd_dst(d, &d->op[0], 4);
  Insn *in = insn_warp(d, K_WARP, activemask_exec, 1);
  if (in)
    in->warp = (WarpOps){.d = dst};
}

void
decode_elect(Decoder *d, int arg)
{
  opmod_take(d, M_SYNC);
  decode_operands(d, 2, 2);
  WarpOps o = {.members = opnd_src(d, &d->op[1], T_B32)};
  o.d = opnd_dst(d, &d->op[0], 4);
  if (!d->op[0].pipe)
    decode_fail(d, "elect has a predicate result");
  else
    o.pred = d->op[0].pipe - 1;
  Insn *in = insn_warp(d, K_CONV, elect_exec, 6);
  if (in)
    in->warp = o;
}

/* ---- matrices ---- */

static void
add_elements(Decoder *d, const uint32_t *slot, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    insn_list(d, slot[i]);
}

/* arg 1: stmatrix */
void
decode_ldmatrix(Decoder *d, int store)
{
  uint32_t slot[4] = {0}, n;
  opmod_take(d, M_SYNC);
  opmod_take(d, M_ALIGNED);
  bool shape = opmod_take(d, M_M8N8);
  n = opmod_take(d, M_X1) ? 1 : opmod_take(d, M_X2) ? 2 : opmod_take(d, M_X4) ? 4 : 0;
  bool trans = opmod_take(d, M_TRANS);
  opmod_space(d);
  Type t = opmod_type(d);
  decode_operands(d, 2, 2);
  const Opnd *mem = &d->op[store ? 0 : 1], *vec = &d->op[store ? 1 : 0];
  if (!shape || !n || t != T_B16 || mem->kind != O_MEM || (vec->kind == O_VEC ? vec->n != n : n != 1)) {
    decode_unknown(d);
    return;
  }
  const Opnd *e = vec->kind == O_VEC ? &d->elem[vec->first] : vec;
  for (uint32_t i = 0; i < n; i++)
    slot[i] = store ? opnd_src(d, &e[i], T_B32) : opnd_dst(d, &e[i], 4);
  MatrixOps o = {.count = (uint8_t)n, .trans = trans, .store = store};
  o.base = opnd_address(d, mem, SP_SHARED, &o.at);
  Insn *in = insn_warp(d, K_CONV, store ? stmatrix_exec : ldmatrix_exec, 1);
  if (!in)
    return;
  in->whole = true;
  in->matrix = o;
  add_elements(d, slot, n);
}

/* The shapes this machine has. Register counts follow from the shape and the element sizes. */
typedef struct MmaShape { uint16_t shape; uint8_t m, n, k, ab_bits; } MmaShape;
static const MmaShape mma_shapes[] = {
  {M_M16N8K8, 16, 8, 8, 16},   {M_M16N8K16, 16, 8, 16, 16}, {M_M16N8K4, 16, 8, 4, 32},  {M_M16N8K8, 16, 8, 8, 32},
  {M_M16N8K16, 16, 8, 16, 8},  {M_M16N8K32, 16, 8, 32, 8},  {M_M8N8K4, 8, 8, 4, 64},    {M_M16N8K4, 16, 8, 4, 64},
  {M_M16N8K8, 16, 8, 8, 64},   {M_M16N8K16, 16, 8, 16, 64},
};

/* Those of which A keeps two of four elements along K. */
static const MmaShape sparse_shapes[] = {
  {M_M16N8K16, 16, 8, 16, 16}, {M_M16N8K32, 16, 8, 32, 16}, {M_M16N8K32, 16, 8, 32, 8}, {M_M16N8K64, 16, 8, 64, 8},
};

static bool
mma_types_fit(Type dt, Type a, Type b, Type ct)
{
  bool f8 = (a == T_E4M3 || a == T_E5M2) && (b == T_E4M3 || b == T_E5M2);
  if (dt != ct)
    return false;
  if (a == T_F16 && b == T_F16)
    return dt == T_F32 || dt == T_F16;
  if ((a == T_BF16 && b == T_BF16) || (a == T_TF32 && b == T_TF32))
    return dt == T_F32;
  if (f8)
    return dt == T_F32 || dt == T_F16;
  if ((a == T_S8 || a == T_U8) && (b == T_S8 || b == T_U8))
    return dt == T_S32;
  return a == T_F64 && b == T_F64 && dt == T_F64;
}

static const MmaShape *
mma_shape(Decoder *d, const MmaShape *shapes, size_t n, int bits)
{
  for (size_t i = 0; i < n; i++)
    if (shapes[i].ab_bits == bits && opmod_take(d, (ModId)shapes[i].shape))
      return &shapes[i];
  return NULL;
}

static uint32_t
matrix_regs(uint32_t elements, int bits)
{
  return elements / LANES * (uint32_t)bits / (bits == 64 ? 64 : 32);
}

static void
matrix_operand(Decoder *d, const Opnd *o, uint32_t n, int width, bool dst, uint32_t *slot)
{
  if ((o->kind == O_VEC ? o->n : 1) != n) {
    decode_fail(d, "a fragment of this matrix has %u registers", n);
    return;
  }
  const Opnd *e = o->kind == O_VEC ? &d->elem[o->first] : o;
  for (uint32_t i = 0; i < n; i++)
    slot[i] = dst ? opnd_dst(d, &e[i], width) : opnd_src(d, &e[i], width == 8 ? T_B64 : T_B32);
}

/* Operands 4 and 5: metadata, and which lanes of each four give it: one word is for K = 64 of two or four rows. */
static void
sparse_operands(Decoder *d, const MmaShape *s, uint32_t *slot, MmaOps *o)
{
  const Opnd *selector = &d->op[5];
  if (selector->kind != O_IMM || selector->imm >= 64u / s->k)
    decode_fail(d, "the selector of a sparse product names lanes of each four: less than %u here", 64u / s->k);
  matrix_operand(d, &d->op[4], 1, 4, false, slot);
  o->selector = (uint8_t)selector->imm;
}

void
decode_mma(Decoder *d, int arg)
{
  bool ordered = opmod_take(d, M_SP_ORDERED), sparse = opmod_take(d, M_SP) || ordered;
  opmod_take(d, M_SYNC);
  opmod_take(d, M_ALIGNED);
  bool layout = opmod_take(d, M_ROW) && opmod_take(d, M_COL);
  opmod_take(d, M_SATFINITE);
  opmod_take(d, M_KIND_F8F6F4);
  opmod_take(d, M_RN);
  Type dt = opmod_type(d), at = opmod_type(d), bt = opmod_type(d), ct = opmod_type(d);
  decode_operands(d, sparse ? 6 : 4, sparse ? 6 : 4);
  int bits = at ? ptx_type_bytes[at] * 8 : 0;
  const MmaShape *s = NULL;
  if (!d->failed && layout && mma_types_fit(dt, at, bt, ct))
    s = sparse ? mma_shape(d, sparse_shapes, sizeof sparse_shapes / sizeof *sparse_shapes, bits)
               : mma_shape(d, mma_shapes, sizeof mma_shapes / sizeof *mma_shapes, bits);
  if (!s) {
    decode_unknown(d);
    return;
  }
  uint32_t slot[48], na = matrix_regs(s->m * s->k >> sparse, bits), nb = matrix_regs(s->k * s->n, bits);
  uint32_t nc = matrix_regs(s->m * s->n, ptx_type_bytes[dt] * 8), n = 2 * nc + na + nb;
  int w = bits == 64 ? 8 : 4, wc = dt == T_F64 ? 8 : 4;
  MmaOps o = {.m = s->m, .k = s->k, .a_type = (uint8_t)at, .b_type = (uint8_t)bt, .sparse = sparse, .ordered = ordered};
  matrix_operand(d, &d->op[0], nc, wc, true, slot);
  matrix_operand(d, &d->op[1], na, w, false, slot + nc);
  matrix_operand(d, &d->op[2], nb, w, false, slot + nc + na);
  matrix_operand(d, &d->op[3], nc, wc, false, slot + nc + na + nb);
  if (sparse)
    sparse_operands(d, s, slot + n, &o);
  Insn *in = insn_warp(d, K_CONV, mma_exec, 0);
  if (!in)
    return;
  in->whole = true;
  in->type = (uint8_t)dt;
  in->mma = o;
  add_elements(d, slot, n + sparse);
}

/* ---- asynchronous copies ---- */

static void
async_copy_insn(Decoder *d)
{
  opmod_take(d, M_CA);
  opmod_take(d, M_CG);
  opmod_space(d);
  opmod_space(d);
  bool hint = opmod_take(d, M_CACHE_HINT);
  decode_operands(d, 3 + hint, 4 + hint);
  const Opnd *dst = &d->op[0], *src = &d->op[1], *n = &d->op[2];
  bool size_ok = n->kind == O_IMM && (n->imm == 4 || n->imm == 8 || n->imm == 16);
  if (dst->kind != O_MEM || src->kind != O_MEM || !size_ok) {
    decode_fail(d, "cp.async copies 4, 8 or 16 bytes between two addresses");
    return;
  }
  if ((int64_t)src->imm != (int32_t)src->imm && src->has_base)
    decode_fail(d, "an offset of more than 32 bits");
  const Opnd *limit = d->nop == 4u + hint ? &d->op[3] : NULL;
  bool pred = limit && limit->kind == O_REG && limit->type == T_PRED;
  CopyOps o = {.size = (uint8_t)n->imm, .limited = limit ? pred ? COPY_IGNORE : COPY_BYTES : COPY_ALL};
  Address from;
  o.limit = limit ? opnd_src(d, limit, pred ? T_PRED : T_U32) : 0;
  o.to = opnd_address(d, dst, SP_SHARED, &o.at);
  o.from = opnd_address(d, src, SP_GLOBAL, &from);
  o.from_offset = (int32_t)from.offset;
  if (!from.wide)
    decode_fail(d, "an address register is too narrow");
  Insn *in = insn_warp(d, K_WARP, async_copy, 3);
  if (in)
    in->copy = o;
}

void
decode_cp(Decoder *d, int arg)
{
  if (!opmod_take(d, M_ASYNC)) {
    decode_unknown(d);
    return;
  }
  if (opmod_take(d, M_BULK)) {
    decode_bulk(d);
    return;
  }
  if (opmod_take(d, M_COMMIT_GROUP)) {
    decode_operands(d, 0, 0);
    insn_warp(d, K_WARP, async_commit, 0);
    return;
  }
  if (opmod_take(d, M_MBARRIER)) {
    decode_mbarrier(d, 1);
    return;
  }
  bool all = opmod_take(d, M_WAIT_ALL), group = opmod_take(d, M_WAIT_GROUP);
  if (!all && !group) {
    async_copy_insn(d);
    return;
  }
  decode_operands(d, group, group);
  uint32_t pending = group ? decode_groups(d) : 0;
  Insn *in = insn_warp(d, K_WARP, async_wait, 0);
  if (in)
    in->wait = (WaitOps){pending, all};
}
