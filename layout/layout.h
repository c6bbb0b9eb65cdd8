/* layout.h - who holds what: linear maps over GF(2).
 *
 * A tile of extents e0 x e1 x ... covers the next powers of two, 2^b0 x 2^b1 x ...; the coordinates of an element,
 * concatenated row-major (the last dimension in the low bits), are its flat index, a number below 2^(b0+b1+...).
 * A layout gives every bit of a hardware index a column: a flat index. The element held at (register r, lane l, warp w,
 * block k) is the exclusive-or of the columns of the bits set in r, l, w and k. A shared layout has one input, the
 * element offset into the buffer. A zero column means copies: that bit does not change which element is held.
 * See arXiv 2505.23819. All layouts are interned: equal maps are equal pointers.
 */
#ifndef TILEC_LAYOUT_H
#define TILEC_LAYOUT_H
#include "base.h"

enum { MAX_RANK = 5, LAYOUT_MAX_BITS = 24 };
typedef enum LayoutIn { IN_REG, IN_LANE, IN_WARP, IN_BLOCK, IN_OFFSET, IN_COUNT } LayoutIn;

typedef struct Layout {
  u8 rank;
  u8 out_bits[MAX_RANK];               /* log2 of the padded extent of each dimension */
  u8 in_bits[IN_COUNT];                /* input widths: registers, lanes (5), warps, blocks; or offset alone */
  u32 col[IN_COUNT][LAYOUT_MAX_BITS];  /* columns: flat indices */
  u32 id;                              /* small number, unique in a Ctx, for printing */
} Layout;

/* ---- making ---- */
/* Intern a filled-in map (rank, out_bits, in_bits, col). */
const Layout *layout_intern(Ctx *c, const Layout *l);
/* order[0] is the fastest dimension. Extents are padded to powers of two; threads beyond the tile hold copies,
 * a tile beyond the threads wraps into more registers. threads_per_warp multiplies to 32; all arguments powers of two. */
const Layout *layout_blocked(Ctx *c, int rank, const u32 *shape, const u32 *size_per_thread, const u32 *threads_per_warp,
                             const u32 *warps, const int *order);
/* Coalesced default: `vec` contiguous elements per thread along order[0], then lanes, warps, along order. */
const Layout *layout_default(Ctx *c, int rank, const u32 *shape, u32 warps, u32 vec, const int *order);
/* mma.sync m16n8 accumulator tiles (PTX ISA 9.7.14, m16n8k16 C fragment), warps over each dimension of a tile whose last two
 * are M x N and whose others are batches. */
const Layout *layout_mma(Ctx *c, int rank, const u32 *shape, const u32 *warps);
/* Operand of that mma: which = 0 for A (M x K), 1 for B (K x N); elem_bits 8, 16, 32. shape is the operand's, warps the result's. */
const Layout *layout_mma_operand(Ctx *c, int which, int rank, const u32 *shape, const u32 *warps, u32 elem_bits);
/* The same, of 2 dimensions, for products of warpgroups that share columns: `rows` warps, a multiple of four, along M, and groups of so
 * many along N, each with columns side by side, where there are 8 * groups columns or more. With one group they are those of mma.sync. */
const Layout *layout_warpgroups(Ctx *c, const u32 *shape, u32 rows, u32 groups);
const Layout *layout_warpgroups_operand(Ctx *c, int which, const u32 *shape, u32 rows, u32 groups, u32 elem_bits);
/* The same of a sparse one, whose A is M x K/2. */
const Layout *layout_mma_sparse_operand(Ctx *c, int which, int rank, const u32 *shape, const u32 *warps, u32 elem_bits);
/* Metadata (M x K / 16, u16) of a sparse one's A, whose elements have elem_bits 8 or 16. */
const Layout *layout_mma_meta(Ctx *c, int rank, const u32 *shape, const u32 *warps, u32 elem_bits);
/* Operand of a dot without tensor cores: every thread holds all of K for its part of `result`. */
const Layout *layout_fma_operand(Ctx *c, int which, const u32 *shape, const Layout *result);
/* Shared: row-major in `order` with exclusive-or swizzle: vec elements stay together, row / per_phase % max_phase
 * exclusive-ored into the vector index. max_phase 1: no swizzle. */
const Layout *layout_swizzled(Ctx *c, int rank, const u32 *shape, u32 vec, u32 per_phase, u32 max_phase, const int *order);

/* Shared, in panels (layout_panels.c): order[0], one of the last two dimensions, is cut into pieces of `width` = 128, 64, 32 or 16 bytes;
 * a panel is that piece of all rows, and panels follow each other. From 32 bytes on with the swizzle of TMA and wgmma of that many
 * bytes. NULL if width, or 0, does not divide the contiguous extent. */
const Layout *layout_panels(Ctx *c, int rank, const u32 *shape, u32 elem_bytes, u32 width, const int *order);
/* The widest that divides the extent of dimension `fast`; 0: none. */
u32 layout_panels_width(const u32 *shape, u32 elem_bytes, int fast);
/* Panels of that width, the other dimensions row-major; with fewer than 8 rows, the period of a swizzle, plain rows. NULL: no width. */
const Layout *layout_panels_default(Ctx *c, int rank, const u32 *shape, u32 elem_bytes, int fast);
/* What a shared layout in panels is: bytes of its swizzle (0: none) and of a panel's row, the contiguous dimension, how many panels there
 * are, those of padding among them, and the bytes from one to the next. Plain rows are one panel without a swizzle. */
typedef struct PanelForm { u32 swizzle, width, panels, panel_bytes; int fast; } PanelForm;
/* False if smem is not in panels, its other dimensions row-major. */
bool layout_panel_form(const Layout *smem, u32 elem_bytes, PanelForm *out);
u32 layout_panel_align(const PanelForm *f);                                      /* bytes: where such a buffer may begin */

/* ---- shape ops: the layout of the result, from the operand's (forward) or the operand's from the result's (back) ---- */
const Layout *layout_permute(Ctx *c, const Layout *l, const int *perm);          /* result dim i = operand dim perm[i] */
const Layout *layout_expand_dims(Ctx *c, const Layout *l, int axis);
const Layout *layout_squeeze(Ctx *c, const Layout *l, int axis);                 /* inverse of expand_dims; extent 1 there */
const Layout *layout_reshape(Ctx *c, const Layout *l, int rank, const u32 *shape); /* powers of two, same total */
const Layout *layout_slice(Ctx *c, const Layout *l, int axis);                   /* drop axis; register copies removed */
/* Operand of a broadcast to `l`'s shape: columns along dimensions of extent 1 become 0; register copies removed. */
const Layout *layout_unbroadcast(Ctx *c, const Layout *l, const u32 *operand_shape);

/* ---- questions ---- */
u32 layout_eval(const Layout *l, u32 reg, u32 lane, u32 warp, u32 block);        /* flat index held there */
u32 layout_offset_eval(const Layout *l, u32 offset);                             /* shared layout */
void layout_coords(const Layout *l, u32 flat, u32 *coord);                       /* flat -> coordinates */
u32 layout_flat(const Layout *l, const u32 *coord);
u32 layout_dim_shift(const Layout *l, int dim);                                  /* its lowest bit in a flat index */
u32 layout_dim_mask(const Layout *l, int dim);                                   /* its bits */
u32 layout_numel(const Layout *l);                                               /* elements, padding included */
bool layout_covers(const Layout *l);                                             /* every element is held by somebody */
u32 layout_regs(const Layout *l);                                                /* registers per thread (2^bits) */
u32 layout_distinct_regs(const Layout *l);                                       /* those that hold no copy of another one */
/* Bits of in-dimension `in` that hold copies: bit i set when the column is 0 or dependent on earlier inputs
 * (registers, then lanes, warps, blocks). */
u32 layout_free_bits(const Layout *l, LayoutIn in);
/* The lowest register of the same thread that always holds what `reg` holds (reg itself unless it is a copy). */
u32 layout_first_copy(const Layout *l, u32 reg);
/* Equal columns: layouts are interned, so that is equal pointers. */
static inline bool layout_equal(const Layout *a, const Layout *b) { return a == b; }
/* Longest run (a power of two) of consecutive registers that are consecutive elements along `dim`, aligned. */
u32 layout_contiguous_regs(const Layout *l, int dim);
/* Matrix of the map as columns of the flattened input (registers lowest, then lanes, warps, blocks); returns the count. */
u32 layout_columns(const Layout *l, u32 *cols, u32 max);

/* ---- conversions ---- */
typedef enum ConvertKind { CONVERT_NONE, CONVERT_REGS, CONVERT_SHUFFLE, CONVERT_SHARED } ConvertKind;
/* Where a lane with parity(lane & lane_mask) = 1 exchanges: x'[r] = x[r ^ reg_xor], for every register r; else x'[r] = x[r]. */
typedef struct ShuffleStage { u32 lane_mask, reg_xor; } ShuffleStage;
/* All elements move in `rounds` rounds of one shfl.sync.idx each (two for 64-bit elements), see layout_convert.c:
 *   1. run the `sends` stages, one after the other, over all source registers;
 *   2. in round k, with the constants of layout_shuffle_round: y[recv_reg] = shfl(x[send_reg], lane_xor ^ (xor of lane_col
 *      over the bits of the lane)); local: every lane reads itself, so y[recv_reg] = x[send_reg] without a shuffle;
 *   3. run the `receives` stages over the received registers y (those r with layout_first_copy(dst, r) == r);
 *   4. destination register r is y[layout_first_copy(dst, r)]. */
typedef struct ShufflePlan {
  u32 rounds, round_bits, sends, receives;
  bool local;
  ShuffleStage send[5], receive[5];
  u32 lane_col[5];
  u32 round_send[LAYOUT_MAX_BITS], round_recv[LAYOUT_MAX_BITS], round_lane[LAYOUT_MAX_BITS];  /* a column per bit of k */
} ShufflePlan;
typedef struct SharedPlan {
  const Layout *smem;                 /* shared layout: offset (elements) -> flat index; swizzled, no conflicts if possible */
  u32 store_vec, load_vec;            /* elements per plain access (ld/st.shared); with ldmatrix/stmatrix: of a 16-byte row */
  u32 store_conflicts, load_conflicts;/* extra wavefronts per warp access beyond the least for that width */
  u32 bytes;
  bool ldmatrix, ldmatrix_trans;      /* the load side uses ldmatrix (.trans): see layout_matrix_access */
  bool stmatrix, stmatrix_trans;
} SharedPlan;
typedef struct ConvertPlan {
  ConvertKind kind;
  u32 cost;                           /* issue slots per warp, roughly; the model stands in layout_convert.c */
  ShufflePlan shuffle;
  SharedPlan shared;
} ConvertPlan;
/* Cheapest way from src to dst (same shape, block columns equal) for elements of elem_bits (1..64; i1 counts 8).
 * can_ldmatrix: the target has it (F_LDMATRIX), can_stmatrix likewise. Only the plan named by kind is filled in. */
void layout_convert_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix,
                         bool can_stmatrix, ConvertPlan *out);
/* The plan in one line, for dumps: kind, accesses, conflicts, cost. */
void layout_convert_print(Buf *b, const ConvertPlan *p);
/* dst register i takes src register map[i] of the same thread (CONVERT_REGS, or NONE); false if it needs other threads. */
bool layout_reg_map(const Layout *src, const Layout *dst, u32 *map);
/* Which src register of which lane of the same warp feeds dst register `reg` at lane `lane`; false if another warp must. */
bool layout_warp_source(const Layout *src, const Layout *dst, u32 reg, u32 lane, u32 *src_reg, u32 *src_lane);
/* The rounds and stages for src -> dst; false if a warp does not hold what it needs. */
bool layout_shuffle_plan(const Layout *src, const Layout *dst, ShufflePlan *out);
/* Constants of round k. */
void layout_shuffle_round(const ShufflePlan *p, u32 round, u32 *send_reg, u32 *recv_reg, u32 *lane_xor);

/* ---- access to shared memory: registers of l against a shared layout smem (layout_shared.c) ---- */
/* The shared layout and accesses with the least cost for src -> memory -> dst; returns that cost. */
u32 layout_shared_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix,
                       bool can_stmatrix, SharedPlan *out);
/* ---- through less memory than the tile takes (layout_pieces.c) ---- */
enum { PIECES_MAX_BITS = 6 };           /* at most 64 pieces: code is made for each */
/* One side of a conversion in pieces. Registers fall into 2^class_bits classes of layout_regs(l) each; layout_piece_of_class
 * and layout_piece_reg say which. Thread t moves a class in the piece whose number is the class's exclusive-or the columns
 * thread_piece of the bits of t (lanes, then warps). Where copies in registers are: the first only. */
typedef struct PieceSide {
  const Layout *l;                      /* of class 0, over the places in a piece; the tile's own layout if there is one piece */
  u32 reg[LAYOUT_MAX_BITS];
  u32 class_bits, class_reg[PIECES_MAX_BITS], class_piece[PIECES_MAX_BITS], class_place[PIECES_MAX_BITS];
  u32 thread_piece[2 * LAYOUT_MAX_BITS];
} PieceSide;
/* The piece of an element and its place in it, as columns by bit of its flat index. */
typedef struct PieceMap { u32 number[LAYOUT_MAX_BITS], place[LAYOUT_MAX_BITS]; } PieceMap;
u32 layout_piece_number(const PieceMap *m, u32 flat);
u32 layout_piece_place(const PieceMap *m, u32 flat);
/* At most 2^bits pieces that are registers alone, the same of every thread; as many as l's registers that are not copies, of others or of
 * other threads', make. Returns log2 of how many. */
u32 layout_register_pieces(const Layout *l, u32 bits, PieceMap *out);
typedef struct PiecesPlan {
  u32 bits;                             /* 2^bits pieces */
  PieceSide src, dst;
  SharedPlan shared;                    /* of one piece: its memory is used by all, one after the other */
  u32 cost;
} PiecesPlan;
/* How src becomes dst (block columns equal) in 2^bits pieces through shared memory. bits 0: layout_shared_plan's plan. */
void layout_pieces_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix, bool can_stmatrix, u32 bits,
                        PiecesPlan *out);
u32 layout_pieces_most(const Layout *l);                           /* the most `bits` of a tile */
/* The number of a class; the register of the tile that is its first, and what its elements' places differ from class 0's. */
u32 layout_piece_of_class(const PieceSide *s, u32 class, u32 *reg, u32 *place);
/* Register `reg` of l is this one of the tile; exclusive-or a class's first register. */
u32 layout_piece_reg(const PieceSide *s, u32 reg);
/* Does some thread bits' part of the number make this? */
bool layout_piece_threads(const PieceSide *s, u32 number);

/* Offset in the shared layout of the element at flat index (linear too): inverse of layout_offset_eval; the lowest copy. */
u32 layout_shared_offset(const Layout *smem, u32 flat);
/* Columns of (reg|lane|warp) -> shared offset: smem^-1 . l. cols as in Layout.col; false if smem does not hold all of l. */
bool layout_to_offset(Ctx *c, const Layout *l, const Layout *smem, u32 cols[IN_COUNT][LAYOUT_MAX_BITS]);
/* The largest x exclusive-or a sum of some of the n columns. */
u32 layout_highest(u32 x, const u32 *cols, u32 n);
/* Elements of memory that a tile of these extents (padded: smem's) takes: one more than the highest offset (layout_cut.c). */
u32 layout_reach(const Layout *smem, const u32 *shape);
/* The number of a `vec` of elements within a line is exclusive-ored with the line's (number / per) mod phases: nothing leaves its line. */
typedef struct LayoutSwizzle { u32 line, vec, per, phases; } LayoutSwizzle;
/* The shared layout in which a tile of these extents reaches least far, of those whose offsets grow with every coordinate and in which
 * aligned runs of `run` elements along dimension `fast` lie together; then swizzled. All numbers but extents are powers of two. */
const Layout *layout_compact(Ctx *c, int rank, const u32 *shape, int fast, u32 run, const LayoutSwizzle *s);
/* After every `every` elements of offset, `pad` elements of memory are left out; every 0: none. Powers of two. */
typedef struct SharedPad { u32 every, pad; } SharedPad;
/* Extra wavefronts per warp access of `vec` consecutive-offset elements between registers of l and smem. */
u32 layout_bank_conflicts(const Layout *l, const Layout *smem, u32 vec, u32 elem_bits);
/* True if registers of l form aligned runs of vec consecutive offsets, in the same order in every thread. */
bool layout_access_fits(const Layout *l, const Layout *smem, u32 vec);
/* The widest vec (at most 16 bytes) that fits. */
u32 layout_access_vec(const Layout *l, const Layout *smem, u32 elem_bits);
/* Registers of access i, in offset order: regs[i * vec .. i * vec + vec - 1]. The address of access i in a thread is the
 * offset of its first register there, a multiple of vec. Copies (layout_first_copy(l, r) != r) are left out: a load fills
 * them from their first copy. regs has room for layout_regs(l). Returns the number of accesses. */
u32 layout_access_groups(const Layout *l, const Layout *smem, u32 vec, u32 *regs);

/* How ldmatrix/stmatrix (.b16, 8x8 matrices of 16-byte rows) moves the registers of l. One instruction moves `count`
 * (4, 2, 1: .x4 .x2 .x1) 32-bit registers of `elems` elements each; `groups` instructions move all of them. In group g, lane
 * L supplies the address of one row, in elements
 *     const(g) ^ (xor of addr_lane over the bits of L) ^ (xor of addr_warp over the bits of the warp),
 * a multiple of 16 bytes (.x2 looks at lanes 0-15, .x1 at 0-7; the columns of the others are 0). Where const(g) shares no
 * bit with addr_bits, the xor is an addition and const(g) may be the instruction's immediate. */
typedef struct MatrixAccess {
  bool trans;
  u32 count, groups, elems;
  u32 addr_lane[5], addr_warp[LAYOUT_MAX_BITS], addr_bits;
  u32 conflicts;                      /* extra wavefronts per instruction */
  /* register bits, lowest those inside a word, then matrices, then groups; and their offsets */
  u32 reg_bits, reg_bit[LAYOUT_MAX_BITS], reg_off[LAYOUT_MAX_BITS];
} MatrixAccess;
/* False if the 8x8 fragments of l do not lie in smem as 16-byte rows (trans: as columns, 16-bit elements only). */
bool layout_matrix_access(const Layout *l, const Layout *smem, u32 elem_bits, bool trans, MatrixAccess *out);
/* Registers of group g: regs[m * elems + e] is element e (low bits first) of 32-bit register m. Returns const(g). */
u32 layout_matrix_group(const MatrixAccess *m, u32 g, u32 *regs);

/* One side, where the memory is given: the cheapest accesses that move all registers of l to or from smem. matrix (only if
 * can_matrix): ldmatrix or stmatrix, else vec elements an access. conflicts: extra wavefronts per access. */
typedef struct SharedAccess { bool matrix, trans; u32 vec, conflicts, cost; } SharedAccess;
SharedAccess layout_shared_access(const Layout *l, const Layout *smem, SharedPad pad, u32 elem_bits, bool can_matrix);

/* l over the extents of smem, at least as large along each dimension: the elements keep their coordinates. */
const Layout *layout_widen(Ctx *c, const Layout *l, const Layout *smem);

/* ---- text ---- */
/* Canonical text: `layout<128x64; reg (0,1) (0,2); lane (0,4) ...; warp ...>` ; `shared<128x64; off (0,1) ...>` . */
void layout_print(Buf *b, const Layout *l);
/* Reads the canonical text and the constructors blocked<shape; size; threads; warps; order>, mma<MxN; warps>,
 * operand<which; shape; warps; bits>, slice<axis; layout>, swizzled<shape; vec, per_phase, max_phase; order>.
 * Returns NULL with *error (a static or arena text) and *at (bytes into s) set. *used: bytes read. */
const Layout *layout_parse(Ctx *c, const char *s, size_t len, size_t *used, const char **error, size_t *at);
/* The picture for people: for each element who holds it (`T3:1` is lane 3, register 1, beside a map of the warps), or
 * for a shared layout the offset and bank of each element of elem_bits. */
void layout_draw(Buf *b, const Layout *l, u32 elem_bits);
#endif
