/* tilerun's parts: expressions, .npy files, array descriptions, comparison. */
#include <math.h>
#include <unistd.h>
#include "argspec.h"
#include "check.h"
#include "compare.h"
#include "expr.h"

static char message[512];

/* Under AddressSanitizer, too, more than there is gives NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

static int
names(void *user, const char *name, size_t len, int64_t *v)
{
  *v = len == 1 && *name == 'n' ? 1000 : 128;
  return (len == 1 && *name == 'n') || (len == 5 && !memcmp(name, "BLOCK", 5));
}

static int64_t
value(const char *text)
{
  int64_t v = -99999;
  if (expr_eval(text, strlen(text), names, NULL, &v, message, sizeof message)) {
    fprintf(stderr, "%s: %s\n", text, message);
    exit(1);
  }
  return v;
}

static int
refused(const char *text, const char *why)
{
  int64_t v;
  return expr_eval(text, strlen(text), names, NULL, &v, message, sizeof message) == -1 && strstr(message, why);
}

static void
test_expr(void)
{
  char deep[400];
  CHECK(value("1 + 2*3") == 7 && value("(1+2)*3") == 9 && value("-n + 1") == -999 && value("7 % 4 - 10 / 3") == 0);
  CHECK(value("cdiv(n, BLOCK)") == 8 && value("cdiv(1024,BLOCK)") == 8 && value("cdiv(-5, 2)") == -2);
  CHECK(value("min(n, 3) + max(n, 3)") == 1003 && value(" 42 ") == 42 && value("--5") == 5);
  CHECK(value("9223372036854775807") == INT64_MAX && value("cdiv(cdiv(n,10),10)") == 10);
  CHECK(refused("", "expected a number") && refused("1 +", "expected a number") && refused("m", "unknown name"));
  CHECK(refused("f(1,2)", "unknown function") && refused("1/0", "division by zero") && refused("1 2", "left over"));
  CHECK(refused("9223372036854775808", "overflow") && refused("n*9223372036854775807", "overflow"));
  CHECK(refused("cdiv(1)", "expected ,") && refused("(1", "expected )") && refused("cdiv(1,0)", "division"));
  CHECK(refused("(0-9223372036854775807-1)/-1", "overflow"));
  memset(deep, '(', sizeof deep - 1);
  deep[sizeof deep - 1] = 0;
  CHECK(refused(deep, "too deep"));
}

static int
same_array(const Array *a, const Array *b)
{
  return a->dtype == b->dtype && a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof a->shape) &&
         !memcmp(a->data, b->data, a->count * dtype_size(a->dtype));
}

static void
round_trip(const char *word, Dtype as)
{
  char path[64];
  Array a, b;
  snprintf(path, sizeof path, "/tmp/tilec-test-%d.npy", (int)getpid());
  CHECK(!argspec_create("x", word, 1, &a, NULL, message, sizeof message));
  CHECK(!npy_write(path, &a, message, sizeof message));
  CHECK(!npy_read(path, as, &b, message, sizeof message));
  CHECK(same_array(&a, &b));
  array_destroy(&a);
  array_destroy(&b);
  unlink(path);
}

static int
npy_refused(const char *header, size_t data, const char *why)
{
  unsigned char bytes[512] = "\x93NUMPY\1\0";
  Array a;
  size_t n = strlen(header);
  bytes[8] = (unsigned char)n;
  memcpy(bytes + 10, header, n);
  int status = npy_parse(bytes, 10 + n + data, DTYPE_NONE, &a, message, sizeof message);
  if (!status)
    array_destroy(&a);
  return why ? status == -1 && strstr(message, why) != NULL : status == 0;
}

/* Status of reading an array of two numbers, under a header of this version, as another type. */
static int
npy_as(char version, const char *descr, Dtype as)
{
  unsigned char bytes[256] = "\x93NUMPY";
  size_t start = version == 1 ? 10 : 12;
  int n = snprintf((char *)bytes + start, 128, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", descr);
  Array a;
  bytes[6] = (unsigned char)version;
  bytes[8] = (unsigned char)n;
  memcpy(bytes + start + n, "\1\2\3\4\5\6\7\10", 8);
  int status = npy_parse(bytes, start + (size_t)n + 8, as, &a, message, sizeof message);
  if (!status)
    CHECK(a.count == 2 && a.dtype == (as == DTYPE_NONE ? a.dtype : as) && (array_bits(&a, 0) & 0xff) == 1);
  array_destroy(&a);
  return status;
}

/* Of formats that numpy has not, only unsigned numbers of their size are the bits. */
static void
test_npy_kinds(void)
{
  for (char version = 1; version <= 3; version++)
    CHECK(!npy_as(version, "<i4", DTYPE_NONE) && !npy_as(version, "<u2", DTYPE_BF16) && !npy_as(version, "|u1", DTYPE_E5M2));
  CHECK(npy_as(4, "<i4", DTYPE_NONE) && npy_as(0, "<i4", DTYPE_NONE));
  CHECK(npy_as(1, "<i2", DTYPE_BF16) && npy_as(1, "<f2", DTYPE_BF16) && npy_as(1, "|i1", DTYPE_E4M3) && npy_as(1, "|b1", DTYPE_E4M3));
  CHECK(npy_as(1, "<u4", DTYPE_BF16) && npy_as(1, "|u1", DTYPE_BF16) && npy_as(1, "<u4", DTYPE_F32) == 0);
}

static void
test_npy(void)
{
  Array a;
  round_trip("rand:f32:7x5", DTYPE_NONE);
  round_trip("rand:f16:3", DTYPE_NONE);
  round_trip("randint:i64:-5:5:2x2x2", DTYPE_NONE);
  round_trip("randint:i1:0:2:9", DTYPE_NONE);
  round_trip("rand:bf16:8", DTYPE_BF16);
  round_trip("rand:f8e4m3:8", DTYPE_E4M3);
  round_trip("zeros:f64:0", DTYPE_NONE);
#define H(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
  CHECK(npy_refused(H("'<f4'", "False", "(2, 2)"), 16, NULL));
  CHECK(npy_refused(H("'<f4'", "False", "()"), 4, NULL));
  CHECK(npy_refused(H("'<f4'", "False", "(2, 2)"), 15, "cut off"));
  CHECK(npy_refused(H("'>f4'", "False", "(2,)"), 8, "little endian"));
  CHECK(npy_refused(H("'<f4'", "True", "(2, 2)"), 16, "Fortran"));
  CHECK(npy_refused(H("'<f4'", "True", "(4,)"), 16, NULL));
  CHECK(npy_refused(H("'<f4'", "False", "(-2,)"), 16, "malformed"));
  CHECK(npy_refused(H("'<f4'", "False", "(4294967296, 4294967296, 4)"), 16, "cut off"));
  CHECK(npy_refused(H("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 16, "malformed"));
  CHECK(npy_refused("{}", 0, "malformed"));
  CHECK(npy_parse((const unsigned char *)"\x93NUMPY\1\0\377\377xx", 12, DTYPE_NONE, &a, message, sizeof message) == -1);
  test_npy_kinds();
  CHECK(npy_read("/nonexistent.npy", DTYPE_NONE, &a, message, sizeof message) == -1 && strstr(message, "No such file"));
  CHECK(npy_read("/", DTYPE_NONE, &a, message, sizeof message) == -1 && strstr(message, "Is a directory"));
  CHECK(npy_read("/dev/null", DTYPE_NONE, &a, message, sizeof message) == -1 && strstr(message, "not a .npy file"));
  CHECK(npy_read("/dev/zero", DTYPE_NONE, &a, message, sizeof message) == -1 && strstr(message, "not a .npy file"));
}

/* The same files through the file system, and through a pipe, of which nobody knows how much is to come. */
static int
file_refused(const char *header, size_t n, size_t data, int version, int piped, const char *why)
{
  unsigned char bytes[512] = "\x93NUMPY\1\0";
  char path[64], command[300];
  Array a;
  size_t start = version == 1 ? 10 : 12;
  bytes[6] = (unsigned char)version;
  bytes[8] = (unsigned char)n;
  bytes[9] = (unsigned char)(n >> 8);
  bytes[10] = (unsigned char)(n >> 16);
  bytes[11] = (unsigned char)(n >> 24);
  memcpy(bytes + start, header, strlen(header));
  snprintf(path, sizeof path, "/tmp/tilec-test-%d", (int)getpid());
  FILE *f = fopen(path, "wb");
  CHECK(f && fwrite(bytes, 1, start + strlen(header) + data, f) == start + strlen(header) + data && !fclose(f));
  if (piped) {
    snprintf(command, sizeof command, "mkfifo %s.pipe; (cat %s > %s.pipe &)", path, path, path);
    CHECK(!system(command));
  }
  snprintf(command, sizeof command, "%s%s", path, piped ? ".pipe" : "");
  int status = npy_read(command, DTYPE_NONE, &a, message, sizeof message);
  if (!status)
    array_destroy(&a);
  unlink(path);
  unlink(command);
  if (why ? status == -1 && strstr(message, why) : !status)
    return 1;
  fprintf(stderr, "%s: %d %s\n", header, status, message);
  return 0;
}

static void
test_npy_files(void)
{
  static const char good[] = H("'<f4'", "False", "(2, 2)"), huge[] = H("'<f4'", "False", "(100000000000,)");
  size_t n = strlen(good);
  for (int piped = 0; piped < 2; piped++) {
    CHECK(file_refused(good, n, 16, 1, piped, NULL) && file_refused(good, n, 16, 2, piped, NULL));
    CHECK(file_refused(good, n, 20, 3, piped, NULL));
    CHECK(file_refused(good, n, 15, 1, piped, "cut off") && file_refused(good, n + 20, 10, 1, piped, "cut off"));
    CHECK(file_refused(good, 0x7fffffff, 16, 2, piped, "cut off") && file_refused(good, n, 16, 4, piped, "not a .npy file"));
    CHECK(file_refused(huge, strlen(huge), 16, 1, piped, piped ? "" : "cut off"));
    CHECK(file_refused(H("'<f4'", "False", "(99999999999999999999999, 9)"), 80, 16, 1, piped, piped ? "" : "cut off"));
    CHECK(file_refused(H("'\033[3'", "False", "(2, 2)"), n, 16, 1, piped, "type '"));
    CHECK(!strchr(message, '\033'));
  }
}

static double
element(const char *word, size_t i)
{
  Array a;
  CHECK(!argspec_create("x", word, 0, &a, NULL, message, sizeof message));
  CHECK(i < a.count);
  double v = array_get(&a, i);
  array_destroy(&a);
  return v;
}

static int
spec_refused(const char *word, const char *why)
{
  Array a;
  return argspec_create("x", word, 0, &a, NULL, message, sizeof message) == -1 && strstr(message, why);
}

static void
test_argspec(void)
{
  CHECK(element("ones:bf16:4", 3) == 1 && element("full:f32:3.5:2x2", 3) == 3.5 && element("arange:i32:10", 7) == 7);
  CHECK(element("zeros:i8:1x1", 0) == 0 && element("full:i32:-3:1", 0) == -3);
  double v = element("uniform:f64:-2:2:100", 50), w = element("randint:i32:10:20:100", 50);
  CHECK(v >= -2 && v < 2 && w >= 10 && w < 20 && w == floor(w));
  CHECK(element("rand:f32:10", 4) == element("rand:f32:20", 4));
  CHECK(argspec_is_array("rand:f32:2") && argspec_is_array("@x.npy") && !argspec_is_array("12") && !argspec_is_array("n"));
  CHECK(spec_refused("randint:i32:0:1:2:3", "fields") && spec_refused("zeros:f32:2:2", "fields"));
  CHECK(spec_refused("rand:f32", "fields") && spec_refused("rand:f31:2", "unknown type"));
  CHECK(spec_refused("rand:f32:2x", "shape") && spec_refused("rand:f32:-2", "shape"));
  CHECK(spec_refused("full:f32:x:2", "number") && spec_refused("q8@x.npy", "unknown type"));
  CHECK(spec_refused("zeros:f32:99999999999x99999999999", "too large") && spec_refused("zeros:f32:99999999999999999999", "shape"));
  CHECK(spec_refused("full:i8:300:4", "does not fit") && spec_refused("full:u8:-1:4", "does not fit"));
  CHECK(element("full:i8:-128:4", 3) == -128);
  CHECK(spec_refused("full:i32:1e300:4", "whole number") && spec_refused("full:i32:2.5:4", "whole number"));
  CHECK(spec_refused("randint:i8:-1000:5:4", "does not fit") && spec_refused("randint:u8:0:257:4", "does not fit"));
  CHECK(spec_refused("randint:i32:5:5:4", "no number") && spec_refused("randint:i32:5:-5:4", "no number"));
  CHECK(element("randint:u8:255:256:4", 2) == 255 && spec_refused("randint:i32:0:99999999999999999999:4", "whole number"));
  CHECK(spec_refused("uniform:f32:nan:1:4", "no interval") && spec_refused("uniform:f32:2:1:4", "no interval"));
  CHECK(spec_refused("uniform:f64:-inf:inf:4", "no interval") && spec_refused("uniform:i32:0:9:4", "randint"));
  CHECK(spec_refused("arange:i8:129", "beyond its type") && element("arange:i8:128", 127) == 127);
}

static void
test_compare(void)
{
  Array a, b;
  CHECK(!argspec_create("x", "ones:f32:2x3", 0, &a, NULL, message, sizeof message));
  CHECK(!argspec_create("x", "ones:f32:2x3", 0, &b, NULL, message, sizeof message));
  CHECK(compare_arrays(&a, &b, -1, -1, message, sizeof message));
  ((float *)a.data)[4] = 1.5f;
  CHECK(!compare_arrays(&a, &b, -1, -1, message, sizeof message));
  CHECK(strstr(message, "1 of 6 elements differ, first [1, 1]: got 1.5, expected 1"));
  CHECK(compare_arrays(&a, &b, 0, 0.5, message, sizeof message));
  ((float *)b.data)[4] = NAN;
  CHECK(!compare_arrays(&a, &b, 1, 1, message, sizeof message));
  ((float *)a.data)[4] = NAN;
  CHECK(compare_arrays(&a, &b, -1, -1, message, sizeof message));
  ((float *)a.data)[0] = INFINITY;
  CHECK(!compare_arrays(&a, &b, 1, 1, message, sizeof message));
  array_destroy(&a);
  array_destroy(&b);
}

int
main(void)
{
  test_expr();
  test_npy();
  test_npy_files();
  test_argspec();
  test_compare();
  return 0;
}
