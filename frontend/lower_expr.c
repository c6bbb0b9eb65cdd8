/* lower_expr.c - expressions: operators, selection, indexing, types. Compile-time operands fold; scalars stay scalars
 * until they meet a tile. */
#include "sema.h"

/* ---- operators ---- */

static Val
bad_operands(Lower *L, Oper op, Span at, Val a, Val b, const char *hint)
{
  Diag *d = ERR(L, at, E_OPERANDS, oper_info[op].text, val_str(L, a), val_str(L, b));
  note_source(L, d, a);
  note_source(L, d, b);
  if (hint)
    diag_hint(L->c, d, "%s", hint);
  return val_poison(at);
}

/* A negated offset; unsigned ones need a sign first. */
static Value *
negated(Lower *L, Value *x)
{
  DType dt = x->type->dt;
  if (!dtype_is_signed(dt))
    x = value_cast(L, x, dtype_bits(dt) < 32 ? DT_I32 : DT_I64);
  return ir_unary(&L->b, OP_NEG, x);
}

static Val
pointer_offset(Lower *L, Oper op, Span span, Span at, Val p, Val off)
{
  if (val_is_ptr(off) || (op != O_ADD && op != O_SUB))
    return bad_operands(L, op, at, p, off, "a pointer takes + or - an integer");
  if (off.kind == V_CONST ? const_is_float(off.k) : !type_is_int(off.ir->type) && !type_is_bool(off.ir->type))
    return bad_operands(L, op, at, p, off, "offsets count elements and are integers");
  if (off.kind == V_CONST && off.k.i == 0)
    return p;
  DType dt = num_dtype(L, val_num(off), off.kind == V_CONST ? &off.k : NULL);
  Value *v[2] = {p.ir, val_as(L, off, dt == DT_I1 ? DT_I32 : dt, p.ir->type)};
  L->b.span = span;
  if (v[1] && op == O_SUB)
    v[1] = negated(L, v[1]);
  if (!v[1] || !values_broadcast(L, at, oper_info[op].text, 2, v, (Val[]){p, off}))
    return val_poison(span);
  L->b.span = span;
  return val_ir(ir_addptr(&L->b, v[0], v[1]), span);
}

/* What op is done in, given what its operands promote to; false if it cannot be. */
static bool
operation_num(Oper op, int *num)
{
  bool typed = *num < NUM_INT;
  switch (oper_info[op].cls) {
  case OC_ARITH:
    if (*num == DT_I1)
      *num = DT_I32;
    if (typed && dtype_is_float((DType)*num) && dtype_bits((DType)*num) == 8)
      *num = DT_F32;
    return true;
  case OC_CMP:
    if (typed && dtype_is_float((DType)*num) && dtype_bits((DType)*num) == 8)
      *num = DT_F32;
    return *num != DT_I1 || op == O_EQ || op == O_NE;
  case OC_BITS:
    return typed ? !dtype_is_float((DType)*num) : *num == NUM_INT;
  default:
    return typed ? dtype_is_int((DType)*num) : *num == NUM_INT;
  }
}

static Val
fold_binary(Lower *L, Oper op, Span span, Span at, Val a, Val b, int num)
{
  Const ka, kb, k;
  if (!const_promote(L, a, num, &ka))
    return val_poison(span);
  if (oper_info[op].cls == OC_SHIFT)
    kb = b.k;
  else if (!const_promote(L, b, num, &kb))
    return val_poison(span);
  const char *why;
  if (const_binary(L->a, op, ka, kb, &k, &why)) {
    k.truncated = const_truncation(L, op, span, ka, kb);
    return val_const(k, span);
  }
  ERR(L, at, E_CONST_ARITH, oper_info[op].text, why);
  return val_poison(span);
}

static Value *
compare_values(Lower *L, Oper op, Value *a, Value *b)
{
  if (a->type->dt != DT_I1 || type_is_ptr(a->type))
    return ir_cmp(&L->b, oper_info[op].ir, a, b);
  Value *differ = ir_binary(&L->b, OP_XOR, a, b);
  return op == O_NE ? differ : ir_unary(&L->b, OP_NOT, differ);
}

/* A shift's count in the type of what is shifted. Counts have no sign; one too large for the type stays too large. */
static Value *
shift_count(Lower *L, Value *n, DType dt)
{
  static const DType unsigned_of[] = {DT_U8, DT_U16, DT_U32, DT_U64};
  u32 bits = dtype_bits(n->type->dt);
  if (bits <= dtype_bits(dt) || !type_is_int(n->type))
    return value_cast(L, n, dt);
  Value *r = value_cast(L, value_cast(L, n, unsigned_of[log2_u32(bits / 8)]), dt);
  op_set_int(r->def, AT_SAT, 1);
  return r;
}

static Val
build_binary(Lower *L, Oper op, Span span, Span at, Val a, Val b, DType dt)
{
  if (oper_info[op].cls == OC_SHIFT && b.kind == V_CONST && (b.k.i < 0 || b.k.i >= (i64)dtype_bits(dt))) {
    ERR(L, b.span, E_CONST_ARITH, oper_info[op].text, arena_printf(L->a, "the shift must be from 0 to %u", dtype_bits(dt) - 1));
    return val_poison(span);
  }
  if ((op == O_DIV || op == O_REM) && b.kind == V_CONST && !dtype_is_float(dt) && b.k.i == 0) {
    ERR(L, b.span, E_CONST_ARITH, oper_info[op].text, "division by zero");
    return val_poison(span);
  }
  bool counts = oper_info[op].cls == OC_SHIFT && b.kind == V_IR;
  L->b.span = b.span;
  Value *v[2] = {val_as(L, a, dt, val_tile_type(b)), counts ? shift_count(L, b.ir, dt) : val_as(L, b, dt, val_tile_type(a))};
  if (!v[0] || !v[1] || !values_broadcast(L, at, oper_info[op].text, 2, v, (Val[]){a, b}))
    return val_poison(span);
  L->b.span = span;
  if (oper_info[op].cls == OC_CMP)
    return val_ir(compare_values(L, op, v[0], v[1]), span);
  OpCode code = OP_ADD;
  op_find(oper_info[op].ir, &code);
  return val_ir(ir_binary(&L->b, code, v[0], v[1]), span);
}

/* Types and layouts are equal or not; anything is None or not. */
static bool
compares_fixed(Oper op, Val a, Val b)
{
  if (op != O_EQ && op != O_NE)
    return false;
  return a.kind == V_NONE || b.kind == V_NONE || (a.kind == b.kind && (a.kind == V_TYPE || a.kind == V_LAYOUT || a.kind == V_FORMAT));
}

/* A kernel that asks whether its argument v is None relies on the answer. */
static void
ask_null(Val v)
{
  const Value *x = val_is_ptr(v) && !val_is_tile(v) ? v.ir : NULL;
  if (x && !x->def && !x->block->parent)
    x->block->func->param_null[x->index] = PARAM_NONNULL;
}

/* a op b for every operator but && and ||. span: the expression, at: the operator. */
Val
lower_binary(Lower *L, Oper op, Span span, Span at, Val a, Val b)
{
  if (a.kind == V_POISON || b.kind == V_POISON)
    return val_poison(span);
  if (compares_fixed(op, a, b)) {
    ask_null(a);
    ask_null(b);
    return val_const(const_bool(val_same(a, b) == (op == O_EQ)), span);
  }
  const char *what = arena_printf(L->a, "'%s'", oper_info[op].text);
  bool ok = val_need_data(L, a, what);
  if (!val_need_data(L, b, what) || !ok)
    return val_poison(span);
  if (val_is_ptr(a))
    return pointer_offset(L, op, span, at, a, b);
  if (val_is_ptr(b) && op == O_ADD)
    return pointer_offset(L, op, span, at, b, a);
  if (val_is_ptr(b))
    return bad_operands(L, op, at, a, b, NULL);
  int num = num_promote(val_num(a), val_num(b));
  if (!operation_num(op, &num))
    return bad_operands(L, op, at, a, b, NULL);
  if (oper_info[op].cls == OC_SHIFT)
    num = val_num(a) == DT_I1 ? (int)DT_I32 : a.kind == V_CONST && b.kind == V_IR ? (int)num_dtype(L, val_num(a), &a.k) : val_num(a);
  if (a.kind == V_CONST && b.kind == V_CONST)
    return fold_binary(L, op, span, at, a, b, num);
  return build_binary(L, op, span, at, a, b, (DType)num);
}

static Val
lower_unary(Lower *L, const Node *n)
{
  Val x = lower_expr(L, kid(n, 0));
  if (!val_need_data(L, x, arena_printf(L->a, "'%s'", oper_info[n->op].text)))
    return val_poison(n->span);
  int num = val_is_ptr(x) ? -1 : val_num(x);
  bool is_bool = num == DT_I1, is_float = num == NUM_FLOAT || (num >= 0 && num < NUM_INT && dtype_is_float((DType)num));
  if (num < 0 || (n->op == O_INV && is_float) || (n->op == O_NOT && !is_bool)) {
    Diag *d = ERR(L, n->at, E_OPERAND, oper_info[n->op].text, val_str(L, x));
    note_source(L, d, x);
    if (n->op == O_NOT && num >= 0)
      diag_hint(L->c, d, "compare with zero: x == 0");
    return val_poison(n->span);
  }
  if (n->op == O_NEG)
    operation_num(O_SUB, &num);
  if (x.kind == V_CONST) {
    Const k;
    const char *why;
    if (!const_promote(L, x, num, &k))
      return val_poison(n->span);
    if (const_unary(L->a, n->op, k, &k, &why))
      return val_const(k, n->span);
    ERR(L, n->at, E_CONST_ARITH, oper_info[n->op == O_NEG ? O_SUB : n->op].text, why);
    return val_poison(n->span);
  }
  Value *v = val_as(L, x, (DType)num, NULL);
  L->b.span = n->span;
  return val_ir(ir_unary(&L->b, n->op == O_NEG ? OP_NEG : OP_NOT, v), n->span);
}

static bool
is_chain(const Node *n)
{
  const Node *a = kid(n, 0);
  return oper_info[n->op].cls == OC_CMP && a->kind == N_BINARY && !a->paren && oper_info[a->op].cls == OC_CMP;
}

static Val
lower_operator(Lower *L, const Node *n)
{
  if (oper_info[n->op].cls == OC_LOGIC)
    return lower_logic(L, n);
  Val a = lower_expr(L, kid(n, 0));
  Val b = lower_expr(L, kid(n, 1));
  if (is_chain(n) && a.kind != V_POISON) {
    ERR(L, n->at, E_CHAIN, oper_info[kid(n, 0)->op].text, oper_info[n->op].text);
    return val_poison(n->span);
  }
  return lower_binary(L, n->op, n->span, n->at, a, b);
}

/* ---- indexing, lists, types ---- */

static Val
lower_items(Lower *L, const Node *n, ValKind kind)
{
  Val v = {.kind = kind, .span = n->span};
  v.list.n = n->nkids;
  v.list.v = NEW_ARRAY(L->a, Val, n->nkids + 1);
  for (u32 i = 0; i < n->nkids; i++)
    v.list.v[i] = lower_expr(L, n->kids[i]);
  return v;
}

/* n compile-time extents, from the i-th child on. */
const Type *
tile_type_of(Lower *L, const Node *n, const Type *elem)
{
  u32 shape[MAX_RANK] = {0}, rank = n->nkids - 1;
  if (elem->kind == TY_TILE) {
    ERR(L, n->span, E_TYPE, "a tile's elements are scalars or pointers");
    return NULL;
  }
  for (u32 i = 0; i < rank; i++) {
    i64 extent;
    if (!lower_const_int(L, n->kids[i + 1], "an extent", &extent))
      return NULL;
    if (i < MAX_RANK)
      shape[i] = extent < 0 ? 0 : extent > TILE_NUMEL_MAX ? TILE_NUMEL_MAX + 1 : (u32)extent;
  }
  return shape_check(L, n->span, rank, shape) ? type_tile(L->c, elem, (int)rank, shape, NULL) : NULL;
}

/* The second star of a ** b. */
static bool
is_power(Lower *L, const Node *n)
{
  const char *before = n->span.lo > 1 ? source_text(L->c, n->span.lo - 1) : NULL;
  return before && before[0] == '*' && before[1] == '*';
}

static Val
lower_pointer_type(Lower *L, const Node *n)
{
  Val v = lower_expr(L, kid(n, 0));
  if (v.kind == V_TYPE && v.type->kind == TY_SCALAR)
    return val_type(type_ptr(L->c, v.type->dt), n->span);
  if (v.kind == V_TYPE)
    ERR(L, n->span, E_TYPE, "a pointer points to a scalar; tiles of pointers are written (*f32)[64]");
  else if (v.kind != V_POISON)
    diag_hint(L->c, ERR(L, n->span, E_NOT_TYPE, val_str(L, v)), "%s",
              is_power(L, n) ? "there is no ** operator: write x * x, or pow(x, y)"
              : v.kind == V_FORMAT ? arena_printf(L->a, "memory holds words, u8 or u32: unpack(load(p), %s)", v.format->name)
              : "memory is read with load(p)");
  return val_poison(n->span);
}

/* The type n stands for; NULL after reporting. */
const Type *
lower_type(Lower *L, const Node *n)
{
  Val v = lower_expr(L, n);
  if (v.kind == V_TYPE)
    return v.type;
  if (v.kind != V_POISON)
    ERR(L, n->span, E_NOT_TYPE, val_str(L, v));
  return NULL;
}

/* n as a compile-time integer; `what` for the message. */
bool
lower_const_int(Lower *L, const Node *n, const char *what, i64 *out)
{
  Val v = lower_expr(L, n);
  if (v.kind == V_CONST && !const_is_float(v.k) && !const_is_bool(v.k)) {
    *out = v.k.i;
    return true;
  }
  if (v.kind == V_IR)
    not_constant(L, v, what);
  else if (v.kind == V_CONST)
    ERR(L, n->span, E_NOT_INT, what);
  else
    val_need_data(L, v, what);
  return false;
}

/* ---- all expressions ---- */

static Val
lower_literal(Lower *L, const Node *n)
{
  if (n->kind == N_BOOL)
    return val_const(const_bool(n->ival), n->span);
  if (n->kind == N_FLOAT)
    return val_const((Const){.form = CF_FLOAT, .f = n->fval}, n->span);
  return val_const(n->huge ? const_typed(DT_U64, n->ival, 0) : const_int(n->ival), n->span);
}

static Val
lower_kind(Lower *L, const Node *n)
{
  switch (n->kind) {
  case N_NAME: return lower_name(L, n);
  case N_INT: case N_FLOAT: case N_BOOL: return lower_literal(L, n);
  case N_STR: return (Val){.kind = V_STR, .str = n->name};
  case N_NONE: return (Val){.kind = V_NONE};
  case N_UNARY: return lower_unary(L, n);
  case N_BINARY: return lower_operator(L, n);
  case N_COND: return lower_cond(L, n);
  case N_CALL: return lower_call(L, n);
  case N_INDEX: return lower_index(L, n);
  case N_FIELD: return lower_field(L, n);
  case N_LIST: return lower_items(L, n, V_LIST);
  case N_TUPLE: return lower_items(L, n, V_TUPLE);
  case N_PTR: return lower_pointer_type(L, n);
  default: return val_poison(n->span);
  }
}

/* What expression n gives; poison after reporting. */
Val
lower_expr(Lower *L, const Node *n)
{
  L->depth++;
  L->work++;
  Val v = lower_over_limit(L, n) ? val_poison(n->span) : lower_kind(L, n);
  L->depth--;
  v.span = n->span;
  return v;
}
