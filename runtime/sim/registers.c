/* registers.c - setmaxnreg: the registers of a block, which its warps hand over to each other (PTX ISA, "setmaxnreg").
 *
 * How many a thread has at the start is the compiler's choice, which the text bounds by .maxnreg or, with the threads, .minnctapersm: the
 * most that fits is taken. Without either the instruction does nothing, as compilers then leave it out. What warps give up goes to the
 * block's pool, and a warp that asks for more than is there waits. */
#include "internal.h"

enum { REGISTERS = 65536, MOST = 255, STEP = 8 };

uint32_t
registers_at_start(const Unit *u, uint32_t threads)
{
  uint32_t n = u->maxnreg ? u->maxnreg : u->minctas ? REGISTERS / (threads * u->minctas) : 0;
  return (n > MOST ? MOST : n) / STEP * STEP;
}

const Warp *
warpgroup_of(Block *b, Warp *w, const Insn *in)
{
  uint32_t first = w->index / GROUP * GROUP;
  if (first + GROUP <= b->nwarps)
    return &b->warp[first];
  sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "warp %u is in no warpgroup: the block has %u warps", w->index, b->nwarps);
  return NULL;
}

/* Warps of a group take part in all changes together. */
static int
check_group(Block *b, Warp *w, const Insn *in)
{
  const Warp *first = warpgroup_of(b, w, in);
  if (!first)
    return -1;
  for (uint32_t i = 0; i < GROUP; i++)
    if (first[i].changes < w->changes)
      return sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "warp %u changes its registers, and warp %u of its warpgroup has not done so before",
                       w->index, first[i].index);
  return 0;
}

int
setmaxnreg_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t n = in->registers.count;
  bool more = in->registers.more;
  if (!b->launch->registers)
    return 0;
  if (check_group(b, w, in))
    return -1;
  if (more ? n < w->registers_held : n > w->registers_held)
    return sim_fault(b, w, in, 0, SIM_E_TRAP, 0, "setmaxnreg.%s to %u, where a thread of warp %u has %u registers",
                     more ? "inc" : "dec", n, w->index, w->registers_held);
  if (more && n - w->registers_held > b->registers_free) {
    w->park_on = ON_REGISTERS;
    return PARK;
  }
  b->registers_free += w->registers_held - n;
  w->registers_held = n;
  w->changes++;
  w->change_pc = (uint32_t)(in - b->kernel->code);
  b->cluster->events++;
  if (!more)
    wake_waiters(b, ON_REGISTERS);
  return 0;
}

void
registers_wait_text(const Block *b, const Warp *w, const Insn *in, Text *t)
{
  char at[200];
  text_add(t, "at setmaxnreg (%s) for %u registers a thread, of which it has %u, and for one warp %u more are free",
           sim_loc_text(b, (uint32_t)(in - b->kernel->code), at, sizeof at), in->registers.count, w->registers_held, b->registers_free);
}

int
registers_ended(Block *b)
{
  for (uint32_t i = 0; i < b->nwarps; i++) {
    Warp *w = &b->warp[i], *first = &b->warp[i / GROUP * GROUP];
    if (w->changes != first->changes) {
      Warp *did = w->changes > first->changes ? w : first;
      return sim_fault(b, did, &b->kernel->code[did->change_pc], 0, SIM_E_TRAP, 0,
                       "warp %u changes its registers, and warp %u of its warpgroup does not", did->index,
                       did == w ? first->index : w->index);
    }
  }
  return 0;
}
