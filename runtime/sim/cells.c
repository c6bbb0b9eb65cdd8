/* cells.c - the records of accesses, in cells beside memory, a page at a time.
 *
 * Memory is seen in pages of 4096 bytes, pages in units: of 16 bytes as long as all accesses keep to that, else of as few as
 * they need, down to one. A unit has two cells: the last write, and the reads since. Several reads that nothing orders are a
 * list. An access of a warp to neighbouring addresses is one run over the cells: where all of them are of the past (records of
 * earlier launches, in shared memory of earlier blocks), they are compared and filled as arrays; each other cell by itself.
 *
 * Where host threads run blocks at the same time, a page is locked while a run is in it. Reads by other blocks are then no list
 * but a flag: without synchronisation between blocks any write beside them is a race, whoever they are. */
#include "internal.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_READERS = 64 };

/* ---- pages ---- */

Shadow *
shadow_new(uint8_t *memory, size_t bytes, Block *owner)
{
  Shadow *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->memory = memory;
  s->bytes = bytes;
  s->npages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
  s->owner = owner;
  s->page = calloc(s->npages + 1, sizeof *s->page);
  s->state = calloc(s->npages + 1, 1);
  s->init = calloc(s->npages + 1, PAGE_WORDS * sizeof *s->init);
  if (s->page && s->state && s->init)
    return s;
  shadow_free(s);
  return NULL;
}

void
shadow_free(Shadow *s)
{
  if (!s)
    return;
  for (size_t i = 0; s->page && i < s->npages; i++)
    if (s->page[i]) {
      free(s->page[i]->write);
      free(s->page[i]);
    }
  free(s->page);
  free(s->state);
  free(s->init);
  free(s);
}

static void
page_lock(Page *p)
{
  for (int spins = 0; __atomic_exchange_n(&p->lock, 1, __ATOMIC_ACQUIRE);)
    if (++spins > 100)
      sched_yield();
}

static void
page_unlock(Page *p)
{
  __atomic_store_n(&p->lock, 0, __ATOMIC_RELEASE);
}

/* The page, which is made when it is asked for first; NULL when out of memory. */
static Page *
page_at(Shadow *s, size_t i)
{
  Page *p = __atomic_load_n(&s->page[i], __ATOMIC_ACQUIRE), *none = NULL;
  if (p)
    return p;
  p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  p->room = UNIT_MOST + 1;
  if (__atomic_compare_exchange_n(&s->page[i], &none, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return p;
  free(p);
  return none;
}

static bool
of_the_past(const Shadow *s, const Page *p)
{
  return p->newest_write < s->base && p->newest_read < s->base;
}

/* ---- lists of reads ---- */

static ReadNode *
read_node(const Launch *l, uint32_t i)
{
  return &l->readers.chunk[i / READER_CHUNK][i % READER_CHUNK];
}

/* A chunk of fresh nodes for a worker. */
static bool
more_readers(Worker *k)
{
  Readers *r = &k->launch->readers;
  ReadNode *fresh = malloc(READER_CHUNK * sizeof *fresh);
  pthread_mutex_lock(&k->launch->lock);
  bool ok = fresh && r->nchunks < READER_CHUNKS;
  if (ok) {
    k->reader_next = r->nchunks * READER_CHUNK;
    k->reader_end = k->reader_next + READER_CHUNK;
    r->chunk[r->nchunks++] = fresh;
  }
  pthread_mutex_unlock(&k->launch->lock);
  if (!ok)
    free(fresh);
  return ok;
}

/* 0 when there are no more. */
static uint32_t
reader_take(Worker *k, uint64_t record, uint32_t next)
{
  uint32_t i = k->reader_free;
  if (i)
    k->reader_free = read_node(k->launch, i)->next;
  else {
    if (k->reader_next == k->reader_end && !more_readers(k))
      return 0;
    i = k->reader_next++;
    i = i ? i : k->reader_next++;
  }
  *read_node(k->launch, i) = (ReadNode){record, next};
  return i;
}

static void
list_free(Worker *k, uint32_t i)
{
  while (i) {
    ReadNode *r = read_node(k->launch, i);
    uint32_t next = r->next;
    r->next = k->reader_free;
    k->reader_free = i;
    i = next;
  }
}

static uint32_t
list_copy(Worker *k, uint32_t i)
{
  uint32_t head = 0;
  for (; i; i = read_node(k->launch, i)->next) {
    uint32_t n = reader_take(k, read_node(k->launch, i)->record, head);
    head = n ? n : head;
  }
  return head;
}

static uint32_t
list_of(uint64_t cell)
{
  return cell & REC_LIST ? (uint32_t)(cell & REC_INDEX) : 0;
}

/* The cell of a list, with the newest segment of its reads in front. */
static uint64_t
list_cell(uint64_t newest, uint32_t head)
{
  return (newest & ~0xffffffffull) | REC_LIST | head;
}

/* ---- units ---- */

static void
spread(Worker *k, uint64_t *to, const uint64_t *from, uint32_t n, uint32_t times)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < times; j++)
      to[i * times + j] = j && list_of(from[i]) ? list_cell(from[i], list_copy(k, list_of(from[i]))) : from[i];
}

/* Make a page's units as small as `unit`. */
static bool
page_split(Worker *k, const Shadow *s, Page *p, uint32_t unit)
{
  uint32_t n = PAGE_BYTES >> p->unit, m = PAGE_BYTES >> unit;
  bool keep = !of_the_past(s, p);
  uint64_t *cell = p->write;
  if (unit < p->room || keep) {
    cell = calloc(2 * (size_t)m, sizeof *cell);
    if (!cell)
      return false;
  }
  if (keep) {
    spread(k, cell, p->write, n, m / n);
    spread(k, cell + m, p->read, n, m / n);
    p->pending *= m / n;
  }
  if (cell != p->write) {
    free(p->write);
    p->room = (uint8_t)unit;
  }
  p->write = cell;
  p->read = cell + m;
  p->unit = (uint8_t)unit;
  return true;
}

/* A page whose units are `unit` or smaller. */
static bool
page_ready(Worker *k, const Shadow *s, Page *p, uint32_t unit)
{
  if (p->epoch != s->epoch) {
    if (p->pending)
      memset(p->write, 0, sizeof(uint64_t) * (PAGE_BYTES >> p->unit));
    p->pending = 0;
    p->epoch = s->epoch;
    p->newest_write = p->newest_read = 0;
    p->saved = false;
    p->lister = 0;
    p->unit = UNIT_MOST + 1;
  }
  return unit >= p->unit || page_split(k, s, p, unit);
}

/* ---- what was written at all ---- */

static uint32_t
page_used(const Shadow *s, size_t page)
{
  size_t left = s->bytes - page * PAGE_BYTES;
  return left < PAGE_BYTES ? (uint32_t)left : PAGE_BYTES;
}

/* Bits from ... to - 1 of the word at index i of a row that begins at bit 64 i. */
static uint64_t
word_mask(uint32_t i, uint32_t from, uint32_t to)
{
  uint64_t low = from > 64 * i ? ~0ull << (from - 64 * i) : ~0ull;
  return to < 64 * i + 64 ? low & ~(~0ull << (to - 64 * i)) : low;
}

static void
set_state(Shadow *s, size_t page, InitState state)
{
  __atomic_store_n(&s->state[page], (uint8_t)state, __ATOMIC_RELAXED);
}

static void
promote(Shadow *s, size_t page)
{
  const uint64_t *row = s->init + page * PAGE_WORDS;
  uint32_t used = page_used(s, page);
  for (uint32_t i = 0; 64 * i < used; i++)
    if (row[i] != word_mask(i, 0, used))
      return;
  set_state(s, page, INIT_ALL);
}

/* Bytes from ... to - 1 of a page are written. */
static void
mark_written(Shadow *s, size_t page, uint32_t from, uint32_t to)
{
  uint64_t *row = s->init + page * PAGE_WORDS;
  if (s->state[page] == INIT_ALL)
    return;
  if (s->state[page] == INIT_NONE)
    memset(row, 0, PAGE_WORDS * sizeof *row);
  for (uint32_t i = from / 64; 64 * i < to; i++)
    row[i] |= word_mask(i, from, to);
  set_state(s, page, INIT_SOME);
  if (to == page_used(s, page) || from == 0)
    promote(s, page);
}

/* The first byte of from ... to - 1 that nobody has written; `to` if there is none. */
static uint32_t
first_unwritten(const Shadow *s, size_t page, uint32_t from, uint32_t to)
{
  const uint64_t *row = s->init + page * PAGE_WORDS;
  uint8_t state = __atomic_load_n(&s->state[page], __ATOMIC_RELAXED);
  if (state == INIT_ALL)
    return to;
  if (state == INIT_NONE)
    return from;
  for (uint32_t i = from / 64; 64 * i < to; i++) {
    uint64_t missing = word_mask(i, from, to) & ~row[i];
    if (missing)
      return 64 * i + (uint32_t)__builtin_ctzll(missing);
  }
  return to;
}

static void
mark_unwritten(Shadow *s, size_t page, uint32_t from, uint32_t to)
{
  uint64_t *row = s->init + page * PAGE_WORDS;
  if (s->state[page] == INIT_NONE)
    return;
  if (s->state[page] == INIT_ALL)
    memset(row, 0xff, PAGE_WORDS * sizeof *row);
  for (uint32_t i = from / 64; 64 * i < to; i++)
    row[i] &= ~word_mask(i, from, to);
  set_state(s, page, INIT_SOME);
}

static void
mark_page(Shadow *s, size_t page, uint32_t from, uint32_t to, bool written)
{
  if (from == 0 && to == page_used(s, page))
    set_state(s, page, written ? INIT_ALL : INIT_NONE);
  else if (written)
    mark_written(s, page, from, to);
  else
    mark_unwritten(s, page, from, to);
}

void
shadow_mark(Shadow *s, size_t off, size_t n, bool written)
{
  while (n) {
    size_t page = off / PAGE_BYTES, from = off % PAGE_BYTES, part = PAGE_BYTES - from < n ? PAGE_BYTES - from : n;
    mark_page(s, page, (uint32_t)from, (uint32_t)(from + part), written);
    off += part;
    n -= part;
  }
}

/* ---- runs ---- */

static uint32_t
segment_of(const Access *a)
{
  return a->agent ? a->segment : a->w->segment;
}

static uint64_t
record_of(const Access *a, uint32_t lane)
{
  uint32_t pc = (uint32_t)(a->in - a->b->kernel->code);
  return (uint64_t)segment_of(a) << 32 | lane << PC_BITS | pc;
}

/* Whether all of n records are of the past. */
static bool
all_below(const uint64_t *cell, uint32_t n, uint64_t base)
{
  uint64_t top = 0;
  for (uint32_t i = 0; i < n; i++)
    top |= cell[i] >= base;
  return !top;
}

/* Records of lanes from `record` on, `each` units a lane. */
static void
fill(uint64_t *cell, uint32_t n, uint32_t each, uint64_t record, uint64_t step)
{
  if (each == 1) {
    for (uint32_t i = 0; i < n; i++)
      cell[i] = record + i * step;
    return;
  }
  for (uint32_t i = 0; i < n; i += each, record += step)
    for (uint32_t j = 0; j < each; j++)
      cell[i + j] = record;
}

/* ---- one unit ---- */

/* A lane's access to one unit, at off. */
typedef struct Touch { const Access *a; Page *page; uint32_t lane; uint64_t off, mine; } Touch;

static bool
same_thread(uint64_t x, uint64_t y)
{
  return (x ^ y) >> PC_BITS == 0;
}

/* Records below this are of the past, or happened before all that the warp does now: see Warp.floor. The async proxy may not see them. */
static uint64_t
past(const Access *a)
{
  const Shadow *s = a->s;
  return (uint64_t)(s->owner && !s->visited && !a->agent && a->w->floor > s->base ? a->w->floor : s->base) << 32;
}

static const Insn *
insn_of(const Access *a, uint64_t record)
{
  return &record_kernel(a->b->launch, record)->code[record & PC_MASK];
}

static bool
is_own_block(const Access *a, uint64_t record, const Segment *s)
{
  return s->block == a->b->index && !is_earlier(a->b->launch, record);
}

/* Two strong accesses whose scopes reach the other's thread, to all of the same bytes, do not race. */
static bool
morally_strong(const Access *a, uint64_t record, const Segment *s)
{
  const Insn *other = insn_of(a, record);
  if (async_reduces(a->in) || async_reduces(other))
    return (async_reduces(a->in) || a->strong) && (async_reduces(other) || insn_is_strong(other));
  if (!a->strong || !insn_is_strong(other) || other->mem.size * other->mem.count != a->in->mem.size * a->in->mem.count)
    return false;
  Scope least = other->mem.scope < a->in->mem.scope ? other->mem.scope : a->in->mem.scope;
  return is_own_block(a, record, s) || least > SCOPE_CLUSTER ||
         (least == SCOPE_CLUSTER && cluster_has(a->b, s->block) && !is_earlier(a->b->launch, record));
}

/* Threads that store the same value by the same instruction do not race: layouts may hold an element several times. */
static bool
same_store(const Touch *t, uint64_t record, const Segment *s)
{
  const Access *a = t->a;
  if (!a->data || !is_own_block(a, record, s) || (record & PC_MASK) != (t->mine & PC_MASK))
    return false;
  uint64_t at = t->off - a->off;
  return memcmp(a->s->memory + t->off, a->data + at, (size_t)1 << t->page->unit) == 0;
}

/* Whether the async proxy comes behind an access of threads that happened before. What it wrote itself it sees; of other clusters that is
 * not known. */
static bool
async_sees(const Access *a, uint64_t record, const Segment *s)
{
  if (is_earlier(a->b->launch, record) || (s->block != a->b->index && !cluster_has(a->b, s->block)) ||
      (s->agent >= a->b->nwarps && insn_of(a, record)->fn.warp != async_copy))
    return true;
  return s->clock < clock_known(a->b, a->w, PROXY_ASYNC, s);
}

/* Whether the write of a record lets this access be: 0, or -1 with the fault. */
static int
meet_write(const Touch *t, uint64_t record)
{
  const Access *a = t->a;
  if (record >= REC_PENDING)
    return fault_pending(a, t->lane, t->off, record);
  const Segment *s = record_segment(a->b->launch, record);
  if (happened_before(a->b, a->w, t->lane, record, s))
    return !a->agent || is_async_store(a->in) || async_sees(a, record, s) ? 0 : fault_proxy(a, record, true);
  if (morally_strong(a, record, s) || (a->write && same_store(t, record, s)))
    return 0;
  return fault_race(a, t->lane, t->off, record, true);
}

static int
meet_read(const Touch *t, uint64_t record)
{
  const Access *a = t->a;
  const Segment *s = record_segment(a->b->launch, record);
  bool free = happened_before(a->b, a->w, t->lane, record, s) || morally_strong(a, record, s);
  if (!free || record & REC_BLOCKS)
    return fault_race(a, t->lane, t->off, record, false);
  bool overtakes = a->agent && a->write && a->s->owner && !is_async_store(a->in) && !async_sees(a, record, s);
  return overtakes ? fault_proxy(a, record, false) : 0;
}

static int
meet_reads(const Touch *t, uint64_t cell)
{
  const Launch *l = t->a->b->launch;
  if (!(cell & REC_LIST))
    return meet_read(t, cell);
  for (uint32_t i = list_of(cell); i; i = read_node(l, i)->next)
    if (meet_read(t, read_node(l, i)->record))
      return -1;
  return 0;
}

/* Whether the record of this read may stand for an earlier one: every write that would race with that races with this. */
static bool
stands_for(const Touch *t, uint64_t record)
{
  const Access *a = t->a;
  const Segment *s = record_segment(a->b->launch, record);
  if (a->strong && !insn_is_strong(insn_of(a, record)))
    return false;
  const Segment *mine = a->agent ? record_segment(a->b->launch, t->mine) : NULL;       /* the agent may be another block's */
  if (is_earlier(a->b->launch, record))
    return previous_ended(a->b, a->w, record);
  if (mine ? s->block == mine->block && s->agent == mine->agent : s->block == a->b->index && s->agent == a->w->index)
    return true;
  return happened_before(a->b, a->w, t->lane, record, s);
}

/* Mine, where it takes the place of an earlier record. */
static uint64_t
merged(const Touch *t, uint64_t record)
{
  bool now = record >> 32 == t->mine >> 32;
  return now && !same_thread(record, t->mine) ? t->mine | REC_MANY : t->mine;
}

static void
list_page(const Touch *t)
{
  Block *b = t->a->b;
  uint32_t me = (uint32_t)b->index + 1;
  if (t->page->lister == me || !sim_vec_grow(&b->listed, &b->listed_cap, b->nlisted + 1, sizeof *b->listed))
    return;
  t->page->lister = me;
  b->listed[b->nlisted++] = (Listed){t->page, t->a->s};
}

static void
list_start(const Touch *t, uint64_t *cell)
{
  Worker *k = t->a->b->worker;
  uint32_t old = reader_take(k, *cell, 0), head = old ? reader_take(k, t->mine, old) : 0;
  *cell = head ? list_cell(t->mine, head) : t->mine;
  list_page(t);
}

/* Mine goes in front, what it stands for goes; of too many the oldest, too. */
static void
list_note(const Touch *t, uint64_t *cell)
{
  Worker *k = t->a->b->worker;
  uint32_t head = list_of(*cell), *at = &head, n = 0;
  uint64_t mine = t->mine;
  while (*at) {
    ReadNode *r = read_node(k->launch, *at);
    if (n < MOST_READERS && !stands_for(t, r->record)) {
      at = &r->next;
      n++;
      continue;
    }
    uint32_t gone = *at;
    mine = stands_for(t, r->record) ? merged(t, r->record) | (mine & REC_MANY) : mine;
    *at = r->next;
    r->next = 0;
    list_free(k, gone);
  }
  uint32_t first = head ? reader_take(k, mine, head) : 0;
  *cell = head ? list_cell(mine, first ? first : head) : mine;
}

static void
note_read(const Touch *t, uint64_t *cell)
{
  const Access *a = t->a;
  Worker *k = a->b->worker;
  uint64_t old = *cell;
  if (old < past(a)) {
    list_free(k, old < (uint64_t)a->s->base << 32 ? 0 : list_of(old));
    *cell = t->mine;
  }
  else if (old & REC_BLOCKS || old == t->mine)
    return;
  else if (!k->launch->turns && !is_earlier(k->launch, old) && record_segment(k->launch, old)->block != a->b->index) {
    *cell = (old & REC_LIST ? read_node(k->launch, list_of(old))->record : old) | REC_BLOCKS;
    list_free(k, list_of(old));
  } else if (old & REC_LIST)
    list_note(t, cell);
  else if (stands_for(t, old))
    *cell = merged(t, old);
  else
    list_start(t, cell);
}

static int
touch_read(const Touch *t, uint64_t *write, uint64_t *read)
{
  uint64_t base = past(t->a);
  if (*write >= base && !same_thread(*write, t->mine) && meet_write(t, *write))
    return -1;
  note_read(t, read);
  return 0;
}

static int
touch_write(const Touch *t, uint64_t *write, uint64_t *read)
{
  uint64_t base = past(t->a);
  if (*write >= base && (t->a->agent || !same_thread(*write, t->mine)) && meet_write(t, *write))
    return -1;
  if (*read >= base && !same_thread(*read, t->mine) && meet_reads(t, *read))
    return -1;
  if (*read >= (uint64_t)t->a->s->base << 32)
    list_free(t->a->b->worker, list_of(*read));
  *write = t->mine;
  *read = 0;
  return 0;
}

/* ---- an access ---- */

/* Bytes from ... to - 1 of a page, which begin with lane's. */
typedef struct Span { size_t page; uint32_t from, to, lane; } Span;

static int
touch_each(const Access *a, Page *p, const Span *x, uint64_t first, uint64_t step)
{
  uint32_t unit = p->unit, each = a->size >> unit, i = 0;
  for (uint32_t u = x->from >> unit; u < x->to >> unit; u++, i++) {
    uint32_t lane = i / each;
    Touch t = {a, p, x->lane + lane, x->page * PAGE_BYTES + ((uint64_t)u << unit), first + lane * step};
    if (a->write ? touch_write(&t, &p->write[u], &p->read[u]) : touch_read(&t, &p->write[u], &p->read[u]))
      return -1;
  }
  return 0;
}

/* Lists of reads that are about to be overwritten. */
static void
drop_lists(const Access *a, const Page *p, uint32_t u, uint32_t n)
{
  for (uint32_t i = u; p->lister && i < u + n; i++)
    if (p->read[i] >= (uint64_t)a->s->base << 32 && p->read[i] & REC_LIST) {
      list_free(a->b->worker, list_of(p->read[i]));
      p->read[i] = 0;
    }
}

/* Units that a write has just been noted for: it is still to come. */
static void
make_pending(Page *p, uint32_t u, uint32_t n)
{
  for (uint32_t i = u; i < u + n; i++)
    p->write[i] |= REC_PENDING;
  p->pending += n;
  p->newest_write = REC_PENDING >> 32;
}

static int
touch_span(const Access *a, Page *p, const Span *x)
{
  uint64_t base = past(a), first = record_of(a, x->lane), step = a->same ? 0 : 1ull << PC_BITS;
  uint32_t u = x->from >> p->unit, n = (x->to - x->from) >> p->unit;
  bool fresh = ((uint64_t)p->newest_write << 32 < base || all_below(p->write + u, n, base)) &&
               ((uint64_t)p->newest_read << 32 < base || all_below(p->read + u, n, base));
  first |= a->same && a->count > 1 && !a->write ? REC_MANY : 0;
  if (fresh)
    drop_lists(a, p, u, n);
  if (fresh)
    fill((a->write ? p->write : p->read) + u, n, a->count == 1 ? n : a->size >> p->unit, first, step);
  else if (touch_each(a, p, x, first, step))
    return -1;
  if (a->pending)
    make_pending(p, u, n);
  uint32_t *newest = a->write ? &p->newest_write : &p->newest_read;
  *newest = segment_of(a) > *newest ? segment_of(a) : *newest;
  return 0;
}

static int
access_page(const Access *a, Page *p, const Span *x)
{
  Worker *k = a->b->worker;
  Shadow *s = a->s;
  uint32_t unit = (uint32_t)__builtin_ctz(x->from | a->size | 1u << UNIT_MOST);
  if (!page_ready(k, s, p, unit) || (a->write && k->launch->parallel && !s->owner && !undo_save(k, s, p, x->page)))
    return sim_fault(a->b, a->w, a->in, -1, SIM_E_MEMORY, 0, "out of memory for the record of who accessed what");
  if (!a->write || a->update) {
    uint32_t at = first_unwritten(s, x->page, x->from, x->to);
    if (at < x->to)
      return fault_unwritten(a, x->lane + (a->same ? 0 : (at - x->from) / a->size), x->page * PAGE_BYTES + at);
  }
  if (touch_span(a, p, x))
    return -1;
  if (a->write)
    mark_written(s, x->page, x->from, x->to);
  return 0;
}

/* One unit of shared memory where nothing of note has happened: most accesses whose lanes do not lie side by side. */
static bool
quick(const Access *a)
{
  const Shadow *s = a->s;
  Page *p = s->owner ? s->page[a->off / PAGE_BYTES] : NULL;      /* of memory that several programs reach others may just make one */
  if (a->count != 1 || a->pending || a->agent || !a->w->segment || !p || p->epoch != s->epoch ||
      a->size != 1u << p->unit || p->lister)
    return false;
  uint32_t u = (uint32_t)(a->off % PAGE_BYTES) >> p->unit;
  uint64_t base = past(a), mine = record_of(a, a->lane);
  bool written = s->state[a->off / PAGE_BYTES] == INIT_ALL || s->init[a->off / 64] >> a->off % 64 & 1;
  if (!written || p->write[u] >= base || (p->read[u] >= base && p->read[u] != mine))
    return false;
  (a->write ? p->write : p->read)[u] = mine;
  uint32_t *newest = a->write ? &p->newest_write : &p->newest_read;
  *newest = a->w->segment > *newest ? a->w->segment : *newest;
  return true;
}

int
cells_access(const Access *a)
{
  uint64_t off = a->off, end = off + (a->same ? a->size : (uint64_t)a->size * a->count);
  bool lock = a->b->launch->parallel && !a->s->owner;
  uint32_t lane = a->lane;
  int rc = 0;
  if (quick(a))
    return 0;
  if (!segment_current(a->b, a->w))
    return sim_fault(a->b, a->w, a->in, -1, SIM_E_MEMORY, 0, "out of memory for the record of who accessed what");
  while (off < end && !rc) {
    Span x = {off / PAGE_BYTES, (uint32_t)(off % PAGE_BYTES), 0, lane};
    x.to = end - off < PAGE_BYTES - x.from ? x.from + (uint32_t)(end - off) : PAGE_BYTES;
    Page *p = page_at(a->s, x.page);
    if (!p)
      return sim_fault(a->b, a->w, a->in, -1, SIM_E_MEMORY, 0, "out of memory for the record of who accessed what");
    if (lock)
      page_lock(p);
    rc = access_page(a, p, &x);
    if (lock)
      page_unlock(p);
    off += x.to - x.from;
    lane += (x.to - x.from) / a->size;
  }
  return rc;
}

/* ---- asynchronous copies ---- */

void
cells_land(Block *b, uint32_t segment, uint32_t pc, uint32_t lane, uint64_t off, uint32_t n)
{
  Shadow *s = b->shadow;
  Page *p = s->page[off / PAGE_BYTES];
  uint32_t from = (uint32_t)(off % PAGE_BYTES);
  uint64_t record = (uint64_t)segment << 32 | lane << PC_BITS | pc;
  for (uint32_t u = from >> p->unit; u < (from + n) >> p->unit; u++) {
    p->write[u] = record;
    p->read[u] = 0;
    p->pending--;
  }
  if (!p->pending)
    p->newest_write = b->worker->segment_next;
}

uint64_t
cells_writes(const Launch *l, const Shadow *s, uint64_t off, uint32_t n, uint64_t *newest)
{
  Page *p = s->page[off / PAGE_BYTES];
  uint32_t from = (uint32_t)(off % PAGE_BYTES);
  uint64_t sum = 0;
  if (!p || p->epoch != s->epoch || p->newest_write < s->base)
    return 0;
  if (l->parallel)
    page_lock(p);
  for (uint32_t i = 0; i < n; i += 1u << p->unit) {
    uint64_t record = p->write[(from + i) >> p->unit], end = i + (1u << p->unit);
    if (record < (uint64_t)s->base << 32)
      continue;
    sum += record * (end * end - (uint64_t)i * i);       /* the same in units of any size */
    *newest = record > *newest ? record : *newest;
  }
  if (l->parallel)
    page_unlock(p);
  return sum;
}

/* ---- the end of a block, and of all ---- */

static void
settle_page(Block *b, const Listed *x, bool keep)
{
  Worker *k = b->worker;
  uint32_t n = PAGE_BYTES >> x->page->unit;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t cell = x->page->read[i];
    if (cell < (uint64_t)x->shadow->base << 32 || !(cell & REC_LIST) || is_earlier(k->launch, cell) ||
        record_segment(k->launch, cell)->block != b->index)
      continue;
    if (x->shadow->owner || !keep) {
      x->page->read[i] = read_node(k->launch, list_of(cell))->record;
      list_free(k, list_of(cell));
    }
  }
}

void
cells_settle(Block *b, bool keep)
{
  bool lock = b->launch->parallel;
  for (size_t i = 0; i < b->nlisted; i++) {
    if (lock)
      page_lock(b->listed[i].page);
    settle_page(b, &b->listed[i], keep);
    if (lock)
      page_unlock(b->listed[i].page);
  }
  b->nlisted = 0;
}

void
shadow_forget(Shadow *s)
{
  for (size_t i = 0; i < s->npages; i++)
    if (s->page[i] && s->page[i]->write) {
      memset(s->page[i]->write, 0, (2 * sizeof(uint64_t) * PAGE_BYTES) >> s->page[i]->room);
      s->page[i]->epoch = 0;
    }
}
