/* describe.c - what a launcher has to know of a file without compiling it: its kernels, their parameters and configurations. */
#include "sema.h"

typedef struct Describe { Program *p; Unit *unit; const Node *kernel; Buf *out; } Describe;

/* Is this name written anywhere below n, of whatever it is? */
static bool
mentions(const Node *n, const char *name)
{
  bool found = n && n->name == name;
  for (u32 i = 0; n && i < n->nkids && !found; i++)
    found = mentions(n->kids[i], name);
  return found;
}

/* A number that the body never asks for: its clauses do, which a launch computes. */
static bool
unread(const Describe *d, const char *path, const Type *t)
{
  return type_is_int(t) && !mentions(kid(d->kernel, 2), intern_n(d->p->c, path, strcspn(path, ".")));
}

static void
describe_argument(void *user, const char *path, const Type *t, const char *dtype)
{
  Describe *d = user;
  bool pointer = type_is_ptr(t);
  if (type_is_tensor(t)) {
    buf_printf(d->out, "param %s tensor tensor<%s, %u>\n", path, dtype, t->rank);
    return;
  }
  buf_printf(d->out, "param %s %s %s\n", path, pointer ? "pointer" : "scalar", dtype);
  if (pointer && kernel_asks_none(d->p, d->unit, d->kernel, path))
    buf_printf(d->out, "null %s\n", path);
  if (!pointer && unread(d, path, t))
    buf_printf(d->out, "unread %s\n", path);
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
    buf_printf(out, "const %s layout %s\n", param->name, v.layout->text);
    return;
  }
  if (v.kind == V_FORMAT) {
    buf_printf(out, "const %s format %s\n", param->name, v.format->name);
    return;
  }
  if (v.kind == V_STR) {
    buf_printf(out, "const %s string \"%s\"\n", param->name, v.str);
    return;
  }
  const char *type = kid(param, 0) ? source_on_line(L->prog, kid(param, 0)->span.lo, kid(param, 0)->span.hi)
                   : v.kind == V_CONST ? dtype_info[num_dtype(L, val_num(v), &v.k)].name : "i32";
  buf_printf(out, "const %s %s %s\n", param->name, type, v.kind == V_CONST ? const_str(L, v.k) : "-");
}

static void
describe_kernel(Program *p, Unit *u, const Node *kernel, Buf *out)
{
  Frame frame;
  Describe d = {p, u, kernel, out};
  Lower L = lower_new(p, u, &frame, module_new(p->c));
  Scope scope;
  scope_push(&L, &scope);
  lower_settings(&L, kernel, true);
  bool unset = false;
  for (u32 i = 0; i < kid(kernel, 0)->nkids; i++)
    unset |= param_is_setting(kid(kernel, 0)->kids[i]) && !scope_find(&L, kid(kernel, 0)->kids[i]->name);
  bool computed = kernel_teams(kernel) || (clause_value(kernel, "warps") && clause_value(kernel, "warps")->kind != N_INT);
  if ((unset && computed) || !states_warps(p, kernel))
    buf_printf(out, "kernel %s warps=-\n", kernel->name);
  else
    buf_printf(out, "kernel %s warps=%u\n", kernel->name, lower_warps(&L, kernel));
  for (u32 i = 0; i < kid(kernel, 0)->nkids; i++) {
    const Node *param = kid(kernel, 0)->kids[i];
    if (param_is_setting(param))
      describe_setting(&L, param, out);
    else
      arguments_list(&L, param, describe_argument, &d);
  }
  const Node *grid = clause_find(kernel, "grid");
  if (grid && grid->nkids)
    buf_printf(out, "grid %s\n", source_on_line(p, grid->kids[0]->span.lo, grid->kids[grid->nkids - 1]->span.hi));
  u32 errors = diag_errors(p->c);
  clauses_check(&L, kernel);
  if (p->o->tuning && diag_errors(p->c) == errors)
    tune_describe(p, u, kernel, out);
}

/* One line per kernel, parameter, type and const parameter; false after reporting errors. */
bool
frontend_describe(Ctx *c, u32 base, const FrontendOptions *o, Buf *out)
{
  Program *p = program_load(c, base, o);
  if (!p)
    return false;
  u32 before = diag_errors(c);
  options_check(p);
  for (u32 i = 0; i < p->kernels.len; i++)
    if (options_want(p, p->kernels.data[i].node))
      describe_kernel(p, p->kernels.data[i].unit, p->kernels.data[i].node, out);
  return diag_errors(c) == before;
}
