/* hollow.c - values of local memory that nobody wrote, on the way from a load to a store: structs are copied with their holes, and a field
 * of bits is set in a word that was never written whole. That is no read of what nobody wrote yet; the copy is as hollow as the original.
 *
 * Which loads these are is found once, backward over a function's registers and without regard to the order of instructions. A use of a
 * register is plain (a store to local memory of the value as it is), a merge (a source of `and`, `or`, `bfi` whose result is not really
 * used), or real (anything else, any store to other memory among it). A load without real uses `copies`: what it finds unwritten is
 * noted lane by lane for its register, and a store of that register marks what it writes as unwritten. */
#include "decode.h"
#include <stdlib.h>

enum { USE_PLAIN = 1, USE_REAL = 2, USE_MERGED = 4, DEF_OTHER = 8, MOST_PASSES = 12 };
enum { MERGES = 8, MOVES = 3 };

typedef struct Uses {
  const Unit *u;
  uint8_t *of;                         /* by slot / 64 */
  AluFn *merge[MERGES], *move[MOVES];
  bool changed;
} Uses;

static void
use(Uses *x, uint32_t slot, uint8_t how)
{
  if (slot & CONST_BIT || (x->of[slot / 64] | how) == x->of[slot / 64])
    return;
  x->of[slot / 64] |= how;
  x->changed = true;
}

static uint8_t
uses_of(const Uses *x, uint32_t slot)
{
  return slot & CONST_BIT ? 0 : x->of[slot / 64];
}

static void
find_rows(Uses *x)
{
  static const Type widths[MOVES] = {T_U16, T_U32, T_U64};
  for (int i = 0; i < MOVES; i++) {
    x->merge[i] = alu_find(A_and, V_NONE, widths[i])->fn;
    x->merge[MOVES + i] = alu_find(A_or, V_NONE, widths[i])->fn;
    x->move[i] = alu_find(A_mov, V_NONE, widths[i])->fn;
  }
  x->merge[6] = alu_find(A_bfi, V_NONE, T_U32)->fn;
  x->merge[7] = alu_find(A_bfi, V_NONE, T_U64)->fn;
}

static bool
is_among(AluFn *const *fn, uint32_t n, const Insn *in)
{
  for (uint32_t i = 0; i < n; i++)
    if (fn[i] == in->fn.alu)
      return true;
  return false;
}

static void
use_sources(Uses *x, const Insn *in, uint8_t how)
{
  use(x, in->alu.a, how);
  use(x, in->alu.b, how);
  use(x, in->alu.c, how);
}

static uint32_t
list_end(const Unit *u, const Insn *in)
{
  return in + 1 < u->code + u->ncode ? in[1].list : u->nlists;
}

static void
use_list(Uses *x, const Insn *in, uint8_t how)
{
  for (uint32_t i = in->list; i < list_end(x->u, in); i++)
    use(x, x->u->lists[i], how);
}

static bool
is_access(const Insn *in, WarpFn *fn)
{
  return in->kind == K_WARP && in->fn.warp == fn;
}

static bool
may_be_local(const Insn *in)
{
  return in->mem.at.space == SP_LOCAL || in->mem.at.space == SP_GENERIC;
}

/* Registers that something else than a load of local memory defines. */
static void
note_definitions(Uses *x, const Insn *in)
{
  if (in->kind == K_ALU)
    use(x, in->alu.d, DEF_OTHER);
  else if (is_access(in, mem_load) && !may_be_local(in))
    use_list(x, in, DEF_OTHER);
}

/* A copy through another register is none that a store could be told of. */
static uint8_t
through_move(uint8_t uses)
{
  return (uses & USE_MERGED) | (uses & (USE_PLAIN | USE_REAL) ? USE_REAL : 0);
}

static void
use_operands(Uses *x, const Insn *in)
{
  bool load = is_access(in, mem_load), store = is_access(in, mem_store);
  if (in->guard)
    use(x, in->guard - 1, USE_REAL);
  if (load || store) {
    use(x, in->mem.base, USE_REAL);
    if (store)
      use_list(x, in, may_be_local(in) ? USE_PLAIN : USE_REAL);
  } else if (in->kind == K_ALU && is_among(x->move, MOVES, in))
    use_sources(x, in, through_move(uses_of(x, in->alu.d)));
  else if (in->kind == K_ALU && is_among(x->merge, MERGES, in))
    use_sources(x, in, USE_MERGED | (uses_of(x, in->alu.d) & USE_REAL));
  else if (in->kind == K_ALU)
    use_sources(x, in, USE_REAL);
  else {
    for (uint32_t i = 0; i < in->nslot; i++)
      use(x, in->slot[i], USE_REAL);
    use_list(x, in, USE_REAL);
  }
}

/* A load whose value goes nowhere copies nothing. */
static bool
only_copied(const Uses *x, const Insn *in)
{
  uint8_t all = 0;
  for (uint32_t i = in->list; i < list_end(x->u, in); i++)
    all |= uses_of(x, x->u->lists[i]);
  return all & (USE_PLAIN | USE_MERGED) && !(all & (USE_REAL | DEF_OTHER));
}

static bool
has_local_loads(const Unit *u)
{
  for (uint32_t i = 0; i < u->ncode; i++)
    if (is_access(&u->code[i], mem_load) && may_be_local(&u->code[i]))
      return true;
  return false;
}

void
hollow_find(Decoder *d)
{
  Unit *u = d->u;
  Uses x = {.u = u, .of = has_local_loads(u) ? calloc(u->reg_bytes / 64 + 1, 1) : NULL, .changed = true};
  find_rows(&x);
  for (uint32_t i = 0; x.of && i < u->ncode; i++)
    note_definitions(&x, &u->code[i]);
  for (int pass = 0; x.of && x.changed && pass < MOST_PASSES; pass++) {
    x.changed = false;
    for (uint32_t i = u->ncode; i-- > 0;)
      use_operands(&x, &u->code[i]);
  }
  for (uint32_t i = 0; x.of && !x.changed && i < u->ncode; i++)
    if (is_access(&u->code[i], mem_load) && may_be_local(&u->code[i]))
      u->code[i].mem.copies = only_copied(&x, &u->code[i]);
  free(x.of);
}
