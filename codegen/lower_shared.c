/* lower_shared.c - shared buffers: their views, and tiles moved between registers and them.
 *
 * A value of buffer type is one i32: the byte in the kernel's shared memory where the buffer starts. What else a view is (a
 * constant to exclusive-or into offsets, a layout) is known when compiling: it follows from the ops and the type.
 */
#include "gen.h"
#include "access.h"

#define B g->b

/* ---- views ---- */
void
lower_SHARED_ALLOC(Gen *g, const Op *op)
{
  const Type *t = op_result(op)->type;
  i64 at = op_int(op, AT_OFFSET, -1), bytes = (i64)type_shared_bytes(t), align = buffer_align(op);
  if (at < 0 || at % align || at + bytes > (i64)g->func->shared_bytes) {
    const char *why = arena_printf(g->arena, "it needs %lld bytes within the kernel's %u, and an offset that is a multiple of %lld",
                                   (long long)bytes, g->func->shared_bytes, (long long)align);
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

/* ---- tiles ---- */

/* The dot loads the fragments as it goes: the pass load_on_demand says where that is so. */
static void
leave_to_dot(Gen *g, const Op *load, const Buffer *b, const Dist *h, SharedAccess a)
{
  if (a.matrix)
    g->fragments[op_result(load)->id] = buffer_fragments(g, b, h, a.trans);
  else
    gen_unsupported(g, load, "a shared_load on demand (it takes ldmatrix)");
}

void
lower_SHARED_LOAD(Gen *g, const Op *op)
{
  Value *r = op_result(op);
  const Type *buffer = op_operand(op, 0)->type;
  Buffer b = buffer_of(g, op_operand(op, 0));
  Dist *h = buffer_dist(g, r->type, &b);
  SharedAccess a = access_plan(g->c, r->type, buffer, target_has(g->target, F_LDMATRIX) && !b.remote);
  Val *out = gen_new(g, r);
  b.moves = op_int(op, AT_LATE, 0);
  if (op_int(op, AT_ON_DEMAND, 0)) {
    leave_to_dot(g, op, &b, h, a);
    return;
  }
  if (a.matrix)
    buffer_matrices(g, &b, h, a.trans, false, out);
  else
    buffer_vectors(g, &b, h, a.vec, false, out);
  dist_share(g, r);
}

/* Threads that hold copies do not store; stmatrix is the whole warp's, so there only whole warps stay out. */
void
lower_SHARED_STORE(Gen *g, const Op *op)
{
  const Value *x = op_operand(op, 1);
  Buffer b = buffer_of(g, op_operand(op, 0));
  b.late = late_of(g, x);
  Dist *h = buffer_dist(g, x->type, &b);
  const Type *buffer = op_operand(op, 0)->type;
  SharedAccess a = access_plan(g->c, x->type, buffer, target_has(g->target, F_STMATRIX) && !buffer->cut && !b.remote);
  LLVMBasicBlockRef after = gen_if(g, team_bits_zero(g, a.matrix ? h->free_threads & ~(LANES - 1u) : h->free_threads));
  if (a.matrix)
    buffer_matrices(g, &b, h, a.trans, true, gen_regs(g, x));
  else
    buffer_vectors(g, &b, h, a.vec, true, gen_regs(g, x));
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
