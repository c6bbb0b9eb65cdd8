/* place_cost.c - what a layout costs, in issue slots per warp, in the measure of layout_convert_plan: a
 * wavefront of shared memory is 4. A 32-byte sector of global memory is about as dear, an access 4 more, 4 if its address is computed, 1
 * for each line of which it finds a part in the cache; a shuffle with its op is 5. */
#include "place.h"
#include "scratch.h"

enum {
  WIDEST = 16, SECTOR_BYTES = 32, SECTOR_COST = 4, LINE_SECTORS = 4, LINE_COST = 1, ACCESS_COST = 4, ADDRESS_COST = 4, ATOMIC_COST = 12,
  SHUFFLE_COST = 5, SCRATCH_COST = 4, BARRIER_COST = 20, IMPOSSIBLE = 1 << 20
};

/* ---- conversions, remembered by pair ---- */

typedef struct Plan { const Layout *from, *to; u32 bits; i64 cost; struct Plan *next; } Plan;
enum { PLAN_SLOTS = 256 };
struct PlanMemo { Plan *slot[PLAN_SLOTS]; };

i64
place_convert_cost(Place *p, const Layout *from, const Layout *to, const Type *t)
{
  if (from == to)
    return 0;
  if (!p->plans)
    p->plans = NEW(p->c->scratch, struct PlanMemo);
  u32 bits = type_elem_bits(t);
  Plan **slot = &p->plans->slot[(from->id * 31 + to->id * 7 + bits) % PLAN_SLOTS];
  for (Plan *m = *slot; m; m = m->next)
    if (m->from == from && m->to == to && m->bits == bits)
      return m->cost;
  ConvertPlan plan;
  layout_convert_plan(p->c, from, to, bits, target_has(p->c->target, F_LDMATRIX), target_has(p->c->target, F_STMATRIX),
                      &plan);
  Plan *m = NEW(p->c->scratch, Plan);
  *m = (Plan){from, to, bits, plan.cost, *slot};
  *slot = m;
  return m->cost;
}

i64
place_loop_weight(const Block *b)
{
  i64 w = 1;
  for (u32 d = block_loop_depth(b); d > 0 && w < 10000; d--)
    w *= 10;
  return w;
}

/* ---- memory ---- */

static u32
low_bits(const Layout *l, u32 d, u32 n)
{
  return ((1u << min_u32(n, l->out_bits[d])) - 1) << layout_dim_shift(l, (int)d);
}

u32
place_mem_vec(const MemOp *m, const Layout *l)
{
  u32 regs = layout_contiguous_regs(l, (int)m->dim);
  return m->vec < regs ? m->vec : regs;
}

/* Flat bits that do not change the sector: within 32 bytes, of elements in a row or apart, of two rows that are its halves, or where
 * addresses are equal. Runs of equal addresses that end within the tile are of quotients, which follow each other. (Stores to equal
 * addresses are mistakes: they stay where the simulator sees them.) */
static u32
same_sector_bits(const MemOp *m, const Layout *l)
{
  u32 fit = SECTOR_BYTES / m->elem_bytes, close = m->apart && m->apart < fit ? 1u << log2_u32(fit / m->apart) : 1;
  u32 run = max_u32(m->ptr->contiguity[m->dim], close);
  u32 bits = low_bits(l, m->dim, log2_u32(run < fit ? run : fit));
  for (u32 d = 0; d < l->rank; d++) {
    u32 equal = log2_u32(m->ptr->constancy[d]);
    bool follow = m->op->code == OP_LOAD && equal && equal < l->out_bits[d];
    bits |= low_bits(l, d, follow ? equal + log2_u32(fit) : equal);
    if (m->vec * m->elem_bytes == WIDEST && m->rows[d] == m->vec)
      bits |= low_bits(l, d, 1);
  }
  return bits;
}

/* Registers of which one is loaded and the others are the same: code generation's dist_equal_bits. */
static u32
equal_regs(const MemOp *m, const Layout *l)
{
  u32 flat = 0, n = 1;
  for (u32 d = 0; d < l->rank; d++)
    flat |= low_bits(l, d, log2_u32(min_u32(m->ptr->constancy[d], m->mask ? m->mask->constancy[d] : UINT32_MAX)));
  for (u32 i = 0; i < l->in_bits[IN_REG] && m->op->code == OP_LOAD; i++)
    n <<= l->col[IN_REG][i] && !(l->col[IN_REG][i] & ~flat);
  return n;
}

/* Rank over GF(2) of n columns without the bits in `ignore`. */
static u32
rank_without(const u32 *cols, u32 n, u32 ignore)
{
  u32 basis[32] = {0}, found = 0;
  for (u32 i = 0; i < n; i++) {
    u32 x = cols[i] & ~ignore;
    for (int b = 31; b >= 0 && x; b--) {
      if (!(x >> b & 1))
        continue;
      if (basis[b])
        x ^= basis[b];
      else {
        basis[b] = x;
        found++;
        x = 0;
      }
    }
  }
  return found;
}

/* Sectors that a warp touches when each thread takes n of its neighbours. */
static i64
sectors_of(const MemOp *m, const Layout *l, u32 n)
{
  u32 cols[LAYOUT_MAX_BITS * 2], k = 0;
  for (u32 i = 0; i < l->in_bits[IN_LANE]; i++)
    cols[k++] = l->col[IN_LANE][i];
  for (u32 i = 0; i < log2_u32(n); i++)
    cols[k++] = l->col[IN_REG][i];
  return (i64)1 << rank_without(cols, k, same_sector_bits(m, l));
}

/* Loads in a row of what a thread has side by side because others move that at once, where addresses are aligned to less: the first fetches
 * the sectors, the others find them in the cache. */
static u32
narrow_run(const MemOp *m, const Layout *l, u32 vec)
{
  u32 beside = min_u32(min_u32(layout_contiguous_regs(l, (int)m->dim), WIDEST / m->elem_bytes), m->beside);
  bool narrow = m->op->code == OP_LOAD && vec == m->vec && vec < beside && beside <= m->ptr->contiguity[m->dim];
  return narrow ? beside / vec : 1;
}

/* A volatile load of which threads hold copies: only one of them looks, the others read what it left in scratch memory. */
static bool
is_handed_on(const MemOp *m, const Layout *l)
{
  return m->op->code == OP_LOAD && op_int(m->op, AT_VOLATILE, 0) && (layout_free_bits(l, IN_LANE) || layout_free_bits(l, IN_WARP));
}

static i64
mem_cost(const MemOp *m, const Layout *l)
{
  u32 vec = place_mem_vec(m, l), run = narrow_run(m, l, vec), apiece = vec > 1 ? vec : equal_regs(m, l);
  i64 accesses = layout_distinct_regs(l) / apiece, sectors = sectors_of(m, l, vec * run);
  if (m->op->code == OP_ASYNC_COPY && vec < m->vec && vec * m->elem_bytes < COPY_LEAST)
    accesses += IMPOSSIBLE;          /* there is no such copy */
  bool atomic = m->op->code == OP_ATOMIC_RMW || m->op->code == OP_ATOMIC_CAS;
  i64 each = ACCESS_COST + (m->computed ? ADDRESS_COST : 0) + (atomic ? ATOMIC_COST : 0);
  i64 lines = run > 1 ? LINE_COST * ((sectors + LINE_SECTORS - 1) / LINE_SECTORS) : 0;
  i64 cost = accesses * (each + lines) + accesses / run * SECTOR_COST * sectors;
  if (is_handed_on(m, l))
    cost = (cost >> __builtin_popcount(layout_free_bits(l, IN_WARP))) + BARRIER_COST + 2 * SCRATCH_COST * (i64)layout_distinct_regs(l);
  return cost * place_loop_weight(m->op->block);
}

/* ---- reductions ---- */

static u32
bits_along(const Layout *l, LayoutIn in, u32 axis)
{
  u32 n = 0, mask = layout_dim_mask(l, (int)axis), copies = layout_free_bits(l, in);
  for (u32 i = 0; i < l->in_bits[in]; i++)
    n += !(copies >> i & 1) && (l->col[in][i] & mask);
  return n;
}

static i64
reduce_cost(const Op *op, const Layout *l)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  i64 all = layout_distinct_regs(l), left = all >> bits_along(l, IN_REG, axis);
  i64 cost = all + left * bits_along(l, IN_LANE, axis) * SHUFFLE_COST;
  u32 warps = bits_along(l, IN_WARP, axis);
  if (warps)
    cost += BARRIER_COST + left * SCRATCH_COST * (1 + ((i64)1 << warps) / 4) + left * ((i64)1 << warps);
  return cost * op->noperands * place_loop_weight(op->block);
}

static bool
touches(const Layout *l, LayoutIn in, u32 flat)
{
  for (u32 i = 0; i < l->in_bits[in]; i++)
    if (l->col[in][i] & flat)
      return true;
  return false;
}

/* Bit by bit along the axis, lowest first, as codegen/lower_scan.c goes: the first registers are folded one after the other, and what they
 * span is met once more at the end; a bit of a lane or warp costs an exchange for each run there is by then. */
static i64
scan_cost(const Op *op, const Layout *l)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0), bits = l->out_bits[axis], at = layout_dim_shift(l, (int)axis), k = 0;
  i64 all = layout_distinct_regs(l), runs = all, cost = all;
  for (; k < bits && !touches(l, IN_LANE, 1u << (at + k)) && !touches(l, IN_WARP, 1u << (at + k)); k++)
    runs >>= 1;
  i64 chunks = runs;
  if (k < bits)
    cost += all;
  for (bool in_warps = false; k < bits; k++) {
    bool warp = touches(l, IN_WARP, 1u << (at + k)), lane = touches(l, IN_LANE, 1u << (at + k));
    cost += chunks;
    if (warp)
      cost += (in_warps ? 0 : BARRIER_COST + runs * SCRATCH_COST) + runs * SCRATCH_COST;
    else if (lane)
      cost += runs * (SHUFFLE_COST + 1);
    else
      runs >>= 1;
    in_warps = warp;
  }
  return cost * op->noperands * place_loop_weight(op->block);
}

/* Nothing within a thread, a shuffle between lanes, scratch memory between warps. */
static i64
exchange_cost(const Op *op, const Layout *l)
{
  u32 flat = scratch_exchange_bits(op, l);
  i64 each = touches(l, IN_WARP, flat) ? 2 * SCRATCH_COST : touches(l, IN_LANE, flat) ? SHUFFLE_COST : 0;
  return (layout_distinct_regs(l) * each + (touches(l, IN_WARP, flat) ? BARRIER_COST : 0)) * place_loop_weight(op->block);
}

static i64
cost_along(const Op *op, const Layout *l)
{
  return op_has(op, T_EXCHANGE) ? exchange_cost(op, l) : op->code == OP_SCAN ? scan_cost(op, l) : reduce_cost(op, l);
}

i64
place_own_cost(Place *p, const Var *v, const Layout *l)
{
  i64 cost = (i64)v->work * layout_regs(l);
  for (u32 i = 0; i < v->mems.len; i++)
    cost += mem_cost(v->mems.data[i], l);
  for (u32 i = 0; i < v->along.len; i++)
    cost += cost_along(v->along.data[i], l);
  return cost;
}
