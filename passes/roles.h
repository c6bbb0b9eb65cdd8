/* roles.h - a kernel whose loop copies boxes ahead becomes two teams: one that copies, and one that does everything else. */
#ifndef TILEC_PASSES_ROLES_H
#define TILEC_PASSES_ROLES_H
#include "ring.h"

/* Warps of the team that copies. */
enum { COPYING_WARPS = 4 };

/* NULL if these loops, of whose loads of tiles all are boxes, may have their copies made by another team; else why not (in scratch).
 * rings: one for each loop, in program order. defer: products run on into the next iteration. */
const char *roles_obstacle(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer);
/* What of an op stands against it in any kernel; NULL: nothing. */
const char *roles_op_obstacle(const Op *op);
/* Parts the kernel: a team fills the rings, the other empties them by products. */
void roles_part(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer);
#endif
