/* version_edges.c - programs that no mask cuts run a version of the kernel without masks.
 * Needs phase tile, after canon and dce; keeps it, and cleans up behind itself. A kernel is left alone unless a mask makes an access
 * narrower than its address does.
 *
 * A mask like i < n ends anywhere in a tile where nothing is known of n, so a vector access under it would reach elements that the mask
 * leaves out: accesses become one element wide. But only the last program's tile is cut, and all the others pay for it.
 *
 *   i = program * BLOCK + 0..BLOCK       if (last i < n) { the rest of the kernel, where i < n is true }
 *   the rest of the kernel         ==>   else { the rest of the kernel }
 *
 * The condition is a scalar and the same in all threads, so nothing diverges. It comes from the comparisons that the mask is made of.
 * Each side of one is a sum of scalars and of a tile whose bounds are constants: that gives its first and its last element, and where
 * the first is not above the last nothing wraps in between. A comparison in which no program_id takes part cuts every program's tile
 * or none, and is not asked for.
 *
 * Scalars, and what reads memory before the condition's operands are known, stay in front of the `if`; all else is cloned into both
 * arms. That doubles the code: large kernels are left alone (VERSIONED_WORK), and so are those with dots, whose addresses are rows of
 * matrices, and those that name shared memory. */
#include "internal.h"
#include <string.h>

enum {
  VERSIONED_WORK = 1 << 13,      /* ops of tiles times registers of a thread */
  TERMS = 4,                     /* scalars of a sum */
  DEPTH = 16                     /* of the expressions that are looked into */
};

/* The elements of an integer value: lo..hi and scalars times constants, all modulo its type. */
typedef struct Term { Value *x; i64 by; } Term;
typedef struct Sum { Term terms[TERMS]; u32 n; i64 lo, hi; } Sum;
/* A comparison of a mask: every element of `below` is less than (or, or_equal, no more than) every element of `above`. */
typedef struct Limit { Op *cmp; Sum below, above; bool or_equal; } Limit;

typedef struct Edges {
  Ctx *c;
  Func *f;
  const AxisInfo *axes;
  VEC(Limit) limits;
  u64 work;
  bool masked, refused;          /* some access has a mask; there is what is left alone */
} Edges;

/* ---- sums ---- */

static bool sum_of(Value *v, Sum *s, u32 depth);

static bool
sum_fits(const Sum *s)
{
  const i64 most = INT64_C(1) << 31;
  return s->lo >= -most && s->hi < most;
}

static bool
sum_scale(Sum *s, i64 by)
{
  const i64 most = INT64_C(1) << 31;
  if (by <= -most || by >= most)
    return false;
  i64 first = s->lo * by, last = s->hi * by;
  for (u32 i = 0; i < s->n; i++)
    if (__builtin_mul_overflow(s->terms[i].by, by, &s->terms[i].by))
      return false;
  s->lo = by < 0 ? last : first;
  s->hi = by < 0 ? first : last;
  return sum_fits(s);
}

/* a + b * by */
static bool
sum_add(Value *a, Value *b, i64 by, Sum *s, u32 depth)
{
  Sum y;
  if (!sum_of(a, s, depth) || !sum_of(b, &y, depth) || !sum_scale(&y, by) || s->n + y.n > TERMS)
    return false;
  for (u32 i = 0; i < y.n; i++)
    s->terms[s->n++] = y.terms[i];
  s->lo += y.lo;
  s->hi += y.hi;
  return sum_fits(s);
}

/* Of a value that is the same in all elements. */
static bool
sum_of_scalar(Value *x, Sum *s)
{
  *s = (Sum){.terms = {{x, 1}}, .n = 1};
  return true;
}

static bool
sum_of(Value *v, Sum *s, u32 depth)
{
  const Op *op = v->def;
  i64 k;
  *s = (Sum){0};
  if (!type_is_int(v->type) || dtype_bits(v->type->dt) < 32 || depth > DEPTH)
    return false;
  if (value_const_int(v, &k)) {
    s->lo = s->hi = k;
    return sum_fits(s);
  }
  if (!type_is_tile(v->type))
    return sum_of_scalar(v, s);
  if (!op)
    return false;
  switch (op->code) {
  case OP_SPLAT: return sum_of_scalar(OPERAND(op, SPLAT, x), s);
  case OP_ARANGE:
    s->lo = op_int(op, AT_START, 0);
    s->hi = op_int(op, AT_END, 1) - 1;
    return sum_fits(s);
  case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE:
    return sum_of(op_operand(op, 0), s, depth + 1);
  case OP_ADD: return sum_add(OPERAND(op, ADD, a), OPERAND(op, ADD, b), 1, s, depth + 1);
  case OP_SUB: return sum_add(OPERAND(op, SUB, a), OPERAND(op, SUB, b), -1, s, depth + 1);
  case OP_MUL:
    return value_const_int(OPERAND(op, MUL, b), &k) && sum_of(OPERAND(op, MUL, a), s, depth + 1) && sum_scale(s, k);
  case OP_SHL:
    return value_const_int(OPERAND(op, SHL, b), &k) && k >= 0 && k < 31 && sum_of(OPERAND(op, SHL, a), s, depth + 1) &&
           sum_scale(s, INT64_C(1) << k);
  case OP_CAST:                   /* of a scalar it would have been done before the splat */
    return sum_of(OPERAND(op, CAST, x), s, depth + 1) && !s->n && s->lo >= 0;
  default: return false;
  }
}

static Value *
sum_value(Builder *b, const Sum *s, i64 with, const Type *t)
{
  Value *v = NULL;
  for (u32 i = 0; i < s->n; i++) {
    Value *x = s->terms[i].x;
    if (s->terms[i].by != 1)
      x = ir_binary(b, OP_MUL, x, ir_const_int(b, t, s->terms[i].by));
    v = v ? ir_binary(b, OP_ADD, v, x) : x;
  }
  if (v && !with)
    return v;
  Value *k = ir_const_int(b, t, with);
  return v ? ir_binary(b, OP_ADD, v, k) : k;
}

/* ---- what cuts tiles ---- */

static bool
differs_by_program(const Value *v, u32 depth)
{
  const Op *op = v->def;
  if (!op || depth > DEPTH)
    return false;
  if (op->code == OP_PROGRAM_ID || op->code == OP_ATOMIC_RMW)      /* a tile taken by a counter is the program's own, too */
    return true;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && differs_by_program(op_operand(op, i), depth + 1))
      return true;
  return false;
}

static bool
sum_differs(const Sum *s)
{
  for (u32 i = 0; i < s->n; i++)
    if (differs_by_program(s->terms[i].x, 0))
      return true;
  return false;
}

/* A comparison as a limit: lt, le, gt or ge of sums. */
static bool
limit_of(Op *cmp, Limit *l)
{
  const char *pred = op_str(cmp, AT_PRED, "eq");
  bool less = pred[0] == 'l', greater = pred[0] == 'g';
  Value *a = OPERAND(cmp, CMP, a), *b = OPERAND(cmp, CMP, b);
  *l = (Limit){.cmp = cmp, .or_equal = pred[1] == 'e'};
  return (less || greater) && sum_of(less ? a : b, &l->below, 0) && sum_of(less ? b : a, &l->above, 0) &&
         (sum_differs(&l->below) || sum_differs(&l->above));
}

/* Is what keeps mask from being equal along runs of `want` elements of dimension d a list of limits? They join the list. */
static bool
mask_limits(Edges *e, Value *mask, u32 d, u32 want, u32 depth)
{
  Op *op = mask->def;
  Limit l;
  i64 axis;
  if (!type_is_tile(mask->type) || e->axes[mask->id].constancy[d] >= want)
    return true;
  if (!op || depth > DEPTH)
    return false;
  switch (op->code) {
  case OP_AND:
    return mask_limits(e, OPERAND(op, AND, a), d, want, depth + 1) && mask_limits(e, OPERAND(op, AND, b), d, want, depth + 1);
  case OP_BROADCAST: return mask_limits(e, OPERAND(op, BROADCAST, x), d, want, depth + 1);
  case OP_EXPAND_DIMS:
    axis = op_int(op, AT_AXIS, 0);
    return axis == (i64)d || mask_limits(e, OPERAND(op, EXPAND_DIMS, x), d - (axis < (i64)d), want, depth + 1);
  case OP_CMP:
    if (!limit_of(op, &l))
      return false;
    for (u32 i = 0; i < e->limits.len; i++)
      if (e->limits.data[i].cmp == op)
        return true;
    vec_push(e->c->scratch, &e->limits, l);
    return true;
  default: return false;
  }
}

/* A load or store of the kernel's own block, with a mask. */
static bool
is_masked_access(const Edges *e, const Op *op)
{
  return op->block == e->f->body && (op->code == OP_LOAD || op->code == OP_STORE) && op_mask(op) && type_is_tile(op_pointer(op)->type);
}

/* What an access's mask alone makes narrow adds limits, if they are all that does. */
static void
find_limits(Edges *e, const Op *op)
{
  Value *p = op_pointer(op), *mask = op_mask(op);
  const AxisInfo *at = &e->axes[p->id];
  u32 d = axis_fastest(at, p->type->rank), bytes = dtype_bytes(p->type->dt);
  u32 want = axis_vector(at, NULL, d, p->type->shape[d], bytes, 0), known = e->limits.len;
  if (!mask_limits(e, mask, d, want, 0))
    e->limits.len = known;
}

static void
look_at(Op *op, void *user)
{
  Edges *e = user;
  u32 threads = team_threads(block_team(e->f->body));
  if (op->nresults && type_is_tile(op_result(op)->type))
    e->work += (type_padded_numel(op_result(op)->type) + threads - 1) / threads;
  e->refused |= op_is_dot(op) || op_uses_shared(op);
  e->masked |= is_masked_access(e, op);
}

static bool
is_worth_versions(Edges *e)
{
  func_walk(e->f, look_at, e);
  if (!e->masked || e->refused || e->work > VERSIONED_WORK)
    return false;
  e->axes = analyse_axes(e->f);
  for (const Op *op = e->f->body->first; op; op = op->next)
    if (is_masked_access(e, op))
      find_limits(e, op);
  return e->limits.len > 0;
}

/* ---- two versions ---- */

/* In front of the first op behind all that the limits are made of. */
static Op *
split_point(const Edges *e)
{
  Op *at = e->f->body->first;
  for (Op *op = at; op; op = op->next) {
    op->mark = 0;
    for (u32 i = 0; i < e->limits.len; i++)
      for (u32 k = 0; k < 2; k++) {
        const Sum *s = k ? &e->limits.data[i].above : &e->limits.data[i].below;
        for (u32 n = 0; n < s->n; n++)
          if (s->terms[n].x->def == op)
            at = op->next;
      }
  }
  return at;
}

static Value *
both(Builder *b, Value *x, Value *y)
{
  return x ? ir_binary(b, OP_AND, x, y) : y;
}

/* Nothing wraps between the sum's first element and its last. */
static Value *
sum_in_order(Builder *b, Value *cond, const Sum *s, const Type *t)
{
  if (s->lo == s->hi)
    return cond;
  Value *hi = sum_value(b, s, s->hi, t), *lo = sum_value(b, s, s->lo, t);
  return both(b, cond, ir_cmp(b, "le", lo, hi));
}

static Value *
condition(const Edges *e, Builder *b)
{
  Value *cond = NULL;
  for (u32 i = 0; i < e->limits.len; i++) {
    const Limit *l = &e->limits.data[i];
    const Type *t = type_elem(e->c, OPERAND(l->cmp, CMP, a)->type);
    cond = sum_in_order(b, cond, &l->below, t);
    cond = sum_in_order(b, cond, &l->above, t);
    Value *last = sum_value(b, &l->below, l->below.hi, t), *first = sum_value(b, &l->above, l->above.lo, t);
    cond = both(b, cond, ir_cmp(b, l->or_equal ? "le" : "lt", last, first));
  }
  return cond;
}

/* Stays in front of the `if`. The pure tiles there are made again in each arm, where layouts are the arm's own. */
static bool
is_shared(const Op *op)
{
  return !op_has(op, T_PURE) || op->nresults != 1 || !type_is_tile(op_result(op)->type);
}

static void
clone_arm(Edges *e, Op *choice, u32 arm, const Op *split, u32 nvalues)
{
  Value **map = NEW_ARRAY(e->c->scratch, Value *, nvalues);
  Builder b = builder_at_end(e->f, choice->regions[arm]);
  for (u32 i = 0; !arm && i < e->limits.len; i++) {
    const Value *all = op_result(e->limits.data[i].cmp);
    b.span = all->def->span;
    map[all->id] = ir_const_int(&b, all->type, 1);
  }
  bool behind = false;
  for (const Op *op = e->f->body->first; op && !op_has(op, T_TERM); op = op->next) {
    behind |= op == split;
    if (op != choice && (behind || !is_shared(op)) && !(op->nresults && map[op_result(op)->id]))
      op_clone(&b, op, map);
  }
  ir_yield(&b, 0, NULL);
}

static void
make_versions(Edges *e)
{
  Op *split = split_point(e);
  u32 nvalues = e->f->nvalues;
  Builder b = builder_before(split);
  b.span = split->span;
  Op *choice = ir_if(&b, condition(e, &b), 0, NULL);
  op_set_int(choice, AT_EDGE, 1);
  clone_arm(e, choice, 0, split, nvalues);
  clone_arm(e, choice, 1, split, nvalues);
  for (Op *op = block_terminator(e->f->body)->prev, *prev; op != choice; op = prev) {
    prev = op->prev;
    op_remove(op);
  }
}

void
pass_version_edges(Ctx *c, Module *m)
{
  bool changed = false;
  for (u32 i = 0; i < m->funcs.len; i++) {
    Edges e = {.c = c, .f = m->funcs.data[i]};
    if (is_worth_versions(&e)) {
      make_versions(&e);
      changed = true;
    }
  }
  if (!changed)
    return;
  pass_canon(c, m);
  pass_cse(c, m);
  pass_dce(c, m);
}
