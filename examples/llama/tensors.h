/* tensors.h - named tensors of a file in memory. gguf.c and safetensors.c find them; nothing is copied. */
#ifndef LLAMA_TENSORS_H
#define LLAMA_TENSORS_H
#include "common.h"

typedef enum Format {
#define FORMAT(id, ...) FORMAT_##id,
#include "formats.def"
#undef FORMAT
  FORMAT_COUNT
} Format;
enum { NOT_IN_GGUF = -1 };
typedef struct FormatInfo { const char *name; int64_t gguf; const char *safetensors; uint32_t elements, bytes; } FormatInfo;
extern const FormatInfo format_infos[FORMAT_COUNT];

/* A matrix or a vector: rows of cols elements, row after row; a vector is one row. */
typedef struct Tensor Tensor;
struct Tensor {
  Text name;
  Format format;
  uint64_t rows, cols;
  const uint8_t *data;
  size_t size;                  /* bytes */
  const Tensor *scale;          /* of 8-bit floats, by which they are multiplied: one number for all, one for each row or block; NULL: none */
  bool blocks;                  /* scale has one for each block of 128 x 128, those at the edges smaller */
};
enum { BLOCK_EXTENT = 128 };
typedef struct Tensors { Tensor *at; size_t count; } Tensors;

/* Sets a tensor's data to its bytes behind `base`, of which there are so many; extents that no such file can have, rows that are no whole
 * blocks and bytes outside of it are errors. declared: the size that the file claims, or SIZE_MAX. */
int tensor_place(Tensor *t, const uint8_t *base, size_t available, uint64_t offset, size_t declared, Fail *fail);
/* Two of one name are an error, and a scale of another extent. Sorts them, for tensors_find, and finds scales. */
int tensors_index(Tensors *all, Fail *fail);
/* NULL if there is none. */
const Tensor *tensors_find(const Tensors *all, const char *name);
#endif
