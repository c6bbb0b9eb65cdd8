/* cubin.c - see cubin.h. Runs ptxas in a child process on temporary files; no shell is involved. */
#include "cubin.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../runtime/spills.h"
#include "textfile.h"

extern char **environ;

enum { PTXAS_LEVEL = 3 };               /* its own, if nothing is said */

typedef struct Work { char dir[64], ptx[80], cubin[80], log[80]; } Work;

static bool
work_make(Work *w)
{
  snprintf(w->dir, sizeof w->dir, "/tmp/tilec-XXXXXX");
  if (!mkdtemp(w->dir)) return false;
  snprintf(w->ptx, sizeof w->ptx, "%s/k.ptx", w->dir);
  snprintf(w->cubin, sizeof w->cubin, "%s/k.cubin", w->dir);
  snprintf(w->log, sizeof w->log, "%s/log", w->dir);
  return true;
}

static void
work_remove(const Work *w)
{
  unlink(w->ptx);
  unlink(w->cubin);
  unlink(w->log);
  rmdir(w->dir);
}

static bool
write_file(const char *path, const char *text, size_t len)
{
  FILE *f = fopen(path, "wb");
  bool ok = f && fwrite(text, 1, len, f) == len;
  return f && fclose(f) == 0 && ok;
}

/* Exit status of ptxas, or an errno value negated when it could not be started. *log: in place of an earlier one, what it said, or NULL. */
static int
run_ptxas(const Work *w, const char *target, int level, char **log)
{
  const char *ptxas = getenv("TILEC_PTXAS");
  char arch[64], optimise[16];
  char *argv[] = {(char *)(ptxas ? ptxas : "ptxas"), arch, "-v", optimise, (char *)w->ptx, "-o", (char *)w->cubin, NULL};
  posix_spawn_file_actions_t fa;
  pid_t pid;
  size_t n;
  int rc, status = 0;
  snprintf(arch, sizeof arch, "-arch=%s", target);
  snprintf(optimise, sizeof optimise, "-O%d", level);
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, w->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO);
  rc = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&fa);
  if (rc) return -rc;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  free(*log);
  *log = textfile_read(w->log, TEXTFILE_MOST, &n);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The most local memory that a kernel takes, as ptxas -v says, in bytes. */
static uint64_t
stack_frame(const char *log)
{
  uint64_t most = 0;
  for (const char *at = log; (at = strstr(at, " bytes stack frame")); at++) {
    const char *digit = at;
    while (digit > log && digit[-1] >= '0' && digit[-1] <= '9')
      digit--;
    uint64_t n = strtoull(digit, NULL, 10);
    most = n > most ? n : most;
  }
  return most;
}

char *
cubin_assemble(const char *ptx, size_t len, const char *target, size_t *out_len, char *message, size_t message_size)
{
  Work w;
  char *cubin = NULL, *log = NULL;
  int rc;
  if (!work_make(&w) || !write_file(w.ptx, ptx, len)) {
    snprintf(message, message_size, "cannot write a temporary file: %s", strerror(errno));
    return NULL;
  }
  rc = run_ptxas(&w, target, PTXAS_LEVEL, &log);
  if (!rc && log && spills_distrusted(stack_frame(log), ptx))
    rc = run_ptxas(&w, target, SPILLS_LEVEL, &log);
  if (rc < 0) {
    snprintf(message, message_size, "--emit=cubin needs ptxas from the CUDA toolkit on the PATH: %s", strerror(-rc));
  } else if (rc || !(cubin = textfile_read(w.cubin, SIZE_MAX, out_len))) {
    snprintf(message, message_size, "ptxas failed: %s", log ? log : "(no output)");
  }
  free(log);
  work_remove(&w);
  return cubin;
}
