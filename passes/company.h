/* company.h - boxes that are added to a tile on its way out come, and the tile leaves, by a team of its own. Part of pipeline_loops. */
#ifndef TILEC_PASSES_COMPANY_H
#define TILEC_PASSES_COMPANY_H
#include "internal.h"

enum { COMPANY_MOST = 32 };

/* The pieces of a program's tile, in order: a box that is loaded, and behind it the box that is stored, of the same form. */
typedef struct Company {
  Block *block;              /* all of them stand in it */
  Op *load[COMPANY_MOST], *store[COMPANY_MOST];
  u32 n;                     /* 0: the tile has none, or not all of its pieces have */
  u32 slots;                 /* buffers through which they come and go; 0: there are none */
} Company;

/* Of the blocks in home, a kernel's body or a region of its warp_specialize. */
Company company_find(Ctx *c, Block *home);
/* Buffers that they want at least: two, of which one is filled while the other is emptied. */
u32 company_least(const Company *x);
u64 company_bytes(Ctx *c, const Company *x, u32 slots);
/* Buffers for as many pieces as have room beside so many bytes: all teams take the same number of turns with each. */
u32 company_slots(Ctx *c, const Company *x, u64 beside);
/* A region that was cloned from that of a team that multiplies, and whose only effects are stores in pieces, is left what these need. */
void company_keep_places(Ctx *c, Block *own);
/* Such a region `own` of teams brings and stores pieces for
 * the n regions `multiply`: what these load and store goes through the same buffers. */
void company_hand_over(Ctx *c, Op *teams, Block *own, u32 n, Block *const *multiply, u32 slots);
#endif
