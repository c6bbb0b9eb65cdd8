/* pipeline.h - what the files of software pipelining share. */
#ifndef TILEC_PASSES_PIPELINE_H
#define TILEC_PASSES_PIPELINE_H
#include "internal.h"

/* pipeline_regs.c: have `load`, an op of the loop's body, done one iteration early, its tile carried in registers; NULL, or
 * why not (nothing is changed then). */
const char *prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load);

/* pipeline_table.c */
typedef struct PipelineTable {
  Ctx *c;
  Buf *out;
  const Op *loop;
  const Block *body;                 /* as it was */
  u32 stages, nloads;
  Op *const *load;                   /* that are copied */
  const Type *const *buffers;        /* of each load */
  const bool *early;                 /* by value id: in stage 0 */
  const Op *behind;                  /* op of the last stage that stage 0 comes behind; NULL: behind the barrier */
} PipelineTable;
void pipeline_table(const PipelineTable *t);
#endif
