/* The cache of compiled kernels: entries that are found, damaged, crowded out and written by many processes at once; and the
 * JIT over it, with a fake compiler and the fake driver (libcuda.so.1 first on LD_LIBRARY_PATH). */
#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "entries.h"
#include "fakecuda.h"
#include "jit.h"

static TilertError err;
static char root[] = "/tmp/tilec-cache-XXXXXX";

/* ---- a directory of the test's own ---- */

/* Files in dir and their bytes; their last name to *name. */
static int
files(const char *dir, size_t *bytes, char name[64])
{
  int n = 0;
  struct dirent *e;
  struct stat st;
  DIR *d = opendir(dir);
  *bytes = 0;
  while (d && (e = readdir(d)))
    if (!stat(path_in(dir, e->d_name), &st) && S_ISREG(st.st_mode)) {
      n++;
      *bytes += (size_t)st.st_size;
      snprintf(name, 64, "%.63s", e->d_name);
    }
  if (d)
    closedir(d);
  return n;
}

/* ---- entries ---- */

static void
test_keys(void)
{
  CacheHash *a = cache_hash_new(), *b = cache_hash_new();
  cache_hash_text(a, "ab");
  cache_hash_text(a, "c");
  cache_hash_text(b, "a");
  cache_hash_text(b, "bc");
  CacheKey x = cache_hash_end(a), y = cache_hash_end(b);
  CHECK(memcmp(&x, &y, sizeof x) != 0);
  a = cache_hash_new();
  CHECK(cache_hash_build(a));
  cache_hash_end(a);
}

static void
test_entries(const char *dir)
{
  Cache *c = cache_open(dir, 0), *other = cache_open(dir, 0);
  CHECK(c && !strcmp(cache_directory(c), dir) && empty(c, key_of(1)));
  cache_put(c, key_of(1), "one", 3);
  cache_put(c, key_of(2), "", 0);
  CHECK(holds(c, key_of(1), "one") && holds(other, key_of(1), "one") && holds(c, key_of(2), "") && empty(c, key_of(3)));
  cache_put(other, key_of(1), "uno", 3);
  CHECK(holds(c, key_of(1), "uno"));
  cache_close(c);
  cache_close(other);
  remove_all(dir);
}

/* Every truncation and every flipped bit is noticed, and the entry is gone afterwards. */
static void
test_damage(const char *dir)
{
  static char good[512], bad[520];
  char name[64];
  size_t bytes;
  Cache *c = cache_open(dir, 0);
  cache_put(c, key_of(5), "the text of a kernel", 20);
  CHECK(files(dir, &bytes, name) == 1 && strlen(name) == 32);
  char *path = strdup(path_in(dir, name));
  size_t n = slurp(path, good, sizeof good);
  CHECK(n == bytes && n > 20);
  for (size_t cut = 0; cut < n; cut++) {
    spit(path, good, cut);
    CHECK(empty(c, key_of(5)) && access(path, F_OK));
  }
  for (size_t bit = 0; bit < 8 * n; bit++) {
    memcpy(bad, good, n);
    bad[bit / 8] ^= (char)(1 << bit % 8);
    spit(path, bad, n);
    CHECK(empty(c, key_of(5)) && access(path, F_OK));
  }
  memcpy(bad, good, n);
  spit(path, bad, n + 1);
  CHECK(empty(c, key_of(5)));
  spit(path, good, n);
  CHECK(holds(c, key_of(5), "the text of a kernel"));
  spit(path_in(dir, "0123456789abcdef0123456789abcdef"), good, n);   /* somebody else's entry under another name */
  CHECK(holds(c, key_of(5), "the text of a kernel"));
  free(path);
  cache_close(c);
  remove_all(dir);
}

static void
test_limit(const char *dir)
{
  static char big[1000];
  char name[64];
  size_t bytes;
  Cache *c = cache_open(dir, 20000);
  for (uint64_t i = 0; i < 100; i++) {
    cache_put(c, key_of(i), big, sizeof big);
    CHECK(!empty(c, key_of(i)));
    files(dir, &bytes, name);
    CHECK(bytes <= 22000);
  }
  int n = files(dir, &bytes, name);
  CHECK(n > 10 && n <= 20 && !empty(c, key_of(99)) && empty(c, key_of(0)));
  cache_put(c, key_of(1000), big, 20000);   /* more than all that fits */
  CHECK(empty(c, key_of(1000)));
  cache_close(c);
  remove_all(dir);
}

static void
test_nowhere(const char *dir)
{
  spit(dir, "a file", 6);
  Cache *c = cache_open(dir, 0);
  cache_put(c, key_of(1), "x", 1);
  CHECK(empty(c, key_of(1)));
  cache_close(c);
  unlink(dir);
  c = cache_open("/proc/nothing/here", 0);
  cache_put(c, key_of(1), "x", 1);
  CHECK(empty(c, key_of(1)));
  cache_close(c);
  setenv("TILEC_CACHE", "0", 1);
  CHECK(!cache_open(NULL, 0));
  cache_put(NULL, key_of(1), "x", 1);
  CHECK(empty(NULL, key_of(1)));
  cache_close(NULL);
  unsetenv("TILEC_CACHE");
  setenv("TILEC_CACHE_DIR", dir, 1);
  c = cache_open(NULL, 0);
  CHECK(c && !strcmp(cache_directory(c), dir));
  cache_close(c);
  unsetenv("TILEC_CACHE_DIR");
}

/* Each key's text follows from the key, so that a reader can tell a right one. */
static void
hammer(const char *dir, unsigned seed)
{
  Cache *c = cache_open(dir, 4000);
  for (int i = 0; i < 400; i++) {
    char text[400];
    seed = seed * 1103515245 + 12345;
    uint64_t key = seed >> 16 & 31;
    int n = snprintf(text, sizeof text, "%0*llu", (int)(200 + key), (unsigned long long)key);
    size_t len;
    char *got = cache_get(c, key_of(key), &len);
    CHECK(!got || (len == (size_t)n && !memcmp(got, text, len)));
    free(got);
    cache_put(c, key_of(key), text, (size_t)n);
  }
  cache_close(c);
  _exit(0);
}

static void
test_processes(const char *dir)
{
  char name[64];
  size_t bytes;
  for (unsigned i = 0; i < 8; i++) {
    pid_t p = fork();
    CHECK(p >= 0);
    if (!p)
      hammer(dir, i);
  }
  for (int i = 0, status; i < 8; i++)
    CHECK(wait(&status) > 0 && !status);
  int n = files(dir, &bytes, name);
  CHECK(n > 0 && bytes < 8 * 4000);
  remove_all(dir);
}

/* ---- the JIT ---- */

static FakeCuda *fake;
static int compiles;
static uint64_t sources, compiled_sources;   /* what describing and compiling say they read */
static char ptx[256];
static const char *tune_lines = "tune B=8\ntune B=16\nkey n\n";

static TilecResult *
result(const char *output, uint64_t from, const char *diagnostics)
{
  TilecResult *r = calloc(1, sizeof *r);
  r->output = strdup(output);
  r->output_len = strlen(output);
  r->diagnostics = strdup(diagnostics);
  r->sources[0] = from;
  return r;
}

void tilec_options_default(TilecOptions *o) { memset(o, 0, sizeof *o); }
const char *tilec_version(void) { return "0"; }

void
tilec_result_free(TilecResult *r)
{
  free(r->output);
  free(r->diagnostics);
  free(r);
}

TilecResult *
tilec_describe(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  static const char f[] = "kernel f warps=4\nparam x pointer f32\nparam n scalar i32\nconst B i32 8\n";
  char all[256];
  snprintf(all, sizeof all, "%s%s", f, o->tuning ? tune_lines : "");
  return result(all, sources, "");
}

TilecResult *
tilec_compile(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  compiles++;
  return result(ptx, compiled_sources, "f.tile:1:1: warning[W0001]: look\n");
}

typedef struct Run {                 /* what the key depends on */
  const char *dir, *target, *define;
  int no_line_info, n;
  uint64_t x;
} Run;

/* One process' worth: a program made anew, one launch. 1 if the form came from disk. */
static int
run(const Run *r)
{
  static const uint32_t grid[3] = {1, 1, 1};
  TilertDevice *d;
  TilejitProgram *p;
  TilejitKernel *k;
  TilejitCall *call;
  TilejitInfo info;
  char said[128];
  TilejitOptions o = {.size = sizeof o, .target = r->target, .no_line_info = r->no_line_info, .cache_dir = r->dir, .no_cache = !r->dir};
  TilecDefine define = {"B", r->define ? r->define : "8"};
  TilertArg args[2] = {{.kind = TILERT_ARG_POINTER, .u.pointer = r->x}, {.kind = TILERT_ARG_INT, .u.i = r->n}};
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK_OK(tilejit_program_create(d, "f.tile", "text", 4, &o, &p, &err));
  CHECK_OK(tilejit_kernel(p, "f", &define, 1, &k, &err));
  CHECK_OK(tilejit_call_create(k, grid, NULL, args, 2, &call, &err));
  CHECK_OK(tilejit_call_info(call, &info, &err));
  CHECK_OK(tilejit_call_launch(call, NULL, &err));
  CHECK(!strcmp(tilejit_call_ptx(call), ptx));
  CHECK(tilejit_program_diagnostics(p, said, sizeof said) && strstr(said, "W0001"));   /* also when nothing was compiled */
  tilejit_call_destroy(call);
  tilejit_program_destroy(p);
  tilert_device_close(d);
  return (int)info.from_cache;
}

/* Another value of anything the result depends on is another entry. */
static void
test_jit(const char *dir)
{
  static const Run base = {.n = 7, .x = 0x1008};
  Run r = base;
  r.dir = dir;
  compiles = 0;
  CHECK(!run(&r) && compiles == 1);
  CHECK(run(&r) && compiles == 1 && !fake->cubins);    /* the driver gets the PTX, and makes the same of it as without a cache */
  Run other = r;
  other.target = "sm_80";
  CHECK(!run(&other) && run(&other));
  other = r;
  other.define = "16";
  CHECK(!run(&other) && run(&other));
  other = r;
  other.no_line_info = 1;
  CHECK(!run(&other) && run(&other));
  other = r;
  other.n = 1;
  CHECK(!run(&other) && run(&other));
  other = r;
  other.x = 0x1000;
  CHECK(!run(&other) && run(&other));
  fake->driver_version = 13010;
  CHECK(!run(&r) && run(&r));
  fake->capability = 100;
  other = r;
  other.target = "sm_90a";
  CHECK(!run(&other) && run(&other));
  fake->capability = 90;
  sources = compiled_sources = 12;
  CHECK(!run(&r) && run(&r));
  other = r;
  other.dir = NULL;
  int before = compiles;
  CHECK(!run(&other) && !run(&other) && compiles == before + 2);
  CHECK(run(&r));
}

/* An entry whose checksum fits holds what was kept under its key; its texts are looked at all the same: they must end where they say. */
static void
test_texts(const char *dir)
{
  Run r = {.dir = dir, .n = 7, .x = 0x1008};
  uint64_t lengths[2];               /* of the PTX, of what was said */
  char name[64], *entry, high[17] = "";
  size_t bytes, n;
  remove_all(dir);
  CHECK(!run(&r) && run(&r) && files(dir, &bytes, name) == 1);
  memcpy(high, name, 16);
  CacheKey key = {{strtoull(name + 16, NULL, 16), strtoull(high, NULL, 16)}};
  Cache *c = cache_open(dir, 0);
  CHECK((entry = cache_get(c, key, &n)) != NULL && n > sizeof lengths);
  memcpy(lengths, entry, sizeof lengths);
  const size_t ends[] = {sizeof lengths + lengths[0] - 1, sizeof lengths + lengths[0] + lengths[1] - 1};
  for (size_t i = 0; i < 2; i++) {
    entry[ends[i]] = 'x';
    cache_put(c, key, entry, n);
    CHECK(!run(&r) && run(&r));      /* compiled again, and kept again */
    entry[ends[i]] = 0;
  }
  for (size_t i = 0; i < 2; i++) {
    lengths[i]++;
    memcpy(entry, lengths, sizeof lengths);
    cache_put(c, key, entry, n);
    CHECK(!run(&r) && run(&r));
    lengths[i]--;
  }
  free(entry);
  cache_close(c);
  remove_all(dir);
}

/* A directory that is not believed is as good as none, and says why. */
static void
test_refused(const char *dir)
{
  TilertDevice *d;
  TilejitProgram *p;
  TilejitKernel *k;
  char why[400];
  Run r = {.dir = dir, .n = 7, .x = 0x1008};
  CHECK(!mkdir(dir, 0700) && !chmod(dir, 0777));
  CHECK(!run(&r) && !run(&r));
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  TilejitOptions o = {.size = sizeof o, .cache_dir = dir};
  TilertArg args[2] = {{.kind = TILERT_ARG_POINTER}, {.kind = TILERT_ARG_INT, .u.i = 3}};
  CHECK_OK(tilejit_program_create(d, "f.tile", "text", 4, &o, &p, &err));
  CHECK_OK(tilejit_kernel(p, "f", NULL, 0, &k, &err));
  CHECK(!tilejit_program_cache_trouble(p, why, sizeof why) && !*why);
  CHECK_OK(tilejit_launch(k, NULL, (uint32_t[3]){1, 1, 1}, args, 2, &err));
  CHECK(tilejit_program_cache_trouble(p, why, sizeof why) == strlen(why) && strstr(why, "others may write to it"));
  tilejit_program_destroy(p);
  r.dir = o.cache_dir = "";                        /* none */
  CHECK(!run(&r) && !run(&r));
  tilert_device_close(d);
}

/* A file that changed between describing and compiling: the result is used but not kept. */
static void
test_race(const char *dir)
{
  Run r = {.dir = dir, .n = 7, .x = 0x1008};
  sources = 20;
  compiled_sources = 21;
  CHECK(!run(&r) && !run(&r));
  sources = compiled_sources = 0;   /* no digest to be had */
  CHECK(!run(&r) && !run(&r));
  sources = compiled_sources = 22;
  CHECK(!run(&r) && run(&r));
}

/* ---- choices of tuning ---- */

static int
any_grid(void *user, TilejitKernel *k, uint32_t grid[3])
{
  grid[0] = grid[1] = grid[2] = 1;
  return 0;
}

/* A program made anew, one tuning. 1 if it was remembered. */
static int
tune(const Run *r, TilertArg n)
{
  TilertDevice *d;
  TilejitProgram *p;
  TilejitTuning *t;
  TilejitOptions o = {.size = sizeof o, .target = r->target, .cache_dir = r->dir};
  TilejitTuneOptions brief = {.size = sizeof brief, .rep_ms = 1};
  TilertArg args[2] = {{.kind = TILERT_ARG_POINTER, .u.pointer = r->x}, n};
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK_OK(tilejit_program_create(d, "f.tile", "text", 4, &o, &p, &err));
  CHECK_OK(tilejit_tune(p, "f", NULL, 0, NULL, any_grid, NULL, args, 2, &brief, &t, &err));
  int remembered = tilejit_tuning_remembered(t);
  tilejit_tuning_free(t);
  tilejit_program_destroy(p);
  tilert_device_close(d);
  return remembered;
}

/* Another value of anything the choice depends on is another search. */
static void
test_choices(const char *dir)
{
  const Run r = {.dir = dir, .x = 0x1008};
  Run other = r;
  TilertArg seven = {.kind = TILERT_ARG_INT, .u.i = 7}, eight = {.kind = TILERT_ARG_INT, .u.i = 8};
  TilertArg bytes = {.kind = TILERT_ARG_BYTES, .u.bytes = "\7\0\0"};
  CHECK(!tune(&r, seven) && tune(&r, seven));
  CHECK(!tune(&r, eight) && tune(&r, eight) && tune(&r, seven));
  CHECK(!tune(&r, bytes) && !tune(&r, bytes));   /* who knows what they hold */
  other.x = 0x1010;
  CHECK(!tune(&other, seven) && tune(&other, seven));
  other.x = 0x2020;                              /* an address is nothing to remember by */
  CHECK(tune(&other, seven));
  other = r;
  other.target = "sm_80";
  CHECK(!tune(&other, seven) && tune(&other, seven));
  strcpy(fake->name, "Another GPU");
  CHECK(!tune(&r, seven) && tune(&r, seven));
  fake->multiprocessors = 7;
  CHECK(!tune(&r, seven) && tune(&r, seven));
  fake->driver_version = 13020;
  CHECK(!tune(&r, seven) && tune(&r, seven));
  tune_lines = "tune B=16\ntune B=8\nkey n\n";   /* as if the source were another */
  sources = compiled_sources = 30;
  CHECK(!tune(&r, seven) && tune(&r, seven));
  tune_lines = "tune B=4\nkey n\n";                     /* what is remembered is no longer listed */
  CHECK(!tune(&r, seven));
}

int
main(void)
{
  char dir[300];
  CHECK(mkdtemp(root));
  snprintf(dir, sizeof dir, "%s/deep/er", root);
  test_keys();
  test_entries(dir);
  test_damage(dir);
  test_limit(dir);
  test_nowhere(path_in(root, "file"));
  test_processes(dir);
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  fake = ((FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda"))();
  fake->capability = 90;
  fake->driver_version = 13000;
  sources = compiled_sources = 11;
  strcpy(ptx, "//@tilec kernel=f warps=4 params=x:ptr:f32,n:scalar:i32\n");
  test_jit(dir);
  test_texts(dir);
  test_race(dir);
  test_choices(dir);
  test_refused(path_in(root, "open"));
  remove_all(root);
  return 0;
}
