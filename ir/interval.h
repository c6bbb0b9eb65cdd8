/* interval.h - bounds of integer values: between which two numbers every element lies. */
#ifndef TILEC_INTERVAL_H
#define TILEC_INTERVAL_H
#include "ir.h"

/* At UNBOUNDED or beyond, either way: no bound. */
#define UNBOUNDED (INT64_C(1) << 61)
typedef struct Interval { i64 lo, hi; } Interval;

/* What the elements of v may be, whatever the iteration. Signed arithmetic is taken not to overflow, as a pointer's offset is. *budget:
 * values that may still be looked at (expressions that share their parts are as large as one likes); at 0 it knows the type only. */
Interval interval_of(const Value *v, u32 *budget);

Interval interval_add(Interval a, Interval b);
Interval interval_scale(Interval a, i64 k);
Interval interval_mul(Interval a, Interval b);
static inline bool interval_has(Interval a, i64 v) { return a.lo <= v && v <= a.hi; }
#endif
