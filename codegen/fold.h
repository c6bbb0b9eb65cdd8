/* fold.h - folding elements by the region of a reduce or scan, private to lower_reduce.c and lower_scan.c. */
#ifndef TILEC_FOLD_H
#define TILEC_FOLD_H
#include "gen.h"

enum { FOLD_OPERANDS = 16 };

/* What some elements fold to, an entry per operand. */
typedef struct Part { Val v[FOLD_OPERANDS]; Val valid; } Part;   /* valid NULL: certainly */
typedef struct Fold {
  const Op *op;
  u32 n;
  Dist *h, *result;           /* operand's; a reduction's result's, NULL if scalar */
  u32 axis, axis_mask;
  u32 lanes;                  /* lane bits along the axis */
  bool padded;
  bool known;                 /* one operation with an identity: partials need no `valid` */
  OpCode code;
} Fold;

/* Fill in known and code. */
void fold_find_operation(Fold *f);
/* *a becomes a combined with b, in this order. */
void fold_combine(Gen *g, const Fold *f, Part *a, const Part *b);
/* The neutral element of a known operation. */
Val fold_identity(Gen *g, const Fold *f, DType d);
/* A partial of no elements. */
Part fold_nothing(Gen *g, const Fold *f);
#endif
