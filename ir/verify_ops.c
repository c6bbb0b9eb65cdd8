/* verify_ops.c - the type rules: SAME, CMP, SELECT, and check_<ID> for the CUSTOM rows of ops.def. */
#include "verify.h"
#include "asm.h"
#include "packed.h"
#include "sparse.h"
#include "wgmma.h"

static const Type *
scalar(Verifier *v, DType d)
{
  return type_scalar(v->ctx, d);
}

static bool
is_f8(const Type *t)
{
  return type_is_float(t) && dtype_bits(t->dt) == 8;
}

/* ---- rules ---- */

static const char *
class_names(u32 traits)
{
  switch (traits & (T_NUM | T_BOOL)) {
  case T_INT: return "integers";
  case T_FLT: return "floats";
  case T_BOOL: return "i1";
  case T_NUM: return "numbers";
  case T_BITS: return "integers or i1";
  default: return "values";
  }
}

/* Operands of an elementwise op fall into the classes of its traits; 8-bit floats are for storage and casts. */
static bool
check_class(Verifier *v, const Op *op, const Type *t)
{
  u32 traits = op_info(op->code)->traits, classes = traits & (T_NUM | T_BOOL);
  bool allowed = !classes || (traits & T_INT && type_is_int(t)) || (traits & T_FLT && type_is_float(t)) ||
                 (traits & T_BOOL && type_is_bool(t));
  if (!allowed)
    return verify_fail(v, op, "operands are %s, not %s", class_names(traits), spell(v, t));
  if (classes && is_f8(t))
    return verify_fail(v, op, "there is no arithmetic on %s: cast first", spell(v, t));
  return op->code != OP_UMULHI || dtype_bits(t->dt) >= 32 ||
         verify_fail(v, op, "operands have 32 or 64 bits, not %s", spell(v, t));
}

static bool
same_operands(Verifier *v, const Op *op, u32 from)
{
  for (u32 i = from + 1; i < op->noperands; i++)
    if (!verify_same(v, op, "operands", in_type(op, from), in_type(op, i)))
      return false;
  return true;
}

static bool
check_unless_one(Verifier *v, const Op *op, const Type *t)
{
  bool fits = v->phase == PHASE_SCHED && type_is_tile(t) && type_is_number(t) && t->dt == DT_F32;
  return fits || !op_attr(op, AT_UNLESS_ONE) || verify_fail(v, op, "unless_one is of tiles of f32, in phase sched");
}

static bool
rule_same(Verifier *v, const Op *op)
{
  const Type *t = in_type(op, 0);
  return same_operands(v, op, 0) && check_class(v, op, t) && verify_same(v, op, "operand and result", t, out_type(op)) &&
         check_unless_one(v, op, t);
}

static bool
rule_cmp(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, CMP, a);
  const char *pred = op_str(op, AT_PRED, "");
  bool equality = !strcmp(pred, "eq") || !strcmp(pred, "ne");
  if (!same_operands(v, op, SLOT(CMP, a)))
    return false;
  if (is_f8(t))
    return verify_fail(v, op, "there is no comparison of %s: cast first", spell(v, t));
  if (type_is_bool(t) && !equality)
    return verify_fail(v, op, "%s has no order", spell(v, t));
  return verify_same(v, op, "comparison and result", type_i1_like(v->ctx, t), out_type(op));
}

static bool
rule_select(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, SELECT, a);
  return same_operands(v, op, SLOT(SELECT, a)) &&
         verify_same(v, op, "condition and i1 of the values' shape", IN_TYPE(op, SELECT, c), type_i1_like(v->ctx, t)) &&
         verify_same(v, op, "operand and result", t, out_type(op));
}

/* A CUSTOM row without its check_<ID> does not link. */
bool
verify_op_rule(Verifier *v, const Op *op)
{
  static bool (*const rules[OP_COUNT])(Verifier *, const Op *) = {
#define RULE_OF_SAME(id) rule_same
#define RULE_OF_CMP(id) rule_cmp
#define RULE_OF_SELECT(id) rule_select
#define RULE_OF_CUSTOM(id) check_##id
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) RULE_OF_##rule(id),
#include "ops.def"
#undef OP
  };
  return rules[op->code](v, op);
}

/* ---- constants and indices ---- */

bool
check_CONST(Verifier *v, const Op *op)
{
  u32 bits = type_elem_bits(out_type(op));
  u64 value = (u64)op_int(op, AT_VALUE, 0);
  return bits == 64 || !(value >> bits) || verify_fail(v, op, "the value has more than %u bits", bits);
}

bool
check_ARANGE(Verifier *v, const Op *op)
{
  const Type *t = out_type(op);
  i64 n = op_int(op, AT_END, 0) - op_int(op, AT_START, 0);
  if (n < 1 || n > TILE_MAX_NUMEL)
    return verify_fail(v, op, "the range has %lld elements", (long long)n);
  if (t->rank != 1 || t->ptr || t->dt != DT_I32 || t->shape[0] != (u32)n)
    return verify_fail(v, op, "the result is i32[%lld], not %s", (long long)n, spell(v, t));
  return true;
}

static bool
grid_query(Verifier *v, const Op *op)
{
  i64 axis = op_int(op, AT_AXIS, 0);
  if (axis > 2)
    return verify_fail(v, op, "a grid has axes 0, 1 and 2, not %lld", (long long)axis);
  return verify_same(v, op, "grid index and result", scalar(v, DT_I32), out_type(op));
}

bool
check_PROGRAM_ID(Verifier *v, const Op *op)
{
  if (op->noperands > 1)
    return verify_fail(v, op, "it takes one number of a program at most");
  if (op->noperands && !verify_same(v, op, "the program's number and the result", in_type(op, 0), out_type(op)))
    return false;
  return grid_query(v, op);
}

static bool
resident_query(Verifier *v, const Op *op)
{
  if (!v->func->persistent)
    return verify_fail(v, op, "the kernel is not persistent");
  return verify_same(v, op, "number and result", scalar(v, DT_I32), out_type(op));
}

static void
find_unnumbered(Op *op, void *user)
{
  const Op **found = user;
  if (op->code == OP_PROGRAM_ID && !op->noperands)
    *found = op;
}

bool
check_RESIDENT_ID(Verifier *v, const Op *op)
{
  const Op *unnumbered = NULL;
  func_walk(v->func, find_unnumbered, &unnumbered);
  if (unnumbered)
    return verify_fail(v, unnumbered, "a program that does what several do has no index of its own: it takes a number");
  return resident_query(v, op);
}

bool
check_NUM_RESIDENTS(Verifier *v, const Op *op)
{
  return resident_query(v, op);
}

bool
check_NUM_PROGRAMS(Verifier *v, const Op *op)
{
  return grid_query(v, op);
}

/* ---- shapes: extents first, then (placed) the layout that the forward function gives ---- */

static bool
tile_operand(Verifier *v, const Op *op, u32 i)
{
  return type_is_tile(in_type(op, i)) || verify_fail(v, op, "operand %u is a tile, not %s", i, spell(v, in_type(op, i)));
}

static bool
tile_result(Verifier *v, const Op *op)
{
  return type_is_tile(out_type(op)) || verify_fail(v, op, "the result is a tile, not %s", spell(v, out_type(op)));
}

static bool
same_elements(Verifier *v, const Op *op)
{
  const Type *a = type_elem(v->ctx, IN_TYPE(op, UNARY, x)), *b = type_elem(v->ctx, out_type(op));
  return a == b || verify_fail(v, op, "elements are %s in the operand and %s in the result", spell(v, a), spell(v, b));
}

/* Before placement no type has a layout and nothing is to be compared. */
static bool
placed(Verifier *v, const Type *a, const Type *b)
{
  return v->phase != PHASE_TILE && a->layout && b->layout && verify_layout_fits(a) && verify_layout_fits(b);
}

static bool
layout_expected(Verifier *v, const Op *op, const char *whose, const Type *t, const Layout *expected)
{
  if (t->layout == expected)
    return true;
  return verify_fail(v, op, "%s has layout %s, not %s", whose, verify_type_str(v, t, true),
                     verify_type_str(v, type_with_layout(v->ctx, t, expected), true));
}

static bool
extents_expected(Verifier *v, const Op *op, const Type *t, int rank, const u32 *shape)
{
  if (t->rank == rank && !memcmp(t->shape, shape, (size_t)rank * sizeof *shape))
    return true;
  const Type *expected = type_tile(v->ctx, type_elem(v->ctx, t), rank, shape, NULL);
  return verify_fail(v, op, "the result is %s, not %s", spell(v, expected), spell(v, t));
}

bool
check_SPLAT(Verifier *v, const Op *op)
{
  if (type_is_tile(IN_TYPE(op, SPLAT, x)))
    return verify_fail(v, op, "the operand is a scalar, not %s", spell(v, IN_TYPE(op, SPLAT, x)));
  return tile_result(v, op) && same_elements(v, op);
}

bool
check_BROADCAST(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, BROADCAST, x), *r = out_type(op);
  if (!tile_operand(v, op, SLOT(BROADCAST, x)) || !tile_result(v, op) || !same_elements(v, op))
    return false;
  bool fits = a->rank == r->rank;
  for (int i = 0; fits && i < a->rank; i++)
    fits = a->shape[i] == r->shape[i] || a->shape[i] == 1;
  if (!fits)
    return verify_fail(v, op, "%s does not broadcast to %s", spell(v, a), spell(v, r));
  return !placed(v, a, r) ||
         layout_expected(v, op, "the operand", a, layout_unbroadcast(v->ctx, r->layout, a->shape));
}

bool
check_EXPAND_DIMS(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, EXPAND_DIMS, x), *r = out_type(op);
  i64 axis = op_int(op, AT_AXIS, 0);
  u32 shape[MAX_RANK];
  if (!tile_operand(v, op, SLOT(EXPAND_DIMS, x)) || !tile_result(v, op) || !same_elements(v, op))
    return false;
  if (axis > a->rank || a->rank == MAX_RANK)
    return verify_fail(v, op, "%s has no place for a dimension %lld", spell(v, a), (long long)axis);
  for (int i = 0; i <= a->rank; i++)
    shape[i] = i == axis ? 1 : a->shape[i - (i > axis)];
  if (!extents_expected(v, op, r, a->rank + 1, shape))
    return false;
  return !placed(v, a, r) || layout_expected(v, op, "the result", r, layout_expand_dims(v->ctx, a->layout, (int)axis));
}

bool
check_RESHAPE(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, RESHAPE, x), *r = out_type(op);
  if (!tile_operand(v, op, SLOT(RESHAPE, x)) || !tile_result(v, op) || !same_elements(v, op))
    return false;
  if (type_numel(a) != type_numel(r))
    return verify_fail(v, op, "%s and %s have different numbers of elements", spell(v, a), spell(v, r));
  if (!placed(v, a, r))
    return true;
  if (!type_reshape_is_linear(a, r))
    return verify_fail(v, op, "the padding of %s and %s differs: no layout carries over", spell(v, a), spell(v, r));
  u32 padded[MAX_RANK];
  for (int i = 0; i < r->rank; i++)
    padded[i] = next_pow2(r->shape[i]);
  return layout_expected(v, op, "the result", r, layout_reshape(v->ctx, a->layout, r->rank, padded));
}

/* Words and elements of one string of bits, and what numbers the elements may be. */
static bool
packing_types(Verifier *v, const Op *op, const Type *words, const Type *values)
{
  const PackedFormat *f = packed_of(op);
  u32 last = (u32)words->rank - 1;
  Packing p;
  if (!f || !type_is_int(words))
    return verify_fail(v, op, "words are integers, not %s", spell(v, words));
  bool fits = type_is_float(values) && (values->dt == DT_F16 || values->dt == DT_BF16 || values->dt == DT_F32);
  if (!fits && (packed_is_float(f) || !type_is_int(values)))
    return verify_fail(v, op, "elements of %s are not of type %s", f->name, spell(v, values));
  if (!packing_find(words->shape[last], dtype_bits(words->dt), f, &p))
    return verify_fail(v, op, "%u words of %u bits hold no whole number of %s, or are too long a row", words->shape[last],
                       dtype_bits(words->dt), f->name);
  u32 n = words->shape[last] / p.words * p.values;
  if (words->rank != values->rank || memcmp(words->shape, values->shape, last * sizeof n) || values->shape[last] != n)
    return verify_fail(v, op, "%s holds %u elements of %s in a row, not %s", spell(v, words), n, f->name, spell(v, values));
  if (!placed(v, words, values))
    return true;
  return layout_expected(v, op, "the words", words, packing_words(v->ctx, &p, words, words->layout)) &&
         layout_expected(v, op, "the elements", values, packing_values(v->ctx, &p, words, words->layout));
}

bool
check_UNPACK(Verifier *v, const Op *op)
{
  return tile_operand(v, op, SLOT(UNPACK, x)) && tile_result(v, op) && packing_types(v, op, IN_TYPE(op, UNPACK, x), out_type(op));
}

bool
check_PACK(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, PACK, x);
  if (!tile_operand(v, op, SLOT(PACK, x)) || !tile_result(v, op))
    return false;
  if (packed_of(op) && packed_is_float(packed_of(op)) != type_is_float(t))
    return verify_fail(v, op, "%s is packed from other numbers than %s", packed_of(op)->name, spell(v, t));
  return packing_types(v, op, out_type(op), t);
}

bool
check_PERMUTE(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, PERMUTE, x), *r = out_type(op);
  const Attr *perm = op_attr(op, AT_PERM);
  int order[MAX_RANK];
  u32 seen = 0, shape[MAX_RANK];
  if (!tile_operand(v, op, SLOT(PERMUTE, x)) || !tile_result(v, op) || !same_elements(v, op))
    return false;
  if (perm->ints.n != a->rank)
    return verify_fail(v, op, "perm has %u entries for %s", perm->ints.n, spell(v, a));
  for (int i = 0; i < a->rank; i++) {
    i64 d = perm->ints.v[i];
    if (d < 0 || d >= a->rank || seen >> d & 1)
      return verify_fail(v, op, "perm is not a permutation of the %u dimensions", a->rank);
    seen |= 1u << d;
    order[i] = (int)d;
    shape[i] = a->shape[d];
  }
  if (!extents_expected(v, op, r, a->rank, shape))
    return false;
  return !placed(v, a, r) || layout_expected(v, op, "the result", r, layout_permute(v->ctx, a->layout, order));
}

/* ---- conversions of elements ---- */

static bool
same_shape_result(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, UNARY, x), *r = out_type(op);
  return verify_same(v, op, "operand and result apart from the element", a,
                     type_with_elem(v->ctx, r, type_elem(v->ctx, a)));
}

bool
check_CAST(Verifier *v, const Op *op)
{
  if (type_is_ptr(IN_TYPE(op, CAST, x)) || type_is_ptr(out_type(op)))
    return verify_fail(v, op, "pointers are not cast: use bitcast");
  return same_shape_result(v, op);
}

bool
check_BITCAST(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, BITCAST, x), *r = out_type(op);
  if (type_elem_bits(a) != type_elem_bits(r))
    return verify_fail(v, op, "%s and %s have elements of different width", spell(v, a), spell(v, r));
  if (type_is_ptr(a) != type_is_ptr(r) && !type_is_int(type_is_ptr(a) ? r : a))
    return verify_fail(v, op, "a pointer has the bits of a 64-bit integer, not of %s", spell(v, type_is_ptr(a) ? r : a));
  return same_shape_result(v, op);
}

bool
check_HINT(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, HINT, x);
  if (!type_is_int(t) && !type_is_ptr(t))
    return verify_fail(v, op, "the operand is an integer or a pointer, not %s", spell(v, t));
  return verify_same(v, op, "operand and result", t, out_type(op));
}

/* The extent is a number of the indices' type, or one more than the largest: then -1 is no index by its bits either. */
bool
check_BOUNDED(Verifier *v, const Op *op)
{
  const Type *t = in_type(op, 0);
  const Value *mask = OPERAND(op, BOUNDED, mask);
  if (!type_is_int(t))
    return verify_fail(v, op, "the operand is an integer, not %s", spell(v, t));
  if (mask && mask->type != type_i1_like(v->ctx, t))
    return verify_fail(v, op, "the mask is %s, not %s", spell(v, type_i1_like(v->ctx, t)), spell(v, mask->type));
  u32 bits = dtype_bits(t->dt) - dtype_is_signed(t->dt);
  i64 extent = op_int(op, AT_EXTENT, 1);
  if (bits < 63 && extent > (i64)1 << bits)
    return verify_fail(v, op, "%lld indices are more than %s has", (long long)extent, dtype_info[t->dt].name);
  return verify_same(v, op, "operand and result", t, out_type(op));
}

/* ---- inline PTX ---- */
bool
check_PTX(Verifier *v, const Op *op)
{
  DType types[ASM_VALUES_MAX];
  const Type *first = NULL;
  u32 n = op->nresults + op->noperands;
  if (!n || n > ASM_VALUES_MAX)
    return verify_fail(v, op, "it has %u operands and results, not 1 to %d", n, ASM_VALUES_MAX);
  for (u32 i = 0; i < n; i++) {
    const Type *t = i < op->nresults ? op->results[i]->type : in_type(op, i - op->nresults);
    first = first ? first : t;
    if (type_is_ptr(t) || t->kind == TY_SHARED || !type_same_shape(t, first) || t->layout != first->layout)
      return verify_fail(v, op, "operands and results are numbers of one shape and layout, not %s", spell(v, t));
    types[i] = t->dt;
  }
  const char *why = asm_error(v->ctx->scratch, op_str(op, AT_TEXT, ""), op_str(op, AT_CONSTRAINTS, ""), (u32)op_int(op, AT_PACK, 1),
                              op->nresults, n, types);
  return !why || verify_fail(v, op, "%s", why);
}

bool
check_PTX_EFFECT(Verifier *v, const Op *op)
{
  return check_PTX(v, op);
}

/* ---- memory ---- */

static bool
pointer_operand(Verifier *v, const Op *op)
{
  const Type *p = IN_TYPE(op, POINTER, p);
  return type_is_ptr(p) || verify_fail(v, op, "operand 0 is a pointer, not %s", spell(v, p));
}

/* Values that the op's pointers point to have this type. */
static const Type *
pointee_type(Verifier *v, const Op *op)
{
  const Type *p = IN_TYPE(op, POINTER, p);
  return type_with_elem(v->ctx, p, scalar(v, p->dt));
}

static bool
check_mask(Verifier *v, const Op *op)
{
  const Value *mask = op_mask(op);
  return !mask || verify_same(v, op, "mask and i1 of the pointer's shape", mask->type, type_i1_like(v->ctx, IN_TYPE(op, POINTER, p)));
}

/* x, if present, is a value that the pointer points to. */
static bool
check_pointee(Verifier *v, const Op *op, const Value *x)
{
  return !x || verify_same(v, op, "value and what the pointer points to", x->type, pointee_type(v, op));
}

static bool
result_pointee(Verifier *v, const Op *op)
{
  return verify_same(v, op, "result and what the pointer points to", out_type(op), pointee_type(v, op));
}

bool
check_ADDPTR(Verifier *v, const Op *op)
{
  const Type *p = IN_TYPE(op, ADDPTR, p), *off = IN_TYPE(op, ADDPTR, off);
  if (!pointer_operand(v, op))
    return false;
  if (!type_is_int(off))
    return verify_fail(v, op, "the offset is an integer, not %s", spell(v, off));
  return verify_same(v, op, "offset and integer of the pointer's shape", off,
                     type_with_elem(v->ctx, p, type_elem(v->ctx, off))) &&
         verify_same(v, op, "operand and result", p, out_type(op));
}

bool
check_LOAD(Verifier *v, const Op *op)
{
  return pointer_operand(v, op) && check_mask(v, op) && check_pointee(v, op, OPERAND(op, LOAD, other)) && result_pointee(v, op);
}

bool
check_STORE(Verifier *v, const Op *op)
{
  return pointer_operand(v, op) && check_pointee(v, op, OPERAND(op, STORE, value)) && check_mask(v, op);
}

bool
check_ATOMIC_RMW(Verifier *v, const Op *op)
{
  if (!pointer_operand(v, op) || !check_pointee(v, op, OPERAND(op, ATOMIC_RMW, value)) || !check_mask(v, op) || !result_pointee(v, op))
    return false;
  const char *rmw = op_str(op, AT_RMW, "");
  DType d = IN_TYPE(op, ATOMIC_RMW, p)->dt;
  return atomic_rmw_allowed(rmw, d) || verify_fail(v, op, "there is no atomic '%s' of %s", rmw, dtype_info[d].name);
}

bool
check_ATOMIC_CAS(Verifier *v, const Op *op)
{
  if (!pointer_operand(v, op) || !check_pointee(v, op, OPERAND(op, ATOMIC_CAS, expected)) ||
      !check_pointee(v, op, OPERAND(op, ATOMIC_CAS, value)) || !check_mask(v, op) || !result_pointee(v, op))
    return false;
  DType d = IN_TYPE(op, ATOMIC_CAS, p)->dt;
  return dtype_bits(d) >= 16 || verify_fail(v, op, "there is no compare-and-swap of %s", dtype_info[d].name);
}

/* ---- tensor cores ---- */

static bool
dot_types(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, DOT, a), *b = IN_TYPE(op, DOT, b), *acc = IN_TYPE(op, DOT, acc);
  const char *shapes = arena_printf(v->ctx->scratch, "%s, %s and %s", spell(v, a), spell(v, b), spell(v, acc));
  int m = a->rank - 2, n = a->rank - 1;
  bool fits = a->rank >= 2 && b->rank == a->rank && acc->rank == a->rank && a->shape[n] == b->shape[m] &&
              a->shape[m] == acc->shape[m] && b->shape[n] == acc->shape[n];
  for (int d = 0; fits && d < m; d++)
    fits = a->shape[d] == b->shape[d] && a->shape[d] == acc->shape[d];
  if (!fits)
    return verify_fail(v, op, "operands are MxK, KxN and MxN, not %s", shapes);
  if (a->ptr || b->ptr || acc->ptr || !dot_factors_fit(a->dt, b->dt) || !dot_sum_fits(a->dt, acc->dt))
    return verify_fail(v, op, "there is no product of %s", shapes);
  return verify_same(v, op, "accumulator and result", acc, out_type(op));
}

static bool
dot_warps(Verifier *v, const Op *op, u32 *warps)
{
  const Attr *a = op_attr(op, AT_WARPS);
  u32 all = 1;
  if (!a || a->ints.n != out_type(op)->rank)
    return verify_fail(v, op, "a tensor-core instruction needs warps along each dimension");
  for (u32 i = 0; i < a->ints.n; i++) {
    i64 w = a->ints.v[i];
    if (w < 1 || w > 32 || !is_pow2((u64)w))
      return verify_fail(v, op, "warps along a dimension are a power of two up to 32");
    warps[i] = (u32)w;
    all *= warps[i];
  }
  u32 have = block_team(op->block).warps;
  u32 columns = out_type(op)->shape[1];
  if (op_int(op, AT_GROUPED, 0) && (a->ints.n != 2 || warps[0] % WGMMA_GROUP || !is_pow2(columns) || columns < 8 * warps[1]))
    return verify_fail(v, op, "warpgroups share columns, a power of two from 8 for each on, of two dimensions");
  return all == have || verify_fail(v, op, "warps multiply to %u, the kernel has %u", all, have);
}

static bool
dot_instruction(Verifier *v, const Op *op, const char *mma, const Type *a, const Type *b)
{
  const Mma *row = mma_find(mma, out_type(op)->dt);
  if (row && row->sparse == (op->code == OP_DOT_SPARSE) && row->factor[0] == a->dt && row->factor[1] == b->dt)
    return true;
  return verify_fail(v, op, "no tensor-core instruction '%s' takes %s and gives %s", mma, spell(v, a), spell(v, out_type(op)));
}

/* Layouts of a dot on tensor cores: those that its attributes ask for. */
static bool
dot_mma_layouts(Verifier *v, const Op *op)
{
  static const char *const names[][3] = {{"operand a", "operand b"}, {"operand a", "metadata", "operand b"}};
  const Type *acc = dot_acc(op)->type;
  if (!layout_expected(v, op, "the accumulator", acc, dot_sum_layout(v->ctx, op)))
    return false;
  for (u32 i = 0; i + 1 < op->noperands; i++) {
    const Type *t = op_operand(op, i)->type;
    if (!layout_expected(v, op, names[op->code == OP_DOT_SPARSE][i], t, dot_operand_layout(v->ctx, op, i, t->shape)))
      return false;
  }
  return true;
}

static bool
dot_fma_layouts(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, DOT, a), *b = IN_TYPE(op, DOT, b), *acc = IN_TYPE(op, DOT, acc);
  return layout_expected(v, op, "operand a", a, layout_fma_operand(v->ctx, 0, a->shape, acc->layout)) &&
         layout_expected(v, op, "operand b", b, layout_fma_operand(v->ctx, 1, b->shape, acc->layout));
}

bool
check_DOT(Verifier *v, const Op *op)
{
  const char *mma = op_str(op, AT_MMA, NULL);
  u32 warps[MAX_RANK];
  if (!dot_types(v, op) || (mma && !(dot_instruction(v, op, mma, IN_TYPE(op, DOT, a), IN_TYPE(op, DOT, b)) && dot_warps(v, op, warps))))
    return false;
  if (!placed(v, IN_TYPE(op, DOT, a), IN_TYPE(op, DOT, b)) || !placed(v, IN_TYPE(op, DOT, acc), out_type(op)))
    return true;
  if (!mma)
    return dot_fma_layouts(v, op);
  return dot_mma_layouts(v, op);
}

static bool
sparse_types(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, DOT_SPARSE, a), *b = IN_TYPE(op, DOT_SPARSE, b), *acc = IN_TYPE(op, DOT_SPARSE, acc);
  const char *why = sparse_error(v->ctx, a, IN_TYPE(op, DOT_SPARSE, meta), b);
  if (why)
    return verify_fail(v, op, "%s", why);
  bool fits = acc->rank == a->rank && !acc->ptr && acc->shape[acc->rank - 1] == b->shape[b->rank - 1];
  for (u32 d = 0; fits && d + 1u < acc->rank; d++)
    fits = acc->shape[d] == a->shape[d];
  if (!fits || !dot_sum_fits(a->dt, acc->dt))
    return verify_fail(v, op, "there is no product of %s and %s in %s", spell(v, a), spell(v, b), spell(v, acc));
  return verify_same(v, op, "accumulator and result", acc, out_type(op));
}

bool
check_DOT_SPARSE(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, DOT_SPARSE, a), *b = IN_TYPE(op, DOT_SPARSE, b), *m = IN_TYPE(op, DOT_SPARSE, meta), *acc = out_type(op);
  const char *mma = op_str(op, AT_MMA, NULL);
  u32 warps[MAX_RANK];
  if (!sparse_types(v, op) || (mma && !(dot_instruction(v, op, mma, a, b) && dot_warps(v, op, warps))))
    return false;
  if (!placed(v, a, b) || !placed(v, m, acc) || !placed(v, IN_TYPE(op, DOT_SPARSE, acc), acc))
    return true;
  if (!mma)
    return verify_fail(v, op, "only tensor cores do it");
  return dot_mma_layouts(v, op);
}

/* ---- regions ---- */

/* Of an `if`, a `for` or a `while`: the region's arguments are the carried values, behind a counter. */
static bool
region_args(Verifier *v, const Op *op, u32 region)
{
  const Block *b = op->regions[region];
  u32 n = op_is_loop(op) ? op->nresults : 0, from = loop_first_arg(op);
  if (b->nargs != from + n)
    return verify_fail(v, op, "region %u has %u arguments instead of %u", region, b->nargs, from + n);
  for (u32 i = 0; i < n; i++)
    if (!verify_same(v, op, "carried value and region argument", loop_init(op, i)->type, b->args[from + i]->type))
      return false;
  return true;
}

/* The region ends in `code`, which passes values of the results' types. */
static bool
region_passes(Verifier *v, const Op *op, u32 region, OpCode code)
{
  const Op *end = op->regions[region]->last;
  if (!op_has(end, T_TERM))
    return false;            /* reported where it stands */
  if (end->code != code)
    return verify_fail(v, op, "region %u ends in '%s' instead of '%s'", region, op_info(end->code)->name,
                       op_info(code)->name);
  u32 from = yield_first(end);
  if (end->noperands != from + op->nresults)
    return verify_fail(v, end, "it passes %u values instead of %u", end->noperands - (end->noperands >= from ? from : 0),
                       op->nresults);
  for (u32 i = 0; i < op->nresults; i++) {
    const Value *x = end->operands[from + i].value;
    if (!x || !verify_same(v, end, "passed value and result", x->type, op->results[i]->type))
      return false;
  }
  return true;
}

static bool
carried(Verifier *v, const Op *op)
{
  u32 n = op->noperands - loop_first_init(op);
  if (op->nresults != n)
    return verify_fail(v, op, "it carries %u values and has %u results", n, op->nresults);
  for (u32 i = 0; i < n; i++)
    if (!verify_same(v, op, "carried value and result", loop_init(op, i)->type, op->results[i]->type))
      return false;
  return true;
}

/* The combine region works on single elements and touches nothing else. */
static bool
combine_region(Verifier *v, const Op *op)
{
  for (const Op *inner = op->regions[0]->first; inner; inner = inner->next) {
    if (inner->nregions || (!op_has(inner, T_PURE) && !op_has(inner, T_TERM)))
      return verify_fail(v, inner, "it does not belong into a reduction");
    for (u32 i = 0; i < inner->nresults; i++)
      if (type_is_tile(inner->results[i]->type))
        return verify_fail(v, inner, "a reduction works on single elements, not on %s",
                           spell(v, inner->results[i]->type));
  }
  return true;
}

/* What a reduction of t along axis gives; NULL if its layout is not known to fit. */
static const Type *
reduced(Verifier *v, const Type *t, int axis)
{
  u32 shape[MAX_RANK] = {0};
  if (t->rank == 1)
    return type_elem(v->ctx, t);
  for (int i = 0; i < t->rank - 1; i++)
    shape[i] = t->shape[i + (i >= axis)];
  const Layout *l = t->layout && verify_layout_fits(t) ? layout_slice(v->ctx, t->layout, axis) : NULL;
  return type_tile(v->ctx, type_elem(v->ctx, t), t->rank - 1, shape, l);
}

static bool
fold_operand(Verifier *v, const Op *op, u32 i, i64 axis)
{
  const Block *b = op->regions[0];
  const Type *t = in_type(op, i), *elem = type_elem(v->ctx, t);
  if (!tile_operand(v, op, i))
    return false;
  if (axis >= t->rank)
    return verify_fail(v, op, "%s has no dimension %lld", spell(v, t), (long long)axis);
  return verify_same(v, op, "shapes of the operands", type_with_elem(v->ctx, t, elem),
                     type_with_elem(v->ctx, IN_TYPE(op, REDUCE, xs), elem)) &&
         verify_same(v, op, op->code == OP_SCAN ? "operand and result" : "reduced operand and result",
                     op->code == OP_SCAN ? t : reduced(v, t, (int)axis), op->results[i]->type) &&
         verify_same(v, op, "element and region argument", elem, b->args[i]->type) &&
         verify_same(v, op, "element and region argument", elem, b->args[op->noperands + i]->type);
}

static bool
fold_yield(Verifier *v, const Op *op)
{
  const Op *end = op->regions[0]->last;
  if (!op_has(end, T_TERM))
    return false;
  if (end->code != OP_YIELD || end->noperands != op->nresults)
    return verify_fail(v, end, "its region yields %u values", op->nresults);
  for (u32 i = 0; i < op->nresults; i++)
    if (!end->operands[i].value ||
        !verify_same(v, end, "yielded value and element", end->operands[i].value->type, op->regions[0]->args[i]->type))
      return false;
  return true;
}

static bool
check_fold(Verifier *v, const Op *op)
{
  u32 n = op->noperands;
  if (!n || op->nresults != n || op->regions[0]->nargs != 2 * n)
    return verify_fail(v, op, "%u operands need as many results and twice as many region arguments, here are %u and %u",
                       n, op->nresults, op->regions[0]->nargs);
  for (u32 i = 0; i < n; i++)
    if (!fold_operand(v, op, i, op_int(op, AT_AXIS, 0)))
      return false;
  return combine_region(v, op) && fold_yield(v, op);
}

bool
check_REDUCE(Verifier *v, const Op *op)
{
  return check_fold(v, op);
}

/* What a map does to an element: scalar ops without effect, loops and ifs of them, of nothing but the region's arguments. */
static bool
map_region(Verifier *v, const Op *map, const Block *b)
{
  for (const Op *op = b->first; op; op = op->next) {
    bool flow = op_is_loop(op) || op->code == OP_IF;
    if (!flow && !op_has(op, T_PURE) && !op_has(op, T_TERM))
      return verify_fail(v, op, "it does not belong into a map");
    for (u32 i = 0; i < op->nresults; i++)
      if (type_is_tile(op->results[i]->type))
        return verify_fail(v, op, "a map works on single elements, not on %s", spell(v, op->results[i]->type));
    for (u32 i = 0; i < op->noperands; i++)
      if (op_operand(op, i) && !value_within(op_operand(op, i), map))
        return verify_fail(v, op, "operand %u comes from outside of the map", i);
    for (u32 r = 0; r < op->nregions; r++)
      if (!map_region(v, map, op->regions[r]))
        return false;
  }
  return true;
}

static bool
map_operands(Verifier *v, const Op *op)
{
  const Block *b = op->regions[0];
  if (!op->noperands || b->nargs != op->noperands)
    return verify_fail(v, op, "%u operands need as many region arguments, here are %u", op->noperands, b->nargs);
  for (u32 i = 0; i < op->noperands; i++) {
    const Type *t = in_type(op, i), *elem = type_elem(v->ctx, t), *like = type_with_elem(v->ctx, IN_TYPE(op, MAP, xs), elem);
    if (!tile_operand(v, op, i) || !verify_same(v, op, "shapes of the operands", t, like) ||
        !verify_same(v, op, "element and region argument", elem, b->args[i]->type))
      return false;
  }
  return true;
}

static bool
map_results(Verifier *v, const Op *op)
{
  const Op *end = op->regions[0]->last;
  if (!op_has(end, T_TERM))
    return false;
  if (end->code != OP_YIELD || !op->nresults || end->noperands != op->nresults)
    return verify_fail(v, end, "its region yields a value for each result, of which there are some");
  for (u32 i = 0; i < op->nresults; i++) {
    const Value *x = end->operands[i].value;
    if (!x || type_is_tile(x->type) || type_is_shared(x->type))
      return verify_fail(v, end, "it yields single elements");
    if (!verify_same(v, end, "yielded elements and result", type_with_elem(v->ctx, IN_TYPE(op, MAP, xs), x->type), op->results[i]->type))
      return false;
  }
  return true;
}

bool
check_MAP(Verifier *v, const Op *op)
{
  return map_operands(v, op) && map_region(v, op, op->regions[0]) && map_results(v, op);
}

bool
check_BUTTERFLY(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, BUTTERFLY, x);
  i64 axis = op_int(op, AT_AXIS, 0), mask = op_int(op, AT_MASK, 0);
  if (!tile_operand(v, op, SLOT(BUTTERFLY, x)) || !verify_same(v, op, "operand and result", t, op_result(op)->type))
    return false;
  if (axis >= t->rank)
    return verify_fail(v, op, "%s has no dimension %lld", spell(v, t), (long long)axis);
  return (mask > 0 && mask < (i64)t->shape[axis] && t->shape[axis] % next_pow2((u32)mask + 1) == 0) ||
         verify_fail(v, op, "exclusive-or with %lld leads out of %u elements", (long long)mask, t->shape[axis]);
}

bool
check_SCAN(Verifier *v, const Op *op)
{
  return check_fold(v, op);
}

bool
check_FOR(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, FOR, lo);
  if (type_is_tile(t) || !type_is_int(t))
    return verify_fail(v, op, "bounds are integers, not %s", spell(v, t));
  if (!verify_same(v, op, "bounds", t, IN_TYPE(op, FOR, hi)) || !verify_same(v, op, "bounds and step", t, IN_TYPE(op, FOR, step)))
    return false;
  return carried(v, op) && region_args(v, op, 0) && verify_same(v, op, "bounds and loop index", t, loop_counter(op)->type) &&
         region_passes(v, op, 0, OP_YIELD);
}

bool
check_WHILE(Verifier *v, const Op *op)
{
  return carried(v, op) && region_args(v, op, 0) && region_args(v, op, 1) && region_passes(v, op, 0, OP_CONDITION) &&
         region_passes(v, op, 1, OP_YIELD);
}

static bool
scalar_condition(Verifier *v, const Op *op, const Type *t)
{
  return t == scalar(v, DT_I1) || verify_fail(v, op, "the condition is i1, not %s", spell(v, t));
}

bool
check_IF(Verifier *v, const Op *op)
{
  return scalar_condition(v, op, IN_TYPE(op, IF, c)) && region_args(v, op, 0) && region_args(v, op, 1) &&
         region_passes(v, op, 0, OP_YIELD) && region_passes(v, op, 1, OP_YIELD);
}

/* ---- terminators: what they pass is checked with their parent ---- */

bool
check_YIELD(Verifier *v, const Op *op)
{
  return op->block->parent || verify_fail(v, op, "a kernel ends in 'return'");
}

bool
check_CONDITION(Verifier *v, const Op *op)
{
  const Op *parent = op->block->parent;
  if (!parent || parent->code != OP_WHILE || parent->regions[0] != op->block)
    return verify_fail(v, op, "it ends the first region of 'while' only");
  return scalar_condition(v, op, IN_TYPE(op, CONDITION, c));
}

bool
check_RETURN(Verifier *v, const Op *op)
{
  return !op->block->parent || verify_fail(v, op, "it ends the kernel's body only");
}

bool
check_ASSERT(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, ASSERT, c);
  return type_is_bool(t) || verify_fail(v, op, "the condition is i1, not %s", spell(v, t));
}

bool
check_PRINT(Verifier *v, const Op *op)
{
  const Type *tile = NULL;
  for (u32 i = 0; i < op->noperands; i++) {
    const Type *t = in_type(op, i);
    if (type_is_tile(t) && tile && (!type_same_shape(t, tile) || t->layout != tile->layout))
      return verify_fail(v, op, "the tiles %s and %s differ", spell(v, tile), spell(v, t));
    tile = type_is_tile(t) ? t : tile;
  }
  return op->noperands <= 16 || verify_fail(v, op, "it prints at most 16 values");
}

bool
check_ASSUME(Verifier *v, const Op *op)
{
  return scalar_condition(v, op, IN_TYPE(op, ASSUME, c));
}

/* ---- placement ---- */

bool
check_CONVERT_LAYOUT(Verifier *v, const Op *op)
{
  const Type *a = IN_TYPE(op, CONVERT_LAYOUT, x), *r = out_type(op);
  if (v->phase == PHASE_TILE && !op_attr(op, AT_LAYOUT))
    return verify_fail(v, op, "before placement a conversion names the layout it wants");
  if (!tile_operand(v, op, SLOT(CONVERT_LAYOUT, x)) || type_with_layout(v->ctx, r, a->layout) != a)
    return verify_fail(v, op, "operand and result differ in more than the layout: %s and %s", spell(v, a), spell(v, r));
  return v->phase != PHASE_SCHED || op_attr(op, AT_KIND) ||
         verify_fail(v, op, "a scheduled conversion has a kind");
}

bool
check_BARRIER(Verifier *v, const Op *op)
{
  return true;
}
