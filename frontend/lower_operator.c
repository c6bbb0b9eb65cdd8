/* lower_operator.c - operators: on numbers and pointers, on tuples and lists, on what is compared when compiling. Compile-time operands
 * fold; scalars stay scalars until they meet a tile. */
#include "sema.h"

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

/* ---- numbers and pointers ---- */

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

/* Quotients without a branch for rare operands, which other work cannot pass. One that is rounded to fewer bits than it has need not be
 * exact to the last one; f16 has 11. */
static Value *
quotient(Lower *L, Value *a, Value *b)
{
  Value *exact = ir_binary(&L->b, OP_DIV, a, b);
  if (!tiers_wanted(L, exact))
    return exact;
  Value *rough = ir_binary(&L->b, OP_FULL_DIV, a, b), *close = ir_binary(&L->b, OP_NEAR_DIV, a, b);
  return value_tiers(L, exact, close, rough);
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
  if (op == O_DIV && type_is_float(v[0]->type))
    return val_ir(quotient(L, v[0], v[1]), span);
  return val_ir(ir_binary(&L->b, code, v[0], v[1]), span);
}

/* ---- tuples and lists ---- */

/* times times what a holds, then what b holds (NULL: nothing). */
static Val
list_joined(Lower *L, Span span, Val a, u64 times, const Val *b)
{
  u64 n = a.list.n * times + (b ? b->list.n : 0);
  if (n > LIST_ITEMS_MAX) {
    ERR(L, span, E_LIMIT, "a tuple or list has at most 65536 items");
    return val_poison(span);
  }
  if (!lower_spend(L, span, (u32)n))
    return val_poison(span);
  Val v = val_list(L, a.kind, (u32)n, span);
  for (u32 i = 0; i < n; i++)
    v.list.v[i] = i < a.list.n * times ? a.list.v[i % a.list.n] : b->list.v[i - a.list.n * times];
  return v;
}

/* Whether all their items are equal; lists of different lengths are not. */
static Val
lists_equal(Lower *L, Oper op, Span span, Span at, Val a, Val b)
{
  Val all = val_const(const_bool(a.list.n == b.list.n), span);
  for (u32 i = 0; i < a.list.n && a.list.n == b.list.n; i++) {
    Val same = lower_binary(L, O_EQ, span, at, a.list.v[i], b.list.v[i]);
    if (same.kind == V_POISON)
      return same;
    all = same.kind == V_CONST && all.kind == V_CONST ? val_const(const_bool(same.k.i && all.k.i), span)
        : lower_binary(L, O_AND, span, at, all, same);
  }
  return op == O_EQ || all.kind == V_POISON ? all
       : all.kind == V_CONST ? val_const(const_bool(!all.k.i), span) : val_ir(ir_unary(&L->b, OP_NOT, all.ir), span);
}

static bool
is_count(Val v)
{
  return v.kind == V_CONST && !const_is_float(v.k) && !const_is_bool(v.k) && v.k.i >= 0 && v.k.i <= LIST_ITEMS_MAX;
}

/* a + b joins, a * n and n * a repeat, == and != compare. False: op is none of these here. */
static bool
list_operator(Lower *L, Oper op, Span span, Span at, Val a, Val b, Val *out)
{
  bool same = val_is_list(a) && a.kind == b.kind;
  if (op == O_ADD && same)
    *out = list_joined(L, span, a, 1, &b);
  else if (op == O_MUL && val_is_list(a) && is_count(b))
    *out = list_joined(L, span, a, (u64)b.k.i, NULL);
  else if (op == O_MUL && val_is_list(b) && is_count(a))
    *out = list_joined(L, span, b, (u64)a.k.i, NULL);
  else if ((op == O_EQ || op == O_NE) && same)
    *out = lists_equal(L, op, span, at, a, b);
  else if (val_is_list(a) && val_is_list(b))
    *out = bad_operands(L, op, at, a, b, a.kind == b.kind ? NULL : "a tuple meets a tuple, a list a list");
  else
    return false;
  return true;
}

/* ---- operators ---- */

static bool
is_function(Val v)
{
  return v.kind == V_FN || v.kind == V_BUILTIN;
}

/* Types, layouts, texts and functions are equal or not; anything is None or not. */
static bool
compares_fixed(Oper op, Val a, Val b)
{
  if (op != O_EQ && op != O_NE)
    return false;
  bool fixed = a.kind == V_TYPE || a.kind == V_LAYOUT || a.kind == V_FORMAT || a.kind == V_STR;
  return a.kind == V_NONE || b.kind == V_NONE || (a.kind == b.kind && fixed) || (is_function(a) && is_function(b));
}

/* A kernel that asks whether its argument v is None relies on the answer. */
static void
ask_null(Val v)
{
  const Value *x = val_is_ptr(v) && !val_is_tile(v) ? v.ir : NULL;
  if (x && !x->def && !x->block->parent)
    x->block->func->params[x->index].null = PARAM_NONNULL;
}

/* a op b for every operator but && and ||. span: the expression, at: the operator. */
Val
lower_binary(Lower *L, Oper op, Span span, Span at, Val a, Val b)
{
  Val list;
  if (a.kind == V_POISON || b.kind == V_POISON)
    return val_poison(span);
  if (compares_fixed(op, a, b)) {
    ask_null(a);
    ask_null(b);
    return val_const(const_bool(val_same(a, b) == (op == O_EQ)), span);
  }
  if (list_operator(L, op, span, at, a, b, &list))
    return list;
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

/* -x, ~x, !x */
Val
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

/* a op b */
Val
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
