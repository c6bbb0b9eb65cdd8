/* pipeline.h - what the files of software pipelining share. */
#ifndef TILEC_PASSES_PIPELINE_H
#define TILEC_PASSES_PIPELINE_H
#include "internal.h"

/* pipeline_regs.c: have `load`, an op of the loop's body, done one iteration early, its tile carried in registers; NULL, or
 * why not (nothing is changed then). */
const char *prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load);

/* warpgroup_dots.c: does a dot of the loop's body that is marked `warpgroup` take the load's tile, or a transpose of it? The shared
 * layout, in panels, for such a tile of type t; NULL: there is none. */
bool warpgroup_reads(const Op *loop, const Op *load);
const Layout *warpgroup_layout(Ctx *c, const Type *t);
/* All that the body's dots do is add to sums that the loop does nothing else with: such sums may stay under way. */
bool warpgroup_defers(const Op *loop);
/* Make products of the marked dots whose operands lie in these rows of buffers, with waits an iteration later if `defer`. */
void warpgroup_products(Ctx *c, Op *loop, bool defer, Value *const *rows, u32 nrows);
#endif
