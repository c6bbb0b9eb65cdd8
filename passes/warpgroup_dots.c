/* warpgroup_dots.c - dots of a pipelined loop become products of warpgroups, which read their operands where copies put them.
 * Part of pipeline_loops, which runs it behind its own work.
 *
 * A dot that choose_mma has marked takes b, and a if it can, from the loop's buffers, in panels; what comes from outside the loop is stored
 * to a buffer in front of it. Other factors a stay in registers. A b that the iteration computes is stored to a buffer in front of the dot.
 * Marks whose b is in no buffer are dropped: such a dot is what it was.
 *
 *   x = shared_load s[get]; y = shared_load t[get]            acc' = wgmma s[get], t[get], acc
 *   acc' = dot x, y, acc                               ==>    wgmma_wait pending = 1
 *
 * Waits. Where the loop does nothing with sums but add to them, they are carried under way, and products of an iteration run while the
 * next one begins: an iteration waits, behind its own products, for those before it, and so the buffers that it read are free one
 * iteration later than otherwise: the ring has one more (pipeline_loops). In other loops the wait stands where the sum is first used, at
 * the latest at the end of the iteration: a product that runs on into the next while other code of the loop reads its registers makes
 * ptxas wait behind each instruction.
 *
 * Sparse dots keep their metadata in registers, as other dots do a factor that is computed, or whose buffer is none for products (of 8 bits
 * that lie across K): their products are waited for in the iteration, as the next one writes these registers.
 *
 * Promoted sums. Products of 8-bit floats are summed from zero, so many of K at a time, and added in f32. Where a thread has no registers
 * for as many sums again as it has, columns or rows are done piece by piece, each waited for and added before the next is started: with
 * 128 sums in pieces of 64. ptxas moves what additions it can behind the start of the next piece. While it adds, a warpgroup has nothing
 * for tensor cores to do. So that the other one has, they begin their products in turns where nothing else makes them meet, beside a team
 * that copies. */
#include "buffers.h"
#include "pipeline.h"
#include "wgmma.h"

static bool
is_marked(const Op *op)
{
  return op_is_dot(op) && op_int(op, AT_WARPGROUP, 0) == DOT_COPIED;
}

Op *
warpgroup_reader(const Op *loop, const Op *load)
{
  const Value *v = op_result(load);
  for (Op *op = loop->regions[0]->first; op; op = op->next)
    if (is_marked(op) && (wgmma_dot_source(dot_a(op), NULL) == v || wgmma_dot_source(dot_b(op), NULL) == v))
      return op;
  return NULL;
}

bool
warpgroup_reads(const Op *loop, const Op *load)
{
  return warpgroup_reader(loop, load) != NULL;
}

/* Nothing but factors of marked dots comes of v. */
static bool
serves_products(const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next) {
    bool passes = u->user->code == OP_PERMUTE || u->user->code == OP_CONVERT_LAYOUT;
    if (passes ? !serves_products(op_result(u->user)) : !is_marked(u->user) || dot_acc(u->user) == v || dot_meta(u->user) == v)
      return false;
  }
  return true;
}

bool
warpgroup_alone_reads(const Op *load)
{
  return serves_products(op_result(load));
}

bool
warpgroup_reads_in_place(Ctx *c, const Op *loop, const Op *load, const Type *buffer)
{
  WgmmaSide side;
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    for (int k = 1; k >= 0 && is_marked(op); k--) {
      int along = k;
      if (wgmma_dot_source(k ? dot_a(op) : dot_b(op), &along) == op_result(load) && wgmma_side(c, buffer, along, &side))
        return false;
    }
  return true;
}

u64
warpgroup_kept_bytes(Ctx *c, u32 n, Op *const *loops)
{
  VEC(const Value *) kept = {0};
  u64 bytes = 0;
  for (u32 i = 0; i < n; i++)
    for (const Op *op = loops[i]->regions[0]->first; op; op = op->next)
      for (u32 k = 0; is_marked(op) && k < 2; k++) {
        const Value *v = wgmma_dot_source(k ? dot_b(op) : dot_a(op), NULL);
        bool known = value_within(v, loops[i]);
        for (u32 j = 0; j < kept.len && !known; j++)
          known = kept.data[j] == v;
        if (known)
          continue;
        vec_push(c->scratch, &kept, v);
        bytes += (u64)type_numel(v->type) * type_elem_bytes(v->type);
      }
  return bytes;
}

const Layout *
warpgroup_layout(Ctx *c, const Type *t)
{
  return layout_panels_default(c, t->rank, t->shape, type_elem_bytes(t), buffer_fastest(t, t->layout));
}

const Type *
warpgroup_buffer(Ctx *c, const Type *source, int k)
{
  u32 bytes = type_elem_bytes(source);
  const Layout *l = bytes == 2 ? warpgroup_layout(c, source) : layout_panels_default(c, source->rank, source->shape, bytes, k);
  const Type *buffer = l ? type_shared(c, source->dt, 0, source->rank, source->shape, NULL, l, 0, 0) : NULL;
  WgmmaSide side;
  return buffer && !wgmma_side(c, buffer, k, &side) ? buffer : NULL;
}

Value *
warpgroup_view(Builder *b, const Value *factor, Value *buffer)
{
  int perm[MAX_RANK];
  if (op_is(factor, OP_CONVERT_LAYOUT))
    return warpgroup_view(b, op_operand(factor->def, 0), buffer);
  if (!op_is(factor, OP_PERMUTE))
    return buffer;
  for (u32 i = 0; i < factor->type->rank; i++)
    perm[i] = (int)op_attr(factor->def, AT_PERM)->ints.v[i];
  return ir_shared_permute(b, warpgroup_view(b, op_operand(factor->def, 0), buffer), perm);
}

/* ---- which sums stay under way ---- */

/* The marked dot that adds to v, by tensor cores alone, and nothing else uses v, or NULL. */
static Op *
only_adds_to(const Value *v)
{
  const Use *u = v->uses;
  bool adds = u && !u->next && is_marked(u->user) && dot_acc(u->user) == v;
  return adds && !wgmma_promotes(u->user) ? u->user : NULL;
}

/* From carried value k of the loop a row of marked dots leads to the same of the next iteration. */
static bool
carried_under_way(const Op *loop, u32 k)
{
  const Value *v = loop_arg(loop, 0, k), *end = region_yields(loop, 0, k);
  for (const Op *dot; v != end; v = op_result(dot)) {
    dot = only_adds_to(v);
    if (!dot || dot->block != loop->regions[0])
      return false;
  }
  return value_use_count(end) == 1;
}

/* The dot's sum goes to a carried value, and stays under way on the way there. */
static bool
stays_under_way(const Op *loop, const Op *dot)
{
  for (u32 k = 0; k < loop->nresults; k++) {
    const Value *v = loop_arg(loop, 0, k);
    for (const Op *d = NULL; v && (d = only_adds_to(v)); v = op_result(d))
      if (d == dot)
        return carried_under_way(loop, k);
  }
  return false;
}

/* Loaded as it is, or from outside: a buffer holds it. */
static bool
not_computed(const Op *loop, Value *v)
{
  const Op *def = wgmma_dot_source(v, NULL)->def;
  return def && (def->code == OP_LOAD || def->code == OP_TENSOR_LOAD || !op_inside(def, loop));
}

bool
warpgroup_defers(const Op *loop)
{
  u32 n = 0;
  for (const Op *op = loop->regions[0]->first; op; op = op->next) {
    if (!op_is_dot(op))
      continue;
    if (!is_marked(op) || dot_meta(op) || !stays_under_way(loop, op) || !not_computed(loop, dot_a(op)))
      return false;
    n++;
  }
  return n > 0;
}

/* ---- operands ---- */

typedef struct Products {
  Ctx *c;
  Op *loop;
  u32 nrings;
  Ring *const *rings;              /* that the loop reads */
  VEC(Value *) kept;               /* buffers of what comes from outside */
  OpVec waits;
} Products;

static bool
is_row(const Products *p, const Value *v)
{
  for (u32 i = 0; i < p->nrings; i++)
    for (u32 k = 0; k < p->rings[i]->n; k++)
      if (p->rings[i]->row[k].buffers == v)
        return true;
  return false;
}

/* v, which does not change in the loop, in a buffer; its dimension k is K. */
static Value *
keep(Products *p, Value *v, int k)
{
  const Type *t = warpgroup_buffer(p->c, v->type, k);
  if (!t)
    return NULL;
  Builder b = builder_before(p->loop);
  Value *buffer = ir_shared_alloc(&b, t);
  buffer->name = v->name;
  ir_shared_store(&b, buffer, v);
  vec_push(p->c->scratch, &p->kept, buffer);
  return buffer;
}

/* v, which the iteration computes, in a buffer that it is stored to at b. */
static Value *
put(Products *p, Builder *b, Value *v, int k)
{
  const Type *t = warpgroup_buffer(p->c, v->type, k);
  if (!t)
    return NULL;
  Builder front = builder_before(p->loop);
  Value *buffer = ir_shared_alloc(&front, t);
  buffer->name = v->name;
  ir_shared_store(b, buffer, v);
  vec_push(p->c->scratch, &p->kept, buffer);
  return buffer;
}

/* The buffer, at b, in which v, the source of factor a or (right) b, is read, whose dimension k is K; NULL: none. */
static Value *
buffer_of(Products *p, Builder *b, Value *v, int k, bool right)
{
  if (!v->def || !op_inside(v->def, p->loop))
    return v->def ? keep(p, v, k) : NULL;
  if (!op_is(v, OP_SHARED_LOAD))
    return right ? put(p, b, v, k) : NULL;
  const Value *x = OPERAND(v->def, SHARED_LOAD, b);
  if (!op_is(x, OP_SHARED_INDEX) || !is_row(p, OPERAND(x->def, SHARED_INDEX, b)))
    return NULL;
  return ir_shared_index(b, OPERAND(x->def, SHARED_INDEX, b), OPERAND(x->def, SHARED_INDEX, i));
}

static Value *
operand_in_shared(Products *p, Builder *b, const Op *dot, bool right)
{
  WgmmaSide side;
  Value *v = right ? dot_b(dot) : dot_a(dot);
  int k = right ? 0 : 1, along = k;
  Value *source = wgmma_dot_source(v, &along), *buffer = buffer_of(p, b, source, along, right);
  Value *view = buffer ? warpgroup_view(b, v, buffer) : NULL;
  return view && !wgmma_side(p->c, view->type, k, &side) ? view : NULL;
}

/* meta: of a sparse product, else NULL. */
static Value *
product(Builder *b, Value *left, Value *meta, Value *right, Value *acc, OpVec *waits)
{
  Value *sum = ir_wgmma(b, left, meta, right, ir_pending(b, acc));
  Op *wait = ir_wgmma_wait(b, 1, &sum, 0);
  vec_push(b->func->module->ctx->scratch, waits, wait);
  return wait->results[0];
}

/* How much of K, from k on, is summed at once: at most `most`; parts of a buffer are powers of two, and begin at multiples of that. */
static u32
next_part(u32 k, u32 depth, u32 most)
{
  u32 n = next_pow2(depth);
  if (depth <= most)
    return depth;
  while (n > most || k % n || n > depth - k)
    n /= 2;
  return n;
}

/* n elements along a dimension, from k on. */
static Value *
part_of(Builder *b, Value *v, int along, u32 k, u32 n)
{
  u32 shape[2] = {v->type->shape[0], v->type->shape[1]};
  i64 start[2] = {0, 0};
  if (n == shape[along])
    return v;
  shape[along] = n;
  start[along] = k;
  return ir_shared_slice(b, v, start, shape);
}

/* A sum as pieces, its dimension `axis` split in two. */
static Value *
as_pieces(Builder *b, Value *sum, int axis, u32 n)
{
  u32 shape[3], d = 0;
  for (int i = 0; i < 2; i++) {
    if (i == axis)
      shape[d++] = sum->type->shape[i] / n;
    shape[d++] = i == axis ? n : sum->type->shape[i];
  }
  return ir_reshape(b, sum, 3, shape);
}

/* The same in every piece, as a tile like the pieces. */
static Value *
in_all(Builder *b, Value *v, const Type *pieces)
{
  Value *all = ir_broadcast(b, v, pieces->shape);
  all->type = type_with_layout(b->func->module->ctx, all->type, pieces->layout);
  return all;
}

/* Which element is of piece k. */
static Value *
is_piece(Builder *b, const Type *pieces, int axis, u32 k)
{
  Ctx *c = b->func->module->ctx;
  const Layout *l = layout_slice(c, layout_slice(c, pieces->layout, 2), 1 - axis);
  Value *i = ir_arange(b, 0, pieces->shape[axis]);
  i->type = type_with_layout(c, i->type, l);
  Value *own = ir_cmp(b, "eq", i, ir_const_int(b, i->type, k));
  return in_all(b, ir_expand_dims(b, ir_expand_dims(b, own, 1 - axis), 2), pieces);
}

/* The pieces with one added to piece k. Code generation leaves nothing of it but the additions. */
static Value *
add_piece(Builder *b, Value *pieces, int axis, u32 k, Value *piece)
{
  Value *sum = ir_binary(b, OP_ADD, pieces, in_all(b, ir_expand_dims(b, piece, axis), pieces->type));
  return ir_select(b, is_piece(b, pieces->type, axis, k), sum, pieces);
}

typedef struct Sum {
  Value *left, *meta, *right;   /* factors, parts of them along K */
  Value *acc;
  u32 piece;                 /* elements along axis that are summed at a time */
  int axis;
  OpVec *waits;
} Sum;

/* Products of K's elements in a sum of their own, added in f32. */
static Value *
sum_by_pieces(Builder *b, const Sum *x)
{
  u32 all = x->acc->type->shape[x->axis], shape[2] = {x->acc->type->shape[0], x->acc->type->shape[1]};
  Ctx *c = b->func->module->ctx;
  Value *pieces = as_pieces(b, x->acc, x->axis, x->piece);
  shape[x->axis] = x->piece;
  const Type *t = type_tile(c, type_elem(c, x->acc->type), 2, shape, NULL);
  Value *zero = ir_const_bits(b, type_with_layout(c, t, wgmma_sum_layout(c, block_team(b->block), t)), 0);
  for (u32 k = 0; k < all; k += x->piece) {
    Value *left = x->axis ? x->left : part_of(b, x->left, 0, k, x->piece);
    Value *right = x->axis ? part_of(b, x->right, 1, k, x->piece) : x->right;
    pieces = add_piece(b, pieces, x->axis, k / x->piece, product(b, left, x->meta, right, zero, x->waits));
  }
  return ir_reshape(b, pieces, 2, x->acc->type->shape);
}

Value *
warpgroup_sum(Builder *b, const Op *dot, Value *left, Value *right, OpVec *waits)
{
  Value *acc = dot_acc(dot), *meta = dot_meta(dot);
  u32 most = wgmma_promotes(dot);
  u64 bits;
  u32 depth = right->type->shape[0];
  if (meta && most)
    most = depth;            /* as wgmma_dot_error says */
  bool empty = value_const_bits(acc, &bits) && !bits;
  if (!most || (empty && depth <= most))
    return product(b, left, meta, right, acc, waits);
  Sum x = {.waits = waits, .meta = meta};
  x.piece = wgmma_piece(dot, type_is_shared(left->type) && !meta, &x.axis);
  bool whole = x.piece == acc->type->shape[x.axis];
  Value *zero = empty ? acc : ir_const_bits(b, acc->type, 0), *sum = empty && whole ? NULL : acc;
  for (u32 k = 0, n; k < depth; k += n) {
    n = next_part(k, depth, most);
    x.right = part_of(b, right, 0, k, n);
    x.left = meta ? left : part_of(b, left, 1, k, n);
    x.acc = sum;
    Value *part = whole ? product(b, x.left, meta, x.right, zero, waits) : sum_by_pieces(b, &x);
    sum = sum && whole ? ir_binary(b, OP_ADD, sum, part) : part;
  }
  return sum;
}

/* What brought a factor to a dot that is no more, as far as nothing else wants it: one use of its source less. */
static void
drop_way(Value *v)
{
  while ((op_is(v, OP_PERMUTE) || op_is(v, OP_CONVERT_LAYOUT)) && !v->uses) {
    Op *op = v->def;
    v = op_operand(op, 0);
    op_remove(op);
  }
}

static void
make_product(Products *p, Op *dot)
{
  Builder b = builder_before(dot);
  b.span = dot->span;
  u32 most = wgmma_promotes(dot);
  Value *right = operand_in_shared(p, &b, dot, true);
  if (!right)
    return;
  Value *left = operand_in_shared(p, &b, dot, false);
  if (!left && most && !dot_meta(dot) && right->type->shape[0] > most)
    return;
  Value *sum = warpgroup_sum(&b, dot, left ? left : dot_a(dot), right, &p->waits);
  sum->name = op_result(dot)->name;
  value_replace_uses(op_result(dot), sum);
  Value *factors[] = {dot_a(dot), dot_b(dot)};
  op_remove(dot);
  drop_way(factors[0]);
  if (factors[1] != factors[0])
    drop_way(factors[1]);
}

/* ---- waits ---- */

/* A sum that is waited for only to be added to again is not waited for. */
static bool
join_products(Op *wait)
{
  Value *v = wait->results[0], *under_way = op_operand(wait, 0);
  const Use *u = v->uses;
  if (!u || u->next || u->user->code != OP_PENDING || u->user->block != wait->block)
    return false;
  Op *pending = u->user;
  value_replace_uses(op_result(pending), under_way);
  op_remove(pending);
  op_remove(wait);
  return true;
}

/* Carried value k stays under way: what waits for it stands behind the loop, at b. */
static void
carry_under_way(Products *p, u32 k, Builder *behind)
{
  Op *loop = p->loop, *end = block_terminator(loop->regions[0]);
  Value *arg = loop_arg(loop, 0, k), *r = loop->results[k], *last = region_yields(loop, 0, k);
  Op *wait = last->def, *first = arg->uses->user;
  Builder b = builder_before(loop);
  b.span = loop->span;
  op_set_operand(loop, loop_first_init(loop) + k, ir_pending(&b, loop_init(loop, k)));
  arg->type = r->type = type_pending(p->c, r->type, true);
  value_replace_uses(op_result(first), arg);
  op_remove(first);
  op_set_operand(end, yield_first(end) + k, op_operand(wait, 0));
  op_remove(wait);
  Op *after = ir_wgmma_wait(behind, 1, &r, 0);
  after->results[0]->name = r->name;
  value_replace_uses(r, after->results[0]);
  op_set_operand(after, 0, r);
}

static u32
count_products(const Op *first, const Op *end)
{
  u32 n = 0;
  for (const Op *op = first; op != end; op = op->next)
    n += op->code == OP_WGMMA;
  return n;
}

void
warpgroup_count_waits(Ctx *c, Block *b)
{
  OpVec started = {0};
  u32 under_way = 0;
  for (Op *op = b->first; op; op = op->next) {
    if (op->code == OP_WGMMA) {
      vec_push(c->scratch, &started, op);
      under_way++;
    }
    for (u32 i = 0; op->code == OP_WGMMA_WAIT && op->noperands && i < started.len; i++)
      if (op_result(started.data[i]) == op_operand(op, 0)) {
        under_way = min_u32(under_way, started.len - 1 - i);
        op_set_int(op, AT_PENDING, under_way);
      }
  }
}

/* Move a wait to where its sum is first used. */
static void
sink(Op *wait)
{
  Op *to = wait->next;
  for (; !op_has(to, T_TERM) && !to->nregions; to = to->next) {
    bool uses = false;
    for (const Use *u = wait->results[0]->uses; u && !uses; u = u->next)
      uses = u->user == to;
    if (uses)
      break;
  }
  op_move_before(wait, to);
}

static void
defer_waits(Products *p)
{
  Block *body = p->loop->regions[0];
  Builder behind = builder_after(p->loop);
  behind.span = p->loop->span;
  u32 n = count_products(body->first, NULL);
  Op *last = NULL;
  for (u32 k = 0; k < p->loop->nresults; k++)
    if (op_is(region_yields(p->loop, 0, k), OP_WGMMA_WAIT))
      carry_under_way(p, k, &behind);
  for (Op *op = body->first; op; op = op->next)
    last = op->code == OP_WGMMA ? op : last;
  Builder b = builder_after(last);
  b.span = last->span;
  ir_wgmma_wait(&b, 0, NULL, n);
}

static void
free_kept(Products *p)
{
  Op *at = p->loop;
  while (at->next && at->next->code == OP_WGMMA_WAIT)
    at = at->next;
  Builder b = builder_after(at);
  b.span = p->loop->span;
  for (u32 i = 0; i < p->kept.len; i++)
    op_create(&b, OP_SHARED_FREE, 1, &p->kept.data[i], 0, NULL, 0);
}

void
warpgroup_products(Ctx *c, Op *loop, bool defer, u32 nrings, Ring *const *rings)
{
  Products p = {.c = c, .loop = loop, .nrings = nrings, .rings = rings};
  for (Op *op = loop->regions[0]->first, *next; op; op = next) {
    next = op->next;
    if (is_marked(op))
      make_product(&p, op);
  }
  u32 n = 0;
  for (u32 i = 0; i < p.waits.len; i++)
    if (!join_products(p.waits.data[i]))
      p.waits.data[n++] = p.waits.data[i];
  p.waits.len = n;
  if (defer)
    defer_waits(&p);
  for (u32 i = n; !defer && i-- > 0;)
    sink(p.waits.data[i]);
  if (!defer)
    warpgroup_count_waits(c, loop->regions[0]);
  free_kept(&p);
}

/* ---- turns ---- */

/* Nothing but the product is under way until its wait. */
static bool
is_alone(const Op *product)
{
  const Op *to = product->next;
  while (to->code != OP_WGMMA && to->code != OP_WGMMA_WAIT && !op_has(to, T_TERM))
    to = to->next;
  return to->code == OP_WGMMA_WAIT && to->noperands == 1 && op_operand(to, 0) == op_result(product);
}

void
warpgroup_turns(const Op *loop)
{
  for (Op *op = loop->regions[0]->first; op; op = op->next) {
    DType d = op->code == OP_WGMMA ? OPERAND(op, WGMMA, b)->type->dt : DT_F32;
    if (dtype_is_float(d) && dtype_bits(d) == 8 && is_alone(op))
      op_set_int(op, AT_TURNS, 1);
  }
}

/* ---- operands of several loops ---- */

/* The one op of this kind, in the block, that uses the buffer. */
static Op *
only_user(const Value *buffer, OpCode code)
{
  Op *found = NULL;
  for (const Use *u = buffer->uses; u; u = u->next)
    if (u->user->code == code) {
      if (found || u->user->block != buffer->def->block)
        return NULL;
      found = u->user;
    }
  return found;
}

/* Nothing but `store` writes the buffer, or a view of it. */
static bool
is_kept(const Value *v, const Op *store)
{
  for (const Use *u = v->uses; u; u = u->next) {
    u32 fx = op_effect(u->user, (u32)(u - u->user->operands));
    if (u->user != store && (fx & FX_WRITE || (op_is_view(u->user) && !is_kept(op_result(u->user), store))))
      return false;
  }
  return true;
}

/* Two buffers in which the same value is kept, x in front of y: y is x, which ends where y did. */
static bool
keep_once(Op *x, Op *y)
{
  Value *a = op_result(x), *b = op_result(y);
  Op *stores[] = {only_user(a, OP_SHARED_STORE), only_user(b, OP_SHARED_STORE)};
  Op *frees[] = {only_user(a, OP_SHARED_FREE), only_user(b, OP_SHARED_FREE)};
  if (a->type != b->type || x->block != y->block || !stores[0] || !stores[1] || !frees[0] || !frees[1] ||
      OPERAND(stores[0], SHARED_STORE, x) != OPERAND(stores[1], SHARED_STORE, x) || !is_kept(a, stores[0]) || !is_kept(b, stores[1]))
    return false;
  op_move_before(frees[0], frees[1]);
  op_remove(frees[1]);
  op_remove(stores[1]);
  value_replace_uses(b, a);
  op_remove(y);
  return true;
}

void
warpgroup_keep_once(Ctx *c, Func *f)
{
  OpVec allocs = func_ops(c, f, OP_SHARED_ALLOC);
  for (u32 i = 0; i < allocs.len; i++)
    for (u32 k = i + 1; allocs.data[i] && k < allocs.len; k++)
      if (allocs.data[k] && keep_once(allocs.data[i], allocs.data[k]))
        allocs.data[k] = NULL;
}
