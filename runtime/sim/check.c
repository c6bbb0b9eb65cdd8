/* check.c - when two accesses to the same bytes are a race, and what is read that nobody wrote.
 *
 * Time. A warp has a clock. It moves on when the warp's lanes synchronise (a barrier, or any .sync instruction of the warp, which
 * this machine takes as ordering memory between its lanes) and memory was accessed since; what lies between two ticks is a segment.
 * A warp also keeps, for every other warp v of its block, vc[v]: accesses of v in clocks before vc[v] happened before whatever this
 * warp does now. A barrier carries such a vector: arriving warps add theirs with their own clock, leaving warps take it over. So
 * named barriers with arrive and partial counts order exactly the warps that took part. Of other blocks a warp knows the same, in a
 * tree (know.c), which barriers carry too.
 *
 * Race. Two accesses to a byte, one a write, are a race unless one thread made both, one happened before the other, or they are
 * morally strong (PTX ISA, "Memory Consistency Model"): both strong, of the same bytes, each with a scope that reaches the other's
 * thread. Strong are atom and red, and ld and st that are volatile, relaxed, acquire or release. Volatile is relaxed at system
 * scope: volatile and atomic accesses to a word do not race, but a volatile store publishes nothing and a volatile load acquires
 * nothing, without a fence. A .cta scope does not reach another block. Threads that store the same value with the same instruction
 * do not race, within a block (replicated layouts store every copy); with other values they do. Blocks of a launch that store the
 * same value to one place do race.
 *
 * Release and acquire. A variable is a word of memory that strong accesses meet at. A release (st.release, atom.release, or a
 * strong write by a warp that has executed a fence: what it knew at the fence) leaves in the variable what the writer knows;
 * read-modify-writes add to what is there, stores replace it. An acquire takes it over; a relaxed strong read keeps it aside until
 * the warp's next fence, which takes it over. A fence or access of .cta scope counts within the block only. Lanes of a warp are not
 * told apart here: what one lane releases or fences, its warp does. So a flag behind a fence, a lock of cas and exch with fences,
 * a barrier of the whole grid by a counter, and chains of blocks that look back are orders; a flag without a fence is none.
 *
 * Proxies. What copies by itself goes by the async proxy. It sees a write of a warp only if that warp has executed a fence.proxy.async
 * behind the write, before it tells others: the view of PROXY_ASYNC says so, which barriers, releases and mbarriers carry as they do
 * the other. A fence of the one who starts the copy does not help. What threads have read it may overwrite only behind such a fence of
 * theirs, too (on an H200 boxes came into tiles that had been read in front of a barrier). So it is with the initialisation of an mbarrier
 * that copies end at, which fence.mbarrier_init shows to all of the cluster, too: PROXY_INITS, which even a relaxed arrival at the
 * cluster's barrier carries.
 *
 * Clusters. What a warp knows of the other blocks of its cluster is in its tree of other blocks, with all views. Records of an access to
 * another block's shared memory are in that block's shadow, and say by their segment whose they are. An arrival at another block's mbarrier
 * tells what the warp knows whatever its scope is: hardware, too, takes .cta for what is only read before a slot is given back.
 *
 * Agents. A bulk copy is done by an agent at an unknown time between its start and the wait for it. So its accesses are recorded when it
 * starts, in a segment of the agent's whose end only those know who have waited (mbarrier.c, bulk.c).
 *
 * Asynchronous copies read global memory from issue to wait: what writes there in between is a race, and so is what writes it
 * before others know of the wait. Their targets are pending until the wait: nobody may touch them.
 *
 * Never written. Shared memory is unwritten when a block starts, device memory when it is allocated; what the host writes,
 * copies or fills is written.
 *
 * Order of report. Kernels whose blocks may wait for each other run on one host thread, in turns that are always the same
 * (worker.c). Others run on several. What is wrong within a block does not depend on that; where two blocks race, or a block reads
 * what maybe another one writes, memory is put back as it was (undo.c) and the launch repeated on one thread, block after block:
 * so the fault that is reported is that of the first block in which one is seen then, whatever the number of threads. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

bool
insn_is_strong(const Insn *in)
{
  return (in->fn.warp == mem_load || in->fn.warp == mem_store || in->fn.warp == atom_exec) && in->mem.order != ORDER_WEAK;
}

/* ---- segments ---- */

/* Room for the records of the segments that a worker takes next. */
static bool
more_segments(Worker *k)
{
  Launch *l = k->launch;
  Segments *s = &l->segments;
  pthread_mutex_lock(&l->lock);
  uint32_t at = s->next, chunk = (at - s->first) / SEGMENT_CHUNK;
  bool ok = chunk < SEGMENT_CHUNKS && at < (REC_PENDING >> 32) - SEGMENT_TAKE;
  if (ok && !s->chunk[chunk])
    ok = (s->chunk[chunk] = malloc(SEGMENT_CHUNK * sizeof **s->chunk)) != NULL;
  if (ok) {
    s->next += SEGMENT_TAKE;
    k->segment_next = at;
    k->segment_end = s->next;
  }
  pthread_mutex_unlock(&l->lock);
  return ok;
}

const Segment *
record_segment(const Launch *l, uint64_t record)
{
  uint32_t i = (uint32_t)(record >> 32) - l->segments.first;
  return &l->segments.chunk[i / SEGMENT_CHUNK][i % SEGMENT_CHUNK];
}

uint32_t
segment_new(Block *b, uint32_t clock, uint32_t agent)
{
  Worker *k = b->worker;
  Segments *s = &k->launch->segments;
  if (k->segment_next == k->segment_end && !more_segments(k))
    return 0;
  uint32_t i = k->segment_next - s->first;
  s->chunk[i / SEGMENT_CHUNK][i % SEGMENT_CHUNK] = (Segment){b->index, clock, agent};
  return k->segment_next++;
}

uint32_t
segment_current(Block *b, Warp *w)
{
  w->touched = true;
  if (!w->segment)
    w->segment = segment_new(b, w->clock, w->index);
  return w->segment;
}

uint32_t
clock_known(const Block *b, const Warp *w, Proxy view, const Segment *s)
{
  if (s->block == b->index)
    return w->clocks.of[view][s->agent];
  const uint32_t *clock = view * MAX_AGENTS < b->launch->nclocks ? know_clocks(b->launch, w->know, s->block) : NULL;
  return clock ? clock[view * MAX_AGENTS + s->agent] : 0;
}

bool
happened_before(const Block *b, const Warp *w, uint32_t lane, uint64_t record, const Segment *s)
{
  if (is_earlier(b->launch, record))
    return previous_ended(b, w, record);
  if (s->block != b->index)
    return s->clock < clock_known(b, w, PROXY_GENERIC, s);
  if (s->agent != w->index)
    return s->clock < w->clocks.of[PROXY_GENERIC][s->agent];
  return s->clock < w->clock || (!(record & REC_MANY) && (record >> PC_BITS & (LANES - 1)) == lane);
}

/* ---- agents ---- */

static void
agents_start(Block *b)
{
  b->nagents = b->nwarps;
  b->nproxies = PROXY_GENERIC + 1;
}

uint32_t
agent_new(Block *b)
{
  if (b->nagents == MAX_AGENTS)
    return MAX_AGENTS - 1;
  b->agent[b->nagents] = (Agent){.clock = 1};
  return b->nagents++;
}

uint32_t
agent_segment(Block *b, uint32_t agent)
{
  Agent *a = &b->agent[agent];
  if (!a->segment)
    a->segment = segment_new(b, a->clock, agent);
  return a->segment;
}

void
agent_tick(Agent *a)
{
  a->clock++;
  a->segment = 0;
}

/* ---- clocks ---- */

void
clock_tick(Warp *w)
{
  w->clock += w->touched;
  w->segment = w->touched ? 0 : w->segment;
  w->touched = false;
}

static void
later_of(uint32_t *to, const uint32_t *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = from[i] > to[i] ? from[i] : to[i];
}

static void
clocks_max(const Block *b, Clocks *to, const Clocks *from)
{
  for (uint32_t p = 0; p < b->nproxies; p++)
    later_of(to->of[p], from->of[p], b->nagents);
}

/* What the warp knows of its own block, with all that it has done itself. */
static void
own_clocks(const Block *b, const Warp *w, Clocks *out)
{
  for (uint32_t p = 0; p < b->nproxies; p++)
    memcpy(out->of[p], w->clocks.of[p], b->nagents * sizeof **out->of);
  out->of[PROXY_GENERIC][w->index] = w->clock;
}

/* What others know of the block's own agents. */
static void
learn_own(const Block *b, Clocks *clocks, const Know *k)
{
  const uint32_t *mine = know_clocks(b->launch, k, b->index);
  if (mine)
    later_of(clocks->of[PROXY_GENERIC], mine, b->launch->nclocks);
}

void
clock_learn(Block *b, Know **to, Know *k)
{
  Know *old = *to;
  if (!k || k == old)
    return;
  *to = know_join(b->launch, old, k, &b->worker->no_memory);
  know_drop(old);
}

/* All that the warp knows, itself included. */
static Know *
all_known(Block *b, const Warp *w, const Clocks *own)
{
  return know_with(b->launch, w->know, b->index, own->of[PROXY_GENERIC], &b->worker->no_memory);
}

void
clock_arrive(Block *b, Warp *w, Clocks *clocks, Know **know)
{
  Clocks own;
  clock_tick(w);
  own_clocks(b, w, &own);
  clocks_max(b, clocks, &own);
  clock_learn(b, know, w->know);
}

/* In a cluster of several blocks, what a fence that reaches them has told of this block is in what it knew of all. */
void
clock_arrive_relaxed(Block *b, Warp *w, Clocks *clocks, Know **know)
{
  if (w->fence.valid && b->cluster->n == 1)
    clocks_max(b, clocks, &w->fence.clocks);
  clock_learn(b, know, w->fence.know);
  if (b->nproxies > PROXY_INITS)
    later_of(clocks->of[PROXY_INITS], w->clocks.of[PROXY_INITS], b->nwarps);
}

void
clock_arrive_at(Block *b, Warp *w, Block *to, bool relaxed, Clocks *clocks, Know **know)
{
  if (to == b) {
    (relaxed ? clock_arrive_relaxed : clock_arrive)(b, w, clocks, know);
    return;
  }
  if (relaxed) {
    clock_learn(to, know, w->fence.know);
    return;
  }
  Clocks own = {{{0}}};
  clock_tick(w);
  own_clocks(b, w, &own);
  Know *all = all_known(b, w, &own);
  clock_learn(to, know, all);
  know_drop(all);
}

void
clock_join(Block *b, Warp *w, const Clocks *clocks, Know *know)
{
  clocks_max(b, &w->clocks, clocks);
  if (know && b->cluster->n > 1)
    learn_own(b, &w->clocks, know);
  clock_learn(b, &w->know, know);
}

void
clock_merge(Block *b, Clocks *clocks, Know **know, const Clocks *from, Know *what)
{
  clocks_max(b, clocks, from);
  clock_learn(b, know, what);
}

void
clock_meet(Cluster *c)
{
  Launch *l = c->block[0]->launch;
  bool *failed = &c->block[0]->worker->no_memory;
  Know *all = NULL;
  for (uint32_t i = 0; i < c->n; i++) {
    Block *b = c->block[i];
    clock_merge(b, &b->cluster_done, &all, &b->cluster_clocks, b->cluster_know);
    if (c->n == 1)
      continue;
    Know *with = know_with(l, all, b->index, b->cluster_clocks.of[PROXY_GENERIC], failed);
    know_drop(all);
    all = with;
  }
  for (uint32_t i = 0; i < c->n; i++) {
    Block *b = c->block[i];
    learn_own(b, &b->cluster_done, all);
    clock_learn(b, &b->cluster_know_done, all);
  }
  know_drop(all);
}

void
clock_proxy(Block *b, Warp *w)
{
  b->nproxies = PROXIES;
  clock_tick(w);
  w->clocks.of[PROXY_ASYNC][w->index] = w->clock;
  for (uint32_t a = b->nwarps; a < b->nagents; a++)     /* cp.async, which mbarriers tell of, is of the generic proxy, too */
    w->clocks.of[PROXY_ASYNC][a] = w->clocks.of[PROXY_GENERIC][a];
}

void
clock_inits(Block *b, Warp *w)
{
  b->nproxies = PROXIES;
  clock_tick(w);
  w->clocks.of[PROXY_INITS][w->index] = w->clock;
}

void
clock_start(Block *b)
{
  agents_start(b);
  previous_start(b);
  for (uint32_t i = 0; i < b->nwarps; i++) {
    Warp *w = &b->warp[i];
    w->clock = 1;
    w->segment = w->floor = 0;
    w->touched = false;
    for (uint32_t a = 0; a < MAX_AGENTS; a++)
      w->clocks.of[PROXY_GENERIC][a] = w->clocks.of[PROXY_ASYNC][a] = w->clocks.of[PROXY_INITS][a] = 1;
    clock_forget(w);
  }
}

void
clock_forget(Warp *w)
{
  know_drop(w->know);
  know_drop(w->fence.know);
  know_drop(w->seen.know);
  w->know = NULL;
  w->fence = w->seen = (Published){0};
}

/* ---- variables ---- */

struct SyncVar { uint64_t key; uint32_t used; Published what; };

static size_t
sync_slot(const SyncVars *s, uint64_t key)
{
  size_t i = (key * 0x9e3779b97f4a7c15ull) >> 20;
  while (s->at[i &= s->cap - 1].used && s->at[i].key != key)
    i++;
  return i;
}

static bool
sync_grow(SyncVars *s)
{
  SyncVars grown = {calloc(s->cap ? 2 * s->cap : 64, sizeof *s->at), s->n, s->cap ? 2 * s->cap : 64};
  if (!grown.at)
    return false;
  for (size_t i = 0; i < s->cap; i++)
    if (s->at[i].used)
      grown.at[sync_slot(&grown, s->at[i].key)] = s->at[i];
  free(s->at);
  *s = grown;
  return true;
}

static Published *
sync_find(const SyncVars *s, uint64_t key)
{
  size_t i = s->cap ? sync_slot(s, key) : 0;
  return s->cap && s->at[i].used ? &s->at[i].what : NULL;
}

static Published *
sync_add(SyncVars *s, uint64_t key)
{
  if (2 * s->n >= s->cap && !sync_grow(s))
    return NULL;
  SyncVar *v = &s->at[sync_slot(s, key)];
  s->n += !v->used;
  v->used = 1;
  v->key = key;
  return &v->what;
}

void
syncs_clear(SyncVars *s)
{
  for (size_t i = 0; s->n && i < s->cap; i++) {
    know_drop(s->at[i].what.know);
    s->at[i] = (SyncVar){0};
  }
  s->n = 0;
}

void
syncs_free(SyncVars *s)
{
  syncs_clear(s);
  free(s->at);
}

/* ---- publishing ---- */

/* Whether a scope reaches other blocks. */
static bool
reaches(const Block *b, Scope scope)
{
  return scope > SCOPE_CLUSTER || (scope == SCOPE_CLUSTER && b->cluster->n > 1);
}

/* The variables in the memory that a key is an address of, which becomes an offset in shared memory of its block. */
static SyncVars *
variables(Block *b, bool shared, uint64_t *key)
{
  return shared ? &cluster_block(b, key)->syncs : &b->launch->syncs;
}

/* What a release at a scope by this warp would leave; the reference is the caller's. */
static Published
released(Block *b, Warp *w, Scope scope)
{
  Published p = {.block = b->index, .valid = true};
  clock_tick(w);
  own_clocks(b, w, &p.clocks);
  p.know = reaches(b, scope) && b->launch->turns ? all_known(b, w, &p.clocks) : NULL;
  return p;
}

/* *to takes p in: instead of what is there, or beside it. */
static void
publish(Block *b, Published *to, const Published *p, bool beside)
{
  if (!beside) {
    know_drop(to->know);
    *to = *p;
    know_share(to->know);
    return;
  }
  clock_learn(b, &to->know, p->know);
  if (to->valid && to->block == p->block)
    clocks_max(b, &to->clocks, &p->clocks);
  else if (p->valid) {
    to->clocks = p->clocks;
    to->block = p->block;
    to->valid = true;
  }
}

/* A strong write to a variable: by then its warp publishes what it knew at its last fence, or, releasing, all it knows. */
void
sync_write(Block *b, Warp *w, const MemOps *o, bool shared, uint64_t key, bool update)
{
  SyncVars *s = variables(b, shared, &key);
  bool release = o->order == ORDER_RELEASE || o->order == ORDER_ACQ_REL;
  Published *v = sync_find(s, key);
  if (!release && !w->fence.valid && !v)
    return;
  if (!v && !(v = sync_add(s, key))) {
    b->worker->no_memory = true;
    return;
  }
  Published p = release ? released(b, w, (Scope)o->scope) : w->fence;
  publish(b, v, &p, update);
  if (release)
    know_drop(p.know);
}

/* ---- taking over ---- */

static void
take_over(Block *b, Warp *w, const Published *p, Scope scope)
{
  if (p->valid && p->block == b->index)
    clocks_max(b, &w->clocks, &p->clocks);
  if (!reaches(b, scope) || !p->know)
    return;
  learn_own(b, &w->clocks, p->know);
  clock_learn(b, &w->know, p->know);
}

void
sync_read(Block *b, Warp *w, const MemOps *o, bool shared, uint64_t key)
{
  const SyncVars *s = variables(b, shared, &key);
  const Published *v = sync_find(s, key);
  if (!v)
    return;
  if (o->order == ORDER_ACQUIRE || o->order == ORDER_ACQ_REL) {
    take_over(b, w, v, (Scope)o->scope);
    return;
  }
  clock_learn(b, &w->seen.know, v->know);
  if (!v->valid || v->block != b->index)
    return;
  clocks_max(b, &w->seen.clocks, &v->clocks);
  w->seen.block = b->index;
  w->seen.valid = true;
}

void
sync_fence(Block *b, Warp *w, Scope scope)
{
  take_over(b, w, &w->seen, scope);
  Published p = released(b, w, scope);
  if (!reaches(b, scope) && w->fence.know)     /* what an earlier fence told all blocks stays told */
    know_drop(p.know), p.know = know_share(w->fence.know);
  know_drop(w->fence.know);
  w->fence = p;
}
