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
#include "loop_slice.h"
#include "pingpong.h"
#include "pipeline.h"
#include "ring_remark.h"
#include "ring.h"
#include "roles.h"
#include "schedule_table.h"
#include "wgmma.h"

enum { MAX_LOADS = RING_ROWS };
typedef VEC(Value *) ValueVec;

typedef struct Pipe {
  Ctx *c;
  Func *f;
  Op *loop;
  Block *body;
  u32 ahead_by;              /* iterations that copies are ahead; a row has one buffer more, or two where products read on (defer) */
  bool defer;
  bool parted;               /* another team makes the copies */
  Ring ring;
  Op *rest[MAX_LOADS];       /* loads that cannot be copied */
  const char *why[MAX_LOADS];
  u32 nrest;
  bool *feeds;               /* by value id: an address or mask of a load is computed from it */
  LoopSlice slice;           /* stage 0 without the copies */
  Value *next;               /* block argument: the counter ahead */
  Value **ahead;             /* block arguments, as carried */
  OpVec indices;             /* loads that the body's copies take their addresses from */
} Pipe;

/* ---- what can be copied ---- */

static void
remark(Ctx *c, Span at, DiagId id, const char *why)
{
  if (c->remarks)
    diag(c, at, id, why);
}

static const Layout *
shared_layout_for(Pipe *p, const RingRow *x, u32 vec)
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
plan_buffer(Pipe *p, RingRow *x, u32 vec)
{
  x->want = ring_readers_layout(x->load);
  x->smem = x->box ? box_buffer(p->c, op_result(x->load)->type)->layout : shared_layout_for(p, x, vec);
}

/* NULL if the box of a tensor_load can be copied ahead, else why not. (What there is are boxes that copies move: plain_tensors.) */
static const char *
box_in_loop_obstacle(Pipe *p, RingRow *x)
{
  const Op *load = x->load;
  Value *at[MAX_RANK + WINDOW_DIMS];
  const char *why;
  u32 n = load->noperands - SLOT(TENSOR_LOAD, at);
  for (u32 i = 0; i < n; i++)
    at[i] = op_operand(load, SLOT(TENSOR_LOAD, at) + i);
  if (op_tensor(load)->def && op_inside(op_tensor(load)->def, p->loop))
    return "the loop makes its tensor";
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
obstacle(Pipe *p, RingRow *x)
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
  if (x->fills && ring_readers_layout(load))
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
    if ((op->code != OP_LOAD && !box) || p->ring.n == MAX_LOADS || p->nrest == MAX_LOADS)
      continue;
    RingRow x = {.load = op};
    bool left = p->parted && roles_leaves_load(op) && !warpgroup_reads(p->loop, op);
    const char *why = left ? "a team that copies moves boxes" : box ? box_in_loop_obstacle(p, &x) : obstacle(p, &x);
    if (!why) {
      p->ring.boxes += box;
      p->ring.row[p->ring.n++] = x;
      continue;
    }
    p->why[p->nrest] = why;
    p->rest[p->nrest++] = op;
  }
  slice_close(&p->slice, NULL);
}

/* ---- stage 0, cloned ---- */

/* if more { copy every staged tile into its buffer `slot` }; commit. */
static void
issue(Pipe *p, Builder *b, Value *more, Value *slot, Value *const *map)
{
  Op *guard = ir_if(b, more, 0, NULL);
  for (u32 r = 0; r < 2; r++) {
    Builder in = builder_at_end(p->f, guard->regions[r]);
    in.span = b->span;
    if (r == 0)
      ring_fill(&p->ring, &in, slot, map);
    ir_yield(&in, 0, NULL);
  }
  if (p->ring.n > p->ring.boxes)
    ir_async_commit(b);
}

/* Where the copies of the steady state go: behind the barrier, or, in a loop of several dots, behind the first of them: the
 * tensor cores start at once, and the copies are issued while they work. */
static Op *
before_copies(const Pipe *p)
{
  Op *first = NULL;
  for (Op *op = p->body->first; op; op = op->next) {
    if (op_is_dot(op) && first)
      return first;
    if (op_is_dot(op))
      first = op;
  }
  return NULL;
}

/* ---- rewriting ---- */

/* Prologue: N - 1 issues; then what is left of them becomes carried. */
static void
prologue(Pipe *p)
{
  Ring *r = &p->ring;
  if (r->boxes)
    ring_make_mbarriers(r, false);
  Builder b = builder_before(p->loop);
  Value *i = OPERAND(p->loop, FOR, lo), **carried = slice_first(&p->slice);
  ring_make_buffers(r, &b);
  Value *any = ir_cmp(&b, "lt", i, OPERAND(p->loop, FOR, hi));
  for (u32 s = 0; s < p->ahead_by; s++) {
    Value *more = s ? ir_binary(&b, OP_AND, any, loop_goes_on(&b, p->loop, OPERAND(p->loop, FOR, lo), s)) : any;
    Value **map = slice_clone(&p->slice, &b, i, carried, more, NULL);
    issue(p, &b, more, ring_first(r, &b, s), map);
    carried = slice_next(&p->slice, map);
    i = ir_binary(&b, OP_ADD, i, OPERAND(p->loop, FOR, step));
  }
  p->next = loop_carry(p->loop, i, "next");
  r->put = loop_carry(p->loop, ring_first(r, &b, p->ahead_by), "put");
  r->get = loop_carry(p->loop, ring_first(r, &b, 0), "get");
  if (r->boxes)
    r->phase = loop_carry(p->loop, r->from[1], "phase");
  p->ahead = slice_now(&p->slice);
  for (u32 k = 0; k < p->slice.carried.len; k++)
    p->ahead[k] = loop_carry(p->loop, carried[k], p->ahead[k]->name);
}

/* Adds the loads of indices for the iteration ahead to p->indices. */
static void
steady_state(Pipe *p)
{
  Builder b = builder_before(p->body->first);
  Ring *r = &p->ring;
  Op *dot = before_copies(p);
  b.span = p->loop->span;
  if (r->boxes)
    ring_await(r, &b);
  if (r->n > r->boxes) {
    ir_async_wait(&b, p->ahead_by - 1);
    op_create(&b, OP_BARRIER, 0, NULL, 0, NULL, 0);
  }
  if (dot)
    b = builder_after(dot);
  b.span = p->loop->span;
  Value *more = loop_goes_on(&b, p->loop, loop_counter(p->loop), p->ahead_by);
  Value **map = slice_clone(&p->slice, &b, p->next, p->ahead, more, &p->indices), **carried = slice_next(&p->slice, map);
  issue(p, &b, more, r->put, map);
  Value *phase = r->phase, *put = ring_next(r, &b, r->put, NULL), *get = ring_next(r, &b, r->get, r->boxes ? &phase : NULL);
  Op *end = block_terminator(p->body);
  Builder last = builder_before(end);
  last.span = p->loop->span;
  op_add_operand(end, ir_binary(&last, OP_ADD, p->next, OPERAND(p->loop, FOR, step)));
  op_add_operand(end, put);
  op_add_operand(end, get);
  if (r->boxes)
    op_add_operand(end, phase);
  for (u32 k = 0; k < p->slice.carried.len; k++)
    op_add_operand(end, carried[k]);
  ring_read(r);
}

static void
epilogue(Pipe *p)
{
  Builder b = builder_after(p->loop);
  b.span = p->loop->span;
  if (p->ring.n > p->ring.boxes)
    ir_async_wait(&b, 0);
  ring_free(&p->ring, &b);
}

/* The load of an index is prefetched together with those that it needs itself: they come before it, and have nobody left to serve then. */
static void
prefetch_indices(Pipe *p)
{
  for (u32 i = p->indices.len; i-- > 0; block_drop_unused(p->body))
    if (!value_unused(op_result(p->indices.data[i])))
      prefetch_in_registers(p->c, p->f, p->loop, p->indices.data[i], false);
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
    const char *stays = prefetch_in_registers(p->c, p->f, p->loop, load, p->parted);
    bool two = stays && strcmp(stays, p->why[i]) != 0;
    const char *why = two ? arena_printf(p->c->scratch, "%s; and not prefetched: %s", p->why[i], stays) : p->why[i];
    remark(p->c, at, stays ? R_NOT_PIPELINED : R_PREFETCHED, why);
  }
}

static void
print_schedule(const Pipe *p)
{
  Op *loads[MAX_LOADS];
  const Type *buffers[MAX_LOADS];
  for (u32 i = 0; i < p->ring.n; i++) {
    loads[i] = p->ring.row[i].load;
    buffers[i] = ring_buffers_type(&p->ring, i);
  }
  schedule_table(&(ScheduleTable){.c = p->c, .out = p->c->notes, .loop = p->loop, .body = p->body, .stages = p->ahead_by + 1,
                                  .nloads = p->ring.n, .load = loads, .buffers = buffers, .early = p->slice.in,
                                  .behind = before_copies(p)});
}

/* Do the rings fit beside the boxes that live while they do? parted: those of two teams live as long as these. */
static bool
ring_fits(const Pipe *p, bool parted)
{
  u64 beside = parted ? roles_bytes_beside(p->c, p->f) : box_bytes_beside(p->c, p->f, p->loop, 1, 0, NULL);
  return ring_bytes(&p->ring) + beside + SMALL_BUFFERS <= p->c->target->shared_max;
}

/* Products that run into the next iteration read buffers for one more: each row gets one more, or copies are one iteration less ahead. */
static void
let_products_run_on(Pipe *p, bool parted)
{
  Ring *r = &p->ring;
  p->defer = r->n && warpgroup_defers(p->loop);
  for (u32 k = 0; k < p->nrest && p->defer; k++)
    p->defer = !warpgroup_reads(p->loop, p->rest[k]);
  for (u32 k = 0; k < r->n && p->defer; k++)
    p->defer = !r->row[k].fills && warpgroup_reads_in_place(p->c, p->loop, r->row[k].load, ring_buffers_type(r, k));
  r->slots += p->defer;
  if (p->defer && !ring_fits(p, parted)) {
    r->slots--;
    p->ahead_by--;
    p->defer = p->ahead_by > 0;
    p->ahead_by += !p->defer;
  }
}

static void
note_dot(Op *op, void *user)
{
  bool *any = user;
  *any |= op_is_dot(op);
}

static bool
is_row(const Ring *r, const Op *load)
{
  for (u32 k = 0; k < r->n; k++)
    if (r->row[k].load == load)
      return true;
  return false;
}

/* Where both factors of a dot by mma.sync come as boxes, these round to tf32, once, and not each warp that reads them. (Those of warpgroups
 * had to be known to in choose_mma.) */
static void
let_boxes_round(Pipe *p)
{
  OpVec dots = {0};
  for (Op *op = p->body->first; op; op = op->next)
    if (op->code == OP_DOT && !op_attr(op, AT_WARPGROUP) && wgmma_dot_rounded(p->c, op) &&
        is_row(&p->ring, wgmma_dot_copy(dot_a(op))) && is_row(&p->ring, wgmma_dot_copy(dot_b(op))))
      vec_push(p->c->scratch, &dots, op);
  for (u32 i = 0; i < dots.len; i++) {
    op_set_int(wgmma_dot_copy(dot_a(dots.data[i])), AT_TF32, 1);
    op_set_int(wgmma_dot_copy(dot_b(dots.data[i])), AT_TF32, 1);
    op_set_str(dots.data[i], AT_PREC, "tf32_cut");
  }
}

/* The loop starts its own copies. */
static void
in_one_team(Pipe *p)
{
  bool dots = false;
  block_walk(p->body, note_dot, &dots);
  p->ring.slots_stay = !dots;
  Carried around;
  Ring *ring = &p->ring;
  for (u32 k = 0; k < p->slice.ops.len; k++)
    if (p->slice.ops.data[k]->code == OP_LOAD)
      op_set_int(p->slice.ops.data[k], AT_AHEAD, loop_number_ahead(p->loop));
  if (ring->boxes)
    ring_begin(&around, 1, &ring);
  prologue(p);
  steady_state(p);
  epilogue(p);
  if (ring->boxes)
    ring_end(&around, 1, &ring);
  warpgroup_products(p->c, p->loop, p->defer, 1, &ring);
  if (!ring->boxes)
    op_set_int(p->loop, AT_PIPELINED, p->ahead_by + 1);
  block_drop_unused(p->body);
  prefetch_indices(p);
}

static Pipe
plan_loop(Ctx *c, Func *f, Op *loop, bool parted)
{
  u32 stages = (u32)op_int(loop, AT_STAGES, 1);
  Pipe p = {.c = c, .f = f, .loop = loop, .body = loop->regions[0], .ahead_by = stages - 1, .parted = parted,
            .ring = {.c = c, .f = f, .loop = loop, .slots = stages}};
  p.slice = slice_new(c, f, loop, true);
  find_staged(&p);
  let_products_run_on(&p, parted);
  return p;
}

static void
pipeline_loop(Ctx *c, Func *f, Op *loop)
{
  Pipe p = plan_loop(c, f, loop, false);
  let_boxes_round(&p);
  op_remove_attr(loop, AT_STAGES);
  if (p.ring.n && c->notes)
    print_schedule(&p);
  if (p.ring.n) {
    RingNote note = ring_note(&p.ring);
    Span at = loop->span;
    in_one_team(&p);
    ring_remark(c, f, &note, at, p.ahead_by);
  }
  prefetch_rest(&p);
}

/* ---- two teams ---- */

/* Its copies may be a team's of their own: boxes, all of them, for products, and slim ones beside these. What else it loads is little, and
 * stays with those who multiply. */
static bool
suits_roles(const Pipe *p)
{
  const Ring *r = &p->ring;
  u32 products = 0, slim = 0;
  for (u32 k = 0; k < r->n; k++)
    if (p->defer || warpgroup_reads(p->loop, r->row[k].load))
      products++;
    else
      slim += ring_row_is_slim(r, k);
  for (u32 k = 0; k < p->nrest; k++)
    if (!roles_leaves_load(p->rest[k]) || warpgroup_reads(p->loop, p->rest[k]))
      return false;
  return products && products + slim == r->n && r->boxes == r->n;
}

/* What the rings take at least beside what the loops' products keep in shared memory. */
static u64
parted_bytes(Ctx *c, u32 n, const Pipe *p, Op *const *loops)
{
  return ring_bytes(&p[0].ring) + (p[0].defer ? 0 : warpgroup_kept_bytes(c, n, loops) + SMALL_BUFFERS);
}

/* NULL if the kernel, whatever its loops do, can have a team that copies, else why not: registers are shared out among eight warps that
 * multiply and four that copy (roles.c). */
static const char *
team_obstacle(const Ctx *c, const Func *f)
{
  if (!target_has(c->target, F_SETMAXNREG))
    return "the target does not share out registers";
  if (!roles_multiply(f))
    return "not eight warps multiply";
  return f->max_registers || f->min_blocks ? "the kernel limits registers itself" : NULL;
}

/* NULL if such a team can make the copies of these loops, else why not. A box alone is nothing that warps would have to wait for. */
static const char *
parting_obstacle(Ctx *c, Func *f, u32 n, const Pipe *p, const Ring *rings, Op *const *loops)
{
  for (u32 i = 0; i < n; i++) {
    if (block_team(p[i].body).op)
      return "it is a team's already";
    if (!suits_roles(&p[i]))
      return "what it loads is not all copied as boxes of tensors, for products of warpgroups";
    if (p[i].defer != p[0].defer)
      return "products of one loop stay under way from one iteration to the next, those of another do not";
  }
  if (parted_bytes(c, n, p, loops) > c->target->shared_max || !ring_fits(&p[0], true))
    return "its buffers take more shared memory than there is";
  return roles_obstacle(c, f, n, rings, p[0].defer);
}

static void
make_roles(Ctx *c, Func *f, u32 n, Pipe *p, const Ring *rings, Op *const *loops)
{
  RingNote *notes = NEW_ARRAY(c->scratch, RingNote, n);
  Span *at = NEW_ARRAY(c->scratch, Span, n);
  Company company = roles_company(c, f, ring_bytes(&rings[0]));
  for (u32 i = 0; i < n; i++) {
    notes[i] = ring_note(&rings[i]);
    at[i] = loops[i]->span;
    op_remove_attr(loops[i], AT_STAGES);
    if (c->notes)
      print_schedule(&p[i]);
    prefetch_rest(&p[i]);
  }
  roles_part(c, f, n, rings, p[0].defer, &company);
  for (u32 i = 0; i < n; i++)
    ring_remark(c, f, &notes[i], at[i], p[i].ring.slots - 1);
}

/* By itself where shared memory is for one program anyway, and it can be. Where it is not, each loop is planned anew when those in it have
 * their copies. */
static bool
part_roles(Ctx *c, Func *f, u32 n, Op *const *loops)
{
  Pipe *p = NEW_ARRAY(c->scratch, Pipe, n);
  Ring *rings = NEW_ARRAY(c->scratch, Ring, n);
  bool stated = f->roles == CHOICE_ON || f->pingpong == CHOICE_ON;
  const char *why = n > CARRIED_OPS ? "there are too many such loops" : team_obstacle(c, f);
  if (f->roles == CHOICE_OFF || !n || (why && !stated))
    return false;
  for (u32 i = 0; i < n && !why; i++) {
    p[i] = plan_loop(c, f, loops[i], true);
    rings[i] = p[i].ring;
  }
  why = why ? why : parting_obstacle(c, f, n, p, rings, loops);
  if (f->pingpong == CHOICE_ON && (why || !pingpong_wanted(f)))
    remark(c, loops[0]->span, R_NO_PINGPONG, pingpong_wanted(f) ? why : pingpong_head_obstacle(f));
  else if (why && stated)
    remark(c, loops[0]->span, R_NO_ROLES, why);
  if (why || (!stated && parted_bytes(c, n, p, loops) <= c->target->shared_max / 2))
    return false;
  make_roles(c, f, n, p, rings, loops);
  return true;
}

/* ---- the pass ---- */

/* Does the loop load a factor of a dot in it? */
static bool
loads_factors(const Op *loop)
{
  const Block *body = loop->regions[0];
  for (const Op *op = body->first; op; op = op->next)
    for (u32 i = 0; op_is_dot(op) && i + 1 < op->noperands; i++) {
      const Value *from = wgmma_dot_source(op_operand(op, i), NULL);
      while (from->def && op_has(from->def, T_ELEM) && from->def->noperands == 1)
        from = wgmma_dot_source(op_operand(from->def, 0), NULL);
      if (op_is(from, OP_TENSOR_LOAD) || (op_is(from, OP_LOAD) && from->def->block == body && value_within(op_pointer(from->def), loop)))
        return true;
    }
  return false;
}

static void
pipeline_func(Ctx *c, Func *f)
{
  OpVec loops = func_ops(c, f, OP_FOR);
  u32 n = 0;
  for (u32 k = 0; k < loops.len; k++)
    if (loop_is_staged(loops.data[k]))
      loops.data[n++] = loops.data[k];
    else if (c->remarks && !op_attr(loops.data[k], AT_STAGES) && loads_factors(loops.data[k]))
      diag(c, loops.data[k]->span, R_NOT_STAGED);
  if (!part_roles(c, f, n, loops.data)) {
    for (u32 k = n; k-- > 0;)   /* inner loops first */
      pipeline_loop(c, f, loops.data[k]);
    if (n > 1)
      warpgroup_keep_once(c, f);
  }
}

void
pass_pipeline_loops(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    pipeline_func(c, m->funcs.data[i]);
}
