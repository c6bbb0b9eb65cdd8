/* lower_index.c - x[...]: parts of tiles and tuples, new dimensions, types of tiles.
 *
 * Of a tile, each item of an index is for one dimension, in order: `:` keeps it, `a:b` keeps elements a to b - 1, a number
 * keeps that element and drops the dimension. `None` makes a new one. */
#include "sema.h"

typedef struct Index {
  u32 dims;                   /* of the tile, that items speak of */
  i64 start[MAX_RANK];
  u32 shape[MAX_RANK];
  Value *at[MAX_RANK];        /* the element, where the dimension is dropped */
  u32 nitems;
  bool fresh[MAX_RANK];       /* in the result: a new dimension */
} Index;

/* A place in a list of n items, which counts from the end when it is negative; `absent` where item is NULL. False after reporting. */
static bool
list_place(Lower *L, const Node *item, u32 n, i64 absent, i64 *out)
{
  *out = absent;
  if (item && !lower_const_int(L, item, "the index of a tuple or list", out))
    return false;
  *out += item && *out < 0 ? n : 0;
  return true;
}

/* t[a:b] */
static Val
list_part(Lower *L, const Node *n, Val list)
{
  const Node *item = kid(n, 1);
  i64 from, to;
  if (!list_place(L, kid(item, 0), list.list.n, 0, &from) || !list_place(L, kid(item, 1), list.list.n, list.list.n, &to))
    return val_poison(n->span);
  if (from >= 0 && from <= to && to <= (i64)list.list.n) {
    list.list.v += from;
    list.list.n = (u32)(to - from);
    return list;
  }
  ERR(L, n->span, E_INDEX, arena_printf(L->a, "%lld:%lld of %u items", (long long)from, (long long)to, list.list.n));
  return val_poison(n->span);
}

static Val
index_list(Lower *L, const Node *n, Val list)
{
  i64 i;
  if (n->nkids != 2 || kid(n, 1)->kind == N_NONE) {
    ERR(L, n->span, E_INDEX, "a tuple or list takes one index");
    return val_poison(n->span);
  }
  if (kid(n, 1)->kind == N_ALL)
    return list_part(L, n, list);
  if (!list_place(L, kid(n, 1), list.list.n, 0, &i))
    return val_poison(n->span);
  if (i >= 0 && i < (i64)list.list.n)
    return list.list.v[i];
  ERR(L, n->span, E_INDEX, arena_printf(L->a, "index %lld of %u items", (long long)i, list.list.n));
  return val_poison(n->span);
}

static bool
bad_index(Lower *L, const Node *n, const char *why)
{
  note_constants(L, ERR(L, n->span, E_INDEX, why), n->span);
  return false;
}

static bool
index_range(Lower *L, const Node *item, u32 n, i64 *from, u32 *extent)
{
  i64 to = n;
  *from = 0;
  if ((kid(item, 0) && !lower_const_int(L, kid(item, 0), "where a part starts", from)) ||
      (kid(item, 1) && !lower_const_int(L, kid(item, 1), "where a part ends", &to)))
    return false;
  if (*from < 0 || to > n || *from >= to)
    return bad_index(L, item, arena_printf(L->a, "%lld:%lld of a dimension of extent %u", (long long)*from, (long long)to, n));
  *extent = (u32)(to - *from);
  return true;
}

/* The element at a number, which may be a run-time value. */
static bool
item_element(Lower *L, const Node *item, u32 n, Value **at)
{
  Val i = lower_expr(L, item);
  if (!val_need_data(L, i, "an index"))
    return false;
  int num = val_is_ptr(i) || val_is_tile(i) ? -1 : val_num(i);
  if (num < 0 || num == DT_I1 || (num != NUM_INT && (num >= NUM_INT || !dtype_is_int((DType)num))))
    return bad_index(L, item, arena_printf(L->a, "an element is found by an integer, this is %s; by a tile of them with gather",
                                           val_str(L, i)));
  if (i.kind == V_CONST && (i.k.i < 0 || i.k.i >= n))
    return bad_index(L, item, arena_printf(L->a, "element %lld of a dimension of extent %u", (long long)i.k.i, n));
  L->b.span = item->span;
  *at = i.kind == V_CONST ? val_as(L, i, DT_I32, NULL) : value_index(L, i.ir, NULL, n);
  return *at != NULL;
}

static bool
read_items(Lower *L, const Node *n, Val v, Index *x)
{
  const Type *t = v.ir->type;
  for (u32 i = 1; i < n->nkids; i++) {
    const Node *item = kid(n, i);
    bool fresh = item->kind == N_NONE;
    u32 d = x->dims;
    x->dims += !fresh;
    if (!fresh && d >= t->rank)
      continue;
    if (item->kind == N_ALL ? !index_range(L, item, t->shape[d], &x->start[d], &x->shape[d])
        : !fresh && (x->start[d] = 0, x->shape[d] = t->shape[d], !item_element(L, item, t->shape[d], &x->at[d])))
      return false;
    if (fresh || !x->at[d]) {
      if (x->nitems == MAX_RANK)
        return bad_index(L, n, arena_printf(L->a, "a tile has from 1 to %d dimensions", MAX_RANK));
      x->fresh[x->nitems++] = fresh;
    }
  }
  if (x->dims == t->rank)
    return true;
  Diag *d = ERR(L, n->span, E_INDEX, arena_printf(L->a, "%s has %u dimension%s, the index has %u", type_str(L->c, t), t->rank,
                                                  t->rank == 1 ? "" : "s", x->dims));
  note_value(L, d, v);
  return false;
}

/* x[:, None]: no item picks anything. */
static bool
only_dimensions(const Node *n)
{
  for (u32 i = 1; i < n->nkids; i++)
    if (kid(n, i)->kind != N_NONE && (kid(n, i)->kind != N_ALL || kid(kid(n, i), 0) || kid(kid(n, i), 1)))
      return false;
  return true;
}

static Val
index_tile(Lower *L, const Node *n, Val v)
{
  Index x = {0};
  if (!val_is_tile(v)) {
    Diag *d = ERR(L, n->span, E_INDEX, arena_printf(L->a, "%s is no tile", val_str(L, v)));
    note_value(L, d, v);
    if (val_is_ptr(v))
      diag_hint(L->c, d, "memory is read with load(p + i)");
    else if (only_dimensions(n))
      diag_hint(L->c, d, "a scalar needs no index: it fills the tile that it meets");
    return val_poison(n->span);
  }
  if (!read_items(L, n, v, &x))
    return val_poison(n->span);
  L->b.span = n->span;
  Value *r = tile_slice(L, v.ir, x.start, x.shape);
  for (int d = (int)x.dims - 1; d >= 0; d--)
    if (x.at[d])
      r = tile_pick(L, r, d, x.at[d]);
  for (u32 i = 0; i < x.nitems; i++)
    if (x.fresh[i])
      r = type_is_tile(r->type) ? ir_expand_dims(&L->b, r, (int)i)
        : ir_splat(&L->b, r, type_tile(L->c, r->type, 1, (u32[]){1}, NULL));
  return val_ir(r, n->span);
}

/* ---- shared buffers ---- */

static Val
bad_row(Lower *L, Span at, const char *why)
{
  ERR(L, at, E_ROW, why);
  return val_poison(at);
}

static Value *
row_index(Lower *L, const Node *n, const Type *t)
{
  Val i = lower_expr(L, n);
  int num = val_is_data(i) && !val_is_ptr(i) && !val_is_tile(i) ? val_num(i) : -1;
  if (!val_need_data(L, i, "an index"))
    return NULL;
  if (num < 0 || num == DT_I1 || (num != NUM_INT && (num >= NUM_INT || !dtype_is_int((DType)num)))) {
    ERR(L, n->span, E_INDEX, arena_printf(L->a, "buffers are counted by integers, this is %s", val_str(L, i)));
    return NULL;
  }
  if (i.kind == V_CONST && (i.k.i < 0 || i.k.i >= (i64)t->count)) {
    ERR(L, n->span, E_INDEX, arena_printf(L->a, "buffer %lld of a row of %u", (long long)i.k.i, t->count));
    return NULL;
  }
  return i.kind == V_CONST ? val_as(L, i, DT_I32, NULL) : value_index(L, i.ir, NULL, t->count);
}

static bool
all_ranges(const Node *n)
{
  for (u32 i = 1; i < n->nkids; i++)
    if (kid(n, i)->kind != N_ALL)
      return false;
  return true;
}

/* s[a:b, :]: a view of a part. */
static Val
buffer_part(Lower *L, const Node *n, Value *s)
{
  i64 start[MAX_RANK];
  u32 shape[MAX_RANK];
  for (u32 d = 0; d < s->type->rank; d++)
    if (!index_range(L, kid(n, d + 1), s->type->shape[d], &start[d], &shape[d]))
      return val_poison(n->span);
  const char *why = view_error(L, s->type, start, shape);
  if (why) {
    ERR(L, n->span, E_VIEW, type_str(L->c, s->type), why);
    return val_poison(n->span);
  }
  L->b.span = n->span;
  return val_buffer(ir_shared_slice(&L->b, s, start, shape), n->span);
}

/* s[i]: buffer i of a row; s[a:b, :]: a part of a buffer. */
static Val
index_buffer(Lower *L, const Node *n, Val x)
{
  const Type *t = x.ir->type;
  if (!buffer_alive(L, n->span, x.ir))
    return val_poison(n->span);
  if (!t->count && n->nkids == t->rank + 1u && all_ranges(n))
    return buffer_part(L, n, x.ir);
  if (!t->count)
    return bad_row(L, n->span, arena_printf(L->a, "%s is one buffer, not a row of them: it is read with shared_load(s), a part of it is "
                                            "view(s, start, extents)", type_str(L->c, t)));
  if (n->nkids != 2 || kid(n, 1)->kind == N_ALL || kid(n, 1)->kind == N_NONE)
    return bad_row(L, n->span, "a row of buffers takes one index");
  Value *i = row_index(L, kid(n, 1), t);
  if (!i)
    return val_poison(n->span);
  L->b.span = n->span;
  return val_buffer(ir_shared_index(&L->b, x.ir, i), n->span);
}

Val
lower_index(Lower *L, const Node *n)
{
  Val x = lower_expr(L, kid(n, 0));
  if (val_is_list(x))
    return index_list(L, n, x);
  if (x.kind == V_TYPE) {
    const Type *t = tile_type_of(L, n, x.type);
    return t ? val_type(t, n->span) : val_poison(n->span);
  }
  if (x.kind == V_BUFFER)
    return index_buffer(L, n, x);
  return val_need_data(L, x, "an index") ? index_tile(L, n, x) : val_poison(n->span);
}
