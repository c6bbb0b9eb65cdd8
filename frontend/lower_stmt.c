/* lower_stmt.c - statements. Variables are bindings whose Val changes; where ways meet, what was assigned becomes the
 * result of an `if` or is carried by a loop.
 *
 * An early return is structured by moving what follows into the arms: `if c { return a; } rest` becomes
 * `if c { return a; } else { rest }`. So a statement that may return is lowered with its continuation in hand, and the
 * function's result is the value of the outermost such `if`. An arm that may but need not return gets a copy of the
 * rest in every way through it. A loop that returned is such an `if` too; inside loops see flow.h. */
#include "flow.h"

typedef struct Cont Cont;
struct Cont { Node *const *stmts; u32 n; Scope *scope; const Cont *up; };

static Val lower_stmts(Lower *L, Node *const *stmts, u32 n, const Cont *k, bool *returned);
static void lower_stmt(Lower *L, Node *n);

/* Statements that give no value. */
void
lower_list(Lower *L, Node *const *stmts, u32 n)
{
  bool returned;
  lower_stmts(L, stmts, n, NULL, &returned);
}

void
lower_block(Lower *L, Node *block)
{
  Scope s;
  scope_push(L, &s);
  lower_list(L, block->kids, block->nkids);
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
snapshot_restore(Lower *L, const Snapshot *s)
{
  for (u32 i = 0; i < s->vars.len; i++)
    s->vars.data[i].b->val = s->vars.data[i].val;
  for (u32 i = 0; i < s->scopes.len; i++)
    scope_cut(L->a, s->scopes.data[i], s->lasts.data[i]);
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
declare_var(Lower *L, const char *name, Span at, Val v)
{
  Binding *b = scope_add(L, name, at, var_value(L, v, arena_printf(L->a, "'%s'", name)));
  b->var = true;
}

/* Bind the kids of a list of names from `first` on, as variables or not, to the values of a tuple; `at` is what they were made by. */
static void
bind_names(Lower *L, const Node *list, u32 first, bool var, Val v, Span at)
{
  u32 want = list->nkids - first;
  bool ok = val_is_list(v) && v.list.n == want;
  if (!ok && v.kind != V_POISON) {
    Diag *d = ERR(L, at, E_TUPLE, want, val_str(L, v));
    if (!first)
      diag_note(L->c, d, list->span, "these names");
  }
  for (u32 i = 0; i < want; i++) {
    const Node *to = list->kids[first + i];
    Val x = ok ? v.list.v[i] : val_poison(at);
    if (to->kind == N_LIST)
      bind_names(L, to, 0, var, x, at);
    else if (var)
      declare_var(L, to->name, to->span, x);
    else
      scope_add(L, to->name, to->span, x);
  }
}

static void
lower_lets(Lower *L, const Node *n)
{
  Val v = lower_expr(L, kid(n, 0));
  bind_names(L, n, 1, n->kind == N_VARS, v, v.span);
}

static void
lower_var(Lower *L, const Node *n)
{
  declare_var(L, n->name, n->at, declared_value(L, n));
}

/* How many statements in n assign to name. */
static u32
count_assigned(const Node *n, const char *name)
{
  u32 count = n->kind == N_ASSIGN && kid(n, 0)->kind == N_NAME && kid(n, 0)->name == name;
  for (u32 i = 0; i < n->nkids; i++)
    count += n->kids[i] ? count_assigned(n->kids[i], name) : 0;
  return count;
}

/* x = v, where nothing declares x: said once. From here on x is what it would be, further out something unknown. */
static void
assign_undeclared(Lower *L, const Node *target, Val v)
{
  const Node *decl = L->frame->decl;
  Diag *d = ERR(L, target->span, E_ASSIGN, arena_printf(L->a, "'%s'", target->name));
  bool again = L->frame->loops || (decl && count_assigned(decl, target->name) > 1);
  diag_hint(L->c, d, "a name is declared first: %s %s = ...%s", again ? "var" : "let", target->name,
            again ? "" : ", or with `var` if it changes");
  Scope *here = L->frame->scope, *outer = here;
  while (outer->up && outer->up != L->frame->env)
    outer = outer->up;
  for (Scope *s = outer;; s = here) {
    L->frame->scope = s;
    scope_add(L, target->name, target->span, s == here ? v : val_poison(target->span))->var = true;
    if (s == here)
      break;
  }
}

/* What is written instead of x[i] = v. */
static const char *
element_hint(Lower *L, const Node *target)
{
  const Node *x = target->kind == N_INDEX ? kid(target, 0) : target;
  const Binding *b = x->kind == N_NAME ? scope_find(L, x->name) : NULL;
  if (b && b->val.kind == V_BUFFER)
    return "a shared buffer is written as a whole with shared_store(s, x), at indices with shared_add(s, i, x)";
  if (b && val_is_list(b->val))
    return "a tuple is made anew: t = t[:1] + (x,) + t[2:]";
  if (b && val_is_tile(b->val) && !val_is_ptr(b->val))
    return "a tile is made anew with where(c, a, b), a part of it with insert(x, y, start)";
  return "memory is written with store(p + i, v)";
}

static void
assign_to_what(Lower *L, const Node *target)
{
  const Binding *b = target->kind == N_NAME ? scope_find(L, target->name) : NULL;
  if (b) {
    Diag *d = ERR(L, target->span, E_ASSIGN, arena_printf(L->a, "'%s'", target->name));
    diag_note(L->c, d, b->span, "declared here");
    diag_hint(L->c, d, "only a `var` can be assigned: var %s = ...", target->name);
  } else if (target->kind != N_ERROR) {
    diag_hint(L->c, ERR(L, target->span, E_ASSIGN, "this"), "%s", element_hint(L, target));
  }
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

/* target op= v, where v comes from the expression at `from`. */
static void
assign(Lower *L, const Node *n, const Node *target, Val v, Span from)
{
  const Node *root = ast_root(target);
  Binding *b = root->kind == N_NAME ? scope_find(L, root->name) : NULL;
  if (!b && root->kind == N_NAME && root == target) {
    if (n->op == O_NONE)
      assign_undeclared(L, target, v);
    else
      lower_unknown_name(L, target);
    return;
  }
  if (!b || !b->var) {
    assign_to_what(L, root);
    return;
  }
  if (!team_may_assign(L, b, target->span))
    return;
  Val old = part_of(L, target, b);
  old.span = target->span;
  old.from = b->span;
  if (n->op != O_NONE)
    v = lower_binary(L, n->op, n->span, n->at, old, v);
  Val x = var_assign(L, from, v, old, arena_printf(L->a, "'%s'", part_name(L, target)), b->span);
  if (x.kind == V_POISON)
    return;
  put_part(L, target, b, x);
  if (x.kind == V_IR && !x.ir->name)
    x.ir->name = target->name;
}

/* (a, (b, c)) = value: all at once. */
static void
assign_parts(Lower *L, const Node *n, const Node *targets, Val v)
{
  if (n->op != O_NONE) {
    ERR(L, targets->span, E_ASSIGN, "a tuple by parts");
    return;
  }
  if (!val_is_list(v) || v.list.n != targets->nkids) {
    if (v.kind != V_POISON)
      ERR(L, kid(n, 1)->span, E_TUPLE, targets->nkids, val_str(L, v));
    return;
  }
  for (u32 i = 0; i < targets->nkids; i++)
    if (targets->kids[i]->kind == N_TUPLE)
      assign_parts(L, n, targets->kids[i], v.list.v[i]);
    else
      assign(L, n, targets->kids[i], v.list.v[i], kid(n, 1)->span);
}

static void
lower_assign(Lower *L, const Node *n)
{
  Val v = lower_expr(L, kid(n, 1));
  if (kid(n, 0)->kind == N_TUPLE)
    assign_parts(L, n, kid(n, 0), v);
  else
    assign(L, n, kid(n, 0), v, kid(n, 1)->span);
}

static void
lower_eval(Lower *L, const Node *n)
{
  const Node *e = kid(n, 0);
  Val v = lower_expr(L, e);
  if (e->kind != N_CALL && v.kind != V_POISON)
    diag(L->c, e->span, W_UNUSED);
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

/* One way through the function ends here; done: by a return. */
typedef struct Path { Val v; bool done; } Path;

static Val
join_paths(Lower *L, Span at, Op *op, const Path *w)
{
  Val a = w[0].v, b = w[1].v;
  if (w[0].done != w[1].done && a.kind != V_POISON && b.kind != V_POISON && (a.kind != V_VOID || b.kind != V_VOID)) {
    ERR(L, at, E_RETURN, "not every way through this function returns a value");
    a = val_poison(at);
  }
  return lower_join(L, at, op, a, b);
}

static Val
lower_returning_if(Lower *L, const Node *n, const Cont *k, bool *returned)
{
  Val c = lower_condition(L, kid(n, 0));
  Path w[2];
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
    w[i].v = lower_arm_or_rest(L, kid(n, i + 1), k, &w[i].done);
    snapshot_restore(L, &before);
  }
  L->b = saved;
  *returned = true;
  return join_paths(L, n->span, op, w);
}

/* A loop with a return in it. */
static Val
lower_returning_loop(Lower *L, Node *n, const Cont *k, bool *returned)
{
  lower_stmt(L, n);
  Exits e = L->frame->exits;
  L->frame->exits = exits_none();
  if (val_is_false(e.returned))
    return lower_rest(L, k, returned);
  *returned = true;
  if (val_is_true(e.returned))
    return e.result;
  if (!lower_may_nest(L, n->span))
    return val_poison(n->span);
  L->b.span = n->span;
  Path w[2] = {{e.result, true}};
  Op *op = ir_if(&L->b, e.returned.ir, 0, NULL);
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[1]);
  w[1].v = lower_rest(L, k, &w[1].done);
  L->b = saved;
  return join_paths(L, n->span, op, w);
}

static Val
lower_returning(Lower *L, Node *n, const Cont *k, bool *returned)
{
  if (n->kind == N_RETURN)
    return *returned = true, kid(n, 0) ? lower_expr(L, kid(n, 0)) : val_void(n->span);
  if (n->kind == N_IF)
    return lower_returning_if(L, n, k, returned);
  if (n->kind != N_BLOCK)
    return lower_returning_loop(L, n, k, returned);
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
  case N_LETS: case N_VARS: lower_lets(L, n); break;
  case N_VAR: lower_var(L, n); break;
  case N_ASSIGN: lower_assign(L, n); break;
  case N_IF: lower_if(L, n, NULL); break;
  case N_FOR: lower_for(L, n); break;
  case N_WHILE: lower_while(L, n); break;
  case N_SPECIALIZE: lower_specialize(L, n); break;
  case N_EVAL: lower_eval(L, n); break;
  case N_BREAK: case N_CONTINUE: case N_RETURN: lower_exit(L, n); break;
  default: break;
  }
}

static bool
is_continued(const Node *n)
{
  return n->kind != N_EVAL && n->kind != N_SPECIALIZE && ast_may_return(n);
}

/* A statement of a loop's body that may leave the iteration, then those behind it. */
static void
lower_leaving(Lower *L, Node *n, Node *const *rest, u32 nrest)
{
  Node *after = NULL;
  if (nrest) {
    Span all = {rest[0]->span.lo, rest[nrest - 1]->span.hi};
    after = ast_node(L->a, N_BLOCK, all, nrest, rest);
    if (ast_must_exit(n))
      diag(L->c, rest[0]->span, W_UNREACHABLE);
  }
  L->work++;
  if (n->kind == N_IF) {
    lower_if(L, n, after);
  } else {
    lower_stmt(L, n);
    lower_after(L, after);
  }
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
    if (L->frame->loops && ast_may_exit(stmts[i])) {
      lower_leaving(L, stmts[i], stmts + i + 1, n - i - 1);
      break;
    }
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
  L->frame->exits = exits_none();
  return lower_stmts(L, body->kids, body->nkids, NULL, returned);
}
