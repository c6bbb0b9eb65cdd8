/* unpacked_dots.c - dots of weights that are unpacked, or widened from 8 bits: rewritten so that they reach them in registers.
 * Needs phase tile; keeps it.
 *
 * A thread unpacks whole words: so many neighbours along K. (What is widened is read 16 bytes at a time so, rather than 2.) An
 * instruction wants of a thread E elements (32 bits), then E that lie 4 E further on, as lanes 0 to 3 share a row; words would have
 * to go through shared memory, as what they became: four times their size. But the order of K is free if both operands have the
 * same one. Where a thread has runs of R elements, K is numbered anew:
 *
 *   k = ((block * 4 + lane) * R / E + i) * E + j      element i, j of the run of R that `lane` holds
 *   goes to ((block * R / E + i) * 4 + lane) * E + j  where the instruction expects it from that lane
 *
 * that is, two parts of K's extent [K / 4R, 4, R / E, E] are exchanged. For tiles it is a matter of names: reshape and permute
 * compile to nothing. The other operand is read from shared memory in runs of R as well, 16 bytes where those are 8 halves.
 *
 * What is unpacked to 16 bits comes as pairs: of a word of 4-bit numbers 0 and 4 share a register, 1 and 5, and so on
 * (packed_apart). Where more is unpacked than the other operand has, runs are numbered by pairs, and it is the other one that
 * is put together so.
 *
 * Besides, a dot of 8 rows or fewer wastes half an instruction (16 x 8) or more: then a x b = (b^T x a^T)^T. Other dots are left
 * as they are: their operands come straight from shared memory, a slice ahead (prefetch_slices.c), which gains more. */
#include "internal.h"
#include "packed.h"

enum { RUN_LEAST = 8, RUN_BYTES = 16, DEPTH_MAX = 64, FEW_ROWS = 8 };

/* Neighbours along K that a thread has of an operand, which elements of them share a register; a length of 0: none. */
typedef struct Run { u32 length, apart; } Run;

/* ---- where runs come from ---- */

static Run
run_of_unpack(const Op *op, u32 axis)
{
  Packing k = packing_of(op);
  bool found = axis + 1 == op_result(op)->type->rank && !k.rows && is_pow2(k.values);
  return found ? (Run){k.values, packed_apart(packed_of(op), k.values)} : (Run){0};
}

/* Of 8-bit numbers made 16 bits wide, if they lie side by side in memory. */
static Run
run_of_cast(const AxisInfo *axes, const Op *op, u32 axis)
{
  const Value *x = OPERAND(op, CAST, x);
  if (type_elem_bits(x->type) != 8 || type_elem_bits(op_result(op)->type) != 16)
    return (Run){0};
  u32 run = x->type->shape[axis] % (4 * RUN_BYTES) ? RUN_LEAST : RUN_BYTES;
  for (; op_is(x, OP_PERMUTE); x = OPERAND(x->def, PERMUTE, x))
    axis = (u32)op_attr(x->def, AT_PERM)->ints.v[axis];
  return op_is(x, OP_LOAD) && axes[OPERAND(x->def, LOAD, p)->id].contiguity[axis] >= run ? (Run){run, 1} : (Run){0};
}

/* The neighbours along axis that a thread has of v because they are unpacked or read together. */
static Run
run_along(const AxisInfo *axes, const Value *v, u32 axis, u32 depth)
{
  const Op *op = v->def;
  if (!op || depth == DEPTH_MAX)
    return (Run){0};
  if (op->code == OP_UNPACK)
    return run_of_unpack(op, axis);
  if (op->code == OP_PERMUTE)
    return run_along(axes, OPERAND(op, PERMUTE, x), (u32)op_attr(op, AT_PERM)->ints.v[axis], depth + 1);
  Run most = op->code == OP_CAST ? run_of_cast(axes, op, axis) : (Run){0};
  for (u32 i = 0; op_has(op, T_ELEM | T_PURE) && i < op->noperands; i++) {
    Run run = run_along(axes, op_operand(op, i), axis, depth + 1);
    most = run.length > most.length ? run : most;
  }
  return most;
}

/* ---- rewriting ---- */

/* x, of two dimensions, as n parts, of which number `at` and the next are exchanged. */
static Value *
exchanged(Builder *b, Value *x, u32 n, const u32 *parts, u32 at)
{
  int perm[] = {0, 1, 2, 3, 4};
  perm[at] = (int)at + 1;
  perm[at + 1] = (int)at;
  return ir_reshape(b, ir_permute(b, ir_reshape(b, x, n, parts), perm), 2, x->type->shape);
}

/* Elements e and e + apart of K, which is dimension `axis` of two, become neighbours. */
static Value *
in_pairs(Builder *b, Value *x, u32 axis, u32 apart)
{
  const u32 *shape = x->type->shape;
  u32 parts[] = {axis ? shape[0] : shape[0] / (2 * apart), axis ? shape[1] / (2 * apart) : 2, axis ? 2 : apart, axis ? apart : shape[1]};
  return apart == 1 ? x : exchanged(b, x, 4, parts, axis ? 2 : 1);
}

/* K in the order for runs of `run` elements. */
static Value *
in_order(Builder *b, Value *x, u32 axis, u32 run)
{
  const Type *t = x->type;
  u32 each = 32 / type_elem_bits(t), k = t->shape[axis];
  u32 parts[] = {axis ? t->shape[0] : k / (4 * run), axis ? k / (4 * run) : 4, axis ? 4 : run / each, axis ? run / each : each,
                 axis ? each : t->shape[1]};
  return exchanged(b, x, 5, parts, axis ? 2 : 1);
}

static Value *
transposed(Builder *b, Value *x)
{
  return ir_permute(b, x, (int[]){1, 0});
}

static Value *
dot_like(Builder *b, const Op *dot, Value *x, Value *y, Value *acc)
{
  Value *r = ir_dot(b, x, y, acc);
  for (u32 i = 0; i < dot->nattrs; i++)
    op_set_attr(r->def, dot->attrs[i]);
  return r;
}

static void
rewrite(Op *dot, u32 run, u32 apart)
{
  Builder b = builder_before(dot);
  b.span = dot->span;
  Value *x = in_order(&b, in_pairs(&b, OPERAND(dot, DOT, a), 1, apart), 1, run);
  Value *y = in_order(&b, in_pairs(&b, OPERAND(dot, DOT, b), 0, apart), 0, run), *acc = OPERAND(dot, DOT, acc);
  const u32 *shape = op_result(dot)->type->shape;
  const bool turn = shape[0] <= FEW_ROWS && shape[1] > FEW_ROWS;
  if (turn) {
    Value *acc_t = transposed(&b, acc), *x_t = transposed(&b, x);
    x = transposed(&b, y);
    y = x_t;
    acc = acc_t;
  }
  Value *r = dot_like(&b, dot, x, y, acc);
  r = turn ? transposed(&b, r) : r;
  r->name = op_result(dot)->name;
  value_replace_uses(op_result(dot), r);
  op_remove(dot);
}

static void
visit(const AxisInfo *axes, Op *dot)
{
  const Type *a = OPERAND(dot, DOT, a)->type;
  if (a->rank != 2 || type_elem_bits(a) > 16 || !is_pow2(a->shape[1]))
    return;
  u32 m = a->shape[0], n = op_result(dot)->type->shape[1];
  Run ra = run_along(axes, OPERAND(dot, DOT, a), 1, 0), rb = run_along(axes, OPERAND(dot, DOT, b), 0, 0);
  Run run = ra.length > rb.length ? ra : rb;
  u32 wide = run.length < RUN_LEAST ? RUN_LEAST : run.length;
  bool pairs = type_elem_bits(a) == 16 && (ra.length > rb.length ? m > n : n > m);
  if (run.length && a->shape[1] % (4 * wide) == 0)
    rewrite(dot, wide, pairs ? run.apart : 1);
}

void
pass_unpacked_dots(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec dots = func_ops(c, m->funcs.data[i], OP_DOT);
    const AxisInfo *axes = dots.len ? analyse_axes(m->funcs.data[i]) : NULL;
    for (u32 k = 0; k < dots.len; k++)
      visit(axes, dots.data[k]);
  }
}
