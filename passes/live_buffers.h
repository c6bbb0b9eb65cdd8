/* live_buffers.h - where shared buffers lie, by their live ranges: alloc_shared writes it down, plan_conversions leaves them their room. */
#ifndef TILEC_LIVE_BUFFERS_H
#define TILEC_LIVE_BUFFERS_H
#include "internal.h"

/* Of a buffer, in positions of ops; team: whose block it is made in. */
typedef struct LiveRange { Op *op; u32 from, to, bytes, offset, align; Team team; } LiveRange;
typedef struct LiveBuffers { Ctx *c; VEC(LiveRange) ranges; u32 bytes, position; } LiveBuffers;   /* bytes: of all, where they lie */

/* All buffers of f; op->mark of each op becomes its position. */
LiveBuffers live_buffers(Ctx *c, Func *f);
/* Where the buffers end that are live while op runs, with those of other teams. */
u32 live_buffers_top(const LiveBuffers *b, const Op *op);
/* Bytes behind that for op's scratch: teams run at the same time, so each has its share of what no buffer takes, and what its own leave. */
u32 live_buffers_room(const LiveBuffers *b, const Op *op);
#endif
