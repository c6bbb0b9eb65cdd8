/* verify_team.c - warp_specialize: its numbers, its regions, and what these use of what stands around them. */
#include "verify.h"

/* A list has a number for each region. */
static bool
check_list(Verifier *v, const Op *op, AttrId id)
{
  const Attr *a = op_attr(op, id);
  return !a || a->ints.n == op->nregions ||
         verify_fail(v, op, "%s are %u numbers for %u regions", attr_info[id].name, a->ints.n, op->nregions);
}

static bool
check_numbers(Verifier *v, const Op *op)
{
  const Attr *warps = op_attr(op, AT_WARPS), *registers = op_attr(op, AT_REGISTERS);
  u32 all = 0;
  if (!warps)
    return verify_fail(v, op, "attribute 'warps' is missing");
  if (!check_list(v, op, AT_WARPS) || !check_list(v, op, AT_REGISTERS))
    return false;
  const char *wrong = team_numbers_error(v->ctx->scratch, op->nregions, warps->ints.v, registers ? registers->ints.v : NULL);
  if (wrong)
    return verify_fail(v, op, "%s", wrong);
  for (u32 r = 0; r < op->nregions; r++)
    all += (u32)warps->ints.v[r];
  return all == v->func->warps || verify_fail(v, op, "the regions have %u warps, the kernel has %u", all, v->func->warps);
}

bool
verify_teams(Verifier *v, const Op *op)
{
  if (op->block->parent)
    return verify_fail(v, op, "it stands directly in a kernel's body, not in '%s'", op_info(op->block->parent->code)->name);
  if (func_teams(v->func) != op)
    return verify_fail(v, op, "a kernel has one");
  return check_numbers(v, op);
}

typedef struct Captures { Verifier *v; const Block *region; bool ok; } Captures;

/* What is made outside: not tiles, which other warps hold, and buffers only as long as they are. */
static void
check_captures(Op *op, void *user)
{
  Captures *c = user;
  for (u32 i = 0; i < op->noperands && c->ok; i++) {
    const Value *x = op_operand(op, i);
    if (!x || value_inside(x, c->region))
      continue;
    if (type_is_tile(x->type))
      c->ok = verify_fail(c->v, op, "operand %u is a tile of another team: a region uses scalars, pointers and buffers from outside", i);
    else if (op_effect(op, i) & FX_FREE)
      c->ok = verify_fail(c->v, op, "the buffer is not this region's to free");
  }
}

bool
check_WARP_SPECIALIZE(Verifier *v, const Op *op)
{
  bool ok = true;
  for (u32 r = 0; r < op->nregions; r++) {
    Captures c = {v, op->regions[r], true};
    const Op *end = block_terminator(op->regions[r]);
    if (op->regions[r]->nargs)
      return verify_fail(v, op, "region %u has arguments", r);
    if (!end || end->code != OP_YIELD || end->noperands)
      return verify_fail(v, op, "region %u ends in 'yield' of nothing", r);
    block_walk(op->regions[r], check_captures, &c);
    ok &= c.ok;
  }
  TeamClash x;
  if (!ok || !team_clash(v->ctx->scratch, op, &x))
    return ok;
  return verify_fail(v, x.op[1], "region %u %s this buffer, region %u %s it, and no mbarrier orders the two", x.region[0],
                     x.writes[0] ? "writes" : "reads", x.region[1], x.writes[1] ? "writes" : "reads");
}

/* ---- mbarriers ---- */

static bool
mbarrier_operand(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, BUFFER, b);
  if (!type_is_shared(t) || t->dt != DT_MBAR)
    return verify_fail(v, op, "operand 0 is an mbarrier, not %s", spell(v, t));
  return !t->count || verify_fail(v, op, "operand 0 is one mbarrier, not a row of %u: pick one with shared_index", t->count);
}

bool
check_MBARRIER_INIT(Verifier *v, const Op *op)
{
  return mbarrier_operand(v, op) && (!block_team(op->block).op ||
         verify_fail(v, op, "mbarriers are initialised by all warps, before they part"));
}

bool
check_MBARRIER_ARRIVE(Verifier *v, const Op *op)
{
  u32 warps = block_team(op->block).warps;
  return mbarrier_operand(v, op) && (is_pow2(warps) ||
         verify_fail(v, op, "%u warps do not arrive together: only a power of two of them does", warps));
}

bool
check_MBARRIER_WAIT(Verifier *v, const Op *op)
{
  const Type *t = IN_TYPE(op, MBARRIER_WAIT, parity);
  i64 n;
  if (!mbarrier_operand(v, op))
    return false;
  if (t->kind != TY_SCALAR || t->dt != DT_I32)
    return verify_fail(v, op, "the parity is an i32, not %s", spell(v, t));
  return !value_const_int(OPERAND(op, MBARRIER_WAIT, parity), &n) || n == 0 || n == 1 ||
         verify_fail(v, op, "the parity is 0 or 1, not %lld", (long long)n);
}

bool
check_FENCE(Verifier *v, const Op *op)
{
  return true;
}
