/* left_out.c - in the place of LLVM's passes that left_out.txt lists. Nothing calls it: LLVM runs what the pipeline in codegen/llvm.c names. */
void tilec_pass_left_out(void);

void
tilec_pass_left_out(void)
{
  __builtin_trap();
}
