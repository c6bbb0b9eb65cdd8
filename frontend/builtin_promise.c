/* builtin_promise.c - promises about values. One that is plainly false is an error, as what follows from it would be wrong numbers.
 *
 * In other languages multiple_of speaks of the first element of each run, here of every element. So a promise about a tile made from
 * arange is looked at: by how much neighbours differ along a dimension, which is known through sums, constant factors and shapes, and
 * but for single places through what wraps or clamps an index (i % n, min(i, n), where(i < n, i, 0)). */
#include "sema.h"

enum { STEP_VISITS_MAX = 1000 };

/* By how much neighbours differ along a dimension; pointers in bytes. cut: but for single places. */
typedef struct Step { bool known, cut; i64 by; } Step;

/* left: so many values may still be looked at. */
static Step step_along(const Value *v, u32 d, u32 *left);

static Step
step_sum(Step a, Step b, i64 sign)
{
  return (Step){a.known && b.known, a.cut || b.cut, a.known && b.known ? a.by + sign * b.by : 0};
}

static Step
step_times(Step a, i64 k)
{
  bool fits = k > -(1 << 20) && k < 1 << 20 && a.by > -(1 << 30) && a.by < 1 << 30;
  return (Step){a.known && fits, a.cut, fits ? a.by * k : 0};
}

/* One of the two, and the other is the same everywhere: the steps of the first, but where they change over. */
static Step
step_either(Step a, Step b)
{
  if (!a.known || !b.known || (a.by && b.by))
    return (Step){0};
  return (Step){true, a.by || b.by, a.by + b.by};
}

static Step
step_product(const Op *op, Step a, Step b)
{
  i64 k;
  if (a.known && b.known && !a.by && !b.by)
    return a;
  if (value_const_int(op_operand(op, 1), &k))
    return step_times(a, op->code == OP_SHL ? (k >= 0 && k < 20 ? (i64)1 << k : 1 << 20) : k);
  return op->code == OP_MUL && value_const_int(op_operand(op, 0), &k) ? step_times(b, k) : (Step){0};
}

static Step
step_of_shape(const Op *op, u32 d, u32 *left)
{
  const Value *x = op_operand(op, 0);
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  switch (op->code) {
  case OP_BROADCAST: return x->type->shape[d] == 1 ? (Step){.known = true} : step_along(x, d, left);
  case OP_EXPAND_DIMS: return d == axis ? (Step){.known = true} : step_along(x, d - (d > axis), left);
  default: return step_along(x, (u32)op_attr(op, AT_PERM)->ints.v[d], left);
  }
}

static Step
step_of_op(const Op *op, u32 d, u32 *left)
{
  const Type *t = op->results[0]->type;
  Step s[3] = {{0}};
  switch (op->code) {
  case OP_CONST: case OP_SPLAT: return (Step){.known = true};
  case OP_ARANGE: return (Step){.known = true, .by = 1};
  case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_PERMUTE: return step_of_shape(op, d, left);
  default: break;
  }
  for (u32 i = 0; i < 3 && op_has(op, T_ELEM) && i < op->noperands; i++)
    s[i] = step_along(op_operand(op, i), d, left);
  switch (op->code) {
  case OP_ADD: return step_sum(s[0], s[1], 1);
  case OP_SUB: return step_sum(s[0], s[1], -1);
  case OP_ADDPTR: return step_sum(s[0], step_times(s[1], (i64)dtype_bytes(t->dt)), 1);
  case OP_MUL: case OP_SHL: return step_product(op, s[0], s[1]);
  case OP_NEG: return step_times(s[0], -1);
  case OP_REM: case OP_MIN: case OP_MAX: return s[1].known && !s[1].by ? step_either(s[0], s[1]) : (Step){0};
  case OP_SELECT: return step_either(s[1], s[2]);
  case OP_CAST: return type_elem_bits(t) >= type_elem_bits(op_operand(op, 0)->type) ? s[0] : (Step){0};
  case OP_HINT: return s[0];
  default: return (Step){0};
  }
}

static Step
step_along(const Value *v, u32 d, u32 *left)
{
  if (!type_is_tile(v->type) || v->type->shape[d] == 1)
    return (Step){.known = true};
  if (!v->def || !*left)
    return (Step){0};
  --*left;
  return step_of_op(v->def, d, left);
}

/* ---- the promises ---- */

static Val
false_constant(Lower *L, const Call *c, Val x, i64 n)
{
  ERR(L, c->span, E_PROMISE, arena_printf(L->a, "%s is no multiple of %lld", const_str(L, x.k), (long long)n));
  return val_poison(c->span);
}

/* Reports a promise that neighbours along a dimension break. */
static bool
is_false(Lower *L, const Call *c, Val x, AttrId id, i64 n)
{
  const Type *t = x.ir->type;
  i64 unit = type_is_ptr(t) ? dtype_bytes(t->dt) : 1;
  for (u32 d = type_is_tile(t) && id != AT_DIVISIBLE ? t->rank - 1u : 0; d < t->rank && n > 1; d++) {
    u32 left = STEP_VISITS_MAX;
    Step s = step_along(x.ir, d, &left);
    bool fits = id == AT_DIVISIBLE ? s.by % n == 0 : id == AT_CONTIGUOUS ? s.by == unit : s.by == 0;
    if (fits || !s.known || t->shape[d] < (s.cut ? 3u : 2u))
      continue;
    const char *must = id == AT_DIVISIBLE ? arena_printf(L->a, "multiples of %lld", (long long)n)
                     : id == AT_CONTIGUOUS ? "consecutive" : "equal";
    Diag *e = ERR(L, c->span, E_PROMISE, arena_printf(L->a, "neighbours along dimension %u differ by %lld%s: they are not %s", d,
                                                      (long long)s.by, type_is_ptr(t) ? " bytes" : "", must));
    note_value(L, e, x);
    if (id == AT_DIVISIBLE)
      diag_hint(L->c, e, "%s speaks of every element, not of the first of a run: say it of what is added to arange, which needs none",
                c->name);
    return true;
  }
  return false;
}

static Val
promise(Lower *L, Call *c, AttrId id)
{
  i64 n;
  Val x = c->args[0];
  if (!val_need_data(L, x, c->name) || !call_int(L, c, 1, "the promise", &n))
    return val_poison(c->span);
  if (n < 1 || n > 1 << 30)
    return call_error(L, c, c->args[1].span, "the promise is a number from 1 to 2^30");
  if (x.kind == V_CONST)
    return id == AT_DIVISIBLE && !const_is_float(x.k) && x.k.i % n ? false_constant(L, c, x, n) : x;
  if (type_is_float(x.ir->type) || type_is_bool(x.ir->type)) {
    ERR(L, x.span, E_ARGUMENT, c->name, "integers or pointers", val_str(L, x));
    return val_poison(c->span);
  }
  if (is_false(L, c, x, id, n))
    return val_poison(c->span);
  L->b.span = c->span;
  Value *r = ir_unary(&L->b, OP_HINT, x.ir);
  op_set_int(r->def, id, n);
  return val_ir(r, c->span);
}

Val
builtin_multiple_of(Lower *L, Call *c)
{
  return promise(L, c, AT_DIVISIBLE);
}

Val
builtin_max_contiguous(Lower *L, Call *c)
{
  return promise(L, c, AT_CONTIGUOUS);
}

Val
builtin_max_constancy(Lower *L, Call *c)
{
  return promise(L, c, AT_CONSTANT);
}

Val
builtin_assume(Lower *L, Call *c)
{
  Val v = c->args[0];
  if (!call_truth(L, c))
    return val_poison(c->span);
  if (v.kind == V_CONST)
    return v.k.i ? val_void(c->span) : call_error(L, c, v.span, "this is false");
  L->b.span = c->span;
  op_create(&L->b, OP_ASSUME, 1, &v.ir, 0, NULL, 0);
  return val_void(c->span);
}
