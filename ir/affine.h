/* affine.h - addresses and indices as sums, for who wants them as coordinates.
 *
 * A value is, element by element, the sum of terms: a product that a launch knows, times the index of the element along one dimension, or
 * times a scalar of the program, or neither. Index arithmetic is taken apart as far as it is linear, on the rule of the language that it
 * does not overflow. What a loop moves by the same in each iteration is a term of the loop's count. */
#ifndef TILEC_AFFINE_H
#define TILEC_AFFINE_H
#include "ir.h"

enum { AFFINE_TERMS = 24, AFFINE_UNIFORM = -1 };

/* by * (index along dim), or by * v * count. v NULL: 1. count: how often the loop has come round; NULL: 1. */
typedef struct AffineTerm {
  LaunchValue by;
  const Value *v;
  const Op *count;
  int dim;                   /* of the tile; AFFINE_UNIFORM: none */
  bool wide;                 /* it is computed in 64 bits, but for `narrow` times v, which 32 hold */
  LaunchValue narrow;
} AffineTerm;

/* Along this dimension the index is x % bound, or (in select form) x where it is less than bound and something else elsewhere: x has terms
 * of its own, index along dim and scalars. */
typedef struct AffineWrap { bool on; LaunchValue bound; AffineTerm x[AFFINE_TERMS]; u32 nx; } AffineWrap;

typedef struct Affine {
  const Value *root;         /* of a pointer: the parameter, of a tensor's address the tensor; NULL of integers */
  AffineTerm term[AFFINE_TERMS];
  u32 n;
  AffineWrap wrap[MAX_RANK];
  const char *why;           /* NULL: that is all; else why it is no such sum */
} Affine;

/* Terms of a tile, or scalar, of pointers or integers. Of an index that wraps around the terms are those of x. */
void affine_of(Ctx *c, const Value *v, Affine *out);

/* Adds term t to a list of *n terms, times `sign`; false: it is full, or numbers are too large. What comes to nothing goes. */
bool affine_add(AffineTerm *list, u32 *n, const AffineTerm *t, i64 sign);

/* One bound of a mask along one dimension: index + rest < 0 (upper), or 0 <= index + rest. */
typedef struct AffineBound { int dim; bool upper; AffineTerm rest[AFFINE_TERMS]; u32 n; } AffineBound;
/* The bounds of which mask v is the conjunction; at most `most`. NULL, or why it is none; *n of its parts are bounds all the same. */
const char *affine_bounds(Ctx *c, const Value *v, AffineBound *out, u32 most, u32 *n);
/* What is left of `rest` if the index begins with the terms u instead of 0: the bound itself, index < *out. False: a launch does not know
 * it. */
bool affine_bound_from(const AffineBound *b, const AffineTerm *u, u32 nu, LaunchValue *out);

/* unobserved.c: NULL if elements of the load's tile whose index along dimension dim, which is the wrapped x, is not less than the bound may
 * be anything, since nobody sees what they are; else who does (in scratch). */
const char *unobserved_past(Ctx *c, const Op *load, u32 dim, const AffineWrap *w);
#endif
