#include "sim_find.h"
#include "device.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not there where libtilesim is not linked in: libtilec has it, and programs may. */
extern __typeof__(tilesim_calls) tilesim_calls __attribute__((weak));

/* The folder of the file that this code is in, with a slash; "" if it is not known. A program that has it inside may have been called by a
 * path from where it was then. */
static void
own_folder(char path[PATH_MAX])
{
  static const char in_it = 0;
  Dl_info at;
  const char *file = dladdr(&in_it, &at) && at.dli_fname && at.dli_fname[0] == '/' ? at.dli_fname : "/proc/self/exe";
  char *end = realpath(file, path) ? strrchr(path, '/') : NULL;
  path[end ? end + 1 - path : 0] = 0;
}

/* Of one version, or nothing that it says can be relied on. */
static int
fitting(const SimCalls *calls, const char *where, TilertError *err)
{
  int v = calls->version;
  if (v == TILEC_VERSION_NUMBER && calls->size == sizeof *calls)
    return TILERT_OK;
  return rt_error_set(err, TILERT_E_UNAVAILABLE,
                      "no simulator: %s is of version %d.%d.%d, and libtilert of %s; they have to be of one build",
                      where, v / 10000, v / 100 % 100, v % 100, tilert_version());
}

static int
open_library(const char *path, const char *folder, const SimCalls **out, TilertError *err)
{
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  __typeof__(tilesim_calls) *calls = NULL;
  if (lib)
    *(void **)(void *)&calls = dlsym(lib, "tilesim_calls");
  if (!calls) {
    const char *why = dlerror();
    rt_error_set(err, TILERT_E_UNAVAILABLE, "no simulator: %.300s (it belongs beside libtilert, in %.120s)", why ? why : path,
                 *folder ? folder : "its folder");
  }
  if (lib)
    dlclose(lib);                    /* it stays: nothing has to count who uses it */
  if (!calls)
    return TILERT_E_UNAVAILABLE;
  *out = calls();
  return fitting(*out, path, err);
}

int
sim_find(const SimCalls **out, TilertError *err)
{
  char folder[PATH_MAX], path[PATH_MAX + sizeof SIM_LIBRARY];
  if (tilesim_calls) {
    *out = tilesim_calls();
    return fitting(*out, "libtilesim in this program", err);
  }
  own_folder(folder);
  strcpy(stpcpy(path, folder), SIM_LIBRARY);
  return open_library(*folder && !access(path, F_OK) ? path : SIM_LIBRARY, folder, out, err);
}
