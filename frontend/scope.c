/* scope.c - the scopes of a frame. A name means the innermost binding. */
#include "sema.h"

/* Open a scope inside the current one; s lives until scope_pop. */
void
scope_push(Lower *L, Scope *s)
{
  *s = (Scope){.up = L->frame->scope};
  L->frame->scope = s;
}

/* Close the innermost scope. */
void
scope_pop(Lower *L)
{
  L->frame->scope = L->frame->scope->up;
}

/* The binding of name in s itself, or NULL. */
Binding *
scope_find_here(const Scope *s, const char *name)
{
  for (Binding *b = s->last; b; b = b->next)
    if (b->name == name)
      return b;
  return NULL;
}

/* The innermost local binding of name, or NULL. */
Binding *
scope_find(const Lower *L, const char *name)
{
  for (const Scope *s = L->frame->scope; s; s = s->up) {
    Binding *b = scope_find_here(s, name);
    if (b)
      return b;
  }
  return NULL;
}
