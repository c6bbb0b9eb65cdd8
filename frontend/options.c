/* options.c - names given from outside: the kernel that is wanted, its defines and facts. */
#include "sema.h"

/* A kernel has a parameter of that name, known at compile time (settings) or an argument. */
bool
program_has_param(const Program *p, const char *name, bool settings)
{
  for (u32 i = 0; i < p->kernels.len; i++) {
    const Node *k = p->kernels.data[i].node;
    for (u32 j = 0; j < kid(k, 0)->nkids; j++) {
      const Node *param = kid(k, 0)->kids[j];
      if (!strcmp(param->name, name) && param_is_setting(param) == settings)
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

/* Kernel d is to be compiled. */
bool
options_want(const Program *p, const Node *d)
{
  return !p->o->kernel || !strcmp(p->o->kernel, d->name);
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
  for (u32 i = 0; i < p->kernels.len; i++) {
    const Node *k = p->kernels.data[i].node;
    for (u32 j = 0; options_want(p, k) && j < kid(k, 0)->nkids; j++)
      if (param_is_setting(kid(k, 0)->kids[j]) == settings)
        add_name(p, &names, kid(k, 0)->kids[j]->name);
  }
  unknown_given(p, arena_printf(p->a, "no kernel has %s '%s'", settings ? "a const or type parameter" : "an argument", name),
                name, &names);
}

/* Of a.base: a. */
static const char *
argument_name(const Program *p, const char *path)
{
  return arena_strndup(p->a, path, strcspn(path, "."));
}

static void
check_argument(Program *p, const char *path)
{
  if (!program_has_param(p, argument_name(p, path), false))
    unknown_param(p, path, false);
}

static void
check_names(Program *p)
{
  const FrontendOptions *o = p->o;
  for (u32 i = 0; i < o->ndefines; i++)
    if (!is_clause(o->defines[i].name) && !program_has_param(p, o->defines[i].name, true) &&
        !program_has_param(p, argument_name(p, o->defines[i].name), false))
      unknown_param(p, o->defines[i].name, true);
  for (u32 i = 0; i < o->nfacts; i++) {
    check_argument(p, o->facts[i].name);
    if (o->facts[i].kind == FACT_SAME)
      check_argument(p, o->facts[i].other);
  }
}

/* A file or a wanted kernel that is not there. */
static void
check_wanted(Program *p)
{
  Names names = {0};
  for (u32 i = 0; i < p->kernels.len; i++) {
    if (options_want(p, p->kernels.data[i].node))
      return;
    vec_push(p->a, &names, p->kernels.data[i].node->name);
  }
  if (!p->o->kernel) {
    Diag *d = diag(p->c, p->main->root->span, E_MISUSE, "the file has no kernel");
    for (u32 i = 0; i < p->main->root->nkids; i++)
      if (p->main->root->kids[i]->kind == N_FN) {
        diag_hint(p->c, d, "a function is compiled where a kernel calls it; what is launched is a `kernel %s(...) { ... }`",
                  p->main->root->kids[i]->name);
        break;
      }
    return;
  }
  unknown_given(p, arena_printf(p->a, "no kernel '%s'", p->o->kernel), p->o->kernel, &names);
}

/* Report what the options ask for that the file does not have. */
void
options_check(Program *p)
{
  check_names(p);
  check_wanted(p);
}

/* A part of an argument that a fact or define names (shape.0) has become a parameter of a kernel, or is reported. */
static void
check_part(Program *p, const Module *m, const char *path)
{
  Names names = {0};
  for (u32 i = 0; strchr(path, '.') && i < m->funcs.len; i++) {
    const Block *b = m->funcs.data[i]->body;
    for (u32 k = 0; k < b->nargs; k++) {
      if (!strcmp(b->args[k]->name, path))
        return;
      vec_push(p->a, &names, b->args[k]->name);
    }
  }
  if (names.len)
    unknown_given(p, arena_printf(p->a, "no kernel has an argument '%s'", path), path, &names);
}

static void
check_fact(Program *p, const Module *m, const FrontendFact *f)
{
  check_part(p, m, f->name);
  if (f->kind == FACT_SAME)
    check_part(p, m, f->other);
}

/* Once the kernels are lowered. */
void
options_check_parts(Program *p, const Module *m)
{
  for (u32 i = 0; i < p->o->nfacts; i++)
    check_fact(p, m, &p->o->facts[i]);
  for (u32 i = 0; i < p->o->ndefines; i++)
    check_part(p, m, p->o->defines[i].name);
}
