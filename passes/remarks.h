/* remarks.h - passes say here what they did not do, or did to atomics; nothing happens without --remarks. */
#ifndef TILEC_REMARKS_H
#define TILEC_REMARKS_H
#include "place.h"

void remark_convert(Ctx *c, const Op *convert);                            /* a planned conversion */
void remark_narrow(Ctx *c, const Func *f, const MemOp *m, u32 vec);        /* an access of vec elements at a time */
void remark_stays(Ctx *c, const Op *op, Op *loop);                         /* invariant in the loop, but not hoisted */
void remark_aggregated(Ctx *c, Span at, u32 run);                          /* `run` elements of an atomic became one */
void remark_collides(Ctx *c, Span at, u32 run, const char *why);           /* they have one address, and stay apart */
void remark_private(Ctx *c, Span at, u64 bins);                            /* an atomic's sums are made in shared memory */
void remark_not_private(Ctx *c, Span at, u64 bins, const char *why);
#endif
