/* pingpong.c - see pingpong.h.
 *
 * A program that stays (walk_grid.c) and whose tile is one warpgroup's gets two teams that multiply: the first has the tiles 0, 2, 4, ...
 * of the program's, the second those between. The team that copies goes through all of them in order and fills one ring.
 *
 *   for number = lo .. N, step {                    for number = lo + p step .. N, 2 step, turn = 1 - p {        team p
 *     for k, get, phase { await; product }            wait mine[p], turn
 *     store                                ==>        for k, get, phase { await; product }
 *   }                                                 arrive mine[1 - p]
 *                                                     store;  get, phase += the slots of the other's tile
 *                                                   }
 *
 * While one team stores its sums the other one multiplies. An mbarrier for each says that it is its turn: the other has started its last
 * products, so it has seen all slots full that are in front of this one's, whose phases are therefore the next to end. Without that the
 * parity for which a team waits could be that of a phase two before its own.
 *
 * Each tile must have as many slots as any other: a team passes over the other's without seeing them.
 *
 * When. A kernel of four warps that stays has these teams by itself where its ring leaves no room for another program on the multiprocessor
 * (pipeline_loops.c): nothing else would multiply while it stores. Whether tiles of one warpgroup are better than larger ones of two is
 * for who measures: they take more bytes a product, and their sums cost no time. */
#include "pingpong.h"
#include "boxes.h"
#include "wgmma.h"

enum { TEAMS = 2, GET = 0, PHASE = 1 };   /* what the walk carries, and nothing else */

bool
pingpong_wanted(const Func *f)
{
  return f->warps == WGMMA_GROUP && f->pingpong != CHOICE_OFF && (f->persistent || f->pingpong == CHOICE_ON) && !f->leaves;
}

const char *
pingpong_head_obstacle(const Func *f)
{
  return f->warps != WGMMA_GROUP ? "a tile is not for four warps" : "its programs do not stay";
}

/* The loop over a program's tiles around these loops, which stand directly in it; NULL: there is none. */
static Op *
walk_around(u32 n, const Ring *rings)
{
  Op *walk = rings[0].loop->block->parent;
  if (!walk || walk->code != OP_FOR || !op_is(OPERAND(walk, FOR, lo), OP_RESIDENT_ID))
    return NULL;
  for (u32 i = 1; i < n; i++)
    if (rings[i].loop->block != walk->regions[0])
      return NULL;
  return walk;
}

const char *
pingpong_obstacle(u32 n, const Ring *rings, bool defer)
{
  const Op *walk = walk_around(n, rings);
  if (!walk)
    return "the loop is not directly in a kernel whose programs stay";
  if (walk->nresults)
    return "a program's tiles hand something on to each other";
  if (!defer)
    return "its products do not run on from one iteration to the next";
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < SLOT(FOR, inits); k++)
      if (value_within(op_operand(rings[i].loop, k), walk))
        return "its length is not the same for all tiles, and a team has to know that of the other's";
  return NULL;
}

/* ---- slots ---- */

/* Iterations of all the loops, modulo twice the slots: after so many everything is as it was. In front of the walk. */
static Value *
slots_of_tile(Builder *b, u32 n, Op *const *loops, u32 slots)
{
  Value *sum = i32_const(b, 0);
  for (u32 i = 0; i < n; i++) {
    Value *lo = OPERAND(loops[i], FOR, lo), *hi = OPERAND(loops[i], FOR, hi), *trips = loop_trips(b, loops[i]);
    Value *round = ir_binary(b, OP_REM, trips, ir_const_int(b, trips->type, 2 * slots));
    Value *none = i32_const(b, 0), *last = ir_cast(b, round, DT_I32);
    Value *some = ir_select(b, ir_cmp(b, "lt", lo, hi), last, none);
    sum = ir_binary(b, OP_ADD, sum, some);
  }
  return n > 1 ? ir_binary(b, OP_REM, sum, i32_const(b, 2 * slots)) : sum;
}

typedef struct Place { Value *get, *phase; } Place;

/* Where the ring goes on `by` slots behind at. */
static Place
place_ahead(Builder *b, Place at, Value *by, u32 slots)
{
  Value *to = ir_binary(b, OP_ADD, at.get, by), *all = i32_const(b, slots);
  Value *one = i32_const(b, 1), *rounds = ir_binary(b, OP_AND, ir_binary(b, OP_DIV, to, all), one);
  Value *get = ir_binary(b, OP_REM, to, all);
  return (Place){get, ir_binary(b, OP_XOR, at.phase, rounds)};
}

/* ---- one team ---- */

typedef struct Turns {
  u32 n, slots;
  Op *loop[CARRIED_OPS];     /* in the team's region */
  Value *mine;               /* row of mbarriers: team p waits for number p */
  i64 p;
} Turns;

static Value *
mbarrier_of(const Turns *x, Builder *b, i64 p)
{
  return ir_shared_index(b, x->mine, i32_const(b, p));
}

/* Every second tile, from number p on; the ring begins and goes on behind the slots of the other's. */
static void
take_own(const Turns *x, Op *walk)
{
  Builder b = builder_before(walk), end = builder_before(block_terminator(walk->regions[0]));
  end.span = b.span = walk->span;
  Value *step = OPERAND(walk, FOR, step), *by = slots_of_tile(&b, x->n, x->loop, x->slots);
  if (x->p) {
    u32 first = loop_first_init(walk);
    Place at = {loop_init(walk, GET), loop_init(walk, PHASE)};
    at = place_ahead(&b, at, by, x->slots);
    op_set_operand(walk, SLOT(FOR, lo), ir_binary(&b, OP_ADD, OPERAND(walk, FOR, lo), step));
    op_set_operand(walk, first + GET, at.get);
    op_set_operand(walk, first + PHASE, at.phase);
  }
  op_set_operand(walk, SLOT(FOR, step), ir_binary(&b, OP_ADD, step, step));
  Op *yield = end.before;
  u32 first = yield_first(yield);
  Place next = place_ahead(&end, (Place){op_operand(yield, first + GET), op_operand(yield, first + PHASE)}, by, x->slots);
  op_set_operand(yield, first + GET, next.get);
  op_set_operand(yield, first + PHASE, next.phase);
}

/* The products of a tile stand between the wait for this team's turn and the arrival that gives the other one its own. */
static void
wait_for_turn(const Turns *x, Op *walk)
{
  Builder b = builder_before(walk);
  b.span = walk->span;
  Value *turn = loop_carry(walk, i32_const(&b, 1 - x->p), "turn");
  b = builder_before(x->loop[0]);
  b.span = walk->span;
  op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){mbarrier_of(x, &b, x->p), turn}, 0, NULL, 0);
  b = builder_after(x->loop[x->n - 1]);
  b.span = walk->span;
  Value *other = mbarrier_of(x, &b, 1 - x->p);
  op_create(&b, OP_MBARRIER_ARRIVE, 1, &other, 0, NULL, 0);
  Op *yield = block_terminator(walk->regions[0]);
  b = builder_before(yield);
  b.span = walk->span;
  op_add_operand(yield, ir_binary(&b, OP_XOR, turn, i32_const(&b, 1)));
}

static void
take_turns(const Turns *x)
{
  Op *walk = x->loop[0]->block->parent;
  take_own(x, walk);
  wait_for_turn(x, walk);
}

/* ---- both ---- */

void
pingpong_part(Ctx *c, Op *teams, Block *second, u32 n, Ring *const *rings)
{
  Func *f = second->func;
  const Ring *r = rings[0];
  Turns x[TEAMS];
  Value *mine = box_mbarriers(c, f, r->loop->span, TEAMS), **map = NEW_ARRAY(c->scratch, Value *, f->nvalues);
  Builder b = builder_at_end(f, second);
  b.span = teams->span;
  for (const Op *op = teams->regions[0]->first; op; op = op->next)
    op_clone(&b, op, map);
  for (u32 p = 0; p < TEAMS; p++) {
    x[p] = (Turns){.n = n, .slots = r->slots, .mine = mine, .p = p};
    for (u32 i = 0; i < n; i++)
      x[p].loop[i] = p ? map[rings[i]->loop->results[0]->id]->def : rings[i]->loop;
  }
  for (u32 p = 0; p < TEAMS; p++)
    take_turns(&x[p]);
}
