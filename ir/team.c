/* team.c - which warps run a block. */
#include "ir.h"

Team
block_team(const Block *b)
{
  return (Team){.first = 0, .warps = b->func->warps};
}
