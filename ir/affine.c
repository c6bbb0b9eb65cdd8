/* affine.c - see affine.h. */
#include "affine.h"

enum { LOOKS = 400 };

/* One sum that is being taken apart. dims: which dimension of the whole tile each dimension of the value is; ONE: it has one index, 0. */
enum { ONE = -2 };

typedef struct Sum { Ctx *c; Affine *to; u32 looks; } Sum;
typedef struct Place { LaunchValue by, narrow; int dims[MAX_RANK]; bool wide; } Place;

static void add(Sum *s, const Value *v, const Place *p);

static void
fail(Sum *s, const char *why)
{
  if (!s->to->why)
    s->to->why = why;
}

static bool
same_factors(const AffineTerm *a, const AffineTerm *b)
{
  return launch_value_alike(&a->by, &b->by) && a->v == b->v && a->count == b->count && a->dim == b->dim;
}

bool
affine_add(AffineTerm *list, u32 *n, const AffineTerm *t, i64 sign)
{
  i64 times;
  if (__builtin_mul_overflow(t->by.times, sign, &times))
    return false;
  for (u32 i = 0; i < *n; i++) {
    if (!same_factors(&list[i], t))
      continue;
    if (list[i].narrow.times != t->narrow.times || !launch_value_alike(&list[i].narrow, &t->narrow))
      list[i].narrow = (LaunchValue){.times = 1};
    list[i].wide |= t->wide;
    if (__builtin_add_overflow(list[i].by.times, times, &list[i].by.times))
      return false;
    if (!list[i].by.times)
      list[i] = list[--*n];
    return true;
  }
  if (!times)
    return true;
  if (*n == AFFINE_TERMS)
    return false;
  list[*n] = *t;
  list[(*n)++].by.times = times;
  return true;
}

static void
put(Sum *s, const AffineTerm *t)
{
  if (!affine_add(s->to->term, &s->to->n, t, 1))
    fail(s, "its index has too many parts");
}

static void
put_uniform(Sum *s, const Value *v, const Place *p)
{
  AffineTerm t = {.by = p->by, .v = v, .dim = AFFINE_UNIFORM, .wide = p->wide, .narrow = p->narrow};
  put(s, &t);
}

/* p with what is multiplied by another product. */
static bool
place_times(Sum *s, Place *p, const LaunchValue *by)
{
  if (launch_value_times(&p->by, by) && launch_value_times(&p->narrow, by))
    return true;
  fail(s, "its index has too many factors");
  return false;
}

/* The scalar that all elements of v are; NULL: none that is written down. */
static const Value *
scalar_under(const Value *v)
{
  while (type_is_tile(v->type) && v->def &&
         (v->def->code == OP_SPLAT || v->def->code == OP_BROADCAST || v->def->code == OP_EXPAND_DIMS || v->def->code == OP_CONVERT_LAYOUT ||
          v->def->code == OP_CAST || v->def->code == OP_HINT))
    v = op_operand(v->def, 0);
  return type_is_tile(v->type) ? NULL : v;
}

static bool
launch_knows(const Value *v, LaunchValue *out)
{
  i64 k;
  if (value_const_int(v, &k)) {
    *out = (LaunchValue){.times = k};
    return true;
  }
  const Value *x = scalar_under(v);
  return x && launch_value(x, out);
}

static void
add_product(Sum *s, const Op *op, const Place *p)
{
  const Value *a = OPERAND(op, BINARY, a), *b = OPERAND(op, BINARY, b);
  Place q = *p;
  LaunchValue k;
  i64 shift;
  if (op->code == OP_SHL) {
    k = (LaunchValue){.times = value_const_int(b, &shift) && shift >= 0 && shift < 31 ? INT64_C(1) << shift : 0};
    if (!k.times)
      b = NULL;
  } else if (!launch_knows(b, &k)) {
    const Value *swap = a;
    a = b;
    b = launch_knows(swap, &k) ? swap : NULL;
  }
  if (b && place_times(s, &q, &k))
    add(s, a, &q);
  else if (!b && !type_is_tile(op_result(op)->type))
    put_uniform(s, op_result(op), p);
  else if (!b)
    fail(s, "a stride of its address is no product of arguments and constants");
}

/* x % bound, or where(x < bound, x, ...): with x's terms instead, which is noted. */
static void
add_wrapped(Sum *s, const Op *op, const Value *x, const Value *bound, const Place *p)
{
  LaunchValue m;
  Affine in = {.n = 0};
  Sum inner = {s->c, &in, s->looks};
  Place unit = *p;
  unit.by = unit.narrow = (LaunchValue){.times = 1};
  int dim = -1;
  if (!type_is_tile(op_result(op)->type) || !launch_knows(bound, &m)) {
    if (type_is_tile(op_result(op)->type))
      fail(s, "its index wraps around a number that the launch does not know");
    else
      put_uniform(s, op_result(op), p);
    return;
  }
  add(&inner, x, &unit);
  for (u32 i = 0; i < in.n; i++)
    if (in.term[i].dim >= 0)
      dim = dim < 0 && in.term[i].by.times == 1 && !in.term[i].by.n ? in.term[i].dim : MAX_RANK;
  if (in.why || dim < 0 || dim >= MAX_RANK || s->to->wrap[dim].on) {
    fail(s, in.why ? in.why : "an index that wraps around is no row's or column's");
    return;
  }
  AffineWrap *w = &s->to->wrap[dim];
  *w = (AffineWrap){.on = true, .bound = m, .nx = in.n};
  memcpy(w->x, in.term, sizeof w->x);
  add(s, x, p);
}

/* where(x < bound, x, 0): the same x. */
static bool
select_wraps(const Op *op, const Value **x, const Value **bound)
{
  const Value *c = OPERAND(op, SELECT, c);
  if (!op_is(c, OP_CMP) || strcmp(op_str(c->def, AT_PRED, ""), "lt") || OPERAND(c->def, CMP, a) != OPERAND(op, SELECT, a))
    return false;
  *x = OPERAND(op, SELECT, a);
  *bound = OPERAND(c->def, CMP, b);
  return true;
}

static bool
is_linear(const Op *op)
{
  const Type *t = op_result(op)->type;
  return type_is_int(t) && dtype_is_signed(t->dt);
}

/* A conversion of integers that leaves every number as it is. */
static bool
widens(const Op *op)
{
  const Type *from = op_operand(op, 0)->type;
  return is_linear(op) && type_is_int(from) && dtype_bits(op_result(op)->type->dt) >= dtype_bits(from->dt) + !dtype_is_signed(from->dt);
}

static void
add_expanded(Sum *s, const Op *op, const Place *p)
{
  Place q = *p;
  u32 axis = (u32)op_int(op, AT_AXIS, 0), rank = op_result(op)->type->rank;
  for (u32 d = axis; d + 1 < rank; d++)
    q.dims[d] = p->dims[d + 1];
  add(s, op_operand(op, 0), &q);
}

/* The place of what is stretched: dimensions of one index stay such. */
static Place
unbroadcast(const Op *op, const Place *p)
{
  const Type *from = op_operand(op, 0)->type, *to = op_result(op)->type;
  Place q = *p;
  for (u32 d = 0; type_is_tile(from) && d < from->rank; d++)
    if (from->shape[d] == 1 && to->shape[d] != 1)
      q.dims[d] = ONE;
  return q;
}

/* ---- what loops carry ---- */

/* Terms of what one iteration adds to carried value v; they are invariant scalars. */
static bool
increments(Sum *s, const Value *v, const Op *loop, u32 k, const Place *p, Affine *inc)
{
  Sum each = {s->c, inc, s->looks};
  for (const Value *next = loop_next(loop, k); next != v; next = op_operand(next->def, 0)) {
    bool moves = op_is(next, OP_ADDPTR) || (op_is(next, OP_ADD) && is_linear(next->def));
    if (!moves)
      return false;
    add(&each, op_operand(next->def, 1), p);
  }
  for (u32 i = 0; i < inc->n; i++)
    if (inc->term[i].dim >= 0 || inc->term[i].count || (inc->term[i].v && value_within(inc->term[i].v, loop)))
      return false;
  return !inc->why;
}

/* `by` times how often the loop has come round: (counter - lo) / step where that is whole. */
static void
add_count(Sum *s, const Op *loop, const AffineTerm *t, const Place *p)
{
  i64 step;
  AffineTerm counted = *t;
  if (!t->v && value_const_int(OPERAND(loop, FOR, step), &step) && step > 0 && t->by.times % step == 0) {
    Place lo = *p;
    lo.by = t->by;
    lo.by.times /= -step;
    lo.wide = false;
    counted.by.times /= step;
    counted.v = loop_counter(loop);
    put(s, &counted);
    add(s, OPERAND(loop, FOR, lo), &lo);
    return;
  }
  counted.count = loop;
  put(s, &counted);
}

static void
add_carried(Sum *s, const Value *v, const Place *p, void (*init)(Sum *s, const Value *v, const Place *p))
{
  const Op *loop = v->block->parent;
  Affine inc = {.n = 0};
  u32 k;
  if (!loop || loop->code != OP_FOR || !loop_carries(loop, v, &k) || !increments(s, v, loop, k, p, &inc)) {
    fail(s, "its address is carried by a loop that does not move it by the same each time");
    return;
  }
  init(s, loop_init(loop, k), p);
  for (u32 i = 0; i < inc.n; i++) {
    inc.term[i].wide = false;            /* where it leads, an iteration has been: what is masked is past the end either way */
    add_count(s, loop, &inc.term[i], p);
  }
}

/* ---- integers ---- */

static void
add_op(Sum *s, const Value *v, const Place *p)
{
  const Op *op = v->def;
  const Value *x, *bound;
  Place q = *p;
  LaunchValue k;
  switch (op->code) {
  case OP_SPLAT: case OP_CONVERT_LAYOUT: case OP_HINT: case OP_BOUNDED: add(s, op_operand(op, 0), p); return;
  case OP_BROADCAST:
    q = unbroadcast(op, p);
    add(s, op_operand(op, 0), &q);
    return;
  case OP_EXPAND_DIMS: add_expanded(s, op, p); return;
  case OP_ARANGE:
    if (p->dims[0] != ONE)
      put(s, &(AffineTerm){.by = p->by, .dim = p->dims[0]});
    k = (LaunchValue){.times = op_int(op, AT_START, 0)};
    if (k.times && place_times(s, &q, &k))
      put_uniform(s, NULL, &q);
    return;
  case OP_CAST:
    if (!widens(op))
      break;
    if (dtype_bits(op_operand(op, 0)->type->dt) <= 32)
      q.narrow = (LaunchValue){.times = 1};
    add(s, op_operand(op, 0), &q);
    return;
  case OP_ADD: case OP_SUB:
    if (!is_linear(op))
      break;
    add(s, OPERAND(op, BINARY, a), p);
    q.by.times = op->code == OP_SUB ? -p->by.times : p->by.times;
    add(s, OPERAND(op, BINARY, b), &q);
    return;
  case OP_MUL: case OP_SHL:
    if (!is_linear(op))
      break;
    add_product(s, op, p);
    return;
  case OP_REM: add_wrapped(s, op, OPERAND(op, BINARY, a), OPERAND(op, BINARY, b), p); return;
  case OP_SELECT:
    if (!type_is_tile(v->type) || !select_wraps(op, &x, &bound))
      break;
    add_wrapped(s, op, x, bound, p);
    return;
  default: break;
  }
  if (!type_is_tile(v->type))
    put_uniform(s, v, p);
  else
    fail(s, arena_printf(s->c->scratch, "its address is not linear in its indices: it is computed by '%s'", op_info(op->code)->name));
}

/* += by * v. */
static void
add(Sum *s, const Value *v, const Place *p)
{
  LaunchValue k;
  Place q = *p;
  if (s->to->why)
    return;
  if (!s->looks || !--s->looks) {
    fail(s, "its address takes too long a computation");
    return;
  }
  if (launch_knows(v, &k)) {
    if (place_times(s, &q, &k))
      put_uniform(s, NULL, &q);
  } else if (!type_is_int(v->type)) {
    fail(s, "its index is no integer");
  } else if (v->def) {
    add_op(s, v, p);
  } else if (type_is_tile(v->type)) {
    add_carried(s, v, p, add);
  } else {
    put_uniform(s, v, p);
  }
}

/* ---- pointers ---- */

static void
add_pointer(Sum *s, const Value *v, const Place *p)
{
  const Op *op = v->def;
  if (s->to->why)
    return;
  if (!s->looks || !--s->looks) {
    fail(s, "its address takes too long a computation");
    return;
  }
  if (!op && v->block->parent) {
    add_carried(s, v, p, add_pointer);
    return;
  }
  if (!op || op->code == OP_TENSOR_BASE) {
    s->to->root = op ? op_operand(op, 0) : v;
    return;
  }
  Place q = *p;
  switch (op->code) {
  case OP_SPLAT: case OP_CONVERT_LAYOUT: case OP_HINT: break;
  case OP_BROADCAST: q = unbroadcast(op, p); break;
  case OP_EXPAND_DIMS:
    for (u32 d = (u32)op_int(op, AT_AXIS, 0); d + 1 < op_result(op)->type->rank; d++)
      q.dims[d] = p->dims[d + 1];
    break;
  case OP_ADDPTR: {
    Place off = *p;
    off.wide = dtype_bits(OPERAND(op, ADDPTR, off)->type->dt) > 32;
    add(s, OPERAND(op, ADDPTR, off), &off);
    break;
  }
  default:
    fail(s, arena_printf(s->c->scratch, "its pointer comes from '%s'", op_info(op->code)->name));
    return;
  }
  add_pointer(s, op_operand(op, 0), &q);
}

static Place
whole_tile(void)
{
  Place p = {.by = {.times = 1}, .narrow = {.times = 1}};
  for (int d = 0; d < MAX_RANK; d++)
    p.dims[d] = d;
  return p;
}

void
affine_of(Ctx *c, const Value *v, Affine *out)
{
  Sum s = {c, out, LOOKS};
  Place p = whole_tile();
  *out = (Affine){.n = 0};
  if (type_is_ptr(v->type))
    add_pointer(&s, v, &p);
  else
    add(&s, v, &p);
}

/* ---- bounds ---- */

typedef struct Bounds { Ctx *c; AffineBound *to; u32 most, n; const char *why; } Bounds;

/* The mask has other parts, too. */
static void
unbounded(Bounds *b, const char *why)
{
  if (!b->why)
    b->why = why;
}

/* a - b + plus < 0, as one bound. */
static const char *
bound_from(Bounds *b, const Value *x, const Value *y, i64 plus, const Place *p)
{
  Affine a = {.n = 0};
  Sum s = {b->c, &a, LOOKS};
  Place q = *p;
  AffineBound *to = &b->to[b->n];
  if (b->n == b->most)
    return "its mask has too many parts";
  add(&s, x, p);
  q.by.times = -1;
  add(&s, y, &q);
  put(&s, &(AffineTerm){.by = {.times = plus}, .dim = AFFINE_UNIFORM});
  *to = (AffineBound){.dim = -1};
  for (u32 d = 0; d < MAX_RANK; d++)
    if (a.wrap[d].on)
      return "its mask compares an index that wraps around";
  for (u32 i = 0; i < a.n && !a.why; i++) {
    const AffineTerm *t = &a.term[i];
    if (t->dim < 0)
      affine_add(to->rest, &to->n, t, 1);
    else if (to->dim >= 0 || t->by.n || (t->by.times != 1 && t->by.times != -1))
      return "its mask compares something else than an index";
    else {
      to->dim = t->dim;
      to->upper = t->by.times == 1;
    }
  }
  if (a.why || to->dim < 0)
    return "its mask compares something else than an index";
  if (!to->upper)                       /* -index + rest < 0: 0 <= index - rest - 1 */
    for (u32 i = 0; i < to->n; i++)
      to->rest[i].by.times = -to->rest[i].by.times;
  if (!to->upper)
    affine_add(to->rest, &to->n, &(AffineTerm){.by = {.times = 1}, .dim = AFFINE_UNIFORM}, -1);
  b->n++;
  return NULL;
}

static void
add_compared(Bounds *b, const Op *cmp, const Place *p)
{
  const char *pred = op_str(cmp, AT_PRED, "");
  const Value *x = OPERAND(cmp, CMP, a), *y = OPERAND(cmp, CMP, b);
  bool greater = pred[0] == 'g', equal = pred[1] == 'e';
  if (!type_is_int(x->type) || !dtype_is_signed(x->type->dt) || (pred[0] != 'g' && pred[0] != 'l'))
    unbounded(b, "its mask is not a comparison of an index with a bound");
  else {
    const char *why = greater ? bound_from(b, y, x, equal ? -1 : 0, p) : bound_from(b, x, y, equal ? -1 : 0, p);
    if (why)
      unbounded(b, why);
  }
}

static void
add_mask(Bounds *b, const Value *v, const Place *p)
{
  u64 bits;
  Place q = *p;
  if (value_const_bits(v, &bits) && bits)
    return;
  const Op *op = v->def;
  switch (op ? op->code : OP_COUNT) {
  case OP_AND:
    add_mask(b, OPERAND(op, BINARY, a), p);
    add_mask(b, OPERAND(op, BINARY, b), p);
    return;
  case OP_BROADCAST: q = unbroadcast(op, p); add_mask(b, op_operand(op, 0), &q); return;
  case OP_CONVERT_LAYOUT: add_mask(b, op_operand(op, 0), p); return;
  case OP_EXPAND_DIMS:
    for (u32 d = (u32)op_int(op, AT_AXIS, 0); d + 1 < v->type->rank; d++)
      q.dims[d] = p->dims[d + 1];
    add_mask(b, op_operand(op, 0), &q);
    return;
  case OP_CMP: add_compared(b, op, p); return;
  default: unbounded(b, "its mask is not a comparison of an index with a bound");
  }
}

const char *
affine_bounds(Ctx *c, const Value *v, AffineBound *out, u32 most, u32 *n)
{
  Bounds b = {.c = c, .to = out, .most = most};
  Place p = whole_tile();
  add_mask(&b, v, &p);
  *n = b.n;
  return b.why;
}

bool
affine_bound_from(const AffineBound *b, const AffineTerm *u, u32 nu, LaunchValue *out)
{
  AffineTerm sum[AFFINE_TERMS];
  u32 n = 0;
  bool fits = true;
  for (u32 i = 0; i < nu; i++)
    fits = fits && affine_add(sum, &n, &u[i], 1);
  for (u32 i = 0; i < b->n; i++)
    fits = fits && affine_add(sum, &n, &b->rest[i], -1);
  if (!fits || n > 1 || (n && (sum[0].v || sum[0].count)))
    return false;
  *out = n ? sum[0].by : (LaunchValue){.times = 0};
  return true;
}
