/* canon_flow.c - rules for if, for, while and assume: constant conditions and trip counts, carried values
 * that do not change or only advance by a scalar. */
#include "canon.h"

/* ---- inlining a region ---- */

static void
splice(Canon *k, Block *from, Op *before)
{
  for (Op *op = from->first, *next; op; op = next) {
    next = op->next;
    if (op_has(op, T_TERM))
      continue;
    op_move_before(op, before);
    canon_push(k, op);
  }
}

/* op's results become what region r yields; its arguments must have been replaced. */
static bool
inline_region(Canon *k, Op *op, u32 r)
{
  Op *end = region_end(op, r);
  splice(k, op->regions[r], op);
  for (u32 i = 0; i < op->nresults; i++)
    canon_forward(k, op->results[i], op_operand(end, i));
  canon_erase(k, op);
  return true;
}

/* ---- if ---- */

static bool
same_yields(Canon *k, Op *op)
{
  bool changed = false;
  for (u32 i = 0; i < op->nresults; i++) {
    Value *x = region_yields(op, 0, i), *y = region_yields(op, 1, i);
    if (x != y || value_unused(op->results[i]))
      continue;
    canon_forward(k, op->results[i], x);
    changed = true;
  }
  return changed;
}

static bool
canon_if(Canon *k, Op *op)
{
  u64 cond;
  if (value_const_bits(OPERAND(op, IF, c), &cond))
    return inline_region(k, op, cond ? 0 : 1);
  return same_yields(k, op);
}

/* ---- loops ---- */

static bool
runs_never(Canon *k, Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    canon_forward(k, op->results[i], loop_init(op, i));
  canon_erase(k, op);
  return true;
}

static bool
runs_once(Canon *k, Op *op)
{
  canon_forward(k, loop_counter(op), OPERAND(op, FOR, lo));
  for (u32 i = 0; i < op->nresults; i++)
    canon_forward(k, loop_arg(op, 0, i), loop_init(op, i));
  return inline_region(k, op, 0);
}

static bool
constant_trips(Canon *k, Op *op)
{
  i64 lo, hi, step, after;
  if (!value_const_int(OPERAND(op, FOR, lo), &lo) || !value_const_int(OPERAND(op, FOR, hi), &hi))
    return false;
  const Type *t = OPERAND(op, FOR, lo)->type;
  bool less = dtype_is_signed(t->dt) ? lo < hi : (u64)lo < (u64)hi;
  if (!less)
    return runs_never(k, op);
  if (!value_const_int(OPERAND(op, FOR, step), &step) || step <= 0)
    return false;
  bool past = __builtin_add_overflow(lo, step, &after) || after >= hi;   /* what overflows the type lies above hi */
  return dtype_is_signed(t->dt) && past && runs_once(k, op);
}

/* A while must hand the value through its condition untouched. */
static bool
passes_through(const Op *loop, u32 i)
{
  return loop->code == OP_FOR || region_yields(loop, 0, i) == loop_arg(loop, 0, i);
}

static bool
forward_carried(Canon *k, Op *loop, u32 i, Value *with)
{
  bool used = !value_unused(loop->results[i]);
  canon_forward(k, loop->results[i], with);
  for (u32 r = 0; r < loop->nregions; r++) {
    Value *arg = loop_arg(loop, r, i);
    for (const Use *u = arg->uses; u; u = u->next)
      used = used || !op_has(u->user, T_TERM);
    canon_forward(k, arg, with);
  }
  return used;
}

static bool
unchanging(Canon *k, Op *loop)
{
  bool changed = false;
  for (u32 i = 0; i < loop->nresults; i++) {
    Value *next = loop_next(loop, i), *init = loop_init(loop, i);
    bool same = next == loop_arg(loop, loop->nregions - 1, i) || next == init;
    if (same && passes_through(loop, i))
      changed |= forward_carried(k, loop, i, init);
  }
  return changed;
}

/* ---- a tile that a loop advances by a scalar: carry the scalar, rebuild the tile where it is used.
 *
 * Pointers: the initial tile has a scalar base under adds, broadcasts and expand_dims; the base is carried instead.
 * Integers: base + splat 0 at first. A tile of addresses in registers becomes one scalar. ---- */

enum { MAX_CHAIN = 32, BASE = SLOT(ADDPTR, p) };   /* BASE: of addptr, broadcast and expand_dims alike */

static Value *
scalar_base(Value *v)
{
  for (u32 i = 0; i < MAX_CHAIN; i++) {
    if (op_is(v, OP_SPLAT))
      return OPERAND(v->def, SPLAT, x);
    if (!op_is(v, OP_ADDPTR) && !op_is(v, OP_BROADCAST) && !op_is(v, OP_EXPAND_DIMS))
      return NULL;
    v = op_operand(v->def, BASE);
  }
  return NULL;
}

/* v, a chain as in scalar_base, over another base. */
static Value *
rebase(Canon *k, Value *v, Value *base)
{
  if (op_is(v, OP_SPLAT))
    return ir_splat(&k->b, base, v->type);
  Value *xs[2] = {rebase(k, op_operand(v->def, BASE), base), OPERAND(v->def, ADDPTR, off)};
  return op_result(clone_with(k, v->def, v->def->noperands, xs, v->type));
}

static Value *
rebuilt(Canon *k, Value *init, Value *scalar)
{
  return type_is_ptr(init->type) ? rebase(k, init, scalar)
                                 : ir_binary(&k->b, OP_ADD, init, splat_like(k, scalar, init->type));
}

/* The scalar added to carried value i each time round; NULL if it is not of that kind. */
static Value *
scalar_step(Canon *k, Op *loop, u32 i)
{
  Value *next = loop_next(loop, i), *arg = loop_arg(loop, loop->nregions - 1, i);
  const Type *t = arg->type;
  if (!type_is_tile(t) || !(type_is_ptr(t) ? op_is(next, OP_ADDPTR) : type_is_int(t) && op_is(next, OP_ADD)))
    return NULL;
  Value *step = OPERAND(next->def, BINARY, b);
  if (OPERAND(next->def, BINARY, a) != arg || !value_is_splat(step) || !passes_through(loop, i))
    return NULL;
  if (type_is_ptr(t) && !scalar_base(loop_init(loop, i)))
    return NULL;
  Op *end = region_end(loop, loop->nregions - 1);
  k->b = builder_before(end);
  k->b.span = next->def->span;
  return value_splat_scalar(k, step);
}

/* One more carried value, the last; the regions' terminators get their operands later. */
static void
add_carried(Op *loop, Value *init, const char *name)
{
  op_add_operand(loop, init);
  op_add_result(loop, init->type)->name = name;
  for (u32 r = 0; r < loop->nregions; r++)
    block_add_arg(loop->regions[r], init->type, name);
}

static void
carry_scalar(Canon *k, Op *loop, u32 i, Value *step)
{
  Value *init = loop_init(loop, i);
  bool ptr = type_is_ptr(init->type);
  u32 n = loop->nresults;
  Op *end = region_end(loop, loop->nregions - 1);
  k->b = builder_before(loop);
  k->b.span = loop->span;
  Value *start = ptr ? scalar_base(init) : ir_const_int(&k->b, type_elem(k->c, init->type), 0);
  add_carried(loop, start, init->name);
  if (loop->code == OP_WHILE)
    op_add_operand(region_end(loop, 0), loop_arg(loop, 0, n));
  for (u32 r = 0; r < loop->nregions; r++) {
    Block *b = loop->regions[r];
    k->b = b->first ? builder_before(b->first) : builder_at_end(k->f, b);
    k->b.span = loop->span;
    canon_forward(k, loop_arg(loop, r, i), rebuilt(k, init, loop_arg(loop, r, n)));
  }
  k->b = builder_before(end);
  k->b.span = step->def ? step->def->span : loop->span;
  Value *at = loop_arg(loop, loop->nregions - 1, n);
  op_add_operand(end, ptr ? ir_addptr(&k->b, at, step) : ir_binary(&k->b, OP_ADD, at, step));
  op_set_operand(end, i, init);   /* the tile itself no longer changes: `unchanging` forwards what is left of it */
  k->b = builder_after(loop);
  k->b.span = loop->span;
  canon_forward(k, loop->results[i], rebuilt(k, init, loop->results[n]));
}

static void
push_block(Canon *k, Block *b)
{
  for (Op *op = b->first; op; op = op->next)
    canon_push(k, op);
}

static bool
advancing(Canon *k, Op *loop)
{
  bool changed = false;
  for (u32 i = 0, n = loop->nresults; i < n; i++) {
    Value *step = scalar_step(k, loop, i);
    if (!step)
      continue;
    carry_scalar(k, loop, i, step);
    changed = true;
  }
  for (u32 r = 0; changed && r < loop->nregions; r++)
    push_block(k, loop->regions[r]);
  for (Op *op = loop; changed && op; op = op->next)
    canon_push(k, op);
  return changed;
}

bool
canon_flow(Canon *k, Op *op)
{
  i64 cond;
  switch (op->code) {
  case OP_ASSUME: case OP_ASSERT:
    if (!value_const_int(OPERAND(op, ASSUME, c), &cond) || !cond)
      return false;
    canon_erase(k, op);
    return true;
  case OP_IF: return canon_if(k, op);
  case OP_FOR: return constant_trips(k, op) || unchanging(k, op) || advancing(k, op);
  default: return unchanging(k, op) || advancing(k, op);
  }
}
