/* loop_slice.h - what values of a loop's body are computed from, inside the loop, and doing that for another iteration. */
#ifndef TILEC_PASSES_LOOP_SLICE_H
#define TILEC_PASSES_LOOP_SLICE_H
#include "internal.h"

typedef struct LoopSlice {
  Ctx *c;
  Func *f;
  Op *loop;                  /* a `for` */
  bool branches;             /* an `if` of nothing but arithmetic may be in it */
  bool *in;                  /* by value id: result of an op of the slice */
  bool *advances;            /* of those: needed to advance what the loop carries, where no load may be */
  VEC(u32) carried;          /* carried values that the slice needs */
  OpVec ops;                 /* its ops in program order, once it is closed */
  u32 depth;
} LoopSlice;

/* NULL if a load in the body of a loop may be done ahead of its iteration, as far as memory goes. */
const char *slice_load_obstacle(const Op *load);

/* An empty slice of a `for`. */
LoopSlice slice_new(Ctx *c, Func *f, Op *loop, bool branches);
/* Adds all that these values are computed from inside the loop; NULL stands for none. False, and nothing is added, if some of it may
 * not be done ahead of its iteration; then *why says what. */
bool slice_add(LoopSlice *s, u32 n, Value *const *vs, const char **why);
/* Nothing more is added, and op (NULL: none), whose operands are in it, comes last. To be called before the loop is changed. */
void slice_close(LoopSlice *s, Op *op);
/* The slice for the iteration whose counter is i and whose carried values (those of the slice, in its order) are given, at b. Its
 * loads happen where scalar `more` is true besides their own masks, and are left out where it is NULL; they are added to *loads,
 * which may be NULL. Bounds of indices likewise: what is computed for an iteration that does not come is no index. Gives the map
 * from old values to new ones, in scratch. */
Value **slice_clone(const LoopSlice *s, Builder *b, Value *i, Value *const *carried, Value *more, OpVec *loads);
/* The slice's carried values before the loop, in its body, and after the iteration that a map is of. Each: room for all in scratch. */
Value **slice_first(const LoopSlice *s);
Value **slice_now(const LoopSlice *s);
Value **slice_next(const LoopSlice *s, Value *const *map);
#endif
