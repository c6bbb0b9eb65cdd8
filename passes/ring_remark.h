/* ring_remark.h - what is said of a loop whose copies run ahead. Part of pipeline_loops. */
#ifndef TILEC_PASSES_RING_REMARK_H
#define TILEC_PASSES_RING_REMARK_H
#include "ring.h"

/* Of a loop that is still as it was. bound: cycles that an iteration takes of each part of a multiprocessor, in scratch; "": not known. */
typedef struct RingNote { u32 slots; u64 bytes; const char *bound; } RingNote;
RingNote ring_note(const Ring *r);
/* R_RING, behind the change. */
void ring_remark(Ctx *c, const Func *f, const RingNote *n, Span at, u32 ahead);
#endif
