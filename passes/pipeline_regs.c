/* pipeline_regs.c - loads that cannot be copied asynchronously, done one iteration early into registers.
 *
 *   for i in lo..hi step s {                  x0 = load p(lo), where lo < hi
 *     x = load p(i)                ==>        for i in lo..hi step s, x = x0 {
 *     ... x ...                                 x1 = load p(i + s), where i + s < hi
 *   }                                           ... x ...
 *                                               yield x1 }
 *
 * The address at i + s is computed by clones: what the loop carries is first advanced by clones of its own step, then the
 * address's ops are cloned for the values so found. An address that depends on another load of the loop (an index that is looked
 * up) clones that load too; it stands in the body then with an address of its own, and is prefetched in its turn: its value for
 * iteration i + s is loaded in iteration i - s. Loads that would run past the end are masked off. */
#include "pipeline.h"

enum { REGISTERS_MAX = 64, CHAIN_MAX = 4, DEPTH_MAX = 10000 };

typedef struct Early {
  Ctx *c;
  Func *f;
  Op *loop;
  Block *body;
  bool *in;                  /* by value id: needed to compute the address */
  bool *advanced;            /* of those: needed to advance what the loop carries, where no load may be */
  VEC(Op *) ops;             /* those, in program order */
  VEC(u32) carried;          /* carried values that are needed */
  u32 depth;                 /* of need */
} Early;

static bool need(Early *e, Value *v, bool advancing);

static bool
need_carried(Early *e, u32 k)
{
  for (u32 i = 0; i < e->carried.len; i++)
    if (e->carried.data[i] == k)
      return true;
  vec_push(e->c->scratch, &e->carried, k);
  return need(e, op_operand(block_terminator(e->body), k), true);
}

/* Everything that v is computed from inside the loop. */
static bool
need(Early *e, Value *v, bool advancing)
{
  if (!v)
    return true;
  u32 k;
  if (!v->def)
    return !loop_carries(e->loop, v, &k) || need_carried(e, k);
  Op *op = v->def;
  if (!op_inside(op, e->loop) || (advancing ? e->advanced : e->in)[v->id])
    return true;
  bool load = op->code == OP_LOAD && !op_int(op, AT_VOLATILE, 0) && !advancing;
  if (op->block != e->body || op->nregions || op->code == OP_DOT || !(load || op_has(op, T_PURE)))
    return false;
  if (e->depth == DEPTH_MAX)
    return false;
  e->in[v->id] = true;
  e->advanced[v->id] |= advancing;
  e->depth++;
  bool fits = true;
  for (u32 i = 0; fits && i < op->noperands; i++)
    fits = need(e, op_operand(op, i), advancing);
  e->depth--;
  return fits;
}

void
load_only_if(Ctx *c, Op *load, Value *more)
{
  Builder b = builder_before(load);
  b.span = load->span;
  const Type *t = type_i1_like(c, OPERAND(load, LOAD, p)->type);
  Value *on = type_is_tile(t) ? ir_splat(&b, more, t) : more, *old = OPERAND(load, LOAD, mask);
  if (old)
    on = ir_binary(&b, OP_AND, old, on);
  if (load->noperands > 1)
    op_set_operand(load, SLOT(LOAD, mask), on);
  else
    op_add_operand(load, on);
}

/* The ops for iteration i, whose carried values are given; loads happen if `more`, and not at all where that is NULL. */
static Value **
clone_for(Early *e, Builder *b, Value *i, Value *const *carried, Value *more)
{
  Value **map = NEW_ARRAY(e->c->scratch, Value *, e->f->nvalues + 4 * e->ops.len + 16);
  map[loop_counter(e->loop)->id] = i;
  for (u32 k = 0; k < e->carried.len; k++)
    map[loop_arg(e->loop, 0, e->carried.data[k])->id] = carried[k];
  for (u32 k = 0; k < e->ops.len; k++) {
    if (e->ops.data[k]->code == OP_LOAD && !more)
      continue;
    Op *op = op_clone(b, e->ops.data[k], map);
    if (op->code == OP_LOAD)
      load_only_if(e->c, op, more);
  }
  return map;
}

/* Carried values before the loop, or one iteration on. */
static Value **
carried_at_start(Early *e)
{
  Value **v = NEW_ARRAY(e->c->scratch, Value *, e->carried.len + 1);
  for (u32 k = 0; k < e->carried.len; k++)
    v[k] = loop_init(e->loop, e->carried.data[k]);
  return v;
}

static Value **
carried_next(Early *e, Builder *b)
{
  Value **now = NEW_ARRAY(e->c->scratch, Value *, e->carried.len + 1), **next = NEW_ARRAY(e->c->scratch, Value *, e->carried.len + 1);
  for (u32 k = 0; k < e->carried.len; k++)
    now[k] = loop_arg(e->loop, 0, e->carried.data[k]);
  if (!e->carried.len)
    return next;
  Value **map = clone_for(e, b, loop_counter(e->loop), now, NULL);
  for (u32 k = 0; k < e->carried.len; k++)
    next[k] = value_mapped(map, op_operand(block_terminator(e->body), e->carried.data[k]));
  return next;
}

static const char *
fits(Early *e, Op *load)
{
  const Type *t = op_result(load)->type;
  u32 regs = type_registers(t);
  if (op_int(load, AT_VOLATILE, 0))
    return "it is volatile";
  if (regs > REGISTERS_MAX)
    return arena_printf(e->c->scratch, "its next tile would take %u more registers", regs);
  for (u32 i = 0; i < load->noperands; i++)
    if (!need(e, op_operand(load, i), false))
      return "its address depends on the loop's own work";
  return NULL;
}

/* The load moves: what it gives for iteration i comes around the loop. */
static void
turn(Early *e, Op *load)
{
  Builder before = builder_before(e->loop), top = builder_before(e->body->first);
  before.span = top.span = load->span;
  Value *any = ir_cmp(&before, "lt", OPERAND(e->loop, FOR, lo), OPERAND(e->loop, FOR, hi));
  Value **first = clone_for(e, &before, OPERAND(e->loop, FOR, lo), carried_at_start(e), any);
  Value **carried = carried_next(e, &top);
  Value *i = ir_binary(&top, OP_ADD, loop_counter(e->loop), OPERAND(e->loop, FOR, step));
  Value *more = ir_cmp(&top, "lt", i, OPERAND(e->loop, FOR, hi));
  Value **next = clone_for(e, &top, i, carried, more);
  Value *x = op_result(load);
  Value *arg = loop_carry(e->loop, value_mapped(first, x), x->name);
  op_add_operand(block_terminator(e->body), value_mapped(next, x));
  value_replace_uses(x, arg);
  op_remove(load);
}

/* Loads in the body that the address of the last one needs, as cloned at its top. */
static Op *
next_in_chain(Block *body, const Op *last)
{
  for (Op *op = body->first; op && op != last; op = op->next)
    if (op->code == OP_LOAD && op_result(op)->uses)
      return op;
  return NULL;
}

static const char *
prefetch_one(Ctx *c, Func *f, Op *loop, Op *load)
{
  Early e = {.c = c, .f = f, .loop = loop, .body = loop->regions[0]};
  e.in = NEW_ARRAY(c->scratch, bool, f->nvalues);
  e.advanced = NEW_ARRAY(c->scratch, bool, f->nvalues);
  const char *why = fits(&e, load);
  if (why)
    return why;
  e.in[op_result(load)->id] = true;
  for (Op *op = e.body->first; op; op = op->next)
    if (op->nresults && e.in[op_result(op)->id])
      vec_push(c->scratch, &e.ops, op);
  turn(&e, load);
  return NULL;
}

const char *
prefetch_in_registers(Ctx *c, Func *f, Op *loop, Op *load)
{
  const char *why = prefetch_one(c, f, loop, load);
  Value *last = why ? NULL : op_operand(block_terminator(loop->regions[0]), block_terminator(loop->regions[0])->noperands - 1);
  for (u32 round = 0; last && last->def && round < CHAIN_MAX; round++) {
    Op *inner = next_in_chain(loop->regions[0], last->def);
    if (!inner || prefetch_one(c, f, loop, inner))
      break;
    last = op_operand(block_terminator(loop->regions[0]), block_terminator(loop->regions[0])->noperands - 1);
  }
  return why;
}
