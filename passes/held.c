/* held.c - see held.h. */
#include "held.h"

static void
note_index(Op *op, void *user)
{
  Held *h = user;
  bool index = op_is_arithmetic(op) && op->code != OP_CONVERT_LAYOUT;
  for (u32 i = 0; index && i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    index = !v || !type_is_tile(v->type) || h->index[v->id];
  }
  for (u32 i = 0; i < op->nresults; i++)
    h->index[op->results[i]->id] = index;
}

void
held_open(Held *h, Ctx *c, Func *f)
{
  *h = (Held){.c = c, .index = NEW_ARRAY(c->scratch, bool, f->nvalues)};
  func_walk(f, note_index, h);
}

u32
held_registers(const Held *h, const Value *v)
{
  bool on_demand = op_is(v, OP_SHARED_LOAD) && op_attr(v->def, AT_ON_DEMAND);
  bool whole = type_is_tile(v->type) && !type_is_ptr(v->type) && !h->index[v->id] && !on_demand;
  while (op_is(v, OP_BROADCAST) || op_is(v, OP_EXPAND_DIMS))
    v = op_operand(v->def, 0);
  return whole ? type_registers(v->type) : 0;
}

/* The last mark in b at which v is held: in front of its last use, or behind it where that is in a region. */
static u32
last_mark(const Value *v, const Block *b, u32 from)
{
  u32 to = from;
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *op = op_ancestor_in(u->user, b);
    u32 end = !op ? 0 : op->mark + (op != u->user);
    to = end > to ? end : to;
  }
  return to;
}

static void
hold(Held *h, const Value *v, const Block *b, u32 from)
{
  u32 n = held_registers(h, v);
  if (!n)
    return;
  h->across[from] += n;
  h->across[last_mark(v, b, from)] -= n;
}

u32
held_count(Held *h, Block *b, u32 around)
{
  u32 n = 1;
  for (Op *op = b->first; op; op = op->next)
    op->mark = n++;
  h->across = NEW_ARRAY(h->c->scratch, u32, n + 1);
  h->across[1] = around;
  for (u32 i = 0; i < b->nargs; i++)
    hold(h, b->args[i], b, 1);
  for (Op *op = b->first; op; op = op->next)
    for (u32 i = 0; i < op->nresults; i++)
      hold(h, op->results[i], b, op->mark + 1);
  for (u32 i = 2; i < n; i++)
    h->across[i] += h->across[i - 1];
  return n - 1;
}

bool
held_behind(const Value *v, const Op *op)
{
  return last_mark(v, op->block, 0) > op->mark;
}
