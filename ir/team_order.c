/* team_order.c - what the regions of a warp_specialize do to the same buffer.
 *
 * One that a region writes and another touches has to be ordered by mbarriers: the one arrives, the other waits, if need be by way of
 * others. Whether it is depends on phases, which nobody knows here. But where no chain of mbarriers leads from the one region to the
 * other or back, it is not: that is a clash, if both surely reach the same elements. */
#include "ir.h"

/* A store, copy or load of all of a view. index: of the buffer that it picks from a row, NONE: of no row. part: a slice. */
enum { NONE = -1, UNKNOWN = -2 };
typedef struct Access { const Op *op, *alloc; i64 index; u32 region; bool part, writes; } Access;
/* Of a row of mbarriers, regions by their bits. */
typedef struct Signals { const Op *alloc; u32 arrive, wait; } Signals;
typedef struct Order { Arena *arena; u32 region; VEC(Access) accesses; VEC(Signals) signals; u32 reach[TEAMS_MAX]; } Order;

static void
view_of(const Value *b, Access *a)
{
  a->index = NONE;
  for (; b && b->def && op_is_view(b->def); b = op_buffer(b->def)) {
    a->part |= b->def->code == OP_SHARED_SLICE;
    if (b->def->code == OP_SHARED_INDEX && !value_const_int(OPERAND(b->def, SHARED_INDEX, i), &a->index))
      a->index = UNKNOWN;
  }
  a->alloc = b ? b->def : NULL;
}

static bool
same_kind(const Access *a, const Access *b)
{
  return a->alloc == b->alloc && a->region == b->region && a->index == b->index && a->part == b->part && a->writes == b->writes;
}

/* One of each kind will do. */
static void
note_access(Order *o, const Op *op)
{
  Access a = {.op = op, .region = o->region, .writes = op_effect(op, 0) & FX_WRITE};
  view_of(op_buffer(op), &a);
  for (u32 i = 0; i < o->accesses.len; i++)
    if (same_kind(&o->accesses.data[i], &a))
      return;
  vec_push(o->arena, &o->accesses, a);
}

static void
note_signal(Order *o, const Value *mbarrier, bool arrives)
{
  const Op *alloc = buffer_alloc(mbarrier);
  u32 i = 0;
  while (i < o->signals.len && o->signals.data[i].alloc != alloc)
    i++;
  if (i == o->signals.len)
    vec_push(o->arena, &o->signals, ((Signals){.alloc = alloc}));
  *(arrives ? &o->signals.data[i].arrive : &o->signals.data[i].wait) |= 1u << o->region;
}

static void
look_at(Op *op, void *user)
{
  bool box = op->code == OP_TMA_LOAD || op->code == OP_TMA_STORE;
  bool whole = box || op->code == OP_SHARED_LOAD || op->code == OP_SHARED_STORE || (op->code == OP_ASYNC_COPY && !op_mask(op));
  const Value *b = op_buffer(op);
  if (!b || !type_is_shared(b->type))
    return;
  if (whole && !buffer_remote(b))
    note_access(user, op);
  if (op->code == OP_MBARRIER_ARRIVE || op->code == OP_MBARRIER_WAIT)
    note_signal(user, b, op->code == OP_MBARRIER_ARRIVE);
  if (op->code == OP_TMA_LOAD)
    note_signal(user, OPERAND(op, TMA_LOAD, m), true);
}

/* reach[i]: regions that wait for something that i arrived at, at once or by way of others. */
static void
find_reach(Order *o, u32 n)
{
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < o->signals.len; k++)
      o->reach[i] |= o->signals.data[k].arrive >> i & 1 ? o->signals.data[k].wait : 0;
  for (u32 k = 0; k < n; k++)
    for (u32 i = 0; i < n; i++)
      o->reach[i] |= o->reach[i] >> k & 1 ? o->reach[k] : 0;
}

static bool
surely_clash(const Order *o, const Access *a, const Access *b)
{
  bool ordered = o->reach[a->region] >> b->region & 1 || o->reach[b->region] >> a->region & 1;
  bool overlap = a->alloc == b->alloc && a->index == b->index && a->index != UNKNOWN && !(a->part && b->part);
  return a->region != b->region && (a->writes || b->writes) && overlap && !ordered;
}

bool
team_clash(Arena *a, const Op *teams, TeamClash *out)
{
  Order o = {.arena = a};
  for (; o.region < teams->nregions; o.region++)
    block_walk(teams->regions[o.region], look_at, &o);
  find_reach(&o, teams->nregions);
  for (u32 i = 0; i < o.accesses.len; i++)
    for (u32 k = 0; k < i; k++) {
      const Access *x = &o.accesses.data[k], *y = &o.accesses.data[i];
      if (surely_clash(&o, x, y)) {
        *out = (TeamClash){{x->op, y->op}, {x->region, y->region}, {x->writes, y->writes}};
        return true;
      }
    }
  return false;
}

/* ---- arrivals ---- */

typedef struct Arrivals { const Op *alloc; ArrivalsShort *out; bool any; } Arrivals;

static void
count_arrival(Op *op, void *user)
{
  Arrivals *a = user;
  const Value *b = op_buffer(op);
  if ((op->code != OP_MBARRIER_ARRIVE && op->code != OP_MBARRIER_WAIT) || buffer_alloc(b) != a->alloc)
    return;
  if (op->code == OP_MBARRIER_WAIT && !a->out->wait)
    a->out->wait = op;
  if (op->code == OP_MBARRIER_ARRIVE) {
    a->any |= block_loop_depth(op->block) || buffer_remote(b);
    a->out->made++;
  }
}

bool
arrivals_short(const Func *f, ArrivalsShort *out)
{
  for (const Op *op = f->body->first; op; op = op->next) {
    if (op->code != OP_MBARRIER_INIT)
      continue;
    *out = (ArrivalsShort){.init = op, .wanted = (u32)op_int(op, AT_ARRIVALS, 1)};
    Arrivals a = {.alloc = buffer_alloc(op_buffer(op)), .out = out};
    block_walk(f->body, count_arrival, &a);
    if (out->wait && !a.any && out->made < out->wanted)
      return true;
  }
  return false;
}
