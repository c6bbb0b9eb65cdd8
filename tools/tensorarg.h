/* tensorarg.h - arrays for tensor parameters: extents are those of the array or of a part of it, strides the array's. */
#ifndef TILEC_TENSORARG_H
#define TILEC_TENSORARG_H
#include "npy.h"
#include "tilert.h"

typedef struct TensorView {
  TilertTensorArg arg;                 /* points into the rest; the buffer is the caller's to set */
  int64_t extents[TILERT_MAX_RANK], strides[TILERT_MAX_RANK];
} TensorView;

/* The rank of "tensor<f16, 2>", with the elements' type copied to element; 0: it is no such type. */
unsigned tensorarg_rank(const char *type, char element[64]);
/* a as a tensor of this rank; part ("100x64"; NULL: all): so many of each dimension, from the beginning. 0, or -1 and a sentence. */
int tensorarg_view(const Array *a, unsigned rank, const char *part, TensorView *out, char *message, size_t size);
#endif
