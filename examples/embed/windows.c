/* windows.c - what a window of the L2 cache is good for: a table that is read again and again, while a much larger array streams past it.
 *
 *   windows [cuda|sim]
 *
 * A kernel fills the array with the table, over and over. For tables of several sizes it is timed without a window, with one of which every
 * access persists, and with one of which only so many do as fit into what the cache keeps: a table that is larger than that would otherwise
 * evict itself. The simulator has no cache: there it shows how it is done, on small arrays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tilec/args.h>
#include <tilec/jit.h>

static const char source[] =
  "kernel fill(data: *i32, table: *i32, n: i32, m: i32, const BLOCK: i32 = 1024) warps(8) {\n"
  "  for at in range(program_id(0) * BLOCK, n, num_programs(0) * BLOCK) {\n"
  "    let i = at + arange(0, BLOCK);\n"
  "    store(data + i, load(table + i % m, mask=i < n), mask=i < n);\n"
  "  }\n"
  "}\n";

typedef struct Run {
  TilertDevice *device;
  const TilertDeviceInfo *info;
  TilejitProgram *program;
  TilejitKernel *kernel;
  TilertStream *stream;
  TilertEvent *from, *to;
  TilertBuffer *data, *table;
  uint32_t n;                        /* of the array: elements */
  int warmups, times;
} Run;

#define TRY(call)         \
  do {                    \
    int status_ = (call); \
    if (status_)          \
      return status_;     \
  } while (0)

static int
setup(Run *r, const char *device, TilertError *err)
{
  TRY(tilert_device_open(device, NULL, &r->device, err));
  r->info = tilert_device_info(r->device);
  r->n = r->info->is_sim ? 1u << 14 : 1u << 28;
  r->warmups = r->info->is_sim ? 0 : 10;
  r->times = r->info->is_sim ? 1 : 100;
  TRY(tilejit_program_create(r->device, "fill.tile", source, strlen(source), NULL, &r->program, err));
  TRY(tilejit_kernel(r->program, "fill", NULL, 0, &r->kernel, err));
  TRY(tilert_stream_create(r->device, &r->stream, err));
  TRY(tilert_event_create(r->device, &r->from, err));
  TRY(tilert_event_create(r->device, &r->to, err));
  return tilert_buffer_create(r->device, (size_t)r->n * 4, &r->data, err);
}

static int
fill(Run *r, uint32_t m, TilertError *err)
{
  const uint32_t blocks = r->info->is_sim ? 4 : 2 * r->info->multiprocessors;
  return tilejit_launch(r->kernel, r->stream, TILERT_GRID(blocks), TILERT_ARGS(r->data, r->table, r->n, m), err);
}

/* Milliseconds of one launch, on the average of many. */
static int
measure(Run *r, uint32_t m, const TilertWindow *w, float *ms, TilertError *err)
{
  TRY(tilert_stream_set_window(r->stream, w, err));
  for (int i = 0; i < r->warmups; i++)
    TRY(fill(r, m, err));
  TRY(tilert_event_record(r->from, r->stream, err));
  for (int i = 0; i < r->times; i++)
    TRY(fill(r, m, err));
  TRY(tilert_event_record(r->to, r->stream, err));
  TRY(tilert_event_elapsed(r->from, r->to, ms, err));
  *ms /= (float)r->times;
  TRY(tilert_stream_set_window(r->stream, NULL, err));
  return tilert_device_reset_persisting(r->device, err);
}

/* Is the array's end what the table says? */
static int
check(Run *r, uint32_t m, TilertError *err)
{
  int32_t last[4];
  TRY(tilert_buffer_read(r->data, (size_t)(r->n - 4) * 4, last, sizeof last, NULL, err));
  for (uint32_t i = 0; i < 4; i++)
    if (last[i] != (int32_t)((r->n - 4 + i) % m)) {
      snprintf(err->message, sizeof err->message, "element %u is %d", r->n - 4 + i, last[i]);
      return -1;
    }
  return 0;
}

static int
one_size(Run *r, uint32_t m, TilertError *err)
{
  const size_t bytes = (size_t)m * 4, kept = (size_t)r->info->l2_persisting_max;
  float plain, all, some;
  int32_t *host = malloc(bytes);
  for (uint32_t i = 0; host && i < m; i++)
    host[i] = (int32_t)i;
  tilert_buffer_destroy(r->table);
  int status = tilert_buffer_create(r->device, bytes, &r->table, err);
  if (!status && host)
    status = tilert_buffer_write(r->table, 0, host, bytes, NULL, err);
  free(host);
  TRY(status);
  TilertWindow w = {.buffer = r->table, .bytes = bytes, .ratio = 1, .hit = TILERT_ACCESS_PERSISTING, .miss = TILERT_ACCESS_STREAMING};
  if (!r->info->is_sim && w.bytes > r->info->l2_window_max)
    w.bytes = (size_t)r->info->l2_window_max;
  TRY(measure(r, m, NULL, &plain, err));
  TRY(measure(r, m, &w, &all, err));
  w.ratio = kept && kept < w.bytes ? (float)kept / (float)w.bytes : 1;
  TRY(measure(r, m, &w, &some, err));
  printf("%8.2f MB   %9.4f ms   %9.4f ms   %9.4f ms, ratio %.2f\n", (double)bytes / 1048576, (double)plain, (double)all, (double)some,
         (double)w.ratio);
  return check(r, m, err);
}

static int
run(Run *r, TilertError *err)
{
  const uint64_t unit = r->info->is_sim ? 4096 : r->info->l2_persisting_max / 4;
  printf("%s: %.1f MB of L2, of which %.1f MB may be kept, windows of %.1f MB\n", r->info->name, (double)r->info->l2 / 1048576,
         (double)r->info->l2_persisting_max / 1048576, (double)r->info->l2_window_max / 1048576);
  if (!unit) {
    snprintf(err->message, sizeof err->message, "this device keeps nothing in its cache");
    return -1;
  }
  TRY(tilert_device_set_persisting(r->device, (size_t)r->info->l2_persisting_max, err));
  printf("      table        no window    all of them    what fits\n");
  for (uint32_t i = 1; i <= 8; i++)
    TRY(one_size(r, (uint32_t)(i * unit / 4), err));
  return tilert_device_set_persisting(r->device, 0, err);
}

static void
finish(Run *r)
{
  tilert_buffer_destroy(r->data);
  tilert_buffer_destroy(r->table);
  tilert_event_destroy(r->from);
  tilert_event_destroy(r->to);
  tilert_stream_destroy(r->stream);
  tilejit_program_destroy(r->program);
  tilert_device_close(r->device);
}

int
main(int argc, char **argv)
{
  Run r = {0};
  TilertError err = {0};
  int status = setup(&r, argc > 1 ? argv[1] : NULL, &err);
  if (!status)
    status = run(&r, &err);
  if (status)
    fprintf(stderr, "windows: %s\n", err.message);
  else
    printf("right\n");
  finish(&r);
  return status != 0;
}
