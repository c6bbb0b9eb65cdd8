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
 * What a thread holds is counted in tiles that are not indices (held.h). */
#include "alias.h"
#include "held.h"
#include "scratch.h"

enum { REGISTERS = 40, NARROW = 8, NARROW_REGISTERS = 128, REACH = 1024 };   /* REACH: ops that a load passes at most */

typedef struct Hoist {
  Ctx *c;
  Held held;
  u32 *wanted_by;                                      /* by mark of the block's ops: the mark of the load whose address it makes */
} Hoist;

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
      h->wanted_by[v->def->mark] = load->mark;
  }
}

static bool
is_wanted(const Hoist *h, const Op *op, const Op *load)
{
  return h->wanted_by[op->mark] == load->mark;
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
    } else if (!lets_pass(op) || h->held.across[op->mark] + words > most) {
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
      h->held.across[op->mark] += words;
  }
  op_move_before(load, to);
}

static void
hoist_block(Hoist *h, Block *b, u32 around)
{
  u32 n = held_count(&h->held, b, around);
  h->wanted_by = NEW_ARRAY(h->c->scratch, u32, n + 1);
  for (Op *op = b->first, *next; op; op = next) {
    next = op->next;
    Op *to = movable(op) ? farthest_meeting(h, op) : NULL;
    to = to ? meeting_behind_stores(h, op, to) : NULL;
    if (to)
      move_load(h, op, to);
  }
  const u32 *across = h->held.across;
  for (Op *op = b->first; op; op = op->next)
    for (u32 r = 0; !op_on_elements(op) && r < op->nregions; r++)
      hoist_block(h, op->regions[r], across[op->mark]);
}

void
pass_hoist_loads(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    Hoist h = {.c = c};
    held_open(&h.held, c, f);
    hoist_block(&h, f->body, 0);
  }
}
