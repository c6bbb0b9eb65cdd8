/* wgmma.h - what products of warpgroups there are, and who may use their accumulators while they are under way. */
#ifndef TILEC_WGMMA_H
#define TILEC_WGMMA_H
#include "ir.h"

/* Rows of an instruction, and of a warpgroup; warps of that. */
enum { WGMMA_ROWS = 64, WGMMA_GROUP = 4 };

/* Whether team t multiplies a (M x K, a tile or a buffer) by b (K x N, a buffer); what the accumulator may be. NULL, or why not. */
const char *wgmma_error(Ctx *c, Team t, const Type *a, const Type *b);
const char *wgmma_sum_error(Ctx *c, const Type *a, const Type *b, const Type *acc);
DType wgmma_sum(DType factor);                   /* in which products are summed if nobody says */
u32 wgmma_columns(DType factor, u32 rest);       /* of the next instruction, where so many are left */
u32 wgmma_depth(DType factor);                   /* elements of K of an instruction */

/* How a buffer (or a view of one) is an operand: its panels, and whether they run along K, its dimension k. NULL, or why it is none. */
typedef struct WgmmaSide { PanelForm form; bool k_major; } WgmmaSide;
const char *wgmma_side(Ctx *c, const Type *t, int k, WgmmaSide *out);
const char *wgmma_placed_error(Ctx *c, const Op *op);                  /* the same of all operands of a wgmma */
/* Who holds the accumulator, and a if it is a tile: warps along M. */
const Layout *wgmma_sum_layout(Ctx *c, Team t, const Type *acc);
const Layout *wgmma_left_layout(Ctx *c, Team t, const Type *a);

/* NULL, or why operand i of op may not be the accumulator under way that it is. */
const char *pending_error(const Op *op, u32 i);
/* The first op behind a wgmma, in its block, that for sure writes or frees a buffer which it still reads; NULL: none. */
const Op *wgmma_spoiler(const Op *op);
/* Whether op waits for a product behind which `newer` others were started. */
bool wgmma_ends_reads(const Op *op, u32 newer);
#endif
