/* scratch.c - how much shared memory an op needs while it runs. */
#include "scratch.h"

enum { ALIGN = 16 };   /* widest shared access */

static u32
round_up(u32 n)
{
  return (n + ALIGN - 1) & ~(u32)(ALIGN - 1);
}

/* The bits of a flat index that hold the coordinate along dimension d. */
static u32
dim_mask(const Layout *l, u32 d)
{
  u32 low = 0;
  for (u32 i = d + 1; i < l->rank; i++)
    low += l->out_bits[i];
  return ((1u << l->out_bits[d]) - 1) << low;
}

static u32
padded_numel(const Layout *l)
{
  u32 bits = 0;
  for (u32 i = 0; i < l->rank; i++)
    bits += l->out_bits[i];
  return 1u << bits;
}

void
scratch_reduce(const Op *reduce, ReduceScratch *out)
{
  *out = (ReduceScratch){.nwarps = 1, .align = ALIGN};
  const Layout *l = op_operand(reduce, 0)->type->layout;
  u32 axis = (u32)op_int(reduce, AT_AXIS, 0), along = dim_mask(l, axis);
  u32 copies = layout_free_bits(l, IN_WARP);
  for (u32 w = 0; w < l->in_bits[IN_WARP]; w++)
    if (!(copies >> w & 1) && (l->col[IN_WARP][w] & along)) {
      out->warp_mask |= 1u << w;
      out->nwarps *= 2;
    }
  out->elements = padded_numel(l) >> l->out_bits[axis];
  if (out->nwarps == 1)
    return;
  for (u32 k = 0; k < reduce->noperands && k < COUNT(out->base); k++) {
    out->base[k] = out->bytes;
    out->bytes += round_up(out->elements * out->nwarps * type_elem_bytes(op_operand(reduce, k)->type));
  }
}

void
scratch_convert_plan(Ctx *c, const Op *convert, ConvertPlan *out)
{
  const Type *from = op_operand(convert, 0)->type, *to = op_result(convert)->type;
  u32 bits = type_elem_bits(from);
  layout_convert_plan(c, from->layout, to->layout, bits < 8 ? 8 : bits, target_has(c->target, F_LDMATRIX),
                      target_has(c->target, F_STMATRIX), out);
}

/* One thread performs a scalar atomic and hands the old value to all; a tile's goes through memory to the threads that
 * hold copies. Unused results cost nothing. */
static u32
atomic_bytes(const Op *op)
{
  const Value *r = op_result(op);
  if (value_unused(r))
    return 0;
  if (!type_is_tile(r->type))
    return ALIGN;
  const Layout *l = r->type->layout;
  return layout_free_bits(l, IN_LANE) | layout_free_bits(l, IN_WARP) ? round_up(padded_numel(l) * type_elem_bytes(r->type)) : 0;
}

u32
scratch_bytes(Ctx *c, const Op *op)
{
  ReduceScratch r;
  ConvertPlan p;
  switch (op->code) {
  case OP_REDUCE:
    scratch_reduce(op, &r);
    return r.bytes;
  case OP_CONVERT_LAYOUT:
    if (strcmp(op_str(op, AT_KIND, ""), "shared"))
      return 0;
    if (op_attr(op, AT_SCRATCH_BYTES))
      return round_up((u32)op_int(op, AT_SCRATCH_BYTES, 0));
    scratch_convert_plan(c, op, &p);
    return round_up(p.shared.bytes);
  case OP_ATOMIC_RMW: case OP_ATOMIC_CAS: return atomic_bytes(op);
  default: return 0;
  }
}
