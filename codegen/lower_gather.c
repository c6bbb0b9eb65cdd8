/* lower_gather.c - elements found by run-time indices in shared buffers, and exchanges of elements within a tile.
 *
 * The offset of an element is linear in its coordinates. So it is the exclusive-or of what the thread, the register and
 * the index contribute; an index is kept inside the buffer's padded extent, and its offset within a cut buffer's memory, so that a wrong
 * one reads some element.
 */
#include "gen.h"

#define B g->b

/* ---- by index ---- */

typedef struct Gather {
  Buffer buf;
  Dist *h;                  /* of the indices */
  int axis;
  u32 extent_bits;
  Val thread;               /* its part of the offset */
  u32 thread_mask;
} Gather;

/* The offset of what flat index `flat` of the indices' layout has beside the axis. */
static u32
beside_axis(const Gather *x, u32 flat)
{
  u32 coord[MAX_RANK];
  if (x->buf.smem->rank == 1)
    return 0;
  layout_coords(x->h->l, flat, coord);
  coord[x->axis] = 0;
  return layout_shared_offset(x->buf.smem, layout_flat(x->buf.smem, coord));
}

static Gather
gather_new(Gen *g, const Op *op, int axis)
{
  Gather x = {.buf = buffer_of(g, op_operand(op, 0)), .h = dist_get(g, op_operand(op, 1)->type->layout), .axis = axis};
  u32 cols[LAYOUT_MAX_BITS];
  x.extent_bits = log2_u32(next_pow2(op_operand(op, 0)->type->shape[axis]));
  for (u32 i = 0; i < x.h->thread_bits; i++) {
    cols[i] = beside_axis(&x, x.h->thread[i]);
    x.thread_mask |= cols[i];
  }
  x.thread = team_linear(g, cols, x.h->thread_bits);
  return x;
}

/* What the index adds: its bits that move up by the same number of places go together. */
static Val
index_offset(Gen *g, const Gather *x, Val index)
{
  u32 cols[LAYOUT_MAX_BITS], coord[MAX_RANK] = {0};
  Val sum = gen_u32(g, 0);
  for (u32 i = 0; i < x->extent_bits; i++) {
    coord[x->axis] = 1u << i;
    cols[i] = layout_shared_offset(x->buf.smem, layout_flat(x->buf.smem, coord));
  }
  for (int d = -LAYOUT_MAX_BITS; d < LAYOUT_MAX_BITS; d++) {
    u32 mask = 0;
    for (int i = 0; i < (int)x->extent_bits; i++)
      if (i + d >= 0 && i + d < LAYOUT_MAX_BITS && cols[i] >> (i + d) & 1)
        mask |= 1u << i;
    if (!mask)
      continue;
    Val bits = LLVMBuildAnd(B, index, gen_u32(g, mask), "");
    bits = d >= 0 ? LLVMBuildShl(B, bits, gen_u32(g, (u32)d), "") : LLVMBuildLShr(B, bits, gen_u32(g, (u32)-d), "");
    sum = LLVMBuildXor(B, sum, bits, "");
  }
  return sum;
}

/* A pointer to the element that register r's index means. */
static Val
element(Gen *g, const Gather *x, u32 r, Val index)
{
  const Buffer *b = &x->buf;
  Val off = gen_xor_const(g, x->thread, x->thread_mask, beside_axis(x, x->h->flat[r]) ^ b->off);
  off = LLVMBuildXor(B, off, index_offset(g, x, index), "");
  if (b->cut) {
    Val last = gen_u32(g, b->cut - 1);
    off = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntULT, off, last, ""), off, last, "");
  }
  if (b->pad_every) {
    Val rows = LLVMBuildLShr(B, off, gen_u32(g, log2_u32(b->pad_every)), "");
    off = LLVMBuildAdd(B, off, LLVMBuildMul(B, rows, gen_u32(g, b->pad), ""), "");
  }
  off = LLVMBuildMul(B, off, gen_u32(g, b->bytes), "");
  return addr_shared(g, b->base ? LLVMBuildAdd(B, off, b->base, "") : off, b->at);
}

void
lower_SHARED_GATHER(Gen *g, const Op *op)
{
  Gather x = gather_new(g, op, (int)op_int(op, AT_AXIS, 0));
  const Val *index = gen_regs(g, op_operand(op, 1));
  Words w = words_for(g, x.buf.d, false, 1);
  Val *out = gen_new(g, op_result(op));
  for (u32 r = 0; r < x.h->regs; r++) {
    Val word;
    if (x.h->rep[r] != r)
      continue;
    words_load(g, &w, element(g, &x, r, index[r]), x.buf.bytes, &word);
    words_unpack(g, &w, &word, &out[r]);
  }
  dist_share(g, op_result(op));
}

/* Where a thread is the one that writes its register r, an element of a tile whose copies other threads hold. */
static Val
when_own(Gen *g, const Gather *x, const Type *tile, u32 r, Val mask)
{
  Val inside = gen_and(g, dist_inside(g, x->h, tile, r), mask);
  return gen_and(g, dist_leader(g, x->h), inside);
}

void
lower_SHARED_ADD(Gen *g, const Op *op)
{
  Gather x = gather_new(g, op, 0);
  const Type *t = op_operand(op, 1)->type;
  const Val *index = gen_regs(g, op_operand(op, 1)), *v = gen_regs(g, op_operand(op, 2));
  const Val *mask = op_operand(op, 3) ? gen_regs(g, op_operand(op, 3)) : NULL;
  LLVMAtomicRMWBinOp add = dtype_is_float(x.buf.d) ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
  for (u32 r = 0; r < x.h->regs; r++) {
    if (x.h->rep[r] != r)
      continue;
    LLVMBasicBlockRef after = gen_if(g, when_own(g, &x, t, r, mask ? mask[r] : NULL));
    LLVMBuildAtomicRMW(B, add, element(g, &x, r, index[r]), v[r], LLVMAtomicOrderingMonotonic, 0);
    gen_end_if(g, after);
  }
}

void
lower_SHARED_SCATTER(Gen *g, const Op *op)
{
  Gather x = gather_new(g, op, 0);
  const Type *t = op_operand(op, 1)->type;
  const Val *index = gen_regs(g, op_operand(op, 1)), *v = gen_regs(g, op_operand(op, 2));
  const Val *mask = op_operand(op, 3) ? gen_regs(g, op_operand(op, 3)) : NULL;
  Words w = words_for(g, x.buf.d, false, 1);
  for (u32 r = 0; r < x.h->regs; r++) {
    Val word;
    if (x.h->rep[r] != r)
      continue;
    words_pack(g, &w, &v[r], &word);
    LLVMBasicBlockRef after = gen_if(g, when_own(g, &x, t, r, mask ? mask[r] : NULL));
    words_store(g, &w, element(g, &x, r, index[r]), x.buf.bytes, &word);
    gen_end_if(g, after);
  }
}

/* ---- counting in order ---- */

/* The lanes whose indices are this lane's: a ballot for each bit, of which a lane without the bit takes the complement. */
static Val
equal_lanes(Gen *g, const Gather *x, Val index)
{
  Val lanes[LAYOUT_MAX_BITS + 2];
  u32 n = x->extent_bits;
  for (u32 i = 0; i < n; i++)
    lanes[i] = ptx_value(g, PTX_BIT_LANES, g->i32, 1, &index, arena_printf(g->arena, "%u", 1u << i), NULL);
  while (n < 3)
    lanes[n++] = gen_u32(g, UINT32_MAX);
  Val equal = lanes[0];
  for (u32 i = 1; i + 1 < n; i += 2)
    equal = ptx_value(g, PTX_AND3, g->i32, 3, (Val[]){equal, lanes[i], lanes[i + 1]}, NULL, NULL);
  return n % 2 ? equal : LLVMBuildAnd(B, equal, lanes[n - 1], "");
}

/* The elements in a register are 32 neighbours of a row, those of the next register stand behind them. All lanes read what is there; of
 * those with equal indices the last writes how many there are then. Ballots of the next register hide how long the read takes. */
void
lower_SHARED_COUNT(Gen *g, const Op *op)
{
  Gather x = gather_new(g, op, 1);
  const Val *index = gen_regs(g, op_operand(op, 1));
  Val *out = gen_new(g, op_result(op)), lane = LLVMBuildAnd(B, g->team->tid, gen_u32(g, LANES - 1), "");
  Val bit = LLVMBuildShl(B, gen_u32(g, 1), lane, ""), below = LLVMBuildSub(B, bit, gen_u32(g, 1), "");
  Val above = LLVMBuildNot(B, LLVMBuildOr(B, bit, below, ""), ""), equal = equal_lanes(g, &x, index[0]);
  for (u32 r = 0; r < x.h->regs; r++) {
    Val p = element(g, &x, r, index[r]), old = LLVMBuildLoad2(B, g->i32, p, ""), before = LLVMBuildAnd(B, equal, below, "");
    Val last = LLVMBuildICmp(B, LLVMIntEQ, LLVMBuildAnd(B, equal, above, ""), gen_u32(g, 0), "");
    out[r] = LLVMBuildAdd(B, old, gen_call(g, "llvm.ctpop", 1, &g->i32, 1, &before), "");
    equal = r + 1 < x.h->regs ? equal_lanes(g, &x, index[r + 1]) : NULL;
    team_warp_barrier(g);
    ptx_emit(g, PTX_ST_WHERE, &(PtxArgs){.nin = 3, .in = {p, LLVMBuildAdd(B, out[r], gen_u32(g, 1), ""), last}}, NULL);
    team_warp_barrier(g);
  }
}

/* ---- within a tile ---- */

typedef struct Swap {
  const SwapPlan *plan;
  const Dist *h;
  Words w;
  u32 bytes, at, piece;          /* of an element; scratch; registers that go through it at a time */
} Swap;

static Val
slot(Gen *g, const Swap *s, u32 r, bool other)
{
  Val t = other ? LLVMBuildXor(B, g->team->tid, gen_u32(g, s->plan->thread), "") : g->team->tid;
  Val off = LLVMBuildMul(B, t, gen_u32(g, s->bytes), "");
  return addr_shared(g, off, s->at + (u64)(r % s->piece) * team_threads(g->team->range) * s->bytes);
}

/* A piece: every thread writes the registers from `first` on, and reads them from the thread that has what it wants. */
static void
swap_piece(Gen *g, const Swap *s, u32 first, const Val *in, Val *out)
{
  Val word;
  for (u32 r = first; r < first + s->piece; r++)
    if (s->h->rep[r] == r) {
      words_pack(g, &s->w, &in[r], &word);
      words_store(g, &s->w, slot(g, s, r, false), s->bytes, &word);
    }
  team_barrier(g);
  for (u32 r = 0; r < s->h->regs; r++) {
    u32 source = s->h->rep[r ^ s->plan->reg];
    if (s->h->rep[r] == r && source - first < s->piece) {
      words_load(g, &s->w, slot(g, s, source, true), s->bytes, &word);
      words_unpack(g, &s->w, &word, &out[r]);
    }
  }
}

/* Between warps, through scratch memory. */
static void
swap_warps(Gen *g, const Op *op, const SwapPlan *p, const Dist *h, const Val *in, Val *out)
{
  const Type *t = op_result(op)->type;
  Swap s = {.plan = p, .h = h, .w = words_for(g, t->dt, type_is_ptr(t), 1), .bytes = type_elem_bytes(t),
            .at = (u32)op_int(op, AT_SCRATCH, 0), .piece = scratch_exchange_registers(op)};
  for (u32 first = 0; first < h->regs; first += s.piece) {
    if (first)
      team_barrier(g);
    swap_piece(g, &s, first, in, out);
  }
}

void
lower_BUTTERFLY(Gen *g, const Op *op)
{
  const Value *x = op_operand(op, 0);
  const Dist *h = dist_get(g, x->type->layout);
  const Val *in = gen_regs(g, x);
  Val *out = gen_new(g, op_result(op));
  SwapPlan p;
  scratch_exchange(op, &p);
  if (p.bytes && !addr_scratch(g, op, scratch_bytes(g->c, op))) {
    gen_poison(g, op_result(op));
    return;
  }
  if (p.bytes)
    swap_warps(g, op, &p, h, in, out);
  for (u32 r = 0; r < h->regs && !p.bytes; r++)
    if (h->rep[r] == r)
      out[r] = p.thread ? shuffle_xor(g, in[r ^ p.reg], p.thread) : in[r ^ p.reg];
  dist_share(g, op_result(op));
}
