/* walk_grid.c - kernels whose programs stay (`persistent`) make one program's work of the grid after the other.
 * Needs phase tile, behind what cleans and finds boxes; keeps it.
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
 * What the grid's programs do must not depend on others having started: func_walk_obstacle says what is refused.
 *
 * A kernel that says nothing is made so (walks_by_itself) where a team will copy for products of warpgroups: a program then is alone on its
 * multiprocessor, and while its sums are stored nothing is multiplied unless the next tile's copies are there. But only if all programs
 * have as much to do, since numbers are dealt out beforehand: loops whose length depends on the program's number are better begun by
 * whoever is free. On an H200, f16, tiles of 128 x 256 x 64: 663 to 682 TFLOP/s at 4096^3 instead of 648; attention of whole rows of 4096,
 * 581 instead of 557, of the causal half less than without. */
#include "boxes.h"
#include "internal.h"
#include "roles.h"
#include "wgmma.h"

static bool
asks(const Op *op, const bool *inside, u32 from, u32 to)
{
  for (u32 i = from; i < to && i < op->noperands; i++)
    if (op_operand(op, i) && inside[op_operand(op, i)->id])
      return true;
  return false;
}

/* The same for all programs of the grid, and cheap to keep. */
static bool
stays(const Op *op, const bool *inside)
{
  if (!op_has(op, T_PURE) || op->nregions || op->code == OP_PROGRAM_ID)
    return false;
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type) || type_is_shared(op->results[i]->type))
      return false;
  return !asks(op, inside, 0, op->noperands);
}

/* ---- by itself ---- */

/* Are all tiles that the loop loads boxes, some for products of warpgroups? */
static bool
suits_team(Ctx *c, const AxisInfo *axes, const Op *loop)
{
  bool multiplies = false;
  for (const Op *op = loop->regions[0]->first; op; op = op->next) {
    if (op->code == OP_LOAD && type_is_tile(op_result(op)->type))
      return false;
    if (op->code == OP_DOT && wgmma_dot_error(c, axes, op))
      return false;
    multiplies |= op->code == OP_DOT;
  }
  return multiplies;
}

static void
stands_against(Op *op, void *user)
{
  *(bool *)user |= roles_op_obstacle(op) != NULL;
}

bool
team_expected(Ctx *c, Func *f)
{
  bool against = f->roles == CHOICE_OFF || f->max_registers || f->min_blocks || f->warps != 2 * WGMMA_GROUP;
  if (against || c->boxes != BOXES_FOUND || !target_has(c->target, F_SETMAXNREG))
    return false;
  func_walk(f, stands_against, &against);
  const AxisInfo *axes = against ? NULL : analyse_axes(f);
  OpVec loops = func_ops(c, f, OP_FOR);
  bool found = false;
  for (u32 i = 0; i < loops.len && !against; i++)
    if (loop_is_staged(loops.data[i])) {
      const Op *loop = loops.data[i];
      found = true;
      against = !suits_team(c, axes, loop) || box_ring_bytes(loop, (u32)op_int(loop, AT_STAGES, 1) + 1) <= c->target->shared_max / 2;
    }
  return found && !against;
}

/* Each loop with stages has as many iterations in all programs, and nothing else is long; behind them no tiles are loaded that want as many
 * registers as the sums, which ptxas spills beside a loop around it all. */
static bool
all_alike(Ctx *c, Func *f)
{
  enum { SUMS = 64 };
  bool *inside = NEW_ARRAY(c->scratch, bool, f->nvalues);
  for (const Op *op = f->body->first; op; op = op->next) {
    bool loads = op->code == OP_LOAD && type_is_tile(op_result(op)->type);
    if (loop_is_staged(op) ? asks(op, inside, 0, loop_first_init(op)) : op->nregions && !op_on_elements(op))
      return false;
    if (loads && type_numel(op_result(op)->type) >= SUMS * 32 * f->warps)
      return false;
    for (u32 i = 0; i < op->nresults && !stays(op, inside); i++)
      inside[op->results[i]->id] = true;
  }
  return true;
}

bool
walks_by_itself(Ctx *c, Func *f)
{
  const Op *at;
  return !f->persistent && !f->leaves && !func_walk_obstacle(f, &at) && team_expected(c, f) && all_alike(c, f);
}

/* ---- the loop ---- */

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
    if (walks_by_itself(c, f))
      f->persistent = PERSISTENT_MOST;
    const char *why = f->persistent && !func_walks(f) ? func_walk_obstacle(f, &at) : NULL;
    if (why)
      diag(c, at ? at->span : f->span, E_PERSISTENT, f->name, why);
    else if (f->persistent && !func_walks(f))
      walk(c, f);
  }
}
