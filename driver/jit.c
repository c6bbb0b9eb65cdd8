/* jit.c - programs, their kernels, and launching them. How a launch finds compiled code is in jit_form.c. */
#include "jit_internal.h"
#include "../base/clauses.h"
#include "options.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SOURCE_MAX = 16 << 20, DEFINES_MAX = 1 << 10, IMPORTS_MAX = 1 << 10 };

int
jit_fail(TilertError *err, int status, const char *message)
{
  if (err) {
    memset(err, 0, sizeof *err);
    err->status = status;
    snprintf(err->message, sizeof err->message, "%s", message);
    char *line = strlen(message) >= sizeof err->message ? strrchr(err->message, '\n') : NULL;   /* whole lines */
    if (line)
      *line = 0;
    size_t n = strlen(err->message);
    if (n && err->message[n - 1] == '\n')
      err->message[n - 1] = 0;
  }
  return status;
}

int
jit_fail_about(TilertError *err, const TilejitKernel *k, const char *message, const char *name)
{
  char text[sizeof err->message];
  snprintf(text, sizeof text, "kernel %s: %s \"%.100s\"", k->name, message, name);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

int
jit_fail_named(TilertError *err, const char *message, const char *name)
{
  char text[200];
  snprintf(text, sizeof text, "%s \"%.100s\"", message, name);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

int
jit_no_memory(TilertError *err)
{
  return jit_fail(err, TILERT_E_MEMORY, "the host is out of memory");
}

int
jit_null(TilertError *err, const char *function, const char *pointer)
{
  char text[200];
  snprintf(text, sizeof text, "%s: %.*s is NULL", function, (int)strcspn(pointer, " "), pointer);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

double
jit_now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

char *
jit_copy_text(const char *text, size_t len)
{
  char *s = malloc(len + 1);
  if (s && len)
    memcpy(s, text, len);
  if (s)
    s[len] = 0;
  return s;
}

int
jit_take_options(void *all, size_t known, const void *o, const char *name, TilertError *err)
{
  char text[256];
  size_t size;
  if (!o)
    return TILERT_OK;
  memcpy(&size, o, sizeof size);
  options_take(all, known, o, size ? size : known);
  if (!options_newer(o, size, known))
    return TILERT_OK;
  snprintf(text, sizeof text, OPTIONS_NEWER, name, size, tilert_version(), known);
  return jit_fail(err, TILERT_E_ARGUMENT, text);
}

/* ---- programs ---- */

TilecOptions
jit_compile_options(const TilejitProgram *p)
{
  TilecOptions o;
  tilec_options_default(&o);
  o.target = p->target;
  o.emit = TILEC_EMIT_PTX;
  o.line_info = p->line_info;
  o.tensors = p->tensors;
  o.import_path = (const char *const *)p->import_path;
  o.nimport_path = p->nimport_path;
  return o;
}

void
jit_keep_diagnostics(TilejitProgram *p, const char *text)
{
  if (!text || !text[0])
    return;
  pthread_mutex_lock(&p->words);
  free(p->diagnostics);
  p->diagnostics = jit_copy_text(text, strlen(text));
  pthread_mutex_unlock(&p->words);
}

void
jit_forget_diagnostics(TilejitProgram *p)
{
  pthread_mutex_lock(&p->words);
  free(p->diagnostics);
  p->diagnostics = NULL;
  pthread_mutex_unlock(&p->words);
}

int
jit_check_result(TilejitProgram *p, const TilecResult *r, TilertError *err)
{
  if (!r)
    return jit_no_memory(err);
  jit_keep_diagnostics(p, r->diagnostics);
  if (r->status == 0)
    return TILERT_OK;
  if (r->status == TILEC_NO_MEMORY)
    return jit_no_memory(err);
  return jit_fail(err, r->status == TILEC_MISUSE ? TILERT_E_ARGUMENT : TILERT_E_COMPILE,
                  r->diagnostics && r->diagnostics[0] ? r->diagnostics : "the compiler failed and does not say why");
}

int
jit_describe(TilejitProgram *p, const TilejitKernel *k, int tuning, char **out, uint64_t sources[2], TilertError *err)
{
  TilecOptions o = jit_compile_options(p);
  if (p->form == FORM_PTX)
    return jit_describe_ptx(p, k ? k->name : NULL, out, err);
  if (k) {
    o.kernel = k->name;
    o.defines = k->defines;
    o.ndefines = k->ndefines;
    o.tuning = tuning;
  }
  TilecResult *r = tilec_describe(p->name, p->text, p->len, &o);
  int status = jit_check_result(p, r, err);
  if (!status && !(*out = jit_copy_text(r->output, r->output_len)))
    status = jit_no_memory(err);
  if (!status && sources)
    memcpy(sources, r->sources, sizeof r->sources);
  if (r)
    tilec_result_free(r);
  return status;
}

static int
too_large(const char *name, TilertError *err)
{
  char message[300];
  snprintf(message, sizeof message, "%.250s is larger than 16 MiB", name);
  return jit_fail(err, TILERT_E_COMPILE, message);
}

static int
check_imports(const TilejitOptions *o, TilertError *err)
{
  if (!o->import_path && o->nimport_path)
    return jit_fail(err, TILERT_E_ARGUMENT, "TilejitOptions: import_path is NULL");
  if (o->nimport_path > IMPORTS_MAX)
    return jit_fail(err, TILERT_E_ARGUMENT, "TilejitOptions: nimport_path is too large");
  for (size_t i = 0; i < o->nimport_path; i++)
    if (!o->import_path[i])
      return jit_fail(err, TILERT_E_ARGUMENT, "TilejitOptions: a folder in import_path is NULL");
  return TILERT_OK;
}

/* $TILEC_TENSORS. */
static int
tensors_asked(void)
{
  const char *word = getenv("TILEC_TENSORS");
  return !word                     ? TILEC_TENSORS_FOUND
         : !strcmp(word, "stated") ? TILEC_TENSORS_STATED
         : !strcmp(word, "none")   ? TILEC_TENSORS_NONE
                                   : TILEC_TENSORS_FOUND;
}

static int
copy_options(TilejitProgram *p, const TilejitOptions *given, TilertError *err)
{
  TilejitOptions o = {0};
  if (jit_take_options(&o, sizeof o, given, "TilejitOptions", err) || check_imports(&o, err))
    return TILERT_E_ARGUMENT;
  const char *target = o.target ? o.target : tilert_device_info(p->device)->target;
  p->specialise = !o.no_specialisation && p->form != FORM_PTX;
  p->line_info = !o.no_line_info;
  p->tensors = o.tensors ? o.tensors : tensors_asked();
  p->cache = o.no_cache ? NULL : cache_open(o.cache_dir, o.cache_limit);
  p->target = jit_copy_text(target, strlen(target));
  p->import_path = calloc(o.nimport_path + 1, sizeof *p->import_path);
  if (!p->target || !p->import_path)
    return jit_no_memory(err);
  for (size_t i = 0; i < o.nimport_path; i++, p->nimport_path++)
    if (!(p->import_path[i] = jit_copy_text(o.import_path[i], strlen(o.import_path[i]))))
      return jit_no_memory(err);
  return TILERT_OK;
}

static int
program_fill(TilejitProgram *p, const char *name, const char *text, size_t len, const TilejitOptions *o,
             TilertError *err)
{
  name = name && *name ? name : "<input>";
  if (len > SOURCE_MAX)
    return too_large(name, err);
  p->name = jit_copy_text(name, strlen(name));
  p->text = jit_copy_text(text, len);
  p->len = len;
  p->form = jit_source_form(name);
  if (!p->name || !p->text)
    return jit_no_memory(err);
  int status = copy_options(p, o, err);
  if (status)
    return status;
  if (!p->target[0] && p->form != FORM_PTX)
    return jit_fail(err, TILERT_E_UNAVAILABLE, "the compiler has no target for this device");
  return jit_describe(p, NULL, 0, &p->description, NULL, err);
}

int
tilejit_program_create(TilertDevice *dev, const char *name, const char *text, size_t len, const TilejitOptions *o,
                       TilejitProgram **out, TilertError *err)
{
  NEED(out);
  *out = NULL;
  NEED(dev);
  NEED(text || !len);
  TilejitProgram *p = calloc(1, sizeof *p);
  if (!p)
    return jit_no_memory(err);
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

/* What a file or pipe holds, as far as SOURCE_MAX + 1 bytes; 0 or an errno value. The text is malloc'ed. */
static int
read_text(int fd, char **text, size_t *len)
{
  size_t room = 0;
  for (*text = NULL, *len = 0; *len <= SOURCE_MAX;) {
    if (*len == room) {
      room = room ? 2 * room : 1 << 14;
      char *grown = realloc(*text, room);
      if (!grown)
        return ENOMEM;
      *text = grown;
    }
    ssize_t n = read(fd, *text + *len, room - *len);
    if (n == 0)
      return 0;
    if (n < 0 && errno != EINTR)
      return errno;
    *len += n < 0 ? 0 : (size_t)n;
  }
  return 0;
}

static int
read_file(const char *path, char **text, size_t *len, TilertError *err)
{
  char message[400];
  int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : read_text(fd, text, len);
  if (fd >= 0)
    close(fd);
  if (error == ENOMEM)
    return jit_no_memory(err);
  snprintf(message, sizeof message, "cannot read %.250s: %s", path, strerror(error));
  return error ? jit_fail(err, TILERT_E_ARGUMENT, message) : TILERT_OK;
}

int
tilejit_program_open(TilertDevice *dev, const char *path, const TilejitOptions *o, TilejitProgram **out,
                     TilertError *err)
{
  char *text = NULL;
  size_t len = 0;
  NEED(out);
  *out = NULL;
  NEED(dev);
  NEED(path);
  int status = read_file(path, &text, &len, err);
  if (!status)
    status = tilejit_program_create(dev, path, text, len, o, out, err);
  free(text);
  return status;
}

static void
kernel_destroy(TilejitKernel *k)
{
  for (size_t i = 0; i < BUCKETS; i++)
    for (Form *f = atomic_load_explicit(&k->forms[i], memory_order_acquire), *next; f; f = next) {
      next = f->next;
      jit_form_destroy(f);
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
  for (Choice *c = p->choices, *next; c; c = next) {
    next = c->next;
    free(c->config);
    free(c);
  }
  for (size_t i = 0; i < p->nimport_path; i++)
    free(p->import_path[i]);
  tilert_device_close(p->device);
  pthread_mutex_destroy(&p->lock);
  pthread_mutex_destroy(&p->words);
  cache_close(p->cache);
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
  if (!out)
    size = 0;
  if (size)
    out[0] = 0;
  if (!p)
    return 0;
  pthread_mutex_lock(&p->words);
  size_t n = p->diagnostics ? strlen(p->diagnostics) : 0;
  if (size)
    snprintf(out, size, "%s", p->diagnostics ? p->diagnostics : "");
  pthread_mutex_unlock(&p->words);
  return n;
}

size_t
tilejit_program_cache_trouble(TilejitProgram *p, char *out, size_t size)
{
  return cache_trouble(p ? p->cache : NULL, out, out ? size : 0);
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
    jit_no_memory(err);
    return NULL;
  }
  k->params = grown;
  TilejitParam *p = &grown[k->nparams++];
  memset(p, 0, sizeof *p);
  p->kind = kind;
  snprintf(p->name, sizeof p->name, "%.63s", name);
  return p;
}

/* null NAME, unread NAME: of the arguments so far. */
static uint64_t
bits_of(const TilejitKernel *k, const char *name)
{
  uint64_t bits = 0;
  size_t at = 0;
  for (size_t i = 0; i < k->nparams; i++) {
    if (k->params[i].kind != TILEJIT_ARGUMENT)
      continue;
    if (!strcmp(k->params[i].name, name) && at < TILERT_MAX_PARAMS)
      bits |= UINT64_C(1) << at;
    at++;
  }
  return bits;
}

/* shape X Y Z */
static void
read_shape(TilejitKernel *k, const Line *l)
{
  k->shaped = 1;
  for (int i = 0; i < 3; i++)
    k->block[i] = (uint32_t)strtoul(l->word[1 + i], NULL, 10);
}

/* param NAME pointer|scalar|raw TYPE / const NAME TYPE VALUE / type NAME VALUE / null NAME / unread NAME / shape X Y Z; VALUE is -
 * where there is none. */
static int
read_param(TilejitKernel *k, const Line *l, TilertError *err)
{
  if (!strcmp(l->word[0], "null"))
    return k->nullable |= bits_of(k, l->word[1]), TILERT_OK;
  if (!strcmp(l->word[0], "unread"))
    return k->unread |= bits_of(k, l->word[1]), TILERT_OK;
  if (!strcmp(l->word[0], "shape"))
    return read_shape(k, l), TILERT_OK;
  static const char *const words[] = {"param", "const", "type"};
  int kind = 0;
  while (kind < 3 && strcmp(l->word[0], words[kind]) != 0)
    kind++;
  if (kind == 3)
    return TILERT_OK;
  if (strlen(l->word[1]) >= sizeof k->params->name)
    return jit_fail_about(err, k, "the name of a parameter has more than 63 characters:", l->word[1]);
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
  int status = jit_describe(k->program, k, 0, &text, k->sources, err);
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
  return jit_fail(err, TILERT_E_ARGUMENT, found ? "the source holds several kernels: name the one you want"
                                            : "the source holds no kernel");
}

static int
copy_defines(TilejitKernel *k, const TilecDefine *defines, size_t n, TilertError *err)
{
  k->defines = calloc(n + 1, sizeof *k->defines);
  if (!k->defines)
    return jit_no_memory(err);
  for (; k->ndefines < n; k->ndefines++) {
    const TilecDefine *from = &defines[k->ndefines];
    TilecDefine *to = &k->defines[k->ndefines];
    to->name = jit_copy_text(from->name, strlen(from->name));
    to->value = jit_copy_text(from->value, strlen(from->value));
    if (!to->name || !to->value)
      return jit_no_memory(err);
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

/* The compiler lets a define pass that another kernel of the file knows. Clauses are every kernel's. */
static int
check_defines(TilejitKernel *k, TilertError *err)
{
  for (size_t i = 0; i < k->ndefines; i++) {
    const TilejitParam *p = param_find(k, k->defines[i].name);
    int clause = k->program->form == FORM_TILE && is_clause(k->defines[i].name);
    if (p ? p->kind == TILEJIT_ARGUMENT : !clause)
      return jit_fail_about(err, k, p ? "this parameter is passed at launch, not defined:"
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
is_tensor_type(const char *type)
{
  return !strncmp(type, "tensor<", 7);
}

/* Two arguments of one name, as IR text may have: then facts, which name them, cannot be given. */
static int
names_repeat(const TilejitKernel *k)
{
  for (size_t i = 0; i < k->nargs; i++)
    for (size_t n = 0; n < i; n++)
      if (!strcmp(k->args[i]->name, k->args[n]->name))
        return 1;
  return 0;
}

static int
list_args(TilejitKernel *k, TilertError *err)
{
  for (size_t i = 0; i < k->nparams; i++) {
    const TilejitParam *p = &k->params[i];
    if (p->kind != TILEJIT_ARGUMENT)
      continue;
    if (k->nargs == TILERT_MAX_PARAMS)
      return jit_fail_about(err, k, "too many parameters, the first being", p->name);
    k->integers |= (uint64_t)is_integer_type(p->type) << k->nargs;
    k->pointers |= (uint64_t)(p->type[0] == '*' || is_tensor_type(p->type)) << k->nargs;
    k->args[k->nargs++] = p;
  }
  k->integers &= ~k->unread;
  int repeat = names_repeat(k);
  if (!k->program->specialise || repeat)
    k->integers = k->pointers = 0;
  k->nullable = repeat ? 0 : k->nullable;   /* what the kernel asks about decides what it does: not a matter of speed */
  k->ones = k->program->form == FORM_TILE ? k->integers : 0;
  return TILERT_OK;
}

static int
kernel_new(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t n, TilejitKernel **out,
           TilertError *err)
{
  TilejitKernel *k = calloc(1, sizeof *k);
  if (!k)
    return jit_no_memory(err);
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

static int
check_request(const char *name, const TilecDefine *defines, size_t n, TilertError *err)
{
  if (name && strlen(name) >= TILERT_NAME_MAX)
    return jit_fail(err, TILERT_E_ARGUMENT, "the name of a kernel is too long");
  if (n > DEFINES_MAX)
    return jit_fail(err, TILERT_E_ARGUMENT, "too many defines");
  for (size_t i = 0; i < n; i++)
    if (!defines[i].name || !defines[i].value)
      return jit_fail(err, TILERT_E_ARGUMENT, "a define whose name or value is NULL");
  return TILERT_OK;
}

int
tilejit_kernel(TilejitProgram *p, const char *name, const TilecDefine *defines, size_t ndefines, TilejitKernel **out,
               TilertError *err)
{
  char only[TILERT_NAME_MAX];
  NEED(out);
  *out = NULL;
  NEED(p);
  NEED(defines || !ndefines);
  int status = check_request(name, defines, ndefines, err);
  if (!status && !name)
    status = only_kernel(p, only, err);
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
  return k ? k->name : NULL;
}

size_t
tilejit_kernel_param_count(const TilejitKernel *k)
{
  return k ? k->nparams : 0;
}

const TilejitParam *
tilejit_kernel_param(const TilejitKernel *k, size_t i)
{
  return k && i < k->nparams ? &k->params[i] : NULL;
}

int
tilejit_kernel_shape(const TilejitKernel *k, uint32_t block[3])
{
  if (block)
    memset(block, 0, 3 * sizeof *block);
  if (k && block)
    memcpy(block, k->block, sizeof k->block);
  return k && k->shaped;
}

size_t
tilejit_kernel_forms(const TilejitKernel *k)
{
  return k ? atomic_load(&k->nforms) : 0;
}

/* ---- launching ---- */

int
tilejit_launch(TilejitKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args, size_t nargs,
               TilertError *err)
{
  Form *f;
  NEED(k);
  NEED(args || !nargs);
  int status = jit_form_for(k, args, nargs, &f, err);
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
  if (nargs > TILERT_MAX_PARAMS)
    return jit_wrong_count(k, nargs, err);
  for (size_t i = 0; i < nargs; i++) {
    int at = names[i] ? arg_index(k, names[i]) : -1;
    if (!names[i])
      return jit_fail_about(err, k, "NULL is the name of an argument; there is, for example,", k->nargs ? k->args[0]->name : "");
    if (at < 0)
      return jit_fail_about(err, k, "no argument", names[i]);
    if (seen >> at & 1)
      return jit_fail_about(err, k, "given twice: argument", names[i]);
    seen |= UINT64_C(1) << at;
    ordered[at] = args[i];
  }
  for (size_t i = 0; i < k->nargs; i++)
    if (!(seen >> i & 1))
      return jit_fail_about(err, k, "missing argument", k->args[i]->name);
  return TILERT_OK;
}

int
tilejit_launch_named(TilejitKernel *k, TilertStream *s, const uint32_t grid[3], const char *const *names,
                     const TilertArg *args, size_t nargs, TilertError *err)
{
  TilertArg ordered[TILERT_MAX_PARAMS];
  NEED(k);
  NEED(names || !nargs);
  NEED(args || !nargs);
  int status = order_args(k, names, args, nargs, ordered, err);
  return status ? status : tilejit_launch(k, s, grid, ordered, nargs, err);
}

int
tilejit_call_create(TilejitKernel *k, const uint32_t grid[3], const char *const *names, const TilertArg *args,
                    size_t nargs, TilejitCall **out, TilertError *err)
{
  TilertArg ordered[TILERT_MAX_PARAMS];
  Form *f = NULL;
  NEED(out);
  *out = NULL;
  NEED(k);
  NEED(args || !nargs);
  int status = names ? order_args(k, names, args, nargs, ordered, err) : TILERT_OK;
  if (!status)
    status = jit_form_for(k, names ? ordered : args, nargs, &f, err);
  if (status)
    return status;
  TilejitCall *c = calloc(1, sizeof *c);
  if (!c)
    return jit_no_memory(err);
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
  NEED(c);
  NEED(grid);
  return tilert_launch_set_grid(c->launch, grid, err);
}

int
tilejit_call_launch(const TilejitCall *c, TilertStream *s, TilertError *err)
{
  NEED(c);
  return tilert_launch_packed(c->launch, s, err);
}

TilertLaunch *
tilejit_call_packed(const TilejitCall *c)
{
  return c ? c->launch : NULL;
}

int
tilejit_call_info(const TilejitCall *c, TilejitInfo *out, TilertError *err)
{
  NEED(c);
  NEED(out);
  const Form *f = c->form;
  TilertKernelInfo k;
  int status = tilert_kernel_info(f->kernel, &k, err);
  *out = (TilejitInfo){
    .compile_ms = f->compile_ms, .load_ms = f->load_ms, .registers = k.registers, .local_bytes = k.local_bytes,
    .static_shared = k.static_shared, .dynamic_shared = k.dynamic_shared, .threads = k.threads,
    .equal_1 = f->pattern.equal_1, .from_cache = (uint32_t)f->from_cache, .divisible_2 = f->pattern.divisible[0],
    .divisible_4 = f->pattern.divisible[1], .divisible_8 = f->pattern.divisible[2], .divisible_16 = f->pattern.divisible[3],
  };
  return status ? status : tilert_kernel_occupancy(f->kernel, &out->occupancy, err);
}

const char *
tilejit_call_ptx(const TilejitCall *c)
{
  return c ? c->form->ptx : NULL;
}
