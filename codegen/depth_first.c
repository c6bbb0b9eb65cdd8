/* depth_first.c - the order of instructions within a basic block, chosen for the registers it takes.
 *
 * A tile op is lowered to one instruction for each of a thread's registers, and the next op to as many again. In that order
 * a chain of ten ops over 64 elements has 64 values alive between any two of them, and whatever they share besides; ptxas, which
 * allocates registers, does not find its way out of that order in long blocks. Here each block is put in the order that a
 * compiler of scalar code would have written: element by element.
 *
 * What reads or writes memory, meets other threads or has another effect (an anchor) keeps its place among its like: loads that
 * stand early stay in flight. Everything else moves, and loads that may (order_lets_move: late reads of shared memory):
 *
 *   - an instruction comes right before the first anchor that needs it, behind what it needs itself, the operand that takes the
 *     most registers first (Sethi and Ullman, The generation of optimal code for arithmetic expressions, 1970);
 *   - but as soon as its operands are there if it takes no more registers than it sets free: the sum of what was loaded, the half
 *     word that two floats are rounded to.
 *
 * What stands between the start of products of warpgroups and a wait for them stays in front of that wait: it is there to be done
 * meanwhile.
 *
 * What the block hands on comes last, in the order it had. Moving is all that happens: operands, users and effects stay as they are.
 * Both orders are then walked for the most registers alive at a time, and the new one is taken where it saves some. */
#include "gen.h"

/* A block that takes fewer registers than FEW stays as it is, as does one that would save fewer than GAIN. MOST_OPERANDS: of a call. */
enum { FEW = 40, GAIN = 8, MOST_OPERANDS = 300 };

typedef struct Node {
  Val insn;
  u32 size;                /* registers of the result; 0: none, or free of cost */
  u32 need;                /* registers that computing it takes, with all that only it needs */
  u32 missing;             /* operands of this block that are not placed */
  u32 first_use, nuses;    /* users in this block, in `users` */
  u32 pending;             /* users in this block that are not placed */
  bool anchor, placed, lives_on;   /* lives_on: used outside of the block */
} Node;

typedef struct Order {
  Gen *g;
  Node *nodes;
  u32 n;
  u32 *users;              /* node numbers */
  Val *keys;               /* hash of instruction to node number */
  u32 *slots, mask;
  u32 *out, nout;          /* the new order */
  VEC(u32) stack, ready;
  unsigned convergent, memory;   /* kinds of attributes */
} Order;

/* ---- instructions and their nodes ---- */

static u32
hash_of(const Order *o, Val v)
{
  u64 h = (u64)(uintptr_t)v;
  return (u32)((h >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & o->mask;
}

/* Node of v in this block, or UINT32_MAX. */
static u32
node_of(const Order *o, Val v)
{
  for (u32 i = hash_of(o, v); o->keys[i]; i = (i + 1) & o->mask)
    if (o->keys[i] == v)
      return o->slots[i];
  return UINT32_MAX;
}

static void
enter(Order *o, Val v, u32 node)
{
  u32 i = hash_of(o, v);
  while (o->keys[i])
    i = (i + 1) & o->mask;
  o->keys[i] = v;
  o->slots[i] = node;
}

/* ---- what may move ---- */

/* Has the call, or what is called, the attribute? *value is its value, of those that have one. */
static bool
call_has(Val call, unsigned kind, u64 *value)
{
  Val callee = LLVMGetCalledValue(call);
  LLVMAttributeRef a = LLVMGetCallSiteEnumAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
  if (!a && LLVMIsAFunction(callee))
    a = LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
  if (a && value)
    *value = LLVMGetEnumAttributeValue(a);
  return a != NULL;
}

static bool
call_moves(const Order *o, Val call)
{
  u64 memory = 1;
  Val callee = LLVMGetCalledValue(call);
  if (call_has(call, o->convergent, NULL) || !call_has(call, o->memory, &memory) || memory)
    return false;
  return !LLVMIsAInlineAsm(callee) || !LLVMGetInlineAsmHasSideEffects(callee);
}

static unsigned
mark_of_loads(Gen *g)
{
  return LLVMGetMDKindIDInContext(g->lc, "tilec.moves", 11);
}

void
order_lets_move(Gen *g, Val load)
{
  LLVMSetMetadata(load, mark_of_loads(g), LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, NULL, 0)));
}

static bool
moves(const Order *o, Val insn)
{
  switch (LLVMGetInstructionOpcode(insn)) {
  case LLVMLoad:
    return LLVMGetMetadata(insn, mark_of_loads(o->g)) != NULL;
  case LLVMCall:
    return call_moves(o, insn);
  case LLVMPHI: case LLVMStore: case LLVMFence: case LLVMAtomicCmpXchg: case LLVMAtomicRMW: case LLVMAlloca: case LLVMVAArg:
    return false;
  default:
    return !LLVMIsATerminatorInst(insn);
  }
}

/* ---- registers ---- */

static u32
registers_of(Ty t)
{
  switch (LLVMGetTypeKind(t)) {
  case LLVMVoidTypeKind: return 0;
  case LLVMDoubleTypeKind: return 2;
  case LLVMPointerTypeKind: return LLVMGetPointerAddressSpace(t) == AS_SHARED ? 1 : 2;
  case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) == 1 ? 0 : (LLVMGetIntTypeWidth(t) + 31) / 32;
  case LLVMVectorTypeKind: {
    Ty e = LLVMGetElementType(t);
    bool narrow = LLVMGetTypeKind(e) == LLVMHalfTypeKind || LLVMGetTypeKind(e) == LLVMBFloatTypeKind ||
                  (LLVMGetTypeKind(e) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(e) < 32);
    u32 bits = !narrow ? 32 * registers_of(e) : LLVMGetTypeKind(e) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(e) : 16;
    return (LLVMGetVectorSize(t) * bits + 31) / 32;
  }
  case LLVMStructTypeKind: return 0;   /* its parts count */
  default: return 1;
  }
}

/* A name for what is there already, or a part of an address: no instruction, or none that matters. */
static bool
is_free(Val insn)
{
  switch (LLVMGetInstructionOpcode(insn)) {
  case LLVMExtractValue: case LLVMBitCast: case LLVMPtrToInt: case LLVMIntToPtr: case LLVMFreeze: return true;
  default: return false;
  }
}

/* ---- the graph ---- */

/* How many operands an instruction has that are needed where it stands: a phi's are where its block is come from. */
static u32
count_operands(Val insn)
{
  return LLVMGetInstructionOpcode(insn) == LLVMPHI ? 0 : (u32)LLVMGetNumOperands(insn);
}

static void
count_uses(Order *o, u32 i)
{
  Node *x = &o->nodes[i];
  for (u32 k = 0, n = count_operands(x->insn); k < n; k++) {
    u32 d = node_of(o, LLVMGetOperand(x->insn, k));
    if (d == UINT32_MAX)
      continue;
    o->nodes[d].nuses++;
    x->missing++;
  }
}

static void
enter_uses(Order *o, u32 i)
{
  Val insn = o->nodes[i].insn;
  for (u32 k = 0, n = count_operands(insn); k < n; k++) {
    u32 d = node_of(o, LLVMGetOperand(insn, k));
    if (d == UINT32_MAX)
      continue;
    Node *def = &o->nodes[d];
    o->users[def->first_use + def->pending++] = i;
  }
}

static bool
used_outside(Val insn, LLVMBasicBlockRef block)
{
  for (LLVMUseRef u = LLVMGetFirstUse(insn); u; u = LLVMGetNextUse(u)) {
    Val user = LLVMGetUser(u);
    if (LLVMGetInstructionParent(user) != block || LLVMGetInstructionOpcode(user) == LLVMPHI)
      return true;
  }
  return false;
}

/* Operands of node i that are nodes, the one that takes the most registers first. */
static u32
operands_of(const Order *o, u32 i, u32 *out, u32 most)
{
  Val insn = o->nodes[i].insn;
  u32 n = 0;
  for (u32 k = 0, all = count_operands(insn); k < all && n < most; k++) {
    u32 d = node_of(o, LLVMGetOperand(insn, k)), at = n;
    if (d == UINT32_MAX)
      continue;
    for (; at > 0 && o->nodes[out[at - 1]].need < o->nodes[d].need; at--)
      out[at] = out[at - 1];
    out[at] = d;
    n++;
  }
  return n;
}



static void
estimate(Order *o, u32 i)
{
  Node *x = &o->nodes[i];
  u32 operands[MOST_OPERANDS], held = 0;
  x->need = x->size;
  if (x->anchor)
    return;
  u32 n = operands_of(o, i, operands, MOST_OPERANDS);
  for (u32 k = 0; k < n; k++) {
    const Node *d = &o->nodes[operands[k]];
    u32 need = d->nuses > 1 || d->anchor ? d->size : d->need;
    x->need = held + need > x->need ? held + need : x->need;
    held += d->size;
  }
}

/* ---- the order ---- */

/* Registers that are free once x is placed: those of operands that nobody else waits for. */
static u32
sets_free(const Order *o, u32 i)
{
  u32 operands[MOST_OPERANDS], n = operands_of(o, i, operands, MOST_OPERANDS), freed = 0;
  for (u32 k = 0; k < n; k++) {
    const Node *d = &o->nodes[operands[k]];
    u32 again = 0;
    for (u32 q = 0; q < n; q++)
      again += operands[q] == operands[k];
    bool counted = false;
    for (u32 q = 0; q < k; q++)
      counted |= operands[q] == operands[k];
    if (!counted && !d->lives_on && d->pending == again)
      freed += d->size;
  }
  return freed;
}

static void
put(Order *o, u32 i)
{
  Node *x = &o->nodes[i];
  u32 operands[MOST_OPERANDS], n = operands_of(o, i, operands, MOST_OPERANDS);
  x->placed = true;
  o->out[o->nout++] = i;
  for (u32 k = 0; k < n; k++)
    o->nodes[operands[k]].pending--;
  for (u32 k = 0; k < x->nuses; k++) {
    u32 u = o->users[x->first_use + k];
    if (--o->nodes[u].missing == 0 && !o->nodes[u].anchor)
      vec_push(o->g->arena, &o->ready, u);
  }
}

/* Whatever costs nothing more is done at once. */
static void
put_gains(Order *o)
{
  while (o->ready.len) {
    u32 i = o->ready.data[--o->ready.len];
    const Node *x = &o->nodes[i];
    if (!x->placed && (is_free(x->insn) || x->size <= sets_free(o, i)))
      put(o, i);
  }
}

/* Node i, behind everything it needs. */
static void
put_with_operands(Order *o, u32 i)
{
  vec_push(o->g->arena, &o->stack, i);
  while (o->stack.len) {
    u32 at = o->stack.data[o->stack.len - 1], operands[MOST_OPERANDS], n, k;
    if (o->nodes[at].placed) {
      o->stack.len--;
      continue;
    }
    n = operands_of(o, at, operands, MOST_OPERANDS);
    for (k = 0; k < n && o->nodes[operands[k]].placed; k++) {}
    if (k < n) {
      vec_push(o->g->arena, &o->stack, operands[k]);
      continue;
    }
    o->stack.len--;
    put(o, at);
    put_gains(o);
  }
}

/* Is it the inline PTX that begins like this? */
static bool
is_ptx(Val insn, const char *begins)
{
  size_t n;
  if (LLVMGetInstructionOpcode(insn) != LLVMCall || !LLVMIsAInlineAsm(LLVMGetCalledValue(insn)))
    return false;
  const char *text = LLVMGetInlineAsmAsmString(LLVMGetCalledValue(insn), &n);
  return n >= strlen(begins) && !memcmp(text, begins, strlen(begins));
}

/* What the program does behind the products that it started last, up to here. */
static void
put_meanwhile(Order *o, u32 started, u32 wait)
{
  for (u32 i = started + 1; i < wait; i++)
    if (!o->nodes[i].placed)
      put_with_operands(o, i);
}

static void
choose_order(Order *o)
{
  u32 started = UINT32_MAX;
  for (u32 i = 0; i + 1 < o->n; i++) {
    if (!o->nodes[i].anchor)
      continue;
    if (started != UINT32_MAX && is_ptx(o->nodes[i].insn, "wgmma.wait_group"))
      put_meanwhile(o, started, i);
    started = is_ptx(o->nodes[i].insn, "wgmma.commit_group") ? i : started;
    put_with_operands(o, i);
  }
  for (u32 i = 0; i < o->n; i++)
    if (!o->nodes[i].placed)
      put_with_operands(o, i);
}

static void
rewrite(Order *o, LLVMBasicBlockRef block)
{
  for (u32 i = 0; i + 1 < o->n; i++)   /* the terminator stays */
    if (LLVMGetInstructionOpcode(o->nodes[i].insn) != LLVMPHI)
      LLVMInstructionRemoveFromParent(o->nodes[i].insn);
  LLVMBuilderRef b = LLVMCreateBuilderInContext(o->g->lc);
  LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(block));
  for (u32 k = 0; k < o->nout; k++) {
    Val insn = o->nodes[o->out[k]].insn;
    if (LLVMGetInstructionOpcode(insn) == LLVMPHI || LLVMIsATerminatorInst(insn))
      continue;
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(insn));   /* inserting gives it the builder's */
    LLVMInsertIntoBuilder(b, insn);
  }
  LLVMDisposeBuilder(b);
}

/* The most registers that values of the block take at a time, in the order that `at` gives: node numbers, or NULL for the one they
 * have. What comes from other blocks is the same in every order but for when it is used last, and is left out. */
static u32
pressure(Order *o, const u32 *at)
{
  u32 live = 0, most = 0;
  for (u32 i = 0; i < o->n; i++)
    o->nodes[i].pending = o->nodes[i].nuses;
  for (u32 k = 0; k < o->n; k++) {
    u32 i = at ? at[k] : k, operands[MOST_OPERANDS], n = operands_of(o, i, operands, MOST_OPERANDS);
    for (u32 q = 0; q < n; q++) {
      Node *d = &o->nodes[operands[q]];
      if (--d->pending == 0 && !d->lives_on)
        live -= d->size;
    }
    live += o->nodes[i].nuses || o->nodes[i].lives_on ? o->nodes[i].size : 0;
    most = live > most ? live : most;
  }
  return most;
}

static u32
block_length(LLVMBasicBlockRef block)
{
  u32 n = 0;
  for (Val x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x))
    n++;
  return n;
}

static void
order_block(Gen *g, LLVMBasicBlockRef block, unsigned convergent, unsigned memory)
{
  Order o = {.g = g, .n = block_length(block), .convergent = convergent, .memory = memory};
  u32 nuses = 0, i = 0;
  if (o.n < 4)
    return;
  o.mask = next_pow2(2 * o.n) - 1;
  o.nodes = NEW_ARRAY(g->arena, Node, o.n);
  o.keys = NEW_ARRAY(g->arena, Val, o.mask + 1);
  o.slots = NEW_ARRAY(g->arena, u32, o.mask + 1);
  o.out = NEW_ARRAY(g->arena, u32, o.n);
  for (Val x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x), i++) {
    o.nodes[i] = (Node){.insn = x, .size = registers_of(LLVMTypeOf(x)), .anchor = !moves(&o, x)};
    enter(&o, x, i);
  }
  for (i = 0; i < o.n; i++)
    count_uses(&o, i);
  for (i = 0; i < o.n; i++) {
    o.nodes[i].first_use = nuses;
    nuses += o.nodes[i].nuses;
    o.nodes[i].lives_on = used_outside(o.nodes[i].insn, block);
  }
  o.users = NEW_ARRAY(g->arena, u32, nuses + 1);
  for (i = 0; i < o.n; i++)
    enter_uses(&o, i);
  for (i = 0; i < o.n; i++)
    estimate(&o, i);
  u32 before = pressure(&o, NULL);
  if (before < FEW)
    return;
  for (i = 0; i < o.n; i++)
    o.nodes[i].pending = o.nodes[i].nuses;
  choose_order(&o);
  u32 after = pressure(&o, o.out);
  if (after + GAIN <= before)
    rewrite(&o, block);
}

void
order_depth_first(Gen *g)
{
  unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10), memory = LLVMGetEnumAttributeKindForName("memory", 6);
  for (Val f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      order_block(g, b, convergent, memory);
}
