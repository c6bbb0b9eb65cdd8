/* lower_struct.c - structs, and declared types.
 *
 * A struct value is a list of fields, a compile-time thing like a tuple: what exists at run time are the values in it. So it
 * costs nothing to pass one to a function or to return it. */
#include "hints.h"
#include "sema.h"

/* ---- declared types ---- */

static Val
annotated(Lower *L, Span at, Val v, Val t, Span type, const char *what, Span declared);

static Val
has_type(Lower *L, Span at, Val v, const char *type, const char *what, Span declared)
{
  Diag *d = ERR(L, at, E_ASSIGN_TYPE, what, type, val_str(L, v));
  diag_note(L->c, d, declared, "%s gets its type %s here", what, type);
  return val_poison(at);
}

/* v where t, a tuple of types, is declared. */
static Val
annotated_parts(Lower *L, Span at, Val v, Val t, Span type, const char *what, Span declared)
{
  if (v.kind != V_TUPLE || v.list.n != t.list.n)
    return has_type(L, at, v, val_str(L, t), what, declared);
  v = val_copied(L, v);
  for (u32 i = 0; i < v.list.n; i++) {
    v.list.v[i] = annotated(L, at, v.list.v[i], t.list.v[i], type, arena_printf(L->a, "%s[%u]", what, i), declared);
    if (v.list.v[i].kind == V_POISON)
      return val_poison(at);
  }
  return v;
}

/* v where t, written at `type`, is declared: a type, a struct, or a tuple of these. A pointer may be None. */
static Val
annotated(Lower *L, Span at, Val v, Val t, Span type, const char *what, Span declared)
{
  if (v.kind == V_POISON || t.kind == V_POISON)
    return val_poison(at);
  if (t.kind == V_TYPE && t.type->kind == TY_PTR && v.kind == V_NONE)
    return v;
  if (t.kind == V_TYPE && type_is_tensor(t.type))
    return v.kind == V_TENSOR && v.ir->type == t.type ? v : has_type(L, at, v, type_str(L->c, t.type), what, declared);
  if (t.kind == V_TYPE)
    return val_assign(L, at, v, t.type, what, declared);
  if (t.kind == V_TUPLE)
    return annotated_parts(L, at, v, t, type, what, declared);
  if (t.kind == V_STRUCT && v.kind == V_RECORD && v.list.of == t.fn.decl)
    return v;
  if (t.kind == V_STRUCT)
    return has_type(L, at, v, t.fn.decl->name, what, declared);
  ERR(L, type, E_NOT_TYPE, val_str(L, t));
  return val_poison(at);
}

/* v where the source says `: type`, or v itself if it says nothing. */
Val
lower_annotated(Lower *L, Span at, Val v, const Node *type, const char *what, Span declared)
{
  return type ? annotated(L, at, v, lower_expr(L, type), type->span, what, declared) : v;
}

/* ---- making and taking apart ---- */

static Val
field_value(Lower *L, const Node *decl, const Node *field, Val v, Span at)
{
  if (v.kind == V_VOID && kid(field, 1))
    v = lower_expr(L, kid(field, 1));
  if (v.kind == V_VOID) {
    Diag *d = ERR(L, at, E_ARGUMENTS, decl->name, arena_printf(L->a, "it needs '%s'", field->name));
    diag_note(L->c, d, field->at, "declared here");
    return val_poison(at);
  }
  return lower_annotated(L, v.span, v, kid(field, 0), arena_printf(L->a, "'%s'", field->name), field->at);
}

/* Name(field, name=field): types and defaults of fields mean what they mean in the file of the struct. */
Val
lower_struct(Lower *L, const Node *n, Val decl)
{
  const Node *fields = kid(decl.fn.decl, 0);
  Val *given = lower_args(L, n, decl.fn.decl->name, fields), v = {.kind = V_RECORD, .span = n->span};
  if (!given)
    return val_poison(n->span);
  Frame frame = {.unit = decl.fn.unit, .call = n->span, .up = L->frame, .level = L->frame->level + 1};
  Frame *saved = L->frame;
  v.list.of = decl.fn.decl;
  v.list.n = fields->nkids;
  v.list.v = given;
  if (frame.level > CALL_DEPTH_MAX) {
    ERR(L, n->span, E_LIMIT, "calls are nested more than 64 deep");
    return val_poison(n->span);
  }
  L->frame = &frame;
  for (u32 i = 0; i < fields->nkids; i++)
    given[i] = field_value(L, decl.fn.decl, fields->kids[i], given[i], n->span);
  L->frame = saved;
  return v;
}

static void
field_hint(Lower *L, Diag *d, const Node *decl, const char *name)
{
  const Node *fields = kid(decl, 0);
  const char **names = NEW_ARRAY(L->a, const char *, fields->nkids + 1);
  for (u32 i = 0; i < fields->nkids; i++)
    names[i] = fields->kids[i]->name;
  const char *close = diag_suggest(name, names, fields->nkids);
  diag_note(L->c, d, decl->at, "declared here");
  if (close)
    diag_hint(L->c, d, "did you mean '%s'?", close);
}

/* x.name, where x is no struct. */
static void
method_hint(Lower *L, Diag *d, Val x, const char *name)
{
  const char *advice = hint_find(HINT_FIELD, name);
  if (x.kind == V_CONST)
    diag_hint(L->c, d, "a range is written range(0, n)");
  else if (advice)
    diag_hint(L->c, d, "%s", advice);
  else if (builtin_find(name))
    diag_hint(L->c, d, "functions are called %s(x), not x.%s()", name, name);
  else
    diag_hint(L->c, d, "only structs have fields; functions are called f(x), not x.f()");
}

/* The field of x that n (x.name) names; NULL after reporting. */
const Val *
struct_field(Lower *L, Val x, const Node *n)
{
  if (x.kind == V_POISON)
    return NULL;
  const Node *fields = x.kind == V_RECORD ? kid(x.list.of, 0) : NULL;
  for (u32 i = 0; fields && i < x.list.n; i++)
    if (fields->kids[i]->name == n->name)
      return &x.list.v[i];
  Diag *d = ERR(L, n->at, E_FIELD, val_str(L, x), n->name);
  if (fields)
    field_hint(L, d, x.list.of, n->name);
  else
    method_hint(L, d, x, n->name);
  return NULL;
}

/* The record x with another value in the field that n names. */
Val
struct_with(Lower *L, Val x, const Node *n, Val field)
{
  const Val *old = struct_field(L, x, n);
  if (!old)
    return val_poison(n->span);
  Val made = val_copied(L, x);
  made.list.v[old - x.list.v] = field;
  return made;
}

/* x.name */
Val
lower_field(Lower *L, const Node *n)
{
  const Node *base = kid(n, 0), *root = ast_root(n);
  if (root->kind == N_NAME && !lower_is_known(L, root)) {
    Node plain = {.kind = N_NAME, .name = lower_unknown_prefix(L, n), .at = n->at, .span = n->at};
    return plain.name && lower_is_known(L, &plain) ? lower_name(L, &plain) : val_poison(n->span);
  }
  Val x = lower_expr(L, base);
  const Val *field = struct_field(L, x, n);
  if (!field)
    return val_poison(n->span);
  Val v = *field;
  v.from = x.from;
  return v;
}
