/* remarks.h - passes say here what they did not do; nothing happens without --remarks. */
#ifndef TILEC_REMARKS_H
#define TILEC_REMARKS_H
#include "place.h"

void remark_convert(Ctx *c, const Op *convert);                            /* a planned conversion */
void remark_narrow(Ctx *c, const Func *f, const MemOp *m, u32 vec);        /* an access of vec elements at a time */
void remark_stays(Ctx *c, const Op *op, Op *loop);                         /* invariant in the loop, but not hoisted */
#endif
