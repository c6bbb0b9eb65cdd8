/* bench.c - time one operation as its user meets it: alone, with cold caches.
 *
 * Each run sits between two events of its own. On cuda a large fill goes before the first event: it evicts the
 * operation's data from the L2 cache and keeps the GPU busy while the host puts the next run into the stream, so
 * that launch latency is not measured. What the user wants done before each run goes in front of that fill. Events
 * are read after everything has run. On sim time is the host's and there is no cache to flush.
 */
#include "device.h"
#include <stdlib.h>

enum { GUESS_RUNS = 5, RUNS_MAX = 2000 };

typedef struct Bench {
  TilertDevice *device;
  TilertStream *stream;
  TilertRun before, run;        /* before: may be NULL */
  void *user;
  TilertBuffer *flush;          /* NULL on sim */
  TilertEvent *from[RUNS_MAX], *to[RUNS_MAX];
  double ms[RUNS_MAX];
  TilertError *err;
} Bench;

static int
flush_create(Bench *b)
{
  const TilertDeviceInfo *info = &b->device->info;
  uint64_t bytes = UINT64_C(256) << 20;
  if (info->is_sim)
    return TILERT_OK;
  if (bytes < 2 * info->l2)
    bytes = 2 * info->l2;
  return tilert_buffer_create(b->device, bytes, &b->flush, b->err);
}

/* What goes in front of a run and is not measured. */
static int
make_ready(Bench *b)
{
  int status = b->before ? b->before(b->user, b->stream, b->err) : TILERT_OK;
  if (!status && b->flush)
    status = tilert_buffer_fill(b->flush, 0, b->flush->bytes / 4 * 4, 0, 4, b->stream, b->err);
  return status;
}

static int
run_cold(Bench *b)
{
  int status = make_ready(b);
  return status ? status : b->run(b->user, b->stream, b->err);
}

static int
run_timed(Bench *b, uint32_t i)
{
  int status = TILERT_OK;
  if (!b->from[i])
    status = tilert_event_create(b->device, &b->from[i], b->err);
  if (!status && !b->to[i])
    status = tilert_event_create(b->device, &b->to[i], b->err);
  if (!status)
    status = make_ready(b);
  if (!status)
    status = tilert_event_record(b->from[i], b->stream, b->err);
  if (!status)
    status = b->run(b->user, b->stream, b->err);
  return status ? status : tilert_event_record(b->to[i], b->stream, b->err);
}

static int
measure(Bench *b, uint32_t runs)
{
  int status = TILERT_OK;
  for (uint32_t i = 0; !status && i < runs; i++)
    status = run_timed(b, i);
  for (uint32_t i = 0; !status && i < runs; i++) {
    float ms = 0;
    status = tilert_event_elapsed(b->from[i], b->to[i], &ms, b->err);
    b->ms[i] = (double)ms;
  }
  return status;
}

/* One run to settle lazy loading, then a few to learn how long one takes. The simulator is slow and has nothing
 * to settle: one run is its guess. */
static int
guess(Bench *b, double *ms)
{
  uint32_t runs = b->flush ? GUESS_RUNS : 1;
  int status = b->flush ? run_cold(b) : TILERT_OK;
  if (!status)
    status = measure(b, runs);
  *ms = 0;
  for (uint32_t i = 0; i < runs; i++)
    *ms += b->ms[i] / runs;
  return status;
}

static uint32_t
runs_in(double budget_ms, double each_ms, uint32_t least)
{
  double n = each_ms > 0 ? budget_ms / each_ms : RUNS_MAX;
  return n > RUNS_MAX ? RUNS_MAX : n > least ? (uint32_t)n : least;   /* least also for what is no number */
}

static int
by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
quantile(const double *sorted, uint32_t n, double q)
{
  double at = q * (n - 1);
  uint32_t low = (uint32_t)at, high = low + 1 < n ? low + 1 : low;
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

static void
summarise(Bench *b, uint32_t n, TilertBench *out)
{
  qsort(b->ms, n, sizeof *b->ms, by_value);
  *out = (TilertBench){.median_ms = quantile(b->ms, n, 0.5), .min_ms = b->ms[0], .max_ms = b->ms[n - 1],
                       .p20_ms = quantile(b->ms, n, 0.2), .p80_ms = quantile(b->ms, n, 0.8), .runs = n};
  for (uint32_t i = 0; i < n; i++)
    out->mean_ms += b->ms[i] / n;
}

static int
bench_run(Bench *b, double warmup_ms, double rep_ms, TilertBench *out)
{
  double each = 0;
  int status = flush_create(b);
  if (!status)
    status = guess(b, &each);
  uint32_t warm = runs_in(warmup_ms, each, 0), runs = runs_in(rep_ms, each, 1);
  for (uint32_t i = 0; !status && i < warm; i++)
    status = run_cold(b);
  if (!status)
    status = measure(b, runs);
  if (!status)
    summarise(b, runs, out);
  return status;
}

int
tilert_bench(TilertDevice *dev, TilertStream *s, TilertRun before, TilertRun run, void *user, double warmup_ms,
             double rep_ms, TilertBench *out, TilertError *err)
{
  NEED(out);
  *out = (TilertBench){0};
  NEED(dev);
  NEED(run);
  Bench *b = calloc(1, sizeof *b);
  TilertStream *own = NULL;
  if (!b)
    return error_no_memory(err);
  int status = s ? TILERT_OK : tilert_stream_create(dev, &own, err);
  b->device = dev;
  b->stream = s ? s : own;
  b->before = before;
  b->run = run;
  b->user = user;
  b->err = err;
  if (!status)
    status = bench_run(b, warmup_ms, rep_ms, out);
  for (uint32_t i = 0; i < RUNS_MAX; i++) {
    tilert_event_destroy(b->from[i]);
    tilert_event_destroy(b->to[i]);
  }
  tilert_buffer_destroy(b->flush);
  tilert_stream_destroy(own);
  free(b);
  return status;
}

static int
run_launch(void *user, TilertStream *s, TilertError *err)
{
  return tilert_launch_packed(user, s, err);
}

int
tilert_bench_launch(const TilertLaunch *l, TilertStream *s, double warmup_ms, double rep_ms, TilertBench *out,
                    TilertError *err)
{
  NEED(l);
  NEED(out);
  return tilert_bench(l->kernel->device, s, NULL, run_launch, (void *)(uintptr_t)l, warmup_ms, rep_ms, out, err);
}
