/* loops.c - small questions about structured control flow. */
#include "internal.h"

/* The op in block b that is `op` or contains it; NULL if none. */
Op *
op_ancestor_in(Op *op, const Block *b)
{
  while (op && op->block != b)
    op = op->block->parent;
  return op;
}

static bool
region_effect_free(const Block *b)
{
  for (const Op *op = b->first; op; op = op->next)
    if (!op_has(op, T_TERM) && !op_removable(op))
      return false;
  return true;
}

/* May go when its results are unused. */
bool
op_removable(const Op *op)
{
  if (op_has(op, T_WRITES) || op_has(op, T_SIDE) || op_has(op, T_TERM) || op_int(op, AT_VOLATILE, 0))
    return false;
  for (u32 r = 0; r < op->nregions; r++)
    if (!region_effect_free(op->regions[r]))
      return false;
  return true;
}

static void
find_number(Op *op, void *user)
{
  i64 *most = user, n = op->code == OP_FOR ? op_int(op, AT_AHEAD, 0) : 0;
  *most = n > *most ? n : *most;
}

i64
loop_number_ahead(Op *loop)
{
  i64 n = op_int(loop, AT_AHEAD, 0);
  if (n)
    return n;
  func_walk(loop->block->func, find_number, &n);
  op_set_int(loop, AT_AHEAD, n + 1);
  return n + 1;
}

Value *
loop_goes_on(Builder *b, const Op *loop, Value *i, u32 ahead)
{
  return ir_goes_on(b, i, OPERAND(loop, FOR, hi), OPERAND(loop, FOR, step), ahead);
}

Value *
loop_trips(Builder *b, const Op *loop)
{
  Ctx *c = b->func->module->ctx;
  Value *lo = OPERAND(loop, FOR, lo), *hi = OPERAND(loop, FOR, hi), *step = OPERAND(loop, FOR, step);
  DType word = dtype_bits(lo->type->dt) == 64 ? DT_U64 : DT_U32;
  Value *one = ir_const_int(b, type_scalar(c, word), 1);
  Value *n = ir_binary(b, OP_SUB, ir_cast(b, ir_binary(b, OP_SUB, hi, lo), word), one);
  n = ir_binary(b, OP_ADD, ir_binary(b, OP_DIV, n, ir_cast(b, step, word)), one);
  return ir_cast(b, n, DT_I64);
}

/* One more carried value; see internal.h. */
Value *
loop_carry(Op *loop, Value *init, const char *name)
{
  op_add_operand(loop, init);
  op_add_result(loop, init->type);
  return block_add_arg(loop->regions[0], init->type, name);
}

Value *
loop_result_of(const Op *loop, const Value *arg)
{
  u32 k = 0;
  loop_carries(loop, arg, &k);
  return loop->results[k];
}

Value *
value_mapped(Value *const *map, Value *v)
{
  return v && map[v->id] ? map[v->id] : v;
}

u32
type_registers(const Type *t)
{
  return type_is_tile(t) ? (layout_regs(t->layout) * type_elem_bits(t) + 31) / 32 : 1;
}

typedef struct Search { Ctx *c; OpCode code; OpVec found; } Search;

static void
search_visit(Op *op, void *user)
{
  Search *s = user;
  if (op->code == s->code)
    vec_push(s->c->scratch, &s->found, op);
}

OpVec
func_ops(Ctx *c, Func *f, OpCode code)
{
  Search s = {.c = c, .code = code};
  func_walk(f, search_visit, &s);
  return s.found;
}

bool
op_asks(const Op *op, const bool *which, u32 from, u32 to)
{
  for (u32 i = from; i < to && i < op->noperands; i++)
    if (op_operand(op, i) && which[op_operand(op, i)->id])
      return true;
  return false;
}

Op *
op_put_before(Op *op, OpCode code)
{
  Builder b = builder_before(op);
  b.span = op->span;
  return op_create(&b, code, 0, NULL, 0, NULL, 0);
}
