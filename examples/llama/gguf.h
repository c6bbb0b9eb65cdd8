/* gguf.h - the GGUF container, versions 2 and 3, little-endian: metadata, then a table of tensors, then their bytes. */
#ifndef LLAMA_GGUF_H
#define LLAMA_GGUF_H
#include "tensors.h"

typedef enum GgufType {
  GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64, GGUF_TYPES
} GgufType;

/* A value, or with is_array `count` of them, as they lie in the file. Strings of an array are found once, all of them. */
typedef struct GgufValue {
  Text key;
  GgufType type;
  bool is_array;
  uint64_t count;
  const uint8_t *at;
  const Text *strings;          /* of an array of strings, or the one string */
} GgufValue;

typedef struct Gguf {
  GgufValue *values;
  size_t nvalues;
  Tensors tensors;
} Gguf;

/* Whatever the bytes are: a file, or a sentence that says what is wrong with it. What is found points into the bytes. */
int gguf_read(Memory *memory, const uint8_t *bytes, size_t size, Gguf *out, Fail *fail);
bool gguf_looks_so(const uint8_t *bytes, size_t size);

/* NULL: there is none of that key. */
const GgufValue *gguf_find(const Gguf *g, const char *key);
/* The number, or what is given if there is no such key; another type, or a negative number, is an error. */
int gguf_integer(const Gguf *g, const char *key, uint64_t otherwise, uint64_t *out, Fail *fail);
int gguf_real(const Gguf *g, const char *key, double otherwise, double *out, Fail *fail);
/* Element i of an array of integers. */
int64_t gguf_element(const GgufValue *v, uint64_t i);
#endif
