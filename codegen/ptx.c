/* ptx.c - inline PTX from the rows of ptx.def: fills in a template, derives the constraints from the operands' types. */
#include "gen.h"

enum { PURE, READ, SIDE, CONV, NOTE };
typedef struct PtxRow { u8 flags; const char *text; } PtxRow;
static const PtxRow rows[PTX_COUNT] = {
#define PTX(id, flags, text, doc) {flags, text},
#include "ptx.def"
#undef PTX
};

/* In LLVM's `memory` attribute every kind of memory has two bits; 01 is "read". Six kinds; the second is memory that no program can
 * reach. */
enum { MEMORY_NONE = 0, MEMORY_READ = 0x555, MEMORY_HIDDEN = 0xc };

static const Ty *
outs(const PtxArgs *a)
{
  return a->outs ? a->outs : a->out;
}

static const Val *
ins(const PtxArgs *a)
{
  return a->ins ? a->ins : a->in;
}

static char
constraint(Gen *g, Ty t)
{
  switch (LLVMGetTypeKind(t)) {
  case LLVMHalfTypeKind: case LLVMBFloatTypeKind: return 'h';
  case LLVMFloatTypeKind: return 'f';
  case LLVMDoubleTypeKind: return 'd';
  case LLVMPointerTypeKind: return LLVMGetPointerAddressSpace(t) == AS_SHARED ? 'r' : 'l';
  case LLVMVectorTypeKind: return 'r';
  default: break;
  }
  unsigned w = LLVMGetIntTypeWidth(t);
  return w == 1 ? 'b' : w <= 16 ? 'h' : w == 32 ? 'r' : 'l';
}

static void
comma(Buf *b)
{
  if (b->len)
    buf_putc(b, ',');
}

static const char *
constraints(Gen *g, const PtxArgs *a, bool memory)
{
  Buf b = {.arena = g->arena};
  for (u32 i = 0; i < a->nout; i++) {
    comma(&b);
    buf_printf(&b, a->early ? "=&%c" : "=%c", constraint(g, outs(a)[i]));
  }
  for (u32 i = 0; i < a->nin; i++) {
    comma(&b);
    if (i < a->nin - a->ntied)
      buf_putc(&b, constraint(g, LLVMTypeOf(ins(a)[i])));
    else
      buf_printf(&b, "%u", i - (a->nin - a->ntied));
  }
  if (memory) {
    comma(&b);
    buf_puts(&b, "~{memory}");
  }
  return buf_str(&b);
}

static const char *
expand(Gen *g, const char *text, const PtxArgs *a)
{
  Buf b = {.arena = g->arena};
  for (const char *p = text; *p; p++)
    if (*p == '%') {
      const char *s = a->subst[*++p - '0'];
      if (s) buf_puts(&b, s);
    } else {
      buf_putc(&b, *p);
    }
  const char *out = buf_str(&b);
  while (*out == ' ')
    out++;
  return out;
}

static Ty
result_type(Gen *g, const PtxArgs *a)
{
  if (a->nout == 0)
    return g->none;
  if (a->nout == 1)
    return outs(a)[0];
  return LLVMStructTypeInContext(g->lc, (Ty *)outs(a), a->nout, 0);
}

static void
effects(Gen *g, Val call, u8 flags)
{
  gen_call_attr(g, call, "nounwind", 0);
  if (flags == PURE || flags == READ || flags == NOTE)
    gen_call_attr(g, call, "willreturn", 0);
  if (flags == PURE)
    gen_call_attr(g, call, "memory", MEMORY_NONE);
  if (flags == READ)
    gen_call_attr(g, call, "memory", MEMORY_READ);
  if (flags == NOTE)
    gen_call_attr(g, call, "memory", MEMORY_HIDDEN);
  if (flags == CONV)
    gen_call_attr(g, call, "convergent", 0);
}

/* Inline assembly as a call. */
static void
emit_text(Gen *g, const char *text, const char *cons, u8 flags, const PtxArgs *a, Val *out)
{
  Ty few[COUNT(a->in)], *params = a->nin > COUNT(few) ? NEW_ARRAY(g->arena, Ty, a->nin) : few;
  for (u32 i = 0; i < a->nin; i++)
    params[i] = LLVMTypeOf(ins(a)[i]);
  Ty type = LLVMFunctionType(result_type(g, a), params, a->nin, 0);
  Val code = LLVMGetInlineAsm(type, text, strlen(text), cons, strlen(cons), flags != PURE && flags != READ, 0,
                              LLVMInlineAsmDialectATT, 0);
  Val call = LLVMBuildCall2(g->b, type, code, (Val *)ins(a), a->nin, "");
  effects(g, call, flags);
  for (u32 i = 0; i < a->nout; i++)
    out[i] = a->nout == 1 ? call : LLVMBuildExtractValue(g->b, call, i, "");
}

void
ptx_emit(Gen *g, PtxId id, const PtxArgs *a, Val *out)
{
  u8 flags = rows[id].flags;
  emit_text(g, expand(g, rows[id].text, a), constraints(g, a, flags != PURE && flags != NOTE), flags, a, out);
}

const char *
ptx_line(Gen *g, PtxId id, const PtxArgs *a)
{
  return expand(g, rows[id].text, a);
}

void
ptx_text(Gen *g, const char *text, bool pure, const PtxArgs *a, Val *out)
{
  emit_text(g, text, constraints(g, a, !pure), pure ? PURE : SIDE, a, out);
}

Val
ptx_value(Gen *g, PtxId id, Ty result, u32 nin, const Val *in, const char *subst0, const char *subst1)
{
  PtxArgs a = {.subst = {subst0, subst1}, .nout = 1, .nin = nin, .out = {result}};
  for (u32 i = 0; i < nin; i++)
    a.in[i] = in[i];
  Val v;
  ptx_emit(g, id, &a, &v);
  return v;
}
