/* insert_barriers.c - add the barriers that overlapping uses of scratch memory need.
 * Needs phase sched, after alloc_shared; keeps it.
 *
 * An op with scratch writes it, meets all threads (its own barrier, made by code generation), and reads it. So when it
 * ends, every earlier access is over and only its own reads may still be under way: the state between two ops is the
 * set of ops whose reads are pending, and after an op with scratch that set is the op alone. Before such an op a barrier
 * is needed exactly when a pending read overlaps what it writes; a barrier empties the set. Branches join by union. A
 * loop starts from its entry state joined with the state at its end; the join is repeated until nothing new comes,
 * without inserting, then once more inserting. Barriers go in uniform control flow because scalars are uniform. */
#include "internal.h"

typedef struct State { VEC(const Op *) pending; } State;
typedef struct Barriers { Arena *arena; bool insert; } Barriers;

static void
add(Barriers *x, State *s, const Op *op)
{
  for (u32 i = 0; i < s->pending.len; i++)
    if (s->pending.data[i] == op)
      return;
  vec_push(x->arena, &s->pending, op);
}

static State
copy(Barriers *x, const State *s)
{
  State t = {0};
  for (u32 i = 0; i < s->pending.len; i++)
    vec_push(x->arena, &t.pending, s->pending.data[i]);
  return t;
}

/* True when s gained something. */
static bool
join(Barriers *x, State *s, const State *with)
{
  u32 n = s->pending.len;
  for (u32 i = 0; i < with->pending.len; i++)
    add(x, s, with->pending.data[i]);
  return s->pending.len > n;
}

static bool
overlap(const Op *a, const Op *b)
{
  i64 a0 = op_int(a, AT_SCRATCH, 0), b0 = op_int(b, AT_SCRATCH, 0);
  return a0 < b0 + op_int(b, AT_SCRATCH_BYTES, 0) && b0 < a0 + op_int(a, AT_SCRATCH_BYTES, 0);
}

static void
scratch_op(Barriers *x, State *s, Op *op)
{
  bool conflict = false;
  for (u32 i = 0; i < s->pending.len; i++)
    conflict = conflict || overlap(s->pending.data[i], op);
  if (conflict && x->insert) {
    Builder b = builder_before(op);
    b.span = op->span;
    op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  }
  s->pending.len = 0;
  add(x, s, op);
}

static void block_flow(Barriers *x, State *s, Block *b);

static void
if_flow(Barriers *x, State *s, Op *op)
{
  State other = copy(x, s);
  block_flow(x, s, op->regions[0]);
  block_flow(x, &other, op->regions[1]);
  join(x, s, &other);
}

/* One time round: for a while, the condition runs once more than the body, and leaves from there. */
static void
round_flow(Barriers *x, State *s, State *leave, Op *op)
{
  block_flow(x, s, op->regions[0]);
  *leave = copy(x, s);
  if (op->code == OP_WHILE)
    block_flow(x, s, op->regions[1]);
}

static void
loop_flow(Barriers *x, State *s, Op *op)
{
  bool insert = x->insert;
  State entry = copy(x, s), leave = {0};
  x->insert = false;
  for (bool more = true; more;) {
    State end = copy(x, &entry);
    round_flow(x, &end, &leave, op);
    more = join(x, &entry, &end);
  }
  x->insert = insert;
  State end = copy(x, &entry);
  if (insert)
    round_flow(x, &end, &leave, op);
  if (op->code == OP_FOR)
    join(x, s, &leave);
  else
    *s = leave;
}

static void
block_flow(Barriers *x, State *s, Block *b)
{
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    if (op->code == OP_BARRIER)
      s->pending.len = 0;
    else if (op_is_loop(op))
      loop_flow(x, s, op);
    else if (op->code == OP_IF)
      if_flow(x, s, op);
    else if (op_attr(op, AT_SCRATCH))
      scratch_op(x, s, op);
  }
}

void
pass_insert_barriers(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Barriers x = {c->scratch, true};
    State s = {0};
    block_flow(&x, &s, m->funcs.data[i]->body);
  }
}
