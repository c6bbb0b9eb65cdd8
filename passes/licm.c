/* licm.c - hoist pure loop-invariant ops out of for and while.
 * Needs any phase; keeps it. Inner loops first, so that an op leaves as many loops as it can in one run.
 *
 * A loop may run zero times, so only ops that may run for nothing go: no memory, no promise (`hint` may hold
 * inside the loop only; so may `bounded`), no integer division unless its divisor is a constant other than zero, no map with a
 * `while`. Loops with hoist = 0 keep all. */
#include "internal.h"
#include "remarks.h"

static bool may_speculate(const Op *op);

/* A map that ends for every element: its `for`s do, of a `while` that is not known. */
static bool
map_may_speculate(const Block *b)
{
  i64 step;
  for (const Op *op = b->first; op; op = op->next) {
    bool steps = op->code == OP_FOR && value_const_int(OPERAND(op, FOR, step), &step) && step > 0;
    if (!steps && op->code != OP_IF && !op_has(op, T_TERM) && !may_speculate(op))
      return false;
    for (u32 r = 0; r < op->nregions; r++)
      if (!map_may_speculate(op->regions[r]))
        return false;
  }
  return true;
}

static bool
may_speculate(const Op *op)
{
  if (op->code == OP_MAP)
    return map_may_speculate(op->regions[0]);
  if (!op_has(op, T_PURE) || op->code == OP_HINT || op->code == OP_BOUNDED || !op->nresults)
    return false;
  if ((op->code != OP_DIV && op->code != OP_REM) || type_is_float(op_result(op)->type))
    return true;
  i64 d;
  return value_const_int(OPERAND(op, BINARY, b), &d) && d != 0;
}

static bool
invariant(const Op *op, const Op *loop)
{
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && value_within(op_operand(op, i), loop))
      return false;
  return true;
}

/* What a reduction's region takes from around it. */
static bool
regions_invariant(const Op *op, const Op *loop)
{
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      for (u32 i = 0; i < x->noperands; i++)
        if (op_operand(x, i) && value_block(op_operand(x, i)) != op->regions[r] && value_within(op_operand(x, i), loop))
          return false;
  return true;
}

static void
hoist_from(Ctx *c, Block *b, Op *loop)
{
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    if (!invariant(op, loop) || !regions_invariant(op, loop))
      continue;
    if (may_speculate(op))
      op_move_before(op, loop);
    else
      remark_stays(c, op, loop);
  }
}

static void
licm_block(Ctx *c, Block *b)
{
  for (Op *op = b->first; op; op = op->next) {
    for (u32 r = 0; r < op->nregions; r++)
      licm_block(c, op->regions[r]);
    for (u32 r = 0; op_is_loop(op) && op_int(op, AT_HOIST, 1) && r < op->nregions; r++)
      hoist_from(c, op->regions[r], op);
  }
}

void
pass_licm(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    licm_block(c, m->funcs.data[i]->body);
}
