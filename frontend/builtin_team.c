/* builtin_team.c - mbarriers, by which teams wait for each other. */
#include "sema.h"

enum { MBARRIERS_MOST = 64 };    /* of a row, each initialised by an op of its own */

static Value *
mbarrier_of(Lower *L, Value *row, u32 i)
{
  return row->type->count ? ir_shared_index(&L->b, row, ir_const_int(&L->b, type_scalar(L->c, DT_I32), i)) : row;
}

/* It lasts as long as the program: no scope ends it. */
Val
builtin_mbarrier(Lower *L, Call *c)
{
  static const u32 one[] = {1};
  i64 arrivals, count = 0, least, most;
  if (!call_int(L, c, 0, "the number of arrivals", &arrivals) || (c->given[1] && !call_int(L, c, 1, "the count", &count)))
    return val_poison(c->span);
  if (!attr_allows(AT_ARRIVALS, arrivals, &least, &most))
    return call_error(L, c, c->args[0].span,
                      arena_printf(L->a, "a phase ends with %lld to %lld arrivals", (long long)least, (long long)most));
  if (c->given[1] && (count < 1 || count > MBARRIERS_MOST))
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "a row has from 1 to %d mbarriers", MBARRIERS_MOST));
  if (L->b.block->parent)
    return call_error(L, c, c->span, "mbarriers are made in a kernel's body, in front of its teams, in no loop or if");
  L->b.span = c->span;
  Value *row = ir_shared_alloc(&L->b, type_shared(L->c, DT_MBAR, (u32)count, 1, one, NULL, NULL, 0, 0));
  for (u32 i = 0; i < max_u32(1, (u32)count); i++) {
    Value *m = mbarrier_of(L, row, i);
    op_set_int(op_create(&L->b, OP_MBARRIER_INIT, 1, &m, 0, NULL, 0), AT_ARRIVALS, arrivals);
  }
  return val_buffer(row, c->span);
}

Val
builtin_mbarrier_arrive(Lower *L, Call *c)
{
  Value *m = call_mbarrier(L, c, 0, false);
  if (!m)
    return val_poison(c->span);
  u32 warps = block_team(L->b.block).warps;
  if (!is_pow2(warps))
    return call_error(L, c, c->span, arena_printf(L->a, "%u warps do not arrive together: teams do", warps));
  i64 bytes = 0, least, most;
  bool copies;
  if ((c->given[1] && !call_int(L, c, 1, "the bytes", &bytes)) || !call_bool(L, c, 2, false, &copies))
    return val_poison(c->span);
  if (c->given[1] && !attr_allows(AT_BYTES, bytes, &least, &most))
    return call_error(L, c, c->args[1].span, arena_printf(L->a, "a phase has %lld to %lld bytes", (long long)least, (long long)most));
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
  if (c->given[1])
    op_set_int(op, AT_BYTES, bytes);
  if (copies)
    op_set_int(op, AT_COPIES, 1);
  return val_void(c->span);
}

/* Argument i as a parity, an i32; NULL after reporting. */
static Value *
call_parity(Lower *L, Call *c, u32 i)
{
  Val v = c->args[i];
  bool fits = val_is_data(v) && !val_is_ptr(v) && !val_is_tile(v) && (val_num(v) == NUM_INT || (val_num(v) < NUM_INT &&
              (dtype_is_int((DType)val_num(v)) || val_num(v) == DT_I1)));
  if (!fits) {
    if (v.kind != V_POISON)
      ERR(L, v.span, E_ARGUMENT, c->name, "a parity, 0 or 1", val_str(L, v));
    return NULL;
  }
  if (v.kind == V_CONST && v.k.i != 0 && v.k.i != 1) {
    call_error(L, c, v.span, "a parity is 0 or 1");
    return NULL;
  }
  L->b.span = c->span;
  return value_cast(L, val_value(L, v), DT_I32);
}

Val
builtin_mbarrier_wait(Lower *L, Call *c)
{
  Value *m = call_mbarrier(L, c, 0, false), *parity = m ? call_parity(L, c, 1) : NULL;
  if (!parity)
    return val_poison(c->span);
  L->b.span = c->span;
  op_create(&L->b, OP_MBARRIER_WAIT, 2, (Value *[]){m, parity}, 0, NULL, 0);
  return val_void(c->span);
}
