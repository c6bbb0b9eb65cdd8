/* device.h - private: what a kind of device provides (DeviceOps), and the objects built on it.
 *
 * The public functions check arguments and keep reference counts; a DeviceOps row does the device's part.
 * Each device kind puts TilertDevice first in its own struct. `void *stream` is the native stream, NULL the default.
 */
#ifndef TILERT_DEVICE_H
#define TILERT_DEVICE_H
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "grid.h"
#include "launch_plan.h"
#include "tilert.h"

/* One copy: rows of bytes between addresses, of which those of the host are so marked. A single row has no pitch. */
typedef struct Rows { uint64_t address; size_t pitch; int host; } Rows;
typedef struct Copy { Rows dst, src; size_t width, height; } Copy;
typedef struct Window { uint64_t address; size_t bytes; float ratio; uint32_t hit, miss; } Window;   /* no bytes: none */
struct Work;

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
  int (*copy_rows)(TilertDevice *d, const Copy *c, void *stream, TilertError *err);
  /* Between devices of the kind; the stream is of d, which is one of them. */
  int (*copy_peer)(TilertDevice *d, TilertDevice *to, uint64_t dst, TilertDevice *from, uint64_t src, size_t bytes, void *stream,
                   TilertError *err);
  int (*peer)(TilertDevice *d, TilertDevice *other, int enable, int *can, TilertError *err);   /* both of a kind, and different */
  int (*reaches)(TilertDevice *d, TilertDevice *other);        /* it was enabled */
  int (*persisting)(TilertDevice *d, size_t bytes, int reset, TilertError *err);

  /* Memory of the host that the device reaches: its own, or the caller's. */
  int (*alloc_host)(TilertDevice *d, size_t bytes, uint32_t flags, void **host, uint64_t *address, TilertError *err);
  void (*release_host)(TilertDevice *d, void *host);
  int (*pin)(TilertDevice *d, void *host, size_t bytes, uint64_t *address, TilertError *err);
  void (*unpin)(TilertDevice *d, void *host);
  int (*adopt)(TilertDevice *d, uint64_t address, size_t bytes, TilertError *err);   /* is this memory of the device? */

  int (*pool_create)(TilertDevice *d, const TilertPoolOptions *o, void **out, TilertError *err);
  void (*pool_destroy)(TilertDevice *d, void *pool);
  int (*pool_info)(TilertDevice *d, void *pool, TilertPoolInfo *out, TilertError *err);
  int (*pool_trim)(TilertDevice *d, void *pool, uint64_t keep, TilertError *err);
  /* pool NULL: the device's */
  int (*alloc_in)(TilertDevice *d, void *pool, size_t bytes, void *stream, uint64_t *address, TilertError *err);
  int (*release_in)(TilertDevice *d, void *pool, uint64_t address, size_t bytes, void *stream, TilertError *err);

  int (*check_pointer)(TilertDevice *d, uint64_t address, TilertError *err); /* NULL: it is dear */
  /* Its arrays are there, rank is 1 to 5; p NULL: tiled, else im2col and rank is 3 to 5. */
  int (*tensor_map)(TilertDevice *d, const TilertTensor *t, const TilertPixels *p, void *out, TilertError *err);

  int (*stream_create)(TilertDevice *d, int priority, void **out, TilertError *err);
  int (*stream_adopt)(TilertDevice *d, void *stream, TilertError *err);   /* is it one of this device? */
  void (*stream_destroy)(TilertDevice *d, void *stream);
  int (*stream_synchronize)(TilertDevice *d, void *stream, TilertError *err);

  int (*stream_query)(TilertDevice *d, void *stream, int *done, TilertError *err);
  int (*stream_wait)(TilertDevice *d, void *stream, void *event, TilertError *err);
  int (*stream_host)(TilertDevice *d, void *stream, void (*f)(void *user), void *user, TilertError *err);
  int (*stream_window)(TilertDevice *d, void *stream, const Window *w, TilertError *err);

  int (*event_create)(TilertDevice *d, int timed, void **out, TilertError *err);
  int (*event_query)(TilertDevice *d, void *event, int *done, TilertError *err);
  void (*event_destroy)(TilertDevice *d, void *event);
  int (*event_record)(TilertDevice *d, void *event, void *stream, TilertError *err);
  int (*event_synchronize)(TilertDevice *d, void *event, TilertError *err);
  int (*event_elapsed)(TilertDevice *d, void *from, void *to, float *ms, TilertError *err);

  /* careful: whoever makes machine code of it is to optimise little. */
  int (*module_load)(TilertDevice *d, const void *image, size_t len, int careful, void **out, TilertError *err);
  void (*module_unload)(TilertDevice *d, void *module);
  int (*kernel_load)(TilertKernel *k, TilertError *err);   /* sets k->function and k->local; opts in to its shared memory */
  int (*kernel_info)(TilertKernel *k, TilertKernelInfo *out, TilertError *err);
  int (*kernel_occupancy)(TilertKernel *k, uint32_t *blocks, TilertError *err);
  int (*allow_shared)(TilertKernel *k, uint32_t bytes, TilertError *err);   /* of dynamic shared memory; NULL: always allowed */
  int (*allow_cluster)(TilertKernel *k, uint32_t blocks, TilertError *err); /* clusters of so many blocks by launch; 1: what else a launch
                                                                              * may be told; NULL: always allowed */
  int (*launch)(const TilertLaunch *l, void *stream, TilertError *err);
  /* The same of a kernel that no more is to be said of. 0: it was not made, and launch says why. NULL: there is only launch. */
  int (*launch_direct)(const TilertKernel *k, const uint32_t grid[3], void **params, void *stream);

  /* Graphs. capture_*: NULL where graph.c itself records what a stream gets. Otherwise work goes to the stream as always, and capture_last
   * gives the node that it became. graph_*: NULL where graph.c runs nodes itself. */
  int (*capture_begin)(TilertDevice *d, void *stream, TilertError *err);
  int (*capture_last)(TilertDevice *d, void *stream, void **node, TilertError *err);
  int (*capture_end)(TilertDevice *d, void *stream, void **graph, TilertError *err);
  int (*graph_create)(TilertDevice *d, void **out, TilertError *err);
  void (*graph_destroy)(TilertDevice *d, void *graph);
  int (*graph_add)(TilertDevice *d, void *graph, const struct Work *w, void *const *after, const int *after_launch, size_t nafter,
                   void **node, TilertError *err);
  int (*exec_create)(TilertDevice *d, void *graph, void **out, TilertError *err);
  void (*exec_destroy)(TilertDevice *d, void *exec);
  int (*exec_set)(TilertDevice *d, void *exec, void *node, const TilertLaunch *l, TilertError *err);
  int (*exec_launch)(TilertDevice *d, void *exec, const char *label, void *stream, TilertError *err);
  /* A copy that lives as long as the device. */
  int (*exec_label)(TilertDevice *d, const char *text, const char **label, TilertError *err);
} DeviceOps;

struct TilertDevice {
  const DeviceOps *ops;
  atomic_uint refs;
  TilertDeviceInfo info;
  struct Nvtx *nvtx;                           /* a profiler that listens, or NULL */
  atomic_uint_fast64_t gone;                   /* buffers whose memory has been given back so far */
  pthread_mutex_t lock;                        /* of captures: what follows, and what streams and events have of them */
  struct Capture *captures;                    /* under way */
  uint64_t ncaptures;                          /* so far */
  pthread_mutex_t memory;                      /* of: */
  struct TilertBuffer *buffers;                /* those with memory of their own, the newest first */
};

struct TilertStream {
  TilertDevice *device;
  void *native;
  int owned;
  atomic_uint refs;
  _Atomic(struct Capture *) capture;           /* that it belongs to, or NULL; graph.c */
  struct Tail *tail;                           /* what comes next in it comes after these */
};

struct TilertEvent {
  TilertDevice *device;
  void *native;
  uint64_t captured;                           /* the capture that it was recorded in, 0: none, and behind what */
  struct Tail *tail;
};

typedef enum BufferKind { BUFFER_OWN, BUFFER_PART, BUFFER_WRAPPED, BUFFER_HOST, BUFFER_PINNED, BUFFER_ORDERED } BufferKind;

/* Two counts: of those who need the memory, which are its owner and parts of it, and of those who need to know whether it is there: the
 * former as one, launches and graphs. */
struct TilertBuffer {
  TilertDevice *device;
  uint64_t address;
  size_t bytes;
  BufferKind kind;
  atomic_uint uses, refs;
  atomic_int gone;                             /* the memory has been given back */
  void *host;
  TilertBuffer *whole;                         /* of a part */
  TilertPool *pool;                            /* of one in the order of a stream; NULL: the device's */
  TilertStream *stream;                        /* it was created in */
  TilertBuffer *next, **at;                    /* of the device's list, and what leads to this one; NULL: it is not in the list */
};

struct TilertPool { TilertDevice *device; void *native; atomic_uint refs; };

/* One thing that is put into a stream, or a node of a graph. Buffers are for checks, and may be NULL. */
typedef struct Work {
  TilertNodeKind kind;
  const TilertLaunch *launch;
  TilertBuffer *dst, *src;
  Copy copy;
  uint64_t at;                                 /* of a fill: */
  uint32_t pattern, width;
  size_t count;
  void (*call)(void *user);
  void *user;
} Work;

enum { PARAM_BYTES_MAX = 4096 };

/* d is at least 1, and nearly always a power of two: a division takes longer than all else that is done for an argument. */
static inline int
is_multiple(uint64_t v, uint64_t d)
{
  return d & (d - 1) ? v % d == 0 : (v & (d - 1)) == 0;
}

static inline int
is_multiple_signed(int64_t v, uint64_t d)
{
  return d & (d - 1) ? v % (int64_t)d == 0 : ((uint64_t)v & (d - 1)) == 0;
}

struct TilertKernel {
  TilertModule *module;
  TilertDevice *device;
  void *function;                              /* CUfunction; unused on sim */
  const char *label;                           /* its name, which the device keeps; unused on sim */
  uint32_t nargs;                              /* arguments */
  uint32_t resident;                           /* programs of a persistent kernel that the device has room for; 0: it is none */
  LaunchPlan plan;
  uint32_t first[TILERT_MAX_PARAMS + 1];       /* where each argument's parameters begin; first[nargs]: the launch's own */
  uint32_t offset[TILERT_MAX_PARAMS];          /* of each parameter in the launch's blob */
  uint8_t dtype[TILERT_MAX_PARAMS];            /* Dtype of scalars, else DTYPE_NONE */
  GridExpr grid;                               /* of the manifest; axes 0: launches say it */
  TilertManifest manifest;
  uint32_t local;                              /* bytes of a thread's registers and arrays that are in memory; 0 on sim */
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
  int has_priority, priority;
  Window window;
  int empty;                                   /* a zero in the grid */
  int holds;                                   /* references of its buffers */
  int captured;                                /* what it is put into does not run it: no fault will be its doing */
  uint64_t mapless;                            /* bit i: argument i is a tensor without elements, of which there is no map */
  TilertBuffer *buffer[TILERT_MAX_PARAMS];     /* that each argument is, or lies in; NULL: none that is known */
  uint64_t address[TILERT_MAX_PARAMS];         /* of the tensor that each part is of; 0: it has no element */
  void *params[TILERT_MAX_PARAMS];
  _Alignas(64) unsigned char blob[PARAM_BYTES_MAX];
};

int cuda_device_open(int ordinal, TilertDevice **out, TilertError *err);
int cuda_device_wrap(void *context, TilertDevice **out, TilertError *err);
int sim_device_open(const TilertOptions *o, TilertDevice **out, TilertError *err);

/* nvtx.c: NULL where no profiler listens. */
struct Nvtx *nvtx_open(void);
/* What all kinds have; refs is 1. */
void device_init(TilertDevice *d, const DeviceOps *ops);
void device_fini(TilertDevice *d);
TilertDevice *device_retain(TilertDevice *d);
void device_release(TilertDevice *d);
TilertStream *stream_retain(TilertStream *s);
TilertBuffer *buffer_retain(TilertBuffer *b);   /* NULL goes */
/* The buffer in whose memory an address of the device's lies, retained; NULL: none of ours. */
TilertBuffer *buffer_around(TilertDevice *d, uint64_t address);
void buffer_release(TilertBuffer *b);
/* Of options that the caller gives, NULL goes, what is known, into *all, which has the defaults. (options.h) */
int rt_take_options(void *all, size_t known, const void *o, const char *name, TilertError *err);
/* What to add to a sentence that names both, if they have one name: ", opened another time". */
static inline const char *
device_apart(const TilertDevice *a, const TilertDevice *b)
{
  return a != b && !strcmp(a->info.spec, b->info.spec) ? ", opened another time" : "";
}

/* The window of a buffer, checked; w NULL: none. */
int window_of(const TilertDevice *d, const TilertWindow *w, Window *out, TilertError *err);
int priority_fits(const TilertDevice *d, int priority, TilertError *err);

/* The work of these calls, checked. */
int copy_work(const TilertRows *dst, const TilertRows *src, size_t width, size_t height, Work *out, TilertError *err);
int fill_work(TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width, Work *out, TilertError *err);
/* graph.c: put it into the stream, or make it a node of what the stream is captured for. s NULL: d's default stream. */
int work_put(TilertDevice *d, TilertStream *s, const Work *w, TilertError *err);
/* As work_put for one that is not captured. */
int work_run(TilertDevice *d, void *stream, const Work *w, TilertError *err);
/* Nothing may wait for s, NULL: for all of the device, while it is being captured. */
int capture_allows_wait(TilertDevice *d, TilertStream *s, const char *function, TilertError *err);
int capture_event(TilertEvent *e, TilertStream *s, TilertError *err);
int capture_wait(TilertStream *s, TilertEvent *e, int *captured, TilertError *err);
int event_not_captured(const TilertEvent *e, const char *function, TilertError *err);
void tail_free(struct Tail *t);
/* A launch of its own, which holds what it needs; NULL: no memory. */
TilertLaunch *launch_copy(const TilertLaunch *l);
/* The memory of all its buffers is there; of launches that hold them. */
int launch_check_gone(const TilertLaunch *l, TilertError *err);
/* It could be launched now. */
int launch_ready(const TilertLaunch *l, TilertError *err);
TilertModule *module_retain(TilertModule *m);

/* Are all pairs of `apart` two different pointers, or tensors? */
int manifest_pairs_fit(const TilertManifest *m);
enum { CLUSTER_MOST = 16 };                  /* blocks of a cluster, where the device has room */
int manifest_cluster_fits(const TilertManifest *m);   /* there is none, or one that may be */
uint32_t manifest_own(const TilertManifest *m);     /* the place of the first parameter that is no argument; nparams if there is none */
const char *manifest_resident_wrong(const TilertManifest *m);   /* a persistent kernel's parameters, in words; NULL: nothing */
/* What is wrong with one part of a tensor, and with how parts stand together, in words; NULL: nothing. */
const char *manifest_tensor_wrong(const TilertParam *p);
const char *manifest_tensors_wrong(const TilertManifest *m);
/* What is wrong with a manifest's grid; NULL: nothing, and *e is the expression. */
const char *manifest_grid_wrong(const TilertManifest *m, GridExpr *e);

/* Check and pack args into *l, which is the caller's; grid NULL: the kernel's own. Does not retain the kernel. */
int launch_pack(TilertLaunch *l, TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs,
                TilertError *err);
/* The same for as many arguments as the kernel has, if these steps take them (of what they are STEP_NEVER for, launch_pack does); 0: they
 * do not, or something is wrong. */
int launch_pack_steps(TilertLaunch *l, TilertKernel *k, const PackStep *steps, const uint32_t grid[3], const TilertArg *args);
/* The whole launch, of a kernel whose plan is direct, if all these steps take their arguments, and the stream is of its device and not
 * captured. 0: it is not made, whatever is in the way. */
int launch_direct(const TilertKernel *k, const PackStep *steps, const uint32_t grid[3], const TilertArg *args, const TilertStream *s);
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
