/* fold_convert.c - cancel, merge and move conversions where that is cheaper.
 * Needs phase placed; keeps it. Never adds a conversion.
 *
 * assign_layout puts conversions at the ends of arithmetic; here they meet each other and casts. Rules, until
 * none applies:
 *   convert (convert x)              convert x, or x when that is where it came from
 *   convert (widening cast x)        cast (convert x)          fewer bytes move
 *   narrowing cast (convert x)       convert (cast x)
 *   convert (broadcast x)            broadcast (convert x)
 *   convert (reshape x), permute     the same, where x is a load of a loop with stages or made of one by these: what is copied
 *                                    through shared memory is then read in the layout wanted (pipeline_loops)
 * where the middle value has no other use. Equal conversions are cse's. Then a conversion all of whose users are in one branch
 * of an `if` goes there: it may be a meeting of warps, which those who do not take the branch have no use for. */
#include "internal.h"

typedef struct Fold { Ctx *c; bool changed; } Fold;

static u32
moved_bits(const Type *t)
{
  u32 bits = type_elem_bits(t);
  return bits < 8 ? 8 : bits;
}

static bool
single(const Value *v)
{
  return v->uses && !v->uses->next;
}

static void
replace(Fold *f, Op *op, Value *with)
{
  if (!with->name)
    with->name = op_result(op)->name;
  value_replace_uses(op_result(op), with);
  op_remove(op);
  f->changed = true;
}

/* op with the same attributes on x, result type t, at b. */
static Value *
again(Builder *b, const Op *op, Value *x, const Type *t)
{
  return op_result(op_like(b, op, 1, &x, &t));
}

static void
merge_converts(Fold *f, Op *op, Op *inner)
{
  Value *x = OPERAND(inner, CONVERT_LAYOUT, x);
  if (x->type == op_result(op)->type) {
    replace(f, op, x);
  } else {
    op_set_operand(op, SLOT(CONVERT_LAYOUT, x), x);
    f->changed = true;
  }
  if (value_unused(op_result(inner)))
    op_remove(inner);
}

/* convert (g x) -> g (convert x): the conversion takes g's place, g the conversion's. */
static void
convert_first(Fold *f, Op *op, Op *g, const Layout *l)
{
  Value *x = OPERAND(g, UNARY, x);
  Builder b = builder_before(op);
  b.span = op->span;
  if (x->type->layout != l)
    x = ir_convert_layout(&b, x, l);
  b.span = g->span;
  replace(f, op, again(&b, g, x, op_result(op)->type));
  op_remove(g);
}

static bool
runs_ahead(const Value *load)
{
  const Op *loop = value_block(load)->parent;
  return loop && op_int(loop, AT_STAGES, 1) > 1;
}

/* The layout of g's operand when g's result has layout l, where g only renames the elements of a tile loaded ahead; or NULL. */
static const Layout *
before_renaming(Fold *f, const Op *g, const Layout *l)
{
  const Value *x = OPERAND(g, UNARY, x), *v = x;
  const Type *t = x->type;
  int inverse[MAX_RANK];
  while (op_is(v, OP_RESHAPE) || op_is(v, OP_PERMUTE) || op_is(v, OP_CAST))
    v = OPERAND(v->def, UNARY, x);
  if (!op_is(v, OP_LOAD) || !runs_ahead(v))
    return NULL;
  if (g->code == OP_PERMUTE) {
    for (u32 i = 0; i < t->rank; i++)
      inverse[op_attr(g, AT_PERM)->ints.v[i]] = (int)i;
    return layout_permute(f->c, l, inverse);
  }
  bool whole = g->code == OP_RESHAPE;
  for (u32 i = 0; whole && i < t->rank; i++)
    whole = is_pow2(t->shape[i]);
  return whole ? layout_reshape(f->c, l, t->rank, t->shape) : NULL;
}

static void
fold_convert(Fold *f, Op *op)
{
  Value *x = OPERAND(op, CONVERT_LAYOUT, x), *r = op_result(op);
  if (x->type == r->type) {
    replace(f, op, x);
    return;
  }
  if (op_is(x, OP_CONVERT_LAYOUT)) {
    merge_converts(f, op, x->def);
    return;
  }
  if (!x->def || !single(x) || x->def->block != op->block)
    return;
  const Type *in = x->def->noperands ? OPERAND(x->def, UNARY, x)->type : NULL;
  if (x->def->code == OP_CAST && moved_bits(in) < moved_bits(x->type))
    convert_first(f, op, x->def, r->type->layout);
  else if (x->def->code == OP_BROADCAST)
    convert_first(f, op, x->def, layout_unbroadcast(f->c, r->type->layout, in->shape));
  else if (x->def->code == OP_PERMUTE || x->def->code == OP_RESHAPE) {
    const Layout *l = before_renaming(f, x->def, r->type->layout);
    if (l)
      convert_first(f, op, x->def, l);
  }
}

static void
narrow_first(Fold *f, Op *op)
{
  Value *x = OPERAND(op, CAST, x), *r = op_result(op);
  if (!op_is(x, OP_CONVERT_LAYOUT) || !single(x) || moved_bits(r->type) >= moved_bits(x->type) ||
      x->def->block != op->block)
    return;
  Op *convert = x->def;
  Value *from = OPERAND(convert, CONVERT_LAYOUT, x);
  Builder b = builder_before(op);
  b.span = op->span;
  Value *narrow = again(&b, op, from, type_with_layout(f->c, r->type, from->type->layout));
  b.span = convert->span;
  replace(f, op, ir_convert_layout(&b, narrow, r->type->layout));
  op_remove(convert);
}

static void
fold_op(Op *op, void *user)
{
  if (op->code == OP_CONVERT_LAYOUT)
    fold_convert(user, op);
  else if (op->code == OP_CAST && type_is_tile(op_result(op)->type))
    narrow_first(user, op);
}

/* The branch of an `if` of op's block in which all users of its result are; NULL: there is none. */
static Block *
branch_of_users(const Op *op)
{
  Block *branch = NULL;
  for (const Use *u = op_result(op)->uses; u; u = u->next) {
    Block *b = u->user->block;
    while (b != op->block && b->parent->block != op->block)
      b = b->parent->block;
    if (b == op->block || b->parent->code != OP_IF || (branch && b != branch))
      return NULL;
    branch = b;
  }
  return branch;
}

static bool
stands_in(const Op *op, const Value *v, const Block *b)
{
  for (const Use *u = v->uses; u; u = u->next)
    if (op_ancestor_in(u->user, b) == op)
      return true;
  return false;
}

static void
sink_conversion(Op *op, void *user)
{
  (void)user;
  for (Block *b; op->code == OP_CONVERT_LAYOUT && (b = branch_of_users(op));) {
    Op *first = b->first;
    while (!stands_in(first, op_result(op), b))
      first = first->next;
    op_move_before(op, first);
  }
}

void
pass_fold_convert(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Fold f = {c, true};
    for (u32 round = 0; f.changed && round < 16; round++) {
      f.changed = false;
      func_walk(m->funcs.data[i], fold_op, &f);
    }
    func_walk(m->funcs.data[i], sink_conversion, NULL);
  }
}
