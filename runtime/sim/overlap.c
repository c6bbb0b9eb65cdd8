/* overlap.c - launches that start before the one in front has ended (PTX ISA, "griddepcontrol"; programmatic dependent launch).
 *
 * A launch that is a dependent of the one in front of it in its stream may start when all blocks of that have executed
 * launch_dependents or ended, and sees what that did to memory only behind its own wait. Here launches run one after another all the
 * same, but what they do is checked as if they overlapped as much as they may: the records of the launches that may still run are kept,
 * as of the same launch, and an access to what one of them wrote, or a write to what it read, is a race unless a wait came before.
 * That depends on no time, so nothing would be gained by running the two in turns. A launch_dependents shows nothing to the next launch,
 * wherever it stands.
 *
 * The wait is an agent of each block (check.c): who has waited knows its clock, and barriers and mbarriers hand that on as they do all
 * else.
 *
 * Which launches may still run? A launch in front always, until the wait. What was in front of that one, too, if all its blocks let the
 * next launch start before they waited themselves; else it had ended by then. And behind the wait, what was in front of a launch that
 * did not wait at all.
 *
 * The chain ends with what the host waits for or copies, with a launch that is no dependent, one in another stream, and one that failed;
 * and when its records have become too many, MOST_SEGMENTS or MOST_CHUNKS: the launch that comes then is taken as one that overlaps
 * with none. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SEGMENTS = 1 << 22, MOST_CHUNKS = 256 };

static void
records_free(Segments *s, Readers *r)
{
  for (uint32_t i = 0; s->chunk && i < SEGMENT_CHUNKS && s->chunk[i]; i++)
    free(s->chunk[i]);
  for (uint32_t i = 0; r->chunk && i < r->nchunks; i++)
    free(r->chunk[i]);
  free(s->chunk);
  free(r->chunk);
}

void
past_drop(Past *p)
{
  records_free(&p->segments, &p->readers);
  free(p->launch);
  *p = (Past){0};
}

void
sim_settled(SimMachine *m)
{
  __atomic_store_n(&m->settled, 1, __ATOMIC_RELAXED);
}

static bool
goes_on(const SimMachine *m, const Launch *l)
{
  const Past *p = &m->past;
  return l->check && p->n && p->stream == l->stream && !m->settled && p->segments.next - p->segments.first < MOST_SEGMENTS &&
         p->readers.nchunks < MOST_CHUNKS;
}

bool
past_take(Launch *l)
{
  SimMachine *m = l->machine;
  l->dependent = l->dependent && goes_on(m, l);
  if (!l->dependent)
    past_drop(&m->past);
  __atomic_store_n(&m->settled, 0, __ATOMIC_RELAXED);
  l->past = m->past;
  m->past = (Past){0};
  if (!l->dependent)
    return false;
  l->segments = l->past.segments;
  l->readers = l->past.readers;
  l->past.segments = (Segments){0};
  l->past.readers = (Readers){0};
  return true;
}

/* From which segment on the launches in front have ended when the last of them has. */
static uint32_t
ended_from(const Past *p)
{
  uint32_t i = p->n - 1;
  while (i && p->launch[i].waited)
    i--;
  return p->launch[i].start;
}

void
past_begin(Launch *l)
{
  l->ended_from = l->past.n ? ended_from(&l->past) : l->segments.start;
}

/* The launch is one that the next may overlap with. */
static void
past_keep(Launch *l)
{
  Past *p = &l->machine->past;
  *p = l->past;
  l->past = (Past){0};
  if (l->waited_first || !l->dependent)
    p->n = 0;
  if (!sim_vec_grow(&p->launch, &p->cap, p->n + 1, sizeof *p->launch)) {
    records_free(&l->segments, &l->readers);
    past_drop(p);
    return;
  }
  p->launch[p->n++] = (Earlier){l->segments.start, l->kernel, l->waited};
  p->segments = l->segments;
  p->readers = l->readers;
  p->stream = l->stream;
}

void
past_end(Launch *l)
{
  if (l->check && l->fail_block == UINT64_MAX && l->segments.chunk && l->readers.chunk) {
    past_keep(l);
    return;
  }
  records_free(&l->segments, &l->readers);
  past_drop(&l->past);
}

/* ---- what warps know ---- */

bool
is_earlier(const Launch *l, uint64_t record)
{
  return (uint32_t)(record >> 32) < l->segments.start;
}

const Kernel *
record_kernel(const Launch *l, uint64_t record)
{
  const Kernel *k = l->kernel;
  for (size_t i = l->past.n; is_earlier(l, record) && i--;) {
    k = l->past.launch[i].kernel;
    if ((uint32_t)(record >> 32) >= l->past.launch[i].start)
      break;
  }
  return k;
}

bool
has_waited(const Block *b, const Warp *w)
{
  return w->clocks.of[PROXY_GENERIC][b->previous] > 1;
}

bool
previous_ended(const Block *b, const Warp *w, uint64_t record)
{
  return has_waited(b, w) && (uint32_t)(record >> 32) >= b->launch->ended_from;
}

void
previous_start(Block *b)
{
  b->started_next = b->waited = false;
  b->previous = b->launch->dependent ? agent_new(b) : 0;
}

/* The block lets the next launch start, or ends, behind its wait or before. */
static void
start_next(Block *b, bool waited)
{
  b->launch->waited_first |= !b->started_next && waited;
  b->started_next = true;
}

void
previous_block_ended(Block *b)
{
  if (b->launch->dependent)
    start_next(b, b->waited);
}

int
previous_exec(Block *b, Warp *w, const Insn *in, uint32_t m)
{
  if (!b->check || !b->launch->dependent)
    return 0;
  if (!in->previous.waits) {
    start_next(b, has_waited(b, w));
    return 0;
  }
  w->clocks.of[PROXY_GENERIC][b->previous] = 2;
  b->launch->waited = b->waited = true;
  return 0;
}
