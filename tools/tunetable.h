/* tunetable.h - a tuning for people: a progress bar, and a table of what was measured. */
#ifndef TILEC_TUNETABLE_H
#define TILEC_TUNETABLE_H
#include <stdio.h>
#include "jit.h"

/* For TilejitTuneOptions.progress: one line of standard error, rewritten; gone when all is done. */
void tunetable_progress(void *user, const char *what, size_t done, size_t total);
/* Fastest first, then what was rejected and why. is_sim: the figures are warp instructions. */
void tunetable_print(FILE *to, const TilejitTuning *t, int is_sim);
#endif
