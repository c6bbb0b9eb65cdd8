/* lower_team.c - warps that part: each team runs a region of warp_specialize, then all meet.
 *
 * Which region a warp runs depends on its number, which a shuffle makes uniform. Registers are shared out where the target can: a launch
 * gives every thread as many as come to the sum that the regions ask for, a region begins with taking or giving back the difference, and
 * the reverse follows behind it, unless the kernel ends there: when all have met, or one that has ended would take what another has
 * yet to begin with. (ptxas has to know the number at the start, else it drops these instructions: the kernel says it as .maxnreg.)
 * Teams that share a warpgroup part behind that instruction, which all its warps execute.
 *
 * A team that does nothing but by one of its threads, starting copies of boxes and waiting for mbarriers, is run by its first warp alone,
 * and meets as a warp does.
 *
 * The IR counts teams that arrive at an mbarrier, PTX threads. So that teams of any size may arrive at one of them, each is as many
 * arrivals as the largest team that arrives there has warps that run, shared out among these: so many lanes of each arrive, once the
 * warp has come together there. No team has to meet for that. At another program's mbarrier they arrive by the same instruction, on the
 * address that mapa gives, and of the cluster's scope only where the op says so: such a release flushes to the whole device. Bytes are
 * announced by the leader, by its own arrival. What its copies do to the phase is counted in PTX as an arrival that each thread adds, and
 * that is made when the copies have landed: it comes out even.
 */
#include "gen.h"

#define B g->b

enum { MAXNREG = 255 };                                        /* .maxnreg goes so far */
enum { GROUP_WARPS = 4 };                                      /* that change their registers by one instruction */

/* What a region of `teams` asks for. */
static u32
registers_asked(const Op *teams, u32 region)
{
  return (u32)op_attr(teams, AT_REGISTERS)->ints.v[region];
}

/* ---- registers ---- */

/* Of all threads of a team. */
static u32
registers_of(const Op *teams, u32 region)
{
  return registers_asked(teams, region) * block_team(teams->regions[region]).warps * LANES;
}

static u32
registers_of_all(const Op *teams)
{
  u32 sum = 0;
  for (u32 r = 0; r < teams->nregions; r++)
    sum += registers_of(teams, r);
  return sum;
}

/* Of each thread at the start: a multiple of REGISTERS_STEP that all threads' sum is covered by. */
static u32
registers_wanted(const Op *teams)
{
  u32 threads = teams->block->func->warps * LANES;
  return align_up((registers_of_all(teams) + threads - 1) / threads, REGISTERS_STEP);
}

/* What a launch may give a thread at most, by the target and the kernel's own limits. */
static u32
registers_most(Gen *g, const Func *f)
{
  u32 threads = f->warps * LANES * max_u32(1, f->min_blocks), each = target_registers(g->target, threads);
  return f->max_registers ? min_u32(each, f->max_registers / REGISTERS_STEP * REGISTERS_STEP) : each;
}

static void
report_registers(Gen *g, const Func *f, const Op *teams, u32 most)
{
  u32 threads = f->warps * LANES;
  Diag *d = diag(g->c, teams->span, E_REGISTERS, f->name, registers_of_all(teams), g->target->name, most * threads, threads);
  for (u32 r = 0; r < teams->nregions; r++)
    diag_note(g->c, d, (Span){0, 0}, "team %u: %u for each of %u threads, %u", r, registers_asked(teams, r),
              block_team(teams->regions[r]).warps * LANES, registers_of(teams, r));
  if (f->max_registers)
    diag_note(g->c, d, (Span){0, 0}, "max_registers(%u) is for the threads of all teams", f->max_registers);
  if (f->min_blocks > 1)
    diag_note(g->c, d, (Span){0, 0}, "min_blocks(%u): so many programs share them", f->min_blocks);
  g->failed = true;
}

/* NULL: no registers are shared out. */
static const Op *
sharing(Gen *g, const Func *f)
{
  const Op *teams = func_teams(f);
  return teams && op_attr(teams, AT_REGISTERS) && target_has(g->target, F_SETMAXNREG) ? teams : NULL;
}

u32
lower_entry_registers(Gen *g, const Func *f)
{
  const Op *teams = sharing(g, f);
  if (!teams)
    return 0;
  u32 want = registers_wanted(teams), most = registers_most(g, f);
  if (want > most)
    report_registers(g, f, teams, most);
  return min_u32(want, MAXNREG);
}

/* The thread's registers change from one number to the other. */
static void
change_registers(Gen *g, u32 from, u32 to)
{
  Val n = gen_u32(g, to);
  if (to != from)
    gen_call_convergent(g, to > from ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32" : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32", 0, NULL,
                        1, &n);
}

/* ---- teams of one thread ---- */

static bool
works_on_tiles(const Op *op)
{
  bool tile = false;
  for (u32 i = 0; i < op->noperands; i++)
    tile |= op_operand(op, i) && type_is_tile(op_operand(op, i)->type);
  for (u32 i = 0; i < op->nresults; i++)
    tile |= type_is_tile(op->results[i]->type);
  return tile;
}

/* Does it not matter which threads do it, besides the leader? */
static bool
leader_suffices(const Op *op)
{
  switch (op->code) {
  case OP_MBARRIER_WAIT: case OP_TMA_LOAD: case OP_TMA_STORE: case OP_TMA_PREFETCH: case OP_TMA_COMMIT: case OP_TMA_WAIT:
  case OP_FOR: case OP_WHILE: case OP_IF: case OP_YIELD: case OP_CONDITION: case OP_ASSUME: case OP_FENCE:
  case OP_WAIT_FOR_PREVIOUS: case OP_LET_NEXT_START:
    return true;
  case OP_MBARRIER_ARRIVE:
    return !op_int(op, AT_COPIES, 0);
  default:
    return op_is_view(op) || op_has(op, T_PURE);
  }
}

typedef struct Work { bool alone, meets, copies; } Work;

static void
find_work(Op *op, void *user)
{
  Work *w = user;
  w->meets |= op->code == OP_BARRIER;
  w->copies |= op->code == OP_TMA_LOAD || op->code == OP_TMA_STORE;
  w->alone = w->alone && (leader_suffices(op) || op->code == OP_BARRIER) && !works_on_tiles(op);
}

/* The block's team, of which as many warps as run. Where one meets between its copies, these are the leader's, too. */
static Team
running_team(const Block *b)
{
  Team t = block_team(b);
  Work w = {.alone = t.op != NULL};
  if (w.alone)
    block_walk(t.op->regions[t.part], find_work, &w);
  t.warps = w.alone && (!w.meets || w.copies) ? 1 : t.warps;
  return t;
}

/* ---- parting and meeting ---- */

/* With the kernel nothing ends that others could wait for. */
static bool
kernel_ends_behind(const Op *op)
{
  const Op *last = op->next->code == OP_CLUSTER_BARRIER ? op->next->next : op->next;
  return last->code == OP_RETURN;
}

/* What the region's warps do, or its first alone. */
static void
lower_work(Gen *g, const Op *op, u32 r, Val warp)
{
  Team t = running_team(op->regions[r]);
  bool alone = t.warps < block_team(op->regions[r]).warps;
  LLVMBasicBlockRef after = gen_if(g, alone ? LLVMBuildICmp(B, LLVMIntEQ, warp, gen_u32(g, t.first), "") : NULL);
  LLVMBasicBlockRef prologue = LLVMGetInsertBlock(B), body = gen_block(g, "team.body");
  team_open(g, t, prologue);
  gen_at(g, body);
  g->walk(g, op->regions[r]);
  locs_at(g, op->span);
  LLVMBuildBr(g->team->pro, body);
  team_close(g);
  gen_end_if(g, after);
}

/* The first region behind r that begins with a warpgroup: those between share one, whose registers change for all of them at once. */
static u32
end_of_group(const Op *op, u32 r)
{
  while (++r < op->nregions && block_team(op->regions[r]).first % GROUP_WARPS)
    ;
  return r;
}

/* The warps in front of number `end` go on here, the others at what is returned; NULL: there are none. */
static LLVMBasicBlockRef
part_from(Gen *g, Val warp, u32 end, bool others)
{
  LLVMBasicBlockRef team = gen_block(g, "team"), rest = others ? gen_block(g, "teams") : NULL;
  if (rest)
    LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntULT, warp, gen_u32(g, end), ""), team, rest);
  else
    LLVMBuildBr(B, team);
  gen_at(g, team);
  return rest;
}

static u32
end_of_team(const Op *op, u32 r)
{
  Team t = block_team(op->regions[r]);
  return t.first + t.warps;
}

/* Regions from r to before `end`, of warps that change their registers together. */
static void
lower_regions(Gen *g, const Op *op, u32 r, u32 end, Val warp, LLVMBasicBlockRef done)
{
  const Op *teams = sharing(g, g->func);
  u32 start = teams ? registers_wanted(teams) : 0, own = teams ? registers_asked(teams, r) : 0;
  LLVMBasicBlockRef met = end - r > 1 ? gen_block(g, "group.done") : NULL;
  change_registers(g, start, own);
  for (; r < end; r++) {
    LLVMBasicBlockRef others = met ? part_from(g, warp, end_of_team(op, r), r + 1 < end) : NULL;
    lower_work(g, op, r, warp);
    if (met)
      LLVMBuildBr(B, met);
    if (others)
      gen_at(g, others);
  }
  if (met)
    gen_at(g, met);
  if (!kernel_ends_behind(op)) {
    team_barrier(g);
    change_registers(g, own, start);
  }
  LLVMBuildBr(B, done);
}

void
lower_WARP_SPECIALIZE(Gen *g, const Op *op)
{
  LLVMBasicBlockRef done = gen_block(g, "teams.done");
  Val warp = shuffle_from(g, LLVMBuildLShr(B, g->team->tid, gen_u32(g, LANE_BITS), ""), gen_u32(g, 0));
  for (u32 r = 0, end; r < op->nregions; r = end) {
    end = sharing(g, g->func) ? end_of_group(op, r) : r + 1;
    LLVMBasicBlockRef others = part_from(g, warp, end_of_team(op, end - 1), end < op->nregions);
    lower_regions(g, op, r, end, warp, done);
    if (others)
      gen_at(g, others);
  }
  gen_at(g, done);
}

/* ---- mbarriers ---- */

typedef struct Arrivals { const Op *row; u32 most; } Arrivals;

static void
find_arrivals(Op *op, void *user)
{
  Arrivals *a = user;
  if (op->code == OP_MBARRIER_ARRIVE && buffer_alloc(OPERAND(op, BUFFER, b)) == a->row)
    a->most = max_u32(a->most, running_team(op->block).warps);
}

/* Threads that arrive for a team at the mbarrier of op. */
static u32
arrivals_of_team(Gen *g, const Op *op)
{
  Arrivals a = {buffer_alloc(OPERAND(op, BUFFER, b)), 1};
  func_walk(g->func, find_arrivals, &a);
  return a.most;
}

/* Where it is; space: of which shared memory an instruction has to say that it is, NULL: its own. scope: of an arrival that hands over
 * memory to other programs, NULL: it does not. */
typedef struct Place { Val at; const char *space, *scope; } Place;

static bool
hands_over(Gen *g, const Op *op)
{
  return func_cluster(g->func) > 1 && op_attr(op, AT_SCOPE);
}

static Place
mbarrier_place(Gen *g, const Op *op)
{
  const Value *b = OPERAND(op, BUFFER, b);
  return (Place){addr_shared(g, gen_regs(g, b)[0], 0), func_cluster(g->func) > 1 && buffer_remote(b) ? "::cluster" : NULL,
                 hands_over(g, op) ? ".release.cluster" : NULL};
}

/* A row of ptx.def with an mbarrier and perhaps a number, where `only` holds (NULL: always), which is its last operand. */
static void
emit_where(Gen *g, PtxId id, Val only, Place m, Val n)
{
  PtxArgs a = {.subst = {NULL, m.space, m.scope}, .nin = n ? 2 : 1, .in = {m.at, n}};
  if (only) {
    a.subst[0] = n ? "@$2" : "@$1";
    a.in[a.nin++] = only;
  }
  ptx_emit(g, id, &a, NULL);
}

void
lower_MBARRIER_INIT(Gen *g, const Op *op)
{
  u32 n = (u32)op_int(op, AT_ARRIVALS, 1) * arrivals_of_team(g, op);
  Place at = mbarrier_place(g, op);
  emit_where(g, PTX_MBAR_INIT, dist_leader(g, NULL), at, gen_u32(g, n));
}

/* The leader arrives, and says how many bytes are to come: until it has arrived the phase cannot end. Who arrives besides; NULL: nobody. */
static Val
expect(Gen *g, Place m, u32 bytes, u32 lanes, Val arrives)
{
  Val leads = dist_leader(g, NULL);
  emit_where(g, PTX_MBAR_EXPECT, leads, m, gen_u32(g, bytes));
  return lanes * g->team->range.warps == 1 ? NULL : gen_and(g, arrives, LLVMBuildNot(B, leads, ""));
}

void
lower_MBARRIER_ARRIVE(Gen *g, const Op *op)
{
  u32 lanes = arrivals_of_team(g, op) / g->team->range.warps, bytes = (u32)op_int(op, AT_BYTES, 0);
  Place m = mbarrier_place(g, op);
  Val arrives = team_bits_zero(g, (LANES - 1) & ~(lanes - 1));
  if (bytes && !target_has(g->target, F_MBARRIER_TX)) {
    gen_unsupported(g, op, "an announcement of bytes whose tma_loads do not all stand behind it in its block");
    return;
  }
  if (op_int(op, AT_COPIES, 0))
    emit_where(g, PTX_MBAR_COPIES, NULL, m, NULL);
  team_warp_barrier(g);
  if (bytes)
    arrives = expect(g, m, bytes, lanes, arrives);
  if (!bytes || arrives)
    emit_where(g, PTX_MBAR_ARRIVE, arrives, m, NULL);
}

void
lower_MBARRIER_WAIT(Gen *g, const Op *op)
{
  LLVMBasicBlockRef again = gen_block(g, "wait"), done = gen_block(g, "wait.done");
  Val in[] = {mbarrier_place(g, op).at, gen_regs(g, OPERAND(op, MBARRIER_WAIT, parity))[0]};
  LLVMBuildBr(B, again);
  gen_at(g, again);
  Val over = ptx_value(g, target_has(g->target, F_MBARRIER_TX) ? PTX_MBAR_TRY : PTX_MBAR_TEST, g->i1, 2, in,
                       hands_over(g, op) ? ".acquire.cluster" : NULL, NULL);
  LLVMBuildCondBr(B, over, done, again);
  gen_at(g, done);
}

static void
find_remote_store(Op *op, void *user)
{
  bool *found = user;
  *found |= op->code == OP_SHARED_STORE && buffer_remote(OPERAND(op, SHARED_STORE, b));
}

/* May a program write where another one's asynchronous accesses are? */
static bool
stores_elsewhere(Gen *g)
{
  bool found = false;
  func_walk(g->func, find_remote_store, &found);
  return found && func_cluster(g->func) > 1;
}

/* Targets without asynchronous accesses, or clusters, have nothing to order. What buffers hold is all that is promised to asynchronous
 * accesses (insert_barriers): a fence that is said to be of the block's own shared memory does not wait until all of the GPU sees it. */
void
lower_FENCE(Gen *g, const Op *op)
{
  bool async = !strcmp(op_str(op, AT_KIND, ""), "async");
  const char *memory = async && stores_elsewhere(g) ? "proxy.async.shared::cluster" : "proxy.async.shared::cta";
  PtxArgs a = {.subst = {async ? memory : "mbarrier_init.release.cluster"}};
  if (target_has(g->target, async ? F_TMA : F_CLUSTER))
    ptx_emit(g, PTX_FENCE, &a, NULL);
}
