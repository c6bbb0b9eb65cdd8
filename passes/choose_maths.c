/* choose_maths.c - how exact each function of real numbers is computed.
 * Needs phase tile, in front of everything else; keeps it. No `tiers` is left.
 *
 * The library writes a function out three times (stdlib/math.tile): exactly, within a few units of the last place of f32, and for results
 * that are rounded to so few bits that the hardware's approximations decide what they are but once in 10,000 times. Only what becomes of a
 * result says which is asked for, and that the frontend does not know, as it lowers calls before their users. Quotients are the same:
 * correctly rounded by an instruction that hides a branch for rare operands, by few that have none (near_div), and, for what is
 * rounded to 16 bits, by div.full. How many bits a rough form is good for it says itself; a narrow one does not know numbers that are
 * nothing in f16, which products might make something of: it is for results that go there themselves.
 *
 * A result is rounded if every user of it is a conversion to such a type, or multiplies, divides, picks or moves it on the way there, also
 * out of an `if`: these keep a relative error what it is, and so does the greatest or least of several. A sum does not. What goes to the
 * nearest whole number and then to an integer of 8 bits is rounded, too. (What only goes to an integer is not: of what should be whole, a
 * little less would be one less.) The other ways are dead then. With `maths(exact)` on a kernel nothing gets here: the frontend takes the
 * first. */
#include "internal.h"
#include <math.h>

enum {
  ROUGH_BITS = 8,          /* of the significand, its first bit among them: bf16 and the 8-bit floats */
  NARROW_EXPONENT = 5      /* bits of the exponent: f16 and the 8-bit floats */
};

/* seen: by value, the last question that came by; digits: what the rough way is good for; narrow: only for what is rounded itself. */
typedef struct Choice { u32 *seen, now, digits; bool narrow; } Choice;

static bool
is_rough(const Choice *ch, const Type *t)
{
  const DTypeInfo *d = &dtype_info[t->dt];
  return type_is_float(t) && d->man + 1u <= ch->digits && (!ch->narrow || d->exp <= NARROW_EXPONENT);
}

/* The greatest or the least along an axis. */
static bool
is_extreme(const Op *op)
{
  const Op *body = op->regions[0]->first;
  bool one = body->code == OP_MIN || body->code == OP_MAX || body->code == OP_MINIMUM || body->code == OP_MAXIMUM;
  return op->nresults == 1 && one && body->next == op->regions[0]->last;
}

/* Does an error of one of its operands come through as it is, and no more? That of products, quotients and roots does if it is relative. */
static bool
keeps_error(const Choice *ch, const Op *op)
{
  switch (op->code) {
  case OP_MUL: case OP_DIV: case OP_FAST_DIV: case OP_FULL_DIV: case OP_NEAR_DIV: case OP_SQRT: case OP_FAST_SQRT:
    return !ch->narrow;
  case OP_NEG: case OP_ABS: case OP_COPYSIGN:
  case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: case OP_TIERS:
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: case OP_RESHAPE: case OP_PERMUTE: case OP_SELECT:
    return true;
  case OP_REDUCE: case OP_SCAN: return is_extreme(op);
  case OP_CAST: return type_is_float(op_result(op)->type);
  default: return false;
  }
}

static bool is_rounded(const Choice *ch, const Value *v);

/* Every result of an `if` that v becomes is. */
static bool
is_rounded_behind(const Choice *ch, const Op *end, const Value *v)
{
  const Op *op = end->block->parent;
  for (u32 k = 0; k < op->nresults; k++)
    if (op_operand(end, yield_first(end) + k) == v && !is_rounded(ch, op->results[k]))
      return false;
  return true;
}

/* Whole numbers of which every user makes integers of 8 bits, on the way perhaps between bounds. */
static bool
fits_8_bits(const Value *v)
{
  for (const Use *u = v->uses; u; u = u->next) {
    const Op *op = u->user;
    bool bounded = op->code == OP_MIN || op->code == OP_MAX || op->code == OP_MINIMUM || op->code == OP_MAXIMUM;
    const Type *t = op->nresults ? op_result(op)->type : NULL;
    if (!(op->code == OP_CAST && type_is_int(t) && dtype_bits(t->dt) <= 8) && !(bounded && fits_8_bits(op_result(op))))
      return false;
  }
  return v->uses != NULL;
}

static bool
is_rounded_by(const Choice *ch, const Use *u)
{
  const Op *op = u->user;
  if (op->code == OP_ROUND || op->code == OP_RINT)
    return fits_8_bits(op_result(op));
  if (op->code == OP_CAST && is_rough(ch, op_result(op)->type))
    return true;
  if (op->code == OP_YIELD && op->block->parent->code == OP_IF)
    return is_rounded_behind(ch, op, u->value);
  return keeps_error(ch, op) && is_rounded(ch, op_result(op));
}

static bool
is_rounded(const Choice *ch, const Value *v)
{
  if (ch->seen[v->id] == ch->now)
    return true;
  ch->seen[v->id] = ch->now;
  for (const Use *u = v->uses; u; u = u->next)
    if (!is_rounded_by(ch, u))
      return false;
  return true;
}

/* What the quotient v is by, if that is a number: 0 if not. */
static double
constant_divisor(const Value *v, OpCode code)
{
  u64 bits;
  double by = op_is(v, code) && value_const_bits(OPERAND(v->def, BINARY, b), &bits) ? float_decode(DT_F32, bits) : 0;
  return isnormal((float)by) && isnormal((float)(1 / by)) ? by : 0;
}

/* An exact quotient by a power of two is a product, which passes behind this one see to. */
static Value *
close_way(const Op *op)
{
  Value *v = OPERAND(op, TIERS, close);
  int e;
  double by = constant_divisor(v, OP_NEAR_DIV);
  return by && fabs(frexp(by, &e)) == 0.5 ? OPERAND(op, TIERS, exact) : v;
}

/* What v's dividend is multiplied by, if that is a number above 0: 0 if not. */
static double
positive_factor(const Value *v, OpCode code)
{
  double by = constant_divisor(v, code);
  return by > 0 ? 1 / by : 0;
}

/* A number that v, which may be a nan, is not below: 0 if none above 0 is known. */
static double
least(const Value *v)
{
  u64 bits;
  if (value_const_bits(v, &bits))
    return fmax(float_decode(v->type->dt, bits), 0);
  const Op *op = v->def;
  if (!op)
    return 0;
  switch (op->code) {
  case OP_MAX: case OP_MAXIMUM: return fmax(least(op_operand(op, 0)), least(op_operand(op, 1)));
  case OP_MUL: return least(op_operand(op, 0)) * least(op_operand(op, 1));
  case OP_NEAR_DIV: case OP_FULL_DIV: return least(op_operand(op, 0)) * positive_factor(v, op->code);
  case OP_TIERS: return least(OPERAND(op, TIERS, rough));
  case OP_SPLAT: case OP_BROADCAST: case OP_EXPAND_DIMS: return least(op_operand(op, 0));
  default: return 0;
  }
}

/* div.full multiplies by 1/b and, as either may be subnormal, by a power of two. Where b is not small the two are one factor for all that
 * share b, as 1/b has digits enough where it is small. NULL: b is not shared, or may be small. */
static Value *
shared_inverse(Builder *b, const Value *by)
{
  if (!(op_is(by, OP_SPLAT) || op_is(by, OP_BROADCAST)) || !(least(by) >= 0x1p-125))
    return NULL;
  Value *one = op_operand(by->def, 0);
  Value *inverse = ir_binary(b, OP_FULL_DIV, ir_const_float(b, one->type, 1), one);
  return op_is(by, OP_SPLAT) ? ir_splat(b, inverse, by->type) : ir_broadcast(b, inverse, by->type->shape);
}

/* A rough quotient by a constant is a product: 1 ulp. So is one by what is shared. */
static Value *
rough_way(const Op *op)
{
  Value *v = OPERAND(op, TIERS, rough);
  if (!op_is(v, OP_FULL_DIV) || v->type->dt != DT_F32)
    return v;
  Builder b = builder_before(v->def);
  b.span = op->span;
  double by = constant_divisor(v, OP_FULL_DIV);
  Value *inverse = by ? ir_const_float(&b, v->type, 1 / by) : shared_inverse(&b, OPERAND(v->def, FULL_DIV, b));
  return inverse ? ir_binary(&b, OP_MUL, OPERAND(v->def, FULL_DIV, a), inverse) : v;
}

void
pass_choose_maths(Ctx *c, Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++) {
    Func *f = m->funcs.data[i];
    OpVec all = func_ops(c, f, OP_TIERS);
    bool *rough = NEW_ARRAY(c->scratch, bool, all.len + 1);
    Choice ch = {.seen = NEW_ARRAY(c->scratch, u32, f->nvalues + 1)};
    for (u32 k = 0; k < all.len; k++) {
      ch.now = k + 1;
      ch.digits = (u32)op_int(all.data[k], AT_DIGITS, ROUGH_BITS);
      ch.narrow = op_int(all.data[k], AT_NARROW, 0);
      rough[k] = is_rounded(&ch, op_result(all.data[k]));
    }
    for (u32 k = 0; k < all.len; k++) {
      Op *op = all.data[k];
      value_replace_uses(op_result(op), rough[k] ? rough_way(op) : close_way(op));
      op_remove(op);
    }
  }
  pass_dce(c, m);
}
