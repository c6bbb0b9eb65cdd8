/* decode_test.c - PTX as text: initial values, what is refused and how, and texts made to break a reader. */
#include "sim_test.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TOP ".version 8.6\n.target sm_90\n.address_size 64\n"
#define ENTRY ".visible .entry k(.param .u64 a) {\n.reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<9>; .reg .f32 %f<8>;\n" \
  "ld.param.u64 %d1, [a]; mov.u32 %r0, %tid.x; mad.wide.u32 %d2, %r0, 4, %d1;\n"

/* A text that is put together. */
typedef struct Build { char *at; size_t n, cap; } Build;

static void
add(Build *b, const char *fmt, ...)
{
  va_list ap;
  if (b->n + 4096 > b->cap) {
    b->cap = 2 * b->cap + 8192;
    b->at = realloc(b->at, b->cap);
    if (!b->at)
      exit(2);
  }
  va_start(ap, fmt);
  b->n += (size_t)vsnprintf(b->at + b->n, b->cap - b->n, fmt, ap);
  va_end(ap);
}

static void
repeat(Build *b, const char *text, uint32_t times)
{
  for (uint32_t i = 0; i < times; i++)
    add(b, "%s", text);
}

/* ---- initial values ---- */

typedef struct Init { const char *vars, *load; uint32_t want[4]; } Init;

static const Init inits[] = {
  {".global .u32 v[4] = {1, 2, 3, 4};", "mov.u64 %d3, v;", {1, 2, 3, 4}},
  {".global .u32 v[4] = {1, 2};", "mov.u64 %d3, v;", {1, 2, 0, 0}},
  {".global .u32 v[2][2] = {{1, 2}, {3, -1}};", "mov.u64 %d3, v;", {1, 2, 3, -1u}},
  {".global .f32 v[4] = {0f3F800000, 2.0, -0.5, -0f3F800000};", "mov.u64 %d3, v;", {0x3f800000, 0x40000000, 0xbf000000, 0xbf800000}},
  {".global .align 4 .b8 v[16] = {1, 0, 0, 0, 255, 255};", "mov.u64 %d3, v;", {1, 0xffff, 0, 0}},
  {".const .u32 v[4] = {7, 8, 9, 10};", "mov.u64 %d3, v;", {7, 8, 9, 10}},
  {".global .u32 x[8] = {5, 6, 7, 8, 9, 10, 11, 12};\n.global .u64 p = x+8;", "mov.u64 %d3, p; ld.global.u64 %d3, [%d3];", {7, 8, 9, 10}},
  {".global .u64 p = generic(x);\n.global .u32 x[4] = {5, 6, 7, 8};", "mov.u64 %d3, p; ld.global.u64 %d3, [%d3];", {5, 6, 7, 8}},
  {".global .u32 x[4] = {5, 6, 7, 8};\n.global .align 8 .u8 p[8] = {0xFF(x), 0xFF00(x), 0xFF0000(x), 0xFF000000(x), 0xFF00000000(x), 0xFF0000000000(x), 0xFF000000000000(x), 0xFF00000000000000(x)};",
   "mov.u64 %d3, p; ld.global.u64 %d3, [%d3];", {5, 6, 7, 8}},
};

static void
init_case(Test *t, const Init *c)
{
  Build b = {0};
  uint32_t *a = test_alloc(t, 128);
  add(&b, "%s%s\n%s%s and.b32 %%r1, %%r0, 3; mad.wide.u32 %%d3, %%r1, 4, %%d3; ld.global.u32 %%r2, [%%d3]; st.global.u32 [%%d2], %%r2; ret; }\n", TOP, c->vars, ENTRY, c->load);
  Run r = {b.at, "k", {1}, {4}, 0, {&a}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == 0 && memcmp(a, c->want, sizeof c->want) == 0, "%s: %x %x %x %x: %s", c->vars, a[0], a[1], a[2], a[3], r.err.message);
  test_free(t, a);
  free(b.at);
}

/* ---- what is refused ---- */

static bool
refused(Test *t, const char *ptx, size_t n, const char *name, const char *text, uint32_t line)
{
  SimModule *mod = NULL;
  SimError err;
  int rc = sim_load(t->machine, ptx, n, &mod, &err);
  if (!rc)
    sim_unload(mod);
  return CHECK(t, rc == -1 && err.kind == SIM_E_PARSE && strstr(err.message, text) && (!line || err.ptx_line == line), "%s: kind %d, line %u: %s", name,
               (int)err.kind, err.ptx_line, rc ? err.message : "loaded");
}

static void
unknown(Test *t)
{
  static const char some[] = TOP ENTRY
    "frob.u32 %r1, %r2;\nadd.u32 %r1, %r2, %r3;\ntcgen05.mma.cta_group::1.kind::f16 {%f1}, %d1, %d2, p, 1, 1;\nadd.q32 %r1, %r2, %r3;\nfrob.u32 %r1, %r2;\n"
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %r1, %r2;\nret; }";
  refused(t, some, strlen(some), "several", "the machine does not know 'frob.u32' (line 7, 2 times), 'tcgen05.mma.cta_group::1.kind::f16' (line 9), 'add.q32' (line 10), "
          "'clusterlaunchcontrol.query_cancel.is_canceled.pred.b128' (line 12)", 7);
  Build b = {0};
  add(&b, "%s%s", TOP, ENTRY);
  for (int i = 0; i < 14; i++)
    add(&b, "frob%d %%r1;\n", i);
  add(&b, "ret; }");
  refused(t, b.at, b.n, "fourteen", "'frob9' (line 16) and 4 more", 7);
  free(b.at);
}

/* ---- texts made to break a reader: each ends soon, in a module or an error ---- */

static void
hostile_case(Test *t, const char *name, Build *b, const char *text)
{
  if (text)
    refused(t, b->at, b->n, name, text, 0);
  else {
    SimModule *mod = NULL;
    SimError err;
    int rc = sim_load(t->machine, b->at, b->n, &mod, &err);
    CHECK(t, rc == 0, "%s: %s", name, err.message);
    sim_unload(mod);
  }
  free(b->at);
  *b = (Build){0};
}

static void
hostile_nesting(Test *t)
{
  Build b = {0};
  add(&b, "%s.global .u32 x[4] = ", TOP), repeat(&b, "{", 100000), add(&b, "1"), repeat(&b, "}", 100000), add(&b, ";\n");
  hostile_case(t, "nested values", &b, "nested too deeply");
  add(&b, "%s%smov.b64 ", TOP, ENTRY), repeat(&b, "{", 100000), add(&b, "%%r1"), repeat(&b, "}", 100000), add(&b, ", %%d1; ret; }");
  hostile_case(t, "nested vectors", &b, "expected a number");
  add(&b, "%s%s", TOP, ENTRY), repeat(&b, "{", 100000), repeat(&b, "}", 100000), add(&b, "ret; }");
  hostile_case(t, "nested braces", &b, "nested too deeply");
  add(&b, "%s", TOP), repeat(&b, "/* ", 100000);
  hostile_case(t, "a comment without an end", &b, "comment");
}

static void
hostile_counts(Test *t)
{
  Build b = {0};
  add(&b, "%s", TOP), repeat(&b, ".visible ", 200000), add(&b, "%sret; }", ENTRY);
  hostile_case(t, "many words", &b, NULL);
  for (int i = 0; i < 12; i++)
    add(&b, i ? ".global .b8 x%d[1073741824];\n" : TOP ".global .b8 x%d[1073741824];\n", i);
  hostile_case(t, "12 GB of variables", &b, "take more than 1024 MB");
  add(&b, "%s.global .b8 x[4294967296][4294967296];\n", TOP);
  hostile_case(t, "a variable of 2^64 bytes", &b, "too large");
  add(&b, "%s.global .align 3 .b8 x[4];\n", TOP);
  hostile_case(t, "an alignment of three", &b, "power of two");
  add(&b, "%s.global .u32 x = 99999999999999999999999;\n", TOP);
  hostile_case(t, "a number of 77 bits", &b, "more than 64 bits");
  add(&b, "%s.file 4000000000 \"x\"\n", TOP);
  hostile_case(t, "file four thousand million", &b, "small number");
  add(&b, "%s%s.reg .b32 %%x<4000000000>; ret; }", TOP, ENTRY);
  hostile_case(t, "too many registers", &b, "too many registers");
  add(&b, "%s%s", TOP, ENTRY);
  for (int i = 0; i < 40; i++)
    add(&b, ".reg .b32 %%x%c<4000000>;\n", 'a' + i % 26);
  add(&b, "ret; }");
  hostile_case(t, "too many registers in all", &b, "too many registers");
  add(&b, "%s%s.local .b8 x[16777216]; .local .b8 y[16777216]; ret; }", TOP, ENTRY);
  hostile_case(t, "too much local memory", &b, "too much local memory");
  add(&b, "%s.visible .entry k(", TOP);
  for (int i = 0; i < 100; i++)
    add(&b, ".param .align 32768 .b8 p%d[65536], ", i);
  add(&b, ".param .u32 z) { ret; }");
  hostile_case(t, "parameters of megabytes", &b, "too large");
  add(&b, "%s%sts: .branchtargets ", TOP, ENTRY);
  for (int i = 0; i < 5000; i++)
    add(&b, "A, ");
  add(&b, "A;\nA: ");
  repeat(&b, "brx.idx %r0, ts;\n", 5000);
  add(&b, "ret; }");
  hostile_case(t, "tables of tables", &b, "too many branch targets");
}

/* A hundred thousand of a kind take as long as they are, not as their square. */
static void
hostile_many(Test *t)
{
  enum { MANY = 100000 };
  Build b = {0};
  add(&b, "%s", TOP);
  for (int i = 0; i < MANY; i++)
    add(&b, ".func f%d() { }\n", i);
  add(&b, "%sret; }", ENTRY);
  hostile_case(t, "functions", &b, NULL);
  add(&b, "%s", TOP);
  for (int i = 0; i < MANY / 2; i++)
    add(&b, ".global .u32 g%d;\n", i);
  add(&b, "%sret; }", ENTRY);
  hostile_case(t, "variables", &b, NULL);
  add(&b, "%s%s", TOP, ENTRY);
  for (int i = 0; i < MANY; i++)
    add(&b, "@%%p1 bra L%d; L%d: add.u32 %%r1, %%r1, %d;\n", (i * 7919) % MANY, i, i);
  add(&b, "ret; }");
  hostile_case(t, "labels and numbers", &b, NULL);
  add(&b, "%s%s", TOP, ENTRY);
  for (int i = 0; i < MANY; i++)
    add(&b, ".reg .b32 x%d; mov.u32 x%d, %d;\n", i, i, i);
  add(&b, "ret; }");
  hostile_case(t, "registers by name", &b, NULL);
  add(&b, "%s.file 1 \"x\"\n%s", TOP, ENTRY);
  for (int i = 0; i < MANY; i++)
    add(&b, ".loc 1 %d 1, function_name f, inlined_at 1 %d 1\nmov.u32 %%r1, %%r2;\n", i + 2, i + 1);
  add(&b, "ret; }");
  hostile_case(t, "places in a chain", &b, NULL);
  add(&b, "%s.func f();\n", TOP);
  for (int i = 0; i < 2000; i++)
    add(&b, ".visible .entry k%d() { call f; ret; }\n", i);
  add(&b, ".func f() { ret; }\n");
  hostile_case(t, "kernels that call", &b, NULL);
}

void
test_decode(Test *t)
{
  for (size_t i = 0; i < sizeof inits / sizeof *inits; i++)
    init_case(t, &inits[i]);
  unknown(t);
  hostile_nesting(t);
  hostile_counts(t);
  hostile_many(t);
}
