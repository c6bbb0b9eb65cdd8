/* variables.c - variables of many parts.
 *
 * A `var` of a struct or tuple is carried by loops and ifs part by part; its parts that are no run-time values (buffers, functions,
 * layouts, types) stay what they were when it was declared. */
#include "sema.h"

/* Nothing in v is known only at run time. */
bool
val_is_fixed(Lower *L, Val v)
{
  if (v.kind == V_IR || val_is_memory(v))
    return false;
  for (const Binding *b = v.kind == V_FN && v.fn.env ? v.fn.env->last : NULL; b; b = b->next)
    if (!val_is_fixed(L, b->val))
      return false;
  if (val_is_many(v) && lower_spend(L, v.span, v.list.n))
    for (u32 i = 0; i < v.list.n; i++)
      if (!val_is_fixed(L, v.list.v[i]))
        return false;
  return true;
}

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
  if (val_is_memory(v) || !(val_is_many(v) || val_need_data(L, v, what))) {
    if (val_is_memory(v))
      diag_hint(L->c, ERR(L, v.span, E_NOT_VALUE, what, val_str(L, v)), "buffers and tensors are named with let");
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
