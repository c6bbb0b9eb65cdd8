/* wgmma_test.c - products of warpgroups: every type, shape and layout of operands, and every misuse with its words. */
#include "sim_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A block of zeros at dyn, without swizzle: A of 64 x 16, then B of 8 x 16; %d5, %d6 their descriptors, %p1 true. */
#define ZEROS \
  "mov.u32 %r2, dyn; shl.b32 %r1, %r0, 2; add.u32 %r1, %r1, %r2; setp.lt.u32 %p4, %r0, 128; @%p4 st.shared.u32 [%r1], 0; @%p4 st.shared.u32 [%r1+512], 0;\n" \
  "@%p4 st.shared.u32 [%r1+1024], 0; @%p4 st.shared.u32 [%r1+1536], 0; @%p4 st.shared.u32 [%r1+2048], 0; shr.u32 %r3, %r2, 4; cvt.u64.u32 %d5, %r3; add.u64 %d5, %d5, 0x1000080000;\n" \
  "add.u64 %d6, %d5, 128; setp.eq.u32 %p1, %r0, %r0; setp.lt.u32 %p2, %r0, 32;\n"
#define START ZEROS "fence.proxy.async; bar.sync 0;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define MMA "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;\n"
#define MMA_R "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, %d6, %p1, 1, 1, 0;\n"
#define MMA_SP "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %r10, 1, %p1, 1, 1, 0, 0;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"

static const Fault faults[] = {
  {"sum read before the wait", SIM_E_ASYNC, 128, START FENCE ".loc 1 5 1\n" MMA COMMIT AT "add.f32 %f5, %f2, %f2;",
   "warp 3 reads an accumulator of a product that has not been waited for, issued at k.tile:5"},
  {"sum stored before the wait", SIM_E_ASYNC, 128, START FENCE MMA COMMIT AT "st.global.f32 [%d3], %f2;", "reads an accumulator"},
  {"sum written before the wait", SIM_E_ASYNC, 128, START FENCE MMA COMMIT AT "mov.f32 %f2, 0f00000000;", "writes an accumulator"},
  {"a copy of the sum read before the wait", SIM_E_ASYNC, 128, START FENCE MMA COMMIT "mov.f32 %f9, %f2;" AT "add.f32 %f5, %f9, %f9;", "reads an accumulator"},
  {"a wait for too few groups", SIM_E_ASYNC, 128, START FENCE MMA COMMIT MMA COMMIT WAIT(1) AT "add.f32 %f5, %f2, %f2;", "reads an accumulator"},
  {"a group that is not committed", SIM_E_ASYNC, 128, START FENCE MMA WAIT(0) AT "add.f32 %f5, %f2, %f2;", "reads an accumulator"},
  {"A rewritten before the wait", SIM_E_ASYNC, 128, START FENCE MMA_R COMMIT AT "add.u32 %r12, %r12, 1;", "writes a register that holds A"},
  {"no fence at all", SIM_E_ASYNC, 128, START AT MMA, "has executed no wgmma.fence before its first product"},
  {"sum written behind the fence", SIM_E_ASYNC, 128, START FENCE "add.f32 %f3, %f3, %f3;" AT MMA, "wrote register 2 of this product, and has executed no wgmma.fence since"},
  {"metadata out of order", SIM_E_TRAP, 128, START "mov.u32 %r10, 0x41444444;" FENCE AT MMA_SP, "columns 8 to 11 of row 8 keep those at 1 and 0, which are not in order"},
  {"metadata rewritten before the wait", SIM_E_ASYNC, 128, START "mov.u32 %r10, 0x44444444;" FENCE MMA_SP COMMIT AT "mov.u32 %r10, 0;", "writes a register that holds A"},
  {"metadata written behind the fence", SIM_E_ASYNC, 128, START "mov.u32 %r10, 0x44444444;" FENCE "add.u32 %r10, %r10, 0;" AT MMA_SP, "wrote register 4 of this product"},
  {"A written behind the fence", SIM_E_ASYNC, 128, START FENCE "add.u32 %r13, %r13, 1;" AT MMA_R, "wrote register 7 of this product"},
  {"operand overwritten before the wait", SIM_E_ASYNC, 128, START FENCE ".loc 1 5 1\n" MMA COMMIT "bar.sync 0;" AT "st.shared.u32 [%r1], 1;",
   "which an asynchronous operation issued at k.tile:5 reads, and it has not waited for that"},
  {"operand given back before the wait", SIM_E_ASYNC, 160, START "setp.gt.u32 %p3, %r0, 127; @%p3 bra L;" FENCE MMA COMMIT "bar.arrive 1, 160;" WAIT(0) "ret;"
   "L: bar.sync 1, 160;" AT "st.shared.u32 [%r2], 1;", "reads, and it has not waited"},
  {"operand without a fence of its writer", SIM_E_ASYNC, 128, ZEROS "bar.sync 0; fence.proxy.async;" FENCE AT MMA, "no fence.proxy.async between"},
  {"operand that nobody wrote", SIM_E_UNINIT, 128, START "add.u64 %d6, %d6, 40;" FENCE AT MMA, "no thread of the block has written"},
  {"operand outside", SIM_E_BOUNDS, 128, START "add.u64 %d6, %d6, 8192;" FENCE AT MMA, "outside"},
  {"lanes of different descriptors", SIM_E_TRAP, 128, START "@%p2 cvt.u64.u32 %d7, %r0; @%p2 add.u64 %d6, %d6, %d7;" FENCE AT MMA, "disagree"},
  {"base offset", SIM_E_TRAP, 128, START "add.u64 %d6, %d6, 0x2000000000000;" FENCE AT MMA, "base offset"},
  {"three warps", SIM_E_TRAP, 96, "setp.eq.u32 %p1, %r0, %r0;" FENCE AT MMA, "in no warpgroup: the block has 3 warps"},
  {"half a warp", SIM_E_TRAP, 128, START "setp.lt.u32 %p3, %r0, 16; @%p3 bra E;" AT FENCE MMA "E:", "whole warp"},
  {"a warp that does not take part", SIM_E_DEADLOCK, 128, START "@%p2 ret;" FENCE MMA COMMIT AT WAIT(0),
   "warp 1 at wgmma.wait_group (k.tile:7) for warp 0 of its warpgroup, which has committed 0 of 1 groups and 2 more like it"},
  {"warps of other products", SIM_E_TRAP, 128, START FENCE "@%p2 bra L;" MMA "bra M; L:" MMA "M:" COMMIT AT WAIT(0), "are of one warpgroup, and have not issued the same"},
};

static const char *const legal[] = {
  START FENCE MMA COMMIT WAIT(0) "add.f32 %f5, %f2, %f2; bar.sync 0; st.shared.u32 [%r1], 1;",
  /* products that chain, with the moves that compilers put between them; then others in flight beside what is read */
  START FENCE MMA "mov.f32 %f9, %f1; mov.f32 %f1, %f9;" MMA COMMIT MMA_R COMMIT WAIT(0) "add.f32 %f1, %f1, %f1;" FENCE MMA COMMIT WAIT(0),
  START FENCE MMA COMMIT "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5,%f6,%f7,%f8}, %d5, %d6, 0, -1, 1, 0, 0;" COMMIT WAIT(1)
  "add.f32 %f9, %f1, %f1; mov.u32 %r10, 5;" WAIT(0) "add.f32 %f9, %f5, %f5;",
  START FENCE MMA_R COMMIT WAIT(0) "mov.u32 %r10, 1; mov.u32 %r11, 1;" FENCE MMA_R COMMIT WAIT(0),
  FENCE COMMIT WAIT(0) WAIT(7),
};

static const char *const malformed[] = {
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2}, %d5, %d6, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 2, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r1}, %d5, %d6, %p1;",
  "wgmma.mma_async.sp.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %r10, 0, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %r10, 2, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f1,%f2,%f3,%f4}, %d5, %d6, %r10, 1, %p1, 1, 1;",
  "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;",
  "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1,%f2,%f3,%f4}, %d5, %d6, %p1, 1, 1, 0, 0;",
};

static int
run_body(Test *t, const char *body, uint32_t threads, SimError *err)
{
  char ptx[8192];
  uint32_t *a = test_alloc(t, 1024), *b = test_alloc(t, 1024);
  snprintf(ptx, sizeof ptx, "%s%s%s%s", HEAD, body, THEN, TAIL);
  Run r = {ptx, "k", {1}, {threads}, 4096, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  *err = r.err;
  test_free(t, a), test_free(t, b);
  return rc;
}

static void
misuse(Test *t)
{
  SimError e;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    const Fault *f = &faults[i];
    int rc = run_body(t, f->body, f->threads, &e);
    CHECK(t, rc == -1 && e.kind == f->kind && e.line == 7 && strstr(e.message, f->text), "%s: kind %d at line %u: %s", f->name, (int)e.kind, e.line,
          e.message);
  }
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    CHECK(t, run_body(t, legal[i], 128, &e) == 0, "%s: %s", legal[i], e.message);
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
    CHECK(t, run_body(t, malformed[i], 128, &e) == -1 && e.kind == SIM_E_PARSE, "%s: %s", malformed[i], e.message);
}

/* ---- values ---- */

/* Small numbers, which every type has exactly; code: the bits of v, of sizes 1, 2 or 4. */
typedef struct Kind { const char *name; uint32_t size; bool whole; } Kind;
static const Kind kinds[] = {{"f16", 2, false}, {"bf16", 2, false}, {"tf32", 4, false}, {"e4m3", 1, false}, {"e5m2", 1, false}, {"s8", 1, true}, {"u8", 1, true}};

static uint32_t
code(const Kind *k, int v)
{
  static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48}, e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
  static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
  float f = (float)v;
  uint32_t bits, u = (uint32_t)abs(v);
  memcpy(&bits, &f, 4);
  if (k->whole)
    return (uint8_t)v;
  if (k->size == 1)
    return (k->name[1] == '4' ? e4m3[u] : e5m2[u]) | (v < 0 ? 0x80 : 0);
  return k->size == 4 ? bits : k->name[0] == 'b' ? bits >> 16 : f16[u] | (v < 0 ? 0x8000u : 0);
}

/* A layout of a matrix of `rows` along M or N, and kk along K: mode as in a descriptor, and strides for rows of tiles that are packed. */
typedef struct Layout { uint32_t mode, span, lead, stride; bool mn; } Layout;

static Layout
layout_of(uint32_t mode, bool mn, uint32_t rows, uint32_t kk)
{
  static const uint32_t spans[] = {16, 128, 64, 32};
  Layout l = {.mode = mode, .span = spans[mode], .mn = mn};
  uint32_t across = mn ? kk : rows, tile = across * l.span;      /* one column of patterns */
  if (mn && mode)
    l.lead = tile, l.stride = 8 * l.span;
  else if (mn)
    l.stride = tile, l.lead = 128;
  else
    l.lead = mode ? 16 : tile, l.stride = 8 * l.span;
  return l;
}

/* The byte of an element in shared memory at `base`: patterns of 8 lines of span bytes, whose 16-byte parts are exchanged. */
static uint32_t
element_at(const Layout *l, uint32_t base, uint32_t row, uint32_t k, uint32_t size, uint32_t lines)
{
  uint32_t line = l->mn ? k : row, byte = (l->mn ? row : k) * size;
  uint32_t at = base + byte / l->span * lines * l->span + line * l->span + byte % l->span;
  static const uint32_t masks[] = {0, 7, 3, 1};
  return at ^ ((at >> 7 & masks[l->mode]) << 4);
}

static uint64_t
descriptor(const Layout *l, uint32_t at)
{
  return at >> 4 | (uint64_t)(l->lead >> 4) << 16 | (uint64_t)(l->stride >> 4) << 32 | (uint64_t)l->mode << 62;
}

/* held: elements of K that A has, half of them in a sparse product. */
typedef struct Product { const Kind *a, *b; const char *d; uint32_t n, kk, held, selector; Layout la, lb; bool regs, keep, neg, sparse; } Product;
enum { MOST_K = 64, IMAGE = 65536 + 2048 + 512 };

/* 65536 bytes of b's image to shared memory from 1024 on; four registers of A from b + 65536, one of metadata behind them all; sums come from
 * and go to a. */
static void
product_ptx(char *out, size_t size, const Product *p)
{
  bool half = strcmp(p->d, "f16") == 0;
  uint32_t nd = p->n / (half ? 4 : 2);
  size_t n = (size_t)snprintf(out, size,
    ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n.visible .entry k(.param .u64 a, .param .u64 b) {\n"
    ".reg .b32 %%r<32>; .reg .b64 %%d<16>; .reg .pred %%p<9>; .reg .b32 %%s<130>;\n"
    "ld.param.u64 %%d1, [a]; ld.param.u64 %%d2, [b]; mov.u32 %%r0, %%tid.x; mov.u32 %%r2, dyn; shl.b32 %%r1, %%r0, 4; cvt.u64.u32 %%d4, %%r1;\n"
    "add.u64 %%d3, %%d2, %%d4; add.u32 %%r1, %%r1, %%r2; mov.u32 %%r9, 0; setp.%s.u32 %%p1, %%r0, %%r0;\n"
    "F: ld.global.v4.u32 {%%r3,%%r4,%%r5,%%r6}, [%%d3]; st.shared.v4.u32 [%%r1+1024], {%%r3,%%r4,%%r5,%%r6}; add.u32 %%r1, %%r1, 2048;\n"
    "add.u64 %%d3, %%d3, 2048; add.u32 %%r9, %%r9, 1; setp.lt.u32 %%p3, %%r9, 32; @%%p3 bra F;\n"
    "ld.global.v4.u32 {%%r10,%%r11,%%r12,%%r13}, [%%d3]; mad.wide.u32 %%d4, %%r0, 4, %%d2; ld.global.u32 %%r14, [%%d4+67584];\n"
    "mad.wide.u32 %%d3, %%r0, 512, %%d1; fence.proxy.async; bar.sync 0;\n"
    "mov.u64 %%d5, %llu; mov.u64 %%d6, %llu;\n", p->keep ? "eq" : "ne", (unsigned long long)descriptor(&p->la, 1024),
    (unsigned long long)descriptor(&p->lb, 1024 + 16384));
  for (uint32_t i = 0; i < nd; i++)
    n += (size_t)snprintf(out + n, size - n, "ld.global.b32 %%s%u, [%%d3+%u];\n", i, 4 * i);
  n += (size_t)snprintf(out + n, size - n, FENCE "wgmma.mma_async%s.sync.aligned.m64n%uk%u.%s.%s.%s {", p->sparse ? ".sp" : "", p->n, p->kk, p->d, p->a->name,
                        p->b->name);
  for (uint32_t i = 0; i < nd; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%%s%u", i ? "," : "", i);
  n += (size_t)snprintf(out + n, size - n, "}, %s, %%d6", p->regs ? "{%r10,%r11,%r12,%r13}" : "%d5");
  if (p->sparse)
    n += (size_t)snprintf(out + n, size - n, ", %%r14, %u", p->selector);
  n += (size_t)snprintf(out + n, size - n, ", %%p1");
  if (!p->a->whole)
    n += (size_t)snprintf(out + n, size - n, ", %d, 1", p->neg ? -1 : 1);
  if (p->a->size == 2)
    n += (size_t)snprintf(out + n, size - n, p->regs ? ", %d" : ", %d, %d", p->regs ? p->lb.mn : p->la.mn, p->lb.mn);
  n += (size_t)snprintf(out + n, size - n, ";\n" COMMIT WAIT(0));
  for (uint32_t i = 0; i < nd; i++)
    n += (size_t)snprintf(out + n, size - n, "st.global.b32 [%%d3+%u], %%s%u;\n", 4 * i, i);
  snprintf(out + n, size - n, TAIL);
}

static int
value(uint32_t *seed, const Kind *k)
{
  *seed = *seed * 1664525u + 1013904223u;
  int v = (int)(*seed >> 16 & 7);
  return k->name[0] == 'u' ? v % 5 : v % 5 - (v & 4 ? 0 : 2);
}

/* Sum (row, column) of the block is register i of a thread, or half h of it. */
static void
sum_place(uint32_t row, uint32_t column, bool half, uint32_t *thread, uint32_t *reg, uint32_t *h)
{
  uint32_t i = column / 8 * 4 + (row % 16 / 8) * 2 + column % 2;
  *thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  *reg = half ? i / 2 : i;
  *h = half ? i % 2 : 0;
}

/* Places for row i, in va its elements where they stand; the others are zeros. */
static void
fill_sparse_row(const Product *p, uint32_t i, int *va, uint8_t *image)
{
  static const uint8_t pair[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  int held[MOST_K];
  memcpy(held, va + i * MOST_K, sizeof held);
  memset(va + i * MOST_K, 0, sizeof held);
  for (uint32_t g = 0; g < p->kk / 4; g++) {
    const uint8_t *at = pair[(i * 7 + g * 5 + i / 3) % 6];
    uint32_t row = i % 16, half = p->a->size == 2 ? row / 8 : g / 4 % 2, word;
    uint32_t thread = i / 16 * 32 + row % 8 * 4 + p->selector * p->kk / 16 + (p->a->size == 2 ? g / 4 : g / 8 * 2 + row / 8);
    memcpy(&word, image + 67584 + 4 * thread, 4);
    word = (word & ~(15u << (half * 16 + g % 4 * 4))) | (uint32_t)(at[0] | at[1] << 2) << (half * 16 + g % 4 * 4);
    memcpy(image + 67584 + 4 * thread, &word, 4);
    for (uint32_t e = 0; e < 2; e++)
      va[i * MOST_K + 4 * g + at[e]] = held[2 * g + e];
  }
}

static void
fill(const Product *p, int *va, int *vb, uint8_t *image, uint32_t *seed)
{
  uint32_t sa = p->a->size, sb = p->b->size;
  memset(image, 0, IMAGE);
  memset(image + 67584, 0xff, 512);            /* of threads that are not asked */
  for (uint32_t i = 0; i < 64; i++)
    for (uint32_t k = 0; k < p->held; k++) {
      uint32_t bits = code(p->a, va[i * MOST_K + k] = value(seed, p->a)), per = 4 / sa;
      uint32_t thread = i / 16 * 32 + i % 8 * 4 + k % (4 * per) / per, reg = i % 16 / 8 + k / (4 * per) * 2;
      memcpy(image + element_at(&p->la, 0, i, k, sa, p->la.mn ? p->held : 64), &bits, sa);
      memcpy(image + 65536 + thread * 16 + reg * 4 + k % per * sa, &bits, sa);
    }
  for (uint32_t i = 0; p->sparse && i < 64; i++)
    fill_sparse_row(p, i, va, image);
  for (uint32_t j = 0; j < p->n; j++)
    for (uint32_t k = 0; k < p->kk; k++) {
      uint32_t bits = code(p->b, vb[j * MOST_K + k] = value(seed, p->b));
      memcpy(image + element_at(&p->lb, 16384, j, k, sb, p->lb.mn ? p->kk : p->n), &bits, sb);
    }
}

static bool
same(const Product *p, uint32_t bits, uint32_t half, int want)
{
  float f;
  memcpy(&f, &bits, 4);
  if (strcmp(p->d, "f16") == 0) {
    uint32_t h = bits >> 16 * half & 0xffff, e = h >> 10 & 31;
    f = e ? ldexpf((float)(1024 + (h & 1023)), (int)e - 25) * (h >> 15 ? -1 : 1) : 0;
  }
  return p->a->whole ? (int)bits == want : f == (float)want;
}

static void
product_case(Test *t, const Product *p, uint32_t *seed)
{
  static int va[64 * MOST_K], vb[256 * MOST_K];
  static char ptx[32768];
  uint32_t *a = test_alloc(t, 128 * 512), wrong = 0;
  uint8_t *b = test_alloc(t, IMAGE);
  bool half = strcmp(p->d, "f16") == 0;
  fill(p, va, vb, b, seed);
  memset(a, 0, 128 * 512);
  for (uint32_t i = 0; i < 128 * 128; i++)
    a[i] = half ? 0x40004000 : p->a->whole ? 2 : 0x40000000;
  product_ptx(ptx, sizeof ptx, p);
  Run r = {ptx, "k", {1}, {128}, 1024 + 65536, {&a, &b}, {0}, {0}};
  if (CHECK(t, test_run(t, &r) == 0, "m64n%uk%u.%s.%s.%s: %s", p->n, p->kk, p->d, p->a->name, p->b->name, r.err.message))
    for (uint32_t i = 0; i < 64; i++)
      for (uint32_t j = 0; j < p->n; j++) {
        int want = 0;
        uint32_t thread, reg, h;
        for (uint32_t k = 0; k < p->kk; k++)
          want += va[i * MOST_K + k] * vb[j * MOST_K + k];
        want = (p->neg ? -want : want) + (p->keep ? 2 : 0);
        sum_place(i, j, half, &thread, &reg, &h);
        wrong += !same(p, a[thread * 128 + reg], h, want);
      }
  CHECK(t, wrong == 0, "%sm64n%uk%u.%s.%s.%s, A %s mode %u%s, B mode %u%s: %u wrong", p->sparse ? "sparse " : "", p->n, p->kk, p->d, p->a->name, p->b->name, p->regs ? "registers," : "",
        p->la.mode, p->la.mn ? " by M" : "", p->lb.mode, p->lb.mn ? " by N" : "", wrong);
  test_free(t, a), test_free(t, b);
}

/* Layouts fit where their span is in the matrix: rows of 32 bytes along K, twice as many of a sparse product's B, as wide as n along N. */
static bool
product_of(Product *p, uint32_t mode_a, uint32_t mode_b, bool mn_a, bool mn_b)
{
  static const uint32_t spans[] = {16, 128, 64, 32};
  p->la = layout_of(mode_a, mn_a, 64, p->held);
  p->lb = layout_of(mode_b, mn_b, p->n, p->kk);
  return !mn_b ? !mode_b || p->kk * p->b->size <= spans[mode_b] : p->n * p->b->size % spans[mode_b] == 0;
}

/* Every type but tf32, with every selector. */
static void
products_sparse(Test *t)
{
  static const struct { uint8_t a, b; const char *d; } types[] = {{0, 0, "f32"}, {0, 0, "f16"}, {1, 1, "f32"}, {3, 4, "f32"}, {4, 4, "f16"}, {5, 6, "s32"}};
  static const uint32_t columns[] = {8, 64, 176, 256};
  uint32_t seed = 7, count = 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
      for (uint32_t mode = 0; mode < 4; mode++, count++) {
        Product p = {.a = &kinds[types[i].a], .b = &kinds[types[i].b], .d = types[i].d, .n = columns[c], .keep = count % 3, .regs = count % 5 == 0, .sparse = true};
        p.kk = 64 / p.a->size;
        p.held = p.kk / 2;
        p.neg = !p.a->whole && count % 4 == 0;
        p.selector = p.a->size == 2 ? count % 2 : 0;
        if (product_of(&p, mode, (mode + count) % 4, false, false))
          product_case(t, &p, &seed);
        if (p.a->size == 2 && product_of(&p, mode, (mode + count) % 4, count % 2, true))
          product_case(t, &p, &seed);
      }
}

static void
products(Test *t)
{
  static const struct { uint8_t a, b; const char *d; } types[] = {{0, 0, "f32"}, {0, 0, "f16"}, {1, 1, "f32"}, {2, 2, "f32"}, {3, 3, "f32"}, {3, 4, "f32"},
    {4, 3, "f16"}, {5, 5, "s32"}, {6, 5, "s32"}, {5, 6, "s32"}};
  static const uint32_t columns[] = {8, 16, 32, 64, 96, 176, 256};
  uint32_t seed = 99, count = 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
      for (uint32_t mode = 0; mode < 4; mode++, count++) {
        Product p = {.a = &kinds[types[i].a], .b = &kinds[types[i].b], .d = types[i].d, .n = columns[c], .keep = count % 3, .regs = count % 5 == 0};
        p.held = p.kk = 32 / p.a->size;
        p.neg = !p.a->whole && count % 4 == 0;
        if (product_of(&p, mode, (mode + count) % 4, false, false))
          product_case(t, &p, &seed);
        if (p.a->size == 2 && product_of(&p, mode, (mode + count) % 4, count % 2, true))
          product_case(t, &p, &seed);
      }
}

/* ---- registers ---- */

#define REGS "\n.maxntid 256, 1, 1\n.minnctapersm 1\n{\n.reg .b32 %r<9>; .reg .pred %p<9>; mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 128;\n"
#define REGS_HEAD ".version 8.6\n.target sm_90a\n.address_size 64\n.file 1 \"k.tile\"\n.visible .entry k()"

static void
registers(Test *t)
{
  static const struct { const char *body; SimErrorKind kind; const char *text; } cases[] = {
    {"griddepcontrol.wait; griddepcontrol.launch_dependents; @%p1 bra L; setmaxnreg.inc.sync.aligned.u32 248; ret; L: setmaxnreg.dec.sync.aligned.u32 40;", SIM_OK, ""},
    {"@%p1 bra L; setmaxnreg.dec.sync.aligned.u32 200; bar.sync 1, 256; setmaxnreg.inc.sync.aligned.u32 232; ret;"
     "L: setmaxnreg.dec.sync.aligned.u32 40; bar.sync 1, 256;", SIM_OK, ""},
    {"@%p1 bra L; setmaxnreg.dec.sync.aligned.u32 200; bar.sync 1, 256;" AT "setmaxnreg.inc.sync.aligned.u32 256; ret;"
     "L: bar.sync 1, 256;", SIM_E_DEADLOCK, "warp 6 at setmaxnreg (k.tile:7) for 256 registers a thread, of which it has 200"},
    {AT "setmaxnreg.inc.sync.aligned.u32 104;", SIM_E_TRAP, "setmaxnreg.inc to 104, where a thread of warp 0 has 248 registers"},
    {AT "setmaxnreg.dec.sync.aligned.u32 256;", SIM_E_TRAP, "setmaxnreg.dec to 256"},
    {"setp.lt.u32 %p1, %r0, 64; @%p1 bra L;" AT "setmaxnreg.dec.sync.aligned.u32 40; L:", SIM_E_TRAP, "and warp 0 of its warpgroup does not"},
    {"setmaxnreg.dec.sync.aligned.u32 20;", SIM_E_PARSE, "24 to 256 registers"},
  };
  char ptx[2048];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(ptx, sizeof ptx, "%s%s%s%s", REGS_HEAD, REGS, cases[i].body, TAIL);
    Run r = {ptx, "k", {1}, {256}, 0, {0}, {0}, {0}};
    int rc = test_run(t, &r);
    CHECK(t, (rc == 0) == !cases[i].kind && (!rc || (r.err.kind == cases[i].kind && strstr(r.err.message, cases[i].text))), "%s: kind %d: %s", cases[i].body,
          (int)r.err.kind, r.err.message);
  }
}

void
test_wgmma(Test *t)
{
  misuse(t);
  registers(t);
  products(t);
  products_sparse(t);
}
