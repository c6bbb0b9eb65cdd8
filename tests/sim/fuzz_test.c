/* fuzz_test.c - damaged PTX must be refused or loaded, and never crash: every text cut short, and with words
 * and characters replaced. What still loads is run with a small budget. */
#include "sim_test.h"
#include <stdlib.h>
#include <string.h>

static uint32_t
next(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void
try_text(Test *t, const char *text, size_t n, uint32_t *a)
{
  static const char *const kernels[] = {"vadd", "reduce", "cases", "hist"};
  uint32_t grid[3] = {1, 1, 1}, block[3] = {64, 1, 1};
  int count = 40;
  SimModule *mod;
  SimError err;
  if (sim_load(t->machine, text, n, &mod, &err)) {
    CHECK(t, (err.kind == SIM_E_PARSE && err.ptx_line) || err.kind == SIM_E_MEMORY, "kind %d: %s", (int)err.kind, err.message);
    return;
  }
  const void *args[8] = {&a, &a, &a, &count, &count, &count, &count, &count};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    SimKernelInfo info;
    if (sim_kernel(mod, kernels[i], &info, &err) == 0 && info.nparams <= 4) {
      bool small = true;
      for (int p = 0; p < info.nparams; p++)
        small &= info.param_size[p] <= (p < 3 ? 8 : 4);
      if (small)
        sim_launch(mod, kernels[i], grid, block, 0, args, NULL, &err);
    }
  }
  sim_unload(mod);
}

static void
cut(Test *t, const char *text, size_t n, uint32_t *a)
{
  for (size_t at = 0; at < n; at += 1 + n / 120)
    try_text(t, text, at, a);
}

static void
damage(Test *t, const char *text, size_t n, uint32_t *a, uint32_t seed)
{
  static const char noise[] = "{}[]();,.:%@!|<>0123456789abrupsx_- \n\"/*$";
  char *copy = malloc(n + 1);
  if (!copy)
    return;
  for (int round = 0; round < 300; round++) {
    memcpy(copy, text, n + 1);
    for (uint32_t edits = 1 + next(&seed) % 3; edits > 0; edits--) {
      size_t at = next(&seed) % n, from = next(&seed) % n, len = next(&seed) % 12;
      if (next(&seed) % 2)
        copy[at] = noise[next(&seed) % (sizeof noise - 1)];
      else if (at + len < n && from + len < n)
        memcpy(copy + at, text + from, len);
    }
    try_text(t, copy, n, a);
  }
  free(copy);
}

void
test_fuzz(Test *t)
{
  SimOptions o;
  SimError err;
  SimMachine *saved = t->machine;
  char *text = test_file(t, "kernels.ptx");
  sim_options_default(&o);
  o.max_instructions = 20000;
  if (!text || !CHECK(t, sim_create(&o, &t->machine, &err) == 0, "%s", err.message))
    return;
  uint32_t *a = test_alloc(t, 4096);
  memset(a, 0, 4096);
  cut(t, text, strlen(text), a);
  damage(t, text, strlen(text), a, 1);
  damage(t, text, strlen(text), a, 77);
  sim_destroy(t->machine);
  t->machine = saved;
  free(text);
}
