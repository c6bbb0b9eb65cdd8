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
  if (!carried_begin(&s, load, 1, (i64[]){0}, (const char *[]){"parity"}))
    return NULL;
  if (s.again) {
    Builder after = builder_after(load);
    after.span = load->span;
    carried_end(&s, (Value *[]){ir_binary(&after, OP_XOR, s.in[0], i32_const(&after, 1))});
  }
  return s.in[0];
}

/* ---- copies ---- */

static void
lower_load(Ctx *c, Op *op)
{
  Value *old = op_result(op), *parity = parity_of(op);
  if (!parity)
    return;
  Value *m = box_mbarriers(c, op->block->func, op->span, 0);
  Builder b = builder_before(op);
  b.span = op->span;
  Value *buffer = ir_shared_alloc(&b, box_buffer(c, old->type));
  op_set_int(op_create(&b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0), AT_BYTES, box_tile_bytes(old->type));
  box_copy(&b, op, NULL, buffer, m);
  op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){m, parity}, 0, NULL, 0);
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
    OpVec loads = func_ops(c, m->funcs.data[i], OP_TENSOR_LOAD), stores = func_ops(c, m->funcs.data[i], OP_TENSOR_STORE);
    for (u32 k = 0; k < loads.len; k++)
      lower_load(c, loads.data[k]);
    for (u32 k = 0; k < stores.len; k++)
      lower_store(c, stores.data[k]);
  }
}
