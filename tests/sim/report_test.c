/* report_test.c - faults in words: arguments by name, lines of the source, chains of calls; what is printed; what is refused. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

#define TOP ".version 8.6\n.target sm_90\n.address_size 64\n"
#define NAMES "//@tilec kernel=k warps=1 shared=0 target=sm_90 params=x:ptr:f16,n:scalar:i32,out:ptr:f32:16\n"
/* A kernel k(x, n, out): %d1 and %d2 are x and out, %r0 is tid.x. */
#define THREE ".visible .entry k(.param .u64 a, .param .u32 b, .param .u64 c) {\n.reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<9>;\n" \
  "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [c]; mov.u32 %r0, %tid.x;\n"
#define FILES ".file 1 \"user.tile\"\n.file 2 \"<nn.tile>\"\n.file 3 \"other.tile\"\n"

/* x has 100 f16, out 50 f32; where `view` is not 0, out begins in x's memory, so many bytes behind. */
typedef struct Words { const char *name, *ptx; SimErrorKind kind; const char *text; uint32_t view; } Words;

static const Words words[] = {
  {"past the end", NAMES TOP THREE "ld.global.b16 %h1, [%d1+200]; ret; }", SIM_E_BOUNDS, "thread (0,0,0) reads x[100] of 100 f16: mask missing?", 0},
  {"across the end", NAMES TOP THREE "ld.global.b32 %r1, [%d2+192]; ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%d2+192]; ret; }", SIM_E_BOUNDS, "reads out[48..51] of 50 f32", 0},
  {"before the start", NAMES TOP THREE "st.global.b32 [%d2+-4], %r0; ret; }", SIM_E_BOUNDS, "writes out[-1], before the first of its 50 f32", 0},
  {"far before the start", NAMES TOP THREE "st.global.b32 [%d2+-4000000], %r0; ret; }", SIM_E_BOUNDS, "writes out[-1000000], before", 0},
  {"an index too large by far", NAMES TOP THREE "mov.u64 %d3, 4294967296; add.s64 %d4, %d3, %d2; st.global.b32 [%d4], %r0; ret; }", SIM_E_BOUNDS, "writes out[1073741824] of 50 f32", 0},
  {"the pointer that was used, not the nearest", NAMES TOP THREE "ld.global.b32 %r1, [%d1+0]; sub.s64 %d3, %d2, %d1; add.s64 %d4, %d1, 8192; ld.global.b16 %h1, [%d4]; ret; }", SIM_E_BOUNDS,
   "reads x[4096] of 100 f16", 0},
  {"arguments in one allocation", NAMES TOP THREE "mov.u64 %d3, %d2; @%p1 mov.u64 %d3, %d1; ld.global.b32 %r1, [%d3+160]; ret; }", SIM_E_BOUNDS, "reads out[40] of 40 f32", 40},
  {"the one before", NAMES TOP THREE "ld.global.b16 %h1, [%d1+-2]; ret; }", SIM_E_BOUNDS, "reads x[-1], before", 40},
  {"misaligned", NAMES TOP THREE "ld.global.b32 %r1, [%d2+6]; ret; }", SIM_E_ALIGN, "thread (0,0,0) reads out[1..2] of 50 f32: the address, 0x", 0},
  {"no manifest", TOP THREE "ld.global.b16 %h1, [%d1+200]; ret; }", SIM_E_BOUNDS, "reads parameter 0[100] of 100 2-byte elements", 0},
  {"a manifest of another kernel", "//@tilec kernel=other warps=1 params=x:ptr:f16,n:scalar:i32,out:ptr:f32\n" TOP THREE "st.global.b32 [%d2+200], %r0; ret; }", SIM_E_BOUNDS,
   "writes parameter 2[50] of 50 4-byte elements", 0},
  {"a manifest with too few parameters", "//@tilec kernel=k warps=1 params=x:ptr:f16\n" TOP THREE "st.global.b32 [%d2+200], %r0; ret; }", SIM_E_BOUNDS, "parameter 2[50]", 0},
  {"no argument", NAMES TOP THREE "mov.u64 %d3, 64; ld.global.b32 %r1, [%d3]; ret; }", SIM_E_BOUNDS, "4 bytes at global address 0x40, outside every allocation: a null pointer?", 0},
  {"a variable of the module", TOP ".global .b32 table[4];\n" THREE "mov.u64 %d3, table; ld.global.b32 %r1, [%d3+16]; ret; }", SIM_E_BOUNDS, "reads table[4] of 4 4-byte elements", 0},
};

typedef struct Env { uint16_t *x; float *out; int n; const void *arg[3]; } Env;

static void
run_in(Test *t, const char *ptx, uint32_t view, Run *r)
{
  uint16_t *x = test_alloc(t, 200);
  float *out = test_alloc(t, 200), *second = view ? (float *)(void *)((char *)x + view) : out;
  int n = 7;
  memset(x, 0, 200);
  memset(out, 0, 200);
  *r = (Run){ptx, "k", {1}, {32}, 0, {&x, &n, &second}, {0}, {0}};
  test_run(t, r);
  test_free(t, x), test_free(t, out);
}

static void
words_case(Test *t, const Words *w)
{
  Run r;
  run_in(t, w->ptx, w->view, &r);
  CHECK(t, r.err.kind == w->kind && strstr(r.err.message, w->text), "%s: kind %d: \"%s\" has no \"%s\"", w->name, (int)r.err.kind, r.err.message, w->text);
}

/* The memory of `out` is given back before the launch: it is told of that pointer, though x's memory is nearest. */
static void
astray_case(Test *t)
{
  uint16_t *x = test_alloc(t, 200);
  float *out = test_alloc(t, 200);
  int n = 7;
  memset(x, 0, 200);
  test_free(t, out);
  Run r = {NAMES TOP THREE "st.global.b32 [%d2+8], %r0; ret; }", "k", {1}, {32}, 0, {&x, &n, &out}, {0}, {0}};
  test_run(t, &r);
  CHECK(t, r.err.kind == SIM_E_BOUNDS && strstr(r.err.message, "thread (0,0,0) writes out[2], and out, 0x") &&
        strstr(r.err.message, ", is the address of no memory: was it destroyed?"), "kind %d: \"%s\"", (int)r.err.kind, r.err.message);
  test_free(t, x);
}

/* ---- lines and chains ---- */

static const char *
known_source(void *user, const char *file, size_t *n)
{
  static const char text[] = "// first\nkernel k(x) {\n\tlet y = softmax(x);\n  store(x, y);\n}";
  if (strcmp(file, "user.tile") != 0)
    return NULL;
  *n = sizeof text - 1;
  return text;
}

typedef struct Trace { const char *name, *ptx, *file; uint32_t line; const char *trace; } Trace;

static const Trace traces[] = {
  {"a line with a caret", TOP FILES THREE "\n.loc 1 4 9\nst.global.b32 [%d2+200], %r0; ret; }", "user.tile", 4, "\n    4 |   store(x, y);\n      |         ^\n"},
  {"tabs stay tabs", TOP FILES THREE "\n.loc 1 3 10\nst.global.b32 [%d2+200], %r0; ret; }", "user.tile", 3, "\n    3 | \tlet y = softmax(x);\n      | \t        ^"},
  {"a file that is nowhere", TOP FILES THREE "\n.loc 3 4 9\nst.global.b32 [%d2+200], %r0; ret; }", "other.tile", 4, ""},
  {"inlined from the library", TOP FILES THREE "\n.loc 1 4 9\nmov.u32 %r1, 5;\n.loc 2 40 3, function_name $L__s0, inlined_at 1 4 9\nst.global.b32 [%d2+200], %r0; ret; }\n"
   ".section .debug_str\n{\n$L__s0:\n.b8 115,111,102,116,109,97,120,0\n}\n", "user.tile", 4, "\n    4 |   store(x, y);\n      |         ^\n  in <nn.tile>:40 (softmax)"},
  {"inlined twice", TOP FILES THREE "\n.loc 1 4 9\n.loc 3 12 5, function_name $L__s0, inlined_at 1 4 9\nmov.u32 %r1, 5;\n.loc 2 40 3, function_name $L__s0+5, inlined_at 3 12 5\n"
   "st.global.b32 [%d2+200], %r0; ret; }\n.section .debug_str\n{\n$L__s0:\n.b8 114,111,119,115,0\n.b8 109,97,120,0\n}\n", "other.tile", 12,
   "\n  in <nn.tile>:40 (max)\n  called from user.tile:4 (k)"},
  {"a place that no .loc had before", TOP FILES THREE "\n.loc 2 40 3, function_name nothing, inlined_at 1 3 9\nst.global.b32 [%d2+200], %r0; ret; }", "user.tile", 3, "  in <nn.tile>:40"},
  {"calls", TOP FILES ".func f(.param .b64 p);\n.func g(.param .b64 p) {\n.reg .b64 %d<4>;\n.loc 1 2 1\nld.param.u64 %d1, [p]; st.global.b32 [%d1+200], 0; ret; }\n"
   ".func f(.param .b64 p) {\n.reg .b64 %d<4>;\n.loc 3 8 1\nld.param.u64 %d1, [p]; { .param .b64 q; st.param.b64 [q], %d1; call g, (q); } ret; }\n" THREE
   "\n.loc 1 4 3\n{ .param .b64 q; st.param.b64 [q], %d2; call f, (q); } ret; }", "user.tile", 2, "\n  called from other.tile:8 (f)\n  called from user.tile:4 (k)"},
  {"no lines: the PTX's own", TOP THREE "\n  st.global.b32 [%d2+200], %r0;\nret; }", "", 0, "\n    8 | st.global.b32 [%d2+200], %r0;"},
  {"both sides of a race", TOP FILES THREE "setp.eq.u32 %p1, %r0, 1;\n.loc 1 3 1\nst.global.b32 [%d2], 5;\n.loc 1 4 1\n@%p1 st.global.b32 [%d2], %r0; ret; }", "user.tile", 4, "\n  and user.tile:3\n    3 | \tlet y"},
};

static void
trace_case(Test *t, const Trace *c)
{
  Run r;
  size_t n = strlen(c->trace);
  char want[512];
  snprintf(want, sizeof want, "%s", c->trace);
  if (n && want[n - 1] == '\n')
    want[n - 1] = 0;
  run_in(t, c->ptx, 0, &r);
  CHECK(t, r.err.kind != SIM_OK && strcmp(r.err.file, c->file) == 0 && r.err.line == c->line, "%s: %s:%u: %s", c->name, r.err.file, r.err.line, r.err.message);
  CHECK(t, strstr(r.err.trace, want) != NULL && (*want || !*r.err.trace), "%s: \"%s\" has no \"%s\"", c->name, r.err.trace, want);
}

/* ---- printing ---- */

typedef struct Out { char text[40000]; size_t n; } Out;

static void
collect(void *user, const char *text, size_t n)
{
  Out *o = user;
  n = n < sizeof o->text - o->n ? n : sizeof o->text - o->n;
  memcpy(o->text + o->n, text, n);
  o->n += n;
}

typedef struct Print { const char *format; uint64_t arg[3]; const char *want; size_t n; } Print;
#define IS(text) text, sizeof text - 1

/* Arguments are stored as 64-bit words; the formats take what fits that. */
static const Print prints[] = {
  {"plain 100%%\n", {0}, IS("plain 100%\n")},
  {"%lld|%llu|%llx", {(uint64_t)-5, 6, 255}, IS("-5|6|ff")},
  {"%ld %lu", {1ull << 40, 7}, IS("1099511627776 7")},
  {"[%6lld][%-6lld][%06lld]", {42, 42, 42}, IS("[    42][42    ][000042]")},
  {"%+lld % lld %#llx", {1, 1, 16}, IS("+1  1 0x10")},
  {"%f %.2f %9.1e", {0x3ff8000000000000ull, 0x400921fb54442d18ull, 0x40fe240000000000ull}, IS("1.500000 3.14   1.2e+05")},
  {"[%p]", {0x1234}, IS("[0x1234]")},
  {"[%8p]", {0x12}, IS("[    0x12]")},
  {"%q %", {0}, IS("%q %")},
  {"%5", {0}, IS("%5")},
};

/* A kernel that calls vprintf with a format of .global memory and three words. */
static void
print_on(Test *t, const char *format, const uint64_t *arg, const char *more, Out *out, SimError *err)
{
  char *ptx = malloc(1 << 16);
  size_t n = 0;
  if (!ptx)
    return;
  n += (size_t)sprintf(ptx + n, "%s.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n%s.global .align 1 .b8 f[%zu] = {", TOP, more, strlen(format) + 1);
  for (const char *c = format; *c; c++)
    n += (size_t)sprintf(ptx + n, "%d,", (unsigned char)*c);
  n += (size_t)sprintf(ptx + n, "0};\n%s.local .align 8 .b8 w[24]; .reg .b64 %%e<9>; ", THREE);
  for (int i = 0; i < 3; i++)
    n += (size_t)sprintf(ptx + n, "st.local.u64 [w+%d], %llu; ", 8 * i, (unsigned long long)arg[i]);
  n += (size_t)sprintf(ptx + n, "%s", *more ? "mov.u64 %e5, s; cvta.global.u64 %e5, %e5; st.local.u64 [w], %e5; " : "");
  sprintf(ptx + n, "mov.u64 %%e1, f; cvta.global.u64 %%e1, %%e1; mov.u64 %%e2, w; cvta.local.u64 %%e2, %%e2; { .param .b64 p; .param .b64 q; .param .b32 r;"
          "st.param.b64 [p], %%e1; st.param.b64 [q], %%e2; call.uni (r), vprintf, (p, q); ld.param.b32 %%r1, [r]; } ret; }\n");
  SimOptions o;
  sim_options_default(&o);
  o.print = collect;
  o.print_user = out;
  memset(out, 0, sizeof *out);
  uint64_t zero = 0;
  SimMachine *saved = test_machine(t, &o);
  Run r = {ptx, "k", {1}, {1}, 0, {&zero, &zero, &zero}, {0}, {0}};
  CHECK(t, test_run(t, &r) == 0, "%s: %s", format, r.err.message);
  test_machine_back(t, saved);
  free(ptx);
}

static void
printing(Test *t)
{
  static const uint64_t none[3] = {0};
  Out *out = malloc(sizeof *out);
  SimError err;
  for (size_t i = 0; out && i < sizeof prints / sizeof *prints; i++) {
    print_on(t, prints[i].format, prints[i].arg, "", out, &err);
    CHECK(t, out->n == prints[i].n && memcmp(out->text, prints[i].want, out->n) == 0, "%s: \"%.*s\"", prints[i].format, (int)out->n, out->text);
  }
  static const char text[] = ".global .align 1 .b8 s[6] = {104,101,108,108,111,0};\n";
  print_on(t, "[%s]", none, text, out, &err);
  CHECK(t, out->n == 7 && memcmp(out->text, "[hello]", 7) == 0, "%.*s", (int)out->n, out->text);
  print_on(t, "[%9s]", none, text, out, &err);
  CHECK(t, out->n == 11 && memcmp(out->text, "[    hello]", 11) == 0, "%.*s", (int)out->n, out->text);
  print_on(t, "[%-9.3s]", none, text, out, &err);
  CHECK(t, out->n == 11 && memcmp(out->text, "[hel      ]", 11) == 0, "%.*s", (int)out->n, out->text);
  print_on(t, "[%c]%lld", (uint64_t[]){0, 9, 0}, "", out, &err);
  CHECK(t, out->n == 4 && memcmp(out->text, "[\0]9", 4) == 0, "a zero among the text: %zu", out->n);
  print_on(t, "%*.*f|", (uint64_t[]){8 | 2ull << 32, 0x400921fb54442d18ull, 0}, "", out, &err);
  CHECK(t, out->n == 9 && memcmp(out->text, "    3.14|", 9) == 0, "%.*s", (int)out->n, out->text);
  static const char *const wide[] = {"%2147483647d", "%.2147483647f", "%999999999999999s", "%*d", "%-2147483648d"};
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    print_on(t, wide[i], (uint64_t[]){INT32_MAX, 1, 1}, i == 2 ? text : "", out, &err);
    CHECK(t, out->n > 0 && out->n < 3000, "%s: %zu bytes", wide[i], out->n);
  }
  free(out);
}

void
test_report(Test *t)
{
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    words_case(t, &words[i]);
  astray_case(t);
  SimOptions o;
  sim_options_default(&o);
  o.source = known_source;
  SimMachine *saved = test_machine(t, &o);
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
    trace_case(t, &traces[i]);
  test_machine_back(t, saved);
  printing(t);
}
