/* boxes.h - boxes of tensors as tiles: which of them copies of the asynchronous proxy can move, and through which buffers. */
#ifndef TILEC_PASSES_BOXES_H
#define TILEC_PASSES_BOXES_H
#include "internal.h"

/* NULL if a copy can move the box of a tensor_load or tensor_store, else why not (in scratch). axes: of its kernel, with its indices;
 * NULL: to be analysed. instead_of: an access that goes then, or NULL. Where that rests on two parameters reaching different memory, they
 * are noted to. */
const char *box_obstacle(Ctx *c, const AxisInfo *axes, const Op *op, const Op *instead_of);
/* Pointers to the elements of op's box, whose coordinates are its operands from `first` on, in front of where b is, and which of them are
 * within the tensor. whole_rows: whether all are along the last dimension is asked by itself (a scalar), and not by `inside`, which is NULL
 * if there is no other. plain_tensors.c */
typedef struct BoxElements { Value *at, *inside, *rows_inside; } BoxElements;
BoxElements box_elements(Builder *b, const Op *op, u32 first, const Type *box, bool whole_rows);
/* The buffer for a tile whose box copies move: in panels along its last dimension, and no longer than its elements; or a row of such. */
const Type *box_buffer(Ctx *c, const Type *tile);
const Type *box_buffers(Ctx *c, const Type *tile, u32 count);
/* Of buffers for the tiles that a loop loads, so many for each; team: that a team of its own copies. */
u64 box_ring_bytes(const Op *loop, u32 slots, bool team);
i64 box_tile_bytes(const Type *tile);                /* that a copy of a whole box counts at its mbarrier */
/* A tensor_store becomes several, of pieces side by side, each of which is a panel: they go through the same buffers (lower_stores.c). */
void box_store_in_pieces(Ctx *c, Op *store);
static inline bool box_is_kept(const Op *op) { return op->code == OP_TENSOR_STORE && op_int(op, AT_KEPT, 0); }   /* such a piece */
/* In v, a tile that the store takes, or what that is computed of element by element, for nothing else: a value for which `is` is true;
 * NULL: there is none. And: is it a box that is loaded there, and goes in pieces with the store? */
typedef bool BesideFn(const Value *v, const Op *store);
const Value *box_value_beside(const Value *v, const Op *store, BesideFn *is);
/* How many there are; *first, NULL before, is the first of them. */
u32 box_values_beside(const Value *v, const Op *store, BesideFn *is, const Value **first);
BesideFn box_is_beside;
/* Such a piece, and bytes of the buffer for it. */
const Type *box_store_piece(Ctx *c, const Func *f, const Type *tile);
u64 box_store_bytes(Ctx *c, const Func *f, const Type *tile);
/* What boxes take beside rings, at least: rows of stores that stay, of each of so many teams, and the largest of the others, which lives
 * where it stands: in the loop, or (loop NULL) anywhere. Not counted are the n loads and stores of `without`. */
u64 box_bytes_beside(Ctx *c, Func *f, const Op *loop, u32 teams, u32 n, const Op *const *without);
void box_lower_kept(Ctx *c, Func *f);                /* lower_stores.c */
/* An mbarrier of one arrival, or a row of `count` such, in the kernel's body. */
Value *box_mbarriers(Ctx *c, Func *f, Span at, u32 count);
/* The copy of op's box to or from the buffer, at op's coordinates by a map of op_clone (NULL: as they are). m: NULL of a store. */
void box_copy(Builder *b, const Op *op, Value *const *map, Value *buffer, Value *m);
#endif
