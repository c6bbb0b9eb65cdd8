/* alu.c - the lane operations for any host, and the choice of table. */
#define ALU_TABLE alu_rows_any

#include "alu_rows.h"
#ifdef __x86_64__
extern const AluRow alu_rows_avx2[];
#endif

static const AluRow *
host_rows(void)
{
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return alu_rows_avx2;
#endif
  return alu_rows_any;
}

static const AluRow *
find_exact(AluOp op, int var, Type type)
{
  for (const AluRow *r = host_rows(); r->fn; r++)
    if (r->op == op && r->var == var && r->type == type)
      return r;
  return NULL;
}

const AluRow *
alu_find(AluOp op, int var, Type type)
{
  static const Type same_width[] = {[1] = T_U8, [2] = T_U16, [4] = T_U32, [8] = T_U64};
  const AluRow *r = find_exact(op, var, type);
  TypeClass c = ptx_type_class[type];
  if (!r && (c == TC_SINT || c == TC_BITS) && ptx_type_bytes[type] <= 8)
    r = find_exact(op, var, same_width[ptx_type_bytes[type]]);
  return r;
}
