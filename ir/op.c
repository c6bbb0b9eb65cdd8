/* op.c - the rows of ops.def and attrs.def. */
#include "fp.h"
#include "ir.h"
#include <math.h>

/* How many operands there are: ONE counts in the lowest byte, MAYBE in the next, MANY above. */
enum { ARGS_ONE = 1, ARGS_MAYBE = 1 << 8, ARGS_MANY = 1 << 16 };
enum {
#define ARG(name, effect, presence) + ARGS_##presence
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) COUNTS_##id = 0 operands,
#include "ops.def"
#undef OP
#undef ARG
};
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) \
  _Static_assert(sizeof(struct id##_slots) - 1 <= OPERANDS_NAMED, name ": more operands than OPERANDS_NAMED");
#include "ops.def"
#undef OP

static const u8 effects[OP_COUNT][OPERANDS_NAMED + 1] = {
#define ARG(name, effect, presence) effect,
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) {operands 0},
#include "ops.def"
#undef OP
#undef ARG
};

/* The traits that say what the operands' effects add up to. */
enum {
#define ARG(name, effect, presence) | (effect)
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) EFFECTS_##id = 0 operands,
#include "ops.def"
#undef OP
#undef ARG
};
#define MEMORY_TRAITS(fx) (((fx) & FX_READ ? T_READS : 0) | ((fx) & FX_WRITE ? T_WRITES : 0))

static const OpInfo op_table[OP_COUNT] = {
#define ARG ARG_TEXT
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) \
  {name, OPERANDS_TEXT(operands), attrs, results, regions, RULE_##rule, (traits) | MEMORY_TRAITS(EFFECTS_##id), doc, \
   COUNTS_##id & 255, COUNTS_##id >> 16 ? MANY : sizeof(struct id##_slots) - 1, effects[OP_##id]},
#include "ops.def"
#undef OP
#undef ARG
};

const AttrInfo attr_info[AT_COUNT] = {
#define ATTR(id, name, kind, doc) {name, AK_##kind, doc},
#include "attrs.def"
#undef ATTR
};

/* The row of an op. */
const OpInfo *
op_info(OpCode op)
{
  return &op_table[op];
}

/* The op of that name; false if there is none. */
bool
op_find(const char *name, OpCode *out)
{
  for (int i = 0; i < OP_COUNT; i++)
    if (!strcmp(op_table[i].name, name)) {
      *out = (OpCode)i;
      return true;
    }
  return false;
}

/* The atomic operations, blank-separated. */
const char *
attr_rmw_words(void)
{
  return "add max min and or xor xchg";
}

/* The binary op that an atomic operation does; OP_COUNT: exchange. False: no such operation. */
bool
rmw_find(const char *name, OpCode *op)
{
  static const struct { char name[5]; OpCode op; } table[] = {
    {"add", OP_ADD}, {"max", OP_MAX}, {"min", OP_MIN}, {"and", OP_AND}, {"or", OP_OR}, {"xor", OP_XOR},
    {"xchg", OP_COUNT},
  };
  for (u32 i = 0; i < COUNT(table); i++)
    if (!strcmp(table[i].name, name)) {
      *op = table[i].op;
      return true;
    }
  return false;
}

bool
atomic_rmw_allowed(const char *rmw, DType d)
{
  if (d == DT_I1 || dtype_bits(d) < 16)
    return false;
  bool bitwise = !strcmp(rmw, "and") || !strcmp(rmw, "or") || !strcmp(rmw, "xor");
  return dtype_is_int(d) ? dtype_bits(d) >= 32 : !bitwise;
}

bool
op_folds_by(const Op *fold, OpCode *code)
{
  const Block *b = fold->regions[0];
  const Op *op = b->first, *end = block_terminator(b);
  u64 bits;
  if (fold->noperands != 1 || !op || op->next != end || !op_identity(op->code, op_operand(fold, 0)->type->dt, &bits))
    return false;
  const Value *x = op_operand(op, 0), *y = op_operand(op, 1);
  bool both = (x == b->args[0] && y == b->args[1]) || (x == b->args[1] && y == b->args[0]);
  *code = op->code;
  return both && op_operand(end, 0) == op_result(op);
}

/* A sum begins with -0: +0 would lose the sign of sums of -0. */
static u64
float_identity(OpCode code, DType d)
{
  switch (code) {
  case OP_ADD:     return float_encode(d, -0.0, ROUND_NEAREST, false);
  case OP_MUL:     return float_encode(d, 1, ROUND_NEAREST, false);
  case OP_MINIMUM: return float_encode(d, INFINITY, ROUND_NEAREST, false);
  case OP_MAXIMUM: return float_encode(d, -INFINITY, ROUND_NEAREST, false);
  default:         return float_nan(d);
  }
}

bool
op_identity(OpCode code, DType d, u64 *bits)
{
  u32 w = dtype_bits(d);
  u64 ones = ~0ull >> (64 - w), top = 1ull << (w - 1);
  bool s = dtype_is_signed(d);
  switch (code) {
  case OP_ADD: case OP_OR: case OP_XOR: *bits = 0; break;
  case OP_MUL: *bits = 1; break;
  case OP_MIN: case OP_MINIMUM: *bits = s ? ones >> 1 : ones; break;
  case OP_MAX: case OP_MAXIMUM: *bits = s ? top : 0; break;
  case OP_AND: *bits = ones; break;
  default: return false;
  }
  if (dtype_is_float(d))
    *bits = float_identity(code, d);
  return true;
}
