/* bulk.c - cp.async.bulk, cp.reduce.async.bulk and their tensor forms: what they check when they are issued, and their groups.
 *
 * Loads end at an mbarrier: its agent writes shared memory and reads global memory (mbarrier.c). Both may be another block's of the
 * cluster; a multicast is a load for each block of its mask, which ends at that block's own mbarrier. Stores end with a bulk group of their
 * thread. They have two agents for each warp, one that reads shared memory and one that writes the target, whose clocks count the
 * groups committed: a wait for reads tells of the one, a wait for all of both. All bytes move at once, when they land (flight.c). */
#include "tensor.h"
#include <string.h>

enum { PIECE = 16, SHARED_ALIGN = 128 };

/* ---- operands ---- */

static uint64_t
address_of(const Warp *w, const BulkOps *o, uint32_t slot, int32_t offset, uint8_t wide, uint32_t lane)
{
  if (o->wide & wide)
    return LANES_OF(uint64_t, w, slot)[lane] + (uint64_t)(int64_t)offset;
  return LANES_OF(uint32_t, w, slot)[lane] + (uint32_t)offset;
}

static int
bulk_fault(Block *b, Warp *w, const Insn *in, uint32_t lane, SimErrorKind kind, uint64_t at, const char *what, uint64_t value, uint32_t of)
{
  char thread[48];
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  return sim_fault(b, w, in, (int)lane, kind, at, "thread %s issues a bulk copy whose %s, 0x%llx, is not a multiple of %u", thread, what,
                   (unsigned long long)value, of);
}

static int
not_shared(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at)
{
  char thread[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, at, "thread %s issues a bulk copy whose address 0x%llx should be"
                   " in shared memory and is not",
                   sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread), (unsigned long long)at);
}

/* n bytes of shared memory that the copy's agent reads or writes; -1 with the fault. */
static int
check_shared(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t *at, uint32_t n, uint32_t align, bool write, Doer by)
{
  if (*at >= WINDOW_SIZE && mem_space_of(at) != SP_SHARED)
    return not_shared(b, w, in, lane, *at);
  LaneAccess part = {.space = SP_SHARED, .addr = *at, .lane = lane, .size = n, .write = write, .agent = by.agent, .segment = by.segment};
  if (*at % align)
    return bulk_fault(b, w, in, lane, SIM_E_ALIGN, *at, "address in shared memory", *at, align);
  return n && (!mem_bytes(b, w, in, lane, SP_SHARED, *at, n, write) || mem_check(b, w, in, &part)) ? -1 : 0;
}

static int
check_global(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t at, uint32_t n, bool write, Doer by)
{
  bool op = in->bulk.op;
  LaneAccess part = {.space = SP_GLOBAL, .addr = at, .lane = lane, .size = n, .write = write, .agent = by.agent,
                     .segment = by.segment, .strong = op, .update = op};
  if (at % PIECE)
    return bulk_fault(b, w, in, lane, SIM_E_ALIGN, at, "address in global memory", at, PIECE);
  mem_stats_run(b, at, n, write);
  return n && (!mem_bytes(b, w, in, lane, SP_GLOBAL, at, n, write) || mem_check(b, w, in, &part)) ? -1 : 0;
}

/* ---- issue ---- */

/* The agents of a warp's groups, which begin with the first of them. */
static void
need_agents(Block *b, Warp *w)
{
  if (w->bulk_reads)
    return;
  w->bulk_reads = agent_new(b);
  w->bulk_writes = agent_new(b);
}

/* Of a prefetch: it moves nothing, but its map and coordinates have to be right. */
static int
check_prefetch(Block *b, Warp *w, const Insn *in, uint32_t lane)
{
  const BulkOps *o = &in->bulk;
  Box box;
  return box_named(b, w, in, lane, address_of(w, o, o->from, o->from_offset, WIDE_FROM, lane), &box) ? 0 : -1;
}

/* The bytes that a copy moves, which are announced, or the box's. */
static int
copy_size(Block *b, Warp *w, const Insn *in, uint32_t lane, Flight *f)
{
  const BulkOps *o = &in->bulk;
  if (o->rank) {
    bool load = o->what == BULK_LOAD;
    uint64_t map = load ? address_of(w, o, o->from, o->from_offset, WIDE_FROM, lane) : address_of(w, o, o->to, o->to_offset, WIDE_TO, lane);
    f->kind = FLIGHT_BOX;
    if (!box_named(b, w, in, lane, map, &f->box))
      return -1;
    if (o->op && !box_reduces(&f->box, (ModId)o->op))
      return map_fault(b, w, in, lane, map, "is of elements that this reduction does not take") ? 0 : -1;
    f->bytes = box_bytes(&f->box);
    return 0;
  }
  f->kind = FLIGHT_BULK;
  f->bytes = LANES_OF(uint32_t, w, o->bytes)[lane];
  return f->bytes % PIECE ? bulk_fault(b, w, in, lane, SIM_E_ALIGN, 0, "size", f->bytes, PIECE) : 0;
}

/* Where a load goes, and the mbarrier it ends at: addresses in the window of shared memory. */
typedef struct Target { uint64_t to, mbar; } Target;

static int
check_together(Block *b, Warp *w, const Insn *in, uint32_t lane, const Block *to, const Block *ends)
{
  char thread[48], x[48], y[48];
  if (to == ends)
    return 0;
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  if (!to)
    return sim_fault(b, w, in, (int)lane, SIM_E_BOUNDS, 0, "thread %s issues a copy to a block that the cluster has not", thread);
  return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "thread %s issues a copy to shared memory of program %s, which ends at"
                   " an mbarrier of program %s", thread, sim_program_text(b->launch, to->index, x, sizeof x),
                   sim_program_text(b->launch, ends->index, y, sizeof y));
}

/* Global or shared memory to shared memory, ending at an mbarrier beside it. */
static int
issue_load(Block *b, Warp *w, const Insn *in, uint32_t lane, const Target *at, Flight *f)
{
  const BulkOps *o = &in->bulk;
  bool box = f->kind == FLIGHT_BOX;
  const Mbar *m = mbar_for_copy(b, w, in, lane, SP_CLUSTER, at->mbar, &f->mbar);
  if (!m)
    return -1;
  f->to = at->to;
  if (f->to >= WINDOW_SIZE && mem_space_of(&f->to) != SP_SHARED)
    return not_shared(b, w, in, lane, f->to);
  uint64_t off = f->to;
  Block *home = m->block;
  if (check_together(b, w, in, lane, cluster_block(b, &off), home))
    return -1;
  Doer by = {m->agent, b->check ? agent_segment(home, m->agent) : 0};
  f->from = box ? 0 : address_of(w, o, o->from, o->from_offset, WIDE_FROM, lane);
  if (o->what == BULK_SHARED && b->check && home != b)
    b->shadow->visited = true;
  int rc = box ? box_check(b, w, in, lane, &f->box, false, by)
           : o->what == BULK_SHARED ? check_shared(b, w, in, lane, &f->from, f->bytes, PIECE, false, by)
                                    : check_global(b, w, in, lane, f->from, f->bytes, false, by);
  if (rc || check_shared(b, w, in, lane, &f->to, box ? box_reach(&f->box) : f->bytes, box ? SHARED_ALIGN : PIECE, true, by))
    return -1;
  f->to = off;
  return flight_add(b, w, in, home, f);
}

/* The same offset in each block of the mask, and the mbarrier at the same offset there. */
static int
multicast(Block *b, Warp *w, const Insn *in, uint32_t lane, const Target *given, Flight *f)
{
  uint32_t mask = LANES_OF(uint16_t, w, in->bulk.mask)[lane], n = b->cluster->n, low = (1u << RANK_SHIFT) - 1;
  if (!mask || mask >> n)
    return sim_fault(b, w, in, (int)lane, SIM_E_TRAP, 0, "a multicast to the blocks 0x%x of a cluster of %u", mask, n);
  FOR_LANES(i, mask) {
    const Block *t = b->cluster->block[i];
    Target at = {cluster_address(b, t, given->to & low), cluster_address(b, t, given->mbar & low)};
    if (issue_load(b, w, in, lane, &at, f))
      return -1;
  }
  return 0;
}

static int
issue_loads(Block *b, Warp *w, const Insn *in, uint32_t lane, Flight *f)
{
  const BulkOps *o = &in->bulk;
  Target at = {address_of(w, o, o->to, o->to_offset, WIDE_TO, lane), address_of(w, o, o->mbar, o->mbar_offset, WIDE_MBAR, lane)};
  return o->mask ? multicast(b, w, in, lane, &at, f) : issue_load(b, w, in, lane, &at, f);
}

/* Shared memory to global memory, ending with a group. */
static int
issue_store(Block *b, Warp *w, const Insn *in, uint32_t lane, Flight *f)
{
  const BulkOps *o = &in->bulk;
  need_agents(b, w);
  f->mbar = NO_MBAR;
  f->serial = w->bulk_group[lane];
  f->from = address_of(w, o, o->from, o->from_offset, WIDE_FROM, lane);
  Doer reads = {w->bulk_reads, 0}, writes = {w->bulk_writes, 0};
  if (check_shared(b, w, in, lane, &f->from, o->rank ? box_reach(&f->box) : f->bytes, o->rank ? SHARED_ALIGN : PIECE, false, reads))
    return -1;
  if (o->rank)
    return box_check(b, w, in, lane, &f->box, true, writes) ? -1 : flight_add(b, w, in, b, f);
  f->to = address_of(w, o, o->to, o->to_offset, WIDE_TO, lane);
  return check_global(b, w, in, lane, f->to, f->bytes, true, writes) ? -1 : flight_add(b, w, in, b, f);
}

int
bulk_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m) {
    Flight f = {.lane = i};
    if (in->bulk.what == BULK_PREFETCH ? check_prefetch(b, w, in, i)
        : copy_size(b, w, in, i, &f) || (in->bulk.what == BULK_STORE ? issue_store(b, w, in, i, &f) : issue_loads(b, w, in, i, &f)))
      return -1;
  }
  return 0;
}

/* ---- landing ---- */

static void
combine_bytes(const Insn *in, uint8_t *to, const uint8_t *from, uint32_t n)
{
  uint32_t size = ptx_type_bytes[in->type];
  for (uint32_t i = 0; i < n; i += size) {
    uint64_t v = 0;
    memcpy(&v, from + i, size);
    atom_combine((ModId)in->bulk.op, (Type)in->type, to + i, v);
  }
}

void
bulk_move(Block *b, const Flight *f)
{
  const Insn *in = &b->kernel->code[f->pc];
  const BulkOps *o = &in->bulk;
  if (f->kind == FLIGHT_BOX && o->what == BULK_LOAD)
    box_load(b, &f->box, (uint32_t)f->to);
  else if (f->kind == FLIGHT_BOX)
    box_store(b, &f->box, (uint32_t)f->from, (ModId)o->op);
  else {
    uint8_t *to = o->what == BULK_STORE ? (uint8_t *)(uintptr_t)f->to : b->shared + f->to;
    const uint8_t *from = o->what == BULK_LOAD ? (const uint8_t *)(uintptr_t)f->from : f->by->shared + f->from;
    if (o->op)
      combine_bytes(in, to, from, f->bytes);
    else
      memmove(to, from, f->bytes);
  }
}

/* ---- groups ---- */

int
bulk_commit(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  need_agents(b, w);
  FOR_LANES(i, m) w->bulk_group[i]++;
  agent_tick(&b->agent[w->bulk_reads]);
  agent_tick(&b->agent[w->bulk_writes]);
  return 0;
}

/* The warp knows of an agent's groups but the newest n; where several of its lanes have groups, of all. */
static void
learn_groups(const Block *b, Warp *w, uint32_t agent, uint32_t lane, uint32_t n)
{
  uint32_t clock = b->agent[agent].clock, *known = &w->clocks.of[PROXY_GENERIC][agent];
  bool alone = agent < MAX_AGENTS - 1 && w->bulk_group[lane] + 1 == clock;
  clock -= alone ? n < clock - 1 ? n : clock - 1 : 0;
  *known = clock > *known ? clock : *known;
}

int
bulk_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint32_t n = in->bulk_wait.pending;
  need_agents(b, w);
  FOR_LANES(i, m) {
    if (w->bulk_group[i] > n && flights_land_groups(b, w, i, w->bulk_group[i] - n))
      return -1;
    if (!w->bulk_group[i])
      continue;
    learn_groups(b, w, w->bulk_reads, i, n);
    if (!in->bulk_wait.reads)
      learn_groups(b, w, w->bulk_writes, i, n);
  }
  return 0;
}
