/* packed.h - elements of less than a byte: their formats, and how words hold them.
 *
 * A string of bits, least significant first, holds element k in bits k w to k w + w - 1; words of any width cut the
 * same string. Along a tile's last dimension so many words hold so many elements: 1 word of u32 is 8 elements of i4, 3 of
 * u8 are 8 of u3. A format of a width that divides the word's splits every word by itself. The others need whole
 * rows: all words of a row are one string. */
#ifndef TILEC_PACKED_H
#define TILEC_PACKED_H
#include "ir.h"

typedef struct PackedFormat { const char *name; u8 bits, cls, exp, man; } PackedFormat;
/* NULL if there is none of that name. */
const PackedFormat *packed_find(const char *name);
const PackedFormat *packed_at(u32 i);                   /* the i-th of the table; NULL behind the last */
static inline bool packed_is_float(const PackedFormat *f) { return f->cls == DC_F; }
/* Of `values` elements unpacked to 16 bits, elements e and e + this share a register: they lie so in its halves, or are neighbours. */
u32 packed_apart(const PackedFormat *f, u32 values);
/* The format of an unpack or pack. */
const PackedFormat *packed_of(const Op *op);

/* How a row of words is cut: groups of `words` words are groups of `values` elements; the registers of a group are padded
 * to powers of two. rows: a group is a whole row. */
typedef struct Packing { u32 words, values, word_log2, value_log2; bool rows; } Packing;
/* For n words of so many bits in a row; false if the last element is not whole, or a row that must be is too long. */
enum { PACKED_ROW_MAX = 64 };   /* words that one thread holds of such a row */
bool packing_find(u32 n, u32 word_bits, const PackedFormat *f, Packing *out);
/* Of an unpack or pack op. */
Packing packing_of(const Op *op);
/* Layouts of the words and the elements, from a layout for tiles of the words' shape: a thread holds whole groups. */
const Layout *packing_words(Ctx *c, const Packing *p, const Type *words, const Layout *l);
const Layout *packing_values(Ctx *c, const Packing *p, const Type *words, const Layout *l);
/* A layout for which packing_values gives l, but for the order of registers; NULL if there is none. */
const Layout *packing_back(Ctx *c, const Packing *p, const Layout *l);

/* The number that a pattern stands for, and the nearest pattern to a number: ties to even, clamped, a nan gives the largest. */
double packed_decode(const PackedFormat *f, u64 bits);
u64 packed_encode(const PackedFormat *f, double v);
#endif
