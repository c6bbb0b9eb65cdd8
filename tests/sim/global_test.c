/* global_test.c - global memory: races within a program and between programs, orders that forbid them, and what nobody wrote.
 * Every fault is run on one, two and eight host threads and must be the same. The guilty instruction follows ".loc 1 7 3". */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

#define AT "\n.loc 1 7 3\n"
#define THEN "\n.loc 1 9 1\n"
#define BLOCK "mov.u32 %r10, %ctaid.x; setp.eq.u32 %p7, %r10, 0; setp.eq.u32 %p8, %r0, 0;\n"
/* Thread 0 of program 0 goes on at FIRST, that of program 1 at OTHER, and nobody else anywhere. */
#define TWO BLOCK "@!%p8 ret; @%p7 bra FIRST; bra OTHER;\n"
#define SHADR "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r1, %r1, %r2;\n"
#define POLL(name, load) name ": " load " setp.eq.u32 %p1, %r1, 0; @%p1 bra " name ";"

enum { WORDS = 128 };

typedef struct Case { const char *name; SimErrorKind kind; uint32_t blocks, threads; const char *body, *text; } Case;

static const Case faults[] = {
  /* within a program */
  {"two threads write one word", SIM_E_RACE, 1, 64, AT "st.global.u32 [%d1], %r0;", "thread (1,0,0) writes parameter 0[0] of 128"},
  {"read after a write of another warp", SIM_E_RACE, 1, 64, ".loc 1 5 1\nst.global.u32 [%d3], %r0; xor.b32 %r1, %r0, 32; mad.wide.u32 %d5, %r1, 4, %d1;"
   "setp.gt.u32 %p1, %r0, 31;" AT "@%p1 ld.global.u32 %r2, [%d5];",
   "thread (32,0,0) reads parameter 0[0] of 128 4-byte elements, which thread (0,0,0) wrote at k.tile:5, and there is no barrier"},
  {"write after a read of another warp", SIM_E_RACE, 1, 64, "xor.b32 %r1, %r0, 32; mad.wide.u32 %d5, %r1, 4, %d1;\n.loc 1 6 1\nld.global.u32 %r2, [%d5];"
   "setp.gt.u32 %p1, %r0, 31;" AT "@%p1 st.global.u32 [%d3], %r0;", "which thread (0,0,0) read at k.tile:6"},
  {"neighbour lane without a warp barrier", SIM_E_RACE, 1, 32, "st.global.u32 [%d3], %r0; xor.b32 %r1, %r0, 1; mad.wide.u32 %d5, %r1, 4, %d1;" AT
   "ld.global.u32 %r2, [%d5];", "thread (0,0,0) reads parameter 0[1]"},
  {"a lane writes what all read", SIM_E_RACE, 1, 32, "ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r0, 31;" AT "@%p1 st.global.u32 [%d1], %r0;",
   "thread (31,0,0) writes parameter 0[0]"},
  {"the first lane writes what all read", SIM_E_RACE, 1, 32, "ld.global.u32 %r1, [%d1];" AT "@!%p1 st.global.u32 [%d1+0], 5;", "another thread of its warp read"},
  {"a lane writes shared memory that all read", SIM_E_RACE, 1, 32, "setp.eq.u32 %p1, %r0, 31; @%p1 st.shared.u32 [sh], 7; bar.warp.sync -1;"
   "ld.shared.u32 %r1, [sh];" AT "@%p1 st.shared.u32 [sh], %r0;", "thread (31,0,0) writes 4 bytes at shared+0x0"},
  {"readers in several warps, one of them unordered", SIM_E_RACE, 1, 96, "ld.global.u32 %r1, [%d1]; setp.gt.u32 %p1, %r0, 63; @%p1 bra END; bar.sync 1, 64;"
   "setp.eq.u32 %p2, %r0, 0;" AT "@%p2 st.global.u32 [%d1], 5; END:", "writes parameter 0[0] of 128 4-byte elements, which thread (64,0,0) read"},
  {"readers in several warps, the first of them unordered", SIM_E_RACE, 1, 96, "ld.global.u32 %r1, [%d1]; setp.lt.u32 %p1, %r0, 32; @%p1 bra END; bar.sync 1, 64;"
   "setp.eq.u32 %p1, %r0, 64;" AT "@%p1 st.global.u32 [%d1], %r1; END:", "thread (64,0,0) writes parameter 0[0] of 128 4-byte elements, which thread (0,0,0) read"},
  {"bytes of a word that meet", SIM_E_RACE, 1, 32, "mad.wide.u32 %d5, %r0, 1, %d1; st.global.u8 [%d5], %h1; bar.warp.sync -1; st.global.u8 [%d5], %h1;"
   AT "ld.global.u16 %h2, [%d1+2];", "reads parameter 0[1] of 256 2-byte elements"},
  {"overlapping vectors", SIM_E_RACE, 1, 64, "mad.wide.u32 %d5, %r0, 4, %d1; and.b64 %d5, %d5, -16;" AT "st.global.v4.u32 [%d5], {%r0,%r0,%r0,%r0};",
   "thread (1,0,0) writes parameter 0[0..3]"},
  {"plain read of atomics", SIM_E_RACE, 1, 64, "red.global.add.u32 [%d1], 1; setp.gt.u32 %p1, %r0, 31;" AT "@%p1 ld.global.u32 %r1, [%d1];", "reads parameter 0[0]"},
  /* between programs */
  {"two programs write one word", SIM_E_RACE, 2, 32, BLOCK "setp.eq.u32 %p1, %r0, 0;" AT "@%p1 st.global.u32 [%d1], %r10;",
   "thread (0,0,0) of program (1,0,0) writes parameter 0[0] of 128 4-byte elements, which thread (0,0,0) of program (0,0,0) wrote at k.tile:7, and nothing orders"},
  {"even if they write the same", SIM_E_RACE, 2, 1, AT "st.global.u32 [%d1], 5;", "program (1,0,0)"},
  {"a program reads what an earlier one writes", SIM_E_RACE, 2, 1, TWO "FIRST: .loc 1 5 1\nst.global.u32 [%d1+8], 1; ret; OTHER:" AT "ld.global.u32 %r1, [%d1+8];",
   "thread (0,0,0) of program (1,0,0) reads parameter 0[2] of 128 4-byte elements, which thread (0,0,0) of program (0,0,0) wrote at k.tile:5"},
  {"a program reads what a later one writes", SIM_E_RACE, 2, 1, TWO "FIRST: .loc 1 5 1\nld.global.u32 %r1, [%d1+8]; ret; OTHER:" AT "st.global.u32 [%d1+8], 1;",
   "of program (1,0,0) writes parameter 0[2] of 128 4-byte elements, which thread (0,0,0) of program (0,0,0) read at k.tile:5"},
  {"many programs read and the last writes", SIM_E_RACE, 40, 32, BLOCK "ld.global.u32 %r1, [%d3]; setp.eq.u32 %p1, %r10, 39; bar.sync 0;" AT
   "@%p1 st.global.u32 [%d3], %r0;", "of program (39,0,0) writes"},
  {"read, add, write", SIM_E_RACE, 4, 1, AT "ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;", "of program (1,0,0) reads"},
  {"atomic against a plain write", SIM_E_RACE, 2, 1, TWO "FIRST: red.global.add.u32 [%d1], 1; ret; OTHER:" AT "st.global.u32 [%d1], 1;", "program (1,0,0) writes"},
  {"plain read of another's atomics", SIM_E_RACE, 2, 1, TWO "FIRST: red.global.add.u32 [%d1], 1; ret; OTHER:" AT "ld.global.u32 %r1, [%d1];", "program (1,0,0) reads"},
  {"atomics of the block's scope", SIM_E_RACE, 2, 1, AT "atom.relaxed.cta.global.add.u32 %r1, [%d1], 1;", "program (1,0,0) writes"},
  {"volatile of another size", SIM_E_RACE, 2, 1, TWO "FIRST: red.global.add.u32 [%d1], 1; ret; OTHER:" AT "ld.volatile.global.u64 %d5, [%d1];", "program (1,0,0) reads"},
  {"flag without a fence", SIM_E_RACE, 2, 1, TWO "FIRST: .loc 1 5 1\nst.global.u32 [%d1+4], 1; st.relaxed.gpu.global.u32 [%d1], 1; ret; OTHER:"
   POLL("W", "ld.acquire.gpu.global.u32 %r1, [%d1];") AT "ld.global.u32 %r2, [%d1+4];", "which thread (0,0,0) of program (0,0,0) wrote at k.tile:5"},
  {"volatile flag without a fence", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1+4], 1; st.volatile.global.u32 [%d1], 1; ret; OTHER:"
   POLL("W", "ld.volatile.global.u32 %r1, [%d1];") "membar.gl;" AT "ld.global.u32 %r2, [%d1+4];", "reads parameter 0[1]"},
  {"no fence behind the look at the flag", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1+4], 1; membar.gl; st.volatile.global.u32 [%d1], 1; ret; OTHER:"
   POLL("W", "ld.volatile.global.u32 %r1, [%d1];") AT "ld.global.u32 %r2, [%d1+4];", "reads parameter 0[1]"},
  {"a fence for the block only", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1+4], 1; membar.cta; st.volatile.global.u32 [%d1], 1; ret; OTHER:"
   POLL("W", "ld.volatile.global.u32 %r1, [%d1];") "membar.gl;" AT "ld.global.u32 %r2, [%d1+4];", "reads parameter 0[1]"},
  {"a release for the block only", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1+4], 1; st.release.cta.global.u32 [%d1], 1; ret; OTHER:"
   AT POLL("W", "ld.acquire.gpu.global.u32 %r1, [%d1];") "ld.global.u32 %r2, [%d1+4];", "reads parameter 0[0]"},
  {"relaxed atomic as a flag", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1+4], 1; atom.global.exch.b32 %r1, [%d1], 1; ret; OTHER:"
   POLL("W", "atom.acquire.gpu.global.or.b32 %r1, [%d1], 0;") AT "ld.global.u32 %r2, [%d1+4];", "reads parameter 0[1]"},
  {"flag before other warps are done", SIM_E_RACE, 2, 64, BLOCK "@!%p7 bra OTHER; setp.eq.u32 %p1, %r0, 32; .loc 1 5 1\n@%p1 st.global.u32 [%d1+4], 1;"
   "@%p8 st.release.gpu.global.u32 [%d1], 1; ret; OTHER: @!%p8 ret;" POLL("W", "ld.acquire.gpu.global.u32 %r1, [%d1];") AT
   "ld.global.u32 %r2, [%d1+4];", "which thread (32,0,0) of program (0,0,0) wrote at k.tile:5"},
  {"a lock without its fences", SIM_E_RACE, 4, 1, "L: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;" AT "ld.global.u32 %r2, [%d1+4];"
   "add.u32 %r2, %r2, 1; st.global.u32 [%d1+4], %r2; atom.global.exch.b32 %r1, [%d1], 0;", "program (1,0,0) reads parameter 0[1]"},
  /* asynchronous copies */
  {"copy from what another warp writes", SIM_E_RACE, 1, 64, SHADR "st.global.u32 [%d3], %r0; xor.b32 %r3, %r0, 32; mad.wide.u32 %d5, %r3, 4, %d1; setp.gt.u32 %p1, %r0, 31;"
   AT "@%p1 cp.async.ca.shared.global [%r1], [%d5], 4;", "thread (32,0,0) reads parameter 0[0]"},
  {"copy from what another program writes", SIM_E_RACE, 2, 1, TWO "FIRST: st.global.u32 [%d1], 1; ret; OTHER: mov.u32 %r1, sh;" AT
   "cp.async.ca.shared.global [%r1], [%d1], 4; cp.async.wait_all;", "of program (1,0,0) reads parameter 0[0]"},
  {"write to a copy's source before its wait", SIM_E_RACE, 1, 32, SHADR AT "cp.async.ca.shared.global [%r1], [%d3], 4;\n.loc 1 8 1\nst.global.u32 [%d3], %r0; cp.async.wait_all;",
   "the asynchronous copy of thread (0,0,0) from parameter 0[0] of 128 4-byte elements had not been waited for when that was written at k.tile:8"},
  {"write by another behind a barrier, before the wait", SIM_E_RACE, 1, 64, SHADR "xor.b32 %r3, %r0, 32; mad.wide.u32 %d5, %r3, 4, %d1;" AT
   "cp.async.ca.shared.global [%r1], [%d3], 4;\n.loc 1 8 1\nbar.sync 0; st.global.u32 [%d5], %r0; bar.sync 0; cp.async.wait_all;", "when that was written at k.tile:8"},
  {"write by another behind the wait, without a barrier", SIM_E_RACE, 1, 64, SHADR "xor.b32 %r3, %r0, 32; mad.wide.u32 %d5, %r3, 4, %d1; bar.sync 0;"
   AT "cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.wait_all; setp.gt.u32 %p1, %r0, 31; @%p1 st.global.u32 [%d5], %r0;", "parameter 0[0]"},
  {"copy in flight across a barrier", SIM_E_ASYNC, 1, 64, SHADR "cp.async.ca.shared.global [%r1], [%d3], 4; bar.sync 0;" AT "ld.shared.u32 %r3, [%r1];", "not been waited for"},
};

/* b is memory that nobody wrote. */
static const Case unwritten[] = {
  {"nobody wrote it", SIM_E_UNINIT, 1, 32, AT "ld.global.u32 %r1, [%d4];", "thread (0,0,0) reads parameter 1[0] of 128 4-byte elements, which nobody has written"},
  {"half of it", SIM_E_UNINIT, 1, 32, "st.global.u16 [%d4], %h1;" AT "ld.global.u32 %r1, [%d4];", "reads parameter 1[0]"},
  {"one lane too many", SIM_E_UNINIT, 1, 32, "setp.lt.u32 %p1, %r0, 17; @%p1 st.global.u32 [%d4], %r0; bar.warp.sync -1;" AT "ld.global.u32 %r1, [%d4];",
   "thread (17,0,0) reads parameter 1[17]"},
  {"atomic on what nobody wrote", SIM_E_UNINIT, 1, 1, AT "red.global.add.u32 [%d4], 1;", "parameter 1[0]"},
  {"copy of what nobody wrote", SIM_E_UNINIT, 1, 32, SHADR AT "cp.async.ca.shared.global [%r1], [%d4], 4;", "reads parameter 1[0]"},
  {"another program may write it", SIM_E_UNINIT, 2, 1, TWO "OTHER: st.global.u32 [%d2], 1; ret; FIRST:" AT "ld.global.u32 %r1, [%d2];", "parameter 1[0]"},
};

/* Run with 4 programs of 64 threads; %r10 is the program, %p8 thread 0. */
static const char *const legal[] = {
  "st.global.u32 [%d3], %r0; ld.global.u32 %r1, [%d3]; st.global.u32 [%d3], %r1;" "ret;",        /* one program: see below */
  "red.global.add.u32 [%d1], 1; atom.global.add.u32 %r1, [%d1+4], 1; ld.volatile.global.u32 %r2, [%d1];",
  "atom.global.add.u32 %r1, [%d1], 1; st.volatile.global.u32 [%d1], %r1; ld.relaxed.sys.global.u32 %r1, [%d1];",
  /* bytes of words, halves of words */
  "mad.lo.u32 %r1, %r10, 64, %r0; mad.wide.u32 %d5, %r1, 1, %d1; st.global.u8 [%d5], %h1; ld.global.u8 %h2, [%d5];",
  "mad.lo.u32 %r1, %r10, 64, %r0; mad.wide.u32 %d5, %r1, 2, %d1; st.global.u16 [%d5], %h1; ld.global.u16 %h2, [%d5];",
  /* everybody reads everything */
  "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d1]; ld.global.u32 %r5, [%d3]; ld.global.u8 %h1, [%d1+5];",
  /* the same value by the same instruction, within a program */
  "mad.wide.u32 %d5, %r10, 4, %d1; st.global.u32 [%d5], 5;",
  /* turns by barriers: write, read the neighbour's, write again */
  "mad.lo.u32 %r1, %r10, 16, 0; and.b32 %r2, %r0, 15; setp.lt.u32 %p1, %r0, 16; add.u32 %r3, %r1, %r2; mad.wide.u32 %d5, %r3, 4, %d1; xor.b32 %r3, %r3, 1; mad.wide.u32 %d6, %r3, 4, %d1;"
  "@%p1 st.global.u32 [%d5], %r0; bar.sync 0; ld.global.u32 %r4, [%d6]; bar.sync 0; @%p1 st.global.u32 [%d5], %r4;",
  "shl.b32 %r1, %r10, 5; and.b32 %r2, %r0, 31; setp.lt.u32 %p1, %r0, 32; @!%p1 ret; add.u32 %r3, %r1, %r2; mad.wide.u32 %d5, %r3, 4, %d1; xor.b32 %r3, %r3, 3; mad.wide.u32 %d6, %r3, 4, %d1;"
  "st.global.u32 [%d5], %r0; bar.warp.sync -1; ld.global.u32 %r4, [%d6]; bar.warp.sync -1; st.global.u32 [%d5], %r4;",
  /* a flag: program 0 writes for the others */
  "@!%p8 bra WAIT; @!%p7 bra WAIT; st.global.u32 [%d1+4], 9; st.release.gpu.global.u32 [%d1], 1; WAIT:" POLL("W", "ld.acquire.gpu.global.u32 %r1, [%d1];") "ld.global.u32 %r2, [%d1+4];",
  "@!%p8 bra WAIT; @!%p7 bra WAIT; st.global.u32 [%d1+4], 9; membar.gl; st.volatile.global.u32 [%d1], 1; WAIT:" POLL("W", "ld.volatile.global.u32 %r1, [%d1];") "membar.gl; ld.global.u32 %r2, [%d1+4];",
  "@!%p7 bra WAIT; mad.wide.u32 %d5, %r0, 4, %d1; st.global.u32 [%d5+64], %r0; bar.sync 0; fence.acq_rel.gpu; @%p8 atom.relaxed.gpu.global.exch.b32 %r1, [%d1], 1; WAIT: @!%p8 bra BAR;"
  POLL("W", "atom.relaxed.gpu.global.or.b32 %r1, [%d1], 0;") "fence.acq_rel.gpu; BAR: bar.sync 0; ld.global.u32 %r2, [%d1+64]; ld.global.u32 %r3, [%d1+316];",
  /* a lock */
  "@!%p8 ret; L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ld.global.u32 %r2, [%d1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%d1+4], %r2;"
  "st.release.gpu.global.u32 [%d1], 0;",
  "L: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; membar.gl; ld.global.u32 %r2, [%d1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%d1+4], %r2;"
  "membar.gl; atom.global.exch.b32 %r1, [%d1], 0;",
  /* a barrier of the grid, then everybody reads what everybody wrote, another, and writes again */
  "mad.lo.u32 %r1, %r10, 16, 16; mad.wide.u32 %d5, %r1, 4, %d1; @%p8 st.global.u32 [%d5], %r10; mov.u32 %r9, 0;"
  "AGAIN: add.u32 %r9, %r9, 4; bar.sync 0; @!%p8 bra MET; atom.acq_rel.gpu.global.add.u32 %r1, [%d1], 1; G: atom.acquire.gpu.global.add.u32 %r1, [%d1], 0; setp.lt.u32 %p1, %r1, %r9; @%p1 bra G; MET: bar.sync 0;"
  "setp.gt.u32 %p2, %r9, 4; @%p2 bra LAST; ld.global.u32 %r2, [%d1+64]; ld.global.u32 %r3, [%d1+128]; ld.global.u32 %r4, [%d1+192]; ld.global.u32 %r5, [%d1+256]; bra AGAIN; LAST: @%p8 st.global.u32 [%d5], %r2;",
  /* a chain: each program waits for the one before and adds to its sum */
  "@!%p8 ret; mad.wide.u32 %d5, %r10, 8, %d1; mov.u32 %r2, 1; @%p7 bra MINE; C: ld.acquire.gpu.global.u32 %r1, [%d5+-8]; setp.eq.u32 %p1, %r1, 0; @%p1 bra C; ld.global.u32 %r2, [%d5+-4]; MINE:"
  "add.u32 %r2, %r2, 1; st.global.u32 [%d5+4], %r2; st.release.gpu.global.u32 [%d5], 1;",
  /* an asynchronous copy, its source written again behind wait and barrier */
  SHADR "@!%p7 ret; cp.async.ca.shared.global [%r1], [%d3], 4; cp.async.wait_all; bar.sync 0; xor.b32 %r3, %r0, 32; mad.wide.u32 %d5, %r3, 4, %d1; st.global.u32 [%d5], %r0;",
  /* an elected thread writes what all will read behind a barrier, again and again */
  "@!%p7 ret; mov.u32 %r9, 0; R: @%p8 st.global.u32 [%d1], %r9; bar.sync 0; ld.global.u32 %r1, [%d1]; bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 5; @%p1 bra R;",
};

static void
run_case(Test *t, const Case *c, bool written, SimError *err)
{
  size_t size = strlen(HEAD) + strlen(c->body) + 64;
  char *ptx = malloc(size);
  uint32_t *a = test_alloc(t, 4 * WORDS), *b = test_alloc(t, 4 * WORDS);
  if (!ptx)
    exit(2);
  memset(a, 0, 4 * WORDS);
  memset(b, 0, 4 * WORDS);
  if (!written)
    sim_mark(t->machine, b, 4 * WORDS, 0);
  snprintf(ptx, size, "%s%s%s%s", HEAD, c->body, THEN, TAIL);
  Run r = {ptx, "k", {c->blocks}, {c->threads}, 0, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  *err = r.err;
  CHECK(t, rc == (c->kind ? -1 : 0) && err->kind == c->kind, "%s: kind %d: %s", c->name, (int)err->kind, err->message);
  test_free(t, a), test_free(t, b);
  free(ptx);
}

static void
fault_case(Test *t, const Case *c, bool written, const int *threads, size_t n)
{
  SimError first = {0}, err;
  for (size_t i = 0; i < n; i++) {
    SimOptions o;
    sim_options_default(&o);
    o.threads = threads[i];
    o.max_instructions = 1000000;
    SimMachine *saved = test_machine(t, &o);
    run_case(t, c, written, &err);
    test_machine_back(t, saved);
    if (i == 0) {
      first = err;
      CHECK(t, err.line == 7 && strstr(err.message, c->text) != NULL, "%s: line %u: \"%s\" has no \"%s\"", c->name, err.line, err.message, c->text);
      continue;
    }
    CHECK(t, strcmp(first.message, err.message) == 0 && !memcmp(first.block, err.block, sizeof err.block) &&
          !memcmp(first.thread, err.thread, sizeof err.thread), "%s on %d threads: %s", c->name, threads[i], err.message);
  }
}

static void
legal_case(Test *t, size_t i)
{
  char body[2400];
  SimError err;
  snprintf(body, sizeof body, "%s%s", BLOCK, legal[i]);
  Case c = {legal[i], SIM_OK, i == 0 ? 1 : 4, 64, body, ""};
  run_case(t, &c, true, &err);
}

/* The same kernel again and again: what an earlier launch did is of the past. */
static void
later_launches(Test *t)
{
  uint32_t *a = test_alloc(t, 512), *b = test_alloc(t, 512);
  memset(a, 0, 512);
  Run r = {HEAD "xor.b32 %r1, %r0, 32; mad.wide.u32 %d5, %r1, 4, %d1; ld.global.u32 %r2, [%d1]; bar.sync 0; st.global.u32 [%d5], %r2;" TAIL, "k", {1}, {64}, 0, {&a, &b}, {0}, {0}};
  for (int i = 0; i < 5; i++)
    CHECK(t, test_run(t, &r) == 0, "launch %d: %s", i, r.err.message);
  test_free(t, a), test_free(t, b);
}

/* Memory is what it was when the launch that failed is repeated: the first program to see the fault sees what it would have seen. */
static void
put_back(Test *t)
{
  Case c = {"in place, and a race of the last two", SIM_E_RACE, 60, 32, BLOCK "and.b32 %r1, %r10, 63; add.u32 %r1, %r1, 4; mad.wide.u32 %d5, %r1, 4, %d1; setp.eq.u32 %p1, %r10, 59;"
            "@%p1 sub.s64 %d5, %d5, 4;" AT "@%p8 ld.global.u32 %r2, [%d5]; add.u32 %r2, %r2, 1;\n.loc 1 7 3\n@%p8 st.global.u32 [%d5], %r2;", "of program (59,0,0) reads parameter 0[62]"};
  static const int threads[] = {1, 2, 3, 8};
  fault_case(t, &c, true, threads, 4);
}

/* An access across the end of the allocation that was used last. */
static void
across_the_end(Test *t)
{
  float *a = test_alloc(t, 404), *b = test_alloc(t, 512);
  Run r = {HEAD "ld.global.u32 %r1, [%d1]; ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%d1+400];" TAIL, "k", {1}, {1}, 0, {&a, &b}, {0}, {0}};
  int rc = test_run(t, &r);
  CHECK(t, rc == -1 && r.err.kind == SIM_E_BOUNDS && strstr(r.err.message, "reads parameter 0[100..103] of 101"), "%s", r.err.message);
  test_free(t, a), test_free(t, b);
}

void
test_global(Test *t)
{
  static const int threads[] = {1, 2, 8};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    fault_case(t, &faults[i], true, threads, 3);
  for (size_t i = 0; i < sizeof unwritten / sizeof *unwritten; i++)
    fault_case(t, &unwritten[i], false, threads, 3);
  for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
    legal_case(t, i);
  later_launches(t);
  put_back(t);
  across_the_end(t);
}
