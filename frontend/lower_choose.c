/* lower_choose.c - where two ways meet: ?:, && and ||, and the joining of an `if`'s arms.
 *
 * Both sides are lowered into the regions of an `if`. If what they hold is cheap and without effect, it moves out and the
 * `if` becomes a select (or plain logic); otherwise the side not wanted does not run, so `i < n && load(p + i) > 0` reads
 * only what it may. Tiles choose element by element and always compute both sides. */
#include "sema.h"

/* A truth value (scalar or tile), or poison. */
Val
lower_condition(Lower *L, const Node *n)
{
  Val v = lower_expr(L, n);
  if (v.kind == V_POISON)
    return v;
  if (val_is_data(v) && !val_is_ptr(v) && val_num(v) == DT_I1)
    return v;
  Diag *d = ERR(L, n->span, E_CONDITION, val_str(L, v));
  note_source(L, d, v);
  if (val_is_data(v) && !val_is_tile(v))
    diag_hint(L->c, d, "compare with zero: x != 0");
  return val_poison(n->span);
}

typedef struct Join {
  Lower *L;
  Span at;
  Builder arms[2];
  Values values[2];
} Join;

static bool
join_types(Join *j, Val a, Val b, DType *dt)
{
  bool pa = val_is_ptr(a), pb = val_is_ptr(b);
  if (pa || pb)
    return pa && pb && type_elem(j->L->c, a.ir->type) == type_elem(j->L->c, b.ir->type);
  int num = num_promote(val_num(a), val_num(b));
  const Const *k = a.kind == V_CONST && (b.kind != V_CONST || !const_fits(a.k, DT_I32)) ? &a.k : b.kind == V_CONST ? &b.k : NULL;
  *dt = num_dtype(j->L, num, num == NUM_INT ? k : NULL);
  return true;
}

/* One pair of data under a common type, each converted in its own arm. */
static Val
join_data(Join *j, Val a, Val b)
{
  Lower *L = j->L;
  DType dt = DT_I32;
  Value *v[2] = {NULL, NULL};
  if (!join_types(j, a, b, &dt)) {
    note_values(L, ERR(L, j->at, E_ARMS, val_str(L, a), val_str(L, b)), 2, (Val[]){a, b});
    return val_poison(j->at);
  }
  Builder saved = L->b;
  for (int i = 0; i < 2; i++) {
    L->b = j->arms[i];
    Val x = i ? b : a;
    v[i] = val_is_ptr(x) ? x.ir : val_as(L, x, dt, val_tile_type(i ? a : b));
  }
  const Type *ta = v[0] ? v[0]->type : NULL, *tb = v[1] ? v[1]->type : NULL;
  bool ok = ta && tb;
  if (ok && !type_same_shape(ta, tb)) {
    Value *probe[2] = {v[0], v[1]};
    ok = !type_is_tile(ta) || !type_is_tile(tb) || ta->rank == tb->rank;
    for (u32 i = 0; ok && type_is_tile(ta) && type_is_tile(tb) && i < ta->rank; i++)
      ok = ta->shape[i] == tb->shape[i];
    if (!ok)
      note_values(L, ERR(L, j->at, E_ARMS, type_str(L->c, ta), type_str(L->c, tb)), 2, (Val[]){a, b});
    for (int i = 0; ok && i < 2; i++) {
      L->b = j->arms[i];
      L->b.span = j->at;
      v[i] = value_broadcast(L, probe[i], type_is_tile(ta) ? ta : tb);
    }
  }
  L->b = saved;
  if (!ok)
    return val_poison(j->at);
  vec_push(L->a, &j->values[0], v[0]);
  vec_push(L->a, &j->values[1], v[1]);
  return val_ir(v[0], j->at);
}

/* The joined value; run-time parts stand for the if's results by position in values[0]. */
static Val
join(Join *j, Val a, Val b)
{
  if (a.kind == V_POISON || b.kind == V_POISON)
    return val_poison(j->at);
  if (val_same(a, b))
    return a;
  if (val_is_data(a) && val_is_data(b))
    return join_data(j, a, b);
  if (a.kind != b.kind || !val_is_many(a) || a.list.n != b.list.n || a.list.of != b.list.of) {
    note_values(j->L, ERR(j->L, j->at, E_ARMS, val_str(j->L, a), val_str(j->L, b)), 2, (Val[]){a, b});
    return val_poison(j->at);
  }
  Val r = a;
  r.list.v = NEW_ARRAY(j->L->a, Val, a.list.n + 1);
  for (u32 i = 0; i < a.list.n; i++)
    r.list.v[i] = join(j, a.list.v[i], b.list.v[i]);
  return r;
}

/* Replace the stand-ins by the results. */
static void
join_resolve(const Join *j, Val *v, Value *const *results, u32 *next)
{
  if (v->kind == V_IR)
    v->ir = results[(*next)++];
  if (val_is_many(*v))
    for (u32 i = 0; i < v->list.n; i++)
      join_resolve(j, &v->list.v[i], results, next);
}

static void
join_finish(Join *j, Op *op, bool select, Value **results)
{
  Lower *L = j->L;
  u32 n = j->values[0].len;
  L->b.span = j->at;
  if (!select) {
    for (int i = 0; i < 2; i++) {
      j->arms[i].span = j->at;
      ir_yield(&j->arms[i], n, j->values[i].data);
    }
    for (u32 i = 0; i < n; i++)
      results[i] = op_add_result(op, j->values[0].data[i]->type);
    return;
  }
  region_hoist(op, 0);
  region_hoist(op, 1);
  Value *cond = op_operand(op, 0);
  op_remove(op);
  for (u32 i = 0; i < n; i++) {
    Value *c = value_broadcast(L, cond, j->values[0].data[i]->type);
    results[i] = ir_select(&L->b, c, j->values[0].data[i], j->values[1].data[i]);
  }
}

static Val
join_arms(Lower *L, Span at, Op *op, Val va, Val vb, bool may_select)
{
  Func *f = L->b.func;
  Join j = {.L = L, .at = at, .arms = {builder_at_end(f, op->regions[0]), builder_at_end(f, op->regions[1])}};
  Val v = join(&j, va, vb);
  Value **results = NEW_ARRAY(L->a, Value *, j.values[0].len + 1);
  bool select = may_select && region_is_speculatable(op->regions[0]) && region_is_speculatable(op->regions[1]);
  join_finish(&j, op, select, results);
  u32 next = 0;
  if (v.kind != V_POISON && j.values[0].len)
    join_resolve(&j, &v, results, &next);
  return v;
}

/* End the two open arms of `if` op with yields of va and vb under their common type; gives the result. */
Val
lower_join(Lower *L, Span at, Op *op, Val va, Val vb)
{
  return join_arms(L, at, op, va, vb, false);
}

Val
lower_join_parts(Lower *L, Span at, Op *op, Val va, Val vb, Values parts[2])
{
  Func *f = L->b.func;
  Join j = {.L = L, .at = at, .arms = {builder_at_end(f, op->regions[0]), builder_at_end(f, op->regions[1])}};
  Val v = join(&j, va, vb);
  parts[0] = j.values[0];
  parts[1] = j.values[1];
  return v;
}

static Val
lower_in_arm(Lower *L, Op *op, u32 arm, const Node *n)
{
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[arm]);
  Val v = lower_expr(L, n);
  L->b = saved;
  return v;
}

/* c, a, b of one shape. */
static Val
select_tile(Lower *L, Span span, Val c, Val a, Val b)
{
  Call call = {.span = span, .name = "where", .args = {c, a, b}, .given = {true, true, true}, .nargs = 3};
  return builtin_where(L, &call);
}

/* c ? a : b. A scalar condition known at compile time takes its side alone; a tile chooses element by element. */
Val
lower_cond(Lower *L, const Node *n)
{
  Val c = lower_condition(L, kid(n, 0));
  if (c.kind == V_CONST)
    return lower_expr(L, kid(n, c.k.i ? 1 : 2));
  if (c.kind == V_POISON || val_is_tile(c)) {
    Val a = lower_expr(L, kid(n, 1)), b = lower_expr(L, kid(n, 2));
    return c.kind == V_POISON ? c : select_tile(L, n->span, c, a, b);
  }
  if (!lower_may_nest(L, n->span))
    return val_poison(n->span);
  L->b.span = n->span;
  Op *op = ir_if(&L->b, c.ir, 0, NULL);
  Val a = lower_in_arm(L, op, 0, kid(n, 1));
  Val b = lower_in_arm(L, op, 1, kid(n, 2));
  if ((!val_is_many(a) && !val_need_data(L, a, "'?:'")) || (!val_is_many(b) && !val_need_data(L, b, "'?:'")))
    a = val_poison(n->span);
  return join_arms(L, n->span, op, a, b, true);
}

/* The right side (node right) of a scalar && or || may not run unless the left side asks for it: an `if`, or, when the right
 * side has no effect, plain logic. */
static Val
logic_scalar(Lower *L, const Node *n, Oper oper, Val a, const Node *right)
{
  if (!lower_may_nest(L, n->span))
    return val_poison(n->span);
  L->b.span = n->span;
  Op *op = ir_if(&L->b, a.ir, 0, NULL);
  u32 arm = oper == O_LOR;
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[arm]);
  Val b = lower_condition(L, right);
  L->b = saved;
  if (b.kind == V_IR && region_is_speculatable(op->regions[arm])) {
    region_hoist(op, arm);
    op_remove(op);
    return lower_binary(L, arm ? O_OR : O_AND, n->span, n->at, a, b);
  }
  if (b.kind == V_CONST) {
    op_remove(op);
    return (b.k.i != 0) == arm ? b : a;
  }
  Val other = val_const(const_bool(arm), n->span);
  return join_arms(L, n->span, op, arm ? other : b, arm ? b : other, true);
}

Val
lower_guarded_condition(Lower *L, const Node *n, Val a, const Node *c)
{
  return logic_scalar(L, n, O_LAND, a, c);
}

/* a && b, a || b. */
Val
lower_logic(Lower *L, const Node *n)
{
  Val a = lower_condition(L, kid(n, 0));
  if (a.kind == V_CONST && (a.k.i != 0) == (n->op == O_LOR))
    return a;
  if (a.kind == V_IR && !val_is_tile(a))
    return logic_scalar(L, n, n->op, a, kid(n, 1));
  Val b = lower_condition(L, kid(n, 1));
  if (a.kind == V_POISON || b.kind == V_POISON)
    return val_poison(n->span);
  return a.kind == V_CONST ? b : lower_binary(L, n->op == O_LAND ? O_AND : O_OR, n->span, n->at, a, b);
}
