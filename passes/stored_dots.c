/* stored_dots.c - dots outside of loops with stages become products of warpgroups.
 * Needs phase placed, behind pipeline_loops; keeps it. Drops the marks of all dots (`warpgroup`): what has one still stays what it is.
 *
 * A factor comes to mma.sync by way of shared memory, as a rule: it is stored there as it was read or made, and read as fragments, by every
 * warp that needs them. Warpgroups read it where it is stored, in panels, so nothing takes registers for it, nor instructions:
 *
 *   x = convert_layout p; y = convert_layout q          b = shared_alloc; shared_store b, p;  c = shared_alloc; shared_store c, q
 *   r = dot x, y, acc                            ==>    s = wgmma b, c, pending acc;  r = wgmma_wait s;  shared_free b, c
 *
 * Dots in loops with stages, of f32 that threads round, become such products before placement already (stored_dot_rounded): a tile that is
 * stored has any layout, so each warp reads its part of b alone, where a dot's factor would be all of b in each.
 *
 * Which dots: choose_mma has marked them (ir/wgmma_dot.c). A factor a that is in registers as fragments stays there. What a loop around the
 * dot does not change is stored in front of the loop. Where buffers take more memory than there is left, the dot stays what it is. */
#include "pipeline.h"
#include "scratch.h"
#include "wgmma.h"

typedef struct Stored {
  Ctx *c;
  Op *dot;
  VEC(Value *) buffers;
} Stored;

/* The buffer for a factor, in panels; NULL: there is none. */
static const Type *
buffer_for(Ctx *c, Value *factor, int k)
{
  const Value *source = wgmma_dot_source(factor, &k);
  return warpgroup_buffer(c, source->type, k);
}

/* The op that holds the dot, or is it, in front of which v is stored: outside of the loops that do not change v. */
static Op *
place_for(const Stored *s, const Value *v)
{
  Op *at = s->dot;
  while (at->block->parent && op_is_loop(at->block->parent) && !op_inside(v->def, at->block->parent))
    at = at->block->parent;
  return at;
}

/* The view of a factor's buffer as the product takes it, at b; the buffer is filled in front of the dot. */
static Value *
view_of(Stored *s, Builder *b, Value *factor, const Type *buffer)
{
  Value *v = wgmma_dot_source(factor, NULL);
  Builder front = builder_before(place_for(s, v));
  front.span = s->dot->span;
  Value *shared = ir_shared_alloc(&front, buffer);
  shared->name = v->name;
  ir_shared_store(&front, shared, v);
  vec_push(s->c->scratch, &s->buffers, shared);
  return warpgroup_view(b, factor, shared);
}

/* Does the factor come to the dot by way of shared memory? */
static bool
passes_shared(Ctx *c, const Value *v)
{
  for (; op_is(v, OP_PERMUTE) || op_is(v, OP_CONVERT_LAYOUT); v = op_operand(v->def, 0)) {
    ConvertPlan plan = {0};
    if (v->def->code == OP_CONVERT_LAYOUT)
      scratch_convert_plan(c, v->def, &plan);
    if (v->def->code == OP_CONVERT_LAYOUT && plan.kind == CONVERT_SHARED)
      return true;
  }
  return false;
}

/* Bytes of all buffers, as if all were live at once. */
static void
count_bytes(Op *op, void *user)
{
  if (op->code == OP_SHARED_ALLOC)
    *(u64 *)user += type_shared_bytes(op_result(op)->type);
}

static void
free_buffers(Stored *s)
{
  for (u32 i = 0; i < s->buffers.len; i++) {
    Value *buffer = s->buffers.data[i];
    Builder b = builder_after(op_ancestor_in(s->dot, value_block(buffer)));
    b.span = s->dot->span;
    op_create(&b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  }
}

static void
store_dot(Ctx *c, Func *f, Op *dot)
{
  Stored s = {.c = c, .dot = dot};
  Value *a = OPERAND(dot, DOT, a), *y = OPERAND(dot, DOT, b);
  const Type *ta = passes_shared(c, a) ? buffer_for(c, a, 1) : NULL, *tb = passes_shared(c, y) ? buffer_for(c, y, 0) : NULL;
  u64 bytes = 0;
  func_walk(f, count_bytes, &bytes);
  bytes += (ta ? type_shared_bytes(ta) : 0) + (tb ? type_shared_bytes(tb) : 0);
  if (!tb || bytes > c->target->shared_max || (!ta && wgmma_promotes(dot) && a->type->shape[1] > wgmma_promotes(dot)))
    return;
  Builder b = builder_before(dot);
  OpVec waits = {0};
  b.span = dot->span;
  Value *right = view_of(&s, &b, y, tb), *left = ta ? view_of(&s, &b, a, ta) : a;
  Value *sum = warpgroup_sum(&b, dot, left, right, &waits);
  sum->name = op_result(dot)->name;
  value_replace_uses(op_result(dot), sum);
  free_buffers(&s);
  op_remove(dot);
}

/* ---- f32 that is rounded ---- */

void
stored_dot_rounded(Ctx *c, Op *dot)
{
  Builder front = builder_before(dot->block->parent), b = builder_before(dot);
  int k = 0;
  front.span = b.span = dot->span;
  Value *factor = OPERAND(dot, DOT, b), *source = wgmma_dot_source(factor, &k);
  Value *left = ir_unary(&front, OP_ROUND_TF32, OPERAND(dot, DOT, a));
  Value *buffer = ir_shared_alloc(&b, warpgroup_buffer(c, source->type, k));
  buffer->name = source->name;
  ir_shared_store(&b, buffer, ir_unary(&b, OP_ROUND_TF32, source));
  OpVec waits = {0};
  Value *sum = warpgroup_sum(&b, dot, left, warpgroup_view(&b, factor, buffer), &waits);
  op_create(&b, OP_SHARED_FREE, 1, &buffer, 0, NULL, 0);
  sum->name = op_result(dot)->name;
  value_replace_uses(op_result(dot), sum);
  op_remove(dot);
}

void
pass_stored_dots(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec dots = func_ops(c, m->funcs.data[i], OP_DOT);
    for (u32 k = 0; k < dots.len; k++) {
      i64 mark = op_int(dots.data[k], AT_WARPGROUP, 0);
      op_remove_attr(dots.data[k], AT_WARPGROUP);
      if (mark == DOT_STORED)
        store_dot(c, m->funcs.data[i], dots.data[k]);
    }
    OpVec sparse = func_ops(c, m->funcs.data[i], OP_DOT_SPARSE);
    for (u32 k = 0; k < sparse.len; k++)
      op_remove_attr(sparse.data[k], AT_WARPGROUP);
  }
}
