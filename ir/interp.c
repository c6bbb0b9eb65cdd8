/* interp.c - the reference semantics: runs a function program by program on the CPU.
 *
 * A value is a row-major array of element bits, one u64 each, found by the value's id. Programs run one after the other, so atomics and
 * stores are sequential; a barrier does nothing and a layout conversion copies. Programs of a cluster and regions of a warp_specialize
 * take turns (interp_turns.c). Loop-carried values are assigned in parallel: all are copied aside before any is replaced, because a
 * yield may permute the loop's own arguments.
 *
 * Folds (reduce) go along the axis in index order and round at every step; hardware folds in a tree. dot sums exactly
 * (interp_tile.c). Both agree with hardware up to rounding, and exactly where every partial result is exact.
 *
 * Whatever a verified module does, the run ends: in a result, in a fault with a span, or in a fault because it used
 * up its steps or its memory.
 */
#include "interp_run.h"
#include <stdio.h>

static Flow run_block(Interp *in, const Block *b);

/* Records a fault at op; always gives FLOW_FAULT. */
Flow
interp_fault(Interp *in, const Op *op, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(in->err->message, sizeof in->err->message, fmt, ap);
  va_end(ap);
  in->err->span = op->span;
  memcpy(in->err->program, in->program->at, sizeof in->err->program);
  return FLOW_FAULT;
}

/* Text of the coordinates of element i of t. */
const char *
interp_where(const Type *t, u32 i, char text[96])
{
  u32 at[MAX_RANK], n = 0;
  text[0] = 0;
  if (!type_is_tile(t))
    return text;
  for (int d = t->rank - 1; d >= 0; d--) {
    at[d] = i % t->shape[d];
    i /= t->shape[d];
  }
  for (u32 d = 0; d < t->rank; d++)
    n += (u32)snprintf(text + n, 96 - n, "%s%u", d ? ", " : " at element [", at[d]);
  snprintf(text + n, 96 - n, "]");
  return text;
}

static u64 *
elems_new(Interp *in, const Op *op, const Value *v)
{
  /* a view: where it starts, what to exclusive-or */
  u32 n = type_is_tensor(v->type) ? sizeof(InterpTensor) / sizeof(u64) : type_is_shared(v->type) ? 2 : interp_words(v->type);
  u64 bytes = n * sizeof(u64);
  if (in->bytes < bytes) {
    interp_fault(in, op, "the values of one program do not fit into the interpreter's memory");
    return NULL;
  }
  in->bytes -= bytes;
  return NEW_ARRAY(in->arena, u64, n);
}

/* Room for the elements of v, counted as work; NULL after a fault. */
u64 *
interp_make(Interp *in, const Op *op, const Value *v)
{
  u32 n = type_numel(v->type);
  if (in->steps < n) {
    interp_fault(in, op, "the step limit is used up: endless loop?");
    return NULL;
  }
  in->steps -= n;
  if (!in->elems[v->id])
    in->elems[v->id] = elems_new(in, op, v);
  return in->elems[v->id];
}

static void
observe(Interp *in, const Value *v)
{
  if (in->opt->observe)
    in->opt->observe(in->opt->user, v, in->elems[v->id], type_numel(v->type));
}

static Flow
set_scalar(Interp *in, const Op *op, const Value *v, u64 bits)
{
  u64 *out = interp_make(in, op, v);
  if (!out)
    return FLOW_FAULT;
  out[0] = bits;
  return FLOW_NEXT;
}

/* to[i] = operand first + i of op, for n values at once. */
static Flow
assign(Interp *in, const Op *op, u32 first, u32 n, Value *const *to)
{
  for (u32 i = 0; i < n; i++) {
    if (!interp_make(in, op, to[i]))
      return FLOW_FAULT;
    u64 **spare = &in->spare[to[i]->id];
    if (!*spare && !(*spare = elems_new(in, op, to[i])))
      return FLOW_FAULT;
    memcpy(*spare, interp_get(in, op_operand(op, first + i)), sizeof **spare * interp_words(to[i]->type));
  }
  for (u32 i = 0; i < n; i++) {
    u64 *fresh = in->spare[to[i]->id];
    in->spare[to[i]->id] = in->elems[to[i]->id];
    in->elems[to[i]->id] = fresh;
    observe(in, to[i]);
  }
  return FLOW_NEXT;
}

/* ---- control flow ----
 * An actor is a row of frames: the block that runs and where it is, above the loop or if that it belongs to. Nothing of it lies on C's
 * stack, so that an actor may stop at any op and go on later. Regions on elements (reduce, scan, map) run to their end at once, in frames
 * of their own above the op's. */
static bool
counter_less(DType d, u64 a, u64 b)
{
  return scalar_cmp(PRED_LT, d, a, b);
}

/* of: the op whose region this is; NULL: a block that stands for itself. */
static Flow
push(Interp *in, const Op *of, const Block *b)
{
  Actor *a = in->actor;
  vec_push(in->arena, &a->frames, ((Frame){.of = of, .block = b, .at = b->first}));
  return FLOW_NEXT;
}

void
interp_enter(Interp *in, const Block *b)
{
  push(in, NULL, b);
}

static Frame *
top(Interp *in)
{
  return &in->actor->frames.data[in->actor->frames.len - 1];
}

static Flow
pop(Interp *in)
{
  in->actor->frames.len--;
  return FLOW_NEXT;
}

static void
enter(Frame *f, const Block *b)
{
  f->block = b;
  f->at = b->first;
}

static Flow
for_iteration(Interp *in, Frame *f)
{
  const Value *counter = loop_counter(f->of);
  if (!counter_less(counter->type->dt, f->i, f->hi))
    return pop(in);
  if (set_scalar(in, f->of, counter, f->i) == FLOW_FAULT)
    return FLOW_FAULT;
  observe(in, counter);
  enter(f, f->of->regions[0]);
  return FLOW_NEXT;
}

static Flow
for_begins(Interp *in, const Op *op)
{
  Value *const *carried = op->regions[0]->args + loop_first_arg(op);
  DType d = loop_counter(op)->type->dt;
  u64 step = *interp_get(in, OPERAND(op, FOR, step));
  if (!counter_less(d, 0, step))
    return interp_fault(in, op, "the step of a loop must be positive, it is %lld", (long long)scalar_int(d, step));
  if (assign(in, op, SLOT(FOR, inits), op->nresults, carried) == FLOW_FAULT ||
      assign(in, op, SLOT(FOR, inits), op->nresults, op->results) == FLOW_FAULT)
    return FLOW_FAULT;
  push(in, op, op->regions[0]);
  Frame *f = top(in);
  f->i = *interp_get(in, OPERAND(op, FOR, lo));
  f->hi = *interp_get(in, OPERAND(op, FOR, hi));
  f->step = step;
  return for_iteration(in, f);
}

static Flow
for_goes_on(Interp *in, Frame *f)
{
  const Op *op = f->of, *end = block_terminator(f->block);
  DType d = loop_counter(op)->type->dt;
  if (assign(in, end, SLOT(YIELD, xs), op->nresults, op->results) == FLOW_FAULT ||
      assign(in, end, SLOT(YIELD, xs), op->nresults, op->regions[0]->args + loop_first_arg(op)) == FLOW_FAULT)
    return FLOW_FAULT;
  u64 next = scalar_wrap(d, f->i + f->step);
  if (counter_less(d, next, f->i))                /* beyond its type, so beyond hi */
    return pop(in);
  f->i = next;
  return for_iteration(in, f);
}

static Flow
while_begins(Interp *in, const Op *op)
{
  const Block *before = op->regions[0];
  if (assign(in, op, SLOT(WHILE, inits), before->nargs, before->args) == FLOW_FAULT)
    return FLOW_FAULT;
  return push(in, op, before);
}

static Flow
while_goes_on(Interp *in, Frame *f)
{
  const Op *op = f->of, *end = block_terminator(f->block);
  const Block *before = op->regions[0], *body = op->regions[1];
  Flow flow;
  if (f->block == body) {
    flow = assign(in, end, SLOT(YIELD, xs), before->nargs, before->args);
    enter(f, before);
  } else if (*interp_get(in, OPERAND(end, CONDITION, c))) {
    flow = assign(in, end, SLOT(CONDITION, xs), body->nargs, body->args);
    enter(f, body);
  } else {
    flow = assign(in, end, SLOT(CONDITION, xs), op->nresults, op->results);
    pop(in);
  }
  return flow;
}

static Flow
if_begins(Interp *in, const Op *op)
{
  return push(in, op, op->regions[*interp_get(in, OPERAND(op, IF, c)) ? 0 : 1]);
}

static Flow
if_ends(Interp *in, const Frame *f)
{
  const Op *op = f->of, *end = block_terminator(f->block);
  pop(in);
  return assign(in, end, SLOT(YIELD, xs), op->nresults, op->results);
}

/* The topmost frame's block is at its end. */
static Flow
block_ended(Interp *in)
{
  Frame *f = top(in);
  switch (f->of ? f->of->code : OP_COUNT) {
  case OP_FOR: return for_goes_on(in, f);
  case OP_WHILE: return while_goes_on(in, f);
  case OP_IF: return if_ends(in, f);
  default: return pop(in);
  }
}

/* ---- reduce ---- */
/* Where the elements of one fold lie: first + k * stride, k below extent. */
typedef struct FoldAxis { u32 outer, extent, stride; } FoldAxis;

static FoldAxis
fold_axis(const Type *t, u32 axis)
{
  FoldAxis a = {1, t->shape[axis], 1};
  for (u32 d = 0; d < t->rank; d++) {
    if (d < axis)
      a.outer *= t->shape[d];
    if (d > axis)
      a.stride *= t->shape[d];
  }
  return a;
}

/* The op when the region is `r = op a, b; yield r`; NULL otherwise. */
static const Op *
single_fold_op(const Op *op)
{
  const Block *b = op->regions[0];
  const Op *first = b->first;
  if (op->noperands != 1 || !first || first->next != b->last || !op_has(first, T_ELEM) || first->noperands != 2)
    return NULL;
  bool direct = OPERAND(first, BINARY, a) == b->args[0] && OPERAND(first, BINARY, b) == b->args[1];
  bool same = first->nresults == 1 && OPERAND(b->last, YIELD, xs) == op_result(first);
  return direct && same && op_info(first->code)->rule == RULE_SAME ? first : NULL;
}

static Flow
fold_direct(Interp *in, const Op *op, const Op *combine, FoldAxis a, u32 from, u32 to)
{
  const u64 *x = interp_get(in, OPERAND(op, REDUCE, xs)) + from;
  u64 acc = x[0];
  DType d = type_arith(OPERAND(op, REDUCE, xs)->type);
  for (u32 k = 1; k < a.extent; k++)
    if (!scalar_binary(combine->code, d, acc, x[(size_t)k * a.stride], &acc))
      return interp_fault(in, combine, "integer division by zero");
  in->elems[op->results[0]->id][to] = acc;
  return FLOW_NEXT;
}

static Flow
fold_region(Interp *in, const Op *op, FoldAxis a, u32 from, u32 to)
{
  const Block *b = op->regions[0];
  u32 n = op->noperands;
  for (u32 i = 0; i < n; i++)
    in->elems[op->results[i]->id][to] = interp_get(in, op_operand(op, i))[from];
  for (u32 k = 1; k < a.extent; k++) {
    for (u32 i = 0; i < n; i++) {
      u64 acc = in->elems[op->results[i]->id][to];
      u64 next = interp_get(in, op_operand(op, i))[from + (size_t)k * a.stride];
      if (set_scalar(in, op, b->args[i], acc) == FLOW_FAULT || set_scalar(in, op, b->args[n + i], next) == FLOW_FAULT)
        return FLOW_FAULT;
    }
    Flow flow = run_block(in, b);
    if (flow != FLOW_NEXT)
      return flow;
    for (u32 i = 0; i < n; i++)
      in->elems[op->results[i]->id][to] = *interp_get(in, op_operand(block_terminator(b), i));
  }
  return FLOW_NEXT;
}

/* The element of each operand at `from`, into the region's arguments from `at` on. */
static Flow
set_elements(Interp *in, const Op *op, u32 at, u32 from)
{
  Flow flow = FLOW_NEXT;
  for (u32 i = 0; i < op->noperands && flow == FLOW_NEXT; i++)
    flow = set_scalar(in, op, op->regions[0]->args[at + i], interp_get(in, op_operand(op, i))[from]);
  return flow == FLOW_FAULT ? FLOW_FAULT : FLOW_NEXT;
}

/* An element is folded with what the scan has at the one before it; of an exclusive scan that one is, still without itself. */
static Flow
scan_step(Interp *in, const Op *op, u32 before, u32 next, u32 at)
{
  const Block *b = op->regions[0];
  u32 n = op->noperands;
  for (u32 i = 0; i < n; i++)
    if (set_scalar(in, op, b->args[i], in->elems[op->results[i]->id][before]) == FLOW_FAULT)
      return FLOW_FAULT;
  if (set_elements(in, op, n, next) == FLOW_FAULT)
    return FLOW_FAULT;
  Flow flow = run_block(in, b);
  for (u32 i = 0; i < n && flow == FLOW_NEXT; i++)
    in->elems[op->results[i]->id][at] = *interp_get(in, op_operand(block_terminator(b), i));
  return flow;
}

static Flow
scan_line(Interp *in, const Op *op, FoldAxis a, u32 from)
{
  bool reverse = op_int(op, AT_REVERSE, 0) != 0, exclusive = op_int(op, AT_EXCLUSIVE, 0) != 0;
  Flow flow = FLOW_NEXT;
  u32 before = 0;
  for (u32 k = 0; k < a.extent && flow == FLOW_NEXT; k++) {
    u32 at = from + (reverse ? a.extent - 1 - k : k) * a.stride, next = exclusive ? before : at;
    if (k > exclusive)
      flow = scan_step(in, op, before, next, at);
    for (u32 i = 0; i < op->noperands && k <= exclusive; i++)
      in->elems[op->results[i]->id][at] = k == exclusive ? interp_get(in, op_operand(op, i))[next] : 0;
    before = at;
  }
  return flow;
}

static Flow
run_scan(Interp *in, const Op *op)
{
  FoldAxis a = fold_axis(OPERAND(op, SCAN, xs)->type, (u32)op_int(op, AT_AXIS, 0));
  for (u32 i = 0; i < op->nresults; i++)
    if (!interp_make(in, op, op->results[i]))
      return FLOW_FAULT;
  for (u32 o = 0; o < a.outer; o++)
    for (u32 s = 0; s < a.stride; s++) {
      Flow flow = scan_line(in, op, a, o * a.extent * a.stride + s);
      if (flow != FLOW_NEXT)
        return flow;
    }
  for (u32 i = 0; i < op->nresults; i++)
    observe(in, op->results[i]);
  return FLOW_NEXT;
}

static Flow
run_reduce(Interp *in, const Op *op)
{
  FoldAxis a = fold_axis(OPERAND(op, REDUCE, xs)->type, (u32)op_int(op, AT_AXIS, 0));
  const Op *direct = in->opt->observe ? NULL : single_fold_op(op);
  u64 work = (u64)a.outer * a.extent * a.stride;
  for (u32 i = 0; i < op->nresults; i++)
    if (!interp_make(in, op, op->results[i]))
      return FLOW_FAULT;
  if (in->steps < work)
    return interp_fault(in, op, "the step limit is used up: endless loop?");
  in->steps -= work;
  for (u32 o = 0; o < a.outer; o++)
    for (u32 s = 0; s < a.stride; s++) {
      u32 from = o * a.extent * a.stride + s, to = o * a.stride + s;
      Flow flow = direct ? fold_direct(in, op, direct, a, from, to) : fold_region(in, op, a, from, to);
      if (flow != FLOW_NEXT)
        return flow;
    }
  for (u32 i = 0; i < op->nresults; i++)
    observe(in, op->results[i]);
  return FLOW_NEXT;
}

/* ---- map ---- */

static Flow
map_element(Interp *in, const Op *op, u32 at)
{
  const Block *b = op->regions[0];
  if (set_elements(in, op, 0, at) == FLOW_FAULT)
    return FLOW_FAULT;
  Flow flow = run_block(in, b);
  for (u32 i = 0; i < op->nresults && flow == FLOW_NEXT; i++)
    in->elems[op->results[i]->id][at] = *interp_get(in, op_operand(block_terminator(b), i));
  return flow;
}

static Flow
run_map(Interp *in, const Op *op)
{
  Flow flow = FLOW_NEXT;
  for (u32 i = 0; i < op->nresults; i++)
    if (!interp_make(in, op, op->results[i]))
      return FLOW_FAULT;
  for (u32 at = 0; at < type_numel(OPERAND(op, MAP, xs)->type) && flow == FLOW_NEXT; at++)
    flow = map_element(in, op, at);
  for (u32 i = 0; i < op->nresults && flow == FLOW_NEXT; i++)
    observe(in, op->results[i]);
  return flow;
}

/* ---- everything ---- */
static Flow
run_assume(Interp *in, const Op *op)
{
  if (*interp_get(in, OPERAND(op, ASSUME, c)))
    return FLOW_NEXT;
  const char *message = op_str(op, AT_MESSAGE, NULL);
  return interp_fault(in, op, "false assumption%s%s", message ? ": " : "", message ? message : "");
}

static Flow
run_assert(Interp *in, const Op *op)
{
  const Value *c = OPERAND(op, ASSERT, c);
  const u64 *x = interp_get(in, c);
  char where[96] = "";
  for (u32 i = 0; i < type_numel(c->type); i++)
    if (!x[i])
      return interp_fault(in, op, "a device assertion failed%s: %s", type_is_tile(c->type) ? interp_where(c->type, i, where) : "",
                          op_str(op, AT_MESSAGE, ""));
  return FLOW_NEXT;
}

static u32
program_index(const Interp *in, const Op *op, u32 axis)
{
  const u32 *g = in->grid;
  if (!op->noperands)
    return in->program->at[axis];
  u32 number = (u32)*interp_get(in, op_operand(op, 0));
  return axis == 2 ? number / g[0] / g[1] : axis ? number / g[0] % g[1] : number % g[0];
}

/* No `default`: an op without a meaning does not compile. */
static Flow
run_op(Interp *in, const Op *op)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0) % 3;
  switch (op->code) {
  case OP_CONST: return interp_const(in, op);
  case OP_ARANGE: return interp_arange(in, op);
  case OP_PROGRAM_ID: return set_scalar(in, op, op_result(op), program_index(in, op, axis));
  case OP_RESIDENT_ID: return set_scalar(in, op, op_result(op), in->program->at[0]);
  case OP_NUM_RESIDENTS: return set_scalar(in, op, op_result(op), in->started[0]);
  case OP_NUM_PROGRAMS: return set_scalar(in, op, op_result(op), in->grid[axis]);
  case OP_SPLAT: return interp_splat(in, op);
  case OP_BROADCAST: return interp_broadcast(in, op);
  case OP_PERMUTE: return interp_permute(in, op);
  case OP_UNPACK: return interp_unpack(in, op);
  case OP_PTX: case OP_PTX_EFFECT:
    return interp_fault(in, op, "the interpreter cannot run inline PTX: run the kernel on the simulator or a GPU");
  case OP_PACK: return interp_pack(in, op);
  case OP_BUTTERFLY: return interp_butterfly(in, op);
  case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_BITCAST: case OP_CONVERT_LAYOUT: return interp_copy(in, op);
  case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_REM: case OP_MIN: case OP_MAX: case OP_MINIMUM:
  case OP_MAXIMUM: case OP_AND: case OP_OR: case OP_XOR: case OP_SHL: case OP_SHR: case OP_MULHI: case OP_UMULHI:
  case OP_FAST_DIV: case OP_FULL_DIV: case OP_NEAR_DIV: case OP_COPYSIGN: return interp_binary(in, op);
  case OP_FMA: return interp_fma(in, op);
  case OP_NEG: case OP_NOT: case OP_ABS: case OP_FLOOR: case OP_CEIL: case OP_RINT: case OP_SQRT: case OP_FAST_EXP2:
  case OP_FAST_LOG2: case OP_RSQRT: case OP_FAST_RCP: case OP_FAST_SQRT: case OP_FAST_SIN: case OP_FAST_COS: case OP_FAST_TANH:
  case OP_TRUNC: case OP_ROUND: case OP_ROUND_TF32: case OP_POPC: case OP_CLZ: case OP_BREV:
    return interp_unary(in, op);
  case OP_CMP: return interp_cmp(in, op);
  case OP_SELECT: return interp_select(in, op);
  case OP_TIERS: return interp_copy(in, op);
  case OP_CAST: return interp_cast(in, op);
  case OP_HINT: return interp_hint(in, op);
  case OP_BOUNDED: return interp_bounded(in, op);
  case OP_ADDPTR: return interp_addptr(in, op);
  case OP_LOAD: return interp_load(in, op);
  case OP_STORE: return interp_store(in, op);
  case OP_ATOMIC_RMW: return interp_atomic_rmw(in, op);
  case OP_ATOMIC_CAS: return interp_atomic_cas(in, op);
  case OP_REDUCE: return run_reduce(in, op);
  case OP_SCAN: return run_scan(in, op);
  case OP_MAP: return run_map(in, op);
  case OP_DOT: return interp_dot(in, op);
  case OP_DOT_SPARSE: return interp_dot_sparse(in, op);
  case OP_PENDING: return interp_pending(in, op);
  case OP_WGMMA: return interp_wgmma(in, op);
  case OP_WGMMA_WAIT: return interp_wgmma_wait(in, op);
  case OP_SHARED_ALLOC: return interp_shared_alloc(in, op);
  case OP_SHARED_FREE: return interp_shared_free(in, op);
  case OP_SHARED_INDEX: case OP_SHARED_SLICE: case OP_SHARED_PERMUTE: case OP_SHARED_RESHAPE: case OP_SHARED_CAST:
    return interp_shared_view(in, op);
  case OP_SHARED_LOAD: return interp_shared_load(in, op);
  case OP_SHARED_STORE: return interp_shared_store(in, op);
  case OP_SHARED_GATHER: return interp_shared_gather(in, op);
  case OP_SHARED_ADD: return interp_shared_add(in, op);
  case OP_SHARED_SCATTER: return interp_shared_scatter(in, op);
  case OP_SHARED_COUNT: return interp_shared_count(in, op);
  case OP_ASYNC_COPY: return interp_async_copy(in, op);
  case OP_ASYNC_COMMIT: return interp_async_commit(in);
  case OP_ASYNC_WAIT: return interp_async_wait(in, op);
  case OP_FOR: return for_begins(in, op);
  case OP_WHILE: return while_begins(in, op);
  case OP_IF: return if_begins(in, op);
  case OP_WARP_SPECIALIZE: return interp_warp_specialize(in, op);
  case OP_ASSUME: return run_assume(in, op);
  case OP_ASSERT: return run_assert(in, op);
  case OP_PRINT: return FLOW_NEXT;
  case OP_RETURN: return FLOW_RETURN;
  case OP_BARRIER: return interp_barrier(in);
  case OP_CLUSTER_RANK: return interp_cluster_rank(in, op);
  case OP_CLUSTER_BARRIER: return interp_cluster_barrier(in, op);
  case OP_SHARED_REMOTE: return interp_shared_remote(in, op);
  case OP_MBARRIER_INIT: return interp_mbarrier_init(in, op);
  case OP_MBARRIER_ARRIVE: return interp_mbarrier_arrive(in, op);
  case OP_MBARRIER_WAIT: return interp_mbarrier_wait(in, op);
  case OP_FENCE: return interp_fence(in, op);
  case OP_WAIT_FOR_PREVIOUS: case OP_LET_NEXT_START: return FLOW_NEXT;      /* a launch is run alone */
  case OP_TENSOR_BASE: case OP_TENSOR_EXTENT: case OP_TENSOR_STRIDE: return interp_tensor(in, op);
  case OP_TENSOR_OF: case OP_TENSOR_AT: return interp_tensor_of(in, op);
  case OP_TENSOR_LOAD: return interp_tensor_load(in, op);
  case OP_TENSOR_STORE: return interp_tensor_store(in, op);
  case OP_TMA_LOAD: return interp_tma_load(in, op);
  case OP_TMA_STORE: return interp_tma_store(in, op);
  case OP_TMA_COMMIT: in->actor->store_group++; return FLOW_NEXT;
  case OP_TMA_WAIT: return interp_tma_wait(in, op);
  case OP_TMA_PREFETCH: return interp_tma_prefetch(in, op);
  case OP_YIELD: case OP_CONDITION: case OP_COUNT: return FLOW_NEXT;
  }
  return FLOW_NEXT;
}

/* The op at which the topmost frame is, which goes on to the next. */
static Flow
step(Interp *in)
{
  Frame *f = top(in);
  const Op *op = f->at;
  f->at = op->next;
  if (!in->steps--)
    return interp_fault(in, op, "the step limit is used up: endless loop?");
  in->now++;
  interp_access(in, op);
  Flow flow = run_op(in, op);
  if (flow == FLOW_NEXT && in->opt->barriers && op_attr(op, AT_SCRATCH))
    flow = interp_scratch(in, op);
  for (u32 i = 0; flow == FLOW_NEXT && i < op->nresults && !op->nregions; i++)
    observe(in, op->results[i]);
  if (flow == FLOW_WAIT) {
    top(in)->at = op;
    in->actor->waits = op;
  }
  return flow;
}

Flow
interp_advance(Interp *in)
{
  return top(in)->at ? step(in) : block_ended(in);
}

static Flow
run_block(Interp *in, const Block *b)
{
  u32 below = in->actor->frames.len;
  Flow flow = push(in, NULL, b);
  while (flow == FLOW_NEXT && in->actor->frames.len > below)
    flow = interp_advance(in);
  in->actor->frames.len = below;
  return flow;
}

/* Of the program of the actor. */
static bool
give_params(Interp *in, const u64 *params)
{
  const Block *body = in->func->body;
  for (u32 i = 0; i < body->nargs; i++) {
    const Value *v = body->args[i];
    if (type_is_tensor(v->type)) {
      if (interp_tensor_given(in, v, params[i]) == FLOW_FAULT)
        return false;
      continue;
    }
    u64 *out = interp_make(in, body->first, v);
    if (!out)
      return false;
    out[0] = scalar_wrap(type_arith(v->type), params[i]);
    observe(in, v);
  }
  interp_enter(in, body);
  return true;
}

static bool
run_cluster(Interp *in, const u32 first[3], const u64 *params)
{
  interp_cluster_begins(in, first);
  for (u32 i = 0; i < in->nprograms; i++) {
    interp_switch(in, in->programs[i].all);
    if (!give_params(in, params))
      return false;
  }
  return interp_take_turns(in) != FLOW_FAULT;
}

static bool
run_grid(Interp *in, const u64 *params)
{
  const u32 *c = in->func->cluster;
  for (u32 z = 0; z < in->started[2]; z += c[2])
    for (u32 y = 0; y < in->started[1]; y += c[1])
      for (u32 x = 0; x < in->started[0]; x += c[0])
        if (in->func->body->first && !run_cluster(in, (const u32[]){x, y, z}, params))
          return false;
  return true;
}

/* Clusters fill the grid. */
static bool
grid_fits(Interp *in)
{
  const u32 *c = in->func->cluster, *g = in->grid;
  bool fits = g[0] % c[0] == 0 && g[1] % c[1] == 0 && g[2] % c[2] == 0;
  if (!fits)
    snprintf(in->err->message, sizeof in->err->message, "a grid of %u x %u x %u programs is no multiple of the cluster's %u x %u x %u",
             g[0], g[1], g[2], c[0], c[1], c[2]);
  in->err->span = in->func->span;
  return fits;
}

/* Few programs of a persistent kernel, so that each has several to do for. */
static void
start(Interp *in, const u32 grid[3])
{
  enum { RESIDENTS = 2 };
  u64 all = (u64)grid[0] * grid[1] * grid[2], most = in->opt->residents ? in->opt->residents : RESIDENTS;
  memcpy(in->grid, grid, sizeof in->grid);
  memcpy(in->started, grid, sizeof in->started);
  if (!func_walks(in->func))
    return;
  in->started[0] = (u32)(all < most ? all : most);
  in->started[1] = in->started[2] = 1;
}

/* interp_run with options. */
bool
interp_run_with(Func *f, const u32 grid[3], const u64 *params, const InterpBuffer *buffers, u32 nbuffers,
                const InterpOptions *opt, InterpError *err)
{
  Interp in = {.func = f, .opt = opt, .buffers = buffers, .nbuffers = nbuffers, .err = err,
               .steps = opt->max_steps ? opt->max_steps : 1ull << 36,
               .bytes = opt->max_bytes ? opt->max_bytes : 1ull << 32};
  start(&in, grid);
  memset(err, 0, sizeof *err);
  in.arena = arena_new(f->module->ctx);
  interp_cluster_make(&in);
  in.by_team = opt->barriers || in.nclocks > 1;
  bool ok = grid_fits(&in) && run_grid(&in, params);
  arena_free(in.arena);
  return ok;
}

/* Run all programs of the grid in order; false with *err on a fault. */
bool
interp_run(Func *f, const u32 grid[3], const u64 *params, const InterpBuffer *buffers, u32 nbuffers, InterpError *err)
{
  return interp_run_with(f, grid, params, buffers, nbuffers, &(InterpOptions){0}, err);
}
