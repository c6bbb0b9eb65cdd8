/* Element types: conversions against the compiler's arithmetic, and agreement with the compiler's table. */
#include <math.h>
#include "check.h"
#include "dtype.h"

static const struct { const char *name; int bits; char kind; int exp, man; } compiler[] = {
#define B 'B'
#define I 'I'
#define U 'U'
#define F 'F'
#define DTYPE(ID, name, bits, kind, exp, man, doc) {name, bits, kind, exp, man},
#include "dtypes.def"
#undef DTYPE
#undef B
#undef I
#undef U
#undef F
};

static void
test_same_table(void)
{
  for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++) {
    Dtype t = rt_dtype_find(compiler[i].name);
    CHECK(t != DTYPE_NONE);
    const DtypeInfo *d = rt_dtype_info(t);
    CHECK("BIUF"[d->kind] == compiler[i].kind && d->expbits == compiler[i].exp && d->manbits == compiler[i].man);
    CHECK(d->bits == (compiler[i].bits < 8 ? 8 : compiler[i].bits));
  }
  CHECK(sizeof compiler / sizeof *compiler == DTYPE_COUNT - 1);
}

static void
test_f32(void)
{
  static const double values[] = {0.0, -0.0, 1.0, 0.1, -1e-45, 1e-46, 3.4028235e38, 3.5e38, 1e300, -1e300, 1.1754943e-38,
                                  1.1754942e-38, 16777217.0, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    float f = (float)values[i];
    uint32_t bits;
    memcpy(&bits, &f, 4);
    CHECK(dtype_encode_float(DTYPE_F32, values[i]) == bits);
    CHECK(dtype_decode(DTYPE_F32, bits) == (double)f);
  }
}

/* Every finite number of a small type survives; the middle of two neighbours goes to the even one. */
static void
test_small(Dtype t)
{
  uint64_t count = UINT64_C(1) << (rt_dtype_info(t)->bits - 1);
  for (uint64_t b = 0; b + 1 < count; b++) {
    double v = dtype_decode(t, b), next = dtype_decode(t, b + 1);
    if (!isfinite(v))
      continue;
    CHECK(dtype_encode_float(t, v) == b);
    CHECK(dtype_encode_float(t, -v) == (b | count));
    if (isfinite(next))
      CHECK(dtype_encode_float(t, (v + next) / 2) == (b % 2 ? b + 1 : b));
  }
  CHECK(isnan(dtype_decode(t, dtype_encode_float(t, NAN))));
}

static void
test_edges(void)
{
  uint64_t bits;
  CHECK(dtype_encode_float(DTYPE_F16, 65520.0) == 0x7c00 && dtype_encode_float(DTYPE_F16, 65519.0) == 0x7bff);
  CHECK(dtype_encode_float(DTYPE_E4M3, 448.0) == 0x7e && dtype_encode_float(DTYPE_E4M3, 464.0) == 0x7e);
  CHECK(dtype_encode_float(DTYPE_E4M3, 1e9) == 0x7f && dtype_encode_float(DTYPE_E5M2, 1e9) == 0x7c);
  CHECK(dtype_encode_float(DTYPE_BF16, 1.0) == 0x3f80);
  CHECK(dtype_encode_int(DTYPE_I32, INT32_MAX, &bits) && !dtype_encode_int(DTYPE_I32, INT64_C(1) << 31, &bits));
  CHECK(dtype_encode_int(DTYPE_I8, -128, &bits) && !dtype_encode_int(DTYPE_I8, -129, &bits));
  CHECK(dtype_encode_int(DTYPE_U32, UINT32_MAX, &bits) && !dtype_encode_int(DTYPE_U32, -1, &bits));
  CHECK(dtype_encode_int(DTYPE_I1, 1, &bits) && !dtype_encode_int(DTYPE_I1, 2, &bits));
  CHECK(dtype_encode_int(DTYPE_I64, INT64_MIN, &bits));
  CHECK(dtype_decode(DTYPE_I16, 0xffff) == -1 && dtype_decode(DTYPE_U16, 0xffff) == 65535);
  CHECK(rt_dtype_find("f33") == DTYPE_NONE && rt_dtype_find("?") == DTYPE_NONE);
}

int
main(void)
{
  test_same_table();
  test_f32();
  test_small(DTYPE_F16);
  test_small(DTYPE_BF16);
  test_small(DTYPE_E4M3);
  test_small(DTYPE_E5M2);
  test_edges();
  return 0;
}
