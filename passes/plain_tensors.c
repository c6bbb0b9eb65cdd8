/* plain_tensors.c - boxes of tensors that no copy moves become loads and stores.
 * Needs phase tile; keeps it. What is left behind it are boxes that copies move (boxes.h).
 *
 * A box is reached as any array is: element (i, j) of the tile at base + (at0 + i) * stride0 + (at1 + j), where both indices are within the
 * tensor. So the same program compiles for targets without such copies, and for tensors and tiles that these do not know. */
#include "boxes.h"
#include "internal.h"

/* Pointers to the box's elements, and which of them are within the tensor. */
typedef struct Elements { Value *at, *inside; } Elements;

/* A tensor's extent or stride along dimension d. What tensor_of makes has its operands. */
static Value *
asked(Builder *b, OpCode code, Value *tensor, u32 d, DType answer)
{
  if (tensor->def)
    return ir_cast(b, op_operand(tensor->def, SLOT(TENSOR_OF, xs) + d + (code == OP_TENSOR_STRIDE ? tensor->type->rank : 0)), answer);
  const Type *t = type_scalar(b->func->module->ctx, answer);
  Op *op = op_create(b, code, 1, &tensor, 1, &t, 0);
  op_set_int(op, AT_AXIS, d);
  return op_result(op);
}

static Value *
base_of(Builder *b, Value *tensor)
{
  const Type *t = type_ptr(b->func->module->ctx, tensor->type->dt);
  if (tensor->def)
    return OPERAND(tensor->def, TENSOR_OF, p);
  return op_result(op_create(b, OP_TENSOR_BASE, 1, &tensor, 1, &t, 0));
}

/* The indices along dimension d of the tensor, as a tile of the shape of `box` with extents 1 elsewhere; a scalar where the box has no such
 * dimension (dim < 0). */
static Value *
indices(Builder *b, Value *at, const Type *box, int dim)
{
  if (dim < 0)
    return at;
  Value *i = ir_arange(b, 0, box->shape[dim]);
  i = ir_binary(b, OP_ADD, ir_splat(b, at, i->type), i);
  for (int d = 0; d < box->rank; d++)
    if (d != dim)
      i = ir_expand_dims(b, i, d);
  return i;
}

/* x, a scalar or a tile with extents 1, in the shape of the box. */
static Value *
spread(Builder *b, Value *x, const Type *box)
{
  return type_is_tile(x->type) ? ir_broadcast(b, x, box->shape) : ir_splat(b, x, type_with_elem(b->func->module->ctx, box, x->type));
}

static Value *
both(Builder *b, Value *x, Value *y)
{
  return x ? ir_binary(b, OP_AND, x, y) : y;
}

static Value *
like(Builder *b, Value *scalar, const Value *x)
{
  return type_is_tile(x->type) ? ir_splat(b, scalar, type_with_elem(b->func->module->ctx, x->type, scalar->type)) : scalar;
}

static Elements
elements_of(Builder *b, const Op *op, u32 first, const Type *box)
{
  Ctx *c = b->func->module->ctx;
  Value *tensor = op_tensor(op), *off = NULL;
  Elements e = {NULL, NULL};
  for (u32 d = 0, rank = tensor->type->rank; d < rank; d++) {
    Value *i = indices(b, op_operand(op, first + d), box, (int)d - (int)(rank - box->rank));
    Value *zero = i32_const(b, 0), *extent = asked(b, OP_TENSOR_EXTENT, tensor, d, DT_I32);
    Value *inside = ir_binary(b, OP_AND, ir_cmp(b, "ge", i, like(b, zero, i)), ir_cmp(b, "lt", i, like(b, extent, i)));
    Value *step = ir_cast(b, i, DT_I64);
    if (d + 1 < rank)
      step = ir_binary(b, OP_MUL, step, like(b, asked(b, OP_TENSOR_STRIDE, tensor, d, DT_I64), step));
    step = spread(b, step, box);
    off = off ? ir_binary(b, OP_ADD, off, step) : step;
    e.inside = both(b, e.inside, spread(b, inside, box));
  }
  e.at = ir_addptr(b, ir_splat(b, base_of(b, tensor), type_with_elem(c, box, type_ptr(c, tensor->type->dt))), off);
  return e;
}

static void
copy_evict(Op *to, const Op *from)
{
  if (op_str(from, AT_EVICT, NULL))
    op_set_str(to, AT_EVICT, op_str(from, AT_EVICT, NULL));
}

static void
plain_load(Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  Elements e = elements_of(&b, op, SLOT(TENSOR_LOAD, at), op_result(op)->type);
  Value *x = ir_load(&b, e.at, e.inside, NULL);
  x->name = op_result(op)->name;
  copy_evict(x->def, op);
  value_replace_uses(op_result(op), x);
  op_remove(op);
}

static void
plain_store(Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  Value *x = OPERAND(op, TENSOR_STORE, x);
  Elements e = elements_of(&b, op, SLOT(TENSOR_STORE, at), x->type);
  if (op_attr(op, AT_RMW)) {
    Op *add = op_create(&b, OP_ATOMIC_RMW, 3, (Value *[]){e.at, x, e.inside}, 1, &x->type, 0);
    op_set_str(add, AT_RMW, op_str(op, AT_RMW, NULL));
    op_set_str(add, AT_SEM, "relaxed");
    op_set_str(add, AT_SCOPE, "gpu");
  } else
    copy_evict(ir_store(&b, e.at, x, e.inside), op);
  op_remove(op);
}

void
pass_plain_tensors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec loads = func_ops(c, m->funcs.data[i], OP_TENSOR_LOAD), stores = func_ops(c, m->funcs.data[i], OP_TENSOR_STORE);
    for (u32 k = 0; k < loads.len; k++)
      if (box_obstacle(c, loads.data[k]))
        plain_load(loads.data[k]);
    for (u32 k = 0; k < stores.len; k++)
      if (box_obstacle(c, stores.data[k]))
        plain_store(stores.data[k]);
  }
}
