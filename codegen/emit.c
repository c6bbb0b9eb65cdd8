/* emit.c - the exported function: a module in, PTX (or LLVM IR) text and manifests out. */
#include "gen.h"
#include "sparse.h"
#include "alias.h"
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <time.h>

/* ---- manifests ---- */
static TilertNull
null_of(ParamNull n)
{
  return n == PARAM_NULL ? TILERT_NULL_ALWAYS : n == PARAM_NONNULL ? TILERT_NULL_NEVER : TILERT_NULL_ANY;
}

/* What is needed of a tensor. */
static void
manifest_part(const KernelParam *k, const Type *t, u32 pitch, TilertParam *p)
{
  static const TilertTensorPart parts[] = {[PARAM_MAP] = TILERT_TENSOR_MAP, [PARAM_BASE] = TILERT_TENSOR_BASE,
                                           [PARAM_EXTENT] = TILERT_TENSOR_EXTENT, [PARAM_STRIDE] = TILERT_TENSOR_STRIDE};
  p->kind = TILERT_PARAM_TENSOR;
  p->part = parts[k->part];
  p->rank = t->rank;
  p->dim = k->axis;
  p->swizzle = k->form.swizzle;
  p->stored = k->stored;
  p->tf32 = k->tf32;
  p->divisible = k->part == PARAM_BASE ? p->divisible : k->part == PARAM_STRIDE && pitch ? pitch : 1;
  memcpy(p->box, k->form.box, sizeof p->box);
  p->pixels = k->form.pixels;
  for (u32 i = 0; i < k->form.window.n; i++) {
    p->lower[i] = k->form.window.lower[i];
    p->upper[i] = k->form.window.upper[i];
    p->steps[i] = (u32)k->form.window.step[i];
  }
}

/* The place of a program's parameter among those of its PTX: of its first part. */
static u32
place_of(const KernelParams *params, u32 arg)
{
  u32 i = 0;
  while (params->data[i].arg != arg)
    i++;
  return i;
}

static TilertProduct
manifest_product(const KernelParams *params, const Value *v)
{
  LaunchValue x = {.n = 0};
  launch_value(v, &x);
  TilertProduct p = {.times = x.times, .n = x.n};
  for (u32 i = 0; i < x.n; i++)
    p.param[i] = place_of(params, x.param[i]);
  return p;
}

/* A map of what a pointer leads to. */
static void
manifest_view(const KernelParams *params, const KernelParam *k, TilertParam *p)
{
  const Type *t = op_result(k->view)->type;
  manifest_part(k, t, 0, p);
  p->kind = TILERT_PARAM_VIEW;
  p->null = TILERT_NULL_ANY;
  p->of = place_of(params, k->arg);
  for (u32 d = 0; d < t->rank; d++)
    p->extents[d] = manifest_product(params, op_operand(k->view, 1 + d));
  for (u32 d = 0; d + 1 < t->rank; d++)
    p->strides[d] = manifest_product(params, op_operand(k->view, 1 + t->rank + d));
}

static void
manifest_grid(const KernelParam *k, TilertParam *p)
{
  *p = (TilertParam){.name = "grid", .kind = TILERT_PARAM_GRID, .dtype = "i32", .divisible = 1, .dim = k->axis};
  p->size = tilert_param_size(p);
}

static void
manifest_param(const Func *f, const KernelParams *params, const KernelParam *k, Arena *a, TilertParam *p)
{
  if (!params_arg(f, k)) {
    manifest_grid(k, p);
    return;
  }
  const Value *arg = f->body->args[k->arg];
  bool ptr = type_is_ptr(arg->type);
  snprintf(p->name, sizeof p->name, "%s", func_param_name(f, k->arg, a));
  snprintf(p->dtype, sizeof p->dtype, "%s", dtype_info[arg->type->dt].name);
  p->kind = ptr ? TILERT_PARAM_POINTER : TILERT_PARAM_SCALAR;
  p->divisible = f->params[k->arg].divisible;
  p->null = null_of(f->params[k->arg].null);
  p->nonneg = f->params[k->arg].nonneg;
  if (type_is_tensor(arg->type))
    manifest_part(k, arg->type, f->params[k->arg].pitch, p);
  if (k->view)
    manifest_view(params, k, p);
  p->size = tilert_param_size(p);
}

/* Which parameters lead to what the kernel writes; which lead to what it accesses. */
typedef struct Written { bool *param, *accessed, any; } Written;

static void
find_written(Op *op, void *user)
{
  Written *w = user;
  GlobalAccess a;
  if (op->code == OP_PTX_EFFECT)
    w->any = true;
  if (!global_access(op, &a))
    return;
  const bool known = a.root && !a.root->def && !a.root->block->parent;
  if (known)
    w->accessed[a.root->index] = true;
  if (known && a.effect & FX_WRITE)
    w->param[a.root->index] = true;
  else if (a.effect & FX_WRITE)
    w->any = true;
}

static Written
written_by(const Func *f, Arena *a)
{
  Written w = {.param = NEW_ARRAY(a, bool, f->body->nargs + 1), .accessed = NEW_ARRAY(a, bool, f->body->nargs + 1)};
  block_walk(f->body, find_written, &w);
  return w;
}

static TilertReads
reads_of(const Func *f, const Written *w, u32 arg)
{
  if (value_unused(f->body->args[arg]))
    return TILERT_READS_NOTHING;
  return w->any || w->param[arg] ? TILERT_READS_NOT_ONLY : TILERT_READS_ONLY;
}

static void
manifest_access(const Func *f, const Written *w, u32 arg, TilertParam *p)
{
  p->reads = p->kind == TILERT_PARAM_SCALAR ? TILERT_READS_NOT_ONLY : reads_of(f, w, arg);
  if (p->kind == TILERT_PARAM_POINTER && p->null == TILERT_NULL_ANY && w->accessed[arg])
    p->null = TILERT_NULL_NEEDED;
}

static void
emit_manifest(Ctx *c, const Func *f, TilertManifest *m)
{
  KernelParams params = params_of(f, c->scratch);
  Written written = written_by(f, c->scratch);
  memset(m, 0, sizeof *m);
  snprintf(m->kernel, sizeof m->kernel, "%s", f->name);
  snprintf(m->target, sizeof m->target, "%s", c->target->name);
  m->warps = f->warps;
  m->shared = f->shared_bytes;
  m->waits = target_has(c->target, F_GRIDDEP) && func_has(f, OP_WAIT_FOR_PREVIOUS);
  if (func_cluster(f) > 1)
    memcpy(m->cluster, f->cluster, sizeof m->cluster);
  if (f->grid)
    snprintf(m->grid, sizeof m->grid, "%s", f->grid);
  m->persistent = func_walks(f) ? f->persistent : 0;
  m->nparams = params.len;
  for (u32 i = 0; i < m->nparams; i++)
    manifest_param(f, &params, &params.data[i], c->scratch, &m->params[i]);
  for (u32 i = 0; i < m->nparams && params.data[i].arg != NO_ARG; i++)
    manifest_access(f, &written, params.data[i].arg, &m->params[i]);
  for (u32 i = 0; i < f->body->nargs; i++)
    for (u64 left = f->params[i].apart; left; left &= left - 1, m->napart++)
      m->apart[place_of(&params, (u32)__builtin_ctzll(left))] |= UINT64_C(1) << place_of(&params, i);
}

/* The line that runtime/manifest.h describes. */
static void
emit_manifest_line(Buf *b, const TilertManifest *m)
{
  size_t n = tilert_manifest_text(m, NULL, 0);
  char *line = NEW_ARRAY(b->arena, char, n + 1);
  tilert_manifest_text(m, line, n + 1);
  buf_write(b, line, n);
}

static bool
check_limits(Ctx *c, const Func *f)
{
  u32 n = params_of(f, c->scratch).len;
  if (func_cluster(f) > 1 && !target_has(c->target, F_CLUSTER)) {
    const char *what = arena_printf(c->scratch, "a cluster of %s programs", cluster_text(c->scratch, f->cluster));
    diag(c, f->span, E_UNSUPPORTED, what, c->target->name);
    return false;
  }
  if (n > TILERT_MAX_PARAMS) {
    const char *what = arena_printf(c->scratch, "kernel '%s' has %u parameters; more than %d", f->name, n, TILERT_MAX_PARAMS);
    diag(c, f->span, E_UNSUPPORTED, what, c->target->name);
    return false;
  }
  return true;
}

static bool
check_all(Ctx *c, const Module *m)
{
  for (u32 i = 0; i < m->funcs.len; i++)
    if (!check_limits(c, m->funcs.data[i]))
      return false;
  return true;
}

/* The lines for PTX, and the structs where they are wanted. */
static void
emit_manifests(Ctx *c, const Module *m, Buf *lines, TilertManifest *manifests)
{
  TilertManifest *one = NEW(c->scratch, TilertManifest);
  for (u32 i = 0; i < m->funcs.len; i++) {
    emit_manifest(c, m->funcs.data[i], one);
    emit_manifest_line(lines, one);
    if (manifests)
      manifests[i] = *one;
  }
}

/* ---- manifests in LLVM IR: a line each, in named metadata ---- */

#define MANIFESTS "tilec.manifest"
static const char mark[] = "//@tilec ";

static void
attach_manifests(Gen *g)
{
  TilertManifest *one = NEW(g->arena, TilertManifest);
  for (u32 i = 0; i < g->m->funcs.len; i++) {
    Buf line = {.arena = g->arena};
    emit_manifest(g->c, g->m->funcs.data[i], one);
    emit_manifest_line(&line, one);
    LLVMMetadataRef text = LLVMMDStringInContext2(g->lc, line.data, line.len - 1);   /* without the end of the line */
    LLVMAddNamedMetadataOperand(g->mod, MANIFESTS, LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, &text, 1)));
  }
}

/* Operand i of the metadata; NULL if it is no manifest. */
static const char *
attached_manifest(Gen *g, Val node)
{
  Val text;
  unsigned len;
  if (LLVMGetMDNodeNumOperands(node) != 1)
    return NULL;
  LLVMGetMDNodeOperands(node, &text);
  const char *s = text ? LLVMGetMDString(text, &len) : NULL;
  if (!s || len < strlen(mark) || memcmp(s, mark, strlen(mark)) || memchr(s, '\n', len))
    return NULL;
  return arena_strndup(g->arena, s, len);
}

/* The word behind " key=" of a manifest's line; "" if there is none. */
static const char *
manifest_word(Gen *g, const char *line, const char *key)
{
  const char *at = strstr(line, arena_printf(g->arena, " %s=", key));
  at = at ? at + strlen(key) + 2 : "";
  return arena_strndup(g->arena, at, strcspn(at, " "));
}

/* ---- the module ---- */
typedef struct Job {
  Gen *g;
  u32 base;                /* LLVM IR text to read; 0: the module is lowered */
  const char *kernel;      /* of the text; NULL: all */
  Buf lines, text, *out;   /* the manifests' lines and the text behind them; where both go in the end */
  TilertManifest *manifests;
  Span wrong;              /* where llvm_error is in the text */
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
    gen_settle(g);
    ease_long_blocks(g);
    loop_spare_wide_steps(g);
    inlined_encode(g);
    if (!gen_emit_ptx(g, &ptx))
      return false;
    inlined_write(g, buf_str(&ptx), text);
    return true;
  }
  char *ir = LLVMPrintModuleToString(g->mod);
  if (!ir)
    ctx_no_memory(g->c);
  buf_puts(text, ir);
  LLVMDisposeMessage(ir);
  return true;
}

static bool
lower_module(Gen *g, double *since)
{
  if (g->opt->line_info)
    locs_open(g);
  for (u32 i = 0; i < g->m->funcs.len; i++)
    lower_func(g, g->m->funcs.data[i]);
  lap(g, "lower", since);
  if (g->failed || !gen_run_passes(g))
    return false;
  lap(g, "llvm passes", since);
  if (g->opt->opt_level)
    order_depth_first(g);
  lap(g, "order", since);
  if (g->opt->want_llvm)
    attach_manifests(g);
  return true;
}

static bool
bad_text(Job *job, const char *what)
{
  diag(job->g->c, (Span){job->base, job->base}, E_TIR_SYNTAX, what);
  job->g->failed = true;
  return false;
}

/* Functions that only kernels called which are gone. */
static void
drop_uncalled(Gen *g)
{
  for (Val f = LLVMGetFirstFunction(g->mod), next; f; f = next) {
    next = LLVMGetNextFunction(f);
    if (LLVMGetLinkage(f) == LLVMInternalLinkage && !LLVMGetFirstUse(f))
      LLVMDeleteFunction(f);
  }
}

/* The lines of the kernels that are wanted; the others go. */
static bool
read_manifests(Job *job)
{
  Gen *g = job->g;
  u32 n = LLVMGetNamedMetadataNumOperands(g->mod, MANIFESTS);
  Val *nodes = NEW_ARRAY(g->arena, Val, n + 1);
  LLVMGetNamedMetadataOperands(g->mod, MANIFESTS, nodes);
  for (u32 i = 0; i < n; i++) {
    const char *line = attached_manifest(g, nodes[i]);
    const char *name = line ? manifest_word(g, line, "kernel") : "", *target = line ? manifest_word(g, line, "target") : "";
    Val f = LLVMGetNamedFunction(g->mod, name);
    if (!line)
      return bad_text(job, "!" MANIFESTS " holds something else than manifests");
    if (!f || LLVMIsDeclaration(f))
      continue;
    if (strcmp(target, g->target->name))
      return bad_text(job, arena_printf(g->c->scratch, "this LLVM IR is for %s, not %s", target, g->target->name));
    if (!job->kernel || !strcmp(name, job->kernel))
      buf_printf(&job->lines, "%s\n", line);
    else if (!LLVMGetFirstUse(f))
      LLVMDeleteFunction(f);
  }
  drop_uncalled(g);
  if (job->lines.len)
    return true;
  return bad_text(job, job->kernel && n ? arena_printf(g->c->scratch, "no kernel is named '%s'", job->kernel)
                                        : "no kernel has a manifest here (!" MANIFESTS "): tilec reads LLVM IR that it has printed");
}

static bool
read_module(Job *job, double *since)
{
  Gen *g = job->g;
  u32 line = 0, col = 0;
  if (!gen_parse(g, source_text(g->c, job->base), source_length(g->c, job->base), &line, &col)) {
    if (line)
      job->wrong = source_foreign(g->c, source_locate(g->c, job->base).file, line, col ? col : 1);
    return false;
  }
  if (!gen_verify(g) || !read_manifests(job))
    return false;
  if (!g->opt->line_info)
    LLVMStripModuleDebugInfo(g->mod);
  lap(g, "llvm parse", since);
  return true;
}

static void
note_ptx(Op *op, void *user)
{
  Gen *g = user;
  if (op->code == OP_DOT_SPARSE && g->ptx < SPARSE_PTX)
    g->ptx = SPARSE_PTX;
}

/* The version of PTX: as old as the target lets it be, so that older drivers take it, and as new as what is in it asks for. */
static void
choose_ptx(Job *job)
{
  Gen *g = job->g;
  g->ptx = g->target->ptx;
  for (u32 i = 0; g->m && i < g->m->funcs.len; i++)
    func_walk(g->m->funcs.data[i], note_ptx, g);
  if (job->base && g->ptx < SPARSE_PTX && strstr(source_text(g->c, job->base), "@llvm.nvvm.mma.sp.ordered"))
    g->ptx = SPARSE_PTX;
}

static bool
generate(Job *job)
{
  Gen *g = job->g;
  double since = now_ms();
  choose_ptx(job);
  if (!gen_open(g))
    return false;
  lap(g, "llvm start", &since);
  if (!(job->base ? read_module(job, &since) : lower_module(g, &since)))
    return false;
  bool ok = emit_text(g, &job->text);
  lap(g, "llvm codegen", &since);
  return ok;
}

/* out gets all or nothing. */
static bool
job_do(Job *job)
{
  Gen *g = job->g;
  if (!job->base)
    emit_manifests(g->c, g->m, &job->lines, job->manifests);
  if (!generate(job) || g->failed || g->llvm_error)
    return false;
  if (!g->opt->want_llvm)
    buf_write(job->out, job->lines.data, job->lines.len);
  buf_write(job->out, job->text.data, job->text.len);
  return true;
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
    job->ok = job_do(job);
}

/* How the job ended. */
static GuardEnd
run_caught(Ctx *c, Job *job)
{
  Gen *g = job->g;
  jmp_buf outer;
  bool was_set = c->panic_set;
  memcpy(&outer, &c->panic, sizeof outer);
  GuardEnd end = gen_guard(job_run, job, g->error_text, sizeof g->error_text);
  memcpy(&c->panic, &outer, sizeof outer);
  c->panic_set = was_set;
  if (end == GUARD_FATAL)
    g->llvm_error = g->error_text;
  return end;
}

static void
report_llvm(Ctx *c, const Job *job, const char *words)
{
  const Module *m = job->g->m;
  const char *text = arena_printf(c->scratch, "LLVM: %s", words);
  if (job->base)
    diag(c, job->wrong.lo ? job->wrong : (Span){job->base, job->base}, E_TIR_SYNTAX, text);
  else
    diag(c, m->funcs.len ? m->funcs.data[0]->span : (Span){0}, E_INTERNAL, text);
}

static NORETURN void
pass_on(Ctx *c)
{
  if (c->panic_set)
    longjmp(c->panic, 1);
  ctx_panic(c, "codegen failed");
}

static void
close_all(void *user)
{
  Gen *g = user;
  while (g->team)          /* a fault left it open */
    team_close(g);
  gen_close(g);
}

/* What the job asks for, of m or of its text, appended to out behind the manifests' lines if that is PTX. */
static bool
run_job(Ctx *c, Module *m, const CodegenOptions *o, Job *job, Buf *out, TilertManifest *manifests)
{
  Gen *g = job->g = NEW(c->scratch, Gen);
  char ignored[8];
  *g = (Gen){.c = c, .m = m, .opt = o, .target = c->target, .arena = arena_new(c), .names = job->base || o->want_llvm};
  job->lines.arena = job->text.arena = g->arena;
  job->out = out;
  job->manifests = manifests;
  GuardEnd end = gen_ready() ? run_caught(c, job) : GUARD_NO_MEMORY;
  if (end == GUARD_RETURNED)   /* otherwise LLVM's objects may be half built: they are left alone */
    end = gen_guard(close_all, g, ignored, sizeof ignored);
  arena_free(g->arena);
  if (job->panicked)
    pass_on(c);
  if (end == GUARD_NO_MEMORY)
    ctx_no_memory(c);
  if (g->llvm_error)
    report_llvm(c, job, g->llvm_error);
  return job->ok;
}

bool
codegen_module(Ctx *c, Module *m, const CodegenOptions *o, Buf *out, TilertManifest *manifests)
{
  return check_all(c, m) && run_job(c, m, o, NEW(c->scratch, Job), out, manifests);
}

bool
codegen_text(Ctx *c, u32 base, const char *kernel, const CodegenOptions *o, Buf *out)
{
  Job *job = NEW(c->scratch, Job);
  job->base = base;
  job->kernel = kernel;
  return run_job(c, NULL, o, job, out, NULL);
}

const char *
codegen_llvm_version(void)
{
  return LLVM_VERSION_STRING;
}
