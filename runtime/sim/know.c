/* know.c - what a warp knows of other blocks: clocks by block, as a tree that is never changed.
 *
 * Two trees are joined by walking both where they differ; parts that they share are recognised by their address. So a warp
 * that waits for the same block again and again makes nothing new, and a chain of blocks of which each knows all before it costs
 * a path for each, not a table. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { FAN_BITS = 4, FAN = 1 << FAN_BITS };

/* A leaf has the clocks of a block's agents, as many as the launch counts; any other node its children. */
struct Know { uint32_t refs; bool leaf; Know *child[]; };

static uint32_t *
clocks_of(const Know *leaf)
{
  return (uint32_t *)(uintptr_t)leaf->child;
}

uint32_t
know_levels(uint64_t nblocks)
{
  uint32_t n = 0;
  while (n < 16 && nblocks > 1ull << (FAN_BITS * n))
    n++;
  return n;
}

Know *
know_share(Know *k)
{
  if (k)
    k->refs++;
  return k;
}

void
know_drop(Know *k)
{
  if (!k || --k->refs)
    return;
  for (uint32_t i = 0; !k->leaf && i < FAN; i++)
    know_drop(k->child[i]);
  free(k);
}

static Know *
node_new(const Launch *l, bool leaf, bool *failed)
{
  Know *k = calloc(1, sizeof *k + (leaf ? l->nclocks * sizeof(uint32_t) : FAN * sizeof *k->child));
  if (!k) {
    *failed = true;
    return NULL;
  }
  k->refs = 1;
  k->leaf = leaf;
  return k;
}

/* Whether a's clocks are nowhere behind b's. */
static bool
covers(const Know *a, const Know *b, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (clocks_of(a)[i] < clocks_of(b)[i])
      return false;
  return true;
}

static Know *
join_leaves(const Launch *l, Know *a, Know *b, bool *failed)
{
  if (covers(a, b, l->nclocks))
    return know_share(a);
  if (covers(b, a, l->nclocks))
    return know_share(b);
  Know *k = node_new(l, true, failed);
  for (uint32_t i = 0; k && i < l->nclocks; i++)
    clocks_of(k)[i] = clocks_of(a)[i] > clocks_of(b)[i] ? clocks_of(a)[i] : clocks_of(b)[i];
  return k;
}

Know *
know_join(const Launch *l, Know *a, Know *b, bool *failed)
{
  if (a == b || !b)
    return know_share(a);
  if (!a)
    return know_share(b);
  if (a->leaf)
    return join_leaves(l, a, b, failed);
  Know *child[FAN];
  bool is_a = true, is_b = true;
  for (uint32_t i = 0; i < FAN; i++) {
    child[i] = know_join(l, a->child[i], b->child[i], failed);
    is_a &= child[i] == a->child[i];
    is_b &= child[i] == b->child[i];
  }
  Know *k = is_a ? know_share(a) : is_b ? know_share(b) : node_new(l, false, failed);
  for (uint32_t i = 0; i < FAN; i++)
    if (k && !is_a && !is_b)
      k->child[i] = child[i];
    else
      know_drop(child[i]);
  return k;
}

static Know *
with_at(const Launch *l, const Know *a, uint32_t level, uint64_t block, const uint32_t *clock, bool *failed)
{
  Know *k = node_new(l, level == 0, failed);
  if (!k)
    return NULL;
  if (level == 0) {
    for (uint32_t i = 0; i < l->nclocks; i++)
      clocks_of(k)[i] = a && clocks_of(a)[i] > clock[i] ? clocks_of(a)[i] : clock[i];
    return k;
  }
  uint32_t at = (uint32_t)(block >> (FAN_BITS * (level - 1))) % FAN;
  for (uint32_t i = 0; a && i < FAN; i++)
    k->child[i] = i == at ? NULL : know_share(a->child[i]);
  k->child[at] = with_at(l, a ? a->child[at] : NULL, level - 1, block, clock, failed);
  return k;
}

Know *
know_with(const Launch *l, Know *a, uint64_t block, const uint32_t *clock, bool *failed)
{
  const uint32_t *old = know_clocks(l, a, block);
  bool same = old != NULL;
  for (uint32_t i = 0; same && i < l->nclocks; i++)
    same = old[i] >= clock[i];
  return same ? know_share(a) : with_at(l, a, l->know_levels, block, clock, failed);
}

const uint32_t *
know_clocks(const Launch *l, const Know *k, uint64_t block)
{
  for (uint32_t level = l->know_levels; k && level > 0; level--)
    k = k->child[block >> (FAN_BITS * (level - 1)) & (FAN - 1)];
  return k ? clocks_of(k) : NULL;
}
