/* lower_cluster.c - programs of a cluster: their ranks, their barrier, and their shared memory.
 *
 * A buffer of another program is addressed as one's own: by the byte where it starts in shared memory. That byte is as far from the own
 * buffer's as mapa puts an address of the other program from the same one here (shared::cluster is one window, PTX ISA, "mapa"). What
 * accesses it says so (addr_cluster): .shared alone would mean the own. */
#include "gen.h"

#define B g->b

static bool
has_clusters(Gen *g, const Op *op)
{
  if (target_has(g->target, F_CLUSTER) || func_cluster(g->func) == 1)
    return true;
  gen_unsupported(g, op, op_info(op->code)->name);
  return false;
}

void
lower_CLUSTER_RANK(Gen *g, const Op *op)
{
  const Attr *axis = op_attr(op, AT_AXIS);
  u32 n = axis ? g->func->cluster[axis->i] : func_cluster(g->func);
  const char *reg = axis ? arena_printf(g->arena, "llvm.nvvm.read.ptx.sreg.cluster.ctaid.%c", "xyz"[axis->i])
                         : "llvm.nvvm.read.ptx.sreg.cluster.ctarank";
  gen_new(g, op_result(op))[0] = n == 1 || !has_clusters(g, op) ? gen_u32(g, 0) : gen_call(g, reg, 0, NULL, 0, NULL);
}

/* A program alone meets itself. */
void
lower_CLUSTER_BARRIER(Gen *g, const Op *op)
{
  bool relaxed = op_int(op, AT_RELAXED, 0) != 0;
  if (!has_clusters(g, op))
    return;
  if (func_cluster(g->func) == 1) {
    team_barrier(g);
    return;
  }
  const char *arrive = relaxed ? "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned" : "llvm.nvvm.barrier.cluster.arrive.aligned";
  gen_call_convergent(g, arrive, 0, NULL, 0, NULL);
  gen_call_convergent(g, "llvm.nvvm.barrier.cluster.wait.aligned", 0, NULL, 0, NULL);
}

/* How far behind this program's shared memory that of the other is. */
static Val
distance(Gen *g, Val rank)
{
  Val args[] = {addr_shared(g, NULL, 0), rank};
  Val there = gen_call(g, "llvm.nvvm.mapa.shared.cluster", 0, NULL, 2, args);
  Val from = LLVMBuildPtrToInt(B, args[0], g->i32, "");
  return LLVMBuildSub(B, LLVMBuildPtrToInt(B, there, g->i32, ""), from, "");
}

void
lower_SHARED_REMOTE(Gen *g, const Op *op)
{
  Val at = gen_regs(g, OPERAND(op, SHARED_REMOTE, b))[0], rank = gen_regs(g, OPERAND(op, SHARED_REMOTE, rank))[0];
  bool alone = func_cluster(g->func) == 1;
  gen_new(g, op_result(op))[0] = alone || !has_clusters(g, op) ? at : LLVMBuildAdd(B, at, distance(g, rank), "");
}
