/* loop_stages.h - a loop whose iterations overlap: what is in stage 0 of one is done beside what is in stage 1 of the one before. */
#ifndef TILEC_PASSES_LOOP_STAGES_H
#define TILEC_PASSES_LOOP_STAGES_H
#include "internal.h"

/* A schedule of the ops in the body of a `for`, but for its terminator. */
typedef struct LoopStages {
  Ctx *c;
  Func *f;
  Op *loop;
  u32 n;
  Op **order;                /* as they follow each other in the new body: of each stage, what it uses before it */
  u8 *stage;                 /* by mark of the op (from 0, as they stand in the body): 0 or 1 */
  bool *late;                /* by carried value: stage 1 makes it for the next iteration; filled by stages_check */
  VEC(Value *) crossing;     /* what stage 0 leaves for stage 1; filled by stages_check */
  Op *made;                  /* by stages_expand */
} LoopStages;

/* Marks the ops and gives the schedule in which all is in stage 0, in the order of the body. */
LoopStages stages_open(Ctx *c, Func *f, Op *loop);
/* To be called when `stage` is filled: which carried values are whose, and what crosses. NULL, or why the loop cannot be so parted. */
const char *stages_check(LoopStages *s);
/* In which stage a value of the body (an argument among them) is made; what comes from outside is stage 0. */
u32 stages_of(const LoopStages *s, const Value *v);
/* The overlapped loop (`made`), with stage 0 of the first iteration in front of it and stage 1 of the last behind, in an `if` that asks
 * whether there is an iteration at all. It stands in front of the loop, which is as it was until stages_commit puts the `if` in its place;
 * who does not want it removes it. */
Op *stages_expand(LoopStages *s);
void stages_commit(LoopStages *s, Op *expanded);
#endif
