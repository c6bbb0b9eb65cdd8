/* scratch.c - how much shared memory an op needs while it runs. */
#include "scratch.h"

enum { ALIGN = 16 };   /* widest shared access */

u32
scratch_pieces(const Op *op)
{
  return log2_u32((u32)op_int(op, AT_PIECES, 1));
}

static u32
aligned(u32 bytes)
{
  return align_up(bytes, ALIGN);
}

bool
scratch_reduce_votes(const Op *reduce, bool *all)
{
  OpCode code;
  if (!op_folds_by(reduce, &code) || type_is_tile(op_result(reduce)->type) || op_result(reduce)->type->dt != DT_I1)
    return false;
  *all = code == OP_AND || code == OP_MIN;
  return *all || code == OP_OR || code == OP_MAX;
}

void
scratch_reduce(const Op *reduce, ReduceScratch *out)
{
  bool all;
  *out = (ReduceScratch){.nwarps = 1, .align = ALIGN};
  const Layout *l = OPERAND(reduce, REDUCE, xs)->type->layout;
  u32 axis = (u32)op_int(reduce, AT_AXIS, 0), along = layout_dim_mask(l, (int)axis);
  u32 copies = layout_free_bits(l, IN_WARP);
  for (u32 w = 0; w < l->in_bits[IN_WARP]; w++)
    if (!(copies >> w & 1) && (l->col[IN_WARP][w] & along)) {
      out->warp_mask |= 1u << w;
      out->nwarps *= 2;
    }
  out->elements = layout_numel(l) >> l->out_bits[axis];
  if (out->nwarps == 1 || scratch_reduce_votes(reduce, &all))
    return;
  if (type_is_tile(op_result(reduce)->type)) {
    out->pieces = layout_register_pieces(op_result(reduce)->type->layout, scratch_pieces(reduce), &out->map);
    out->elements >>= out->pieces;
  }
  bool many = out->elements >= 8;
  out->element_step = many ? 1 : out->nwarps;
  out->warp_step = many ? out->elements : 1;
  for (u32 k = 0; k < reduce->noperands && k < COUNT(out->base); k++) {
    out->base[k] = out->bytes;
    out->bytes += aligned(out->elements * out->nwarps * type_elem_bytes(op_operand(reduce, k)->type));
  }
}

u32
scratch_scan_element(const Op *scan, const ScanRound *r, u32 flat)
{
  u32 shift = layout_dim_shift(OPERAND(scan, SCAN, xs)->type->layout, (int)op_int(scan, AT_AXIS, 0)), low = flat & ((1u << shift) - 1);
  return (flat >> (shift + r->k + r->warps)) << shift | low;
}

/* l over the elements of the round's end. */
static Layout
round_layout(const Op *scan, const ScanRound *r, const Layout *l)
{
  Layout out = {.rank = 1, .out_bits = {(u8)(log2_u32(layout_numel(l)) - r->k - r->warps)}};
  memcpy(out.in_bits, l->in_bits, sizeof out.in_bits);
  for (u32 in = IN_REG; in <= IN_WARP; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++)
      out.col[in][i] = scratch_scan_element(scan, r, l->col[in][i]);
  return out;
}

ScanRound
scratch_scan_round(const Op *scan, const ScanPlan *p, u32 k)
{
  const Layout *l = OPERAND(scan, SCAN, xs)->type->layout;
  ScanRound r = {.k = k};
  while (k + r.warps < p->bits && p->owner[k + r.warps] == IN_WARP)
    ++r.warps;
  Layout left = round_layout(scan, &r, l);
  r.pieces = layout_register_pieces(&left, scratch_pieces(scan), &r.map);
  u32 n = layout_numel(l) >> (k + r.pieces);
  for (u32 i = 0; i < scan->noperands + p->flags && i < COUNT(r.base); i++) {
    r.base[i] = r.bytes;
    r.bytes += aligned(n * (i < scan->noperands ? type_elem_bytes(op_operand(scan, i)->type) : 1));
  }
  return r;
}

bool
scratch_scan(const Op *scan, ScanPlan *out)
{
  const Type *t = OPERAND(scan, SCAN, xs)->type;
  const Layout *l = t->layout;
  u32 axis = (u32)op_int(scan, AT_AXIS, 0), along = layout_dim_mask(l, (int)axis), found = 0, shift = layout_dim_shift(l, (int)axis);
  *out = (ScanPlan){.bits = l->out_bits[axis]};
  out->flags = op_int(scan, AT_REVERSE, 0) && !is_pow2(t->shape[axis]);
  for (u32 in = IN_REG; in <= IN_WARP; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u32 col = l->col[in][i];
      if (!(col & along))
        continue;
      if (!is_pow2(col) || found & col)
        return false;
      found |= col;
      out->owner[log2_u32(col) - shift] = (u8)in;
      out->index[log2_u32(col) - shift] = (u8)i;
    }
  for (u32 k = 0; k < out->bits; k++) {
    bool starts = out->owner[k] == IN_WARP && (!k || out->owner[k - 1] != IN_WARP);
    out->bytes = max_u32(out->bytes, starts ? scratch_scan_round(scan, out, k).bytes : 0);
  }
  return found == along;
}

u32
scratch_exchange_bits(const Op *exchange, const Layout *l)
{
  if (exchange->code != OP_BUTTERFLY)
    ctx_panic(exchange->block->func->module->ctx, "scratch.c does not know what '%s' moves", op_info(exchange->code)->name);
  return (u32)op_int(exchange, AT_MASK, 0) << layout_dim_shift(l, (int)op_int(exchange, AT_AXIS, 0));
}

/* Gaussian elimination over the columns, registers first: a vector by its top bit, and which inputs make it. */
void
scratch_exchange(const Op *exchange, SwapPlan *out)
{
  const Type *t = OPERAND(exchange, UNARY, x)->type;
  const Layout *l = t->layout;
  u32 vec[LAYOUT_MAX_BITS] = {0}, want = scratch_exchange_bits(exchange, l), threads = 0;
  u64 from[LAYOUT_MAX_BITS] = {0}, made = 0;
  for (u32 in = IN_REG; in <= IN_WARP; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u32 x = l->col[in][i];
      u64 by = in == IN_REG ? 1ull << i : 1ull << (32 + threads++);
      for (int b = LAYOUT_MAX_BITS - 1; b >= 0 && x; b--) {
        if (!(x >> b & 1))
          continue;
        if (!vec[b]) {
          vec[b] = x;
          from[b] = by;
          break;
        }
        x ^= vec[b];
        by ^= from[b];
      }
    }
  for (int b = LAYOUT_MAX_BITS - 1; b >= 0; b--)
    if (want >> b & 1) {
      want ^= vec[b];
      made ^= from[b];
    }
  *out = (SwapPlan){.reg = (u32)made, .thread = (u32)(made >> 32)};
  if (out->thread >> l->in_bits[IN_LANE])
    out->bytes = aligned((layout_regs(l) << threads) * type_elem_bytes(t));
}

void
scratch_convert_plan(Ctx *c, const Op *convert, ConvertPlan *out)
{
  const Type *from = OPERAND(convert, CONVERT_LAYOUT, x)->type, *to = op_result(convert)->type;
  u32 bits = type_elem_bits(from);
  layout_convert_plan(c, from->layout, to->layout, bits < 8 ? 8 : bits, target_has(c->target, F_LDMATRIX),
                      target_has(c->target, F_STMATRIX), out);
}

/* ---- pieces ---- */

/* The layouts between which op moves a tile through scratch; false if it does not. */
static bool
moves_between(const Op *op, const Type **from, const Type **to)
{
  bool converts = op->code == OP_CONVERT_LAYOUT, answers = op->code == OP_ATOMIC_RMW || op->code == OP_ATOMIC_CAS || op->code == OP_LOAD;
  if ((!converts && !answers) || !type_is_tile(op_result(op)->type))
    return false;
  *to = op_result(op)->type;
  *from = converts ? OPERAND(op, CONVERT_LAYOUT, x)->type : *to;
  return true;
}

u32
scratch_most_pieces(Ctx *c, const Op *op)
{
  const Type *from, *to;
  if (op_has(op, T_EXCHANGE))
    return min_u32(PIECES_MAX_BITS, OPERAND(op, UNARY, x)->type->layout->in_bits[IN_REG]);
  if (op->code == OP_REDUCE && type_is_tile(op_result(op)->type)) {
    PieceMap m;
    return layout_register_pieces(op_result(op)->type->layout, PIECES_MAX_BITS, &m);
  }
  if (op->code == OP_SCAN)
    return PIECES_MAX_BITS;
  return moves_between(op, &from, &to) ? layout_pieces_most(to->layout) : 0;
}

void
scratch_pieces_plan(Ctx *c, const Op *op, PiecesPlan *out)
{
  const Type *from, *to;
  if (!moves_between(op, &from, &to))
    ctx_panic(c, "scratch.c does not know what '%s' moves in pieces", op_info(op->code)->name);
  u32 bits = type_elem_bits(to);
  bool leaders = op->code != OP_CONVERT_LAYOUT;      /* others than they have nothing to store, and stmatrix is the whole warp's */
  layout_pieces_plan(c, from->layout, to->layout, bits < 8 ? 8 : bits, target_has(c->target, F_LDMATRIX),
                     target_has(c->target, F_STMATRIX) && !leaders, min_u32(scratch_pieces(op), layout_pieces_most(to->layout)), out);
}

u32
scratch_exchange_registers(const Op *exchange)
{
  const Layout *l = OPERAND(exchange, UNARY, x)->type->layout;
  return layout_regs(l) >> min_u32(scratch_pieces(exchange), l->in_bits[IN_REG]);
}

static u32
pieces_bytes(Ctx *c, const Op *op)
{
  PiecesPlan p;
  scratch_pieces_plan(c, op, &p);
  return aligned(p.shared.bytes);
}

/* One thread performs a scalar atomic or volatile load and hands the value to all; a tile's goes through memory to the threads
 * that hold copies. Unused results cost nothing. */
static u32
owner_bytes(Ctx *c, const Op *op)
{
  const Value *r = op_result(op);
  if (value_unused(r))
    return 0;
  if (!type_is_tile(r->type))
    return ALIGN;
  const Layout *l = r->type->layout;
  if (!(layout_free_bits(l, IN_LANE) | layout_free_bits(l, IN_WARP)))
    return 0;
  return scratch_pieces(op) ? pieces_bytes(c, op) : aligned(layout_numel(l) * type_elem_bytes(r->type));
}

u32
scratch_bytes(Ctx *c, const Op *op)
{
  ReduceScratch r;
  ScanPlan s;
  SwapPlan swap;
  if (op_has(op, T_EXCHANGE)) {
    scratch_exchange(op, &swap);
    return aligned(swap.bytes / layout_regs(OPERAND(op, UNARY, x)->type->layout) * scratch_exchange_registers(op));
  }
  switch (op->code) {
  case OP_REDUCE:
    scratch_reduce(op, &r);
    return r.bytes;
  case OP_SCAN:
    scratch_scan(op, &s);
    return s.bytes;
  case OP_CONVERT_LAYOUT:
    if (strcmp(op_str(op, AT_KIND, ""), "shared"))
      return 0;
    return op_attr(op, AT_SCRATCH_BYTES) ? aligned((u32)op_int(op, AT_SCRATCH_BYTES, 0)) : pieces_bytes(c, op);
  case OP_ATOMIC_RMW: case OP_ATOMIC_CAS: return owner_bytes(c, op);
  case OP_TENSOR_AT: return tensor_first_copy(op_result(op)) ? MAP_BYTES : 0;
  case OP_LOAD: return op_int(op, AT_VOLATILE, 0) ? owner_bytes(c, op) : 0;
  default: return 0;
  }
}
