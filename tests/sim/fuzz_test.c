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

/* A text's kernels and what they get; sizes: of their parameters, at most; blocks: more than one. */
typedef struct Subject { const char *file, *kernels[4]; uint32_t block, shared; const void *args[8]; int nparams, sizes[8]; uint32_t blocks; } Subject;

static void
try_text(Test *t, const char *text, size_t n, const Subject *x)
{
  uint32_t grid[3] = {1, 1 + x->blocks, 1}, block[3] = {x->block, 1, 1};
  SimModule *mod;
  SimError err;
  if (sim_load(t->machine, text, n, &mod, &err)) {
    CHECK(t, (err.kind == SIM_E_PARSE && err.ptx_line) || err.kind == SIM_E_MEMORY, "kind %d: %s", (int)err.kind, err.message);
    return;
  }
  for (size_t i = 0; i < 4 && x->kernels[i]; i++) {
    SimKernelInfo info;
    if (sim_kernel(mod, x->kernels[i], &info, &err) == 0 && info.nparams <= x->nparams) {
      bool small = true;
      for (int p = 0; p < info.nparams; p++)
        small &= info.param_size[p] <= (uint32_t)x->sizes[p];
      if (small)
        sim_launch(mod, x->kernels[i], grid, block, x->shared, x->args, NULL, &err);
    }
  }
  sim_unload(mod);
}

static void
cut(Test *t, const char *text, size_t n, const Subject *x)
{
  for (size_t at = 0; at < n; at += 1 + n / 120)
    try_text(t, text, at, x);
}

static void
damage(Test *t, const char *text, size_t n, const Subject *x, uint32_t seed)
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
    try_text(t, copy, n, x);
  }
  free(copy);
}

static void
subject(Test *t, const Subject *x)
{
  char *text = test_file(t, x->file);
  if (!text)
    return;
  cut(t, text, strlen(text), x);
  damage(t, text, strlen(text), x, 1);
  damage(t, text, strlen(text), x, 77);
  free(text);
}

void
test_fuzz(Test *t)
{
  SimOptions o;
  SimError err;
  static _Alignas(64) uint8_t map[SIM_TENSOR_MAP_BYTES], part[SIM_TENSOR_MAP_BYTES];
  static const uint64_t extent[] = {64, 128}, stride[] = {128};
  static const uint32_t box[] = {64, 64}, half[] = {64, 32}, step[] = {1, 1};
  int count = 40, k = 128;
  sim_options_default(&o);
  o.max_instructions = 20000;
  SimMachine *saved = test_machine(t, &o);
  uint32_t *a = test_alloc(t, 16384);
  memset(a, 0, 16384);
  SimTensor tensor = {.type = 6, .swizzle = 3, .rank = 2, .address = (uint64_t)(uintptr_t)a, .extent = extent, .stride = stride, .box = box, .step = step};
  CHECK(t, sim_tensor_map(&tensor, map, &err) == 0, "%s", err.message);
  subject(t, &(Subject){"kernels.ptx", {"vadd", "reduce", "cases", "hist"}, 64, 0, {&a, &a, &a, &count, &count, &count, &count, &count}, 4, {8, 8, 8, 4}});
  tensor.box = half;
  CHECK(t, sim_tensor_map(&tensor, part, &err) == 0, "%s", err.message);
  subject(t, &(Subject){"hopper.ptx", {"matmul_pair"}, 384, 73728, {map, part, map, &k}, 4, {128, 128, 128, 4}, 1});
  subject(t, &(Subject){"hopper.ptx", {"matmul_k", "matmul_n"}, 384, 73728, {map, map, map, &k}, 4, {128, 128, 128, 4}});
  test_free(t, a);
  test_machine_back(t, saved);
}
