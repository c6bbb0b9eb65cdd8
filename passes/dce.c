/* dce.c - drop what nobody needs: unused pure ops, loads and loops without effects, dead carried values,
 * dead if results.
 * Needs any phase; keeps it.
 *
 * Liveness starts at the effects and flows backwards; a carried value is one thing in all its places (initial
 * value, arguments, yielded values, result), so a value that only feeds itself around a loop is dead.
 * op->mark is 1 when live. */
#include "internal.h"

typedef struct Dce { bool *live; VEC(Value *) work; Arena *arena; } Dce;

static void
need(Dce *d, Value *v)
{
  if (!v || d->live[v->id])
    return;
  d->live[v->id] = true;
  vec_push(d->arena, &d->work, v);
}

static void
need_range(Dce *d, const Op *op, u32 from, u32 to)
{
  for (u32 i = from; i < to && i < op->noperands; i++)
    need(d, op_operand(op, i));
}

static void
need_region_ends(Dce *d, Op *op)
{
  for (u32 r = 0; r < op->nregions; r++) {
    Op *end = region_end(op, r);
    if (end && op_on_elements(op))
      need_range(d, end, 0, end->noperands);
    if (end && end->code == OP_CONDITION)
      need(d, OPERAND(end, CONDITION, c));
    if (end)
      end->mark = 1;
  }
}

/* op stays: with what it cannot do without, and with the ops around it. */
static void
need_op(Dce *d, Op *op)
{
  for (; op && !op->mark; op = op->block->parent) {
    op->mark = 1;
    switch (op->code) {
    case OP_FOR: case OP_WHILE: need_range(d, op, 0, loop_first_init(op)); break;
    default:
      if (!op_has(op, T_TERM))
        need_range(d, op, 0, op->noperands);
    }
    need_region_ends(d, op);
  }
}

static void
need_carried(Dce *d, Op *loop, u32 k)
{
  need(d, loop_init(loop, k));
  need(d, loop->results[k]);
  for (u32 r = 0; r < loop->nregions; r++) {
    need(d, loop_arg(loop, r, k));
    need(d, region_yields(loop, r, k));
  }
}

static void
need_def(Dce *d, Value *v)
{
  if (!v->def) {
    Op *p = v->block->parent;
    if (!p)
      return;
    need_op(d, p);
    if (op_is_loop(p) && v->index >= loop_first_arg(p))
      need_carried(d, p, v->index - loop_first_arg(p));
    return;
  }
  need_op(d, v->def);
  if (op_is_loop(v->def))
    need_carried(d, v->def, v->index);
  for (u32 r = 0; v->def->code == OP_IF && r < 2; r++)
    need(d, op_operand(region_end(v->def, r), v->index));
}

static void
mark_roots(Dce *d, Block *b)
{
  for (Op *op = b->first; op; op = op->next) {
    for (u32 r = 0; r < op->nregions; r++)
      mark_roots(d, op->regions[r]);
    bool asks = !op->nregions || op_has(op, T_SIDE);   /* others live by what is in their regions */
    bool root = op_has(op, T_TERM) ? !b->parent : asks && !op_removable(op);
    if (root)
      need_op(d, op);
  }
}

static void
drop_carried(Dce *d, Op *loop)
{
  for (u32 k = loop->nresults; k-- > 0;) {
    if (d->live[loop->results[k]->id])
      continue;
    for (u32 r = 0; r < loop->nregions; r++) {
      Op *end = region_end(loop, r);
      op_remove_operand(end, yield_first(end) + k);
    }
    op_remove_operand(loop, loop_first_init(loop) + k);
  }
}

static void
drop_if_results(Dce *d, Op *op)
{
  for (u32 k = op->nresults; k-- > 0;)
    if (!d->live[op->results[k]->id]) {
      for (u32 r = 0; r < 2; r++)
        op_remove_operand(region_end(op, r), k);
      op_remove_result(op, k);
    }
}

/* Arguments and results go last: until the dead ops of the body are gone they have uses. */
static void
drop_places(Dce *d, Op *loop)
{
  for (u32 k = loop->nresults; k-- > 0;) {
    if (d->live[loop->results[k]->id])
      continue;
    for (u32 r = 0; r < loop->nregions; r++)
      block_remove_arg(loop->regions[r], loop_first_arg(loop) + k);
    op_remove_result(loop, k);
  }
}

/* Backwards, so that uses go before what they use. */
static void
sweep(Dce *d, Block *b)
{
  for (Op *op = b->last, *prev; op; op = prev) {
    prev = op->prev;
    if (!op->mark) {
      op_remove(op);
      continue;
    }
    if (op_is_loop(op))
      drop_carried(d, op);
    if (op->code == OP_IF)
      drop_if_results(d, op);
    for (u32 r = op->nregions; r-- > 0;)
      sweep(d, op->regions[r]);
    if (op_is_loop(op))
      drop_places(d, op);
  }
}

static void
unmark(Op *op, void *user)
{
  op->mark = 0;
}

void
func_dce(Ctx *c, Func *f)
{
  Dce d = {.live = NEW_ARRAY(c->scratch, bool, f->nvalues), .arena = c->scratch};
  func_walk(f, unmark, NULL);
  mark_roots(&d, f->body);
  while (d.work.len)
    need_def(&d, d.work.data[--d.work.len]);
  sweep(&d, f->body);
}

void
block_drop_unused(Block *b)
{
  for (Op *op = b->last, *before; op; op = before) {
    before = op->prev;
    bool used = op_has(op, T_TERM) || !op_removable(op);
    for (u32 i = 0; i < op->nresults; i++)
      used = used || !value_unused(op->results[i]);
    if (!used)
      op_remove(op);
  }
}

void
pass_dce(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    func_dce(c, m->funcs.data[i]);
}
