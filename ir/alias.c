/* alias.c - the algebra of alias.h.
 *
 * An address is root + bytes + sum of coef * v, where a v is a scalar, the same for all elements, or a tile that gives each
 * element a number. Index arithmetic is taken apart as far as it is linear, on the rule of the language that what a pointer is
 * moved by does not overflow; what is not linear is a term of its own.
 *
 * The difference between the addresses of an element of b and any element of a is then an interval: scalars that both have with one
 * coefficient cancel; what remains is bounded by what is known of its values (a range's ends, a remainder, a loop's bounds). Where an
 * iteration of a loop lies between them, its counter grew by at least one step, and values computed inside of it have nothing to
 * do with each other. If the interval keeps the elements' bytes apart, the accesses never touch.
 *
 * Otherwise they need no order if every address stays with its thread: the same sum in the same layout, of which no thread holds a
 * copy of another's element, and different elements at different addresses. That last point matters even though a store gives no
 * address two values: t loads from where u has stored already. Scalars are loaded by every thread and stored by the leader alone. */
#include "alias.h"

/* Numbers that an index can be; at INFINITE or beyond: no bound. */
#define INFINITE (INT64_C(1) << 61)
typedef struct Interval { i64 lo, hi; } Interval;

/* Values that one question looks at: expressions that share their parts are as large as one likes. */
enum { BUDGET = 200 };

static bool
spend(u32 *budget)
{
  return *budget && (*budget)--;
}

/* ---- intervals ---- */

static const Interval everything = {-INFINITE, INFINITE};

static i64
clamp(i64 v)
{
  return v < -INFINITE ? -INFINITE : v > INFINITE ? INFINITE : v;
}

static bool
is_infinite(i64 v)
{
  return v <= -INFINITE || v >= INFINITE;
}

static i64
mul_bound(i64 a, i64 b)
{
  i64 p;
  if (!a || !b)
    return 0;
  if (is_infinite(a) || is_infinite(b) || __builtin_mul_overflow(a, b, &p))
    return (a < 0) == (b < 0) ? INFINITE : -INFINITE;
  return clamp(p);
}

static Interval
add(Interval a, Interval b)
{
  return (Interval){is_infinite(a.lo) || is_infinite(b.lo) ? -INFINITE : clamp(a.lo + b.lo),
                    is_infinite(a.hi) || is_infinite(b.hi) ? INFINITE : clamp(a.hi + b.hi)};
}

static Interval
scale(Interval a, i64 k)
{
  i64 x = mul_bound(a.lo, k), y = mul_bound(a.hi, k);
  return x < y ? (Interval){x, y} : (Interval){y, x};
}

static Interval
cover(Interval a, Interval b)
{
  return (Interval){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static Interval
of_type(const Type *t)
{
  if (!type_is_int(t) && !type_is_bool(t))
    return everything;
  u32 bits = dtype_bits(t->dt);
  if (bits == 64)
    return everything;
  i64 half = INT64_C(1) << (bits - 1);
  return dtype_is_signed(t->dt) ? (Interval){-half, half - 1} : (Interval){0, 2 * half - 1};
}

static Interval interval_of(const Value *v, u32 *budget);

/* a % b, a & b, a / b, a >> b, min, max: of numbers that are not negative by others that are known. */
static Interval
interval_of_binary(const Op *op, u32 *budget)
{
  Interval a = interval_of(OPERAND(op, BINARY, a), budget), b = interval_of(OPERAND(op, BINARY, b), budget), all = of_type(op_result(op)->type);
  switch (op->code) {
  case OP_ADD: return add(a, b);
  case OP_SUB: return add(a, scale(b, -1));
  case OP_MUL: return a.lo == a.hi ? scale(b, a.lo) : b.lo == b.hi ? scale(a, b.lo) : all;
  case OP_MIN: return (Interval){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  case OP_MAX: return (Interval){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
  case OP_REM: return b.lo > 0 ? (Interval){a.lo >= 0 ? 0 : 1 - b.hi, b.hi - 1} : all;
  case OP_DIV: return b.lo > 0 && a.lo >= 0 ? (Interval){0, a.hi} : all;
  case OP_SHR: return a.lo >= 0 ? (Interval){0, a.hi} : all;
  case OP_OR: case OP_XOR:
    return a.lo >= 0 && b.lo >= 0 && a.hi <= INT32_MAX && b.hi <= INT32_MAX ? (Interval){0, next_pow2((u32)(a.hi > b.hi ? a.hi : b.hi) + 1) - 1} : all;
  case OP_AND: return a.lo >= 0 && b.lo >= 0 ? (Interval){0, a.hi < b.hi ? a.hi : b.hi} : a.lo >= 0 ? (Interval){0, a.hi}
                      : b.lo >= 0 ? (Interval){0, b.hi} : all;
  default: return all;
  }
}

/* What the elements of v may be. Arithmetic is taken not to wrap where v is signed. */
static Interval
interval_of(const Value *v, u32 *budget)
{
  Interval all = of_type(v->type);
  i64 k;
  if (value_const_int(v, &k))
    return (Interval){k, k};
  if (!v->def) {
    const Op *loop = v->block->parent;
    if (!loop || loop->code != OP_FOR || v != loop_counter(loop) || !spend(budget))
      return all;
    Interval lo = interval_of(OPERAND(loop, FOR, lo), budget), hi = interval_of(OPERAND(loop, FOR, hi), budget);
    return (Interval){lo.lo, is_infinite(hi.hi) ? hi.hi : hi.hi - 1};
  }
  const Op *op = v->def;
  if (!spend(budget))
    return all;
  switch (op->code) {
  case OP_ARANGE: return (Interval){op_int(op, AT_START, 0), op_int(op, AT_END, 1) - 1};
  case OP_PROGRAM_ID: return (Interval){0, INT32_MAX - 1};
  case OP_NUM_PROGRAMS: return (Interval){1, INT32_MAX};
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE: case OP_CONVERT_LAYOUT: case OP_HINT:
    return interval_of(op_operand(op, 0), budget);
  case OP_CAST: {
    Interval from = interval_of(op_operand(op, 0), budget);
    return type_is_int(op_operand(op, 0)->type) && from.lo >= all.lo && from.hi <= all.hi ? from : all;
  }
  case OP_SELECT:
    return cover(interval_of(OPERAND(op, SELECT, a), budget), interval_of(OPERAND(op, SELECT, b), budget));
  default:
    return op->noperands == 2 && op_has(op, T_ELEM) && type_is_int(v->type) ? interval_of_binary(op, budget) : all;
  }
}

/* ---- addresses as sums ---- */

static void
add_term(GlobalAccess *a, const Value *v, u32 path, i64 coef)
{
  for (u32 i = 0; i < a->nterms; i++)
    if (a->term[i].v == v && a->term[i].path == path) {
      a->term[i].coef += coef;
      return;
    }
  if (a->nterms == ALIAS_TERMS)
    a->unknown = true;
  else
    a->term[a->nterms++] = (AliasTerm){v, path, coef};
}

/* May the sum be taken apart? A type without a sign wraps as a matter of course. */
static bool
is_linear(const Op *op)
{
  return type_is_int(op_result(op)->type) && dtype_is_signed(op_result(op)->type->dt);
}

/* a += coef * v. path: the dimensions that expand_dims inserted on the way, four bits each. */
static void
add_offset(GlobalAccess *a, const Value *v, u32 path, i64 coef, u32 *budget)
{
  const Op *op = v->def;
  i64 k;
  if (value_const_int(v, &k)) {
    a->bytes += coef * k;
    return;
  }
  if (!op || path >> 28 || !spend(budget)) {
    add_term(a, v, type_is_tile(v->type) ? path : 0, coef);
    return;
  }
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_CONVERT_LAYOUT: case OP_HINT:
    add_offset(a, op_operand(op, 0), path, coef, budget);
    return;
  case OP_EXPAND_DIMS:
    add_offset(a, op_operand(op, 0), path << 4 | ((u32)op_int(op, AT_AXIS, 0) + 1), coef, budget);
    return;
  case OP_CAST:
    if (!is_linear(op) || !type_is_int(op_operand(op, 0)->type) || dtype_bits(v->type->dt) < dtype_bits(op_operand(op, 0)->type->dt))
      break;
    add_offset(a, op_operand(op, 0), path, coef, budget);
    return;
  case OP_ADD: case OP_SUB:
    if (!is_linear(op))
      break;
    add_offset(a, OPERAND(op, BINARY, a), path, coef, budget);
    add_offset(a, OPERAND(op, BINARY, b), path, op->code == OP_SUB ? -coef : coef, budget);
    return;
  case OP_MUL: case OP_SHL:
    if (!is_linear(op) || !value_const_int(OPERAND(op, BINARY, b), &k) || (op->code == OP_SHL && (k < 0 || k > 31)) || k > INT32_MAX || k < INT32_MIN)
      break;
    add_offset(a, OPERAND(op, BINARY, a), path, coef * (op->code == OP_SHL ? INT64_C(1) << k : k), budget);
    return;
  default: break;
  }
  add_term(a, v, type_is_tile(v->type) ? path : 0, coef);
}

/* The pointer's root, with what is added to it on the way. */
static void
add_pointer(GlobalAccess *a, const Value *p, u32 path, u32 *budget)
{
  const Op *op = p->def;
  if (!op) {
    const Block *b = p->block;
    u32 k;
    if (!b->parent) {
      a->root = p;
      return;
    }
    a->unknown = true;   /* carried by a loop: it stays with the parameter that it starts from */
    if (op_is_loop(b->parent) && loop_carries(b->parent, p, &k) && spend(budget))
      add_pointer(a, loop_init(b->parent, k), path, budget);
    return;
  }
  if (!spend(budget)) {
    a->unknown = true;
    return;
  }
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_CONVERT_LAYOUT: case OP_HINT:
    add_pointer(a, op_operand(op, 0), path, budget);
    return;
  case OP_EXPAND_DIMS:
    add_pointer(a, op_operand(op, 0), path << 4 | ((u32)op_int(op, AT_AXIS, 0) + 1), budget);
    return;
  case OP_ADDPTR:
    add_pointer(a, OPERAND(op, ADDPTR, p), path, budget);
    add_offset(a, OPERAND(op, ADDPTR, off), path, dtype_bytes(p->type->dt), budget);
    return;
  case OP_RESHAPE: case OP_PERMUTE:   /* an element is another one: where it lies is not known, what it is of is */
    a->unknown = true;
    add_pointer(a, op_operand(op, 0), path, budget);
    return;
  default:
    a->unknown = true;
    a->root = NULL;
    return;
  }
}

/* A carried pointer that is yielded from another root, or a choice of pointers, is anywhere. */
static bool
keeps_root(const Value *p, const Value *root, u32 *budget)
{
  const Op *op = p->def;
  u32 k;
  if (!spend(budget))
    return false;
  if (!op) {
    if (!p->block->parent)
      return p == root;
    return op_is_loop(p->block->parent) && loop_carries(p->block->parent, p, &k) && keeps_root(loop_init(p->block->parent, k), root, budget);
  }
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_CONVERT_LAYOUT: case OP_HINT: case OP_EXPAND_DIMS: case OP_ADDPTR: case OP_RESHAPE: case OP_PERMUTE:
    return keeps_root(op_operand(op, 0), root, budget);
  default:
    return false;
  }
}

/* Do all values that loops around p's chain carry for it come from its root? */
static bool
carried_from_root(const Value *p, const Value *root, u32 *budget)
{
  const Op *op = p->def;
  u32 k;
  if (!spend(budget))
    return false;
  if (!op) {
    const Op *loop = p->block->parent;
    if (!loop)
      return true;
    return op_is_loop(loop) && loop_carries(loop, p, &k) && keeps_root(loop_next(loop, k), root, budget) &&
           carried_from_root(loop_init(loop, k), root, budget);
  }
  return carried_from_root(op_operand(op, 0), root, budget);
}

bool
global_access(const Op *op, GlobalAccess *a)
{
  const Value *p = op_pointer(op);
  if (!p)
    return false;
  *a = (GlobalAccess){.op = op, .pointer = p, .size = dtype_bytes(p->type->dt)};
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) == p)
      a->effect |= op_effect(op, i) & (FX_READ | FX_WRITE);
  u32 budget = BUDGET;
  add_pointer(a, p, 0, &budget);
  if (a->root && !carried_from_root(p, a->root, &budget))
    a->root = NULL;
  return true;
}

/* ---- two accesses ---- */

static bool
is_within(const Value *v, const Op *loop)
{
  const Op *op = v->def ? v->def : v->block->parent;
  return loop && op && (op == loop ? !v->def : op_inside(op, loop));
}

/* A number that a positive v is a multiple of. */
static i64
least_step(const Value *v, u32 *budget)
{
  i64 k;
  if (value_const_int(v, &k))
    return k;
  if (!v->def || !spend(budget))
    return 1;
  if (v->def->code == OP_CAST)
    return least_step(op_operand(v->def, 0), budget);
  if (v->def->code == OP_MUL && value_const_int(OPERAND(v->def, BINARY, b), &k) && k > 0)
    return k;
  if (v->def->code == OP_SHL && value_const_int(OPERAND(v->def, BINARY, b), &k) && k >= 0 && k < 31)
    return INT64_C(1) << k;
  return 1;
}

static i64
coef_of(const GlobalAccess *a, const AliasTerm *t)
{
  for (u32 i = 0; i < a->nterms; i++)
    if (a->term[i].v == t->v && a->term[i].path == t->path)
      return a->term[i].coef;
  return 0;
}

/* Nothing is known of v but its type. */
static bool
is_type_range(const Value *v, Interval x)
{
  Interval t = of_type(v->type);
  return x.lo <= t.lo && x.hi >= t.hi;
}

/* What a term of either contributes to the difference, ca and cb being its coefficients. */
static Interval
difference(const AliasTerm *t, i64 ca, i64 cb, const Op *loop)
{
  u32 budget = BUDGET;
  Interval v = interval_of(t->v, &budget);
  if (!type_is_tile(t->v->type)) {
    if (!is_within(t->v, loop))
      return scale(v, cb - ca);
    if (loop->code == OP_FOR && t->v == loop_counter(loop) && ca == cb) {
      i64 step = mul_bound(cb, least_step(OPERAND(loop, FOR, step), &budget));
      return step > 0 ? (Interval){step, INFINITE} : step < 0 ? (Interval){-INFINITE, step} : (Interval){0, 0};
    }
  }
  return add(scale(v, cb), scale(v, -ca));
}

/* Is the difference between two iterations of one access a matter of values that only the launch knows? */
static bool
is_open(const GlobalAccess *a, const Op *loop)
{
  bool open = a->unknown;
  for (u32 i = 0; i < a->nterms; i++) {
    const Value *v = a->term[i].v;
    bool counter = loop->code == OP_FOR && v == loop_counter(loop);
    u32 budget = BUDGET;
    Interval x = interval_of(v, &budget);
    open |= a->term[i].coef && !counter && (type_is_tile(v->type) || is_within(v, loop)) && (is_infinite(x.lo) || is_infinite(x.hi) || is_type_range(v, x));
  }
  return open;
}

static bool
may_touch(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  if (a->unknown || b->unknown)
    return true;
  Interval d = {b->bytes - a->bytes, b->bytes - a->bytes};
  for (u32 i = 0; i < a->nterms; i++)
    d = add(d, difference(&a->term[i], a->term[i].coef, coef_of(b, &a->term[i]), loop));
  for (u32 i = 0; i < b->nterms; i++)
    if (!coef_of(a, &b->term[i]))
      d = add(d, difference(&b->term[i], 0, b->term[i].coef, loop));
  return d.hi > -(i64)b->size && d.lo < (i64)a->size;
}

/* Elements have addresses of their own: along each dimension they are a step apart that is at least as large as everything that the
 * smaller steps reach. */
static bool
is_injective(const GlobalAccess *a)
{
  i64 reach = a->size;
  bool done[ALIAS_TERMS] = {0};
  const Type *t = a->pointer->type;
  u32 spread = 0, spreads = 0;
  if (!type_is_tile(t))
    return true;
  for (int d = 0; d < t->rank; d++)
    spreads += t->shape[d] > 1;
  for (;;) {
    u32 best = ALIAS_TERMS;
    for (u32 i = 0; i < a->nterms; i++) {
      i64 c = a->term[i].coef < 0 ? -a->term[i].coef : a->term[i].coef;
      if (!done[i] && c && type_is_tile(a->term[i].v->type) &&
          (best == ALIAS_TERMS || c < (a->term[best].coef < 0 ? -a->term[best].coef : a->term[best].coef)))
        best = i;
    }
    if (best == ALIAS_TERMS)
      return spread == spreads;
    const Value *v = a->term[best].v;
    i64 c = a->term[best].coef < 0 ? -a->term[best].coef : a->term[best].coef;
    if (!op_is(v, OP_ARANGE) || c < reach)
      return false;
    reach += c * (v->type->shape[0] - 1);
    done[best] = true;
    spread += v->type->shape[0] > 1;
  }
}

static bool
same_sum(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  if (a->unknown || b->unknown || a->bytes != b->bytes || a->size != b->size)
    return false;
  for (u32 i = 0; i < a->nterms; i++)
    if (coef_of(b, &a->term[i]) != a->term[i].coef || (a->term[i].coef && is_within(a->term[i].v, loop)))
      return false;
  for (u32 i = 0; i < b->nterms; i++)
    if (coef_of(a, &b->term[i]) != b->term[i].coef)
      return false;
  return true;
}

/* Only leaders store and update; every copy loads. */
static bool
leader_alone(const GlobalAccess *a)
{
  return (a->effect & FX_WRITE) != 0;
}

/* Does each address that both reach stay with one thread? */
static bool
same_threads(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  const Type *t = a->pointer->type, *u = b->pointer->type;
  if (t->kind != u->kind || t->layout != u->layout || (type_is_tile(t) && !type_same_shape(t, u)) || !same_sum(a, b, loop) || !is_injective(a))
    return false;
  bool copies = !type_is_tile(t) || !t->layout || layout_free_bits(t->layout, IN_LANE) || layout_free_bits(t->layout, IN_WARP);
  return !copies || (leader_alone(a) && leader_alone(b));
}

/* Sums of the same kind that nobody looks at in between come to the same in any order. */
static bool
commute(const Op *a, const Op *b)
{
  return a->code == OP_ATOMIC_RMW && b->code == OP_ATOMIC_RMW && value_unused(op_result(a)) && value_unused(op_result(b)) &&
         op_str(a, AT_RMW, "") == op_str(b, AT_RMW, "") && strcmp(op_str(a, AT_RMW, ""), "xchg") != 0;
}

/* What a pipelined loop reads ahead of time it does not store: that is promised. */
static bool
promised(const Op *ahead, const Op *other)
{
  i64 loop = op_int(ahead, AT_AHEAD, 0);
  for (const Op *p = other->block->parent; loop && p; p = p->block->parent)
    if (p->code == OP_FOR && op_int(p, AT_AHEAD, 0) == loop)
      return true;
  return false;
}

bool
global_conflict(const GlobalAccess *a, const GlobalAccess *b, const Op *loop, bool *apart)
{
  *apart = false;
  if (a->op == b->op && a->op->code == OP_STORE && loop && is_open(a, loop))   /* one store gives no address two values: language.md */
    return false;
  if (!((a->effect | b->effect) & FX_WRITE) || commute(a->op, b->op) || promised(b->op, a->op))
    return false;
  if (a->op->code == OP_ASYNC_COPY && promised(a->op, b->op))   /* waited for, with a barrier, before its own iteration stores */
    return false;
  if (!a->root || !b->root)
    return true;
  const ParamInfo *params = a->root->block->func->params;
  bool equal = params[a->root->index].same == params[b->root->index].same || a->root->index >= APART_MAX || b->root->index >= APART_MAX;
  if (!may_touch(a, b, loop) || same_threads(a, b, loop))
    return false;
  *apart = !equal;
  return equal;
}
