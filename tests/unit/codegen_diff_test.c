/* codegen_diff_test.c - what the compiled kernel does on the simulator is what the reference interpreter says.
 *
 * Every kernel in tests/codegen/diff and tests/passes/diff runs in the interpreter as it was read, then through all
 * passes and code generation for several targets on the simulator, on the same inputs; the outputs must agree.
 * A kernel says how to run it in comments, one line a parameter in order:
 *   // grid 2 1 1
 *   // buffer f32 4096        random small values (floats: eighths; integers: -8..8, unsigned 0..16)
 *   // bits f32 4096          random bit patterns, a quarter of them special
 *   // index i32 64 100       random values below 100
 *   // int 100                a scalar
 *   // tolerance 1e-5         of the buffers' floats, relative; 0 (bit for bit, any nan for a nan) when absent
 */
#include "codegen.h"
#include "passes.h"
#include "sim.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARAMS = 16 };
typedef struct Param {
  bool buffer, any_bits;
  DType dt;
  u32 n, below;
  u64 scalar;
  void *data;               /* simulator's memory */
  unsigned char *expected;
  size_t bytes;
} Param;
typedef struct Case {
  const char *file, *text, *target;
  size_t len;
  int opt_level;
  Param p[MAX_PARAMS];
  u32 n, grid[3];
  double tolerance;
  int failures;
} Case;

static const struct { const char *target; int opt_level; } ways[] = {{"sm_90a", 1}, {"sm_80", 1}, {"sm_89", 1}, {"sm_90a", 0}};

static void
fail(Case *k, const char *what)
{
  fprintf(stderr, "%s: %s -O%d: %s\n", k->file, k->target, k->opt_level, what);
  k->failures++;
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
    for (u32 e = 0; p->buffer && e < p->n; e++) {
      u64 v = random_value(&state, p);
      memcpy((char *)p->data + (size_t)e * dtype_bytes(p->dt), &v, dtype_bytes(p->dt));
    }
  }
}

/* ---- outputs ---- */
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
    for (u32 e = 0; p->buffer && e < p->n; e++) {
      u64 got = 0, want = 0;
      char what[160];
      memcpy(&got, (char *)p->data + (size_t)e * size, size);
      memcpy(&want, p->expected + (size_t)e * size, size);
      if (close_enough(k, p->dt, want, got))
        continue;
      snprintf(what, sizeof what, "parameter %u element %u is 0x%llx instead of 0x%llx", i, e, (unsigned long long)got,
               (unsigned long long)want);
      fail(k, what);
      return;
    }
  }
}

/* ---- the two ways to run ---- */
static bool
run_interp(Case *k, Func *f)
{
  u64 args[MAX_PARAMS];
  InterpBuffer buffers[MAX_PARAMS];
  InterpError err = {0};
  u32 n = 0;
  for (u32 i = 0; i < k->n; i++) {
    Param *p = &k->p[i];
    args[i] = p->buffer ? (u64)(uintptr_t)p->data : p->scalar;
    if (p->buffer)
      buffers[n++] = (InterpBuffer){p->data, p->bytes, "buffer"};
  }
  fill(k);
  if (!interp_run(f, k->grid, args, buffers, n, &err)) {
    fail(k, err.message);
    return false;
  }
  for (u32 i = 0; i < k->n; i++)
    if (k->p[i].buffer)
      memcpy(k->p[i].expected, k->p[i].data, k->p[i].bytes);
  return true;
}

static void
run_sim(Case *k, SimMachine *machine, const Func *f, const Buf *ptx)
{
  SimModule *module = NULL;
  SimError err = {0};
  const void *params[MAX_PARAMS];
  const u32 block[3] = {32 * f->warps, 1, 1};
  for (u32 i = 0; i < k->n; i++)
    params[i] = k->p[i].buffer ? (const void *)&k->p[i].data : &k->p[i].scalar;
  fill(k);
  if (sim_load(machine, ptx->data, ptx->len, &module, &err) ||
      sim_launch(module, f->name, k->grid, block, f->shared_bytes, params, NULL, &err))
    fail(k, err.message);
  else
    compare(k);
  if (module)
    sim_unload(module);
}

static void
report(Case *k, Ctx *c)
{
  Buf b = {.arena = c->perm};
  diag_render(c, &b, false, false);
  fail(k, buf_str(&b));
}

static void
run_case(Case *k, Ctx *c, SimMachine *machine)
{
  Module *m = ir_parse(c, source_add(c, k->file, k->text, k->len));
  PassOptions o = {.stop = PHASE_SCHED, .verify = true};
  CodegenOptions g = {.opt_level = k->opt_level, .line_info = true};
  Buf ptx = {.arena = c->perm};
  c->target = target_find(k->target);
  if (!m || !m->funcs.len || !ir_verify(m) || m->funcs.data[0]->body->nargs != k->n) {
    report(k, c);
    return;
  }
  Func *f = m->funcs.data[0];
  if (!run_interp(k, f))
    return;
  if (passes_run(c, m, &o) && codegen_module(c, m, &g, &ptx, NULL))
    run_sim(k, machine, f, &ptx);
  else
    report(k, c);
}

static void
run_guarded(Case *k, Ctx *c, SimMachine *machine)
{
  if (setjmp(c->panic)) {
    fail(k, c->panic_message);
    return;
  }
  c->panic_set = true;
  run_case(k, c, machine);
}

/* ---- files ---- */
static void
read_line(Case *k, SimMachine *machine, const char *line)
{
  char type[16];
  long long v;
  Param *p = &k->p[k->n];
  if (sscanf(line, "// grid %u %u %u", &k->grid[0], &k->grid[1], &k->grid[2]) > 0 ||
      sscanf(line, "// tolerance %lf", &k->tolerance) == 1 || k->n == MAX_PARAMS)
    return;
  p->any_bits = sscanf(line, "// bits %15s %u", type, &p->n) == 2;
  if (p->any_bits || sscanf(line, "// index %15s %u %u", type, &p->n, &p->below) == 3 ||
      sscanf(line, "// buffer %15s %u", type, &p->n) == 2) {
    if (!dtype_find(type, &p->dt) || sim_alloc(machine, (size_t)p->n * dtype_bytes(p->dt), &p->data, NULL))
      k->failures++;
    p->buffer = true;
    p->bytes = (size_t)p->n * dtype_bytes(p->dt);
    p->expected = malloc(p->bytes + 1);
    k->n++;
  } else if (sscanf(line, "// int %lld", &v) == 1) {
    p->scalar = (u64)v;
    k->n++;
  }
}

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

static int
test_file(const char *path)
{
  Case k = {.file = path, .grid = {1, 1, 1}};
  SimMachine *machine = NULL;
  SimOptions in_order;        /* one host thread: blocks run as the interpreter runs programs */
  SimError err;
  char *text = read_file(path, &k.len);
  sim_options_default(&in_order);
  in_order.threads = 1;
  if (!text || sim_create(&in_order, &machine, &err))
    return 1;
  k.text = text;
  for (const char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
    read_line(&k, machine, s);
  for (u32 i = 0; i < COUNT(ways); i++) {
    Ctx *c = ctx_new();
    k.target = ways[i].target;
    k.opt_level = ways[i].opt_level;
    run_guarded(&k, c, machine);
    ctx_free(c);
  }
  for (u32 i = 0; i < k.n; i++)
    free(k.p[i].expected);
  sim_destroy(machine);
  free(text);
  return k.failures;
}

static int
test_folder(const char *folder, int *files)
{
  int failures = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    char path[1024];
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 4, ".tir"))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    failures += test_file(path);
    ++*files;
  }
  if (dir)
    closedir(dir);
  return failures;
}

int
main(int argc, char **argv)
{
  int failures = 0, files = 0;
  for (int i = 1; i < argc; i++, files++)
    failures += test_file(argv[i]);
  if (argc == 1)
    failures += test_folder(TESTS_DIR "/codegen/diff", &files) + test_folder(TESTS_DIR "/passes/diff", &files);
  if (!files)
    fprintf(stderr, "no kernels to run\n");
  return failures != 0 || !files;
}
