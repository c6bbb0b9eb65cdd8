/* place_solve.c - assign_layout's second part: which layouts are worth considering, and which are taken. */
#include "place.h"
#include "access.h"
#include "wgmma.h"
#include "packed.h"

enum { ROUNDS = 8 };
typedef struct Proposal { u32 var, cand; } Proposal;
typedef struct Proposals { VEC(Proposal) list; u32 head; } Proposals;

static void
propose(Place *p, Proposals *ps, u32 var, const Layout *l)
{
  Var *v = p->vars.data[var];
  if (!l || v->fixed || v->ncand == MAX_CANDIDATES)
    return;
  for (u32 i = 0; i < v->ncand; i++)
    if (v->cand[i] == l)
      return;
  v->cand[v->ncand] = l;
  vec_push(p->c->scratch, &ps->list, ((Proposal){var, v->ncand++}));
}

static void
propose_fixed(Place *p, Proposals *ps, u32 var, const Layout *l)
{
  propose(p, ps, var, l);
  p->vars.data[var]->fixed = true;
}

/* ---- anchors ---- */

static void
row_major(int rank, int *order)
{
  for (int i = 0; i < rank; i++)
    order[i] = rank - 1 - i;
}

/* Dimensions by falling contiguity; equal ones keep row-major order. */
static void
memory_order(const MemOp *m, int rank, int *order)
{
  row_major(rank, order);
  for (int i = 1; i < rank; i++)
    for (int j = i; j > 0 && m->ptr->contiguity[order[j]] > m->ptr->contiguity[order[j - 1]]; j--) {
      int t = order[j];
      order[j] = order[j - 1];
      order[j - 1] = t;
    }
}

/* No wider than gives every thread something to do. */
static u32
useful_vec(const Type *t, Team team, u32 vec)
{
  u32 each = type_padded_numel(t) / team_threads(team);
  return vec < each ? vec : each ? each : 1;
}

/* Lanes along the fastest dimensions, warps along the slowest: rows stay inside a warp. */
static const Layout *
rows_in_warps(const Place *p, const Type *t, Team team, u32 vec, const int *order)
{
  u32 size[MAX_RANK], lanes[MAX_RANK], warps[MAX_RANK], lanes_left = 32, warps_left = team.warps;
  for (u32 i = 0; i < t->rank; i++) {
    u32 d = (u32)order[i], extent = next_pow2(t->shape[d]);
    size[d] = i == 0 && vec < extent ? vec : i == 0 ? extent : 1;
    lanes[d] = extent / size[d] < lanes_left ? extent / size[d] : lanes_left;
    lanes_left /= lanes[d];
  }
  for (u32 i = t->rank; i-- > 0;) {
    u32 d = (u32)order[i], room = next_pow2(t->shape[d]) / (size[d] * lanes[d]);
    warps[d] = room < warps_left ? room : warps_left;
    warps_left /= warps[d];
  }
  lanes[order[t->rank - 1]] *= lanes_left;
  warps[order[t->rank - 1]] *= warps_left;
  return layout_blocked(p->c, t->rank, t->shape, size, lanes, warps, order);
}

/* The same of a tile whose rows are fewer than the warps: a row is cut into as many parts, which warps have for themselves. What a thread
 * holds of its warp's part are pieces a whole warp apart. */
static const Layout *
parts_in_warps(const Place *p, const Type *t, Team team, u32 vec)
{
  u32 last = t->rank - 1, n = next_pow2(t->shape[last]), rows = type_padded_numel(t) / n;
  if (t->rank == MAX_RANK || rows >= team.warps || n < 32 * vec * team.warps / rows)
    return NULL;
  Type cut = *t;
  int order[MAX_RANK];
  cut.rank = t->rank + 1;
  cut.shape[last] = team.warps / rows;
  cut.shape[last + 1] = n / cut.shape[last];
  row_major(cut.rank, order);
  return layout_reshape(p->c, rows_in_warps(p, &cut, team, vec, order), t->rank, t->shape);
}

static void
propose_memory(Place *p, Proposals *ps, u32 var, const MemOp *m)
{
  int order[MAX_RANK];
  const Type *t = p->vars.data[var]->type;
  Team team = block_team(m->op->block);
  memory_order(m, t->rank, order);
  u32 vec = useful_vec(t, team, m->vec), least = m->op->code == OP_ASYNC_COPY ? COPY_LEAST / m->elem_bytes : 1;
  if (vec < least && least <= m->vec)
    vec = least;
  propose(p, ps, var, layout_default(p->c, t->rank, t->shape, team.warps, vec, order));
  if (t->rank > 1)
    propose(p, ps, var, rows_in_warps(p, t, team, vec, order));
  if (p->scans && order[0] == t->rank - 1)
    propose(p, ps, var, parts_in_warps(p, t, team, vec));
}

/* A dot without tensor cores: blocks of up to 4 x 4 per thread, 4 x 8 threads per warp, warps along batches and then as square
 * as they go. */
static const Layout *
fma_layout(const Place *p, const Type *t, Team team)
{
  int order[MAX_RANK], m_at = t->rank - 2, n_at = t->rank - 1;
  u32 size[MAX_RANK] = {1, 1, 1, 1, 1}, lanes[MAX_RANK] = {1, 1, 1, 1, 1}, warps[MAX_RANK] = {1, 1, 1, 1, 1};
  u32 m = next_pow2(t->shape[m_at]), n = next_pow2(t->shape[n_at]), left = team.warps;
  row_major(t->rank, order);
  for (int d = 0; d < m_at; d++) {
    warps[d] = next_pow2(t->shape[d]) < left ? next_pow2(t->shape[d]) : left;
    left /= warps[d];
  }
  lanes[m_at] = 4;
  lanes[n_at] = 8;
  size[m_at] = m / 4 < 1 ? 1 : m / 4 < 4 ? m / 4 : 4;
  size[n_at] = n / 8 < 1 ? 1 : n / 8 < 4 ? n / 8 : 4;
  for (; left > 1; left /= 2)
    warps[m / warps[m_at] >= n / warps[n_at] ? m_at : n_at] *= 2;
  return layout_blocked(p->c, t->rank, t->shape, size, lanes, warps, order);
}

static const Layout *
dot_layout(const Place *p, const Op *op)
{
  if (!op_attr(op, AT_MMA) || !op_attr(op, AT_WARPS))
    return fma_layout(p, op_result(op)->type, block_team(op->block));
  return dot_sum_layout(p->c, op);
}

/* Each thread has neighbours along the axis, as many as it has registers: exchanges between near elements stay in the thread. */
static const Layout *
neighbours_in_threads(const Place *p, const Type *t, Team team, u32 axis)
{
  int order[MAX_RANK] = {(int)axis};
  u32 n = 1;
  for (u32 i = t->rank; i-- > 0;)
    if (i != axis)
      order[n++] = (int)i;
  return rows_in_warps(p, t, team, useful_vec(t, team, next_pow2(t->shape[axis])), order);
}

typedef struct Anchors { Place *p; Proposals *ps; } Anchors;

static void
propose_anchor(Op *op, void *user)
{
  Anchors *a = user;
  u32 var = place_op_var(a->p, op);
  if (var == NO_VAR)
    return;
  const Attr *asked = op_attr(op, AT_LAYOUT);
  a->p->scans |= op->code == OP_SCAN;
  if (asked)
    propose_fixed(a->p, a->ps, var, asked->layout);
  else if (op_is_dot(op))
    propose_fixed(a->p, a->ps, var, dot_layout(a->p, op));
  else if (op->code == OP_WGMMA)
    propose_fixed(a->p, a->ps, var, wgmma_sum_layout(a->p->c, block_team(op->block), op_result(op)->type));
  else if (op->code == OP_SHARED_COUNT)
    propose_fixed(a->p, a->ps, var, access_count_layout(a->p->c, block_team(op->block), op_result(op)->type));
  else if (op_has(op, T_EXCHANGE) || op->code == OP_SCAN)
    propose(a->p, a->ps, var, neighbours_in_threads(a->p, op_result(op)->type, block_team(op->block), (u32)op_int(op, AT_AXIS, 0)));
}

/* ---- propagation along edges ---- */

/* The words' layout from that of the elements; NULL where they would be cut. */
static const Layout *
words_layout(Place *p, const Op *op, const Layout *l)
{
  Packing k = packing_of(op);
  return packing_back(p->c, &k, l);
}

/* The op's layout when its operand has layout l; NULL where that does not say. */
static const Layout *
layout_forward(Place *p, const Edge *e, const Layout *l)
{
  const Op *op = e->op;
  const Type *r = op->nresults ? op_result(op)->type : NULL;
  int perm[MAX_RANK];
  switch (op->code) {
  case OP_BROADCAST: case OP_DOT: case OP_DOT_SPARSE: case OP_WGMMA: return NULL;
  case OP_PACK: return words_layout(p, op, l);
  case OP_EXPAND_DIMS: return layout_expand_dims(p->c, l, (int)op_int(op, AT_AXIS, 0));
  case OP_RESHAPE: return layout_reshape(p->c, l, r->rank, r->shape);
  case OP_PERMUTE:
    for (u32 i = 0; i < op_attr(op, AT_PERM)->ints.n; i++)
      perm[i] = (int)op_attr(op, AT_PERM)->ints.v[i];
    return layout_permute(p->c, l, perm);
  default: return l;
  }
}

static void
propagate(Place *p, Proposals *ps, Proposal from)
{
  Var *v = p->vars.data[from.var];
  const Layout *l = v->cand[from.cand];
  for (u32 i = 0; i < v->edges.len; i++) {
    Edge *e = p->edges.data[v->edges.data[i]];
    if (e->def == from.var)
      propose(p, ps, e->user, layout_forward(p, e, place_value_layout(p, e->v, l)));
    else if (op_is(e->v, OP_UNPACK))
      propose(p, ps, e->def, words_layout(p, e->v->def, place_operand_layout(p, e->op, e->i, l)));
    else if (!op_is(e->v, OP_REDUCE))
      propose(p, ps, e->def, place_operand_layout(p, e->op, e->i, l));
  }
}

static void
propagate_all(Place *p, Proposals *ps)
{
  while (ps->head < ps->list.len)
    propagate(p, ps, ps->list.data[ps->head++]);
}

void
place_candidates(Place *p)
{
  Proposals ps = {0};
  Anchors a = {p, &ps};
  func_walk(p->f, propose_anchor, &a);
  for (u32 i = 0; i < p->mems.len; i++)
    propose_memory(p, &ps, place_op_var(p, p->mems.data[i]->op), p->mems.data[i]);
  propagate_all(p, &ps);
  for (u32 i = 0; i < p->vars.len; i++) {   /* what no anchor reached */
    Var *v = p->vars.data[i];
    int order[MAX_RANK];
    if (v->ncand || p->parent[i] != i)
      continue;
    row_major(v->type->rank, order);
    propose(p, &ps, i, layout_default(p->c, v->type->rank, v->type->shape, v->team.warps, useful_vec(v->type, v->team, 4), order));
    propagate_all(p, &ps);
  }
}

/* ---- choice ---- */

static i64
edge_cost(Place *p, Edge *e, u32 user_cand, u32 def_cand)
{
  i64 *memo = &e->cost[user_cand][def_cand];
  if (!*memo) {
    const Var *u = p->vars.data[e->user], *d = p->vars.data[e->def];
    const Layout *need = place_operand_layout(p, e->op, e->i, u->cand[user_cand]);
    const Layout *have = place_value_layout(p, e->v, d->cand[def_cand]);
    *memo = 1 + e->weight * place_convert_cost(p, have, need, e->v->type);
  }
  return *memo - 1;
}

enum { UNDECIDED = MAX_CANDIDATES };

static i64
cost_of(Place *p, const Var *v, u32 var, u32 cand)
{
  i64 cost = v->own[cand];
  for (u32 i = 0; i < v->edges.len; i++) {
    Edge *e = p->edges.data[v->edges.data[i]];
    u32 other = p->vars.data[e->user == var ? e->def : e->user]->chosen;
    if (other != UNDECIDED)
      cost += e->user == var ? edge_cost(p, e, cand, other) : edge_cost(p, e, other, cand);
  }
  return cost;
}

/* True when the choice changed. */
static bool
decide(Place *p, u32 var)
{
  Var *v = p->vars.data[var];
  u32 before = v->chosen, best = before == UNDECIDED ? 0 : before;
  i64 least = cost_of(p, v, var, best);
  for (u32 i = 0; i < v->ncand; i++) {
    i64 cost = i == best ? least : cost_of(p, v, var, i);
    if (cost < least) {
      least = cost;
      best = i;
    }
  }
  v->chosen = best;
  return best != before;
}

static void
wake_neighbours(const Place *p, const Var *v, bool *asleep)
{
  for (u32 i = 0; i < v->edges.len; i++) {
    const Edge *e = p->edges.data[v->edges.data[i]];
    asleep[e->user] = asleep[e->def] = false;
  }
}

/* ---- the sum is lowered from several starts, as each may end in another local minimum ---- */

typedef enum Start { MEMORY_FORWARD, FORWARD, MEMORY_BACKWARD, REDUCE_FORWARD, BACKWARD, FROM_FIXED, STARTS } Start;
enum { LEADERS = 6 };

static bool
indifferent(const Var *v)
{
  for (u32 i = 1; i < v->ncand; i++)
    if (v->own[i] != v->own[0])
      return false;
  return true;
}

static bool
beside_decided(const Place *p, const Var *v, u32 var)
{
  for (u32 i = 0; i < v->edges.len; i++) {
    const Edge *e = p->edges.data[v->edges.data[i]];
    if (p->vars.data[e->user == var ? e->def : e->user]->chosen != UNDECIDED)
      return true;
  }
  return false;
}

/* What stands beside something decided decides, step by step outwards. */
static void
spread(Place *p)
{
  u32 n = p->vars.len;
  u32 *next = NEW_ARRAY(p->c->scratch, u32, n + 1), len;
  do {
    len = 0;
    for (u32 i = 0; i < n; i++)
      if (p->vars.data[i]->chosen == UNDECIDED && p->vars.data[i]->ncand && beside_decided(p, p->vars.data[i], i))
        next[len++] = i;
    for (u32 i = 0; i < len; i++)
      decide(p, next[i]);
  } while (len);
}

/* Memory operations, or reductions, that care take what they want without regard to others; the rest is open. Where nothing is settled and
 * the walk is backward, what is used decides before what it is made of: the indices of a gather are loaded as the gather wants them. From
 * what has no choice, such as sums of tensor cores, decisions spread: rows' numbers beside them come in their layout, or in none better. */
static void
begin(Place *p, Start start)
{
  for (u32 i = 0; i < p->vars.len; i++)
    p->vars.data[i]->chosen = p->vars.data[i]->ncand == 1 ? 0 : UNDECIDED;
  for (u32 i = 0; start != FORWARD && start != BACKWARD && start != FROM_FIXED && i < p->vars.len; i++) {
    const Var *v = p->vars.data[i];
    if ((start == REDUCE_FORWARD ? v->along.len : v->mems.len) && !indifferent(v))
      decide(p, i);
  }
  if (start == FROM_FIXED)
    spread(p);
}

static u32
one_more_leader(const Layout **out, u32 n, const Layout *l)
{
  u32 k = 0;
  while (k < n && out[k] != l)
    k++;
  if (k == n && n < LEADERS)
    out[n++] = l;
  return n;
}

/* The layouts that memory operations like best by themselves. Of several that they like as well the first, where there are scans, which may
 * tell them apart, all. */
static u32
leaders(const Place *p, const Layout **out)
{
  u32 n = 0;
  for (u32 i = 0; i < p->vars.len; i++) {
    const Var *v = p->vars.data[i];
    u32 best = 0;
    if (!v->mems.len || indifferent(v))
      continue;
    for (u32 c = 1; c < v->ncand; c++)
      best = v->own[c] < v->own[best] ? c : best;
    n = one_more_leader(out, n, v->cand[best]);
    for (u32 c = best + 1; p->scans && c < v->ncand; c++)
      if (v->own[c] == v->own[best])
        n = one_more_leader(out, n, v->cand[c]);
  }
  return n;
}

/* Everybody who can takes the layout of one: what a chain of conversions costs shows only when all of it goes away. */
static void
follow(Place *p, const Layout *leader)
{
  for (u32 i = 0; i < p->vars.len; i++) {
    Var *v = p->vars.data[i];
    v->chosen = v->ncand == 1 ? 0 : UNDECIDED;
    for (u32 k = 0; k < v->ncand; k++)
      if (v->cand[k] == leader)
        v->chosen = k;
  }
}

static void
descend(Place *p, bool backward, bool *asleep)
{
  u32 n = p->vars.len;
  bool changed = true;
  memset(asleep, 0, n);
  for (u32 round = 0; changed && round < ROUNDS; round++) {
    changed = false;
    for (u32 i = 0; i < n; i++) {
      u32 at = backward ? n - 1 - i : i;
      if (asleep[at] || p->vars.data[at]->ncand < 2)
        continue;
      if (decide(p, at)) {
        changed = true;
        wake_neighbours(p, p->vars.data[at], asleep);
      }
      asleep[at] = true;
    }
  }
}

/* Variables that have a choice and are joined by edges are an island: what is best for one has nothing to do with the others. */
static u32
root_of(u32 *island, u32 i)
{
  while (island[i] != i)
    i = island[i] = island[island[i]];
  return i;
}

static void
find_islands(const Place *p, u32 *island)
{
  for (u32 i = 0; i < p->vars.len; i++)
    island[i] = i;
  for (u32 i = 0; i < p->edges.len; i++) {
    const Edge *e = p->edges.data[i];
    if (p->vars.data[e->user]->ncand > 1 && p->vars.data[e->def]->ncand > 1)
      island[root_of(island, e->user)] = root_of(island, e->def);
  }
  for (u32 i = 0; i < p->vars.len; i++)
    island[i] = root_of(island, i);
}

/* What the choices cost, by island. */
static void
island_costs(Place *p, const u32 *island, i64 *cost)
{
  memset(cost, 0, p->vars.len * sizeof *cost);
  for (u32 i = 0; i < p->vars.len; i++)
    if (p->vars.data[i]->ncand)
      cost[island[i]] += p->vars.data[i]->own[p->vars.data[i]->chosen];
  for (u32 i = 0; i < p->edges.len; i++) {
    Edge *e = p->edges.data[i];
    bool user = p->vars.data[e->user]->ncand > 1;
    cost[island[user ? e->user : e->def]] += edge_cost(p, e, p->vars.data[e->user]->chosen, p->vars.data[e->def]->chosen);
  }
}

static void
own_costs(Place *p)
{
  for (u32 i = 0; i < p->vars.len; i++) {
    Var *v = p->vars.data[i];
    for (u32 k = 0; k < v->ncand; k++)
      v->own[k] = v->ncand > 1 ? place_own_cost(p, v, v->cand[k]) : 0;
  }
}

void
place_solve(Place *p)
{
  u32 n = p->vars.len;
  bool *asleep = NEW_ARRAY(p->c->scratch, bool, n + 1);
  u32 *best = NEW_ARRAY(p->c->scratch, u32, n + 1), *island = NEW_ARRAY(p->c->scratch, u32, n + 1);
  i64 *least = NEW_ARRAY(p->c->scratch, i64, n + 1), *cost = NEW_ARRAY(p->c->scratch, i64, n + 1);
  own_costs(p);
  find_islands(p, island);
  for (u32 i = 0; i < n; i++)
    least[i] = INT64_MAX;
  const Layout *leader[LEADERS];
  u32 nleaders = leaders(p, leader);
  for (u32 s = 0; s < STARTS + nleaders; s++) {
    if (s < STARTS)
      begin(p, (Start)s);
    else
      follow(p, leader[s - STARTS]);
    descend(p, s == MEMORY_BACKWARD || s == BACKWARD, asleep);
    island_costs(p, island, cost);
    for (u32 i = 0; i < n; i++)
      if (cost[island[i]] < least[island[i]])
        best[i] = p->vars.data[i]->chosen;
    for (u32 i = 0; i < n; i++)
      least[i] = cost[i] < least[i] ? cost[i] : least[i];
  }
  for (u32 i = 0; i < n; i++)
    p->vars.data[i]->chosen = best[i];
}
