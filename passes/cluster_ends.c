/* cluster_ends.c - barriers of the cluster that programs begin and end with, and what their mbarriers hand over.
 *
 * Another program's shared memory is used while that runs, and who arrives at an mbarrier of it, or copies to it, has to know that it is
 * initialised. So in front of the first such op of the kernel's body all programs meet, behind a fence for what they initialised,
 * and behind the last one they meet again; where they do anyway, by a cluster_barrier of the program's own, that will do. A relaxed barrier
 * is enough for both: at the start the fence orders what is to be seen, and at the end arrivals and copies are over, as those whom they
 * are for have waited for them. Loads and stores are over only behind a barrier that orders them.
 *
 * An arrival at another program's mbarrier says that reads before it are over: what the program that waits does then, by copies above all,
 * cannot come too early. That it also shows what was written is dear (a fence for the whole device), and rarely asked for: only where
 * programs load or store each other's shared memory, or load from global memory what they store there. Then such arrivals, and the waits at
 * mbarriers that others arrive at, have the scope of the cluster. */
#include "alias.h"
#include "cluster_ends.h"

/* What an op, or one in it, does to the shared memory of other programs. */
enum { USES_MBARRIER = 1, USES_MEMORY = 2, USES = USES_MBARRIER | USES_MEMORY, INITIALISES = 4 };

static void
note_uses(Op *op, void *user)
{
  u32 *uses = user;
  *uses |= op->code == OP_MBARRIER_INIT ? INITIALISES : op_attr(op, AT_MULTICAST) ? USES_MBARRIER : 0;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *b = op_operand(op, i);
    if (!b || !type_is_shared(b->type) || op_is_view(op) || !buffer_remote(b))
      continue;
    *uses |= op_effect(op, i) & FX_ORDER ? USES_MBARRIER : USES_MEMORY;
  }
}

static u32
uses_of(Op *op)
{
  u32 uses = 0;
  note_uses(op, &uses);
  for (u32 r = 0; r < op->nregions; r++)
    block_walk(op->regions[r], note_uses, &uses);
  return uses;
}

/* Where all programs meet behind what they initialised and in front of op: a barrier that is there, or a new one. */
static void
meet_before(Op *op)
{
  Op *at = op->prev;
  bool shows = false;
  for (Op *x = op; x; x = x->prev)
    shows |= (uses_of(x) & INITIALISES) != 0;
  while (at && at->code != OP_CLUSTER_BARRIER && !(uses_of(at) & INITIALISES))
    at = at->prev;
  bool there = at && at->code == OP_CLUSTER_BARRIER;
  if (!there) {
    at = op_put_before(op, OP_CLUSTER_BARRIER);
    op_set_int(at, AT_RELAXED, 1);
  }
  if (shows)
    op_set_str(op_put_before(at, OP_FENCE), AT_KIND, "mbarrier");
}

static void
meet_at_end(Func *f)
{
  Op *end = f->body->last;
  u32 uses = 0;
  for (Op *op = end->prev; op && op->code != OP_CLUSTER_BARRIER; op = op->prev)
    uses |= uses_of(op);
  if (!(uses & USES))
    return;
  Op *barrier = op_put_before(end, OP_CLUSTER_BARRIER);
  if (!(uses & USES_MEMORY))
    op_set_int(barrier, AT_RELAXED, 1);
}

/* ---- what mbarriers hand over ---- */

typedef struct Handed { Arena *arena; bool memory; VEC(GlobalAccess) global; } Handed;

static void
note_handed(Op *op, void *user)
{
  Handed *h = user;
  GlobalAccess a;
  u32 uses = 0;
  note_uses(op, &uses);
  h->memory |= (uses & USES_MEMORY) != 0;
  if (op_pointer(op) && global_access(op, &a))
    vec_push(h->arena, &h->global, a);
}

static bool
may_be_same(const Func *f, const GlobalAccess *a, const GlobalAccess *b)
{
  if (!a->root || !b->root || a->root->index >= APART_MAX || b->root->index >= APART_MAX)
    return true;
  return f->params[a->root->index].same == f->params[b->root->index].same;
}

static bool
stores_for(const GlobalAccess *w, const GlobalAccess *r)
{
  return w->effect & FX_WRITE && r->effect & FX_READ;
}

/* Does a program perhaps load from global memory what another one stores? */
static bool
global_is_shared(const Func *f, const Handed *h)
{
  const GlobalAccess *x = h->global.data;
  for (u32 i = 0; i < h->global.len; i++)
    for (u32 k = 0; k < h->global.len; k++)
      if (stores_for(&x[i], &x[k]) && may_be_same(f, &x[i], &x[k]))
        return true;
  for (u32 i = 0; i < h->global.len; i++)
    for (u32 k = 0; k < h->global.len; k++)
      if (stores_for(&x[i], &x[k]))
        global_rely_on_apart(&x[i], &x[k]);
  return false;
}

static void
set_scope(Op *op, void *user)
{
  bool arrives = op->code == OP_MBARRIER_ARRIVE && buffer_remote(OPERAND(op, MBARRIER_ARRIVE, b));
  bool waits = op->code == OP_MBARRIER_WAIT && cluster_reaches(op_result(buffer_alloc(OPERAND(op, MBARRIER_WAIT, b))));
  if (arrives || waits)
    op_set_str(op, AT_SCOPE, "cluster");
}

static void
find_arrival(Op *op, void *user)
{
  *(bool *)user |= op->code == OP_MBARRIER_ARRIVE && buffer_remote(OPERAND(op, MBARRIER_ARRIVE, b));
}

static void
say_what_is_handed_over(Func *f)
{
  Handed h = {.arena = f->module->ctx->scratch};
  bool arrives = false;
  func_walk(f, find_arrival, &arrives);
  if (!arrives)
    return;
  func_walk(f, note_handed, &h);
  if (h.memory || global_is_shared(f, &h))
    func_walk(f, set_scope, NULL);
}

void
cluster_ends(Func *f)
{
  Op *first = f->body->first;
  if (func_cluster(f) == 1)
    return;
  while (first && !(uses_of(first) & USES))
    first = first->next;
  if (first)
    meet_before(first);
  meet_at_end(f);
  say_what_is_handed_over(f);
}
