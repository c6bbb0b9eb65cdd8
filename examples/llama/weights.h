/* weights.h - matrices in the form in which kernels take them, made of tensors of any format. */
#ifndef LLAMA_WEIGHTS_H
#define LLAMA_WEIGHTS_H
#include "gpu.h"
#include "tensors.h"

/* How a matrix is held: as f16, as 8-bit floats with a scale in f32 for each row or for each 8 rows of 128 numbers, or as integers in words of 32 bits, the first of a row lowest,
 * with a scale for each group along the row, and of u4 a least number: w = q * scale + min. No format loses anything that f16 keeps. */
typedef enum Form { FORM_DENSE, FORM_F8, FORM_F8_BLOCKS, FORM_U4, FORM_I8, FORM_I8_16, FORM_COUNT } Form;

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

/* Bytes of its largest matrix as f16, if it is held otherwise: what gpu.widened has to have for a product of many tokens. */
size_t linear_widened(const Linear *l);
/* From how many tokens on the kernels for many are worth their tiles. */
enum { MANY_TOKENS = 65 };

/* y (+)= h w^T for M tokens. Rows of y are stride apart. */
int linear_launch(const Gpu *g, const Linear *l, TilertBuffer *h, TilertBuffer *y, int32_t M, int32_t stride, bool add,
                  TilertError *err);
/* The same of many tokens (MANY_TOKENS on a wide Gpu), one matrix: silu(gate) * up in f16, as token_launch's. */
int gates_launch(const Gpu *g, const Linear *l, TilertBuffer *h, TilertBuffer *gated, int32_t M, TilertError *err);
/* The same of one token for the norm of x, or, where gain is NULL, for h. gated: rows of the matrix are gates and, below them, as many more, and
 * silu(gate) * other goes there in f16, instead of y. */
typedef struct TokenProduct { const TilertBuffer *h, *x, *gain; float eps; TilertBuffer *y, *gated; bool add; } TokenProduct;
int token_launch(const Gpu *g, const Linear *l, const TokenProduct *p, TilertError *err);
/* What token_launch takes: a norm on a GPU or with dense weights, gates only where all rows are one matrix. */
bool linear_takes_norm(const Gpu *g, const Linear *l);
bool linear_takes_gates(const Linear *l);
/* Bytes of its rows, which lie one behind the other in m->w. */
size_t matrix_bytes(const Matrix *m);
int embed_launch(TilertStream *s, const Matrix *m, TilertBuffer *tokens, TilertBuffer *x, int32_t M, TilertError *err);
#endif
