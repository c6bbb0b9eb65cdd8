#include "internal.h"
#include "names.h"
#include <stdlib.h>
#include <string.h>

static uint32_t
name_hash(const char *s, uint32_t n)
{
  uint32_t h = 2166136261u;
  for (uint32_t i = 0; i < n; i++)
    h = (h ^ (uint8_t)s[i]) * 16777619u;
  return h;
}

Sym *
names_find(const Names *t, const char *s, uint32_t n)
{
  for (uint32_t i = chains_first(&t->chains, name_hash(s, n)); i; i = chains_next(&t->chains, i)) {
    Sym *sym = &t->sym[i - 1];
    if (sym->n == n && memcmp(sym->s, s, n) == 0)
      return sym;
  }
  return NULL;
}

Sym *
names_add(Names *t, const char *s, uint32_t n, SymKind kind)
{
  if (!sim_vec_grow(&t->sym, &t->cap, t->n + 1, sizeof *t->sym) || !chains_add(&t->chains, name_hash(s, n)))
    return NULL;
  t->sym[t->n] = (Sym){.s = s, .n = n, .kind = (uint8_t)kind};
  return &t->sym[t->n++];
}

void
names_cut(Names *t, size_t n)
{
  chains_cut(&t->chains, n);
  while (t->n > n)
    free(t->sym[--t->n].slots);
}

void
names_free(Names *t)
{
  names_cut(t, 0);
  free(t->sym);
  chains_free(&t->chains);
}
