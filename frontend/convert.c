/* convert.c - how types meet: promotion, casts, assignment.
 *
 * Promotion: the kinds are ordered i1 < integers < floats and the higher kind wins; within a kind the wider type wins;
 * of two 16-bit floats neither does and f32 comes out; an integer meets an unsigned one of its width as unsigned.
 * A literal has no type: it takes the type of what it meets if its kind is not higher. There is no difference between
 * scalars and tiles here: a run-time i64 scalar makes an i32 tile i64, so that offsets are never cut short silently. */
#include "sema.h"

/* Reports unless v is a number, truth value or pointer (or a tile of them). */
bool
val_need_data(Lower *L, Val v, const char *what)
{
  if (val_is_data(v))
    return true;
  if (v.kind == V_POISON)
    return false;
  Diag *d = ERR(L, v.span, E_NOT_VALUE, what, val_str(L, v));
  if (v.kind == V_BUFFER)
    diag_hint(L->c, d, "shared memory is read with shared_load(s)");
  if (v.kind == V_TENSOR)
    diag_hint(L->c, d, "tensors are copied with tma_load and tma_store; address(t) and stride(t, axis) say where elements lie");
  if (v.kind == V_NONE && v.from.hi)
    hint_none(L, d, v);
  return false;
}

/* v as a type, or poison. */
Val
val_need_type(Lower *L, Val v)
{
  if (v.kind == V_TYPE || v.kind == V_POISON)
    return v;
  ERR(L, v.span, E_NOT_TYPE, val_str(L, v));
  return val_poison(v.span);
}

/* ---- promotion ---- */

static DType
promote_dtypes(DType a, DType b)
{
  bool fa = dtype_is_float(a), fb = dtype_is_float(b);
  if (a == b)
    return a;
  if (fa != fb)
    return fa ? a : b;
  if (a == DT_I1 || b == DT_I1)
    return a == DT_I1 ? b : a;
  if (dtype_bits(a) != dtype_bits(b))
    return dtype_bits(a) > dtype_bits(b) ? a : b;
  if (fa)
    return DT_F32;
  return dtype_is_signed(a) ? b : a;
}

/* What an operation on a and b is done in. */
int
num_promote(int a, int b)
{
  if (b >= NUM_INT && a < NUM_INT)
    return num_promote(b, a);
  if (a < NUM_INT)
    return (int)promote_dtypes((DType)a, (DType)b);
  if (b >= NUM_INT)
    return a > b ? a : b;
  if (a == NUM_INT)
    return b == DT_I1 ? (int)DT_I32 : b;
  return dtype_is_float((DType)b) ? b : (int)DT_F32;
}

/* Constant v brought to num; integer literals must fit, else reports. */
bool
const_promote(Lower *L, Val v, int num, Const *out)
{
  *out = v.k;
  if ((num == NUM_FLOAT || (num < NUM_INT && dtype_is_float((DType)num))) &&
      !const_keeps_remainder(L, v, num == NUM_FLOAT ? DT_F32 : (DType)num))
    return false;
  if (num == NUM_FLOAT)
    *out = (Const){.form = CF_FLOAT, .f = const_double(v.k)};
  if (num >= NUM_INT)
    return true;
  if (!const_is_float(v.k) && !dtype_is_float((DType)num) && !const_fits(v.k, (DType)num)) {
    ERR(L, v.span, E_CONST_RANGE, const_str(L, v.k), dtype_info[num].name);
    return false;
  }
  return const_cast(v.k, (DType)num, round_find(NULL, (DType)num), false, out);
}

/* ---- casts ---- */

/* x converted to dtype `to`; to i1: whether it is not zero. */
Value *
value_cast(Lower *L, Value *x, DType to)
{
  if (to != DT_I1 || x->type->dt == DT_I1)
    return ir_cast(&L->b, x, to);
  if (type_is_float(x->type) && dtype_bits(x->type->dt) == 8)
    x = ir_cast(&L->b, x, DT_F32);
  return ir_cmp(&L->b, "ne", x, ir_const_bits(&L->b, x->type, 0));
}

/* v as dt by implicit rules: a literal integer must fit, a literal float must be wanted as a float, a quotient of integers becomes no
 * float (truncation.c). A constant gets the extents of `like` (NULL: none). */
Value *
val_as(Lower *L, Val v, DType dt, const Type *like)
{
  L->b.span = v.span;
  if (v.kind == V_IR) {
    Value *r = value_cast(L, v.ir, dt);
    return r == v.ir || value_keeps_remainder(L, v.span, r) ? r : NULL;
  }
  bool is_int = !const_is_float(v.k);
  if (dtype_is_float(dt) && !const_keeps_remainder(L, v, dt))
    return NULL;
  if ((is_int && !dtype_is_float(dt) && !const_fits(v.k, dt)) || (!is_int && !dtype_is_float(dt))) {
    ERR(L, v.span, E_CONST_RANGE, const_str(L, v.k), dtype_info[dt].name);
    return NULL;
  }
  Const k;
  const_cast(v.k, dt, ROUND_NEAREST, false, &k);
  const Type *t = type_scalar(L->c, dt);
  return val_const_value(L, k, like ? type_with_elem(L->c, like, t) : t);
}

static void
set_cast_options(Value *v, const char *round, bool sat)
{
  if (round && v->def)
    op_set_str(v->def, AT_ROUND, round);
  if (sat && v->def)
    op_set_int(v->def, AT_SAT, 1);
}

/* A float in its own type, to be clamped to the finite range. */
static Value *
clamp_cast(Lower *L, Value *x)
{
  return type_is_float(x->type) ? op_result(op_create(&L->b, OP_CAST, 1, &x, 1, &x->type, 0)) : x;
}

/* The explicit conversion to(v). Those that the library writes are its way to take integers as floats. */
Val
val_cast(Lower *L, Span at, Val v, DType to, const char *round, bool sat)
{
  if (!val_need_data(L, v, "a cast"))
    return val_poison(at);
  if (val_is_ptr(v)) {
    Diag *d = ERR(L, at, E_CONVERT, val_str(L, v), dtype_info[to].name);
    diag_hint(L->c, d, "an address is read with bitcast(p, i64)");
    return val_poison(at);
  }
  bool by_library = L->frame->unit->library && dtype_is_float(to);
  if (v.kind == V_CONST) {
    Const k;
    if (by_library && !const_keeps_remainder(L, v, to))
      return val_poison(at);
    if (const_cast(v.k, to, round_find(round, to), sat, &k))
      return val_const(k, at);
    ERR(L, at, E_CONST_RANGE, const_str(L, v.k), dtype_info[to].name);
    return val_poison(at);
  }
  L->b.span = at;
  Value *r = sat && to == v.ir->type->dt ? clamp_cast(L, v.ir) : value_cast(L, v.ir, to);
  if (by_library && r != v.ir && !value_keeps_remainder(L, at, r))
    return val_poison(at);
  if (r != v.ir && to != DT_I1)
    set_cast_options(r, round, sat);
  return val_ir(r, at);
}

/* ---- indices ---- */

/* x, integers that pick among n things where mask (NULL: everywhere), as i32: out of range is an error, which the library does not make. */
Value *
value_index(Lower *L, Value *x, Value *mask, u32 n)
{
  DType dt = x->type->dt;
  u32 bits = dtype_bits(dt) - dtype_is_signed(dt);
  bool always = L->frame->unit->library || (bits < 32 && n > 1ull << bits);
  return value_cast(L, always ? x : ir_bounded(&L->b, x, mask, n), DT_I32);
}

/* ---- assignment ---- */

static Val
assign_mismatch(Lower *L, Span at, Val v, const Type *t, const char *what, Span declared)
{
  Diag *d = ERR(L, at, E_ASSIGN_TYPE, what, type_str(L->c, t), val_str(L, v));
  if (declared.hi)
    diag_note(L->c, d, declared, "%s gets its type %s here", what, type_str(L->c, t));
  const Type *e = v.kind == V_IR ? v.ir->type : NULL;
  bool kind = e && !type_is_ptr(e) && !type_is_ptr(t) && e->dt != t->dt;
  if (e && !type_same_shape(e, t))
    note_value(L, d, v);
  else
    note_source(L, d, v);
  if (e && t->pending != e->pending)
    diag_hint(L->c, d, t->pending ? "an accumulator begins as pending(x)"
                                  : "wgmma_wait makes a value of it; what products add to begins as pending(x)");
  else if (kind)
    diag_hint(L->c, d, "conversions are written: %s(...)%s", dtype_info[t->dt].name,
              declared.hi ? arena_printf(L->a, "; or declare %s as %s", what, type_str(L->c, e)) : "");
  else if (e && declared.hi && shape_broadcasts_to(t, e))
    diag_hint(L->c, d, "declare %s as %s: scalars fill tiles, and extents of 1 broadcast, where a type is written", what,
              type_str(L->c, e));
  return val_poison(at);
}

static Val
assign_const(Lower *L, Span at, Val v, const Type *t, const char *what, Span declared)
{
  bool literal = v.k.form != CF_TYPED, is_float = const_is_float(v.k);
  if (type_is_ptr(t) || (literal ? t->dt == DT_I1 || (is_float && !dtype_is_float(t->dt)) : v.k.dt != t->dt))
    return assign_mismatch(L, at, v, t, what, declared);
  if (!is_float && !dtype_is_float(t->dt) && !const_fits(v.k, t->dt)) {
    ERR(L, v.span, E_CONST_RANGE, const_str(L, v.k), dtype_info[t->dt].name);
    return val_poison(at);
  }
  if (dtype_is_float(t->dt) && !const_keeps_remainder(L, v, t->dt))
    return val_poison(at);
  Const k;
  const_cast(v.k, t->dt, ROUND_NEAREST, false, &k);
  L->b.span = v.span;
  return type_is_tile(t) ? val_ir(val_const_value(L, k, t), v.span) : val_const(k, v.span);
}

/* v where a value of type t is declared: literals adapt, scalars fill tiles, extents of 1 broadcast. */
Val
val_assign(Lower *L, Span at, Val v, const Type *t, const char *what, Span declared)
{
  if (v.kind == V_POISON)
    return v;
  if (v.kind == V_CONST)
    return assign_const(L, at, v, t, what, declared);
  if (v.kind != V_IR || type_elem(L->c, v.ir->type) != type_elem(L->c, t) || v.ir->type->pending != t->pending)
    return assign_mismatch(L, at, v, t, what, declared);
  if (type_is_tile(v.ir->type) && !shape_broadcasts_to(v.ir->type, t))
    return assign_mismatch(L, at, v, t, what, declared);
  L->b.span = at;
  return val_ir(value_broadcast(L, v.ir, t), v.span);
}
