/* pipeline_regs.c - loads that cannot be copied asynchronously, done one iteration early into registers.
 *
 *   for i in lo..hi step s {                  x0 = load p(lo), where lo < hi
 *     x = load p(i)                ==>        for i in lo..hi step s, x = x0 {
 *     ... x ...                                 x1 = load p(i + s), where i + s < hi
 *   }                                           ... x ...
 *                                               yield x1 }
 *
 * The address at i + s is computed by clones: what the loop carries is first advanced by clones of its own step, then the
 * address's ops are cloned for the values so found. An address that depends on another load of the loop (an indirect
 * load) clones that load too; it stands in the body then with an address of its own, and is prefetched as well: its value for
 * iteration i + s is loaded in iteration i - s. Loads that would run past the end are masked off.
 *
 * x1 is loaded at the top, or, asked for that, behind the last use of x. There both can be in the same registers; what is loaded while x
 * lives is moved at the end of the iteration, which ptxas does as early as it can, in front of a product, where it waits for the load. */
#include "loop_slice.h"
#include "pipeline.h"

enum { REGISTERS_MAX = 64, CHAIN_MAX = 4 };

/* Carried values one iteration on, by clones at b of what advances them. */
static Value **
advanced(const LoopSlice *s, Builder *b)
{
  Value **now = slice_now(s);
  return s->carried.len ? slice_next(s, slice_clone(s, b, loop_counter(s->loop), now, NULL, NULL)) : now;
}

/* Collects what the load's operands are computed from; NULL, or why it may not be done early. */
static const char *
collect(LoopSlice *s, const Op *load)
{
  u32 regs = type_registers(op_result(load)->type);
  const char *why = slice_load_obstacle(load);
  if (why)
    return why;
  if (regs > REGISTERS_MAX)
    return arena_printf(s->c->scratch, "its next tile would take %u more registers", regs);
  Value *operands[] = {OPERAND(load, LOAD, p), op_mask(load), OPERAND(load, LOAD, other)};
  return slice_add(s, COUNT(operands), operands, &why) ? NULL : why;
}

/* Does op make nothing of x but x, in more places or under another name? */
static bool
renames(const Op *op)
{
  return op->code == OP_SPLAT || op->code == OP_EXPAND_DIMS || op->code == OP_BROADCAST || op->code == OP_RESHAPE || op->code == OP_PERMUTE;
}

static bool
comes_before(const Op *op, const Op *other)
{
  while (op && op != other)
    op = op->next;
  return op != NULL;
}

/* The last op of the body that needs v, a value of this iteration; `last` if none comes later. */
static Op *
last_use(const Block *body, const Value *v, Op *last)
{
  for (const Use *u = v->uses; u; u = u->next) {
    Op *op = op_ancestor_in(u->user, body);
    if (op && !op_has(op, T_TERM) && comes_before(last, op))
      last = op;
    if (op && renames(op))
      last = last_use(body, op_result(op), last);
  }
  return last;
}

/* The load moves: what it gives for iteration i comes around the loop. */
static void
rotate(const LoopSlice *s, Op *load, bool behind)
{
  Op *loop = s->loop, *last = behind ? last_use(loop->regions[0], op_result(load), load) : NULL;
  Builder before = builder_before(loop), top = last ? builder_after(last) : builder_before(loop->regions[0]->first);
  before.span = top.span = load->span;
  op_set_int(load, AT_AHEAD, loop_number_ahead(loop));
  Value *lo = OPERAND(loop, FOR, lo), *hi = OPERAND(loop, FOR, hi);
  Value *any = ir_cmp(&before, "lt", lo, hi);
  Value **first = slice_clone(s, &before, lo, slice_first(s), any, NULL);
  Value **carried = advanced(s, &top);
  Value *i = ir_binary(&top, OP_ADD, loop_counter(loop), OPERAND(loop, FOR, step));
  Value *more = loop_goes_on(&top, loop, loop_counter(loop), 1);
  Value **next = slice_clone(s, &top, i, carried, more, NULL);
  Value *x = op_result(load);
  Value *arg = loop_carry(loop, value_mapped(first, x), x->name);
  op_add_operand(region_end(loop, 0), value_mapped(next, x));
  value_replace_uses(x, arg);
  op_remove(load);
}

/* Loads in the body that the address of the last one needs, as cloned at its top. */
static Op *
next_in_chain(Block *body, const Op *last)
{
  for (Op *op = body->first; op && op != last; op = op->next)
    if (op->code == OP_LOAD && op_result(op)->uses)
      return op;
  return NULL;
}

/* Is the address computed from another load? That comes an iteration earlier still, and is found at the top. */
static bool
is_indirect(const LoopSlice *s)
{
  u32 n = 0;
  for (u32 i = 0; i < s->ops.len; i++)
    n += s->ops.data[i]->code == OP_LOAD;
  return n > 1;
}

/* behind: asked for, and whether it came to that. */
static const char *
prefetch_one(Ctx *c, Func *f, Op *loop, Op *load, bool *behind)
{
  LoopSlice s = slice_new(c, f, loop, false);
  const char *why = collect(&s, load);
  if (why)
    return why;
  slice_close(&s, load);
  *behind &= !is_indirect(&s);
  rotate(&s, load, *behind);
  return NULL;
}

/* What the body hands on as the newest carried value. */
static const Value *
newest(const Op *loop)
{
  return loop_next(loop, loop->nresults - 1);
}

const char *
prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load, bool behind)
{
  const char *why = prefetch_one(c, f, loop, load, &behind);
  const Value *last = why || behind ? NULL : newest(loop);
  for (u32 round = 0; last && last->def && round < CHAIN_MAX; round++) {
    Op *inner = next_in_chain(loop->regions[0], last->def);
    if (!inner || prefetch_one(c, f, loop, inner, &behind))
      break;
    last = newest(loop);
  }
  return why;
}
