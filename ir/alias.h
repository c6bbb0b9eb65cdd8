/* alias.h - where accesses to global memory go, and whether two of them need an order between threads.
 *
 * What one program does to memory happens in program order. A thread keeps that order by itself; two accesses of which one
 * writes need a barrier between them if an element of the one may lie where an element of the other does and another thread
 * has it. Parameters reach different memory unless the launch said that two of them are the same (ParamInfo). */
#ifndef TILEC_ALIAS_H
#define TILEC_ALIAS_H
#include "interval.h"

enum { ALIAS_TERMS = 12 };

/* coef * v * stride bytes; stride: a scalar made outside of all loops whose value is not known, NULL: 1. path: how v's dimensions became
 * the tile's, so that two terms with the same v and path are one function of the element. */
typedef struct AliasTerm { const Value *v, *stride; u32 path; i64 coef; Interval is; } AliasTerm;

/* One access: bytes from root's address are `bytes` and the terms' sum, element by element. */
typedef struct GlobalAccess {
  const Op *op;
  const Value *pointer;       /* NULL: the box of a tensor */
  const Value *root;          /* a parameter; NULL: anywhere */
  u32 effect;                 /* FX_READ, FX_WRITE, FX_ASYNC */
  u32 size;                   /* bytes of an element */
  i64 bytes;
  u32 nterms;
  AliasTerm term[ALIAS_TERMS];
  bool unknown;               /* anywhere in what root reaches */
} GlobalAccess;

/* False if op does not reach global memory. */
bool global_access(const Op *op, GlobalAccess *a);

/* Atomic sums of the same kind that nobody looks at in between: they come to the same in any order. */
bool ops_commute(const Op *a, const Op *b);

/* Accesses of one sort need no order among each other, but for the last: what only reads; what one leader does for all. */
typedef enum GlobalSort { GLOBAL_READ, GLOBAL_LEADER, GLOBAL_OTHER, GLOBAL_SORTS } GlobalSort;
GlobalSort global_sort(const GlobalAccess *a);

/* Must all threads meet between a and b? a comes first; loop: an iteration of it ended in between, the outermost such loop, and
 * a and b may be the same op; NULL: no loop's. `apart` is set, and false returned, where only the promise that two parameters
 * reach different memory makes it needless. */
bool global_conflict(const GlobalAccess *a, const GlobalAccess *b, const Op *loop, bool *apart);

/* May b reach, in the same iteration of all loops, what a does? If not because they are of different parameters, that is noted. */
bool global_overlap(const GlobalAccess *a, const GlobalAccess *b);

/* Note in their function that a and b, which are of different parameters, are relied upon to reach different memory. */
void global_rely_on_apart(const GlobalAccess *a, const GlobalAccess *b);
#endif
