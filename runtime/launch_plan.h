/* launch_plan.h - private: what of packing a launch is the same for all launches of a kernel, found out when it is loaded.
 *
 * An argument has a step: which values that are given in the commonest way go, and where they are put. A step takes only what pack_arg of
 * launch.c takes, and packs the same bytes; whatever it leaves, pack_arg is asked about, which also says what is wrong. So steps know
 * nothing of messages, and need not know all that is right. Likewise for a grid's axes and for pairs of pointers.
 */
#ifndef TILERT_LAUNCH_PLAN_H
#define TILERT_LAUNCH_PLAN_H
#include <float.h>
#include <math.h>
#include <string.h>
#include "grid.h"
#include "tilert.h"

struct TilertKernel;

/* Of an argument that is given as `given`, a TilertArgKind: its 64 bits v are taken if v - least <= span and no bit of mask is set, and
 * `size` bytes of them are put at `offset`. A pointer may be given as a buffer, too. */
typedef struct PackStep {
  uint8_t given, size;
  uint16_t offset;
  uint32_t mask;
  uint64_t least, span;
} PackStep;
enum { STEP_NEVER = 255, STEP_F32 = 255 };     /* as `given`: pack_arg does it all; as `size`: a float, which becomes an f32 */

/* An axis of a grid: a number, or argument `arg` divided by 2^shift, rounded up. */
typedef struct GridStep { uint8_t is_arg, arg, shift; uint32_t number; } GridStep;

enum { PLAN_PAIRS = 16 };

/* What every launch reads comes first, and near together: between two launches the driver has used the caches for itself. */
typedef struct LaunchPlan {
  uint64_t never;                              /* bit i: step i is STEP_NEVER */
  uint32_t block[3], shared;
  GridStep axis[3];
  uint8_t plain;                               /* every argument is one parameter, and there are no others */
  uint8_t knows_grid;                          /* the kernel has a grid clause, and axis says it */
  uint8_t fixed_grid;                          /* of no argument */
  uint8_t persistent, clustered;               /* as the manifest says */
  uint8_t views;                               /* there are some */
  uint8_t fits_all;                            /* tilert_kernel_fits need not look */
  uint8_t npairs, all_pairs;                   /* all_pairs 0: there are more, or others */
  uint8_t direct;                              /* launch_direct may make it: nothing but steps, grid and pairs is to be looked at */
  uint8_t between[PLAN_PAIRS][2];              /* parameters that are to be different pointers */
  uint16_t pair[PLAN_PAIRS][2];                /* and their offsets */
  PackStep step[TILERT_MAX_PARAMS];            /* of arguments */
} LaunchPlan;

/* The plan of a kernel whose layout, grid and device are known. */
void launch_plan(struct TilertKernel *k);
/* Let the step take fewer values. 0: it cannot tell these from others. */
int step_only(PackStep *s, uint64_t least, uint64_t span);
int step_multiples(PackStep *s, uint64_t of);

/* Put v where the step says; 0: it does not take it, and nothing is put. */
static inline int
step_put(const PackStep *s, uint64_t v, unsigned char *blob)
{
  unsigned char *at = blob + s->offset;
  if (v - s->least > s->span || v & s->mask)
    return 0;
  switch (s->size) {                           /* little endian */
  case 8: memcpy(at, &v, 8); return 1;
  case 4: memcpy(at, &v, 4); return 1;
  case 2: memcpy(at, &v, 2); return 1;
  case 1: memcpy(at, &v, 1); return 1;
  default: break;
  }
  double d;
  memcpy(&d, &v, sizeof d);
  if (!(fabs(d) <= (double)FLT_MAX))           /* how others become an f32 is a matter of dtype.c */
    return 0;
  const float f = (float)d;
  memcpy(at, &f, sizeof f);
  return 1;
}
#endif
