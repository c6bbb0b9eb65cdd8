/* sim_test.c - the simulator's tests: kernels of a real compiler, single instructions, warps, faults, noise.
 * usage: sim_test [FOLDER of the .ptx files] */
#include "sim_test.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool
test_check(Test *t, bool ok, const char *file, int line, const char *fmt, ...)
{
  va_list ap;
  t->checks++;
  if (ok)
    return true;
  t->failures++;
  printf("%s:%d: ", file, line);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  return false;
}

void *
test_alloc(Test *t, size_t bytes)
{
  SimError err;
  void *p = NULL;
  if (sim_alloc(t->machine, bytes, &p, &err)) {
    printf("%s\n", err.message);
    exit(2);
  }
  return p;
}

void
test_free(Test *t, void *p)
{
  SimError err;
  CHECK(t, sim_free(t->machine, p, &err) == 0, "free failed");
}

SimMachine *
test_machine(Test *t, const SimOptions *o)
{
  SimError err;
  SimMachine *before = t->machine;
  if (sim_create(o, &t->machine, &err)) {
    printf("%s\n", err.message);
    exit(2);
  }
  return before;
}

void
test_machine_back(Test *t, SimMachine *before)
{
  sim_destroy(t->machine);
  t->machine = before;
}

char *
test_file(Test *t, const char *name)
{
  char path[512];
  snprintf(path, sizeof path, "%s/%s", t->folder, name);
  FILE *f = fopen(path, "rb");
  if (!CHECK(t, f != NULL, "no file %s", path))
    return NULL;
  char *text = malloc(1 << 20);
  size_t n = text ? fread(text, 1, (1 << 20) - 1, f) : 0;
  fclose(f);
  if (text)
    text[n] = 0;
  return text;
}

int
test_run(Test *t, Run *r)
{
  SimModule *mod = NULL;
  if (sim_load(t->machine, r->ptx, strlen(r->ptx), &mod, &r->err))
    return -1;
  for (int i = 0; i < 3; i++) {
    r->grid[i] += !r->grid[i];
    r->block[i] += !r->block[i];
  }
  SimLaunch x = {.kernel = r->kernel, .dynamic_shared = r->shared, .params = r->arg, .large_clusters = r->large_clusters};
  memcpy(x.grid, r->grid, sizeof x.grid);
  memcpy(x.block, r->block, sizeof x.block);
  memcpy(x.cluster, r->cluster, sizeof x.cluster);
  int rc = sim_run(mod, &x, &r->stats, &r->err);
  sim_unload(mod);
  return rc;
}

int
main(int argc, char **argv)
{
  static const struct { const char *name; void (*fn)(Test *); } groups[] = {
    {"kernels", test_kernels}, {"ops", test_ops}, {"warp", test_warp}, {"faults", test_faults}, {"global", test_global}, {"calls", test_calls}, {"turns", test_turns},
    {"report", test_report}, {"decode", test_decode}, {"foreign", test_foreign}, {"mbarrier", test_mbarrier}, {"bulk", test_bulk}, {"wgmma", test_wgmma}, {"hopper", test_hopper}, {"cluster", test_cluster}, {"fuzz", test_fuzz},
  };
  Test t = {.folder = argc > 1 ? argv[1] : "tests/sim"};
  SimError err;
  if (sim_create(NULL, &t.machine, &err))
    return 2;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    int before = t.checks, failed = t.failures;
    groups[i].fn(&t);
    printf("%-8s %d checks, %d failed\n", groups[i].name, t.checks - before, t.failures - failed);
  }
  sim_destroy(t.machine);
  return t.failures != 0;
}
