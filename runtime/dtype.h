/* dtype.h - private: the element types of parameters and how a host number becomes their bits. */
#ifndef TILERT_DTYPE_H
#define TILERT_DTYPE_H
#include <stdint.h>

typedef enum Dtype {
  DTYPE_NONE,
#define DTYPE(ID, name, kind, bits, expbits, manbits, finite) DTYPE_##ID,
#include "dtype.def"
#undef DTYPE
  DTYPE_COUNT
} Dtype;

typedef enum DtypeKind { KIND_BOOL, KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT } DtypeKind;

typedef struct DtypeInfo {
  const char *name;
  DtypeKind kind;
  uint8_t bits, expbits, manbits;
  uint8_t finite;       /* no infinity: the largest exponent holds numbers, all ones is NaN */
} DtypeInfo;

Dtype rt_dtype_find(const char *name);              /* DTYPE_NONE if unknown */
const DtypeInfo *rt_dtype_info(Dtype t);
uint32_t dtype_size(Dtype t);                    /* bytes */
/* 0 if v cannot be held; else 1 and the value's bits in the low bytes of *bits. */
int dtype_encode_int(Dtype t, int64_t v, uint64_t *bits);
/* Round to nearest even; too large becomes infinity, or NaN for types without one. t is a float type. */
uint64_t dtype_encode_float(Dtype t, double v);
/* The number that the low bytes of bits hold, as a double (exact but for 64-bit integers). */
double dtype_decode(Dtype t, uint64_t bits);
#endif
