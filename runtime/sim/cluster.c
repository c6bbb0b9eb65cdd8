/* cluster.c - blocks that share their shared memory: its addresses (PTX ISA, "mapa", "getctarank"), and their barrier.
 *
 * barrier.cluster (PTX ISA, "barrier.cluster"): every thread of a cluster arrives, and may do other things before it waits
 * for those that have not. Threads that have ended count as arrived.
 *
 * A block may end only when nobody uses its shared memory any more: behind the cluster's barrier, relaxed or not, or when one of its
 * threads knows by other ways that the use is over. Who comes later finds that it has ended.
 *
 * What the threads of a block know that have arrived is gathered by block, and handed out when the phase ends: clocks of its own block to
 * each, and the others' as what is known of other blocks. */
#include "internal.h"
#include <string.h>

/* ---- shared memory of other blocks ---- */

Block *
cluster_other(Block *b, uint64_t *addr)
{
  uint64_t tag = *addr >> RANK_SHIFT;
  *addr &= (1u << RANK_SHIFT) - 1;
  return tag <= b->cluster->n ? b->cluster->block[tag - 1] : NULL;
}

uint64_t
cluster_address(const Block *b, const Block *of, uint64_t off)
{
  return b == of ? off : off | (uint64_t)(of->rank + 1) << RANK_SHIFT;
}

bool
cluster_has(const Block *b, uint64_t index)
{
  for (uint32_t i = 0; i < b->cluster->n; i++)
    if (b->cluster->block[i]->index == index)
      return true;
  return false;
}

/* The clock moves on before others can know of the use. */
static void
note_visit(Block *of, const Block *b, Warp *w, const Insn *in, uint32_t lane)
{
  if (!of->visit)
    return;
  of->shadow->visited = true;
  if (in->fn.warp == bulk_exec || is_async_store(in))      /* its end is waited for at the mbarrier; flight.c */
    return;
  w->touched = true;
  of->visit[b->rank * b->nwarps + w->index] =
    (Visit){w->clock, (uint32_t)(in - b->kernel->code), lane, true, !(w->cluster_now >> lane & 1)};
}

/* All uses before the arrivals are over. */
static void
settle_visits(Block *b)
{
  for (uint32_t i = 0; b->visit && i < b->cluster->n * b->nwarps; i++) {
    b->visit[i].any &= !b->visit[i].early;
    b->visit[i].early = true;
  }
}

void
cluster_warp_ended(Block *b, const Warp *w)
{
  if (b->visit)
    clock_learn(b, &b->ended, w->know);
}

static int
fault_visit(Block *b, Block *by, Warp *w, const Visit *v)
{
  char thread[48], program[48], whose[48];
  sim_thread_text(by, w->index * LANES + v->lane, thread, sizeof thread);
  sim_program_text(b->launch, by->index, program, sizeof program);
  return sim_fault(by, w, &b->kernel->code[v->pc], (int)v->lane, SIM_E_BARRIER, 0,
                   "thread %s of program %s uses shared memory of program %s, which may have ended by then:"
                   " no barrier of the cluster comes behind",
                   thread, program, sim_program_text(b->launch, b->index, whose, sizeof whose));
}

int
cluster_ended(Block *b)
{
  for (uint32_t i = 0; b->visit && i < b->cluster->n * b->nwarps; i++) {
    const Visit *v = &b->visit[i];
    Block *by = b->cluster->block[i / b->nwarps];
    const uint32_t *clock = know_clocks(b->launch, b->ended, by->index);
    if (v->any && !(clock && v->clock < clock[i % b->nwarps]))
      return fault_visit(b, by, &by->warp[i % b->nwarps], v);
  }
  return 0;
}

Block *
cluster_reach(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t *addr, uint32_t n, bool write)
{
  const Address *at = insn_address(in);
  uint64_t named = *addr;
  Block *t = cluster_block(b, addr);
  if (t == b)
    return b;
  if (!t)
    fault_remote(b, w, in, lane, named, n, write, b->cluster->n > 1 ? "the cluster has no such block"
                 : "outside of shared memory, or another block's, where there is no cluster");
  else if (at && (at->space == SP_SHARED || (at->space == SP_GENERIC && in->fn.warp == mbar_exec)))
    fault_remote(b, w, in, lane, named, n, write, "an instruction without .shared::cluster reaches the block's own");
  else if (!t->nlive)
    fault_remote(b, w, in, lane, named, n, write, "that block has ended");
  else {
    note_visit(t, b, w, in, lane);
    return t;
  }
  return NULL;
}

/* A rank that the cluster has not got makes an address that nobody may use. */
int
mapa_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const MapOps *o = &in->map;
  const uint32_t *rank = LANES_OF(uint32_t, w, o->rank);
  FOR_LANES(i, m) {
    uint64_t a = o->wide ? LANES_OF(uint64_t, w, o->a)[i] : LANES_OF(uint32_t, w, o->a)[i], off = a;
    if (o->generic && mem_space_of(&off) != SP_SHARED)
      return sim_fault(b, w, in, (int)i, SIM_E_BOUNDS, a, "mapa of the address 0x%llx, which is not in shared memory",
                       (unsigned long long)a);
    off &= (1u << RANK_SHIFT) - 1;
    if (rank[i] != b->rank)
      off |= (uint64_t)(rank[i] < MOST_RANKS ? rank[i] + 1 : MOST_RANKS) << RANK_SHIFT;
    if (o->wide)
      LANES_OF(uint64_t, w, o->d)[i] = o->generic ? SHARED_WINDOW + off : off;
    else
      LANES_OF(uint32_t, w, o->d)[i] = (uint32_t)off;
  }
  return 0;
}

int
ctarank_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  const SpaceOps *o = &in->isspace;
  FOR_LANES(i, m) {
    uint64_t a = o->wide ? LANES_OF(uint64_t, w, o->a)[i] : LANES_OF(uint32_t, w, o->a)[i], off = a;
    if (o->space == SP_GENERIC && mem_space_of(&off) != SP_SHARED)
      return sim_fault(b, w, in, (int)i, SIM_E_BOUNDS, a, "getctarank of the address 0x%llx, which is not in shared memory",
                       (unsigned long long)a);
    LANES_OF(uint32_t, w, o->d)[i] = off >> RANK_SHIFT ? (uint32_t)(off >> RANK_SHIFT) - 1 : b->rank;
  }
  return 0;
}

/* ---- the barrier ---- */

static bool
all_arrived(const Cluster *c)
{
  bool any = false;
  for (uint32_t j = 0; j < c->n; j++)
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++) {
      const Warp *w = &c->block[j]->warp[i];
      if (w->live & ~w->cluster_now)
        return false;
      any |= w->cluster_now != 0;
    }
  return any;
}

void
cluster_settle(Cluster *c)
{
  if (!c->met || !all_arrived(c))
    return;
  if (c->block[0]->check)
    clock_meet(c);
  c->events++;
  for (uint32_t j = 0; j < c->n; j++) {
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++)
      c->block[j]->warp[i].cluster_now = 0;
    settle_visits(c->block[j]);
    wake_waiters(c->block[j], ON_CLUSTER);
  }
}

void
cluster_clear(Block *b)
{
  know_drop(b->cluster_know);
  know_drop(b->cluster_know_done);
  know_drop(b->ended);
  b->cluster_know = b->cluster_know_done = b->ended = NULL;
  b->cluster_clocks = b->cluster_done = (Clocks){{{0}}};
  if (b->visit)
    memset(b->visit, 0, b->cluster->n * b->nwarps * sizeof *b->visit);
}

int
cluster_arrive(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (w->cluster_lanes & m)
    return sim_fault(b, w, in, __builtin_ctz(w->cluster_lanes & m), SIM_E_BARRIER, 0,
                     "lanes 0x%08x of warp %u arrive at the cluster's barrier, and have not waited since they did so before",
                     w->cluster_lanes & m, w->index);
  b->cluster->met = true;
  w->cluster_lanes |= m;
  w->cluster_now |= m;
  b->worker->stats.barriers++;
  if (b->check)
    (in->cluster.relaxed ? clock_arrive_relaxed : clock_arrive)(b, w, &b->cluster_clocks, &b->cluster_know);
  cluster_settle(b->cluster);
  return 0;
}

int
cluster_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (m & ~w->cluster_lanes)
    return sim_fault(b, w, in, __builtin_ctz(m & ~w->cluster_lanes), SIM_E_BARRIER, 0,
                     "lanes 0x%08x of warp %u wait at the cluster's barrier, and have not arrived", m & ~w->cluster_lanes, w->index);
  if (m & w->cluster_now) {
    w->park_on = ON_CLUSTER;
    return PARK;
  }
  w->cluster_lanes &= ~m;
  if (b->check)
    clock_join(b, w, &b->cluster_done, b->cluster_know_done);
  return 0;
}

void
cluster_wait_text(const Block *b, const Split *s, Text *t)
{
  const Cluster *c = b->cluster;
  char at[200], program[48];
  text_add(t, "at the cluster's barrier (%s)", sim_loc_text(b, s->pc, at, sizeof at));
  for (uint32_t j = 0; j < c->n; j++)
    for (uint32_t i = 0; i < c->block[j]->nwarps; i++)
      if (c->block[j]->warp[i].live & ~c->block[j]->warp[i].cluster_now) {
        text_add(t, " for warp %u", i);
        if (c->n > 1)
          text_add(t, " of program %s", sim_program_text(b->launch, c->block[j]->index, program, sizeof program));
        return;
      }
}
