/* unobserved.c - may the rows of a tile that are past the end be anything?
 *
 * Rows past the edge of a matrix are often read all the same, at an index that wraps around: they are multiplied, and not stored. A copy of
 * a box would read zeros there, which is as good if nobody sees the difference.
 *
 * Rows are followed forwards, from the load to all that is computed of them: a value and the dimension along which some of its elements
 * may be anything, always those whose index is not less than the bound.
 *   - Ops on elements, conversions of layouts, reorderings and broadcasts of other dimensions, reductions and scans along other dimensions,
 *     and reshapes and packings that leave their dimension whole, keep them where they are.
 *   - A product has the rows of its first factor and the columns of its second; what it sums over is seen.
 *   - What a loop carries, or an `if` gives, has them wherever one value has them that comes there.
 *   - A store does not write them if its mask holds the bound: the same index, from the same beginning, less than it.
 * All else sees them. Ops that may not go on with any element (integer division, calls, promises, bounds) are among that. */
#include "affine.h"

enum { MARKS = 256, BOUNDS = 12 };

typedef struct Mark { const Value *v; u32 dim; } Mark;
typedef struct Follow { Ctx *c; const AffineWrap *w; Mark mark[MARKS]; u32 n, done; const char *why; } Follow;

static void
seen(Follow *f, const Op *op, const char *how)
{
  if (!f->why)
    f->why = arena_printf(f->c->scratch, "'%s' %s", op_info(op->code)->name, how);
}

static void
follow(Follow *f, const Op *op, const Value *v, u32 dim)
{
  for (u32 i = 0; i < f->n; i++)
    if (f->mark[i].v == v && f->mark[i].dim == dim)
      return;
  if (f->n == MARKS)
    seen(f, op, "is one of too many that they reach");
  else
    f->mark[f->n++] = (Mark){v, dim};
}

/* ---- who leaves rows where they are ---- */

static bool
on_each_element(const Op *op)
{
  if (op->code == OP_BOUNDED || op->code == OP_HINT || op->code == OP_ADDPTR || !op_has(op, T_PURE | T_ELEM))
    return false;
  return !((op->code == OP_DIV || op->code == OP_REM) && type_is_int(op_result(op)->type));
}

static void
permuted(Follow *f, const Op *op, u32 dim)
{
  const Attr *perm = op_attr(op, AT_PERM);
  for (u32 i = 0; i < perm->ints.n; i++)
    if ((u32)perm->ints.v[i] == dim)
      follow(f, op, op_result(op), i);
}

/* The dimension stays if all in front of it do, and it itself, or all from it on. */
static void
reshaped(Follow *f, const Op *op, u32 dim)
{
  const Type *from = op_operand(op, 0)->type, *to = op_result(op)->type;
  u32 front = 0, back = 0;
  while (front < from->rank && front < to->rank && from->shape[front] == to->shape[front])
    front++;
  while (back < from->rank && back < to->rank && from->shape[from->rank - 1 - back] == to->shape[to->rank - 1 - back])
    back++;
  if (dim < front)
    follow(f, op, op_result(op), dim);
  else if (from->rank - dim <= back)
    follow(f, op, op_result(op), to->rank - (from->rank - dim));
  else
    seen(f, op, "divides them anew");
}

static void
multiplied(Follow *f, const Op *op, u32 slot, u32 dim)
{
  u32 rank = op_result(op)->type->rank, acc = op->noperands - 1, summed = slot + 1 == acc ? rank - 2 : rank - 1;
  if (slot != acc && dim == summed)
    seen(f, op, "sums over them");
  else
    follow(f, op, op_result(op), dim);
}

static void
folded(Follow *f, const Op *op, u32 dim)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  if (dim == axis) {
    seen(f, op, "runs along them");
    return;
  }
  for (u32 i = 0; i < op->nresults; i++)
    follow(f, op, op->results[i], op->code == OP_REDUCE && axis < dim ? dim - 1 : dim);
}

/* ---- regions ---- */

static void
carried(Follow *f, const Op *loop, u32 k, u32 dim)
{
  follow(f, loop, loop->results[k], dim);
  for (u32 r = 0; r < loop->nregions; r++)
    follow(f, loop, loop_arg(loop, r, k), dim);
}

static void
handed_on(Follow *f, const Op *end, u32 slot, u32 dim)
{
  const Op *owner = end->block->parent;
  u32 first = yield_first(end);
  if (!owner || op_on_elements(owner) || slot < first)
    seen(f, end, "depends on them");
  else if (op_is_loop(owner))
    carried(f, owner, slot - first, dim);
  else
    follow(f, end, owner->results[slot - first], dim);
}

/* ---- stores ---- */

static bool
same_bound(const AffineBound *b, const AffineWrap *w)
{
  LaunchValue end;
  AffineTerm u[AFFINE_TERMS];
  u32 n = 0;
  for (u32 i = 0; i < w->nx; i++)
    if (w->x[i].dim < 0 && !affine_add(u, &n, &w->x[i], 1))
      return false;
  return b->upper && affine_bound_from(b, u, n, &end) && end.times == w->bound.times && launch_value_alike(&end, &w->bound);
}

static void
stored(Follow *f, const Op *op, u32 slot, u32 dim)
{
  AffineBound bounds[BOUNDS];
  const Value *mask = op_mask(op);
  u32 n = 0;
  bool answers = op->nresults && !value_unused(op_result(op));
  if (slot != op_slot(op->code, "value") || answers)
    seen(f, op, "depends on them");
  else if (!mask)
    seen(f, op, "writes them");
  else {
    affine_bounds(f->c, mask, bounds, BOUNDS, &n);   /* what it knows of a mask holds, whatever else that says */
    for (u32 i = 0; i < n; i++)
      if (bounds[i].dim == (int)dim && same_bound(&bounds[i], f->w))
        return;
    seen(f, op, "writes them: its mask does not leave them out");
  }
}

static void
visit(Follow *f, const Op *op, u32 slot, u32 dim)
{
  if (on_each_element(op)) {
    follow(f, op, op_result(op), dim);
    return;
  }
  switch (op->code) {
  case OP_CONVERT_LAYOUT: follow(f, op, op_result(op), dim); return;
  case OP_BROADCAST:
    if (op_operand(op, slot)->type->shape[dim] != op_result(op)->type->shape[dim])
      seen(f, op, "repeats them");
    else
      follow(f, op, op_result(op), dim);
    return;
  case OP_EXPAND_DIMS: follow(f, op, op_result(op), dim + (dim >= (u32)op_int(op, AT_AXIS, 0))); return;
  case OP_PERMUTE: permuted(f, op, dim); return;
  case OP_RESHAPE: reshaped(f, op, dim); return;
  case OP_UNPACK: case OP_PACK:
    if (dim + 1 == op_result(op)->type->rank)
      seen(f, op, "divides them anew");
    else
      follow(f, op, op_result(op), dim);
    return;
  case OP_DOT: case OP_DOT_SPARSE: multiplied(f, op, slot, dim); return;
  case OP_REDUCE: case OP_SCAN: folded(f, op, dim); return;
  case OP_FOR: case OP_WHILE:
    if (slot < loop_first_init(op))
      seen(f, op, "depends on them");
    else
      carried(f, op, slot - loop_first_init(op), dim);
    return;
  case OP_YIELD: case OP_CONDITION: handed_on(f, op, slot, dim); return;
  case OP_STORE: case OP_ATOMIC_RMW: stored(f, op, slot, dim); return;
  default: seen(f, op, "depends on them");
  }
}

const char *
unobserved_past(Ctx *c, const Op *load, u32 dim, const AffineWrap *w)
{
  Follow *f = NEW(c->scratch, Follow);
  *f = (Follow){.c = c, .w = w};
  follow(f, load, op_result(load), dim);
  for (; f->done < f->n && !f->why; f->done++) {
    Mark m = f->mark[f->done];
    for (const Use *u = m.v->uses; u && !f->why; u = u->next)
      visit(f, u->user, (u32)(u - u->user->operands), m.dim);
  }
  return f->why;
}
