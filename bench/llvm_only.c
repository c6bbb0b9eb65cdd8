/* llvm_only.c - the floor for a compile: one process that reads LLVM IR text and writes PTX, with nothing of tilec in it.
 * usage: llvm_only FILE.ll CPU PTX_FEATURE > out.ptx   (e.g. vadd.ll sm_90a +ptx84)
 */
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>

static void
die(const char *what, const char *message)
{
  fprintf(stderr, "llvm_only: %s: %s\n", what, message ? message : "failed");
  exit(1);
}

int
main(int argc, char **argv)
{
  LLVMContextRef c = LLVMContextCreate();
  LLVMMemoryBufferRef in, out;
  LLVMModuleRef m;
  LLVMTargetRef t;
  LLVMTargetMachineRef tm;
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  char *message = NULL;
  if (argc != 4) die("usage", "llvm_only FILE.ll CPU FEATURES");
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  if (LLVMCreateMemoryBufferWithContentsOfFile(argv[1], &in, &message)) die(argv[1], message);
  if (LLVMParseIRInContext(c, in, &m, &message)) die(argv[1], message);
  if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &t, &message)) die("target", message);
  tm = LLVMCreateTargetMachine(t, "nvptx64-nvidia-cuda", argv[2], argv[3], LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
  if (LLVMRunPasses(m, "default<O3>", tm, o)) die("passes", NULL);
  if (LLVMTargetMachineEmitToMemoryBuffer(tm, m, LLVMAssemblyFile, &message, &out)) die("codegen", message);
  fwrite(LLVMGetBufferStart(out), 1, LLVMGetBufferSize(out), stdout);
  return 0;
}
