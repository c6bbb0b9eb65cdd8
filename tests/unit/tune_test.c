/* Tuning on the simulator: what is listed, rejected, chosen, restored and remembered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jit.h"

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: does not hold: %s (%s)\n", __FILE__, __LINE__, #x, err.message); exit(1); } } while (0)

static TilertError err;
static TilertDevice *dev;
static char dir[] = "/tmp/tilec-tune-XXXXXX";

/* More work for smaller blocks; 2048 needs too much shared memory, 3 warps are none, 64 has no grid. */
static const char source[] =
  "kernel grow(x: *f32, n: i32, m: i32, const B = 256, const PAD = 0) warps(4)\n"
  "  tune(B=[128, 256, 64], warps=[1, 4], where=B >= 32 * warps)\n"
  "  tune(B = 2048, PAD=100000)\n"
  "  tune(B=256, warps=3) key(m) {\n"
  "  if PAD > 0 { let s = shared(f32, [65536]); shared_store(s, zeros([65536], f32)); }\n"
  "  let i = program_id(0) * B + arange(0, B);\n"
  "  store(x + i, load(x + i, mask=i < n) + 1.0, mask=i < n);\n"
  "}\n"
  "kernel plain(x: *f32) { store(x, 1.0); }\n"
  "kernel once(x: *i32, n: i32) tune(warps=[1, 2, 4]) { assert(atomic_add(x, n) == 0, \"came twice\"); }\n"
  "kernel blocks(x: *f32, y: *f32, const B = 64) warps(1) {\n"
  "  let i = program_id(0) * B + arange(0, B);\n"
  "  store(y + i, load(x + i) + 1.0);\n"
  "}\n"
  "kernel none(x: *f32, const B = 8) tune(B=[8, 16], where=B > 100) { store(x + arange(0, B), 1.0); }\n";

static const char *
setting(TilejitKernel *k, const char *name)
{
  for (size_t i = 0; i < tilejit_kernel_param_count(k); i++)
    if (!strcmp(tilejit_kernel_param(k, i)->name, name))
      return tilejit_kernel_param(k, i)->value;
  return "";
}

static int grids;

static int
grid_of(void *user, TilejitKernel *k, uint32_t grid[3])
{
  int b = atoi(setting(k, "B"));
  grids++;
  if (b == 64)
    return 1;
  grid[0] = b ? (1000 + (unsigned)b - 1) / (unsigned)b : 1;
  return 0;
}

typedef struct Seen { int calls, wrong; const char *last; } Seen;

static void
progress(void *user, const char *what, size_t done, size_t total)
{
  Seen *s = user;
  s->calls++;
  s->wrong += !done || done > total;
  s->last = what;
}

static TilejitProgram *
open_program(void)
{
  TilejitProgram *p;
  TilejitOptions o = {.size = sizeof o, .cache_dir = dir};
  CHECK(!tilejit_program_create(dev, "grow.tile", source, strlen(source), &o, &p, &err));
  return p;
}

static TilejitTuning *
tune_count(TilejitProgram *p, TilertBuffer *x, int n, int m, const TilejitTuneOptions *o, const char *define)
{
  TilejitTuning *t;
  TilecDefine d = {"B", define};
  TilertArg args[3] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_INT, .u.i = n}, {.kind = TILERT_ARG_INT, .u.i = m}};
  CHECK(!tilejit_tune(p, "grow", &d, define ? 1 : 0, NULL, grid_of, NULL, args, 3, o, &t, &err));
  return t;
}

static TilejitTuning *
tune(TilejitProgram *p, TilertBuffer *x, int m, const TilejitTuneOptions *o, const char *define)
{
  return tune_count(p, x, 1000, m, o, define);
}

static const TilejitTrial *
trial(const TilejitTuning *t, const char *config)
{
  for (size_t i = 0; i < tilejit_tuning_count(t); i++)
    if (!strcmp(tilejit_tuning_trial(t, i)->config, config))
      return tilejit_tuning_trial(t, i);
  return NULL;
}

static int
rejected(const TilejitTuning *t, const char *config, const char *why)
{
  const TilejitTrial *x = trial(t, config);
  return x && x->why && strstr(x->why, why);
}

static void
test_search(TilertBuffer *x)
{
  Seen seen = {0};
  float first = 5, after = 0;
  TilejitTuneOptions o = {.size = sizeof o, .restore = 1, .progress = progress, .progress_user = &seen};
  TilejitProgram *p = open_program();
  CHECK(!tilert_buffer_write(x, 0, &first, sizeof first, NULL, &err));
  TilejitTuning *t = tune(p, x, 1, &o, NULL);
  CHECK(tilejit_tuning_count(t) == 8 && !tilejit_tuning_remembered(t) && seen.calls > 4 && !seen.wrong);
  CHECK(rejected(t, "B=64 warps=1", "no grid") && rejected(t, "B=64 warps=4", "condition is false"));
  CHECK(rejected(t, "B=2048 PAD=100000", "262144 bytes of shared memory") && rejected(t, "B=256 warps=3", "warps"));
  const TilejitTrial *best = tilejit_tuning_trial(t, tilejit_tuning_chosen(t));
  CHECK(!best->why && best->ms > 0);
  for (size_t i = 0; i < tilejit_tuning_count(t); i++)
    CHECK(tilejit_tuning_trial(t, i)->why || tilejit_tuning_trial(t, i)->ms >= best->ms);
  CHECK(strstr(best->config, setting(tilejit_tuning_kernel(t), "B")));
  CHECK(!tilert_buffer_read(x, 0, &after, sizeof after, NULL, &err) && after == first);
  char said[64];
  CHECK(!tilejit_program_diagnostics(p, said, sizeof said));
  tilejit_tuning_free(t);
  tilejit_program_destroy(p);
}

static TilejitTuning *
derive(TilejitProgram *p, TilertBuffer *x, TilertBuffer *y, TilejitGrid grid, uint32_t count)
{
  TilejitTuning *t = NULL;
  TilejitTuneOptions o = {.size = sizeof o, .search = 1, .force = x == y};
  TilertArg args[2] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_BUFFER, .u.buffer = y}};
  CHECK(!tilejit_tune(p, "blocks", NULL, 0, NULL, grid, &count, args, 2, &o, &t, &err));
  return t;
}

/* Blocks of so many elements in all. */
static int
grid_of_blocks(void *user, TilejitKernel *k, uint32_t grid[3])
{
  grid[0] = (*(uint32_t *)user + (uint32_t)atoi(setting(k, "B")) - 1) / (uint32_t)atoi(setting(k, "B"));
  return 0;
}

static int
grid_as_it_is(void *user, TilejitKernel *k, uint32_t grid[3])
{
  grid[0] = *(uint32_t *)user / 64;
  return 0;
}

/* A kernel without clauses: its blocks vary where the grid covers the same elements, and pointers are not one address. A choice is taken
 * again for the same grid only. */
static void
test_derived(TilertBuffer *x)
{
  TilertBuffer *y;
  float in[512], out[512];
  TilejitProgram *p = open_program();
  CHECK(!tilert_buffer_create(dev, sizeof out, &y, &err));
  for (int i = 0; i < 512; i++)
    in[i] = (float)i;
  CHECK(!tilert_buffer_write(x, 0, in, sizeof in, NULL, &err));
  TilejitTuning *t = derive(p, x, y, grid_of_blocks, 512);
  CHECK(!strcmp(tilejit_tuning_trial(t, tilejit_tuning_chosen(t))->config, "warps=1 B=256") && trial(t, "warps=1 B=32"));
  CHECK(!tilert_buffer_read(y, 0, out, sizeof out, NULL, &err));
  for (int i = 0; i < 512; i++)
    CHECK(out[i] == in[i] + 1);
  tilejit_tuning_free(t);
  t = derive(p, x, y, grid_of_blocks, 512);
  CHECK(tilejit_tuning_remembered(t));
  tilejit_tuning_free(t);
  t = derive(p, x, y, grid_as_it_is, 512);      /* the grid is as large, and does not follow */
  CHECK(!tilejit_tuning_remembered(t) && rejected(t, "warps=1 B=128", "does not follow") && rejected(t, "warps=1 B=32", "does not follow"));
  tilejit_tuning_free(t);
  t = derive(p, x, y, grid_of_blocks, 320);     /* 5 blocks of 64: 128 would cover more */
  CHECK(rejected(t, "warps=1 B=128", "does not follow") && !trial(t, "warps=1 B=32")->why);
  tilejit_tuning_free(t);
  t = derive(p, x, x, grid_of_blocks, 512);
  CHECK(rejected(t, "warps=1 B=128", "does not follow") && rejected(t, "warps=1 B=32", "does not follow"));
  tilejit_tuning_free(t);
  tilert_buffer_destroy(y);
  tilejit_program_destroy(p);
}

static int
clear_tickets(void *user, TilertStream *s, TilertError *e)
{
  return tilert_buffer_fill(user, 0, 4, 0, 4, s, e);
}

/* A kernel that counts its launches sees one each time; what cannot be restored is refused. */
static void
test_restored(TilertBuffer *x)
{
  TilejitProgram *p = open_program();
  TilejitTuneOptions o = {.size = sizeof o, .restore = 1, .force = 1};
  TilertArg args[2] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_INT, .u.i = 5}};
  TilejitTuning *t = NULL;
  int32_t tickets = 0;
  CHECK(!tilert_buffer_write(x, 0, &tickets, sizeof tickets, NULL, &err));
  CHECK(!tilejit_tune(p, "once", NULL, 0, NULL, grid_of, NULL, args, 2, &o, &t, &err));
  CHECK(tilejit_tuning_count(t) == 3 && !tilejit_tuning_trial(t, 0)->why && !tilejit_tuning_trial(t, 2)->why);
  tilejit_tuning_free(t);
  CHECK(!tilert_buffer_read(x, 0, &tickets, sizeof tickets, NULL, &err) && tickets == 0);
  /* The same by the caller's own hand. */
  o.restore = 0;
  o.before = clear_tickets;
  o.before_user = x;
  CHECK(!tilejit_tune(p, "once", NULL, 0, NULL, grid_of, NULL, args, 2, &o, &t, &err));
  CHECK(!tilejit_tuning_trial(t, 0)->why && !tilejit_tuning_trial(t, 2)->why);
  tilejit_tuning_free(t);
  /* And without either the second configuration is not the first to come. */
  o.before = NULL;
  CHECK(!tilert_buffer_write(x, 0, &tickets, sizeof tickets, NULL, &err));
  CHECK(!tilejit_tune(p, "once", NULL, 0, NULL, grid_of, NULL, args, 2, &o, &t, &err));
  CHECK(rejected(t, "warps=2", "came twice") + rejected(t, "warps=1", "came twice") + rejected(t, "warps=4", "came twice") == 2);
  tilejit_tuning_free(t);
  o.restore = 2;
  CHECK(tilejit_tune(p, "once", NULL, 0, NULL, grid_of, NULL, args, 2, &o, &t, &err) == TILERT_E_ARGUMENT);
  CHECK(strstr(err.message, "only buffers can be restored, not \"n\""));
  tilejit_program_destroy(p);
}

static int
is_remembered(TilejitProgram *p, TilertBuffer *x, int n, int m)
{
  TilejitTuning *t = tune_count(p, x, n, m, NULL, NULL);
  int remembered = tilejit_tuning_remembered(t);
  tilejit_tuning_free(t);
  return remembered;
}

/* What the kernels are compiled for is part of the key: which arguments are multiples of 16, 8, 4 or 2, or 1, not what else they are. */
static void
test_patterns(TilertBuffer *x)
{
  TilejitProgram *p = open_program();
  CHECK(is_remembered(p, x, 1000, 1) && is_remembered(p, x, 984, 1));
  CHECK(!is_remembered(p, x, 999, 1) && is_remembered(p, x, 997, 1));
  CHECK(!is_remembered(p, x, 998, 1) && is_remembered(p, x, 986, 1));
  CHECK(!is_remembered(p, x, 996, 1) && is_remembered(p, x, 988, 1) && is_remembered(p, x, 1000, 1));
  CHECK(!is_remembered(p, x, 992, 1) && is_remembered(p, x, 992, 1) && is_remembered(p, x, 976, 1));
  CHECK(!is_remembered(p, x, 1, 1) && is_remembered(p, x, 1, 1) && is_remembered(p, x, 1000, 1));
  tilejit_program_destroy(p);
}

static void
test_memory(TilertBuffer *x)
{
  TilejitTuneOptions force = {.size = sizeof force, .force = 1};
  TilejitProgram *p = open_program();
  TilejitTuning *t = tune(p, x, 1, NULL, NULL);
  CHECK(tilejit_tuning_remembered(t));       /* from disk: another program chose */
  tilejit_tuning_free(t);
  t = tune(p, x, 2, NULL, NULL);
  CHECK(!tilejit_tuning_remembered(t));      /* another value of the key */
  tilejit_tuning_free(t);
  t = tune(p, x, 2, NULL, NULL);
  CHECK(tilejit_tuning_remembered(t));
  tilejit_tuning_free(t);
  t = tune(p, x, 2, &force, NULL);
  CHECK(!tilejit_tuning_remembered(t));
  tilejit_tuning_free(t);
  t = tune_count(p, x, 984, 2, NULL, NULL);    /* not in the key */
  CHECK(tilejit_tuning_remembered(t));
  tilejit_tuning_free(t);
  t = tune_count(p, x, 992, 2, NULL, NULL);    /* a multiple of 16, which is compiled for */
  CHECK(!tilejit_tuning_remembered(t));
  tilejit_tuning_free(t);
  t = tune(p, x, 2, NULL, "128");            /* a define takes its axis away */
  CHECK(!tilejit_tuning_remembered(t) && trial(t, "warps=1") && !trial(t, "B=128 warps=1"));
  CHECK(!strcmp(setting(tilejit_tuning_kernel(t), "B"), "128"));
  tilejit_tuning_free(t);
  tilejit_program_destroy(p);
}

static void
test_others(TilertBuffer *x)
{
  TilejitTuning *t;
  TilejitProgram *p = open_program();
  TilertArg arg = {.kind = TILERT_ARG_BUFFER, .u.buffer = x};
  CHECK(!tilejit_tune(p, "plain", NULL, 0, NULL, grid_of, NULL, &arg, 1, NULL, &t, &err));
  CHECK(tilejit_tuning_count(t) == 1 && !strcmp(tilejit_tuning_trial(t, 0)->config, "") && !tilejit_tuning_trial(t, 1));
  tilejit_tuning_free(t);
  CHECK(tilejit_tune(p, "none", NULL, 0, NULL, grid_of, NULL, &arg, 1, NULL, &t, &err) == TILERT_E_UNAVAILABLE && !t);
  CHECK(strstr(err.message, "no configuration fits") && strstr(err.message, "B=8: its condition is false") && strstr(err.message, "B=16:"));
  CHECK(tilejit_tune(p, "grow", NULL, 0, NULL, grid_of, NULL, &arg, 1, NULL, &t, &err) == TILERT_E_ARGUMENT);
  CHECK(tilejit_tune(p, "absent", NULL, 0, NULL, grid_of, NULL, &arg, 1, NULL, &t, &err));
  tilejit_program_destroy(p);
}

int
main(void)
{
  TilertBuffer *x;
  char command[100];
  CHECK(mkdtemp(dir));
  CHECK(!tilert_device_open("sim", NULL, &dev, &err) && !tilert_buffer_create(dev, 4000, &x, &err));
  CHECK(!tilert_buffer_fill(x, 0, 4000, 0, 4, NULL, &err));
  test_search(x);
  test_restored(x);
  test_memory(x);
  test_patterns(x);
  test_others(x);
  test_derived(x);
  tilert_buffer_destroy(x);
  tilert_device_close(dev);
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command) ? 1 : 0;
}
