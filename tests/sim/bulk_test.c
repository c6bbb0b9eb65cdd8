/* bulk_test.c - bulk copies and tensor maps: where every byte goes, the two landings, the proxies, and every misuse with its words. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

/* %p1: the last thread. An mbarrier for one arrival at dyn, data from dyn + 1024 on. */
#define ONE "mov.u32 %r8, %ntid.x; sub.u32 %r8, %r8, 1; setp.eq.u32 %p1, %r0, %r8; mov.u32 %r2, dyn; add.u32 %r5, %r2, 1024;\n"
#define INIT ONE "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1; fence.proxy.async; bar.sync 0;\n"
#define EXPECT(n) "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " #n ";\n"
#define WAIT(label, parity) label ": mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r2], " parity "; @!%p7 bra " label ";\n"
#define LOAD(n) "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], " #n ", [%r2];\n"
#define STORE(n) "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], " #n ";\n"
#define COMMIT "@%p1 cp.async.bulk.commit_group;\n"
#define WORD "shl.b32 %r1, %r0, 2; add.u32 %r1, %r1, %r5;\n"
#define FENCE "fence.proxy.async.shared::cta;\n"

/* Maps that thread 0 of a kernel makes, at %r7 in shared or at b in global memory, of a as 8 rows of 16 words. */
#define FIELD(space, at, field, value) "@%p8 tensormap.replace.tile." field "." space ".b1024.b32 [" at "], " value ";\n"
#define FIELDS(space, at) "@%p8 tensormap.replace.tile.global_address." space ".b1024.b64 [" at "], %d1; @%p8 tensormap.replace.tile.global_stride." space ".b1024.b64 [" at "], 0, 64;\n" \
  FIELD(space, at, "rank", "1") FIELD(space, at, "box_dim", "0, 16") FIELD(space, at, "box_dim", "1, 4") FIELD(space, at, "global_dim", "0, 16") FIELD(space, at, "global_dim", "1, 8") \
  FIELD(space, at, "element_stride", "0, 1") FIELD(space, at, "element_stride", "1, 1") FIELD(space, at, "elemtype", "2") FIELD(space, at, "interleave_layout", "0") \
  FIELD(space, at, "swizzle_mode", "0") FIELD(space, at, "fill_mode", "0")
#define MAKE "setp.eq.u32 %p8, %r0, 0; add.u32 %r7, %r2, 4096; shl.b32 %r10, %r0, 2; add.u32 %r10, %r10, %r7; setp.lt.u32 %p2, %r0, 32; @%p2 st.shared.b32 [%r10], 0; bar.warp.sync -1;\n" \
  FIELDS("shared::cta", "%r7") "bar.warp.sync -1;\n"
#define PUT "@%p2 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d2], [%r7], 128; bar.sync 0;\n"
#define ZERO "setp.eq.u32 %p8, %r0, 0; setp.lt.u32 %p2, %r0, 32; @%p2 st.global.u32 [%d4], 0; bar.sync 0;\n"
#define ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%d2], 128;\n"
#define RELEASE "@%p8 fence.proxy.tensormap::generic.release.gpu; bar.sync 0;\n"
#define BY_MAP "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], [%d2, {0, 2}], [%r2];\n"

static const Fault faults[] = {
  {"a map that was changed, not acquired", SIM_E_TRAP, 64, INIT MAKE "\n.loc 1 5 1\n" PUT EXPECT(256) AT BY_MAP,
   "was changed at k.tile:5, and there is no fence.proxy.tensormap::generic.acquire of this thread behind that"},
  {"a map that another warp has acquired", SIM_E_TRAP, 64, INIT MAKE PUT EXPECT(256) "@%p2 " ACQUIRE AT BY_MAP, "no fence.proxy.tensormap::generic.acquire of this thread"},
  {"a map that was acquired before it was changed", SIM_E_TRAP, 64, INIT MAKE PUT ACQUIRE "bar.sync 0;" PUT EXPECT(256) AT BY_MAP, "no fence.proxy.tensormap::generic.acquire of this thread"},
  {"a map that was not released", SIM_E_TRAP, 64, INIT ZERO "\n.loc 1 5 1\n" FIELDS("global", "%d2") "bar.sync 0;" ACQUIRE EXPECT(256) AT BY_MAP,
   "was changed at k.tile:5, and there is no fence.proxy.tensormap::generic.release of the thread that did so behind that"},
  {"a map that was released before it was changed", SIM_E_TRAP, 64, INIT ZERO RELEASE FIELDS("global", "%d2") "bar.sync 0;" ACQUIRE EXPECT(256) AT BY_MAP, "generic.release of the thread"},
  {"a map that is changed while another warp acquires it", SIM_E_RACE, 64, INIT ZERO FIELDS("global", "%d2") "@%p8 fence.proxy.tensormap::generic.release.gpu;" AT "@!%p2 " ACQUIRE, "wrote"},
  {"a map without a box", SIM_E_TRAP, 64, INIT ZERO FIELD("global", "%d2", "rank", "1") RELEASE ACQUIRE AT BY_MAP, "was changed by a kernel, and is wrong: the box of a tensor map has 0 elements in dimension 0"},
  {"a map of another rank", SIM_E_TRAP, 64, INIT ZERO FIELDS("global", "%d2") FIELD("global", "%d2", "rank", "0") RELEASE ACQUIRE AT BY_MAP, "has another rank than the instruction"},
  {"a box from a coordinate in the middle of 16 bytes", SIM_E_ALIGN, 64, INIT ZERO FIELDS("global", "%d2") RELEASE ACQUIRE AT
   "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], [%d2, {-3, 2}], [%r2];",
   "copies a box whose innermost coordinate is -3, at byte -12 of a row: a multiple of 16 is needed"},
  {"a box stored from there", SIM_E_ALIGN, 64, INIT ZERO FIELDS("global", "%d2") RELEASE ACQUIRE AT
   "@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d2, {2, 0}], [%r5];", "at byte 8 of a row: a multiple of 16 is needed"},
  {"a box prefetched from there", SIM_E_ALIGN, 64, INIT ZERO FIELDS("global", "%d2") RELEASE ACQUIRE AT
   "@%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d2, {1, 2}];", "at byte 4 of a row: a multiple of 16 is needed"},
  {"a prefetch by what is no map", SIM_E_TRAP, 32, AT "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d1, {0, 0}];", "was not made by this machine"},
  {"a reduction of bits by a map of floats", SIM_E_TRAP, 64, INIT ZERO FIELDS("global", "%d2") FIELD("global", "%d2", "elemtype", "7") RELEASE ACQUIRE AT
   "@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.tile.bulk_group [%d2, {0, 0}], [%r5];", "is of elements that this reduction does not take"},
  {"the larger of two floats of 32 bits", SIM_E_TRAP, 64, INIT ZERO FIELDS("global", "%d2") FIELD("global", "%d2", "elemtype", "7") RELEASE ACQUIRE AT
   "@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group [%d2, {0, 0}], [%r5];", "is of elements that this reduction does not take"},
  {"a rank that there is not", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "rank", "5"), "cannot have 5 there"},
  {"a swizzle that there is not", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "swizzle_mode", "4"), "cannot have 4 there"},
  {"an interleave", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "interleave_layout", "1"), "cannot have 1 there"},
  {"a type that there is not", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "elemtype", "13"), "cannot have 13 there"},
  {"a box that is too large", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "box_dim", "1, 257"), "cannot have 257 there"},
  {"a dimension that there is not", SIM_E_TRAP, 64, ZERO AT FIELD("global", "%d2", "box_dim", "5, 1"), "cannot have 1 there"},
  {"a change of what is no map", SIM_E_TRAP, 64, "setp.eq.u32 %p8, %r0, 0; @%p8 st.global.u32 [%d2], 7;" AT FIELD("global", "%d2", "rank", "1"), "was not made by this machine"},
  {"a change at an odd address", SIM_E_ALIGN, 64, "setp.eq.u32 %p8, %r0, 0; add.u64 %d5, %d2, 16;" AT FIELD("global", "%d5", "rank", "1"), "is not a multiple of 64"},
  {"a map copied by a part of a warp", SIM_E_TRAP, 32, INIT MAKE "setp.lt.u32 %p3, %r0, 16; @%p3 bra L;" AT "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d2], [%r7], 128; L:"
   "bar.warp.sync 0xffff; trap;", "an instruction for the whole warp"},
  {"read before the wait", SIM_E_ASYNC, 64, INIT WORD EXPECT(256) ".loc 1 5 1\n" LOAD(256) AT "ld.shared.u32 %r3, [%r1];",
   "which an asynchronous operation issued at k.tile:5 writes, and it has not waited for that"},
  {"write before the wait", SIM_E_ASYNC, 64, INIT WORD EXPECT(256) LOAD(256) AT "st.shared.u32 [%r1], 0;", "writes 4 bytes at shared+0x"},
  {"read by a warp that has not waited", SIM_E_ASYNC, 64, INIT WORD EXPECT(256) LOAD(256) "setp.lt.u32 %p2, %r0, 32; @%p2 bra L;" WAIT("W", "0") "L: " AT
   "@%p2 ld.shared.u32 %r3, [%r1+128];", "asynchronous operation"},
  {"a wait for another phase", SIM_E_ASYNC, 64, INIT WORD EXPECT(256) LOAD(256) WAIT("W", "1") AT "ld.shared.u32 %r3, [%r1];", "asynchronous operation"},
  {"a second copy before the first is read", SIM_E_ASYNC, 64, INIT WORD EXPECT(256) LOAD(256) WAIT("W", "0") "setp.lt.u32 %p2, %r0, 32; @%p2 bra L;" EXPECT(256)
   ".loc 1 5 1\n" LOAD(256) "ret; L: " AT "ld.shared.u32 %r3, [%r1+128];", "issued at k.tile:5 writes"},
  {"two copies to one place", SIM_E_ASYNC, 64, INIT EXPECT(512) LOAD(256) AT LOAD(256), "which an asynchronous operation"},
  {"a byte too many", SIM_E_DEADLOCK, 64, INIT EXPECT(272) LOAD(256) AT WAIT("W", "0"), "0 of 1 arrivals and 16 bytes are missing"},
  {"bytes that nobody expects", SIM_E_ASYNC, 64, INIT AT LOAD(256), "the program ends, and the copies issued here"},
  {"source written while it is read", SIM_E_ASYNC, 64, INIT EXPECT(256) LOAD(256) AT "st.global.u32 [%d3], 1;", "reads"},
  {"written without a fence, and stored", SIM_E_ASYNC, 64, INIT WORD ".loc 1 5 1\nst.shared.u32 [%r1], %r0; bar.sync 0;" AT STORE(256),
   "reads 256 bytes at shared+0x400, which was written at k.tile:5, and its writer has executed no fence.proxy.async between"},
  {"read, and filled anew without a fence", SIM_E_ASYNC, 64,
   INIT WORD EXPECT(256) LOAD(256) WAIT("W", "0") "ld.shared.u32 %r3, [%r1]; bar.sync 0;" EXPECT(256) AT LOAD(256),
   "writes 256 bytes at shared+0x400, which was read at"},
  {"the fence behind the barrier", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0; bar.sync 0;" FENCE AT STORE(256), "no fence.proxy.async between"},
  {"a write behind the fence", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0; " FENCE "st.shared.u32 [%r1], %r0; bar.sync 0;" AT STORE(256), "no fence"},
  {"no fence before it is overwritten", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0; bar.sync 0;" EXPECT(256) AT LOAD(256), "writes 256 bytes"},
  {"global memory without a fence", SIM_E_ASYNC, 64, INIT "st.global.u32 [%d3], 1; bar.sync 0;" EXPECT(256) AT LOAD(256), "no fence.proxy.async between"},
  {"other copies without a fence", SIM_E_ASYNC, 64, INIT WORD "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.wait_all; bar.sync 0;" AT STORE(256), "no fence"},
  {"fence but no barrier", SIM_E_RACE, 64, INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "setp.eq.u32 %p1, %r0, 0;" AT STORE(256), "wrote"},
  {"staging overwritten before the group has read", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; bar.sync 0;" STORE(256) COMMIT AT
   "st.shared.u32 [%r1], 1;", "reads, and it has not waited"},
  {"staging overwritten, a group waited for too few", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; bar.sync 0;" STORE(256) COMMIT
   "@%p1 cp.async.bulk.wait_group.read 1; bar.sync 0;" AT "st.shared.u32 [%r1], 1;", "reads"},
  {"staging overwritten by warps that have not heard", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; bar.sync 0;" STORE(256) COMMIT
   "@%p1 cp.async.bulk.wait_group.read 0; setp.lt.u32 %p2, %r0, 32;" AT "@%p2 st.shared.u32 [%r1], 1;", "reads"},
  {"result read after a wait for reads", SIM_E_ASYNC, 64, INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; bar.sync 0;" STORE(256) COMMIT
   "@%p1 cp.async.bulk.wait_group.read 0; bar.sync 0;" AT "ld.global.u32 %r3, [%d4];", "writes, and it has not waited"},
  {"reduction and a plain write", SIM_E_ASYNC, 64, INIT WORD "st.global.u32 [%d4], 0; st.shared.u32 [%r1], %r0; fence.proxy.async; bar.sync 0; bar.sync 0;"
   "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [%r5], 256;" AT "st.global.u32 [%d4], 1;", "asynchronous operation"},
  {"misaligned target", SIM_E_ALIGN, 32, INIT "add.u32 %r5, %r5, 8;" AT LOAD(16), "0x408, is not a multiple of 16"},
  {"misaligned source", SIM_E_ALIGN, 32, INIT "add.u64 %d1, %d1, 8;" AT LOAD(16), "not a multiple of 16"},
  {"odd size", SIM_E_ALIGN, 32, INIT AT LOAD(24), "size, 0x18, is not a multiple of 16"},
  {"past the source", SIM_E_BOUNDS, 32, INIT AT LOAD(528), "parameter 0[0..131] of 128"},
  {"past shared memory", SIM_E_BOUNDS, 32, INIT "add.u32 %r5, %r5, 65536;" AT LOAD(512), "outside"},
  {"to global memory", SIM_E_BOUNDS, 32, INIT "mov.u64 %d5, %d2;" AT
   "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%d5], [%d1], 16, [%r2];", "should be in shared memory"},
  {"no barrier", SIM_E_BARRIER, 32, INIT "add.u32 %r2, %r2, 8;" AT LOAD(16), "nobody has initialised"},
  {"multicast to blocks that are not there", SIM_E_TRAP, 32, INIT "mov.u16 %h1, 3;" AT
   "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d1], 16, [%r2], %h1;", "blocks 0x3 of a cluster of 1"},
  {"a prefetch of a map that is none", SIM_E_TRAP, 32, AT "prefetch.tensormap [%d1];", "was not made by this machine"},
  {"a map that is none", SIM_E_TRAP, 32, INIT AT
   "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], [%d1, {0, 0}], [%r2];", "was not made by this machine"},
};

static const char *const legal[] = {
  INIT WORD EXPECT(256) LOAD(256) WAIT("W", "0") "ld.shared.u32 %r3, [%r1];" FENCE "bar.sync 0;" EXPECT(256) LOAD(256) WAIT("V", "1") "ld.shared.u32 %r3, [%r1];",
  INIT WORD EXPECT(256) "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r5], [%d1], 256, [%r2], %d9;" WAIT("W", "0")
  "ld.shared.u32 %r3, [%r1];",
  INIT WORD "mov.u16 %h1, 1;" EXPECT(256) "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r5], [%d1], 256, [%r2], %h1;"
  WAIT("W", "0") "ld.shared.u32 %r3, [%r1];",
  /* written, fenced, stored; the staging used again after its reads, and by the async proxy after those of the generic one */
  ONE WORD "setp.ne.u32 %p3, %r0, 999; @%p1 mbarrier.init.shared::cta.b64 [%r2], 1; bar.sync 0; st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0;"
  "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%d2], [%r5], 256;" COMMIT "@%p1 cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.u32 [%r1], 7;",
  INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; ld.shared.u32 %r3, [%r1];" FENCE "bar.sync 0;" EXPECT(256) LOAD(256) WAIT("W", "0") "ld.shared.u32 %r3, [%r1];",
  /* within shared memory; prefetches */
  INIT WORD "st.shared.u32 [%r1], %r0;" FENCE "bar.sync 0; add.u32 %r6, %r5, 512;" EXPECT(256)
  "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r5], 256, [%r2];" WAIT("W", "0") "ld.shared.u32 %r3, [%r1+512];",
  INIT "cp.async.bulk.prefetch.L2.global [%d1], 256; prefetch.global.L2 [%d1];",
};

/* By one block, as their maps are in one place. */
static const char *const changing[] = {
  /* maps made in shared memory and copied, or in global memory and released; used again; and changed between uses */
  INIT WORD MAKE PUT ACQUIRE EXPECT(256) BY_MAP WAIT("W", "0") "ld.shared.u32 %r3, [%r1];" FENCE "bar.sync 0; " EXPECT(256) BY_MAP WAIT("V", "1") "ld.shared.u32 %r3, [%r1];",
  INIT WORD ZERO FIELDS("global", "%d2") RELEASE ACQUIRE "@%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d2, {4, 2}];" EXPECT(256) BY_MAP
  WAIT("W", "0") "ld.shared.u32 %r3, [%r1];" FENCE "bar.sync 0; " FIELD("global", "%d2", "global_dim", "1, 4") RELEASE ACQUIRE
  EXPECT(256) BY_MAP WAIT("V", "1") "ld.shared.u32 %r3, [%r1];",
};

static bool
run(Test *t, const char *name, Run *r)
{
  return CHECK(t, test_run(t, r) == 0, "%s: %s", name, r->err.message);
}

/* Each fault, each legal body; the shared memory that the kernels have is dynamic. */
static void
fault_body(Test *t, const Fault *f)
{
  char ptx[8192];
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  snprintf(ptx, sizeof ptx, "%s%s%s%s", HEAD, f->body, THEN, TAIL);
  memset(a, 0, 512);
  Run r = {ptx, "k", {1}, {f->threads}, 8192, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == f->kind && r.err.line == 7, "%s: kind %d at line %u: %s", f->name, (int)r.err.kind, r.err.line, r.err.message);
  CHECK(t, strstr(r.err.message, f->text) != NULL, "%s: \"%s\" has no \"%s\"", f->name, r.err.message, f->text);
  test_free(t, a), test_free(t, b);
}

/* b = a by way of shared memory, and sums in b, of both landings. */
static void
round_trip(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512), wrong = 0;
  for (uint32_t i = 0; i < 128; i++)
    a[i] = i * 77 + 5, b[i] = i;
  Run r = {HEAD INIT EXPECT(512) LOAD(512) "@%p1 bra L; ret; L:" WAIT("W", "0")
           "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [%r5], 512;" COMMIT
           "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d2], [%r5], 256;" COMMIT "cp.async.bulk.wait_group 0; ld.global.u32 %r7, [%d2+4];"
           "st.global.u32 [%d2], %r7;" TAIL, "k", {1}, {64}, 4096, {&a, &b}, {0}, {0}};
  run(t, "round trip", &r);
  for (uint32_t i = 1; i < 128; i++)
    wrong += b[i] != i + a[i] * (i < 64 ? 2 : 1);
  CHECK(t, wrong == 0 && b[0] == b[1], "round trip: %u wrong, %u", wrong, b[0]);
  test_free(t, a), test_free(t, b);
}

/* ---- tensors ---- */

typedef struct Case { SimTensor map; uint64_t extent[5], stride[4]; uint32_t box[5], step[5]; int32_t at[5]; uint32_t bytes, size;
               int32_t lower[3], upper[3]; uint32_t pixels, shift[3]; bool whole; } Case;      /* whole: a store that is no reduction */

static uint32_t
random_below(uint32_t *seed, uint32_t n)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

/* Some tensor of u8, u16, u32 or u64, whose steps are 1 or 2, and some box in it or across its edges. */
static Case
random_case(uint32_t *seed)
{
  static const uint32_t sizes[] = {1, 2, 4, 8};
  static const int types[] = {0, 1, 2, 4};
  Case c = {.bytes = 1};
  uint32_t kind = random_below(seed, 4), span, narrow = random_below(seed, 3);
  c.map = (SimTensor){.type = types[kind], .swizzle = (int)random_below(seed, 4), .rank = 1 + random_below(seed, 5)};
  c.size = sizes[kind];
  span = c.map.swizzle ? 16u << c.map.swizzle : 64;
  span = narrow ? span : 16 + 16 * random_below(seed, span / 16);
  uint64_t pitch = 0;
  for (uint32_t i = 0; i < c.map.rank; i++) {
    c.step[i] = i && random_below(seed, 4) == 0 ? 2 : 1;
    c.box[i] = i ? 1 + random_below(seed, i > 2 ? 2 : 6) : (span < 256 * sizes[kind] ? span : 256) / c.size;
    c.extent[i] = 1 + random_below(seed, i > 2 ? 3 : i ? 9 : 100);
    c.at[i] = (int32_t)random_below(seed, (uint32_t)c.extent[i] + 4) - 2;
    if (i)
      c.stride[i - 1] = pitch;
    else
      c.at[0] = (int32_t)random_below(seed, (uint32_t)c.extent[0] * c.size / 16 + 4) * (int32_t)(16 / c.size) - (int32_t)(32 / c.size);
    pitch = i ? pitch * c.extent[i] : (c.extent[0] * c.size + 31) / 16 * 16;
    c.bytes *= (c.box[i] + c.step[i] - 1) / c.step[i];
  }
  c.bytes *= c.size;
  return c;
}

/* The same of pixels between two corners, which begin anywhere between them, of maybe several images. */
static Case
random_pixels(uint32_t *seed)
{
  Case c = random_case(seed);
  uint32_t n = c.map.rank = 3 + random_below(seed, 3);
  uint64_t pitch = (c.extent[0] * c.size + 31) / 16 * 16;
  c.pixels = 1 + random_below(seed, 40);
  for (uint32_t i = 1; i < n; i++) {
    c.extent[i] = 1 + random_below(seed, 6);
    c.stride[i - 1] = pitch;
    pitch *= c.extent[i];
    c.at[i] = (int32_t)random_below(seed, 4) - 1;
    c.step[i] = 1;
  }
  for (uint32_t i = 0; i + 2 < n; i++) {
    int32_t last = (int32_t)c.extent[i + 1] - 1;
    c.step[i + 1] = 1 + random_below(seed, 2);
    c.lower[i] = (int32_t)random_below(seed, 4) - 2;
    c.upper[i] = (int32_t)random_below(seed, 4) - 2;
    if (c.lower[i] > last + c.upper[i])
      c.lower[i] = last + c.upper[i];
    c.at[i + 1] = c.lower[i] + (int32_t)random_below(seed, (uint32_t)(last + c.upper[i] - c.lower[i]) + 1);
    c.shift[i] = random_below(seed, 3);
  }
  c.bytes = c.box[0] * c.size * c.pixels;
  return c;
}

static void
encode(Test *t, Case *c, uint8_t *tensor, uint8_t map[128])
{
  SimError err;
  c->map.address = (uint64_t)(uintptr_t)tensor;
  c->map.extent = c->extent;
  c->map.stride = c->stride;
  c->map.box = c->box;
  c->map.step = c->step;
  SimPixels p = {c->lower, c->upper, c->box[0], c->pixels};
  CHECK(t, (c->pixels ? sim_tensor_map_im2col(&c->map, &p, map, &err) : sim_tensor_map(&c->map, map, &err)) == 0, "%s", err.message);
}

/* Rows that are narrower than the swizzle stand at its width. */
static uint32_t
row_pitch(const Case *c)
{
  return c->map.swizzle ? 16u << c->map.swizzle : c->box[0] * c->size;
}

/* Where element e of the box in shared memory at `base` lies, and in the tensor; -1: outside. */
static uint32_t
shared_place(const Case *c, uint32_t base, uint32_t e)
{
  uint32_t at = base + e / c->box[0] * row_pitch(c) + e % c->box[0] * c->size;
  switch (c->map.swizzle) {
  case 1: return at ^ ((at >> 7 & 1) << 4);
  case 2: return at ^ ((at >> 7 & 3) << 4);
  case 3: return at ^ ((at >> 7 & 7) << 4);
  default: return at;
  }
}

/* Where rows of the tensor end for the box: a store writes the last 16 bytes whole. */
static int64_t
row_end(const Case *c)
{
  int64_t end = (int64_t)c->extent[0], piece = 16 / c->size;
  return c->whole && c->at[0] < end ? (end + piece - 1) / piece * piece : end;
}

/* One pixel after the other, from corner to corner. */
static int64_t
pixel_place(const Case *c, uint32_t e)
{
  int32_t x[5];
  uint32_t last = c->map.rank - 1;
  memcpy(x, c->at, sizeof x);
  for (uint32_t n = e / c->box[0]; n > 0; n--) {
    uint32_t i = 1;
    for (; i < last; i++) {
      x[i] += (int32_t)c->step[i];
      if (x[i] <= (int32_t)c->extent[i] - 1 + c->upper[i - 1])
        break;
      x[i] = c->lower[i - 1];
    }
    x[last] += i == last;
  }
  int64_t at = 0;
  for (uint32_t i = 0; i <= last; i++) {
    int64_t v = i ? x[i] + (int64_t)(i < last ? c->shift[i - 1] : 0) : x[0] + (int64_t)(e % c->box[0]);
    if (v < 0 || v >= (i ? (int64_t)c->extent[i] : row_end(c)))
      return -1;
    at += v * (i ? (int64_t)c->stride[i - 1] : c->size);
  }
  return at;
}

static int64_t
tensor_place(const Case *c, uint32_t e)
{
  int64_t at = 0;
  if (c->pixels)
    return pixel_place(c, e);
  for (uint32_t i = 0; i < c->map.rank; i++) {
    uint32_t n = (c->box[i] + c->step[i] - 1) / c->step[i];
    int64_t x = (int64_t)c->at[i] + (int64_t)(e % n) * c->step[i];
    if (x < 0 || x >= (i ? (int64_t)c->extent[i] : row_end(c)))
      return -1;
    at += x * (i ? (int64_t)c->stride[i - 1] : c->size);
    e /= n;
  }
  return at;
}

/* One thread loads a box to dyn + 1024, or stores it from there; all threads copy 8192 bytes of shared memory to or from b. */
static void
tensor_ptx(char *out, size_t size, const Case *c, bool load, const char *op)
{
  char box[300];
  size_t n = (size_t)snprintf(box, sizeof box, "[%%d5, {");
  for (uint32_t i = 0; i < c->map.rank; i++)
    n += (size_t)snprintf(box + n, sizeof box - n, "%s%d", i ? ", " : "", c->at[i]);
  snprintf(box + n, sizeof box - n, "}]");
  char offsets[100] = "", *mode = c->pixels ? load ? "im2col" : "im2col_no_offs" : "tile";
  for (uint32_t i = 0; c->pixels && i + 2 < c->map.rank; i++)
    snprintf(offsets + strlen(offsets), sizeof offsets - strlen(offsets), "%s%u%s", i ? ", " : ", {", c->shift[i], i + 3 == c->map.rank ? "}" : "");
  n = (size_t)snprintf(out, size, "%s", ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n"
    ".visible .entry k(.param .align 64 .b8 m[128], .param .u64 b) {\n.reg .b32 %r<32>; .reg .b64 %d<16>; .reg .pred %p<9>;\n"
    "ld.param.u64 %d2, [b]; mov.u64 %d4, m; cvta.param.u64 %d5, %d4; mov.u32 %r0, %tid.x; cvta.to.global.u64 %d2, %d2;\n"
    "mad.wide.u32 %d3, %r0, 4, %d2; mov.u32 %r9, 0;" INIT WORD);
  if (load)
    snprintf(out + n, size - n, "F: st.shared.u32 [%%r1], 0; add.u32 %%r1, %%r1, 512; add.u32 %%r9, %%r9, 1; setp.lt.u32 %%p3, %%r9, 16; @%%p3 bra F;\n"
      FENCE "bar.sync 0; mov.u32 %%r9, 0; %s"
      "@%%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r2], %u;\n"
      "@%%p1 cp.async.bulk.tensor.%ud.shared::cta.global.%s.mbarrier::complete_tx::bytes [%%r5], %s, [%%r2]%s;\n%s"
      "G: ld.shared.u32 %%r3, [%%r1]; st.global.u32 [%%d3], %%r3; add.u32 %%r1, %%r1, 512; add.u64 %%d3, %%d3, 512; add.u32 %%r9, %%r9, 1;\n"
      "setp.lt.u32 %%p3, %%r9, 16; @%%p3 bra G;" TAIL, WORD, c->bytes, c->map.rank, mode, box, offsets, WAIT("W", "0"));
  else
    snprintf(out + n, size - n, "F: ld.global.u32 %%r3, [%%d3]; st.shared.u32 [%%r1], %%r3; add.u32 %%r1, %%r1, 512; add.u64 %%d3, %%d3, 512;\n"
      "add.u32 %%r9, %%r9, 1; setp.lt.u32 %%p3, %%r9, 16; @%%p3 bra F;\n" FENCE "bar.sync 0;\n"
      "@%%p1 cp%s.async.bulk.tensor.%ud.global.shared::cta%s.%s.bulk_group %s, [%%r5];\n%s @%%p1 cp.async.bulk.wait_group.read 0;" TAIL,
      *op ? ".reduce" : "", c->map.rank, op, mode, box, COMMIT);
}

static uint64_t
element(const uint8_t *p, uint32_t size)
{
  uint64_t v = 0;
  memcpy(&v, p, size);
  return v;
}

/* What the elements of the box are after the kernel, of what was there before. */
static uint32_t
compare(const Case *c, const uint8_t *tensor, const uint8_t *before, const uint8_t *b, bool load, bool add)
{
  uint32_t wrong = 0;
  for (uint32_t e = 0; e < c->bytes / c->size; e++) {
    int64_t at = tensor_place(c, e);
    const uint8_t *here = b + shared_place(c, 1024, e) - 1024;
    if (load)
      wrong += element(here, c->size) != (at < 0 ? 0 : element(tensor + at, c->size));
    else if (at >= 0)
      wrong += memcmp(tensor + at, &(uint64_t){element(here, c->size) + (add ? element(before + at, c->size) : 0)}, c->size) != 0;
  }
  return wrong;
}

/* Elements of the tensor that lie in no place of the box have not changed. */
static uint32_t
strayed(const Case *c, const uint8_t *tensor, const uint8_t *before, size_t bytes)
{
  uint32_t wrong = 0;
  uint8_t *inside = calloc(1, bytes);
  for (uint32_t e = 0; inside && e < c->bytes / c->size; e++) {
    int64_t at = tensor_place(c, e);
    if (at >= 0)
      memset(inside + at, 1, c->size);
  }
  for (size_t i = 0; inside && i < bytes; i++)
    wrong += !inside[i] && tensor[i] != before[i];
  free(inside);
  return wrong;
}

static void
tensor_case(Test *t, uint32_t *seed, bool pixels)
{
  static _Alignas(64) uint8_t map[128];
  char ptx[4096];
  Case c = pixels ? random_pixels(seed) : random_case(seed);
  bool load = random_below(seed, 2), add = !load && c.size >= 4 && random_below(seed, 2);
  size_t bytes = c.map.rank > 1 ? c.stride[c.map.rank - 2] * c.extent[c.map.rank - 1] : (c.extent[0] * c.size + 31) / 16 * 16;
  uint8_t *tensor = test_alloc(t, bytes), *b = test_alloc(t, 8192), *before = malloc(bytes);
  for (size_t i = 0; i < bytes; i++)
    tensor[i] = before[i] = (uint8_t)random_below(seed, 256);
  for (uint32_t i = 0; i < 8192; i++)
    b[i] = (uint8_t)random_below(seed, 256);
  if (!load)
    memset(c.shift, 0, sizeof c.shift);
  c.whole = !load && !add;
  encode(t, &c, tensor, map);
  tensor_ptx(ptx, sizeof ptx, &c, load, add ? ".add" : "");
  Run r = {ptx, "k", {1}, {128}, 16384, {map, &b}, {0}, {0}};
  if (c.bytes / (c.box[0] * c.size) * row_pitch(&c) <= 8192 && run(t, "tensor", &r)) {
    uint32_t wrong = compare(&c, tensor, before, b, load, add), stray = strayed(&c, tensor, before, bytes);
    CHECK(t, wrong == 0 && stray == 0, "rank %u %s swizzle %d size %u %s: %u elements are wrong, %u bytes strayed", c.map.rank, pixels ? "pixels" : "tile", c.map.swizzle, c.size,
          load ? "load" : "store", wrong, stray);
  }
  test_free(t, tensor), test_free(t, b);
  free(before);
}

/* ---- maps ---- */

/* What a kernel's own map brings: rows 2 to 5 of 16 words, then, with 4 rows only, two of them and zeros. */
static void
made_map(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 1024), wrong = 0;
  for (uint32_t i = 0; i < 128; i++)
    a[i] = i + 100;
  Run r = {HEAD INIT WORD MAKE PUT ACQUIRE EXPECT(256) BY_MAP WAIT("W", "0") "ld.shared.u32 %r3, [%r1]; st.global.u32 [%d4+256], %r3;" FENCE "bar.sync 0; "
           FIELD("shared::cta", "%r7", "global_dim", "1, 4") FIELD("shared::cta", "%r7", "elemtype", "7") "bar.warp.sync -1; " PUT ACQUIRE
           EXPECT(256) BY_MAP WAIT("V", "1") "ld.shared.u32 %r3, [%r1]; st.global.u32 [%d4+512], %r3;" TAIL, "k", {1}, {64}, 8192, {&a, &b}, {0}, {0}};
  run(t, "a map that a kernel makes", &r);
  for (uint32_t i = 0; i < 64; i++)
    wrong += b[64 + i] != 132 + i || b[128 + i] != (i < 32 ? 132 + i : 0);
  CHECK(t, wrong == 0, "a map that a kernel makes: %u words are wrong, %u %u", wrong, b[64], b[128]);
  test_free(t, a), test_free(t, b);
}

static void
refused(Test *t, SimTensor x, const char *text)
{
  uint8_t map[128];
  SimError err;
  CHECK(t, sim_tensor_map(&x, map, &err) == -1 && err.kind == SIM_E_ARGUMENT && strstr(err.message, text), "\"%s\" has no \"%s\"", err.message, text);
}

static void
maps(Test *t)
{
  static const uint64_t extent[] = {64, 64}, none[] = {0, 64}, stride[] = {128}, odd[] = {136}, far[] = {1ull << 40};
  static const uint32_t box[] = {64, 64}, wide[] = {128, 1}, narrow[] = {4, 1}, large[] = {64, 257}, one[] = {1, 1}, nine[] = {1, 9};
  SimTensor good = {.type = 6, .rank = 2, .address = 4096, .extent = extent, .stride = stride, .box = box, .step = one, .swizzle = 3}, x;
  uint8_t map[128];
  SimError err;
  CHECK(t, sim_tensor_map(&good, map, &err) == 0, "%s", err.message);
  x = good, x.rank = 6, refused(t, x, "rank 6");
  x = good, x.type = 13, refused(t, x, "type 13");
  x = good, x.address = 4104, refused(t, x, "a multiple of 16 is needed");
  x = good, x.stride = odd, refused(t, x, "136 bytes");
  x = good, x.stride = far, refused(t, x, "below 2^40");
  x = good, x.extent = none, refused(t, x, "extent 0");
  x = good, x.box = wide, refused(t, x, "more than its swizzle's 128");
  x = good, x.box = narrow, refused(t, x, "rows of 8 bytes");
  x = good, x.box = large, refused(t, x, "257 elements in dimension 1");
  x = good, x.step = nine, refused(t, x, "step");
  x = good, x.interleave = 1, refused(t, x, "interleave");
  x = good, x.type = 0, x.fill = 1, refused(t, x, "NaN");
}

static void
no_pixels(Test *t, uint32_t rank, SimPixels p, const char *text)
{
  static const uint64_t extent[] = {32, 8, 8, 8, 2}, stride[] = {64, 512, 4096, 32768};
  static const uint32_t one[] = {1, 1, 1, 1, 1};
  uint8_t map[128];
  SimError err;
  SimTensor x = {.type = 6, .rank = rank, .address = 4096, .extent = extent, .stride = stride, .step = one};
  int rc = sim_tensor_map_im2col(&x, &p, map, &err);
  CHECK(t, *text ? rc == -1 && strstr(err.message, text) : rc == 0, "\"%s\" has no \"%s\"", err.message, text);
}

static void
pixel_maps(Test *t)
{
  static const int32_t zero[3] = {0}, minus[3] = {-8, -8, -8}, most[] = {32767, 127, 15};
  for (uint32_t rank = 3; rank <= 5; rank++) {
    no_pixels(t, rank, (SimPixels){zero, zero, 32, 1024}, "");
    int32_t wide[3] = {most[rank - 3], 0, 0}, far[3] = {-most[rank - 3] - 2, 0, 0};
    no_pixels(t, rank, (SimPixels){zero, wide, 32, 16}, "");
    no_pixels(t, rank, (SimPixels){far, zero, 32, 16}, "are possible");
    no_pixels(t, rank, (SimPixels){zero, minus, 32, 16}, "leave no pixel in dimension 1");
  }
  no_pixels(t, 2, (SimPixels){zero, zero, 32, 16}, "rank 2: 3 to 5");
  no_pixels(t, 4, (SimPixels){zero, zero, 32, 1025}, "1025 pixels: 1 to 1024");
  no_pixels(t, 4, (SimPixels){zero, zero, 257, 16}, "257 elements in dimension 0");
  no_pixels(t, 4, (SimPixels){zero, zero, 4, 16}, "rows of 8 bytes");
}

static void
legal_body(Test *t, const char *body, uint32_t blocks)
{
  char ptx[8192];
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  memset(a, 0, 512), memset(b, 0, 512);
  snprintf(ptx, sizeof ptx, "%s%s%s", HEAD, body, TAIL);
  Run r = {ptx, "k", {blocks}, {64}, 8192, {&a, &b}, {0}, {0}};
  run(t, body, &r);
  test_free(t, a), test_free(t, b);
}

static void
all(Test *t, int early)
{
  SimOptions o;
  uint32_t seed = 12345;
  sim_options_default(&o);
  o.max_instructions = 1000000;
  o.early_copies = early;
  SimMachine *saved = test_machine(t, &o);
  for (size_t i = 0; !early && i < sizeof faults / sizeof *faults; i++)
    fault_body(t, &faults[i]);
  round_trip(t);
  for (int i = 0; i < 300; i++)
    tensor_case(t, &seed, false), tensor_case(t, &seed, true);
  test_machine_back(t, saved);
}

void
test_bulk(Test *t)
{
  all(t, 0);
  all(t, 1);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    legal_body(t, legal[i], 3);
  for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
    legal_body(t, changing[i], 1);
  maps(t);
  made_map(t);
  pixel_maps(t);
}
