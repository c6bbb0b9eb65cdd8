/* first.c - the first call of a function that was compiled ahead (tilec --emit=c of first.tile), beside what the driver needs for the same code.
 *
 *     bench_first_ptx, bench_first_cubin  DEVICE  SIDE  KERNEL
 *
 * SIDE tilec: the function is called, and waited for: it unpacks the code, reads the manifest, has the driver load it, and launches.
 * SIDE driver: the driver loads the unpacked code, finds the kernel and says how many registers it takes, before which a driver that loads
 * lazily has not loaded it. There is but one first call in a process: this prints the microseconds of one, and whoever compares the sides
 * starts a process for each (bench/gpu.py). Device, stream and memory are there before, on both sides. */
#include <dlfcn.h>
#include <string.h>
#include "timing.h"
#include "first_kernels.c"

enum { N = 256, BYTES = N * N * 4, REGISTERS = 4 };        /* rows and columns of everything; CU_FUNC_ATTRIBUTE_NUM_REGS */

typedef int (*AttributeFn)(int *, int, void *);

static int
call_add(TilertStream *s, void *const at[3], TilertError *err)
{
  return add(s, at[0], at[1], at[2], N * N, err);
}

static int
call_rows(TilertStream *s, void *const at[3], TilertError *err)
{
  return rows(s, at[0], at[1], N, N, err);
}

static int
call_product(TilertStream *s, void *const at[3], TilertError *err)
{
  return product(s, at[0], at[1], at[2], N, N, N, err);
}

static const struct Subject {
  const TilertAotKernel *kernel;
  int (*call)(TilertStream *s, void *const at[3], TilertError *err);
} subjects[] = {
  {&tile_of_add_kernel, call_add}, {&tile_of_rows_kernel, call_rows}, {&tile_of_product_kernel, call_product},
};

static void
stop(const char *what, const char *why)
{
  fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, what, why);
  exit(1);
}

static const struct Subject *
subject_of(const char *name)
{
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    if (!strcmp(subjects[i].kernel->name, name))
      return &subjects[i];
  stop("there is no kernel ", name);
  return NULL;
}

/* The form that the call takes: the first for the device, as all addresses and numbers here are multiples of 16. */
static const TilertAotForm *
form_of(const TilertAotKernel *k, const TilertDeviceInfo *info)
{
  const char *target = info->capability_major == 9 ? "sm_90a" : "sm_80";
  for (uint32_t i = 0; i < k->nforms; i++)
    if (!strcmp(k->forms[i].target, target))
      return &k->forms[i];
  stop("there is no form for ", target);
  return NULL;
}

static void *
driver_call(const char *name)
{
  static void *lib;
  lib = lib ? lib : dlopen("libcuda.so.1", RTLD_NOW);
  void *found = lib ? dlsym(lib, name) : NULL;
  if (!found)
    stop("the driver has no ", name);
  return found;
}

static double
time_driver(const TilertAotKernel *k, const TilertDeviceInfo *info, TilertError *e)
{
  const TilertAotForm *f = form_of(k, info);
  const TilertAotCode *code = f->cubin.data ? &f->cubin : &f->ptx;
  const LoadFn load = (LoadFn)driver_call("cuModuleLoadData");
  const GetFn get = (GetFn)driver_call("cuModuleGetFunction");
  const AttributeFn attribute = (AttributeFn)driver_call("cuFuncGetAttribute");
  unsigned char *image = calloc(1, (size_t)code->size + 1);
  void *module, *function;
  int registers;
  if (!image)
    stop("no memory", "");
  check(tilert_aot_unpack(code, image, e), e);
  const double from = now();
  if (load(&module, image) || get(&function, module, k->name) || attribute(&registers, REGISTERS, function))
    stop("the driver does not load ", k->name);
  const double took = now() - from;
  free(image);
  return took;
}

static double
time_call(const struct Subject *k, TilertStream *s, void *const at[3], TilertError *e)
{
  const double from = now();
  check(k->call(s, at, e), e);
  check(tilert_stream_synchronize(s, e), e);
  return now() - from;
}

int
main(int argc, char **argv)
{
  TilertError e;
  TilertDevice *dev;
  TilertStream *s;
  TilertBuffer *b[3];
  void *at[3];
  if (argc != 4 || (strcmp(argv[2], "tilec") != 0 && strcmp(argv[2], "driver") != 0))
    stop("DEVICE, tilec or driver, KERNEL", "");
  const struct Subject *k = subject_of(argv[3]);
  check(tilert_device_open(argv[1], NULL, &dev, &e), &e);
  check(tilert_stream_create(dev, &s, &e), &e);
  for (int i = 0; i < 3; i++) {
    check(tilert_buffer_create(dev, BYTES, &b[i], &e), &e);
    check(tilert_buffer_fill(b[i], 0, BYTES, 0, 4, s, &e), &e);
    at[i] = (void *)(uintptr_t)tilert_buffer_address(b[i]);
  }
  check(tilert_stream_synchronize(s, &e), &e);
  const int ours = !strcmp(argv[2], "tilec");
  printf("%.1f\n", ours ? time_call(k, s, at, &e) : time_driver(k->kernel, tilert_device_info(dev), &e));
  first_kernels_unload();
  for (int i = 0; i < 3; i++)
    tilert_buffer_destroy(b[i]);
  tilert_stream_destroy(s);
  tilert_device_close(dev);
  return 0;
}
