/* alias.c - the algebra of alias.h.
 *
 * An address is root + bytes + sum of coef * v * stride, where a v is a scalar, the same for all elements, or a tile that gives each
 * element a number. Index arithmetic is taken apart as far as it is linear, on the rule of the language that what a pointer is
 * moved by does not overflow; what is not linear is a term of its own. A stride is a scalar that only the launch knows.
 *
 * The gap between an element of b and any element of a is, for each stride, an interval: scalars that both have with one coefficient
 * cancel; what remains is bounded by what is known of its values (interval.h). Where an iteration of a loop lies between them, its
 * counter grew by at least one step, and values computed inside of it have nothing to do with each other.
 *
 * The accesses never touch
 *   - if the gaps, all in all, keep the elements' bytes apart;
 *   - or if they do so up to multiples of some number: halves of rows of 128, even and odd elements;
 *   - or if they are whole strides apart, and their masks keep both within a row: 0 <= index < stride;
 *   - or if they are at different places of rows, and their masks keep both there: each within a row; or each in one of the parts of a row,
 *     0 <= index < stride / k, these being moved by several of stride / k, less than k from each other.
 * Otherwise they need no order if every address stays with its thread: the same sum in the same layout, of which no thread holds a
 * copy of another's element, and different elements at different addresses. That last point matters even though a store gives no
 * address two values: t loads from where u has stored already. Scalars are loaded by every thread and stored by the leader alone.
 *
 * One thing is promised (language.md): what one store writes, all its iterations together, does not overlap by strides that only the
 * launch knows. Elements that differ in what a stride is multiplied by are then at different addresses. */
#include "alias.h"

/* Values that one question looks at: expressions that share their parts are as large as one likes. PHIS: carried pointers on one way. */
enum { BUDGET = 200, PHIS = 16 };

static bool
spend(u32 *budget)
{
  return *budget && (*budget)--;
}

/* ---- addresses as sums ---- */

/* Numbers from here on are not reckoned with: of two that are smaller the difference has 64 bits. */
#define TOO_LARGE (INT64_C(1) << 60)

static bool
too_large(i64 v)
{
  return v >= TOO_LARGE || v <= -TOO_LARGE;
}

/* One sum that is being taken apart. */
typedef struct Sum { GlobalAccess *to; u32 budget; } Sum;

static void
add_term(Sum *s, const Value *v, const Value *stride, u32 path, i64 coef)
{
  GlobalAccess *a = s->to;
  if (!type_is_tile(v->type))
    path = 0;
  for (u32 i = 0; i < a->nterms; i++)
    if (a->term[i].v == v && a->term[i].path == path && a->term[i].stride == stride) {
      a->term[i].coef += coef;
      a->unknown |= too_large(a->term[i].coef);
      a->term[i].coef = a->unknown ? 0 : a->term[i].coef;
      return;
    }
  u32 budget = BUDGET;
  if (a->nterms == ALIAS_TERMS)
    a->unknown = true;
  else
    a->term[a->nterms++] = (AliasTerm){v, stride, path, coef, interval_of(v, &budget)};
}

/* May the sum be taken apart? A type without a sign wraps as a matter of course. */
static bool
is_linear(const Op *op)
{
  return type_is_int(op_result(op)->type) && dtype_is_signed(op_result(op)->type->dt);
}

/* A conversion of integers that leaves every number as it is. */
static bool
widens(const Op *op)
{
  const Type *from = op->noperands ? op_operand(op, 0)->type : NULL;
  return op->code == OP_CAST && is_linear(op) && type_is_int(from) && dtype_bits(op_result(op)->type->dt) >= dtype_bits(from->dt) +
         !dtype_is_signed(from->dt);
}

static u32
path_into(u32 path, const Op *expand)
{
  return path << 4 | ((u32)op_int(expand, AT_AXIS, 0) + 1);
}

static bool
in_a_loop(const Value *v)
{
  const Op *op = v->def ? v->def : v->block->parent;
  for (; op; op = op->block->parent)
    if (op_is_loop(op) && op != v->def)
      return true;
  return false;
}

/* The scalar that all elements of v are, from outside of all loops; NULL if there is none. */
static const Value *
scalar_under(const Value *v)
{
  for (const Op *op = v->def; op; op = v->def) {
    if (!widens(op) && op->code != OP_SPLAT && op->code != OP_BROADCAST && op->code != OP_EXPAND_DIMS && op->code != OP_CONVERT_LAYOUT &&
        op->code != OP_HINT)
      break;
    v = op_operand(op, 0);
  }
  return type_is_tile(v->type) || !type_is_int(v->type) || !dtype_is_signed(v->type->dt) || in_a_loop(v) ? NULL : v;
}

/* Which operand of a product is the stride? A parameter rather than another scalar, that rather than a tile. -1: neither is one. */
static int
stride_operand(const Op *mul)
{
  const Value *a = scalar_under(OPERAND(mul, BINARY, a)), *b = scalar_under(OPERAND(mul, BINARY, b));
  if (a && b)
    return b->def && !a->def ? 0 : 1;
  return a ? 0 : b ? 1 : -1;
}

static void add_offset(Sum *s, const Value *v, const Value *stride, u32 path, i64 coef);

static void
add_product(Sum *s, const Op *op, const Value *stride, u32 path, i64 coef)
{
  const Value *v = op_result(op);
  i64 k, product;
  bool shift = op->code == OP_SHL;
  if (value_const_int(OPERAND(op, BINARY, b), &k) && (shift ? k >= 0 && k < 31 : k <= INT32_MAX && k >= INT32_MIN) &&
      !__builtin_mul_overflow(coef, shift ? INT64_C(1) << k : k, &product) && !too_large(product)) {
    add_offset(s, OPERAND(op, BINARY, a), stride, path, product);
    return;
  }
  int at = shift || stride ? -1 : stride_operand(op);
  if (at < 0)
    add_term(s, v, stride, path, coef);
  else
    add_offset(s, op_operand(op, (u32)!at), scalar_under(op_operand(op, (u32)at)), path, coef);
}

/* += coef * v * stride. path: the dimensions that expand_dims inserted on the way, four bits each. */
static void
add_offset(Sum *s, const Value *v, const Value *stride, u32 path, i64 coef)
{
  const Op *op = v->def;
  i64 k;
  if (!stride && value_const_int(v, &k)) {
    bool fits = !__builtin_mul_overflow(coef, k, &k) && !too_large(k) && !too_large(s->to->bytes + k);
    s->to->bytes += fits ? k : 0;
    s->to->unknown |= !fits;
    return;
  }
  if (!op || path >> 28 || !spend(&s->budget)) {
    add_term(s, v, stride, path, coef);
    return;
  }
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_CONVERT_LAYOUT: case OP_HINT: case OP_BOUNDED:
    add_offset(s, op_operand(op, 0), stride, path, coef);
    return;
  case OP_EXPAND_DIMS:
    add_offset(s, op_operand(op, 0), stride, path_into(path, op), coef);
    return;
  case OP_CAST:
    if (!widens(op))
      break;
    add_offset(s, op_operand(op, 0), stride, path, coef);
    return;
  case OP_ADD: case OP_SUB:
    if (!is_linear(op))
      break;
    add_offset(s, OPERAND(op, BINARY, a), stride, path, coef);
    add_offset(s, OPERAND(op, BINARY, b), stride, path, op->code == OP_SUB ? -coef : coef);
    return;
  case OP_MUL: case OP_SHL:
    if (!is_linear(op))
      break;
    add_product(s, op, stride, path, coef);
    return;
  default: break;
  }
  add_term(s, v, stride, path, coef);
}

/* ---- roots ---- */

/* Ops whose result points into what their first operand does. A pointer as an integer and back is the same pointer. */
static bool
keeps_root(const Op *op)
{
  switch (op->code) {
  case OP_SPLAT: case OP_BROADCAST: case OP_CONVERT_LAYOUT: case OP_HINT: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE:
  case OP_ADDPTR: case OP_BITCAST:
    return true;
  default:
    return false;
  }
}

/* Where a pointer may come from: one parameter, by whatever way. phi: carried pointers whose origins are being looked at. */
typedef struct Origins { const Value *root, *phi[PHIS]; u32 nphis, budget; } Origins;

static bool one_root(Origins *o, const Value *p);

/* p is carried value k of a loop. */
static bool
one_root_around(Origins *o, const Value *p, const Op *loop, u32 k)
{
  for (u32 i = 0; i < o->nphis; i++)
    if (o->phi[i] == p)
      return true;
  if (o->nphis == PHIS)
    return false;
  o->phi[o->nphis++] = p;
  return one_root(o, loop_init(loop, k)) && one_root(o, loop_next(loop, k));
}

/* p is a parameter, or the address of one that is a tensor. */
static bool
one_root_is(Origins *o, const Value *p)
{
  bool same = !o->root || o->root == p;
  o->root = p;
  return same;
}

static bool
one_root_of_argument(Origins *o, const Value *p)
{
  const Op *loop = p->block->parent;
  u32 k;
  if (!type_is_ptr(p->type))
    return false;
  if (loop)
    return op_is_loop(loop) && loop_carries(loop, p, &k) && one_root_around(o, p, loop, k);
  return one_root_is(o, p);
}

static bool
one_root(Origins *o, const Value *p)
{
  const Op *op = p->def;
  if (!spend(&o->budget))
    return false;
  if (!op)
    return one_root_of_argument(o, p);
  if (keeps_root(op))
    return one_root(o, op_operand(op, 0));
  switch (op->code) {
  case OP_TENSOR_BASE: return one_root_is(o, OPERAND(op, TENSOR_BASE, t));
  case OP_SELECT: return one_root(o, OPERAND(op, SELECT, a)) && one_root(o, OPERAND(op, SELECT, b));
  case OP_IF: return one_root(o, region_yields(op, 0, p->index)) && one_root(o, region_yields(op, 1, p->index));
  case OP_FOR: return one_root_around(o, p, op, p->index);
  default: return false;
  }
}

/* What is added to the root on p's way from there; where that is not one sum, it is unknown. */
static void
add_pointer(Sum *s, const Value *p, u32 path)
{
  const Op *op = p->def;
  if (op ? op->code == OP_TENSOR_BASE : !p->block->parent)
    return;
  if (!op || !keeps_root(op) || op->code == OP_RESHAPE || op->code == OP_PERMUTE || path >> 28 || !spend(&s->budget)) {
    s->to->unknown = true;
    return;
  }
  if (op->code == OP_ADDPTR)
    add_offset(s, OPERAND(op, ADDPTR, off), NULL, path, dtype_bytes(p->type->dt));
  add_pointer(s, op_operand(op, 0), op->code == OP_EXPAND_DIMS ? path_into(path, op) : path);
}

/* Boxes as tiles: anywhere in the tensor. (Copies of boxes are ordered by waits alone.) */
static bool
box_access(const Op *op, GlobalAccess *a)
{
  if (op->code != OP_TENSOR_LOAD && op->code != OP_TENSOR_STORE)
    return false;
  const Value *t = op_tensor(op);
  Origins o = {.budget = BUDGET};
  const Value *root = !t->def ? t : one_root(&o, tensor_pointer(t)) ? o.root : NULL;
  *a = (GlobalAccess){.op = op, .root = root,
                      .effect = op->code == OP_TENSOR_LOAD ? FX_READ : FX_WRITE, .size = dtype_bytes(t->type->dt), .unknown = true};
  return true;
}

bool
global_access(const Op *op, GlobalAccess *a)
{
  const Value *p = op_pointer(op);
  if (!p)
    return box_access(op, a);
  *a = (GlobalAccess){.op = op, .pointer = p, .effect = op_global_effects(op), .size = dtype_bytes(p->type->dt)};
  Origins o = {.budget = BUDGET};
  Sum s = {a, BUDGET};
  a->root = one_root(&o, p) ? o.root : NULL;
  add_pointer(&s, p, 0);
  return true;
}

/* ---- gaps ---- */

static i64
magnitude(i64 v)
{
  return v < 0 ? -v : v;
}

static bool
is_within(const Value *v, const Op *loop)
{
  const Op *op = v->def ? v->def : v->block->parent;
  return loop && op && (op == loop ? !v->def : op_inside(op, loop));
}

/* A number that a positive v is a multiple of. */
static i64
least_step(const Value *v)
{
  i64 k;
  if (value_const_int(v, &k))
    return k;
  for (u32 i = 0; i < PHIS && v->def && v->def->code == OP_CAST; i++)
    v = op_operand(v->def, 0);
  if (v->def && v->def->code == OP_MUL && value_const_int(OPERAND(v->def, BINARY, b), &k) && k > 0)
    return k;
  if (v->def && v->def->code == OP_SHL && value_const_int(OPERAND(v->def, BINARY, b), &k) && k >= 0 && k < 31)
    return INT64_C(1) << k;
  return 1;
}

static i64
coef_of(const GlobalAccess *a, const AliasTerm *t)
{
  for (u32 i = 0; i < a->nterms; i++)
    if (a->term[i].v == t->v && a->term[i].path == t->path && a->term[i].stride == t->stride)
      return a->term[i].coef;
  return 0;
}

static bool
is_counter(const Value *v, const Op *loop)
{
  return loop && loop->code == OP_FOR && v == loop_counter(loop);
}

/* What a term of either contributes to the gap, ca and cb being its coefficients. */
static Interval
term_gap(const AliasTerm *t, i64 ca, i64 cb, const Op *loop)
{
  if (is_counter(t->v, loop) && ca == cb)
    return interval_mul((Interval){least_step(OPERAND(loop, FOR, step)), UNBOUNDED}, (Interval){cb, cb});
  if (!type_is_tile(t->v->type) && !is_within(t->v, loop))
    return interval_scale(t->is, cb - ca);
  return interval_add(interval_scale(t->is, cb), interval_scale(t->is, -ca));
}

/* b's place minus a's along one stride. */
typedef struct Gap { const Value *stride; Interval is; } Gap;
typedef struct Gaps { Gap gap[2 * ALIAS_TERMS + 1]; u32 n; } Gaps;

static void
widen(Gaps *g, const Value *stride, Interval by)
{
  for (u32 i = 0; i < g->n; i++)
    if (g->gap[i].stride == stride) {
      g->gap[i].is = interval_add(g->gap[i].is, by);
      return;
    }
  g->gap[g->n++] = (Gap){stride, by};
}

/* The first is that in bytes. */
static Gaps
gaps_between(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  Gaps g = {.n = 1};
  g.gap[0] = (Gap){NULL, {b->bytes - a->bytes, b->bytes - a->bytes}};
  for (u32 i = 0; i < a->nterms; i++)
    widen(&g, a->term[i].stride, term_gap(&a->term[i], a->term[i].coef, coef_of(b, &a->term[i]), loop));
  for (u32 i = 0; i < b->nterms; i++)
    if (!coef_of(a, &b->term[i]))
      widen(&g, b->term[i].stride, term_gap(&b->term[i], 0, b->term[i].coef, loop));
  return g;
}

/* May elements of a and b with this gap in bytes share one? */
static bool
touches(Interval gap, const GlobalAccess *a, const GlobalAccess *b)
{
  return gap.hi > -(i64)b->size && gap.lo < (i64)a->size;
}

static bool
may_touch(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b)
{
  Interval all = g->gap[0].is;
  for (u32 i = 1; i < g->n; i++) {
    u32 budget = BUDGET;
    all = interval_add(all, interval_mul(g->gap[i].is, interval_of(g->gap[i].stride, &budget)));
  }
  return touches(all, a, b);
}

/* ---- gaps up to multiples of a number ---- */

/* Is what a term of either contributes to the gap a multiple of m? */
static bool
keeps_remainder(const AliasTerm *t, i64 ca, i64 cb, i64 m, const Op *loop)
{
  if (!type_is_tile(t->v->type) && !is_within(t->v, loop))
    return (cb - ca) % m == 0;
  return ca % m == 0 && cb % m == 0;
}

/* Adds the term unless it is such a multiple; false: it is one of a stride. */
static bool
add_remainder(Interval *gap, const AliasTerm *t, i64 ca, i64 cb, i64 m, const Op *loop)
{
  if (keeps_remainder(t, ca, cb, m, loop))
    return true;
  *gap = interval_add(*gap, term_gap(t, ca, cb, loop));
  return !t->stride;
}

/* May elements of a and b share a byte if nothing is known of multiples of m? */
static bool
touches_modulo(const GlobalAccess *a, const GlobalAccess *b, i64 m, const Op *loop)
{
  Interval gap = {b->bytes - a->bytes, b->bytes - a->bytes};
  bool known = true;
  for (u32 i = 0; i < a->nterms; i++)
    known &= add_remainder(&gap, &a->term[i], a->term[i].coef, coef_of(b, &a->term[i]), m, loop);
  for (u32 i = 0; i < b->nterms; i++)
    if (!coef_of(a, &b->term[i]))
      known &= add_remainder(&gap, &b->term[i], 0, b->term[i].coef, m, loop);
  if (!known || gap.lo <= -UNBOUNDED || gap.hi >= UNBOUNDED)
    return true;
  i64 above = (gap.lo + b->size - 1) % m, lo = (above < 0 ? above + m : above) - (b->size - 1);   /* the first that is not below a */
  return lo < (i64)a->size || lo + (gap.hi - gap.lo) > m - b->size;
}

/* Is there a number that keeps them apart? It is one that a term is multiplied by. */
static bool
apart_modulo(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  for (u32 i = 0; i < a->nterms + b->nterms; i++) {
    const AliasTerm *t = i < a->nterms ? &a->term[i] : &b->term[i - a->nterms];
    i64 m = magnitude(t->coef);
    if (m >= (i64)a->size + b->size && !touches_modulo(a, b, m, loop))
      return true;
  }
  return false;
}

/* ---- rows whose ends a mask keeps ---- */

/* Does mask keep an index below stride? Then *row is that index, times size. */
static bool
masked_row(const Value *mask, const Value *stride, u32 path, GlobalAccess *row, u32 *budget)
{
  const Op *op = mask ? mask->def : NULL;
  if (!op || path >> 28 || !spend(budget))
    return false;
  switch (op->code) {
  case OP_BROADCAST: case OP_SPLAT: case OP_CONVERT_LAYOUT:
    return masked_row(op_operand(op, 0), stride, path, row, budget);
  case OP_EXPAND_DIMS:
    return masked_row(op_operand(op, 0), stride, path_into(path, op), row, budget);
  case OP_AND:
    return masked_row(OPERAND(op, BINARY, a), stride, path, row, budget) || masked_row(OPERAND(op, BINARY, b), stride, path, row, budget);
  case OP_CMP:
    if (strcmp(op_str(op, AT_PRED, ""), "lt") != 0 || scalar_under(OPERAND(op, CMP, b)) != stride)
      return false;
    add_offset(&(Sum){row, BUDGET}, OPERAND(op, CMP, a), NULL, path, row->size);
    return true;
  default:
    return false;
  }
}

/* Is the row's index never negative? */
static bool
starts_at_zero(const GlobalAccess *row)
{
  Interval all = {row->bytes, row->bytes};
  for (u32 i = 0; i < row->nterms; i++)
    all = interval_add(all, interval_scale(row->term[i].is, row->term[i].coef));
  return !row->unknown && all.lo >= 0;
}

/* Takes row from a, and what it is moved by strides; what remains is where its row begins. */
static void
take_row(GlobalAccess *a, const GlobalAccess *row, const Value *stride)
{
  u32 n = 0;
  a->bytes -= row->bytes;
  for (u32 i = 0; i < row->nterms; i++)
    add_term(&(Sum){a, 0}, row->term[i].v, NULL, row->term[i].path, -row->term[i].coef);
  for (u32 i = 0; i < a->nterms; i++)
    if (a->term[i].coef && !a->term[i].stride && a->term[i].v != stride)
      a->term[n++] = a->term[i];
  a->nterms = n;
}

static bool
row_begin(const GlobalAccess *a, const Value *stride, GlobalAccess *begin)
{
  GlobalAccess row = {.size = a->size};
  u32 budget = BUDGET;
  *begin = *a;
  if (!masked_row(op_mask(a->op), stride, 0, &row, &budget) || !starts_at_zero(&row))
    return false;
  take_row(begin, &row, stride);
  return !begin->unknown;
}

static bool
is_zero(Interval x)
{
  return !x.lo && !x.hi;
}

/* A scalar from outside of the loop that a and b are moved by, but not by as much; NULL: none. */
static const Value *
moved_by(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  for (u32 i = 0; i < a->nterms + b->nterms; i++) {
    const AliasTerm *t = i < a->nterms ? &a->term[i] : &b->term[i - a->nterms];
    if (!t->stride && coef_of(a, t) != coef_of(b, t) && !type_is_tile(t->v->type) && !is_within(t->v, loop))
      return t->v;
  }
  return NULL;
}

/* How many strides there are gaps along; the last is *stride, which is left alone if there is none. */
static u32
strides_with_gaps(const Gaps *g, const Value **stride)
{
  u32 n = 0;
  for (u32 i = 1; i < g->n; i++)
    if (!is_zero(g->gap[i].is)) {
      *stride = g->gap[i].stride;
      n++;
    }
  return n;
}

/* The one stride along which there is a gap; NULL if there are more, or none. */
static const Value *
stride_between(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  const Value *stride = NULL;
  return strides_with_gaps(g, &stride) > 1 ? NULL : stride ? stride : moved_by(a, b, loop);
}

/* By how many strides, times the size, b lies behind a: of what is multiplied by it, and of the stride itself. */
static Interval
strides_between(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b, const Value *stride)
{
  const AliasTerm once = {.v = stride};
  i64 more = coef_of(b, &once) - coef_of(a, &once);
  Interval by = {more, more};
  for (u32 i = 1; i < g->n; i++)
    if (g->gap[i].stride == stride)
      by = interval_add(by, g->gap[i].is);
  return by;
}

/* Do the masks keep both within `length` of where rows begin, the same place for both but for strides? */
static bool
in_rows(const GlobalAccess *a, const GlobalAccess *b, const Value *length, const Op *loop)
{
  GlobalAccess x, y;
  return a->size == b->size && row_begin(a, length, &x) && row_begin(b, length, &y) && is_zero(gaps_between(&x, &y, loop).gap[0].is);
}

/* Are both in rows of one stride, whole rows apart? */
static bool
in_other_rows(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  const Value *stride = stride_between(g, a, b, loop);
  return stride && !touches(strides_between(g, a, b, stride), a, b) && in_rows(a, b, stride, loop);
}

/* Is what the stride is multiplied by a number of whole elements? */
static bool
moves_elements(const GlobalAccess *a, const Value *stride)
{
  for (u32 i = 0; i < a->nterms; i++)
    if ((a->term[i].stride == stride || a->term[i].v == stride) && a->term[i].coef % a->size)
      return false;
  return true;
}

/* A scalar that is another's quotient by a constant: *whole / *parts. */
static bool
is_part(const Value *v, const Value **whole, i64 *parts)
{
  const Op *op = v->def;
  i64 k;
  if (!op || (op->code != OP_DIV && op->code != OP_SHR) || !is_linear(op) || !value_const_int(OPERAND(op, BINARY, b), &k) || k < 1 ||
      k > (op->code == OP_DIV ? INT32_MAX : 30))
    return false;
  *parts = op->code == OP_DIV ? k : INT64_C(1) << k;
  *whole = scalar_under(OPERAND(op, BINARY, a));
  return *whole != NULL;
}

/* Are both in rows of one stride, or in the same row, in parts of them that are `stride / k` long and several of these apart? */
static bool
in_other_parts(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  const Value *part = moved_by(a, b, loop), *whole, *stride = NULL;
  i64 parts;
  if (!part || !is_part(part, &whole, &parts))
    return false;
  const AliasTerm once = {.v = part};
  i64 apart = magnitude(coef_of(b, &once) - coef_of(a, &once)), most = (parts - 1) * a->size;
  u32 strides = strides_with_gaps(g, &stride);
  if (strides > 1 || (strides && (stride != whole || apart > most || !moves_elements(a, whole) || !moves_elements(b, whole))))
    return false;
  return apart >= (i64)a->size && apart % a->size == 0 && in_rows(a, b, part, loop);
}

/* Are both in rows of one stride, at different places there? */
static bool
in_other_columns(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  const Value *stride = NULL;
  return strides_with_gaps(g, &stride) == 1 && !touches(g->gap[0].is, a, b) && moves_elements(a, stride) && moves_elements(b, stride) &&
         in_rows(a, b, stride, loop);
}

/* ---- elements that stay with their thread: of one sum, if that gives each element, and each iteration's, a place of its own ---- */

/* The dimension of the tile along which a range of one dimension became it by this path. */
static u32
dimension_of(u32 path)
{
  u32 dim = 0;
  for (; path; path >>= 4)
    dim += (path & 15) - 1 <= dim;
  return dim;
}

/* Is the term one that tells elements, or iterations of the loop, apart? */
static bool
varies(const AliasTerm *t, const Op *loop)
{
  return t->coef && (type_is_tile(t->v->type) || is_within(t->v, loop));
}

/* Of a's varying terms along this stride, without those done: the one with the smallest step; NULL: no more. */
static const AliasTerm *
smallest_step(const GlobalAccess *a, const Value *stride, const Op *loop, u64 done)
{
  const AliasTerm *best = NULL;
  for (u32 i = 0; i < a->nterms; i++) {
    const AliasTerm *t = &a->term[i];
    if (done >> i & 1 || t->stride != stride || !varies(t, loop))
      continue;
    if (!best || magnitude(t->coef) < magnitude(best->coef))
      best = t;
  }
  return best;
}

/* Takes the term's dimension of the tile into *dims; false if it has none of its own. */
static bool
take_dimension(const AliasTerm *t, u32 *dims)
{
  if (!type_is_tile(t->v->type))
    return true;
  if (!op_is(t->v, OP_ARANGE) || *dims >> dimension_of(t->path) & 1)
    return false;
  *dims |= 1u << dimension_of(t->path);
  return true;
}

/* Do elements, of whichever iterations, that differ in a term of this stride differ in the terms' sum, by `reach` or more? Each step is at
 * least as large as everything that the smaller ones reach. Adds to *dims which dimensions that tells apart. */
static bool
spreads(const GlobalAccess *a, const Value *stride, const Op *loop, i64 reach, u32 *dims)
{
  u64 done = 0;
  for (const AliasTerm *t; (t = smallest_step(a, stride, loop, done)); done |= UINT64_C(1) << (t - a->term)) {
    if (magnitude(t->coef) < reach || !take_dimension(t, dims))
      return false;
    Interval extent = interval_add(t->is, (Interval){-t->is.lo, -t->is.lo});
    reach = interval_add((Interval){reach, reach}, interval_scale(extent, magnitude(t->coef))).hi;
  }
  return true;
}

/* Elements of all iterations have addresses of their own. promised: as far as strides go, somebody said so. */
static bool
is_injective(const GlobalAccess *a, const Op *loop, bool promised)
{
  const Type *t = a->pointer->type;
  u32 dims = 0;
  if (!spreads(a, NULL, loop, a->size, &dims))
    return false;
  for (u32 i = 0; i < a->nterms; i++) {
    bool first = a->term[i].stride != NULL;
    for (u32 k = 0; k < i; k++)
      first &= a->term[k].stride != a->term[i].stride;
    if (first && (!promised || !spreads(a, a->term[i].stride, loop, 1, &dims)))
      return false;
  }
  for (u32 d = 0; type_is_tile(t) && d < t->rank; d++)
    if (t->shape[d] > 1 && !(dims >> d & 1))
      return false;
  return true;
}

static bool
same_sum(const GlobalAccess *a, const GlobalAccess *b)
{
  if (a->unknown || b->unknown || a->bytes != b->bytes || a->size != b->size)
    return false;
  for (u32 i = 0; i < a->nterms; i++)
    if (coef_of(b, &a->term[i]) != a->term[i].coef)
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

GlobalSort
global_sort(const GlobalAccess *a)
{
  if (!(a->effect & FX_WRITE))
    return GLOBAL_READ;
  return !a->pointer || type_is_tile(a->pointer->type) ? GLOBAL_OTHER : GLOBAL_LEADER;
}

static bool
is_store(const GlobalAccess *a)
{
  return a->op->code == OP_STORE;
}

/* Does each address that both reach stay with one thread? Copies that are on their way are in no thread's order; all scalars have one
 * leader. */
static bool
same_threads(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  if (!a->pointer || !b->pointer)
    return false;
  const Type *t = a->pointer->type, *u = b->pointer->type;
  if (global_sort(a) == GLOBAL_LEADER && global_sort(b) == GLOBAL_LEADER)
    return true;
  if (!a->root || !b->root || t->kind != u->kind || t->layout != u->layout || (type_is_tile(t) && !type_same_shape(t, u)) ||
      (a->effect | b->effect) & FX_ASYNC || !same_sum(a, b) || !is_injective(a, loop, is_store(a) || is_store(b)))
    return false;
  bool copies = !type_is_tile(t) || !t->layout || layout_free_bits(t->layout, IN_LANE) || layout_free_bits(t->layout, IN_WARP);
  return !copies || (leader_alone(a) && leader_alone(b));
}

/* ---- two accesses ---- */

bool
ops_commute(const Op *a, const Op *b)
{
  return a->code == OP_ATOMIC_RMW && b->code == OP_ATOMIC_RMW && value_unused(op_result(a)) && value_unused(op_result(b)) &&
         op_pointer(a)->type->dt == op_pointer(b)->type->dt && !strcmp(op_str(a, AT_RMW, ""), op_str(b, AT_RMW, "")) &&
         strcmp(op_str(a, AT_RMW, ""), "xchg") != 0;
}

/* What a pipelined loop reads ahead of time none of its iterations stores: that is promised. */
static bool
is_ahead_of(const Op *ahead, const Op *other, const Op *loop)
{
  i64 number = op_int(ahead, AT_AHEAD, 0);
  for (const Op *p = other->block->parent; number && p; p = p->block->parent)
    if (p->code == OP_FOR && op_int(p, AT_AHEAD, 0) == number)
      return !loop || loop == p || op_inside(loop, p);
  return false;
}

/* A store that meets its own iterations: where the gap along one stride is none, its rows are promised not to overlap. */
static bool
own_rows_apart(const Gaps *g, const GlobalAccess *a, const GlobalAccess *b)
{
  bool apart = !touches(g->gap[0].is, a, b);
  for (u32 i = 1; i < g->n; i++)
    apart |= !interval_has(g->gap[i].is, 0);
  return a->op == b->op && is_store(a) && apart;
}

static bool
never_touch(const GlobalAccess *a, const GlobalAccess *b, const Op *loop)
{
  if (a->unknown || b->unknown)
    return false;
  Gaps g = gaps_between(a, b, loop);
  return !may_touch(&g, a, b) || apart_modulo(a, b, loop) || in_other_rows(&g, a, b, loop) || in_other_parts(&g, a, b, loop) ||
         in_other_columns(&g, a, b, loop) || own_rows_apart(&g, a, b);
}

/* Two parameters that are taken to reach different memory. */
static bool
taken_apart(const Value *a, const Value *b)
{
  const ParamInfo *params = a->block->func->params;
  return params[a->index].same != params[b->index].same && a->index < APART_MAX && b->index < APART_MAX;
}

bool
global_conflict(const GlobalAccess *a, const GlobalAccess *b, const Op *loop, bool *apart)
{
  *apart = false;
  if (!((a->effect | b->effect) & FX_WRITE) || ops_commute(a->op, b->op) || is_ahead_of(b->op, a->op, loop))
    return false;
  if (a->effect & FX_ASYNC && is_ahead_of(a->op, b->op, loop))   /* waited for, with a barrier, before its own iteration stores */
    return false;
  if (a->root && b->root && never_touch(a, b, loop))
    return false;
  if (same_threads(a, b, loop))
    return false;
  *apart = a->root && b->root && taken_apart(a->root, b->root);
  return !*apart;
}

void
global_rely_on_apart(const GlobalAccess *a, const GlobalAccess *b)
{
  u32 i = a->root->index, k = b->root->index;
  a->root->block->func->params[i > k ? i : k].apart |= UINT64_C(1) << (i > k ? k : i);
}

bool
global_overlap(const GlobalAccess *a, const GlobalAccess *b)
{
  if (!a->root || !b->root)
    return true;
  if (never_touch(a, b, NULL))
    return false;
  if (!taken_apart(a->root, b->root))
    return true;
  global_rely_on_apart(a, b);
  return false;
}
