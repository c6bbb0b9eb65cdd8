/* optional.c - which of its pointers a kernel asks about: `bias == None`, in its body, its clauses or what these call.
 *
 * A launcher has to know before anything is compiled, as the answer is part of what is compiled. So the text is asked, without types
 * and whatever its compile-time conditions say: who is told of a pointer too many only compiles twice. What is followed is a part
 * of an argument by its path (a.bias), through names, tuples, structs and parameters of functions. */
#include "sema.h"

/* A name whose value holds the pointer at `path` inside it: components from the outside on; what a function makes of such a value may hold
 * it anywhere. */
typedef struct Path { const char *const *part; u32 n; bool anywhere; } Path;
typedef struct Holder { const char *name; Path path; } Holder;
typedef struct Visited { const Node *decl; const char *name; u32 n; bool anywhere; } Visited;
typedef VEC(Visited) VisitedList;
typedef struct Query {
  Program *p;
  Unit *unit;
  VEC(Holder) holders;
  VisitedList *visited;
  bool asked, grown;
} Query;

static bool
is_component(const Path *r, const char *name)
{
  return r->anywhere || (r->n && r->part[0] == name);
}

static Path
inner(Path r)
{
  return r.anywhere ? r : (Path){r.part + 1, r.n - 1, false};
}

/* r inside component `name` of something larger. */
static Path
outer(Query *q, const char *name, Path r)
{
  const char **part = NEW_ARRAY(q->p->a, const char *, r.n + 1);
  part[0] = name;
  for (u32 i = 0; i < r.n; i++)
    part[i + 1] = r.part[i];
  return r.anywhere ? r : (Path){part, r.n + 1, false};
}

static const char *
component(Query *q, u32 i)
{
  return intern(q->p->c, arena_printf(q->p->a, "%u", i));
}

/* ---- what holds it ---- */

static bool holds(Query *q, const Node *e, Path *r);

static void
add_holder(Query *q, const char *name, Path r)
{
  for (u32 i = 0; i < q->holders.len; i++) {
    Path *old = &q->holders.data[i].path;
    if (q->holders.data[i].name != name)
      continue;
    bool same = old->anywhere || (!r.anywhere && old->n == r.n);
    for (u32 k = 0; same && !old->anywhere && k < r.n; k++)
      same = old->part[k] == r.part[k];
    q->grown |= !same;
    old->anywhere |= !same;
    return;
  }
  vec_push(q->p->a, &q->holders, ((Holder){name, r}));
  q->grown = true;
}

/* The declaration that a call names: a function or struct of a file; NULL: none. */
static const Node *
callee_of(Query *q, const Node *call, Unit **unit)
{
  const Node *f = kid(call, 0);
  u32 index;
  if (f->kind != N_NAME || !program_find(q->p, q->unit, f->name, unit, &index))
    return NULL;
  const Node *d = (*unit)->root->kids[index];
  return d->kind == N_FN || d->kind == N_STRUCT ? d : NULL;
}

/* The parameter or field that child i of a call is for; NULL: there is none. */
static const char *
slot_name(const Node *call, const Node *decl, u32 i)
{
  const Node *params = kid(decl, 0), *arg = call->kids[i];
  return arg->kind == N_ARG ? arg->name : i - 1 < params->nkids ? params->kids[i - 1]->name : NULL;
}

static bool
call_holds(Query *q, const Node *e, Path *r)
{
  Unit *unit;
  const Node *d = callee_of(q, e, &unit);
  for (u32 i = 1; d && i < e->nkids; i++) {
    const char *name = slot_name(e, d, i);
    if (!name || !holds(q, e->kids[i], r))
      continue;
    *r = d->kind == N_STRUCT ? outer(q, name, *r) : (Path){.anywhere = true};
    return true;
  }
  return false;
}

static bool
items_hold(Query *q, const Node *e, Path *r)
{
  for (u32 i = 0; i < e->nkids; i++)
    if (holds(q, e->kids[i], r)) {
      *r = outer(q, component(q, i), *r);
      return true;
    }
  return false;
}

static bool
name_holds(const Query *q, const char *name, Path *r)
{
  for (u32 i = 0; i < q->holders.len; i++)
    if (q->holders.data[i].name == name) {
      *r = q->holders.data[i].path;
      return true;
    }
  return false;
}

static bool
index_holds(Query *q, const Node *e, Path *r)
{
  const Node *i = kid(e, 1);
  if (!holds(q, kid(e, 0), r))
    return false;
  if (i->kind != N_INT)
    return *r = (Path){.anywhere = true}, true;
  bool there = is_component(r, component(q, (u32)i->ival));
  *r = there ? inner(*r) : *r;
  return there;
}

static bool
holds(Query *q, const Node *e, Path *r)
{
  switch (e->kind) {
  case N_NAME: return name_holds(q, e->name, r);
  case N_ARG: return holds(q, kid(e, 0), r);
  case N_FIELD:
    if (!holds(q, kid(e, 0), r) || !is_component(r, e->name))
      return false;
    *r = inner(*r);
    return true;
  case N_INDEX: return index_holds(q, e, r);
  case N_TUPLE: case N_LIST: return items_hold(q, e, r);
  case N_COND: return holds(q, kid(e, 1), r) || holds(q, kid(e, 2), r);
  case N_CALL: return call_holds(q, e, r);
  case N_BINARY:                               /* tuples that are joined; a pointer and an offset are another pointer */
    if ((!holds(q, kid(e, 0), r) && !holds(q, kid(e, 1), r)) || (!r->anywhere && !r->n))
      return false;
    *r = (Path){.anywhere = true};
    return true;
  default: return false;
  }
}

/* ---- what asks ---- */

static void visit(Query *q, const Node *n);

static bool
asks(Program *p, Unit *unit, const Node *decl, Holder first, VisitedList *visited)
{
  for (u32 i = 0; i < visited->len; i++) {
    Visited v = visited->data[i];
    if (v.decl == decl && v.name == first.name && v.n == first.path.n && v.anywhere == first.path.anywhere)
      return false;
  }
  vec_push(p->a, visited, ((Visited){decl, first.name, first.path.n, first.path.anywhere}));
  Query q = {.p = p, .unit = unit, .visited = visited};
  vec_push(p->a, &q.holders, first);
  do {
    q.grown = false;
    for (u32 i = 0; i < decl->nkids; i++)
      visit(&q, decl->kids[i]);
  } while (q.grown && !q.asked);
  return q.asked;
}

/* What a function that is a value (a parameter, a constant, a field) does with a pointer, or with a struct of it, is not looked for: it may
 * ask. Of numbers that were made with a pointer it does not. */
static bool
is_of_a_value(const Node *call, const Node *decl)
{
  const Node *f = kid(call, 0);
  return !decl && (f->kind != N_NAME || !builtin_find(f->name));
}

static void
visit_call(Query *q, const Node *e)
{
  Unit *unit;
  Path r;
  const Node *d = callee_of(q, e, &unit);
  for (u32 i = 1; is_of_a_value(e, d) && i < e->nkids; i++)
    q->asked |= holds(q, e->kids[i], &r) && !r.anywhere;
  for (u32 i = 1; d && d->kind == N_FN && i < e->nkids; i++) {
    const char *name = slot_name(e, d, i);
    if (name && holds(q, e->kids[i], &r))
      q->asked |= asks(q->p, unit, d, (Holder){name, r}, q->visited);
  }
}

static void
visit_comparison(Query *q, const Node *e)
{
  Path r;
  for (u32 i = 0; i < 2; i++)
    if (kid(e, i)->kind == N_NONE && holds(q, kid(e, !i), &r))
      q->asked |= r.anywhere || !r.n;
}

/* Names for the parts of what holds it at r: kids of list from `first` on. */
static void
bind_parts(Query *q, const Node *list, u32 first, Path r)
{
  for (u32 i = first; i < list->nkids; i++) {
    const Node *to = list->kids[i];
    if (!is_component(&r, component(q, i - first)))
      continue;
    if (to->kind == N_LIST || to->kind == N_TUPLE)
      bind_parts(q, to, 0, inner(r));
    else if (to->kind == N_NAME)
      add_holder(q, to->name, inner(r));
  }
}

static void
visit_assign(Query *q, const Node *n)
{
  const Node *to = kid(n, 0);
  Path r;
  if (!holds(q, kid(n, 1), &r))
    return;
  if (to->kind == N_TUPLE)
    bind_parts(q, to, 0, r);
  else if (to->kind == N_NAME)
    add_holder(q, to->name, r);
  else if (ast_root(to)->kind == N_NAME)
    add_holder(q, ast_root(to)->name, (Path){.anywhere = true});
}

static void
visit(Query *q, const Node *n)
{
  Path r;
  if (!n || q->asked)
    return;
  if (n->kind == N_BINARY && (n->op == O_EQ || n->op == O_NE))
    visit_comparison(q, n);
  else if (n->kind == N_CALL)
    visit_call(q, n);
  else if ((n->kind == N_LET || n->kind == N_VAR) && holds(q, kid(n, 1), &r))
    add_holder(q, n->name, r);
  else if ((n->kind == N_LETS || n->kind == N_VARS) && holds(q, kid(n, 0), &r))
    bind_parts(q, n, 1, r);
  else if (n->kind == N_ASSIGN && n->op == O_NONE)
    visit_assign(q, n);
  for (u32 i = 0; i < n->nkids; i++)
    visit(q, n->kids[i]);
}

/* The kernel of unit u may ask whether the part of its arguments at this path (a.bias) is None. */
bool
kernel_asks_none(Program *p, Unit *u, const Node *kernel, const char *path)
{
  VEC(const char *) parts = {0};
  VisitedList visited = {0};
  for (const char *s = path; *s; s += *s == '.') {
    size_t n = strcspn(s, ".");
    vec_push(p->a, &parts, intern_n(p->c, s, n));
    s += n;
  }
  return asks(p, u, kernel, (Holder){parts.data[0], {parts.data + 1, parts.len - 1, false}}, &visited);
}
