/* builtin_map.c - a function of scalars on every element of tiles.
 *
 * The function is lowered once, into the region of a map: tiles among its arguments, and in tuples and structs among them, stand for one
 * element each, all else is handed on as it is. So it may have loops and ifs that go another way for each element; in exchange it has no
 * effects, and makes no tiles. */
#include "sema.h"

/* ---- what it may not do ---- */

static const char *
unfit(const Op *op)
{
  bool flow = op_is_loop(op) || op->code == OP_IF;
  for (u32 i = 0; i < op->noperands; i++)
    if (op_operand(op, i) && type_is_tile(op_operand(op, i)->type))
      return "it uses a tile";
  for (u32 i = 0; i < op->nresults; i++)
    if (type_is_tile(op->results[i]->type))
      return "it makes a tile";
  return !flow && !op_has(op, T_PURE) && !op_has(op, T_TERM) ? "it reads or writes memory, or has another effect" : NULL;
}

typedef struct Search { const char *why; Span at; } Search;

static void
find_unfit(Op *op, void *user)
{
  Search *s = user;
  const char *why = s->why ? NULL : unfit(op);
  if (why)
    *s = (Search){why, op->span};
}

/* ---- what it captures ---- */

typedef struct Captures { Lower *L; Op *map; Values from, to; } Captures;

/* Its counterpart in the region: a constant again, anything else as one more argument, which is the same for all elements. */
static Value *
captured(Captures *x, Value *v)
{
  Block *region = x->map->regions[0];
  Value *in;
  u64 bits;
  for (u32 i = 0; i < x->from.len; i++)
    if (x->from.data[i] == v)
      return x->to.data[i];
  if (value_const_bits(v, &bits)) {
    Builder b = builder_before(region->first);
    b.span = v->def->span;
    in = ir_const_bits(&b, v->type, bits);
  } else {
    Builder b = builder_before(x->map);
    op_add_operand(x->map, ir_splat(&b, v, type_with_elem(x->L->c, OPERAND(x->map, MAP, xs)->type, v->type)));
    in = block_add_arg(region, v->type, v->name);
  }
  vec_push(x->L->a, &x->from, v);
  vec_push(x->L->a, &x->to, in);
  return in;
}

static void
capture_op(Op *op, void *user)
{
  Captures *x = user;
  for (u32 i = 0; i < op->noperands; i++) {
    Value *v = op_operand(op, i);
    if (v && !value_within(v, x->map))
      op_set_operand(op, i, captured(x, v));
  }
}

/* ---- the call ---- */

/* The tiles among the arguments, each with what it is in; others are left out. */
static void
tiles_of(Lower *L, const Val *args, u32 n, Values *tiles, Val **origin)
{
  Values all = {0};
  VEC(Val) from = {0};
  for (u32 i = 0; i < n; i++) {
    val_parts(L, args[i], &all);
    while (from.len < all.len)
      vec_push(L->a, &from, args[i]);
  }
  *origin = NEW_ARRAY(L->a, Val, all.len + 1);
  for (u32 i = 0; i < all.len; i++)
    if (type_is_tile(all.data[i]->type)) {
      (*origin)[tiles->len] = from.data[i];
      vec_push(L->a, tiles, all.data[i]);
    }
}

/* v with elements, taken one by one, in place of its tiles. */
static Val
with_elements(Lower *L, Val v, Value *const **next)
{
  Values parts = {0};
  val_parts(L, v, &parts);
  for (u32 i = 0; i < parts.len; i++)
    if (type_is_tile(parts.data[i]->type))
      parts.data[i] = *(*next)++;
  Value *const *all = parts.data;
  return val_with_parts(L, v, &all);
}

static bool
gives_elements(Lower *L, Call *c, Val v)
{
  Values parts = {0};
  if (v.kind == V_POISON)
    return false;
  val_parts(L, v, &parts);
  if (parts.len)
    return true;
  ERR(L, c->args[0].span, E_MAP, arena_printf(L->a, "it gives %s", val_str(L, v)));
  return false;
}

/* The function's result in the region, which ends with it; poison after reporting. */
static Val
lower_region(Lower *L, Call *c, Op *map, u32 nargs)
{
  Builder saved = L->b;
  Value *const *elements = map->regions[0]->args;
  Val *args = NEW_ARRAY(L->a, Val, nargs + 1);
  Values parts = {0};
  Search s = {0};
  L->b = builder_at_end(saved.func, map->regions[0]);
  for (u32 i = 0; i < nargs; i++)
    args[i] = with_elements(L, c->args[1 + i], &elements);
  Val v = lower_call_fn(L, c->span, c->args[0], nargs, args);
  v = var_value(L, v, "the result");
  bool ok = gives_elements(L, c, v);
  if (ok)
    val_parts(L, v, &parts);
  L->b.span = c->span;
  ir_yield(&L->b, parts.len, parts.data);
  L->b = saved;
  region_if_convert(map->regions[0]);
  block_walk(map->regions[0], find_unfit, &s);
  if (ok && s.why)
    diag_note(L->c, ERR(L, c->args[0].span, E_MAP, s.why), s.at, "here");
  return ok && !s.why ? v : val_poison(c->span);
}

Val
builtin_map(Lower *L, Call *c)
{
  Values tiles = {0}, results = {0};
  Val *origin;
  u32 nargs = c->nargs - 1;
  while (nargs && !c->given[nargs])
    nargs--;
  for (u32 i = 1; i <= nargs; i++)
    if (!c->given[i])
      return call_error(L, c, c->span, "its arguments have no names: they are the function's, in order");
  if (c->args[0].kind != V_FN && c->args[0].kind != V_BUILTIN) {
    ERR(L, c->args[0].span, E_ARGUMENT, c->name, "a function fn(x, ...) of single elements", val_str(L, c->args[0]));
    return val_poison(c->span);
  }
  tiles_of(L, c->args + 1, nargs, &tiles, &origin);
  if (!tiles.len)
    return call_error(L, c, c->span, "there is no tile among its arguments: call the function itself");
  if (!values_broadcast(L, c->span, c->name, tiles.len, tiles.data, origin))
    return val_poison(c->span);
  L->b.span = c->span;
  Op *map = ir_map(&L->b, tiles.len, tiles.data);
  Val v = lower_region(L, c, map, nargs);
  if (v.kind == V_POISON)
    return v;
  Captures x = {.L = L, .map = map};
  block_walk(map->regions[0], capture_op, &x);
  Op *end = block_terminator(map->regions[0]);
  for (u32 i = 0; i < end->noperands; i++)
    vec_push(L->a, &results, map_add_result(map, op_operand(end, i)->type));
  Value *const *next = results.data;
  L->b.span = v.span = c->span;
  return val_with_parts(L, v, &next);
}
