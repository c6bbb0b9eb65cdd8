/* carried.c - see carried.h. */
#include "carried.h"

static bool
find_around(Carried *s)
{
  Op *op = s->op->block->parent;
  for (; op && op->code != OP_WARP_SPECIALIZE && s->depth < CARRIED_DEPTH; op = op->block->parent) {
    s->around[s->depth++] = op;
    s->again |= op_is_loop(op);
  }
  return !op || op->code == OP_WARP_SPECIALIZE;
}

/* Which region of op the block is, or is in. */
static u32
region_around(const Op *op, const Block *b)
{
  while (b->parent != op)
    b = b->parent->block;
  for (u32 r = 0; r < op->nregions; r++)
    if (op->regions[r] == b)
      return r;
  return 0;
}

/* The value that `init` is in the region of the loop that op is in. */
static Value *
carry_in(Op *loop, Value *init, u32 region, const char *name)
{
  op_add_operand(loop, init);
  for (u32 r = 0; r < loop->nregions; r++)
    block_add_arg(loop->regions[r], init->type, name);
  Block *b = loop->regions[region];
  return b->args[b->nargs - 1];
}

bool
carried_begin(Carried *s, Op *op, u32 n, const i64 *first, const char *const *names)
{
  *s = (Carried){.op = op, .n = n};
  if (!find_around(s))
    return false;
  const Op *outermost = s->depth ? s->around[s->depth - 1] : op;
  Builder b = builder_before(outermost->block->first);
  b.span = op->span;
  for (u32 k = 0; k < n; k++)
    s->in[k] = i32_const(&b, first[k]);
  for (u32 i = s->again ? s->depth : 0; i-- > 0;)
    for (u32 k = 0; k < n; k++) {
      s->outside[i][k] = s->in[k];
      if (op_is_loop(s->around[i]))
        s->in[k] = carry_in(s->around[i], s->in[k], region_around(s->around[i], op->block), names[k]);
    }
  return true;
}

/* What each region of op hands on: `out` that of the inner op, the others what they were given, n - k arguments from the last. */
static Value *
carry_out(Op *op, Value *in, Value *out, u32 region, u32 from_last)
{
  for (u32 r = 0; r < op->nregions; r++) {
    Block *b = op->regions[r];
    op_add_operand(region_end(op, r), r == region ? out : op_is_loop(op) ? b->args[b->nargs - from_last] : in);
  }
  return op_add_result(op, out->type);
}

void
carried_end(Carried *s, Value *const *out)
{
  Value *now[CARRIED_MOST];
  memcpy(now, out, s->n * sizeof *now);
  for (u32 i = 0; s->again && i < s->depth; i++)
    for (u32 k = 0; k < s->n; k++)
      now[k] = carry_out(s->around[i], s->outside[i][k], now[k], region_around(s->around[i], s->op->block), s->n - k);
}
