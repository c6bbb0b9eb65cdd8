/* fp.h - the number formats in software: exact conversions between double, integers and every float dtype.
 *
 * Every finite value of every dtype is a double, so a conversion is: decode to double (exact), then round once. What PTX's
 * cvt does is what these do:
 *   - ROUND_NEAREST takes ties to even; ROUND_ZERO gives the largest finite number on overflow;
 *   - `sat` clamps to the destination's finite range, infinities included;
 *   - the 8-bit formats always clamp, because cvt has no other form (.satfinite is mandatory there): 1e9 becomes 448 in
 *     f8e4m3 and 57344 in f8e5m2, and so does infinity. A nan stays a nan;
 *   - a nan becomes the destination's canonical one: positive, with every mantissa bit set (f64: the top one only).
 */
#ifndef TILEC_FP_H
#define TILEC_FP_H
#include "ir.h"

typedef enum FloatRound { ROUND_NEAREST, ROUND_ZERO } FloatRound;

/* Bits of v in format d (a float dtype), rounded once. */
u64 float_encode(DType d, double v, FloatRound r, bool sat);
/* Bits of the integer (-1)^negative * magnitude in format d, rounded once. */
u64 float_encode_int(DType d, bool negative, u64 magnitude, FloatRound r, bool sat);
/* The value of a bit pattern; exact. Bits above the format's width are ignored. */
double float_decode(DType d, u64 bits);
/* cvt.rna.tf32.f32: 10 mantissa bits, nearest, ties away from zero. */
float float_round_tf32(float v);
bool float_is_nan(DType d, u64 bits);
u64 float_nan(DType d);
u64 float_max_finite(DType d);
#endif
