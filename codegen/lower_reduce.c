/* lower_reduce.c - reductions along an axis: in the thread, then across lanes, then across warps.
 *
 * A thread first folds the registers that belong to one element of the result, as a tree. What lanes hold along the axis
 * is then folded by butterflies, after which all lanes agree. Warps that differ along the axis write their partials to
 * scratch memory, one lane for each element; after a barrier every thread reads the partials of its elements and folds them. Either
 * an element's partials lie side by side or a warp's elements do (scratch.h), and several travel in one access. The region that
 * folds two elements is lowered anew each time.
 *
 * Whether any, or all, elements of a tile are true is a vote of all threads, copies and all: of a warp, or at the team's barrier.
 *
 * This asks that a bit of lane or warp moves either along the axis or across it, never both, and that no two of them are
 * the same element twice; zero columns are copies and stay out. All layouts that the compiler chooses are like that.
 *
 * Padding along the axis must not take part. Where the region is one operation known to have an identity, padding
 * becomes that: -0 for a sum, a nan for a minimum (it loses against every number). Otherwise each partial carries a flag
 * that says whether it holds anything yet.
 */
#include "fold.h"

#define B g->b

/* The fold of n partials, pairwise, left in parts[0]. */
static void
tree(Gen *g, const Fold *f, Part *parts, u32 n)
{
  for (; n > 1; n = (n + 1) / 2) {
    for (u32 i = 0; i + 1 < n; i += 2) {
      fold_combine(g, f, &parts[i], &parts[i + 1]);
      parts[i / 2] = parts[i];
    }
    if (n & 1)
      parts[n / 2] = parts[n - 1];
  }
}

/* ---- in the thread ---- */

/* The result's part of an operand's flat index: the axis cut out. */
static u32
cut_axis(const Fold *f, u32 flat)
{
  u32 low = flat & ((1u << f->h->shift[f->axis]) - 1);
  u32 high = flat >> (f->h->shift[f->axis] + f->h->l->out_bits[f->axis]);
  return high << f->h->shift[f->axis] | low;
}

/* The element in register r as a partial; false if it is padding in every thread. */
static bool
leaf(Gen *g, const Fold *f, u32 r, Part *out)
{
  const Type *t = op_operand(f->op, 0)->type;
  Val in = f->padded ? dist_inside_dim(g, f->h, t, r, (int)f->axis) : NULL;
  if (in && LLVMIsAConstantInt(in))
    return false;
  out->valid = f->known ? NULL : in;
  for (u32 k = 0; k < f->n; k++)
    out->v[k] = gen_regs(g, op_operand(f->op, k))[r];
  if (in && f->known)
    out->v[0] = LLVMBuildSelect(B, in, out->v[0], fold_identity(g, f, t->dt), "");
  return true;
}

static u32
result_register(Gen *g, const Fold *f, u32 operand_reg)
{
  u32 r = 0;
  if (f->result && !dist_find(f->result, cut_axis(f, f->h->flat[operand_reg]), &r))
    ctx_panic(g->c, "reduce: operand and result layouts disagree");
  return r;
}

/* A sum of products folds with fma: the products need not be rounded, since a reduction may fold in any order. Chains
 * long enough to save the multiplications and enough of them to hide their latency. */
static bool
is_sum_of_products(const Fold *f)
{
  const Value *x = op_operand(f->op, 0);
  return f->known && f->code == OP_ADD && !f->padded && op_is(x, OP_MUL) && (x->type->dt == DT_F32 || x->type->dt == DT_F64);
}

/* Registers regs[0..n) of the product, folded into *out. */
static void
fold_products(Gen *g, const Fold *f, const u32 *regs, u32 n, Part *out)
{
  enum { CHAINS = 8 };
  const Op *mul = op_operand(f->op, 0)->def;
  const Val *a = gen_regs(g, op_operand(mul, 0)), *b = gen_regs(g, op_operand(mul, 1));
  const Val *product = gen_regs(g, op_result(mul));
  Part chain[CHAINS] = {0};
  for (u32 i = 0; i < n; i++) {
    Val *v = &chain[i % CHAINS].v[0];
    *v = i < CHAINS ? product[regs[i]] : elem_fma(g, op_result(mul)->type->dt, a[regs[i]], b[regs[i]], *v);
  }
  tree(g, f, chain, n < CHAINS ? n : CHAINS);
  *out = chain[0];
}

static void
fold_all_products(Gen *g, const Fold *f, Part *out, u32 nresults)
{
  u32 *regs = NEW_ARRAY(g->arena, u32, f->h->regs);
  for (u32 i = 0; i < nresults; i++) {
    u32 n = 0;
    for (u32 r = 0; r < f->h->regs; r++)
      if (f->h->rep[r] == r && result_register(g, f, r) == i)
        regs[n++] = r;
    if (n) fold_products(g, f, regs, n, &out[i]);
    else out[i] = fold_nothing(g, f);
  }
}

/* Is v the coordinate along the axis? */
static bool
is_coordinate(const Value *v, u32 axis)
{
  for (const Op *op = v->def; op; v = op_operand(op, 0), op = v->def)
    switch (op->code) {
    case OP_ARANGE: return op_int(op, AT_START, 0) == 0;
    case OP_CONVERT_LAYOUT: break;
    case OP_BROADCAST:
      if (op_operand(op, 0)->type->shape[axis] != v->type->shape[axis])
        return false;
      break;
    case OP_EXPAND_DIMS: {
      u32 at = (u32)op_int(op, AT_AXIS, 0);
      if (at == axis)
        return false;
      axis -= at < axis;
      break;
    }
    default: return false;
    }
  return false;
}

/* The lowest place at which something holds: the least of coordinates, where it does, and of the largest number, where it does not. A
 * thread's registers then are constants to choose from, from the last to the first, two instructions each; its own part of the coordinate
 * shares no bit with them and is added at the end. */
static bool
is_first_place(const Fold *f)
{
  const Value *x = op_operand(f->op, 0);
  u64 none;
  if (!(f->known && f->code == OP_MIN) || f->padded || x->type->dt != DT_I32 || !op_is(x, OP_SELECT) ||
      !value_const_bits(OPERAND(x->def, SELECT, b), &none) || none != INT32_MAX || !is_coordinate(OPERAND(x->def, SELECT, a), f->axis))
    return false;
  u32 mine = 0;
  for (u32 r = 0; r < f->h->regs; r++)
    mine |= dist_coord(f->h, f->h->flat[r], (int)f->axis);
  return !(mine & dist_coord(f->h, f->h->thread_mask, (int)f->axis));
}

/* The registers of result i, the one with the last place first. */
static u32
by_place(Gen *g, const Fold *f, u32 i, u32 *regs)
{
  u32 n = 0;
  for (u32 r = 0; r < f->h->regs; r++) {
    if (f->h->rep[r] != r || result_register(g, f, r) != i)
      continue;
    u32 k = n++, at = dist_coord(f->h, f->h->flat[r], (int)f->axis);
    for (; k && dist_coord(f->h, f->h->flat[regs[k - 1]], (int)f->axis) < at; k--)
      regs[k] = regs[k - 1];
    regs[k] = r;
  }
  return n;
}

static void
fold_places(Gen *g, const Fold *f, Part *out, u32 nresults)
{
  enum { CHAIN = 16 };        /* of instructions that wait for each other */
  const Val *holds = gen_regs(g, OPERAND(op_operand(f->op, 0)->def, SELECT, c));
  u32 *regs = NEW_ARRAY(g->arena, u32, f->h->regs);
  Part *chains = NEW_ARRAY(g->arena, Part, f->h->regs / CHAIN + 1);
  for (u32 i = 0; i < nresults; i++) {
    u32 n = by_place(g, f, i, regs), nchains = 0;
    for (u32 k = 0; k < n; k++) {
      Val *at = &chains[k % CHAIN ? nchains - 1 : nchains++].v[0];
      Val before = k % CHAIN ? *at : gen_u32(g, INT32_MAX);
      *at = LLVMBuildSelect(B, holds[regs[k]], gen_u32(g, dist_coord(f->h, f->h->flat[regs[k]], (int)f->axis)), before, "");
    }
    if (!n) {
      out[i] = fold_nothing(g, f);
      continue;
    }
    tree(g, f, chains, nchains);
    out[i] = (Part){.v[0] = LLVMBuildOr(B, chains[0].v[0], dist_index(g, f->h, 0, (int)f->axis), "")};
  }
}

static void
fold_registers(Gen *g, const Fold *f, Part *out, u32 nresults)
{
  if (is_sum_of_products(f)) {
    fold_all_products(g, f, out, nresults);
    return;
  }
  if (is_first_place(f)) {
    fold_places(g, f, out, nresults);
    return;
  }
  u32 *count = NEW_ARRAY(g->arena, u32, nresults), *start = NEW_ARRAY(g->arena, u32, nresults + 1);
  for (u32 r = 0; r < f->h->regs; r++)
    if (f->h->rep[r] == r)
      count[result_register(g, f, r)]++;
  for (u32 i = 0; i < nresults; i++)
    start[i + 1] = start[i] + count[i];
  Part *parts = NEW_ARRAY(g->arena, Part, start[nresults]);
  memset(count, 0, sizeof *count * nresults);
  for (u32 r = 0; r < f->h->regs; r++) {
    u32 to = f->h->rep[r] == r ? result_register(g, f, r) : 0;
    if (f->h->rep[r] == r && leaf(g, f, r, &parts[start[to] + count[to]]))
      count[to]++;
  }
  for (u32 i = 0; i < nresults; i++) {
    tree(g, f, parts + start[i], count[i]);
    out[i] = count[i] ? parts[start[i]] : fold_nothing(g, f);
  }
}

/* ---- across lanes ---- */
static const char *
redux_name(const Fold *f, DType d)
{
  bool s = dtype_is_signed(d);
  switch (f->code) {
  case OP_ADD: return "llvm.nvvm.redux.sync.add";
  case OP_MIN: case OP_MINIMUM: return s ? "llvm.nvvm.redux.sync.min" : "llvm.nvvm.redux.sync.umin";
  case OP_MAX: case OP_MAXIMUM: return s ? "llvm.nvvm.redux.sync.max" : "llvm.nvvm.redux.sync.umax";
  case OP_AND: return "llvm.nvvm.redux.sync.and";
  case OP_OR:  return "llvm.nvvm.redux.sync.or";
  case OP_XOR: return "llvm.nvvm.redux.sync.xor";
  default:     return NULL;
  }
}

/* Conjunctions and disjunctions of a whole warp are votes. */
static bool
vote(Gen *g, const Fold *f, Part *p)
{
  bool any = f->code == OP_OR || f->code == OP_MAX, all = f->code == OP_AND || f->code == OP_MIN;
  if (!f->known || !(any || all) || f->lanes != LANES - 1 || LLVMTypeOf(p->v[0]) != g->i1)
    return false;
  p->v[0] = team_vote(g, all, false, p->v[0]);
  return true;
}

/* One instruction for a whole warp, where there is one. */
static bool
redux(Gen *g, const Fold *f, Part *p)
{
  DType d = op_operand(f->op, 0)->type->dt;
  const char *name = f->known ? redux_name(f, d) : NULL;
  if (!name || f->lanes != LANES - 1 || !target_has(g->target, F_REDUX) || !dtype_is_int(d) || dtype_bits(d) != 32)
    return false;
  Val args[2] = {p->v[0], gen_u32(g, ~0u)};
  p->v[0] = gen_call_convergent(g, name, 0, NULL, 2, args);
  return true;
}

static void
fold_lanes(Gen *g, const Fold *f, Part *p)
{
  if (vote(g, f, p) || redux(g, f, p))
    return;
  for (u32 bit = 1; bit < LANES; bit <<= 1) {
    if (!(f->lanes & bit))
      continue;
    Part other = {.valid = NULL};
    for (u32 k = 0; k < f->n; k++)
      other.v[k] = shuffle_xor(g, p->v[k], bit);
    if (p->valid)
      other.valid = shuffle_xor(g, p->valid, bit);
    fold_combine(g, f, p, &other);
  }
}

/* ---- across warps ---- */

/* The position among the partials of one element that warp bits make up. */
static u32
packed_warp(const ReduceScratch *s, u32 warp)
{
  u32 out = 0, at = 0;
  for (u32 w = 0; w < 32; w++)
    if (s->warp_mask >> w & 1)
      out |= (warp >> w & 1) << at++;
  return out;
}

/* Where an element of the result lies in its piece. */
static u32
place_of(const ReduceScratch *s, u32 flat)
{
  return s->pieces ? layout_piece_place(&s->map, flat) : flat;
}

/* Is register r of the result one of its own, and in this piece? */
static bool
in_piece(const Fold *f, const ReduceScratch *s, u32 r, u32 piece)
{
  return !f->result || (f->result->rep[r] == r && (!s->pieces || layout_piece_number(&s->map, f->result->flat[r]) == piece));
}

/* Byte offsets of this thread's partial (write) or of its elements' first partials (not write), by bits of tid. */
static u32
scratch_columns(const Fold *f, const ReduceScratch *s, u32 bytes, bool write, u32 *cols)
{
  u32 all = 0;
  for (u32 i = 0; i < f->h->thread_bits; i++) {
    u32 flat = f->h->thread[i], at = place_of(s, cut_axis(f, flat & ~f->axis_mask)) * s->element_step;
    if (write && i >= LANE_BITS)
      at |= packed_warp(s, 1u << (i - LANE_BITS)) * s->warp_step;
    cols[i] = at * bytes;
    all |= cols[i];
  }
  return all;
}

static Val
partial_offset(Gen *g, const Fold *f, const ReduceScratch *s, u32 reg, u32 bytes, bool write)
{
  u32 cols[LAYOUT_MAX_BITS], mask = scratch_columns(f, s, bytes, write, cols);
  u32 mine = f->result ? place_of(s, f->result->flat[reg]) * s->element_step * bytes : 0;
  return gen_xor_const(g, team_linear(g, cols, f->h->thread_bits), mask, mine);
}

/* How many registers of the result from any multiple of that on are side by side in scratch memory. */
static u32
side_by_side(const Fold *f, const ReduceScratch *s, u32 bytes, bool write)
{
  if (s->element_step != 1 || !f->result)
    return 1;
  u32 cols[LAYOUT_MAX_BITS], all = scratch_columns(f, s, bytes, write, cols), n = 1;
  for (u32 i = 0; i < f->result->reg_bits && f->result->flat[1u << i] == 1u << i; i++) {
    if (2 * n * bytes > 16 || all & (2 * n * bytes - 1) || (s->pieces && layout_piece_number(&s->map, 1u << i)))
      break;
    n *= 2;
  }
  return n;
}

static void
write_operand(Gen *g, const Fold *f, const ReduceScratch *s, u32 at, u32 k, const Part *parts, u32 nresults, u32 piece)
{
  DType d = op_operand(f->op, k)->type->dt;
  u32 bytes = dtype_bytes(d), n = side_by_side(f, s, bytes, true);
  Words w = words_for(g, d, false, n);
  for (u32 r = 0; r < nresults; r += n) {
    if (!in_piece(f, s, r, piece))
      continue;
    Val words[16], elems[16];
    for (u32 i = 0; i < n; i++)
      elems[i] = parts[r + i].v[k];
    words_pack(g, &w, elems, words);
    words_store(g, &w, addr_shared(g, partial_offset(g, f, s, r, bytes, true), at + s->base[k]), n * bytes, words);
  }
}

static void
write_partials(Gen *g, const Fold *f, const ReduceScratch *s, u32 at, const Part *parts, u32 nresults, u32 piece)
{
  u32 silent = f->lanes | f->h->free_threads;
  LLVMBasicBlockRef after = gen_if(g, team_bits_zero(g, silent));
  for (u32 k = 0; k < f->n; k++)
    write_operand(g, f, s, at, k, parts, nresults, piece);
  gen_end_if(g, after);
}

/* Operand k's partials of registers from..to of the result, those of register r from out[(r - from) * nwarps] on. */
static void
read_operand(Gen *g, const Fold *f, const ReduceScratch *s, u32 at, u32 k, Part *out, u32 from, u32 to)
{
  DType d = op_operand(f->op, k)->type->dt;
  u32 bytes = dtype_bytes(d), n = side_by_side(f, s, bytes, false);
  u32 warps = s->warp_step != 1 ? 1 : 16 / bytes < s->nwarps ? 16 / bytes : s->nwarps;
  Words w = words_for(g, d, false, n * warps);
  for (u32 r = from; r < to; r += n) {
    if (f->result && f->result->rep[r] != r)
      continue;
    Val off = partial_offset(g, f, s, r, bytes, false);
    for (u32 j = 0; j < s->nwarps; j += warps) {
      Val words[16], elems[16];
      words_load(g, &w, addr_shared(g, off, at + s->base[k] + j * s->warp_step * bytes), n * warps * bytes, words);
      words_unpack(g, &w, words, elems);
      for (u32 i = 0; i < n * warps; i++)
        out[(r - from + i / warps) * s->nwarps + j + i % warps].v[k] = elems[i];
    }
  }
}

/* The least coordinate along the axis that a warp holds, given its own bits: what registers and lanes span is cleared. */
static u32
least_coordinate(const Fold *f, u32 warp_bits)
{
  u32 basis[LAYOUT_MAX_BITS] = {0}, at = dist_coord(f->h, warp_bits, (int)f->axis);
  const Layout *l = f->h->l;
  for (u32 in = IN_REG; in <= IN_LANE; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++)
      for (u32 v = dist_coord(f->h, l->col[in][i], (int)f->axis); v; v ^= basis[log2_u32(v)])
        if (!basis[log2_u32(v)]) {
          basis[log2_u32(v)] = v;
          break;
        }
  for (int top = LAYOUT_MAX_BITS - 1; top >= 0; top--)
    if (at >> top & 1 && basis[top])
      at ^= basis[top];
  return at;
}

/* Does partial j hold any element at all? */
static bool
warp_has_elements(const Fold *f, const ReduceScratch *s, u32 j)
{
  u32 flat = 0, at = 0;
  for (u32 w = 0; w < f->h->l->in_bits[IN_WARP]; w++)
    if (s->warp_mask >> w & 1 && j >> at++ & 1)
      flat ^= f->h->l->col[IN_WARP][w];
  return least_coordinate(f, flat) < op_operand(f->op, 0)->type->shape[f->axis];
}

/* The fold of what each warp left of one element. */
static Part
fold_partials(Gen *g, const Fold *f, const ReduceScratch *s, Part *all)
{
  u32 n = 0;
  for (u32 j = 0; j < s->nwarps; j++)
    if (warp_has_elements(f, s, j))
      all[n++] = all[j];
  tree(g, f, all, n);
  return all[0];
}

/* The folds of a few elements are made here, not behind the next branch: LLVM would move them to where a conversion writes them,
 * and then all partials of all elements are in registers at once. */
static void
keep_here(Gen *g, const Fold *f, Part *parts, u32 n)
{
  for (u32 k = 0; k < f->n; k++) {
    PtxArgs a = {.nout = 0};
    Val out[COUNT(a.out)];
    for (u32 r = 0; r < n && LLVMTypeOf(parts[r].v[k]) != g->i1; r++) {
      a.in[a.nout] = parts[r].v[k];
      a.out[a.nout++] = LLVMTypeOf(parts[r].v[k]);
    }
    a.nin = a.ntied = a.nout;
    if (a.nout)
      ptx_emit(g, PTX_HERE, &a, out);
    for (u32 r = 0; r < a.nout; r++)
      parts[r].v[k] = out[r];
  }
}

/* One piece: what was written is read, by few registers at a time: all partials at once would need many. */
static void
fold_piece(Gen *g, const Fold *f, const ReduceScratch *s, u32 at, Part *parts, u32 nresults, u32 piece)
{
  u32 step = 1;
  write_partials(g, f, s, at, parts, nresults, piece);
  team_barrier(g);
  for (u32 k = 0; k < f->n; k++) {
    u32 n = side_by_side(f, s, dtype_bytes(op_operand(f->op, k)->type->dt), false);
    step = n > step ? n : step;
  }
  Part *partials = NEW_ARRAY(g->arena, Part, s->nwarps * step);
  for (u32 from = 0; from < nresults; from += step) {
    if (!in_piece(f, s, from, piece))
      continue;
    memset(partials, 0, sizeof *partials * s->nwarps * step);
    for (u32 k = 0; k < f->n; k++)
      read_operand(g, f, s, at, k, partials, from, from + step);
    for (u32 r = from; r < from + step; r++)
      if (!f->result || f->result->rep[r] == r)
        parts[r] = fold_partials(g, f, s, partials + (r - from) * s->nwarps);
    if (nresults > step)
      keep_here(g, f, parts + from, step);
  }
}

static void
fold_warps(Gen *g, const Fold *f, const ReduceScratch *s, Part *parts, u32 nresults)
{
  if (s->nwarps == 1 || !addr_scratch(g, f->op, s->bytes))
    return;
  for (u32 piece = 0; piece < 1u << s->pieces; piece++) {
    if (piece)
      team_barrier(g);
    fold_piece(g, f, s, (u32)op_int(f->op, AT_SCRATCH, 0), parts, nresults, piece);
  }
}

/* ---- the op ---- */

/* Bits of lane and warp go along the axis or across it, and no sum of those along it vanishes. */
static bool
is_simple(const Fold *f)
{
  u32 basis[LAYOUT_MAX_BITS] = {0};
  u32 n = f->h->thread_bits + f->h->reg_bits;
  for (u32 i = 0; i < n; i++) {
    bool is_reg = i >= f->h->thread_bits;
    u32 flat = is_reg ? f->h->l->col[IN_REG][i - f->h->thread_bits] : f->h->thread[i], along = flat & f->axis_mask;
    if (!is_reg && along && along != flat)
      return false;
    if (!along || along != flat || (is_reg && f->h->rep[1u << (i - f->h->thread_bits)] != 1u << (i - f->h->thread_bits)))
      continue;
    while (along && basis[log2_u32(along)])
      along ^= basis[log2_u32(along)];
    if (!along)
      return false;
    basis[log2_u32(along)] = along;
  }
  return true;
}

static Fold
fold_new(Gen *g, const Op *op)
{
  const Type *t = op_operand(op, 0)->type, *r = op_result(op)->type;
  Fold f = {.op = op, .n = op->noperands, .axis = (u32)op_int(op, AT_AXIS, 0)};
  f.h = dist_get(g, t->layout);
  f.result = type_is_tile(r) ? dist_get(g, r->layout) : NULL;
  f.axis_mask = ((1u << t->layout->out_bits[f.axis]) - 1) << f.h->shift[f.axis];
  f.padded = !is_pow2(t->shape[f.axis]);
  for (u32 i = 0; i < LANE_BITS && i < f.h->thread_bits; i++)
    if (f.h->thread[i] & f.axis_mask)
      f.lanes |= 1u << i;
  fold_find_operation(&f);
  return f;
}

static void
finish(Gen *g, const Fold *f, const Part *parts)
{
  for (u32 k = 0; k < f->n; k++) {
    const Value *v = f->op->results[k];
    Val *out = gen_new(g, v);
    for (u32 r = 0; r < gen_nregs(v->type); r++)
      out[r] = parts[r].v[k] ? parts[r].v[k] : LLVMGetPoison(gen_type(g, v->type));
    dist_share(g, v);
  }
}

void
lower_REDUCE(Gen *g, const Op *op)
{
  Fold f = fold_new(g, op);
  u32 nresults = gen_nregs(op_result(op)->type);
  Part *parts = NEW_ARRAY(g->arena, Part, nresults);
  ReduceScratch s;
  bool all;
  if (f.n > FOLD_OPERANDS || !is_simple(&f)) {
    gen_unsupported(g, op, f.n > FOLD_OPERANDS ? "a reduction of more than 16 tiles at once" :
                    "a reduction over a layout whose lanes or warps mix the axis with another dimension");
    for (u32 k = 0; k < op->nresults; k++)
      gen_poison(g, op->results[k]);
    return;
  }
  scratch_reduce(op, &s);
  fold_registers(g, &f, parts, nresults);
  if (scratch_reduce_votes(op, &all)) {
    parts[0].v[0] = team_vote(g, all, s.nwarps > 1, parts[0].v[0]);
    finish(g, &f, parts);
    return;
  }
  for (u32 r = 0; r < nresults; r++)
    if (!f.result || f.result->rep[r] == r)
      fold_lanes(g, &f, &parts[r]);
  fold_warps(g, &f, &s, parts, nresults);
  finish(g, &f, parts);
}
