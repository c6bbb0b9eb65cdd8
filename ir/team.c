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

/* ---- numbers ---- */

/* GROUP: warps that change their registers together, by one instruction. */
enum { WARPS_MOST = 32, GROUP = 4, REGISTERS_LEAST = 24, REGISTERS_MOST = 256 };

/* Has team r, from warp `first` on, groups of its own, or does it share one with its neighbours, which have as many registers each and fill
 * it together? */
static bool
fits_groups(u32 n, const i64 *warps, const i64 *registers, u32 r, i64 first)
{
  i64 begins = first % GROUP, ends = begins + warps[r];
  if (begins && registers[r] != registers[r - 1])
    return false;
  return !begins ? ends % GROUP == 0 || (ends < GROUP && r + 1 < n && registers[r + 1] == registers[r])
                 : ends == GROUP || (ends < GROUP && r + 1 < n);
}

static const char *
registers_error(Arena *a, u32 n, const i64 *warps, const i64 *registers)
{
  for (u32 r = 0; r < n; r++)
    if (registers[r] < REGISTERS_LEAST || registers[r] > REGISTERS_MOST || registers[r] % REGISTERS_STEP)
      return arena_printf(a, "registers are a multiple of %d from %d to %d, those of team %u are %lld", REGISTERS_STEP, REGISTERS_LEAST,
                          REGISTERS_MOST, r, (long long)registers[r]);
  i64 first = 0;
  for (u32 r = 0; r < n; first += warps[r++])
    if (!fits_groups(n, warps, registers, r, first))
      return arena_printf(a, "registers are shared out among groups of %d warps: team %u has %lld from warp %lld on", GROUP, r,
                          (long long)warps[r], (long long)first);
  return NULL;
}

const char *
team_numbers_error(Arena *a, u32 n, const i64 *warps, const i64 *registers)
{
  i64 all = 0;
  if (!n || n > TEAMS_MAX)
    return arena_printf(a, "there are 1 to %d teams, not %u", TEAMS_MAX, n);
  for (u32 r = 0; r < n; all += warps[r++])
    if (warps[r] < 1 || warps[r] > WARPS_MOST || !is_pow2((u64)warps[r]))
      return arena_printf(a, "the warps of a team are a power of two up to %d, those of team %u are %lld", WARPS_MOST, r,
                          (long long)warps[r]);
  if (all > WARPS_MOST)
    return arena_printf(a, "the teams have %lld warps together, a program has at most %d", (long long)all, WARPS_MOST);
  return registers ? registers_error(a, n, warps, registers) : NULL;
}
