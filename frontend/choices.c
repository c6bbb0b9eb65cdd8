/* choices.c - clauses of a kernel's head that choose a form of it, which a `tune` clause may do as well: each is a constant expression. */
#include "sema.h"
#include <string.h>

static Val
clause_constant(Lower *L, const Node *value, const char *name, const char *takes)
{
  Val v = lower_expr(L, value);
  if (v.kind == V_IR)
    not_constant(L, v, name);
  else if (v.kind != V_CONST && v.kind != V_STR && v.kind != V_POISON)
    ERR(L, value->span, E_ATTRIBUTE, name, takes);
  return v.kind == V_CONST || v.kind == V_STR ? v : val_poison(value->span);
}

/* At most so many programs a multiprocessor; true: as many as there is room for; false, 0: all of the grid. */
static u32
persistent_programs(Lower *L, const Node *kernel)
{
  static const char takes[] = "it takes true, false, or at most how many programs a multiprocessor has, up to 32";
  const Node *value = clause_value(kernel, "persistent");
  Val v = value ? clause_constant(L, value, "persistent", takes) : val_poison(kernel->span);
  if (v.kind == V_POISON)
    return 0;
  if (v.kind == V_CONST && const_is_bool(v.k))
    return v.k.i ? PERSISTENT_MOST : 0;
  if (v.kind == V_CONST && !const_is_float(v.k) && v.k.i >= 0 && v.k.i <= PERSISTENT_MOST)
    return (u32)v.k.i;
  ERR(L, value->span, E_ATTRIBUTE, "persistent", takes);
  return 0;
}

/* A define of a parameter whose default is a string is one, too. */
static bool
is_word(Val v, const char *word)
{
  return v.kind == V_STR && !strcmp(v.str, word);
}

/* true, false, or auto: as the compiler finds best. */
static KernelChoice
choice(Lower *L, const Node *kernel, const char *name)
{
  static const char takes[] = "it takes true, false or auto";
  const Node *value = clause_value(kernel, name);
  if (!value || (value->kind == N_NAME && !strcmp(value->name, "auto") && !kernel_param(kernel, "auto")))
    return CHOICE_AUTO;
  Val v = clause_constant(L, value, name, takes);
  if (v.kind == V_POISON || is_word(v, "auto"))
    return CHOICE_AUTO;
  if (is_word(v, "true") || is_word(v, "false"))
    return is_word(v, "true") ? CHOICE_ON : CHOICE_OFF;
  if (v.kind == V_CONST && const_is_bool(v.k))
    return v.k.i ? CHOICE_ON : CHOICE_OFF;
  ERR(L, value->span, E_ATTRIBUTE, name, takes);
  return CHOICE_AUTO;
}

void
lower_choices(Lower *L, const Node *kernel, Func *f)
{
  f->persistent = persistent_programs(L, kernel);
  f->roles = choice(L, kernel, "roles");
  f->box_stores = choice(L, kernel, "stores");
}
