/* builtin_reduce.c - reductions, scans and the matrix product.
 *
 * sum of types narrower than 32 bits is done in f32, i32 or u32; float sums come back in their own type, integer sums
 * stay wide (a sum of i8 rarely fits in i8). max and min ignore nans unless there is nothing else. argmax and argmin
 * carry pairs (value, index) through one reduction and prefer the lower index among equals, so that the result does not
 * depend on the order of the reduction. */
#include "fp.h"
#include "sema.h"
#include "sparse.h"
#include "wgmma.h"

enum { FOLDED_MOST = 8 };          /* tiles that are folded together */

typedef struct Reducer Reducer;
struct Reducer {
  u32 n;                          /* tiles folded together */
  u32 nitems;                     /* by fn: what it has two parameters each for, tiles or structs of tiles */
  const Val *items;
  void (*combine)(Lower *L, const Reducer *r, Value *const *a, Value *const *b, Value **out);
  OpCode code;                    /* the operation, or which comparison wins */
  Val fn;
  Span span;
};

/* What the function may not do in a region that works on single elements, or NULL. */
static const char *
find_unfit(Block *region, Span *at)
{
  region_if_convert(region);
  for (Op *op = region->first; op; op = op->next) {
    const char *why = op_has(op, T_TERM) ? NULL : !op_has(op, T_PURE) && !op->nregions ? "it reads or writes memory"
                    : op->code == OP_REDUCE || op->code == OP_SCAN ? "it reduces or scans a tile"
                    : op->nregions ? "it has a loop, or a division or memory access under an `if`" : NULL;
    for (u32 i = 0; !why && i < op->nresults; i++)
      if (type_is_tile(op->results[i]->type))
        why = "it makes a tile";
    *at = op->span;
    if (why)
      return why;
  }
  return NULL;
}

/* Whether the region made of the function can be what the op asks for; reports. */
static bool
combines(Lower *L, const Reducer *r, Op *op)
{
  Span at;
  const char *why = find_unfit(op->regions[0], &at);
  if (why)
    diag_note(L->c, ERR(L, r->fn.span, E_COMBINE, why), at, "here");
  return !why;
}

/* The region of a reduction or scan; results in out. False after reporting. */
static bool
combine_region(Lower *L, const Reducer *r, Op *op, Value **out)
{
  u32 errors = diag_errors(L->c);
  Builder saved = L->b;
  L->b = builder_at_end(saved.func, op->regions[0]);
  L->b.span = r->span;
  Value **args = op->regions[0]->args;
  r->combine(L, r, args, args + r->n, out);
  L->b.span = r->span;
  ir_yield(&L->b, r->n, out);
  L->b = saved;
  for (u32 i = 0; i < r->n; i++)
    out[i] = op->results[i];
  return diag_errors(L->c) == errors && (r->fn.kind == V_POISON || combines(L, r, op));
}

/* One reduction along axis; results in out. False after reporting. */
static bool
reduce_axis(Lower *L, const Reducer *r, Value *const *xs, int axis, Value **out)
{
  L->b.span = r->span;
  return combine_region(L, r, ir_reduce(&L->b, r->n, xs, axis), out);
}

/* x with dimension axis back as an extent of 1; a scalar becomes the tile `ones`. */
static Value *
dims_kept(Lower *L, Value *x, int axis, const Type *from)
{
  u32 ones[MAX_RANK] = {1, 1, 1, 1, 1};
  if (type_is_tile(x->type))
    return ir_expand_dims(&L->b, x, axis);
  return ir_splat(&L->b, x, type_tile(L->c, x->type, from->rank, ones, NULL));
}

/* Reduce along args[axis_arg], or along all dimensions one after the other. */
static bool
reduce_dims(Lower *L, Call *c, const Reducer *r, Value **xs, u32 axis_arg, bool keep)
{
  const Type *from = xs[0]->type;
  int axis = 0;
  if (c->given[axis_arg]) {
    if (!call_axis(L, c, axis_arg, from, &axis) || !reduce_axis(L, r, xs, axis, xs))
      return false;
  } else {
    for (int i = from->rank - 1; i >= 0; i--)
      if (!reduce_axis(L, r, xs, i, xs))
        return false;
  }
  L->b.span = r->span;
  for (u32 i = 0; keep && i < r->n; i++)
    xs[i] = dims_kept(L, xs[i], axis, from);
  return true;
}

static void
combine_binary(Lower *L, const Reducer *r, Value *const *a, Value *const *b, Value **out)
{
  out[0] = ir_binary(&L->b, r->code, a[0], b[0]);
}

static Val
simple_reduction(Lower *L, Call *c, OpCode code, Value *x, u32 axis_arg, DType result)
{
  bool keep;
  Reducer r = {.n = 1, .combine = combine_binary, .code = code, .span = c->span};
  if (!call_bool(L, c, axis_arg + 1, false, &keep) || !reduce_dims(L, c, &r, &x, axis_arg, keep))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(value_cast(L, x, result), c->span);
}

Val
builtin_sum(Lower *L, Call *c)
{
  Value *x = call_tile(L, c, 0);
  if (!x)
    return val_poison(c->span);
  if (type_is_ptr(x->type))
    return call_error(L, c, c->args[0].span, "pointers cannot be summed");
  DType dt = x->type->dt, wide = dt;
  if (dtype_bits(dt) < 32)
    wide = dtype_is_float(dt) ? DT_F32 : dtype_info[dt].cls == DC_U ? DT_U32 : DT_I32;
  L->b.span = c->span;
  return simple_reduction(L, c, OP_ADD, value_cast(L, x, wide), 1, dtype_is_float(dt) ? dt : wide);
}

/* max(x, k) of a tile and a literal that is one of its axes, by position: in other languages that reduces, as sum(x, k) does here.
 * What the library is given is no spelling of its own. */
static bool
could_be_axis(const Lower *L, const Call *c)
{
  Val x = c->args[0], k = c->args[1];
  const Node *second = c->node ? kid(c->node, 2) : NULL;
  if (L->frame->unit->library || !val_is_tile(x) || k.kind != V_CONST || k.k.form != CF_INT || (second && second->kind == N_ARG))
    return false;
  return k.k.i >= -(i64)x.ir->type->rank && k.k.i < (i64)x.ir->type->rank;
}

static Val
axis_or_number(Lower *L, const Call *c)
{
  const char *k = const_str(L, c->args[1].k);
  bool is_float = type_is_float(c->args[0].ir->type);
  Diag *d = ERR(L, c->span, E_AMBIGUOUS, c->name, k, k, k);
  diag_hint(L->c, d, "write %s(x, axis=%s) to reduce along the axis, or %s%s(%s, x) to compare each element with %s", c->name, k,
            is_float ? arena_printf(L->a, "%s(x, %s.0) or ", c->name, k) : "", c->name, k, k);
  return val_poison(c->span);
}

/* max(a, b) element by element, or max(x, axis=). */
static Val
extreme(Lower *L, Call *c, OpCode code)
{
  if (c->given[1]) {
    if (c->given[2] || c->given[3])
      return call_error(L, c, c->span, "either two values, or one tile and an axis");
    if (could_be_axis(L, c))
      return axis_or_number(L, c);
    c->op = code;
    c->nargs = 2;
    return builtin_elementwise(L, c);
  }
  if (!val_is_tile(c->args[0]) && val_need_data(L, c->args[0], c->name))
    return call_error(L, c, c->span, "either two values, or one tile and an axis");
  Value *x = call_tile(L, c, 0);
  if (!x)
    return val_poison(c->span);
  if (type_is_ptr(x->type))
    return call_error(L, c, c->args[0].span, "pointers have no order");
  DType dt = x->type->dt, wide = dt == DT_I1 ? DT_I32 : dtype_is_float(dt) && dtype_bits(dt) == 8 ? DT_F32 : dt;
  L->b.span = c->span;
  return simple_reduction(L, c, code, value_cast(L, x, wide), 2, dt);
}

Val
builtin_max(Lower *L, Call *c)
{
  return extreme(L, c, OP_MAX);
}

Val
builtin_min(Lower *L, Call *c)
{
  return extreme(L, c, OP_MIN);
}

/* ---- argmax, argmin ---- */

/* (value, index): b wins if it is better, or as good and of lower index; a number is better than nan. */
static void
combine_arg(Lower *L, const Reducer *r, Value *const *a, Value *const *b, Value **out)
{
  Builder *B = &L->b;
  Value *better = ir_cmp(B, r->code == OP_MAX ? "gt" : "lt", b[0], a[0]);
  Value *tied = ir_cmp(B, "eq", b[0], a[0]);
  if (type_is_float(a[0]->type)) {
    Value *a_nan = ir_cmp(B, "ne", a[0], a[0]), *b_nan = ir_cmp(B, "ne", b[0], b[0]);
    Value *b_only = ir_binary(B, OP_AND, a_nan, ir_unary(B, OP_NOT, b_nan));
    better = ir_binary(B, OP_OR, better, b_only);
    tied = ir_binary(B, OP_OR, tied, ir_binary(B, OP_AND, a_nan, b_nan));
  }
  Value *lower = ir_binary(B, OP_AND, tied, ir_cmp(B, "lt", b[1], a[1]));
  Value *take = ir_binary(B, OP_OR, better, lower);
  out[0] = ir_select(B, take, b[0], a[0]);
  out[1] = ir_select(B, take, b[1], a[1]);
}

/* i32 tile like t whose elements are their own index along axis. */
static Value *
indices(Lower *L, const Type *t, int axis)
{
  Value *x = ir_arange(&L->b, 0, t->shape[axis]);
  for (int i = 0; i < t->rank; i++)
    if (i != axis)
      x = ir_expand_dims(&L->b, x, i);
  return value_broadcast(L, x, t);
}

static Val
arg_extreme(Lower *L, Call *c, OpCode code)
{
  bool keep;
  int axis = 0;
  Value *x = call_tile(L, c, 0);
  if (!x || !call_bool(L, c, 2, false, &keep))
    return val_poison(c->span);
  if (type_is_ptr(x->type))
    return call_error(L, c, c->args[0].span, "pointers have no order");
  if (!c->given[1] && x->type->rank > 1)
    return call_error(L, c, c->span, "a tile of several dimensions needs an axis");
  if (c->given[1] && !call_axis(L, c, 1, x->type, &axis))
    return val_poison(c->span);
  L->b.span = c->span;
  DType dt = x->type->dt;
  x = value_cast(L, x, dt == DT_I1 ? DT_I32 : dtype_is_float(dt) && dtype_bits(dt) == 8 ? DT_F32 : dt);
  Value *xs[2] = {x, indices(L, x->type, axis)};
  Reducer r = {.n = 2, .combine = combine_arg, .code = code, .span = c->span};
  return reduce_dims(L, c, &r, xs, 1, keep) ? val_ir(xs[1], c->span) : val_poison(c->span);
}

Val
builtin_argmax(Lower *L, Call *c)
{
  return arg_extreme(L, c, OP_MAX);
}

Val
builtin_argmin(Lower *L, Call *c)
{
  return arg_extreme(L, c, OP_MIN);
}

/* ---- reduce and scan by a function ---- */

/* The parts of v, converted to what item holds, in out; false after reporting. */
static bool
parts_like(Lower *L, Span at, Val v, Val item, const char *what, Value ***out)
{
  Values parts = {0};
  Val x = var_assign(L, at, v, item, what, (Span){0, 0});
  if (x.kind == V_POISON)
    return false;
  val_parts(L, x, &parts);
  for (u32 i = 0; i < parts.len; i++)
    *(*out)++ = parts.data[i];
  return true;
}

static void
combine_fn(Lower *L, const Reducer *r, Value *const *a, Value *const *b, Value **out)
{
  Val *args = NEW_ARRAY(L->a, Val, 2 * r->nitems + 1);
  for (u32 i = 0; i < r->n; i++)
    out[i] = a[i];
  for (u32 i = 0; i < 2 * r->nitems; i++) {
    args[i] = val_with_parts(L, r->items[i % r->nitems], i < r->nitems ? &a : &b);
    args[i].span = r->span;
  }
  Val v = lower_call_fn(L, r->span, r->fn, 2 * r->nitems, args);
  u32 n;
  const Val *items = val_items(&v, &n);
  if (v.kind == V_POISON)
    return;
  if (n != r->nitems) {
    ERR(L, r->span, E_COMBINE, arena_printf(L->a, "it gives %s for %u tile%s", val_str(L, v), r->nitems, r->nitems == 1 ? "" : "s"));
    return;
  }
  for (u32 i = 0; i < r->nitems; i++)
    if (!parts_like(L, r->span, items[i], args[i], "the combined value", &out))
      return;
}

static bool
call_combiner(Lower *L, Call *c)
{
  if (c->args[2].kind == V_FN || c->args[2].kind == V_BUILTIN)
    return true;
  ERR(L, c->args[2].span, E_ARGUMENT, c->name, "a function fn(a, b)", val_str(L, c->args[2]));
  return false;
}

/* Item v's tiles: itself, or those in it; false after reporting. */
static bool
item_tiles(Lower *L, Call *c, Val v, Value **xs, Val *from, u32 *n)
{
  for (u32 i = 0; val_is_many(v) && i < v.list.n; i++) {
    Val part = v.list.v[i];
    bool fixed = part.kind != V_CONST && !val_is_many(part) && val_is_fixed(L, part);
    if (!fixed && !item_tiles(L, c, part, xs, from, n))
      return false;
  }
  if (val_is_many(v))
    return true;
  if (!val_is_tile(v) || val_is_ptr(v)) {
    if (v.kind != V_POISON)
      ERR(L, v.span, E_ARGUMENT, c->name, "tiles of numbers", val_str(L, v));
    return false;
  }
  if (*n == FOLDED_MOST) {
    call_error(L, c, c->args[0].span, "from 1 to 8 tiles are folded together");
    return false;
  }
  from[*n] = v;
  xs[(*n)++] = v.ir;
  return true;
}

/* What argument 0 is made of: tiles, or structs of them, broadcast to one shape; false after reporting. */
static bool
reduced_tiles(Lower *L, Call *c, Reducer *r, Value **xs)
{
  Val from[FOLDED_MOST];
  *r = (Reducer){.combine = combine_fn, .fn = c->args[2], .span = c->span};
  r->items = val_items(&c->args[0], &r->nitems);
  for (u32 i = 0; i < r->nitems; i++)
    if (!item_tiles(L, c, r->items[i], xs, from, &r->n))
      return false;
  if (!r->n)
    return call_error(L, c, c->args[0].span, "from 1 to 8 tiles are folded together"), false;
  return values_broadcast(L, c->span, c->name, r->n, xs, from);
}

/* What a reduction or scan gives: xs in the places of the tiles. */
static Val
items_with(Lower *L, const Reducer *r, Value *const *xs)
{
  Val v = val_list(L, V_TUPLE, r->nitems, r->span);
  for (u32 i = 0; i < r->nitems; i++) {
    v.list.v[i] = val_with_parts(L, r->items[i], &xs);
    v.list.v[i].span = r->span;
  }
  return r->nitems == 1 ? v.list.v[0] : v;
}

Val
builtin_reduce(Lower *L, Call *c)
{
  bool keep;
  Value *xs[BUILTIN_ARGS_MAX];
  Reducer r;
  if (!call_combiner(L, c) || !reduced_tiles(L, c, &r, xs) || !call_bool(L, c, 3, false, &keep) ||
      !reduce_dims(L, c, &r, xs, 1, keep))
    return val_poison(c->span);
  return items_with(L, &r, xs);
}

/* The first elements of an exclusive scan, which the op makes 0, become the identity: a number, or a struct; of several a tuple. */
static bool
put_identity(Lower *L, Call *c, const Reducer *r, Value **xs, int axis, bool reverse)
{
  u32 n;
  const Val *items = val_items(&c->args[5], &n);
  Span given = c->args[5].span;
  const Type *t = xs[0]->type;
  Value *firsts[BUILTIN_ARGS_MAX], **next = firsts;
  Value *const *like = xs;
  if (n != r->nitems) {
    call_error(L, c, given, "a scan of several tiles needs a tuple with the identity of each");
    return false;
  }
  for (u32 i = 0; i < r->nitems; i++)
    if (!parts_like(L, given, items[i], val_with_parts(L, r->items[i], &like), "the identity", &next))
      return false;
  L->b.span = c->span;
  Value *at = indices(L, t, axis), *first = ir_const_int(&L->b, at->type, reverse ? t->shape[axis] - 1 : 0);
  Value *begins = ir_cmp(&L->b, "eq", at, first);
  for (u32 i = 0; i < r->n; i++)
    xs[i] = ir_select(&L->b, begins, firsts[i], xs[i]);
  return true;
}

Val
builtin_scan(Lower *L, Call *c)
{
  bool reverse, exclusive;
  int axis;
  Value *xs[BUILTIN_ARGS_MAX];
  Reducer r;
  if (!call_combiner(L, c) || !reduced_tiles(L, c, &r, xs) || !call_axis(L, c, 1, xs[0]->type, &axis) ||
      !call_bool(L, c, 3, false, &reverse) || !call_bool(L, c, 4, false, &exclusive))
    return val_poison(c->span);
  if (c->given[5] && !exclusive)
    return call_error(L, c, c->args[5].span, "only a scan with exclusive=true needs an identity");
  L->b.span = c->span;
  if (!combine_region(L, &r, ir_scan(&L->b, r.n, xs, axis, reverse, exclusive), xs))
    return val_poison(c->span);
  L->b.span = c->span;
  if (c->given[5] && !put_identity(L, c, &r, xs, axis, reverse))
    return val_poison(c->span);
  return items_with(L, &r, xs);
}

/* ---- dot ---- */

/* What the products are added up in unless the accumulator says otherwise. */
static DType
dot_sum(DType factor)
{
  return factor == DT_F64 ? DT_F64 : dtype_is_float(factor) ? DT_F32 : DT_I32;
}

/* The same with accumulator acc, NULL: none. One of f16, which is no literal, asks for sums in f16. */
static DType
dot_sum_with(DType factor, const Val *acc)
{
  bool is_half = acc && (acc->kind == V_IR ? !type_is_ptr(acc->ir->type) && acc->ir->type->dt == DT_F16
                                           : acc->kind == V_CONST && acc->k.form == CF_TYPED && acc->k.dt == DT_F16);
  return is_half && dot_sum_fits(factor, DT_F16) ? DT_F16 : dot_sum(factor);
}

/* The first dimension in front of the last two in which a and b differ; -1: none. */
static int
differing_batch(const Type *a, const Type *b)
{
  for (int d = 0; d < a->rank - 2; d++)
    if (a->shape[d] != b->shape[d])
      return d;
  return -1;
}

static bool
dot_operands(Lower *L, Call *c, Value *a, Value *b)
{
  const Type *ta = a->type, *tb = b->type;
  const char *why = NULL;
  if (type_is_ptr(ta) || type_is_ptr(tb))
    why = "pointers are loaded first";
  else if (ta->rank < 2 || tb->rank < 2)
    why = "both need two dimensions";
  else if (ta->rank != tb->rank)
    why = "both need as many dimensions: those in front of the last two are batches";
  else if (ta->shape[ta->rank - 1] != tb->shape[ta->rank - 2])
    why = arena_printf(L->a, "the columns of a (%u) must be the rows of b (%u)", ta->shape[ta->rank - 1], tb->shape[ta->rank - 2]);
  else if (differing_batch(ta, tb) >= 0)
    why = arena_printf(L->a, "dimension %d is a batch: both need as many", differing_batch(ta, tb));
  else if (!dot_factors_fit(ta->dt, tb->dt))
    why = "both need one element type, or two kinds of 8-bit float or integer";
  else if (!dot_sum_fits(ta->dt, dot_sum(ta->dt)))
    why = "the element type must be a float type, i8 or u8";
  if (!why)
    return true;
  Diag *d = ERR(L, c->span, E_DOT, type_str(L->c, ta), type_str(L->c, tb), why);
  note_values(L, d, 2, c->args);
  return false;
}

/* Of how many products of 8-bit floats a sum may be made before it is added in f32: argument 5. */
static bool
dot_promote(Lower *L, Call *c, i64 *out)
{
  *out = DOT_PROMOTE;
  if (c->given[5] && !call_int(L, c, 5, "the number of products", out))
    return false;
  if (*out >= 0 && *out <= INT32_MAX)
    return true;
  call_error(L, c, c->args[5].span, "promote is a number of products, or 0 for any number");
  return false;
}

static void
set_promote(Op *dot, i64 promote)
{
  DType a = dot_a(dot)->type->dt;
  if (dtype_is_float(a) && dtype_bits(a) == 8 && op_result(dot)->type->dt == DT_F32)
    op_set_int(dot, AT_PROMOTE, promote);
}

/* The accumulator of a product of x, of M x anything, and y: acc, NULL for zeros. NULL behind an error. */
static Value *
dot_accumulator(Lower *L, Call *c, const Value *x, const Value *y, const Val *given)
{
  int rank = x->type->rank;
  u32 shape[MAX_RANK];
  memcpy(shape, x->type->shape, sizeof shape);
  shape[rank - 1] = y->type->shape[rank - 1];
  if (!shape_check(L, c->span, (u32)rank, shape))
    return NULL;
  const Type *t = type_tile(L->c, type_scalar(L->c, dot_sum_with(x->type->dt, given)), rank, shape, NULL);
  Val acc = given ? *given : val_const(const_int(0), c->span);
  acc = val_assign(L, acc.span, acc, t, "the accumulator", given ? c->span : (Span){0, 0});
  return acc.kind == V_IR ? acc.ir : NULL;
}

Val
builtin_dot(Lower *L, Call *c)
{
  const char *precision;
  i64 promote;
  DType out;
  Value *a = call_tile(L, c, 0), *b = a ? call_tile(L, c, 1) : NULL;
  if (!b || !dot_operands(L, c, a, b) || !call_word(L, c, 3, PRECISION_WORDS, NULL, &precision) ||
      !dot_promote(L, c, &promote) || (c->given[4] && !call_dtype(L, c, 4, &out)))
    return val_poison(c->span);
  Value *acc = dot_accumulator(L, c, a, b, c->given[2] ? &c->args[2] : NULL);
  if (!acc)
    return val_poison(c->span);
  L->b.span = c->span;
  Value *r = ir_dot(&L->b, a, b, acc);
  if (precision)
    op_set_str(r->def, AT_PREC, precision);
  set_promote(r->def, promote);
  return c->given[4] ? val_cast(L, c->span, val_ir(r, c->span), out, NULL, false) : val_ir(r, c->span);
}

Val
builtin_dot_sparse(Lower *L, Call *c)
{
  DType out;
  i64 promote;
  Value *a = call_tile(L, c, 0), *meta = a ? call_tile(L, c, 1) : NULL, *b = meta ? call_tile(L, c, 2) : NULL;
  if (!b || !dot_promote(L, c, &promote) || (c->given[4] && !call_dtype(L, c, 4, &out)))
    return val_poison(c->span);
  const char *why = sparse_error(L->c, a->type, meta->type, b->type);
  if (why) {
    Diag *d = ERR(L, c->span, E_DOT_SPARSE, type_str(L->c, a->type), type_str(L->c, meta->type), type_str(L->c, b->type), why);
    note_values(L, d, 3, c->args);
    return val_poison(c->span);
  }
  Value *acc = dot_accumulator(L, c, a, b, c->given[3] ? &c->args[3] : NULL);
  if (!acc)
    return val_poison(c->span);
  L->b.span = c->span;
  Val r = val_ir(ir_dot_sparse(&L->b, a, meta, b, acc), c->span);
  set_promote(r.ir->def, promote);
  return c->given[4] ? val_cast(L, c->span, r, out, NULL, false) : r;
}
