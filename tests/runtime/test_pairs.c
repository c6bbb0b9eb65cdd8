/* Pairs of programs that differ in one thing, over one cache directory: each must get its own kernel, in one process and in two, and
 * what one process kept the next must find. With the real compiler, on the simulator. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include "jit.h"

enum { N = 32, PTX = 1 << 14 };

static char root[] = "/tmp/tilec-pairs-XXXXXX";

/* One program and one launch of it: k(x, y, n, m), x being 0, 1, 2, ... */
typedef struct Case {
  const char *text, *name, *kernel, *target;
  const char *imports[2], *files[6];   /* folders, then files and their texts, all under root */
  TilecDefine defines[2];
  int no_line_info, no_specialisation, n, m, skew;   /* skew: elements that y lies behind an aligned address */
} Case;

typedef struct Pair {
  const char *what;
  Case a, b;
  int same;                            /* both give the same: sharing an entry is right */
} Pair;

/* What a launch gave; in memory that parent and children share. */
typedef struct Outcome { int status, from_cache; float y[N]; char ptx[PTX]; char message[512]; } Outcome;

#define KERNEL(name, more) "kernel " name "(x: *f32, y: *f32, n: i32, m: i32, const A: i32 = 1, const B: i32 = 1, type T = f32) {\n" \
  "  let i = arange(0, 32);\n  store(y + i, load(x + i) " more ", mask=i < 32 * n);\n}\n"
#define BODY KERNEL("k", "+ f32(A) * 100.0 + f32(B) * 10.0")
#define TYPED "kernel k(x: *f32, y: *f32, n: i32, m: i32, type T = f32) {\n" \
  "  let i = arange(0, 32);\n  store(y + i, f32(T(load(x + i) * 0.75)));\n}\n"
#define SCALED "kernel k(x: *f32, y: *f32, n: i32, m: i32) {\n" \
  "  let i = arange(0, 32);\n  store(y + i, load(x + i) * f32(n) + f32(m));\n}\n"
#define USES(file) "import \"" file "\";\n" KERNEL("k", "+ f()")
#define GIVES(value) "fn f() { return " value "; }\n"

#define IR(value) "module tile\n\nkernel @k(%0_x: *f32, %1_y: *f32, %2_n: i32, %3_m: i32) warps = 1 shared = 0 {\n" \
  "  %4 = arange start = 0 end = 32 : i32[32]\n  %5 = splat %1_y : (*f32)[32]\n  %6 = addptr %5, %4 : (*f32)[32]\n" \
  "  %7 = splat %0_x : (*f32)[32]\n  %8 = addptr %7, %4 : (*f32)[32]\n  %9 = load %8 : f32[32]\n" \
  "  %10 = const value = " value " : f32[32]\n  %11 = add %9, %10 : f32[32]\n  store %6, %11\n  return\n}\n"
#define CHECKS "fn f() { assert(num_programs(0) < 5, \"few\"); return 1.0; }\n"   /* names its file */

static const Pair pairs[] = {
  {"text", {.text = BODY}, {.text = KERNEL("k", "+ 1.0")}, 0},
  {"text, named as a string", {.text = BODY, .name = "<string>"}, {.text = KERNEL("k", "+ 1.0"), .name = "<string>"}, 0},
  {"text, named as the library is", {.text = BODY, .name = "<math.tile>"}, {.text = KERNEL("k", "+ 1.0"), .name = "<math.tile>"}, 0},
  {"text, named as a define is", {.text = BODY, .name = "<-D B>"}, {.text = KERNEL("k", "+ 1.0"), .name = "<-D B>"}, 0},
  {"text, not named", {.text = BODY, .name = ""}, {.text = KERNEL("k", "+ 1.0"), .name = ""}, 0},
  {"name of the program", {.text = BODY, .name = "one.tile"}, {.text = BODY, .name = "two.tile"}, 0},
  {"kernel", {.text = BODY KERNEL("l", "+ 5.0"), .kernel = "k"}, {.text = BODY KERNEL("l", "+ 5.0"), .kernel = "l"}, 0},
  {"text of an import", {.text = USES("f.tile"), .files = {"f.tile", GIVES("1.0")}},
   {.text = USES("f.tile"), .files = {"f.tile", GIVES("2.0")}}, 0},
  {"text of an import named as a string", {.text = USES("<f>"), .files = {"<f>", GIVES("1.0")}},
   {.text = USES("<f>"), .files = {"<f>", GIVES("2.0")}}, 0},
  {"name of an import", {.text = USES("f.tile"), .imports = {"p"}, .files = {"p/f.tile", CHECKS}},
   {.text = USES("f.tile"), .imports = {"q"}, .files = {"q/f.tile", CHECKS}}, 0},
  {"which of two files an import means",
   {.text = "import \"p/f.tile\";\nimport \"q/f.tile\";\nimport \"g.tile\";\n" KERNEL("k", "+ g()"), .imports = {"p"},
    .files = {"p/f.tile", GIVES("1.0"), "q/f.tile", GIVES("2.0"), "g.tile", "import \"f.tile\";\nfn g() { return f(); }\n"}},
   {.text = "import \"p/f.tile\";\nimport \"q/f.tile\";\nimport \"g.tile\";\n" KERNEL("k", "+ g()"), .imports = {"q"},
    .files = {"p/f.tile", GIVES("1.0"), "q/f.tile", GIVES("2.0"), "g.tile", "import \"f.tile\";\nfn g() { return f(); }\n"}}, 0},
  {"name of a define", {.text = BODY, .defines = {{"A", "3"}}}, {.text = BODY, .defines = {{"B", "3"}}}, 0},
  {"value of a define", {.text = BODY, .defines = {{"A", "3"}}}, {.text = BODY, .defines = {{"A", "4"}}}, 0},
  {"values of defines, exchanged", {.text = BODY, .defines = {{"A", "3"}, {"B", "4"}}},
   {.text = BODY, .defines = {{"A", "4"}, {"B", "3"}}}, 0},
  {"number of defines", {.text = BODY, .defines = {{"A", "3"}}}, {.text = BODY, .defines = {{"A", "3"}, {"B", "3"}}}, 0},
  {"order of defines", {.text = BODY, .defines = {{"A", "3"}, {"B", "4"}}}, {.text = BODY, .defines = {{"B", "4"}, {"A", "3"}}}, 1},
  {"type parameter", {.text = TYPED, .defines = {{"T", "f32"}}}, {.text = TYPED, .defines = {{"T", "i32"}}}, 0},
  {"warps", {.text = BODY, .defines = {{"warps", "1"}}}, {.text = BODY, .defines = {{"warps", "2"}}}, 0},
  {"target", {.text = BODY, .target = "sm_80"}, {.text = BODY, .target = "sm_89"}, 0},
  {"line info", {.text = BODY}, {.text = BODY, .no_line_info = 1}, 0},
  {"specialisation", {.text = SCALED, .n = 1}, {.text = SCALED, .n = 1, .no_specialisation = 1}, 0},
  {"an integer that is 1", {.text = SCALED, .n = 1}, {.text = SCALED, .n = 3}, 0},
  {"which integer is 1", {.text = SCALED, .n = 1, .m = 3}, {.text = SCALED, .n = 3, .m = 1}, 0},
  {"an integer divisible by 16", {.text = SCALED, .n = 16}, {.text = SCALED, .n = 17}, 0},
  {"an integer divisible by 8", {.text = SCALED, .n = 8}, {.text = SCALED, .n = 9}, 0},
  {"an integer divisible by 4", {.text = SCALED, .n = 4}, {.text = SCALED, .n = 5}, 0},
  {"an integer divisible by 2", {.text = SCALED, .n = 2}, {.text = SCALED, .n = 3}, 0},
  {"by how much an integer is divisible, 4 and 2", {.text = SCALED, .n = 4}, {.text = SCALED, .n = 2}, 0},
  {"which integer is divisible by 2", {.text = SCALED, .n = 2, .m = 3}, {.text = SCALED, .n = 3, .m = 2}, 0},
  {"by how much an integer is divisible", {.text = SCALED, .n = 8}, {.text = SCALED, .n = 4}, 0},
  {"which integer is divisible by 8", {.text = SCALED, .n = 8, .m = 3}, {.text = SCALED, .n = 3, .m = 8}, 0},
  {"which integer is divisible by 16", {.text = SCALED, .n = 16, .m = 3}, {.text = SCALED, .n = 3, .m = 16}, 0},
  {"alignment", {.text = BODY}, {.text = BODY, .skew = 1}, 0},
  {"IR text", {.text = IR("1.0"), .name = "k.tir"}, {.text = IR("2.0"), .name = "k.tir"}, 0},
  {"alignment, of IR text", {.text = IR("1.0"), .name = "k.tir"}, {.text = IR("1.0"), .name = "k.tir", .skew = 1}, 0},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Good until the fourth call after this one. */
static const char *
under_root(const char *name)
{
  static char path[4][200];
  static int next;
  char *to = path[next++ % 4];
  snprintf(to, sizeof path[0], "%s/%s", root, name);
  return to;
}

static void
write_file(const char *name, const char *text)
{
  FILE *f = fopen(under_root(name), "wb");
  CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static TilertArg
arg_int(int v)
{
  return (TilertArg){.kind = TILERT_ARG_INT, .u.i = v};
}

static int
launch(const Case *c, TilertDevice *d, TilejitProgram *p, Outcome *out, TilertError *err)
{
  static const uint32_t grid[3] = {1, 1, 1};
  size_t ndefines = c->defines[0].name ? 1 + (c->defines[1].name != NULL) : 0;
  float from[N];
  TilertBuffer *x, *y;
  TilejitKernel *k;
  TilejitCall *call = NULL;
  TilejitInfo info;
  for (int i = 0; i < N; i++)
    from[i] = (float)i;
  CHECK(!tilert_buffer_create(d, sizeof from, &x, err) && !tilert_buffer_create(d, 2 * sizeof from, &y, err));
  CHECK(!tilert_buffer_write(x, 0, from, sizeof from, NULL, err));
  uint64_t at = tilert_buffer_address(y) + 4 * (uint64_t)c->skew;
  TilertArg args[4] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_POINTER, .u.pointer = at},
                       arg_int(c->n ? c->n : 7), arg_int(c->m ? c->m : 7)};
  int status = tilejit_kernel(p, c->kernel, c->defines, ndefines, &k, err);
  if (!status)
    status = tilejit_call_create(k, grid, NULL, args, 4, &call, err);
  if (!status)
    status = tilejit_call_launch(call, NULL, err);
  if (!status)
    status = tilert_buffer_read(y, 4 * (size_t)c->skew, out->y, sizeof out->y, NULL, err);
  if (!status)
    status = tilejit_call_info(call, &info, err);
  if (!status) {
    out->from_cache = (int)info.from_cache;
    CHECK(snprintf(out->ptx, PTX, "%s", tilejit_call_ptx(call)) < PTX);
  }
  tilejit_call_destroy(call);
  tilert_buffer_destroy(x);
  tilert_buffer_destroy(y);
  return status;
}

static void
run(const Case *c, const char *cache, Outcome *out)
{
  TilertError err = {0};
  TilertDevice *d;
  TilejitProgram *p;
  const char *imports[3] = {root};
  size_t nimports = 1;
  for (; nimports < 3 && c->imports[nimports - 1]; nimports++)
    imports[nimports] = under_root(c->imports[nimports - 1]);
  TilejitOptions o = {.size = sizeof o, .target = c->target, .no_specialisation = c->no_specialisation,
                      .no_line_info = c->no_line_info, .import_path = imports, .nimport_path = nimports, .no_cache = !cache,
                      .cache_dir = cache};
  for (int i = 0; i < 6 && c->files[i]; i += 2)
    write_file(c->files[i], c->files[i + 1]);
  CHECK(!tilert_device_open("sim", NULL, &d, &err));
  memset(out, 0, sizeof *out);
  out->status = tilejit_program_create(d, c->name ? c->name : "k.tile", c->text, strlen(c->text), &o, &p, &err);
  if (!out->status) {
    out->status = launch(c, d, p, out, &err);
    tilejit_program_destroy(p);
  }
  memcpy(out->message, err.message, sizeof out->message);
  tilert_device_close(d);
}

/* Run n cases in a process of their own. */
static void
run_in_child(const Case *const *cases, int n, const char *cache, Outcome *out)
{
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    for (int i = 0; i < n; i++)
      run(cases[i], cache, &out[i]);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && !status);
}

static void
expect(const Pair *p, const char *way, const Outcome *want, const Outcome *got, int from_cache)
{
  int right = !got->status && !memcmp(got->y, want->y, sizeof got->y) && !strcmp(got->ptx, want->ptx);
  if (right && (from_cache < 0 || got->from_cache == from_cache))
    return;
  fprintf(stderr, "pairs that differ in: %s; %s: %s (status %d %s; from the cache: %d, expected %d; y[1] = %g, expected %g)\n",
          p->what, way, right ? "not as kept" : "another program's kernel", got->status, got->message, got->from_cache, from_cache,
          (double)got->y[1], (double)want->y[1]);
  exit(1);
}

static void
test_pair(const Pair *p, const char *cache, Outcome *o)
{
  const Case *two[] = {&p->a, &p->b}, *again[] = {&p->a, &p->b, &p->a};
  for (int i = 0; i < 2; i++) {                       /* o[0], o[1]: what is right */
    run_in_child(&two[i], 1, NULL, &o[i]);
    if (o[i].status)
      fprintf(stderr, "%s: %s\n", p->what, o[i].message);
    CHECK(!o[i].status);
  }
  int differ = memcmp(o[0].y, o[1].y, sizeof o->y) || strcmp(o[0].ptx, o[1].ptx) != 0;
  if (differ == p->same)
    fprintf(stderr, "%s\n", p->what);
  CHECK(differ != p->same);
  run_in_child(again, 3, cache, &o[2]);               /* in one process */
  expect(p, "one process, first", &o[0], &o[2], 0);
  expect(p, "one process, second", &o[1], &o[3], p->same ? -1 : 0);
  expect(p, "one process, first again", &o[0], &o[4], 1);
  run_in_child(&two[1], 1, cache, &o[2]);             /* in further ones */
  expect(p, "another process, second", &o[1], &o[2], 1);
  run_in_child(&two[0], 1, cache, &o[2]);
  expect(p, "another process, first", &o[0], &o[2], 1);
}

int
main(void)
{
  CHECK(mkdtemp(root));
  CHECK(!mkdir(under_root("p"), 0700) && !mkdir(under_root("q"), 0700));
  Outcome *o = mmap(NULL, 5 * sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(o != MAP_FAILED);
  for (int i = 0; i < PAIRS; i++) {
    char cache[100], command[300];
    snprintf(cache, sizeof cache, "%s/cache%d", root, i);
    test_pair(&pairs[i], cache, o);
    snprintf(command, sizeof command, "rm -f %s/*.tile '%s/<f>' %s/?/*.tile", root, root, root);
    CHECK(!system(command));
  }
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command) ? 1 : 0;
}
