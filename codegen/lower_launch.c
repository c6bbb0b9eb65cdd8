/* lower_launch.c - launches that overlap (PTX ISA, "griddepcontrol"). Where targets have none, launches run in order, and there is nothing
 * to wait for.
 *
 * Every thread that runs the op waits, so what each does behind it is ordered without a barrier. The instruction is one that LLVM takes
 * as writing any memory: it moves no access across. */
#include "gen.h"

static void
emit(Gen *g, PtxId id)
{
  PtxArgs none = {0};
  if (target_has(g->target, F_GRIDDEP))
    ptx_emit(g, id, &none, NULL);
}

void
lower_WAIT_FOR_PREVIOUS(Gen *g, const Op *op)
{
  emit(g, PTX_GRID_WAIT);
}

void
lower_LET_NEXT_START(Gen *g, const Op *op)
{
  emit(g, PTX_GRID_NEXT);
}
