/* mbarrier_test.c - mbarriers: what they order, how their phases are counted, and every misuse with its words. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

/* %p1: thread 0; an mbarrier at sh, and another at sh + 8. */
#define ONE "setp.eq.u32 %p1, %r0, 0; mov.u32 %r2, sh;\n"
#define INIT(n) ONE "@%p1 mbarrier.init.shared::cta.b64 [sh], " #n "; bar.sync 0;\n"
#define WAIT(label, at, parity) \
  label ": mbarrier.try_wait.parity.shared::cta.b64 %p7, [" at "], " parity "; @!%p7 bra " label ";\n"
#define ARRIVE "mbarrier.arrive.shared::cta.b64 _, [sh];"
/* %r1: the thread's word behind the barriers. */
#define WORD "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, 256;\n"

static const Fault faults[] = {
  {"two inits", SIM_E_BARRIER, 32, ONE ".loc 1 5 1\n@%p1 mbarrier.init.shared.b64 [sh], 1;" AT "@%p1 mbarrier.init.shared.b64 [sh], 1;",
   "thread (0,0,0) initialises the mbarrier at shared+0x0, which was initialised at k.tile:5 and not invalidated since"},
  {"init by every thread", SIM_E_BARRIER, 32, AT "mbarrier.init.shared.b64 [sh], 32;", "thread (1,0,0) initialises the mbarrier"},
  {"init for nobody", SIM_E_BARRIER, 1, AT "mbarrier.init.shared.b64 [sh], 0;", "for 0 arrivals: 1 to 1048575"},
  {"arrival before init", SIM_E_BARRIER, 1, AT "mbarrier.arrive.shared.b64 %d5, [sh];", "at shared+0x0, which nobody has initialised"},
  {"wait after inval", SIM_E_BARRIER, 1, "mbarrier.init.shared.b64 [sh], 1; mbarrier.inval.shared.b64 [sh];" AT
   "mbarrier.test_wait.parity.shared.b64 %p2, [sh], 0;", "which was invalidated"},
  {"use without a barrier behind the init", SIM_E_BARRIER, 64, ONE ".loc 1 5 1\n@%p1 mbarrier.init.shared.b64 [sh], 64;"
   "setp.gt.u32 %p2, %r0, 31;" AT "@%p2 mbarrier.arrive.shared.b64 _, [sh];", "initialised at k.tile:5, and there is no barrier between"},
  {"misaligned", SIM_E_ALIGN, 1, AT "mbarrier.init.shared.b64 [sh+4], 1;", "not a multiple of 8"},
  {"outside", SIM_E_BOUNDS, 1, "mov.u32 %r1, 400000;" AT "mbarrier.init.shared.b64 [%r1], 1;", "outside"},
  {"in global memory", SIM_E_BARRIER, 1, AT "mbarrier.init.b64 [%d1], 1;", "not in shared memory"},
  {"one arrival too many", SIM_E_BARRIER, 32, INIT(2) "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [sh], 16;"
   "@%p1 mbarrier.arrive.shared.b64 _, [sh], 2;" AT "@%p1 " ARRIVE, "1 times where 0 of 2 arrivals are missing in phase 0, which waits for 512 bytes"},
  {"more arrivals at once than are missing", SIM_E_BARRIER, 32, INIT(4) ".loc 1 5 1\n@%p1 mbarrier.arrive.shared.b64 _, [sh], 2;" AT
   "@%p1 mbarrier.arrive.shared.b64 _, [sh], 3;", "3 times where 2 of 4 arrivals are missing in phase 0; the one before was at k.tile:5"},
  {"noComplete that completes", SIM_E_BARRIER, 32, INIT(2) AT "@%p1 mbarrier.arrive.noComplete.release.cta.shared.b64 %d5, [sh], 2;",
   "arrives with .noComplete"},
  {"bytes beyond the range", SIM_E_BARRIER, 32, INIT(2) "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [sh], 1048575;" AT
   "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [sh], 1;", "expects 1 bytes at the mbarrier at shared+0x0, where 1048575 are missing"},
  {"completed bytes beyond the range", SIM_E_BARRIER, 1, INIT(2) "mov.u32 %r3, 1048575; mbarrier.complete_tx.shared.b64 [sh], %r3;" AT
   "mbarrier.complete_tx.shared.b64 [sh], 1;", "completes 1 bytes"},
  {"a barrier's bytes read", SIM_E_BARRIER, 32, ".loc 1 5 1\n" INIT(1) AT "ld.shared.u32 %r3, [sh+4];",
   "thread (0,0,0) reads 4 bytes at shared+0x4 (sh+0x4), where the mbarrier initialised at k.tile:5 is"},
  {"a barrier's bytes written", SIM_E_BARRIER, 32, INIT(1) AT "@%p1 st.shared.u64 [sh], 0;", "thread (0,0,0) writes 8 bytes at shared+0x0"},
  {"init of bytes that others read", SIM_E_RACE, 64, WORD "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r3, [%r1]; setp.eq.u32 %p1, %r0, 0;" AT
   "@%p1 mbarrier.init.shared.b64 [sh+384], 1;", "read"},
  {"inval where a warp waits", SIM_E_BARRIER, 64, INIT(1) "setp.lt.u32 %p2, %r0, 32; @%p2 bra P;\n.loc 1 5 1\n" WAIT("W", "sh", "0") "bra E;\n"
   "P:" AT "@%p1 mbarrier.inval.shared.b64 [sh]; E:", "where warp 1 waits at k.tile:5"},
  {"parity that lags two phases", SIM_E_BARRIER, 64, INIT(1) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L; @%p1 " ARRIVE "@%p1 " ARRIVE
   "bar.arrive 1, 64; bra E; L: bar.sync 1, 64; setp.ne.u32 %p3, %r0, 32; @%p3 bra E; mov.u32 %r3, 0;" AT WAIT("W", "sh", "%r3")
   "E:", "phases behind, and the parity means another"},
  {"state that lags two phases", SIM_E_BARRIER, 1, INIT(1) "mbarrier.arrive.shared.b64 %d5, [sh];" ARRIVE AT
   "mbarrier.test_wait.shared.b64 %p2, [sh], %d5;", "waits at the mbarrier at shared+0x0 for phase 0, where phase 2 runs: it is 2 phases behind"},
  {"parity that is none", SIM_E_BARRIER, 1, INIT(1) AT "mbarrier.test_wait.parity.shared.b64 %p2, [sh], 2;", "parity 2: 0 and 1 are possible"},
  {"state of another barrier", SIM_E_BARRIER, 1, INIT(1) "mov.u64 %d5, 7;" AT "mbarrier.test_wait.shared.b64 %p2, [sh], %d5;", "phase 7, where phase 0 runs"},
  {"nobody arrives", SIM_E_DEADLOCK, 96, INIT(2) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L;\n.loc 1 5 1\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [sh], 64; ret; L:"
   AT WAIT("W", "sh", "0"), "deadlock: no warp can go on: warp 1 at mbarrier shared+0x0 (k.tile:7) for the end of phase 0: 1 of 2 arrivals and 64 bytes are missing, "
   "the last was at k.tile:5 and 1 more like it"},
  {"wrong parity from the start", SIM_E_DEADLOCK, 64, INIT(1) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L;" AT WAIT("W", "sh", "0") "@%p1 " ARRIVE "ret;"
   "L: " WAIT("X", "sh", "0"), "warp 0 at mbarrier shared+0x0 (k.tile:7) for the end of phase 0: 1 of 1 arrivals are missing"},
  {"a barrier and an mbarrier", SIM_E_DEADLOCK, 64, INIT(1) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L;" AT "bar.sync 1, 64; ret; L: " WAIT("W", "sh", "0"),
   "warp 0 at barrier 1 (k.tile:7), warp 1 at mbarrier shared+0x0"},
  {"looks that find nothing", SIM_E_DEADLOCK, 64, INIT(1) AT "T: mbarrier.test_wait.parity.shared.b64 %p2, [sh], 0; @!%p2 bra T;", "warp 0 in a loop at k.tile:7"},
  {"data handed over by a relaxed arrival", SIM_E_RACE, 64, WORD INIT(32) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L; st.shared.u32 [%r1], %r0;"
   "mbarrier.arrive.relaxed.cta.shared.b64 _, [sh]; ret; L: " WAIT("W", "sh", "0") AT "ld.shared.u32 %r3, [%r1+-128];", "wrote"},
  {"data handed over without a wait", SIM_E_RACE, 64, WORD INIT(32) "setp.lt.u32 %p2, %r0, 32; @%p2 bra L; st.shared.u32 [%r1], %r0; " ARRIVE "ret;"
   "L: " AT "ld.shared.u32 %r3, [%r1+128];", "wrote"},
  {"overwritten before the readers arrive", SIM_E_RACE, 64, WORD INIT(32) "st.shared.u32 [%r1], %r0; bar.sync 0; setp.gt.u32 %p2, %r0, 31; @%p2 bra L; " ARRIVE
   "ld.shared.u32 %r3, [%r1]; ret; L: " WAIT("W", "sh", "0") AT "st.shared.u32 [%r1+-128], 0;", "read"},
  {"copies that arrive, read before the wait", SIM_E_ASYNC, 32, WORD INIT(32) "cp.async.ca.shared.global [%r1], [%d3], 4;"
   "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];" AT "ld.shared.u32 %r3, [%r1];", "has not been waited for"},
  {"copies that arrive, read by others without a wait", SIM_E_ASYNC, 64, WORD INIT(64) "cp.async.ca.shared.global [%r1], [%d3], 4; xor.b32 %r4, %r1, 128;"
   "cp.async.mbarrier.arrive.noinc.shared.b64 [sh]; setp.lt.u32 %p2, %r0, 32; @%p2 bra L; " WAIT("W", "sh", "0") "ret; L: bar.sync 1, 32;"
   AT "ld.shared.u32 %r3, [%r4];", "which an asynchronous operation issued at"},
  {"arrives at the cluster's barrier twice", SIM_E_BARRIER, 64, "barrier.cluster.arrive.aligned;" AT "barrier.cluster.arrive.aligned;", "have not waited since"},
  {"waits at the cluster's barrier without an arrival", SIM_E_BARRIER, 64, AT "barrier.cluster.wait.aligned;", "lanes 0xffffffff of warp 0 wait at the cluster's barrier"},
  {"a warp that does not arrive at the cluster's barrier", SIM_E_DEADLOCK, 64, "setp.lt.u32 %p2, %r0, 32; @%p2 bra L; bar.sync 1, 64; ret; L:"
   "barrier.cluster.arrive.aligned;" AT "barrier.cluster.wait.aligned;", "warp 0 at the cluster's barrier (k.tile:7) for warp 1"},
  {"data handed over by a relaxed arrival at the cluster's barrier", SIM_E_RACE, 64, WORD "st.shared.u32 [%r1], %r0; xor.b32 %r4, %r1, 128;"
   "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" AT "ld.shared.u32 %r3, [%r4];", "wrote"},
  {"copies in flight at the end", SIM_E_ASYNC, 32, WORD INIT(32) "cp.async.ca.shared.global [%r1], [%d3], 4;" AT
   "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];", "the program ends"},
  {"inval with copies in flight", SIM_E_BARRIER, 32, WORD INIT(32) "cp.async.ca.shared.global [%r1], [%d3], 4;\n.loc 1 5 1\n"
   "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];" AT "@%p1 mbarrier.inval.shared.b64 [sh];", "where the copy issued at k.tile:5 has yet to arrive"},
};

static const char *const legal[] = {
  /* all arrive, all wait, by parity and by state, with hints, sems and scopes */
  WORD INIT(64) "st.shared.u32 [%r1], %r0; " ARRIVE WAIT("W", "sh", "0") "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4]; bar.sync 0; @%p1 mbarrier.inval.shared.b64 [sh];"
  "@%p1 st.shared.u64 [sh], 1;",
  WORD INIT(64) "st.shared.u32 [%r1], %r0; mbarrier.arrive.release.cta.shared::cta.b64 %d5, [sh]; W: mbarrier.try_wait.acquire.cta.shared::cta.b64 %p3, [sh], %d5, 1000;"
  "@!%p3 bra W; xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4];",
  WORD INIT(64) "st.shared.u32 [%r1], %r0; mbarrier.arrive.shared.b64 %d5, [sh]; W: mbarrier.test_wait.shared.b64 %p3, [sh], %d5; @!%p3 bra W;"
  "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4];",
  /* by generic address; counts, drops, noComplete; an expect and a completion by hand */
  ONE "cvta.shared.u64 %d5, sh; @%p1 mbarrier.init.b64 [%d5], 64; bar.sync 0; mbarrier.arrive.b64 %d6, [%d5]; W: mbarrier.try_wait.b64 %p3, [%d5], %d6; @!%p3 bra W;",
  INIT(3) "@%p1 mbarrier.arrive.noComplete.shared.b64 %d5, [sh], 2; @%p1 mbarrier.arrive_drop.shared.b64 _, [sh]; " WAIT("W", "sh", "0")
  "bar.sync 0; @%p1 mbarrier.arrive.shared.b64 _, [sh], 2; " WAIT("V", "sh", "1"),
  INIT(1) "setp.eq.u32 %p2, %r0, 33; @%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [sh], 96;"
  "@%p2 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [sh], 96; " WAIT("W", "sh", "0"),
  INIT(1) "setp.eq.u32 %p2, %r0, 33; @%p2 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [sh], 96; bar.sync 0;"
  "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [sh], 96; " WAIT("W", "sh", "0"),
  /* a fresh barrier's phase of parity 1 is over */
  INIT(1) WAIT("W", "sh", "1"),
  /* one lane waits, and another lane of its warp arrives later */
  INIT(1) "setp.eq.u32 %p2, %r0, 5; setp.eq.u32 %p3, %r0, 6; @!%p2 bra L; " WAIT("W", "sh", "0") "bra M; L: @%p3 " ARRIVE " M: bar.warp.sync -1;",
  /* a look that fails, and then the arrival that it looked for */
  INIT(1) "mbarrier.try_wait.parity.shared.b64 %p3, [sh], 0; @%p1 " ARRIVE WAIT("W", "sh", "0"),
  /* the cluster's barrier: between an arrival and its wait there is another barrier; by half a warp; and without those that have ended */
  WORD "setp.lt.u32 %p2, %r0, 32; st.shared.u32 [%r1], %r0; barrier.cluster.arrive.release.aligned; @%p2 bra L; bar.sync 15, 64; L: barrier.cluster.wait.acquire.aligned;"
  "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4]; @%p2 bar.arrive 15, 64; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; st.shared.u32 [%r4], 1;",
  "setp.lt.u32 %p2, %r0, 40; @%p2 bra L; barrier.cluster.arrive; barrier.cluster.wait; ret; L: barrier.cluster.arrive; barrier.cluster.wait;",
  "and.b32 %r3, %r0, 31; setp.gt.u32 %p2, %r3, 15; @!%p2 bra L; barrier.cluster.arrive; barrier.cluster.wait; ret; L: add.u32 %r3, %r3, 1;",
  "setp.lt.u32 %p2, %r0, 32; @%p2 ret; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r1, %cluster_ctaid.y; mov.u32 %r2, %cluster_nctaid.z;",
  "fence.mbarrier_init.release.cluster;" INIT(1) "@%p1 " ARRIVE WAIT("W", "sh", "0"),
  /* other copies of the threads arrive, with and without a place for them in the count */
  WORD INIT(64) "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [sh]; " WAIT("W", "sh", "0")
  "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4];",
  WORD INIT(64) "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.mbarrier.arrive.shared.b64 [sh]; " ARRIVE WAIT("W", "sh", "0")
  "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4];",
  /* two barriers; initialised anew, in another place of the program too */
  INIT(64) ARRIVE WAIT("W", "sh", "0") "bar.sync 0; @%p1 mbarrier.inval.shared.b64 [sh]; @%p1 mbarrier.init.shared.b64 [sh], 1;"
  "@%p1 mbarrier.init.shared.b64 [sh+8], 64; bar.sync 0; @%p1 " ARRIVE "mbarrier.arrive.shared.b64 _, [sh+8]; " WAIT("V", "sh+8", "0") WAIT("U", "sh", "0"),
  /* a warp that learns of phases through another waits for a later one */
  WORD INIT(1) "setp.gt.u32 %p2, %r0, 31; @%p2 bra L; @%p1 " ARRIVE WAIT("W", "sh", "0") "@%p1 " ARRIVE WAIT("V", "sh", "1") "bar.sync 1, 64; @%p1 " ARRIVE "ret;"
  "L: bar.sync 1, 64;" WAIT("U", "sh", "0"),
};

/* Warp 0 fills a ring of two words a lane, warp 1 empties it; full and empty barriers. */
static const char ring[] = HEAD
  "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [sh], 32; @%p1 mbarrier.init.shared::cta.b64 [sh+8], 32;\n"
  "@%p1 mbarrier.init.shared::cta.b64 [sh+16], 1; @%p1 mbarrier.init.shared::cta.b64 [sh+24], 1; bar.sync 0;\n"
  "and.b32 %r1, %r0, 31; shl.b32 %r1, %r1, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r9, 0;\n"
  "setp.gt.u32 %p2, %r0, 31; setp.eq.u32 %p3, %r0, 32;\n"
  "LOOP: and.b32 %r5, %r3, 1; shr.u32 %r6, %r3, 1; and.b32 %r6, %r6, 1; shl.b32 %r7, %r5, 3; add.u32 %r7, %r7, %r2;\n"
  "shl.b32 %r8, %r5, 7; add.u32 %r8, %r8, %r1; @%p2 bra TAKE;\n"
  "xor.b32 %r6, %r6, 1; P: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r7+16], %r6; @!%p4 bra P;\n"
  "mad.lo.u32 %r10, %r3, 100, %r0; st.shared.u32 [%r8+64], %r10; mbarrier.arrive.shared::cta.b64 _, [%r7]; bra NEXT;\n"
  "TAKE: C: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r7], %r6; @!%p4 bra C; ld.shared.u32 %r10, [%r8+64]; add.u32 %r9, %r9, %r10;\n"
  "bar.warp.sync -1; @%p3 mbarrier.arrive.shared::cta.b64 _, [%r7+16];\n"
  "NEXT: add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 11; @%p5 bra LOOP; st.global.u32 [%d4], %r9;\n" TAIL;

static void
ring_case(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512), wrong = 0;
  Run r = {ring, "k", {1}, {64}, 0, {&a, &b}, {0}, {0}};
  CHECK(t, test_run(t, &r) == 0, "ring: %s", r.err.message);
  CHECK(t, r.stats.warp_instructions < 1000, "the ring takes %llu instructions: waits are not parked", (unsigned long long)r.stats.warp_instructions);
  for (uint32_t i = 0; i < 32; i++)
    wrong += b[32 + i] != 5500 + 11 * i;
  CHECK(t, wrong == 0, "ring: %u sums are wrong", wrong);
  test_free(t, a), test_free(t, b);
}

static void
pending_case(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  Run r = {HEAD INIT(9) "mbarrier.arrive.shared.b64 %d5, [sh], 4; mbarrier.arrive.shared.b64 %d6, [sh], 4; mbarrier.pending_count.b64 %r3, %d6;"
           "st.global.u32 [%d4], %r3;" TAIL, "k", {1}, {1}, 0, {&a, &b}, {0}, {0}};
  CHECK(t, test_run(t, &r) == 0 && b[0] == 5, "%u arrivals are missing, not 5: %s", b[0], r.err.message);
  test_free(t, a), test_free(t, b);
}

void
test_mbarrier(Test *t)
{
  SimOptions o;
  sim_options_default(&o);
  o.max_instructions = 1000000;
  SimMachine *saved = test_machine(t, &o);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    test_fault(t, &faults[i]);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    test_legal(t, legal[i], 64);
  ring_case(t);
  pending_case(t);
  test_machine_back(t, saved);
  o.check_races = 0;
  saved = test_machine(t, &o);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    test_legal(t, legal[i], 64);
  test_machine_back(t, saved);
}
