/* wgmma.h - what products of warpgroups there are, and who may use their accumulators while they are under way. */
#ifndef TILEC_WGMMA_H
#define TILEC_WGMMA_H
#include "ir.h"

/* Rows of an instruction, and of a warpgroup; warps of that. */
enum { WGMMA_ROWS = 64, WGMMA_GROUP = 4 };

/* Whether team t multiplies a (M x K, a tile or a buffer; with metadata, a tile, M x K/2: sparse.h) by b (K x N, a buffer); meta may be
 * NULL. What the accumulator may be. NULL, or why not. */
const char *wgmma_error(Ctx *c, Team t, const Type *a, const Type *meta, const Type *b);
const char *wgmma_sum_error(Ctx *c, const Type *a, const Type *b, const Type *acc);
DType wgmma_sum(DType factor);                   /* in which products are summed if nobody says */
u32 wgmma_columns(DType factor, u32 rest);       /* of the next instruction, where so many are left */
u32 wgmma_depth(DType factor);                   /* elements of a's rows of an instruction; of a sparse one b has twice as many */

/* Whether a dot of the program without layouts may become such a product, or row of products: NULL, or why not. axes: analyse_axes of its
 * kernel. And of how many products of 8-bit floats a sum may be made before it is added in f32; 0: of any number, or not of such. */
enum { DOT_PROMOTE = 128 };                      /* where the program says nothing */
enum { DOT_COPIED = 1, DOT_STORED };             /* a dot's mark (`warpgroup`): what fills its buffers, copies of its loop or stores */
const Op *wgmma_dot_loop(const Op *dot);         /* the loop with stages whose body it stands in, or NULL */
const char *wgmma_dot_error(Ctx *c, const AxisInfo *axes, const Op *dot);
u32 wgmma_promotes(const Op *dot);
/* What a factor is a transpose or another layout of; *k (k may be NULL), its dimension that is K, becomes that of the source. */
Value *wgmma_dot_source(Value *factor, int *k);
/* Elements along *axis of the dot's sum that are summed at a time: all, or a piece where these sums are added to others and a thread has no
 * room for both; rows only if they may be cut (a is in a buffer). 0: there is no room either way. */
u32 wgmma_piece(const Op *dot, bool rows, int *axis);
/* Whether the copies of the dot's factors may round them to tf32; the tensor_load of a factor, NULL: it is none. */
bool wgmma_dot_rounded(Ctx *c, const Op *dot);
/* Whether threads should round its factors, a once in front of the loop, b of each iteration on its way to a buffer: NULL, or why not. */
const char *wgmma_dot_by_threads(Ctx *c, const AxisInfo *axes, const Op *dot);
Op *wgmma_dot_copy(const Value *factor);

/* Who holds the sum of a placed dot on tensor cores, and its operand i, a factor or metadata, or a part of it of these extents. */
const Layout *dot_sum_layout(Ctx *c, const Op *dot);
const Layout *dot_operand_layout(Ctx *c, const Op *dot, u32 i, const u32 *shape);

/* How a buffer (or a view of one) is an operand: its panels, and whether they run along K, its dimension k. NULL, or why it is none. */
typedef struct WgmmaSide { PanelForm form; bool k_major; } WgmmaSide;
const char *wgmma_side(Ctx *c, const Type *t, int k, WgmmaSide *out);
const char *wgmma_placed_error(Ctx *c, const Op *op);                  /* the same of all operands of a wgmma */
/* How team t's warpgroups share a sum of so many rows: as many as rows allow along M, the others along N. */
typedef struct WgmmaGrid { u32 rows, columns; } WgmmaGrid;
WgmmaGrid wgmma_grid(Team t, u32 rows);
/* Who holds the accumulator, and a if it is a tile. */
const Layout *wgmma_sum_layout(Ctx *c, Team t, const Type *acc);
const Layout *wgmma_left_layout(Ctx *c, Team t, const Type *a);
const Layout *wgmma_meta_layout(Ctx *c, Team t, const Type *a, const Type *meta);

/* NULL, or why operand i of op may not be the accumulator under way that it is. */
const char *pending_error(const Op *op, u32 i);
/* The first op behind a wgmma, in its block, that for sure writes or frees a buffer which it still reads; NULL: none. */
const Op *wgmma_spoiler(const Op *op);
/* Whether op waits for a product behind which `newer` others were started. */
bool wgmma_ends_reads(const Op *op, u32 newer);
#endif
