/* llvm.c - the wrapper around LLVM-C: context, target machine, pass pipeline, errors.
 *
 * LLVM reports what it cannot do in three ways: through the context's diagnostic handler; by a process-wide handler after which it
 * would abort; and, when memory runs out, by another such handler for what it allocates with malloc and by C++'s new-handler for
 * the rest, after which it would abort as well. gen_guard turns all but the first into a return value with a jump back into the
 * calling thread's guard; the LLVM objects of that compilation are then dropped, what LLVM itself had half done leaks. This
 * thread-local pointer is the only state outside Gen, because LLVM's handlers are given no user data that could hold it.
 *
 * Such a jump gives back the locks that LLVM holds (llvm_locks.c). What it makes only once for the whole process may be half made,
 * though: while LLVM is being made ready, or in one of its calls of pthread_once. Then LLVM is not entered again: that process
 * compiles no more.
 */
#include "gen.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct Guard { jmp_buf jump; volatile GuardEnd end; char *message; size_t size; } Guard;

/* C++ functions by their names in object files: this is the only place that needs any, and C++ is spoken nowhere else. */
typedef void NewHandler(void);
NewHandler *set_new_handler(NewHandler *handler) __asm__("_ZSt15set_new_handlerPFvvE");
NORETURN void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");
void install_bad_alloc(void (*handler)(void *, const char *, bool), void *user)
  __asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");

/* The calling thread's innermost guard. */
static Guard **
current_guard(void)
{
  static _Thread_local Guard *guard;
  return &guard;
}

/* sroa and mem2reg have nothing to do here (values are born in registers); the rest cleans up after lowering. Only loops
 * that ask for it are unrolled. */
#define UNROLL "loop-unroll<no-partial;no-runtime;no-peeling;no-upperbound;full-unroll-max=0>,"
#define PIPELINE(unroll) "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm)," unroll \
                         "gvn,instcombine<no-verify-fixpoint>,adce)"

static void
jump_out(GuardEnd end, const char *reason)
{
  Guard *guard = *current_guard();
  if (!guard)
    return;
  guard->end = end;
  snprintf(guard->message, guard->size, "%s", reason);
  longjmp(guard->jump, 1);
}

static void
fatal_handler(const char *reason)
{
  jump_out(GUARD_FATAL, reason);
}

static void
malloc_handler(void *user, const char *reason, bool crash)
{
  jump_out(GUARD_NO_MEMORY, reason);
}

/* Outside of any guard it is not ours to say: what C++ does without a handler. */
static void
new_handler(void)
{
  jump_out(GUARD_NO_MEMORY, "");
  throw_bad_alloc();
}

/* Two things in LLVM take time that grows too fast, and the measured kernels come out the same without them; only options can say
 * so. Straight-line strength reduction grows with the square of a block's length: half a minute for a block that computes exp of
 * 1,000 elements a thread. Long chains of min and max (sorting) are compared to the bottom, by passes that find nothing there. */
static void
initialize(void *user)
{
  static const char *const options[] = {"tilec", "-opt-disable=slsr", "-scalar-evolution-max-scev-compare-depth=4"};
  LLVMParseCommandLineOptions((int)COUNT(options), options, NULL);
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

/* Whether LLVM can be used in this process. */
typedef struct Llvm { pthread_mutex_t lock; enum { UNMADE, READY } state; atomic_bool broken; } Llvm;

static Llvm *
llvm_here(void)
{
  static Llvm llvm = {PTHREAD_MUTEX_INITIALIZER, UNMADE, false};
  return &llvm;
}

bool
gen_ready(void)
{
  Llvm *l = llvm_here();
  char ignored[8];
  pthread_mutex_lock(&l->lock);
  if (l->state == UNMADE) {
    LLVMInstallFatalErrorHandler(fatal_handler);
    install_bad_alloc(malloc_handler, NULL);
    set_new_handler(new_handler);
    if (gen_guard(initialize, NULL, ignored, sizeof ignored) != GUARD_RETURNED)
      atomic_store(&l->broken, true);
    l->state = READY;
  }
  pthread_mutex_unlock(&l->lock);
  return !atomic_load(&l->broken);
}

GuardEnd
gen_guard(void (*body)(void *user), void *user, char *message, size_t size)
{
  Guard g = {.message = message, .size = size}, **slot = current_guard(), *const outer = *slot;
  const LlvmLocks locks = gen_locks_begin();
  *slot = &g;
  if (!setjmp(g.jump))
    body(user);
  *slot = outer;
  if (!gen_locks_end(locks))
    atomic_store(&llvm_here()->broken, true);
  return g.end;
}

/* The first line of the first error stays. text may be NULL: LLVM had no memory for it. Nothing is allocated, as LLVM may be the
 * caller. */
static void
gen_error(Gen *g, const char *text)
{
  text = text ? text : "it does not say why";
  if (!g->llvm_error)
    snprintf(g->error_text, sizeof g->error_text, "%.*s", (int)strcspn(text, "\n"), text);
  g->llvm_error = g->error_text;
}

static void
diagnostic_handler(LLVMDiagnosticInfoRef info, void *user)
{
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
    return;
  char *text = LLVMGetDiagInfoDescription(info);
  gen_error(user, text);
  LLVMDisposeMessage(text);
}

static void
types_init(Gen *g)
{
  g->i1 = LLVMInt1TypeInContext(g->lc), g->i8 = LLVMInt8TypeInContext(g->lc);
  g->i16 = LLVMInt16TypeInContext(g->lc), g->i32 = LLVMInt32TypeInContext(g->lc);
  g->i64 = LLVMInt64TypeInContext(g->lc), g->none = LLVMVoidTypeInContext(g->lc);
  g->f16 = LLVMHalfTypeInContext(g->lc), g->bf16 = LLVMBFloatTypeInContext(g->lc);
  g->f32 = LLVMFloatTypeInContext(g->lc), g->f64 = LLVMDoubleTypeInContext(g->lc);
}

static LLVMTargetMachineRef
machine_new(Gen *g)
{
  char *error = NULL;
  LLVMTargetRef t;
  if (LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &t, &error)) {
    gen_error(g, error);
    LLVMDisposeMessage(error);
    return NULL;
  }
  const char *features = arena_printf(g->arena, "+ptx%u", g->ptx);
  return LLVMCreateTargetMachine(t, "nvptx64-nvidia-cuda", g->target->cpu, features, LLVMCodeGenLevelDefault,
                                 LLVMRelocDefault, LLVMCodeModelDefault);
}

/* Context, module, builders and target machine; false with llvm_error set. */
bool
gen_open(Gen *g)
{
  g->lc = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(g->lc, diagnostic_handler, g);
  LLVMContextSetDiscardValueNames(g->lc, !g->names);
  types_init(g);
  g->mod = LLVMModuleCreateWithNameInContext("tilec", g->lc);
  g->b = LLVMCreateBuilderInContext(g->lc);
  g->tm = machine_new(g);
  if (!g->tm)
    return false;
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(g->tm);
  LLVMSetModuleDataLayout(g->mod, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(g->mod, "nvptx64-nvidia-cuda");
  return true;
}

/* Everything gen_open and the lowering made in LLVM, disposed of once. */
void
gen_close(Gen *g)
{
  if (g->di) LLVMDisposeDIBuilder(g->di);
  if (g->b) LLVMDisposeBuilder(g->b);
  if (g->tm) LLVMDisposeTargetMachine(g->tm);
  if (g->mod) LLVMDisposeModule(g->mod);
  if (g->lc) LLVMContextDispose(g->lc);
}

/* "name:line:col: error: words", then the line. */
static void
read_error(Gen *g, const char *message, u32 *line, u32 *col)
{
  const char *words = message ? strstr(message, ": error: ") : NULL;
  if (!message || sscanf(message, "%*[^:]:%u:%u", line, col) != 2)
    *line = *col = 0;
  gen_error(g, words ? words + strlen(": error: ") : message);
}

bool
gen_parse(Gen *g, const char *text, size_t len, u32 *line, u32 *col)
{
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, len, "text");
  LLVMModuleRef mod = NULL;
  char *message = NULL;
  if (LLVMParseIRInContext(g->lc, buffer, &mod, &message)) {
    read_error(g, message, line, col);
    LLVMDisposeMessage(message);
    return false;
  }
  LLVMDisposeModule(g->mod);
  g->mod = mod;
  return true;
}

bool
gen_verify(Gen *g)
{
  char *text = NULL;
  if (LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &text))
    gen_error(g, text);
  LLVMDisposeMessage(text);
  return !g->llvm_error;
}

void
gen_settle(Gen *g)
{
  for (Val f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (Val i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        for (u32 k = 0; k < (u32)LLVMGetNumOperands(i); k++)
          LLVMSetOperand(i, k, LLVMGetOperand(i, k));
}

/* Verify the module and, at opt_level 1, run the hand-picked pipeline over it. */
bool
gen_run_passes(Gen *g)
{
  if (g->di)
    LLVMDIBuilderFinalize(g->di);
  if (!gen_verify(g) || g->opt->opt_level == 0)
    return !g->llvm_error;
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = LLVMRunPasses(g->mod, g->unrolls ? PIPELINE(UNROLL) : PIPELINE(""), g->tm, o);
  LLVMDisposePassBuilderOptions(o);
  if (e) {
    char *message = LLVMGetErrorMessage(e);
    gen_error(g, message);
    LLVMDisposeErrorMessage(message);
  }
  return !g->llvm_error;
}

/* PTX text of the module, appended to out. */
bool
gen_emit_ptx(Gen *g, Buf *out)
{
  LLVMMemoryBufferRef text = NULL;
  char *error = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(g->tm, g->mod, LLVMAssemblyFile, &error, &text)) {
    gen_error(g, error);
    LLVMDisposeMessage(error);
    return false;
  }
  if (!text)
    ctx_no_memory(g->c);
  if (!g->llvm_error)
    buf_write(out, LLVMGetBufferStart(text), LLVMGetBufferSize(text));
  LLVMDisposeMemoryBuffer(text);
  return !g->llvm_error;
}

/* ---- small builders ---- */
void
gen_call_attr(Gen *g, Val call, const char *attr, u64 value)
{
  unsigned kind = LLVMGetEnumAttributeKindForName(attr, strlen(attr));
  LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                           LLVMCreateEnumAttribute(g->lc, kind, value));
}

void
gen_func_attr(Gen *g, Val f, const char *attr)
{
  unsigned kind = LLVMGetEnumAttributeKindForName(attr, strlen(attr));
  LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(g->lc, kind, 0));
}

Val
gen_call(Gen *g, const char *name, u32 nover, Ty *over, u32 nargs, Val *args)
{
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id)
    ctx_panic(g->c, "LLVM has no intrinsic %s", name);
  Val f = LLVMGetIntrinsicDeclaration(g->mod, id, over, nover);
  return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->lc, id, over, nover), f, args, nargs, "");
}

Val
gen_call_convergent(Gen *g, const char *name, u32 nover, Ty *over, u32 nargs, Val *args)
{
  Val call = gen_call(g, name, nover, over, nargs, args);
  gen_call_attr(g, call, "convergent", 0);
  return call;
}

Ty
gen_elem_type(Gen *g, DType d, bool ptr)
{
  if (ptr)
    return LLVMPointerTypeInContext(g->lc, AS_GLOBAL);
  switch (d) {
  case DT_I1: return g->i1;
  case DT_I16: case DT_U16: return g->i16;
  case DT_I32: case DT_U32: return g->i32;
  case DT_I64: case DT_U64: return g->i64;
  case DT_F16: return g->f16;
  case DT_BF16: return g->bf16;
  case DT_F32: return g->f32;
  case DT_F64: return g->f64;
  default: return g->i8;
  }
}

Ty
gen_type(Gen *g, const Type *t)
{
  if (type_is_shared(t))
    return g->i32;
  if (t->pending && dtype_bits(t->dt) < 32)
    return g->i32;
  return gen_elem_type(g, t->dt, type_is_ptr(t));
}

void
gen_unsupported(Gen *g, const Op *op, const char *what)
{
  diag(g->c, op->span, E_UNSUPPORTED, what, g->target->name);
  g->failed = true;
}

Val
gen_bitcast(Gen *g, Val v, Ty to)
{
  Ty from = LLVMTypeOf(v);
  if (from == to)
    return v;
  if (LLVMGetTypeKind(from) == LLVMPointerTypeKind)
    return LLVMBuildPtrToInt(g->b, v, to, "");
  if (LLVMGetTypeKind(to) == LLVMPointerTypeKind)
    return LLVMBuildIntToPtr(g->b, v, to, "");
  return LLVMBuildBitCast(g->b, v, to, "");
}

LLVMBasicBlockRef
gen_block(Gen *g, const char *name)
{
  return LLVMAppendBasicBlockInContext(g->lc, g->fn, name);
}

void
gen_at(Gen *g, LLVMBasicBlockRef block)
{
  LLVMPositionBuilderAtEnd(g->b, block);
}
