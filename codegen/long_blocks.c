/* long_blocks.c - what takes LLVM's back end time that grows with the square of a block's length.
 *
 * It tries to join neighbouring loads and stores, though tiles come with vectors already; functions with the attribute noimplicitfloat
 * are left out of that, and on this target nobody else reads it. It keeps loads without a store between them in one list, and stores
 * that cannot meet in another, which it hashes anew for each of them; a use that emits nothing ends the list. And each use of a value
 * in inline PTX is a copy, which is joined to the first by a walk over all that were joined before (clearKillFlags): where a value has
 * many uses, as has the predicate of the leader that stores scalars, it goes on under another name after some of them. */
#include "gen.h"

/* Blocks with as many loads and stores, or calls of inline PTX, are long. After TOGETHER loads and stores a list ends, after SAME_NAME
 * uses a name. */
enum { LONG = 1024, TOGETHER = 128, SAME_NAME = 512 };

static bool
is_access(Val i)
{
  return LLVMIsALoadInst(i) || LLVMIsAStoreInst(i);
}

static bool
is_ptx(Val i)
{
  return LLVMIsACallInst(i) && LLVMIsAInlineAsm(LLVMGetCalledValue(i));
}

static u32
count(LLVMBasicBlockRef b, bool (*is)(Val))
{
  u32 n = 0;
  for (Val i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
    n += is(i);
  return n;
}

static void
part_accesses(Gen *g, LLVMBasicBlockRef b)
{
  u32 n = 0;
  for (Val i = LLVMGetFirstInstruction(b), next; i; i = next) {
    next = LLVMGetNextInstruction(i);
    if (!is_access(i) || ++n % TOGETHER)
      continue;
    Val x = LLVMIsAStoreInst(i) ? LLVMGetOperand(i, 0) : i;
    LLVMPositionBuilderBefore(g->b, next);
    gen_call(g, "llvm.fake.use", 0, NULL, 1, &x);
  }
}

/* ---- names ---- */

/* A value with many uses: what it is called here, and how many uses that name has left. */
typedef struct Name { Val of, here; u32 left; } Name;
typedef VEC(Name) Names;

static bool
has_many_uses(Val v)
{
  u32 n = 0;
  for (LLVMUseRef u = LLVMGetFirstUse(v); u && n <= SAME_NAME; u = LLVMGetNextUse(u))
    n++;
  return n > SAME_NAME;
}

/* The name of v; NULL: it needs no others. */
static Name *
name_of(Gen *g, Names *names, Val v)
{
  for (u32 i = 0; i < names->len; i++)
    if (names->data[i].of == v)
      return &names->data[i];
  if (!(LLVMIsAInstruction(v) || LLVMIsAArgument(v)) || !has_many_uses(v))
    return NULL;
  vec_push(g->arena, names, ((Name){v, v, SAME_NAME}));
  return &names->data[names->len - 1];
}

/* The value under a new name. Inline PTX hands back no predicates. */
static Val
renamed(Gen *g, Val v)
{
  Ty type = LLVMTypeOf(v);
  Val wide = type == g->i1 ? LLVMBuildZExt(g->b, v, g->i32, "") : type == g->i8 ? LLVMBuildZExt(g->b, v, g->i16, "") : v, out;
  PtxArgs a = {.nout = 1, .nin = 1, .ntied = 1, .out = {LLVMTypeOf(wide)}, .in = {wide}};
  ptx_emit(g, PTX_SAME, &a, &out);
  return wide == v ? out : LLVMBuildTrunc(g->b, out, type, "");
}

/* Each name of a value is used by so many calls of inline PTX. */
static void
part_names(Gen *g, LLVMBasicBlockRef b)
{
  Names names = {0};
  for (Val i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
    for (u32 k = 0; is_ptx(i) && k < LLVMGetNumArgOperands(i); k++) {
      Name *n = name_of(g, &names, LLVMGetOperand(i, k));
      if (!n)
        continue;
      if (!n->left--) {
        LLVMPositionBuilderBefore(g->b, i);
        n->here = renamed(g, n->here);
        n->left = SAME_NAME;
      }
      LLVMSetOperand(i, k, n->here);
    }
}

void
ease_long_blocks(Gen *g)
{
  LLVMSetCurrentDebugLocation2(g->b, NULL);
  for (Val f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
      if (count(b, is_access) > LONG) {
        gen_func_attr(g, f, "noimplicitfloat");
        part_accesses(g, b);
      }
      if (count(b, is_ptx) > LONG)
        part_names(g, b);
    }
}
