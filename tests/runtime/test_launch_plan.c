/* What launches take by plan (runtime/launch_plan.h) beside what they take one argument at a time: the same values, bytes, grids and messages.
 * Over the driver that only records (fakecuda.c), as devices that look at addresses have no steps for pointers. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include "aot.h"
#include "check.h"
#include "fakecuda.h"

enum { MOST_VALUES = 160, MOST_FORMS = 6 };

static TilertError err;
static FakeCuda *fake;
static TilertDevice *dev, *other;
static TilertBuffer *buffer, *odd, *foreign, *none;

/* ---- arguments ---- */

/* A parameter in a manifest, how large it is, and an argument that goes whatever the others are. */
typedef struct Param { const char *text; size_t size; TilertArg good; } Param;

#define POINTER(v) {.kind = TILERT_ARG_POINTER, .u.pointer = (v)}
#define INT(v) {.kind = TILERT_ARG_INT, .u.i = (v)}
#define FLOAT(v) {.kind = TILERT_ARG_FLOAT, .u.f = (v)}

static const Param params[] = {
  {"a:ptr:f32", 8, POINTER(4)},             {"b:ptr:f32:16", 8, POINTER(1024)},      {"c:ptr:f32:16:nonnull", 8, POINTER(2048)},
  {"d:ptr:f32:null", 8, POINTER(0)},        {"e:ptr:f32:12", 8, POINTER(24)},        {"f:ptr:f32", 8, POINTER(80)},
  {"g:scalar:i1", 1, INT(1)},               {"h:scalar:i8", 1, INT(1)},              {"i:scalar:i16:2", 2, INT(2)},
  {"j:scalar:i32", 4, INT(1)},              {"k:scalar:i32:4:nonneg", 4, INT(4)},    {"l:scalar:i64:8", 8, INT(8)},
  {"m:scalar:i64:nonneg", 8, INT(1)},       {"n:scalar:u8", 1, INT(1)},              {"o:scalar:u16", 2, INT(1)},
  {"p:scalar:u32:16", 4, INT(16)},          {"q:scalar:u64", 8, INT(1)},             {"r:scalar:i32:3", 4, INT(3)},
  {"s:scalar:f16", 2, FLOAT(1)},            {"t:scalar:bf16", 2, FLOAT(1)},          {"u:scalar:f8e4m3", 1, FLOAT(1)},
  {"v:scalar:f32", 4, FLOAT(1)},            {"w:scalar:f64", 8, FLOAT(1)},
};
enum { PARAMS = sizeof params / sizeof *params };

static size_t
list_values(TilertArg *out)
{
  static const int64_t numbers[] = {
    0, 1, -1, 2, 3, 4, -4, 6, 8, 12, 15, 16, 24, 80, 96, 127, 128, -128, -129, 255, 256, 1024, 2048, 32767, 32768, -32768, -32769, 65535, 65536, 1 << 20,
    INT32_MAX, INT64_C(1) << 31, INT32_MIN, INT32_MIN - INT64_C(1), UINT32_MAX, INT64_C(1) << 32, INT64_MAX, INT64_MIN, INT64_MIN + 8, -16,
  };
  static const double reals[] = {0, -0.0, 1, -1.5, 3e38, 3.5e38, 1e300, -1e300, 1e-45, 1e-320, 65504, 65520, 448, 480, (double)INFINITY, -(double)INFINITY, (double)NAN};
  static const unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  size_t n = 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    out[n++] = (TilertArg)INT(numbers[i]);
    out[n++] = (TilertArg)POINTER((uint64_t)numbers[i]);
  }
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
    out[n++] = (TilertArg)FLOAT(reals[i]);
  TilertBuffer *const buffers[] = {buffer, odd, foreign, none, NULL};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    out[n++] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = buffers[i]};
  out[n++] = (TilertArg){.kind = TILERT_ARG_POINTER, .reserved = TILERT_NO_ELEMENTS};
  out[n++] = (TilertArg){.kind = TILERT_ARG_BYTES, .u.bytes = bytes};
  out[n++] = (TilertArg){.kind = TILERT_ARG_BYTES};
  out[n++] = (TilertArg){.kind = TILERT_ARG_TENSOR};
  out[n++] = (TilertArg){.kind = 99, .u.i = 1};
  CHECK(n <= MOST_VALUES);
  return n;
}

static TilertModule *
load(const char *text, TilertKernel **k)
{
  TilertModule *m;
  CHECK_OK(tilert_module_load(dev, text, strlen(text), NULL, 0, &m, &err));
  CHECK_OK(tilert_module_kernel(m, NULL, k, &err));
  return m;
}

/* The driver is to keep the values of these parameters. */
static void
keep(const Param *const *p, size_t n)
{
  fake->nsizes = (int)n;
  for (size_t i = 0; i < n; i++)
    fake->size[i] = (int)p[i]->size;
}

/* What the driver gets of a launch. */
static void
launched(const TilertLaunch *l, unsigned char bytes[sizeof fake->value])
{
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  memcpy(bytes, fake->value, sizeof fake->value);
}

/* One argument in a launch's place, by the plan, and put into a launch that is there, without it. */
static void
compare(TilertKernel *k, const uint32_t grid[3], TilertArg *args, size_t at, const TilertArg *value)
{
  const TilertArg good = args[at];
  TilertLaunch *planned = NULL, *set;
  TilertError set_err = {0};
  unsigned char bytes[2][sizeof fake->value];
  CHECK_OK(tilert_launch_create(k, grid, args, PARAMS, &set, &err));
  const int wanted = tilert_launch_set_arg(set, at, value, &set_err);
  args[at] = *value;
  memset(&err, 0, sizeof err);
  const int status = tilert_launch_create(k, grid, args, PARAMS, &planned, &err);
  args[at] = good;
  if (status != wanted || strcmp(err.message, set_err.message) != 0) {
    fprintf(stderr, "%s, kind %u, %lld: status %d, \"%s\"; wanted %d, \"%s\"\n", params[at].text, value->kind, (long long)value->u.i, status, err.message,
            wanted, set_err.message);
    exit(1);
  }
  if (!status && grid[0]) {
    launched(planned, bytes[0]);
    launched(set, bytes[1]);
    CHECK(!memcmp(bytes[0], bytes[1], sizeof bytes[0]));
  }
  tilert_launch_destroy(planned);
  tilert_launch_destroy(set);
}

static void
test_arguments(void)
{
  char text[2048] = "//@tilec kernel=all warps=2 shared=48 target=sm_80 params=";
  TilertArg values[MOST_VALUES], args[PARAMS];
  const Param *all[PARAMS];
  const size_t n = list_values(values);
  TilertKernel *k;
  for (size_t i = 0; i < PARAMS; i++) {
    strcat(strcat(text, i ? "," : ""), params[i].text);
    args[i] = params[i].good;
    all[i] = &params[i];
  }
  keep(all, PARAMS);
  TilertModule *m = load(strcat(text, " apart=0:1,0:5,1:4 needs=0,1\n"), &k);
  for (size_t i = 0; i < PARAMS; i++)
    for (size_t v = 0; v < n; v++) {
      compare(k, (const uint32_t[3]){1, 2, 3}, args, i, &values[v]);
      compare(k, (const uint32_t[3]){0, 1, 1}, args, i, &values[v]);
    }
  CHECK(fake->launch.block[0] == 64 && fake->launch.grid[1] == 2 && fake->launch.shared == 48);
  tilert_module_destroy(m);
  fake->nsizes = 0;
}

/* ---- grids ---- */

static void
test_grid(const char *grid)
{
  static const int64_t values[] = {0, 1, 63, 64, 65, 65535, 65536, 5000000, INT32_MAX, UINT32_MAX, INT64_C(1) << 32, -1, INT64_MIN, INT64_MAX, INT64_MAX - 1};
  char text[256];
  TilertKernel *k;
  snprintf(text, sizeof text, "//@tilec kernel=some warps=1 shared=0 grid=%s target=sm_80 params=n:scalar:i64,m:scalar:i64\n", grid);
  TilertModule *mod = load(text, &k);
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
      const TilertArg args[] = {INT(values[i]), INT(values[j])};
      uint32_t wanted[3], got[3];
      TilertError said = {0};
      TilertLaunch *l;
      const int status = tilert_kernel_grid(k, args, 2, wanted, &said);
      memset(&err, 0, sizeof err);
      CHECK(tilert_launch_create(k, NULL, args, 2, &l, &err) == status && !strcmp(said.message, err.message));
      if (status)
        continue;
      const int before = fake->launch.count, programs = wanted[0] && wanted[1] && wanted[2];
      CHECK_OK(tilert_launch_grid(l, got, &err));
      CHECK_OK(tilert_launch_packed(l, NULL, &err));
      CHECK(!memcmp(got, wanted, sizeof got) && fake->launch.count == before + programs);
      tilert_launch_destroy(l);
    }
  const TilertArg real[] = {FLOAT(1), FLOAT(2)};
  uint32_t wanted[3];
  TilertError said = {0};
  memset(&err, 0, sizeof err);
  const int status = tilert_kernel_grid(k, real, 2, wanted, &said);
  TilertLaunch *l = NULL;
  const int got = tilert_launch_create(k, NULL, real, 2, &l, &err);
  CHECK(got && (!status || !strcmp(said.message, err.message)));
  tilert_module_destroy(mod);
}

/* ---- forms of kernels that were compiled ahead ---- */

static const TilertAotFact facts_0[] = {{TILERT_AOT_EQUAL, 3, 0, 1}, {TILERT_AOT_DIVISIBLE, 0, 0, 16}}, facts_1[] = {{TILERT_AOT_SAME, 0, 0, 1}},
  facts_2[] = {{TILERT_AOT_NULL, 2, 0, 1}, {TILERT_AOT_DIVISIBLE, 3, 0, 8}}, facts_3[] = {{TILERT_AOT_DIVISIBLE, 3, 0, 12}, {TILERT_AOT_NULL, 2, 0, 0}},
  facts_4[] = {{TILERT_AOT_EQUAL, 3, 0, -5}}, facts_5[] = {{TILERT_AOT_DIVISIBLE, 3, 0, 4}};

/* Which form takes these, as aot.h says it; MOST_FORMS: none. */
static unsigned
form_of(const TilertArg *a)
{
  const uint64_t x = a[0].u.pointer, y = a[1].u.pointer, z = a[2].u.pointer;
  const int64_t n = a[3].u.i;
  return n == 1 && x % 16 == 0 ? 0 : x == y ? 1 : !z && n % 8 == 0 ? 2 : n % 12 == 0 && z ? 3 : n == -5 ? 4 : n % 4 == 0 ? 5 : MOST_FORMS;
}

static void
check_form(const TilertAotKernel *k, TilertStream *s, const TilertArg *args)
{
  const unsigned wanted = form_of(args);
  const int before = fake->launch.count;
  if (wanted == MOST_FORMS) {
    CHECK_FAILS(tilert_aot_launch(k, s, NULL, args, &err), TILERT_E_ARGUMENT, "f, argument 3 (n): it is ");
    return;
  }
  if (!args[1].u.pointer) {                                        /* which all forms need */
    CHECK_FAILS(tilert_aot_launch(k, s, NULL, args, &err), TILERT_E_ARGUMENT, "kernel f, argument 1 (y): it is null, and the kernel needs it");
    return;
  }
  CHECK_OK(tilert_aot_launch(k, s, NULL, args, &err));
  CHECK(fake->launch.count == before + 1 && fake->launch.shared == 16 * wanted && fake->launch.grid[0] == 7);
}

static void
test_forms(void)
{
  static const struct { const TilertAotFact *facts; uint32_t n; } facts[MOST_FORMS] = {{facts_0, 2}, {facts_1, 1}, {facts_2, 2}, {facts_3, 2}, {facts_4, 1}, {facts_5, 1}};
  static const uint64_t addresses[] = {0, 16, 24, 32};
  static const int64_t numbers[] = {1, 0, -5, 8, 12, 24, 4, 3, -8, INT32_MIN};
  static const char *const names[] = {"x", "y", "z", "n"};
  char texts[MOST_FORMS][256];
  TilertAotForm forms[MOST_FORMS];
  void *state = NULL;
  TilertStream *s;
  for (uint32_t i = 0; i < MOST_FORMS; i++) {
    char *text = texts[i] + 2;                                     /* behind the number of what is no repetition, in two bytes */
    snprintf(text, sizeof texts[i] - 2, "//@tilec kernel=f warps=1 shared=%u grid=7 target=sm_80 params=x:ptr:f32,y:ptr:f32,z:ptr:f32,n:scalar:i32 "
             "needs=1\n", 16 * i);
    const uint32_t n = (uint32_t)strlen(text);
    texts[i][0] = (char)(n | 128), texts[i][1] = (char)(n >> 7);
    forms[i] = (TilertAotForm){"sm_80", "", {(const unsigned char *)texts[i], n + 3, n}, {NULL, 0, 0}, facts[i].facts, facts[i].n, 0};
  }
  const TilertAotKernel k = {TILERT_AOT_VERSION, 4, MOST_FORMS, 0, "f", names, 0, forms, &state};
  CHECK_OK(tilert_stream_create(dev, &s, &err));
  for (int again = 0; again < 2; again++)                          /* once they are loaded by and by, and once they are there */
    for (size_t i = 0; i < 4 * 4 * 4 * sizeof numbers / sizeof *numbers; i++) {
      const TilertArg args[] = {POINTER(addresses[i & 3]), POINTER(addresses[i >> 2 & 3]), POINTER(addresses[i >> 4 & 3]), INT(numbers[i >> 6])};
      check_form(&k, s, args);
    }
  tilert_aot_unload(&k);
  tilert_stream_destroy(s);
}

/* ---- launches without packing ---- */

/* A form of one kernel, whose text is code. */
typedef struct Ahead { TilertAotKernel k; TilertAotForm form; void *state; char text[2048]; } Ahead;

static void
ahead_init(Ahead *a, uint32_t nargs, const char *const *names, const char *text)
{
  const uint32_t n = (uint32_t)strlen(text);
  *a = (Ahead){.k = {TILERT_AOT_VERSION, nargs, 1, 0, "some", names, 0, &a->form, &a->state},
               .form = {"sm_80", "", {(const unsigned char *)a->text, n + 3, n}, {NULL, 0, 0}, NULL, 0, 0}};
  a->text[0] = (char)(n | 128), a->text[1] = (char)(n >> 7);
  strcpy(a->text + 2, text);
}

/* What a launch gives, and what the driver gets of it. */
typedef struct Outcome { int status, launches; TilertError err; FakeLaunch launch; unsigned char value[sizeof fake->value]; } Outcome;

static Outcome
outcome(int (*launch)(void *user), void *user)
{
  Outcome o = {0};
  const int before = fake->launch.count;
  memset(&err, 0, sizeof err);
  o.status = launch(user);
  o.err = err;
  o.launches = fake->launch.count - before;
  o.launch = fake->launch;
  memcpy(o.value, fake->value, sizeof o.value);
  return o;
}

typedef struct Call { Ahead *a; TilertKernel *k; TilertStream *s; const uint32_t *grid; const TilertArg *args; } Call;

static int
packed(void *user)
{
  const Call *c = user;
  TilertLaunch *l;
  int status = tilert_launch_create(c->k, c->grid, c->args, c->a->k.nargs, &l, &err);
  status = status ? status : tilert_launch_packed(l, c->s, &err);
  tilert_launch_destroy(l);
  return status;
}

static int
at_once(void *user)
{
  const Call *c = user;
  return tilert_launch(c->s, c->k, c->grid, c->args, c->a->k.nargs, &err);
}

static int
ahead(void *user)
{
  const Call *c = user;
  return tilert_aot_launch(&c->a->k, c->s, c->grid, c->args, &err);
}

/* Launches that may go without packing, beside one that is packed. */
static void
compare_direct(Ahead *a, TilertKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args)
{
  Call c = {a, k, s, grid, args};
  const Outcome wanted = outcome(packed, &c);
  for (int i = 0; i < 2; i++) {
    const Outcome got = outcome(i ? at_once : ahead, &c);
    CHECK(got.status == wanted.status && got.launches == wanted.launches && !strcmp(got.err.message, wanted.err.message));
    if (wanted.launches)
      CHECK(!memcmp(wanted.value, got.value, sizeof got.value) && !memcmp(wanted.launch.grid, got.launch.grid, sizeof got.launch.grid) &&
            !memcmp(wanted.launch.block, got.launch.block, sizeof got.launch.block) && wanted.launch.shared == got.launch.shared &&
            wanted.launch.stream == got.launch.stream);
  }
}

/* Parameters that steps know: all but 16- and 8-bit floats, and divisors that are no powers of two. */
static size_t
of_steps(const Param *out[PARAMS])
{
  size_t n = 0;
  for (size_t i = 0; i < PARAMS; i++)
    if (!strstr(params[i].text, "f16") && !strstr(params[i].text, "f8") && !strstr(params[i].text, ":12") && !strstr(params[i].text, ":3"))
      out[n++] = &params[i];
  return n;
}

static void
test_direct(void)
{
  static const uint32_t grids[][3] = {{1, 2, 3}, {0, 1, 1}, {1, 1u << 20, 1}};
  static const char *names[PARAMS];
  char text[2000] = "//@tilec kernel=some warps=2 shared=48 target=sm_80 params=";
  TilertArg values[MOST_VALUES], args[PARAMS];
  const Param *p[PARAMS];
  const size_t n = list_values(values), nargs = of_steps(p);
  TilertKernel *k;
  TilertStream *s;
  Ahead a;
  CHECK(nargs > 15);
  for (size_t i = 0; i < nargs; i++) {
    strcat(strcat(text, i ? "," : ""), p[i]->text);
    names[i] = "name";
    args[i] = p[i]->good;
  }
  TilertModule *m = load(strcat(text, " apart=0:1,0:4,1:3 needs=0,1\n"), &k);
  ahead_init(&a, (uint32_t)nargs, names, text);
  CHECK_OK(tilert_stream_create(dev, &s, &err));
  keep(p, nargs);
  for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
    for (size_t i = 0; i < nargs; i++)
      for (size_t v = 0; v < n; v++) {
        const TilertArg good = args[i];
        args[i] = values[v];
        compare_direct(&a, k, s, grids[g], args);
        args[i] = good;
      }
  const int before = fake->launch.count;
  for (int result = 0; result < 1000; result += 701) {             /* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: said once, by the kernel's name */
    fake->launch_result = result;
    memset(&err, 0, sizeof err);
    CHECK((tilert_aot_launch(&a.k, s, grids[0], args, &err) == TILERT_OK) == !result);
    CHECK(!result || strstr(err.message, "kernel some"));
  }
  CHECK(fake->launch.count > before);
  fake->launch_result = 0;
  tilert_aot_unload(&a.k);
  tilert_module_destroy(m);
  tilert_stream_destroy(s);
  fake->nsizes = 0;
}

/* Grids of arguments, likewise. */
static void
test_direct_grid(const char *grid)
{
  static const int64_t values[] = {0, 1, 64, 65, 65536, INT32_MAX, UINT32_MAX, INT64_C(1) << 32, -1, INT64_MIN, INT64_MAX};
  static const char *const names[] = {"n", "m"};
  static const Param param = {"", 8, INT(0)}, *const both[] = {&param, &param};
  char text[256];
  TilertKernel *k;
  TilertStream *s;
  Ahead a;
  snprintf(text, sizeof text, "//@tilec kernel=some warps=1 shared=0 grid=%s target=sm_80 params=n:scalar:i64,m:scalar:i64\n", grid);
  TilertModule *m = load(text, &k);
  ahead_init(&a, 2, names, text);
  CHECK_OK(tilert_stream_create(dev, &s, &err));
  keep(both, 2);
  for (int again = 0; again < 2; again++)
    for (size_t i = 0; i < 11 * 11; i++)
      compare_direct(&a, k, s, NULL, (const TilertArg[]){INT(values[i % 11]), INT(values[i / 11])});
  tilert_aot_unload(&a.k);
  tilert_module_destroy(m);
  tilert_stream_destroy(s);
  fake->nsizes = 0;
}

int
main(void)
{
  static const char *const grids[] = {"1", "0", "$0", "$1,64,cdiv", "$0,1,cdiv;$1", "$0,64,cdiv;3;sm", "$1;$0,65536,cdiv", "$0,63,cdiv", "$0,63,+,64,/", "5;$0,$1,cdiv", "$0,-3,cdiv", "$0,0,$1,-,cdiv",
                                      "70000;70000", "$0,0,cdiv", "$0,4611686018427387904,cdiv", "-1"};
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(lib);
  fake = ((FakeCuda *(*)(void))(uintptr_t)dlsym(lib, "fakecuda"))();
  fake->capability = 90;
  CHECK_OK(tilert_device_open("cuda", NULL, &dev, &err));
  CHECK_OK(tilert_device_open("cuda", NULL, &other, &err));
  CHECK_OK(tilert_buffer_create(dev, 4096, &buffer, &err));
  CHECK_OK(tilert_buffer_part(buffer, 4, 64, &odd, &err));
  CHECK_OK(tilert_buffer_create(other, 4096, &foreign, &err));
  CHECK_OK(tilert_buffer_create(dev, 0, &none, &err));
  test_arguments();
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
    test_grid(grids[i]);
  test_forms();
  test_direct();
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
    test_direct_grid(grids[i]);
  TilertBuffer *const buffers[] = {odd, buffer, foreign, none};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    tilert_buffer_destroy(buffers[i]);
  tilert_device_close(other);
  tilert_device_close(dev);
  return 0;
}
