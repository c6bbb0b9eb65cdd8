/* aot.h - kernels compiled ahead: the tables that `tilec --emit=c` writes, and the calls that its functions make. Part of libtilert.
 *
 * A kernel of a file is one or more forms: for several targets, and for several patterns of arguments (facts), the special ones first. A
 * launch takes the first form that is for the device and whose facts hold. A form's code is loaded when it is first taken, once for each
 * device, whatever threads ask; it stays until tilert_aot_unload.
 */
#ifndef TILERT_AOT_H
#define TILERT_AOT_H
#include "tilert.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { TILERT_AOT_VERSION = 1 };      /* of these tables: a library takes those up to its own */

/* What a form's code relies on about argument `arg`. */
typedef enum TilertAotFactKind {
  TILERT_AOT_EQUAL,                   /* the integer is value */
  TILERT_AOT_DIVISIBLE,               /* the integer or address is a multiple of value */
  TILERT_AOT_NULL,                    /* the pointer is null if value is 1, is not if it is 0 */
  TILERT_AOT_SAME                     /* it is the address that argument value is */
} TilertAotFactKind;
typedef struct TilertAotFact { uint16_t kind, arg; uint32_t reserved; int64_t value; } TilertAotFact;

/* Code as tilert_aot_unpack takes it: `packed` bytes that stand for `size`. */
typedef struct TilertAotCode { const unsigned char *data; uint32_t packed, size; } TilertAotCode;

typedef struct TilertAotForm {
  const char *target;                 /* "sm_90a" */
  const char *manifest;               /* the //@tilec line, for the cubin */
  TilertAotCode ptx, cubin;           /* cubin: data NULL if there is none */
  const TilertAotFact *facts;
  uint32_t nfacts, reserved;
} TilertAotForm;

typedef struct TilertAotKernel {
  uint32_t version;                   /* TILERT_AOT_VERSION as the tables were made for */
  uint32_t nargs, nforms, reserved;
  const char *name;                   /* of the function */
  const char *const *args;            /* the arguments' names */
  uint64_t needed;                    /* 0, and not looked at: which pointers may not be null the forms' manifests say (needs=) */
  const TilertAotForm *forms;
  void **state;                       /* a pointer of the file's, NULL at first */
} TilertAotKernel;

/* Launch with the arguments in order. grid NULL: what the kernel's grid clause says. Arguments are checked as by tilert_launch. */
TILERT_API int tilert_aot_launch(const TilertAotKernel *k, TilertStream *s, const uint32_t grid[3], const TilertArg *args,
                                 TilertError *err);
/* For a kernel without a grid clause whose grid is NULL. */
TILERT_API int tilert_aot_no_grid(const TilertAotKernel *k, TilertError *err);
/* Load now the forms that launches on this device choose from. */
TILERT_API int tilert_aot_load(const TilertAotKernel *k, TilertDevice *dev, TilertError *err);
/* Give up what was loaded, on all devices; no launch of this kernel may be under way in another thread. The next launch loads again. */
TILERT_API void tilert_aot_unload(const TilertAotKernel *k);
/* Fill out with the bytes that code stands for; E_MODULE if it is damaged. */
TILERT_API int tilert_aot_unpack(const TilertAotCode *code, unsigned char *out, TilertError *err);
#ifdef __cplusplus
}
#endif
#endif
