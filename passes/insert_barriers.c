/* insert_barriers.c - add the barriers that overlapping uses of scratch memory need.
 * Needs phase sched, after alloc_shared; keeps it.
 *
 * An op with scratch writes it, meets all threads (its own barrier, made by code generation), and reads it.
 * So when it ends, every earlier access is over and only its own reads may still be under way: the state
 * between two ops is the set of ops whose reads are pending, and after an op with scratch that set is the op
 * alone. Before such an op a barrier is needed exactly when a pending read overlaps what it writes.
 *
 * What a piece of code does to the state is a Flow: the reads it leaves pending itself, and whether some path
 * lets earlier ones through. Flows compose, so one walk upwards finds the flow of every region, and with them
 * the state at the head of every loop is known without iterating: what came in, and what the body leaves. One
 * walk downwards inserts. A barrier that it inserts stands before an op that would have emptied the state
 * itself, so no flow changes by it. Barriers stand in uniform control flow because scalars are uniform. */
#include "internal.h"

typedef struct Set { VEC(const Op *) ops; } Set;
typedef struct Flow { Set leaves; bool through; } Flow;
typedef struct Barriers { Arena *arena; VEC(Flow) flows; } Barriers;   /* of op->mark: its regions', its own */

static void
add(Barriers *x, Set *s, const Op *op)
{
  for (u32 i = 0; i < s->ops.len; i++)
    if (s->ops.data[i] == op)
      return;
  vec_push(x->arena, &s->ops, op);
}

static void
join(Barriers *x, Set *s, const Set *with)
{
  for (u32 i = 0; i < with->ops.len; i++)
    add(x, s, with->ops.data[i]);
}

/* s becomes the state after f, in a storage of its own: states are kept while others are made from them. */
static void
apply(Barriers *x, Set *s, const Flow *f)
{
  Set t = {0};
  if (f->through)
    join(x, &t, s);
  join(x, &t, &f->leaves);
  *s = t;
}

/* ---- upwards ---- */

static Flow block_flow(Barriers *x, const Block *b);

enum { OWN = 2 };

static const Flow *
flow_of(const Barriers *x, const Op *op, u32 which)
{
  return &x->flows.data[op->mark + which];
}

/* For: any number of times, also none. While: region 0, then (region 1, region 0) any number of times. If: one of two. */
static Flow
op_flow(Barriers *x, Op *op)
{
  Flow f[2] = {{.through = true}, {.through = true}};
  for (u32 r = 0; r < op->nregions; r++)
    f[r] = block_flow(x, op->regions[r]);
  op->mark = x->flows.len;
  vec_push(x->arena, &x->flows, f[0]);
  vec_push(x->arena, &x->flows, f[1]);
  Flow out = {.through = true};
  join(x, &out.leaves, &f[0].leaves);
  if (op->code == OP_IF)
    out.through = f[0].through || f[1].through;
  if (op->code == OP_WHILE)
    out.through = f[0].through;
  if (op->code == OP_IF || (op->code == OP_WHILE && f[0].through))
    join(x, &out.leaves, &f[1].leaves);
  vec_push(x->arena, &x->flows, out);
  return out;
}

static bool
has_flow(const Op *op)
{
  return op_is_loop(op) || op->code == OP_IF;
}

static Flow
block_flow(Barriers *x, const Block *b)
{
  Flow f = {.through = true};
  for (Op *op = b->first; op; op = op->next) {
    if (has_flow(op)) {
      Flow g = op_flow(x, op);
      apply(x, &f.leaves, &g);
      f.through = f.through && g.through;
    } else if (op->code == OP_BARRIER || op_attr(op, AT_SCRATCH)) {
      f = (Flow){.through = false};
      if (op->code != OP_BARRIER)
        add(x, &f.leaves, op);
    }
  }
  return f;
}

/* ---- downwards ---- */

static bool
overlap(const Op *a, const Op *b)
{
  i64 a0 = op_int(a, AT_SCRATCH, 0), b0 = op_int(b, AT_SCRATCH, 0);
  return a0 < b0 + op_int(b, AT_SCRATCH_BYTES, 0) && b0 < a0 + op_int(a, AT_SCRATCH_BYTES, 0);
}

static void
insert_before(Op *op, const Set *pending)
{
  bool conflict = false;
  for (u32 i = 0; i < pending->ops.len; i++)
    conflict = conflict || overlap(pending->ops.data[i], op);
  if (!conflict)
    return;
  Builder b = builder_before(op);
  b.span = op->span;
  op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
}

/* The state at the head of region r: what comes in, and for loops what comes around. */
static Set
region_head(Barriers *x, const Set *in, const Op *op, u32 r)
{
  Set head = {0};
  join(x, &head, in);
  if (op->code == OP_FOR)
    join(x, &head, &flow_of(x, op, 0)->leaves);
  if (op->code == OP_WHILE) {
    Set around = flow_of(x, op, 0)->leaves;
    apply(x, &around, flow_of(x, op, 1));
    join(x, &head, &around);
  }
  if (op->code == OP_WHILE && r == 1)
    apply(x, &head, flow_of(x, op, 0));
  return head;
}

static void
insert_block(Barriers *x, Set *pending, Block *b)
{
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    if (has_flow(op)) {
      for (u32 r = 0; r < op->nregions; r++) {
        Set head = region_head(x, pending, op, r);
        insert_block(x, &head, op->regions[r]);
      }
      apply(x, pending, flow_of(x, op, OWN));
    } else if (op->code == OP_BARRIER) {
      *pending = (Set){0};
    } else if (op_attr(op, AT_SCRATCH)) {
      insert_before(op, pending);
      *pending = (Set){0};
      add(x, pending, op);
    }
  }
}

void
pass_insert_barriers(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Barriers x = {.arena = c->scratch};
    Set pending = {0};
    block_flow(&x, m->funcs.data[i]->body);
    insert_block(&x, &pending, m->funcs.data[i]->body);
  }
}
