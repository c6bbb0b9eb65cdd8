/* pipeline_loops.c - overlap the loads of a loop with its work: asynchronous copies, several iterations ahead.
 * Needs phase placed, after fold_convert; keeps it. Leaves dead address arithmetic for dce.
 *
 * A loop with `stages = N` has its iterations' loads started N - 1 iterations early. Each load of a tile becomes a row of N
 * buffers in shared memory, an async_copy into the buffer of a later iteration, and a shared_load of this iteration's:
 *
 *   for i in lo..hi step s {            put, get, i' and ahead values are carried besides
 *     x = load p(i)                     async_wait N - 2; barrier            this iteration's copies have landed
 *     acc = dot x ...         ==>       if i' < hi { async_copy b[put], p(i') }   i' = i + (N - 1) s
 *   }                                   async_commit
 *                                       x = shared_load b[get]; acc = dot x ...
 *
 * Two stages exist: stage 0 is what the addresses and masks are computed from, the copies and their commit; the last stage is
 * everything else. Stage 0 runs N - 1 iterations ahead, so its ops are cloned: N - 1 times into the prologue, once into the
 * body. Values that the loop carries and stage 0 needs (pointers that advance) get an `ahead` twin that is carried
 * as well; where only addresses needed the original, dce drops it. Each prologue copy stands under `if i' < hi`, and so does the
 * one in the body, with the commit outside: every iteration closes exactly one group, whether or not it copied anything. i' may be beyond
 * its type, so what is asked is hi - i > (N - 1) s, without a sign (loop_goes_on).
 *
 * Groups. The prologue commits N - 1 groups. At the top of iteration k (from 0) N - 1 + k are committed and groups 0..k must
 * have landed: N - 1 + k - (k + 1) = N - 2 may be in flight, whatever k. Copies of iteration k go to buffer (k + N - 1) mod N,
 * which iteration k - 1 read: the barrier stands between. It also shows every thread what the others copied. So one wait and
 * one barrier an iteration are enough, also for loops with several loads and dots. Short and empty loops are not special:
 * the copies' conditions are false and the groups empty. Behind the loop nothing may be in flight: async_wait 0.
 *
 * Buffers. A load's layout decides which elements a thread copies, its reader's layout what it reads. The shared layout
 * is the swizzle that is cheapest to read, of those that keep a copy's elements together (cp.async moves 4, 8 or 16
 * consecutive bytes). A conversion of the loaded tile goes away: the reader loads in the layout it wants.
 *
 * Indirect loads. An address may itself depend on loads of the loop: pages of a cache found in a table, rows by their indices. Such
 * a load belongs to stage 0 and is cloned with it, masked to i' < hi, as it would otherwise run past the end. In the body its
 * result is wanted at once, so the clone is done another iteration early, into registers: an index for iteration k is
 * loaded in iteration k - N. The loop's own load of it stays only where something else needs it.
 *
 * What cannot be copied is loaded into registers one iteration early (pipeline_regs.c), or stays where it was; a remark says
 * which, and why. A tile that is something else than 0 where its mask is off is completed after it is read.
 *
 * Boxes of tensors (tensor_load) are copied by one thread, and land with a phase of an mbarrier of their buffer, which counts the bytes:
 * an iteration waits for that of buffer `get`, whose parity `phase` is carried too. Where the loop is entered again, both go on from where
 * they were (carried.h). There are no groups to commit then, and insert_barriers puts what keeps a copy behind the reads of all threads.
 *
 * Dots marked `warpgroup` become products that read the buffers (warpgroup_dots.c).
 *
 * `stages` is also a promise: the loop's loads do not read what its earlier iterations stored. What its own iteration stores in front of
 * a load is looked at: such a load stays. */
#include "boxes.h"
#include "buffers.h"
#include "carried.h"
#include "loop_slice.h"
#include "pipeline.h"
#include "roles.h"
#include "schedule_table.h"
#include "wgmma.h"

enum { MAX_LOADS = 16 };
typedef VEC(Value *) ValueVec;

typedef struct Staged {
  Op *load;
  Value *buffers;
  const Layout *smem;
  const Layout *want;        /* layout of the readers' conversion; NULL: the load's own */
  bool box;                  /* a tensor_load */
  bool fills;                /* where the mask is off the tile is something else than 0: chosen after reading */
} Staged;

typedef struct Pipe {
  Ctx *c;
  Func *f;
  Op *loop;
  Block *body;
  u32 ahead_by, slots;       /* iterations that copies are ahead; buffers of a row: one more, or two where products read on (defer) */
  bool defer;
  Staged staged[MAX_LOADS];
  u32 n;
  Op *rest[MAX_LOADS];       /* loads that cannot be copied */
  const char *why[MAX_LOADS];
  u32 nrest;
  bool *feeds;               /* by value id: an address or mask of a load is computed from it */
  LoopSlice slice;           /* stage 0 without the copies */
  Value *put, *get, *next;   /* block arguments: buffer to fill, buffer to read, the counter ahead */
  Value *full, *phase;       /* row of mbarriers that count boxes; block argument: parity of the phase that ends when `get` is full */
  Carried around;            /* get and phase, for loops that are entered again */
  u32 boxes;                 /* of the n */
  Value **ahead;             /* block arguments, as carried */
  OpVec indices;             /* loads that the body's copies take their addresses from */
} Pipe;

/* ---- what can be copied ---- */

static void
remark(const Pipe *p, Span load, DiagId id, const char *why)
{
  if (p->c->remarks)
    diag(p->c, load, id, why);
}

/* The layout that a conversion of the loaded tile asks for, right behind it or behind a cast of it. */
static const Layout *
readers_layout(const Op *load)
{
  for (const Use *u = op_result(load)->uses; u; u = u->next) {
    const Op *op = u->user;
    if (op->code == OP_CAST && op_result(op)->uses)
      op = op_result(op)->uses->user;
    if (op->code == OP_CONVERT_LAYOUT)
      return op_result(op)->type->layout;
  }
  return NULL;
}

static const Layout *
shared_layout_for(Pipe *p, const Staged *x, u32 vec)
{
  const Type *t = op_result(x->load)->type;
  const Layout *want = x->want ? x->want : t->layout, *smem = warpgroup_reads(p->loop, x->load) ? warpgroup_layout(p->c, t) : NULL;
  SharedPlan plan = {0};
  if (smem && buffer_copy_fits(p->c, t->layout, smem, vec))
    return smem;
  smem = buffer_swizzle(p->c, t, t->layout, want, vec);
  if (smem || want == t->layout)
    return smem;
  layout_shared_plan(p->c, t->layout, want, type_elem_bits(t), target_has(p->c->target, F_LDMATRIX), false, &plan);
  return plan.smem && buffer_copy_fits(p->c, t->layout, plan.smem, vec) ? plan.smem : NULL;
}

/* An index that is loaded has to be in registers before what it points to is asked for: mark all that addresses and masks
 * of the body's loads are computed from. */
static void
push_operands(Pipe *p, ValueVec *work, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++)
    vec_push(p->c->scratch, work, op_operand(op, i));
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      push_operands(p, work, x);
}

static void
mark_feeding(Pipe *p)
{
  ValueVec work = {0};
  p->feeds = NEW_ARRAY(p->c->scratch, bool, p->f->nvalues);
  for (Op *op = p->body->first; op; op = op->next)
    if (op->code == OP_LOAD) {
      vec_push(p->c->scratch, &work, OPERAND(op, LOAD, p));
      vec_push(p->c->scratch, &work, OPERAND(op, LOAD, mask));
    } else if (op->code == OP_TENSOR_LOAD) {
      push_operands(p, &work, op);
    }
  while (work.len) {
    Value *v = work.data[--work.len];
    if (!v || !v->def || v->def->block != p->body || p->feeds[v->id])
      continue;
    p->feeds[v->id] = true;
    push_operands(p, &work, v->def);
  }
}

static void
plan_buffer(Pipe *p, Staged *x, u32 vec)
{
  x->want = readers_layout(x->load);
  x->smem = x->box ? box_buffer(p->c, op_result(x->load)->type)->layout : shared_layout_for(p, x, vec);
}

/* NULL if the box of a tensor_load can be copied ahead, else why not. (What there is are boxes that copies move: plain_tensors.) */
static const char *
box_in_loop_obstacle(Pipe *p, Staged *x)
{
  const Op *load = x->load;
  Value *at[MAX_RANK];
  const char *why;
  u32 n = load->noperands - SLOT(TENSOR_LOAD, at);
  for (u32 i = 0; i < n; i++)
    at[i] = op_operand(load, SLOT(TENSOR_LOAD, at) + i);
  if (p->feeds[op_result(load)->id] || p->slice.in[op_result(load)->id])
    return "the address of another load is computed from it";
  if (!slice_add(&p->slice, n, at, &why))
    return why;
  x->box = true;
  plan_buffer(p, x, 0);
  return NULL;
}

/* NULL if the load can be copied asynchronously, else why not. */
static const char *
obstacle(Pipe *p, Staged *x)
{
  const Op *load = x->load;
  const Type *t = op_result(load)->type;
  const Value *other = OPERAND(load, LOAD, other);
  u64 bits;
  const char *why = NULL;
  x->fills = op_mask(load) && other && !(value_const_bits(other, &bits) && bits == 0);
  if (!type_is_tile(t) || t->ptr)
    return "it is not a tile of numbers";
  if ((why = slice_load_obstacle(load)))
    return why;
  if (x->fills && readers_layout(load))
    return "where its mask is off it gives something else than 0, and its reader wants another layout";
  u32 vec = (u32)op_int(load, AT_VEC, 1), bytes = vec * type_elem_bytes(t);
  if (bytes < 4 || bytes > 16)
    return arena_printf(p->c->scratch, "a thread's neighbouring elements are %u bytes, and cp.async copies 4, 8 or 16", bytes);
  if (!target_has(p->c->target, F_CP_ASYNC))
    return "the target has no asynchronous copies";
  if (p->feeds[op_result(load)->id] || p->slice.in[op_result(load)->id])
    return "the address of another load is computed from it";
  if (!slice_add(&p->slice, 2, (Value *[]){OPERAND(load, LOAD, p), op_mask(load)}, &why))
    return why;
  plan_buffer(p, x, vec);
  return x->smem ? NULL : "no shared layout keeps a copy's elements together";
}

static void
find_staged(Pipe *p)
{
  mark_feeding(p);
  for (Op *op = p->body->first; op; op = op->next) {
    bool box = op->code == OP_TENSOR_LOAD;
    if ((op->code != OP_LOAD && !box) || p->n == MAX_LOADS || p->nrest == MAX_LOADS)
      continue;
    Staged x = {.load = op};
    const char *why = box ? box_in_loop_obstacle(p, &x) : obstacle(p, &x);
    if (!why) {
      p->boxes += box;
      p->staged[p->n++] = x;
      continue;
    }
    p->why[p->nrest] = why;
    p->rest[p->nrest++] = op;
  }
  slice_close(&p->slice, NULL);
}

/* ---- stage 0, cloned ---- */

/* Bytes that boxes bring in an iteration are announced at the mbarrier of their buffers. */
static Value *
announce(Pipe *p, Builder *b, Value *slot)
{
  i64 bytes = 0;
  for (u32 k = 0; k < p->n; k++)
    bytes += p->staged[k].box ? box_tile_bytes(op_result(p->staged[k].load)->type) : 0;
  Value *full = ir_shared_index(b, p->full, slot);
  op_set_int(op_create(b, OP_MBARRIER_ARRIVE, 1, &full, 0, NULL, 0), AT_BYTES, bytes);
  return full;
}

static void
copy_tile(Pipe *p, Builder *b, const Op *load, Value *buffer, Value *const *map)
{
  Op *copy = ir_async_copy(b, buffer, value_mapped(map, OPERAND(load, LOAD, p)), value_mapped(map, OPERAND(load, LOAD, mask)));
  op_set_int(copy, AT_VEC, op_int(load, AT_VEC, 1));
  op_set_int(copy, AT_AHEAD, loop_number_ahead(p->loop));
  if (op_str(load, AT_EVICT, NULL))
    op_set_str(copy, AT_EVICT, op_str(load, AT_EVICT, NULL));
}

/* if more { copy every staged tile into its buffer `slot` }; commit. */
static void
issue(Pipe *p, Builder *b, Value *more, Value *slot, Value *const *map)
{
  Op *guard = ir_if(b, more, 0, NULL);
  for (u32 r = 0; r < 2; r++) {
    Builder in = builder_at_end(p->f, guard->regions[r]);
    in.span = b->span;
    Value *full = r == 0 && p->boxes ? announce(p, &in, slot) : NULL;
    for (u32 k = 0; r == 0 && k < p->n; k++) {
      const Op *load = p->staged[k].load;
      in.span = load->span;
      Value *buffer = ir_shared_index(&in, p->staged[k].buffers, slot);
      if (p->staged[k].box)
        box_copy(&in, load, map, buffer, full);
      else
        copy_tile(p, &in, load, buffer, map);
    }
    in.span = b->span;
    ir_yield(&in, 0, NULL);
  }
  if (p->n > p->boxes)
    ir_async_commit(b);
}

/* Where the copies of the steady state go: behind the barrier, or, in a loop of several dots, behind the first of them: the
 * tensor cores start at once, and the copies are issued while they work. */
static Op *
before_copies(const Pipe *p)
{
  Op *first = NULL;
  for (Op *op = p->body->first; op; op = op->next) {
    if (op->code == OP_DOT && first)
      return first;
    if (op->code == OP_DOT)
      first = op;
  }
  return NULL;
}

/* ---- rewriting ---- */

static const Type *
buffers_type(Pipe *p, const Staged *x)
{
  const Type *t = op_result(x->load)->type;
  return type_shared(p->c, t->dt, p->slots, t->rank, t->shape, NULL, x->smem, 0, 0);
}

static void
make_buffers(Pipe *p, Builder *b)
{
  for (u32 k = 0; k < p->n; k++) {
    b->span = p->staged[k].load->span;
    p->staged[k].buffers = ir_shared_alloc(b, buffers_type(p, &p->staged[k]));
    p->staged[k].buffers->name = op_result(p->staged[k].load)->name;
  }
  b->span = p->loop->span;
}

/* (slot + 1) mod N; *phase (NULL: not asked for) changes where that begins anew. */
static Value *
next_slot(Pipe *p, Builder *b, Value *slot, Value **phase)
{
  Value *more = ir_binary(b, OP_ADD, slot, i32_const(b, 1));
  Value *wrap = ir_cmp(b, "eq", more, i32_const(b, p->slots));
  if (phase)
    *phase = ir_select(b, wrap, ir_binary(b, OP_XOR, *phase, i32_const(b, 1)), *phase);
  return ir_select(b, wrap, i32_const(b, 0), more);
}

/* Slot s of the prologue. */
static Value *
first_slot(Pipe *p, Builder *b, u32 s)
{
  if (!p->boxes || !p->around.again)
    return i32_const(b, s);
  Value *sum = ir_binary(b, OP_ADD, p->around.in[0], i32_const(b, s));
  return ir_select(b, ir_cmp(b, "lt", sum, i32_const(b, p->slots)), sum, ir_binary(b, OP_SUB, sum, i32_const(b, p->slots)));
}

/* Prologue: N - 1 issues; then what is left of them becomes carried. */
static void
prologue(Pipe *p)
{
  if (p->boxes)
    p->full = box_mbarriers(p->c, p->f, p->loop->span, p->slots);
  Builder b = builder_before(p->loop);
  Value *i = OPERAND(p->loop, FOR, lo), **carried = slice_first(&p->slice);
  make_buffers(p, &b);
  Value *any = ir_cmp(&b, "lt", i, OPERAND(p->loop, FOR, hi));
  for (u32 s = 0; s < p->ahead_by; s++) {
    Value *more = s ? ir_binary(&b, OP_AND, any, loop_goes_on(&b, p->loop, OPERAND(p->loop, FOR, lo), s)) : any;
    Value **map = slice_clone(&p->slice, &b, i, carried, more, NULL);
    issue(p, &b, more, first_slot(p, &b, s), map);
    carried = slice_next(&p->slice, map);
    i = ir_binary(&b, OP_ADD, i, OPERAND(p->loop, FOR, step));
  }
  p->next = loop_carry(p->loop, i, "next");
  p->put = loop_carry(p->loop, first_slot(p, &b, p->ahead_by), "put");
  p->get = loop_carry(p->loop, first_slot(p, &b, 0), "get");
  if (p->boxes)
    p->phase = loop_carry(p->loop, p->around.in[1], "phase");
  p->ahead = slice_now(&p->slice);
  for (u32 k = 0; k < p->slice.carried.len; k++)
    p->ahead[k] = loop_carry(p->loop, carried[k], p->ahead[k]->name);
}

/* This iteration's tile in layout l, from its buffer. */
static Value *
read_staged(Pipe *p, Builder *b, const Staged *x, const Layout *l)
{
  const Type *t = op_result(x->load)->type;
  Value *buffer = ir_shared_index(b, x->buffers, p->get);
  Value *v = ir_shared_load(b, buffer, type_with_layout(p->c, t, l)), *other = OPERAND(x->load, LOAD, other);
  return x->fills ? ir_select(b, OPERAND(x->load, LOAD, mask), v, other) : v;
}

/* Uses of the loaded tile become loads from shared memory, in the layout that they want. */
static void
replace_load(Pipe *p, const Staged *x)
{
  Op *load = x->load;
  Builder b = builder_before(load);
  Value *own = NULL, *wanted = NULL, *old = op_result(load);
  while (old->uses) {
    Op *user = old->uses->user;
    Op *convert = user->code == OP_CAST && value_use_count(op_result(user)) == 1 ? op_result(user)->uses->user : user;
    if (convert->code == OP_CONVERT_LAYOUT && op_result(convert)->type->layout == x->want) {
      if (!wanted)
        wanted = read_staged(p, &b, x, x->want);
      Value *with = wanted;
      if (convert != user) {
        Builder at = builder_before(convert);
        with = ir_cast(&at, wanted, op_result(user)->type->dt);
      }
      value_replace_uses(op_result(convert), with);
      op_remove(convert);
      if (convert != user)
        op_remove(user);
      continue;
    }
    if (!own)
      own = read_staged(p, &b, x, old->type->layout);
    op_set_operand(user, (u32)(old->uses - user->operands), own);
  }
  own = own ? own : wanted;
  if (own)
    own->name = old->name;
  op_remove(load);
}

/* Adds the loads of indices for the iteration ahead to p->indices. */
static void
steady_state(Pipe *p)
{
  Builder b = builder_before(p->body->first);
  Op *dot = before_copies(p);
  b.span = p->loop->span;
  if (p->boxes)
    op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){ir_shared_index(&b, p->full, p->get), p->phase}, 0, NULL, 0);
  if (p->n > p->boxes) {
    ir_async_wait(&b, p->ahead_by - 1);
    op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  }
  if (dot)
    b = builder_after(dot);
  b.span = p->loop->span;
  Value *more = loop_goes_on(&b, p->loop, loop_counter(p->loop), p->ahead_by);
  Value **map = slice_clone(&p->slice, &b, p->next, p->ahead, more, &p->indices), **carried = slice_next(&p->slice, map);
  issue(p, &b, more, p->put, map);
  Value *phase = p->phase, *put = next_slot(p, &b, p->put, NULL), *get = next_slot(p, &b, p->get, p->boxes ? &phase : NULL);
  Op *end = block_terminator(p->body);
  Builder last = builder_before(end);
  last.span = p->loop->span;
  op_add_operand(end, ir_binary(&last, OP_ADD, p->next, OPERAND(p->loop, FOR, step)));
  op_add_operand(end, put);
  op_add_operand(end, get);
  if (p->boxes)
    op_add_operand(end, phase);
  for (u32 k = 0; k < p->slice.carried.len; k++)
    op_add_operand(end, carried[k]);
  for (u32 k = 0; k < p->n; k++)
    replace_load(p, &p->staged[k]);
}

static void
epilogue(Pipe *p)
{
  Builder b = builder_after(p->loop);
  b.span = p->loop->span;
  if (p->n > p->boxes)
    ir_async_wait(&b, 0);
  for (u32 k = 0; k < p->n; k++)
    op_create(&b, OP_SHARED_FREE, 1, &p->staged[k].buffers, 0, NULL, 0);
}

/* What only the copied loads needed goes. */
static void
drop_dead(Pipe *p)
{
  for (Op *op = p->body->last, *before; op; op = before) {
    before = op->prev;
    bool used = op_has(op, T_TERM) || !op_removable(op);
    for (u32 i = 0; i < op->nresults; i++)
      used = used || !value_unused(op->results[i]);
    if (!used)
      op_remove(op);
  }
}

/* The load of an index is prefetched together with those that it needs itself: they come before it, and have nobody left to serve then. */
static void
prefetch_indices(Pipe *p)
{
  for (u32 i = p->indices.len; i-- > 0; drop_dead(p))
    if (!value_unused(op_result(p->indices.data[i])))
      prefetch_in_registers(p->c, p->f, p->loop, p->indices.data[i]);
}

/* What cannot be copied, last first: an index is prefetched with what it points to, and needs nothing more then. */
static void
prefetch_rest(Pipe *p)
{
  for (u32 i = p->nrest; i-- > 0;) {
    Op *load = p->rest[i];
    Span at = load->span;
    if (value_unused(op_result(load)))
      continue;
    const char *stays = prefetch_in_registers(p->c, p->f, p->loop, load);
    bool two = stays && strcmp(stays, p->why[i]) != 0;
    const char *why = two ? arena_printf(p->c->scratch, "%s; and not prefetched: %s", p->why[i], stays) : p->why[i];
    remark(p, at, stays ? R_NOT_PIPELINED : R_PREFETCHED, why);
  }
}

static void
print_schedule(Pipe *p)
{
  Op *loads[MAX_LOADS];
  const Type *buffers[MAX_LOADS];
  for (u32 i = 0; i < p->n; i++) {
    loads[i] = p->staged[i].load;
    buffers[i] = buffers_type(p, &p->staged[i]);
  }
  schedule_table(&(ScheduleTable){.c = p->c, .out = p->c->notes, .loop = p->loop, .body = p->body, .stages = p->ahead_by + 1,
                                  .nloads = p->n, .load = loads, .buffers = buffers, .early = p->slice.in,
                                  .behind = before_copies(p)});
}

/* ---- products of warpgroups ---- */

static u64
ring_bytes(Pipe *p)
{
  u64 bytes = 0;
  for (u32 k = 0; k < p->n; k++)
    bytes += type_shared_bytes(buffers_type(p, &p->staged[k]));
  return bytes;
}

/* Products that run into the next iteration read buffers for one more: each row gets one more, or copies are one iteration less ahead. */
static void
let_products_run_on(Pipe *p)
{
  p->defer = p->n && warpgroup_defers(p->loop);
  for (u32 k = 0; k < p->nrest && p->defer; k++)
    p->defer = !warpgroup_reads(p->loop, p->rest[k]);
  p->slots += p->defer;
  if (p->defer && ring_bytes(p) > p->c->target->shared_max) {
    p->slots--;
    p->ahead_by--;
    p->defer = p->ahead_by > 0;
    p->ahead_by += !p->defer;
  }
}

static void
make_products(Pipe *p)
{
  Value *rows[MAX_LOADS];
  for (u32 k = 0; k < p->n; k++)
    rows[k] = p->staged[k].buffers;
  warpgroup_products(p->c, p->loop, p->defer, rows, p->n);
}

/* Loops with boxes go on where they left off with their mbarriers when they are entered again. */
static bool
begin_rings(Pipe *p)
{
  return !p->boxes || carried_begin(&p->around, p->loop, 2, (i64[]){0, 0}, (const char *[]){"get", "phase"});
}

static Value *
result_of(const Pipe *p, const Value *arg)
{
  u32 k = 0;
  loop_carries(p->loop, arg, &k);
  return p->loop->results[k];
}

static void
end_rings(Pipe *p)
{
  if (p->boxes)
    carried_end(&p->around, (Value *[]){result_of(p, p->get), result_of(p, p->phase)});
}

/* ---- two teams ---- */

/* Copies of boxes by a team of their own: where the sums stay under way, a program has two warpgroups, and shared memory is for one
 * program anyway. A box alone is nothing that warps would have to wait for. */
static bool
wants_roles(Pipe *p)
{
  u32 warps = block_team(p->body).warps;
  return p->boxes && p->boxes == p->n && !p->nrest && p->defer && warps == 2 * WGMMA_GROUP && target_has(p->c->target, F_SETMAXNREG) &&
         !p->f->max_registers && !p->f->min_blocks && ring_bytes(p) > p->c->target->shared_max / 2 &&
         !roles_obstacle(p->c, p->f, p->loop);
}

static void
arrive(Builder *b, Value *row, Value *slot)
{
  Value *m = ir_shared_index(b, row, slot);
  op_create(b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
}

static void
await(Builder *b, Value *row, Value *slot, Value *parity)
{
  op_create(b, OP_MBARRIER_WAIT, 2, (Value *[]){ir_shared_index(b, row, slot), parity}, 0, NULL, 0);
}

static void
arrive_if(Builder *b, Value *when, Value *row, Value *slot)
{
  Op *guard = ir_if(b, when, 0, NULL);
  for (u32 r = 0; r < 2; r++) {
    Builder in = builder_at_end(b->func, guard->regions[r]);
    in.span = b->span;
    if (r == 0)
      arrive(&in, row, slot);
    ir_yield(&in, 0, NULL);
  }
}

/* The loop waits for its buffers, and hands back those of the iteration before, whose products are done. */
static void
consume(Pipe *p, Value *empty)
{
  Builder b = builder_before(p->loop);
  b.span = p->loop->span;
  Value *any = ir_cmp(&b, "lt", OPERAND(p->loop, FOR, lo), OPERAND(p->loop, FOR, hi));
  p->get = loop_carry(p->loop, p->around.in[0], "get");
  p->phase = loop_carry(p->loop, p->around.in[1], "phase");
  Value *before = loop_carry(p->loop, p->around.in[0], "before");
  b = builder_before(p->body->first);
  b.span = p->loop->span;
  await(&b, p->full, p->get, p->phase);
  Op *end = block_terminator(p->body);
  b = builder_before(end);
  b.span = p->loop->span;
  Value *phase = p->phase, *get = next_slot(p, &b, p->get, &phase);
  op_add_operand(end, get);
  op_add_operand(end, phase);
  op_add_operand(end, p->get);
  for (u32 k = 0; k < p->n; k++)
    replace_load(p, &p->staged[k]);
  end_rings(p);
  make_products(p);
  b = builder_before(end);
  b.span = p->loop->span;
  arrive_if(&b, ir_cmp(&b, "ne", loop_counter(p->loop), OPERAND(p->loop, FOR, lo)), empty, before);
  Op *behind = p->loop;
  while (behind->next->code == OP_WGMMA_WAIT)
    behind = behind->next;
  b = builder_after(behind);
  b.span = p->loop->span;
  arrive_if(&b, any, empty, result_of(p, before));
  drop_dead(p);
}

/* The same loop in the team that copies. */
static void
produce(Pipe *p, Value *const *map, Value *empty)
{
  Op *loop = map[op_result(p->staged[0].load)->id]->def->block->parent, *end = block_terminator(loop->regions[0]);
  Carried around;
  carried_begin(&around, loop, 2, (i64[]){0, 1}, (const char *[]){"put", "phase"});
  Value *put = loop_carry(loop, around.in[0], "put"), *phase = loop_carry(loop, around.in[1], "phase");
  Builder b = builder_before(end);
  b.span = loop->span;
  await(&b, empty, put, phase);
  Value *full = announce(p, &b, put), *next_phase = phase, *next;
  for (u32 k = 0; k < p->n; k++) {
    Value *tile = map[op_result(p->staged[k].load)->id];
    Op *load = tile->def;
    b.span = load->span;
    box_copy(&b, load, NULL, ir_shared_index(&b, p->staged[k].buffers, put), full);
    Builder at = builder_before(load);
    value_replace_uses(tile, ir_const_bits(&at, tile->type, 0));
    op_remove(load);
  }
  b.span = loop->span;
  next = next_slot(p, &b, put, &next_phase);
  op_add_operand(end, next);
  op_add_operand(end, next_phase);
  op_remove_attr(loop, AT_STAGES);
  u32 k = 0;
  loop_carries(loop, put, &k);
  carried_end(&around, (Value *[]){loop->results[k], loop->results[k + 1]});
}

static void
part(Pipe *p)
{
  Value **map, *empty;
  Op *teams = roles_split(p->c, p->f, &map);
  p->full = box_mbarriers(p->c, p->f, p->loop->span, p->slots);
  empty = box_mbarriers(p->c, p->f, p->loop->span, p->slots);
  Builder b = builder_before(teams);
  make_buffers(p, &b);
  begin_rings(p);
  produce(p, map, empty);
  consume(p, empty);
  func_dce(p->c, p->f);
}

static void
drop_marks(Op *op, void *user)
{
  (void)user;
  if (op->code == OP_DOT)
    op_remove_attr(op, AT_WARPGROUP);
}

static void
pipeline_loop(Ctx *c, Func *f, Op *loop)
{
  u32 stages = (u32)op_int(loop, AT_STAGES, 1);
  Pipe p = {.c = c, .f = f, .loop = loop, .body = loop->regions[0], .ahead_by = stages - 1, .slots = stages};
  p.slice = slice_new(c, f, loop, true);
  find_staged(&p);
  let_products_run_on(&p);
  op_remove_attr(loop, AT_STAGES);
  if (p.n && c->notes)
    print_schedule(&p);
  if (wants_roles(&p)) {
    part(&p);
    return;
  }
  if (p.n && begin_rings(&p)) {
    for (u32 k = 0; k < p.slice.ops.len; k++)
      if (p.slice.ops.data[k]->code == OP_LOAD)
        op_set_int(p.slice.ops.data[k], AT_AHEAD, loop_number_ahead(loop));
    prologue(&p);
    steady_state(&p);
    epilogue(&p);
    end_rings(&p);
    make_products(&p);
    if (!p.boxes)
      op_set_int(loop, AT_PIPELINED, p.ahead_by + 1);
    drop_dead(&p);
    prefetch_indices(&p);
  }
  prefetch_rest(&p);
}

void
pass_pipeline_loops(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec loops = func_ops(c, m->funcs.data[i], OP_FOR);
    for (u32 k = loops.len; k-- > 0;)   /* inner loops first */
      if (op_int(loops.data[k], AT_STAGES, 1) >= 2)
        pipeline_loop(c, m->funcs.data[i], loops.data[k]);
    func_walk(m->funcs.data[i], drop_marks, NULL);
  }
}
