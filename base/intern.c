/* intern.c - one copy of every text, so that equal texts are equal pointers. Open addressing, linear probing. */
#include "base.h"

typedef struct InternSlot { const char *s; size_t len; u32 hash; } InternSlot;
typedef struct InternTable { InternSlot *slots; u32 cap, len; } InternTable;

static u32
hash_bytes(const char *s, size_t n)
{
  u32 h = 2166136261u;
  for (size_t i = 0; i < n; i++)
    h = (h ^ (u8)s[i]) * 16777619u;
  return h;
}

static InternSlot *
slot_find(const InternTable *t, const char *s, size_t n, u32 hash)
{
  u32 i = hash & (t->cap - 1);
  for (;; i = (i + 1) & (t->cap - 1)) {
    InternSlot *slot = &t->slots[i];
    if (!slot->s || (slot->hash == hash && slot->len == n && !memcmp(slot->s, s, n)))
      return slot;
  }
}

static void
table_grow(Ctx *c, InternTable *t)
{
  InternTable old = *t;
  t->cap = old.cap ? old.cap * 2 : 256;
  t->slots = NEW_ARRAY(c->perm, InternSlot, t->cap);
  for (u32 i = 0; i < old.cap; i++)
    if (old.slots[i].s)
      *slot_find(t, old.slots[i].s, old.slots[i].len, old.slots[i].hash) = old.slots[i];
}

/* The one copy of n bytes at s. */
const char *
intern_n(Ctx *c, const char *s, size_t n)
{
  if (!c->interned)
    c->interned = NEW(c->perm, InternTable);
  InternTable *t = c->interned;
  if (t->len * 4 >= t->cap * 3)
    table_grow(c, t);
  u32 hash = hash_bytes(s, n);
  InternSlot *slot = slot_find(t, s, n, hash);
  if (!slot->s) {
    *slot = (InternSlot){arena_strndup(c->perm, s, n), n, hash};
    t->len++;
  }
  return slot->s;
}

/* The one copy of s. */
const char *
intern(Ctx *c, const char *s)
{
  return intern_n(c, s, strlen(s));
}
