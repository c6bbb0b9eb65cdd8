/* walk_grid.c - kernels whose programs stay (`persistent`) make one program's work of the grid after the other.
 * Needs phase tile, behind what cleans; keeps it.
 *
 * A launch of such a kernel starts as many programs as the device has room for (runtime/launch.c), or fewer if the grid has fewer:
 *
 *   BODY (program_id axis)   ==>   for number = resident_id .. N, num_residents { BODY (program_id number, axis) }
 *
 * where N is how many programs the grid has, whose extents (num_programs) are those that the caller gave. Scalars that are the same in all
 * programs stay in front, and so does the wait for the launch in front, which is late enough for what stood before it. Where the body
 * has a loop with stages, both become one if they can (flatten_loops.c), so that copies for the next
 * number are under way while this one's results are stored. The rest of the pipeline sees an ordinary loop, with its rules: memory of one
 * program is reached in program order, buffers begin anew with each turn, rings of copies go on (carried.h), and where a team copies, it
 * has the loop, too, and is ahead of those that multiply by as much as the ring holds, over the ends of tiles (roles.h).
 *
 * What the grid's programs do must not depend on others having started: func_walk_obstacle says what is refused. */
#include "internal.h"

/* The same for all programs of the grid, and cheap to keep. */
static bool
stays(const Op *op, const bool *inside)
{
  if (!op_has(op, T_PURE) || op->nregions || op->code == OP_PROGRAM_ID)
    return false;
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type) || type_is_shared(op->results[i]->type))
      return false;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && inside[op_operand(op, i)->id])
      return false;
  return true;
}

static Op *
make_loop(Func *f)
{
  Builder b = builder_before(f->body->first);
  b.span = f->span;
  const Type *index = type_scalar(f->module->ctx, DT_I32);
  Value *all = ir_num_programs(&b, 0);
  for (int axis = 1; axis < 3; axis++)
    all = ir_binary(&b, OP_MUL, all, ir_num_programs(&b, axis));
  Value *lo = op_result(op_create(&b, OP_RESIDENT_ID, 0, NULL, 1, &index, 0));
  Value *step = op_result(op_create(&b, OP_NUM_RESIDENTS, 0, NULL, 1, &index, 0));
  return ir_for(&b, lo, all, step, 0, NULL);
}

static void
give_number(Op *op, void *user)
{
  if (op->code == OP_PROGRAM_ID)
    op_add_operand(op, user);
}

static bool
has_stages(const Op *loop)
{
  bool found = false;
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    found |= loop_is_staged(op);
  return found;
}

static void
walk(Ctx *c, Func *f)
{
  Op *loop = make_loop(f);
  bool *inside = NEW_ARRAY(c->scratch, bool, f->nvalues);
  loop_counter(loop)->name = "number";
  for (Op *op = loop->next, *next; !op_has(op, T_TERM); op = next) {
    next = op->next;
    if (stays(op, inside) || op->code == OP_WAIT_FOR_PREVIOUS) {
      op_move_before(op, loop);
      continue;
    }
    for (u32 i = 0; i < op->nresults; i++)
      inside[op->results[i]->id] = true;
    op_move_to_end(op, loop->regions[0]);
  }
  Builder end = builder_at_end(f, loop->regions[0]);
  end.span = f->span;
  ir_yield(&end, 0, NULL);
  block_walk(loop->regions[0], give_number, loop_counter(loop));
  if (has_stages(loop) && !flatten_loop(c, f, loop))
    func_dce(c, f);
}

void
pass_walk_grid(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    const Op *at = NULL;
    const char *why = f->persistent && !func_walks(f) ? func_walk_obstacle(f, &at) : NULL;
    if (why)
      diag(c, at ? at->span : f->span, E_PERSISTENT, f->name, why);
    else if (f->persistent && !func_walks(f))
      walk(c, f);
  }
}
