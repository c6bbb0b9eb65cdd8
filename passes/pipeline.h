/* pipeline.h - what the files of software pipelining share. */
#ifndef TILEC_PASSES_PIPELINE_H
#define TILEC_PASSES_PIPELINE_H
#include "internal.h"

/* pipeline_regs.c: have `load`, an op of the loop's body, done one iteration early, its tile carried in registers; NULL, or
 * why not (nothing is changed then). */
const char *prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load);
#endif
