/* carried.h - values that an op leaves behind for the next time that it is reached. */
#ifndef TILEC_PASSES_CARRIED_H
#define TILEC_PASSES_CARRIED_H
#include "internal.h"

enum { CARRIED_DEPTH = 64, CARRIED_MOST = 2 };

/* n numbers (i32) that start as `first` where op's team starts, and go through all loops and ifs around op. */
typedef struct Carried {
  Op *op;
  u32 n;
  Value *in[CARRIED_MOST];                  /* in front of op */
  Op *around[CARRIED_DEPTH];                /* innermost first */
  Value *outside[CARRIED_DEPTH][CARRIED_MOST];
  u32 depth;
  bool again;                               /* op may be reached again */
} Carried;
/* False, and nothing is done, where op stands too deep. The outermost op around gets its results in carried_end. */
bool carried_begin(Carried *s, Op *op, u32 n, const i64 *first, const char *const *names);
/* What the numbers are behind op; not needed, and without effect, if op is reached once (`again`). */
void carried_end(Carried *s, Value *const *out);
#endif
