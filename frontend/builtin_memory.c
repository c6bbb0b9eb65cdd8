/* builtin_memory.c - loads, stores, atomics. The pointers give the shape; masks and values broadcast to it. */
#include "sema.h"

Value *
call_element(Lower *L, Call *c, Val v, DType to, const Type *like)
{
  if (!val_need_data(L, v, c->name))
    return NULL;
  int num = val_is_ptr(v) ? -1 : val_num(v);
  bool is_float = num == NUM_FLOAT || (num >= 0 && num < NUM_INT && dtype_is_float((DType)num));
  bool fits = num >= 0 && (to == DT_I1 ? num == DT_I1 : dtype_is_float(to) || !is_float);
  if (fits)
    return val_as(L, v, to, like);
  Diag *d = ERR(L, v.span, E_CONVERT, val_str(L, v), dtype_info[to].name);
  note_source(L, d, v);
  note_source(L, d, c->args[0]);
  if (num >= 0)
    diag_hint(L->c, d, to == DT_I1 ? "compare: x != 0" : "write the conversion: %s(...)", dtype_info[to].name);
  return NULL;
}

/* A number as what p points to. */
static Value *
pointee_value(Lower *L, Call *c, Val v, const Value *p)
{
  return call_element(L, c, v, p->type->dt, type_is_tile(p->type) ? p->type : NULL);
}

static void
set_word(Op *op, AttrId id, const char *word)
{
  if (word)
    op_set_str(op, id, word);
}

Val
builtin_load(Lower *L, Call *c)
{
  const char *cache, *evict;
  bool is_volatile;
  Value *p = call_pointer(L, c, 0), *mask, *other = NULL;
  if (!p || !call_mask(L, c, 1, &mask) || !call_word(L, c, 3, "ca cg cs cv", NULL, &cache) ||
      !call_word(L, c, 4, "first last normal", NULL, &evict) || !call_bool(L, c, 5, false, &is_volatile))
    return val_poison(c->span);
  if (c->given[2] && !c->given[1])
    return call_error(L, c, c->args[2].span, "'other' stands where the mask is false, and there is no mask");
  if (c->given[2] && !(other = pointee_value(L, c, c->args[2], p)))
    return val_poison(c->span);
  Value *v[3] = {p, mask, mask ? other : NULL};
  if (!values_broadcast(L, c->span, "load", 3, v, c->args))
    return val_poison(c->span);
  L->b.span = c->span;
  Value *r = ir_load(&L->b, v[0], v[1], v[2]);
  set_word(r->def, AT_CACHE, cache);
  set_word(r->def, AT_EVICT, evict);
  if (is_volatile)
    op_set_int(r->def, AT_VOLATILE, 1);
  return val_ir(r, c->span);
}

/* Stretch value and mask to the pointers; these keep their shape: many values through one pointer would race. */
static bool
spread(Lower *L, Call *c, Value **v, u32 n)
{
  const Type *before = v[0]->type;
  if (!values_broadcast(L, c->span, c->name, n, v, c->args))
    return false;
  if (v[0]->type == before)
    return true;
  const char *what = arena_printf(L->a, "it writes %s through %s; each element needs a pointer of its own",
                                  type_str(L->c, type_with_elem(L->c, v[0]->type, v[1] ? type_elem(L->c, v[1]->type)
                                                                                       : type_scalar(L->c, DT_I1))),
                                  type_str(L->c, before));
  note_values(L, ERR(L, c->span, E_ARGUMENTS, c->name, what), 2, c->args);
  return false;
}

Val
builtin_store(Lower *L, Call *c)
{
  const char *cache, *evict;
  Value *v[3] = {call_pointer(L, c, 0), NULL, NULL};
  if (!v[0] || !(v[1] = pointee_value(L, c, c->args[1], v[0])) || !call_mask(L, c, 2, &v[2]) ||
      !call_word(L, c, 3, "wb cg cs wt", NULL, &cache) || !call_word(L, c, 4, "first last normal", NULL, &evict) ||
      !spread(L, c, v, 3))
    return val_poison(c->span);
  L->b.span = c->span;
  Op *op = ir_store(&L->b, v[0], v[1], v[2]);
  set_word(op, AT_CACHE, cache);
  set_word(op, AT_EVICT, evict);
  return val_void(c->span);
}

/* ---- atomics ---- */

/* What the hardware cannot do at once becomes a loop around its compare-and-swap of 16, 32 or 64 bits. */
static bool
atomic_type_ok(const char *rmw, DType dt)
{
  bool bitwise = !strcmp(rmw, "and") || !strcmp(rmw, "or") || !strcmp(rmw, "xor");
  return dtype_is_float(dt) ? dtype_bits(dt) >= 16 && !bitwise : dtype_bits(dt) >= 32;
}

static bool
order_words(Lower *L, Call *c, u32 i, const char **sem, const char **scope)
{
  return call_word(L, c, i, "relaxed acquire release acq_rel", "acq_rel", sem) &&
         call_word(L, c, i + 1, "cta gpu sys", "gpu", scope);
}

static Val
atomic_result(Op *op, const char *sem, const char *scope, Span span)
{
  op_set_str(op, AT_SEM, sem);
  op_set_str(op, AT_SCOPE, scope);
  return val_ir(op_result(op), span);
}

static Val
bad_atomic(Lower *L, Call *c, const Value *p)
{
  return call_error(L, c, c->args[0].span, arena_printf(L->a, "the hardware has no such operation on %s", dtype_info[p->type->dt].name));
}

static Val
atomic_rmw(Lower *L, Call *c, const char *rmw)
{
  const char *sem, *scope;
  Value *v[3] = {call_pointer(L, c, 0), NULL, NULL};
  if (!v[0])
    return val_poison(c->span);
  if (!atomic_type_ok(rmw, v[0]->type->dt))
    return bad_atomic(L, c, v[0]);
  if (!(v[1] = pointee_value(L, c, c->args[1], v[0])) || !call_mask(L, c, 2, &v[2]) || !order_words(L, c, 3, &sem, &scope) ||
      !spread(L, c, v, 3))
    return val_poison(c->span);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_ATOMIC_RMW, v[2] ? 3 : 2, v, 1, &v[1]->type, 0);
  op_set_str(op, AT_RMW, rmw);
  return atomic_result(op, sem, scope, c->span);
}

#define ATOMIC(name) \
  Val builtin_atomic_##name(Lower *L, Call *c) \
  { \
    return atomic_rmw(L, c, #name); \
  }
ATOMIC(add)
ATOMIC(max)
ATOMIC(min)
ATOMIC(and)
ATOMIC(or)
ATOMIC(xor)
ATOMIC(xchg)

Val
builtin_atomic_cas(Lower *L, Call *c)
{
  const char *sem, *scope;
  Value *v[4] = {call_pointer(L, c, 0), NULL, NULL, NULL};
  if (!v[0])
    return val_poison(c->span);
  if (dtype_bits(v[0]->type->dt) < 16)
    return bad_atomic(L, c, v[0]);
  for (u32 i = 1; i < 3; i++)
    if (!(v[i] = pointee_value(L, c, c->args[i], v[0])))
      return val_poison(c->span);
  if (!call_mask(L, c, 3, &v[3]) || !order_words(L, c, 4, &sem, &scope) || !spread(L, c, v, 4))
    return val_poison(c->span);
  L->b.span = c->span;
  return atomic_result(op_create(&L->b, OP_ATOMIC_CAS, v[3] ? 4 : 3, v, 1, &v[1]->type, 0), sem, scope, c->span);
}
