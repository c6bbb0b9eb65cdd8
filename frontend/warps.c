/* warps.c - how many warps a kernel gets that states none: by the tiles it moves and multiplies.
 *
 * A thread has at least one access of 16 bytes to do, and at most 32 elements of the largest tile that is loaded or stored; in between
 * there are 4 warps. The sums of a dot are 1024 elements for each warp, up to 4 warps; 8 share more than 8192. A kernel without tiles gets
 * one. A program that was told how many it has (`warps()`, layouts of its own, products of warpgroups) keeps the 4 that it was told. */
#include "sema.h"

enum { WARPS_TOLD = 4, WARPS_MAX = 16, THREAD_BYTES = 16, THREAD_ELEMENTS = 32, DOT_ELEMENTS = 1024, DOT_MANY = 8192 };

typedef struct Largest { u64 elements, bytes, sums; bool fixed, tiles; } Largest;

static void
visit(Op *op, void *user)
{
  Largest *k = user;
  const Value *p = op_pointer(op);
  k->fixed |= op->code == OP_CONVERT_LAYOUT || op->code == OP_WGMMA;
  for (u32 i = 0; i < op->nresults; i++)
    k->tiles |= type_is_tile(op->results[i]->type);
  if (op_is_dot(op) && type_padded_numel(op_result(op)->type) > k->sums)
    k->sums = type_padded_numel(op_result(op)->type);
  if (!p || !type_is_tile(p->type))
    return;
  u64 n = type_padded_numel(p->type), bytes = n * dtype_bytes(p->type->dt);
  k->elements = n > k->elements ? n : k->elements;
  k->bytes = bytes > k->bytes ? bytes : k->bytes;
}

static u32
warps_for_dot(u64 sums)
{
  u32 w = 1;
  while (w < 4 && sums > w * DOT_ELEMENTS)
    w *= 2;
  return sums > DOT_MANY ? 8 : w;
}

static u32
warps_for_accesses(const Largest *k)
{
  u32 w = WARPS_TOLD;
  while (w > 1 && k->bytes < (u64)w * 32 * THREAD_BYTES)
    w /= 2;
  while (w < WARPS_MAX && k->elements > (u64)w * 32 * THREAD_ELEMENTS)
    w *= 2;
  return w;
}

/* Of the kernel f, which is lowered and states no number of warps. */
u32
warps_by_tiles(Func *f)
{
  Largest k = {0};
  func_walk(f, visit, &k);
  if (k.fixed || f->warps_told)
    return WARPS_TOLD;
  if (k.sums)
    return warps_for_dot(k.sums);
  return k.elements ? warps_for_accesses(&k) : k.tiles ? WARPS_TOLD : 1;
}
