/* flatten_loops.c - a loop with `flatten` and the one loop in it become a single loop.
 * Needs phase tile, after licm; keeps it. Leaves unused copies for dce.
 *
 * A program that works on one tile after the other drains its pipeline at the end of each: the last loads of a tile have
 * landed before the first of the next are asked for. In a single loop over all iterations of all tiles the pipeline never
 * drains, and the next tile's loads are in flight while this one's results are stored.
 *
 *   for t in lo..hi step s, O {            if lo < hi && a < b {
 *     P (t, O)                               P (lo, O)
 *     for k in a..b step c, I = i(P) {       for _ in 0..trips(t) * trips(k), t = lo, k = a, O, X = x(P), I = i(P) {
 *       B (k, I, X)                 ==>        B (k, I, X);  last = k + c >= b;  more = last && t + s < hi
 *     }                                        O = last ? E (t, O, I, X) : O
 *     E (t, O, I)                              X = more ? P (t + s, O) : X;  I = more ? i(P) : I
 *   }                                          k = last ? a : k + c;  t = last ? t + s : t
 *                                            }
 *                                          } else { the outer loop without the inner, whose results are its first values }
 *
 * P moves from before the inner loop to behind it, for the iteration to come; the first is done ahead. X is what B needs of P.
 * Pure parts of P are computed again wherever they are needed, each in an `if` of its own: so stage 0 of pipeline_loops, which
 * is computed from nothing but t, k and pure parts, is not tied to E's stores or to the sums in I. What is not pure in P
 * (loads, atomics) runs once an iteration, in order, and is carried.
 *
 * Where the inner loop's dots may become products of warpgroups the loops stay: sums can then stay under way over the iterations of
 * the inner loop (warpgroup_dots.c), and a team that copies goes on with the next tile by itself (roles.c). */
#include "internal.h"
#include "wgmma.h"

typedef struct Flat {
  Ctx *c;
  Func *f;
  Op *outer, *inner;
  u32 nvalues;               /* before anything was added: the size of maps */
  bool *pure;                /* by value id: of P, and computed from t, O and the outside by pure ops */
  bool *broadcast;              /* by value id: pure, and nothing but another value broadcast: made again in each iteration */
  VEC(Value *) x;            /* pure values of P that B uses */
  VEC(Value *) once;         /* other values of P, used anywhere */
} Flat;

/* The values of one iteration of the outer loop: what t and O stand for, and all that was made from them. */
typedef Value **Map;

static const char *
find_inner(Flat *x)
{
  for (Op *op = x->outer->regions[0]->first; op; op = op->next) {
    if (op->code == OP_FOR && x->inner)
      return "there are several loops in it";
    if (op->code == OP_FOR)
      x->inner = op;
  }
  if (!x->inner)
    return "there is no `for` directly in it";
  for (u32 i = 0; i < SLOT(FOR, inits); i++) {
    const Value *v = op_operand(x->inner, i);
    if (value_within(v, x->outer))
      return "the range of the loop in it changes from iteration to iteration";
  }
  return NULL;
}

static bool
before_inner(const Flat *x, const Op *op)
{
  if (op->block != x->outer->regions[0] || op == x->inner)
    return false;
  for (const Op *p = op; p; p = p->next)
    if (p == x->inner)
      return true;
  return false;
}

static void
classify(Flat *x)
{
  x->pure = NEW_ARRAY(x->c->scratch, bool, x->nvalues);
  x->broadcast = NEW_ARRAY(x->c->scratch, bool, x->nvalues);
  for (Op *op = x->outer->regions[0]->first; op != x->inner; op = op->next) {
    bool pure = op_is_arithmetic(op) && op->nresults == 1;
    for (u32 i = 0; i < op->noperands && pure; i++) {
      const Value *v = op_operand(op, i);
      pure = !v || !v->def || !op_inside(v->def, x->outer) || x->pure[v->id];
    }
    if (pure)
      x->pure[op_result(op)->id] = true;
  }
}

/* A value of P that an op of B or E uses. */
static void
note_use(Flat *x, Value *v, bool in_inner)
{
  if (!v || !v->def || !before_inner(x, v->def))
    return;
  bool pure = x->pure[v->id];
  if (pure && !in_inner)
    return;
  if (pure && (op_is(v, OP_BROADCAST) || op_is(v, OP_EXPAND_DIMS) || op_is(v, OP_SPLAT))) {
    x->broadcast[v->id] = true;
    note_use(x, OPERAND(v->def, UNARY, x), in_inner);
    return;
  }
  for (u32 i = 0; i < (pure ? x->x.len : x->once.len); i++)
    if ((pure ? x->x.data[i] : x->once.data[i]) == v)
      return;
  if (pure)
    vec_push(x->c->scratch, &x->x, v);
  else
    vec_push(x->c->scratch, &x->once, v);
}

static void
note_uses(Op *op, void *user)
{
  Flat *x = user;
  if (op == x->inner || (op->block == x->outer->regions[0] && before_inner(x, op)))
    for (u32 i = SLOT(FOR, inits); op == x->inner && i < op->noperands; i++)
      note_use(x, op_operand(op, i), false);
  else
    for (u32 i = 0; i < op->noperands; i++)
      note_use(x, op_operand(op, i), op_inside(op, x->inner));
}

static const char *
find_carried(Flat *x)
{
  classify(x);
  block_walk(x->outer->regions[0], note_uses, x);
  for (u32 i = 0; i < x->once.len; i++)
    if (type_is_shared(x->once.data[i]->type))
      return "it makes a shared buffer for each iteration";
  for (u32 i = 0; i < x->x.len; i++)
    if (type_is_shared(x->x.data[i]->type))
      return "it picks a shared buffer for each iteration";
  return NULL;
}

/* ---- building ---- */

static Map
map_new(Flat *x, Value *t, Value *const *carried)
{
  Map map = NEW_ARRAY(x->c->scratch, Value *, x->nvalues);
  map[loop_counter(x->outer)->id] = t;
  for (u32 i = 0; i < x->outer->nresults; i++)
    map[loop_arg(x->outer, 0, i)->id] = carried[i];
  return map;
}

/* P, or only its pure part. */
static void
clone_before(Flat *x, Builder *b, Map map, bool all)
{
  for (Op *op = x->outer->regions[0]->first; op != x->inner; op = op->next)
    if ((all || (op->nresults == 1 && x->pure[op_result(op)->id])) && !(op->nresults && map[op_result(op)->id]))
      op_clone(b, op, map);
}

typedef VEC(Value *) List;

static void
push_mapped(Flat *x, List *to, Value *const *map, Value *const *v, u32 n)
{
  for (u32 i = 0; i < n; i++)
    vec_push(x->c->scratch, to, value_mapped(map, v[i]));
}

/* An `if` whose arms are still to be ended; gives the builder of its first. */
static Op *
if_of(Flat *x, Builder *b, Value *cond, u32 n, Value *const *like, Builder *then)
{
  const Type **types = NEW_ARRAY(x->c->scratch, const Type *, n + 1);
  for (u32 i = 0; i < n; i++)
    types[i] = like[i]->type;
  Op *op = ir_if(b, cond, n, types);
  *then = builder_at_end(x->f, op->regions[0]);
  then->span = b->span;
  return op;
}

static void
if_end(Flat *x, Op *op, Builder *then, Value *const *yes, Value *const *no)
{
  Builder other = builder_at_end(x->f, op->regions[1]);
  other.span = then->span;
  ir_yield(then, op->nresults, yes);
  ir_yield(&other, op->nresults, no);
}

/* What the single loop carries, in order: t, k, O, then X, what is done once, and I. */
enum { CARRIED_T, CARRIED_K, CARRIED_O };

/* The parts of the single loop's iteration. */
typedef struct Iteration {
  Builder b;
  Value *t, *k, **o, **x, **once, **in;   /* its arguments */
  Value *next_t, *last, *more;
  Value **o1, **once1, **x1, **in1;       /* what it hands on */
} Iteration;

static Value **
body(Flat *x, Iteration *u)
{
  Map map = map_new(x, u->t, u->o);
  Block *b = x->inner->regions[0];
  map[loop_counter(x->inner)->id] = u->k;
  for (u32 i = 0; i < x->inner->nresults; i++)
    map[loop_arg(x->inner, 0, i)->id] = u->in[i];
  for (u32 i = 0; i < x->x.len; i++)
    map[x->x.data[i]->id] = u->x[i];
  for (u32 i = 0; i < x->once.len; i++)
    map[x->once.data[i]->id] = u->once[i];
  for (Op *op = x->outer->regions[0]->first; op != x->inner; op = op->next)
    if (op->nresults == 1 && x->broadcast[op_result(op)->id])
      op_clone(&u->b, op, map);
  for (Op *op = b->first; op != b->last; op = op->next)
    op_clone(&u->b, op, map);
  List next = {0};
  for (u32 i = 0; i < x->inner->nresults; i++)
    vec_push(x->c->scratch, &next, value_mapped(map, loop_next(x->inner, i)));
  return next.data;
}

static void
conditions(Flat *x, Iteration *u, Value **next_k)
{
  Builder *b = &u->b;
  *next_k = ir_binary(b, OP_ADD, u->k, OPERAND(x->inner, FOR, step));
  u->last = ir_unary(b, OP_NOT, loop_goes_on(b, x->inner, u->k, 1));
  u->next_t = ir_binary(b, OP_ADD, u->t, OPERAND(x->outer, FOR, step));
  u->more = ir_binary(b, OP_AND, u->last, loop_goes_on(b, x->outer, u->t, 1));
}

/* Sums that begin anew from a value of the outside: reset where E stores them, at no cost in other iterations. */
static bool
begins_outside(const Flat *x, u32 i)
{
  const Value *v = loop_init(x->inner, i);
  return !value_within(v, x->outer) && !type_is_ptr(v->type) && !type_is_int(v->type);
}

/* E, at the end of an outer iteration; with what the inner loop's sums begin from again. */
static void
after_inner(Flat *x, Iteration *u, Value *const *results)
{
  Builder then;
  u32 no = x->outer->nresults, n = x->inner->nresults;
  List no_end = {0}, begin = {0};
  for (u32 i = 0; i < no; i++)
    vec_push(x->c->scratch, &no_end, u->o[i]);
  for (u32 i = 0; i < n; i++)
    if (begins_outside(x, i)) {
      vec_push(x->c->scratch, &no_end, results[i]);
      vec_push(x->c->scratch, &begin, loop_init(x->inner, i));
    }
  Op *op = if_of(x, &u->b, u->last, no_end.len, no_end.data, &then);
  Map map = map_new(x, u->t, u->o);
  for (u32 i = 0; i < x->once.len; i++)
    map[x->once.data[i]->id] = u->once[i];
  for (u32 i = 0; i < x->inner->nresults; i++)
    map[x->inner->results[i]->id] = results[i];
  clone_before(x, &then, map, false);
  Op *end = x->outer->regions[0]->last;
  for (Op *e = x->inner->next; e != end; e = e->next)
    op_clone(&then, e, map);
  List yes = {0};
  for (u32 i = 0; i < no; i++)
    vec_push(x->c->scratch, &yes, value_mapped(map, op_operand(end, i)));
  for (u32 i = 0; i < begin.len; i++)
    vec_push(x->c->scratch, &yes, begin.data[i]);
  if_end(x, op, &then, yes.data, no_end.data);
  u->o1 = op->results;
  u->in1 = NEW_ARRAY(x->c->scratch, Value *, n + 1);
  for (u32 i = 0, k = no; i < n; i++)
    if (begins_outside(x, i))
      u->in1[i] = op->results[k++];
}

/* What is not pure in P, for the next outer iteration. */
static void
impure(Flat *x, Iteration *u)
{
  bool any = x->once.len > 0;
  for (Op *op = x->outer->regions[0]->first; op != x->inner; op = op->next)
    any |= !op_removable(op);
  u->once1 = u->once;
  if (!any)
    return;
  Builder then;
  Op *op = if_of(x, &u->b, u->more, x->once.len, u->once, &then);
  Map map = map_new(x, u->next_t, u->o1);
  clone_before(x, &then, map, true);
  List yes = {0};
  push_mapped(x, &yes, map, x->once.data, x->once.len);
  if_end(x, op, &then, yes.data, u->once);
  u->once1 = op->results;
}

/* Values `of` of the next outer iteration, made from pure parts, or `stay` while this one lasts. */
static Value **
renewed(Flat *x, Iteration *u, u32 n, Value *const *of, Value *const *stay)
{
  if (!n)
    return NULL;
  Builder then;
  Op *op = if_of(x, &u->b, u->more, n, stay, &then);
  Map map = map_new(x, u->next_t, u->o1);
  for (u32 i = 0; i < x->once.len; i++)
    map[x->once.data[i]->id] = u->once1[i];
  clone_before(x, &then, map, false);
  List yes = {0};
  push_mapped(x, &yes, map, of, n);
  if_end(x, op, &then, yes.data, stay);
  return op->results;
}

/* The inner loop's other carried values: what may be an address alone, all others together. */
static void
renew_carried(Flat *x, Iteration *u, Value *const *results)
{
  u32 n = x->inner->nresults, others = 0;
  List init = {0}, stay = {0};
  u32 *which = NEW_ARRAY(x->c->scratch, u32, n + 1);
  for (u32 i = 0; i < n; i++) {
    Value *v = loop_init(x->inner, i), *r = results[i];
    if (u->in1[i])
      continue;
    if (type_is_ptr(v->type) || type_is_int(v->type)) {
      u->in1[i] = renewed(x, u, 1, &v, &r)[0];
      continue;
    }
    which[others++] = i;
    vec_push(x->c->scratch, &init, v);
    vec_push(x->c->scratch, &stay, r);
  }
  Value **all = renewed(x, u, others, init.data, stay.data);
  for (u32 i = 0; i < others; i++)
    u->in1[which[i]] = all[i];
}

static void
fill_iteration(Flat *x, Op *loop)
{
  u32 no = x->outer->nresults, nx = x->x.len, nonce = x->once.len;
  Value **a = loop->regions[0]->args + loop_first_arg(loop), **o = a + CARRIED_O, *next_k;
  Iteration u = {.b = builder_at_end(x->f, loop->regions[0]), .t = a[CARRIED_T], .k = a[CARRIED_K], .o = o, .x = o + no,
                 .once = o + no + nx, .in = o + no + nx + nonce};
  u.b.span = x->outer->span;
  Value **results = body(x, &u);
  u.b.span = x->outer->span;
  conditions(x, &u, &next_k);
  after_inner(x, &u, results);
  impure(x, &u);
  u.x1 = renewed(x, &u, nx, x->x.data, u.x);
  renew_carried(x, &u, results);
  List next = {0};
  vec_push(x->c->scratch, &next, ir_select(&u.b, u.last, u.next_t, u.t));
  vec_push(x->c->scratch, &next, ir_select(&u.b, u.last, OPERAND(x->inner, FOR, lo), next_k));
  for (u32 i = 0; i < no; i++)
    vec_push(x->c->scratch, &next, u.o1[i]);
  for (u32 i = 0; i < nx; i++)
    vec_push(x->c->scratch, &next, u.x1[i]);
  for (u32 i = 0; i < nonce; i++)
    vec_push(x->c->scratch, &next, u.once1[i]);
  for (u32 i = 0; i < x->inner->nresults; i++)
    vec_push(x->c->scratch, &next, u.in1[i]);
  ir_yield(&u.b, next.len, next.data);
}

/* The single loop, at b; gives it. */
static Op *
single_loop(Flat *x, Builder *b)
{
  Op *outer = x->outer, *inner = x->inner;
  Value *lo = OPERAND(outer, FOR, lo);
  List o = {0}, init = {0};
  for (u32 i = 0; i < outer->nresults; i++)
    vec_push(x->c->scratch, &o, loop_init(outer, i));
  Map map = map_new(x, lo, o.data);
  clone_before(x, b, map, true);
  Value *of_inner = loop_trips(b, inner), *n = ir_binary(b, OP_MUL, loop_trips(b, outer), of_inner);
  vec_push(x->c->scratch, &init, lo);
  vec_push(x->c->scratch, &init, OPERAND(inner, FOR, lo));
  push_mapped(x, &init, map, o.data, o.len);
  push_mapped(x, &init, map, x->x.data, x->x.len);
  push_mapped(x, &init, map, x->once.data, x->once.len);
  for (u32 i = 0; i < inner->nresults; i++)
    vec_push(x->c->scratch, &init, value_mapped(map, loop_init(inner, i)));
  Value *zero = ir_const_int(b, n->type, 0), *one = ir_const_int(b, n->type, 1);
  Op *loop = ir_for(b, zero, n, one, init.len, init.data);
  i64 stages = op_int(inner, AT_STAGES, op_int(outer, AT_STAGES, 1)), hoist = op_int(inner, AT_HOIST, 1);
  if (stages > 1)
    op_set_int(loop, AT_STAGES, stages);
  if (!hoist)
    op_set_int(loop, AT_HOIST, 0);
  fill_iteration(x, loop);
  return loop;
}

/* What is left where the inner loop has no iteration. */
static void
without_inner(Flat *x, Builder *b)
{
  Map map = NEW_ARRAY(x->c->scratch, Value *, x->nvalues + 1);
  Op *copy = op_clone(b, x->outer, map);
  Op *inner = copy->regions[0]->first;
  while (inner->code != OP_FOR)
    inner = inner->next;
  for (u32 i = 0; i < inner->nresults; i++)
    value_replace_uses(inner->results[i], loop_init(inner, i));
  op_remove(inner);
  op_remove_attr(copy, AT_STAGES);
  op_remove_attr(copy, AT_UNROLL);
  ir_yield(b, copy->nresults, copy->results);
}

/* Will a dot of the loop be a product of warpgroups, as far as can be seen here? */
static bool
for_warpgroups(Ctx *c, Func *f, const Op *inner)
{
  AxisInfo *axes = target_has(c->target, F_WGMMA) ? analyse_axes(f) : NULL;
  for (const Op *op = inner->regions[0]->first; op && axes; op = op->next)
    if (op_is_dot(op) && wgmma_dot_loop(op) && !wgmma_dot_error(c, axes, op))
      return true;
  return false;
}

const char *
flatten_loop(Ctx *c, Func *f, Op *outer)
{
  Flat x = {.c = c, .f = f, .outer = outer, .nvalues = f->nvalues};
  const char *why = find_inner(&x);
  if (!why)
    why = find_carried(&x);
  if (!why && for_warpgroups(c, f, x.inner))
    why = "its sums stay under way over the iterations of the loop in it";
  if (why)
    return why;
  Builder b = builder_before(outer), then;
  b.span = outer->span;
  Value *some_inner = ir_cmp(&b, "lt", OPERAND(x.inner, FOR, lo), OPERAND(x.inner, FOR, hi));
  Value *some = ir_binary(&b, OP_AND, ir_cmp(&b, "lt", OPERAND(outer, FOR, lo), OPERAND(outer, FOR, hi)), some_inner);
  Op *guard = if_of(&x, &b, some, outer->nresults, outer->results, &then);
  Op *loop = single_loop(&x, &then);
  Builder other = builder_at_end(f, guard->regions[1]);
  other.span = outer->span;
  ir_yield(&then, outer->nresults, loop->results + CARRIED_O);
  without_inner(&x, &other);
  for (u32 i = 0; i < outer->nresults; i++)
    value_replace_uses(outer->results[i], guard->results[i]);
  op_remove(outer);
  return NULL;
}

static void
flatten(Ctx *c, Func *f, Op *outer)
{
  Span at = outer->span;
  op_remove_attr(outer, AT_FLATTEN);
  const char *why = flatten_loop(c, f, outer);
  if (why && c->remarks)
    diag(c, at, R_NOT_FLATTENED, why);
}

void
pass_flatten_loops(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec loops = func_ops(c, m->funcs.data[i], OP_FOR);
    for (u32 k = loops.len; k-- > 0;)   /* inner loops first */
      if (op_int(loops.data[k], AT_FLATTEN, 0))
        flatten(c, m->funcs.data[i], loops.data[k]);
  }
}
