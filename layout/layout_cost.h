/* layout_cost.h - what a conversion costs, in issue slots of one warp, roughly; private to layout*.c.
 *
 * Shared memory and shuffles go through one unit per multiprocessor that serves one wavefront per cycle,
 * while each of four schedulers issues one instruction: a wavefront is worth four slots, and a shuffle is a
 * wavefront.
 */
#ifndef TILEC_LAYOUT_COST_H
#define TILEC_LAYOUT_COST_H

enum {
  COST_MOVE = 1,       /* a register that changes its number: often free in the end, never more */
  COST_SELECT = 1,
  COST_SHUFFLE = 4,
  COST_WAVEFRONT = 4,
  COST_ACCESS = 1,     /* issuing a shared access, beside its wavefronts */
  COST_BARRIER = 20
};
#endif
