/* compile.c - the compiler as a function: source text in, text of the wanted stage out. */
#include <stdio.h>
#include <stdlib.h>
#include "cache.h"
#include "codegen.h"
#include "frontend.h"
#include "passes.h"
#include "tables.h"
#include "tilec.h"
#include "tilert.h"

#define TILEC_VERSION "0.1.0"

const char *
tilec_version(void)
{
  return TILEC_VERSION;
}

void
tilec_options_default(TilecOptions *o)
{
  memset(o, 0, sizeof *o);
  o->target = "sm_90a";
  o->emit = TILEC_EMIT_PTX;
  o->line_info = 1;
  o->opt_level = 1;
}

/* What one call works with; lives in the Ctx's arena except for the result. */
typedef struct Job {
  Ctx *ctx;
  const TilecOptions *opt;
  const char *name, *text;
  size_t len;
  Buf out, dump, timing;
  TilertManifest *manifests;
  size_t nmanifests;
} Job;

static bool
misuse(Job *j, const char *what, const char *value, const char *hint)
{
  const char *text = hint ? arena_printf(j->ctx->perm, "%s '%s' (did you mean '%s'?)", what, value, hint)
                          : arena_printf(j->ctx->perm, "%s '%s'", what, value);
  diag(j->ctx, (Span){0, 0}, E_MISUSE, text);
  return false;
}

static bool
set_target(Job *j)
{
  const char *names[32];
  size_t n = 0;
  const Target *t;
  j->ctx->target = target_find(j->opt->target ? j->opt->target : "sm_90a");
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
  f.tuning = o->tuning;
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

static Module *
read_module(Job *j, u32 base)
{
  Ctx *c = j->ctx;
  Module *m;
  if (has_suffix(j->name, ".tir")) {
    m = ir_parse(c, base);
    return m && ir_verify(m) && select_kernel(j, m) ? m : NULL;
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
  if (!j->manifests) ctx_panic(j->ctx, "out of memory");
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
  if (!set_target(j)) return false;
  base = source_add(c, j->name, j->text, j->len);
  if (has_suffix(j->name, ".ll")) return go_on(j, base);
  if (j->opt->emit == TILEC_EMIT_AST) return frontend_print_ast(c, base, &j->out);
  return (m = read_module(j, base)) && run_passes(j, m) && emit(j, m);
}

static bool
describe(Job *j)
{
  FrontendOptions f = frontend_options(j);
  u32 base = source_add(j->ctx, j->name, j->text, j->len);
  return frontend_describe(j->ctx, base, &f, &j->out);
}

static char *
keep(const char *s)
{
  size_t n = strlen(s) + 1;
  char *p = malloc(n);
  if (p) memcpy(p, s, n);
  return p;
}

static void
digest_sources(Ctx *c, uint64_t out[2])
{
  const char *name, *text;
  u32 len;
  CacheHash *h = cache_hash_new();
  if (!h) return;
  for (u32 i = 0; source_file(c, i, &name, &text, &len); i++) {
    if (name[0] == '<') continue;   /* of the library, which is part of the build, or a define */
    cache_hash_text(h, name);
    cache_hash_add(h, text, len);
  }
  CacheKey k = cache_hash_end(h);
  out[0] = k.word[0];
  out[1] = k.word[1];
}

/* A compiler fault leaves the diagnostics found so far and one of its own. */
static void
fail_hard(TilecResult *r, const char *message)
{
  char text[640];
  snprintf(text, sizeof text, "tilec: internal error: %s\n", message);
  r->status = 1;
  r->nerrors = 1;
  r->diagnostics = keep(text);
}

static void
finish(TilecResult *r, Job *j, bool ok)
{
  Buf d = {.arena = j->ctx->perm};
  diag_render(j->ctx, &d, j->opt->json, j->opt->color);
  r->nerrors = diag_errors(j->ctx);
  r->nwarnings = diag_warnings(j->ctx);
  r->status = diag_reported(j->ctx, E_MISUSE) ? 2 : ok && !r->nerrors ? 0 : 1;
  r->diagnostics = keep(buf_str(&d));
  r->dump = keep(buf_str(&j->dump));
  r->timing = keep(buf_str(&j->timing));
  digest_sources(j->ctx, r->sources);
  if (r->status) {
    free(j->manifests);
    return;
  }
  r->output = keep(buf_str(&j->out));
  r->output_len = j->out.len;
  r->manifests = j->manifests;
  r->nmanifests = j->nmanifests;
}

static TilecResult *
run_job(const char *name, const char *text, size_t len, const TilecOptions *o, bool (*work)(Job *))
{
  TilecOptions defaults;
  TilecResult *r = calloc(1, sizeof *r);
  Job *volatile j = calloc(1, sizeof *j);
  Ctx *volatile c = ctx_new();
  if (!r || !j || !c) {
    free(r);
    free(j);
    if (c) ctx_free(c);
    return NULL;
  }
  if (!o) {
    tilec_options_default(&defaults);
    o = &defaults;
  }
  *j = (Job){.ctx = c, .opt = o, .name = name ? name : "<input>", .text = text, .len = len,
             .out = {.arena = c->perm}, .dump = {.arena = c->perm}, .timing = {.arena = c->perm}};
  c->panic_set = true;
  if (setjmp(c->panic)) {
    free(j->manifests);
    fail_hard(r, c->panic_message);
  } else {
    finish(r, j, work(j));
  }
  ctx_free(c);
  free(j);
  return r;
}

TilecResult *
tilec_compile(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  return run_job(name, text, len, o, compile);
}

TilecResult *
tilec_describe(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  return run_job(name, text, len, o, describe);
}

void
tilec_result_free(TilecResult *r)
{
  if (!r) return;
  free(r->output);
  free(r->diagnostics);
  free(r->dump);
  free(r->timing);
  free(r->manifests);
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
    if (table_print(&b, what)) text = keep(buf_str(&b));
  }
  ctx_free(c);
  return text;
}

TilecResult *
tilec_print_layout(const char *text, unsigned elem_bits)
{
  TilecResult *r = calloc(1, sizeof *r);
  Ctx *volatile c = ctx_new();
  if (!r || !c) {
    free(r);
    if (c) ctx_free(c);
    return NULL;
  }
  c->panic_set = true;
  if (setjmp(c->panic)) {
    fail_hard(r, c->panic_message);
  } else {
    Buf b = {.arena = c->perm};
    const char *error = NULL;
    size_t used = 0, at = 0;
    const Layout *l = layout_parse(c, text, strlen(text), &used, &error, &at);
    if (!l || text[used]) {
      buf_printf(&b, "layout:1:%zu: error: %s\n  %s\n  %*s^\n", (l ? used : at) + 1, l ? "text after the layout" : error,
                 text, (int)(l ? used : at), "");
      r->status = 1;
      r->nerrors = 1;
      r->diagnostics = keep(buf_str(&b));
    } else {
      layout_print(&b, l);
      buf_putc(&b, '\n');
      layout_draw(&b, l, elem_bits);
      r->output = keep(buf_str(&b));
      r->output_len = b.len;
      r->diagnostics = keep("");
    }
  }
  ctx_free(c);
  return r;
}

void
tilec_free(void *p)
{
  free(p);
}
