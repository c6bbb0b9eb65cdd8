/* cut_buffers.c - buffers without their padding, where a kernel would not fit otherwise.
 *
 * A buffer's layout covers extents that are powers of two: 64 x 576 elements take 64 x 1024. Where a kernel's buffers do not fit that way,
 * those that gain most end behind their last element (the type's `cut`), one after the other until they fit. Code generation leaves out
 * what would reach behind it.
 *
 * How much that gains depends on the layout: rows one behind the other still lie 1024 elements apart. So a buffer for which the compiler
 * chose the layout, and whose bytes nobody reads as another buffer's, gets another. Looked at are those in which it ends first, for every
 * dimension and 32 to 128 bytes of it that stay together, under every swizzle; what an asynchronous copy moves at once must stay together.
 * What the async proxy reaches stays in its panels, and ends behind the last of them whether all fits or not: copies write no padding.
 * Of those that end within an eighth of the first the cheapest to access is taken, and where buffers do not fit even so, the first. A
 * layout that the program gave stays. */
#include "access.h"
#include "buffers.h"
#include "live_buffers.h"

enum { RUN_MOST = 128, RUN_LEAST = 32, LINE = 128, CHUNK = 16, WORD = 4, LOOPS_COUNTED = 3, LOOP_WEIGHT = 8, SLACK = 8 };

/* A type of the buffer, cut; bytes of one buffer of a row; what all accesses cost, a warp's issue slots. */
typedef struct Choice { const Type *type; u32 bytes, cost; } Choice;
typedef struct Cutting {
  Ctx *c;
  Op *alloc;
  const Type *before;
  OpVec accesses, casts;
  VEC(Choice) choices;
  Choice cheap, small;       /* type NULL: there is none with fewer bytes */
} Cutting;

static void
find_users(Op *op, void *user)
{
  Cutting *k = user;
  const Value *b = op_buffer(op);
  if (!b || op->code == OP_SHARED_FREE || buffer_alloc(b) != k->alloc)
    return;
  if (op->code == OP_SHARED_CAST)
    vec_push(k->c->scratch, &k->casts, op);
  else if (!op_is_view(op))
    vec_push(k->c->scratch, &k->accesses, op);
}

/* ---- what a layout costs ---- */

/* The type of a view of the buffer if that had type t. A cast keeps its own. */
static const Type *
view_under(const Cutting *k, const Value *view, const Type *t)
{
  if (view->def->code == OP_SHARED_CAST)
    return view->type;
  return view->def == k->alloc ? t : buffer_view_type(k->c, view->def, view_under(k, op_buffer(view->def), t));
}

/* Of one access, with the buffer of type t; UINT32_MAX: it cannot be. */
static u32
access_cost(const Cutting *k, const Op *op, const Type *t)
{
  const Type *view = view_under(k, op_buffer(op), t), *tile;
  switch (op->code) {
  case OP_SHARED_LOAD: return access_plan(k->c, op_result(op)->type, view, target_has(k->c->target, F_LDMATRIX)).cost;
  case OP_SHARED_STORE: return access_plan(k->c, OPERAND(op, SHARED_STORE, x)->type, view, false).cost;
  case OP_ASYNC_COPY:
    tile = OPERAND(op, ASYNC_COPY, p)->type;
    return buffer_copy_fits(k->c, access_layout(k->c, tile, view), view->layout, (u32)op_int(op, AT_VEC, 1)) ? 0 : UINT32_MAX;
  default: return 0;         /* by index: one element at a time, anywhere */
  }
}

static u32
all_costs(const Cutting *k, const Type *t)
{
  u32 sum = 0;
  for (u32 i = 0; i < k->accesses.len; i++) {
    u32 cost = access_cost(k, k->accesses.data[i], t), depth = block_loop_depth(k->accesses.data[i]->block);
    for (u32 d = 0; d < depth && d < LOOPS_COUNTED && cost != UINT32_MAX; d++)
      cost *= LOOP_WEIGHT;
    if (cost == UINT32_MAX)
      return cost;
    sum += cost;
  }
  return sum;
}

/* ---- choosing ---- */

/* Is it near enough to the fewest bytes so far? */
static bool
near(const Cutting *k, u32 bytes)
{
  return bytes < type_shared_stride(k->before) && (!k->small.type || bytes <= k->small.bytes + k->small.bytes / SLACK);
}

static void
consider(Cutting *k, const Type *t)
{
  Choice x = {t, type_shared_stride(t), 0};
  if (!near(k, x.bytes) || (x.cost = all_costs(k, t)) == UINT32_MAX)
    return;
  if (!k->small.type || x.bytes < k->small.bytes || (x.bytes == k->small.bytes && x.cost < k->small.cost))
    k->small = x;
  vec_push(k->c->scratch, &k->choices, x);
}

static void
choose_cheap(Cutting *k)
{
  k->cheap = k->small;
  for (u32 i = 0; i < k->choices.len; i++) {
    const Choice *x = &k->choices.data[i];
    if (near(k, x->bytes) && (x->cost < k->cheap.cost || (x->cost == k->cheap.cost && x->bytes < k->cheap.bytes)))
      k->cheap = *x;
  }
}

/* The pieces that are exclusive-ored are 16 bytes, as ldmatrix and wide accesses take them, or words. */
static void
consider_run(Cutting *k, const Type *t, int fast, u32 run)
{
  u32 bytes = dtype_bytes(t->dt);
  for (u32 piece = CHUNK; piece >= WORD; piece /= CHUNK / WORD)
    for (u32 phases = LINE / piece; phases; phases /= 2)
      for (u32 per = 1; per <= 4 && (per == 1 || phases > 1); per *= 2) {
        LayoutSwizzle s = {LINE / bytes, max_u32(1, piece / bytes), per, phases};
        const Layout *l = layout_compact(k->c, t->rank, t->shape, fast, run, &s);
        const Type *cut = type_shared_cut(k->c, type_with_layout(k->c, t, l), layout_reach(l, t->shape));
        if (!near(k, type_shared_stride(cut)))
          return;            /* a swizzle does not change that */
        consider(k, cut);
      }
}

static void
consider_layouts(Cutting *k, const Type *t)
{
  for (u32 run = RUN_MOST; run >= RUN_LEAST; run /= 2)
    for (int d = t->rank - 1; d >= 0; d--)
      consider_run(k, t, d, max_u32(1, run / dtype_bytes(t->dt)));
}

/* The alloc, or the cast, that gave a buffer its type. */
static const Op *
typed_by(const Value *buffer)
{
  while (op_is_view(buffer->def) && buffer->def->code != OP_SHARED_CAST)
    buffer = op_buffer(buffer->def);
  return buffer->def;
}

/* The type t of what `op` gives, cut. Casts of it are whole buffers in the same bytes: these must be as many as they take. */
static const Type *
cut_for_casts(const Cutting *k, const Op *op, const Type *t)
{
  u32 cut = layout_reach(t->layout, t->alloc_shape);
  for (u32 i = 0; i < k->casts.len; i++) {
    const Op *cast = k->casts.data[i];
    if (typed_by(op_buffer(cast)) == op)
      cut = max_u32(cut, type_shared_stride(cut_for_casts(k, cast, op_result(cast)->type)) / dtype_bytes(t->dt));
  }
  return type_shared_cut(k->c, t, cut);
}

/* Is a row of buffers read as one? Then these lie where that one's layout has their elements. */
static bool
is_joined(const Cutting *k)
{
  for (u32 i = 0; i < k->casts.len; i++)
    if (op_buffer(k->casts.data[i])->type->count)
      return true;
  return false;
}

static Cutting
plan_cut(Ctx *c, Func *f, Op *alloc)
{
  const Type *t = op_result(alloc)->type;
  Cutting k = {.c = c, .alloc = alloc, .before = t};
  if (!type_padded(t) || buffer_in_panels(op_result(alloc)))
    return k;
  func_walk(f, find_users, &k);
  if (is_joined(&k))
    return k;
  consider(&k, cut_for_casts(&k, alloc, t));
  if (!k.casts.len && !op_int(alloc, AT_GIVEN, 0))
    consider_layouts(&k, t);
  choose_cheap(&k);
  return k;
}

/* ---- cutting ---- */

static void
retype(Op *op, void *user)
{
  const Cutting *k = user;
  if (!op_is_view(op) || buffer_alloc(op_buffer(op)) != k->alloc)
    return;
  Value *v = op_result(op);
  v->type = op->code == OP_SHARED_CAST ? cut_for_casts(k, op, v->type) : buffer_view_type(k->c, op, op_buffer(op)->type);
}

static u32
gain(const Cutting *k, const Choice *x)
{
  const Type *t = op_result(k->alloc)->type;
  return x->type ? (type_shared_stride(t) - x->bytes) * max_u32(1, t->count) : 0;
}

static void
remark(const Cutting *k)
{
  const Type *t = op_result(k->alloc)->type;
  if (k->c->remarks && t != k->before)
    diag(k->c, k->alloc->span, R_CUT, type_shared_stride(t), type_shared_stride(k->before));
}

typedef VEC(Cutting) Cuttings;

/* Cuts one buffer, that which gains most; false: none gains anything. */
static bool
cut_one(Func *f, Cuttings *all, bool small)
{
  Cutting *best = NULL;
  u32 most = 0;
  for (u32 i = 0; i < all->len; i++) {
    Cutting *k = &all->data[i];
    u32 gained = gain(k, small ? &k->small : &k->cheap);
    best = gained > most ? k : best;
    most = max_u32(most, gained);
  }
  if (!best)
    return false;
  op_result(best->alloc)->type = small ? best->small.type : best->cheap.type;
  func_walk(f, retype, best);
  return true;
}

static bool
takes_boxes(const Cutting *k)
{
  for (u32 i = 0; i < k->accesses.len; i++)
    if (k->accesses.data[i]->code == OP_TMA_LOAD)
      return true;
  return false;
}

/* Of a buffer in panels whose rows alone are padded the panels that are all padding, the last ones, are no part of it; nor are the last
 * rows of a single panel into which boxes are copied. */
static void
cut_panels(Op *op, void *user)
{
  Cutting k = {.c = user, .alloc = op};
  Value *b = op->code == OP_SHARED_ALLOC ? op_result(op) : NULL;
  PanelForm form;
  if (!b || b->type->cut || !type_padded(b->type) || !buffer_in_panels(b) ||
      !layout_panel_form(b->type->layout, dtype_bytes(b->type->dt), &form))
    return;
  u32 row = b->type->shape[form.fast] * dtype_bytes(b->type->dt), used = row / form.width;
  func_walk(op->block->func, find_users, &k);
  bool one = form.panels == 1 && b->type->rank == 2 && takes_boxes(&k);
  for (int d = 0; d < b->type->rank && !one; d++)
    if (d != form.fast && !is_pow2(b->type->shape[d]))
      return;
  if (k.casts.len || row % form.width || (used == form.panels && !one))
    return;
  u32 panels = used * form.panel_bytes / dtype_bytes(b->type->dt);
  b->type = type_shared_cut(k.c, b->type, one ? layout_reach(b->type->layout, b->type->shape) : panels);
  func_walk(op->block->func, retype, &k);
}

void
cut_off_panels(Ctx *c, Func *f)
{
  func_walk(f, cut_panels, c);
}

bool
cut_buffers(Ctx *c, Func *f, u32 most)
{
  Cuttings all = {0};
  LiveBuffers live = live_buffers(c, f);
  bool any = false;
  if (live.bytes <= most)
    return false;
  for (u32 i = 0; i < live.ranges.len; i++)
    vec_push(c->scratch, &all, plan_cut(c, f, live.ranges.data[i].op));
  for (u32 small = 0; small < 2; small++)
    while (live.bytes > most && cut_one(f, &all, small)) {
      any = true;
      live = live_buffers(c, f);
    }
  for (u32 i = 0; i < all.len; i++)
    remark(&all.data[i]);
  return any;
}
