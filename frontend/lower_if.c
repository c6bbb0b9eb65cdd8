/* lower_if.c - what loops and ifs change, and the `if` statement: variables assigned in an arm, and how an iteration of a loop
 * was left (flow.h), become results of the IR's `if`. */
#include "flow.h"

/* ---- variables ---- */

void
vars_assigned(Lower *L, Vars *vars, Node *body)
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

Values
vars_values(Lower *L, const Vars *vars)
{
  Values v = {0};
  vec_push(L->a, &v, NULL);
  v.len = 0;
  for (u32 i = 0; i < vars->len; i++)
    val_parts(L, vars->data[i]->val, &v);
  return v;
}

void
vars_set(Lower *L, const Vars *vars, Value *const *values)
{
  for (u32 i = 0; i < vars->len; i++) {
    Binding *b = vars->data[i];
    b->val = val_with_parts(L, b->val, &values);
    if (b->val.kind == V_IR && !b->val.ir->name)
      b->val.ir->name = b->name;
  }
}

Exits
exits_none(void)
{
  Val no = val_const(const_bool(false), (Span){0, 0});
  return (Exits){no, no, no, val_void((Span){0, 0})};
}

static State
state_take(Lower *L, const Vars *vars)
{
  return (State){vars_values(L, vars), L->frame->exits};
}

static void
state_put(Lower *L, const Vars *vars, const State *s)
{
  vars_set(L, vars, s->vars.data);
  L->frame->exits = s->exits;
}

/* ---- where two arms meet ---- */

typedef struct Merge {
  Lower *L;
  Op *op;                 /* the `if` */
  Values v[2];            /* what the arms yield */
  Value *truth[2][2];     /* constants made in the arms */
  Value *inverse;         /* of the condition */
} Merge;

static Value *
merge_value(Merge *m, Value *a, Value *b)
{
  if (a == b)
    return a;
  for (u32 i = 0; i < m->v[0].len; i++)
    if (m->v[0].data[i] == a && m->v[1].data[i] == b)
      return m->op->results[i];
  vec_push(m->L->a, &m->v[0], a);
  vec_push(m->L->a, &m->v[1], b);
  return op_add_result(m->op, a->type);
}

static Value *
truth_in_arm(Merge *m, u32 arm, Val v)
{
  if (v.kind == V_IR)
    return v.ir;
  Value **made = &m->truth[arm][v.k.i != 0];
  if (!*made) {
    Builder b = builder_at_end(m->L->b.func, m->op->regions[arm]);
    b.span = m->op->span;
    *made = ir_const_bits(&b, type_scalar(m->L->c, DT_I1), v.k.i != 0);
  }
  return *made;
}

static Val
merge_truth(Merge *m, Val a, Val b)
{
  Lower *L = m->L;
  if (a.kind != V_CONST || b.kind != V_CONST)
    return val_ir(merge_value(m, truth_in_arm(m, 0, a), truth_in_arm(m, 1, b)), m->op->span);
  if (a.k.i == b.k.i)
    return a;
  Value *cond = op_operand(m->op, 0);
  if (!a.k.i && !m->inverse)
    m->inverse = ir_unary(&L->b, OP_NOT, cond);
  return val_ir(a.k.i ? cond : m->inverse, m->op->span);
}

/* What a return gave, if there was one: an arm without one gives zeros. */
static Val
merge_result(Merge *m, Val a, Val b)
{
  Lower *L = m->L;
  Val v[2] = {a, b};
  Builder saved = L->b;
  if (a.kind == V_VOID && b.kind == V_VOID)
    return a;
  for (u32 i = 0; i < 2; i++)
    if (v[i].kind == V_VOID) {
      L->b = builder_at_end(saved.func, m->op->regions[i]);
      L->b.span = m->op->span;
      v[i] = val_zeros(L, v[!i]);
    }
  L->b = saved;
  Values parts[2] = {0}, results = {0};
  Val r = lower_join_parts(L, m->op->span, m->op, v[0], v[1], parts);
  vec_push(L->a, &results, NULL);
  for (u32 i = 0; i < parts[0].len; i++) {
    results.data[results.len - 1] = merge_value(m, parts[0].data[i], parts[1].data[i]);
    vec_push(L->a, &results, NULL);
  }
  Value *const *next = results.data;
  return val_with_parts(L, r, &next);
}

/* End both arms of op; s is how each of them ended. */
static void
states_merge(Lower *L, Op *op, const Vars *vars, const State s[2])
{
  Merge m = {.L = L, .op = op};
  Value **after = NEW_ARRAY(L->a, Value *, s[0].vars.len + 1);
  const Exits *a = &s[0].exits, *b = &s[1].exits;
  L->b.span = op->span;
  for (u32 i = 0; i < s[0].vars.len; i++)
    after[i] = merge_value(&m, s[0].vars.data[i], s[1].vars.data[i]);
  vars_set(L, vars, after);
  Exits *e = &L->frame->exits;
  e->skip = merge_truth(&m, a->skip, b->skip);
  e->stop = merge_truth(&m, a->stop, b->stop);
  e->returned = merge_truth(&m, a->returned, b->returned);
  e->result = merge_result(&m, a->result, b->result);
  for (u32 i = 0; i < 2; i++) {
    Builder arm = builder_at_end(L->b.func, op->regions[i]);
    arm.span = op->span;
    ir_yield(&arm, m.v[i].len, m.v[i].data);
  }
}

/* Zeros of the types of like's run-time parts. */
Val
val_zeros(Lower *L, Val like)
{
  Values parts = {0}, zeros = {0};
  val_parts(L, like, &parts);
  vec_push(L->a, &zeros, NULL);
  for (u32 i = 0; i < parts.len; i++) {
    const Type *t = parts.data[i]->type, *word = type_scalar(L->c, DT_I64);
    bool ptr = type_is_ptr(t);
    if (ptr && type_is_tile(t))
      word = type_tile(L->c, word, t->rank, t->shape, NULL);
    Value *zero = ir_const_bits(&L->b, ptr ? word : t, 0);
    zeros.data[zeros.len - 1] = ptr ? ir_bitcast(&L->b, zero, type_elem(L->c, t)) : zero;
    vec_push(L->a, &zeros, NULL);
  }
  Value *const *next = zeros.data;
  return val_with_parts(L, like, &next);
}

/* ---- what runs only if the iteration goes on ---- */

/* In the arm that does not run what follows, cond holds, and so does every note that is the same value. */
static Val
known_true(Val v, const Value *cond)
{
  return v.kind == V_IR && v.ir == cond ? val_const(const_bool(true), v.span) : v;
}

/* False: too deep, reported; nothing is to be lowered then, nor the guard closed. */
bool
guard_open(Lower *L, Span at, Value *cond, Node *body, Guard *g)
{
  if (!lower_may_nest(L, at))
    return false;
  *g = (Guard){.at = at};
  vars_assigned(L, &g->vars, body);
  g->passed = state_take(L, &g->vars);
  Exits *e = &g->passed.exits;
  e->skip = val_const(const_bool(true), at);
  e->stop = known_true(e->stop, cond);
  e->returned = known_true(e->returned, cond);
  L->b.span = at;
  g->op = ir_if(&L->b, cond, 0, NULL);
  g->outside = L->b;
  L->b = builder_at_end(L->b.func, g->op->regions[1]);
  L->frame->exits = exits_none();
  return true;
}

/* A note that what was guarded did not make stays what it was: it implies the condition. */
void
guard_close(Lower *L, Guard *g)
{
  State s[2] = {g->passed, state_take(L, &g->vars)};
  Val stop = s[0].exits.stop, returned = s[0].exits.returned;
  bool kept[2] = {val_is_false(s[1].exits.stop), val_is_false(s[1].exits.returned)};
  if (kept[0])
    s[0].exits.stop = s[1].exits.stop;
  if (kept[1])
    s[0].exits.returned = s[1].exits.returned;
  L->b = g->outside;
  states_merge(L, g->op, &g->vars, s);
  Val held = val_ir(op_operand(g->op, 0), g->at);
  if (kept[0])
    L->frame->exits.stop = val_is_true(stop) ? held : stop;
  if (kept[1])
    L->frame->exits.returned = val_is_true(returned) ? held : returned;
}

/* The statements of rest unless the iteration was left. */
void
lower_after(Lower *L, Node *rest)
{
  Val skip = L->frame->exits.skip;
  Guard g;
  if (!rest || val_is_true(skip))
    return;
  if (skip.kind != V_IR) {
    lower_list(L, rest->kids, rest->nkids);
  } else if (guard_open(L, rest->span, skip.ir, rest, &g)) {
    lower_list(L, rest->kids, rest->nkids);
    guard_close(L, &g);
  }
}

/* ---- the statement ---- */

static void
lower_arm(Lower *L, Node *body)
{
  if (body && body->kind == N_BLOCK)
    lower_block(L, body);
  else if (body)
    lower_list(L, &body, 1);
}

static Val
if_condition(Lower *L, const Node *n)
{
  Val c = lower_condition(L, kid(n, 0));
  if (!val_is_tile(c))
    return c;
  diag_hint(L->c, ERR(L, c.span, E_CONDITION, val_str(L, c)), "a tile chooses element by element: where(c, a, b)");
  return val_poison(c.span);
}

/* The arm that rest goes into, as the other one never reaches it; 2: behind the `if`. */
static u32
arm_of_rest(const Lower *L, const Node *n)
{
  if (!L->frame->loops)
    return 2;
  bool leaves[2] = {ast_must_exit(kid(n, 1)), kid(n, 2) && ast_must_exit(kid(n, 2))};
  return leaves[0] == leaves[1] ? 2 : leaves[0];
}

void
lower_if(Lower *L, Node *n, Node *rest)
{
  Val c = if_condition(L, n);
  if (c.kind == V_CONST) {
    lower_arm(L, kid(n, c.k.i ? 1 : 2));
    lower_after(L, rest);
    return;
  }
  L->frame->failed |= c.kind == V_POISON && ast_may_return(n);
  if (!lower_may_nest(L, n->span))
    return;
  u32 with_rest = rest ? arm_of_rest(L, n) : 2;
  L->b.span = n->span;
  Value *cond = c.kind == V_IR ? c.ir : ir_const_bits(&L->b, type_scalar(L->c, DT_I1), 1);
  Vars vars = {0};
  for (u32 i = 0; i < 2; i++)
    vars_assigned(L, &vars, kid(n, i + 1));
  if (with_rest < 2)
    vars_assigned(L, &vars, rest);
  State before = state_take(L, &vars), s[2];
  Op *op = ir_if(&L->b, cond, 0, NULL);
  Builder saved = L->b;
  for (u32 i = 0; i < 2; i++) {
    state_put(L, &vars, &before);
    L->b = builder_at_end(saved.func, op->regions[i]);
    lower_arm(L, kid(n, i + 1));
    if (with_rest == i)
      lower_after(L, rest);
    s[i] = state_take(L, &vars);
  }
  L->b = saved;
  states_merge(L, op, &vars, s);
  if (with_rest == 2)
    lower_after(L, rest);
}
