/* fp.h - the number formats in software: exact conversions between double, integers and every float dtype.
 *
 * Every finite value of every dtype is a double, so a conversion is: decode to double (exact), then round once. What PTX's
 * cvt does is what these do:
 *   - ROUND_NEAREST takes ties to even; a rounding that points away from infinity (ROUND_ZERO, ROUND_DOWN of positive
 *     numbers, ROUND_UP of negative ones) gives the largest finite number on overflow;
 *   - `sat` clamps to the destination's finite range, infinities included;
 *   - the 8-bit formats always clamp, because cvt has no other form (.satfinite is mandatory there): 1e9 becomes 448 in
 *     f8e4m3 and 57344 in f8e5m2, and so does infinity. A nan stays a nan;
 *   - a nan becomes the destination's canonical one: positive, with every mantissa bit set (f64: the top one only).
 */
#ifndef TILEC_FP_H
#define TILEC_FP_H
#include "ir.h"

typedef enum FloatRound { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP } FloatRound;
#define ROUND_WORDS "rn rz rm rp"   /* their names, in order */
#define PRECISION_WORDS "tf32 tf32_cut tf32x3 bf16x3 bf16x6 ieee"   /* how a dot takes factors of f32 */

/* Bits of v in format d (a float dtype), rounded once. */
u64 float_encode(DType d, double v, FloatRound r, bool sat);
/* Bits of the integer (-1)^negative * magnitude in format d, rounded once. */
u64 float_encode_int(DType d, bool negative, u64 magnitude, FloatRound r, bool sat);
/* The value of a bit pattern; exact. Bits above the format's width are ignored. */
double float_decode(DType d, u64 bits);
/* The rounding called `word`; NULL: what a conversion to `to` does by itself, nearest for floats and toward zero for integers. */
FloatRound round_find(const char *word, DType to);
/* The rounding of a cast. */
FloatRound cast_rounding(const Op *cast);
/* v rounded to a whole number; not finite ones stay. */
double round_whole(double v, FloatRound r);
/* To 10 mantissa bits, nearest: ties to even (cvt.rn.tf32.f32) or away from zero (cvt.rna). */
float float_round_tf32(float v, bool to_even);
bool float_is_nan(DType d, u64 bits);
u64 float_nan(DType d);
u64 float_max_finite(DType d);
#endif
