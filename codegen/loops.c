/* loops.c - what LLVM and ptxas are told of loops.
 *
 * ptxas unrolls loops that count by a constant, four turns at a time, as long as more than three steps are left; three times the step is
 * computed without asking whether the type holds it (CUDA 13.0: a loop of three turns by 2^31 - 1 goes four times). Numbers wrap in PTX as
 * they do in our language, so such loops are kept from it, by the pragma that LLVM writes for llvm.loop.unroll.disable: those that
 * count, in whatever way, by a step of which 128 are too many for the type. They are short.
 */
#include "gen.h"

void
loop_add(Gen *g, Val branch, const char *name, Val value)
{
  unsigned kind = LLVMGetMDKindIDInContext(g->lc, "llvm.loop", 9);
  Val old = LLVMGetMetadata(branch, kind);
  u32 n = old ? LLVMGetMDNodeNumOperands(old) : 1;
  Val *known = NEW_ARRAY(g->arena, Val, n);
  LLVMMetadataRef *parts = NEW_ARRAY(g->arena, LLVMMetadataRef, n + 1);
  if (old)
    LLVMGetMDNodeOperands(old, known);
  for (u32 i = 1; i < n; i++)
    parts[i] = LLVMValueAsMetadata(known[i]);
  LLVMMetadataRef wish[2] = {LLVMMDStringInContext2(g->lc, name, strlen(name)), value ? LLVMValueAsMetadata(value) : NULL};
  parts[n] = LLVMMDNodeInContext2(g->lc, wish, value ? 2 : 1);
  /* A loop's metadata names itself first. */
  LLVMMetadataRef self = parts[0] = LLVMTemporaryMDNode(g->lc, NULL, 0), all = LLVMMDNodeInContext2(g->lc, parts, n + 1);
  LLVMMetadataReplaceAllUsesWith(self, all);
  LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(g->lc, all));
}

/* Is v what a wide step makes of the phi? */
static bool
steps_wide(Val v, Val phi)
{
  LLVMOpcode op = LLVMIsABinaryOperator(v) ? LLVMGetInstructionOpcode(v) : 0;
  if ((op != LLVMAdd && op != LLVMSub) || LLVMGetOperand(v, 0) != phi || !LLVMIsAConstantInt(LLVMGetOperand(v, 1)))
    return false;
  unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(v));
  i64 step = bits <= 64 ? LLVMConstIntGetSExtValue(LLVMGetOperand(v, 1)) : 0, wide = (i64)1 << (bits > 8 ? bits - 8 : 0);
  return step >= wide || step <= -wide;
}

void
loop_spare_wide_steps(Gen *g)
{
  for (Val f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (Val phi = LLVMGetFirstInstruction(b); phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        for (u32 k = 0; k < LLVMCountIncoming(phi); k++)
          if (steps_wide(LLVMGetIncomingValue(phi, k), phi))
            loop_add(g, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, k)), "llvm.loop.unroll.disable", NULL);
}
