/* head.c - what stands in a kernel's head besides its arguments: compile-time parameters, and the clauses behind the list. */
#include "hints.h"
#include "sema.h"

/* Lowering for names of unit u; what is built goes to a function that is thrown away. */
Lower
lower_new(Program *p, Unit *u, Frame *frame, Module *m)
{
  Func *f = func_new(m, "constants", (Span){0, 0});
  f->warps = 0;
  *frame = (Frame){.unit = u};
  return (Lower){.c = p->c, .a = p->a, .prog = p, .b = builder_at_end(f, f->body), .frame = frame};
}

/* ---- compile-time parameters ---- */

/* Known at compile time: `const` or `type`, not an argument. */
bool
param_is_setting(const Node *param)
{
  return param->kind == N_TPARAM || param->kind == N_CPARAM;
}

/* What a define says means what it means in the file that is compiled, which the kernel's file may be imported by. */
static Val
lower_given(Lower *L, const Node *value)
{
  Unit *own = L->frame->unit;
  L->frame->unit = L->prog->main;
  Val v = lower_expr(L, value);
  L->frame->unit = own;
  return v;
}

/* A -D value, or the default; V_VOID if there is neither. */
static Val
param_setting(Lower *L, const Node *param)
{
  const FrontendDefine *def = program_define(L->prog, param->name);
  Node *absent = kid(param, param->kind == N_TPARAM ? 0 : 1);
  Node *value = def ? program_parse_define(L->prog, def, absent && absent->kind == N_STR) : absent;
  if (def && !value)
    return val_poison(param->span);
  return !value ? val_void(param->span) : def ? lower_given(L, value) : lower_expr(L, value);
}

static Val
check_const_setting(Lower *L, const Node *param, Val v)
{
  if (v.kind == V_TYPE && v.type->kind == TY_SCALAR && packed_find(dtype_info[v.type->dt].name))   /* i8 beside i4 */
    v = (Val){.kind = V_FORMAT, .span = v.span, .format = packed_find(dtype_info[v.type->dt].name)};
  if (!val_is_fixed(L, v) || v.kind == V_TYPE) {
    not_constant(L, v, arena_printf(L->a, "'%s'", param->name));
    return val_poison(v.span);
  }
  const Type *t = kid(param, 0) && v.kind == V_CONST ? lower_type(L, kid(param, 0)) : NULL;
  if (!t)
    return v;
  return val_assign(L, v.span, v, t, arena_printf(L->a, "'%s'", param->name), param->at);
}

/* Bind the type and const parameters in order. unset_ok: one without a value is bound to V_VOID, no error. */
void
lower_settings(Lower *L, const Node *kernel, bool unset_ok)
{
  const Node *params = kid(kernel, 0);
  for (u32 i = 0; i < params->nkids; i++) {
    const Node *param = params->kids[i];
    if (!param_is_setting(param))
      continue;
    Val v = param_setting(L, param);
    if (v.kind == V_VOID && unset_ok)
      continue;
    if (v.kind == V_VOID) {
      ERR(L, param->at, E_UNSET, kernel->name, param->name, param->name);
      v = val_poison(param->span);
    }
    v = param->kind == N_TPARAM ? val_need_type(L, v) : check_const_setting(L, param, v);
    scope_add(L, param->name, param->at, v);
  }
}

/* ---- clauses ---- */

/* What stands in NAME(...) behind the parameters; NULL if nothing does. */
const Node *
clause_value(const Node *kernel, const char *name)
{
  const Node *attrs = kid(kernel, 1), *value = NULL;
  for (u32 i = 0; i < attrs->nkids; i++)
    if (!strcmp(attrs->kids[i]->name, name))
      value = kid(attrs->kids[i], 0);
  return value;
}

const char *
source_on_line(const Program *p, u32 lo, u32 hi)
{
  char *s = arena_strndup(p->a, source_text(p->c, lo), hi - lo), *to = s;
  for (const char *from = s; *from; from++) {
    bool blank = strchr(" \t\r\n", *from) != NULL;
    if (!blank || (to > s && to[-1] != ' '))
      *to++ = blank ? ' ' : *from;
  }
  *to = 0;
  return s;
}

/* Report a clause that does not exist, and what there may be. */
void
clause_error(Lower *L, const Node *attr, const char *may)
{
  const char *advice = hint_find(HINT_ATTR, attr->name);
  Diag *d = ERR(L, attr->span, E_ATTRIBUTE, attr->name, may);
  if (advice)
    diag_hint(L->c, d, "%s", advice);
}

bool
clause_is(const Node *attr, const char *name)
{
  return !strcmp(attr->name, name);
}

/* The kernel's parameter of that name, or NULL. */
const Node *
kernel_param(const Node *kernel, const char *name)
{
  const Node *params = kid(kernel, 0);
  for (u32 i = 0; i < params->nkids; i++)
    if (!strcmp(params->kids[i]->name, name))
      return params->kids[i];
  return NULL;
}

const Node *
clause_or_define(Lower *L, const Node *kernel, const char *name)
{
  const FrontendDefine *def = scope_find(L, intern(L->c, name)) ? NULL : program_define(L->prog, name);
  return def ? program_parse_define(L->prog, def, false) : clause_value(kernel, name);
}

static void
check_axis(Lower *L, const Node *kernel, const Node *arg)
{
  const Node *param = arg->kind == N_ARG ? kernel_param(kernel, arg->name) : NULL;
  bool special = arg->kind == N_ARG && (is_clause(arg->name) || !strcmp(arg->name, "where"));
  if (arg->kind != N_ARG)
    ERR(L, arg->span, E_ATTRIBUTE, "tune", "it takes NAME=[value, ...] and where=condition");
  else if (!special && (!param || param->kind == N_PARAM))
    ERR(L, arg->span, E_ATTRIBUTE, "tune", arena_printf(L->a, "'%s' is no const or type parameter of this kernel", arg->name));
  else if (kid(arg, 0)->kind == N_LIST && !kid(arg, 0)->nkids)
    ERR(L, arg->span, E_ATTRIBUTE, "tune", arena_printf(L->a, "'%s' has no values", arg->name));
}

static void
check_key(Lower *L, const Node *kernel, const Node *arg)
{
  const Node *param = arg->kind == N_NAME ? kernel_param(kernel, arg->name) : NULL;
  if (!param || param->kind != N_PARAM)
    ERR(L, arg->span, E_ATTRIBUTE, "key", "it takes names of arguments");
}

static void
check_tuning(Lower *L, const Node *kernel)
{
  const Node *attrs = kid(kernel, 1);
  for (u32 i = 0; i < attrs->nkids; i++) {
    const Node *attr = attrs->kids[i];
    bool tune = clause_is(attr, "tune"), key = clause_is(attr, "key");
    for (u32 k = 0; k < attr->nkids; k++)
      if (tune)
        check_axis(L, kernel, attr->kids[k]);
      else if (key)
        check_key(L, kernel, attr->kids[k]);
  }
}

/* Report what is wrong with the clauses. */
void
clauses_check(Lower *L, const Node *kernel)
{
  static const struct { const char *name; bool one; } known[] = {
    {"warps", true}, {"min_blocks", true}, {"max_registers", true}, {"maths", true}, {"persistent", true}, {"roles", true},
    {"pingpong", true}, {"stores", true}, {"cluster", false}, {"grid", false}, {"tune", false}, {"key", false}
  };
  const Node *attrs = kid(kernel, 1);
  for (u32 i = 0; i < attrs->nkids; i++) {
    bool fits = false;
    for (u32 k = 0; k < COUNT(known); k++)
      fits |= !strcmp(attrs->kids[i]->name, known[k].name) && (!known[k].one || attrs->kids[i]->nkids == 1);
    if (!fits)
      clause_error(L, attrs->kids[i], "a kernel may have warps(n), cluster(n, ...), grid(n, ...), min_blocks(n), max_registers(n), "
                   "maths(exact), persistent(n), roles(true), "
                   "pingpong(true), stores(true), tune(...) and key(...)");
  }
  check_tuning(L, kernel);
}

bool
lower_exact_maths(Lower *L, const Node *kernel)
{
  const Node *how = clause_value(kernel, "maths");
  bool exact = how && how->kind == N_NAME && !strcmp(how->name, "exact");
  if (how && !exact)
    ERR(L, how->span, E_ATTRIBUTE, "maths", "maths(exact) takes every function of real numbers at its most exact");
  return exact;
}

u32
lower_warps(Lower *L, const Node *kernel)
{
  const Node *value = clause_or_define(L, kernel, "warps");
  u32 of_teams = teams_declare(L, kernel);
  i64 warps = of_teams ? of_teams : 4;
  Span at = kernel->at;
  if (value) {
    at = value->span;
    if (!lower_const_int(L, value, "the number of warps", &warps))
      return 4;
  }
  if (of_teams && warps != of_teams)
    ERR(L, at, E_TEAMS, arena_printf(L->a, "the kernel has %lld warps, its teams have %u", (long long)warps, of_teams));
  if (of_teams)
    return of_teams;
  if (warps >= 1 && warps <= 32 && is_pow2((u64)warps))
    return (u32)warps;
  ERR(L, at, E_WARPS, (long long)warps);
  return 4;
}

bool
states_warps(const Program *p, const Node *kernel)
{
  const Node *attrs = kid(kernel, 1);
  for (u32 i = 0; i < attrs->nkids; i++)
    if (clause_is(attrs->kids[i], "tune"))
      return true;
  return clause_value(kernel, "warps") || program_define(p, "warps") || kernel_teams(kernel);
}

/* The value of a clause between lo and hi; 0 without the clause. */
u32
lower_limit(Lower *L, const Node *kernel, const char *name, i64 lo, i64 hi)
{
  const Node *value = clause_value(kernel, name);
  i64 n = 0;
  if (!value || !lower_const_int(L, value, name, &n) || (n >= lo && n <= hi))
    return (u32)n;
  const char *why = arena_printf(L->a, "it is between %lld and %lld, not %lld", (long long)lo, (long long)hi, (long long)n);
  ERR(L, value->span, E_ATTRIBUTE, name, why);
  return 0;
}

/* The last clause of that name; NULL: there is none. */
const Node *
clause_find(const Node *kernel, const char *name)
{
  const Node *attrs = kid(kernel, 1), *found = NULL;
  for (u32 i = 0; i < attrs->nkids; i++)
    found = clause_is(attrs->kids[i], name) ? attrs->kids[i] : found;
  return found;
}

void
lower_cluster(Lower *L, const Node *kernel, Func *f)
{
  const Node *clause = clause_find(kernel, "cluster");
  const Target *target = L->c->target;
  i64 dims[3];
  for (u32 i = 0; clause && i < clause->nkids && i < COUNT(dims); i++)
    if (!lower_const_int(L, clause->kids[i], "an extent of the cluster", &dims[i]))
      return;
  const char *wrong = clause ? cluster_error(L->a, clause->nkids, dims) : NULL;
  if (wrong)
    ERR(L, clause->span, E_ATTRIBUTE, "cluster", wrong);
  if (!clause || wrong)
    return;
  for (u32 i = 0; i < clause->nkids; i++)
    f->cluster[i] = (u32)dims[i];
  if (func_cluster(f) > 1 && target && !target_has(target, F_CLUSTER))
    ERR(L, clause->span, E_UNSUPPORTED, arena_printf(L->a, "a cluster of %s programs", cluster_text(L->a, f->cluster)), target->name);
}
