/* builtin_make.c - functions that make tiles and change their shape. */
#include "sema.h"

static Val
grid_query(Lower *L, Call *c, bool id)
{
  i64 axis = 0;
  if (c->given[0] && !call_int(L, c, 0, "the axis", &axis))
    return val_poison(c->span);
  if (axis < 0 || axis > 2)
    return call_error(L, c, c->args[0].span, "a grid has axes 0, 1 and 2");
  L->b.span = c->span;
  return val_ir(id ? ir_program_id(&L->b, (int)axis) : ir_num_programs(&L->b, (int)axis), c->span);
}

Val
builtin_program_id(Lower *L, Call *c)
{
  return grid_query(L, c, true);
}

Val
builtin_num_programs(Lower *L, Call *c)
{
  return grid_query(L, c, false);
}

Val
builtin_multiprocessors(Lower *L, Call *c)
{
  if (L->multiprocessors)
    return val_ir(L->multiprocessors, c->span);
  ERR(L, c->span, E_GRID, "a launch knows the device's multiprocessors, its programs do not: multiprocessors() stands in a grid clause");
  return val_poison(c->span);
}

/* x under the layout that argument i asks for. */
static Val
with_layout(Lower *L, Call *c, u32 i, Value *x)
{
  x = x ? layout_apply(L, c, i, x) : NULL;
  return x ? val_ir(x, c->span) : val_poison(c->span);
}

/* arange(lo, hi, step) of other languages. */
static Val
arange_step(Lower *L, const Call *c, i64 lo, i64 hi, i64 step)
{
  Diag *d = ERR(L, c->args[2].span, E_ARGUMENTS, c->name, "it has no step");
  bool counts = step > 0 && step < 1 << 20 && lo > INT32_MIN && hi < INT32_MAX && lo < hi;
  const char *from = lo ? arena_printf(L->a, "%lld + ", (long long)lo) : "";
  if (counts)
    diag_hint(L->c, d, "write %sarange(0, %lld) * %lld", from, (long long)((hi - lo + step - 1) / step), (long long)step);
  return val_poison(c->span);
}

Val
builtin_arange(Lower *L, Call *c)
{
  i64 lo = 0, hi;
  for (u32 i = 0; i < 2; i++)
    if (c->given[i] && c->args[i].kind == V_IR) {
      Diag *d = ERR(L, c->args[i].span, E_NOT_CONST, "an extent");
      note_source(L, d, c->args[i]);
      diag_hint(L->c, d, "arange goes over a block of fixed extent, and a mask says what is there: arange(0, BLOCK), mask=i < n");
      return val_poison(c->span);
    }
  if (!call_int(L, c, 0, "the bounds", c->given[1] ? &lo : &hi) || (c->given[1] && !call_int(L, c, 1, "the bounds", &hi)))
    return val_poison(c->span);
  if (c->given[2] && c->args[2].kind == V_CONST && !const_is_float(c->args[2].k))
    return arange_step(L, c, lo, hi, c->args[2].k.i);
  if (lo < INT32_MIN || hi - 1 > INT32_MAX || lo > INT32_MAX || hi < INT32_MIN)
    return call_error(L, c, c->span, "its values are i32");
  if (hi <= lo)
    return call_error(L, c, c->span, arena_printf(L->a, "the range from %lld to %lld is empty", (long long)lo, (long long)hi));
  u32 n = hi - lo > TILE_MAX_NUMEL ? TILE_MAX_NUMEL + 1 : (u32)(hi - lo);
  if (!shape_check(L, c->span, 1, &n))
    return val_poison(c->span);
  L->b.span = c->span;
  return with_layout(L, c, 2, ir_arange(&L->b, lo, hi));
}

static Val
filled(Lower *L, Call *c, Val value, const DType *dt, u32 layout)
{
  u32 rank, shape[MAX_RANK];
  if (!call_shape(L, c, 0, &rank, shape) || !val_need_data(L, value, c->name))
    return val_poison(c->span);
  if (val_is_tile(value))
    return call_error(L, c, value.span, "the value is a scalar");
  if (dt)
    value = val_cast(L, value.span, value, *dt, NULL, false);
  if (value.kind == V_POISON)
    return value;
  L->b.span = value.span = c->span;
  const Type *elem = val_type_of(L, value), *t = type_tile(L->c, elem, (int)rank, shape, NULL);
  Value *v = value.kind == V_CONST ? val_as(L, value, elem->dt, t) : ir_splat(&L->b, value.ir, t);
  return with_layout(L, c, layout, v);
}

Val
builtin_full(Lower *L, Call *c)
{
  DType dt;
  if (c->given[2] && !call_dtype(L, c, 2, &dt))
    return val_poison(c->span);
  return filled(L, c, c->args[1], c->given[2] ? &dt : NULL, 3);
}

Val
builtin_zeros(Lower *L, Call *c)
{
  DType dt;
  return call_dtype(L, c, 1, &dt) ? filled(L, c, val_const(const_int(0), c->span), &dt, 2) : val_poison(c->span);
}

/* ---- shapes ---- */

Val
builtin_reshape(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK], count = 1;
  if (c->args[0].kind == V_BUFFER)
    return buffer_reshaped(L, c);
  Value *x = call_tile(L, c, 0);
  if (!x || !call_shape(L, c, 1, &rank, shape))
    return val_poison(c->span);
  for (u32 i = 0; i < rank; i++)
    count *= shape[i];
  if (count != type_numel(x->type))
    return call_error(L, c, c->span, arena_printf(L->a, "%s has %u elements, the new shape %u", type_str(L->c, x->type),
                                                  type_numel(x->type), count));
  L->b.span = c->span;
  return val_ir(ir_reshape(&L->b, x, (int)rank, shape), c->span);
}

Val
builtin_broadcast_to(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK];
  if (!val_need_data(L, c->args[0], c->name) || !call_shape(L, c, 1, &rank, shape))
    return val_poison(c->span);
  const Type *t = type_tile(L->c, type_elem(L->c, val_type_of(L, c->args[0])), (int)rank, shape, NULL);
  return val_assign(L, c->span, c->args[0], t, "the result", (Span){0, 0});
}

Val
builtin_expand_dims(Lower *L, Call *c)
{
  i64 axis;
  Value *x = call_tile(L, c, 0);
  if (!x || !call_int(L, c, 1, "the axis", &axis))
    return val_poison(c->span);
  u32 rank = x->type->rank;
  if (axis < -(i64)rank - 1 || axis > (i64)rank || rank == MAX_RANK) {
    ERR(L, c->span, E_AXIS, (long long)axis, type_str(L->c, x->type));
    return val_poison(c->span);
  }
  L->b.span = c->span;
  return val_ir(ir_expand_dims(&L->b, x, (int)(axis < 0 ? axis + rank + 1 : axis)), c->span);
}

static Val
permuted(Lower *L, Call *c, Value *x, const int *perm)
{
  L->b.span = c->span;
  return val_ir(ir_permute(&L->b, x, perm), c->span);
}

/* Of a tile, or of a buffer: then it is a view. */
Val
builtin_permute(Lower *L, Call *c)
{
  int perm[MAX_RANK];
  if (c->args[0].kind == V_BUFFER)
    return buffer_permuted(L, c, NULL);
  Value *x = call_tile(L, c, 0);
  if (!x || !call_perm(L, c, 1, x->type->rank, perm))
    return val_poison(c->span);
  return permuted(L, c, x, perm);
}

/* The order with the last two dimensions exchanged; false after reporting. */
static bool
call_trans(Lower *L, Call *c, int rank, int *perm)
{
  if (rank < 2) {
    call_error(L, c, c->span, "it needs two dimensions");
    return false;
  }
  for (int i = 0; i < rank; i++)
    perm[i] = i;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return true;
}

Val
builtin_trans(Lower *L, Call *c)
{
  int perm[MAX_RANK];
  if (c->args[0].kind == V_BUFFER) {
    bool ok = call_trans(L, c, c->args[0].ir->type->rank, perm);
    return ok ? buffer_permuted(L, c, perm) : val_poison(c->span);
  }
  Value *x = call_tile(L, c, 0);
  return x && call_trans(L, c, x->type->rank, perm) ? permuted(L, c, x, perm) : val_poison(c->span);
}
