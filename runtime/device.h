/* device.h - private: what a kind of device provides (DeviceOps), and the objects built on it.
 *
 * The public functions check arguments and keep reference counts; a DeviceOps row does the device's part.
 * Each device kind puts TilertDevice first in its own struct. `void *stream` is the native stream, NULL the default.
 */
#ifndef TILERT_DEVICE_H
#define TILERT_DEVICE_H
#include <stdatomic.h>
#include "tilert.h"

typedef struct DeviceOps {
  void (*destroy)(TilertDevice *d);
  int (*synchronize)(TilertDevice *d, TilertError *err);
  int (*stats)(TilertDevice *d, TilertStats *out, int reset, TilertError *err);
  void (*cancel)(TilertDevice *d);                              /* NULL: cannot */
  size_t (*fault)(TilertDevice *d, char *out, size_t n);        /* NULL: knows none */

  int (*alloc)(TilertDevice *d, size_t bytes, uint64_t *address, TilertError *err);
  void (*release)(TilertDevice *d, uint64_t address);
  int (*write)(TilertDevice *d, uint64_t dst, const void *src, size_t bytes, void *stream, TilertError *err);
  int (*read)(TilertDevice *d, void *dst, uint64_t src, size_t bytes, void *stream, TilertError *err);
  int (*copy)(TilertDevice *d, uint64_t dst, uint64_t src, size_t bytes, void *stream, TilertError *err);
  int (*fill)(TilertDevice *d, uint64_t dst, uint32_t pattern, uint32_t width, size_t count, void *stream,
              TilertError *err);
  int (*check_pointer)(TilertDevice *d, uint64_t address, TilertError *err); /* only if that is cheap */
  /* Its arrays are there, rank is 1 to 5; p NULL: tiled, else im2col and rank is 3 to 5. */
  int (*tensor_map)(TilertDevice *d, const TilertTensor *t, const TilertPixels *p, void *out, TilertError *err);

  int (*stream_create)(TilertDevice *d, void **out, TilertError *err);
  void (*stream_destroy)(TilertDevice *d, void *stream);
  int (*stream_synchronize)(TilertDevice *d, void *stream, TilertError *err);

  int (*event_create)(TilertDevice *d, void **out, TilertError *err);
  void (*event_destroy)(TilertDevice *d, void *event);
  int (*event_record)(TilertDevice *d, void *event, void *stream, TilertError *err);
  int (*event_synchronize)(TilertDevice *d, void *event, TilertError *err);
  int (*event_elapsed)(TilertDevice *d, void *from, void *to, float *ms, TilertError *err);

  int (*module_load)(TilertDevice *d, const void *image, size_t len, void **out, TilertError *err);
  void (*module_unload)(TilertDevice *d, void *module);
  int (*kernel_load)(TilertKernel *k, TilertError *err);   /* sets k->function; opts in to its shared memory */
  int (*kernel_info)(TilertKernel *k, TilertKernelInfo *out, TilertError *err);
  int (*kernel_occupancy)(TilertKernel *k, uint32_t *blocks, TilertError *err);
  int (*allow_shared)(TilertKernel *k, uint32_t bytes, TilertError *err);   /* of dynamic shared memory; NULL: always allowed */
  int (*allow_cluster)(TilertKernel *k, uint32_t blocks, TilertError *err); /* clusters of so many blocks by launch; 1: what else a launch
                                                                              * may be told; NULL: always allowed */
  int (*launch)(const TilertLaunch *l, void *stream, TilertError *err);
} DeviceOps;

struct TilertDevice {
  const DeviceOps *ops;
  atomic_uint refs;
  TilertDeviceInfo info;
};

struct TilertStream { TilertDevice *device; void *native; int owned; };
struct TilertEvent { TilertDevice *device; void *native; };
struct TilertBuffer { TilertDevice *device; uint64_t address; size_t bytes; };

enum { PARAM_BYTES_MAX = 4096 };

struct TilertKernel {
  TilertModule *module;
  TilertDevice *device;
  void *function;                              /* CUfunction; unused on sim */
  const char *label;                           /* its name, which the device keeps; unused on sim */
  uint32_t nargs, first[TILERT_MAX_PARAMS + 1]; /* arguments, and where each one's parameters begin; first[nargs]: where the views do */
  uint32_t offset[TILERT_MAX_PARAMS];          /* of each parameter in the launch's blob */
  uint8_t dtype[TILERT_MAX_PARAMS];            /* Dtype of scalars, else DTYPE_NONE */
  TilertManifest manifest;
};

struct TilertModule {
  TilertDevice *device;
  atomic_uint refs;
  void *native;
  size_t nkernels;
  TilertKernel kernels[];
};

/* A checked and packed launch: what the driver's launch call takes, and nothing else. */
struct TilertLaunch {
  TilertKernel *kernel;
  void *function;
  uint32_t grid[3], block[3], shared;
  uint32_t cluster[3];                         /* blocks of a cluster; 0: what the kernel says */
  int pdl;                                     /* it may begin before the launch in front of it has ended */
  int empty;                                   /* a zero in the grid */
  uint64_t mapless;                            /* bit i: argument i is a tensor without elements, of which there is no map */
  uint64_t address[TILERT_MAX_PARAMS];         /* of the tensor that each part is of; 0: it has no element */
  void *params[TILERT_MAX_PARAMS];
  _Alignas(64) unsigned char blob[PARAM_BYTES_MAX];
};

int cuda_device_open(int ordinal, TilertDevice **out, TilertError *err);
int sim_device_open(const TilertOptions *o, TilertDevice **out, TilertError *err);

TilertDevice *device_retain(TilertDevice *d);
void device_release(TilertDevice *d);
TilertModule *module_retain(TilertModule *m);

/* Are all pairs of `apart` two different pointers, or tensors? */
int manifest_pairs_fit(const TilertManifest *m);
enum { CLUSTER_MOST = 16 };                  /* blocks of a cluster, where the device has room */
int manifest_cluster_fits(const TilertManifest *m);   /* there is none, or one that may be */
uint32_t manifest_views(const TilertManifest *m);   /* the place of the first view; nparams if there is none */
/* What is wrong with one part of a tensor, and with how parts stand together, in words; NULL: nothing. */
const char *manifest_tensor_wrong(const TilertParam *p);
const char *manifest_tensors_wrong(const TilertManifest *m);

/* Check and pack args into *l, which is the caller's. Does not retain the kernel. */
int launch_pack(TilertLaunch *l, TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs,
                TilertError *err);
/* An argument that is being packed, and its parameter, of a tensor the first. */
typedef struct ArgCheck {
  const TilertKernel *kernel;
  const TilertParam *param;
  size_t index;
  TilertError *err;
} ArgCheck;
/* Put the kernel and the argument in front of the message that is there. */
int launch_blame(const ArgCheck *c, int status);
int launch_wrong_kind(const ArgCheck *c, const TilertArg *arg);
/* The buffer is one of this device. */
int launch_check_buffer(const ArgCheck *c, const TilertBuffer *b);
/* launch_raw.c: pack one of TILERT_PARAM_RAW. */
int launch_pack_raw(const ArgCheck *c, const TilertArg *arg, unsigned char *at);
/* launch_tensor.c: pack all parts of a tensor into the launch. */
int launch_pack_tensor(TilertLaunch *l, const ArgCheck *c, const TilertArg *arg);
/* Pack all views, once what they are of is packed. */
int launch_pack_views(TilertLaunch *l, TilertError *err);

/* err says which line of this PTX is rejected: put the line of the source in front. */
void rt_error_locate(TilertError *err, const char *ptx);
/* Fill *err (if not NULL) and return status. */
int rt_error_set(TilertError *err, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
int error_no_memory(TilertError *err);
/* In a function with err: this must be given. The rest of a condition says when not ("src || !bytes"). */
#define NEED(pointer)                               \
  do {                                              \
    if (!(pointer))                                 \
      return error_null(err, __func__, #pointer);   \
  } while (0)
int error_null(TilertError *err, const char *function, const char *pointer);
/* Put "text: " before the message that is there and make this the status. */
int error_prefix(TilertError *err, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
#endif
