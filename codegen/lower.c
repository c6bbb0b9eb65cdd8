/* lower.c - the walk: one LLVM function per kernel (lower_map.c adds some), one call of lower_<ID> per op.
 *
 * The dispatch table is made from ops.def: every row obliges somebody to write lower_<ID>, or elem_<ID> in
 * lower_elem.c for the rows that work element by element. Structured control flow is flattened here and nowhere else:
 * each loop-carried value becomes one phi per distinct register. Loops come out rotated (a guard, then the test at the
 * bottom), which is the form that hoisting wants.
 */
#include "gen.h"

static LowerFn *const table[OP_COUNT] = {
#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) ((traits) & T_ELEM) ? lower_elementwise : lower_##id,
#include "ops.def"
#undef OP
};

static void
lower_op(Gen *g, const Op *op)
{
  locs_at(g, op->span);
  table[op->code](g, op);
}

/* The scalar stores from first to last, with what stands between them: first that, then all stores of the leader. */
static void
lower_scalar_stores(Gen *g, const Op *first, const Op *last)
{
  for (const Op *op = first; op != last; op = op->next)
    if (op->code != OP_STORE)
      lower_op(g, op);
  LLVMBasicBlockRef after = gen_if(g, dist_leader(g, NULL));
  for (const Op *op = first; op != last->next; op = op->next)
    if (op->code == OP_STORE) {
      locs_at(g, op->span);
      lower_store_alone(g, op);
    }
  gen_end_if(g, after);
}

static void
lower_ops(Gen *g, const Block *b)
{
  for (const Op *op = b->first; op; op = op->next) {
    const Op *last = op->code == OP_STORE ? leader_last_store(g, op) : NULL;
    if (last)
      lower_scalar_stores(g, op, last);
    else
      lower_op(g, op);
    op = last ? last : op;
  }
}

/* Tell LLVM what the program says of the loop that this branch closes. */
static void
mark_loop(Gen *g, Val branch, const Op *op)
{
  i64 unroll = op_int(op, AT_UNROLL, 1);
  if (unroll > 1)
    loop_add(g, branch, "llvm.loop.unroll.count", gen_u32(g, (u32)unroll));
  if (!op_int(op, AT_HOIST, 1))
    loop_add(g, branch, "llvm.licm.disable", NULL);
  g->unrolls |= unroll > 1;
}

void
lower_FOR(Gen *g, const Op *op)
{
  Block *body = op->regions[0];
  Val lo = gen_regs(g, op_operand(op, 0))[0], hi = gen_regs(g, op_operand(op, 1))[0];
  Val step = gen_regs(g, op_operand(op, 2))[0];
  const Value *index = body->args[0];
  LLVMIntPredicate less = dtype_is_signed(index->type->dt) ? LLVMIntSLT : LLVMIntULT;
  LLVMBasicBlockRef loop = gen_block(g, "for"), done = gen_block(g, "for.done");
  u32 n = op->nresults;

  LLVMBasicBlockRef guard = LLVMGetInsertBlock(g->b), outer = g->before_loop;
  LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, less, lo, hi, ""), loop, done);
  gen_at(g, loop);
  phis_new(g, 1 + n, body->args);
  phis_add(g, index, &lo, guard);
  phis_add_operands(g, n, body->args + 1, op, 3, guard);
  g->before_loop = guard;
  lower_ops(g, body);
  g->before_loop = outer;
  locs_at(g, op->span);

  const Op *yield = block_terminator(body);
  Val i = gen_regs(g, index)[0], next = LLVMBuildAdd(g->b, i, step, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
  /* What ir_goes_on makes in the IR, of the index that is there. */
  Val more = value_is_one(OPERAND(op, FOR, step)) ? LLVMBuildICmp(g->b, less, next, hi, "")
                                                  : LLVMBuildICmp(g->b, LLVMIntUGT, LLVMBuildSub(g->b, hi, i, ""), step, "");
  phis_add(g, index, &next, latch);
  phis_add_operands(g, n, body->args + 1, yield, 0, latch);
  Val branch = LLVMBuildCondBr(g->b, more, loop, done);
  mark_loop(g, branch, op);

  gen_at(g, done);
  phis_new(g, n, op->results);
  phis_add_operands(g, n, op->results, op, 3, guard);
  phis_add_operands(g, n, op->results, yield, 0, latch);
}

void
lower_WHILE(Gen *g, const Op *op)
{
  Block *test = op->regions[0], *body = op->regions[1];
  LLVMBasicBlockRef head = gen_block(g, "while"), loop = gen_block(g, "while.body"), done = gen_block(g, "while.done");
  LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), outer = g->before_loop;
  LLVMBuildBr(g->b, head);
  gen_at(g, head);
  g->before_loop = before;
  phis_new(g, test->nargs, test->args);
  phis_add_operands(g, test->nargs, test->args, op, 0, before);
  lower_ops(g, test);

  const Op *condition = block_terminator(test);
  LLVMBuildCondBr(g->b, gen_regs(g, op_operand(condition, 0))[0], loop, done);
  for (u32 i = 0; i < body->nargs; i++)
    gen_bind(g, body->args[i], gen_regs(g, op_operand(condition, 1 + i)));
  for (u32 i = 0; i < op->nresults; i++)
    gen_bind(g, op->results[i], gen_regs(g, op_operand(condition, 1 + i)));
  gen_at(g, loop);
  lower_ops(g, body);
  g->before_loop = outer;
  locs_at(g, op->span);
  phis_add_operands(g, test->nargs, test->args, block_terminator(body), 0, LLVMGetInsertBlock(g->b));
  LLVMBuildBr(g->b, head);
  gen_at(g, done);
}

void
lower_IF(Gen *g, const Op *op)
{
  LLVMBasicBlockRef arm[2] = {gen_block(g, "then"), gen_block(g, "else")}, done = gen_block(g, "if.done"), from[2];
  LLVMBuildCondBr(g->b, gen_regs(g, op_operand(op, 0))[0], arm[0], arm[1]);
  for (int k = 0; k < 2; k++) {
    gen_at(g, arm[k]);
    lower_ops(g, op->regions[k]);
    locs_at(g, op->span);
    from[k] = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, done);
  }
  gen_at(g, done);
  phis_new(g, op->nresults, op->results);
  for (int k = 0; k < 2; k++)
    phis_add_operands(g, op->nresults, op->results, block_terminator(op->regions[k]), 0, from[k]);
}

/* Terminators: whoever owns the region reads them. */
void lower_YIELD(Gen *g, const Op *op) {}
void lower_CONDITION(Gen *g, const Op *op) {}

void
lower_RETURN(Gen *g, const Op *op)
{
  LLVMBuildRetVoid(g->b);
}

/* ---- small ops ---- */
void
lower_CONST(Gen *g, const Op *op)
{
  const Type *t = op_result(op)->type;
  Val v = gen_const_bits(g, t->dt, type_is_ptr(t), (u64)op_int(op, AT_VALUE, 0)), *out = gen_new(g, op_result(op));
  for (u32 r = 0; r < gen_nregs(t); r++)
    out[r] = v;
}

static Val
grid_register(Gen *g, u32 axis, const char *reg)
{
  return gen_call(g, arena_printf(g->arena, "llvm.nvvm.read.ptx.sreg.%s.%c", reg, "xyz"[axis]), 0, NULL, 0, NULL);
}

/* Of the grid that the caller gave, which is not what runs where programs do what several of the grid do. */
static Val
grid_extent(Gen *g, u32 axis)
{
  const KernelParam asked = {.arg = NO_ARG, .part = PARAM_GRID, .axis = axis};
  return func_walks(g->func) ? LLVMGetParam(g->fn, params_index(&g->params, &asked)) : grid_register(g, axis, "nctaid");
}

void
lower_PROGRAM_ID(Gen *g, const Op *op)
{
  u32 axis = (u32)op_int(op, AT_AXIS, 0);
  Val id = op->noperands ? gen_regs(g, op_operand(op, 0))[0] : grid_register(g, axis, "ctaid");
  for (u32 before = 0; op->noperands && before < axis; before++)
    id = LLVMBuildUDiv(g->b, id, grid_extent(g, before), "");
  if (op->noperands && axis < 2)
    id = LLVMBuildURem(g->b, id, grid_extent(g, axis), "");
  gen_new(g, op_result(op))[0] = id;
}

void
lower_NUM_PROGRAMS(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = grid_extent(g, (u32)op_int(op, AT_AXIS, 0));
}

void
lower_RESIDENT_ID(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = grid_register(g, 0, "ctaid");
}

void
lower_NUM_RESIDENTS(Gen *g, const Op *op)
{
  gen_new(g, op_result(op))[0] = grid_register(g, 0, "nctaid");
}

void
lower_ASSUME(Gen *g, const Op *op)
{
  gen_call(g, "llvm.assume", 0, NULL, 1, gen_regs(g, op_operand(op, 0)));
}

void
lower_BARRIER(Gen *g, const Op *op)
{
  team_barrier(g);
}

/* ---- functions ---- */
static Ty
param_type(Gen *g, const Type *t, const KernelParam *p)
{
  switch (p->part) {
  case PARAM_MAP: return LLVMPointerTypeInContext(g->lc, 0);
  case PARAM_BASE: return gen_elem_type(g, t->dt, true);
  case PARAM_EXTENT: case PARAM_GRID: return g->i32;
  case PARAM_STRIDE: return g->i64;
  default: return type_is_bool(t) ? g->i8 : gen_type(g, t);
  }
}

static void
string_attr(Gen *g, LLVMAttributeIndex at, const char *key, const char *value)
{
  LLVMAddAttributeAtIndex(g->fn, at, LLVMCreateStringAttribute(g->lc, key, (unsigned)strlen(key), value,
                                                               (unsigned)strlen(value)));
}

/* A map is passed by value, and its address is that of the parameter (PTX ISA, cp.async.bulk.tensor). */
static void
param_attrs(Gen *g, const Func *f, u32 i)
{
  enum { MAP_ALIGN = 64 };
  const KernelParam *p = &g->params.data[i];
  const Type *t = params_arg(f, p);
  if (!t)
    return;
  unsigned align = LLVMGetEnumAttributeKindForName("align", 5), byval = LLVMGetEnumAttributeKindForName("byval", 5);
  u32 divisible = f->params[p->arg].divisible, by = p->part == PARAM_MAP ? MAP_ALIGN : divisible & -divisible;
  bool address = p->part == PARAM_BASE || type_is_ptr(t);
  if (p->part == PARAM_MAP) {
    LLVMAddAttributeAtIndex(g->fn, i + 1, LLVMCreateTypeAttribute(g->lc, byval, LLVMArrayType2(g->i8, MAP_BYTES)));
    string_attr(g, i + 1, "nvvm.grid_constant", "");
  }
  if (p->part == PARAM_MAP || (address && by > 1))
    LLVMAddAttributeAtIndex(g->fn, i + 1, LLVMCreateEnumAttribute(g->lc, align, by));
}

static void
func_declare(Gen *g, Func *f)
{
  g->params = params_of(f, g->arena);
  u32 n = g->params.len;
  Ty *params = NEW_ARRAY(g->arena, Ty, n + 1);
  for (u32 i = 0; i < n; i++)
    params[i] = param_type(g, params_arg(f, &g->params.data[i]), &g->params.data[i]);
  g->fn = LLVMAddFunction(g->mod, f->name, LLVMFunctionType(g->none, params, n, 0));
  LLVMSetFunctionCallConv(g->fn, KERNEL_CALL_CONV);
  string_attr(g, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nvvm.reqntid",
              arena_printf(g->arena, "%u,1,1", f->warps * LANES));
  u32 entry = lower_entry_registers(g, f), most = entry ? entry : f->max_registers;
  if (most)
    string_attr(g, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nvvm.maxnreg", arena_printf(g->arena, "%u", most));
  if (func_cluster(f) > 1)
    string_attr(g, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nvvm.cluster_dim",
                arena_printf(g->arena, "%u,%u,%u", f->cluster[0], f->cluster[1], f->cluster[2]));
  if (f->min_blocks)
    string_attr(g, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nvvm.minctasm", arena_printf(g->arena, "%u", f->min_blocks));
  for (u32 i = 0; i < n; i++)
    param_attrs(g, f, i);
}

static void
params_bind(Gen *g, Func *f)
{
  for (u32 i = 0; i < g->params.len; i++) {
    const KernelParam *p = &g->params.data[i];
    const Type *t = params_arg(f, p);
    Val v = LLVMGetParam(g->fn, i);
    if (!t || type_is_tensor(t) || p->view)
      continue;
    const Value *arg = f->body->args[p->arg];
    if (type_is_bool(arg->type))
      v = LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstInt(g->i8, 0, 0), "");
    gen_new(g, arg)[0] = v;
  }
}

static void
raise_alignment(Op *op, void *user)
{
  Gen *g = user;
  if (op->code == OP_SHARED_ALLOC)
    LLVMSetAlignment(g->smem, max_u32(LLVMGetAlignment(g->smem), buffer_align(op)));
}

/* One for all kernels: it begins where any of their buffers may. */
static void
shared_declare(Gen *g, Func *f)
{
  if (!g->smem) {
    Ty bytes = LLVMArrayType2(g->i8, 0);
    g->smem = LLVMAddGlobalInAddressSpace(g->mod, bytes, "tilec_shared", AS_SHARED);
    LLVMSetLinkage(g->smem, LLVMExternalLinkage);
    LLVMSetAlignment(g->smem, SHARED_ALIGN);
  }
  func_walk(f, raise_alignment, g);
}

bool
lower_func(Gen *g, Func *f)
{
  g->func = f;
  g->walk = lower_ops;
  g->vals = NEW_ARRAY(g->arena, Val *, f->nvalues + 1);
  g->fragments = NEW_ARRAY(g->arena, Fragments *, f->nvalues + 1);
  g->rows = NULL;
  g->late = NEW_ARRAY(g->arena, const Late *, f->nvalues + 1);
  g->phis = NEW_ARRAY(g->arena, Val *, f->nvalues + 1);
  g->left = NEW_ARRAY(g->arena, Val *, f->nvalues + 1);
  g->maps = NULL;
  g->axes = analyse_axes(f);
  func_declare(g, f);
  if (f->shared_bytes)
    shared_declare(g, f);
  locs_func(g, f);
  LLVMBasicBlockRef prologue = gen_block(g, "entry"), body = gen_block(g, "body");
  team_open(g, block_team(f->body), prologue);
  gen_at(g, body);
  locs_at(g, f->span);
  params_bind(g, f);
  if (target_has(g->target, F_TMA))
    lower_tensor_maps(g);
  lower_ops(g, f->body);
  LLVMBuildBr(g->team->pro, body);
  team_close(g);
  lower_shared_functions(g);
  return !g->failed;
}
