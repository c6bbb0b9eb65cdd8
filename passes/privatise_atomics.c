/* privatise_atomics.c - counts by an index that is known to be small are made in shared memory and added to global memory once.
 * Needs phase tile; keeps it.
 *
 * A histogram, atomic_add(counts + bin, 1), sends every element to one of few addresses: of N elements and B bins all N go to the
 * memory that all programs share, and those of one bin queue there. Where the bin's bounds are known, by what it is computed from
 * (`x & 255`, an 8-bit value) or by the mask (`x >= 0 && x < BINS`):
 *
 *     atomic_rmw add (splat p) + i, value, mask
 *  => s = shared_alloc B;  shared_store s, 0;  shared_add s, i - lo, value, mask
 *     t = shared_load s;   atomic_rmw add (splat p) + lo + arange(B), t, t != 0
 *
 * which is N additions in the program's own memory, one an issue slot where they do not collide, and at most min(N, B) in everybody's.
 * In a loop whose iterations do nothing else that could look at the sums, zeroing stands in front of it and adding behind it: N counts all
 * iterations then.
 *
 * Groups of equal bins within a warp (match.any.sync) would need no bounds, but 32 elements spread over B bins meet about
 * 32 - B (1 - (1 - 1/B)^32) times: of 256 bins twice, which does not pay for the match, the count and the branch.
 *
 * Only relaxed sums of 32 bits whose old values nobody looks at. Shared memory has an instruction for integers; for f32 a loop, by which an
 * H200 did 2.24 TB/s of indices and weights in 4096 bins all the same, and 0.16 in global memory.
 * Kernels with dots keep their shared memory for tiles. */
#include "alias.h"
#include "internal.h"
#include "remarks.h"

enum {
  BINS_MAX = 4096,          /* 16 KiB of shared memory */
  SHARED_MAX = 48 << 10,    /* of all buffers of the program's own and these */
  PAYS = 4,                 /* elements for each bin, at least */
  ITERATIONS = 32,          /* of a loop, where they are not known */
  BUDGET = 200
};

/* What an atomic adds to: counts + index, index from lo on, bins of them. */
typedef struct Bins {
  Op *op;
  Value *counts, *index;    /* a scalar; a tile */
  i64 lo;
  u64 bins;
} Bins;

/* ---- bounds ---- */

/* What `x pred k` says of x. */
static Interval
bound_by(const char *pred, i64 k)
{
  if (!strcmp(pred, "lt")) return (Interval){-UNBOUNDED, k - 1};
  if (!strcmp(pred, "le")) return (Interval){-UNBOUNDED, k};
  if (!strcmp(pred, "gt")) return (Interval){k + 1, UNBOUNDED};
  if (!strcmp(pred, "ge")) return (Interval){k, UNBOUNDED};
  if (!strcmp(pred, "eq")) return (Interval){k, k};
  return (Interval){-UNBOUNDED, UNBOUNDED};
}

/* v without casts that keep every number. */
static const Value *
same_number(const Value *v)
{
  while (op_is(v, OP_CAST) && type_is_int(v->type) && type_is_int(OPERAND(v->def, CAST, x)->type)) {
    const Type *from = OPERAND(v->def, CAST, x)->type;
    bool wider = dtype_bits(v->type->dt) > dtype_bits(from->dt);
    if (!wider || (dtype_is_signed(from->dt) && !dtype_is_signed(v->type->dt)))
      break;
    v = OPERAND(v->def, CAST, x);
  }
  return v;
}

/* What a mask that is on says of index. */
static Interval
bound_by_mask(const Value *mask, const Value *index, u32 *budget)
{
  Interval all = {-UNBOUNDED, UNBOUNDED};
  i64 k;
  if (!mask || !mask->def || !*budget)
    return all;
  --*budget;
  const Op *op = mask->def;
  if (op->code == OP_AND) {
    Interval a = bound_by_mask(OPERAND(op, AND, a), index, budget), b = bound_by_mask(OPERAND(op, AND, b), index, budget);
    return (Interval){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  }
  if (op->code != OP_CMP || !type_is_int(OPERAND(op, CMP, a)->type) || same_number(OPERAND(op, CMP, a)) != same_number(index))
    return all;
  return value_const_int(OPERAND(op, CMP, b), &k) && k > -UNBOUNDED && k < UNBOUNDED ? bound_by(op_str(op, AT_PRED, ""), k) : all;
}

/* ---- what can be done ---- */

/* Does op add up in a way that shared memory has, to bounded places? */
static bool
find_bins(Op *op, Bins *out)
{
  Value *p = OPERAND(op, ATOMIC_RMW, p), *mask = OPERAND(op, ATOMIC_RMW, mask);
  bool small = p->type->dt == DT_I32 || p->type->dt == DT_U32 || p->type->dt == DT_F32;
  if (!value_unused(op_result(op)) || strcmp(op_str(op, AT_RMW, ""), "add") != 0 || !small || !type_is_tile(p->type) ||
      !op_is(p, OP_ADDPTR) || !op_is(OPERAND(p->def, ADDPTR, p), OP_SPLAT))
    return false;
  *out = (Bins){.op = op, .counts = OPERAND(OPERAND(p->def, ADDPTR, p)->def, SPLAT, x), .index = OPERAND(p->def, ADDPTR, off)};
  u32 budget = BUDGET;
  Interval is = interval_of(out->index, &budget), on = bound_by_mask(mask, out->index, &budget);
  i64 lo = is.lo > on.lo ? is.lo : on.lo, hi = is.hi < on.hi ? is.hi : on.hi;
  if (lo > hi || lo < INT32_MIN || hi > INT32_MAX || hi - lo >= BINS_MAX)
    return false;
  out->lo = lo;
  out->bins = (u64)(hi - lo) + 1;
  return true;
}

typedef struct Passing { const Bins *bins; bool stops; } Passing;

/* Does op, in the loop, have to see what has been added, or make others see it? */
static void
find_stop(Op *op, void *user)
{
  Passing *s = user;
  GlobalAccess a, b;
  if (op == s->bins->op || s->stops)
    return;
  bool atomic = op->code == OP_ATOMIC_RMW || op->code == OP_ATOMIC_CAS;
  s->stops = op_releases(op) || op_acquires(op) || op->code == OP_PTX_EFFECT || op->code == OP_BARRIER || op_orders_teams(op) ||
             op_int(op, AT_VOLATILE, 0) || (atomic && !value_unused(op_result(op)));
  if (s->stops || !global_access(op, &b) || ops_commute(op, s->bins->op) || !global_access(s->bins->op, &a))
    return;
  s->stops = !a.root || !b.root || a.root == b.root || global_overlap(&a, &b);
}

/* The outermost loop around, of whose iterations the sums may be added all at once; NULL: none. */
static Op *
summing_loop(const Bins *b)
{
  Op *found = NULL;
  for (Op *at = b->op->block->parent; at; at = at->block->parent) {
    Passing s = {.bins = b};
    if (!op_is_loop(at) && at->code != OP_IF)
      return found;
    for (u32 r = 0; op_is_loop(at) && r < at->nregions; r++)
      block_walk(at->regions[r], find_stop, &s);
    if (s.stops || value_within(b->counts, at))
      return found;
    if (op_is_loop(at))
      found = at;
  }
  return found;
}

static void
add_shared(Op *op, void *user)
{
  if (op->code == OP_SHARED_ALLOC)
    *(u64 *)user += type_shared_bytes(op_result(op)->type);
  if (op_is_dot(op))
    *(u64 *)user += SHARED_MAX;
}

/* ---- doing it ---- */

static void
privatise(Ctx *c, const Bins *b, Op *loop)
{
  Op *op = b->op, *around = loop ? loop : op;
  u32 shape[1] = {(u32)b->bins};
  const Type *elem = type_elem(c, OPERAND(op, ATOMIC_RMW, value)->type), *row = type_tile(c, elem, 1, shape, NULL);
  Builder before = builder_before(around), here = builder_before(op), after = builder_after(around);
  before.span = here.span = after.span = op->span;
  Value *s = ir_shared_alloc(&before, type_shared(c, elem->dt, 0, 1, shape, NULL, NULL, 0, 0));
  ir_shared_store(&before, s, ir_const_bits(&before, row, 0));

  const Type *it = type_with_elem(c, b->index->type, type_scalar(c, DT_I32));
  Value *i = ir_cast(&here, b->index, DT_I32);
  if (b->lo)
    i = ir_binary(&here, OP_SUB, i, ir_const_int(&here, it, b->lo));
  op_create(&here, OP_SHARED_ADD, 4, (Value *[]){s, i, OPERAND(op, ATOMIC_RMW, value), OPERAND(op, ATOMIC_RMW, mask)}, 0, NULL, 0);

  Value *sums = ir_shared_load(&after, s, row);
  op_create(&after, OP_SHARED_FREE, 1, &s, 0, NULL, 0);
  Value *p = ir_splat(&after, b->counts, type_with_elem(c, row, b->counts->type));
  p = ir_addptr(&after, p, ir_arange(&after, b->lo, b->lo + (i64)b->bins));
  Value *some = ir_cmp(&after, "ne", sums, ir_const_bits(&after, row, 0));
  op_like(&after, op, 3, (Value *[]){p, sums, some}, &row);
  op_remove(op);
}

/* Iterations of a loop, and those it is in up to `outer`. */
static u64
iterations(const Op *op, const Op *outer)
{
  u64 n = 1;
  for (const Op *at = op->block->parent; outer && at && n < BINS_MAX * PAYS; at = at->block->parent) {
    i64 lo, hi, step;
    bool known = at->code == OP_FOR && value_const_int(OPERAND(at, FOR, lo), &lo) && value_const_int(OPERAND(at, FOR, hi), &hi) &&
                 value_const_int(OPERAND(at, FOR, step), &step) && step > 0 && hi > lo;
    if (op_is_loop(at))
      n *= known ? (u64)((hi - lo + step - 1) / step) : ITERATIONS;
    if (at == outer)
      break;
  }
  return n;
}

/* Why sums that n elements make stay in global memory, with `shared` bytes of shared memory taken; NULL: they need not. */
static const char *
obstacle(const Bins *b, u64 n, u64 shared)
{
  if (strcmp(op_str(b->op, AT_SEM, "relaxed"), "relaxed") != 0)
    return "it orders other accesses: say sem=\"relaxed\"";
  if (n < b->bins * PAYS)
    return arena_printf(b->op->block->func->module->ctx->scratch, "there are only %llu elements", (unsigned long long)n);
  return shared + b->bins * 4 > SHARED_MAX ? "shared memory is wanted for other things" : NULL;
}

static void
visit(Ctx *c, Op *op, u64 *shared)
{
  Bins b;
  Span at = op->span;
  if (!find_bins(op, &b))
    return;
  Op *loop = summing_loop(&b);
  u64 n = type_numel(b.index->type) * iterations(op, loop);
  if (n <= b.bins)        /* addresses that may well be all different */
    return;
  const char *why = obstacle(&b, n, *shared);
  if (why) {
    remark_not_private(c, at, b.bins, why);
    return;
  }
  privatise(c, &b, loop);
  *shared += b.bins * 4;
  remark_private(c, at, b.bins);
}

static void
privatise_func(Ctx *c, Func *f)
{
  OpVec atomics = func_ops(c, f, OP_ATOMIC_RMW);
  u64 shared = 0;
  func_walk(f, add_shared, &shared);
  for (u32 i = 0; i < atomics.len; i++)
    visit(c, atomics.data[i], &shared);
}

void
pass_privatise_atomics(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    privatise_func(c, m->funcs.data[i]);
}
