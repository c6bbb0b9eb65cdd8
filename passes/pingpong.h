/* pingpong.h - two teams that multiply, by turns, tiles of their own. Part of pipeline_loops. */
#ifndef TILEC_PASSES_PINGPONG_H
#define TILEC_PASSES_PINGPONG_H
#include "ring.h"

/* Is the kernel to have two such teams, as far as its head says? And why not, if it is not and asks for it. */
bool pingpong_wanted(const Func *f);
const char *pingpong_head_obstacle(const Func *f);
/* NULL if they can take turns at these loops, in program order, else why not. defer: products run on into the next iteration. */
const char *pingpong_obstacle(u32 n, const Ring *rings, bool defer);
/* The region of one team that multiplies, whose loops carry their rings already, becomes the first's; the empty one `second` becomes the
 * other's. The teams' op is `teams`. */
void pingpong_part(Ctx *c, Op *teams, Block *second, u32 n, Ring *const *rings);
#endif
