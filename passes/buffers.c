/* buffers.c - shared layouts for buffers: which swizzle, given who writes and who reads. */
#include "buffers.h"

/* The lowest registers of l, vec of them, lie in smem side by side, aligned, in every thread. */
bool
buffer_copy_fits(Ctx *c, const Layout *l, const Layout *smem, u32 vec)
{
  u32 cols[IN_COUNT][LAYOUT_MAX_BITS], low = log2_u32(vec), others = 0;
  if (!layout_to_offset(c, l, smem, cols) || l->in_bits[IN_REG] < low)
    return false;
  for (u32 i = 0; i < low; i++)
    if (cols[IN_REG][i] != 1u << i)
      return false;
  for (u32 in = IN_REG; in <= IN_WARP; in++)
    for (u32 i = in == IN_REG ? low : 0; i < l->in_bits[in]; i++)
      others |= cols[in][i];
  return !(others & (vec - 1));
}

/* Wavefronts and register moves to read a tile of layout `want` from smem. */
static u32
read_cost(Ctx *c, const Layout *want, const Layout *smem, u32 bits)
{
  u32 regs = layout_regs(want), vec = layout_access_vec(want, smem, bits), least;
  u32 wavefronts = (vec * bits * 32 + 1023) / 1024;
  least = regs / vec * (wavefronts + layout_bank_conflicts(want, smem, vec, bits)) * 4 + (bits < 32 ? regs * bits / 32 : 0);
  for (int trans = 0; trans < 2 && target_has(c->target, F_LDMATRIX); trans++) {
    MatrixAccess m;
    if (layout_matrix_access(want, smem, bits, trans, &m) && m.groups * (m.count + m.conflicts) * 4 < least)
      least = m.groups * (m.count + m.conflicts) * 4;
  }
  return least;
}

/* The same with the bits of the pieces' exclusive-or rotated: where lanes walk along a row first, as they do for runs of an operand
 * of 16 bytes, its low bits are theirs, and neighbouring rows must part by a higher one. */
static const Layout *
rotated(Ctx *c, const Layout *smem, int fast, u32 by)
{
  Layout to = *smem;
  u32 at = 0, all = 0;
  for (u32 d = (u32)fast + 1; d < smem->rank; d++)
    at += smem->out_bits[d];
  u32 within = ((1u << smem->out_bits[fast]) - 1) << at;
  for (u32 i = 0; i < smem->in_bits[IN_OFFSET]; i++)
    all |= smem->col[IN_OFFSET][i] & ~within ? smem->col[IN_OFFSET][i] & within : 0;
  u32 low = all ? (u32)__builtin_ctz(all) : 0, n = (u32)__builtin_popcount(all);
  if (by >= n || all >> low != (1u << n) - 1)
    return NULL;
  for (u32 i = 0; i < smem->in_bits[IN_OFFSET]; i++) {
    u32 x = smem->col[IN_OFFSET][i] & ~within ? (smem->col[IN_OFFSET][i] & within) >> low : 0;
    if (x)
      to.col[IN_OFFSET][i] = (smem->col[IN_OFFSET][i] & ~within) | ((x << by | x >> (n - by)) & ((1u << n) - 1)) << low;
  }
  return layout_intern(c, &to);
}

int
buffer_fastest(const Type *t, const Layout *l)
{
  int fast = t->rank - 1;
  for (int d = 0; d < t->rank; d++)
    if (layout_contiguous_regs(l, d) > layout_contiguous_regs(l, fast))
      fast = d;
  return fast;
}

/* The dimensions of t, the fastest first, then the last. */
static int
order_of_rows(const Type *t, const Layout *l, int *order)
{
  int fast = buffer_fastest(t, l);
  order[0] = fast;
  for (int d = t->rank - 1, i = 1; d >= 0; d--)
    if (d != fast)
      order[i++] = d;
  return fast;
}

typedef struct Cheapest { const Layout *smem; u32 cost; } Cheapest;

/* smem, if a copy of vec elements fits and it is cheaper to read than what there is. */
static void
consider(Ctx *c, Cheapest *best, const Type *t, const Layout *l, const Layout *want, const Layout *smem, u32 vec)
{
  u32 cost = buffer_copy_fits(c, l, smem, vec) ? read_cost(c, want, smem, type_elem_bits(t)) : UINT32_MAX;
  if (cost < best->cost)
    *best = (Cheapest){smem, cost};
}

/* Rows as in memory, pieces of them exclusive-ored with the row: what lies side by side in global memory stays within
 * one 128-byte line of shared memory. (A copy whose two halves of a 32-byte sector part company reads the sector twice.) Pieces are what
 * is copied at once; narrower copies are tried with wider ones as well, up to the 16 bytes that ldmatrix reads. */
const Layout *
buffer_swizzle(Ctx *c, const Type *t, const Layout *l, const Layout *want, u32 vec)
{
  Cheapest best = {NULL, UINT32_MAX};
  int order[MAX_RANK], fast = order_of_rows(t, l, order);
  const Layout *smem;
  for (u32 piece = vec; piece * type_elem_bits(t) <= 128; piece *= 2) {
    Cheapest plain = {NULL, UINT32_MAX};
    for (u32 phases = 8; phases; phases /= 2)
      for (u32 per = 1; per <= 4; per *= 2)
        consider(c, &plain, t, l, want, layout_swizzled(c, t->rank, t->shape, piece, per, phases, order), vec);
    Cheapest turned = plain;
    for (u32 by = 1; plain.smem && (smem = rotated(c, plain.smem, fast, by)); by++)
      consider(c, &turned, t, l, want, smem, vec);
    best = turned.cost < best.cost ? turned : best;
  }
  return best.smem;
}

/* ---- buffers of the program's own, without a layout ---- */

/* What is known of a buffer's uses, through its views. */
typedef struct Uses {
  const Layout *write, *read;      /* register layouts, in the buffer's own dimensions; NULL: none seen */
  u32 vec;                         /* elements that a writer has side by side */
} Uses;

static void
note_use(const Op *op, Uses *u)
{
  const Type *t;
  if (op->code == OP_SHARED_LOAD) {
    u->read = op_result(op)->type->layout;
    return;
  }
  t = op->code == OP_ASYNC_COPY ? OPERAND(op, ASYNC_COPY, p)->type : OPERAND(op, SHARED_STORE, x)->type;
  u32 vec = op->code == OP_ASYNC_COPY ? (u32)op_int(op, AT_VEC, 1) : layout_contiguous_regs(t->layout, t->rank - 1);
  u32 most = 16 / dtype_bytes(t->dt);
  u->write = t->layout;
  u->vec = vec > most ? most : vec;
}

typedef struct Placing { Ctx *c; Op *alloc; Uses uses; } Placing;

static void
find_uses(Op *op, void *user)
{
  Placing *p = user;
  bool access = op->code == OP_SHARED_LOAD || op->code == OP_SHARED_STORE || op->code == OP_ASYNC_COPY;
  if (access && buffer_whole(op_buffer(op)) == p->alloc)
    note_use(op, &p->uses);
}

static const Layout *
layout_for_uses(Placing *p)
{
  const Type *t = op_result(p->alloc)->type;
  const Uses *u = &p->uses;
  int order[MAX_RANK];
  for (int d = 0; d < t->rank; d++)
    order[d] = t->rank - 1 - d;
  if (u->write && u->read)
    for (u32 vec = u->vec; vec; vec /= 2) {
      const Layout *l = buffer_swizzle(p->c, t, u->write, u->read, vec);
      if (l)
        return l;
    }
  u32 most = 16 / dtype_bytes(t->dt), fast = next_pow2(t->shape[t->rank - 1]);
  return layout_swizzled(p->c, t->rank, t->shape, most < fast ? most : fast, 1, 1, order);
}

/* The dimension of b along which a product takes its elements, which are of no 16 bits; -1: none, or it may be either. */
static int
dim_of_depth(const Value *b)
{
  int d = -1;
  for (const Use *u = b->uses; u && d < 0 && dtype_bits(b->type->dt) != 16; u = u->next) {
    const Op *op = u->user;
    if (op->code == OP_WGMMA)
      d = OPERAND(op, WGMMA, a) == b;
    else if (op->code == OP_SHARED_INDEX || op->code == OP_SHARED_SLICE || op->code == OP_SHARED_PERMUTE)
      d = dim_of_depth(op_result(op));
    if (op->code == OP_SHARED_PERMUTE && d >= 0)
      d = (int)op_attr(op, AT_PERM)->ints.v[d];
  }
  return d;
}

/* What the async proxy reads or writes lies in panels: along the last dimension, as in global memory, unless a product wants another. */
static const Layout *
layout_for(Placing *p)
{
  const Value *b = op_result(p->alloc);
  const Type *t = b->type;
  int depth = dim_of_depth(b), fast = depth < 0 ? t->rank - 1 : depth;
  bool panels = buffer_in_panels(b) || op_int(p->alloc, AT_BOXES, 0);
  const Layout *l = panels ? layout_panels_default(p->c, t->rank, t->shape, dtype_bytes(t->dt), fast) : NULL;
  if (l)
    return l;
  func_walk(p->alloc->block->func, find_uses, p);
  return layout_for_uses(p);
}

static void
place_alloc(Op *op, void *user)
{
  Placing p = {.c = ((Placing *)user)->c, .alloc = op};
  if (op->code == OP_SHARED_ALLOC && !op_result(op)->type->layout)
    op_result(op)->type = type_with_layout(p.c, op_result(op)->type, layout_for(&p));
}

const Type *
buffer_view_type(Ctx *c, const Op *view, const Type *t)
{
  const Type *v = op_result(view)->type;
  const Layout *l = t->layout;
  const Attr *perm = op_attr(view, AT_PERM);
  int order[MAX_RANK];
  for (u32 i = 0; perm && i < perm->ints.n; i++)
    order[i] = (int)perm->ints.v[i];
  if (view->code == OP_SHARED_PERMUTE)
    l = layout_permute(c, l, order);
  if (view->code == OP_SHARED_RESHAPE)
    l = layout_reshape(c, l, v->rank, v->shape);
  return type_shared_view(c, t, v->count, v->rank, v->shape, v->alloc_shape, l);
}

/* A view's layout follows from what it views. */
static void
place_view(Op *op, void *user)
{
  Ctx *c = ((Placing *)user)->c;
  if (op_is_view(op) && !op_result(op)->type->layout)
    op_result(op)->type = buffer_view_type(c, op, op_buffer(op)->type);
}

static void
place_cast(Op *op, void *user)
{
  Ctx *c = ((Placing *)user)->c;
  if (op->code != OP_SHARED_CAST || op_result(op)->type->layout)
    return;
  Placing p = {.c = c, .alloc = op};
  op_result(op)->type = type_with_layout(c, op_result(op)->type, layout_for(&p));
}

void
buffers_place(Ctx *c, Func *f)
{
  Placing p = {.c = c};
  func_walk(f, place_alloc, &p);
  func_walk(f, place_cast, &p);
  func_walk(f, place_view, &p);
}
