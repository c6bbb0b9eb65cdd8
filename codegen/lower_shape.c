/* lower_shape.c - ops that rename elements: no data moves, a register of the result is a register of the operand.
 *
 * Each op gives a linear map from the result's coordinates to the operand's. The verifier has made sure that it takes
 * the result's thread columns to the operand's; so it is enough to follow the registers' parts.
 */
#include "gen.h"

typedef void CoordMap(const Op *op, const u32 *result, u32 *operand);

static void
remap(Gen *g, const Op *op, CoordMap *map)
{
  const Value *x = op_operand(op, 0), *result = op_result(op);
  const Val *in = gen_regs(g, x);
  const Dist *from = dist_get(g, x->type->layout), *to = dist_get(g, result->type->layout);
  Val *out = gen_new(g, result);
  for (u32 r = 0; r < to->regs; r++) {
    u32 coord[MAX_RANK], source[MAX_RANK] = {0}, reg;
    layout_coords(to->l, to->flat[r], coord);
    map(op, coord, source);
    if (!dist_find(from, layout_flat(from->l, source), &reg))
      ctx_panic(g->c, "%s: operand and result layouts disagree", op_info(op->code)->name);
    out[r] = in[reg];
  }
}

static void
map_broadcast(const Op *op, const u32 *result, u32 *operand)
{
  const Type *t = op_operand(op, 0)->type;
  for (int d = 0; d < t->rank; d++)
    operand[d] = t->shape[d] == 1 ? 0 : result[d];
}

void
lower_BROADCAST(Gen *g, const Op *op)
{
  remap(g, op, map_broadcast);
}

static void
map_expand(const Op *op, const u32 *result, u32 *operand)
{
  int axis = (int)op_int(op, AT_AXIS, 0), rank = op_result(op)->type->rank;
  for (int d = 0, at = 0; d < rank; d++)
    if (d != axis)
      operand[at++] = result[d];
}

void
lower_EXPAND_DIMS(Gen *g, const Op *op)
{
  remap(g, op, map_expand);
}

static void
map_permute(const Op *op, const u32 *result, u32 *operand)
{
  const Attr *perm = op_attr(op, AT_PERM);
  for (u32 d = 0; d < perm->ints.n; d++)
    operand[perm->ints.v[d]] = result[d];
}

void
lower_PERMUTE(Gen *g, const Op *op)
{
  remap(g, op, map_permute);
}

/* Flat indices stay when all extents are powers of two, and so do coordinates when only extents of 1 come and go. */
static void
map_reshape(const Op *op, const u32 *result, u32 *operand)
{
  const Type *t = op_operand(op, 0)->type;
  layout_coords(t->layout, layout_flat(op_result(op)->type->layout, result), operand);
}

/* The verifier has made sure that padding means the same on both sides. */
void
lower_RESHAPE(Gen *g, const Op *op)
{
  remap(g, op, map_reshape);
}

void
lower_SPLAT(Gen *g, const Op *op)
{
  Val x = gen_regs(g, op_operand(op, 0))[0], *out = gen_new(g, op_result(op));
  for (u32 r = 0; r < gen_nregs(op_result(op)->type); r++)
    out[r] = x;
}

void
lower_ARANGE(Gen *g, const Op *op)
{
  const Value *result = op_result(op);
  Dist *h = dist_get(g, result->type->layout);
  Val start = gen_u32(g, (u32)op_int(op, AT_START, 0)), *out = gen_new(g, result);
  for (u32 r = 0; r < h->regs; r++)
    out[r] = h->rep[r] == r ? LLVMBuildAdd(g->b, dist_index(g, h, r, 0), start, "") : NULL;
  dist_share(g, result);
}
