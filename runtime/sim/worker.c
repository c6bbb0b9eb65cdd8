/* worker.c - host threads: blocks handed out in order.
 *
 * When a block fails, no block after it is started and later ones are given up; earlier ones, all started by
 * then, run to their end. So the error that is returned is that of the lowest failing block, however many
 * threads there are. A block may wait for an earlier block (the grid is started in order, x fastest), not
 * for a later one. */
#include "internal.h"
#include <stdlib.h>
#include <unistd.h>

/* The next block, or false when there is none to start. */
static bool
take_block(Launch *l, uint64_t *index)
{
  pthread_mutex_lock(&l->lock);
  bool ok = l->next_block < l->nblocks && l->fail_block == UINT64_MAX;
  *index = l->next_block;
  l->next_block += ok;
  pthread_mutex_unlock(&l->lock);
  return ok;
}

static void
finish_block(Launch *l, const Block *b, int rc)
{
  const SimOptions *o = &l->machine->opt;
  pthread_mutex_lock(&l->lock);
  if (rc && b->index < l->fail_block) {
    __atomic_store_n(&l->fail_block, b->index, __ATOMIC_RELAXED);
    l->err = b->worker->err;
  }
  l->done_blocks++;
  if (o->progress && l->fail_block == UINT64_MAX)
    o->progress(o->progress_user, l->done_blocks, l->nblocks);
  pthread_mutex_unlock(&l->lock);
}

static void
add_stats(SimStats *to, const SimStats *from)
{
  uint64_t *t = (uint64_t *)(void *)to;
  const uint64_t *f = (const uint64_t *)(const void *)from;
  for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
    t[i] += f[i];
}

static void
no_memory(Launch *l)
{
  pthread_mutex_lock(&l->lock);
  l->fail_block = 0;
  sim_error_set(&l->err, SIM_E_MEMORY, "out of memory for a block's state");
  pthread_mutex_unlock(&l->lock);
}

static void *
worker_main(void *arg)
{
  Launch *l = arg;
  Worker k = {.launch = l};
  Block *b = sim_block_new(&k);
  uint64_t index;
  if (!b) {
    no_memory(l);
    return NULL;
  }
  while (take_block(l, &index)) {
    sim_block_start(b, index);
    int rc = sim_block_run(b);
    k.stats.blocks++;
    k.stats.warp_instructions += b->executed;
    finish_block(l, b, rc);
  }
  pthread_mutex_lock(&l->lock);
  add_stats(&l->stats, &k.stats);
  pthread_mutex_unlock(&l->lock);
  sim_block_free(b);
  return NULL;
}

void
workers_run(Launch *l)
{
  enum { MOST = 256 };
  pthread_t thread[MOST];
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int want = l->machine->opt.threads > 0 ? l->machine->opt.threads : cores > 0 ? (int)cores : 1, started = 0;
  if ((uint64_t)want > l->nblocks)
    want = (int)l->nblocks;
  want = want > MOST ? MOST : want;
  pthread_mutex_init(&l->lock, NULL);
  while (started < want - 1 && pthread_create(&thread[started], NULL, worker_main, l) == 0)
    started++;
  worker_main(l);
  for (int i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
  pthread_mutex_destroy(&l->lock);
}
