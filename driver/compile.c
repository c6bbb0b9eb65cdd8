/* compile.c - the compiler as a function: source text in, text of the wanted stage out. */
#include <stdio.h>
#include <stdlib.h>
#include "cache.h"
#include "codegen.h"
#include "frontend.h"
#include "options.h"
#include "passes.h"
#include "search.h"
#include "tables.h"
#include "tilec.h"
#include "tilert.h"

enum { LIST_MAX = 1 << 10, DEFINE_MAX = 1 << 20, DIVISOR_MAX = 1 << 30, SOURCE_MAX = 16 << 20 };

const char *
tilec_version(void)
{
  return TILEC_VERSION;
}

void
tilec_options_default(TilecOptions *o)
{
  if (!o) return;
  memset(o, 0, sizeof *o);
  o->size = sizeof *o;
  o->target = "sm_90a";
  o->emit = TILEC_EMIT_PTX;
  o->line_info = 1;
  o->opt_level = 1;
}

/* What one call works with; lives in the Ctx's arena except for the result. */
typedef struct Job {
  Ctx *ctx;
  const TilecOptions *given;     /* the caller's, NULL: none */
  TilecOptions own;              /* what is known of them */
  const TilecOptions *opt;
  const char *name, *text;
  size_t len;
  unsigned elem_bits;            /* of what is drawn */
  Buf out, dump, timing;
  Buf said;                      /* an error that is in no source */
  bool ok;
  TilertManifest *manifests;
  size_t nmanifests;
} Job;

static bool
misuse(Job *j, const char *what, const char *value, const char *hint)
{
  const char *text = hint    ? arena_printf(j->ctx->perm, "%s '%s' (did you mean '%s'?)", what, value, hint)
                     : value ? arena_printf(j->ctx->perm, "%s '%s'", what, value) : what;
  diag(j->ctx, (Span){0, 0}, E_MISUSE, text);
  return false;
}

static const char *
define_trouble(const TilecDefine *d, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!d[i].name || !d[i].value) return "a define whose name or value is NULL";
    else if (strlen(d[i].name) > DEFINE_MAX || strlen(d[i].value) > DEFINE_MAX) return "a define of more than 1 MiB";
  return NULL;
}

static const char *
fact_trouble(const TilecFact *f, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!f[i].name || (f[i].kind == TILEC_FACT_SAME && !f[i].other)) return "a fact whose name is NULL";
    else if ((unsigned)f[i].kind > TILEC_FACT_SAME) return "a fact of unknown kind";
    else if (f[i].kind == TILEC_FACT_DIVISIBLE && (f[i].value < 1 || f[i].value > DIVISOR_MAX))
      return "a fact of divisibility by less than 1 or more than 2^30";
  return NULL;
}

static const char *
list_trouble(const TilecOptions *o)
{
  if (o->ndefines > LIST_MAX || o->nfacts > LIST_MAX || o->nimport_path > LIST_MAX) return "too many defines, facts or folders of imports";
  if ((o->ndefines && !o->defines) || (o->nfacts && !o->facts) || (o->nimport_path && !o->import_path)) return "a list of options is NULL";
  for (size_t i = 0; i < o->nimport_path; i++)
    if (!o->import_path[i]) return "a folder of imports that is NULL";
  const char *why = define_trouble(o->defines, o->ndefines);
  return why ? why : fact_trouble(o->facts, o->nfacts);
}

/* Can the two facts be true together? */
static bool
facts_agree(const TilecFact *a, const TilecFact *b)
{
  if (strcmp(a->name, b->name)) return true;
  if (a->kind == b->kind && (a->kind == TILEC_FACT_EQUAL || a->kind == TILEC_FACT_NULL)) return a->value == b->value;
  if (a->kind == TILEC_FACT_EQUAL && b->kind == TILEC_FACT_DIVISIBLE) return a->value % b->value == 0;
  return a->kind != TILEC_FACT_DIVISIBLE || b->kind != TILEC_FACT_EQUAL || facts_agree(b, a);
}

/* Each name is defined once, and no two facts contradict each other. */
static bool
check_lists(Job *j)
{
  const TilecOptions *o = j->opt;
  for (size_t i = 0; i < o->ndefines; i++)
    for (size_t k = 0; k < i; k++)
      if (!strcmp(o->defines[i].name, o->defines[k].name)) return misuse(j, "defined twice:", o->defines[i].name, NULL);
  for (size_t i = 0; i < o->nfacts; i++)
    for (size_t k = 0; k < i; k++)
      if (!facts_agree(&o->facts[i], &o->facts[k])) return misuse(j, "two facts contradict each other about", o->facts[i].name, NULL);
  return true;
}

/* Of the caller's options, what is known. */
static bool
take_options(Job *j)
{
  const TilecOptions *o = j->given;
  if (!o) return true;
  if (o->size < sizeof o->size) return misuse(j, "the size of TilecOptions is not set: tilec_options_default does that", NULL, NULL);
  options_take(&j->own, sizeof j->own, o, o->size);
  return !options_newer(o, o->size, sizeof *o) ||
         misuse(j, arena_printf(j->ctx->perm, OPTIONS_NEWER, "TilecOptions", o->size, TILEC_VERSION, sizeof *o), NULL, NULL);
}

/* Can the call be what it says? Reports what cannot. */
static bool
check_call(Job *j)
{
  if (!take_options(j)) return false;
  const char *what = !j->text && j->len ? "the text is NULL" : (unsigned)j->opt->emit > TILEC_EMIT_PTX ? "unknown stage to stop at"
                                                                                                      : list_trouble(j->opt);
  if (what) return misuse(j, what, NULL, NULL);
  if (j->len <= SOURCE_MAX) return check_lists(j);
  diag(j->ctx, (Span){0, 0}, E_LIMIT, arena_printf(j->ctx->perm, "%s is larger than 16 MiB", j->name));
  return false;
}

static bool
set_target(Job *j)
{
  const char *names[32];
  size_t n = 0;
  const Target *t;
  j->ctx->target = target_with(j->ctx->perm, j->opt->target ? j->opt->target : "sm_90a");
  if (j->ctx->target) return true;
  for (; n < COUNT(names) && (t = target_at((u32)n)); n++) names[n] = t->name;
  t = target_nearest(j->opt->target);
  const char *close = t ? t->name : diag_suggest(j->opt->target, names, n);
  if (close) return misuse(j, "unknown target", j->opt->target, close);
  Buf all = {.arena = j->ctx->perm};
  for (size_t i = 0; i < n; i++) buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
  const char *text = arena_printf(j->ctx->perm, "unknown target '%s'", j->opt->target);
  diag_note(j->ctx, diag(j->ctx, (Span){0, 0}, E_MISUSE, text), (Span){0, 0}, "there are: %s", buf_str(&all));
  return false;
}

static FrontendOptions
frontend_options(Job *j)
{
  const TilecOptions *o = j->opt;
  FrontendOptions f = {.kernel = o->kernel, .ndefines = (u32)o->ndefines, .nfacts = (u32)o->nfacts};
  FrontendDefine *d = NEW_ARRAY(j->ctx->perm, FrontendDefine, o->ndefines + 1);
  FrontendFact *k = NEW_ARRAY(j->ctx->perm, FrontendFact, o->nfacts + 1);
  for (size_t i = 0; i < o->ndefines; i++) d[i] = (FrontendDefine){o->defines[i].name, o->defines[i].value};
  for (size_t i = 0; i < o->nfacts; i++)
    k[i] = (FrontendFact){o->facts[i].name, (FactKind)o->facts[i].kind, o->facts[i].value, o->facts[i].other};
  f.defines = d;
  f.facts = k;
  f.import_path = o->import_path;
  f.nimport_path = (u32)o->nimport_path;
  f.tuning = o->tuning != TILEC_TUNING_NONE;
  return f;
}

static bool
has_suffix(const char *name, const char *suffix)
{
  size_t n = strlen(name), k = strlen(suffix);
  return n >= k && !strcmp(name + n - k, suffix);
}

static const char *
close_kernel(Job *j, const Module *m)
{
  const char **names = NEW_ARRAY(j->ctx->scratch, const char *, m->funcs.len + 1);
  for (u32 i = 0; i < m->funcs.len; i++) names[i] = m->funcs.data[i]->name;
  return diag_suggest(j->opt->kernel, names, m->funcs.len);
}

/* Keep only the wanted kernel of a module read from .tir (the frontend does so by itself). */
static bool
select_kernel(Job *j, Module *m)
{
  u32 kept = 0;
  if (!j->opt->kernel) return true;
  for (u32 i = 0; i < m->funcs.len; i++)
    if (!strcmp(m->funcs.data[i]->name, j->opt->kernel)) m->funcs.data[kept++] = m->funcs.data[i];
  if (!kept) return misuse(j, "no kernel named", j->opt->kernel, close_kernel(j, m));
  m->funcs.len = kept;
  return true;
}

/* The parameter of this name; f's number of them if it has none. How many there are. */
static u32
find_param(const Func *f, Arena *a, const char *name, u32 *at)
{
  u32 found = 0;
  *at = f->body->nargs;
  for (u32 i = 0; i < f->body->nargs; i++)
    if (!strcmp(func_param_name(f, i, a), name)) {
      *at = i;
      found++;
    }
  return found;
}

static bool
same_params(Job *j, Func *f, u32 i, u32 k)
{
  u32 lo = i < k ? i : k, hi = i < k ? k : i;
  if (!type_is_ptr(f->body->args[i]->type) || !type_is_ptr(f->body->args[k]->type))
    return misuse(j, "only pointers are one address, not",
                  func_param_name(f, type_is_ptr(f->body->args[i]->type) ? k : i, j->ctx->perm), NULL);
  if (lo < APART_MAX && f->params[hi].apart >> lo & 1)
    return misuse(j, "this text relies already on another address than its own for", func_param_name(f, hi, j->ctx->perm), NULL);
  func_same_params(f, i, k);
  return true;
}

/* Divisibility becomes the parameter's own, and parameters the same, in front of all passes that would use it. That a value is known is not
 * used. *found becomes no less than how many parameters have the name. */
static bool
apply_fact(Job *j, Func *f, const TilecFact *fact, u32 *found)
{
  u32 i, k, n = find_param(f, j->ctx->perm, fact->name, &i);
  *found = n > *found ? n : *found;
  if (n && fact->kind == TILEC_FACT_DIVISIBLE && f->module->phase == PHASE_TILE && fact->value % f->params[i].divisible == 0)
    f->params[i].divisible = (u32)fact->value;
  return !n || fact->kind != TILEC_FACT_SAME || !find_param(f, j->ctx->perm, fact->other, &k) || same_params(j, f, i, k);
}

static bool
apply_facts(Job *j, const Module *m)
{
  const TilecOptions *o = j->opt;
  if (o->ndefines) return misuse(j, "IR text has no const or type parameter", o->defines[0].name, NULL);
  for (size_t i = 0; i < o->nfacts; i++) {
    u32 most = 0;
    for (u32 k = 0; k < m->funcs.len; k++)
      if (!apply_fact(j, m->funcs.data[k], &o->facts[i], &most)) return false;
    if (most != 1) return misuse(j, most ? "two arguments are named" : "no kernel has an argument", o->facts[i].name, NULL);
  }
  return true;
}

static Module *
read_module(Job *j, u32 base)
{
  Ctx *c = j->ctx;
  Module *m;
  if (has_suffix(j->name, ".tir")) {
    m = ir_parse(c, base);
    return m && ir_verify(m) && select_kernel(j, m) && apply_facts(j, m) ? m : NULL;
  }
  FrontendOptions f = frontend_options(j);
  m = frontend_compile(c, base, &f);
  if (m && j->opt->verify && !ir_verify(m)) return NULL;
  return m;
}

static bool
run_passes(Job *j, Module *m)
{
  static const Phase stop[] = {[TILEC_EMIT_TILE] = PHASE_TILE, [TILEC_EMIT_PLACED] = PHASE_PLACED,
                               [TILEC_EMIT_SCHED] = PHASE_SCHED, [TILEC_EMIT_LLVM] = PHASE_SCHED,
                               [TILEC_EMIT_PTX] = PHASE_SCHED};
  const TilecOptions *o = j->opt;
  PassOptions p = {.list = o->passes, .stop = stop[o->emit], .stop_before_placement = o->emit == TILEC_EMIT_TILE,
                   .dump_after = o->dump_after, .verify = o->verify, .locs = o->locs, .dump = &j->dump,
                   .timing = o->time_passes ? &j->timing : NULL};
  return passes_run(j->ctx, m, &p);
}

static CodegenOptions
codegen_options(Job *j)
{
  const TilecOptions *o = j->opt;
  return (CodegenOptions){.opt_level = o->opt_level, .line_info = o->line_info, .want_llvm = o->emit == TILEC_EMIT_LLVM,
                          .timing = o->time_passes ? &j->timing : NULL};
}

static void
room_for_manifests(Job *j, size_t n)
{
  j->nmanifests = n;
  j->manifests = calloc(n ? n : 1, sizeof *j->manifests);
  if (!j->manifests) ctx_no_memory(j->ctx);
}

/* LLVM IR text goes on behind LLVM's passes; the manifests are read back from the PTX. */
static bool
go_on(Job *j, u32 base)
{
  CodegenOptions g = codegen_options(j);
  TilertError err;
  size_t n = 0;
  if (j->opt->emit < TILEC_EMIT_LLVM)
    return misuse(j, "LLVM IR goes on to the stages llvm and ptx only:", j->name, NULL);
  if (!codegen_text(j->ctx, base, j->opt->kernel, &g, &j->out)) return false;
  if (g.want_llvm) return true;
  const char *text = buf_str(&j->out);
  int status = tilert_manifest_parse(text, j->out.len, NULL, 0, &n, &err);
  if (!status) {
    room_for_manifests(j, n);
    status = tilert_manifest_parse(text, j->out.len, j->manifests, n, &n, &err);
  }
  if (status) diag(j->ctx, (Span){base, base}, E_TIR_SYNTAX, err.message);
  return !status;
}

static bool
emit(Job *j, Module *m)
{
  const TilecOptions *o = j->opt;
  CodegenOptions g = codegen_options(j);
  if (o->emit <= TILEC_EMIT_SCHED) {
    ir_print(&j->out, m, o->locs);
    return true;
  }
  if (m->phase != PHASE_SCHED)
    return misuse(j, "code generation needs IR in phase sched; the pass list ends in phase",
                  m->phase == PHASE_TILE ? "tile" : "placed", NULL);
  room_for_manifests(j, m->funcs.len);
  return codegen_module(j->ctx, m, &g, &j->out, j->manifests);
}

/* The compiler on one screen. */
static bool
compile(Job *j)
{
  Ctx *c = j->ctx;
  Module *m;
  u32 base;
  c->remarks = j->opt->remarks;
  c->boxes = (Boxes)j->opt->tensors;
  if (!set_target(j)) return false;
  base = source_add(c, SOURCE_PROGRAM, j->name, j->text, j->len);
  if (!source_check(c, base)) return false;
  if (has_suffix(j->name, ".ll")) return go_on(j, base);
  if (j->opt->emit == TILEC_EMIT_AST) return frontend_print_ast(c, base, &j->out);
  return (m = read_module(j, base)) && run_passes(j, m) && emit(j, m);
}

static void
describe_func(Buf *out, const Func *f)
{
  buf_printf(out, "kernel %s warps=%u\n", f->name, f->warps);
  for (u32 i = 0; i < f->body->nargs; i++) {
    const Type *t = f->body->args[i]->type;
    buf_printf(out, "param %s %s %s\n", func_param_name(f, i, out->arena), type_is_ptr(t) ? "pointer" : "scalar", dtype_info[t->dt].name);
  }
}

static bool
describe_tir(Job *j, u32 base)
{
  Module *m = set_target(j) ? read_module(j, base) : NULL;
  for (u32 i = 0; m && i < m->funcs.len; i++) describe_func(&j->out, m->funcs.data[i]);
  return m;
}

/* Does what was described have a line that begins with this word? */
static bool
described(Job *j, const char *word)
{
  return strstr(buf_str(&j->out), arena_printf(j->ctx->perm, "\n%s", word)) != NULL;
}

/* The search of the one kernel that was described, if it has no tune clause. */
static bool
describe_search(Job *j)
{
  if (described(j, "kernel ")) return misuse(j, "a search is for one kernel: name it", NULL, NULL);
  if (!set_target(j)) return false;
  if (j->out.len && !described(j, "tune") && !described(j, "skip"))
    search_list(j->ctx, j->name, j->text, j->len, j->opt, arena_strndup(j->ctx->perm, buf_str(&j->out), j->out.len), &j->out);
  return true;
}

static bool
describe(Job *j)
{
  FrontendOptions f = frontend_options(j);
  u32 base = source_add(j->ctx, SOURCE_PROGRAM, j->name, j->text, j->len);
  if (!source_check(j->ctx, base)) return false;
  if (has_suffix(j->name, ".ll")) return misuse(j, "LLVM IR is not described; its PTX is:", j->name, NULL);
  if (has_suffix(j->name, ".tir")) return describe_tir(j, base);
  return frontend_describe(j->ctx, base, &f, &j->out) && (j->opt->tuning != TILEC_TUNING_SEARCH || describe_search(j));
}

/* Without a place in any file: what is drawn is not in one. */
static bool
draw_layout(Job *j)
{
  Ctx *c = j->ctx;
  const char *error = NULL;
  size_t used = 0, at = 0;
  if (!j->elem_bits || j->elem_bits > 128) return misuse(j, "elements have 1 to 128 bits", NULL, NULL);
  const Layout *l = layout_parse(c, j->text, j->len, &used, &error, &at);
  if (l && !j->text[used]) {
    layout_print(&j->out, l);
    buf_putc(&j->out, '\n');
    layout_draw(&j->out, l, j->elem_bits);
    return true;
  }
  at = l ? used : at;
  buf_printf(&j->said, "layout:1:%zu: error: %s\n  %s\n  %*s^\n", at + 1, l ? "text after the layout" : error, j->text, (int)at, "");
  return false;
}

/* What a call gives back, and room for the words that say that there was no more memory for it. */
typedef struct Result { TilecResult r; char words[64]; } Result;

/* A copy for the result: the caller's, behind which the compilation is gone. */
static char *
keep(Ctx *c, const char *s, size_t len)
{
  char *p = malloc(len + 1);
  if (!p) ctx_no_memory(c);
  memcpy(p, s, len);
  p[len] = 0;
  return p;
}

static char *
keep_buf(Ctx *c, Buf *b)
{
  return keep(c, buf_str(b), b->len);
}

static void
digest_sources(Ctx *c, uint64_t out[2])
{
  SourceText s;
  CacheHash *h = cache_hash_new();
  if (!h) return;
  for (u32 i = 0; source_file(c, i, &s); i++) {
    if (s.kind != SOURCE_PROGRAM) continue;   /* the library is part of the build, defines are the caller's own */
    cache_hash_text(h, s.name);
    cache_hash_add(h, s.text, s.len);
  }
  CacheKey k = cache_hash_end(h);
  out[0] = k.word[0];
  out[1] = k.word[1];
}

/* What the caller's text, which is the first of its kind, imports. */
static char *
keep_imports(Ctx *c)
{
  SourceText s;
  Buf b = {.arena = c->perm};
  bool imported = false;
  for (u32 i = 0; source_file(c, i, &s); i++) {
    if (s.kind != SOURCE_PROGRAM) continue;
    if (imported) buf_printf(&b, "%s\n", s.name);
    imported = true;
  }
  return keep_buf(c, &b);
}

static void
result_clear(Result *r)
{
  TilecResult *p = &r->r;
  free(p->output);
  if (p->diagnostics != r->words) free(p->diagnostics);
  free(p->dump);
  free(p->timing);
  free(p->imports);
  free(p->manifests);
  memset(p, 0, sizeof *p);
}

/* After a panic: one diagnostic, of a fault of the compiler or of memory that ran out. */
static void
fail_hard(Result *r, const Ctx *c)
{
  char text[640];
  int n = snprintf(text, sizeof text, "tilec: internal error: %s\n", c->panic_message);
  result_clear(r);
  r->r.nerrors = 1;
  r->r.status = c->no_memory ? TILEC_NO_MEMORY : TILEC_FAILED;
  r->r.diagnostics = c->no_memory ? NULL : malloc((size_t)n + 1);
  if (r->r.diagnostics) {
    memcpy(r->r.diagnostics, text, (size_t)n + 1);
    return;
  }
  r->r.status = TILEC_NO_MEMORY;
  snprintf(r->words, sizeof r->words, "tilec: the host is out of memory\n");
  r->r.diagnostics = r->words;
}

static void
finish(TilecResult *r, Job *j, bool ok)
{
  Ctx *c = j->ctx;
  Buf d = {.arena = c->perm};
  diag_render(c, &d, j->opt->json, j->opt->color);
  buf_puts(&d, buf_str(&j->said));
  r->nerrors = diag_errors(c) + (j->said.len != 0);
  r->nwarnings = diag_warnings(c);
  r->status = diag_reported(c, E_MISUSE) ? TILEC_MISUSE : ok && !r->nerrors ? TILEC_OK : TILEC_FAILED;
  r->diagnostics = keep_buf(c, &d);
  r->dump = keep_buf(c, &j->dump);
  r->timing = keep_buf(c, &j->timing);
  digest_sources(c, r->sources);
  r->imports = keep_imports(c);
  if (r->status) return;
  r->output = keep_buf(c, &j->out);
  r->output_len = j->out.len;
  r->manifests = j->manifests;
  r->nmanifests = j->nmanifests;
  j->manifests = NULL;
}

/* False after a fault or want of memory. */
static bool
do_work(Job *j, bool (*work)(Job *))
{
  Ctx *c = j->ctx;
  c->panic_set = true;
  if (setjmp(c->panic)) return false;
  j->ok = check_call(j) && work(j);
  return true;
}

static bool
do_finish(Job *j, TilecResult *r)
{
  j->ctx->panic_set = true;
  if (setjmp(j->ctx->panic)) return false;
  finish(r, j, j->ok);
  return true;
}

/* Work on a compilation of its own, whose errors, faults and want of memory all end here. NULL: there is not even memory to say so. */
static TilecResult *
run_job(const Job *wanted, bool (*work)(Job *))
{
  Result *r = calloc(1, sizeof *r);
  Job *j = malloc(sizeof *j);
  Ctx *c = ctx_new();
  if (r && j && c) {
    *j = *wanted;
    tilec_options_default(&j->own);
    j->ctx = c;
    j->opt = &j->own;
    j->out = j->dump = j->timing = j->said = (Buf){.arena = c->perm};
    if (!do_work(j, work) || !do_finish(j, &r->r)) fail_hard(r, c);
    free(j->manifests);
  } else if (r) {
    fail_hard(r, &(Ctx){.no_memory = true});
  }
  ctx_free(c);
  free(j);
  return r ? &r->r : NULL;
}

static Job
job_of(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  return (Job){.given = o, .name = name && *name ? name : "<input>", .text = text, .len = len};
}

TilecResult *
tilec_compile(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  Job j = job_of(name, text, len, o);
  return run_job(&j, compile);
}

TilecResult *
tilec_describe(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  Job j = job_of(name, text, len, o);
  return run_job(&j, describe);
}

TilecResult *
tilec_print_layout(const char *text, unsigned elem_bits)
{
  Job j = {.name = "layout", .text = text, .len = text ? strlen(text) : 1, .elem_bits = elem_bits};
  return run_job(&j, draw_layout);
}

void
tilec_result_free(TilecResult *r)
{
  if (!r) return;
  result_clear((Result *)r);
  free(r);
}

/* Run a table printer in a Ctx of its own. */
char *
tilec_print_table(const char *what)
{
  Ctx *volatile c = ctx_new();
  char *volatile text = NULL;
  if (!c) return NULL;
  c->panic_set = true;
  if (!setjmp(c->panic)) {
    Buf b = {.arena = c->perm};
    if (what && table_print(&b, what)) text = keep_buf(c, &b);
  }
  ctx_free(c);
  return text;
}

void
tilec_free(void *p)
{
  free(p);
}
