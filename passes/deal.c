/* deal.c - see deal.h.
 *
 * Numbers of the grid's programs are dealt out beforehand: nobody asks who is free, so a launch needs no memory of its own, and two of them
 * may run at a time. That is even where all programs have as much to do. Where program_id(0) says how much (causal attention: block k of
 * rows has k + 1 blocks of keys), n of them in a row are a triangle, and i, i + R, i + 2 R, ... of R programs that stay can be
 * the same few places of it again and again: with R = 132 and n = 8, one program has 12 blocks where another has 6.
 *
 * So there they come in pairs. Two rows of the grid, one behind the other, are a block of 2 n numbers, and number x of it is done together
 * with number 2 n - 1 - x, in the second row where that is as short as x is long (a last row alone: with n - 1 - x). A pair's work is
 * about the same for all x, if it grows evenly along the row, whichever way. Pairs are dealt out in turn, so neighbours of a row
 * are at work at the same time, and what they read together is in the L2 cache once. Counted, for 132 programs and causal attention in
 * blocks of 128, a tile taking a block and a half besides: what all had to do if it were even, in parts of what the busiest has:
 *
 *   rows      heads      i, i + R, ...   pairs    whoever is free takes the next
 *   1024      256        0.77            0.97     0.94
 *   4096      64         0.89            0.97     0.94
 *   16384     16         0.64            0.97     1.00
 *
 * The last round is of numbers, not of pairs, if there is a program for each: else some had two to do and others none.
 *
 *   N numbers, R programs, this one r; whole = N / (2 R) rounds of pairs, rest = N - 2 R whole numbers
 *   for turn = 0 .. 2 whole + (rest <= R ? r < rest : (r < (rest + 1) / 2) + (r < rest / 2)) {
 *     single = turn >= 2 whole and rest <= R
 *     pair = single ? whole * R + r / 2 : turn / 2 * R + r;     second = (single ? r : turn) & 1
 *     row = pair / n * 2 n;  x = pair % n;  first = second ? n - 1 - x : x
 *     number = row + (second and row + n < N ? n : 0) + first
 *   }
 */
#include "deal.h"

/* ---- how long loops are ---- */

/* What of the kernel's values depends on the program, by id. */
typedef struct Depends { bool *any, *more; } Depends;      /* on anything of it; on more than program_id(0), or by more than arithmetic */

static void
note_results(const Op *op, const Depends *d)
{
  bool first = op->code == OP_PROGRAM_ID && op_int(op, AT_AXIS, 0) == 0;
  bool scalar = op_has(op, T_PURE) && !op->nregions && op->nresults == 1 && !type_is_tile(op_result(op)->type);
  bool any = !scalar || op->code == OP_PROGRAM_ID || op_asks(op, d->any, 0, op->noperands);
  bool more = !scalar || (op->code == OP_PROGRAM_ID && !first) || op_asks(op, d->more, 0, op->noperands);
  for (u32 i = 0; i < op->nresults; i++) {
    d->any[op->results[i]->id] = any;
    d->more[op->results[i]->id] = more;
  }
}

Lengths
deal_lengths(Ctx *c, Func *f)
{
  Depends d = {NEW_ARRAY(c->scratch, bool, f->nvalues), NEW_ARRAY(c->scratch, bool, f->nvalues)};
  Lengths lengths = ALIKE;
  for (const Op *op = f->body->first; op; op = op->next) {
    u32 bounds = loop_is_staged(op) ? loop_first_init(op) : 0;
    if ((!bounds && op->nregions && !op_on_elements(op)) || op_asks(op, d.more, 0, bounds))
      return UNLIKE;
    lengths = op_asks(op, d.any, 0, bounds) ? BY_FIRST : lengths;
    note_results(op, &d);
  }
  return lengths;
}

/* ---- the loop ---- */

static Value *
resident(Builder *b, OpCode code)
{
  const Type *index = type_scalar(b->func->module->ctx, DT_I32);
  return op_result(op_create(b, code, 0, NULL, 1, &index, 0));
}

static Value *
all_programs(Builder *b)
{
  Value *all = ir_num_programs(b, 0);
  for (int axis = 1; axis < 3; axis++)
    all = ir_binary(b, OP_MUL, all, ir_num_programs(b, axis));
  return all;
}

static Builder
in_front(Func *f)
{
  Builder b = builder_before(f->body->first);
  b.span = f->span;
  return b;
}

Deal
deal_in_turn(Func *f)
{
  Builder b = in_front(f);
  Value *all = all_programs(&b), *lo = resident(&b, OP_RESIDENT_ID), *step = resident(&b, OP_NUM_RESIDENTS);
  Op *loop = ir_for(&b, lo, all, step, 0, NULL);
  return (Deal){.loop = loop, .number = loop_counter(loop)};
}

static Value *
with(Builder *b, OpCode code, Value *x, i64 k)
{
  return ir_binary(b, code, x, i32_const(b, k));
}

/* 1 if x < y, else 0. */
static Value *
less(Builder *b, Value *x, Value *y)
{
  Value *no = i32_const(b, 0), *yes = i32_const(b, 1);
  return ir_select(b, ir_cmp(b, "lt", x, y), yes, no);
}

/* The first number of the pair's two rows, and the pair's place in them. */
typedef struct Pair { Value *row, *x; } Pair;

static Pair
pair_at(Builder *b, Value *pair, Value *n)
{
  Value *x = ir_binary(b, OP_REM, pair, n);
  return (Pair){ir_binary(b, OP_MUL, with(b, OP_MUL, ir_binary(b, OP_DIV, pair, n), 2), n), x};
}

/* Pairs taken in whole rounds, and turns of a program in these; whether the rest are single numbers; turns of this program in all. */
typedef struct Rounds { Value *all, *programs, *r, *taken, *paired, *singles, *turns; } Rounds;

static Rounds
rounds_of(Builder *b)
{
  Rounds x = {.all = all_programs(b)};
  x.r = resident(b, OP_RESIDENT_ID);
  x.programs = resident(b, OP_NUM_RESIDENTS);
  Value *whole = ir_binary(b, OP_DIV, with(b, OP_DIV, x.all, 2), x.programs);
  x.taken = ir_binary(b, OP_MUL, whole, x.programs);
  x.paired = with(b, OP_MUL, whole, 2);
  Value *rest = ir_binary(b, OP_SUB, x.all, with(b, OP_MUL, x.taken, 2)), *half = with(b, OP_DIV, rest, 2);
  x.singles = ir_cmp(b, "le", rest, x.programs);
  Value *second = less(b, x.r, half), *first = less(b, x.r, ir_binary(b, OP_SUB, rest, half));
  Value *pairs = ir_binary(b, OP_ADD, first, second);
  x.turns = ir_binary(b, OP_ADD, x.paired, ir_select(b, x.singles, less(b, x.r, rest), pairs));
  return x;
}

Deal
deal_in_pairs(Func *f)
{
  Builder b = in_front(f);
  Rounds k = rounds_of(&b);
  Value *n = ir_num_programs(&b, 0), *last = with(&b, OP_SUB, n, 1);
  Value *one = i32_const(&b, 1), *zero = i32_const(&b, 0);
  Deal d = {.loop = ir_for(&b, zero, k.turns, one, 0, NULL)};
  b = builder_at_end(f, d.loop->regions[0]);
  b.span = f->span;
  Value *turn = loop_counter(d.loop), *single = ir_binary(&b, OP_AND, k.singles, ir_cmp(&b, "ge", turn, k.paired));
  Value *odd = with(&b, OP_AND, ir_select(&b, single, k.r, turn), 1), *second = ir_cmp(&b, "ne", odd, i32_const(&b, 0));
  Value *paired = ir_binary(&b, OP_ADD, ir_binary(&b, OP_MUL, with(&b, OP_DIV, turn, 2), k.programs), k.r);
  Pair p = pair_at(&b, ir_select(&b, single, ir_binary(&b, OP_ADD, k.taken, with(&b, OP_DIV, k.r, 2)), paired), n);
  Value *two = ir_binary(&b, OP_AND, second, ir_cmp(&b, "lt", ir_binary(&b, OP_ADD, p.row, n), k.all));
  d.first = ir_select(&b, second, ir_binary(&b, OP_SUB, last, p.x), p.x);
  d.number = ir_binary(&b, OP_ADD, ir_binary(&b, OP_ADD, p.row, ir_select(&b, two, n, i32_const(&b, 0))), d.first);
  turn->name = "turn";
  d.first->name = "first";
  return d;
}
