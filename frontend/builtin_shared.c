/* builtin_shared.c - shared buffers, their views, and asynchronous copies. */
#include "sema.h"

enum { SHARED_BYTES_MAX = 1 << 24, ROW_MAX = 4096, COPY_BYTES_MIN = 4 };

/* ---- buffers ---- */

/* A buffer type, with the layout of argument i if there is one; NULL after reporting. */
static const Type *
buffer_type(Lower *L, Call *c, DType dt, u32 count, u32 rank, const u32 *shape, u32 i)
{
  LayoutUse use = {0};
  const Type *t = type_shared(L->c, dt, count, (int)rank, shape, NULL, NULL, 0, 0);
  if (!c->given[i])
    return t;
  if (c->args[i].kind != V_LAYOUT) {
    ERR(L, c->args[i].span, E_ARGUMENT, c->name, "a layout", val_str(L, c->args[i]));
    return NULL;
  }
  if (!layout_use(L, c->args[i].span, c->args[i].layout, t, 0, true, &use))
    return NULL;
  return type_shared(L->c, dt, count, (int)rank, shape, NULL, use.layout, use.pad_every, use.pad);
}

Val
builtin_shared(Lower *L, Call *c)
{
  DType dt;
  u32 rank, shape[MAX_RANK];
  i64 count = 0;
  if (!call_dtype(L, c, 0, &dt) || !call_shape(L, c, 1, &rank, shape) || (c->given[3] && !call_int(L, c, 3, "the count", &count)))
    return val_poison(c->span);
  if (c->given[3] && (count < 1 || count > ROW_MAX))
    return call_error(L, c, c->args[3].span, "a row has from 1 to 4096 buffers");
  const Type *t = buffer_type(L, c, dt, (u32)count, rank, shape, 2);
  if (!t)
    return val_poison(c->span);
  u64 bytes = (u64)type_shared_stride(t) * (u64)(count ? count : 1);
  if (bytes > SHARED_BYTES_MAX)
    return call_error(L, c, c->span, arena_printf(L->a, "no device has %llu bytes of shared memory", (unsigned long long)bytes));
  L->b.span = c->span;
  Value *v = ir_shared_alloc(&L->b, t);
  if (t->layout)
    op_set_int(v->def, AT_GIVEN, 1);
  vec_push(L->a, &L->allocs, v);
  return val_buffer(v, c->span);
}

Val
builtin_free(Lower *L, Call *c)
{
  Value *s = call_buffer(L, c, 0, true);
  return s && buffer_free(L, c->span, s) ? val_void(c->span) : val_poison(c->span);
}

/* ---- views ---- */

static Val
bad_view(Lower *L, const Call *c, Span at, const Value *s, const char *why)
{
  Diag *d = ERR(L, at, E_VIEW, type_str(L->c, s->type), why);
  note_value(L, d, c->args[0]);
  return val_poison(c->span);
}

Val
builtin_view(Lower *L, Call *c)
{
  i64 start[MAX_RANK];
  u32 n, rank, shape[MAX_RANK];
  if (val_is_tile(c->args[0]))
    return tile_part(L, c);
  Value *s = call_buffer(L, c, 0, false);
  if (!s || !call_ints(L, c, 1, "where the view starts", MAX_RANK, &n, start) || !call_shape(L, c, 2, &rank, shape))
    return val_poison(c->span);
  if (n != s->type->rank || rank != n)
    return bad_view(L, c, c->span, s, arena_printf(L->a, "its start and extents are %u numbers each", s->type->rank));
  for (u32 d = 0; d < n; d++)
    start[d] = start[d] < -1 || start[d] > TILE_MAX_NUMEL ? -1 : start[d];
  const char *why = view_error(L, s->type, start, shape);
  if (why)
    return bad_view(L, c, c->span, s, why);
  L->b.span = c->span;
  return val_buffer(ir_shared_slice(&L->b, s, start, shape), c->span);
}

/* Dimensions of a part are reordered before it is cut out. */
static Value *
permute_view(Lower *L, Value *s, const int *perm)
{
  if (!s->def || s->def->code != OP_SHARED_SLICE)
    return ir_shared_permute(&L->b, s, perm);
  i64 start[MAX_RANK];
  u32 shape[MAX_RANK];
  const Attr *at = op_attr(s->def, AT_OFFSETS);
  for (u32 d = 0; d < s->type->rank; d++) {
    start[d] = at->ints.v[perm[d]];
    shape[d] = s->type->shape[perm[d]];
  }
  return ir_shared_slice(&L->b, permute_view(L, op_operand(s->def, 0), perm), start, shape);
}

/* Argument 0 with its dimensions in the order perm, or in that of argument 1. */
Val
buffer_permuted(Lower *L, Call *c, const int *perm)
{
  int order[MAX_RANK];
  Value *s = call_buffer(L, c, 0, false);
  if (!s || (!perm && !call_perm(L, c, 1, s->type->rank, order)))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_buffer(permute_view(L, s, perm ? perm : order), c->span);
}

static bool
is_whole(const Type *t)
{
  return !memcmp(t->shape, t->alloc_shape, sizeof t->shape);
}

static bool
all_pow2(u32 rank, const u32 *shape)
{
  for (u32 d = 0; d < rank; d++)
    if (!is_pow2(shape[d]))
      return false;
  return true;
}

/* Argument 0 under the extents of argument 1. */
Val
buffer_reshaped(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK], count = 1;
  Value *s = call_buffer(L, c, 0, false);
  if (!s || !call_shape(L, c, 1, &rank, shape))
    return val_poison(c->span);
  const Type *t = s->type;
  for (u32 d = 0; d < rank; d++)
    count *= shape[d];
  if (!is_whole(t))
    return bad_view(L, c, c->span, s, "only a whole buffer is reshaped, not a part of one");
  if (!all_pow2(t->rank, t->shape) || !all_pow2(rank, shape))
    return bad_view(L, c, c->args[1].span, s, "extents are powers of two when a buffer is reshaped");
  if (count != type_numel(t))
    return bad_view(L, c, c->args[1].span, s, arena_printf(L->a, "it has %u elements, the new extents %u", type_numel(t), count));
  const Layout *l = t->layout ? layout_reshape(L->c, t->layout, (int)rank, shape) : NULL;
  const Type *r = type_shared_view(L->c, t, 0, (int)rank, shape, NULL, l);
  L->b.span = c->span;
  return val_buffer(op_result(op_create(&L->b, OP_SHARED_RESHAPE, 1, &s, 1, &r, 0)), c->span);
}

Val
builtin_reinterpret(Lower *L, Call *c)
{
  DType dt;
  u32 rank, shape[MAX_RANK];
  Value *s = call_buffer(L, c, 0, true);
  if (!s || !call_dtype(L, c, 1, &dt) || !call_shape(L, c, 2, &rank, shape))
    return val_poison(c->span);
  const Type *r = buffer_type(L, c, dt, 0, rank, shape, 3);
  if (!r)
    return val_poison(c->span);
  if (!is_whole(s->type))
    return bad_view(L, c, c->span, s, "only a whole buffer is reinterpreted, not a part of one");
  if (type_shared_stride(r) > type_shared_bytes(s->type))
    return bad_view(L, c, c->span, s, arena_printf(L->a, "%s needs %u bytes, the buffer has %llu", type_str(L->c, r),
                                                   type_shared_stride(r), (unsigned long long)type_shared_bytes(s->type)));
  L->b.span = c->span;
  return val_buffer(op_result(op_create(&L->b, OP_SHARED_CAST, 1, &s, 1, &r, 0)), c->span);
}

/* ---- access ---- */

static const Type *
tile_of(Lower *L, const Type *t, const Type *elem)
{
  return type_tile(L->c, elem, t->rank, t->shape, NULL);
}

Val
builtin_shared_load(Lower *L, Call *c)
{
  Value *s = call_buffer(L, c, 0, false);
  if (!s)
    return val_poison(c->span);
  L->b.span = c->span;
  Value *x = ir_shared_load(&L->b, s, tile_of(L, s->type, type_scalar(L->c, s->type->dt)));
  x = layout_apply(L, c, 1, x);
  return x ? val_ir(x, c->span) : val_poison(c->span);
}

static Val
mismatch(Lower *L, const Call *c, const Value *s, Val v)
{
  Diag *d = ERR(L, v.span, E_MATCH, c->name, type_str(L->c, s->type), val_str(L, v));
  note_value(L, d, c->args[0]);
  note_value(L, d, v);
  if (v.kind == V_IR && v.ir->type->dt != s->type->dt && !type_is_ptr(v.ir->type))
    diag_hint(L->c, d, "conversions are written: %s(...)", dtype_info[s->type->dt].name);
  return val_poison(c->span);
}

Val
builtin_shared_store(Lower *L, Call *c)
{
  Val v = c->args[1];
  Value *s = call_buffer(L, c, 0, false);
  if (!s || !val_need_data(L, v, c->name))
    return val_poison(c->span);
  const Type *t = tile_of(L, s->type, type_scalar(L->c, s->type->dt));
  if (v.kind == V_IR && (type_is_ptr(v.ir->type) || v.ir->type->dt != t->dt || !shape_broadcasts_to(v.ir->type, t)))
    return mismatch(L, c, s, v);
  v = val_assign(L, v.span, v, t, "the buffer", c->args[0].from);
  if (v.kind != V_IR)
    return val_poison(c->span);
  L->b.span = c->span;
  ir_shared_store(&L->b, s, v.ir);
  return val_void(c->span);
}

/* ---- asynchronous copies ---- */

/* The most bytes that can be copied at once, if the pointers are as good as they can be. */
static u32
widest_copy(const Type *t)
{
  u32 most = 1;
  for (u32 d = 0; d < t->rank; d++)
    most = t->shape[d] > most ? t->shape[d] : most;
  return most * dtype_bytes(t->dt);
}

static bool
copy_operands(Lower *L, Call *c, Value *s, Value **p, Value **mask)
{
  const Type *t = tile_of(L, s->type, type_ptr(L->c, s->type->dt));
  if (!type_is_tile((*p)->type) || (*p)->type->dt != t->dt || !shape_broadcasts_to((*p)->type, t)) {
    mismatch(L, c, s, c->args[1]);
    return false;
  }
  if (widest_copy(t) < COPY_BYTES_MIN) {
    ERR(L, c->span, E_COPY, arena_printf(L->a, "it moves 4, 8 or 16 neighbouring bytes at a time, %s has no 4 together",
                                         type_str(L->c, s->type)));
    return false;
  }
  Value *v[3] = {*p, *mask, NULL};
  if (!values_broadcast(L, c->span, c->name, 2, v, c->args + 1))
    return false;
  if (v[0]->type != t && !shape_broadcasts_to(v[0]->type, t)) {
    mismatch(L, c, s, val_ir(v[0], c->args[1].span));
    return false;
  }
  L->b.span = c->span;
  *p = value_broadcast(L, v[0], t);
  *mask = v[1] ? value_broadcast(L, v[1], t) : NULL;
  return true;
}

Val
builtin_async_copy(Lower *L, Call *c)
{
  const char *cache, *evict;
  Value *s = call_buffer(L, c, 0, false), *p = s ? call_pointer(L, c, 1) : NULL, *mask;
  if (!p || !call_mask(L, c, 2, &mask) || !call_word(L, c, 3, "ca cg", NULL, &cache) ||
      !call_word(L, c, 4, "first last normal", NULL, &evict) || !copy_operands(L, c, s, &p, &mask))
    return val_poison(c->span);
  L->b.span = c->span;
  Op *op = ir_async_copy(&L->b, s, p, mask);
  if (cache)
    op_set_str(op, AT_CACHE, cache);
  if (evict)
    op_set_str(op, AT_EVICT, evict);
  return val_void(c->span);
}

Val
builtin_async_commit(Lower *L, Call *c)
{
  L->b.span = c->span;
  ir_async_commit(&L->b);
  return val_void(c->span);
}

Val
builtin_async_wait(Lower *L, Call *c)
{
  i64 pending;
  if (!call_int(L, c, 0, "the groups that may be in flight", &pending))
    return val_poison(c->span);
  if (pending < 0 || pending > PENDING_MOST)
    return call_error(L, c, c->args[0].span, "from 0 to 64 groups may be in flight");
  L->b.span = c->span;
  ir_async_wait(&L->b, (u32)pending);
  return val_void(c->span);
}

/* What was not committed yet is, so that nothing is left. */
Val
builtin_async_wait_all(Lower *L, Call *c)
{
  L->b.span = c->span;
  ir_async_commit(&L->b);
  ir_async_wait(&L->b, 0);
  return val_void(c->span);
}

Val
builtin_barrier(Lower *L, Call *c)
{
  L->b.span = c->span;
  op_create(&L->b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  return val_void(c->span);
}
