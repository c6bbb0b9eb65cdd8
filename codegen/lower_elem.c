/* lower_elem.c - the ops that work element by element: one small function per row, applied to every distinct register.
 *
 * No fast-math flag is ever set: what is fused, was fused in the tile IR. The 16-bit floats compute in f32 and round
 * back where the hardware has no instruction of its own; for one add, mul, div or sqrt that is the correctly rounded
 * 16-bit result, because f32 has more than twice the bits plus two.
 */
#include "gen.h"
#include <math.h>

typedef Val ElemFn(Gen *g, const Op *op, DType d, Val *a);   /* d: dtype of the first operand that is not a condition */
#define B g->b
#define elem_ADD elem_by_code
#define elem_SUB elem_by_code
#define elem_MUL elem_by_code
#define elem_MIN elem_by_code
#define elem_MAX elem_by_code
#define elem_MINIMUM elem_by_code
#define elem_MAXIMUM elem_by_code
#define elem_AND elem_by_code
#define elem_OR elem_by_code
#define elem_XOR elem_by_code
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) ElemFn elem_##id;
#include "ops.def"
#undef OP

/* ---- 16-bit floats through f32 ---- */
static bool
is_16(DType d)
{
  return d == DT_F16 || d == DT_BF16;
}

static Val
up(Gen *g, DType d, Val x)
{
  return cast_nearest(g, d, DT_F32, x);
}

static Val
down(Gen *g, DType d, Val x)
{
  return LLVMBuildFPTrunc(B, x, gen_elem_type(g, d, false), "");
}

static bool
has_arith(Gen *g, DType d)
{
  return d != DT_BF16 || target_has(g->target, F_BF16_ARITH);
}

static Val
float_intrinsic(Gen *g, const char *name, u32 n, Val *a)
{
  Ty t = LLVMTypeOf(a[0]);
  return gen_call(g, name, 1, &t, n, a);
}

static Val
int_const(Gen *g, Val like, u64 v)
{
  return LLVMConstInt(LLVMTypeOf(like), v, 0);
}

/* ---- arithmetic ---- */

static const char *
extreme_name(bool least)
{
  return least ? "llvm.minimum" : "llvm.maximum";
}

/* v as the bound of a clamp: its constant as `bound`, and what is clamped. */
static Val
bounded_by(Val v, bool least, double *bound)
{
  const char *name = extreme_name(least);
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!LLVMIsACallInst(v) || LLVMGetIntrinsicID(LLVMGetCalledValue(v)) != id || !LLVMIsAConstantFP(LLVMGetOperand(v, 1)))
    return NULL;
  LLVMBool inexact;
  *bound = LLVMConstRealGetDouble(LLVMGetOperand(v, 1), &inexact);
  return LLVMGetOperand(v, 0);
}

/* minimum(maximum(x, -c), c), or the other way round, for c > 0: the lesser of |x| and c with the sign of x, in one instruction (PTX ISA,
 * min: .xorsign is the exclusive or of the signs of both sources, and c has none; .NaN gives the canonical nan for one, which takes no
 * sign; of zeros the size is 0 and the sign that of x). NULL: it is not that. */
static Val
clamped(Gen *g, OpCode code, Val *ab)
{
  double inner, outer;
  LLVMBool inexact;
  Val x = bounded_by(ab[0], code == OP_MAXIMUM, &inner);
  if (!x || !LLVMIsAConstantFP(ab[1]) || LLVMTypeOf(x) != g->f32 || !target_has(g->target, F_XORSIGN))
    return NULL;
  outer = LLVMConstRealGetDouble(ab[1], &inexact);
  if (inner != -outer || !(fabs(outer) > 0) || (outer > 0) != (code == OP_MINIMUM))
    return NULL;
  Val args[2] = {x, LLVMConstReal(g->f32, fabs(outer))};
  return gen_call(g, "llvm.nvvm.fmin.nan.xorsign.abs.f", 0, NULL, 2, args);
}

/* minimum and maximum; there is no instruction for f64. */
static Val
float_extreme(Gen *g, OpCode code, Val *ab)
{
  Ty t = LLVMTypeOf(ab[0]);
  Val both = clamped(g, code, ab);
  if (both)
    return both;
  if (t != g->f64)
    return float_intrinsic(g, extreme_name(code == OP_MINIMUM), 2, ab);
  Val r = float_intrinsic(g, code == OP_MINIMUM ? "llvm.minnum" : "llvm.maxnum", 2, ab);
  return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealUNO, ab[0], ab[1], ""), LLVMConstReal(t, NAN), r, "");
}

static Val
float_arith(Gen *g, OpCode code, Val a, Val b)
{
  Val ab[2] = {a, b};
  switch (code) {
  case OP_ADD: return LLVMBuildFAdd(B, a, b, "");
  case OP_SUB: return LLVMBuildFSub(B, a, b, "");
  case OP_MUL: return LLVMBuildFMul(B, a, b, "");
  case OP_DIV: return LLVMBuildFDiv(B, a, b, "");
  case OP_MIN: return float_intrinsic(g, "llvm.minnum", 2, ab);
  case OP_MINIMUM: case OP_MAXIMUM: return float_extreme(g, code, ab);
  default:     return float_intrinsic(g, "llvm.maxnum", 2, ab);
  }
}

static Val
float_binary(Gen *g, OpCode code, DType d, Val a, Val b)
{
  if (!is_16(d) || (code != OP_DIV && has_arith(g, d)))
    return float_arith(g, code, a, b);
  Val y = up(g, d, b), x = up(g, d, a);
  return down(g, d, float_arith(g, code, x, y));
}

static Val
int_binary(Gen *g, OpCode code, DType d, Val a, Val b)
{
  Val ab[2] = {a, b};
  bool s = dtype_is_signed(d);
  switch (code) {
  case OP_ADD: return LLVMBuildAdd(B, a, b, "");
  case OP_SUB: return LLVMBuildSub(B, a, b, "");
  case OP_MUL: return LLVMBuildMul(B, a, b, "");
  case OP_MIN: case OP_MINIMUM: return float_intrinsic(g, s ? "llvm.smin" : "llvm.umin", 2, ab);
  case OP_MAX: case OP_MAXIMUM: return float_intrinsic(g, s ? "llvm.smax" : "llvm.umax", 2, ab);
  case OP_AND: return LLVMBuildAnd(B, a, b, "");
  case OP_OR:  return LLVMBuildOr(B, a, b, "");
  default:     return LLVMBuildXor(B, a, b, "");
  }
}

/* ADD SUB MUL MIN MAX MINIMUM MAXIMUM, AND OR XOR, float DIV of two elements. */
Val
elem_binary(Gen *g, OpCode code, DType d, Val a, Val b)
{
  return dtype_is_float(d) ? float_binary(g, code, d, a, b) : int_binary(g, code, d, a, b);
}

Val
elem_by_code(Gen *g, const Op *op, DType d, Val *a)
{
  return elem_binary(g, op->code, d, a[0], a[1]);
}

/* Integer division where LLVM leaves nothing undefined: by zero gives something, the least number by -1 wraps. */
static Val
int_divide(Gen *g, const Op *op, DType d, Val a, Val b)
{
  bool s = dtype_is_signed(d), rem = op->code == OP_REM;
  if (op_divides_by_same(op))
    return divide_by_same(g, op, a);
  Val zero = int_const(g, b, 0), one = int_const(g, b, 1), minus = LLVMConstAllOnes(LLVMTypeOf(b));
  Val is_zero = LLVMBuildICmp(B, LLVMIntEQ, b, zero, "");
  if (!s) {
    b = LLVMBuildSelect(B, is_zero, one, b, "");
    return rem ? LLVMBuildURem(B, a, b, "") : LLVMBuildUDiv(B, a, b, "");
  }
  Val is_minus = LLVMBuildICmp(B, LLVMIntEQ, b, minus, "");
  b = LLVMBuildSelect(B, LLVMBuildOr(B, is_zero, is_minus, ""), one, b, "");
  Val q = rem ? LLVMBuildSRem(B, a, b, "") : LLVMBuildSDiv(B, a, b, "");
  return rem ? q : LLVMBuildSelect(B, is_minus, LLVMBuildNeg(B, a, ""), q, "");
}

Val
elem_DIV(Gen *g, const Op *op, DType d, Val *a)
{
  return dtype_is_float(d) ? float_binary(g, OP_DIV, d, a[0], a[1]) : int_divide(g, op, d, a[0], a[1]);
}

static Val
fabs_of(Gen *g, Val x)
{
  return float_intrinsic(g, "llvm.fabs", 1, &x);
}

/* Where r / b overflows, b becomes b * 2^exponent. */
static void
scale_divisor(Gen *g, Val r, Val *b, int exponent)
{
  Ty t = LLVMTypeOf(r);
  Val q = LLVMBuildFDiv(B, r, *b, ""), larger = LLVMBuildFMul(B, *b, LLVMConstReal(t, ldexp(1, exponent)), "");
  Val over = LLVMBuildFCmp(B, LLVMRealOEQ, fabs_of(g, q), LLVMConstReal(t, INFINITY), "");
  *b = LLVMBuildSelect(B, over, larger, *b, "");
}

/* r minus a whole number of b's, where that is exact: fma subtracts the rounded quotient without an error of its own.
 * The first scaling keeps b finite where the quotient overflows, both together keep every quotient finite. */
static Val
rem_step(Gen *g, Val r, Val b)
{
  bool is_f64 = LLVMTypeOf(r) == g->f64;
  scale_divisor(g, r, &b, is_f64 ? 600 : 64);
  scale_divisor(g, r, &b, is_f64 ? 500 : 86);
  Val q = LLVMBuildFDiv(B, r, b, "");
  q = float_intrinsic(g, "llvm.trunc", 1, &q);
  Val args[3] = {LLVMBuildFNeg(B, q, ""), b, r};
  return float_intrinsic(g, "llvm.fma", 3, args);
}

/* Each round takes as many b's off as the quotient's bits can say; a last one may have gone one b too far. */
static Val
float_rem(Gen *g, Val a, Val b)
{
  Ty t = LLVMTypeOf(a);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B), loop = gen_block(g, "rem"), done = gen_block(g, "rem.done");
  Val mag = fabs_of(g, b);
  LLVMBuildBr(B, loop);
  gen_at(g, loop);
  Val r = LLVMBuildPhi(B, t, "");
  Val next = rem_step(g, r, b);
  Val more = LLVMBuildFCmp(B, LLVMRealOGE, fabs_of(g, next), mag, "");
  LLVMBuildCondBr(B, more, loop, done);
  Val in[2] = {a, next};
  LLVMBasicBlockRef from[2] = {before, loop};
  LLVMAddIncoming(r, in, from, 2);
  gen_at(g, done);
  Val sides = LLVMBuildFMul(B, next, float_intrinsic(g, "llvm.copysign", 2, (Val[]){LLVMConstReal(t, 1), a}), "");
  Val over = LLVMBuildFCmp(B, LLVMRealOLT, sides, LLVMConstReal(t, 0), "");
  Val fixed = LLVMBuildFAdd(B, next, float_intrinsic(g, "llvm.copysign", 2, (Val[]){mag, a}), "");
  next = LLVMBuildSelect(B, over, fixed, next, "");
  next = float_intrinsic(g, "llvm.copysign", 2, (Val[]){next, a});
  Val infinite = LLVMBuildFCmp(B, LLVMRealOEQ, mag, LLVMConstReal(t, INFINITY), "");
  Val finite_a = LLVMBuildFCmp(B, LLVMRealOLT, fabs_of(g, a), LLVMConstReal(t, INFINITY), "");
  return LLVMBuildSelect(B, LLVMBuildAnd(B, infinite, finite_a, ""), a, next, "");
}

Val
elem_REM(Gen *g, const Op *op, DType d, Val *a)
{
  if (!dtype_is_float(d))
    return int_divide(g, op, d, a[0], a[1]);
  if (!is_16(d))
    return float_rem(g, a[0], a[1]);
  Val y = up(g, d, a[1]), x = up(g, d, a[0]);
  return down(g, d, float_rem(g, x, y));
}

/* A count of at most the width. LLVM turns the choice below into a PTX shift, which looks at 32 bits of the count: 64-bit
 * counts are brought into them first. */
static Val
shift_count(Gen *g, DType d, Val n)
{
  u32 w = dtype_bits(d);
  if (w < 64)
    return n;
  Val most[2] = {n, int_const(g, n, w)};
  return LLVMBuildZExt(B, LLVMBuildTrunc(B, float_intrinsic(g, "llvm.umin", 2, most), g->i32, ""), g->i64, "");
}

/* LLVM's shifts by the width or more are poison: choose before shifting. */
static Val
shift_or_zero(Gen *g, DType d, Val x, Val n, bool left)
{
  n = shift_count(g, d, n);
  Val inside = LLVMBuildICmp(B, LLVMIntULT, n, int_const(g, n, dtype_bits(d)), "");
  return LLVMBuildSelect(B, inside, left ? LLVMBuildShl(B, x, n, "") : LLVMBuildLShr(B, x, n, ""), int_const(g, x, 0), "");
}

Val
elem_SHL(Gen *g, const Op *op, DType d, Val *a)
{
  return shift_or_zero(g, d, a[0], a[1], true);
}

Val
elem_SHR(Gen *g, const Op *op, DType d, Val *a)
{
  if (!dtype_is_signed(d))
    return shift_or_zero(g, d, a[0], a[1], false);
  Val by[2] = {a[1], int_const(g, a[1], dtype_bits(d) - 1)};
  return LLVMBuildAShr(B, a[0], float_intrinsic(g, "llvm.umin", 2, by), "");
}

Val
elem_fma(Gen *g, DType d, Val a, Val b, Val c)
{
  Val args[3] = {a, b, c};
  return float_intrinsic(g, "llvm.fma", 3, args);
}

Val
elem_FMA(Gen *g, const Op *op, DType d, Val *a)
{
  return elem_fma(g, d, a[0], a[1], a[2]);
}

Val
elem_NEG(Gen *g, const Op *op, DType d, Val *a)
{
  return dtype_is_float(d) ? LLVMBuildFNeg(B, a[0], "") : LLVMBuildNeg(B, a[0], "");
}

Val
elem_NOT(Gen *g, const Op *op, DType d, Val *a)
{
  return LLVMBuildNot(B, a[0], "");
}

Val
elem_ABS(Gen *g, const Op *op, DType d, Val *a)
{
  if (dtype_is_float(d))
    return fabs_of(g, a[0]);
  Ty t = LLVMTypeOf(a[0]);
  Val args[2] = {a[0], LLVMConstInt(g->i1, 0, 0)};
  return dtype_is_signed(d) ? gen_call(g, "llvm.abs", 1, &t, 2, args) : a[0];
}

static Val
upper_product(Gen *g, DType d, Val *a, bool s)
{
  u32 w = dtype_bits(d);
  Ty wide = LLVMIntTypeInContext(g->lc, 2 * w);
  Val x[2];
  for (u32 i = 0; i < 2; i++)
    x[i] = s ? LLVMBuildSExt(B, a[i], wide, "") : LLVMBuildZExt(B, a[i], wide, "");
  Val high = LLVMBuildLShr(B, LLVMBuildMul(B, x[0], x[1], ""), LLVMConstInt(wide, w, 0), "");
  return LLVMBuildTrunc(B, high, LLVMTypeOf(a[0]), "");
}

Val
elem_MULHI(Gen *g, const Op *op, DType d, Val *a)
{
  return upper_product(g, d, a, dtype_is_signed(d));
}

Val
elem_UMULHI(Gen *g, const Op *op, DType d, Val *a)
{
  return upper_product(g, d, a, false);
}

/* ---- bits ---- */
Val
elem_POPC(Gen *g, const Op *op, DType d, Val *a)
{
  return float_intrinsic(g, "llvm.ctpop", 1, a);
}

Val
elem_CLZ(Gen *g, const Op *op, DType d, Val *a)
{
  Ty t = LLVMTypeOf(a[0]);
  Val args[2] = {a[0], LLVMConstInt(g->i1, 0, 0)};
  return gen_call(g, "llvm.ctlz", 1, &t, 2, args);
}

Val
elem_BREV(Gen *g, const Op *op, DType d, Val *a)
{
  return float_intrinsic(g, "llvm.bitreverse", 1, a);
}

/* ---- signs and approximate quotients ---- */
Val
elem_COPYSIGN(Gen *g, const Op *op, DType d, Val *a)
{
  return float_intrinsic(g, "llvm.copysign", 2, a);
}

static Val real_rcp(Gen *g, Val x);

/* f64 is divided exactly, the others are f32 to `divide`. */
static Val
quotient(Gen *g, DType d, Val *x, Val (*divide)(Gen *g, Val a, Val b))
{
  if (d == DT_F64)
    return LLVMBuildFDiv(B, x[0], x[1], "");
  if (!is_16(d))
    return divide(g, x[0], x[1]);
  Val b = up(g, d, x[1]), a = up(g, d, x[0]);
  return down(g, d, divide(g, a, b));
}

static Val
approx_quotient(Gen *g, Val a, Val b)
{
  Val ab[] = {a, b};
  return gen_call(g, "llvm.nvvm.div.approx.f", 0, NULL, 2, ab);
}

Val
elem_FAST_DIV(Gen *g, const Op *op, DType d, Val *a)
{
  return quotient(g, d, a, approx_quotient);
}

static Val
full_quotient(Gen *g, Val a, Val b)
{
  Val ab[] = {a, b};
  return gen_call(g, "llvm.nvvm.div.full", 0, NULL, 2, ab);
}

/* What div.full is, bit for bit, with what depends on b alone apart: where elements have b in common that is done once, and a quotient is
 * two products. (a f) (1 / (b f)) with f that keeps the reciprocal a normal number. */
static Val
quotient_by(Gen *g, Val a, Val b)
{
  Val one = LLVMConstReal(g->f32, 1), size = float_intrinsic(g, "llvm.fabs", 1, &b);
  Val large = LLVMBuildFCmp(B, LLVMRealOGT, size, LLVMConstReal(g->f32, 0x1p126), "");
  Val small = LLVMBuildFCmp(B, LLVMRealOLT, size, LLVMConstReal(g->f32, 0x1p-126), "");
  Val f = LLVMBuildSelect(B, large, LLVMConstReal(g->f32, 0.25), LLVMBuildSelect(B, small, LLVMConstReal(g->f32, 0x1p24), one, ""), "");
  Val r = real_rcp(g, LLVMBuildFMul(B, b, f, ""));
  return LLVMBuildFMul(B, LLVMBuildFMul(B, a, f, ""), r, "");
}

Val
elem_FULL_DIV(Gen *g, const Op *op, DType d, Val *a)
{
  const Value *b = OPERAND(op, FULL_DIV, b);
  bool shared = d == DT_F32 && (op_is(b, OP_SPLAT) || op_is(b, OP_BROADCAST));
  return quotient(g, d, a, shared ? quotient_by : full_quotient);
}

/* runtime/approx.c, approx_near_div: what depends on b alone is common to elements that have it in common. */
static Val
near_quotient(Gen *g, Val a, Val b)
{
  Val e = LLVMBuildAnd(B, LLVMBuildBitCast(B, b, g->i32, ""), gen_u32(g, 0x7f800000), ""), most = gen_u32(g, 0x7e000000);
  Val mm[2] = {e, most};
  Val f = LLVMBuildBitCast(B, LLVMBuildSub(B, gen_u32(g, 0x7e800000), gen_call(g, "llvm.umin", 1, &g->i32, 2, mm), ""), g->f32, "");
  Val as = LLVMBuildFMul(B, a, f, ""), bs = LLVMBuildFMul(B, b, f, ""), r = real_rcp(g, bs), q = LLVMBuildFMul(B, as, r, "");
  Val left[3] = {LLVMBuildFNeg(B, q, ""), bs, as};
  Val step[3] = {float_intrinsic(g, "llvm.fma", 3, left), r, q};
  Val near = float_intrinsic(g, "llvm.fma", 3, step), size = float_intrinsic(g, "llvm.fabs", 1, &near);
  return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, size, LLVMConstReal(g->f32, 0), ""), near, q, "");
}

Val
elem_NEAR_DIV(Gen *g, const Op *op, DType d, Val *a)
{
  return quotient(g, d, a, near_quotient);
}

/* ---- functions of one float ---- */
typedef Val RealFn(Gen *g, Val x);   /* x is f32 or f64 */

static Val
real_unary(Gen *g, DType d, Val x, RealFn *f)
{
  return is_16(d) ? down(g, d, f(g, up(g, d, x))) : f(g, x);
}

static Val real_floor(Gen *g, Val x) { return float_intrinsic(g, "llvm.floor", 1, &x); }
static Val real_ceil(Gen *g, Val x) { return float_intrinsic(g, "llvm.ceil", 1, &x); }
static Val real_rint(Gen *g, Val x) { return float_intrinsic(g, "llvm.rint", 1, &x); }
static Val real_trunc(Gen *g, Val x) { return float_intrinsic(g, "llvm.trunc", 1, &x); }

/* Halves away from zero: what is more than half a number away from 0 reaches the next one by the number below 1/2, as sums are rounded, and
 * what is less does not; numbers without a fraction stay. */
static Val
real_round(Gen *g, Val x)
{
  Ty t = LLVMTypeOf(x);
  Val half[2] = {LLVMConstReal(t, t == g->f64 ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2), x};
  return real_trunc(g, LLVMBuildFAdd(B, x, float_intrinsic(g, "llvm.copysign", 2, half), ""));
}

static Val real_sqrt(Gen *g, Val x) { return float_intrinsic(g, "llvm.sqrt", 1, &x); }
/* Subnormal results are 0: what keeps them costs three more instructions. */
static Val
real_exp2(Gen *g, Val x)
{
  if (LLVMTypeOf(x) != g->f32)
    return float_intrinsic(g, "llvm.exp2", 1, &x);
  return gen_call(g, "llvm.nvvm.ex2.approx.ftz", 1, &g->f32, 1, &x);
}

static Val real_log2(Gen *g, Val x) { return gen_call(g, "llvm.nvvm.lg2.approx.f", 0, NULL, 1, &x); }

static Val
real_rsqrt(Gen *g, Val x)
{
  if (LLVMTypeOf(x) == g->f64)
    return LLVMBuildFDiv(B, LLVMConstReal(g->f64, 1), real_sqrt(g, x), "");
  return gen_call(g, "llvm.nvvm.rsqrt.approx.f", 0, NULL, 1, &x);
}

static Val
real_rcp(Gen *g, Val x)
{
  if (LLVMTypeOf(x) == g->f64)
    return LLVMBuildFDiv(B, LLVMConstReal(g->f64, 1), x, "");
  return gen_call(g, "llvm.nvvm.rcp.approx.ftz.f", 0, NULL, 1, &x);
}

static Val
real_fast_sqrt(Gen *g, Val x)
{
  return LLVMTypeOf(x) == g->f64 ? real_sqrt(g, x) : gen_call(g, "llvm.nvvm.sqrt.approx.f", 0, NULL, 1, &x);
}

static Val real_sin(Gen *g, Val x) { return gen_call(g, "llvm.nvvm.sin.approx.f", 0, NULL, 1, &x); }
static Val real_cos(Gen *g, Val x) { return gen_call(g, "llvm.nvvm.cos.approx.f", 0, NULL, 1, &x); }
static Val real_tanh(Gen *g, Val x) { return ptx_value(g, PTX_TANH, g->f32, 1, &x, NULL, NULL); }

static Val
no_f64(Gen *g, const Op *op, Val x)
{
  gen_unsupported(g, op, arena_printf(g->arena, "'%s' on f64", op_info(op->code)->name));
  return x;
}

static Val
real_round_tf32(Gen *g, Val x)
{
  return gen_bitcast(g, dot_round_tf32(g, x), g->f32);
}

#define REAL_OP(ID, f, in_f64)                               \
  Val elem_##ID(Gen *g, const Op *op, DType d, Val *a) \
  {                                                          \
    if (d == DT_F64 && !(in_f64))                            \
      return no_f64(g, op, a[0]);                            \
    return real_unary(g, d, a[0], f);                        \
  }
REAL_OP(FLOOR, real_floor, true)
REAL_OP(CEIL, real_ceil, true)
REAL_OP(RINT, real_rint, true)
REAL_OP(TRUNC, real_trunc, true)
REAL_OP(ROUND, real_round, true)
REAL_OP(SQRT, real_sqrt, true)
REAL_OP(FAST_EXP2, real_exp2, false)
REAL_OP(FAST_LOG2, real_log2, false)
REAL_OP(RSQRT, real_rsqrt, true)
REAL_OP(FAST_RCP, real_rcp, true)
REAL_OP(FAST_SQRT, real_fast_sqrt, true)
REAL_OP(FAST_SIN, real_sin, false)
REAL_OP(FAST_COS, real_cos, false)
REAL_OP(FAST_TANH, real_tanh, false)

Val
elem_ROUND_TF32(Gen *g, const Op *op, DType d, Val *a)
{
  if (d != DT_F64 && target_has(g->target, F_CVT_TF32))
    return real_unary(g, d, a[0], real_round_tf32);
  gen_unsupported(g, op, arena_printf(g->arena, "'round_tf32' of %s on %s", dtype_info[d].name, g->target->name));
  return a[0];
}

/* ---- comparison, choice, conversion ---- */
typedef struct PredRow { const char *name; LLVMRealPredicate f; LLVMIntPredicate s, u; } PredRow;
static const PredRow preds[] = {
  {"eq", LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ},   {"ne", LLVMRealUNE, LLVMIntNE, LLVMIntNE},
  {"lt", LLVMRealOLT, LLVMIntSLT, LLVMIntULT}, {"le", LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
  {"gt", LLVMRealOGT, LLVMIntSGT, LLVMIntUGT}, {"ge", LLVMRealOGE, LLVMIntSGE, LLVMIntUGE},
};

Val
elem_CMP(Gen *g, const Op *op, DType d, Val *a)
{
  const char *name = op_str(op, AT_PRED, "eq");
  u32 i = 0;
  while (i < COUNT(preds) - 1 && strcmp(preds[i].name, name))
    i++;
  if (type_is_float(op_operand(op, 0)->type))
    return LLVMBuildFCmp(B, preds[i].f, a[0], a[1], "");
  bool s = dtype_is_signed(d) && !type_is_ptr(op_operand(op, 0)->type);
  return LLVMBuildICmp(B, s ? preds[i].s : preds[i].u, a[0], a[1], "");
}

Val
elem_SELECT(Gen *g, const Op *op, DType d, Val *a)
{
  return LLVMBuildSelect(B, a[0], a[1], a[2], "");
}

/* Nobody chose: the first, as the interpreter does. */
Val
elem_TIERS(Gen *g, const Op *op, DType d, Val *a)
{
  return a[0];
}

Val
elem_CAST(Gen *g, const Op *op, DType d, Val *a)
{
  return cast_elem(g, op, d, op_result(op)->type->dt, a[0]);
}

Val
elem_BITCAST(Gen *g, const Op *op, DType d, Val *a)
{
  return gen_bitcast(g, a[0], gen_type(g, op_result(op)->type));
}

Val
elem_HINT(Gen *g, const Op *op, DType d, Val *a)
{
  return a[0];
}

/* See lower_bounded: an element by itself. */
Val
elem_BOUNDED(Gen *g, const Op *op, DType d, Val *a)
{
  return a[0];
}

Val
elem_ADDPTR(Gen *g, const Op *op, DType d, Val *a)
{
  DType off = op_operand(op, 1)->type->dt;
  Val i = dtype_is_signed(off) ? LLVMBuildSExt(B, a[1], g->i64, "") : LLVMBuildZExt(B, a[1], g->i64, "");
  Ty pointee = d == DT_I1 ? g->i8 : gen_elem_type(g, d, false);
  return LLVMBuildGEP2(B, pointee, a[0], &i, 1, "");
}

/* ---- the table: rows of ops.def that work element by element oblige elem_<ID> ---- */
static ElemFn *const table[OP_COUNT] = {
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) ((traits) & T_ELEM) ? elem_##id : NULL,
#include "ops.def"
#undef OP
};

Val
elem_apply(Gen *g, const Op *op, Val *args)
{
  return table[op->code](g, op, op_operand(op, op->code == OP_SELECT ? 1 : 0)->type->dt, args);
}

/* ---- two at a time ----
 * 16-bit arithmetic and conversions between 8-, 16- and 32-bit floats have instructions for two elements in one register.
 * Registers r and r + 1 go together; loads, stores and tensor cores pack them in the same way, so the packing itself
 * mostly cancels. */
typedef void PairFn(Gen *g, const Op *op, Val (*args)[2], Val *out);

static void
arith_pair(Gen *g, const Op *op, Val (*args)[2], Val *out)
{
  Val vectors[3];
  for (u32 i = 0; i < op->noperands; i++)
    vectors[i] = words_join(g, args[i]);
  words_split(g, elem_apply(g, op, vectors), out);
}

static void
convert_pair(Gen *g, const Op *op, Val (*args)[2], Val *out)
{
  cast_pair(g, op_operand(op, 0)->type->dt, op_result(op)->type->dt, args[0], out);
}

static PairFn *
pair_fn(Gen *g, const Op *op)
{
  const Type *t = op_result(op)->type;
  bool packed = !type_is_ptr(t) && is_16(t->dt);
  switch (op->code) {
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_MIN: case OP_MAX:
    return packed && has_arith(g, t->dt) ? arith_pair : NULL;
  case OP_FMA: case OP_NEG: case OP_ABS:
    return packed ? arith_pair : NULL;
  case OP_CAST:
    return cast_has_pairs(g, op) ? convert_pair : NULL;
  default:
    return NULL;
  }
}

static void
lower_pairs(Gen *g, const Op *op, PairFn *f, const Val *const *in, const Dist *h, Val *out)
{
  for (u32 r = 0; r < h->regs; r += 2) {
    Val args[3][2];
    if (h->rep[r] != r)
      continue;
    for (u32 i = 0; i < op->noperands; i++)
      for (u32 k = 0; k < 2; k++)
        args[i][k] = in[i][r + k];
    f(g, op, args, out + r);
  }
}

/* Casts of and to 8-bit integers, a word of them at a time. */
static void
lower_bytes(Gen *g, const Op *op, const Val *in, const Dist *h, Val *out)
{
  for (u32 r = 0, n; r < h->regs; r += n) {
    u32 most = 1;
    while (most < 4 && r + most < h->regs && h->rep[r + most] == r + most)
      most++;
    n = h->rep[r] == r ? cast_bytes(g, op, in + r, most, out + r) : 1;
  }
}

static void
lower_singly(Gen *g, const Op *op, const Val *const *in, const Dist *h, Val *out)
{
  u32 constant = dist_equal_bits(g, op_result(op), h);
  for (u32 r = 0; r < gen_nregs(op_result(op)->type); r++) {
    Val args[3];
    if (h && h->rep[r] != r)
      continue;
    if (r & constant) {
      out[r] = out[h->rep[r & ~constant]];
      continue;
    }
    for (u32 i = 0; i < op->noperands; i++)
      args[i] = in[i][r];
    out[r] = elem_apply(g, op, args);
  }
}

/* The index in a register, for readers of the PTX: where `when` holds, NULL: always. Constants speak for themselves. */
static void
state_index(Gen *g, const Type *t, Val x, i64 extent, Val when)
{
  PtxArgs a = {.nin = 1, .in = {x}};
  bool known = when && LLVMIsAConstantInt(when);
  if (known && !LLVMConstIntGetZExtValue(when))
    return;
  if (LLVMTypeOf(x) == g->i8)   /* registers have 16 bits at least */
    a.in[0] = dtype_is_signed(t->dt) ? LLVMBuildSExt(B, x, g->i16, "") : LLVMBuildZExt(B, x, g->i16, "");
  a.subst[0] = arena_printf(g->arena, "%lld", (long long)extent);
  if (when && !known) {
    a.subst[1] = " $1";
    a.in[a.nin++] = when;
  }
  ptx_emit(g, PTX_INDEX, &a, NULL);
}

/* The result is x; a comment says what holds of each element that a thread has, once for equal ones in a row. Padding is left out. */
static void
lower_bounded(Gen *g, const Op *op, Dist *h)
{
  const Value *x = OPERAND(op, BOUNDED, x), *mask = OPERAND(op, BOUNDED, mask);
  Val *in = gen_regs(g, x);
  u32 equal = dist_equal_bits(g, x, h) & (mask ? dist_equal_bits(g, mask, h) : ~0u);
  gen_bind(g, op_result(op), in);
  for (u32 r = 0; r < gen_nregs(x->type); r++) {
    if (r & equal || (h && h->rep[r] != r))
      continue;
    Val when = mask ? gen_regs(g, mask)[r] : NULL;
    state_index(g, x->type, in[r], op_int(op, AT_EXTENT, 1), gen_and(g, h ? dist_inside(g, h, x->type, r) : NULL, when));
  }
}

/* ---- many neighbours against one bound ----
 * i < n for many i of a thread that are constants apart: n - i of the first tells all of them, a constant each. That is one register
 * beside a loop that asks for them again and again, in place of one for each index. The difference stops at the ends of its type, and
 * an aligned run does not wrap, so the answers are the same for all i and n. */
enum { MANY_NEIGHBOURS = 32, ACCESS_MOST = 16 };

/* Of which register's run reg is, which does not wrap, and how far in. */
static u32
run_start(const Dist *h, const Type *t, const AxisInfo *a, u32 reg, u32 *in)
{
  u32 d = axis_fastest(a, t->rank);
  return dist_run_start(h, (int)d, min_u32(a->contiguity[d], a->divisibility[d]), reg, in);
}

/* Neighbours that fill one access have one answer (or the access is as narrow as they are, and there are many more of them). */
static bool
are_vectors(const Dist *h, const Type *t, const AxisInfo *a)
{
  u32 n = layout_contiguous_regs(h->l, (int)axis_fastest(a, t->rank));
  return n > 1 && n <= ACCESS_MOST;
}

static bool
is_bound_check(Gen *g, const Op *op, const Dist *h)
{
  const Value *x = op_operand(op, 0);
  const AxisInfo *a = &g->axes[x->id];
  u32 neighbours = 1, in;
  if (op->code != OP_CMP || !h || strcmp(op_str(op, AT_PRED, "eq"), "lt") || !op_is(op_operand(op, 1), OP_SPLAT) ||
      type_is_ptr(x->type) || !type_is_int(x->type) || dtype_bits(x->type->dt) != 32 || !dtype_is_signed(x->type->dt))
    return false;
  for (u32 r = 1; r < h->regs; r *= 2)
    neighbours *= h->rep[r] == r && run_start(h, x->type, a, r, &in) != r ? 2 : 1;
  return neighbours >= MANY_NEIGHBOURS && !are_vectors(h, x->type, a);
}

static void
lower_bound_check(Gen *g, const Op *op, const Val *const *in, const Dist *h, Val *out)
{
  const Value *x = op_operand(op, 0);
  Val *left = NEW_ARRAY(g->arena, Val, h->regs);
  for (u32 r = 0; r < h->regs; r++) {
    u32 at, first = run_start(h, x->type, &g->axes[x->id], r, &at);
    if (h->rep[r] != r)
      continue;
    if (!left[first])
      left[first] = ptx_value(g, PTX_SUB_SAT, g->i32, 2, (Val[]){in[1][first], in[0][first]}, NULL, NULL);
    out[r] = LLVMBuildICmp(B, LLVMIntSGT, left[first], gen_u32(g, at), "");
  }
}

/* ---- products that a warp may leave out ---- */

/* Is some element of the tile's, in this warp, not 1? */
static Val
any_not_one(Gen *g, const Val *x, const Dist *h)
{
  Val any = NULL;
  for (u32 r = 0; r < h->regs; r++) {
    u32 first = 0;
    while (x[first] != x[r])
      first++;
    if (first < r)
      continue;
    Val is_not = LLVMBuildFCmp(B, LLVMRealUNE, x[r], LLVMConstReal(LLVMTypeOf(x[r]), 1), "");
    any = any ? LLVMBuildOr(B, any, is_not, "") : is_not;
  }
  return team_vote(g, false, false, any);
}

static void
lower_unless_one(Gen *g, const Op *op, const Val *const *in, const Dist *h, Val *out)
{
  u32 factor = (u32)op_int(op, AT_UNLESS_ONE, 0);
  Val any = any_not_one(g, in[factor], h);
  LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(B)}, after = gen_if(g, any);
  lower_singly(g, op, in, h, out);
  from[1] = LLVMGetInsertBlock(B);
  gen_end_if(g, after);
  for (u32 r = 0; r < h->regs; r++) {
    if (h->rep[r] != r)
      continue;
    Val arrive[2] = {in[1 - factor][r], out[r]};
    out[r] = LLVMBuildPhi(B, LLVMTypeOf(arrive[1]), "");
    LLVMAddIncoming(out[r], arrive, from, 2);
  }
}

void
lower_elementwise(Gen *g, const Op *op)
{
  const Value *result = op_result(op);
  Dist *h = type_is_tile(result->type) ? dist_get(g, result->type->layout) : NULL;
  const Val *in[3];
  if (op->code == OP_BOUNDED) {
    lower_bounded(g, op, h);
    return;
  }
  for (u32 i = 0; i < op->noperands; i++)
    in[i] = gen_regs(g, op_operand(op, i));
  Val *out = gen_new(g, result);
  PairFn *f = h && h->regs > 1 && h->rep[1] == 1 ? pair_fn(g, op) : NULL;
  if (h && op->code == OP_CAST && cast_has_bytes(op))
    lower_bytes(g, op, in[0], h, out);
  else if (op_attr(op, AT_UNLESS_ONE))
    lower_unless_one(g, op, in, h, out);
  else if (f)
    lower_pairs(g, op, f, in, h, out);
  else if (is_bound_check(g, op, h))
    lower_bound_check(g, op, in, h, out);
  else
    lower_singly(g, op, in, h, out);
  dist_share(g, result);
}
