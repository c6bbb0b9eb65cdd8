/* bits.h - strings of bits that hold numbers, private to bits.c, cast.c, cast_small.c and lower_packed.c. */
#ifndef TILEC_BITS_H
#define TILEC_BITS_H
#include "gen.h"
#include "packed.h"

enum { BITS_CHUNK = 32 };

typedef struct Bits {
  const PackedFormat *f;
  DType dt;                /* of the elements as numbers */
  Val *chunk;              /* the string of bits, 32 by 32; what is beyond its end is 0 */
  u32 nvalues;
} Bits;

Val bits_and(Gen *g, Val x, u32 mask);                       /* x is an i32, here and below */
Val bits_move(Gen *g, Val x, u32 from, u32 to);              /* so that its bit `from` becomes bit `to` */
u32 bits_low_mask(u32 bits);
/* Element e, of an integer format, as an integer of s->dt. */
Val bits_int(Gen *g, const Bits *s, u32 e);
/* Numbers of s->dt come two at a time, all of them by bits_pairs; else one by one, as f32. */
bool bits_in_pairs(Gen *g, const Bits *s);
void bits_pairs(Gen *g, const Bits *s, Val *out);
Val bits_f32(Gen *g, const Bits *s, u32 e);
/* The n lowest bytes of an i32 as numbers of f16, bf16 or f32. */
void bits_to_floats(Gen *g, Val word, bool is_signed, DType to, u32 n, Val *out);
#endif
