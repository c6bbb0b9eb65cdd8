/* check_registers.c - says where tiles take more registers than a thread has. Nothing changes; only with --remarks.
 * Needs phase sched, behind everything else; keeps it.
 *
 * Arithmetic is done element by element and holds no tiles of its own. Ops that want all elements at once do: there a thread holds what
 * lives across the op (held.h), and the operands that end with it or its results, whichever is more, as elements leave while
 * others come. Addresses, masks and what is under way take registers besides, so that TILES_SHARE of what there is is left to tiles. Of
 * the examples' kernels, in blocks of many sizes, nearly all above that spill or come close; few below do, by less than 100 bytes
 * but for one. */
#include "held.h"
#include <string.h>

enum { TILES_SHARE = 13, SHARES = 16, LISTED = 4 };

typedef struct Most { Held held; Op *op; u32 registers; } Most;
typedef struct Tiles { const Value *v[LISTED]; u32 registers[LISTED], n; } Tiles;

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
  bool moves = op->nregions || op->code == OP_DOT || op_has(op, T_EXCHANGE) || moves_between_threads(op);
  return moves || (!op_has(op, T_PURE) && op->code != OP_LOAD && op->code != OP_STORE);
}

/* v is an operand of op, and ends there. */
static bool
ends_at(const Value *v, const Op *op)
{
  return value_block(v) == op->block && !held_behind(v, op);
}

static u32
moved_registers(const Held *h, const Op *op)
{
  u32 in = 0, out = 0;
  for (u32 i = 0; !op->nregions && i < op->noperands; i++)
    if (op_operand(op, i) && ends_at(op_operand(op, i), op))
      in += held_registers(h, op_operand(op, i));
  for (u32 i = 0; !op->nregions && i < op->nresults; i++)
    out += held_registers(h, op->results[i]);
  return max_u32(in, out);
}

static void
look_at_block(Most *m, Block *b, u32 around)
{
  held_count(&m->held, b, around);
  const u32 *across = m->held.across;
  for (Op *op = b->first; op; op = op->next) {
    u32 n = is_whole(op) ? across[op->mark] + moved_registers(&m->held, op) : 0;
    if (n > m->registers) {
      m->registers = n;
      m->op = op;
    }
  }
  for (Op *op = b->first; op; op = op->next)
    for (u32 r = 0; !op_on_elements(op) && r < op->nregions; r++)
      look_at_block(m, op->regions[r], across[op->mark]);
}

/* ---- in words ---- */

/* What a thread has if the program has so many warps; 0: it cannot. What a region's has is the kernel's to say, and stays. */
static u32
registers_of(const Ctx *c, Team team, u32 warps)
{
  if (warps * 32 > c->target->threads_max || (team.op && warps != team.warps))
    return 0;
  u32 all = team.op ? team.op->block->func->warps : warps, stated = warps == team.warps ? team.registers : 0;
  u32 most = min_u32(target_registers(c->target, all * 32), c->target->regs_thread);
  return stated && (team.op || stated < most) ? stated : most;
}

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
    if (op_operand(op, i) && ends_at(op_operand(op, i), op))
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
  u32 have = registers_of(c, team, team.warps), warps = team.warps;
  if (!have || fits(m->registers, have))
    return;
  Diag *d = diag(c, m->op->span, R_REGISTERS, m->registers, have);
  Tiles t = tiles_at(&m->held, m->op);
  for (u32 i = 0; d && i < t.n; i++) {
    Span at = t.v[i]->def ? t.v[i]->def->span : t.v[i]->block->parent->span;
    diag_note(c, d, at, "%s takes %u", type_str(c, type_with_layout(c, t.v[i]->type, NULL)), t.registers[i]);
  }
  do
    warps *= 2;
  while (registers_of(c, team, warps) && !fits(m->registers * team.warps / warps, registers_of(c, team, warps)));
  if (d && registers_of(c, team, warps))
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
    look_at_block(&most, m->funcs.data[i]->body, 0);
    if (most.op)
      say(c, &most);
  }
}
