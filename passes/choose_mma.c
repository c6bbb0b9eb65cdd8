/* choose_mma.c - pick a tensor-core instruction and a grid of warps for each dot.
 * Needs phase tile; keeps it. Sets `mma` and `warps` where an instruction fits; a dot without them is
 * computed with fma.
 *
 * An instruction fits when the target has it and the types agree. Extents do not matter: rows and columns beyond them are
 * padding that nobody reads, and depth beyond K is cleared on the way into the instruction. That wastes work, but one
 * instruction is 1024 to 4096 products for the price of a few, so fma wins only for the smallest dots: TINY says which.
 *
 * The grid decides how often an operand is read: wm x wn warps read A wn times and B wm times. The grid of
 * least traffic wins, except that dots in a chain (one's result goes into another's operand, as in attention)
 * put all warps along M: then a row stays in one warp, the first result becomes the second operand without
 * leaving it, and reductions along a row need no other warp. Batches share nothing, so warps go along them first, unless
 * that leaves some without work.
 *
 * Products of warpgroups (ir/wgmma.c) are made by pipeline_loops, of dots whose operands it leaves in shared memory: which loads it can
 * copy is known behind placement. Dots that are made for that (ir/wgmma_dot.c) are marked here (`warpgroup`) and get all warps along M, as
 * such products have them. What is marked and finds no buffers stays what it is. */
#include "internal.h"
#include "pipeline.h"
#include "wgmma.h"

typedef struct Chains {      /* of tiles, by value id */
  u32 *parent;               /* union-find: its family */
  bool *dots, *chained;      /* of a family: some dot's result is in it; it is a chain */
  bool changed;
} Chains;

/* Too little for a tensor core: a lane of one warp makes its part of the result in so few fma (docs/plan.md has the counts). */
enum { TINY = 2 };

static bool
tiny(const Type *a, const Type *acc)
{
  return a->shape[a->rank - 1] * ((type_numel(acc) + 31) / 32) <= TINY;
}

/* Why an instruction whose types fit is not for this dot, or NULL. */
static const char *
obstacle(Ctx *c, const Op *dot, const Mma *m)
{
  const Type *a = dot_a(dot)->type, *acc = op_result(dot)->type;
  if (!target_has(c->target, m->feature))
    return arena_printf(c->scratch, "%s has none for %s", c->target->name, dtype_info[a->dt].name);
  if (m->factor[0] == DT_F32 && !strcmp(op_str(dot, AT_PREC, "tf32"), "ieee"))
    return "they round f32 to tf32, and precision=\"ieee\" asks for all its bits";
  if (!m->sparse && tiny(a, acc))
    return arena_printf(c->scratch, "it is so small (%u elements of depth %u) that fma takes less", type_numel(acc), a->shape[a->rank - 1]);
  return NULL;
}

/* The first row that fits; NULL: none, and *why says what is in the way of the first whose types do. */
static const Mma *
instruction_for(Ctx *c, const Op *dot, const char **why)
{
  const Type *a = dot_a(dot)->type, *b = dot_b(dot)->type, *acc = op_result(dot)->type;
  bool sparse = dot->code == OP_DOT_SPARSE;
  const Mma *m;
  *why = NULL;
  for (u32 i = 0; (m = mma_at(i)) != NULL; i++) {
    if (m->sparse != sparse || m->factor[0] != a->dt || m->factor[1] != b->dt || m->acc != acc->dt)
      continue;
    const char *bad = obstacle(c, dot, m);
    if (!bad)
      return m;
    *why = *why ? *why : bad;
  }
  if (!*why)
    *why = arena_printf(c->scratch, "there is no instruction for %s with sums in %s", dtype_info[a->dt].name, dtype_info[acc->dt].name);
  return NULL;
}

/* Elements read per step of K by all warps; copies of a too small tile count as if each warp had its own. */
static u32
traffic(u32 wm, u32 wn, u32 rows, u32 cols, const Mma *m)
{
  u32 per_m = rows / wm > m->m ? rows / wm : m->m, per_n = cols / wn > m->n ? cols / wn : m->n;
  return wm * wn * (per_m + per_n);
}

/* Warps of one matrix; gives elements of the result that a warp makes of it, copies counted. */
static u64
matrix_grid(const Type *acc, const Mma *m, u32 warps, bool chained, i64 *grid)
{
  int at = acc->rank - 2;
  u32 rows = next_pow2(acc->shape[at]), cols = next_pow2(acc->shape[at + 1]);
  u32 best = UINT32_MAX, tall = warps;
  while (chained && tall > 1 && tall * m->m > rows)
    tall /= 2;
  for (u32 wm = tall; wm >= 1 && !(chained && wm < tall); wm /= 2) {
    u32 cost = traffic(wm, warps / wm, rows, cols, m);
    if (cost >= best)
      continue;
    best = cost;
    grid[at] = wm;
    grid[at + 1] = warps / wm;
  }
  u32 per_m = rows / (u32)grid[at], per_n = cols / (u32)grid[at + 1];
  return (u64)(per_m > m->m ? per_m : m->m) * (per_n > m->n ? per_n : m->n);
}

/* Up to n warps along batches, the first dimensions first; gives matrices a warp works on. */
static u32
batch_grid(const Type *acc, u32 *n, i64 *grid)
{
  u32 left = *n, matrices = 1;
  for (int d = 0; d < acc->rank - 2; d++) {
    u32 most = next_pow2(acc->shape[d]);
    grid[d] = most < left ? most : left;
    left /= (u32)grid[d];
    matrices *= (acc->shape[d] + (u32)grid[d] - 1) / (u32)grid[d];
  }
  *n /= left;
  return matrices;
}

static void
choose_grid(const Op *dot, const Mma *m, u32 warps, bool chained, i64 *grid)
{
  const Type *acc = op_result(dot)->type;
  u64 least = UINT64_MAX;
  for (u32 want = warps; want; want /= 2) {
    i64 try[MAX_RANK];
    u32 along = want;
    u64 work = batch_grid(acc, &along, try);
    work *= matrix_grid(acc, m, warps / along, chained, try);
    if (work < least)
      memcpy(grid, try, sizeof try);
    least = work < least ? work : least;
  }
}

/* ---- chains ----
 * Tiles that are made from dots' results fall into families: an op's result is of the family of such operands, and what a loop or an `if`
 * hands on is one with what it becomes. A family in which a dot takes one of these tiles as a factor is a chain. */

static u32
family(const Chains *ch, const Value *v)
{
  u32 at = v->id;
  while (ch->parent[at] != at)
    at = ch->parent[at] = ch->parent[ch->parent[at]];
  return at;
}

static bool
made_from_dot(const Chains *ch, const Value *v)
{
  return v && ch->dots[family(ch, v)];
}

static void
unite(Chains *ch, const Value *a, const Value *b)
{
  u32 x = family(ch, a), y = family(ch, b);
  if (x == y || !type_is_tile(a->type) || !type_is_tile(b->type))
    return;
  ch->parent[y] = x;
  ch->dots[x] |= ch->dots[y];
  ch->changed = true;
}

static void
relate(Chains *ch, const Value *v, const Value *from)
{
  if (made_from_dot(ch, from))
    unite(ch, from, v);
}

/* The places of value k that a loop or an `if` hands on. */
static void
relate_handed_on(Chains *ch, const Op *op, u32 k)
{
  for (u32 r = 0; r < op->nregions; r++) {
    relate(ch, op->results[k], region_yields(op, r, k));
    if (op_is_loop(op))
      unite(ch, op->results[k], loop_arg(op, r, k));
  }
  if (op_is_loop(op))
    relate(ch, op->results[k], loop_init(op, k));
}

static void
relate_operands(Op *op, void *user)
{
  Chains *ch = user;
  for (u32 k = 0; k < op->nresults; k++)
    if (op_is_loop(op) || op->code == OP_IF)
      relate_handed_on(ch, op, k);
    else
      for (u32 i = 0; i < op->noperands; i++)
        relate(ch, op->results[k], op_operand(op, i));
}

static void
find_chains(Ctx *c, Func *f, OpVec dots, Chains *ch)
{
  *ch = (Chains){.parent = NEW_ARRAY(c->scratch, u32, f->nvalues), .dots = NEW_ARRAY(c->scratch, bool, f->nvalues),
                 .chained = NEW_ARRAY(c->scratch, bool, f->nvalues), .changed = true};
  for (u32 i = 0; i < f->nvalues; i++)
    ch->parent[i] = i;
  for (u32 i = 0; i < dots.len; i++)
    ch->dots[op_result(dots.data[i])->id] = true;
  while (ch->changed) {      /* what goes around a loop is known behind it */
    ch->changed = false;
    func_walk(f, relate_operands, ch);
  }
  for (u32 i = 0; i < dots.len; i++) {
    const Op *dot = dots.data[i];
    if (made_from_dot(ch, dot_a(dot)) || made_from_dot(ch, dot_b(dot)))
      ch->chained[family(ch, op_result(dot))] = true;
  }
}

static void
choose_dot(Ctx *c, const AxisInfo *axes, Op *dot, bool chained)
{
  Team team = block_team(dot->block);
  i64 grid[MAX_RANK] = {1, 1, 1, 1, 1};
  const char *why;
  const Mma *m = instruction_for(c, dot, &why);
  if (!m) {
    if (c->remarks)
      diag(c, dot->span, R_NO_TENSOR_CORE, why);
    return;
  }
  why = axes ? wgmma_dot_error(c, axes, dot) : "";
  if (why && axes && !wgmma_dot_by_threads(c, axes, dot)) {
    stored_dot_rounded(c, dot);
    return;
  }
  if (!why) {
    WgmmaGrid groups = wgmma_grid(team, op_result(dot)->type->shape[0]);
    grid[0] = groups.rows * WGMMA_GROUP;
    grid[1] = groups.columns;
    if (groups.columns > 1)
      op_set_int(dot, AT_GROUPED, 1);
    op_set_int(dot, AT_WARPGROUP, wgmma_dot_loop(dot) ? DOT_COPIED : DOT_STORED);
    for (u32 i = 0; i < SLOT(DOT, acc) && wgmma_dot_rounded(c, dot); i++)
      op_set_int(wgmma_dot_copy(op_operand(dot, i)), AT_TF32, 1);
  } else {
    choose_grid(dot, m, team.warps, chained, grid);
  }
  if (why && *why && c->remarks && wgmma_dot_loop(dot))
    diag(c, dot->span, R_NO_WARPGROUP, why);
  op_set_str(dot, AT_MMA, m->name);
  op_set_ints(dot, AT_WARPS, grid, op_result(dot)->type->rank);
}

static void
choose_func(Ctx *c, Func *f)
{
  OpVec dots = func_ops(c, f, OP_DOT), sparse = func_ops(c, f, OP_DOT_SPARSE);
  for (u32 i = 0; i < sparse.len; i++)
    vec_push(c->scratch, &dots, sparse.data[i]);
  if (!dots.len)
    return;
  const AxisInfo *axes = target_has(c->target, F_WGMMA) ? analyse_axes(f) : NULL;
  Chains ch;
  find_chains(c, f, dots, &ch);
  for (u32 i = 0; i < dots.len; i++)
    choose_dot(c, axes, dots.data[i], ch.chained[family(&ch, op_result(dots.data[i]))]);
}

void
pass_choose_mma(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    choose_func(c, m->funcs.data[i]);
}
