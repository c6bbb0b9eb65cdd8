/* jit.c - kernels compiled on first use, once per pattern of arguments.
 *
 * The pattern of a launch is two bit sets over its arguments: which integers equal 1, and which integers and
 * addresses are divisible by 16. Each pattern seen has one Form: a compiled, loaded kernel. Forms hang in the
 * buckets of a fixed table; they are only ever added, in front, with a release store, and live until the program
 * goes. So a launch finds its form by loading the bucket and walking the chain, without a lock; only a miss takes
 * the kernel's lock, looks again, and compiles under it, so that one thread compiles while others wait for it.
 */
#include "jit.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 64, SOURCE_MAX = 1 << 28 };

typedef struct Form {
  struct Form *next;
  uint64_t equal_1, divisible_16;
  TilecResult *result;
  TilertModule *module;
  TilertKernel *kernel;
  double compile_ms, load_ms;
} Form;

struct TilejitKernel {
  TilejitKernel *next;
  TilejitProgram *program;
  char name[TILERT_NAME_MAX];
  TilecDefine *defines;                          /* their text is ours */
  size_t ndefines;
  TilejitParam *params;
  size_t nparams;
  const TilejitParam *args[TILERT_MAX_PARAMS];   /* the params that launches pass */
  size_t nargs;
  uint64_t integers, pointers;                   /* which args are of these types */
  _Atomic(Form *) forms[BUCKETS];
  atomic_size_t nforms;
  pthread_mutex_t lock;                          /* held while compiling */
};

struct TilejitProgram {
  TilertDevice *device;
  char *name, *text, *target, *description, *diagnostics;
  char **import_path;
  size_t len, nimport_path;
  int specialise, line_info;
  TilejitKernel *kernels;
  pthread_mutex_t lock;                          /* of kernels; held while describing one */
  pthread_mutex_t words;                         /* of diagnostics; taken last */
};

struct TilejitCall {
  TilejitKernel *kernel;
  const Form *form;
  TilertLaunch *launch;
};

static int
fail(TilertError *err, int status, const char *message)
{
  if (err) {
    memset(err, 0, sizeof *err);
    err->status = status;
    snprintf(err->message, sizeof err->message, "%s", message);
    size_t n = strlen(err->message);
    if (n && err->message[n - 1] == '\n')
      err->message[n - 1] = 0;
  }
  return status;
}

static int
fail_about(TilertError *err, const TilejitKernel *k, const char *message, const char *name)
{
  char text[sizeof err->message];
  snprintf(text, sizeof text, "kernel %s: %s \"%.100s\"", k->name, message, name);
  return fail(err, TILERT_E_ARGUMENT, text);
}

static int
no_memory(TilertError *err)
{
  return fail(err, TILERT_E_MEMORY, "the host is out of memory");
}

static double
now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static char *
copy_text(const char *text, size_t len)
{
  char *s = malloc(len + 1);
  if (s) {
    memcpy(s, text, len);
    s[len] = 0;
  }
  return s;
}

/* ---- programs ---- */

static TilecOptions
compile_options(const TilejitProgram *p)
{
  TilecOptions o;
  tilec_options_default(&o);
  o.target = p->target;
  o.emit = TILEC_EMIT_PTX;
  o.line_info = p->line_info;
  o.import_path = (const char *const *)p->import_path;
  o.nimport_path = p->nimport_path;
  return o;
}

static void
keep_diagnostics(TilejitProgram *p, const TilecResult *r)
{
  if (!r->diagnostics || !r->diagnostics[0])
    return;
  pthread_mutex_lock(&p->words);
  free(p->diagnostics);
  p->diagnostics = copy_text(r->diagnostics, strlen(r->diagnostics));
  pthread_mutex_unlock(&p->words);
}

static int
check_result(TilejitProgram *p, const TilecResult *r, TilertError *err)
{
  if (!r)
    return no_memory(err);
  keep_diagnostics(p, r);
  if (r->status == 0)
    return TILERT_OK;
  return fail(err, r->status == 2 ? TILERT_E_ARGUMENT : TILERT_E_COMPILE,
              r->diagnostics && r->diagnostics[0] ? r->diagnostics : "the compiler failed and does not say why");
}

/* What tilec_describe says about the program, or about one kernel with its defines; malloc'ed. */
static int
describe(TilejitProgram *p, const TilejitKernel *k, char **out, TilertError *err)
{
  TilecOptions o = compile_options(p);
  if (k) {
    o.kernel = k->name;
    o.defines = k->defines;
    o.ndefines = k->ndefines;
  }
  TilecResult *r = tilec_describe(p->name, p->text, p->len, &o);
  int status = check_result(p, r, err);
  if (!status && !(*out = copy_text(r->output, r->output_len)))
    status = no_memory(err);
  if (r)
    tilec_result_free(r);
  return status;
}

static int
copy_options(TilejitProgram *p, const TilejitOptions *given)
{
  TilejitOptions o = {0};
  if (given)
    memcpy(&o, given, given->size && given->size < sizeof o ? given->size : sizeof o);
  const char *target = o.target ? o.target : tilert_device_info(p->device)->target;
  p->specialise = !o.no_specialisation;
  p->line_info = !o.no_line_info;
  p->target = copy_text(target, strlen(target));
  p->import_path = calloc(o.nimport_path + 1, sizeof *p->import_path);
  if (!p->target || !p->import_path)
    return -1;
  for (size_t i = 0; i < o.nimport_path; i++, p->nimport_path++)
    if (!(p->import_path[i] = copy_text(o.import_path[i], strlen(o.import_path[i]))))
      return -1;
  return 0;
}

static int
program_fill(TilejitProgram *p, const char *name, const char *text, size_t len, const TilejitOptions *o,
             TilertError *err)
{
  p->name = copy_text(name, strlen(name));
  p->text = copy_text(text, len);
  p->len = len;
  if (!p->name || !p->text || copy_options(p, o))
    return no_memory(err);
  if (!p->target[0])
    return fail(err, TILERT_E_UNAVAILABLE, "the compiler has no target for this device");
  return describe(p, NULL, &p->description, err);
}

int
tilejit_program_create(TilertDevice *dev, const char *name, const char *text, size_t len, const TilejitOptions *o,
                       TilejitProgram **out, TilertError *err)
{
  *out = NULL;
  TilejitProgram *p = calloc(1, sizeof *p);
  if (!p)
    return no_memory(err);
  p->device = tilert_device_retain(dev);
  pthread_mutex_init(&p->lock, NULL);
  pthread_mutex_init(&p->words, NULL);
  int status = program_fill(p, name, text, len, o, err);
  if (status)
    tilejit_program_destroy(p);
  else
    *out = p;
  return status;
}

static int
read_file(const char *path, char **text, size_t *len, TilertError *err)
{
  char message[300];
  FILE *f = fopen(path, "rb");
  *text = NULL;
  if (f && !fseek(f, 0, SEEK_END)) {
    long n = ftell(f);
    rewind(f);
    *text = n >= 0 && n <= SOURCE_MAX ? malloc((size_t)n + 1) : NULL;
    *len = *text ? fread(*text, 1, (size_t)n, f) : 0;
    if (*text && *len != (size_t)n) {
      free(*text);
      *text = NULL;
    }
  }
  if (f)
    fclose(f);
  snprintf(message, sizeof message, "cannot read %.250s", path);
  return *text ? TILERT_OK : fail(err, TILERT_E_ARGUMENT, message);
}

int
tilejit_program_open(TilertDevice *dev, const char *path, const TilejitOptions *o, TilejitProgram **out,
                     TilertError *err)
{
  char *text;
  size_t len = 0;
  *out = NULL;
  int status = read_file(path, &text, &len, err);
  if (!status)
    status = tilejit_program_create(dev, path, text, len, o, out, err);
  free(text);
  return status;
}

static void
form_destroy(Form *f)
{
  if (!f)
    return;
  tilert_module_destroy(f->module);
  if (f->result)
    tilec_result_free(f->result);
  free(f);
}

static void
kernel_destroy(TilejitKernel *k)
{
  for (size_t i = 0; i < BUCKETS; i++)
    for (Form *f = atomic_load_explicit(&k->forms[i], memory_order_acquire), *next; f; f = next) {
      next = f->next;
      form_destroy(f);
    }
  for (size_t i = 0; k->defines && i <= k->ndefines; i++) {
    free((char *)(uintptr_t)k->defines[i].name);
    free((char *)(uintptr_t)k->defines[i].value);
  }
  pthread_mutex_destroy(&k->lock);
  free(k->defines);
  free(k->params);
  free(k);
}

void
tilejit_program_destroy(TilejitProgram *p)
{
  if (!p)
    return;
  for (TilejitKernel *k = p->kernels, *next; k; k = next) {
    next = k->next;
    kernel_destroy(k);
  }
  for (size_t i = 0; i < p->nimport_path; i++)
    free(p->import_path[i]);
  tilert_device_close(p->device);
  pthread_mutex_destroy(&p->lock);
  pthread_mutex_destroy(&p->words);
  free(p->import_path);
  free(p->name);
  free(p->text);
  free(p->target);
  free(p->description);
  free(p->diagnostics);
  free(p);
}

size_t
tilejit_program_diagnostics(TilejitProgram *p, char *out, size_t size)
{
  pthread_mutex_lock(&p->words);
  size_t n = p->diagnostics ? strlen(p->diagnostics) : 0;
  if (size)
    snprintf(out, size, "%s", p->diagnostics ? p->diagnostics : "");
  pthread_mutex_unlock(&p->words);
  return n;
}

/* ---- kernels: parameters from the description ---- */

typedef struct Line { char word[4][128]; int n; } Line;

/* The next line of *at as up to four words, the fourth being the rest of the line; 0 at the end. */
static int
line_read(const char **at, Line *l)
{
  const char *s = *at;
  memset(l, 0, sizeof *l);
  if (!*s)
    return 0;
  while (*s && *s != '\n' && l->n < 4) {
    size_t n = l->n == 3 ? strcspn(s, "\n") : strcspn(s, " \n");
    snprintf(l->word[l->n++], sizeof l->word[0], "%.*s", (int)n, s);
    s += n;
    s += strspn(s, " ");
  }
  s += strcspn(s, "\n");
  *at = *s ? s + 1 : s;
  return 1;
}

static TilejitParam *
add_param(TilejitKernel *k, TilejitParamKind kind, const char *name, TilertError *err)
{
  TilejitParam *grown = realloc(k->params, (k->nparams + 1) * sizeof *grown);
  if (!grown) {
    no_memory(err);
    return NULL;
  }
  k->params = grown;
  TilejitParam *p = &grown[k->nparams++];
  memset(p, 0, sizeof *p);
  p->kind = kind;
  snprintf(p->name, sizeof p->name, "%.63s", name);
  return p;
}

/* param NAME pointer|scalar TYPE / const NAME TYPE VALUE / type NAME VALUE; VALUE is - if there is none. */
static int
read_param(TilejitKernel *k, const Line *l, TilertError *err)
{
  static const char *const words[] = {"param", "const", "type"};
  int kind = 0;
  while (kind < 3 && strcmp(l->word[0], words[kind]) != 0)
    kind++;
  if (kind == 3)
    return TILERT_OK;
  TilejitParam *p = add_param(k, (TilejitParamKind)kind, l->word[1], err);
  if (!p)
    return TILERT_E_MEMORY;
  const char *value = kind == TILEJIT_CONST ? l->word[3] : kind == TILEJIT_TYPE ? l->word[2] : "-";
  if (kind == TILEJIT_ARGUMENT)
    snprintf(p->type, sizeof p->type, "%s%.60s", strcmp(l->word[2], "pointer") ? "" : "*", l->word[3]);
  else
    snprintf(p->type, sizeof p->type, "%.60s", kind == TILEJIT_CONST ? l->word[2] : "type");
  snprintf(p->value, sizeof p->value, "%s", strcmp(value, "-") ? value : "");
  return TILERT_OK;
}

static int
read_params(TilejitKernel *k, TilertError *err)
{
  char *text = NULL;
  int status = describe(k->program, k, &text, err);
  const char *at = text;
  Line l;
  while (!status && line_read(&at, &l))
    status = read_param(k, &l, err);
  free(text);
  return status;
}

/* The name of the only kernel of the source. */
static int
only_kernel(const TilejitProgram *p, char name[TILERT_NAME_MAX], TilertError *err)
{
  const char *at = p->description;
  int found = 0;
  Line l;
  while (line_read(&at, &l))
    if (!strcmp(l.word[0], "kernel") && !found++)
      snprintf(name, TILERT_NAME_MAX, "%s", l.word[1]);
  if (found == 1)
    return TILERT_OK;
  return fail(err, TILERT_E_ARGUMENT, found ? "the source holds several kernels: name the one you want"
                                            : "the source holds no kernel");
}

static int
copy_defines(TilejitKernel *k, const TilecDefine *defines, size_t n, TilertError *err)
{
  k->defines = calloc(n + 1, sizeof *k->defines);
  if (!k->defines)
    return no_memory(err);
  for (; k->ndefines < n; k->ndefines++) {
    const TilecDefine *from = &defines[k->ndefines];
    TilecDefine *to = &k->defines[k->ndefines];
    to->name = copy_text(from->name, strlen(from->name));
    to->value = copy_text(from->value, strlen(from->value));
    if (!to->name || !to->value)
      return no_memory(err);
  }
  return TILERT_OK;
}

static const TilejitParam *
param_find(const TilejitKernel *k, const char *name)
{
  for (size_t i = 0; i < k->nparams; i++)
    if (!strcmp(k->params[i].name, name))
      return &k->params[i];
  return NULL;
}

/* The compiler lets a define pass that another kernel of the file knows. `warps` is every kernel's. */
static int
check_defines(TilejitKernel *k, TilertError *err)
{
  for (size_t i = 0; i < k->ndefines; i++) {
    const TilejitParam *p = param_find(k, k->defines[i].name);
    if (p ? p->kind == TILEJIT_ARGUMENT : strcmp(k->defines[i].name, "warps") != 0)
      return fail_about(err, k, p ? "this parameter is passed at launch, not defined:"
                                  : "no const or type parameter", k->defines[i].name);
  }
  return TILERT_OK;
}

static int
is_integer_type(const char *type)
{
  return (type[0] == 'i' || type[0] == 'u') && type[1] >= '1' && type[1] <= '9' && strcmp(type, "i1") != 0;
}

static int
list_args(TilejitKernel *k, TilertError *err)
{
  for (size_t i = 0; i < k->nparams; i++) {
    const TilejitParam *p = &k->params[i];
    if (p->kind != TILEJIT_ARGUMENT)
      continue;
    if (k->nargs == TILERT_MAX_PARAMS)
      return fail_about(err, k, "too many parameters, the first being", p->name);
    k->integers |= (uint64_t)is_integer_type(p->type) << k->nargs;
    k->pointers |= (uint64_t)(p->type[0] == '*') << k->nargs;
    k->args[k->nargs++] = p;
  }
  return TILERT_OK;
}

static int
kernel_new(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t n, TilejitKernel **out,
           TilertError *err)
{
  TilejitKernel *k = calloc(1, sizeof *k);
  if (!k)
    return no_memory(err);
  pthread_mutex_init(&k->lock, NULL);
  k->program = p;
  snprintf(k->name, sizeof k->name, "%s", name);
  int status = copy_defines(k, defines, n, err);
  if (!status)
    status = read_params(k, err);
  if (!status)
    status = check_defines(k, err);
  if (!status)
    status = list_args(k, err);
  if (status)
    kernel_destroy(k);
  else
    *out = k;
  return status;
}

static int
same_kernel(const TilejitKernel *k, const char *name, const TilecDefine *defines, size_t n)
{
  if (strcmp(k->name, name) != 0 || k->ndefines != n)
    return 0;
  for (size_t i = 0; i < n; i++)
    if (strcmp(k->defines[i].name, defines[i].name) != 0 || strcmp(k->defines[i].value, defines[i].value) != 0)
      return 0;
  return 1;
}

int
tilejit_kernel(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t ndefines, TilejitKernel **out,
               TilertError *err)
{
  char only[TILERT_NAME_MAX];
  *out = NULL;
  int status = name ? TILERT_OK : only_kernel(p, only, err);
  if (status)
    return status;
  name = name ? name : only;
  pthread_mutex_lock(&p->lock);
  for (TilejitKernel *k = p->kernels; k && !*out; k = k->next)
    if (same_kernel(k, name, defines, ndefines))
      *out = k;
  if (!*out && !(status = kernel_new(p, name, defines, ndefines, out, err))) {
    (*out)->next = p->kernels;
    p->kernels = *out;
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

const char *
tilejit_kernel_name(const TilejitKernel *k)
{
  return k->name;
}

size_t
tilejit_kernel_param_count(const TilejitKernel *k)
{
  return k->nparams;
}

const TilejitParam *
tilejit_kernel_param(const TilejitKernel *k, size_t i)
{
  return i < k->nparams ? &k->params[i] : NULL;
}

size_t
tilejit_kernel_forms(const TilejitKernel *k)
{
  return atomic_load(&k->nforms);
}

/* ---- forms: one per pattern of arguments ---- */

typedef struct Pattern { uint64_t equal_1, divisible_16; } Pattern;

static Pattern
pattern_of(const TilejitKernel *k, const TilertArg *args, size_t n)
{
  Pattern p = {0, 0};
  if (!k->program->specialise)
    return p;
  for (size_t i = 0; i < n; i++) {
    uint64_t bit = UINT64_C(1) << i, value = args[i].u.pointer;
    if (args[i].kind == TILERT_ARG_INT && k->integers & bit) {
      p.equal_1 |= value == 1 ? bit : 0;
    } else if (args[i].kind == TILERT_ARG_BUFFER && k->pointers & bit && args[i].u.buffer) {
      value = tilert_buffer_address(args[i].u.buffer);
    } else if (args[i].kind != TILERT_ARG_POINTER || !(k->pointers & bit)) {
      continue;
    }
    p.divisible_16 |= value % 16 == 0 ? bit : 0;
  }
  return p;
}

static size_t
pattern_bucket(Pattern p)
{
  uint64_t h = (p.equal_1 * UINT64_C(0x9e3779b97f4a7c15)) ^ (p.divisible_16 * UINT64_C(0xc2b2ae3d27d4eb4f));
  return (size_t)(h >> 58) % BUCKETS;
}

static Form *
form_find(TilejitKernel *k, Pattern p, size_t bucket)
{
  Form *f = atomic_load_explicit(&k->forms[bucket], memory_order_acquire);
  while (f && (f->equal_1 != p.equal_1 || f->divisible_16 != p.divisible_16))
    f = f->next;
  return f;
}

static size_t
list_facts(const TilejitKernel *k, Pattern p, TilecFact *facts)
{
  size_t n = 0;
  for (size_t i = 0; i < k->nargs; i++) {
    if (p.equal_1 >> i & 1)
      facts[n++] = (TilecFact){k->args[i]->name, TILEC_FACT_EQUAL, 1};
    if (p.divisible_16 >> i & 1)
      facts[n++] = (TilecFact){k->args[i]->name, TILEC_FACT_DIVISIBLE, 16};
  }
  return n;
}

static int
form_compile(TilejitKernel *k, Form *f, TilertError *err)
{
  TilejitProgram *p = k->program;
  TilecFact facts[2 * TILERT_MAX_PARAMS];
  TilecOptions o = compile_options(p);
  o.kernel = k->name;
  o.defines = k->defines;
  o.ndefines = k->ndefines;
  o.facts = facts;
  o.nfacts = list_facts(k, (Pattern){f->equal_1, f->divisible_16}, facts);
  double start = now_ms();
  f->result = tilec_compile(p->name, p->text, p->len, &o);
  f->compile_ms = now_ms() - start;
  return check_result(p, f->result, err);
}

static int
form_load(TilejitKernel *k, Form *f, TilertError *err)
{
  const TilecResult *r = f->result;
  double start = now_ms();
  int status = tilert_module_load(k->program->device, r->output, r->output_len, r->manifests, r->nmanifests,
                                  &f->module, err);
  f->load_ms = now_ms() - start;
  return status ? status : tilert_module_kernel(f->module, k->name, &f->kernel, err);
}

static int
form_add(TilejitKernel *k, Pattern p, size_t bucket, Form **out, TilertError *err)
{
  Form *f = calloc(1, sizeof *f);
  if (!f)
    return no_memory(err);
  f->equal_1 = p.equal_1;
  f->divisible_16 = p.divisible_16;
  int status = form_compile(k, f, err);
  if (!status)
    status = form_load(k, f, err);
  if (status) {
    form_destroy(f);
    return status;
  }
  f->next = atomic_load_explicit(&k->forms[bucket], memory_order_relaxed);
  atomic_store_explicit(&k->forms[bucket], f, memory_order_release);
  atomic_fetch_add(&k->nforms, 1);
  *out = f;
  return TILERT_OK;
}

static int
form_miss(TilejitKernel *k, Pattern p, size_t bucket, Form **out, TilertError *err)
{
  int status = TILERT_OK;
  pthread_mutex_lock(&k->lock);
  *out = form_find(k, p, bucket);
  if (!*out)
    status = form_add(k, p, bucket, out, err);
  pthread_mutex_unlock(&k->lock);
  return status;
}

static int
wrong_count(const TilejitKernel *k, size_t n, TilertError *err)
{
  char text[sizeof err->message];
  int at = snprintf(text, sizeof text, "kernel %s takes %zu arguments (", k->name, k->nargs);
  for (size_t i = 0; i < k->nargs && at < (int)sizeof text - 80; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "", k->args[i]->name);
  snprintf(text + at, sizeof text - (size_t)at, "); %zu are given", n);
  return fail(err, TILERT_E_ARGUMENT, text);
}

static int
form_for(TilejitKernel *k, const TilertArg *args, size_t nargs, Form **out, TilertError *err)
{
  if (nargs != k->nargs)
    return wrong_count(k, nargs, err);
  Pattern p = pattern_of(k, args, nargs);
  size_t bucket = pattern_bucket(p);
  *out = form_find(k, p, bucket);
  return *out ? TILERT_OK : form_miss(k, p, bucket, out, err);
}

/* ---- launching ---- */

int
tilejit_launch(TilejitKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args, size_t nargs,
               TilertError *err)
{
  Form *f;
  int status = form_for(k, args, nargs, &f, err);
  return status ? status : tilert_launch(s, f->kernel, grid, args, nargs, err);
}

static int
arg_index(const TilejitKernel *k, const char *name)
{
  for (size_t i = 0; i < k->nargs; i++)
    if (!strcmp(k->args[i]->name, name))
      return (int)i;
  return -1;
}

/* Put named arguments in the kernel's order. */
static int
order_args(const TilejitKernel *k, const char *const *names, const TilertArg *args, size_t nargs,
           TilertArg ordered[TILERT_MAX_PARAMS], TilertError *err)
{
  uint64_t seen = 0;
  for (size_t i = 0; i < nargs; i++) {
    int at = arg_index(k, names[i]);
    if (at < 0)
      return fail_about(err, k, "no argument", names[i]);
    if (seen >> at & 1)
      return fail_about(err, k, "given twice: argument", names[i]);
    seen |= UINT64_C(1) << at;
    ordered[at] = args[i];
  }
  for (size_t i = 0; i < k->nargs; i++)
    if (!(seen >> i & 1))
      return fail_about(err, k, "missing argument", k->args[i]->name);
  return TILERT_OK;
}

int
tilejit_launch_named(TilejitKernel *k, TilertStream *s, const uint32_t grid[3], const char *const *names,
                     const TilertArg *args, size_t nargs, TilertError *err)
{
  TilertArg ordered[TILERT_MAX_PARAMS];
  int status = order_args(k, names, args, nargs, ordered, err);
  return status ? status : tilejit_launch(k, s, grid, ordered, nargs, err);
}

int
tilejit_call_create(TilejitKernel *k, const uint32_t grid[3], const char *const *names, const TilertArg *args,
                    size_t nargs, TilejitCall **out, TilertError *err)
{
  TilertArg ordered[TILERT_MAX_PARAMS];
  Form *f = NULL;
  *out = NULL;
  int status = names ? order_args(k, names, args, nargs, ordered, err) : TILERT_OK;
  if (!status)
    status = form_for(k, names ? ordered : args, nargs, &f, err);
  if (status)
    return status;
  TilejitCall *c = calloc(1, sizeof *c);
  if (!c)
    return no_memory(err);
  c->kernel = k;
  c->form = f;
  status = tilert_launch_create(f->kernel, grid, names ? ordered : args, nargs, &c->launch, err);
  if (status)
    free(c);
  else
    *out = c;
  return status;
}

void
tilejit_call_destroy(TilejitCall *c)
{
  if (!c)
    return;
  tilert_launch_destroy(c->launch);
  free(c);
}

int
tilejit_call_set_grid(TilejitCall *c, const uint32_t grid[3], TilertError *err)
{
  return tilert_launch_set_grid(c->launch, grid, err);
}

int
tilejit_call_launch(const TilejitCall *c, TilertStream *s, TilertError *err)
{
  return tilert_launch_packed(c->launch, s, err);
}

TilertLaunch *
tilejit_call_packed(const TilejitCall *c)
{
  return c->launch;
}

int
tilejit_call_info(const TilejitCall *c, TilejitInfo *out, TilertError *err)
{
  const Form *f = c->form;
  TilertKernelInfo k;
  int status = tilert_kernel_info(f->kernel, &k, err);
  *out = (TilejitInfo){
    .compile_ms = f->compile_ms, .load_ms = f->load_ms, .registers = k.registers, .local_bytes = k.local_bytes,
    .static_shared = k.static_shared, .dynamic_shared = k.dynamic_shared, .threads = k.threads,
    .equal_1 = f->equal_1, .divisible_16 = f->divisible_16,
  };
  return status ? status : tilert_kernel_occupancy(f->kernel, &out->occupancy, err);
}

const char *
tilejit_call_ptx(const TilejitCall *c)
{
  return c->form->result->output;
}
