/* worker.c - host threads, clusters of blocks in turn, and what a launch does about failures.
 *
 * A worker starts clusters in order, x fastest, and runs each until it ends, waits for another, or has used its slice; then it
 * is suspended and the next one is started, up to as many as would be resident on the device, and those that are suspended go on
 * in turn. So blocks may wait for any block that is resident with them, and for all before. Mostly a cluster is one block.
 *
 * Kernels that may wait for other blocks (they look at global memory with strong loads or atomics), and clusters of several, are run by
 * one worker, whose turns depend on nothing but instructions executed: such a launch goes the same way every time. A warp waits if it
 * looks again and again at what has not changed; a block waits if all its warps do, or are at a barrier. A block is stuck if it is as it
 * was some turns ago, in registers, shared and local memory; if all resident blocks are, and nobody changes memory, that is a deadlock.
 *
 * Other kernels are run by as many workers as there are cores. When a block fails, no block after it is started and later ones are
 * given up; earlier ones, all started by then, run to their end. So the fault that is returned is that of the lowest failing block.
 * Faults between blocks depend on who was first: memory is put back and the launch repeated on one worker. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORKERS = 256, REPORT_INSTRUCTIONS = 1 << 16, REPORT_NS = 100000000 };
/* For the states of suspended blocks of a worker: 8 MB each of large kernels, one for each multiprocessor of which wait for all others. */
#define STATE_BYTES (4ull << 30)

typedef struct Turns {
  Worker *k;
  Cluster **cluster; uint32_t n, most, at;
  uint64_t idle, changes;                        /* turns since memory changed last in which nobody got on */
} Turns;

/* ---- how far it is ---- */

static int64_t
now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void
sim_report(Block *b, bool ended)
{
  Launch *l = b->launch;
  const SimOptions *o = &l->machine->opt;
  if (!ended && b->executed - b->reported < REPORT_INSTRUCTIONS)
    return;
  pthread_mutex_lock(&l->lock);
  l->done_blocks += ended;
  l->executed += b->executed - b->reported;
  b->reported = b->executed;
  int64_t now = o->watch ? now_ns() : 0;
  if (o->watch && !l->quiet && l->fail_block == UINT64_MAX && (ended || now - l->told_ns > REPORT_NS)) {
    l->told_ns = now;
    if (o->watch(o->watch_user, &(SimProgress){l->done_blocks, l->nblocks, l->executed}))
      sim_cancel(l->machine);
  }
  pthread_mutex_unlock(&l->lock);
}

/* ---- blocks ---- */

/* The next cluster, which comes after so many blocks, or false when there is none to start. */
static bool
take_cluster(Launch *l, uint64_t *before)
{
  pthread_mutex_lock(&l->lock);
  bool ok = l->next_block < l->nblocks && l->fail_block == UINT64_MAX && !l->again;
  *before = l->next_block;
  l->next_block += ok ? l->ncluster : 0;
  pthread_mutex_unlock(&l->lock);
  return ok;
}

/* A block began or ended, which is progress where blocks take turns; then there is one worker. */
static void
note_progress(Launch *l)
{
  if (l->turns)
    l->changes++;
}

static void
fail(Launch *l, uint64_t block, const SimError *err)
{
  pthread_mutex_lock(&l->lock);
  if (block < l->fail_block || l->err.kind == SIM_OK) {
    __atomic_store_n(&l->fail_block, block, __ATOMIC_RELAXED);
    l->err = *err;
  }
  pthread_mutex_unlock(&l->lock);
}

static void
no_memory(Launch *l)
{
  SimError err = {.kind = SIM_OK};
  sim_error_set(&err, SIM_E_MEMORY, "out of memory for a block's state");
  fail(l, 0, &err);
}

static void
finish_cluster(Launch *l, Cluster *c, int rc)
{
  for (uint32_t i = 0; i < c->n; i++) {
    Block *b = c->block[i];
    Worker *k = b->worker;
    cells_settle(b, l->turns);
    k->stats.blocks++;
    k->stats.warp_instructions += b->executed;
    if (rc && i == c->failed)
      fail(l, b->index, &k->err);
    sim_report(b, true);
  }
}

/* Start the next cluster, in the state of one that has ended or in a new one; false when there is none, or no room. */
static bool
start_next(Turns *t, Cluster *c)
{
  Launch *l = t->k->launch;
  uint64_t before;
  bool fresh = c == NULL;
  if (fresh && (t->n == t->most || !(c = sim_cluster_new(t->k)))) {
    if (!t->n)
      no_memory(l);
    t->most = t->n;
    return false;
  }
  if (!take_cluster(l, &before)) {
    sim_cluster_free(fresh ? c : NULL);
    return false;
  }
  sim_cluster_start(c, before);
  note_progress(l);
  if (fresh)
    t->cluster[t->n++] = c;
  return true;
}

static void
remove_cluster(Turns *t, uint32_t i)
{
  sim_cluster_free(t->cluster[i]);
  memmove(t->cluster + i, t->cluster + i + 1, (--t->n - i) * sizeof *t->cluster);
  t->at = t->n ? i % t->n : 0;
}

/* ---- turns ---- */

/* All that are resident go round in loops that end only if memory changes, and nobody is there to change it. Blocks are stuck only
 * where they take turns, so no other worker starts any. */
static bool
all_wait(Turns *t, const Cluster *c)
{
  Launch *l = t->k->launch;
  t->idle = l->changes == t->changes && c->round && c->changes == l->changes ? t->idle + 1 : 0;
  t->changes = l->changes;
  return t->idle > 2ull * t->n && (l->next_block == l->nblocks || t->n == t->most);
}

static void
next_turn(Turns *t)
{
  if (start_next(t, NULL))
    t->at = t->n - 1;
  else if (t->n)
    t->at = (t->at + 1) % t->n;
}

/* The blocks that have not ended. */
static Going
still_going(const Turns *t)
{
  Going g = {.n = 0};
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t j = 0; j < t->cluster[i]->n; j++) {
      Block *b = t->cluster[i]->block[j];
      if (!b->nlive)
        continue;
      if (g.n < TOLD_BLOCKS)
        g.block[g.n] = b;
      g.n++;
    }
  return g;
}

/* One turn of one cluster; false when this worker is done. */
static bool
one_turn(Turns *t)
{
  Launch *l = t->k->launch;
  Cluster *c = t->cluster[t->at];
  TurnEnd end = sim_cluster_run(c);
  if (end == TURN_STOPPED || (end == TURN_SUSPENDED && all_wait(t, c))) {
    Going g = still_going(t);
    if (end == TURN_STOPPED)
      fault_stopped(&g);
    else
      fault_all_wait(&g);
    fail(l, c->block[0]->index, &t->k->err);
    return false;
  }
  if (end == TURN_SUSPENDED) {
    next_turn(t);
    return true;
  }
  finish_cluster(l, c, end == TURN_FAILED ? -1 : 0);
  note_progress(l);
  if (end == TURN_FAILED && !l->parallel)
    return false;
  if (!start_next(t, c))
    remove_cluster(t, t->at);
  return t->n > 0;
}

static uint32_t
most_resident(const Launch *l)
{
  uint64_t state = sim_cluster_bytes(l), room = STATE_BYTES / (state ? state : 1), most = sim_resident(l) / l->nworkers;
  uint64_t all = l->nblocks / l->ncluster;
  most = room < most ? room : most;
  most = all < most ? all : most;
  return most ? (uint32_t)most : 1;
}

static void
run_clusters(Worker *k)
{
  Launch *l = k->launch;
  Turns t = {.k = k, .most = most_resident(l)};
  t.cluster = calloc(t.most, sizeof *t.cluster);
  if (!t.cluster)
    no_memory(l);
  else if (start_next(&t, NULL))
    while (one_turn(&t))
      ;
  while (t.n)
    remove_cluster(&t, t.n - 1);
  free(t.cluster);
}

/* ---- workers ---- */

static void
add_stats(SimStats *to, const SimStats *from)
{
  uint64_t *t = (uint64_t *)(void *)to;
  const uint64_t *f = (const uint64_t *)(const void *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
    t[i] += f[i];
}

static void *
worker_main(void *arg)
{
  Worker *k = arg;
  Launch *l = k->launch;
  k->segment_next = k->segment_end = l->segments.first;
  run_clusters(k);
  pthread_mutex_lock(&l->lock);
  add_stats(&l->stats, &k->stats);
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

static uint32_t
count_workers(const Launch *l)
{
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint64_t want = l->machine->opt.threads > 0 ? (uint64_t)l->machine->opt.threads : cores > 0 ? (uint64_t)cores : 1;
  want = want > l->nblocks ? l->nblocks : want;
  return l->turns || l->dependent ? 1 : want > MOST_WORKERS ? MOST_WORKERS : (uint32_t)want;
}

/* Records of what the launch has done so far are of the past now, and those of launches that it does not overlap with. */
static void
begin_records(Launch *l)
{
  uint32_t epoch = l->machine->launches += !l->dependent, base = l->dependent ? l->past.launch[0].start : l->segments.next;
  for (size_t i = 0; i < l->nallocs; i++)
    if (l->allocs[i].shadow) {
      l->allocs[i].shadow->base = base;
      l->allocs[i].shadow->epoch = epoch;
    }
  l->segments.start = l->segments.next;
  past_begin(l);
}

static void
run_workers(Launch *l, Worker *k, uint32_t n)
{
  pthread_t thread[MOST_WORKERS];
  uint32_t started = 0;
  l->nworkers = n;
  l->parallel = n > 1;
  begin_records(l);
  for (uint32_t i = 0; i < n; i++)
    k[i] = (Worker){.launch = l};
  while (started < n - 1 && pthread_create(&thread[started], NULL, worker_main, &k[started + 1]) == 0)
    started++;
  worker_main(&k[0]);
  for (uint32_t i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
}

static void
undo_workers(Worker *k, uint32_t n, bool restore)
{
  for (uint32_t i = 0; i < n; i++) {
    if (restore)
      undo_all(&k[i]);
    undo_free(&k[i]);
  }
}

/* On one worker, from the start. If nothing goes wrong then, what went wrong before stands. */
static void
run_again(Launch *l, Worker *k)
{
  SimError err = l->err;
  uint64_t block = l->fail_block;
  l->next_block = l->done_blocks = 0;
  l->fail_block = UINT64_MAX;
  l->err = (SimError){.kind = SIM_OK};
  l->stats = (SimStats){0};
  l->executed = 0;
  l->quiet = true;
  l->again = false;
  run_workers(l, k, 1);
  undo_workers(k, 1, false);
  if (l->fail_block != UINT64_MAX)
    return;
  l->err = err;
  l->fail_block = block;
}

void
workers_run(Launch *l)
{
  uint32_t n = count_workers(l);
  Worker *k = calloc(n, sizeof *k);
  pthread_mutex_init(&l->lock, NULL);
  if (k) {
    run_workers(l, k, n);
    bool again = l->again && n > 1 && l->err.kind != SIM_E_MEMORY && l->err.kind != SIM_E_CANCELLED;
    undo_workers(k, n, again);
    if (again)
      run_again(l, k);
  } else
    no_memory(l);
  pthread_mutex_destroy(&l->lock);
  free(k);
}
