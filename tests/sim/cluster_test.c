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

/* %r1: the thread's word behind the mbarriers; %r4, %d5: the same of the other block, in the window and as a generic address. */
#define WORD "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, 256; mapa.shared::cluster.u32 %r4, %r1, %r21;\n" \
  "cvt.u64.u32 %d6, %r1; cvta.shared.u64 %d6, %d6; mapa.u64 %d5, %d6, %r21;\n"

/* %r2: an mbarrier of the block for n arrivals, %r6: that of the other block, which both may use. */
#define SHOWN "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
#define INIT(n) "@%p8 mbarrier.init.shared::cta.b64 [%r2], " #n "; @%p8 fence.mbarrier_init.release.cluster; mapa.shared::cluster.u32 %r6, %r2, %r21;\n"
#define READY(n) WORD INIT(n) SHOWN
#define WAIT(label, parity) label ": mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r2], " parity "; @!%p6 bra " label ";\n"
#define EXPECT(n) "@%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " #n ";\n"
#define REMOTE "mbarrier.arrive.shared::cluster.b64 _, [%r6];"
#define ST_ASYNC "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %r0, [%r6];"
/* 256 bytes of a to both blocks' sh + 1024; from the block's sh + 256 to the other's sh + 512. */
#define MULTICAST "@%p8 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r9], [%d1], 256, [%r2], %h1;\n"
#define BOTH "add.u32 %r9, %r2, 1024; mov.u16 %h1, 3; add.u32 %r10, %r1, 768;\n"
#define PUSH "@%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r12], 256, [%r6];\n"
#define PLACES "add.u32 %r12, %r2, 256; add.u32 %r11, %r2, 512; mapa.shared::cluster.u32 %r11, %r11, %r21;\n"

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
  {"another block's word without a barrier", SIM_E_RACE, 64, WORD "@!%p7 bra M;\n.loc 1 5 1\nst.shared.u32 [%r1], %r0; " MEET "ret; M:"
   AT "st.shared::cluster.u32 [%r4], 1; " MEET, "race: thread (0,0,0) of program (1,0,0) writes 4 bytes at shared+0x100 of program (0,0,0), which thread (0,0,0) of program (0,0,0) wrote at k.tile:5,"
   " and nothing orders the two programs"},
  {"written before a relaxed arrival", SIM_E_RACE, 64, WORD "\n.loc 1 5 1\nst.shared.u32 [%r1], %r0; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
   AT "ld.shared::cluster.u32 %r5, [%r4];", "reads 4 bytes at shared+0x180 of program (0,0,0), which thread (32,0,0) of program (0,0,0) wrote at k.tile:5"},
  {"a fence that does not reach the other block", SIM_E_RACE, 64, WORD "st.shared.u32 [%r1], %r0; fence.acq_rel.cta; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
   AT "ld.shared::cluster.u32 %r5, [%r4];", "nothing orders the two programs"},
  {"read by a generic address behind the block's barrier only", SIM_E_RACE, 64, WORD "@!%p7 bra L; st.shared.u32 [%r1], %r0; bar.sync 0; ret; L: bar.sync 0;" AT "ld.u32 %r5, [%d5];",
   "of program (0,0,0) wrote"},
  {"overwritten while the other block reads", SIM_E_RACE, 64, WORD "st.shared.u32 [%r1], %r0; " MEET "@%p7 bra L; bar.sync 0;" AT
   "st.shared.u32 [%r1], 7; ret; L:\n.loc 1 5 1\nld.shared::cluster.u32 %r5, [%r4];",
   "race: thread (0,0,0) of program (1,0,0) writes 4 bytes at shared+0x100, which thread (0,0,0) of program (0,0,0) read at k.tile:5"},
  {"a strong store of too narrow a scope", SIM_E_RACE, 32, WORD "@%p8 st.shared.u32 [%r2], 0; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; @%p7 bra L;" AT
   "@%p8 st.relaxed.cta.shared::cluster.u32 [%r6], 1; ret; L: @%p8 st.relaxed.cluster.shared::cta.u32 [%r2], 1;", "race"},
  {"a flag without acquire", SIM_E_RACE, 32, WORD "@%p8 st.shared.u32 [%r2], 0; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; @%p7 bra L;"
   "@%p8 st.shared::cluster.u32 [%r4], 5; @%p8 st.release.cluster.shared::cluster.u32 [%r6], 1; bra E;"
   "L: @!%p8 bra E; G: ld.relaxed.cluster.shared::cta.u32 %r5, [%r2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra G;" AT "ld.shared.u32 %r5, [%r1]; E:", "race"},
  {"never written by the block that it belongs to", SIM_E_UNINIT, 32, WORD AT "ld.shared::cluster.u32 %r5, [%r4];", "reads 4 bytes at shared+0x100 of program (1,0,0)"},
  {"outside of the other block's memory", SIM_E_BOUNDS, 32, WORD AT "ld.shared::cluster.u32 %r5, [%r4+262144];", "at shared+0x40100 of program (1,0,0), outside the 8192 bytes"},
  {"a rank that there is not", SIM_E_BOUNDS, 32, WORD "mapa.shared::cluster.u32 %r4, %r1, 2;" AT "st.shared::cluster.u32 [%r4], %r0;",
   "at shared+0x100 of block 2 of a cluster of 2: the cluster has no such block"},
  {"a rank far outside", SIM_E_BOUNDS, 32, WORD "mapa.shared::cluster.u32 %r4, %r1, -1;" AT "st.shared::cluster.u32 [%r4], %r0;", "the cluster has no such block"},
  {"another block's address without .shared::cluster", SIM_E_BOUNDS, 32, WORD AT "st.shared::cta.u32 [%r4], %r0;", "an instruction without .shared::cluster reaches the block's own"},
  {"memory of a block that has ended", SIM_E_BOUNDS, 32, WORD MEET "@!%p7 ret; barrier.cluster.arrive; barrier.cluster.wait;" AT "st.shared::cluster.u32 [%r4], %r0;",
   "thread (0,0,0) writes 4 bytes at shared+0x100 of program (1,0,0): that block has ended"},
  {"a block that may end while another reads", SIM_E_BARRIER, 32, WORD "st.shared.u32 [%r1], %r0; " MEET AT "@!%p7 ld.shared::cluster.u32 %r5, [%r4];",
   "thread (31,0,0) of program (1,0,0) uses shared memory of program (0,0,0), which may have ended by then: no barrier of the cluster comes behind"},
  {"a block that may end while another reads behind its arrival", SIM_E_BARRIER, 32, WORD "st.shared.u32 [%r1], %r0; " MEET "barrier.cluster.arrive.aligned;" AT
   "@!%p7 ld.shared::cluster.u32 %r5, [%r4];" THEN "barrier.cluster.wait.aligned;", "which may have ended by then"},
  {"misaligned", SIM_E_ALIGN, 32, WORD AT "st.shared::cluster.u32 [%r4+2], %r0;", "at shared+0x102 of program (1,0,0): the address"},
  {"an atomic on another block's memory that is written plainly", SIM_E_RACE, 32, WORD "st.shared.u32 [%r1], 0; " MEET "@%p7 bra L;" AT
   "atom.shared::cluster.add.u32 %r5, [%r4], 1; ret; L: st.shared.u32 [%r1], 2;", "race"},
  {"mapa of what is not shared", SIM_E_BOUNDS, 32, AT "mapa.u64 %d5, %d1, 0;", "mapa of the address"},
  {"getctarank of what is not shared", SIM_E_BOUNDS, 32, AT "getctarank.u64 %r5, %d1;", "getctarank of the address"},
  /* mbarriers of the other block */
  {"an mbarrier that no fence has shown", SIM_E_BARRIER, 32, WORD "\n.loc 1 5 1\n@%p8 mbarrier.init.shared::cta.b64 [%r2], 1; mapa.shared::cluster.u32 %r6, %r2, %r21;" SHOWN AT "@%p8 " REMOTE,
   "uses the mbarrier at shared+0x0, which was initialised at k.tile:5, and there is no barrier of the cluster, or no fence.mbarrier_init before a relaxed one, between (an mbarrier of program ("},
  {"an mbarrier that the fence comes too late for", SIM_E_BARRIER, 32, WORD "fence.mbarrier_init.release.cluster; @%p8 mbarrier.init.shared::cta.b64 [%r2], 1; mapa.shared::cluster.u32 %r6, %r2, %r21;" SHOWN
   AT "@%p8 " REMOTE, "no fence.mbarrier_init before a relaxed one"},
  {"an mbarrier of a block that has not come to it", SIM_E_BARRIER, 32, WORD INIT(1) "bar.sync 0;" AT "@%p8 " REMOTE MEET, "nobody has initialised (an mbarrier of program (1,0,0))"},
  {"copies to an mbarrier that no fence has shown", SIM_E_BARRIER, 32, WORD BOTH "\n.loc 1 5 1\n@%p8 mbarrier.init.shared::cta.b64 [%r2], 1; bar.sync 0; " EXPECT(256) AT
   "@%p8 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%d1], 256, [%r2];", "which was initialised at k.tile:5, and there is no fence.mbarrier_init behind that"},
  {"an arrival by a generic address", SIM_E_BOUNDS, 32, READY(1) "mapa.u64 %d7, %d6, %r21; add.u64 %d7, %d7, -256;" AT "@%p8 mbarrier.arrive.b64 _, [%d7];", "without .shared::cluster reaches"},
  {"a wait at another block's mbarrier", SIM_E_BARRIER, 1, READY(1) "mapa.u64 %d7, %d6, %r21; add.u64 %d7, %d7, -256;" AT "mbarrier.test_wait.parity.b64 %p1, [%d7], 0;",
   "uses another block's mbarrier for more than arrivals and bytes"},
  {"more arrivals than another block's mbarrier takes", SIM_E_BARRIER, 32, READY(1) EXPECT(16) AT "@%p8 mbarrier.arrive.shared::cluster.b64 _, [%r6], 2;" MEET,
   "thread (0,0,0) of program (1,0,0) arrives at the mbarrier at shared+0x0, 2 times where 1 of 1 arrivals are missing in phase 0 (an mbarrier of program (0,0,0))"},
  {"an mbarrier of a block that has ended", SIM_E_BOUNDS, 32, READY(1) "@!%p7 ret; barrier.cluster.arrive; barrier.cluster.wait;" AT "@%p8 " REMOTE, "that block has ended"},
  {"an mbarrier of a block that may have ended", SIM_E_BARRIER, 32, READY(1) "@!%p7 bra E; bar.sync 0; ret; E:" AT "@%p8 " REMOTE, "may have ended by then"},
  {"data handed over by a relaxed arrival", SIM_E_RACE, 32, READY(32) "@%p7 bra L;\n.loc 1 5 1\nst.shared::cluster.u32 [%r4], 1; mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r6]; " MEET "ret; L:" WAIT("W", "0")
   AT "ld.shared.u32 %r5, [%r1]; " MEET, "wrote at k.tile:5"},
  {"an arrival that is missing from the other block", SIM_E_DEADLOCK, 32, READY(2) "@%p8 mbarrier.arrive.shared::cta.b64 _, [%r2];" AT WAIT("W", "0"),
   "deadlock: no warp of the cluster can go on: warp 0 of program (0,0,0) at mbarrier shared+0x0 (k.tile:7) for the end of phase 0: 1 of 2 arrivals are missing"},
  /* stores and reductions that end at an mbarrier */
  {"st.async, read before the wait", SIM_E_ASYNC, 32, READY(1) EXPECT(128) "@%p7 bra L;\n.loc 1 5 1\n" ST_ASYNC WAIT("V", "0") MEET "ret; L:" ST_ASYNC "bar.sync 0; nanosleep.u32 1; barrier.cluster.arrive.aligned;" AT
   "ld.shared.u32 %r5, [%r1];", "reads 4 bytes at shared+0x100"},
  {"st.async over what the other block reads", SIM_E_RACE, 32, READY(1) EXPECT(128) "st.shared.u32 [%r1], 1; " MEET "@%p7 bra L;" AT ST_ASYNC WAIT("V", "0") MEET "ret; L: ld.shared.u32 %r5, [%r1]; " ST_ASYNC WAIT("X", "0") MEET,
   "which thread (0,0,0) of program (0,0,0) read"},
  {"st.async and an mbarrier elsewhere", SIM_E_TRAP, 32, READY(1) AT "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4], %r0, [%r2];", "names an mbarrier of another"},
  {"st.async that nobody waits for", SIM_E_ASYNC, 32, READY(1) "@%p7 bra L;" AT ST_ASYNC "L:" MEET, "program (0,0,0) ends, and the copies issued here, which arrive at its mbarrier at shared+0x0"},
  {"two plain asynchronous stores to a word", SIM_E_ASYNC, 32, READY(1) "mapa.shared::cluster.u32 %r4, %r2, %r21;" AT
   "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4+256], %r0, [%r6];", "an asynchronous operation issued at k.tile:7"},
  {"red.async of a word that is read meanwhile", SIM_E_ASYNC, 32, READY(1) "st.shared.u32 [%r1], 1; " MEET
   "@%p7 bra L;\n.loc 1 5 1\nred.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], 1, [%r6]; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; L: "
   "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" AT "ld.shared.u32 %r5, [%r1];", "an asynchronous operation issued at k.tile:5 writes"},
  /* copies between blocks, and to all of them */
  {"a source that is overwritten before the other block has it", SIM_E_ASYNC, 32, READY(1) PLACES EXPECT(256) "add.u32 %r13, %r1, 128; st.shared.u32 [%r1], %r0; st.shared.u32 [%r13], %r0; fence.proxy.async;"
   "bar.sync 0; " PUSH WAIT("W", "0") AT "st.shared.u32 [%r1], 1; " MEET, "an asynchronous operation issued at"},
  {"a source that is overwritten behind a barrier of the block", SIM_E_ASYNC, 32, READY(1) PLACES "@!%p7 bra L; add.u32 %r13, %r1, 128; st.shared.u32 [%r1], %r0;"
   "st.shared.u32 [%r13], %r0; fence.proxy.async; bar.sync 0; " PUSH "bar.sync 0;" AT "st.shared.u32 [%r1], 1;" THEN MEET "ret; L: " EXPECT(256) WAIT("W", "0") MEET, "an asynchronous operation issued at"},
  {"a copy to another block without a fence", SIM_E_ASYNC, 32, READY(1) PLACES EXPECT(256) "add.u32 %r13, %r1, 128;\n.loc 1 5 1\nst.shared.u32 [%r1], %r0; st.shared.u32 [%r13], %r0;" AT "bar.sync 0; " PUSH,
   "which was written at k.tile:5, and its writer has executed no fence.proxy.async between"},
  {"written by the other block without a fence", SIM_E_ASYNC, 32, READY(1) PLACES EXPECT(256) "add.u32 %r13, %r4, 128;\n.loc 1 5 1\nst.shared::cluster.u32 [%r4], %r0; st.shared::cluster.u32 [%r13], %r0; " MEET "fence.proxy.async; bar.sync 0;"
   AT PUSH, "which was written at k.tile:5, and its writer has executed no fence.proxy.async between"},
  {"a copy to one block that ends at another", SIM_E_TRAP, 32, READY(1) PLACES AT "@%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r12], 256, [%r2];",
   "issues a copy to shared memory of program (0,0,0), which ends at an mbarrier of program (1,0,0)"},
  {"a multicast to nobody", SIM_E_TRAP, 32, READY(1) BOTH "mov.u16 %h1, 0;" AT MULTICAST, "a multicast to the blocks 0x0 of a cluster of 2"},
  {"a multicast to blocks that there are not", SIM_E_TRAP, 32, READY(1) BOTH "mov.u16 %h1, 5;" AT MULTICAST, "a multicast to the blocks 0x5 of a cluster of 2"},
  {"a multicast into a buffer that the other block still reads", SIM_E_RACE, 64, READY(1) BOTH EXPECT(256) "st.shared.u32 [%r10], 1; fence.proxy.async; " MEET "@%p7 bra L; ld.shared.u32 %r5, [%r10]; bar.sync 0;" WAIT("W", "0") MEET "ret;"
   "L:" AT "mov.u32 %r13, 0; T: add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, 30000; @%p1 bra T; " MULTICAST WAIT("V", "0") MEET, "writes 256 bytes at shared+0x400 of program (1,0,0), which thread"},
  {"a multicast that the other block does not wait for", SIM_E_ASYNC, 64, READY(1) BOTH EXPECT(256) "@!%p7 bra L;" AT MULTICAST WAIT("V", "0") "L: barrier.cluster.arrive; barrier.cluster.wait;",
   "program (1,0,0) ends, and the copies issued here, which arrive at its mbarrier"},
  {"a multicast that the other block has not announced", SIM_E_DEADLOCK, 64, READY(1) BOTH "@!%p7 bra L; " EXPECT(256) MULTICAST "L:" AT WAIT("V", "0"),
   "1 of 1 arrivals and -256 bytes are missing"},
  {"a multicast before the other block has its mbarrier", SIM_E_BARRIER, 64, WORD BOTH INIT(1) "bar.sync 0; " EXPECT(256) AT MULTICAST MEET,
   "and there is no barrier of the cluster, or no fence.mbarrier_init before a relaxed one, between (an mbarrier of program (1,0,0))"},
};

static void
fault_pair(Test *t, const Fault *f, uint32_t *a, uint32_t *b)
{
  SimError err;
  int rc = run_pair(t, f->body, f->threads, a, b, &err);
  CHECK(t, rc == -1 && err.kind == f->kind && err.line == 7, "%s: kind %d, line %u: %s", f->name, (int)err.kind, err.line, err.message);
  CHECK(t, strstr(err.message, f->text) != NULL, "%s: \"%s\" has no \"%s\"", f->name, err.message, f->text);
  CHECK(t, err.kind != SIM_E_DEADLOCK || strstr(err.trace, "\n  program (1,0,0): warp "), "%s: not all that waits is named:%s", f->name, err.trace);
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
  /* words handed over and back, by each kind of address */
  WORD "st.shared.u32 [%r1], %r0; " MEET "ld.shared::cluster.u32 %r5, [%r4]; ld.u32 %r6, [%d5]; " MEET "st.shared.u32 [%r1], 7; " MEET "st.u32 [%d5], 5; " MEET "ld.shared.u32 %r5, [%r1];",
  /* the cluster's barrier orders what another warp of the block did, and what a block before in the chain knows */
  WORD "xor.b32 %r6, %r1, 128; xor.b32 %r7, %r4, 128; st.shared.u32 [%r1], %r0; bar.sync 0; " MEET "ld.shared::cluster.u32 %r5, [%r7]; " MEET "st.shared.u32 [%r6], 1;",
  /* a fence makes a relaxed arrival tell */
  WORD "st.shared.u32 [%r1], %r0; fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; ld.shared::cluster.u32 %r5, [%r4];" MEET,
  /* flags: release and acquire at the cluster's scope, and fences with relaxed accesses; atomics of all blocks on one word */
  WORD "@%p8 st.shared.u32 [%r2], 0; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; @%p7 bra L;"
  "@%p8 st.shared::cluster.u32 [%r4], 5; @%p8 st.release.cluster.shared::cluster.u32 [%r6], 1; bra E;"
  "L: @!%p8 bra E; G: ld.acquire.cluster.shared::cta.u32 %r5, [%r2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra G; ld.shared.u32 %r5, [%r1]; E: " MEET,
  WORD "@%p8 st.shared.u32 [%r2], 0; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; @%p7 bra L;"
  "@!%p8 bra E; st.shared::cluster.u32 [%r4], 5; fence.acq_rel.cluster; st.relaxed.cluster.shared::cluster.u32 [%r6], 1; bra E;"
  "L: @!%p8 bra E; G: ld.relaxed.cluster.shared::cta.u32 %r5, [%r2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra G; fence.acq_rel.cluster; ld.shared.u32 %r5, [%r1]; E: " MEET,
  WORD "@%p8 st.shared.u32 [%r2], 0; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; atom.shared::cluster.add.u32 %r5, [%r6], 1; red.relaxed.cluster.shared::cluster.add.u32 [%r6], 1; " MEET,
  /* a block that has ended when others know that nobody needs it: by the barrier, relaxed too, used between an arrival and the wait, and by a flag */
  WORD "st.shared.u32 [%r1], 1; " MEET "ld.shared::cluster.u32 %r5, [%r4]; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
  WORD "st.shared.u32 [%r1], 1; " MEET "barrier.cluster.arrive.aligned; ld.shared::cluster.u32 %r5, [%r4]; barrier.cluster.wait.aligned; " MEET,
  WORD "@%p8 st.shared.u32 [%r2], 0; st.shared.u32 [%r1], 1; " MEET "mapa.shared::cluster.u32 %r6, %r2, 0; @%p7 bra L; ld.shared::cluster.u32 %r5, [%r4]; bar.sync 0;"
  "@%p8 st.release.cluster.shared::cluster.u32 [%r6], 1; barrier.cluster.arrive; barrier.cluster.wait; ret;"
  "L: @!%p8 bra E; G: ld.acquire.cluster.shared::cta.u32 %r5, [%r2]; setp.eq.u32 %p1, %r5, 0; @%p1 bra G; E: barrier.cluster.arrive; barrier.cluster.wait;",
  /* mbarriers of other blocks: shown by a fence, or by a barrier that is not relaxed; arrivals with data, of either scope; bytes announced there */
  READY(64) "@%p7 bra L; st.shared::cluster.u32 [%r4], 1; " REMOTE MEET "ret; L:" "setp.lt.u32 %p1, %r0, 32; @!%p1 bra M; " WAIT("W", "0") "ld.shared.u32 %r5, [%r1]; M: " MEET,
  WORD "@%p8 mbarrier.init.shared::cta.b64 [%r2], 64; mapa.shared::cluster.u32 %r6, %r2, %r21; " MEET "st.shared::cluster.u32 [%r4], 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6]; " WAIT("W", "0")
  "ld.shared.u32 %r5, [%r1]; " MEET,
  READY(64) "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r6], 4; " ST_ASYNC WAIT("W", "0") "ld.shared.u32 %r5, [%r1]; " MEET,
  READY(1) "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r6], 4; mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r6], 4; " MEET,
  /* what another block was told, it tells on; what it did comes back */
  READY(64) "st.shared.u32 [%r1], 1; bar.sync 0; " REMOTE WAIT("W", "0") "xor.b32 %r13, %r4, 128; ld.shared::cluster.u32 %r5, [%r13]; bar.sync 0; " REMOTE WAIT("V", "1") "st.shared.u32 [%r1], 2; " MEET,
  /* the source of a copy used again when the other block says that it has it */
  READY(1) PLACES "mov.u32 %r14, 0; L: " EXPECT(256) "st.shared.u32 [%r1], %r0; fence.proxy.async; bar.sync 0; " PUSH "and.b32 %r15, %r14, 1; " WAIT("W", "%r15") MEET "add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 4; @%p1 bra L;",
  /* neither store nor reduction needs a fence between proxies; who has waited for one may end */
  READY(1) EXPECT(256) "st.shared.u32 [%r1], 1; " MEET ST_ASYNC WAIT("W", "0") "ld.shared.u32 %r5, [%r1]; " MEET,
  READY(1) "@%p7 bra L; " ST_ASYNC "ret; L:" EXPECT(256) WAIT("W", "0") "ld.shared.u32 %r5, [%r1];",
  READY(1) BOTH EXPECT(256) "@%p7 bra L;" WAIT("W", "0") "ret; L: " MULTICAST WAIT("V", "0"),
  /* mapa of the block's own rank is its own address, for instructions of the block's own memory, too */
  WORD "mapa.shared::cluster.u32 %r5, %r1, %r20; st.shared.u32 [%r5], %r0; mapa.u64 %d7, %d6, %r20; ld.u32 %r6, [%d7]; mapa.shared::cluster.u64 %d8, sh, %r20;",
};

/* Every thread reads a word of each block, sums them, and says of addresses whose they are. */
static const char sums[] = HEAD
  "mov.u32 %r20, %cluster_ctarank; mov.u32 %r21, %cluster_nctarank; shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2;\n"
  "mad.lo.u32 %r3, %r20, 1000, %r0; st.shared.u32 [%r1], %r3; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r9, 0;\n"
  "L: mapa.shared::cluster.u32 %r6, %r1, %r4; ld.shared::cluster.u32 %r7, [%r6]; add.u32 %r5, %r5, %r7; getctarank.shared::cluster.u32 %r8, %r6; setp.ne.u32 %p1, %r8, %r4;\n"
  "@%p1 add.u32 %r9, %r9, 1; cvt.u64.u32 %d5, %r6; cvta.shared::cluster.u64 %d5, %d5; isspacep.shared::cta %p2, %d5; setp.eq.u32 %p3, %r4, %r20; xor.pred %p4, %p2, %p3;\n"
  "@%p4 add.u32 %r9, %r9, 1; isspacep.shared::cluster %p5, %d5; @!%p5 add.u32 %r9, %r9, 1; getctarank.u64 %r8, %d5; setp.ne.u32 %p1, %r8, %r4; @%p1 add.u32 %r9, %r9, 1;\n"
  "cvta.to.shared::cluster.u64 %d6, %d5; ld.shared::cluster.u32 %r10, [%d6]; setp.ne.u32 %p1, %r10, %r7; @%p1 add.u32 %r9, %r9, 1;\n"
  "add.u32 %r4, %r4, 1; setp.lt.u32 %p6, %r4, %r21; @%p6 bra L; mov.u32 %r11, %ctaid.x; shl.b32 %r11, %r11, 8; cvt.u64.u32 %d7, %r11; add.u64 %d8, %d3, %d7;\n"
  "add.u64 %d9, %d4, %d7; st.global.u32 [%d8], %r5; st.global.u32 [%d9], %r9; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" TAIL;

/* A ring of two buffers that each block fills one half of for both: readers of both blocks arrive at the empty barriers of both. Block r's
 * thread i sums word i + r of what comes. */
static const char ring[] = HEAD RANK
  "mov.u32 %r2, sh; @!%p8 bra I; mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1; mbarrier.init.shared::cta.b64 [%r2+16], 4;\n"
  "mbarrier.init.shared::cta.b64 [%r2+24], 4; fence.mbarrier_init.release.cluster; I: " SHOWN
  "mov.u32 %r3, 0; mov.u32 %r9, 0; mov.u16 %h1, 3; setp.lt.u32 %p1, %r0, 32; and.b32 %r16, %r0, 31; setp.lt.u32 %p5, %r16, 2; mapa.shared::cluster.u32 %r15, %r2, %r16;\n"
  "mul.lo.u32 %r19, %r20, 192; mul.wide.u32 %d6, %r20, 192;\n"
  "LOOP: and.b32 %r5, %r3, 1; shr.u32 %r6, %r3, 1; and.b32 %r6, %r6, 1; shl.b32 %r7, %r5, 3; add.u32 %r7, %r7, %r2; shl.b32 %r8, %r5, 10; add.u32 %r8, %r8, %r2; add.u32 %r8, %r8, 1024;\n"
  "@!%p1 bra TAKE; @!%p8 bra NEXT; xor.b32 %r10, %r6, 1;\n"
  "P: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r7+16], %r10; @!%p4 bra P;\n"
  "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], 384; mul.wide.u32 %d5, %r3, 16; add.u64 %d5, %d5, %d1; add.u64 %d5, %d5, %d6; add.u32 %r11, %r8, %r19;\n"
  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r11], [%d5], 192, [%r7], %h1; bra NEXT;\n"
  "TAKE: C: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r7], %r6; @!%p4 bra C; add.u32 %r11, %r0, -32; add.u32 %r11, %r11, %r20; shl.b32 %r11, %r11, 2; add.u32 %r11, %r11, %r8;\n"
  "ld.shared.u32 %r12, [%r11]; add.u32 %r9, %r9, %r12; fence.proxy.async.shared::cta; bar.warp.sync -1; shl.b32 %r17, %r5, 3; add.u32 %r17, %r17, %r15; @%p5 mbarrier.arrive.shared::cluster.b64 _, [%r17+16];\n"
  "NEXT: bar.warp.sync -1; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 9; @%p2 bra LOOP; mad.lo.u32 %r18, %r20, 128, %r0; mad.wide.u32 %d5, %r18, 4, %d2; @!%p1 st.global.u32 [%d5], %r9;\n"
  "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n" TAIL;

static void
ring_case(Test *t)
{
  uint32_t *a = test_alloc(t, 1024), *b = test_alloc(t, 1024), wrong = 0;
  for (uint32_t i = 0; i < 256; i++)
    a[i] = i * i;
  Run r = {ring, "k", {2}, {96}, 0, {&a, &b}, {0}, {0}, {2, 1, 1}, 0};
  CHECK(t, test_run(t, &r) == 0, "ring: %s", r.err.message);
  for (uint32_t x = 0; x < 64; x++)
    for (uint32_t rank = 0; rank < 2; rank++) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < 9; i++)
        sum += a[4 * i + x + rank];
      wrong += b[128 * rank + 32 + x] != sum;
    }
  CHECK(t, wrong == 0, "ring: %u sums are wrong", wrong);
  test_free(t, a), test_free(t, b);
}

/* What comes to the other block's words by stores, reductions and copies. */
static void
values_case(Test *t, const char *what, uint32_t bytes, const char *body, const uint32_t want[4])
{
  char ptx[4096], text[1600];
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 1024), wrong = 0;
  memset(a, 0, 512);
  snprintf(text, sizeof text, "@%%p8 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r2], %u; %s", bytes, body);
  snprintf(ptx, sizeof ptx, "%s%s%s%s%s%s", HEAD, RANK, READY(1) "st.shared.u32 [%r1], 12; fence.proxy.async; " MEET, text, WAIT("W", "0")
           "ld.shared.u32 %r5, [%r1]; mad.lo.u32 %r6, %r20, 128, %r0; mad.wide.u32 %d5, %r6, 4, %d2; st.global.u32 [%d5], %r5; " MEET, TAIL);
  Run r = {ptx, "k", {2}, {64}, 0, {&a, &b}, {0}, {0}, {2, 1, 1}, 0};
  if (CHECK(t, test_run(t, &r) == 0, "%s: %s", what, r.err.message))
    for (uint32_t i = 0; i < 64; i++)
      wrong += b[i] != want[i % 4] || b[128 + i] != want[i % 4];
  CHECK(t, wrong == 0, "%s: %u words are wrong, %u %u %u %u", what, wrong, b[0], b[1], b[2], b[3]);
  test_free(t, a), test_free(t, b);
}

static void
values(Test *t)
{
#define RED(op) "and.b32 %r3, %r0, 3; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." op " [%r4], %r3, [%r6];"
#define TWICE(op) RED(op) RED(op)
  values_case(t, "st.async", 256, "and.b32 %r3, %r0, 3; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r3, [%r6];", (uint32_t[]){0, 1, 2, 3});
  values_case(t, "st.async.v4", 256, "and.b32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 0; mov.u32 %r7, 5; @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r4], {%r3, %r7, %r7, 9}, [%r6];",
              (uint32_t[]){0, 5, 5, 9});
  values_case(t, "st.async.v2.b64", 256, "and.b32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 0; mov.u64 %d7, 8589934593; @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r4], {%d7, %d7}, [%r6];",
              (uint32_t[]){1, 2, 1, 2});
  values_case(t, "red.async.add", 512, TWICE("add.u32"), (uint32_t[]){12, 14, 16, 18});
  values_case(t, "red.async.add.u64", 256, "and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; mov.u64 %d7, 8589934593; @%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%r4], %d7, [%r6];",
              (uint32_t[]){13, 14, 13, 14});
  values_case(t, "red.async.min", 256, RED("min.u32"), (uint32_t[]){0, 1, 2, 3});
  values_case(t, "red.async.max", 256, RED("max.s32"), (uint32_t[]){12, 12, 12, 12});
  values_case(t, "red.async.inc", 512, TWICE("inc.u32"), (uint32_t[]){0, 1, 1, 1});
  values_case(t, "red.async.dec", 256, RED("dec.u32"), (uint32_t[]){0, 1, 2, 3});
  values_case(t, "red.async.and", 256, RED("and.b32"), (uint32_t[]){0, 0, 0, 0});
  values_case(t, "red.async.or", 256, RED("or.b32"), (uint32_t[]){12, 13, 14, 15});
  values_case(t, "red.async.xor", 512, TWICE("xor.b32"), (uint32_t[]){12, 12, 12, 12});
  values_case(t, "cp.async.bulk of global memory", 256, "@%p8 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 256, [%r6];", (uint32_t[]){0, 0, 0, 0});
  values_case(t, "cp.async.bulk", 256, "add.u32 %r7, %r1, 1024; and.b32 %r3, %r0, 3; st.shared.u32 [%r7], %r3; fence.proxy.async; bar.sync 0; mapa.shared::cluster.u32 %r7, %r2, %r21; add.u32 %r7, %r7, 256;"
              "add.u32 %r8, %r2, 1280; @%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r8], 256, [%r6];", (uint32_t[]){0, 1, 2, 3});
}

/* Two clusters of two blocks: whose atomics of the cluster's scope meet. */
static void
scope_case(Test *t, const char *word, bool fault)
{
  uint32_t *a = test_alloc(t, 512);
  char ptx[2048];
  memset(a, 0, 512);
  snprintf(ptx, sizeof ptx, "%smov.u32 %%r1, %%clusterid.x; mul.wide.u32 %%d5, %%r1, %s; add.u64 %%d5, %%d5, %%d1;" AT "red.relaxed.cluster.global.add.u32 [%%d5], 1;\n%s", HEAD, word, TAIL);
  Run r = {ptx, "k", {4}, {1}, 0, {&a, &a}, {0}, {0}, {2, 1, 1}, 0};
  int rc = test_run(t, &r);
  CHECK(t, fault ? rc == -1 && r.err.kind == SIM_E_RACE && strstr(r.err.message, "nothing orders the two programs") : rc == 0 && a[0] == 2 && a[1] == 2,
        "atomics of cluster scope on words %s bytes apart: %s", word, r.err.message);
  test_free(t, a);
}

static void
sums_case(Test *t, uint32_t blocks, uint32_t cluster)
{
  uint32_t *a = test_alloc(t, 256ull * blocks), *b = test_alloc(t, 256ull * blocks), wrong = 0;
  Run r = {sums, "k", {blocks}, {64}, 0, {&a, &b}, {0}, {0}, {cluster, 1, 1}, cluster > 8};
  if (CHECK(t, test_run(t, &r) == 0, "sums of clusters of %u: %s", cluster, r.err.message))
    for (uint32_t i = 0; i < 64 * blocks; i++)
      wrong += a[i] != 1000 * cluster * (cluster - 1) / 2 + cluster * (i % 64) || b[i] != 0;
  CHECK(t, wrong == 0, "sums of clusters of %u: %u are wrong", cluster, wrong);
  test_free(t, a), test_free(t, b);
}

/* Copies that land late, or early, memory checked or not: what is right is so in any way. */
static void
all(Test *t, int early, int check)
{
  SimOptions o;
  SimError err;
  sim_options_default(&o);
  o.max_instructions = 1000000;
  o.early_copies = early;
  o.check_races = check;
  bool plant = !early && check;
  SimMachine *saved = test_machine(t, &o);
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  for (size_t i = 0; plant && i < sizeof sizes / sizeof *sizes; i++)
    size_case(t, &sizes[i]);
  for (size_t i = 0; plant && i < sizeof faults / sizeof *faults; i++)
    fault_pair(t, &faults[i], a, b);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    CHECK(t, run_pair(t, legal[i], 64, a, b, &err) == 0, "%s: block %u: %s%s", legal[i], err.block[0], err.message, err.trace);
  ring_case(t);
  scope_case(t, "4", false);
  if (check)
    scope_case(t, "0", true);
  values(t);
  sums_case(t, 12, 2);
  sums_case(t, 12, 3);
  sums_case(t, 32, 8);
  sums_case(t, 32, 16);
  test_free(t, a), test_free(t, b);
  test_machine_back(t, saved);
}

void
test_cluster(Test *t)
{
  all(t, 0, 1);
  all(t, 1, 1);
  all(t, 0, 0);
}
