/* lower_packed.c - unpack and pack: elements of less than a byte between strings of bits and numbers.
 *
 * A thread holds whole groups (ir/packed.h), words in neighbouring registers, so everything happens in registers. Words are
 * first put together into 32-bit chunks; what was loaded as one word is one again. Elements come out by shift and mask.
 */
#include "bits.h"

#define B g->b
enum { CHUNK = BITS_CHUNK };

/* ---- words and chunks ---- */

/* n words of integers, as 32-bit chunks. */
static void
chunks_of(Gen *g, const Val *words, u32 n, u32 word_bits, Val *chunk)
{
  u32 per = word_bits < CHUNK ? CHUNK / word_bits : 1;
  for (u32 i = 0; i < n; i += per) {
    if (word_bits == CHUNK) {
      chunk[i] = words[i];
    } else if (word_bits > CHUNK) {
      chunk[2 * i] = LLVMBuildTrunc(B, words[i], g->i32, "");
      chunk[2 * i + 1] = LLVMBuildTrunc(B, LLVMBuildLShr(B, words[i], LLVMConstInt(g->i64, CHUNK, 0), ""), g->i32, "");
    } else {
      Val v = LLVMConstNull(LLVMVectorType(LLVMTypeOf(words[0]), per));
      for (u32 k = 0; k < per && i + k < n; k++)
        v = LLVMBuildInsertElement(B, v, words[i + k], gen_u32(g, k), "");
      chunk[i / per] = LLVMBuildBitCast(B, v, g->i32, "");
    }
  }
}

static void
words_of(Gen *g, const Val *chunk, u32 n, u32 word_bits, Val *words)
{
  Ty t = LLVMIntTypeInContext(g->lc, word_bits);
  for (u32 i = 0; i < n; i++) {
    u32 at = i * word_bits;
    if (word_bits > CHUNK) {
      Val high = LLVMBuildShl(B, LLVMBuildZExt(B, chunk[2 * i + 1], t, ""), LLVMConstInt(t, CHUNK, 0), "");
      words[i] = LLVMBuildOr(B, LLVMBuildZExt(B, chunk[2 * i], t, ""), high, "");
    } else if (word_bits == CHUNK) {
      words[i] = chunk[i];
    } else {
      Val v = LLVMBuildBitCast(B, chunk[at / CHUNK], LLVMVectorType(t, CHUNK / word_bits), "");
      words[i] = LLVMBuildExtractElement(B, v, gen_u32(g, at % CHUNK / word_bits), "");
    }
  }
}

/* ---- unpack ---- */

static void
unpack(Gen *g, const Bits *s, Val *out)
{
  bool is_float = dtype_is_float(s->dt);
  if (is_float && bits_in_pairs(g, s)) {
    bits_pairs(g, s, out);
    return;
  }
  for (u32 e = 0; e < s->nvalues; e++)
    out[e] = is_float ? cast_nearest(g, DT_F32, s->dt, bits_f32(g, s, e)) : bits_int(g, s, e);
}

/* How many groups, from register `first` on, make up a chunk. */
static u32
groups_together(const Packing *p, const Dist *h, u32 first, u32 word_bits)
{
  u32 n = p->rows || word_bits >= CHUNK ? 1 : CHUNK / word_bits;
  while (n > 1 && (first % n || first + n > h->regs))
    n /= 2;
  for (u32 i = 0; i < n; i++)
    if (h->rep[first + i] != first + i)
      return 1;
  return n;
}

/* Bytes of two numbers each that were not read side by side: put together they would be taken apart again. */
static bool
are_lone(const Packing *p, const Layout *words, u32 word_bits)
{
  return word_bits == 8 && p->words == 1 && p->values == 2 && words->in_bits[IN_REG] && words->col[IN_REG][0] != 1;
}

void
lower_UNPACK(Gen *g, const Op *op)
{
  const Value *x = op_operand(op, 0), *result = op_result(op);
  const Val *in = gen_regs(g, x);
  const Dist *h = dist_get(g, x->type->layout);
  Val *out = gen_new(g, result), *all = NEW_ARRAY(g->arena, Val, gen_nregs(result->type) + 1);
  Packing p = packing_of(op);
  u32 word_bits = dtype_bits(x->type->dt), step = 1u << p.word_log2;
  bool lone = are_lone(&p, x->type->layout, word_bits);
  Bits s = {.f = packed_of(op), .dt = result->type->dt, .chunk = NEW_ARRAY(g->arena, Val, p.words * 2 + 2)};
  for (u32 r = 0, n; r < h->regs; r += n * step) {
    n = lone ? 1 : groups_together(&p, h, r, word_bits);
    if (h->rep[r] != r)
      continue;
    if (lone)
      s.chunk[0] = LLVMBuildZExt(B, in[r], g->i32, "");
    else
      chunks_of(g, in + r, n * p.words, word_bits, s.chunk);
    s.nvalues = n * p.values;
    unpack(g, &s, all);
    u32 at = r >> p.word_log2 << p.value_log2;
    for (u32 e = 0; e < s.nvalues; e++)
      out[at + e] = all[e];
    for (u32 e = s.nvalues; e < n << p.value_log2; e++)     /* padding */
      out[at + e] = all[0];
  }
  dist_share(g, result);
}

/* ---- pack ---- */

/* The element's pattern in the low bits of an i32, nothing above. */
static Val
pattern(Gen *g, const PackedFormat *f, DType dt, Val x)
{
  if (packed_is_float(f)) {
    return small_encode(g, (SmallFloat){f->exp, f->man, bits_low_mask(f->bits - 1u)}, cast_nearest(g, dt, DT_F32, x), ROUND_NEAREST);
  }
  u32 bits = dtype_bits(dt);
  x = bits > CHUNK ? LLVMBuildTrunc(B, x, g->i32, "") : bits < CHUNK ? LLVMBuildZExt(B, x, g->i32, "") : x;
  return bits_and(g, x, bits_low_mask(f->bits));
}

/* chunk |= what falls of `bits` at bit `at` of the string into chunk number `index`. */
static void
put(Gen *g, Val *chunk, u32 index, Val bits, u32 at, u32 w)
{
  u32 begin = index * CHUNK;
  if (at + w <= begin || at >= begin + CHUNK)
    return;
  Val x = at >= begin ? bits_move(g, bits, 0, at - begin) : bits_move(g, bits, begin - at, 0);
  chunk[index] = LLVMBuildOr(B, chunk[index], x, "");
}

void
lower_PACK(Gen *g, const Op *op)
{
  const Value *x = op_operand(op, 0), *result = op_result(op);
  const PackedFormat *f = packed_of(op);
  const Val *in = gen_regs(g, x);
  const Dist *h = dist_get(g, result->type->layout);
  Val *out = gen_new(g, result);
  Packing p = packing_of(op);
  u32 word_bits = dtype_bits(result->type->dt), step = 1u << p.word_log2;
  Val *chunk = NEW_ARRAY(g->arena, Val, p.words * 2 + 2), *words = NEW_ARRAY(g->arena, Val, p.words + 4);
  for (u32 r = 0, n; r < h->regs; r += n * step) {
    n = groups_together(&p, h, r, word_bits);
    if (h->rep[r] != r)
      continue;
    u32 nchunks = (n * p.words * word_bits + CHUNK - 1) / CHUNK, at = r >> p.word_log2 << p.value_log2;
    for (u32 i = 0; i < nchunks; i++)
      chunk[i] = gen_u32(g, 0);
    for (u32 e = 0; e < n * p.values; e++) {
      Val bits = pattern(g, f, x->type->dt, in[at + e]);
      for (u32 i = e * f->bits / CHUNK; i <= (e * f->bits + f->bits - 1) / CHUNK; i++)
        put(g, chunk, i, bits, e * f->bits, f->bits);
    }
    words_of(g, chunk, n * p.words, word_bits, words);
    for (u32 i = 0; i < step * n; i++)
      out[r + i] = words[i < n * p.words ? i : 0];
  }
  dist_share(g, result);
}
