/* bits.c - numbers out of strings of bits: integers and small floats as floats, without a conversion instruction.
 *
 * An integer v below 2^10 put into the mantissa of the f16 1024 is 1024 + v: one `lop3`
 * sets it there, one subtraction takes 1024 away, and both do two halves of a register at once. A sign bit is turned over
 * on the way: v ^ 8 is v + 8 for 4-bit v. bf16 has room for 7 bits beside 128, f32 for 23 beside 2^23. Bytes are set there by
 * `prmt`, neighbours beside each other, so casts of loaded 8-bit numbers come here, too; for bf16 the bit that has no room is
 * taken apart: it makes 256 of 128, which is its weight as a number. A small
 * float's exponent and mantissa, moved to their places in a wider format, are its value but for a power of two, which a
 * multiplication mends, subnormals included.
 */
#include "bits.h"
#include <math.h>

#define B g->b
enum { CHUNK = BITS_CHUNK };

Val
bits_and(Gen *g, Val x, u32 mask)
{
  return LLVMBuildAnd(B, x, gen_u32(g, mask), "");
}

/* x moved so that its bit `from` becomes bit `to`. */
Val
bits_move(Gen *g, Val x, u32 from, u32 to)
{
  if (from == to)
    return x;
  return from > to ? LLVMBuildLShr(B, x, gen_u32(g, from - to), "") : LLVMBuildShl(B, x, gen_u32(g, to - from), "");
}

u32
bits_low_mask(u32 bits)
{
  return bits >= 32 ? ~0u : (1u << bits) - 1;
}

/* A chunk with element e in its bits from *at on; what is around it is not cleared. */
static Val
around(Gen *g, const Bits *s, u32 e, u32 *at)
{
  u32 bit = e * s->f->bits;
  *at = bit % CHUNK;
  if (*at + s->f->bits <= CHUNK)
    return s->chunk[bit / CHUNK];
  Val args[3] = {s->chunk[bit / CHUNK + 1], s->chunk[bit / CHUNK], gen_u32(g, *at)};
  *at = 0;
  return gen_call(g, "llvm.fshr", 1, &g->i32, 3, args);
}

Val
bits_int(Gen *g, const Bits *s, u32 e)
{
  u32 at, w = s->f->bits;
  Val x = around(g, s, e, &at);
  bool is_signed = s->f->cls == DC_I;
  if (is_signed) {
    x = bits_move(g, x, at + w - 1, CHUNK - 1);
    x = LLVMBuildAShr(B, x, gen_u32(g, CHUNK - w), "");
  } else {
    x = bits_and(g, bits_move(g, x, at, 0), bits_low_mask(w));
  }
  Ty t = gen_elem_type(g, s->dt, false);
  u32 bits = dtype_bits(s->dt);
  if (bits == CHUNK)
    return x;
  return bits < CHUNK ? LLVMBuildTrunc(B, x, t, "") : is_signed ? LLVMBuildSExt(B, x, t, "") : LLVMBuildZExt(B, x, t, "");
}

/* ---- floats ---- */

/* Where numbers are made: the bits of 2^mantissa bits, and what is done with one or two of them in a register. */
typedef struct Maker { Ty type; u32 man, exp, lanes; u32 one; } Maker;

static Maker
maker_for(Gen *g, const Bits *s)
{
  bool small = s->f->exp <= 4 && s->f->bits <= 8;
  if (s->dt == DT_F16 && small)
    return (Maker){LLVMVectorType(g->f16, 2), 10, 5, 2, 0x3c00};
  if (s->dt == DT_BF16)
    return (Maker){LLVMVectorType(g->bf16, 2), 7, 8, 2, 0x3f80};
  return (Maker){g->f32, 23, 8, 1, 0x3f800000};
}

/* v in every lane of a 32-bit register. */
static u32
every_lane(const Maker *m, u32 v)
{
  return m->lanes == 2 ? v | v << 16 : v;
}

static Val
lanes_const(Gen *g, const Maker *m, double v)
{
  if (m->lanes == 1)
    return LLVMConstReal(m->type, v);
  Val one = LLVMConstReal(LLVMGetElementType(m->type), v), both[2] = {one, one};
  return LLVMConstVector(both, 2);
}

/* bf16 before sm_90 has fma, and neither addition nor multiplication. */
static bool
lacks_arith(Gen *g, const Maker *m)
{
  return m->lanes == 2 && LLVMGetElementType(m->type) == g->bf16 && !target_has(g->target, F_BF16_ARITH);
}

static Val
by_fma(Gen *g, Val a, Val b, Val c)
{
  Ty t = LLVMTypeOf(a);
  Val args[3] = {a, b, c};
  return gen_call(g, "llvm.fma", 1, &t, 3, args);
}

static Val
lanes_add(Gen *g, const Maker *m, Val a, Val b)
{
  return lacks_arith(g, m) ? by_fma(g, a, lanes_const(g, m, 1), b) : LLVMBuildFAdd(B, a, b, "");
}

/* Integers in every lane, at bit `at` of each. They stay there if the mantissa has room, and the subtraction then is an fma, exact
 * like it, that takes 2^at away as well; else they move down by a distance that others share. */
static Val
make_integers(Gen *g, const Bits *s, const Maker *m, Val x, u32 at)
{
  u32 w = s->f->bits, sign = s->f->cls == DC_I ? 1u << (w - 1) : 0;
  u32 base = m->one + (m->man << m->man);                /* the bits of 2^man */
  u32 room = at % (m->man / w * w), stays = lacks_arith(g, m) || room + w > m->man ? 0 : room;
  u32 mask = every_lane(m, bits_low_mask(w) << stays), set = every_lane(m, base | sign << stays);
  Val args[3] = {bits_move(g, x, at, stays), gen_u32(g, mask), gen_u32(g, set)};
  x = LLVMBuildBitCast(B, ptx_value(g, PTX_AND_XOR, g->i32, 3, args, NULL, NULL), m->type, "");
  Val less = lanes_const(g, m, -(ldexp(1, (int)(m->man - stays)) + sign));
  return stays ? by_fma(g, x, lanes_const(g, m, ldexp(1, -(int)stays)), less) : lanes_add(g, m, x, less);
}

/* Small floats in every lane, likewise. */
static Val
make_floats(Gen *g, const Bits *s, const Maker *m, Val x, u32 at)
{
  u32 w = s->f->bits, top = m->man + m->exp, mag = bits_low_mask(w - 1) << (m->man - s->f->man);
  Val sign = bits_and(g, bits_move(g, x, at + w - 1, top), every_lane(m, 1u << top));
  Val rest = bits_and(g, bits_move(g, x, at, m->man - s->f->man), every_lane(m, mag));
  Val v = LLVMBuildBitCast(B, LLVMBuildOr(B, sign, rest, ""), m->type, "");
  Val scale = lanes_const(g, m, ldexp(1, (1 << (m->exp - 1)) - (1 << (s->f->exp - 1))));
  if (lacks_arith(g, m))
    return by_fma(g, v, scale, lanes_const(g, m, -0.0));
  return LLVMBuildFMul(B, v, scale, "");
}

static bool
are_bytes(const Bits *s)
{
  return s->f->bits == 8 && !packed_is_float(s->f);
}

/* 128 + low and 128 + high of bf16, high being 0 or 128: the byte is low - high if it has a sign, else their sum. */
static Val
make_bf16_bytes(Gen *g, const Bits *s, const Maker *m, Val bits)
{
  Val low = LLVMBuildBitCast(B, bits_and(g, bits, 0xff7fff7f), m->type, "");
  Val high = LLVMBuildBitCast(B, bits_and(g, bits, 0xff80ff80), m->type, "");
  if (s->f->cls != DC_I)
    return lanes_add(g, m, lanes_add(g, m, low, lanes_const(g, m, -256)), high);
  return lacks_arith(g, m) ? by_fma(g, high, lanes_const(g, m, -1), low) : LLVMBuildFSub(B, low, high, "");
}

/* Bytes e, e + 1, ... of a chunk, one in every lane. */
static Val
make_bytes(Gen *g, const Bits *s, const Maker *m, u32 e)
{
  u32 k = e % 4, base = m->one + (m->man << m->man), sign = s->f->cls == DC_I && m->man > 7 ? 0x80 : 0;
  Val x = s->chunk[e / 4];
  if (sign)
    x = LLVMBuildXor(B, x, gen_u32(g, 0x80808080), "");
  Val args[3] = {x, gen_u32(g, every_lane(m, base)), gen_u32(g, m->lanes == 2 ? 0x7050 + k + ((k + 1) << 8) : 0x7650 + k)};
  x = gen_call(g, "llvm.nvvm.prmt", 0, NULL, 3, args);
  if (m->man == 7)
    return make_bf16_bytes(g, s, m, x);
  return LLVMBuildFAdd(B, LLVMBuildBitCast(B, x, m->type, ""), lanes_const(g, m, -(ldexp(1, (int)m->man) + sign)), "");
}

static Val
make(Gen *g, const Bits *s, const Maker *m, Val x, u32 at)
{
  return packed_is_float(s->f) ? make_floats(g, s, m, x, at) : make_integers(g, s, m, x, at);
}

/* The only two numbers of a byte: it comes to both halves, in each of which another one stays where it is. */
static Val
make_beside(Gen *g, const Bits *s, const Maker *m)
{
  u32 w = s->f->bits, sign = s->f->cls == DC_I ? 1u << (w - 1) : 0, mask = bits_low_mask(w), base = m->one + (m->man << m->man);
  Val both[3] = {s->chunk[0], gen_u32(g, 0), gen_u32(g, 0x4040)};
  Val args[3] = {gen_call(g, "llvm.nvvm.prmt", 0, NULL, 3, both), gen_u32(g, mask | mask << (16 + w)),
                 gen_u32(g, every_lane(m, base) | sign | sign << (16 + w))};
  Val x = LLVMBuildBitCast(B, ptx_value(g, PTX_AND_XOR, g->i32, 3, args, NULL, NULL), m->type, "");
  Ty t = LLVMGetElementType(m->type);
  Val by[2] = {LLVMConstReal(t, 1), LLVMConstReal(t, ldexp(1, -(int)w))};
  Val less[2] = {LLVMConstReal(t, -(ldexp(1, (int)m->man) + sign)), LLVMConstReal(t, -(ldexp(1, (int)(m->man - w)) + sign))};
  return by_fma(g, x, LLVMConstVector(by, 2), LLVMConstVector(less, 2));
}

static bool
are_beside(const Bits *s, const Maker *m)
{
  u32 w = s->f->bits;
  return s->nvalues == 2 && !packed_is_float(s->f) && 2 * w <= 8 && 2 * w <= m->man;
}

/* Elements a and b, one in each half of a register. b at nvalues or beyond: none. */
static void
unpack_halves(Gen *g, const Bits *s, const Maker *m, u32 a, u32 b, Val *out)
{
  u32 at, at_b, w = s->f->bits;
  Val x = around(g, s, a, &at);
  bool aligned = a * w / CHUNK == b * w / CHUNK && b * w == a * w + 16, bytes = are_bytes(s), beside = are_beside(s, m);
  if (bytes || beside) {
    at = 0;
  } else if (!aligned && b < s->nvalues) {
    Val y = around(g, s, b, &at_b);
    x = bits_and(g, bits_move(g, x, at, 0), bits_low_mask(w));
    y = bits_and(g, bits_move(g, y, at_b, 16), bits_low_mask(w) << 16);
    x = LLVMBuildOr(B, x, y, "");
    at = 0;
  } else if (!aligned) {
    x = bits_and(g, bits_move(g, x, at, 0), bits_low_mask(w));
    at = 0;
  }
  Val v = beside ? make_beside(g, s, m) : bytes ? make_bytes(g, s, m, a) : make(g, s, m, x, at);
  out[a] = LLVMBuildExtractElement(B, v, gen_u32(g, 0), "");
  if (b < s->nvalues)
    out[b] = LLVMBuildExtractElement(B, v, gen_u32(g, 1), "");
}

static void
unpack_pairs(Gen *g, const Bits *s, const Maker *m, Val *out)
{
  u32 apart = packed_apart(s->f, s->nvalues);
  for (u32 e = 0; e < s->nvalues; e++)
    if (e / apart % 2 == 0)
      unpack_halves(g, s, m, e, e + apart, out);
}

bool
bits_in_pairs(Gen *g, const Bits *s)
{
  return maker_for(g, s).lanes == 2;
}

void
bits_pairs(Gen *g, const Bits *s, Val *out)
{
  Maker m = maker_for(g, s);
  unpack_pairs(g, s, &m, out);
}

Val
bits_f32(Gen *g, const Bits *s, u32 e)
{
  Maker m = maker_for(g, s);
  u32 at;
  Val x = around(g, s, e, &at);
  return are_bytes(s) ? make_bytes(g, s, &m, e) : make(g, s, &m, x, at);
}

void
bits_to_floats(Gen *g, Val word, bool is_signed, DType to, u32 n, Val *out)
{
  Bits s = {.f = packed_find(is_signed ? "i8" : "u8"), .dt = to, .chunk = &word, .nvalues = n};
  if (bits_in_pairs(g, &s)) {
    bits_pairs(g, &s, out);
    return;
  }
  for (u32 e = 0; e < n; e++)
    out[e] = bits_f32(g, &s, e);
}
