/* lower.c - entry points of the frontend: from a file to kernels. A kernel's compile-time parameters are bound first
 * (defines, then defaults), so that types may be used before they are declared; then come its arguments and body. */
#include "parser.h"
#include "sema.h"

static void
lower_kernel(Program *p, Unit *u, Node *kernel, Module *m)
{
  Func *f = func_new(m, kernel->name, kernel->at);
  Frame frame = {.unit = u, .decl = kernel};
  Lower L = {.c = p->c, .a = p->a, .prog = p, .b = builder_at_end(f, f->body), .frame = &frame};
  Scope outer, inner;
  f->warps = 0;          /* nobody may ask yet */
  scope_push(&L, &outer);
  lower_settings(&L, kernel, false);
  clauses_check(&L, kernel);
  f->warps = lower_warps(&L, kernel);
  lower_cluster(&L, kernel, f);
  f->min_blocks = lower_limit(&L, kernel, "min_blocks", 1, 32);
  lower_choices(&L, kernel, f);
  L.exact_maths = lower_exact_maths(&L, kernel);
  f->max_registers = lower_limit(&L, kernel, "max_registers", 16, 255);
  u32 errors = diag_errors(p->c);
  arguments_bind(&L, kernel, f, false);
  if (diag_errors(p->c) == errors)
    lower_grid(&L, kernel, f);
  scope_push(&L, &inner);
  bool returned;
  Val v = lower_body(&L, kid(kernel, 2), &returned);
  if (v.kind != V_VOID && v.kind != V_POISON)
    ERR(&L, v.span, E_RETURN, "a kernel returns nothing");
  op_create(&L.b, OP_RETURN, 0, NULL, 0, NULL, 0);
  buffers_check(&L, f);
  teams_check(&L, f);
  if (diag_errors(p->c) == errors)       /* else some may be missing */
    arrivals_check(&L, f);
  clusters_check(&L, f);
  wgmmas_check(&L, f);
  if (diag_errors(p->c) == errors)
    rehearsal_check(&L, f);
  if (!states_warps(p, kernel))
    f->warps = warps_by_tiles(f);
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
  for (u32 i = 0; i < p->kernels.len; i++)
    if (options_want(p, p->kernels.data[i].node))
      lower_kernel(p, p->kernels.data[i].unit, p->kernels.data[i].node, m);
  if (diag_errors(c) == before)
    options_check_parts(p, m);
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
