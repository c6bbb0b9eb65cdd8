/* builtin_tensor.c - tensors: where they lie, and copies of their boxes to and from buffers. */
#include "sema.h"

enum { PENDING_MOST = 64 };

/* ---- what is known of one ---- */

/* The last dimension is contiguous: a launch sees to that. */
static Val
stride_along(Lower *L, const Call *c, Value *t, u32 axis)
{
  const Type *wide = type_scalar(L->c, DT_I64);
  if (axis + 1u == t->type->rank)
    return val_const(const_typed(DT_I64, 1, 0), c->span);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TENSOR_STRIDE, 1, &t, 1, &wide, 0);
  op_set_int(op, AT_AXIS, axis);
  return val_ir(op_result(op), c->span);
}

Val
builtin_stride(Lower *L, Call *c)
{
  Value *t = call_tensor(L, c, 0);
  int axis;
  return t && call_axis(L, c, 1, t->type, &axis) ? stride_along(L, c, t, (u32)axis) : val_poison(c->span);
}

Val
builtin_strides(Lower *L, Call *c)
{
  Value *t = call_tensor(L, c, 0);
  if (!t)
    return val_poison(c->span);
  Val v = val_list(L, V_LIST, t->type->rank, c->span);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = stride_along(L, c, t, i);
  return v;
}

Val
builtin_address(Lower *L, Call *c)
{
  Value *t = call_tensor(L, c, 0);
  if (!t)
    return val_poison(c->span);
  const Type *ptr = type_ptr(L->c, t->type->dt);
  L->b.span = c->span;
  return val_ir(op_result(op_create(&L->b, OP_TENSOR_BASE, 1, &t, 1, &ptr, 0)), c->span);
}

/* Of a row of buffers those of one. */
Val
builtin_bytes(Lower *L, Call *c)
{
  Val v = c->args[0];
  Value *x = v.kind == V_BUFFER ? call_buffer(L, c, 0, true) : call_tile(L, c, 0);
  if (!x)
    return val_poison(c->span);
  return val_const(const_int((i64)type_numel(x->type) * type_elem_bytes(x->type)), c->span);
}

/* ---- boxes ---- */

/* Argument s as the buffer of a box of argument t, at the coordinates that are argument `at`: appended to *x behind what is there. */
static bool
box_operands(Lower *L, Call *c, u32 s, u32 t, u32 at, Values *x)
{
  TmaForm form;
  const Type *buffer = c->args[s].ir->type, *tensor = c->args[t].ir->type;
  if (buffer->dt != tensor->dt) {
    Diag *d = ERR(L, c->span, E_MATCH, c->name, type_str(L->c, buffer), type_str(L->c, tensor));
    note_value(L, d, c->args[s]);
    return false;
  }
  const char *wrong = tma_form_error(L->c, buffer, tensor->rank, &form);
  if (wrong) {
    call_error(L, c, c->args[s].span, wrong);
    return false;
  }
  return call_coordinates(L, c, at, tensor, x);
}

static void
set_evict(Op *op, const char *evict)
{
  if (evict)
    op_set_str(op, AT_EVICT, evict);
}

static bool
call_evict(Lower *L, Call *c, u32 i, const char **out)
{
  return call_word(L, c, i, "first last normal", NULL, out);
}

Val
builtin_tma_load(Lower *L, Call *c)
{
  Values x = {0};
  const char *evict;
  Value *s = call_buffer(L, c, 0, false), *t = s ? call_tensor(L, c, 1) : NULL, *m = t ? call_mbarrier(L, c, 2, false) : NULL;
  if (!m || !call_evict(L, c, 4, &evict))
    return val_poison(c->span);
  vec_push(L->a, &x, s);
  vec_push(L->a, &x, t);
  vec_push(L->a, &x, m);
  if (!box_operands(L, c, 0, 1, 3, &x))
    return val_poison(c->span);
  L->b.span = c->span;
  set_evict(op_create(&L->b, OP_TMA_LOAD, x.len, x.data, 0, NULL, 0), evict);
  return val_void(c->span);
}

Val
builtin_tma_store(Lower *L, Call *c)
{
  Values x = {0};
  const char *rmw, *evict;
  Value *t = call_tensor(L, c, 0), *s = t ? call_buffer(L, c, 1, false) : NULL;
  if (!s || !call_word(L, c, 3, "add", NULL, &rmw) || !call_evict(L, c, 4, &evict))
    return val_poison(c->span);
  vec_push(L->a, &x, s);
  vec_push(L->a, &x, t);
  if (!box_operands(L, c, 1, 0, 2, &x))
    return val_poison(c->span);
  if (rmw && !tma_adds(t->type->dt))
    return call_error(L, c, c->args[3].span, arena_printf(L->a, "no tensor copy adds %s", dtype_info[t->type->dt].name));
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TMA_STORE, x.len, x.data, 0, NULL, 0);
  if (rmw)
    op_set_str(op, AT_RMW, rmw);
  set_evict(op, evict);
  return val_void(c->span);
}

Val
builtin_tma_prefetch(Lower *L, Call *c)
{
  Values x = {0};
  const char *evict;
  Value *s = call_buffer(L, c, 0, false), *t = s ? call_tensor(L, c, 1) : NULL;
  if (!t || !call_evict(L, c, 3, &evict))
    return val_poison(c->span);
  vec_push(L->a, &x, s);
  vec_push(L->a, &x, t);
  if (!box_operands(L, c, 0, 1, 2, &x))
    return val_poison(c->span);
  L->b.span = c->span;
  set_evict(op_create(&L->b, OP_TMA_PREFETCH, x.len, x.data, 0, NULL, 0), evict);
  return val_void(c->span);
}

Val
builtin_tma_commit(Lower *L, Call *c)
{
  L->b.span = c->span;
  op_create(&L->b, OP_TMA_COMMIT, 0, NULL, 0, NULL, 0);
  return val_void(c->span);
}

Val
builtin_tma_wait(Lower *L, Call *c)
{
  i64 pending;
  bool read;
  if (!call_int(L, c, 0, "the groups that may be under way", &pending) || !call_bool(L, c, 1, false, &read))
    return val_poison(c->span);
  if (pending < 0 || pending > PENDING_MOST)
    return call_error(L, c, c->args[0].span, "from 0 to 64 groups may be under way");
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TMA_WAIT, 0, NULL, 0, NULL, 0);
  op_set_int(op, AT_PENDING, pending);
  if (read)
    op_set_int(op, AT_READ, 1);
  return val_void(c->span);
}
