/* expand_maps.c - maps whose function has no loop and no if become ops on tiles.
 * Needs phase tile, in front of everything else; keeps it. Maps with control flow stay.
 *
 * On tiles the function's ops are like any others: they are folded, contracted and shared with what is around them. Where that makes
 * very much code, outline takes it back. */
#include "internal.h"

static bool
is_straight(const Block *b)
{
  for (const Op *op = b->first; op; op = op->next)
    if (op->nregions)
      return false;
  return true;
}

/* The same for every element: made once, in front of the map. */
static Value *
splat_of(Builder *b, const Op *op, const Type *tile)
{
  Value **none = NEW_ARRAY(b->func->module->ctx->scratch, Value *, b->func->nvalues);
  return ir_splat(b, op_result(op_clone(b, op, none)), tile);
}

static void
expand_op(Builder *b, const Op *op, const Type *tile, Value **map)
{
  Ctx *c = b->func->module->ctx;
  Value **xs = NEW_ARRAY(c->scratch, Value *, op->noperands + 1);
  const Type **types = NEW_ARRAY(c->scratch, const Type *, op->nresults + 1);
  for (u32 i = 0; i < op->noperands; i++)
    xs[i] = value_mapped(map, op_operand(op, i));
  for (u32 i = 0; i < op->nresults; i++)
    types[i] = type_with_elem(c, tile, op->results[i]->type);
  Op *copy = op_like(b, op, op->noperands, xs, types);
  op_remove_attr(copy, AT_CONTIGUOUS);       /* promises about an element say nothing of its neighbours */
  op_remove_attr(copy, AT_CONSTANT);
  for (u32 i = 0; i < op->nresults; i++) {
    copy->results[i]->name = op->results[i]->name;
    map[op->results[i]->id] = copy->results[i];
  }
}

/* values: room for every value there was before anything was expanded. */
static void
expand(Ctx *c, Op *map, Value **values)
{
  const Block *body = map->regions[0];
  const Type *tile = OPERAND(map, MAP, xs)->type;
  Builder b = builder_before(map);
  for (u32 i = 0; i < body->nargs; i++)
    values[body->args[i]->id] = op_operand(map, i);
  for (const Op *op = body->first; !op_has(op, T_TERM); op = op->next) {
    b.span = op->span;
    if (!op->noperands && op->code != OP_CONST)
      values[op_result(op)->id] = splat_of(&b, op, type_with_elem(c, tile, op_result(op)->type));
    else if (op->code == OP_HINT && !op_attr(op, AT_DIVISIBLE))
      values[op_result(op)->id] = value_mapped(values, op_operand(op, 0));
    else
      expand_op(&b, op, tile, values);
  }
  for (u32 i = 0; i < map->nresults; i++)
    value_replace_uses(map->results[i], value_mapped(values, op_operand(body->last, i)));
  op_remove(map);
}

void
pass_expand_maps(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    OpVec maps = func_ops(c, m->funcs.data[i], OP_MAP);
    Value **values = maps.len ? NEW_ARRAY(c->scratch, Value *, m->funcs.data[i]->nvalues) : NULL;
    for (u32 k = 0; k < maps.len; k++)
      if (is_straight(maps.data[k]->regions[0]))
        expand(c, maps.data[k], values);
  }
}
