/* walk_grid.c - kernels whose programs stay (`persistent`) make one program's work of the grid after the other.
 * Needs phase tile, behind what cleans and finds boxes; keeps it.
 *
 * A launch of such a kernel starts as many programs as the device has room for (runtime/launch.c), or fewer if the grid has fewer:
 *
 *   BODY (program_id axis)   ==>   for number = resident_id .. N, num_residents { BODY (program_id number, axis) }
 *
 * or, where some programs have more to do than others and program_id(0) says how much, in pairs (deal.c).
 * N is how many programs the grid has, whose extents (num_programs) are those that the caller gave. Scalars that are the same in all
 * programs stay in front, and so does the wait for the launch in front, which is late enough for what stood before it. Where the body
 * has a loop with stages, both become one if they can (flatten_loops.c), so that copies for the next
 * number are under way while this one's results are stored. The rest of the pipeline sees an ordinary loop, with its rules: memory of one
 * program is reached in program order, buffers begin anew with each turn, rings of copies go on (carried.h), and where a team copies, it
 * has the loop, too, and is ahead of those that multiply by as much as the ring holds, over the ends of tiles (roles.h).
 *
 * What the grid's programs do must not depend on others having started: func_walk_obstacle says what is refused.
 *
 * A kernel that says nothing is made so (walks_by_itself) where a team will copy for products of warpgroups: a program then is alone on its
 * multiprocessor, and while its sums are stored nothing is multiplied unless the next tile's copies are there. But only if the work can be
 * shared out evenly, since numbers are dealt out beforehand: loops whose length depends on memory, or on other indices than
 * program_id(0), are better begun by whoever is free. On an H200, f16, tiles of 128 x 256 x 64: 663 to 682 TFLOP/s at 4096^3 instead of
 * 648; attention of whole rows of 4096, 581 instead of 557. */
#include "boxes.h"
#include "deal.h"
#include "internal.h"
#include "roles.h"
#include "wgmma.h"

/* The same for all programs of the grid, and cheap to keep. */
static bool
stays(const Op *op, const bool *inside)
{
  if (!op_has(op, T_PURE) || op->nregions || op->code == OP_PROGRAM_ID)
    return false;
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type) || type_is_shared(op->results[i]->type))
      return false;
  return !op_asks(op, inside, 0, op->noperands);
}

/* ---- by itself ---- */

/* Are all tiles that the loop loads boxes, but for what stays with the products, some for products of warpgroups? */
static bool
suits_team(Ctx *c, const AxisInfo *axes, const Op *loop)
{
  bool multiplies = false;
  for (const Op *op = loop->regions[0]->first; op; op = op->next) {
    if (op->code == OP_LOAD && !roles_leaves_load(op))
      return false;
    if (op_is_dot(op) && wgmma_dot_error(c, axes, op))
      return false;
    multiplies |= op_is_dot(op);
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
  bool against = f->roles == CHOICE_OFF || f->max_registers || f->min_blocks || !roles_multiply(f);
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
      bool fills = f->pingpong == CHOICE_ON || box_ring_bytes(loop, (u32)op_int(loop, AT_STAGES, 1) + 1, true) > c->target->shared_max / 2;
      against = !suits_team(c, axes, loop) || !fills;
    }
  return found && !against;
}

/* Is a tile, but for this one, loaded whole outside of loops that wants as many registers as the sums? ptxas spills it beside a loop around
 * it all. (Boxes come in pieces, store_pieces.c.) */
static bool
loads_much(const Func *f, const Op *but)
{
  enum { SUMS = 64 };
  for (const Op *op = f->body->first; op; op = op->next)
    if (op != but && op->code == OP_LOAD && type_is_tile(op_result(op)->type) && type_numel(op_result(op)->type) >= SUMS * 32 * f->warps)
      return true;
  return false;
}

bool
stays_but_for(Ctx *c, Func *f, const Op *load)
{
  const Op *at;
  bool even = !loads_much(f, load) && deal_lengths(c, f) != UNLIKE;
  return even && !f->persistent && !f->leaves && !func_walk_obstacle(f, &at) && team_expected(c, f);
}

bool
walks_by_itself(Ctx *c, Func *f)
{
  return stays_but_for(c, f, NULL);
}

/* ---- the loop ---- */

static void
give_number(Op *op, void *user)
{
  const Deal *d = user;
  if (op->code != OP_PROGRAM_ID)
    return;
  op_add_operand(op, d->number);
  if (d->first && op_int(op, AT_AXIS, 0) == 0)
    value_replace_uses(op_result(op), d->first);
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
  Deal d = deal_lengths(c, f) == BY_FIRST ? deal_in_pairs(f) : deal_in_turn(f);
  Op *loop = d.loop;
  bool *inside = NEW_ARRAY(c->scratch, bool, f->nvalues);
  d.number->name = "number";
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
  block_walk(loop->regions[0], give_number, &d);
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
