/* verify_shared.c - check_<ID> of the shared-memory and asynchronous ops, and that buffers are taken only where ops.def says so. */
#include "verify.h"
#include "access.h"

/* The buffer operand is one: one buffer (row false) or a row of them. */
static bool
buffer_operand(Verifier *v, const Op *op, bool row)
{
  const Type *t = IN_TYPE(op, BUFFER, b);
  if (!type_is_shared(t))
    return verify_fail(v, op, "operand 0 is a shared buffer, not %s", spell(v, t));
  if (!row && t->count)
    return verify_fail(v, op, "operand 0 is one buffer, not a row of %u: pick one with shared_index", t->count);
  return !row || t->count || verify_fail(v, op, "operand 0 is a row of buffers, not %s", spell(v, t));
}

/* The result views the same kind of elements with the same count, padding and place. */
static bool
same_buffer(Verifier *v, const Op *op, const Type *want)
{
  return out_type(op) == want || verify_fail(v, op, "the result is %s, not %s", spell(v, want), spell(v, out_type(op)));
}

static bool
whole(const Type *t)
{
  return !memcmp(t->shape, t->alloc_shape, sizeof t->shape);
}

bool
verify_no_buffers(Verifier *v, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    if (op->operands[i].value && type_is_shared(in_type(op, i)) && !op_effect(op, i))
      return verify_fail(v, op, "operand %u is a shared buffer; only views, loads, stores and copies take one", i);
  for (u32 i = 0; i < op->noperands; i++)
    if (op->operands[i].value && type_is_tensor(in_type(op, i)) && !op_effect(op, i))
      return verify_fail(v, op, "operand %u is a tensor; only copies take one, and what asks about it", i);
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tensor(op->results[i]->type) && op->code != OP_TENSOR_OF && op->code != OP_TENSOR_AT)
      return verify_fail(v, op, "result %u is a tensor; only parameters of kernels are, and what tensor_of and tensor_at make", i);
  for (u32 i = 0; i < op->noperands; i++) {
    bool known = op->code == OP_SHARED_INDEX || op->code == OP_SHARED_REMOTE || op->code == OP_MBARRIER_INIT ||
                 op_effect(op, i) & FX_ORDER;
    if (op->operands[i].value && type_is_shared(in_type(op, i)) && dtype_is_opaque(in_type(op, i)->dt) && !known)
      return verify_fail(v, op, "nothing is done to mbarriers but init, arrive and wait");
  }
  return true;
}

bool
check_SHARED_ALLOC(Verifier *v, const Op *op)
{
  const Type *t = out_type(op);
  if (!type_is_shared(t))
    return verify_fail(v, op, "the result is a shared buffer, not %s", spell(v, t));
  if (dtype_is_opaque(t->dt) && (type_numel(t) != 1 || t->pad_every))
    return verify_fail(v, op, "a buffer of %s has one, a row one in each buffer: shared<4 x %s[1]>", dtype_info[t->dt].name,
                       dtype_info[t->dt].name);
  if (dtype_is_opaque(t->dt) && op->block->parent)
    return verify_fail(v, op, "mbarriers are made directly in a kernel's body: they last as long as the program");
  return whole(t) || verify_fail(v, op, "a new buffer is not a view of another");
}

/* The first op of this one and those in it that uses the buffer, or a view of it; NULL: none. */
static const Op *
use_of(const Op *op, const Op *alloc)
{
  const Op *use = NULL;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && type_is_shared(op_operand(op, i)->type) && buffer_alloc(op_operand(op, i)) == alloc)
      return op;
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x && !use; x = x->next)
      use = use_of(x, alloc);
  return use;
}

bool
check_SHARED_FREE(Verifier *v, const Op *op)
{
  const Value *b = OPERAND(op, SHARED_FREE, b);
  if (!type_is_shared(b->type) || !op_is(b, OP_SHARED_ALLOC))
    return verify_fail(v, op, "only what shared_alloc gave can be freed");
  for (const Op *later = op->next; later; later = later->next) {
    const Op *use = use_of(later, b->def);
    if (use)
      return verify_fail(v, use, "the buffer is used after it was freed");
  }
  return true;
}

bool
check_SHARED_INDEX(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, SHARED_INDEX, b), *i = IN_TYPE(op, SHARED_INDEX, i);
  i64 n;
  if (!buffer_operand(v, op, true))
    return false;
  if (i->kind != TY_SCALAR || i->dt != DT_I32)
    return verify_fail(v, op, "the index is an i32, not %s", spell(v, i));
  if (value_const_int(OPERAND(op, SHARED_INDEX, i), &n) && (n < 0 || n >= (i64)t->count))
    return verify_fail(v, op, "buffer %lld of a row of %u", (long long)n, t->count);
  return same_buffer(v, op, type_shared_view(v->ctx, t, 0, t->rank, t->shape, t->alloc_shape, t->layout));
}

bool
check_SHARED_SLICE(Verifier *v, const Op *op)
{
  const Attr *a = op_attr(op, AT_OFFSETS);
  if (!buffer_operand(v, op, false))
    return false;
  const Type *t = IN_TYPE(op, SHARED_SLICE, b), *r = out_type(op);
  if (!type_is_shared(r) || r->rank != t->rank || a->ints.n != t->rank)
    return verify_fail(v, op, "a slice keeps the rank and names an offset for each dimension");
  for (int i = 0; i < t->rank; i++) {
    i64 at = a->ints.v[i];
    if (at < 0 || at + (i64)r->shape[i] > (i64)t->shape[i])
      return verify_fail(v, op, "elements %lld to %lld of dimension %d are out of range: it has %u", (long long)at,
                         (long long)at + r->shape[i] - 1, i, t->shape[i]);
    if (r->shape[i] != t->shape[i] && (!is_pow2(r->shape[i]) || at % (i64)r->shape[i]))
      return verify_fail(v, op, "extents of a slice are powers of two and offsets multiples of them");
  }
  return same_buffer(v, op, type_shared_view(v->ctx, t, t->count, t->rank, r->shape, t->alloc_shape, t->layout));
}

bool
check_SHARED_PERMUTE(Verifier *v, const Op *op)
{
  const Attr *a = op_attr(op, AT_PERM);
  if (!buffer_operand(v, op, false))
    return false;
  const Type *t = IN_TYPE(op, SHARED_PERMUTE, b);
  u32 shape[MAX_RANK] = {0}, all[MAX_RANK] = {0}, seen = 0;
  int perm[MAX_RANK];
  if (a->ints.n != t->rank)
    return verify_fail(v, op, "perm names each dimension once");
  for (int i = 0; i < t->rank; i++) {
    if (a->ints.v[i] < 0 || a->ints.v[i] >= t->rank || seen >> a->ints.v[i] & 1)
      return verify_fail(v, op, "perm names each dimension once");
    seen |= 1u << a->ints.v[i];
    perm[i] = (int)a->ints.v[i];
    shape[i] = t->shape[perm[i]];
    all[i] = t->alloc_shape[perm[i]];
  }
  const Layout *l = t->layout ? layout_permute(v->ctx, t->layout, perm) : NULL;
  return same_buffer(v, op, type_shared_view(v->ctx, t, t->count, t->rank, shape, all, l));
}

bool
check_SHARED_RESHAPE(Verifier *v, const Op *op)
{
  if (!buffer_operand(v, op, false))
    return false;
  const Type *t = IN_TYPE(op, SHARED_RESHAPE, b), *r = out_type(op);
  if (!type_is_shared(r) || !whole(t) || !whole(r) || type_numel(t) != type_numel(r) || r->dt != t->dt || r->count)
    return verify_fail(v, op, "a whole buffer becomes another of as many elements of one dtype");
  for (int i = 0; i < t->rank || i < r->rank; i++)
    if ((i < t->rank && !is_pow2(t->shape[i])) || (i < r->rank && !is_pow2(r->shape[i])))
      return verify_fail(v, op, "extents are powers of two");
  const Layout *l = t->layout ? layout_reshape(v->ctx, t->layout, r->rank, r->shape) : NULL;
  return same_buffer(v, op, type_shared_view(v->ctx, t, 0, r->rank, r->shape, NULL, l));
}

bool
check_SHARED_CAST(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, SHARED_CAST, b), *r = out_type(op);
  if (!buffer_operand(v, op, t->count != 0))
    return false;
  if (!type_is_shared(r) || r->count || !whole(r) || !whole(t))
    return verify_fail(v, op, "a whole buffer becomes another, not %s", spell(v, r));
  return type_shared_stride(r) <= type_shared_bytes(t) ||
         verify_fail(v, op, "%u bytes do not fit into the buffer's %llu", type_shared_stride(r),
                     (unsigned long long)type_shared_bytes(t));
}

/* The tile matches the buffer in extents and dtype. */
static bool
same_elements(Verifier *v, const Op *op, const Type *tile, bool pointers)
{
  const Type *t = IN_TYPE(op, BUFFER, b);
  if (!buffer_operand(v, op, false))
    return false;
  return (type_is_tile(tile) && tile->ptr == pointers && tile->dt == t->dt && type_same_shape(t, tile)) ||
         verify_fail(v, op, "%s and %s do not match", spell(v, t), spell(v, tile));
}

bool
check_SHARED_LOAD(Verifier *v, const Op *op)
{
  if (!same_elements(v, op, out_type(op), false))
    return false;
  const char *rule = op_attr(op, AT_ON_DEMAND) ? access_on_demand_obstacle(v->ctx, op) : NULL;
  return !rule || verify_fail(v, op, "it is loaded on demand only where %s", rule);
}

bool
check_SHARED_STORE(Verifier *v, const Op *op)
{
  return same_elements(v, op, IN_TYPE(op, SHARED_STORE, x), false);
}

/* Indices are a tile of i32. */
static bool
index_tile(Verifier *v, const Op *op, const Type *i)
{
  if (!buffer_operand(v, op, false))
    return false;
  return (type_is_tile(i) && !type_is_ptr(i) && i->dt == DT_I32) ||
         verify_fail(v, op, "the indices are a tile of i32, not %s", spell(v, i));
}

bool
check_SHARED_GATHER(Verifier *v, const Op *op)
{
  i64 axis = op_int(op, AT_AXIS, 0);
  if (!index_tile(v, op, IN_TYPE(op, SHARED_GATHER, i)))
    return false;
  const Type *t = IN_TYPE(op, SHARED_GATHER, b), *i = IN_TYPE(op, SHARED_GATHER, i);
  if (axis >= t->rank || (i->rank != t->rank && t->rank > 1))
    return verify_fail(v, op, "%s is not indexed by %s along %lld", spell(v, t), spell(v, i), (long long)axis);
  for (int d = 0; t->rank > 1 && d < t->rank; d++)
    if (d != axis && i->shape[d] != t->shape[d])
      return verify_fail(v, op, "%s and %s differ along %d", spell(v, t), spell(v, i), d);
  return same_buffer(v, op, type_with_elem(v->ctx, i, type_scalar(v->ctx, t->dt)));
}

bool
check_SHARED_ADD(Verifier *v, const Op *op)
{
  if (!index_tile(v, op, IN_TYPE(op, SHARED_ADD, i)))
    return false;
  const Type *t = IN_TYPE(op, SHARED_ADD, b), *i = IN_TYPE(op, SHARED_ADD, i), *x = type_with_elem(v->ctx, i, type_scalar(v->ctx, t->dt));
  const Value *mask = OPERAND(op, SHARED_ADD, mask);
  if (t->rank != 1 || (t->dt != DT_I32 && t->dt != DT_U32 && t->dt != DT_F32))
    return verify_fail(v, op, "a buffer of one dimension of i32, u32 or f32 is added to, not %s", spell(v, t));
  if (IN_TYPE(op, SHARED_ADD, x) != x || (mask && mask->type != type_i1_like(v->ctx, i)))
    return verify_fail(v, op, "what is added and the mask have the indices' extents");
  return true;
}

bool
check_SHARED_SCATTER(Verifier *v, const Op *op)
{
  if (!index_tile(v, op, IN_TYPE(op, SHARED_SCATTER, i)))
    return false;
  const Type *t = IN_TYPE(op, SHARED_SCATTER, b), *i = IN_TYPE(op, SHARED_SCATTER, i);
  const Type *x = type_with_elem(v->ctx, i, type_scalar(v->ctx, t->dt));
  const Value *mask = OPERAND(op, SHARED_SCATTER, mask);
  if (t->rank != 1 || !is_pow2(t->shape[0]))           /* who loads it loads its padding, which nobody would have written */
    return verify_fail(v, op, "a buffer of one dimension, of a power of two of elements, is written to, not %s", spell(v, t));
  if (IN_TYPE(op, SHARED_SCATTER, x) != x || (mask && mask->type != type_i1_like(v->ctx, i)))
    return verify_fail(v, op, "what is written and the mask have the indices' extents");
  return true;
}

bool
check_SHARED_COUNT(Verifier *v, const Op *op)
{
  if (!index_tile(v, op, IN_TYPE(op, SHARED_COUNT, i)))
    return false;
  const Type *t = IN_TYPE(op, SHARED_COUNT, b), *i = IN_TYPE(op, SHARED_COUNT, i);
  Team team = block_team(op->block);
  const char *why = access_count_obstacle(team, i);
  if (why)
    return verify_fail(v, op, "%s, not %s for %u warps", why, spell(v, i), team.warps);
  if (t->rank != 2 || t->shape[0] != i->shape[0] || (t->dt != DT_I32 && t->dt != DT_U32))
    return verify_fail(v, op, "the counts are a row of i32 or u32 for each row of indices, not %s", spell(v, t));
  if (i->layout && i->layout != access_count_layout(v->ctx, team, i))
    return verify_fail(v, op, "elements are counted where lanes hold neighbours");
  return same_buffer(v, op, type_with_elem(v->ctx, i, type_scalar(v->ctx, t->dt)));
}

bool
check_ASYNC_COPY(Verifier *v, const Op *op)
{
  const Value *mask = OPERAND(op, ASYNC_COPY, mask);
  if (!same_elements(v, op, IN_TYPE(op, ASYNC_COPY, p), true))
    return false;
  if (!mask)
    return true;
  const Type *p = IN_TYPE(op, ASYNC_COPY, p);
  return mask->type == type_i1_like(v->ctx, p) ||
         verify_fail(v, op, "the mask is %s, not %s", spell(v, type_i1_like(v->ctx, p)), spell(v, mask->type));
}

bool
check_ASYNC_COMMIT(Verifier *v, const Op *op)
{
  return true;
}

bool
check_ASYNC_WAIT(Verifier *v, const Op *op)
{
  i64 n = op_int(op, AT_PENDING, 0);
  return (n >= 0 && n < 1 << 16) || verify_fail(v, op, "pending counts groups, from 0 on");
}
