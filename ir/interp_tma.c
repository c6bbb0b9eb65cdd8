/* interp_tma.c - tensors, and copies of their boxes by the asynchronous proxy.
 *
 * A tma_load reads global memory when it runs; its bytes are pending until the phase of its mbarrier ends, and others than those who have
 * waited for that phase do not see them. The phase ends when all have arrived and as many bytes have come as were announced.
 * A tma_store reads its buffer when it runs; until the tma_wait that covers its group, to write the buffer is a fault, and global memory
 * gets what was stored as late as that: at the tma_wait that is not for reading only, or at the end of the team.
 * A tma_prefetch moves nothing that is seen, but what it names has to be a box.
 * A tensor_load and a tensor_store are done when they are, whatever the hardware's copies ask of a tensor.
 * The proxy: where barriers are checked, what threads wrote to shared memory before is seen by a copy only if they have executed a
 * fence for it before they met or arrived. */
#include "interp_run.h"

enum { TF32_NAN = 0x7fffe000 };

/* type: the buffer's, or the tile's; first: the operand that is the first coordinate. */
typedef struct Box { const Op *op; const Type *type; const u64 *tensor; u32 rank, first; } Box;

static const u64 *
extents(const Box *b)
{
  return b->tensor + offsetof(InterpTensor, extent) / sizeof(u64);
}

static const u64 *
strides(const Box *b)
{
  return b->tensor + offsetof(InterpTensor, stride) / sizeof(u64);
}

static Box
box_of(Interp *in, const Op *op, const Type *type, u32 first)
{
  const Value *t = op_tensor(op);
  return (Box){op, type, interp_get(in, t), t->type->rank, first};
}

/* Coordinate i; behind those stand the offsets of a window. */
static i64
number_of(Interp *in, const Box *b, u32 i)
{
  return scalar_int(DT_I32, *interp_get(in, op_operand(b->op, b->first + i)));
}

/* Offsets fit their bits, and (corners) the window has pixels. */
static bool
window_opens(Interp *in, const Box *b, bool corners)
{
  TmaWindow w = tma_window(b->op);
  i64 most = w.n ? (1 << WINDOW_BITS / w.n) - 1 : 0;
  for (u32 d = 0; d < w.n; d++) {
    i64 shift = number_of(in, b, b->rank + d), last = (i64)extents(b)[d + 1] - 1 + w.upper[d];
    if (shift < 0 || shift > most)
      return interp_fault(in, b->op, "an offset of pixels of %lld along dimension %u: 0 to %lld are possible", (long long)shift, d + 1,
                          (long long)most) == FLOW_NEXT;
    if (corners && last < w.lower[d])
      return interp_fault(in, b->op, "the window has no pixel along dimension %u: it goes from %d to %lld", d + 1, w.lower[d],
                          (long long)last) == FLOW_NEXT;
  }
  return true;
}

/* With what the hardware asks of a tensor (CUDA driver API, cuTensorMapEncodeTiled). */
static bool
box_open(Interp *in, const Op *op, u32 first, Box *b)
{
  u32 size = dtype_bytes(op_tensor(op)->type->dt);
  *b = box_of(in, op, op_buffer(op)->type, first);
  if (!window_opens(in, b, true))
    return false;
  if (b->tensor[0] % 16)
    return interp_fault(in, op, "the tensor begins at 0x%llx, which is no multiple of 16", (unsigned long long)b->tensor[0]) == FLOW_NEXT;
  if (strides(b)[b->rank - 1] != 1)
    return interp_fault(in, op, "the tensor's last dimension is not contiguous") == FLOW_NEXT;
  for (u32 d = 0; d + 1 < b->rank; d++)
    if (strides(b)[d] * size % 16)
      return interp_fault(in, op, "a stride of the tensor, %llu bytes along dimension %u, is no multiple of 16",
                          (unsigned long long)(strides(b)[d] * size), d) == FLOW_NEXT;
  const char *wrong = tma_at_error(in->arena, op_tensor(op)->type->dt, number_of(in, b, b->rank - 1));
  return !wrong || interp_fault(in, op, "%s", wrong) == FLOW_NEXT;
}

/* Along dimension d + 1, where the pixel is that comes *n places behind the first; *n becomes the places along the dimension in front. */
static i64
pixel_place(Interp *in, const Box *b, const TmaWindow *w, u32 d, i64 *n)
{
  i64 at = number_of(in, b, d + 1), upper = (i64)extents(b)[d + 1] - 1 + w->upper[d], step = w->step[d], left = *n;
  i64 first = at > upper ? 1 : (upper - at) / step + 1, all = w->lower[d] > upper ? 1 : (upper - w->lower[d]) / step + 1;
  i64 shift = number_of(in, b, b->rank + d);
  *n = left < first ? 0 : 1 + (left - first) / all;
  return (left < first ? at + left * step : w->lower[d] + (left - first) % all * step) + shift;
}

/* The same through a window: element i is a channel of a pixel. */
static u64
pixel_address(Interp *in, const Box *b, const TmaWindow *w, u32 i)
{
  i64 left = i / b->type->shape[1], channel = number_of(in, b, b->rank - 1) + i % b->type->shape[1];
  bool inside = channel >= 0 && channel < (i64)extents(b)[b->rank - 1];
  u64 at = (u64)channel;
  for (u32 d = b->rank - 1; d--;) {
    i64 k = d ? pixel_place(in, b, w, d - 1, &left) : number_of(in, b, 0) + left;
    inside &= k >= 0 && k < (i64)extents(b)[d];
    at += (u64)k * strides(b)[d];
  }
  return inside ? b->tensor[0] + at * dtype_bytes(b->type->dt) : 0;
}

/* Where element i of the box is in global memory; 0: outside the tensor. */
static u64
address_of(Interp *in, const Box *b, u32 i)
{
  const Type *t = b->type;
  TmaWindow w = tma_window(b->op);
  if (w.n)
    return pixel_address(in, b, &w, i);
  u64 at = 0;
  for (u32 d = b->rank; d--;) {
    u32 pad = b->rank - t->rank, extent = d < pad ? 1 : t->shape[d - pad];
    i64 k = number_of(in, b, d) + i % extent;
    i /= extent;
    if (k < 0 || k >= (i64)extents(b)[d])
      return 0;
    at += (u64)k * strides(b)[d];
  }
  return b->tensor[0] + at * dtype_bytes(t->dt);
}

static u32
box_bytes(const Box *b)
{
  return type_numel(b->type) * dtype_bytes(b->type->dt);
}

/* The element's bits behind a copy that may round: to nearest, ties to even, and to one nan (seen on an H200). */
static u64
as_copied(const Op *op, u64 bits)
{
  if (!op_attr(op, AT_TF32))
    return bits;
  return float_is_nan(DT_F32, bits) ? TF32_NAN : float_to_bits(DT_F32, float_round_tf32((float)float_decode(DT_F32, bits), true));
}

/* To the buffer of the program of that rank, by its mbarrier. */
static bool
load_to(Interp *in, const Box *b, u32 rank)
{
  const Op *op = b->op;
  Mbar *m = interp_mbar(in, op, OPERAND(op, TMA_LOAD, m), rank);
  u32 n = type_numel(b->type), size = dtype_bytes(b->type->dt);
  if (!m || !interp_reach(in, op, rank))
    return false;
  for (u32 i = 0; i < n; i++) {
    u64 from = address_of(in, b, i);
    Copy c = {0, 0, size, 0, op};
    const void *p = from ? interp_element(in, op, from, size, i) : &c.value;
    if (!p || !interp_shared_begin(in, op, i, &c.at))
      return false;
    memcpy(&c.value, p, size);
    c.value = as_copied(op, c.value);
    vec_push(in->arena, &m->landing, c);
  }
  interp_reached(in);
  in->steps -= in->steps < n ? in->steps : n;
  interp_mbar_bytes(in, m, op, -(i64)box_bytes(b));
  return true;
}

/* The programs that get the box, by rank. */
static u32
recipients(const Interp *in, const Op *op)
{
  u32 step[3], all = cluster_recipients(op, step), first = in->program->rank;
  for (u32 a = 0; a < 3; a++)
    first -= in->program->at[a] % in->func->cluster[a] * step[a];
  return all << first;
}

Flow
interp_tma_load(Interp *in, const Op *op)
{
  Box b;
  u32 to = recipients(in, op);
  for (u32 left = to; left; left &= left - 1)
    if (interp_mbar_expected(in, OPERAND(op, TMA_LOAD, m), (u32)__builtin_ctz(left)))
      return FLOW_WAIT;
  if (!box_open(in, op, SLOT(TMA_LOAD, at), &b))
    return FLOW_FAULT;
  for (; to; to &= to - 1)
    if (!load_to(in, &b, (u32)__builtin_ctz(to)))
      return FLOW_FAULT;
  return FLOW_NEXT;
}

Flow
interp_tma_store(Interp *in, const Op *op)
{
  Box b;
  if (!box_open(in, op, SLOT(TMA_STORE, at), &b))
    return FLOW_FAULT;
  u32 n = type_numel(b.type), size = dtype_bytes(b.type->dt);
  for (u32 i = 0; i < n; i++) {
    Stored s = {{0, 0, size, in->actor->store_group, op}, 0, i, false};
    u64 to = address_of(in, &b, i);
    if (!interp_shared_lend(in, op, i, &s.copy))
      return FLOW_FAULT;
    s.to = to;
    vec_push(in->arena, &in->actor->stores, s);
  }
  in->steps -= in->steps < n ? in->steps : n;
  return FLOW_NEXT;
}

Flow
interp_tma_prefetch(Interp *in, const Op *op)
{
  Box b;
  return box_open(in, op, SLOT(TMA_PREFETCH, at), &b) ? FLOW_NEXT : FLOW_FAULT;
}

/* What a store does to each element that it finds. */
static OpCode
rmw_of(const Op *op)
{
  OpCode code = OP_ADD;
  rmw_find(op_str(op, AT_RMW, "add"), &code);
  return code;
}

/* What was stored becomes global memory's. */
static bool
store_lands(Interp *in, const Stored *s)
{
  const Op *op = s->copy.op;
  u64 old = 0, x = s->copy.value;
  void *p = s->to ? (void *)(uintptr_t)interp_element(in, op, s->to, s->copy.bytes, s->i) : NULL;
  if (!p)
    return !s->to;
  memcpy(&old, p, s->copy.bytes);
  if (op_attr(op, AT_RMW))
    scalar_binary(rmw_of(op), op_buffer(op)->type->dt, old, x, &x);
  memcpy(p, &x, s->copy.bytes);
  return true;
}

/* Groups before `group` release their buffers, and are done with if all. */
static Flow
finish_stores(Interp *in, u64 group, bool all)
{
  Actor *a = in->actor;
  u32 kept = 0;
  for (u32 i = 0; i < a->stores.len; i++) {
    Stored s = a->stores.data[i];
    if (s.copy.group < group && !s.released)
      interp_shared_return(in, &s.copy);
    s.released |= s.copy.group < group;
    if (s.copy.group < group && all && !store_lands(in, &s))
      return FLOW_FAULT;
    if (s.copy.group >= group || !all)
      a->stores.data[kept++] = s;
  }
  a->stores.len = kept;
  for (u32 i = 0; i < kept; i++)
    if (!a->stores.data[i].released)
      interp_shared_lent(in, &a->stores.data[i].copy);
  return FLOW_NEXT;
}

Flow
interp_tma_wait(Interp *in, const Op *op)
{
  u64 pending = (u64)op_int(op, AT_PENDING, 0), group = in->actor->store_group;
  return finish_stores(in, group > pending ? group - pending : 0, !op_int(op, AT_READ, 0));
}

/* The team ends: what it stored lands, if nothing is read any more. */
Flow
interp_tma_end(Interp *in)
{
  const Actor *a = in->actor;
  for (u32 i = 0; i < a->stores.len; i++)
    if (!a->stores.data[i].released)
      return interp_fault(in, a->stores.data[i].copy.op, "the %s ends while this copy still reads its buffer: no tma_wait covers it",
                          a->region ? "region" : "program");
  for (u32 i = 0; i < in->mbars.len && !a->region; i++)
    if (in->mbars.data[i]->landing.len && interp_rank_of(in, in->mbars.data[i]->team) == in->program->rank)
      return interp_fault(in, in->mbars.data[i]->landing.data[0].op, "the program ends while this copy is still under way");
  return finish_stores(in, UINT64_MAX, true);
}

/* ---- boxes as tiles ---- */

Flow
interp_tensor_load(Interp *in, const Op *op)
{
  u64 *out = interp_make(in, op, op_result(op));
  if (!out)
    return FLOW_FAULT;
  Box b = box_of(in, op, op_result(op)->type, SLOT(TENSOR_LOAD, at));
  if (!window_opens(in, &b, false))
    return FLOW_FAULT;
  for (u32 i = 0, n = type_numel(b.type), size = dtype_bytes(b.type->dt); i < n; i++) {
    u64 from = address_of(in, &b, i);
    const void *p = from ? interp_element(in, op, from, size, i) : NULL;
    if (from && !p)
      return FLOW_FAULT;
    out[i] = 0;
    if (p)
      memcpy(&out[i], p, size);
    out[i] = as_copied(op, out[i]);
  }
  return FLOW_NEXT;
}

Flow
interp_tensor_store(Interp *in, const Op *op)
{
  const Value *v = OPERAND(op, TENSOR_STORE, x);
  const u64 *x = interp_get(in, v);
  Box b = box_of(in, op, v->type, SLOT(TENSOR_STORE, at));
  for (u32 i = 0, n = type_numel(b.type), size = dtype_bytes(b.type->dt); i < n; i++) {
    u64 to = address_of(in, &b, i), old = 0, value = x[i];
    void *p = to ? (void *)(uintptr_t)interp_element(in, op, to, size, i) : NULL;
    if (to && !p)
      return FLOW_FAULT;
    if (!p)
      continue;
    memcpy(&old, p, size);
    if (op_attr(op, AT_RMW))
      scalar_binary(rmw_of(op), b.type->dt, old, value, &value);
    memcpy(p, &value, size);
  }
  return FLOW_NEXT;
}

/* ---- what is known of a tensor ---- */

Flow
interp_tensor(Interp *in, const Op *op)
{
  const u64 *t = interp_get(in, op_operand(op, 0));
  u64 *out = interp_make(in, op, op_result(op));
  Box b = {.tensor = t};
  i64 d = op_int(op, AT_AXIS, 0);
  if (!out)
    return FLOW_FAULT;
  out[0] = op->code == OP_TENSOR_BASE ? t[0] : op->code == OP_TENSOR_EXTENT ? extents(&b)[d] : strides(&b)[d];
  return FLOW_NEXT;
}

/* What a kernel makes is as large as its operands say, whatever a launch checks of others. */
Flow
interp_tensor_of(Interp *in, const Op *op)
{
  const Value *r = op_result(op);
  u64 *out = interp_make(in, op, r);
  InterpTensor t = {.base = interp_get(in, tensor_pointer(r))[0]};
  if (!out)
    return FLOW_FAULT;
  for (u32 d = 0; d < r->type->rank; d++) {
    const Value *extent = tensor_number(r, OP_TENSOR_EXTENT, d);
    const Value *stride = d + 1 < r->type->rank ? tensor_number(r, OP_TENSOR_STRIDE, d) : NULL;
    t.extent[d] = (u64)scalar_int(extent->type->dt, *interp_get(in, extent));
    t.stride[d] = stride ? (u64)scalar_int(stride->type->dt, *interp_get(in, stride)) : 1;
    if (tensor_is_made(r) && (i64)t.extent[d] < 1)
      return interp_fault(in, op, "a tensor whose extent %u is %lld: it has at least 1", d, (long long)(i64)t.extent[d]);
  }
  memcpy(out, &t, sizeof t);
  return FLOW_NEXT;
}

Flow
interp_tensor_given(Interp *in, const Value *v, u64 bits)
{
  u64 *out = interp_make(in, in->func->body->first, v);
  if (!out)
    return FLOW_FAULT;
  memcpy(out, (const void *)(uintptr_t)bits, sizeof(InterpTensor));
  return FLOW_NEXT;
}
