/* deal.h - which of the grid's programs each of those that stay does. Part of walk_grid. */
#ifndef TILEC_PASSES_DEAL_H
#define TILEC_PASSES_DEAL_H
#include "internal.h"

/* How many iterations the loops with stages of a kernel's body have, of one program and another. */
typedef enum Lengths {
  ALIKE,                     /* as many */
  BY_FIRST,                  /* as program_id(0) says, by arithmetic with what is the same for all */
  UNLIKE,                    /* as memory or other indices say, or there is more that may be long */
} Lengths;
Lengths deal_lengths(Ctx *c, Func *f);

/* A loop in front of the kernel's body, in which `number` is that of a program of the grid, and `first` (NULL: as `number` says) its
 * program_id(0), by which the lengths of loops are known without dividing `number`. */
typedef struct Deal { Op *loop; Value *number, *first; } Deal;
Deal deal_in_turn(Func *f);        /* i, i + n, i + 2 n, ... */
Deal deal_in_pairs(Func *f);
#endif
