/* npy.h - arrays in host memory, and .npy files (versions 1 to 3, little endian, C order). */
#ifndef TILEC_NPY_H
#define TILEC_NPY_H
#include <stddef.h>
#include <stdint.h>
#include "dtype.h"

enum { ARRAY_DIMS = 8 };

typedef struct Array {
  Dtype dtype;
  int ndim;
  size_t shape[ARRAY_DIMS];
  size_t count;                /* elements; 1 for no dimensions */
  void *data;
} Array;

/* Zeroed data of this dtype and shape; 0 or -1 with a sentence in message. */
int array_create(Array *a, Dtype dtype, int ndim, const size_t *shape, char *message, size_t size);
void array_destroy(Array *a);
double array_get(const Array *a, size_t i);
uint64_t array_bits(const Array *a, size_t i);
void array_set_bits(Array *a, size_t i, uint64_t bits);

/* as: DTYPE_NONE, or the type of the elements where numpy has none and the file holds unsigned integers of the
 * same size (bf16, f8e4m3, f8e5m2). */
int npy_read(const char *path, Dtype as, Array *out, char *message, size_t size);
/* Types that numpy lacks are written as unsigned integers. */
int npy_write(const char *path, const Array *a, char *message, size_t size);
/* The same over memory, which npy_read hands on. */
int npy_parse(const unsigned char *bytes, size_t len, Dtype as, Array *out, char *message, size_t size);
#endif
