/* broadcast.c - how extents meet: a scalar fills a tile, an extent of 1 is repeated, all others are equal. */
#include "sema.h"

/* How many elements, extents padded to powers of two; some number beyond all limits if these are too many to count. */
static u64
elements(u32 rank, const u32 *shape)
{
  u64 n = 1;
  for (u32 i = 0; i < rank; i++)
    n = n > UINT32_MAX ? n : n * (shape[i] > TILE_MAX_NUMEL ? shape[i] : next_pow2(shape[i]));
  return n;
}

/* Reports, with extents that would fit: the largest becomes the power of two below it until they do. */
static bool
too_large(Lower *L, Span at, u64 total, u32 rank, const u32 *shape)
{
  u32 fits[MAX_RANK], largest = 0;
  Buf b = {.arena = L->a};
  memcpy(fits, shape, rank * sizeof *shape);
  while (elements(rank, fits) > TILE_MAX_NUMEL) {
    for (u32 i = 0; i < rank; i++)
      largest = fits[i] > fits[largest] ? i : largest;
    fits[largest] = 1u << log2_u32(fits[largest] - 1);
  }
  bool counted = total <= 1ull << 40;            /* an extent that is too large by itself was cut */
  for (u32 i = 0; i < rank; i++) {
    buf_printf(&b, "%s%u", i ? ", " : "", fits[i]);
    counted &= shape[i] <= TILE_MAX_NUMEL;
  }
  bool padded = false;
  for (u32 i = 0; i < rank; i++)
    padded |= counted && !is_pow2(shape[i]);
  const char *how = padded ? ", extents padded to powers of two" : "";
  const char *most = arena_printf(L->a, "a tile has at most %d elements%s", TILE_MAX_NUMEL, how);
  Diag *d = ERR(L, at, E_EXTENT, counted ? arena_printf(L->a, "%s, not %llu", most, (unsigned long long)total) : most);
  note_constants(L, d, at);
  diag_hint(L->c, d, "[%s] would fit: go on with a loop, or with more programs", buf_str(&b));
  return false;
}

/* Rank and extents within the language's limits. */
bool
shape_check(Lower *L, Span at, u32 rank, const u32 *shape)
{
  if (rank < 1 || rank > MAX_RANK) {
    note_constants(L, ERR(L, at, E_EXTENT, arena_printf(L->a, "a tile has from 1 to %d dimensions, not %u", MAX_RANK, rank)), at);
    return false;
  }
  for (u32 i = 0; i < rank; i++)
    if (shape[i] == 0) {
      note_constants(L, ERR(L, at, E_EXTENT, "extents are positive"), at);
      return false;
    }
  u64 total = elements(rank, shape);
  return total <= TILE_MAX_NUMEL || too_large(L, at, total, rank, shape);
}

/* Extents of a and b together in shape. */
static bool
shapes_broadcast(const Type *a, const Type *b, u32 *shape)
{
  if (a->rank != b->rank)
    return false;
  for (u32 i = 0; i < a->rank; i++) {
    if (a->shape[i] != b->shape[i] && a->shape[i] != 1 && b->shape[i] != 1)
      return false;
    shape[i] = a->shape[i] > b->shape[i] ? a->shape[i] : b->shape[i];
  }
  return true;
}

/* Values of type `from` broadcast to the extents of tile type `to`. */
bool
shape_broadcasts_to(const Type *from, const Type *to)
{
  if (!type_is_tile(from) || !type_is_tile(to))
    return type_is_tile(to);
  for (u32 i = 0; i < to->rank; i++)
    if (from->rank != to->rank || (from->shape[i] != to->shape[i] && from->shape[i] != 1))
      return false;
  return true;
}

/* x with the extents of tile type `shape`; x broadcasts to them. */
Value *
value_broadcast(Lower *L, Value *x, const Type *shape)
{
  if (!type_is_tile(shape) || type_same_shape(x->type, shape))
    return x;
  return type_is_tile(x->type) ? ir_broadcast(&L->b, x, shape->shape) : ir_splat(&L->b, x, shape);
}

static bool
shapes_differ(Lower *L, Span at, const char *what, const Type *a, const Type *b, const Val *va, const Val *vb)
{
  Diag *d = ERR(L, at, E_SHAPES, what, va ? val_str(L, *va) : type_str(L->c, a), vb ? val_str(L, *vb) : type_str(L->c, b));
  if (va)
    note_value(L, d, *va);
  if (vb)
    note_value(L, d, *vb);
  if (a->rank != b->rank)
    diag_hint(L->c, d, "tiles of different rank do not meet; insert dimensions of extent 1 with x[:, None] or x[None, :]");
  return false;
}

/* Broadcast n values (NULL: absent) to one shape; false after reporting. origin, if not NULL, says where each came from. */
bool
values_broadcast(Lower *L, Span at, const char *what, u32 n, Value **vals, const Val *origin)
{
  const Type *all = NULL;
  u32 first = 0;
  for (u32 i = 0; i < n; i++) {
    const Type *t = vals[i] ? vals[i]->type : NULL;
    u32 shape[MAX_RANK];
    if (!t || !type_is_tile(t) || (all && type_same_shape(all, t)))
      continue;
    if (!all) {
      all = t;
      first = i;
    } else if (!shapes_broadcast(all, t, shape)) {
      return shapes_differ(L, at, what, vals[first]->type, t, origin ? &origin[first] : NULL, origin ? &origin[i] : NULL);
    } else {
      all = type_tile(L->c, type_elem(L->c, t), t->rank, shape, NULL);
    }
  }
  if (all && !shape_check(L, at, all->rank, all->shape))
    return false;
  L->b.span = at;
  for (u32 i = 0; all && i < n; i++)
    if (vals[i])
      vals[i] = value_broadcast(L, vals[i], all);
  return true;
}
