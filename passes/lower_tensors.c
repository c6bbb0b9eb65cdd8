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
#include "internal.h"

enum { DEPTH_MAX = 64 };

static Value *
i32_const(Builder *b, i64 v)
{
  return ir_const_int(b, type_scalar(b->func->module->ctx, DT_I32), v);
}

/* ---- the parity ---- */

/* The ops around the load within its team, outermost last; the value on the way in and on the way out. */
typedef struct Parity { Op *around[DEPTH_MAX]; Value *in[DEPTH_MAX + 1]; u32 depth; bool loops; } Parity;

static bool
find_around(const Op *load, Parity *p)
{
  Op *op = load->block->parent;
  for (; op && op->code != OP_WARP_SPECIALIZE && p->depth < DEPTH_MAX; op = op->block->parent) {
    p->around[p->depth++] = op;
    p->loops |= op_is_loop(op);
  }
  return !op || op->code == OP_WARP_SPECIALIZE;
}

/* Which region of op the block is, or is in. */
static u32
region_around(const Op *op, const Block *b)
{
  while (b->parent != op)
    b = b->parent->block;
  for (u32 r = 0; r < op->nregions; r++)
    if (op->regions[r] == b)
      return r;
  return 0;
}

/* The value that `init` is in the region of the loop that the load is in. */
static Value *
carry_in(Op *loop, Value *init, u32 region)
{
  op_add_operand(loop, init);
  for (u32 r = 0; r < loop->nregions; r++)
    block_add_arg(loop->regions[r], init->type, "parity");
  Block *b = loop->regions[region];
  return b->args[b->nargs - 1];
}

/* What each region of op hands on: `out` that of the load, the others what they were given. */
static Value *
carry_out(Op *op, Value *in, Value *out, u32 region)
{
  for (u32 r = 0; r < op->nregions; r++) {
    Block *b = op->regions[r];
    op_add_operand(region_end(op, r), r == region ? out : op_is_loop(op) ? b->args[b->nargs - 1] : in);
  }
  return op_add_result(op, out->type);
}

/* Of the load's mbarrier, in front of the load. */
static Value *
parity_of(Op *load)
{
  Parity p = {.depth = 0};
  if (!find_around(load, &p))
    return NULL;
  const Op *outermost = p.depth ? p.around[p.depth - 1] : load;
  Builder b = builder_before(outermost->block->first);
  b.span = load->span;
  Value *v = i32_const(&b, 0);
  if (!p.loops)
    return v;
  for (u32 i = p.depth; i-- > 0; ) {
    p.in[i] = v;
    if (op_is_loop(p.around[i]))
      v = carry_in(p.around[i], v, region_around(p.around[i], load->block));
  }
  Builder after = builder_after(load);
  after.span = load->span;
  Value *out = ir_binary(&after, OP_XOR, v, i32_const(&after, 1));
  for (u32 i = 0; i < p.depth; i++)
    out = carry_out(p.around[i], p.in[i], out, region_around(p.around[i], load->block));
  return v;
}

/* ---- copies ---- */

static Value *
new_mbarrier(Ctx *c, Func *f, Span at)
{
  static const u32 one[] = {1};
  Builder b = builder_before(f->body->first);
  b.span = at;
  const Layout *l = layout_swizzled(c, 1, one, 1, 1, 1, (int[]){0});
  Value *m = ir_shared_alloc(&b, type_shared(c, DT_MBAR, 0, 1, one, NULL, l, 0, 0));
  op_set_int(op_create(&b, OP_MBARRIER_INIT, 1, &m, 0, NULL, 0), AT_ARRIVALS, 1);
  return m;
}

/* The copy of op's box to or from the buffer. m: NULL of a store. */
static void
copy_box(Builder *b, OpCode code, const Op *op, u32 first, Value *buffer, Value *m)
{
  Value *x[MAX_RANK + 3] = {buffer, op_tensor(op), m};
  u32 n = m ? 3 : 2;
  for (u32 i = first; i < op->noperands; i++)
    x[n++] = op_operand(op, i);
  Op *copy = op_create(b, code, n, x, 0, NULL, 0);
  if (op_str(op, AT_EVICT, NULL))
    op_set_str(copy, AT_EVICT, op_str(op, AT_EVICT, NULL));
  if (op_str(op, AT_RMW, NULL))
    op_set_str(copy, AT_RMW, op_str(op, AT_RMW, NULL));
}

static void
lower_load(Ctx *c, Op *op)
{
  Value *old = op_result(op), *parity = parity_of(op);
  if (!parity)
    return;
  Value *m = new_mbarrier(c, op->block->func, op->span);
  Builder b = builder_before(op);
  b.span = op->span;
  Value *buffer = ir_shared_alloc(&b, box_buffer(c, old->type));
  op_set_int(op_create(&b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0), AT_BYTES, (i64)type_numel(old->type) * dtype_bytes(old->type->dt));
  copy_box(&b, OP_TMA_LOAD, op, SLOT(TENSOR_LOAD, at), buffer, m);
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
  copy_box(&b, OP_TMA_STORE, op, SLOT(TENSOR_STORE, at), buffer, NULL);
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
