/* block.c - the state of a running block, its registers, shared and local memory, and of the cluster that it is in. A finished cluster's
 * state is used again. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

static uint64_t
special_value(const Block *b, const SpecialSlot *s, const Warp *w, uint32_t lane)
{
  const Launch *l = b->launch;
  uint32_t t = w->index * LANES + lane, id = s->id;
  switch (id) {
  case S_TID: return t % l->block[0];
  case S_TID + 1: return t / l->block[0] % l->block[1];
  case S_TID + 2: return t / l->block[0] / l->block[1];
  case S_LANEID: return lane;
  case S_WARPID: return w->index;
  case S_NWARPID: return b->nwarps;
  case S_NSMID: return 1;
  case S_EXPLICIT: return l->explicit_cluster;
  case S_CLUSTER_NCTARANK: return l->ncluster;
  case S_CLUSTER_CTARANK: return b->rank;
  case S_LT: return (1u << lane) - 1;
  case S_LE: return (2u << lane) - 1;
  case S_EQ: return 1u << lane;
  case S_GE: return ~((1u << lane) - 1);
  case S_GT: return ~((2u << lane) - 1);
  case S_DYNSMEM: return l->dynamic_shared;
  case S_TOTSMEM: return l->shared_bytes;
  default: break;
  }
  if (id >= S_NTID && id < S_NTID + 3)
    return l->block[id - S_NTID];
  if (id >= S_NCTAID && id < S_NCTAID + 3)
    return l->grid[id - S_NCTAID];
  if (id >= S_NCLUSTERID && id < S_NCLUSTERID + 3)
    return l->grid[id - S_NCLUSTERID] / l->cluster[id - S_NCLUSTERID];
  if (id >= S_CLUSTER_NCTAID && id < S_CLUSTER_NCTAID + 3)
    return l->cluster[id - S_CLUSTER_NCTAID];
  if (id >= S_CLUSTERID && id < S_CLUSTERID + 3)
    return b->id[id - S_CLUSTERID] / l->cluster[id - S_CLUSTERID];
  if (id >= S_CLUSTER_CTAID && id < S_CLUSTER_CTAID + 3)
    return b->place[id - S_CLUSTER_CTAID];
  return id >= S_CTAID && id < S_CTAID + 3 ? b->id[id - S_CTAID] : 0;
}

/* Whether it is another one in the next block. */
static bool
of_block(uint32_t id)
{
  return (id >= S_CTAID && id < S_CTAID + 3) || (id >= S_CLUSTERID && id <= S_CLUSTER_CTARANK);
}

static void
fill_specials(Block *b, Warp *w, bool block_only)
{
  for (uint32_t i = 0; i < b->kernel->nspecials; i++) {
    const SpecialSlot *s = &b->kernel->specials[i];
    if (block_only && !of_block(s->id))
      continue;
    if (s->width == 0)
      PRED_OF(w, s->offset) = special_value(b, s, w, 0) ? FULL : 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
      uint64_t v = special_value(b, s, w, lane);
      memcpy(w->regs + s->offset + lane * s->width, &v, s->width);
    }
  }
}

static void
fill_constants(Block *b, Warp *w)
{
  for (uint32_t i = 0; i < b->kernel->nconsts; i++) {
    const ConstSlot *c = &b->kernel->consts[i];
    if (c->width == 0) {
      PRED_OF(w, c->offset) = c->value ? FULL : 0;
      continue;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
      memcpy(w->regs + c->offset + lane * c->width, &c->value, c->width);
  }
}

static void
drop_splits(Warp *w)
{
  for (uint32_t i = 0; i < w->nsplit; i++)
    frame_drop(w->split[i].frame);
  w->nsplit = 0;
}

static void
drop_barriers(Block *b)
{
  for (int i = 0; i < MAX_BARRIERS; i++) {
    know_drop(b->barrier[i].know);
    b->barrier[i] = (Barrier){0};
  }
}

static void
block_free(Block *b)
{
  if (!b)
    return;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    drop_splits(&b->warp[i]);
    clock_forget(&b->warp[i]);
    free(b->warp[i].pending);
    free(b->warp[i].hollow);
    free(b->warp[i].wgmma);
  }
  drop_barriers(b);
  mbars_free(b);
  cluster_clear(b);
  free(b->visit);
  free(b->flight);
  syncs_free(&b->syncs);
  free(b->listed);
  free(b->regs);
  free(b->shared);
  free(b->local);
  free(b->local_init);
  shadow_free(b->shadow);
  free(b);
}

uint64_t
sim_cluster_bytes(const Launch *l)
{
  uint64_t threads = (uint64_t)l->nwarps * LANES, per_thread = threads * l->kernel->local_bytes;
  return l->ncluster * (sizeof(Block) + (uint64_t)l->nwarps * l->kernel->file_bytes + per_thread + 5ull * l->shared_bytes);
}

static Block *
block_new(Worker *k, Cluster *c, uint32_t rank)
{
  const Launch *l = k->launch;
  Block *b = calloc(1, sizeof *b);
  if (!b)
    return NULL;
  b->worker = k;
  b->launch = k->launch;
  b->cluster = c;
  b->rank = rank;
  b->kernel = l->kernel;
  b->nwarps = l->nwarps;
  b->shared_bytes = l->shared_bytes;
  b->budget = l->machine->opt.max_instructions;
  b->check = l->check;
  b->want_stats = l->want_stats;
  size_t file = ((size_t)b->kernel->file_bytes + 63) & ~(size_t)63;
  b->regs = aligned_alloc(64, file * b->nwarps);
  b->shared = aligned_alloc(64, ((size_t)l->shared_bytes + 127) & ~(size_t)63);
  b->local = calloc((size_t)b->nwarps * LANES, b->kernel->local_bytes ? b->kernel->local_bytes : 1);
  if (b->check) {
    b->shadow = shadow_new(b->shared, l->shared_bytes, b);
    b->local_init = calloc((size_t)b->nwarps * LANES, b->kernel->local_bytes / 8 + 1u);
    b->visit = l->ncluster > 1 ? calloc((size_t)l->ncluster * b->nwarps, sizeof *b->visit) : NULL;
  }
  bool checks = !b->check || (b->shadow && b->local_init && (b->visit || l->ncluster == 1));
  if (!b->regs || !b->shared || !b->local || !checks) {
    block_free(b);
    return NULL;
  }
  memset(b->regs, 0, file * b->nwarps);   /* what some lanes write is merged with what is there */
  for (uint32_t i = 0; i < b->nwarps; i++) {
    Warp *w = &b->warp[i];
    w->regs = b->regs + file * i;
    w->index = i;
    fill_constants(b, w);
    fill_specials(b, w, false);
  }
  return b;
}

static void
start_warp(Block *b, Warp *w)
{
  uint32_t left = b->launch->nthreads - w->index * LANES;
  w->live = left >= LANES ? FULL : (1u << left) - 1;
  drop_splits(w);
  w->split[0] = (Split){.mask = w->live, .state = SPLIT_RUN};
  w->nsplit = 1;
  w->spin = w->turn = w->demotions = w->idle = w->idle_splits = 0;
  memset(w->poll, 0, sizeof w->poll);
  if (w->hollow)
    memset(w->hollow, 0, b->kernel->file_bytes / 64 * sizeof *w->hollow);
  w->state = W_RUN;
  w->npending = 0;
  w->serial = w->expired = 0;
  memset(w->group, 0, sizeof w->group);
  memset(w->bulk_group, 0, sizeof w->bulk_group);
  w->bulk_reads = w->bulk_writes = 0;
  w->map_fences = w->maps_released = 0;
  memset(w->map_fence, 0, sizeof w->map_fence);
  wgmma_clear(b, w);
  w->registers_held = b->launch->registers;
  w->changes = 0;
  w->cluster_lanes = w->cluster_now = 0;
  fill_specials(b, w, true);
}

static void
start_records(Block *b)
{
  Shadow *s = b->shadow;
  shadow_mark(s, 0, s->bytes, false);
  s->base = b->worker->segment_next;
  s->epoch++;
  s->visited = false;
  syncs_clear(&b->syncs);
  clock_start(b);
}

/* Where the block lies in the grid, and in the cluster of a number. */
static void
place_block(Block *b, uint64_t cluster)
{
  const uint32_t *g = b->launch->grid, *c = b->launch->cluster;
  uint32_t rank = b->rank;
  for (uint32_t i = 0; i < 3; i++) {
    b->place[i] = rank % c[i];
    b->id[i] = (uint32_t)(cluster % (g[i] / c[i])) * c[i] + b->place[i];
    rank /= c[i];
    cluster /= g[i] / c[i];
  }
  b->index = b->id[0] + (uint64_t)g[0] * (b->id[1] + (uint64_t)g[1] * b->id[2]);
}

static void
block_start(Block *b, uint64_t cluster)
{
  place_block(b, cluster);
  b->over = false;
  b->nlive = b->nwarps;
  b->executed = b->reported = 0;
  drop_barriers(b);
  mbars_clear(b);
  b->nflight = 0;
  b->registers_free = 0;
  cluster_clear(b);
  memset(b->wgmma_agent, 0, sizeof b->wgmma_agent);
  memset(b->shared, 0xcb, b->shared_bytes);
  for (uint32_t i = 0; i < b->nwarps; i++)
    start_warp(b, &b->warp[i]);
  for (uint32_t i = 0; b->kernel->unit->frame_bytes && i < b->nwarps; i++)
    for (uint32_t lane = 0; lane < LANES; lane++)
      local_mark(b, &b->warp[i], lane, 0, b->kernel->unit->frame_bytes, false);
  if (b->check)
    start_records(b);
}

/* ---- clusters ---- */

void
sim_cluster_free(Cluster *c)
{
  for (uint32_t i = 0; c && i < c->n; i++)
    block_free(c->block[i]);
  free(c);
}

Cluster *
sim_cluster_new(Worker *k)
{
  Cluster *c = calloc(1, sizeof *c);
  while (c && c->n < k->launch->ncluster) {
    if (!(c->block[c->n] = block_new(k, c, c->n))) {
      sim_cluster_free(c);
      return NULL;
    }
    c->n++;
  }
  return c;
}

void
sim_cluster_start(Cluster *c, uint64_t before)
{
  c->events = c->events_then = c->events_looked = 0;
  c->timeouts = c->looks = c->failed = 0;
  c->met = c->round = false;
  c->waited = 0;
  for (uint32_t i = 0; i < c->n; i++)
    block_start(c->block[i], before / c->n);
}
