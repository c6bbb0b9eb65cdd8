/* arguments.c - what the launch gives a kernel: scalars, pointers, and tuples and structs of them.
 *
 * A tuple or struct becomes an argument for each of its parts, in order, named by its path: `shape: (i32, i32)` is shape.0 and
 * shape.1, `a: Array2` is a.base, a.rows, ... So launchers know nothing but scalars and pointers.
 *
 * A tensor is one argument: its address, extents and strides go together.
 *
 * A pointer may be left out. If a fact says that it is null, or, without a fact, a define or the default is None, then it is None:
 * a compile-time value. Otherwise a kernel that asks whether it is None is told that it is not, and relies on that (ParamInfo.null):
 * the runtime refuses what was not compiled for. */
#include "sema.h"

enum { PARAM_NAME_MAX = 63 };                  /* runtime/manifest.h */

typedef struct Arguments {
  Lower *L;
  Func *f;                                     /* where they become parameters; NULL: they are listed */
  bool unset_ok;                               /* type parameters without a value stand for any type */
  ArgumentVisit *visit;
  void *user;
  const Node *param;
} Arguments;

/* One part: its path, the text of its type, what the source says it is when nothing else does. */
typedef struct Part { const char *path; const Node *type, *absent; } Part;

static Val argument(Arguments *a, Part p);

/* ---- facts ---- */

static const FrontendFact *
fact_find(const Lower *L, const char *path, FactKind kind)
{
  const FrontendOptions *o = L->prog->o;
  for (u32 i = o->nfacts; i-- > 0;)
    if (o->facts[i].kind == kind && !strcmp(o->facts[i].name, path))
      return &o->facts[i];
  return NULL;
}

/* What the parameter's own clauses and the facts say it is a multiple of. */
static u32
known_divisible(const Arguments *a, const char *path)
{
  Lower *L = a->L;
  u64 d = 1;
  const Node *facts = kid(a->param, 2);
  for (u32 i = 0; facts && i < facts->nkids; i++) {
    i64 n;
    const Node *fact = facts->kids[i];
    if (strcmp(fact->name, "multiple_of") != 0 || fact->nkids != 1)
      clause_error(L, fact, "a parameter may have multiple_of(n)");
    else if (lower_const_int(L, kid(fact, 0), "multiple_of", &n) && n > 0 && n <= 1 << 30)
      d = (u64)n;
  }
  const FrontendFact *f = fact_find(L, path, FACT_DIVISIBLE);
  return (u32)(f && f->value > (i64)d && f->value <= 1 << 30 ? (u64)f->value : d);
}

static Val
fact_misfit(Lower *L, const Node *param, const char *path, const Type *t)
{
  ERR(L, param->at, E_MISUSE, arena_printf(L->a, "the fact about '%s' does not fit its type %s", path, type_str(L->c, t)));
  return val_poison(param->span);
}

/* The constant a fact says the argument equals; the parameter itself otherwise. */
static Val
known_value(const Arguments *a, const char *path, Value *v)
{
  Lower *L = a->L;
  const FrontendFact *f = fact_find(L, path, FACT_EQUAL);
  Const k;
  if (!f)
    return val_ir(v, a->param->span);
  if (type_is_ptr(v->type) || !const_cast(const_int(f->value), v->type->dt, ROUND_NEAREST, false, &k))
    return fact_misfit(L, a->param, path, v->type);
  return val_const(k, a->param->span);
}

/* Whether the pointer is known to be null: then it is *out, None (poison after reporting). */
static bool
known_null(const Arguments *a, Part p, const Type *t, Val *out)
{
  Lower *L = a->L;
  const FrontendFact *f = fact_find(L, p.path, FACT_NULL);
  const FrontendDefine *d = f ? NULL : program_define(L->prog, p.path);
  const Node *says = d ? program_parse_define(L->prog, d, false) : p.absent;
  *out = (Val){.kind = V_NONE, .span = says && !f ? says->span : a->param->span};
  if (f && !type_is_ptr(t))
    *out = fact_misfit(L, a->param, p.path, t);
  else if (d && says && (says->kind != N_NONE || !type_is_ptr(t)))
    diag(L->c, says->span, E_MISUSE, arena_printf(L->a, "'%s' is an argument: a define can only leave a pointer out, with %s=None", p.path,
                                                  p.path));
  return f ? f->value != 0 : says && says->kind == N_NONE && type_is_ptr(t);
}

/* ---- parts ---- */

static Val
bad_argument(const Arguments *a, Span at, const char *path, const char *is, const char *advice)
{
  ERR(a->L, at, E_PARAM, path, is, advice);
  return val_poison(a->param->span);
}

/* A scalar, pointer or tensor; dtype: what a launcher is told. */
static Val
leaf(Arguments *a, Part p, const Type *t, const char *dtype)
{
  Lower *L = a->L;
  Val none;
  if (type_is_tile(t))
    return bad_argument(a, p.type->span, p.path, "is a tile", "; pass a pointer and load it");
  if (strlen(p.path) > PARAM_NAME_MAX)
    return bad_argument(a, a->param->at, p.path, "has a name of more than 63 bytes", "");
  bool null = known_null(a, p, t, &none);
  if (!a->f) {
    a->visit(a->user, p.path, t, dtype);
    return null ? none : val_void(a->param->span);
  }
  Value *v = func_add_param(a->f, t, intern(L->c, p.path), known_divisible(a, p.path));
  if (type_is_tensor(t))
    return val_tensor(v, a->param->span);
  if (!null)
    return known_value(a, p.path, v);
  if (none.kind == V_NONE)
    a->f->params[v->index].null = PARAM_NULL;
  return none;
}

/* A type parameter without a value, or a pointer to one. */
static bool
is_unset(const Arguments *a, const Node *type)
{
  const Node *base = type->kind == N_PTR || type->kind == N_GENERIC ? kid(type, 0) : type;
  return a->unset_ok && base->kind == N_NAME && !scope_find(a->L, base->name) && program_has_param(a->L->prog, base->name, true);
}

static Val
tuple_argument(Arguments *a, Part p)
{
  Lower *L = a->L;
  Val v = val_list(L, V_TUPLE, p.type->nkids, a->param->span);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = argument(a, (Part){arena_printf(L->a, "%s.%u", p.path, i), p.type->kids[i], NULL});
  return v;
}

/* A struct around the present part is decl itself. */
static bool
nests(const Arguments *a, const Node *decl)
{
  for (const Frame *f = a->L->frame; f; f = f->up)
    if (f->decl == decl)
      return true;
  return false;
}

/* Fields are what they are in the file of the struct. */
static Val
struct_argument(Arguments *a, Part p, Val decl)
{
  Lower *L = a->L;
  const Node *fields = kid(decl.fn.decl, 0);
  Frame frame = {.decl = decl.fn.decl, .unit = decl.fn.unit, .call = p.type->span, .up = L->frame, .level = L->frame->level + 1};
  Frame *saved = L->frame;
  Val v = {.kind = V_RECORD, .span = a->param->span};
  v.list.of = decl.fn.decl;
  v.list.n = fields->nkids;
  v.list.v = NEW_ARRAY(L->a, Val, v.list.n + 1);
  if (nests(a, decl.fn.decl))
    return bad_argument(a, p.type->span, p.path, "is of a struct that holds itself", "");
  for (u32 i = 0; i < v.list.n; i++) {
    const Node *field = fields->kids[i];
    Part part = {arena_printf(L->a, "%s.%s", p.path, field->name), kid(field, 0), kid(field, 1)};
    L->frame = &frame;
    v.list.v[i] = part.type ? argument(a, part)
                : bad_argument(a, field->at, part.path, "is a field without a type", "; what a launch gives has one");
    L->frame = saved;
  }
  return v;
}

static Val
argument(Arguments *a, Part p)
{
  Lower *L = a->L;
  if (p.type->kind == N_TUPLE)
    return tuple_argument(a, p);
  if (is_unset(a, p.type)) {
    const Type *i8 = type_scalar(L->c, DT_I8), *t = p.type->kind == N_PTR ? type_ptr(L->c, DT_I8) : i8;
    if (p.type->kind == N_GENERIC)
      t = lower_tensor_type(L, p.type, i8);
    return t ? leaf(a, p, t, (p.type->kind == N_NAME ? p.type : kid(p.type, 0))->name) : val_poison(p.type->span);
  }
  Val t = lower_expr(L, p.type);
  if (t.kind == V_STRUCT)
    return struct_argument(a, p, t);
  t = val_need_type(L, t);
  return t.kind == V_TYPE ? leaf(a, p, t.type, dtype_info[t.type->dt].name) : t;
}

static Val
whole_argument(Arguments *a)
{
  const Node *param = a->param, *absent = kid(param, 1);
  if (!kid(param, 0))
    return bad_argument(a, param->at, param->name, "has no type", absent ? "; a compile-time parameter is written `const N = 4`" : "");
  Val v = argument(a, (Part){param->name, kid(param, 0), absent});
  bool ptr = v.kind == V_NONE || val_is_ptr(v);
  if (absent && a->f && v.kind != V_POISON && (absent->kind != N_NONE || !ptr))
    ERR(a->L, absent->span, E_PARAM, param->name, "has a default", "; only const and type parameters may have one, and a pointer None");
  if (kid(param, 2) && val_is_many(v))
    ERR(a->L, kid(param, 2)->span, E_PARAM, param->name, "has parts", ": a promise is about a scalar or pointer");
  return v;
}

/* The index of the parameter with this path; f's number of them if it has none. */
static u32
parameter_find(const Func *f, const char *path)
{
  u32 i = 0;
  while (i < f->body->nargs && strcmp(f->body->args[i]->name, path) != 0)
    i++;
  return i;
}

static void
known_same(Lower *L, Func *f, const FrontendFact *fact)
{
  u32 i = parameter_find(f, fact->name), k = parameter_find(f, fact->other);
  if (i == f->body->nargs || k == f->body->nargs)
    return;
  const Type *t = f->body->args[i]->type, *u = f->body->args[k]->type;
  if ((type_is_ptr(t) || type_is_tensor(t)) && (type_is_ptr(u) || type_is_tensor(u)))
    func_same_params(f, i, k);
  else
    ERR(L, f->span, E_MISUSE, arena_printf(L->a, "'%s' and '%s' cannot be one address: their types are %s and %s", fact->name, fact->other,
                                           type_str(L->c, t), type_str(L->c, u)));
}

/* The kernel's arguments become parameters of f, and their names enter the scope. unset_ok: type parameters may have no value yet. */
void
arguments_bind(Lower *L, const Node *kernel, Func *f, bool unset_ok)
{
  const Node *params = kid(kernel, 0);
  for (u32 i = 0; i < params->nkids; i++)
    if (!param_is_setting(params->kids[i])) {
      Arguments a = {.L = L, .f = f, .unset_ok = unset_ok, .param = params->kids[i]};
      scope_add(L, a.param->name, a.param->at, whole_argument(&a));
    }
  const FrontendOptions *o = L->prog->o;
  for (u32 i = 0; i < o->nfacts; i++)
    if (o->facts[i].kind == FACT_SAME)
      known_same(L, f, &o->facts[i]);
}

/* Each part of the parameter: its path, whether it is a pointer, and its dtype, or the type parameter that is still to be set. */
void
arguments_list(Lower *L, const Node *param, ArgumentVisit *visit, void *user)
{
  Arguments a = {.L = L, .unset_ok = true, .visit = visit, .user = user, .param = param};
  whole_argument(&a);
}
