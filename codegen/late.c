/* late.c - loads that the store to shared memory behind them carries out.
 *
 * A tile that is loaded only to go through shared memory, to another layout or into a buffer, could be all in flight before its first
 * register is stored: as many registers as it has elements, where an access is narrower than a register. Beside what a thread holds
 * already (the sums of a product, for one) that is more than there are. So such a load waits: the store asks for its registers, WINDOW
 * of them ahead of those that it stores. ptxas may start loads earlier, as far as registers go.
 *
 * What stands between the two ops must not write global memory. Barriers there may be what orders the load in front of another thread's
 * write behind the store: so all threads must meet again behind the store before anything is written. A conversion's threads meet
 * within it, as each reads what others stored.
 */
#include "gen.h"

enum { FEWEST = 64 };              /* registers in flight from which on a load waits */

/* Of instructions that the program wrote itself nobody knows what they write; nor what another team does that is waited for, or waits. */
static bool
lets_wait(const Op *op)
{
  bool writes = op_global_effects(op) & FX_WRITE || op->code == OP_PTX_EFFECT || op_orders_teams(op);
  bool boxes = op->code == OP_TMA_STORE || op->code == OP_TMA_WAIT || op->code == OP_WAIT_FOR_PREVIOUS;
  return !writes && !boxes && !(op->nregions && !op_on_elements(op)) && !op_acquires(op);
}

/* The conversion or buffer store that takes all of the tile, in one piece: threads differ in what they store of pieces. */
static bool
goes_through_shared(const Op *user)
{
  bool convert = user->code == OP_CONVERT_LAYOUT && !strcmp(op_str(user, AT_KIND, "regs"), "shared") && !scratch_pieces(user);
  return convert || user->code == OP_SHARED_STORE;
}

/* All threads meet behind a buffer's store, before one of them may write global memory. */
static bool
meets_behind(Gen *g, const Op *store)
{
  const Op *op = store->next;
  while (op && op->code != OP_BARRIER && !scratch_bytes(g->c, op) && lets_wait(op))
    op = op->next;
  return op && (op->code == OP_BARRIER || scratch_bytes(g->c, op));
}

bool
late_fits(Gen *g, const Op *load, u32 registers)
{
  const Value *v = op_result(load);
  const Op *user = value_use_count(v) == 1 ? v->uses->user : NULL;
  if (registers < FEWEST || !user || user->block != load->block || !goes_through_shared(user) || layout_free_bits(v->type->layout, IN_REG))
    return false;
  for (const Op *op = load->next; op != user; op = op->next)
    if (!op || !lets_wait(op))
      return false;
  return user->code == OP_CONVERT_LAYOUT || meets_behind(g, user);
}

void
late_add(Gen *g, const Late *late)
{
  Late *copy = NEW(g->arena, Late);
  *copy = *late;
  g->late[op_result(late->op)->id] = copy;
}

const Late *
late_of(Gen *g, const Value *v)
{
  return g->late[v->id];
}

void
late_fetch(Gen *g, const Late *late, u32 reg, Val *values)
{
  u32 own = late->map ? late->map[reg] : reg;
  if (!late->regs[own])
    late->load(g, late, own);
  values[reg] = late->regs[own];
}
