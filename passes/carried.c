/* carried.c - see carried.h.
 *
 * Between begin and end the numbers in front of an op are constants that stand for them: what they are is known when all of
 * the ops have told what they leave. Then they are followed through the tree: a loop around carries them, an `if` gives them. */
#include "carried.h"

/* The block that op's team runs. */
static Block *
team_body(const Op *op)
{
  Block *b = op->block;
  while (b->parent && b->parent->code != OP_WARP_SPECIALIZE)
    b = b->parent->block;
  return b;
}

static bool
is_around(const Carried *s, const Op *op)
{
  for (u32 i = 0; i < s->nops; i++)
    if (op_inside(s->op[i], op))
      return true;
  return false;
}

static bool
in_a_loop(const Op *op)
{
  for (const Op *up = op->block->parent; up && up->code != OP_WARP_SPECIALIZE; up = up->block->parent)
    if (op_is_loop(up))
      return true;
  return false;
}

void
carried_begin(Carried *s, u32 nops, Op *const *ops, u32 n, const i64 *first, const char *const *names)
{
  *s = (Carried){.nops = nops, .n = n, .names = names, .moves = nops > 1};
  Builder b = builder_before(team_body(ops[0])->first);
  b.span = ops[0]->span;
  for (u32 k = 0; k < n; k++)
    s->first[k] = i32_const(&b, first[k]);
  for (u32 i = 0; i < nops; i++) {
    s->op[i] = ops[i];
    s->moves |= in_a_loop(ops[i]);
  }
  for (u32 i = 0; i < nops; i++) {
    Builder at = builder_before(ops[i]);
    for (u32 k = 0; k < n; k++)
      s->in[i][k] = s->moves ? i32_const(&at, first[k]) : s->first[k];
  }
}

static void follow(Carried *s, Block *b, Value **now, Value *const *out);

static void
follow_around(Carried *s, Op *op, Value **now, Value *const *out)
{
  Value *in[CARRIED_MOST], *mine[CARRIED_MOST];
  memcpy(in, now, s->n * sizeof *in);
  for (u32 k = 0; op_is_loop(op) && k < s->n; k++) {
    op_add_operand(op, in[k]);
    for (u32 r = 0; r < op->nregions; r++)
      block_add_arg(op->regions[r], in[k]->type, s->names[k]);
  }
  for (u32 r = 0; r < op->nregions; r++) {
    Block *b = op->regions[r];
    for (u32 k = 0; k < s->n; k++)
      mine[k] = op_is_loop(op) ? b->args[b->nargs - s->n + k] : in[k];
    follow(s, b, mine, out);
    for (u32 k = 0; k < s->n; k++)
      op_add_operand(region_end(op, r), mine[k]);
  }
  for (u32 k = 0; k < s->n; k++)
    now[k] = op_add_result(op, in[k]->type);
}

/* now: the numbers in front of b, then behind it. */
static void
follow(Carried *s, Block *b, Value **now, Value *const *out)
{
  for (Op *op = b->first; op; op = op->next) {
    for (u32 i = 0; i < s->nops; i++)
      for (u32 k = 0; s->op[i] == op && k < s->n; k++) {
        Op *stands_for = s->in[i][k]->def;
        value_replace_uses(s->in[i][k], now[k]);
        op_remove(stands_for);
        s->in[i][k] = now[k];
        now[k] = out[i * s->n + k];
      }
    if (op->nregions && is_around(s, op))
      follow_around(s, op, now, out);
  }
}

void
carried_end(Carried *s, Value *const *out)
{
  Value *now[CARRIED_MOST];
  memcpy(now, s->first, sizeof now);
  if (s->moves)
    follow(s, team_body(s->op[0]), now, out);
}
