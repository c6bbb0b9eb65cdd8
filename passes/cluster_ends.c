/* cluster_ends.c - barriers of the cluster that programs begin and end with.
 *
 * Another program's shared memory is used while that runs, and who arrives at an mbarrier of it, or copies to it, has to know that it is
 * initialised. So in front of the first such op of the kernel's body all programs meet, behind a fence for what they initialised,
 * and behind the last one they meet again; where they do anyway, by a cluster_barrier of the program's own, that will do. A relaxed barrier
 * is enough for both: at the start the fence orders what is to be seen, and at the end arrivals and copies are over, as those whom they
 * are for have waited for them. Loads and stores are over only behind a barrier that orders them. */
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

static Op *
put_before(Op *op, OpCode code)
{
  Builder b = builder_before(op);
  b.span = op->span;
  return op_create(&b, code, 0, NULL, 0, NULL, 0);
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
    at = put_before(op, OP_CLUSTER_BARRIER);
    op_set_int(at, AT_RELAXED, 1);
  }
  if (shows)
    op_set_str(put_before(at, OP_FENCE), AT_KIND, "mbarrier");
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
  Op *barrier = put_before(end, OP_CLUSTER_BARRIER);
  if (!(uses & USES_MEMORY))
    op_set_int(barrier, AT_RELAXED, 1);
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
}
