/* tilerun - compile a kernel of a .tile or .tir file, or take one of a .ptx file, run it once on given arguments, and say what happened.
 *
 * Exit status: 0 done and all checks hold; 1 the kernel does not compile, fails or gives wrong results; 2 misuse. SIGINT ends it as
 * it ends any program, but for a launch on the simulator, which is stopped first and says where it was.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "argspec.h"
#include "compare.h"
#include "expr.h"
#include "interrupt.h"
#include "jit.h"
#include "tensorarg.h"
#include "textfile.h"
#include "choices.h"
#include "tunetable.h"

enum { ARGS_MAX = TILERT_MAX_PARAMS, THREADS_MAX = 1024, EXIT_WRONG = 1, EXIT_MISUSE = 2, EXIT_INTERRUPTED = 130 };

static const char usage[] =
  "usage: tilerun FILE.tile|FILE.tir|FILE.ptx KERNEL [--grid=X[,Y[,Z]]] [options] NAME=VALUE...\n"
  "Compile KERNEL (\"-\": the only one), run it on the given arguments, print what happened.\n"
  "\n"
  "  --grid=X,Y,Z        numbers or expressions over arguments and defines: cdiv(n,BLOCK); without, what the kernel's grid clause says\n"
  "  --block=X,Y,Z       threads of a block, and\n"
  "  --shared=BYTES      its dynamic shared memory, and\n"
  "  --cluster=X,Y,Z     blocks of a cluster, for PTX of other compilers; parameters are those in the PTX, or p0, p1, ...\n"
  "  --launches=N        launch it so many times, one behind the other (1)\n"
  "  --pdl               programmatic dependent launch: launches may begin before the one in front has ended\n"
  "  --device=SPEC       cuda, cuda:N, sim, sim:N or auto (default: cuda if there is a device, else sim)\n"
  "  --target=NAME       compile for this target instead of the device's\n"
  "  -D NAME=VALUE       set a const or type parameter (a plain NAME=VALUE does it, too)\n"
  "  -I DIR              look for imports there\n"
  "  --part NAME=SHAPE   of a tensor's array, pass so many of each dimension, from the beginning; its strides stay the array's\n"
  "  --save NAME=FILE.npy   write an argument after the run\n"
  "  --check NAME=ARRAY  compare an argument after the run; report the errors\n"
  "  --rtol=X --atol=X   tolerances of --check: |got - want| <= atol + rtol * |want| (default: by type)\n"
  "  --tune              measure the configurations of the kernel's tune(...) clauses first, and run the fastest\n"
  "  --search            the same; of a kernel without such clauses, what is near to what it says: warps, stages, blocks\n"
  "  --choices=FILE      with --tune: write the choice to FILE, for tilec --emit=c --choices=FILE; others in it stay\n"
  "  --retune            the same, even if the choice is known from an earlier run\n"
  "  --bench             time it: median, range and bytes of the arrays per second\n"
  "  --no-restore        do not give the arrays their first contents again before each launch of --bench and --tune\n"
  "  --warmup=MS --rep=MS   time to spend on warming up and measuring (25 and 100)\n"
  "  --seed=N            of random arrays (0)\n"
  "  --stats             what the simulator counted\n"
  "  --ptx               print the PTX that runs\n"
  "  --no-specialise     compile one form for all arguments\n"
  "  --threads=N --no-races --max-instructions=N --early-copies   of the simulator\n"
  "  --help --version\n"
  "\n"
  "VALUE: a number or expression, null, or an array, whose shape is a tensor parameter's extents (in expressions NAME.0, NAME.1, ...):\n"
  "  @FILE.npy  DTYPE@FILE.npy  zeros:DTYPE:SHAPE  ones:...  empty:...  full:DTYPE:V:SHAPE  arange:DTYPE:N\n"
  "  rand:DTYPE:SHAPE  uniform:DTYPE:LO:HI:SHAPE  randint:DTYPE:LO:HI:SHAPE          SHAPE: 1823x781\n";

typedef struct Pair { char name[64]; const char *value; } Pair;
typedef struct Pairs { Pair at[ARGS_MAX]; size_t n; } Pairs;

typedef struct Run {
  const char *file, *kernel_name, *grid_text, *block_text, *shared_text, *cluster_text, *device_spec, *target, *choices;
  const char *import_path[ARGS_MAX];
  size_t nimports;
  Pairs values, defines, saves, checks, parts;
  double rtol, atol, warmup_ms, rep_ms;
  uint64_t seed, max_instructions, launches;
  int tune, retune, search, bench, no_restore, stats, ptx, no_specialise, threads, no_races, early_copies, pdl;
  int foreign;                         /* PTX of another compiler: blocks have the shape that is given */

  Interrupt *interrupt;
  TilertDevice *device;
  TilejitProgram *program;
  TilejitKernel *kernel;
  TilejitCall *call;
  uint32_t grid[3], block[3], shared;  /* block, shared: of foreign PTX */
  size_t nargs;
  const TilejitParam *params[ARGS_MAX];
  TilertArg args[ARGS_MAX];
  Array arrays[ARGS_MAX];
  TilertBuffer *buffers[ARGS_MAX];
  TensorView tensors[ARGS_MAX];
  int empty[ARGS_MAX];                 /* the contents do not matter */
  TilertBuffer *first[ARGS_MAX];       /* for --bench: what the arrays hold at first */
} Run;

/* ---- saying what is wrong ---- */

static int
misuse(const char *what, const char *word)
{
  fprintf(stderr, "tilerun: %s%s%s\n", what, *word ? ": " : "", word);
  return EXIT_MISUSE;
}

static void
print_diagnostics(const Run *r)
{
  size_t n = r->program ? tilejit_program_diagnostics(r->program, NULL, 0) : 0;
  char *text = n ? malloc(n + 1) : NULL;
  if (text) {
    tilejit_program_diagnostics(r->program, text, n + 1);
    fprintf(stderr, "%s%s", text, text[n - 1] == '\n' ? "" : "\n");
  }
  free(text);
}

/* A source that cannot even be described has no program to ask, and an error's message is short: ask again. */
static void
explain_source(const Run *r)
{
  TilecOptions o;
  size_t len = 0;
  char *text = textfile_read(r->file, TEXTFILE_MOST, &len);
  tilec_options_default(&o);
  o.import_path = r->import_path;
  o.nimport_path = r->nimports;
  o.color = isatty(STDERR_FILENO);
  TilecResult *result = text ? tilec_describe(r->file, text, len, &o) : NULL;
  if (result) {
    fputs(result->diagnostics, stderr);
    tilec_result_free(result);
  }
  free(text);
}

static int
failed(const Run *r, const TilertError *e)
{
  if (e->status == TILERT_E_COMPILE && r->program)
    print_diagnostics(r);
  else if (e->status == TILERT_E_COMPILE)
    explain_source(r);
  else
    fprintf(stderr, "tilerun: %s\n", e->message);
  if (e->status == TILERT_E_FAULT && tilert_device_info(r->device)->is_sim)
    fprintf(stderr, "  in block (%u, %u, %u), thread (%u, %u, %u)\n", e->block[0], e->block[1], e->block[2],
            e->thread[0], e->thread[1], e->thread[2]);
  if (e->status == TILERT_E_CANCELLED)
    return EXIT_INTERRUPTED;
  return e->status == TILERT_E_ARGUMENT || e->status == TILERT_E_UNAVAILABLE ? EXIT_MISUSE : EXIT_WRONG;
}

/* ---- the command line ---- */

static int
add_pair(Pairs *to, const char *word)
{
  const char *eq = strchr(word, '=');
  if (!eq || eq == word || (size_t)(eq - word) >= sizeof to->at[0].name)
    return misuse("expected NAME=VALUE", word);
  if (to->n == ARGS_MAX)
    return misuse("too many", word);
  Pair *p = &to->at[to->n++];
  snprintf(p->name, sizeof p->name, "%.*s", (int)(eq - word), word);
  p->value = eq + 1;
  return 0;
}

static const char *
pair_find(const Pairs *in, const char *name)
{
  for (size_t i = 0; i < in->n; i++)
    if (!strcmp(in->at[i].name, name))
      return in->at[i].value;
  return NULL;
}

/* Milliseconds, tolerances: 0 or more. */
static int
set_number(double *to, const char *text)
{
  char *end;
  *to = strtod(text, &end);
  return end == text || *end || !(*to >= 0) || isinf(*to) ? misuse("expected a number that is not negative", text) : 0;
}

static int
set_count(uint64_t *to, const char *text)
{
  char *end;
  errno = 0;
  *to = strtoull(text, &end, 0);
  return end == text || *end || *text < '0' || *text > '9' || errno ? misuse("expected a whole number", text) : 0;
}

static int
set_threads(Run *r, const char *text)
{
  uint64_t n = 0;
  int status = set_count(&n, text);
  r->threads = (int)(n & 0xffff);
  return status ? status : n > THREADS_MAX ? misuse("--threads: 1024 are the most", text) : 0;
}

static int
add_import(Run *r, const char *dir)
{
  if (r->nimports == ARGS_MAX)
    return misuse("too many", dir);
  r->import_path[r->nimports++] = dir;
  return 0;
}

typedef enum Option {
  OPT_GRID, OPT_DEVICE, OPT_TARGET, OPT_D, OPT_I, OPT_SAVE, OPT_CHECK, OPT_RTOL, OPT_ATOL, OPT_WARMUP, OPT_REP,
  OPT_SEED, OPT_THREADS, OPT_MAX, OPT_BENCH, OPT_NO_RESTORE, OPT_STATS, OPT_PTX, OPT_NO_SPECIALISE, OPT_NO_RACES,
  OPT_EARLY_COPIES, OPT_TUNE,
  OPT_RETUNE, OPT_SEARCH, OPT_BLOCK, OPT_SHARED, OPT_CLUSTER, OPT_PART, OPT_PDL, OPT_LAUNCHES, OPT_CHOICES
} Option;

static const struct OptionRow { const char *name; Option option; int takes_value; } option_rows[] = {
  {"--grid", OPT_GRID, 1}, {"--device", OPT_DEVICE, 1}, {"--target", OPT_TARGET, 1}, {"-D", OPT_D, 1},
  {"-I", OPT_I, 1}, {"--save", OPT_SAVE, 1}, {"--check", OPT_CHECK, 1}, {"--rtol", OPT_RTOL, 1},
  {"--atol", OPT_ATOL, 1}, {"--warmup", OPT_WARMUP, 1}, {"--rep", OPT_REP, 1}, {"--seed", OPT_SEED, 1},
  {"--threads", OPT_THREADS, 1}, {"--max-instructions", OPT_MAX, 1}, {"--bench", OPT_BENCH, 0}, {"--no-restore", OPT_NO_RESTORE, 0},
  {"--stats", OPT_STATS, 0}, {"--ptx", OPT_PTX, 0}, {"--no-specialise", OPT_NO_SPECIALISE, 0},
  {"--no-races", OPT_NO_RACES, 0}, {"--early-copies", OPT_EARLY_COPIES, 0},
  {"--tune", OPT_TUNE, 0}, {"--retune", OPT_RETUNE, 0}, {"--search", OPT_SEARCH, 0},
  {"--block", OPT_BLOCK, 1}, {"--shared", OPT_SHARED, 1}, {"--cluster", OPT_CLUSTER, 1},
  {"--part", OPT_PART, 1}, {"--pdl", OPT_PDL, 0}, {"--launches", OPT_LAUNCHES, 1},
  {"--choices", OPT_CHOICES, 1},
};

static int
set_option(Run *r, Option option, const char *value)
{
  switch (option) {
  case OPT_GRID: r->grid_text = value; return 0;
  case OPT_DEVICE: r->device_spec = value; return 0;
  case OPT_TARGET: r->target = value; return 0;
  case OPT_D: return add_pair(&r->defines, value);
  case OPT_I: return add_import(r, value);
  case OPT_SAVE: return add_pair(&r->saves, value);
  case OPT_CHECK: return add_pair(&r->checks, value);
  case OPT_RTOL: return set_number(&r->rtol, value);
  case OPT_ATOL: return set_number(&r->atol, value);
  case OPT_WARMUP: return set_number(&r->warmup_ms, value);
  case OPT_REP: return set_number(&r->rep_ms, value);
  case OPT_SEED: return set_count(&r->seed, value);
  case OPT_THREADS: return set_threads(r, value);
  case OPT_MAX: return set_count(&r->max_instructions, value);
  case OPT_BENCH: r->bench = 1; return 0;
  case OPT_NO_RESTORE: r->no_restore = 1; return 0;
  case OPT_STATS: r->stats = 1; return 0;
  case OPT_PTX: r->ptx = 1; return 0;
  case OPT_NO_SPECIALISE: r->no_specialise = 1; return 0;
  case OPT_NO_RACES: r->no_races = 1; return 0;
  case OPT_EARLY_COPIES: r->early_copies = 1; return 0;
  case OPT_TUNE: r->tune = 1; return 0;
  case OPT_RETUNE: r->tune = r->retune = 1; return 0;
  case OPT_SEARCH: r->tune = r->search = 1; return 0;
  case OPT_BLOCK: r->block_text = value; return 0;
  case OPT_SHARED: r->shared_text = value; return 0;
  case OPT_CLUSTER: r->cluster_text = value; return 0;
  case OPT_PART: return add_pair(&r->parts, value);
  case OPT_PDL: r->pdl = 1; return 0;
  case OPT_LAUNCHES: return set_count(&r->launches, value);
  case OPT_CHOICES: r->choices = value; return 0;
  }
  return EXIT_MISUSE;
}

/* --name=value, --name value, -Dvalue or -D value; *i moves on past a value of its own. */
static int
parse_option(Run *r, int argc, char **argv, int *i)
{
  const char *word = argv[*i];
  for (size_t k = 0; k < sizeof option_rows / sizeof *option_rows; k++) {
    const struct OptionRow *row = &option_rows[k];
    size_t n = strlen(row->name);
    int is_short = row->name[1] != '-';
    if (strncmp(word, row->name, n) != 0 || (!is_short && word[n] && word[n] != '='))
      continue;
    if (!row->takes_value)
      return word[n] ? misuse("this option takes no value", word) : set_option(r, row->option, "");
    if (word[n])
      return set_option(r, row->option, word + n + !is_short);
    return ++*i < argc ? set_option(r, row->option, argv[*i]) : misuse("a value is missing after", word);
  }
  return misuse("unknown option (--help lists them)", word);
}

static int
parse_word(Run *r, const char *word)
{
  if (!r->file)
    r->file = word;
  else if (!r->kernel_name)
    r->kernel_name = word;
  else
    return add_pair(&r->values, word);
  return 0;
}

static int
parse_command(Run *r, int argc, char **argv)
{
  int status = 0;
  for (int i = 1; !status && i < argc; i++)
    status = argv[i][0] == '-' && argv[i][1] ? parse_option(r, argc, argv, &i) : parse_word(r, argv[i]);
  if (!status && (!r->file || !r->kernel_name))
    status = misuse("a file and a kernel are needed (--help says more)", "");
  if (!status && !strcmp(r->kernel_name, "-"))
    r->kernel_name = NULL;
  return status;
}

/* ---- setting up ---- */

static void
show_progress(void *user, uint64_t done, uint64_t total)
{
  int *shown = user, percent = (int)(done * 100 / (total ? total : 1));
  if (percent == *shown)
    return;
  *shown = percent;
  fprintf(stderr, done == total ? "\r\033[K" : "\rsim: %3d%% of %llu blocks", percent, (unsigned long long)total);
}

static int
open_device(Run *r, int *shown)
{
  TilertOptions o;
  TilertError e = {0};
  tilert_options_default(&o);
  o.sim_threads = r->threads;
  o.sim_check_races = !r->no_races;
  o.sim_early_copies = r->early_copies;
  o.sim_max_instructions = r->max_instructions;
  if (isatty(STDERR_FILENO)) {
    o.progress = show_progress;
    o.progress_user = shown;
  }
  return tilert_device_open(r->device_spec, &o, &r->device, &e) ? failed(r, &e) : 0;
}

/* Of blocks whose shape the launch gives, where k is another compiler's. */
static int
check_shape_options(Run *r, const TilejitKernel *k)
{
  r->foreign = tilejit_kernel_shape(k, r->block);
  if (!r->foreign && (r->block_text || r->shared_text || r->cluster_text))
    return misuse("--block, --shared and --cluster are for PTX without a //@tilec line", "");
  return r->foreign && r->tune ? misuse("--tune: PTX of another compiler has no configurations", "") : 0;
}

static int
open_program(Run *r)
{
  TilertError e = {0};
  TilejitOptions o = {.size = sizeof o, .target = r->target, .no_specialisation = r->no_specialise,
                      .import_path = r->import_path, .nimport_path = r->nimports};
  size_t len;
  char *text = textfile_read(r->file, TEXTFILE_MOST, &len);
  if (!text) {
    fprintf(stderr, "tilerun: cannot read %s: %s\n", r->file, strerror(errno));
    return EXIT_MISUSE;
  }
  int status = tilejit_program_create(r->device, r->file, text, len, &o, &r->program, &e) ? failed(r, &e) : 0;
  free(text);
  return status;
}

static const TilejitParam *
kernel_param(TilejitKernel *k, const char *name)
{
  for (size_t i = 0; i < tilejit_kernel_param_count(k); i++)
    if (!strcmp(tilejit_kernel_param(k, i)->name, name))
      return tilejit_kernel_param(k, i);
  return NULL;
}

/* Values of const and type parameters become defines. */
static int
sort_values(Run *r)
{
  TilertError e = {0};
  TilejitKernel *plain;
  Pairs args = {.n = 0};
  if (tilejit_kernel(r->program, r->kernel_name, NULL, 0, &plain, &e))
    return failed(r, &e);
  int status = check_shape_options(r, plain);
  if (status)
    return status;
  for (size_t i = 0; i < r->values.n; i++) {
    const TilejitParam *p = kernel_param(plain, r->values.at[i].name);
    if (!p)
      return misuse("the kernel has no parameter", r->values.at[i].name);
    Pairs *to = p->kind == TILEJIT_ARGUMENT ? &args : &r->defines;
    if (pair_find(to, p->name) || to->n == ARGS_MAX)
      return misuse("given twice", p->name);
    to->at[to->n++] = r->values.at[i];
  }
  r->values = args;
  return 0;
}

static int
get_kernel(Run *r)
{
  TilertError e = {0};
  TilecDefine defines[ARGS_MAX];
  for (size_t i = 0; i < r->defines.n; i++)
    defines[i] = (TilecDefine){r->defines.at[i].name, r->defines.at[i].value};
  if (tilejit_kernel(r->program, r->kernel_name, defines, r->defines.n, &r->kernel, &e))
    return failed(r, &e);
  for (size_t i = 0; i < tilejit_kernel_param_count(r->kernel) && r->nargs < ARGS_MAX; i++) {
    const TilejitParam *p = tilejit_kernel_param(r->kernel, i);
    if (p->kind == TILEJIT_ARGUMENT)
      r->params[r->nargs++] = p;
  }
  return 0;
}

/* ---- arguments ---- */

static int
type_agrees(const char *type, Dtype given)
{
  Dtype want = rt_dtype_find(type);
  if (want == DTYPE_NONE || want == given)
    return 1;
  return dtype_size(want) == dtype_size(given) && rt_dtype_info(want)->kind != KIND_FLOAT &&
         rt_dtype_info(given)->kind != KIND_FLOAT;
}

/* The type of a pointer's or tensor's elements, with a type parameter's name replaced by what it stands for. */
static void
element_type(const Run *r, const TilejitParam *p, char out[64])
{
  if (!tensorarg_rank(p->type, out))
    snprintf(out, 64, "%s", p->type + 1);
  const TilejitParam *t = kernel_param(r->kernel, out);
  if (t && t->kind == TILEJIT_TYPE)
    snprintf(out, 64, "%.63s", t->value);
}

/* PTX's own word for a parameter, which says no more than its size. */
static int
is_raw(const TilejitParam *p)
{
  return p->type[0] == '.';
}

static int
is_structure(const TilejitParam *p)
{
  return is_raw(p) && strchr(p->type, '[');
}

static unsigned
rank_of(const TilejitParam *p)
{
  char ignored[64];
  return tensorarg_rank(p->type, ignored);
}

static int
takes_array(const TilejitParam *p)
{
  return p->type[0] == '*' || rank_of(p) || is_structure(p) || (is_raw(p) && !strcmp(p->type + 2, "64") && p->type[1] != 'f');
}

/* A structure is passed as it lies in memory: the bytes of an array. */
static int
set_structure(Run *r, size_t i)
{
  const Array *a = &r->arrays[i];
  const TilejitParam *p = r->params[i];
  char message[128];
  size_t given = a->count * dtype_size(a->dtype);
  r->args[i] = (TilertArg){.kind = TILERT_ARG_BYTES, .u.bytes = a->data};
  if (given == strtoul(strchr(p->type, '[') + 1, NULL, 10))
    return 0;
  snprintf(message, sizeof message, "the kernel takes %s, the array has %zu bytes", p->type, given);
  return misuse(p->name, message);
}

static int
upload(Run *r, size_t i, int empty)
{
  TilertError e = {0};
  Array *a = &r->arrays[i];
  size_t bytes = a->count * dtype_size(a->dtype);
  int status = tilert_buffer_create(r->device, bytes, &r->buffers[i], &e);
  if (!status && !empty)
    status = tilert_buffer_write(r->buffers[i], 0, a->data, bytes, NULL, &e);
  r->args[i] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = r->buffers[i]};
  return status ? failed(r, &e) : 0;
}

/* The whole array is on the device; what is passed of it may be less. */
static int
set_tensor(Run *r, size_t i)
{
  char message[256];
  const TilejitParam *p = r->params[i];
  TensorView *t = &r->tensors[i];
  if (tensorarg_view(&r->arrays[i], rank_of(p), pair_find(&r->parts, p->name), t, message, sizeof message))
    return misuse(p->name, message);
  int status = upload(r, i, r->empty[i]);
  t->arg.buffer = r->buffers[i];
  r->args[i] = (TilertArg){.kind = TILERT_ARG_TENSOR, .u.tensor = &t->arg};
  return status;
}

static int
set_array(Run *r, size_t i, const char *word)
{
  char message[256], element[64];
  const TilejitParam *p = r->params[i];
  if (!takes_array(p))
    return misuse("an array is given for a scalar parameter", p->name);
  if (argspec_create(p->name, word, r->seed, &r->arrays[i], &r->empty[i], message, sizeof message))
    return misuse(p->name, message);
  if (is_structure(p))
    return set_structure(r, i);
  element_type(r, p, element);
  if (!is_raw(p) && !type_agrees(element, r->arrays[i].dtype)) {
    snprintf(message, sizeof message, "the kernel takes %s, the array is of %s", p->type,
             rt_dtype_info(r->arrays[i].dtype)->name);
    return misuse(p->name, message);
  }
  return rank_of(p) ? set_tensor(r, i) : upload(r, i, r->empty[i]);
}

static int
set_scalar(Run *r, size_t i, const char *word)
{
  char message[128], *end;
  TilertArg *a = &r->args[i];
  if (rank_of(r->params[i]))
    return misuse("expected an array for tensor", r->params[i]->name);
  if (!strcmp(word, "null") || !strcmp(word, "None")) {
    *a = (TilertArg){.kind = TILERT_ARG_POINTER};
    return 0;
  }
  if (r->params[i]->type[0] == '*')
    return misuse("expected an array or null for pointer", r->params[i]->name);
  if (is_structure(r->params[i]))
    return misuse("expected an array of its bytes for structure", r->params[i]->name);
  if (!strcmp(word, "true") || !strcmp(word, "false")) {
    *a = (TilertArg){.kind = TILERT_ARG_INT, .u.i = word[0] == 't'};
    return 0;
  }
  *a = (TilertArg){.kind = TILERT_ARG_INT};
  if (!expr_eval(word, strlen(word), NULL, NULL, &a->u.i, message, sizeof message))
    return 0;
  *a = (TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = strtod(word, &end)};
  return end == word || *end ? misuse(r->params[i]->name, message) : 0;
}

/* Parts are of tensors. */
static int
check_parts(const Run *r)
{
  for (size_t i = 0; i < r->parts.n; i++) {
    const TilejitParam *p = kernel_param(r->kernel, r->parts.at[i].name);
    if (!p || p->kind != TILEJIT_ARGUMENT || !rank_of(p))
      return misuse("--part: no tensor parameter", r->parts.at[i].name);
  }
  return 0;
}

static int
set_args(Run *r)
{
  int status = check_parts(r);
  for (size_t i = 0; !status && i < r->nargs; i++) {
    const char *word = pair_find(&r->values, r->params[i]->name);
    if (!word)
      status = misuse("no value for parameter", r->params[i]->name);
    else
      status = argspec_is_array(word) ? set_array(r, i, word) : set_scalar(r, i, word);
  }
  return status;
}

/* ---- the grid ---- */

/* a.0: the extents of a tensor. */
static int
lookup_extent(const Run *r, const char *key, int64_t *value)
{
  const char *dot = strrchr(key, '.');
  for (size_t i = 0; dot && i < r->nargs; i++) {
    const TilertTensorArg *t = r->args[i].kind == TILERT_ARG_TENSOR ? r->args[i].u.tensor : NULL;
    size_t n = strlen(r->params[i]->name);
    if (!t || n != (size_t)(dot - key) || memcmp(r->params[i]->name, key, n) != 0 || dot[1] < '0' || dot[1] > '9' || dot[2] ||
        (uint32_t)(dot[1] - '0') >= t->rank)
      continue;
    *value = t->extents[dot[1] - '0'];
    return 1;
  }
  return 0;
}

static int
lookup(void *user, const char *name, size_t len, int64_t *value)
{
  Run *r = user;
  char key[64], ignored[128];
  if (len >= sizeof key)
    return 0;
  snprintf(key, sizeof key, "%.*s", (int)len, name);
  for (size_t i = 0; i < r->nargs; i++)
    if (!strcmp(r->params[i]->name, key) && r->args[i].kind == TILERT_ARG_INT) {
      *value = r->args[i].u.i;
      return 1;
    }
  if (lookup_extent(r, key, value))
    return 1;
  const TilejitParam *p = kernel_param(r->kernel, key);
  return p && p->kind == TILEJIT_CONST &&
         !expr_eval(p->value, strlen(p->value), NULL, NULL, value, ignored, sizeof ignored);
}

/* Components are parted by commas outside parentheses. */
static size_t
component_length(const char *text)
{
  int depth = 0;
  size_t n = 0;
  for (; text[n] && (text[n] != ',' || depth); n++)
    depth += (text[n] == '(') - (text[n] == ')');
  return n;
}

/* X, X,Y or X,Y,Z. */
static int
set_extents(Run *r, const char *option, const char *text, uint32_t out[3])
{
  const char *at = text;
  char message[128];
  out[0] = out[1] = out[2] = 1;
  for (int i = 0; i < 3; i++) {
    size_t n = component_length(at);
    int64_t v;
    if (expr_eval(at, n, lookup, r, &v, message, sizeof message))
      return misuse(option, message);
    if (v < 0 || v > UINT32_MAX) {
      snprintf(message, sizeof message, "%s: a component is negative or too large", option);
      return misuse(message, text);
    }
    out[i] = (uint32_t)v;
    at += n;
    if (!*at++)
      return 0;
  }
  snprintf(message, sizeof message, "%s has more than three components", option);
  return misuse(message, text);
}

/* Without --grid the kernel's own, once it is compiled. */
static int
set_grid(Run *r)
{
  if (!r->grid_text)
    return 0;
  return set_extents(r, "--grid", r->grid_text, r->grid);
}

static int
set_shared(Run *r)
{
  char message[128];
  int64_t v;
  if (expr_eval(r->shared_text, strlen(r->shared_text), lookup, r, &v, message, sizeof message))
    return misuse("--shared", message);
  r->shared = (uint32_t)v;
  return v < 0 || v > UINT32_MAX ? misuse("--shared is negative or too large", r->shared_text) : 0;
}

/* Of blocks of foreign PTX. */
static int
set_shape(Run *r)
{
  TilertError e = {0};
  TilertLaunch *l = tilejit_call_packed(r->call);
  if (!r->block_text && !r->block[0])
    return misuse("--block is needed: the PTX does not say how many threads a block has", "");
  int status = r->block_text ? set_extents(r, "--block", r->block_text, r->block) : 0;
  if (!status && r->shared_text)
    status = set_shared(r);
  if (!status && tilert_launch_set_shape(l, r->block, r->shared, &e))
    status = failed(r, &e);
  uint32_t cluster[3];
  if (status || !r->cluster_text || (status = set_extents(r, "--cluster", r->cluster_text, cluster)))
    return status;
  return tilert_launch_set_cluster(l, cluster, &e) ? failed(r, &e) : 0;
}

/* ---- tuning ---- */

static int
grid_for(void *user, TilejitKernel *k, uint32_t grid[3])
{
  Run *r = user;
  r->kernel = k;
  int status = set_grid(r);
  memcpy(grid, r->grid, sizeof r->grid);
  return status;
}

/* Does every launch of many have to find what the array held at first? */
static int
is_restored(const Run *r, size_t i)
{
  return i < 64 && r->buffers[i] && !r->empty[i] && !r->no_restore;
}

/* Launches have written to the arrays: give them their first contents again. */
static int
reload(Run *r)
{
  TilertError e = {0};
  for (size_t i = 0; i < r->nargs; i++)
    if (r->buffers[i] && tilert_buffer_write(r->buffers[i], 0, r->arrays[i].data, tilert_buffer_size(r->buffers[i]), NULL, &e))
      return failed(r, &e);
  return 0;
}

static int
tune_kernel(Run *r)
{
  TilertError e = {0};
  TilejitTuning *t;
  TilecDefine defines[ARGS_MAX];
  const TilejitGrid of_grid = r->grid_text ? grid_for : NULL;
  TilejitTuneOptions o = {.size = sizeof o, .force = r->retune, .threads = r->threads, .search = r->search};
  int is_sim = tilert_device_info(r->device)->is_sim;
  for (size_t i = 0; i < r->nargs; i++)
    o.restore |= is_restored(r, i) ? UINT64_C(1) << i : 0;
  for (size_t i = 0; i < r->defines.n; i++)
    defines[i] = (TilecDefine){r->defines.at[i].name, r->defines.at[i].value};
  if (isatty(STDERR_FILENO))
    o.progress = tunetable_progress;
  if (tilejit_tune(r->program, r->kernel_name, defines, r->defines.n, NULL, of_grid, r, r->args, r->nargs, &o, &t, &e))
    return failed(r, &e);
  tunetable_print(stdout, t, is_sim);
  int status = r->choices ? choices_keep(r->choices, tilejit_tuning_choice(t)) : 0;
  if (!status)
    status = grid_for(r, tilejit_tuning_kernel(t), r->grid);
  tilejit_tuning_free(t);
  return status ? status : reload(r);
}

/* ---- running ---- */

static void
print_table(const Run *r, const TilejitInfo *info)
{
  const TilertDeviceInfo *d = tilert_device_info(r->device);
  printf("kernel   %s on %s (%s)\n", tilejit_kernel_name(r->kernel), d->name, r->target ? r->target : d->target);
  printf("grid     %u x %u x %u blocks of ", r->grid[0], r->grid[1], r->grid[2]);
  if (r->foreign)
    printf("%u x %u x %u threads\n", r->block[0], r->block[1], r->block[2]);
  else
    printf("%u threads\n", info->threads);
  printf("shared   %u bytes per block\n", info->static_shared + (r->foreign ? r->shared : info->dynamic_shared));
  if (!d->is_sim)
    printf("regs     %u per thread, %u bytes spilled", info->registers, info->local_bytes);
  if (!d->is_sim && !r->foreign)
    printf(", %u blocks per multiprocessor", info->occupancy);
  printf("%s", d->is_sim ? "" : "\n");
  if (info->compile_ms == 0)
    printf("compile  nothing, %.2f ms to load\n", info->load_ms);
  else if (info->from_cache)
    printf("compile  from the cache in %.2f ms, %.2f ms to load\n", info->compile_ms, info->load_ms);
  else
    printf("compile  %.2f ms to PTX, %.2f ms to load\n", info->compile_ms, info->load_ms);
}

static void
print_bench(const Run *r, const TilertBench *b)
{
  double bytes = 0;
  for (size_t i = 0; i < r->nargs; i++)
    bytes += r->buffers[i] ? (double)tilert_buffer_size(r->buffers[i]) : 0;
  printf("bench    %.4f ms median of %u runs (min %.4f, 20%% %.4f, 80%% %.4f, max %.4f), %.1f GB/s of arrays\n",
         b->median_ms, b->runs, b->min_ms, b->p20_ms, b->p80_ms, b->max_ms, bytes / (b->median_ms * 1e6));
}

static void
print_stats(const TilertStats *s)
{
  const struct { const char *name; uint64_t v; } rows[] = {
    {"blocks", s->blocks}, {"warp instructions", s->warp_instructions},
    {"global bytes read", s->global_bytes_read}, {"global bytes written", s->global_bytes_written},
    {"global sectors", s->global_sectors}, {"shared accesses", s->shared_accesses},
    {"shared bank conflicts", s->shared_bank_conflicts}, {"barriers", s->barriers}, {"atomics", s->atomics},
    {"mma", s->mma},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    printf("  %-22s %llu\n", rows[i].name, (unsigned long long)rows[i].v);
}

static int
launch_once(Run *r, float *ms)
{
  TilertError e = {0};
  TilertEvent *from = NULL, *to = NULL;
  int status = tilert_event_create(r->device, &from, &e);
  if (!status)
    status = tilert_event_create(r->device, &to, &e);
  if (!status)
    status = tilert_event_record(from, NULL, &e);
  interrupt_guard(r->interrupt, r->device);
  for (uint64_t i = 0; !status && i < r->launches; i++)
    status = tilejit_call_launch(r->call, NULL, &e);
  interrupt_unguard(r->interrupt);
  if (!status)
    status = tilert_event_record(to, NULL, &e);
  if (!status)
    status = tilert_event_elapsed(from, to, ms, &e);
  tilert_event_destroy(from);
  tilert_event_destroy(to);
  return status ? failed(r, &e) : 0;
}

static void
print_cache_trouble(const Run *r)
{
  char why[512];
  if (tilejit_program_cache_trouble(r->program, why, sizeof why))
    fprintf(stderr, "tilerun: note: %s\n", why);
}

static int
compile_call(Run *r)
{
  TilertError e = {0};
  TilejitInfo info;
  int status = tilejit_call_create(r->kernel, r->grid_text ? r->grid : NULL, NULL, r->args, r->nargs, &r->call, &e);
  if (!status)
    status = tilert_launch_grid(tilejit_call_packed(r->call), r->grid, &e);
  if (!status)
    status = tilejit_call_info(r->call, &info, &e);
  if (status)
    return failed(r, &e);
  if (r->foreign && (status = set_shape(r)))
    return status;
  if (r->pdl && tilert_launch_set_pdl(tilejit_call_packed(r->call), 1, &e))
    return failed(r, &e);
  print_diagnostics(r);
  print_cache_trouble(r);
  print_table(r, &info);
  if (r->ptx)
    printf("%s", tilejit_call_ptx(r->call));
  fflush(stdout);
  return 0;
}

static int
run_kernel(Run *r)
{
  TilertError e = {0};
  TilertStats stats;
  float ms = 0;
  int status = launch_once(r, &ms);
  if (status)
    return status;
  printf("run      %.3f ms\n", (double)ms);
  fflush(stdout);
  if (r->stats && !tilert_device_stats(r->device, &stats, &e))
    print_stats(&stats);
  else if (r->stats)
    fprintf(stderr, "tilerun: --stats: %s\n", e.message);
  return 0;
}

/* Before the first run. */
static int
keep_first(Run *r)
{
  TilertError e = {0};
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < r->nargs; i++) {
    if (!is_restored(r, i))
      continue;
    size_t bytes = tilert_buffer_size(r->buffers[i]);
    status = tilert_buffer_create(r->device, bytes, &r->first[i], &e);
    if (!status)
      status = tilert_buffer_copy(r->first[i], 0, r->buffers[i], 0, bytes, NULL, &e);
  }
  if (status == TILERT_E_MEMORY)
    fprintf(stderr, "tilerun: --bench keeps a copy of what the arrays hold at first; --no-restore needs none\n");
  return status ? failed(r, &e) : 0;
}

static int
bring_first(void *user, TilertStream *s, TilertError *err)
{
  const Run *r = user;
  int status = TILERT_OK;
  for (size_t i = 0; !status && i < r->nargs; i++)
    if (r->first[i])
      status = tilert_buffer_copy(r->buffers[i], 0, r->first[i], 0, tilert_buffer_size(r->first[i]), s, err);
  return status;
}

static int
launch_packed(void *user, TilertStream *s, TilertError *err)
{
  return tilejit_call_launch(((const Run *)user)->call, s, err);
}

static int
bench_kernel(Run *r)
{
  TilertError e = {0};
  TilertBench b;
  interrupt_guard(r->interrupt, r->device);
  int status = tilert_bench(r->device, NULL, bring_first, launch_packed, r, r->warmup_ms, r->rep_ms, &b, &e);
  interrupt_unguard(r->interrupt);
  if (status)
    return failed(r, &e);
  print_bench(r, &b);
  return 0;
}

/* ---- results ---- */

static int
download(Run *r, const char *name, Array **out)
{
  TilertError e = {0};
  for (size_t i = 0; i < r->nargs; i++) {
    if (strcmp(r->params[i]->name, name) != 0 || !r->buffers[i])
      continue;
    *out = &r->arrays[i];
    size_t bytes = tilert_buffer_size(r->buffers[i]);
    return tilert_buffer_read(r->buffers[i], 0, (*out)->data, bytes, NULL, &e) ? failed(r, &e) : 0;
  }
  return misuse("no array argument", name);
}

static int
save_results(Run *r)
{
  char message[256];
  for (size_t i = 0; i < r->saves.n; i++) {
    Array *a;
    int status = download(r, r->saves.at[i].name, &a);
    if (status)
      return status;
    if (npy_write(r->saves.at[i].value, a, message, sizeof message))
      return misuse("--save", message);
  }
  return 0;
}

static int
check_result(Run *r, const Pair *p)
{
  char message[512];
  Array *got, want;
  int status = download(r, p->name, &got);
  if (status)
    return status;
  if (argspec_create(p->name, p->value, r->seed, &want, NULL, message, sizeof message))
    return misuse("--check", message);
  int same = compare_arrays(got, &want, r->rtol, r->atol, message, sizeof message);
  printf("check    %s: %s\n", p->name, message);
  array_destroy(&want);
  return same ? 0 : EXIT_WRONG;
}

static int
check_results(Run *r)
{
  int worst = 0;
  for (size_t i = 0; i < r->checks.n; i++) {
    int status = check_result(r, &r->checks.at[i]);
    worst = status > worst ? status : worst;
  }
  return worst;
}

static int
run(Run *r)
{
  int shown = -1, status = open_device(r, &shown);
  if (!status)
    status = open_program(r);
  if (!status)
    status = sort_values(r);
  if (!status)
    status = get_kernel(r);
  if (!status)
    status = set_args(r);
  if (!status)
    status = r->tune ? tune_kernel(r) : set_grid(r);
  if (!status)
    status = compile_call(r);
  if (!status && r->bench)
    status = keep_first(r);
  if (!status)
    status = run_kernel(r);
  if (!status)
    status = save_results(r);
  if (!status)
    status = check_results(r);
  if (!status && r->bench)
    status = bench_kernel(r);
  return status;
}

static void
finish(Run *r)
{
  tilejit_call_destroy(r->call);
  for (size_t i = 0; i < r->nargs; i++) {
    tilert_buffer_destroy(r->buffers[i]);
    tilert_buffer_destroy(r->first[i]);
    array_destroy(&r->arrays[i]);
  }
  tilejit_program_destroy(r->program);
  tilert_device_close(r->device);
  interrupt_free(r->interrupt);
  free(r);
}

/* What was printed has arrived. */
static int
printed(int status)
{
  if (!fflush(stdout) && !ferror(stdout))
    return status;
  fprintf(stderr, "tilerun: cannot write standard output: %s\n", strerror(errno));
  return status ? status : EXIT_MISUSE;
}

int
main(int argc, char **argv)
{
  signal(SIGXFSZ, SIG_IGN);            /* a file that may not grow is an error of writing */
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return fputs(usage, stdout), printed(0);
    if (!strcmp(argv[i], "--version"))
      return printf("tilerun %s\n", tilec_version()), printed(0);
  }
  Run *r = calloc(1, sizeof *r);
  if (!r)
    return misuse("out of memory", "");
  r->rtol = r->atol = -1;
  r->warmup_ms = 25;
  r->rep_ms = 100;
  r->launches = 1;
  r->interrupt = interrupt_new();
  int status = parse_command(r, argc, argv);
  if (!status)
    status = run(r);
  finish(r);
  status = printed(status);
  if (status == EXIT_INTERRUPTED)
    interrupt_die();
  return status;
}
