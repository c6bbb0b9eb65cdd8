/* lower_asm.c - inline PTX of the program: its text once for every `pack` distinct registers of the tiles. */
#include "gen.h"
#include "asm.h"

#define B g->b

static Ty
reg_type(Gen *g, char letter)
{
  switch (letter) {
  case 'h': return g->i16;
  case 'r': return g->i32;
  case 'l': return g->i64;
  case 'f': return g->f32;
  default:  return g->f64;
  }
}

/* The bits of `pack` elements, the first lowest, cut into registers of one letter. */
static u32
to_regs(Gen *g, char letter, DType d, u32 pack, const Val *elems, Val *out)
{
  u32 bits = dtype_bits(d), w = asm_letter_bits(letter), n = asm_regs_for(letter, d, pack);
  Ty t = reg_type(g, letter), word = LLVMIntTypeInContext(g->lc, w);
  for (u32 i = 0; i < n; i++) {
    u32 per = w / bits, first = i * per;
    if (per == 1 && bits == w) {
      out[i] = gen_bitcast(g, elems[first], t);
      continue;
    }
    Val v = LLVMConstInt(word, 0, 0);
    for (u32 k = 0; k < per && first + k < pack; k++) {
      Val e = LLVMBuildZExt(B, gen_bitcast(g, elems[first + k], LLVMIntTypeInContext(g->lc, bits)), word, "");
      v = LLVMBuildOr(B, v, LLVMBuildShl(B, e, LLVMConstInt(word, k * bits, 0), ""), "");
    }
    out[i] = v;
  }
  return n;
}

static u32
from_regs(Gen *g, char letter, DType d, u32 pack, const Val *regs, Val *elems)
{
  u32 bits = dtype_bits(d), w = asm_letter_bits(letter), per = w / bits;
  Ty t = gen_elem_type(g, d, false), narrow = LLVMIntTypeInContext(g->lc, bits);
  for (u32 e = 0; e < pack; e++) {
    Val v = regs[e / per];
    if (bits < w) {
      v = LLVMBuildLShr(B, v, LLVMConstInt(LLVMTypeOf(v), e % per * bits, 0), "");
      v = LLVMBuildTrunc(B, v, narrow, "");
    }
    elems[e] = gen_bitcast(g, v, t);
  }
  return asm_regs_for(letter, d, pack);
}

/* The text, once, for the elements in registers at[0] to at[pack - 1]. */
static void
emit_once(Gen *g, const Op *op, const AsmRegs *regs, u32 pack, const u32 *at, Val **results)
{
  PtxArgs a = {.nout = regs->nouts};
  Val out[ASM_REGS_MAX], elems[32];
  u32 r = regs->nouts, k = 0;
  for (u32 i = 0; i < regs->nouts; i++)
    a.out[i] = reg_type(g, regs->letter[i]);
  for (u32 i = 0; i < op->noperands; i++) {
    const Val *in = gen_regs(g, op_operand(op, i));
    for (u32 e = 0; e < pack; e++)
      elems[e] = in[at[e]];
    u32 n = to_regs(g, regs->letter[r], op_operand(op, i)->type->dt, pack, elems, a.in + a.nin);
    a.nin += n;
    r += n;
  }
  ptx_text(g, op_str(op, AT_TEXT, ""), op->code == OP_PTX, &a, out);
  for (u32 i = 0; i < op->nresults; i++) {
    k += from_regs(g, regs->letter[k], op->results[i]->type->dt, pack, out + k, elems);
    for (u32 e = 0; e < pack; e++)
      results[i][at[e]] = elems[e];
  }
}

void
lower_PTX(Gen *g, const Op *op)
{
  const Type *t = op->nresults ? op->results[0]->type : op_operand(op, 0)->type;
  const Dist *h = type_is_tile(t) ? dist_get(g, t->layout) : NULL;
  u32 pack = (u32)op_int(op, AT_PACK, 1), nregs = gen_nregs(t), n = 0, at[32];
  AsmRegs regs;
  const char *why;
  Val **results = NEW_ARRAY(g->arena, Val *, op->nresults + 1);
  if (!asm_parse(op_str(op, AT_CONSTRAINTS, ""), &regs, &why))
    ctx_panic(g->c, "%s", why);
  for (u32 i = 0; i < op->nresults; i++)
    results[i] = gen_new(g, op->results[i]);
  for (u32 r = 0; r < nregs; r++) {
    if (!h || h->rep[r] == r)
      at[n++] = r;
    bool last = r + 1 == nregs;
    while (last && n && n < pack) {          /* fewer elements than fit: one of them more than once */
      at[n] = at[n - 1];
      n++;
    }
    if (n == pack) {
      emit_once(g, op, &regs, pack, at, results);
      n = 0;
    }
  }
  for (u32 i = 0; i < op->nresults; i++)
    dist_share(g, op->results[i]);
}

void
lower_PTX_EFFECT(Gen *g, const Op *op)
{
  lower_PTX(g, op);
}
