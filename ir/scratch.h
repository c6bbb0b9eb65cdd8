/* scratch.h - how a cross-warp reduction and a shared-memory conversion use scratch memory: the one description that
 * alloc_shared (how many bytes) and codegen (which address) both read. */
#ifndef TILEC_SCRATCH_H
#define TILEC_SCRATCH_H
#include "ir.h"

/* A reduction over `axis` of a tile with layout l leaves partials that differ between warps along some warp bits.
 * Partials of operand k lie at base[k] + (element * element_step + warp_index * warp_step) * elem_bytes, element counting the
 * result's distinct elements row-major over its padded extents. Of few elements all partials of one are adjacent, so that one
 * access reads several; of many the elements of one warp are, so that its lanes meet in no bank. */
typedef struct ReduceScratch {
  u32 nwarps;                    /* warps that share an element's reduction; 1: no scratch */
  u32 warp_mask;                 /* warp bits in which they differ, one per factor 2 of nwarps; warp_index packs those bits */
  u32 pieces;                    /* 2^pieces, one after the other; an element's place in its piece stands for its number below */
  PieceMap map;
  u32 elements;                  /* padded result elements of a piece */
  u32 element_step, warp_step;   /* one of them is 1 */
  u32 base[16];                  /* per operand, bytes */
  u32 bytes, align;
} ReduceScratch;
void scratch_reduce(const Op *reduce, ReduceScratch *out);
/* Is it whether any, or (*all) whether all elements of a tile are true? */
bool scratch_reduce_votes(const Op *reduce, bool *all);

/* Who moves along each bit of the scanned axis, lowest first: a register, lane or warp bit. Warp bits that follow each other
 * are one round: the folds of the warps' parts lie at base[k] + (element * nwarps + position) * elem_bytes, element counting
 * row-major what is left when the axis loses the bits up to the round's end. */
typedef struct ScanPlan {
  u32 bits;
  u8 owner[LAYOUT_MAX_BITS];     /* a LayoutIn */
  u8 index[LAYOUT_MAX_BITS];
  u32 bytes;                     /* of the largest round; rounds use the same memory */
  bool flags;                    /* a plane of i1 behind the operands': padding comes first and has no neutral value */
} ScanPlan;
/* False if some register, lane or warp bit moves along the axis and across it at once, or along several bits of it. */
bool scratch_scan(const Op *scan, ScanPlan *out);
/* The round that begins at axis bit k (a warp's): how many warp bits it takes, base as above, its bytes. In 2^pieces pieces an element's
 * place in its piece stands for the element. */
typedef struct ScanRound { u32 k, warps, base[17], bytes, pieces; PieceMap map; } ScanRound;
ScanRound scratch_scan_round(const Op *scan, const ScanPlan *p, u32 k);
/* The element of the round's end that a flat index belongs to: the axis without the bits up to there. */
u32 scratch_scan_element(const Op *scan, const ScanRound *r, u32 flat);

/* Bits of a flat index in layout l that may differ between an element of an EXCHANGE op and its source. */
u32 scratch_exchange_bits(const Op *exchange, const Layout *l);
/* What to exclusive-or into the numbers of registers and threads (lane, then warp) to find an exchange's source. Where warps
 * change, register r of thread t lies at (r * threads + t) * elem_bytes. */
typedef struct SwapPlan { u32 reg, thread, bytes; } SwapPlan;   /* bytes: of all registers */
void scratch_exchange(const Op *exchange, SwapPlan *out);

/* Bytes of scratch any op needs (0: none), a multiple of 16. convert_layout needs its kind attribute set; elements of i1 take
 * a byte. An atomic whose result is used: a scalar's old value at offset 0; a tile's, where other lanes or warps hold copies, at its flat
 * (padded, row-major) index times its element's bytes. */
u32 scratch_bytes(Ctx *c, const Op *op);
/* log2 of the pieces in which op's data goes through its scratch (attribute pieces), and of the most that it can go in. */
u32 scratch_pieces(const Op *op);
u32 scratch_most_pieces(Ctx *c, const Op *op);
/* How a tile goes through scratch in op's pieces: a convert_layout's, or the values of leaders that others have copies of. */
void scratch_pieces_plan(Ctx *c, const Op *op, PiecesPlan *out);
/* Registers that an exchange writes and reads in one piece, and the bytes they take. */
u32 scratch_exchange_registers(const Op *exchange);
/* The plan of a convert_layout for the Ctx's target (layout_convert_plan with its features). */
void scratch_convert_plan(Ctx *c, const Op *convert, ConvertPlan *out);
#endif
