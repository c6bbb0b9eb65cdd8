/* check_kernel.c - one kernel, run in every way there is; the ways must agree and none may report a fault.
 *
 *   check_kernel [--passes] [--no-sim] [--early] [--drop-barriers] [--way=TARGET[:OPT[:PASS,PASS]]]... [--save=DIR] [--against=DIR]
 *                [--given=DIR] FILE|FOLDER...
 *
 * The reference interpreter runs the kernel as it was read; what it leaves in the buffers is right. With --passes it runs the kernel again
 * after each pass that leaves a text which it has not run before, in this way or an earlier one (or, with CHECK_EVERY=N in the environment,
 * each Nth of these, and those behind the passes that leave barriers). Then the kernel is compiled
 * and runs on the simulator, once for each way: a target, the level of LLVM's optimisation (1), passes to leave out. Without --way there
 * are four. A folder stands for its .tir and .tile files. --save writes what went in and what is right, for runs elsewhere: DIR/in.N and
 * DIR/want.N of parameter N, and DIR/WAY.ptx; with --against the saved want.N are what is right. --early: asynchronous copies land on the
 * simulator when they are issued, not when they are waited for. --planted: the kernel is wrong on purpose, and the front end is not to say
 * so first. --drop-barriers: then each barrier of the PTX in turn is left out, and that the simulator says nothing of that is a finding.
 *
 * A kernel, a .tile or .tir file with one, says how to run it in comments, one line a parameter in order:
 *   // grid 2 1 1
 *   // buffer f32 4096        random small values (floats: eighths; integers: -8..8, unsigned 0..16)
 *   // bits f32 4096          random bit patterns, a quarter of them special
 *   // index i32 64 100       random values below 100
 *   // workspace u8 4096     the same, whose contents afterwards are nobody's business
 *   // given f32 4096         the bytes of DIR/given.N, for parameter N
 *   // tensor f16 200 264     a tensor of random small values, with these extents
 *   // int 100                a scalar
 *   // float 0.5              a scalar, f32
 *   // again 0                the buffer of parameter 0 once more; `same NAME OTHER` says so to the compiler
 *   // tolerance 1e-5         of the buffers' floats, relative; 0 (bit for bit, any nan for a nan) when absent
 *   // define NAME VALUE      a compile-time parameter of a .tile; also `equal NAME VALUE` and `divisible NAME VALUE`, facts
 *                            that the compiler may use of an argument
 *   // boxes found            loads that are boxes of tensors are copied so (tilec --tensors=found)
 *   // compiled NAME VALUE    a define of what is compiled only: it does there what the interpreter cannot run
 *   // barriers               the text is the output of the last pass: run none, and report a barrier that is missing
 *
 * A finding is one line: FILE: WAY: KIND: [PLACE: ]TEXT [(PLACE)]. WAY is `read`, `TARGET:OPT after PASS` or `TARGET:OPT sim`;
 * KIND is `fault`, the simulator's kind of fault, `compile` or `differs`. Exit status: 0 none, 1 some, 2 misuse. */
#include "codegen.h"
#include "frontend.h"
#include "interp.h"
#include "../../passes/internal.h"
#include "sim.h"
#include <dirent.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARAMS = 24, MAX_WORDS = 32, MAX_WAYS = 16, MAX_SEEN = 512, MAX_INSTRUCTIONS = 1 << 27, MAX_STEPS = 1 << 30, SEEDS = 4, RESIDENTS = 2 };
typedef struct Param {
  bool buffer, any_bits, workspace;
  InterpTensor tensor;      /* rank: 0 if it is none */
  u32 rank;
  DType dt;
  u32 n, below;
  u64 scalar;
  void *data;               /* simulator's memory; the interpreter works there, too */
  unsigned char *expected, *given;
  size_t bytes;
} Param;
typedef struct Words { char name[32], value[32]; } Words;
typedef struct Way { char name[128], target[32]; int opt_level; const char *without; } Way;
typedef struct Settings { Way ways[MAX_WAYS]; u32 nways; u32 every; bool passes, no_sim, early, drop_barriers, planted; const char *save, *against, *given; } Settings;
typedef struct Case {
  const Settings *set;
  const char *file, *text;
  const Way *way;
  const char *step;         /* NULL: as it was read; else the pass, or "sim" */
  size_t len;
  Ctx *ctx;
  SimMachine *machine;
  Param p[MAX_PARAMS];
  u32 n, grid[3], ndefines, ncompiled, nfacts;   /* the last ncompiled of the defines are for compiling only */
  FrontendDefine defines[MAX_WORDS];
  FrontendFact facts[MAX_WORDS];
  Words define_words[MAX_WORDS], fact_words[MAX_WORDS];
  double tolerance;
  bool barriers, boxes, known;  /* boxes: found; known: expected is filled */
  u32 passed;               /* texts that passes left, if each is looked at */
  u64 seen[MAX_SEEN];       /* digests of modules that need no other run */
  u32 nseen;
  bool planted;             /* a fault is in the PTX: findings are wanted, and not printed */
  int findings;
} Case;

static const char *const sim_kinds[] = {
  [SIM_E_PARSE] = "parse", [SIM_E_ARGUMENT] = "argument", [SIM_E_BOUNDS] = "bounds", [SIM_E_ALIGN] = "align",
  [SIM_E_UNINIT] = "uninit", [SIM_E_RACE] = "race", [SIM_E_BARRIER] = "barrier", [SIM_E_DEADLOCK] = "deadlock",
  [SIM_E_ASYNC] = "async", [SIM_E_TRAP] = "trap", [SIM_E_LIMIT] = "limit", [SIM_E_MEMORY] = "memory",
};

/* ---- findings ---- */
static void
find_at(Case *k, const char *kind, const char *file, u32 line, const char *text, SourceLoc other)
{
  k->findings++;
  if (k->planted)
    return;
  printf("%s: ", k->file);
  if (!k->step)
    printf("read");
  else
    printf("%s %s%s", k->way->name, strcmp(k->step, "sim") ? "after " : "", k->step);
  printf(": %s: ", kind);
  if (file && *file)
    printf("%s:%u: ", file, line);
  printf("%s", text);
  if (other.file)
    printf(" (%s:%u)", other.file, other.line);
  printf("\n");
}

static void
find(Case *k, const char *kind, const char *text)
{
  find_at(k, kind, NULL, 0, text, (SourceLoc){0});
}

static void
find_diagnostics(Case *k)
{
  Buf b = {.arena = k->ctx->perm};
  diag_render(k->ctx, &b, false, false);
  find(k, "compile", buf_str(&b));
}

/* ---- inputs ---- */
static u64
random_bits(u64 *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Any pattern; often zero, infinity, nan, a denormal, a small integer or a power of two. */
static u64
random_pattern(u64 *state, DType d)
{
  u64 r = random_bits(state) << 33 ^ random_bits(state) << 11 ^ random_bits(state), w = dtype_bits(d);
  u64 pick = random_bits(state) % 16, sign = (r & 1) << (w - 1);
  u64 inf = ((1ull << dtype_info[d].exp) - 1) << dtype_info[d].man;
  if (!dtype_is_float(d))
    return pick < 4 ? (u64)((i64)(r % 5) - 2) : r;
  switch (pick) {
  case 0: return sign;
  case 1: return inf | sign;
  case 2: return (inf + 1) | sign;
  case 3: return (r >> 8 & ((1ull << dtype_info[d].man) - 1)) | sign;
  default: return pick < 10 ? float_to_bits(d, ldexp((double)(i64)(r % 4001) - 2000, (int)(r >> 20 & 31) - 16)) : r;
  }
}

static u64
random_value(u64 *state, const Param *p)
{
  if (p->any_bits)
    return random_pattern(state, p->dt);
  u64 r = random_bits(state);
  if (p->below)
    return r % p->below;
  if (dtype_is_float(p->dt))
    return float_to_bits(p->dt, (double)((i64)(r % 65) - 32) / 8);
  if (p->dt == DT_I1)
    return r & 1;
  return dtype_is_signed(p->dt) ? (u64)((i64)(r % 17) - 8) : r % 17;
}

/* Equal inputs for every run: the state starts anew. */
static void
fill(Case *k)
{
  u64 state = 42;
  for (u32 i = 0; i < k->n; i++) {
    Param *p = &k->p[i];
    if (p->given)
      memcpy(p->data, p->given, p->bytes);
    for (u32 e = 0; p->buffer && !p->given && e < p->n; e++) {
      u64 v = random_value(&state, p);
      memcpy((char *)p->data + (size_t)e * dtype_bytes(p->dt), &v, dtype_bytes(p->dt));
    }
  }
}

/* ---- outputs ---- */
static void
save(const Case *k, const char *what, u32 i, const void *data, size_t bytes)
{
  char path[1024];
  if (!k->set->save || !k->p[i].buffer)
    return;
  snprintf(path, sizeof path, "%s/%s.%u", k->set->save, what, i);
  FILE *f = fopen(path, "wb");
  if (f) {
    fwrite(data, 1, bytes, f);
    fclose(f);
  }
}

static void
save_ptx(const Case *k, const Buf *ptx)
{
  char path[1024];
  if (!k->set->save)
    return;
  snprintf(path, sizeof path, "%s/%s.ptx", k->set->save, k->way->name);
  FILE *f = fopen(path, "wb");
  if (f) {
    fwrite(ptx->data, 1, ptx->len, f);
    fclose(f);
  }
}

static void
keep_expected(Case *k)
{
  for (u32 i = 0; i < k->n; i++)
    if (k->p[i].buffer) {
      memcpy(k->p[i].expected, k->p[i].data, k->p[i].bytes);
      save(k, "want", i, k->p[i].expected, k->p[i].bytes);
    }
  k->known = true;
}

static bool
close_enough(const Case *k, DType d, u64 a, u64 b)
{
  if (a == b)
    return true;
  if (!dtype_is_float(d))
    return false;
  double x = float_from_bits(d, a), y = float_from_bits(d, b);
  return (isnan(x) && isnan(y)) || (k->tolerance > 0 && fabs(x - y) <= k->tolerance * (1 + fabs(x)));
}

static void
compare(Case *k)
{
  for (u32 i = 0; i < k->n; i++) {
    const Param *p = &k->p[i];
    u32 size = p->buffer ? dtype_bytes(p->dt) : 0;
    for (u32 e = 0; p->buffer && !p->workspace && e < p->n; e++) {
      u64 got = 0, want = 0;
      char what[160];
      memcpy(&got, (char *)p->data + (size_t)e * size, size);
      memcpy(&want, p->expected + (size_t)e * size, size);
      if (close_enough(k, p->dt, want, got))
        continue;
      snprintf(what, sizeof what, "parameter %u element %u is 0x%llx instead of 0x%llx", i, e, (unsigned long long)got,
               (unsigned long long)want);
      find(k, "differs", what);
      return;
    }
  }
}

/* What is right, from another run. */
static void
load_expected(Case *k)
{
  for (u32 i = 0; i < k->n; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/want.%u", k->set->against, i);
    FILE *f = k->p[i].buffer ? fopen(path, "rb") : NULL;
    if (f && fread(k->p[i].expected, 1, k->p[i].bytes, f) == k->p[i].bytes)
      k->known = true;
    if (f)
      fclose(f);
  }
}

/* ---- the interpreter ---- */
static bool
run_interp(Case *k, Func *f, bool barriers, u64 seed)
{
  u64 args[MAX_PARAMS];
  InterpBuffer buffers[MAX_PARAMS];
  InterpOptions o = {.max_steps = MAX_STEPS, .barriers = barriers, .seed = seed};
  InterpError err = {0};
  u32 n = 0;
  for (u32 i = 0; i < k->n; i++) {
    Param *p = &k->p[i];
    args[i] = p->rank ? (u64)(uintptr_t)&p->tensor : p->buffer ? (u64)(uintptr_t)p->data : p->scalar;
    if (p->buffer)
      buffers[n++] = (InterpBuffer){p->data, p->bytes, "buffer"};
  }
  fill(k);
  if (interp_run_with(f, k->grid, args, buffers, n, &o, &err))
    return true;
  SourceLoc at = source_locate(k->ctx, err.span.lo);
  find_at(k, "fault", at.file, at.line, err.message, err.other.lo ? source_locate(k->ctx, err.other.lo) : (SourceLoc){0});
  return false;
}

/* In whatever order its teams take turns, a kernel comes to the same. */
static void
run_turns(Case *k, Func *f, bool barriers)
{
  for (u64 seed = 1; func_teams(f) && seed <= SEEDS; seed++)
    if (run_interp(k, f, barriers, seed))
      compare(k);
}

/* Has this module been here? A run depends on its text, on whether barriers are there, and of the target on how it rounds to tf32. */
static bool
seen(Case *k, const Module *m, bool barriers)
{
  Buf text = {.arena = k->ctx->perm}, key = {.arena = k->ctx->perm};
  ir_print(&text, m, false);
  key_put(&key, (u64)barriers * 2 + target_has(k->ctx->target, F_CVT_TF32));
  buf_puts(&key, strchr(buf_str(&text), '\n'));      /* behind the line that says how far the text has come */
  buf_puts(&key, "       ");                         /* whole words are hashed */
  u64 digest = key_hash(&key);
  for (u32 i = 0; i < k->nseen; i++)
    if (k->seen[i] == digest)
      return true;
  if (k->nseen < MAX_SEEN)
    k->seen[k->nseen++] = digest;
  return false;
}

static void
after_pass(void *user, const char *pass, Module *m)
{
  Case *k = user;
  bool barriers = !strcmp(pass, "insert_barriers") || !strcmp(pass, "load_on_demand");
  k->step = pass;
  if (seen(k, m, barriers) || (k->passed++ % k->set->every && !barriers))
    return;
  if (run_interp(k, m->funcs.data[0], barriers, 0))
    compare(k);
  if (barriers)
    run_turns(k, m->funcs.data[0], barriers);
}

/* ---- the compiler and the simulator ---- */

typedef struct Packed { _Alignas(64) unsigned char map[SIM_TENSOR_MAP_BYTES]; u64 word; } Packed;

/* The map of a tensor's boxes; numbers of types as in the CUDA driver API, CUtensorMapDataType. */
static bool
pack_map(const Param *p, const TilertParam *t, Packed *out, SimError *err)
{
  static const int types[DT_COUNT] = {[DT_U8] = 0, [DT_I8] = 0, [DT_F8E4M3] = 0, [DT_F8E5M2] = 0, [DT_U16] = 1, [DT_I16] = 1, [DT_U32] = 2,
    [DT_I32] = 3, [DT_U64] = 4, [DT_I64] = 5, [DT_F16] = 6, [DT_F32] = 7, [DT_F64] = 8, [DT_BF16] = 9};
  u64 extent[MAX_RANK], stride[MAX_RANK];
  u32 box[MAX_RANK], step[MAX_RANK], swizzle = 0;
  for (u32 d = 0; d < p->rank; d++) {
    extent[d] = p->tensor.extent[p->rank - 1 - d];
    box[d] = t->box[p->rank - 1 - d];
    step[d] = t->pixels && d && d + 1 < p->rank ? t->steps[p->rank - 2 - d] : 1;
    if (d)
      stride[d - 1] = p->tensor.stride[p->rank - 1 - d] * dtype_bytes(p->dt);
  }
  for (u32 s = t->swizzle; s >= 32; s /= 2)
    swizzle++;
  SimTensor map = {.type = types[p->dt], .swizzle = (int)swizzle, .rank = p->rank, .address = p->tensor.base, .extent = extent,
                   .stride = stride, .box = box, .step = step};
  i32 lower[MAX_RANK], upper[MAX_RANK];
  for (u32 d = 0; d + 2 < p->rank; d++) {
    lower[d] = t->lower[p->rank - 3 - d];
    upper[d] = t->upper[p->rank - 3 - d];
  }
  SimPixels pixels = {lower, upper, box[0], t->pixels};
  return !(t->pixels ? sim_tensor_map_im2col(&map, &pixels, out->map, err) : sim_tensor_map(&map, out->map, err));
}

/* The argument that a parameter of the PTX is. */
static const Param *
argument(const Case *k, const TilertManifest *m, u32 param)
{
  u32 first[TILERT_MAX_PARAMS], n = tilert_manifest_args(m, first);
  while (n && first[n - 1] > param)
    n--;
  return &k->p[n - 1];
}

static u64
product(const Case *k, const TilertManifest *m, const TilertProduct *x)
{
  u64 v = (u64)x->times;
  for (u32 i = 0; i < x->n; i++)
    v *= (u64)(i64)(i32)argument(k, m, x->param[i])->scalar;
  return v;
}

/* The map of what a pointer leads to. */
static bool
pack_view(const Case *k, const TilertManifest *m, const TilertParam *t, Packed *out, SimError *err)
{
  const Param *of = argument(k, m, t->of);
  Param p = {.rank = t->rank, .dt = of->dt, .tensor = {.base = (u64)(uintptr_t)of->data}};
  for (u32 d = 0; d < t->rank; d++) {
    p.tensor.extent[d] = product(k, m, &t->extents[d]);
    p.tensor.stride[d] = d + 1 < t->rank ? product(k, m, &t->strides[d]) : 1;
  }
  return pack_map(&p, t, out, err);
}

/* Part t of tensor p; false with *err. */
static bool
pack_part(const Param *p, const TilertParam *t, Packed *out, SimError *err)
{
  switch (t->part) {
  case TILERT_TENSOR_MAP: return pack_map(p, t, out, err);
  case TILERT_TENSOR_BASE: out->word = p->tensor.base; return true;
  case TILERT_TENSOR_EXTENT: out->word = p->tensor.extent[t->dim]; return true;
  case TILERT_TENSOR_STRIDE: out->word = p->tensor.stride[t->dim]; return true;
  }
  return false;
}

/* What the PTX's parameters are given. */
static bool
pack(Case *k, const TilertManifest *m, Packed *room, const void **params, SimError *err)
{
  u32 first[TILERT_MAX_PARAMS], n = tilert_manifest_args(m, first), own = m->nparams;
  while (own && (m->params[own - 1].kind == TILERT_PARAM_VIEW || m->params[own - 1].kind == TILERT_PARAM_GRID))
    own--;
  for (u32 j = own; j < m->nparams; j++) {
    const TilertParam *t = &m->params[j];
    room[j].word = k->grid[t->dim];
    params[j] = t->kind == TILERT_PARAM_VIEW ? (const void *)room[j].map : &room[j].word;
    if (t->kind == TILERT_PARAM_VIEW && !pack_view(k, m, t, &room[j], err))
      return false;
  }
  for (u32 i = 0; i < n && i < k->n; i++)
    for (u32 j = first[i]; j < (i + 1 < n ? first[i + 1] : own); j++) {
      const TilertParam *t = &m->params[j];
      params[j] = k->p[i].buffer ? (const void *)&k->p[i].data : &k->p[i].scalar;
      if (t->kind != TILERT_PARAM_TENSOR)
        continue;
      params[j] = t->part == TILERT_TENSOR_MAP ? (const void *)room[j].map : &room[j].word;
      if (!pack_part(&k->p[i], t, &room[j], err))
        return false;
    }
  return true;
}
static void
run_sim(Case *k, const Func *f, const TilertManifest *manifest, const Buf *ptx)
{
  SimModule *module = NULL;
  SimError err = {0};
  const void *params[TILERT_MAX_PARAMS];
  Packed *room = aligned_alloc(64, TILERT_MAX_PARAMS * sizeof *room);
  const u32 block[3] = {32 * f->warps, 1, 1}, all = k->grid[0] * k->grid[1] * k->grid[2];
  const u32 resident[3] = {all < RESIDENTS ? all : RESIDENTS, 1, 1};   /* of a persistent kernel few, so that each does what several do */
  fill(k);
  if (!pack(k, manifest, room, params, &err) || sim_load(k->machine, ptx->data, ptx->len, &module, &err) ||
      sim_launch(module, f->name, manifest->persistent ? resident : k->grid, block, f->shared_bytes, params, NULL, &err))
    find_at(k, sim_kinds[err.kind], err.file, err.line, err.message, (SourceLoc){0});
  else if (k->known)
    compare(k);
  if (module)
    sim_unload(module);
  free(room);
}

/* Are there as many parameters in the comments, tensors where the kernel has tensors? */
static bool
describes(const Case *k, const Func *f)
{
  bool same = f->body->nargs == k->n;
  for (u32 i = 0; same && i < k->n; i++) {
    const Type *t = f->body->args[i]->type;
    same = (type_is_tensor(t) ? t->rank : 0) == k->p[i].rank;
  }
  return same;
}

static Module *
read_module(Case *k, u32 ndefines)
{
  u32 base = source_add(k->ctx, SOURCE_PROGRAM, k->file, k->text, k->len);
  size_t n = strlen(k->file);
  FrontendOptions o = {.defines = k->defines, .ndefines = ndefines, .facts = k->facts, .nfacts = k->nfacts, .unrehearsed = k->set->planted};
  Module *m = n > 4 && !strcmp(k->file + n - 4, ".tir") ? ir_parse(k->ctx, base)
                                                         : frontend_compile(k->ctx, base, &o);
  if (!m || !m->funcs.len || !ir_verify(m)) {
    find_diagnostics(k);
    return NULL;
  }
  if (describes(k, m->funcs.data[0]))
    return m;
  find(k, "compile", "the comments do not describe the kernel's parameters");
  return NULL;
}

static const char *
pass_list(Case *k, const Way *w)
{
  Buf b = {.arena = k->ctx->perm};
  char name[64];
  if (k->barriers)
    return "";
  if (!w->without)
    return NULL;
  for (u32 i = 0; passes_order[i]; i++) {
    snprintf(name, sizeof name, ",%s,", passes_order[i]);
    if (!strstr(w->without, name))
      buf_printf(&b, "%s%s", b.len ? "," : "", passes_order[i]);
  }
  return buf_str(&b);
}

/* The module behind the passes, run in between with `check`; NULL after reporting. */
static Module *
run_passes(Case *k, u32 ndefines, bool check)
{
  PassOptions o = {.stop = PHASE_SCHED, .verify = true, .user = k, .list = pass_list(k, k->way), .after = check ? after_pass : NULL};
  Module *m = read_module(k, ndefines);
  k->passed = 0;
  if (!m || passes_run(k->ctx, m, &o))
    return m;
  find_diagnostics(k);
  return NULL;
}

/* The PTX without one barrier after the other. */
static void
drop_barriers(Case *k, const Func *f, const TilertManifest *m, Buf *ptx)
{
  static const char barrier[] = "bar.sync";
  char *text = arena_strndup(k->ctx->perm, buf_str(ptx), ptx->len);
  u32 n = 0;
  for (char *s = strstr(text, barrier); s; s = strstr(s + 1, barrier), n++) {
    char kept[sizeof barrier], what[64];
    int findings = k->findings;
    Buf without = {.arena = k->ctx->perm};
    memcpy(kept, s, sizeof kept);
    memcpy(s, "//      ", sizeof barrier - 1);
    buf_puts(&without, text);
    k->planted = true;
    run_sim(k, f, m, &without);
    k->planted = false;
    memcpy(s, kept, sizeof kept);
    snprintf(what, sizeof what, "barrier %u can be left out unnoticed", n);
    bool noticed = k->findings > findings;
    k->findings = findings;
    if (!noticed)
      find(k, "silent", what);
  }
  if (!n)
    find(k, "silent", "there is no barrier");
}

static void
run_way(Case *k)
{
  const Way *w = k->way;
  CodegenOptions g = {.opt_level = w->opt_level, .line_info = true};
  Buf ptx = {.arena = k->ctx->perm};
  bool check = k->set->passes && k->known;
  if (k->ncompiled && check && !run_passes(k, k->ndefines - k->ncompiled, true))
    return;
  k->step = "reading";
  Module *m = run_passes(k, k->ndefines, check && !k->ncompiled);
  if (!m)
    return;
  k->step = "sim";
  TilertManifest *manifest = NEW_ARRAY(k->ctx->perm, TilertManifest, m->funcs.len);     /* the first kernel is looked at */
  if (!codegen_module(k->ctx, m, &g, &ptx, manifest)) {
    find_diagnostics(k);
    return;
  }
  save_ptx(k, &ptx);
  if (!k->set->no_sim)
    run_sim(k, m->funcs.data[0], manifest, &ptx);
  if (k->set->drop_barriers && !k->findings)
    drop_barriers(k, m->funcs.data[0], manifest, &ptx);
}

/* Which way a function of real numbers is computed is no matter of right or wrong: what is compared comes behind that choice. */
static Module *
with_maths_chosen(Case *k, Module *m)
{
  PassOptions o = {.list = "choose_maths", .verify = true};
  return m && m->phase == PHASE_TILE && !passes_run(k->ctx, m, &o) ? NULL : m;
}

static void
run_as_read(Case *k)
{
  Module *m = with_maths_chosen(k, read_module(k, k->ndefines - k->ncompiled));
  for (u32 i = 0; i < k->n; i++)
    if (k->p[i].buffer && k->set->save) {
      fill(k);
      save(k, "in", i, k->p[i].data, k->p[i].bytes);
    }
  if (k->set->against)
    load_expected(k);
  if (!m || !run_interp(k, m->funcs.data[0], k->barriers, 0))
    return;
  seen(k, m, k->barriers);
  if (k->known)
    compare(k);
  else
    keep_expected(k);
  run_turns(k, m->funcs.data[0], k->barriers);
}

/* Compiler faults come back here. */
static void
run_guarded(Case *k, void (*run)(Case *))
{
  k->ctx = ctx_new();
  k->ctx->target = target_find(k->way->target);
  k->ctx->boxes = k->boxes ? BOXES_FOUND : BOXES_STATED;
  if (setjmp(k->ctx->panic)) {
    find(k, "compile", k->ctx->panic_message);
  } else {
    k->ctx->panic_set = true;
    run(k);
  }
  ctx_free(k->ctx);
}

/* ---- files ---- */
static char *
read_file(const char *path, size_t *len)
{
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  fseek(f, 0, SEEK_END);
  *len = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(*len + 1);
  *len = fread(text, 1, *len, f);
  text[*len] = 0;
  fclose(f);
  return text;
}

static void
read_buffer(Case *k, Param *p, const char *type)
{
  if (!dtype_find(type, &p->dt) || sim_alloc(k->machine, (size_t)p->n * dtype_bytes(p->dt), &p->data, NULL)) {
    find(k, "compile", "a comment with an unknown type");
    return;
  }
  p->buffer = true;
  p->bytes = (size_t)p->n * dtype_bytes(p->dt);
  p->expected = calloc(p->bytes + 1, 1);
  k->n++;
}

/* Extents, from the words of a comment: rows begin at multiples of 16 bytes. */
static void
read_tensor(Case *k, Param *p, const char *type, const u32 *extent, u32 rank)
{
  DType d;
  u64 stride = 1;
  if (!dtype_find(type, &d))
    return;
  for (u32 i = rank; i--;) {
    p->tensor.extent[i] = extent[i];
    p->tensor.stride[i] = stride;
    stride *= extent[i];
    if (i + 1 == rank)
      stride = align_up((u32)stride, 16 / dtype_bytes(d));
  }
  p->rank = rank;
  p->n = (u32)stride;
  read_buffer(k, p, type);
  p->tensor.base = (u64)(uintptr_t)p->data;
}

static void
read_given(Case *k, Param *p, u32 index)
{
  char path[1024];
  size_t len = 0;
  snprintf(path, sizeof path, "%s/given.%u", k->set->given ? k->set->given : ".", index);
  p->given = p->buffer ? (unsigned char *)read_file(path, &len) : NULL;
  if (p->given && len == p->bytes)
    return;
  free(p->given);
  p->given = NULL;
  find(k, "compile", "there is no file given.N of the parameter's size");
}

static void
read_words(Case *k, const char *line)
{
  Words *d = &k->define_words[k->ndefines], *f = &k->fact_words[k->nfacts];
  bool equal = sscanf(line, "// equal %31s %31s", f->name, f->value) == 2;
  if (k->nfacts + 1 < MAX_WORDS && (equal || sscanf(line, "// divisible %31s %31s", f->name, f->value) == 2))
    k->facts[k->nfacts++] = (FrontendFact){f->name, equal ? FACT_EQUAL : FACT_DIVISIBLE, atoll(f->value), NULL};
  f = &k->fact_words[k->nfacts];
  if (k->nfacts + 1 < MAX_WORDS && sscanf(line, "// same %31s %31s", f->name, f->value) == 2)
    k->facts[k->nfacts++] = (FrontendFact){f->name, FACT_SAME, 0, f->value};
  bool compiled = sscanf(line, "// compiled %31s %31s", d->name, d->value) == 2;
  if (k->ndefines + 1 < MAX_WORDS && (compiled || sscanf(line, "// define %31s %31s", d->name, d->value) == 2)) {
    k->defines[k->ndefines++] = (FrontendDefine){d->name, d->value};
    k->ncompiled += compiled;
  }
}

static void
read_line(Case *k, const char *line)
{
  char type[16];
  long long v;
  u32 other, extent[MAX_RANK];
  int words;
  float f;
  Param *p = &k->p[k->n];
  if (!strncmp(line, "// barriers\n", 12))
    k->barriers = true;
  k->boxes |= !strncmp(line, "// boxes found\n", 15);
  read_words(k, line);
  if (sscanf(line, "// grid %u %u %u", &k->grid[0], &k->grid[1], &k->grid[2]) > 0 ||
      sscanf(line, "// tolerance %lf", &k->tolerance) == 1 || k->n == MAX_PARAMS)
    return;
  p->any_bits = sscanf(line, "// bits %15s %u", type, &p->n) == 2;
  p->workspace = sscanf(line, "// workspace %15s %u", type, &p->n) == 2;
  if (p->any_bits || p->workspace || sscanf(line, "// index %15s %u %u", type, &p->n, &p->below) == 3 ||
      sscanf(line, "// buffer %15s %u", type, &p->n) == 2) {
    read_buffer(k, p, type);
  } else if (sscanf(line, "// given %15s %u", type, &p->n) == 2) {
    read_buffer(k, p, type);
    read_given(k, p, k->n - 1);
  } else if ((words = sscanf(line, "// tensor %15s %u %u %u %u %u", type, &extent[0], &extent[1], &extent[2], &extent[3], &extent[4])) > 1) {
    read_tensor(k, p, type, extent, (u32)words - 1);
  } else if (sscanf(line, "// float %f", &f) == 1) {
    memcpy(&p->scalar, &f, sizeof f);
    k->n++;
  } else if (sscanf(line, "// again %u", &other) == 1 && other < k->n) {
    p->scalar = (u64)(uintptr_t)k->p[other].data;
    k->n++;
  } else if (sscanf(line, "// int %lld", &v) == 1) {
    p->scalar = (u64)v;
    k->n++;
  }
}

static int
check_file(const Settings *set, const char *path)
{
  Case k = {.set = set, .file = path, .grid = {1, 1, 1}, .way = &set->ways[0]};
  SimOptions in_order;        /* one host thread: blocks run as the interpreter runs programs */
  SimError err;
  char *text = read_file(path, &k.len);
  sim_options_default(&in_order);
  in_order.threads = 1;
  in_order.early_copies = set->early;
  in_order.max_instructions = MAX_INSTRUCTIONS;
  if (!text || sim_create(&in_order, &k.machine, &err)) {
    fprintf(stderr, "cannot read %s\n", path);
    return 1;
  }
  k.text = text;
  for (const char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
    read_line(&k, s);
  run_guarded(&k, run_as_read);
  for (u32 i = 0; i < set->nways && (!k.findings || set->against); i++) {
    k.way = &set->ways[i];
    k.step = "reading";
    run_guarded(&k, run_way);
  }
  for (u32 i = 0; i < k.n; i++)
    free(k.p[i].expected), free(k.p[i].given);
  sim_destroy(k.machine);
  free(text);
  return k.findings;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* The .tir and .tile files of a folder; -1 if it is none. */
static int
check_folder(const Settings *set, const char *folder)
{
  struct dirent **found;
  int findings = 0, files = 0, n = scandir(folder, &found, NULL, by_name);
  for (int i = 0; i < n; i++) {
    char path[1024];
    const char *dot = strrchr(found[i]->d_name, '.');
    snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
    if (dot && (!strcmp(dot, ".tir") || !strcmp(dot, ".tile"))) {
      findings += check_file(set, path);
      files++;
    }
    free(found[i]);
  }
  if (n >= 0)
    free(found);
  if (n >= 0 && !files)
    fprintf(stderr, "no kernels in %s\n", folder);
  return n < 0 ? -1 : findings + !files;
}

/* TARGET[:OPT[:PASS,PASS]] */
static bool
add_way(Settings *set, const char *text)
{
  if (set->nways == MAX_WAYS)
    return false;
  Way *w = &set->ways[set->nways];
  char target[32], without[128] = "";
  w->opt_level = 1;
  if (sscanf(text, "%31[^:]:%d:%126s", target, &w->opt_level, without) < 1 || !target_find(target))
    return false;
  memcpy(w->target, target, sizeof target);
  snprintf(w->name, sizeof w->name, "%s:%d%s%.80s", target, w->opt_level, *without ? ":" : "", without);
  if (*without) {
    size_t n = strlen(without) + 3;
    char *list = malloc(n);
    snprintf(list, n, ",%s,", without);
    w->without = list;
  }
  set->nways++;
  return true;
}

int
main(int argc, char **argv)
{
  static const char *const usual[] = {"sm_90a", "sm_80", "sm_89", "sm_90a:0"};
  const char *every = getenv("CHECK_EVERY");
  Settings set = {.every = every && atoi(every) > 0 ? (u32)atoi(every) : 1};
  int findings = 0, files = 0;
  bool ok = true;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);      /* memory of one run is the next one's: pages new from the kernel cost a fifth of all */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (int i = 1; i < argc && ok; i++) {
    if (!strcmp(argv[i], "--passes")) set.passes = true;
    else if (!strcmp(argv[i], "--planted")) set.planted = true;
    else if (!strcmp(argv[i], "--no-sim")) set.no_sim = true;
    else if (!strcmp(argv[i], "--early")) set.early = true;
    else if (!strcmp(argv[i], "--drop-barriers")) set.drop_barriers = true;
    else if (!strncmp(argv[i], "--save=", 7)) set.save = argv[i] + 7;
    else if (!strncmp(argv[i], "--against=", 10)) set.against = argv[i] + 10;
    else if (!strncmp(argv[i], "--given=", 8)) set.given = argv[i] + 8;
    else if (!strncmp(argv[i], "--way=", 6)) ok = add_way(&set, argv[i] + 6);
    else ok = argv[i][0] != '-';
  }
  bool none = !set.nways;
  for (u32 i = 0; ok && none && i < COUNT(usual); i++)
    ok = add_way(&set, usual[i]);
  for (int i = 1; i < argc && ok; i++) {
    if (argv[i][0] == '-')
      continue;
    int n = check_folder(&set, argv[i]);
    findings += n < 0 ? check_file(&set, argv[i]) : n;
    files++;
  }
  for (u32 i = 0; i < set.nways; i++)
    free((void *)(uintptr_t)set.ways[i].without);
  if (ok && files)
    return findings != 0;
  fprintf(stderr, "usage: check_kernel [--passes] [--no-sim] [--planted] [--early] [--drop-barriers] [--way=TARGET[:OPT[:PASS,PASS]]]... "
          "[--save=DIR] [--against=DIR] [--given=DIR] FILE|FOLDER...\n");
  return 2;
}
