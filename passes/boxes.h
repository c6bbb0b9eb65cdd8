/* boxes.h - boxes of tensors as tiles: which of them copies of the asynchronous proxy can move, and through which buffers. */
#ifndef TILEC_PASSES_BOXES_H
#define TILEC_PASSES_BOXES_H
#include "internal.h"

/* NULL if a copy can move the box of a tensor_load or tensor_store, else why not (in scratch). Where that rests on two parameters reaching
 * different memory, they are noted to. */
const char *box_obstacle(Ctx *c, const Op *op);
/* The buffer for a tile whose box copies move: in panels along its last dimension. */
const Type *box_buffer(Ctx *c, const Type *tile);
i64 box_tile_bytes(const Type *tile);                /* that a copy of a whole box counts at its mbarrier */
/* An mbarrier of one arrival, or a row of `count` such, in the kernel's body. */
Value *box_mbarriers(Ctx *c, Func *f, Span at, u32 count);
/* The copy of op's box to or from the buffer, at op's coordinates by a map of op_clone (NULL: as they are). m: NULL of a store. */
void box_copy(Builder *b, const Op *op, Value *const *map, Value *buffer, Value *m);
#endif
