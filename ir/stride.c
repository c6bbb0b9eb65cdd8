/* stride.c - see stride.h. */
#include "stride.h"

/* LOOKS bounds the values looked at: what is shared is looked at again for each of its users. TIMES_MOST keeps products small. */
enum { LOOKS = 200, TIMES_MOST = 1 << 24 };

static const Stride unknown, equal = {.known = true};

/* looks: how many values may still be looked at; nearly: between nearly all neighbours will do. */
typedef struct Look { u32 looks; bool nearly; } Look;

static Stride along(Look *l, const Value *v, int d);

static bool
is_zero(Stride s)
{
  return s.known && !s.times;
}

static Stride
sum(Stride a, Stride b, i64 sign)
{
  if (!a.known || !b.known || (a.times && b.times && a.by != b.by))
    return unknown;
  Stride s = {true, b.times ? b.by : a.by, a.times + sign * b.times};
  return !s.times ? equal : s.times > -TIMES_MOST && s.times < TIMES_MOST ? s : unknown;
}

/* Of a product with what is the same everywhere. */
static Stride
scaled(Stride s, const Value *factor)
{
  i64 n;
  if (!s.known || !s.times)
    return s;
  if (value_const_int(factor, &n))
    return n > -TIMES_MOST && n < TIMES_MOST ? sum(equal, (Stride){true, s.by, s.times * n}, 1) : unknown;
  return s.by || !op_is(factor, OP_SPLAT) ? unknown : (Stride){true, op_operand(factor->def, 0), s.times};
}

static Stride
of_product(Look *l, const Op *op, int d)
{
  const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
  if (op_is(b, OP_SPLAT) || op_is(b, OP_CONST))
    return scaled(along(l, a, d), b);
  if (op_is(a, OP_SPLAT) || op_is(a, OP_CONST))
    return scaled(along(l, b, d), a);
  return is_zero(along(l, a, d)) && is_zero(along(l, b, d)) ? equal : unknown;
}

static Stride
of_expanded(Look *l, const Op *op, int d)
{
  int axis = (int)op_int(op, AT_AXIS, 0);
  return d == axis ? equal : along(l, op_operand(op, 0), d > axis ? d - 1 : d);
}

static Stride
of_broadcast(Look *l, const Op *op, int d)
{
  const Value *x = op_operand(op, 0);
  return x->type->shape[d] == 1 ? equal : along(l, x, d);
}

/* x / n and x % n of a constant n that is not small. */
static Stride
of_division(Look *l, const Op *op, int d)
{
  i64 n;
  if (!l->nearly || !value_const_int(op_operand(op, 1), &n) || n < NEARLY)
    return unknown;
  Stride s = along(l, op_operand(op, 0), d);
  return !s.known || s.by || (op->code == OP_DIV && s.times * NEARLY > n) ? unknown : op->code == OP_DIV ? equal : s;
}

/* A wider integer of the same sign. */
static Stride
of_cast(Look *l, const Op *op, int d)
{
  const Value *x = op_operand(op, 0);
  DType from = x->type->dt, to = op_result(op)->type->dt;
  bool widens = type_is_int(x->type) && dtype_is_int(to) && dtype_bits(to) >= dtype_bits(from) &&
                dtype_is_signed(from) == dtype_is_signed(to);
  return widens ? along(l, x, d) : unknown;
}

/* A carried value that every iteration moves by the same in all elements. */
static Stride
of_carried(Look *l, const Value *v, int d)
{
  const Op *loop = v->block->parent;
  u32 k;
  if (!loop || !op_is_loop(loop) || !loop_carries(loop, v, &k))
    return unknown;
  const Value *next = loop_next(loop, k);
  while (next != v) {
    if (!(op_is(next, OP_ADDPTR) || op_is(next, OP_ADD)) || !is_zero(along(l, op_operand(next->def, 1), d)))
      return unknown;
    next = op_operand(next->def, 0);
  }
  return along(l, loop_init(loop, k), d);
}

static Stride
along(Look *l, const Value *v, int d)
{
  if (!type_is_tile(v->type) || v->type->shape[d] == 1)
    return equal;
  if (!l->looks)
    return unknown;
  l->looks--;
  if (!v->def)
    return of_carried(l, v, d);
  const Op *op = v->def;
  switch (op->code) {
  case OP_CONST: case OP_SPLAT: return equal;
  case OP_ARANGE: return (Stride){.known = true, .times = 1};
  case OP_EXPAND_DIMS: return of_expanded(l, op, d);
  case OP_BROADCAST: return of_broadcast(l, op, d);
  case OP_ADD: case OP_ADDPTR: return sum(along(l, op_operand(op, 0), d), along(l, op_operand(op, 1), d), 1);
  case OP_SUB: return sum(along(l, op_operand(op, 0), d), along(l, op_operand(op, 1), d), -1);
  case OP_MUL: return of_product(l, op, d);
  case OP_DIV: case OP_REM: return of_division(l, op, d);
  case OP_CAST: return of_cast(l, op, d);
  case OP_BOUNDED: case OP_HINT: case OP_CONVERT_LAYOUT: return along(l, op_operand(op, 0), d);
  default: return unknown;
  }
}

Stride
value_stride(const Value *v, int d)
{
  return along(&(Look){LOOKS, false}, v, d);
}

Stride
value_stride_nearly(const Value *v, int d)
{
  return along(&(Look){LOOKS, true}, v, d);
}
