/* jit_tune.c - measure a kernel's configurations and remember the fastest.
 *
 * 1. The kernel's description lists the configurations ("tune BM=64 warps=4"); one that is fixed by its condition is out.
 * 2. Each is a kernel with its own defines. Threads compile them; what does not compile or load here (too much shared
 *    memory, too many threads) is out, with the reason.
 *    Where none are listed and a search is wanted, the compiler derives some; of those that change the extent of blocks the ones stay
 *    whose grid covers the same elements.
 * 3. All that is left is timed briefly; the best third, at least three, twice more for longer, in turns, so that a drift of the
 *    clock meets all of them. The least median wins.
 * 4. The choice is kept under a key made like a compiled form's, with the values of the key(...) arguments.
 *
 * On the simulator times mean nothing: there the fewest warp instructions win, which is the same every time. */
#include "jit_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 64, FINALISTS_MIN = 3, ROUNDS = 2, PARAMS_MAX = 256 };

typedef struct Candidate {
  TilejitTrial trial;
  char *config, *why;                /* what trial points to */
  TilecDefine *defines;
  size_t ndefines;
  char *words;                       /* the defines' text */
  TilejitKernel *kernel;
  TilejitCall *call;
  uint32_t grid[3];
  int status;                        /* of compiling */
  TilertError error;
} Candidate;

struct TilejitTuning {
  Candidate *all;
  size_t n, chosen;
  int remembered;
  char *choice;                      /* NULL: no line tells it */
};

typedef struct Tune {
  TilejitProgram *program;
  TilejitKernel *base;               /* with the caller's defines alone */
  TilertStream *stream;
  TilejitGrid grid;
  void *user;
  const TilertArg *args;
  size_t nargs;
  TilejitTuneOptions o;
  TilejitTuning *t;
  uint64_t key_args;                 /* by argument */
  uint32_t first_grid[3];            /* the base's, for a search */
  int searches;                      /* the configurations are derived */
  uint8_t block_axis[PARAMS_MAX];    /* by parameter: 1 + the axis of the grid along which it is the extent of blocks; 0: it is none */
  uint64_t sources[2];               /* of the texts that the configurations were listed from */
  TilertBuffer *saved[TILERT_MAX_PARAMS];
  TilertError *err;
} Tune;

/* ---- listing ---- */

static int
reject(Tune *u, Candidate *c, const char *why)
{
  size_t n = strcspn(why, "\n");
  free(c->why);
  c->why = jit_copy_text(why, n);
  c->trial.why = c->why;
  return c->why ? TILERT_OK : jit_no_memory(u->err);
}

/* Of the same name, the later one counts: a search begins at the caller's defines. */
static void
define_set(Candidate *c, TilecDefine d)
{
  size_t at = 0;
  while (at < c->ndefines && strcmp(c->defines[at].name, d.name) != 0)
    at++;
  c->defines[at] = d;
  c->ndefines += at == c->ndefines;
}

/* The caller's defines, then those of the configuration: items of words, parted by tabs. */
static int
candidate_defines(Tune *u, Candidate *c)
{
  size_t most = u->base->ndefines + 1;
  for (const char *s = c->words; *s; s++)
    most += *s == '\t';
  c->defines = calloc(most, sizeof *c->defines);
  if (!c->defines)
    return jit_no_memory(u->err);
  for (; c->ndefines < u->base->ndefines; c->ndefines++)
    c->defines[c->ndefines] = u->base->defines[c->ndefines];
  char *rest = NULL;
  for (char *item = strtok_r(c->words, "\t", &rest); item; item = strtok_r(NULL, "\t", &rest)) {
    char *eq = strchr(item, '=');
    if (!eq)
      continue;
    *eq = 0;
    define_set(c, (TilecDefine){item, eq + 1});
  }
  return TILERT_OK;
}

static int
candidate_add(Tune *u, const char *items, size_t len, int skip)
{
  Candidate *grown = realloc(u->t->all, (u->t->n + 1) * sizeof *grown);
  if (!grown)
    return jit_no_memory(u->err);
  u->t->all = grown;
  Candidate *c = &grown[u->t->n++];
  memset(c, 0, sizeof *c);
  c->config = jit_copy_text(items, len);
  c->words = jit_copy_text(items, len);
  if (!c->config || !c->words)
    return jit_no_memory(u->err);
  for (char *s = c->config; (s = strchr(s, '\t')) != NULL; )
    *s = ' ';
  c->trial.config = c->config;
  int status = candidate_defines(u, c);
  return !status && skip ? reject(u, c, "its condition is false") : status;
}

static void
key_add(Tune *u, const char *name, size_t len)
{
  for (size_t i = 0; i < u->base->nargs; i++)
    if (strlen(u->base->args[i]->name) == len && !memcmp(u->base->args[i]->name, name, len))
      u->key_args |= UINT64_C(1) << i;
}

/* "NAME AXIS" */
static void
block_add(Tune *u, const char *s, size_t len)
{
  size_t name = strcspn(s, " ");
  u->searches = 1;
  for (size_t i = 0; i < u->base->nparams && i < PARAMS_MAX && name < len; i++)
    if (strlen(u->base->params[i].name) == name && !memcmp(u->base->params[i].name, s, name))
      u->block_axis[i] = (uint8_t)(1 + s[name + 1] - '0');
}

static int
list_candidates(Tune *u)
{
  char *text = NULL;
  int tuning = u->o.search ? TILEC_TUNING_SEARCH : TILEC_TUNING_CLAUSES;
  int status = jit_describe(u->program, u->base, tuning, &text, u->sources, u->err);
  for (char *line = text, *end; !status && line && *line; line = end + (*end == '\n')) {
    end = line + strcspn(line, "\n");
    size_t len = (size_t)(end - line);
    if (len >= 4 && (!memcmp(line, "tune", 4) || !memcmp(line, "skip", 4))) {
      size_t start = len > 4 ? 5 : 4;
      status = candidate_add(u, line + start, len - start, line[0] == 's');
    } else if (len > 4 && !memcmp(line, "key ", 4)) {
      key_add(u, line + 4, len - 4);
    } else if (len > 6 && !memcmp(line, "block ", 6)) {
      block_add(u, line + 6, len - 6);
    }
  }
  free(text);
  if (!status && !u->t->n)
    status = candidate_add(u, "", 0, 0);
  return status;
}

/* ---- what is remembered ---- */

static void
add_extents(CacheHash *h, const TilertTensorArg *t)
{
  cache_hash_add(h, &t->rank, sizeof t->rank);
  for (uint32_t i = 0; t->extents && i < t->rank; i++)
    cache_hash_add(h, &t->extents[i], sizeof t->extents[i]);
}

/* The value of an argument; of a pointer, whose value is another in each process, only whether it is null; of a tensor its extents. 0: it
 * has no value to remember by. */
static int
add_value(CacheHash *h, const TilertArg *a)
{
  if (a->kind == TILERT_ARG_TENSOR) {
    if (a->u.tensor)
      add_extents(h, a->u.tensor);
    return a->u.tensor != NULL;
  }
  const int pointer = a->kind == TILERT_ARG_POINTER || a->kind == TILERT_ARG_BUFFER;
  const uint64_t value[2] = {pointer ? TILERT_ARG_POINTER : a->kind, pointer ? a->u.pointer != 0 : a->u.pointer};
  cache_hash_add(h, value, sizeof value);
  return a->kind != TILERT_ARG_BYTES;
}

/* 0: nothing may be remembered; 1: in this process and on disk; -1: in this process. */
static int
choice_key(const Tune *u, CacheKey *key)
{
  const TilertDeviceInfo *dev = tilert_device_info(u->program->device);
  Pattern pattern = jit_pattern_of(u->base, u->args, u->nargs);
  CacheHash *h = NULL;
  int same = !memcmp(u->sources, u->base->sources, sizeof u->sources);   /* or a file has changed in between */
  int build = same && jit_key_start(u->base, u->o.search ? "search 2" : "choice 4", &h), valued = 1;
  if (!h)
    return 0;
  cache_hash_text(h, dev->name);
  cache_hash_add(h, &dev->multiprocessors, sizeof dev->multiprocessors);
  cache_hash_add(h, &pattern.equal_1, sizeof pattern.equal_1);
  cache_hash_add(h, pattern.divisible, sizeof pattern.divisible);
  cache_hash_add(h, &pattern.null, sizeof pattern.null);
  for (size_t i = 0; i < u->nargs; i++)
    if (u->key_args >> i & 1)
      valued &= add_value(h, &u->args[i]);
  cache_hash_add(h, u->first_grid, sizeof u->first_grid);
  *key = cache_hash_end(h);
  return !valued ? 0 : build ? 1 : -1;
}

static int
choose_named(Tune *u, const char *config)
{
  for (size_t i = 0; i < u->t->n; i++)
    if (!u->t->all[i].why && !strcmp(u->t->all[i].config, config)) {
      u->t->chosen = i;
      return 1;
    }
  return 0;
}

static int
recall(Tune *u, CacheKey key, int keep)
{
  size_t len;
  int found = 0;
  pthread_mutex_lock(&u->program->lock);
  for (const Choice *c = u->program->choices; c && !found; c = c->next)
    found = !memcmp(&c->key, &key, sizeof key) && choose_named(u, c->config);
  pthread_mutex_unlock(&u->program->lock);
  char *text = !found && keep > 0 ? cache_get(u->program->cache, key, &len) : NULL;
  found = found || (text && choose_named(u, text));
  free(text);
  return found;
}

static void
remember(Tune *u, CacheKey key, int keep)
{
  const char *config = u->t->all[u->t->chosen].config;
  Choice *c = malloc(sizeof *c);
  char *copy = jit_copy_text(config, strlen(config));
  if (keep > 0)
    cache_put(u->program->cache, key, config, strlen(config));
  if (!c || !copy) {
    free(c);
    free(copy);
    return;
  }
  pthread_mutex_lock(&u->program->lock);
  *c = (Choice){u->program->choices, key, copy};
  u->program->choices = c;
  pthread_mutex_unlock(&u->program->lock);
}

/* What the choice is for: of keys their values, of pointers that the kernel asks about whether they are null. 0: no line tells it. */
static int
write_facts(const Tune *u, FILE *to)
{
  const char *comma = "";
  for (size_t i = 0; i < u->nargs; i++) {
    const TilertArg *a = &u->args[i];
    const char *name = u->base->args[i]->name;
    if (u->base->nullable >> i & 1)
      fprintf(to, "%s%s%s", comma, name, jit_address_of(a) ? "!=None" : "=None");
    else if (!(u->key_args >> i & 1) || (u->base->pointers >> i & 1 && a->kind != TILERT_ARG_TENSOR))
      continue;
    else if (a->kind == TILERT_ARG_INT)
      fprintf(to, "%s%s=%lld", comma, name, (long long)a->u.i);
    else
      return 0;
    comma = ",";
  }
  fputs(*comma ? "" : "-", to);
  return 1;
}

/* The line of tilejit_tuning_choice. */
static int
write_choice(Tune *u)
{
  const Candidate *c = &u->t->all[u->t->chosen];
  size_t len;
  FILE *to = open_memstream(&u->t->choice, &len);
  if (!to)
    return jit_no_memory(u->err);
  fprintf(to, "%s ", u->program->target);
  const int told = write_facts(u, to);
  fprintf(to, " %s:", u->base->name);
  for (size_t i = 0; i < c->ndefines; i++)
    fprintf(to, "%s%s=%s", i ? "," : "", c->defines[i].name, c->defines[i].value);
  const int failed = ferror(to);
  if (fclose(to) || failed)
    return jit_no_memory(u->err);
  if (!told) {
    free(u->t->choice);
    u->t->choice = NULL;
  }
  return TILERT_OK;
}

/* ---- compiling, on several threads ---- */

typedef struct Pool {
  Tune *tune;
  pthread_mutex_t lock;
  pthread_cond_t moved;
  size_t next, done;
} Pool;

static void
progress(const Tune *u, const char *what, size_t done, size_t total)
{
  if (u->o.progress)
    u->o.progress(u->o.progress_user, what, done, total);
}

static uint64_t
const_value(const TilejitKernel *k, size_t i)
{
  return strtoull(k->params[i].value, NULL, 10);
}

/* Are two pointers or tensors one address? Then programs may find what others wrote. */
static int
some_are_one(const Tune *u)
{
  for (size_t i = 0; i < u->nargs; i++)
    for (size_t k = 0; k < i; k++)
      if (jit_address_of(&u->args[i]) && jit_address_of(&u->args[i]) == jit_address_of(&u->args[k]))
        return 1;
  return 0;
}

/* Do the candidate's programs cover the elements that the base's do? Where the extent of blocks grew, there must be as many times fewer. */
static int
covers_the_same(const Tune *u, const Candidate *c)
{
  uint64_t is[3], was[3];
  int differs = 0;
  for (int a = 0; a < 3; a++) {
    is[a] = c->grid[a];
    was[a] = u->first_grid[a];
  }
  for (size_t i = 0; i < u->base->nparams && i < PARAMS_MAX; i++)
    if (u->block_axis[i]) {
      is[u->block_axis[i] - 1] *= const_value(c->kernel, i);
      was[u->block_axis[i] - 1] *= const_value(u->base, i);
      differs |= const_value(c->kernel, i) != const_value(u->base, i);
    }
  return !memcmp(is, was, sizeof is) && !(differs && some_are_one(u));
}

static void
check_cover(const Tune *u, Candidate *c)
{
  if (u->searches && !covers_the_same(u, c))
    c->status = jit_fail(&c->error, TILERT_E_ARGUMENT, "the grid does not follow: its programs would not cover the same elements");
}

/* The kernel and, if a function gives it, its grid, on the caller's thread. */
static void
prepare(Tune *u, Candidate *c)
{
  c->grid[0] = c->grid[1] = c->grid[2] = 1;
  c->status = tilejit_kernel(u->program, u->base->name, c->defines, c->ndefines, &c->kernel, &c->error);
  if (!c->status && u->grid && u->grid(u->user, c->kernel, c->grid))
    c->status = jit_fail(&c->error, TILERT_E_ARGUMENT, "there is no grid for it");
  if (!c->status && u->grid)
    check_cover(u, c);
}

/* The grid that the kernel's own clause gives. */
static int
own_grid(Tune *u, TilejitKernel *k, uint32_t grid[3], TilertError *err)
{
  Form *f;
  int status = jit_form_for(k, u->args, u->nargs, &f, err);
  return status ? status : tilert_kernel_grid(f->kernel, u->args, u->nargs, grid, err);
}

static void
compile_one(Tune *u, Candidate *c)
{
  if (c->why || c->status)
    return;
  if (!u->grid)
    c->status = own_grid(u, c->kernel, c->grid, &c->error);
  if (!c->status && !u->grid)
    check_cover(u, c);
  if (!c->status)
    c->status = tilejit_call_create(c->kernel, c->grid, NULL, u->args, u->nargs, &c->call, &c->error);
}

static void *
pool_work(void *user)
{
  Pool *p = user;
  pthread_mutex_lock(&p->lock);
  while (p->next < p->tune->t->n) {
    Candidate *c = &p->tune->t->all[p->next++];
    pthread_mutex_unlock(&p->lock);
    compile_one(p->tune, c);
    pthread_mutex_lock(&p->lock);
    p->done++;
    pthread_cond_signal(&p->moved);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

static void
compile_all(Tune *u)
{
  Pool p = {.tune = u};
  pthread_t threads[THREADS_MAX];
  long cores = u->o.threads > 0 ? u->o.threads : sysconf(_SC_NPROCESSORS_ONLN);
  size_t want = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores, n = 0;
  pthread_mutex_init(&p.lock, NULL);
  pthread_cond_init(&p.moved, NULL);
  while (n < want && n < u->t->n && !pthread_create(&threads[n], NULL, pool_work, &p))
    n++;
  if (!n)
    pool_work(&p);
  pthread_mutex_lock(&p.lock);
  for (size_t seen = 0; n && seen < u->t->n;) {
    while (p.done == seen)
      pthread_cond_wait(&p.moved, &p.lock);
    seen = p.done;
    pthread_mutex_unlock(&p.lock);
    progress(u, "compiling", seen, u->t->n);
    pthread_mutex_lock(&p.lock);
  }
  pthread_mutex_unlock(&p.lock);
  for (size_t i = 0; i < n; i++)
    pthread_join(threads[i], NULL);
  pthread_cond_destroy(&p.moved);
  pthread_mutex_destroy(&p.lock);
}

/* What did not compile is out; running out of memory or losing the device ends it all. */
static int
sort_out(Tune *u)
{
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < u->t->n; i++) {
    Candidate *c = &u->t->all[i];
    TilejitInfo info;
    if (c->status == TILERT_E_MEMORY || c->status == TILERT_E_FAULT) {
      status = jit_fail(u->err, c->status, c->error.message);
    } else if (c->status) {
      status = reject(u, c, c->error.message);
    } else if (c->call && !(status = tilejit_call_info(c->call, &info, u->err))) {
      c->trial.compile_ms = info.compile_ms;
      c->trial.load_ms = info.load_ms;
      c->trial.registers = info.registers;
      c->trial.local_bytes = info.local_bytes;
      c->trial.shared = info.static_shared + info.dynamic_shared;
    }
  }
  return status;
}

/* ---- timing ---- */

/* What a launch may have changed and the next must find as it was. */
static int
make_ready(const Tune *u, TilertStream *s, TilertError *err)
{
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < u->nargs; i++)
    if (u->saved[i])
      status = tilert_buffer_copy(jit_buffer_of(&u->args[i]), 0, u->saved[i], 0, tilert_buffer_size(u->saved[i]), s, err);
  return !status && u->o.before ? u->o.before(u->o.before_user, s, err) : status;
}

typedef struct Timed { const Tune *u; const Candidate *c; } Timed;

static int
before_launch(void *user, TilertStream *s, TilertError *err)
{
  return make_ready(((Timed *)user)->u, s, err);
}

static int
launch_once(void *user, TilertStream *s, TilertError *err)
{
  return tilejit_call_launch(((Timed *)user)->c->call, s, err);
}

/* Warp instructions of one launch, in millions. */
static int
count_on_sim(Tune *u, Candidate *c, double *out, TilertError *err)
{
  TilertStats before, after;
  TilertDevice *dev = u->program->device;
  int status = make_ready(u, u->stream, err);
  if (!status)
    status = tilert_device_stats(dev, &before, err);
  if (!status)
    status = tilejit_call_launch(c->call, u->stream, err);
  if (!status)
    status = tilert_device_stats(dev, &after, err);
  if (!status)
    *out = (double)(after.warp_instructions - before.warp_instructions) * 1e-6;
  return status;
}

/* Time a candidate; the least of its medians counts. A launch that fails puts it out, unless the device is lost. */
static int
measure(Tune *u, Candidate *c, double rep_ms)
{
  TilertError e = {0};
  TilertBench b = {0};
  int is_sim = tilert_device_info(u->program->device)->is_sim;
  int status = is_sim ? count_on_sim(u, c, &b.median_ms, &e)
                      : tilert_bench(u->program->device, u->stream, before_launch, launch_once, &(Timed){u, c}, rep_ms / 4, rep_ms, &b, &e);
  if (status && (status == TILERT_E_ARGUMENT || status == TILERT_E_UNAVAILABLE || (is_sim && status == TILERT_E_FAULT)))
    return reject(u, c, e.message);
  if (status)
    return jit_fail(u->err, status, e.message);
  if (c->trial.ms == 0 || b.median_ms < c->trial.ms)
    c->trial.ms = b.median_ms;
  return TILERT_OK;
}

static size_t
list_timed(const Tune *u, Candidate **out)
{
  size_t n = 0;
  for (size_t i = 0; i < u->t->n; i++)
    if (!u->t->all[i].why)
      out[n++] = &u->t->all[i];
  return n;
}

static int
faster_first(const void *a, const void *b)
{
  const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
  if (x->trial.ms != y->trial.ms)
    return x->trial.ms < y->trial.ms ? -1 : 1;
  return x < y ? -1 : x > y;           /* as listed */
}

static int
measure_all(Tune *u, Candidate **list, size_t *n)
{
  double rep = u->o.rep_ms > 0 ? u->o.rep_ms : 3;
  int status = TILERT_OK, is_sim = tilert_device_info(u->program->device)->is_sim;
  for (size_t i = 0; !status && i < *n; i++) {
    status = measure(u, list[i], rep);
    progress(u, "timing", i + 1, *n);
  }
  *n = list_timed(u, list);
  qsort(list, *n, sizeof *list, faster_first);
  size_t finalists = *n / 3 > FINALISTS_MIN ? *n / 3 : *n < FINALISTS_MIN ? *n : FINALISTS_MIN;
  for (int round = 0; !status && !is_sim && finalists > 1 && round < ROUNDS; round++)
    for (size_t i = 0; !status && i < finalists; i++) {
      status = measure(u, list[i], 3 * rep);
      progress(u, "the best again", (size_t)round * finalists + i + 1, ROUNDS * finalists);
    }
  qsort(list, finalists, sizeof *list, faster_first);
  return status;
}

/* ---- contents that must survive ---- */

static int
save_buffers(Tune *u)
{
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < u->nargs && i < 64; i++) {
    if (!(u->o.restore >> i & 1))
      continue;
    TilertBuffer *of = jit_buffer_of(&u->args[i]);
    if (!of)
      return jit_fail_about(u->err, u->base, "only buffers can be restored, not", u->base->args[i]->name);
    size_t bytes = tilert_buffer_size(of);
    status = tilert_buffer_create(u->program->device, bytes, &u->saved[i], u->err);
    if (!status)
      status = tilert_buffer_copy(u->saved[i], 0, of, 0, bytes, u->stream, u->err);
  }
  return status;
}

static int
restore_buffers(Tune *u, int status)
{
  for (size_t i = 0; i < u->nargs; i++) {
    if (u->saved[i] && !status)
      status = tilert_buffer_copy(jit_buffer_of(&u->args[i]), 0, u->saved[i], 0, tilert_buffer_size(u->saved[i]), u->stream, u->err);
    if (u->saved[i] && u->stream && !status)
      status = tilert_stream_synchronize(u->stream, u->err);
    tilert_buffer_destroy(u->saved[i]);
  }
  return status;
}

/* ---- all of it ---- */

/* None is left: each reason, as many as fit. */
static int
nothing_fits(Tune *u)
{
  char text[sizeof u->err->message];
  int at = snprintf(text, sizeof text, "kernel %s: no configuration fits", u->base->name);
  for (size_t i = 0; i < u->t->n && at < (int)sizeof text - 40; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "\n  %s: %s", u->t->all[i].config, u->t->all[i].why);
  return jit_fail(u->err, TILERT_E_UNAVAILABLE, text);
}

static int
search(Tune *u)
{
  Candidate **list = calloc(u->t->n, sizeof *list);
  if (!list)
    return jit_no_memory(u->err);
  for (size_t i = 0; i < u->t->n; i++)
    if (!u->t->all[i].why)
      prepare(u, &u->t->all[i]);
  compile_all(u);
  int status = sort_out(u);
  size_t n = status ? 0 : list_timed(u, list);
  if (!status && n)
    status = save_buffers(u);
  if (!status && n)
    status = measure_all(u, list, &n);
  status = restore_buffers(u, status);
  if (!status && n)
    u->t->chosen = (size_t)(list[0] - u->t->all);
  else if (!status)
    status = nothing_fits(u);
  free(list);
  return status;
}

/* May the remembered choice be launched with the grid that it has here? */
static int
still_fits(Tune *u)
{
  Candidate *c = &u->t->all[u->t->chosen];
  if (u->searches)
    prepare(u, c);
  return !c->status;
}

static int
tune(Tune *u)
{
  CacheKey key;
  int status = list_candidates(u);
  if (status)
    return status;
  if (u->searches && u->grid && u->grid(u->user, u->base, u->first_grid))
    return jit_fail(u->err, TILERT_E_ARGUMENT, "there is no grid for the kernel as it is");
  if (u->searches && !u->grid && (status = own_grid(u, u->base, u->first_grid, u->err)))
    return status;
  int keep = choice_key(u, &key);
  u->t->remembered = keep && !u->o.force && recall(u, key, keep) && still_fits(u);
  if (!u->t->remembered) {
    status = search(u);
    jit_forget_diagnostics(u->program);   /* those of the rejected */
    if (!status && keep)
      remember(u, key, keep);
  }
  Candidate *c = &u->t->all[u->t->chosen];
  if (!status && !c->kernel)
    status = tilejit_kernel(u->program, u->base->name, c->defines, c->ndefines, &c->kernel, u->err);
  if (!status)
    status = write_choice(u);
  for (size_t i = 0; i < u->t->n; i++) {
    tilejit_call_destroy(u->t->all[i].call);
    u->t->all[i].call = NULL;
  }
  return status;
}

int
tilejit_tune(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t ndefines, TilertStream *s, TilejitGrid grid,
             void *user, const TilertArg *args, size_t nargs, const TilejitTuneOptions *o, TilejitTuning **out, TilertError *err)
{
  Tune u = {.program = p, .stream = s, .grid = grid, .user = user, .args = args, .nargs = nargs,
            .first_grid = {1, 1, 1}};
  TilertError ignored;
  NEED(out);
  *out = NULL;
  NEED(args || !nargs);
  u.err = err ? err : &ignored;
  int status = jit_take_options(&u.o, sizeof u.o, o, "TilejitTuneOptions", u.err);
  if (!status)
    status = tilejit_kernel(p, name, defines, ndefines, &u.base, u.err);
  if (status)
    return status;
  if (nargs != u.base->nargs)
    return jit_wrong_count(u.base, nargs, u.err);
  if (!(u.t = calloc(1, sizeof *u.t)))
    return jit_no_memory(u.err);
  status = tune(&u);
  if (status)
    tilejit_tuning_free(u.t);
  else
    *out = u.t;
  return status;
}

void
tilejit_tuning_free(TilejitTuning *t)
{
  if (!t)
    return;
  for (size_t i = 0; i < t->n; i++) {
    tilejit_call_destroy(t->all[i].call);
    free(t->all[i].config);
    free(t->all[i].why);
    free(t->all[i].defines);
    free(t->all[i].words);
  }
  free(t->choice);
  free(t->all);
  free(t);
}

TilejitKernel *
tilejit_tuning_kernel(const TilejitTuning *t)
{
  return t ? t->all[t->chosen].kernel : NULL;
}

size_t
tilejit_tuning_count(const TilejitTuning *t)
{
  return t ? t->n : 0;
}

const TilejitTrial *
tilejit_tuning_trial(const TilejitTuning *t, size_t i)
{
  return t && i < t->n ? &t->all[i].trial : NULL;
}

size_t
tilejit_tuning_chosen(const TilejitTuning *t)
{
  return t ? t->chosen : 0;
}

int
tilejit_tuning_remembered(const TilejitTuning *t)
{
  return t ? t->remembered : 0;
}

const char *
tilejit_tuning_choice(const TilejitTuning *t)
{
  return t ? t->choice : NULL;
}
