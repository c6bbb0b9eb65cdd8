/* readers_test.c - GGUF and safetensors: what good files say, and that of others a sentence comes that names what is wrong. */
#include "../runtime/check.h"
#include "gguf.h"
#include "safetensors.h"

typedef struct Bytes { uint8_t at[4096]; size_t n; } Bytes;

static void
put(Bytes *b, const void *p, size_t n)
{
  CHECK(b->n + n <= sizeof b->at);
  memcpy(b->at + b->n, p, n);
  b->n += n;
}

static void
put_number(Bytes *b, uint64_t v, size_t n)
{
  for (size_t i = 0; i < n; i++)
    put(b, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
}

static void
put_text(Bytes *b, const char *s)
{
  put_number(b, strlen(s), 8);
  put(b, s, strlen(s));
}

static void
put_tensor(Bytes *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset)
{
  put_text(b, name);
  put_number(b, 2, 4);
  put_number(b, cols, 8);
  put_number(b, rows, 8);
  put_number(b, type, 4);
  put_number(b, offset, 8);
}

/* Two tensors and four values; the first tensor's type, columns and offset are the caller's. */
static Bytes
gguf_file(uint32_t type, uint64_t cols, uint64_t offset, const char *second)
{
  Bytes b = {.n = 0};
  float eps = 0.5f;
  put(&b, "GGUF", 4);
  put_number(&b, 3, 4);
  put_number(&b, 2, 8);
  put_number(&b, 4, 8);
  put_text(&b, "layers");
  put_number(&b, GGUF_U32, 4);
  put_number(&b, 7, 4);
  put_text(&b, "eps");
  put_number(&b, GGUF_F32, 4);
  put(&b, &eps, 4);
  put_text(&b, "least");
  put_number(&b, GGUF_I16, 4);
  put_number(&b, 0xfffe, 2);
  put_text(&b, "words");
  put_number(&b, GGUF_ARRAY, 4);
  put_number(&b, GGUF_STRING, 4);
  put_number(&b, 2, 8);
  put_text(&b, "one");
  put_text(&b, "");
  put_tensor(&b, "w", cols, 2, type, offset);
  put_tensor(&b, second, 4, 1, 0, 64);
  while (b.n % 32)
    put_number(&b, 0, 1);
  for (int i = 0; i < 80; i++)
    put_number(&b, (uint64_t)i, 1);
  return b;
}

static void
good_gguf(void)
{
  Memory memory = {0};
  Fail err = {{0}};
  Gguf g;
  uint64_t n;
  double d;
  Bytes b = gguf_file(2, 32, 0, "v");
  CHECK(gguf_looks_so(b.at, b.n));
  CHECK_OK(gguf_read(&memory, b.at, b.n, &g, &err));
  CHECK(!gguf_integer(&g, "layers", 0, &n, &err) && n == 7);
  CHECK(!gguf_integer(&g, "heads", 3, &n, &err) && n == 3);
  CHECK(!gguf_real(&g, "eps", 0, &d, &err) && d == 0.5);
  CHECK(gguf_element(gguf_find(&g, "least"), 0) == -2);
  CHECK(gguf_integer(&g, "least", 0, &n, &err) && strstr(err.message, "least"));
  CHECK(gguf_real(&g, "layers", 0, &d, &err) && strstr(err.message, "layers"));
  const GgufValue *v = gguf_find(&g, "words");
  CHECK(v && v->is_array && v->count == 2 && text_is(v->strings[0], "one") && !v->strings[1].len);
  const Tensor *w = tensors_find(&g.tensors, "w"), *second = tensors_find(&g.tensors, "v");
  CHECK(w && w->format == FORMAT_Q4_0 && w->rows == 2 && w->cols == 32 && w->size == 36 && w->data[35] == 35);
  CHECK(second && second->format == FORMAT_F32 && second->rows == 1 && second->cols == 4 && second->data[0] == 64);
  CHECK(!tensors_find(&g.tensors, "u"));
  memory_free(&memory);
}

static void
refuses_gguf(Bytes b, const char *text)
{
  Memory memory = {0};
  Fail err = {{0}};
  Gguf g;
  if (!gguf_read(&memory, b.at, b.n, &g, &err) || !strstr(err.message, text)) {
    fprintf(stderr, "message \"%s\", expected \"%s\"\n", err.message, text);
    exit(1);
  }
  memory_free(&memory);
}

/* The field that begins at `at` with another number in it. */
static Bytes
changed(Bytes b, size_t at, uint64_t v, size_t n)
{
  for (size_t i = 0; i < n; i++)
    b.at[at + i] = (uint8_t)(v >> 8 * i);
  return b;
}

static void
bad_gguf(void)
{
  Bytes good = gguf_file(2, 32, 0, "v");
  refuses_gguf(changed(good, 0, 'X', 1), "does not begin with GGUF");
  refuses_gguf(changed(good, 4, 9, 4), "version 9");
  refuses_gguf(changed(good, 8, UINT64_MAX, 8), "more than");
  refuses_gguf(changed(good, 16, 1 << 20, 8), "more than");
  refuses_gguf(changed(good, 24, UINT64_MAX, 8), "metadata");
  refuses_gguf(changed(good, 24 + 8 + 6, 77, 4), "metadata layers: 77 is no type");
  refuses_gguf(gguf_file(99, 32, 0, "v"), "tensor w: type 99 is unknown");
  refuses_gguf(gguf_file(2, 33, 0, "v"), "tensor w: rows of 33 elements are no whole blocks");
  refuses_gguf(gguf_file(2, 0, 0, "v"), "tensor w: 2 x 0");
  refuses_gguf(gguf_file(2, (uint64_t)1 << 40, 0, "v"), "tensor w");
  refuses_gguf(gguf_file(2, 32 * 64, 0, "v"), "tensor w: 2304 bytes at 0 lie outside");
  refuses_gguf(gguf_file(2, 32, 64, "v"), "tensor w: 36 bytes at 64 lie outside");
  refuses_gguf(gguf_file(2, 32, UINT64_MAX - 31, "v"), "tensor w");
  refuses_gguf(gguf_file(2, 32, 3, "v"), "tensor w: its offset 3 is no multiple of 32");
  refuses_gguf(gguf_file(2, 32, 0, "w"), "tensor w: there are two");
}

/* Cut anywhere, in memory of exactly that size, so that the sanitizers see a step past the end. */
static void
cut(Bytes whole, bool is_gguf)
{
  for (size_t n = 0; n < whole.n; n++) {
    Memory memory = {0};
    Fail err = {{0}};
    Gguf g;
    Tensors t;
    uint8_t *copy = malloc(n ? n : 1);
    CHECK(copy);
    memcpy(copy, whole.at, n);
    CHECK(is_gguf ? gguf_read(&memory, copy, n, &g, &err) : safetensors_read(&memory, copy, n, &t, &err));
    CHECK(*err.message);
    free(copy);
    memory_free(&memory);
  }
}

static Bytes
safetensors_file(const char *head, size_t data)
{
  Bytes b = {.n = 0};
  put_number(&b, strlen(head), 8);
  put(&b, head, strlen(head));
  for (size_t i = 0; i < data; i++)
    put_number(&b, i, 1);
  return b;
}

#define SAFE_GOOD "{\"__metadata__\":{\"format\":\"pt\"}, \"a\\u0062\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}," \
                  "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[12,16]}}"

static void
good_safetensors(void)
{
  Memory memory = {0};
  Fail err = {{0}};
  Tensors all;
  Bytes b = safetensors_file(SAFE_GOOD, 16);
  CHECK_OK(safetensors_read(&memory, b.at, b.n, &all, &err));
  CHECK(all.count == 2);
  const Tensor *t = tensors_find(&all, "ab"), *s = tensors_find(&all, "s");
  CHECK(t && t->format == FORMAT_BF16 && t->rows == 2 && t->cols == 3 && t->size == 12 && t->data[5] == 5);
  CHECK(s && s->rows == 1 && s->cols == 1 && s->data[0] == 12);
  memory_free(&memory);
}

static void
bad_safetensors(void)
{
#define ENTRY(dtype, shape, offsets) "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
  static const struct { const char *head, *text; } cases[] = {
    {"", "JSON, byte 0"}, {"[]", "no object"}, {"{\"w\":3}", "tensor w: an object"}, {"{\"w\":{}}", "tensor w: it has no dtype"},
    {ENTRY("I3", "[1]", "[0,1]"), "tensor w: type I3 is unknown"}, {ENTRY("F32", "{}", "[0,4]"), "tensor w: it has no shape"},
    {ENTRY("F32", "[-1]", "[0,4]"), "tensor w: an extent"}, {ENTRY("F32", "[1.0]", "[0,4]"), "tensor w: an extent"},
    {ENTRY("F32", "[0]", "[0,0]"), "tensor w: 1 x 0"}, {ENTRY("F32", "[2]", "[0,4]"), "tensor w: 4 bytes are declared, its shape takes 8"},
    {ENTRY("F32", "[2]", "[0,12]"), "tensor w: 12 bytes are declared"},
    {ENTRY("F32", "[2]", "[12,20]"), "tensor w: 8 bytes at 12 lie outside"}, {ENTRY("F32", "[2]", "[8,0]"), "tensor w: data_offsets"},
    {ENTRY("F32", "[2]", "[0]"), "tensor w: data_offsets"}, {ENTRY("F32", "[18446744073709551616]", "[0,4]"), "tensor w: an extent"},
    {ENTRY("F32", "[4294967296,4294967296,4]", "[0,4]"), "tensor w"}, {"{\"w\":{\"dtype\":\"F32\",}}", "JSON, byte"}, {"{\"w\" 1}", "a colon"},
    {"{} {}", "something follows"}, {"{\"\\x\":1}", "an unknown escape"}, {"{\"w\":01}", "no number"}, {"{\"w\":\"\n\"}", "control"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Memory memory = {0};
    Fail err = {{0}};
    Tensors all;
    Bytes b = safetensors_file(cases[i].head, 16);
    if (!safetensors_read(&memory, b.at, b.n, &all, &err) || !strstr(err.message, cases[i].text)) {
      fprintf(stderr, "%s: message \"%s\", expected \"%s\"\n", cases[i].head, err.message, cases[i].text);
      exit(1);
    }
    memory_free(&memory);
  }
}

int
main(void)
{
  good_gguf();
  bad_gguf();
  cut(gguf_file(0, 8, 0, "v"), true);
  good_safetensors();
  bad_safetensors();
  cut(safetensors_file(SAFE_GOOD, 16), false);
  puts("readers: right");
  return 0;
}
