/* spills.h - how much of what ptxas puts in memory for want of registers is believed.
 *
 * What ptxas 13.0, and the driver's (580), make of a kernel that keeps thousands of bytes of its registers in memory is wrong now and
 * then. Of 39 kernels without a branch or a barrier, with 4 to 15 KB of spills, five stored pairs of registers whose second half was
 * another number's by then (exclusive_scans of tests/kernels: 40 x 140 in one warp; their machine code was gone through by hand).
 * Optimised less (-O1), none of 32 with more than 2 KB did, and they spilled less. So what spills more than twice what a thread's
 * registers hold is made again so.
 */
#ifndef TILERT_SPILLS_H
#define TILERT_SPILLS_H
#include <stdint.h>
#include <string.h>

enum { SPILLS_TRUSTED = 2048, SPILLS_LEVEL = 1 };   /* bytes a thread; the level of optimisation beyond */

/* bytes: of local memory, which a text that has arrays there may want for these. */
static inline int
spills_distrusted(uint64_t bytes, const char *text)
{
  return bytes > SPILLS_TRUSTED && !strstr(text, ".local ");
}
#endif
