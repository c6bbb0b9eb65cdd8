/* timing.h - what the programs share that time launches: a clock, the order of a median, errors, and functions of the driver. */
#ifndef TILEC_BENCH_TIMING_H
#define TILEC_BENCH_TIMING_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "tilert.h"

typedef int (*LaunchFn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*LoadFn)(void **, const void *);
typedef int (*GetFn)(void **, void *, const char *);

/* Microseconds. */
static inline double
now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* For qsort. */
static inline int
by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static inline void
check(int status, const TilertError *e)
{
  if (!status)
    return;
  fprintf(stderr, "%s: %s\n", program_invocation_short_name, e->message);
  exit(1);
}
#endif
