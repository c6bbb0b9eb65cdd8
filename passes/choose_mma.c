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
 * that leaves some without work. */
#include "internal.h"

typedef struct Chains { Op **dots; u32 n; bool *from; } Chains;   /* from: by value id, derives from a dot */

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
  const Type *a = OPERAND(dot, DOT, a)->type, *acc = op_result(dot)->type;
  if (!target_has(c->target, m->feature))
    return arena_printf(c->scratch, "%s has none for %s", c->target->name, dtype_info[a->dt].name);
  if (m->factor == DT_F32 && !strcmp(op_str(dot, AT_PREC, "tf32"), "ieee"))
    return "they round f32 to tf32, and precision=\"ieee\" asks for all its bits";
  if (tiny(a, acc))
    return arena_printf(c->scratch, "it is so small (%u elements of depth %u) that fma takes less", type_numel(acc), a->shape[a->rank - 1]);
  return NULL;
}

/* The first row that fits; NULL: none, and *why says what is in the way of the first whose types do. */
static const Mma *
choose(Ctx *c, const Op *dot, const char **why)
{
  const Type *a = OPERAND(dot, DOT, a)->type, *b = OPERAND(dot, DOT, b)->type, *acc = op_result(dot)->type;
  const Mma *m;
  *why = NULL;
  for (u32 i = 0; (m = mma_at(i)) != NULL; i++) {
    if (m->factor != a->dt || m->factor != b->dt || m->acc != acc->dt)
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

/* ---- chains ---- */

static void
follow(Op *op, void *user)
{
  Chains *ch = user;
  bool from = op->code == OP_DOT;
  for (u32 i = 0; i < op->noperands; i++)
    from = from || (op_operand(op, i) && ch->from[op_operand(op, i)->id]);
  for (u32 i = 0; i < op->nresults; i++)
    ch->from[op->results[i]->id] = from && type_is_tile(op->results[i]->type);
}

static void
collect(Op *op, void *user)
{
  Chains *ch = user;
  if (op->code == OP_DOT)
    ch->dots[ch->n++] = op;
}

static void
count_dots(Op *op, void *user)
{
  *(u32 *)user += op->code == OP_DOT;
}

/* Both ends of a chain count; a function with one chain and another, unrelated dot is rare enough to treat alike. */
static bool
has_chain(const Chains *ch)
{
  for (u32 i = 0; i < ch->n; i++)
    for (u32 x = 0; x < 2; x++)
      if (ch->from[op_operand(ch->dots[i], x)->id])
        return true;
  return false;
}

static void
choose_func(Ctx *c, Func *f)
{
  u32 n = 0;
  func_walk(f, count_dots, &n);
  if (!n)
    return;
  Chains ch = {.dots = NEW_ARRAY(c->scratch, Op *, n), .from = NEW_ARRAY(c->scratch, bool, f->nvalues)};
  func_walk(f, collect, &ch);
  func_walk(f, follow, &ch);
  bool chained = has_chain(&ch);
  for (u32 i = 0; i < n; i++) {
    i64 grid[MAX_RANK] = {1, 1, 1, 1, 1};
    const char *why;
    const Mma *m = choose(c, ch.dots[i], &why);
    if (!m) {
      if (c->remarks)
        diag(c, ch.dots[i]->span, R_NO_TENSOR_CORE, why);
      continue;
    }
    choose_grid(ch.dots[i], m, block_team(ch.dots[i]->block).warps, chained, grid);
    op_set_str(ch.dots[i], AT_MMA, m->name);
    op_set_ints(ch.dots[i], AT_WARPS, grid, op_result(ch.dots[i])->type->rank);
  }
}

void
pass_choose_mma(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    choose_func(c, m->funcs.data[i]);
}
