/* builtin_value.c - elementwise functions, selection, conversion, promises and questions. */
#include "sema.h"

/* ---- rows of ops.def under their own name ---- */

/* What a SURFACE op is computed in; false if it cannot be. */
static bool
surface_num(OpCode op, int *num)
{
  u32 traits = op_info(op)->traits;
  bool is_float = *num == NUM_FLOAT || (*num < NUM_INT && dtype_is_float((DType)*num));
  if (*num == DT_I1)
    *num = DT_I32;
  if (is_float && *num < NUM_INT && dtype_bits((DType)*num) == 8)
    *num = DT_F32;
  if (!is_float && !(traits & T_INT))
    *num = *num == NUM_INT ? (int)NUM_FLOAT : (int)DT_F32;
  return !is_float || (traits & T_FLT);
}

static bool
all_const(const Call *c)
{
  for (u32 i = 0; i < c->nargs; i++)
    if (c->args[i].kind != V_CONST)
      return false;
  return true;
}

static bool
fold_surface(Lower *L, Call *c, int num, Const *out)
{
  Const k[3];
  for (u32 i = 0; i < c->nargs; i++)
    if (!const_promote(L, c->args[i], num, &k[i]))
      return false;
  return const_math(c->op, c->nargs, k, out);
}

/* A tile among the arguments, for constants to take its extents. */
static const Type *
some_tile(const Call *c)
{
  for (u32 i = 0; i < c->nargs; i++)
    if (val_is_tile(c->args[i]))
      return c->args[i].ir->type;
  return NULL;
}

/* Any SURFACE op: c->op on c->nargs operands, promoted together. */
Val
builtin_elementwise(Lower *L, Call *c)
{
  int num = -1;
  Value *v[3] = {NULL, NULL, NULL};
  for (u32 i = 0; i < c->nargs; i++) {
    if (!val_need_data(L, c->args[i], c->name))
      return val_poison(c->span);
    if (val_is_ptr(c->args[i])) {
      ERR(L, c->args[i].span, E_ARGUMENT, c->name, "numbers", val_str(L, c->args[i]));
      return val_poison(c->span);
    }
    num = num < 0 ? val_num(c->args[i]) : num_promote(num, val_num(c->args[i]));
  }
  if (!surface_num(c->op, &num)) {
    ERR(L, c->args[0].span, E_ARGUMENT, c->name, "integers", val_str(L, c->args[0]));
    return val_poison(c->span);
  }
  Const k;
  if (all_const(c) && fold_surface(L, c, num, &k))
    return val_const(k, c->span);
  DType dt = num_dtype(L, num, NULL);
  for (u32 i = 0; i < c->nargs; i++)
    if (!(v[i] = val_as(L, c->args[i], dt, some_tile(c))))
      return val_poison(c->span);
  if (!values_broadcast(L, c->span, c->name, c->nargs, v, c->args))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(op_result(op_create(&L->b, c->op, c->nargs, v, 1, &v[0]->type, 0)), c->span);
}

/* Whether what an operator or a function of one op gives may be less exact than it could: in f32, unless somebody asked for exact maths.
 * The library says itself what it wants. */
bool
tiers_wanted(const Lower *L, const Value *exact)
{
  return !L->exact_maths && !L->frame->unit->library && exact->type->dt == DT_F32;
}

/* One number computed in three ways; the rough one is good for 11 digits. */
Value *
value_tiers(Lower *L, Value *exact, Value *close, Value *rough)
{
  Value *ways[3] = {exact, close, rough};
  Op *op = op_create(&L->b, OP_TIERS, 3, ways, 1, &exact->type, 0);
  op_set_int(op, AT_DIGITS, 11);
  return op_result(op);
}

/* sqrt: the hardware's is right but for its last place. */
Val
builtin_sqrt(Lower *L, Call *c)
{
  c->op = OP_SQRT;
  Val r = builtin_elementwise(L, c);
  if (r.kind != V_IR || !op_is(r.ir, OP_SQRT) || !tiers_wanted(L, r.ir))
    return r;
  Value *fast = ir_unary(&L->b, OP_FAST_SQRT, OPERAND(r.ir->def, SQRT, x));
  return val_ir(value_tiers(L, r.ir, fast, fast), c->span);
}

/* A kernel may have asked for the first; so does what is known at compile time. */
Val
builtin_tiers(Lower *L, Call *c)
{
  i64 digits = 0;
  bool narrow;
  if ((c->given[3] && !call_int(L, c, 3, "the digits", &digits)) || !call_bool(L, c, 4, false, &narrow))
    return val_poison(c->span);
  if (c->given[3] && (digits < 1 || digits > 24)) {
    ERR(L, c->args[3].span, E_ARGUMENT, c->name, "1 to 24 digits", val_str(L, c->args[3]));
    return val_poison(c->span);
  }
  c->nargs = 3;
  if (L->exact_maths || all_const(c))
    return c->args[0];
  c->op = OP_TIERS;
  Val r = builtin_elementwise(L, c);
  if (digits && r.kind == V_IR)
    op_set_int(r.ir->def, AT_DIGITS, digits);
  if (narrow && r.kind == V_IR)
    op_set_int(r.ir->def, AT_NARROW, 1);
  return r;
}

/* ---- selection ---- */

static bool
where_arms(Lower *L, Call *c, Value **v)
{
  Val a = c->args[1], b = c->args[2];
  if (!val_need_data(L, a, "where") || !val_need_data(L, b, "where"))
    return false;
  if (val_is_ptr(a) != val_is_ptr(b) || (val_is_ptr(a) && type_elem(L->c, a.ir->type) != type_elem(L->c, b.ir->type))) {
    note_values(L, ERR(L, c->span, E_ARMS, val_str(L, a), val_str(L, b)), 2, (Val[]){a, b});
    return false;
  }
  if (val_is_ptr(a)) {
    v[1] = a.ir;
    v[2] = b.ir;
    return true;
  }
  int num = num_promote(val_num(a), val_num(b));
  DType dt = num_dtype(L, num, NULL);
  if (num == NUM_INT && (!const_fits(a.k, DT_I32) || !const_fits(b.k, DT_I32)))
    dt = DT_I64;
  v[1] = val_as(L, a, dt, some_tile(c));
  v[2] = val_as(L, b, dt, some_tile(c));
  return v[1] && v[2];
}

/* Structs and tuples: part by part. */
static Val
where_many(Lower *L, Call *c)
{
  Val a = c->args[1], b = c->args[2], r = a;
  if (a.kind == V_POISON || b.kind == V_POISON)
    return val_poison(c->span);
  if (a.kind != b.kind || a.list.n != b.list.n || a.list.of != b.list.of) {
    note_values(L, ERR(L, c->span, E_ARMS, val_str(L, a), val_str(L, b)), 2, (Val[]){a, b});
    return val_poison(c->span);
  }
  if (!lower_spend(L, c->span, a.list.n))
    return val_poison(c->span);
  r.span = c->span;
  r.list.v = NEW_ARRAY(L->a, Val, a.list.n + 1);
  for (u32 i = 0; i < a.list.n; i++) {
    Call part = *c;
    part.args[1] = a.list.v[i];
    part.args[2] = b.list.v[i];
    bool fixed = !val_is_data(part.args[1]) && val_same(part.args[1], part.args[2]);
    r.list.v[i] = fixed ? part.args[1] : builtin_where(L, &part);
    if (r.list.v[i].kind == V_POISON)
      return val_poison(c->span);
  }
  return r;
}

Val
builtin_where(Lower *L, Call *c)
{
  Value *v[3];
  Val cond = c->args[0];
  if (!val_is_data(cond) || val_is_ptr(cond) || val_num(cond) != DT_I1) {
    if (cond.kind != V_POISON)
      ERR(L, cond.span, E_ARGUMENT, c->name, "an i1 condition", val_str(L, cond));
    return val_poison(c->span);
  }
  if (val_is_many(c->args[1]) || val_is_many(c->args[2]))
    return where_many(L, c);
  if (cond.kind == V_CONST && c->args[1].kind == V_CONST && c->args[2].kind == V_CONST) {
    Const k;
    bool ok = const_promote(L, c->args[cond.k.i ? 1 : 2], num_promote(val_num(c->args[1]), val_num(c->args[2])), &k);
    return ok ? val_const(k, c->span) : val_poison(c->span);
  }
  if (!where_arms(L, c, v))
    return val_poison(c->span);
  v[0] = val_value(L, cond);
  if (!values_broadcast(L, c->span, c->name, 3, v, c->args))
    return val_poison(c->span);
  L->b.span = c->span;
  return val_ir(ir_select(&L->b, v[0], v[1], v[2]), c->span);
}

/* ---- conversion ---- */

Val
builtin_cast(Lower *L, Call *c)
{
  DType to;
  const char *round;
  bool sat;
  if (!call_dtype(L, c, 1, &to) || !call_word(L, c, 2, ROUND_WORDS, NULL, &round) || !call_bool(L, c, 3, false, &sat))
    return val_poison(c->span);
  return val_cast(L, c->span, c->args[0], to, round, sat);
}

static Val
bitcast_const(Lower *L, Call *c, Val x, DType to)
{
  DType from = num_dtype(L, val_num(x), &x.k);
  Const k;
  if (!const_promote(L, x, (int)from, &k))
    return val_poison(c->span);
  return val_const(const_from_bits(to, const_bits(k, from)), c->span);
}

Val
builtin_bitcast(Lower *L, Call *c)
{
  Val x = c->args[0], t = c->args[1];
  if (!val_need_data(L, x, c->name))
    return val_poison(c->span);
  if (t.kind != V_TYPE || t.type->kind == TY_TILE) {
    ERR(L, t.span, E_ARGUMENT, c->name, "a scalar or pointer type", val_str(L, t));
    return val_poison(c->span);
  }
  const Type *from = val_type_of(L, x);
  if (type_elem_bits(from) != type_elem_bits(t.type))
    return call_error(L, c, c->span, arena_printf(L->a, "%s has %u bits, %s has %u", type_str(L->c, from), type_elem_bits(from),
                                                  type_str(L->c, t.type), type_elem_bits(t.type)));
  if (x.kind == V_CONST && t.type->kind == TY_SCALAR)
    return bitcast_const(L, c, x, t.type->dt);
  Value *v = val_value(L, x);
  L->b.span = c->span;
  const Type *word = type_scalar(L->c, DT_I64);
  if (t.type == type_elem(L->c, v->type))
    return val_ir(v, c->span);
  if (type_is_ptr(v->type) != type_is_ptr(t.type) ? type_is_float(v->type) || type_is_float(t.type) : type_is_ptr(t.type))
    v = ir_bitcast(&L->b, v, word);
  return val_ir(ir_bitcast(&L->b, v, t.type), c->span);
}

/* ---- messages and assertions ---- */

/* An expression as it is written, on one line. */
static const char *
written_text(Lower *L, Span at)
{
  const char *s = source_text(L->c, at.lo);
  char *text = arena_strndup(L->c->perm, s, at.hi - at.lo);
  u32 n = 0;
  for (const char *p = text; *p; p++)
    if (*p > ' ' || (n && text[n - 1] != ' '))
      text[n++] = *p > ' ' ? *p : ' ';
  text[n] = 0;
  return text;
}

Val
builtin_assert(Lower *L, Call *c)
{
  Val v = c->args[0];
  if (!val_is_data(v) || val_is_ptr(v) || val_num(v) != DT_I1) {
    ERR(L, v.span, E_ARGUMENT, c->name, "a truth value or a tile of them", val_str(L, v));
    return val_poison(c->span);
  }
  if (c->given[1] && c->args[1].kind != V_STR) {
    ERR(L, c->args[1].span, E_ARGUMENT, c->name, "a string", val_str(L, c->args[1]));
    return val_poison(c->span);
  }
  Value *x = val_value(L, v);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_ASSERT, 1, &x, 0, NULL, 0);
  bool said = c->given[1] && c->args[1].str[0];
  op_set_str(op, AT_MESSAGE, said ? c->args[1].str : written_text(L, v.span));
  return val_void(c->span);
}

Val
builtin_print(Lower *L, Call *c)
{
  Value *v[BUILTIN_ARGS_MAX];
  Val origin[BUILTIN_ARGS_MAX];
  u32 n = 0, ntiles = 0;
  if (c->args[0].kind != V_STR) {
    ERR(L, c->args[0].span, E_ARGUMENT, c->name, "a string first", val_str(L, c->args[0]));
    return val_poison(c->span);
  }
  for (u32 i = 1; i < c->nargs; i++) {
    if (!c->given[i])
      continue;
    if (!val_need_data(L, c->args[i], c->name))
      return val_poison(c->span);
    origin[n] = c->args[i];
    v[n] = val_value(L, c->args[i]);
    ntiles += type_is_tile(v[n++]->type);
  }
  if (ntiles && !values_broadcast(L, c->span, c->name, n, v, origin))
    return val_poison(c->span);
  L->b.span = c->span;
  op_set_str(op_create(&L->b, OP_PRINT, n, v, 0, NULL, 0), AT_MESSAGE, c->args[0].str);
  return val_void(c->span);
}

Val
builtin_static_print(Lower *L, Call *c)
{
  Buf line = {.arena = L->a};
  for (u32 i = 0; i < BUILTIN_ARGS_MAX; i++) {
    Val v = c->args[i];
    if (!c->given[i])
      continue;
    if (v.kind == V_POISON)
      return v;
    buf_printf(&line, "%s%s", i ? " " : "", v.kind == V_STR ? v.str : v.kind == V_CONST ? const_str(L, v.k) :
               v.kind == V_TYPE ? type_str(L->c, v.type) : v.kind == V_LAYOUT ? v.layout->text : val_str(L, v));
  }
  lower_trace(L, diag(L->c, c->span, N_STATIC_PRINT, buf_str(&line)));
  return val_void(c->span);
}

/* What the function around gives is then not complained about. */
static void
assertion_failed(Lower *L, const Call *c, Span at)
{
  note_constants(L, ERR(L, at, E_STATIC_ASSERT, c->given[1] ? c->args[1].str : "it is false"), at);
  L->frame->failed = true;
}

Val
builtin_static_assert(Lower *L, Call *c)
{
  Val v = c->args[0];
  if (!call_truth(L, c))
    return val_poison(c->span);
  if (c->given[1] && c->args[1].kind != V_STR) {
    ERR(L, c->args[1].span, E_ARGUMENT, c->name, "a string", val_str(L, c->args[1]));
    return val_poison(c->span);
  }
  if (v.kind == V_IR)
    not_constant(L, v, "the condition of static_assert");
  else if (!v.k.i)
    assertion_failed(L, c, v.span);
  return val_void(c->span);
}

/* ---- questions ---- */

/* The type of argument 0, itself a type or a value. */
static const Type *
asked_type(Lower *L, Call *c)
{
  Val v = c->args[0];
  if (v.kind == V_TYPE)
    return v.type;
  if (val_is_mbarrier(v)) {
    ERR(L, v.span, E_ARGUMENT, c->name, "a tile or a buffer of numbers", val_str(L, v));
    return NULL;
  }
  if (val_is_memory(v))
    return v.ir->type;
  return val_need_data(L, v, c->name) ? val_type_of(L, v) : NULL;
}

/* Of a tensor the launch says it. */
static Val
extent_along(Lower *L, const Call *c, const Type *t, u32 axis)
{
  bool tensor = c->args[0].kind == V_TENSOR;
  return tensor ? tensor_question(L, c, OP_TENSOR_EXTENT, DT_I32, axis) : val_const(const_int(t->shape[axis]), c->span);
}

Val
builtin_extent(Lower *L, Call *c)
{
  int axis;
  const Type *t = asked_type(L, c);
  if (!t)
    return val_poison(c->span);
  if (!t->rank)
    return call_error(L, c, c->args[0].span, "a scalar has no extents");
  if (!call_axis(L, c, 1, t, &axis))
    return val_poison(c->span);
  return extent_along(L, c, t, (u32)axis);
}

Val
builtin_shape(Lower *L, Call *c)
{
  const Type *t = asked_type(L, c);
  if (!t)
    return val_poison(c->span);
  if (!t->rank)
    return call_error(L, c, c->args[0].span, "a scalar has no extents");
  Val v = val_list(L, V_LIST, t->rank, c->span);
  for (u32 i = 0; i < t->rank; i++)
    v.list.v[i] = extent_along(L, c, t, i);
  return v;
}

Val
builtin_count(Lower *L, Call *c)
{
  if (val_is_list(c->args[0]))
    return val_const(const_int(c->args[0].list.n), c->span);
  Value *s = val_is_mbarrier(c->args[0]) ? call_mbarrier(L, c, 0, true) : call_buffer(L, c, 0, true);
  return s ? val_const(const_int(s->type->count), c->span) : val_poison(c->span);
}

Val
builtin_warps(Lower *L, Call *c)
{
  u32 warps = block_team(L->b.block).warps;
  if (!warps)
    return call_error(L, c, c->span, "the number of warps is known in the bodies of kernels and functions");
  L->b.block->func->warps_told = true;
  return val_const(const_int(warps), c->span);
}

Val
builtin_known_multiple(Lower *L, Call *c)
{
  i64 n;
  Val x = c->args[0];
  if (!val_need_data(L, x, c->name) || !call_int(L, c, 1, "the divisor", &n))
    return val_poison(c->span);
  int num = val_is_tile(x) ? NUM_FLOAT : val_is_ptr(x) ? NUM_INT : val_num(x);
  if (n < 1 || num == NUM_FLOAT || (num < NUM_INT && !dtype_is_int((DType)num)))
    return call_error(L, c, c->span, "it asks of an integer or pointer and a positive divisor");
  u64 d = x.kind == V_CONST ? (u64)(x.k.i < 0 ? -x.k.i : x.k.i) : value_divisor(x.ir, 0);
  return val_const(const_bool(d % (u64)n == 0), c->span);
}

Val
builtin_rank(Lower *L, Call *c)
{
  const Type *t = asked_type(L, c);
  return t ? val_const(const_int(t->rank), c->span) : val_poison(c->span);
}

Val
builtin_dtype(Lower *L, Call *c)
{
  const Type *t = asked_type(L, c);
  return t ? val_type(type_scalar(L->c, t->dt), c->span) : val_poison(c->span);
}

Val
builtin_bits(Lower *L, Call *c)
{
  if (c->args[0].kind == V_FORMAT)
    return val_const(const_int(c->args[0].format->bits), c->span);
  const Type *t = asked_type(L, c);
  return t ? val_const(const_int(type_elem_bits(t)), c->span) : val_poison(c->span);
}

Val
builtin_is_float(Lower *L, Call *c)
{
  if (c->args[0].kind == V_FORMAT)
    return val_const(const_bool(packed_is_float(c->args[0].format)), c->span);
  const Type *t = asked_type(L, c);
  return t ? val_const(const_bool(type_is_float(t)), c->span) : val_poison(c->span);
}

Val
builtin_is_int(Lower *L, Call *c)
{
  if (c->args[0].kind == V_FORMAT)
    return val_const(const_bool(!packed_is_float(c->args[0].format)), c->span);
  const Type *t = asked_type(L, c);
  return t ? val_const(const_bool(type_is_int(t)), c->span) : val_poison(c->span);
}

Val
builtin_is_signed(Lower *L, Call *c)
{
  if (c->args[0].kind == V_FORMAT)
    return val_const(const_bool(c->args[0].format->cls != DC_U), c->span);
  const Type *t = asked_type(L, c);
  return t ? val_const(const_bool(!type_is_ptr(t) && (dtype_is_float(t->dt) || dtype_is_signed(t->dt))), c->span)
           : val_poison(c->span);
}

/* Floats and signed integers of m magnitude bits: patterns of all ones below the sign, and what is below that. */
static Val
format_limit(const PackedFormat *f, bool largest, Span at)
{
  u64 ones = (1ull << (f->bits - (f->cls != DC_U))) - 1, least = packed_is_float(f) ? 2 * ones + 1 : ones + 1;
  double v = packed_decode(f, largest ? ones : f->cls == DC_U ? 0 : least);
  return val_const(packed_is_float(f) ? (Const){.form = CF_FLOAT, .f = v} : const_int((i64)v), at);
}

static Val
limit(Lower *L, Call *c, bool largest)
{
  if (c->args[0].kind == V_FORMAT)
    return format_limit(c->args[0].format, largest, c->span);
  const Type *t = asked_type(L, c);
  if (t && type_is_ptr(t))
    return call_error(L, c, c->args[0].span, "a pointer has no limits");
  return t ? val_const(const_limit(t->dt, largest), c->span) : val_poison(c->span);
}

Val
builtin_min_value(Lower *L, Call *c)
{
  return limit(L, c, false);
}

Val
builtin_max_value(Lower *L, Call *c)
{
  return limit(L, c, true);
}
