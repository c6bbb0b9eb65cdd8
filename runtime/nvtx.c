/* nvtx.c - ranges of the host's time for profilers that know NVTX.
 *
 * NVTX is no library: a profiler puts one of its own into NVTX_INJECTION64_PATH, whose InitializeInjectionNvtx2 is given a function that
 * hands out tables of the places of function pointers, by module; where it wants to be called it writes there. Each program, library, and
 * here each device, that would be heard does that for itself. Without the variable nothing is opened, and a range costs a test.
 * The tables stay when the device goes: the profiler may keep the places.
 */
#include "device.h"
#include <dlfcn.h>
#include <stdlib.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum { CORE = 1, MODULES = 7, SLOTS = 16, RANGE_PUSH = 9, RANGE_POP = 11, CALLBACKS = 1, VERSION_INFO = 3 };

typedef void (*Function)(void);
typedef struct Callbacks { size_t size; int (*table)(uint32_t module, Function ***out, unsigned *n); } Callbacks;
typedef struct VersionInfo { size_t size; uint32_t version, reserved; void (*set)(uint32_t version); } VersionInfo;

/* How many places each module has, the unused one at 0 among them: none, core, cuda, opencl, cudart, core2, sync. */
static const uint8_t nslots[MODULES] = {0, 16, 9, 15, 7, 16, 7};

struct Nvtx {
  Function function[MODULES][SLOTS];
  Function *place[MODULES][SLOTS];
};

/* Whose tables are asked for: the profiler's calls have no room for it, and come back in the same thread. */
static struct Nvtx **
opening(void)
{
  static _Thread_local struct Nvtx *of;
  return &of;
}

static int
give_table(uint32_t module, Function ***out, unsigned *n)
{
  if (!*opening() || module == 0 || module >= MODULES)
    return 0;
  if (n)
    *n = nslots[module];
  if (out)
    *out = (*opening())->place[module];
  return 1;
}

static void
set_version(uint32_t version)
{
  (void)version;
}

static const void *
export_table(uint32_t id)
{
  static const Callbacks callbacks = {sizeof callbacks, give_table};
  static const VersionInfo version = {sizeof version, 3, 0, set_version};
  return id == CALLBACKS ? (const void *)&callbacks : id == VERSION_INFO ? (const void *)&version : NULL;
}

/* The profiler stays: it has threads of its own. */
static int
inject(struct Nvtx *x, const char *path)
{
  void *lib = dlopen(path, RTLD_LAZY | RTLD_NODELETE);
  int (*init)(const void *(*)(uint32_t)) = NULL;
  if (lib)
    *(void **)(void *)&init = dlsym(lib, "InitializeInjectionNvtx2");
  *opening() = x;
  int ready = init && init(export_table);
  *opening() = NULL;
  if (lib)
    dlclose(lib);
  return ready;
}

/* It is never freed, and that is no mistake. */
static struct Nvtx *
keep(struct Nvtx *x)
{
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(x);
#endif
  return x;
}

struct Nvtx *
nvtx_open(void)
{
  const char *path = getenv("NVTX_INJECTION64_PATH");
  struct Nvtx *x = path && *path ? calloc(1, sizeof *x) : NULL;
  for (int i = 0; x && i < MODULES; i++)
    for (int j = 0; j < SLOTS; j++)
      x->place[i][j] = &x->function[i][j];
  if (x && inject(x, path))
    return keep(x);
  free(x);
  return NULL;
}

void
tilert_range_push(TilertDevice *dev, const char *name)
{
  if (!dev || !dev->nvtx || !name)
    return;
  int (*push)(const char *) = (int (*)(const char *))dev->nvtx->function[CORE][RANGE_PUSH];
  if (push)
    push(name);
}

void
tilert_range_pop(TilertDevice *dev)
{
  if (!dev || !dev->nvtx)
    return;
  int (*pop)(void) = (int (*)(void))dev->nvtx->function[CORE][RANGE_POP];
  if (pop)
    pop();
}
