/* sim_test.h - what the simulator's tests share: a failure count, loading and launching PTX. */
#ifndef SIM_TEST_H
#define SIM_TEST_H
#include "sim.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Test {
  SimMachine *machine;
  const char *folder;        /* where the .ptx files are */
  int checks, failures;
} Test;

bool test_check(Test *t, bool ok, const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define CHECK(t, ok, ...) test_check(t, ok, __FILE__, __LINE__, __VA_ARGS__)
/* Device memory; ends the process when there is none. */
void *test_alloc(Test *t, size_t bytes);
void test_free(Test *t, void *p);
/* Another machine with these options takes the place of the present one, which it returns; and that one comes back. Ends the process when
 * there is no memory. */
SimMachine *test_machine(Test *t, const SimOptions *o);
void test_machine_back(Test *t, SimMachine *before);
/* The text of a file in the tests' folder, malloc'd; NULL if there is none. */
char *test_file(Test *t, const char *name);

typedef struct Run {
  const char *ptx, *kernel;
  uint32_t grid[3], block[3], shared;
  const void *arg[8];        /* pointers to the values */
  SimStats stats;
  SimError err;
  uint32_t cluster[3];
  int large_clusters;
} Run;
/* Load, launch, unload. 0 when all went well. */
int test_run(Test *t, Run *r);

/* A kernel k(a, b): %d1, %d2 are a and b, %r0 is tid.x, %d3 and %d4 are the thread's words of a and b. */
#define HEAD \
  ".version 8.6\n.target sm_100a\n.address_size 64\n.file 1 \"k.tile\"\n" \
  ".extern .shared .align 16 .b8 dyn[];\n.visible .entry k(.param .u64 a, .param .u64 b) {\n" \
  ".reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %d<32>; .reg .pred %p<9>; .reg .f32 %f<32>;\n" \
  ".shared .align 16 .b8 sh[4096]; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; mov.u32 %r0, %tid.x;\n" \
  "mad.wide.u32 %d3, %r0, 4, %d1; mad.wide.u32 %d4, %r0, 4, %d2;\n"
#define TAIL "ret; }\n"

/* A planted fault: the faulty instruction follows AT. a and b have 128 words. */
#define AT "\n.loc 1 7 3\n"
#define THEN "\n.loc 1 9 1\n"
typedef struct Fault { const char *name; SimErrorKind kind; uint32_t threads; const char *body, *text; } Fault;
void test_fault(Test *t, const Fault *f);
/* A body that three blocks run without a fault. */
void test_legal(Test *t, const char *body, uint32_t threads);

void test_kernels(Test *t);
void test_ops(Test *t);
void test_warp(Test *t);
void test_faults(Test *t);
void test_fuzz(Test *t);
void test_global(Test *t);
void test_calls(Test *t);
void test_turns(Test *t);
void test_report(Test *t);
void test_decode(Test *t);
void test_foreign(Test *t);
void test_mbarrier(Test *t);
void test_bulk(Test *t);
void test_wgmma(Test *t);
void test_hopper(Test *t);
void test_cluster(Test *t);
#endif
