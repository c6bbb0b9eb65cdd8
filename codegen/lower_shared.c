/* lower_shared.c - shared buffers: their views, and tiles moved between registers and them.
 *
 * A value of buffer type is one i32: the byte in the kernel's shared memory where the buffer starts. What else a view is (a
 * constant to exclusive-or into offsets, a layout) is known when compiling: it follows from the ops and the type.
 */
#include "gen.h"

#define B g->b

/* ---- views ---- */
void
lower_SHARED_ALLOC(Gen *g, const Op *op)
{
  const Type *t = op_result(op)->type;
  i64 at = op_int(op, AT_OFFSET, -1), bytes = (i64)type_shared_stride(t) * (t->count ? t->count : 1);
  if (at < 0 || at % 128 || at + bytes > (i64)g->func->shared_bytes) {
    const char *why = arena_printf(g->arena, "it needs %lld bytes within the kernel's %u, and an offset that is a multiple of 128",
                                   (long long)bytes, g->func->shared_bytes);
    diag(g->c, op->span, E_VERIFY, op_info(op->code)->name, why);
    g->failed = true;
  }
  gen_new(g, op_result(op))[0] = gen_u32(g, (u32)at);
}

void
lower_SHARED_FREE(Gen *g, const Op *op)
{
}

static void
same_start(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = gen_regs(g, op_operand(op, 0))[0];
}

void
lower_SHARED_INDEX(Gen *g, const Op *op)
{
  Val stride = gen_u32(g, type_shared_stride(op_operand(op, 0)->type));
  Val off = LLVMBuildMul(B, gen_regs(g, op_operand(op, 1))[0], stride, "");
  gen_new(g, op_result(op))[0] = LLVMBuildAdd(B, gen_regs(g, op_operand(op, 0))[0], off, "");
}

void
lower_SHARED_SLICE(Gen *g, const Op *op)
{
  same_start(g, op);
}

void
lower_SHARED_PERMUTE(Gen *g, const Op *op)
{
  if (op_is(op_operand(op, 0), OP_SHARED_SLICE))
    gen_unsupported(g, op, "permuting a slice (permute the buffer, then slice it)");
  same_start(g, op);
}

void
lower_SHARED_RESHAPE(Gen *g, const Op *op)
{
  same_start(g, op);
}

void
lower_SHARED_CAST(Gen *g, const Op *op)
{
  same_start(g, op);
}

/* What slices contribute to offsets, in elements. */
static u32
view_offset(const Value *v)
{
  const Op *op = v->def;
  u32 coord[MAX_RANK] = {0}, off = 0;
  for (; op && op->code == OP_SHARED_SLICE; op = op_operand(op, 0)->def) {
    const Attr *a = op_attr(op, AT_OFFSETS);
    const Layout *l = op_result(op)->type->layout;
    for (u32 i = 0; i < a->ints.n; i++)
      coord[i] = (u32)a->ints.v[i];
    off ^= layout_shared_offset(l, layout_flat(l, coord));
  }
  return off;
}

Buffer
gen_buffer(Gen *g, const Value *v)
{
  const Type *t = v->type;
  Buffer b = {.smem = t->layout, .d = t->dt, .bytes = dtype_bytes(t->dt), .base = gen_regs(g, v)[0], .off = view_offset(v),
              .pad_every = t->pad_every, .pad = t->pad};
  if (LLVMIsAConstantInt(b.base)) {
    b.at = LLVMConstIntGetZExtValue(b.base);
    b.base = NULL;
  }
  return b;
}

/* ---- tiles ---- */

/* A slice is smaller than the layout of its buffer covers: a tile's layout widened to the buffer's extents. */
static const Layout *
widened(Gen *g, const Layout *l, const Layout *smem)
{
  Layout wide = *l;
  memcpy(wide.out_bits, smem->out_bits, sizeof wide.out_bits);
  for (u32 in = 0; in < IN_COUNT; in++)
    for (u32 i = 0; i < l->in_bits[in]; i++) {
      u32 coord[MAX_RANK];
      layout_coords(l, l->col[in][i], coord);
      wide.col[in][i] = layout_flat(smem, coord);
    }
  return layout_intern(g->c, &wide);
}

Held *
held_against(Gen *g, const Type *tile, const Buffer *b)
{
  return held_get(g, widened(g, tile->layout, b->smem));
}

/* The tile goes to one dot on tensor cores, and nothing between here and there touches shared memory or waits: the dot may
 * load fragments as it needs them, which keeps few of them in registers and overlaps the loads with the work. */
static bool
dot_may_load(const Op *load)
{
  const Value *v = op_result(load);
  if (value_use_count(v) != 1 || v->uses->user->code != OP_DOT || !op_attr(v->uses->user, AT_MMA) || dtype_bits(v->type->dt) > 16)
    return false;
  for (const Op *op = load->next; op != v->uses->user; op = op->next) {
    bool harmless = op && !op_has(op, T_WRITES) && !op_has(op, T_SIDE) && !op_attr(op, AT_SCRATCH) &&
                    (!op->nregions || op->code == OP_REDUCE);
    if (!harmless)
      return false;
  }
  return v->uses == &v->uses->user->operands[0] || v->uses == &v->uses->user->operands[1];
}

void
lower_SHARED_LOAD(Gen *g, const Op *op)
{
  Value *r = op_result(op);
  Buffer b = gen_buffer(g, op_operand(op, 0));
  Held *h = held_against(g, r->type, &b);
  Val *out = gen_new(g, r);
  u32 vec = layout_access_vec(h->l, b.smem, b.bytes * 8), slots = 0;
  MatrixAccess m;
  bool matrix = target_has(g->target, F_LDMATRIX) && !b.pad_every && vec * b.bytes < 16;
  for (int trans = 0; matrix && trans < 2; trans++) {
    if (!layout_matrix_access(h->l, b.smem, b.bytes * 8, trans, &m))
      continue;
    slots = m.groups * m.count;
    if (slots > layout_regs(h->l) / vec)
      continue;
    if (dot_may_load(op)) {
      g->fragments[r->id] = fragments_new(g, &b, h, trans);
      return;
    }
    buffer_matrices(g, &b, h, trans, false, out);
    gen_share(g, r);
    return;
  }
  buffer_vectors(g, &b, h, vec, false, out);
  gen_share(g, r);
}

void
lower_SHARED_STORE(Gen *g, const Op *op)
{
  const Value *x = op_operand(op, 1);
  Buffer b = gen_buffer(g, op_operand(op, 0));
  Held *h = held_against(g, x->type, &b);
  LLVMBasicBlockRef after = gen_if(g, gen_thread_zero(g, h->free_threads));
  buffer_vectors(g, &b, h, layout_access_vec(h->l, b.smem, b.bytes * 8), true, gen_regs(g, x));
  gen_end_if(g, after);
}

/* ---- asynchronous copies ---- */
void
lower_ASYNC_COMMIT(Gen *g, const Op *op)
{
  gen_call_convergent(g, "llvm.nvvm.cp.async.commit.group", 0, NULL, 0, NULL);
}

void
lower_ASYNC_WAIT(Gen *g, const Op *op)
{
  Val n = gen_u32(g, (u32)op_int(op, AT_PENDING, 0));
  gen_call_convergent(g, "llvm.nvvm.cp.async.wait.group", 0, NULL, 1, &n);
}
