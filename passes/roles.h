/* roles.h - a kernel whose loop copies boxes ahead becomes two teams: one that copies, and one that does everything else. */
#ifndef TILEC_PASSES_ROLES_H
#define TILEC_PASSES_ROLES_H
#include "company.h"
#include "ring.h"

/* Warps of the team that copies. */
enum { COPYING_WARPS = 4 };
/* Bytes of shared memory for mbarriers and small buffers, where operands are kept beside rings. */
enum { SMALL_BUFFERS = 2048 };

/* How many teams multiply where another copies: one of two warpgroups, or two of one (pingpong.h). 0: there are no warps for either. */
u32 roles_multiply(const Func *f);
/* NULL if these loops, of whose loads of tiles all are boxes, may have their copies made by another team; else why not (in scratch).
 * rings: one for each loop, in program order. defer: products run on into the next iteration. */
const char *roles_obstacle(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer);
/* What boxes take at least beside rings that teams share. */
u64 roles_bytes_beside(Ctx *c, Func *f);
/* Boxes that are added to the kernel's tiles and stored, if a team of its own can bring and store them, and the buffers that they have
 * beside rings of so many bytes. */
Company roles_company(Ctx *c, Func *f, u64 rings);
/* What of an op stands against it in any kernel; NULL: nothing. */
const char *roles_op_obstacle(const Op *op);
/* May this load of a loop with stages stay with those who multiply, an iteration ahead in registers? A scalar, a number for each row of
 * sums: scales, as a rule. Before layouts are known, how much a thread will hold is guessed from what becomes of it. */
bool roles_leaves_load(const Op *load);
/* Parts the kernel: a team fills the rings, the other empties them by products, or two do by turns (pingpong.h). Tiles with company leave
 * by a team of its own. */
void roles_part(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer, const Company *company);
/* kept_boxes.c: of these loads of boxes, outside of the rings' loops, whose coordinates the team that copies knows, it makes those that are
 * kept for products. map: from the values of the team that multiplies to those of the other. */
void roles_keep_boxes(Ctx *c, Func *f, const OpVec *loads, Value *const *map);
#endif
