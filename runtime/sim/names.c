#include "internal.h"
#include "names.h"
#include <stdlib.h>
#include <string.h>

uint32_t
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
  if (!t->nbuckets)
    return NULL;
  uint32_t h = name_hash(s, n);
  for (uint32_t i = t->bucket[h & (t->nbuckets - 1)]; i; i = t->sym[i - 1].next) {
    Sym *sym = &t->sym[i - 1];
    if (sym->hash == h && sym->n == n && memcmp(sym->s, s, n) == 0)
      return sym;
  }
  return NULL;
}

static void
link_symbol(Names *t, size_t i)
{
  uint32_t *head = &t->bucket[t->sym[i].hash & (t->nbuckets - 1)];
  t->sym[i].next = *head;
  *head = (uint32_t)i + 1;
}

/* Twice the buckets; symbols go in from the oldest, so that the newest comes first. */
static bool
rehash(Names *t)
{
  size_t n = t->nbuckets ? 2 * t->nbuckets : 64;
  uint32_t *grown = calloc(n, sizeof *grown);
  if (!grown)
    return false;
  free(t->bucket);
  t->bucket = grown;
  t->nbuckets = n;
  for (size_t i = 0; i < t->n; i++)
    link_symbol(t, i);
  return true;
}

Sym *
names_add(Names *t, const char *s, uint32_t n, SymKind kind)
{
  if (!sim_vec_grow(&t->sym, &t->cap, t->n + 1, sizeof *t->sym) || (t->n >= t->nbuckets && !rehash(t)))
    return NULL;
  t->sym[t->n] = (Sym){.s = s, .n = n, .hash = name_hash(s, n), .kind = (uint8_t)kind};
  link_symbol(t, t->n);
  return &t->sym[t->n++];
}

void
names_cut(Names *t, size_t n)
{
  while (t->n > n) {
    Sym *sym = &t->sym[--t->n];
    t->bucket[sym->hash & (t->nbuckets - 1)] = sym->next;      /* the newest is first in its bucket */
    free(sym->slots);
  }
}

void
names_free(Names *t)
{
  names_cut(t, 0);
  free(t->sym);
  free(t->bucket);
}
