/* lower_loop.c - for, while, and the ways to leave an iteration of them (flow.h).
 *
 * A `for` that may be left early becomes a `while` that carries whether it goes on and the index. A `return` inside a loop
 * makes it carry whether it returned and what; how many values those are is known when its body has been lowered. */
#include "flow.h"

enum { UNROLL_MAX = 65536, ITERATION_WORK = 16 };    /* ITERATION_WORK: what an iteration of an unrolled loop costs beyond its body */

/* ---- ranges ---- */

/* v: from, to, step. down: the step is negative, a constant. */
typedef struct Range { Val v[3]; i64 stages, unroll; bool hoist, flatten, ok, down; } Range;

static bool
is_negative(Val v)
{
  return v.kind == V_CONST && v.k.i < 0 && (v.k.form != CF_TYPED || dtype_is_signed(v.k.dt));
}

/* Argument i, an attribute of the loop; true if it is absent. */
static bool
loop_number(Lower *L, Call *c, u32 i, AttrId id, i64 *n)
{
  i64 least, most;
  const char *what = attr_info[id].name;
  if (!c->given[i])
    return true;
  if (!call_int(L, c, i, what, n))
    return false;
  if (attr_allows(id, *n, &least, &most))
    return true;
  call_error(L, c, c->args[i].span,
             arena_printf(L->a, "%s is from %lld to %lld, not %lld", what, (long long)least, (long long)most, (long long)*n));
  return false;
}

/* stages, unroll, hoist and flatten; false after reporting. */
static bool
range_hints(Lower *L, Call *c, Range *r)
{
  if (!loop_number(L, c, 3, AT_STAGES, &r->stages) || !loop_number(L, c, 4, AT_UNROLL, &r->unroll))
    return false;
  return (!c->given[5] || call_bool(L, c, 5, true, &r->hoist)) && (!c->given[6] || call_bool(L, c, 6, false, &r->flatten));
}

static Range
lower_range(Lower *L, const Node *n, const char *name, const char *params)
{
  Call call;
  Range r = {.hoist = true};
  if (!lower_bind_args(L, n, 1, name, params, &call))
    return r;
  bool one = !call.given[1] && !call.given[2];
  r.v[0] = one ? val_const(const_int(0), n->span) : call.args[0];
  r.v[1] = one ? call.args[0] : call.args[1];
  r.v[2] = call.given[2] ? call.args[2] : val_const(const_int(1), n->span);
  if (!one && !call.given[1]) {
    ERR(L, n->span, E_ARGUMENTS, name, "it has a step but no end");
    return r;
  }
  r.ok = true;
  for (int i = 0; i < 3; i++) {
    Val v = r.v[i];
    bool ok = val_is_data(v) && !val_is_ptr(v) && !val_is_tile(v) && val_num(v) != DT_I1 &&
              (val_num(v) == NUM_INT || (val_num(v) < NUM_INT && dtype_is_int((DType)val_num(v))));
    if (!ok && v.kind != V_POISON)
      ERR(L, v.span, E_RANGE, name, val_str(L, v));
    r.ok &= ok;
  }
  if (r.ok && r.v[2].kind == V_CONST && r.v[2].k.i == 0) {
    ERR(L, r.v[2].span, E_STEP);
    r.ok = false;
  }
  r.down = r.ok && is_negative(r.v[2]);
  if (r.ok)
    r.ok = range_hints(L, &call, &r);
  return r;
}

static DType
range_dtype(Lower *L, const Range *r)
{
  bool plain = r->down && r->v[2].k.form == CF_INT;          /* a step down has no type: it is taken off */
  int num = num_promote(num_promote(val_num(r->v[0]), val_num(r->v[1])), plain ? (int)NUM_INT : val_num(r->v[2]));
  DType dt = num_dtype(L, num, NULL);
  for (int i = 0; i < 3 - plain; i++)
    if (num == NUM_INT && !const_fits(r->v[i].k, DT_I32))
      dt = DT_I64;
  return dtype_bits(dt) < 32 ? DT_I32 : dt;
}

/* ---- counting down ----
 *
 * A loop of the IR counts up. For lo, lo - k, ... above hi it counts what has been taken off, 0, k, ... below lo - hi, in the unsigned
 * type of the index's width, in which that difference always fits. */

typedef struct Bounds {
  Value *lo, *hi, *step;      /* of the loop of the IR */
  Value *top;                 /* counting down: where it begins, in the type of the loop; NULL: counting up */
  DType index;                /* of the source's index */
} Bounds;

static bool
bounds_down(Lower *L, const Range *r, DType dt, Bounds *b)
{
  DType word = dtype_bits(dt) == 64 ? DT_U64 : DT_U32;
  u64 by = 0 - (u64)r->v[2].k.i, most = word == DT_U64 ? UINT64_MAX : UINT32_MAX;
  Value *lo = val_as(L, r->v[0], dt, NULL), *hi = lo ? val_as(L, r->v[1], dt, NULL) : NULL;
  if (!hi)
    return false;
  const Type *t = type_scalar(L->c, word);
  b->top = value_cast(L, lo, word);
  b->lo = ir_const_bits(&L->b, t, 0);
  Value *down = ir_binary(&L->b, OP_SUB, b->top, value_cast(L, hi, word));
  b->hi = ir_select(&L->b, ir_cmp(&L->b, "gt", lo, hi), down, b->lo);
  b->step = ir_const_bits(&L->b, t, by < most ? by : most);
  return true;
}

/* The bounds of the IR's loop; false after reporting. */
static bool
bounds_of(Lower *L, const Range *r, Span at, Bounds *b)
{
  DType dt = range_dtype(L, r);
  *b = (Bounds){.index = dt};
  L->b.span = at;
  if (r->down)
    return bounds_down(L, r, dt, b);
  b->lo = val_as(L, r->v[0], dt, NULL);
  b->hi = b->lo ? val_as(L, r->v[1], dt, NULL) : NULL;
  b->step = b->hi ? val_as(L, r->v[2], dt, NULL) : NULL;
  return b->step != NULL;
}

/* The source's index where the loop's is i. */
static Val
index_value(Lower *L, const Bounds *b, Value *i, Span at)
{
  if (!b->top)
    return val_ir(i, at);
  L->b.span = at;
  return val_ir(value_cast(L, ir_binary(&L->b, OP_SUB, b->top, i), b->index), at);
}

/* ---- the body ---- */

static void
lower_loop_body(Lower *L, Node *body, const char *name, Span at, Val i)
{
  Scope s;
  scope_push(L, &s);
  L->frame->loops++;
  if (name)
    scope_add(L, name, at, i);
  lower_block(L, body);
  L->frame->loops--;
  scope_pop(L);
}

/* A loop of the IR that is being made: what it carries is `first` values of its own, then variables, then whether it
 * returned (if it may), then what it returns. */
typedef struct Loop {
  Op *op;
  Node *body;
  Vars vars;
  Exits around;
  Builder outside;
  u32 widened;            /* conversions to look at again, before it */
  bool may_leave;         /* by break or return: it carries a truth value first */
  bool may_return;
} Loop;

static Loop
loop_new(Lower *L, const Node *n)
{
  Loop l = {.body = kid(n, 1), .around = L->frame->exits, .widened = L->widened.len};
  vars_assigned(L, &l.vars, l.body);
  l.may_return = ast_may_return(l.body);
  l.may_leave = l.may_return || ast_may_break(l.body);
  return l;
}

static Values
loop_carried(Lower *L, const Loop *l, u32 first, Value *const *own)
{
  Values all = {0}, vars = vars_values(L, &l->vars);
  vec_push(L->a, &all, NULL);
  all.len = 0;
  for (u32 i = 0; i < first; i++)
    vec_push(L->a, &all, own[i]);
  for (u32 i = 0; i < vars.len; i++)
    vec_push(L->a, &all, vars.data[i]);
  if (l->may_return)
    vec_push(L->a, &all, val_value(L, L->frame->exits.returned));
  return all;
}

/* Go on in region r, whose carried values begin at argument `first`. */
static void
loop_enter(Lower *L, Loop *l, u32 r, u32 first)
{
  l->outside.func = L->b.func;
  L->b = builder_at_end(L->b.func, l->op->regions[r]);
  L->b.span = l->op->span;
  vars_set(L, &l->vars, l->op->regions[r]->args + first);
  L->frame->exits = exits_none();
}

/* One more carried value: zeros at first, x after one iteration. Gives the result. */
static Value *
loop_carry(Lower *L, Loop *l, Value *x)
{
  Builder saved = L->b;
  L->b = builder_before(l->op);
  L->b.span = l->op->span;
  op_add_operand(l->op, val_zeros(L, val_ir(x, l->op->span)).ir);
  L->b = saved;
  for (u32 r = 0; r < l->op->nregions; r++) {
    Value *arg = block_add_arg(l->op->regions[r], x->type, NULL);
    if (r + 1 < l->op->nregions)
      op_add_operand(block_terminator(l->op->regions[r]), arg);
  }
  return op_add_result(l->op, x->type);
}

/* The iteration ends here with these values of the loop's own, carried on; after the loop, what it did is known. */
static void
loop_close(Lower *L, Loop *l, u32 first, Value *const *own)
{
  Exits end = L->frame->exits;
  Values next = loop_carried(L, l, first, own), parts = {0}, results = {0};
  u32 carried = next.len;
  if (l->may_return)
    val_parts(L, end.result, &parts);
  for (u32 i = 0; i < parts.len; i++) {
    vec_push(L->a, &next, parts.data[i]);
    vec_push(L->a, &results, loop_carry(L, l, parts.data[i]));
  }
  ir_yield(&L->b, next.len, next.data);
  truncation_recheck(L, l->widened);
  L->b = l->outside;
  vars_set(L, &l->vars, l->op->results + first);
  L->frame->exits = l->around;
  if (!l->may_return || val_is_false(end.returned))      /* a return that is never reached was not lowered */
    return;
  Value *const *made = results.data;
  Val returned = val_ir(l->op->results[carried - 1], l->op->span);
  L->frame->exits = (Exits){returned, returned, returned, val_with_parts(L, end.result, &made)};
}

/* ---- for ---- */

static void
lower_for_range(Lower *L, const Node *n, Loop *l, const Range *r, const Bounds *b)
{
  L->b.span = n->span;
  Values carried = loop_carried(L, l, 0, NULL);
  l->op = ir_for(&L->b, b->lo, b->hi, b->step, carried.len, carried.data);
  if (r->stages)
    op_set_int(l->op, AT_STAGES, r->stages);
  if (r->unroll)
    op_set_int(l->op, AT_UNROLL, r->unroll);
  if (!r->hoist)
    op_set_int(l->op, AT_HOIST, 0);
  if (r->flatten)
    op_set_int(l->op, AT_FLATTEN, 1);
  l->outside = L->b;
  loop_enter(L, l, 0, 1);
  lower_loop_body(L, l->body, n->name, n->at, index_value(L, b, l->op->regions[0]->args[0], n->at));
  L->b.span = n->span;
  loop_close(L, l, 0, NULL);
}

/* The terminator of a while's first region: go on if cond, handing on all arguments. */
static void
end_condition(Lower *L, const Op *op, Value *cond)
{
  const Block *b = op->regions[0];
  Value **xs = NEW_ARRAY(L->a, Value *, b->nargs + 1);
  xs[0] = cond;
  for (u32 i = 0; i < b->nargs; i++)
    xs[i + 1] = b->args[i];
  op_create(&L->b, OP_CONDITION, b->nargs + 1, xs, 0, NULL, 0);
}

/* x, unless the iteration ends the loop. */
static Value *
unless_stopped(Lower *L, Value *x)
{
  Val stop = L->frame->exits.stop;
  if (stop.kind == V_CONST)
    return stop.k.i ? val_value(L, stop = val_const(const_bool(false), stop.span)) : x;
  return ir_binary(&L->b, OP_AND, x, ir_unary(&L->b, OP_NOT, stop.ir));
}

/* What asks for a loop of which the number of iterations is known. */
static void
ignore_hints(Lower *L, const Node *n, const Range *r)
{
  const char *given[3];
  u32 count = 0;
  if (r->stages > 1)
    given[count++] = "stages";
  if (r->unroll > 1)
    given[count++] = "unroll";
  if (r->flatten)
    given[count++] = "flatten";
  for (u32 i = 0; i < count && L->c->remarks; i++)
    lower_trace(L, diag(L->c, kid(n, 0)->span, R_IGNORED, given[i], "`break` or `return` may end the loop early"));
}

static void
lower_for_leaving(Lower *L, const Node *n, Loop *l, const Range *r, const Bounds *b)
{
  ignore_hints(L, n, r);
  L->b.span = n->span;
  Value *own[2] = {ir_cmp(&L->b, "lt", b->lo, b->hi), b->lo};
  Values carried = loop_carried(L, l, 2, own);
  l->op = ir_while(&L->b, carried.len, carried.data);
  l->outside = L->b;
  loop_enter(L, l, 0, 2);
  end_condition(L, l->op, l->op->regions[0]->args[0]);
  loop_enter(L, l, 1, 2);
  Value *i = l->op->regions[1]->args[1];
  lower_loop_body(L, l->body, n->name, n->at, index_value(L, b, i, n->at));
  L->b.span = n->span;
  own[1] = ir_binary(&L->b, OP_ADD, i, b->step);             /* it may wrap where there is none */
  own[0] = unless_stopped(L, ir_goes_on(&L->b, i, b->hi, b->step, 1));
  loop_close(L, l, 2, own);
}

/* An iteration that may have been left before it begins. */
static void
lower_static_iteration(Lower *L, const Node *n, Val i)
{
  Guard g;
  Val stop = L->frame->exits.stop;
  u32 open = buffers_open(L);
  bool guarded = stop.kind == V_IR;
  if (guarded && !guard_open(L, n->span, stop.ir, kid(n, 1), &g))
    return;
  lower_loop_body(L, kid(n, 1), n->name, n->at, i);
  L->b.span = n->span;
  buffers_close(L, open, NULL);
  if (guarded)
    guard_close(L, &g);
}

/* An iteration for each of n items, or (items NULL) of the numbers lo, lo + step, ... */
static void
lower_unrolled(Lower *L, const Node *n, u64 count, const Val *items, i64 lo, i64 step)
{
  u32 errors = diag_errors(L->c);
  Exits around = L->frame->exits, *e = &L->frame->exits;
  *e = exits_none();
  for (u64 t = 0; t < count && diag_errors(L->c) == errors && !lower_over_limit(L, n); t++, L->work += ITERATION_WORK) {
    lower_static_iteration(L, n, items ? items[t] : val_const(const_int((i64)((u64)lo + t * (u64)step)), n->at));
    e->skip = val_const(const_bool(false), n->span);
    if (val_is_true(e->stop))
      break;
  }
  if (val_is_false(e->returned))
    *e = around;
  else
    e->skip = e->stop = e->returned;
}

static void
lower_for_static(Lower *L, const Node *n, const Range *r)
{
  for (int i = 0; i < 3; i++)
    if (r->v[i].kind != V_CONST) {
      not_constant(L, r->v[i], "the range of an unrolled loop");
      return;
    }
  i64 lo = r->v[0].k.i, hi = r->v[1].k.i, step = r->v[2].k.i;
  u64 span = r->down ? (u64)lo - (u64)hi : (u64)hi - (u64)lo, by = r->down ? 0 - (u64)step : (u64)step;
  u64 trips = (r->down ? lo > hi : hi > lo) ? (span - 1) / by + 1 : 0;
  if (trips <= UNROLL_MAX) {
    lower_unrolled(L, n, trips, NULL, lo, step);
    return;
  }
  const char *why = arena_printf(L->a, "a loop unrolls at most %d times, not %llu", UNROLL_MAX, (unsigned long long)trips);
  Diag *d = ERR(L, n->span, E_LIMIT, why);
  note_constants(L, d, kid(n, 0)->span);
  diag_hint(L->c, d, "range(..., unroll=8) keeps a loop, whose body stands 8 times in it");
}

static void
not_a_range(Lower *L, const Node *n, Val v, const char *close)
{
  Diag *d = ERR(L, n->span, E_FOR);
  if (close)
    diag_hint(L->c, d, "did you mean '%s'?", close);
  else if (val_is_tile(v))
    diag_hint(L->c, d, "operators and functions work on all elements of a tile at once");
  else
    diag_hint(L->c, d, "write for i in range(0, n) { ... }");
}

/* for x in t: an iteration for each item of a tuple or list. */
static void
lower_for_items(Lower *L, const Node *n, const char *name)
{
  const Node *range = kid(n, 0);
  const char *close = diag_suggest(name, (const char *const[]){"range", "static_range"}, 2);
  Val t = close || range->kind == N_ERROR ? val_void(range->span) : lower_expr(L, range);
  if (val_is_list(t))
    lower_unrolled(L, n, t.list.n, t.list.v, 0, 0);
  else if (range->kind != N_ERROR && t.kind != V_POISON)
    not_a_range(L, range, t, close);
}

void
lower_for(Lower *L, Node *n)
{
  const Node *range = kid(n, 0), *callee = range->kind == N_CALL ? kid(range, 0) : NULL;
  const char *name = callee && callee->kind == N_NAME ? callee->name : "";
  if (callee && callee->kind == N_FIELD && ast_root(callee)->kind == N_NAME && !lower_is_known(L, ast_root(callee))) {
    name = lower_unknown_prefix(L, callee);
    if (!name)
      return;
  }
  bool is_static = !strcmp(name, "static_range");
  if (!is_static && strcmp(name, "range") != 0) {
    lower_for_items(L, n, name);
    return;
  }
  Range r = lower_range(L, range, name, is_static ? "lo hi? step?" : "lo hi? step? stages? unroll? hoist? flatten?");
  if (r.ok && is_static)
    lower_for_static(L, n, &r);
  if (!r.ok || is_static)
    return;
  Bounds b;
  if (!bounds_of(L, &r, range->span, &b) || !lower_may_nest(L, n->span))
    return;
  Loop l = loop_new(L, n);
  if (!l.may_leave)
    lower_for_range(L, n, &l, &r, &b);
  else
    lower_for_leaving(L, n, &l, &r, &b);
}

/* ---- while ---- */

/* Carried is whether the loop was stopped (own, NULL: it cannot be); then its condition is not asked for. */
static Value *
while_condition(Lower *L, const Node *n, Value *stopped)
{
  Val c;
  if (stopped)
    c = lower_guarded_condition(L, n, val_ir(ir_unary(&L->b, OP_NOT, stopped), n->span), kid(n, 0));
  else
    c = lower_condition(L, kid(n, 0));
  if (val_is_tile(c)) {
    diag_hint(L->c, ERR(L, c.span, E_CONDITION, val_str(L, c)), "reduce it first: any(c), or all(c)");
    c = val_poison(c.span);
  }
  if (val_is_true(c))
    ERR(L, c.span, E_ENDLESS);
  return c.kind == V_IR ? c.ir : ir_const_bits(&L->b, type_scalar(L->c, DT_I1), 0);
}

void
lower_while(Lower *L, Node *n)
{
  if (!lower_may_nest(L, n->span))
    return;
  Loop l = loop_new(L, n);
  L->b.span = n->span;
  Value *no = l.may_leave ? ir_const_bits(&L->b, type_scalar(L->c, DT_I1), 0) : NULL;
  u32 first = l.may_leave;
  Values carried = loop_carried(L, &l, first, &no);
  l.op = ir_while(&L->b, carried.len, carried.data);
  l.outside = L->b;
  loop_enter(L, &l, 0, first);
  Value *cond = while_condition(L, n, first ? l.op->regions[0]->args[0] : NULL);
  L->b.span = n->span;
  end_condition(L, l.op, cond);
  loop_enter(L, &l, 1, first);
  lower_loop_body(L, l.body, NULL, n->span, val_void(n->span));
  L->b.span = n->span;
  Value *stop = first ? val_value(L, L->frame->exits.stop) : NULL;
  loop_close(L, &l, first, &stop);
}

/* ---- leaving an iteration ---- */

/* A function in v captured what is known only at run time. */
static bool
holds_captures(Lower *L, Val v)
{
  for (u32 i = 0; val_is_many(v) && i < v.list.n; i++)
    if (holds_captures(L, v.list.v[i]))
      return true;
  return v.kind == V_FN && !val_is_fixed(L, v);
}

static void
note_return(Lower *L, const Node *n)
{
  Frame *f = L->frame;
  Val v = kid(n, 0) ? lower_expr(L, kid(n, 0)) : val_void(n->span);
  const char *why = kid(n, 0) && v.kind == V_VOID ? "this gives no value" : NULL;
  if (v.kind == V_BUFFER)
    why = "a shared buffer cannot be returned from inside a loop";
  else if (holds_captures(L, v))
    why = "an anonymous function that captured run-time values cannot be returned from inside a loop";
  else if (f->returns[v.kind != V_VOID] = true, f->returns[0] && f->returns[1])
    why = "not every way through this function returns a value";
  if (why && v.kind != V_POISON)
    ERR(L, n->span, E_RETURN, why);
  f->failed |= why || v.kind == V_POISON;
  f->exits.returned = val_const(const_bool(true), n->span);
  f->exits.result = why ? val_poison(n->span) : v;
}

void
lower_exit(Lower *L, const Node *n)
{
  Val yes = val_const(const_bool(true), n->span);
  if (!L->frame->loops) {
    ERR(L, n->span, E_BREAK, n->kind == N_BREAK ? "break" : "continue");
    return;
  }
  if (n->kind == N_RETURN)
    note_return(L, n);
  if (n->kind != N_CONTINUE)
    L->frame->exits.stop = yes;
  L->frame->exits.skip = yes;
}
