/* cast_small.c - floats of at most 8 bits, without an instruction for them.
 *
 * To a wider format. The bits of a small float, moved to their places in a wider one, are its value but for a power of two, which a
 * multiplication mends, subnormals included. f16 has the exponent of f8e5m2, so this is f16 already but for eight bits. f8e4m3 has
 * one nan to a sign, of the largest magnitude; one more in its place carries into the bit above, which in f16 makes the exponent a nan's.
 *
 * From a wider format, rounded to nearest. A number M whose last place is worth as much as the last place that the result keeps
 * takes it there: a + M is rounded once, to a multiple of that, and taking M away is exact. Where a is 2^e or more and less than
 * 2^(e + 1), M is 2^e times 2 to the places that go, that is, a's exponent and a constant; a subnormal result keeps the places of the
 * least normal one. What is left is a number of the small format, so multiplying it by a power of two is exact, and its bits are where
 * they are wanted. minimum and maximum clamp first, and pass on nans, canonical ones: those come out with all bits set.
 *
 * f16 does so with two in a register. 2^e times 2^8 is too large for it where e is f8e5m2's 15, but there no exponent has to change:
 * integers add half of what goes, less one if what stays is even, and a nan, which carries into the sign, is set back.
 */
#include "bits.h"
#include <math.h>

#define B g->b

static Val
call(Gen *g, const char *name, Val a, Val b)
{
  Ty t = LLVMTypeOf(a);
  Val args[2] = {a, b};
  return gen_call(g, name, 1, &t, b ? 2 : 1, args);
}

static Val
add(Gen *g, Val x, u32 n)
{
  return LLVMBuildAdd(B, x, gen_u32(g, n), "");
}

/* v, of type t, which is f32 or two halves. */
static Val
number(Ty t, double v)
{
  if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
    return LLVMConstReal(t, v);
  Val one = LLVMConstReal(LLVMGetElementType(t), v), both[2] = {one, one};
  return LLVMConstVector(both, 2);
}

static double
value_of(SmallFloat f, u32 bits)
{
  int bias = (1 << (f.exp - 1)) - 1;
  return ldexp((1 << f.man) + (int)(bits & ((1u << f.man) - 1)), (int)(bits >> f.man) - bias - f.man);
}

SmallFloat
small_of(DType d)
{
  return (SmallFloat){dtype_info[d].exp, dtype_info[d].man, (u32)float_max_finite(d)};
}

static Val
clamped(Gen *g, SmallFloat f, Val x)
{
  Ty t = LLVMTypeOf(x);
  double most = value_of(f, f.most);
  return call(g, "llvm.maximum", call(g, "llvm.minimum", x, number(t, most)), number(t, -most));
}

/* ---- a wider format, as it lies in a 32-bit register ---- */
typedef struct Wide { Ty type; int exp, man; u32 lanes; } Wide;

static Wide
wide_f32(Gen *g)
{
  return (Wide){g->f32, 8, 23, 1};
}

static Wide
wide_halves(Gen *g)
{
  return (Wide){LLVMVectorType(g->f16, 2), 5, 10, 2};
}

static u32
every_lane(Wide w, u32 v)
{
  return w.lanes == 2 ? v | v << 16 : v;
}

/* Clamped numbers rounded to f, and scaled so that their bits, less the w.man - f.man lowest, are f's. */
static Val
rounded(Gen *g, SmallFloat f, Wide w, Val clamp)
{
  int bias = (1 << (f.exp - 1)) - 1, wide_bias = (1 << (w.exp - 1)) - 1;
  Val a = call(g, "llvm.fabs", clamp, NULL);
  Val normal = call(g, "llvm.maxnum", a, number(w.type, ldexp(1, 1 - bias)));
  Val exponent = bits_and(g, gen_bitcast(g, normal, g->i32), every_lane(w, ((1u << w.exp) - 1) << w.man));
  Val m = gen_bitcast(g, add(g, exponent, every_lane(w, (u32)(w.man - f.man) << w.man)), w.type);
  Val kept = LLVMBuildFSub(B, LLVMBuildFAdd(B, a, m, ""), m, "");
  return gen_bitcast(g, LLVMBuildFMul(B, kept, number(w.type, ldexp(1, bias - wide_bias)), ""), g->i32);
}

/* ---- f32 to any of them ---- */

static Val
encode_nearest(Gen *g, SmallFloat f, Val x)
{
  u32 top = (u32)(f.exp + f.man), shift = (u32)(23 - f.man);
  Val c = clamped(g, f, x);
  Val mag = bits_and(g, bits_move(g, rounded(g, f, wide_f32(g), c), shift, 0), bits_low_mask(top));
  Val sign = bits_and(g, bits_move(g, gen_bitcast(g, c, g->i32), 31, top), 1u << top);
  return LLVMBuildOr(B, mag, sign, "");
}

/* Where x's sign is the one that rounds away from zero. */
static Val
rounds_away(Gen *g, Val bits, FloatRound r)
{
  return LLVMBuildICmp(B, r == ROUND_DOWN ? LLVMIntSLT : LLVMIntSGE, bits, gen_u32(g, 0), "");
}

/* |x| below the least normal number: counted in units of the least subnormal, 2^unit. */
static Val
count_units(Gen *g, Val bits, Val mag, int unit, FloatRound r)
{
  Val units = LLVMBuildFMul(B, gen_bitcast(g, mag, g->f32), LLVMConstReal(g->f32, ldexp(1, -unit)), "");
  Val cut = gen_call(g, "llvm.nvvm.f2ui.rz", 0, NULL, 1, &units);
  if (r == ROUND_ZERO)
    return cut;
  Val up = gen_call(g, "llvm.nvvm.f2ui.rp", 0, NULL, 1, &units);
  return LLVMBuildSelect(B, rounds_away(g, bits, r), up, cut, "");
}

/* Rounded in one direction. */
static Val
encode_directed(Gen *g, SmallFloat f, Val x, FloatRound r)
{
  int bias = (1 << (f.exp - 1)) - 1;
  u32 top = (u32)(f.exp + f.man), shift = (u32)(23 - f.man);
  Val bits = gen_bitcast(g, x, g->i32), zero = gen_u32(g, 0);
  Val mag = bits_and(g, bits, 0x7fffffff), sign = bits_and(g, bits_move(g, bits, 31, top), 1u << top);
  Val up = r == ROUND_ZERO ? zero : LLVMBuildSelect(B, rounds_away(g, bits, r), gen_u32(g, bits_low_mask(shift)), zero, "");
  Val rebased = LLVMBuildSub(B, LLVMBuildAdd(B, mag, up, ""), gen_u32(g, (u32)(127 - bias) << 23), "");
  Val normal = call(g, "llvm.umin", bits_move(g, rebased, shift, 0), gen_u32(g, f.most));
  Val is_tiny = LLVMBuildICmp(B, LLVMIntULT, mag, gen_u32(g, (u32)(128 - bias) << 23), "");
  Val small = LLVMBuildSelect(B, is_tiny, count_units(g, bits, mag, 1 - bias - f.man, r), normal, "");
  Val is_nan = LLVMBuildICmp(B, LLVMIntUGT, mag, gen_u32(g, 0x7f800000), "");
  return LLVMBuildSelect(B, is_nan, gen_u32(g, bits_low_mask(top)), LLVMBuildOr(B, small, sign, ""), "");
}

Val
small_encode(Gen *g, SmallFloat f, Val x, FloatRound round)
{
  return round == ROUND_NEAREST ? encode_nearest(g, f, x) : encode_directed(g, f, x, round);
}

/* ---- two halves to two bytes ---- */

/* f8e5m2 in the high byte of each half, of halves that are clamped; bit 15 is not cleared. */
static Val
cut_to_e5m2(Gen *g, Val halves)
{
  Val mag = bits_and(g, halves, 0x7fff7fff), odd = bits_and(g, bits_move(g, mag, 8, 0), 0x00010001);
  Val sum = LLVMBuildAdd(B, add(g, mag, 0x007f007f), odd, "");
  return LLVMBuildSub(B, sum, bits_and(g, bits_move(g, sum, 7, 0), 0x01000100), "");
}

void
small_from_halves(Gen *g, DType to, const Val *x, Val *out)
{
  SmallFloat f = small_of(to);
  Val c = clamped(g, f, words_join(g, x)), bits = gen_bitcast(g, c, g->i32);
  Val high = to == DT_F8E5M2 ? cut_to_e5m2(g, bits) : LLVMBuildShl(B, rounded(g, f, wide_halves(g), c), gen_u32(g, 1), "");
  Val signs = bits_and(g, bits, 0x80008000);
  high = LLVMBuildOr(B, bits_and(g, high, 0x7f007f00), signs, "");
  Val bytes = gen_bitcast(g, high, LLVMVectorType(g->i8, 4));
  for (u32 i = 0; i < 2; i++)
    out[i] = LLVMBuildExtractElement(B, bytes, gen_u32(g, 2 * i + 1), "");
}

/* ---- two bytes to two halves ---- */

/* The word of four bytes that x is one of, and which; NULL: of none. */
static Val
word_around(Val x, u32 *at)
{
  Val v = words_vector(x, at);
  return v && LLVMGetVectorSize(LLVMTypeOf(v)) == 4 ? v : NULL;
}

/* Bytes as the high ones of two halves, the low ones 0. */
static Val
high_bytes(Gen *g, const Val *x)
{
  u32 a = 0, b = 0;
  Val v = word_around(x[0], &a), args[3];
  if (v && word_around(x[1], &b) == v) {
    args[0] = LLVMBuildBitCast(B, v, g->i32, "");
    args[1] = gen_u32(g, 0);
    args[2] = gen_u32(g, 0x0404 | a << 4 | b << 12);
  } else {
    args[0] = LLVMBuildZExt(B, x[0], g->i32, "");
    args[1] = LLVMBuildZExt(B, x[1], g->i32, "");
    args[2] = gen_u32(g, 0x4101);
  }
  return gen_call(g, "llvm.nvvm.prmt", 0, NULL, 3, args);
}

static Val
halves_of(Gen *g, DType from, const Val *x)
{
  Wide w = wide_halves(g);
  Val high = high_bytes(g, x);
  if (from == DT_F8E5M2)
    return gen_bitcast(g, high, w.type);
  Val mag = bits_and(g, high, 0x7f007f00), nan = bits_and(g, add(g, mag, 0x01000100), 0x80008000);
  Val moved = bits_move(g, LLVMBuildOr(B, mag, nan, ""), 1, 0);
  Val v = gen_bitcast(g, LLVMBuildOr(B, moved, bits_and(g, high, 0x80008000), ""), w.type);
  return LLVMBuildFMul(B, v, number(w.type, 256), "");
}

void
small_to_halves(Gen *g, DType from, const Val *x, Val *out)
{
  words_split(g, halves_of(g, from, x), out);
}

Val
small_to_f16(Gen *g, DType from, Val x)
{
  Val both[2] = {x, LLVMConstNull(g->i8)};
  return LLVMBuildExtractElement(B, halves_of(g, from, both), gen_u32(g, 0), "");
}
