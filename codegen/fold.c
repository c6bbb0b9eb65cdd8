/* fold.c - what reductions and scans share: applying the op's region to two partials, and partials of nothing. */
#include "fold.h"
#include "fp.h"
#include <math.h>

#define B g->b

static bool
has_identity(OpCode code)
{
  switch (code) {
  case OP_ADD: case OP_MUL: case OP_MIN: case OP_MAX: case OP_MINIMUM: case OP_MAXIMUM: case OP_AND: case OP_OR: case OP_XOR: return true;
  default: return false;
  }
}

void
fold_find_operation(Fold *f)
{
  const Block *b = f->op->regions[0];
  const Op *op = b->first, *end = block_terminator(b);
  if (f->n != 1 || !op || op->next != end || !has_identity(op->code))
    return;
  const Value *x = op_operand(op, 0), *y = op_operand(op, 1);
  bool both = (x == b->args[0] && y == b->args[1]) || (x == b->args[1] && y == b->args[0]);
  f->known = both && op_operand(end, 0) == op_result(op);
  f->code = op->code;
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

static u64
identity_bits(OpCode code, DType d)
{
  u32 w = dtype_bits(d);
  u64 ones = ~0ull >> (64 - w), top = 1ull << (w - 1);
  bool s = dtype_is_signed(d);
  if (dtype_is_float(d))
    return float_identity(code, d);
  switch (code) {
  case OP_MUL: return 1;
  case OP_MIN: case OP_MINIMUM: return s ? ones >> 1 : ones;
  case OP_MAX: case OP_MAXIMUM: return s ? top : 0;
  case OP_AND: return ones;
  default:     return 0;
  }
}

static void
apply_region(Gen *g, const Fold *f, const Part *a, const Part *b, Part *out)
{
  const Block *body = f->op->regions[0];
  for (u32 k = 0; k < f->n; k++) {
    gen_new(g, body->args[k])[0] = a->v[k];
    gen_new(g, body->args[f->n + k])[0] = b->v[k];
  }
  g->walk(g, body);
  locs_at(g, f->op->span);
  const Op *end = block_terminator(body);
  for (u32 k = 0; k < f->n; k++)
    out->v[k] = gen_regs(g, op_operand(end, k))[0];
}

/* *a becomes a combined with b. */
void
fold_combine(Gen *g, const Fold *f, Part *a, const Part *b)
{
  Part both = {.valid = NULL};
  apply_region(g, f, a, b, &both);
  for (u32 k = 0; k < f->n; k++) {
    if (b->valid) both.v[k] = LLVMBuildSelect(B, b->valid, both.v[k], a->v[k], "");
    if (a->valid) both.v[k] = LLVMBuildSelect(B, a->valid, both.v[k], b->v[k], "");
  }
  if (a->valid && b->valid)
    both.valid = LLVMBuildOr(B, a->valid, b->valid, "");
  *a = both;
}

Val
fold_identity(Gen *g, const Fold *f, DType d)
{
  return gen_const_bits(g, d, false, identity_bits(f->code, d));
}

Part
fold_nothing(Gen *g, const Fold *f)
{
  Part p = {.valid = f->known ? NULL : LLVMConstInt(g->i1, 0, 0)};
  for (u32 k = 0; k < f->n; k++) {
    const Type *t = op_operand(f->op, k)->type;
    p.v[k] = f->known ? fold_identity(g, f, t->dt) : LLVMConstNull(gen_type(g, t));
  }
  return p;
}
