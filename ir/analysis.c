/* analysis.c - runs, alignment and constancy of integer and pointer values, along each dimension.
 *
 * A forward analysis over structured control flow. Facts are sets of claims ordered by strength; a loop's arguments start
 * with what is known of their first values and are weakened by what the body yields, sweep after sweep, until nothing
 * changes: then the facts hold of the first values and are kept by every iteration, which is induction. After a few
 * sweeps an argument that still changes loses everything, so the number of sweeps is small.
 *
 * A claim that is false is a miscompile, so every rule below is a theorem about wrapping integers. Most rest on one:
 * a run of g elements (g a power of two) that starts at a multiple of g crosses no multiple of g, hence no
 * boundary where an integer wraps or changes sign, and no multiple of a divisor that is itself a multiple of g.
 * Three things are assumed of the program, each a rule of the language:
 *   - the arithmetic of a pointer's offset does not overflow (addptr keeps runs of the offset that could wrap);
 *   - a signed `rem` that indexes by runs has no negative dividend: x % n with x below zero counts downward at every
 *     multiple of n. Signed `div` claims only where the dividend is known not to be negative;
 *   - what `nonneg` follows from did not overflow.
 *
 * A run that grows by 8 at a time is a run for a comparison, too: it crosses no multiple of 8 g. Hence levels: how large the cell
 * between multiples of a power of two is that a run stays in. What looks at cells only (a comparison with such a multiple,
 * a division by it, a mask of high bits) sees one value along the run; and shifts, bitwise ops, min and max take cells to cells.
 *
 * Reading the names: C contiguity, D divisibility, K constancy, g a run length under consideration.
 */
#include "interp.h"

enum { DIV_MAX = 1 << 30, SWEEPS_EXACT = 12 };

typedef struct Analysis {
  Func *func;
  AxisInfo *info;      /* by value id */
  u8 *seen;            /* loop arguments that have facts */
  u32 sweep;
  bool changed;
} Analysis;

static void run_block(Analysis *a, const Block *b);

/* ---- facts ---- */
static u32
min4(u32 a, u32 b, u32 c, u32 d)
{
  return min_u32(min_u32(a, b), min_u32(c, d));
}

static u32
mul_cap(u32 a, u32 b)
{
  u64 p = (u64)a * b;
  return p > DIV_MAX ? DIV_MAX : (u32)p;
}

/* Largest power of two that divides v. */
static u32
pow2_part(u64 v)
{
  v &= 0 - v;
  return !v || v > DIV_MAX ? DIV_MAX : (u32)v;
}

static u32
dims_of(const Type *t)
{
  return type_is_tile(t) ? t->rank : 1;
}

static u32
extent_of(const Type *t, u32 d)
{
  return type_is_tile(t) ? t->shape[d] : 1;
}

/* How far the next element of a run is: bytes for pointers, as divisibility counts them. */
static u32
unit_of(const Type *t)
{
  return type_is_ptr(t) ? dtype_bytes(t->dt) : 1;
}

/* Nothing known. */
static AxisInfo
unknown(void)
{
  AxisInfo r = {0};
  for (u32 d = 0; d < MAX_RANK; d++)
    r.contiguity[d] = r.divisibility[d] = r.constancy[d] = r.steps[d] = r.stride[d] = 1;
  return r;
}

/* Every element of t is one value that is a multiple of div. */
static AxisInfo
uniform(const Type *t, u32 div)
{
  AxisInfo r = unknown();
  for (u32 d = 0; d < dims_of(t); d++) {
    r.divisibility[d] = div;
    r.constancy[d] = next_pow2(extent_of(t, d));
  }
  return r;
}

static AxisInfo
constant(const Type *t, i64 v)
{
  AxisInfo r = uniform(t, pow2_part((u64)v));
  r.is_const = true;
  r.value = v;
  r.nonneg = !(scalar_wrap(t->dt, (u64)v) >> (dtype_bits(t->dt) - 1));
  return r;
}

/* What divides the elements at multiples of g along d: the starts of runs of g. */
static u32
div_at(const AxisInfo *x, u32 d, u32 g, u32 unit)
{
  return x->contiguity[d] <= g ? x->divisibility[d] : min_u32(x->divisibility[d], mul_cap(g, unit));
}

/* What divides every element. */
static u32
div_all(const AxisInfo *x, const Type *t)
{
  u32 best = 1;
  for (u32 d = 0; d < dims_of(t); d++)
    best = max_u32(best, div_at(x, d, 1, unit_of(t)));
  return best;
}

static void
shrink_runs(AxisInfo *x, u32 d, u32 c, u32 unit)
{
  if (x->contiguity[d] <= c)
    return;
  x->divisibility[d] = div_at(x, d, c, unit);
  x->contiguity[d] = c;
}

/* ---- levels: runs that stay in a cell ---- */
typedef struct Level { u32 stride, steps; } Level;

static Level
level_of(const AxisInfo *x, u32 d)
{
  return x->constancy[d] >= x->steps[d] ? (Level){1, x->constancy[d]} : (Level){x->stride[d], x->steps[d]};
}

static void
set_level(AxisInfo *r, u32 d, Level l)
{
  r->stride[d] = l.steps > 1 ? l.stride : 1;
  r->steps[d] = l.steps;
}

/* Of runs that stay in a cell of x and in one of y. */
static Level
level_both(const AxisInfo *x, const AxisInfo *y, u32 d)
{
  Level a = level_of(x, d), b = level_of(y, d);
  return (Level){max_u32(a.stride, b.stride), min_u32(a.steps, b.steps)};
}

/* The longest runs of x that cross no multiple of m. */
static u32
run_within(const AxisInfo *x, u32 d, u32 m)
{
  return max_u32(min_u32(x->steps[d], m / x->stride[d]), 1);
}

/* Longest g such that runs of g of x stay in a cell of which y, equal along them, is a multiple. */
static u32
level_run(const AxisInfo *x, const AxisInfo *y, u32 d)
{
  return min_u32(run_within(x, d, y->divisibility[d]), y->constancy[d]);
}

/* Where a run counts by one, that says most. A cell holds no boundary where the type wraps or changes sign. */
static void
settle_level(AxisInfo *r, u32 d, const Type *t, u32 limit)
{
  u32 run = min_u32(r->contiguity[d], r->divisibility[d]), bits = type_elem_bits(t);
  u32 cell = bits <= 30 ? 1u << (bits - 1) : DIV_MAX;
  if (run > 1 && (r->stride[d] > 1 || r->steps[d] < run))
    set_level(r, d, (Level){1, run});
  u32 most = type_is_int(t) ? min_u32(limit, max_u32(cell / r->stride[d], 1)) : 1;
  set_level(r, d, (Level){r->stride[d], min_u32(r->steps[d], most)});
}

/* The claims that hold of both. */
static AxisInfo
meet(const AxisInfo *a, const AxisInfo *b, const Type *t)
{
  AxisInfo r = unknown();
  u32 unit = unit_of(t);
  for (u32 d = 0; d < dims_of(t); d++) {
    r.contiguity[d] = min_u32(a->contiguity[d], b->contiguity[d]);
    r.constancy[d] = min_u32(a->constancy[d], b->constancy[d]);
    r.divisibility[d] = min_u32(div_at(a, d, r.contiguity[d], unit), div_at(b, d, r.contiguity[d], unit));
    set_level(&r, d, level_both(a, b, d));
  }
  r.is_const = a->is_const && b->is_const && a->value == b->value;
  r.value = r.is_const ? a->value : 0;
  r.nonneg = a->nonneg && b->nonneg;
  return r;
}

static bool
same_facts(const AxisInfo *a, const AxisInfo *b)
{
  for (u32 d = 0; d < MAX_RANK; d++)
    if (a->contiguity[d] != b->contiguity[d] || a->divisibility[d] != b->divisibility[d] ||
        a->constancy[d] != b->constancy[d] || a->steps[d] != b->steps[d] || a->stride[d] != b->stride[d])
      return false;
  return a->is_const == b->is_const && a->value == b->value && a->nonneg == b->nonneg;
}

/* Brings facts into range and lets what is known of every element count for every dimension. */
static AxisInfo
settle(AxisInfo r, const Type *t)
{
  u32 all = div_all(&r, t);
  for (u32 d = 0; d < dims_of(t); d++) {
    u32 width = type_elem_bits(t), limit = next_pow2(extent_of(t, d));
    r.contiguity[d] = min_u32(r.contiguity[d], limit);
    r.constancy[d] = min_u32(r.constancy[d], limit);
    if (!type_is_ptr(t) && width < 32)
      shrink_runs(&r, d, 1u << (width - 1), 1);
    r.divisibility[d] = max_u32(r.divisibility[d], all);
    settle_level(&r, d, t, limit);
  }
  return r;
}

static const AxisInfo *
facts(const Analysis *a, const Op *op, u32 i)
{
  return &a->info[op_operand(op, i)->id];
}

/* ---- arithmetic: two operands of one shape ---- */
typedef struct Pair { const AxisInfo *a, *b; const Type *ta, *tb; } Pair;

static AxisInfo
equal_runs(const AxisInfo *a, const AxisInfo *b, const Type *t)
{
  AxisInfo r = unknown();
  for (u32 d = 0; d < dims_of(t); d++)
    r.constancy[d] = min_u32(a->constancy[d], b->constancy[d]);
  return r;
}

/* Longest g such that runs of g of x start at multiples of g while y is equal along them, and a multiple of g. */
static u32
aligned_run(const AxisInfo *x, const AxisInfo *y, u32 d)
{
  return min4(x->contiguity[d], x->divisibility[d], y->constancy[d], y->divisibility[d]);
}

static AxisInfo
rule_add(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  u32 unit = unit_of(p.ta);                    /* a pointer's offset counts pointees */
  for (u32 d = 0; d < dims_of(p.ta); d++) {
    u32 c = max_u32(min_u32(p.a->contiguity[d], p.b->constancy[d]),
                    min_u32(p.a->constancy[d], p.b->contiguity[d]));
    r.contiguity[d] = c;
    r.divisibility[d] = min_u32(div_at(p.a, d, c, unit), mul_cap(div_at(p.b, d, c, 1), unit));
  }
  return r;
}

static AxisInfo
rule_sub(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  for (u32 d = 0; d < dims_of(p.ta); d++) {
    u32 c = r.contiguity[d] = min_u32(p.a->contiguity[d], p.b->constancy[d]);
    r.divisibility[d] = min_u32(div_at(p.a, d, c, 1), div_at(p.b, d, c, 1));
  }
  return r;
}

static AxisInfo
all_divisible(AxisInfo r, const Type *t, u32 div)
{
  for (u32 d = 0; d < dims_of(t); d++)
    r.divisibility[d] = div;
  return r;
}

static AxisInfo
rule_mul(Pair p)
{
  return all_divisible(equal_runs(p.a, p.b, p.ta), p.ta, mul_cap(div_all(p.a, p.ta), div_all(p.b, p.tb)));
}

static AxisInfo
rule_div(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  bool down = !dtype_is_signed(p.ta->dt) || p.a->nonneg;      /* truncates downward */
  u32 all = div_all(p.a, p.ta);
  for (u32 d = 0; down && d < dims_of(p.ta); d++)
    r.constancy[d] = max_u32(r.constancy[d], level_run(p.a, p.b, d));
  if (p.b->is_const && p.b->value > 0 && is_pow2((u64)p.b->value) && p.b->value <= all)
    return all_divisible(r, p.ta, all / (u32)p.b->value);
  return r;
}

static AxisInfo
rule_rem(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  for (u32 d = 0; d < dims_of(p.ta); d++) {
    u32 c = r.contiguity[d] = aligned_run(p.a, p.b, d);
    r.divisibility[d] = min_u32(div_at(p.a, d, c, 1), div_at(p.b, d, c, 1));
  }
  return r;
}

/* x & (2^k - 1): runs stay runs. */
static u32
low_mask_run(const AxisInfo *x, const AxisInfo *mask, u32 d)
{
  if (!mask->is_const || mask->value <= 0 || !is_pow2((u64)mask->value + 1))
    return 1;
  return min_u32(min_u32(x->contiguity[d], x->divisibility[d]), pow2_part((u64)mask->value + 1));
}

static AxisInfo
rule_and(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  for (u32 d = 0; d < dims_of(p.ta); d++) {
    u32 cleared = max_u32(level_run(p.a, p.b, d), level_run(p.b, p.a, d));
    u32 c = r.contiguity[d] = max_u32(low_mask_run(p.a, p.b, d), low_mask_run(p.b, p.a, d));
    r.constancy[d] = max_u32(r.constancy[d], cleared);
    r.divisibility[d] = max_u32(div_at(p.a, d, c, 1), div_at(p.b, d, c, 1));
  }
  return r;
}

/* or, xor: with low bits that are clear on the other side they add. */
static AxisInfo
rule_or(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  for (u32 d = 0; d < dims_of(p.ta); d++) {
    u32 c = r.contiguity[d] = max_u32(aligned_run(p.a, p.b, d), aligned_run(p.b, p.a, d));
    r.divisibility[d] = min_u32(div_at(p.a, d, c, 1), div_at(p.b, d, c, 1));
  }
  return r;
}

static bool
shift_amount(Pair p, u32 *k)
{
  if (!p.b->is_const || p.b->value < 0 || p.b->value >= dtype_bits(p.ta->dt))
    return false;
  *k = (u32)p.b->value;
  return true;
}

static AxisInfo
rule_shl(Pair p)
{
  u32 k = 0, all = div_all(p.a, p.ta);
  bool known = shift_amount(p, &k);
  return all_divisible(equal_runs(p.a, p.b, p.ta), p.ta, known ? mul_cap(all, 1u << min_u32(k, 30)) : all);
}

static AxisInfo
rule_shr(Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  u32 k, all = div_all(p.a, p.ta);
  if (!shift_amount(p, &k))
    return r;
  k = min_u32(k, 30);
  for (u32 d = 0; d < dims_of(p.ta); d++)
    r.constancy[d] = max_u32(r.constancy[d], run_within(p.a, d, 1u << k));
  return all_divisible(r, p.ta, max_u32(all >> k, 1));
}

static AxisInfo
rule_min(Pair p)
{
  return all_divisible(equal_runs(p.a, p.b, p.ta), p.ta, min_u32(div_all(p.a, p.ta), div_all(p.b, p.tb)));
}

/* x + y: from cell to cell by a multiple of the cell's size, or inside the gap behind each multiple. */
static Level
level_moved(const AxisInfo *x, const AxisInfo *y, u32 d, u32 gap)
{
  bool inside = y->is_const && y->value >= 0 && y->value < min_u32(gap, x->stride[d]);
  return (Level){x->stride[d], inside ? x->steps[d] : level_run(x, y, d)};
}

/* x * by and x / by: of powers of two only. */
static Level
level_scaled(const AxisInfo *x, u32 d, u64 by)
{
  if (!by || !is_pow2(by))
    return (Level){1, 1};
  return (Level){mul_cap(x->stride[d], pow2_part(by)), x->steps[d]};
}

static Level
level_divided(const AxisInfo *x, u32 d, u64 by)
{
  if (!by || !is_pow2(by))
    return (Level){1, 1};
  return (Level){max_u32((u32)(x->stride[d] / by), 1), x->steps[d]};
}

static Level
level_longer(Level a, Level b)
{
  return a.steps > b.steps ? a : b;
}

static Level
level_binary(OpCode op, Pair p, u32 d)
{
  u64 by = p.b->is_const && p.b->value > 0 ? (u64)p.b->value : 0, of = p.a->is_const && p.a->value > 0 ? (u64)p.a->value : 0;
  bool down = !dtype_is_signed(p.ta->dt) || p.a->nonneg;
  u32 k;
  switch (op) {
  case OP_ADD: return level_longer(level_moved(p.a, p.b, d, div_all(p.a, p.ta)), level_moved(p.b, p.a, d, div_all(p.b, p.tb)));
  case OP_SUB: return level_moved(p.a, p.b, d, 0);
  case OP_REM: return (Level){p.a->stride[d], down ? level_run(p.a, p.b, d) : 1};
  case OP_MUL: return by ? level_scaled(p.a, d, by) : level_scaled(p.b, d, of);
  case OP_SHL: return level_scaled(p.a, d, shift_amount(p, &k) ? 1ull << k : 0);
  case OP_SHR: return level_divided(p.a, d, shift_amount(p, &k) ? 1ull << k : 0);
  case OP_DIV: return level_divided(p.a, d, down ? by : 0);
  case OP_AND: case OP_OR: case OP_XOR: return level_both(p.a, p.b, d);
  case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: return level_both(p.a, p.b, d);
  default: return (Level){1, 1};
  }
}

static AxisInfo
with_levels(OpCode op, Pair p, AxisInfo r)
{
  for (u32 d = 0; d < dims_of(p.ta); d++)
    set_level(&r, d, level_binary(op, p, d));
  return r;
}

static AxisInfo
rule_binary(OpCode op, Pair p)
{
  switch (op) {
  case OP_ADD: case OP_ADDPTR: return rule_add(p);
  case OP_SUB: return rule_sub(p);
  case OP_MUL: return rule_mul(p);
  case OP_DIV: return rule_div(p);
  case OP_REM: return rule_rem(p);
  case OP_AND: return rule_and(p);
  case OP_OR: case OP_XOR: return rule_or(p);
  case OP_SHL: return rule_shl(p);
  case OP_SHR: return rule_shr(p);
  case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: return rule_min(p);
  default: return equal_runs(p.a, p.b, p.ta);
  }
}

/* ---- other elementwise ops ---- */
/* x < bound changes only at x = bound, so along an aligned run and an aligned bound it does not change; x <= bound does. */
static AxisInfo
rule_cmp(Pred pred, Pair p)
{
  AxisInfo r = equal_runs(p.a, p.b, p.ta);
  bool below = pred == PRED_LT || pred == PRED_GE, above = pred == PRED_LE || pred == PRED_GT;
  for (u32 d = 0; d < dims_of(p.ta) && !type_is_float(p.ta); d++) {
    u32 together = min4(p.a->contiguity[d], p.a->divisibility[d], p.b->contiguity[d], p.b->divisibility[d]);
    u32 k = max_u32(r.constancy[d], type_is_ptr(p.ta) ? 1 : together);
    if (below && !type_is_ptr(p.ta))
      k = max_u32(k, level_run(p.a, p.b, d));
    if (above && !type_is_ptr(p.ta))
      k = max_u32(k, level_run(p.b, p.a, d));
    r.constancy[d] = k;
  }
  return r;
}

static AxisInfo
rule_select(const Analysis *a, const Op *op)
{
  const AxisInfo *c = facts(a, op, SLOT(SELECT, c)), *x = facts(a, op, SLOT(SELECT, a)), *y = facts(a, op, SLOT(SELECT, b));
  const Type *t = op_result(op)->type;
  u32 unit = unit_of(t);
  AxisInfo r = equal_runs(x, y, t), even = type_is_tile(OPERAND(op, SELECT, c)->type) ? *c : uniform(t, 1);
  for (u32 d = 0; d < dims_of(t); d++) {
    u32 run = min4(x->contiguity[d], y->contiguity[d], even.constancy[d], DIV_MAX);
    r.constancy[d] = min_u32(r.constancy[d], even.constancy[d]);
    r.contiguity[d] = run;
    r.divisibility[d] = min_u32(div_at(x, d, run, unit), div_at(y, d, run, unit));
    Level l = level_both(x, y, d);
    set_level(&r, d, (Level){l.stride, min_u32(l.steps, even.constancy[d])});
  }
  return r;
}

/* Between integer types: a run that starts at a multiple of its length changes sign or wraps nowhere inside. */
static AxisInfo
recode_int(AxisInfo r, const Type *t)
{
  for (u32 d = 0; d < dims_of(t); d++)
    shrink_runs(&r, d, r.divisibility[d], 1);
  return r;
}

static AxisInfo
only_constancy(const AxisInfo *x, const Type *t)
{
  return equal_runs(x, x, t);
}

static AxisInfo
rule_cast(const AxisInfo *x, const Type *from, const Type *to, bool sat)
{
  if (!type_is_int(from) || !type_is_int(to) || sat)
    return only_constancy(x, to);
  AxisInfo r = recode_int(*x, to);
  r.is_const = false;
  return r;
}

static AxisInfo
rule_bitcast(const AxisInfo *x, const Type *from, const Type *to)
{
  bool plain = (type_is_ptr(from) || type_is_int(from)) && (type_is_ptr(to) || type_is_int(to));
  if (!plain)
    return only_constancy(x, to);
  AxisInfo r = *x;
  r.is_const = r.nonneg = false;
  if (unit_of(from) != unit_of(to)) {
    u32 all = div_all(x, from);
    r = all_divisible(only_constancy(x, to), to, all);
  }
  return type_is_ptr(to) && type_is_ptr(from) ? r : recode_int(r, to);
}

static u64
promised(const Op *op, AttrId id)
{
  i64 v = op_int(op, id, 1);
  return v > 0 ? (u64)v : 1;
}

/* The promise of interp_hint. */
static AxisInfo
rule_hint(const Op *op, AxisInfo r)
{
  const Type *t = op_result(op)->type;
  u32 last = dims_of(t) - 1, div = pow2_part(promised(op, AT_DIVISIBLE));
  u64 run = type_is_tile(t) ? promised(op, AT_CONTIGUOUS) : 1;
  if (type_is_float(t) || type_is_bool(t))
    return r;
  if (type_is_tile(t))
    r.constancy[last] = max_u32(r.constancy[last], pow2_part(promised(op, AT_CONSTANT)));
  if (run <= 1) {
    for (u32 d = 0; d <= last; d++)
      r.divisibility[d] = max_u32(r.divisibility[d], div);
    return r;
  }
  u32 c = pow2_part(run);
  if (c != run)
    div = min_u32(div, mul_cap(c, unit_of(t)));
  r.contiguity[last] = max_u32(r.contiguity[last], c);
  r.divisibility[last] = max_u32(r.divisibility[last], div);
  return r;
}

/* ---- shapes ---- */
static AxisInfo
rule_expand_dims(const Op *op, const AxisInfo *x)
{
  const Type *t = op_result(op)->type, *from = OPERAND(op, EXPAND_DIMS, x)->type;
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  AxisInfo r = *x;
  for (u32 d = axis; d < t->rank; d++) {
    bool fresh = d == axis;
    r.contiguity[d] = fresh ? 1 : x->contiguity[d - 1];
    r.constancy[d] = fresh ? 1 : x->constancy[d - 1];
    set_level(&r, d, fresh ? (Level){1, 1} : (Level){x->stride[d - 1], x->steps[d - 1]});
    r.divisibility[d] = fresh ? div_all(x, from) : x->divisibility[d - 1];
  }
  return r;
}

static AxisInfo
rule_broadcast(const Op *op, AxisInfo r)
{
  const Type *t = op_result(op)->type, *from = OPERAND(op, BROADCAST, x)->type;
  for (u32 d = 0; d < t->rank; d++)
    if (from->shape[d] != t->shape[d])
      r.constancy[d] = next_pow2(t->shape[d]);
  return r;
}

static AxisInfo
rule_permute(const Op *op, const AxisInfo *x)
{
  const Attr *perm = op_attr(op, AT_PERM);
  AxisInfo r = *x;
  for (u32 d = 0; d < op_result(op)->type->rank; d++) {
    r.contiguity[d] = x->contiguity[perm->ints.v[d]];
    r.constancy[d] = x->constancy[perm->ints.v[d]];
    set_level(&r, d, (Level){x->stride[perm->ints.v[d]], x->steps[perm->ints.v[d]]});
    r.divisibility[d] = x->divisibility[perm->ints.v[d]];
  }
  return r;
}

static AxisInfo
rule_splat(const Op *op, const AxisInfo *x)
{
  AxisInfo r = uniform(op_result(op)->type, x->divisibility[0]);
  r.is_const = x->is_const;
  r.value = x->value;
  r.nonneg = x->nonneg;
  return r;
}

static bool
all_equal(const AxisInfo *x, const Type *t)
{
  for (u32 d = 0; d < dims_of(t); d++)
    if (x->constancy[d] < extent_of(t, d))
      return false;
  return true;
}

/* Extents without the ones, and which dimension each came from; returns how many. */
static u32
long_dims(const Type *t, u32 *extent, u32 *dim)
{
  u32 n = 0;
  for (u32 d = 0; d < t->rank; d++)
    if (t->shape[d] != 1) {
      extent[n] = t->shape[d];
      dim[n++] = d;
    }
  return n;
}

/* Adding and dropping dimensions of extent 1 keeps the facts of the others. */
static bool
reshape_units(const AxisInfo *x, const Type *from, const Type *to, AxisInfo *r)
{
  u32 ef[MAX_RANK], et[MAX_RANK], df[MAX_RANK], dt[MAX_RANK], n = long_dims(from, ef, df);
  if (long_dims(to, et, dt) != n || memcmp(ef, et, n * sizeof *ef))
    return false;
  for (u32 i = 0; i < n; i++) {
    r->contiguity[dt[i]] = x->contiguity[df[i]];
    r->constancy[dt[i]] = x->constancy[df[i]];
    set_level(r, dt[i], (Level){x->stride[df[i]], x->steps[df[i]]});
    r->divisibility[dt[i]] = x->divisibility[df[i]];
  }
  return true;
}

/* Along the last dimension, through the flat order: a run of the old rows that is aligned in both shapes stays one. */
static void
reshape_rows(const AxisInfo *x, const Type *from, const Type *to, AxisInfo *r)
{
  u32 df = from->rank - 1, dt = to->rank - 1, rows = type_numel(from) / from->shape[df];
  u32 whole = min_u32(rows == 1 ? DIV_MAX : pow2_part(from->shape[df]),
                      type_numel(to) == to->shape[dt] ? DIV_MAX : pow2_part(to->shape[dt]));
  u32 c = min_u32(x->contiguity[df], whole);
  r->contiguity[dt] = c;
  r->divisibility[dt] = max_u32(r->divisibility[dt], div_at(x, df, c, unit_of(from)));
  r->constancy[dt] = min_u32(x->constancy[df], whole);
  set_level(r, dt, (Level){x->stride[df], min_u32(x->steps[df], whole)});
}

static AxisInfo
rule_reshape(const Op *op, const AxisInfo *x)
{
  const Type *t = op_result(op)->type, *from = OPERAND(op, RESHAPE, x)->type;
  u32 all = div_all(x, from);
  AxisInfo r = all_divisible(unknown(), t, all);
  if (all_equal(x, from))
    r = uniform(t, all);
  else if (!reshape_units(x, from, t, &r))
    reshape_rows(x, from, t, &r);
  r.is_const = x->is_const;
  r.value = x->value;
  r.nonneg = x->nonneg;
  return r;
}

/* ---- signs and constants ---- */
static bool
cast_nonneg(const AxisInfo *x, const Type *from, const Type *to)
{
  if (type_is_bool(from))
    return true;
  if (!type_is_int(from) || !type_is_int(to) || dtype_bits(to->dt) < dtype_bits(from->dt))
    return false;
  return x->nonneg || (!dtype_is_signed(from->dt) && dtype_bits(to->dt) > dtype_bits(from->dt));
}

static bool
result_nonneg(const Analysis *a, const Op *op)
{
  const Type *t = op_result(op)->type;
  bool x = op->noperands > 0 && facts(a, op, SLOT(BINARY, a))->nonneg, y = op->noperands > 1 && facts(a, op, SLOT(BINARY, b))->nonneg;
  bool sign = dtype_is_signed(t->dt);
  switch (op->code) {
  case OP_ADD: case OP_MUL: case OP_OR: case OP_XOR: return x && y;
  case OP_DIV: return x && (y || !sign);
  case OP_REM: return x;
  case OP_MIN: case OP_MINIMUM: return sign ? x && y : x || y;
  case OP_MAX: case OP_MAXIMUM: return sign ? x || y : x && y;
  case OP_AND: return x || y;
  case OP_SHL: case OP_SHR: case OP_HINT: return x;
  case OP_ABS: case OP_POPC: case OP_CLZ: return true;
  case OP_BOUNDED: return x || !OPERAND(op, BOUNDED, mask);   /* where the mask is off it may be anything */
  case OP_SELECT: return y && facts(a, op, SLOT(SELECT, b))->nonneg;
  case OP_CAST: return cast_nonneg(facts(a, op, SLOT(CAST, x)), OPERAND(op, CAST, x)->type, t);
  default: return false;
  }
}

/* The value of an op whose operands are constants, by the interpreter's own arithmetic. */
static bool
fold_value(const Analysis *a, const Op *op, i64 *out)
{
  const Type *t = op_result(op)->type, *from = op->noperands ? OPERAND(op, UNARY, x)->type : t;
  u64 bits[3] = {0}, r;
  if (type_is_ptr(t) || type_is_ptr(from) || type_is_float(t) || type_is_float(from) || op->noperands > 3)
    return false;
  for (u32 i = 0; i < op->noperands; i++) {
    if (!facts(a, op, i)->is_const)
      return false;
    bits[i] = scalar_wrap(op_operand(op, i)->type->dt, (u64)facts(a, op, i)->value);
  }
  if (op->code == OP_CMP)
    r = scalar_cmp(pred_find(op_str(op, AT_PRED, NULL)), from->dt, bits[0], bits[1]);
  else if (op->code == OP_SELECT)
    r = bits[0] ? bits[1] : bits[2];
  else if (op->code == OP_CAST)
    r = scalar_cast(from->dt, t->dt, bits[0], ROUND_NEAREST, op_int(op, AT_SAT, 0) != 0);
  else if (op->code == OP_HINT || op->code == OP_BITCAST || op->code == OP_BOUNDED)
    r = bits[0];
  else if (op->noperands == 1)
    r = scalar_unary(op->code, t->dt, bits[0]);
  else if (!scalar_binary(op->code, t->dt, bits[0], bits[1], &r))
    return false;
  *out = scalar_int(t->dt, r);
  return true;
}

/* ---- ops ---- */
static AxisInfo
elementwise(const Analysis *a, const Op *op)
{
  const Type *t = op_result(op)->type, *from = OPERAND(op, UNARY, x)->type;
  const AxisInfo *x = facts(a, op, SLOT(UNARY, x));
  bool numbers = type_is_int(from) || type_is_ptr(from) || op->code == OP_CMP || op->code == OP_SELECT;
  if (op->code == OP_SELECT)
    return rule_select(a, op);
  if (op->code == OP_CAST)
    return rule_cast(x, from, t, op_int(op, AT_SAT, 0) != 0);
  if (op->code == OP_BITCAST)
    return rule_bitcast(x, from, t);
  if (op->code == OP_HINT)
    return rule_hint(op, *x);
  if (op->code == OP_BOUNDED)
    return *x;
  if (op->noperands == 2 && numbers) {
    Pair p = {x, facts(a, op, SLOT(BINARY, b)), from, OPERAND(op, BINARY, b)->type};
    return op->code == OP_CMP ? rule_cmp(pred_find(op_str(op, AT_PRED, NULL)), p) : with_levels(op->code, p, rule_binary(op->code, p));
  }
  if (op->code == OP_NEG || op->code == OP_ABS)
    return all_divisible(only_constancy(x, t), t, type_is_int(t) ? div_all(x, t) : 1);
  AxisInfo r = only_constancy(x, t);
  for (u32 i = 1; i < op->noperands; i++)
    r = equal_runs(&r, facts(a, op, i), t);
  return r;
}

static AxisInfo
elementwise_facts(const Analysis *a, const Op *op)
{
  i64 v;
  if (fold_value(a, op, &v))
    return constant(op_result(op)->type, v);
  AxisInfo r = elementwise(a, op);
  r.is_const = false;
  r.value = 0;
  r.nonneg = result_nonneg(a, op);
  return r;
}

static AxisInfo
const_facts(const Op *op)
{
  const Type *t = op_result(op)->type;
  u64 bits = (u64)op_int(op, AT_VALUE, 0);
  if (type_is_float(t))
    return uniform(t, 1);
  if (type_is_ptr(t))
    return uniform(t, pow2_part(bits));
  return constant(t, scalar_int(t->dt, bits));
}

static AxisInfo
arange_facts(const Op *op)
{
  AxisInfo r = unknown();
  i64 start = op_int(op, AT_START, 0);
  r.contiguity[0] = next_pow2(op_result(op)->type->shape[0]);
  r.divisibility[0] = pow2_part((u64)start);
  r.nonneg = start >= 0;
  return r;
}

/* What is read at one address, if it is read at all. */
static AxisInfo
load_facts(const Analysis *a, const Op *op)
{
  const Type *t = op_result(op)->type;
  AxisInfo r = only_constancy(facts(a, op, SLOT(LOAD, p)), t);
  for (u32 i = SLOT(LOAD, mask); i <= SLOT(LOAD, other); i++)
    if (op_operand(op, i))
      r = equal_runs(&r, facts(a, op, i), t);
  return op_int(op, AT_VOLATILE, 0) ? unknown() : r;
}

static AxisInfo
stride_facts(const Analysis *a, const Op *op)
{
  const Value *t = OPERAND(op, TENSOR_STRIDE, t);
  u32 pitch = t->def ? 0 : a->func->params[t->index].pitch;
  AxisInfo r = uniform(op_result(op)->type, pitch ? pow2_part(pitch) : 1);
  r.nonneg = true;
  return r;
}

static AxisInfo
result_facts(const Analysis *a, const Op *op)
{
  AxisInfo r = unknown();
  switch (op->code) {
  case OP_CONST: return const_facts(op);
  case OP_ARANGE: return arange_facts(op);
  case OP_PROGRAM_ID: case OP_NUM_PROGRAMS: case OP_RESIDENT_ID: case OP_CLUSTER_RANK: case OP_NUM_RESIDENTS: case OP_TENSOR_EXTENT:
    r.nonneg = true;
    return r;
  case OP_TENSOR_STRIDE: return stride_facts(a, op);
  case OP_TENSOR_BASE: return *facts(a, op, SLOT(TENSOR_BASE, t));
  case OP_SPLAT: return rule_splat(op, facts(a, op, SLOT(SPLAT, x)));
  case OP_BROADCAST: return rule_broadcast(op, *facts(a, op, SLOT(BROADCAST, x)));
  case OP_EXPAND_DIMS: return rule_expand_dims(op, facts(a, op, SLOT(EXPAND_DIMS, x)));
  case OP_RESHAPE: return rule_reshape(op, facts(a, op, SLOT(RESHAPE, x)));
  case OP_PERMUTE: return rule_permute(op, facts(a, op, SLOT(PERMUTE, x)));
  case OP_CONVERT_LAYOUT: return *facts(a, op, SLOT(CONVERT_LAYOUT, x));
  case OP_LOAD: return load_facts(a, op);
  default: return op_has(op, T_ELEM) && op->noperands ? elementwise_facts(a, op) : r;
  }
}

/* ---- control flow ---- */
static void
set_facts(Analysis *a, const Value *v, AxisInfo r)
{
  a->info[v->id] = settle(r, v->type);
}

/* What flows into a loop argument, from before the loop or from the end of its body. */
static void
flow_into(Analysis *a, const Value *arg, const Value *from)
{
  AxisInfo *old = &a->info[arg->id], fresh = a->info[from->id];
  if (a->seen[arg->id])
    fresh = meet(old, &fresh, arg->type);
  if (a->seen[arg->id] && same_facts(old, &fresh))
    return;
  if (a->seen[arg->id] && a->sweep > SWEEPS_EXACT)
    fresh = unknown();
  *old = fresh;
  a->seen[arg->id] = 1;
  a->changed = true;
}

static void
run_for(Analysis *a, const Op *op)
{
  const Value *lo = OPERAND(op, FOR, lo), *step = OPERAND(op, FOR, step);
  u32 n = op->nresults;
  AxisInfo counter = uniform(lo->type, min_u32(a->info[lo->id].divisibility[0], a->info[step->id].divisibility[0]));
  counter.nonneg = a->info[lo->id].nonneg;
  set_facts(a, loop_counter(op), counter);
  for (u32 i = 0; i < n; i++)
    flow_into(a, loop_arg(op, 0, i), loop_init(op, i));
  run_block(a, op->regions[0]);
  for (u32 i = 0; i < n; i++) {
    flow_into(a, loop_arg(op, 0, i), loop_next(op, i));
    a->info[op->results[i]->id] = a->info[loop_arg(op, 0, i)->id];
  }
}

static void
run_while(Analysis *a, const Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    flow_into(a, loop_arg(op, 0, i), loop_init(op, i));
  run_block(a, op->regions[0]);
  for (u32 i = 0; i < op->nresults; i++) {
    AxisInfo passed = a->info[region_yields(op, 0, i)->id];
    a->info[op->results[i]->id] = a->info[loop_arg(op, 1, i)->id] = passed;
  }
  run_block(a, op->regions[1]);
  for (u32 i = 0; i < op->nresults; i++)
    flow_into(a, loop_arg(op, 0, i), loop_next(op, i));
}

static void
run_if(Analysis *a, const Op *op)
{
  run_block(a, op->regions[0]);
  run_block(a, op->regions[1]);
  for (u32 i = 0; i < op->nresults; i++) {
    const AxisInfo *x = &a->info[region_yields(op, 0, i)->id], *y = &a->info[region_yields(op, 1, i)->id];
    a->info[op->results[i]->id] = meet(x, y, op->results[i]->type);
  }
}

static void
run_op(Analysis *a, const Op *op)
{
  if (op->code == OP_FOR)
    run_for(a, op);
  else if (op->code == OP_WHILE)
    run_while(a, op);
  else if (op->code == OP_IF)
    run_if(a, op);
  else if (op->nregions)
    for (u32 r = 0; r < op->nregions; r++)
      run_block(a, op->regions[r]);               /* reduce: arguments and results are unknown */
  else
    for (u32 i = 0; i < op->nresults; i++)
      set_facts(a, op->results[i], result_facts(a, op));
}

static void
run_block(Analysis *a, const Block *b)
{
  for (const Op *op = b->first; op; op = op->next)
    run_op(a, op);
}

static AxisInfo
param_facts(const Func *f, u32 i)
{
  u32 div = f->params[i].divisible ? pow2_part(f->params[i].divisible) : 1;
  const Type *t = f->body->args[i]->type;
  return uniform(t, type_is_float(t) || type_is_bool(t) ? 1 : div);
}

/* Table by value id, in scratch. */
AxisInfo *
analyse_axes(Func *f)
{
  Arena *arena = f->module->ctx->scratch;
  Analysis a = {.func = f, .info = NEW_ARRAY(arena, AxisInfo, f->nvalues), .seen = NEW_ARRAY(arena, u8, f->nvalues)};
  for (u32 i = 0; i < f->nvalues; i++)
    a.info[i] = unknown();
  for (u32 i = 0; i < f->body->nargs; i++)
    a.info[f->body->args[i]->id] = param_facts(f, i);
  do {
    a.changed = false;
    a.sweep++;
    run_block(&a, f->body);
  } while (a.changed);
  return a.info;
}

/* See ir.h. */
u32
axis_fastest(const AxisInfo *a, u32 rank)
{
  u32 best = rank - 1;
  for (u32 d = rank; d-- > 0;)
    if (a->contiguity[d] > a->contiguity[best])
      best = d;
  return best;
}

/* Elements per access along dim; see ir.h. */
u32
axis_vector(const AxisInfo *p, const AxisInfo *mask, u32 dim, u32 extent, u32 elem_bytes, u32 max_bytes)
{
  u32 bytes = min_u32(p->divisibility[dim], max_bytes ? max_bytes : 16);
  u32 masked = mask ? mask->constancy[dim] : DIV_MAX;
  u32 v = min4(p->contiguity[dim], max_u32(bytes / elem_bytes, 1), masked, pow2_part(extent));
  while (!is_pow2(v))
    v &= v - 1;
  return v;
}
