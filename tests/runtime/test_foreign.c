/* PTX of other compilers through the public API: manifests from headers, blocks of any shape, dynamic shared memory; and what the
 * simulator alone can do: be watched, be stopped, tell of a fault in full, present another number of multiprocessors. */
#include "check.h"
#include "tilert.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

static _Thread_local TilertError err;

/* Each thread writes where it is in its block, through dynamic shared memory, with the scalar of each kind beside. */
static const char shapes[] =
  ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n"
  ".visible .entry where(.param .u64 .ptr .global .align 4 out, .param .u64 in, .param .f32 f, .param .u32 u, .param .align 8 .b8 s[12], .param .u64 big)\n"
  "{\n.reg .b32 %r<20>; .reg .b64 %d<8>; .reg .f32 %f<4>;\n"
  "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; ld.param.f32 %f1, [f]; ld.param.u32 %r1, [u]; ld.param.u32 %r2, [s+8]; ld.param.u64 %d3, [big];\n"
  "mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.z; mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mad.lo.u32 %r8, %r5, %r7, %r4; mad.lo.u32 %r8, %r8, %r6, %r3;\n"
  "shl.b32 %r9, %r8, 2; mov.u32 %r10, dyn; add.u32 %r10, %r10, %r9; mad.lo.u32 %r11, %r5, 100, %r4; mad.lo.u32 %r11, %r11, 100, %r3; st.shared.u32 [%r10], %r11; bar.sync 0;\n"
  "ld.shared.u32 %r12, [%r10]; cvt.rzi.s32.f32 %r13, %f1; add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r1; add.u32 %r12, %r12, %r2; cvt.u32.u64 %r14, %d3; add.u32 %r12, %r12, %r14;\n"
  "ld.global.u32 %r15, [%d2]; add.u32 %r12, %r12, %r15; mul.wide.u32 %d4, %r8, 4; add.s64 %d4, %d4, %d1; st.global.u32 [%d4], %r12; ret;\n}\n"
  ".visible .entry fixed() .reqntid 8, 4, 2\n{ ret; }\n.visible .entry most() .maxntid 256 { ret; }\n";

static const char spin[] =
  ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"spin.tile\"\n.visible .entry spin(.param .u64 a) {\n.reg .b32 %r<4>; .reg .pred %p<2>;\n"
  "mov.u32 %r1, 0;\n.loc 1 3 5\nL: add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret; }\n"
  ".visible .entry wild(.param .u64 a) {\n.reg .b64 %d<4>;\n.loc 1 9 5\nld.param.u64 %d1, [a]; st.global.u32 [%d1+400], 1; ret; }\n";

/* Reads the target of a copy before it waits for that: what is there then depends on when copies land. */
static const char hasty[] =
  ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry hasty(.param .u64 .ptr .global .align 16 in, .param .u64 .ptr .global .align 4 out)\n"
  "{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<2>; .shared .align 16 .b8 s[32];\n"
  "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; st.shared.u32 [s+16], 5; mbarrier.init.shared::cta.b64 [s], 1; fence.proxy.async; mov.u32 %r1, s; add.u32 %r2, %r1, 16;\n"
  "mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 16; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], 16, [%r1];\n"
  "ld.shared.u32 %r3, [s+16]; st.global.u32 [%d2], %r3; W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], 0; @!%p1 bra W;\n"
  "ld.shared.u32 %r3, [s+16]; st.global.u32 [%d2+4], %r3; ret; }\n";

static TilertModule *
load(TilertDevice *d, const char *ptx)
{
  static TilertManifest all[4];
  TilertModule *m;
  size_t n;
  CHECK_OK(tilert_manifest_derive(ptx, strlen(ptx), NULL, 0, &n, &err));
  CHECK(n <= 4);
  CHECK_OK(tilert_manifest_derive(ptx, strlen(ptx), all, 4, &n, &err));
  CHECK_OK(tilert_module_load(d, ptx, strlen(ptx), all, n, &m, &err));
  return m;
}

static void
test_derive(void)
{
  static TilertManifest m[3];
  size_t n;
  CHECK_OK(tilert_manifest_derive(shapes, strlen(shapes), m, 3, &n, &err));
  CHECK(n == 3 && !strcmp(m[0].kernel, "where") && m[0].nparams == 6 && m[0].warps == 1 && m[1].warps == 2 && m[2].warps == 8);
  const TilertParam *p = m[0].params;
  CHECK(p[0].kind == TILERT_PARAM_POINTER && p[1].kind == TILERT_PARAM_RAW && p[1].size == 8 && !strcmp(p[1].dtype, "u64") && !strcmp(p[1].name, "in"));
  CHECK(p[2].kind == TILERT_PARAM_RAW && p[2].size == 4 && !strcmp(p[2].dtype, "f32"));
  CHECK(p[4].kind == TILERT_PARAM_RAW && p[4].size == 12 && p[4].divisible == 8 && !*p[4].dtype);
  CHECK(p[0].dtype[0] == 0 && m[0].block[0] == 0 && m[2].block[0] == 0);
  CHECK(m[1].block[0] == 8 && m[1].block[1] == 4 && m[1].block[2] == 2);
  CHECK_OK(tilert_manifest_derive(shapes, strlen(shapes), m, 1, &n, &err));
  CHECK(n == 3);
  CHECK_FAILS(tilert_manifest_derive("no", 2, m, 3, &n, &err), TILERT_E_MODULE, "PTX line 1: PTX starts with .version");
  CHECK(n == 0);
}

/* What a compiler called KERNEL_param_N is pN, and so is what is too long. */
static void
test_names(void)
{
  static TilertManifest m;
  char ptx[800], name[121];
  size_t n;
  memset(name, 'k', 120);
  name[120] = 0;
  snprintf(ptx, sizeof ptx, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry %s(.param .u64 %s_param_0, .param .u32 %s_param_1, "
           ".param .u32 x_param_2, .param .f32 %.63s, .param .f32 %.64s) .reqntid 96 { ret; }\n", name, name, name, name, name);
  CHECK_OK(tilert_manifest_derive(ptx, strlen(ptx), &m, 1, &n, &err));
  CHECK(n == 1 && !strcmp(m.kernel, name) && m.nparams == 5 && m.block[0] == 96 && m.block[1] == 1 && m.block[2] == 1);
  CHECK(!strcmp(m.params[0].name, "p0") && !strcmp(m.params[1].name, "p1") && !strcmp(m.params[2].name, "x_param_2"));
  CHECK(strlen(m.params[3].name) == 63 && !strcmp(m.params[4].name, "p4"));
}

typedef struct Shaped { TilertModule *m; TilertKernel *k; TilertBuffer *out, *in; TilertArg args[6]; } Shaped;

static Shaped
shaped(TilertDevice *d)
{
  static const uint32_t twelve[3] = {1, 2, 300000}, five = 5000000;
  Shaped s;
  s.m = load(d, shapes);
  CHECK_OK(tilert_module_kernel(s.m, "where", &s.k, &err));
  CHECK_OK(tilert_buffer_create(d, 4096, &s.out, &err));
  CHECK_OK(tilert_buffer_create(d, 4, &s.in, &err));
  CHECK_OK(tilert_buffer_write(s.in, 0, &five, 4, NULL, &err));
  s.args[0] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = s.out};
  s.args[1] = (TilertArg){.kind = TILERT_ARG_POINTER, .u.pointer = tilert_buffer_address(s.in)};
  s.args[2] = (TilertArg){.kind = TILERT_ARG_FLOAT, .u.f = 10000000};
  s.args[3] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = -20000000};
  s.args[4] = (TilertArg){.kind = TILERT_ARG_BYTES, .u.bytes = twelve};
  s.args[5] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = 1ll << 40 | 70000000};
  return s;
}

static void
finish(Shaped *s)
{
  tilert_buffer_destroy(s->out);
  tilert_buffer_destroy(s->in);
  tilert_module_destroy(s->m);
}

static void
test_shapes(TilertDevice *d)
{
  static const uint32_t blocks[][3] = {{32, 1, 1}, {8, 4, 2}, {1, 1, 7}, {5, 3, 9}, {16, 16, 4}};
  uint32_t grid[3] = {1, 1, 1}, back[1024];
  Shaped s = shaped(d);
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    const uint32_t *b = blocks[i], n = b[0] * b[1] * b[2];
    CHECK_OK(tilert_launch_shaped(NULL, s.k, grid, b, 4 * n, s.args, 6, &err));
    CHECK_OK(tilert_buffer_read(s.out, 0, back, 4 * n, NULL, &err));
    for (uint32_t t = 0; t < n; t++)
      CHECK(back[t] == (t / b[0] / b[1] * 100 + t / b[0] % b[1]) * 100 + t % b[0] + 10000000 - 20000000 + 300000 + 70000000 + 5000000);
  }
  finish(&s);
}

static void
test_refusals(TilertDevice *d)
{
  static const uint32_t none[3] = {0, 1, 1}, many[3] = {32, 33, 1}, high[3] = {1, 1, 65}, one[3] = {1, 1, 1}, fixed[3] = {8, 4, 2};
  TilertKernel *k;
  Shaped s = shaped(d);
  TilertArg bad[6];
#define SHAPE(block, shared) tilert_launch_shaped(NULL, s.k, one, block, shared, s.args, 6, &err)
#define WITH(i, arg) (memcpy(bad, s.args, sizeof bad), bad[i] = (arg), tilert_launch_shaped(NULL, s.k, one, one, 64, bad, 6, &err))
  CHECK_FAILS(SHAPE(none, 0), TILERT_E_ARGUMENT, "a block of 0 x 1 x 1 threads");
  CHECK_FAILS(SHAPE(many, 0), TILERT_E_ARGUMENT, "1 to 1024");
  CHECK_FAILS(SHAPE(high, 0), TILERT_E_ARGUMENT, "64 along z");
  CHECK_FAILS(SHAPE(one, 1 << 20), TILERT_E_UNAVAILABLE, "1048576 bytes of shared memory");
  CHECK_FAILS(SHAPE(one, 0), TILERT_E_FAULT, "shared");                     /* the kernel writes to it */
  CHECK_FAILS(WITH(3, ((TilertArg){.kind = TILERT_ARG_INT, .u.i = 1ll << 32})), TILERT_E_ARGUMENT, "argument 3 (u, 4 bytes): an integer does not fit");
  CHECK_FAILS(WITH(3, s.args[0]), TILERT_E_ARGUMENT, "an address does not fit");
  CHECK_FAILS(WITH(4, s.args[2]), TILERT_E_ARGUMENT, "a floating-point number does not fit");
  CHECK_FAILS(WITH(0, s.args[3]), TILERT_E_ARGUMENT, "an integer is given");
  CHECK_OK(tilert_module_kernel(s.m, "fixed", &k, &err));
  CHECK_FAILS(tilert_launch_shaped(NULL, k, one, one, 0, NULL, 0, &err), TILERT_E_ARGUMENT, "needs blocks of 8 x 4 x 2");
  CHECK_OK(tilert_launch_shaped(NULL, k, one, fixed, 0, NULL, 0, &err));
  CHECK_OK(tilert_launch(NULL, k, one, NULL, 0, &err));                     /* it asks for its shape itself */
  CHECK_FAILS(WITH(3, s.args[2]), TILERT_E_ARGUMENT, "argument 3 (u, 4 bytes): a floating-point number does not fit");
  finish(&s);
}

/* A number for a parameter of a floating-point type is that number, also where it is given as an integer; .b32 and .b64 take either. */
static void
test_numbers(TilertDevice *d)
{
  static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry keep(.param .u64 out, .param .f32 f, .param .f64 g, .param .b32 b, .param .s16 h) {\n"
    ".reg .b64 %d<3>; .reg .b32 %r<3>; .reg .b16 %h;\nld.param.u64 %d1, [out]; ld.param.b32 %r1, [f]; st.global.b32 [%d1], %r1; ld.param.b64 %d2, [g]; st.global.b64 [%d1+8], %d2;\n"
    "ld.param.b32 %r2, [b]; st.global.b32 [%d1+16], %r2; ld.param.b16 %h, [h]; st.global.b16 [%d1+20], %h; ret;\n}\n";
  static const uint32_t one[3] = {1, 1, 1};
  struct { float f; int32_t hole; double g; float b; int16_t h, end; } back = {0};
  TilertModule *m = load(d, ptx);
  TilertKernel *k;
  TilertBuffer *x;
  CHECK_OK(tilert_module_kernel(m, NULL, &k, &err));
  CHECK_OK(tilert_buffer_create(d, sizeof back, &x, &err));
  TilertArg args[5] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = x}, {.kind = TILERT_ARG_INT, .u.i = -2}, {.kind = TILERT_ARG_INT, .u.i = 3},
                       {.kind = TILERT_ARG_FLOAT, .u.f = 0.5}, {.kind = TILERT_ARG_INT, .u.i = -300}};
  CHECK_OK(tilert_launch_shaped(NULL, k, one, one, 0, args, 5, &err));
  CHECK_OK(tilert_buffer_read(x, 0, &back, sizeof back, NULL, &err));
  CHECK(back.f == -2 && back.g == 3 && back.b == 0.5f && back.h == -300);
  tilert_buffer_destroy(x);
  tilert_module_destroy(m);
}

/* A prepared launch takes a shape, too. */
static void
test_prepared(TilertDevice *d)
{
  uint32_t one[3] = {1, 1, 1}, block[3] = {2, 2, 2}, back[8];
  Shaped s = shaped(d);
  TilertLaunch *l;
  CHECK_OK(tilert_launch_create(s.k, one, s.args, 6, &l, &err));
  CHECK_OK(tilert_launch_set_shape(l, block, 32, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_buffer_read(s.out, 0, back, 32, NULL, &err));
  CHECK(back[7] - back[0] == 10101);
  tilert_launch_destroy(l);
  finish(&s);
}

/* ---- what only the simulator does ---- */

static TilertDevice *
open_with(TilertOptions *o)
{
  TilertDevice *d;
  CHECK_OK(tilert_device_open("sim", o, &d, &err));
  return d;
}

static int
enough(void *user, const TilertProgress *p)
{
  uint64_t *most = user;
  CHECK(p->size == sizeof *p && p->total_blocks == 3 && p->done_blocks <= 3);
  *most = p->warp_instructions > *most ? p->warp_instructions : *most;
  return p->warp_instructions > 100000;
}

static int
run_kernel(TilertDevice *d, const char *name, uint32_t blocks)
{
  uint32_t grid[3] = {blocks, 1, 1}, block[3] = {32, 1, 1};
  TilertModule *m = load(d, spin);
  TilertBuffer *b;
  TilertKernel *k;
  CHECK_OK(tilert_buffer_create(d, 400, &b, &err));
  CHECK_OK(tilert_module_kernel(m, name, &k, &err));
  TilertArg a = {.kind = TILERT_ARG_BUFFER, .u.buffer = b};
  int status = tilert_launch_shaped(NULL, k, grid, block, 0, &a, 1, &err);
  tilert_buffer_destroy(b);
  tilert_module_destroy(m);
  return status;
}

static void
test_watch(void)
{
  TilertOptions o;
  uint64_t most = 0;
  tilert_options_default(&o);
  o.watch = enough;
  o.watch_user = &most;
  TilertDevice *d = open_with(&o);
  CHECK_FAILS(run_kernel(d, "spin", 3), TILERT_E_CANCELLED, "spin.tile:3: stopped: program (");
  CHECK(strstr(err.message, "is still in the loop at spin.tile:3 after ") && most > 100000 && err.line == 3);
  tilert_device_close(d);
}

static TilertDevice *to_cancel(TilertDevice *d, int set);

static void
on_alarm(int number)
{
  tilert_device_cancel(to_cancel(NULL, 0));
}

static TilertDevice *
to_cancel(TilertDevice *d, int set)
{
  static TilertDevice *device;
  device = set ? d : device;
  return device;
}

/* From a signal handler, as for Ctrl-C. */
static void
test_cancel(void)
{
  TilertDevice *d = open_with(NULL);
  struct sigaction on = {.sa_handler = on_alarm}, old;
  timer_t timer;
  struct itimerspec soon = {.it_value = {.tv_nsec = 100000000}, .it_interval = {.tv_nsec = 50000000}}, never = {{0, 0}, {0, 0}};
  to_cancel(d, 1);
  CHECK(!sigaction(SIGALRM, &on, &old));
  CHECK(!timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM}, &timer));
  CHECK(!timer_settime(timer, 0, &soon, NULL));
  CHECK_FAILS(run_kernel(d, "spin", 3), TILERT_E_CANCELLED, "stopped");
  CHECK(!timer_settime(timer, 0, &never, NULL));
  timer_delete(timer);
  sigaction(SIGALRM, &old, NULL);
  CHECK(!strcmp(tilert_status_name(TILERT_E_CANCELLED), "cancelled"));
  tilert_device_close(d);
}

static const char *
known(void *user, const char *file, size_t *n)
{
  static const char text[] = "\n\n\n\n\n\n\n\n    y = 5;\n";
  *n = sizeof text - 1;
  return strcmp(file, "spin.tile") ? NULL : text;
}

static void
test_fault_text(void)
{
  TilertOptions o;
  char text[400], part[20];
  tilert_options_default(&o);
  o.source = known;
  TilertDevice *d = open_with(&o);
  CHECK(tilert_device_fault(d, text, sizeof text) == 0 && !*text);
  CHECK_FAILS(run_kernel(d, "wild", 1), TILERT_E_FAULT, "spin.tile:9: thread (0,0,0) writes parameter 0[100] of 100 4-byte elements: mask missing?\n    9 |     y = 5;\n      |     ^");
  size_t n = tilert_device_fault(d, text, sizeof text);
  CHECK(n == strlen(text) && !strcmp(text, err.message));
  CHECK(tilert_device_fault(d, part, sizeof part) == n && !strncmp(part, text, 19) && strlen(part) == 19);
  CHECK(tilert_device_fault(d, NULL, 0) == n);
  tilert_device_close(d);
}

static void
test_multiprocessors(void)
{
  TilertOptions o;
  uint32_t blocks;
  tilert_options_default(&o);
  TilertDevice *d = open_with(NULL);
  CHECK(tilert_device_info(d)->multiprocessors == 132);
  tilert_device_close(d);
  o.sim_multiprocessors = 3;
  d = open_with(&o);
  CHECK(tilert_device_info(d)->multiprocessors == 3);
  TilertModule *m = load(d, shapes);
  TilertKernel *k;
  CHECK_OK(tilert_module_kernel(m, "most", &k, &err));
  CHECK_OK(tilert_kernel_occupancy(k, &blocks, &err));
  CHECK(blocks == 8);
  tilert_module_destroy(m);
  tilert_device_close(d);
}

static void
test_early_copies(void)
{
  for (int early = 0; early < 2; early++) {
    TilertOptions o;
    TilertKernel *k;
    TilertBuffer *b;
    uint32_t one[3] = {1, 1, 1}, in[4] = {7, 8, 9, 10}, out[2] = {0};
    tilert_options_default(&o);
    o.sim_early_copies = early;
    o.sim_check_races = 0;
    TilertDevice *d = open_with(&o);
    TilertModule *m = load(d, hasty);
    CHECK_OK(tilert_module_kernel(m, "hasty", &k, &err));
    CHECK_OK(tilert_buffer_create(d, 64, &b, &err));
    CHECK_OK(tilert_buffer_write(b, 0, in, sizeof in, NULL, &err));
    TilertArg args[] = {{.kind = TILERT_ARG_BUFFER, .u.buffer = b}, {.kind = TILERT_ARG_POINTER, .u.pointer = tilert_buffer_address(b) + 32}};
    CHECK_OK(tilert_launch_shaped(NULL, k, one, one, 0, args, 2, &err));
    CHECK_OK(tilert_buffer_read(b, 32, out, sizeof out, NULL, &err));
    CHECK(out[0] == (early ? 7 : 5) && out[1] == 7);
    tilert_buffer_destroy(b);
    tilert_module_destroy(m);
    tilert_device_close(d);
  }
}

#define SWAP(head) \
  ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry swap(.param .u64 .ptr .global .align 4 out)" head \
  "\n{\n.reg .b32 %r<8>; .reg .b64 %d<4>; .shared .align 4 .b32 s;\n" \
  "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mov.u32 %r4, s; st.shared.u32 [s], %r1; mapa.shared::cluster.u32 %r5, %r4, %r3;\n" \
  "barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %r6, [%r5]; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r6; barrier.cluster.arrive; barrier.cluster.wait; ret; }\n"

/* Two blocks that read each other's word, in the clusters of the launch; on one whose size does not fit, nothing runs. */
static void
test_clusters(TilertDevice *d)
{
  static const char ptx[] = SWAP("");
  uint32_t four[3] = {4, 1, 1}, five[3] = {5, 1, 1}, one[3] = {1, 1, 1}, two[3] = {2, 1, 1}, many[3] = {17, 1, 1}, out[4];
  TilertKernel *k;
  TilertBuffer *b;
  TilertLaunch *l;
  TilertModule *m = load(d, ptx);
  CHECK_OK(tilert_module_kernel(m, "swap", &k, &err));
  CHECK_OK(tilert_buffer_create(d, 20, &b, &err));
  TilertArg arg = {.kind = TILERT_ARG_BUFFER, .u.buffer = b};
  CHECK_OK(tilert_launch_create(k, four, &arg, 1, &l, &err));
  CHECK_OK(tilert_launch_set_shape(l, one, 0, &err));
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_FAULT, "outside of shared memory, or another block's, where there is no cluster");
  CHECK_OK(tilert_launch_set_cluster(l, two, &err));
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_buffer_read(b, 0, out, sizeof out, NULL, &err));
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 3 && out[3] == 2);
  CHECK_FAILS(tilert_launch_set_cluster(l, many, &err), TILERT_E_ARGUMENT, "a cluster of 17 x 1 x 1 blocks: 1 to 16");
  CHECK_OK(tilert_launch_set_grid(l, five, &err));
  CHECK_FAILS(tilert_launch_packed(l, NULL, &err), TILERT_E_ARGUMENT, "a grid of 5 x 1 x 1 blocks is no multiple of the cluster's 2 x 1 x 1");
  tilert_launch_destroy(l);
  tilert_buffer_destroy(b);
  tilert_module_destroy(m);
}

/* The same in clusters that the kernel was compiled for, as its manifest says: launches ask for no other, and grids are multiples. */
static void
test_compiled_clusters(TilertDevice *d)
{
  static const char ptx[] = "//@tilec kernel=swap warps=1 shared=0 cluster=2x1x1 target=sm_90 params=out:ptr:i32\n"
    SWAP("\n.reqntid 32, 1, 1\n.explicitcluster\n.reqnctapercluster 2, 1, 1");
  uint32_t four[3] = {4, 1, 1}, three[3] = {3, 1, 1}, two[3] = {2, 1, 1}, wide[3] = {4, 1, 1}, out[4];
  TilertKernel *k;
  TilertBuffer *b;
  TilertLaunch *l;
  static TilertManifest made;
  size_t n;
  TilertModule *m;
  CHECK_OK(tilert_manifest_parse(ptx, strlen(ptx), &made, 1, &n, &err));
  CHECK_OK(tilert_module_load(d, ptx, strlen(ptx), &made, 1, &m, &err));
  CHECK_OK(tilert_module_kernel(m, "swap", &k, &err));
  CHECK_OK(tilert_buffer_create(d, 16, &b, &err));
  TilertArg arg = {.kind = TILERT_ARG_BUFFER, .u.buffer = b};
  CHECK_FAILS(tilert_launch(NULL, k, three, &arg, 1, &err), TILERT_E_ARGUMENT, "kernel swap: a grid of 3 x 1 x 1 blocks is no multiple of the cluster's 2 x 1 x 1");
  CHECK_OK(tilert_launch_create(k, four, &arg, 1, &l, &err));
  CHECK_FAILS(tilert_launch_set_cluster(l, wide, &err), TILERT_E_ARGUMENT, "kernel swap was compiled for clusters of 2 x 1 x 1 blocks, not 4 x 1 x 1");
  CHECK_OK(tilert_launch_packed(l, NULL, &err));
  CHECK_OK(tilert_launch_set_cluster(l, two, &err));
  CHECK_OK(tilert_buffer_read(b, 0, out, sizeof out, NULL, &err));
  for (uint32_t i = 0; i < 4; i++)          /* all lanes of a block store one word */
    CHECK(out[i] == (i ^ 1));
  tilert_launch_destroy(l);
  tilert_buffer_destroy(b);
  tilert_module_destroy(m);
}

int
main(void)
{
  TilertDevice *d = open_with(NULL);
  test_derive();
  test_names();
  test_shapes(d);
  test_refusals(d);
  test_prepared(d);
  test_numbers(d);
  test_clusters(d);
  test_compiled_clusters(d);
  tilert_device_close(d);
  test_early_copies();
  test_watch();
  test_cancel();
  test_fault_text();
  test_multiprocessors();
  return 0;
}
