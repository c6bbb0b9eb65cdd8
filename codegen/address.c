/* address.c - where elements lie in memory.
 *
 * The pointer of every element has been computed by the tile IR, but few of those computations need to
 * survive. Where the analysis says that pointers run contiguously through 2^n elements, two registers whose flat
 * indices differ only in bits below n, and only in bits that no thread changes, are a known distance apart: all of them
 * use one register's pointer and a constant (addr_element), and LLVM drops the other pointers as dead.
 *
 * Rows are a scalar apart, or a multiple of one (ir/stride.h). A thread with MANY_ROWS of them or more has no registers for a pointer to
 * each: where a loop walks along the rows, LLVM would keep all of them. So it has one, which moves from row to row as they are
 * accessed. (A product for each row is no way: ptxas keeps those of all rows, as the next access of such rows asks for the same ones.)
 */
#include "gen.h"
#include "stride.h"

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

Val
addr_cluster(Gen *g, Val p)
{
  Ty t = LLVMPointerTypeInContext(g->lc, AS_CLUSTER);
  return LLVMBuildIntToPtr(B, LLVMBuildPtrToInt(B, p, g->i32, ""), t, "");
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

enum { MANY_ROWS = 16 };

/* The part of a flat index along dimension d that registers change and threads do not. */
static u32
movable_bits(const Dist *h, int d)
{
  u32 all = 0;
  for (u32 r = 1; r < h->regs; r *= 2)
    all |= h->flat[r];
  return all & ((1u << h->l->out_bits[d]) - 1) << h->shift[d] & ~h->thread_mask;
}

/* How far apart a thread's many pointers along dimension d are, a multiple of a scalar; by NULL: they are not many, or it is not known. */
static Stride
rows_apart(const Value *p, const Dist *h, int d)
{
  bool many = 1u << __builtin_popcount(movable_bits(h, d)) >= MANY_ROWS;
  Stride s = many ? value_stride(p, d) : (Stride){0};
  return s.known ? s : (Stride){0};
}

/* The row that each first register's pointer was last moved on to, for one tile of pointers in one LLVM block. */
struct AddrRows {
  const Value *p;
  LLVMBasicBlockRef block;
  Val *at;                   /* by first register; NULL: the pointer has not moved */
  i64 *row;
};

static struct AddrRows *
rows_of(Gen *g, const Value *p, u32 regs)
{
  struct AddrRows *x = g->rows;
  if (!x || x->p != p || x->block != LLVMGetInsertBlock(B)) {
    x = g->rows = NEW(g->arena, struct AddrRows);
    *x = (struct AddrRows){p, LLVMGetInsertBlock(B), NEW_ARRAY(g->arena, Val, regs), NEW_ARRAY(g->arena, i64, regs)};
  }
  return x;
}

/* p and times * by bytes. */
static Val
rows_on(Gen *g, Val p, const Value *by, i64 times)
{
  Val scalar = gen_regs(g, by)[0];
  Val wide = dtype_is_signed(by->type->dt) ? LLVMBuildSExt(B, scalar, g->i64, "") : LLVMBuildZExt(B, scalar, g->i64, "");
  Val in[] = {p, LLVMBuildMul(B, wide, LLVMConstInt(g->i64, (u64)times, 1), "")};
  return ptx_value(g, PTX_ADD_PTR, LLVMTypeOf(p), 2, in, NULL, NULL);
}

/* Pointer of the element in register reg: of the row before, and a stride. */
static Val
pointer_of(Gen *g, const Value *p, const Dist *h, u32 reg)
{
  for (int d = 0; d < p->type->rank; d++) {
    u32 rows = h->flat[reg] & movable_bits(h, d), first;
    Stride s = rows ? rows_apart(p, h, d) : (Stride){0};
    if (!s.by || !dist_find(h, h->flat[reg] ^ rows, &first))
      continue;
    struct AddrRows *x = rows_of(g, p, h->regs);
    i64 row = rows >> h->shift[d];
    Val before = x->at[first] ? x->at[first] : pointer_of(g, p, h, first);
    if (row != x->row[first])
      x->at[first] = rows_on(g, before, s.by, (row - x->row[first]) * s.times * dtype_bytes(p->type->dt));
    x->row[first] = row;
    return x->at[first];
  }
  return gen_regs(g, p)[reg];
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
  u32 d = axis_fastest(a, p->type->rank), in, base = dist_run_start(h, (int)d, a->contiguity[d], reg, &in);
  return (Addr){pointer_of(g, p, h, base), (u64)in * dtype_bytes(p->type->dt)};
}

u32
addr_vector(Gen *g, const Op *op, const Dist *h)
{
  const Value *p = op_pointer(op), *mask = op_mask(op);
  if (!h)
    return 1;
  const AxisInfo *a = &g->axes[p->id];
  u32 d = axis_fastest(a, p->type->rank), run = layout_contiguous_regs(h->l, (int)d);
  u32 known = axis_vector(a, mask ? &g->axes[mask->id] : NULL, d, p->type->shape[d], dtype_bytes(p->type->dt),
                          op_access_bytes(op, g->target));
  return min_u32(min_u32((u32)op_int(op, AT_VEC, 1), run), known);
}
