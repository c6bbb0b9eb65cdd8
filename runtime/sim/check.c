/* check.c - the shadow of shared memory: who wrote and who read every byte, and whether that is ordered.
 *
 * Time is one clock per warp. It moves on when the warp's lanes synchronise (a barrier, or any .sync
 * instruction of the warp, which this machine takes as ordering memory between its lanes) and shared memory
 * was touched since. A warp also keeps, for every other warp v, vc[v]: accesses of v in clocks before vc[v]
 * happened before whatever this warp does now. A barrier carries such a vector: arriving warps add theirs
 * with their own clock, leaving warps take it over. So named barriers with arrive and partial counts order
 * exactly the warps that took part.
 *
 * Two accesses to a byte, one a write, are a race unless one thread made both, or they are ordered as above,
 * or both are atomic (atom, red, and ld or st marked volatile, relaxed, acquire or release). Atomics that
 * acquire (ld.acquire, volatile loads, atom.acquire, and cas and exch, with which locks are made) order the
 * writer's earlier accesses before the reader's later ones.
 * Threads that store the same value with the same instruction do not race (replicated layouts store every
 * copy); with other values they do.
 *
 * A byte written in this block has a write record with a clock above the block's first; else it is
 * uninitialised. A byte that a cp.async in flight will write is pending: nobody may touch it.
 * Records of earlier blocks are told apart by their clocks, so nothing is cleared between blocks. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

/* write: clock 32 | thread 10 | pc 22.  read: clock 32 | many 1 | lane 5 | pc 22 (bits from 0). */
struct Shadow {
  uint32_t bytes, nwarps;
  uint32_t base;                       /* clocks up to this are of earlier blocks */
  uint64_t *write;
  uint64_t *read;                      /* one row per warp */
  uint32_t *readers;                   /* warps that read since the last write */
  uint8_t *pend;
};

enum { PC_BITS = 22, PC_MASK = (1 << PC_BITS) - 1, MANY = 1 << 27 };

Shadow *
shadow_new(uint32_t bytes, uint32_t nwarps)
{
  Shadow *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  size_t n = bytes ? bytes : 1;
  s->bytes = bytes;
  s->nwarps = nwarps;
  s->write = calloc(n, sizeof *s->write);
  s->read = calloc(n * nwarps, sizeof *s->read);
  s->readers = calloc(n, sizeof *s->readers);
  s->pend = calloc(n, 1);
  if (s->write && s->read && s->readers && s->pend)
    return s;
  shadow_free(s);
  return NULL;
}

void
shadow_free(Shadow *s)
{
  if (!s)
    return;
  free(s->write);
  free(s->read);
  free(s->readers);
  free(s->pend);
  free(s);
}

static void
shadow_clear(Shadow *s)
{
  memset(s->write, 0, s->bytes * sizeof *s->write);
  memset(s->read, 0, (size_t)s->bytes * s->nwarps * sizeof *s->read);
  memset(s->readers, 0, s->bytes * sizeof *s->readers);
  s->base = 0;
}

void
shadow_start(Shadow *s, Block *b)
{
  uint32_t top = s->base;
  for (uint32_t i = 0; i < b->nwarps; i++)
    top = b->warp[i].clock > top ? b->warp[i].clock : top;
  s->base = top;
  if (top > 1u << 31)
    shadow_clear(s);
  memset(s->pend, 0, s->bytes);
  for (uint32_t i = 0; i < b->nwarps; i++) {
    b->warp[i].clock = s->base + 1;
    b->warp[i].touched = false;
    for (uint32_t v = 0; v < MAX_WARPS; v++)
      b->warp[i].vc[v] = s->base + 1;
  }
}

void
clock_tick(Block *b, Warp *w)
{
  w->clock += w->touched;
  w->touched = false;
}

void
clock_arrive(Block *b, Warp *w, Barrier *bar)
{
  clock_tick(b, w);
  for (uint32_t v = 0; v < b->nwarps; v++)
    bar->vc[v] = w->vc[v] > bar->vc[v] ? w->vc[v] : bar->vc[v];
  bar->vc[w->index] = w->clock > bar->vc[w->index] ? w->clock : bar->vc[w->index];
}

void
clock_join(Block *b, Warp *w, const Barrier *bar)
{
  for (uint32_t v = 0; v < b->nwarps; v++)
    w->vc[v] = bar->vc[v] > w->vc[v] ? bar->vc[v] : w->vc[v];
}

static uint32_t
pc_of(const Block *b, const Insn *in)
{
  return (uint32_t)(in - b->kernel->code);
}

static bool
is_strong(const Insn *in)
{
  if (in->fn.warp == atom_exec)
    return in->mem.order > ORDER_RELAXED || in->mem.op == M_CAS || in->mem.op == M_EXCH;
  return (in->fn.warp == mem_load || in->fn.warp == mem_store) && in->mem.order != ORDER_WEAK;
}

static bool
is_atomic(const Block *b, uint32_t pc)
{
  const Insn *in = &b->kernel->code[pc];
  return in->fn.warp == atom_exec || is_strong(in);
}

/* Whether an access of thread t in a clock happened before what a lane of w does now. */
static bool
ordered(const Warp *w, uint32_t lane, uint32_t t, uint32_t clock)
{
  uint32_t v = t / LANES;
  if (v == w->index)
    return t % LANES == lane || clock < w->clock;
  return clock < w->vc[v];
}

static int
race(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, bool write, uint32_t other,
     uint32_t other_pc, bool other_write)
{
  char me[48], them[48], where[300];
  uint32_t t = w->index * LANES + lane;
  return sim_fault(b, w, in, (int)lane, SIM_E_RACE, off,
                      "shared-memory race: thread %s %s %u bytes at shared+0x%x that thread %s %s at %s "
                      "with no barrier between",
                      sim_thread_text(b, t, me, sizeof me), write ? "writes" : "reads", n, off,
                      sim_thread_text(b, other, them, sizeof them), other_write ? "wrote" : "read",
                      sim_loc_text(b, other_pc, where, sizeof where));
}

static int
pending(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, bool write)
{
  char me[48], where[300];
  uint32_t pc = (uint32_t)b->shadow->write[off] & PC_MASK;
  return sim_fault(b, w, in, (int)lane, SIM_E_ASYNC, off,
                      "thread %s %s %u bytes at shared+0x%x, where an asynchronous copy issued at %s has "
                      "not been waited for", sim_thread_text(b, w->index * LANES + lane, me, sizeof me),
                      write ? "writes" : "reads", n, off, sim_loc_text(b, pc, where, sizeof where));
}

static int
uninitialised(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n)
{
  char me[48];
  return sim_fault(b, w, in, (int)lane, SIM_E_UNINIT, off,
                      "thread %s reads %u bytes at shared+0x%x that no thread of the block has written",
                      sim_thread_text(b, w->index * LANES + lane, me, sizeof me), n, off);
}

static void
acquire(Warp *w, uint64_t cell)
{
  uint32_t v = (uint32_t)cell >> PC_BITS & 1023, clock = (uint32_t)(cell >> 32);
  v /= LANES;
  if (v != w->index && w->vc[v] <= clock)
    w->vc[v] = clock + 1;
}

static int
check_cell(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, uint64_t cell)
{
  uint32_t clock = (uint32_t)(cell >> 32), t = (uint32_t)cell >> PC_BITS & 1023, pc = (uint32_t)cell & PC_MASK;
  if (clock <= b->shadow->base)
    return uninitialised(b, w, in, lane, off, n);
  if (ordered(w, lane, t, clock))
    return 0;
  if (is_strong(in) && is_atomic(b, pc)) {
    acquire(w, cell);
    return 0;
  }
  return race(b, w, in, lane, off, n, false, t, pc, true);
}

int
shadow_read(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n)
{
  Shadow *s = b->shadow;
  uint64_t seen = 0, *row = s->read + (size_t)w->index * s->bytes;
  uint32_t pc = pc_of(b, in), bit = 1u << w->index;
  uint64_t mine = (uint64_t)w->clock << 32 | lane << PC_BITS | pc;
  for (uint32_t i = off; i < off + n; i++) {
    if (s->pend[i])
      return pending(b, w, in, lane, i, n, false);
    if (s->write[i] != seen || !seen) {
      seen = s->write[i];
      if (check_cell(b, w, in, lane, off, n, seen))
        return -1;
    }
  }
  if (is_strong(in))
    return 0;
  for (uint32_t i = off; i < off + n; i++) {
    uint64_t old = row[i], other = (old >> PC_BITS ^ mine >> PC_BITS) & 31;
    bool same_clock = old >> 32 == w->clock;
    row[i] = mine | (same_clock && (other || old & MANY) ? MANY : 0);
    s->readers[i] |= bit;
  }
  w->touched = true;
  return 0;
}

static int
check_readers(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, uint32_t i)
{
  Shadow *s = b->shadow;
  FOR_LANES(v, s->readers[i]) {
    uint64_t cell = s->read[(size_t)v * s->bytes + i];
    uint32_t clock = (uint32_t)(cell >> 32), who = (uint32_t)cell >> PC_BITS & 31;
    bool mine = clock < w->clock || (!(cell & MANY) && who == lane);
    if (clock <= s->base || (v == w->index ? mine : clock < w->vc[v]))
      continue;
    return race(b, w, in, lane, off, n, true, v * LANES + who, (uint32_t)cell & PC_MASK, false);
  }
  return 0;
}

static bool
same_store(const Block *b, const Insn *in, uint64_t cell, uint32_t i, const uint8_t *data)
{
  uint32_t pc = (uint32_t)cell & PC_MASK;
  return data && pc == pc_of(b, in) && b->shared[i] == *data;
}

int
shadow_write(Block *b, Warp *w, const Insn *in, uint32_t lane, uint32_t off, uint32_t n, const uint8_t *data,
             bool atomic)
{
  Shadow *s = b->shadow;
  uint64_t mine = (uint64_t)w->clock << 32 | (uint64_t)(w->index * LANES + lane) << PC_BITS | pc_of(b, in);
  for (uint32_t i = off; i < off + n; i++) {
    uint64_t cell = s->write[i];
    uint32_t clock = (uint32_t)(cell >> 32), t = (uint32_t)cell >> PC_BITS & 1023, pc = (uint32_t)cell & PC_MASK;
    if (s->pend[i])
      return pending(b, w, in, lane, i, n, true);
    if (clock <= s->base) {
      if (atomic && in->fn.warp == atom_exec)
        return uninitialised(b, w, in, lane, off, n);
    } else if (!ordered(w, lane, t, clock)) {
      bool both = atomic && is_atomic(b, pc);
      if (!both && !same_store(b, in, cell, i, data ? data + (i - off) : NULL))
        return race(b, w, in, lane, off, n, true, t, pc, true);
      if (both && is_strong(in))
        acquire(w, cell);
    }
    if (s->readers[i] && check_readers(b, w, in, lane, off, n, i))
      return -1;
    s->write[i] = mine;
    s->readers[i] = 0;
  }
  w->touched = true;
  return 0;
}

void
shadow_pend(Block *b, uint32_t off, uint32_t n, bool on)
{
  memset(b->shadow->pend + off, on, n);
}

void
shadow_landed(Block *b, Warp *w, uint32_t pc, uint32_t lane, uint32_t off, uint32_t n)
{
  Shadow *s = b->shadow;
  shadow_pend(b, off, n, false);
  for (uint32_t i = off; i < off + n; i++)
    s->write[i] = (uint64_t)w->clock << 32 | (uint64_t)(w->index * LANES + lane) << PC_BITS | pc;
  w->touched = true;
}
