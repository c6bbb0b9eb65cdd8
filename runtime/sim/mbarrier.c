/* mbarrier.c - mbarriers: phases that end with as many arrivals and bytes as were announced (PTX ISA, "mbarrier").
 *
 * The state lies beside shared memory, by the barrier's offset; its eight bytes count as pending (cells.c), so that other accesses to
 * them are faults. A phase ends when no arrival and no byte is missing. What the arriving warps know goes to those who wait for the
 * phase. What copies by itself and ends at the barrier writes as the barrier's agent, whose clock moves on with the phases: who has
 * waited for a phase knows what was copied in it.
 *
 * An mbarrier is its block's: others of the cluster may arrive and complete bytes there, but not wait.
 *
 * A wait by parity does not say which phase it means. It is the first that the warp has not seen the end of, by a wait of its own or
 * through others, or the one before; if two more have ended since, the parities are confused. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_COUNT = (1 << 20) - 1 };

static Mbar *
find(const Block *b, uint64_t at, uint32_t *index)
{
  for (size_t i = 0; i < b->nmbar; i++)
    if (b->mbar[i]->at == at) {
      *index = (uint32_t)i;
      return b->mbar[i];
    }
  return NULL;
}

void
mbars_clear(Block *b)
{
  for (size_t i = 0; i < b->nmbar; i++) {
    know_drop(b->mbar[i]->know_now);
    know_drop(b->mbar[i]->know_done);
    free(b->mbar[i]);
  }
  b->nmbar = 0;
}

void
mbars_free(Block *b)
{
  mbars_clear(b);
  free(b->mbar);
}

/* ---- places ---- */

static int
mbar_fault(Block *b, Warp *w, const Insn *in, uint32_t lane, const Block *of, uint64_t at, const char *what)
{
  char thread[48];
  sim_thread_text(b, w->index * LANES + lane, thread, sizeof thread);
  if (!of || of == b)
    return sim_fault(b, w, in, (int)lane, SIM_E_BARRIER, at, "thread %s %s", thread, what);
  char program[48], whose[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_BARRIER, at, "thread %s of program %s %s (an mbarrier of program %s)", thread,
                   sim_program_text(b->launch, b->index, program, sizeof program), what,
                   sim_program_text(b->launch, of->index, whose, sizeof whose));
}

#define MBAR_FAULT(b, w, in, lane, m, ...) \
  (text_add(&(Text){why, 0, sizeof why}, __VA_ARGS__), mbar_fault(b, w, in, lane, (m)->block, (m)->at, why))

/* The block in whose shared memory the eight bytes are that a lane names, and their offset there; NULL with the fault. */
static Block *
place_of(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t *addr)
{
  if (sp == SP_GENERIC || *addr >= WINDOW_SIZE)
    sp = mem_space_of(addr);
  if (mem_space(sp) == SP_SHARED)
    return mem_host(b, w, in, lane, SP_SHARED, *addr, 8, true) ? cluster_block(b, addr) : NULL;
  mbar_fault(b, w, in, lane, b, *addr, "names an mbarrier that is not in shared memory");
  return NULL;
}

/* Only arrivals and bytes may be for another block's. */
static int
not_own(Block *b, Warp *w, const Insn *in, uint32_t lane, const Block *t, uint64_t addr)
{
  MbarAct act = (MbarAct)in->mbar.act;
  bool any = act == MB_ARRIVE || act == MB_EXPECT || act == MB_COMPLETE;
  return t == b || any ? 0 : mbar_fault(b, w, in, lane, t, addr, "uses another block's mbarrier for more than arrivals and bytes");
}

static bool
init_known(const Block *b, const Warp *w, uint32_t lane, const Mbar *m)
{
  const Segment *s = record_segment(b->launch, m->init);
  return happened_before(b, w, lane, m->init, s) || s->clock < clock_known(b, w, PROXY_INITS, s);
}

/* The mbarrier that a lane names, initialised before; NULL with the fault. */
static Mbar *
named(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t *index)
{
  char why[300], where[200];
  Block *t = place_of(b, w, in, lane, sp, &addr);
  if (!t)
    return NULL;
  Mbar *m = find(t, addr, index);
  if (!m || !m->live) {
    MBAR_FAULT(b, w, in, lane, (&(Mbar){.at = (uint32_t)addr, .block = t}), "uses an mbarrier at shared+0x%llx, which %s",
               (unsigned long long)addr, m ? "was invalidated" : "nobody has initialised");
    return NULL;
  }
  if (!b->check || init_known(b, w, lane, m))
    return m;
  uint32_t pc = (uint32_t)m->init & PC_MASK;
  MBAR_FAULT(b, w, in, lane, m, "uses the mbarrier at shared+0x%x, which was initialised at %s, and there is no %s between", m->at,
             sim_loc_text(b, pc, where, sizeof where),
             t == b ? "barrier" : "barrier of the cluster, or no fence.mbarrier_init before a relaxed one,");
  sim_fault_also(b, pc);
  return NULL;
}

Mbar *
mbar_for_copy(Block *b, Warp *w, const Insn *in, uint32_t lane, Space sp, uint64_t addr, uint32_t *index)
{
  char why[300], where[200];
  Mbar *m = named(b, w, in, lane, sp, addr, index);
  if (!m || !b->check)
    return m;
  const Segment *s = record_segment(b->launch, m->init);
  if (s->clock < clock_known(b, w, PROXY_INITS, s) || s->clock < clock_known(b, w, PROXY_ASYNC, s))
    return m;
  uint32_t pc = (uint32_t)m->init & PC_MASK;
  MBAR_FAULT(b, w, in, lane, m, "starts a copy that ends at the mbarrier at shared+0x%x, which was initialised at %s,"
             " and there is no fence.mbarrier_init behind that", m->at, sim_loc_text(b, pc, where, sizeof where));
  sim_fault_also(b, pc);
  return NULL;
}

/* ---- phases ---- */

/* The phase ends if nothing is missing. */
static void
settle(Mbar *m)
{
  Block *b = m->block;
  b->cluster->events++;
  if (m->pending || m->tx)
    return;
  m->phase++;
  m->pending = m->expected;
  if (b->check) {
    agent_tick(&b->agent[m->agent]);
    m->now.of[PROXY_GENERIC][m->agent] = b->agent[m->agent].clock;
    clock_merge(b, &m->done, &m->know_done, &m->now, m->know_now);
  }
  wake_waiters(b, m->at);
}

static int
add_bytes(Block *b, Warp *w, const Insn *in, uint32_t lane, Mbar *m, int64_t bytes)
{
  char why[300];
  int64_t tx = m->tx + bytes;
  if (bytes > MOST_COUNT || bytes < -MOST_COUNT || tx > MOST_COUNT || tx < -MOST_COUNT)
    return MBAR_FAULT(b, w, in, lane, m, "%s %lld bytes at the mbarrier at shared+0x%x, where %d are missing: outside the range of %d",
                      bytes < 0 ? "completes" : "expects", (long long)(bytes < 0 ? -bytes : bytes), m->at, m->tx, MOST_COUNT);
  m->tx = (int32_t)tx;
  return 0;
}

static int
too_many(Block *b, Warp *w, const Insn *in, uint32_t lane, const Mbar *m, uint32_t count)
{
  char why[400], where[200];
  if (m->tx)
    return MBAR_FAULT(b, w, in, lane, m, "arrives at the mbarrier at shared+0x%x, %u times where %u of %u arrivals are missing in phase %u,"
                      " which waits for %d bytes", m->at, count, m->pending, m->expected, m->phase, m->tx);
  MBAR_FAULT(b, w, in, lane, m, "arrives at the mbarrier at shared+0x%x, %u times where %u of %u arrivals are missing in phase %u%s%s",
             m->at, count, m->pending, m->expected, m->phase, m->last ? "; the one before was at " : "",
             m->last ? sim_loc_text(b, m->last - 1, where, sizeof where) : "");
  if (m->last)
    sim_fault_also(b, m->last - 1);
  return -1;
}

static int
arrive(Block *b, Warp *w, const Insn *in, uint32_t lane, Mbar *m, uint32_t count)
{
  char why[300];
  const MbarOps *o = &in->mbar;
  if (!count || count > m->pending)
    return too_many(b, w, in, lane, m, count);
  if (o->partial && count == m->pending && !m->tx)
    return MBAR_FAULT(b, w, in, lane, m, "arrives with .noComplete at the mbarrier at shared+0x%x, and ends its phase %u", m->at, m->phase);
  m->pending -= count;
  m->expected -= o->drop ? count : 0;
  m->last = (uint32_t)(in - b->kernel->code) + 1;
  settle(m);
  return 0;
}

int
mbar_arrived(Block *b, const Flight *f)
{
  return arrive(f->by, &f->by->warp[f->warp], &b->kernel->code[f->pc], f->lane, b->mbar[f->mbar], 1);
}

int
mbar_released(Block *b, const Flight *f)
{
  Mbar *m = b->mbar[f->mbar];
  if (b->check)
    clock_arrive_at(f->by, &f->by->warp[f->warp], b, false, &m->now, &m->know_now);
  return mbar_arrived(b, f);
}

int
mbar_completed(Block *b, const Flight *f, uint32_t bytes)
{
  Mbar *m = b->mbar[f->mbar];
  if (add_bytes(f->by, &f->by->warp[f->warp], &b->kernel->code[f->pc], f->lane, m, -(int64_t)bytes))
    return -1;
  settle(m);
  return 0;
}

/* ---- instructions ---- */

static Mbar *
place_new(Block *b, uint32_t at)
{
  if (!sim_vec_grow(&b->mbar, &b->mbar_cap, b->nmbar + 1, sizeof *b->mbar))
    return NULL;
  Mbar *m = calloc(1, sizeof *m);
  if (!m)
    return NULL;
  m->at = at;
  m->block = b;
  m->agent = agent_new(b);
  return b->mbar[b->nmbar++] = m;
}

static void
start_clocks(Block *b, Warp *w, uint32_t lane, const Insn *in, Mbar *m)
{
  uint32_t pc = (uint32_t)(in - b->kernel->code);
  m->init = (uint64_t)segment_current(b, w) << 32 | lane << PC_BITS | pc;
  m->first = b->agent[m->agent].clock;
  memset(&m->now, 0, sizeof m->now);
  memset(&m->done, 0, sizeof m->done);
}

static int
init(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr, uint32_t count)
{
  char why[300], where[200];
  uint32_t index;
  const Block *t = place_of(b, w, in, lane, (Space)in->mbar.at.space, &addr);
  if (!t || not_own(b, w, in, lane, t, addr))
    return -1;
  Mbar *m = find(b, addr, &index);
  if (m && m->live) {
    MBAR_FAULT(b, w, in, lane, m, "initialises the mbarrier at shared+0x%x, which was initialised at %s and not invalidated since", m->at,
               sim_loc_text(b, (uint32_t)m->init & PC_MASK, where, sizeof where));
    sim_fault_also(b, (uint32_t)m->init & PC_MASK);
    return -1;
  }
  if (!count || count > MOST_COUNT)
    return MBAR_FAULT(b, w, in, lane, &(Mbar){.at = (uint32_t)addr}, "initialises an mbarrier for %u arrivals: 1 to %d are possible", count,
                      MOST_COUNT);
  LaneAccess bytes = {.space = SP_SHARED, .addr = addr, .lane = lane, .size = 8, .write = true, .pending = true};
  if (mem_check(b, w, in, &bytes))
    return -1;
  m = m ? m : place_new(b, (uint32_t)addr);
  if (!m)
    return sim_fault(b, w, in, (int)lane, SIM_E_MEMORY, 0, "out of memory");
  m->live = true;
  m->expected = m->pending = count;
  m->phase = m->last = 0;
  m->tx = 0;
  memset(m->seen, 0, sizeof m->seen);
  if (b->check)
    start_clocks(b, w, lane, in, m);
  else
    m->init = lane << PC_BITS | (uint32_t)(in - b->kernel->code);
  return 0;
}

static int
inval(Block *b, Warp *w, const Insn *in, uint32_t lane, Mbar *m, uint32_t index)
{
  char why[300], where[200];
  for (uint32_t i = 0; i < b->nwarps; i++)
    for (uint32_t j = 0; j < b->warp[i].nsplit; j++)
      if (b->warp[i].split[j].state == SPLIT_WAIT && b->warp[i].split[j].on == m->at) {
        uint32_t pc = b->warp[i].split[j].pc;
        MBAR_FAULT(b, w, in, lane, m, "invalidates the mbarrier at shared+0x%x, where warp %u waits at %s", m->at, i,
                   sim_loc_text(b, pc, where, sizeof where));
        sim_fault_also(b, pc);
        return -1;
      }
  for (size_t i = 0; i < b->nflight; i++)
    if (b->flight[i].mbar == index) {
      MBAR_FAULT(b, w, in, lane, m, "invalidates the mbarrier at shared+0x%x, where the copy issued at %s has yet to arrive", m->at,
                 sim_loc_text(b, b->flight[i].pc, where, sizeof where));
      sim_fault_also(b, b->flight[i].pc);
      return -1;
    }
  m->live = false;
  if (b->check)
    cells_land(b, segment_current(b, w), (uint32_t)(in - b->kernel->code), lane, m->at, 8);
  return 0;
}

/* Copies of the thread that are under way arrive when they have landed. */
static int
copies_arrive(Block *b, Warp *w, const Insn *in, uint32_t lane, Mbar *m, uint32_t index)
{
  char why[300];
  m->pending += !in->mbar.noinc;
  if (m->pending > MOST_COUNT)
    return MBAR_FAULT(b, w, in, lane, m, "adds to the mbarrier at shared+0x%x, where %u arrivals are missing", m->at, m->pending);
  return flight_add(b, w, in, b, &(Flight){.kind = FLIGHT_COPIES, .lane = lane, .mbar = index, .serial = w->serial});
}

static int
arrive_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, Mbar *m, uint32_t amount)
{
  const MbarOps *o = &in->mbar;
  uint64_t state = m->phase | (uint64_t)m->pending << 32;
  if (o->bytes && add_bytes(b, w, in, lane, m, amount))
    return -1;
  if (b->check)
    clock_arrive_at(b, w, m->block, o->relaxed, &m->now, &m->know_now);
  if (arrive(b, w, in, lane, m, o->bytes ? 1 : amount))
    return -1;
  if (o->d)
    LANES_OF(uint64_t, w, o->d)[lane] = state;
  return 0;
}

int
mbar_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  const MbarOps *o = &in->mbar;
  const uint32_t *amount = LANES_OF(uint32_t, w, o->amount);
  mem_address(w, o->base, &o->at, addr);
  FOR_LANES(i, m) {
    uint32_t index = 0, n = o->amount ? amount[i] : 1;
    Mbar *bar = o->act == MB_INIT ? NULL : named(b, w, in, i, (Space)o->at.space, addr[i], &index);
    int rc = o->act == MB_INIT ? 0 : !bar ? -1 : not_own(b, w, in, i, bar->block, bar->at);
    switch (rc ? MB_TEST : (MbarAct)o->act) {
    case MB_INIT: rc = init(b, w, in, i, addr[i], n); break;
    case MB_INVAL: rc = inval(b, w, in, i, bar, index); break;
    case MB_EXPECT: rc = add_bytes(b, w, in, i, bar, n); break;
    case MB_COMPLETE: rc = add_bytes(b, w, in, i, bar, -(int64_t)n); break;
    case MB_ARRIVE: rc = arrive_lane(b, w, in, i, bar, n); break;
    case MB_COPIES: rc = copies_arrive(b, w, in, i, bar, index); break;
    case MB_TEST: case MB_TRY: break;
    }
    if (rc)
      return -1;
    if (o->act == MB_EXPECT || o->act == MB_COMPLETE)
      settle(bar);
  }
  return 0;
}

int
mbar_pending(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  FOR_LANES(i, m)
    LANES_OF(uint32_t, w, in->pending.d)[i] = (uint32_t)(LANES_OF(uint64_t, w, in->pending.state)[i] >> 32);
  return 0;
}

/* ---- waits ---- */

/* Phases that a warp knows the end of. */
static uint32_t
known_phases(const Block *b, const Warp *w, const Mbar *m)
{
  uint32_t clock = w->clocks.of[PROXY_GENERIC][m->agent], seen = m->seen[w->index];
  return b->check && m->agent < MAX_AGENTS - 1 && clock > m->first + seen ? clock - m->first : seen;
}

/* The phase that a lane waits for; -1: one before the first, which is over. */
static int64_t
phase_meant(const Block *b, const Warp *w, const MbarOps *o, uint32_t lane, const Mbar *m)
{
  if (!o->parity)
    return (uint32_t)LANES_OF(uint64_t, w, o->from)[lane];
  uint32_t known = known_phases(b, w, m);
  return (int64_t)known - ((known ^ LANES_OF(uint32_t, w, o->from)[lane]) & 1);
}

static int
check_phase(Block *b, Warp *w, const Insn *in, uint32_t lane, const Mbar *m)
{
  char why[300];
  const MbarOps *o = &in->mbar;
  if (o->parity && LANES_OF(uint32_t, w, o->from)[lane] > 1)
    return MBAR_FAULT(b, w, in, lane, m, "waits at the mbarrier at shared+0x%x for parity %u: 0 and 1 are possible", m->at,
                      LANES_OF(uint32_t, w, o->from)[lane]);
  int64_t phase = phase_meant(b, w, o, lane, m);
  if (phase > (int64_t)m->phase)
    return MBAR_FAULT(b, w, in, lane, m, "waits at the mbarrier at shared+0x%x for phase %lld, where phase %u runs:"
                      " a state of another mbarrier?", m->at, (long long)phase, m->phase);
  bool may_know = o->parity && (!b->check || phase < (int64_t)known_phases(b, w, m));    /* unchecked nobody follows what others tell */
  if ((int64_t)m->phase - phase < 2 || may_know)
    return 0;
  return MBAR_FAULT(b, w, in, lane, m, "waits at the mbarrier at shared+0x%x for phase %lld, where phase %u runs: it is %lld phases"
                    " behind%s", m->at, (long long)phase, m->phase, (long long)m->phase - phase,
                    o->parity ? ", and the parity means another" : "");
}

static bool
is_over(const Warp *w, const MbarOps *o, uint32_t lane, const Mbar *m)
{
  if (!o->parity)
    return (uint32_t)LANES_OF(uint64_t, w, o->from)[lane] != m->phase;
  return (m->phase & 1) != LANES_OF(uint32_t, w, o->from)[lane];
}

/* 1 if the phase is over, 0 if not, -1 with a fault. */
static int
wait_lane(Block *b, Warp *w, const Insn *in, uint32_t lane, uint64_t addr)
{
  uint32_t index;
  Mbar *m = named(b, w, in, lane, (Space)in->mbar.at.space, addr, &index);
  if (!m || not_own(b, w, in, lane, m->block, m->at) || check_phase(b, w, in, lane, m))
    return -1;
  w->park_on = w->park_on == m->at || w->park_on == 0 ? m->at : ON_ANY;
  if (!is_over(w, &in->mbar, lane, m) && flights_land(b, index))
    return -1;
  if (!is_over(w, &in->mbar, lane, m))
    return 0;
  m->seen[w->index] = m->phase > m->seen[w->index] ? m->phase : m->seen[w->index];
  if (b->check && !in->mbar.relaxed)
    clock_join(b, w, &m->done, m->know_done);
  return 1;
}

int
mbar_wait(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  uint64_t addr[LANES];
  uint32_t over = 0, *d = &PRED_OF(w, in->mbar.d);
  mem_address(w, in->mbar.base, &in->mbar.at, addr);
  w->park_on = 0;
  FOR_LANES(i, m) {
    int one = wait_lane(b, w, in, i, addr[i]);
    if (one < 0)
      return -1;
    over |= (uint32_t)one << i;
  }
  bool expired = (w->expired & m) == m;
  if (!over && in->mbar.act == MB_TRY && !expired)
    return PARK;
  w->expired &= ~m;
  *d = (*d & ~m) | over;
  poll_note(b, w, in, (uint64_t)w->park_on << 32 | over, over != 0);
  return 0;
}

void
mbar_wait_text(const Block *b, const Warp *w, const Split *s, Text *t)
{
  const Insn *in = &b->kernel->code[s->pc];
  uint32_t lane = (uint32_t)__builtin_ctz(s->mask), index;
  uint64_t addr[LANES];
  char at[200];
  mem_address(w, in->mbar.base, &in->mbar.at, addr);
  addr[lane] -= addr[lane] >= WINDOW_SIZE ? SHARED_WINDOW : 0;
  const Mbar *m = find(b, addr[lane], &index);
  if (!m)
    return;
  text_add(t, "at mbarrier shared+0x%x (%s) for the end of phase %lld: %u of %u arrivals", m->at, sim_loc_text(b, s->pc, at, sizeof at),
           (long long)phase_meant(b, w, &in->mbar, lane, m), m->pending, m->expected);
  text_add(t, m->tx ? " and %d bytes are missing" : " are missing", m->tx);
  if (m->last)
    text_add(t, ", the last was at %s", sim_loc_text(b, m->last - 1, at, sizeof at));
}
