/* access.h - how a tile of a shared buffer is moved between it and registers: the one description that passes, the verifier and
 * codegen read. */
#ifndef TILEC_ACCESS_H
#define TILEC_ACCESS_H
#include "ir.h"

/* The tile's layout over the extents of the whole buffer, of which the view may be a slice. */
const Layout *access_layout(Ctx *c, const Type *tile, const Type *buffer);
/* The cheapest accesses; matrices: the target has ldmatrix, for a store stmatrix. */
SharedAccess access_plan(Ctx *c, const Type *tile, const Type *buffer, bool matrices);
/* Why the dot that takes a shared_load cannot carry it out itself, fragment by fragment as it goes (attribute on_demand); NULL: it can.
 * The dot reads the buffer then, so nothing between the load and it may touch shared memory or wait; and it knows ldmatrix only. */
const char *access_on_demand_obstacle(Ctx *c, const Op *load);
/* Why such a tile's elements are not counted in order by that team; NULL: they are. And the layout they are counted in: rows shared among
 * the warps, 32 neighbours of a row in the lanes, what is behind them in the next register. */
const char *access_count_obstacle(Team t, const Type *indices);
const Layout *access_count_layout(Ctx *c, Team t, const Type *indices);
#endif
