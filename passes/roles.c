/* roles.c - see roles.h.
 *
 * The team that copies does the kernel again, without what it does to memory: dce leaves of that the loops and ifs around the copies, and
 * what their coordinates are computed from. So these must not depend on what the kernel reads from memory, nor on tiles. What the two
 * teams share is buffers and mbarriers, which the caller makes in front of the op; all else is each team's own. */
#include "roles.h"

/* ---- what may be done twice ---- */

typedef struct Closure { Ctx *c; bool *seen; VEC(Value *) work; const char *why; } Closure;

static void
ask(Closure *x, Value *v)
{
  if (!v || x->seen[v->id])
    return;
  x->seen[v->id] = true;
  vec_push(x->c->scratch, &x->work, v);
}

static void
ask_operands(Closure *x, const Op *op, u32 from, u32 to)
{
  for (u32 i = from; i < to && i < op->noperands; i++)
    ask(x, op_operand(op, i));
}

/* What decides whether, and how often, op is reached. */
static void
ask_around(Closure *x, const Op *op)
{
  for (const Op *up = op->block->parent; up; up = up->block->parent)
    if (up->code == OP_FOR)
      ask_operands(x, up, 0, loop_first_init(up));
    else if (up->code == OP_IF)
      ask(x, OPERAND(up, IF, c));
    else
      x->why = "it is not in a kernel's own loops and ifs alone";
}

static void
ask_carried(Closure *x, Op *loop, u32 k)
{
  ask(x, loop_init(loop, k));
  ask(x, loop_next(loop, k));
  ask_operands(x, loop, 0, loop_first_init(loop));
}

static void
follow(Closure *x, Value *v)
{
  Op *op = v->def ? v->def : v->block->parent;
  if (!op || (!v->def && op->code == OP_FOR && v->index < loop_first_arg(op)))
    return;
  if (op->code == OP_FOR) {
    ask_carried(x, op, v->def ? v->index : v->index - loop_first_arg(op));
  } else if (op->code == OP_IF && v->def) {
    ask(x, OPERAND(op, IF, c));
    for (u32 r = 0; r < 2; r++)
      ask(x, region_yields(op, r, v->index));
  } else if (!op_has(op, T_PURE) || op->nregions || type_is_tile(v->type)) {
    x->why = "where its copies go depends on tiles, or on what is read from memory";
  } else {
    ask_operands(x, op, 0, op->noperands);
  }
}

static bool
computed_apart(Closure *x, const Op *load)
{
  ask_around(x, load);
  ask_operands(x, load, SLOT(TENSOR_LOAD, at), load->noperands);
  while (x->work.len && !x->why)
    follow(x, x->work.data[--x->work.len]);
  return !x->why;
}

typedef struct Others { const Op *loop; const char *why; } Others;

static void
look_at(Op *op, void *user)
{
  Others *o = user;
  bool result = op->nresults && !value_unused(op_result(op));
  if (op_uses_shared(op))
    o->why = "the kernel uses shared memory or orders accesses itself";
  else if (op->code == OP_FOR && op != o->loop && op_int(op, AT_STAGES, 1) >= 2)
    o->why = "the kernel has another loop with stages";
  else if (!op_removable(op) && !op->nregions && !op_has(op, T_TERM) && result)
    o->why = "what the kernel does to memory has a result";
}

const char *
roles_obstacle(Ctx *c, Func *f, const Op *loop)
{
  Closure x = {.c = c, .seen = NEW_ARRAY(c->scratch, bool, f->nvalues)};
  Others o = {.loop = loop};
  func_walk(f, look_at, &o);
  for (const Op *op = loop->regions[0]->first; op && !o.why; op = op->next)
    if (op->code == OP_TENSOR_LOAD && !computed_apart(&x, op))
      o.why = x.why;
  return o.why;
}

/* ---- parting ---- */

/* Registers of a thread that multiplies and of one that copies, where eight warps do the one and four the other: all that a multiprocessor
 * has. With fewer than 40, ptxas spills in a team that copies. */
enum { MULTIPLYING = 232, COPYING = 40 };

/* Effects go, and what has none afterwards with dce. */
static void
drop_effects(Block *b)
{
  for (Op *op = b->last, *before; op; op = before) {
    before = op->prev;
    for (u32 r = 0; r < op->nregions; r++)
      if (!op_on_elements(op))
        drop_effects(op->regions[r]);
    if (!op->nregions && !op_has(op, T_TERM) && !op_removable(op))
      op_remove(op);
  }
}

Op *
roles_split(Ctx *c, Func *f, Value ***map)
{
  i64 warps[] = {f->warps, COPYING_WARPS}, own[] = {MULTIPLYING, COPYING};
  Op *end = f->body->last;
  Builder b = builder_before(end);
  b.span = end->span;
  Op *teams = ir_warp_specialize(&b, 2, warps);
  op_set_ints(teams, AT_REGISTERS, own, 2);
  while (f->body->first != teams)
    op_move_to_end(f->body->first, teams->regions[0]);
  Builder first = builder_at_end(f, teams->regions[0]), second = builder_at_end(f, teams->regions[1]);
  second.span = first.span = end->span;
  *map = NEW_ARRAY(c->scratch, Value *, f->nvalues);
  for (const Op *op = teams->regions[0]->first; op; op = op->next)
    op_clone(&second, op, *map);
  ir_yield(&first, 0, NULL);
  ir_yield(&second, 0, NULL);
  drop_effects(teams->regions[1]);
  f->warps += COPYING_WARPS;
  return teams;
}
