/* find_tensors.c - loads and stores through pointers that are boxes of tensors.
 * Needs phase tile, behind what cleans indices, in front of choose_mma; keeps it. Does nothing unless the target copies boxes, and finds
 * none unless it is to (BOXES_FOUND).
 *
 * Which loads: those of tiles of two dimensions and more that stand directly in a loop with `stages`, or outside of it and feed a dot in
 * one through ops on elements. Elsewhere a copy that is waited for where it starts would not be faster. Of tiles of one dimension those
 * in loops for which a team of its own may copy: a number for each row or column. What is no box of those stays with the products.
 *
 *   x = load p + (i0 + r) * s0 + (i1 + c), mask r + i0 < n0 && c + i1 < n1   ==>   x = tensor_load (tensor_of p, n0, n1, s0), i0, i1
 *
 * The address is a sum (ir/affine.h): for each dimension of the tile one stride times the index along it, and scalars. A scalar moves the
 * box along the dimension whose stride divides what it is multiplied by, the largest of several; what no stride divides becomes a
 * dimension in front, of which the box has one index. A tile that is not contiguous along its last dimension is loaded so and permuted.
 *
 * When a load is such a box:
 *   - strides are products of arguments and constants; one is 1, the others and the address are known to be multiples of 16 bytes: by
 *     promises, or as a launch's form is compiled for that.
 *   - the mask is the conjunction of bounds index < extent, with an extent that is such a product, and 0 <= index. `other` is absent or 0.
 *   - where nothing bounds an index from below, it cannot be negative: it is made of program ids, counters, arguments and scalars that are
 *     loaded by sums, products, quotients and remainders. Arguments among these are relied upon not to be (the parameter's `nonneg`); what
 *     is loaded is taken not to be, and neither are quotients and remainders of what is not: what divides an index is not negative.
 *   - where nothing bounds it from above, the tensor ends with the box, if that begins at 0, and else nowhere: 2^31 - 1, as the program
 *     reads what is there.
 *   - an index that wraps around (m % M) is taken as it is, and as not negative, with extent M, if nobody sees what is past that
 *     (ir/unobserved.c).
 *   - copies move such a box (boxes.h): along its last dimension it begins at a known multiple of 16 bytes.
 * Stores are such boxes likewise, of tiles of two dimensions and more: all that can be, where the kernel says so (`stores`), or by itself
 * what a loop with stages has multiplied, rounded to 16 bits, in a kernel whose programs stay or for which a team copies, where shared
 * memory has room. What they write must end where the mask does, and no index may wrap around. They go in pieces (store_pieces.c); so do
 * boxes that the kernel stores itself, of what such a loop has multiplied, where a whole one leaves too little room for its ring.
 *
 * Through a tensor's own address, as load_block goes, the extents and strides are to be the tensor's, and it is one of its boxes. */
#include "affine.h"
#include "boxes.h"
#include "internal.h"
#include "pingpong.h"
#include "roles.h"
#include "wgmma.h"

enum { PIECE = 16, BOUNDS = 12, LOOKS = 64, PARAMS_MOST = 60 };
#define ENDLESS INT32_MAX

/* A dimension of the tensor: of the tile (dim), or in front. */
typedef struct Axis {
  int dim;
  LaunchValue stride, extent;
  AffineTerm start[AFFINE_TERMS];     /* where the box begins */
  u32 n;
  bool lower, upper;                  /* the mask bounds it */
} Axis;

typedef struct Find {
  Ctx *c;
  Func *f;
  Op *op;                             /* the load or store */
  const Type *tile;
  Affine at;
  Axis axis[MAX_RANK];
  u32 naxes;
  u64 nonneg;                         /* parameters that are relied upon */
  u32 looks;
  bool as_it_lies;                    /* the box has the dimensions in the tile's order */
  bool team;                          /* one of its own is expected to copy for the loops (team_expected); asked for stores */
  const char *why;
} Find;

static bool
no(Find *x, const char *why)
{
  if (!x->why)
    x->why = why;
  return false;
}

#define NO(x, ...) no(x, arena_printf((x)->c->scratch, __VA_ARGS__))

/* ---- text of messages ---- */

static const char *
product_text(const Find *x, const LaunchValue *v)
{
  Buf b = {.arena = x->c->scratch};
  if (v->times != 1 || !v->n)
    buf_printf(&b, "%lld", (long long)v->times);
  for (u32 i = 0; i < v->n; i++)
    buf_printf(&b, "%s%s", b.len ? " * " : "", v->param[i] < LAUNCH_ASKED ? func_param_name(x->f, v->param[i], x->c->scratch)
                                               : "what is asked of a tensor");
  return buf_str(&b);
}

/* ---- dimensions ---- */

static bool
is_store(const Find *x)
{
  return x->op->code == OP_STORE;
}

static bool
of_tensor(const Find *x)
{
  return type_is_tensor(x->at.root->type);
}

static bool
is_one(const LaunchValue *v)
{
  return v->times == 1 && !v->n;
}

/* Does a stride divide the product, factor by factor? *rest: how often it is in it. */
static bool
divides(const LaunchValue *stride, const LaunchValue *by, LaunchValue *rest)
{
  u32 k = 0;
  *rest = (LaunchValue){.times = by->times / stride->times};
  for (u32 i = 0; i < by->n; i++)       /* both by rising index */
    if (k < stride->n && stride->param[k] == by->param[i])
      k++;
    else
      rest->param[rest->n++] = by->param[i];
  return k == stride->n && by->times % stride->times == 0;
}

static bool
take_dimensions(Find *x)
{
  u32 contiguous = 0;
  for (u32 d = 0; d < x->tile->rank; d++) {
    Axis *a = &x->axis[x->naxes++];
    *a = (Axis){.dim = (int)d};
    if (x->tile->shape[d] == 1)
      return NO(x, "dimension %u of the tile has one element", d);
    for (u32 i = 0; i < x->at.n; i++) {
      if (x->at.term[i].dim != (int)d)
        continue;
      if (a->stride.times)
        return NO(x, "its address moves along dimension %u by more than one stride", d);
      a->stride = x->at.term[i].by;
    }
    if (!a->stride.times)
      return NO(x, "its address does not depend on dimension %u of the tile", d);
    if (a->stride.times < 0)
      return NO(x, "stride %s of its address is negative", product_text(x, &a->stride));
    contiguous += is_one(&a->stride);
  }
  return contiguous == 1 || NO(x, "no dimension of its address is known to be contiguous, with a stride that is 1%s",
                               contiguous ? ": several are" : "");
}

/* The dimension in front that is moved by this product; a new one if there is none. */
static Axis *
axis_in_front(Find *x, const LaunchValue *by)
{
  for (u32 i = x->tile->rank; i < x->naxes; i++)
    if (launch_value_alike(&x->axis[i].stride, by) && x->axis[i].stride.times == by->times)
      return &x->axis[i];
  if (x->naxes == MAX_RANK)
    return NULL;
  x->axis[x->naxes] = (Axis){.dim = -1, .stride = *by};
  return &x->axis[x->naxes++];
}

/* May rest * v be more than an i32 holds? */
static bool
too_wide(const AffineTerm *t, const LaunchValue *rest)
{
  LaunchValue left;
  if (!t->v)
    return rest->n > 1;
  if (dtype_bits(t->v->type->dt) > 32 || (dtype_bits(t->v->type->dt) == 32 && !dtype_is_signed(t->v->type->dt)))
    return true;
  bool small = op_is(t->v, OP_PROGRAM_ID) && op_int(t->v->def, AT_AXIS, 0) && !rest->n && rest->times < 1 << 15;
  return t->wide && !small && !divides(rest, &t->narrow, &left);
}

/* The dimension whose stride divides what t is multiplied by: of several the one with the most factors, then the largest. whole: nothing
 * but a number is to be left, and `strided`: not one with a stride that is a number. NULL: there is none. */
static Axis *
divided_axis(Find *x, const AffineTerm *t, bool whole, bool strided, LaunchValue *rest)
{
  Axis *best = NULL;
  LaunchValue r;
  for (u32 i = 0; i < x->naxes; i++) {
    Axis *a = &x->axis[i];
    if (!divides(&a->stride, &t->by, &r) || (whole && r.n) || (strided && !a->stride.n) || too_wide(t, &r))
      continue;
    if (best && (a->stride.n < best->stride.n || (a->stride.n == best->stride.n && a->stride.times <= best->stride.times)))
      continue;
    best = a;
    *rest = r;
  }
  return best;
}

/* A scalar moves the box along a dimension of the tile, by a number of its strides; what a launch knows also by arguments. Else along one
 * in front, if that can be, or by elements. */
static Axis *
axis_of(Find *x, const AffineTerm *t, LaunchValue *rest)
{
  bool aligned = of_tensor(x) || launch_value_divisible(x->f, &t->by) * dtype_bytes(x->tile->dt) % PIECE == 0;
  Axis *a = divided_axis(x, t, true, false, rest);
  if (!a && !t->v)
    a = divided_axis(x, t, false, true, rest);
  if (!a && aligned && t->by.times > 0 && !too_wide(t, &(LaunchValue){.times = 1})) {
    *rest = (LaunchValue){.times = 1};
    a = axis_in_front(x, &t->by);
  }
  return a ? a : divided_axis(x, t, false, false, rest);
}

static bool
place_scalar(Find *x, const AffineTerm *t)
{
  AffineTerm moved = *t;
  Axis *a = axis_of(x, t, &moved.by);
  if (!a)
    return x->naxes == MAX_RANK
             ? NO(x, "its tensor has more than %d dimensions", MAX_RANK)
             : NO(x, "it is moved by multiples of %s elements, which an index of 32 bits may not hold", product_text(x, &t->by));
  return affine_add(a->start, &a->n, &moved, 1) || NO(x, "its index has too many parts");
}

static bool
take_scalars(Find *x)
{
  for (u32 i = 0; i < x->at.n; i++)
    if (x->at.term[i].dim == AFFINE_UNIFORM && !place_scalar(x, &x->at.term[i]))
      return false;
  return true;
}

static bool
check_strides(Find *x)
{
  if (of_tensor(x))                      /* a launch sees to that */
    return true;
  for (u32 i = 0; i < x->naxes; i++) {
    const LaunchValue *s = &x->axis[i].stride;
    if (!is_one(s) && launch_value_divisible(x->f, s) * dtype_bytes(x->tile->dt) % PIECE)
      return NO(x, "stride %s is not known to be a multiple of %d bytes", product_text(x, s), PIECE);
  }
  return true;
}

/* ---- where it ends ---- */

static bool
take_bound(Find *x, const AffineBound *b)
{
  Axis *a = &x->axis[b->dim];
  LaunchValue end;
  if (!affine_bound_from(b, a->start, a->n, &end))
    return NO(x, "its mask bounds dimension %d by what the launch does not know", b->dim);
  if (!b->upper) {
    a->lower = true;
    return end.times == 0 || NO(x, "its mask begins dimension %d at %s, not at 0", b->dim, product_text(x, &end));
  }
  if (a->upper && (end.times != a->extent.times || !launch_value_alike(&end, &a->extent)))
    return NO(x, "its mask has two ends of dimension %d", b->dim);
  if (end.times < 1 || (!end.n && end.times > ENDLESS))
    return NO(x, "its mask ends dimension %d at %s", b->dim, product_text(x, &end));
  a->extent = end;
  a->upper = true;
  return true;
}

static bool
take_mask(Find *x)
{
  AffineBound bounds[BOUNDS];
  u32 n = 0;
  const Value *mask = op_mask(x->op), *other = is_store(x) ? NULL : OPERAND(x->op, LOAD, other);
  u64 bits;
  if (!mask)
    return true;
  if (other && !(value_const_bits(other, &bits) && bits == 0))
    return NO(x, "where its mask is off it gives something else than 0");
  const char *why = affine_bounds(x->c, mask, bounds, BOUNDS, &n);
  if (why)
    return no(x, why);
  for (u32 i = 0; i < n; i++)
    if (!take_bound(x, &bounds[i]))
      return false;
  return true;
}

/* An index that wraps around is one of the tensor's if the box begins as it does. */
static bool
take_wrap(Find *x, Axis *a, const AffineWrap *w)
{
  AffineTerm rest[AFFINE_TERMS];
  u32 n = 0;
  bool fits = true;
  if (is_store(x))
    return NO(x, "its index along dimension %d wraps around", a->dim);
  for (u32 i = 0; i < a->n; i++)
    fits &= affine_add(rest, &n, &a->start[i], 1);
  for (u32 i = 0; i < w->nx; i++)
    if (w->x[i].dim < 0)
      fits &= affine_add(rest, &n, &w->x[i], -1);
  if (!fits || n)
    return NO(x, "along dimension %d it is moved besides an index that wraps around", a->dim);
  if (a->upper)
    return (a->extent.times == w->bound.times && launch_value_alike(&a->extent, &w->bound)) ||
           NO(x, "its mask ends dimension %d elsewhere than its index wraps around", a->dim);
  const char *why = unobserved_past(x->c, x->op, (u32)a->dim, w);
  if (why)
    return NO(x, "its index wraps around %s, and what that gives is seen: %s", product_text(x, &w->bound), why);
  a->extent = w->bound;
  a->upper = a->lower = true;
  return true;
}

/* Rows that are stored are of whole pieces. */
static i64
endless(const Find *x, const Axis *a)
{
  return is_store(x) && is_one(&a->stride) ? ENDLESS / PIECE * PIECE : ENDLESS;
}

static bool
take_ends(Find *x)
{
  for (u32 i = 0; i < x->naxes; i++) {
    Axis *a = &x->axis[i];
    if (a->dim >= 0 && x->at.wrap[a->dim].on && !take_wrap(x, a, &x->at.wrap[a->dim]))
      return false;
    if (!a->upper)
      a->extent = (LaunchValue){.times = !a->n && a->dim >= 0 ? x->tile->shape[a->dim] : endless(x, a)};
  }
  return true;
}

/* ---- what is not negative ---- */

static bool nonneg(Find *x, const Value *v);

/* A factor of what a launch knows. */
static bool
nonneg_factor(Find *x, u32 param)
{
  bool given = param < LAUNCH_ASKED;     /* extents and strides are not negative */
  if (given && param < 64)
    x->nonneg |= UINT64_C(1) << param;
  return !given || param < 64;
}

/* What a loop carries, and only adds to. */
static bool
nonneg_carried(Find *x, const Value *v, const Op *loop)
{
  u32 k;
  if (!op_is_loop(loop) || loop->regions[0] != v->block || !loop_carries(loop, v, &k) || !nonneg(x, loop_init(loop, k)))
    return false;
  const Value *next = loop_next(loop, k), *self = loop->code == OP_WHILE ? loop_arg(loop, 1, k) : v;
  const Value *passed = loop->code == OP_WHILE ? region_yields(loop, 0, k) : v;
  for (; passed == v && op_is(next, OP_ADD) && nonneg(x, OPERAND(next->def, BINARY, b)); next = OPERAND(next->def, BINARY, a))
    if (OPERAND(next->def, BINARY, a) == self)
      return true;
  return passed == v && next == self;
}

static bool
nonneg_argument(Find *x, const Value *v)
{
  const Op *loop = v->block->parent;
  u32 k;
  if (!loop)
    return nonneg_factor(x, v->index);
  if (loop->code == OP_FOR && v == loop_counter(loop))
    return nonneg(x, OPERAND(loop, FOR, lo));
  for (k = 0; loop->code == OP_WHILE && v->block == loop->regions[1] && k < loop->nresults; k++)
    if (v == loop_arg(loop, 1, k))       /* what its condition hands on */
      return region_yields(loop, 0, k) == loop_arg(loop, 0, k) && nonneg_carried(x, loop_arg(loop, 0, k), loop);
  return nonneg_carried(x, v, loop);
}

/* a - b of num_programs - 1 and program_id. */
static bool
from_last_program(const Value *a, const Value *b)
{
  i64 k;
  if (!op_is(b, OP_PROGRAM_ID) || !op_is(a, OP_ADD) || !value_const_int(OPERAND(a->def, BINARY, b), &k) || k < -1)
    return false;
  const Value *n = OPERAND(a->def, BINARY, a);
  return op_is(n, OP_NUM_PROGRAMS) && op_int(n->def, AT_AXIS, 0) == op_int(b->def, AT_AXIS, 0);
}

static bool
nonneg_op(Find *x, const Op *op)
{
  const Value *a = op->noperands > 0 ? op_operand(op, 0) : NULL, *b = op->noperands > 1 ? op_operand(op, 1) : NULL;
  switch (op->code) {
  case OP_PROGRAM_ID: case OP_NUM_PROGRAMS: case OP_RESIDENT_ID: case OP_NUM_RESIDENTS: case OP_TENSOR_EXTENT: case OP_TENSOR_STRIDE:
  case OP_BOUNDED: case OP_LOAD:
    return true;
  case OP_SUB: return from_last_program(a, b);
  case OP_ADD: case OP_MUL: case OP_MIN: return nonneg(x, a) && nonneg(x, b);
  case OP_MAX: case OP_AND: return nonneg(x, a) || nonneg(x, b);
  case OP_DIV: case OP_REM: case OP_SHL: case OP_SHR: case OP_HINT: return nonneg(x, a);
  case OP_CAST: return type_is_int(a->type) && dtype_bits(op_result(op)->type->dt) >= dtype_bits(a->type->dt) && nonneg(x, a);
  case OP_SELECT: return nonneg(x, b) && nonneg(x, OPERAND(op, SELECT, b));
  default: return false;
  }
}

static bool
nonneg(Find *x, const Value *v)
{
  i64 k;
  if (!x->looks || !--x->looks)
    return false;
  if (value_const_int(v, &k))
    return k >= 0;
  if (!type_is_int(v->type) || !dtype_is_signed(v->type->dt))
    return type_is_int(v->type) && dtype_bits(v->type->dt) < 32;
  return v->def ? nonneg_op(x, v->def) : nonneg_argument(x, v);
}

/* The term of the other sign as large as t, whose scalar is v or (v NULL) program_id along an axis; NO_TERM: there is none. */
enum { NO_TERM = AFFINE_TERMS };
static u32
opposite(const Axis *a, const AffineTerm *t, const Value *v, i64 axis)
{
  for (u32 i = 0; i < a->n; i++) {
    const AffineTerm *o = &a->start[i];
    bool scalar = v ? o->v == v : op_is(o->v, OP_PROGRAM_ID) && op_int(o->v->def, AT_AXIS, 0) == axis;
    if (scalar && !o->count && o->by.times == -t->by.times && launch_value_alike(&o->by, &t->by))
      return i;
  }
  return NO_TERM;
}

/* t, with another term of the start that bounds it, is at least *least. False: there is none. *other: its number, or NO_TERM. */
static bool
bounded_below(const Axis *a, const AffineTerm *t, i64 *least, u32 *other)
{
  const Op *loop = t->v && !t->v->def ? t->v->block->parent : NULL;
  *other = NO_TERM;
  if (t->count || t->by.times < 0)
    return false;
  if (loop && loop->code == OP_FOR && t->v == loop_counter(loop)) {   /* counter - lo */
    const Value *lo = OPERAND(loop, FOR, lo);
    *other = opposite(a, t, lo, 0);
    *least = 0;
    return *other != NO_TERM || (!t->by.n && value_const_int(lo, least) && !__builtin_mul_overflow(*least, t->by.times, least));
  }
  if (!op_is(t->v, OP_NUM_PROGRAMS) || t->by.n)                       /* num_programs - program_id */
    return false;
  *other = opposite(a, t, NULL, op_int(t->v->def, AT_AXIS, 0));
  *least = t->by.times;
  return *other != NO_TERM;
}

static bool
term_is_nonneg(Find *x, const AffineTerm *t)
{
  bool fits = t->by.times > 0;
  x->looks = LOOKS;
  for (u32 p = 0; p < t->by.n; p++)
    fits = fits && nonneg_factor(x, t->by.param[p]);
  return fits && (!t->v || nonneg(x, t->v));
}

/* A sum of what is bounded from below, alone or in pairs, and of what is not negative. */
static bool
start_is_nonneg(Find *x, const Axis *a)
{
  i64 least = 0, k;
  u32 done = 0, other;
  for (u32 i = 0; i < a->n; i++) {
    const AffineTerm *t = &a->start[i];
    bool constant = !t->v && !t->by.n && !t->count;
    if (!constant && !bounded_below(a, t, &k, &other))
      continue;
    done |= 1u << i | (constant || other == NO_TERM ? 0 : 1u << other);
    if (__builtin_add_overflow(least, constant ? t->by.times : k, &least))
      return false;
  }
  for (u32 i = 0; i < a->n; i++)
    if (!(done >> i & 1) && !term_is_nonneg(x, &a->start[i]))
      return false;
  return least >= 0;
}

static bool
starts_are_given(Find *x)
{
  for (u32 i = 0; i < x->naxes; i++)
    for (u32 k = 0; k < x->axis[i].n; k++)
      if (!launch_value_given(&x->axis[i].start[k].by))
        return NO(x, "it is moved by what is asked of a tensor");
  return true;
}

static bool
check_starts(Find *x)
{
  if (!starts_are_given(x))
    return false;
  for (u32 i = 0; i < x->naxes; i++)
    if (!x->axis[i].lower && !start_is_nonneg(x, &x->axis[i]))
      return x->axis[i].dim < 0 ? NO(x, "what it is moved by may be negative, or nothing is known of that")
                                : NO(x, "its index along dimension %d may be negative, or nothing is known of that", x->axis[i].dim);
  return true;
}

/* ---- the box ---- */

/* How often a loop has come round, as a carried value. */
static Value *
count_of(Find *x, Op *loop)
{
  Builder before = builder_before(loop), last = builder_before(region_end(loop, 0));
  Value *n = loop_carry(loop, i32_const(&before, 0), "count");
  op_add_operand(region_end(loop, 0), ir_binary(&last, OP_ADD, n, ir_const_int(&last, n->type, 1)));
  return n;
}

static Value *
build_start(Find *x, Builder *b, const Axis *a)
{
  const Type *t = type_scalar(x->c, DT_I32);
  Value *sum = NULL;
  for (u32 i = 0; i < a->n; i++) {
    const AffineTerm *k = &a->start[i];
    Value *v = k->v ? ir_cast(b, (Value *)k->v, DT_I32) : NULL, *times = ir_const_int(b, t, k->by.times);
    for (u32 p = 0; p < k->by.n; p++) {
      Value *factor = ir_cast(b, x->f->body->args[k->by.param[p]], DT_I32);   /* given: see starts_are_given */
      v = v ? ir_binary(b, OP_MUL, v, factor) : factor;
    }
    if (k->count) {
      Value *n = count_of(x, (Op *)k->count);
      v = v ? ir_binary(b, OP_MUL, v, n) : n;
    }
    v = !v ? times : k->by.times == 1 ? v : ir_binary(b, OP_MUL, v, times);
    sum = sum ? ir_binary(b, OP_ADD, sum, v) : v;
  }
  return sum ? sum : ir_const_int(b, t, 0);
}

static bool
is_asked(const LaunchValue *v, const Value *tensor, OpCode code, u32 axis)
{
  return v->times == 1 && v->n == 1 && v->param[0] == launch_asked(tensor, code, axis);
}

/* The dimension whose stride is that of the tensor's dimension d, and which ends there; in front, where a scalar is the index, it is within
 * the tensor anyway. NULL: there is none. */
static const Axis *
axis_of_tensor(const Find *x, u32 d)
{
  const Value *t = x->at.root;
  u32 rank = t->type->rank;
  bool in_front = d < rank - x->tile->rank;
  for (u32 i = 0; i < x->naxes; i++) {
    const Axis *a = &x->axis[i];
    bool here = d + 1 < rank ? is_asked(&a->stride, t, OP_TENSOR_STRIDE, d) : is_one(&a->stride);
    bool ends = a->upper ? is_asked(&a->extent, t, OP_TENSOR_EXTENT, d) : in_front;
    if (here && ends && (a->dim < 0) == in_front)
      return a;
  }
  return NULL;
}

/* The same of a box of a parameter that is a tensor. */
static bool
order_as_tensor(Find *x, u32 *order, int *perm)
{
  u32 rank = x->at.root->type->rank, k = 0;
  for (u32 d = 0; d < rank; d++) {
    const Axis *a = rank == x->naxes ? axis_of_tensor(x, d) : NULL;
    if (!a)
      return NO(x, "its extents and strides are not those of its tensor");
    order[d] = (u32)(a - x->axis);
    if (a->dim >= 0)
      perm[a->dim] = (int)k++;
  }
  return true;
}

/* The tensor's dimensions in order: those in front, the tile's, the contiguous one last. */
static void
order_axes(const Find *x, u32 *order, int *perm)
{
  u32 n = 0, rank = x->tile->rank, k = 0;
  for (u32 i = rank; i < x->naxes; i++)
    order[n++] = i;
  for (u32 last = 0; last < 2; last++)
    for (u32 i = 0; i < rank; i++)
      if (is_one(&x->axis[i].stride) == last) {
        perm[i] = (int)k++;
        order[n++] = i;
      }
}

static Value *
build_tensor(Find *x, const u32 *order)
{
  if (of_tensor(x))
    return (Value *)x->at.root;
  Builder b = builder_before(x->f->body->first);
  Value *v[2 * MAX_RANK] = {(Value *)x->at.root};
  const Type *t = type_tensor(x->c, x->tile->dt, (int)x->naxes);
  b.span = x->op->span;
  for (u32 i = 0; i < x->naxes; i++)
    v[1 + i] = launch_value_build(&b, &x->axis[order[i]].extent);
  for (u32 i = 0; i + 1 < x->naxes; i++)
    v[1 + x->naxes + i] = launch_value_build(&b, &x->axis[order[i]].stride);
  return op_result(op_create(&b, OP_TENSOR_OF, 2 * x->naxes, v, 1, &t, 0));
}

/* What is stored, in the order of the tensor's dimensions. */
static Value *
in_order(Find *x, Builder *b, const int *perm)
{
  Value *v = OPERAND(x->op, STORE, value);
  int inverse[MAX_RANK];
  bool turned = false;
  for (u32 d = 0; d < x->tile->rank; d++) {
    inverse[perm[d]] = (int)d;
    turned |= perm[d] != (int)d;
  }
  return turned ? ir_permute(b, v, inverse) : v;
}

static Op *
build_box(Find *x, const u32 *order, const int *perm)
{
  Value *v[2 + MAX_RANK] = {build_tensor(x, order)};
  Builder b = builder_before(x->op);
  u32 shape[MAX_RANK], n = is_store(x) ? SLOT(TENSOR_STORE, at) : SLOT(TENSOR_LOAD, at);
  b.span = x->op->span;
  for (u32 d = 0; d < x->tile->rank; d++)
    shape[perm[d]] = x->tile->shape[d];
  if (is_store(x))
    v[SLOT(TENSOR_STORE, x)] = in_order(x, &b, perm);
  for (u32 i = 0; i < x->naxes; i++)
    v[n + i] = build_start(x, &b, &x->axis[order[i]]);
  const Type *t = type_tile(x->c, type_scalar(x->c, x->tile->dt), x->tile->rank, shape, NULL);
  Op *box = op_create(&b, is_store(x) ? OP_TENSOR_STORE : OP_TENSOR_LOAD, n + x->naxes, v, is_store(x) ? 0 : 1, &t, 0);
  op_copy_attr(box, x->op, AT_EVICT);
  return box;
}

static void
replace_uses(Find *x, Op *box, const int *perm)
{
  Builder b = builder_after(box);
  Value *v = op_result(box);
  b.span = x->op->span;
  v->name = op_result(x->op)->name;
  for (u32 d = 0; d < x->tile->rank; d++)
    if (perm[d] != (int)d) {
      v = ir_permute(&b, v, perm);
      break;
    }
  value_replace_uses(op_result(x->op), v);
}

static bool find(Find *x);

static bool
is_loaded_beside(const Value *v, const Op *store)
{
  return op_is(v, OP_LOAD) && v->def->block == store->block && value_use_count(v) == 1;
}

/* Will a team of its own bring the one tile that is loaded beside (company.c)? Others are waited for, piece by piece. */
static bool
is_company(Find *x, const Op *box)
{
  const Value *stored = OPERAND(box, TENSOR_STORE, x), *v = NULL;
  bool single = box_values_beside(stored, box, is_loaded_beside, &v) == 1;
  return single && v->type->dt == stored->type->dt && stays_but_for(x->c, x->f, v->def);
}

/* Tiles that are loaded to be added to what teams by turns store, or the like, are boxes, too, if they can be: these go in pieces with
 * it, each of which is waited for where it is added, under the other team's products, or brought ahead by a team of its own. One team alone
 * has nothing else to do while it waits (8192 x 5120 x 1280 with a residual, H200: 479 TFLOP/s so, 496 loaded whole by programs that do not
 * stay), so it has them where that team brings them, or where its programs are told to stay: loaded whole they would spill. */
static void
find_beside(Find *x, const Op *box)
{
  const Value *v;
  bool wanted = x->team && (pingpong_wanted(x->f) || x->f->persistent || is_company(x, box));
  while (wanted && (v = box_value_beside(OPERAND(box, TENSOR_STORE, x), box, is_loaded_beside))) {
    Find load = {.c = x->c, .f = x->f, .op = v->def, .tile = v->type, .as_it_lies = true};
    if (!find(&load))
      return;
  }
}

static void
replace(Find *x, Op *box, const int *perm)
{
  if (!is_store(x))
    replace_uses(x, box, perm);
  for (u32 i = 0; i < x->f->body->nargs && i < 64; i++)
    x->f->params[i].nonneg |= x->nonneg >> i & 1;
  op_remove(x->op);
  if (box->code == OP_TENSOR_STORE) {
    find_beside(x, box);
    box_store_in_pieces(x->c, box);
  }
}

static bool
check_access(Find *x)
{
  if (x->tile->ptr || dtype_bits(x->tile->dt) < 8)
    return NO(x, "there are no copies of boxes of %s", type_str(x->c, type_elem(x->c, x->tile)));
  if (op_int(x->op, AT_VOLATILE, 0) || op_attr(x->op, AT_CACHE))
    return NO(x, "it is %s", op_attr(x->op, AT_CACHE) ? "cached in a way that boxes are not" : "volatile");
  affine_of(x->c, op_pointer(x->op), &x->at);
  if (x->at.why)
    return no(x, x->at.why);
  u32 i = x->at.root->index, known = x->f->params[i].divisible;
  return known % PIECE == 0 || NO(x, "the address of %s is known to be a multiple of %u bytes, not of %d",
                                  func_param_name(x->f, i, x->c->scratch), known & -known, PIECE);
}

/* Parameters of the PTX, at most, as far as they are known by now. */
static u32
params_of_ptx(const Func *f)
{
  u32 n = f->body->nargs;
  for (u32 i = 0; i < f->body->nargs; i++)
    n += type_is_tensor(f->body->args[i]->type) ? 2 * f->body->args[i]->type->rank : 0;
  for (const Op *op = f->body->first; op; op = op->next)
    n += op->code == OP_TENSOR_OF;
  return n;
}

/* Extents and strides of a view are of arguments. */
static bool
all_given(Find *x)
{
  for (u32 i = 0; i < x->naxes; i++)
    if (!launch_value_given(&x->axis[i].stride) || !launch_value_given(&x->axis[i].extent))
      return NO(x, "its extents or strides are those of a tensor, and its address is not");
  return true;
}

/* May the kernel let others know, while it runs, what it has stored? */
static bool
tells_others(const Func *f)
{
  return func_has(f, OP_ATOMIC_RMW) || func_has(f, OP_ATOMIC_CAS) || func_has(f, OP_PTX_EFFECT);
}

static bool
find(Find *x)
{
  u32 order[MAX_RANK];
  int perm[MAX_RANK];
  if (is_store(x) && tells_others(x->f))
    return NO(x, "atomic operations or inline PTX may tell others of it, and what copies store is only sure to be there at the end");
  if (!check_access(x) || !take_dimensions(x) || !take_scalars(x) || !check_strides(x) || !take_mask(x) || !take_ends(x) ||
      !check_starts(x))
    return false;
  if (params_of_ptx(x->f) >= PARAMS_MOST)
    return NO(x, "the kernel has too many parameters for one more map");
  if (of_tensor(x) && !order_as_tensor(x, order, perm))
    return false;
  if (!of_tensor(x) && !all_given(x))
    return false;
  if (!of_tensor(x))
    order_axes(x, order, perm);
  for (u32 d = 0; d < x->tile->rank; d++)
    if (x->as_it_lies && perm[d] != (int)d)
      return NO(x, "its rows do not lie as those of what is stored");
  Op *box = build_box(x, order, perm);
  const char *why = box_obstacle(x->c, NULL, box, x->op);
  if (why) {
    op_remove(box);
    return no(x, why);
  }
  replace(x, box, perm);
  return true;
}

/* ---- which loads ---- */

/* Does v feed, through ops on elements, a dot in a loop with stages that it is not in? */
static bool
feeds_staged_dot(const Value *v, u32 depth)
{
  for (const Use *u = v->uses; u && depth; u = u->next) {
    const Op *op = u->user;
    if (op_is_dot(op) && loop_is_staged(op->block->parent) && op->block != value_block(v))
      return true;
    bool passes = op_has(op, T_PURE | T_ELEM) || op->code == OP_PERMUTE || op->code == OP_CONVERT_LAYOUT;
    if (passes && feeds_staged_dot(op_result(op), depth - 1))
      return true;
  }
  return false;
}

/* A team may copy for the loop's products (team_obstacle of pipeline_loops.c), if all that it loads are boxes. */
static bool
may_be_parted(const Find *x, const Op *loop)
{
  const Op *op = loop->regions[0]->first;
  while (op && !op_is_dot(op))
    op = op->next;
  return op && x->f->warps == 2 * WGMMA_GROUP && x->f->roles != CHOICE_OFF && target_has(x->c->target, F_SETMAXNREG);
}

static bool
is_wanted(const Find *x)
{
  enum { DEPTH = 4 };
  const Op *loop = x->op->block->parent;
  if (!type_is_tile(x->tile))
    return false;
  if (x->tile->rank == 1)
    return loop_is_staged(loop) && may_be_parted(x, loop);
  return loop_is_staged(loop) || feeds_staged_dot(op_result(x->op), DEPTH);
}

/* ---- which stores ---- */

enum { DEPTH = 6 };   /* of ops between a product and where it is stored */

/* Is v, of the loop's body, a product, or computed from one element by element? */
static bool
from_dot(const Op *loop, const Value *v, u32 depth)
{
  const Op *op = v->def;
  if (!op || !depth || op->block != loop->regions[0])
    return false;
  for (u32 i = 0; op_has(op, T_PURE | T_ELEM) && i < op->noperands; i++)
    if (op_operand(op, i) && type_is_tile(op_operand(op, i)->type) && from_dot(loop, op_operand(op, i), depth - 1))
      return true;
  return op_is_dot(op);
}

/* Is v computed, element by element, from what a loop with stages has multiplied? */
static bool
from_staged_dot(const Value *v, u32 depth)
{
  const Op *op = v->def;
  if (!op || !depth)
    return false;
  if (loop_is_staged(op))
    return from_dot(op, region_yields(op, 0, v->index), DEPTH);
  for (u32 i = 0; op_has(op, T_PURE | T_ELEM) && i < op->noperands; i++)
    if (op_operand(op, i) && type_is_tile(op_operand(op, i)->type) && from_staged_dot(op_operand(op, i), depth - 1))
      return true;
  return false;
}

/* Bytes of rings, and of boxes that are loaded outside of loops with stages. together: loops share one ring, which a team of its own
 * fills. */
typedef struct Rings { u64 bytes, kept; u32 more; bool together; } Rings;

static void
add_ring(Op *op, void *user)
{
  Rings *r = user;
  u64 bytes = loop_is_staged(op) ? box_ring_bytes(op, (u32)op_int(op, AT_STAGES, 1) + r->more, r->together) : 0;
  r->bytes = !r->together ? r->bytes + bytes : bytes > r->bytes ? bytes : r->bytes;
  if (op->code == OP_TENSOR_LOAD && !loop_is_staged(op->block->parent))
    r->kept += (u64)box_tile_bytes(op_result(op)->type);
}

/* Is there room for a buffer, of each team that multiplies, beside those of the kernel's loops, with so many slots more than they have
 * stages? */
static bool
has_room(const Find *x, u64 bytes, u32 more)
{
  enum { MBARRIERS = 2048 };
  Rings r = {.more = more, .together = x->team};
  func_walk(x->f, add_ring, &r);
  return r.bytes + r.kept + (x->team ? roles_multiply(x->f) : 1) * bytes + MBARRIERS <= x->c->target->shared_max;
}

static bool
is_stored_so(const Find *x)
{
  if (x->f->box_stores == CHOICE_OFF || !type_is_tile(x->tile) || x->tile->rank < 2)
    return false;
  bool alone = x->f->persistent || x->team;       /* on its multiprocessor a program is, likely */
  return x->f->box_stores == CHOICE_ON || (alone && dtype_bits(x->tile->dt) == 16 &&
                                           from_staged_dot(OPERAND(x->op, STORE, value), DEPTH) &&
                                           has_room(x, box_store_bytes(x->c, x->f, x->tile), 0));
}

/* A box that the kernel stores whole: in pieces where loops that two teams share have a ring that lives on beside it, one slot longer
 * than stages say (pipeline_loops.c), if only a piece has room then. Copies of pieces are waited for at the end; so not where the kernel
 * may tell others what it has stored. */
static bool
is_cut(const Find *x)
{
  u64 whole = type_shared_bytes(box_buffer(x->c, x->tile)), piece = box_store_bytes(x->c, x->f, x->tile);
  bool parted = x->f->roles != CHOICE_OFF && roles_multiply(x->f) && target_has(x->c->target, F_SETMAXNREG);
  if (!parted || op_int(x->op, AT_KEPT, 0) || tensor_is_made(op_tensor(x->op)) || !from_staged_dot(OPERAND(x->op, TENSOR_STORE, x), DEPTH))
    return false;
  return !tells_others(x->f) && !has_room(x, whole, 1) && has_room(x, piece, 1);
}

static void
try(Find *x)
{
  Span at = x->op->span;
  const char *name = op_info(x->op->code)->name;
  if (!find(x) && x->c->remarks)
    diag(x->c, at, R_NO_TENSOR, name, x->why);
}

static void
find_all(Ctx *c, Func *f)
{
  OpVec loads = func_ops(c, f, OP_LOAD), stores = func_ops(c, f, OP_STORE);
  for (u32 k = 0; k < loads.len; k++) {
    Find x = {.c = c, .f = f, .op = loads.data[k], .tile = op_result(loads.data[k])->type};
    if (is_wanted(&x))
      try(&x);
  }
  bool team = stores.len && team_expected(c, f);
  for (u32 k = 0; k < stores.len; k++) {   /* behind loads, which look at what stores leave out */
    Find x = {.c = c, .f = f, .op = stores.data[k], .tile = OPERAND(stores.data[k], STORE, value)->type, .team = team};
    if (is_stored_so(&x))
      try(&x);
  }
}

void
pass_find_tensors(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len && target_has(c->target, F_TMA); i++) {
    Func *f = m->funcs.data[i];
    if (c->boxes == BOXES_FOUND)
      find_all(c, f);
    OpVec boxes = func_ops(c, f, OP_TENSOR_STORE);
    bool team = boxes.len && team_expected(c, f);
    for (u32 k = 0; k < boxes.len; k++) {
      Find x = {.c = c, .f = f, .op = boxes.data[k], .tile = OPERAND(boxes.data[k], TENSOR_STORE, x)->type, .team = team};
      if (is_cut(&x))
        box_store_in_pieces(c, x.op);
    }
  }
}
