/* fp_test.c - number formats against exhaustive search, the compiler's own half floats and hand-picked values. */
#include "../../ir/interp.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

static int failures;
#define CHECK(cond, ...) do { if (!(cond) && ++failures < 20) { fprintf(stderr, "%d: %s: ", __LINE__, #cond); \
  fprintf(stderr, __VA_ARGS__); fputc('\n', stderr); } } while (0)

static u64
next_random(u64 *s)
{
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s;
}

static double
as_double(u64 b)
{
  double v;
  memcpy(&v, &b, sizeof v);
  return v;
}

static float
as_float(u32 b)
{
  float v;
  memcpy(&v, &b, sizeof v);
  return v;
}

static void
check_round_trip(DType d)
{
  for (u64 b = 0; b < 1ull << dtype_bits(d); b++) {
    double v = float_decode(d, b);
    u64 back = float_encode(d, v, ROUND_NEAREST, false), back_rz = float_encode(d, v, ROUND_ZERO, false);
    CHECK((v != v) == float_is_nan(d, b), "%s %llx", dtype_info[d].name, (unsigned long long)b);
    if (v != v)
      CHECK(back == float_nan(d), "%s nan %llx", dtype_info[d].name, (unsigned long long)back);
    else if (isinf(v) && dtype_bits(d) == 8)
      CHECK((back & 0x7f) == float_max_finite(d), "%s inf", dtype_info[d].name);
    else
      CHECK(back == b && back_rz == b, "%s %llx -> %llx", dtype_info[d].name, (unsigned long long)b,
            (unsigned long long)back);
  }
}

/* Between consecutive values, points around the middle go where they should. */
static void
check_midpoints(DType d)
{
  u64 sign = 1ull << (dtype_bits(d) - 1);
  for (u64 b = 0; b < float_max_finite(d); b++) {
    double lo = float_decode(d, b), hi = float_decode(d, b + 1), mid = (lo + hi) / 2;
    CHECK(float_encode(d, mid, ROUND_NEAREST, false) == b + (b & 1), "%s mid %a", dtype_info[d].name, mid);
    CHECK(float_encode(d, nextafter(mid, 0), ROUND_NEAREST, false) == b, "%s below %a", dtype_info[d].name, mid);
    CHECK(float_encode(d, nextafter(mid, INFINITY), ROUND_NEAREST, false) == b + 1, "%s above %a", dtype_info[d].name, mid);
    CHECK(float_encode(d, nextafter(hi, 0), ROUND_ZERO, false) == b, "%s rz %a", dtype_info[d].name, hi);
    CHECK(float_encode(d, mid, ROUND_DOWN, false) == b && float_encode(d, mid, ROUND_UP, false) == b + 1, "%s directed %a",
          dtype_info[d].name, mid);
    CHECK(float_encode(d, -mid, ROUND_UP, false) == (sign | b) && float_encode(d, -mid, ROUND_DOWN, false) == (sign | (b + 1)),
          "%s directed %a", dtype_info[d].name, -mid);
    CHECK(float_encode(d, -mid, ROUND_NEAREST, false) == (sign | (b + (b & 1))), "%s -mid %a", dtype_info[d].name, mid);
  }
}

static void
check_half(double v)
{
#ifdef __FLT16_MANT_DIG__
  _Float16 h = (_Float16)v, hf = (_Float16)(float)v;
  u16 want, wantf;
  memcpy(&want, &h, 2), memcpy(&wantf, &hf, 2);
  u64 got = float_encode(DT_F16, v, ROUND_NEAREST, false), gotf = float_encode(DT_F16, (float)v, ROUND_NEAREST, false);
  CHECK(v != v ? float_is_nan(DT_F16, got) : got == want, "%a: %llx, want %x", v, (unsigned long long)got, want);
  CHECK(v != v ? float_is_nan(DT_F16, gotf) : gotf == wantf, "%a: %llx, want %x", v, (unsigned long long)gotf, wantf);
#endif
}

static void
check_random(void)
{
  u64 s = 88172645463325252ull;
  for (int i = 0; i < 300000; i++) {
    u64 r = next_random(&s);
    check_half(as_double(r));
    check_half(as_float((u32)r));
    check_half(as_double((r & 0x800fffffffffffffull) | (u64)(1023 - 30 + r % 50) << 52));
    double v = as_double((r & 0x800fffffffffffffull) | (u64)(1023 - 160 + r % 300) << 52);
    float f = (float)v;
    u32 want;
    memcpy(&want, &f, 4);
    CHECK(float_encode(DT_F32, v, ROUND_NEAREST, false) == want, "f32 %a", v);
    u32 clamped = isinf(f) ? (want & 0x80000000u) | 0x7f7fffffu : want;
    CHECK(float_encode(DT_F32, v, ROUND_NEAREST, true) == clamped, "f32 sat %a", v);
  }
}

static void
check_integers(void)
{
  u64 s = 12345;
  for (int i = 0; i < 100000; i++) {
    u64 width = next_random(&s) % 64, r = next_random(&s) >> width;
    float f = (float)r;
    double d = (double)r;
    CHECK(float_encode_int(DT_F64, false, r, ROUND_NEAREST, false) == float_encode(DT_F64, d, ROUND_NEAREST, false), "%a", d);
    CHECK(!r || float_encode_int(DT_F32, true, r, ROUND_NEAREST, false) == float_encode(DT_F32, -f, ROUND_NEAREST, false), "%a", d);
    check_half((double)(r & 0xfffff));
  }
  CHECK(float_encode_int(DT_F16, false, 65519, ROUND_NEAREST, false) == 0x7bff, "below the overflow threshold");
  CHECK(float_encode_int(DT_F16, false, 65520, ROUND_NEAREST, false) == 0x7c00, "overflow");
  CHECK(float_encode_int(DT_F16, false, 65520, ROUND_NEAREST, true) == 0x7bff, "saturate");
  CHECK(float_encode_int(DT_F16, false, 65520, ROUND_ZERO, false) == 0x7bff, "toward zero");
  CHECK(float_encode_int(DT_F32, false, (1ull << 54) + (1ull << 30) + 1, ROUND_NEAREST, false) == 0x5a800001, "one rounding");
}

static void
check_edges(void)
{
  CHECK(float_encode(DT_F8E4M3, 448, ROUND_NEAREST, false) == 0x7e, "448");
  CHECK(float_encode(DT_F8E4M3, 1e9, ROUND_NEAREST, false) == 0x7e, "saturates");
  CHECK(float_encode(DT_F8E4M3, -INFINITY, ROUND_NEAREST, false) == 0xfe, "-inf saturates");
  CHECK(float_encode(DT_F8E5M2, INFINITY, ROUND_NEAREST, false) == 0x7b, "inf saturates");
  CHECK(float_encode(DT_F8E4M3, NAN, ROUND_NEAREST, true) == 0x7f, "nan stays");
  CHECK(float_encode(DT_BF16, 3.4e38, ROUND_NEAREST, false) == 0x7f80, "bf16 overflow");
  CHECK(float_encode(DT_F32, NAN, ROUND_NEAREST, false) == 0x7fffffff, "f32 nan");
  CHECK(float_encode(DT_F16, 65504, ROUND_NEAREST, false) == 0x7bff, "largest f16");
  CHECK(float_encode(DT_F16, -0.0, ROUND_NEAREST, false) == 0x8000, "negative zero");
  CHECK(float_encode(DT_F64, DBL_TRUE_MIN, ROUND_NEAREST, false) == 1, "smallest f64");
  CHECK(float_encode(DT_F64, DBL_MAX, ROUND_ZERO, true) == float_max_finite(DT_F64), "largest f64");
  CHECK(float_encode(DT_F32, 1 + ldexp(1, -24), ROUND_NEAREST, false) == 0x3f800000, "tie to even");
  CHECK(float_encode(DT_F16, 1e9, ROUND_DOWN, false) == 0x7bff && float_encode(DT_F16, 1e9, ROUND_UP, false) == 0x7c00, "overflow");
  CHECK(float_encode(DT_F16, -1e9, ROUND_DOWN, false) == 0xfc00 && float_encode(DT_F16, -1e9, ROUND_UP, false) == 0xfbff, "overflow");
  CHECK(float_encode(DT_F16, 1e-30, ROUND_UP, false) == 1 && float_encode(DT_F16, -1e-30, ROUND_UP, false) == 0x8000, "tiny");
  CHECK(scalar_cast(DT_F32, DT_I32, 0xc0200000, ROUND_UP, false) == 0xfffffffe, "-2.5 up");
  CHECK(scalar_cast(DT_F32, DT_I32, 0xc0200000, ROUND_DOWN, false) == 0xfffffffd, "-2.5 down");
  CHECK(float_encode(DT_F32, -(1 + ldexp(3, -25)), ROUND_ZERO, false) == 0xbf800000, "rz");
  CHECK(float_round_tf32(1 + ldexpf(1, -11), false) == 1 + ldexpf(1, -10), "ties away");
  CHECK(float_round_tf32(1 + ldexpf(1, -11), true) == 1 && float_round_tf32(1 + 3 * ldexpf(1, -11), true) == 1 + ldexpf(1, -9), "ties to even");
  CHECK(float_round_tf32(1 + ldexpf(1, -12), false) == 1 && isinf(float_round_tf32(INFINITY, true)), "tf32");
  CHECK(float_from_bits(DT_F16, float_to_bits(DT_F16, 1.5)) == 1.5, "contract names");
}

int
main(void)
{
  static const DType narrow[] = {DT_F8E4M3, DT_F8E5M2, DT_F16, DT_BF16};
  for (size_t i = 0; i < COUNT(narrow); i++) {
    check_round_trip(narrow[i]);
    check_midpoints(narrow[i]);
  }
  check_random();
  check_integers();
  check_edges();
  return failures != 0;
}
