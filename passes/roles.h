/* roles.h - a kernel whose loop copies boxes ahead becomes two teams: one that copies, and one that does everything else. */
#ifndef TILEC_PASSES_ROLES_H
#define TILEC_PASSES_ROLES_H
#include "internal.h"

/* Warps of the team that copies. */
enum { COPYING_WARPS = 4 };

/* NULL if the loop, of whose loads of tiles all are boxes, may have its copies made by another team; else why not (in scratch). */
const char *roles_obstacle(Ctx *c, Func *f, const Op *loop);
/* Parts the kernel of f: the first region of the warp_specialize is what the kernel was, the second a copy of it that has no effects, for
 * the caller to add copies to. map: from the values of the first to those of the second. */
Op *roles_split(Ctx *c, Func *f, Value ***map);
#endif
