/* older_forms.c - copies of boxes and products of warpgroups that are written by hand, in the forms of targets that lack them.
 * Needs phase tile; keeps it. Runs in front of plain_tensors, which makes accesses of the boxes that this leaves. Other targets: nothing.
 *
 * Copies of boxes, where the target has none. Otherwise one thread starts a copy, and an mbarrier counts its bytes; here all threads of the
 * team copy, and arrive when that has landed:
 *
 *   mbarrier_arrive m bytes = n           if the box's rows are inside { async_copy b, addresses, mask }
 *   tma_load b, t, m, i, j         ==>    else { shared_store b, tensor_load t, i, j }
 *                                         mbarrier_arrive m copies = 1
 *
 *   tma_store t, b, i, j           ==>    tensor_store t, shared_load b, i, j          (done when it is over: no groups, no waits)
 *
 * The arrival moves behind the copies whose bytes it announces, which therefore stand in its block, behind it. That is later than it
 * was, but the phase could not end before. Rows begin at a multiple of 4 bytes, as cp.async needs it: the tensor's address and strides are
 * multiples of 16 as for boxes, which parameters say from here on (`divisible`, `pitch`), and launches check; the coordinate has to be
 * known as such a multiple. Where it is not, and where a row of the box sticks out of the tensor, elements go through registers.
 *
 * Products of warpgroups, where the target has none. An accumulator under way is its value, a product a dot of what its buffers hold,
 * which is done at once; a wait for it is nothing. */
#include "boxes.h"

/* Bytes of a cp.async, and the rule for rows of tensors that boxes are copied of. DEPTH: of what an index of mbarriers is computed from. */
enum { LEAST_COPY = 4, ROW_STEP = 16, DEPTH = 8 };

typedef struct Older { Ctx *c; Func *f; AxisInfo *facts; } Older;

/* ---- who announces a copy ---- */

static bool
same_attrs(const Op *x, const Op *y)
{
  bool same = x->nattrs == y->nattrs;
  for (u32 i = 0; same && i < x->nattrs; i++)
    same = x->attrs[i].id == y->attrs[i].id && attr_info[x->attrs[i].id].kind == AK_INT && x->attrs[i].i == y->attrs[i].i;
  return same;
}

/* Are x and y one value, or computed alike from such? Equal ops are not merged yet. */
static bool
is_same(const Value *x, const Value *y, u32 depth)
{
  const Op *a = x->def, *b = y->def;
  if (x == y)
    return true;
  bool alike = a && b && depth && a->code == b->code && op_has(a, T_PURE) && !a->nregions && a->noperands == b->noperands;
  alike = alike && same_attrs(a, b);
  for (u32 i = 0; alike && i < a->noperands; i++) {
    const Value *p = op_operand(a, i), *q = op_operand(b, i);
    alike = p && q ? is_same(p, q, depth - 1) : p == q;
  }
  return alike && x->type == y->type;
}

static bool
is_load_for(const Op *op, const Value *m)
{
  return op->code == OP_TMA_LOAD && is_same(OPERAND(op, TMA_LOAD, m), m, DEPTH);
}

/* The last of the loads that bring what an arrival announces; NULL: they are not all behind it in its block. */
static Op *
last_announced(Op *arrive)
{
  i64 left = op_int(arrive, AT_BYTES, 0);
  Op *last = NULL;
  for (Op *op = arrive->next; op && left > 0; op = op->next)
    if (is_load_for(op, OPERAND(arrive, MBARRIER_ARRIVE, b))) {
      left -= box_tile_bytes(OPERAND(op, TMA_LOAD, b)->type);
      last = op;
    }
  return left ? NULL : last;
}

/* The announcement that counts a load's bytes, in front of it in its block. */
static bool
is_announced(const Op *load)
{
  for (Op *op = load->prev; op; op = op->prev)
    if (op->code == OP_MBARRIER_ARRIVE && op_int(op, AT_BYTES, 0) && is_load_for(load, OPERAND(op, MBARRIER_ARRIVE, b)))
      return last_announced(op) != NULL;
  return false;
}

/* Behind the loads, and for what the team has copied. */
static void
move_arrival(Op *arrive, Op *last)
{
  Builder b = builder_after(last);
  b.span = arrive->span;
  Value *m = OPERAND(arrive, MBARRIER_ARRIVE, b);
  op_set_int(op_create(&b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0), AT_COPIES, 1);
  op_remove(arrive);
}

/* ---- copies ---- */

static const Type *
tile_of(Ctx *c, const Type *buffer)
{
  return type_tile(c, type_scalar(c, buffer->dt), buffer->rank, buffer->shape, NULL);
}

/* Can cp.async copy rows of the box? */
static bool
copies_rows(const Older *o, const Op *load)
{
  const Type *t = OPERAND(load, TMA_LOAD, b)->type;
  const Value *tensor = op_tensor(load);
  const Value *at = op_operand(load, SLOT(TMA_LOAD, at) + tensor->type->rank - 1);
  u32 step = LEAST_COPY / dtype_bytes(t->dt);
  if (tensor->def || !target_has(o->c->target, F_CP_ASYNC))
    return false;
  return step <= 1 || (t->shape[t->rank - 1] % step == 0 && o->facts[at->id].divisibility[0] % step == 0);
}

/* Through registers a box goes in pieces along its first dimension, of MOST elements a thread at most, as a team of copies is small. Pixels
 * through a window do not come one behind the other: they stay together. */
typedef struct Pieces { u32 n, dim, extent; } Pieces;

static Pieces
pieces_of(const Op *copy, const Type *t)
{
  enum { MOST = 32, LANES = 32 };
  Pieces p = {1, 0, 0};
  u32 threads = block_team(copy->block).warps * LANES;
  while (p.dim + 1 < (u32)t->rank && t->shape[p.dim] == 1)
    p.dim++;
  bool whole = !tma_window(copy).n && !memcmp(t->shape, t->alloc_shape, sizeof t->shape) && is_pow2(t->shape[p.dim]) &&
               p.dim + 1 < (u32)t->rank;
  p.extent = t->shape[p.dim];
  while (whole && p.extent > 1 && type_numel(t) / p.n > MOST * threads) {
    p.n *= 2;
    p.extent /= 2;
  }
  return p;
}

/* Piece k of the buffer. */
static Value *
piece_of(Builder *b, Value *buffer, const Pieces *p, u32 k)
{
  i64 start[MAX_RANK] = {0};
  u32 shape[MAX_RANK];
  memcpy(shape, buffer->type->shape, sizeof shape);
  start[p->dim] = (i64)k * p->extent;
  shape[p->dim] = p->extent;
  return p->n == 1 ? buffer : ir_shared_slice(b, buffer, start, shape);
}

/* The tensor, x if there is one, and the coordinates of piece k of a copy whose coordinates begin with operand `first`. */
static u32
box_operands(Builder *b, const Op *copy, u32 first, const Pieces *p, u32 k, Value *x, Value **out)
{
  const Value *tensor = op_tensor(copy);
  u32 n = 0, moved = (u32)(tensor->type->rank - op_buffer(copy)->type->rank) + p->dim;
  out[n++] = op_tensor(copy);
  if (x)
    out[n++] = x;
  for (u32 i = first; i < copy->noperands; i++) {
    Value *at = op_operand(copy, i);
    out[n++] = i - first == moved && k ? ir_binary(b, OP_ADD, at, i32_const(b, (i64)k * p->extent)) : at;
  }
  return n;
}

static void
copy_words(Op *to, const Op *from)
{
  op_copy_attr(to, from, AT_EVICT);
  op_copy_attr(to, from, AT_RMW);
  tma_copy_window(to, from);
}

static void
load_and_store(const Older *o, Builder *b, const Op *load)
{
  Value *buffer = OPERAND(load, TMA_LOAD, b), *xs[MAX_RANK + WINDOW_DIMS + 1];
  Pieces p = pieces_of(load, buffer->type);
  for (u32 k = 0; k < p.n; k++) {
    Value *part = piece_of(b, buffer, &p, k);
    const Type *tile = tile_of(o->c, part->type);
    u32 n = box_operands(b, load, SLOT(TMA_LOAD, at), &p, k, NULL, xs);
    Op *box = op_create(b, OP_TENSOR_LOAD, n, xs, 1, &tile, 0);
    copy_words(box, load);
    ir_shared_store(b, part, op_result(box));
  }
}

static void
copy_or_load(const Older *o, Builder *b, Op *load)
{
  BoxElements e = box_elements(b, load, SLOT(TMA_LOAD, at), tile_of(o->c, OPERAND(load, TMA_LOAD, b)->type), true);
  Op *branch = ir_if(b, e.rows_inside, 0, NULL);
  Builder in = builder_at_end(o->f, branch->regions[0]), out = builder_at_end(o->f, branch->regions[1]);
  in.span = out.span = load->span;
  ir_async_copy(&in, OPERAND(load, TMA_LOAD, b), e.at, e.inside);
  ir_yield(&in, 0, NULL);
  load_and_store(o, &out, load);
  ir_yield(&out, 0, NULL);
}

/* What launches check of a tensor that boxes are copied of. */
static void
promise_rows(Func *f, const Value *tensor)
{
  ParamInfo *p = &f->params[tensor->index];
  p->divisible = p->divisible % ROW_STEP ? ROW_STEP : p->divisible;
  p->pitch = max_u32(ROW_STEP / dtype_bytes(tensor->type->dt), 1);
}

/* Where the program says nothing of the layout, it is what copies of boxes would want, which suits rows of 16 bytes at a time. */
static void
keep_panels(const Value *buffer)
{
  Op *alloc = (Op *)buffer_alloc(buffer);
  if (!op_result(alloc)->type->layout)
    op_set_int(alloc, AT_BOXES, 1);
}

static void
older_load(const Older *o, Op *load)
{
  Builder b = builder_before(load);
  b.span = load->span;
  keep_panels(OPERAND(load, TMA_LOAD, b));
  if (copies_rows(o, load)) {
    promise_rows(o->f, op_tensor(load));
    copy_or_load(o, &b, load);
  } else
    load_and_store(o, &b, load);
  op_remove(load);
}

static void
older_store(const Older *o, Op *store)
{
  Value *buffer = OPERAND(store, TMA_STORE, b), *xs[MAX_RANK + 2];
  Pieces p = pieces_of(store, buffer->type);
  Builder b = builder_before(store);
  b.span = store->span;
  keep_panels(buffer);
  for (u32 k = 0; k < p.n; k++) {
    Value *part = piece_of(&b, buffer, &p, k), *x = ir_shared_load(&b, part, tile_of(o->c, part->type));
    copy_words(op_create(&b, OP_TENSOR_STORE, box_operands(&b, store, SLOT(TMA_STORE, at), &p, k, x, xs), xs, 0, NULL, 0), store);
  }
  op_remove(store);
}

static void
drop_all(const Older *o, OpCode code)
{
  OpVec ops = func_ops(o->c, o->f, code);
  for (u32 i = 0; i < ops.len; i++)
    op_remove(ops.data[i]);
}

/* One whose bytes are announced elsewhere leaves all as they are, and code generation says that the target has none. */
static void
older_loads(const Older *o)
{
  OpVec loads = func_ops(o->c, o->f, OP_TMA_LOAD), arrivals = func_ops(o->c, o->f, OP_MBARRIER_ARRIVE);
  for (u32 i = 0; i < loads.len; i++)
    if (!is_announced(loads.data[i]))
      return;
  for (u32 i = 0; i < arrivals.len; i++) {
    Op *last = op_int(arrivals.data[i], AT_BYTES, 0) ? last_announced(arrivals.data[i]) : NULL;
    if (last)
      move_arrival(arrivals.data[i], last);
  }
  for (u32 i = 0; i < loads.len; i++)
    older_load(o, loads.data[i]);
}

static void
older_copies(const Older *o)
{
  OpVec stores = func_ops(o->c, o->f, OP_TMA_STORE);
  older_loads(o);
  for (u32 i = 0; i < stores.len; i++)
    older_store(o, stores.data[i]);
  drop_all(o, OP_TMA_COMMIT);
  drop_all(o, OP_TMA_WAIT);
  drop_all(o, OP_TMA_PREFETCH);
}

/* ---- products ---- */

static void
make_value(Ctx *c, Value *v)
{
  v->type = v->type->pending ? type_pending(c, v->type, false) : v->type;
}

static void
make_values(Op *op, void *user)
{
  Ctx *c = user;
  for (u32 i = 0; i < op->nresults; i++)
    make_value(c, op->results[i]);
  for (u32 r = 0; r < op->nregions; r++)
    for (u32 i = 0; i < op->regions[r]->nargs; i++)
      make_value(c, op->regions[r]->args[i]);
}

/* x itself, or what buffer x holds. */
static Value *
factor(const Older *o, Builder *b, Value *x)
{
  return type_is_shared(x->type) ? ir_shared_load(b, x, tile_of(o->c, x->type)) : x;
}

static void
older_product(const Older *o, Op *op)
{
  Builder b = builder_before(op);
  b.span = op->span;
  Value *x = factor(o, &b, OPERAND(op, WGMMA, a)), *y = factor(o, &b, OPERAND(op, WGMMA, b));
  Value *meta = OPERAND(op, WGMMA, meta), *acc = OPERAND(op, WGMMA, acc);
  Value *r = meta ? ir_dot_sparse(&b, x, meta, y, acc) : ir_dot(&b, x, y, acc);
  if (x->type->dt == DT_F32)
    op_set_str(r->def, AT_PREC, "tf32_cut");
  r->name = op_result(op)->name;
  value_replace_uses(op_result(op), r);
  op_remove(op);
}

/* The results are the operands. */
static void
pass_through(Op *op)
{
  for (u32 i = 0; i < op->nresults; i++)
    value_replace_uses(op->results[i], op_operand(op, i));
  op_remove(op);
}

static void
older_products(const Older *o)
{
  OpVec begun = func_ops(o->c, o->f, OP_PENDING), products = func_ops(o->c, o->f, OP_WGMMA), waits = func_ops(o->c, o->f, OP_WGMMA_WAIT);
  func_walk(o->f, make_values, o->c);
  for (u32 i = 0; i < products.len; i++)
    older_product(o, products.data[i]);
  for (u32 i = 0; i < begun.len; i++)
    pass_through(begun.data[i]);
  for (u32 i = 0; i < waits.len; i++)
    pass_through(waits.data[i]);
}

void
pass_older_forms(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Older o = {c, m->funcs.data[i], NULL};
    if (func_cluster(o.f) > 1)
      continue;                                            /* which has no older form */
    if (!target_has(c->target, F_WGMMA))
      older_products(&o);
    o.facts = analyse_axes(o.f);
    if (!target_has(c->target, F_TMA))
      older_copies(&o);
  }
}
