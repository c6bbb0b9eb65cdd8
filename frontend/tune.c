/* tune.c - the configurations that a kernel's head lists for tuning.
 *
 *   kernel matmul(...) warps(8) tune(BM=[64, 128], BN=[64, 128], warps=[4, 8], where=BM * BN <= 8192) key(M, N, K) { ... }
 *
 * A tune(...) stands for all combinations of its values, but for those in which `where` is false; several of them are
 * alternatives. Names are const and type parameters, and `warps`. A name that a define sets keeps that value. key(...) names the
 * arguments by whose values a choice is remembered. Compiling a kernel only checks these clauses; describing lists them. */
#include "sema.h"

enum { CONFIGS_MAX = 4096 };

/* values: a list, or one expression; is_text: of a parameter that is a string. */
typedef struct Axis { const char *name; const Node *values; u32 n, at; bool is_text; } Axis;
/* unit: the kernel's. */
typedef struct Space { VEC(Axis) axes; const Node *where; Unit *unit; } Space;

static Space
space_of(Program *p, Unit *u, const Node *kernel, const Node *clause)
{
  Space s = {.unit = u};
  for (u32 i = 0; i < clause->nkids; i++) {
    const Node *arg = clause->kids[i], *values = kid(arg, 0), *param = kernel_param(kernel, arg->name);
    const Node *absent = param && param->kind == N_CPARAM ? kid(param, 1) : NULL;
    if (!strcmp(arg->name, "where"))
      s.where = values;
    else if (!program_define(p, arg->name)) {
      u32 n = values->kind == N_LIST ? values->nkids : 1;
      vec_push(p->a, &s.axes, ((Axis){arg->name, values, n, 0, absent && absent->kind == N_STR}));
    }
  }
  return s;
}

/* The present value of an axis, as a define has it: a string in quotes, as a define without them is no expression; of an imported kernel
 * a number, as names in defines are those of the main file. */
static const char *
value_text(Program *p, const Space *s, const Axis *x)
{
  const Node *n = x->values->kind == N_LIST ? x->values->kids[x->at] : x->values;
  Frame frame;
  Lower L = lower_new(p, s->unit, &frame, module_new(p->c));
  bool foreign = s->unit != p->main;
  Val v = (x->is_text && n->kind != N_STR) || foreign ? lower_expr(&L, n) : val_void(n->span);
  if (foreign && v.kind == V_CONST)
    return const_str(&L, v.k);
  return v.kind == V_STR ? arena_printf(p->a, "\"%s\"", v.str) : source_on_line(p, n->span.lo, n->span.hi);
}

/* The next combination, the last axis fastest; false after the last. */
static bool
space_next(Space *s)
{
  for (u32 i = s->axes.len; i-- > 0;) {
    if (++s->axes.data[i].at < s->axes.data[i].n)
      return true;
    s->axes.data[i].at = 0;
  }
  return false;
}

/* The options with this combination as further defines. */
static FrontendOptions
options_with(Program *p, const Space *s)
{
  FrontendOptions o = *p->o;
  FrontendDefine *d = NEW_ARRAY(p->a, FrontendDefine, o.ndefines + s->axes.len + 1);
  for (u32 i = 0; i < o.ndefines; i++)
    d[i] = o.defines[i];
  for (u32 i = 0; i < s->axes.len; i++)
    d[o.ndefines++] = (FrontendDefine){s->axes.data[i].name, value_text(p, s, &s->axes.data[i])};
  o.defines = d;
  return o;
}

/* Does the condition hold for this combination? `warps` may stand in it, and whether a pointer is None. False also after
 * reporting an error. */
static bool
holds(Program *p, const Node *kernel, const Space *s)
{
  if (!s->where)
    return true;
  FrontendOptions o = options_with(p, s);
  Program with = *p;
  Frame frame;
  Scope scope, inner;
  with.o = &o;
  Lower L = lower_new(&with, s->unit, &frame, module_new(p->c));
  scope_push(&L, &scope);
  lower_settings(&L, kernel, true);
  arguments_bind(&L, kernel, L.b.func, true);
  scope_push(&L, &inner);
  if (!kernel_param(kernel, "warps"))
    scope_add(&L, intern(p->c, "warps"), kernel->at, val_const(const_int(lower_warps(&L, kernel)), kernel->at));
  Val v = lower_condition(&L, s->where);
  if (v.kind != V_CONST && v.kind != V_POISON)
    ERR(&L, s->where->span, E_NOT_CONST, "the condition of tune");
  return v.kind == V_CONST && v.k.i;
}

static void
list_clause(Program *p, Unit *u, const Node *kernel, const Node *clause, u32 *left, Buf *out)
{
  Space s = space_of(p, u, kernel, clause);
  u32 errors = diag_errors(p->c);
  do {
    if (!*left) {
      diag(p->c, clause->span, E_LIMIT, arena_printf(p->a, "more than %d configurations to tune", CONFIGS_MAX));
      return;
    }
    --*left;
    buf_puts(out, holds(p, kernel, &s) ? "tune" : "skip");
    for (u32 i = 0; i < s.axes.len; i++)
      buf_printf(out, "%c%s=%s", i ? '\t' : ' ', s.axes.data[i].name, value_text(p, &s, &s.axes.data[i]));
    buf_putc(out, '\n');
  } while (diag_errors(p->c) == errors && space_next(&s));
}

void
tune_describe(Program *p, Unit *u, const Node *kernel, Buf *out)
{
  const Node *attrs = kid(kernel, 1);
  u32 left = CONFIGS_MAX;
  for (u32 i = 0; i < attrs->nkids; i++)
    if (clause_is(attrs->kids[i], "tune"))
      list_clause(p, u, kernel, attrs->kids[i], &left, out);
  for (u32 i = 0; i < attrs->nkids; i++)
    for (u32 k = 0; clause_is(attrs->kids[i], "key") && k < attrs->kids[i]->nkids; k++)
      buf_printf(out, "key %s\n", attrs->kids[i]->kids[k]->name);
}
