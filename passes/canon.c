/* canon.c - fold constants and identities, reassociate addresses, fuse a*b+c.
 * Needs phase tile; keeps it. The rules are in canon_elem.c, canon_shape.c, canon_addr.c and canon_flow.c.
 *
 * A worklist starts with every op in program order. When a rule applies, the ops it made and the users of
 * what it replaced are looked at again; an op whose last use went is dropped at once, so that single-use
 * tests see the truth. Every rule makes progress (canon.h), so the list runs empty; a generous bound on the
 * steps guards against a mistake in a rule, never against input. op->mark: QUEUED, DEAD. */
#include "canon.h"

enum { QUEUED = 1, DEAD = 2, STEPS_PER_OP = 256 };

void
canon_push(Canon *k, Op *op)
{
  if (!op || op->mark)
    return;
  op->mark = QUEUED;
  vec_push(k->c->scratch, &k->work, op);
}

static void
push_users(Canon *k, const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next)
    canon_push(k, u->user);
}

static void
mark_dead(Op *op)
{
  op->mark = DEAD;
  for (u32 r = 0; r < op->nregions; r++)
    for (Op *x = op->regions[r]->first; x; x = x->next)
      mark_dead(x);
}

static void
push_defs(Canon *k, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i))
      canon_push(k, op_operand(op, i)->def);
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      push_defs(k, x);
}

void
canon_erase(Canon *k, Op *op)
{
  push_defs(k, op);
  mark_dead(op);
  op_remove(op);
}

void
canon_forward(Canon *k, Value *v, Value *with)
{
  push_users(k, v);
  if (!with->name)
    with->name = v->name;
  value_replace_uses(v, with);
}

bool
canon_replace(Canon *k, Op *op, Value *with)
{
  canon_forward(k, op_result(op), with);
  canon_erase(k, op);
  return true;
}

bool
canon_changed(Canon *k, Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    push_users(k, op->results[i]);
  canon_push(k, op);
  return true;
}

bool
value_is_splat(const Value *v)
{
  return type_is_tile(v->type) && (op_is(v, OP_CONST) || op_is(v, OP_SPLAT));
}

Value *
value_splat_scalar(Canon *k, Value *v)
{
  if (!type_is_tile(v->type))
    return v;
  if (op_is(v, OP_SPLAT))
    return OPERAND(v->def, SPLAT, x);
  return ir_const_bits(&k->b, type_elem(k->c, v->type), (u64)op_int(v->def, AT_VALUE, 0));
}

Value *
splat_like(Canon *k, Value *scalar, const Type *shape)
{
  if (!type_is_tile(shape))
    return scalar;
  u64 bits;
  const Type *t = type_with_elem(k->c, shape, scalar->type);
  if (value_const_bits(scalar, &bits))
    return ir_const_bits(&k->b, t, bits);
  return ir_splat(&k->b, scalar, t);
}

Op *
clone_with(Canon *k, const Op *op, u32 n, Value *const *operands, const Type *result)
{
  return op_like(&k->b, op, n, operands, &result);
}

static bool
unused(const Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    if (!value_unused(op->results[i]))
      return false;
  return true;
}

static bool
simplify(Canon *k, Op *op)
{
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE: return canon_shape(k, op);
  case OP_LOAD: case OP_STORE: case OP_ATOMIC_RMW: return canon_memory(k, op);
  case OP_IF: case OP_FOR: case OP_WHILE: case OP_ASSUME: case OP_ASSERT: return canon_flow(k, op);
  case OP_ADDPTR: return canon_elementwise(k, op) || canon_address(k, op);
  default: return op_has(op, T_ELEM | T_PURE) && canon_elementwise(k, op);
  }
}

static void
visit(Canon *k, Op *op)
{
  if (op->mark == DEAD)
    return;
  op->mark = 0;
  if (unused(op) && op_has(op, T_PURE)) {
    canon_erase(k, op);
    return;
  }
  Block *b = op->block;
  Op *prev = op->prev, *next = op->next;
  k->b = builder_before(op);
  k->b.span = op->span;
  if (simplify(k, op))
    for (Op *made = prev ? prev->next : b->first; made && made != next; made = made->next)
      canon_push(k, made);
}

static void
push_all(Op *op, void *user)
{
  op->mark = 0;
  canon_push(user, op);
}

static void
canon_func(Ctx *c, Func *f)
{
  Canon k = {.c = c, .f = f};
  func_walk(f, push_all, &k);
  u64 most = (u64)k.work.len * STEPS_PER_OP + 1024;
  while (k.head < k.work.len && k.head < most)
    visit(&k, k.work.data[k.head++]);
}

void
pass_canon(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    canon_func(c, m->funcs.data[i]);
}
