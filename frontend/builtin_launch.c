/* builtin_launch.c - the launches in front of this one and behind it, where they may overlap. */
#include "sema.h"

Val
builtin_wait_for_previous(Lower *L, Call *c)
{
  if (block_loop_depth(L->b.block))
    return call_error(L, c, c->span, "it waits once, in front of what needs it: not in a loop, of which iterations are done ahead");
  L->b.span = c->span;
  op_create(&L->b, OP_WAIT_FOR_PREVIOUS, 0, NULL, 0, NULL, 0);
  return val_void(c->span);
}

Val
builtin_let_next_start(Lower *L, Call *c)
{
  L->b.span = c->span;
  op_create(&L->b, OP_LET_NEXT_START, 0, NULL, 0, NULL, 0);
  return val_void(c->span);
}
