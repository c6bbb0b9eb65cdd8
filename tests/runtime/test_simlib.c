/* How libtilert finds the simulator: each way in a process of its own, with copies of the libraries in a scratch folder. This program has
 * libtilert inside, too: ways called inside_* look from there. */
#include "check.h"
#include "tilert.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static TilertError err;

typedef struct Runtime {
  int (*open)(const char *spec, const TilertOptions *o, TilertDevice **out, TilertError *err);
  void (*close)(TilertDevice *d);
} Runtime;

typedef struct Way {
  const char *name;
  const char *simulator, *folder;      /* the library that is put into this folder, if one is; NULL: none */
  int status;
  const char *text;
  int inside, linked, usual;           /* linked: libtilert by a link from elsewhere; usual: that folder is where the loader looks */
} Way;

static const Way ways[] = {
  {"none", NULL, NULL, TILERT_E_UNAVAILABLE, "no simulator: " SIM_LIBRARY ": cannot open shared object file"},
  {"beside", TILESIM, "lib", TILERT_OK, NULL},
  {"linked", TILESIM, "lib", TILERT_OK, NULL, .linked = 1},
  {"usual", TILESIM, "other", TILERT_OK, NULL, .usual = 1},
  {"elsewhere", TILESIM, "other", TILERT_E_UNAVAILABLE, "/lib/)"},
  {"newer", FAKESIM_NEWER, "lib", TILERT_E_UNAVAILABLE, "is of version 9."},
  {"longer", FAKESIM_LONGER, "lib", TILERT_E_UNAVAILABLE,
   "is of version " TILEC_VERSION ", and libtilert of " TILEC_VERSION "; they have to be of one build"},
  {"no_calls", FAKENVTX, "lib", TILERT_E_UNAVAILABLE, "undefined symbol: tilesim_calls"},
  {"inside_none", NULL, NULL, TILERT_E_UNAVAILABLE, "no simulator: " SIM_LIBRARY, .inside = 1},
  {"inside_beside", TILESIM, "lib", TILERT_OK, NULL, .inside = 1},
  {"inside_usual", TILESIM, "other", TILERT_OK, NULL, .inside = 1, .usual = 1},
};

static void
copy_file(const char *from, const char *to)
{
  char bytes[1 << 16];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  CHECK(in && out);
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
    CHECK(fwrite(bytes, 1, n, out) == n);
  CHECK(!fclose(in) && !fclose(out) && !chmod(to, 0755));
}

static Runtime
runtime_of(const Way *w)
{
  Runtime r = {tilert_device_open, tilert_device_close};
  if (w->inside)
    return r;
  char path[PATH_MAX];
  CHECK(getcwd(path, sizeof path - 64));
  strcat(path, w->linked ? "/there/" TILERT_NAME : "/lib/" TILERT_NAME);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(lib);
  *(void **)(void *)&r.open = dlsym(lib, "tilert_device_open");
  *(void **)(void *)&r.close = dlsym(lib, "tilert_device_close");
  CHECK(r.open && r.close && r.open != tilert_device_open);
  return r;
}

static void *
open_and_close(void *runtime)
{
  const Runtime *r = runtime;
  TilertDevice *d;
  TilertError e;
  int failed = r->open("sim", NULL, &d, &e);
  r->close(d);
  return failed ? runtime : NULL;
}

/* Several at once, the first among them. */
static void
open_in_threads(Runtime *r)
{
  pthread_t t[4];
  void *failed;
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, open_and_close, r));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], &failed) && !failed);
}

/* From another folder than the one that this program's path is relative to. */
static int
look(const Way *w)
{
  TilertDevice *d;
  Runtime r = runtime_of(w);
  CHECK(!chdir("/"));
  if (w->status == TILERT_OK) {
    open_in_threads(&r);
    return 0;
  }
  CHECK_FAILS(r.open("sim:4", NULL, &d, &err), w->status, w->text);
  CHECK(!d);
  int status = r.open("auto", NULL, &d, &err);
  CHECK(status == TILERT_OK || (status == w->status && !strncmp(err.message, "no CUDA driver", 14) && strstr(err.message, w->text)));
  r.close(d);
  return 0;
}

/* lib: libtilert and this program; there: a link to the former. */
static void
prepare(const Way *w)
{
  char path[64];
  CHECK(!mkdir("lib", 0755) && !mkdir("there", 0755) && !mkdir("other", 0755));
  copy_file(TILERT, "lib/" TILERT_NAME);
  copy_file("/proc/self/exe", "lib/test");
  CHECK(!symlink("../lib/" TILERT_NAME, "there/" TILERT_NAME));
  snprintf(path, sizeof path, "%s/" SIM_LIBRARY, w->folder ? w->folder : "");
  if (w->simulator)
    copy_file(w->simulator, path);
}

static void
go(const Way *w)
{
  char folder[] = "/tmp/simlib.XXXXXX", other[64], command[64];
  int status;
  CHECK(mkdtemp(folder) && !chdir(folder));
  prepare(w);
  snprintf(other, sizeof other, "%s/other", folder);
  CHECK(w->usual ? !setenv("LD_LIBRARY_PATH", other, 1) : !unsetenv("LD_LIBRARY_PATH"));
  pid_t child = fork();
  if (!child) {
    execl("lib/test", "lib/test", w->name, NULL);
    _exit(127);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(!chdir("/") && !system(command));
  if (status)
    fprintf(stderr, "%s: status %d\n", w->name, status);
  CHECK(!status);
}

int
main(int argc, char **argv)
{
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (argc < 2)
      go(&ways[i]);
    else if (!strcmp(argv[1], ways[i].name))
      return look(&ways[i]);
  return argc > 1;
}
