/* team.c - the threads that run what is being generated: their numbers, linear functions of these, their barrier.
 *
 * A function's body is run by one team of all its threads, regions of a warp_specialize by parts of them (lower_team.c). What depends
 * on a thread's number alone is computed once, in the team's prologue.
 *
 * A linear map tid -> x is evaluated by diagonals: all bits i of tid that reach bit i + d of the result do so by one mask and
 * one shift by d. Blocked and mma layouts have few diagonals, and no layout has more than there are bits.
 */
#include "gen.h"

/* A thread's number in a part of the outer team, a power of two of warps that follow each other: from which of them on they are counted
 * is nobody's business, so no difference is taken. LLVM sees by the mask which bits are zero. */
static Val
tid_within(Gen *g, const GenTeam *t)
{
  return LLVMBuildAnd(t->pro, t->outer->tid, gen_u32(g, team_threads(t->range) - 1), "");
}

/* tid with its range, so that LLVM knows which bits are zero. */
static Val
read_tid(Gen *g, u32 threads)
{
  LLVMBuilderRef b = g->b;
  g->b = g->team->pro;
  Val tid = gen_call(g, "llvm.nvvm.read.ptx.sreg.tid.x", 0, NULL, 0, NULL);
  g->b = b;
  u64 lo = 0, hi = threads;
  LLVMAddCallSiteAttribute(tid, (LLVMAttributeIndex)LLVMAttributeReturnIndex,
    LLVMCreateConstantRangeAttribute(g->lc, LLVMGetEnumAttributeKindForName("range", 5), 32, &lo, &hi));
  return tid;
}

void
team_open(Gen *g, Team range, LLVMBasicBlockRef prologue)
{
  GenTeam *t = NEW(g->arena, GenTeam);
  *t = (GenTeam){.outer = g->team, .range = range, .pro = LLVMCreateBuilderInContext(g->lc)};
  g->team = t;
  LLVMPositionBuilderAtEnd(t->pro, prologue);
  t->tid = t->outer ? tid_within(g, t) : read_tid(g, team_threads(range));
  t->barrier = range.op ? 1 + range.part : 0;
}

void
team_close(Gen *g)
{
  LLVMDisposeBuilder(g->team->pro);
  g->team = g->team->outer;
}

void
team_barrier(Gen *g)
{
  const GenTeam *t = g->team;
  Val in[] = {gen_u32(g, t->barrier), gen_u32(g, team_threads(t->range))};
  if (!t->outer)
    gen_call_convergent(g, "llvm.nvvm.barrier.cta.sync.aligned.all", 0, NULL, 1, in);
  else if (t->range.warps > 1)
    gen_call_convergent(g, "llvm.nvvm.barrier.cta.sync.aligned.count", 0, NULL, 2, in);
  else
    team_warp_barrier(g);
}

void
team_warp_barrier(Gen *g)
{
  Val all = gen_u32(g, UINT32_MAX);
  gen_call_convergent(g, "llvm.nvvm.bar.warp.sync", 0, NULL, 1, &all);
}

Val
team_vote(Gen *g, bool all, bool meet, Val x)
{
  const GenTeam *t = g->team;
  if (!meet) {
    Val in[] = {gen_u32(g, UINT32_MAX), x};
    return gen_call_convergent(g, all ? "llvm.nvvm.vote.all.sync" : "llvm.nvvm.vote.any.sync", 0, NULL, 2, in);
  }
  const char *fold = all ? "and" : "or";
  Val in[] = {gen_u32(g, t->barrier), t->outer ? gen_u32(g, team_threads(t->range)) : x, x};
  const char *name = arena_printf(g->arena, "llvm.nvvm.barrier.cta.red.%s.aligned.%s", fold, t->outer ? "count" : "all");
  return gen_call_convergent(g, name, 0, NULL, t->outer ? 3 : 2, in);
}

Val
team_warpgroup(Gen *g)
{
  GenTeam *t = g->team;
  LLVMBuilderRef b = g->b;
  g->b = t->pro;
  if (!t->warpgroup)
    t->warpgroup = shuffle_from(g, LLVMBuildLShr(t->pro, t->tid, gen_u32(g, LANE_BITS + 2), ""), gen_u32(g, 0));
  g->b = b;
  return t->warpgroup;
}

/* ---- turns ---- */

enum { BARRIERS = 16, GROUP_WARPS = 4 };

/* The first of a team's barriers for turns, one for each of its warpgroups: behind those of all teams, and of teams before it. */
static u32
turn_barriers(const GenTeam *t)
{
  u32 n = 1 + t->range.op->nregions;
  for (u32 r = 0; r < t->range.part; r++)
    n += block_team(t->range.op->regions[r]).warps / GROUP_WARPS;
  return n;
}

/* The warpgroup arrives where this one waits; when: NULL: always. */
static void
pass_to(Gen *g, Val warpgroup, Val when)
{
  Val barrier = LLVMBuildAdd(g->b, warpgroup, gen_u32(g, turn_barriers(g->team)), "");
  PtxArgs a = {.subst = {when ? "@$2" : NULL}, .nin = when ? 3 : 2, .in = {barrier, gen_u32(g, 2 * GROUP_WARPS * LANES), when}};
  ptx_emit(g, PTX_BAR_ARRIVE, &a, NULL);
}

bool
team_takes_turns(Gen *g)
{
  const GenTeam *t = g->team;
  u32 n = t->range.warps / GROUP_WARPS;
  return t->outer && n > 1 && turn_barriers(t) + n <= BARRIERS;
}

/* The first turn is passed on by the last warpgroup, in the prologue. */
void
team_take_turn(Gen *g)
{
  GenTeam *t = g->team;
  Val own = team_warpgroup(g);
  if (!t->turns) {
    LLVMBuilderRef b = g->b;
    g->b = t->pro;
    pass_to(g, gen_u32(g, 0), LLVMBuildICmp(g->b, LLVMIntEQ, own, gen_u32(g, t->range.warps / GROUP_WARPS - 1), ""));
    g->b = b;
    t->turns = true;
  }
  Val in[] = {LLVMBuildAdd(g->b, own, gen_u32(g, turn_barriers(t)), ""), gen_u32(g, 2 * GROUP_WARPS * LANES)};
  gen_call_convergent(g, "llvm.nvvm.barrier.cta.sync.aligned.count", 0, NULL, 2, in);
}

void
team_pass_turn(Gen *g)
{
  Val next = LLVMBuildAdd(g->b, team_warpgroup(g), gen_u32(g, 1), ""), n = gen_u32(g, g->team->range.warps / GROUP_WARPS);
  pass_to(g, LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, next, n, ""), gen_u32(g, 0), next, ""), NULL);
}

/* ---- linear functions of tid ---- */

/* One diagonal: the bits of tid in mask, moved up by d places. */
static Val
diagonal(Gen *g, u32 mask, int d)
{
  Val x = LLVMBuildAnd(g->team->pro, g->team->tid, gen_u32(g, mask), "");
  if (d > 0)
    return LLVMBuildShl(g->team->pro, x, gen_u32(g, (u32)d), "");
  return d < 0 ? LLVMBuildLShr(g->team->pro, x, gen_u32(g, (u32)-d), "") : x;
}

Val
team_linear(Gen *g, const u32 *cols, u32 nbits)
{
  Val sum = NULL;
  u32 have = 0;
  for (int d = -(int)nbits; d < LAYOUT_MAX_BITS + 8; d++) {
    u32 mask = 0;
    for (int i = 0; i < (int)nbits; i++)
      if (i + d >= 0 && i + d < 32 && cols[i] >> (i + d) & 1)
        mask |= 1u << i;
    if (!mask)
      continue;
    u32 reach = d >= 0 ? mask << d : mask >> -d;
    Val term = diagonal(g, mask, d);
    sum = sum ? gen_xor_parts(g->team->pro, sum, have, term, reach) : term;
    have |= reach;
  }
  return sum ? sum : gen_u32(g, 0);
}

/* Whether the bits of mask are zero in tid: made once for a team, as each store to a scalar asks for the leader. */
struct ZeroBits { struct ZeroBits *next; u32 mask; Val yes; };

Val
team_bits_zero(Gen *g, u32 mask)
{
  GenTeam *t = g->team;
  if (!mask)
    return NULL;
  for (const struct ZeroBits *z = t->zero_bits; z; z = z->next)
    if (z->mask == mask)
      return z->yes;
  struct ZeroBits *z = NEW(g->arena, struct ZeroBits);
  Val bits = LLVMBuildAnd(t->pro, t->tid, gen_u32(g, mask), "");
  *z = (struct ZeroBits){t->zero_bits, mask, LLVMBuildICmp(t->pro, LLVMIntEQ, bits, gen_u32(g, 0), "")};
  t->zero_bits = z;
  return z->yes;
}
