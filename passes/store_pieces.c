/* store_pieces.c - boxes that are stored go in pieces: one of them is copied while the next is on its way to shared memory.
 *
 *   tensor_store t, x, i, j   ==>   for each piece k, unrolled: tensor_store t, x[:, k * W:(k + 1) * W], i, j + k * W
 *
 * A piece is as wide as a panel, 128 bytes, so that of what a product of warpgroups leaves in registers each piece is whole registers of
 * all threads. Where two teams multiply by turns (pingpong.h) each has buffers for pieces, beside a ring that wants the memory, and time:
 * there a piece is also no higher than an instruction's rows. The part of x is taken as the language takes it: reshaped, chosen and
 * folded, of which code generation leaves nothing.
 *
 * Boxes that are loaded to be added to the sums, or the like (find_tensors.c), are cut likewise, with all that is computed of them: a
 * thread holds a piece of them beside its sums. Where teams share the work another one may bring these pieces, and store those of the
 * result (company.c). What teams by turns compute of sums is cut, too: these may be most of a thread's registers. */
#include "boxes.h"
#include "pingpong.h"
#include "wgmma.h"

enum { PANEL = 128 };
enum { PART_OPERANDS = MAX_RANK + WINDOW_DIMS + 3 };     /* of an op that is taken in pieces: a box with a window has most */

/* Elements of a piece along dimension d; those of the tile if it is not cut so. */
static u32
piece_extent(const Func *f, const Type *tile, u32 d)
{
  u32 all = tile->shape[d], most = all;
  if (d + 1 == tile->rank)
    most = PANEL / dtype_bytes(tile->dt);
  else if (tile->rank == 2 && pingpong_wanted(f))
    most = WGMMA_ROWS;
  return all % most ? all : most;
}

const Type *
box_store_piece(Ctx *c, const Func *f, const Type *tile)
{
  u32 shape[MAX_RANK];
  for (u32 d = 0; d < tile->rank; d++)
    shape[d] = piece_extent(f, tile, d);
  return type_tile(c, type_elem(c, tile), tile->rank, shape, NULL);
}

u64
box_store_bytes(Ctx *c, const Func *f, const Type *tile)
{
  return type_shared_bytes(box_buffer(c, box_store_piece(c, f, tile)));
}

/* x in bits, with its dimension d as n pieces. */
static Value *
as_pieces(Ctx *c, Builder *b, Value *x, u32 d, u32 n)
{
  static const DType bits[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64};
  const Type *t = x->type;
  u32 shape[MAX_RANK + 1], at = 0;
  for (u32 i = 0; i < t->rank; i++) {
    if (i == d)
      shape[at++] = n;
    shape[at++] = i == d ? t->shape[i] / n : t->shape[i];
  }
  return ir_bitcast(b, ir_reshape(b, x, t->rank + 1, shape), type_scalar(c, bits[dtype_bytes(t->dt)]));
}

/* Piece k of n, which are dimension `axis`. */
static Value *
piece_of(Ctx *c, Builder *b, Value *pieces, int axis, u32 n, u32 k, DType dt)
{
  const Type *t = pieces->type;
  Value *i = ir_arange(b, 0, n), *own = ir_cmp(b, "eq", i, ir_const_int(b, i->type, k));
  for (int d = 0; d < t->rank; d++)
    if (d != axis)
      own = ir_expand_dims(b, own, d);
  Value *none = ir_const_int(b, t, 0), *chosen = ir_select(b, ir_broadcast(b, own, t->shape), pieces, none);
  return ir_bitcast(b, ir_combine(b, ir_reduce(b, 1, &chosen, axis), OP_OR), type_scalar(c, dt));
}

/* ---- boxes that are loaded beside ---- */

bool
box_is_beside(const Value *v, const Op *store)
{
  return op_is(v, OP_TENSOR_LOAD) && v->def->block == store->block && value_use_count(v) == 1 && !op_attr(v->def, AT_LOWER);
}

u32
box_values_beside(const Value *v, const Op *store, BesideFn *is, const Value **first)
{
  const Op *op = v->def;
  if (!type_is_tile(v->type) || !op || is(v, store)) {
    bool found = op && is(v, store);
    *first = found && !*first ? v : *first;
    return found;
  }
  bool passes = op_has(op, T_PURE) && op_has(op, T_ELEM) && !op->nregions && op->block == store->block && value_use_count(v) == 1;
  u32 n = 0;
  for (u32 i = 0; passes && i < op->noperands; i++)
    n += op_operand(op, i) ? box_values_beside(op_operand(op, i), store, is, first) : 0;
  return n;
}

const Value *
box_value_beside(const Value *v, const Op *store, BesideFn *is)
{
  const Value *first = NULL;
  box_values_beside(v, store, is, &first);
  return first;
}

/* Piece k of n of the tile that a store takes. */
typedef struct Piece {
  Ctx *c;
  const Op *store;
  u32 n, k, nvalues;
  bool *own;                 /* by value id: computed element by element, for this store alone */
  Value **part;              /* by value id: its piece, where it was made */
} Piece;

static const Type *
part_type(const Piece *p, const Type *t, u32 d)
{
  u32 shape[MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[d] /= p->n;
  return type_tile(p->c, type_elem(p->c, t), t->rank, shape, NULL);
}

/* What is computed element by element, or broadcast, and used by such or by the store alone; boxes that are loaded so. */
static void
mark_own(Piece *p)
{
  for (const Op *op = p->store->prev; op; op = op->prev) {
    bool passes = (op_has(op, T_ELEM) && !op->nregions) || op->code == OP_BROADCAST || op->code == OP_EXPAND_DIMS;
    if (op->nresults != 1 || !type_is_tile(op_result(op)->type))
      continue;
    bool own = (passes && op_has(op, T_PURE)) || box_is_beside(op_result(op), p->store);
    for (const Use *u = op_result(op)->uses; u && own; u = u->next)
      own = u->user == p->store || (u->user->block == op->block && u->user->nresults == 1 && p->own[op_result(u->user)->id]);
    p->own[op_result(op)->id] = own;
  }
}

static Value *part_of(const Piece *p, Builder *b, Value *v, u32 d);

static Value *
part_of_operand(const Piece *p, Builder *b, const Op *op, u32 i, u32 d)
{
  Value *v = op_operand(op, i);
  if (!v || !type_is_tile(v->type) || op->code == OP_TENSOR_LOAD)
    return v;
  if (op->code == OP_EXPAND_DIMS)
    d -= d > (u32)op_int(op, AT_AXIS, 0);
  return op->code == OP_BROADCAST && v->type->shape[d] == 1 ? v : part_of(p, b, v, d);
}

/* The same op for a piece, along dimension d. */
static Value *
op_for_part(const Piece *p, Builder *b, const Op *op, u32 d)
{
  Value *x[PART_OPERANDS];
  const Type *t = part_type(p, op_result(op)->type, d);
  for (u32 i = 0; i < op->noperands; i++)
    x[i] = part_of_operand(p, b, op, i, d);
  u32 at = op->noperands - t->rank + d;
  if (op->code == OP_TENSOR_LOAD && p->k)
    x[at] = ir_binary(b, OP_ADD, x[at], i32_const(b, (i64)p->k * t->shape[d]));
  Value *part = op_result(op_like(b, op, op->noperands, x, &t));
  part->name = op_result(op)->name;
  return part;
}

/* The piece of v, along its dimension d. What v is computed of element by element is taken in pieces, too, and so are boxes. */
static Value *
part_of(const Piece *p, Builder *b, Value *v, u32 d)
{
  bool old = v->id < p->nvalues;
  u64 bits;
  if (old && p->part[v->id])
    return p->part[v->id];
  Value *part = value_const_bits(v, &bits) ? ir_const_bits(b, part_type(p, v->type, d), bits)
              : old && p->own[v->id] && v->def->noperands <= PART_OPERANDS ? op_for_part(p, b, v->def, d)
              : piece_of(p->c, b, as_pieces(p->c, b, v, d, p->n), (int)d, p->n, p->k, v->type->dt);
  if (old)
    p->part[v->id] = part;
  return part;
}

/* ---- stores ---- */

/* The store becomes several, of pieces along dimension d, which are put into `out`. */
static void
cut_along(Ctx *c, Op *store, u32 d, OpVec *out)
{
  Value *x = OPERAND(store, TENSOR_STORE, x);
  u32 at = store->noperands - x->type->rank + d, extent = piece_extent(store->block->func, x->type, d), n = x->type->shape[d] / extent;
  if (n == 1) {
    vec_push(c->scratch, out, store);
    return;
  }
  Builder b = builder_before(store);
  b.span = store->span;
  bool deep = pingpong_wanted(b.func) || box_value_beside(x, store, box_is_beside);
  Value *pieces = deep ? NULL : as_pieces(c, &b, x, d, n), *from = op_operand(store, at), *v[MAX_RANK + 2];
  Piece p = {.c = c, .store = store, .n = n, .nvalues = b.func->nvalues, .own = NEW_ARRAY(c->scratch, bool, b.func->nvalues)};
  if (deep)
    mark_own(&p);
  for (u32 k = 0; k < n; k++) {
    for (u32 i = 0; i < store->noperands; i++)
      v[i] = op_operand(store, i);
    p.k = k;
    p.part = NEW_ARRAY(c->scratch, Value *, p.nvalues);
    v[SLOT(TENSOR_STORE, x)] = deep ? part_of(&p, &b, x, d) : piece_of(c, &b, pieces, (int)d, n, k, x->type->dt);
    v[at] = k ? ir_binary(&b, OP_ADD, from, i32_const(&b, (i64)k * extent)) : from;
    vec_push(c->scratch, out, op_like(&b, store, store->noperands, v, NULL));
  }
  op_remove(store);
}

void
box_store_in_pieces(Ctx *c, Op *store)
{
  OpVec now = {0}, next;
  const Type *tile = OPERAND(store, TENSOR_STORE, x)->type;
  op_set_int(store, AT_KEPT, 1);
  if (tile->rank == MAX_RANK)
    return;
  vec_push(c->scratch, &now, store);
  for (u32 d = tile->rank; d-- > 0; now = next) {      /* what rows share is done for both, and is gone */
    next = (OpVec){0};
    for (u32 i = 0; i < now.len; i++)
      cut_along(c, now.data[i], d, &next);
  }
}
