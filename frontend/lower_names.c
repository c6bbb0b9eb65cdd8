/* lower_names.c - scopes, and what a name means: the innermost binding, then declarations of files, then what the
 * language itself defines. */
#include "hints.h"
#include "sema.h"
#include <math.h>

/* Bind name in the innermost scope; an error if that has it already, unless it is `_`, for what nobody asks for. */
Binding *
scope_add(Lower *L, const char *name, Span at, Val v)
{
  Scope *s = L->frame->scope;
  Binding *old = scope_find_here(s, name);
  if (old && strcmp(name, "_") != 0)
    diag_note(L->c, ERR(L, at, E_REDEFINED, name), old->span, "it was declared here");
  if ((v.kind == V_IR || v.kind == V_BUFFER) && !v.ir->name)
    v.ir->name = name;
  return scope_put(L->a, s, name, at, v);
}

/* ---- names that are not there ---- */

enum { WORDS_MAX = 100 };       /* behind so many errors nobody looks for what was meant */

typedef VEC(const char *) Names;

static void
collect_unit(Lower *L, Names *names, const Unit *u)
{
  for (u32 i = 0; i < u->root->nkids; i++)
    if (u->root->kids[i] && u->root->kids[i]->name && u->root->kids[i]->kind != N_IMPORT)
      vec_push(L->a, names, u->root->kids[i]->name);
}

static void
collect_local(Lower *L, Names *names)
{
  for (const Scope *s = L->frame->scope; s; s = s->up)
    for (const Binding *b = s->last; b; b = b->next)
      vec_push(L->a, names, b->name);
  collect_unit(L, names, L->frame->unit);
  for (u32 i = 0; i < L->frame->unit->imports.len; i++)
    collect_unit(L, names, L->frame->unit->imports.data[i]);
}

static void
collect_language(Lower *L, Names *names)
{
  for (u32 i = 0; i < stdlib_ndecls; i++)
    vec_push(L->a, names, stdlib_decls[i].name);
  u32 n;
  const char *const *builtins = builtin_names(L->a, &n);
  for (u32 i = 0; i < n; i++)
    vec_push(L->a, names, builtins[i]);
  for (int d = 0; d < DT_COUNT; d++)
    vec_push(L->a, names, dtype_info[d].name);
}

/* The closest name visible here, or, if local is false, of the library and the language; NULL if none is close. */
static const char *
close_name(Lower *L, const char *name, bool local)
{
  Names names = {0};
  if (local)
    collect_local(L, &names);
  collect_language(L, &names);
  return diag_suggest(name, names.data, names.len);
}

static bool
is_range(const char *name)
{
  return !strcmp(name, "range") || !strcmp(name, "static_range");
}

/* A `let` or `var` of n's name in front of it, in a block that has ended; NULL if there is none. */
static const Node *
declaration_of(const Node *tree, const Node *n)
{
  const Node *found = NULL;
  for (u32 i = 0; i < tree->nkids && !found; i++) {
    const Node *kid = tree->kids[i];
    if (!kid || kid->span.lo >= n->at.lo)
      continue;
    found = (kid->kind == N_LET || kid->kind == N_VAR) && kid->name == n->name ? kid : declaration_of(kid, n);
  }
  return found;
}

/* Report a name that nothing declares. */
void
lower_unknown_name(Lower *L, const Node *n)
{
  const char *is = hint_find(HINT_IS, n->name), *advice = hint_find(HINT_NAME, n->name);
  bool words = diag_errors(L->c) < WORDS_MAX;
  if (!is && !advice && words)
    is = close_name(L, n->name, true);
  const Node *ended = L->frame->decl && words ? declaration_of(L->frame->decl, n) : NULL;
  Diag *d = ERR(L, n->at, E_UNKNOWN_NAME, n->name);
  if (ended) {
    diag_note(L->c, d, ended->at, "this one ends with its block");
    diag_hint(L->c, d, "declare it in front of the block: var %s = ...", n->name);
  } else if (is)
    diag_hint(L->c, d, "did you mean '%s'?", is);
  else if (advice)
    diag_hint(L->c, d, "%s", advice);
}

/* Of a prefix that another language has it is said once that there is none. */
static bool
prefix_is_new(Lower *L, const char *name)
{
  Program *p = L->prog;
  for (u32 i = 0; i < p->prefixes.len; i++)
    if (p->prefixes.data[i] == name)
      return false;
  vec_push(p->a, &p->prefixes, name);
  return true;
}

/* Report base.name where nothing declares base: a prefix of another language, or a misspelt struct. What is meant is taken up without
 * it: the name, NULL if that is not to be known. */
const char *
lower_unknown_prefix(Lower *L, const Node *n)
{
  const Node *base = ast_root(n);
  const char *prefix = hint_find(HINT_PREFIX, base->name), *is = hint_find(HINT_IS, n->name), *advice = hint_find(HINT_NAME, n->name);
  if (!prefix) {
    lower_unknown_name(L, base);
    return NULL;
  }
  Node plain = {.kind = N_NAME, .name = n->name, .at = n->at, .span = n->at};
  bool exact = is || lower_is_known(L, &plain) || is_range(n->name);
  if (!is && !advice)
    is = exact ? n->name : close_name(L, n->name, false);
  const char *meant = exact && is ? intern(L->c, is) : NULL;
  if (!prefix_is_new(L, base->name) && meant)
    return meant;
  Diag *d = ERR(L, base->span, E_UNKNOWN_NAME, base->name);
  if (is)
    diag_hint(L->c, d, "functions have no prefix: write %s, not %s.%s", is, base->name, n->name);
  else
    diag_hint(L->c, d, "%s", advice ? advice : prefix);
  return meant;
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

/* ---- names that are ---- */

static Val
decl_value(Lower *L, const Node *n, Unit *u, u32 index)
{
  Node *d = u->root->kids[index];
  if (d->kind == N_CONST)
    return lower_const_decl(L, u, index);
  if (d->kind == N_FN)
    return (Val){.kind = V_FN, .fn = {d, u}};
  if (d->kind == N_STRUCT)
    return (Val){.kind = V_STRUCT, .fn = {d, u}};
  Diag *e = ERR(L, n->at, E_NOT_VALUE, arena_printf(L->a, "'%s'", n->name), "a kernel");
  diag_note(L->c, e, d->at, "declared here");
  return val_poison(n->span);
}

static bool
predeclared(Lower *L, const char *name, Val *out)
{
  DType dt;
  if (dtype_find(name, &dt))
    *out = val_type(type_scalar(L->c, dt), (Span){0, 0});
  else if (packed_find(name))
    *out = (Val){.kind = V_FORMAT, .format = packed_find(name)};
  else if (!strcmp(name, "inf"))
    *out = val_const((Const){.form = CF_FLOAT, .f = INFINITY}, (Span){0, 0});
  else if (!strcmp(name, "nan"))
    *out = val_const((Const){.form = CF_FLOAT, .f = NAN}, (Span){0, 0});
  else if (builtin_find(name))
    *out = (Val){.kind = V_BUILTIN, .builtin = builtin_find(name)};
  else
    return false;
  return true;
}

/* Something declares the name of NAME node n. */
bool
lower_is_known(Lower *L, const Node *n)
{
  Val v;
  Unit *u;
  u32 index;
  return scope_find(L, n->name) || program_find(L->prog, L->frame->unit, n->name, &u, &index) || predeclared(L, n->name, &v);
}

/* What the NAME node n stands for. */
Val
lower_name(Lower *L, const Node *n)
{
  Val v;
  Unit *u;
  u32 index;
  const Binding *b = scope_find(L, n->name);
  if (b) {
    v = b->val;
    v.from = b->span;
  } else if (program_find(L->prog, L->frame->unit, n->name, &u, &index)) {
    v = decl_value(L, n, u, index);
    v.from = u->root->kids[index]->at;
  } else if (!predeclared(L, n->name, &v)) {
    lower_unknown_name(L, n);
    return val_poison(n->span);
  }
  v.span = n->span;
  return v;
}
