/* chains.c - see chains.h. */
#include "chains.h"
#include "internal.h"
#include <stdlib.h>

static uint32_t *
bucket_of(const Chains *c, uint32_t hash)
{
  return &c->bucket[hash & (c->nbuckets - 1)];
}

static uint32_t
of_hash(const Chains *c, uint32_t i, uint32_t hash)
{
  while (i && c->link[i - 1].hash != hash)
    i = c->link[i - 1].next;
  return i;
}

uint32_t
chains_first(const Chains *c, uint32_t hash)
{
  return c->nbuckets ? of_hash(c, *bucket_of(c, hash), hash) : 0;
}

uint32_t
chains_next(const Chains *c, uint32_t i)
{
  return of_hash(c, c->link[i - 1].next, c->link[i - 1].hash);
}

static void
link_number(Chains *c, size_t i)
{
  uint32_t *head = bucket_of(c, c->link[i].hash);
  c->link[i].next = *head;
  *head = (uint32_t)i + 1;
}

/* Twice the buckets; numbers go in from the oldest, so that the newest comes first. */
static bool
rehash(Chains *c)
{
  size_t n = c->nbuckets ? 2 * c->nbuckets : 64;
  uint32_t *grown = calloc(n, sizeof *grown);
  if (!grown)
    return false;
  free(c->bucket);
  c->bucket = grown;
  c->nbuckets = n;
  for (size_t i = 0; i < c->n; i++)
    link_number(c, i);
  return true;
}

bool
chains_add(Chains *c, uint32_t hash)
{
  if (!sim_vec_grow(&c->link, &c->cap, c->n + 1, sizeof *c->link) || (c->n >= c->nbuckets && !rehash(c)))
    return false;
  c->link[c->n].hash = hash;
  link_number(c, c->n++);
  return true;
}

void
chains_cut(Chains *c, size_t n)
{
  while (c->n > n) {
    const ChainLink *l = &c->link[--c->n];
    *bucket_of(c, l->hash) = l->next;                /* the newest is first in its bucket */
  }
}

void
chains_free(Chains *c)
{
  free(c->bucket);
  free(c->link);
}
