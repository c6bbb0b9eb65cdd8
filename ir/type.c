/* type.c - dtypes, tensor-core instructions, interned types. */
#include "ir.h"

const DTypeInfo dtype_info[DT_ALL] = {
#define DTYPE(id, name, bits, cls, e, m, doc) {name, bits, DC_##cls, e, m, doc},
#include "dtypes.def"
#undef DTYPE
#define OPAQUE(id, name, bits, doc) {name, bits, DC_X, 0, 0, doc},
#include "dtypes.def"
#undef OPAQUE
};

/* The one of that name from row `from` on, below `to`; false if there is none. */
static bool
find_dtype(const char *name, int from, int to, DType *out)
{
  for (int d = from; d < to; d++)
    if (!strcmp(dtype_info[d].name, name)) {
      *out = (DType)d;
      return true;
    }
  return false;
}

bool
dtype_find(const char *name, DType *out)
{
  return find_dtype(name, 0, DT_COUNT, out);
}

bool
dtype_find_opaque(const char *name, DType *out)
{
  return find_dtype(name, DT_COUNT, DT_ALL, out);
}

static const Mma mma_table[] = {
#define MMA(name, feature, fa, fb, acc, m, n, k, a, b, c, intrinsic) \
  {name, F_##feature, {DT_##fa, DT_##fb}, DT_##acc, m, n, k, {a, b, c}, intrinsic, false},
#define MMA_SP(name, feature, fa, fb, acc, m, n, k, a, b, c, intrinsic) \
  {name, F_##feature, {DT_##fa, DT_##fb}, DT_##acc, m, n, k, {a, b, c}, intrinsic, true},
#include "mma.def"
#undef MMA
#undef MMA_SP
};

/* Row i, NULL past the end. */
const Mma *
mma_at(u32 i)
{
  return i < COUNT(mma_table) ? &mma_table[i] : NULL;
}

/* The instruction of that name with such an accumulator. */
const Mma *
mma_find(const char *name, DType acc)
{
  for (u32 i = 0; i < COUNT(mma_table); i++)
    if (!strcmp(mma_table[i].name, name) && mma_table[i].acc == acc)
      return &mma_table[i];
  return NULL;
}

const Mma *
mma_for(const Target *t, bool sparse, DType a, DType b, DType acc)
{
  for (u32 i = 0; i < COUNT(mma_table); i++) {
    const Mma *m = &mma_table[i];
    if (m->factor[0] == a && m->factor[1] == b && m->acc == acc && m->sparse == sparse && target_has(t, m->feature))
      return m;
  }
  return NULL;
}

bool
dot_factors_fit(DType a, DType b)
{
  return a == b || (dtype_bits(a) == 8 && dtype_bits(b) == 8 && dtype_is_float(a) == dtype_is_float(b) &&
                    dtype_is_int(a) == dtype_is_int(b));
}

bool
dot_sum_fits(DType factor, DType sum)
{
  switch (factor) {
  case DT_F16: case DT_F8E4M3: case DT_F8E5M2: return sum == DT_F32 || sum == DT_F16;
  case DT_BF16: case DT_F32: return sum == DT_F32;
  case DT_F64: return sum == DT_F64;
  case DT_I8: case DT_U8: return sum == DT_I32;
  default: return false;
  }
}

typedef struct TypeTable {
  Type scalars[DT_ALL], ptrs[DT_ALL];
  const Type **slots;
  u32 cap, len;
} TypeTable;

static TypeTable *
table(Ctx *c)
{
  if (c->types)
    return c->types;
  TypeTable *t = c->types = NEW(c->perm, TypeTable);
  for (int d = 0; d < DT_ALL; d++) {
    t->scalars[d] = (Type){.kind = TY_SCALAR, .dt = (DType)d};
    t->ptrs[d] = (Type){.kind = TY_PTR, .dt = (DType)d};
  }
  return t;
}

static u32
type_hash(const Type *t)
{
  u32 h = ((u32)t->dt * 2 + t->ptr) * 8 + t->rank;
  for (int i = 0; i < t->rank; i++)
    h = h * 0x9e3779b1u + t->shape[i];
  h = h * 0x9e3779b1u + (u32)((uintptr_t)t->layout >> 4);
  h = h * 0x9e3779b1u + t->kind * 64 + t->pending * 32 + t->count + t->pad + t->cut;
  return h ^ h >> 15;
}

static bool
tile_equal(const Type *a, const Type *b)
{
  return a->kind == b->kind && a->dt == b->dt && a->ptr == b->ptr && a->pending == b->pending && a->layout == b->layout &&
         a->rank == b->rank &&
         !memcmp(a->shape, b->shape, sizeof a->shape) && a->count == b->count && a->pad_every == b->pad_every &&
         a->pad == b->pad && a->cut == b->cut && !memcmp(a->alloc_shape, b->alloc_shape, sizeof a->alloc_shape);
}

static const Type **
slot_find(TypeTable *t, const Type *key)
{
  u32 i = type_hash(key) & (t->cap - 1);
  while (t->slots[i] && !tile_equal(t->slots[i], key))
    i = (i + 1) & (t->cap - 1);
  return &t->slots[i];
}

static void
table_grow(Ctx *c, TypeTable *t)
{
  const Type **old = t->slots;
  u32 n = t->cap;
  t->cap = n ? n * 2 : 64;
  t->slots = NEW_ARRAY(c->perm, const Type *, t->cap);
  for (u32 i = 0; i < n; i++)
    if (old[i])
      *slot_find(t, old[i]) = old[i];
}

/* A number. */
const Type *
type_scalar(Ctx *c, DType d)
{
  return &table(c)->scalars[d];
}

/* A pointer to numbers in global memory. */
const Type *
type_ptr(Ctx *c, DType pointee)
{
  return &table(c)->ptrs[pointee];
}

static const Type *
type_intern(Ctx *c, const Type *key)
{
  TypeTable *t = table(c);
  if (t->len * 4 >= t->cap * 3)
    table_grow(c, t);
  const Type **slot = slot_find(t, key);
  if (!*slot) {
    Type *made = NEW(c->perm, Type);
    *made = *key;
    *slot = made;
    t->len++;
  }
  return *slot;
}

/* A tile of elem (scalar or pointer); rank 1..MAX_RANK, extents positive. */
const Type *
type_tile(Ctx *c, const Type *elem, int rank, const u32 *shape, const Layout *l)
{
  Type key = {.kind = TY_TILE, .dt = elem->dt, .ptr = elem->kind == TY_PTR, .rank = (u8)rank, .layout = l};
  if (rank < 1 || rank > MAX_RANK || elem->kind > TY_PTR)
    ctx_panic(c, "malformed tile type of rank %d", rank);
  memcpy(key.shape, shape, (size_t)rank * sizeof *shape);
  return type_intern(c, &key);
}

/* A view of shared memory; see Type. */
const Type *
type_shared(Ctx *c, DType d, u32 count, int rank, const u32 *shape, const u32 *alloc_shape, const Layout *l,
            u32 pad_every, u32 pad)
{
  Type key = {.kind = TY_SHARED, .dt = d, .rank = (u8)rank, .layout = l, .count = count, .pad_every = pad_every, .pad = pad};
  if (rank < 1 || rank > MAX_RANK)
    ctx_panic(c, "malformed shared type of rank %d", rank);
  memcpy(key.shape, shape, (size_t)rank * sizeof *shape);
  memcpy(key.alloc_shape, alloc_shape ? alloc_shape : shape, (size_t)rank * sizeof *shape);
  return type_intern(c, &key);
}

/* A tensor of d: rank 1..MAX_RANK. */
const Type *
type_tensor(Ctx *c, DType d, int rank)
{
  Type key = {.kind = TY_TENSOR, .dt = d, .rank = (u8)rank};
  if (rank < 1 || rank > MAX_RANK)
    ctx_panic(c, "malformed tensor type of rank %d", rank);
  return type_intern(c, &key);
}

/* See ir.h. */
const Type *
type_shared_view(Ctx *c, const Type *t, u32 count, int rank, const u32 *shape, const u32 *alloc_shape, const Layout *l)
{
  const Type *view = type_shared(c, t->dt, count, rank, shape, alloc_shape, l, t->pad_every, t->pad);
  return t->cut ? type_shared_cut(c, view, t->cut) : view;
}

/* t with memory for so many elements of offset; 0: for all. */
const Type *
type_shared_cut(Ctx *c, const Type *t, u32 cut)
{
  Type key = *t;
  key.cut = cut;
  return type_intern(c, &key);
}

/* Elements of offset that memory holds. A cut buffer ends with the 16 bytes that its last element lies in: no access is wider. */
u32
type_shared_elements(const Type *t)
{
  u32 n = 1;
  for (int i = 0; i < t->rank; i++)
    n *= next_pow2(t->alloc_shape[i]);
  return t->cut ? min_u32(n, align_up(t->cut, 16 / dtype_bytes(t->dt))) : n;
}

u32
type_shared_stride(const Type *t)
{
  u32 n = type_shared_elements(t);
  if (t->pad_every)
    n += n / t->pad_every * t->pad;
  return align_up(n * dtype_bytes(t->dt), dtype_is_opaque(t->dt) ? dtype_bytes(t->dt) : SHARED_ALIGN);
}

u64
type_shared_bytes(const Type *t)
{
  u64 bytes = (u64)type_shared_stride(t) * (t->count ? t->count : 1);
  return (bytes + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
}

/* The element's type; t itself if not a tile. */
const Type *
type_elem(Ctx *c, const Type *t)
{
  if (t->kind != TY_TILE)
    return t;
  return t->ptr ? type_ptr(c, t->dt) : type_scalar(c, t->dt);
}

/* t with another element. */
const Type *
type_with_elem(Ctx *c, const Type *t, const Type *elem)
{
  elem = type_elem(c, elem);
  return t->kind == TY_TILE ? type_tile(c, elem, t->rank, t->shape, t->layout) : elem;
}

/* t with another layout; scalars and pointers stay. For buffers too. */
const Type *
type_with_layout(Ctx *c, const Type *t, const Layout *l)
{
  if (t->kind == TY_SHARED)
    return type_shared(c, t->dt, t->count, t->rank, t->shape, t->alloc_shape, l, t->pad_every, t->pad);
  if (t->kind != TY_TILE)
    return t;
  return type_pending(c, type_tile(c, type_elem(c, t), t->rank, t->shape, l), t->pending);
}

const Type *
type_pending(Ctx *c, const Type *t, bool pending)
{
  Type key = *t;
  key.pending = pending;
  return key.pending == t->pending ? t : type_intern(c, &key);
}

/* i1 in the shape of t. */
const Type *
type_i1_like(Ctx *c, const Type *t)
{
  return type_with_elem(c, t, type_scalar(c, DT_I1));
}

/* Both not tiles, or tiles of equal extents. */
bool
type_same_shape(const Type *a, const Type *b)
{
  if (a->rank != b->rank)
    return false;
  return !memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]);
}

/* Logical elements; 1 if not a tile. */
u32
type_numel(const Type *t)
{
  u32 n = 1;
  for (int i = 0; i < t->rank; i++)
    n *= t->shape[i];
  return n;
}

/* Elements of the padded tile; 1 if not a tile. */
u32
type_padded_numel(const Type *t)
{
  u32 n = 1;
  for (int i = 0; i < t->rank; i++)
    n *= next_pow2(t->shape[i]);
  return n;
}

/* Extents without ones; returns how many. */
static int
dense_extents(const Type *t, u32 *shape)
{
  int n = 0;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] != 1)
      shape[n++] = t->shape[i];
  return n;
}

/* From the last dimensions on, as few of both as hold the same elements. */
bool
type_reshape_is_linear(const Type *a, const Type *r)
{
  u32 from[MAX_RANK], to[MAX_RANK];
  int n = dense_extents(a, from), m = dense_extents(r, to);
  while (n && m) {
    u32 have = from[--n], want = to[--m], more;
    while (have != want) {
      more = have < want ? from[n] : to[m];
      if (!is_pow2(more))
        return false;
      if (have < want)
        have *= from[--n];
      else
        want *= to[--m];
    }
  }
  return true;
}

/* Bits of an element: 64 for pointers, 1 for i1. */
u32
type_elem_bits(const Type *t)
{
  return type_is_ptr(t) ? 64 : dtype_bits(t->dt);
}

/* Bytes of an element in memory. */
u32
type_elem_bytes(const Type *t)
{
  return type_is_ptr(t) ? 8 : dtype_bytes(t->dt);
}

/* Some extent is not a power of two. */
bool
type_padded(const Type *t)
{
  for (int i = 0; i < t->rank; i++)
    if (!is_pow2(t->shape[i]))
      return true;
  return false;
}

/* NULL if a tile may have these extents, else what is wrong. */
const char *
type_shape_error(Ctx *c, int rank, const u32 *shape)
{
  u64 padded = 1;
  if (rank < 1 || rank > MAX_RANK)
    return arena_printf(c->scratch, "a tile has 1 to %d dimensions, not %d", MAX_RANK, rank);
  for (int i = 0; i < rank; i++) {
    if (!shape[i] || shape[i] > TILE_MAX_NUMEL)
      return arena_printf(c->scratch, "extent %u is not between 1 and %d", shape[i], TILE_MAX_NUMEL);
    padded *= next_pow2(shape[i]);
    if (padded > TILE_MAX_NUMEL)
      return arena_printf(c->scratch, "the tile has more than %d elements (extents padded to powers of two)",
                          TILE_MAX_NUMEL);
  }
  return NULL;
}

/* The language's spelling; alias >= 0 names the layout behind the extents. */
static void
print_shape(Buf *b, const u32 *shape, int rank, int alias)
{
  for (int i = 0; i < rank; i++)
    buf_printf(b, "%s%u", i ? ", " : "[", shape[i]);
  if (alias >= 0)
    buf_printf(b, ", #%d", alias);
  buf_putc(b, ']');
}

static void
print_shared(Buf *b, const Type *t, int alias)
{
  buf_puts(b, "shared<");
  if (t->count)
    buf_printf(b, "%u x ", t->count);
  buf_puts(b, dtype_info[t->dt].name);
  print_shape(b, t->shape, t->rank, alias);
  if (memcmp(t->shape, t->alloc_shape, sizeof t->shape)) {
    buf_puts(b, " of ");
    print_shape(b, t->alloc_shape, t->rank, -1);
  }
  if (t->pad_every)
    buf_printf(b, " pad %u + %u", t->pad_every, t->pad);
  if (t->cut)
    buf_printf(b, " cut %u", t->cut);
  buf_putc(b, '>');
}

void
type_print(Buf *b, const Type *t, int alias)
{
  if (type_is_shared(t)) {
    print_shared(b, t, alias);
    return;
  }
  if (type_is_tensor(t)) {
    buf_printf(b, "tensor<%s, %u>", dtype_info[t->dt].name, t->rank);
    return;
  }
  const char *open = type_is_tile(t) && t->ptr ? "(" : "", *close = *open ? ")" : "";
  buf_printf(b, "%s%s%s%s%s", t->pending ? "pending " : "", open, type_is_ptr(t) ? "*" : "", dtype_info[t->dt].name, close);
  if (t->rank)
    print_shape(b, t->shape, t->rank, alias);
}

/* The language's spelling, without the layout; in scratch. */
const char *
type_str(Ctx *c, const Type *t)
{
  Buf b = {.arena = c->scratch};
  type_print(&b, t, -1);
  return buf_str(&b);
}
