/* exec.c - running one cluster, mostly of one block: warps in turn, and in a warp its splits.
 *
 * A warp whose lanes branched apart is a set of splits (pc, lanes, rank). The split of the lowest rank runs
 * until it branches or reaches the start of a block of code; splits at the same pc merge (see cfg.c for why
 * this brings lanes together as early as can be). A collective instruction (K_CONV) whose member mask names
 * live lanes that are not there yet parks its split until they come; if nobody can run any more and lanes
 * are still missing, that is the error. A lane that spins on a value which another split of its warp must
 * write would keep the lowest rank for ever, so after SPIN_LIMIT backward branches its split is put behind
 * the others.
 *
 * Warps run one at a time, in order, each until it waits, ends or has used its turn (SLICE backward
 * branches), those of one block behind those of another: so clusters are deterministic, and warps that spin on shared memory make way.
 *
 * A try_wait that is false parks its split until the mbarrier ends a phase. When no warp can run, what the parked waits wait for lands
 * (flight.c); if nothing is in flight, they time out, as the hardware's do, which a program may use to do something else meanwhile. If
 * that brings no arrival anywhere, again and again, it is a deadlock. */
#include "fp.h"
#include "internal.h"
#include <fenv.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TIMEOUTS = 4, SPIN_LIMIT = 100000, SLICE = 20000, TURN = 1 << 20, LONG_TURN = 1 << 24, MANY_ROUNDS = 64 };
typedef enum Next { N_PICK, N_BLOCK, N_YIELD, N_ERROR } Next;

/* ---- arithmetic with rounding, flushing or saturation ---- */

static float
flush_f32(float f)
{
  return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static void
flush_lanes(uint8_t post, Type t, int width, void *lanes)
{
  int n = LANES * width;
  if (post & POST_FTZ32 && (t == T_F32 || t == T_F32X2))
    for (float *f = lanes; f < (float *)lanes + n / 4; f++)
      *f = flush_f32(*f);
  if (post & POST_FTZ16)
    for (uint16_t *h = lanes; h < (uint16_t *)lanes + n / 2; h++)
      *h = *h & 0x7c00 ? *h : *h & 0x8000;
}

static void
saturate_lanes(Type t, int width, void *lanes)
{
  int n = LANES * width;
  if (t == T_F32 || t == T_F32X2)
    for (float *f = lanes; f < (float *)lanes + n / 4; f++)
      *f = *f > 1 ? 1 : *f > 0 ? *f : 0;
  else if (t == T_F64)
    for (double *f = lanes; f < (double *)lanes + LANES; f++)
      *f = *f > 1 ? 1 : *f > 0 ? *f : 0;
  else if (t == T_F16 || t == T_F16X2)
    for (uint16_t *h = lanes; h < (uint16_t *)lanes + n / 2; h++) {
      float f = f16_to_f32(*h);
      *h = f > 1 ? 0x3c00 : f > 0 ? *h : 0;
    }
  else if (t == T_BF16 || t == T_BF16X2)
    for (uint16_t *h = lanes; h < (uint16_t *)lanes + n / 2; h++) {
      float f = bf16_to_f32(*h);
      *h = f > 1 ? 0x3f80 : f > 0 ? *h : 0;
    }
}

static void
relu_lanes(Type t, int width, void *lanes)
{
  int n = LANES * width;
  if (t == T_S32)
    for (int32_t *v = lanes; v < (int32_t *)lanes + LANES; v++)
      *v = *v < 0 ? 0 : *v;
  else if (t == T_F32)
    for (float *f = lanes; f < (float *)lanes + LANES; f++)
      *f = *f < 0 ? 0 : *f;
  else
    for (uint16_t *h = lanes; h < (uint16_t *)lanes + n / 2; h++)
      *h = *h & 0x8000 && (*h & 0x7fff) <= (t == T_BF16 || t == T_BF16X2 ? 0x7f80 : 0x7c00) ? 0 : *h;
}

static int
host_rounding(uint8_t rnd)
{
  return rnd == M_RZ ? FE_TOWARDZERO : rnd == M_RM ? FE_DOWNWARD : rnd == M_RP ? FE_UPWARD : FE_TONEAREST;
}

/* Sources of flushed types have the width of the type, as results have, but for comparisons. */
static void
alu_careful(const Insn *in, uint8_t *regs, void *out)
{
  const AluOps *o = &in->alu;
  uint64_t x[LANES], y[LANES], z[LANES];
  const void *px = regs + o->a, *py = regs + o->b, *pz = regs + o->c;
  int bytes = ptx_type_bytes[in->type], width = o->width ? o->width : bytes;
  if (o->post & (POST_FTZ32 | POST_FTZ16)) {
    size_t n = (size_t)bytes * LANES;
    memcpy(x, px, n);
    memcpy(y, py, n);
    memcpy(z, pz, n);
    flush_lanes(o->post, (Type)in->type, bytes, x);
    flush_lanes(o->post, (Type)in->type, bytes, y);
    flush_lanes(o->post, (Type)in->type, bytes, z);
    px = x, py = y, pz = z;
  }
  if (o->rounding)
    fesetround(host_rounding(o->rounding));
  in->fn.alu(out, px, py, pz, o->imm);
  if (o->rounding)
    fesetround(FE_TONEAREST);
  if (in->kind != K_ALU)
    return;
  flush_lanes(o->post, (Type)in->type, width, out);
  if (o->post & POST_SAT)
    saturate_lanes((Type)in->type, width, out);
  if (o->post & POST_RELU)
    relu_lanes((Type)in->type, width, out);
}

static void
blend(uint8_t *d, const uint8_t *from, uint32_t m, int width)
{
  if (width == 4)
    FOR_LANES(i, m) memcpy(d + 4 * i, from + 4 * i, 4);
  else if (width == 8)
    FOR_LANES(i, m) memcpy(d + 8 * i, from + 8 * i, 8);
  else
    FOR_LANES(i, m) memcpy(d + 2 * i, from + 2 * i, 2);
}

static void
run_alu(const Insn *in, uint8_t *regs, uint32_t m)
{
  uint64_t tmp[LANES];
  const AluOps *o = &in->alu;
  void *out = m == FULL ? (void *)(regs + o->d) : tmp;
  if (o->post | o->rounding)
    alu_careful(in, regs, out);
  else
    in->fn.alu(out, regs + o->a, regs + o->b, regs + o->c, o->imm);
  if (m != FULL)
    blend(regs + o->d, (const uint8_t *)tmp, m, o->width);
}

static void
run_setp(const Insn *in, uint8_t *regs, uint32_t m)
{
  const AluOps *o = &in->alu;
  uint32_t bits, *d = (uint32_t *)(void *)(regs + o->d);
  if (o->post | o->rounding)
    alu_careful(in, regs, &bits);
  else
    in->fn.alu(&bits, regs + o->a, regs + o->b, regs + o->c, o->imm);
  *d = (*d & ~m) | (bits & m);
}

/* ---- splits ---- */

static void
split_drop(Warp *w, uint32_t i)
{
  frame_drop(w->split[i].frame);
  w->split[i] = w->split[--w->nsplit];
}

/* Lanes that part from split s. */
static Split *
split_add(Warp *w, const Split *s, uint32_t pc, uint32_t mask, uint32_t rank)
{
  w->split[w->nsplit] = (Split){.frame = frame_share(s->frame), .pc = pc, .mask = mask, .rank = rank, .state = SPLIT_RUN};
  return &w->split[w->nsplit++];
}

/* Everything at the place of split i joins it. */
static uint32_t
split_merge(Warp *w, uint32_t i)
{
  for (uint32_t j = 0; j < w->nsplit;) {
    if (j == i || w->split[j].pc != w->split[i].pc || w->split[j].frame != w->split[i].frame) {
      j++;
      continue;
    }
    w->split[i].mask |= w->split[j].mask;
    w->split[i].state = SPLIT_RUN;
    split_drop(w, j);
    if (i == w->nsplit)
      i = j;
  }
  return i;
}

/* Whether others wait at pc for the split that has come there, not being a place where splits are looked for. */
static bool
awaited_at(const Warp *w, const Split *s, uint32_t pc)
{
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (&w->split[i] != s && w->split[i].pc == pc && w->split[i].frame == s->frame)
      return true;
  return false;
}

/* Whether x runs before y. Of splits in different calls those ranks count that they have in the function where their ways part;
 * one that has yet to come to the call of the other goes first. */
static bool
split_before(const Split *x, const Split *y)
{
  if (x->late != y->late)
    return x->late < y->late;
  const Frame *f = x->frame, *g = y->frame;
  uint32_t rx = x->rank, ry = y->rank, dx = f ? f->depth : 0, dy = g ? g->depth : 0;
  for (uint32_t d = dx; d > dy; d--)
    rx = f->rank, f = f->parent;
  for (uint32_t d = dy; d > dx; d--)
    ry = g->rank, g = g->parent;
  for (; f != g; f = f->parent, g = g->parent)
    rx = f->rank, ry = g->rank;
  return rx != ry ? rx < ry : dx < dy;
}

static int
stuck_splits(Block *b, Warp *w)
{
  const Split *s = &w->split[0];
  const Insn *in = &b->kernel->code[s->pc];
  char at[300];
  return sim_fault(b, w, in, __builtin_ctz(s->mask), in->kind == K_BAR ? SIM_E_BARRIER : SIM_E_TRAP, 0,
                      "lanes 0x%08x of warp %u wait at %s for lanes that must take part and never come",
                      s->mask, w->index, sim_loc_text(b, s->pc, at, sizeof at));
}

/* The split to run; -1: none can. */
static int
split_pick(Warp *w)
{
  int best = -1;
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state == SPLIT_RUN && (best < 0 || split_before(&w->split[i], &w->split[best])))
      best = (int)i;
  return best < 0 ? -1 : (int)split_merge(w, (uint32_t)best);
}

/* Lanes that left a spinning split behind may still be joined by it. */
static bool
others_behind(const Warp *w)
{
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state == SPLIT_WAIT || (w->split[i].state == SPLIT_RUN && w->split[i].late))
      return true;
  return false;
}

/* ---- barriers ---- */

static bool
barrier_full(const Block *b, const Barrier *bar)
{
  return bar->expected ? bar->arrived == bar->expected : bar->arrived >= b->nlive;
}

static void
barrier_result(Warp *w, const Barrier *bar)
{
  const BarOps *o = &w->wait->bar;
  switch ((BarReduce)o->reduce) {
  case RED_NONE: break;
  case RED_POPC:
    for (int i = 0; i < LANES; i++)
      LANES_OF(uint32_t, w, o->d)[i] = bar->pops;
    break;
  case RED_AND: PRED_OF(w, o->d) = bar->votes_and ? FULL : 0; break;
  case RED_OR: PRED_OF(w, o->d) = bar->votes_or ? FULL : 0; break;
  }
}

/* Whether all that agents have done so far happened before what comes behind the barrier. */
static bool
agents_met(const Block *b, const Barrier *bar)
{
  for (uint32_t a = b->nwarps; a < b->nagents; a++)
    if (b->agent[a].segment || bar->clocks.of[PROXY_GENERIC][a] < b->agent[a].clock)
      return false;
  return true;
}

static void
barrier_release(Block *b, Barrier *bar)
{
  bool all = (uint32_t)__builtin_popcount(bar->waiting) == b->nwarps && agents_met(b, bar);
  FOR_LANES(i, bar->waiting) {
    Warp *w = &b->warp[i];
    barrier_result(w, bar);
    if (b->check)
      clock_join(b, w, &bar->clocks, bar->know);
    if (all)
      w->floor = b->worker->segment_next;
    w->state = W_RUN;
  }
  know_drop(bar->know);
  *bar = (Barrier){0};
}

static void
barrier_vote(Warp *w, Barrier *bar, const BarOps *o, uint32_t m)
{
  if (!o->reduce)
    return;
  uint32_t p = PRED_OF(w, o->pred) & m;
  if (!bar->arrived)
    bar->votes_and = 1;
  bar->pops += (uint32_t)__builtin_popcount(p);
  bar->votes_and &= p == m;
  bar->votes_or |= p != 0;
}

static int
barrier_counts(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t id, uint32_t *expected)
{
  *expected = 0;
  if (id >= MAX_BARRIERS)
    return sim_fault(b, w, in, (int)lane, SIM_E_BARRIER, 0, "barrier %u does not exist", id);
  if (!in->bar.count)
    return 0;
  uint32_t n = LANES_OF(uint32_t, w, in->bar.count)[lane];
  if (n == 0 || n % LANES || n / LANES > b->nwarps)
    return sim_fault(b, w, in, (int)lane, SIM_E_BARRIER, 0,
                       "barrier %u expects %u threads: not a multiple of 32 of the block's threads", id, n);
  *expected = n / LANES;
  return 0;
}

/* A whole warp arrives. */
static Next
barrier_arrive(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t lane = (uint32_t)__builtin_ctz(m), id = LANES_OF(uint32_t, w, in->bar.id)[lane], expected;
  if (barrier_counts(b, w, in, lane, id, &expected))
    return N_ERROR;
  Barrier *bar = &b->barrier[id];
  if (bar->arrived && bar->expected != expected) {
    sim_fault(b, w, in, (int)lane, SIM_E_BARRIER, 0, "barrier %u is used with different thread counts", id);
    return N_ERROR;
  }
  b->worker->stats.barriers++;
  b->cluster->events++;
  barrier_vote(w, bar, &in->bar, m);
  bar->expected = expected;
  bar->arrived++;
  if (b->check)
    clock_arrive(b, w, &bar->clocks, &bar->know);
  if (in->bar.action != BAR_ARRIVE) {
    bar->waiting |= 1u << w->index;
    w->state = W_BARRIER;
    w->wait = in;
    w->wait_id = id;
  }
  if (barrier_full(b, bar))
    barrier_release(b, bar);
  return w->state == W_BARRIER ? N_BLOCK : N_PICK;
}

static Next
partial_barrier(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  sim_fault(b, w, in, __builtin_ctz(m), SIM_E_BARRIER, 0,
              "divergent barrier: lanes 0x%08x of warp %u are here and lanes 0x%08x are not", m, w->index, w->live & ~m);
  return N_ERROR;
}

/* Ended warps count as arrived at barriers without a thread count, as on sm_70 and later. */
static void
warp_ended(Block *b, Warp *w)
{
  w->state = W_DONE;
  b->nlive--;
  b->cluster->events++;
  cluster_warp_ended(b, w);
  cluster_settle(b->cluster);
  for (int i = 0; i < MAX_BARRIERS; i++)
    if (b->barrier[i].waiting && barrier_full(b, &b->barrier[i]))
      barrier_release(b, &b->barrier[i]);
}

/* ---- control ---- */

/* One more backward branch or return. */
static bool
turn_used(Warp *w)
{
  if (++w->turn < SLICE)
    return false;
  w->turn = 0;
  return true;
}

static Next
went_back(Warp *w, Split *s)
{
  if (w->nsplit > 1 && ++w->spin >= SPIN_LIMIT) {
    w->spin = 0;
    s->late = ++w->demotions;
  }
  return turn_used(w) ? N_YIELD : N_PICK;
}

static Next
run_branch(Warp *w, Split *s, const Insn *in, uint32_t pc, uint32_t m)
{
  uint32_t rest = s->mask & ~m;
  s->pc = in->bra.target;
  s->rank = in->bra.rank;
  s->mask = m;
  if (rest)
    split_add(w, s, pc + 1, rest, in->fall_rank);
  return in->bra.target <= pc ? went_back(w, s) : N_PICK;
}

static Next
run_branch_table(Block *b, Warp *w, Split *s, const Insn *in, uint32_t pc, uint32_t m)
{
  const uint32_t *index = LANES_OF(uint32_t, w, in->brx.index);
  uint32_t rest = s->mask & ~m;
  bool first = true;
  if (rest)
    split_add(w, s, pc + 1, rest, in->fall_rank);
  while (m) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), i = index[lane], same = 0;
    if (i >= in->brx.count) {
      sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "branch index %u is outside a table of %u", i, in->brx.count);
      return N_ERROR;
    }
    FOR_LANES(j, m) same |= (uint32_t)(index[j] == i) << j;
    m &= ~same;
    Split *to = first ? s : split_add(w, s, 0, same, 0);
    to->pc = b->kernel->brx[in->brx.first + i];
    to->rank = b->kernel->brx_rank[in->brx.first + i];
    to->mask = same;
    first = false;
  }
  return N_PICK;
}

/* Lanes that call the same function go together. */
static Next
run_call(Block *b, Warp *w, Split *s, const Insn *in, uint32_t pc, uint32_t m)
{
  uint32_t rest = s->mask & ~m, part, other;
  if (rest)
    split_add(w, s, pc + 1, rest, in->fall_rank);
  while (m) {
    uint32_t same = 0;
    if (call_target(b, w, in, (uint32_t)__builtin_ctz(m), &part))
      return N_ERROR;
    FOR_LANES(j, m) {
      if (in->call.pointer && call_target(b, w, in, j, &other))
        return N_ERROR;
      same |= (uint32_t)(!in->call.pointer || other == part) << j;
    }
    m &= ~same;
    Split *to = m ? split_add(w, s, pc, same, 0) : s;
    to->mask = same;
    if (call_enter(b, w, to, in, part))
      return N_ERROR;
  }
  return N_PICK;
}

static Next
run_exit(Warp *w, uint32_t index, uint32_t pc, uint32_t m)
{
  Split *s = &w->split[index];
  w->live &= ~m;
  s->mask &= ~m;
  s->pc = pc + 1;
  if (!s->mask)
    split_drop(w, index);
  return N_PICK;
}

static Next
run_return(Block *b, Warp *w, uint32_t index, const Insn *in, uint32_t pc, uint32_t m)
{
  Split *s = &w->split[index];
  uint32_t rest = s->mask & ~m;
  if (!s->frame)
    return run_exit(w, index, pc, m);
  if (rest)
    split_add(w, s, pc + 1, rest, in->fall_rank);
  call_leave(b, w, s, m);
  return turn_used(w) ? N_YIELD : N_PICK;
}

static Next
run_trap(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  static const char *const texts[] = {
    [TRAP_TRAP] = "a trap was reached", [TRAP_BREAK] = "a breakpoint was reached", [TRAP_ASSERT] = "a device assertion failed"};
  char why[256] = "";
  int lane = __builtin_ctz(m);
  if (in->text.reason == TRAP_ASSERT && sim_text(b, w, in, (uint32_t)lane, in->text.text, why, sizeof why))
    return N_ERROR;
  sim_fault(b, w, in, lane, SIM_E_TRAP, 0, "%s%s%s", texts[in->text.reason], *why ? ": " : "", why);
  return N_ERROR;
}

static Next
whole_warp_missing(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  sim_fault(b, w, in, __builtin_ctz(m), SIM_E_TRAP, 0,
              "an instruction for the whole warp is executed by lanes 0x%08x of warp %u only", m, w->index);
  return N_ERROR;
}

/* A collective: lanes are grouped by the member mask they give. N_BLOCK: lanes are missing, nothing is done. */
static Next
run_collective(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (in->whole) {
    if (m != FULL)
      return others_behind(w) ? N_BLOCK : whole_warp_missing(b, w, in, m);
    return in->fn.warp(b, w, in, m) ? N_ERROR : N_PICK;
  }
  const uint32_t *members = LANES_OF(uint32_t, w, in->warp.members);
  FOR_LANES(i, m) {
    if (!(members[i] >> i & 1)) {
      sim_fault(b, w, in, (int)i, SIM_E_TRAP, 0, "lane %u executes with member mask 0x%08x, which lacks it", i, members[i]);
      return N_ERROR;
    }
    if (members[i] & w->live & ~m)
      return N_BLOCK;
  }
  while (m) {
    uint32_t mask = members[__builtin_ctz(m)], group = 0;
    FOR_LANES(i, m) group |= (uint32_t)(members[i] == mask) << i;
    if (in->fn.warp(b, w, in, group))
      return N_ERROR;
    m &= ~group;
  }
  return N_PICK;
}

static uint32_t
guard_mask(const Warp *w, const Insn *in, uint32_t mask)
{
  if (!in->guard)
    return mask;
  uint32_t p = PRED_OF(w, in->guard - 1);
  return mask & (in->guard_not ? ~p : p);
}

/* ---- waiting for other blocks ---- */

/* Sums that differ, as good as always, where something in them does. */
static uint64_t
sum_word(uint64_t sum, uint64_t v)
{
  sum = (sum ^ v) * 0x9e3779b97f4a7c15ull;
  return sum ^ sum >> 29;
}

static uint64_t
sum_bytes(uint64_t sum, const uint8_t *bytes, size_t n)
{
  uint64_t v = 0;
  for (; n >= 8; bytes += 8, n -= 8) {
    memcpy(&v, bytes, 8);
    sum = sum_word(sum, v);
  }
  v = 0;
  memcpy(&v, bytes, n);
  return sum_word(sum, v);
}

static uint64_t
sum_registers(const Block *b, const Warp *w)
{
  return sum_bytes(0, w->regs, b->kernel->file_bytes);
}

void
poll_note(Block *b, Warp *w, const Insn *in, uint64_t what, bool changed)
{
  uint32_t pc = (uint32_t)(in - b->kernel->code);
  Poll *p = &w->poll[pc % POLLS];
  bool same = !changed && p->pc == pc + 1 && p->seen == what;
  if (!same) {
    *p = (Poll){pc + 1, what, 0};
    if (b->launch->turns)                            /* else nobody asks, and workers would count at the same time */
      b->launch->changes += changed;
    w->idle = w->idle_splits = 0;
    w->stuck = false;
    return;
  }
  if (++w->idle <= IDLE_LOOKS || b->launch->turns)   /* where blocks take turns their whole state is compared */
    return;
  uint64_t sum = sum_registers(b, w);      /* at this place: between two of them none may have changed, and yet the warp goes on */
  w->stuck = sum == p->registers;
  p->registers = sum;
}

/* Another split of the warp may have to move first, then another warp, then another block. */
static Next
looked_in_vain(Warp *w, Split *s)
{
  bool others = false;
  for (uint32_t i = 0; i < w->nsplit; i++)
    others |= &w->split[i] != s && w->split[i].state == SPLIT_RUN;
  if (!others || ++w->idle_splits > w->nsplit)
    return N_YIELD;
  s->late = ++w->demotions;
  w->idle = 0;
  return N_PICK;
}

static bool
out_of_budget(const Block *b)
{
  return b->budget && b->executed > b->budget;
}

/* The split goes on behind pc: where ways meet there, it is as late as those that wait there. */
static void
split_at_next(Split *s, const Insn *code, uint32_t pc)
{
  s->pc = pc + 1;
  if (code[pc + 1].leader)
    s->rank = code[pc].fall_rank;
}

/* Run split index until control moves: N_PICK choose again, N_BLOCK the warp waits, N_YIELD turn used up. */
static Next
run_split(Block *b, Warp *w, uint32_t index)
{
  const Insn *code = b->kernel->code;
  Split *s = &w->split[index];
  uint32_t pc = s->pc;
  bool many = w->nsplit > 1, first = true, products = b->kernel->products;
  s->rank = b->kernel->rank[pc];
  s->late = 0;
  for (;; pc++, first = false) {
    const Insn *in = &code[pc];
    if (many && in->leader && !first) {
      split_at_next(s, code, pc - 1);
      return N_PICK;
    }
    if (b->executed += in->kind != K_NOTE, out_of_budget(b)) {
      s->pc = pc;
      fault_budget(b, w, in);
      return N_ERROR;
    }
    uint32_t m = guard_mask(w, in, s->mask);
    if (!m)
      continue;
    if (many && !first && (in->kind == K_CONV || in->kind == K_WAIT || in->kind == K_BAR) && awaited_at(w, s, pc)) {
      s->pc = pc;                                        /* picked again, it takes them along */
      return N_PICK;
    }
    if (products && w->wgmma && wgmma_touch(b, w, in))
      return N_ERROR;
    switch ((Kind)in->kind) {
    case K_ALU: run_alu(in, w->regs, m); break;
    case K_SETP: run_setp(in, w->regs, m); break;
    case K_WARP:
      if (in->fn.warp(b, w, in, m))
        return N_ERROR;
      if (w->idle >= IDLE_LOOKS) {
        split_at_next(s, code, pc);
        return looked_in_vain(w, s);
      }
      break;
    case K_BRA:
      if (m == s->mask && !many && w->turn < SLICE - 1) {
        w->turn += in->bra.target <= pc;
        pc = in->bra.target - 1;
        break;
      }
      return run_branch(w, s, in, pc, m);
    case K_BRX: return run_branch_table(b, w, s, in, pc, m);
    case K_CALL: return run_call(b, w, s, in, pc, m);
    case K_RET: return run_return(b, w, index, in, pc, m);
    case K_EXIT: return run_exit(w, index, pc, m);
    case K_TRAP: return run_trap(b, w, in, m);
    case K_NOP: break;
    case K_WAIT: {
      if (in->whole && m != (in->living ? w->live : FULL)) {
        if (!others_behind(w)) {
          whole_warp_missing(b, w, in, m);
          return N_ERROR;
        }
        s->pc = pc;
        s->state = SPLIT_CONV;
        return N_PICK;
      }
      int rc = in->fn.warp(b, w, in, m);
      if (rc < 0)
        return N_ERROR;
      if (rc == PARK) {
        s->pc = pc;
        s->on = w->park_on;
        s->state = SPLIT_WAIT;
        return N_PICK;
      }
      if (w->idle >= IDLE_LOOKS) {
        split_at_next(s, code, pc);
        return looked_in_vain(w, s);
      }
      break;
    }
    case K_NOTE:
      if (in->fn.warp(b, w, in, m))
        return N_ERROR;
      break;
    case K_CONV: {
      Next n = run_collective(b, w, in, m);
      if (n == N_ERROR)
        return n;
      if (n == N_BLOCK) {
        s->pc = pc;
        s->state = SPLIT_CONV;
        return N_PICK;
      }
      if (b->check)
        clock_tick(w);
      break;
    }
    case K_BAR:
      if (m != w->live) {
        if (in->whole && !others_behind(w))
          return partial_barrier(b, w, in, m);
        s->pc = pc;
        s->state = SPLIT_CONV;
        return N_PICK;
      }
      s->pc = pc + 1;
      if (barrier_arrive(b, w, in, m) == N_ERROR)
        return N_ERROR;
      if (w->state == W_BARRIER)
        return N_BLOCK;
      break;
    }
  }
}

/* A parked split whose missing lanes came or ended may go on. */
static bool
wake_split(Warp *w, const Insn *code)
{
  for (uint32_t i = 0; i < w->nsplit; i++) {
    const Insn *in = &code[w->split[i].pc];
    uint32_t m = guard_mask(w, in, w->split[i].mask), missing = w->live & ~m;
    if (w->split[i].state != SPLIT_CONV)
      continue;
    if (in->kind == K_CONV && !in->whole)
      FOR_LANES(j, m) missing &= LANES_OF(uint32_t, w, in->warp.members)[j];
    if (!missing) {
      w->split[i].state = SPLIT_RUN;
      return true;
    }
  }
  return false;
}

static bool
waits(const Warp *w)
{
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state == SPLIT_WAIT)
      return true;
  return false;
}

static Next
warp_run(Block *b, Warp *w)
{
  while (w->nsplit) {
    int i = w->nsplit == 1 && w->split[0].state == SPLIT_RUN ? 0 : split_pick(w);
    if (i < 0) {
      if (wake_split(w, b->kernel->code))
        continue;
      if (waits(w)) {
        w->state = W_WAIT;
        return N_BLOCK;
      }
      stuck_splits(b, w);
      return N_ERROR;
    }
    Next n = run_split(b, w, (uint32_t)i);
    if (n != N_PICK)
      return n;
  }
  warp_ended(b, w);
  return N_BLOCK;
}

/* ---- waits ---- */

void
wake_waiters(Block *b, uint32_t on)
{
  for (uint32_t i = 0; i < b->nwarps; i++)
    for (uint32_t j = 0; j < b->warp[i].nsplit; j++) {
      Split *s = &b->warp[i].split[j];
      if (s->state != SPLIT_WAIT || (s->on != on && s->on != ON_ANY))
        continue;
      s->state = SPLIT_RUN;
      if (b->warp[i].state == W_WAIT)
        b->warp[i].state = W_RUN;
    }
}

/* Parked waits of a block that time out; whether there was any. */
static bool
expire(Block *b)
{
  bool any = false;
  for (uint32_t i = 0; i < b->nwarps; i++)
    for (uint32_t j = 0; j < b->warp[i].nsplit; j++) {
      Split *s = &b->warp[i].split[j];
      if (s->state != SPLIT_WAIT || (s->on != ON_ANY && s->on & ON_OTHERS))
        continue;
      any = true;
      b->warp[i].expired |= s->mask;
      s->state = SPLIT_RUN;
      b->warp[i].state = W_RUN;
    }
  return any;
}

static bool
time_out(Cluster *c)
{
  bool any = false;
  if (c->events != c->events_then)
    c->timeouts = 0;
  c->events_then = c->events;
  if (c->timeouts++ == MOST_TIMEOUTS)
    return false;
  for (uint32_t i = 0; i < c->n; i++)
    any |= expire(c->block[i]);
  return any;
}

static int
land_waited(Cluster *c)
{
  int landed = 0;
  for (uint32_t i = 0; i < c->n && landed >= 0; i++) {
    int one = flights_land_waited(c->block[i]);
    landed = one < 0 ? one : landed | one;
    c->failed = one < 0 ? i : c->failed;
  }
  return landed;
}

/* No warp can run: whether one can after all; -1 with the fault. */
static int
unpark(Cluster *c)
{
  uint64_t before = c->events;
  cluster_settle(c);                   /* lanes may have ended since the last arrival */
  if (c->events != before)
    return 1;
  int landed = land_waited(c);
  if (landed)
    return landed;
  return time_out(c) ? 1 : fault_deadlock(c);
}

/* Whether the cluster need not go on: an earlier block has failed, or all begins anew. */
static bool
given_up(const Cluster *c)
{
  const Launch *l = c->block[0]->launch;
  return __atomic_load_n(&l->fail_block, __ATOMIC_RELAXED) < c->block[0]->index ||
         (l->parallel && __atomic_load_n(&l->again, __ATOMIC_RELAXED));
}

static uint64_t
executed(const Cluster *c)
{
  uint64_t n = 0;
  for (uint32_t i = 0; i < c->n; i++)
    n += c->block[i]->executed;
  return n;
}

/* ---- loops of all warps ---- */

static uint64_t
sum_warp(const Block *b, const Warp *w, uint64_t sum)
{
  sum = sum_bytes(sum_word(sum, (uint64_t)w->state << 32 | w->wait_id), w->regs, b->kernel->file_bytes);
  for (uint32_t i = 0; i < w->nsplit; i++) {
    const Split *s = &w->split[i];
    sum = sum_word(sum_word(sum, (uint64_t)s->pc << 32 | s->mask), (uint64_t)s->on << 32 | (uint64_t)(s->late != 0) << 8 | s->state);
    for (const Frame *f = s->frame; f; f = f->parent)
      sum = sum_word(sum, (uint64_t)f->rank << 32 | f->depth);
  }
  return sum_word(sum, w->npending);
}

/* Of all that a block goes on from, but for memory that others see. */
static uint64_t
sum_block(const Block *b, uint64_t sum)
{
  for (uint32_t i = 0; i < b->nwarps; i++)
    sum = sum_warp(b, &b->warp[i], sum);
  sum = sum_bytes(sum, b->shared, b->shared_bytes);
  sum = sum_bytes(sum, b->local, (size_t)b->nwarps * LANES * b->kernel->local_bytes);
  for (uint32_t i = 0; i < MAX_BARRIERS; i++)
    sum = sum_word(sum_word(sum, (uint64_t)b->barrier[i].arrived << 32 | b->barrier[i].expected), b->barrier[i].waiting);
  for (size_t i = 0; i < b->nmbar; i++) {
    const Mbar *m = b->mbar[i];
    sum = sum_word(sum_word(sum, (uint64_t)m->expected << 32 | m->pending), (uint64_t)(uint32_t)m->tx << 1 | (m->phase & 1));
  }
  return sum_word(sum, b->nflight);
}

/* Finds out whether the cluster was as it is now at the end of a turn before, and memory has not changed since: then it goes round until
 * others change memory. Where one warp looks and tells the others, by a barrier or through an mbarrier, or counts its rounds by a bit,
 * no warp repeats itself from one look to the next. Sums are taken of SUMS turns in a row, behind FIRST_SUMS turns without a change, and
 * behind twice, four times as many: those who wait for somebody who is at work for long are looked at ever more rarely. */
static void
note_state(Cluster *c)
{
  const Launch *l = c->block[0]->launch;
  if (c->changes != l->changes)
    c->waited = 0, c->round = false;
  c->changes = l->changes;
  if (++c->waited < FIRST_SUMS || c->round)
    return;
  uint32_t n = c->waited - (1u << (31 - __builtin_clz(c->waited)));   /* taken since the last power of two */
  if (n >= SUMS)
    return;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < c->n; i++)
    sum = sum_block(c->block[i], sum);
  for (uint32_t i = 0; i < n; i++)
    c->round |= c->sum[i] == sum;
  c->sum[n] = sum;
}

/* What a round of all warps found: some ran, some got on, some looked in vain, and all that ran are stuck. */
typedef struct Round { uint32_t number; bool ran, busy, looked, stuck; } Round;   /* number: in its turn, from 1 on */

/* What is left of a turn after all warps have had theirs. */
static bool
turn_over(Cluster *c, uint64_t start, const Round *r)
{
  const Launch *l = c->block[0]->launch;
  /* Many rounds: a number that one warp looks for, and tells the others, keeps these busy. */
  if (l->turns && (!r->busy || (r->looked && r->number > MANY_ROUNDS))) {
    note_state(c);
    return true;
  }
  return executed(c) - start > (l->turns ? TURN : LONG_TURN);
}

/* Whether all warps that run look at mbarriers again and again, where no other block can change anything. */
static bool
all_look(Cluster *c, bool stuck)
{
  const Block *b = c->block[0];
  bool nothing = c->events == c->events_looked;
  c->events_looked = c->events;
  if (!stuck || b->launch->turns || !nothing || !b->nmbar) {
    c->looks = 0;
    return false;
  }
  return c->looks++ == MOST_TIMEOUTS;
}

/* -1 with the fault. */
static int
block_round(Block *b, Round *r)
{
  for (uint32_t i = 0; i < b->nwarps; i++) {
    Warp *w = &b->warp[i];
    if (w->state != W_RUN)
      continue;
    r->ran = true;
    if (warp_run(b, w) == N_ERROR)
      return -1;
    r->busy |= w->state != W_RUN || w->idle < IDLE_LOOKS;
    r->looked |= w->state == W_RUN && w->idle >= IDLE_LOOKS;
    r->stuck &= w->state == W_RUN && w->stuck;
  }
  if (b->nlive || b->over)
    return 0;
  b->over = true;
  previous_block_ended(b);
  return flights_ended(b) || registers_ended(b) || cluster_ended(b) ? -1 : 0;
}

static int
cluster_round(Cluster *c, Round *r)
{
  for (uint32_t i = 0; i < c->n; i++)
    if (block_round(c->block[i], r)) {
      c->failed = i;
      return -1;
    }
  return 0;
}

static bool
all_over(const Cluster *c)
{
  for (uint32_t i = 0; i < c->n; i++)
    if (!c->block[i]->over)
      return false;
  return true;
}

TurnEnd
sim_cluster_run(Cluster *c)
{
  uint64_t start = executed(c);
  uint32_t rounds = 0;
  while (!all_over(c)) {
    Round r = {.number = ++rounds, .stuck = true};
    if (cluster_round(c, &r) || (!r.ran && unpark(c) < 0))
      return TURN_FAILED;
    if (!r.ran || all_over(c))
      continue;
    for (uint32_t i = 0; i < c->n; i++)
      sim_report(c->block[i], false);
    if (given_up(c))
      return TURN_ENDED;
    if (__atomic_load_n(&c->block[0]->launch->machine->cancel, __ATOMIC_RELAXED))
      return TURN_STOPPED;
    if (all_look(c, r.stuck)) {
      fault_deadlock(c);
      return TURN_FAILED;
    }
    if (turn_over(c, start, &r))
      return TURN_SUSPENDED;
  }
  return TURN_ENDED;
}
