/* lower_mma.c - dot: with tensor cores where choose_mma picked a row of mma.def, with fma otherwise.
 *
 * An operand's registers are the instruction's own, in PTX order, then its repetitions along K, then along M or N
 * (ir/layout_kinds.c says so); so the registers of one instruction are consecutive, and packing them into 32-bit words
 * is all there is to do. Steps along K are outermost: consecutive instructions then write different accumulators.
 *
 * Without tensor cores every thread holds all of K for its part of the result. Floats are multiplied and added in f32 (or
 * f64), integers in the accumulator's type; f32 inputs are rounded to tf32 here too unless the dot asks for ieee.
 */
#include "gen.h"

#define B g->b
enum { MAX_WORDS = 4 };

typedef struct MmaRow { const char *name; DType acc; u32 m, n, k, words[3]; const char *intrinsic; } MmaRow;
static const MmaRow rows[] = {
#define MMA(name, acc, m, n, k, a, b, c, intrinsic) {name, DT_##acc, m, n, k, {a, b, c}, intrinsic},
#include "mma.def"
#undef MMA
};

static const MmaRow *
find_row(const char *name, DType acc)
{
  for (u32 i = 0; i < COUNT(rows); i++)
    if (!strcmp(rows[i].name, name) && rows[i].acc == acc)
      return &rows[i];
  return NULL;
}

static bool
wants_tf32(const Op *op)
{
  return op_operand(op, 0)->type->dt == DT_F32 && strcmp(op_str(op, AT_PREC, "tf32"), "ieee");
}

/* Bits of x rounded to tf32. */
static Val
round_tf32(Gen *g, Val x)
{
  return gen_call(g, "llvm.nvvm.f2tf32.rna", 0, NULL, 1, &x);
}

/* All registers of v as 32-bit words. */
static Val *
pack_words(Gen *g, const Value *v, bool tf32, u32 *nwords)
{
  u32 per = 32 / dtype_bits(v->type->dt), n = gen_nregs(v->type);
  const Val *regs = gen_regs(g, v);
  Words w = words_for(g, v->type->dt, false, per);
  Val *out = NEW_ARRAY(g->arena, Val, n / per);
  for (u32 i = 0; i < n / per; i++)
    if (tf32)
      out[i] = round_tf32(g, regs[i]);
    else
      words_pack(g, &w, regs + i * per, &out[i]);
  *nwords = n / per;
  return out;
}

/* One instruction: C words are replaced by the result's. */
static void
mma_call(Gen *g, const MmaRow *row, const Val *a, const Val *b, Val *c)
{
  unsigned id = LLVMLookupIntrinsicID(row->intrinsic, strlen(row->intrinsic));
  if (!id)
    ctx_panic(g->c, "LLVM has no intrinsic %s", row->intrinsic);
  Ty params[3 * MAX_WORDS], type = LLVMIntrinsicGetType(g->lc, id, NULL, 0);
  Val args[3 * MAX_WORDS];
  const Val *words[3] = {a, b, c};
  u32 n = 0;
  LLVMGetParamTypes(type, params);
  for (u32 which = 0; which < 3; which++)
    for (u32 i = 0; i < row->words[which]; i++, n++)
      args[n] = gen_bitcast(g, words[which][i], params[n]);
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
  gen_share(g, v);
}

/* ---- fragments loaded on the way ---- */

/* Operand words, some of which come from shared memory when the walk over instructions gets near them. */
typedef struct Feed {
  const Fragments *f;              /* NULL: all words are there */
  Val *words;
  bool *loaded;                    /* by group */
  u32 *group_of;                   /* by word */
} Feed;

static Feed
feed_new(Gen *g, const Value *v, bool tf32, u32 *nwords)
{
  Feed x = {.f = g->fragments[v->id]};
  if (!x.f) {
    x.words = pack_words(g, v, tf32, nwords);
    return x;
  }
  *nwords = gen_nregs(v->type) * dtype_bits(v->type->dt) / 32;
  x.words = NEW_ARRAY(g->arena, Val, *nwords);
  x.group_of = NEW_ARRAY(g->arena, u32, *nwords);
  x.loaded = NEW_ARRAY(g->arena, bool, fragments_count(x.f));
  for (u32 i = 0; i < fragments_count(x.f); i++) {
    u32 words[4], n = fragments_words(x.f, i, words);
    for (u32 q = 0; q < n; q++)
      x.group_of[words[q]] = i;
  }
  return x;
}

static void
feed_load(Gen *g, Feed *x, u32 first, u32 n)
{
  for (u32 w = first; x->f && w < first + n; w++)
    if (!x->loaded[x->group_of[w]]) {
      x->loaded[x->group_of[w]] = true;
      fragments_load(g, x->f, x->group_of[w], x->words);
    }
}

/* The order of instructions: along K outermost, so that consecutive ones write different accumulators; then row by row, every
 * other row backwards, so that consecutive ones always share an operand, which the hardware then need not read again. */
typedef struct Walk {
  u32 steps, nm, nn;
  u32 held;                        /* steps that the operands' registers are for: the next power of two; the rest is padding */
} Walk;

static void
walk_at(const Walk *w, u32 i, u32 *k, u32 *m, u32 *n)
{
  *n = i % w->nn;
  *m = i / w->nn % w->nm;
  *k = i / w->nn / w->nm;
  if (*m & 1)
    *n = w->nn - 1 - *n;
}

/* Operands of instruction i are loaded AHEAD instructions early: long enough for shared memory to answer, short enough to
 * hold few fragments at a time. */
enum { AHEAD = 8 };

static void
feed_both(Gen *g, const MmaRow *row, const Walk *w, Feed *a, Feed *b, u32 i)
{
  u32 k, m, n;
  if (i >= w->steps * w->nm * w->nn)
    return;
  walk_at(w, i, &k, &m, &n);
  feed_load(g, a, row->words[0] * (k + w->held * m), row->words[0]);
  feed_load(g, b, row->words[1] * (k + w->held * n), row->words[1]);
}

static void
dot_mma(Gen *g, const Op *op, const MmaRow *row)
{
  const Value *result = op_result(op);
  bool tf32 = wants_tf32(op);
  u32 na, nb, nc;
  Feed a = feed_new(g, op_operand(op, 0), tf32, &na), b = feed_new(g, op_operand(op, 1), tf32, &nb);
  Val *c = pack_words(g, op_operand(op, 2), false, &nc);
  u32 wa = row->words[0], wb = row->words[1], wc = row->words[2];
  u32 depth = op_operand(op, 0)->type->shape[1];
  Walk w = {.steps = depth / row->k, .held = next_pow2(depth) / row->k};
  if (w.steps) {
    w.nm = na / wa / w.held;
    w.nn = nb / wb / w.held;
  }
  if (!w.steps || w.nm * w.nn * wc != nc)
    ctx_panic(g->c, "dot: operand and result layouts disagree");
  for (u32 i = 0; i < AHEAD; i++)
    feed_both(g, row, &w, &a, &b, i);
  for (u32 i = 0; i < w.steps * w.nm * w.nn; i++) {
    u32 k, m, n;
    feed_both(g, row, &w, &a, &b, i + AHEAD);
    walk_at(&w, i, &k, &m, &n);
    mma_call(g, row, a.words + wa * (k + w.held * m), b.words + wb * (k + w.held * n), c + wc * (n + w.nn * m));
  }
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
  Held *h = held_get(g, v->type->layout);
  Val *out = NEW_ARRAY(g->arena, Val, h->regs);
  for (u32 r = 0; r < h->regs; r++) {
    if (h->rep[r] != r)
      continue;
    out[r] = elem_convert(g, v->type->dt, sum, in[r]);
    if (wants_tf32(op))
      out[r] = LLVMBuildBitCast(B, round_tf32(g, out[r]), g->f32, "");
  }
  return out;
}

static Val
multiply_add(Gen *g, DType d, Val a, Val b, Val c)
{
  if (dtype_is_float(d))
    return gen_fma(g, d, a, b, c);
  return LLVMBuildAdd(B, c, LLVMBuildMul(B, a, b, ""), "");
}

static u32
register_at(Gen *g, const Held *h, u32 row, u32 col)
{
  u32 reg = 0;
  if (!held_find(h, row << h->shift[0] | col, &reg))
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
  Held *ha = held_get(g, op_operand(op, 0)->type->layout), *hb = held_get(g, op_operand(op, 1)->type->layout);
  Held *h = held_get(g, result->type->layout);
  u32 depth = op_operand(op, 0)->type->shape[1];
  for (u32 r = 0; r < h->regs; r++) {
    if (h->rep[r] != r)
      continue;
    u32 row = held_coord(h, h->flat[r], 0), col = held_coord(h, h->flat[r], 1);
    Val s = elem_convert(g, acc, sum, c[r]);
    for (u32 k = 0; k < depth; k++)
      s = multiply_add(g, sum, a[register_at(g, ha, row, k)], b[register_at(g, hb, k, col)], s);
    out[r] = elem_convert(g, sum, acc, s);
  }
  gen_share(g, result);
}

void
lower_DOT(Gen *g, const Op *op)
{
  const char *name = op_str(op, AT_MMA, NULL);
  const MmaRow *row = name ? find_row(name, op_result(op)->type->dt) : NULL;
  if (!name) {
    dot_fma(g, op);
  } else if (row) {
    dot_mma(g, op, row);
  } else {
    gen_unsupported(g, op, arena_printf(g->arena, "the tensor-core instruction '%s' with this accumulator", name));
    gen_poison(g, op_result(op));
  }
}
