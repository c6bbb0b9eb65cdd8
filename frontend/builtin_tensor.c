/* builtin_tensor.c - tensors: where they lie, their boxes as tiles, and copies of boxes to and from buffers. */
#include "sema.h"

/* ---- what is known of one ---- */

Val
tensor_question(Lower *L, const Call *c, OpCode code, DType answer, u32 axis)
{
  Value *t = c->args[0].ir;
  const Type *r = type_scalar(L->c, answer);
  L->b.span = c->span;
  Op *op = op_create(&L->b, code, 1, &t, 1, &r, 0);
  op_set_int(op, AT_AXIS, axis);
  return val_ir(op_result(op), c->span);
}

/* The last dimension is contiguous: a launch sees to that. */
static Val
stride_along(Lower *L, const Call *c, u32 axis)
{
  bool last = axis + 1u == c->args[0].ir->type->rank;
  return last ? val_const(const_typed(DT_I64, 1, 0), c->span) : tensor_question(L, c, OP_TENSOR_STRIDE, DT_I64, axis);
}

Val
builtin_stride(Lower *L, Call *c)
{
  Value *t = call_tensor(L, c, 0);
  int axis;
  return t && call_axis(L, c, 1, t->type, &axis) ? stride_along(L, c, (u32)axis) : val_poison(c->span);
}

Val
builtin_strides(Lower *L, Call *c)
{
  Value *t = call_tensor(L, c, 0);
  if (!t)
    return val_poison(c->span);
  Val v = val_list(L, V_LIST, t->type->rank, c->span);
  for (u32 i = 0; i < v.list.n; i++)
    v.list.v[i] = stride_along(L, c, i);
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

/* ---- boxes as tiles ---- */

static bool
box_rank_fits(Lower *L, Call *c, u32 i, u32 rank, const Type *tensor)
{
  if (rank <= tensor->rank)
    return true;
  call_error(L, c, c->args[i].span, arena_printf(L->a, "a box of %u dimensions in a tensor of %u", rank, tensor->rank));
  return false;
}

static void
set_evict(Op *op, const char *evict)
{
  if (evict)
    op_set_str(op, AT_EVICT, evict);
}

static bool
call_evict(Lower *L, Call *c, u32 i, const char **evict)
{
  return call_word(L, c, i, "first last normal", NULL, evict);
}

Val
builtin_tensor_load(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK];
  Values x = {0};
  const char *evict;
  Value *t = call_tensor(L, c, 0);
  if (!t || !call_shape(L, c, 2, &rank, shape) || !call_evict(L, c, 3, &evict) || !box_rank_fits(L, c, 2, rank, t->type))
    return val_poison(c->span);
  vec_push(L->a, &x, t);
  if (!call_coordinates(L, c, 1, t->type, &x))
    return val_poison(c->span);
  const Type *r = type_tile(L->c, type_scalar(L->c, t->type->dt), (int)rank, shape, NULL);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TENSOR_LOAD, x.len, x.data, 1, &r, 0);
  set_evict(op, evict);
  return val_ir(op_result(op), c->span);
}

static bool
adds(Lower *L, Call *c, u32 i, DType d, const char **rmw)
{
  if (!call_word(L, c, i, "add", NULL, rmw))
    return false;
  if (*rmw && !tma_adds(d))
    call_error(L, c, c->args[i].span, arena_printf(L->a, "no tensor copy adds %s", dtype_info[d].name));
  return !*rmw || tma_adds(d);
}

Val
builtin_tensor_store(Lower *L, Call *c)
{
  Values v = {0};
  const char *rmw, *evict;
  Value *t = call_tensor(L, c, 0), *x = t ? call_tile(L, c, 2) : NULL;
  if (!x || !(x = call_element(L, c, c->args[2], t->type->dt, x->type)) || !adds(L, c, 3, t->type->dt, &rmw) ||
      !call_evict(L, c, 4, &evict) || !box_rank_fits(L, c, 2, x->type->rank, t->type))
    return val_poison(c->span);
  vec_push(L->a, &v, t);
  vec_push(L->a, &v, x);
  if (!call_coordinates(L, c, 1, t->type, &v))
    return val_poison(c->span);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TENSOR_STORE, v.len, v.data, 0, NULL, 0);
  set_evict(op, evict);
  if (rmw)
    op_set_str(op, AT_RMW, rmw);
  return val_void(c->span);
}

/* ---- boxes in buffers ---- */

/* A copy of a box: the arguments that are its buffer, tensor, coordinates and hint. */
typedef struct BoxCall { OpCode code; u32 s, t, at, evict; } BoxCall;

static bool
box_fits(Lower *L, Call *c, const BoxCall *b, const Value *s, const Type *tensor)
{
  TmaForm form;
  const Type *buffer = s->type;
  if (buffer->dt != tensor->dt) {
    note_value(L, ERR(L, c->span, E_MATCH, c->name, type_str(L->c, buffer), type_str(L->c, tensor)), c->args[b->s]);
    return false;
  }
  const char *view = tma_view_error(s), *wrong = view ? view : tma_form_error(L->c, buffer, tensor->rank, &form);
  if (wrong)
    call_error(L, c, c->args[b->s].span, wrong);
  return !wrong;
}

/* m: the mbarrier, or NULL. NULL after reporting. */
static Op *
box_copy(Lower *L, Call *c, BoxCall b, Value *m)
{
  Values x = {0};
  const char *evict;
  Value *s = call_buffer(L, c, b.s, false), *t = s ? call_tensor(L, c, b.t) : NULL;
  if (!t || !call_evict(L, c, b.evict, &evict) || !box_fits(L, c, &b, s, t->type))
    return NULL;
  vec_push(L->a, &x, s);
  vec_push(L->a, &x, t);
  if (m)
    vec_push(L->a, &x, m);
  if (!call_coordinates(L, c, b.at, t->type, &x))
    return NULL;
  L->b.span = c->span;
  Op *op = op_create(&L->b, b.code, x.len, x.data, 0, NULL, 0);
  set_evict(op, evict);
  return op;
}

enum { AXES = 3 };                /* of a grid */

/* Argument i as some of them. */
static bool
call_multicast(Lower *L, Call *c, u32 i, u32 *n, i64 *axes)
{
  u32 seen = 0;
  *n = 0;
  if (c->given[i] && !call_ints(L, c, i, "axes of the grid", AXES, n, axes))
    return false;
  for (u32 k = 0; k < *n; k++) {
    if (axes[k] < 0 || axes[k] >= AXES || seen >> axes[k] & 1) {
      call_error(L, c, c->args[i].span, "multicast takes axes 0, 1 and 2 of the grid, each at most once");
      return false;
    }
    seen |= 1u << axes[k];
  }
  return true;
}

Val
builtin_tma_load(Lower *L, Call *c)
{
  i64 axes[AXES];
  u32 n;
  Value *m = call_mbarrier(L, c, 2, false);
  Op *op = m && call_multicast(L, c, 5, &n, axes) ? box_copy(L, c, (BoxCall){OP_TMA_LOAD, 0, 1, 3, 4}, m) : NULL;
  if (op && n)
    op_set_ints(op, AT_MULTICAST, axes, n);
  return op ? val_void(c->span) : val_poison(c->span);
}

Val
builtin_tma_store(Lower *L, Call *c)
{
  const char *rmw;
  Op *op = call_word(L, c, 3, "add", NULL, &rmw) ? box_copy(L, c, (BoxCall){OP_TMA_STORE, 1, 0, 2, 4}, NULL) : NULL;
  if (!op || !adds(L, c, 3, op_buffer(op)->type->dt, &rmw))
    return val_poison(c->span);
  if (rmw)
    op_set_str(op, AT_RMW, rmw);
  return val_void(c->span);
}

Val
builtin_tma_prefetch(Lower *L, Call *c)
{
  return box_copy(L, c, (BoxCall){OP_TMA_PREFETCH, 0, 1, 2, 3}, NULL) ? val_void(c->span) : val_poison(c->span);
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
