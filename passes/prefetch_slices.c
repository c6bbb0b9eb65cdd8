/* prefetch_slices.c - cut the dot of a pipelined loop along K, and load each slice's fragments one slice ahead.
 * Needs phase placed, right after pipeline_loops; keeps it.
 *
 * In a pipelined loop an iteration begins with a wait and a barrier, and then its first fragments come from shared memory
 * while the tensor cores have nothing to do. Here the loop is rotated by one slice: the fragments of a slice are loaded before
 * the dot of the slice before it, and the first slice's in the iteration before, between the barrier and the last dot:
 *
 *   wait; barrier                        wait; barrier; a0, b0 = load slice 0 of b[0]         (if there is an iteration)
 *   for {                                for (..., a0, b0) {
 *     copies; commit                       a1, b1 = load slice 1 of b[get]
 *     x, y = load b[get]           ==>     copies; commit; acc = dot a0, b0, acc
 *     acc = dot x, y, acc                  wait; barrier; a0, b0 = load slice 0 of b[get']; acc = dot a1, b1, acc
 *   }                                    }
 *
 * All reads of an iteration's buffer come before its barrier, so the copies at the top of the next one may fill it as before,
 * and the wait keeps its count: what it waits for is now read in the same iteration, but one more group was closed. The
 * fragments read behind the barrier come from another buffer than the one that the next copies fill: those are marked `apart`,
 * for insert_barriers. In the last iteration there is no next buffer: get' stays, and the fragments are not used.
 *
 * Only loops that pipeline_loops made (`pipelined`) and whose one dot takes both operands straight from the loop's buffers: there the order
 * is known to pay. */
#include "internal.h"
#include "wgmma.h"

typedef struct Loop {
  Ctx *c;
  Func *f;
  Op *op, *wait, *barrier, *dot;
  Block *body;
  Op *load[2];               /* of the dot's operands */
  Value *row[2];             /* of buffers */
  u32 get;                   /* carried value that picks one */
  u32 width, slices;         /* of K */
} Loop;

/* The dot's operand `which` is read whole from the buffer that a block argument picks, for this dot alone. */
static bool
operand_fits(Loop *l, u32 which)
{
  Value *v = op_operand(l->dot, which);
  if (!op_is(v, OP_SHARED_LOAD) || value_use_count(v) != 1 || v->def->block != l->body)
    return false;
  Value *view = OPERAND(v->def, SHARED_LOAD, b);
  if (!op_is(view, OP_SHARED_INDEX) || view->def->block != l->body)
    return false;
  Value *i = OPERAND(view->def, SHARED_INDEX, i);
  u32 k;
  l->load[which] = v->def;
  l->row[which] = OPERAND(view->def, SHARED_INDEX, b);
  if (!loop_carries(l->op, i, &k) || (which && k != l->get))
    return false;
  l->get = k;
  return l->row[which]->def && !op_inside(l->row[which]->def, l->op);
}

/* An `if` behind the dot that has nothing to do with shared buffers and their copies: the end of a flattened loop's tile. */
static bool
is_apart(const Op *op)
{
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next) {
      if (op_uses_shared(x) || op_is_dot(x) || !is_apart(x))
        return false;
    }
  return true;
}

/* Everything else in the body is harmless to move the wait across: pure ops, behind it the copies, and behind the dot what touches no
 * buffer. */
static bool
body_fits(Loop *l)
{
  bool copies = false, behind = false;
  for (Op *op = l->body->first; op; op = op->next) {
    if (op == l->wait || op == l->barrier)
      copies = true;
    else if (op == l->dot || op == l->load[0] || op == l->load[1])
      behind = true;
    else if (op_has(op, T_PURE) || op_has(op, T_TERM))
      continue;
    else if (behind ? op->code != OP_IF || !is_apart(op) : !copies || (op->code != OP_IF && op->code != OP_ASYNC_COMMIT))
      return false;
  }
  return true;
}

/* The body's only wait, barrier and dot. */
static bool
parts_fit(Loop *l)
{
  Op **const parts[] = {&l->wait, &l->barrier, &l->dot};
  static const OpCode codes[] = {OP_ASYNC_WAIT, OP_BARRIER, OP_DOT};
  for (Op *op = l->body->first; op; op = op->next)
    for (u32 i = 0; i < COUNT(codes); i++) {
      if (op->code != codes[i])
        continue;
      if (*parts[i])
        return false;
      *parts[i] = op;
    }
  return l->dot && l->wait && l->barrier && l->wait->next == l->barrier;
}

static bool
loop_fits(Loop *l)
{
  if (!op_attr(l->op, AT_PIPELINED) || !parts_fit(l))
    return false;
  const Type *t = op_result(l->dot)->type;
  const char *name = op_str(l->dot, AT_MMA, NULL);
  const Mma *mma = name ? mma_find(name, t->dt) : NULL;
  if (!mma || t->rank != 2 || !operand_fits(l, 0) || !operand_fits(l, 1) || !body_fits(l))
    return false;
  u32 depth = OPERAND(l->dot, DOT, a)->type->shape[1];
  l->width = mma->k;
  l->slices = depth % l->width == 0 ? depth / l->width : 0;
  return l->slices >= 2;
}

/* ---- slices ---- */

static const Type *
slice_type(const Loop *l, u32 which)
{
  const Type *t = op_operand(l->dot, which)->type;
  u32 shape[2] = {t->shape[0], t->shape[1]};
  shape[which ? 0 : 1] = l->width;
  return type_tile(l->c, type_elem(l->c, t), 2, shape,
                   dot_operand_layout(l->c, l->dot, which, shape));
}

/* Slice s of both operands, from the buffers that `slot` picks. */
static void
load_slice(const Loop *l, Builder *b, Value *slot, u32 s, Value **out)
{
  for (u32 which = 0; which < 2; which++) {
    const Type *t = slice_type(l, which);
    i64 start[2] = {0, 0};
    start[which ? 0 : 1] = (i64)s * l->width;
    b->span = l->load[which]->span;
    out[which] = ir_shared_load(b, ir_shared_slice(b, ir_shared_index(b, l->row[which], slot), start, t->shape), t);
    out[which]->name = op_operand(l->dot, which)->name;
  }
}

/* The first slice of the first iteration, if there is one. */
static void
before_loop(Loop *l, Value **first)
{
  Builder b = builder_before(l->op);
  b.span = l->op->span;
  ir_async_wait(&b, (u32)op_int(l->wait, AT_PENDING, 0));
  op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  Value *any = ir_cmp(&b, "lt", OPERAND(l->op, FOR, lo), OPERAND(l->op, FOR, hi));
  const Type *types[2] = {slice_type(l, 0), slice_type(l, 1)};
  Op *guard = ir_if(&b, any, 2, types);
  for (u32 r = 0; r < 2; r++) {
    Builder in = builder_at_end(l->f, guard->regions[r]);
    in.span = b.span;
    if (r == 0)
      load_slice(l, &in, loop_init(l->op, l->get), 0, first);
    for (u32 which = 0; r == 1 && which < 2; which++)
      first[which] = ir_const_bits(&in, types[which], 0);
    in.span = b.span;
    ir_yield(&in, 2, first);
  }
  first[0] = guard->results[0];
  first[1] = guard->results[1];
}

/* The buffer of the next iteration; this one's where there is none. Also what `get` becomes. */
static Value *
next_buffer(Loop *l, Builder *b)
{
  Value *more = loop_goes_on(b, l->op, loop_counter(l->op), 1);
  Value *next = ir_select(b, more, loop_next(l->op, l->get), loop_arg(l->op, 0, l->get));
  op_set_operand(block_terminator(l->body), SLOT(YIELD, xs) + l->get, next);
  return next;
}

static Value *
dot_slice(Loop *l, Builder *b, Value *const *x, Value *acc)
{
  b->span = l->dot->span;
  Value *d = ir_dot(b, x[0], x[1], acc);
  op_copy_attrs(d->def, l->dot);
  return d;
}

static void
mark_apart(Op *op, void *user)
{
  if (op->code == OP_ASYNC_COPY)
    op_set_int(op, AT_APART, 1);
}

static void
rotate(Loop *l)
{
  Value *now[2], *ahead[2], *acc = OPERAND(l->dot, DOT, acc);
  Op *end = block_terminator(l->body);
  before_loop(l, now);
  for (u32 which = 0; which < 2; which++)
    now[which] = loop_carry(l->op, now[which], op_operand(l->dot, which)->name);
  Builder b = builder_before(l->dot), top = builder_before(l->wait);
  for (u32 s = 0; s < l->slices; s++) {
    Value *slot = loop_arg(l->op, 0, l->get);
    if (s + 1 == l->slices) {
      b.span = l->op->span;
      slot = next_buffer(l, &b);
      op_move_before(l->wait, l->dot);
      op_move_before(l->barrier, l->dot);
    }
    load_slice(l, s ? &b : &top, slot, (s + 1) % l->slices, ahead);
    acc = dot_slice(l, &b, now, acc);
    now[0] = ahead[0];
    now[1] = ahead[1];
  }
  for (u32 which = 0; which < 2; which++)
    op_add_operand(end, now[which]);
  acc->name = op_result(l->dot)->name;
  value_replace_uses(op_result(l->dot), acc);
  op_remove(l->dot);
  op_remove(l->load[0]);
  op_remove(l->load[1]);
  block_walk(l->body, mark_apart, NULL);
}

void
pass_prefetch_slices(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec loops = func_ops(c, m->funcs.data[i], OP_FOR);
    for (u32 k = 0; k < loops.len; k++) {
      Op *op = loops.data[k];
      Loop l = {.c = c, .f = m->funcs.data[i], .op = op, .body = op->regions[0]};
      if (loop_fits(&l))
        rotate(&l);
      op_remove_attr(op, AT_PIPELINED);
    }
  }
}
