/* passes_diff_test.c - every pass keeps the meaning of every kernel in tests/passes/diff: the interpreter runs the text as
 * it was read, then again after each pass, on the same inputs, and the outputs must agree.
 *
 * A kernel says how to run it in comments, one line a parameter in order:
 *   // grid 2 1 1
 *   // buffer f32 4096        random small values (floats: eighths; integers: -8..8, unsigned 0..16)
 *   // index i32 64 100       random values below 100
 *   // int 100                a scalar
 *   // tolerance 1e-5         of the buffers' floats, relative; 0 (bit for bit) when absent
 */
#include "../../passes/passes.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARAMS = 16 };
typedef struct Param { bool buffer; DType dt; u32 n, below; u64 scalar; unsigned char *data, *expected; size_t bytes; } Param;
typedef struct Case { const char *file, *pass; Param p[MAX_PARAMS]; u32 n, grid[3]; double tolerance; int failures; } Case;

static u64
random_bits(u64 *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static u64
random_value(u64 *state, const Param *p)
{
  u64 r = random_bits(state);
  if (p->below)
    return r % p->below;
  if (dtype_is_float(p->dt))
    return float_to_bits(p->dt, (double)((i64)(r % 65) - 32) / 8);
  if (p->dt == DT_I1)
    return r & 1;
  return dtype_is_signed(p->dt) ? (u64)((i64)(r % 17) - 8) : r % 17;
}

/* Equal kernels get equal inputs: the state starts anew for each run. */
static void
fill(Case *k)
{
  u64 state = 42;
  for (u32 i = 0; i < k->n; i++) {
    Param *p = &k->p[i];
    for (u32 e = 0; p->buffer && e < p->n; e++) {
      u64 v = random_value(&state, p);
      memcpy(p->data + (size_t)e * dtype_bytes(p->dt), &v, dtype_bytes(p->dt));
    }
  }
}

static bool
run(Case *k, Func *f)
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
  if (interp_run(f, k->grid, args, buffers, n, &err))
    return true;
  fprintf(stderr, "%s: after %s: %s\n", k->file, k->pass, err.message);
  k->failures++;
  return false;
}

static bool
close_enough(const Case *k, DType d, u64 a, u64 b)
{
  if (a == b)
    return true;
  if (!dtype_is_float(d) || k->tolerance == 0)
    return false;
  double x = float_from_bits(d, a), y = float_from_bits(d, b);
  return (isnan(x) && isnan(y)) || fabs(x - y) <= k->tolerance * (1 + fabs(x));
}

static void
compare(Case *k)
{
  for (u32 i = 0; i < k->n; i++) {
    const Param *p = &k->p[i];
    u32 size = p->buffer ? dtype_bytes(p->dt) : 0;
    for (u32 e = 0; p->buffer && e < p->n; e++) {
      u64 got = 0, want = 0;
      memcpy(&got, p->data + (size_t)e * size, size);
      memcpy(&want, p->expected + (size_t)e * size, size);
      if (close_enough(k, p->dt, want, got))
        continue;
      fprintf(stderr, "%s: after %s: parameter %u element %u: 0x%llx, was 0x%llx\n", k->file, k->pass, i, e,
              (unsigned long long)got, (unsigned long long)want);
      k->failures++;
      return;
    }
  }
}

static void
after_pass(void *user, const char *pass, Module *m)
{
  Case *k = user;
  k->pass = pass;
  if (run(k, m->funcs.data[0]))
    compare(k);
}

static void
read_line(Case *k, const char *line)
{
  char type[16];
  Param *p = &k->p[k->n];
  if (sscanf(line, "// grid %u %u %u", &k->grid[0], &k->grid[1], &k->grid[2]) > 0 ||
      sscanf(line, "// tolerance %lf", &k->tolerance) == 1 || k->n == MAX_PARAMS)
    return;
  bool index = sscanf(line, "// index %15s %u %u", type, &p->n, &p->below) == 3;
  if (index || sscanf(line, "// buffer %15s %u", type, &p->n) == 2) {
    if (!dtype_find(type, &p->dt))
      k->failures++;
    p->buffer = true;
    p->bytes = (size_t)p->n * dtype_bytes(p->dt);
    p->data = aligned_alloc(256, (p->bytes + 255) & ~(size_t)255);
    p->expected = malloc(p->bytes + 1);
    k->n++;
    return;
  }
  long long v;
  if (sscanf(line, "// int %lld", &v) == 1) {
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

static void
read_directives(Case *k, char *text)
{
  k->grid[0] = k->grid[1] = k->grid[2] = 1;
  for (char *s = text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
    read_line(k, s);
}

static void
report(Ctx *c, const char *file)
{
  Buf b = {c->perm, NULL, 0, 0};
  diag_render(c, &b, false, false);
  fprintf(stderr, "%s\n%s", file, buf_str(&b));
}

static void
run_case(Case *k, Ctx *c, const char *text, size_t len)
{
  Module *m = ir_parse(c, source_add(c, k->file, text, len));
  PassOptions o = {.stop = PHASE_SCHED, .verify = true, .after = after_pass, .user = k};
  c->target = target_find("sm_90a");
  k->pass = "reading";
  if (!m || !m->funcs.len || !ir_verify(m)) {
    k->failures++;
    report(c, k->file);
    return;
  }
  if (m->funcs.data[0]->body->nargs != k->n) {
    fprintf(stderr, "%s: %u parameters described, %u taken\n", k->file, k->n, m->funcs.data[0]->body->nargs);
    k->failures++;
    return;
  }
  if (!run(k, m->funcs.data[0]))
    return;
  for (u32 i = 0; i < k->n; i++)
    if (k->p[i].buffer)
      memcpy(k->p[i].expected, k->p[i].data, k->p[i].bytes);
  if (!passes_run(c, m, &o)) {
    k->failures++;
    report(c, k->file);
  }
}

/* The passes return here when they find a fault of their own. */
static void
run_guarded(Case *k, Ctx *c, const char *text, size_t len)
{
  if (setjmp(c->panic)) {
    fprintf(stderr, "%s: %s\n", k->file, c->panic_message);
    k->failures++;
    return;
  }
  c->panic_set = true;
  run_case(k, c, text, len);
}

static int
test_file(const char *path)
{
  size_t len = 0;
  Case k = {.file = path};
  char *text = read_file(path, &len);
  Ctx *c = ctx_new();
  if (!text || !c)
    return 1;
  read_directives(&k, text);
  run_guarded(&k, c, text, len);
  for (u32 i = 0; i < k.n; i++) {
    free(k.p[i].data);
    free(k.p[i].expected);
  }
  ctx_free(c);
  free(text);
  return k.failures;
}

int
main(int argc, char **argv)
{
  int failures = 0, files = 0;
  if (argc > 1) {
    for (int i = 1; i < argc; i++)
      failures += test_file(argv[i]);
    return failures != 0;
  }
  DIR *dir = opendir(TESTS_DIR "/passes/diff");
  for (struct dirent *e; dir && (e = readdir(dir));) {
    char path[1024];
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 4, ".tir"))
      continue;
    snprintf(path, sizeof path, "%s/passes/diff/%s", TESTS_DIR, e->d_name);
    failures += test_file(path);
    files++;
  }
  if (dir)
    closedir(dir);
  if (!files)
    fprintf(stderr, "no kernels in %s/passes/diff\n", TESTS_DIR);
  return failures != 0 || !files;
}
