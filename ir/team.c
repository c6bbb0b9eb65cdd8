/* team.c - which warps run a block. */
#include "ir.h"

/* What a kernel's own limits leave a thread; 0: there are none. */
static u32
registers_stated(const Func *f)
{
  const Target *target = f->module->ctx->target;
  u32 most = f->max_registers, blocks = f->min_blocks;
  u32 each = blocks && target ? target_registers(target, blocks * f->warps * 32) : 0;
  return each && (!most || each < most) ? each : most;
}

/* Number i of a list; 0: there is none. */
static u32
listed(const Op *op, AttrId id, u32 i)
{
  const Attr *a = op_attr(op, id);
  return a && i < a->ints.n ? (u32)a->ints.v[i] : 0;
}

/* The team of region b of a warp_specialize. */
static Team
region_team(const Op *op, const Block *b)
{
  Team t = {.op = op};
  for (; op->regions[t.part] != b; t.part++)
    t.first += listed(op, AT_WARPS, t.part);
  const Target *target = b->func->module->ctx->target;
  u32 own = target && target_has(target, F_SETMAXNREG) ? listed(op, AT_REGISTERS, t.part) : 0;
  t.warps = listed(op, AT_WARPS, t.part);
  t.registers = own ? min_u32(own, target->regs_thread) : registers_stated(b->func);
  return t;
}

Team
block_team(const Block *b)
{
  for (; b->parent; b = b->parent->block)
    if (b->parent->code == OP_WARP_SPECIALIZE)
      return region_team(b->parent, b);
  return (Team){.warps = b->func->warps, .registers = registers_stated(b->func)};
}

const Op *
func_teams(const Func *f)
{
  const Op *op = f->body->first;
  while (op && op->code != OP_WARP_SPECIALIZE)
    op = op->next;
  return op;
}
