/* canon_shape.c - rules for splat, broadcast, expand_dims, reshape and permute. */
#include "canon.h"

static bool
inserts_units(const Type *from, const Type *to)
{
  int d = 0;
  for (int i = 0; i < to->rank; i++)
    if (d < from->rank && to->shape[i] == from->shape[d])
      d++;
    else if (to->shape[i] != 1)
      return false;
  return d == from->rank && to->rank > from->rank;
}

/* A reshape that only inserts dimensions of extent 1 is expand_dims, which keeps layouts whatever the extents. */
static Value *
expand_to(Canon *k, Value *x, const Type *to)
{
  int d = 0;
  for (int i = 0; i < to->rank; i++)
    if (d < x->type->rank && d == i && x->type->shape[d] == to->shape[i])
      d++;
    else {
      x = ir_expand_dims(&k->b, x, i);
      d++;
    }
  return x;
}

static bool
reshape_rules(Canon *k, Op *op, Value *x)
{
  const Type *t = op_result(op)->type;
  if (op_is(x, OP_RESHAPE)) {
    op_set_operand(op, SLOT(RESHAPE, x), OPERAND(x->def, RESHAPE, x));
    canon_push(k, x->def);
    return canon_changed(k, op);
  }
  return inserts_units(x->type, t) && canon_replace(k, op, expand_to(k, x, t));
}

static bool
permute_rules(Canon *k, Op *op, Value *x)
{
  Attr *p = op_attr(op, AT_PERM);
  bool same = true;
  for (u32 i = 0; i < p->ints.n; i++)
    same = same && p->ints.v[i] == (i64)i;
  if (same)
    return canon_replace(k, op, x);
  if (!op_is(x, OP_PERMUTE))
    return false;
  Attr *inner = op_attr(x->def, AT_PERM);
  int perm[MAX_RANK];
  for (u32 i = 0; i < p->ints.n; i++)
    perm[i] = (int)inner->ints.v[p->ints.v[i]];
  return canon_replace(k, op, ir_permute(&k->b, OPERAND(x->def, PERMUTE, x), perm));
}

static bool
broadcast_rules(Canon *k, Op *op, Value *x)
{
  if (!op_is(x, OP_BROADCAST))
    return false;
  op_set_operand(op, SLOT(BROADCAST, x), OPERAND(x->def, BROADCAST, x));
  canon_push(k, x->def);
  return canon_changed(k, op);
}

bool
canon_shape(Canon *k, Op *op)
{
  Value *x = OPERAND(op, UNARY, x);
  const Type *t = op_result(op)->type;
  u64 bits;
  if (value_const_bits(x, &bits))
    return canon_replace(k, op, ir_const_bits(&k->b, t, bits));
  if (op->code == OP_SPLAT)
    return false;
  if (value_is_splat(x))
    return canon_replace(k, op, splat_like(k, value_splat_scalar(k, x), t));
  if (op->code != OP_PERMUTE && x->type == t)
    return canon_replace(k, op, x);
  switch (op->code) {
  case OP_RESHAPE: return reshape_rules(k, op, x);
  case OP_PERMUTE: return permute_rules(k, op, x);
  case OP_BROADCAST: return broadcast_rules(k, op, x);
  default: return false;
  }
}
