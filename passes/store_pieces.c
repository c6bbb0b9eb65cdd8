/* store_pieces.c - boxes that are stored go in pieces: one of them is copied while the next is on its way to shared memory.
 *
 *   tensor_store t, x, i, j   ==>   for each piece k, unrolled: tensor_store t, x[:, k * W:(k + 1) * W], i, j + k * W
 *
 * A piece is as wide as a panel, 128 bytes, so that of what a product of warpgroups leaves in registers each piece is whole registers of
 * all threads. The part of x is taken as the language takes it: reshaped, chosen and folded, of which code generation leaves nothing. */
#include "boxes.h"

enum { PANEL = 128 };

/* Elements along the last dimension; those of the tile if that is no multiple. */
static u32
piece_width(const Type *tile)
{
  u32 width = PANEL / dtype_bytes(tile->dt), all = tile->shape[tile->rank - 1];
  return all % width ? all : width;
}

static const Type *
piece_type(Ctx *c, const Type *tile)
{
  u32 shape[MAX_RANK];
  memcpy(shape, tile->shape, sizeof shape);
  shape[tile->rank - 1] = piece_width(tile);
  return type_tile(c, type_elem(c, tile), tile->rank, shape, NULL);
}

u64
box_store_bytes(Ctx *c, const Type *tile)
{
  return type_shared_bytes(box_buffer(c, piece_type(c, tile)));
}

/* x in bits, with its last dimension as n pieces. */
static Value *
as_pieces(Ctx *c, Builder *b, Value *x, u32 n)
{
  static const DType bits[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64};
  const Type *t = x->type;
  u32 shape[MAX_RANK + 1];
  memcpy(shape, t->shape, sizeof *shape * t->rank);
  shape[t->rank - 1] = n;
  shape[t->rank] = t->shape[t->rank - 1] / n;
  return ir_bitcast(b, ir_reshape(b, x, t->rank + 1, shape), type_scalar(c, bits[dtype_bytes(t->dt)]));
}

static Value *
piece_of(Ctx *c, Builder *b, Value *pieces, u32 n, u32 k, DType dt)
{
  const Type *t = pieces->type;
  int axis = t->rank - 2;
  Value *i = ir_arange(b, 0, n), *own = ir_cmp(b, "eq", i, ir_const_int(b, i->type, k));
  for (int d = 0; d < t->rank; d++)
    if (d != axis)
      own = ir_expand_dims(b, own, d);
  Value *chosen = ir_select(b, ir_broadcast(b, own, t->shape), pieces, ir_const_int(b, t, 0));
  return ir_bitcast(b, ir_combine(b, ir_reduce(b, 1, &chosen, axis), OP_OR), type_scalar(c, dt));
}

void
box_store_in_pieces(Ctx *c, Op *store)
{
  Value *x = OPERAND(store, TENSOR_STORE, x);
  u32 last = store->noperands - 1, width = piece_width(x->type), n = x->type->shape[x->type->rank - 1] / width;
  op_set_int(store, AT_KEPT, 1);
  if (n == 1 || x->type->rank == MAX_RANK)
    return;
  Builder b = builder_before(store);
  b.span = store->span;
  Value *pieces = as_pieces(c, &b, x, n), *at = op_operand(store, last), *v[MAX_RANK + 2];
  for (u32 k = 0; k < n; k++) {
    for (u32 i = 0; i < store->noperands; i++)
      v[i] = op_operand(store, i);
    v[SLOT(TENSOR_STORE, x)] = piece_of(c, &b, pieces, n, k, x->type->dt);
    v[last] = k ? ir_binary(&b, OP_ADD, at, i32_const(&b, (i64)k * width)) : at;
    op_like(&b, store, store->noperands, v, NULL);
  }
  op_remove(store);
}
