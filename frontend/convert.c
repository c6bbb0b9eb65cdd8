/* convert.c - how values meet: promotion, casts, broadcasting, assignment.
 *
 * Promotion: the kinds are ordered i1 < integers < floats and the higher kind wins; within a kind the wider type wins;
 * of two 16-bit floats neither does and f32 comes out; an integer meets an unsigned one of its width as unsigned.
 * A literal has no type: it takes the type of what it meets if its kind is not higher. There is no difference between
 * scalars and tiles here: a run-time i64 scalar makes an i32 tile i64, so that offsets are never cut short silently. */
#include "sema.h"

/* DType, NUM_INT or NUM_FLOAT of data that is not a pointer. */
int
val_num(Val v)
{
  if (v.kind == V_IR)
    return (int)v.ir->type->dt;
  return v.k.form == CF_TYPED ? (int)v.k.dt : v.k.form == CF_INT ? NUM_INT : NUM_FLOAT;
}

/* The dtype of a literal nothing else decides about; k may be NULL. */
DType
num_dtype(Lower *L, int num, const Const *k)
{
  (void)L;
  if (num == NUM_FLOAT)
    return DT_F32;
  if (num == NUM_INT)
    return !k || const_fits(*k, DT_I32) ? DT_I32 : DT_I64;
  return (DType)num;
}

/* The type v has when nothing else decides; data only. */
const Type *
val_type_of(Lower *L, Val v)
{
  return v.kind == V_IR ? v.ir->type : type_scalar(L->c, num_dtype(L, val_num(v), &v.k));
}

static const char *
list_str(Lower *L, Val v)
{
  Buf b = {.arena = L->a};
  buf_putc(&b, v.kind == V_TUPLE ? '(' : '[');
  for (u32 i = 0; i < v.list.n && i < 8; i++)
    buf_printf(&b, "%s%s", i ? ", " : "", val_is_list(v.list.v[i]) ? "..." : val_str(L, v.list.v[i]));
  buf_puts(&b, v.list.n > 8 ? ", ..." : "");
  buf_putc(&b, v.kind == V_TUPLE ? ')' : ']');
  return buf_str(&b);
}

/* Its type, or what it is, for messages. */
const char *
val_str(Lower *L, Val v)
{
  switch (v.kind) {
  case V_POISON: return "an error";
  case V_VOID: return "nothing";
  case V_NONE: return "None";
  case V_IR: return type_str(L->c, v.ir->type);
  case V_CONST:
    if (v.k.form == CF_TYPED)
      return dtype_info[v.k.dt].name;
    return arena_printf(L->a, "the literal %s", const_str(L, v.k));
  case V_TYPE: return arena_printf(L->a, "the type %s", type_str(L->c, v.type));
  case V_FN: return arena_printf(L->a, "the function '%s'", v.fn.decl->name);
  case V_BUILTIN: return arena_printf(L->a, "the function '%s'", v.builtin->name);
  case V_TUPLE: case V_LIST: return list_str(L, v);
  case V_STR: return "a string";
  case V_BUFFER: return type_str(L->c, v.ir->type);
  case V_LAYOUT: return arena_printf(L->a, "the layout %s", layout_spec_text(v.layout));
  case V_FORMAT: return arena_printf(L->a, "the packed format %s", v.format->name);
  case V_STRUCT: return arena_printf(L->a, "the struct '%s'", v.fn.decl->name);
  case V_RECORD: return v.list.of->name;
  }
  return "?";
}

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
  return false;
}

/* The run-time value of data under its own type. */
Value *
val_value(Lower *L, Val v)
{
  L->b.span = v.span;
  return v.kind == V_IR ? v.ir : const_value(L, v.k, val_type_of(L, v));
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

/* v as dt by implicit rules: a literal integer must fit, a literal float must be wanted as a float. A constant gets the
 * extents of `like` (NULL: none). */
Value *
val_as(Lower *L, Val v, DType dt, const Type *like)
{
  L->b.span = v.span;
  if (v.kind == V_IR)
    return value_cast(L, v.ir, dt);
  bool is_int = !const_is_float(v.k);
  if ((is_int && !dtype_is_float(dt) && !const_fits(v.k, dt)) || (!is_int && !dtype_is_float(dt))) {
    ERR(L, v.span, E_CONST_RANGE, const_str(L, v.k), dtype_info[dt].name);
    return NULL;
  }
  Const k;
  const_cast(v.k, dt, ROUND_NEAREST, false, &k);
  const Type *t = type_scalar(L->c, dt);
  return const_value(L, k, like ? type_with_elem(L->c, like, t) : t);
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

/* The explicit conversion to(v). */
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
  if (v.kind == V_CONST) {
    Const k;
    if (const_cast(v.k, to, round_find(round, to), sat, &k))
      return val_const(k, at);
    ERR(L, at, E_CONST_RANGE, const_str(L, v.k), dtype_info[to].name);
    return val_poison(at);
  }
  L->b.span = at;
  Value *r = sat && to == v.ir->type->dt ? clamp_cast(L, v.ir) : value_cast(L, v.ir, to);
  if (r != v.ir && to != DT_I1)
    set_cast_options(r, round, sat);
  return val_ir(r, at);
}

/* ---- broadcasting ---- */

/* x with the extents of tile type `shape`; they must agree where x's are not 1. */
Value *
value_stretch(Lower *L, Value *x, const Type *shape)
{
  if (!type_is_tile(shape) || type_same_shape(x->type, shape))
    return x;
  return type_is_tile(x->type) ? ir_broadcast(&L->b, x, shape->shape) : ir_splat(&L->b, x, shape);
}

static bool
shapes_differ(Lower *L, Span at, const char *what, const Type *a, const Type *b, const Val *va, const Val *vb)
{
  Diag *d = ERR(L, at, E_SHAPES, what, va ? val_str(L, *va) : type_str(L->c, a), vb ? val_str(L, *vb) : type_str(L->c, b));
  if (va)
    note_value(L, d, *va);
  if (vb)
    note_value(L, d, *vb);
  if (va)
    hint_reduction(L, d, *va);
  if (vb)
    hint_reduction(L, d, *vb);
  if (a->rank != b->rank)
    diag_hint(L->c, d, "tiles of different rank do not meet; insert dimensions of extent 1 with x[:, None] or x[None, :]");
  return false;
}

/* Extents of a and b together in shape. */
static bool
meet(const Type *a, const Type *b, u32 *shape)
{
  if (a->rank != b->rank)
    return false;
  for (u32 i = 0; i < a->rank; i++) {
    if (a->shape[i] != b->shape[i] && a->shape[i] != 1 && b->shape[i] != 1)
      return false;
    shape[i] = a->shape[i] > b->shape[i] ? a->shape[i] : b->shape[i];
  }
  return true;
}

/* Stretch n values (NULL: absent) to one shape. origin, if not NULL, says where each came from. */
bool
values_broadcast(Lower *L, Span at, const char *what, u32 n, Value **vals, const Val *origin)
{
  const Type *all = NULL;
  u32 first = 0;
  for (u32 i = 0; i < n; i++) {
    const Type *t = vals[i] ? vals[i]->type : NULL;
    u32 shape[MAX_RANK];
    if (!t || !type_is_tile(t) || (all && type_same_shape(all, t)))
      continue;
    if (!all) {
      all = t;
      first = i;
    } else if (!meet(all, t, shape)) {
      return shapes_differ(L, at, what, vals[first]->type, t, origin ? &origin[first] : NULL, origin ? &origin[i] : NULL);
    } else {
      all = type_tile(L->c, type_elem(L->c, t), t->rank, shape, NULL);
    }
  }
  if (all && !shape_check(L, at, all->rank, all->shape))
    return false;
  L->b.span = at;
  for (u32 i = 0; all && i < n; i++)
    if (vals[i])
      vals[i] = value_stretch(L, vals[i], all);
  return true;
}

/* ---- assignment ---- */

/* Values of type t could be stretched to e's extents. */
static bool
stretches(const Type *t, const Type *e)
{
  u32 shape[MAX_RANK];
  return type_is_tile(e) && (!type_is_tile(t) || (meet(t, e, shape) && !memcmp(shape, e->shape, e->rank * sizeof *shape)));
}

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
  if (kind)
    diag_hint(L->c, d, "conversions are written: %s(...)%s", dtype_info[t->dt].name,
              declared.hi ? arena_printf(L->a, "; or declare %s as %s", what, type_str(L->c, e)) : "");
  else if (e && declared.hi && stretches(t, e))
    diag_hint(L->c, d, "declare %s as %s: scalars fill tiles, and extents of 1 stretch, where a type is written", what, type_str(L->c, e));
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
  Const k;
  const_cast(v.k, t->dt, ROUND_NEAREST, false, &k);
  L->b.span = v.span;
  return type_is_tile(t) ? val_ir(const_value(L, k, t), v.span) : val_const(k, v.span);
}

/* v where a value of type t is declared: literals adapt, scalars fill tiles, extents of 1 stretch. */
Val
val_assign(Lower *L, Span at, Val v, const Type *t, const char *what, Span declared)
{
  u32 shape[MAX_RANK];
  if (v.kind == V_POISON)
    return v;
  if (v.kind == V_CONST)
    return assign_const(L, at, v, t, what, declared);
  if (v.kind != V_IR || type_elem(L->c, v.ir->type) != type_elem(L->c, t))
    return assign_mismatch(L, at, v, t, what, declared);
  if (type_is_tile(v.ir->type) && !type_same_shape(v.ir->type, t) &&
      (!type_is_tile(t) || !meet(v.ir->type, t, shape) || memcmp(shape, t->shape, t->rank * sizeof *shape)))
    return assign_mismatch(L, at, v, t, what, declared);
  L->b.span = at;
  return val_ir(value_stretch(L, v.ir, t), v.span);
}
