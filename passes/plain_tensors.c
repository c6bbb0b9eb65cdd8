/* plain_tensors.c - boxes of tensors that no copy moves become loads and stores.
 * Needs phase tile; keeps it. What is left behind it are boxes that copies move (boxes.h).
 *
 * A box is reached as any array is: element (i, j) of the tile at base + (at0 + i) * stride0 + (at1 + j), where both indices are within the
 * tensor. (Tensors that the program makes and nobody copies of then go.) So the same program compiles for targets without such copies,
 * and for tensors and tiles that these do not know.
 *
 * Through a window the first index of the tile counts pixels. Along the innermost dimension of the window pixel n is n steps behind the
 * first, or, beyond the window's end, the row begins again at the lower corner; how often it has, the next dimension counts on from. */
#include "boxes.h"
#include "internal.h"

/* A tensor's extent or stride along dimension d. What the program makes has its operands. */
static Value *
asked(Builder *b, OpCode code, Value *tensor, u32 d, DType answer)
{
  if (tensor->def)
    return ir_cast(b, tensor_number(tensor, code, d), answer);
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
    return tensor_pointer(tensor);
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

/* ---- pixels ---- */

/* max(0, x) / step + 1: how many pixels there are from one to another, x behind it. */
static Value *
pixels_to(Builder *b, Value *x, i32 step)
{
  x = ir_binary(b, OP_MAX, x, i32_const(b, 0));
  Value *one = i32_const(b, 1);
  return ir_binary(b, OP_ADD, step == 1 ? x : ir_binary(b, OP_DIV, x, i32_const(b, step)), one);
}

/* at + n * step */
static Value *
steps_from(Builder *b, Value *at, Value *n, i32 step)
{
  n = step == 1 ? n : ir_binary(b, OP_MUL, n, like(b, i32_const(b, step), n));
  return ir_binary(b, OP_ADD, like(b, at, n), n);
}

/* Along dimension d + 1, of a box whose coordinates are operands from `coordinates` on, where the pixels are that come *n places behind the
 * first; *n becomes the places along the dimension in front. */
static Value *
pixel_places(Builder *b, const Op *op, u32 coordinates, const TmaWindow *w, u32 d, Value **n)
{
  Value *tensor = op_tensor(op), *x = *n;
  u32 first = coordinates + d + 1, rank = tensor->type->rank;
  Value *at = op_operand(op, first), *shift = op_operand(op, first + rank - 1), *lower = i32_const(b, w->lower[d]);
  Value *more = i32_const(b, w->upper[d] - 1);
  Value *upper = ir_binary(b, OP_ADD, asked(b, OP_TENSOR_EXTENT, tensor, d + 1, DT_I32), more);
  Value *here = pixels_to(b, ir_binary(b, OP_SUB, upper, at), w->step[d]);
  Value *all = pixels_to(b, ir_binary(b, OP_SUB, upper, lower), w->step[d]);
  Value *beyond = ir_cmp(b, "ge", x, like(b, here, x)), *over = ir_binary(b, OP_SUB, x, like(b, here, x));
  Value *rows = ir_binary(b, OP_DIV, over, like(b, all, over)), *zero = like(b, i32_const(b, 0), x);
  Value *left = ir_binary(b, OP_SUB, over, ir_binary(b, OP_MUL, rows, like(b, all, rows)));
  *n = ir_select(b, beyond, ir_binary(b, OP_ADD, rows, like(b, i32_const(b, 1), rows)), zero);
  Value *same_row = steps_from(b, at, x, w->step[d]), *next_row = steps_from(b, lower, left, w->step[d]);
  Value *place = ir_select(b, beyond, next_row, same_row);
  return ir_binary(b, OP_ADD, place, like(b, shift, place));
}

/* Through a window: the indices along each dimension of the tensor but the last, with an extent 1 for that. */
static void
pixel_indices(Builder *b, const Op *op, u32 first, const TmaWindow *w, u32 pixels, Value **out)
{
  Value *n = ir_arange(b, 0, pixels);
  for (u32 d = w->n; d--;)
    out[d + 1] = ir_expand_dims(b, pixel_places(b, op, first, w, d, &n), 1);
  out[0] = ir_expand_dims(b, ir_binary(b, OP_ADD, like(b, op_operand(op, first), n), n), 1);
}

/* Which of the indices i are within dimension d. */
static Value *
within(Builder *b, Value *tensor, Value *i, u32 d)
{
  Value *zero = i32_const(b, 0), *extent = asked(b, OP_TENSOR_EXTENT, tensor, d, DT_I32);
  Value *below = ir_cmp(b, "lt", i, like(b, extent, i));       /* one by one: compilers differ in which argument comes first */
  return ir_binary(b, OP_AND, ir_cmp(b, "ge", i, like(b, zero, i)), below);
}

/* Are n elements from `at` on within the last dimension? The coordinate of an empty tensor's end is none of its elements. */
static Value *
row_within(Builder *b, Value *tensor, Value *at, u32 n)
{
  Value *extent = asked(b, OP_TENSOR_EXTENT, tensor, tensor->type->rank - 1, DT_I32);
  Value *last = ir_binary(b, OP_SUB, extent, i32_const(b, (i64)n));        /* extents are not negative: no overflow */
  Value *below = ir_cmp(b, "le", at, last);
  return ir_binary(b, OP_AND, ir_cmp(b, "ge", at, i32_const(b, 0)), below);
}

BoxElements
box_elements(Builder *b, const Op *op, u32 first, const Type *box, bool whole_rows)
{
  Ctx *c = b->func->module->ctx;
  Value *tensor = op_tensor(op), *off = NULL, *at[MAX_RANK];
  TmaWindow w = tma_window(op);
  u32 rank = tensor->type->rank;
  BoxElements e = {NULL, NULL, whole_rows ? row_within(b, tensor, op_operand(op, first + rank - 1), box->shape[box->rank - 1]) : NULL};
  if (w.n)
    pixel_indices(b, op, first, &w, box->shape[0], at);
  for (u32 d = 0; d < rank; d++) {
    bool plain = !w.n || d + 1 == rank, ask = !whole_rows || d + 1 < rank;
    Value *i = plain ? indices(b, op_operand(op, first + d), box, (int)d - (int)(rank - box->rank)) : at[d];
    Value *inside = ask ? within(b, tensor, i, d) : NULL;
    Value *step = ir_cast(b, i, DT_I64);
    if (d + 1 < rank)
      step = ir_binary(b, OP_MUL, step, like(b, asked(b, OP_TENSOR_STRIDE, tensor, d, DT_I64), step));
    step = spread(b, step, box);
    off = off ? ir_binary(b, OP_ADD, off, step) : step;
    e.inside = ask ? both(b, e.inside, spread(b, inside, box)) : e.inside;
  }
  e.at = ir_addptr(b, ir_splat(b, base_of(b, tensor), type_with_elem(c, box, type_ptr(c, tensor->type->dt))), off);
  return e;
}

static void
plain_load(Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  BoxElements e = box_elements(&b, op, SLOT(TENSOR_LOAD, at), op_result(op)->type, false);
  Value *x = ir_load(&b, e.at, e.inside, NULL);
  x->name = op_result(op)->name;
  op_copy_attr(x->def, op, AT_EVICT);
  value_replace_uses(op_result(op), x);
  op_remove(op);
}

static void
plain_store(Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  Value *x = OPERAND(op, TENSOR_STORE, x);
  BoxElements e = box_elements(&b, op, SLOT(TENSOR_STORE, at), x->type, false);
  if (op_attr(op, AT_RMW)) {
    Op *add = op_create(&b, OP_ATOMIC_RMW, 3, (Value *[]){e.at, x, e.inside}, 1, &x->type, 0);
    op_set_str(add, AT_RMW, op_str(op, AT_RMW, NULL));
    op_set_str(add, AT_SEM, "relaxed");
    op_set_str(add, AT_SCOPE, "gpu");
  } else
    op_copy_attr(ir_store(&b, e.at, x, e.inside), op, AT_EVICT);
  op_remove(op);
}

/* No copy moves it; a remark says why, if one might have. */
static bool
stays_plain(Ctx *c, const AxisInfo *axes, const Op *op)
{
  const char *why = box_obstacle(c, axes, op, NULL);
  if (why && c->remarks && target_has(c->target, F_TMA) && c->boxes != BOXES_NONE)
    diag(c, op->span, R_NO_TENSOR, op_info(op->code)->name, why);
  return why;
}

void
pass_plain_tensors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec loads = func_ops(c, m->funcs.data[i], OP_TENSOR_LOAD), stores = func_ops(c, m->funcs.data[i], OP_TENSOR_STORE);
    OpVec made = func_ops(c, m->funcs.data[i], OP_TENSOR_AT);
    const AxisInfo *axes = loads.len + stores.len ? analyse_axes(m->funcs.data[i]) : NULL;   /* indices stay what they are */
    for (u32 k = 0; k < loads.len; k++)
      if (stays_plain(c, axes, loads.data[k]))
        plain_load(loads.data[k]);
    for (u32 k = 0; k < stores.len; k++)
      if (stays_plain(c, axes, stores.data[k]))
        plain_store(stores.data[k]);
    for (u32 k = 0; k < made.len; k++)
      if (value_unused(op_result(made.data[k])))
        op_remove(made.data[k]);
  }
}
