/* address.c - where elements lie in memory.
 *
 * The pointer of every element has been computed by the tile IR, but few of those computations need to
 * survive. Where the analysis says that pointers run contiguously through 2^n elements, two registers whose flat
 * indices differ only in bits below n, and only in bits that no thread changes, are a known distance apart: all of them
 * use one register's pointer and a constant (addr_element), and LLVM drops the other pointers as dead.
 */
#include "gen.h"

#define B g->b

Val
addr_offset(Gen *g, Val p, u64 bytes)
{
  Val k = LLVMConstInt(g->i64, bytes, 0);
  return bytes ? LLVMBuildGEP2(B, g->i8, p, &k, 1, "") : p;
}

Val
addr_shared(Gen *g, Val bytes, u64 off)
{
  Val p = g->smem;
  if (!p)
    ctx_panic(g->c, "shared memory is used, but the function has none");
  if (bytes)
    p = LLVMBuildGEP2(B, g->i8, p, &bytes, 1, "");
  return addr_offset(g, p, off);
}

bool
addr_scratch(Gen *g, const Op *op, u32 bytes)
{
  i64 at = op_int(op, AT_SCRATCH, -1);
  if (bytes == 0 || (at >= 0 && at % 16 == 0 && at + bytes <= g->func->shared_bytes))
    return true;
  const char *why = arena_printf(g->arena, "it needs %u bytes of scratch memory within the kernel's %u", bytes,
                                 g->func->shared_bytes);
  diag(g->c, op->span, E_VERIFY, op_info(op->code)->name, why);
  g->failed = true;
  return false;
}

int
addr_run_dim(const Type *t, const AxisInfo *a)
{
  int best = t->rank - 1;
  for (int d = t->rank - 1; d >= 0; d--)
    if (a->contiguity[d] > a->contiguity[best])
      best = d;
  return best;
}

/* Pointer of the element in register reg: another register's pointer and a constant where that is known. */
Addr
addr_element(Gen *g, const Value *p, u32 reg)
{
  const Val *ptrs = gen_regs(g, p);
  if (!type_is_tile(p->type))
    return (Addr){ptrs[0], 0};
  const Dist *h = dist_get(g, p->type->layout);
  const AxisInfo *a = &g->axes[p->id];
  int d = addr_run_dim(p->type, a);
  u32 run = a->contiguity[d], extent = 1u << h->l->out_bits[d], base;
  u32 movable = h->flat[reg] & ((run < extent ? run : extent) - 1) << h->shift[d] & ~h->thread_mask;
  if (!movable || !dist_find(h, h->flat[reg] ^ movable, &base))
    return (Addr){ptrs[reg], 0};
  return (Addr){ptrs[base], (u64)(movable >> h->shift[d]) * dtype_bytes(p->type->dt)};
}
