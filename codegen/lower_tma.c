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

static bool
has_tma(Gen *g, const Op *op)
{
  if (target_has(g->target, F_TMA))
    return true;
  gen_unsupported(g, op, arena_printf(g->arena, "%s, which copies boxes of tensors (async_copy copies from addresses)",
                                      op_info(op->code)->name));
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
  return addr_shared(g, gen_regs(g, op_buffer(op))[0], i / f->chunks * f->panel_bytes + i % f->chunks * f->chunk_bytes);
}

/* Pieces of the box, and the address of its map. */
static u32
box_of(Gen *g, const Op *op, TmaForm *f, Val *map)
{
  *f = params_asked(op).form;
  *map = LLVMBuildPtrToInt(B, asked(g, op), g->i64, "");
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
