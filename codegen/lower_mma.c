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

static void
dot_mma(Gen *g, const Op *op, const MmaRow *row)
{
  const Value *result = op_result(op);
  bool tf32 = wants_tf32(op);
  u32 na, nb, nc;
  Val *a = pack_words(g, op_operand(op, 0), tf32, &na), *b = pack_words(g, op_operand(op, 1), tf32, &nb);
  Val *c = pack_words(g, op_operand(op, 2), false, &nc);
  u32 wa = row->words[0], wb = row->words[1], wc = row->words[2];
  u32 steps = next_pow2(op_operand(op, 0)->type->shape[1]) / row->k, nm = na / wa / steps, nn = nb / wb / steps;
  if (!steps || nm * nn * wc != nc)
    ctx_panic(g->c, "dot: operand and result layouts disagree");
  for (u32 k = 0; k < steps; k++)
    for (u32 m = 0; m < nm; m++)
      for (u32 n = 0; n < nn; n++)
        mma_call(g, row, a + wa * (k + steps * m), b + wb * (k + steps * n), c + wc * (n + nn * m));
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
