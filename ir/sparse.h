/* sparse.h - factors of which two of four numbers along K are kept: 2:4 structured sparsity (PTX ISA, "Sparse matrix storage").
 *
 * Columns of a matrix of M x K are in groups of four. The compressed factor, M x K/2, has two of each group, in their order; the others
 * are zeros. Metadata is u16, M x K/16: a word is for 16 columns, 8 numbers, its lowest four bits for the first group: there the lower two
 * are the first number's place in the group, the upper two the second's, which is higher. A group of all zero bits means places 0 and 1,
 * as 0b0100 does: so what a mask or the edge of a tensor leaves out is metadata too. */
#ifndef TILEC_SPARSE_H
#define TILEC_SPARSE_H
#include "ir.h"

enum { SPARSE_GROUP = 4, SPARSE_KEPT = 2, SPARSE_WORD = 16, SPARSE_HELD = 8, SPARSE_FIRST_TWO = 0x4444 };
/* The PTX that has instructions for metadata in order, as x10. */
enum { SPARSE_PTX = 85 };

/* The column, of a word's 16, of kept number i of its 8; false if the group's places are not in order. */
bool sparse_column(u32 word, u32 i, u32 *column);
/* NULL, or what is wrong with the factors of a product (in scratch), whose sum does not matter. */
const char *sparse_error(Ctx *c, const Type *a, const Type *meta, const Type *b);
#endif
