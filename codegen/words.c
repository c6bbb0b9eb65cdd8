/* words.c - elements as machine words: what loads, stores, phis and tensor cores move. Elements narrower than 32 bits share a word. */
#include "gen.h"

#define B g->b

/* ---- words ---- */
static Ty
int_type(Gen *g, u32 bits)
{
  return LLVMIntTypeInContext(g->lc, bits);
}

Words
words_for(Gen *g, DType d, bool ptr, u32 count)
{
  static const char *const suffixes[] = {"b8", "b16", "b32", "b64"};
  Words w = {.elem = gen_elem_type(g, d, ptr), .is_i1 = d == DT_I1 && !ptr};
  w.ebits = ptr ? 64 : dtype_bytes(d) * 8;
  u32 total = count * w.ebits, bits = w.ebits >= 32 ? w.ebits : total < 32 ? total : 32;
  w.n = total / bits;
  w.per = bits / w.ebits;
  w.suffix = suffixes[log2_u32(bits) - 3];
  w.type = w.ebits >= 32 && !ptr ? w.elem : int_type(g, bits);
  if (w.is_i1)
    w.elem = g->i8;
  return w;
}

static Val
bool_in(Gen *g, const Words *w, Val v)
{
  return w->is_i1 ? LLVMBuildICmp(B, LLVMIntNE, v, LLVMConstInt(g->i8, 0, 0), "") : v;
}

static Val
bool_out(Gen *g, const Words *w, Val v)
{
  return w->is_i1 ? LLVMBuildZExt(B, v, g->i8, "") : v;
}

void
words_unpack(Gen *g, const Words *w, const Val *words, Val *elems)
{
  for (u32 i = 0; i < w->n; i++) {
    if (w->per == 1) {
      elems[i] = bool_in(g, w, gen_bitcast(g, words[i], w->elem));
      continue;
    }
    Val v = LLVMBuildBitCast(B, words[i], LLVMVectorType(w->elem, w->per), "");
    for (u32 k = 0; k < w->per; k++)
      elems[i * w->per + k] = bool_in(g, w, LLVMBuildExtractElement(B, v, gen_u32(g, k), ""));
  }
}

void
words_pack(Gen *g, const Words *w, const Val *elems, Val *words)
{
  for (u32 i = 0; i < w->n; i++) {
    if (w->per == 1) {
      words[i] = gen_bitcast(g, bool_out(g, w, elems[i]), w->type);
      continue;
    }
    Val v = LLVMGetPoison(LLVMVectorType(w->elem, w->per));
    for (u32 k = 0; k < w->per; k++)
      v = LLVMBuildInsertElement(B, v, bool_out(g, w, elems[i * w->per + k]), gen_u32(g, k), "");
    words[i] = LLVMBuildBitCast(B, v, w->type, "");
  }
}

Val
words_join(Gen *g, const Val *pair)
{
  Val v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(pair[0]), 2));
  for (u32 i = 0; i < 2; i++)
    v = LLVMBuildInsertElement(B, v, pair[i], gen_u32(g, i), "");
  return v;
}

void
words_split(Gen *g, Val vector, Val *pair)
{
  for (u32 i = 0; i < 2; i++)
    pair[i] = LLVMBuildExtractElement(B, vector, gen_u32(g, i), "");
}

Val
words_vector(Val x, u32 *at)
{
  if (!LLVMIsAExtractElementInst(x) || !LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
    return NULL;
  *at = (u32)LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
  return LLVMGetOperand(x, 0);
}

static Ty
words_type(const Words *w)
{
  return w->n > 1 ? LLVMVectorType(w->type, w->n) : w->type;
}

void
words_load(Gen *g, const Words *w, Val p, u32 align, Val *words)
{
  Val v = LLVMBuildLoad2(B, words_type(w), p, "");
  LLVMSetAlignment(v, align);
  for (u32 i = 0; i < w->n; i++)
    words[i] = w->n > 1 ? LLVMBuildExtractElement(B, v, gen_u32(g, i), "") : v;
}

void
words_store(Gen *g, const Words *w, Val p, u32 align, const Val *words)
{
  Val v = w->n > 1 ? LLVMGetPoison(words_type(w)) : words[0];
  for (u32 i = 0; w->n > 1 && i < w->n; i++)
    v = LLVMBuildInsertElement(B, v, words[i], gen_u32(g, i), "");
  LLVMSetAlignment(LLVMBuildStore(B, v, p), align);
}
