/* calls_test.c - functions: parameters, results, recursion, pointers, locals of their own; and what goes wrong in them. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

#define TOP ".version 8.6\n.target sm_90\n.address_size 64\n.file 1 \"k.tile\"\n"
/* A kernel k(a): %d1 is a, %r0 is tid.x, %d2 the thread's word of a. */
#define ENTRY ".visible .entry k(.param .u64 a) {\n.reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<9>;\n" \
  "ld.param.u64 %d1, [a]; mov.u32 %r0, %tid.x; mad.wide.u32 %d2, %r0, 4, %d1;\n"
#define REGS ".reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<9>;\n"
#define CALL1(result, function, argument) "{ .param .b32 p; .param .b32 q; st.param.b32 [p], " argument "; call (q), " function ", (p); ld.param.b32 " result ", [q]; }\n"
#define TWICE ".func (.param .b32 r) twice(.param .b32 x) {\n" REGS "ld.param.u32 %r1, [x]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }\n"
#define TRIPLE ".func (.param .b32 r) triple(.param .b32 x) {\n" REGS "ld.param.u32 %r1, [x]; mul.lo.u32 %r1, %r1, 3; st.param.b32 [r], %r1; ret; }\n"
#define FIB ".func (.param .b32 r) fib(.param .b32 n) {\n" REGS "ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 2; @%p1 bra SMALL; add.u32 %r2, %r1, -1; add.u32 %r3, %r1, -2;\n" \
  CALL1("%r4", "fib", "%r2") CALL1("%r5", "fib", "%r3") "add.u32 %r1, %r4, %r5; SMALL: st.param.b32 [r], %r1; ret; }\n"

typedef struct Good { const char *name, *ptx; uint32_t (*want)(uint32_t thread); } Good;

static uint32_t
fib(uint32_t n)
{
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint32_t want_twice(uint32_t i) { return 4 * i; }
static uint32_t want_either(uint32_t i) { return i % 2 ? 2 * i : 3 * i; }
static uint32_t want_met(uint32_t i) { return (i % 2 ? 2 * i : 3 * i) + 1000 * 32; }
static uint32_t want_fib(uint32_t i) { return fib(i % 9); }
static uint32_t want_even(uint32_t i) { return i % 2 == 0; }
static uint32_t want_struct(uint32_t i) { return i * 7 + i + 100; }
static uint32_t want_sum(uint32_t i) { return i * (i + 1) / 2; }
static uint32_t want_shared(uint32_t i) { return 31 - i + 5; }
static uint32_t want_guard(uint32_t i) { return i < 10 ? 2 * i : i; }

#define PROTO "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
static const Good good[] = {
  {"one calls another", TOP TWICE ENTRY CALL1("%r1", "twice", "%r0") CALL1("%r1", "twice", "%r1") "st.global.u32 [%d2], %r1; ret; }", want_twice},
  {"declared first, defined last", TOP ".func (.param .b32 r) twice(.param .b32 x);\n" ENTRY CALL1("%r1", "twice", "%r0") CALL1("%r1", "twice", "%r1")
   "st.global.u32 [%d2], %r1; ret; }\n" TWICE, want_twice},
  {"either by lanes, then together", TOP TWICE TRIPLE ENTRY "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 1; @%p1 bra ODD;\n" CALL1("%r2", "triple", "%r0") "bra MEET; ODD:\n"
   CALL1("%r2", "twice", "%r0") "MEET: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 1000, %r2; st.global.u32 [%d2], %r2; ret; }", want_met},
  {"guarded call", TOP TWICE ENTRY "setp.lt.u32 %p1, %r0, 10; mov.u32 %r1, %r0; .param .b32 p; .param .b32 q; st.param.b32 [p], %r0; st.param.b32 [q], %r0;"
   "@%p1 call (q), twice, (p); ld.param.b32 %r1, [q]; st.global.u32 [%d2], %r1; ret; }", want_guard},
  {"recursion", TOP ".func (.param .b32 r) fib(.param .b32 n);\n" FIB ENTRY "rem.u32 %r1, %r0, 9;\n" CALL1("%r2", "fib", "%r1") "st.global.u32 [%d2], %r2; ret; }", want_fib},
  {"two that call each other", TOP ".func (.param .b32 r) odd(.param .b32 n);\n"
   ".func (.param .b32 r) even(.param .b32 n) {\n" REGS "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 1; @%p1 bra E; add.u32 %r1, %r1, -1;\n" CALL1("%r2", "odd", "%r1") "E: st.param.b32 [r], %r2; ret; }\n"
   ".func (.param .b32 r) odd(.param .b32 n) {\n" REGS "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0; @%p1 bra E; add.u32 %r1, %r1, -1;\n" CALL1("%r2", "even", "%r1") "E: st.param.b32 [r], %r2; ret; }\n"
   ENTRY CALL1("%r2", "even", "%r0") "st.global.u32 [%d2], %r2; ret; }", want_even},
  {"pointers, lane by lane", TOP TWICE TRIPLE ".global .u64 table[2] = {triple, twice};\n" ENTRY PROTO "and.b32 %r1, %r0, 1; mov.u64 %d3, table; mad.wide.u32 %d3, %r1, 8, %d3; ld.global.u64 %d4, [%d3];"
   "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r0; call (q), %d4, (p), proto; ld.param.b32 %r2, [q]; } st.global.u32 [%d2], %r2; ret; }", want_either},
  {"the address of a function", TOP TWICE ENTRY PROTO "mov.u64 %d4, twice; add.u32 %r1, %r0, %r0;"
   "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), %d4, (p), proto; ld.param.b32 %r2, [q]; } st.global.u32 [%d2], %r2; ret; }", want_twice},
  {"structs by value", TOP ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 x[16]) {\n" REGS "ld.param.u64 %d1, [x]; ld.param.u32 %r1, [x+8]; cvt.u64.u32 %d2, %r1; cvt.u32.u64 %r2, %d1;"
   "st.param.b64 [r], %d2; st.param.b32 [r+8], %r2; ret; }\n" ENTRY "mul.wide.u32 %d3, %r0, 7; add.u32 %r1, %r0, 100; { .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16]; st.param.b64 [p], %d3; st.param.b32 [p+8], %r1;"
   "call (q), swap, (p); ld.param.b64 %d4, [q]; ld.param.b32 %r2, [q+8]; } cvt.u32.u64 %r3, %d4; add.u32 %r2, %r2, %r3; st.global.u32 [%d2], %r2; ret; }", want_struct},
  {"locals of every activation", TOP ".func (.param .b32 r) sum(.param .b32 n, .param .b64 up);\n"
   ".func (.param .b32 r) sum(.param .b32 n, .param .b64 up) {\n" REGS ".local .align 8 .b8 mine[8]; ld.param.u32 %r1, [n]; ld.param.u64 %d1, [up]; ld.u32 %r5, [%d1]; mov.u64 %d2, mine; cvta.local.u64 %d3, %d2;"
   "st.local.u32 [%d2], %r1; mov.u32 %r3, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E; add.u32 %r2, %r1, -1; { .param .b32 p; .param .b64 s; .param .b32 q; st.param.b32 [p], %r2; st.param.b64 [s], %d3;"
   "call (q), sum, (p, s); ld.param.b32 %r3, [q]; } ld.local.u32 %r4, [mine]; add.u32 %r3, %r3, %r4; ld.u32 %r6, [%d1]; sub.u32 %r6, %r6, %r5; add.u32 %r3, %r3, %r6; E: st.param.b32 [r], %r3; ret; }\n"
   ENTRY ".local .align 4 .b8 top[4]; mov.u64 %d3, top; st.local.u32 [%d3], 77; cvta.local.u64 %d3, %d3; { .param .b32 p; .param .b64 s; .param .b32 q; st.param.b32 [p], %r0; st.param.b64 [s], %d3;"
   "call (q), sum, (p, s); ld.param.b32 %r2, [q]; } st.global.u32 [%d2], %r2; ret; }", want_sum},
  {"shared memory and barriers of a function", TOP ".shared .align 4 .b8 tile[128];\n.func put(.param .b32 x) {\n" REGS ".shared .align 4 .b8 own[64]; ld.param.u32 %r1, [x]; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2;"
   "add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; st.shared.u32 [own+4], 5; bar.sync 0; ret; }\n" ENTRY "{ .param .b32 p; st.param.b32 [p], %r0; call put, (p); } sub.u32 %r1, 31, %r0; shl.b32 %r1, %r1, 2; mov.u32 %r2, tile;"
   "add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2]; add.u32 %r3, %r3, 5; st.global.u32 [%d2], %r3; ret; }", want_shared},
};

typedef struct Bad { const char *name; SimErrorKind kind; const char *ptx, *text; } Bad;

/* Those that run fail at ".loc 1 7 3". */
#define AT "\n.loc 1 7 3\n"
static const Bad bad[] = {
  {"recursion without an end", SIM_E_LIMIT, TOP ".func down();\n.func down() {" AT "call down; ret; }\n" ENTRY "call down; ret; }", "nested"},
  {"a pointer to nothing", SIM_E_BOUNDS, TOP TWICE ENTRY PROTO "mov.u64 %d4, 0; { .param .b32 p; .param .b32 q; st.param.b32 [p], %r0;" AT "call (q), %d4, (p), proto; } ret; }",
   "thread (0,0,0) calls a function at 0x0, where there is none"},
  {"a pointer to another kind of function", SIM_E_TRAP, TOP TWICE ENTRY "proto: .callprototype _ (.param .b64 _);\nmov.u64 %d4, twice; { .param .b64 p; st.param.b64 [p], %d4;" AT
   "call %d4, (p), proto; } ret; }", "calls 'twice' through a pointer"},
  {"a step out of a function's variable", SIM_E_BOUNDS, TOP ".func f(.param .b32 x) {\n" REGS ".local .align 4 .b8 first[16]; .local .align 4 .b8 second[16]; ld.param.u32 %r1, [x]; mov.u64 %d1, first;"
   "mad.wide.u32 %d1, %r1, 4, %d1;" AT "st.local.u32 [%d1], 5; ret; }\n" ENTRY "{ .param .b32 p; st.param.b32 [p], %r0; call f, (p); } ret; }", "thread (4,0,0) writes 4 bytes at first+16, outside the 16 bytes"},
  {"a read of a local that was not written", SIM_E_UNINIT, TOP ".func f() {\n" REGS ".local .align 8 .b8 l[32]; st.local.u32 [l], 1;" AT "ld.local.u32 %r1, [l+16]; ret; }\n" ENTRY "call f; ret; }",
   "its own memory that it has not written"},
  {"a local that an earlier call wrote", SIM_E_UNINIT, TOP ".func f() {\n.local .align 8 .b8 l[32]; st.local.u32 [l+16], 1; ret; }\n.func g() {\n" REGS ".local .align 8 .b8 l[32];" AT
   "ld.local.u32 %r1, [l+16]; ret; }\n" ENTRY "call f; call g; ret; }", "has not written"},
  {"a step out of a shared variable", SIM_E_BOUNDS, TOP ".shared .align 4 .b8 one[64];\n.shared .align 4 .b8 two[64];\n" ENTRY "mov.u32 %r1, one; mad.lo.u32 %r1, %r0, 4, %r1; mov.u32 %r2, two; st.shared.u32 [%r2], 1;" AT
   "st.shared.u32 [%r1], %r0; ret; }", "thread (16,0,0) writes 4 bytes at one+64, outside the 64 bytes of this variable"},
  {"a step back out of a shared variable", SIM_E_BOUNDS, TOP ".shared .align 4 .b8 one[64];\n.shared .align 4 .b8 two[64];\n" ENTRY "st.shared.u32 [one], 1; mov.u32 %r2, two;" AT "ld.shared.u32 %r1, [%r2+-4]; ret; }",
   "two-4"},
  {"too few arguments", SIM_E_PARSE, TOP TWICE ENTRY ".param .b32 q; call (q), twice; ret; }", "0 arguments"},
  {"an argument that is too small", SIM_E_PARSE, TOP TWICE ENTRY ".param .b32 q; .param .b16 p; call (q), twice, (p); ret; }", "does not fit"},
  {"a function of another file", SIM_E_PARSE, TOP ".extern .func other();\n" ENTRY "call other; ret; }", "'other' is defined elsewhere"},
  {"an error in a function that nobody calls", SIM_E_PARSE, TOP ".func f() { bra NOWHERE; }\n" ENTRY "ret; }", "no label 'NOWHERE'"},
  {"a function twice", SIM_E_PARSE, TOP TWICE TWICE ENTRY "ret; }", "'twice' is there twice"},
};

static void
good_case(Test *t, const Good *g)
{
  uint32_t *a = test_alloc(t, 128), wrong = 0;
  memset(a, 0, 128);
  Run r = {g->ptx, "k", {1}, {32}, 0, {&a}, {0}, {0}};
  int rc = test_run(t, &r);
  for (uint32_t i = 0; i < 32; i++)
    wrong += a[i] != g->want(i);
  CHECK(t, rc == 0 && !wrong, "%s: %u wrong: %s", g->name, wrong, r.err.message);
  test_free(t, a);
}

static void
bad_case(Test *t, const Bad *b)
{
  uint32_t *a = test_alloc(t, 128);
  Run r = {b->ptx, "k", {1}, {32}, 0, {&a}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == b->kind && strstr(r.err.message, b->text), "%s: kind %d: %s", b->name, (int)r.err.kind, r.err.message);
  CHECK(t, b->kind == SIM_E_PARSE || r.err.line == 7, "%s: line %u", b->name, r.err.line);
  test_free(t, a);
}

/* Functions that call the next one twice, 30 deep: read once each. */
static void
nested(Test *t)
{
  char *ptx = malloc(1 << 16);
  size_t n = ptx ? (size_t)sprintf(ptx, "%s", TOP) : 0;
  for (int i = 0; ptx && i <= 30; i++)
    n += (size_t)sprintf(ptx + n, i < 30 ? ".func f%d();\n" : ".func f%d() { }\n", i);
  for (int i = 29; ptx && i >= 0; i--)
    n += (size_t)sprintf(ptx + n, ".func f%d() { call f%d; call f%d; }\n", i, i + 1, i + 1);
  SimModule *mod = NULL;
  SimError err;
  SimKernelInfo info;
  if (!ptx)
    return;
  sprintf(ptx + n, "%s", ENTRY "call f0; ret; }");
  CHECK(t, sim_load(t->machine, ptx, strlen(ptx), &mod, &err) == 0 && sim_kernel(mod, "k", &info, &err) == 0 && info.local_bytes == 31 * 16, "%s",
        err.message);
  /* 2^30 calls that do nothing are nothing */
  uint32_t one[3] = {1, 1, 1};
  uint64_t none = 0;
  const void *args[] = {&none, &none, &none};
  SimStats stats = {0};
  CHECK(t, mod && sim_launch(mod, "k", one, one, 0, args, &stats, &err) == 0 && stats.warp_instructions < 100, "%s (%llu instructions)", err.message,
        (unsigned long long)stats.warp_instructions);
  sim_unload(mod);
  free(ptx);
}

void
test_calls(Test *t)
{
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    good_case(t, &good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    bad_case(t, &bad[i]);
  nested(t);
}
