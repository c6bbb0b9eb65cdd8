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

Team
block_team(const Block *b)
{
  return (Team){.first = 0, .warps = b->func->warps, .registers = registers_stated(b->func)};
}
