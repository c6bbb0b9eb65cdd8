/* Memory runs out: everything is done again and again, and the n-th allocation fails, once alone and once with all that follow. Each time
 * there must be a status with its sentence, or success, nothing may be left allocated, and the next call must work. n runs over every
 * allocation; where LLVM makes thousands, over one in STRIDE, or all with TILEC_EVERY=1 in the environment.
 * test_memory cuda: on a GPU, for which the fake libcuda.so.1 must come first on LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "argspec.h"
#include "check.h"
#include "fakecuda.h"
#include "jit.h"
#include "kernels.h"

/* ---- the allocator, in front of the C library's for libtilec too ---- */

#pragma GCC visibility push(default)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static atomic_long asked, live;
static atomic_long fail_at;            /* the number of the allocation that fails; 0: none */
static atomic_int all_after, failures;

static int
fails(void)
{
  long n = atomic_fetch_add(&asked, 1) + 1, at = atomic_load(&fail_at);
  int failing = at && (n == at || (n > at && atomic_load(&all_after)));
  if (failing)
    atomic_fetch_add(&failures, 1);
  return failing;
}

static void *
counted(void *p)
{
  if (p)
    atomic_fetch_add(&live, 1);
  return p;
}

void *malloc(size_t n) { return fails() ? NULL : counted(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : counted(__libc_calloc(n, size)); }
void *memalign(size_t align, size_t n) { return fails() ? NULL : counted(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }

int
posix_memalign(void **out, size_t align, size_t n)
{
  *out = memalign(align, n);
  return *out ? 0 : 12;
}

void *
realloc(void *p, size_t n)
{
  if (fails())
    return NULL;
  void *q = __libc_realloc(p, n);
  if (!p)
    counted(q);
  return q;
}

void
free(void *p)
{
  if (p)
    atomic_fetch_sub(&live, 1);
  __libc_free(p);
}

#pragma GCC visibility pop

/* ---- what is done ---- */

static const char good[] =
  "kernel k(x: *f32, y: *f32, n: i32, const B: i32 = 64) tune(B=[32, 64]) key(n) {\n"
  "  let i = program_id(0) * B + arange(0, B);\n"
  "  store(y + i, exp(load(x + i, mask=i < n)) + 1.0, mask=i < n);\n}\n";
static const char bad[] =
  "kernel k(x: *f32, n: i32) {\n  let i = arnge(0, 32);\n  let j: i32[16] = arange(0, 32);\n  store(x + j, y);\n  z = 1;\n}\n";
static char dir[] = "/tmp/tilec-memory-XXXXXX";
static TilertError err;

/* Each gives 0, or the status, of TilecStatus as a TilertStatus; said: there is a sentence. */
static int said;

static int
compiled(TilecResult *r, int expected)
{
  int status = !r || r->status == TILEC_NO_MEMORY ? TILERT_E_MEMORY : r->status == expected ? TILERT_OK : 100 + r->status;
  said = !r || (r->diagnostics && r->diagnostics[0]);
  if (status && status != TILERT_E_MEMORY)
    fprintf(stderr, "%s\n", r->diagnostics);
  tilec_result_free(r);
  return status;
}

static int
do_describe(void)
{
  TilecOptions o;
  tilec_options_default(&o);
  o.tuning = 1;
  return compiled(tilec_describe("k.tile", good, sizeof good - 1, &o), TILEC_OK);
}

static int
do_errors(void)
{
  TilecOptions o;
  tilec_options_default(&o);
  o.color = 1;
  int status = compiled(tilec_compile("k.tile", bad, sizeof bad - 1, &o), TILEC_FAILED);
  o.json = 1;
  return status ? status : compiled(tilec_compile("k.tile", bad, sizeof bad - 1, &o), TILEC_FAILED);
}

static int
do_passes(void)
{
  TilecOptions o;
  tilec_options_default(&o);
  o.emit = TILEC_EMIT_SCHED;
  o.dump_after = "all";
  o.time_passes = o.verify = o.locs = o.remarks = 1;
  return compiled(tilec_compile("k.tile", good, sizeof good - 1, &o), TILEC_OK);
}

static int
do_layout(void)
{
  int status = compiled(tilec_print_layout("mma<128x64; 4x2>", 32), TILEC_OK);
  return status ? status : compiled(tilec_print_layout("mma<128x64", 32), TILEC_FAILED);
}

/* These have no status: NULL is all they can say. */
static int
do_tables(void)
{
  said = 1;
  char *table = tilec_print_table("ops"), *page = tilec_explain("E0211");
  int status = table && page ? TILERT_OK : TILERT_E_MEMORY;
  tilec_free(table);
  tilec_free(page);
  return status;
}

/* Parentheses deeper than the parser's first stack, and an import. */
static int
do_import(void)
{
  static char deep[4000];
  char name[100];
  if (!deep[0]) {
    char *at = deep + sprintf(deep, "import \"f.tile\";\nkernel k(x: *f32) { store(x, f() + ");
    memset(at, '(', 400);
    at += 400;
    *at++ = '1';
    memset(at, ')', 400);
    strcpy(at + 400, "); }");
  }
  snprintf(name, sizeof name, "%s/k.tile", dir);
  return compiled(tilec_describe(name, deep, strlen(deep), NULL), TILEC_OK);
}

static int
do_ptx(void)
{
  return compiled(tilec_compile("k.tile", good, sizeof good - 1, NULL), TILEC_OK);
}

static int
told(int status)
{
  said = err.status == status && err.message[0];
  return status;
}

static int
any_grid(void *user, TilejitKernel *k, uint32_t grid[3])
{
  grid[0] = grid[1] = grid[2] = 1;
  return 0;
}

typedef struct Jit { TilertDevice *dev; TilertBuffer *x; TilejitProgram *p; TilejitKernel *k; TilejitCall *c; TilejitTuning *t; } Jit;

static const char *device = "sim";

static int
open_jit(Jit *j, const char *cache)
{
  TilejitOptions o = {.size = sizeof o, .no_cache = !cache, .cache_dir = cache};
  int status = tilert_device_open(device, NULL, &j->dev, &err);
  if (!status)
    status = tilert_buffer_create(j->dev, 4096, &j->x, &err);
  if (!status)
    status = tilert_buffer_fill(j->x, 0, 4096, 0, 4, NULL, &err);
  if (!status)
    status = tilejit_program_create(j->dev, "k.tile", good, sizeof good - 1, &o, &j->p, &err);
  return status;
}

static void
close_jit(Jit *j)
{
  tilejit_tuning_free(j->t);
  tilejit_call_destroy(j->c);
  tilejit_program_destroy(j->p);
  tilert_buffer_destroy(j->x);
  tilert_device_close(j->dev);
}

static int
launch(const char *cache)
{
  Jit j = {0};
  TilejitInfo info;
  TilecDefine define = {"B", "32"};
  int status = open_jit(&j, cache);
  TilertArg args[3] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = j.x}, {.kind = TILERT_ARG_BUFFER, .u.buffer = j.x},
                       {.kind = TILERT_ARG_INT, .u.i = 9}};
  if (!status)
    status = tilejit_kernel(j.p, NULL, &define, 1, &j.k, &err);
  if (!status)
    status = tilejit_launch(j.k, NULL, (uint32_t[3]){1, 1, 1}, args, 3, &err);
  if (!status)
    status = tilejit_call_create(j.k, (uint32_t[3]){1, 1, 1}, NULL, args, 3, &j.c, &err);
  if (!status)
    status = tilejit_call_launch(j.c, NULL, &err);
  if (!status)
    status = tilejit_call_info(j.c, &info, &err);
  close_jit(&j);
  return told(status);
}

static int
do_launch(void)
{
  return launch(NULL);
}

static int
do_recall(void)
{
  return launch(dir);
}

static int
do_tune(void)
{
  Jit j = {0};
  TilejitTuneOptions o = {.size = sizeof o, .force = 1, .threads = 1, .restore = 1};
  int status = open_jit(&j, dir);
  TilertArg args[3] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = j.x}, {.kind = TILERT_ARG_BUFFER, .u.buffer = j.x},
                       {.kind = TILERT_ARG_INT, .u.i = 9}};
  if (!status)
    status = tilejit_tune(j.p, "k", NULL, 0, NULL, any_grid, NULL, args, 3, &o, &j.t, &err);
  close_jit(&j);
  return told(status);
}

static int
do_open(void)
{
  char name[100];
  TilertDevice *d = NULL;
  TilejitProgram *p = NULL;
  snprintf(name, sizeof name, "%s/k.tile", dir);
  int status = tilert_device_open("sim", NULL, &d, &err);
  if (!status)
    status = tilejit_program_open(d, name, NULL, &p, &err);
  tilejit_program_destroy(p);
  tilert_device_close(d);
  return told(status);
}

static int
do_runtime(void)
{
  TilertDevice *d = NULL;
  TilertStream *s = NULL, *w = NULL;
  TilertEvent *e = NULL;
  TilertModule *m = NULL;
  TilertKernel *k;
  TilertBench b;
  TilertLaunch *l = NULL;
  int status = tilert_device_open(device, NULL, &d, &err);
  if (!status)
    status = tilert_stream_create(d, &s, &err);
  if (!status)
    status = tilert_stream_wrap(d, NULL, &w, &err);
  if (!status)
    status = tilert_event_create(d, &e, &err);
  if (!status)
    status = tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &m, &err);
  if (!status)
    status = tilert_module_kernel(m, "wild", &k, &err);
  TilertArg args[2] = {{.kind = TILERT_ARG_POINTER}, {.kind = TILERT_ARG_INT}};
  if (!status)
    status = tilert_launch_create(k, (uint32_t[3]){0, 1, 1}, args, 2, &l, &err);
  if (!status)
    status = tilert_bench_launch(l, NULL, 0, 0, &b, &err);
  tilert_launch_destroy(l);
  tilert_module_destroy(m);
  tilert_event_destroy(e);
  tilert_stream_destroy(w);
  tilert_stream_destroy(s);
  tilert_device_close(d);
  return told(status);
}

static void
call_nothing(void *user)
{
}

/* A stream is captured, with memory of each kind, and the graph made executable, launched and changed. */
static int
do_graphs(void)
{
  static _Alignas(16) char host[256];
  TilertDevice *d = NULL;
  TilertStream *s = NULL;
  TilertEvent *e = NULL;
  TilertModule *m = NULL;
  TilertKernel *k = NULL;
  TilertBuffer *b[5] = {NULL};
  TilertPool *pool = NULL;
  TilertGraph *g = NULL;
  TilertGraphExec *x = NULL;
  int status = tilert_device_open(device, NULL, &d, &err);
#define STEP(call) status = status ? status : (call)
  STEP(tilert_stream_create(d, &s, &err));
  STEP(tilert_event_create(d, &e, &err));
  STEP(tilert_module_load(d, axpy_ptx, strlen(axpy_ptx), NULL, 0, &m, &err));
  STEP(tilert_module_kernel(m, "axpy", &k, &err));
  STEP(tilert_pool_create(d, NULL, &pool, &err));
  STEP(tilert_buffer_create_in(s, pool, 64, &b[0], &err));
  STEP(tilert_buffer_create_host(d, 64, 0, &b[1], &err));
  STEP(tilert_buffer_pin(d, host, sizeof host, &b[2], &err));
  STEP(tilert_buffer_part(b[0], 0, 32, &b[3], &err));
  STEP(tilert_buffer_wrap(d, status ? 1 : tilert_buffer_address(b[0]), 32, &b[4], &err));
  const TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 1}, {.kind = TILERT_ARG_BUFFER, .u.buffer = b[0]},
                             {.kind = TILERT_ARG_BUFFER, .u.buffer = b[1]}, {.kind = TILERT_ARG_INT, .u.i = 8}};
  STEP(tilert_stream_capture_begin(s, &err));
  STEP(tilert_buffer_fill(b[0], 0, 64, 0, 4, s, &err));
  STEP(tilert_event_record(e, s, &err));
  STEP(tilert_stream_wait(s, e, &err));
  STEP(tilert_launch(s, k, (uint32_t[3]){1, 1, 1}, args, 4, &err));
  if (tilert_stream_capturing(s)) {
    TilertError first = err;
    int ended = tilert_stream_capture_end(s, &g, &err);
    err = status ? first : err;
    status = status ? status : ended;
  }
  STEP(tilert_graph_add_host(g, call_nothing, NULL, NULL, 0, NULL, &err));
  STEP(tilert_graph_instantiate(g, &x, &err));
  STEP(tilert_graph_set_arg(x, 1, 3, &(TilertArg){.kind = TILERT_ARG_INT, .u.i = 4}, &err));
  if (!strcmp(device, "sim"))          /* the fake driver runs such nodes as a test of its own expects them */
    STEP(tilert_graph_launch(x, s, &err));
  tilert_graph_exec_destroy(x);
  tilert_graph_destroy(g);
  for (int i = 5; i-- > 0;)
    tilert_buffer_destroy(b[i]);
  tilert_pool_destroy(pool);
  tilert_module_destroy(m);
  tilert_event_destroy(e);
  tilert_stream_destroy(s);
  tilert_device_close(d);
  return told(status);
}

/* PTX of another compiler with everything that its reader keeps lists of, read, loaded and launched. */
static const char foreign[] =
  ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n.global .align 4 .u32 seen[2] = {1, 2};\n"
  ".const .align 4 .u32 three = 3;\n.shared .align 4 .u32 fixed;\n"
  ".func (.param .b32 r) plus(.param .b32 a) { .reg .b32 %r<3>; .local .align 4 .b32 l; ld.param.b32 %r1, [a]; st.local.b32 [l], %r1;\n"
  "ld.local.b32 %r2, [l]; add.s32 %r2, %r2, 1; st.param.b32 [r], %r2; ret; }\n"
  ".visible .entry many(.param .u64 out, .param .align 8 .b8 s[12]) {\n"
  ".reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<2>;\nld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r7, %laneid; and.b32 %r2, %r1, 1;\n"
  "T: .branchtargets A, B;\nbrx.idx %r2, T;\nA: mov.u32 %r3, 5; bra C;\nB: mov.u32 %r3, 7;\nC: mov.u32 %r4, dyn;\n"
  "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r4], 1; @%p1 st.shared.u32 [fixed], %r3;\n"
  "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r3; call (r), plus, (a); ld.param.b32 %r5, [r]; }\n"
  "ld.const.u32 %r6, [three]; add.u32 %r5, %r5, %r6; atom.global.add.u32 %r8, [seen], %r5; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;\n"
  ".loc 1 2 3\nst.global.u32 [%d3], %r5; ret;\n}\n.file 1 \"many.cu\"\n"
  ".section .debug_str\n{\ninfo: .b8 109, 97, 0\n}\n";

static int
do_foreign(void)
{
  static TilertManifest m;
  static const uint32_t one[3] = {1, 1, 1}, two[3] = {2, 1, 1}, twelve[3] = {0};
  TilertDevice *d = NULL;
  TilertModule *mod = NULL;
  TilertBuffer *x = NULL;
  TilertKernel *k;
  uint32_t back[2] = {0};
  size_t n;
  int status = tilert_manifest_derive(foreign, strlen(foreign), &m, 1, &n, &err);
  if (!status)
    status = tilert_device_open("sim", NULL, &d, &err);
  if (!status)
    status = tilert_buffer_create(d, 8, &x, &err);
  if (!status)
    status = tilert_module_load(d, foreign, strlen(foreign), &m, 1, &mod, &err);
  if (!status)
    status = tilert_module_kernel(mod, "many", &k, &err);
  TilertArg args[2] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_BYTES, .u.bytes = twelve}};
  if (!status)
    status = tilert_launch_shaped(NULL, k, one, two, 16, args, 2, &err);
  if (!status)
    status = tilert_buffer_read(x, 0, back, 8, NULL, &err);
  CHECK(status || (back[0] == 9 && back[1] == 11));
  tilert_buffer_destroy(x);
  tilert_module_destroy(mod);
  tilert_device_close(d);
  return told(status);
}

/* The tools' arrays and files: a sentence, and nothing left. */
static int
do_arrays(void)
{
  char name[100], message[300] = "";
  Array made = {0}, back = {0};
  snprintf(name, sizeof name, "%s/x.npy", dir);
  int failed = argspec_create("x", "rand:f32:30x7", 1, &made, NULL, message, sizeof message) ||
               npy_write(name, &made, message, sizeof message) || npy_read(name, DTYPE_NONE, &back, message, sizeof message);
  if (!failed)
    CHECK(back.count == 210 && !memcmp(made.data, back.data, 840));
  array_destroy(&made);
  array_destroy(&back);
  said = message[0] != 0;
  return failed ? TILERT_E_MEMORY : TILERT_OK;
}

static void *
launch_once(void *user)
{
  return (void *)(intptr_t)do_ptx();
}

/* Some compile while another has no memory: they go on. */
static int
do_threads(void)
{
  pthread_t threads[3];
  void *answer;
  int status = 0, n = 0;
  while (n < 3 && !pthread_create(&threads[n], NULL, launch_once, NULL))
    n++;
  for (int i = 0; i < n; i++) {
    CHECK(!pthread_join(threads[i], &answer));
    status = answer ? (int)(intptr_t)answer : status;
  }
  said = 1;
  return n < 3 && !status ? TILERT_E_MEMORY : status;
}

/* llvm: what LLVM has half done when its memory runs out is lost. gpu: done with the fake driver, too. */
typedef struct Way { const char *name; int (*run)(void); int llvm, gpu; } Way;

static const Way ways[] = {
  {"describing", do_describe, 0, 0}, {"reporting errors", do_errors, 0, 0}, {"running passes", do_passes, 0, 0},
  {"importing", do_import, 0, 0}, {"drawing", do_layout, 0, 0}, {"tables", do_tables, 0, 0}, {"runtime", do_runtime, 0, 1},
  {"graphs", do_graphs, 0, 1},
  {"other compilers' PTX", do_foreign, 0, 0}, {"opening", do_open, 0, 0}, {"arrays", do_arrays, 0, 0}, {"launching what is kept", do_recall, 1, 1}, {"making PTX", do_ptx, 1, 0},
  {"launching", do_launch, 1, 1}, {"tuning", do_tune, 1, 1}, {"compiling in several threads", do_threads, 1, 0},
};
enum { STRIDE = 37 };
static int every;

static void
check(const Way *w, int all, long n, int status, long before)
{
  long left = atomic_load(&live) - before;
  int hit = atomic_load(&failures);
  if ((!status || (status == TILERT_E_MEMORY && hit && said)) && (!left || w->llvm))
    return;
  fprintf(stderr, "%s, allocation %ld%s fails: status %d, %s; %ld blocks are left\n", w->name, n, all ? " and all after it" : "", status,
          said ? "with a sentence" : "without a sentence", left);
  exit(1);
}

static void
exhaust(const Way *w, int all)
{
  if (w->run() || w->run()) {           /* what is made once is made */
    fprintf(stderr, "%s: %s\n", w->name, err.message);
    exit(1);
  }
  for (long n = 1, hit = 1; hit; n += every || !w->llvm ? 1 : n < 300 ? 5 : STRIDE) {
    long before = atomic_load(&live);
    said = 0;
    atomic_store(&failures, 0);
    atomic_store(&all_after, all);
    atomic_store(&asked, 0);
    atomic_store(&fail_at, n);
    int status = w->run();
    atomic_store(&fail_at, 0);
    hit = atomic_load(&failures);
    check(w, all, n, status, before);
  }
  CHECK(!w->run());
}

static void
setup_gpu(void)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  FakeCuda *fake = ((FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda"))();
  fake->capability = 90;
  fake->driver_version = 13000;
  device = "cuda";
}

/* The first compilation of a process, in which LLVM is made ready. Where memory ran out in that, the process may compile no more. */
static int
cold(long n, int all)
{
  atomic_store(&failures, 0);
  atomic_store(&all_after, all);
  atomic_store(&asked, 0);
  atomic_store(&fail_at, n);
  alarm(60);                           /* it must not hang */
  int status = do_ptx();
  atomic_store(&fail_at, 0);
  int hit = atomic_load(&failures);
  if (status && (status != TILERT_E_MEMORY || !hit || !said))
    return 1;
  int again = do_ptx();
  return !hit ? 2 : !again ? 0 : again == TILERT_E_MEMORY && said ? 3 : 1;
}

static void
exhaust_cold(int all)
{
  int refused = 0, answer = 0;
  for (long n = 1; answer != 2; n += every ? 1 : STRIDE) {
    int status;
    pid_t child = fork();
    if (!child)
      _exit(cold(n, all));
    CHECK(waitpid(child, &status, 0) == child);
    answer = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (answer == 1)
      fprintf(stderr, "the first compilation, allocation %ld%s fails: status %x\n", n, all ? " and all after it" : "", status);
    CHECK(answer != 1);
    refused += answer == 3;
  }
  CHECK(refused < (every ? 1000 : 1000 / STRIDE));   /* where it is made ready, not beyond */
}

int
main(int argc, char **argv)
{
  char command[200];
  int gpu = argc > 1 && !strcmp(argv[1], "cuda");
  every = getenv("TILEC_EVERY") != NULL;
  setenv("TILEC_CACHE", "0", 1);
  if (gpu)
    setup_gpu();
  CHECK(mkdtemp(dir));
  snprintf(command, sizeof command, "cd %s && echo 'fn f() { return 1.0; }' > f.tile && echo '%s' > k.tile", dir,
           "kernel k(x: *f32) { store(x, 1.0); }");
  CHECK(!system(command));
  for (int all = 0; all < 2 && !gpu; all++)
    exhaust_cold(all);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (int all = 0; all < 2 && (!gpu || ways[i].gpu); all++)
      exhaust(&ways[i], all);
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command) ? 1 : 0;
}
