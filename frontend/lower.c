/* lower.c - entry points of the frontend: from a file to kernels. A kernel's compile-time parameters are bound first
 * (defines, then defaults), so that types may be used before they are declared; then come its arguments and body. */
#include "parser.h"
#include "sema.h"

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
      clause_error(L, fact, "a parameter may have multiple_of(n)");
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
  clauses_check(&L, kernel);
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
  options_check(p);
  check_consts(p);
  Module *m = module_new(c);
  for (u32 i = 0; i < p->main->root->nkids; i++)
    if (options_want(p, p->main->root->kids[i]))
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
