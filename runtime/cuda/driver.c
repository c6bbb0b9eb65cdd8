#include "driver.h"
#include <dlfcn.h>
#include <string.h>

typedef struct Symbol { const char *name; size_t at; int may; } Symbol;

static const Symbol symbols[] = {
#define CU(member, symbol, params) {symbol, offsetof(CudaDriver, member), 0},
#define CU_MAY(member, symbol, params) {symbol, offsetof(CudaDriver, member), 1},
#include "cuda.def"
#undef CU_MAY
#undef CU
};

static int
bind(CudaDriver *cu, void *lib, TilertError *err)
{
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *f = dlsym(lib, symbols[i].name);
    if (!f && !symbols[i].may)
      return rt_error_set(err, TILERT_E_UNAVAILABLE, "libcuda.so.1 has no %s: the driver is too old",
                       symbols[i].name);
    memcpy((char *)cu + symbols[i].at, &f, sizeof f);
  }
  return TILERT_OK;
}

/* The loader's reference is dropped on failure only; RTLD_NODELETE keeps the driver, whose threads outlive us. */
int
cuda_driver_open(CudaDriver *cu, TilertError *err)
{
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!lib) {
    const char *why = dlerror();
    return rt_error_set(err, TILERT_E_UNAVAILABLE, "no CUDA driver: %s", why ? why : "libcuda.so.1 not found");
  }
  int status = bind(cu, lib, err);
  dlclose(lib);
  if (status)
    return status;
  status = cuda_check(cu, cu->Init(0), "cuInit", err);
  if (status && err)
    err->status = TILERT_E_UNAVAILABLE;
  return status ? TILERT_E_UNAVAILABLE : TILERT_OK;
}

/* Results 700 to 719 but for a few are faults of a kernel, after which the context is of no more use. */
static int
status_of(CUresult r)
{
  switch (r) {
  case CUDA_SUCCESS: return TILERT_OK;
  case CUDA_ERROR_OUT_OF_MEMORY: return TILERT_E_MEMORY;
  case 700: case 702: case 710: case 714: case 715: case 716: case 717: case 718: case 719: case 720:
    return TILERT_E_FAULT;
  default: return TILERT_E_DRIVER;
  }
}

int
cuda_check(const CudaDriver *cu, CUresult r, const char *call, TilertError *err)
{
  const char *name = NULL, *text = NULL;
  if (r == CUDA_SUCCESS)
    return TILERT_OK;
  cu->GetErrorName(r, &name);
  cu->GetErrorString(r, &text);
  return rt_error_set(err, status_of(r), "%s: %s (%d): %s", call, name ? name : "CUDA error", r, text ? text : "");
}
