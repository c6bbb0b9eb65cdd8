/* site.c - the calls that were inlined: each once, in a table by number, found by hashing. */
#include "base.h"

typedef struct SiteTable {
  VEC(Site) sites;           /* site n is entry n - 1 */
  u32 *slots, nslots;        /* numbers by hash; 0: free */
} SiteTable;

static bool
same(Site a, Site b)
{
  return a.call.lo == b.call.lo && a.call.hi == b.call.hi && a.call.site == b.call.site && a.function == b.function;
}

static u32 *
slot_of(const SiteTable *t, Site s)
{
  u64 h = (s.call.lo * 0x9e3779b97f4a7c15ull ^ s.call.site) * 0x9e3779b97f4a7c15ull ^ (uintptr_t)s.function;
  u32 i = (u32)(h * 0x9e3779b97f4a7c15ull >> 32);
  while (t->slots[i & (t->nslots - 1)] && !same(t->sites.data[t->slots[i & (t->nslots - 1)] - 1], s))
    i++;
  return &t->slots[i & (t->nslots - 1)];
}

static void
grow(Ctx *c, SiteTable *t)
{
  t->nslots = t->nslots ? 2 * t->nslots : 64;
  t->slots = NEW_ARRAY(c->perm, u32, t->nslots);
  for (u32 i = 0; i < t->sites.len; i++)
    *slot_of(t, t->sites.data[i]) = i + 1;
}

u32
site_add(Ctx *c, Span call, const char *function)
{
  if (!c->sites)
    c->sites = NEW(c->perm, SiteTable);
  SiteTable *t = c->sites;
  if (4 * t->sites.len >= 3 * t->nslots)
    grow(c, t);
  Site s = {call, intern(c, function)};
  u32 *slot = slot_of(t, s);
  if (!*slot) {
    vec_push(c->perm, &t->sites, s);
    *slot = t->sites.len;
  }
  return *slot;
}

Site
site_get(Ctx *c, u32 site)
{
  if (!c->sites || !site || site > c->sites->sites.len)
    ctx_panic(c, "there is no call site %u", site);
  return c->sites->sites.data[site - 1];
}

Span
site_in_program(Ctx *c, Span at)
{
  Span s = at;
  while (s.site && source_locate(c, s.lo).kind == SOURCE_LIBRARY)
    s = site_get(c, s.site).call;
  return source_locate(c, s.lo).kind == SOURCE_LIBRARY ? at : s;
}
