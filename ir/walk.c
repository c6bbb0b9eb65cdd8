/* walk.c - persistent kernels: whether one program may do what several of a grid do, one after the other. */
#include "ir.h"
#include <string.h>

bool
func_walks(const Func *f)
{
  return f->persistent && func_has(f, OP_RESIDENT_ID);
}

/* ---- what stands against it ---- */

typedef struct Look { const Op *at; const char *why; } Look;

static bool
in_while(const Op *op)
{
  for (; op && op->code != OP_WHILE; op = op->block->parent)
    ;
  return op;
}

/* Each turn of the loop may see what another program has done since. */
static bool
sees_others(const Op *op)
{
  if (op->code == OP_LOAD)
    return op_int(op, AT_VOLATILE, 0);
  return (op->code == OP_ATOMIC_RMW || op->code == OP_ATOMIC_CAS) && !value_unused(op_result(op));
}

static bool
asks_hardware(const Op *op)
{
  return (op->code == OP_PTX || op->code == OP_PTX_EFFECT) && strstr(op_str(op, AT_TEXT, ""), "ctaid");
}

static void
look(Op *op, void *user)
{
  Look *l = user;
  const char *why = NULL;
  switch (op->code) {
  case OP_WARP_SPECIALIZE: why = "it has teams: a kernel with teams goes on to the next tile in each of them itself"; break;
  case OP_MBARRIER_INIT: why = "its mbarriers would begin again with each tile while copies may be under way"; break;
  case OP_TMA_LOAD: case OP_TMA_STORE:
    why = "it starts copies of boxes itself, of which none may be under way when the next tile begins";
    break;
  case OP_WAIT_FOR_PREVIOUS:
    why = op->block->parent ? "it waits for the launch in front in some programs only, and others would do their work behind that" : NULL;
    break;
  default:
    why = in_while(op) && sees_others(op) ? "it waits in a loop for what other programs do, and those may only run when it has ended"
          : asks_hardware(op)             ? "its inline PTX asks the hardware which program it is"
                                          : NULL;
  }
  if (why && !l->why)
    *l = (Look){op, why};
}

const char *
func_walk_obstacle(Func *f, const Op **at)
{
  Look l = {0};
  if (func_cluster(f) > 1)
    l.why = "its programs come in clusters";
  else
    func_walk(f, look, &l);
  *at = l.at;
  return l.why;
}
