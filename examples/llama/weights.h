/* weights.h - matrices in the form in which kernels take them, made of tensors of any format. */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H
#include "gpu.h"
#include "tensors.h"

/* How a matrix is held: as f16, or as integers in words of 32 bits, the first of a row lowest, with a scale for each group along the row, and
 * of u4 a least number: w = q * scale + min. No format loses anything that f16 keeps. */
typedef enum Form { FORM_DENSE, FORM_U4, FORM_I8, FORM_I8_16, FORM_COUNT } Form;

typedef struct Matrix {
  Form form;
  int32_t rows, cols;
  TilertBuffer *w, *scales, *mins;
} Matrix;

/* Matrices one above the other, which one vector is multiplied by. Where their forms are the same they are one matrix. */
enum { LINEAR_MOST = 3 };
typedef struct Linear {
  Matrix part[LINEAR_MOST];
  int count;
  int32_t rows, cols;
} Linear;

int linear_load(Gpu *g, const Tensor *const *tensors, int count, Linear *out, Fail *fail);
/* A tensor's numbers as f32: norms' weights. */
TilertBuffer *vector_load(Gpu *g, const Tensor *t, Fail *fail);
/* Row `row` of a tensor as f32, by the formats' definitions; out has t->cols places. */
void tensor_row(const Tensor *t, uint64_t row, float *out);

/* y (+)= h w^T for M tokens. Rows of y are stride apart. */
int linear_launch(const Gpu *g, const Linear *l, TilertBuffer *h, TilertBuffer *y, int32_t M, int32_t stride, bool add,
                  TilertError *err);
int embed_launch(TilertStream *s, const Matrix *m, TilertBuffer *tokens, TilertBuffer *x, int32_t M, TilertError *err);
#endif
