/* builtin_tensor.c - tensors: where they lie, their boxes as tiles, and copies of boxes to and from buffers. */
#include "sema.h"

/* ---- what is known of one ---- */

Val
tensor_question(Lower *L, const Call *c, OpCode code, DType answer, u32 axis)
{
  Value *t = c->args[0].ir;
  const Type *r = type_scalar(L->c, answer);
  if (tensor_is_made(t))
    return val_ir(tensor_number(t, code, axis), c->span);
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
  if (tensor_is_made(t))
    return val_ir(tensor_pointer(t), c->span);
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

/* ---- tensors that the program makes ---- */

/* v as a scalar of integer type d; NULL: it is no integer. */
static Value *
as_number(Lower *L, Val v, DType d)
{
  Const k;
  if (v.kind == V_CONST && !const_is_float(v.k) && !const_is_bool(v.k) && const_cast(v.k, d, ROUND_NEAREST, false, &k))
    return val_value(L, val_const(k, v.span));
  bool number = v.kind == V_IR && type_is_int(v.ir->type) && !type_is_tile(v.ir->type) && v.ir->type->dt != DT_I1;
  return number ? ir_cast(&L->b, v.ir, d) : NULL;
}

/* Argument i, a list of n integers, in a type. */
static bool
call_numbers(Lower *L, Call *c, u32 i, u32 n, DType d, const char *what, Value **out)
{
  Val v = c->args[i];
  bool ok = val_is_list(v) && v.list.n == n;
  L->b.span = c->span;
  for (u32 k = 0; ok && k < n; k++)
    ok = (out[k] = as_number(L, v.list.v[k], d)) != NULL;
  if (!ok && v.kind != V_POISON)
    ERR(L, v.span, E_ARGUMENT, c->name, arena_printf(L->a, "a list of %u integers, the %s", n, what), val_str(L, v));
  return ok;
}

/* Strides of rows one behind the other. */
static void
dense_strides(Lower *L, u32 rank, Value *const *extents, Value **out)
{
  Value *step = ir_const_int(&L->b, type_scalar(L->c, DT_I64), 1);
  for (u32 d = rank; d--;) {
    out[d] = step;
    step = ir_binary(&L->b, OP_MUL, step, ir_cast(&L->b, extents[d], DT_I64));
  }
}

static bool
call_strides(Lower *L, Call *c, u32 i, u32 rank, Value *const *extents, Value **out)
{
  i64 last;
  if (!c->given[i]) {
    dense_strides(L, rank, extents, out);
    return true;
  }
  if (!call_numbers(L, c, i, rank, DT_I64, "strides", out))
    return false;
  if (value_const_int(out[rank - 1], &last) && last == 1)
    return true;
  call_error(L, c, c->args[i].span, "the last stride is 1");
  return false;
}

Val
builtin_tensor_at(Lower *L, Call *c)
{
  Val p = c->args[0], shape = c->args[1];
  u32 rank = val_is_list(shape) ? shape.list.n : 0;
  Value *numbers[2 * MAX_RANK];
  Values x = {0};
  Value *at = call_pointer(L, c, 0), *map = at && c->given[3] ? call_pointer(L, c, 3) : NULL;
  if (!at || (c->given[3] && !map))
    return val_poison(c->span);
  if (type_is_tile(at->type) || dtype_bits(at->type->dt) < 8)
    return call_error(L, c, p.span, "a tensor begins at one pointer, to elements of 8 bits and more");
  if (map && map->type != type_ptr(L->c, DT_U8))
    return call_error(L, c, c->args[3].span, "the memory of a map is *u8");
  if (!rank || rank > MAX_RANK)
    return call_error(L, c, shape.span, arena_printf(L->a, "a tensor has from 1 to %d extents", MAX_RANK));
  if (!call_numbers(L, c, 1, rank, DT_I32, "extents", numbers) || !call_strides(L, c, 2, rank, numbers, numbers + rank))
    return val_poison(c->span);
  vec_push(L->a, &x, at);
  for (u32 i = 0; i + 1 < 2 * rank; i++)
    vec_push(L->a, &x, numbers[i]);
  if (map)
    vec_push(L->a, &x, map);
  const Type *t = type_tensor(L->c, at->type->dt, (int)rank);
  L->b.span = c->span;
  return val_tensor(op_result(op_create(&L->b, OP_TENSOR_AT, x.len, x.data, 1, &t, 0)), c->span);
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

/* Argument i: a number for each of n dimensions, or one for all; `absent` for all where it is not given. */
static bool
call_corners(Lower *L, Call *c, u32 i, const char *what, u32 n, i32 absent, i32 *out)
{
  i64 v[WINDOW_DIMS];
  u32 given = 1;
  if (c->given[i] && !call_ints(L, c, i, what, WINDOW_DIMS, &given, v))
    return false;
  if (given != 1 && given != n) {
    const char *rule = "one number, or one for each dimension but the first and the last";
    call_error(L, c, c->args[i].span, arena_printf(L->a, "%s: %s, here %u, not %u", what, rule, n, given));
    return false;
  }
  for (u32 k = 0; k < n; k++) {
    i64 one = c->given[i] ? v[given == 1 ? 0 : k] : absent;
    out[k] = (i32)(one < -WINDOW_MOST - 1 ? -WINDOW_MOST - 2 : one > WINDOW_MOST ? WINDOW_MOST + 1 : one);   /* too large stays so */
  }
  return true;
}

/* Arguments i to i + 3: offsets, lower, upper, steps. w->n 0: none of them is given. */
static bool
call_window(Lower *L, Call *c, u32 i, const Type *t, TmaWindow *w)
{
  bool given = c->given[i] || c->given[i + 1] || c->given[i + 2] || c->given[i + 3];
  *w = (TmaWindow){.n = given && t->rank >= 3 ? t->rank - 2u : 0};
  if (!given)
    return true;
  if (!c->given[i + 1] || !c->given[i + 2]) {
    call_error(L, c, c->span, "a window has lower and upper corners");
    return false;
  }
  if (w->n && (!call_corners(L, c, i + 1, "lower corners of a window", w->n, 0, w->lower) ||
               !call_corners(L, c, i + 2, "upper corners of a window", w->n, 0, w->upper) ||
               !call_corners(L, c, i + 3, "steps of a window", w->n, 1, w->step)))
    return false;
  const char *wrong = tma_window_error(L->a, w, t->rank);
  if (wrong)
    call_error(L, c, c->args[i + 1].span, wrong);
  return !wrong;
}

/* Argument i as offsets of pixels, an i32 for each of the window's dimensions; zeros where it is not given. */
static bool
call_offsets(Lower *L, Call *c, u32 i, const TmaWindow *w, Values *out)
{
  for (u32 k = 0; w->n && !c->given[i] && k < w->n; k++)
    vec_push(L->a, out, ir_const_int(&L->b, type_scalar(L->c, DT_I32), 0));
  return !w->n || !c->given[i] || call_indices(L, c, i, w->n, "offset", "a window", out);
}

static void
set_window(Op *op, const TmaWindow *w)
{
  i64 v[3][WINDOW_DIMS];
  for (u32 i = 0; i < w->n; i++) {
    v[0][i] = w->lower[i];
    v[1][i] = w->upper[i];
    v[2][i] = w->step[i];
  }
  if (!w->n)
    return;
  op_set_ints(op, AT_LOWER, v[0], w->n);
  op_set_ints(op, AT_UPPER, v[1], w->n);
  op_set_ints(op, AT_STEPS, v[2], w->n);
}

static bool
window_shape_fits(Lower *L, Call *c, u32 i, const TmaWindow *w, u32 rank)
{
  if (!w->n || rank == 2)
    return true;
  const char *rule = "what is seen through a window has two dimensions, pixels and channels";
  call_error(L, c, c->args[i].span, arena_printf(L->a, "%s, not %u", rule, rank));
  return false;
}

Val
builtin_tensor_load(Lower *L, Call *c)
{
  u32 rank, shape[MAX_RANK];
  Values x = {0};
  const char *evict;
  TmaWindow w;
  Value *t = call_tensor(L, c, 0);
  if (!t || !call_shape(L, c, 2, &rank, shape) || !call_evict(L, c, 3, &evict) || !box_rank_fits(L, c, 2, rank, t->type) ||
      !call_window(L, c, 4, t->type, &w) || !window_shape_fits(L, c, 2, &w, rank))
    return val_poison(c->span);
  vec_push(L->a, &x, t);
  if (!call_coordinates(L, c, 1, t->type, &x) || !call_offsets(L, c, 4, &w, &x))
    return val_poison(c->span);
  const Type *r = type_tile(L->c, type_scalar(L->c, t->type->dt), (int)rank, shape, NULL);
  L->b.span = c->span;
  Op *op = op_create(&L->b, OP_TENSOR_LOAD, x.len, x.data, 1, &r, 0);
  set_evict(op, evict);
  set_window(op, &w);
  return val_ir(op_result(op), c->span);
}

/* Argument i as what becomes of elements that are there; copies: by tensor copies alone. */
static bool
call_rmw(Lower *L, Call *c, u32 i, DType d, bool copies, const char **rmw)
{
  if (!call_word(L, c, i, "add min max and or xor", NULL, rmw))
    return false;
  const char *name = dtype_info[d].name;
  if (*rmw && !atomic_rmw_allowed(*rmw, d))
    call_error(L, c, c->args[i].span, arena_printf(L->a, "there is no atomic '%s' of %s", *rmw, name));
  else if (*rmw && copies && !tma_reduces(*rmw, d))
    call_error(L, c, c->args[i].span, arena_printf(L->a, "tensor copies have no '%s' of %s", *rmw, name));
  else
    return true;
  return false;
}

Val
builtin_tensor_store(Lower *L, Call *c)
{
  Values v = {0};
  const char *rmw, *evict;
  Value *t = call_tensor(L, c, 0), *x = t ? call_tile(L, c, 2) : NULL;
  if (!x || !(x = call_element(L, c, c->args[2], t->type->dt, x->type)) || !call_rmw(L, c, 3, t->type->dt, false, &rmw) ||
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

/* A copy of a box: the arguments that are its buffer, tensor, coordinates, hint and, from one on, window (0: it takes none). */
typedef struct BoxCall { OpCode code; u32 s, t, at, evict, window; } BoxCall;

static bool
box_fits(Lower *L, Call *c, const BoxCall *b, const Value *s, const Type *tensor, const TmaWindow *w)
{
  TmaForm form;
  const Type *buffer = s->type;
  if (buffer->dt != tensor->dt) {
    note_value(L, ERR(L, c->span, E_MATCH, c->name, type_str(L->c, buffer), type_str(L->c, tensor)), c->args[b->s]);
    return false;
  }
  const char *view = tma_view_error(s), *wrong = view ? view : tma_form_error(L->c, buffer, tensor->rank, w, &form);
  if (wrong)
    call_error(L, c, c->args[b->s].span, wrong);
  return !wrong;
}

/* Of a last coordinate that is known; others are left to the run. */
static bool
box_begins(Lower *L, Call *c, const BoxCall *b, const Value *last, DType d)
{
  i64 at;
  const char *wrong = value_const_int(last, &at) ? tma_at_error(L->a, d, at) : NULL;
  if (wrong)
    call_error(L, c, c->args[b->at].span, wrong);
  return !wrong;
}

/* m: the mbarrier, or NULL. NULL after reporting. */
static Op *
box_copy(Lower *L, Call *c, BoxCall b, Value *m)
{
  Values x = {0};
  const char *evict;
  TmaWindow w = {0};
  Value *s = call_buffer(L, c, b.s, false), *t = s ? call_tensor(L, c, b.t) : NULL;
  if (t && tensor_is_made(t)) {
    const char *rule = "copies by hand are of tensors that the launch gives; tensor_load and tensor_store also take others";
    call_error(L, c, c->args[b.t].span, rule);
    return NULL;
  }
  if (!t || !call_evict(L, c, b.evict, &evict) || (b.window && !call_window(L, c, b.window, t->type, &w)) ||
      !box_fits(L, c, &b, s, t->type, &w))
    return NULL;
  vec_push(L->a, &x, s);
  vec_push(L->a, &x, t);
  if (m)
    vec_push(L->a, &x, m);
  if (!call_coordinates(L, c, b.at, t->type, &x) || !box_begins(L, c, &b, x.data[x.len - 1], t->type->dt) ||
      !call_offsets(L, c, b.window, &w, &x))
    return NULL;
  L->b.span = c->span;
  Op *op = op_create(&L->b, b.code, x.len, x.data, 0, NULL, 0);
  set_evict(op, evict);
  set_window(op, &w);
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
  Op *op = m && call_multicast(L, c, 5, &n, axes) ? box_copy(L, c, (BoxCall){OP_TMA_LOAD, 0, 1, 3, 4, 6}, m) : NULL;
  if (op && n)
    op_set_ints(op, AT_MULTICAST, axes, n);
  return op ? val_void(c->span) : val_poison(c->span);
}

Val
builtin_tma_store(Lower *L, Call *c)
{
  const char *rmw;
  Op *op = box_copy(L, c, (BoxCall){OP_TMA_STORE, 1, 0, 2, 4, 0}, NULL);
  if (!op || !call_rmw(L, c, 3, op_buffer(op)->type->dt, true, &rmw))
    return val_poison(c->span);
  if (rmw)
    op_set_str(op, AT_RMW, rmw);
  return val_void(c->span);
}

Val
builtin_tma_prefetch(Lower *L, Call *c)
{
  return box_copy(L, c, (BoxCall){OP_TMA_PREFETCH, 0, 1, 2, 3, 4}, NULL) ? val_void(c->span) : val_poison(c->span);
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
