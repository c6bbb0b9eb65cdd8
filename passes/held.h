/* held.h - how many registers the tiles take that a thread holds across an op. Elementwise ops are done element by element, so that what
 * lies between two of them does not exist as a whole; what lives across an op of another kind does. */
#ifndef TILEC_PASSES_HELD_H
#define TILEC_PASSES_HELD_H
#include "internal.h"

typedef struct Held {
  Ctx *c;
  bool *index;          /* by value: computed from ranges, constants and scalars: made again where it is used, or part of an address */
  u32 *across;          /* by mark of the ops of the block that was counted last: 32-bit registers of a thread */
} Held;

/* Registers of addresses, counters and what is on its way, of a team that copies nothing. With 32, some loops of the kind that
 * tests/diff/overlap.py has spill. */
enum { BESIDE_TILES = 36 };

void held_open(Held *h, Ctx *c, Func *f);
/* Registers that v takes as a whole: 0 of scalars, of indices and addresses, and of what a dot loads itself. */
u32 held_registers(const Held *h, const Value *v);
/* Marks the ops of b from 1 on and fills `across` (in scratch); around: what is held across the op that b is in. The number of ops. */
u32 held_count(Held *h, Block *b, u32 around);
/* v is needed behind op, an op of its block or of one that has it in a region. */
bool held_behind(const Value *v, const Op *op);
/* v is an operand of op, and ends there. */
bool held_ends_at(const Value *v, const Op *op);
/* The most that is held in b at an op which wants all elements of its tiles at once, and at which op. */
u32 held_most(Held *h, Block *b, u32 around, Op **at);
/* What a thread of the team has if the program has so many warps; 0: it cannot. What a region's has is the kernel's to say, and stays. */
u32 team_registers(const Ctx *c, Team team, u32 warps);
#endif
