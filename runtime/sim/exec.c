/* exec.c - running one block: warps in turn, and in a warp its splits.
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
 * branches): so blocks are deterministic, and warps that spin on shared memory make way. */
#include "fp.h"
#include "internal.h"
#include <fenv.h>
#include <stdio.h>
#include <string.h>

enum { SPIN_LIMIT = 100000, SLICE = 20000 };
#define DEMOTED 0xc0000000u
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

/* in->dw is the result's width; sources of flushed types have it too, but for comparisons. */
static void
alu_careful(const Insn *in, uint8_t *regs, void *out)
{
  uint64_t a[LANES], b[LANES], c[LANES];
  const void *pa = regs + in->a, *pb = regs + in->b, *pc = regs + in->c;
  int width = in->dw ? in->dw : ptx_type_bytes[in->type];
  if (in->post & (POST_FTZ32 | POST_FTZ16)) {
    size_t n = (size_t)ptx_type_bytes[in->type] * LANES;
    memcpy(a, pa, n);
    memcpy(b, pb, n);
    memcpy(c, pc, n);
    flush_lanes(in->post, (Type)in->type, ptx_type_bytes[in->type], a);
    flush_lanes(in->post, (Type)in->type, ptx_type_bytes[in->type], b);
    flush_lanes(in->post, (Type)in->type, ptx_type_bytes[in->type], c);
    pa = a, pb = b, pc = c;
  }
  if (in->rnd)
    fesetround(host_rounding(in->rnd));
  in->fn.alu(out, pa, pb, pc, in->imm);
  if (in->rnd)
    fesetround(FE_TONEAREST);
  if (in->kind != K_ALU)
    return;
  flush_lanes(in->post, (Type)in->type, width, out);
  if (in->post & POST_SAT)
    saturate_lanes((Type)in->type, width, out);
  if (in->post & POST_RELU)
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
  void *out = m == FULL ? (void *)(regs + in->d) : tmp;
  if (in->post | in->rnd)
    alu_careful(in, regs, out);
  else
    in->fn.alu(out, regs + in->a, regs + in->b, regs + in->c, in->imm);
  if (m != FULL)
    blend(regs + in->d, (const uint8_t *)tmp, m, in->dw);
}

static void
run_setp(const Insn *in, uint8_t *regs, uint32_t m)
{
  uint32_t bits, *d = (uint32_t *)(void *)(regs + in->d);
  if (in->post | in->rnd)
    alu_careful(in, regs, &bits);
  else
    in->fn.alu(&bits, regs + in->a, regs + in->b, regs + in->c, in->imm);
  *d = (*d & ~m) | (bits & m);
}

/* ---- splits ---- */

static void
split_drop(Warp *w, uint32_t i)
{
  w->split[i] = w->split[--w->nsplit];
}

static void
split_add(Warp *w, uint32_t pc, uint32_t mask, uint32_t rank)
{
  w->split[w->nsplit++] = (Split){pc, mask, rank, SPLIT_RUN};
}

/* Everything at the pc of split i joins it. */
static uint32_t
split_merge(Warp *w, uint32_t i)
{
  for (uint32_t j = 0; j < w->nsplit;) {
    if (j == i || w->split[j].pc != w->split[i].pc) {
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

static int
stuck_splits(Worker *k, Warp *w)
{
  const Split *s = &w->split[0];
  const Insn *in = &k->kernel->code[s->pc];
  char at[300];
  return worker_error(k, w, in, __builtin_ctz(s->mask), in->kind == K_BAR ? SIM_E_BARRIER : SIM_E_TRAP, 0,
                      "lanes 0x%08x of warp %u wait at %s for lanes that must take part and never come",
                      s->mask, w->index, sim_loc_text(k, s->pc, at, sizeof at));
}

/* The split to run: the lowest rank. -1: none can. */
static int
split_pick(Warp *w)
{
  int best = -1;
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state == SPLIT_RUN && (best < 0 || w->split[i].rank < w->split[best].rank))
      best = (int)i;
  return best < 0 ? -1 : (int)split_merge(w, (uint32_t)best);
}

/* Lanes that left a spinning split behind may still be joined by it. */
static bool
others_behind(const Warp *w)
{
  for (uint32_t i = 0; i < w->nsplit; i++)
    if (w->split[i].state == SPLIT_RUN && w->split[i].rank >= DEMOTED)
      return true;
  return false;
}

/* ---- barriers ---- */

static bool
barrier_full(const Worker *k, const Barrier *b)
{
  return b->expected ? b->arrived == b->expected : b->arrived >= k->nlive;
}

static uint32_t
red_result(const Barrier *b, uint32_t op)
{
  return op == 1 ? b->pops : op == 2 ? (b->votes_and ? FULL : 0) : b->votes_or ? FULL : 0;
}

static void
barrier_result(Warp *w, const Barrier *b)
{
  const Insn *in = w->wait;
  if (in->type2 == 1)
    for (int i = 0; i < LANES; i++)
      LANES_OF(uint32_t, w, in->d)[i] = b->pops;
  else if (in->type2)
    PRED_OF(w, in->d) = red_result(b, in->type2);
}

static void
barrier_release(Worker *k, Barrier *b)
{
  FOR_LANES(i, b->waiting) {
    Warp *w = &k->warp[i];
    barrier_result(w, b);
    if (k->check)
      clock_join(k, w, b);
    w->state = W_RUN;
  }
  *b = (Barrier){0};
}

static void
barrier_vote(Warp *w, Barrier *b, const Insn *in, uint32_t m)
{
  if (!in->type2)
    return;
  uint32_t p = PRED_OF(w, in->c) & m;
  if (!b->arrived)
    b->votes_and = 1;
  b->pops += (uint32_t)__builtin_popcount(p);
  b->votes_and &= p == m;
  b->votes_or |= p != 0;
}

static int
barrier_counts(Worker *k, Warp *w, const Insn *in, uint32_t lane, uint32_t id, uint32_t *expected)
{
  *expected = 0;
  if (id >= MAX_BARRIERS)
    return worker_error(k, w, in, (int)lane, SIM_E_BARRIER, 0, "barrier %u does not exist", id);
  if (!(in->flags & IF_COUNT))
    return 0;
  uint32_t n = LANES_OF(uint32_t, w, in->b)[lane];
  if (n == 0 || n % LANES || n / LANES > k->nwarps)
    return worker_error(k, w, in, (int)lane, SIM_E_BARRIER, 0,
                        "barrier %u expects %u threads: not a multiple of 32 of the block's threads", id, n);
  *expected = n / LANES;
  return 0;
}

/* A whole warp arrives. */
static Next
barrier_arrive(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t lane = (uint32_t)__builtin_ctz(m), id = LANES_OF(uint32_t, w, in->a)[lane], expected;
  if (barrier_counts(k, w, in, lane, id, &expected))
    return N_ERROR;
  Barrier *b = &k->barrier[id];
  if (b->arrived && b->expected != expected) {
    worker_error(k, w, in, (int)lane, SIM_E_BARRIER, 0, "barrier %u is used with different thread counts", id);
    return N_ERROR;
  }
  k->stats.barriers++;
  barrier_vote(w, b, in, m);
  b->expected = expected;
  b->arrived++;
  if (k->check)
    clock_arrive(k, w, b);
  if (in->sub != 1) {
    b->waiting |= 1u << w->index;
    w->state = W_BARRIER;
    w->wait = in;
    w->wait_id = id;
  }
  if (barrier_full(k, b))
    barrier_release(k, b);
  return w->state == W_BARRIER ? N_BLOCK : N_PICK;
}

static Next
partial_barrier(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  worker_error(k, w, in, __builtin_ctz(m), SIM_E_BARRIER, 0,
               "divergent barrier: lanes 0x%08x of warp %u are here and lanes 0x%08x are not", m, w->index,
               w->live & ~m);
  return N_ERROR;
}

/* Ended warps count as arrived at barriers without a thread count, as on sm_70 and later. */
static void
warp_ended(Worker *k, Warp *w)
{
  w->state = W_DONE;
  k->nlive--;
  for (int i = 0; i < MAX_BARRIERS; i++)
    if (k->barrier[i].waiting && barrier_full(k, &k->barrier[i]))
      barrier_release(k, &k->barrier[i]);
}

/* ---- control ---- */

static Next
went_back(Warp *w, Split *s)
{
  if (w->nsplit > 1 && ++w->spin >= SPIN_LIMIT) {
    w->spin = 0;
    s->rank = DEMOTED + w->demotions++;
  }
  if (++w->turn < SLICE)
    return N_PICK;
  w->turn = 0;
  return N_YIELD;
}

static Next
run_branch(Warp *w, Split *s, const Insn *in, uint32_t pc, uint32_t m)
{
  uint32_t rest = s->mask & ~m;
  s->pc = in->target;
  s->rank = in->rank;
  s->mask = m;
  if (rest)
    split_add(w, pc + 1, rest, in->fall_rank);
  return in->target <= pc ? went_back(w, s) : N_PICK;
}

static Next
run_branch_table(Worker *k, Warp *w, Split *s, const Insn *in, uint32_t pc, uint32_t m)
{
  const uint32_t *index = LANES_OF(uint32_t, w, in->a);
  uint32_t rest = s->mask & ~m;
  if (rest)
    split_add(w, pc + 1, rest, in->fall_rank);
  s->mask = 0;
  while (m) {
    uint32_t lane = (uint32_t)__builtin_ctz(m), i = index[lane], same = 0;
    if (i >= in->count) {
      worker_error(k, w, in, (int)lane, SIM_E_TRAP, 0, "branch index %u is outside a table of %u", i, in->count);
      return N_ERROR;
    }
    FOR_LANES(j, m) same |= (uint32_t)(index[j] == i) << j;
    m &= ~same;
    uint32_t to = k->kernel->brx[in->target + i], rank = k->kernel->brx_rank[in->target + i];
    if (s->mask)
      split_add(w, to, same, rank);
    else
      *s = (Split){to, same, rank, SPLIT_RUN};
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
run_trap(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  static const char *const texts[] = {"a trap was reached", "a breakpoint was reached", "a device assertion failed"};
  char why[256] = "";
  int lane = __builtin_ctz(m);
  if (in->sub == 2 && sim_text(k, w, in, (uint32_t)lane, in->a, why, sizeof why))
    return N_ERROR;
  worker_error(k, w, in, lane, SIM_E_TRAP, 0, "%s%s%s", texts[in->sub], *why ? ": " : "", why);
  return N_ERROR;
}

static Next
whole_warp_missing(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  worker_error(k, w, in, __builtin_ctz(m), SIM_E_TRAP, 0,
               "an instruction for the whole warp is executed by lanes 0x%08x of warp %u only", m, w->index);
  return N_ERROR;
}

/* A collective: lanes are grouped by the member mask they give. N_BLOCK: lanes are missing, nothing is done. */
static Next
run_collective(Worker *k, Warp *w, const Insn *in, uint32_t m)
{
  if (in->flags & IF_ALIGNED) {
    if (m != FULL)
      return others_behind(w) ? N_BLOCK : whole_warp_missing(k, w, in, m);
    return in->fn.warp(k, w, in, m) ? N_ERROR : N_PICK;
  }
  const uint32_t *members = LANES_OF(uint32_t, w, in->c);
  FOR_LANES(i, m) {
    if (!(members[i] >> i & 1)) {
      worker_error(k, w, in, (int)i, SIM_E_TRAP, 0, "lane %u executes with member mask 0x%08x, which lacks it", i,
                   members[i]);
      return N_ERROR;
    }
    if (members[i] & w->live & ~m)
      return N_BLOCK;
  }
  while (m) {
    uint32_t mask = members[__builtin_ctz(m)], group = 0;
    FOR_LANES(i, m) group |= (uint32_t)(members[i] == mask) << i;
    if (in->fn.warp(k, w, in, group))
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

static bool
out_of_budget(Worker *k)
{
  return k->budget && k->executed > k->budget;
}

/* Run split index until control moves: N_PICK choose again, N_BLOCK the warp waits, N_YIELD turn used up. */
static Next
run_split(Worker *k, Warp *w, uint32_t index)
{
  const Insn *code = k->kernel->code;
  Split *s = &w->split[index];
  uint32_t pc = s->pc;
  bool many = w->nsplit > 1, first = true;
  s->rank = k->kernel->rank[pc];
  for (;; pc++, first = false) {
    const Insn *in = &code[pc];
    if (many && in->leader && !first) {
      s->pc = pc;
      s->rank = code[pc - 1].fall_rank;
      return N_PICK;
    }
    if (k->executed++, out_of_budget(k)) {
      worker_error(k, w, in, __builtin_ctz(s->mask), SIM_E_LIMIT, 0,
                   "the block executed more than %llu warp instructions", (unsigned long long)k->budget);
      return N_ERROR;
    }
    uint32_t m = guard_mask(w, in, s->mask);
    if (!m)
      continue;
    switch ((Kind)in->kind) {
    case K_ALU: run_alu(in, w->regs, m); break;
    case K_SETP: run_setp(in, w->regs, m); break;
    case K_WARP:
      if (in->fn.warp(k, w, in, m))
        return N_ERROR;
      break;
    case K_BRA:
      if (m == s->mask && !many && w->turn < SLICE - 1) {
        w->turn += in->target <= pc;
        pc = in->target - 1;
        break;
      }
      return run_branch(w, s, in, pc, m);
    case K_BRX: return run_branch_table(k, w, s, in, pc, m);
    case K_EXIT: return run_exit(w, index, pc, m);
    case K_TRAP: return run_trap(k, w, in, m);
    case K_NOP: break;
    case K_CONV: {
      Next n = run_collective(k, w, in, m);
      if (n == N_ERROR)
        return n;
      if (n == N_BLOCK) {
        s->pc = pc;
        s->state = SPLIT_CONV;
        return N_PICK;
      }
      if (k->check)
        clock_tick(k, w);
      break;
    }
    case K_BAR:
      if (m != w->live) {
        if (in->flags & IF_ALIGNED && !others_behind(w))
          return partial_barrier(k, w, in, m);
        s->pc = pc;
        s->state = SPLIT_CONV;
        return N_PICK;
      }
      s->pc = pc + 1;
      if (barrier_arrive(k, w, in, m) == N_ERROR)
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
    if (in->kind == K_CONV)
      FOR_LANES(j, m) missing &= LANES_OF(uint32_t, w, in->c)[j];
    if (!missing) {
      w->split[i].state = SPLIT_RUN;
      return true;
    }
  }
  return false;
}

static Next
warp_run(Worker *k, Warp *w)
{
  while (w->nsplit) {
    int i = w->nsplit == 1 && w->split[0].state == SPLIT_RUN ? 0 : split_pick(w);
    if (i < 0) {
      if (wake_split(w, k->kernel->code))
        continue;
      stuck_splits(k, w);
      return N_ERROR;
    }
    Next n = run_split(k, w, (uint32_t)i);
    if (n != N_PICK)
      return n;
  }
  warp_ended(k, w);
  return N_BLOCK;
}

static int
deadlock(Worker *k)
{
  char list[300] = "";
  size_t used = 0;
  Warp *first = NULL;
  for (uint32_t i = 0; i < k->nwarps; i++) {
    Warp *w = &k->warp[i];
    char at[200];
    if (w->state != W_BARRIER)
      continue;
    first = first ? first : w;
    sim_loc_text(k, (uint32_t)(w->wait - k->kernel->code), at, sizeof at);
    if (used < sizeof list - 1)
      used += (size_t)snprintf(list + used, sizeof list - used, "%s warp %u at barrier %u (%s)", used ? "," : "", i,
                               w->wait_id, at);
  }
  return worker_error(k, first, first->wait, __builtin_ctz(first->live), SIM_E_DEADLOCK, 0,
                      "deadlock: no warp can go on:%s", list);
}

static bool
abandoned(const Worker *k)
{
  return __atomic_load_n(&k->launch->fail_block, __ATOMIC_RELAXED) < k->block_index;
}

int
sim_block_run(Worker *k)
{
  while (k->nlive) {
    bool ran = false;
    for (uint32_t i = 0; i < k->nwarps; i++) {
      Warp *w = &k->warp[i];
      if (w->state != W_RUN)
        continue;
      ran = true;
      if (warp_run(k, w) == N_ERROR)
        return -1;
    }
    if (!ran)
      return deadlock(k);
    if (abandoned(k))
      return 0;
  }
  return 0;
}
