/* lower_stmt.c - statements. Variables are bindings whose Val changes; where ways meet, what was assigned becomes the
 * result of an `if` or is carried by a loop.
 *
 * An early return is structured by moving what follows into the arms: `if c { return a; } rest` becomes
 * `if c { return a; } else { rest }`. So a statement that may return is lowered with its continuation in hand, and the
 * function's result is the value of the outermost such `if`. An arm that may but need not return gets a copy of the
 * rest in every way through it; loops cannot be returned from. */
#include "sema.h"

typedef struct Cont Cont;
struct Cont { Node *const *stmts; u32 n; Scope *scope; const Cont *up; };

enum { UNROLL_MAX = 65536, TURN_WORK = 16 };    /* TURN_WORK: what a turn of an unrolled loop costs beyond its body */

static Val lower_stmts(Lower *L, Node *const *stmts, u32 n, const Cont *k, bool *returned);

static void
lower_block(Lower *L, Node *block)
{
  Scope s;
  bool returned;
  scope_push(L, &s);
  lower_stmts(L, block->kids, block->nkids, NULL, &returned);
  scope_pop(L);
}

/* ---- saving and restoring all variables ---- */

typedef struct Saved { Binding *b; Val val; } Saved;
typedef struct Snapshot {
  VEC(Saved) vars;
  VEC(Scope *) scopes;
  VEC(Binding *) lasts;
} Snapshot;

static Snapshot
snapshot_take(Lower *L)
{
  Snapshot s = {0};
  for (Scope *scope = L->frame->scope; scope; scope = scope->up) {
    vec_push(L->a, &s.scopes, scope);
    vec_push(L->a, &s.lasts, scope->last);
    for (Binding *b = scope->last; b; b = b->next)
      if (b->var)
        vec_push(L->a, &s.vars, ((Saved){b, b->val}));
  }
  return s;
}

static void
snapshot_restore(const Snapshot *s)
{
  for (u32 i = 0; i < s->vars.len; i++)
    s->vars.data[i].b->val = s->vars.data[i].val;
  for (u32 i = 0; i < s->scopes.len; i++)
    s->scopes.data[i]->last = s->lasts.data[i];
}

/* ---- declarations and assignments ---- */

static Val
declared_value(Lower *L, const Node *n)
{
  Val v = lower_expr(L, kid(n, 1));
  if (v.kind == V_VOID) {
    ERR(L, v.span, E_NOT_VALUE, arena_printf(L->a, "'%s'", n->name), "nothing");
    return val_poison(v.span);
  }
  return lower_annotated(L, v.span, v, kid(n, 0), arena_printf(L->a, "'%s'", n->name), n->at);
}

static void
lower_let(Lower *L, const Node *n)
{
  scope_add(L, n->name, n->at, declared_value(L, n));
}

static void
lower_lets(Lower *L, const Node *n)
{
  Val v = lower_expr(L, kid(n, 0));
  u32 want = n->nkids - 1;
  bool ok = (v.kind == V_TUPLE || v.kind == V_LIST) && v.list.n == want;
  if (!ok && v.kind != V_POISON)
    ERR(L, v.span, E_TUPLE, want, val_str(L, v));
  for (u32 i = 0; i < want; i++)
    scope_add(L, n->kids[i + 1]->name, n->kids[i + 1]->span, ok ? v.list.v[i] : val_poison(v.span));
}

static void
lower_var(Lower *L, const Node *n)
{
  Val v = var_value(L, declared_value(L, n), arena_printf(L->a, "'%s'", n->name));
  Binding *b = scope_add(L, n->name, n->at, v);
  b->var = true;
}

static Val
assign_to_what(Lower *L, const Node *target)
{
  const Binding *b = target->kind == N_NAME ? scope_find(L, target->name) : NULL;
  if (b) {
    Diag *d = ERR(L, target->span, E_ASSIGN, arena_printf(L->a, "'%s'", target->name));
    diag_note(L->c, d, b->span, "declared here; only a `var` can be assigned");
  } else if (target->kind == N_NAME) {
    Diag *d = ERR(L, target->span, E_ASSIGN, arena_printf(L->a, "'%s'", target->name));
    diag_note(L->c, d, target->span, "a variable is declared first: var %s = ...", target->name);
  } else if (target->kind != N_ERROR) {
    Diag *d = ERR(L, target->span, E_ASSIGN, "this");
    diag_note(L->c, d, target->span, "memory is written with store(p, v); a tile is made anew with where(c, a, b)");
  }
  return val_poison(target->span);
}

/* The value of x or x.a.b, where x is bound by b. */
static Val
part_of(Lower *L, const Node *target, const Binding *b)
{
  if (target->kind == N_NAME)
    return b->val;
  const Val *field = struct_field(L, part_of(L, kid(target, 0), b), target);
  return field ? *field : val_poison(target->span);
}

static void
put_part(Lower *L, const Node *target, Binding *b, Val v)
{
  if (target->kind == N_NAME)
    b->val = v;
  else
    put_part(L, kid(target, 0), b, struct_with(L, part_of(L, kid(target, 0), b), target, v));
}

static const char *
part_name(Lower *L, const Node *target)
{
  return target->kind == N_NAME ? target->name : arena_printf(L->a, "%s.%s", part_name(L, kid(target, 0)), target->name);
}

static void
lower_assign(Lower *L, const Node *n)
{
  const Node *target = kid(n, 0), *root = ast_root(target);
  Val v = lower_expr(L, kid(n, 1));
  Binding *b = root->kind == N_NAME ? scope_find(L, root->name) : NULL;
  if (!b || !b->var) {
    assign_to_what(L, root);
    return;
  }
  Val old = part_of(L, target, b);
  old.span = target->span;
  old.from = b->span;
  if (n->op != O_NONE)
    v = lower_binary(L, n->op, n->span, n->at, old, v);
  Val x = var_assign(L, kid(n, 1)->span, v, old, arena_printf(L->a, "'%s'", part_name(L, target)), b->span);
  if (x.kind == V_POISON)
    return;
  put_part(L, target, b, x);
  if (x.kind == V_IR && !x.ir->name)
    x.ir->name = target->name;
}

static void
lower_eval(Lower *L, const Node *n)
{
  const Node *e = kid(n, 0);
  Val v = lower_expr(L, e);
  if (e->kind != N_CALL && v.kind != V_POISON)
    diag(L->c, e->span, W_UNUSED);
}

/* ---- what loops and ifs change ---- */

typedef VEC(Binding *) Vars;

static void
add_assigned(Lower *L, Vars *vars, Node *body)
{
  const char *const *names;
  u32 n = body ? ast_assigned(L->a, body, &names) : 0;
  for (u32 i = 0; i < n; i++) {
    Binding *b = scope_find(L, names[i]);
    bool known = !b || !b->var || b->val.kind == V_POISON;
    for (u32 k = 0; !known && k < vars->len; k++)
      known = vars->data[k] == b;
    if (!known)
      vec_push(L->a, vars, b);
  }
}

/* The run-time values of all variables, part by part. */
static Values
vars_values(Lower *L, const Vars *vars)
{
  Values v = {0};
  vec_push(L->a, &v, NULL);
  v.len = 0;
  for (u32 i = 0; i < vars->len; i++)
    val_parts(L, vars->data[i]->val, &v);
  return v;
}

static void
vars_set(Lower *L, const Vars *vars, Value *const *values)
{
  for (u32 i = 0; i < vars->len; i++) {
    Binding *b = vars->data[i];
    b->val = val_with_parts(L, b->val, &values);
    if (b->val.kind == V_IR && !b->val.ir->name)
      b->val.ir->name = b->name;
  }
}

static void
lower_arm(Lower *L, Op *op, u32 arm, Node *body)
{
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[arm]);
  if (body && body->kind == N_BLOCK)
    lower_block(L, body);
  else if (body) {
    bool returned;
    lower_stmts(L, &body, 1, NULL, &returned);
  }
  L->b = saved;
}

static void
if_results(Lower *L, const Node *n, Op *op, const Vars *vars, const Values *then, const Values *els)
{
  Builder arms[2] = {builder_at_end(L->b.func, op->regions[0]), builder_at_end(L->b.func, op->regions[1])};
  Value **a = NEW_ARRAY(L->a, Value *, then->len + 1), **b = NEW_ARRAY(L->a, Value *, then->len + 1);
  Value **after = NEW_ARRAY(L->a, Value *, then->len + 1);
  u32 count = 0;
  for (u32 i = 0; i < then->len; i++) {
    after[i] = then->data[i];
    if (then->data[i] == els->data[i])
      continue;
    a[count] = then->data[i];
    b[count++] = els->data[i];
    after[i] = op_add_result(op, then->data[i]->type);
  }
  vars_set(L, vars, after);
  arms[0].span = arms[1].span = n->span;
  ir_yield(&arms[0], count, a);
  ir_yield(&arms[1], count, b);
}

static void
lower_if(Lower *L, const Node *n)
{
  Val c = lower_condition(L, kid(n, 0));
  if (val_is_tile(c)) {
    diag_note(L->c, ERR(L, c.span, E_CONDITION, val_str(L, c)), c.span, "a tile chooses element by element: where(c, a, b)");
    c = val_poison(c.span);
  }
  if (c.kind == V_CONST) {
    Node *arm = kid(n, c.k.i ? 1 : 2);
    bool returned;
    if (arm && arm->kind == N_BLOCK)
      lower_block(L, arm);
    else if (arm)
      lower_stmts(L, &arm, 1, NULL, &returned);
    return;
  }
  if (!lower_may_nest(L, n->span))
    return;
  L->b.span = n->span;
  Value *cond = c.kind == V_IR ? c.ir : ir_const_bits(&L->b, type_scalar(L->c, DT_I1), 1);
  Vars vars = {0};
  add_assigned(L, &vars, kid(n, 1));
  add_assigned(L, &vars, kid(n, 2));
  Values before = vars_values(L, &vars);
  Op *op = ir_if(&L->b, cond, 0, NULL);
  lower_arm(L, op, 0, kid(n, 1));
  Values then = vars_values(L, &vars);
  vars_set(L, &vars, before.data);
  lower_arm(L, op, 1, kid(n, 2));
  Values els = vars_values(L, &vars);
  if_results(L, n, op, &vars, &then, &els);
}

/* ---- loops ---- */

typedef struct Range { Val v[3]; i64 stages, unroll; bool ok; } Range;

static Range
lower_range(Lower *L, const Node *n, const char *name, const char *params)
{
  Call call;
  Range r = {.ok = false};
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
  if (r.ok && r.v[2].kind == V_CONST && r.v[2].k.i <= 0) {
    ERR(L, r.v[2].span, E_STEP, (long long)r.v[2].k.i);
    r.ok = false;
  }
  for (u32 i = 3; i < 5 && r.ok; i++)
    if (call.given[i])
      r.ok = call_int(L, &call, i, i == 3 ? "stages" : "unroll", i == 3 ? &r.stages : &r.unroll);
  if (r.ok && ((call.given[3] && r.stages < 1) || (call.given[4] && r.unroll < 1) || r.stages > 64 || r.unroll > 1024)) {
    ERR(L, n->span, E_ARGUMENTS, name, "stages is from 1 to 64, unroll from 1 to 1024");
    r.ok = false;
  }
  return r;
}

static DType
range_dtype(Lower *L, const Range *r)
{
  int num = num_promote(num_promote(val_num(r->v[0]), val_num(r->v[1])), val_num(r->v[2]));
  DType dt = num_dtype(L, num, NULL);
  for (int i = 0; i < 3; i++)
    if (num == NUM_INT && !const_fits(r->v[i].k, DT_I32))
      dt = DT_I64;
  return dtype_bits(dt) < 32 ? DT_I32 : dt;
}

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

static void
lower_for_range(Lower *L, const Node *n, const Range *r)
{
  DType dt = range_dtype(L, r);
  Value *b[3];
  for (int i = 0; i < 3; i++)
    if (!(b[i] = val_as(L, r->v[i], dt, NULL)))
      return;
  if (!lower_may_nest(L, n->span))
    return;
  Vars vars = {0};
  add_assigned(L, &vars, kid(n, 1));
  L->b.span = n->span;
  Values carried = vars_values(L, &vars);
  Op *op = ir_for(&L->b, b[0], b[1], b[2], carried.len, carried.data);
  if (r->stages)
    op_set_int(op, AT_STAGES, r->stages);
  if (r->unroll)
    op_set_int(op, AT_UNROLL, r->unroll);
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[0]);
  vars_set(L, &vars, op->regions[0]->args + 1);
  lower_loop_body(L, kid(n, 1), n->name, n->at, val_ir(op->regions[0]->args[0], n->at));
  L->b.span = n->span;
  carried = vars_values(L, &vars);
  ir_yield(&L->b, carried.len, carried.data);
  L->b = saved;
  vars_set(L, &vars, op->results);
}

static void
lower_for_static(Lower *L, const Node *n, const Range *r)
{
  for (int i = 0; i < 3; i++)
    if (r->v[i].kind != V_CONST) {
      ERR(L, r->v[i].span, E_NOT_CONST, "the range of an unrolled loop");
      return;
    }
  i64 lo = r->v[0].k.i, hi = r->v[1].k.i, step = r->v[2].k.i;
  u64 trips = hi > lo ? ((u64)hi - (u64)lo - 1) / (u64)step + 1 : 0;
  if (trips > UNROLL_MAX) {
    ERR(L, n->span, E_LIMIT, "a loop unrolls at most 65536 times");
    return;
  }
  u32 errors = diag_errors(L->c);
  for (u64 t = 0; t < trips && diag_errors(L->c) == errors && !lower_over_limit(L, n); t++, L->work += TURN_WORK) {
    u32 open = buffers_open(L);
    lower_loop_body(L, kid(n, 1), n->name, n->at, val_const(const_int(lo + (i64)(t * (u64)step)), n->at));
    L->b.span = n->span;
    buffers_close(L, open, NULL);
  }
}

static void
lower_for(Lower *L, const Node *n)
{
  const Node *range = kid(n, 0), *callee = range->kind == N_CALL ? kid(range, 0) : NULL;
  const char *name = callee && callee->kind == N_NAME ? callee->name : "";
  bool is_static = !strcmp(name, "static_range");
  if (!is_static && strcmp(name, "range") != 0) {
    if (range->kind != N_ERROR)
      ERR(L, range->span, E_FOR);
    return;
  }
  Range r = lower_range(L, range, name, is_static ? "lo hi? step?" : "lo hi? step? stages? unroll?");
  if (!r.ok)
    return;
  if (is_static)
    lower_for_static(L, n, &r);
  else
    lower_for_range(L, n, &r);
}

static Value *
while_condition(Lower *L, const Node *n)
{
  Val c = lower_condition(L, kid(n, 0));
  if (val_is_tile(c)) {
    diag_note(L->c, ERR(L, c.span, E_CONDITION, val_str(L, c)), c.span, "reduce it first: max(c, axis=0)");
    return NULL;
  }
  if (c.kind == V_CONST && c.k.i)
    ERR(L, c.span, E_ENDLESS);
  return c.kind == V_IR ? c.ir : NULL;
}

static void
lower_while(Lower *L, const Node *n)
{
  if (!lower_may_nest(L, n->span))
    return;
  Vars vars = {0};
  add_assigned(L, &vars, kid(n, 1));
  L->b.span = n->span;
  Values carried = vars_values(L, &vars);
  Op *op = ir_while(&L->b, carried.len, carried.data);
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[0]);
  vars_set(L, &vars, op->regions[0]->args);
  Value *cond = while_condition(L, n);
  L->b.span = n->span;
  Value **xs = NEW_ARRAY(L->a, Value *, carried.len + 1);
  xs[0] = cond ? cond : ir_const_bits(&L->b, type_scalar(L->c, DT_I1), 0);
  for (u32 i = 0; i < carried.len; i++)
    xs[i + 1] = op->regions[0]->args[i];
  op_create(&L->b, OP_CONDITION, carried.len + 1, xs, 0, NULL, 0);
  L->b = builder_at_end(saved.func, op->regions[1]);
  vars_set(L, &vars, op->regions[1]->args);
  lower_loop_body(L, kid(n, 1), NULL, n->span, val_void(n->span));
  L->b.span = n->span;
  carried = vars_values(L, &vars);
  ir_yield(&L->b, carried.len, carried.data);
  L->b = saved;
  vars_set(L, &vars, op->results);
}

/* ---- returning ---- */

static Val
lower_rest(Lower *L, const Cont *k, bool *returned)
{
  if (!k)
    return *returned = false, val_void((Span){0, 0});
  Scope *saved = L->frame->scope;
  L->frame->scope = k->scope;
  Val v = lower_stmts(L, k->stmts, k->n, k->up, returned);
  L->frame->scope = saved;
  return v;
}

static Val
lower_return(Lower *L, const Node *n, bool *returned)
{
  Val v = kid(n, 0) ? lower_expr(L, kid(n, 0)) : val_void(n->span);
  *returned = true;
  if (L->frame->loops) {
    L->frame->failed = true;
    diag_note(L->c, ERR(L, n->span, E_RETURN, "a loop cannot be returned from"), n->span,
              "carry the result in a `var` and return it after the loop");
    return val_poison(n->span);
  }
  return v;
}

static Val
lower_arm_or_rest(Lower *L, Node *arm, const Cont *k, bool *returned)
{
  if (!arm)
    return lower_rest(L, k, returned);
  if (arm->kind == N_IF)
    return lower_stmts(L, &arm, 1, k, returned);
  Scope s;
  scope_push(L, &s);
  Val v = lower_stmts(L, arm->kids, arm->nkids, k, returned);
  scope_pop(L);
  return v;
}

static Val
lower_returning_if(Lower *L, const Node *n, const Cont *k, bool *returned)
{
  Val c = lower_condition(L, kid(n, 0)), v[2];
  bool done[2];
  if (c.kind == V_CONST)
    return lower_arm_or_rest(L, kid(n, c.k.i ? 1 : 2), k, returned);
  if (c.kind != V_IR || val_is_tile(c)) {
    if (c.kind == V_IR)
      ERR(L, c.span, E_CONDITION, val_str(L, c));
    lower_arm_or_rest(L, kid(n, 2), k, returned);
    return *returned = true, val_poison(n->span);
  }
  if (!lower_may_nest(L, n->span))
    return *returned = true, val_poison(n->span);
  L->b.span = n->span;
  Op *op = ir_if(&L->b, c.ir, 0, NULL);
  Builder saved = L->b;
  Snapshot before = snapshot_take(L);
  for (u32 i = 0; i < 2; i++) {
    L->b = builder_at_end(saved.func, op->regions[i]);
    v[i] = lower_arm_or_rest(L, kid(n, i + 1), k, &done[i]);
    snapshot_restore(&before);
  }
  L->b = saved;
  *returned = true;
  if (done[0] != done[1] && v[0].kind != V_POISON && v[1].kind != V_POISON &&
      (v[0].kind != V_VOID || v[1].kind != V_VOID)) {
    ERR(L, n->span, E_RETURN, "not every way through this function returns a value");
    v[0] = val_poison(n->span);
  }
  return lower_join(L, n->span, op, v[0], v[1]);
}

static Val
lower_returning(Lower *L, Node *n, const Cont *k, bool *returned)
{
  if (n->kind == N_RETURN)
    return lower_return(L, n, returned);
  if (n->kind == N_IF)
    return lower_returning_if(L, n, k, returned);
  Scope s;
  scope_push(L, &s);
  Val v = lower_stmts(L, n->kids, n->nkids, k, returned);
  scope_pop(L);
  return v;
}

/* ---- all statements ---- */

static void
lower_scope(Lower *L, Node *n)
{
  u32 open = buffers_open(L);
  lower_block(L, n);
  L->b.span = (Span){n->span.hi - 1, n->span.hi};
  buffers_close(L, open, NULL);
}

static void
lower_stmt(Lower *L, Node *n)
{
  switch (n->kind) {
  case N_BLOCK: lower_scope(L, n); break;
  case N_LET: lower_let(L, n); break;
  case N_LETS: lower_lets(L, n); break;
  case N_VAR: lower_var(L, n); break;
  case N_ASSIGN: lower_assign(L, n); break;
  case N_IF: lower_if(L, n); break;
  case N_FOR: lower_for(L, n); break;
  case N_WHILE: lower_while(L, n); break;
  case N_EVAL: lower_eval(L, n); break;
  case N_BREAK: case N_CONTINUE:
    ERR(L, n->span, E_BREAK, n->kind == N_BREAK ? "break" : "continue");
    break;
  default: break;
  }
}

static bool
is_continued(const Node *n)
{
  return n->kind == N_RETURN || ((n->kind == N_IF || n->kind == N_BLOCK) && ast_may_return(n));
}

/* The statements, then the continuation k. */
static Val
lower_stmts(Lower *L, Node *const *stmts, u32 n, const Cont *k, bool *returned)
{
  Val v = val_void((Span){0, 0});
  L->depth++;
  for (u32 i = 0; i < n; i++) {
    if (L->stopped)
      break;
    if (is_continued(stmts[i])) {
      Cont rest = {stmts + i + 1, n - i - 1, L->frame->scope, k};
      if (i + 1 < n && ast_must_return(stmts[i]))
        diag(L->c, stmts[i + 1]->span, W_UNREACHABLE);
      v = lower_returning(L, stmts[i], &rest, returned);
      L->depth--;
      return v;
    }
    L->work++;
    lower_stmt(L, stmts[i]);
  }
  *returned = false;
  if (k && !L->stopped)
    v = lower_rest(L, k, returned);
  L->depth--;
  return L->stopped ? val_poison(v.span) : v;
}

/* The statements of a function or kernel body; its result. returned: a return statement ended it. */
Val
lower_body(Lower *L, Node *body, bool *returned)
{
  return lower_stmts(L, body->kids, body->nkids, NULL, returned);
}
