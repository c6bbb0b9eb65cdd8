/* hoist_loads.c - start loads in front of the meeting of warps that stands before them, where registers allow.
 * Needs phase sched, after plan_conversions, in front of alloc_shared; keeps it.
 *
 * A fold across warps ends in a barrier, and neither LLVM nor ptxas moves a load past one. What is asked for behind it (the weights
 * of a norm, behind the sums of its row) comes a whole trip to memory later than it could, though its address was known all along.
 * So a load moves, with the arithmetic of its address and mask, in front of the first op with scratch that it can pass:
 *   - nothing between may store where it reads (ir/alias.h), be atomic, or have an effect of its own;
 *   - what it loads is held for longer, which costs programs that a multiprocessor runs at a time. Where that many more bytes are asked
 *     for at once by one program, fewer are by all: a row of 64 elements a thread loses more than it gains. The tiles that a
 *     thread holds at any op that the load passes, and those loaded, may take REGISTERS. Where it is issuing the loads that takes
 *     the time, as their accesses are narrower than NARROW bytes, the number of programs matters less, and NARROW_REGISTERS will do.
 * Both were measured with a layer norm of 1000 to 16384 columns (bench/RESULTS.md).
 *
 * What a thread holds is counted in tiles that are not indices: a tile made of ranges, constants and scalars alone is computed again
 * where it is used, or is part of an address. */
#include "alias.h"
#include "internal.h"
#include "scratch.h"

enum { REGISTERS = 40, NARROW = 8, NARROW_REGISTERS = 128, REACH = 1024 };   /* REACH: ops that a load passes at most */

typedef struct Place { u32 held, wanted_by; } Place;   /* of an op of the block: registers across it; the load whose address it makes */
typedef struct Hoist {
  Ctx *c;
  bool *index;                                         /* by value: computed from ranges, constants and scalars */
  Place *places;                                       /* by mark of the block's ops, which is above 0 */
} Hoist;

/* ---- what a thread holds ---- */

static void
note_index(Op *op, void *user)
{
  Hoist *h = user;
  bool index = op_is_arithmetic(op) && op->code != OP_CONVERT_LAYOUT;
  for (u32 i = 0; index && i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    index = !v || !type_is_tile(v->type) || h->index[v->id];
  }
  for (u32 i = 0; i < op->nresults; i++)
    h->index[op->results[i]->id] = index;
}

static u32
held_registers(const Hoist *h, const Value *v)
{
  return type_is_tile(v->type) && !h->index[v->id] ? type_registers(v->type) : 0;
}

/* v is held from a place on to its last use in b, and there if that is in a region. */
static void
hold(Hoist *h, const Value *v, const Block *b, u32 from)
{
  u32 n = held_registers(h, v), to = from;
  for (const Use *u = v->uses; n && u; u = u->next) {
    const Op *op = op_ancestor_in(u->user, b);
    u32 end = !op ? 0 : op->mark + (op != u->user);
    to = end > to ? end : to;
  }
  h->places[from].held += n;
  h->places[to].held -= n;
}

/* Numbers the ops of b from 1 and counts what is held across each; around: by the op that b is in. */
static void
count_held(Hoist *h, Block *b, u32 around)
{
  u32 n = 1;
  for (Op *op = b->first; op; op = op->next)
    op->mark = n++;
  h->places = NEW_ARRAY(h->c->scratch, Place, n + 1);
  h->places[1].held = around;
  for (u32 i = 0; i < b->nargs; i++)
    hold(h, b->args[i], b, 1);
  for (Op *op = b->first; op; op = op->next)
    for (u32 i = 0; i < op->nresults; i++)
      hold(h, op->results[i], b, op->mark + 1);
  for (u32 i = 2; i < n; i++)
    h->places[i].held += h->places[i - 1].held;
}

/* ---- how far a load can go ---- */

static bool
movable(const Op *op)
{
  return op->code == OP_LOAD && !op_attr(op, AT_VOLATILE) && !op_attr(op, AT_AHEAD);
}

/* A load's address is made by ops of its block that go with it. */
static void
want_operands(Hoist *h, const Op *op, const Op *load)
{
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    if (v && v->def && v->def->block == load->block)
      h->places[v->def->mark].wanted_by = load->mark;
  }
}

static bool
is_wanted(const Hoist *h, const Op *op, const Op *load)
{
  return h->places[op->mark].wanted_by == load->mark;
}

/* May a load pass op, whatever op stores? Atomic ops may order what is behind them. */
static bool
lets_pass(const Op *op)
{
  if (op->nregions && !op_on_elements(op))
    return false;
  return !op_has(op, T_SIDE) && (op->code == OP_STORE || !(op_global_effects(op) & FX_WRITE));
}

static u32
most_registers(const Op *load)
{
  const Type *t = op_result(load)->type;
  return type_is_tile(t) && (u32)op_int(load, AT_VEC, 1) * type_elem_bytes(t) < NARROW ? NARROW_REGISTERS : REGISTERS;
}

/* The farthest meeting in front of a load that it may pass as far as registers and operands go; NULL: none. */
static Op *
farthest_meeting(Hoist *h, Op *load)
{
  u32 words = type_registers(op_result(load)->type), most = most_registers(load), reach = REACH;
  Op *best = NULL;
  want_operands(h, load, load);
  for (Op *op = load->prev; op && reach--; op = op->prev) {
    if (is_wanted(h, op, load)) {
      if (!op_is_arithmetic(op))
        break;
      want_operands(h, op, load);
    } else if (!lets_pass(op) || h->places[op->mark].held + words > most) {
      break;
    } else if (scratch_bytes(h->c, op)) {
      best = op;
    }
  }
  return best;
}

/* Of the meetings from `to` on, the farthest that no store stands behind that may store where the load reads. */
static Op *
meeting_behind_stores(const Hoist *h, Op *load, Op *to)
{
  GlobalAccess reads, writes;
  global_access(load, &reads);
  Op *best = NULL;
  for (Op *op = load->prev; op != to->prev; op = op->prev) {
    if (op->code == OP_STORE && global_access(op, &writes) && global_overlap(&reads, &writes))
      return best;
    best = scratch_bytes(h->c, op) && !is_wanted(h, op, load) ? op : best;
  }
  return best;
}

static void
move_load(Hoist *h, Op *load, Op *to)
{
  u32 words = type_registers(op_result(load)->type);
  for (Op *op = to, *next; op != load; op = next) {
    next = op->next;
    if (is_wanted(h, op, load))
      op_move_before(op, to);
    else
      h->places[op->mark].held += words;
  }
  op_move_before(load, to);
}

static void
hoist_block(Hoist *h, Block *b, u32 around)
{
  count_held(h, b, around);
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    Op *to = movable(op) ? farthest_meeting(h, op) : NULL;
    to = to ? meeting_behind_stores(h, op, to) : NULL;
    if (to)
      move_load(h, op, to);
  }
  const Place *places = h->places;
  for (Op *op = b->first; op; op = op->next)
    for (u32 r = 0; !op_on_elements(op) && r < op->nregions; r++)
      hoist_block(h, op->regions[r], places[op->mark].held);
}

void
pass_hoist_loads(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    Hoist h = {.c = c, .index = NEW_ARRAY(c->scratch, bool, f->nvalues)};
    func_walk(f, note_index, &h);
    hoist_block(&h, f->body, 0);
  }
}
