/* launch.c - host cost of one launch: the driver's cuLaunchKernel by itself, tilert_launch_packed, tilejit_call_launch,
 * tilejit_launch (arguments checked and specialised on every call), and the functions that tilec --emit=c wrote of launch.tile, with libtilert
 * and without (both check their arguments, too); interleaved in one process. What a launch takes drifts by a few hundredths within a second,
 * so rounds are short, each begins with another path, and paths are compared round by round.
 * Prints one line each: name, median microseconds over rounds of back-to-back launches of an empty kernel, median of what that is of
 * cuLaunchKernel's in the same round.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "jit.h"
#include "launch_alone.h"
#include "launch_kernels.h"
#include "tilert.h"
#include "timing.h"

enum { ROUNDS = 1500, LAUNCHES = 50, PATHS = 6 };

static const char source[] =
  "kernel nop(a: *f32, b: *f32, c: *f32, n: i32) { if (n < 0) { store(c, load(a) + load(b)); } }\n";
static const char ptx[] =
  ".version 8.0\n.target sm_80\n.address_size 64\n"
  ".visible .entry raw(.param .u64 a,.param .u64 b,.param .u64 c,.param .u32 n){ret;}\n";

int
main(void)
{
  static double us[PATHS][ROUNDS], of[PATHS][ROUNDS];
  static const char *const names[PATHS] = {"cuLaunchKernel", "tilert_launch_packed", "tilejit_call_launch", "tilejit_launch", "ahead", "ahead_standalone"};
  TilertError e;
  TilertDevice *dev;
  TilertStream *s;
  TilertBuffer *b, *c;                      /* what is stored is elsewhere than what is loaded, as in most launches */
  TilejitProgram *p;
  TilejitKernel *k;
  TilejitCall *call;
  TilertArg args[4];
  const uint32_t grid[3] = {1, 1, 1};
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *mod, *fn;
  LaunchFn launch;
  unsigned long long ptr;
  int n = 1;
  void *raw[] = {&ptr, &ptr, &ptr, &n};
  if (!cuda) {
    fprintf(stderr, "bench_launch: no libcuda.so.1\n");
    return 1;
  }
  check(tilert_device_open("cuda", NULL, &dev, &e), &e);
  check(tilert_stream_create(dev, &s, &e), &e);
  check(tilert_buffer_create(dev, 4096, &b, &e), &e);
  check(tilert_buffer_create(dev, 4096, &c, &e), &e);
  check(tilejit_program_create(dev, "nop.tile", source, sizeof source - 1, NULL, &p, &e), &e);
  check(tilejit_kernel(p, "nop", NULL, 0, &k, &e), &e);
  memset(args, 0, sizeof args);
  for (int i = 0; i < 3; i++) args[i] = (TilertArg){.kind = TILERT_ARG_BUFFER, .u.buffer = i < 2 ? b : c};
  args[3] = (TilertArg){.kind = TILERT_ARG_INT, .u.i = 1};
  check(tilejit_call_create(k, grid, NULL, args, 4, &call, &e), &e);
  ptr = tilert_buffer_address(b);
  float *const at = (float *)(uintptr_t)ptr;
  launch = (LaunchFn)dlsym(cuda, "cuLaunchKernel");
  if (((LoadFn)dlsym(cuda, "cuModuleLoadData"))(&mod, ptx) || ((GetFn)dlsym(cuda, "cuModuleGetFunction"))(&fn, mod, "raw")) {
    fprintf(stderr, "bench_launch: cannot load the raw kernel\n");
    return 1;
  }
  for (int r = 0; r < ROUNDS; r++) {
    for (int i = 0; i < PATHS; i++) {
      const int path = (r + i) % PATHS;
      int status = 0;
      double t;
      tilert_stream_synchronize(s, &e);
      t = now();
      for (int l = 0; l < LAUNCHES; l++) switch (path) {
        case 0: status |= launch(fn, 1, 1, 1, 128, 1, 1, 0, tilert_stream_native(s), raw, NULL); break;
        case 1: status |= tilert_launch_packed(tilejit_call_packed(call), s, &e); break;
        case 2: status |= tilejit_call_launch(call, s, &e); break;
        case 3: status |= tilejit_launch(k, s, grid, args, 4, &e); break;
        case 4: status |= nop(s, at, at, at + 256, 1, &e); break;
        case 5: status |= alone_nop(tilert_stream_native(s), at, at, at + 256, 1, &e); break;
        }
      us[path][r] = (now() - t) / LAUNCHES;
      check(status, &e);
    }
    for (int path = 0; path < PATHS; path++)
      of[path][r] = us[path][r] / us[0][r];
  }
  check(tilert_stream_synchronize(s, &e), &e);
  for (int path = 0; path < PATHS; path++) {
    qsort(us[path], ROUNDS, sizeof us[path][0], by_value);
    qsort(of[path], ROUNDS, sizeof of[path][0], by_value);
    printf("%s %.3f %.4f\n", names[path], us[path][ROUNDS / 2], of[path][ROUNDS / 2]);
  }
  return 0;
}
