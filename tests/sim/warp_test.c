/* warp_test.c - what lanes and warps do together, against the definitions of the PTX ISA. */
#include "sim_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair { uint32_t *a, *b; } Pair;

static Pair
pair_new(Test *t, uint32_t words)
{
  Pair p = {test_alloc(t, 4u * words), test_alloc(t, 4u * words)};
  for (uint32_t i = 0; i < words; i++)
    p.a[i] = i * 2654435761u >> 7, p.b[i] = 0xdeadbeef;
  return p;
}

static void
pair_free(Test *t, Pair p)
{
  test_free(t, p.a), test_free(t, p.b);
}

static bool
run_pair(Test *t, const char *name, const char *ptx, uint32_t grid, uint32_t block, Pair p)
{
  Run r = {ptx, "k", {grid}, {block}, 0, {&p.a, &p.b}, {0}, {0}};
  int rc = test_run(t, &r);
  return CHECK(t, rc == 0, "%s: %s", name, r.err.message);
}

/* ---- shuffles, votes ---- */

static void
shuffle_case(Test *t, int mode, uint32_t b, uint32_t width)
{
  static const char *const names[] = {"up", "down", "bfly", "idx"};
  char ptx[2048];
  uint32_t seg = (32 - width) << 8, c = mode == 0 ? seg : seg | 31, wrong = 0;
  Pair p = pair_new(t, 32);
  snprintf(ptx, sizeof ptx, "%s ld.global.u32 %%r1, [%%d3]; shfl.sync.%s.b32 %%r2|%%p1, %%r1, %u, %u, -1;\n"
           "selp.u32 %%r3, 0x80000000, 0, %%p1; xor.b32 %%r2, %%r2, %%r3; st.global.u32 [%%d4], %%r2; %s", HEAD,
           names[mode], b, c, TAIL);
  run_pair(t, names[mode], ptx, 1, 32, p);
  for (int i = 0; i < 32; i++) {
    int base = i / (int)width * (int)width, j = mode == 0   ? i - (int)b
                                                : mode == 1 ? i + (int)b
                                                : mode == 2 ? i ^ (int)b
                                                            : base + (int)(b % width);
    bool in = j >= base && j < base + (int)width;
    if (mode == 2)
      in = j < base + (int)width;
    wrong += p.b[i] != (p.a[in ? j : i] ^ (in ? 0x80000000u : 0));
  }
  CHECK(t, wrong == 0, "shfl.%s by %u of %u: %u wrong", names[mode], b, width, wrong);
  pair_free(t, p);
}

static void
test_votes(Test *t)
{
  uint32_t wrong = 0, ballot = 0, sum = 0, top = 0;
  Pair p = pair_new(t, 256);
  for (int i = 0; i < 32; i++) {
    p.a[i] %= 10;
    ballot |= (uint32_t)(p.a[i] > 4) << i;
    sum += p.a[i];
    top = p.a[i] > top ? p.a[i] : top;
  }
  run_pair(t, "votes", HEAD
           "ld.global.u32 %r1, [%d3]; setp.gt.u32 %p1, %r1, 4;\n"
           "vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1;\n"
           "match.any.sync.b32 %r3, %r1, -1; match.all.sync.b32 %r4|%p4, %r1, -1; redux.sync.add.u32 %r5, %r1, -1;\n"
           "redux.sync.max.s32 %r6, %r1, -1; elect.sync %r7|%p5, -1; activemask.b32 %r8;\n"
           "st.global.u32 [%d4], %r2; selp.u32 %r9, 2, 0, %p2; selp.u32 %r10, 4, 0, %p3; add.u32 %r9, %r9, %r10;\n"
           "selp.u32 %r10, 8, 0, %p4; add.u32 %r9, %r9, %r10; selp.u32 %r10, 16, 0, %p5; add.u32 %r9, %r9, %r10;\n"
           "st.global.u32 [%d4+128], %r9; st.global.u32 [%d4+256], %r3; st.global.u32 [%d4+384], %r5;\n"
           "st.global.u32 [%d4+512], %r6; st.global.u32 [%d4+640], %r7; st.global.u32 [%d4+768], %r8;\n" TAIL, 1, 32, p);
  for (int i = 0; i < 32; i++) {
    uint32_t same = 0;
    for (int j = 0; j < 32; j++)
      same |= (uint32_t)(p.a[j] == p.a[i]) << j;
    wrong += p.b[i] != ballot || p.b[32 + i] != (i ? 2 : 18) || p.b[64 + i] != same || p.b[96 + i] != sum ||
             p.b[128 + i] != top || p.b[160 + i] != 0 || p.b[192 + i] != ~0u;
  }
  CHECK(t, wrong == 0, "votes: %u wrong", wrong);
  pair_free(t, p);
}

/* Of no lane, of some, of all: any, all, uni. */
static void
test_majorities(Test *t)
{
  static const struct { int yes; uint32_t says; } cases[] = {{0, 4}, {1, 1}, {5, 1}, {31, 1}, {32, 7}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char ptx[1024];
    uint32_t wrong = 0;
    Pair p = pair_new(t, 32);
    snprintf(ptx, sizeof ptx, "%s setp.lt.u32 %%p1, %%r0, %d; vote.sync.any.pred %%p2, %%p1, -1; vote.sync.all.pred %%p3, %%p1, -1;"
             "vote.sync.uni.pred %%p4, %%p1, -1; selp.u32 %%r1, 1, 0, %%p2; selp.u32 %%r2, 2, 0, %%p3; selp.u32 %%r3, 4, 0, %%p4;"
             "add.u32 %%r1, %%r1, %%r2; add.u32 %%r1, %%r1, %%r3; st.global.u32 [%%d4], %%r1; %s", HEAD, cases[i].yes, TAIL);
    run_pair(t, "majorities", ptx, 1, 32, p);
    for (int k = 0; k < 32; k++)
      wrong += p.b[k] != cases[i].says;
    CHECK(t, wrong == 0, "votes of %d lanes: %u wrong", cases[i].yes, wrong);
    pair_free(t, p);
  }
}

/* Half warps with their own member masks, in different branches. */
static void
test_halves(Test *t)
{
  uint32_t wrong = 0;
  Pair p = pair_new(t, 32);
  run_pair(t, "halves", HEAD
           "ld.global.u32 %r1, [%d3]; setp.lt.u32 %p1, %r0, 16; @%p1 bra LOW;\n"
           "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff0000; bra END;\n"
           "LOW: shfl.sync.bfly.b32 %r2, %r1, 2, 31, 0x0000ffff;\n"
           "END: st.global.u32 [%d4], %r2; bar.warp.sync -1;\n" TAIL, 1, 32, p);
  for (int i = 0; i < 32; i++)
    wrong += p.b[i] != p.a[i ^ (i < 16 ? 2 : 1)];
  CHECK(t, wrong == 0, "halves: %u wrong", wrong);
  pair_free(t, p);
}

/* Lanes that took different ways through a loop are together at every collective of its end. */
static void
test_reconverge(Test *t)
{
  uint32_t wrong = 0;
  Pair p = pair_new(t, 32);
  run_pair(t, "reconverge", HEAD
           "mov.u32 %r1, 0; mov.u32 %r9, 0; and.b32 %r2, %r0, 7;\n"
           "ts: .branchtargets C0, C1, C2;\n"
           "LOOP: add.u32 %r9, %r9, 1; rem.u32 %r3, %r9, 3; add.u32 %r3, %r3, %r0; rem.u32 %r3, %r3, 4;\n"
           "setp.gt.u32 %p1, %r3, 2; @%p1 bra NEXT; brx.idx %r3, ts;\n"
           "C0: add.u32 %r1, %r1, 1; bra NEXT; C1: add.u32 %r1, %r1, 16; bra JOIN; C2: add.u32 %r1, %r1, 256;\n"
           "JOIN: add.u32 %r1, %r1, 4096;\n"
           "NEXT: setp.lt.u32 %p2, %r9, %r2; activemask.b32 %r4; @%p2 bra LOOP;\n"
           "activemask.b32 %r5; st.global.u32 [%d4], %r1; setp.eq.u32 %p3, %r5, -1; @%p3 bra OK; trap; OK:\n" TAIL, 1, 32, p);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t s = 0, n = 0;
    do {
      uint32_t c = (++n % 3 + i) % 4;
      s += c == 0 ? 1 : c == 1 ? 16 + 4096 : c == 2 ? 256 + 4096 : 0;
    } while (n < (i & 7));
    wrong += p.b[i] != s;
  }
  CHECK(t, wrong == 0, "reconverge: %u wrong", wrong);
  pair_free(t, p);
}

/* ---- barriers ---- */

static void
test_barriers(Test *t)
{
  uint32_t wrong = 0, count = 0;
  Pair p = pair_new(t, 128);
  for (int i = 0; i < 128; i++)
    count += p.a[i] % 2;
  run_pair(t, "bar.red", HEAD
           "ld.global.u32 %r1, [%d3]; and.b32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0;\n"
           "bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 1, 128, !%p1;\n"
           "selp.u32 %r3, 1000, 0, %p2; selp.u32 %r4, 2000, 0, %p3; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;\n"
           "st.global.u32 [%d4], %r2;\n" TAIL, 1, 128, p);
  for (int i = 0; i < 128; i++)
    wrong += p.b[i] != count + 2000;
  CHECK(t, wrong == 0, "bar.red: %u wrong", wrong);
  pair_free(t, p);
}

/* Warp 0 produces, warp 1 consumes, through two named barriers with arrive; warps 2 and 3 have left. */
static void
test_named(Test *t)
{
  uint32_t wrong = 0;
  Pair p = pair_new(t, 128);
  run_pair(t, "named barriers", HEAD
           "shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; shl.b32 %r3, %r2, 2; mov.u32 %r4, sh; add.u32 %r4, %r4, %r3;\n"
           "mov.u32 %r5, 0; setp.gt.u32 %p1, %r1, 1; @%p1 ret; setp.eq.u32 %p2, %r1, 1; mov.u32 %r8, 0; @%p2 bra CONSUME;\n"
           "PRODUCE: bar.sync 2, 64; mad.lo.u32 %r6, %r5, 100, %r2; st.shared.u32 [%r4], %r6; bar.arrive 1, 64;\n"
           "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra PRODUCE; bra END;\n"
           "CONSUME: bar.arrive 2, 64; bar.sync 1, 64; xor.b32 %r7, %r4, 4; ld.shared.u32 %r6, [%r7];\n"
           "add.u32 %r8, %r8, %r6; add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra CONSUME;\n"
           "st.global.u32 [%d4], %r8; END: bar.sync 0;\n" TAIL, 1, 128, p);
  for (uint32_t i = 32; i < 64; i++)
    wrong += p.b[i] != 600 + 4 * (i % 32 ^ 1);
  CHECK(t, wrong == 0, "named barriers: %u wrong", wrong);
  pair_free(t, p);
}

/* ---- atomics ---- */

static void
test_atomics(Test *t)
{
  Pair p = pair_new(t, 64);
  float f;
  memset(p.b, 0, 256);
  p.b[2] = 1000;
  run_pair(t, "atomics", HEAD
           "mov.u32 %r9, %ctaid.x; mad.lo.u32 %r1, %r9, 64, %r0; mov.f32 %f1, 0f3f800000;\n"
           "atom.global.add.u32 %r2, [%d2], 3; red.global.max.u32 [%d2+4], %r1; atom.global.min.s32 %r2, [%d2+8], %r1;\n"
           "red.relaxed.gpu.global.add.f32 [%d2+12], %f1; atom.acq_rel.gpu.global.inc.u32 %r3, [%d2+16], 99;\n"
           "and.b32 %r4, %r1, 31; mov.u32 %r5, 1; shl.b32 %r5, %r5, %r4; red.global.or.b32 [%d2+20], %r5;\n"
           "red.global.xor.b32 [%d2+24], %r1; mov.b32 %r6, 0x3c003c00; red.global.add.noftz.f16x2 [%d2+28], %r6;\n"
           "mov.b64 %d5, 5; atom.global.add.u64 %d6, [%d2+32], %d5; mov.f64 %d7, 0d3ff0000000000000;\n"
           "red.global.add.f64 [%d2+40], %d7; red.global.add.v2.f32 [%d2+48], {%f1, %f1};\n"
           "AGAIN: ld.relaxed.gpu.global.u32 %r7, [%d2+56]; add.u32 %r8, %r7, 2; atom.global.cas.b32 %r10, [%d2+56], %r7, %r8;\n"
           "setp.ne.u32 %p1, %r10, %r7; @%p1 bra AGAIN; atom.global.exch.b32 %r11, [%d2+60], %r1;\n" TAIL, 16, 64, p);
  memcpy(&f, &p.b[3], 4);
  CHECK(t, p.b[0] == 3072 && p.b[1] == 1023 && p.b[2] == 0 && f == 1024, "atomics: %u %u %u %g", p.b[0], p.b[1], p.b[2], (double)f);
  CHECK(t, p.b[4] == 1024 % 100 && p.b[5] == ~0u && p.b[6] == 0, "atomics: %u %x %x", p.b[4], p.b[5], p.b[6]);
  CHECK(t, p.b[7] == 0x64006400 && p.b[8] == 5120 && p.b[14] == 2048, "atomics: %x %u %u", p.b[7], p.b[8], p.b[14]);
  double d;
  memcpy(&d, &p.b[10], 8);
  memcpy(&f, &p.b[13], 4);
  CHECK(t, d == 1024 && f == 1024, "atomics: %g %g", d, (double)f);
  pair_free(t, p);
}

/* ---- matrices ---- */

static void
test_ldmatrix(Test *t, bool trans, bool store)
{
  uint32_t wrong = 0;
  char ptx[4096];
  Pair p = pair_new(t, 128);
  uint16_t *in = (uint16_t *)(void *)p.a;
  snprintf(ptx, sizeof ptx, "%s"
           "shl.b32 %%r1, %%r0, 4; mov.u32 %%r2, sh; add.u32 %%r1, %%r1, %%r2; mad.wide.u32 %%d5, %%r0, 16, %%d1;\n"
           "ld.global.v4.b32 {%%r3,%%r4,%%r5,%%r6}, [%%d5]; st.shared.v4.b32 [%%r1], {%%r3,%%r4,%%r5,%%r6}; bar.sync 0;\n"
           "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r3,%%r4,%%r5,%%r6}, [%%r1]; mad.wide.u32 %%d5, %%r0, 16, %%d2;\n"
           "%s st.global.v4.b32 [%%d5], {%%r3,%%r4,%%r5,%%r6};\n" TAIL, HEAD, trans ? ".trans" : "",
           store ? "bar.sync 0; stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r1], {%r3,%r4,%r5,%r6}; bar.sync 0;"
                   "ld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r1];" : "");
  run_pair(t, "ldmatrix", ptx, 1, 32, p);
  for (int i = 0; i < 4; i++)
    for (int lane = 0; lane < 32; lane++)
      for (int e = 0; e < 2; e++) {
        int r = lane / 4, c = lane % 4 * 2 + e, m = i;
        uint16_t got = (uint16_t)(p.b[lane * 4 + i] >> 16 * e);
        if (store)
          m = lane / 8, r = 2 * i + e, c = lane % 8;
        bool flip = store ? !trans : trans;
        uint16_t want = store ? (flip ? in[m * 64 + r * 8 + c] : in[m * 64 + c * 8 + r])
                              : (flip ? in[m * 64 + c * 8 + r] : in[m * 64 + r * 8 + c]);
        wrong += got != want;
      }
  CHECK(t, wrong == 0, "ldmatrix%s%s: %u wrong", trans ? ".trans" : "", store ? ", stmatrix.trans" : "", wrong);
  pair_free(t, p);
}

/* Fragments as the PTX ISA writes them: element i of a lane, its row and column. */
typedef struct Place { int row, col; } Place;

static Place
place_a(int m, int bits, int lane, int i)
{
  int g = lane >> 2, t = lane & 3;
  if (bits == 16)
    return (Place){i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  if (bits == 8)
    return (Place){i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  if (m == 8)
    return (Place){g, t};
  return (Place){i % 2 == 0 ? g : g + 8, t + 4 * (i / 2)};
}

static Place
place_b(int bits, int lane, int i)
{
  int g = lane >> 2, t = lane & 3;
  if (bits == 16)
    return (Place){t * 2 + (i & 1) + (i >> 1) * 8, g};
  if (bits == 8)
    return (Place){t * 4 + (i & 3) + (i >> 2) * 16, g};
  return (Place){t + 4 * i, g};
}

typedef struct Mma { int m, k, bits; const char *d, *a, *b; } Mma;

static uint64_t
encode(const char *type, int v)
{
  static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48}, e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
  int mag = abs(v);
  if (strcmp(type, "f16") == 0) {
    static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return f16[mag] | (v < 0 ? 0x8000u : 0);
  }
  if (strcmp(type, "e4m3") == 0 || strcmp(type, "e5m2") == 0)
    return (type[1] == '4' ? e4m3 : e5m2)[mag] | (v < 0 ? 128u : 0);
  if (strcmp(type, "f64") == 0) {
    double x = v;
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
  }
  float f = (float)v;
  uint32_t u;
  memcpy(&u, &f, 4);
  if (strcmp(type, "tf32") == 0)
    return u | 0x1555;         /* the simulator reads none of the 13 bits that a tf32 has not: so it shows a rounding that was forgotten */
  return strcmp(type, "bf16") == 0 ? u >> 16 : (uint64_t)(uint8_t)v;
}

static double
decode(const char *type, const uint8_t *p, int i)
{
  double d;
  float f;
  int32_t n;
  uint16_t h;
  if (strcmp(type, "f64") == 0)
    return memcpy(&d, p + 8 * i, 8), d;
  if (strcmp(type, "f32") == 0)
    return memcpy(&f, p + 4 * i, 4), (double)f;
  if (strcmp(type, "s32") == 0)
    return memcpy(&n, p + 4 * i, 4), (double)n;
  memcpy(&h, p + 2 * i, 2);
  int e = h >> 10 & 31;
  return (h & 0x8000 ? -1 : 1) * ldexp(e ? 1024 + (h & 1023) : h & 1023, (e ? e : 1) - 25);
}

static void
fragment_text(char *s, size_t size, const char *reg, int first, int n)
{
  size_t used = (size_t)snprintf(s, size, "{");
  for (int i = 0; i < n; i++)
    used += (size_t)snprintf(s + used, size - used, "%s%s%d", i ? "," : "", reg, first + i);
  snprintf(s + used, size - used, "}");
}

/* Every lane's registers are at 256 lane in a: A, then B at 128, then C at 192; D goes to 64 lane in b. */
static void
mma_text(char *ptx, size_t size, const Mma *x)
{
  int big = x->bits == 64, unit = big ? 8 : 4, per = x->bits >= 32 ? 1 : 32 / x->bits;
  int na = x->m * x->k / 32 / per, nb = x->k * 8 / 32 / per, nc = x->m * 8 / 32 / (strcmp(x->d, "f16") == 0 ? 2 : 1);
  const char *reg = big ? "%e" : "%c", *width = big ? "64" : "32";
  char a[256], b[256], c[256];
  size_t n = (size_t)snprintf(ptx, size, "%s .reg .b32 %%c<40>; .reg .b64 %%e<40>; mad.wide.u32 %%d5, %%r0, 256, %%d1;"
                              "mad.wide.u32 %%d6, %%r0, 64, %%d2;\n", HEAD);
  for (int i = 0; i < na + nb + nc; i++) {
    int at = i < na ? i * unit : i < na + nb ? 128 + (i - na) * unit : 192 + (i - na - nb) * unit;
    n += (size_t)snprintf(ptx + n, size - n, "ld.global.b%s %s%d, [%%d5+%d];\n", width, reg, i, at);
  }
  fragment_text(a, sizeof a, reg, 0, na);
  fragment_text(b, sizeof b, reg, na, nb);
  fragment_text(c, sizeof c, reg, na + nb, nc);
  n += (size_t)snprintf(ptx + n, size - n, "mma.sync.aligned.m%dn8k%d.row.col.%s.%s.%s.%s %s, %s, %s, %s;\n", x->m, x->k,
                        x->d, x->a, x->b, x->d, c, a, b, c);
  for (int i = 0; i < nc; i++)
    n += (size_t)snprintf(ptx + n, size - n, "st.global.b%s [%%d6+%d], %s%d;\n", width, i * unit, reg, na + nb + i);
  snprintf(ptx + n, size - n, "%s", TAIL);
}

static void
mma_case(Test *t, const Mma *x)
{
  char ptx[8192];
  int a[16][32], b[32][8], wrong = 0, bytes = x->bits / 8, lo = x->a[0] == 'u' ? 0 : -4;
  uint8_t *in = test_alloc(t, 32 * 256), *out = test_alloc(t, 32 * 64);
  memset(in, 0, 32 * 256);
  for (int i = 0; i < 16 * 32; i++)
    a[i / 32][i % 32] = lo + (i * 7 + i / 5) % (5 - lo), b[i % 32][i / 32 % 8] = (i * 5 + i / 9) % 9 - 4;
  for (int i = 0; x->b[0] == 'u' && i < 256; i++)
    b[i / 8][i % 8] = abs(b[i / 8][i % 8]);
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < x->m * x->k / 32; i++) {
      Place q = place_a(x->m, x->bits, lane, i);
      uint64_t v = encode(x->a, a[q.row][q.col]);
      memcpy(in + 256 * lane + i * bytes, &v, (size_t)bytes);
    }
    for (int i = 0; i < x->k * 8 / 32; i++) {
      Place q = place_b(x->bits, lane, i);
      uint64_t v = encode(x->b, b[q.row][q.col]);
      memcpy(in + 256 * lane + 128 + i * bytes, &v, (size_t)bytes);
    }
  }
  mma_text(ptx, sizeof ptx, x);
  Run r = {ptx, "k", {1}, {32}, 0, {&in, &out}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == 0, "mma k%d %s: %s", x->k, x->a, r.err.message);
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < x->m / 4; i++) {
      int row = (lane >> 2) + (i < 2 ? 0 : 8), col = (lane & 3) * 2 + (i & 1), want = 0;
      for (int k = 0; k < x->k; k++)
        want += a[row][k] * b[k][col];
      wrong += decode(x->d, out + 64 * lane, i) != want;
    }
  CHECK(t, wrong == 0, "mma m%dk%d %s %s: %d wrong", x->m, x->k, x->a, x->d, wrong);
  test_free(t, in), test_free(t, out);
}

/* Sparse products, by the figures of the PTX ISA: every selector, and every pair of places. Of each lane: A, B from 32 on, C from 96 on, and
 * metadata at 128. */
typedef struct Sparse { int k, bits; const char *d, *a, *b; } Sparse;

static void
sparse_case(Test *t, const Sparse *x, int selector)
{
  static const int pair[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  char ptx[8192], fa[256], fb[256], fc[256];
  int a[16][64] = {0}, b[64][8], held[16][32], wrong = 0, bytes = x->bits / 8, per = 32 / x->bits, lo = x->a[0] == 'u' ? 0 : -4;
  int na = 16 * x->k / 2 / 32 / per, nb = x->k * 8 / 32 / per;
  uint32_t meta[32];
  uint8_t *in = test_alloc(t, 32 * 256), *out = test_alloc(t, 32 * 64);
  memset(in, 0, 32 * 256);
  for (int i = 0; i < 32; i++)
    meta[i] = 0xffffffff;      /* of lanes that are not asked */
  for (int i = 0; i < 64 * 8; i++)
    b[i / 8][i % 8] = (i * 5 + i / 9) % 9 - (x->b[0] == 'u' ? 0 : 4);
  for (int row = 0; row < 16; row++)
    for (int g = 0; g < x->k / 4; g++) {
      const int *p = pair[(row * 7 + g * 5 + row / 3) % 6];
      int half = x->bits == 16 ? row / 8 : g / 4 % 2, lane = row % 8 * 4 + selector * x->k / 16 + (x->bits == 16 ? g / 4 : g / 8 * 2 + row / 8);
      for (int i = 0; i < 2; i++)
        held[row][2 * g + i] = a[row][4 * g + p[i]] = lo + (row * 7 + g * 3 + i) % (5 - lo);
      uint32_t shift = (uint32_t)(half * 16 + g % 4 * 4);
      meta[lane] = (meta[lane] & ~(15u << shift)) | (uint32_t)(p[0] | p[1] << 2) << shift;
    }
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < na * per; i++) {
      Place q = place_a(16, x->bits, lane, i);
      uint64_t v = encode(x->a, held[q.row][q.col]);
      memcpy(in + 256 * lane + i * bytes, &v, (size_t)bytes);
    }
    for (int i = 0; i < nb * per; i++) {
      Place q = place_b(x->bits, lane, i);
      uint64_t v = encode(x->b, b[q.row][q.col]);
      memcpy(in + 256 * lane + 32 + i * bytes, &v, (size_t)bytes);
    }
    memcpy(in + 256 * lane + 128, &meta[lane], 4);
  }
  size_t n = (size_t)snprintf(ptx, sizeof ptx, "%s .reg .b32 %%c<40>; mad.wide.u32 %%d5, %%r0, 256, %%d1; mad.wide.u32 %%d6, %%r0, 64, %%d2;\n", HEAD);
  for (int i = 0; i < na + nb + 5; i++)
    n += (size_t)snprintf(ptx + n, sizeof ptx - n, "ld.global.b32 %%c%d, [%%d5+%d];\n", i, i < na ? i * 4 : i < na + nb ? 32 + (i - na) * 4 : 96 +
                          (i == na + nb + 4 ? 32 : (i - na - nb) * 4));
  fragment_text(fa, sizeof fa, "%c", 0, na);
  fragment_text(fb, sizeof fb, "%c", na, nb);
  fragment_text(fc, sizeof fc, "%c", na + nb, 4);
  n += (size_t)snprintf(ptx + n, sizeof ptx - n, "mma.sp::ordered_metadata.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s %s, %s, %s, %s, %%c%d, %d;\n", x->k,
                        x->d, x->a, x->b, x->d, fc, fa, fb, fc, na + nb + 4, selector);
  for (int i = 0; i < 4; i++)
    n += (size_t)snprintf(ptx + n, sizeof ptx - n, "st.global.b32 [%%d6+%d], %%c%d;\n", i * 4, na + nb + i);
  snprintf(ptx + n, sizeof ptx - n, "%s", TAIL);
  Run r = {ptx, "k", {1}, {32}, 0, {&in, &out}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == 0, "mma.sp k%d %s: %s", x->k, x->a, r.err.message);
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) {
      int row = (lane >> 2) + (i < 2 ? 0 : 8), col = (lane & 3) * 2 + (i & 1), want = 0;
      for (int k = 0; k < x->k; k++)
        want += a[row][k] * b[k][col];
      wrong += decode(x->d, out + 64 * lane, i) != want;
    }
  CHECK(t, wrong == 0, "mma.sp k%d %s selector %d: %d wrong", x->k, x->a, selector, wrong);
  test_free(t, in), test_free(t, out);
}

static void
test_sparse(Test *t)
{
  static const Sparse list[] = {
    {16, 16, "f32", "f16", "f16"}, {32, 16, "f32", "f16", "f16"}, {32, 16, "f32", "bf16", "bf16"}, {32, 8, "s32", "s8", "u8"}, {64, 8, "s32", "u8", "s8"},
    {64, 8, "f32", "e4m3", "e5m2"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    for (int selector = 0; selector < 64 / list[i].k; selector++)
      sparse_case(t, &list[i], selector);
}

static void
test_mma(Test *t)
{
  static const Mma list[] = {
    {16, 8, 16, "f32", "f16", "f16"},    {16, 16, 16, "f32", "f16", "f16"},  {16, 16, 16, "f16", "f16", "f16"},
    {16, 8, 16, "f32", "bf16", "bf16"},  {16, 16, 16, "f32", "bf16", "bf16"}, {16, 4, 32, "f32", "tf32", "tf32"},
    {16, 8, 32, "f32", "tf32", "tf32"},  {16, 16, 8, "s32", "s8", "s8"},     {16, 32, 8, "s32", "u8", "s8"},
    {16, 32, 8, "s32", "s8", "u8"},      {16, 32, 8, "f32", "e4m3", "e4m3"}, {16, 32, 8, "f32", "e5m2", "e4m3"},
    {16, 16, 8, "f32", "e4m3", "e5m2"},  {8, 4, 64, "f64", "f64", "f64"},    {16, 4, 64, "f64", "f64", "f64"},
    {16, 8, 64, "f64", "f64", "f64"},    {16, 16, 64, "f64", "f64", "f64"},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    mma_case(t, &list[i]);
}

/* ---- asynchronous copies: three groups in flight, a short source filled with zeros ---- */

static void
test_groups(Test *t)
{
  uint32_t wrong = 0;
  Pair p = pair_new(t, 128 * 3);
  run_pair(t, "groups", HEAD
           "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r0, 64; selp.u32 %r5, 4, 0, %p1;\n"
           "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+512], [%d3+512], 4; cp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+1024], [%d3+1024], 4, %r5; cp.async.commit_group;\n"
           "cp.async.wait_group 2; ld.shared.u32 %r3, [%r1]; st.global.u32 [%d4], %r3;\n"
           "cp.async.wait_group 1; ld.shared.u32 %r3, [%r1+512]; st.global.u32 [%d4+512], %r3;\n"
           "cp.async.wait_all; bar.sync 0; xor.b32 %r1, %r1, 256; ld.shared.u32 %r3, [%r1+1024]; st.global.u32 [%d4+1024], %r3;\n"
           TAIL, 1, 128, p);
  for (int i = 0; i < 128; i++) {
    int j = i ^ 64;
    wrong += p.b[i] != p.a[i] || p.b[128 + i] != p.a[128 + i] || p.b[256 + i] != (j < 64 ? p.a[256 + j] : 0);
  }
  CHECK(t, wrong == 0, "groups: %u wrong", wrong);
  pair_free(t, p);
}

/* A parameter by value, read through a generic address, and dynamic shared memory behind the static. */
static void
test_params(Test *t)
{
  struct { uint32_t v[16]; } big;
  uint32_t *out = test_alloc(t, 256), wrong = 0;
  for (uint32_t i = 0; i < 16; i++)
    big.v[i] = i * i;
  Run r = {".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 64 .b8 dyn[];\n"
           ".shared .align 4 .b8 one[4]; .const .align 4 .b32 c[2] = {7, -1};\n"
           ".visible .entry k(.param .align 64 .b8 big[64], .param .u64 .ptr .global .align 16 out) .reqntid 16 {\n"
           ".reg .b32 %r<9>; .reg .b64 %d<9>; mov.b64 %d1, big; cvta.param.u64 %d1, %d1; mov.u32 %r1, %tid.x;\n"
           "mad.wide.u32 %d2, %r1, 4, %d1; ld.u32 %r2, [%d2]; ld.param.u64 %d3, [out]; mad.wide.u32 %d3, %r1, 4, %d3;\n"
           "mov.u32 %r3, dyn; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r2; st.shared.u32 [one], 5;\n"
           "bar.sync 0; xor.b32 %r4, %r4, 4; ld.shared.u32 %r2, [%r4]; add.u32 %r2, %r2, %r3; ld.const.u32 %r5, [c+4];\n"
           "add.u32 %r2, %r2, %r5; mov.u32 %r6, %dynamic_smem_size; add.u32 %r2, %r2, %r6; st.global.u32 [%d3], %r2; ret; }",
           "k", {1}, {16}, 64, {&big, &out}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == 0, "params: %s", r.err.message);
  for (uint32_t i = 0; i < 16; i++)
    wrong += out[i] != (i ^ 1) * (i ^ 1) + 64 - 1 + 64;
  CHECK(t, wrong == 0, "params: %u wrong", wrong);
  test_free(t, out);
}

void
test_warp(Test *t)
{
  for (int mode = 0; mode < 4; mode++)
    for (uint32_t width = 32; width >= 8; width /= 2) {
      shuffle_case(t, mode, 1, width);
      shuffle_case(t, mode, 5, width);
    }
  test_votes(t);
  test_majorities(t);
  test_halves(t);
  test_reconverge(t);
  test_barriers(t);
  test_named(t);
  test_atomics(t);
  test_ldmatrix(t, false, false);
  test_ldmatrix(t, true, false);
  test_ldmatrix(t, false, true);
  test_ldmatrix(t, true, true);
  test_mma(t);
  test_sparse(t);
  test_groups(t);
  test_params(t);
}
