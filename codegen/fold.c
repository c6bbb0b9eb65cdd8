/* fold.c - what reductions and scans share: applying the op's region to two partials, and partials of nothing. */
#include "fold.h"

#define B g->b

void
fold_find_operation(Fold *f)
{
  f->known = op_folds_by(f->op, &f->code);
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
  u64 bits = 0;
  op_identity(f->code, d, &bits);
  return gen_const_bits(g, d, false, bits);
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
