/* lower_struct.c - structs, and variables of many parts.
 *
 * A struct value is a list of fields, a compile-time thing like a tuple: what exists at run time are the values in it. So it
 * costs nothing to pass one to a function or to return it. A `var` of a struct or tuple is carried by loops and ifs part by
 * part; its parts that are no run-time values (buffers, functions, layouts, types) stay what they were when it was declared. */
#include "hints.h"
#include "sema.h"

/* ---- declared types ---- */

/* v where the source says `: type`, or v itself if it says nothing. */
Val
lower_annotated(Lower *L, Span at, Val v, const Node *type, const char *what, Span declared)
{
  if (!type)
    return v;
  Val t = lower_expr(L, type);
  if (t.kind == V_TYPE)
    return val_assign(L, at, v, t.type, what, declared);
  if (t.kind == V_STRUCT && v.kind == V_RECORD && v.list.of == t.fn.decl)
    return v;
  if (t.kind == V_STRUCT && v.kind != V_POISON) {
    Diag *d = ERR(L, at, E_ASSIGN_TYPE, what, t.fn.decl->name, val_str(L, v));
    diag_note(L->c, d, declared, "%s gets its type %s here", what, t.fn.decl->name);
  } else if (t.kind != V_POISON && t.kind != V_STRUCT) {
    ERR(L, type->span, E_NOT_TYPE, val_str(L, t));
  }
  return val_poison(at);
}

/* ---- making and taking apart ---- */

/* v with parts of its own: values may share theirs. */
static Val
val_copied(Lower *L, Val v)
{
  const Val *from = v.list.v;
  v.list.v = NEW_ARRAY(L->a, Val, v.list.n + 1);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = from[i];
  return v;
}

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
method_hint(Lower *L, Diag *d, const char *name)
{
  const char *advice = hint_find(HINT_FIELD, name);
  if (advice)
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
    method_hint(L, d, n->name);
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
    lower_unknown_prefix(L, n);
    return val_poison(n->span);
  }
  Val x = lower_expr(L, base);
  const Val *field = struct_field(L, x, n);
  if (!field)
    return val_poison(n->span);
  Val v = *field;
  v.from = x.from;
  return v;
}

/* ---- parts ---- */

/* Nothing in v is known only at run time. */
bool
val_is_fixed(Lower *L, Val v)
{
  if (v.kind == V_IR || v.kind == V_BUFFER)
    return false;
  if (val_is_many(v) && lower_spend(L, v.span, v.list.n))
    for (u32 i = 0; i < v.list.n; i++)
      if (!val_is_fixed(L, v.list.v[i]))
        return false;
  return true;
}

/* Known to be the same; of what is computed at run time, and of what has parts, nothing is known. */
bool
val_same(Val a, Val b)
{
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case V_VOID: case V_NONE: return true;
  case V_CONST: return const_equal(a.k, b.k);
  case V_TYPE: return a.type == b.type;
  case V_FN: case V_STRUCT: return a.fn.decl == b.fn.decl;
  case V_BUFFER: return a.ir == b.ir;
  case V_FORMAT: return a.format == b.format;
  case V_LAYOUT: return layout_spec_text(a.layout) == layout_spec_text(b.layout);
  case V_BUILTIN: return a.builtin == b.builtin;
  case V_STR: return !strcmp(a.str, b.str);
  default: return false;
  }
}

/* The run-time values in v, in order. */
void
val_parts(Lower *L, Val v, Values *out)
{
  if (v.kind == V_IR)
    vec_push(L->a, out, v.ir);
  for (u32 i = 0; val_is_many(v) && i < v.list.n; i++)
    val_parts(L, v.list.v[i], out);
}

/* v with other run-time values in it: a copy, as values may share their parts. */
Val
val_with_parts(Lower *L, Val v, Value *const **next)
{
  if (v.kind == V_IR)
    v.ir = *(*next)++;
  if (!val_is_many(v))
    return v;
  v = val_copied(L, v);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = val_with_parts(L, v.list.v[i], next);
  return v;
}

/* ---- variables ---- */

static Val
part_value(Lower *L, Val v)
{
  if (v.kind == V_CONST)
    return val_ir(val_value(L, v), v.span);
  if (!val_is_many(v) || !lower_spend(L, v.span, v.list.n))
    return v;
  v = val_copied(L, v);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = part_value(L, v.list.v[i]);
  return v;
}

/* What a var holds when it is declared with v: constants in it become run-time values. */
Val
var_value(Lower *L, Val v, const char *what)
{
  if (v.kind == V_BUFFER || !(val_is_many(v) || val_need_data(L, v, what))) {
    if (v.kind == V_BUFFER)
      diag_hint(L->c, ERR(L, v.span, E_NOT_VALUE, what, val_str(L, v)), "buffers are named with let");
    return val_poison(v.span);
  }
  return part_value(L, v);
}

static Val
assign_differs(Lower *L, Span at, Val v, Val old, const char *what, Span declared)
{
  Diag *d = ERR(L, at, E_ASSIGN_TYPE, what, val_str(L, old), val_str(L, v));
  if (declared.hi)
    diag_note(L->c, d, declared, "%s is declared here", what);
  if (v.kind == old.kind && !val_is_many(v))
    diag_hint(L->c, d, "only run-time values change in a var; this part must stay the same");
  return val_poison(at);
}

static Val
assign_many(Lower *L, Span at, Val v, Val old, const char *what, Span declared)
{
  if (v.kind != old.kind || v.list.n != old.list.n || v.list.of != old.list.of)
    return assign_differs(L, at, v, old, what, declared);
  v = val_copied(L, v);
  for (u32 i = 0; i < v.list.n; i++) {
    const char *part = old.kind == V_RECORD ? arena_printf(L->a, "%s.%s", what, kid(old.list.of, 0)->kids[i]->name)
                                            : arena_printf(L->a, "%s[%u]", what, i);
    v.list.v[i] = var_assign(L, at, v.list.v[i], old.list.v[i], part, declared);
    if (v.list.v[i].kind == V_POISON)
      return val_poison(at);
  }
  return v;
}

/* v in place of old, a var's value or part of one: run-time parts keep their types, all else stays the same. Poison after reporting. */
Val
var_assign(Lower *L, Span at, Val v, Val old, const char *what, Span declared)
{
  if (v.kind == V_POISON || old.kind == V_POISON)
    return val_poison(at);
  if (val_is_many(old))
    return assign_many(L, at, v, old, what, declared);
  if (old.kind != V_IR)
    return val_same(old, v) ? v : assign_differs(L, at, v, old, what, declared);
  v = val_assign(L, at, v, old.ir->type, what, declared);
  return v.kind == V_CONST ? val_ir(val_value(L, v), v.span) : v;
}
