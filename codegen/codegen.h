/* codegen.h - scheduled tile IR to LLVM NVPTX IR to PTX. The only folder that includes LLVM. */
#ifndef TILEC_CODEGEN_H
#define TILEC_CODEGEN_H
#include "ir.h"
#include "manifest.h"

typedef struct CodegenOptions {
  int opt_level;         /* 0: no LLVM passes, 1: the hand-picked pipeline */
  bool line_info;        /* .file and .loc */
  Buf *timing;           /* lines "name<tab>milliseconds" of LLVM's stages are added here; NULL: none */
  bool want_llvm;        /* out gets LLVM IR text (after LLVM passes) instead of PTX */
} CodegenOptions;

/* m must be in PHASE_SCHED. PTX starts with one //@tilec manifest comment per kernel. manifests has room for
 * m->funcs.len entries or is NULL. False after reporting errors (a feature the target lacks, LLVM's refusal). */
bool codegen_module(Ctx *c, Module *m, const CodegenOptions *o, Buf *out, TilertManifest *manifests);
/* The same from the text that codegen_module gave as LLVM IR: a source at offset `base`, of which one kernel (NULL: all) is wanted. LLVM's
 * passes have been run. Errors in the text are reported at their line, as is a text that was made for another target. */
bool codegen_text(Ctx *c, u32 base, const char *kernel, const CodegenOptions *o, Buf *out);
const char *codegen_llvm_version(void);
#endif
