/* builtin_asm.c - ptx(): instructions of the target, written in the program, on every element. */
#include "sema.h"
#include "asm.h"

typedef struct Items { Val v[ASM_VALUES_MAX]; u32 n; } Items;

/* Argument i: one thing, or a tuple of them. */
static bool
items_of(Lower *L, Call *c, u32 i, Items *out)
{
  const Val *from = val_items(&c->args[i], &out->n);
  if (!c->given[i])
    out->n = 0;
  if (out->n > ASM_VALUES_MAX) {
    call_error(L, c, c->args[i].span, "there are more than 16 of these");
    return false;
  }
  for (u32 k = 0; k < out->n; k++) {
    out->v[k] = from[k];
    if (from[k].kind == V_POISON)
      return false;
  }
  return true;
}

static bool
asm_text(Lower *L, Call *c, u32 i, const char *what, const char **out)
{
  if (c->args[i].kind == V_STR) {
    *out = c->args[i].str;
    return true;
  }
  if (c->args[i].kind != V_POISON)
    ERR(L, c->args[i].span, E_ARGUMENT, c->name, what, val_str(L, c->args[i]));
  return false;
}

/* Operands as values of one shape, results as types of that shape. */
static bool
asm_values(Lower *L, Call *c, const Items *args, const Items *types, Value **in, const Type **out)
{
  for (u32 i = 0; i < args->n; i++) {
    if (!val_need_data(L, args->v[i], c->name))
      return false;
    if (val_is_ptr(args->v[i])) {
      Diag *d = ERR(L, args->v[i].span, E_ARGUMENT, c->name, "numbers", val_str(L, args->v[i]));
      diag_note(L->c, d, args->v[i].span, "an address is given as bitcast(p, i64)");
      return false;
    }
    in[i] = val_value(L, args->v[i]);
  }
  if (args->n && !values_broadcast(L, c->span, c->name, args->n, in, args->v))
    return false;
  for (u32 i = 0; i < types->n; i++) {
    Val t = types->v[i];
    if (t.kind != V_TYPE || t.type->kind != TY_SCALAR) {
      ERR(L, t.span, E_ARGUMENT, c->name, "scalar types of the results", val_str(L, t));
      return false;
    }
    out[i] = args->n ? type_with_elem(L->c, in[0]->type, t.type) : t.type;
  }
  return true;
}

static Val
asm_result(Lower *L, Call *c, const Op *op)
{
  if (!op->nresults)
    return val_void(c->span);
  if (op->nresults == 1 && c->args[3].kind == V_TYPE)
    return val_ir(op->results[0], c->span);
  Val v = val_list(L, V_TUPLE, op->nresults, c->span);
  for (u32 i = 0; i < op->nresults; i++)
    v.list.v[i] = val_ir(op->results[i], c->span);
  return v;
}

Val
builtin_ptx(Lower *L, Call *c)
{
  const char *text, *constraints, *why;
  Items args, types;
  i64 pack = 1, least, most;
  bool pure;
  if (!asm_text(L, c, 0, "a string for the text", &text) || !asm_text(L, c, 1, "a string for the constraints", &constraints) ||
      !items_of(L, c, 2, &args) || !items_of(L, c, 3, &types) || (c->given[4] && !call_int(L, c, 4, "pack", &pack)) ||
      !call_bool(L, c, 5, true, &pure))
    return val_poison(c->span);
  Value *in[ASM_VALUES_MAX];
  const Type *out[ASM_VALUES_MAX];
  DType dt[2 * ASM_VALUES_MAX];
  if (!attr_allows(AT_PACK, pack, &least, &most))
    return call_error(L, c, c->args[4].span, arena_printf(L->a, "pack is a power of two, at most %lld", (long long)most));
  if (!args.n && !types.n)
    return call_error(L, c, c->span, "it has neither operands nor results");
  if (args.n + types.n > ASM_VALUES_MAX)
    return call_error(L, c, c->span, "it has more than 16 operands and results");
  if (pure && !types.n)
    return call_error(L, c, c->span, "without results it has no effect; with pure=false it is kept for others");
  if (!asm_values(L, c, &args, &types, in, out))
    return val_poison(c->span);
  for (u32 i = 0; i < types.n + args.n; i++)
    dt[i] = i < types.n ? out[i]->dt : in[i - types.n]->type->dt;
  if ((why = asm_error(L->a, text, constraints, (u32)pack, types.n, types.n + args.n, dt)))
    return call_error(L, c, strchr(why, '$') ? c->args[0].span : c->args[1].span, why);
  L->b.span = c->span;
  Op *op = op_create(&L->b, pure ? OP_PTX : OP_PTX_EFFECT, args.n, in, types.n, out, 0);
  op_set_str(op, AT_TEXT, text);
  op_set_str(op, AT_CONSTRAINTS, constraints);
  op_set_int(op, AT_PACK, pack);
  return asm_result(L, c, op);
}
