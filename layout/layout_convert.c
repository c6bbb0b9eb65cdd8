/* layout_convert.c - from one register layout to another: nothing, renaming, shuffles or shared memory.
 *
 * Registers. A thread already holds what it needs, in registers known when compiling, when lane, warp and
 * block columns agree and the target's register columns are in the span of the source's.
 *
 * Shuffles. A warp already holds what it needs when warp and block columns agree. In a round each lane gives
 * one register and reads one lane; which ones may depend on the lane. Let S and D be the columns of source
 * and target, and let e(l) be the element that lane l receives in round 0; in round k it receives e(l) +
 * D_reg(k), so all rounds follow from e:
 *
 *   e(l) = D_lane(l) + D_reg(a(l)) with a linear a: lane l receives its register a(l) + k in round k.
 *   A source lane gives one register per round, so two lanes that read the same lane must read the same
 *   element there: no sum of the e's may lie in the source's registers, except 0.
 *
 * Lanes whose D_lane already obeys this keep it (a = 0); for each of the others a D_reg that repairs it is
 * added. Where the source has lanes that are copies there may be no such D_reg, but then there is a second
 * lane with the same element: the copies get coordinates of their own (above the flat index), and adding one
 * is the repair. Counting dimensions shows that one of the two always exists. Solving e(l) in the source
 * gives the register P e(l) and the lane Q e(l). P e is a function of Q e, F: that is the register that a
 * lane gives. Both F and a, linear in the lane, are carried out by stages: for a basis vector of the values,
 * lanes whose coordinate is 1 exchange registers r and r ^ vector, all others keep them.
 *
 * Shared memory is planned in layout_shared.c. The cheapest wins; the prices are in layout_cost.h.
 */
#include "layout_cost.h"
#include "layout_gf2.h"

/* ---- registers ---- */

static bool
same_inputs(const Layout *a, const Layout *b, LayoutIn in)
{
  return !memcmp(a->col[in], b->col[in], sizeof a->col[in]);
}

bool
layout_reg_map(const Layout *src, const Layout *dst, u32 *map)
{
  for (u32 in = IN_LANE; in <= IN_BLOCK; in++)
    if (!same_inputs(src, dst, (LayoutIn)in)) return false;
  u32 from[LAYOUT_MAX_BITS] = {0};
  Basis b = layout_solver(src, IN_REG, IN_REG);
  for (u32 i = 0; i < dst->in_bits[IN_REG]; i++) {
    u64 made = 0;
    if (basis_reduce(&b, dst->col[IN_REG][i], &made)) return false;
    from[i] = (u32)made;
  }
  for (u32 r = 0; r < layout_regs(dst); r++) map[r] = cols_apply(from, LAYOUT_MAX_BITS, r);
  return true;
}

/* Registers that do not keep their number, or ~0u if there is no map; the map itself is not kept. */
static u32
count_moves(const Layout *src, const Layout *dst)
{
  u32 moved = 0, fixed = 0;
  for (u32 in = IN_LANE; in <= IN_BLOCK; in++)
    if (!same_inputs(src, dst, (LayoutIn)in)) return ~0u;
  Basis b = layout_solver(src, IN_REG, IN_REG);
  for (u32 i = 0; i < dst->in_bits[IN_REG]; i++) {
    u64 made = 0;
    if (basis_reduce(&b, dst->col[IN_REG][i], &made)) return ~0u;
    fixed += made == (u64)1 << i;
  }
  moved = layout_regs(dst) - (1u << fixed);
  return moved;
}

/* ---- shuffles ---- */

static bool
warp_solve(const Layout *src, const Basis *b, u32 flat, u32 *reg, u32 *lane)
{
  u64 made = 0;
  if (basis_reduce(b, flat, &made)) return false;
  *reg = (u32)made & (layout_regs(src) - 1);
  *lane = (u32)(made >> src->in_bits[IN_REG]);
  return true;
}

bool
layout_warp_source(const Layout *src, const Layout *dst, u32 reg, u32 lane, u32 *src_reg, u32 *src_lane)
{
  if (!same_inputs(src, dst, IN_WARP) || !same_inputs(src, dst, IN_BLOCK)) return false;
  Basis b = layout_solver(src, IN_REG, IN_LANE);
  return warp_solve(src, &b, layout_eval(dst, reg, lane, 0, 0), src_reg, src_lane);
}

/* Solver of src where lane bits that only copy have a coordinate of their own: 1 << (width + lane bit). */
static Basis
lifted_solver(const Layout *src, u32 *copies)
{
  Basis b = layout_solver(src, IN_REG, IN_REG);
  u32 width = layout_out_bits(src);
  *copies = 0;
  for (u32 i = 0; i < 5; i++) {
    u64 made = (u64)1 << (src->in_bits[IN_REG] + i);
    if (basis_add(&b, src->col[IN_LANE][i], made, NULL)) continue;
    *copies |= 1u << i;
    basis_add(&b, src->col[IN_LANE][i] ^ 1u << (width + i), made, NULL);
  }
  return b;
}

/* The choice of e and a. */
typedef struct Receiver {
  u32 element[5];   /* e of each lane bit, with coordinates of copies */
  u32 reg[5];       /* a of each lane bit */
} Receiver;

/* True, and v added, unless a sum of v and the others would be a nonzero vector of the source's registers. */
static bool
admit(Basis *used, u32 v)
{
  u64 registers = 0;
  if (basis_add(used, v, 0, &registers)) return true;
  return registers == 0;
}

/* Give the lane an element that obeys the rule: another register of the target, another copy of the source. */
static bool
repair(const Layout *src, const Layout *dst, u32 lane, u32 *copies, Basis *used, Receiver *out)
{
  for (u32 r = 0; r < dst->in_bits[IN_REG]; r++) {
    u32 v = dst->col[IN_LANE][lane] ^ dst->col[IN_REG][r];
    if (!admit(used, v)) continue;
    out->element[lane] = v;
    out->reg[lane] = 1u << r;
    return true;
  }
  u32 copy = *copies >> lane & 1 ? 1u << lane : *copies & (~*copies + 1);
  *copies &= ~copy;
  out->element[lane] = dst->col[IN_LANE][lane] ^ copy << layout_out_bits(src);
  basis_add(used, out->element[lane], 0, NULL);
  return copy != 0;
}

static bool
choose_receiver(const Layout *src, const Layout *dst, u32 copies, Receiver *out)
{
  Basis used = {0};
  u32 bad = 0;
  memset(out, 0, sizeof *out);
  for (u32 i = 0; i < src->in_bits[IN_REG]; i++)
    basis_add(&used, src->col[IN_REG][i], src->col[IN_REG][i], NULL);
  for (u32 i = 0; i < 5; i++) {
    out->element[i] = dst->col[IN_LANE][i];
    if (!admit(&used, out->element[i])) bad |= 1u << i;
  }
  for (u32 i = 0; i < 5; i++)
    if (bad >> i & 1 && !repair(src, dst, i, &copies, &used, out)) return false;
  return true;
}

/* Stages that carry out r -> r ^ value(lane), value linear with the given columns. */
static u32
make_stages(const u32 *cols, ShuffleStage *out)
{
  u32 n = 0;
  Basis b = {0};
  for (u32 i = 0; i < 5; i++)
    if (basis_add(&b, cols[i], (u64)1 << n, NULL)) out[n++].reg_xor = cols[i];
  for (u32 i = 0; i < 5; i++) {
    u64 made = 0;
    basis_reduce(&b, cols[i], &made);
    for (u32 s = 0; s < n; s++)
      if (made >> s & 1) out[s].lane_mask |= 1u << i;
  }
  return n;
}

/* F: columns of the register that a lane gives, from pairs (lane read, register read); 0 where nobody reads. */
static void
given_registers(const u32 *lane, const u32 *reg, u32 *cols)
{
  Basis b = {0};
  for (u32 i = 0; i < 5; i++) basis_add(&b, lane[i], reg[i], NULL);
  for (u32 i = 0; i < 5; i++) basis_add(&b, 1u << i, 0, NULL);
  for (u32 i = 0; i < 5; i++) {
    u64 made = 0;
    basis_reduce(&b, 1u << i, &made);
    cols[i] = (u32)made;
  }
}

static void
fill_rounds(const Layout *src, const Layout *dst, const Basis *solver, const u32 *gives, ShufflePlan *out)
{
  u32 copies = layout_free_bits(dst, IN_REG);
  for (u32 r = 0; r < dst->in_bits[IN_REG]; r++) {
    if (copies >> r & 1) continue;
    u32 k = out->round_bits++, reg = 0, lane = 0;
    warp_solve(src, solver, dst->col[IN_REG][r], &reg, &lane);
    out->round_recv[k] = 1u << r;
    out->round_lane[k] = lane;
    out->round_send[k] = reg ^ cols_apply(gives, 5, lane);
    if (lane) out->local = false;
  }
  out->rounds = 1u << out->round_bits;
}

/* a may name a register that is a copy of a sum of others: the same change, in first copies. */
static void
first_copies(const Layout *dst, u32 *reg)
{
  for (u32 i = 0; i < 5; i++) reg[i] = layout_first_copy(dst, reg[i]);
}

bool
layout_shuffle_plan(const Layout *src, const Layout *dst, ShufflePlan *out)
{
  u32 copies, reg[5], gives[5];
  memset(out, 0, sizeof *out);
  if (!same_inputs(src, dst, IN_WARP) || !same_inputs(src, dst, IN_BLOCK)) return false;
  Basis solver = lifted_solver(src, &copies);
  for (u32 in = IN_REG; in <= IN_LANE; in++)
    for (u32 i = 0; i < dst->in_bits[in]; i++)
      if (!basis_has(&solver, dst->col[in][i])) return false;
  Receiver e;
  if (!choose_receiver(src, dst, copies, &e)) return false;
  first_copies(dst, e.reg);
  for (u32 i = 0; i < 5; i++) warp_solve(src, &solver, e.element[i], &reg[i], &out->lane_col[i]);
  given_registers(out->lane_col, reg, gives);
  out->sends = make_stages(gives, out->send);
  out->receives = make_stages(e.reg, out->receive);
  out->local = true;
  for (u32 i = 0; i < 5; i++)
    if (out->lane_col[i] != 1u << i) out->local = false;
  fill_rounds(src, dst, &solver, gives, out);
  return true;
}

void
layout_shuffle_round(const ShufflePlan *p, u32 round, u32 *send_reg, u32 *recv_reg, u32 *lane_xor)
{
  *send_reg = cols_apply(p->round_send, p->round_bits, round);
  *recv_reg = cols_apply(p->round_recv, p->round_bits, round);
  *lane_xor = cols_apply(p->round_lane, p->round_bits, round);
}

static u32
shuffle_cost(const Layout *src, const ShufflePlan *p, u32 elem_bits)
{
  u32 words = elem_bits > 32 ? 2 : 1;
  u32 selects = p->sends * layout_regs(src) + p->receives * p->rounds;
  return words * ((p->local ? 0 : p->rounds * COST_SHUFFLE) + selects * COST_SELECT);
}

/* ---- the choice ---- */

void
layout_convert_plan(Ctx *c, const Layout *src, const Layout *dst, u32 elem_bits, bool can_ldmatrix,
                    bool can_stmatrix, ConvertPlan *out)
{
  memset(out, 0, sizeof *out);
  if (src->rank != dst->rank || memcmp(src->out_bits, dst->out_bits, sizeof src->out_bits))
    ctx_panic(c, "conversion between layouts of different tiles");
  if (src == dst) return;
  u32 moves = count_moves(src, dst);
  if (moves != ~0u) {
    out->kind = CONVERT_REGS;
    out->cost = moves * COST_MOVE;
    return;
  }
  if (!same_inputs(src, dst, IN_BLOCK)) ctx_panic(c, "conversion between the blocks of a cluster");
  ShufflePlan shuffle;
  bool can_shuffle = layout_shuffle_plan(src, dst, &shuffle);
  out->cost = can_shuffle ? shuffle_cost(src, &shuffle, elem_bits) : ~0u;
  SharedPlan shared;
  u32 shared_cost = layout_shared_plan(c, src, dst, elem_bits, can_ldmatrix, can_stmatrix, &shared);
  if (can_shuffle && out->cost <= shared_cost) {
    out->kind = CONVERT_SHUFFLE;
    out->shuffle = shuffle;
    return;
  }
  out->kind = CONVERT_SHARED;
  out->shared = shared;
  out->cost = shared_cost;
}

/* ---- for dumps ---- */

static void
print_access(Buf *b, const char *name, bool matrix, bool trans, u32 vec, u32 conflicts)
{
  buf_printf(b, " %s", name);
  if (matrix) buf_printf(b, "matrix%s", trans ? ".trans" : "");
  buf_printf(b, " x%u (%u conflicts),", vec, conflicts);
}

void
layout_convert_print(Buf *b, const ConvertPlan *p)
{
  static const char *const kinds[] = {"none", "registers", "shuffle", "shared"};
  const SharedPlan *s = &p->shared;
  buf_puts(b, kinds[p->kind]);
  if (p->kind == CONVERT_SHUFFLE)
    buf_printf(b, " %u rounds, %u stages%s", p->shuffle.rounds, p->shuffle.sends + p->shuffle.receives,
               p->shuffle.local ? ", local" : "");
  if (p->kind == CONVERT_SHARED) {
    buf_printf(b, " %u bytes,", s->bytes);
    print_access(b, "st", s->stmatrix, s->stmatrix_trans, s->store_vec, s->store_conflicts);
    print_access(b, "ld", s->ldmatrix, s->ldmatrix_trans, s->load_vec, s->load_conflicts);
  }
  else buf_putc(b, ',');
  buf_printf(b, " cost %u", p->cost);
}
