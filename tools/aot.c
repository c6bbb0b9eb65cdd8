/* aot.c - which kernels, configurations and forms a file of kernels compiled ahead has, and compiling them.
 *
 * A function is a kernel with its const and type parameters set: those of -D, or of each --config. A function's forms are, for each target:
 * the patterns that were asked for (--form; none: no pattern), or one that is found; then the one that takes all arguments; and where that
 * copies boxes or relies on integers not to be negative, one behind it that does neither. Of pointers that a kernel compares with None
 * each form is there once for every answer. What tuning chose for some values of the arguments (--choices) comes in front, with the
 * forms of that configuration; what it chose for all takes the place of the kernel's own.
 *
 * Functions are compiled several at a time. Each keeps what it needs, and its messages, for itself until all are there.
 *
 * The pattern that is found: all addresses and integers are multiples of 16, as far as that makes other code. What makes none is left out,
 * and of the rest each integer need only be the least multiple that gives the same. */
#include "aot.h"
#include "../base/clauses.h"
#include "cubin.h"
#include "facts.h"
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NULLS_MAX = 3, WORD = 512, MOST_DIVISIBLE = 16 };

/* One kernel as tilec_describe tells of it. */
typedef struct Kernel { char *name; char *text; } Kernel;

/* A line of --choices: TARGET FACTS KERNEL:CONFIG. */
typedef struct Choice { const char *target, *facts, *kernel, *config; } Choice;

/* What was compiled on the way to the forms of one target, by what it assumes: a pattern is looked for in small steps, and where they end
 * is mostly where one of them was. */
typedef struct Tried { TilecFact *facts; size_t nfacts; int tensors; TilecResult *r; } Tried;

typedef struct Job Job;

typedef struct Emit {
  const AotOptions *o;
  AotFile file;
  const char *targets[AOT_TARGETS];
  size_t ntargets;
  Kernel *kernels;
  size_t nkernels;
  Choice *choices;
  size_t nchoices;
  FILE *say;                                /* messages go there */
  Job *jobs;                                /* of each function of the file what is to be compiled */
  Tried *tried;
  size_t ntried;
  void **kept;                              /* all that is to be freed in the end */
  size_t nkept;
} Emit;

static int
fail(const Emit *e, const char *format, const char *what)
{
  fputs("tilec: ", e->say);
  fprintf(e->say, format, what);
  fputc('\n', e->say);
  return 1;
}

/* Exits when there is no memory: this is a tool. */
static void *
keep(Emit *e, void *p)
{
  void **grown = realloc(e->kept, (e->nkept + 1) * sizeof *grown);
  if (!p || !grown) {
    fputs("tilec: out of memory\n", stderr);
    exit(1);
  }
  e->kept = grown;
  return e->kept[e->nkept++] = p;
}

static char *
keep_text(Emit *e, const char *s, size_t n)
{
  char *copy = keep(e, calloc(1, n + 1));
  memcpy(copy, s, n);
  return copy;
}

/* ---- what there is ---- */

static TilecResult *
describe(const Emit *e, const char *kernel, int tuning)
{
  TilecOptions o = *e->o->compile;
  o.kernel = kernel;
  o.ndefines = o.nfacts = 0;
  o.tuning = tuning;
  return tilec_describe(e->o->name, e->o->text, e->o->len, &o);
}

static int
say(const Emit *e, const TilecResult *r)
{
  if (!r)
    return fail(e, "%s", "out of memory");
  fputs(r->diagnostics, e->say);
  return r->status;
}

/* Is there a line that begins with these words, or, with rest, that has a word behind them? */
static const char *
line_find(const char *text, const char *word, const char *name)
{
  char start[WORD];
  int n = snprintf(start, sizeof start, "%s %s", word, name);
  for (const char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
    if (!strncmp(s, start, (size_t)n) && (!*name || s[n] == ' ' || s[n] == '\n'))
      return s;
  return NULL;
}

static int
add_kernel(Emit *e, const char *name, size_t len)
{
  Kernel *grown = keep(e, calloc(e->nkernels + 1, sizeof *grown));
  if (e->nkernels)
    memcpy(grown, e->kernels, e->nkernels * sizeof *grown);
  e->kernels = grown;
  Kernel *k = &grown[e->nkernels++];
  k->name = keep_text(e, name, len);
  TilecResult *r = describe(e, k->name, e->o->tune ? TILEC_TUNING_CLAUSES : TILEC_TUNING_NONE);
  int status = r && !r->status ? 0 : say(e, r);
  if (!status)
    k->text = keep_text(e, r->output, r->output_len);
  tilec_result_free(r);
  return status;
}

static int
find_kernels(Emit *e)
{
  TilecResult *r = describe(e, e->o->compile->kernel, TILEC_TUNING_NONE);
  int status = r && !r->status ? 0 : say(e, r);
  for (const char *s = status ? NULL : r->output; s && !status && (s = line_find(s, "kernel", "")); s++)
    status = add_kernel(e, s + 7, strcspn(s + 7, " \n"));
  tilec_result_free(r);
  return status;
}

static int
find_targets(Emit *e)
{
  const char *text = e->o->targets ? e->o->targets : e->o->compile->target;
  char *list = keep_text(e, text, strlen(text)), *rest = NULL;
  for (char *t = strtok_r(list, ",", &rest); t; t = strtok_r(NULL, ",", &rest)) {
    if (e->ntargets == AOT_TARGETS)
      return fail(e, "more than 16 targets; '%s' is the first that is", t);
    e->targets[e->ntargets++] = t;
  }
  return e->ntargets ? 0 : fail(e, "%s", "no target is named");
}

/* ---- facts ---- */

typedef struct Facts { TilecFact at[AOT_LIST]; size_t n; } Facts;

static bool
kernel_has(const Kernel *k, const char *name)
{
  return line_find(k->text, "param", name) || line_find(k->text, "const", name) || line_find(k->text, "type", name);
}

/* Those of --assume that are about this kernel, as all forms have them. */
static Facts
common_facts(const Emit *e, const Kernel *k)
{
  Facts f = {.n = 0};
  for (size_t i = 0; i < e->o->compile->nfacts; i++)
    if (kernel_has(k, e->o->compile->facts[i].name))
      f.at[f.n++] = e->o->compile->facts[i];
  return f;
}

static int
add_fact(const Emit *e, Facts *f, TilecFact x)
{
  if (f->n == AOT_LIST)
    return fail(e, "too many facts; that about '%s' is the first that is", x.name);
  f->at[f->n++] = x;
  return 0;
}

static bool
has_fact(const Facts *f, const char *name)
{
  for (size_t i = 0; i < f->n; i++)
    if (!strcmp(f->at[i].name, name))
      return true;
  return false;
}

static int
add_pattern(Emit *e, const Kernel *k, const char *text, const char *option, Facts *f)
{
  char *list = keep_text(e, text, strlen(text)), *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
    TilecFact x;
    const char *wrong = fact_parse(one, &x);
    char message[160];
    snprintf(message, sizeof message, "%s: %s", option, wrong ? wrong : "");
    if (wrong)
      return fail(e, message, one);
    if (kernel_has(k, x.name) && (!x.other || kernel_has(k, x.other)) && add_fact(e, f, x))
      return 1;
  }
  return 0;
}

/* ---- compiling ---- */

typedef struct Setting { const TilecDefine *defines; size_t n; } Setting;

static TilecResult *
compile(const Emit *e, const Kernel *k, Setting s, const Facts *f, const char *target, int tensors)
{
  TilecOptions o = *e->o->compile;
  o.kernel = k->name;
  o.defines = s.defines;
  o.ndefines = s.n;
  o.facts = f->at;
  o.nfacts = f->n;
  o.target = target;
  o.tensors = tensors;
  return tilec_compile(e->o->name, e->o->text, e->o->len, &o);
}

static bool
same_word(const char *a, const char *b)
{
  return a && b ? !strcmp(a, b) : a == b;
}

static bool
was_tried(const Tried *t, const Facts *f, int tensors)
{
  bool same = t->r && t->tensors == tensors && t->nfacts == f->n;
  for (size_t i = 0; same && i < f->n; i++) {
    const TilecFact *a = &t->facts[i], *b = &f->at[i];
    same = a->kind == b->kind && a->value == b->value && same_word(a->name, b->name) && same_word(a->other, b->other);
  }
  return same;
}

/* compile(), whose result is e's; the same as before if it was there before. */
static Tried *
try_compile(Emit *e, const Kernel *k, Setting s, const Facts *f, const char *target, int tensors)
{
  for (size_t i = 0; i < e->ntried; i++)
    if (was_tried(&e->tried[i], f, tensors))
      return &e->tried[i];
  Tried *grown = realloc(e->tried, (e->ntried + 1) * sizeof *grown);
  if (!grown)
    keep(e, NULL);
  e->tried = grown;
  Tried *t = &grown[e->ntried++];
  *t = (Tried){keep(e, calloc(f->n + 1, sizeof *f->at)), f->n, tensors, compile(e, k, s, f, target, tensors)};
  memcpy(t->facts, f->at, f->n * sizeof *f->at);
  return t;
}

/* The same, for the caller to keep. */
static TilecResult *
take_compiled(Emit *e, const Kernel *k, Setting s, const Facts *f, const char *target, int tensors)
{
  Tried *t = try_compile(e, k, s, f, target, tensors);
  TilecResult *r = t->r;
  t->r = NULL;
  return r;
}

/* What is tried from here on is of another setting or target. */
static void
forget_tried(Emit *e)
{
  for (size_t i = 0; i < e->ntried; i++)
    tilec_result_free(e->tried[i].r);
  e->ntried = 0;
}

/* The code behind the manifest's line. */
static const char *
code_of(const TilecResult *r)
{
  const char *s = r->output;
  while (s && !strncmp(s, "//@tilec", 8) && strchr(s, '\n'))
    s = strchr(s, '\n') + 1;
  return s;
}

/* Do these facts give that code? */
static bool
gives(Emit *e, const Kernel *k, Setting s, const Facts *f, const char *target, const TilecResult *code)
{
  const TilecResult *r = try_compile(e, k, s, f, target, e->o->compile->tensors)->r;
  return r && !r->status && !strcmp(code_of(r), code_of(code));
}

/* Without fact i, or with the least divisor of the integer that does. */
static void
weaken(Emit *e, const Kernel *k, Setting s, Facts *f, size_t i, const char *target, const TilecResult *code)
{
  static const int64_t less[] = {4, 8};
  Facts with = *f;
  memmove(&with.at[i], &with.at[i + 1], (--with.n - i) * sizeof *with.at);
  if (gives(e, k, s, &with, target, code)) {
    *f = with;
    return;
  }
  for (size_t j = 0; j < sizeof less / sizeof *less; j++) {
    with = *f;
    with.at[i].value = less[j];
    if (gives(e, k, s, &with, target, code)) {
      *f = with;
      return;
    }
  }
}

/* What the kernel itself says of an argument need not be assumed. */
static void
assume_aligned(const TilecResult *general, Facts *f)
{
  uint32_t first[TILERT_MAX_PARAMS], n = tilert_manifest_args(&general->manifests[0], first);
  for (uint32_t i = 0; i < n; i++) {
    const TilertParam *p = &general->manifests[0].params[first[i]];
    bool whole = p->kind == TILERT_PARAM_SCALAR && (*p->dtype == 'i' || *p->dtype == 'u') && strcmp(p->dtype, "i1") != 0;
    bool address = p->kind == TILERT_PARAM_POINTER && p->null != TILERT_NULL_ALWAYS;
    if ((whole || address) && p->divisible % MOST_DIVISIBLE != 0 && !has_fact(f, p->name) && f->n < AOT_LIST)
      f->at[f->n++] = (TilecFact){.name = p->name, .kind = TILEC_FACT_DIVISIBLE, .value = MOST_DIVISIBLE};
  }
}

/* What of alignment makes other code than `general`, which was compiled for f: added to f; false: nothing does. */
static bool
find_pattern(Emit *e, const Kernel *k, Setting s, Facts *f, const char *target, const TilecResult *general)
{
  size_t before = f->n;
  assume_aligned(general, f);
  const TilecResult *full = try_compile(e, k, s, f, target, e->o->compile->tensors)->r;
  bool better = full && !full->status && strcmp(code_of(full), code_of(general)) != 0;
  for (size_t i = f->n; better && i-- > before;)
    weaken(e, k, s, f, i, target, full);
  for (size_t i = before; i < f->n; i++)       /* general's own text goes away with it */
    f->at[i].name = keep_text(e, f->at[i].name, strlen(f->at[i].name));
  return better && f->n > before;
}

/* ---- the forms of a function ---- */

static int
assemble(Emit *e, AotForm *f)
{
  char message[4096];
  if (!e->o->cubin)
    return 0;
  f->cubin = cubin_assemble(f->r->output, f->r->output_len, f->target, &f->cubin_len, message, sizeof message);
  if (!f->cubin)
    return fail(e, "%s", message);
  keep(e, f->cubin);
  return 0;
}

static int
add_form(Emit *e, AotFunction *fn, const Kernel *k, Setting s, const Facts *f, const char *target, int tensors, AotForm **out)
{
  AotForm *grown = keep(e, calloc(fn->nforms + 1, sizeof *grown));
  if (fn->nforms)
    memcpy(grown, fn->forms, fn->nforms * sizeof *grown);
  fn->forms = grown;
  AotForm *form = *out = &grown[fn->nforms++];
  form->target = target;
  form->facts = keep(e, calloc(f->n + 1, sizeof *f->at));
  memcpy(form->facts, f->at, f->n * sizeof *f->at);
  form->nfacts = f->n;
  form->r = take_compiled(e, k, s, f, target, tensors);
  return form->r && !form->r->status ? assemble(e, form) : say(e, form->r);
}

/* Are there arguments that the form does not take because of boxes or of signs? */
static bool
is_choosy(const TilecResult *r)
{
  const TilertManifest *m = &r->manifests[0];
  for (uint32_t i = 0; i < m->nparams; i++) {
    const TilertParam *p = &m->params[i];
    bool map = (p->kind == TILERT_PARAM_TENSOR && p->part == TILERT_TENSOR_MAP) || p->kind == TILERT_PARAM_VIEW;
    if (map || p->nonneg)
      return true;
  }
  return false;
}

/* The forms for one target, and one answer of which pointers are null. found: alignment is found, whatever patterns are asked for. */
static int
add_forms(Emit *e, AotFunction *fn, const Kernel *k, Setting s, const Facts *nulls, const char *target, bool found)
{
  AotForm *form;
  Facts f;
  int status = 0;
  const int tensors = e->o->compile->tensors;
  for (size_t i = 0; !status && !found && i < e->o->nforms; i++) {
    if (!strcmp(e->o->forms[i], "none"))
      continue;
    f = *nulls;
    status = add_pattern(e, k, e->o->forms[i], "--form", &f);
    if (!status && f.n > nulls->n)
      status = add_form(e, fn, k, s, &f, target, tensors, &form);
  }
  const TilecResult *general = status || (e->o->nforms && !found) ? NULL : try_compile(e, k, s, nulls, target, tensors)->r;
  f = *nulls;
  if (general && !general->status && find_pattern(e, k, s, &f, target, general))
    status = add_form(e, fn, k, s, &f, target, tensors, &form);
  if (!status)
    status = add_form(e, fn, k, s, nulls, target, tensors, &form);
  if (!status && is_choosy(form->r))
    status = add_form(e, fn, k, s, nulls, target, TILEC_TENSORS_NONE, &form);
  forget_tried(e);
  return status;
}

/* The pointers that the kernel compares with None, without those that a fact or define settles. */
static size_t
nulls_of(Emit *e, const Kernel *k, Setting s, const Facts *common, const char *names[NULLS_MAX + 1])
{
  size_t n = 0;
  for (const char *l = k->text; (l = line_find(l, "null", "")) != NULL; l++) {
    char *name = keep_text(e, l + 5, strcspn(l + 5, "\n"));
    bool set = has_fact(common, name);
    for (size_t i = 0; i < s.n; i++)
      set |= !strcmp(s.defines[i].name, name);
    for (size_t i = 0; i < e->o->nforms; i++)     /* a form that says it: then forms are what they say */
      set |= strstr(e->o->forms[i], name) && strstr(e->o->forms[i], "None");
    if (!set && n <= NULLS_MAX)
      names[n++] = name;
  }
  return n;
}

/* ---- settings ---- */

/* The end of a value: at a comma or tab outside of brackets. */
static size_t
value_length(const char *s, char stop)
{
  size_t n = 0;
  for (int deep = 0; s[n] && (deep || s[n] != stop); n++)
    deep += strchr("([{", s[n]) != NULL ? 1 : strchr(")]}", s[n]) != NULL ? -1 : 0;
  return n;
}

/* -D's that are this kernel's, and those of a configuration, which come first. */
static int
settings(Emit *e, const Kernel *k, const char *config, char stop, TilecDefine *out, size_t *n)
{
  *n = 0;
  for (const char *s = config; *s && *n < AOT_LIST;) {
    size_t len = value_length(s, stop), name = strcspn(s, "=");
    if (!name || name >= len)
      return fail(e, "--config wants [KERNEL:]NAME=VALUE,NAME=VALUE, not '%s'", config);
    out[(*n)++] = (TilecDefine){keep_text(e, s, name), keep_text(e, s + name + 1, len - name - 1)};
    s += len + (s[len] == stop);
  }
  for (size_t i = 0, own = *n; i < e->o->compile->ndefines && *n < AOT_LIST; i++) {
    const TilecDefine *d = &e->o->compile->defines[i];
    bool set = !kernel_has(k, d->name) && !is_clause(d->name);
    for (size_t j = 0; j < own; j++)
      set |= !strcmp(out[j].name, d->name);
    if (!set)
      out[(*n)++] = *d;
  }
  return 0;
}

/* ---- what tuning chose ---- */

/* What code may know of an integer that is x: of one that is not 1 by what it can be divided, as other launches know no more. */
static TilecFact
known_of(TilecFact x)
{
  int64_t by = MOST_DIVISIBLE;
  if (x.kind != TILEC_FACT_EQUAL || x.value == 1)
    return x;
  while (x.value % by)
    by /= 2;
  return (TilecFact){.name = x.name, .kind = TILEC_FACT_DIVISIBLE, .value = by};
}

/* The facts of a choice: to *when, and what code may know of them beside *f. *fits: they do not contradict which pointers are null. */
static int
choice_facts(Emit *e, const Kernel *k, const Choice *c, Facts *f, Facts *when, bool *fits)
{
  *fits = true;
  when->n = 0;
  int status = add_pattern(e, k, c->facts, "--choices", when);
  for (size_t i = 0; !status && i < when->n; i++) {
    const TilecFact x = known_of(when->at[i]);
    for (size_t j = 0; j < f->n; j++)
      *fits &= strcmp(f->at[j].name, x.name) != 0 || x.kind != TILEC_FACT_NULL || f->at[j].value == x.value;
    if (!has_fact(f, x.name) && (x.kind != TILEC_FACT_DIVISIBLE || x.value > 1))
      status = add_fact(e, f, x);
  }
  return status;
}

/* The function's newest forms, from `first` on, are for launches of which this holds. */
static void
restrict_forms(Emit *e, AotFunction *fn, size_t first, const Facts *when)
{
  for (size_t i = first; i < fn->nforms; i++) {
    AotForm *form = &fn->forms[i];
    TilecFact *grown = keep(e, calloc(form->nfacts + when->n + 1, sizeof *grown));
    memcpy(grown, form->facts, form->nfacts * sizeof *grown);
    for (size_t j = 0; j < when->n; j++)
      if (when->at[j].kind == TILEC_FACT_EQUAL)
        grown[form->nfacts++] = when->at[j];
    form->facts = grown;
  }
}

static bool
is_for(const Choice *c, const Kernel *k, const char *target)
{
  return !strcmp(c->kernel, k->name) && !strcmp(c->target, target);
}

/* Forms of what was chosen for some values; *s becomes what was chosen for all. */
static int
add_chosen(Emit *e, AotFunction *fn, const Kernel *k, Setting *s, const Facts *nulls, const char *target)
{
  int status = 0;
  for (size_t i = 0; !status && i < e->nchoices; i++) {
    const Choice *c = &e->choices[i];
    if (!is_for(c, k, target))
      continue;
    TilecDefine *defines = keep(e, calloc(AOT_LIST, sizeof *defines));
    Facts f = *nulls, when;
    Setting chosen = {defines, 0};
    bool fits;
    status = settings(e, k, c->config, ',', defines, &chosen.n);
    if (!status && !strcmp(c->facts, "-")) {
      *s = chosen;
      continue;
    }
    const size_t first = fn->nforms;
    if (!status)
      status = choice_facts(e, k, c, &f, &when, &fits);
    if (!status && fits)
      status = add_forms(e, fn, k, chosen, &f, target, true);
    if (!status)
      restrict_forms(e, fn, first, &when);
  }
  return status;
}

/* All forms take the same arguments, and say themselves how many programs there are. */
static int
check_chosen(const Emit *e, const AotFunction *fn)
{
  const TilertManifest *own = &fn->forms[fn->nforms - 1].r->manifests[0];
  for (size_t i = 0; i + 1 < fn->nforms; i++) {
    const TilertManifest *m = &fn->forms[i].r->manifests[0];
    uint32_t first[TILERT_MAX_PARAMS], n = tilert_manifest_args(m, first), own_first[TILERT_MAX_PARAMS];
    bool same = n == tilert_manifest_args(own, own_first);
    for (uint32_t a = 0; same && a < n; a++)
      same = !strcmp(m->params[first[a]].dtype, own->params[own_first[a]].dtype);
    if (!same)
      return fail(e, "--choices: a choice for kernel %s is for other types of arguments than the kernel has here: set them by -D",
                  fn->kernel);
    if (!m->grid[0])
      return fail(e, "--choices: kernel %s has no grid clause, and its callers cannot know the choice: --config sets one", fn->kernel);
  }
  return 0;
}

static int
fill_forms(Emit *e, AotFunction *fn, const Kernel *k, Setting s, bool choose)
{
  const char *names[NULLS_MAX + 1];
  Facts common = common_facts(e, k);
  size_t n = nulls_of(e, k, s, &common, names);
  int status = 0;
  if (n > NULLS_MAX)
    return fail(e, "kernel %s asks of more than 3 pointers whether they are None: settle some with --assume=NAME=None or NAME!=None",
                k->name);
  for (size_t t = 0; t < e->ntargets; t++)
    for (uint32_t answer = 0; !status && answer < 1u << n; answer++) {
      Facts f = common;
      Setting own = s;
      for (size_t i = 0; !status && i < n; i++)
        status = add_fact(e, &f, (TilecFact){.name = names[i], .kind = TILEC_FACT_NULL, .value = answer >> i & 1});
      if (!status && choose)
        status = add_chosen(e, fn, k, &own, &f, e->targets[t]);
      if (!status)
        status = add_forms(e, fn, k, own, &f, e->targets[t], false);
    }
  for (size_t i = 0; !status && choose && i < e->nchoices; i++)
    if (!strcmp(e->choices[i].kernel, k->name))
      status = check_chosen(e, fn);
  return status;
}

/* What the arguments are, by the last form, and what holds in all. */
static void
know_arguments(Emit *e, AotFunction *fn, const Kernel *k)
{
  char name[AOT_NAME];
  fn->m = &fn->forms[fn->nforms - 1].r->manifests[0];
  fn->nargs = tilert_manifest_args(fn->m, fn->first);
  fn->reads = fn->nullable = ~UINT64_C(0);
  for (size_t i = 0; i < fn->nforms; i++) {
    uint32_t first[TILERT_MAX_PARAMS], n = tilert_manifest_args(&fn->forms[i].r->manifests[0], first);
    for (uint32_t a = 0; a < n; a++) {
      const TilertParam *p = &fn->forms[i].r->manifests[0].params[first[a]];
      const bool ignored = p->kind == TILERT_PARAM_POINTER && p->reads == TILERT_READS_NOTHING;
      fn->reads &= ~((uint64_t)(p->reads == TILERT_READS_NOT_ONLY) << a);
      fn->nullable &= ~((uint64_t)!ignored << a);
    }
  }
  for (uint32_t a = 0; a < fn->nargs; a++)
    if (line_find(k->text, "null", fn->m->params[fn->first[a]].name))
      fn->nullable |= UINT64_C(1) << a;
  fn->names = keep(e, calloc(fn->nargs + 1, sizeof *fn->names));
  for (uint32_t a = 0; a < fn->nargs; a++) {
    aot_arg_name(fn, a, name);
    fn->names[a] = keep_text(e, name, strlen(name));
  }
}

/* ---- compiling functions, several at a time ---- */

/* own: what the function's forms keep, and where its messages go, which are said when those of the functions before it have been. */
struct Job { const Kernel *kernel; Setting setting; bool choose; int status; Emit own; char *words; size_t nwords; };

typedef struct Crew { Emit *e; atomic_size_t next, failed; } Crew;

static void
do_job(Crew *c, size_t i)
{
  Job *j = &c->e->jobs[i];
  AotFunction *fn = &c->e->file.functions[i];
  j->own = *c->e;
  j->own.kept = NULL;
  j->own.nkept = 0;
  j->own.say = open_memstream(&j->words, &j->nwords);
  if (!j->own.say)
    keep(&j->own, NULL);
  j->status = fill_forms(&j->own, fn, j->kernel, j->setting, j->choose);
  if (!j->status)
    know_arguments(&j->own, fn, j->kernel);
  fclose(j->own.say);
  for (size_t first = atomic_load(&c->failed); j->status && i < first && !atomic_compare_exchange_weak(&c->failed, &first, i);) {}
}

/* Behind a function that cannot be had none is begun. */
static void *
work(void *crew)
{
  Crew *c = crew;
  for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < c->e->file.n && i < atomic_load(&c->failed);)
    do_job(c, i);
  return NULL;
}

/* What a function's forms keep is e's from here on; its messages are said, unless an earlier one failed. */
static void
end_job(Emit *e, Job *j, bool say)
{
  if (say && j->words)
    fputs(j->words, e->say);
  free(j->words);
  for (size_t i = 0; i < j->own.nkept; i++)
    keep(e, j->own.kept[i]);
  free(j->own.kept);
  free(j->own.tried);
}

static int
compile_functions(Emit *e)
{
  enum { CREW = 64 };
  pthread_t crew[CREW];
  Crew c = {.e = e};
  atomic_init(&c.next, 0);
  atomic_init(&c.failed, e->file.n);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  size_t wanted = e->o->jobs ? e->o->jobs : online > 0 ? (size_t)online : 1, n = 0;
  while (n + 1 < wanted && n + 1 < e->file.n && n < CREW && !pthread_create(&crew[n], NULL, work, &c))
    n++;
  work(&c);
  for (size_t i = 0; i < n; i++)
    pthread_join(crew[i], NULL);
  const size_t failed = atomic_load(&c.failed);
  for (size_t i = 0; i < e->file.n; i++)
    end_job(e, &e->jobs[i], i <= failed);
  return failed < e->file.n ? e->jobs[failed].status : 0;
}

/* ---- functions ---- */

/* KERNEL, or KERNEL_BM64_BN128. */
static char *
function_name(Emit *e, const char *kernel, const char *config)
{
  const char *prefix = e->o->prefix ? e->o->prefix : "";
  char *name = keep(e, calloc(1, strlen(prefix) + strlen(kernel) + strlen(config) + 2));
  char *to = name + sprintf(name, "%s%s%s", prefix, kernel, *config ? "_" : "");
  for (const char *s = config; *s; s++)
    if (isalnum((unsigned char)*s))
      *to++ = *s;
    else if (*s == ',' || *s == '.' || *s == '-')
      *to++ = '_';
  return name;
}

static int
check_function(const Emit *e, const char *name)
{
  const char *reason = aot_function_reason(name);
  char message[160];
  snprintf(message, sizeof message, "'%%s' is %s: --prefix=NAME_ puts a prefix in front of all functions", reason ? reason : "");
  return reason ? fail(e, message, name) : 0;
}

static int
check_name(const Emit *e, const char *name)
{
  for (size_t i = 0; i < e->file.n; i++)
    if (!strcmp(e->file.functions[i].name, name))
      return fail(e, "two functions would be called '%s'", name);
  return 0;
}

static int
add_function(Emit *e, const Kernel *k, Setting s, const char *config, bool choose)
{
  char *name = function_name(e, k->name, config);
  if (check_name(e, name))
    return 1;
  AotFunction *grown = keep(e, calloc(e->file.n + 1, sizeof *grown));
  Job *jobs = keep(e, calloc(e->file.n + 1, sizeof *jobs));
  if (e->file.n) {
    memcpy(grown, e->file.functions, e->file.n * sizeof *grown);
    memcpy(jobs, e->jobs, e->file.n * sizeof *jobs);
  }
  e->file.functions = grown;
  e->jobs = jobs;
  jobs[e->file.n] = (Job){.kernel = k, .setting = s, .choose = choose};
  grown[e->file.n++] = (AotFunction){.name = name, .kernel = k->name, .config = keep_text(e, config, strlen(config))};
  return 0;
}

static int
add_config(Emit *e, const Kernel *k, const char *config, char stop, bool choose)
{
  TilecDefine *defines = keep(e, calloc(AOT_LIST, sizeof *defines));
  char *text = keep_text(e, config, strlen(config));
  size_t n;
  int status = settings(e, k, config, stop, defines, &n);
  for (char *s = text; *s; s++)
    *s = *s == '\t' ? ',' : *s;
  return status ? status : add_function(e, k, (Setting){defines, n}, text, choose);
}

/* The configuration if it is this kernel's: with its name in front, or without a name if there is but one kernel. */
static const char *
config_for(const Emit *e, const Kernel *k, const char *config)
{
  size_t n = strcspn(config, ":="), own = strlen(k->name);
  if (config[n] == ':')
    return n == own && !strncmp(config, k->name, n) ? config + n + 1 : NULL;
  return e->nkernels == 1 ? config : NULL;
}

static int
check_choices(const Emit *e)
{
  for (size_t i = 0; i < e->nchoices; i++) {
    bool found = false;
    for (size_t k = 0; k < e->nkernels; k++)
      found |= !strcmp(e->choices[i].kernel, e->kernels[k].name);
    if (!found)
      return fail(e, "--choices: there is no kernel '%s'", e->choices[i].kernel);
  }
  return 0;
}

static int
check_configs(const Emit *e)
{
  for (size_t i = 0; i < e->o->nconfigs; i++) {
    bool found = false;
    for (size_t k = 0; k < e->nkernels; k++)
      found |= config_for(e, &e->kernels[k], e->o->configs[i]) != NULL;
    if (!found)
      return fail(e, e->nkernels == 1 ? "--config: no kernel has this name: '%s'" : "--config: put a kernel's name in front, KERNEL:%s",
                  e->o->configs[i]);
  }
  return 0;
}

static int
add_functions(Emit *e, const Kernel *k)
{
  int status = 0;
  size_t before = e->file.n;
  for (size_t i = 0; !status && i < e->o->nconfigs; i++) {
    const char *config = config_for(e, k, e->o->configs[i]);
    if (config)
      status = add_config(e, k, config, ',', false);
  }
  for (const char *s = e->o->tune ? k->text : NULL; !status && s && (s = line_find(s, "tune", "")); s++)
    status = add_config(e, k, keep_text(e, s + 5, strcspn(s + 5, "\n")), '\t', false);
  return status || e->file.n > before ? status : add_config(e, k, "", ',', true);
}

/* A kernel with one configuration is called by its name alone. */
static void
shorten_names(Emit *e)
{
  for (size_t i = 0; i < e->file.n; i++) {
    size_t same = 0;
    for (size_t j = 0; j < e->file.n; j++)
      same += !strcmp(e->file.functions[i].kernel, e->file.functions[j].kernel);
    if (same == 1)
      e->file.functions[i].name = function_name(e, e->file.functions[i].kernel, "");
  }
}

/* Of functions, and of the file's own. */
static int
check_names(const Emit *e)
{
  int status = 0;
  char module[AOT_NAME], space[AOT_NAME], own[AOT_NAME + 8];
  if (aot_module_names(&e->file, module, space))
    return fail(e, "the name is too long: %s", e->o->output);
  for (size_t i = 0; !status && i < e->file.n; i++)
    status = check_function(e, e->file.functions[i].name);
  for (int i = 0; !status && i < 2; i++) {
    snprintf(own, sizeof own, "%s_%s", module, i ? "unload" : "load");
    status = check_name(e, own);
  }
  return status;
}

static int
check_defines(const Emit *e)
{
  for (size_t i = 0; i < e->o->compile->ndefines; i++) {
    bool found = is_clause(e->o->compile->defines[i].name);
    for (size_t k = 0; k < e->nkernels; k++)
      found |= kernel_has(&e->kernels[k], e->o->compile->defines[i].name);
    if (!found)
      return fail(e, "no kernel has a const or type parameter '%s'", e->o->compile->defines[i].name);
  }
  return 0;
}

static void
emit_free(Emit *e)
{
  for (size_t i = 0; i < e->file.n; i++)
    for (size_t j = 0; j < e->file.functions[i].nforms; j++)
      tilec_result_free(e->file.functions[i].forms[j].r);
  for (size_t i = 0; i < e->nkept; i++)
    free(e->kept[i]);
  free(e->kept);
}

/* Of a line, cut into its words; false: it is none. */
static bool
parse_choice(char *line, Choice *out)
{
  char *facts = strchr(line, ' '), *kernel = facts ? strchr(facts + 1, ' ') : NULL, *config = kernel ? strchr(kernel + 1, ':') : NULL;
  if (!config || facts == line || kernel == facts + 1)
    return false;
  *facts = *kernel = *config = 0;
  *out = (Choice){line, facts + 1, kernel + 1, config + 1};
  return true;
}

static int
find_choices(Emit *e)
{
  char *rest = NULL;
  for (char *line = e->o->choices ? strtok_r(e->o->choices, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
    if (*line == '#' || !line[strspn(line, " \t\r")])
      continue;
    Choice *grown = keep(e, calloc(e->nchoices + 1, sizeof *grown));
    if (e->nchoices)
      memcpy(grown, e->choices, e->nchoices * sizeof *grown);
    e->choices = grown;
    if (!parse_choice(line, &grown[e->nchoices++]))
      return fail(e, "--choices wants lines TARGET FACTS KERNEL:NAME=VALUE,..., not '%s'", line);
  }
  return 0;
}

int
aot_emit(const AotOptions *o)
{
  Emit emit = {.o = o, .file.o = o, .say = stderr}, *const e = &emit;
  int status = find_targets(e);
  if (!status)
    status = find_choices(e);
  if (!status)
    status = find_kernels(e);
  if (!status && !e->nkernels)
    status = fail(e, "%s holds no kernel", o->name);
  if (!status)
    status = check_configs(e);
  if (!status)
    status = check_choices(e);
  if (!status)
    status = check_defines(e);
  for (size_t i = 0; !status && i < e->nkernels; i++)
    status = add_functions(e, &e->kernels[i]);
  if (!status)
    status = compile_functions(e);
  if (!status) {
    shorten_names(e);
    status = check_names(e);
  }
  if (!status)
    status = aot_write(&e->file);
  emit_free(e);
  return status;
}
