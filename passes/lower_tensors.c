/* lower_tensors.c - boxes of tensors as tiles become copies to and from buffers, each waited for where it stands.
 * Needs phase placed, behind pipeline_loops, which takes those that it can start early; keeps it. plain_tensors has left only such boxes
 * as copies move.
 *
 *   x = tensor_load t, i, j         b = shared_alloc
 *                            ==>    mbarrier_arrive m bytes = ...;  tma_load b, t, m, i, j;  mbarrier_wait m, parity
 *                                   x = shared_load b;  shared_free b
 *
 *   tensor_store t, x, i, j  ==>    shared_store b, x;  tma_store b, t, i, j;  tma_commit;  tma_wait pending = 0
 *
 * A tile that is only stored to a buffer as its box lies there (an operand that products keep) is copied to that one.
 *
 * Each load has an mbarrier of its own, made in the kernel's body, of which every copy is the next phase. Its parity begins with 0 and
 * changes with each copy: through all loops around the load it is a carried value, through all ifs a result. In a region of a
 * warp_specialize it begins there: the mbarrier is that team's alone. insert_barriers puts the fences and the barriers. */
#include "boxes.h"
#include "carried.h"

/* ---- the parity ---- */

/* Of the load's mbarrier, in front of the load. */
static Value *
parity_of(Op *load)
{
  Carried s;
  carried_begin(&s, 1, &load, 1, (i64[]){0}, (const char *[]){"parity"});
  if (!s.moves)
    return s.in[0][0];
  Builder after = builder_after(load);
  after.span = load->span;
  carried_end(&s, (Value *[]){ir_binary(&after, OP_XOR, s.in[0][0], i32_const(&after, 1))});
  return s.in[0][0];
}

/* ---- copies ---- */

/* The one use of the load's tile, if that is to store it as it is to a buffer of its own: the box is copied there. */
static Op *
kept_by(Ctx *c, const Op *load)
{
  const Use *u = op_result(load)->uses;
  Op *store = u && !u->next ? u->user : NULL;
  if (!store || store->code != OP_SHARED_STORE || store->block != load->block)
    return NULL;
  const Value *b = OPERAND(store, SHARED_STORE, b);
  bool own = op_is(b, OP_SHARED_ALLOC) && b->def->next == store;
  return own && b->type == box_buffer(c, op_result(load)->type) ? store : NULL;
}

static void
lower_load(Ctx *c, Op *op)
{
  Value *old = op_result(op), *parity = parity_of(op), *m = box_mbarriers(c, op->block->func, op->span, 0);
  Op *keeps = kept_by(c, op);
  Builder b = builder_before(op);
  b.span = op->span;
  if (keeps)
    op_move_before(OPERAND(keeps, SHARED_STORE, b)->def, op);
  Value *buffer = keeps ? OPERAND(keeps, SHARED_STORE, b) : ir_shared_alloc(&b, box_buffer(c, old->type));
  op_set_int(op_create(&b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0), AT_BYTES, box_tile_bytes(old->type));
  box_copy(&b, op, NULL, buffer, m);
  op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){m, parity}, 0, NULL, 0);
  if (keeps) {
    op_remove(keeps);
    op_remove(op);
    return;
  }
  Value *x = ir_shared_load(&b, buffer, old->type);
  x->name = old->name;
  op_create(&b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  value_replace_uses(old, x);
  op_remove(op);
}

static void
lower_store(Ctx *c, Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  Value *x = OPERAND(op, TENSOR_STORE, x), *buffer = ir_shared_alloc(&b, box_buffer(c, x->type));
  ir_shared_store(&b, buffer, x);
  box_copy(&b, op, NULL, buffer, NULL);
  op_create(&b, OP_TMA_COMMIT, 0, NULL, 0, NULL, 0);
  op_set_int(op_create(&b, OP_TMA_WAIT, 0, NULL, 0, NULL, 0), AT_PENDING, 0);
  op_create(&b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  op_remove(op);
}

void
pass_lower_tensors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    box_lower_kept(c, m->funcs.data[i]);
    OpVec loads = func_ops(c, m->funcs.data[i], OP_TENSOR_LOAD), stores = func_ops(c, m->funcs.data[i], OP_TENSOR_STORE);
    for (u32 k = 0; k < loads.len; k++)
      lower_load(c, loads.data[k]);
    for (u32 k = 0; k < stores.len; k++)
      lower_store(c, stores.data[k]);
  }
}
