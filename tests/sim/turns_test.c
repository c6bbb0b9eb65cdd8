/* turns_test.c - programs that wait for each other, programs that never end, and stopping them. */
#include "sim_test.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT "\n.loc 1 7 3\n"
#define BLOCK "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %nctaid.x; setp.eq.u32 %p7, %r10, 0; setp.eq.u32 %p8, %r0, 0;\n"
/* Thread 0 of every program meets those of the others, %r9 times the number of programs having come. */
#define MEET "bar.sync 0; @!%p8 bra MET; atom.acq_rel.gpu.global.add.u32 %r1, [%d1], 1; G:" AT "atom.acquire.gpu.global.add.u32 %r1, [%d1], 0; setp.lt.u32 %p1, %r1, %r9; @%p1 bra G; MET: bar.sync 0;\n"
/* Thread `who` looks whether one more has come than there are programs, and tells the others of its own, who do `round` in each round. */
#define TELL(who, bars, round) "mov.u32 %r5, 0; setp.eq.u32 %p6, %r0, " who "; @!%p6 bra ALL; atom.acq_rel.gpu.global.add.u32 %r1, [%d1], 1; ALL: " bars "@!%p6 bra TOLD;" \
  AT "atom.acquire.gpu.global.add.u32 %r1, [%d1], 0; st.shared.u32 [sh], %r1; TOLD: bar.sync 0; ld.shared.u32 %r2, [sh]; " round "setp.lt.u32 %p1, %r2, 4; " bars "@%p1 bra ALL;"
#define ALL_WAIT "deadlock between programs: all wait for others: program (0,0,0) at "
#define PLAIN "FIRST:" AT "L: ld.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret; OTHER: st.global.u32 [%d1], 1;"

enum { WORDS = 8192 };

typedef struct Setup { int threads; uint32_t multiprocessors; uint64_t most; int (*watch)(void *, const SimProgress *); void *user; } Setup;

static int
run_on(Test *t, const Setup *s, const char *body, uint32_t blocks, uint32_t threads, uint32_t *a, SimError *err)
{
  SimOptions o;
  sim_options_default(&o);
  o.threads = s->threads;
  o.multiprocessors = s->multiprocessors;
  o.max_instructions = s->most;
  o.watch = s->watch;
  o.watch_user = s->user;
  SimMachine *saved = test_machine(t, &o);
  uint32_t *d = test_alloc(t, 4 * WORDS);
  char ptx[4096];
  memset(d, 0, 4 * WORDS);
  snprintf(ptx, sizeof ptx, "%s%s%s\n.loc 1 9 1\n%s", HEAD, BLOCK, body, TAIL);
  Run r = {ptx, "k", {blocks}, {threads}, 0, {&d, &d}, {0}, {0}};
  int rc = test_run(t, &r);
  *err = r.err;
  memcpy(a, d, 4 * WORDS);
  test_machine_back(t, saved);
  return rc;
}

/* Ten times: everybody writes, all meet, everybody reads the next one's, all meet. */
static void
grid_barrier(Test *t, uint32_t *a)
{
  static const char body[] = "mov.u32 %r9, 0; mov.u32 %r8, 0; mov.u32 %r7, 0; add.u32 %r6, %r10, 1; rem.u32 %r6, %r6, %r11; mad.wide.u32 %d5, %r10, 4, %d1; mad.wide.u32 %d6, %r6, 4, %d1;\n"
    "AGAIN: add.u32 %r9, %r9, %r11; mad.lo.u32 %r5, %r10, 100, %r8; @%p8 st.global.u32 [%d5+16], %r5; " MEET
    "ld.global.u32 %r4, [%d6+16]; add.u32 %r7, %r7, %r4; add.u32 %r9, %r9, %r11; bar.sync 0; @!%p8 bra MET2; atom.acq_rel.gpu.global.add.u32 %r1, [%d1], 1; G2: atom.acquire.gpu.global.add.u32 %r1, [%d1], 0;"
    "setp.lt.u32 %p1, %r1, %r9; @%p1 bra G2; MET2: bar.sync 0; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 10; @%p2 bra AGAIN; @%p8 st.global.u32 [%d5+16], %r7;";
  for (int threads = 1; threads <= 4; threads += 3) {
    Setup s = {.threads = threads};
    SimError err;
    uint32_t wrong = 0;
    int rc = run_on(t, &s, body, 300, 64, a, &err);
    for (uint32_t i = 0; i < 300; i++)
      wrong += a[4 + i] != (i + 1) % 300 * 1000 + 45;
    CHECK(t, rc == 0 && !wrong, "a barrier of the grid on %d threads: %u wrong: %s", threads, wrong, err.message);
  }
}

/* A program waits for the one behind it, and the last for nobody. */
static void
backwards(Test *t, uint32_t *a)
{
  Setup s = {.threads = 2};
  SimError err;
  int rc = run_on(t, &s, "@!%p8 ret; mad.wide.u32 %d5, %r10, 4, %d1; add.u32 %r2, %r10, 1; setp.eq.u32 %p2, %r2, %r11; mov.u32 %r1, 1; @%p2 bra MINE; C: ld.acquire.gpu.global.u32 %r1, [%d5+4];"
                  "setp.eq.u32 %p1, %r1, 0; @%p1 bra C; add.u32 %r1, %r1, 1; MINE: st.release.gpu.global.u32 [%d5], %r1;", 500, 32, a, &err);
  CHECK(t, rc == 0 && a[0] == 500 && a[499] == 1, "a chain from the end: %u: %s", a[0], err.message);
}

/* Who comes when does not depend on the host. */
static void
same_order(Test *t, uint32_t *a)
{
  uint32_t *first = malloc(4 * WORDS);
  for (int threads = 1; first && threads < 9; threads *= 2) {
    Setup s = {.threads = threads};
    SimError err;
    int rc = run_on(t, &s, "atom.global.add.u32 %r1, [%d1], 1; mad.lo.u32 %r2, %r10, 64, %r0; mad.wide.u32 %d5, %r2, 4, %d1; st.global.u32 [%d5+4], %r1;", 40, 64, a, &err);
    CHECK(t, rc == 0 && a[0] == 40 * 64, "tickets on %d threads: %u: %s", threads, a[0], err.message);
    if (threads == 1)
      memcpy(first, a, 4 * WORDS);
    CHECK(t, memcmp(first, a, 4 * WORDS) == 0, "other tickets on %d threads", threads);
  }
  free(first);
}

/* So do those who wait in a loop of all warps, but not for ever: how often they have looked is in memory that only they see, and in no
 * register when they look. */
static void
gives_up(Test *t, uint32_t *a)
{
  static const char *const counts[] = {
    "ld.shared.u32 %r3, [sh+4]; add.u32 %r3, %r3, 1; st.shared.u32 [sh+4], %r3;",
    "ld.local.u32 %r3, [mine]; add.u32 %r3, %r3, 1; st.local.u32 [mine], %r3;",
  };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    char body[1200];
    Setup s = {.threads = 1};
    SimError err;
    snprintf(body, sizeof body, ".local .align 4 .b8 mine[4]; mov.u32 %%r3, 0; st.local.u32 [mine], %%r3; setp.eq.u32 %%p6, %%r0, 127; @%%p6 st.shared.v2.u32 [sh], {%%r3, %%r3};"
             "ALL: bar.sync 0; @!%%p6 bra TOLD; %s setp.ge.u32 %%p2, %%r3, 2000; selp.u32 %%r3, 1, 0, %%p2; st.shared.u32 [sh+8], %%r3; atom.acquire.gpu.global.add.u32 %%r1, [%%d1], 0; TOLD: bar.sync 0;"
             "ld.shared.u32 %%r2, [sh+8]; setp.eq.u32 %%p1, %%r2, 0; bar.sync 0; @%%p1 bra ALL; @%%p8 atom.global.add.u32 %%r1, [%%d1+4], 1;", counts[i]);
    int rc = run_on(t, &s, body, 3, 128, a, &err);
    CHECK(t, rc == 0 && a[1] == 3, "programs that give up: %u: %s", a[1], err.message);
  }
}

/* And at an mbarrier, so many times. */
static void
gives_up_alone(Test *t, uint32_t *a)
{
  Setup s = {.threads = 1};
  SimError err;
  int rc = run_on(t, &s, "@%p8 mbarrier.init.shared.b64 [sh], 1; bar.sync 0; mov.u32 %r3, 0; L: mbarrier.test_wait.parity.shared.b64 %p1, [sh], 0; add.u32 %r3, %r3, 1;"
                  "setp.lt.u32 %p2, %r3, 5000; @%p2 bra L; @%p8 st.global.u32 [%d1+4], %r3;", 1, 32, a, &err);
  CHECK(t, rc == 0 && a[1] == 5000, "a program that gives up at an mbarrier: %u: %s", a[1], err.message);
}

/* Programs that meet, thread 0 of each looking; the others of its warp are at the barrier first, or it is. */
static void
meets_inside(Test *t, uint32_t *a)
{
  static const char body[] = "@%p8 atom.acq_rel.gpu.global.add.u32 %r1, [%d1], 1; LOOK: @%p8 atom.acquire.gpu.global.add.u32 %r1, [%d1], 0; @%p8 bra TELL; bra.uni TOLD; TELL: st.shared.u32 [sh], %r1;"
    "TOLD: bar.sync 0; ld.shared.u32 %r2, [sh]; setp.lt.u32 %p1, %r2, %r11; @%p1 bra AGAIN; bra.uni DONE; AGAIN: bar.sync 0; bra.uni LOOK; DONE: @%p8 atom.global.add.u32 %r1, [%d1+4], 1;";
  Setup s = {.threads = 1};
  SimError err;
  int rc = run_on(t, &s, body, 40, 128, a, &err);
  CHECK(t, rc == 0 && a[0] == 40 && a[1] == 40, "programs that meet, with a barrier in their loop: %u: %s", a[1], err.message);
}

typedef struct Fails { const char *name; SimErrorKind kind; uint32_t blocks, threads; Setup setup; const char *body, *text; } Fails;

static const Fails fails[] = {
  {"more programs than fit", SIM_E_DEADLOCK, 33, 64, {.multiprocessors = 1}, "mov.u32 %r9, 33;" MEET,
   "program (0,0,0) at k.tile:7, program (1,0,0) at k.tile:7, program (2,0,0) at k.tile:7, program (3,0,0) at k.tile:7 and 28 more; 1 programs can start only when others end, as 32 are"},
  {"nobody sets the flag", SIM_E_DEADLOCK, 4, 32, {0}, AT "L: ld.acquire.gpu.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;",
   "deadlock between programs: all wait for others: program (0,0,0) at k.tile:7"},
  {"a lock that is not given back", SIM_E_DEADLOCK, 2, 1, {0}, AT "L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;", "program (1,0,0) at k.tile:7"},
  {"a lock taken twice", SIM_E_DEADLOCK, 2, 1, {0}, "atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1;" AT "L: atom.acquire.gpu.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;", "deadlock"},
  {"the first warp looks and tells the others", SIM_E_DEADLOCK, 3, 128, {0}, TELL("0", "bar.sync 0; ", ""), ALL_WAIT},
  {"a warp in the middle does", SIM_E_DEADLOCK, 3, 128, {0}, TELL("64", "bar.sync 0; ", ""), ALL_WAIT},
  {"the last one does, and there are three barriers", SIM_E_DEADLOCK, 3, 128, {0}, TELL("127", "bar.sync 0; bar.sync 0; bar.sync 0; ", ""), ALL_WAIT},
  {"they know by a bit which round it is", SIM_E_DEADLOCK, 3, 128, {0}, TELL("0", "bar.sync 0; ", "xor.b32 %r5, %r5, 1; "), ALL_WAIT},
  {"the middle's do", SIM_E_DEADLOCK, 3, 128, {0}, TELL("64", "bar.sync 0; ", "xor.b32 %r5, %r5, 1; "), ALL_WAIT},
  {"a flag that is looked at plainly", SIM_E_RACE, 2, 1, {0}, "@!%p8 ret; @%p7 bra FIRST; bra OTHER;" PLAIN, "thread (0,0,0) of program (1,0,0) writes parameter 0[0]"},
  {"the limit", SIM_E_LIMIT, 3, 32, {.most = 5000}, "mov.u32 %r1, 0;\n.loc 1 6 1\nL: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 0;" AT "@!%p1 bra L;",
   "program (0,0,0) is still in the loop at k.tile:7 after 5001 warp instructions"},
};

static void
fails_case(Test *t, const Fails *f, uint32_t *a)
{
  SimError first = {0}, err;
  for (int threads = 1; threads <= 3; threads++) {
    Setup s = f->setup;
    s.threads = threads;
    int rc = run_on(t, &s, f->body, f->blocks, f->threads, a, &err);
    CHECK(t, rc == -1 && err.kind == f->kind && strstr(err.message, f->text), "%s: kind %d: %s", f->name, (int)err.kind, err.message);
    if (threads == 1)
      first = err;
    CHECK(t, strcmp(first.message, err.message) == 0, "%s on %d threads: %s", f->name, threads, err.message);
  }
}

/* ---- stopping ---- */

typedef struct Seen { uint64_t calls, last, total, most; } Seen;

static int
stop_after(void *user, const SimProgress *p)
{
  Seen *s = user;
  s->calls++;
  s->total = p->total_blocks;
  s->last = p->warp_instructions > s->last ? p->warp_instructions : s->last;
  return s->most && p->warp_instructions >= s->most;
}

static void
watched(Test *t, uint32_t *a)
{
  Seen seen = {.most = 300000};
  Setup s = {.threads = 2, .watch = stop_after, .user = &seen};
  SimError err;
  int rc = run_on(t, &s, "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 0;" AT "@!%p1 bra L;", 5, 32, a, &err);
  CHECK(t, rc == -1 && err.kind == SIM_E_CANCELLED && strstr(err.message, "stopped: program (") && strstr(err.message, ") is still in the loop at k.tile:7 after ") &&
        err.line == 7, "kind %d: %s", (int)err.kind, err.message);
  CHECK(t, seen.calls > 0 && seen.total == 5 && seen.last >= seen.most, "%llu calls", (unsigned long long)seen.calls);
  seen = (Seen){0};
  rc = run_on(t, &s, "", 5, 32, a, &err);
  CHECK(t, rc == 0 && seen.calls == 5 && seen.last >= 5, "%llu calls, %llu instructions", (unsigned long long)seen.calls, (unsigned long long)seen.last);
}

static void *
cancel_soon(void *machine)
{
  for (int i = 0; i < 40; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    sim_cancel(machine);
  }
  return NULL;
}

/* Calls that never end go no way back: they are stopped all the same. */
static void
cancelled(Test *t)
{
  static const char *const bodies[] = {
    "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 0; @!%p1 bra L;",
    "L: atom.global.add.u32 %r1, [%d1], 1; setp.eq.u32 %p1, %r1, -1; @!%p1 bra L;",
  };
  for (int i = 0; i < 2; i++) {
    char ptx[4096];
    uint32_t *d = test_alloc(t, 4096);
    pthread_t thread;
    memset(d, 0, 4096);
    snprintf(ptx, sizeof ptx, "%s%s%s", HEAD, bodies[i], TAIL);
    Run r = {ptx, "k", {3}, {32}, 0, {&d, &d}, {0}, {0}};
    if (pthread_create(&thread, NULL, cancel_soon, t->machine))
      return;
    int rc = test_run(t, &r);
    pthread_join(thread, NULL);
    CHECK(t, rc == -1 && r.err.kind == SIM_E_CANCELLED, "kind %d: %s", (int)r.err.kind, r.err.message);
    test_free(t, d);
  }
  sim_cancel(t->machine);              /* nothing runs: the next launch is not stopped */
  uint32_t *d = test_alloc(t, 4096);
  Run r = {HEAD TAIL, "k", {3}, {32}, 0, {&d, &d}, {0}, {0}};
  CHECK(t, test_run(t, &r) == 0, "%s", r.err.message);
  test_free(t, d);
}

static int
stop_at_once(void *user, const SimProgress *p)
{
  return 1;
}

/* A launch that is stopped when the last of its programs has just ended: it has ended. */
static void
ended_and_cancelled(Test *t, uint32_t *a)
{
  Setup s = {.threads = 1, .watch = stop_at_once};
  SimError err;
  int rc = run_on(t, &s, "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 40000; @%p1 bra L;", 1, 32, a, &err);
  CHECK(t, rc == 0 || err.kind == SIM_E_CANCELLED, "kind %d: %s", (int)err.kind, err.message);
  rc = run_on(t, &s, "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 15000; @%p1 bra L; mov.u32 %r1, 0; M: add.u32 %r1, %r1, 1;"
              "setp.lt.u32 %p1, %r1, 4000; @%p1 bra M;", 1, 64, a, &err);
  CHECK(t, rc == 0 || err.kind == SIM_E_CANCELLED, "kind %d: %s", (int)err.kind, err.message);
}

static void
occupancy(Test *t)
{
  SimKernelInfo k = {.static_shared = 0};
  CHECK(t, sim_occupancy(&k, 64, 0) == 32 && sim_occupancy(&k, 128, 0) == 16 && sim_occupancy(&k, 1024, 0) == 2, "by threads");
  CHECK(t, sim_occupancy(&k, 128, 100000) == 2 && sim_occupancy(&k, 1, 0) == 32, "by shared memory");
  k.static_shared = 40000;
  CHECK(t, sim_occupancy(&k, 128, 0) == 5, "by static shared memory");
}

void
test_turns(Test *t)
{
  uint32_t *a = malloc(4 * WORDS);
  if (!a)
    return;
  grid_barrier(t, a);
  backwards(t, a);
  same_order(t, a);
  gives_up(t, a);
  gives_up_alone(t, a);
  meets_inside(t, a);
  for (size_t i = 0; i < sizeof fails / sizeof *fails; i++)
    fails_case(t, &fails[i], a);
  watched(t, a);
  ended_and_cancelled(t, a);
  cancelled(t);
  occupancy(t);
  free(a);
}
