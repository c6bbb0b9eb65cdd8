/* tilert.h - load PTX or a cubin and launch its kernels, on a GPU or on the simulator. The public runtime API.
 *
 * Every function that can fail returns a TilertStatus (0 is success) and fills *err if err is not NULL.
 * Nothing here prints, exits or aborts. All functions may be called from any thread; one object must not be
 * destroyed while another thread uses it. Every object keeps what it was made from alive, so objects may be
 * destroyed in any order; destroying NULL does nothing.
 * On cuda the device's primary context is used, so addresses and streams of other libraries in the process fit.
 * On sim every operation is complete when its call returns, unless its stream is being captured.
 */
#ifndef TILERT_H
#define TILERT_H
#include <stddef.h>
#include <stdint.h>
#include "manifest.h"
#include "status.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct TilertDevice TilertDevice;
typedef struct TilertBuffer TilertBuffer;
typedef struct TilertStream TilertStream;
typedef struct TilertEvent TilertEvent;
typedef struct TilertModule TilertModule;
typedef struct TilertKernel TilertKernel;
typedef struct TilertLaunch TilertLaunch;
typedef struct TilertPool TilertPool;
typedef struct TilertGraph TilertGraph;
typedef struct TilertGraphExec TilertGraphExec;

/* A short name: "ok", "argument", ... */
TILERT_API const char *tilert_status_name(int status);

/* ---- devices ---- */

/* How far a launch on sim is. It may grow: size says what the runtime knows. */
typedef struct TilertProgress {
  size_t size;
  uint64_t done_blocks, total_blocks, warp_instructions;
} TilertProgress;

typedef struct TilertOptions {        /* all but the size are for sim; tilert_options_default fills them */
  size_t size;                        /* sizeof(TilertOptions) as the caller knows it */
  int sim_threads;                    /* host threads; 0: one per core */
  int sim_check_races;                /* 1: check memory for races and for reads of what nobody wrote */
  uint64_t sim_max_instructions;      /* per block; 0: no limit */
  void (*progress)(void *user, uint64_t done_blocks, uint64_t total_blocks); /* must not call tilert */
  void *progress_user;
  uint32_t sim_multiprocessors;       /* of the device that sim is; programs beyond what these hold start when others end. 0: 132 */
  /* After each block of a launch and about ten times a second, from any thread, one at a time. Anything but 0 stops the launch, which
   * then fails with TILERT_E_CANCELLED. It must not call tilert. */
  int (*watch)(void *user, const TilertProgress *p);
  void *watch_user;
  /* The text of a source file that a fault lies in, as the PTX names it, and its length; it has to stay until the launch returns. NULL:
   * not known, then the file is read from disk, if it is there. */
  const char *(*source)(void *user, const char *file, size_t *n);
  void *source_user;
  int sim_early_copies;               /* 1: copies land when they are issued, as early as is legal; 0: when they are waited for */
} TilertOptions;

typedef struct TilertDeviceInfo {
  char name[128];
  char spec[16];                      /* "cuda:0", "sim" */
  char target[16];                    /* what to compile for: "sm_90a"; "" if the compiler knows none */
  uint32_t capability_major, capability_minor;
  uint32_t multiprocessors;
  uint32_t shared_max;                /* bytes of shared memory a block may have */
  uint32_t shared_per_multiprocessor;
  uint32_t registers_per_multiprocessor;
  uint32_t threads_per_multiprocessor;
  uint32_t clock_khz, memory_clock_khz, memory_bus_bits; /* 0 if unknown */
  uint64_t memory, l2;                /* bytes */
  uint32_t grid_max[3];
  uint32_t is_sim;
  uint32_t driver;                    /* version of the CUDA driver's interface, 13000 for 13.0; 0 on sim */
  int32_t priority_least, priority_greatest; /* of streams and launches: lower numbers come first; 0 and 0: there is one priority */
  uint64_t l2_persisting_max;         /* bytes of the L2 cache that may be kept for persisting accesses; 0: none */
  uint64_t l2_window_max;             /* bytes of a window (TilertWindow); 0: it has none */
  uint32_t pools;                     /* 1: memory can be allocated in the order of a stream */
} TilertDeviceInfo;

/* What the simulator counted, summed over launches since the device was opened or tilert_device_stats_reset. */
typedef struct TilertStats {
  uint64_t launches, blocks, warp_instructions, global_bytes_read, global_bytes_written, global_sectors;
  uint64_t shared_accesses, shared_bank_conflicts, barriers, atomics, mma;
} TilertStats;

TILERT_API void tilert_options_default(TilertOptions *o);
/* spec: "cuda", "cuda:N", "sim", "sim:N" with N multiprocessors, or NULL or "auto" (cuda if there is a driver and a device, else sim). */
TILERT_API int tilert_device_open(const char *spec, const TilertOptions *o, TilertDevice **out, TilertError *err);
/* One more reference, to be given up by tilert_device_close. Returns dev. */
TILERT_API TilertDevice *tilert_device_retain(TilertDevice *dev);
TILERT_API void tilert_device_close(TilertDevice *dev);
/* The device of a context of the caller's (a CUcontext), which stays theirs and has to outlive everything made here; NULL: the one that is
 * current in this thread. Modules, memory and streams are then that context's, not the primary one's. */
TILERT_API int tilert_device_wrap(void *context, TilertDevice **out, TilertError *err);
/* How many devices "cuda:N" can name; 0 without a driver. */
TILERT_API int tilert_cuda_count(void);
TILERT_API const TilertDeviceInfo *tilert_device_info(const TilertDevice *dev);
TILERT_API int tilert_device_synchronize(TilertDevice *dev, TilertError *err);
/* Stop the launch that runs on sim, if one does: it fails with TILERT_E_CANCELLED. May be called from any thread and from a signal
 * handler. Does nothing on cuda. */
TILERT_API void tilert_device_cancel(TilertDevice *dev);
/* What TilertError.message has no room for: the last fault on sim in full, with the lines of the source and where they were called
 * from. Writes at most n bytes, the end included, and returns the length of the whole text; 0 if there was no fault, or on cuda. */
TILERT_API size_t tilert_device_fault(TilertDevice *dev, char *out, size_t n);
/* E_UNAVAILABLE on cuda. */
TILERT_API int tilert_device_stats(TilertDevice *dev, TilertStats *out, TilertError *err);
TILERT_API int tilert_device_stats_reset(TilertDevice *dev, TilertError *err);
/* How much of the L2 cache is kept for persisting accesses, of what info->l2_persisting_max allows; 0 at first. */
TILERT_API int tilert_device_set_persisting(TilertDevice *dev, size_t bytes, TilertError *err);
/* What persisting accesses have left in the L2 cache becomes ordinary. */
TILERT_API int tilert_device_reset_persisting(TilertDevice *dev, TilertError *err);
/* *out: whether kernels of dev can reach memory of peer. */
TILERT_API int tilert_peer_possible(TilertDevice *dev, TilertDevice *peer, int *out, TilertError *err);
/* From now on launches on dev take buffers of peer. Copies between devices need no such call. */
TILERT_API int tilert_peer_enable(TilertDevice *dev, TilertDevice *peer, TilertError *err);

/* ---- streams and events ----
 * A NULL stream is the device's default stream. */

TILERT_API int tilert_stream_create(TilertDevice *dev, TilertStream **out, TilertError *err);
/* priority: from info->priority_greatest, the lower number, whose work comes first, to info->priority_least. */
TILERT_API int tilert_stream_create_priority(TilertDevice *dev, int priority, TilertStream **out, TilertError *err);
/* A stream of another library (a CUstream) in this device's context; it stays theirs. */
TILERT_API int tilert_stream_wrap(TilertDevice *dev, void *native, TilertStream **out, TilertError *err);
TILERT_API void tilert_stream_destroy(TilertStream *s);
TILERT_API int tilert_stream_synchronize(TilertStream *s, TilertError *err);
TILERT_API void *tilert_stream_native(const TilertStream *s);
/* *done: whether everything that was put into the stream is complete. */
TILERT_API int tilert_stream_query(TilertStream *s, int *done, TilertError *err);
/* What comes into s from here on begins when what the event was recorded behind is complete; the host does not wait. The event may be of
 * another stream, and of another device of the same kind. s NULL: the default stream of the event's device. */
TILERT_API int tilert_stream_wait(TilertStream *s, TilertEvent *e, TilertError *err);
/* Call f(user) when the stream comes there; what follows in it waits for that. f must not call tilert, nor wait for what does. */
TILERT_API int tilert_stream_host(TilertStream *s, void (*f)(void *user), void *user, TilertError *err);

TILERT_API int tilert_event_create(TilertDevice *dev, TilertEvent **out, TilertError *err);
/* An event that knows no time, and so costs less: for waiting only. */
TILERT_API int tilert_event_create_untimed(TilertDevice *dev, TilertEvent **out, TilertError *err);
TILERT_API void tilert_event_destroy(TilertEvent *e);
TILERT_API int tilert_event_record(TilertEvent *e, TilertStream *s, TilertError *err);
TILERT_API int tilert_event_synchronize(TilertEvent *e, TilertError *err);
TILERT_API int tilert_event_query(TilertEvent *e, int *done, TilertError *err);
/* Waits for both; milliseconds from one to the other. */
TILERT_API int tilert_event_elapsed(TilertEvent *from, TilertEvent *to, float *ms, TilertError *err);

/* ---- memory ----
 * With a NULL stream these come behind all that was put into any stream of the device (but for what is being captured), and are complete
 * when the call returns. With a stream they are ordered in it, and the host memory must stay as it is until the stream has passed them.
 * Offsets and sizes are bytes. */

TILERT_API int tilert_buffer_create(TilertDevice *dev, size_t bytes, TilertBuffer **out, TilertError *err);
TILERT_API void tilert_buffer_destroy(TilertBuffer *b);
/* So many bytes of a buffer, from offset on, as a buffer of its own; the memory stays until both are destroyed. */
TILERT_API int tilert_buffer_part(TilertBuffer *of, size_t offset, size_t bytes, TilertBuffer **out, TilertError *err);
/* Memory of another library, at a device address; it stays theirs. It has to be of this device, and on cuda of this context. */
TILERT_API int tilert_buffer_wrap(TilertDevice *dev, uint64_t address, size_t bytes, TilertBuffer **out, TilertError *err);
/* Memory of the host that kernels reach, too, and that copies take without a detour; TILERT_HOST_*. */
enum { TILERT_HOST_WRITE_COMBINED = 1 };     /* for what the host only writes: reading it is slow */
TILERT_API int tilert_buffer_create_host(TilertDevice *dev, size_t bytes, uint32_t flags, TilertBuffer **out, TilertError *err);
/* The same with memory that the caller has, and keeps as long as the buffer is there. */
TILERT_API int tilert_buffer_pin(TilertDevice *dev, void *host, size_t bytes, TilertBuffer **out, TilertError *err);
/* Where the host finds it; NULL for memory of the device. */
TILERT_API void *tilert_buffer_host(const TilertBuffer *b);
TILERT_API uint64_t tilert_buffer_address(const TilertBuffer *b);
TILERT_API size_t tilert_buffer_size(const TilertBuffer *b);
TILERT_API int tilert_buffer_write(TilertBuffer *b, size_t offset, const void *src, size_t bytes,
                                   TilertStream *s, TilertError *err);
TILERT_API int tilert_buffer_read(TilertBuffer *b, size_t offset, void *dst, size_t bytes,
                                  TilertStream *s, TilertError *err);
TILERT_API int tilert_buffer_copy(TilertBuffer *dst, size_t dst_offset, TilertBuffer *src, size_t src_offset,
                                  size_t bytes, TilertStream *s, TilertError *err);
/* Rows of bytes: in a buffer, from offset on, or at an address of the host's, with pitch bytes from one to the next. */
typedef struct TilertRows { TilertBuffer *buffer; void *host; size_t offset, pitch; } TilertRows;
/* height rows of width bytes. At least one side is a buffer; of two buffers, both are of one device. */
TILERT_API int tilert_copy_rows(const TilertRows *dst, const TilertRows *src, size_t width, size_t height, TilertStream *s,
                                TilertError *err);
/* Repeat the low `width` bytes (1, 2 or 4) of pattern; offset and bytes are multiples of width. */
TILERT_API int tilert_buffer_fill(TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width,
                                  TilertStream *s, TilertError *err);

/* Memory in the order of a stream: it is there for what comes into the stream behind this call, and is given back when the stream passes
 * the call that destroys it, without a wait of the host. It comes from a pool, which keeps what is given back for the next one. */
typedef struct TilertPoolOptions {
  size_t size;                        /* sizeof(TilertPoolOptions) as the caller knows it */
  uint64_t keep;                      /* so many unused bytes stay in the pool when something waits for the device; the rest goes */
  uint64_t limit;                     /* bytes that the pool may have; 0: what the device has */
} TilertPoolOptions;
typedef struct TilertPoolInfo { uint64_t used, used_most, reserved, reserved_most; } TilertPoolInfo;   /* bytes */
/* o NULL: nothing is kept, no limit. */
TILERT_API int tilert_pool_create(TilertDevice *dev, const TilertPoolOptions *o, TilertPool **out, TilertError *err);
TILERT_API void tilert_pool_destroy(TilertPool *p);
TILERT_API int tilert_pool_info(TilertPool *p, TilertPoolInfo *out, TilertError *err);
/* Give back unused memory, but for so many bytes. */
TILERT_API int tilert_pool_trim(TilertPool *p, uint64_t keep, TilertError *err);
/* p NULL: the device's own pool. */
TILERT_API int tilert_buffer_create_in(TilertStream *s, TilertPool *p, size_t bytes, TilertBuffer **out, TilertError *err);
/* Destroy such a buffer in the order of s. tilert_buffer_destroy does that in the stream it was created in, which has to be there then. */
TILERT_API int tilert_buffer_destroy_in(TilertBuffer *b, TilertStream *s, TilertError *err);

/* ---- modules and kernels ---- */

typedef struct TilertKernelInfo {
  uint32_t registers;                 /* per thread; 0 on sim */
  uint32_t local_bytes;               /* per thread: spills and local arrays */
  uint32_t static_shared, dynamic_shared;
  uint32_t threads;                   /* per block, as launched */
  uint32_t max_threads;               /* per block, that its registers allow */
} TilertKernelInfo;

/* Read the `//@tilec` lines of PTX text. Writes at most max manifests to out and the number there are to *n. */
TILERT_API int tilert_manifest_parse(const char *text, size_t len, TilertManifest *out, size_t max, size_t *n,
                                     TilertError *err);
/* Manifests of the kernels of any PTX, from their headers: like tilert_manifest_parse. Parameters that are not marked .ptr are raw,
 * and take any argument of their size: .u64 a buffer, an address or an integer, .f32 a number, .b32 either, .b8 x[N] bytes. What the PTX
 * calls KERNEL_param_N is named pN. warps is what .reqntid or .maxntid say, else 1; block is .reqntid; where there is none, the launch
 * gives the block's shape (tilert_launch_shaped). */
TILERT_API int tilert_manifest_derive(const char *ptx, size_t len, TilertManifest *out, size_t max, size_t *n, TilertError *err);
/* image: PTX text or a cubin. manifests may be NULL for PTX that carries its own `//@tilec` lines. */
TILERT_API int tilert_module_load(TilertDevice *dev, const void *image, size_t len, const TilertManifest *manifests,
                                  size_t nmanifests, TilertModule **out, TilertError *err);
TILERT_API void tilert_module_destroy(TilertModule *m);
TILERT_API size_t tilert_module_kernel_count(const TilertModule *m);
/* name may be NULL if the module holds one kernel. The kernel belongs to the module. */
TILERT_API int tilert_module_kernel(TilertModule *m, const char *name, TilertKernel **out, TilertError *err);
/* The kernels of a module in order; NULL behind the last. */
TILERT_API TilertKernel *tilert_module_kernel_at(TilertModule *m, size_t index);
TILERT_API const TilertManifest *tilert_kernel_manifest(const TilertKernel *k);
/* One argument of a launch, as its caller sees it. The strings are the kernel's. */
typedef struct TilertArgInfo {
  const char *name, *dtype;           /* dtype: of what is pointed to, of a tensor's elements, of the number */
  uint32_t kind;                      /* TilertParamKind */
  uint32_t rank;                      /* of a tensor */
  uint32_t divisible, null, nonneg;   /* what the code relies on, as in TilertParam */
} TilertArgInfo;
TILERT_API size_t tilert_kernel_arg_count(const TilertKernel *k);
TILERT_API int tilert_kernel_arg(const TilertKernel *k, size_t index, TilertArgInfo *out, TilertError *err);
/* "axpy(a: f32, x: *f32, n: i32)". Writes at most n bytes, the end included, and returns the length of the whole text. */
TILERT_API size_t tilert_kernel_signature(const TilertKernel *k, char *out, size_t n);
TILERT_API int tilert_kernel_info(TilertKernel *k, TilertKernelInfo *out, TilertError *err);
/* How many blocks of this kernel one multiprocessor can hold at a time. On sim by threads and shared memory alone. */
TILERT_API int tilert_kernel_occupancy(TilertKernel *k, uint32_t *blocks, TilertError *err);

/* ---- tensor maps ---- */

/* A tensor in device memory, and the boxes that kernels copy of it; extents, box and steps are in elements, innermost first, strides in
 * bytes, of all dimensions but the innermost. type, interleave, swizzle, promotion and fill are numbers of the CUDA driver API
 * (cuTensorMapEncodeTiled). */
typedef struct TilertTensor {
  int32_t type, interleave, swizzle, promotion, fill;
  uint32_t rank;                             /* 1 to 5 */
  uint64_t address;
  const uint64_t *extents, *strides;         /* strides may be NULL where the rank is 1 */
  const uint32_t *box, *steps;
} TilertTensor;
/* Encode the map of a tensor: the 128 bytes of a tensor map parameter (TILERT_ARG_BYTES), good for this kind of device. out is the
 * caller's, aligned to 64. TILERT_E_ARGUMENT: the hardware has no such map; TILERT_E_UNAVAILABLE: the driver encodes none. */
TILERT_API int tilert_tensor_map(TilertDevice *dev, const TilertTensor *tensor, void *out, TilertError *err);
/* The pixels of a map in im2col mode (cuTensorMapEncodeIm2col), of a tensor of rank 3 to 5: so many channels of so many pixels, whose
 * coordinates go from the lower corner to the extent + the upper one, in each dimension but the innermost and the outermost. */
typedef struct TilertPixels {
  const int32_t *lower, *upper;              /* rank - 2 numbers each */
  uint32_t channels, pixels;
} TilertPixels;
/* The same in im2col mode; the tensor's box counts for nothing. */
TILERT_API int tilert_tensor_map_im2col(TilertDevice *dev, const TilertTensor *tensor, const TilertPixels *pixels, void *out,
                                        TilertError *err);

/* ---- launching ---- */

typedef enum TilertArgKind {
  TILERT_ARG_BUFFER,   /* a TilertBuffer */
  TILERT_ARG_POINTER,  /* a device address; on cuda of any allocation in the context */
  TILERT_ARG_INT,      /* for integer and floating-point parameters; the value must fit the type */
  TILERT_ARG_FLOAT,    /* for floating-point parameters; rounded to nearest even */
  TILERT_ARG_BYTES,    /* host memory holding the parameter's bytes (tensor maps: 128) */
  TILERT_ARG_TENSOR    /* a TilertTensorArg */
} TilertArgKind;

/* What a tensor parameter takes, all of its parts together. Extents and strides are in elements, that of dimension 0 first; the last stride
 * is 1. It is read when the launch is packed, and need not stay. */
typedef struct TilertTensorArg {
  TilertBuffer *buffer;               /* NULL: address says where element 0 is; else it is that many bytes into the buffer */
  uint64_t address;
  uint32_t rank, reserved;            /* 1 to TILERT_MAX_RANK */
  const int64_t *extents, *strides;   /* strides NULL: the last dimension fastest, with nothing in between */
} TilertTensorArg;

/* reserved is 0, but of a null pointer that stands for an array without elements. A kernel that reads or writes through a pointer, and
 * does not ask whether it is null, takes no other null. */
enum { TILERT_NO_ELEMENTS = 1 };
typedef struct TilertArg {
  uint32_t kind, reserved;
  union { TilertBuffer *buffer; uint64_t pointer; int64_t i; double f; const void *bytes; const TilertTensorArg *tensor; } u;
} TilertArg;

/* 0: a launch with these arguments would be refused because of a map of a tensor that the kernel takes, or a negative integer. 1 otherwise,
 * whatever else may be wrong with them. */
TILERT_API int tilert_kernel_fits(const TilertKernel *k, const TilertArg *args, size_t nargs);
/* The grid that the kernel's own grid clause gives for these arguments; E_ARGUMENT if it has none. */
TILERT_API int tilert_kernel_grid(const TilertKernel *k, const TilertArg *args, size_t nargs, uint32_t grid[3], TilertError *err);
/* Launch grid[0] x grid[1] x grid[2] blocks, or with grid NULL as many as the kernel's grid clause says (tilert_kernel_grid), with
 * arguments in the order of the manifest's parameters, of which the parts of a tensor are one (tilert_manifest_args). Count, types, ranges
 * and alignment are checked; messages name the kernel and the argument.
 * Of a tensor: extents are 0 to 2^31 - 1; strides are positive and less than 2^40 bytes, of extents beyond 1, otherwise they do not matter;
 * it lies in its buffer. Where the kernel copies boxes of it (TILERT_TENSOR_MAP) also: it begins at a multiple of 16 bytes, its
 * strides but the last are such multiples, and if it has no element, the grid is empty, since there is no map of that. What is said of
 * tensors holds, where the kernel takes a map of what a pointer leads to (TILERT_PARAM_VIEW), of that; it has elements.
 * A grid with a zero component is empty and launches nothing. Asynchronous on cuda. */
TILERT_API int tilert_launch(TilertStream *s, TilertKernel *k, const uint32_t grid[3], const TilertArg *args,
                             size_t nargs, TilertError *err);

/* The same in two steps: check and pack once, then launch with nothing but the driver's own call. */
TILERT_API int tilert_launch_create(TilertKernel *k, const uint32_t grid[3], const TilertArg *args, size_t nargs,
                                    TilertLaunch **out, TilertError *err);
TILERT_API void tilert_launch_destroy(TilertLaunch *l);
TILERT_API int tilert_launch_set_grid(TilertLaunch *l, const uint32_t grid[3], TilertError *err);
TILERT_API int tilert_launch_grid(const TilertLaunch *l, uint32_t grid[3], TilertError *err);   /* what it is now */
TILERT_API int tilert_launch_set_arg(TilertLaunch *l, size_t index, const TilertArg *arg, TilertError *err);
TILERT_API TilertKernel *tilert_launch_kernel(const TilertLaunch *l);
TILERT_API int tilert_launch_packed(const TilertLaunch *l, TilertStream *s, TilertError *err);

/* For kernels of other compilers: blocks of any shape, with so many bytes of dynamic shared memory. */
TILERT_API int tilert_launch_set_shape(TilertLaunch *l, const uint32_t block[3], uint32_t dynamic_shared, TilertError *err);
TILERT_API int tilert_launch_shaped(TilertStream *s, TilertKernel *k, const uint32_t grid[3], const uint32_t block[3],
                                    uint32_t dynamic_shared, const TilertArg *args, size_t nargs, TilertError *err);
/* Blocks in clusters of this shape, which share their shared memory: 1 to 16 of them, more than 8 only where the device has room (others
 * fail when launched). What a kernel says itself (.reqnctapercluster) needs no such call, and allows no other. TILERT_E_UNAVAILABLE:
 * the device or its driver has none. The grid has to be a multiple when it is launched. */
TILERT_API int tilert_launch_set_cluster(TilertLaunch *l, const uint32_t cluster[3], TilertError *err);
/* Programmatic dependent launch. TILERT_PDL_ON: the kernel may begin as soon as every block of the one before it in the stream has executed
 * griddepcontrol.launch_dependents or ended, and sees what that kernel writes only behind its own griddepcontrol.wait; one without that
 * instruction must not touch such memory. TILERT_PDL_OFF, as at first: it begins when the one before has ended. TILERT_PDL_AUTO: on if the
 * kernel's manifest says that it waits, and the device can do it; else off. On sim launches come one after another in any case, and what
 * lacks a wait is a race. TILERT_E_UNAVAILABLE, of TILERT_PDL_ON: the device or its driver has none. */
typedef enum TilertPdl { TILERT_PDL_OFF = 0, TILERT_PDL_ON = 1, TILERT_PDL_AUTO = 2 } TilertPdl;
TILERT_API int tilert_launch_set_pdl(TilertLaunch *l, int on, TilertError *err);
/* In front of other launches, or behind them, whatever its stream's priority is. */
TILERT_API int tilert_launch_set_priority(TilertLaunch *l, int priority, TilertError *err);

/* How the L2 cache treats accesses to some bytes: ratio of them, from 0 to 1, as hit says, the others as miss says. Persisting ones stay
 * while there is room (tilert_device_set_persisting), streaming ones go first. */
typedef enum TilertAccess { TILERT_ACCESS_NORMAL, TILERT_ACCESS_STREAMING, TILERT_ACCESS_PERSISTING } TilertAccess;
typedef struct TilertWindow {
  TilertBuffer *buffer;
  size_t offset, bytes;
  float ratio;
  uint32_t hit, miss;                 /* TilertAccess; miss is not TILERT_ACCESS_PERSISTING */
} TilertWindow;
/* For the launches that come into the stream from here on, or for this one; NULL: no window. Without effect on sim, which has no cache. */
TILERT_API int tilert_stream_set_window(TilertStream *s, const TilertWindow *w, TilertError *err);
TILERT_API int tilert_launch_set_window(TilertLaunch *l, const TilertWindow *w, TilertError *err);

/* ---- graphs ----
 * Work that is described once and launched as one, again and again. A graph has nodes, numbered from 0, and says which come after which;
 * an executable graph is a copy of it that the device has made ready. On sim nodes run in the order of their numbers.
 * Buffers stay the caller's: a launch of a graph with a buffer that is destroyed is refused, with the node and its argument. */

typedef uint32_t TilertNode;
typedef enum TilertNodeKind {
  TILERT_NODE_LAUNCH, TILERT_NODE_COPY, TILERT_NODE_FILL, TILERT_NODE_HOST, TILERT_NODE_EMPTY
} TilertNodeKind;
typedef struct TilertNodeInfo {
  uint32_t kind;                      /* TilertNodeKind */
  TilertKernel *kernel;               /* of a launch, else NULL */
  const TilertNode *after;            /* the graph's */
  size_t nafter;
} TilertNodeInfo;

TILERT_API int tilert_graph_create(TilertDevice *dev, TilertGraph **out, TilertError *err);
TILERT_API void tilert_graph_destroy(TilertGraph *g);
TILERT_API size_t tilert_graph_count(const TilertGraph *g);
TILERT_API int tilert_graph_node(const TilertGraph *g, TilertNode node, TilertNodeInfo *out, TilertError *err);
/* Each adds a node that comes after others, and gives its number; node may be NULL. A launch is copied with its arguments and attributes.
 * Host memory is read and written when the graph runs. */
TILERT_API int tilert_graph_add_launch(TilertGraph *g, const TilertLaunch *l, const TilertNode *after, size_t nafter, TilertNode *node,
                                       TilertError *err);
TILERT_API int tilert_graph_add_copy(TilertGraph *g, const TilertRows *dst, const TilertRows *src, size_t width, size_t height,
                                     const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err);
TILERT_API int tilert_graph_add_fill(TilertGraph *g, TilertBuffer *b, size_t offset, size_t bytes, uint32_t pattern, uint32_t width,
                                     const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err);
TILERT_API int tilert_graph_add_host(TilertGraph *g, void (*f)(void *user), void *user, const TilertNode *after, size_t nafter,
                                     TilertNode *node, TilertError *err);
/* Does nothing, but may come after others, and others after it. */
TILERT_API int tilert_graph_add_empty(TilertGraph *g, const TilertNode *after, size_t nafter, TilertNode *node, TilertError *err);

/* From here on what is put into the stream is not done, but becomes nodes. Streams that wait for an event that was recorded in it belong to
 * the capture, until its end, in front of which the first stream has to wait for them. Nothing may wait for such a stream meanwhile. On
 * cuda what other libraries put there belongs to the graph, too, without a number. */
TILERT_API int tilert_stream_capture_begin(TilertStream *s, TilertError *err);
TILERT_API int tilert_stream_capture_end(TilertStream *s, TilertGraph **out, TilertError *err);
TILERT_API int tilert_stream_capturing(const TilertStream *s);

/* Later changes of g do not change it. */
TILERT_API int tilert_graph_instantiate(TilertGraph *g, TilertGraphExec **out, TilertError *err);
TILERT_API void tilert_graph_exec_destroy(TilertGraphExec *x);
TILERT_API int tilert_graph_launch(TilertGraphExec *x, TilertStream *s, TilertError *err);
/* Another argument, or grid, for a launch of the graph; checked as by tilert_launch_set_arg. For the launches of x that follow. */
TILERT_API int tilert_graph_set_arg(TilertGraphExec *x, TilertNode node, size_t index, const TilertArg *arg, TilertError *err);
TILERT_API int tilert_graph_set_grid(TilertGraphExec *x, TilertNode node, const uint32_t grid[3], TilertError *err);
/* Another launch in its place, of any kernel, with the same attributes (cluster, dependent launch, priority, window). */
TILERT_API int tilert_graph_set_launch(TilertGraphExec *x, TilertNode node, const TilertLaunch *l, TilertError *err);

/* ---- timing ---- */

/* A range of the host's time that profilers show (NVTX): what this thread does from a push to its pop, for profilers that listened when
 * the device was opened. */
TILERT_API void tilert_range_push(TilertDevice *dev, const char *name);
TILERT_API void tilert_range_pop(TilertDevice *dev);

typedef struct TilertBench { double median_ms, min_ms, max_ms, mean_ms, p20_ms, p80_ms; uint32_t runs; } TilertBench;
typedef int (*TilertRun)(void *user, TilertStream *s, TilertError *err);

/* Time run(user, s): warm up for about warmup_ms, then measure for about rep_ms, each run by itself and, on cuda,
 * with the L2 cache flushed before it. before(user, s) comes in front of every run and is not measured: it makes
 * good what a run leaves behind, such as counters that must begin at zero. NULL: nothing to do. */
TILERT_API int tilert_bench(TilertDevice *dev, TilertStream *s, TilertRun before, TilertRun run, void *user,
                            double warmup_ms, double rep_ms, TilertBench *out, TilertError *err);
TILERT_API int tilert_bench_launch(const TilertLaunch *l, TilertStream *s, double warmup_ms, double rep_ms,
                                   TilertBench *out, TilertError *err);

TILERT_API const char *tilert_version(void);
/* tilert_version_check(TILEC_VERSION_NUMBER, err): a program that was built with a newer header than the library's is told so. */
TILERT_API int tilert_version_check(int header, TilertError *err);
#ifdef __cplusplus
}
#endif
#endif
