/* verify_launch.c - check_<ID> of what orders a launch and those beside it. */
#include "verify.h"

/* Passes do loads of loops ahead of their iterations, so where it stands in the order of the program has to be certain. */
bool
check_WAIT_FOR_PREVIOUS(Verifier *v, const Op *op)
{
  return !block_loop_depth(op->block) || verify_fail(v, op, "it stands in no loop");
}

bool
check_LET_NEXT_START(Verifier *v, const Op *op)
{
  return true;
}
