/* wgmma.c - products of warpgroups: what hardware has of them, and who may use an accumulator that is under way (PTX ISA, "wgmma").
 *
 * An instruction multiplies 64 rows by 32 bytes of K; a warpgroup is four warps, the first a multiple of four. Larger tiles are several
 * instructions: rows go round the team's warpgroups, and where there are too few rows for all, some of them share the columns, each a
 * half, a quarter, ... of them, side by side. Columns are multiples of 8, up to 256 an instruction. b, and a unless it is in
 * registers, are read from panels (layout_panels.c): 16-bit elements along K or across it, others along K alone.
 *
 * A sparse instruction has 32 bytes of a as well, and of b along K 64. Metadata stays in registers: of each warp's 16 rows that of a sparse
 * mma.sync (layout_mma_meta). Sparse products share no columns. */
#include "wgmma.h"
#include "sparse.h"

enum { N_STEP = 8, K_BYTES = 32, N_MOST = 256, UNIT = 16 };

/* ---- shapes and types ---- */

static const char *
team_error(Ctx *c, Team t)
{
  if (t.warps % WGMMA_GROUP == 0 && t.first % WGMMA_GROUP == 0)
    return NULL;
  return arena_printf(c->scratch, "warpgroups are four warps, the first a multiple of four; this team has %u from warp %u on", t.warps,
                      t.first);
}

static const char *
meta_error(Ctx *c, const Type *a, const Type *meta, const Type *b)
{
  return type_is_tile(meta) ? sparse_error(c, a, meta, b) : "metadata is a tile";
}

static const char *
operands_error(Ctx *c, const Type *a, const Type *meta, const Type *b)
{
  if (!type_is_shared(b))
    return "b is a buffer in shared memory";
  if ((!type_is_tile(a) && !type_is_shared(a)) || type_is_ptr(a))
    return "a is a tile or a buffer in shared memory";
  if ((type_is_shared(a) && a->count) || b->count)
    return "an operand is one buffer, not a row of them";
  if (a->rank != 2 || b->rank != 2)
    return "both operands have two dimensions";
  if (meta)
    return meta_error(c, a, meta, b);
  if (a->shape[1] != b->shape[0])
    return arena_printf(c->scratch, "the columns of a (%u) must be the rows of b (%u)", a->shape[1], b->shape[0]);
  if (!dot_factors_fit(a->dt, b->dt) || a->dt == DT_F64 || !dot_sum_fits(a->dt, wgmma_sum(a->dt)))
    return arena_printf(c->scratch, "there is no product of %s by %s", dtype_info[a->dt].name, dtype_info[b->dt].name);
  return NULL;
}

DType
wgmma_sum(DType factor)
{
  return dtype_is_int(factor) ? DT_I32 : DT_F32;
}

WgmmaGrid
wgmma_grid(Team t, u32 rows)
{
  u32 groups = t.warps / WGMMA_GROUP, along = groups;
  while (along % 2 == 0 && rows % (WGMMA_ROWS * along))
    along /= 2;
  return (WgmmaGrid){along, groups / along};
}

static const char *
extents_error(Ctx *c, Team t, const Type *a, const Type *meta, const Type *b)
{
  u32 bytes = a->shape[1] * dtype_bytes(a->dt), n = b->shape[1];
  WgmmaGrid grid = wgmma_grid(t, a->shape[0]);
  if (a->shape[0] % (WGMMA_ROWS * grid.rows))
    return arena_printf(c->scratch, "the rows of a (%u) are no multiple of %u", a->shape[0], WGMMA_ROWS * grid.rows);
  if (n % N_STEP)
    return arena_printf(c->scratch, "the columns of b (%u) are no multiple of %u", n, N_STEP);
  if (grid.columns > 1 && meta)
    return arena_printf(c->scratch, "%u rows are for %u of the team's %u warpgroups, and sparse ones share no columns", a->shape[0],
                        grid.rows, t.warps / WGMMA_GROUP);
  if (grid.columns > 1 && (!is_pow2(n) || n < N_STEP * grid.columns))
    return arena_printf(c->scratch,
                        "%u rows are for %u of the team's %u warpgroups, and the columns of b (%u), which %u share, "
                        "no power of two from %u on",
                        a->shape[0], grid.rows, t.warps / WGMMA_GROUP, n, grid.columns, N_STEP * grid.columns);
  if (bytes % K_BYTES)
    return arena_printf(c->scratch, "%u elements of K are %u bytes, no multiple of %u", a->shape[1], bytes, K_BYTES);
  return NULL;
}

const char *
wgmma_error(Ctx *c, Team t, const Type *a, const Type *meta, const Type *b)
{
  const char *why = team_error(c, t);
  why = why ? why : operands_error(c, a, meta, b);
  return why ? why : extents_error(c, t, a, meta, b);
}

const char *
wgmma_sum_error(Ctx *c, const Type *a, const Type *b, const Type *acc)
{
  if (!type_is_tile(acc) || type_is_ptr(acc) || acc->rank != 2 || acc->shape[0] != a->shape[0] || acc->shape[1] != b->shape[1])
    return arena_printf(c->scratch, "the accumulator is %s, not %u x %u elements", type_str(c, acc), a->shape[0], b->shape[1]);
  if (!dot_sum_fits(a->dt, acc->dt))
    return arena_printf(c->scratch, "products of %s are not summed in %s", dtype_info[a->dt].name, dtype_info[acc->dt].name);
  return NULL;
}

/* ---- columns of an instruction ---- */

u32
wgmma_columns(DType factor, u32 rest)
{
  u32 n = min_u32(rest, N_MOST);
  return dtype_is_int(factor) && n > 4 * N_STEP ? n / (2 * N_STEP) * (2 * N_STEP) : n;
}

u32
wgmma_depth(DType factor)
{
  return K_BYTES / dtype_bytes(factor);
}

/* ---- buffers ---- */

const char *
wgmma_side(Ctx *c, const Type *t, int k, WgmmaSide *out)
{
  PanelForm *f = &out->form;
  if (t->pad_every || !layout_panel_form(t->layout, dtype_bytes(t->dt), f) || (!f->swizzle && f->width != UNIT))
    return "its buffer is not in panels (layout=panels())";
  if (type_shared_stride(t) % layout_panel_align(f))
    return arena_printf(c->scratch, "buffers of %u bytes do not begin where a swizzle of %u bytes does, every %u bytes",
                        type_shared_stride(t), f->swizzle, layout_panel_align(f));
  out->k_major = f->fast == k;
  if (!out->k_major && dtype_bits(t->dt) != 16)
    return arena_printf(c->scratch, "elements of %s lie along K, those of this buffer across it", dtype_info[t->dt].name);
  return NULL;
}

const Layout *
wgmma_sum_layout(Ctx *c, Team t, const Type *acc)
{
  WgmmaGrid grid = wgmma_grid(t, acc->shape[0]);
  return layout_warpgroups(c, acc->shape, grid.rows * WGMMA_GROUP, grid.columns);
}

const Layout *
wgmma_left_layout(Ctx *c, Team t, const Type *a)
{
  WgmmaGrid grid = wgmma_grid(t, a->shape[0]);
  return layout_warpgroups_operand(c, 0, a->shape, grid.rows * WGMMA_GROUP, grid.columns, dtype_bits(a->dt));
}

const Layout *
wgmma_meta_layout(Ctx *c, Team t, const Type *a, const Type *meta)
{
  return layout_mma_meta(c, 2, meta->shape, (u32[]){t.warps, 1}, dtype_bits(a->dt));
}

const char *
wgmma_placed_error(Ctx *c, const Op *op)
{
  const Type *a = OPERAND(op, WGMMA, a)->type, *b = OPERAND(op, WGMMA, b)->type;
  WgmmaSide side;
  const char *why = type_is_shared(a) ? wgmma_side(c, a, 1, &side) : NULL;
  if (why)
    return arena_printf(c->scratch, "a: %s", why);
  why = wgmma_side(c, b, 0, &side);
  if (!why && OPERAND(op, WGMMA, meta) && side.k_major && side.form.swizzle && side.form.width < 2 * K_BYTES)
    why = "panels of 32 bytes are no wider than half of a sparse product's K";
  return why ? arena_printf(c->scratch, "b: %s", why) : NULL;
}

/* ---- accumulators under way ---- */

static bool
may_take(const Op *op, u32 i)
{
  switch (op->code) {
  case OP_WGMMA: return i == SLOT(WGMMA, acc);
  case OP_WGMMA_WAIT: case OP_WHILE: return true;
  case OP_FOR: return i >= SLOT(FOR, inits);
  case OP_YIELD: return !op->block->parent || !op_on_elements(op->block->parent);
  case OP_CONDITION: return i >= SLOT(CONDITION, xs);
  default: return false;
  }
}

/* Can both ops run, one after the other? Not in two regions of one `if`. */
static bool
both_run(const Op *a, const Op *b)
{
  for (const Block *x = a->block; x->parent; x = x->parent->block)
    for (const Block *y = b->block; y->parent; y = y->parent->block)
      if (x->parent == y->parent)
        return x == y || x->parent->code != OP_IF;
  return true;
}

/* Is op in a loop that begins behind v? */
static bool
runs_again(const Op *op, const Value *v)
{
  for (const Block *b = op->block; b->parent && b != value_block(v); b = b->parent->block)
    if (op_is_loop(b->parent))
      return true;
  return false;
}

const char *
pending_error(const Op *op, u32 i)
{
  const Value *v = op_operand(op, i);
  if (!v || !v->type->pending)
    return NULL;
  if (!may_take(op, i))
    return "this accumulator is under way: wgmma_wait makes a value of it";
  if (runs_again(op, v))
    return "this accumulator is used again in each iteration: one under way is carried by the loop";
  for (const Use *u = v->uses; u; u = u->next)
    if (u != &op->operands[i] && both_run(u->user, op))
      return "this accumulator is used twice: products add to it where it is";
  return NULL;
}

/* ---- buffers that a product reads ---- */

bool
wgmma_ends_reads(const Op *op, u32 newer)
{
  return op->code == OP_WGMMA_WAIT && (i64)newer >= op_int(op, AT_PENDING, 0);
}

/* The same buffer: the same view, or the memory of which it is a part, but for other buffers of a row. */
static bool
hits(const Value *v, const Value *read)
{
  const Value *x = read;
  while (x && x != v)
    x = x->def && op_is_view(x->def) ? op_buffer(x->def) : NULL;
  return x;
}

static bool
spoils(const Op *op, const Value *read)
{
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    if (v && type_is_shared(v->type) && op_effect(op, i) & (FX_WRITE | FX_FREE) && hits(v, read))
      return true;
  }
  return false;
}

const Op *
wgmma_spoiler(const Op *op)
{
  u32 newer = 0;
  for (const Op *x = op->next; x; x = x->next) {
    if (wgmma_ends_reads(x, newer))
      return NULL;
    newer += x->code == OP_WGMMA;
    for (u32 i = 0; i <= SLOT(WGMMA, b); i++)
      if (type_is_shared(op_operand(op, i)->type) && spoils(x, op_operand(op, i)))
        return x;
  }
  return NULL;
}
