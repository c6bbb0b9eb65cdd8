/* meta.c - metadata of sparse products (sparse.h) as the words that instructions take (layout_mma_meta). */
#include "gen.h"
#include "sparse.h"

#define B g->b

/* Its words: whatever lies beyond the extents becomes places 0 and 1 of each group, and so do groups of zero bits: those alone have no bit
 * in the upper half. */
Val *
meta_words(Gen *g, const Value *meta)
{
  const Type *t = meta->type;
  Dist *h = dist_get(g, t->layout);
  const Val *regs = gen_regs(g, meta);
  u32 first = SPARSE_FIRST_TWO;
  Words words = words_for(g, t->dt, false, 2);
  Val *out = NEW_ARRAY(g->arena, Val, h->regs / 2);
  for (u32 i = 0; i < h->regs / 2; i++) {
    Val half[2], all;
    for (u32 k = 0; k < 2; k++) {
      Val inside = dist_inside(g, h, t, 2 * i + k);
      half[k] = regs[2 * i + k];
      if (inside)
        half[k] = LLVMBuildSelect(B, inside, half[k], LLVMConstInt(g->i16, first, false), "");
    }
    words_pack(g, &words, half, &all);
    all = LLVMBuildFreeze(B, gen_bitcast(g, all, g->i32), "");
    Val either = LLVMBuildOr(B, all, LLVMBuildLShr(B, all, gen_u32(g, 1), ""), "");
    Val zeros = LLVMBuildAnd(B, LLVMBuildNot(B, either, ""), gen_u32(g, first << 16 | first), "");
    out[i] = LLVMBuildOr(B, all, zeros, "");
  }
  return out;
}
