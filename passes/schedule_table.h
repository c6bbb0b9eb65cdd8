/* schedule_table.h - what a dump shows of a pipelined loop. */
#ifndef TILEC_PASSES_SCHEDULE_TABLE_H
#define TILEC_PASSES_SCHEDULE_TABLE_H
#include "loop_stages.h"

typedef struct ScheduleTable {
  Ctx *c;
  Buf *out;
  const Op *loop;
  const Block *body;                 /* as it was */
  u32 stages, nloads;
  Op *const *load;                   /* that are copied */
  const Type *const *buffers;        /* of each load */
  const bool *early;                 /* by value id: in stage 0 */
  const Op *behind;                  /* op of the last stage that stage 0 comes behind; NULL: behind the barrier */
} ScheduleTable;
/* Stage and order of each op of the loop, then the buffers, as comment lines. */
void schedule_table(const ScheduleTable *t);
/* The same of a loop whose iterations overlap. */
void schedule_stages(Buf *out, const LoopStages *s);
#endif
