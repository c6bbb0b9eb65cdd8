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

/* A define of a parameter whose default is a string is one, too. */
static bool
is_word(Val v, const char *word)
{
  return v.kind == V_STR && !strcmp(v.str, word);
}

/* Of one or two digits; -1: it is none. */
static i64
small_number(const char *s)
{
  u32 n = (u32)strspn(s, "0123456789");
  return n < 1 || n > 2 || s[n] ? -1 : n == 1 ? s[0] - '0' : 10 * (s[0] - '0') + (s[1] - '0');
}

/* There is no such clause, or its value is the word auto. */
static bool
is_auto(const Node *kernel, const Node *value)
{
  return !value || (value->kind == N_NAME && !strcmp(value->name, "auto") && !kernel_param(kernel, "auto"));
}

/* At most so many programs a multiprocessor; true: as many as there is room for; false, 0: all of the grid; auto: as the
 * compiler finds best. */
static void
lower_persistent(Lower *L, const Node *kernel, Func *f)
{
  static const char takes[] = "it takes true, false, auto, or at most how many programs a multiprocessor has, up to 32";
  const Node *value = clause_or_define(L, kernel, "persistent");
  if (is_auto(kernel, value))
    return;
  Val v = clause_constant(L, value, "persistent", takes);
  if (v.kind == V_POISON || is_word(v, "auto"))
    return;
  bool truth = is_word(v, "true") || (v.kind == V_CONST && const_is_bool(v.k) && v.k.i);
  i64 most = v.kind == V_CONST && !const_is_float(v.k) ? v.k.i : v.kind == V_STR ? small_number(v.str) : -1;
  if (truth)
    f->persistent = PERSISTENT_MOST;
  else if (most >= 0 && most <= PERSISTENT_MOST)
    f->persistent = (u32)most;
  else if (!is_word(v, "false"))
    ERR(L, value->span, E_ATTRIBUTE, "persistent", takes);
  f->leaves = !f->persistent;
}

/* true, false, or auto: as the compiler finds best. */
static KernelChoice
choice(Lower *L, const Node *kernel, const char *name)
{
  static const char takes[] = "it takes true, false or auto";
  const Node *value = clause_or_define(L, kernel, name);
  if (is_auto(kernel, value))
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
  lower_persistent(L, kernel, f);
  f->roles = choice(L, kernel, "roles");
  f->pingpong = choice(L, kernel, "pingpong");
  f->box_stores = choice(L, kernel, "stores");
}
