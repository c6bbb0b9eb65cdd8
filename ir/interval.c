/* interval.c - see interval.h. Bounds come from constants, ranges, loops and remainders, and go through sums and shapes. */
#include "interval.h"

static const Interval everything = {-UNBOUNDED, UNBOUNDED};

static i64
clamp(i64 v)
{
  return v < -UNBOUNDED ? -UNBOUNDED : v > UNBOUNDED ? UNBOUNDED : v;
}

static bool
is_unbounded(i64 v)
{
  return v <= -UNBOUNDED || v >= UNBOUNDED;
}

static i64
mul_bounds(i64 a, i64 b)
{
  i64 p;
  if (!a || !b)
    return 0;
  if (is_unbounded(a) || is_unbounded(b) || __builtin_mul_overflow(a, b, &p))
    return (a < 0) == (b < 0) ? UNBOUNDED : -UNBOUNDED;
  return clamp(p);
}

Interval
interval_add(Interval a, Interval b)
{
  return (Interval){is_unbounded(a.lo) || is_unbounded(b.lo) ? -UNBOUNDED : clamp(a.lo + b.lo),
                    is_unbounded(a.hi) || is_unbounded(b.hi) ? UNBOUNDED : clamp(a.hi + b.hi)};
}

static i64
smaller(i64 a, i64 b)
{
  return a < b ? a : b;
}

static i64
larger(i64 a, i64 b)
{
  return a > b ? a : b;
}

Interval
interval_scale(Interval a, i64 k)
{
  i64 x = mul_bounds(a.lo, k), y = mul_bounds(a.hi, k);
  return (Interval){smaller(x, y), larger(x, y)};
}

Interval
interval_mul(Interval a, Interval b)
{
  Interval x = interval_scale(a, b.lo), y = interval_scale(a, b.hi);
  return (Interval){smaller(x.lo, y.lo), larger(x.hi, y.hi)};
}

static Interval
interval_of_type(const Type *t)
{
  if ((!type_is_int(t) && !type_is_bool(t)) || dtype_bits(t->dt) == 64)
    return everything;
  i64 half = INT64_C(1) << (dtype_bits(t->dt) - 1);
  return dtype_is_signed(t->dt) ? (Interval){-half, half - 1} : (Interval){0, 2 * half - 1};
}

/* x, computed in type t. Without a sign it wraps where it does not fit, 64 bits of it look like any number; with one it fits. */
static Interval
computed(Interval x, const Type *t)
{
  Interval all = interval_of_type(t);
  bool fits = x.lo >= all.lo && x.hi <= all.hi;
  if (!dtype_is_signed(t->dt))
    return fits && dtype_bits(t->dt) < 64 ? x : all;
  Interval in = {larger(x.lo, all.lo), smaller(x.hi, all.hi)};
  return in.lo <= in.hi ? in : all;
}

static Interval
interval_of_and(Interval a, Interval b, Interval all)
{
  if (a.lo >= 0)
    return (Interval){0, b.lo >= 0 ? smaller(a.hi, b.hi) : a.hi};
  return b.lo >= 0 ? (Interval){0, b.hi} : all;
}

/* Of or and xor: no bit above the highest of either. */
static Interval
interval_of_bits(Interval a, Interval b, Interval all)
{
  i64 most = larger(a.hi, b.hi);
  if (a.lo < 0 || b.lo < 0 || is_unbounded(most))
    return all;
  return (Interval){0, most ? (i64)(UINT64_MAX >> __builtin_clzll((u64)most)) : 0};
}

static Interval
interval_of_binary(const Op *op, u32 *budget)
{
  const Type *t = op_result(op)->type;
  Interval a = interval_of(OPERAND(op, BINARY, a), budget), b = interval_of(OPERAND(op, BINARY, b), budget), all = interval_of_type(t);
  switch (op->code) {
  case OP_ADD: return computed(interval_add(a, b), t);
  case OP_SUB: return computed(interval_add(a, interval_scale(b, -1)), t);
  case OP_MUL: return computed(interval_mul(a, b), t);
  case OP_MIN: return (Interval){smaller(a.lo, b.lo), smaller(a.hi, b.hi)};
  case OP_MAX: return (Interval){larger(a.lo, b.lo), larger(a.hi, b.hi)};
  case OP_REM: return b.lo > 0 ? (Interval){a.lo >= 0 ? 0 : larger(a.lo, 1 - b.hi), a.hi <= 0 ? 0 : smaller(a.hi, b.hi - 1)} : all;
  case OP_DIV: return b.lo > 0 && a.lo >= 0 ? (Interval){0, b.lo == b.hi && !is_unbounded(a.hi) ? a.hi / b.lo : a.hi} : all;
  case OP_SHR: return a.lo >= 0 ? (Interval){0, a.hi} : all;
  case OP_AND: return interval_of_and(a, b, all);
  case OP_OR: case OP_XOR: return interval_of_bits(a, b, all);
  default: return all;
  }
}

static Interval
interval_of_cast(const Op *op, Interval all, u32 *budget)
{
  if (!type_is_int(op_operand(op, 0)->type) && !type_is_bool(op_operand(op, 0)->type))
    return all;
  Interval from = interval_of(op_operand(op, 0), budget);
  return from.lo >= all.lo && from.hi <= all.hi ? from : all;
}

/* A counter is in front of the loop's end; a block's other arguments may be anything. */
static Interval
interval_of_argument(const Value *v, Interval all, u32 *budget)
{
  const Op *loop = v->block->parent;
  if (!loop || loop->code != OP_FOR || v != loop_counter(loop))
    return all;
  Interval lo = interval_of(OPERAND(loop, FOR, lo), budget), hi = interval_of(OPERAND(loop, FOR, hi), budget);
  return (Interval){lo.lo, larger(lo.lo, is_unbounded(hi.hi) ? hi.hi : hi.hi - 1)};
}

Interval
interval_of(const Value *v, u32 *budget)
{
  Interval all = interval_of_type(v->type);
  const Op *op = v->def;
  i64 k;
  if (value_const_int(v, &k))
    return type_is_int(v->type) && !dtype_is_signed(v->type->dt) && dtype_bits(v->type->dt) == 64 ? all : (Interval){clamp(k), clamp(k)};
  if (!*budget)
    return all;
  --*budget;
  if (!op)
    return interval_of_argument(v, all, budget);
  switch (op->code) {
  case OP_ARANGE: return (Interval){op_int(op, AT_START, 0), op_int(op, AT_END, 1) - 1};
  case OP_PROGRAM_ID: case OP_RESIDENT_ID: return (Interval){0, INT32_MAX - 1};
  case OP_NUM_PROGRAMS: case OP_NUM_RESIDENTS: return (Interval){1, INT32_MAX};
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE: case OP_CONVERT_LAYOUT: case OP_HINT:
  case OP_BOUNDED:
    return interval_of(op_operand(op, 0), budget);
  case OP_CAST: return interval_of_cast(op, all, budget);
  case OP_SELECT: {
    Interval a = interval_of(OPERAND(op, SELECT, a), budget), b = interval_of(OPERAND(op, SELECT, b), budget);
    return (Interval){smaller(a.lo, b.lo), larger(a.hi, b.hi)};
  }
  default:
    return op->noperands == 2 && op_has(op, T_ELEM) && type_is_int(v->type) ? interval_of_binary(op, budget) : all;
  }
}
