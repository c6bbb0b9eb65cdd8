/* lower.c - entry points of the frontend: from a file to kernels. A kernel's compile-time parameters are bound first
 * (defines, then defaults), so that types may be used before they are declared; then come its arguments and body. */
#include "hints.h"
#include "parser.h"
#include "sema.h"
#include <stdio.h>

/* Lowering for names of unit u; what is built goes to a function that is thrown away. */
Lower
lower_new(Program *p, Unit *u, Frame *frame, Module *m)
{
  Func *f = func_new(m, "constants", (Span){0, 0});
  *frame = (Frame){.unit = u};
  return (Lower){.c = p->c, .a = p->a, .prog = p, .b = builder_at_end(f, f->body), .frame = frame};
}

/* ---- file-level constants ---- */

static Val
const_decl_value(Lower *L, const Node *d, Val v)
{
  if (!val_is_fixed(L, v)) {
    not_constant(L, v, arena_printf(L->a, "'%s'", d->name));
    return val_poison(v.span);
  }
  return lower_annotated(L, v.span, v, kid(d, 0), arena_printf(L->a, "'%s'", d->name), d->at);
}

/* The value of a const declaration, computed at its first use in the scope of its file. */
Val
lower_const_decl(Lower *L, Unit *u, u32 index)
{
  Node *d = u->root->kids[index];
  if (u->values[index].kind != V_VOID)
    return u->values[index];
  if (u->computing[index] || L->frame->level >= CALL_DEPTH_MAX) {
    if (u->computing[index])
      ERR(L, d->at, E_RECURSION, d->name);
    else
      ERR(L, d->at, E_LIMIT, "constants need each other more than 64 deep");
    return u->values[index] = val_poison(d->span);
  }
  u->computing[index] = true;
  Frame frame = {.unit = u, .level = L->frame->level + 1};
  Frame *saved = L->frame;
  Scope scope = {0};
  L->frame = &frame;
  frame.scope = &scope;
  Val v = const_decl_value(L, d, lower_expr(L, kid(d, 1)));
  L->frame = saved;
  u->computing[index] = false;
  return u->values[index] = v.kind == V_VOID ? val_poison(v.span) : v;
}

/* ---- a kernel's head ---- */

const FrontendDefine *
program_define(const Program *p, const char *name)
{
  for (u32 i = p->o->ndefines; i-- > 0;)
    if (!strcmp(p->o->defines[i].name, name))
      return &p->o->defines[i];
  return NULL;
}

static bool
is_set_at_compile_time(const Node *param)
{
  return param->kind == N_TPARAM || param->kind == N_CPARAM;
}

/* A -D value, or the default; V_VOID if there is neither. */
static Val
param_setting(Lower *L, const Node *param)
{
  const FrontendDefine *def = program_define(L->prog, param->name);
  Node *value = def ? program_parse_define(L->prog, def) : kid(param, param->kind == N_TPARAM ? 0 : 1);
  if (def && !value)
    return val_poison(param->span);
  return value ? lower_expr(L, value) : val_void(param->span);
}

static Val
check_type_setting(Lower *L, const Node *param, Val v)
{
  if (v.kind == V_TYPE || v.kind == V_POISON)
    return v;
  ERR(L, v.span, E_NOT_TYPE, val_str(L, v));
  return val_poison(param->span);
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
    if (!is_set_at_compile_time(param))
      continue;
    Val v = param_setting(L, param);
    if (v.kind == V_VOID && unset_ok)
      continue;
    if (v.kind == V_VOID) {
      ERR(L, param->at, E_UNSET, kernel->name, param->name, param->name);
      v = val_poison(param->span);
    }
    v = param->kind == N_TPARAM ? check_type_setting(L, param, v) : check_const_setting(L, param, v);
    scope_add(L, param->name, param->at, v);
  }
}

/* What stands in NAME(...) behind the parameters; NULL if nothing does. */
static const Node *
attr_value(const Node *kernel, const char *name)
{
  const Node *attrs = kid(kernel, 1), *value = NULL;
  for (u32 i = 0; i < attrs->nkids; i++)
    if (!strcmp(attrs->kids[i]->name, name))
      value = kid(attrs->kids[i], 0);
  return value;
}

static void
attribute_hint(Lower *L, const Node *attr, const char *may)
{
  const char *advice = hint_find(HINT_ATTR, attr->name);
  Diag *d = ERR(L, attr->span, E_ATTRIBUTE, attr->name, may);
  if (advice)
    diag_hint(L->c, d, "%s", advice);
}

static void
check_attrs(Lower *L, const Node *kernel)
{
  static const struct { const char *name; bool one; } known[] = {
    {"warps", true}, {"min_blocks", true}, {"max_registers", true}, {"tune", false}, {"key", false}
  };
  const Node *attrs = kid(kernel, 1);
  for (u32 i = 0; i < attrs->nkids; i++) {
    bool fits = false;
    for (u32 k = 0; k < COUNT(known); k++)
      fits |= !strcmp(attrs->kids[i]->name, known[k].name) && (!known[k].one || attrs->kids[i]->nkids == 1);
    if (!fits)
      attribute_hint(L, attrs->kids[i], "a kernel may have warps(n), min_blocks(n), max_registers(n), tune(...) and key(...)");
  }
  tune_check(L, kernel);
}

u32
lower_warps(Lower *L, const Node *kernel)
{
  const Node *value = attr_value(kernel, "warps");
  i64 warps = 4;
  Span at = kernel->at;
  const FrontendDefine *def = scope_find(L, intern(L->c, "warps")) ? NULL : program_define(L->prog, "warps");
  if (def)
    value = program_parse_define(L->prog, def);
  if (value) {
    at = value->span;
    if (!lower_const_int(L, value, "the number of warps", &warps))
      return 4;
  }
  if (warps >= 1 && warps <= 32 && is_pow2((u64)warps))
    return (u32)warps;
  ERR(L, at, E_WARPS, (long long)warps);
  return 4;
}

/* The value of a clause between lo and hi; 0 without the clause. */
static u32
lower_limit(Lower *L, const Node *kernel, const char *name, i64 lo, i64 hi)
{
  const Node *value = attr_value(kernel, name);
  i64 n = 0;
  if (!value || !lower_const_int(L, value, name, &n) || (n >= lo && n <= hi))
    return (u32)n;
  ERR(L, value->span, E_ATTRIBUTE, name, arena_printf(L->a, "it is between %lld and %lld", (long long)lo, (long long)hi));
  return 0;
}

/* ---- arguments ---- */

static u32
known_divisible(Lower *L, const Node *param)
{
  u64 d = 1;
  const Node *facts = kid(param, 2);
  for (u32 i = 0; facts && i < facts->nkids; i++) {
    i64 n;
    const Node *fact = facts->kids[i];
    if (strcmp(fact->name, "multiple_of") != 0 || fact->nkids != 1)
      attribute_hint(L, fact, "a parameter may have multiple_of(n)");
    else if (lower_const_int(L, kid(fact, 0), "multiple_of", &n) && n > 0 && n <= 1 << 30)
      d = (u64)n;
  }
  const FrontendOptions *o = L->prog->o;
  for (u32 i = 0; i < o->nfacts; i++)
    if (!o->facts[i].equal && !strcmp(o->facts[i].name, param->name) && o->facts[i].value > 0 && o->facts[i].value <= 1 << 30)
      d = (u64)o->facts[i].value > d ? (u64)o->facts[i].value : d;
  return (u32)d;
}

/* The constant a fact says the argument equals; the parameter itself otherwise. */
static Val
known_value(Lower *L, const Node *param, Value *v)
{
  const FrontendOptions *o = L->prog->o;
  for (u32 i = 0; i < o->nfacts; i++) {
    if (!o->facts[i].equal || strcmp(o->facts[i].name, param->name) != 0)
      continue;
    Const k;
    if (!type_is_ptr(v->type) && const_cast(const_int(o->facts[i].value), v->type->dt, ROUND_NEAREST, false, &k))
      return val_const(k, param->span);
    ERR(L, param->at, E_MISUSE, arena_printf(L->a, "the fact about '%s' does not fit its type %s", param->name,
                                             type_str(L->c, v->type)));
  }
  return val_ir(v, param->span);
}

static void
bind_argument(Lower *L, Func *f, const Node *param)
{
  const Type *t = kid(param, 0) ? lower_type(L, kid(param, 0)) : NULL;
  if (!kid(param, 0))
    ERR(L, param->at, E_PARAM, param->name, "has no type", "");
  else if (t && type_is_tile(t))
    ERR(L, kid(param, 0)->span, E_PARAM, param->name, "is a tile", "; pass a pointer and load it");
  if (kid(param, 1))
    ERR(L, kid(param, 1)->span, E_PARAM, param->name, "has a default", "; only const and type parameters may have one");
  if (!t || type_is_tile(t)) {
    scope_add(L, param->name, param->at, val_poison(param->span));
    return;
  }
  Value *v = func_add_param(f, t, param->name, known_divisible(L, param));
  scope_add(L, param->name, param->at, known_value(L, param, v));
}

/* ---- kernels ---- */

static void
lower_kernel(Program *p, Unit *u, Node *kernel, Module *m)
{
  Func *f = func_new(m, kernel->name, kernel->at);
  Frame frame = {.unit = u, .decl = kernel};
  Lower L = {.c = p->c, .a = p->a, .prog = p, .b = builder_at_end(f, f->body), .frame = &frame};
  Scope outer, inner;
  scope_push(&L, &outer);
  lower_settings(&L, kernel, false);
  check_attrs(&L, kernel);
  f->warps = lower_warps(&L, kernel);
  f->min_blocks = lower_limit(&L, kernel, "min_blocks", 1, 32);
  f->max_registers = lower_limit(&L, kernel, "max_registers", 16, 255);
  const Node *params = kid(kernel, 0);
  for (u32 i = 0; i < params->nkids; i++)
    if (params->kids[i]->kind == N_PARAM)
      bind_argument(&L, f, params->kids[i]);
  scope_push(&L, &inner);
  bool returned;
  Val v = lower_body(&L, kid(kernel, 2), &returned);
  if (v.kind != V_VOID && v.kind != V_POISON)
    ERR(&L, v.span, E_RETURN, "a kernel returns nothing");
  op_create(&L.b, OP_RETURN, 0, NULL, 0, NULL, 0);
  buffers_check(&L, f);
}

/* ---- names given from outside ---- */

static bool
any_param(const Unit *u, const char *name, bool settings)
{
  for (u32 i = 0; i < u->root->nkids; i++) {
    const Node *k = u->root->kids[i];
    for (u32 j = 0; k->kind == N_KERNEL && j < kid(k, 0)->nkids; j++) {
      const Node *param = kid(k, 0)->kids[j];
      if (!strcmp(param->name, name) && is_set_at_compile_time(param) == settings)
        return true;
    }
  }
  return false;
}

typedef VEC(const char *) Names;

/* Report a name given from outside that nothing has; names: what there is. */
static void
unknown_given(Program *p, const char *message, const char *name, const Names *names)
{
  const char *close = diag_suggest(name, names->data, names->len);
  Diag *d = diag(p->c, (Span){0, 0}, E_MISUSE, message);
  Buf b = {.arena = p->a};
  for (u32 i = 0; i < names->len && i < 12; i++)
    buf_printf(&b, "%s%s", i ? ", " : "", names->data[i]);
  if (close)
    diag_hint(p->c, d, "did you mean '%s'?", close);
  else if (names->len)
    diag_note(p->c, d, (Span){0, 0}, "there %s: %s%s", names->len == 1 ? "is" : "are", buf_str(&b), names->len > 12 ? ", ..." : "");
}

static bool
is_wanted(const Program *p, const Node *d)
{
  return d->kind == N_KERNEL && (!p->o->kernel || !strcmp(p->o->kernel, d->name));
}

static void
add_name(Program *p, Names *names, const char *name)
{
  for (u32 i = 0; i < names->len; i++)
    if (names->data[i] == name)
      return;
  vec_push(p->a, names, name);
}

static void
unknown_param(Program *p, const char *name, bool settings)
{
  Names names = {0};
  for (u32 i = 0; i < p->main->root->nkids; i++) {
    const Node *k = p->main->root->kids[i];
    for (u32 j = 0; is_wanted(p, k) && j < kid(k, 0)->nkids; j++)
      if (is_set_at_compile_time(kid(k, 0)->kids[j]) == settings)
        add_name(p, &names, kid(k, 0)->kids[j]->name);
  }
  unknown_given(p, arena_printf(p->a, "no kernel has %s '%s'", settings ? "a const or type parameter" : "an argument", name),
                name, &names);
}

static void
check_options(Program *p)
{
  const FrontendOptions *o = p->o;
  for (u32 i = 0; i < o->ndefines; i++)
    if (strcmp(o->defines[i].name, "warps") != 0 && !any_param(p->main, o->defines[i].name, true))
      unknown_param(p, o->defines[i].name, true);
  for (u32 i = 0; i < o->nfacts; i++)
    if (!any_param(p->main, o->facts[i].name, false))
      unknown_param(p, o->facts[i].name, false);
}

/* A file or a wanted kernel that is not there. */
static void
check_wanted(Program *p)
{
  Names names = {0};
  for (u32 i = 0; i < p->main->root->nkids; i++) {
    if (is_wanted(p, p->main->root->kids[i]))
      return;
    if (p->main->root->kids[i]->kind == N_KERNEL)
      vec_push(p->a, &names, p->main->root->kids[i]->name);
  }
  if (!p->o->kernel) {
    diag(p->c, p->main->root->span, E_MISUSE, "the file has no kernel");
    return;
  }
  unknown_given(p, arena_printf(p->a, "no kernel '%s'", p->o->kernel), p->o->kernel, &names);
}

/* Function bodies have no types until they are called, but a kernel, a type and a const are checked where they stand. */
static void
check_consts(Program *p)
{
  Frame frame;
  Lower L = lower_new(p, p->main, &frame, module_new(p->c));
  for (u32 i = 0; i < p->main->root->nkids; i++)
    if (p->main->root->kids[i]->kind == N_CONST)
      lower_const_decl(&L, p->main, i);
}

/* Parse, instantiate and check. Reports every error; NULL if there were any. */
Module *
frontend_compile(Ctx *c, u32 base, const FrontendOptions *o)
{
  Program *p = program_load(c, base, o);
  if (!p)
    return NULL;
  u32 before = diag_errors(c);
  check_options(p);
  check_wanted(p);
  check_consts(p);
  Module *m = module_new(c);
  for (u32 i = 0; i < p->main->root->nkids; i++)
    if (is_wanted(p, p->main->root->kids[i]))
      lower_kernel(p, p->main, p->main->root->kids[i], m);
  return diag_errors(c) == before ? m : NULL;
}

/* The syntax tree as text; false after reporting errors. */
bool
frontend_print_ast(Ctx *c, u32 base, Buf *out)
{
  Node *root = parse_file(c, c->scratch, base);
  if (root)
    ast_print(out, root);
  return root != NULL;
}

/* ---- describing ---- */

static const char *
source_of(Program *p, const Node *n)
{
  const char *text = source_text(p->c, p->main->base);
  u32 lo = n->span.lo - p->main->base;
  return arena_strndup(p->a, text + lo, n->span.hi - n->span.lo);
}

static void
describe_argument(Lower *L, const Node *param, Buf *out)
{
  u32 errors = diag_errors(L->c);
  const Node *tn = kid(param, 0);
  bool ptr = tn && tn->kind == N_PTR;
  const Node *base = ptr ? kid(tn, 0) : tn;
  const Binding *unset = base && base->kind == N_NAME ? scope_find(L, base->name) : NULL;
  bool is_unset = base && base->kind == N_NAME && !unset && any_param(L->prog->main, base->name, true);
  const Type *t = tn && !is_unset ? lower_type(L, tn) : NULL;
  if (t && type_is_tile(t))
    ERR(L, tn->span, E_PARAM, param->name, "is a tile", "; pass a pointer and load it");
  if (!tn)
    ERR(L, param->at, E_PARAM, param->name, "has no type", "");
  if (diag_errors(L->c) == errors)
    buf_printf(out, "param %s %s %s\n", param->name, (t ? type_is_ptr(t) : ptr) ? "pointer" : "scalar",
               t ? dtype_info[t->dt].name : base->name);
}

static void
describe_setting(Lower *L, const Node *param, Buf *out)
{
  const Binding *b = scope_find(L, param->name);
  Val v = b ? b->val : val_void(param->span);
  if (param->kind == N_TPARAM) {
    buf_printf(out, "type %s %s\n", param->name, v.kind == V_TYPE ? type_str(L->c, v.type) : "-");
    return;
  }
  if (v.kind == V_LAYOUT) {
    buf_printf(out, "const %s layout %s\n", param->name, layout_spec_text(v.layout));
    return;
  }
  if (v.kind == V_FORMAT) {
    buf_printf(out, "const %s format %s\n", param->name, v.format->name);
    return;
  }
  const char *type = kid(param, 0) ? source_of(L->prog, kid(param, 0))
                   : v.kind == V_CONST ? dtype_info[num_dtype(L, val_num(v), &v.k)].name : "i32";
  buf_printf(out, "const %s %s %s\n", param->name, type, v.kind == V_CONST ? const_str(L, v.k) : "-");
}

static void
describe_kernel(Program *p, Unit *u, const Node *kernel, Buf *out)
{
  Frame frame;
  Lower L = lower_new(p, u, &frame, module_new(p->c));
  Scope scope;
  scope_push(&L, &scope);
  lower_settings(&L, kernel, true);
  bool unset = false;
  for (u32 i = 0; i < kid(kernel, 0)->nkids; i++)
    unset |= is_set_at_compile_time(kid(kernel, 0)->kids[i]) && !scope_find(&L, kid(kernel, 0)->kids[i]->name);
  if (unset && attr_value(kernel, "warps") && attr_value(kernel, "warps")->kind != N_INT)
    buf_printf(out, "kernel %s warps=-\n", kernel->name);
  else
    buf_printf(out, "kernel %s warps=%u\n", kernel->name, lower_warps(&L, kernel));
  for (u32 i = 0; i < kid(kernel, 0)->nkids; i++) {
    const Node *param = kid(kernel, 0)->kids[i];
    if (is_set_at_compile_time(param))
      describe_setting(&L, param, out);
    else
      describe_argument(&L, param, out);
  }
  u32 errors = diag_errors(p->c);
  check_attrs(&L, kernel);
  if (p->o->tuning && diag_errors(p->c) == errors)
    tune_describe(p, kernel, out);
}

/* One line per kernel, parameter, type and const parameter; false after reporting errors. */
bool
frontend_describe(Ctx *c, u32 base, const FrontendOptions *o, Buf *out)
{
  Program *p = program_load(c, base, o);
  if (!p)
    return false;
  u32 before = diag_errors(c);
  check_options(p);
  check_wanted(p);
  for (u32 i = 0; i < p->main->root->nkids; i++)
    if (is_wanted(p, p->main->root->kids[i]))
      describe_kernel(p, p->main, p->main->root->kids[i], out);
  return diag_errors(c) == before;
}
