/* dot_parts.c - f32 factors as tensor cores take them: rounded, or as sums of rounded parts.
 *
 * Tensor cores multiply tf32 (11 bits) or bf16 (8 bits) exactly and add in f32. A factor is taken apart into what the format
 * keeps of it, what the format keeps of the rest, and so on; the products of parts that matter are summed, smallest first:
 *
 *   tf32     h                      h h                              relative error of a product up to about 2^-10
 *   tf32_cut h, not rounded         h h                              2^-9
 *   tf32x3   h + l                  l h + h l + h h                  2^-20
 *   bf16x3   h + l                  l h + h l + h h                  2^-14
 *   bf16x6   h + m + l              l h + h l + m m + m h + h m + h h    2^-22
 *
 * Infinities and nans have no rest, and must not meet the rest of the other factor, which may be 0: they take part in h h
 * alone. So h comes twice, once with 0 in their place (`finite`).
 *
 * Tensor cores look at no more of a word than tf32 has: what is cut goes there as it is.
 *
 * The order of K within an instruction is free as long as both operands agree. So bf16 parts keep the layout of tf32: the two
 * elements of a row that a thread holds for one m16n8k8 instruction become one word, and two instructions' worth one
 * m16n8k16.
 */
#include "gen.h"

#define B g->b

enum { WHOLE, FINITE, REST, REST2 };

static const DotSplit splits[] = {
  {"tf32_cut", "m16n8k8.tf32", 1, 1, 1, {{WHOLE, WHOLE}}, .cut = true},
  {"tf32", "m16n8k8.tf32", 1, 1, 1, {{WHOLE, WHOLE}}},
  {"tf32x3", "m16n8k8.tf32", 1, 3, 3, {{REST, FINITE}, {FINITE, REST}, {WHOLE, WHOLE}}},
  {"bf16x3", "m16n8k16.bf16", 2, 3, 3, {{REST, FINITE}, {FINITE, REST}, {WHOLE, WHOLE}}},
  {"bf16x6", "m16n8k16.bf16", 2, 4, 6,
   {{REST2, FINITE}, {FINITE, REST2}, {REST, REST}, {REST, FINITE}, {FINITE, REST}, {WHOLE, WHOLE}}},
};

const DotSplit *
dot_split(const Op *op)
{
  const char *prec = op_str(op, AT_PREC, "tf32");
  if (op_operand(op, 0)->type->dt != DT_F32)
    return NULL;
  for (u32 i = 0; i < COUNT(splits); i++)
    if (!strcmp(splits[i].prec, prec))
      return &splits[i];
  return NULL;
}

Val
dot_round_tf32(Gen *g, Val x)
{
  return gen_call(g, target_has(g->target, F_CVT_TF32) ? "llvm.nvvm.f2tf32.rn" : "llvm.nvvm.f2tf32.rna", 0, NULL, 1, &x);
}

Val
dot_cut_tf32(Gen *g, Val x)
{
  return LLVMBuildAnd(B, gen_bitcast(g, x, g->i32), gen_u32(g, 0xffffe000), "");
}

/* ---- one and two numbers as a word of the format, and back ---- */

static Val
word_of(Gen *g, const DotSplit *s, const Val *x)
{
  if (s->cut)
    return gen_bitcast(g, x[0], g->i32);
  if (s->join == 1)
    return dot_round_tf32(g, x[0]);
  Val high_first[2] = {x[1], x[0]};
  return gen_bitcast(g, gen_call(g, "llvm.nvvm.ff2bf16x2.rn", 0, NULL, 2, high_first), g->i32);
}

static void
numbers_of(Gen *g, const DotSplit *s, Val word, Val *x)
{
  if (s->join == 1) {
    x[0] = gen_bitcast(g, word, g->f32);
    return;
  }
  x[0] = gen_bitcast(g, LLVMBuildShl(B, word, gen_u32(g, 16), ""), g->f32);
  x[1] = gen_bitcast(g, LLVMBuildAnd(B, word, gen_u32(g, 0xffff0000), ""), g->f32);
}

/* x, or 0 where the format has only an infinity or a nan for it. */
static Val
finite_part(Gen *g, const DotSplit *s, Val x)
{
  Val limit = gen_bitcast(g, gen_u32(g, s->join == 1 ? 0x7f7ff000 : 0x7f7f8000), g->f32);
  Val size = gen_call(g, "llvm.fabs", 1, &g->f32, 1, &x);
  return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, size, limit, ""), x, LLVMConstReal(g->f32, 0), "");
}

/* Parts of the numbers x of one word, by part. */
static void
split_word(Gen *g, const DotSplit *s, const Val *x, Val *out)
{
  Val rest[2], part[2];
  out[WHOLE] = word_of(g, s, x);
  if (s->nparts == 1)
    return;
  for (u32 i = 0; i < s->join; i++)
    rest[i] = finite_part(g, s, x[i]);
  for (u32 p = FINITE; p < s->nparts; p++) {
    out[p] = word_of(g, s, rest);
    if (p + 1 == s->nparts)
      break;
    numbers_of(g, s, out[p], part);
    for (u32 i = 0; i < s->join; i++)
      rest[i] = LLVMBuildFSub(B, rest[i], part[i], "");
  }
}

/* Where the numbers of word i of `which` are among the words of m16n8k8.tf32: join of them, `apart` from each other. Words of
 * m16n8k16 are those of two steps along K, if there are two; -1: of none. */
static i32
source_word(const DotSplit *s, u32 which, u32 i, u32 held, u32 *apart)
{
  u32 words = which ? 2 : 4;
  *apart = words / 2;
  if (s->join == 1)
    return (i32)i;
  u32 at = i % words, step = at / *apart;
  if (held == 1 && step)
    return -1;
  return (i32)(held == 1 ? i : (i / words * 2 + step) * words + at % *apart);
}

DotParts
dot_parts(Gen *g, const DotSplit *s, u32 which, const Val *words, u32 nwords, u32 held)
{
  u32 n = s->join == 1 || held == 1 ? nwords : nwords / 2;
  DotParts out = {0};
  for (u32 p = 0; p < s->nparts; p++)
    out.words[p] = NEW_ARRAY(g->arena, Val, n);
  for (u32 i = 0; i < n; i++) {
    u32 apart;
    i32 from = source_word(s, which, i, held, &apart);
    Val x[2] = {LLVMConstReal(g->f32, 0), LLVMConstReal(g->f32, 0)}, parts[4];
    for (u32 k = 0; from >= 0 && k < s->join; k++)
      x[k] = gen_bitcast(g, words[(u32)from + k * apart], g->f32);
    split_word(g, s, x, parts);
    for (u32 p = 0; p < s->nparts; p++)
      out.words[p][i] = parts[p];
  }
  return out;
}
