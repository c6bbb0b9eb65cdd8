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
/* Does b's loop go on where a's ends, so that stage 0 of its first iteration may be done beside stage 1 of a's last? It takes all that a's
 * gives, nothing between them is in the way, and stage 1 is the same in both. */
bool stages_go_on(const LoopStages *a, const LoopStages *b);
/* The overlapped loops (`made`), n of which one goes on where the one before ends, with stage 0 of the first iteration in front of them and
 * stage 1 of the last behind, in an `if` that asks whether there is an iteration at all. It stands in front of the loops, which are as they
 * were until stages_commit puts the `if` in their place; who does not want it removes it. */
Op *stages_expand(u32 n, LoopStages *const *s);
void stages_commit(u32 n, LoopStages *const *s, Op *expanded);
#endif
