/* canon_addr.c - rules for addresses and masks. An offset given to a pointer must not overflow
 * (docs/plan.md), so p + (a + b) may be computed as (p + a) + b: scalars are added to the scalar base, and of a
 * two-dimensional offset the row part is added while it is still a column of rows. */
#include "canon.h"

static Value *
scalar_addptr(Canon *k, Value *base, Value *off)
{
  Value *step = value_splat_scalar(k, off), *from = value_splat_scalar(k, base);
  return ir_addptr(&k->b, from, step);
}

/* Offsets widen by themselves: addptr extends by the offset's signedness. */
static bool
drop_widening(Canon *k, Op *op)
{
  Value *off = OPERAND(op, ADDPTR, off);
  if (!op_is(off, OP_CAST))
    return false;
  Value *x = OPERAND(off->def, CAST, x);
  if (!type_is_int(x->type) || dtype_bits(x->type->dt) > dtype_bits(off->type->dt) ||
      dtype_is_signed(x->type->dt) != dtype_is_signed(off->type->dt))
    return false;
  return canon_replace(k, op, ir_addptr(&k->b, OPERAND(op, ADDPTR, p), x));
}

/* (splat p + x) + splat s -> splat (p + s) + x */
static bool
move_splat_in(Canon *k, Op *op)
{
  Value *p = OPERAND(op, ADDPTR, p), *s = OPERAND(op, ADDPTR, off);
  if (!op_is(p, OP_ADDPTR) || !value_is_splat(s) || !value_is_splat(OPERAND(p->def, ADDPTR, p)))
    return false;
  Value *base = scalar_addptr(k, OPERAND(p->def, ADDPTR, p), s);
  return canon_replace(k, op, ir_addptr(&k->b, splat_like(k, base, p->type), OPERAND(p->def, ADDPTR, off)));
}

/* splat p + (x + splat s) -> splat (p + s) + x */
static bool
split_splat(Canon *k, Op *op)
{
  Value *p = OPERAND(op, ADDPTR, p), *off = OPERAND(op, ADDPTR, off);
  if (!value_is_splat(p) || !op_is(off, OP_ADD))
    return false;
  for (u32 i = 0; i < 2; i++) {
    Value *s = op_operand(off->def, i), *x = op_operand(off->def, 1 - i);
    if (!value_is_splat(s))
      continue;
    return canon_replace(k, op, ir_addptr(&k->b, splat_like(k, scalar_addptr(k, p, s), p->type), x));
  }
  return false;
}

/* The part of a two-dimensional offset to add first: a broadcast of something with a single column. */
static bool
is_row_part(const Value *v)
{
  if (!op_is(v, OP_BROADCAST))
    return false;
  const Type *t = OPERAND(v->def, BROADCAST, x)->type;
  return t->shape[t->rank - 1] == 1 && type_numel(t) < type_numel(v->type);
}

/* splat p + (broadcast rows + x) -> broadcast (splat p + rows) + x */
static bool
split_rows(Canon *k, Op *op)
{
  Value *p = OPERAND(op, ADDPTR, p), *off = OPERAND(op, ADDPTR, off);
  if (!value_is_splat(p) || !op_is(off, OP_ADD))
    return false;
  for (u32 i = 0; i < 2; i++) {
    Value *b = op_operand(off->def, i), *x = op_operand(off->def, 1 - i);
    if (!is_row_part(b) || is_row_part(x))
      continue;
    Value *rows = OPERAND(b->def, BROADCAST, x);
    Value *base = ir_addptr(&k->b, splat_like(k, value_splat_scalar(k, p), rows->type), rows);
    return canon_replace(k, op, ir_addptr(&k->b, ir_broadcast(&k->b, base, off->type->shape), x));
  }
  return false;
}

bool
canon_address(Canon *k, Op *op)
{
  if (drop_widening(k, op))
    return true;
  return type_is_tile(op_result(op)->type) && (move_splat_in(k, op) || split_splat(k, op) || split_rows(k, op));
}

/* ---- memory operations: constant masks, `other` that is what there is without it ---- */

/* What the op gives where its mask is off; NULL: 0, or nothing. */
static Value *
other_of(const Op *op)
{
  return op->code == OP_LOAD ? OPERAND(op, LOAD, other) : NULL;
}

static bool
never_runs(Canon *k, Op *op)
{
  Value *other = other_of(op);
  if (op->code == OP_STORE) {
    canon_erase(k, op);
    return true;
  }
  return canon_replace(k, op, other ? other : ir_const_bits(&k->b, op_result(op)->type, 0));
}

/* Absent operands at the end have no slot. */
static void
clear_operand(Op *op, u32 i)
{
  if (i < op->noperands)
    op_set_operand(op, i, NULL);
}

static bool
always_runs(Canon *k, Op *op)
{
  clear_operand(op, op_slot(op->code, "mask"));
  if (op->code == OP_LOAD)
    clear_operand(op, SLOT(LOAD, other));
  return canon_changed(k, op);
}

static bool
absent_or_splat(const Value *v)
{
  return !v || value_is_splat(v);
}

/* A tile read from one address is one read. */
static bool
uniform_load(Canon *k, Op *op)
{
  Value *xs[3] = {OPERAND(op, LOAD, p), OPERAND(op, LOAD, mask), OPERAND(op, LOAD, other)};
  if (op->code != OP_LOAD || !value_is_splat(xs[0]) || !absent_or_splat(xs[1]) || !absent_or_splat(xs[2]) ||
      op_int(op, AT_VOLATILE, 0))
    return false;
  for (u32 i = 0; i < 3; i++)
    xs[i] = xs[i] ? value_splat_scalar(k, xs[i]) : NULL;
  const Type *t = op_result(op)->type;
  Op *scalar = clone_with(k, op, 3, xs, type_elem(k->c, t));
  return canon_replace(k, op, splat_like(k, op_result(scalar), t));
}

bool
canon_memory(Canon *k, Op *op)
{
  u64 bits;
  Value *mask = op_mask(op), *other = other_of(op);
  if (mask && value_const_bits(mask, &bits))
    return bits ? always_runs(k, op) : never_runs(k, op);
  if (other && value_const_bits(other, &bits) && !bits) {
    clear_operand(op, SLOT(LOAD, other));
    return canon_changed(k, op);
  }
  return uniform_load(k, op);
}
