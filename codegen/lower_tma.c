/* lower_tma.c - tensors, and copies of their boxes: one thread of the team starts them, and waits for those that store.
 *
 * A buffer is one box or several (ir/tma.c): an instruction each, whose coordinates differ by constants. */
#include "gen.h"

#define B g->b

/* ---- what is known of a tensor ---- */

static Val
asked(Gen *g, const Op *op)
{
  KernelParam p = params_asked(op);
  return LLVMGetParam(g->fn, params_index(&g->params, &p));
}

/* It is its map. */
void
lower_TENSOR_OF(Gen *g, const Op *op)
{
}

static bool
has_tma(Gen *g, const Op *op)
{
  if (target_has(g->target, F_TMA))
    return true;
  bool load = op->code == OP_TMA_LOAD;                /* other ops have older forms (passes/older_forms.c) */
  gen_unsupported(g, op, load ? "a tma_load whose bytes are not announced in front of it in its block"
                              : arena_printf(g->arena, "%s, which copies boxes of tensors,", op_info(op->code)->name));
  return false;
}

static void
push_leader(Gen *g, PtxArgs *p)
{
  Val leads = dist_leader(g, NULL);
  if (!leads)
    return;
  p->subst[0] = arena_printf(g->arena, "@$%u", p->nin);
  p->in[p->nin++] = leads;
}

/* ---- maps that the kernel makes ----
 *
 * One warp writes the map's fields into shared memory, which begin as zeros, and copies it to the program's own global memory. Copies of
 * boxes read maps by a proxy of their own: so the writer releases it, all threads meet, and a thread of each warp acquires it, the one that
 * may start copies later.
 * Nobody does any more of what the map was before: each such copy has been waited for where it was used. */

/* PTX ISA, "tensormap.replace": numbers of element types and swizzles. */
static u32
map_type(DType d)
{
  static const u8 numbers[DT_COUNT] = {[DT_U16] = 1, [DT_I16] = 1, [DT_U32] = 2, [DT_I32] = 3, [DT_U64] = 4, [DT_I64] = 5, [DT_F16] = 6,
                                       [DT_F32] = 7, [DT_F64] = 9, [DT_BF16] = 10};
  return numbers[d];
}

static u32
map_swizzle(u32 bytes)
{
  return bytes ? log2_u32(bytes) - 4 : 0;
}

/* at: which dimension the field is of, innermost first; -1: of none. value NULL: the number k, as text. */
static void
put_field(Gen *g, Val map, const char *field, int at, Val value, u32 k)
{
  bool wide = value && LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 64;
  PtxArgs p = {.nin = value ? 2 : 1, .in = {map, value}, .subst = {NULL, field, wide ? "64" : "32"}};
  p.subst[3] = at < 0 ? "" : arena_printf(g->arena, " %d,", at);
  p.subst[4] = value ? "$1" : arena_printf(g->arena, "%u", k);
  push_leader(g, &p);
  ptx_emit(g, PTX_TMA_FIELD, &p, NULL);
}

static void
put_fields(Gen *g, const Value *t, const TmaForm *f, Val map)
{
  Val pointer = gen_regs(g, tensor_pointer(t))[0], bytes = LLVMConstInt(g->i64, dtype_bytes(t->type->dt), 0);
  put_field(g, map, "global_address", -1, LLVMBuildPtrToInt(B, pointer, g->i64, ""), 0);
  put_field(g, map, "rank", -1, NULL, f->rank - 1);
  for (u32 i = 0; i < f->rank; i++) {
    u32 d = f->rank - 1 - i;
    put_field(g, map, "box_dim", (int)i, NULL, f->box[d]);
    put_field(g, map, "global_dim", (int)i, gen_regs(g, tensor_number(t, OP_TENSOR_EXTENT, d))[0], 0);
    put_field(g, map, "element_stride", (int)i, NULL, 1);
    if (i)
      put_field(g, map, "global_stride", (int)i - 1, LLVMBuildMul(B, gen_regs(g, tensor_number(t, OP_TENSOR_STRIDE, d))[0], bytes, ""), 0);
  }
  put_field(g, map, "elemtype", -1, NULL, map_type(t->type->dt));
  put_field(g, map, "interleave_layout", -1, NULL, 0);
  put_field(g, map, "swizzle_mode", -1, NULL, map_swizzle(f->swizzle));
  put_field(g, map, "fill_mode", -1, NULL, 0);
}

void
lower_TENSOR_AT(Gen *g, const Op *op)
{
  const Value *t = op_result(op);
  const Op *copy = tensor_first_copy(t);
  if (!copy || !has_tma(g, op) || !addr_scratch(g, op, MAP_BYTES))
    return;
  TmaForm f = params_asked(copy).form;
  u32 at = (u32)op_int(op, AT_SCRATCH, 0), words[LANE_BITS] = {4, 8, 16, 32, 64};
  Val map = gen_regs(g, tensor_map_memory(t))[0], first = team_bits_zero(g, ~(u32)(LANES - 1));
  LLVMBasicBlockRef after = gen_if(g, first);
  LLVMBuildStore(B, gen_u32(g, 0), addr_shared(g, team_linear(g, words, LANE_BITS), at));
  team_warp_barrier(g);
  put_fields(g, t, &f, addr_shared(g, NULL, at));
  team_warp_barrier(g);
  ptx_emit(g, PTX_TMA_PUT_MAP, &(PtxArgs){.nin = 2, .in = {LLVMBuildPtrToInt(B, map, g->i64, ""), addr_shared(g, NULL, at)}}, NULL);
  gen_end_if(g, after);
  team_barrier(g);
  PtxArgs take = {.nin = 2, .in = {LLVMBuildPtrToInt(B, map, g->i64, ""), team_bits_zero(g, LANES - 1)}};
  ptx_emit(g, PTX_TMA_TAKE_MAP, &take, NULL);
}

void
lower_TENSOR_BASE(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = asked(g, op);
}

void
lower_TENSOR_EXTENT(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = asked(g, op);
}

void
lower_TENSOR_STRIDE(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = asked(g, op);
}

/* ---- boxes ---- */

void
lower_tensor_maps(Gen *g)
{
  for (u32 i = 0; i < g->params.len; i++) {
    PtxArgs p = {.nin = 1};
    if (g->params.data[i].part != PARAM_MAP)
      continue;
    p.in[0] = LLVMBuildPtrToInt(B, LLVMGetParam(g->fn, i), g->i64, "");
    push_leader(g, &p);
    ptx_emit(g, PTX_TMA_MAP, &p, NULL);
  }
}

/* At which coordinates piece i is, "{$2, $3}", the last dimension first; they become inputs. */
static const char *
push_coordinates(Gen *g, const Op *op, u32 first, const TmaForm *f, u32 i, PtxArgs *p)
{
  Buf text = {.arena = g->arena};
  for (u32 d = f->rank; d--;) {
    u32 off = (d + 1 == f->rank ? i / f->chunks * f->box[d] : 0) + (d == f->along ? i % f->chunks * f->box[d] : 0);
    Val at = gen_regs(g, op_operand(op, first + d))[0];
    buf_printf(&text, "%s$%u", text.len ? ", " : "{", p->nin);
    p->in[p->nin++] = off ? LLVMBuildAdd(B, at, gen_u32(g, off), "") : at;
  }
  buf_putc(&text, '}');
  return buf_str(&text);
}

/* ", {$5, $6}": by how much pixels are shifted, the last dimension first; "" without a window. */
static const char *
push_offsets(Gen *g, const Op *op, u32 first, const TmaForm *f, PtxArgs *p)
{
  Buf text = {.arena = g->arena};
  for (u32 d = f->pixels ? f->window.n : 0; d--;) {
    Val shift = gen_regs(g, op_operand(op, first + f->rank + d))[0];
    buf_printf(&text, "%s$%u", text.len ? ", " : ", {", p->nin);
    p->in[p->nin++] = LLVMBuildTrunc(B, shift, g->i16, "");
  }
  if (text.len)
    buf_putc(&text, '}');
  return buf_str(&text);
}

/* ", $5": the policy, if the op has one. */
static const char *
push_policy(Gen *g, const Op *op, PtxArgs *p)
{
  const char *evict = op_str(op, AT_EVICT, NULL);
  if (!evict)
    return "";
  p->in[p->nin] = ptx_value(g, PTX_POLICY, g->i64, 0, NULL, evict, NULL);
  return arena_printf(g->arena, ", $%u", p->nin++);
}

static const char *
hint_of(const Op *op)
{
  return op_attr(op, AT_EVICT) ? ".L2::cache_hint" : "";
}

static Val
piece_address(Gen *g, const Op *op, const TmaForm *f, u32 i)
{
  const Value *b = op_buffer(op);
  return addr_shared(g, gen_regs(g, b)[0], buffer_part_offset(b) + i / f->chunks * f->panel_bytes + i % f->chunks * f->chunk_bytes);
}

/* Pieces of the box, and the address of its map. */
static u32
box_of(Gen *g, const Op *op, TmaForm *f, Val *map)
{
  *f = params_asked(op).form;
  const Value *t = op_tensor(op);
  TmaForm made = tensor_is_made(t) ? params_asked(tensor_first_copy(t)).form : *f;
  if (made.swizzle != f->swizzle || memcmp(made.box, f->box, sizeof f->box))
    gen_unsupported(g, op, "boxes of several forms by one map that the kernel makes");
  *map = LLVMBuildPtrToInt(B, tensor_is_made(t) ? gen_regs(g, tensor_map_memory(t))[0] : asked(g, op), g->i64, "");
  return f->panels * f->chunks;
}

/* Piece i by a row of ptx.def whose operands behind p's are its coordinates, and its policy. What is particular of the row begins at
 * subst[5]. */
static void
emit_piece(Gen *g, PtxId id, const Op *op, u32 first, const TmaForm *f, u32 i, PtxArgs *p)
{
  p->subst[1] = arena_printf(g->arena, "%u", f->rank);
  p->subst[2] = hint_of(op);
  p->subst[3] = push_coordinates(g, op, first, f, i, p);
  p->subst[4] = push_policy(g, op, p);
  p->subst[7] = f->pixels ? "im2col" : "tile";
  p->subst[8] = push_offsets(g, op, first, f, p);
  push_leader(g, p);
  ptx_emit(g, id, p, NULL);
}

/* The programs that get the box, an i16 with a bit for each rank; NULL: this one alone. */
static Val
recipients(Gen *g, const Op *op)
{
  u32 step[3], all = cluster_recipients(op, step);
  const u32 *n = g->func->cluster, stride[3] = {1, n[0], n[0] * n[1]};
  Val first = NULL;
  if (all == 1)
    return NULL;
  for (u32 a = 0; a < 3; a++) {
    if (step[a] || n[a] == 1)
      continue;
    Val place = gen_call(g, arena_printf(g->arena, "llvm.nvvm.read.ptx.sreg.cluster.ctaid.%c", "xyz"[a]), 0, NULL, 0, NULL);
    Val part = LLVMBuildMul(B, place, gen_u32(g, stride[a]), "");
    first = first ? LLVMBuildAdd(B, first, part, "") : part;
  }
  Val mask = gen_u32(g, all);
  return LLVMBuildTrunc(B, first ? LLVMBuildShl(B, mask, first, "") : mask, g->i16, "");
}

void
lower_TMA_LOAD(Gen *g, const Op *op)
{
  TmaForm f;
  bool has = has_tma(g, op);
  Val map, mbar = addr_shared(g, gen_regs(g, OPERAND(op, TMA_LOAD, m))[0], 0), to = has ? recipients(g, op) : NULL;
  for (u32 i = 0, n = has ? box_of(g, op, &f, &map) : 0; i < n; i++) {
    PtxArgs p = {.nin = to ? 4 : 3, .in = {piece_address(g, op, &f, i), map, mbar, to}};
    p.subst[5] = to ? ".multicast::cluster" : "";
    p.subst[6] = to ? ", $3" : "";
    emit_piece(g, PTX_TMA_LOAD, op, SLOT(TMA_LOAD, at), &f, i, &p);
  }
}

void
lower_TMA_STORE(Gen *g, const Op *op)
{
  TmaForm f;
  Val map;
  const char *rmw = op_str(op, AT_RMW, NULL);
  for (u32 i = 0, n = has_tma(g, op) ? box_of(g, op, &f, &map) : 0; i < n; i++) {
    PtxArgs p = {.nin = 2, .in = {piece_address(g, op, &f, i), map}};
    p.subst[5] = rmw ? "reduce." : "";
    p.subst[6] = rmw ? arena_printf(g->arena, ".%s", rmw) : "";
    emit_piece(g, PTX_TMA_STORE, op, SLOT(TMA_STORE, at), &f, i, &p);
  }
}

void
lower_TMA_PREFETCH(Gen *g, const Op *op)
{
  TmaForm f;
  Val map;
  for (u32 i = 0, n = has_tma(g, op) ? box_of(g, op, &f, &map) : 0; i < n; i++) {
    PtxArgs p = {.nin = 1, .in = {map}};
    emit_piece(g, PTX_TMA_PREFETCH, op, SLOT(TMA_PREFETCH, at), &f, i, &p);
  }
}

/* lower_tensors leaves none of these. */
static void
no_tiles(Gen *g, const Op *op)
{
  gen_unsupported(g, op, "a box of a tensor as a tile, which the pass lower_tensors makes copies and accesses of");
}

void
lower_TENSOR_LOAD(Gen *g, const Op *op)
{
  no_tiles(g, op);
}

void
lower_TENSOR_STORE(Gen *g, const Op *op)
{
  no_tiles(g, op);
}

/* Groups are a thread's own; those of others are empty. */
void
lower_TMA_COMMIT(Gen *g, const Op *op)
{
  PtxArgs p = {0};
  if (!has_tma(g, op))
    return;
  push_leader(g, &p);
  ptx_emit(g, PTX_TMA_COMMIT, &p, NULL);
}

void
lower_TMA_WAIT(Gen *g, const Op *op)
{
  PtxArgs p = {.subst = {op_int(op, AT_READ, 0) ? ".read" : "", arena_printf(g->arena, "%u", (u32)op_int(op, AT_PENDING, 0))}};
  if (has_tma(g, op))
    ptx_emit(g, PTX_TMA_WAIT, &p, NULL);
}
