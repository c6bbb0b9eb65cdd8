/* ring.h - rows of buffers that a loop's copies fill and its work reads, one after the other and round again.
 * Part of pipeline_loops. */
#ifndef TILEC_PASSES_RING_H
#define TILEC_PASSES_RING_H
#include "carried.h"
#include "internal.h"

enum { RING_ROWS = 16 };

/* A row: one load's tiles, a buffer for each slot. */
typedef struct RingRow {
  Op *load;
  Value *buffers;
  const Layout *smem;
  const Layout *want;        /* layout of the readers' conversion; NULL: the load's own */
  bool box;                  /* a tensor_load */
  bool fills;                /* where the mask is off the tile is something else than 0: chosen after reading */
} RingRow;

/* Boxes of tensors land with a phase of their slot's mbarrier in `full`, which counts the bytes: who reads slot `get` waits for that of
 * parity `phase`. Where the loop is entered again, or the next one with the same ring, both go on from where they were. Two teams have
 * `empty` besides. */
typedef struct Ring {
  Ctx *c;
  Func *f;
  Op *loop;
  u32 slots;                 /* buffers of a row */
  RingRow row[RING_ROWS];
  u32 n, boxes;              /* rows; those of boxes */
  Value *full, *empty;       /* rows of mbarriers; NULL: none */
  Value *put, *get, *phase;  /* block arguments: slot to fill, slot to read, parity of the phase that ends when that is full */
  Value *from[2];            /* get and phase in front of the loop */
  bool moves;                /* they are not always 0 there */
  bool slots_stay;           /* what reads a slot may do so until the iteration ends: no dot's reads move elsewhere */
} Ring;

/* How what the load gives is read: a conversion behind it, or behind a cast of it; NULL: none. */
const Layout *ring_readers_layout(const Op *load);

const Type *ring_buffers_type(const Ring *r, u32 row);
/* Little beside the other rows, and read by threads: a number for each row or column of the other tiles, or words of few bits. */
bool ring_row_is_slim(const Ring *r, u32 row);
u64 ring_bytes(const Ring *r);
void ring_make_buffers(Ring *r, Builder *b);
void ring_make_mbarriers(Ring *r, bool two_teams);
void ring_share(Ring *r, const Ring *with);          /* its buffers and mbarriers */
void ring_free(Ring *r, Builder *b);

/* The same ring for the loops of n: sets `from` of each; then, when each carries get and phase, hands these on from one to the next. */
void ring_begin(Carried *s, u32 n, Ring *const *rings);
void ring_end(Carried *s, u32 n, Ring *const *rings);

/* (slot + 1) mod slots; *phase (NULL: not asked for) changes where that begins anew. */
Value *ring_next(const Ring *r, Builder *b, Value *slot, Value **phase);
/* Slot s of those that are filled before the loop. */
Value *ring_first(const Ring *r, Builder *b, u32 s);

/* Bytes that boxes bring into a slot are announced at its mbarrier, which is the result. */
Value *ring_announce(const Ring *r, Builder *b, Value *slot);
/* The copies into a slot, with what the loads are of taken from a map of op_clone. */
void ring_fill(const Ring *r, Builder *b, Value *slot, Value *const *map);
/* Until slot `get` is full of boxes. */
void ring_await(const Ring *r, Builder *b);
/* Uses of all loaded tiles become loads from slot `get`, in the layouts that they want. */
void ring_read(Ring *r);
#endif
