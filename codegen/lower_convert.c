/* lower_convert.c - moving a tile from one register layout to another, the way that plan_conversions chose.
 *
 * All the thinking is in layout/layout_convert.c and layout/layout_shared.c; here its plans are spelled out.
 */
#include "gen.h"

#define B g->b

typedef struct Convert {
  const Op *op;
  const Value *x, *result;
  Dist *from, *to;
  const Val *in;
  Val *out;
} Convert;

/* ---- registers ---- */
static void
by_registers(Gen *g, const Convert *k)
{
  u32 *map = NEW_ARRAY(g->arena, u32, k->to->regs);
  if (!layout_reg_map(k->from->l, k->to->l, map))
    ctx_panic(g->c, "convert_layout: the kind says registers, the layouts do not");
  for (u32 r = 0; r < k->to->regs; r++)
    k->out[r] = k->in[map[r]];
}

/* ---- shuffles ---- */

/* Is parity(lane & mask) 1? */
static Val
lane_parity(Gen *g, u32 mask)
{
  u32 cols[LANE_BITS];
  for (u32 i = 0; i < LANE_BITS; i++)
    cols[i] = mask >> i & 1;
  Val bit = team_linear(g, cols, LANE_BITS);
  return LLVMBuildICmp(g->team->pro, LLVMIntNE, bit, gen_u32(g, 0), "");
}

/* Registers r and r ^ reg_xor change places where the stage's parity is 1. */
static void
run_stage(Gen *g, const ShuffleStage *s, const Dist *h, Val *regs)
{
  Val swap = lane_parity(g, s->lane_mask);
  for (u32 r = 0; r < h->regs; r++) {
    u32 other = h->rep[r ^ s->reg_xor];
    if (h->rep[r] != r || other <= r)
      continue;
    Val a = regs[r], b = regs[other];
    regs[r] = LLVMBuildSelect(B, swap, b, a, "");
    regs[other] = LLVMBuildSelect(B, swap, a, b, "");
  }
}

static void
by_shuffles(Gen *g, const Convert *k)
{
  ShufflePlan p;
  if (!layout_shuffle_plan(k->from->l, k->to->l, &p))
    ctx_panic(g->c, "convert_layout: the kind says shuffles, the layouts do not");
  Val *x = NEW_ARRAY(g->arena, Val, k->from->regs);
  for (u32 r = 0; r < k->from->regs; r++)
    x[r] = k->in[k->from->rep[r]];
  for (u32 i = 0; i < p.sends; i++)
    run_stage(g, &p.send[i], k->from, x);
  u32 lanes = 0;
  for (u32 i = 0; i < LANE_BITS; i++)
    lanes |= p.lane_col[i];
  Val mine = p.local ? NULL : team_linear(g, p.lane_col, LANE_BITS);
  for (u32 i = 0; i < p.rounds; i++) {
    u32 send, recv, lane_xor;
    layout_shuffle_round(&p, i, &send, &recv, &lane_xor);
    Val v = x[k->from->rep[send]];
    k->out[recv] = p.local ? v : shuffle_from(g, v, gen_xor_const(g, mine, lanes, lane_xor));
  }
  for (u32 i = 0; i < p.receives; i++)
    run_stage(g, &p.receive[i], k->to, k->out);
}

/* ---- shared memory ---- */

static void
by_shared(Gen *g, const Convert *k)
{
  PiecesPlan plan;
  scratch_pieces_plan(g->c, k->op, &plan);
  if (addr_scratch(g, k->op, plan.shared.bytes))
    pieces_move(g, k->op, &plan, k->from, k->in, late_of(g, k->x), k->out);
  else
    gen_poison(g, k->result);
}

void
lower_CONVERT_LAYOUT(Gen *g, const Op *op)
{
  Convert k = {.op = op, .x = op_operand(op, 0), .result = op_result(op)};
  k.from = dist_get(g, k.x->type->layout);
  k.to = dist_get(g, k.result->type->layout);
  k.in = gen_regs(g, k.x);
  k.out = gen_new(g, k.result);
  const char *kind = op_str(op, AT_KIND, "regs");
  if (!strcmp(kind, "shared"))
    by_shared(g, &k);
  else if (!strcmp(kind, "shuffle"))
    by_shuffles(g, &k);
  else
    by_registers(g, &k);
  dist_share(g, k.result);
}
