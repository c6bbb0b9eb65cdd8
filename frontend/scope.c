/* scope.c - the scopes of a frame. A name means the innermost binding. Names are interned: they are equal if their pointers are. */
#include "sema.h"

enum { FEW = 16 };              /* so many are looked through one by one */

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

/* The place of name in the index: its binding, or a free slot. */
static Binding **
slot_of(const Scope *s, const char *name)
{
  u32 i = name_hash(name) & (s->cap - 1);
  while (s->index[i] && s->index[i]->name != name)
    i = (i + 1) & (s->cap - 1);
  return &s->index[i];
}

static void
make_index(Arena *a, Scope *s)
{
  s->cap = next_pow2(4 * s->last->place);
  s->index = NEW_ARRAY(a, Binding *, s->cap);
  for (Binding *b = s->last; b; b = b->next) {
    Binding **slot = slot_of(s, b->name);
    *slot = *slot ? *slot : b;
  }
}

/* Add a binding, which hides an older one of that name. */
Binding *
scope_put(Arena *a, Scope *s, const char *name, Span at, Val v)
{
  Binding *b = NEW(a, Binding);
  *b = (Binding){.name = name, .span = at, .val = v, .place = s->last ? s->last->place + 1 : 1, .next = s->last};
  s->last = b;
  if (s->index && b->place * 2 < s->cap)
    *slot_of(s, name) = b;
  else if (b->place > FEW)
    make_index(a, s);
  return b;
}

void
scope_cut(Arena *a, Scope *s, Binding *last)
{
  bool same = s->last == last;
  s->last = last;
  if (same || !s->index)
    return;
  s->index = NULL;
  if (last && last->place > FEW)
    make_index(a, s);
}

/* The binding of name in s itself, or NULL. */
Binding *
scope_find_here(const Scope *s, const char *name)
{
  if (s->index)
    return *slot_of(s, name);
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
