/* decode_sync.c - opcodes that a warp or a block does together: barriers, shuffles, votes, matrices, copies. */
#include "decode.h"

static Insn *
emit_warp(Decoder *d, Kind kind, WarpFn *fn)
{
  Insn *in = insn_emit(d, kind);
  if (in)
    in->fn.warp = fn;
  return in;
}

/* ---- barriers ---- */

enum { BAR_SYNC, BAR_ARRIVE, BAR_RED };

static void
warp_barrier(Decoder *d)
{
  opmod_take(d, M_SYNC);
  decode_operands(d, 1, 1);
  uint32_t mask = opnd_src(d, &d->op[0], T_U32);
  Insn *in = emit_warp(d, K_CONV, warpsync_exec);
  if (in)
    in->c = mask;
}

/* A cluster of one block: arriving does nothing, waiting is a barrier of the block. */
static void
cluster_barrier(Decoder *d)
{
  bool wait = opmod_take(d, M_WAIT);
  opmod_take(d, M_ARRIVE);
  opmod_take(d, M_ALIGNED);
  decode_operands(d, 0, 0);
  uint32_t id = slot_const(d, 4, MAX_BARRIERS - 1, false);
  if (!wait)
    return;
  Insn *in = insn_emit(d, K_BAR);
  if (!in)
    return;
  in->a = id;
  in->sub = BAR_SYNC;
  in->flags = IF_ALIGNED;
}

static void
set_red(Decoder *d, Insn *in, ModId op, uint32_t dst, uint32_t pred)
{
  in->type2 = (uint8_t)(op == M_POPC ? 1 : op == M_AND ? 2 : 3);
  in->d = dst;
  in->c = pred;
}

/* arg 1: barrier, aligned only where it says so */
void
decode_bar(Decoder *d, int arg)
{
  bool cta_word = d->op_tok->n > 11 && d->op_tok->s[8] == 'c' && d->op_tok->s[9] == 'l';
  if (opmod_take(d, M_WARP)) {
    warp_barrier(d);
    return;
  }
  if (arg && cta_word) {
    cluster_barrier(d);
    return;
  }
  bool aligned = opmod_take(d, M_ALIGNED) || !arg;
  int kind = opmod_take(d, M_ARRIVE) ? BAR_ARRIVE : opmod_take(d, M_RED) ? BAR_RED : BAR_SYNC;
  ModId op = M_NONE;
  if (kind == BAR_SYNC && !opmod_take(d, M_SYNC))
    decode_fail(d, "unknown barrier");
  if (kind == BAR_RED)
    op = opmod_take(d, M_POPC) ? M_POPC : opmod_take(d, M_AND) ? M_AND : M_OR;
  if (op == M_OR)
    opmod_take(d, M_OR);
  opmod_type(d);
  uint32_t first = kind == BAR_RED;
  decode_operands(d, first * 2 + 1 + (kind == BAR_ARRIVE), first * 2 + 2);
  bool count = d->nop == first * 2 + 2;
  uint32_t id = opnd_src(d, &d->op[first], T_U32), n = count ? opnd_src(d, &d->op[first + 1], T_U32) : 0;
  uint32_t dst = first ? opnd_dst(d, &d->op[0], op == M_POPC ? 4 : 0) : 0;
  uint32_t pred = first ? opnd_src(d, &d->op[d->nop - 1], T_PRED) : 0;
  Insn *in = insn_emit(d, K_BAR);
  if (!in)
    return;
  in->a = id;
  in->b = n;
  in->sub = (uint8_t)kind;
  in->flags = (uint8_t)((aligned ? IF_ALIGNED : 0) | (count ? IF_COUNT : 0));
  if (first)
    set_red(d, in, op, dst, pred);
}

/* Inside a block accesses happen in program order; between blocks a fence is the host's. */
void
decode_fence(Decoder *d, int arg)
{
  decode_ignore(d, arg);
  emit_warp(d, K_WARP, fence_exec);
}

/* ---- shuffles and votes ---- */

void
decode_shfl(Decoder *d, int arg)
{
  if (!opmod_take(d, M_SYNC))
    decode_fail(d, "shfl without .sync is outside this machine");
  ModId mode = opmod_take_range(d, M_UP, M_IDX);
  if (opmod_type(d) != T_B32 || !mode)
    decode_fail(d, "shfl moves .b32");
  decode_operands(d, 5, 5);
  uint32_t a = opnd_src(d, &d->op[1], T_B32), b = opnd_src(d, &d->op[2], T_B32);
  uint32_t clamp = opnd_src(d, &d->op[3], T_B32), mask = opnd_src(d, &d->op[4], T_B32);
  uint32_t dst = opnd_dst(d, &d->op[0], 4), q = d->op[0].pipe;
  Insn *in = emit_warp(d, K_CONV, shfl_exec);
  if (!in)
    return;
  in->d = dst;
  in->a = a;
  in->b = b;
  in->c = mask;
  in->sub = (uint8_t)(mode - M_UP);
  in->flags = q ? IF_HAS_D : 0;
  insn_ext(d, clamp);
  insn_ext(d, q ? q - 1 : 0);
}

void
decode_vote(Decoder *d, int arg)
{
  if (!opmod_take(d, M_SYNC))
    decode_fail(d, "vote without .sync is outside this machine");
  ModId mode = opmod_take_range(d, M_ALL, M_BALLOT);
  opmod_type(d);
  decode_operands(d, 3, 3);
  if (!mode)
    decode_fail(d, "unknown vote");
  uint32_t a = opnd_src(d, &d->op[1], T_PRED), mask = opnd_src(d, &d->op[2], T_B32);
  uint32_t dst = opnd_dst(d, &d->op[0], mode == M_BALLOT ? 4 : 0);
  Insn *in = emit_warp(d, K_CONV, vote_exec);
  if (!in)
    return;
  in->d = dst;
  in->a = a;
  in->c = mask;
  in->sub = (uint8_t)(mode - M_ALL);
}

void
decode_match(Decoder *d, int arg)
{
  bool all = opmod_take(d, M_ALL);
  if (!all)
    opmod_take(d, M_ANY);
  opmod_take(d, M_SYNC);
  Type t = opmod_type(d);
  decode_operands(d, 3, 3);
  if (t != T_B32 && t != T_B64)
    decode_fail(d, "match compares .b32 or .b64");
  uint32_t a = opnd_src(d, &d->op[1], t), mask = opnd_src(d, &d->op[2], T_B32), dst = opnd_dst(d, &d->op[0], 4);
  uint32_t q = d->op[0].pipe;
  Insn *in = emit_warp(d, K_CONV, match_exec);
  if (!in)
    return;
  in->d = dst;
  in->a = a;
  in->c = mask;
  in->esize = ptx_type_bytes[t];
  in->sub = all;
  in->flags = q ? IF_HAS_D : 0;
  insn_ext(d, q ? q - 1 : 0);
}

void
decode_redux(Decoder *d, int arg)
{
  static const ModId ops[] = {M_ADD, M_MIN, M_MAX, M_AND, M_OR, M_XOR};
  ModId op = M_NONE;
  opmod_take(d, M_SYNC);
  for (int i = 0; i < 6 && !op; i++)
    op = opmod_take(d, ops[i]) ? ops[i] : M_NONE;
  bool abs = opmod_take(d, M_ABS), nan = opmod_take(d, M_NAN);
  Type t = opmod_type(d);
  decode_operands(d, 3, 3);
  bool word = t == T_U32 || t == T_S32 || t == T_B32, real = t == T_F32 && (op == M_MIN || op == M_MAX);
  if (!op || (!word && !real) || (word && (abs || nan)))
    decode_fail(d, "'%.*s': the machine does not know this reduction", (int)d->op_tok->n, d->op_tok->s);
  uint32_t a = opnd_src(d, &d->op[1], T_B32), mask = opnd_src(d, &d->op[2], T_B32), dst = opnd_dst(d, &d->op[0], 4);
  Insn *in = emit_warp(d, K_CONV, redux_exec);
  if (!in)
    return;
  in->d = dst;
  in->a = a;
  in->c = mask;
  in->sub = (uint8_t)op;
  in->type = (uint8_t)t;
  in->post = (uint8_t)(abs | nan << 1);
}

void
decode_activemask(Decoder *d, int arg)
{
  opmod_type(d);
  decode_operands(d, 1, 1);
  uint32_t dst = opnd_dst(d, &d->op[0], 4);
  Insn *in = emit_warp(d, K_WARP, activemask_exec);
  if (in)
    in->d = dst;
}

void
decode_elect(Decoder *d, int arg)
{
  opmod_take(d, M_SYNC);
  decode_operands(d, 2, 2);
  uint32_t mask = opnd_src(d, &d->op[1], T_B32), q = d->op[0].pipe;
  uint32_t dst = opnd_dst(d, &d->op[0], 4);
  if (!q)
    decode_fail(d, "elect has a predicate result");
  Insn *in = emit_warp(d, K_CONV, elect_exec);
  if (!in)
    return;
  in->d = dst;
  in->c = mask;
  insn_ext(d, q - 1);
}

/* ---- matrices ---- */

static void
whole_warp(Decoder *d, Insn *in)
{
  in->flags |= IF_ALIGNED;
  in->c = 0;
}

static void
add_elements(Decoder *d, const uint32_t *slot, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    insn_ext(d, slot[i]);
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
    decode_fail(d, "'%.*s': the machine does not know this form", (int)d->op_tok->n, d->op_tok->s);
    return;
  }
  const Opnd *e = vec->kind == O_VEC ? &d->elem[vec->first] : vec;
  for (uint32_t i = 0; i < n; i++)
    slot[i] = store ? opnd_src(d, &e[i], T_B32) : opnd_dst(d, &e[i], 4);
  uint32_t at = opnd_address(d, mem);
  Insn *in = emit_warp(d, K_CONV, store ? stmatrix_exec : ldmatrix_exec);
  if (!in)
    return;
  whole_warp(d, in);
  insn_address(in, mem, at);
  in->flags |= (uint8_t)((trans ? IF_TRANS : 0) | (store ? IF_STORE : 0));
  in->vec = (uint8_t)n;
  in->esize = 16;
  in->space = SP_SHARED;
  add_elements(d, slot, n);
}

/* The shapes this machine has. Register counts follow from the shape and the element sizes. */
static const struct { uint16_t shape; uint8_t m, n, k, ab_bits; } mma_shapes[] = {
  {M_M16N8K8, 16, 8, 8, 16},   {M_M16N8K16, 16, 8, 16, 16}, {M_M16N8K4, 16, 8, 4, 32},  {M_M16N8K8, 16, 8, 8, 32},
  {M_M16N8K16, 16, 8, 16, 8},  {M_M16N8K32, 16, 8, 32, 8},  {M_M8N8K4, 8, 8, 4, 64},    {M_M16N8K4, 16, 8, 4, 64},
  {M_M16N8K8, 16, 8, 8, 64},   {M_M16N8K16, 16, 8, 16, 64},
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

static int
mma_shape(Decoder *d, int bits)
{
  int found = -1;
  for (size_t i = 0; i < sizeof mma_shapes / sizeof *mma_shapes && found < 0; i++)
    if (mma_shapes[i].ab_bits == bits && opmod_take(d, (ModId)mma_shapes[i].shape))
      found = (int)i;
  return found;
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

void
decode_mma(Decoder *d, int arg)
{
  opmod_take(d, M_SYNC);
  opmod_take(d, M_ALIGNED);
  bool layout = opmod_take(d, M_ROW) && opmod_take(d, M_COL);
  opmod_take(d, M_SATFINITE);
  opmod_take(d, M_KIND_F8F6F4);
  opmod_take(d, M_RN);
  Type dt = opmod_type(d), at = opmod_type(d), bt = opmod_type(d), ct = opmod_type(d);
  decode_operands(d, 4, 4);
  int bits = at ? ptx_type_bytes[at] * 8 : 0;
  int s = d->failed || !layout || !mma_types_fit(dt, at, bt, ct) ? -1 : mma_shape(d, bits);
  if (s < 0) {
    decode_fail(d, "'%.*s': the machine does not know this form", (int)d->op_tok->n, d->op_tok->s);
    return;
  }
  uint32_t m = mma_shapes[s].m, n = mma_shapes[s].n, k = mma_shapes[s].k, slot[48];
  uint32_t na = matrix_regs(m * k, bits), nb = matrix_regs(k * n, bits);
  uint32_t nc = matrix_regs(m * n, ptx_type_bytes[dt] * 8);
  int w = bits == 64 ? 8 : 4, wc = dt == T_F64 ? 8 : 4;
  matrix_operand(d, &d->op[0], nc, wc, true, slot);
  matrix_operand(d, &d->op[1], na, w, false, slot + nc);
  matrix_operand(d, &d->op[2], nb, w, false, slot + nc + na);
  matrix_operand(d, &d->op[3], nc, wc, false, slot + nc + na + nb);
  Insn *in = emit_warp(d, K_CONV, mma_exec);
  if (!in)
    return;
  whole_warp(d, in);
  in->type = (uint8_t)dt;
  in->type2 = (uint8_t)at;
  in->sub = (uint8_t)bt;
  in->vec = (uint8_t)m;
  in->esize = (uint8_t)k;
  add_elements(d, slot, 2 * nc + na + nb);
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
  bool sized = d->nop == 4u + hint;
  uint32_t size = 0, ignore = 0;
  if (sized && d->op[3].kind == O_REG && d->op[3].type == T_PRED)
    ignore = opnd_src(d, &d->op[3], T_PRED) + 1;
  else if (sized)
    size = opnd_src(d, &d->op[3], T_U32) + 1;
  uint32_t at = opnd_address(d, dst), from = opnd_address(d, src);
  if (src->has_base && src->width != 8)
    decode_fail(d, "an address register is too narrow");
  uint32_t src_off = slot_const(d, 8, src->has_base ? src->imm : 0, false);
  Insn *in = emit_warp(d, K_WARP, async_copy);
  if (!in)
    return;
  insn_address(in, dst, at);
  in->flags |= IF_STORE;
  in->b = from;
  in->c = src_off;
  in->esize = (uint8_t)n->imm;
  in->space = SP_SHARED;
  in->sub = size ? 1 : ignore ? 2 : 0;
  insn_ext(d, size ? size - 1 : ignore ? ignore - 1 : 0);
}

void
decode_cp(Decoder *d, int arg)
{
  if (!opmod_take(d, M_ASYNC)) {
    decode_fail(d, "unknown copy");
    return;
  }
  if (opmod_take(d, M_COMMIT_GROUP)) {
    decode_operands(d, 0, 0);
    emit_warp(d, K_WARP, async_commit);
    return;
  }
  bool all = opmod_take(d, M_WAIT_ALL), group = opmod_take(d, M_WAIT_GROUP);
  if (!all && !group) {
    async_copy_insn(d);
    return;
  }
  decode_operands(d, group, group);
  if (group && d->op[0].kind != O_IMM)
    decode_fail(d, "expected a number of groups");
  Insn *in = emit_warp(d, K_WARP, async_wait);
  if (!in)
    return;
  in->imm = group ? d->op[0].imm : 0;
  in->sub = all;
}
