/* hopper_test.c - whole kernels for sm_90a, compiled from hopper.cu by NVIDIA's compiler, against the host: with copies that land late
 * and early, and with their instructions left out one by one, each of which must be a fault. */
#include "sim_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 256, N = 128, MOST_K = 448, SHARED = 9 * 8192 };

static uint16_t
f16_of(int v)
{
  static const uint16_t codes[] = {0, 0x3c00, 0x4000, 0x4200};
  return (uint16_t)(codes[abs(v)] | (v < 0 ? 0x8000 : 0));
}

static float
of_f16(uint16_t h)
{
  return (h >> 10 & 31 ? ldexpf((float)(1024 + (h & 1023)), (h >> 10 & 31) - 25) : 0) * (h >> 15 ? -1.0f : 1.0f);
}

/* A map of f16 rows with boxes of 64 by `rows`, swizzled by 128 bytes or not. */
static void
encode(Test *t, void *map, void *at, uint64_t columns, uint64_t lines, uint32_t rows, int swizzle)
{
  SimError err;
  uint64_t extent[] = {columns, lines}, stride[] = {2 * columns};
  uint32_t box[] = {64, rows}, step[] = {1, 1};
  SimTensor x = {.type = 6, .swizzle = swizzle, .rank = 2, .address = (uint64_t)(uintptr_t)at, .extent = extent, .stride = stride, .box = box, .step = step};
  CHECK(t, sim_tensor_map(&x, map, &err) == 0, "%s", err.message);
}

/* B by columns, by rows, and by columns for the two blocks of a cluster. */
typedef enum Form { BY_K, BY_N, PAIR, FORMS } Form;
static const char *const names[] = {"matmul_k", "matmul_n", "matmul_pair"};

typedef struct Operands { int8_t va[M * MOST_K], vb[MOST_K * N]; uint16_t *a, *b, *c; _Alignas(64) uint8_t map[3][128]; } Operands;

static void
operands_new(Test *t, Operands *x, Form form, int k)
{
  uint32_t seed = (uint32_t)k;
  x->a = test_alloc(t, 2ull * M * (size_t)k), x->b = test_alloc(t, 2ull * N * (size_t)k), x->c = test_alloc(t, 2 * M * N);
  for (int i = 0; i < M * k; i++, seed = seed * 1664525u + 1013904223u)
    x->a[i] = f16_of(x->va[i] = (int8_t)((int)(seed >> 16) % 7 - 3));
  for (int i = 0; i < N * k; i++, seed = seed * 1664525u + 1013904223u)
    x->b[i] = f16_of(x->vb[i] = (int8_t)((int)(seed >> 16) % 7 - 3));
  encode(t, x->map[0], x->a, (uint64_t)k, M, 64, 3);
  encode(t, x->map[1], x->b, form == BY_N ? N : (uint64_t)k, form == BY_N ? (uint64_t)k : N, form == PAIR ? 32 : 64, 3);
  encode(t, x->map[2], x->c, N, M, 64, 0);
}

static void
operands_free(Test *t, Operands *x)
{
  test_free(t, x->a), test_free(t, x->b), test_free(t, x->c);
}

static int
run(Test *t, const char *ptx, Operands *x, Form form, int k, SimError *err)
{
  Run r = {ptx, names[form], {N / 64, M / 128}, {384}, SHARED, {x->map[0], x->map[1], x->map[2], &k}, {0}, {0}};
  int rc = test_run(t, &r);
  *err = r.err;
  return rc;
}

static uint32_t
wrong_sums(const Operands *x, Form form, int k)
{
  uint32_t wrong = 0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      int sum = 0;
      for (int l = 0; l < k; l++)
        sum += x->va[i * k + l] * x->vb[form == BY_N ? l * N + j : j * k + l];
      wrong += of_f16(x->c[i * N + j]) != (float)sum;
    }
  return wrong;
}

static void
matmul(Test *t, const char *ptx, Form form, int k)
{
  SimError err;
  Operands *x = calloc(1, sizeof *x);
  operands_new(t, x, form, k);
  if (CHECK(t, run(t, ptx, x, form, k, &err) == 0, "%s of k %d: %s%s", names[form], k, err.message, err.trace))
    CHECK(t, wrong_sums(x, form, k) == 0, "%s of k %d: %u of %d are wrong", names[form], k, wrong_sums(x, form, k), M * N);
  operands_free(t, x);
  free(x);
}

/* What goes wrong if an instruction is something else: the first one, or all of them. */
typedef struct Change { const char *from, *to; bool all; SimErrorKind kind; const char *text; } Change;

static const Change changes[] = {
  {"wgmma.wait_group.sync.aligned 1", "wgmma.wait_group.sync.aligned 2", true, SIM_E_ASYNC, "reads, and it has not waited for that"},
  {"wgmma.wait_group.sync.aligned 0", "wgmma.wait_group.sync.aligned 1", true, SIM_E_ASYNC, "reads an accumulator of a product that has not been waited for"},
  {"wgmma.commit_group.sync.aligned;", ";", true, SIM_E_ASYNC, "reads, and it has not waited for that"},
  {"wgmma.fence.sync.aligned;", ";", true, SIM_E_ASYNC, "no wgmma.fence"},
  {"fence.proxy.async.shared::cta;", ";", true, SIM_E_ASYNC, "no fence.proxy.async between"},
  {"fence.mbarrier_init.release.cluster;", ";", true, SIM_E_BARRIER, "there is no fence.mbarrier_init behind that"},
  {"mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier.arrive.shared::cta.b64", true, SIM_E_BARRIER, "24576 times where 1 of 1 arrivals are missing"},
  {"{\n.reg .pred p;\nmbarrier.try_wait.parity", "{\n.reg .pred p;\nsetp.eq.u32 p, 0, 0;\n//", true, SIM_E_UNINIT, "no thread of the block has written"},
  {"bar.sync %r", "bar.arrive %r", true, SIM_E_UNINIT, "no thread of the block has written"},
  {"cp.async.bulk.tensor.2d.shared::cluster", "//", false, SIM_E_DEADLOCK, "bytes are missing"},
};

/* Of the clusters. */
static const Change pair_changes[] = {
  {"fence.mbarrier_init.release.cluster;", ";", true, SIM_E_BARRIER, "no fence.mbarrier_init"},
  {"mbarrier.arrive.shared::cluster.b64", "//", true, SIM_E_DEADLOCK, "deadlock: no warp of the cluster can go on: warp "},
  {"mbarrier.arrive.expect_tx.shared::cta.b64", "//", true, SIM_E_DEADLOCK, "bytes are missing"},
  {"barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;", ";", true, SIM_E_BARRIER, "there is no barrier of the cluster, or no fence.mbarrier_init before a relaxed one, between (an mbarrier of program (0,1,0))"},
  {"barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;", ";", true, SIM_E_BARRIER, "which may have ended by then"},
};

static char *
changed(const char *ptx, const Change *c)
{
  bool done = false;
  size_t n = strlen(ptx), from = strlen(c->from), to = strlen(c->to);
  char *out = malloc(2 * n), *w = out;
  for (const char *p = ptx; *p;) {
    if (done || strncmp(p, c->from, from) != 0) {
      *w++ = *p++;
      continue;
    }
    memcpy(w, c->to, to);
    w += to, p += from;
    done = !c->all;
  }
  *w = 0;
  return out;
}

static void
planted(Test *t, const char *ptx, Form form, const Change *c, size_t n)
{
  SimError err;
  Operands *x = calloc(1, sizeof *x);
  operands_new(t, x, form, 448);
  for (size_t i = 0; i < n; i++) {
    char *other = changed(ptx, &c[i]);
    CHECK(t, run(t, other, x, form, 448, &err) == -1 && err.kind == c[i].kind && strstr(err.message, c[i].text), "%s: kind %d: %s", c[i].from,
          (int)err.kind, err.message);
    free(other);
  }
  operands_free(t, x);
  free(x);
}

void
test_hopper(Test *t)
{
  char *ptx = test_file(t, "hopper.ptx");
  SimOptions o;
  sim_options_default(&o);
  for (o.early_copies = 0; ptx && o.early_copies < 2; o.early_copies++) {
    SimMachine *saved = test_machine(t, &o);
    for (int k = 64; k <= MOST_K; k += k < 256 ? 64 : 192)
      for (Form form = BY_K; form < FORMS; form++)
        matmul(t, ptx, form, k);
    if (!o.early_copies) {
      planted(t, ptx, BY_K, changes, sizeof changes / sizeof *changes);
      planted(t, ptx, PAIR, pair_changes, sizeof pair_changes / sizeof *pair_changes);
    }
    test_machine_back(t, saved);
  }
  free(ptx);
}
