/* held.c - see held.h. */
#include "held.h"
#include <string.h>

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

/* The op behind which user has done with v: a product reads registers until it is waited for. */
static const Op *
done_with(const Op *user, const Value *v)
{
  const Op *to = user;
  while (to->code == OP_WGMMA && (OPERAND(user, WGMMA, a) == v || OPERAND(user, WGMMA, meta) == v) && op_result(to)->uses)
    to = op_result(to)->uses->user;
  return to->code == OP_WGMMA_WAIT && to->block == user->block ? to : user;
}

/* The last mark in b at which v is held: in front of its last use, or behind it where that is in a region. */
static u32
last_mark(const Value *v, const Block *b, u32 from)
{
  u32 to = from;
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *until = done_with(u->user, v), *op = op_ancestor_in((Op *)until, b);
    u32 end = !op ? 0 : op->mark + (op != until);
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

typedef VEC(Value *) Guests;

/* The same with values from outside that end in b. */
static u32
count_with(Held *h, Block *b, u32 around, const Guests *guests)
{
  u32 n = 1;
  for (Op *op = b->first; op; op = op->next)
    op->mark = n++;
  h->across = NEW_ARRAY(h->c->scratch, u32, n + 1);
  h->across[1] = around;
  for (u32 i = 0; i < guests->len; i++)
    hold(h, guests->data[i], b, 1);
  for (u32 i = 0; i < b->nargs; i++)
    hold(h, b->args[i], b, 1);
  for (Op *op = b->first; op; op = op->next)
    for (u32 i = 0; i < op->nresults; i++)
      hold(h, op->results[i], b, op->mark + 1);
  for (u32 i = 2; i < n; i++)
    h->across[i] += h->across[i - 1];
  return n - 1;
}

u32
held_count(Held *h, Block *b, u32 around)
{
  return count_with(h, b, around, &(Guests){0});
}

bool
held_behind(const Value *v, const Op *op)
{
  return last_mark(v, op->block, 0) > op->mark;
}

/* ---- where it is most ---- */

static bool
moves_between_threads(const Op *op)
{
  const char *kind = op_str(op, AT_KIND, "none");
  return op->code == OP_CONVERT_LAYOUT && (!strcmp(kind, "shuffle") || !strcmp(kind, "shared"));
}

/* Are all elements there at once? */
static bool
is_whole(const Op *op)
{
  bool moves = op->nregions || op_is_dot(op) || op_has(op, T_EXCHANGE) || moves_between_threads(op);
  return moves || (!op_has(op, T_PURE) && op->code != OP_LOAD && op->code != OP_STORE);
}

bool
held_ends_at(const Value *v, const Op *op)
{
  return value_block(v) == op->block && !held_behind(v, op);
}

static u32
moved_registers(const Held *h, const Op *op)
{
  u32 in = 0, out = 0;
  for (u32 i = 0; !op->nregions && i < op->noperands; i++)
    if (op_operand(op, i) && held_ends_at(op_operand(op, i), op))
      in += held_registers(h, op_operand(op, i));
  for (u32 i = 0; !op->nregions && i < op->nresults; i++)
    out += held_registers(h, op->results[i]);
  return max_u32(in, out);
}

/* Adds what op, or an op in it, uses of the block that `in` is in, and that is not needed behind `in`. */
static void
find_guests(Held *h, const Op *in, const Op *op, Guests *out)
{
  for (u32 i = 0; i < op->noperands; i++) {
    Value *v = op_operand(op, i);
    bool known = !v || value_block(v) != in->block || last_mark(v, in->block, 0) > in->mark + 1;
    for (u32 k = 0; k < out->len && !known; k++)
      known = out->data[k] == v;
    if (!known)
      vec_push(h->c->scratch, out, v);
  }
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      find_guests(h, in, x, out);
}

static u32
most_with(Held *h, Block *b, u32 around, const Guests *guests, Op **at)
{
  u32 most = 0;
  count_with(h, b, around, guests);
  const u32 *across = h->across;
  for (Op *op = b->first; op; op = op->next) {
    u32 n = is_whole(op) ? across[op->mark] + moved_registers(h, op) : 0;
    if (n > most) {
      most = n;
      *at = op;
    }
  }
  for (Op *op = b->first; op; op = op->next) {
    Guests ends = {0};
    u32 n = across[op->mark];
    if (op->code == OP_IF)      /* a value that its regions use last ends where they do */
      for (u32 r = 0; r < op->nregions; r++)
        for (const Op *x = op->regions[r]->first; x; x = x->next)
          find_guests(h, op, x, &ends);
    for (u32 i = 0; i < ends.len; i++)
      n -= held_registers(h, ends.data[i]);
    for (u32 r = 0; !op_on_elements(op) && r < op->nregions; r++) {
      Op *inner = NULL;
      u32 in = most_with(h, op->regions[r], n, &ends, &inner);
      if (in > most) {
        most = in;
        *at = inner;
      }
    }
  }
  return most;
}

u32
held_most(Held *h, Block *b, u32 around, Op **at)
{
  return most_with(h, b, around, &(Guests){0}, at);
}

u32
team_registers(const Ctx *c, Team team, u32 warps)
{
  if (warps * 32 > c->target->threads_max || (team.op && warps != team.warps))
    return 0;
  u32 all = team.op ? team.op->block->func->warps : warps, stated = warps == team.warps ? team.registers : 0;
  u32 most = min_u32(target_registers(c->target, all * 32), c->target->regs_thread);
  return stated && (team.op || stated < most) ? stated : most;
}
