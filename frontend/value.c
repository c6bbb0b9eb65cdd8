/* value.c - what a Val is: the type it has or would have, its words in messages, and the run-time values in it. Reports nothing. */
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
  case V_BUFFER: case V_TENSOR: return type_str(L->c, v.ir->type);
  case V_LAYOUT: return arena_printf(L->a, "the layout %s", v.layout->text);
  case V_FORMAT: return arena_printf(L->a, "the packed format %s", v.format->name);
  case V_STRUCT: return arena_printf(L->a, "the struct '%s'", v.fn.decl->name);
  case V_RECORD: return v.list.of->name;
  }
  return "?";
}

/* The run-time value of constant k of type t, scalar or tile. That it lost a remainder is remembered (truncation.c). */
Value *
val_const_value(Lower *L, Const k, const Type *t)
{
  Value *x = const_value(L, k, t);
  if (k.truncated.hi && type_is_int(t))
    vec_push(L->a, &L->truncated, ((Truncated){x, k.truncated}));
  return x;
}

/* The run-time value of data under its own type. */
Value *
val_value(Lower *L, Val v)
{
  L->b.span = v.span;
  return v.kind == V_IR ? v.ir : val_const_value(L, v.k, val_type_of(L, v));
}

/* ---- parts ---- */

/* A tuple or list of n items, still to be filled in. */
Val
val_list(Lower *L, ValKind kind, u32 n, Span span)
{
  Val v = {.kind = kind, .span = span};
  v.list.n = n;
  v.list.v = NEW_ARRAY(L->a, Val, n + 1);
  return v;
}

/* Known to be the same; of what is computed at run time, and of what has parts, nothing is known. */
bool
val_same(Val a, Val b)
{
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case V_VOID: case V_NONE: return true;
  case V_CONST: return const_equal(a.k, b.k);
  case V_TYPE: return a.type == b.type;
  case V_FN: case V_STRUCT: return a.fn.decl == b.fn.decl && a.fn.env == b.fn.env;
  case V_BUFFER: case V_TENSOR: return a.ir == b.ir;
  case V_FORMAT: return a.format == b.format;
  case V_LAYOUT: return a.layout->text == b.layout->text;
  case V_BUILTIN: return a.builtin == b.builtin;
  case V_STR: return !strcmp(a.str, b.str);
  default: return false;
  }
}

/* v with parts of its own: values may share theirs. */
Val
val_copied(Lower *L, Val v)
{
  const Val *from = v.list.v;
  v.list.v = NEW_ARRAY(L->a, Val, v.list.n + 1);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = from[i];
  return v;
}

/* The run-time values in v, in order. */
void
val_parts(Lower *L, Val v, Values *out)
{
  if (v.kind == V_IR)
    vec_push(L->a, out, v.ir);
  for (u32 i = 0; val_is_many(v) && i < v.list.n; i++)
    val_parts(L, v.list.v[i], out);
}

/* v with other run-time values in it: a copy, as values may share their parts. */
Val
val_with_parts(Lower *L, Val v, Value *const **next)
{
  if (v.kind == V_IR)
    v.ir = *(*next)++;
  if (!val_is_many(v))
    return v;
  v = val_copied(L, v);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = val_with_parts(L, v.list.v[i], next);
  return v;
}

/* ---- divisors ---- */

static u64
gcd(u64 a, u64 b)
{
  return b ? gcd(b, a % b) : a;
}

/* What a scalar is known to be divided by: from parameters, constants and promises; 0: it is 0. Sums and products may wrap:
 * powers of two survive that. */
u64
value_divisor(const Value *v, u32 depth)
{
  i64 k;
  if (value_const_int(v, &k))
    return k < 0 ? 0 - (u64)k : (u64)k;
  if (!v->def)
    return v->block->parent ? 1 : v->block->func->params[v->index].divisible;
  if (depth > 16 || v->def->noperands == 0)
    return 1;
  u64 a = value_divisor(op_operand(v->def, 0), depth + 1);
  if (v->def->code == OP_HINT) {
    u64 n = (u64)op_int(v->def, AT_DIVISIBLE, 1), both = n / gcd(n, a);
    return a && both <= UINT64_MAX / a ? a * both : a;
  }
  if (v->def->code == OP_CAST)
    return type_is_int(op_operand(v->def, 0)->type) && type_is_int(v->type) && is_pow2(a) ? a : 1;
  if (v->def->noperands != 2 || (v->def->code != OP_ADD && v->def->code != OP_SUB && v->def->code != OP_MUL))
    return 1;
  u64 b = value_divisor(op_operand(v->def, 1), depth + 1);
  if (!a || !b)
    return v->def->code == OP_MUL ? 0 : a | b;
  a &= 0 - a;
  b &= 0 - b;
  return v->def->code == OP_MUL ? (a < 1u << 15 && b < 1u << 15 ? a * b : a) : a < b ? a : b;
}
