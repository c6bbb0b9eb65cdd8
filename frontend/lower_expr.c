/* lower_expr.c - expressions: names, literals, lists, types; operators, indices and calls have files of their own. */
#include "sema.h"

/* ---- lists, types ---- */

static Val
lower_items(Lower *L, const Node *n, ValKind kind)
{
  Val v = val_list(L, kind, n->nkids, n->span);
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
      shape[i] = extent < 0 ? 0 : extent > TILE_MAX_NUMEL ? TILE_MAX_NUMEL + 1 : (u32)extent;
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

const Type *
lower_tensor_type(Lower *L, const Node *n, const Type *elem)
{
  Val of = elem ? val_type(elem, n->span) : lower_expr(L, kid(n, 0)), rank = lower_expr(L, kid(n, 1));
  if (of.kind == V_TYPE && (of.type->kind != TY_SCALAR || of.type->dt == DT_I1))
    ERR(L, n->span, E_TYPE, arena_printf(L->a, "a tensor has numbers as elements, not %s", type_str(L->c, of.type)));
  else if (of.kind != V_TYPE && of.kind != V_POISON)
    ERR(L, n->span, E_NOT_TYPE, val_str(L, of));
  else if (rank.kind != V_CONST || const_is_float(rank.k) || rank.k.i < 1 || rank.k.i > MAX_RANK)
    ERR(L, n->span, E_TYPE, arena_printf(L->a, "a tensor has 1 to %d dimensions, known when compiling", MAX_RANK));
  else if (of.kind == V_TYPE)
    return type_tensor(L->c, of.type->dt, (int)rank.k.i);
  return NULL;
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
  case N_GENERIC: {
    const Type *t = lower_tensor_type(L, n, NULL);
    return t ? val_type(t, n->span) : val_poison(n->span);
  }
  case N_FN: return lower_lambda(L, (Node *)n);
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
