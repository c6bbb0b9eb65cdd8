/* interp_shared.c - shared memory and asynchronous copies in the reference semantics.
 *
 * Shared memory is bytes with a state each. A buffer gets its bytes when its shared_alloc runs; running it again, in a loop,
 * gives the same bytes back as never written. A value of buffer type is the byte where the buffer starts; which element
 * a view means follows from the ops that made it. Elements lie where the layout says, or row-major before there is one.
 *
 * An asynchronous copy reads global memory when it is issued and lands at the async_wait that covers its group: until then
 * its bytes are pending, and to read or overwrite them is a fault. So is reading what was never written, and any use of a
 * buffer that was freed, and to write or free what a product of a warpgroup that is under way reads (interp_wgmma.c).
 *
 * A team is one actor here, and barriers do nothing, unless the run is to check them (InterpOptions.barriers). Then buffers
 * and scratch lie at the offsets they were given, and every byte remembers which op read and wrote it last: to read
 * what was written since the last barrier, or to write what was touched, is a fault, whichever threads did it, but for a store of the same
 * threads as the one before (stores_keep_threads). So a program may be refused whose threads happen to meet only their own bytes;
 * insert_barriers leaves none such. What another team read or wrote has to be
 * ordered by mbarriers in any run (interp_teams.c). Global memory: interp_global.c. */
#include "interp_run.h"
#include "wgmma.h"

/* LENT: landed, and a tensor copy is still reading it */
typedef enum ByteState { NEVER, LANDED, PENDING, FREED, LENT } ByteState;

typedef struct Touch { const Op *op; u64 when; u32 team; } Touch;     /* of a byte; when: the number of the op that ran, 0: never */
typedef struct InterpShared {
  u8 *data, *state;
  u32 *busy;                     /* how many products under way read a byte */
  Touch *touch;                  /* beside data, of each byte the last write, then each team's last read; NULL unless by_team */
  u64 used, cap;
} InterpShared;

InterpShared *
interp_shared_new(Interp *in)
{
  return NEW(in->arena, InterpShared);
}

void
interp_shared_reset(Interp *in)
{
  InterpShared *s = in->shared;
  if (s->used) {
    memset(s->state, NEVER, s->used);
    memset(s->busy, 0, s->used * sizeof *s->busy);
  }
  for (u64 i = 0; s->touch && i < s->used * (1 + in->nteams); i++)
    s->touch[i] = (Touch){0};
}

/* Room for the bytes below `end`. */
static bool
reserve(Interp *in, const Op *op, u64 end)
{
  InterpShared *s = in->shared;
  u64 cap = s->cap ? s->cap : 4096, marks = in->by_team ? 1 + in->nteams : 0, each = 2 + sizeof(u32) + marks * sizeof(Touch);
  while (cap < end)
    cap *= 2;
  s->used = s->used > end ? s->used : end;
  if (cap == s->cap)
    return true;
  if (in->bytes < cap * each) {
    interp_fault(in, op, "the shared memory of one program does not fit into the interpreter's memory");
    return false;
  }
  in->bytes -= cap * each;
  u8 *data = NEW_ARRAY(in->arena, u8, cap), *state = NEW_ARRAY(in->arena, u8, cap);
  u32 *busy = NEW_ARRAY(in->arena, u32, cap);
  Touch *touch = marks ? NEW_ARRAY(in->arena, Touch, cap * marks) : NULL;
  if (s->cap) {
    memcpy(data, s->data, s->cap);
    memcpy(state, s->state, s->cap);
    memcpy(busy, s->busy, s->cap * sizeof *busy);
  }
  if (s->cap && touch)
    memcpy(touch, s->touch, s->cap * marks * sizeof *touch);
  s->data = data;
  s->state = state;
  s->busy = busy;
  s->touch = touch;
  s->cap = cap;
  return true;
}

/* Does a product under way read the byte? Then that is a fault. what: "write to", "end of". */
static bool still_busy(Interp *in, const Op *op, u64 at, const char *what, const char *where);

/* ---- barriers ---- */

/* Of a byte; NULL: they are not kept. */
static Touch *
touches(const Interp *in, u64 at)
{
  return in->shared->touch ? in->shared->touch + at * (1 + in->nteams) : NULL;
}

/* A product of the actor's own team, of one warpgroup: its warps have read together when one has waited. */
static bool
read_together(const Interp *in, const Touch *t)
{
  return t->op->code == OP_WGMMA && t->team == in->actor->team && block_team(t->op->block).warps == WGMMA_GROUP;
}

/* op reads what t wrote. */
static bool
clashes(Interp *in, const Op *op, const Touch *t)
{
  if (!t->op || interp_ordered(in, t->team, t->when))
    return false;
  return !interp_clash(in, op, t->op, t->team, "read of", "shared memory", "wrote");
}

/* t: what op is about to write over. A read, or a copy, only has to be over. */
static bool
clashes_before(Interp *in, const Op *op, const Touch *t, bool read)
{
  bool over = read || t->team >= in->nteams;
  if (!t->op || read_together(in, t) || (over ? interp_over : interp_ordered)(in, t->team, t->when))
    return false;
  return !interp_clash(in, op, t->op, t->team, "write to", "shared memory", read ? "read" : "wrote");
}

static void
mark_read(Interp *in, const Op *op, u64 at)
{
  touches(in, at)[1 + in->actor->team] = (Touch){op, in->now, in->actor->team};
}

static bool
may_read(Interp *in, const Op *op, u64 at)
{
  const Touch *t = touches(in, at);
  if (!t)
    return true;
  if (clashes(in, op, t))
    return false;
  mark_read(in, op, at);
  return true;
}

/* What t wrote, the same threads write over. */
static bool
writes_in_order(const Interp *in, const Op *op, const Touch *t)
{
  return t->op && t->team == in->actor->team && stores_keep_threads(t->op, op);
}

static bool
may_write(Interp *in, const Op *op, u64 at)
{
  const Touch *t = touches(in, at);
  for (u32 i = 0; t && i <= in->nteams; i++)
    if (!(i == 0 && writes_in_order(in, op, t)) && clashes_before(in, op, &t[i], i > 0))
      return false;
  return true;
}

static bool
updates(const Op *op)
{
  return op_shared_effects(op) == (FX_READ | FX_WRITE);
}

/* Updates of other updates' bytes need no barrier: they are atomic. */
static bool
may_update(Interp *in, const Op *op, u64 at)
{
  const Touch *t = touches(in, at);
  return (t && t->op && updates(t->op) && !interp_ordered(in, t->team, t->when)) || may_write(in, op, at);
}

static void
wrote(Interp *in, const Op *op, u64 at, u32 bytes)
{
  for (u32 b = 0; in->shared->touch && b < bytes; b++)
    *touches(in, at + b) = (Touch){op, in->now, in->actor->team};
}

/* A barrier op. */
Flow
interp_barrier(Interp *in)
{
  interp_meet(in);
  return FLOW_NEXT;
}

/* An op with scratch writes it, meets all threads, and reads it. What a buffer held there is gone. */
Flow
interp_scratch(Interp *in, const Op *op)
{
  u64 from = (u64)op_int(op, AT_SCRATCH, 0), to = from + (u64)op_int(op, AT_SCRATCH_BYTES, 0);
  InterpShared *s = in->shared;
  if (!reserve(in, op, to))
    return FLOW_FAULT;
  for (u64 at = from; at < to; at++) {
    if (s->state[at] == PENDING || s->state[at] == LENT)
      return interp_fault(in, op, "scratch memory that an asynchronous copy is still %s", s->state[at] == LENT ? "reading" : "writing");
    if (still_busy(in, op, at, "scratch memory in", ""))
      return FLOW_FAULT;
    if (!may_write(in, op, at))
      return FLOW_FAULT;
    s->state[at] = s->state[at] == LANDED ? NEVER : s->state[at];
  }
  interp_meet(in);
  in->now++;
  for (u64 at = from; at < to; at++)
    mark_read(in, op, at);
  return FLOW_NEXT;
}

static const BufferPlace *
place_of(const Interp *in, const Op *op)
{
  for (u32 i = 0; i < in->places.len; i++)
    if (in->places.data[i].op == op)
      return &in->places.data[i];
  return NULL;
}

/* The same in each program, which may reach it in others. */
static const BufferPlace *
give_place(Interp *in, const Op *op, u64 bytes)
{
  u64 at = in->opt->barriers ? (u64)op_int(op, AT_OFFSET, 0) : in->placed;
  vec_push(in->arena, &in->places, ((BufferPlace){op, at, bytes}));
  in->placed += bytes;
  return &in->places.data[in->places.len - 1];
}

Flow
interp_shared_alloc(Interp *in, const Op *op)
{
  InterpShared *s = in->shared;
  u64 *view = interp_make(in, op, op_result(op)), bytes = type_shared_bytes(op_result(op)->type);
  const BufferPlace *a = place_of(in, op);
  a = a ? a : give_place(in, op, bytes);
  if (!view || !reserve(in, op, a->at + bytes))
    return FLOW_FAULT;
  for (u64 i = 0; i < bytes; i++)
    if (s->state[a->at + i] == PENDING || s->state[a->at + i] == LENT)
      return interp_fault(in, op, "the buffer is made anew while an asynchronous copy is still %s it",
                          s->state[a->at + i] == LENT ? "reading" : "writing");
    else if (still_busy(in, op, a->at + i, "a new buffer in", ""))
      return FLOW_FAULT;
  u8 *made = &in->program->made[op_result(op)->id];
  bool fresh = *made || !cluster_reaches(op_result(op));   /* else others may have written there, the first time */
  for (u64 i = 0; i < bytes; i++)
    if (fresh || s->state[a->at + i] == FREED)
      s->state[a->at + i] = NEVER;
  *made = true;
  view[0] = a->at;
  view[1] = 0;
  return FLOW_NEXT;
}

Flow
interp_shared_free(Interp *in, const Op *op)
{
  InterpShared *s = in->shared;
  const BufferPlace *a = place_of(in, OPERAND(op, SHARED_FREE, b)->def);
  if (!a)
    return interp_fault(in, op, "the buffer was never made");
  for (u64 i = 0; i < a->bytes; i++)
    if (s->state[a->at + i] == PENDING || s->state[a->at + i] == LENT)
      return interp_fault(in, op, "the buffer is freed while an asynchronous copy is still %s it",
                          s->state[a->at + i] == LENT ? "reading" : "writing");
    else if (still_busy(in, op, a->at + i, "end of", ""))
      return FLOW_FAULT;
  memset(s->state + a->at, FREED, a->bytes);
  return FLOW_NEXT;
}

/* ---- views ---- */

/* Row-major index over extents padded to powers of two: a layout's flat index. */
static u64
flat_index(const u32 *extents, int rank, const u32 *coord)
{
  u64 flat = 0;
  for (int i = 0; i < rank; i++)
    flat = flat * next_pow2(extents[i]) + coord[i];
  return flat;
}

Flow
interp_shared_view(Interp *in, const Op *op)
{
  const Type *t = op_buffer(op)->type;
  const u64 *from = interp_get(in, op_buffer(op));
  u64 *view = interp_make(in, op, op_result(op));
  if (!view)
    return FLOW_FAULT;
  view[0] = from[0];
  view[1] = from[1];
  if (op->code == OP_SHARED_INDEX) {
    i64 i = scalar_int(DT_I32, *interp_get(in, OPERAND(op, SHARED_INDEX, i)));
    if (i < 0 || i >= (i64)t->count)
      return interp_fault(in, op, "buffer %lld of a row of %u", (long long)i, t->count);
    view[0] += (u64)i * type_shared_stride(t);
  }
  return FLOW_NEXT;
}

static void
split(const Type *t, u64 i, u32 *coord)
{
  for (int d = t->rank - 1; d >= 0; d--) {
    coord[d] = (u32)(i % t->shape[d]);
    i /= t->shape[d];
  }
}

/* Coordinates in the result of a view become those in its operand; false where they mean a buffer of its own. */
static bool
view_back(const Op *op, u32 *coord)
{
  if (op->code != OP_SHARED_SLICE && op->code != OP_SHARED_PERMUTE && op->code != OP_SHARED_RESHAPE)
    return false;
  const Type *t = op_buffer(op)->type, *r = op_result(op)->type;
  const Attr *a = op_attr(op, op->code == OP_SHARED_SLICE ? AT_OFFSETS : AT_PERM);
  u32 at[MAX_RANK];
  memcpy(at, coord, sizeof at);
  if (op->code == OP_SHARED_RESHAPE)
    split(t, flat_index(r->shape, r->rank, at), coord);
  for (int d = 0; a && d < t->rank; d++)
    if (op->code == OP_SHARED_SLICE)
      coord[d] += (u32)a->ints.v[d];
    else
      coord[a->ints.v[d]] = at[d];
  return true;
}

/* layout_shared_offset, which is linear. */
static u32
mapped(Interp *in, const Layout *l, u32 flat)
{
  u32 to = 0;
  for (u32 i = 0; in->mapped != l && 1u << i < layout_numel(l); i++)
    in->map[i] = layout_shared_offset(l, 1u << i);
  in->mapped = l;
  for (const u32 *place = in->map; flat; flat >>= 1, place++)
    to ^= flat & 1 ? *place : 0;
  return to;
}

/* The byte of element i (row-major over the view's extents). */
static u64
element_at(Interp *in, const Value *view, u32 i)
{
  const Op *op = view->def;
  u32 coord[MAX_RANK] = {0};
  split(view->type, i, coord);
  while (view_back(op, coord))
    op = op_buffer(op)->def;
  const Type *t = op_result(op)->type;
  u64 off = flat_index(t->alloc_shape, t->rank, coord);
  if (t->layout)
    off = mapped(in, t->layout, (u32)off);
  if (t->pad_every)
    off += off / t->pad_every * t->pad;
  return *interp_get(in, view) + off * dtype_bytes(t->dt);
}

/* ---- bytes that a product reads until it is waited for ---- */

/* One more run of bytes that p reads; false after a fault. */
static bool
add_run(Interp *in, Product *p, u64 at, u32 bytes)
{
  u64 room = p->reads.len == p->reads.cap ? max_u64(p->reads.cap * 2ull, 16) * sizeof(Run) : 0;
  if (in->bytes < room) {
    interp_fault(in, p->op, "the products under way do not fit into the interpreter's memory");
    return false;
  }
  in->bytes -= room;
  vec_push(in->arena, &p->reads, ((Run){at, at + bytes}));
  return true;
}

bool
interp_hold(Interp *in, const Value *buffer, Product *p)
{
  InterpShared *s = in->shared;
  u32 bytes = dtype_bytes(buffer->type->dt);
  for (u32 i = 0; i < type_numel(buffer->type); i++) {
    u64 at = element_at(in, buffer, i);
    for (u32 b = 0; b < bytes; b++)
      s->busy[at + b]++;
    if (p->reads.len && p->reads.data[p->reads.len - 1].to == at)
      p->reads.data[p->reads.len - 1].to += bytes;
    else if (!add_run(in, p, at, bytes))
      return false;
  }
  return true;
}

void
interp_release(Interp *in, Product *p)
{
  for (u32 i = 0; i < p->reads.len; i++)
    for (u64 at = p->reads.data[i].from; at < p->reads.data[i].to; at++) {
      in->shared->busy[at]--;
      if (touches(in, at))
        mark_read(in, p->op, at);
    }
  p->reads.len = 0;
  vec_push(in->arena, &in->spare_runs, p->reads);
}

/* The product that reads the byte. */
static const Op *
reader_of(const Interp *in, u64 at)
{
  for (u32 k = 0; k < in->flying.len; k++) {
    const Product *p = &in->flying.data[k];
    if (in->programs[interp_rank_of(in, p->team)].shared != in->shared)
      continue;
    for (u32 i = 0; i < p->reads.len; i++)
      if (at >= p->reads.data[i].from && at < p->reads.data[i].to)
        return p->op;
  }
  return NULL;
}

static bool
still_busy(Interp *in, const Op *op, u64 at, const char *what, const char *where)
{
  if (!in->shared->busy[at])
    return false;
  const Op *reader = reader_of(in, at);
  interp_fault(in, op, "%s a buffer that a product under way still reads%s", what, where);
  in->err->other = reader ? reader->span : (Span){0};
  return true;
}

/* ---- access ---- */

static bool
writable(Interp *in, const Op *op, const Type *t, u64 at, u32 i)
{
  static const char *const wrong[] = {
    [PENDING] = "write to a buffer that an asynchronous copy is still writing%s", [FREED] = "write to a buffer that was freed%s",
    [LENT] = "write to a buffer that an asynchronous copy is still reading%s"};
  char where[96];
  for (u32 b = 0; b < dtype_bytes(t->dt); b++) {
    u8 state = in->shared->state[at + b];
    if (still_busy(in, op, at + b, "write to", interp_where(t, i, where)))
      return false;
    if (!wrong[state]) {
      if (!may_write(in, op, at + b))
        return false;
      continue;
    }
    interp_fault(in, op, wrong[state], interp_where(t, i, where));
    return false;
  }
  return true;
}

/* The asynchronous proxy sees what threads wrote at the bytes, or that is not asked for. */
static bool
proxy_sees(Interp *in, const Op *op, u64 at, u32 bytes)
{
  for (u32 i = 0; in->opt->barriers && i < bytes; i++) {
    const Touch *t = touches(in, at + i);
    bool by_proxy = t && t->op && t->op->code == OP_TMA_LOAD;      /* other copies are the threads' own, whoever they arrive for */
    if (!t || !t->op || by_proxy || interp_seen(in, t->team, t->when))
      continue;
    interp_fault(in, op, "shared memory that threads wrote, with no asynchronous fence between");
    in->err->other = t->op->span;
    return false;
  }
  return true;
}

/* What threads have read of the bytes they have read before the asynchronous proxy writes there, also for another program of the cluster.
 * (What it read itself is waited for.) */
static bool
proxy_may_overwrite(Interp *in, const Op *op, u64 at, u32 bytes)
{
  for (u32 i = 0; in->opt->barriers && i < bytes; i++) {
    const Touch *t = touches(in, at + i);
    for (u32 team = 1; t && team <= in->nteams; team++) {
      bool by_proxy = !t[team].op || t[team].op->code == OP_WGMMA || t[team].op->code == OP_TMA_STORE;
      if (by_proxy || interp_seen(in, t[team].team, t[team].when))
        continue;
      interp_fault(in, op, "shared memory that threads have read, with no asynchronous fence between");
      in->err->other = t[team].op->span;
      return false;
    }
  }
  return true;
}

/* Element i of a buffer that op reads. */
static bool
read_from(Interp *in, const Op *op, const Value *buffer, u32 i, u64 *out)
{
  static const char *const wrong[] = {
    [NEVER] = "read of shared memory that nothing has written%s", [LANDED] = NULL,
    [PENDING] = "read of a buffer that an asynchronous copy is still writing%s", [FREED] = "read of a buffer that was freed%s",
    [LENT] = NULL};
  const Type *t = buffer->type;
  u64 at = element_at(in, buffer, i);
  u32 bytes = dtype_bytes(t->dt);
  char where[96];
  for (u32 b = 0; b < bytes; b++)
    if (wrong[in->shared->state[at + b]]) {
      interp_fault(in, op, wrong[in->shared->state[at + b]], interp_where(t, i, where));
      return false;
    } else if (updates(op) ? !may_update(in, op, at + b) : !may_read(in, op, at + b)) {
      return false;
    }
  if (op->code == OP_WGMMA && !proxy_sees(in, op, at, bytes))
    return false;
  *out = 0;
  memcpy(out, in->shared->data + at, bytes);
  return true;
}

static bool
read_element(Interp *in, const Op *op, u32 i, u64 *out)
{
  return read_from(in, op, op_buffer(op), i, out);
}

u64 *
interp_shared_read(Interp *in, const Op *op, const Value *buffer)
{
  u32 n = type_numel(buffer->type);
  u64 *kept = NULL;
  for (u32 i = 0; i < in->reads.len; i++)
    kept = in->reads.data[i].of == buffer ? in->reads.data[i].elems : kept;
  if (!kept && in->bytes < n * sizeof *kept) {
    interp_fault(in, op, "the values of one program do not fit into the interpreter's memory");
    return NULL;
  }
  if (!kept) {
    in->bytes -= n * sizeof *kept;
    kept = NEW_ARRAY(in->arena, u64, n);
    vec_push(in->arena, &in->reads, ((BufferRead){buffer, kept}));
  }
  for (u32 i = 0; i < n; i++)
    if (!read_from(in, op, buffer, i, &kept[i]))
      return NULL;
  return kept;
}

Flow
interp_shared_load(Interp *in, const Op *op)
{
  u64 *out = interp_make(in, op, op_result(op));
  if (!out || !interp_reach(in, op, interp_program_of(in, OPERAND(op, SHARED_LOAD, b))->rank))
    return FLOW_FAULT;
  for (u32 i = 0; i < type_numel(op_result(op)->type); i++)
    if (!read_element(in, op, i, &out[i]))
      return FLOW_FAULT;
  interp_reached(in);
  return FLOW_NEXT;
}

/* Element i of the indices is one of extent elements. */
static bool
index_fits(Interp *in, const Op *op, const Value *indices, i64 at, u32 extent, u32 i)
{
  char where[96];
  if (at >= 0 && at < (i64)extent)
    return true;
  interp_fault(in, op, "index %lld of %u elements%s", (long long)at, extent, interp_where(indices->type, i, where));
  return false;
}

Flow
interp_shared_gather(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, SHARED_GATHER, b)->type, *r = op_result(op)->type;
  u64 *out = interp_make(in, op, op_result(op));
  const u64 *index = interp_get(in, OPERAND(op, SHARED_GATHER, i));
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  if (!out)
    return FLOW_FAULT;
  for (u32 i = 0; i < type_numel(r); i++) {
    u32 coord[MAX_RANK] = {0}, at = 0;
    i64 k = scalar_int(DT_I32, index[i]);
    if (!index_fits(in, op, OPERAND(op, SHARED_GATHER, i), k, t->shape[axis], i))
      return FLOW_FAULT;
    if (t->rank > 1)
      split(r, i, coord);
    coord[axis] = (u32)k;
    for (u32 d = 0; d < t->rank; d++)
      at = at * t->shape[d] + coord[d];
    if (!read_element(in, op, at, &out[i]))
      return FLOW_FAULT;
  }
  return FLOW_NEXT;
}

static void
write_element(Interp *in, const Op *op, u32 i, u64 x)
{
  u32 bytes = dtype_bytes(op_buffer(op)->type->dt);
  u64 at = element_at(in, op_buffer(op), i);
  memcpy(in->shared->data + at, &x, bytes);
  memset(in->shared->state + at, LANDED, bytes);
  wrote(in, op, at, bytes);
}

Flow
interp_shared_add(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, SHARED_ADD, b)->type;
  const u64 *index = interp_get(in, OPERAND(op, SHARED_ADD, i)), *x = interp_get(in, OPERAND(op, SHARED_ADD, x));
  const u64 *mask = interp_get(in, OPERAND(op, SHARED_ADD, mask));
  for (u32 i = 0; i < type_numel(OPERAND(op, SHARED_ADD, i)->type); i++) {
    i64 k = scalar_int(DT_I32, index[i]);
    u64 old, sum;
    if (mask && !mask[i])
      continue;
    if (!index_fits(in, op, OPERAND(op, SHARED_ADD, i), k, t->shape[0], i) || !read_element(in, op, (u32)k, &old))
      return FLOW_FAULT;
    scalar_binary(OP_ADD, t->dt, old, x[i], &sum);
    write_element(in, op, (u32)k, sum);
  }
  return FLOW_NEXT;
}

Flow
interp_shared_scatter(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, SHARED_SCATTER, b)->type;
  const u64 *index = interp_get(in, OPERAND(op, SHARED_SCATTER, i)), *x = interp_get(in, OPERAND(op, SHARED_SCATTER, x));
  const u64 *mask = interp_get(in, OPERAND(op, SHARED_SCATTER, mask));
  for (u32 i = 0; i < type_numel(OPERAND(op, SHARED_SCATTER, i)->type); i++) {
    i64 k = scalar_int(DT_I32, index[i]);
    if (mask && !mask[i])
      continue;
    if (!index_fits(in, op, OPERAND(op, SHARED_SCATTER, i), k, t->shape[0], i))
      return FLOW_FAULT;
    if (!writable(in, op, t, element_at(in, OPERAND(op, SHARED_SCATTER, b), (u32)k), (u32)k))
      return FLOW_FAULT;
    write_element(in, op, (u32)k, x[i]);
  }
  return FLOW_NEXT;
}

Flow
interp_shared_count(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, SHARED_COUNT, b)->type, *r = op_result(op)->type;
  u64 *out = interp_make(in, op, op_result(op));
  const u64 *index = interp_get(in, OPERAND(op, SHARED_COUNT, i));
  if (!out)
    return FLOW_FAULT;
  for (u32 i = 0; i < type_numel(r); i++) {
    i64 k = scalar_int(DT_I32, index[i]);
    u32 at = i / r->shape[1] * t->shape[1] + (u32)k;
    if (!index_fits(in, op, OPERAND(op, SHARED_COUNT, i), k, t->shape[1], i) || !read_element(in, op, at, &out[i]))
      return FLOW_FAULT;
    write_element(in, op, at, (u32)out[i] + 1);
  }
  return FLOW_NEXT;
}

/* ---- copies by the asynchronous proxy ---- */

bool
interp_shared_begin(Interp *in, const Op *op, u32 i, u64 *at)
{
  const Value *b = op_buffer(op);
  u32 bytes = dtype_bytes(b->type->dt);
  *at = element_at(in, b, i);
  if (!writable(in, op, b->type, *at, i) || !proxy_sees(in, op, *at, bytes) || !proxy_may_overwrite(in, op, *at, bytes))
    return false;
  memset(in->shared->state + *at, PENDING, bytes);
  return true;
}

bool
interp_shared_lend(Interp *in, const Op *op, u32 i, Copy *c)
{
  c->at = element_at(in, op_buffer(op), i);
  if (!read_element(in, op, i, &c->value) || !proxy_sees(in, op, c->at, c->bytes))
    return false;
  interp_shared_lent(in, c);
  return true;
}

void
interp_shared_lent(Interp *in, const Copy *c)
{
  memset(in->shared->state + c->at, LENT, c->bytes);
}

void
interp_shared_return(Interp *in, const Copy *c)
{
  memset(in->shared->state + c->at, LANDED, c->bytes);
}

void
interp_shared_land(Interp *in, const Copy *c, u64 when, u32 team)
{
  memcpy(in->shared->data + c->at, &c->value, c->bytes);
  memset(in->shared->state + c->at, LANDED, c->bytes);
  for (u32 i = 0; in->shared->touch && i < c->bytes; i++)
    *touches(in, c->at + i) = (Touch){c->op, when, team};
}

bool
interp_shared_cover(Interp *in, const Op *op, const Program *as)
{
  return reserve(in, op, as->shared->used);
}

bool
interp_shared_mbar_of(Interp *in, const Op *op, const Value *b, bool init, u64 *at)
{
  *at = element_at(in, b, 0);
  u32 bytes = dtype_bytes(b->type->dt);
  if (!init && in->shared->state[*at] != LANDED)
    return interp_fault(in, op, "an mbarrier that nothing has initialised") == FLOW_NEXT;
  bool other = in->shared != in->program->shared;     /* interp_mbar asks whether it is known there */
  for (u32 i = 0; i < bytes && !other; i++)
    if (init ? !may_write(in, op, *at + i) : !may_read(in, op, *at + i))
      return false;
  if (!init)
    return op->code != OP_TMA_LOAD || other || proxy_sees(in, op, *at, bytes);
  memset(in->shared->state + *at, LANDED, bytes);
  wrote(in, op, *at, bytes);
  return true;
}

u64
interp_shared_at(Interp *in, const Value *b)
{
  return element_at(in, b, 0);
}

static bool
store_elements(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, SHARED_STORE, b)->type;
  const u64 *x = interp_get(in, OPERAND(op, SHARED_STORE, x));
  u32 bytes = dtype_bytes(t->dt);
  for (u32 i = 0; i < type_numel(t); i++) {
    u64 at = element_at(in, OPERAND(op, SHARED_STORE, b), i);
    if (!writable(in, op, t, at, i))
      return false;
    memcpy(in->shared->data + at, &x[i], bytes);
    memset(in->shared->state + at, LANDED, bytes);
  }
  for (u32 i = 0; in->shared->touch && i < type_numel(t); i++)
    wrote(in, op, element_at(in, OPERAND(op, SHARED_STORE, b), i), bytes);
  return true;
}

Flow
interp_shared_store(Interp *in, const Op *op)
{
  const Value *b = OPERAND(op, SHARED_STORE, b);
  if (!interp_reach(in, op, interp_program_of(in, b)->rank) || !store_elements(in, op))
    return FLOW_FAULT;
  interp_reached(in);
  in->steps -= in->steps < type_numel(b->type) ? in->steps : type_numel(b->type);
  return FLOW_NEXT;
}

Flow
interp_async_copy(Interp *in, const Op *op)
{
  const Type *t = OPERAND(op, ASYNC_COPY, b)->type;
  InterpShared *s = in->shared;
  const u64 *addr = interp_get(in, OPERAND(op, ASYNC_COPY, p));
  const u64 *mask = interp_get(in, OPERAND(op, ASYNC_COPY, mask));
  u32 bytes = dtype_bytes(t->dt);
  for (u32 i = 0; i < type_numel(t); i++) {
    u64 at = element_at(in, OPERAND(op, ASYNC_COPY, b), i);
    Copy c = {at, 0, bytes, in->actor->group, op};
    if (!writable(in, op, t, at, i))
      return FLOW_FAULT;
    if (!mask || mask[i]) {
      const void *from = interp_element(in, op, addr[i], bytes, i);
      if (!from)
        return FLOW_FAULT;
      memcpy(&c.value, from, bytes);
    }
    memset(s->state + at, PENDING, bytes);
    vec_push(in->arena, &in->actor->copies, c);
  }
  in->steps -= in->steps < type_numel(t) ? in->steps : type_numel(t);
  return FLOW_NEXT;
}

Flow
interp_async_wait(Interp *in, const Op *op)
{
  InterpShared *s = in->shared;
  Actor *a = in->actor;
  u64 pending = (u64)op_int(op, AT_PENDING, 0), kept = 0;
  u64 landed = a->group > pending ? a->group - pending : 0;
  for (u32 i = 0; i < a->copies.len; i++) {
    Copy c = a->copies.data[i];
    if (c.group >= landed) {
      a->copies.data[kept++] = c;
      continue;
    }
    memcpy(s->data + c.at, &c.value, c.bytes);
    memset(s->state + c.at, LANDED, c.bytes);
    wrote(in, c.op, c.at, c.bytes);
  }
  a->copies.len = (u32)kept;
  return FLOW_NEXT;
}

/* Close the group of copies. */
Flow
interp_async_commit(Interp *in)
{
  in->actor->group++;
  return FLOW_NEXT;
}
