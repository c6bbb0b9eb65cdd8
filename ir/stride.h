/* stride.h - how far apart neighbours along a dimension are, where a scalar says it.
 *
 * ir/analysis.c knows runs, neighbours that are 1 apart. Rows are farther: an argument apart, or a multiple of one. Whoever makes
 * addresses then needs one of them, and the scalar.
 */
#ifndef TILEC_STRIDE_H
#define TILEC_STRIDE_H
#include "ir.h"

/* What is added from one element to the next along a dimension: `times`, multiplied by `by` if there is one. A scalar is 0 apart. */
typedef struct Stride {
  bool known;
  const Value *by;           /* a scalar integer, defined wherever the tile is; NULL: 1 */
  i64 times;
} Stride;

/* Of v, a tile of integers or pointers (in elements), along dimension d: exact as long as index arithmetic does not overflow, which is a
 * rule of the language for what becomes an address. */
Stride value_stride(const Value *v, int d);

/* The same between nearly all neighbours: quotients by a constant of NEARLY and more count as equal, remainders by such a constant
 * go on. */
Stride value_stride_nearly(const Value *v, int d);
enum { NEARLY = 32 };
#endif
