/* alu_rows.h - the loops of alu.def and the table of them. Included by alu.c, once for any host, and by
 * alu_avx2.c, once for hosts with AVX2 and FMA; ALU_TABLE names the table.
 * An instruction's result may be one of its sources, lane for lane, so the loops have no order.
 *
 * Floats. + - * / fma sqrt and conversions are correctly rounded in every mode PTX has (exec.c sets the host's
 * mode and flushes for .ftz); 16-bit ones too. f32 NaN results are 0x7fffffff, 16-bit ones 0x7fff. The .approx
 * functions (ex2 lg2 sin cos tanh rsqrt, and rcp, div, sqrt .approx, div.full) have the hardware's bits where approx.h knows them
 * (V_APPROX; imm: APPROX_FTZ, APPROX_FULL). Without tables they are computed in double and rounded once, or are the exact
 * operation, of which hardware may be wrong by what the PTX ISA says. */
#include "approx.h"
#include "fp.h"
#include "internal.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

static inline u64
mulhi_u64(u64 x, u64 y)
{
  return (u64)((unsigned __int128)x * y >> 64);
}

static inline u64
mulhi_s64(u64 x, u64 y)
{
  return (u64)((__int128)(s64)x * (s64)y >> 64);
}

static inline s32
low24(u32 x)
{
  return (s32)(x << 8) >> 8;
}

static inline u64
div_s64(s64 x, s64 y)
{
  return y == 0 ? ~0ull : y == -1 ? 0 - (u64)x : (u64)(x / y);
}

static inline s64
rem_s64(s64 x, s64 y)
{
  return y == 0 ? x : y == -1 ? 0 : x % y;
}

static inline s32
clamp_s32(s64 x)
{
  return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

static inline u32
brev32(u32 x)
{
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}

/* imm: 0 the bit's number; else the shift that brings it to the top of a word of imm bits. */
static inline u32
find_top(u64 x, u64 imm)
{
  if (!x)
    return ~0u;
  u32 bit = 63 - (u32)__builtin_clzll(x);
  return imm ? (u32)imm - 1 - bit : bit;
}

static inline u64
bfe_u64(u64 x, u32 pos, u32 len)
{
  pos &= 255;
  len &= 255;
  if (pos > 63 || len == 0)
    return 0;
  x >>= pos;
  return len > 63 ? x : x & ((1ull << len) - 1);
}

static inline u64
bfe_s64(s64 x, u32 pos, u32 len, u32 msb)
{
  pos &= 255;
  len &= 255;
  if (len == 0)
    return 0;
  u32 end = pos + len - 1 < msb ? pos + len - 1 : msb;
  u64 fill = x >> end & 1 ? ~0ull : 0;
  u64 v = pos > msb ? fill : (u64)(x >> pos);
  u32 keep = pos > msb ? 0 : end - pos + 1;
  u64 mask = keep > 63 ? ~0ull : (1ull << keep) - 1;
  return (v & mask) | (fill & ~mask);
}

static inline u64
bfi_u64(u64 x, u64 y, u32 pos_len, u32 bits)
{
  u32 pos = pos_len & 255, len = pos_len >> 8 & 255;
  if (pos >= bits || len == 0)
    return y;
  u64 mask = (len > 63 ? ~0ull : (1ull << len) - 1) << pos;
  return (x << pos & mask) | (y & ~mask);
}

static inline u32
lop3(u32 x, u32 y, u32 z, u32 lut)
{
  u32 r = 0;
  for (u32 k = 0; k < 8; k++)
    r |= (0 - (lut >> k & 1)) & (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
  return r;
}

/* imm: 0 clamp, 1 wrap */
static inline u32
shift_count(u32 n, u64 imm)
{
  return imm ? n & 31 : n > 32 ? 32 : n;
}

static inline u32
prmt_byte(u64 xy, u32 sel)
{
  u32 byte = (u32)(xy >> 8 * (sel & 7)) & 255;
  return sel & 8 ? (byte & 128 ? 255 : 0) : byte;
}

/* mode: 0 generic, 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16 */
static inline u32
prmt(u32 x, u32 y, u32 sel, u32 mode)
{
  u64 xy = x | (u64)y << 32;
  u32 r = 0, s = sel & 3;
  for (u32 i = 0; i < 4; i++) {
    u32 pick = mode == 0   ? sel >> 4 * i & 15
               : mode == 1 ? s + i
               : mode == 2 ? (s - i) & 7
               : mode == 3 ? s
               : mode == 4 ? (i > s ? i : s)
               : mode == 5 ? (i < s ? i : s)
                           : (s & 1) * 2 + (i & 1);
    r |= prmt_byte(xy, pick) << 8 * i;
  }
  return r;
}

/* x and y clamped to a byte, signed if imm, above them the low half of z */
static inline u32
cvt_pack(u32 x, u32 y, u32 z, u32 imm)
{
  s32 lo = imm ? -128 : 0, hi = imm ? 127 : 255, a = (s32)x, b = (s32)y;
  a = a < lo ? lo : a > hi ? hi : a;
  b = b < lo ? lo : b > hi ? hi : b;
  return ((u32)b & 255) | ((u32)a & 255) << 8 | z << 16;
}

/* Where the n-th set bit of x is, counted from bit `from` on: upward if n > 0, downward if n < 0; n = 0: that bit itself. ~0: nowhere. */
static inline u32
fns(u32 x, u32 from, s32 n)
{
  u32 step = n < 0 ? ~0u : 1, left = n < 0 ? 0 - (u32)n : (u32)n;
  if (n == 0)
    return from < 32 && x >> from & 1 ? from : ~0u;
  for (u32 i = from; i < 32; i += step) {
    left -= x >> i & 1;
    if (left == 0)
      return i;
  }
  return ~0u;
}

/* imm: bit 0: x signed, bit 1: y signed, bit 2 (dp2a): high half of y */
static inline u32
dp4a(u32 x, u32 y, u32 z, u32 imm)
{
  for (u32 i = 0; i < 4; i++) {
    u32 p = x >> 8 * i & 255, q = y >> 8 * i & 255;
    z += (u32)((imm & 1 ? (s8)p : (s32)p) * (imm & 2 ? (s8)q : (s32)q));
  }
  return z;
}

static inline u32
dp2a(u32 x, u32 y, u32 z, u32 imm)
{
  for (u32 i = 0; i < 2; i++) {
    u32 p = x >> 16 * i & 0xffff, q = y >> 8 * (i + (imm & 4 ? 2 : 0)) & 255;
    z += (u32)((imm & 1 ? (s16)p : (s32)p) * (imm & 2 ? (s8)q : (s32)q));
  }
  return z;
}

static inline f32
min_f32(f32 x, f32 y)
{
  f32 r = x < y ? x : y;
  r = x == y ? bits_f32(f32_bits(x) | f32_bits(y)) : r;
  r = x != x ? y : r;
  r = y != y ? x : r;
  return f32_canon(r);
}

static inline f32
max_f32(f32 x, f32 y)
{
  f32 r = x > y ? x : y;
  r = x == y ? bits_f32(f32_bits(x) & f32_bits(y)) : r;
  r = x != x ? y : r;
  r = y != y ? x : r;
  return f32_canon(r);
}

/* r with the sign of x y; a nan as it is. */
static inline f32
signed_f32(f32 r, f32 x, f32 y)
{
  return r != r ? r : bits_f32(f32_bits(r) | ((f32_bits(x) ^ f32_bits(y)) & 0x80000000u));
}

/* PTX ISA, min and max: .xorsign.abs */
static inline f32
min_sizes(f32 x, f32 y)
{
  return signed_f32(min_f32(fabsf(x), fabsf(y)), x, y);
}

static inline f32
max_sizes(f32 x, f32 y)
{
  return signed_f32(max_f32(fabsf(x), fabsf(y)), x, y);
}

static inline f64
min_f64(f64 x, f64 y)
{
  f64 r = x < y ? x : y;
  r = x == y ? bits_f64(f64_bits(x) | f64_bits(y)) : r;
  return x != x ? y : y != y ? x : r;
}

static inline f64
max_f64(f64 x, f64 y)
{
  f64 r = x > y ? x : y;
  r = x == y ? bits_f64(f64_bits(x) & f64_bits(y)) : r;
  return x != x ? y : y != y ? x : r;
}

static inline s32
f32_to_s32(f32 x)
{
  f32 c = x >= -0x1p31f ? x : -0x1p31f;
  s32 r = (s32)(c < 0x1p31f ? c : 0);
  r = x >= 0x1p31f ? INT32_MAX : r;
  return x != x ? 0 : r;
}

static inline u32
f32_to_u32(f32 x)
{
  f32 c = x > 0 ? x : 0;
  return x >= 0x1p32f ? UINT32_MAX : (u32)(c < 0x1p32f ? c : 0);
}

/* Bytes that are 0 or 1 to bits, lane 0 lowest. */
static inline u32
pack_bits(const uint8_t *r)
{
  u32 m = 0;
  for (u32 i = 0; i < 4; i++) {
    u64 v;
    memcpy(&v, r + 8 * i, 8);
    m |= (u32)(v * 0x0102040810204080ull >> 56) << 8 * i;
  }
  return m;
}

#define LOOP(n, D, A, B, C, expr) \
  { \
    D *d = d_; \
    const A *a = a_; \
    const B *b = b_; \
    const C *c = c_; \
    (void)imm; \
    _Pragma("GCC ivdep") for (int i = 0; i < (n); i++) { \
      A x = a[i]; \
      B y = b[i]; \
      C z = c[i]; \
      (void)x, (void)y, (void)z; \
      d[i] = (D)(expr); \
    } \
  }
#define HEAD(op, var, type) \
  static void op##_##var##_##type(void *d_, const void *a_, const void *b_, const void *c_, uint64_t imm)

#define ROW(op, var, type, D, A, B, C, expr) HEAD(op, var, type) LOOP(LANES, D, A, B, C, expr)
#define PAIRS(op, var, type, expr) HEAD(op, var, type) LOOP(2 * LANES, u16, u16, u16, u16, expr)
#define DUO(op, var, type, expr) HEAD(op, var, type) LOOP(2 * LANES, f32, f32, f32, f32, expr)
#define SELECT(op, type, T) \
  HEAD(op, V_NONE, type) \
  { \
    T *d = d_; \
    const T *a = a_, *b = b_; \
    u32 m = *(const u32 *)c_; \
    (void)imm; \
    _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? a[i] : b[i]; \
  }
#define TEST(op, type, A, cond) \
  HEAD(op, V_NONE, type) \
  { \
    const A *a = a_, *b = b_; \
    uint8_t r[LANES]; \
    (void)c_, (void)imm; \
    for (int i = 0; i < LANES; i++) { \
      A x = a[i], y = b[i]; \
      (void)y; \
      r[i] = (cond) ? 1 : 0; \
    } \
    *(u32 *)d_ = pack_bits(r); \
  }
#include "alu.def"

#define ROW(op, var, type, D, A, B, C, expr) {A_##op, var, T_##type, K_ALU, op##_##var##_##type},
#define PAIRS(op, var, type, expr) {A_##op, var, T_##type, K_ALU, op##_##var##_##type},
#define DUO(op, var, type, expr) {A_##op, var, T_##type, K_ALU, op##_##var##_##type},
#define SELECT(op, type, T) {A_##op, V_NONE, T_##type, K_ALU, op##_V_NONE_##type},
#define TEST(op, type, A, cond) {A_##op, V_NONE, T_##type, K_SETP, op##_V_NONE_##type},
extern const AluRow ALU_TABLE[];
const AluRow ALU_TABLE[] = {
#include "alu.def"
  {A_COUNT, 0, 0, 0, NULL},
};
