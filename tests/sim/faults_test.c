/* faults_test.c - planted faults: every kind of error, with the line it must name; and near misses that are legal. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

#define SHADR "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2;\n"

static const Fault faults[] = {
  {"global read past the end", SIM_E_BOUNDS, 128, AT "ld.global.u32 %r1, [%d3+4];", "thread (127,0,0) reads parameter 0[128] of 128 4-byte elements: mask missing?"},
  {"global write before the start", SIM_E_BOUNDS, 32, AT "st.global.u32 [%d3+-4], %r0;", "parameter 0[-1], before the first of its 128"},
  {"wild generic pointer", SIM_E_BOUNDS, 1, "mov.u64 %d5, 0x1234560;" AT "ld.u32 %r1, [%d5];", "outside every allocation"},
  {"null vector load", SIM_E_BOUNDS, 1, "mov.u64 %d5, 0;" AT "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%d5];", "16 bytes at global address 0x0, outside every allocation: a null"},
  {"shared write past the window", SIM_E_BOUNDS, 32, SHADR AT "st.shared.u32 [%r1+4000], %r0;", "shared+0x1000"},
  {"local write past the end", SIM_E_BOUNDS, 1, ".local .b8 l[16]; mov.u64 %d5, l;" AT "st.local.u32 [%d5+16], %r0;", "local"},
  {"a copy of nothing, used", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[16]; ld.local.u32 %r1, [l]; st.local.u32 [l+8], %r1;" AT
   "ld.local.u32 %r2, [l+8]; st.global.u32 [%d3], %r2;", "reads 4 bytes at local+0x8, its own memory that it has not written"},
  {"half of a copy of nothing, used", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[32]; st.local.u32 [l], 1; ld.local.v2.u32 {%r1,%r2}, [l];"
   "st.local.v2.u32 [l+16], {%r1,%r2}; ld.local.u32 %r3, [l+16];" AT "ld.local.u32 %r4, [l+20]; add.u32 %r5, %r3, %r4;", "local+0x14"},
  {"a copy of nothing, stored where all see it", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[16]; ld.local.u32 %r1, [l];" AT "st.u32 [%d3], %r1;",
   "stores what it read from its own memory, where it had written nothing"},
  {"nothing, stored to global memory", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[16];" AT "ld.local.u32 %r1, [l]; st.global.u32 [%d3], %r1;", "local+0x0"},
  {"a sum with nothing, stored", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[16];" AT "ld.local.u32 %r1, [l]; add.u32 %r1, %r1, 1; st.local.u32 [l], %r1;", "local+0x0"},
  {"bits of nothing, looked at", SIM_E_UNINIT, 1, ".local .align 8 .b8 l[16];" AT "ld.local.u32 %r1, [l]; and.b32 %r2, %r1, 4; setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%d3], 1;",
   "local+0x0"},
  {"an index that is too large", SIM_E_BOUNDS, 64, AT "//@tilec.index %r0 33\nadd.u32 %r1, %r0, 1;", "thread (33,0,0) has index 33 of 33: outside 0 to 32"},
  {"a negative index", SIM_E_BOUNDS, 32, "sub.u32 %r1, %r0, 3;" AT "\t//@tilec.index %r1 100\n", "thread (0,0,0) has index -3 of 100: outside 0 to 99"},
  {"an index of 16 bits", SIM_E_BOUNDS, 32, "mov.u16 %h1, -1;" AT "//@tilec.index %h1 100\n", "index -1 of 100"},
  {"an index of 64 bits", SIM_E_BOUNDS, 32, "mov.u64 %d5, 5000000000;" AT "//@tilec.index %d5 5000000000\n", "index 5000000000 of 5000000000"},
  {"an index where a predicate holds", SIM_E_BOUNDS, 32, "setp.gt.u32 %p1, %r0, 20;" AT "//@tilec.index %r0 25 %p1\n", "thread (25,0,0) has index 25 of 25"},
  {"parameter read past the end", SIM_E_BOUNDS, 1, AT "ld.param.u64 %d5, [b+8];", "param"},
  {"atomic outside", SIM_E_BOUNDS, 32, AT "red.global.add.u32 [%d1+512], 1;", "writes parameter 0[128] of 128"},
  {"misaligned global load", SIM_E_ALIGN, 32, AT "ld.global.u32 %r1, [%d3+2];", "not a multiple of 4"},
  {"misaligned vector store", SIM_E_ALIGN, 32, SHADR AT "st.shared.v2.u32 [%r1], {%r0,%r0};", "thread (1,0,0)"},
  {"misaligned ldmatrix row", SIM_E_ALIGN, 32, SHADR AT "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1];", "16 bytes"},
  {"uninitialised shared word", SIM_E_UNINIT, 32, SHADR "st.shared.u32 [%r1], %r0; bar.sync 0;" AT
   "ld.shared.u32 %r3, [%r1+4];", "thread (31,0,0) reads 4 bytes at shared+0x80"},
  {"uninitialised half of a word", SIM_E_UNINIT, 1, SHADR "st.shared.u16 [%r1], %h1;" AT "ld.shared.u32 %r3, [%r1];", "4 bytes"},
  {"atomic on uninitialised shared", SIM_E_UNINIT, 1, SHADR AT "atom.shared.add.u32 %r3, [%r1], 1;", "shared+0x0"},
  {"read after write of another warp", SIM_E_RACE, 64, SHADR ".loc 1 5 1\nst.shared.u32 [%r1], %r0; xor.b32 %r3, %r1, 128;"
   "setp.gt.u32 %p1, %r0, 31;" AT "@%p1 ld.shared.u32 %r4, [%r3];",
   "thread (32,0,0) reads 4 bytes at shared+0x0, which thread (0,0,0) wrote at k.tile:5, and there is no barrier"},
  {"write after read of another warp", SIM_E_RACE, 64, SHADR "st.shared.u32 [%r1], %r0; bar.sync 0; xor.b32 %r3, %r1, 128;\n"
   ".loc 1 6 1\nld.shared.u32 %r4, [%r3]; setp.gt.u32 %p1, %r0, 31;" AT "@!%p1 st.shared.u32 [%r1], %r4;",
   "thread (32,0,0) read at k.tile:6"},
  {"write after write of another warp", SIM_E_RACE, 64, AT "st.shared.u32 [sh], %r0;", "writes 4 bytes at shared+0x0"},
  {"neighbour lane without a warp barrier", SIM_E_RACE, 32, SHADR "st.shared.u32 [%r1], %r0; xor.b32 %r3, %r1, 4;" AT
   "ld.shared.u32 %r4, [%r3];", "thread (1,0,0) wrote"},
  {"overwrite of a neighbour's input", SIM_E_RACE, 32, SHADR "st.shared.u32 [%r1], %r0; bar.warp.sync -1; xor.b32 %r3, %r1, 4;"
   "ld.shared.u32 %r4, [%r3];" AT "st.shared.u32 [%r1], %r4;", "thread (1,0,0) read"},
  {"overwrite of what all lanes read", SIM_E_RACE, 32, "setp.eq.u32 %p1, %r0, 31; @%p1 st.shared.u32 [sh], 7; bar.warp.sync -1;"
   "ld.shared.u32 %r4, [sh];" AT "@%p1 st.shared.u32 [sh], %r4;", "read"},
  {"overwrite of what an earlier lane read, too", SIM_E_RACE, 32, "setp.eq.u32 %p1, %r0, 31; @%p1 st.shared.u32 [sh], 7;"
   "bar.warp.sync -1; setp.lt.u32 %p2, %r0, 1; @%p2 ld.shared.u32 %r4, [sh]; @%p1 ld.shared.u32 %r4, [sh];" AT
   "@%p1 st.shared.u32 [sh], %r4;", "read"},
  {"lanes store different values", SIM_E_RACE, 32, AT "st.shared.u32 [sh+8], %r0;", "thread (1,0,0) writes"},
  {"plain read of atomics", SIM_E_RACE, 64, "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sh], 0; bar.sync 0;"
   "red.shared.add.u32 [sh], 1; setp.gt.u32 %p2, %r0, 31;" AT "@%p2 ld.shared.u32 %r4, [sh];", "wrote"},
  {"strong read of a plain write", SIM_E_RACE, 64, "setp.gt.u32 %p1, %r0, 31; setp.eq.u32 %p2, %r0, 0;\n.loc 1 5 1\n"
   "@%p2 st.shared.u32 [sh], 1;" AT "@%p1 ld.acquire.cta.shared.u32 %r4, [sh];", "thread (0,0,0) wrote at k.tile:5"},
  {"named barrier of other warps", SIM_E_RACE, 96, SHADR "st.shared.u32 [%r1], %r0; setp.gt.u32 %p1, %r0, 63; @%p1 bra LAST;"
   "bar.sync 1, 64; bra END; LAST: ld.shared.u32 %r4, [%r1];" AT "ld.shared.u32 %r4, [%r1+-128]; END:", "thread (32,0,0) wrote"},
  {"barrier in half a warp", SIM_E_BARRIER, 32, "setp.lt.u32 %p1, %r0, 16; @!%p1 bra END;" AT "bar.sync 0; END: nanosleep.u32 1;",
   "lanes 0x0000ffff"},
  {"guarded barrier", SIM_E_BARRIER, 64, "setp.ne.u32 %p1, %r0, 3;" AT "@%p1 bar.sync 0;", "lanes 0xfffffff7 of warp 0"},
  {"a barrier in either branch", SIM_E_BARRIER, 32, "setp.lt.u32 %p1, %r0, 16; @!%p1 bra ELSE;" AT "bar.sync 0; bra END;"
   "ELSE: bar.sync 0; END:", "divergent barrier"},
  {"barrier with an odd count", SIM_E_BARRIER, 64, AT "bar.sync 1, 40;", "40 threads"},
  {"barrier that does not exist", SIM_E_BARRIER, 64, "mov.u32 %r1, 16;" AT "bar.sync %r1;", "barrier 16"},
  {"barriers of different counts", SIM_E_BARRIER, 96, "setp.gt.u32 %p1, %r0, 31; @%p1 bra L; bar.sync 1, 64; L:" AT
   "bar.sync 1, 96;", "different thread counts"},
  {"warps at different barriers", SIM_E_DEADLOCK, 64, "setp.gt.u32 %p1, %r0, 31; @%p1 bra L;" AT "bar.sync 1; bra E; L:"
   "bar.sync 2; E:", "warp 0 at barrier 1 (k.tile:7), warp 1 at barrier 2"},
  {"nobody arrives any more", SIM_E_DEADLOCK, 64, "setp.gt.u32 %p1, %r0, 31; @%p1 ret;" AT "bar.sync 1, 64;", "barrier 1"},
  {"read of a copy in flight", SIM_E_ASYNC, 32, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.commit_group;" AT
   "ld.shared.u32 %r3, [%r1];", "reads 4 bytes"},
  {"wait for too few groups", SIM_E_ASYNC, 32, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.commit_group;"
   "cp.async.ca.shared.global [%r1+512], [%d3], 4; cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r3, [%r1];" AT
   "ld.shared.u32 %r3, [%r1+512];", "not been waited for"},
  {"wait for groups only", SIM_E_ASYNC, 32, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.wait_group 0;" AT
   "ld.shared.u32 %r3, [%r1];", "asynchronous copy"},
  {"wait by other lanes", SIM_E_ASYNC, 32, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4; setp.gt.u32 %p1, %r0, 15; @%p1 bra L;"
   "cp.async.wait_all; L:" AT "@%p1 ld.shared.u32 %r3, [%r1];", "thread (16,0,0) reads 4 bytes"},
  {"write under a copy", SIM_E_ASYNC, 32, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4;" AT "st.shared.u32 [%r1], %r0;", "writes"},
  {"copy over a buffer in use", SIM_E_RACE, 64, SHADR "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r3, [%r1];"
   "xor.b32 %r4, %r1, 128; setp.gt.u32 %p1, %r0, 31;" AT "@!%p1 cp.async.ca.shared.global [%r4], [%d3], 4;", "read at"},
  {"others read a copy after its wait without a barrier", SIM_E_RACE, 64, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4;"
   "cp.async.wait_all; xor.b32 %r4, %r1, 128; setp.gt.u32 %p1, %r0, 31;" AT "@%p1 ld.shared.u32 %r3, [%r4];", "wrote"},
  {"far outside of shared memory", SIM_E_BOUNDS, 32, "mov.u32 %r1, 0x5000000;" AT "ld.shared.u32 %r2, [%r1];", "reads 4 bytes at shared+0x5000000: outside of shared memory"},
  {"copy from outside", SIM_E_BOUNDS, 32, SHADR AT "cp.async.ca.shared.global [%r1], [%d1+512], 4;", "reads parameter 0[128] of 128"},
  {"trap", SIM_E_TRAP, 32, "setp.eq.u32 %p1, %r0, 9;" AT "@%p1 trap;", "trap"},
  {"shuffle from a lane elsewhere", SIM_E_TRAP, 32, "setp.gt.u32 %p1, %r0, 15; @%p1 bra E;" AT
   "shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffff; E:", "reads lane 16"},
  {"member mask of absent lanes", SIM_E_TRAP, 32, "setp.gt.u32 %p1, %r0, 15; @%p1 bra E;" AT
   "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; bra F; E: bar.warp.sync 0xffff0000; bar.warp.sync -1; F:", "must take part"},
  {"lane outside its own mask", SIM_E_TRAP, 32, AT "vote.sync.any.pred %p1, %p2, 0xffff;", "lane 16"},
  {"mma in half a warp", SIM_E_TRAP, 32, "setp.gt.u32 %p1, %r0, 15; @%p1 bra E;" AT
   "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4}; E:", "whole warp"},
  {"metadata out of order", SIM_E_TRAP, 32, "mov.u32 %r3, 0x44444414;" AT "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
   "{%f1,%f2,%f3,%f4}, {%r1,%r1,%r1,%r1}, {%r1,%r1,%r1,%r1}, {%f1,%f2,%f3,%f4}, %r3, 0;",
   "columns 4 to 7 of row 0 keep those at 1 and 0, which are not in order"},
  {"one place twice", SIM_E_TRAP, 32, "mov.u32 %r3, 0x4f444444;" AT "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"
   "{%r4,%r5,%r6,%r7}, {%r1,%r1,%r1,%r1}, {%r1,%r1,%r1,%r1}, {%r4,%r5,%r6,%r7}, %r3, 0;",
   "columns 24 to 27 of row 0 keep those at 3 and 3, which are not in order"},
  {"branch table index", SIM_E_TRAP, 32, "ts: .branchtargets A, B;" AT "brx.idx %r0, ts; A: B:", "branch index 2"},
  {"endless loop", SIM_E_LIMIT, 32, AT "L: bra L;", "warp instructions"},
};

static const char *const legal[] = {
  /* indices that are right, that a predicate leaves out, and comments of another form */
  "//@tilec.index %r0 64\nsetp.lt.u32 %p1, %r0, 9;\n  //@tilec.index %r0 9 %p1  \n add.u32 %r1, //@tilec.index %r0 1\n %r0, 1;",
  "//@tilec.index %r0\n//@tilec.index %r0 9 9\n//@tilec.index %r77 9\n//@tilec.index %r0 9x\n//@tilec.index %r0 9 %p1 %p2\n//@tilec.indexes %r0 9\n//@tilec.index %p1 1\n"
  "//@tilec.index %r0 99999999999999999999999\n//@tilec.index\n",
  /* fields of bits in words that are never written whole, and structs copied with their holes, by bytes too */
  ".local .align 8 .b8 l[16]; ld.local.u32 %r1, [l]; and.b32 %r2, %r1, -256; or.b32 %r3, %r2, 7; st.local.u32 [l], %r3; ld.local.u32 %r4, [l]; and.b32 %r4, %r4, 255;",
  ".local .align 16 .b8 l[64]; st.local.u32 [l], 1; st.local.u32 [l+16], 1; ld.local.v2.u64 {%d5,%d6}, [l]; ld.local.u64 %d7, [l+16]; st.local.v2.u64 [l+32], {%d5,%d6};"
  "st.local.u64 [l+48], %d7; ld.local.u32 %r1, [l+48];",
  ".local .align 8 .b8 l[8]; st.local.u8 [l], %r0; ld.local.u8 %r1, [l]; ld.local.u8 %r2, [l+1]; st.local.u8 [l+4], %r1; st.local.u8 [l+5], %r2; ld.local.u8 %r3, [l+4]; add.u32 %r3, %r3, 1;",
  "st.shared.u32 [sh], 5;",
  /* Released and acquired by the threads themselves: what was written just before, and the flag. */
  "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sh], 0; bar.sync 0; setp.gt.u32 %p2, %r0, 31; @%p2 bra W;"
  "@%p1 st.shared.u32 [sh+64], 9; @%p1 st.release.cta.shared.u32 [sh], 1; ret;"
  "W: ld.acquire.cta.shared.u32 %r1, [sh]; setp.eq.u32 %p4, %r1, 0; @%p4 bra W; ld.shared.u32 %r2, [sh+64]; ld.shared.u32 %r3, [sh];",
  SHADR "st.shared.u32 [%r1], %r0; bar.warp.sync -1; xor.b32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3];",
  SHADR "st.shared.u32 [%r1], %r0; bar.sync 0; ld.shared.u32 %r4, [sh]; bar.sync 0; st.shared.u32 [%r1], %r4;",
  SHADR "st.shared.u16 [%r1], %h0; st.shared.u16 [%r1+2], %h0; ld.shared.u32 %r4, [%r1];",
  "mov.u32 %r1, sh; shl.b32 %r2, %r0, 1; add.u32 %r1, %r1, %r2; st.shared.u16 [%r1], %h0; ld.shared.u16 %h1, [%r1]; st.shared.u16 [%r1], %h1;",
  "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sh], 0; bar.sync 0; atom.shared.add.u32 %r1, [sh], 1; bar.sync 0; ld.shared.u32 %r2, [sh];",
  "setp.gt.u32 %p1, %r0, 31; @%p1 ret; bar.sync 0;",
  "setp.gt.u32 %p1, %r0, 15; @%p1 ret; bar.sync 0;",
  "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sh], 0; bar.sync 0; setp.gt.u32 %p2, %r0, 31; @%p2 bra W; setp.eq.u32 %p3, %r0, 0;"
  "@%p3 st.shared.u32 [sh+64], 9; bar.warp.sync -1; @%p3 st.release.cta.shared.u32 [sh], 1; ret;"
  "W: ld.acquire.cta.shared.u32 %r1, [sh]; setp.eq.u32 %p4, %r1, 0; @%p4 bra W; ld.shared.u32 %r2, [sh+64];",
  SHADR "mov.u32 %r9, 0; L: cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
  "xor.b32 %r4, %r1, 128; ld.shared.u32 %r3, [%r4]; bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra L;",
};

/* Of three warps: what warp 1 learnt of warp 0 where they met, warp 2 learns where it meets warp 1. */
static const char handed_on[] = SHADR
  "setp.gt.u32 %p1, %r0, 31; setp.gt.u32 %p2, %r0, 63; @%p2 bra L; @!%p1 st.shared.u32 [%r1], %r0; bar.sync 1, 64; @!%p1 ret;"
  "L: bar.sync 2, 64; @!%p2 ret; ld.shared.u32 %r4, [%r1+-256];";

static const char *const malformed[] = {
  "add.u32 %r1, %r2;", "add.u32 %r1, %r2, %r99;", "add.q32 %r1, %r2, %r3;", "frob.u32 %r1, %r2;", "bra NOWHERE;",
  "add.u32 %d1, %r2, %r3;", "ld.global.u32 %r1, %d1;", "@%r1 add.u32 %r1, %r2, %r3;", "mov.u32 %r1, nothing;",
  "setp.eq.u32 %r1, %r2, %r3;", "ld.global.v4.u32 {%r1,%r2}, [%d1];", "{ add.u32 %r1, %r2, %r3;", "add.u32 %r1, %r2, %r3",
  "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2};",
  "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%f1,%f2,%f3,%f4}, %r9, 2;",
  "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r9, 0;",
  "call nothing;", "cp.async.ca.shared.global [%r1], [%d1], 5;", "atom.global.add.b32 %r1, [%d1], 1;", "add.f16.u32 %r1, %r2, %r3;",
};

void
test_fault(Test *t, const Fault *f)
{
  size_t size = strlen(HEAD) + strlen(f->body) + 64;
  char *ptx = malloc(size);
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  if (!ptx)
    return;
  snprintf(ptx, size, "%s%s%s%s", HEAD, f->body, THEN, TAIL);
  Run r = {ptx, "k", {1}, {f->threads}, 0, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == f->kind, "%s: kind %d: %s", f->name, (int)r.err.kind, r.err.message);
  CHECK(t, r.err.line == 7 && strcmp(r.err.file, "k.tile") == 0 && r.err.ptx_line > 10, "%s: at %s:%u: %s", f->name,
        r.err.file, r.err.line, r.err.message);
  CHECK(t, strstr(r.err.message, f->text) != NULL, "%s: \"%s\" has no \"%s\"", f->name, r.err.message, f->text);
  test_free(t, a), test_free(t, b);
  free(ptx);
}

void
test_legal(Test *t, const char *body, uint32_t threads)
{
  char ptx[4096];
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  snprintf(ptx, sizeof ptx, "%s%s%s", HEAD, body, TAIL);
  Run r = {ptx, "k", {3}, {threads}, 0, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == 0, "%s: %s", body, r.err.message);
  test_free(t, a), test_free(t, b);
}

static void
malformed_case(Test *t, const char *body)
{
  char ptx[4096];
  snprintf(ptx, sizeof ptx, "%s\n\n%s%s", HEAD, body, TAIL);
  Run r = {ptx, "k", {1}, {1}, 0, {0}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == SIM_E_PARSE && r.err.ptx_line >= 8, "%s: kind %d line %u: %s", body, (int)r.err.kind,
        r.err.ptx_line, r.err.message);
}

static void
argument_case(Test *t, const char *kernel, uint32_t blocks, uint32_t threads, uint32_t shared)
{
  uint64_t a = 0;
  Run r = {HEAD "bar.sync 0;" TAIL, kernel, {blocks}, {threads}, shared, {&a, &a}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == SIM_E_ARGUMENT, "%s<<<%u, %u, %u>>>: %s", kernel, blocks, threads, shared, r.err.message);
}

/* Of many failing blocks the lowest is reported, whatever the threads do. */
static void
lowest_block(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  Run r = {HEAD "mov.u32 %r1, %ctaid.x; setp.gt.u32 %p1, %r1, 20; @%p1 trap;" TAIL, "k", {200}, {32}, 0, {&a, &b}, {0}, {0}};
  CHECK(t, test_run(t, &r) == -1 && r.err.block[0] == 21, "block %u failed", r.err.block[0]);
  test_free(t, a), test_free(t, b);
}

/* The last access of an allocation, of every size, where it ends inside and where it ends behind; after another that was inside. */
static void
straddling(Test *t)
{
  static const struct { const char *load, *then; uint32_t bytes; } sizes[] = {
    {"ld.global.u8 %r1,", "", 1}, {"ld.global.u16 %h1,", "", 2}, {"ld.global.u32 %r1,", "", 4}, {"ld.global.u64 %d5,", "", 8},
    {"ld.global.v2.u32 {%r1,%r2},", "", 8}, {"ld.global.v4.u32 {%r1,%r2,%r3,%r4},", "", 16},
    {"cp.async.ca.shared.global [sh],", ", 4", 4}, {"cp.async.ca.shared.global [sh],", ", 8", 8},
    {"cp.async.cg.shared.global [sh],", ", 16", 16},
  };
  char ptx[2048];
  for (uint32_t bytes = 81; bytes < 98; bytes++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      uint32_t at = 80 / sizes[i].bytes * sizes[i].bytes, fits = at + sizes[i].bytes <= bytes;
      uint8_t *a = test_alloc(t, bytes), *b = test_alloc(t, 512);
      memset(a, 0, bytes);
      snprintf(ptx, sizeof ptx, "%s ld.global.u8 %%r9, [%%d1]; %s [%%d1+%u]%s; %s", HEAD, sizes[i].load, at, sizes[i].then, TAIL);
      Run r = {ptx, "k", {1}, {1}, 0, {&a, &b}, {0}, {0}};
      int rc = test_run(t, &r);
      CHECK(t, fits ? rc == 0 : rc == -1 && r.err.kind == SIM_E_BOUNDS, "%s%s at %u of %u: %s", sizes[i].load, sizes[i].then, at, bytes,
            r.err.message);
      test_free(t, a), test_free(t, b);
    }
}

static void
memory_calls(Test *t)
{
  SimError err;
  char *p = test_alloc(t, 100);
  CHECK(t, (uintptr_t)p % 256 == 0, "%p is not aligned", (void *)p);
  CHECK(t, sim_check_range(t->machine, p + 50, 50, &err) == 0, "a range inside");
  CHECK(t, sim_check_range(t->machine, p + 50, 51, &err) == -1 && err.kind == SIM_E_BOUNDS, "a range across the end");
  CHECK(t, sim_check_range(t->machine, p - 1, 2, &err) == -1, "a range across the start");
  CHECK(t, sim_free(t->machine, p + 4, &err) == -1, "free of a middle");
  test_free(t, p);
  CHECK(t, sim_free(t->machine, p, &err) == -1, "second free");
}

void
test_faults(Test *t)
{
  SimOptions o;
  sim_options_default(&o);
  o.max_instructions = 1000000;
  SimMachine *saved = test_machine(t, &o);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    test_fault(t, &faults[i]);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    test_legal(t, legal[i], 64);
  test_legal(t, handed_on, 96);
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
    malformed_case(t, malformed[i]);
  argument_case(t, "other", 1, 32, 0);
  argument_case(t, "k", 0x80000000u, 32, 0);
  argument_case(t, "k", 1, 2048, 0);
  argument_case(t, "k", 1, 32, 300000);
  lowest_block(t);
  straddling(t);
  memory_calls(t);
  test_machine_back(t, saved);
}
