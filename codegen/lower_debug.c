/* lower_debug.c - assertions and messages, by the functions that every driver brings along: __assertfail and vprintf.
 *
 * Each element reports once, by its leader; a scalar's is thread 0. */
#include "gen.h"

#define B g->b

/* ---- calls into the driver ---- */

static Val
string(Gen *g, const char *text)
{
  u32 n = (u32)strlen(text) + 1;
  Val init = LLVMConstStringInContext(g->lc, text, n, 1);
  Val s = LLVMAddGlobalInAddressSpace(g->mod, LLVMTypeOf(init), "text", AS_GLOBAL);
  LLVMSetInitializer(s, init);
  LLVMSetGlobalConstant(s, 1);
  LLVMSetLinkage(s, LLVMInternalLinkage);
  LLVMSetAlignment(s, 1);
  return LLVMConstAddrSpaceCast(s, LLVMPointerTypeInContext(g->lc, 0));
}

static Val
driver_call(Gen *g, const char *name, Ty result, u32 n, Val *args)
{
  Ty types[8];
  for (u32 i = 0; i < n; i++)
    types[i] = LLVMTypeOf(args[i]);
  Ty ft = LLVMFunctionType(result, types, n, 0);
  Val f = LLVMGetNamedFunction(g->mod, name);
  return LLVMBuildCall2(B, ft, f ? f : LLVMAddFunction(g->mod, name, ft), args, n, "");
}

/* ---- who reports ---- */

typedef struct Reporter { Dist *h; const Type *t; u32 regs; } Reporter;   /* h NULL: a scalar */

static Reporter
reporter(Gen *g, const Value *v)
{
  const Type *t = v ? v->type : NULL;
  bool tile = t && type_is_tile(t);
  return (Reporter){tile ? dist_get(g, t->layout) : NULL, t, tile ? gen_nregs(t) : 1};
}

/* Where register r reports; false if it does not. */
static bool
reports(Gen *g, const Reporter *s, u32 r, Val *when)
{
  if (s->h && s->h->rep[r] != r)
    return false;
  Val inside = s->h ? dist_inside(g, s->h, s->t, r) : NULL;
  *when = gen_and(g, dist_leader(g, s->h), inside);
  return !(*when && LLVMIsAConstantInt(*when) && !LLVMConstIntGetZExtValue(*when));
}

/* ---- assert ---- */

void
lower_ASSERT(Gen *g, const Op *op)
{
  const Value *c = op_operand(op, 0);
  Reporter s = reporter(g, c);
  SourceLoc at = source_locate(g->c, op->span.lo);
  Val args[5] = {string(g, op_str(op, AT_MESSAGE, "")), string(g, at.file), gen_u32(g, at.line), string(g, g->func->name),
                 LLVMConstInt(g->i64, 1, 0)};
  for (u32 r = 0; r < s.regs; r++) {
    Val when;
    if (!reports(g, &s, r, &when))
      continue;
    LLVMBasicBlockRef after = gen_if(g, gen_and(g, when, LLVMBuildNot(B, gen_regs(g, c)[r], "")));
    driver_call(g, "__assertfail", g->none, 5, args);
    gen_end_if(g, after);
  }
}

/* ---- print ---- */

enum { PRINT_ARGS = 32 };
typedef struct Line { Buf format; Val arg[PRINT_ARGS]; u32 n; } Line;

static void
add(Line *l, const char *spec, Val v)
{
  buf_puts(&l->format, spec);
  l->arg[l->n++] = v;
}

static void
add_text(Line *l, const char *text)
{
  for (; *text; text++)
    buf_puts(&l->format, *text == '%' ? "%%" : (char[]){*text, 0});
}

static void
add_value(Gen *g, Line *l, const Type *t, Val v)
{
  DType d = t->dt;
  if (type_is_ptr(t))
    add(l, "0x%llx", LLVMBuildPtrToInt(B, v, g->i64, ""));
  else if (dtype_is_float(d))
    add(l, "%g", cast_nearest(g, d, DT_F64, v));
  else if (dtype_bits(d) == 64)
    add(l, dtype_is_signed(d) ? "%lld" : "%llu", v);
  else
    add(l, dtype_is_signed(d) ? "%d" : "%u", dtype_is_signed(d) ? LLVMBuildSExt(B, v, g->i32, "") : LLVMBuildZExt(B, v, g->i32, ""));
}

/* The arguments lie in memory of the thread, each at a multiple of its size. */
static Val
pack(Gen *g, const Line *l)
{
  Ty types[PRINT_ARGS];
  for (u32 i = 0; i < l->n; i++)
    types[i] = LLVMTypeOf(l->arg[i]);
  Ty all = LLVMStructTypeInContext(g->lc, types, l->n, 0);
  Val memory = LLVMBuildAlloca(g->team->pro, all, "");
  LLVMSetAlignment(memory, 8);
  for (u32 i = 0; i < l->n; i++)
    LLVMBuildStore(B, l->arg[i], LLVMBuildStructGEP2(B, all, memory, i, ""));
  return memory;
}

static Val
program(Gen *g, char axis)
{
  return gen_call(g, arena_printf(g->arena, "llvm.nvvm.read.ptx.sreg.ctaid.%c", axis), 0, NULL, 0, NULL);
}

/* "FILE:LINE: program (x, y, z): MESSAGE [i, j] = values" */
static void
print_line(Gen *g, const Op *op, const Reporter *s, u32 r)
{
  Line l = {.format = {.arena = g->arena}};
  SourceLoc at = source_locate(g->c, op->span.lo);
  add_text(&l, at.file);
  buf_printf(&l.format, ":%u: program (", at.line);
  for (u32 i = 0; i < 3; i++)
    add(&l, i ? ", %d" : "%d", program(g, (char)('x' + (int)i)));
  buf_puts(&l.format, "): ");
  add_text(&l, op_str(op, AT_MESSAGE, ""));
  for (int d = 0; s->h && d < s->t->rank; d++)
    add(&l, d ? ", %d" : " [%d", dist_index(g, s->h, r, d));
  buf_puts(&l.format, s->h ? "] =" : op->noperands ? " =" : "");
  for (u32 i = 0; i < op->noperands; i++) {
    const Value *v = op_operand(op, i);
    buf_putc(&l.format, ' ');
    add_value(g, &l, v->type, gen_regs(g, v)[type_is_tile(v->type) ? r : 0]);
  }
  buf_putc(&l.format, '\n');
  Val args[2] = {string(g, buf_str(&l.format)), pack(g, &l)};
  driver_call(g, "vprintf", g->i32, 2, args);
}

void
lower_PRINT(Gen *g, const Op *op)
{
  const Value *tile = NULL;
  for (u32 i = 0; i < op->noperands; i++)
    if (type_is_tile(op_operand(op, i)->type))
      tile = op_operand(op, i);
  Reporter s = reporter(g, tile);
  for (u32 r = 0; r < s.regs; r++) {
    Val when;
    if (!reports(g, &s, r, &when))
      continue;
    LLVMBasicBlockRef after = gen_if(g, when);
    print_line(g, op, &s, r);
    gen_end_if(g, after);
  }
}
