/* check_registers.c - says where tiles take more registers than a thread has. Nothing changes; only with --remarks.
 * Needs phase sched, behind everything else; keeps it.
 *
 * Arithmetic is done element by element and holds no tiles of its own. Ops that want all elements at once do: there a thread holds what
 * lives across the op (held.h), and the operands that end with it or its results, whichever is more, as elements leave while
 * others come. Addresses, masks and what is under way take registers besides, so that TILES_SHARE of what there is is left to tiles. Of
 * the examples' kernels, in blocks of many sizes, nearly all above that spill or come close; few below do, by less than 100 bytes
 * but for one. Teams with registers of their own leave copies and their addresses to another: BESIDE_TILES are enough for them. */
#include "held.h"
#include <string.h>

enum { TILES_SHARE = 13, SHARES = 16, LISTED = 4 };

typedef struct Most { Held held; Op *op; u32 registers; } Most;
typedef struct Tiles { const Value *v[LISTED]; u32 registers[LISTED], n; } Tiles;

/* ---- in words ---- */

static bool
fits(u32 tiles, u32 registers)
{
  return tiles * SHARES <= registers * TILES_SHARE;
}

static void
list_tile(Tiles *t, const Held *h, const Value *v)
{
  u32 n = held_registers(h, v), at = t->n;
  while (at > 0 && t->registers[at - 1] < n)
    at--;
  if (!n || at == LISTED)
    return;
  u32 last = t->n < LISTED ? t->n++ : LISTED - 1;
  memmove(t->v + at + 1, t->v + at, (last - at) * sizeof *t->v);
  memmove(t->registers + at + 1, t->registers + at, (last - at) * sizeof *t->registers);
  t->v[at] = v;
  t->registers[at] = n;
}

/* The largest tiles that a thread holds at op. */
static Tiles
tiles_at(const Held *h, const Op *op)
{
  Tiles t = {.n = 0};
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && held_ends_at(op_operand(op, i), op))
      list_tile(&t, h, op_operand(op, i));
  for (const Op *at = op; at; at = at->block->parent) {
    for (u32 i = 0; i < at->block->nargs; i++)
      if (held_behind(at->block->args[i], at))
        list_tile(&t, h, at->block->args[i]);
    for (const Op *x = at->block->first; x != at; x = x->next)
      for (u32 i = 0; i < x->nresults; i++)
        if (held_behind(x->results[i], at))
          list_tile(&t, h, x->results[i]);
  }
  return t;
}

static void
say(Ctx *c, const Most *m)
{
  Team team = block_team(m->op->block);
  u32 have = team_registers(c, team, team.warps), warps = team.warps;
  if (!have || fits(m->registers, have) || (team.registers && m->registers + BESIDE_TILES <= have))
    return;
  Diag *d = diag(c, m->op->span, R_REGISTERS, m->registers, have);
  Tiles t = tiles_at(&m->held, m->op);
  for (u32 i = 0; d && i < t.n; i++) {
    Span at = t.v[i]->def ? t.v[i]->def->span : t.v[i]->block->parent->span;
    diag_note(c, d, at, "%s takes %u", type_str(c, type_with_layout(c, t.v[i]->type, NULL)), t.registers[i]);
  }
  do
    warps *= 2;
  while (team_registers(c, team, warps) && !fits(m->registers * team.warps / warps, team_registers(c, team, warps)));
  if (d && team_registers(c, team, warps))
    diag_hint(c, d, "warps(%u) would fit", warps);
  else if (d)
    diag_hint(c, d, "tiles of %s the elements would fit", fits(m->registers / 2, have) ? "half" : "a quarter of");
}

void
pass_check_registers(Ctx *c, Module *m)
{
  for (u32 i = 0; c->remarks && i < m->funcs.len; i++) {
    Most most = {.op = NULL};
    held_open(&most.held, c, m->funcs.data[i]);
    most.registers = held_most(&most.held, m->funcs.data[i]->body, 0, &most.op);
    if (most.op)
      say(c, &most);
  }
}
