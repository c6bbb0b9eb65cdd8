/* carried.h - values that ops leave behind for the next of them that is reached. */
#ifndef TILEC_PASSES_CARRIED_H
#define TILEC_PASSES_CARRIED_H
#include "internal.h"

enum { CARRIED_OPS = 16, CARRIED_MOST = 2 };

/* n numbers (i32) that start as `first` where the team of these ops starts, and go from each of them to the one reached next, through
 * all loops and ifs around. */
typedef struct Carried {
  Op *op[CARRIED_OPS];                      /* of one team, in program order, none inside another */
  u32 nops, n;
  Value *in[CARRIED_OPS][CARRIED_MOST];     /* in front of each op */
  Value *first[CARRIED_MOST];
  const char *const *names;
  bool moves;                               /* what an op leaves behind somebody takes */
} Carried;
void carried_begin(Carried *s, u32 nops, Op *const *ops, u32 n, const i64 *first, const char *const *names);
/* What the numbers are behind op i: out[i * n], ...; not needed, and without effect, if nobody takes them (`moves`). */
void carried_end(Carried *s, Value *const *out);
#endif
