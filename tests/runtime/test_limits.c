/* Texts that are too much: they get a status and a sentence, whatever their size and depth, and the next call works. */
#include "check.h"
#include "jit.h"

/* Compile text; the status, which words in the diagnostics must explain. */
static int
compiled(const char *name, const char *text, size_t len, const TilecOptions *o, const char *words, size_t *nerrors)
{
  TilecResult *r = tilec_compile(name, text, len, o);
  CHECK(r);
  int status = r->status;
  if (!strstr(r->diagnostics, words))
    fprintf(stderr, "%s: \"%.300s\", expected \"%s\"\n", name, r->diagnostics, words);
  CHECK(strstr(r->diagnostics, words));
  if (nerrors)
    *nerrors = r->nerrors;
  tilec_result_free(r);
  return status;
}

/* before, n times what, middle, n times after it, end. */
static char *
repeated(const char *before, const char *what, size_t n, const char *middle, const char *after, const char *end)
{
  char *text = malloc(strlen(before) + n * (strlen(what) + strlen(after)) + strlen(middle) + strlen(end) + 1), *at = text;
  CHECK(text);
  at += sprintf(at, "%s", before);
  for (size_t i = 0; i < n; i++)
    at = stpcpy(at, what);
  at = stpcpy(at, middle);
  for (size_t i = 0; i < n; i++)
    at = stpcpy(at, after);
  strcpy(at, end);
  return text;
}

static void
fails(const char *text, const char *words)
{
  CHECK(compiled("k.tile", text, strlen(text), NULL, words, NULL) == TILEC_FAILED);
}

static void
test_size(void)
{
  static const char *const names[] = {"k.tile", "k.tir"};
  const size_t most = 16 << 20;
  char *text = calloc(most + 2, 1);
  memset(text, ' ', most + 1);
  for (int i = 0; i < 2; i++) {
    CHECK(compiled(names[i], text, most + 1, NULL, "is larger than 16 MiB", NULL) == TILEC_FAILED);
    CHECK(compiled(names[i], text, most, NULL, i ? "expected 'module'" : "the file has no kernel", NULL) != TILEC_OK);
  }
  free(text);
}

static void
test_depth(void)
{
  static const struct { const char *before, *what, *middle, *after, *end; } deep[] = {
    {"kernel k(x: *f32) { store(x, ", "(", "1.0", ")", "); }"}, {"kernel k(x: *f32) { ", "{", "", "}", " }"},
    {"kernel k(x: *f32) { store(x, ", "-", "1.0", "", "); }"}, {"kernel k(x: *f32) { store(x, ", "true ? 1.0 : ", "2.0", "", "); }"},
    {"kernel k(x: *f32) { store(x, x", "[0]", "", "", "); }"}, {"kernel k(x: *f32) { store(x, ", "f(", "1", ")", "); }"},
    {"kernel k(x: *f32) { store(x, 1.0", " + 1.0", "", "", "); }"}, {"kernel k(x: *f32, n: i32) { ", "if n > 1 { ", "", "}", " }"},
    {"kernel k(x: *f32, n: i32) { ", "if n > 1 { } else ", "{ }", "", " }"},
    {"kernel k(x: *f32, n: i32) { ", "for i in range(n) { ", "", "}", " }"},
    {"kernel k(x: *", "(*", "f32", ")", ") { }"}, {"type T = ", "(", "f32", ")", ";\nkernel k(x: *T) { }"},
    {"kernel k(x: *f32) { let a = ", "[", "1", "]", "; }"}, {"kernel k(x: *f32) { let a = ", "(x) -> ", "1", "", "; }"},
  };
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
    char *text = repeated(deep[i].before, deep[i].what, 100000, deep[i].middle, deep[i].after, deep[i].end);
    fails(text, "error[E01");
    free(text);
  }
}

/* Only 20 errors are shown, and all are counted. */
static void
test_many(void)
{
  size_t n = 0;
  char *text = repeated("kernel k(x: *f32) {\n", "  store(x, nobody);\n", 20000, "", "", "}\n");
  CHECK(compiled("k.tile", text, strlen(text), NULL, "too many errors", &n) == TILEC_FAILED);
  CHECK(n == 20000);
  free(text);
}

static void
test_parameters(void)
{
  const size_t n = 8000;
  char *text = malloc(20 * n), *at = text;
  at += sprintf(at, "kernel k(");
  for (size_t i = 0; i < n; i++)
    at += sprintf(at, "x%zu: *f32, ", i);
  strcpy(at, "n: i32) { }");
  fails(text, "8001 parameters; more than 64");
  free(text);
}

static void
test_defines(void)
{
  static const char source[] = "kernel k(x: *f32, const B: i32 = 1) { store(x, 1.0); }";
  char *digits = repeated("", "7", (1 << 20) + 1, "", "", ""), *deep = repeated("", "(", 200000, "1", ")", "");
  TilecDefine huge = {"B", digits}, nested = {"B", deep}, two = {"B", "1; const C = 2"}, named = {digits, "1"};
  TilecOptions o;
  tilec_options_default(&o);
  o.ndefines = 1;
  o.defines = &huge;
  CHECK(compiled("k.tile", source, strlen(source), &o, "more than 1 MiB", NULL) == TILEC_MISUSE);
  o.defines = &named;
  CHECK(compiled("k.tile", source, strlen(source), &o, "more than 1 MiB", NULL) == TILEC_MISUSE);
  digits[1 << 20] = 0;
  o.defines = &huge;
  CHECK(compiled("k.tile", source, strlen(source), &o, "malformed number", NULL) == TILEC_FAILED);
  o.defines = &nested;
  CHECK(compiled("k.tile", source, strlen(source), &o, "nested too deeply", NULL) == TILEC_FAILED);
  o.defines = &two;
  CHECK(compiled("k.tile", source, strlen(source), &o, "must be one expression", NULL) == TILEC_MISUSE);
  free(digits);
  free(deep);
}

int
main(void)
{
  static const char good[] = "kernel k(x: *f32) { store(x, 1.0); }";
  test_size();
  test_depth();
  test_many();
  test_parameters();
  test_defines();
  CHECK(compiled("k.tile", good, strlen(good), NULL, "", NULL) == TILEC_OK);
  return 0;
}
