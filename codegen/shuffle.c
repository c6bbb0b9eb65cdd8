/* shuffle.c - values of any type from lane to lane: narrow ones in the low bits of a word, 64-bit ones as two words. */
#include "gen.h"

#define B g->b
typedef struct Shuffle { const char *name; Val lane; } Shuffle;

static Val
word(Gen *g, const Shuffle *s, Val v)
{
  Val args[4] = {gen_u32(g, ~0u), v, s->lane, gen_u32(g, LANES - 1)};
  return gen_call_convergent(g, s->name, 0, NULL, 4, args);
}

static Val
two_words(Gen *g, const Shuffle *s, Val v)
{
  Val pair = LLVMBuildBitCast(B, v, LLVMVectorType(g->i32, 2), "");
  for (u32 i = 0; i < 2; i++) {
    Val half = word(g, s, LLVMBuildExtractElement(B, pair, gen_u32(g, i), ""));
    pair = LLVMBuildInsertElement(B, pair, half, gen_u32(g, i), "");
  }
  return LLVMBuildBitCast(B, pair, g->i64, "");
}

static Val
shuffle(Gen *g, const Shuffle *s, Val v)
{
  Ty t = LLVMTypeOf(v);
  bool is_ptr = LLVMGetTypeKind(t) == LLVMPointerTypeKind;
  u32 bits = is_ptr ? 64 : (u32)LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(g->mod), t);
  Ty as_int = LLVMIntTypeInContext(g->lc, bits);
  Val x = gen_bitcast(g, v, as_int);
  if (bits == 64)
    x = two_words(g, s, x);
  else if (bits == 32)
    x = word(g, s, x);
  else
    x = LLVMBuildTrunc(B, word(g, s, LLVMBuildZExt(B, x, g->i32, "")), as_int, "");
  return gen_bitcast(g, x, t);
}

Val
shuffle_xor(Gen *g, Val v, u32 lane_xor)
{
  return shuffle(g, &(Shuffle){"llvm.nvvm.shfl.sync.bfly.i32", gen_u32(g, lane_xor)}, v);
}

Val
shuffle_from(Gen *g, Val v, Val lane)
{
  return shuffle(g, &(Shuffle){"llvm.nvvm.shfl.sync.idx.i32", lane}, v);
}
