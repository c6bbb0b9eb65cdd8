/* limits.c - how deep and how large a kernel may become. A limit that is passed is reported once and stops everything. */
#include "sema.h"

static void
stop_at(Lower *L, Span at, const char *what)
{
  if (!L->stopped)
    ERR(L, at, E_LIMIT, what);
  L->stopped = true;
}

/* Another loop or if may be opened here; else reports and stops everything. */
bool
lower_may_nest(Lower *L, Span at)
{
  u32 depth = 0;
  for (const Block *b = L->b.block; b->parent; b = b->parent->block)
    depth++;
  if (depth >= REGION_DEPTH_MAX)
    stop_at(L, at, "loops and ifs are nested more than 100 deep");
  return depth < REGION_DEPTH_MAX;
}

/* A limit of the walk was passed: report once, then give poison to all that is left. */
bool
lower_over_limit(Lower *L, const Node *n)
{
  const char *what = L->depth > LOWER_DEPTH_MAX ? "nesting of calls and expressions is too deep"
                   : L->work > LOWER_WORK_MAX ? "calls and unrolled loops make this kernel too large"
                   : L->b.func->nvalues > LOWER_VALUES_MAX ? "this kernel has more than 200000 values" : NULL;
  if (what)
    stop_at(L, n->span, what);
  return L->stopped;
}

/* Count work beyond the walk; false when there was too much. */
bool
lower_spend(Lower *L, Span at, u32 work)
{
  L->work += work;
  if (L->work > LOWER_WORK_MAX)
    stop_at(L, at, "calls and unrolled loops make this kernel too large");
  return !L->stopped;
}
