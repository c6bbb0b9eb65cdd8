/* emit.c - the exported function: a module in, PTX (or LLVM IR) text and manifests out. */
#include "gen.h"
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <time.h>

/* ---- manifests ---- */
static void
manifest_param(const Func *f, u32 i, TilertParam *p)
{
  const Value *arg = f->body->args[i];
  bool ptr = type_is_ptr(arg->type);
  if (arg->name)
    snprintf(p->name, sizeof p->name, "%s", arg->name);
  else
    snprintf(p->name, sizeof p->name, "arg%u", i);
  snprintf(p->dtype, sizeof p->dtype, "%s", dtype_info[arg->type->dt].name);
  p->kind = ptr ? TILERT_PARAM_POINTER : TILERT_PARAM_SCALAR;
  p->size = ptr ? 8 : dtype_bytes(arg->type->dt);
  p->divisible = f->param_divisible[i];
}

static void
emit_manifest(Ctx *c, const Func *f, TilertManifest *m)
{
  memset(m, 0, sizeof *m);
  snprintf(m->kernel, sizeof m->kernel, "%s", f->name);
  snprintf(m->target, sizeof m->target, "%s", c->target->name);
  m->warps = f->warps;
  m->shared = f->shared_bytes;
  m->nparams = f->body->nargs;
  for (u32 i = 0; i < m->nparams; i++)
    manifest_param(f, i, &m->params[i]);
}

/* The line that runtime/manifest.h describes. */
static void
emit_manifest_line(Buf *b, const TilertManifest *m)
{
  static const char *const kinds[] = {"ptr", "scalar", "tensormap"};
  buf_printf(b, "//@tilec kernel=%s warps=%u shared=%u target=%s params=", m->kernel, m->warps, m->shared, m->target);
  for (u32 i = 0; i < m->nparams; i++) {
    const TilertParam *p = &m->params[i];
    buf_printf(b, "%s%s:%s:%s", i ? "," : "", p->name, kinds[p->kind], p->dtype);
    if (p->divisible > 1)
      buf_printf(b, ":%u", p->divisible);
  }
  buf_putc(b, '\n');
}

static bool
check_limits(Ctx *c, const Func *f)
{
  if (f->body->nargs > TILERT_MAX_PARAMS) {
    const char *what = arena_printf(c->scratch, "kernel '%s' has %u parameters; more than %d", f->name, f->body->nargs,
                                    TILERT_MAX_PARAMS);
    diag(c, f->span, E_UNSUPPORTED, what, c->target->name);
    return false;
  }
  return true;
}

static bool
emit_manifests(Ctx *c, const Module *m, Buf *out, TilertManifest *manifests)
{
  TilertManifest *one = NEW(c->scratch, TilertManifest);
  for (u32 i = 0; i < m->funcs.len; i++) {
    if (!check_limits(c, m->funcs.data[i]))
      return false;
    emit_manifest(c, m->funcs.data[i], one);
    if (out)
      emit_manifest_line(out, one);
    if (manifests)
      manifests[i] = *one;
  }
  return true;
}

/* ---- the module ---- */
typedef struct Job {
  Gen *g;
  Buf text;
  bool ok, panicked;
} Job;

static double
now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Note the time since *since under a name. */
static void
lap(Gen *g, const char *name, double *since)
{
  double now = now_ms();
  if (g->opt->timing)
    buf_printf(g->opt->timing, "%s\t%.3f\n", name, now - *since);
  *since = now;
}

static bool
emit_text(Gen *g, Buf *text)
{
  Buf ptx = {.arena = g->arena};
  if (!g->opt->want_llvm) {
    inlined_encode(g);
    if (!gen_emit_ptx(g, &ptx))
      return false;
    inlined_write(g, buf_str(&ptx), text);
    return true;
  }
  char *ir = LLVMPrintModuleToString(g->mod);
  buf_puts(text, ir);
  LLVMDisposeMessage(ir);
  return true;
}

static bool
generate(Gen *g, Buf *text)
{
  double since = now_ms();
  if (!gen_open(g))
    return false;
  if (g->opt->line_info)
    locs_open(g);
  lap(g, "llvm start", &since);
  for (u32 i = 0; i < g->m->funcs.len; i++)
    lower_func(g, g->m->funcs.data[i]);
  lap(g, "lower", &since);
  if (g->failed || !gen_run_passes(g))
    return false;
  lap(g, "llvm passes", &since);
  bool ok = emit_text(g, text);
  lap(g, "llvm codegen", &since);
  return ok;
}

/* A fault of the compiler or memory running out must not lose what LLVM holds: it is stopped here and passed on later. */
static void
job_run(void *user)
{
  Job *job = user;
  Ctx *c = job->g->c;
  c->panic_set = true;
  if (setjmp(c->panic))
    job->panicked = true;
  else
    job->ok = generate(job->g, &job->text);
}

/* Run the job; false if LLVM gave up, with its reason. */
static bool
run_caught(Ctx *c, Job *job, const char **fatal)
{
  jmp_buf outer;
  bool was_set = c->panic_set;
  memcpy(&outer, &c->panic, sizeof outer);
  bool ok = gen_guard(job_run, job, fatal, job->g->arena);
  memcpy(&c->panic, &outer, sizeof outer);
  c->panic_set = was_set;
  return ok;
}

static void
report_llvm(Ctx *c, const Module *m, const char *text)
{
  Span at = m->funcs.len ? m->funcs.data[0]->span : (Span){0, 0};
  diag(c, at, E_INTERNAL, arena_printf(c->scratch, "LLVM: %s", text));
}

static NORETURN void
pass_on(Ctx *c)
{
  if (c->panic_set)
    longjmp(c->panic, 1);
  ctx_panic(c, "codegen failed");
}

static void
close_all(Gen *g)
{
  while (g->team)          /* a fault left it open */
    team_close(g);
  gen_close(g);
}

bool
codegen_module(Ctx *c, Module *m, const CodegenOptions *o, Buf *out, TilertManifest *manifests)
{
  const char *fatal = NULL;
  Gen *g = NEW(c->scratch, Gen);
  *g = (Gen){.c = c, .m = m, .opt = o, .target = c->target, .arena = arena_new(c)};
  Job *job = NEW(c->scratch, Job);
  *job = (Job){.g = g, .text = {.arena = g->arena}};
  bool alive = run_caught(c, job, &fatal);
  if (fatal || g->llvm_error)
    report_llvm(c, m, fatal ? fatal : g->llvm_error);
  bool ok = alive && job->ok && !g->failed && !g->llvm_error && emit_manifests(c, m, o->want_llvm ? NULL : out, manifests);
  if (ok)
    buf_write(out, job->text.data, job->text.len);
  if (alive)   /* after a fatal error LLVM's objects may be half built: they are left alone */
    close_all(g);
  arena_free(g->arena);
  if (job->panicked)
    pass_on(c);
  return ok;
}

const char *
codegen_llvm_version(void)
{
  return LLVM_VERSION_STRING;
}
