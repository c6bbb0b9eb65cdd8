/* lower_mma.c - dot: with tensor cores where choose_mma picked a row of mma.def, with fma otherwise.
 *
 * An operand's registers are the instruction's own, in PTX order, then its repetitions along K, then along M or N, then the
 * batches (layout/layout_kinds.c says so); so the registers of one instruction are consecutive, and packing them into 32-bit
 * words is all there is to do. Steps along K are outermost: consecutive instructions then write different accumulators.
 *
 * Padding may hold anything. Instructions whose rows, columns or batches are all padding are left out. Where K ends within
 * an instruction, the operands' words of that step are cleared beyond it, in both operands for floats (anything may be a nan,
 * which no 0 outweighs), in one for integers.
 *
 * dot_sparse is the same with instructions of which A is compressed, and a word of metadata each.
 *
 * f32 may be split into parts that tensor cores take (codegen/dot_parts.c): then one step is several instructions.
 *
 * Without tensor cores every thread holds all of K for its part of the result. Floats are multiplied and added in f32 (or
 * f64), integers in the accumulator's type; f32 inputs are rounded, or cut, to tf32 here too if the dot asks for that.
 */
#include "gen.h"
#include "sparse.h"

#define B g->b
enum { MAX_WORDS = 4, MAX_ARGS = 3 * MAX_WORDS + 2 };

/* All registers of v as 32-bit words. */
static Val *
pack_words(Gen *g, const Value *v, u32 *nwords)
{
  u32 per = 32 / dtype_bits(v->type->dt), n = gen_nregs(v->type);
  const Val *regs = gen_regs(g, v);
  Words w = words_for(g, v->type->dt, false, per);
  Val *out = NEW_ARRAY(g->arena, Val, n / per);
  for (u32 i = 0; i < n / per; i++)
    words_pack(g, &w, regs + i * per, &out[i]);
  *nwords = n / per;
  return out;
}

/* ---- the end of K ---- */

/* Where K ends in the last of `steps` instructions: it has `rest` elements of K, 0: all it takes. */
typedef struct Tail { u32 steps, held, rest, per, which, words; } Tail;

/* A word without the elements beyond K. Words are `per` elements of K, those of four threads side by side, then the next
 * word of the same row or column: A has two words, of two rows, in between. */
static Val
clear_word(Gen *g, const Tail *t, u32 i, Val word)
{
  u32 at = i % t->words, first = (t->which ? at : at / 2) * 4 * t->per, step = i / t->words % t->held;
  Val zero = gen_u32(g, 0), quad = LLVMBuildAnd(B, g->team->tid, gen_u32(g, 3), "");
  if (step >= t->steps)
    return zero;
  if (!t->rest || step + 1 < t->steps || t->rest >= first + 4 * t->per)
    return word;
  if (t->rest <= first)
    return zero;
  u32 whole = (t->rest - first) / t->per, part = (t->rest - first) % t->per;
  Val all = LLVMBuildICmp(B, LLVMIntULT, quad, gen_u32(g, whole), "");
  word = gen_bitcast(g, word, g->i32);
  if (!part)
    return LLVMBuildSelect(B, all, word, zero, "");
  Val some = LLVMBuildICmp(B, LLVMIntEQ, quad, gen_u32(g, whole), "");
  Val mask = LLVMBuildSelect(B, some, gen_u32(g, (1u << part * (32 / t->per)) - 1), zero, "");
  mask = LLVMBuildSelect(B, all, gen_u32(g, UINT32_MAX), mask, "");
  return LLVMBuildAnd(B, LLVMBuildFreeze(B, word, ""), mask, "");
}

/* One instruction: C words are replaced by the result's. extra: operands behind them, two of a sparse one, or NULL. */
static void
mma_call(Gen *g, const Mma *row, const Val *a, const Val *b, Val *c, const Val *extra)
{
  unsigned id = LLVMLookupIntrinsicID(row->intrinsic, strlen(row->intrinsic));
  if (!id)
    ctx_panic(g->c, "LLVM has no intrinsic %s", row->intrinsic);
  Ty params[MAX_ARGS], type = LLVMIntrinsicGetType(g->lc, id, NULL, 0);
  Val args[MAX_ARGS];
  const Val *words[3] = {a, b, c};
  u32 n = 0;
  LLVMGetParamTypes(type, params);
  for (u32 which = 0; which < 3; which++)
    for (u32 i = 0; i < row->words[which]; i++, n++)
      args[n] = gen_bitcast(g, words[which][i], params[n]);
  for (u32 i = 0; row->sparse && i < 2; i++)
    args[n++] = extra[i];
  Val d = gen_call_convergent(g, row->intrinsic, 0, NULL, n, args);
  for (u32 i = 0; i < row->words[2]; i++)
    c[i] = LLVMBuildExtractValue(B, d, i, "");
}

static void
unpack_words(Gen *g, const Value *v, Val *words, u32 nwords)
{
  u32 per = 32 / dtype_bits(v->type->dt);
  Words w = words_for(g, v->type->dt, false, per);
  Val *out = gen_new(g, v);
  for (u32 i = 0; i < nwords; i++) {
    Val word = gen_bitcast(g, words[i], w.type);
    words_unpack(g, &w, &word, out + i * per);
  }
  dist_share(g, v);
}

/* ---- fragments loaded on the way ---- */

/* Operand words, some of which come from shared memory when the walk over instructions gets near them. */
typedef struct Feed {
  const Fragments *f;              /* NULL: all words are there */
  Val *words;
  u32 nwords;
  Tail tail;
  bool *loaded;                    /* by group */
  u32 *group_of;                   /* by word */
} Feed;

static Feed
feed_new(Gen *g, const Value *v, Tail tail)
{
  Feed x = {.f = g->fragments[v->id], .tail = tail};
  if (!x.f) {
    x.words = pack_words(g, v, &x.nwords);
    for (u32 i = 0; i < x.nwords; i++)
      x.words[i] = clear_word(g, &tail, i, x.words[i]);
    return x;
  }
  x.nwords = gen_nregs(v->type) * dtype_bits(v->type->dt) / 32;
  x.words = NEW_ARRAY(g->arena, Val, x.nwords);
  x.group_of = NEW_ARRAY(g->arena, u32, x.nwords);
  x.loaded = NEW_ARRAY(g->arena, bool, buffer_fragments_count(x.f));
  for (u32 i = 0; i < buffer_fragments_count(x.f); i++) {
    u32 words[4], n = buffer_fragments_words(x.f, i, words);
    for (u32 q = 0; q < n; q++)
      x.group_of[words[q]] = i;
  }
  return x;
}

static void
feed_load(Gen *g, Feed *x, u32 first, u32 n)
{
  for (u32 w = first; x->f && w < first + n; w++) {
    u32 words[4], group = x->group_of[w];
    if (x->loaded[group])
      continue;
    x->loaded[group] = true;
    buffer_fragments_load(g, x->f, group, x->words);
    u32 count = buffer_fragments_words(x->f, group, words);
    for (u32 q = 0; q < count; q++)
      x->words[words[q]] = clear_word(g, &x->tail, words[q], x->words[words[q]]);
  }
}

/* ---- the walk ---- */

/* What one instruction, or one of each product of parts, works on: groups of the operands' and the result's words. */
typedef struct Step { u32 a, b, c; } Step;

/* The order of instructions: along K outermost, so that consecutive ones write different accumulators; then row by row, every
 * other row backwards, so that consecutive ones always share an operand, which the hardware then need not read again. */
typedef struct Walk {
  u32 steps, nm, nn, batches;
  const Value *meta;               /* a sparse dot's, whose words are `metas`; else NULL */
  Val *metas;
  u32 held;                        /* steps that the operands' registers are for: the next power of two; the rest is padding */
  u32 n;
  Step *list;
} Walk;

/* Nothing of the instruction's part of the result lies inside the extents. */
static bool
all_padding(Gen *g, const Mma *row, const Value *result, u32 group)
{
  const Type *t = result->type;
  const Dist *h = dist_get(g, t->layout);
  u32 flat = h->flat[group * row->words[2] * 32 / dtype_bits(t->dt)];
  for (int d = 0; d < t->rank; d++)
    if (dist_coord(h, flat, d) >= t->shape[d])
      return true;
  return false;
}

static void
walk_add(Gen *g, const Mma *row, const Value *result, Walk *w, u32 batch, u32 k, u32 m, u32 n)
{
  u32 at_m = m + w->nm * batch, at_n = n + w->nn * batch, c = n + w->nn * at_m;
  if (!all_padding(g, row, result, c))
    w->list[w->n++] = (Step){k + w->held * at_m, k + w->held * at_n, c};
}

static void
walk_fill(Gen *g, const Mma *row, const Value *result, Walk *w)
{
  w->list = NEW_ARRAY(g->arena, Step, w->steps * w->nm * w->nn * w->batches);
  for (u32 batch = 0; batch < w->batches; batch++)
    for (u32 k = 0; k < w->steps; k++)
      for (u32 m = 0; m < w->nm; m++)
        for (u32 n = 0; n < w->nn; n++)
          walk_add(g, row, result, w, batch, k, m, m & 1 ? w->nn - 1 - n : n);
}

/* Matrices that a thread has a part of. */
static u32
batches_held(const Op *op)
{
  const Type *t = op_result(op)->type;
  u32 n = 1;
  for (int d = 0; d < t->rank - 2; d++) {
    u32 warps = (u32)op_attr(op, AT_WARPS)->ints.v[d], all = next_pow2(t->shape[d]);
    n *= all > warps ? all / warps : 1;
  }
  return n;
}

/* Operands of an instruction are loaded AHEAD instructions early: long enough for shared memory to answer, short enough to
 * hold few fragments at a time. */
enum { AHEAD = 8 };

static void
feed_both(Gen *g, const Mma *row, const Walk *w, Feed *a, Feed *b, u32 i)
{
  if (i >= w->n)
    return;
  feed_load(g, a, row->words[0] * w->list[i].a, row->words[0]);
  feed_load(g, b, row->words[1] * w->list[i].b, row->words[1]);
}

/* ---- metadata of sparse products (layout_mma_meta, sparse.h) ---- */

/* Of an instruction: a word, and which lanes of a quad have it. A word is for K = 64. */
static void
meta_of(Gen *g, const Mma *row, const Walk *w, Step s, Val *out)
{
  u32 share = 64 / row->k, held = w->held > share ? w->held / share : 1, k = s.a % w->held;
  out[0] = w->metas[k / share + s.a / w->held * held];
  out[1] = gen_u32(g, k % share);
}

static void
walk(Gen *g, const Mma *row, const Walk *w, Feed *a, Feed *b, Val *c)
{
  for (u32 i = 0; i < AHEAD; i++)
    feed_both(g, row, w, a, b, i);
  for (u32 i = 0; i < w->n; i++) {
    Step s = w->list[i];
    Val meta[2];
    feed_both(g, row, w, a, b, i + AHEAD);
    if (w->meta)
      meta_of(g, row, w, s, meta);
    mma_call(g, row, a->words + row->words[0] * s.a, b->words + row->words[1] * s.b, c + row->words[2] * s.c, meta);
  }
}

/* The same with f32 operands in parts: the smallest products first. */
static void
walk_parts(Gen *g, const Walk *w, const DotSplit *split, const Feed *a, const Feed *b, Val *c)
{
  const Mma *row = mma_find(split->mma, DT_F32);
  DotParts pa = dot_parts(g, split, 0, a->words, a->nwords, w->held), pb = dot_parts(g, split, 1, b->words, b->nwords, w->held);
  u32 join = split->join, held = w->held > join ? w->held / join : 1;
  for (u32 i = 0; i < w->n; i++) {
    Step s = w->list[i];
    if (s.a % w->held % join)
      continue;
    u32 at = row->words[0] * (s.a / w->held * held + s.a % w->held / join);
    u32 bt = row->words[1] * (s.b / w->held * held + s.b % w->held / join);
    for (u32 p = 0; p < split->nproducts; p++)
      mma_call(g, row, pa.words[split->product[p][0]] + at, pb.words[split->product[p][1]] + bt, c + row->words[2] * s.c, NULL);
  }
}

/* Of a factor that is compressed an instruction takes half its K. */
static Tail
tail_of(const Value *const *factor, const Mma *row, u32 which)
{
  const Type *t[2] = {factor[0]->type, factor[1]->type};
  u32 depth = t[which]->shape[t[which]->rank - (which ? 2 : 1)];
  u32 k = row->sparse && !which ? row->k / SPARSE_KEPT : row->k;
  u32 bits = dtype_bits(t[which]->dt), held = next_pow2(depth) / k;
  Tail x = {.steps = (depth + k - 1) / k, .held = held ? held : 1, .rest = depth % k, .per = 32 / bits,
            .which = which, .words = row->words[which]};
  bool fewer = gen_nregs(t[which]) < gen_nregs(t[!which]) || (which && gen_nregs(t[0]) == gen_nregs(t[1]));
  if (dtype_is_int(t[which]->dt) && !fewer)
    x.rest = 0;
  return x;
}

/* dot and dot_sparse: a and b are the first operand and the last but one, acc the last. */
static void
dot_mma(Gen *g, const Op *op, const Mma *row)
{
  const Value *result = op_result(op), *factor[] = {op_operand(op, 0), op_operand(op, op->noperands - 2)};
  Feed a = feed_new(g, factor[0], tail_of(factor, row, 0)), b = feed_new(g, factor[1], tail_of(factor, row, 1));
  u32 nc;
  Val *c = pack_words(g, op_operand(op, op->noperands - 1), &nc);
  Walk w = {.steps = a.tail.steps, .held = a.tail.held, .batches = batches_held(op)};
  w.nm = a.nwords / row->words[0] / w.held / w.batches;
  w.nn = b.nwords / row->words[1] / w.held / w.batches;
  if (w.nm * w.nn * w.batches * row->words[2] != nc)
    ctx_panic(g->c, "dot: operand and result layouts disagree");
  walk_fill(g, row, result, &w);
  if (row->sparse) {
    w.meta = OPERAND(op, DOT_SPARSE, meta);
    w.metas = meta_words(g, w.meta);
  }
  const DotSplit *split = dot_split(op);
  if (split)
    walk_parts(g, &w, split, &a, &b, c);
  else
    walk(g, row, &w, &a, &b, c);
  unpack_words(g, result, c, nc);
}

/* ---- without tensor cores ---- */

/* Type in which products are summed. */
static DType
sum_type(DType acc)
{
  return dtype_is_float(acc) && acc != DT_F64 ? DT_F32 : acc;
}

static Val *
factors(Gen *g, const Op *op, u32 which, DType sum)
{
  const Value *v = op_operand(op, which);
  const Val *in = gen_regs(g, v);
  Dist *h = dist_get(g, v->type->layout);
  Val *out = NEW_ARRAY(g->arena, Val, h->regs);
  const DotSplit *split = dot_split(op);
  for (u32 r = 0; r < h->regs; r++) {
    if (h->rep[r] != r)
      continue;
    out[r] = cast_nearest(g, v->type->dt, sum, in[r]);
    if (split && split->nparts == 1)
      out[r] = gen_bitcast(g, split->cut ? dot_cut_tf32(g, out[r]) : dot_round_tf32(g, out[r]), g->f32);
  }
  return out;
}

static Val
multiply_add(Gen *g, DType d, Val a, Val b, Val c)
{
  if (dtype_is_float(d))
    return elem_fma(g, d, a, b, c);
  return LLVMBuildAdd(B, c, LLVMBuildMul(B, a, b, ""), "");
}

/* The register that holds what `at` is in the result, with coordinate k instead along dimension `dim`. */
static u32
register_at(Gen *g, const Dist *h, const u32 *at, int dim, u32 k)
{
  u32 reg = 0, coord[MAX_RANK];
  memcpy(coord, at, sizeof coord);
  coord[dim] = k;
  if (!dist_find(h, layout_flat(h->l, coord), &reg))
    ctx_panic(g->c, "dot: operand and result layouts disagree");
  return reg;
}

static void
dot_fma(Gen *g, const Op *op)
{
  const Value *result = op_result(op);
  DType acc = result->type->dt, sum = sum_type(acc);
  Val *a = factors(g, op, 0, sum), *b = factors(g, op, 1, sum), *out = gen_new(g, result);
  const Val *c = gen_regs(g, op_operand(op, 2));
  Dist *ha = dist_get(g, op_operand(op, 0)->type->layout), *hb = dist_get(g, op_operand(op, 1)->type->layout);
  Dist *h = dist_get(g, result->type->layout);
  int rank = result->type->rank;
  u32 depth = op_operand(op, 0)->type->shape[rank - 1];
  for (u32 r = 0; r < h->regs; r++) {
    u32 at[MAX_RANK];
    if (h->rep[r] != r)
      continue;
    layout_coords(h->l, h->flat[r], at);
    Val s = cast_nearest(g, acc, sum, c[r]);
    for (u32 k = 0; k < depth; k++)
      s = multiply_add(g, sum, a[register_at(g, ha, at, rank - 1, k)], b[register_at(g, hb, at, rank - 2, k)], s);
    out[r] = cast_nearest(g, sum, acc, s);
  }
  dist_share(g, result);
}

/* The row that choose_mma picked; NULL: none, or, behind an error, one that the target has not. */
static const Mma *
picked_row(Gen *g, const Op *op, bool *bad)
{
  const char *name = op_str(op, AT_MMA, NULL);
  const Mma *row = name ? mma_find(name, op_result(op)->type->dt) : NULL;
  *bad = row && !target_has(g->target, row->feature);
  if (!*bad)
    return row;
  gen_unsupported(g, op, arena_printf(g->arena, "the tensor-core instruction '%s'", name));
  gen_poison(g, op_result(op));
  return NULL;
}

void
lower_DOT(Gen *g, const Op *op)
{
  bool bad;
  const Mma *row = picked_row(g, op, &bad);
  if (row)
    dot_mma(g, op, row);
  else if (!bad)
    dot_fma(g, op);
}

void
lower_DOT_SPARSE(Gen *g, const Op *op)
{
  bool bad;
  const Mma *row = picked_row(g, op, &bad);
  if (row)
    dot_mma(g, op, row);
}
