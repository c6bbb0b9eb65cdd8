/* cluster_test.c - clusters of several blocks: their sizes and places, the barrier, and every misuse with its words. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

/* ---- sizes and places ---- */

enum { WORDS = 16 };

#define TOP ".version 8.6\n.target sm_90a\n.address_size 64\n"
/* Thread 0 of each block writes what it knows of its place. */
#define WHERE(i, what) "mov.u32 %r1, " what "; st.global.u32 [%d1+" #i "], %r1;\n"
static const char places[] =
  "(.param .u64 a) HEADER {\n.reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<3>;\n"
  "ld.param.u64 %d1, [a]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r2, %r3, %r4, %r2;\n"
  "mov.u32 %r3, %ctaid.z; mov.u32 %r5, %nctaid.y; mul.lo.u32 %r4, %r4, %r5; mad.lo.u32 %r2, %r3, %r4, %r2; mad.wide.u32 %d1, %r2, 64, %d1;\n"
  WHERE(0, "%cluster_ctaid.x") WHERE(4, "%cluster_ctaid.y") WHERE(8, "%cluster_ctaid.z") WHERE(12, "%cluster_ctarank")
  WHERE(16, "%cluster_nctaid.x") WHERE(20, "%cluster_nctaid.y") WHERE(24, "%cluster_nctaid.z") WHERE(28, "%cluster_nctarank")
  WHERE(32, "%clusterid.x") WHERE(36, "%clusterid.y") WHERE(40, "%clusterid.z")
  WHERE(44, "%nclusterid.x") WHERE(48, "%nclusterid.y") WHERE(52, "%nclusterid.z")
  "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d1+56], %r1; mov.u32 %r1, %nctaid.x; st.global.u32 [%d1+60], %r1; ret; }\n";

typedef struct Size {
  const char *header; uint32_t grid[3], given[3]; int large;
  uint32_t cluster[3], isexplicit; const char *error;      /* what it has to come to */
} Size;

static const Size sizes[] = {
  {"", {6, 2, 1}, {0}, 0, {1, 1, 1}, 0, NULL},
  {"", {6, 4, 2}, {3, 2, 1}, 0, {3, 2, 1}, 1, NULL},
  {"", {6, 4, 2}, {1, 2, 2}, 0, {1, 2, 2}, 1, NULL},
  {".reqnctapercluster 2", {6, 4, 1}, {0}, 0, {2, 1, 1}, 1, NULL},
  {".explicitcluster .reqnctapercluster 2, 2, 2", {6, 4, 2}, {0}, 0, {2, 2, 2}, 1, NULL},
  {".reqnctapercluster 2, 1, 1", {6, 4, 1}, {2, 1, 1}, 0, {2, 1, 1}, 1, NULL},
  {".maxclusterrank 4", {8, 1, 1}, {4, 1, 1}, 0, {4, 1, 1}, 1, NULL},
  {"", {16, 1, 1}, {16, 1, 1}, 1, {16, 1, 1}, 1, NULL},
  {".reqnctapercluster 16", {16, 1, 1}, {0}, 1, {16, 1, 1}, 1, NULL},
  {".blocksareclusters .reqntid 1 .reqnctapercluster 2, 2", {3, 2, 1}, {0}, 0, {2, 2, 1}, 1, NULL},
  {".reqnctapercluster 2", {6, 4, 1}, {4, 1, 1}, 0, {0}, 0, "kernel 'k' needs clusters of 2 x 1 x 1 blocks, not 4 x 1 x 1"},
  {".explicitcluster", {6, 4, 1}, {0}, 0, {0}, 0, "kernel 'k' has to be launched with a cluster size"},
  {".maxclusterrank 4", {8, 1, 1}, {8, 1, 1}, 0, {0}, 0, "kernel 'k' takes clusters of at most 4 blocks, not 8"},
  {"", {6, 4, 1}, {4, 1, 1}, 0, {0}, 0, "a grid of 6 x 4 x 1 blocks is no multiple of the cluster's 4 x 1 x 1"},
  {"", {8, 3, 1}, {1, 2, 1}, 0, {0}, 0, "a grid of 8 x 3 x 1 blocks is no multiple of the cluster's 1 x 2 x 1"},
  {"", {16, 1, 1}, {16, 1, 1}, 0, {0}, 0, "a cluster of 16 x 1 x 1 blocks: 1 to 8 are possible, and up to 16 where large ones are asked for"},
  {"", {32, 1, 1}, {32, 1, 1}, 1, {0}, 0, "a cluster of 32 x 1 x 1 blocks: 1 to 16 are possible"},
  {"", {8, 8, 1}, {8, 4, 1}, 1, {0}, 0, "a cluster of 8 x 4 x 1 blocks: 1 to 16"},
  {"", {8, 8, 1}, {2, 0, 1}, 0, {0}, 0, "a cluster of 2 x 0 x 1 blocks"},
  {".reqnctapercluster 17", {17, 1, 1}, {0}, 0, {0}, 0, "a cluster size is 1 to 16"},
};

static char *
with_header(const char *text, const char *header)
{
  const char *at = strstr(text, "HEADER");
  size_t n = strlen(text) + strlen(header) + 200;
  char *ptx = malloc(n);
  snprintf(ptx, n, TOP ".visible .entry k%.*s%s%s", (int)(at - text), text, header, at + 6);
  return ptx;
}

/* What block (x, y, z) of a grid has to have written. */
static uint32_t
wrong_places(const Size *s, const uint32_t grid[3], const uint32_t *got, uint32_t x, uint32_t y, uint32_t z)
{
  const uint32_t *c = s->cluster, px = x % c[0], py = y % c[1], pz = z % c[2];
  const uint32_t want[WORDS] = {px, py, pz, px + c[0] * (py + c[1] * pz), c[0], c[1], c[2], c[0] * c[1] * c[2], x / c[0], y / c[1], z / c[2],
                                grid[0] / c[0], grid[1] / c[1], grid[2] / c[2], s->isexplicit, grid[0]};
  return memcmp(got, want, sizeof want) != 0;
}

static void
size_case(Test *t, const Size *s)
{
  uint32_t grid[3], n = 1, wrong = 0;
  bool scaled = strstr(s->header, "blocksareclusters") != NULL;
  for (int i = 0; i < 3; i++) {
    grid[i] = s->grid[i] * (scaled ? s->cluster[i] : 1);
    n *= grid[i];
  }
  uint32_t *a = test_alloc(t, 4ull * WORDS * n);
  char *ptx = with_header(places, s->header);
  Run r = {ptx, "k", {s->grid[0], s->grid[1], s->grid[2]}, {1}, 0, {&a}, {0}, {0}, {s->given[0], s->given[1], s->given[2]}, s->large};
  memset(a, 0xff, 4ull * WORDS * n);
  int rc = test_run(t, &r);
  if (s->error)
    CHECK(t, rc == -1 && strstr(r.err.message, s->error), "'%s': \"%s\" has no \"%s\"", s->header, r.err.message, s->error);
  else if (CHECK(t, rc == 0 && r.stats.blocks == n, "'%s': %llu of %u blocks: %s", s->header, (unsigned long long)r.stats.blocks, n, r.err.message)) {
    for (uint32_t i = 0; i < n; i++)
      wrong += wrong_places(s, grid, a + WORDS * i, i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]);
    CHECK(t, wrong == 0, "'%s': %u of %u blocks are at another place", s->header, wrong, n);
  }
  test_free(t, a);
  free(ptx);
}

/* ---- kernels of two blocks ---- */

/* %r20: the rank; %p8: thread 0; %p7: block 0; %r21: the other block's rank. */
#define RANK "mov.u32 %r20, %cluster_ctarank; setp.eq.u32 %p7, %r20, 0; setp.eq.u32 %p8, %r0, 0; xor.b32 %r21, %r20, 1;\n"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

/* Two blocks of `threads`, in a cluster; a and b have 128 words and are zero. */
static int
run_pair(Test *t, const char *body, uint32_t threads, uint32_t *a, uint32_t *b, SimError *err)
{
  size_t size = strlen(HEAD) + strlen(body) + 400;
  char *ptx = malloc(size);
  memset(a, 0, 512), memset(b, 0, 512);
  snprintf(ptx, size, "%s%s%s%s%s", HEAD, RANK, body, THEN, TAIL);
  Run r = {ptx, "k", {2}, {threads}, 4096, {&a, &b}, {0}, {0}, {2, 1, 1}, 0};
  int rc = test_run(t, &r);
  *err = r.err;
  free(ptx);
  return rc;
}

static const Fault faults[] = {
  {"arrives at the cluster's barrier twice", SIM_E_BARRIER, 64, "barrier.cluster.arrive.aligned;" AT "barrier.cluster.arrive.aligned;", "have not waited since"},
  {"waits and has not arrived", SIM_E_BARRIER, 64, AT "barrier.cluster.wait.aligned;", "lanes 0xffffffff of warp 0 wait at the cluster's barrier"},
  {"a warp of another block that does not arrive", SIM_E_DEADLOCK, 64, "setp.gt.u32 %p1, %r0, 31; and.pred %p1, %p1, %p7; @!%p1 bra L;\n.loc 1 5 1\nbar.sync 1, 64; ret; L:"
   "barrier.cluster.arrive.aligned;" AT "barrier.cluster.wait.aligned;", "deadlock: no warp of the cluster can go on: warp 0 of program (0,0,0) at the cluster's barrier (k.tile:7)"
   " for warp 1 of program (0,0,0), warp 1 of program (0,0,0) at barrier 1 (k.tile:5); warp 0 of program (1,0,0) at the cluster's barrier (k.tile:7) for warp 1 of program (0,0,0) and 1 more like it"},
  {"an aligned arrival by a part of a warp", SIM_E_TRAP, 32, "setp.lt.u32 %p1, %r0, 16; @%p1 bra L;" AT "barrier.cluster.arrive.aligned; ret; L: barrier.cluster.arrive.aligned;",
   "an instruction for the whole warp is executed by lanes 0xffff0000 of warp 0 only"},
  {"an aligned wait by a part of a warp", SIM_E_TRAP, 32, "setp.lt.u32 %p1, %r0, 16; barrier.cluster.arrive; @%p1 bra L;" AT "barrier.cluster.wait.aligned; ret; L: barrier.cluster.wait.aligned;",
   "executed by lanes 0xffff0000 of warp 0 only"},
};

static void
fault_pair(Test *t, const Fault *f, uint32_t *a, uint32_t *b)
{
  SimError err;
  int rc = run_pair(t, f->body, f->threads, a, b, &err);
  CHECK(t, rc == -1 && err.kind == f->kind && err.line == 7, "%s: kind %d, line %u: %s", f->name, (int)err.kind, err.line, err.message);
  CHECK(t, strstr(err.message, f->text) != NULL, "%s: \"%s\" has no \"%s\"", f->name, err.message, f->text);
}

static const char *const legal[] = {
  MEET MEET,
  /* lanes that have ended need not arrive, nor warps, nor a whole block */
  "setp.lt.u32 %p1, %r0, 8; @%p1 ret; " MEET,
  "setp.lt.u32 %p1, %r0, 32; @%p1 ret; " MEET,
  "@%p7 ret; " MEET,
  /* arrivals and waits apart, with other barriers between, by parts of warps */
  "barrier.cluster.arrive.release.aligned; bar.sync 0; barrier.cluster.wait.acquire.aligned; barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
  "setp.lt.u32 %p1, %r0, 40; @%p1 bra L; barrier.cluster.arrive; barrier.cluster.wait; ret; L: barrier.cluster.arrive; barrier.cluster.wait;",
};

void
test_cluster(Test *t)
{
  SimOptions o;
  SimError err;
  sim_options_default(&o);
  o.max_instructions = 1000000;
  SimMachine *saved = test_machine(t, &o);
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    size_case(t, &sizes[i]);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    fault_pair(t, &faults[i], a, b);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    CHECK(t, run_pair(t, legal[i], 64, a, b, &err) == 0, "%s: %s", legal[i], err.message);
  test_free(t, a), test_free(t, b);
  test_machine_back(t, saved);
}
