/* build.c - making modules, blocks and ops. The typed forms derive result types; placement is carried where the
 * operands decide it (elementwise, expand_dims, permute, reshape, reduce, dot) and left open for broadcast. */
#include "ir.h"

static Ctx *
func_ctx(const Func *f)
{
  return f->module->ctx;
}

/* An empty module in phase tile. */
Module *
module_new(Ctx *c)
{
  Module *m = NEW(c->perm, Module);
  m->ctx = c;
  return m;
}

/* A kernel without parameters, 4 warps, empty body; appended to m. */
Func *
func_new(Module *m, const char *name, Span at)
{
  Ctx *c = m->ctx;
  Func *f = NEW(c->perm, Func);
  f->name = intern(c, name);
  f->module = m;
  f->span = at;
  f->warps = 4;
  f->cluster[0] = f->cluster[1] = f->cluster[2] = 1;
  f->body = block_new(f, NULL);
  vec_push(c->perm, &m->funcs, f);
  return f;
}

/* One more parameter. divisible: its value is a multiple of this; 1: nothing known. */
Value *
func_add_param(Func *f, const Type *t, const char *name, u32 divisible)
{
  u32 n = f->body->nargs;
  ParamInfo *more = f->params;
  if (!n || is_pow2(n)) {
    more = NEW_ARRAY(func_ctx(f)->perm, ParamInfo, n ? 2 * n : 1);
    if (n)
      memcpy(more, f->params, n * sizeof *more);
  }
  more[n] = (ParamInfo){.divisible = divisible, .same = n};
  f->params = more;
  return block_add_arg(f->body, t, name);
}

const char *
func_param_name(const Func *f, u32 i, Arena *a)
{
  const char *name = f->body->args[i]->name;
  return name ? name : arena_printf(a, "arg%u", i);
}

/* Parameters i and k are one address, as are those that each was known to be. */
void
func_same_params(Func *f, u32 i, u32 k)
{
  u32 x = f->params[i].same, y = f->params[k].same;
  for (u32 n = 0; n < f->body->nargs; n++)
    if (f->params[n].same == x || f->params[n].same == y)
      f->params[n].same = x < y ? x : y;
}

/* An empty block; the caller puts it into parent->regions (op_create does so for its own). */
Block *
block_new(Func *f, Op *parent)
{
  Block *b = NEW(func_ctx(f)->perm, Block);
  b->parent = parent;
  b->func = f;
  return b;
}

static Value *
value_new(Func *f, const Type *t, u32 index)
{
  Value *v = NEW(func_ctx(f)->perm, Value);
  v->type = t;
  v->index = index;
  v->id = f->nvalues++;
  return v;
}

/* Room for n + 1 pointers where n are in use; capacities are powers of two. */
static Value **
values_grow(Ctx *c, Value **old, u32 n)
{
  if (n && !is_pow2(n))
    return old;
  Value **more = NEW_ARRAY(c->perm, Value *, n ? n * 2 : 1);
  if (n)
    memcpy(more, old, n * sizeof(Value *));
  return more;
}

/* One more argument; name is a printing hint or NULL. */
Value *
block_add_arg(Block *b, const Type *t, const char *name)
{
  Ctx *c = func_ctx(b->func);
  Value *v = value_new(b->func, t, b->nargs);
  v->block = b;
  v->name = name ? intern(c, name) : NULL;
  b->args = values_grow(c, b->args, b->nargs);
  b->args[b->nargs++] = v;
  return v;
}

/* One more result, at the end. */
Value *
op_add_result(Op *op, const Type *t)
{
  Func *f = op->block->func;
  Value *v = value_new(f, t, op->nresults);
  v->def = op;
  op->results = values_grow(func_ctx(f), op->results, op->nresults);
  op->results[op->nresults++] = v;
  return v;
}

/* One more region, an empty block. */
Block *
op_add_region(Op *op)
{
  Func *f = op->block->func;
  Block **more = NEW_ARRAY(func_ctx(f)->perm, Block *, op->nregions + 1);
  for (u32 i = 0; i < op->nregions; i++)
    more[i] = op->regions[i];
  more[op->nregions] = block_new(f, op);
  op->regions = more;
  return op->regions[op->nregions++];
}

/* Insert at the end of b. */
Builder
builder_at_end(Func *f, Block *b)
{
  return (Builder){f, b, NULL, f->span};
}

/* Insert before op, with its span. */
Builder
builder_before(Op *op)
{
  return (Builder){op->block->func, op->block, op, op->span};
}

/* Insert after op, with its span. */
Builder
builder_after(Op *op)
{
  return (Builder){op->block->func, op->block, op->next, op->span};
}

static void
op_insert(Builder *b, Op *op)
{
  Op *next = b->before, *prev = next ? next->prev : b->block->last;
  op->block = b->block;
  op->prev = prev;
  op->next = next;
  *(prev ? &prev->next : &b->block->first) = op;
  *(next ? &next->prev : &b->block->last) = op;
}

/* Makes an op with all its parts and inserts it. */
Op *
op_create(Builder *b, OpCode code, u32 noperands, Value *const *operands, u32 nresults,
          const Type *const *result_types, u32 nregions)
{
  Ctx *c = func_ctx(b->func);
  Op *op = NEW(c->perm, Op);
  op->code = code;
  op->span = b->span;
  op->span.site = b->span.site ? b->span.site : c->site;
  op_insert(b, op);
  for (u32 i = 0; i < noperands; i++)
    op_add_operand(op, operands[i]);
  for (u32 i = 0; i < nresults; i++)
    op_add_result(op, result_types[i]);
  for (u32 i = 0; i < nregions; i++)
    op_add_region(op);
  return op;
}

static Op *
create1(Builder *b, OpCode code, u32 n, Value *const *operands, const Type *t)
{
  return op_create(b, code, n, operands, 1, &t, 0);
}

/* Elementwise on one operand, of its type. */
Value *
ir_unary(Builder *b, OpCode code, Value *x)
{
  return op_result(create1(b, code, 1, &x, x->type));
}

/* Elementwise on two operands, of the first one's type. */
Value *
ir_binary(Builder *b, OpCode code, Value *x, Value *y)
{
  return op_result(create1(b, code, 2, (Value *[]){x, y}, x->type));
}

/* x * y + z rounded once. */
Value *
ir_fma(Builder *b, Value *x, Value *y, Value *z)
{
  return op_result(create1(b, OP_FMA, 3, (Value *[]){x, y, z}, x->type));
}

/* Comparison; pred is one of eq ne lt le gt ge. */
Value *
ir_cmp(Builder *b, const char *pred, Value *x, Value *y)
{
  Op *op = create1(b, OP_CMP, 2, (Value *[]){x, y}, type_i1_like(func_ctx(b->func), x->type));
  op_set_str(op, AT_PRED, pred);
  return op_result(op);
}

/* cond ? x : y, element by element. */
Value *
ir_select(Builder *b, Value *cond, Value *x, Value *y)
{
  return op_result(create1(b, OP_SELECT, 3, (Value *[]){cond, x, y}, x->type));
}

/* A constant by the bits of one element; bits above the element's width are dropped. */
Value *
ir_const_bits(Builder *b, const Type *t, u64 bits)
{
  u32 width = type_elem_bits(t);
  Op *op = create1(b, OP_CONST, 0, NULL, t);
  op_set_int(op, AT_VALUE, (i64)(width < 64 ? bits & ((1ull << width) - 1) : bits));
  return op_result(op);
}

/* A constant of an integer or i1 type; v wraps, for i1 its lowest bit counts. */
Value *
ir_const_int(Builder *b, const Type *t, i64 v)
{
  return ir_const_bits(b, t, (u64)v);
}

/* A constant of a float type, rounded to nearest even. */
Value *
ir_const_float(Builder *b, const Type *t, double v)
{
  return ir_const_bits(b, t, float_to_bits(t->dt, v));
}

/* i32[end - start]: start, start + 1, ... */
Value *
ir_arange(Builder *b, i64 start, i64 end)
{
  Ctx *c = func_ctx(b->func);
  u32 n = (u32)(end - start);
  Op *op = create1(b, OP_ARANGE, 0, NULL, type_tile(c, type_scalar(c, DT_I32), 1, &n, NULL));
  op_set_int(op, AT_START, start);
  op_set_int(op, AT_END, end);
  return op_result(op);
}

static Value *
grid_query(Builder *b, OpCode code, int axis)
{
  Op *op = create1(b, code, 0, NULL, type_scalar(func_ctx(b->func), DT_I32));
  op_set_int(op, AT_AXIS, axis);
  return op_result(op);
}

/* This program's index along a grid axis. */
Value *
ir_program_id(Builder *b, int axis)
{
  return grid_query(b, OP_PROGRAM_ID, axis);
}

/* Programs along a grid axis. */
Value *
ir_num_programs(Builder *b, int axis)
{
  return grid_query(b, OP_NUM_PROGRAMS, axis);
}

/* x in every element of a tile shaped and placed as `tile`. */
Value *
ir_splat(Builder *b, Value *x, const Type *tile)
{
  return op_result(create1(b, OP_SPLAT, 1, &x, type_with_elem(func_ctx(b->func), tile, x->type)));
}

/* x broadcast to shape (of x's rank). The layout is left open: set it if x has one. */
Value *
ir_broadcast(Builder *b, Value *x, const u32 *shape)
{
  Ctx *c = func_ctx(b->func);
  const Type *t = x->type;
  return op_result(create1(b, OP_BROADCAST, 1, &x, type_tile(c, type_elem(c, t), t->rank, shape, NULL)));
}

/* x with a dimension of extent 1 inserted at axis. */
Value *
ir_expand_dims(Builder *b, Value *x, int axis)
{
  Ctx *c = func_ctx(b->func);
  const Type *t = x->type;
  u32 shape[MAX_RANK + 1];
  if (!type_is_tile(t) || axis < 0 || axis > t->rank || t->rank == MAX_RANK)
    ctx_panic(c, "expand_dims of %s at axis %d", type_str(c, t), axis);
  for (int i = 0; i <= t->rank; i++)
    shape[i] = i < axis ? t->shape[i] : i == axis ? 1 : t->shape[i - 1];
  const Layout *l = t->layout ? layout_expand_dims(c, t->layout, axis) : NULL;
  Op *op = create1(b, OP_EXPAND_DIMS, 1, &x, type_tile(c, type_elem(c, t), t->rank + 1, shape, l));
  op_set_int(op, AT_AXIS, axis);
  return op_result(op);
}

/* x's elements in row-major order under other extents of the same product. */
Value *
ir_reshape(Builder *b, Value *x, int rank, const u32 *shape)
{
  Ctx *c = func_ctx(b->func);
  const Type *t = x->type;
  const Layout *l = t->layout ? layout_reshape(c, t->layout, rank, shape) : NULL;
  return op_result(create1(b, OP_RESHAPE, 1, &x, type_tile(c, type_elem(c, t), rank, shape, l)));
}

/* Result dimension i is x's dimension perm[i]. */
Value *
ir_permute(Builder *b, Value *x, const int *perm)
{
  Ctx *c = func_ctx(b->func);
  const Type *t = x->type;
  u32 shape[MAX_RANK];
  i64 ints[MAX_RANK];
  for (int i = 0; i < t->rank; i++) {
    ints[i] = perm[i];
    shape[i] = t->shape[perm[i]];
  }
  const Layout *l = t->layout ? layout_permute(c, t->layout, perm) : NULL;
  Op *op = create1(b, OP_PERMUTE, 1, &x, type_tile(c, type_elem(c, t), t->rank, shape, l));
  op_set_ints(op, AT_PERM, ints, t->rank);
  return op_result(op);
}

/* x converted to another dtype; x itself if it already has it. */
Value *
ir_cast(Builder *b, Value *x, DType to)
{
  Ctx *c = func_ctx(b->func);
  const Type *t = type_with_elem(c, x->type, type_scalar(c, to));
  return t == x->type ? x : op_result(create1(b, OP_CAST, 1, &x, t));
}

/* x's bits as another element type of the same width. */
Value *
ir_bitcast(Builder *b, Value *x, const Type *elem)
{
  return op_result(create1(b, OP_BITCAST, 1, &x, type_with_elem(func_ctx(b->func), x->type, elem)));
}

/* So many steps, or the largest number that the unsigned type u has. */
static Value *
steps_of(Builder *b, Value *step, const Type *u, u32 ahead)
{
  u64 most = dtype_bits(u->dt) == 64 ? UINT64_MAX : UINT32_MAX, by;
  if (value_const_bits(step, &by))
    return ir_const_bits(b, u, by > most / ahead ? most : by * ahead);
  Value *word = ir_cast(b, step, u->dt);
  if (ahead == 1)
    return word;
  Value *fits = ir_cmp(b, "le", word, ir_const_bits(b, u, most / ahead));
  Value *limit = ir_const_bits(b, u, most), *all = ir_binary(b, OP_MUL, word, ir_const_bits(b, u, ahead));
  return ir_select(b, fits, all, limit);
}

/* How far it is to hi is asked, as the index may pass the end of its type; by steps of 1 the next one does not. */
Value *
ir_goes_on(Builder *b, Value *i, Value *hi, Value *step, u32 ahead)
{
  if (ahead == 1 && value_is_one(step))
    return ir_cmp(b, "lt", ir_binary(b, OP_ADD, i, step), hi);
  const Type *u = type_scalar(func_ctx(b->func), dtype_bits(i->type->dt) == 64 ? DT_U64 : DT_U32);
  Value *left = ir_cast(b, ir_binary(b, OP_SUB, hi, i), u->dt);
  return ir_cmp(b, "gt", left, steps_of(b, step, u, ahead));
}

/* x, whose elements are from 0 to extent - 1 where mask (NULL: everywhere). */
Value *
ir_bounded(Builder *b, Value *x, Value *mask, i64 extent)
{
  Value *r = op_result(create1(b, OP_BOUNDED, mask ? 2 : 1, (Value *[]){x, mask}, x->type));
  op_set_int(r->def, AT_EXTENT, extent);
  return r;
}

/* p + off elements; off has p's shape. */
Value *
ir_addptr(Builder *b, Value *p, Value *off)
{
  return op_result(create1(b, OP_ADDPTR, 2, (Value *[]){p, off}, p->type));
}

/* Read through p; mask and other may be NULL. */
Value *
ir_load(Builder *b, Value *p, Value *mask, Value *other)
{
  Ctx *c = func_ctx(b->func);
  u32 n = other ? 3 : mask ? 2 : 1;
  const Type *t = type_with_elem(c, p->type, type_scalar(c, p->type->dt));
  return op_result(create1(b, OP_LOAD, n, (Value *[]){p, mask, other}, t));
}

/* Write v through p; mask may be NULL. */
Op *
ir_store(Builder *b, Value *p, Value *v, Value *mask)
{
  return op_create(b, OP_STORE, mask ? 3 : 2, (Value *[]){p, v, mask}, 0, NULL, 0);
}

/* acc + x times y. */
Value *
ir_dot(Builder *b, Value *x, Value *y, Value *acc)
{
  return op_result(create1(b, OP_DOT, 3, (Value *[]){x, y, acc}, acc->type));
}

/* acc + x times y, where x is what meta says is kept. */
Value *
ir_dot_sparse(Builder *b, Value *x, Value *meta, Value *y, Value *acc)
{
  return op_result(create1(b, OP_DOT_SPARSE, 4, (Value *[]){x, meta, y, acc}, acc->type));
}

/* x in another layout. */
Value *
ir_convert_layout(Builder *b, Value *x, const Layout *l)
{
  return op_result(create1(b, OP_CONVERT_LAYOUT, 1, &x, type_with_layout(func_ctx(b->func), x->type, l)));
}

/* A buffer or a row of buffers; contents undefined. */
Value *
ir_shared_alloc(Builder *b, const Type *buffer)
{
  return op_result(create1(b, OP_SHARED_ALLOC, 0, NULL, buffer));
}

/* Buffer i of a row. */
Value *
ir_shared_index(Builder *b, Value *buffers, Value *i)
{
  const Type *t = buffers->type;
  const Type *one = type_shared_view(func_ctx(b->func), t, 0, t->rank, t->shape, t->alloc_shape, t->layout);
  return op_result(create1(b, OP_SHARED_INDEX, 2, (Value *[]){buffers, i}, one));
}

/* The part of a buffer from start on with these extents. */
Value *
ir_shared_slice(Builder *b, Value *buffer, const i64 *start, const u32 *shape)
{
  const Type *t = buffer->type;
  const Type *part = type_shared_view(func_ctx(b->func), t, t->count, t->rank, shape, t->alloc_shape, t->layout);
  Op *op = create1(b, OP_SHARED_SLICE, 1, &buffer, part);
  op_set_ints(op, AT_OFFSETS, start, t->rank);
  return op_result(op);
}

/* The same memory with dimension i being the operand's perm[i]. */
Value *
ir_shared_permute(Builder *b, Value *buffer, const int *perm)
{
  const Type *t = buffer->type;
  Ctx *c = func_ctx(b->func);
  u32 shape[MAX_RANK], whole[MAX_RANK];
  i64 p[MAX_RANK];
  for (int i = 0; i < t->rank; i++) {
    shape[i] = t->shape[perm[i]];
    whole[i] = t->alloc_shape[perm[i]];
    p[i] = perm[i];
  }
  const Layout *l = t->layout ? layout_permute(c, t->layout, perm) : NULL;
  Op *op = create1(b, OP_SHARED_PERMUTE, 1, &buffer, type_shared_view(c, t, t->count, t->rank, shape, whole, l));
  op_set_ints(op, AT_PERM, p, t->rank);
  return op_result(op);
}

/* The buffer's elements as a tile of that type. */
Value *
ir_shared_load(Builder *b, Value *buffer, const Type *tile)
{
  return op_result(create1(b, OP_SHARED_LOAD, 1, &buffer, tile));
}

/* Write a tile to a buffer. */
Op *
ir_shared_store(Builder *b, Value *buffer, Value *tile)
{
  return op_create(b, OP_SHARED_STORE, 2, (Value *[]){buffer, tile}, 0, NULL, 0);
}

/* Start copying *p to the buffer, 0 where not mask; mask may be NULL. */
Op *
ir_async_copy(Builder *b, Value *buffer, Value *p, Value *mask)
{
  return op_create(b, OP_ASYNC_COPY, mask ? 3 : 2, (Value *[]){buffer, p, mask}, 0, NULL, 0);
}

/* Close the group of copies started since the last commit. */
Op *
ir_async_commit(Builder *b)
{
  return op_create(b, OP_ASYNC_COMMIT, 0, NULL, 0, NULL, 0);
}

/* Until at most `pending` groups are in flight. */
Op *
ir_async_wait(Builder *b, u32 pending)
{
  Op *op = op_create(b, OP_ASYNC_WAIT, 0, NULL, 0, NULL, 0);
  op_set_int(op, AT_PENDING, pending);
  return op;
}

/* x as an accumulator. */
Value *
ir_pending(Builder *b, Value *x)
{
  return op_result(create1(b, OP_PENDING, 1, &x, type_pending(b->func->module->ctx, x->type, true)));
}

/* A product under way. */
Value *
ir_wgmma(Builder *b, Value *x, Value *meta, Value *y, Value *acc)
{
  return op_result(create1(b, OP_WGMMA, meta ? 4 : 3, (Value *[]){x, y, acc, meta}, acc->type));
}

/* xs become values. */
Op *
ir_wgmma_wait(Builder *b, u32 n, Value *const *xs, u32 pending)
{
  const Type **types = NEW_ARRAY(b->func->module->ctx->scratch, const Type *, n + 1);
  for (u32 i = 0; i < n; i++)
    types[i] = type_pending(b->func->module->ctx, xs[i]->type, false);
  Op *op = op_create(b, OP_WGMMA_WAIT, n, xs, n, types, 0);
  op_set_int(op, AT_PENDING, pending);
  return op;
}

/* The end of a region. */
Op *
ir_yield(Builder *b, u32 n, Value *const *xs)
{
  return op_create(b, OP_YIELD, n, xs, 0, NULL, 0);
}

static void
results_and_args(Op *op, u32 n, Value *const *inits)
{
  for (u32 i = 0; i < n; i++) {
    op_add_result(op, inits[i]->type);
    for (u32 r = 0; r < op->nregions; r++)
      block_add_arg(op->regions[r], inits[i]->type, inits[i]->name);
  }
}

/* for i = lo; i < hi; i += step, carrying n values. */
Op *
ir_for(Builder *b, Value *lo, Value *hi, Value *step, u32 n, Value *const *inits)
{
  Op *op = op_create(b, OP_FOR, 3, (Value *[]){lo, hi, step}, 0, NULL, 1);
  block_add_arg(op->regions[0], lo->type, NULL);
  for (u32 i = 0; i < n; i++)
    op_add_operand(op, inits[i]);
  results_and_args(op, n, inits);
  return op;
}

/* while carrying n values: region 0 ends in a condition, region 1 in a yield. */
Op *
ir_while(Builder *b, u32 n, Value *const *inits)
{
  Op *op = op_create(b, OP_WHILE, n, inits, 0, NULL, 2);
  results_and_args(op, n, inits);
  return op;
}

/* if cond, else; both regions must yield n values of these types. */
Op *
ir_if(Builder *b, Value *cond, u32 n, const Type *const *result_types)
{
  return op_create(b, OP_IF, 1, &cond, n, result_types, 2);
}

/* Empty regions, each run by so many warps. */
Op *
ir_warp_specialize(Builder *b, u32 n, const i64 *warps)
{
  Op *op = op_create(b, OP_WARP_SPECIALIZE, 0, NULL, 0, NULL, n);
  op_set_ints(op, AT_WARPS, warps, n);
  return op;
}

static const Type *
reduced_type(Ctx *c, const Type *t, int axis)
{
  u32 shape[MAX_RANK] = {0};
  if (!type_is_tile(t) || axis < 0 || axis >= t->rank)
    ctx_panic(c, "reduce of %s along axis %d", type_str(c, t), axis);
  if (t->rank == 1)
    return type_elem(c, t);
  for (int i = 0; i < t->rank - 1; i++)
    shape[i] = t->shape[i + (i >= axis)];
  const Layout *l = t->layout ? layout_slice(c, t->layout, axis) : NULL;
  return type_tile(c, type_elem(c, t), t->rank - 1, shape, l);
}

static void
combine_args(Op *op, u32 n, Value *const *xs)
{
  for (u32 i = 0; i < 2 * n; i++)
    block_add_arg(op->regions[0], type_elem(func_ctx(op->block->func), xs[i % n]->type), NULL);
}

/* Fold n tiles along axis together; the region has 2n scalar arguments and no ops yet. */
Op *
ir_reduce(Builder *b, u32 n, Value *const *xs, int axis)
{
  Op *op = op_create(b, OP_REDUCE, n, xs, 0, NULL, 1);
  op_set_int(op, AT_AXIS, axis);
  for (u32 i = 0; i < n; i++)
    op_add_result(op, reduced_type(func_ctx(b->func), xs[i]->type, axis));
  combine_args(op, n, xs);
  return op;
}

/* Scan n tiles along axis together, from its end if reverse, an element without itself if exclusive; region as above. */
Op *
ir_scan(Builder *b, u32 n, Value *const *xs, int axis, bool reverse, bool exclusive)
{
  Op *op = op_create(b, OP_SCAN, n, xs, 0, NULL, 1);
  op_set_int(op, AT_AXIS, axis);
  if (reverse)
    op_set_int(op, AT_REVERSE, 1);
  if (exclusive)
    op_set_int(op, AT_EXCLUSIVE, 1);
  for (u32 i = 0; i < n; i++)
    op_add_result(op, xs[i]->type);
  combine_args(op, n, xs);
  return op;
}

/* Elements of one tile are combined by an op on two of their type. */
Value *
ir_combine(Builder *b, Op *fold, OpCode code)
{
  Block *region = fold->regions[0];
  Builder in = builder_at_end(b->func, region);
  in.span = b->span;
  Value *both = ir_binary(&in, code, region->args[0], region->args[1]);
  ir_yield(&in, 1, &both);
  return op_result(fold);
}

/* Apply a region to every element of n tiles of one shape; the region has n scalar arguments and no ops yet. */
Op *
ir_map(Builder *b, u32 n, Value *const *xs)
{
  Op *op = op_create(b, OP_MAP, n, xs, 0, NULL, 1);
  for (u32 i = 0; i < n; i++)
    block_add_arg(op->regions[0], type_elem(func_ctx(b->func), xs[i]->type), NULL);
  return op;
}

/* One more result of a map, of the shape and layout of its operands. */
Value *
map_add_result(Op *map, const Type *elem)
{
  return op_add_result(map, type_with_elem(func_ctx(map->block->func), OPERAND(map, MAP, xs)->type, elem));
}
