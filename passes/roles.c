/* roles.c - see roles.h.
 *
 * The team that copies does the kernel again, without what it does to memory: dce leaves of that the loops and ifs around the copies, and
 * what their coordinates are computed from. So these must not depend on tiles, nor on memory that the kernel may write. What the two
 * teams share is the ring's buffers and mbarriers, made in front of the op; all else is each team's own.
 *
 * The team that copies waits until a slot is empty, announces the bytes, starts the copies. The other waits until a slot is full, and
 * hands it back when the products that read it are done: where these run on into the next iteration, behind the next ones. Where they do
 * not, tiles that different products read have rings of their own, and are waited for and handed back one by one.
 *
 * Several loops share the rings, if they copy the same tiles: the team that copies goes on with the next loop while the other is
 * still at the one before.
 *
 * Where tiles that are stored have company, boxes that are added to them, a third team brings these and stores the tiles (company.c). */
#include "roles.h"
#include "alias.h"
#include "boxes.h"
#include "company.h"
#include "pingpong.h"
#include "pipeline.h"
#include "wgmma.h"

/* The first row of the ring that the same product reads as this one; a slim row goes with the one before it, or with the first that is
 * none. */
static u32
group_of(const Ring *r, u32 row)
{
  while (row && ring_row_is_slim(r, row))
    row--;
  while (row + 1 < r->n && ring_row_is_slim(r, row))
    row++;
  const Op *reader = warpgroup_reader(r->loop, r->row[row].load);
  u32 k = 0;
  while (k < row && (!reader || warpgroup_reader(r->loop, r->row[k].load) != reader))
    k++;
  return k;
}

/* ---- what may be done twice ---- */

typedef struct Closure { Ctx *c; Func *f; bool *seen; VEC(Value *) work; const char *why; } Closure;

static void
ask(Closure *x, Value *v)
{
  if (!v || x->seen[v->id])
    return;
  x->seen[v->id] = true;
  vec_push(x->c->scratch, &x->work, v);
}

static void
ask_operands(Closure *x, const Op *op, u32 from, u32 to)
{
  for (u32 i = from; i < to && i < op->noperands; i++)
    ask(x, op_operand(op, i));
}

/* What decides whether, and how often, op is reached. */
static void
ask_around(Closure *x, const Op *op)
{
  for (const Op *up = op->block->parent; up; up = up->block->parent)
    if (up->code == OP_FOR)
      ask_operands(x, up, 0, loop_first_init(up));
    else if (up->code == OP_IF)
      ask(x, OPERAND(up, IF, c));
    else
      x->why = "it is not in a kernel's own loops and ifs alone";
}

static void
ask_carried(Closure *x, Op *loop, u32 k)
{
  ask(x, loop_init(loop, k));
  ask(x, loop_next(loop, k));
  ask_operands(x, loop, 0, loop_first_init(loop));
}

typedef struct Written { GlobalAccess by; bool found; } Written;

static void
look_for_writes(Op *op, void *user)
{
  Written *w = user;
  GlobalAccess b;
  if (global_access(op, &b) && b.effect & FX_WRITE)
    w->found |= w->by.root == b.root || global_overlap(&w->by, &b);
}

/* A number that the kernel reads from where it does not write: it is the same whichever team reads it, and whenever. */
static bool
reads_constant(const Closure *x, const Op *op)
{
  Written w = {0};
  if (op->code != OP_LOAD || type_is_tile(op_result(op)->type) || !global_access(op, &w.by))
    return false;
  func_walk(x->f, look_for_writes, &w);
  return !w.found;
}

static void
follow(Closure *x, Value *v)
{
  Op *op = v->def ? v->def : v->block->parent;
  if (!op || (!v->def && op->code == OP_FOR && v->index < loop_first_arg(op)))
    return;
  if (op->code == OP_FOR) {
    ask_carried(x, op, v->def ? v->index : v->index - loop_first_arg(op));
  } else if (op->code == OP_IF && v->def) {
    ask(x, OPERAND(op, IF, c));
    for (u32 r = 0; r < 2; r++)
      ask(x, region_yields(op, r, v->index));
  } else if (((!op_has(op, T_PURE) || type_is_tile(v->type)) && !reads_constant(x, op)) || op->nregions) {
    x->why = "where its copies go depends on tiles, or on memory that the kernel may write";
  } else {
    ask_operands(x, op, 0, op->noperands);
  }
}

/* Can a team that does not know tiles tell where the box is? */
static bool
computed_apart(Closure *x, const Op *box)
{
  ask_around(x, box);
  ask_operands(x, box, box->code == OP_TENSOR_LOAD ? SLOT(TENSOR_LOAD, at) : SLOT(TENSOR_STORE, at), box->noperands);
  while (x->work.len && !x->why)
    follow(x, x->work.data[--x->work.len]);
  return !x->why;
}

typedef struct Others { u32 n; const Ring *rings; const char *why; } Others;

static bool
is_parted(const Others *o, const Op *loop)
{
  for (u32 i = 0; i < o->n; i++)
    if (o->rings[i].loop == loop)
      return true;
  return false;
}

const char *
roles_op_obstacle(const Op *op)
{
  bool result = op->nresults && !value_unused(op_result(op));
  return op_uses_shared(op) ? "the kernel uses shared memory or orders accesses itself"
       : !op_removable(op) && !op->nregions && !op_has(op, T_TERM) && result ? "what the kernel does to memory has a result" : NULL;
}

/* Is what is computed of v element by element a number for each column? A thread has as many of these as the sums have columns. */
static bool
goes_by_columns(const Value *v, u32 depth)
{
  for (const Use *u = v->uses; u && depth; u = u->next) {
    bool passes = op_has(u->user, T_PURE | T_ELEM) && u->user->nresults == 1;
    if (u->user->code == OP_EXPAND_DIMS ? op_int(u->user, AT_AXIS, 0) == 0 : passes && goes_by_columns(op_result(u->user), depth - 1))
      return true;
  }
  return false;
}

bool
roles_leaves_load(const Op *load)
{
  enum { DEPTH = 4 };
  enum { FEW = 8 };
  const Type *t = op_result(load)->type;
  if (load->code != OP_LOAD || !type_is_tile(t))
    return load->code == OP_LOAD;
  return t->layout ? type_registers(t) <= FEW : type_numel(t) <= 2 * WGMMA_GROUP * 32 && !goes_by_columns(op_result(load), DEPTH);
}

static void
look_at(Op *op, void *user)
{
  Others *o = user;
  const char *why = roles_op_obstacle(op);
  if (why)
    o->why = why;
  else if (loop_is_staged(op) && !is_parted(o, op))
    o->why = "the kernel has another loop with stages";
}

/* Do both loops copy the same tiles, for the same products of theirs? */
static bool
same_tiles(const Ring *x, const Ring *y)
{
  bool same = x->n == y->n && x->slots == y->slots;
  for (u32 k = 0; k < x->n && same; k++)
    same = op_result(x->row[k].load)->type == op_result(y->row[k].load)->type && x->row[k].smem == y->row[k].smem &&
           group_of(x, k) == group_of(y, k);
  return same;
}

static Company
find_company(Ctx *c, Func *f)
{
  Company x = company_find(c, f->body);
  Closure known = {.c = c, .f = f, .seen = NEW_ARRAY(c->scratch, bool, f->nvalues)};
  for (u32 j = 0; j < x.n; j++)
    if (!computed_apart(&known, x.load[j]) || !computed_apart(&known, x.store[j]))
      return (Company){0};
  return x;
}

/* What other boxes take beside rings. */
static u64
bytes_beside(Ctx *c, Func *f, const Company *x)
{
  const Op *without[2 * COMPANY_MOST];
  memcpy(without, x->load, x->n * sizeof *without);
  memcpy(without + x->n, x->store, x->n * sizeof *without);
  return box_bytes_beside(c, f, NULL, roles_multiply(f), 2 * x->n, without);
}

u64
roles_bytes_beside(Ctx *c, Func *f)
{
  Company x = find_company(c, f);
  return bytes_beside(c, f, &x) + company_bytes(c, &x, company_least(&x));
}

Company
roles_company(Ctx *c, Func *f, u64 rings)
{
  Company x = find_company(c, f);
  x.slots = x.n ? company_slots(c, &x, rings + bytes_beside(c, f, &x) + SMALL_BUFFERS) : 0;
  return x;
}

u32
roles_multiply(const Func *f)
{
  return pingpong_wanted(f) ? 2 : f->warps == 2 * WGMMA_GROUP;
}

const char *
roles_obstacle(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer)
{
  Closure x = {.c = c, .f = f, .seen = NEW_ARRAY(c->scratch, bool, f->nvalues)};
  Others o = {.n = n, .rings = rings, .why = pingpong_wanted(f) ? pingpong_obstacle(n, rings, defer) : NULL};
  func_walk(f, look_at, &o);
  for (u32 i = 0; i < n && !o.why; i++) {
    const Ring *r = &rings[i];
    for (u32 k = 0; k < r->n && !o.why; k++) {
      if (!computed_apart(&x, r->row[k].load))
        o.why = x.why;
      else if (!defer && !warpgroup_alone_reads(r->row[k].load) && !ring_row_is_slim(r, k))
        o.why = "a tile is not for products alone";
    }
    for (u32 k = 0; k < i && !o.why; k++)
      if (op_inside(r->loop, rings[k].loop) || !same_tiles(r, &rings[k]))
        o.why = "its loops with stages copy different tiles";
  }
  return o.why;
}

/* ---- parting ---- */

/* Registers of a thread that multiplies and of one that copies, where eight warps do the one and four the other: all that a multiprocessor
 * has. With fewer than 40, ptxas spills in a team that copies. */
enum { MULTIPLYING = 232, COPYING = 40 };

/* Effects go, but (stores) for boxes that are stored in pieces, and what has none afterwards with dce. But a team that copies reads what
 * the launch in front wrote, too. */
static void
drop_effects(Block *b, bool stores)
{
  for (Op *op = b->last, *before; op; op = before) {
    before = op->prev;
    for (u32 r = 0; r < op->nregions; r++)
      if (!op_on_elements(op))
        drop_effects(op->regions[r], stores);
    if (stores && box_is_kept(op))
      continue;
    if (!op->nregions && !op_has(op, T_TERM) && !op_removable(op) && op->code != OP_WAIT_FOR_PREVIOUS)
      op_remove(op);
  }
}

/* What the kernel was, of which the op has a copy besides. map: from the values of the one to those of the other. */
static void
copy_region(Ctx *c, Op *teams, u32 region, Value **map)
{
  Builder b = builder_at_end(teams->block->func, teams->regions[region]);
  b.span = teams->span;
  for (const Op *op = teams->regions[0]->first; op; op = op->next)
    op_clone(&b, op, map);
}

/* The regions of the warp_specialize: what the kernel was; a copy of it that has no effects; where tiles have company a copy that has
 * no effects but what brings that, and stores tiles (company.c); where two teams multiply an empty one. */
enum { COPIES = 1, COMPANY = 2 };

/* map: from the values of the first region to those of the one that copies. */
static Op *
split(Ctx *c, Func *f, bool company, Value ***map)
{
  i64 warps[COMPANY + 2] = {f->warps, COPYING_WARPS}, own[COMPANY + 2] = {MULTIPLYING, COPYING};
  u32 n = COMPANY;
  if (company) {                                /* the two that copy share a warpgroup */
    warps[n] = warps[COPIES] = COPYING_WARPS / 2;
    own[n++] = COPYING;
  }
  if (pingpong_wanted(f)) {
    warps[n] = f->warps;
    own[n++] = MULTIPLYING;
  }
  Op *end = f->body->last;
  Builder b = builder_before(end);
  b.span = end->span;
  Op *teams = ir_warp_specialize(&b, n, warps);
  op_set_ints(teams, AT_REGISTERS, own, n);
  while (f->body->first != teams)
    op_move_to_end(f->body->first, teams->regions[0]);
  *map = NEW_ARRAY(c->scratch, Value *, f->nvalues);
  copy_region(c, teams, COPIES, *map);
  if (company)
    copy_region(c, teams, COMPANY, NEW_ARRAY(c->scratch, Value *, f->nvalues));
  for (u32 r = 0; r <= (company ? COMPANY : COPIES); r++) {
    Builder last = builder_at_end(f, teams->regions[r]);
    last.span = end->span;
    ir_yield(&last, 0, NULL);
  }
  drop_effects(teams->regions[COPIES], false);
  if (company) {
    drop_effects(teams->regions[COMPANY], true);
    company_keep_places(c, teams->regions[COMPANY]);
  }
  for (u32 r = 1; r < n; r++)
    f->warps += (u32)warps[r];
  return teams;
}

/* ---- rings ---- */

typedef struct Roles {
  Ctx *c;
  Func *f;
  u32 nloops, ngroups;
  bool defer;
  Ring **ring;               /* group g of loop i: i * ngroups + g */
  Value **map;
} Roles;

static Ring *
ring_at(const Roles *x, u32 loop, u32 group)
{
  return x->ring[loop * x->ngroups + group];
}

/* Of one group, for all loops. */
static Ring **
rings_of_group(const Roles *x, u32 group)
{
  Ring **rings = NEW_ARRAY(x->c->scratch, Ring *, x->nloops);
  for (u32 i = 0; i < x->nloops; i++)
    rings[i] = ring_at(x, i, group);
  return rings;
}

static Ring *
take_group(const Roles *x, const Ring *all, u32 first)
{
  Ring *r = NEW_ARRAY(x->c->scratch, Ring, 1);
  *r = *all;
  r->n = 0;
  for (u32 k = 0; k < all->n; k++)
    if (x->defer || group_of(all, k) == first)
      r->row[r->n++] = all->row[k];
  r->boxes = r->n;
  return r;
}

static void
group_rows(Roles *x, const Ring *rings)
{
  u32 first[RING_ROWS];
  for (u32 k = 0; k < rings[0].n; k++)
    if (x->defer ? k == 0 : group_of(&rings[0], k) == k)
      first[x->ngroups++] = k;
  x->ring = NEW_ARRAY(x->c->scratch, Ring *, x->nloops * x->ngroups);
  for (u32 i = 0; i < x->nloops; i++)
    for (u32 g = 0; g < x->ngroups; g++)
      x->ring[i * x->ngroups + g] = take_group(x, &rings[i], first[g]);
}

static void
make_memory(Roles *x, Op *teams)
{
  for (u32 g = 0; g < x->ngroups; g++) {
    Ring *first = ring_at(x, 0, g);
    ring_make_mbarriers(first, true);
    Builder b = builder_before(teams);
    ring_make_buffers(first, &b);
    for (u32 i = 1; i < x->nloops; i++)
      ring_share(ring_at(x, i, g), first);
  }
}

/* ---- the team that multiplies ---- */

static void
arrive(Builder *b, Value *row, Value *slot)
{
  Value *m = ir_shared_index(b, row, slot);
  op_create(b, OP_MBARRIER_ARRIVE, 1, &m, 0, NULL, 0);
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

/* The loop waits for its slots and reads them. before: the slot of the iteration before, where products are done one later. */
static Value *
read_slots(Ring *r, bool defer)
{
  Op *loop = r->loop, *end = block_terminator(loop->regions[0]);
  r->get = loop_carry(loop, r->from[0], "get");
  r->phase = loop_carry(loop, r->from[1], "phase");
  Value *before = defer ? loop_carry(loop, r->from[0], "before") : NULL;
  Builder b = builder_before(defer ? loop->regions[0]->first : r->row[0].load);
  b.span = loop->span;
  ring_await(r, &b);
  b = builder_before(end);
  b.span = loop->span;
  Value *phase = r->phase, *get = ring_next(r, &b, r->get, &phase);
  op_add_operand(end, get);
  op_add_operand(end, phase);
  if (before)
    op_add_operand(end, r->get);
  ring_read(r);
  return before;
}

/* Slots of the iteration before, whose products are done; those of the last one behind the loop. */
static void
hand_back_later(const Ring *r, Value *before)
{
  Op *loop = r->loop, *behind = loop;
  Builder b = builder_before(block_terminator(loop->regions[0]));
  b.span = loop->span;
  arrive_if(&b, ir_cmp(&b, "ne", loop_counter(loop), OPERAND(loop, FOR, lo)), r->empty, before);
  while (behind->next->code == OP_WGMMA_WAIT)
    behind = behind->next;
  b = builder_after(behind);
  b.span = loop->span;
  Value *any = ir_cmp(&b, "lt", OPERAND(loop, FOR, lo), OPERAND(loop, FOR, hi));
  arrive_if(&b, any, r->empty, loop_result_of(loop, before));
}

/* The op behind which op, of the loop's body, no longer reads its buffers. */
static Op *
end_of_reads(Op *op)
{
  while (op->code == OP_WGMMA)
    op = op_result(op)->uses->user;
  return op;
}

static bool
reads_ring(const Ring *r, const Op *op)
{
  for (u32 i = 0; i < op->noperands; i++) {
    const Op *m = buffer_alloc(op_operand(op, i));
    for (u32 k = 0; k < r->n; k++)
      if (m == r->row[k].buffers->def)
        return !op_is_view(op);
  }
  return false;
}

/* This iteration's slot, behind the last read of it. */
static void
hand_back(const Ring *r)
{
  Block *body = r->loop->regions[0];
  Op *last = NULL;
  u32 n = 0;
  for (Op *op = body->first; op; op = op->next)
    op->mark = n++;
  for (Op *op = body->first; op; op = op->next) {
    Op *to = reads_ring(r, op) ? end_of_reads(op) : NULL;
    last = to && (!last || to->mark > last->mark) ? to : last;
  }
  Builder b = builder_after(last);
  b.span = r->loop->span;
  arrive(&b, r->empty, r->get);
}

static void
consume(Roles *x)
{
  Value **before = NEW_ARRAY(x->c->scratch, Value *, x->nloops * x->ngroups);
  for (u32 g = 0; g < x->ngroups; g++) {
    Carried around;
    Ring **rings = rings_of_group(x, g);
    ring_begin(&around, x->nloops, rings);
    for (u32 i = 0; i < x->nloops; i++)
      before[i * x->ngroups + g] = read_slots(rings[i], x->defer);
    ring_end(&around, x->nloops, rings);
  }
  for (u32 i = 0; i < x->nloops; i++) {
    Ring **rings = x->ring + i * x->ngroups;
    Op *loop = rings[0]->loop;
    warpgroup_products(x->c, loop, x->defer, x->ngroups, rings);
    for (u32 g = 0; g < x->ngroups; g++)
      if (x->defer)
        hand_back_later(rings[g], before[i * x->ngroups + g]);
      else
        hand_back(rings[g]);
    block_drop_unused(loop->regions[0]);
  }
  warpgroup_keep_once(x->c, x->f);
  Op *loops[CARRIED_OPS];
  for (u32 i = 0; i < x->nloops; i++)
    loops[i] = ring_at(x, i, 0)->loop;
  if (!x->defer)
    overlap_products(x->c, x->f, x->nloops, loops, x->ngroups, x->ring);
}

/* ---- the team that copies ---- */

/* Fills the ring in its copy of the loop; put and phase: carried by that. */
static void
fill_slots(const Roles *x, const Ring *r, Op *loop, Value *put, Value *phase)
{
  Op *end = block_terminator(loop->regions[0]);
  Builder b = builder_before(end);
  b.span = loop->span;
  op_create(&b, OP_MBARRIER_WAIT, 2, (Value *[]){ir_shared_index(&b, r->empty, put), phase}, 0, NULL, 0);
  ring_fill(r, &b, put, x->map);
  for (u32 k = 0; k < r->n; k++) {
    Value *tile = x->map[op_result(r->row[k].load)->id];
    Op *load = tile->def;
    Builder at = builder_before(load);
    value_replace_uses(tile, ir_const_bits(&at, tile->type, 0));
    op_remove(load);
  }
  Value *next_phase = phase, *next = ring_next(r, &b, put, &next_phase);
  op_add_operand(end, next);
  op_add_operand(end, next_phase);
  op_remove_attr(loop, AT_STAGES);
}

static void
produce(const Roles *x)
{
  Op *loops[CARRIED_OPS];
  for (u32 i = 0; i < x->nloops; i++)
    loops[i] = x->map[op_result(ring_at(x, i, 0)->row[0].load)->id]->def->block->parent;
  for (u32 g = 0; g < x->ngroups; g++) {
    Carried around;
    Value *out[2 * CARRIED_OPS], *put[CARRIED_OPS], *phase[CARRIED_OPS];
    carried_begin(&around, x->nloops, loops, 2, (i64[]){0, 1}, (const char *[]){"put", "phase"});
    for (u32 i = 0; i < x->nloops; i++) {
      put[i] = loop_carry(loops[i], around.in[i][0], "put");
      phase[i] = loop_carry(loops[i], around.in[i][1], "phase");
      fill_slots(x, ring_at(x, i, g), loops[i], put[i], phase[i]);
      out[2 * i] = loop_result_of(loops[i], put[i]);
      out[2 * i + 1] = loop_result_of(loops[i], phase[i]);
    }
    carried_end(&around, out);
  }
}

/* Boxes from outside of the loops, in a loop around, that the team that copies can find by itself. */
static OpVec
boxes_around(Ctx *c, Func *f)
{
  OpVec all = func_ops(c, f, OP_TENSOR_LOAD), found = {0};
  for (u32 i = 0; i < all.len; i++) {
    Closure x = {.c = c, .f = f, .seen = NEW_ARRAY(c->scratch, bool, f->nvalues)};
    const Op *around = all.data[i]->block->parent;
    if (around && around->code == OP_FOR && !loop_is_staged(around) && computed_apart(&x, all.data[i]))
      vec_push(c->scratch, &found, all.data[i]);
  }
  return found;
}

static void
part_company(Ctx *c, Op *teams, u32 slots)
{
  Block *multiply[] = {teams->regions[0], teams->nregions > COMPANY + 1 ? teams->regions[COMPANY + 1] : NULL};
  company_hand_over(c, teams, teams->regions[COMPANY], multiply[1] ? 2 : 1, multiply, slots);
}

void
roles_part(Ctx *c, Func *f, u32 n, const Ring *rings, bool defer, const Company *company)
{
  Roles x = {.c = c, .f = f, .nloops = n, .defer = defer};
  OpVec around = boxes_around(c, f);
  u32 multiply = roles_multiply(f);
  group_rows(&x, rings);
  Op *teams = split(c, f, company->slots, &x.map);
  make_memory(&x, teams);
  produce(&x);
  consume(&x);
  if (multiply > 1)
    pingpong_part(c, teams, teams->regions[teams->nregions - 1], n, rings_of_group(&x, 0));
  else if (x.ngroups < 3)    /* beside three rings ptxas spills in the team that copies */
    roles_keep_boxes(c, f, &around, x.map);
  if (company->slots)
    part_company(c, teams, company->slots);
  func_dce(c, f);
}
