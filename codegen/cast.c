/* cast.c - value conversions between all pairs of number types, with the meaning of ir/fp.h.
 *
 * Floats go through f32 (or f64): widening is exact, narrowing rounds once. Where a value would be rounded twice on its
 * way (f64 to bf16, 64-bit integers to bf16), the first step rounds to odd: it keeps in the last bit whether anything
 * was lost, so that the second rounding decides as if it saw the whole value.
 * The 8-bit floats always clamp to their finite range; targets without an instruction for them have codegen/cast_small.c.
 */
#include "bits.h"
#include <math.h>

#define B g->b
typedef struct Rounding { FloatRound r; bool sat; } Rounding;
static const char *const suffixes[] = {"rn", "rz", "rm", "rp"};   /* by FloatRound */

static Val
constant(Val like, u64 v)
{
  return LLVMConstInt(LLVMTypeOf(like), v, 0);
}

static Val
call1(Gen *g, const char *name, Val x)
{
  return gen_call(g, name, 0, NULL, 1, &x);
}

static Val
magnitude(Gen *g, Val x)
{
  Ty t = LLVMTypeOf(x);
  return gen_call(g, "llvm.fabs", 1, &t, 1, &x);
}

/* ---- 8-bit floats ---- */
static bool
is_fp8(DType d)
{
  return dtype_is_float(d) && dtype_bits(d) == 8;
}

static Val
fp8_widen(Gen *g, DType from, Val x)
{
  if (!target_has(g->target, F_CVT_FP8))
    return LLVMBuildFPExt(B, small_to_f16(g, from, x), g->f32, "");
  const char *name = from == DT_F8E4M3 ? "llvm.nvvm.e4m3x2.to.f16x2.rn" : "llvm.nvvm.e5m2x2.to.f16x2.rn";
  Val pair = call1(g, name, LLVMBuildZExt(B, x, g->i16, ""));
  return LLVMBuildFPExt(B, LLVMBuildExtractElement(B, pair, gen_u32(g, 0), ""), g->f32, "");
}

static Val
fp8_narrow(Gen *g, DType to, Val x, FloatRound r)
{
  if (r != ROUND_NEAREST || !target_has(g->target, F_CVT_FP8))
    return LLVMBuildTrunc(B, small_encode(g, small_of(to), x, r), g->i8, "");
  const char *name = to == DT_F8E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
  Val pair[2] = {LLVMConstReal(g->f32, 0), x};
  return LLVMBuildTrunc(B, gen_call(g, name, 0, NULL, 2, pair), g->i8, "");
}

/* ---- float to float ---- */

/* The i32 of which x is the low (0) or the high (1) half; NULL if x comes from elsewhere. */
static Val
word_of_half(Val x, u32 *half)
{
  Val pair = words_vector(x, half);
  if (!pair || !LLVMIsABitCastInst(pair))
    return NULL;
  Val word = LLVMGetOperand(pair, 0);
  Ty t = LLVMTypeOf(word);
  return LLVMGetTypeKind(t) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) == 32 ? word : NULL;
}

/* A bf16 is the upper half of its f32: one shift or mask of the word that holds two, where cvt.f32.bf16 takes the half out first. */
static Val
bf16_widen(Gen *g, Val x)
{
  u32 half = 0;
  Val word = word_of_half(x, &half);
  if (!word)
    return LLVMBuildFPExt(B, x, g->f32, "");
  Val bits = half ? LLVMBuildAnd(B, word, gen_u32(g, 0xffff0000), "") : LLVMBuildShl(B, word, gen_u32(g, 16), "");
  return LLVMBuildBitCast(B, bits, g->f32, "");
}

static Val
widen(Gen *g, DType from, Val x)
{
  if (dtype_bits(from) == 8)
    return fp8_widen(g, from, x);
  if (from == DT_BF16)
    return bf16_widen(g, x);
  return dtype_bits(from) == 16 ? LLVMBuildFPExt(B, x, g->f32, "") : x;
}

/* f64 to f32, rounded to odd. */
static Val
to_f32_odd(Gen *g, Val x)
{
  Val cut = call1(g, "llvm.nvvm.d2f.rz", x);
  Val lost = LLVMBuildFCmp(B, LLVMRealONE, LLVMBuildFPExt(B, cut, g->f64, ""), x, "");
  Val bits = LLVMBuildBitCast(B, cut, g->i32, "");
  return LLVMBuildBitCast(B, LLVMBuildOr(B, bits, LLVMBuildZExt(B, lost, g->i32, ""), ""), g->f32, "");
}

/* x clamped to the finite range of `to`; nan stays nan. */
static Val
clamp_finite(Gen *g, DType to, Val x)
{
  Ty t = LLVMTypeOf(x);
  Val max = LLVMConstReal(t, float_decode(to, float_max_finite(to))), args[2] = {max, x};
  Val beyond = LLVMBuildFCmp(B, LLVMRealOGT, magnitude(g, x), max, "");
  return LLVMBuildSelect(B, beyond, gen_call(g, "llvm.copysign", 1, &t, 2, args), x, "");
}

static Val
narrow_16(Gen *g, DType to, Val x, FloatRound r)
{
  Ty t = gen_elem_type(g, to, false);
  if (r == ROUND_NEAREST)
    return LLVMBuildFPTrunc(B, x, t, "");
  return ptx_value(g, PTX_CVT, t, 1, &x, arena_printf(g->arena, "%s.%s", suffixes[r], dtype_info[to].name), "f32");
}

/* x is f32 or f64, and not of type `to` already. */
static Val
narrow(Gen *g, DType to, Val x, Rounding r)
{
  if (r.sat && dtype_bits(to) > 8)
    x = clamp_finite(g, to, x);
  if (to == DT_F32)
    return r.r != ROUND_NEAREST ? call1(g, arena_printf(g->arena, "llvm.nvvm.d2f.%s", suffixes[r.r]), x)
                                : LLVMBuildFPTrunc(B, x, g->f32, "");
  if (LLVMTypeOf(x) == g->f64)
    x = to_f32_odd(g, x);
  return dtype_bits(to) == 8 ? fp8_narrow(g, to, x, r.r) : narrow_16(g, to, x, r.r);
}

static Val
float_to_float(Gen *g, DType from, DType to, Val x, Rounding r)
{
  Val wide = widen(g, from, x);
  Ty want = gen_elem_type(g, to, false);
  if (LLVMTypeOf(wide) == want)
    return r.sat ? clamp_finite(g, to, wide) : wide;
  if (to == DT_F64) {
    wide = LLVMBuildFPExt(B, wide, want, "");
    return r.sat ? clamp_finite(g, to, wide) : wide;
  }
  return narrow(g, to, wide, r);
}

/* ---- between integers and floats ---- */

/* Where x was made a whole number, what it was made of, and by which rounding: the conversion does that, too. */
static Val
before_rounding(Val x, FloatRound *r)
{
  static const struct { const char *name; FloatRound round; } whole[] = {
    {"llvm.trunc", ROUND_ZERO}, {"llvm.rint", ROUND_NEAREST}, {"llvm.floor", ROUND_DOWN}, {"llvm.ceil", ROUND_UP}};
  unsigned id = LLVMIsACallInst(x) ? LLVMGetIntrinsicID(LLVMGetCalledValue(x)) : 0;
  for (u32 i = 0; id && i < COUNT(whole); i++)
    if (id == LLVMLookupIntrinsicID(whole[i].name, strlen(whole[i].name))) {
      *r = whole[i].round;
      return LLVMGetOperand(x, 0);
    }
  return x;
}

/* cvt saturates; it gives 0 for a nan too, unless f64 or a 64-bit result is in play. */
static Val
float_to_int(Gen *g, DType from, DType to, Val x, FloatRound r)
{
  u32 bits = dtype_bits(to);
  bool s = dtype_is_signed(to), is_f64 = from == DT_F64;
  Val wide = before_rounding(widen(g, from, x), &r);
  Val v = call1(g, arena_printf(g->arena, "llvm.nvvm.%c2%s%s.%s", is_f64 ? 'd' : 'f', s ? "" : "u", bits == 64 ? "ll" : "i",
                                suffixes[r]), wide);
  if (is_f64 || bits == 64)
    v = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealUNO, wide, wide, ""), constant(v, 0), v, "");
  if (bits >= 32)
    return v;
  u32 max = s ? (1u << (bits - 1)) - 1 : (1u << bits) - 1;
  Val hi[2] = {v, gen_u32(g, max)};
  v = gen_call(g, s ? "llvm.smin" : "llvm.umin", 1, &g->i32, 2, hi);
  Val lo[2] = {v, gen_u32(g, ~max)};
  if (s)
    v = gen_call(g, "llvm.smax", 1, &g->i32, 2, lo);
  return LLVMBuildTrunc(B, v, gen_elem_type(g, to, false), "");
}

/* A 64-bit integer beyond 2^53 with its low bits gathered into one: an f64 holds it, and halfway cases stay apart. */
static Val
sticky_53(Gen *g, Val x, bool s)
{
  Val low = LLVMBuildAnd(B, x, constant(x, 0xfff), "");
  Val some = LLVMBuildICmp(B, LLVMIntNE, low, constant(x, 0), "");
  Val high = LLVMBuildAnd(B, x, constant(x, ~0xfffull), "");
  Val gathered = LLVMBuildOr(B, high, LLVMBuildSelect(B, some, constant(x, 0x800), constant(x, 0), ""), "");
  Val shifted = s ? LLVMBuildAShr(B, x, constant(x, 53), "") : LLVMBuildLShr(B, x, constant(x, 53), "");
  Val near = LLVMBuildICmp(B, LLVMIntULE, LLVMBuildAdd(B, shifted, constant(x, s), ""), constant(x, s), "");
  return LLVMBuildSelect(B, near, x, gathered, "");
}

static Val
int_to_f64(Gen *g, Val x, bool s)
{
  return s ? LLVMBuildSIToFP(B, x, g->f64, "") : LLVMBuildUIToFP(B, x, g->f64, "");
}

/* Integers to f32 and f64 are one instruction; the narrow formats go through an f64 that holds the whole value. */
static Val
int_to_float(Gen *g, DType from, DType to, Val x, Rounding r)
{
  bool s = dtype_is_signed(from);
  if (r.r != ROUND_NEAREST && (to == DT_F32 || to == DT_F64) && dtype_bits(from) >= 32) {
    const char *source = arena_printf(g->arena, "%c%u", s ? 's' : 'u', dtype_bits(from));
    return ptx_value(g, PTX_CVT, gen_elem_type(g, to, false), 1, &x,
                     arena_printf(g->arena, "%s.%s", suffixes[r.r], dtype_info[to].name), source);
  }
  if (to == DT_F32 || to == DT_F64) {
    Ty t = gen_elem_type(g, to, false);
    return s ? LLVMBuildSIToFP(B, x, t, "") : LLVMBuildUIToFP(B, x, t, "");
  }
  if (to == DT_F16 && r.r == ROUND_NEAREST && !r.sat)
    return s ? LLVMBuildSIToFP(B, x, g->f16, "") : LLVMBuildUIToFP(B, x, g->f16, "");
  if (dtype_bits(from) <= 16)
    return narrow(g, to, s ? LLVMBuildSIToFP(B, x, g->f32, "") : LLVMBuildUIToFP(B, x, g->f32, ""), r);
  return narrow(g, to, int_to_f64(g, dtype_bits(from) == 64 ? sticky_53(g, x, s) : x, s), r);
}

/* ---- integers ---- */
static Val
int_resize(Gen *g, Val x, Ty to, bool s)
{
  u32 have = LLVMGetIntTypeWidth(LLVMTypeOf(x)), want = LLVMGetIntTypeWidth(to);
  if (have >= want)
    return have > want ? LLVMBuildTrunc(B, x, to, "") : x;
  return s ? LLVMBuildSExt(B, x, to, "") : LLVMBuildZExt(B, x, to, "");
}

static Val
int_clamp(Gen *g, Val x, const char *which, u64 limit)
{
  Val args[2] = {x, LLVMConstInt(g->i64, limit, 0)};
  return gen_call(g, which, 1, &g->i64, 2, args);
}

static Val
int_to_int(Gen *g, DType from, DType to, Val x, bool sat)
{
  bool s = dtype_is_signed(from), to_s = dtype_is_signed(to);
  Ty t = gen_elem_type(g, to, false);
  if (!sat)
    return int_resize(g, x, t, s);
  u64 max = to_s ? (1ull << (dtype_bits(to) - 1)) - 1 : ~0ull >> (64 - dtype_bits(to));
  Val wide = int_resize(g, x, g->i64, s);
  if (s)
    wide = int_clamp(g, wide, "llvm.smax", to_s ? ~max : 0);
  if (!s || (i64)max >= 0)
    wide = int_clamp(g, wide, s ? "llvm.smin" : "llvm.umin", max);
  return int_resize(g, wide, t, s);
}

static Val
to_bool(Gen *g, DType from, Val x)
{
  if (!dtype_is_float(from))
    return LLVMBuildICmp(B, LLVMIntNE, x, constant(x, 0), "");
  Val wide = widen(g, from, x);
  return LLVMBuildFCmp(B, LLVMRealUNE, wide, LLVMConstReal(LLVMTypeOf(wide), 0), "");
}

static Val
convert(Gen *g, DType from, DType to, Val x, Rounding r)
{
  if (from == to && !r.sat)
    return x;
  if (to == DT_I1)
    return to_bool(g, from, x);
  if (dtype_is_float(from))
    return dtype_is_float(to) ? float_to_float(g, from, to, x, r) : float_to_int(g, from, to, x, r.r);
  return dtype_is_float(to) ? int_to_float(g, from, to, x, r) : int_to_int(g, from, to, x, r.sat);
}

Val
cast_nearest(Gen *g, DType from, DType to, Val x)
{
  return convert(g, from, to, x, (Rounding){round_find(NULL, to), false});
}

/* One element of dtype `from` as dtype `to`; rounding and saturation from op's attributes. */
Val
cast_elem(Gen *g, const Op *op, DType from, DType to, Val x)
{
  Rounding r = {cast_rounding(op), op_int(op, AT_SAT, 0) != 0};
  return convert(g, from, to, x, r);
}

/* ---- two at a time ---- */

/* f32 to two of a narrower float, in the low and the high half of the result. */
static const char *
narrow_pair_name(Gen *g, DType to)
{
  bool has_fp8 = target_has(g->target, F_CVT_FP8);
  switch (to) {
  case DT_F16:    return "llvm.nvvm.ff2f16x2.rn";
  case DT_BF16:   return "llvm.nvvm.ff2bf16x2.rn";
  case DT_F8E4M3: return has_fp8 ? "llvm.nvvm.ff.to.e4m3x2.rn" : NULL;
  case DT_F8E5M2: return has_fp8 ? "llvm.nvvm.ff.to.e5m2x2.rn" : NULL;
  default:        return NULL;
  }
}

/* f16 and f32 to 8-bit floats, 8-bit floats to f16, bf16 and f32; and f32 to 16 bits. */
bool
cast_has_pairs(Gen *g, const Op *op)
{
  DType from = op_operand(op, 0)->type->dt, to = op_result(op)->type->dt;
  bool nearest = cast_rounding(op) == ROUND_NEAREST && (!op_int(op, AT_SAT, 0) || dtype_bits(to) == 8);
  if (from == DT_F32)
    return nearest && narrow_pair_name(g, to);
  if (from == DT_F16)
    return nearest && is_fp8(to);
  return nearest && is_fp8(from) && (to == DT_F32 || to == DT_F16 || to == DT_BF16);
}

static void
narrow_pair(Gen *g, DType to, const Val *x, Val *out)
{
  Val high_low[2] = {x[1], x[0]}, v = gen_call(g, narrow_pair_name(g, to), 0, NULL, 2, high_low);
  words_split(g, gen_bitcast(g, v, LLVMVectorType(gen_elem_type(g, to, false), 2)), out);
}

static void
fp8_to_halves(Gen *g, DType from, const Val *x, Val *out)
{
  if (!target_has(g->target, F_CVT_FP8)) {
    small_to_halves(g, from, x, out);
    return;
  }
  const char *name = from == DT_F8E4M3 ? "llvm.nvvm.e4m3x2.to.f16x2.rn" : "llvm.nvvm.e5m2x2.to.f16x2.rn";
  words_split(g, call1(g, name, LLVMBuildBitCast(B, words_join(g, x), g->i16, "")), out);
}

static void
halves_to_fp8(Gen *g, DType to, const Val *x, Val *out)
{
  if (!target_has(g->target, F_CVT_FP8)) {
    small_from_halves(g, to, x, out);
    return;
  }
  const char *name = to == DT_F8E4M3 ? "llvm.nvvm.f16x2.to.e4m3x2.rn" : "llvm.nvvm.f16x2.to.e5m2x2.rn";
  words_split(g, gen_bitcast(g, call1(g, name, words_join(g, x)), LLVMVectorType(g->i8, 2)), out);
}

void
cast_pair(Gen *g, DType from, DType to, const Val *x, Val *out)
{
  Val wide[2];
  if (from == DT_F32) {
    narrow_pair(g, to, x, out);
    return;
  }
  if (from == DT_F16) {
    halves_to_fp8(g, to, x, out);
    return;
  }
  fp8_to_halves(g, from, x, out);
  for (u32 i = 0; i < 2 && to != DT_F16; i++)
    wide[i] = out[i] = LLVMBuildFPExt(B, out[i], g->f32, "");
  if (to == DT_BF16)
    narrow_pair(g, to, wide, out);
}

/* ---- bytes ---- */

static bool
is_byte(DType d)
{
  return d == DT_I8 || d == DT_U8;
}

/* To bytes by cvt.pack, which clamps s32. */
static bool
packs_bytes(const Op *op)
{
  DType from = op_operand(op, 0)->type->dt;
  bool clamped_int = (from == DT_I32 || from == DT_I16) && op_int(op, AT_SAT, 0);
  return is_byte(op_result(op)->type->dt) && (from == DT_F16 || from == DT_BF16 || from == DT_F32 || clamped_int);
}

bool
cast_has_bytes(const Op *op)
{
  DType from = op_operand(op, 0)->type->dt, to = op_result(op)->type->dt;
  if (packs_bytes(op))
    return true;
  return is_byte(from) && (to == DT_F16 || to == DT_BF16 || to == DT_F32);
}

/* The word of which x are the bytes, all of them; NULL if there is none. */
static Val
word_of(Gen *g, const Val *x, u32 n)
{
  Val v = NULL;
  for (u32 i = 0; i < n; i++) {
    u32 at;
    Val from = words_vector(x[i], &at);
    if (!from || (v && from != v) || at != i || LLVMGetVectorSize(LLVMTypeOf(from)) != n)
      return NULL;
    v = from;
  }
  Val word = LLVMBuildBitCast(B, v, LLVMIntTypeInContext(g->lc, 8 * n), "");
  return n < 4 ? LLVMBuildZExt(B, word, g->i32, "") : word;
}

/* Four clamped to a word of bytes. */
static void
pack_bytes(Gen *g, const Op *op, const Val *x, Val *out)
{
  DType from = op_operand(op, 0)->type->dt, to = op_result(op)->type->dt;
  Val word = gen_u32(g, 0);
  for (u32 i = 4; i; i -= 2) {
    Val args[3] = {cast_elem(g, op, from, DT_I32, x[i - 1]), cast_elem(g, op, from, DT_I32, x[i - 2]), word};
    word = ptx_value(g, PTX_CVT_PACK, g->i32, 3, args, to == DT_I8 ? "s8" : "u8", NULL);
  }
  Val bytes = LLVMBuildBitCast(B, word, LLVMVectorType(g->i8, 4), "");
  for (u32 i = 0; i < 4; i++)
    out[i] = LLVMBuildExtractElement(B, bytes, gen_u32(g, i), "");
}

/* How many of x, at most `most`, were cast: those of a word, or one. */
u32
cast_bytes(Gen *g, const Op *op, const Val *x, u32 most, Val *out)
{
  DType from = op_operand(op, 0)->type->dt, to = op_result(op)->type->dt;
  if (packs_bytes(op) && most == 4) {
    pack_bytes(g, op, x, out);
    return 4;
  }
  for (u32 n = 4; n > 1; n /= 2) {
    Val word = n <= most && is_byte(from) ? word_of(g, x, n) : NULL;
    if (word) {
      bits_to_floats(g, word, from == DT_I8, to, n, out);
      return n;
    }
  }
  out[0] = cast_elem(g, op, from, to, x[0]);
  return 1;
}
