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
/* The text of a file in the tests' folder, malloc'd; NULL if there is none. */
char *test_file(Test *t, const char *name);

typedef struct Run {
  const char *ptx, *kernel;
  uint32_t grid[3], block[3], shared;
  const void *arg[8];        /* pointers to the values */
  SimStats stats;
  SimError err;
} Run;
/* Load, launch, unload. 0 when all went well. */
int test_run(Test *t, Run *r);

void test_kernels(Test *t);
void test_ops(Test *t);
void test_warp(Test *t);
void test_faults(Test *t);
void test_fuzz(Test *t);
#endif
