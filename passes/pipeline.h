/* pipeline.h - what the files of software pipelining share. */
#ifndef TILEC_PASSES_PIPELINE_H
#define TILEC_PASSES_PIPELINE_H
#include "ring.h"

/* pipeline_regs.c: have `load`, an op of the loop's body, done one iteration early, its tile carried in registers, at the top of the body
 * or behind what uses the one before; NULL, or why not (nothing is changed then). */
const char *prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load, bool behind);

/* warpgroup_dots.c: does a dot of the loop's body that is marked `warpgroup` take the load's tile, or a transpose of it? The shared
 * layout, in panels, for such a tile of type t; NULL: there is none. */
bool warpgroup_reads(const Op *loop, const Op *load);
Op *warpgroup_reader(const Op *loop, const Op *load);     /* the first of them */
bool warpgroup_alone_reads(const Op *load);               /* nobody else does */
/* Where a marked dot reads what the load brings, a buffer of this type, or row of such, is the product's operand as it is. */
bool warpgroup_reads_in_place(Ctx *c, const Op *loop, const Op *load, const Type *buffer);
/* Of operands that these loops have from outside. */
u64 warpgroup_kept_bytes(Ctx *c, u32 n, Op *const *loops);
const Layout *warpgroup_layout(Ctx *c, const Type *t);
/* The buffer of a factor that is stored, as its source is, whose dimension k is K; NULL: there is none. And of such a buffer the view that
 * the product takes. */
const Type *warpgroup_buffer(Ctx *c, const Type *source, int k);
Value *warpgroup_view(Builder *b, const Value *factor, Value *buffer);
/* All that the body's dots do is add to sums that the loop does nothing else with: such sums may stay under way. */
bool warpgroup_defers(const Op *loop);
/* left x right, which is a buffer, and so may left be, added to the dot's accumulator: the sum, waited for; each wait is in *waits. */
Value *warpgroup_sum(Builder *b, const Op *dot, Value *left, Value *right, OpVec *waits);
/* Make products of the marked dots whose operands lie in buffers of these rings, with waits an iteration later if `defer`. */
void warpgroup_products(Ctx *c, Op *loop, bool defer, u32 nrings, Ring *const *rings);
/* Products of 8-bit floats that are waited for one by one are started by the team's warpgroups in turns. */
void warpgroup_turns(const Op *loop);
/* How many products each wait of the block leaves under way, where none is when it begins. */
void warpgroup_count_waits(Ctx *c, Block *b);
/* What several loops keep of an operand is in one buffer. */
void warpgroup_keep_once(Ctx *c, Func *f);

/* overlap_products.c: let each loop's products that follow from others run beside those of the next iteration, if that fits; then the
 * loop is another one. Products of others begin in turns (warpgroup_turns). rings: nrings for each loop. */
void overlap_products(Ctx *c, Func *f, u32 n, Op *const *loops, u32 nrings, Ring *const *rings);

/* stored_dots.c: a dot in a loop with stages whose factors threads round (wgmma_dot_by_threads) becomes a product of warpgroups, before
 * tiles have layouts: a is rounded in front of the loop and stays in registers, b is rounded on its way to a buffer. */
void stored_dot_rounded(Ctx *c, Op *dot);

#endif
