/* The JIT over a fake compiler and a fake driver: what is compiled, how often, with which facts, and what is refused.
 * Run with the fake libcuda.so.1 first on LD_LIBRARY_PATH. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include "check.h"
#include "fakecuda.h"
#include "jit.h"

static _Thread_local TilertError err;
static FakeCuda *fake;

/* Parameters of so many bytes are kept of the launches that follow; 0 bytes: not that one. */
static void
keep(const int *sizes, int n)
{
  memcpy(fake->size, sizes, (size_t)n * sizeof *sizes);
  fake->nsizes = n;
}
#define KEEP(...) keep((const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))

/* Word `at` of a kept parameter of 64-bit words; and of one 32-bit number. */
static uint64_t
kept_word(int i, size_t at)
{
  uint64_t v;
  memcpy(&v, fake->value[i] + at * sizeof v, sizeof v);
  return v;
}

static int32_t
kept_int(int i)
{
  return (int32_t)(uint32_t)kept_word(i, 0);
}

/* ---- the fake compiler ---- */

static atomic_int compiles;
static char facts[256], defines[256];

static TilecResult *
result(int status, const char *output, const char *diagnostics)
{
  TilecResult *r = calloc(1, sizeof *r);
  r->status = status;
  r->output = output ? strdup(output) : NULL;
  r->output_len = output ? strlen(output) : 0;
  r->diagnostics = strdup(diagnostics);
  return r;
}

void
tilec_options_default(TilecOptions *o)
{
  memset(o, 0, sizeof *o);
}

const char *
tilec_version(void)
{
  return "0";
}

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
  static const char axpy[] = "kernel axpy warps=4\nparam a scalar f32\nparam x pointer f32\nparam y pointer T\n"
                             "param n scalar i32\ntype T -\nconst BLOCK i32 ";
  static const char other[] = "kernel other warps=-\nparam z scalar i32\n";
  static const char pointers[] = "kernel pointers warps=4\nparam n scalar i32\nparam p pointer f32\nparam q pointer f32\nnull q\n"
                                 "param r pointer f32\nparam s pointer f32\n";
  static const char many[] = "kernel many warps=4\nparam i0 scalar i32\nparam i1 scalar i32\nparam i2 scalar i32\nparam i3 scalar i32\n"
                             "param i4 scalar i32\nparam i5 scalar i32\nparam i6 scalar i32\n";
  static const char counted[] = "kernel counted warps=4\nparam x pointer f32\nparam rows scalar i32\nunread rows\nparam n scalar i32\n";
  char all[1024] = "";
  if (strstr(text, "syntax error"))
    return result(1, NULL, "bad.tile:1:1: error[E0001]: no\n");
  if (o->kernel && strcmp(o->kernel, "axpy") != 0 && strcmp(o->kernel, "other") != 0 && strcmp(o->kernel, "pointers") != 0 &&
      strcmp(o->kernel, "many") != 0 && strcmp(o->kernel, "tensors") != 0 && strcmp(o->kernel, "views") != 0 && strcmp(o->kernel, "counted") != 0)
    return result(2, NULL, "error: no such kernel\n");
  if (!o->kernel || !strcmp(o->kernel, "axpy"))
    sprintf(all, "%s%s\n", axpy, o->ndefines ? o->defines[0].value : "1024");
  if (!o->kernel || !strcmp(o->kernel, "other"))
    strcat(all, other);
  if (!o->kernel || !strcmp(o->kernel, "pointers"))
    strcat(all, pointers);
  if (!o->kernel || !strcmp(o->kernel, "many"))
    strcat(all, many);
  if (!o->kernel || !strcmp(o->kernel, "counted"))
    strcat(all, counted);
  if (!o->kernel || !strcmp(o->kernel, "views"))
    strcat(all, "kernel views warps=4\nparam p pointer f16\nparam s scalar i32\n");
  if (!o->kernel || !strcmp(o->kernel, "tensors"))
    strcat(all, "kernel tensors warps=4\nparam a tensor tensor<f16, 2>\nparam n scalar i32\nparam b tensor tensor<T, 1>\ntype T -\n");
  return result(0, all, "");
}

static void
add_fact(const TilecFact *f)
{
  static const char *const relations[] = {"=", "%", " null ", " same "};
  char *at = facts + strlen(facts);
  if (f->kind == TILEC_FACT_SAME)
    sprintf(at, "%s=%s ", f->name, f->other);
  else
    sprintf(at, "%s%s%d ", f->name, relations[f->kind], (int)f->value);
}

/* What the fake compiler relies on: of p, q, r and s all pairs, of which a fact takes one away; or a pair in spite of facts. */
static int stubborn, relies;

static TilecResult *
compile_pointers(const TilecOptions *o)
{
  static const char *const names[] = {"n", "p", "q", "r", "s"};
  char text[300] = "//@tilec kernel=pointers warps=4 params=n:scalar:i32,p:ptr:f32,q:ptr:f32,r:ptr:f32,s:ptr:f32", *between = " apart=";
  for (int i = 1; relies && i < 5; i++)
    for (int j = i + 1; j < 5; j++) {
      int told = 0;
      for (size_t f = 0; f < o->nfacts && !stubborn; f++)
        told |= o->facts[f].kind == TILEC_FACT_SAME && !strcmp(o->facts[f].other, names[i]) && !strcmp(o->facts[f].name, names[j]);
      if (!told)
        sprintf(text + strlen(text), "%s%d:%d", between, i, j);
      between = told ? between : ",";
    }
  return result(0, strcat(text, "\n"), "");
}

/* Its parts: of a a map and an extent, of b the address. It relies on a and b being different unless it is told the opposite. */
static TilecResult *
compile_tensors(const TilecOptions *o)
{
  char text[300];
  int told = o->nfacts && o->facts[o->nfacts - 1].kind == TILEC_FACT_SAME;
  snprintf(text, sizeof text, "//@tilec kernel=tensors warps=4 params=a:tensor:f16:rank=2:map=8x64,a:tensor:f16:rank=2:extent=1,n:scalar:i32,"
           "b:tensor:f16:rank=1:base%s\n", told ? "" : " apart=0:3");
  return result(0, text, "");
}

TilecResult *
tilec_compile(const char *name, const char *text, size_t len, const TilecOptions *o)
{
  atomic_fetch_add(&compiles, 1);
  facts[0] = defines[0] = 0;
  for (size_t i = 0; i < o->nfacts; i++)
    add_fact(&o->facts[i]);
  for (size_t i = 0; i < o->ndefines; i++)
    sprintf(defines + strlen(defines), "%s=%s ", o->defines[i].name, o->defines[i].value);
  if (!strcmp(o->kernel, "other"))
    return result(1, NULL, "x.tile:3:4: error[E0203]: this does not compile\n");
  CHECK(!strcmp(o->target, "sm_90a"));
  if (!strcmp(o->kernel, "pointers"))
    return compile_pointers(o);
  if (!strcmp(o->kernel, "tensors"))
    return compile_tensors(o);
  if (!strcmp(o->kernel, "views"))
    return result(0, o->tensors == TILEC_TENSORS_NONE
                       ? "//@tilec kernel=views warps=4 params=p:ptr:f16,s:scalar:i32\n"
                       : "//@tilec kernel=views warps=4 params=p:ptr:f16,s:scalar:i32:nonneg,p:view:f16:rank=2:map=8x64:of=0:extents=64x64:strides=$1\n", "");
  if (!strcmp(o->kernel, "many"))
    return result(0, "//@tilec kernel=many warps=4 params=i0:scalar:i32,i1:scalar:i32,i2:scalar:i32,i3:scalar:i32,i4:scalar:i32,"
                     "i5:scalar:i32,i6:scalar:i32\n", "");
  if (!strcmp(o->kernel, "counted"))
    return result(0, "//@tilec kernel=counted warps=4 params=x:ptr:f32,rows:scalar:i32,n:scalar:i32\n", "");
  return result(0, "//@tilec kernel=axpy warps=4 params=a:scalar:f32,x:ptr:f32,y:ptr:f32,n:scalar:i32\n", "");
}

/* ---- the tests ---- */

static TilertArg
arg_int(int64_t v)
{
  return (TilertArg){.kind = TILERT_ARG_INT, .u.i = v};
}

static TilertArg
arg_pointer(uint64_t p)
{
  return (TilertArg){.kind = TILERT_ARG_POINTER, .u.pointer = p};
}

static int
launch(TilejitKernel *k, uint64_t x, uint64_t y, int64_t n)
{
  uint32_t grid[3] = {1, 1, 1};
  TilertArg args[4] = {{.kind = TILERT_ARG_FLOAT, .u.f = 1}, arg_pointer(x), arg_pointer(y), arg_int(n)};
  return tilejit_launch(k, NULL, grid, args, 4, &err);
}

static void
test_forms(TilejitProgram *p)
{
  TilejitKernel *k;
  TilecDefine block = {"BLOCK", "256"};
  CHECK_OK(tilejit_kernel(p, "axpy", &block, 1, &k, &err));
  CHECK_OK(launch(k, 0x1000, 0x2008, 7));
  CHECK(compiles == 1 && !strcmp(facts, "x%16 ") && !strcmp(defines, "BLOCK=256 "));
  CHECK_OK(launch(k, 0x1010, 0x2004, 9));
  CHECK(compiles == 1);
  CHECK_OK(launch(k, 0x1010, 0x2000, 1));
  CHECK(compiles == 2 && !strcmp(facts, "x%16 y%16 n=1 "));
  CHECK_OK(launch(k, 0x1010, 0x2000, 32));
  CHECK(compiles == 3 && !strcmp(facts, "x%16 y%16 n%16 "));
  CHECK_OK(launch(k, 0x1010, 0x2008, 24));
  CHECK(compiles == 4 && !strcmp(facts, "x%16 n%8 "));
  CHECK_OK(launch(k, 0x1010, 0x2004, 12));
  CHECK(compiles == 5 && !strcmp(facts, "x%16 n%4 "));
  CHECK_OK(launch(k, 0x1010, 0x2004, -40));
  CHECK(compiles == 5);
  CHECK(tilejit_kernel_forms(k) == 5);
}

/* Every argument is 1, a multiple of 16, 8 or 4, or none of these: a form for each pattern, and none twice. There are more
 * patterns of ones alone than buckets. */
static void
test_patterns(TilejitProgram *p)
{
  enum { ARGS = 7, KINDS = 5, VARIED = 5, PATTERNS = KINDS * KINDS * KINDS * KINDS * KINDS };
  static const int64_t kinds[KINDS] = {1, 3, 16, 8, 4};
  TilejitKernel *k;
  uint32_t grid[3] = {1, 1, 1};
  CHECK_OK(tilejit_kernel(p, "many", NULL, 0, &k, &err));
  for (int round = 0; round < 2; round++) {
    int before = compiles;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
      TilertArg args[ARGS];
      for (int i = 0, left = pattern; i < ARGS; i++, left /= KINDS)
        args[i] = arg_int(i < VARIED ? kinds[left % KINDS] : 3);
      CHECK_OK(tilejit_launch(k, NULL, grid, args, ARGS, &err));
      CHECK(compiles - before == (round ? 0 : pattern + 1));
    }
  }
  CHECK(tilejit_kernel_forms(k) == PATTERNS);
}

static void
test_kernels(TilejitProgram *p)
{
  TilejitKernel *a, *b;
  TilecDefine block = {"BLOCK", "256"}, bad = {"n", "5"}, unknown = {"Q", "5"};
  CHECK_OK(tilejit_kernel(p, "axpy", NULL, 0, &a, &err));
  CHECK_OK(tilejit_kernel(p, "axpy", &block, 1, &b, &err));
  CHECK(a != b && tilejit_kernel_param_count(a) == 6);
  CHECK(!strcmp(tilejit_kernel_param(a, 5)->value, "1024") && !strcmp(tilejit_kernel_param(b, 5)->value, "256"));
  CHECK(tilejit_kernel_param(a, 4)->kind == TILEJIT_TYPE && !tilejit_kernel_param(a, 6));
  CHECK(!strcmp(tilejit_kernel_param(a, 2)->type, "*T") && !strcmp(tilejit_kernel_param(a, 3)->type, "i32"));
  CHECK_OK(tilejit_kernel(p, "axpy", NULL, 0, &b, &err));
  CHECK(a == b);
  CHECK_FAILS(tilejit_kernel(p, "axpy", &bad, 1, &b, &err), TILERT_E_ARGUMENT, "passed at launch");
  CHECK_FAILS(tilejit_kernel(p, "axpy", &unknown, 1, &b, &err), TILERT_E_ARGUMENT, "no const or type parameter \"Q\"");
  CHECK_FAILS(tilejit_kernel(p, "nope", NULL, 0, &b, &err), TILERT_E_ARGUMENT, "no such kernel");
  CHECK_FAILS(tilejit_kernel(p, NULL, NULL, 0, &b, &err), TILERT_E_ARGUMENT, "several kernels");
}

static void
test_refusals(TilejitProgram *p)
{
  TilejitKernel *k;
  uint32_t grid[3] = {1, 1, 1};
  TilertArg args[5] = {{.kind = TILERT_ARG_FLOAT, .u.f = 1}, arg_pointer(16), arg_pointer(16), arg_int(3), arg_int(3)};
  const char *names[] = {"a", "x", "y", "n"}, *twice[] = {"a", "x", "x", "n"}, *odd[] = {"a", "x", "q", "n"};
  CHECK_OK(tilejit_kernel(p, "axpy", NULL, 0, &k, &err));
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 5, &err), TILERT_E_ARGUMENT, "takes 4 arguments (a, x, y, n); 5");
  CHECK_OK(tilejit_launch_named(k, NULL, grid, names, args, 4, &err));
  CHECK_FAILS(tilejit_launch_named(k, NULL, grid, twice, args, 4, &err), TILERT_E_ARGUMENT, "twice: argument \"x\"");
  CHECK_FAILS(tilejit_launch_named(k, NULL, grid, odd, args, 4, &err), TILERT_E_ARGUMENT, "no argument \"q\"");
  CHECK_FAILS(tilejit_launch_named(k, NULL, grid, names, args, 3, &err), TILERT_E_ARGUMENT, "missing argument \"n\"");
  args[3] = args[0];
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 4, &err), TILERT_E_ARGUMENT, "kernel axpy, argument 3 (n: i32)");
  args[0] = arg_pointer(16);                    /* an address where a number is wanted is no multiple of anything */
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 4, &err), TILERT_E_ARGUMENT, "kernel axpy, argument 0 (a: f32)");
  CHECK(!strstr(facts, "a%16"));
}

static void
test_call(TilejitProgram *p)
{
  TilejitKernel *k;
  TilejitCall *c;
  TilejitInfo info;
  uint32_t grid[3] = {9, 1, 1};
  const char *names[] = {"n", "y", "x", "a"};
  TilertArg args[4] = {arg_int(64), arg_pointer(32), arg_pointer(48), {.kind = TILERT_ARG_FLOAT, .u.f = 1}};
  CHECK_OK(tilejit_kernel(p, "axpy", NULL, 0, &k, &err));
  CHECK_OK(tilejit_call_create(k, grid, names, args, 4, &c, &err));
  int before = fake->total;
  KEEP(4, 8, 8, 4);
  CHECK_OK(tilejit_call_launch(c, NULL, &err));
  KEEP(0);
  CHECK(fake->total == before + 1 && fake->launch.grid[0] == 9 && kept_int(3) == 64);
  CHECK_OK(tilejit_call_info(c, &info, &err));
  CHECK(info.threads == 128 && info.registers == 34 && info.divisible_16 == 0xe && info.occupancy == 3);
  CHECK(strstr(tilejit_call_ptx(c), "kernel=axpy"));
  tilejit_call_destroy(c);
}

/* PTX of another compiler: parameters by its own words, blocks by its headers or by the caller. */
static void
test_other_compilers(TilertDevice *d)
{
  static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".entry asked(.param .u64 asked_param_0, .param .u64 .ptr .global .align 4 asked_param_1, .param .f32 scale, .param .align 4 .b8 asked_param_3[12])"
    " .reqntid 8, 4, 2 { ret; }\n.entry open(.param .u32 n) { ret; }\n";
  static const char *const types[] = {".u64", "*", ".f32", ".b8[12]"}, *const names[] = {"p0", "p1", "scale", "p3"};
  static const uint32_t grid[3] = {5, 1, 1}, block[3] = {7, 3, 1}, none[3] = {0, 1, 1};
  uint32_t shape[3];
  TilejitProgram *p;
  TilejitKernel *k;
  TilejitCall *c;
  CHECK_OK(tilejit_program_create(d, "other.ptx", ptx, strlen(ptx), NULL, &p, &err));
  CHECK_FAILS(tilejit_kernel(p, "absent", NULL, 0, &k, &err), TILERT_E_ARGUMENT, "no kernel 'absent'; it has asked, open");
  CHECK_OK(tilejit_kernel(p, "asked", NULL, 0, &k, &err));
  CHECK(tilejit_kernel_param_count(k) == 4);
  for (size_t i = 0; i < 4; i++)
    CHECK(!strcmp(tilejit_kernel_param(k, i)->type, types[i]) && !strcmp(tilejit_kernel_param(k, i)->name, names[i]));
  TilertArg args[4] = {arg_int(16), arg_pointer(32), arg_int(3), {.kind = TILERT_ARG_BYTES, .u.bytes = ptx}}, seven = arg_int(7);
  KEEP(8, 8, 4, 12);
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 4, &err));
  CHECK(fake->launch.grid[0] == 5 && fake->launch.block[0] == 8 && fake->launch.block[1] == 4 && fake->launch.block[2] == 2);
  CHECK(!memcmp(fake->value[2], &(float){3}, sizeof(float)) && !memcmp(fake->value[3], ptx, 12));
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 4, &err));
  CHECK(tilejit_kernel_forms(k) == 1);
  CHECK(tilejit_kernel_shape(k, shape) && shape[0] == 8 && shape[1] == 4 && shape[2] == 2);
  CHECK_OK(tilejit_kernel(p, "open", NULL, 0, &k, &err));
  CHECK(tilejit_kernel_shape(k, shape) && shape[0] == 0 && shape[1] == 0 && shape[2] == 0 && tilejit_kernel_shape(k, NULL));
  CHECK_OK(tilejit_call_create(k, grid, NULL, &seven, 1, &c, &err));
  CHECK_OK(tilert_launch_set_shape(tilejit_call_packed(c), block, 50000, &err));
  CHECK_FAILS(tilert_launch_set_shape(tilejit_call_packed(c), none, 0, &err), TILERT_E_ARGUMENT, "a block of 0 x 1 x 1");
  KEEP(4);
  CHECK_OK(tilejit_call_launch(c, NULL, &err));
  KEEP(0);
  CHECK(fake->launch.block[0] == 7 && fake->launch.block[1] == 3 && fake->launch.shared == 50000 && fake->dynamic_shared == 50000);
  CHECK(kept_int(0) == 7);
  tilejit_call_destroy(c);
  tilejit_program_destroy(p);
  CHECK_FAILS(tilejit_program_create(d, "x.ptx", ".version 8.0\n", 13, NULL, &p, &err), TILERT_E_MODULE, "holds no kernel");
  CHECK_FAILS(tilejit_program_create(d, "x.ptx", "", 0, NULL, &p, &err), TILERT_E_MODULE, "PTX starts with .version");
}

static void
test_failure(TilejitProgram *p, TilertDevice *d)
{
  TilejitKernel *k;
  TilejitProgram *bad;
  char text[64];
  uint32_t grid[3] = {1, 1, 1};
  TilertArg arg = arg_int(1);
  CHECK_OK(tilejit_kernel(p, "other", NULL, 0, &k, &err));
  CHECK_FAILS(tilejit_launch(k, NULL, grid, &arg, 1, &err), TILERT_E_COMPILE, "x.tile:3:4: error[E0203]");
  CHECK(tilejit_program_diagnostics(p, text, sizeof text) == 48 && !strncmp(text, "x.tile:3:4", 10));
  CHECK_FAILS(tilejit_program_create(d, "b", "syntax error", 12, NULL, &bad, &err), TILERT_E_COMPILE, "E0001");
  CHECK_FAILS(tilejit_program_open(d, "/nonexistent.tile", NULL, &bad, &err), TILERT_E_ARGUMENT, "cannot read");
}

static int
launch_pointers(TilejitKernel *k, uint64_t p, uint64_t q, uint64_t r, uint64_t s)
{
  uint32_t grid[3] = {1, 1, 1};
  TilertArg args[5] = {arg_int(7), arg_pointer(p), arg_pointer(q), arg_pointer(r), arg_pointer(s)};
  facts[0] = 0;
  return tilejit_launch(k, NULL, grid, args, 5, &err);
}

/* Whether a pointer is null matters only where the kernel asks. */
static void
test_null(TilejitProgram *p)
{
  TilejitKernel *k;
  int before = compiles;
  CHECK_OK(tilejit_kernel(p, "pointers", NULL, 0, &k, &err));
  CHECK_OK(launch_pointers(k, 0x1004, 0x1008, 0x1104, 0x1204));
  CHECK(compiles == before + 1 && !strcmp(facts, "q null 0 "));
  CHECK_OK(launch_pointers(k, 0x1004, 0x2008, 0x1104, 0x1204));
  CHECK(compiles == before + 1);
  CHECK_OK(launch_pointers(k, 0x1004, 0, 0x1104, 0x1204));
  CHECK(compiles == before + 2 && !strcmp(facts, "q%16 q null 1 "));
  CHECK_OK(launch_pointers(k, 0x1004, 0x2000, 0x1104, 0x1204));   /* aligned as null is */
  CHECK(compiles == before + 3 && !strcmp(facts, "q%16 q null 0 "));
  CHECK_OK(launch_pointers(k, 0, 0x2008, 0x1104, 0x1204));        /* p is not asked about */
  CHECK(compiles == before + 4 && !strcmp(facts, "p%16 q null 0 "));
  CHECK_OK(launch_pointers(k, 0x2000, 0x2008, 0x1104, 0x1204));
  CHECK(compiles == before + 4);
  CHECK(tilejit_kernel_forms(k) == 4);
}

/* What only clauses ask for makes no forms. */
static void
test_unread(TilejitProgram *p)
{
  static const int64_t numbers[] = {1, 2, 8, 16, 7};
  uint32_t grid[3] = {1, 1, 1};
  TilertArg args[3] = {arg_pointer(0x1004)};
  TilejitKernel *k;
  int before = compiles;
  CHECK_OK(tilejit_kernel(p, "counted", NULL, 0, &k, &err));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    args[1] = arg_int(numbers[i]);
    args[2] = arg_int(8);
    CHECK_OK(tilejit_launch(k, NULL, grid, args, 3, &err));
    CHECK(compiles == before + 1 && !strcmp(facts, "n%8 "));
  }
  args[2] = arg_int(1);
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 3, &err));
  CHECK(compiles == before + 2 && !strcmp(facts, "n=1 ") && tilejit_kernel_forms(k) == 2);
}

/* A launch that gives one address for two gets a form that is told so, if the form relied on it; it may rely on more in turn. */
static void
test_same(TilertDevice *d)
{
  TilejitProgram *p;
  TilejitKernel *k;
  CHECK_OK(tilejit_program_create(d, "x.tile", "source", 6, NULL, &p, &err));
  CHECK_OK(tilejit_kernel(p, "pointers", NULL, 0, &k, &err));
  int before = compiles;
  relies = 1;
  CHECK_OK(launch_pointers(k, 0x1004, 0x1104, 0x1204, 0x1304));
  CHECK(compiles == before + 1 && !strcmp(facts, "q null 0 "));
  CHECK_OK(launch_pointers(k, 0x1004, 0x1104, 0x1004, 0x1304));
  CHECK(compiles == before + 2 && !strcmp(facts, "q null 0 r=p "));
  CHECK_OK(launch_pointers(k, 0x2004, 0x1104, 0x2004, 0x1304));
  CHECK_OK(launch_pointers(k, 0x2004, 0x1104, 0x2104, 0x1304));
  CHECK(compiles == before + 2);
  CHECK_OK(launch_pointers(k, 0x1004, 0x1104, 0x1104, 0x1004));   /* two pairs */
  CHECK(compiles == before + 3 && !strcmp(facts, "q null 0 r=q s=p "));
  CHECK_OK(launch_pointers(k, 0x1004, 0x1104, 0x1004, 0x1104));   /* the other two */
  CHECK(compiles == before + 4 && !strcmp(facts, "q null 0 r=p s=q "));
  CHECK_OK(launch_pointers(k, 0x1004, 0x1104, 0x1104, 0x1004));
  CHECK(compiles == before + 4);
  CHECK_OK(launch_pointers(k, 0, 0x1104, 0, 0x1304));             /* null reaches nothing */
  CHECK(compiles == before + 5 && !strcmp(facts, "p%16 q null 0 r%16 "));
  tilejit_program_destroy(p);
  stubborn = 1;                                                   /* compiled for different ones all the same: refused, not repeated */
  CHECK_OK(tilejit_program_create(d, "x.tile", "source", 6, NULL, &p, &err));
  CHECK_OK(tilejit_kernel(p, "pointers", NULL, 0, &k, &err));
  CHECK_FAILS(launch_pointers(k, 0x1004, 0x1104, 0x1004, 0x1304), TILERT_E_ARGUMENT, "arguments 1 (p) and 3 (r) are the same address");
  before = compiles;
  CHECK_FAILS(launch_pointers(k, 0x1004, 0x1104, 0x1004, 0x1304), TILERT_E_ARGUMENT, "arguments 1 (p) and 3 (r) are the same address");
  CHECK(compiles == before);
  stubborn = relies = 0;
  tilejit_program_destroy(p);
}

/* Arguments are counted and named as tensors; what the form relies on is about its parameters. */
static void
test_tensors(TilejitProgram *p)
{
  static const char *const types[] = {"tensor<f16, 2>", "i32", "tensor<T, 1>"}, *const names[] = {"b", "n", "a"};
  static const int64_t extents[] = {8, 64}, count[] = {100}, odd[] = {60, 1};
  static const uint32_t grid[3] = {1, 1, 1};
  TilertTensorArg a = {.address = 0x1000, .rank = 2, .extents = extents}, b = {.address = 0x2004, .rank = 1, .extents = count};
  TilertArg args[3] = {{.kind = TILERT_ARG_TENSOR, .u.tensor = &a}, arg_int(5), {.kind = TILERT_ARG_TENSOR, .u.tensor = &b}};
  const TilertArg named[3] = {args[2], args[1], args[0]};
  TilejitKernel *k;
  TilejitCall *c;
  CHECK_OK(tilejit_kernel(p, "tensors", NULL, 0, &k, &err));
  for (size_t i = 0; i < 3; i++)
    CHECK(!strcmp(tilejit_kernel_param(k, i)->type, types[i]) && tilejit_kernel_param(k, i)->kind == TILEJIT_ARGUMENT);
  int before = compiles;
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 3, &err));
  CHECK_OK(tilejit_launch_named(k, NULL, grid, names, named, 3, &err));
  CHECK(compiles == before + 1 && !strcmp(facts, "a%16 "));
  CHECK_OK(tilejit_call_create(k, grid, NULL, args, 3, &c, &err));
  KEEP(0, 4, 0, 8);
  CHECK_OK(tilejit_call_launch(c, NULL, &err));
  KEEP(0);
  CHECK(kept_int(1) == 64 && kept_word(3, 0) == 0x2004);
  tilejit_call_destroy(c);
  b.address = 0x1000;
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 3, &err));
  CHECK(compiles == before + 3 && !strcmp(facts, "a%16 b%16 b=a "));   /* the form for two multiples of 16 is made first */
  a.strides = odd;
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 3, &err), TILERT_E_ARGUMENT,
              "kernel tensors, argument 0 (a): stride 0 is 60 elements, 120 bytes; copies of boxes need a multiple of 16 bytes");
  args[2].u.tensor = NULL;
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 3, &err), TILERT_E_ARGUMENT, "argument 0 (a)");
  a.strides = NULL;
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 3, &err), TILERT_E_ARGUMENT, "kernel tensors, argument 2 (b): the tensor is NULL");
  CHECK_FAILS(tilejit_launch(k, NULL, grid, args, 2, &err), TILERT_E_ARGUMENT, "kernel tensors takes 3 arguments (a, n, b); 2 are given");
}

/* Arguments that a map cannot be made of have a form without; each is made once. */
static void
test_views(TilejitProgram *p)
{
  static const uint32_t grid[3] = {1, 1, 1};
  TilertArg args[] = {arg_pointer(0x1000), arg_int(64)};
  TilejitKernel *k;
  TilejitCall *c;
  CHECK_OK(tilejit_kernel(p, "views", NULL, 0, &k, &err));
  int before = compiles;
  KEEP(8, 4, 48);
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 2, &err));
  CHECK(compiles == before + 1 && !strcmp(facts, "p%16 s%16 ") && kept_word(2, 4) == 128);
  args[1].u.i = -64;
  KEEP(8, 4);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(tilejit_launch(k, NULL, grid, args, 2, &err));
    CHECK(compiles == before + 2 && kept_int(1) == -64);
  }
  CHECK_OK(tilejit_call_create(k, grid, NULL, args, 2, &c, &err));
  CHECK(!strstr(tilejit_call_ptx(c), ":view:"));
  tilejit_call_destroy(c);
  args[1].u.i = 128;
  KEEP(8, 4, 48);
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 2, &err));
  KEEP(0);
  CHECK(compiles == before + 2 && kept_word(2, 4) == 256 && tilejit_kernel_forms(k) == 2);
  args[1].u.i = 3;                               /* a pattern of its own, whose maps would be made, if they could */
  CHECK_OK(tilejit_launch(k, NULL, grid, args, 2, &err));
  CHECK(compiles == before + 4 && tilejit_kernel_forms(k) == 4);
}

/* Of PTX that says so itself. */
static void
test_tensors_of_ptx(TilertDevice *d)
{
  static const char ptx[] = "//@tilec kernel=k warps=4 params=a:tensor:bf16:rank=3:base,a:tensor:bf16:rank=3:stride=0,n:scalar:i32\n";
  TilejitProgram *p;
  TilejitKernel *k;
  CHECK_OK(tilejit_program_create(d, "own.ptx", ptx, strlen(ptx), NULL, &p, &err));
  CHECK_OK(tilejit_kernel(p, NULL, NULL, 0, &k, &err));
  CHECK(tilejit_kernel_param_count(k) == 2 && !strcmp(tilejit_kernel_param(k, 0)->type, "tensor<bf16, 3>"));
  CHECK(!strcmp(tilejit_kernel_param(k, 0)->name, "a") && !strcmp(tilejit_kernel_param(k, 1)->type, "i32"));
  tilejit_program_destroy(p);
}

static void *
thread_main(void *user)
{
  for (int i = 0; i < 200; i++) {
    CHECK_OK(launch(user, 0x1000 + 8 * (uint64_t)(i % 3), 0x2000, 5));
    CHECK_OK(launch(user, 0x1000, 0x2000, i % 2 ? 1 : 48));
  }
  return NULL;
}

static void
test_threads(TilejitProgram *p)
{
  TilejitKernel *k;
  pthread_t threads[4];
  TilecDefine block = {"BLOCK", "64"};
  CHECK_OK(tilejit_kernel(p, "axpy", &block, 1, &k, &err));
  int before = compiles;
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&threads[i], NULL, thread_main, k));
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  CHECK(compiles - before == 4 && tilejit_kernel_forms(k) == 4);
}

/* Options of a header that is newer. */
static void
test_newer(TilertDevice *d, TilejitProgram *p)
{
  struct { TilejitOptions o; uint64_t more; } x = {{.size = sizeof x}, 1};
  struct { TilejitTuneOptions o; uint64_t more; } y = {{.size = sizeof y}, 1};
  TilejitProgram *q;
  TilejitTuning *t;
  CHECK_FAILS(tilejit_program_create(d, "x.tile", "source", 6, &x.o, &q, &err), TILERT_E_ARGUMENT, "TilejitOptions has ");
  CHECK_FAILS(tilejit_tune(p, "axpy", NULL, 0, NULL, NULL, NULL, NULL, 0, &y.o, &t, &err), TILERT_E_ARGUMENT, "TilejitTuneOptions has ");
  x.more = 0;
  CHECK_OK(tilejit_program_create(d, "x.tile", "source", 6, &x.o, &q, &err));
  tilejit_program_destroy(q);
}

int
main(void)
{
  TilertDevice *d;
  TilejitProgram *p, *plain;
  TilejitKernel *k;
  TilejitOptions o = {.size = sizeof o, .no_specialisation = 1};
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  setenv("TILEC_CACHE", "0", 1);
  fake = ((FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda"))();
  fake->capability = 90;
  CHECK_OK(tilert_device_open("cuda", NULL, &d, &err));
  CHECK_OK(tilejit_program_create(d, "x.tile", "source", 6, NULL, &p, &err));
  test_newer(d, p);
  test_forms(p);
  test_patterns(p);
  test_kernels(p);
  test_refusals(p);
  test_call(p);
  test_other_compilers(d);
  test_failure(p, d);
  test_null(p);
  test_unread(p);
  test_same(d);
  test_tensors(p);
  test_tensors_of_ptx(d);
  test_views(p);
  test_threads(p);
  CHECK_OK(tilejit_program_create(d, "x.tile", "source", 6, &o, &plain, &err));
  CHECK_OK(tilejit_kernel(plain, "pointers", NULL, 0, &k, &err));
  CHECK_OK(launch_pointers(k, 0x1000, 0, 0x1100, 0x1200));
  CHECK(!strcmp(facts, "q null 1 "));
  CHECK_OK(launch_pointers(k, 0x1000, 0x2000, 0x1100, 0x1200));
  CHECK(!strcmp(facts, "q null 0 ") && tilejit_kernel_forms(k) == 2);
  CHECK_OK(tilejit_kernel(plain, "axpy", NULL, 0, &k, &err));
  CHECK_OK(launch(k, 0x1000, 0x2000, 1));
  CHECK(!facts[0]);
  tilert_device_close(d); /* the programs keep it open */
  tilejit_program_destroy(plain);
  tilejit_program_destroy(p);
  CHECK(fake->retained == 0 && fake->modules == 0);
  return 0;
}
