/* Ranges, with a profiler that listens (fakenvtx.c), with one that is not there, and with none. */
#include <dlfcn.h>
#include "check.h"
#include "tilert.h"

static TilertError err;

static void
ranges(void)
{
  TilertDevice *d;
  CHECK_OK(tilert_device_open("sim", NULL, &d, &err));
  tilert_range_push(d, "outer");
  tilert_range_push(d, "inner");
  tilert_range_pop(d);
  tilert_range_push(d, NULL);
  tilert_range_pop(d);
  tilert_range_push(NULL, "none");
  tilert_range_pop(NULL);
  tilert_device_close(d);
}

int
main(void)
{
  unsetenv("NVTX_INJECTION64_PATH");
  ranges();
  setenv("NVTX_INJECTION64_PATH", "/nowhere/libnothing.so", 1);
  ranges();
  setenv("NVTX_INJECTION64_PATH", FAKENVTX, 1);
  void *lib = dlopen(FAKENVTX, RTLD_NOW);
  CHECK(lib);
  char *heard = ((char *(*)(void))(uintptr_t)dlsym(lib, "fakenvtx"))();
  CHECK(!heard[0]);
  ranges();
  CHECK(!strcmp(heard, "open outer( inner( ) ) "));
  ranges();
  CHECK(!strcmp(heard, "open outer( inner( ) ) open outer( inner( ) ) "));
  return 0;
}
