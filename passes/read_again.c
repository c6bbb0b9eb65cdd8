/* read_again.c - what lies in shared memory is read again where it is used, rather than held, if that lets more programs run at a time.
 * Needs phase sched, after plan_conversions, in front of alloc_shared; keeps it. Removes `slot`.
 *
 * A norm goes over its row two or three times: for the sums, for the differences from the mean, for the result. Between these its warps
 * meet, and what a thread holds across the meetings decides how many programs a multiprocessor runs. In a loop with stages the row lies in
 * a slot of shared memory, which nobody writes before the iteration ends (`slot`, by pipeline_loops). So, as far as it takes:
 *
 *   1. Each part of the iteration, from one meeting to the next, reads the slot for itself, and makes again, element by element, what it
 *      uses of parts in front: casts, masks, arithmetic with scalars, what the hardware approximates. Barriers between parts keep LLVM from
 *      merging what is read twice.
 *   2. What is widened in front of the loop (weights of 16 bits) is widened where it is used. licm took that out; the loop gets hoist = 0,
 *      so that LLVM does not do it again.
 *   3. What was made in front of the loop is stored to a buffer there, one tile after the other, and read where it is used.
 *
 * Such reads are `late`: registers are loaded where they are used (codegen/depth_first.c), so that a tile that is stored element by
 * element never is there as a whole. That must not take one past a meeting, which the next copy into the slot may rely on: so whatever is
 * made of a late tile is used in its part.
 *
 * How many programs run at a time follows from what threads hold (held.h) and from shared memory. The first of these ways is taken that
 * lets most run, up to PROGRAMS, and WARPS of all together: more would hide nothing more. Where the kernel limits registers itself, the
 * first that fits is; where none does, that which takes least. A kernel that changes says how many programs are to fit (min_blocks), or
 * ptxas would spend the registers on other things. A kernel that no way helps stays as it is, and so do all that have registers enough.
 *
 * With all that read again, the widest thing in a part is the tile as it was read, and beside it BESIDE_READ registers are enough: found
 * with softmax, layer norm and rms norm of 16 to 64 elements a thread under limits of 40 to 255 registers.
 */
#include "buffers.h"
#include "held.h"
#include "live_buffers.h"
#include "scratch.h"

enum { LEAST = 4 };                     /* registers of a tile that is worth it */
enum { DEEPEST = 16 };                  /* ops that are made again in a row */
enum { BESIDE_READ = 12, PROGRAMS = 4, WARPS = 32 };
enum { RESERVED = 1024 };               /* bytes of shared memory that a program takes besides */
enum { OPERANDS = 8 };

/* A tile from before the loop: what the loop uses, and what that is widened from (or itself); in a buffer, if there is one. */
typedef struct Kept { Op *loop; Value *used, *from, *buffer; u32 bytes; } Kept;
typedef struct Put { Op *op; u32 operand; Value *v; } Put;
/* again: 1 and more: it can be made again, by so many ops in a row. made: in part made_in. Arrays are by value. */
typedef struct Again {
  Ctx *c;
  Func *f;
  Held held;
  OpVec loops;
  u8 *again;
  Value **made;
  u32 *made_in, nvalues, parts;
  VEC(Kept) kept;
  u32 slots;                            /* registers of the tiles in slots, of the loop that has most */
  u32 widened, stored;                  /* which way: kept tiles from widened on are as they were; the first `stored` have buffers */
  bool reads;
} Again;

/* ---- what can be made again ---- */

static bool
only_in(const Value *v, const Block *b)
{
  for (const Use *u = v->uses; u; u = u->next)
    if (u->user->block != b)
      return false;
  return v->uses != NULL;
}

static bool
is_cheap(const Op *op)
{
  bool dear = op->code == OP_DIV || op->code == OP_REM || op->code == OP_SQRT || op->code == OP_TIERS;
  return op_is_arithmetic(op) && op_has(op, T_ELEM) && op->nresults == 1 && op->noperands <= OPERANDS && !dear;
}

/* How many ops in a row make op's result from a slot; 0: it cannot be made again. */
static u32
ops_in_a_row(const Again *a, const Op *loop, const Op *op)
{
  u32 most = 0;
  if (op->code == OP_SHARED_LOAD)
    return (u32)op_int(op, AT_SLOT, 0);
  if (!is_cheap(op))
    return 0;
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    u32 n = v ? a->again[v->id] : 0;
    if (v && !n && type_is_tile(v->type) && value_within(v, loop) && !a->held.index[v->id])
      return 0;
    most = max_u32(most, n);
  }
  return most && most < DEEPEST ? most + 1 : 0;
}

static void
find_again(Again *a, Op *loop)
{
  u32 slots = 0;
  for (Op *op = loop->regions[0]->first; op; op = op->next) {
    u32 n = op->nresults == 1 && only_in(op_result(op), op->block) ? ops_in_a_row(a, loop, op) : 0;
    if (n && type_registers(op_result(op)->type) >= LEAST)
      a->again[op_result(op)->id] = (u8)n;
    if (n == 1)
      slots += type_registers(op_result(op)->type);
  }
  a->slots = max_u32(a->slots, slots);
}

/* ---- what was made before the loop ---- */

static Kept *
kept_of(const Again *a, const Value *v)
{
  for (u32 i = 0; i < a->widened; i++)
    if (a->kept.data[i].used == v)
      return &a->kept.data[i];
  return NULL;
}

static const Type *
buffer_for(Ctx *c, const Type *t)
{
  u32 bits = type_elem_bits(t);
  const Layout *smem = NULL;
  for (u32 vec = bits >= 8 && !t->ptr && !type_padded(t) ? 128 / bits : 0; vec && !smem; vec /= 2)
    smem = buffer_swizzle(c, t, t->layout, t->layout, vec);
  return smem ? type_shared(c, t->dt, 0, t->rank, t->shape, NULL, smem, 0, 0) : NULL;
}

static void
find_kept(Again *a, Op *loop, Value *v)
{
  if (!v || !v->def || value_within(v, loop) || held_registers(&a->held, v) < LEAST || !only_in(v, loop->regions[0]))
    return;
  for (u32 i = 0; i < a->kept.len; i++)
    if (a->kept.data[i].used == v)
      return;
  Value *from = op_is(v, OP_CAST) ? op_operand(v->def, 0) : v;
  if (!from->def || type_registers(from->type) >= type_registers(v->type))
    from = v;
  const Type *t = buffer_for(a->c, from->type);
  vec_push(a->c->scratch, &a->kept, ((Kept){loop, v, from, NULL, t ? type_shared_stride(t) : 0}));
}

/* ---- how many programs run at a time ---- */

typedef struct Demand { u32 registers, bytes; } Demand;

static void
most_scratch(Op *op, void *user)
{
  Demand *d = user;
  d->bytes = max_u32(d->bytes, scratch_bytes(op->block->func->module->ctx, op));
}

static u32
shared_by_now(const Again *a)
{
  Demand d = {0};
  func_walk(a->f, most_scratch, &d);
  return live_buffers(a->c, a->f).bytes + d.bytes;
}

/* What the function takes with the tiles in slots read again, `widened` of the kept tiles so, and `stored` of them in buffers. The values
 * that are not held count as indices do. */
static Demand
demand(Again *a, u32 bytes)
{
  Op *at = NULL;
  Demand d = {a->slots + BESIDE_READ, bytes};
  for (u32 i = 0; i < a->nvalues; i++)
    a->held.index[i] |= a->again[i] > 0;
  for (u32 i = 0; i < a->widened; i++) {
    const Kept *k = &a->kept.data[i];
    a->held.index[k->used->id] = a->held.index[k->from->id] = true;
    if (i < a->stored)
      d.bytes += k->bytes;
    else
      d.registers += type_registers(k->from->type);
  }
  d.registers += held_most(&a->held, a->f->body, 0, &at);
  return d;
}

/* How many programs run at a time with that; 0: not one. */
static u32
programs(const Again *a, Demand d)
{
  const Target *t = a->c->target;
  Team team = block_team(a->f->body);
  u32 blocks = max_u32(1, a->f->min_blocks), most = team.registers ? 1 : min_u32(PROGRAMS, max_u32(1, WARPS / a->f->warps));
  for (u32 n = most; n; n--) {
    u32 each = min_u32(target_registers(t, n * a->f->warps * 32), t->regs_thread), all = n * blocks;
    u32 have = team.registers ? team_registers(a->c, team, team.warps) : each;
    if (d.registers <= have && d.bytes <= t->shared_max && (all == 1 || all * (d.bytes + RESERVED) <= t->shared_total))
      return n;
  }
  return 0;
}

typedef struct Way { bool reads; u32 widened, stored, programs, registers; } Way;

/* Takes the way that a stands for if it is better than the best so far. */
static void
consider(Again *a, Way *best, u32 bytes)
{
  Demand d = demand(a, bytes);
  u32 n = programs(a, d);
  bool less = !n && !best->programs && d.registers < best->registers && d.bytes <= a->c->target->shared_max;
  if (n > best->programs || less)
    *best = (Way){true, a->widened, a->stored, n, d.registers};
}

static Way
choose(Again *a)
{
  Op *at = NULL;
  u32 bytes = shared_by_now(a), all = a->kept.len;
  Way best = {.registers = held_most(&a->held, a->f->body, 0, &at) + BESIDE_TILES};
  best.programs = programs(a, (Demand){best.registers, bytes});
  consider(a, &best, bytes);
  a->widened = all;
  consider(a, &best, bytes);
  for (a->stored = 1; a->stored <= all && a->kept.data[a->stored - 1].bytes; a->stored++)
    consider(a, &best, bytes);
  return best;
}

/* ---- rewriting ---- */

static bool
is_meeting(Ctx *c, const Op *op)
{
  return op->code == OP_BARRIER || op->code == OP_CLUSTER_BARRIER || scratch_bytes(c, op) || op_is_loop(op);
}

/* Ops are marked by their part of the iteration: what ends one is part of it. */
static void
mark_parts(Again *a, Op *loop)
{
  a->parts++;
  for (Op *op = loop->regions[0]->first; op; op = op->next) {
    op->mark = a->parts;
    a->parts += is_meeting(a->c, op);
  }
}

static bool
is_stale(const Again *a, const Op *loop, const Value *v, u32 part)
{
  if (!v || v->id >= a->nvalues)
    return false;
  const Kept *k = kept_of(a, v);
  return k ? k->loop == loop : a->again[v->id] && v->def->mark != part;
}

/* The kept tile itself, read or as it is; then widened. */
static Value *
kept_again(const Kept *k, Builder *b)
{
  Value *v = k->buffer ? ir_shared_load(b, k->buffer, k->from->type) : k->from;
  if (k->from == k->used)
    return v;
  b->span = k->used->def->span;
  return op_result(op_like(b, k->used->def, 1, &v, &k->used->type));
}

/* v, made in this part in front of `at`. What v is made of comes first: there are few in a row. */
static Value *
make_again(Again *a, Op *loop, Value *v, Op *at, u32 part)
{
  Value *operands[OPERANDS];
  const Kept *k = kept_of(a, v);
  const Op *op = v->def;
  if (a->made_in[v->id] == part)
    return a->made[v->id];
  for (u32 i = 0; !k && i < op->noperands; i++) {
    Value *x = op_operand(op, i);
    operands[i] = is_stale(a, loop, x, part) ? make_again(a, loop, x, at, part) : x;
  }
  Builder b = builder_before(at);
  b.span = op->span;
  a->made[v->id] = k ? kept_again(k, &b) : op_result(op_like(&b, op, op->noperands, operands, &v->type));
  a->made_in[v->id] = part;
  return a->made[v->id];
}

/* Copies are made of ops as they were: what these use is replaced behind all. */
static void
make_all_again(Again *a, Op *loop)
{
  VEC(Put) puts = {0};
  for (Op *op = loop->regions[0]->first; op; op = op->next)
    for (u32 i = 0; op->mark && i < op->noperands; i++)
      if (is_stale(a, loop, op_operand(op, i), op->mark))
        vec_push(a->c->scratch, &puts, ((Put){op, i, make_again(a, loop, op_operand(op, i), op, op->mark)}));
  for (u32 i = 0; i < puts.len; i++)
    op_set_operand(puts.data[i].op, puts.data[i].operand, puts.data[i].v);
}

/* A buffer that is filled where the tile is made, and ends behind the loop. */
static void
store_kept(Again *a, Kept *k)
{
  Builder b = builder_after(k->from->def), behind = builder_after(op_ancestor_in(k->loop, k->from->def->block));
  b.span = behind.span = k->from->def->span;
  k->buffer = ir_shared_alloc(&b, buffer_for(a->c, k->from->type));
  k->buffer->name = k->from->name;
  ir_shared_store(&b, k->buffer, k->from);
  op_create(&behind, OP_SHARED_FREE, 1, &k->buffer, 0, NULL, 0);
}

/* ---- late reads ---- */

/* Is what op gives, and what is made of that element by element, used in op's part? ends: of the values behind. */
static bool
ends_in_part(const Op *op, const bool *ends)
{
  for (u32 i = 0; i < op->nresults; i++)
    for (const Use *u = op->results[i]->uses; u; u = u->next)
      if (u->user->block != op->block || u->user->mark != op->mark || (op_is_arithmetic(u->user) && !ends[op_result(u->user)->id]))
        return false;
  return true;
}

static bool
reads_kept(const Again *a, const Op *load)
{
  for (u32 i = 0; i < a->stored; i++)
    if (a->kept.data[i].buffer == op_buffer(load))
      return true;
  return false;
}

static void
mark_late(Again *a, Op *loop)
{
  bool *ends = NEW_ARRAY(a->c->scratch, bool, a->f->nvalues);
  mark_parts(a, loop);
  for (Op *op = loop->regions[0]->last; op; op = op->prev) {
    bool ok = ends_in_part(op, ends), reads = op->code == OP_SHARED_LOAD && (op_attr(op, AT_SLOT) || reads_kept(a, op));
    for (u32 i = 0; i < op->nresults; i++)
      ends[op->results[i]->id] = ok;
    if (ok && reads)
      op_set_int(op, AT_LATE, 1);
  }
}

/* ---- the pass ---- */

static bool
has_slots(const Op *loop)
{
  for (const Op *op = loop->regions[0]->first; op; op = op->next)
    if (op->code == OP_SHARED_LOAD && op_attr(op, AT_SLOT))
      return true;
  return false;
}

static Again
plan(Ctx *c, Func *f)
{
  Again a = {.c = c, .f = f, .nvalues = f->nvalues, .again = NEW_ARRAY(c->scratch, u8, f->nvalues),
             .made = NEW_ARRAY(c->scratch, Value *, f->nvalues), .made_in = NEW_ARRAY(c->scratch, u32, f->nvalues)};
  OpVec loops = func_ops(c, f, OP_FOR);
  held_open(&a.held, c, f);
  for (u32 i = 0; i < loops.len; i++)
    if (has_slots(loops.data[i]))
      vec_push(c->scratch, &a.loops, loops.data[i]);
  for (u32 i = 0; i < a.loops.len; i++) {
    find_again(&a, a.loops.data[i]);
    for (Op *op = a.loops.data[i]->regions[0]->first; op; op = op->next)
      for (u32 k = 0; k < op->noperands; k++)
        find_kept(&a, a.loops.data[i], op_operand(op, k));
  }
  return a;
}

static void
rewrite(Again *a, const Way *way)
{
  a->widened = way->widened;
  a->stored = way->stored;
  for (u32 i = 0; i < a->stored; i++)
    store_kept(a, &a->kept.data[i]);
  for (u32 i = 0; i < a->loops.len; i++) {
    Op *loop = a->loops.data[i];
    mark_parts(a, loop);
    make_all_again(a, loop);
    for (u32 k = a->stored; k < a->widened; k++)
      if (a->kept.data[k].loop == loop && a->kept.data[k].from != a->kept.data[k].used)
        op_set_int(loop, AT_HOIST, 0);
  }
  func_dce(a->c, a->f);
  for (u32 i = 0; i < a->loops.len; i++)
    mark_late(a, a->loops.data[i]);
  if (!a->f->min_blocks && !a->f->max_registers)
    a->f->min_blocks = max_u32(1, way->programs);
}

static void
forget_slot(Op *op, void *user)
{
  (void)user;
  op_remove_attr(op, AT_SLOT);
}

void
pass_read_again(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    Again a = plan(c, f);
    Way way = a.loops.len && !func_teams(f) ? choose(&a) : (Way){0};
    if (way.reads)
      rewrite(&a, &way);
    func_walk(f, forget_slot, NULL);
  }
}
