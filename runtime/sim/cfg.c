/* cfg.c - ranks of basic blocks, by which exec.c brings the lanes of a warp back together.
 *
 * Lanes that branched apart form splits; the machine always runs the split of the lowest rank and merges
 * splits that meet. If ranks grow along every path, a split waits at a join until all that can still reach
 * it have come: reconvergence at the immediate post-dominator or earlier, without computing it.
 *
 * Ranks come from a weak topological order (Bourdoncle): strongly connected components in topological
 * order, each laid out as one run of positions, its header first and the rest ordered in the same way. So a
 * loop's exits come after its whole body. A back edge must not overtake lanes that are still in the body:
 * it carries the rank just after the loop's last block, and the header gets its own rank when picked.
 * Block at position p: rank 2p. Edge u->v: 2 pos(v) if pos(v) > pos(u), else 2 last(v) + 1. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_NEST = 100 };

typedef struct Cfg {
  const Unit *u;
  uint32_t n;                                    /* blocks */
  uint32_t *start;                               /* first instruction, n + 1 entries */
  uint32_t *of;                                  /* block of an instruction */
  uint32_t *succ, *succ_at, *pred, *pred_at;     /* edges in rows */
  uint32_t *pos, *last;
  uint32_t *group;                               /* the subproblem a block is in */
  uint32_t *index, *low, *comp, *stack, *todo, *edge;
  uint32_t next_pos, next_group, next_comp;
} Cfg;

static bool
ends_block(const Insn *in)
{
  return in->kind == K_BRA || in->kind == K_BRX || in->kind == K_EXIT || in->kind == K_CALL || in->kind == K_RET;
}

static bool
falls_through(const Insn *in)
{
  bool leaves = in->kind == K_BRA || in->kind == K_BRX || in->kind == K_EXIT || in->kind == K_RET;
  return !leaves || in->guard;
}

static void
mark_leaders(Unit *u)
{
  u->code[0].leader = true;
  for (uint32_t i = 0; i < u->ncode; i++) {
    if (u->code[i].kind == K_BRA)
      u->code[u->code[i].bra.target].leader = true;
    if (ends_block(&u->code[i]) && i + 1 < u->ncode)
      u->code[i + 1].leader = true;
  }
  for (uint32_t i = 0; i < u->nbrx; i++)
    u->code[u->brx[i]].leader = true;
}

static void
number_blocks(Cfg *c)
{
  uint32_t b = UINT32_MAX;
  for (uint32_t i = 0; i < c->u->ncode; i++) {
    if (c->u->code[i].leader)
      c->start[++b] = i;
    c->of[i] = b;
  }
  c->n = b + 1;
  c->start[c->n] = c->u->ncode;
}

/* The successors of block b into out (NULL: only count). */
static uint32_t
successors(const Cfg *c, uint32_t b, uint32_t *out)
{
  uint32_t end = c->start[b + 1], n = 0;
  const Insn *in = &c->u->code[end - 1];
  uint32_t jumps = in->kind == K_BRX ? in->brx.count : in->kind == K_BRA ? 1 : 0;
  for (uint32_t i = 0; i < jumps; i++, n++)
    if (out)
      out[n] = c->of[in->kind == K_BRX ? c->u->brx[in->brx.first + i] : in->bra.target];
  if (falls_through(in) && end < c->u->ncode) {
    if (out)
      out[n] = b + 1;
    n++;
  }
  return n;
}

static bool
build_edges(Cfg *c)
{
  uint32_t total = 0;
  for (uint32_t b = 0; b < c->n; b++) {
    c->succ_at[b] = total;
    total += successors(c, b, NULL);
  }
  c->succ_at[c->n] = total;
  c->succ = calloc(total + 1, sizeof *c->succ);
  c->pred = calloc(total + 1, sizeof *c->pred);
  if (!c->succ || !c->pred)
    return false;
  for (uint32_t b = 0; b < c->n; b++)
    successors(c, b, c->succ + c->succ_at[b]);
  for (uint32_t e = 0; e < total; e++)
    c->pred_at[c->succ[e] + 1]++;
  for (uint32_t b = 0; b < c->n; b++)
    c->pred_at[b + 1] += c->pred_at[b];
  memcpy(c->edge, c->pred_at, c->n * sizeof *c->edge);
  for (uint32_t b = 0; b < c->n; b++)
    for (uint32_t e = c->succ_at[b]; e < c->succ_at[b + 1]; e++)
      c->pred[c->edge[c->succ[e]]++] = b;
  return true;
}

/* Tarjan's components of one group from root, without recursion. Found ones are appended to out as
 * (size, members) with the size last, so that reading backwards gives topological order. */
static uint32_t
components_from(Cfg *c, uint32_t root, uint32_t *clock, uint32_t *out, uint32_t nout)
{
  uint32_t depth = 0, sp = 0, group = c->group[root];
  c->todo[depth++] = root;
  c->index[root] = c->low[root] = ++*clock;
  c->edge[root] = c->succ_at[root];
  c->stack[sp++] = root;
  while (depth) {
    uint32_t v = c->todo[depth - 1];
    if (c->edge[v] < c->succ_at[v + 1]) {
      uint32_t u = c->succ[c->edge[v]++];
      if (c->group[u] != group)
        continue;
      if (!c->index[u]) {
        c->index[u] = c->low[u] = ++*clock;
        c->edge[u] = c->succ_at[u];
        c->stack[sp++] = u;
        c->todo[depth++] = u;
      } else if (!c->comp[u] && c->index[u] < c->low[v])
        c->low[v] = c->index[u];
      continue;
    }
    depth--;
    if (depth && c->low[v] < c->low[c->todo[depth - 1]])
      c->low[c->todo[depth - 1]] = c->low[v];
    if (c->low[v] != c->index[v])
      continue;
    uint32_t size = 0, u;
    c->next_comp++;
    do {
      u = c->stack[--sp];
      c->comp[u] = c->next_comp;
      out[nout++] = u;
      size++;
    } while (u != v);
    out[nout++] = size;
  }
  return nout;
}

static bool
has_self_edge(const Cfg *c, uint32_t b)
{
  for (uint32_t e = c->succ_at[b]; e < c->succ_at[b + 1]; e++)
    if (c->succ[e] == b)
      return true;
  return false;
}

/* The member that is entered from outside; the earliest in the text if there are several. */
static uint32_t
header_of(const Cfg *c, const uint32_t *members, uint32_t n)
{
  uint32_t best = UINT32_MAX, first = UINT32_MAX;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t b = members[i];
    first = b < first ? b : first;
    for (uint32_t e = c->pred_at[b]; e < c->pred_at[b + 1]; e++)
      if (c->comp[c->pred[e]] != c->comp[b] && b < best)
        best = b;
  }
  return best == UINT32_MAX ? first : best;
}

static bool order(Cfg *c, const uint32_t *nodes, uint32_t n, uint32_t nest);

static bool
order_component(Cfg *c, uint32_t *members, uint32_t n, uint32_t nest)
{
  uint32_t head = n == 1 ? members[0] : header_of(c, members, n), rest = 0;
  c->pos[head] = c->next_pos++;
  for (uint32_t i = 0; i < n; i++)
    if (members[i] != head)
      members[rest++] = members[i];
  bool ok = rest == 0 || order(c, members, rest, nest + 1);
  c->last[head] = n > 1 || has_self_edge(c, head) ? c->next_pos - 1 : c->pos[head];
  return ok;
}

static bool
order(Cfg *c, const uint32_t *nodes, uint32_t n, uint32_t nest)
{
  uint32_t clock = 0, nout = 0, *out = malloc(2 * (size_t)n * sizeof *out);
  if (!out)
    return false;
  c->next_group++;
  for (uint32_t i = 0; i < n; i++) {
    c->group[nodes[i]] = c->next_group;
    c->index[nodes[i]] = c->comp[nodes[i]] = 0;
  }
  for (uint32_t i = 0; i < n; i++)
    if (!c->index[nodes[i]])
      nout = components_from(c, nodes[i], &clock, out, nout);
  bool ok = true;
  while (nout && ok) {
    uint32_t size = out[nout - 1];
    nout -= size + 1;
    if (nest < MAX_NEST)
      ok = order_component(c, out + nout, size, nest);
    else
      for (uint32_t i = 0; i < size; i++)
        c->last[out[nout + i]] = c->pos[out[nout + i]] = c->next_pos++;
  }
  free(out);
  return ok;
}

static uint32_t
edge_rank(const Cfg *c, uint32_t u, uint32_t v)
{
  return c->pos[v] > c->pos[u] ? 2 * c->pos[v] : 2 * c->last[v] + 1;
}

static void
store_ranks(const Cfg *c, Unit *u)
{
  for (uint32_t i = 0; i < u->ncode; i++)
    u->rank[i] = 2 * c->pos[c->of[i]];
  for (uint32_t b = 0; b < c->n; b++) {
    Insn *in = &u->code[c->start[b + 1] - 1];
    if (b + 1 < c->n)
      in->fall_rank = edge_rank(c, b, b + 1);
    if (in->kind == K_BRA)
      in->bra.rank = edge_rank(c, b, c->of[in->bra.target]);
    for (uint32_t i = 0; in->kind == K_BRX && i < in->brx.count; i++)
      u->brx_rank[in->brx.first + i] = edge_rank(c, b, c->of[u->brx[in->brx.first + i]]);
  }
}

static bool
cfg_alloc(Cfg *c)
{
  size_t n = (size_t)c->u->ncode + 2;
  uint32_t **arrays[] = {&c->start, &c->of, &c->succ_at, &c->pred_at, &c->pos, &c->last, &c->group,
                         &c->index, &c->low, &c->comp, &c->stack, &c->todo, &c->edge};
  bool ok = true;
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    ok &= (*arrays[i] = calloc(n, sizeof **arrays[i])) != NULL;
  return ok;
}

static void
cfg_free(Cfg *c)
{
  uint32_t *arrays[] = {c->start, c->of, c->succ_at, c->pred_at, c->pos, c->last, c->group, c->index,
                        c->low, c->comp, c->stack, c->todo, c->edge, c->succ, c->pred};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    free(arrays[i]);
}

bool
cfg_rank(Unit *u)
{
  Cfg c = {.u = u};
  u->rank = calloc(u->ncode, sizeof *u->rank);
  u->brx_rank = calloc(u->nbrx + 1, sizeof *u->brx_rank);
  bool ok = u->rank && u->brx_rank && cfg_alloc(&c);
  if (ok) {
    mark_leaders(u);
    number_blocks(&c);
    uint32_t *all = calloc(c.n, sizeof *all);
    ok = all && build_edges(&c);
    for (uint32_t i = 0; ok && i < c.n; i++)
      all[i] = i;
    ok = ok && order(&c, all, c.n, 0);
    if (ok)
      store_ranks(&c, u);
    free(all);
  }
  cfg_free(&c);
  return ok;
}
