/* overlap_products.c - products of a loop that follow from one another, those of two iterations beside each other.
 * Part of pipeline_loops, behind warpgroup_products, for loops whose copies another team makes.
 *
 *   s = wgmma q, k[i]; wait s            attention: while a warpgroup makes weights of its scores it has
 *   p, m', l' = weights(s, m, l)         nothing for tensor cores to do, and while it multiplies these by
 *   acc' = wgmma p, v[i], acc; wait      values it waits
 *
 * The loop is parted in two stages (loop_stages.h). Stage 1 are the products that follow from the first one and what follows from them,
 * stage 0 the rest: the scores of iteration i + 1 are under way while values of iteration i are multiplied, and still are, or those
 * are, while weights of i + 1 are made of them. In the order of the new body:
 *
 *   SCALING   stage 1, what its products need (acc scaled)
 *   BEGIN     stage 0, up to its products         s' = wgmma q, k[i + 1]
 *   MULTIPLY  stage 1, its products               acc' = wgmma p, v[i], acc
 *   REST      stage 0, the rest                   wait for s' alone (pending = 1); hand k[i + 1] back; weights of it
 *   NEXT      stage 0                             wait until v[i + 1] is full
 *   END       stage 1, the rest                   wait for acc'; hand v[i] back
 *   FACTORS   stage 0                             p' = weights, as the products take them
 *
 * Three rules of ptxas are in this order, which else waits behind each instruction of a product, or before its time. Registers of a sum are
 * not written while other products are under way: SCALING is in front of them all, and at the end nothing is under way. Nor are
 * registers that a product is to read: FACTORS stand behind the last wait. And it moves the wait for products up as far as it can, but not
 * past a loop: the one that polls the mbarrier of v[i + 1] keeps it behind the weights.
 *
 * What hands a slot of a ring back goes with the last products that read the ring. Where these are all of one stage, rings need no more
 * slots than before; a tile that both stages read is held for an iteration longer. Loops that do something else to memory stay as they
 * are. So do those that would hold more registers than there are: what crosses from stage 0 to stage 1, and both stages' sums at a time. */
#include "held.h"
#include "loop_stages.h"
#include "pipeline.h"
#include "schedule_table.h"

typedef struct Overlap {
  LoopStages s;
  u32 nrings;
  Ring *const *rings;
  Op **product;              /* in the order of the body */
  u32 nproducts;
  bool *needed;              /* by mark: by stage 0 */
  u8 *slot;                  /* by mark: a Slot */
} Overlap;

typedef enum Slot { SCALING, BEGIN, MULTIPLY, REST, NEXT, END, FACTORS, SLOTS } Slot;

/* ---- which op follows from which ---- */

typedef void UseFn(Overlap *o, Op *op, Value *v);

/* All values of the loop's body that op uses. */
static void
each_use(Overlap *o, Op *op, const Op *x, UseFn *fn)
{
  for (u32 i = 0; i < x->noperands; i++) {
    Value *v = op_operand(x, i);
    if (v && value_block(v) == o->s.loop->regions[0])
      fn(o, op, v);
  }
  for (u32 r = 0; r < x->nregions; r++)
    for (const Op *in = x->regions[r]->first; in; in = in->next)
      each_use(o, op, in, fn);
}

/* Marks what uses v, in this iteration, in `in`. */
static bool
mark_users(const Overlap *o, const Value *v, bool *in)
{
  bool grew = false;
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *op = op_ancestor_in(u->user, o->s.loop->regions[0]);
    if (!op || op_has(op, T_TERM) || in[op->mark])
      continue;
    in[op->mark] = grew = true;
  }
  return grew;
}

/* Adds what follows from the ops that are marked, in this iteration; around: and in the next. */
static void
close_forward(Overlap *o, bool *in, bool around)
{
  const Op *loop = o->s.loop;
  for (bool grew = true; grew;) {
    grew = false;
    for (u32 i = 0; i < o->s.n; i++)
      for (u32 k = 0; in[i] && k < o->s.order[i]->nresults; k++)
        grew |= mark_users(o, o->s.order[i]->results[k], in);
    for (u32 k = 0; around && k < loop->nresults; k++) {
      const Op *def = loop_next(loop, k)->def;
      if (def && def->block == loop->regions[0] && in[def->mark])
        grew |= mark_users(o, loop_arg(loop, 0, k), in);
    }
  }
}

static bool *
following(Overlap *o, const Op *op)
{
  bool *in = NEW_ARRAY(o->s.c->scratch, bool, o->s.n);
  for (u32 k = 0; k < op->nresults; k++)
    mark_users(o, op->results[k], in);
  close_forward(o, in, false);
  return in;
}

static void
find_products(Overlap *o)
{
  o->product = NEW_ARRAY(o->s.c->scratch, Op *, o->s.n + 1);
  for (u32 i = 0; i < o->s.n; i++)
    if (o->s.order[i]->code == OP_WGMMA)
      o->product[o->nproducts++] = o->s.order[i];
}

/* ---- stages ---- */

/* The ring that buffer or mbarrier v is of; NULL: none. */
static const Ring *
ring_of(const Overlap *o, const Value *v)
{
  const Op *m = buffer_alloc(v);
  for (u32 i = 0; i < o->nrings; i++) {
    const Ring *r = o->rings[i];
    if (m == r->full->def || (r->empty && m == r->empty->def))
      return r;
    for (u32 k = 0; k < r->n; k++)
      if (m == r->row[k].buffers->def)
        return r;
  }
  return NULL;
}

/* op has to do with memory of the ring, otherwise than by a view. */
static bool
reaches(const Overlap *o, const Op *op, const Ring *r)
{
  for (u32 i = 0; i < op->noperands && !op_is_view(op); i++) {
    const Value *v = op_operand(op, i);
    if (v && type_is_shared(v->type) && ring_of(o, v) == r)
      return true;
  }
  return false;
}

static bool
orders_ring(const Op *op)
{
  return op->code == OP_MBARRIER_WAIT || op->code == OP_MBARRIER_ARRIVE;
}

/* The stages of the first and the last product that reads the ring; false: none does, or something else does. */
static bool
ring_stages(const Overlap *o, const Ring *r, u8 *first, u8 *last)
{
  *first = 1;
  *last = 0;
  for (u32 i = 0; i < o->s.n; i++) {
    const Op *op = o->s.order[i];
    if (orders_ring(op) || !reaches(o, op, r))
      continue;
    if (op->code != OP_WGMMA)
      return false;
    *first = o->s.stage[i] < *first ? o->s.stage[i] : *first;
    *last = o->s.stage[i] > *last ? o->s.stage[i] : *last;
  }
  return *first <= *last;
}

/* Ops with effects go with products; NULL, or why there is no place for one. */
static const char *
pin_effects(Overlap *o)
{
  for (u32 i = 0; i < o->s.n; i++) {
    Op *op = o->s.order[i];
    u8 first, last;
    if (op->code == OP_WGMMA || op->code == OP_WGMMA_WAIT || op_removable(op))
      continue;
    const Ring *r = orders_ring(op) ? ring_of(o, op_operand(op, 0)) : NULL;
    if (!r || !ring_stages(o, r, &first, &last))
      return "it does something else to memory, or meets";
    o->s.stage[i] = op->code == OP_MBARRIER_WAIT ? 0 : last;
    o->slot[i] = op->code == OP_MBARRIER_WAIT && first ? NEXT : 0;
  }
  return NULL;
}

static void
need_in_0(Overlap *o, Op *user, Value *v)
{
  u32 k;
  (void)user;
  Value *from = v->def ? v : loop_carries(o->s.loop, v, &k) ? loop_next(o->s.loop, k) : NULL;
  if (from && from->def && from->def->block == o->s.loop->regions[0] && !o->needed[from->def->mark]) {
    o->needed[from->def->mark] = true;
    each_use(o, from->def, from->def, need_in_0);
  }
}

/* What neither follows from the first product nor serves stage 0 goes where it is needed, to stage 1. */
static void
move_what_is_left(Overlap *o, const bool *after_first)
{
  o->needed = NEW_ARRAY(o->s.c->scratch, bool, o->s.n);
  for (u32 i = 0; i < o->s.n; i++) {
    bool root = o->s.stage[i] == 0 && (after_first[i] || !op_removable(o->s.order[i]));
    if (root && !o->needed[i]) {
      o->needed[i] = true;
      each_use(o, o->s.order[i], o->s.order[i], need_in_0);
    }
  }
  for (u32 i = 0; i < o->s.n; i++)
    if (!o->needed[i])
      o->s.stage[i] = 1;
}

static bool
all_users_late(const Overlap *o, const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *op = op_ancestor_in(u->user, o->s.loop->regions[0]);
    if (!op || op_has(op, T_TERM) || !o->s.stage[op->mark])
      return false;
  }
  return v->uses != NULL;
}

/* An op of stage 0 that only stage 1 uses, and that makes more of less (a broadcast), is better done there: less crosses. */
static void
cross_small(Overlap *o)
{
  for (u32 i = o->s.n; i-- > 0;) {
    const Op *op = o->s.order[i];
    u32 in = 0;
    if (o->s.stage[i] || !op_is_arithmetic(op) || op->nresults != 1 || !all_users_late(o, op_result(op)))
      continue;
    for (u32 k = 0; k < op->noperands; k++)
      in += op_operand(op, k) ? type_registers(op_operand(op, k)->type) : 0;
    o->s.stage[i] = in < type_registers(op_result(op)->type);
  }
}

/* NULL, or why the loop's products do not overlap; "" if there is nothing that could. */
static const char *
choose_stages(Overlap *o)
{
  bool any = false;
  const char *why;
  find_products(o);
  if (o->nproducts < 2)
    return "";
  for (u32 i = 0; i < o->nproducts; i++)
    if (OPERAND(o->product[i], WGMMA, meta))
      return "a product keeps its metadata in registers until it is waited for";
  const bool *after_first = following(o, o->product[0]);
  bool *late = NEW_ARRAY(o->s.c->scratch, bool, o->s.n);
  for (u32 i = 1; i < o->nproducts; i++)
    any |= late[o->product[i]->mark] = after_first[o->product[i]->mark];
  if (!any)
    return "";
  close_forward(o, late, true);
  if (late[o->product[0]->mark])
    return "its first product needs what the last one of the iteration before made";
  for (u32 i = 0; i < o->s.n; i++)
    o->s.stage[i] = late[i];
  if ((why = pin_effects(o)))
    return why;
  bool *root = NEW_ARRAY(o->s.c->scratch, bool, o->s.n);
  memcpy(root, after_first, o->s.n * sizeof *root);
  root[o->product[0]->mark] = true;
  move_what_is_left(o, root);
  cross_small(o);
  return stages_check(&o->s);
}

/* ---- order ---- */

static void
mark_need(Overlap *o, Op *user, Value *v)
{
  u32 stage = o->s.stage[user->mark];
  u8 to = stage ? SCALING : BEGIN;
  if (v->def && o->s.stage[v->def->mark] == stage && o->slot[v->def->mark] != to) {
    o->slot[v->def->mark] = to;
    each_use(o, v->def, v->def, mark_need);
  }
}

/* The product follows from another one of its stage. */
static bool
comes_later(Overlap *o, const Op *product)
{
  for (u32 i = 0; o->product[i] != product; i++)
    if (o->s.stage[o->product[i]->mark] == o->s.stage[product->mark] && following(o, o->product[i])[product->mark])
      return true;
  return false;
}

/* Products that need no other product of their stage, what they need, and what waits for their slots. */
static void
place_first(Overlap *o)
{
  u32 last = 0;
  for (u32 i = 0; i < o->nproducts; i++) {
    Op *p = o->product[i];
    u32 stage = o->s.stage[p->mark];
    if (comes_later(o, p))
      continue;
    o->slot[p->mark] = stage ? MULTIPLY : BEGIN;
    each_use(o, p, p, mark_need);
    last = stage ? last : p->mark;
  }
  for (u32 i = 0; i < last; i++)
    if (o->s.order[i]->code == OP_MBARRIER_WAIT && o->slot[i] != NEXT) {
      o->slot[i] = BEGIN;
      each_use(o, o->s.order[i], o->s.order[i], mark_need);
    }
}

/* What stage 0 makes as registers for products of stage 1 to read, and what it makes of that. */
static void
place_factors(Overlap *o)
{
  bool *in = NEW_ARRAY(o->s.c->scratch, bool, o->s.n);
  for (u32 i = 0; i < o->nproducts; i++) {
    const Op *def = OPERAND(o->product[i], WGMMA, a)->def;
    if (o->s.stage[o->product[i]->mark] && def && def->block == o->s.loop->regions[0])
      in[def->mark] |= o->s.stage[def->mark] == 0 && type_is_tile(op_result(def)->type);
  }
  close_forward(o, in, false);
  for (u32 i = 0; i < o->s.n; i++)
    if (in[i] && o->s.stage[i] == 0 && o->slot[i] == REST)
      o->slot[i] = FACTORS;
}

static void
choose_order(Overlap *o)
{
  Op **body = o->s.order;
  u32 n = 0;
  for (u32 i = 0; i < o->s.n; i++)
    o->slot[i] = o->slot[i] == NEXT ? NEXT : o->s.stage[i] ? END : REST;
  place_first(o);
  place_factors(o);
  o->s.order = NEW_ARRAY(o->s.c->scratch, Op *, o->s.n + 1);
  for (u32 slot = 0; slot < SLOTS; slot++)
    for (u32 i = 0; i < o->s.n; i++)
      if (o->slot[i] == slot)
        o->s.order[n++] = body[i];
}

/* ---- what came of it ---- */

/* What a thread holds across op, an op of a loop or if of its team. */
static u32
held_around(Held *h, Op *op)
{
  u32 n = 0;
  for (; op && op->code != OP_WARP_SPECIALIZE; op = op->block->parent) {
    held_count(h, op->block, 0);
    n += h->across[op->mark];
  }
  return n;
}

/* NULL, or why the new loop has no room. */
static const char *
registers_obstacle(Overlap *o)
{
  Held held;
  Op *at = NULL;
  Team team = block_team(o->s.made->block);
  held_open(&held, o->s.c, o->s.f);
  u32 around = held_around(&held, o->s.loop), most = held_most(&held, o->s.made->regions[0], around, &at);
  u32 have = team_registers(o->s.c, team, team.warps);
  if (most + BESIDE_TILES <= have)
    return NULL;
  return arena_printf(o->s.c->scratch, "tiles of both would take about %u of a thread's %u registers", most, have);
}

/* ---- loops ---- */

static const char *
plan(Overlap *o, Ctx *c, Func *f, Op *loop, u32 nrings, Ring *const *rings)
{
  *o = (Overlap){.s = stages_open(c, f, loop), .nrings = nrings, .rings = rings};
  o->slot = NEW_ARRAY(c->scratch, u8, o->s.n + 1);
  const char *why = choose_stages(o);
  if (!why)
    choose_order(o);
  return why;
}

static void
count_waits(Ctx *c, Block *b)
{
  warpgroup_count_waits(c, b);
  for (Op *op = b->first; op; op = op->next)
    for (u32 r = 0; r < op->nregions && !op_on_elements(op); r++)
      count_waits(c, op->regions[r]);
}

/* NULL, or why n loops, of which one goes on where the one before ends, stay what they are. */
static const char *
expand(u32 n, Overlap *o)
{
  Ctx *c = o[0].s.c;
  LoopStages **s = NEW_ARRAY(c->scratch, LoopStages *, n);
  const char *why = NULL;
  for (u32 i = 0; i < n; i++)
    s[i] = &o[i].s;
  Op *expanded = stages_expand(n, s);
  count_waits(c, expanded->regions[0]);
  for (u32 i = 0; i < n && !why; i++)
    why = registers_obstacle(&o[i]);
  if (why) {
    op_remove(expanded);
    return why;
  }
  for (u32 i = 0; i < n && c->notes; i++)
    schedule_stages(c->notes, &o[i].s);
  stages_commit(n, s, expanded);
  return NULL;
}

/* The first of n loops, and those behind it that go on where it ends, if they can: how many that is. *why: why none is another one now. */
static u32
overlap_first(Ctx *c, Func *f, u32 n, Op *const *loops, u32 nrings, Ring *const *rings, const char **why)
{
  Overlap *o = NEW_ARRAY(c->scratch, Overlap, n);
  u32 row = 1;
  *why = plan(&o[0], c, f, loops[0], nrings, rings);
  if (*why)
    return 1;
  while (row < n && !plan(&o[row], c, f, loops[row], nrings, rings + row * nrings) && stages_go_on(&o[row - 1].s, &o[row].s))
    row++;
  *why = expand(row, o);
  if (!*why || row == 1)
    return row;
  plan(&o[0], c, f, loops[0], nrings, rings);        /* what asks for registers numbers ops anew */
  *why = expand(1, o);
  return 1;
}

void
overlap_products(Ctx *c, Func *f, u32 n, Op *const *loops, u32 nrings, Ring *const *rings)
{
  Span *at = NEW_ARRAY(c->scratch, Span, n);
  for (u32 i = 0; i < n; i++)
    at[i] = loops[i]->span;
  for (u32 i = 0, row; i < n; i += row) {
    const char *why;
    row = overlap_first(c, f, n - i, loops + i, nrings, rings + i * nrings, &why);
    if (why)
      warpgroup_turns(loops[i]);
    for (u32 k = i; k < i + row && c->remarks && !(why && !*why); k++)
      diag(c, at[k], why ? R_NOT_OVERLAPPED : R_OVERLAPPED, why);
  }
}
