/* lower_call.c - calls: conversions T(x), functions of the language, and `fn` templates lowered into their call. */
#include "hints.h"
#include "sema.h"

/* ---- parameters by name and position ---- */

static u32
param_words(const char *params)
{
  u32 n = *params != 0;
  for (const char *s = params; *s; s++)
    n += *s == ' ';
  return n;
}

/* The i-th word of params without its `?`; interned. */
static const char *
param_word(Lower *L, const char *params, u32 i, bool *optional)
{
  for (; i > 0; i--)
    params += strcspn(params, " ") + 1;
  size_t len = strcspn(params, " ");
  *optional = len && params[len - 1] == '?';
  return intern_n(L->c, params, len - *optional);
}

/* at: where they stand, of a function that is written down. */
typedef struct ArgNames { const char *const *names; u32 n; Span at; } ArgNames;

static void
note_params(Lower *L, Diag *d, ArgNames p)
{
  Buf b = {.arena = L->a};
  for (u32 i = 0; i < p.n; i++)
    buf_printf(&b, "%s%s", i ? ", " : "", p.names[i]);
  if (p.n)
    diag_note(L->c, d, p.at, "its parameter%s: %s", p.n == 1 ? " is" : "s are", buf_str(&b));
}

static void
too_many(Lower *L, Span at, const char *fn, ArgNames p)
{
  const char *why = arena_printf(L->a, "it takes %u argument%s at most", p.n, p.n == 1 ? "" : "s");
  note_params(L, ERR(L, at, E_ARGUMENTS, fn, why), p);
}

/* Which parameter argument number i of the call is for; reports and returns false if none. */
static bool
arg_slot(Lower *L, const Node *arg, u32 position, const char *fn, ArgNames p, u32 *slot)
{
  if (arg->kind != N_ARG) {
    *slot = position;
    if (position < p.n)
      return true;
    too_many(L, arg->span, fn, p);
    return false;
  }
  for (*slot = 0; *slot < p.n; ++*slot)
    if (p.names[*slot] == arg->name)
      return true;
  Diag *d = ERR(L, arg->at, E_ARGUMENTS, fn, arena_printf(L->a, "it has no parameter '%s'", arg->name));
  const char *close = diag_suggest(arg->name, p.names, p.n), *advice = hint_find(HINT_ARG, arg->name);
  if (close && !advice)
    diag_hint(L->c, d, "did you mean '%s'?", close);
  else if (advice)
    diag_hint(L->c, d, "%s", advice);
  if (!close)
    note_params(L, d, p);
  return false;
}

/* Evaluate the arguments in order into vals[slot]; vals start as V_VOID. */
static bool
eval_args(Lower *L, const Node *call, u32 skip, const char *fn, ArgNames p, Val *vals, bool *given)
{
  bool ok = true, named = false;
  for (u32 i = skip; i < call->nkids; i++) {
    const Node *arg = call->kids[i];
    u32 slot;
    Val v = lower_expr(L, arg->kind == N_ARG ? kid(arg, 0) : arg);
    if (named && arg->kind != N_ARG) {
      ERR(L, arg->span, E_ARGUMENTS, fn, "named arguments come last");
      ok = false;
    } else if (!arg_slot(L, arg, i - skip, fn, p, &slot)) {
      ok = false;
    } else if (given[slot]) {
      ERR(L, arg->span, E_ARGUMENTS, fn, arena_printf(L->a, "'%s' is given twice", p.names[slot]));
      ok = false;
    } else {
      vals[slot] = v;
      given[slot] = true;
    }
    named |= arg->kind == N_ARG;
  }
  return ok;
}

/* Whether call has all it needs; false after reporting. None leaves an argument out. */
static bool
args_complete(Lower *L, Call *call, ArgNames p, const bool *optional)
{
  for (u32 i = 0; i < p.n; i++) {
    if (call->given[i] && call->args[i].kind == V_NONE && optional[i]) {
      call->args[i].kind = V_VOID;
      call->given[i] = false;
    }
    if (call->given[i] && call->args[i].kind == V_VOID) {
      ERR(L, call->args[i].span, E_NOT_VALUE, arena_printf(L->a, "'%s'", p.names[i]), "nothing");
      return false;
    }
    if (call->given[i] || optional[i])
      continue;
    note_params(L, ERR(L, call->span, E_ARGUMENTS, call->name, arena_printf(L->a, "it needs '%s'", p.names[i])), p);
    return false;
  }
  return true;
}

/* Bind arguments to params: those of `node` (children from `skip` on), or nvalues values by position if node is NULL. False after
 * reporting. */
static bool
bind_args(Lower *L, Call *out, const char *params, const Node *node, u32 skip, u32 nvalues, const Val *values)
{
  const char *names[BUILTIN_ARGS_MAX] = {0};
  bool optional[BUILTIN_ARGS_MAX];
  ArgNames p = {names, param_words(params), {0, 0}};
  for (u32 i = 0; i < p.n; i++)
    names[i] = param_word(L, params, i, &optional[i]);
  out->nargs = p.n;
  if (node && !eval_args(L, node, skip, out->name, p, out->args, out->given))
    return false;
  if (nvalues > p.n) {
    too_many(L, out->span, out->name, p);
    return false;
  }
  for (u32 i = 0; i < nvalues; i++) {
    out->args[i] = values[i];
    out->given[i] = true;
  }
  return args_complete(L, out, p, optional);
}

bool
lower_bind_args(Lower *L, const Node *call, u32 skip, const char *name, const char *params, Call *out)
{
  *out = (Call){.node = call, .span = call->span, .name = name};
  return bind_args(L, out, params, call, skip, 0, NULL);
}

/* ---- functions of the language ---- */

static const Builtin builtins[] = {
#define BUILTIN(name, params, doc) {#name, params, builtin_##name, OP_COUNT},
#include "builtins.def"
#undef BUILTIN
};
static const Builtin surface_ops[] = {
#define ARG ARG_TEXT
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) \
  {(traits) & T_SURFACE ? name : "", OPERANDS_TEXT(operands), builtin_elementwise, OP_##id},
#include "ops.def"
#undef OP
#undef ARG
};

/* A function of the language by name: rows of builtins.def, then SURFACE rows of ops.def. */
const Builtin *
builtin_find(const char *name)
{
  for (size_t i = 0; i < COUNT(builtins); i++)
    if (!strcmp(builtins[i].name, name))
      return &builtins[i];
  for (size_t i = 0; i < COUNT(surface_ops); i++)
    if (*surface_ops[i].name && !strcmp(surface_ops[i].name, name))
      return &surface_ops[i];
  return NULL;
}

/* All their names. */
const char *const *
builtin_names(Arena *a, u32 *n)
{
  const char **names = NEW_ARRAY(a, const char *, COUNT(builtins) + COUNT(surface_ops));
  *n = 0;
  for (size_t i = 0; i < COUNT(builtins); i++)
    names[(*n)++] = builtins[i].name;
  for (size_t i = 0; i < COUNT(surface_ops); i++)
    if (*surface_ops[i].name)
      names[(*n)++] = surface_ops[i].name;
  return names;
}

/* By the arguments of n, or by nvalues values if n is NULL. */
static Val
call_builtin(Lower *L, Span at, const Builtin *b, const Node *n, u32 nvalues, const Val *values)
{
  Call call = {.node = n, .span = at, .name = b->name, .op = b->op};
  if (!bind_args(L, &call, b->params, n, 1, nvalues, values))
    return val_poison(at);
  for (u32 i = 0; i < call.nargs; i++)
    if (call.given[i] && call.args[i].kind == V_POISON)
      return val_poison(at);
  L->b.span = at;
  return b->lower(L, &call);
}

/* ---- conversions: T(x) ---- */

static Val
call_type(Lower *L, const Node *n, const Type *t)
{
  Call call;
  if (t->kind == TY_SCALAR) {
    if (!lower_bind_args(L, n, 1, type_str(L->c, t), "x round? sat?", &call))
      return val_poison(n->span);
    Call cast = call;
    cast.name = "cast";
    cast.nargs = 4;
    cast.args[1] = val_type(t, kid(n, 0)->span);
    cast.given[1] = true;
    for (u32 i = 1; i < 3; i++) {
      cast.args[i + 1] = call.args[i];
      cast.given[i + 1] = call.given[i];
    }
    return builtin_cast(L, &cast);
  }
  Diag *d = ERR(L, kid(n, 0)->span, E_CALLEE, arena_printf(L->a, "the type %s", type_str(L->c, t)));
  diag_hint(L->c, d, t->kind == TY_PTR ? "addresses are converted with bitcast(x, type)"
                                                : "a tile is made with full(shape, value) or converted with f32(x)");
  return val_poison(n->span);
}

/* ---- fn ---- */

/* Where type parameter `name` stands in the type `t` of a value parameter: the element of x: T, *T, T[..], tensor<T, 2>. */
static bool
type_mentions(const Node *t, const char *name)
{
  bool wraps = t && (t->kind == N_PTR || t->kind == N_INDEX || t->kind == N_GENERIC);
  return wraps ? type_mentions(kid(t, 0), name) : t && t->kind == N_NAME && t->name == name;
}

/* The type parameter's value as the arguments show it. */
static Val
infer_type(Lower *L, const Node *params, const char *name, const Val *given)
{
  for (u32 i = 0; i < params->nkids; i++)
    if (params->kids[i]->kind == N_PARAM && given[i].kind != V_VOID && type_mentions(kid(params->kids[i], 0), name)) {
      if (given[i].kind == V_TENSOR)
        return val_type(type_scalar(L->c, given[i].ir->type->dt), given[i].span);
      if (val_is_data(given[i]))
        return val_type(type_scalar(L->c, val_type_of(L, given[i])->dt), given[i].span);
      return val_poison(given[i].span);
    }
  return val_void((Span){0, 0});
}

static Val
missing_arg(Lower *L, const Node *decl, const Node *param)
{
  const Frame *f = L->frame;
  L->frame = f->up;
  Diag *d = ERR(L, f->call, E_ARGUMENTS, decl->name, arena_printf(L->a, "it needs '%s'", param->name));
  L->frame = (Frame *)f;
  diag_note(L->c, d, param->at, "declared here");
  return val_poison(f->call);
}

static Val
bind_typed(Lower *L, const Node *param, Val v)
{
  return lower_annotated(L, v.span, v, kid(param, 0), arena_printf(L->a, "'%s'", param->name), param->at);
}

static Val
bind_const_param(Lower *L, const Node *param, Val v)
{
  if (val_is_fixed(L, v))
    return v.kind == V_POISON ? v : bind_typed(L, param, v);
  diag_note(L->c, not_constant(L, v, arena_printf(L->a, "'%s'", param->name)), param->at, "declared here");
  return val_poison(param->span);
}

/* Compile-time parameters first: types of the others may name them. */
static void
bind_params(Lower *L, const Node *decl, const Val *given)
{
  const Node *params = kid(decl, 0);
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 i = 0; i < params->nkids; i++) {
      const Node *param = params->kids[i];
      bool early = param->kind != N_PARAM;
      if (early != (pass == 0))
        continue;
      const Node *def = kid(param, param->kind == N_TPARAM ? 0 : 1);
      Val v = given[i];
      if (v.kind == V_VOID && param->kind == N_TPARAM)
        v = infer_type(L, params, param->name, given);
      if (v.kind == V_VOID)
        v = def ? lower_expr(L, def) : missing_arg(L, decl, param);
      v = param->kind == N_TPARAM ? val_need_type(L, v)
        : param->kind == N_CPARAM ? bind_const_param(L, param, v) : bind_typed(L, param, v);
      scope_add(L, param->name, param->at, v);
      L->frame->bound[i] = v;
    }
}

/* Frame f was given other functions than these: a function that takes functions may meet itself in one of them. */
static bool
other_functions(const Frame *f, const Val *given)
{
  const Node *params = kid(f->decl, 0);
  for (u32 i = 0; f->bound && i < params->nkids; i++)
    if ((given[i].kind == V_FN || given[i].kind == V_BUILTIN) && !val_same(given[i], f->bound[i]))
      return true;
  return false;
}

static bool
may_enter(Lower *L, Span call, const Node *decl, const Val *given)
{
  for (const Frame *f = L->frame; f; f = f->up)
    if (f->decl == decl && !other_functions(f, given)) {
      ERR(L, call, E_RECURSION, decl->name);
      return false;
    }
  if (L->frame->level < CALL_DEPTH_MAX)
    return true;
  ERR(L, call, E_LIMIT, "calls are nested more than 64 deep");
  return false;
}

static Val
result_value(Lower *L, const Node *decl, Val v, Span call)
{
  if (kid(decl, 1) && v.kind == V_VOID) {
    Val want = lower_expr(L, kid(decl, 1));
    ERR(L, decl->at, E_RETURN, arena_printf(L->a, "'%s' returns no value, its declaration says %s", decl->name,
                                            want.kind == V_TYPE ? type_str(L->c, want.type) : val_str(L, want)));
    return val_poison(call);
  }
  return lower_annotated(L, v.span.hi ? v.span : call, v, kid(decl, 1), "the result", kid(decl, 1) ? kid(decl, 1)->span : call);
}

/* Lower fn's body here with one Val per parameter (V_VOID: not given). */
static Val
call_decl(Lower *L, Span call, Val fn, const Val *given)
{
  Node *decl = fn.fn.decl;
  if (!may_enter(L, call, decl, given))
    return val_poison(call);
  Frame frame = {.decl = decl, .unit = fn.fn.unit, .call = call, .up = L->frame, .level = L->frame->level + 1,
                 .scope = fn.fn.env, .env = fn.fn.env};
  Frame *saved = L->frame;
  u32 site = L->c->site, deriving = L->deriving;
  Val rule = derivative_rule(L, fn);
  Scope params, body;
  bool returned;
  u32 open = buffers_open(L);
  frame.bound = NEW_ARRAY(L->a, Val, kid(decl, 0)->nkids + 1);
  for (u32 i = 0; i < kid(decl, 0)->nkids; i++)
    frame.bound[i] = val_void(call);
  L->deriving = rule.kind == V_FN ? 0 : deriving;
  L->frame = &frame;
  L->c->site = site_add(L->c, (Span){call.lo, call.hi, site}, decl->name);
  scope_push(L, &params);
  bind_params(L, decl, given);
  scope_push(L, &body);
  Val v = lower_body(L, kid(decl, 2), &returned);
  v = frame.failed ? val_poison(call) : result_value(L, decl, v, call);
  L->frame = saved;
  L->c->site = site;
  v.span = call;
  L->b.span = call;
  buffers_close(L, open, &v);
  L->deriving = deriving;
  return rule.kind == V_FN ? derivative_mark(L, rule, kid(decl, 0)->nkids, frame.bound, v) : v;
}

/* ---- anonymous functions ---- */

static void
capture(Lower *L, const Node *n, Scope *env)
{
  const Binding *b = n->kind == N_NAME ? scope_find(L, n->name) : NULL;
  L->work++;
  if (b && !scope_find_here(env, n->name))
    scope_put(L->a, env, b->name, b->span, b->val);
  for (u32 i = 0; i < n->nkids; i++)
    if (n->kids[i])
      capture(L, n->kids[i], env);
}

/* An anonymous function: names around it keep the values that they have here. */
Val
lower_lambda(Lower *L, Node *n)
{
  Scope *env = NEW(L->a, Scope);
  capture(L, kid(n, 2), env);
  return (Val){.kind = V_FN, .fn = {n, L->frame->unit, env->last ? env : NULL}};
}

/* ---- calls from inside ---- */

/* A call with positional arguments already computed; fn is V_FN or V_BUILTIN. */
Val
lower_call_fn(Lower *L, Span call, Val fn, u32 nargs, const Val *args)
{
  if (fn.kind == V_BUILTIN)
    return call_builtin(L, call, fn.builtin, NULL, nargs, args);
  const Node *params = kid(fn.fn.decl, 0);
  Val *given = NEW_ARRAY(L->a, Val, (params->nkids > nargs ? params->nkids : nargs) + 1);
  for (u32 i = 0; i < params->nkids || i < nargs; i++)
    given[i] = i < nargs ? args[i] : val_void(call);
  if (nargs <= params->nkids)
    return call_decl(L, call, fn, given);
  Diag *d = ERR(L, call, E_ARGUMENTS, fn.fn.decl->name,
                arena_printf(L->a, "it takes %u argument%s, here it is given %u", params->nkids, params->nkids == 1 ? "" : "s", nargs));
  diag_note(L->c, d, fn.fn.decl->at, "declared here");
  return val_poison(call);
}

/* The arguments of call n by parameter of `name`, V_VOID where none is given; NULL after reporting. */
Val *
lower_args(Lower *L, const Node *n, const char *name, const Node *params)
{
  u32 count = params->nkids;
  const char **names = NEW_ARRAY(L->a, const char *, count + 1);
  Val *given = NEW_ARRAY(L->a, Val, count + 1);
  bool *is_given = NEW_ARRAY(L->a, bool, count + 1);
  for (u32 i = 0; i < count; i++) {
    names[i] = params->kids[i]->name;
    given[i] = val_void(n->span);
  }
  if (!eval_args(L, n, 1, name, (ArgNames){names, count, params->span}, given, is_given))
    return NULL;
  for (u32 i = 0; i < count; i++)
    if (is_given[i] && given[i].kind == V_VOID) {
      ERR(L, given[i].span, E_NOT_VALUE, arena_printf(L->a, "'%s'", names[i]), "nothing");
      return NULL;
    }
  return given;
}

static Val
call_fn(Lower *L, const Node *n, Val fn)
{
  Val *given = lower_args(L, n, fn.fn.decl->name, kid(fn.fn.decl, 0));
  return given ? call_decl(L, n->span, fn, given) : val_poison(n->span);
}

/* callee(args): a conversion, a function of the language, or an fn. */
Val
lower_call(Lower *L, const Node *n)
{
  const Node *callee = kid(n, 0), *first = kid(n, 1);
  if (callee->kind == N_NAME && first && first->kind == N_STR && hint_find(HINT_TEXT, callee->name) && !lower_is_known(L, callee)) {
    diag_hint(L->c, ERR(L, n->span, E_UNKNOWN_NAME, callee->name), "%s", hint_find(HINT_TEXT, callee->name));
    return val_poison(n->span);
  }
  Val f = lower_expr(L, callee);
  switch (f.kind) {
  case V_TYPE: return call_type(L, n, f.type);
  case V_FN: return call_fn(L, n, f);
  case V_STRUCT: return lower_struct(L, n, f);
  case V_BUILTIN: return call_builtin(L, n->span, f.builtin, n, 0, NULL);
  case V_POISON: break;
  case V_FORMAT:
    diag_note(L->c, ERR(L, kid(n, 0)->span, E_CALLEE, val_str(L, f)), n->span, "elements are packed by pack(x, %s)", f.format->name);
    break;
  default: ERR(L, kid(n, 0)->span, E_CALLEE, val_str(L, f));
  }
  return val_poison(n->span);
}
