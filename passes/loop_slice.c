/* loop_slice.c - backward slices of loops.
 *
 * To have a load done ahead of its iteration, its address must be known ahead: what it is computed from inside the loop is cloned
 * for the other iteration. That is arithmetic, ifs of arithmetic where they are wanted, and loads whose values are addresses.
 * A value that the loop carries is followed through the end of the body to what it is advanced by; there no load may be, as
 * an iteration would need the one before it done. */
#include "alias.h"
#include "loop_slice.h"

/* MASK_DEPTH: how far only_if looks into a mask; ONLY_IF_MOST: values that it makes, and the op itself. */
enum { DEPTH_MAX = 10000, MASK_DEPTH = 4, ONLY_IF_MOST = MASK_DEPTH + 3 };

LoopSlice
slice_new(Ctx *c, Func *f, Op *loop, bool branches)
{
  return (LoopSlice){.c = c, .f = f, .loop = loop, .branches = branches, .in = NEW_ARRAY(c->scratch, bool, f->nvalues),
                     .advances = NEW_ARRAY(c->scratch, bool, f->nvalues)};
}

/* ---- collecting ---- */

static bool add_value(LoopSlice *s, Value *v, bool advancing, const char **why);

static bool
add_carried(LoopSlice *s, u32 k, const char **why)
{
  for (u32 i = 0; i < s->carried.len; i++)
    if (s->carried.data[i] == k)
      return true;
  vec_push(s->c->scratch, &s->carried, k);
  return add_value(s, loop_next(s->loop, k), true, why);
}

static bool
is_branch(const Op *op)
{
  if (op->code != OP_IF)
    return false;
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      if (x->code != OP_YIELD && !op_is_arithmetic(x) && !is_branch(x))
        return false;
  return true;
}

/* What op and the ops in it take from outside of `all`. */
static bool
add_operands(LoopSlice *s, const Op *op, const Op *all, bool advancing, const char **why)
{
  for (u32 i = 0; i < op->noperands; i++) {
    Value *v = op_operand(op, i);
    if (v && !(v->def && op_inside(v->def, all)) && !add_value(s, v, advancing, why))
      return false;
  }
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      if (!add_operands(s, x, all, advancing, why))
        return false;
  return true;
}

/* Does op, or an op in it, write what a reads, or order it? */
static bool
holds_back(const Op *op, const GlobalAccess *a)
{
  GlobalAccess b;
  if (op_acquires(op) || (op_global_effects(op) & FX_WRITE && global_access(op, &b) && global_overlap(&b, a)))
    return true;
  for (u32 r = 0; r < op->nregions; r++)
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      if (holds_back(x, a))
        return true;
  return false;
}

const char *
slice_load_obstacle(const Op *load)
{
  GlobalAccess a;
  if (op_int(load, AT_VOLATILE, 0))
    return "it is volatile";
  global_access(load, &a);
  for (const Op *op = load->block->first; op != load; op = op->next)
    if (holds_back(op, &a))
      return "its iteration stores there, or acquires, in front of it";
  return NULL;
}

/* NULL if op may be done ahead of its iteration. */
static const char *
obstacle(const LoopSlice *s, const Op *op, bool advancing)
{
  bool load = op->code == OP_LOAD && !op_int(op, AT_VOLATILE, 0);
  if (load && advancing)
    return "its address depends on a value loaded in the iteration before";
  if (op->block == s->loop->regions[0] && load && slice_load_obstacle(op))
    return "its address is loaded from where its iteration stores";
  if (op->block != s->loop->regions[0] || !(load || op_is_arithmetic(op) || (s->branches && is_branch(op))))
    return "its address depends on the loop's own work";
  return s->depth == DEPTH_MAX ? "its address takes too long a computation" : NULL;
}

static bool
add_value(LoopSlice *s, Value *v, bool advancing, const char **why)
{
  u32 k;
  if (!v)
    return true;
  if (!v->def)
    return !loop_carries(s->loop, v, &k) || add_carried(s, k, why);
  Op *op = v->def;
  if (!op_inside(op, s->loop) || (advancing ? s->advances : s->in)[v->id])
    return true;
  *why = obstacle(s, op, advancing);
  if (*why)
    return false;
  for (u32 i = 0; i < op->nresults; i++) {
    s->in[op->results[i]->id] = true;
    s->advances[op->results[i]->id] |= advancing;
  }
  s->depth++;
  bool fits = add_operands(s, op, op, advancing, why);
  s->depth--;
  return fits;
}

static bool *
copy_of(const LoopSlice *s, const bool *by_value)
{
  bool *copy = NEW_ARRAY(s->c->scratch, bool, s->f->nvalues);
  memcpy(copy, by_value, s->f->nvalues * sizeof *copy);
  return copy;
}

bool
slice_add(LoopSlice *s, u32 n, Value *const *vs, const char **why)
{
  u32 carried = s->carried.len, done = 0;
  bool *in = copy_of(s, s->in), *advances = copy_of(s, s->advances);
  while (done < n && add_value(s, vs[done], false, why))
    done++;
  if (done == n)
    return true;
  s->carried.len = carried;
  s->in = in;
  s->advances = advances;
  return false;
}

void
slice_close(LoopSlice *s, Op *last)
{
  if (last)
    s->in[op_result(last)->id] = true;
  for (Op *op = s->loop->regions[0]->first; op; op = op->next)
    if (op->nresults && s->in[op_result(op)->id])   /* all results of an op or none */
      vec_push(s->c->scratch, &s->ops, op);
}

/* ---- cloning ---- */

/* mask, and `more` besides: of a mask that is made of rows and columns, in the smaller part, so that the many elements ask for two things
 * and not for three. */
static Value *
and_scalar(Builder *b, Value *mask, Value *more, u32 depth)
{
  Op *op = mask->def;
  bool tile = type_is_tile(mask->type);
  if (tile && depth && op_is(mask, OP_BROADCAST)) {
    Value *part = and_scalar(b, op_operand(op, 0), more, depth - 1);
    return op_result(op_create(b, OP_BROADCAST, 1, &part, 1, &mask->type, 0));
  }
  if (tile && depth && op_is(mask, OP_AND))
    for (u32 i = 0; i < 2; i++) {
      Value *x = op_operand(op, i), *y = op_operand(op, 1 - i);
      bool larger = op_is(y, OP_BROADCAST) && type_numel(op_operand(y->def, 0)->type) < type_numel(op_operand(x->def, 0)->type);
      if (op_is(x, OP_BROADCAST) && !larger)
        return ir_binary(b, OP_AND, and_scalar(b, x, more, depth - 1), y);
    }
  return ir_binary(b, OP_AND, mask, tile ? ir_splat(b, more, mask->type) : more);
}

/* A load, or a bound of an index, is one where scalar `more` is true besides its own mask. */
static void
only_if(Ctx *c, Op *op, Value *more)
{
  Builder b = builder_before(op);
  b.span = op->span;
  u32 slot = op_slot(op->code, "mask");
  const Type *t = type_i1_like(c, op_operand(op, 0)->type);
  Value *old = op_mask(op);
  Value *on = old ? and_scalar(&b, old, more, MASK_DEPTH) : type_is_tile(t) ? ir_splat(&b, more, t) : more;
  if (op->noperands > slot)
    op_set_operand(op, slot, on);
  else
    op_add_operand(op, on);
}

typedef struct Ahead { Ctx *c; Value *more; } Ahead;

/* Bounds in the arms of an `if`. */
static void
bound_ahead(Op *op, void *user)
{
  Ahead *a = user;
  if (op->code != OP_BOUNDED)
    return;
  if (a->more) {
    only_if(a->c, op, a->more);
  } else {
    value_replace_uses(op_result(op), OPERAND(op, BOUNDED, x));
    op_remove(op);
  }
}

/* Values that a copy of op makes, with those in it. */
static u32
values_of(const Op *op)
{
  u32 n = op->nresults;
  for (u32 r = 0; r < op->nregions; r++) {
    n += op->regions[r]->nargs;
    for (const Op *x = op->regions[r]->first; x; x = x->next)
      n += values_of(x);
  }
  return n;
}

Value **
slice_clone(const LoopSlice *s, Builder *b, Value *i, Value *const *carried, Value *more, OpVec *loads)
{
  u32 room = s->f->nvalues;
  for (u32 k = 0; k < s->ops.len; k++)
    room += ONLY_IF_MOST * values_of(s->ops.data[k]);
  Value **map = NEW_ARRAY(s->c->scratch, Value *, room);
  map[loop_counter(s->loop)->id] = i;
  for (u32 k = 0; k < s->carried.len; k++)
    map[loop_arg(s->loop, 0, s->carried.data[k])->id] = carried[k];
  for (u32 k = 0; k < s->ops.len; k++) {
    const Op *from = s->ops.data[k];
    bool load = from->code == OP_LOAD, bound = from->code == OP_BOUNDED;
    if (bound && !more)
      map[op_result(from)->id] = value_mapped(map, OPERAND(from, BOUNDED, x));
    if ((load || bound) && !more)
      continue;
    Op *op = op_clone(b, from, map);
    if (load || bound)
      only_if(s->c, op, more);
    for (u32 r = 0; r < op->nregions; r++)
      block_walk(op->regions[r], bound_ahead, &(Ahead){s->c, more});
    if (load && loads)
      vec_push(s->c->scratch, loads, op);
  }
  return map;
}

static Value **
room_for_carried(const LoopSlice *s)
{
  return NEW_ARRAY(s->c->scratch, Value *, s->carried.len + 1);
}

Value **
slice_first(const LoopSlice *s)
{
  Value **v = room_for_carried(s);
  for (u32 k = 0; k < s->carried.len; k++)
    v[k] = loop_init(s->loop, s->carried.data[k]);
  return v;
}

Value **
slice_now(const LoopSlice *s)
{
  Value **v = room_for_carried(s);
  for (u32 k = 0; k < s->carried.len; k++)
    v[k] = loop_arg(s->loop, 0, s->carried.data[k]);
  return v;
}

Value **
slice_next(const LoopSlice *s, Value *const *map)
{
  Value **v = room_for_carried(s);
  for (u32 k = 0; k < s->carried.len; k++)
    v[k] = value_mapped(map, loop_next(s->loop, s->carried.data[k]));
  return v;
}
